/*
 * debug_point.c
 *	  Named points where a test can make an update fail, wait or die.
 *
 * pipeline.debug_point is a list "name=action, ...": error raises, wait blocks until
 * the advisory lock 7077 is free, kill ends the backend as kill -9 would.
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "base/debug_point.h"
#include "base/errors.h"
#include "base/guc.h"

#define PLN_DEBUG_LOCK 7077

static bool
action_is(const char *at, const char *action)
{
	return strncmp(at, action, strlen(action)) == 0;
}

void
pln_debug_point(const char *name)
{
	const char *at;
	size_t		len = strlen(name);

	if (pln_guc_debug_point == NULL || pln_guc_debug_point[0] == '\0')
		return;
	for (at = strstr(pln_guc_debug_point, name); at != NULL; at = strstr(at + 1, name))
	{
		if (at[len] != '=')
			continue;
		at += len + 1;
		if (action_is(at, "error"))
			ereport(ERROR,
					(errcode(ERRCODE_IO_ERROR),
					 errmsg("debug point \"%s\" reached", name)));
		else if (action_is(at, "wait"))
		{
			DirectFunctionCall1(pg_advisory_lock_int8, Int64GetDatum(PLN_DEBUG_LOCK));
			DirectFunctionCall1(pg_advisory_unlock_int8, Int64GetDatum(PLN_DEBUG_LOCK));
		}
		else if (action_is(at, "kill"))
			kill(getpid(), SIGKILL);
		return;
	}
}

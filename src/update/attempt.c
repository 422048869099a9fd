/*
 * attempt.c
 *	  The only place that catches errors: always with an internal subtransaction.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "update/attempt.h"

static ErrorData *
attempt(PlnStep step, void *arg, MemoryContext context, bool undo)
{
	MemoryContext old_context = CurrentMemoryContext;
	ResourceOwner old_owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	/* results live where the caller wants them, not in the subtransaction's context */
	MemoryContextSwitchTo(old_context);
	PG_TRY();
	{
		step(arg);
		if (undo)
			RollbackAndReleaseCurrentSubTransaction();
		else
			ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(old_context);
		CurrentResourceOwner = old_owner;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(old_context);
		CurrentResourceOwner = old_owner;
	}
	PG_END_TRY();
	return error;
}

ErrorData *
pln_attempt(PlnStep step, void *arg, MemoryContext context)
{
	return attempt(step, arg, context, false);
}

ErrorData *
pln_attempt_undo(PlnStep step, void *arg, MemoryContext context)
{
	return attempt(step, arg, context, true);
}

bool
pln_error_is_cancel(const ErrorData *error)
{
	return error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
		error->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN ||
		error->sqlerrcode == ERRCODE_CRASH_SHUTDOWN;
}

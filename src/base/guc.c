/*
 * guc.c
 *	  All pipeline.* settings.  Nothing here touches the catalog: GUC hooks run
 *	  without a transaction.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"

#include "base/guc.h"

int			pln_guc_messages = PLN_MESSAGES_SUMMARY;
int			pln_guc_on_busy = PLN_BUSY_ERROR;
int			pln_guc_log_updates = PLN_LOG_FAILED;
bool		pln_guc_allow_dml = false;
char	   *pln_guc_allowed_locations = NULL;
int			pln_guc_source_lock_timeout = 1000;
int			pln_guc_event_retention = 0;
char	   *pln_guc_debug_point = NULL;

static const struct config_enum_entry messages_options[] = {
	{"quiet", PLN_MESSAGES_QUIET, false},
	{"summary", PLN_MESSAGES_SUMMARY, false},
	{"detail", PLN_MESSAGES_DETAIL, false},
	{NULL, 0, false}
};

static const struct config_enum_entry on_busy_options[] = {
	{"error", PLN_BUSY_ERROR, false},
	{"skip", PLN_BUSY_SKIP, false},
	{"wait", PLN_BUSY_WAIT, false},
	{NULL, 0, false}
};

static const struct config_enum_entry log_updates_options[] = {
	{"failed", PLN_LOG_FAILED, false},
	{"all", PLN_LOG_ALL, false},
	{"none", PLN_LOG_NONE, false},
	{NULL, 0, false}
};

void
pln_guc_init(void)
{
	DefineCustomEnumVariable("pipeline.messages",
							 "How much an update tells the client.",
							 NULL, &pln_guc_messages, PLN_MESSAGES_SUMMARY, messages_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pipeline.on_busy",
							 "What CALL does while another update of the pipeline runs.",
							 NULL, &pln_guc_on_busy, PLN_BUSY_ERROR, on_busy_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pipeline.log_updates",
							 "Which updates are written to the server log.",
							 NULL, &pln_guc_log_updates, PLN_LOG_FAILED, log_updates_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pipeline.allow_dml",
							 "Lets the owner of a streaming table change its rows by hand.",
							 NULL, &pln_guc_allow_dml, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pipeline.allowed_locations",
							   "Prefixes of the places that read_files may read, separated by "
									 "commas.",
							   "Members of pg_read_server_files may read every local path.",
							   &pln_guc_allowed_locations, "",
							   PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pipeline.source_lock_timeout",
							"How long one try waits for the lock that starting capture on a "
									 "source needs.",
							NULL, &pln_guc_source_lock_timeout, 1000, 1, 600000,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pipeline.event_retention",
							"How long events are kept; 0 keeps them for ever.",
							NULL, &pln_guc_event_retention, 0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MIN, NULL, NULL, NULL);
	DefineCustomStringVariable("pipeline.debug_point",
							   "For tests: name=error, name=wait or name=kill at a named point of "
									 "an update.",
							   NULL, &pln_guc_debug_point, "",
							   PGC_SUSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	MarkGUCPrefixReserved("pipeline");
}

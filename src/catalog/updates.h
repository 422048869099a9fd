/*
 * updates.h
 *	  Run history: pipeline_internal.updates and update_datasets.
 */
#ifndef PIPELINE_CATALOG_UPDATES_H
#define PIPELINE_CATALOG_UPDATES_H

#include "nodes/pg_list.h"
#include "utils/timestamp.h"

typedef struct PlnUpdate
{
	char	   *id;				/* uuid text */
	int64		pipeline_id;
	char	   *cause;			/* USER_ACTION, JOB_TASK, ... (dialect-reference §3.5) */
	bool		full_refresh;
	bool		validate_only;
	List	   *selection;		/* of char * */
	char	   *run_as;			/* name of the role that started it */
	TimestampTz started_at;
	bool		is_noop;		/* set by the caller before pln_update_end */
	bool		is_folded;		/* set by pln_update_end: counted in the row of the no-op before,
								 * no row of its own; its events are not wanted */
} PlnUpdate;

/* One dataset's outcome in one update. */
typedef struct PlnOutcome
{
	int64		dataset_id;
	char	   *dataset_name;	/* display name */
	char	   *flow_name;
	const char *state;			/* COMPLETED, FAILED, SKIPPED, EXCLUDED, CANCELED */
	const char *refresh_type;	/* NO_OP, APPEND, FULL_RECOMPUTE, ... NULL unless COMPLETED */
	char	   *refresh_reason; /* "first fill", NULL */
	int64		rows_out;
	int64		rows_dropped;
	int64		rows_quarantined;
	int64		rows_replayed;	/* from quarantine, only in replay_quarantine() */
	int64		rows_upserted;	/* AUTO CDC flows: instead of rows_out in the event log */
	int64		rows_deleted;
	int64		bytes_out;		/* 0 = not known */
	int64		files;
	double		elapsed_ms;
	char	   *sqlstate;		/* FAILED only */
	char	   *message;
	char	   *detail;
	char	   *hint;
	char	   *constraint;
	List	   *quality;		/* of PlnQualityCount */
} PlnOutcome;

typedef struct PlnQualityCount
{
	char	   *dataset;		/* display name of a temporary view; NULL = the flow's dataset */
	char	   *name;
	const char *action;			/* WARN, DROP, QUARANTINE, FAIL */
	int64		passed;
	int64		failed;
} PlnQualityCount;

extern PlnUpdate *pln_update_start(int64 pipeline_id, const char *cause, bool full_refresh,
								   bool validate_only, List *selection);
extern void pln_update_set_state(PlnUpdate *update, const char *state); /* INITIALIZING, ... */

/* COMPLETED, FAILED or CANCELED.  Successive no-op updates are folded into one row with
 * noop_runs and last_at (interface §3.15). */
extern void pln_update_end(PlnUpdate *update, const char *state, const char *message);
extern void pln_update_outcome(PlnUpdate *update, const PlnOutcome *outcome);

/* failed_only: datasets whose last update, EXCLUDED ones left aside, did not COMPLETE: a List
 * of int64 *. */
extern List *pln_update_last_failed(int64 pipeline_id);

/* Close updates of this pipeline whose backend is gone: FAILED "server process lost"
 * (interface §3.28), with the event.  The caller holds the pipeline lock and has no open update
 * of its own yet. */
extern void pln_updates_close_orphans(int64 pipeline_id);

/* First six characters, for messages. */
extern char *pln_update_short_id(const PlnUpdate *update);

#endif							/* PIPELINE_CATALOG_UPDATES_H */

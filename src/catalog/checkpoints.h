/*
 * checkpoints.h
 *	  Positions of flows in their sources, and the ledger of files.
 *
 * A frontier says what of a relation is consumed (correctness A1): incarnation, snapshot,
 * own transaction, own sequence.  It is written in the transaction that writes the rows.
 */
#ifndef PIPELINE_CATALOG_CHECKPOINTS_H
#define PIPELINE_CATALOG_CHECKPOINTS_H

#include "nodes/pg_list.h"
#include "utils/timestamp.h"

typedef struct PlnFrontier
{
	int32		incarnation;	/* correctness A3 */
	char	   *snapshot;		/* pg_snapshot in text form */
	uint64		own_xid;		/* top-level xid8 of the writer, 0 = it had none */
	int64		own_seq;		/* headers of own_xid up to here are consumed */
	char	   *fingerprint;	/* of capture (correctness A6); NULL when not captured */
	TimestampTz evaluated_at;	/* now() of the refresh, for time-dependent views (A12) */
} PlnFrontier;

/* NULL when the flow has not read this source yet.  ordinal tells apart two streaming
 * reads of one relation in one query. */
extern PlnFrontier *pln_checkpoint_get(int64 flow_id, Oid relid, int ordinal);
extern void pln_checkpoint_set(int64 flow_id, Oid relid, int ordinal, const PlnFrontier *frontier);
extern void pln_checkpoints_delete(int64 flow_id);

/* --- file sources --- */

typedef struct PlnLedgerEntry
{
	char	   *path;
	int64		size;
	TimestampTz mtime;
	const char *state;			/* "DONE", "SKIPPED", "FAILED" */
	int64		rows;
	int64		malformed;
	int64		rescued;
	char	   *error;
} PlnLedgerEntry;

/* Frozen schema of a flow's file source as JSON, NULL before the first run. */
extern char *pln_file_source_schema(int64 flow_id, int ordinal);
/* The same, but only while path and options are what they were: other options, other columns. */
extern char *pln_file_source_frozen(int64 flow_id, int ordinal, const char *path,
									const char *options_json);
extern void pln_file_source_save(int64 flow_id, int ordinal, const char *path,
								 const char *options_json, const char *schema_json);

/*
 * Which of the listed files (parallel lists: char * path, int64 * size, TimestampTz * mtime)
 * are not DONE or SKIPPED yet: a List of int indexes.  With allow_overwrites a DONE file
 * whose size or mtime differs counts as new.  One query whatever the number of files.
 */
extern List *pln_ledger_new_files(int64 flow_id, int ordinal, int nfiles, char **paths,
								  int64 *sizes, TimestampTz *mtimes, bool allow_overwrites);
extern void pln_ledger_record(int64 flow_id, int ordinal, const char *update_id, List *entries);
extern int64 pln_ledger_count(int64 flow_id, int ordinal);

#endif							/* PIPELINE_CATALOG_CHECKPOINTS_H */

/*
 * source.h
 *	  What changed in relation R between two frontiers (architecture §4, correctness A1-A9,
 *	  A14-A16, B7, B8).
 *
 * Two providers behind one interface: the append log of our own streaming tables, and the
 * change log that capture triggers fill for any other table.  Both keep one header row per
 * statement in pipeline_internal.log_headers: (source, incarnation, top xid8, seq) and what
 * it covers.  Visible now is decided by MVCC on the header, consumed by the frontier.
 */
#ifndef PIPELINE_SOURCE_SOURCE_H
#define PIPELINE_SOURCE_SOURCE_H

#include "nodes/bitmapset.h"
#include "nodes/parsenodes.h"

#include "base/errors.h"
#include "catalog/checkpoints.h"

/* What a reader needs of a source. */
typedef enum PlnCaptureLevel
{
	PLN_CAPTURE_NONE,
	PLN_CAPTURE_MARK,			/* headers only: did anything change? */
	PLN_CAPTURE_STREAM,			/* rows inserted; old images within the transaction; marks */
	PLN_CAPTURE_SIGNED			/* every row with +1/-1 */
} PlnCaptureLevel;

typedef enum PlnChangeKind
{
	PLN_CHANGE_NONE,
	PLN_CHANGE_APPEND,			/* new rows only */
	PLN_CHANGE_GENERAL,			/* updates or deletes are among them */
	PLN_CHANGE_EVERYTHING		/* truncated, rewritten, capture was off, restored, ... */
} PlnChangeKind;

/* Options of STREAM t WITH (...). */
typedef struct PlnStreamOptions
{
	bool		skip_change_commits;
	bool		only_inserts;
	bool		starting_latest;	/* startingVersion = latest: first read consumes nothing */
} PlnStreamOptions;

typedef struct PlnChanges
{
	Oid			relid;
	PlnChangeKind kind;
	int64		rows;			/* new rows to deliver, exact for APPEND */
	List	   *reasons;		/* of PlnReason, for EVERYTHING and GENERAL */
	char	   *offence;		/* for a stream: "updated in transaction 731 at 2026-..." or NULL */
	PlnFrontier *frontier;		/* consumed when this is committed */
	void	   *provider;		/* private: headers, generations */
} PlnChanges;

/* ---- capture ---- */

/*
 * Make sure that R is captured at this level for these attributes (attnums of R; NULL = all).
 * Rights: the given role is a member of R's owner, or has TRIGGER on R, or was allowed by
 * pipeline.allow_capture (correctness A9); otherwise returns a reason CAPTURE_NOT_ALLOWED.
 * Unlogged, temporary, foreign and non-heap relations, views, partitions, columns of a row
 * type: a reason.  NULL = captured.  Creates triggers and logs as the extension owner, under
 * pipeline.source_lock_timeout with five tries (55P03 naming blockers), announced by a NOTICE;
 * *created says that something new was made, so that the caller can commit before the first
 * fill (B7).  Streaming tables of ours need no rights: their changes by hand are captured.
 */
extern PlnReason *pln_capture_ensure(Oid relid, PlnCaptureLevel level, Bitmapset *attnums,
									 Oid role, bool *created);

/* A relation that we write ourselves (streaming table, materialized view): register it, put
 * the DML guard on streaming tables (interface §3.8). */
extern void pln_source_register_own(Oid relid, bool is_streaming_table);

/* Is this one of our trigger functions? Our own writer does not fire such triggers. */
extern bool pln_is_own_trigger(Oid tgfoid);

/* The relation is gone or no reader is left: drop triggers, logs, headers. */
extern void pln_source_forget(Oid relid);
extern void pln_source_forget_if_unread(Oid relid);

/* DDL on a relation has ended; created: it was CREATE TABLE.  For the event trigger. */
extern void pln_source_relation_altered(Oid relid, bool created);

/* Retention: remove headers that every reader has passed, start a new log when the current one
 * has grown, drop drained ones.  In a transaction of its own, after an update committed (C3). */
extern void pln_source_trim(Oid relid);

/* Is this database a restored or cloned one whose pipelines have not run in it yet (A3)? */
extern bool pln_source_is_restored(void);

/* ---- writing side, for relations of our own ---- */

/* Record an append by us: List of PlnAppended (write/table_writer.h is below flow; passed as
 * plain fields here to keep the levels).  ranges: flat int list first,last,first,last. */
extern void pln_append_log_record(Oid relid, TransactionId row_xid, int64 rows, List *ranges);

/* Content was replaced (full refresh, swap): readers see "everything changed". */
extern void pln_source_record_everything(Oid relid, const char *reason_code);

/* ---- reading side ---- */

/*
 * What changed since the frontier (NULL = never read: kind EVERYTHING, reason
 * CHANGE_SET_MISSING), under the active snapshot; the caller holds at least AccessShareLock on
 * R and has taken the snapshot after it (A5).  It must not have R open (relcache reference):
 * such references tell statements on R that are still running in this session (A16, 55006).
 * Compares the capture fingerprint first (A6); 40001 when it is newer than the snapshot of a
 * REPEATABLE READ transaction.  options NULL: the reader is a view.
 *
 * A stream whose changes have an offence must fail, and so must one that gets EVERYTHING.
 * GENERAL without an offence: the options allow it, the frontier must be stored even when rows
 * is 0.
 */
extern PlnChanges *pln_source_changes(Oid relid, const PlnFrontier *frontier,
									  const PlnStreamOptions *options);

/*
 * The same for a reader that needs only these attributes (plain numbers of R; NULL or with 0
 * in it: all that are captured now).  Rows that were logged before a column was captured
 * cannot serve a reader of that column: EVERYTHING.
 */
extern PlnChanges *pln_source_changes_of(Oid relid, const PlnFrontier *frontier,
										 Bitmapset *attnums, const PlnStreamOptions *options);

/*
 * The rows to deliver, as a SELECT whose target list has one entry per attribute of R in order
 * (NULL constants for dropped or uncaptured ones), to stand as a subquery RTE in the place of R:
 * Var numbers of R keep their meaning.  Only for kind APPEND, or GENERAL with options that
 * allow it.  Rights on R are the caller's to check: the subquery reads as the extension owner.
 */
extern Query *pln_source_delta_query(PlnChanges *changes);

/* Position "everything visible to the active snapshot is consumed". */
extern PlnFrontier *pln_source_frontier_now(Oid relid);

/* May a stream read it at all?  NULL = yes; else why not (view, foreign table, matview, ...). */
extern PlnReason *pln_source_streamable(Oid relid);

/*
 * Raise 40001 when the relation (inherit: or a child) was altered, rewritten or truncated after
 * the snapshot of a REPEATABLE READ transaction was taken (correctness A5).
 */
extern void pln_source_check_version(Oid relid, bool inherit);

#endif							/* PIPELINE_SOURCE_SOURCE_H */

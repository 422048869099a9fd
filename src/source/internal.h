/*
 * internal.h
 *	  What the files of this folder share; nobody else includes it.
 */
#ifndef PIPELINE_SOURCE_INTERNAL_H
#define PIPELINE_SOURCE_INTERNAL_H

#include "access/attnum.h"
#include "access/tupdesc.h"
#include "lib/stringinfo.h"
#include "storage/block.h"
#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

#include "source/source.h"

/* ---- rows.c: our catalog rows, read without SPI so that triggers of anybody may ---- */

typedef enum PlnSourceKind
{
	PLN_SOURCE_OWN_TABLE,		/* streaming table: append log, and capture of foreign DML */
	PLN_SOURCE_OWN_MATVIEW,		/* materialized view that we write: headers only */
	PLN_SOURCE_CAPTURED			/* somebody's table under capture triggers */
} PlnSourceKind;

typedef struct PlnSource
{
	int64		id;
	Oid			relid;
	PlnSourceKind kind;
	PlnCaptureLevel level;
	int32		generation;		/* of the log that is written now; 0 = none */
	bool		active;
} PlnSource;

/* One generation of a change log: column i (after the fixed ones) holds attribute attnums[i] */
typedef struct PlnLog
{
	int64		source_id;
	int32		generation;
	Oid			relid;
	int			ncols;
	AttrNumber *attnums;		/* of the source; 0 = that column is not found any more */
} PlnLog;

extern Oid	pln_source_catalog(const char *name);	/* in pipeline_internal; may be InvalidOid */
extern PlnSource *pln_source_find(Oid relid);	/* NULL when unknown; any state */
extern PlnSource *pln_source_owning(Oid relid); /* itself or an ancestor of it */
extern List *pln_source_logs(const PlnSource *source);	/* of PlnLog, by generation */
extern PlnLog *pln_source_log(const PlnSource *source, int32 generation);	/* or NULL */
extern List *pln_source_relations(Oid relid);	/* itself and all that inherit from it */
extern bool pln_source_is_child(Oid relid); /* partition or inheritance child */
extern AttrNumber pln_source_natts(Oid relid);	/* dropped ones included */
extern List *pln_source_parents(Oid relid); /* direct parents */
extern const char *pln_source_level_name(PlnCaptureLevel level);

/* ---- headers.c ---- */

#define PLN_HEADER_APPEND		'a'
#define PLN_HEADER_UPDATE		'u'
#define PLN_HEADER_DELETE		'd'
#define PLN_HEADER_TRUNCATE		't'
#define PLN_HEADER_EVERYTHING	'x'
#define PLN_HEADER_ERASE		'e'
#define PLN_HEADER_MARK			'm'
#define PLN_HEADER_SPARE		's'	/* an altered relation that capture missed nothing of */

typedef struct PlnHeader
{
	int64		source_id;
	int32		incarnation;
	uint64		xid;			/* of the top transaction, never of a subtransaction */
	int64		seq;
	char		kind;
	int32		generation;		/* of the log with the rows; 0 = rows are not in a log */
	AttrNumber	natts;			/* of the source when the rows were logged */
	Oid			heap;			/* whose blocks these are: a log, or the relation or leaf itself */
	int64		first_block;	/* -1 = unknown */
	int64		last_block;
	TransactionId row_xid;		/* xmin of appended rows; invalid when not an append of ours */
	int64		rows;
	Oid			relfilenode;	/* of heap when written */
	TimestampTz at;
	char	   *note;			/* why, for EVERYTHING; NULL */
} PlnHeader;

extern int32 pln_incarnation(void);
extern int64 pln_header_next_seq(void);
extern int64 pln_header_last_seq(void);
extern uint64 pln_current_top_xid(void);	/* 0 = none assigned */

/* Set source_id, kind and what it covers; identity, seq (unless > 0) and time are filled in. */
extern void pln_header_init(PlnHeader *header, int64 source_id, char kind);
extern void pln_header_write(PlnHeader *header);

/* Headers of a source that the active snapshot sees and the frontier does not cover, in
 * (incarnation, xid, seq) order.  frontier NULL: all. */
extern List *pln_headers_pending(int64 source_id, const PlnFrontier *frontier);

/* Greatest seq that the active snapshot sees of our own transaction's headers. */
extern int64 pln_headers_own_seq(int64 source_id, uint64 own_xid);

/* ---- open.c ---- */

/* Fixed leading columns of a log. */
#define PLN_LOG_XID			1
#define PLN_LOG_SEQ			2
#define PLN_LOG_ORD			3
#define PLN_LOG_OP			4
#define PLN_LOG_INCARNATION	5
#define PLN_LOG_FIXED		5

/* op: the sign is the weight; 2 = by UPDATE.  Both images of one updated row share ord. */
#define PLN_OP_INSERTED		1
#define PLN_OP_UPDATED_NEW	2
#define PLN_OP_DELETED		(-1)
#define PLN_OP_UPDATED_OLD	(-2)

/*
 * Open a change log after checking its shape (correctness A8).  NULL with *problem set when it
 * is gone or not as we made it.  desc and attnums: where its columns come from.
 */
extern Relation pln_log_open(Oid log, LOCKMODE lockmode, TupleDesc desc, int ncols,
							 const AttrNumber *attnums, const char **problem);

/* Our own catalog tables: raises 55000 when somebody altered them. */
extern Relation pln_headers_open(LOCKMODE lockmode);

/* ---- fingerprint.c ---- */

/* without: a relation to leave out, or InvalidOid */
extern char *pln_fingerprint_make(const PlnSource *source, Oid without);

/*
 * NULL = nothing happened that capture could have missed.  spares: notes of SPARE headers since,
 * in order.
 */
extern PlnReason *pln_fingerprint_compare(const char *before, const char *now, List *spares);
extern bool pln_fingerprint_policies_differ(const char *before, const char *now);
extern char *pln_fingerprint_spare(const char *before, const char *after);

/* ---- net.c: the net effect of transactions that insert and also update or delete ---- */

typedef struct PlnNetTransaction
{
	uint64		xid;
	bool		residual;		/* an older row was updated or deleted */
} PlnNetTransaction;

/* A row of a log that cancelled within its transaction. */
typedef struct PlnDeadRow
{
	uint64		xid;
	ItemPointerData tid;
} PlnDeadRow;

/*
 * Walk the rows of the given transactions in this log (blocks first..last, first = -1: all of it).
 * Sets residual and returns the rows that cancelled, a List of PlnDeadRow.  With only_inserts
 * also new images of rows that no INSERT of the transaction made.
 */
extern List *pln_net_effect(Relation log, int16 incarnation, int64 first_block, int64 last_block,
							uint64 own_xid, int64 own_seq, int n, PlnNetTransaction *xacts,
							bool only_inserts);

/* ---- ranges and SQL of one branch of the delta: append_log.c, change_log.c ---- */

#define PLN_MAX_RANGES 8

typedef struct PlnRange
{
	int64		first;
	int64		last;
} PlnRange;

/* What to read from one heap. */
typedef struct PlnPart
{
	Oid			heap;
	int32		generation;		/* 0 = the relation itself or a leaf of it */
	int32		incarnation;	/* of the rows, for a log */
	AttrNumber	natts;			/* fewest attributes that the source had when rows were logged */
	bool		everywhere;		/* no block range is known */
	bool		old_images;		/* deliver images with negative op, see append_log.c */
	List	   *ranges;			/* of PlnRange, merged */
	int			nxids;
	int			maxxids;
	uint64	   *xids;			/* top xids (log) or row xids (heap) */
	List	   *skip_seqs;		/* of int64 *: statements of own_xid delivered from the heap */
	List	   *dead;			/* of PlnDeadRow */
	uint64		own_xid;		/* with own_seq: what of it was consumed before */
	int64		own_seq;
	int64		rows;			/* as the headers say */
} PlnPart;

extern void pln_part_add_range(PlnPart *part, const PlnHeader *header);
extern void pln_part_add_xid(PlnPart *part, uint64 xid);
extern void pln_part_merge_ranges(PlnPart *part);

extern int64 pln_append_log_count(const PlnPart *part); /* rows that are there now */
extern void pln_append_log_sql(StringInfo sql, Oid relid, const PlnPart *part);
extern void pln_change_log_sql(StringInfo sql, Oid relid, const PlnPart *part, const PlnLog *log);

/*
 * What rows from before a column was added hold in it, as an SQL expression; NULL when that is not
 * known any more.
 */
extern char *pln_missing_value(Relation rel, AttrNumber attnum);
extern void pln_delta_where_ranges(StringInfo sql, const PlnPart *part, int range);

/* ---- ensure.c, capture.c ---- */

#define PLN_TRIGGER_INSERT		"_pipeline_capture_insert"
#define PLN_TRIGGER_UPDATE		"_pipeline_capture_update"
#define PLN_TRIGGER_DELETE		"_pipeline_capture_delete"
#define PLN_TRIGGER_TRUNCATE	"_pipeline_capture_truncate"
#define PLN_TRIGGER_GUARD		"_pipeline_guard"

extern void pln_source_invalidate(Oid relid);	/* caches of all backends, at commit */
extern void pln_log_create(int64 source_id, int32 generation, Oid relid, Bitmapset *attnums);
extern void pln_capture_make_triggers(List *relids);
extern bool pln_capture_has_triggers(Oid relid);	/* any of ours, in whatever state */
extern int32 pln_log_next_generation(int64 source_id);
extern PlnReason *pln_capture_choose_attributes(Oid relid, Bitmapset *asked, Bitmapset **chosen);
extern void pln_capture_drop_triggers(Oid relid);	/* when their locks are free */

#endif							/* PIPELINE_SOURCE_INTERNAL_H */

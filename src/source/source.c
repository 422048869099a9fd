/*
 * source.c
 *	  What changed since a frontier: pending headers, what they mean for the reader, and the
 *	  query that delivers the rows.
 *
 * Everything here runs under the caller's active snapshot: headers, log rows and heap rows
 * are one consistent state with the frontier that is handed back.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parser.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "source/internal.h"

/* xmin of a tuple is 32 bit: older headers are not matched (correctness C1). */
#define MAX_XID_AGE ((uint64) 1 << 31)

/* One transaction with pending headers. */
typedef struct Xact
{
	int32		incarnation;
	uint64		xid;
	List	   *headers;		/* of PlnHeader, by seq */
	bool		inserted;		/* has log rows of inserts */
	bool		residual;		/* changed rows that were there before */
	bool		needs_net;		/* only its rows can tell */
	int64		truncate_seq;	/* > 0: rows logged before are gone */
	const char *what;			/* of its first update, delete or truncate */
	TimestampTz at;
} Xact;

/* The private part of PlnChanges. */
typedef struct Delta
{
	PlnSource  *source;
	List	   *parts;			/* of PlnPart */
} Delta;

/* State of one pln_source_changes(). */
typedef struct Reading
{
	PlnSource  *source;
	const PlnFrontier *frontier;
	const PlnStreamOptions *options;	/* NULL: a view */
	Bitmapset  *attnums;		/* that the reader needs; NULL = all captured */
	PlnChanges *changes;
	List	   *xacts;			/* of Xact */
	List	   *parts;			/* of PlnPart */
	List	   *logs;			/* of PlnLog */
	bool		check_counts;	/* appended rows may be gone from the heap */
	int64		old_images;		/* logged; -1 = some were not */
} Reading;

static PlnReason *
make_reason(const char *code, char *text)
{
	PlnReason  *reason = palloc0(sizeof(PlnReason));

	reason->code = code;
	reason->text = text;
	return reason;
}

static void
everything(PlnChanges *changes, const char *code, char *text)
{
	changes->kind = PLN_CHANGE_EVERYTHING;
	changes->reasons = lappend(changes->reasons, make_reason(code, text));
}

/* ---- A16: a statement on R that is still running has not logged its rows yet ---- */

static void
check_not_in_use(Oid relid)
{
	ListCell   *lc;

	foreach(lc, pln_source_relations(relid))
	{
		Relation	rel = RelationIdGetRelation(lfirst_oid(lc));
		bool		busy;

		if (rel == NULL)
			continue;

		/* Our own reference is one; a running query that only reads is harmless. */
		busy = rel->rd_refcnt > (rel->rd_isnailed ? 2 : 1) &&
			CheckRelationLockedByMe(rel, RowExclusiveLock, true);
		RelationClose(rel);
		if (busy)
			ereport(ERROR,
					(errcode(PLN_ERR_BUSY),
					 errmsg("cannot read changes of \"%s\" while a statement on it is running in "
							"this session", pln_relation_name(lfirst_oid(lc))),
					 errhint("Run the update after the statement has ended.")));
	}
}

/* ---- grouping ---- */

static void
add_header(Reading *r, PlnHeader *header)
{
	Xact	   *xact = r->xacts == NIL ? NULL : llast(r->xacts);

	if (xact == NULL || xact->incarnation != header->incarnation || xact->xid != header->xid)
	{
		xact = palloc0(sizeof(Xact));
		xact->incarnation = header->incarnation;
		xact->xid = header->xid;
		r->xacts = lappend(r->xacts, xact);
	}
	xact->headers = lappend(xact->headers, header);
}

static const char *
kind_verb(char kind)
{
	switch (kind)
	{
		case PLN_HEADER_UPDATE:
			return "updated";
		case PLN_HEADER_DELETE:
			return "deleted";
		default:
			return "truncated";
	}
}

static bool
is_append_of_ours(const PlnHeader *header)
{
	return header->kind == PLN_HEADER_APPEND && header->generation == 0 &&
		TransactionIdIsValid(header->row_xid);
}

/* Can the rows of our own append still be found by their xmin? */
static bool
check_append(Reading *r, const PlnHeader *header)
{
	uint64		next = U64FromFullTransactionId(ReadNextFullTransactionId());

	if (header->incarnation != pln_incarnation())
		everything(r->changes, "CHANGE_SET_MISSING",
				   pstrdup("rows that were not read yet were restored from a dump"));
	else if (next - header->xid >= MAX_XID_AGE)
		everything(r->changes, "CHANGE_SET_MISSING",
				   pstrdup("rows that were not read yet are more than 2^31 transactions old"));
	return r->changes->kind != PLN_CHANGE_EVERYTHING;
}

/* A statement that may have touched older rows. */
static void
note_change(Reading *r, Xact *xact, const PlnHeader *header)
{
	if (xact->what == NULL)
	{
		xact->what = kind_verb(header->kind);
		xact->at = header->at;
	}
	if (header->kind == PLN_HEADER_TRUNCATE)
		xact->truncate_seq = header->seq;
	if (header->generation == 0 || !xact->inserted)
		xact->residual = true;
	else
		xact->needs_net = true;
	if (header->generation > 0 && r->options != NULL && r->options->only_inserts)
		xact->needs_net = true;
	r->check_counts = true;
	if (header->generation == 0)
		r->old_images = -1;
	else if (r->old_images >= 0)
		r->old_images += header->rows;
}

/* false: everything changed */
static bool
classify_header(Reading *r, Xact *xact, const PlnHeader *header)
{
	switch (header->kind)
	{
		case PLN_HEADER_APPEND:
			if (is_append_of_ours(header))
				return check_append(r, header);
			if (header->generation > 0)
				xact->inserted = true;
			else if (r->options != NULL)
				everything(r->changes, "CHANGE_SET_MISSING",
						   pstrdup("its rows were not recorded before"));
			else
				xact->residual = true;	/* for a view: only that it changed is known */
			break;
		case PLN_HEADER_UPDATE:
		case PLN_HEADER_DELETE:
			note_change(r, xact, header);
			break;
		case PLN_HEADER_TRUNCATE:
			note_change(r, xact, header);
			if (r->options == NULL)
				everything(r->changes, "DATA_HAS_CHANGED", pstrdup("it was truncated"));
			break;
		case PLN_HEADER_ERASE:
			if (r->options == NULL)
				xact->residual = true;
			break;
		case PLN_HEADER_EVERYTHING:
			everything(r->changes, "DATA_HAS_CHANGED",
					   header->note ? header->note : pstrdup("its content was replaced"));
			break;
		default:
			if (r->options == NULL)
				xact->residual = true;
			else
				everything(r->changes, "CHANGE_SET_MISSING",
						   pstrdup("its rows were not recorded before"));
			break;
	}
	return r->changes->kind != PLN_CHANGE_EVERYTHING;
}

/* ---- logs ---- */

static PlnLog *
find_log(Reading *r, int32 generation)
{
	ListCell   *lc;

	foreach(lc, r->logs)
	{
		PlnLog	   *log = lfirst(lc);

		if (log->generation == generation)
			return log;
	}
	return NULL;
}

/* Raises 55000 when the log is not as we made it. */
static Relation
open_log(Reading *r, const PlnLog *log)
{
	Relation	rel = relation_open(r->source->relid, NoLock);
	const char *problem;
	Relation	log_rel = pln_log_open(log->relid, AccessShareLock, RelationGetDescr(rel),
									   log->ncols, log->attnums, &problem);

	relation_close(rel, NoLock);
	if (log_rel == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("change log \"%s\" of \"%s\" cannot be read: it %s",
						pln_relation_name(log->relid), pln_relation_name(r->source->relid),
						problem),
				 errhint("SELECT pipeline.disable_capture(%s);  then refresh its readers fully.",
						 pln_quote_literal(pln_relation_name(r->source->relid)))));
	return log_rel;
}

/* Has the generation every column that the reader needs? */
static bool
log_is_wide_enough(Reading *r, const PlnLog *log)
{
	PlnLog	   *current = find_log(r, r->source->generation);
	Bitmapset  *have = NULL;
	Bitmapset  *need = r->attnums;
	int			i;

	for (i = 0; i < log->ncols; i++)
		have = bms_add_member(have, log->attnums[i]);
	if (need == NULL && current != NULL)
	{
		for (i = 0; i < current->ncols; i++)
			need = bms_add_member(need, current->attnums[i]);
	}
	return bms_is_subset(need, have);
}

static PlnPart *
find_part(Reading *r, Oid heap, int32 generation, int32 incarnation)
{
	PlnPart    *part;
	ListCell   *lc;

	foreach(lc, r->parts)
	{
		part = lfirst(lc);
		if (part->heap == heap && part->generation == generation &&
			(generation == 0 || part->incarnation == incarnation))
			return part;
	}
	part = palloc0(sizeof(PlnPart));
	part->heap = heap;
	part->generation = generation;
	part->incarnation = incarnation;
	if (generation > 0 && incarnation == r->frontier->incarnation)
	{
		part->own_xid = r->frontier->own_xid;
		part->own_seq = r->frontier->own_seq;
	}
	r->parts = lappend(r->parts, part);
	return part;
}

static Oid
current_relfilenode(Oid relid)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);
	Oid			relfilenode;

	if (rel == NULL)
		return InvalidOid;
	relfilenode = rel->rd_node.relNode;
	relation_close(rel, NoLock);
	return relfilenode;
}

/* ---- net effect ---- */

/* Transactions of one log whose rows have to tell. */
static void
compute_net(Reading *r, const PlnLog *log, int32 incarnation)
{
	PlnNetTransaction *net = palloc0(sizeof(PlnNetTransaction) * list_length(r->xacts));
	PlnPart    *part = find_part(r, log->relid, log->generation, incarnation);
	int64		first = PG_INT64_MAX;
	int64		last = -1;
	bool		everywhere = incarnation != pln_incarnation();
	Relation	log_rel;
	int			n = 0;
	ListCell   *lc;
	ListCell   *lh;

	log_rel = open_log(r, log);
	foreach(lc, r->xacts)
	{
		Xact	   *xact = lfirst(lc);
		bool		here = false;

		if (!xact->needs_net || xact->incarnation != incarnation)
			continue;
		foreach(lh, xact->headers)
		{
			PlnHeader  *header = lfirst(lh);

			if (header->generation != log->generation)
				continue;
			here = true;
			everywhere = everywhere || header->first_block < 0 ||
				header->relfilenode != log_rel->rd_node.relNode;
			first = Min(first, header->first_block);
			last = Max(last, header->last_block);
		}
		if (here)
			net[n++].xid = xact->xid;
	}
	if (n > 0)
		part->dead = pln_net_effect(log_rel, (int16) incarnation, everywhere ? -1 : first, last,
									part->own_xid, part->own_seq, n, net,
									r->options != NULL && r->options->only_inserts);
	foreach(lc, r->xacts)
	{
		Xact	   *xact = lfirst(lc);
		int			i;

		for (i = 0; i < n && xact->needs_net && xact->incarnation == incarnation; i++)
		{
			if (net[i].xid == xact->xid && net[i].residual)
				xact->residual = true;
		}
	}
	relation_close(log_rel, NoLock);
}

static void
compute_all_net(Reading *r)
{
	List	   *done = NIL;
	ListCell   *lc;
	ListCell   *lh;

	foreach(lc, r->xacts)
	{
		Xact	   *xact = lfirst(lc);

		if (!xact->needs_net)
			continue;
		foreach(lh, xact->headers)
		{
			PlnHeader  *header = lfirst(lh);
			PlnPart    *part;
			PlnLog	   *log = find_log(r, header->generation);

			if (log == NULL)
				continue;
			part = find_part(r, log->relid, log->generation, xact->incarnation);
			if (list_member_ptr(done, part))
				continue;
			done = lappend(done, part);
			compute_net(r, log, xact->incarnation);
		}
	}
}

/* ---- parts ---- */

static bool
row_xid_is_shared(const Xact *xact, const PlnHeader *header)
{
	ListCell   *lc;

	foreach(lc, xact->headers)
	{
		PlnHeader  *other = lfirst(lc);

		if (is_append_of_ours(other) && other->row_xid == header->row_xid)
			return true;
	}
	return false;
}

static void
add_append(Reading *r, const PlnHeader *header)
{
	PlnPart    *part = find_part(r, header->heap, 0, 0);

	pln_part_add_xid(part, header->row_xid);
	if (header->relfilenode != current_relfilenode(header->heap))
	{
		part->everywhere = true;
		r->check_counts = true;
	}
	pln_part_add_range(part, header);
	part->rows += header->rows;
}

/* false: everything changed */
static bool
add_logged(Reading *r, const Xact *xact, PlnHeader *header)
{
	PlnLog	   *log = find_log(r, header->generation);
	PlnPart    *part;

	if (log == NULL || !log_is_wide_enough(r, log))
	{
		everything(r->changes, "CHANGE_SET_MISSING",
				   pstrdup(log == NULL ? "its change log is gone" :
						   "a column that is read was not captured yet"));
		return false;
	}
	part = find_part(r, log->relid, log->generation, header->incarnation);
	if (part->nxids == 0)
		relation_close(open_log(r, log), NoLock);	/* the lock stays */

	/* Rows by hand and an append of ours under one xid: the heap shows both. */
	if (header->kind == PLN_HEADER_APPEND && TransactionIdIsValid(header->row_xid) &&
		row_xid_is_shared(xact, header))
	{
		PlnPart    *heap = find_part(r, r->source->relid, 0, 0);

		heap->everywhere = true;
		heap->rows += header->rows;
		part->skip_seqs = lappend(part->skip_seqs, header);
		r->check_counts = true;
		return true;
	}
	if (header->seq < xact->truncate_seq)
	{
		part->skip_seqs = lappend(part->skip_seqs, header);
		return true;
	}
	if (header->incarnation != pln_incarnation() ||
		header->relfilenode != current_relfilenode(log->relid))
		part->everywhere = true;
	pln_part_add_xid(part, header->xid);
	pln_part_add_range(part, header);
	part->rows += header->rows;
	return true;
}

static void
build_parts(Reading *r)
{
	bool		skip_changed = r->options != NULL && !r->options->only_inserts;
	ListCell   *lc;
	ListCell   *lh;

	foreach(lc, r->xacts)
	{
		Xact	   *xact = lfirst(lc);

		if (skip_changed && xact->residual)
			continue;
		foreach(lh, xact->headers)
		{
			PlnHeader  *header = lfirst(lh);

			CHECK_FOR_INTERRUPTS();
			if (is_append_of_ours(header))
				add_append(r, header);
			else if (header->generation > 0 &&
					 (header->kind == PLN_HEADER_APPEND || header->kind == PLN_HEADER_UPDATE) &&
					 !add_logged(r, xact, header))
				return;
		}
	}
}

/*
 * Rows that we appended may have been deleted or updated since: their old images are in the
 * change log of the deleting statement, and are delivered from there when there is no doubt
 * about which they are.
 */
static void
recover_deleted(Reading *r, int64 missing)
{
	List	   *extra = NIL;
	ListCell   *lc;
	ListCell   *lh;

	if (missing < 0 || r->old_images != missing)
	{
		everything(r->changes, "DATA_HAS_CHANGED",
				   pstrdup("rows that were not read yet were changed or moved meanwhile"));
		return;
	}
	foreach(lc, r->xacts)
	{
		Xact	   *xact = lfirst(lc);

		foreach(lh, xact->headers)
		{
			PlnHeader  *header = lfirst(lh);
			PlnLog	   *log = find_log(r, header->generation);
			PlnPart    *part = NULL;

			if (header->kind != PLN_HEADER_UPDATE && header->kind != PLN_HEADER_DELETE)
				continue;
			if (log == NULL || !log_is_wide_enough(r, log))
			{
				everything(r->changes, "CHANGE_SET_MISSING", pstrdup("its change log is gone"));
				return;
			}
			if (extra != NIL && ((PlnPart *) llast(extra))->heap == log->relid &&
				((PlnPart *) llast(extra))->incarnation == header->incarnation)
				part = llast(extra);
			else
			{
				part = palloc0(sizeof(PlnPart));
				part->heap = log->relid;
				part->generation = log->generation;
				part->incarnation = header->incarnation;
				part->everywhere = part->old_images = true;
				extra = lappend(extra, part);
				relation_close(open_log(r, log), NoLock);
			}
			pln_part_add_xid(part, header->xid);
			part->rows += header->rows;
		}
	}
	r->parts = list_concat(r->parts, extra);
}

static void
check_counts(Reading *r)
{
	int64		missing = 0;
	bool		any = false;
	ListCell   *lc;

	foreach(lc, r->parts)
	{
		PlnPart    *part = lfirst(lc);
		int64		found;

		if (part->generation > 0)
			continue;
		any = true;
		if (!OidIsValid(current_relfilenode(part->heap)))
		{
			everything(r->changes, "PARTITION_SCHEMA_CHANGED",
					   pstrdup("a partition with rows that were not read yet is gone"));
			return;
		}
		found = pln_append_log_count(part);
		missing += part->rows - found;
		part->rows = found;
	}
	if (any && missing != 0)
		recover_deleted(r, missing);
}

static void
finish_parts(Reading *r)
{
	ListCell   *lc;

	foreach(lc, r->parts)
	{
		PlnPart    *part = lfirst(lc);

		if (part->nxids == 0)
		{
			r->parts = foreach_delete_current(r->parts, lc);
			continue;
		}
		pln_part_merge_ranges(part);
		r->changes->rows += part->rows - (part->old_images ? 0 : list_length(part->dead));
	}
}

/* ---- what it means for the reader ---- */

static Xact *
first_residual(Reading *r)
{
	ListCell   *lc;

	foreach(lc, r->xacts)
	{
		Xact	   *xact = lfirst(lc);

		if (xact->residual)
			return xact;
	}
	return NULL;
}

static char *
describe_offence(const Xact *xact)
{
	return psprintf("%s in transaction " UINT64_FORMAT " at %s", xact->what ? xact->what : "changed",
					xact->xid, timestamptz_to_str(xact->at));
}

static void
evaluate(Reading *r)
{
	PlnChanges *changes = r->changes;
	bool		tolerant = r->options != NULL &&
		(r->options->skip_change_commits || r->options->only_inserts);
	Xact	   *residual = first_residual(r);

	r->logs = pln_source_logs(r->source);
	if (residual == NULL || tolerant)
		compute_all_net(r);
	residual = first_residual(r);
	changes->kind = residual == NULL ? PLN_CHANGE_APPEND : PLN_CHANGE_GENERAL;
	if (residual != NULL)
	{
		changes->reasons = lappend(changes->reasons,
								   make_reason("DATA_HAS_CHANGED",
											   psprintf("rows were %s", describe_offence(residual))));
		if (!tolerant)
		{
			if (r->options != NULL)
				changes->offence = describe_offence(residual);
			return;
		}
	}
	build_parts(r);
	if (changes->kind != PLN_CHANGE_EVERYTHING && r->check_counts)
		check_counts(r);
	if (changes->kind != PLN_CHANGE_EVERYTHING)
		finish_parts(r);
}

/* Is the frontier comparable at all?  false: everything changed. */
static bool
check_frontier(Reading *r, PlnChanges *changes)
{
	const PlnFrontier *frontier = r->frontier;
	PlnReason  *reason;

	if (frontier->incarnation > pln_incarnation())
	{
		everything(changes, "CHANGE_SET_MISSING",
				   pstrdup("the position was recorded in a later state of the database"));
		return false;
	}
	if (frontier->fingerprint == NULL)
	{
		everything(changes, "CHANGE_SET_MISSING",
				   pstrdup("its changes were not captured when it was read last"));
		return false;
	}
	if (r->source->kind == PLN_SOURCE_CAPTURED && pln_source_is_child(r->source->relid))
	{
		everything(changes, "PARTITION_SCHEMA_CHANGED",
				   pstrdup("it became a partition or child table"));
		return false;
	}

	/* Row versions and files of another incarnation say nothing (correctness A3). */
	if (frontier->incarnation != pln_incarnation())
		return true;
	reason = pln_fingerprint_compare(frontier->fingerprint, changes->frontier->fingerprint);
	if (reason != NULL)
	{
		changes->kind = PLN_CHANGE_EVERYTHING;
		changes->reasons = lappend(changes->reasons, reason);
		return false;
	}
	return true;
}

PlnChanges *
pln_source_changes(Oid relid, const PlnFrontier *frontier, const PlnStreamOptions *options)
{
	return pln_source_changes_of(relid, frontier, NULL, options);
}

PlnChanges *
pln_source_changes_of(Oid relid, const PlnFrontier *frontier, Bitmapset *attnums,
					  const PlnStreamOptions *options)
{
	PlnChanges *changes = palloc0(sizeof(PlnChanges));
	Delta	   *delta = palloc0(sizeof(Delta));
	Reading		r;
	ListCell   *lc;

	PLN_ENSURE(ActiveSnapshotSet());
	memset(&r, 0, sizeof(r));
	changes->relid = relid;
	changes->provider = delta;
	check_not_in_use(relid);
	changes->frontier = pln_source_frontier_now(relid);
	r.source = delta->source = pln_source_find(relid);
	r.frontier = frontier;
	r.options = options;
	r.attnums = bms_is_member(0, attnums) ? NULL : attnums;
	r.changes = changes;
	if (r.source == NULL || !r.source->active)
	{
		everything(changes, "CHANGE_SET_MISSING", pstrdup("its changes are not captured"));
		return changes;
	}
	if (frontier == NULL)
	{
		if (options == NULL || !options->starting_latest)
			everything(changes, "CHANGE_SET_MISSING", pstrdup("it was not read before"));
		return changes;
	}
	if (!check_frontier(&r, changes))
		return changes;

	foreach(lc, pln_headers_pending(r.source->id, frontier))
		add_header(&r, lfirst(lc));
	if (r.xacts == NIL)
		return changes;
	foreach(lc, r.xacts)
	{
		Xact	   *xact = lfirst(lc);
		ListCell   *lh;

		foreach(lh, xact->headers)
		{
			if (!classify_header(&r, xact, lfirst(lh)))
				return changes;
		}
	}
	evaluate(&r);
	delta->parts = r.parts;
	return changes;
}

/* ---- the query ---- */

/* Logs have no grants: their rows are read as the extension's owner. */
static bool
set_check_as_user(Node *node, Oid *owner)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, set_check_as_user, owner,
								 QTW_EXAMINE_RTES_BEFORE);
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		if (rte->rtekind == RTE_RELATION)
			rte->checkAsUser = *owner;
		return false;
	}
	return expression_tree_walker(node, set_check_as_user, owner);
}

static void
append_empty(StringInfo sql, Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	int			i;

	appendStringInfoString(sql, "SELECT ");
	for (i = 0; i < RelationGetDescr(rel)->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		appendStringInfo(sql, "%sNULL::%s", i > 0 ? ", " : "",
						 att->attisdropped ? "pg_catalog.int4" :
						 format_type_extended(att->atttypid, att->atttypmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN |
											  FORMAT_TYPE_FORCE_QUALIFY));
	}
	appendStringInfoString(sql, " WHERE false");
	table_close(rel, NoLock);
}

Query *
pln_source_delta_query(PlnChanges *changes)
{
	Delta	   *delta = changes->provider;
	Oid			owner = pln_extension_owner();
	PlnSecContext ctx;
	StringInfoData sql;
	List	   *raw;
	Query	   *query;
	ListCell   *lc;

	PLN_ENSURE(changes->kind != PLN_CHANGE_EVERYTHING && changes->offence == NULL);
	initStringInfo(&sql);
	foreach(lc, delta->parts)
	{
		PlnPart    *part = lfirst(lc);

		if (part->generation == 0)
			pln_append_log_sql(&sql, changes->relid, part);
		else
			pln_change_log_sql(&sql, changes->relid, part,
							   pln_source_log(delta->source, part->generation));
	}
	if (sql.len == 0)
		append_empty(&sql, changes->relid);

	pln_enter_metadata(&ctx);
	raw = raw_parser(sql.data, RAW_PARSE_DEFAULT);
	PLN_ENSURE(list_length(raw) == 1);
	query = parse_analyze_fixedparams(linitial_node(RawStmt, raw), sql.data, NULL, 0, NULL);
	pln_leave(&ctx);
	(void) set_check_as_user((Node *) query, &owner);
	return query;
}

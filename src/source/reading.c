/*
 * reading.c
 *	  From pending headers to what is read from which heap.
 *
 * Locks on logs that are read stay until the end of the transaction: the query of the delta
 * runs later, and nothing may move their rows in between.
 */
#include "postgres.h"

#include "access/relation.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "utils/rel.h"

#include "base/errors.h"
#include "base/ident.h"
#include "source/reading.h"

void
pln_changes_add_reason(PlnChanges *changes, const char *code, char *text)
{
	PlnReason  *reason = palloc0(sizeof(PlnReason));

	reason->code = code;
	reason->text = text;
	changes->reasons = lappend(changes->reasons, reason);
}

void
pln_changes_everything(PlnChanges *changes, const char *code, char *text)
{
	changes->kind = PLN_CHANGE_EVERYTHING;
	pln_changes_add_reason(changes, code, text);
}

/* ---- logs ---- */

static PlnLog *
find_log(PlnReading *r, int32 generation)
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
open_log(PlnReading *r, const PlnLog *log)
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

static bool
holds(const PlnLog *log, AttrNumber attnum)
{
	int			i;

	for (i = 0; i < log->ncols; i++)
	{
		if (log->attnums[i] == attnum)
			return true;
	}
	return false;
}

/* Without a list the reader needs all that is captured now. */
static bool
needs(PlnReading *r, AttrNumber attnum)
{
	PlnLog	   *current;

	if (r->attnums != NULL)
		return bms_is_member(attnum, r->attnums);
	current = find_log(r, r->source->generation);
	return current != NULL && holds(current, attnum);
}

/*
 * Do rows that were logged when the source had natts attributes hold every column that the
 * reader needs?  A column that was added later is no gap: its value is known.
 */
static bool
log_is_wide_enough(PlnReading *r, const PlnLog *log, AttrNumber natts)
{
	Relation	rel = relation_open(r->source->relid, NoLock);
	TupleDesc	desc = RelationGetDescr(rel);
	bool		wide = true;
	int			attnum;

	for (attnum = 1; attnum <= desc->natts && wide; attnum++)
	{
		if (TupleDescAttr(desc, attnum - 1)->attisdropped || !needs(r, attnum) ||
			holds(log, attnum))
			continue;
		wide = attnum > natts && pln_missing_value(rel, attnum) != NULL;
	}
	relation_close(rel, NoLock);
	return wide;
}

static PlnPart *
find_part(PlnReading *r, Oid heap, int32 generation, int32 incarnation)
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
compute_net(PlnReading *r, const PlnLog *log, int32 incarnation)
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
		PlnXact    *xact = lfirst(lc);
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
		PlnXact    *xact = lfirst(lc);
		int			i;

		for (i = 0; i < n && xact->needs_net && xact->incarnation == incarnation; i++)
		{
			if (net[i].xid == xact->xid && net[i].residual)
				xact->residual = true;
		}
	}
	relation_close(log_rel, NoLock);
}

/* Find out of which transactions changed older rows, where only their rows can tell. */
void
pln_reading_net(PlnReading *r)
{
	List	   *done = NIL;
	ListCell   *lc;
	ListCell   *lh;

	foreach(lc, r->xacts)
	{
		PlnXact    *xact = lfirst(lc);

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
row_xid_is_shared(const PlnXact *xact, const PlnHeader *header)
{
	ListCell   *lc;

	foreach(lc, xact->headers)
	{
		PlnHeader  *other = lfirst(lc);

		if (pln_header_is_own_append(other) && other->row_xid == header->row_xid)
			return true;
	}
	return false;
}

static void
add_append(PlnReading *r, const PlnHeader *header)
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
add_logged(PlnReading *r, const PlnXact *xact, PlnHeader *header)
{
	PlnLog	   *log = find_log(r, header->generation);
	PlnPart    *part;

	if (log == NULL || !log_is_wide_enough(r, log, header->natts))
	{
		pln_changes_everything(r->changes, "CHANGE_SET_MISSING",
				   pstrdup(log == NULL ? "its change log is gone" :
						   "a column that is read was not captured yet"));
		return false;
	}
	part = find_part(r, log->relid, log->generation, header->incarnation);
	if (part->nxids == 0)
	{
		relation_close(open_log(r, log), NoLock);	/* the lock stays */
		part->natts = header->natts;
	}
	part->natts = Min(part->natts, header->natts);

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
add_headers(PlnReading *r)
{
	bool		skip_changed = r->options != NULL && !r->options->only_inserts;
	ListCell   *lc;
	ListCell   *lh;

	foreach(lc, r->xacts)
	{
		PlnXact    *xact = lfirst(lc);

		if (skip_changed && xact->residual)
			continue;
		foreach(lh, xact->headers)
		{
			PlnHeader  *header = lfirst(lh);

			CHECK_FOR_INTERRUPTS();
			if (pln_header_is_own_append(header))
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
recover_deleted(PlnReading *r, int64 missing)
{
	List	   *extra = NIL;
	ListCell   *lc;
	ListCell   *lh;

	if (missing < 0 || r->old_images != missing)
	{
		pln_changes_everything(r->changes, "DATA_HAS_CHANGED",
				   pstrdup("rows that were not read yet were changed or moved meanwhile"));
		return;
	}
	foreach(lc, r->xacts)
	{
		PlnXact    *xact = lfirst(lc);

		foreach(lh, xact->headers)
		{
			PlnHeader  *header = lfirst(lh);
			PlnLog	   *log = find_log(r, header->generation);
			PlnPart    *part = NULL;

			if (header->kind != PLN_HEADER_UPDATE && header->kind != PLN_HEADER_DELETE)
				continue;
			if (log == NULL || !log_is_wide_enough(r, log, header->natts))
			{
				pln_changes_everything(r->changes, "CHANGE_SET_MISSING",
									   pstrdup("its change log is gone"));
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
check_counts(PlnReading *r)
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
			pln_changes_everything(r->changes, "PARTITION_SCHEMA_CHANGED",
					   pstrdup("a partition with rows that were not read yet is gone"));
			return;
		}
		pln_part_merge_ranges(part);
		found = pln_append_log_count(part);
		missing += part->rows - found;
		part->rows = found;
	}
	if (any && missing != 0)
		recover_deleted(r, missing);
}

static int
compare_xids(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y ? 1 : 0;
}

/* Rows of transactions that are left out need not be named. */
static void
keep_dead_of_read(PlnPart *part)
{
	List	   *dead = NIL;
	ListCell   *lc;

	foreach(lc, part->dead)
	{
		PlnDeadRow *row = lfirst(lc);

		if (bsearch(&row->xid, part->xids, part->nxids, sizeof(uint64), compare_xids) != NULL)
			dead = lappend(dead, row);
	}
	part->dead = dead;
}

static void
finish_parts(PlnReading *r)
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
		keep_dead_of_read(part);
		r->changes->rows += part->rows - (part->old_images ? 0 : list_length(part->dead));
	}
}

/* What is to be read from which heap, and the number of rows; kind may become EVERYTHING. */
void
pln_reading_build(PlnReading *r)
{
	add_headers(r);
	if (r->changes->kind != PLN_CHANGE_EVERYTHING && r->check_counts)
		check_counts(r);
	if (r->changes->kind != PLN_CHANGE_EVERYTHING)
		finish_parts(r);
}

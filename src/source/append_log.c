/*
 * append_log.c
 *	  Reading what we appended to our own streaming tables: no copy of the rows is kept.
 *
 * A header says which blocks got tuples and their xmin.  A reader scans those blocks and
 * keeps tuples with such an xmin: reused line pointers, refilled pages and foreign rows do no
 * harm, and raw xmin survives freezing, VACUUM FULL and CLUSTER (correctness A2, C1;
 * measurements F).  When the relation's file is another one than the header knows, blocks say
 * nothing: xmin alone decides, and the count of the header must come out.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/errors.h"
#include "base/ident.h"
#include "source/internal.h"

#define MAX_RECORDED_RANGES 4

/* ---- ranges ---- */

static int
compare_ranges(const ListCell *a, const ListCell *b)
{
	const PlnRange *x = lfirst(a);
	const PlnRange *y = lfirst(b);

	return x->first < y->first ? -1 : x->first > y->first ? 1 : 0;
}

/* Sort, join what touches, then close the smallest gaps until only max are left. */
static List *
merge_ranges(List *ranges, int max)
{
	List	   *merged = NIL;
	ListCell   *lc;

	list_sort(ranges, compare_ranges);
	foreach(lc, ranges)
	{
		PlnRange   *range = lfirst(lc);
		PlnRange   *last = merged == NIL ? NULL : llast(merged);

		if (last != NULL && range->first <= last->last + 1)
			last->last = Max(last->last, range->last);
		else
			merged = lappend(merged, range);
	}
	while (list_length(merged) > max)
	{
		int			best = 0;
		int64		best_gap = PG_INT64_MAX;
		int			i;

		for (i = 0; i + 1 < list_length(merged); i++)
		{
			PlnRange   *left = list_nth(merged, i);
			PlnRange   *right = list_nth(merged, i + 1);

			if (right->first - left->last < best_gap)
			{
				best_gap = right->first - left->last;
				best = i;
			}
		}
		((PlnRange *) list_nth(merged, best))->last =
			((PlnRange *) list_nth(merged, best + 1))->last;
		merged = list_delete_nth_cell(merged, best + 1);
	}
	return merged;
}

void
pln_part_add_range(PlnPart *part, const PlnHeader *header)
{
	PlnRange   *range;

	if (header->first_block < 0)
		part->everywhere = true;
	if (part->everywhere)
		return;
	range = palloc(sizeof(PlnRange));
	range->first = header->first_block;
	range->last = header->last_block;
	part->ranges = lappend(part->ranges, range);

	/* keep a long backlog of small appends small */
	if (list_length(part->ranges) >= 1024)
		part->ranges = merge_ranges(part->ranges, PLN_MAX_RANGES);
}

void
pln_part_merge_ranges(PlnPart *part)
{
	part->ranges = merge_ranges(part->ranges, PLN_MAX_RANGES);
}

void
pln_part_add_xid(PlnPart *part, uint64 xid)
{
	if (part->nxids > 0 && part->xids[part->nxids - 1] == xid)
		return;					/* headers come in order of xid */
	if (part->nxids == part->maxxids)
	{
		part->maxxids = Max(16, part->maxxids * 2);
		part->xids = part->xids == NULL ? palloc(sizeof(uint64) * part->maxxids) :
			repalloc_huge(part->xids, sizeof(uint64) * part->maxxids);
	}
	part->xids[part->nxids++] = xid;
}

/* ---- writing ---- */

void
pln_append_log_record(Oid relid, TransactionId row_xid, int64 rows, List *ranges)
{
	PlnSource  *source = pln_source_owning(relid);
	List	   *merged = NIL;
	ListCell   *lc;
	Relation	rel;
	Oid			relfilenode;
	bool		first = true;

	if (source == NULL || rows == 0)
		return;
	PLN_ENSURE(list_length(ranges) % 2 == 0 && ranges != NIL);
	for (lc = list_head(ranges); lc != NULL; lc = lnext(ranges, lc))
	{
		PlnRange   *range = palloc(sizeof(PlnRange));

		range->first = (BlockNumber) lfirst_int(lc);
		lc = lnext(ranges, lc);
		range->last = (BlockNumber) lfirst_int(lc);
		merged = lappend(merged, range);
	}
	merged = merge_ranges(merged, MAX_RECORDED_RANGES);
	rel = table_open(relid, NoLock);
	relfilenode = rel->rd_node.relNode;
	table_close(rel, NoLock);
	foreach(lc, merged)
	{
		PlnRange   *range = lfirst(lc);
		PlnHeader	header;

		pln_header_init(&header, source->id, PLN_HEADER_APPEND);
		header.heap = relid;
		header.row_xid = row_xid;
		header.relfilenode = relfilenode;
		header.first_block = range->first;
		header.last_block = range->last;
		header.rows = first ? rows : 0;
		pln_header_write(&header);
		first = false;
	}
}

/* ---- reading ---- */

static int
compare_xids(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y ? 1 : 0;
}

static int64
count_range(Relation rel, const PlnPart *part, int64 first, int64 last)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan;
	ItemPointerData low;
	ItemPointerData high;
	int64		rows = 0;

	ItemPointerSet(&low, first, 0);
	ItemPointerSet(&high, last, MaxOffsetNumber);
	scan = table_beginscan_tidrange(rel, GetActiveSnapshot(), &low, &high);
	while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot))
	{
		bool		isnull;
		uint64		xmin = DatumGetTransactionId(
			slot_getsysattr(slot, MinTransactionIdAttributeNumber, &isnull));

		CHECK_FOR_INTERRUPTS();
		if (bsearch(&xmin, part->xids, part->nxids, sizeof(uint64), compare_xids) != NULL)
			rows++;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return rows;
}

int64
pln_append_log_count(const PlnPart *part)
{
	Relation	rel = table_open(part->heap, AccessShareLock);
	int64		rows = 0;
	ListCell   *lc;

	qsort(part->xids, part->nxids, sizeof(uint64), compare_xids);
	if (part->everywhere)
		rows = count_range(rel, part, 0, MaxBlockNumber);
	else
	{
		foreach(lc, part->ranges)
		{
			PlnRange   *range = lfirst(lc);

			rows += count_range(rel, part, range->first, range->last);
		}
	}
	table_close(rel, NoLock);
	return rows;
}

/* Conditions on ctid as literals: only these become a TID range scan. */
void
pln_delta_where_ranges(StringInfo sql, const PlnPart *part, int range)
{
	PlnRange   *r;

	if (part->everywhere)
		return;
	r = list_nth(part->ranges, range);
	appendStringInfo(sql, " AND d.ctid OPERATOR(pg_catalog.>=) '(%lld,0)'::pg_catalog.tid"
					 " AND d.ctid OPERATOR(pg_catalog.<) '(%lld,0)'::pg_catalog.tid",
					 (long long) r->first, (long long) r->last + 1);
}

/* Every attribute of relid by its place; in a leaf or child its number may differ: by name. */
static void
append_columns(StringInfo sql, Oid relid, Oid heap)
{
	Relation	rel = table_open(relid, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(rel);
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (i > 0)
			appendStringInfoString(sql, ", ");
		if (att->attisdropped)
			appendStringInfo(sql, "NULL::pg_catalog.int4 AS \"dropped %d\"", i + 1);
		else
			appendStringInfo(sql, "d.%s", quote_identifier(NameStr(att->attname)));
	}
	table_close(rel, NoLock);
}

void
pln_append_log_sql(StringInfo sql, Oid relid, const PlnPart *part)
{
	int			branches = part->everywhere ? 1 : list_length(part->ranges);
	int			i;
	int			x;

	for (i = 0; i < branches; i++)
	{
		appendStringInfo(sql, "%sSELECT ", sql->len > 0 ? " UNION ALL " : "");
		append_columns(sql, relid, part->heap);
		appendStringInfo(sql, " FROM ONLY %s AS d WHERE d.xmin OPERATOR(pg_catalog.=) ANY ('{",
						 pln_relation_name(part->heap));
		for (x = 0; x < part->nxids; x++)
			appendStringInfo(sql, "%s%u", x > 0 ? "," : "", (TransactionId) part->xids[x]);
		appendStringInfoString(sql, "}'::pg_catalog.xid[])");
		pln_delta_where_ranges(sql, part, i);
	}
}

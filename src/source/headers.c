/*
 * headers.c
 *	  Header rows of append and change logs, and the incarnation of the database.
 *
 * One header per captured statement or append: (source, incarnation, top xid8, seq).  It is
 * an ordinary row of its transaction, so MVCC alone decides whether it is visible
 * (correctness A1).  seq is a counter of the backend that never goes back: an own
 * transaction's headers are ordered by it, also across savepoints.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/indexing.h"
#include "catalog/pg_control.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "base/errors.h"
#include "source/frontier.h"
#include "source/internal.h"

enum
{
	Anum_header_source_id = 1,
	Anum_header_incarnation,
	Anum_header_xid,
	Anum_header_seq,
	Anum_header_kind,
	Anum_header_generation,
	Anum_header_natts,
	Anum_header_heap,
	Anum_header_first_block,
	Anum_header_last_block,
	Anum_header_row_xid,
	Anum_header_rows,
	Anum_header_relfilenode,
	Anum_header_at,
	Anum_header_note,
	Natts_header = Anum_header_note
};

enum
{
	Anum_incarnation_number = 1,
	Anum_incarnation_system,
	Anum_incarnation_database,
	Natts_incarnation = Anum_incarnation_database
};

static int64 last_seq = 0;

/* Known since the row of this table was seen committed. */
static Oid	cached_table = InvalidOid;
static int32 cached_incarnation = 0;

/* The newest row; *ours = it names this database, *settled = no longer of an open transaction */
static int32
read_incarnation(Relation rel, bool *ours, bool *settled)
{
	int32		number = 0;
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;

	*ours = *settled = false;
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		TupleDesc	desc = RelationGetDescr(rel);
		bool		isnull;
		int32		n = DatumGetInt32(heap_getattr(tuple, Anum_incarnation_number, desc, &isnull));

		if (n <= number)
			continue;
		number = n;
		*ours = (uint64) DatumGetInt64(heap_getattr(tuple, Anum_incarnation_system, desc,
													&isnull)) == GetSystemIdentifier() &&
			DatumGetObjectId(heap_getattr(tuple, Anum_incarnation_database, desc,
										  &isnull)) == MyDatabaseId;
		*settled =
			!TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
	}
	systable_endscan(scan);
	return number;
}

bool
pln_source_is_restored(void)
{
	Relation	rel = table_open(pln_source_catalog("incarnation"), AccessShareLock);
	bool		ours = false;
	bool		settled = false;
	int32		number = read_incarnation(rel, &ours, &settled);

	table_close(rel, AccessShareLock);
	return number > 0 && !ours;
}

/*
 * Number of this database's incarnation.  Whoever first finds rows of another cluster or
 * database (a restore, a clone, pg_upgrade) writes the next number (correctness A3): xids of
 * earlier numbers live in another number space.
 */
int32
pln_incarnation(void)
{
	Oid			table = pln_source_catalog("incarnation");
	Relation	rel;
	int32		number;
	bool		ours;
	bool		settled;

	if (OidIsValid(table) && table == cached_table)
		return cached_incarnation;
	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("table \"pipeline_internal.incarnation\" does not exist"),
				 errhint("CREATE EXTENSION pipeline;")));
	rel = table_open(table, AccessShareLock);
	number = read_incarnation(rel, &ours, &settled);
	if (!ours)
	{
		/* Only one writes the number; it stays until that transaction ends. */
		LockRelationOid(table, ShareRowExclusiveLock);
		number = read_incarnation(rel, &ours, &settled);
		if (!ours)
		{
			Datum		values[Natts_incarnation];
			bool		nulls[Natts_incarnation] = {false, false, false};
			HeapTuple	tuple;

			number++;
			values[Anum_incarnation_number - 1] = Int32GetDatum(number);
			values[Anum_incarnation_system - 1] = Int64GetDatum((int64) GetSystemIdentifier());
			values[Anum_incarnation_database - 1] = ObjectIdGetDatum(MyDatabaseId);
			tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
			CatalogTupleInsert(rel, tuple);
			CommandCounterIncrement();
			settled = false;
		}
	}
	table_close(rel, NoLock);
	if (settled)
	{
		cached_table = table;
		cached_incarnation = number;
	}
	return number;
}

int64
pln_header_next_seq(void)
{
	return ++last_seq;
}

int64
pln_header_last_seq(void)
{
	return last_seq;
}

uint64
pln_current_top_xid(void)
{
	FullTransactionId xid = GetTopFullTransactionIdIfAny();

	return FullTransactionIdIsValid(xid) ? U64FromFullTransactionId(xid) : 0;
}

void
pln_header_init(PlnHeader *header, int64 source_id, char kind)
{
	memset(header, 0, sizeof(PlnHeader));
	header->source_id = source_id;
	header->kind = kind;
	header->first_block = header->last_block = -1;
}

/* Assigns an xid: called only where something was written. */
void
pln_header_write(PlnHeader *header)
{
	Relation	rel = pln_headers_open(RowExclusiveLock);
	Datum		values[Natts_header];
	bool		nulls[Natts_header];
	HeapTuple	tuple;

	header->incarnation = pln_incarnation();
	header->xid = U64FromFullTransactionId(GetTopFullTransactionId());
	if (header->seq == 0)
		header->seq = pln_header_next_seq();
	header->at = GetCurrentStatementStartTimestamp();

	memset(nulls, 0, sizeof(nulls));
	values[Anum_header_source_id - 1] = Int64GetDatum(header->source_id);
	values[Anum_header_incarnation - 1] = Int32GetDatum(header->incarnation);
	values[Anum_header_xid - 1] =
		FullTransactionIdGetDatum(FullTransactionIdFromU64(header->xid));
	values[Anum_header_seq - 1] = Int64GetDatum(header->seq);
	values[Anum_header_kind - 1] = CharGetDatum(header->kind);
	values[Anum_header_generation - 1] = Int32GetDatum(header->generation);
	values[Anum_header_natts - 1] = Int16GetDatum(header->natts);
	values[Anum_header_heap - 1] = ObjectIdGetDatum(header->heap);
	nulls[Anum_header_heap - 1] = !OidIsValid(header->heap);
	values[Anum_header_first_block - 1] = Int64GetDatum(header->first_block);
	nulls[Anum_header_first_block - 1] = header->first_block < 0;
	values[Anum_header_last_block - 1] = Int64GetDatum(header->last_block);
	nulls[Anum_header_last_block - 1] = header->first_block < 0;
	values[Anum_header_row_xid - 1] = TransactionIdGetDatum(header->row_xid);
	nulls[Anum_header_row_xid - 1] = !TransactionIdIsValid(header->row_xid);
	values[Anum_header_rows - 1] = Int64GetDatum(header->rows);
	values[Anum_header_relfilenode - 1] = ObjectIdGetDatum(header->relfilenode);
	nulls[Anum_header_relfilenode - 1] = !OidIsValid(header->relfilenode);
	values[Anum_header_at - 1] = TimestampTzGetDatum(header->at);
	values[Anum_header_note - 1] = header->note ? CStringGetTextDatum(header->note) : (Datum) 0;
	nulls[Anum_header_note - 1] = header->note == NULL;

	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
	CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);
	table_close(rel, NoLock);
}

static PlnHeader *
header_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	PlnHeader  *header = palloc0(sizeof(PlnHeader));
	Datum		values[Natts_header];
	bool		nulls[Natts_header];

	heap_deform_tuple(tuple, desc, values, nulls);
	header->source_id = DatumGetInt64(values[Anum_header_source_id - 1]);
	header->incarnation = DatumGetInt32(values[Anum_header_incarnation - 1]);
	header->xid =
		U64FromFullTransactionId(DatumGetFullTransactionId(values[Anum_header_xid - 1]));
	header->seq = DatumGetInt64(values[Anum_header_seq - 1]);
	header->kind = DatumGetChar(values[Anum_header_kind - 1]);
	header->generation = DatumGetInt32(values[Anum_header_generation - 1]);
	header->natts = DatumGetInt16(values[Anum_header_natts - 1]);
	if (!nulls[Anum_header_heap - 1])
		header->heap = DatumGetObjectId(values[Anum_header_heap - 1]);
	header->first_block = header->last_block = -1;
	if (!nulls[Anum_header_first_block - 1])
		header->first_block = DatumGetInt64(values[Anum_header_first_block - 1]);
	if (!nulls[Anum_header_last_block - 1])
		header->last_block = DatumGetInt64(values[Anum_header_last_block - 1]);
	if (!nulls[Anum_header_row_xid - 1])
		header->row_xid = DatumGetTransactionId(values[Anum_header_row_xid - 1]);
	header->rows = DatumGetInt64(values[Anum_header_rows - 1]);
	if (!nulls[Anum_header_relfilenode - 1])
		header->relfilenode = DatumGetObjectId(values[Anum_header_relfilenode - 1]);
	header->at = DatumGetTimestampTz(values[Anum_header_at - 1]);
	if (!nulls[Anum_header_note - 1])
		header->note = TextDatumGetCString(values[Anum_header_note - 1]);
	return header;
}

/* Append to the list what the keys find and the frontier does not cover. */
static List *
scan_pending(Relation rel, List *pending, int nkeys, ScanKey keys, const PlnFrontier *frontier,
			 const PlnFrontierTest *test)
{
	Oid			index = pln_source_catalog("log_headers_pkey");
	SysScanDesc scan = systable_beginscan(rel, index, OidIsValid(index), GetActiveSnapshot(),
										  nkeys, keys);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		PlnHeader  *header = header_from_tuple(tuple, RelationGetDescr(rel));

		CHECK_FOR_INTERRUPTS();
		if (frontier != NULL &&
			pln_frontier_covers(test, header->incarnation, header->xid, header->seq))
			pfree(header);
		else
			pending = lappend(pending, header);
	}
	systable_endscan(scan);
	return pending;
}

List *
pln_headers_pending(int64 source_id, const PlnFrontier *frontier)
{
	Relation	rel = pln_headers_open(AccessShareLock);
	PlnFrontierTest *test = frontier != NULL ? pln_frontier_test(frontier) : NULL;
	List	   *pending = NIL;
	ScanKeyData keys[3];

	ScanKeyInit(&keys[0], Anum_header_source_id, BTEqualStrategyNumber, F_INT8EQ,
				Int64GetDatum(source_id));
	if (frontier == NULL)
		pending = scan_pending(rel, pending, 1, keys, NULL, NULL);
	else
	{
		/* Below xmin of its snapshot everything of its incarnation is consumed. */
		ScanKeyInit(&keys[1], Anum_header_incarnation, BTEqualStrategyNumber, F_INT4EQ,
					Int32GetDatum(frontier->incarnation));
		ScanKeyInit(&keys[2], Anum_header_xid, BTGreaterEqualStrategyNumber, F_XID8GE,
					FullTransactionIdGetDatum(FullTransactionIdFromU64(test->xmin)));
		pending = scan_pending(rel, pending, 3, keys, frontier, test);

		/* systable_beginscan() rewrites the attribute numbers of the keys */
		ScanKeyInit(&keys[0], Anum_header_source_id, BTEqualStrategyNumber, F_INT8EQ,
					Int64GetDatum(source_id));
		ScanKeyInit(&keys[1], Anum_header_incarnation, BTGreaterStrategyNumber, F_INT4GT,
					Int32GetDatum(frontier->incarnation));
		pending = scan_pending(rel, pending, 2, keys, frontier, test);
	}
	table_close(rel, AccessShareLock);
	return pending;
}

int64
pln_headers_own_seq(int64 source_id, uint64 own_xid)
{
	Relation	rel;
	Oid			index;
	SysScanDesc scan;
	ScanKeyData keys[3];
	HeapTuple	tuple;
	int64		seq = 0;

	if (own_xid == 0)
		return 0;
	rel = pln_headers_open(AccessShareLock);
	index = pln_source_catalog("log_headers_pkey");
	ScanKeyInit(&keys[0], Anum_header_source_id, BTEqualStrategyNumber, F_INT8EQ,
				Int64GetDatum(source_id));
	ScanKeyInit(&keys[1], Anum_header_incarnation, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(pln_incarnation()));
	ScanKeyInit(&keys[2], Anum_header_xid, BTEqualStrategyNumber, F_XID8EQ,
				FullTransactionIdGetDatum(FullTransactionIdFromU64(own_xid)));
	scan = systable_beginscan(rel, index, OidIsValid(index), GetActiveSnapshot(), 3, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;

		seq = Max(seq, DatumGetInt64(heap_getattr(tuple, Anum_header_seq,
												  RelationGetDescr(rel), &isnull)));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return seq;
}

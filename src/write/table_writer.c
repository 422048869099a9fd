/*
 * table_writer.c
 *	  Bulk writing of rows into a streaming table, on COPY's path (correctness B9).
 *
 * The order of steps is that of CopyFrom: route, BEFORE ROW triggers, generated columns,
 * constraints, heap, indexes, AFTER triggers.  Rows go to each heap in batches unless a trigger
 * could look at the rows before them.  Triggers of our own (the DML guard, capture) do not
 * fire: what we write is recorded by the caller from the block ranges that the tuples really got.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "nodes/makefuncs.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"

#include "base/errors.h"
#include "base/ident.h"
#include "write/table_writer.h"
#include "write/target_triggers.h"

/* A batch over all heaps; both limits are COPY's. */
#define BATCH_ROWS 1000
#define BATCH_BYTES 65535

/* Heaps that keep their slots between batches (a partitioned target may have thousands). */
#define MAX_BUFFERED_HEAPS 32

#define MAX_RANGES 64

/* One heap that rows go to: the target, or a leaf of it. */
typedef struct WriterHeap
{
	ResultRelInfo *rri;
	bool		batched;
	bool		before_row;		/* has BEFORE ROW triggers */
	bool		after_row;		/* AFTER ROW triggers or a transition table want each row */
	bool		has_checks;		/* constraints or generated columns */
	bool		check_partition;	/* routing has not shown that the row belongs here */
	BulkInsertState bistate;	/* NULL while not buffered */
	TupleTableSlot **slots;		/* BATCH_ROWS; NULL while not buffered */
	int			nslots;			/* filled */
	int			allocated;
	PlnAppended appended;
} WriterHeap;

struct PlnTableWriter
{
	Relation	rel;
	EState	   *estate;
	MemoryContext context;
	ResultRelInfo *target;
	ModifyTableState *mtstate;
	PartitionTupleRouting *routing;
	CommandId	cid;
	bool		fires;			/* an AFTER trigger level was opened */
	bool		single_only;	/* a trigger of the root forbids batches */
	List	   *heaps;			/* of WriterHeap */
	WriterHeap *only;			/* the one heap of a target without partitions */
	int			batch_rows;		/* over all heaps */
	Size		batch_bytes;
	int64		bytes;
};

/* ---- where tuples went ---- */

/* Join the two neighbours with the smallest gap. */
static void
merge_nearest(PlnAppended *part)
{
	ListCell   *lc;
	int			best = 1;
	BlockNumber best_gap = InvalidBlockNumber;
	PlnBlockRange *left;
	PlnBlockRange *right;

	foreach(lc, part->ranges)
	{
		int			i = foreach_current_index(lc);
		BlockNumber gap;

		if (i == 0)
			continue;
		left = list_nth(part->ranges, i - 1);
		right = lfirst(lc);
		gap = right->first - left->last;
		if (gap < best_gap)
		{
			best_gap = gap;
			best = i;
		}
	}
	left = list_nth(part->ranges, best - 1);
	right = list_nth(part->ranges, best);
	left->last = Max(left->last, right->last);
	part->ranges = list_delete_nth_cell(part->ranges, best);
}

static void
note_block(PlnTableWriter *writer, PlnAppended *part, BlockNumber block)
{
	PlnBlockRange *range;
	MemoryContext old;
	ListCell   *lc;
	int			at = 0;

	range = part->ranges ? llast(part->ranges) : NULL;
	if (range != NULL && block >= range->first && block <= range->last + 1)
	{
		range->last = Max(range->last, block);
		return;
	}
	foreach(lc, part->ranges)
	{
		range = lfirst(lc);
		if (block >= range->first && block <= range->last)
			return;
		if (range->first < block)
			at = foreach_current_index(lc) + 1;
	}
	old = MemoryContextSwitchTo(writer->context);
	range = palloc(sizeof(PlnBlockRange));
	range->first = block;
	range->last = block;
	part->ranges = list_insert_nth(part->ranges, at, range);
	MemoryContextSwitchTo(old);
	if (list_length(part->ranges) > MAX_RANGES)
		merge_nearest(part);
}

static void
note_row(PlnTableWriter *writer, WriterHeap *heap, TupleTableSlot *slot)
{
	heap->appended.rows++;
	note_block(writer, &heap->appended, ItemPointerGetBlockNumber(&slot->tts_tid));
}

/* ---- opening ---- */

static WriterHeap *
make_heap(PlnTableWriter *writer, ResultRelInfo *rri)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);
	WriterHeap *heap = palloc0(sizeof(WriterHeap));
	Relation	rel = rri->ri_RelationDesc;
	TupleConstr *constr = RelationGetDescr(rel)->constr;
	TriggerDesc *desc;

	if (rri->ri_FdwRoutine != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("partition \"%s\" is a foreign table",
						pln_relation_name(RelationGetRelid(rel))),
				 errdetail("What an update writes there could not be read as a stream."),
				 errhint("ALTER TABLE %s DETACH PARTITION %s;",
						 pln_relation_name(RelationGetRelid(writer->rel)),
						 pln_relation_name(RelationGetRelid(rel)))));
	if (rri != writer->target)
		rri->ri_TrigDesc = pln_target_triggers(rri->ri_TrigDesc);
	desc = rri->ri_TrigDesc;
	pln_target_refuse_deferred(rel, desc);
	heap->rri = rri;
	heap->before_row = desc != NULL && desc->trig_insert_before_row;
	heap->after_row = desc != NULL &&
		(desc->trig_insert_after_row || desc->trig_insert_new_table);
	heap->after_row |= writer->mtstate->mt_transition_capture != NULL;
	heap->batched = !heap->before_row && !writer->single_only;
	heap->has_checks = constr != NULL &&
		(constr->has_generated_stored || constr->has_not_null || constr->num_check > 0);
	heap->check_partition = rel->rd_rel->relispartition &&
		(writer->routing == NULL || heap->before_row);
	heap->appended.relid = RelationGetRelid(rel);
	writer->heaps = lappend(writer->heaps, heap);
	/* core leaves this link to whoever routes rows; only COPY and we do so outside of plans */
	rri->ri_CopyMultiInsertBuffer = (struct CopyMultiInsertBuffer *) heap;
	MemoryContextSwitchTo(old);
	return heap;
}

/* Slots and pins of one heap, when its first row comes or comes again. */
static void
buffer_heap(PlnTableWriter *writer, WriterHeap *heap)
{
	heap->bistate = GetBulkInsertState();
	heap->slots = MemoryContextAllocZero(writer->context, sizeof(TupleTableSlot *) * BATCH_ROWS);
	heap->appended.row_xid = GetCurrentTransactionId();
}

static void
unbuffer_heap(WriterHeap *heap)
{
	int			i;

	if (heap->slots == NULL)
		return;
	FreeBulkInsertState(heap->bistate);
	for (i = 0; i < heap->allocated; i++)
		ExecDropSingleTupleTableSlot(heap->slots[i]);
	pfree(heap->slots);
	heap->bistate = NULL;
	heap->slots = NULL;
	heap->allocated = 0;
}

/* The executor's structures for INSERT into the target, in the estate's context. */
static void
init_target(PlnTableWriter *writer)
{
	EState	   *estate = writer->estate;
	Relation	rel = writer->rel;
	RangeTblEntry *rte = makeNode(RangeTblEntry);

	rte->rtekind = RTE_RELATION;
	rte->relid = RelationGetRelid(rel);
	rte->relkind = rel->rd_rel->relkind;
	rte->rellockmode = RowExclusiveLock;
	rte->eref = makeAlias(RelationGetRelationName(rel), NIL);
	ExecInitRangeTable(estate, list_make1(rte));
	writer->target = makeNode(ResultRelInfo);
	ExecInitResultRelation(estate, writer->target, 1);
	CheckValidResultRel(writer->target, CMD_INSERT);
	writer->target->ri_TrigDesc = pln_target_triggers(writer->target->ri_TrigDesc);
	ExecOpenIndices(writer->target, false);
	writer->mtstate = makeNode(ModifyTableState);
	writer->mtstate->ps.state = estate;
	writer->mtstate->operation = CMD_INSERT;
	writer->mtstate->mt_nrels = 1;
	writer->mtstate->resultRelInfo = writer->target;
	writer->mtstate->rootResultRelInfo = writer->target;
}

PlnTableWriter *
pln_table_writer_open(Relation rel, EState *estate)
{
	PlnTableWriter *writer = palloc0(sizeof(PlnTableWriter));
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TriggerDesc *desc;

	if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("row-level security of table \"%s\" binds its owner too",
						pln_relation_name(RelationGetRelid(rel))),
				 errhint("ALTER TABLE %s NO FORCE ROW LEVEL SECURITY;",
						 pln_relation_name(RelationGetRelid(rel)))));
	writer->rel = rel;
	writer->estate = estate;
	writer->context = AllocSetContextCreate(estate->es_query_cxt, "pipeline table writer",
											ALLOCSET_DEFAULT_SIZES);
	writer->cid = GetCurrentCommandId(true);
	estate->es_output_cid = writer->cid;
	init_target(writer);
	desc = writer->target->ri_TrigDesc;
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		pln_target_refuse_deferred(rel, desc);
	writer->fires = desc != NULL || rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	if (writer->fires)
		AfterTriggerBeginQuery();
	writer->mtstate->mt_transition_capture =
		MakeTransitionCaptureState(desc, RelationGetRelid(rel), CMD_INSERT);
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		writer->routing = ExecSetupPartitionTupleRouting(estate, rel);
		/* the root's transition table wants rows in the root's form, one by one */
		writer->single_only = desc != NULL &&
			(desc->trig_insert_before_row || desc->trig_insert_new_table);
	}
	else
		writer->only = make_heap(writer, writer->target);
	if (writer->fires)
		ExecBSInsertTriggers(estate, writer->target);
	MemoryContextSwitchTo(old);
	return writer;
}

/* ---- rows ---- */

static void
flush_heap(PlnTableWriter *writer, WriterHeap *heap)
{
	ResultRelInfo *rri = heap->rri;
	EState	   *estate = writer->estate;
	MemoryContext old;
	int			i;

	if (heap->nslots == 0)
		return;
	/* the table access method may leak into the current context */
	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	table_multi_insert(rri->ri_RelationDesc, heap->slots, heap->nslots, writer->cid, 0,
					   heap->bistate);
	MemoryContextSwitchTo(old);
	for (i = 0; i < heap->nslots; i++)
	{
		TupleTableSlot *slot = heap->slots[i];
		List	   *recheck = NIL;

		note_row(writer, heap, slot);
		if (rri->ri_NumIndices > 0)
			recheck = ExecInsertIndexTuples(rri, slot, estate, false, false, NULL, NIL);
		if (heap->after_row)
			ExecARInsertTriggers(estate, rri, slot, recheck,
								 writer->mtstate->mt_transition_capture);
		list_free(recheck);
		ExecClearTuple(slot);
	}
	heap->nslots = 0;
}

/* Write out what is buffered; current (may be NULL) keeps its buffer. */
static void
flush(PlnTableWriter *writer, WriterHeap *current)
{
	int			buffered = 0;
	ListCell   *lc;

	foreach(lc, writer->heaps)
	{
		WriterHeap *heap = lfirst(lc);

		flush_heap(writer, heap);
		buffered += heap->slots != NULL;
	}
	writer->batch_rows = 0;
	writer->batch_bytes = 0;
	ResetPerTupleExprContext(writer->estate);
	if (buffered <= MAX_BUFFERED_HEAPS)
		return;
	foreach(lc, writer->heaps)
	{
		if (lfirst(lc) != current)
			unbuffer_heap(lfirst(lc));
	}
}

/* The heap that the row belongs to. */
static WriterHeap *
find_heap(PlnTableWriter *writer, TupleTableSlot *slot)
{
	ResultRelInfo *rri;

	if (writer->only != NULL)
		return writer->only;
	rri = ExecFindPartition(writer->mtstate, writer->target, writer->routing, slot,
							writer->estate);
	if (rri->ri_CopyMultiInsertBuffer == NULL)
		return make_heap(writer, rri);
	return (WriterHeap *) rri->ri_CopyMultiInsertBuffer;
}

/* Generated columns, then constraints: those of CopyFrom. */
static void
check_row(PlnTableWriter *writer, WriterHeap *heap, TupleTableSlot *row)
{
	TupleConstr *constr = RelationGetDescr(heap->rri->ri_RelationDesc)->constr;

	if (heap->has_checks)
	{
		if (constr->has_generated_stored)
			ExecComputeStoredGenerated(heap->rri, writer->estate, row, CMD_INSERT);
		ExecConstraints(heap->rri, row, writer->estate);
	}
	if (heap->check_partition)
		ExecPartitionCheck(heap->rri, row, writer->estate, true);
}

static void
insert_single(PlnTableWriter *writer, WriterHeap *heap, TupleTableSlot *row,
			  TupleTableSlot *original)
{
	ResultRelInfo *rri = heap->rri;
	TransitionCaptureState *capture = writer->mtstate->mt_transition_capture;
	List	   *recheck = NIL;

	/* unless a trigger may change it, the transition table takes the row as it came */
	if (capture != NULL && writer->routing != NULL)
		capture->tcs_original_insert_tuple = heap->before_row ? NULL : original;
	if (heap->before_row && !ExecBRInsertTriggers(writer->estate, rri, row))
		return;					/* the trigger said "do nothing" */
	check_row(writer, heap, row);
	table_tuple_insert(rri->ri_RelationDesc, row, writer->cid, 0, heap->bistate);
	note_row(writer, heap, row);
	if (rri->ri_NumIndices > 0)
		recheck = ExecInsertIndexTuples(rri, row, writer->estate, false, false, NULL, NIL);
	ExecARInsertTriggers(writer->estate, rri, row, recheck, capture);
	list_free(recheck);
}

static Size
row_size(TupleTableSlot *row)
{
	if ((TTS_IS_HEAPTUPLE(row) || TTS_IS_BUFFERTUPLE(row)) &&
		((HeapTupleTableSlot *) row)->tuple != NULL)
		return ((HeapTupleTableSlot *) row)->tuple->t_len;
	slot_getallattrs(row);
	return heap_compute_data_size(row->tts_tupleDescriptor, row->tts_values, row->tts_isnull);
}

void
pln_table_writer_put(PlnTableWriter *writer, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);
	WriterHeap *heap;
	TupleTableSlot *row;
	TupleConversionMap *map;
	Size		size;

	ResetPerTupleExprContext(writer->estate);
	heap = find_heap(writer, slot);
	if (heap->slots == NULL)
		buffer_heap(writer, heap);
	/* triggers must find the rows before this one in their tables */
	if (!heap->batched && writer->batch_rows > 0)
		flush(writer, heap);
	if (heap->nslots == heap->allocated)
		heap->slots[heap->allocated++] = table_slot_create(heap->rri->ri_RelationDesc, NULL);
	row = heap->slots[heap->nslots];
	map = heap->rri->ri_RootToPartitionMap;
	if (map != NULL)
		execute_attr_map_slot(map->attrMap, slot, row);
	else
		ExecCopySlot(row, slot);
	row->tts_tableOid = RelationGetRelid(heap->rri->ri_RelationDesc);
	if (!heap->batched)
		insert_single(writer, heap, row, slot);
	else
	{
		check_row(writer, heap, row);
		/* until now the row may point into the caller's memory or pin his buffer */
		ExecMaterializeSlot(row);
		heap->nslots++;
		writer->batch_rows++;
	}
	size = row_size(row);
	writer->bytes += size;
	if (heap->batched)
		writer->batch_bytes += size;
	else
		ExecClearTuple(row);
	if (writer->batch_rows >= BATCH_ROWS || writer->batch_bytes >= BATCH_BYTES)
		flush(writer, heap);
	MemoryContextSwitchTo(old);
}

int64
pln_table_writer_bytes(PlnTableWriter *writer)
{
	return writer->bytes;
}

/* ---- the end ---- */

/* A copy in the current context, without heaps that got no row. */
static List *
copy_appended(PlnTableWriter *writer)
{
	List	   *copy = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, writer->heaps)
	{
		WriterHeap *heap = lfirst(lc);
		PlnAppended *part;

		if (heap->appended.rows == 0)
			continue;
		part = palloc(sizeof(PlnAppended));
		*part = heap->appended;
		part->ranges = NIL;
		foreach(lc2, heap->appended.ranges)
		{
			PlnBlockRange *range = palloc(sizeof(PlnBlockRange));

			*range = *(PlnBlockRange *) lfirst(lc2);
			part->ranges = lappend(part->ranges, range);
		}
		copy = lappend(copy, part);
	}
	return copy;
}

List *
pln_table_writer_close(PlnTableWriter *writer)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);
	EState	   *estate = writer->estate;
	List	   *appended;
	ListCell   *lc;

	flush(writer, NULL);
	foreach(lc, writer->heaps)
	{
		WriterHeap *heap = lfirst(lc);

		unbuffer_heap(heap);
		table_finish_bulk_insert(heap->rri->ri_RelationDesc, 0);
	}
	if (writer->fires)
	{
		ExecASInsertTriggers(estate, writer->target, writer->mtstate->mt_transition_capture);
		AfterTriggerEndQuery(estate);
	}
	if (writer->routing != NULL)
		ExecCleanupTupleRouting(writer->mtstate, writer->routing);
	ExecResetTupleTable(estate->es_tupleTable, false);
	estate->es_tupleTable = NIL;
	ExecCloseResultRelations(estate);
	ExecCloseRangeTableRelations(estate);
	MemoryContextSwitchTo(old);
	appended = copy_appended(writer);
	MemoryContextDelete(writer->context);
	return appended;
}

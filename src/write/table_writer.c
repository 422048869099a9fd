/*
 * table_writer.c
 *	  Bulk writing of rows into a streaming table, on COPY's path (correctness B9).
 *
 * Rows go to the heap in batches where the target is one heap without row triggers, else one by
 * one: partition routing, triggers, generated columns, constraints and indexes are those
 * of the executor.  Triggers of our own (the DML guard, capture) do not fire: what we write
 * is recorded by the caller from the block ranges that the tuples really got.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/errors.h"
#include "base/ident.h"
#include "write/table_writer.h"

#define BATCH_ROWS 1000
#define BATCH_BYTES 65536
#define MAX_RANGES 64

struct PlnTableWriter
{
	Relation	rel;
	EState	   *estate;
	MemoryContext context;
	ResultRelInfo *target;
	ModifyTableState *mtstate;
	PartitionTupleRouting *routing;
	BulkInsertState bistate;
	CommandId	cid;
	bool		has_triggers;
	bool		one_by_one;
	TupleTableSlot *single;		/* root's row, for the slow path */

	/* the batch, for the fast path */
	TupleTableSlot **slots;
	int			nslots;			/* filled */
	int			allocated;
	Size		batch_bytes;

	int64		bytes;
	List	   *appended;		/* of PlnAppended */
	PlnAppended *last;
};

/* ---- where tuples went ---- */

static PlnAppended *
appended_to(PlnTableWriter *writer, Oid relid)
{
	MemoryContext old;
	ListCell   *lc;

	if (writer->last != NULL && writer->last->relid == relid)
		return writer->last;
	foreach(lc, writer->appended)
	{
		PlnAppended *part = lfirst(lc);

		if (part->relid == relid)
			return writer->last = part;
	}
	old = MemoryContextSwitchTo(writer->context);
	writer->last = palloc0(sizeof(PlnAppended));
	writer->last->relid = relid;
	writer->last->row_xid = GetCurrentTransactionId();
	writer->appended = lappend(writer->appended, writer->last);
	MemoryContextSwitchTo(old);
	return writer->last;
}

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
note_row(PlnTableWriter *writer, Oid relid, TupleTableSlot *slot)
{
	PlnAppended *part = appended_to(writer, relid);

	part->rows++;
	note_block(writer, part, ItemPointerGetBlockNumber(&slot->tts_tid));
}

/* ---- triggers ---- */

/* Recompute what the executor asks of a trigger list about INSERT. */
static void
set_insert_flags(TriggerDesc *desc)
{
	int			i;

	desc->trig_insert_before_row = false;
	desc->trig_insert_after_row = false;
	desc->trig_insert_instead_row = false;
	desc->trig_insert_before_statement = false;
	desc->trig_insert_after_statement = false;
	desc->trig_insert_new_table = false;
	for (i = 0; i < desc->numtriggers; i++)
	{
		int16		type = desc->triggers[i].tgtype;

		desc->trig_insert_before_row |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_ROW, TRIGGER_TYPE_BEFORE, TRIGGER_TYPE_INSERT);
		desc->trig_insert_after_row |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_ROW, TRIGGER_TYPE_AFTER, TRIGGER_TYPE_INSERT);
		desc->trig_insert_instead_row |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_ROW, TRIGGER_TYPE_INSTEAD, TRIGGER_TYPE_INSERT);
		desc->trig_insert_before_statement |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_STATEMENT, TRIGGER_TYPE_BEFORE,
					TRIGGER_TYPE_INSERT);
		desc->trig_insert_after_statement |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_STATEMENT, TRIGGER_TYPE_AFTER,
					TRIGGER_TYPE_INSERT);
		desc->trig_insert_new_table |=
			TRIGGER_FOR_INSERT(type) && desc->triggers[i].tgnewtable != NULL;
	}
}

/* The executor's copy of a relation's triggers, without ours; NULL when none is left. */
static TriggerDesc *
users_triggers(TriggerDesc *desc)
{
	Oid			ours = get_namespace_oid("pipeline_internal", false);
	int			kept = 0;
	int			i;

	if (desc == NULL)
		return NULL;
	for (i = 0; i < desc->numtriggers; i++)
	{
		if (get_func_namespace(desc->triggers[i].tgfoid) != ours)
			desc->triggers[kept++] = desc->triggers[i];
	}
	desc->numtriggers = kept;
	if (kept == 0)
		return NULL;
	set_insert_flags(desc);
	return desc;
}

/* ---- opening ---- */

PlnTableWriter *
pln_table_writer_open(Relation rel, EState *estate)
{
	PlnTableWriter *writer = palloc0(sizeof(PlnTableWriter));
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	writer->rel = rel;
	writer->estate = estate;
	writer->context = AllocSetContextCreate(estate->es_query_cxt, "pipeline table writer",
											ALLOCSET_DEFAULT_SIZES);
	writer->cid = GetCurrentCommandId(true);
	estate->es_output_cid = writer->cid;
	rte->rtekind = RTE_RELATION;
	rte->relid = RelationGetRelid(rel);
	rte->relkind = rel->rd_rel->relkind;
	rte->rellockmode = RowExclusiveLock;
	rte->eref = makeAlias(RelationGetRelationName(rel), NIL);
	ExecInitRangeTable(estate, list_make1(rte));
	writer->target = makeNode(ResultRelInfo);
	ExecInitResultRelation(estate, writer->target, 1);
	CheckValidResultRel(writer->target, CMD_INSERT);
	writer->target->ri_TrigDesc = users_triggers(writer->target->ri_TrigDesc);
	ExecOpenIndices(writer->target, false);

	writer->mtstate = makeNode(ModifyTableState);
	writer->mtstate->ps.state = estate;
	writer->mtstate->operation = CMD_INSERT;
	writer->mtstate->mt_nrels = 1;
	writer->mtstate->resultRelInfo = writer->target;
	writer->mtstate->rootResultRelInfo = writer->target;
	writer->mtstate->mt_transition_capture =
		MakeTransitionCaptureState(writer->target->ri_TrigDesc, RelationGetRelid(rel),
								   CMD_INSERT);
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		writer->routing = ExecSetupPartitionTupleRouting(estate, rel);
	writer->has_triggers = writer->target->ri_TrigDesc != NULL || writer->routing != NULL;
	writer->one_by_one = writer->has_triggers;
	if (writer->has_triggers)
	{
		AfterTriggerBeginQuery();
		ExecBSInsertTriggers(estate, writer->target);
	}
	if (writer->one_by_one)
		writer->single = table_slot_create(rel, &estate->es_tupleTable);
	else
		writer->slots = palloc0(sizeof(TupleTableSlot *) * BATCH_ROWS);
	writer->bistate = GetBulkInsertState();
	MemoryContextSwitchTo(old);
	return writer;
}

/* ---- checks common to both paths ---- */

static void
check_row(PlnTableWriter *writer, ResultRelInfo *rri, TupleTableSlot *slot)
{
	TupleConstr *constr = RelationGetDescr(rri->ri_RelationDesc)->constr;

	slot->tts_tableOid = RelationGetRelid(rri->ri_RelationDesc);
	if (constr == NULL)
		return;
	if (constr->has_generated_stored)
		ExecComputeStoredGenerated(rri, writer->estate, slot, CMD_INSERT);
	if (constr->has_not_null || constr->num_check > 0)
		ExecConstraints(rri, slot, writer->estate);
}

/* ---- fast path ---- */

static void
flush(PlnTableWriter *writer)
{
	ResultRelInfo *rri = writer->target;
	int			i;

	if (writer->nslots == 0)
		return;
	MemoryContextSwitchTo(GetPerTupleMemoryContext(writer->estate));
	table_multi_insert(writer->rel, writer->slots, writer->nslots, writer->cid, 0,
					   writer->bistate);
	for (i = 0; i < writer->nslots; i++)
	{
		if (rri->ri_NumIndices > 0)
			list_free(ExecInsertIndexTuples(rri, writer->slots[i], writer->estate, false, false,
											NULL, NIL));
		note_row(writer, RelationGetRelid(writer->rel), writer->slots[i]);
		ExecClearTuple(writer->slots[i]);
	}
	MemoryContextSwitchTo(writer->context);
	ResetPerTupleExprContext(writer->estate);
	writer->nslots = 0;
	writer->batch_bytes = 0;
}

static void
put_batched(PlnTableWriter *writer, TupleTableSlot *slot)
{
	TupleTableSlot *own;
	Size		size;

	if (writer->nslots == writer->allocated)
		writer->slots[writer->allocated++] =
				MakeSingleTupleTableSlot(RelationGetDescr(writer->rel), &TTSOpsHeapTuple);
	own = writer->slots[writer->nslots++];
	ExecCopySlot(own, slot);
	check_row(writer, writer->target, own);
	size = ((HeapTupleTableSlot *) own)->tuple ? ((HeapTupleTableSlot *) own)->tuple->t_len : 0;
	writer->bytes += size;
	writer->batch_bytes += size;
	if (writer->nslots == BATCH_ROWS || writer->batch_bytes >= BATCH_BYTES)
		flush(writer);
}

/* ---- one by one ---- */

static void
put_single(PlnTableWriter *writer, TupleTableSlot *slot)
{
	EState	   *estate = writer->estate;
	ResultRelInfo *rri = writer->target;
	TupleTableSlot *row = writer->single;
	List	   *recheck = NIL;

	ResetPerTupleExprContext(estate);
	ExecCopySlot(row, slot);
	row->tts_tableOid = RelationGetRelid(writer->rel);
	if (writer->routing != NULL)
	{
		TupleConversionMap *map;

		rri = ExecFindPartition(writer->mtstate, writer->target, writer->routing, row, estate);
		if (rri != writer->target)
			rri->ri_TrigDesc = users_triggers(rri->ri_TrigDesc);
		map = rri->ri_RootToPartitionMap;
		if (map != NULL)
			row = execute_attr_map_slot(map->attrMap, row, rri->ri_PartitionTupleSlot);
		row->tts_tableOid = RelationGetRelid(rri->ri_RelationDesc);
	}
	if (rri->ri_TrigDesc != NULL && rri->ri_TrigDesc->trig_insert_before_row &&
		!ExecBRInsertTriggers(estate, rri, row))
		return;					/* the trigger said "do nothing" */
	check_row(writer, rri, row);
	if (rri->ri_RelationDesc->rd_rel->relispartition &&
		(writer->routing == NULL ||
		 (rri->ri_TrigDesc != NULL && rri->ri_TrigDesc->trig_insert_before_row)))
		ExecPartitionCheck(rri, row, estate, true);
	table_tuple_insert(rri->ri_RelationDesc, row, writer->cid, 0,
					   writer->routing ? NULL : writer->bistate);
	if (rri->ri_NumIndices > 0)
		recheck = ExecInsertIndexTuples(rri, row, estate, false, false, NULL, NIL);
	note_row(writer, RelationGetRelid(rri->ri_RelationDesc), row);
	ExecARInsertTriggers(estate, rri, row, recheck, writer->mtstate->mt_transition_capture);
	list_free(recheck);
}

void
pln_table_writer_put(PlnTableWriter *writer, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);

	if (writer->one_by_one)
		put_single(writer, slot);
	else
		put_batched(writer, slot);
	MemoryContextSwitchTo(old);
}

int64
pln_table_writer_bytes(PlnTableWriter *writer)
{
	return writer->bytes;
}

/* ---- the end ---- */

static List *
copy_appended(List *appended)
{
	List	   *copy = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, appended)
	{
		PlnAppended *part = palloc(sizeof(PlnAppended));

		*part = *(PlnAppended *) lfirst(lc);
		part->ranges = NIL;
		foreach(lc2, ((PlnAppended *) lfirst(lc))->ranges)
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
	List	   *appended;
	int			i;

	if (!writer->one_by_one)
		flush(writer);
	FreeBulkInsertState(writer->bistate);
	if (writer->has_triggers)
	{
		ExecASInsertTriggers(writer->estate, writer->target,
							 writer->mtstate->mt_transition_capture);
		AfterTriggerEndQuery(writer->estate);
	}
	if (writer->routing != NULL)
		ExecCleanupTupleRouting(writer->mtstate, writer->routing);
	for (i = 0; i < writer->allocated; i++)
		ExecDropSingleTupleTableSlot(writer->slots[i]);
	ExecResetTupleTable(writer->estate->es_tupleTable, false);
	writer->estate->es_tupleTable = NIL;
	ExecCloseResultRelations(writer->estate);
	ExecCloseRangeTableRelations(writer->estate);
	MemoryContextSwitchTo(old);
	appended = copy_appended(writer->appended);
	MemoryContextDelete(writer->context);
	return appended;
}

/*
 * append.c
 *	  The flow of a streaming table: rows that are new in its streams, once.
 *
 * Locks: the dataset, the target ROW EXCLUSIVE, every input ACCESS SHARE (by the
 * rewriter), then one snapshot (correctness A5).  Rows, quarantine, checkpoints, ledger and
 * the append log are written in the caller's transaction: all or nothing is exactly once.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/tablecmds.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "rewrite/rewriteHandler.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/debug_point.h"
#include "base/errors.h"
#include "base/ident.h"
#include "base/lock.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "flow/execute.h"
#include "flow/flow.h"
#include "ivm/wrap.h"
#include "source/file_ledger.h"
#include "source/stream_ref.h"
#include "write/receiver.h"
#include "write/table_writer.h"

/* What one source gives to this batch. */
typedef struct SourceBatch
{
	PlnStreamSource *source;
	PlnChanges *changes;		/* tables */
	PlnFrontier *frontier;		/* to store, NULL = leave as it is */
	PlnFileBatch *files;		/* file sources */
	bool		has_rows;
} SourceBatch;

static List *
stream_relids(Query *query)
{
	List	   *relids = NIL;
	ListCell   *lc;

	foreach(lc, pln_query_sources(query))
	{
		PlnStreamSource *source = lfirst(lc);

		if (source->kind == PLN_REF_STREAM_TABLE)
			relids = list_append_unique_oid(relids, source->relid);
	}
	return relids;
}

static bool
append_prepare(PlnFlowContext *cxt)
{
	List	   *reasons = NIL;
	bool		created;

	if (!OidIsValid(cxt->flow->view))
		return false;
	created = pln_flow_capture(cxt, stream_relids(pln_stored_query(cxt->flow->view)), true,
							   &reasons);
	if (reasons != NIL)
	{
		PlnReason  *reason = linitial(reasons);
		char	   *text = pstrdup(reason->text);
		char	   *remedy = strstr(text, ":  SELECT ");

		/* what the owner of the source can type is the hint */
		if (remedy != NULL)
		{
			*remedy = '\0';
			remedy += 3;
		}
		ereport(ERROR,
				(errcode(strcmp(reason->code, "CAPTURE_NOT_ALLOWED") == 0 ?
						 PLN_ERR_NOT_ALLOWED : PLN_ERR_NOT_BUILT),
				 errmsg("source of streaming table \"%s\" cannot be read as a stream: %s",
						pln_dataset_display_name(cxt->dataset), text),
				 remedy ? errhint("%s", remedy) : 0));
	}
	return created;
}

/* ---- full refresh ---- */

static void
truncate_target(PlnFlowContext *cxt)
{
	Relation	rel = table_open(cxt->dataset->relid, AccessExclusiveLock);
	List	   *relids = find_all_inheritors(cxt->dataset->relid, AccessExclusiveLock, NULL);
	List	   *rels = NIL;
	ListCell   *lc;
	PlnSecContext sec;

	pln_flow_check_owner(rel, cxt->owner);
	/* the guard on the table lets its owner through, and capture tells the readers */
	pln_enter_settings(&sec, list_make1("pipeline.allow_dml=on"));
	foreach(lc, relids)
	{
		Relation	part = lfirst_oid(lc) == cxt->dataset->relid ? rel :
			table_open(lfirst_oid(lc), NoLock);

		/* an open cursor would silently lose its rows */
		CheckTableNotInUse(part, "TRUNCATE");
		rels = lappend(rels, part);
	}
	ExecuteTruncateGuts(rels, relids, NIL, DROP_RESTRICT, true);
	pln_leave(&sec);
	foreach(lc, rels)
		table_close((Relation) lfirst(lc), NoLock);
	CommandCounterIncrement();
	foreach(lc, cxt->retype)
	{
		(void) pln_spi_user(lfirst(lc));
		CommandCounterIncrement();
	}
}

static void
reset_for_full_refresh(PlnFlowContext *cxt)
{
	truncate_target(cxt);
	if (OidIsValid(cxt->dataset->quarantine))
		pln_quarantine_reset(cxt->dataset->quarantine);
	pln_flow_reset(cxt->flow);
	CommandCounterIncrement();
}

/* ---- sources ---- */

static void
raise_not_append(PlnFlowContext *cxt, PlnChanges *changes)
{
	char	   *source = pln_relation_name(changes->relid);
	PlnReason  *reason = changes->reasons ? linitial(changes->reasons) : NULL;

	if (changes->kind == PLN_CHANGE_GENERAL)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("source %s of streaming table \"%s\" is not append-only: %s", source,
						pln_dataset_display_name(cxt->dataset),
						changes->offence ? changes->offence : "rows were updated or deleted"),
				 errdetail("A stream reads each row once and cannot take back rows; nothing was "
						 "read."),
				 errhint("Read it WITH (skipChangeCommits), or start over: "
						 "CALL pipeline.refresh(%s, full_refresh => true);",
						 pln_quote_literal(pln_dataset_display_name(cxt->dataset)))));
	ereport(ERROR,
			(errcode(PLN_ERR_STATE),
			 errmsg("streaming table \"%s\" lost its place in source %s",
					pln_dataset_display_name(cxt->dataset), source),
			 errdetail("%s", reason && reason->text ? reason->text : "Everything changed."),
			 errhint("CALL pipeline.refresh(%s, full_refresh => true);",
					 pln_quote_literal(pln_dataset_display_name(cxt->dataset)))));
}

/* Put a subquery in the place of the relation; Var numbers keep their meaning. */
static void
replace_by_subquery(RangeTblEntry *rte, Query *subquery)
{
	Alias	   *eref = makeAlias(rte->eref->aliasname, NIL);
	ListCell   *lc;

	foreach(lc, subquery->targetList)
		eref->colnames = lappend(eref->colnames,
								 makeString(pstrdup(lfirst_node(TargetEntry, lc)->resname)));
	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = subquery;
	rte->security_barrier = rte->securityQuals != NIL;
	rte->eref = eref;
	rte->relid = InvalidOid;
	rte->relkind = 0;
	rte->rellockmode = 0;
	rte->tablesample = NULL;
	rte->inh = false;
	rte->requiredPerms = 0;
	rte->checkAsUser = InvalidOid;
	rte->selectedCols = NULL;
}

static void
prepare_table(PlnFlowContext *cxt, SourceBatch *batch)
{
	PlnStreamSource *source = batch->source;
	PlnFrontier *frontier = pln_checkpoint_get(cxt->flow->id, source->relid, source->ordinal);

	/* the log that takes its place is not the owner's: SELECT is checked here (A8) */
	(void) ExecCheckRTPerms(list_make1(source->rte), true);
	if (frontier == NULL)
	{
		/* first read: the table as it is now */
		batch->frontier = pln_source_frontier_now(source->relid);
		batch->has_rows = !source->options.starting_latest;
		source->rte->tablesample = NULL;
		return;
	}
	batch->changes = pln_source_changes(source->relid, frontier, &source->options);
	if (batch->changes->kind == PLN_CHANGE_EVERYTHING ||
		(batch->changes->kind == PLN_CHANGE_GENERAL && batch->changes->offence != NULL))
		raise_not_append(cxt, batch->changes);
	batch->has_rows = batch->changes->kind != PLN_CHANGE_NONE;
	if (batch->has_rows)
		batch->frontier = batch->changes->frontier;
}

/* A source without new rows gives none: its rows must not be read again. */
static Query *
empty_query(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(rel);
	Query	   *query = makeNode(Query);
	int			i;

	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->jointree = makeFromExpr(NIL, makeBoolConst(false, false));
	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Const	   *null = att->attisdropped ?
			makeNullConst(INT4OID, -1, InvalidOid) :
			makeNullConst(att->atttypid, att->atttypmod, att->attcollation);

		query->targetList = lappend(query->targetList,
									makeTargetEntry((Expr *) null, i + 1,
													pstrdup(NameStr(att->attname)), false));
	}
	table_close(rel, NoLock);
	return query;
}

static void
substitute(SourceBatch *batch)
{
	PlnStreamSource *source = batch->source;

	if (source->kind == PLN_REF_STREAM_FILES)
		pln_file_batch_substitute(batch->files, source->rte);
	else if (source->kind != PLN_REF_STREAM_TABLE)
		return;
	else if (!batch->has_rows)
		replace_by_subquery(source->rte, empty_query(source->relid));
	else if (batch->changes != NULL)
		replace_by_subquery(source->rte, pln_source_delta_query(batch->changes));
}

static List *
prepare_sources(PlnFlowContext *cxt, Query *query, bool *has_rows)
{
	List	   *batches = NIL;
	ListCell   *lc;

	*has_rows = false;
	foreach(lc, pln_query_sources(query))
	{
		SourceBatch *batch = palloc0(sizeof(SourceBatch));

		batch->source = lfirst(lc);
		if (batch->source->kind == PLN_REF_STREAM_TABLE)
			prepare_table(cxt, batch);
		else if (batch->source->kind == PLN_REF_STREAM_FILES)
		{
			PlnOrigin	origin = {cxt->pipeline, cxt->update, cxt->dataset, cxt->flow,
			cxt->buffer};

			batch->files = pln_file_batch_open(cxt->flow->id, batch->source);
			batch->has_rows = pln_file_batch_count(batch->files) > 0;
			cxt->outcome->files += pln_file_batch_count(batch->files);
			pln_event_listing(&origin, batch->source->path,
							  pln_file_batch_listed(batch->files),
							  pln_file_batch_listing_ms(batch->files));
		}
		*has_rows |= batch->has_rows;
		batches = lappend(batches, batch);
	}
	return batches;
}

static void
record_progress(PlnFlowContext *cxt, List *batches)
{
	ListCell   *lc;

	foreach(lc, batches)
	{
		SourceBatch *batch = lfirst(lc);

		if (batch->files != NULL && pln_file_batch_has_news(batch->files))
			pln_file_batch_record(batch->files, cxt->flow->id, cxt->update->id);
		if (batch->frontier != NULL)
			pln_checkpoint_set(cxt->flow->id, batch->source->relid, batch->source->ordinal,
							   batch->frontier);
	}
	cxt->flow->batch_id++;
	pln_flow_save(cxt->flow);
}

/* ---- writing ---- */

static void
record_appends(PlnFlowContext *cxt, List *appended)
{
	ListCell   *lc;

	foreach(lc, appended)
	{
		PlnAppended *part = lfirst(lc);
		List	   *ranges = NIL;
		ListCell   *lc2;

		foreach(lc2, part->ranges)
		{
			PlnBlockRange *range = lfirst(lc2);

			ranges = lappend_int(ranges, (int) range->first);
			ranges = lappend_int(ranges, (int) range->last);
		}
		if (part->rows > 0)
			pln_append_log_record(part->relid, part->row_xid, part->rows, ranges);
	}
}

static void
put_row(void *writer, TupleTableSlot *slot)
{
	pln_table_writer_put(writer, slot);
}

/*
 * Columns that the query does not give get their default or the next value of their
 * identity: a SELECT around the query adds them.
 */
static Query *
add_defaults(Query *query, Relation target)
{
	TupleDesc	desc = RelationGetDescr(target);
	List	   *extra = NIL;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		bool		given = false;
		Node	   *value;
		ListCell   *lc;

		if (att->attisdropped || att->attgenerated != '\0')
			continue;
		foreach(lc, query->targetList)
		{
			TargetEntry *te = lfirst_node(TargetEntry, lc);

			given |= !te->resjunk && strcmp(te->resname, NameStr(att->attname)) == 0;
		}
		value = given ? NULL : build_column_default(target, att->attnum);
		if (value != NULL)
			extra = lappend(extra, makeTargetEntry((Expr *) value, 0,
												   pstrdup(NameStr(att->attname)), false));
	}
	return extra == NIL ? query : pln_query_append(query, extra);
}

static void
write_rows(PlnFlowContext *cxt, Relation target, Query *query)
{
	EState	   *estate = CreateExecutorState();
	PlnReceiverSpec spec;
	DestReceiver *receiver;
	List	   *appended;

	query = add_defaults(query, target);
	memset(&spec, 0, sizeof(spec));
	spec.target_desc = RelationGetDescr(target);
	spec.target_attno = pln_map_columns(query, spec.target_desc, &spec.ncolumns);
	if (cxt->expectations != NIL)
		cxt->expect = pln_expect_compile(cxt->expectations, spec.target_desc, estate);
	spec.expectations = cxt->expect;
	if (OidIsValid(cxt->dataset->quarantine))
		spec.quarantine = pln_quarantine_open(cxt->dataset->quarantine, spec.target_desc,
											  cxt->update->id, estate);
	spec.writer = pln_table_writer_open(target, estate);
	spec.put_row = put_row;
	receiver = pln_receiver_create(&spec);
	pln_execute_query(query, receiver, false);
	cxt->outcome->rows_out = pln_receiver_rows_out(receiver);
	pln_debug_point("rows written");
	if (spec.quarantine != NULL)
		pln_quarantine_close(spec.quarantine);
	appended = pln_table_writer_close(spec.writer);
	pln_flow_note_counts(cxt);
	if (cxt->expect != NULL)
		pln_expect_finish(cxt->expect, pln_dataset_display_name(cxt->dataset));
	record_appends(cxt, appended);
	FreeExecutorState(estate);
}

static void
append_run(PlnFlowContext *cxt)
{
	PlnSecContext sec;
	Relation	target;
	Query	   *query;
	List	   *batches;
	bool		has_rows;
	ListCell   *lc;

	pln_lock_dataset(cxt->dataset->id);
	pln_enter_owner(&sec, cxt->owner, cxt->pipeline->settings);
	cxt->outcome->refresh_type = "APPEND";
	if (cxt->full_refresh)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		reset_for_full_refresh(cxt);
		PopActiveSnapshot();
		cxt->outcome->refresh_type = "FULL_RECOMPUTE";
		cxt->outcome->refresh_reason = "full refresh";
	}
	if (!OidIsValid(cxt->flow->view))
	{
		cxt->outcome->refresh_type = "NO_OP";	/* an empty target without a flow */
		pln_leave(&sec);
		return;
	}
	target = table_open(cxt->dataset->relid, RowExclusiveLock);
	pln_flow_check_owner(target, cxt->owner);
	query = pln_rewrite_query(pln_stored_query(cxt->flow->view));
	PushActiveSnapshot(GetTransactionSnapshot());
	pln_check_versions(query);
	batches = prepare_sources(cxt, query, &has_rows);
	if (has_rows)
	{
		foreach(lc, batches)
			substitute(lfirst(lc));
		write_rows(cxt, target, query);
	}
	else if (!cxt->full_refresh)
		cxt->outcome->refresh_type = "NO_OP";
	foreach(lc, batches)
	{
		SourceBatch *batch = lfirst(lc);

		has_rows |= batch->frontier != NULL ||
			(batch->files != NULL && pln_file_batch_has_news(batch->files));
	}
	if (has_rows)
		record_progress(cxt, batches);
	PopActiveSnapshot();
	table_close(target, NoLock);
	pln_leave(&sec);
	pln_debug_point("checkpoint written");
}

/* ---- replay ---- */

typedef struct Replay
{
	PlnTableWriter *writer;
	PlnExpectSet *expect;
	TupleTableSlot *row;		/* of the dataset */
	AttrNumber *attno;			/* per attribute of the dataset: of the quarantine */
	int64		replayed;
	int64		still_failing;
} Replay;

/* Rows to look at again: open ones that match the owner's condition, locked against repairs. */
static List *
open_rows(Oid quarantine, const char *condition)
{
	List	   *tids = NIL;
	Relation	rel = table_open(quarantine, RowExclusiveLock);
	PlnExpectationRow chosen;
	PlnExpectSet *set;
	EState	   *estate = CreateExecutorState();
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan;
	AttrNumber	replayed_at = get_attnum(quarantine, "_replayed_at");

	memset(&chosen, 0, sizeof(chosen));
	chosen.name = "condition";
	chosen.condition = unconstify(char *, condition);
	chosen.action = PLN_ACTION_DROP;
	set = pln_expect_compile(list_make1(&chosen), RelationGetDescr(rel), estate);
	scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		open;

		CHECK_FOR_INTERRUPTS();
		(void) slot_getattr(slot, replayed_at, &open);
		if (open && pln_expect_eval(set, slot) == PLN_ROW_KEEP)
		{
			ItemPointer tid = palloc(sizeof(ItemPointerData));

			ItemPointerCopy(&slot->tts_tid, tid);
			tids = lappend(tids, tid);
		}
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	table_close(rel, NoLock);
	return tids;
}

static void
mark_replayed(Oid quarantine, ItemPointer tid)
{
	char	   *sql = psprintf("UPDATE %s SET _replayed_at = pg_catalog.now() "
							   "WHERE ctid = '(%u,%u)'::pg_catalog.tid AND _replayed_at IS NULL",
							   pln_relation_name(quarantine),
							   ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid));

	if (pln_spi_user(sql) != 1)
		ereport(ERROR,
				(errcode(PLN_ERR_RETRY),
				 errmsg("a row of \"%s\" was changed while it was replayed",
						pln_relation_name(quarantine)),
				 errhint("Try again.")));
}

static void
replay_one(Replay *replay, Relation quarantine, ItemPointer tid, TupleTableSlot *stored)
{
	TupleDesc	desc = replay->row->tts_tupleDescriptor;
	int			i;

	if (!table_tuple_fetch_row_version(quarantine, tid, GetActiveSnapshot(), stored))
		elog(ERROR, "row of quarantine table vanished");
	slot_getallattrs(stored);
	ExecClearTuple(replay->row);
	memset(replay->row->tts_isnull, true, sizeof(bool) * desc->natts);
	for (i = 0; i < desc->natts; i++)
	{
		if (replay->attno[i] == InvalidAttrNumber)
			continue;
		replay->row->tts_values[i] = stored->tts_values[replay->attno[i] - 1];
		replay->row->tts_isnull[i] = stored->tts_isnull[replay->attno[i] - 1];
	}
	ExecStoreVirtualTuple(replay->row);
	if (pln_expect_eval(replay->expect, replay->row) != PLN_ROW_KEEP)
	{
		replay->still_failing++;
		return;
	}
	pln_table_writer_put(replay->writer, replay->row);
	replay->replayed++;
	mark_replayed(RelationGetRelid(quarantine), tid);
}

static List *
replay_rows(PlnFlowContext *cxt, Relation target, const char *condition, int64 *replayed,
			int64 *still_failing)
{
	Oid			quarantine = cxt->dataset->quarantine;
	List	   *tids = open_rows(quarantine, condition);
	Relation	rel = table_open(quarantine, RowExclusiveLock);
	EState	   *estate = CreateExecutorState();
	TupleDesc	desc = RelationGetDescr(target);
	TupleTableSlot *stored = table_slot_create(rel, NULL);
	Replay		replay;
	List	   *appended;
	ListCell   *lc;
	int			i;

	memset(&replay, 0, sizeof(replay));
	replay.expect = pln_expect_compile(cxt->expectations, desc, estate);
	replay.row = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	replay.attno = palloc0(sizeof(AttrNumber) * Max(desc->natts, 1));
	for (i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			replay.attno[i] = get_attnum(quarantine, NameStr(TupleDescAttr(desc, i)->attname));
	}
	replay.writer = pln_table_writer_open(target, estate);
	foreach(lc, tids)
	{
		CHECK_FOR_INTERRUPTS();
		replay_one(&replay, rel, lfirst(lc), stored);
	}
	appended = pln_table_writer_close(replay.writer);
	ExecDropSingleTupleTableSlot(stored);
	ExecDropSingleTupleTableSlot(replay.row);
	FreeExecutorState(estate);
	table_close(rel, NoLock);
	*replayed = replay.replayed;
	*still_failing = replay.still_failing;
	return appended;
}

void
pln_flow_replay(PlnDataset *dataset, const char *condition, int64 *replayed,
				int64 *still_failing)
{
	PlnPipeline *pipeline = pln_pipeline_get(dataset->pipeline_id);
	PlnUpdate  *update;
	PlnOutcome	outcome;
	PlnFlowContext cxt;
	PlnOrigin	origin;
	PlnSecContext sec;
	Relation	target;
	List	   *appended;
	List	   *flows = pln_flows_of_dataset(dataset->id);

	pln_lock_dataset(dataset->id);
	memset(&cxt, 0, sizeof(cxt));
	memset(&outcome, 0, sizeof(outcome));
	cxt.dataset = dataset;
	cxt.expectations = pln_expectations_of_dataset(dataset->id);
	update = pln_update_start(pipeline->id, "USER_ACTION", false, false, NIL);
	memset(&origin, 0, sizeof(origin));
	origin.pipeline = pipeline;
	origin.update = update;
	pln_event_create_update(&origin);
	pln_event_update_progress(&origin, "RUNNING");
	pln_enter_owner(&sec, pipeline->owner, pipeline->settings);
	target = table_open(dataset->relid, RowExclusiveLock);
	pln_flow_check_owner(target, pipeline->owner);
	PushActiveSnapshot(GetTransactionSnapshot());
	appended = replay_rows(&cxt, target, condition, replayed, still_failing);
	record_appends(&cxt, appended);
	PopActiveSnapshot();
	table_close(target, NoLock);
	pln_leave(&sec);
	origin.dataset = dataset;
	origin.flow = flows ? linitial(flows) : NULL;
	outcome.dataset_id = dataset->id;
	outcome.dataset_name = pln_dataset_display_name(dataset);
	outcome.state = "COMPLETED";
	outcome.refresh_type = "REPLAY";
	outcome.rows_out = *replayed;
	outcome.rows_replayed = *replayed;
	pln_event_flow_progress(&origin, "RUNNING", &outcome);
	pln_update_outcome(update, &outcome);
	origin.dataset = NULL;
	origin.flow = NULL;
	pln_event_update_progress(&origin, "COMPLETED");
	pln_update_end(update, "COMPLETED", NULL);
}

char *
pln_append_loss(PlnDataset *dataset)
{
	StringInfoData text;
	List	   *flows = pln_flows_of_dataset(dataset->id);
	int64		replayed = 0;
	int64		gone = 0;
	ListCell   *lc;

	foreach(lc, flows)
		gone += pln_file_ledger_gone(((PlnFlow *) lfirst(lc))->id);
	if (OidIsValid(dataset->quarantine))
		replayed = pln_quarantine_replayed(dataset->quarantine);
	if (gone == 0 && replayed == 0)
		return NULL;
	initStringInfo(&text);
	if (gone > 0)
		appendStringInfo(&text, INT64_FORMAT " files that were read are gone. ", gone);
	if (replayed > 0)
		appendStringInfo(&text, INT64_FORMAT " rows came from the quarantine. ", replayed);
	return text.data;
}

const PlnFlowOps pln_append_flow = {
	"APPEND", false, append_prepare, append_run
};

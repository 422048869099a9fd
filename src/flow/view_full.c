/*
 * view_full.c
 *	  The flow of a materialized view: full recompute, built beside and swapped; nothing at
 *	  all when no source changed and the answer cannot change by itself.
 *
 * Locks: the dataset, every input ACCESS SHARE, then one snapshot (A5); the view EXCLUSIVE
 * while it is built, ACCESS EXCLUSIVE for the swap (matview_writer.c).
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/debug_point.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/secctx.h"
#include "flow/execute.h"
#include "flow/flow.h"
#include "ivm/classify.h"
#include "source/stream_ref.h"
#include "write/matview_writer.h"
#include "write/receiver.h"

/* The query to run: with counting, the one without the DROP conditions. */
static Query *
view_query(PlnFlowContext *cxt)
{
	return pln_stored_query(OidIsValid(cxt->flow->view) ? cxt->flow->view :
							cxt->dataset->relid);
}

static bool
view_prepare(PlnFlowContext *cxt)
{
	Query	   *query = pln_rewrite_query(view_query(cxt));
	List	   *reasons = NIL;

	/* a source that cannot be captured only costs the NO_OP; the reason is shown by run */
	return pln_flow_capture(cxt, pln_query_inputs(query, cxt->dataset->relid), false, &reasons);
}

static PlnReason *
make_reason(const char *code, const char *text)
{
	PlnReason  *reason = palloc0(sizeof(PlnReason));

	reason->code = code;
	reason->text = pstrdup(text);
	return reason;
}

/*
 * Why the view must be computed anew; NIL when it is known to be as it would be.  Collects
 * the frontiers to store.
 */
static List *
reasons_to_run(PlnFlowContext *cxt, Query *query, List *inputs, List **frontiers)
{
	List	   *reasons = NIL;
	PlnReason  *reason;
	ListCell   *lc;
	ListCell   *lc2;
	Relation	rel;

	if (cxt->full_refresh)
		reasons = lappend(reasons, make_reason("FULL_REFRESH", "full refresh"));
	if (!cxt->dataset->filled)
		reasons = lappend(reasons, cxt->dataset->relfilenode == InvalidOid ?
						  make_reason("CHANGE_SET_MISSING", "first fill") :
						  make_reason("QUERY_FINGERPRINT_CHANGED", "the definition changed"));
	rel = relation_open(cxt->dataset->relid, AccessShareLock);
	pln_flow_check_owner(rel, cxt->owner);
	if (cxt->dataset->filled && rel->rd_rel->relfilenode != cxt->dataset->relfilenode)
		reasons = lappend(reasons, make_reason("DATA_HAS_CHANGED",
											   "its storage was replaced by another command"));
	relation_close(rel, NoLock);
	reason = pln_classify_self_changing(query);
	/* the conditions of expectations that drop rows stand only in the view itself */
	if (reason == NULL && OidIsValid(cxt->flow->view))
		reason = pln_classify_self_changing(pln_stored_query(cxt->dataset->relid));
	if (reason != NULL)
		reasons = lappend(reasons, reason);
	foreach(lc, inputs)
	{
		Oid			relid = lfirst_oid(lc);
		PlnFrontier *frontier = pln_checkpoint_get(cxt->flow->id, relid, 0);
		PlnChanges *changes = pln_source_changes(relid, frontier, NULL);

		*frontiers = lappend(*frontiers, changes->frontier);
		if (changes->kind == PLN_CHANGE_NONE || !cxt->dataset->filled)
			continue;
		if (changes->reasons == NIL)
			reasons = lappend(reasons, make_reason("SOURCE_CHANGED",
												   psprintf("%s changed",
															get_rel_name(relid))));
		foreach(lc2, changes->reasons)
		{
			PlnReason  *found = lfirst(lc2);

			reasons = lappend(reasons, make_reason(found->code,
												   psprintf("%s: %s", get_rel_name(relid),
															found->text)));
		}
	}
	return reasons;
}

static void
put_row(void *writer, TupleTableSlot *slot)
{
	pln_matview_writer_put(writer, slot);
}

static void
recompute(PlnFlowContext *cxt, Query *query)
{
	EState	   *estate = CreateExecutorState();
	Relation	rel = table_open(cxt->dataset->relid, AccessShareLock);
	TupleDesc	desc = CreateTupleDescCopyConstr(RelationGetDescr(rel));
	PlnReceiverSpec spec;
	DestReceiver *receiver;

	table_close(rel, NoLock);
	memset(&spec, 0, sizeof(spec));
	spec.target_desc = desc;
	spec.target_attno = pln_map_positions(query, desc, &spec.ncolumns);
	if (cxt->expectations != NIL)
		cxt->expect = pln_expect_compile(cxt->expectations, desc, estate);
	spec.expectations = cxt->expect;
	if (OidIsValid(cxt->dataset->quarantine))
	{
		/* a recompute checks every row again: open rows are those of this run */
		pln_quarantine_reset(cxt->dataset->quarantine);
		spec.quarantine = pln_quarantine_open(cxt->dataset->quarantine, desc, cxt->update->id,
											  estate);
	}
	/* parallel plans forbid taking an xid once they run */
	(void) GetCurrentTransactionId();
	spec.writer = pln_matview_writer_open(cxt->dataset->relid);
	spec.put_row = put_row;
	receiver = pln_receiver_create(&spec);
	pln_execute_query(query, receiver, spec.quarantine == NULL);
	cxt->outcome->rows_out = pln_receiver_rows_out(receiver);
	pln_debug_point("rows written");
	if (spec.quarantine != NULL)
		pln_quarantine_close(spec.quarantine);
	pln_flow_note_counts(cxt);
	if (cxt->expect != NULL)
		pln_expect_finish(cxt->expect, pln_dataset_display_name(cxt->dataset));
	cxt->dataset->relfilenode = pln_matview_writer_close(spec.writer);
	cxt->dataset->filled = true;
	FreeExecutorState(estate);
}

static void
store_frontiers(PlnFlowContext *cxt, List *inputs, List *frontiers)
{
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, inputs, lc2, frontiers)
	{
		if (lfirst(lc2) != NULL)
			pln_checkpoint_set(cxt->flow->id, lfirst_oid(lc), 0, lfirst(lc2));
	}
}

static bool
same_hash(const char *before, const char *now)
{
	return before != NULL && strcmp(before, now) == 0;
}

static void
view_run(PlnFlowContext *cxt)
{
	PlnSecContext sec;
	Query	   *query;
	List	   *inputs;
	List	   *frontiers = NIL;
	char	   *hash;

	pln_lock_dataset(cxt->dataset->id);
	pln_enter_owner(&sec, cxt->owner, cxt->pipeline->settings);
	query = pln_rewrite_query(view_query(cxt));
	inputs = pln_query_inputs(query, cxt->dataset->relid);
	/* also when nothing changed: a right that was revoked ends the refresh */
	pln_check_rights(query);
	PushActiveSnapshot(GetTransactionSnapshot());
	pln_check_versions(query);
	hash = pln_query_hash(query);
	cxt->reasons = reasons_to_run(cxt, query, inputs, &frontiers);
	if (cxt->reasons == NIL && !same_hash(cxt->flow->query_hash, hash))
		cxt->reasons = list_make1(make_reason("QUERY_FINGERPRINT_CHANGED",
											  "a view or policy that it reads through changed"));
	if (cxt->reasons == NIL)
		cxt->outcome->refresh_type = "NO_OP";
	else
	{
		cxt->outcome->refresh_type = "FULL_RECOMPUTE";
		cxt->outcome->refresh_reason = ((PlnReason *) linitial(cxt->reasons))->text;
		recompute(cxt, query);
		store_frontiers(cxt, inputs, frontiers);
		pln_source_record_everything(cxt->dataset->relid, "FULL_RECOMPUTE");
		cxt->flow->batch_id++;
		cxt->flow->query_hash = hash;
		pln_flow_save(cxt->flow);
		pln_dataset_save(cxt->dataset);
	}
	PopActiveSnapshot();
	pln_leave(&sec);
	pln_debug_point("checkpoint written");
}

const PlnFlowOps pln_view_full_flow = {
	"MATERIALIZED_VIEW", true, view_prepare, view_run
};

const PlnFlowOps *
pln_flow_ops(const PlnDataset *dataset)
{
	return dataset->kind == PLN_MATERIALIZED_VIEW ? &pln_view_full_flow : &pln_append_flow;
}

/*
 * execute.c
 *	  From a stored query to rows in a receiver; shared by the kinds of flow.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/prs2lock.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/errors.h"
#include "base/ident.h"
#include "expect/inline_check.h"
#include "flow/execute.h"
#include "source/source.h"
#include "source/stream_ref.h"

void
pln_flow_check_owner(Relation rel, Oid owner)
{
	if (rel->rd_rel->relowner != owner)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_ALLOWED),
				 errmsg("\"%s\" belongs to role \"%s\", but its pipeline to \"%s\"",
						pln_relation_name(RelationGetRelid(rel)),
						GetUserNameFromId(rel->rd_rel->relowner, true),
						GetUserNameFromId(owner, true)),
				 errdetail("A pipeline runs with its owner's rights; only his own datasets may be "
						   "written with them."),
				 errhint("ALTER %s %s OWNER TO %s;",
						 rel->rd_rel->relkind == RELKIND_MATVIEW ? "MATERIALIZED VIEW" : "TABLE",
						 pln_relation_name(RelationGetRelid(rel)),
						 quote_identifier(GetUserNameFromId(owner, false)))));
}

Query *
pln_rewrite_query(Query *query)
{
	List	   *rewritten;

	AcquireRewriteLocks(query, true, false);
	rewritten = QueryRewrite(query);
	PLN_ENSURE(list_length(rewritten) == 1);
	return linitial_node(Query, rewritten);
}

static bool
rights_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		(void) ExecCheckRTPerms(((Query *) node)->rtable, true);
		return query_tree_walker((Query *) node, rights_walker, context, 0);
	}
	return expression_tree_walker(node, rights_walker, context);
}

void
pln_check_rights(Query *query)
{
	(void) rights_walker((Node *) query, NULL);
}

static bool
versions_walker(Node *node, void *context)
{
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, versions_walker, context);
	foreach(lc, ((Query *) node)->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_RELATION)
			pln_source_check_version(rte->relid, rte->inh);
	}
	return query_tree_walker((Query *) node, versions_walker, context, 0);
}

void
pln_check_versions(Query *query)
{
	if (IsolationUsesXactSnapshot())
		(void) versions_walker((Node *) query, NULL);
}

char *
pln_query_hash(Query *query)
{
	return pln_hash_text(nodeToString(query));
}

List *
pln_query_inputs(Query *query, Oid self)
{
	return list_delete_oid(pln_query_relations(query), self);
}

void
pln_execute_query(Query *query, DestReceiver *dest, bool parallel_ok)
{
	PlannedStmt *plan;
	QueryDesc  *desc;

	CHECK_FOR_INTERRUPTS();
	pln_inline_reset();
	plan = pg_plan_query(query, "", parallel_ok ? CURSOR_OPT_PARALLEL_OK : 0, NULL);
	PushCopiedSnapshot(GetActiveSnapshot());
	UpdateActiveSnapshotCommandId();
	desc = CreateQueryDesc(plan, "", GetActiveSnapshot(), InvalidSnapshot, dest, NULL, NULL, 0);
	ExecutorStart(desc, 0);
	ExecutorRun(desc, ForwardScanDirection, 0L, true);
	ExecutorFinish(desc);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
	PopActiveSnapshot();
	pln_inline_finish();
}

AttrNumber *
pln_map_columns(Query *query, TupleDesc desc, int *ncolumns)
{
	AttrNumber *map = palloc0(sizeof(AttrNumber) * Max(list_length(query->targetList), 1));
	ListCell   *lc;
	int			n = 0;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);
		int			i;

		if (te->resjunk)
			continue;
		for (i = 0; i < desc->natts; i++)
		{
			Form_pg_attribute att = TupleDescAttr(desc, i);

			if (!att->attisdropped && strcmp(NameStr(att->attname), te->resname) == 0)
				map[n] = att->attnum;
		}
		if (map[n] == 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of the query is missing in its table", te->resname),
					 errhint("Run the pipeline, or repeat CREATE OR REFRESH: "
							 "it adds the column.")));
		n++;
	}
	*ncolumns = n;
	return map;
}

AttrNumber *
pln_map_positions(Query *query, TupleDesc desc, int *ncolumns)
{
	AttrNumber *map = palloc0(sizeof(AttrNumber) * Max(list_length(query->targetList), 1));
	ListCell   *lc;

	*ncolumns = 0;
	foreach(lc, query->targetList)
	{
		if (lfirst_node(TargetEntry, lc)->resjunk)
			continue;
		map[*ncolumns] = *ncolumns + 1;
		(*ncolumns)++;
	}
	PLN_ENSURE(*ncolumns == desc->natts);
	return map;
}

void
pln_flow_note_counts(PlnFlowContext *cxt)
{
	cxt->outcome->quality = pln_inline_counts();
	cxt->outcome->rows_dropped = pln_inline_dropped();
	if (cxt->expect == NULL)
		return;
	cxt->outcome->quality = list_concat(pln_expect_counts(cxt->expect), cxt->outcome->quality);
	cxt->outcome->rows_dropped += pln_expect_dropped(cxt->expect);
	cxt->outcome->rows_quarantined = pln_expect_quarantined(cxt->expect);
}

bool
pln_flow_capture(PlnFlowContext *cxt, List *relids, bool stream, List **reasons)
{
	bool		created = false;
	ListCell   *lc;

	foreach(lc, relids)
	{
		bool		made = false;
		PlnReason  *reason = pln_capture_ensure(lfirst_oid(lc),
												stream ? PLN_CAPTURE_STREAM : PLN_CAPTURE_MARK,
												NULL, cxt->owner, &made);

		if (reason != NULL)
			*reasons = lappend(*reasons, reason);
		created |= made;
	}
	return created;
}

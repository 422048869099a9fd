/*
 * define_flow.c
 *	  The view that keeps a flow's query.
 *
 * A real view in pipeline_data, owned by the dataset's owner: renames, dependencies and
 * dumps are the server's work.  It is named after its dataset, because that is the name in
 * core's refusal to drop a table that the flow reads.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/tablecmds.h"
#include "commands/view.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

#include "analyze/define_internal.h"
#include "base/errors.h"
#include "base/ident.h"
#include "base/secctx.h"

void
pln_drop_flow_view(PlnFlow *flow)
{
	ObjectAddress view;

	if (!OidIsValid(flow->view) || get_rel_relkind(flow->view) != RELKIND_VIEW)
		return;
	ObjectAddressSet(view, RelationRelationId, flow->view);
	performDeletion(&view, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	CommandCounterIncrement();
	flow->view = InvalidOid;
}

static Oid
create_view(PlnProgram *program, PlnNode *node, Query *query)
{
	CreateStmt *create = makeNode(CreateStmt);
	Oid			nsp = get_namespace_oid("pipeline_data", false);
	char	   *base = psprintf("%s.%s", node->schema, node->name);
	ObjectAddress view;
	ObjectAddress table;
	PlnSecContext ctx;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);

		if (!te->resjunk)
			create->tableElts = lappend(create->tableElts,
										makeColumnDef(te->resname, exprType((Node *) te->expr),
													  exprTypmod((Node *) te->expr),
													  exprCollation((Node *) te->expr)));
	}
	create->relation = makeRangeVar("pipeline_data", pln_choose_name(base, " flow", nsp), -1);
	create->oncommit = ONCOMMIT_NOOP;
	/* only the extension's owner may create there; the view belongs to the dataset's owner */
	pln_enter_metadata(&ctx);
	view = DefineRelation(create, RELKIND_VIEW, program->owner, NULL, NULL);
	CommandCounterIncrement();
	StoreViewQuery(view.objectId, query, false);
	CommandCounterIncrement();
	/* DROP TABLE dataset takes its flow along */
	ObjectAddressSet(table, RelationRelationId, node->dataset->relid);
	recordDependencyOn(&view, &table, DEPENDENCY_AUTO);
	pln_leave(&ctx);
	pln_revoke_all(view.objectId);
	return view.objectId;
}

Oid
pln_define_flow_view(PlnProgram *program, PlnNode *node, Query *query)
{
	PlnFlow    *flow = node->flow;
	char	   *fingerprint = pln_define_fingerprint(program, query);
	bool		same = node->decl->dataset_kind == PLN_STREAMING_TABLE &&
		node->dataset->fingerprint != NULL &&
		strcmp(fingerprint, node->dataset->fingerprint) == 0;

	if (same && query != NULL && OidIsValid(flow->view) &&
		get_rel_relkind(flow->view) == RELKIND_VIEW)
		return flow->view;
	pln_drop_flow_view(flow);
	if (query != NULL)
		flow->view = create_view(program, node, query);
	pln_flow_save(flow);
	if (node->decl->dataset_kind == PLN_STREAMING_TABLE)
	{
		if (node->dataset->fingerprint != NULL && !node->created)
			pln_define_note(program, node, "query changed",
							"rows not read yet get the new query, old rows stay");
		node->dataset->fingerprint = fingerprint;
		pln_dataset_save(node->dataset);
	}
	return flow->view;
}

/*
 * define_matview.c
 *	  The relation behind a materialized view, and published views.
 *
 * Rows that a DROP or QUARANTINE expectation rejects are not part of the view: its own
 * stored query holds the conditions, so that core's REFRESH, a restore and pipeline.verify
 * agree with us (correctness B5).  The unfiltered query is kept beside it for counting.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/view.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "analyze/define_internal.h"
#include "analyze/query.h"
#include "base/errors.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "expect/expect.h"
#include "ivm/wrap.h"
#include "source/source.h"
#include "write/matview_ddl.h"

/* Names and types of the column list, where it has them. */
static Query *
apply_column_list(PlnProgram *program, PlnNode *node, Query *query)
{
	int			n = list_length(node->decl->columns);
	char	  **names;
	Oid		   *types;
	int32	   *typmods;
	Oid		   *collations;
	ListCell   *lc;
	int			i = 0;

	if (n == 0)
		return query;
	if (n != pln_query_desc(query)->natts)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("the column list of \"%s\" has %d columns, its query %d",
						node->name, n, pln_query_desc(query)->natts),
				 pln_script_errposition(program->script, node->decl->name->location)));
	names = palloc(sizeof(char *) * n);
	types = palloc(sizeof(Oid) * n);
	typmods = palloc(sizeof(int32) * n);
	collations = palloc(sizeof(Oid) * n);
	foreach(lc, node->decl->columns)
	{
		PlnColumnDef *def = lfirst(lc);
		TargetEntry *te = list_nth(query->targetList, i);

		if (def->not_null || def->is_identity || def->generated || def->default_expr)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("a materialized view has no NOT NULL, identity, generated or default "
							 "columns"),
					 errhint("For NOT NULL write CONSTRAINT c EXPECT (%s IS NOT NULL) ON "
							 "VIOLATION FAIL UPDATE.",
							 quote_identifier(def->name)),
					 pln_script_errposition(program->script, def->location)));
		names[i] = def->name;
		types[i] = exprType((Node *) te->expr);
		typmods[i] = exprTypmod((Node *) te->expr);
		collations[i] = exprCollation((Node *) te->expr);
		if (def->type != NULL)
		{
			typenameTypeIdAndMod(NULL, def->type, &types[i], &typmods[i]);
			collations[i] = get_typcollation(types[i]);
		}
		i++;
	}
	return pln_query_coerce(query, n, names, types, typmods, collations);
}

/* The conditions that are part of the content, analysed; origins other than the source too. */
static List *
content_conditions(PlnProgram *program, PlnNode *node, TupleDesc desc)
{
	List	   *quals = NIL;
	ListCell   *lc;

	foreach(lc, node->decl->expectations)
	{
		PlnExpectationDef *def = lfirst(lc);
		PlnErrorScope scope;

		if (def->rules_table != NULL ||
			(def->action != PLN_ACTION_DROP && def->action != PLN_ACTION_QUARANTINE))
			continue;
		pln_error_scope_begin(&scope, program->script, def->condition);
		quals = lappend(quals, pln_expect_analyze(def->name, def->condition, desc));
		pln_error_scope_end(&scope);
	}
	if (node->dataset->id == 0)
		return quals;
	foreach(lc, pln_expectations_of_dataset(node->dataset->id))
	{
		PlnExpectationRow *row = lfirst(lc);

		if (strcmp(row->origin, "source") != 0 &&
			(row->action == PLN_ACTION_DROP || row->action == PLN_ACTION_QUARANTINE))
			quals = lappend(quals, pln_expect_analyze(row->name, pln_sql_make(row->condition),
													  desc));
	}
	return quals;
}

static void
create_matview(PlnProgram *program, PlnNode *node, Query *query)
{
	node->dataset->relid = pln_matview_create(node->schema, node->stored_name, query, NIL);
	CommandCounterIncrement();
	if (node->decl->is_private)
		pln_define_move_private(node, "MATERIALIZED VIEW");
	if (node->decl->is_private)
		pln_revoke_all(node->dataset->relid);
	node->created = true;
	pln_source_register_own(node->dataset->relid, false);
	pln_define_note(program, node, "new", "created, filled by this update");
}

void
pln_define_matview(PlnProgram *program, PlnNode *node, Query *query)
{
	Query	   *content;
	List	   *quals;
	char	   *fingerprint;
	PlnDataset *dataset = node->dataset;

	query = apply_column_list(program, node, query);
	quals = content_conditions(program, node, pln_query_desc(query));
	content = quals ? pln_query_filter(copyObject(query), quals) : query;
	fingerprint = pln_define_fingerprint(program, content);
	if (!OidIsValid(dataset->relid))
	{
		create_matview(program, node, copyObject(content));
		dataset->filled = false;
	}
	else if (dataset->fingerprint == NULL || strcmp(dataset->fingerprint, fingerprint) != 0)
	{
		bool		appended = pln_matview_replace_query(dataset->relid, copyObject(content));

		pln_define_note(program, node, appended ? "columns added" : "query changed",
						"one full rebuild");
		dataset->filled = false;
	}
	else
		return;
	dataset->fingerprint = fingerprint;
	CommandCounterIncrement();
	if (node->flow != NULL)
		pln_drop_flow_view(node->flow);
	if (quals != NIL)
	{
		/* the flow row must exist before its view */
		if (node->flow == NULL)
			node->flow = palloc0(sizeof(PlnFlow));
		node->flow->view = InvalidOid;
		node->unfiltered = query;
	}
}

/* Core says which column; we say which view, and the way out. */
static void
replace_view_context(void *arg)
{
	PlnNode    *node = arg;

	errcontext("view \"%s\" of the pipeline", pln_node_display_name(node));
	if (geterrcode() == ERRCODE_INVALID_TABLE_DEFINITION)
		errhint("DROP VIEW %s; the next update makes it anew.", pln_node_display_name(node));
}

void
pln_define_view(PlnProgram *program, PlnNode *node, RawStmt *raw, Query *query)
{
	PlnDataset *dataset = node->dataset;
	char	   *fingerprint = pln_define_fingerprint(program, query);
	ViewStmt   *stmt;
	PlnErrorScope scope;
	ErrorContextCallback callback;
	ListCell   *lc;

	if (node->decl->expectations != NIL)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("a view has no expectations"),
				 errhint("Use a materialized view or a temporary view."),
				 pln_script_errposition(program->script,
										((PlnExpectationDef *)
										 linitial(node->decl->expectations))->location)));
	foreach(lc, node->inputs)
	{
		PlnNode    *input = program->nodes[lfirst_int(lc)];

		if (input->decl->dataset_kind == PLN_TEMPORARY_VIEW)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("view \"%s\" cannot read temporary view \"%s\"", node->name,
							input->name),
					 errhint("Make the temporary view a view, or this view a materialized view."),
					 pln_script_errposition(program->script, node->decl->name->location)));
	}
	if (OidIsValid(dataset->relid) && dataset->fingerprint != NULL &&
		strcmp(dataset->fingerprint, fingerprint) == 0)
		return;
	stmt = makeNode(ViewStmt);
	stmt->view = makeRangeVar(node->stored_schema, node->stored_name, -1);
	stmt->query = raw->stmt;
	stmt->replace = true;
	foreach(lc, node->decl->columns)
		stmt->aliases = lappend(stmt->aliases,
								makeString(((PlnColumnDef *) lfirst(lc))->name));
	pln_error_scope_begin(&scope, program->script, node->sql);
	callback.callback = replace_view_context;
	callback.arg = node;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	node->created = !OidIsValid(dataset->relid);
	dataset->relid = DefineView(stmt, node->sql->text, -1, -1).objectId;
	error_context_stack = callback.previous;
	pln_error_scope_end(&scope);
	dataset->fingerprint = fingerprint;
	pln_define_note(program, node, node->created ? "new" : "query changed", "view replaced");
}

/*
 * select.c
 *	  Which datasets of a program an update touches.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/varlena.h"

#include "base/errors.h"
#include "base/ident.h"
#include "catalog/updates.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "update/select.h"

/* As the last update left it; NULL when there was none. */
static PlnDataset *
stored_dataset(PlnNode *node)
{
	return node->decl->dataset_kind == PLN_TEMPORARY_VIEW ? NULL :
		pln_dataset_find(node->schema, node->name);
}

static PlnGraph *
build_graph(PlnProgram *program)
{
	PlnGraph   *graph = pln_graph_create(program->nnodes);
	ListCell   *lc;
	int			i;

	for (i = 0; i < program->nnodes; i++)
	{
		foreach(lc, program->nodes[i]->inputs)
			pln_graph_add_edge(graph, lfirst_int(lc), i);
	}
	return graph;
}

/* A dataset name as typed: one or two identifiers, quoted where needed. */
static PlnNode *
find_by_text(PlnProgram *program, const char *name)
{
	List	   *parts = textToQualifiedNameList(cstring_to_text(name));
	PlnNode    *node = NULL;

	if (list_length(parts) == 1)
		node = pln_program_find(program, NULL, NULL, strVal(linitial(parts)));
	else if (list_length(parts) == 2)
		node = pln_program_find(program, NULL, strVal(linitial(parts)), strVal(lsecond(parts)));
	if (node == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("pipeline \"%s\" has no dataset \"%s\"",
						pln_pipeline_display_name(program->pipeline), name),
				 errhint("SELECT dataset FROM pipeline.datasets;")));
	return node;
}

static void
select_one(PlnProgram *program, PlnGraph *graph, const char *selector, bool *selected)
{
	char	   *name = pstrdup(selector);
	bool		upstream = false;
	bool		downstream = false;
	PlnNode    *node;
	bool	   *more;
	int			len;
	int			i;

	if (name[0] == '+')
	{
		upstream = true;
		name++;
	}
	len = strlen(name);
	if (len > 0 && name[len - 1] == '+')
	{
		downstream = true;
		name[len - 1] = '\0';
	}
	node = find_by_text(program, name);
	selected[node->index] = true;
	if (upstream)
	{
		more = pln_graph_ancestors(graph, node->index);
		for (i = 0; i < program->nnodes; i++)
			selected[i] |= more[i];
	}
	if (downstream)
	{
		more = pln_graph_descendants(graph, node->index);
		for (i = 0; i < program->nnodes; i++)
			selected[i] |= more[i];
	}
}

bool *
pln_select_nodes(PlnProgram *program, PlnRequest *request)
{
	bool	   *selected = palloc0(sizeof(bool) * Max(program->nnodes, 1));
	PlnGraph   *graph = build_graph(program);
	List	   *failed;
	ListCell   *lc;
	int			i;

	foreach(lc, request->datasets)
		select_one(program, graph, lfirst(lc), selected);
	if (request->datasets == NIL)
		memset(selected, true, sizeof(bool) * program->nnodes);
	if (!request->failed_only)
		return selected;
	failed = pln_update_last_failed(program->pipeline->id);
	for (i = 0; i < program->nnodes; i++)
	{
		PlnDataset *dataset = stored_dataset(program->nodes[i]);
		bool		was = false;

		foreach(lc, failed)
			was |= dataset != NULL && *(int64 *) lfirst(lc) == dataset->id;
		selected[i] &= was;
	}
	return selected;
}

/* ---- full refresh ---- */

static bool
reset_is_forbidden(PlnNode *node)
{
	ListCell   *lc;

	foreach(lc, node->decl->properties)
	{
		PlnProperty *property = lfirst(lc);

		if (strcmp(property->key, "pipelines.reset.allowed") == 0 && property->value != NULL &&
			pg_strcasecmp(property->value, "false") == 0)
			return true;
	}
	return false;
}

static void
check_descendants(PlnProgram *program, PlnGraph *graph, PlnNode *node, PlnRequest *request,
				  bool *selected)
{
	bool	   *below = pln_graph_descendants(graph, node->index);
	StringInfoData names;
	int			i;

	initStringInfo(&names);
	for (i = 0; i < program->nnodes; i++)
	{
		PlnNode    *other = program->nodes[i];

		if (!below[i] || other->decl->dataset_kind != PLN_STREAMING_TABLE || other->full_refresh ||
			stored_dataset(other) == NULL)
			continue;
		if (request->cascade)
		{
			selected[i] = true;
			other->full_refresh = true;
			continue;
		}
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "",
						 pln_node_display_name(other));
	}
	if (names.len > 0)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("full refresh of \"%s\" would break the streams that read it",
						pln_node_display_name(node)),
				 errdetail("Streaming tables below it: %s.", names.data),
				 errhint("Refresh them too: CALL pipeline.run_update(%s, datasets => %s, "
						 "full_refresh => true, cascade => true);",
						 pln_quote_literal(pln_pipeline_display_name(program->pipeline)),
						 pln_quote_literal(psprintf("{%s}", pln_node_display_name(node))))));
}

/* Rows that a full refresh could not bring back. */
static void
check_loss(PlnNode *node)
{
	PlnDataset *dataset = stored_dataset(node);
	char	   *loss = dataset ? pln_append_loss(dataset) : NULL;

	if (loss != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("full refresh of \"%s\" would lose rows", pln_node_display_name(node)),
				 errdetail("%s", loss),
				 errhint("To accept that: CALL pipeline.run_update(..., full_refresh => true, "
						 "allow_loss => true);")));
}

void
pln_select_full_refresh(PlnProgram *program, PlnRequest *request, bool *selected)
{
	PlnGraph   *graph = build_graph(program);
	int			i;

	for (i = 0; i < program->nnodes; i++)
		program->nodes[i]->full_refresh = request->full_refresh && selected[i];
	for (i = 0; request->full_refresh && i < program->nnodes; i++)
	{
		PlnNode    *node = program->nodes[program->order[i]];

		if (!node->full_refresh || node->decl->dataset_kind != PLN_STREAMING_TABLE)
			continue;
		check_descendants(program, graph, node, request, selected);
	}
	for (i = 0; request->full_refresh && i < program->nnodes; i++)
	{
		PlnNode    *node = program->nodes[i];

		if (!node->full_refresh || node->decl->dataset_kind != PLN_STREAMING_TABLE)
			continue;
		if (reset_is_forbidden(node))
			ereport(ERROR,
					(errcode(PLN_ERR_STATE),
					 errmsg("full refresh of \"%s\" is forbidden", pln_node_display_name(node)),
					 errdetail("It has the property pipelines.reset.allowed = false."),
					 pln_script_errposition(program->script, node->decl->name->location)));
		if (!request->allow_loss)
			check_loss(node);
	}
}

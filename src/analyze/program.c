/*
 * program.c
 *	  A pipeline's source as a graph of declared datasets.
 *
 * Building a program reads the parsed statements only: no relation is opened, nothing is
 * written.  Order and cycles come from graph/.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "analyze/program.h"
#include "analyze/resolve.h"
#include "analyze/unbuilt.h"
#include "base/errors.h"
#include "base/ident.h"
#include "graph/graph.h"

char *
pln_node_display_name(PlnNode *node)
{
	return pln_quote_qualified(node->schema, node->name);
}

static void
check_catalog(PlnScript *script, PlnName *name)
{
	if (name->catalog != NULL && strcmp(name->catalog, get_database_name(MyDatabaseId)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("catalog \"%s\" is not the current database", name->catalog),
				 errhint("Leave it out: %s", pln_quote_qualified(name->schema, name->name)),
				 pln_script_errposition(script, name->location)));
}

/*
 * Temporary views are known by their single name; all else by schema and name.
 */
PlnNode *
pln_program_find(PlnProgram *program, PlnNode *reader, const char *schema, const char *name)
{
	const char *reader_schema = reader ? reader->schema : program->pipeline->schema_name;
	int			i;

	if (schema == NULL)
	{
		for (i = 0; i < program->nnodes; i++)
		{
			PlnNode    *node = program->nodes[i];

			if (node->decl->dataset_kind == PLN_TEMPORARY_VIEW && strcmp(node->name, name) == 0)
				return node;
		}
		schema = reader_schema;
	}
	for (i = 0; i < program->nnodes; i++)
	{
		PlnNode    *node = program->nodes[i];

		if (node->decl->dataset_kind != PLN_TEMPORARY_VIEW &&
			strcmp(node->name, name) == 0 && strcmp(node->schema, schema) == 0)
			return node;
	}
	return NULL;
}

static PlnNode *
add_node(PlnProgram *program, PlnCreateDataset *decl, const char *schema)
{
	PlnNode    *node = palloc0(sizeof(PlnNode));

	check_catalog(program->script, decl->name);
	if (decl->dataset_kind == PLN_TEMPORARY_VIEW && decl->name->schema != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("a temporary view has no schema"),
				 errhint("Name it \"%s\" alone: it exists only inside its pipeline.",
						 decl->name->name),
				 pln_script_errposition(program->script, decl->name->location)));
	node->index = program->nnodes;
	node->decl = decl;
	node->schema = pstrdup(decl->name->schema ? decl->name->schema : schema);
	node->name = decl->name->name;
	node->stored_schema = node->schema;
	node->stored_name = node->name;
	if (decl->is_private)
	{
		node->stored_schema = "pipeline_data";
		node->stored_name = psprintf("%s.%s", node->schema, node->name);
		if (strlen(node->stored_name) >= NAMEDATALEN)
			ereport(ERROR,
					(errcode(ERRCODE_NAME_TOO_LONG),
					 errmsg("name of private table \"%s\" is too long together with its schema",
							node->name),
					 pln_script_errposition(program->script, decl->name->location)));
	}
	if (pln_program_find(program, node, decl->name->schema, node->name) != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_DUPLICATE),
				 errmsg("dataset \"%s\" is defined twice in this pipeline", node->name),
				 pln_script_errposition(program->script, decl->name->location)));
	program->nodes = program->nnodes == 0 ? palloc(sizeof(PlnNode *)) :
		repalloc(program->nodes, sizeof(PlnNode *) * (program->nnodes + 1));
	program->nodes[program->nnodes++] = node;
	return node;
}

/* What updates the dataset now, for hints. */
static char *
update_statement(PlnProgram *program, PlnNode *node)
{
	PlnPipeline *pipeline = program->pipeline;

	if (pipeline->standalone)
		return psprintf("CALL pipeline.refresh(%s)",
						quote_literal_cstr(pln_node_display_name(node)));
	return psprintf("CALL %s()", pln_quote_qualified(pipeline->schema_name, pipeline->name));
}

static const char *const stream_options[] = {
	"skipChangeCommits", "onlyInserts", "startingVersion"
};

/* Known to the dialect, not built: silence would read other rows than the user asked for. */
static const char *const unbuilt_stream_options[] = {
	"startingTimestamp", "ignoreDeletes", "ignoreChanges", "maxFilesPerTrigger",
	"maxBytesPerTrigger", "maxRowsPerTrigger", "readChangeFeed", "withEventTimeOrder",
	"failOnDataLoss"
};

static void
check_stream_option(PlnScript *script, PlnProperty *option)
{
	int			i;

	for (i = 0; i < lengthof(stream_options); i++)
	{
		if (pg_strcasecmp(option->key, stream_options[i]) != 0)
			continue;
		if (i == 2 && (option->value == NULL || pg_strcasecmp(option->value, "latest") != 0))
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("startingVersion of a stream can only be latest"),
					 pln_script_errposition(script, option->value_location)));
		return;
	}
	for (i = 0; i < lengthof(unbuilt_stream_options); i++)
	{
		if (pg_strcasecmp(option->key, unbuilt_stream_options[i]) == 0)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("stream option \"%s\" is not supported yet", option->key),
					 errhint("Options are skipChangeCommits, onlyInserts and "
							 "startingVersion = latest."),
					 pln_script_errposition(script, option->location)));
	}
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("unknown stream option \"%s\"", option->key),
			 errhint("Options are skipChangeCommits, onlyInserts and startingVersion = latest."),
			 pln_script_errposition(script, option->location)));
}

static void
check_stream_options(PlnScript *script, PlnSql *sql)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, sql->streams)
	{
		foreach(lc2, ((PlnStreamRef *) lfirst(lc))->options)
			check_stream_option(script, lfirst(lc2));
	}
}

static void
parse_node_query(PlnProgram *program, PlnNode *node)
{
	PlnFlowDef *flow = node->decl->flow;

	pln_refuse_unbuilt(program->script, node->decl, update_statement(program, node));
	if (flow == NULL || flow->query == NULL)
		return;
	node->sql = flow->query;
	check_stream_options(program->script, flow->query);
	node->raw = pln_sql_parse_query(flow->query);
}

static void
raise_cycle(PlnProgram *program, const int *path, int length)
{
	StringInfoData names;
	int			i;

	initStringInfo(&names);
	for (i = 0; i < length; i++)
		appendStringInfo(&names, "%s -> ", pln_node_display_name(program->nodes[path[i]]));
	appendStringInfoString(&names, pln_node_display_name(program->nodes[path[0]]));
	ereport(ERROR,
			(errcode(PLN_ERR_CYCLE),
			 errmsg("datasets of this pipeline depend on each other in a circle"),
			 errdetail("%s", names.data),
			 pln_script_errposition(program->script,
									program->nodes[path[0]]->decl->name->location)));
}

static void
order_nodes(PlnProgram *program)
{
	PlnGraph   *graph = pln_graph_create(program->nnodes);
	int			length;
	int		   *path;
	int			i;

	for (i = 0; i < program->nnodes; i++)
	{
		ListCell   *lc;

		pln_resolve_inputs(program, program->nodes[i]);
		foreach(lc, program->nodes[i]->inputs)
			pln_graph_add_edge(graph, lfirst_int(lc), i);
	}
	path = pln_graph_cycle(graph, &length);
	if (path != NULL)
		raise_cycle(program, path, length);
	program->order = pln_graph_order(graph);
}

static PlnProgram *
make_program(PlnScript *script, PlnPipeline *pipeline, Oid owner)
{
	PlnProgram *program = palloc0(sizeof(PlnProgram));

	program->script = script;
	program->pipeline = pipeline;
	program->owner = owner;
	program->allow_file_io = true;
	return program;
}

PlnProgram *
pln_program_build(PlnScript *script, PlnPipeline *pipeline, Oid owner)
{
	PlnProgram *program = make_program(script, pipeline, owner);
	char	   *schema = pipeline->schema_name;
	ListCell   *lc;
	int			i;

	foreach(lc, script->stmts)
	{
		PlnStmt    *stmt = lfirst(lc);

		switch (stmt->kind)
		{
			case PLN_STMT_CREATE_DATASET:
				add_node(program, (PlnCreateDataset *) stmt, schema);
				break;
			case PLN_STMT_CREATE_FLOW:
				pln_refuse_flow(script, ((PlnCreateFlow *) stmt)->flow, stmt->location);
				break;
			case PLN_STMT_USE:
				if (((PlnUse *) stmt)->is_catalog)
				{
					if (strcmp(((PlnUse *) stmt)->name, get_database_name(MyDatabaseId)) != 0)
						ereport(ERROR,
								(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
								 errmsg("catalog \"%s\" is not the current database",
										((PlnUse *) stmt)->name),
								 pln_script_errposition(script,
														((PlnUse *) stmt)->name_location)));
				}
				else
					schema = ((PlnUse *) stmt)->name;
				break;
			case PLN_STMT_SET:
				break;			/* kept with the source; no setting of ours has an effect yet */
			default:
				ereport(ERROR,
						(errcode(PLN_ERR_SYNTAX),
						 errmsg("a pipeline holds only declarations of datasets and flows"),
						 errhint("Run this statement by itself, or with DO LANGUAGE pipeline."),
						 pln_script_errposition(script, stmt->location)));
		}
	}
	if (program->nnodes == 0)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("the pipeline declares no dataset"),
				 errhint("Begin with CREATE STREAMING TABLE or CREATE MATERIALIZED VIEW.")));
	for (i = 0; i < program->nnodes; i++)
		parse_node_query(program, program->nodes[i]);
	order_nodes(program);
	return program;
}

PlnProgram *
pln_program_standalone(PlnScript *script, PlnCreateDataset *decl, PlnPipeline *pipeline,
					   Oid owner)
{
	PlnProgram *program = make_program(script, pipeline, owner);

	add_node(program, decl, pipeline->schema_name);
	parse_node_query(program, program->nodes[0]);
	order_nodes(program);
	return program;
}

PlnProgram *
pln_program_native(PlnPipeline *pipeline, Oid owner, Query *query, List *column_names,
				   PlnRefreshPolicy policy)
{
	PlnScript  *script = palloc0(sizeof(PlnScript));
	PlnCreateDataset *decl = palloc0(sizeof(PlnCreateDataset));
	PlnProgram *program;
	ListCell   *lc;

	script->source = "";
	decl->stmt.kind = PLN_STMT_CREATE_DATASET;
	decl->stmt.location = -1;
	decl->stmt.original = "";
	decl->dataset_kind = PLN_MATERIALIZED_VIEW;
	decl->policy = policy;
	decl->has_policy = true;
	decl->name = palloc0(sizeof(PlnName));
	decl->name->schema = pipeline->schema_name;
	decl->name->name = pipeline->name;
	decl->name->location = -1;
	foreach(lc, column_names)
	{
		PlnColumnDef *column = palloc0(sizeof(PlnColumnDef));

		column->name = strVal(lfirst(lc));
		column->location = -1;
		decl->columns = lappend(decl->columns, column);
	}
	program = make_program(script, pipeline, owner);
	add_node(program, decl, pipeline->schema_name);
	program->nodes[0]->native = true;
	program->nodes[0]->analysed = query;
	order_nodes(program);
	return program;
}

/*
 * define.c
 *	  From checked declarations to relations, flow views and catalog rows.
 *
 * Runs as the owner of the pipeline with its pinned settings.  Relations come into being
 * in topological order, so that every query is analysed against the real tables it reads;
 * a failure anywhere is undone by the caller's subtransaction, so nothing is touched
 * before all of the program is found good (dialect-reference §7.2).
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "common/cryptohash.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

#include "analyze/define.h"
#include "analyze/define_internal.h"
#include "analyze/query.h"
#include "analyze/resolve.h"
#include "analyze/star.h"
#include "base/errors.h"
#include "base/guc.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "catalog/checkpoints.h"
#include "expect/expect.h"
#include "expect/quarantine.h"
#include "ivm/wrap.h"
#include "source/stream_ref.h"

void
pln_define_note(PlnProgram *program, PlnNode *node, const char *change, const char *effect)
{
	PlnPlanItem *item = palloc(sizeof(PlnPlanItem));

	item->dataset = pln_node_display_name(node);
	item->change = pstrdup(change);
	item->effect = pstrdup(effect);
	program->plan = lappend(program->plan, item);
}

/* DDL on a dataset's relation, with its owner's rights: it may evaluate what he wrote. */
void
pln_define_ddl(const char *sql)
{
	(void) pln_spi_user(sql);
	CommandCounterIncrement();
}

/*
 * A private relation is made in its pipeline's schema and then moved to pipeline_data, where
 * only the extension's owner may create.
 */
void
pln_define_move_private(PlnNode *node, const char *kind)
{
	(void) pln_spi_run_once(psprintf("ALTER %s %s SET SCHEMA pipeline_data", kind,
									 pln_quote_qualified(node->schema, node->stored_name)),
							0, NULL, NULL, NULL);
	CommandCounterIncrement();
}

/*
 * What decides the content: the analysed query as SQL with every name qualified, and the
 * pinned settings.  White space and spelling do not count.
 */
char *
pln_define_fingerprint(PlnProgram *program, Query *query)
{
	StringInfoData text;
	PlnSecContext ctx;
	ListCell   *lc;

	initStringInfo(&text);
	if (query != NULL)
	{
		pln_enter_settings(&ctx, list_make2("search_path=pg_catalog", "quote_all_identifiers=off"));
		appendStringInfoString(&text, pg_get_querydef(copyObject(query), false));
		pln_leave(&ctx);
	}
	foreach(lc, program->pipeline->settings)
	{
		/* names are resolved by now: the path itself decides nothing */
		if (strncmp(lfirst(lc), "search_path=", 12) != 0)
			appendStringInfo(&text, "\n%s", (char *) lfirst(lc));
	}
	return pln_hash_text(text.data);
}

/* ---- expectations ---- */

static void
check_duplicate(PlnProgram *program, PlnNode *node, PlnExpectationDef *def, List *rows)
{
	ListCell   *lc;

	foreach(lc, rows)
	{
		if (strcmp(((PlnExpectationRow *) lfirst(lc))->name, def->name) == 0)
			ereport(ERROR,
					(errcode(PLN_ERR_DUPLICATE),
					 errmsg("expectation \"%s\" of dataset \"%s\" is defined twice",
							def->name, node->name),
					 pln_script_errposition(program->script, def->location)));
	}
}

/*
 * Check the declared expectations against the rows of the dataset and make the stored ones
 * equal; those added by functions survive and are appended.
 */
void
pln_define_expectations(PlnProgram *program, PlnNode *node, TupleDesc desc)
{
	List	   *rows = NIL;
	ListCell   *lc;

	foreach(lc, node->decl->expectations)
	{
		PlnExpectationDef *def = lfirst(lc);
		PlnExpectationRow *row = palloc0(sizeof(PlnExpectationRow));
		PlnErrorScope scope;

		if (def->rules_table != NULL)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("EXPECT ALL FROM is not supported yet"),
					 pln_script_errposition(program->script, def->location)));
		check_duplicate(program, node, def, rows);
		pln_error_scope_begin(&scope, program->script, def->condition);
		(void) pln_expect_analyze(def->name, def->condition, desc);
		pln_error_scope_end(&scope);
		row->name = def->name;
		row->condition = def->condition->original;
		row->action = def->action;
		row->threshold_kind = def->threshold_kind;
		row->threshold = def->threshold;
		row->origin = "source";
		rows = lappend(rows, row);
	}
	node->expectations = rows;
	if (node->dataset == NULL || node->dataset->id == 0)
		return;
	pln_expectations_replace(node->dataset->id, "source", rows);
	node->expectations = pln_expectations_of_dataset(node->dataset->id);
}

static bool
wants_quarantine(PlnNode *node)
{
	ListCell   *lc;

	foreach(lc, node->expectations)
	{
		if (((PlnExpectationRow *) lfirst(lc))->action == PLN_ACTION_QUARANTINE)
			return true;
	}
	return false;
}

/* ---- finding and saving the dataset ---- */

static void
raise_taken(PlnProgram *program, PlnNode *node, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_TABLE),
			 errmsg("relation \"%s\" already exists",
					pln_quote_qualified(node->stored_schema, node->stored_name)),
			 errdetail("%s", detail),
			 pln_script_errposition(program->script, node->decl->name->location)));
}

/*
 * A dataset whose relation was renamed by hand while its declaration still has the old
 * name: making a new table would read everything again (interface §3.17).
 */
static void
refuse_renamed(PlnProgram *program, PlnNode *node)
{
	ListCell   *lc;

	foreach(lc, pln_datasets_of_pipeline(program->pipeline->id))
	{
		PlnDataset *dataset = lfirst(lc);

		if (dataset->state != PLN_DATASET_ACTIVE ||
			strcmp(dataset->definition, node->decl->stmt.original) != 0 ||
			pln_program_find(program, NULL, dataset->schema_name, dataset->name) != NULL)
			continue;
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("dataset \"%s\" was renamed to %s", pln_node_display_name(node),
						pln_dataset_display_name(dataset)),
				 errhint("Use the new name in CREATE OR REPLACE PROCEDURE, or rename the table "
						 "back."),
				 pln_script_errposition(program->script, node->decl->name->location)));
	}
}

static void
find_dataset(PlnProgram *program, PlnNode *node)
{
	PlnDataset *dataset = pln_dataset_find(node->schema, node->name);
	Oid			nsp = get_namespace_oid(node->stored_schema, true);
	Oid			relid = OidIsValid(nsp) ? get_relname_relid(node->stored_name, nsp) : InvalidOid;

	if (!OidIsValid(nsp))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("schema \"%s\" does not exist", node->stored_schema),
				 errhint("CREATE SCHEMA %s;", quote_identifier(node->stored_schema)),
				 pln_script_errposition(program->script, node->decl->name->location)));
	if (dataset == NULL)
	{
		if (OidIsValid(relid))
			raise_taken(program, node, "It is not maintained by a pipeline.");
		dataset = palloc0(sizeof(PlnDataset));
		dataset->properties = "{}";
	}
	else
	{
		PlnPipeline *other = pln_pipeline_get(dataset->pipeline_id);

		if (other != NULL && other->id != program->pipeline->id && !other->dropped)
			ereport(ERROR,
					(errcode(PLN_ERR_STATE),
					 errmsg("dataset \"%s\" belongs to pipeline %s", pln_node_display_name(node),
							pln_pipeline_display_name(other)),
					 errhint("A dataset has one pipeline. Drop it there first, or choose another "
							 "name."),
					 pln_script_errposition(program->script, node->decl->name->location)));
		if (dataset->kind != node->decl->dataset_kind)
			raise_taken(program, node, psprintf("It is a %s of this pipeline.",
												pln_dataset_kind_name(dataset->kind)));
		if (!OidIsValid(relid) || relid != dataset->relid)
			dataset->relid = InvalidOid;
		else if (!pg_class_ownercheck(relid, program->owner))
			aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, node->name);
	}
	if (dataset->id == 0)
		refuse_renamed(program, node);
	node->dataset = dataset;
	if (dataset->id != 0)
	{
		List	   *flows = pln_flows_of_dataset(dataset->id);

		node->flow = flows ? linitial(flows) : NULL;
	}
}

void
pln_define_notices(List *clauses, const char *relation)
{
	ListCell   *lc;

	if (pln_guc_messages == PLN_MESSAGES_QUIET)
		return;
	foreach(lc, clauses)
		ereport(NOTICE,
				(errmsg("%s of %s has no effect", (char *) lfirst(lc), relation)));
}

/*
 * Clauses without effect are named where the definition is typed: by the check of CREATE
 * PROCEDURE, or when a dataset of its own is made; not again while it stays the same.
 */
static void
say_without_effect(PlnProgram *program, PlnNode *node)
{
	PlnDataset *dataset = node->dataset;
	List	   *clauses = list_copy(node->decl->notices);
	ListCell   *lc;

	if (!program->missing_ok && !program->pipeline->standalone)
		return;
	if (dataset->id != 0 && dataset->definition != NULL &&
		strcmp(dataset->definition, node->decl->stmt.original) == 0)
		return;
	foreach(lc, node->sql ? node->sql->streams : NIL)
	{
		if (((PlnStreamRef *) lfirst(lc))->has_watermark)
		{
			clauses = lappend(clauses, "WATERMARK");
			break;
		}
	}
	pln_define_notices(clauses, pln_node_display_name(node));
}

static char *
properties_json(PlnCreateDataset *decl)
{
	StringInfoData json;
	ListCell   *lc;

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	foreach(lc, decl->properties)
	{
		PlnProperty *property = lfirst(lc);

		if (json.len > 1)
			appendStringInfoString(&json, ", ");
		escape_json(&json, property->key);
		appendStringInfoString(&json, ": ");
		escape_json(&json, property->value ? property->value : "true");
	}
	appendStringInfoChar(&json, '}');
	return json.data;
}

static void
save_dataset(PlnProgram *program, PlnNode *node)
{
	PlnDataset *dataset = node->dataset;
	PlnCreateDataset *decl = node->decl;

	dataset->pipeline_id = program->pipeline->id;
	dataset->schema_name = node->schema;
	dataset->name = node->name;
	dataset->kind = decl->dataset_kind;
	dataset->state = PLN_DATASET_ACTIVE;
	dataset->state_reason = NULL;
	dataset->definition = decl->stmt.original;
	dataset->query = node->sql ? node->sql->original : NULL;
	dataset->policy = decl->has_policy ? decl->policy : PLN_POLICY_AUTO;
	dataset->properties = properties_json(decl);
	dataset->is_private = decl->is_private;
	pln_dataset_save(dataset);
}

/* From now on the columns of the files are these; the ledger belongs to them. */
static void
freeze_file_schemas(PlnNode *node)
{
	ListCell   *path;
	ListCell   *options;
	ListCell   *schema;
	int			ordinal = 0;

	forthree(path, node->file_paths, options, node->file_options, schema, node->file_schemas)
		pln_file_source_save(node->flow->id, ordinal++, lfirst(path), lfirst(options),
							 lfirst(schema));
}

static void
save_flow(PlnProgram *program, PlnNode *node)
{
	PlnFlow    *flow = node->flow;

	if (flow == NULL)
	{
		flow = palloc0(sizeof(PlnFlow));
		node->flow = flow;
	}
	flow->dataset_id = node->dataset->id;
	flow->name = node->decl->flow && node->decl->flow->name ? node->decl->flow->name : node->name;
	flow->kind = PLN_FLOW_INSERT;
	flow->query = node->sql ? node->sql->original : NULL;
	pln_flow_save(flow);
	freeze_file_schemas(node);
}

/* Base relations as the user knows them: datasets by their declared name. */
static void
note_inputs(PlnProgram *program, PlnNode *node, Query *query)
{
	ListCell   *lc;

	node->input_relids = query ? pln_query_relations(query) : NIL;
	node->input_names = NIL;
	node->stream_relids = NIL;
	foreach(lc, query ? pln_query_sources(query) : NIL)
	{
		PlnStreamSource *source = lfirst(lc);

		if (source->kind == PLN_REF_STREAM_TABLE)
			node->stream_relids = list_append_unique_oid(node->stream_relids, source->relid);
	}
	foreach(lc, node->input_relids)
		node->input_names = lappend(node->input_names, pln_relation_name(lfirst_oid(lc)));
}

static void
apply_comment(PlnNode *node)
{
	PlnDataset *dataset = node->dataset;
	const char *what = node->decl->dataset_kind == PLN_STREAMING_TABLE ? "TABLE" :
		node->decl->dataset_kind == PLN_VIEW ? "VIEW" : "MATERIALIZED VIEW";
	char	   *relation = pln_quote_qualified(node->stored_schema, node->stored_name);
	ListCell   *lc;

	if (node->decl->comment != NULL &&
		(dataset->comment == NULL || strcmp(dataset->comment, node->decl->comment) != 0))
		pln_define_ddl(psprintf("COMMENT ON %s %s IS %s", what, relation,
									  pln_quote_literal(node->decl->comment)));
	dataset->comment = node->decl->comment;
	if (!node->created)
		return;
	foreach(lc, node->decl->columns)
	{
		PlnColumnDef *column = lfirst(lc);

		if (column->comment != NULL)
			pln_define_ddl(psprintf("COMMENT ON COLUMN %s.%s IS %s", relation,
										  quote_identifier(column->name),
										  pln_quote_literal(column->comment)));
	}
}

/* ---- one node ---- */

static void
define_temporary_view(PlnProgram *program, PlnNode *node, Query *query)
{
	if (query == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("temporary view \"%s\" has no query", node->name),
				 pln_script_errposition(program->script, node->decl->stmt.location)));
	pln_define_expectations(program, node, pln_query_desc(query));
}

/* Views, foreign tables and the like cannot be read as streams at all. */
static void
check_streamable(PlnProgram *program, PlnNode *node, Query *query)
{
	ListCell   *lc;

	foreach(lc, pln_query_sources(query))
	{
		PlnStreamSource *source = lfirst(lc);
		PlnStreamRef *ref = node->sql->streams ? linitial(node->sql->streams) : NULL;
		PlnReason  *reason;

		if (source->kind != PLN_REF_STREAM_TABLE)
			continue;
		reason = pln_source_streamable(source->relid);
		if (reason != NULL)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("%s cannot be read as a stream", pln_relation_name(source->relid)),
					 errdetail("%s", reason->text),
					 errhint("Read it without STREAM in a materialized view."),
					 pln_script_errposition(program->script,
											ref ? ref->location : node->sql->location)));
	}
}

static void
define_stored(PlnProgram *program, PlnNode *node, RawStmt *raw, Query *query)
{
	Query	   *flow_query = NULL;
	Relation	rel;

	switch (node->decl->dataset_kind)
	{
		case PLN_STREAMING_TABLE:
			if (query != NULL)
			{
				pln_check_streaming_query(program->script, node->sql, query, node->name);
				check_streamable(program, node, query);
			}
			flow_query = pln_define_table(program, node, query);
			break;
		case PLN_MATERIALIZED_VIEW:
			if (!node->native)
				pln_check_batch_query(program->script, node->sql, query, node->name);
			pln_define_matview(program, node, query);
			break;
		case PLN_VIEW:
			pln_check_batch_query(program->script, node->sql, query, node->name);
			pln_define_view(program, node, raw, query);
			break;
		case PLN_TEMPORARY_VIEW:
			break;
	}
	apply_comment(node);
	save_dataset(program, node);
	if (node->decl->dataset_kind == PLN_VIEW)
		return;
	save_flow(program, node);
	rel = table_open(node->dataset->relid, AccessShareLock);
	pln_define_expectations(program, node, RelationGetDescr(rel));
	if (wants_quarantine(node))
	{
		Oid			quarantine = pln_quarantine_ensure(rel, node->dataset->quarantine);

		if (quarantine != node->dataset->quarantine)
		{
			node->dataset->quarantine = quarantine;
			pln_dataset_save(node->dataset);
		}
	}
	table_close(rel, AccessShareLock);
	if (node->decl->dataset_kind == PLN_STREAMING_TABLE)
		(void) pln_define_flow_view(program, node, flow_query);
	else if (node->unfiltered != NULL)
		(void) pln_define_flow_view(program, node, node->unfiltered);
	pln_flow_set_inputs(node->flow->id, node->input_relids, node->input_names);
	pln_flow_mark_streams(node->flow->id, node->stream_relids);
}

static void
require_query(PlnProgram *program, PlnNode *node)
{
	if (node->raw == NULL && node->decl->dataset_kind != PLN_STREAMING_TABLE)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("\"%s\" has no query", node->name),
				 pln_script_errposition(program->script, node->decl->stmt.location)));
}

/* Nothing to define: the server keeps the query, follows renames, and knows its columns. */
static void
attach_native(PlnNode *node)
{
	Query	   *query;
	ListCell   *lc;

	PLN_ENSURE(node->dataset->id != 0 && node->flow != NULL);
	query = pln_stored_query(node->dataset->relid);
	node->input_relids = list_delete_oid(pln_query_relations(query), node->dataset->relid);
	foreach(lc, node->input_relids)
		node->input_names = lappend(node->input_names, pln_relation_name(lfirst_oid(lc)));
	node->expectations = pln_expectations_of_dataset(node->dataset->id);
}

static void
define_node(PlnProgram *program, PlnNode *node)
{
	RawStmt    *raw = NULL;
	Query	   *query = NULL;

	if (!node->native)
		require_query(program, node);
	if (node->decl->dataset_kind != PLN_TEMPORARY_VIEW)
	{
		find_dataset(program, node);
		say_without_effect(program, node);
	}
	if (node->native && node->analysed == NULL)
	{
		attach_native(node);
		return;
	}
	query = node->analysed;
	if (node->raw != NULL)
	{
		raw = pln_resolve_query(program, node, node->flow ? node->flow->id : 0);
		if (raw == NULL)
			return;				/* columns unknown until the first run: nothing more to check */
		raw = pln_expand_select(raw, node->sql);
		query = pln_analyze_query(program->script, node->sql, copyObject(raw));
	}
	note_inputs(program, node, query);
	if (node->decl->dataset_kind == PLN_TEMPORARY_VIEW)
		define_temporary_view(program, node, query);
	else
		define_stored(program, node, raw, query);
	CommandCounterIncrement();
}

/* Datasets that the source no longer declares keep their rows (dialect-reference §7.5). */
static void
retire_removed(PlnProgram *program)
{
	ListCell   *lc;

	foreach(lc, pln_datasets_of_pipeline(program->pipeline->id))
	{
		PlnDataset *dataset = lfirst(lc);
		bool		found = false;
		int			i;

		for (i = 0; i < program->nnodes && !found; i++)
			found = program->nodes[i]->dataset != NULL &&
				program->nodes[i]->dataset->id == dataset->id;
		if (!found && dataset->state == PLN_DATASET_ACTIVE)
		{
			PlnPlanItem *item = palloc(sizeof(PlnPlanItem));

			pln_dataset_set_state(dataset->id, PLN_DATASET_INACTIVE, "definition removed");
			item->dataset = pln_dataset_display_name(dataset);
			item->change = "removed";
			item->effect = "INACTIVE, keeps its rows";
			program->plan = lappend(program->plan, item);
		}
	}
}

void
pln_program_define(PlnProgram *program)
{
	PlnSecContext ctx;
	int			i;

	PushActiveSnapshot(GetTransactionSnapshot());
	pln_enter_owner(&ctx, program->owner, program->pipeline->settings);
	for (i = 0; i < program->nnodes; i++)
	{
		PlnNode    *node = program->nodes[program->order[i]];

		CHECK_FOR_INTERRUPTS();
		program->current = node;
		define_node(program, node);
		/* what was created is seen by the next */
		PopActiveSnapshot();
		PushActiveSnapshot(GetTransactionSnapshot());
	}
	program->current = NULL;
	retire_removed(program);
	pln_leave(&ctx);
	PopActiveSnapshot();
}

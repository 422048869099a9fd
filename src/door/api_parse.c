/*
 * api_parse.c
 *	  pipeline_internal.parse() and rewrite(): what the parser of the dialect makes of a
 *	  text, for tests and for people who wonder.  Nothing is executed.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/ruleutils.h"
#include "utils/tuplestore.h"

#include "analyze/star.h"
#include "base/errors.h"
#include "dialect/parse.h"

PG_FUNCTION_INFO_V1(pipeline_parse);
PG_FUNCTION_INFO_V1(pipeline_rewrite);

/*---------------------------------------------------------------- JSON */

static void
json_key(StringInfo buf, const char *key)
{
	if (buf->len > 0 && buf->data[buf->len - 1] != '{')
		appendStringInfoString(buf, ", ");
	escape_json(buf, key);
	appendStringInfoString(buf, ": ");
}

/* Absent fields are left out. */
static void
json_text(StringInfo buf, const char *key, const char *value)
{
	if (value == NULL)
		return;
	json_key(buf, key);
	escape_json(buf, value);
}

static void
json_flag(StringInfo buf, const char *key, bool value)
{
	if (!value)
		return;
	json_key(buf, key);
	appendStringInfoString(buf, "true");
}

static void
json_int(StringInfo buf, const char *key, int64 value)
{
	json_key(buf, key);
	appendStringInfo(buf, INT64_FORMAT, value);
}

static void
json_strings(StringInfo buf, const char *key, List *strings)
{
	ListCell   *lc;

	if (strings == NIL)
		return;
	json_key(buf, key);
	appendStringInfoChar(buf, '[');
	foreach(lc, strings)
	{
		if (lc != list_head(strings))
			appendStringInfoString(buf, ", ");
		escape_json(buf, lfirst(lc));
	}
	appendStringInfoChar(buf, ']');
}

static char *
dotted_name(PlnName *name)
{
	return name == NULL ? NULL
		: psprintf("%s%s%s%s%s%s", name->live ? "LIVE." : "",
				   name->catalog ? name->catalog : "", name->catalog ? "." : "",
				   name->schema ? name->schema : "", name->schema ? "." : "", name->name);
}

static void
json_properties(StringInfo buf, const char *key, List *properties)
{
	ListCell   *lc;

	if (properties == NIL)
		return;
	json_key(buf, key);
	appendStringInfoChar(buf, '{');
	foreach(lc, properties)
	{
		PlnProperty *property = lfirst(lc);

		json_key(buf, property->key);
		if (property->value != NULL)
			escape_json(buf, property->value);
		else
			appendStringInfoString(buf, "null");
	}
	appendStringInfoChar(buf, '}');
}

static void
json_sql(StringInfo buf, const char *key, PlnSql *sql)
{
	ListCell   *lc;

	if (sql == NULL)
		return;
	json_key(buf, key);
	appendStringInfoChar(buf, '{');
	json_text(buf, "text", sql->text);
	json_int(buf, "location", sql->location);
	json_flag(buf, "needs_expand", sql->needs_expand);
	if (sql->streams != NIL)
	{
		json_key(buf, "streams");
		appendStringInfoChar(buf, '[');
		foreach(lc, sql->streams)
		{
			PlnStreamRef *ref = lfirst(lc);

			if (lc != list_head(sql->streams))
				appendStringInfoString(buf, ", ");
			appendStringInfoChar(buf, '{');
			json_text(buf, "at", sql->text + ref->text_location);
			json_properties(buf, "options", ref->options);
			json_text(buf, "watermark", ref->watermark);
			appendStringInfoChar(buf, '}');
		}
		appendStringInfoChar(buf, ']');
	}
	appendStringInfoChar(buf, '}');
}

/* What pln_sql_parse_query() made of STREAM and read_files, as the engine gets it. */
static bool
reads_walker(Node *node, void *context)
{
	StringInfo	buf = context;
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (IsA(node, RangeTableSample))
	{
		RangeTableSample *sample = (RangeTableSample *) node;

		if (!IsA(sample->relation, RangeVar) || !IsA(linitial(sample->args), A_Const))
			return false;
		appendStringInfo(buf, "%s%s TABLESAMPLE %s(%s)", buf->len > 0 ? "; " : "",
						 ((RangeVar *) sample->relation)->relname,
						 NameListToString(sample->method),
						 strVal(&((A_Const *) linitial(sample->args))->val));
		return false;
	}
	if (IsA(node, FuncCall) && list_length(((FuncCall *) node)->funcname) == 2 &&
		strcmp(strVal(llast(((FuncCall *) node)->funcname)), "read_files") == 0)
	{
		appendStringInfo(buf, "%s%s(", buf->len > 0 ? "; " : "",
						 NameListToString(((FuncCall *) node)->funcname));
		foreach(lc, ((FuncCall *) node)->args)
		{
			Node	   *arg = lfirst(lc);

			if (lc != list_head(((FuncCall *) node)->args))
				appendStringInfoString(buf, ", ");
			if (IsA(arg, NamedArgExpr))
			{
				appendStringInfo(buf, "%s => ", ((NamedArgExpr *) arg)->name);
				arg = (Node *) ((NamedArgExpr *) arg)->arg;
			}
			appendStringInfoString(buf, strVal(&castNode(A_Const, arg)->val));
		}
		appendStringInfoChar(buf, ')');
	}
	return raw_expression_tree_walker(node, reads_walker, context);
}

static void
json_reads(StringInfo buf, PlnSql *query)
{
	StringInfoData reads;

	if (query == NULL)
		return;
	initStringInfo(&reads);
	(void) reads_walker(pln_sql_parse_query(query)->stmt, &reads);
	json_text(buf, "reads", reads.len > 0 ? reads.data : NULL);
}

static const char *const action_names[] = {"warn", "drop", "quarantine", "fail"};
static const char *const kind_names[] = {
	"streaming table", "materialized view", "view", "temporary view"
};
static const char *const flow_names[] = {
	"insert", "auto cdc", "cdc snapshot", "replace where", "replace using"
};
static const char *const policy_names[] = {"auto", "incremental", "incremental strict", "full"};
static const char *const alter_names[] = {
	"add schedule", "alter schedule", "drop schedule", "column comment", "set properties",
	"owner", "rename"
};

static void
json_expectations(StringInfo buf, List *expectations)
{
	ListCell   *lc;

	if (expectations == NIL)
		return;
	json_key(buf, "expectations");
	appendStringInfoChar(buf, '[');
	foreach(lc, expectations)
	{
		PlnExpectationDef *def = lfirst(lc);

		if (lc != list_head(expectations))
			appendStringInfoString(buf, ", ");
		appendStringInfoChar(buf, '{');
		json_text(buf, "name", def->name);
		json_text(buf, "condition", def->condition ? def->condition->text : NULL);
		json_text(buf, "action", action_names[def->action]);
		json_text(buf, "rules", dotted_name(def->rules_table));
		json_text(buf, "tag", def->rules_tag);
		if (def->threshold_kind != PLN_THRESHOLD_NONE)
			json_text(buf, "fail_above",
					  psprintf("%g %s", def->threshold,
							   def->threshold_kind == PLN_THRESHOLD_PERCENT ? "percent"
							   : "rows"));
		appendStringInfoChar(buf, '}');
	}
	appendStringInfoChar(buf, ']');
}

static void
json_columns(StringInfo buf, List *columns)
{
	ListCell   *lc;

	if (columns == NIL)
		return;
	json_key(buf, "columns");
	appendStringInfoChar(buf, '[');
	foreach(lc, columns)
	{
		PlnColumnDef *column = lfirst(lc);
		StringInfoData options;
		ListCell   *oc;

		if (lc != list_head(columns))
			appendStringInfoString(buf, ", ");
		appendStringInfoChar(buf, '{');
		json_text(buf, "name", column->name);
		json_text(buf, "type", column->type_text);
		if (column->type != NULL)
			json_text(buf, "type_name", strVal(llast(column->type->names)));
		json_flag(buf, "not_null", column->not_null);
		json_text(buf, "comment", column->comment);
		json_flag(buf, "identity", column->is_identity);
		json_flag(buf, "always", column->identity_always);
		initStringInfo(&options);
		foreach(oc, column->identity_options)
		{
			DefElem    *option = lfirst(oc);

			appendStringInfo(&options, "%s%s %s", options.len > 0 ? " " : "", option->defname,
							 castNode(Float, option->arg)->fval);
		}
		json_text(buf, "options", options.len > 0 ? options.data : NULL);
		json_text(buf, "generated", column->generated ? column->generated->text : NULL);
		json_text(buf, "default", column->default_expr ? column->default_expr->text : NULL);
		json_flag(buf, "key", column->informational_key);
		appendStringInfoChar(buf, '}');
	}
	appendStringInfoChar(buf, ']');
}

static void
json_schedule(StringInfo buf, PlnSchedule *schedule)
{
	if (schedule == NULL)
		return;
	json_key(buf, "schedule");
	appendStringInfoChar(buf, '{');
	switch (schedule->kind)
	{
		case PLN_SCHEDULE_EVERY:
			json_text(buf, "every", psprintf("%d %s", schedule->every, schedule->unit));
			break;
		case PLN_SCHEDULE_CRON:
			json_text(buf, "cron", schedule->cron);
			json_text(buf, "time_zone", schedule->time_zone);
			break;
		case PLN_SCHEDULE_TRIGGER:
			json_flag(buf, "trigger", true);
			json_int(buf, "at_most_every_s", schedule->at_most_every_s);
			break;
		case PLN_SCHEDULE_NONE:
			break;
	}
	appendStringInfoChar(buf, '}');
}

static void
json_cdc(StringInfo buf, PlnCdcSpec *cdc)
{
	if (cdc == NULL)
		return;
	json_sql(buf, "source", cdc->source);
	json_sql(buf, "version", cdc->version_query);
	json_strings(buf, "keys", cdc->keys);
	json_flag(buf, "ignore_null_updates", cdc->ignore_null_updates);
	json_strings(buf, cdc->ignore_null_except ? "ignore_null_except" : "ignore_null_columns",
				 cdc->ignore_null_columns);
	json_text(buf, "delete_when", cdc->delete_when ? cdc->delete_when->text : NULL);
	json_text(buf, "truncate_when", cdc->truncate_when ? cdc->truncate_when->text : NULL);
	json_text(buf, "sequence_by", cdc->sequence_by ? cdc->sequence_by->text : NULL);
	json_strings(buf, cdc->columns_except ? "columns_except" : "columns", cdc->columns);
	json_int(buf, "scd_type", cdc->scd_type);
	json_strings(buf, cdc->track_except ? "track_except" : "track", cdc->track_columns);
}

static void
json_flow(StringInfo buf, PlnFlowDef *flow)
{
	if (flow == NULL)
		return;
	json_key(buf, "flow");
	appendStringInfoChar(buf, '{');
	json_text(buf, "kind", flow_names[flow->kind]);
	json_text(buf, "name", flow->name);
	json_text(buf, "target", dotted_name(flow->target));
	json_flag(buf, "once", flow->once);
	json_flag(buf, "by_name", flow->by_name);
	json_sql(buf, "query", flow->query);
	json_reads(buf, flow->query);
	json_text(buf, "replace_where", flow->replace_where ? flow->replace_where->text : NULL);
	json_strings(buf, "replace_using", flow->replace_using);
	json_text(buf, "sequence_by", flow->sequence_by ? flow->sequence_by->text : NULL);
	json_cdc(buf, flow->cdc);
	json_text(buf, "comment", flow->comment);
	appendStringInfoChar(buf, '}');
}

static void
json_dataset(StringInfo buf, PlnCreateDataset *create)
{
	json_text(buf, "kind", kind_names[create->dataset_kind]);
	json_flag(buf, "or_refresh", create->or_refresh);
	json_flag(buf, "or_replace", create->or_replace);
	json_flag(buf, "if_not_exists", create->if_not_exists);
	json_flag(buf, "private", create->is_private);
	json_flag(buf, "legacy", create->legacy);
	json_columns(buf, create->columns);
	json_expectations(buf, create->expectations);
	json_text(buf, "comment", create->comment);
	json_properties(buf, "properties", create->properties);
	json_strings(buf, "partition_by", create->partition_by);
	json_strings(buf, "cluster_by", create->cluster_by);
	json_flag(buf, "cluster_auto", create->cluster_auto);
	if (create->has_policy)
		json_text(buf, "policy", policy_names[create->policy]);
	json_schedule(buf, create->schedule);
	json_flow(buf, create->flow);
	json_strings(buf, "notices", create->notices);
}

/*---------------------------------------------------------------- statements */

/* Kind and name of a statement; its fields are appended to buf. */
static const char *
describe_statement(StringInfo buf, PlnStmt *stmt, char **name)
{
	switch (stmt->kind)
	{
		case PLN_STMT_CREATE_DATASET:
			*name = dotted_name(((PlnCreateDataset *) stmt)->name);
			json_dataset(buf, (PlnCreateDataset *) stmt);
			return "create dataset";
		case PLN_STMT_CREATE_FLOW:
			*name = dotted_name(((PlnCreateFlow *) stmt)->flow->target);
			json_flow(buf, ((PlnCreateFlow *) stmt)->flow);
			return "create flow";
		case PLN_STMT_REFRESH:
			*name = dotted_name(((PlnRefresh *) stmt)->name);
			json_text(buf, "kind", kind_names[((PlnRefresh *) stmt)->dataset_kind]);
			json_flag(buf, "full", ((PlnRefresh *) stmt)->full);
			json_flag(buf, "async", ((PlnRefresh *) stmt)->async);
			json_sql(buf, "where", ((PlnRefresh *) stmt)->where);
			return "refresh";
		case PLN_STMT_ALTER:
			*name = dotted_name(((PlnAlter *) stmt)->name);
			json_text(buf, "kind", kind_names[((PlnAlter *) stmt)->dataset_kind]);
			json_flag(buf, "table", ((PlnAlter *) stmt)->is_table);
			json_text(buf, "alter", alter_names[((PlnAlter *) stmt)->alter_kind]);
			json_schedule(buf, ((PlnAlter *) stmt)->schedule);
			json_text(buf, "column", ((PlnAlter *) stmt)->column);
			json_text(buf, "text", ((PlnAlter *) stmt)->text);
			json_properties(buf, "properties", ((PlnAlter *) stmt)->properties);
			return "alter";
		case PLN_STMT_DROP:
			*name = dotted_name(((PlnDrop *) stmt)->name);
			json_text(buf, "kind", kind_names[((PlnDrop *) stmt)->dataset_kind]);
			json_flag(buf, "if_exists", ((PlnDrop *) stmt)->if_exists);
			json_flag(buf, "cascade", ((PlnDrop *) stmt)->cascade);
			return "drop";
		case PLN_STMT_GRANT_REFRESH:
			*name = dotted_name(((PlnGrantRefresh *) stmt)->name);
			json_text(buf, "kind", kind_names[((PlnGrantRefresh *) stmt)->dataset_kind]);
			json_strings(buf, "grantees", ((PlnGrantRefresh *) stmt)->grantees);
			return ((PlnGrantRefresh *) stmt)->is_grant ? "grant refresh" : "revoke refresh";
		case PLN_STMT_EXPLAIN_CREATE:
			*name = dotted_name(((PlnExplainCreate *) stmt)->create->name);
			json_dataset(buf, ((PlnExplainCreate *) stmt)->create);
			return "explain create";
		case PLN_STMT_DESCRIBE:
			*name = dotted_name(((PlnDescribe *) stmt)->name);
			json_flag(buf, "extended", ((PlnDescribe *) stmt)->extended);
			return "describe";
		case PLN_STMT_SET:
			*name = ((PlnSet *) stmt)->key;
			json_text(buf, "value", ((PlnSet *) stmt)->value);
			return "set";
		case PLN_STMT_USE:
			*name = ((PlnUse *) stmt)->name;
			json_flag(buf, "catalog", ((PlnUse *) stmt)->is_catalog);
			return "use";
		case PLN_STMT_PLAIN:
			*name = dotted_name(((PlnPlain *) stmt)->replaces);
			json_sql(buf, "sql", ((PlnPlain *) stmt)->sql);
			json_strings(buf, "notices", ((PlnPlain *) stmt)->notices);
			return "plain";
	}
	return NULL;
}

/* {"name": "value", ...}; null = known, without value */
static PlnParam *
params_from_jsonb(Jsonb *jsonb, int *nparams)
{
	JsonbIterator *it = JsonbIteratorInit(&jsonb->root);
	PlnParam   *params;
	JsonbValue	value;
	JsonbIteratorToken token;
	int			n = 0;

	*nparams = 0;
	if (!JB_ROOT_IS_OBJECT(jsonb))
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("parameters must be a JSON object")));
	params = palloc_array(PlnParam, Max(1, JB_ROOT_COUNT(jsonb)));
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			params[n].name = pnstrdup(value.val.string.val, value.val.string.len);
		else if (token == WJB_VALUE)
		{
			if (value.type == jbvNull)
				params[n++].value = NULL;
			else if (value.type == jbvString)
				params[n++].value = pnstrdup(value.val.string.val, value.val.string.len);
			else if (value.type == jbvBool)
				params[n++].value = value.val.boolean ? "true" : "false";
			else if (value.type == jbvNumeric)
				params[n++].value =
					DatumGetCString(DirectFunctionCall1(numeric_out,
														NumericGetDatum(value.val.numeric)));
			else
				ereport(ERROR,
						(errcode(PLN_ERR_BAD_VALUE),
						 errmsg("value of parameter \"%s\" is not a string, number or boolean",
								params[n].name)));
		}
	}
	*nparams = n;
	return params;
}

static PlnScript *
parse_arguments(FunctionCallInfo fcinfo)
{
	PlnParam   *params;
	int			nparams;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("source and parameters must not be null")));
	params = params_from_jsonb(PG_GETARG_JSONB_P(1), &nparams);
	return pln_parse_script(text_to_cstring(PG_GETARG_TEXT_PP(0)), params, nparams);
}

/* pipeline_internal.parse(source text, parameters jsonb) -> (n, kind, name, detail) */
Datum
pipeline_parse(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PlnScript  *script;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	script = parse_arguments(fcinfo);
	foreach(lc, script->stmts)
	{
		Datum		values[4];
		bool		nulls[4] = {false};
		char	   *name = NULL;
		const char *kind;
		StringInfoData buf;

		initStringInfo(&buf);
		appendStringInfoChar(&buf, '{');
		kind = describe_statement(&buf, lfirst(lc), &name);
		appendStringInfoChar(&buf, '}');
		values[0] = Int32GetDatum(foreach_current_index(lc) + 1);
		values[1] = CStringGetTextDatum(kind);
		nulls[2] = name == NULL;
		values[2] = name != NULL ? CStringGetTextDatum(name) : (Datum) 0;
		values[3] = DirectFunctionCall1(jsonb_in, CStringGetDatum(buf.data));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* The statement's query as PostgreSQL understands it after analysis; NULL when it has none. */
static char *
rewritten_query(PlnScript *script, PlnStmt *stmt)
{
	PlnErrorScope scope;
	PlnSql	   *sql = NULL;
	RawStmt    *raw;
	Query	   *query;
	char	   *result = NULL;

	if (stmt->kind == PLN_STMT_PLAIN)
		sql = ((PlnPlain *) stmt)->sql;
	else if (stmt->kind == PLN_STMT_CREATE_DATASET && ((PlnCreateDataset *) stmt)->flow != NULL)
		sql = ((PlnCreateDataset *) stmt)->flow->query;
	if (sql == NULL)
		return NULL;
	raw = pln_sql_parse_plain(sql);
	if (sql->needs_expand)
		raw = pln_expand_select(raw, sql);
	pln_error_scope_begin(&scope, script, sql);
	query = parse_analyze_fixedparams(raw, sql->text, NULL, 0, NULL);
	if (query->commandType != CMD_UTILITY)
		result = pg_get_querydef(query, false);
	pln_error_scope_end(&scope);
	return result;
}

/* pipeline_internal.rewrite(source text, parameters jsonb) -> (n, query) */
Datum
pipeline_rewrite(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PlnScript  *script;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	script = parse_arguments(fcinfo);
	foreach(lc, script->stmts)
	{
		char	   *query = rewritten_query(script, lfirst(lc));
		Datum		values[2];
		bool		nulls[2] = {false};

		values[0] = Int32GetDatum(foreach_current_index(lc) + 1);
		nulls[1] = query == NULL;
		values[1] = query != NULL ? CStringGetTextDatum(query) : (Datum) 0;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

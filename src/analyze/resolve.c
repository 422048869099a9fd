/*
 * resolve.c
 *	  Names in a raw query tree.
 *
 * One walk serves two uses: it reports which datasets of the pipeline a query reads, and
 * it rewrites a copy for parse analysis.  WITH names are scoped as the server scopes
 * them, so that  WITH orders AS (SELECT * FROM orders)  reads the dataset.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/lsyscache.h"

#include "analyze/query.h"
#include "analyze/resolve.h"
#include "base/errors.h"
#include "catalog/checkpoints.h"
#include "catalog/expectations.h"
#include "files/files.h"
#include "source/file_ledger.h"

typedef struct ResolveContext
{
	PlnProgram *program;
	PlnNode    *node;			/* whose query this is */
	bool		rewrite;		/* false: only collect */
	List	   *ctes;			/* of char *: WITH names in scope */
	int			nfiles;			/* file sources met so far */
	int64		flow_id;
} ResolveContext;

static bool resolve_walker(Node *node, ResolveContext *cxt);

/* ---- marks made by the dialect ---- */

static bool
is_stream_sample(RangeTableSample *sample)
{
	return list_length(sample->method) == 2 &&
		strcmp(strVal(linitial(sample->method)), "pipeline") == 0 &&
		strcmp(strVal(lsecond(sample->method)), "stream") == 0;
}

static FuncCall *
read_files_call(RangeFunction *function)
{
	FuncCall   *call;

	if (function->is_rowsfrom || list_length(function->functions) != 1)
		return NULL;
	call = linitial(linitial_node(List, function->functions));
	if (call == NULL || !IsA(call, FuncCall) || list_length(call->funcname) != 2 ||
		strcmp(strVal(linitial(call->funcname)), "pipeline") != 0 ||
		strcmp(strVal(lsecond(call->funcname)), "read_files") != 0)
		return NULL;
	return call;
}

static char *
argument_text(Node *arg)
{
	if (IsA(arg, NamedArgExpr))
		arg = (Node *) ((NamedArgExpr *) arg)->arg;
	PLN_ENSURE(IsA(arg, A_Const) && nodeTag(&((A_Const *) arg)->val) == T_String);
	return strVal(&((A_Const *) arg)->val);
}

/* ---- file sources ---- */

static Node *
text_constant(const char *value, int location)
{
	A_Const    *constant = makeNode(A_Const);

	constant->val.sval.type = T_String;
	constant->val.sval.sval = pstrdup(value);
	constant->location = location;
	return (Node *) constant;
}

static Node *
type_cast(Node *arg, const char *type)
{
	TypeCast   *cast = makeNode(TypeCast);

	cast->arg = arg;
	cast->typeName = typeStringToTypeName(type);
	cast->location = -1;
	return (Node *) cast;
}

static List *
column_definitions(PlnFileSchema *schema)
{
	List	   *defs = NIL;
	int			i;

	for (i = 0; i < schema->ncolumns; i++)
		defs = lappend(defs, makeColumnDef(schema->columns[i].name, schema->columns[i].type,
										   schema->columns[i].typmod,
										   schema->columns[i].collation));
	if (schema->rescued != NULL)
		defs = lappend(defs, makeColumnDef(schema->rescued, TEXTOID, -1,
										   DEFAULT_COLLATION_OID));
	return defs;
}

/* Columns that only new files have are added to a frozen schema where that is asked for. */
static PlnFileSchema *
evolve_schema(ResolveContext *cxt, PlnFileSchema *schema, PlnFileOptions *options, int ordinal)
{
	List	   *added = NIL;
	List	   *files;

	if (!cxt->program->allow_file_io || options->schema != NULL)
		return schema;
	files = pln_files_list(options);
	options->format = schema->format;
	files = pln_file_ledger_new(cxt->flow_id, ordinal, files, options->allow_overwrites);
	return files == NIL ? schema : pln_file_schema_evolve(schema, files, options, &added);
}

/*
 * The columns of a file source: frozen by the first run, given, or inferred now.  NULL when
 * they would have to be inferred and file I/O is not allowed.
 */
static PlnFileSchema *
file_schema(ResolveContext *cxt, PlnFileOptions *options, int ordinal, const char *path,
			const char *options_json)
{
	char	   *stored = cxt->flow_id ?
		pln_file_source_frozen(cxt->flow_id, ordinal, path, options_json) : NULL;

	if (stored != NULL)
		return evolve_schema(cxt, pln_file_schema_from_json(stored), options, ordinal);
	if (options->schema != NULL && options->format != PLN_FORMAT_DETECT)
		return pln_files_infer(NIL, options);
	if (!cxt->program->allow_file_io)
		return NULL;
	return pln_files_infer(pln_files_list(options), options);
}

typedef struct FileScope
{
	ResolveContext *cxt;
	int			location;
} FileScope;

/* Whatever is wrong with the place or the options is wrong at this read_files. */
static void
file_error_context(void *arg)
{
	FileScope  *scope = arg;

	if (geterrcode() != ERRCODE_QUERY_CANCELED && geterrposition() <= 0)
		(void) pln_sql_errposition(scope->cxt->node->sql, scope->location);
	errcontext("read_files of dataset \"%s\"", scope->cxt->node->name);
}

/*
 * pipeline.read_files('path', name => 'value', ...) becomes
 * pipeline.read_files('path', '{"name": "value"}'::jsonb) AS (columns).
 */
static void
resolve_read_files(ResolveContext *cxt, RangeFunction *function, FuncCall *call)
{
	int			ordinal = cxt->nfiles++;
	StringInfoData json;
	List	   *names = NIL;
	List	   *values = NIL;
	char	   *path;
	PlnFileOptions *options;
	PlnFileSchema *schema;
	FileScope	scope;
	ErrorContextCallback callback;
	ListCell   *lc;

	if (!cxt->rewrite)
		return;
	path = argument_text(linitial(call->args));
	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for_each_from(lc, call->args, 1)
	{
		NamedArgExpr *arg = lfirst_node(NamedArgExpr, lc);
		char	   *value = argument_text((Node *) arg);

		if (json.len > 1)
			appendStringInfoString(&json, ", ");
		escape_json(&json, arg->name);
		appendStringInfoString(&json, ": ");
		escape_json(&json, value);
		if (strcmp(arg->name, "stream") == 0)
			continue;
		names = lappend(names, arg->name);
		values = lappend(values, value);
	}
	appendStringInfoChar(&json, '}');
	scope.cxt = cxt;
	scope.location = call->location;
	callback.callback = file_error_context;
	callback.arg = &scope;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	options = pln_file_options_parse(path, names, values);
	schema = file_schema(cxt, options, ordinal, path, json.data);
	error_context_stack = callback.previous;
	if (schema == NULL)
	{
		cxt->node->unknown_schema = true;
		return;
	}
	cxt->node->file_schemas = lappend(cxt->node->file_schemas,
									  pln_file_schema_to_json(schema));
	cxt->node->file_paths = lappend(cxt->node->file_paths, path);
	cxt->node->file_options = lappend(cxt->node->file_options, json.data);
	call->args = list_make2(text_constant(path, call->location),
							type_cast(text_constant(json.data, call->location),
									  "pg_catalog.jsonb"));
	function->coldeflist = column_definitions(schema);
}

/* ---- relations ---- */

static bool
is_cte(ResolveContext *cxt, RangeVar *relation)
{
	ListCell   *lc;

	if (relation->schemaname != NULL || relation->catalogname != NULL)
		return false;
	foreach(lc, cxt->ctes)
	{
		if (strcmp(lfirst(lc), relation->relname) == 0)
			return true;
	}
	return false;
}

static void
raise_mode_mismatch(ResolveContext *cxt, PlnNode *view, RangeVar *relation, bool wants_stream)
{
	if (wants_stream)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("temporary view \"%s\" is not streaming", view->name),
				 errhint("Read a stream inside the view: FROM STREAM(...)."),
				 pln_sql_errposition(cxt->node->sql, relation->location)));
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("temporary view \"%s\" is streaming and must be read with STREAM", view->name),
			 errhint("FROM STREAM(%s)", quote_identifier(view->name)),
			 pln_sql_errposition(cxt->node->sql, relation->location)));
}

static Node *
text_array(List *values)
{
	A_ArrayExpr *array = makeNode(A_ArrayExpr);
	ListCell   *lc;

	foreach(lc, values)
		array->elements = lappend(array->elements, text_constant(lfirst(lc), -1));
	array->location = -1;
	return type_cast((Node *) array, "pg_catalog.text[]");
}

/*
 * SELECT * FROM (view) v WHERE check_row(name, rules, actions, condition, ...) OFFSET 0: the
 * OFFSET keeps the reader's own conditions from being applied first, so that every row of the
 * view is counted.
 */
static Node *
with_checks(PlnNode *view, Node *query)
{
	SelectStmt *select = makeNode(SelectStmt);
	RangeSubselect *from = makeNode(RangeSubselect);
	ResTarget  *target = makeNode(ResTarget);
	ColumnRef  *star = makeNode(ColumnRef);
	A_Const    *zero = makeNode(A_Const);
	List	   *rules = NIL;
	List	   *actions = NIL;
	List	   *conditions = NIL;
	ListCell   *lc;

	foreach(lc, view->decl->expectations)
	{
		PlnExpectationDef *def = lfirst(lc);

		rules = lappend(rules, def->name);
		actions = lappend(actions, unconstify(char *, pln_action_name(def->action)));
		conditions = lappend(conditions, pln_sql_parse_expr(def->condition));
	}
	if (rules == NIL)
		return query;
	star->fields = list_make1(makeNode(A_Star));
	star->location = -1;
	target->val = (Node *) star;
	target->location = -1;
	from->subquery = query;
	from->alias = makeAlias(view->name, NIL);
	select->targetList = list_make1(target);
	select->fromClause = list_make1(from);
	select->whereClause = (Node *)
		makeFuncCall(list_make2(makeString("pipeline"), makeString("check_row")),
					 list_concat(list_make3(text_constant(pln_node_display_name(view), -1),
					 		text_array(rules),
											text_array(actions)),
								 conditions),
					 COERCE_EXPLICIT_CALL, -1);
	zero->val.ival.type = T_Integer;
	zero->val.ival.ival = 0;
	zero->location = -1;
	select->limitOffset = (Node *) zero;
	select->limitOption = LIMIT_OPTION_COUNT;
	return (Node *) select;
}

/* The view's query in place of its name. */
static Node *
inline_view(ResolveContext *cxt, PlnNode *view, RangeVar *relation, bool wants_stream)
{
	RangeSubselect *subselect = makeNode(RangeSubselect);
	ResolveContext inner;

	if (wants_stream != view->streaming)
		raise_mode_mismatch(cxt, view, relation, wants_stream);
	if (view->raw == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("temporary view \"%s\" has no query", view->name)));
	inner = *cxt;
	inner.ctes = NIL;
	subselect->subquery = copyObject(view->raw->stmt);
	(void) resolve_walker(subselect->subquery, &inner);
	cxt->nfiles = inner.nfiles;
	subselect->subquery = with_checks(view, subselect->subquery);
	subselect->alias = relation->alias ? relation->alias : makeAlias(relation->relname, NIL);
	return (Node *) subselect;
}

/* The mark that STREAM leaves cannot stand on a view. */
static void
refuse_view_stream(ResolveContext *cxt, RangeVar *relation)
{
	Oid			relid = RangeVarGetRelid(relation, NoLock, true);
	char		kind = OidIsValid(relid) ? get_rel_relkind(relid) : '\0';

	if (kind == RELKIND_VIEW || kind == RELKIND_FOREIGN_TABLE)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("\"%s\" cannot be read as a stream", relation->relname),
				 errdetail("It is a %s.", kind == RELKIND_VIEW ? "view" : "foreign table"),
				 errhint("Read its tables with STREAM, or make it a temporary view of the "
						 "pipeline."),
				 pln_sql_errposition(cxt->node->sql, relation->location)));
}

/* CREATE PROCEDURE comes before its tables in many a deployment script (B12). */
static void
note_missing(ResolveContext *cxt, RangeVar *relation)
{
	if (OidIsValid(RangeVarGetRelid(relation, NoLock, true)))
		return;
	cxt->node->unknown_schema = true;
	ereport(NOTICE,
			(errmsg("source %s of \"%s\" does not exist yet",
					quote_qualified_identifier(relation->schemaname, relation->relname),
					cxt->node->name),
			 pln_sql_errposition(cxt->node->sql, relation->location)));
}

static Node *
resolve_relation(ResolveContext *cxt, RangeVar *relation, bool streaming, Node *item)
{
	PlnNode    *found;

	if (is_cte(cxt, relation))
	{
		if (streaming)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("STREAM of WITH query \"%s\"", relation->relname),
					 errhint("Write STREAM inside the WITH query."),
					 pln_sql_errposition(cxt->node->sql, relation->location)));
		return item;
	}
	found = pln_program_find(cxt->program, cxt->node, relation->schemaname, relation->relname);
	/* a temporary view may shadow the relation of its name that it reads itself */
	if (found == cxt->node && found->decl->dataset_kind == PLN_TEMPORARY_VIEW)
		found = NULL;
	if (streaming && !cxt->rewrite)
		cxt->node->streaming = true;
	if (found == NULL)
	{
		if (cxt->rewrite && streaming)
			refuse_view_stream(cxt, relation);
		if (cxt->rewrite && cxt->program->missing_ok)
			note_missing(cxt, relation);
		return item;
	}
	if (!cxt->rewrite)
	{
		cxt->node->inputs = list_append_unique_int(cxt->node->inputs, found->index);
		return item;
	}
	if (found->decl->dataset_kind == PLN_TEMPORARY_VIEW)
		return inline_view(cxt, found, relation, streaming);
	if (found->unknown_schema)
		cxt->node->unknown_schema = true;
	relation->catalogname = NULL;
	/* the alias keeps  dataset.column  working for private tables */
	if (relation->alias == NULL && strcmp(found->stored_name, found->name) != 0)
		relation->alias = makeAlias(found->name, NIL);
	relation->schemaname = found->stored_schema;
	relation->relname = found->stored_name;
	return item;
}

static Node *
resolve_from_item(ResolveContext *cxt, Node *item)
{
	switch (nodeTag(item))
	{
		case T_RangeVar:
			return resolve_relation(cxt, (RangeVar *) item, false, item);
		case T_RangeTableSample:
			{
				RangeTableSample *sample = (RangeTableSample *) item;

				if (IsA(sample->relation, RangeVar))
					return resolve_relation(cxt, (RangeVar *) sample->relation,
											is_stream_sample(sample), item);
				(void) resolve_walker(sample->relation, cxt);
				return item;
			}
		case T_JoinExpr:
			{
				JoinExpr   *join = (JoinExpr *) item;

				join->larg = resolve_from_item(cxt, join->larg);
				join->rarg = resolve_from_item(cxt, join->rarg);
				(void) resolve_walker(join->quals, cxt);
				return item;
			}
		case T_RangeFunction:
			{
				FuncCall   *call = read_files_call((RangeFunction *) item);

				if (call != NULL)
				{
					ListCell   *lc;

					for_each_from(lc, call->args, 1)
					{
						if (strcmp(lfirst_node(NamedArgExpr, lc)->name, "stream") == 0 &&
							!cxt->rewrite)
							cxt->node->streaming = true;
					}
					resolve_read_files(cxt, (RangeFunction *) item, call);
					return item;
				}
				(void) resolve_walker(item, cxt);
				return item;
			}
		default:
			(void) resolve_walker(item, cxt);
			return item;
	}
}

static void
resolve_with(ResolveContext *cxt, WithClause *with)
{
	ListCell   *lc;

	if (with == NULL)
		return;
	if (with->recursive)
	{
		foreach(lc, with->ctes)
			cxt->ctes = lappend(cxt->ctes, lfirst_node(CommonTableExpr, lc)->ctename);
	}
	foreach(lc, with->ctes)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		(void) resolve_walker(cte->ctequery, cxt);
		if (!with->recursive)
			cxt->ctes = lappend(cxt->ctes, cte->ctename);
	}
}

static void
resolve_select(SelectStmt *select, ResolveContext *cxt)
{
	List	   *saved = cxt->ctes;
	ListCell   *lc;

	cxt->ctes = list_copy(saved);
	resolve_with(cxt, select->withClause);
	if (select->larg != NULL)
		resolve_select(select->larg, cxt);
	if (select->rarg != NULL)
		resolve_select(select->rarg, cxt);
	foreach(lc, select->fromClause)
		lfirst(lc) = resolve_from_item(cxt, lfirst(lc));
	(void) resolve_walker((Node *) select->distinctClause, cxt);
	(void) resolve_walker((Node *) select->targetList, cxt);
	(void) resolve_walker(select->whereClause, cxt);
	(void) resolve_walker((Node *) select->groupClause, cxt);
	(void) resolve_walker(select->havingClause, cxt);
	(void) resolve_walker((Node *) select->windowClause, cxt);
	(void) resolve_walker((Node *) select->valuesLists, cxt);
	(void) resolve_walker((Node *) select->sortClause, cxt);
	(void) resolve_walker(select->limitOffset, cxt);
	(void) resolve_walker(select->limitCount, cxt);
	cxt->ctes = saved;
}

static bool
resolve_walker(Node *node, ResolveContext *cxt)
{
	if (node == NULL)
		return false;
	if (IsA(node, SelectStmt))
	{
		resolve_select((SelectStmt *) node, cxt);
		return false;
	}
	/* DISTINCT without ON is a list of one null */
	if (IsA(node, List) && list_length((List *) node) == 1 && linitial((List *) node) == NULL)
		return false;
	return raw_expression_tree_walker(node, resolve_walker, cxt);
}

void
pln_resolve_inputs(PlnProgram *program, PlnNode *node)
{
	ResolveContext cxt;

	if (node->raw == NULL)
		return;
	memset(&cxt, 0, sizeof(cxt));
	cxt.program = program;
	cxt.node = node;
	(void) resolve_walker(node->raw->stmt, &cxt);
}

RawStmt *
pln_resolve_query(PlnProgram *program, PlnNode *node, int64 flow_id)
{
	ResolveContext cxt;
	RawStmt    *raw = copyObject(node->raw);
	PlnErrorScope scope;

	memset(&cxt, 0, sizeof(cxt));
	cxt.program = program;
	cxt.node = node;
	cxt.rewrite = true;
	cxt.flow_id = flow_id;
	pln_error_scope_begin(&scope, program->script, node->sql);
	(void) resolve_walker(raw->stmt, &cxt);
	pln_error_scope_end(&scope);
	return node->unknown_schema ? NULL : raw;
}

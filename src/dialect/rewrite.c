/*
 * rewrite.c
 *	  Raw parse trees of the dialect to those of PostgreSQL, in place.
 *
 * A tree comes fresh from the server's parser and belongs to us, so nodes are
 * overwritten where they stand: the new node must not be larger than the old one.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#include "base/errors.h"
#include "dialect/internal.h"

static bool rewrite_walker(Node *node, void *context);

/* Type names of Spark; both sides unqualified, PostgreSQL's in pg_catalog. */
static const struct
{
	const char *spark;
	const char *postgres;
}			type_names[] =
{
	{"string", "text"},
	{"double", "float8"},
	{"tinyint", "int2"},
	{"byte", "int2"},
	{"short", "int2"},
	{"long", "int8"},
	{"binary", "bytea"},
	{"timestamp_ntz", "timestamp"},
	{"timestamp_ltz", "timestamptz"},
	{"variant", "jsonb"},
	{"dec", "numeric"},
};

void
pln_rewrite_type(TypeName *type)
{
	char	   *name;
	int			i;

	if (list_length(type->names) != 1)
		return;
	name = strVal(linitial(type->names));
	for (i = 0; i < (int) lengthof(type_names); i++)
	{
		if (strcmp(name, type_names[i].spark) == 0)
		{
			type->names = list_make2(makeString("pg_catalog"),
									 makeString(pstrdup(type_names[i].postgres)));
			return;
		}
	}
}

static PlnStreamRef *
find_stream(PlnSql *sql, int text_location)
{
	ListCell   *lc;

	foreach(lc, sql->streams)
	{
		PlnStreamRef *ref = lfirst(lc);

		if (ref->text_location == text_location)
			return ref;
	}
	return NULL;
}

/* t -> t TABLESAMPLE pipeline.stream('{options}') */
static void
mark_stream(RangeVar *var, PlnStreamRef *ref)
{
	RangeVar   *relation = palloc_object(RangeVar);
	RangeTableSample *sample = makeNode(RangeTableSample);
	A_Const    *options = makeNode(A_Const);

	StaticAssertStmt(sizeof(RangeTableSample) <= sizeof(RangeVar),
					 "a RangeTableSample does not fit in the place of a RangeVar");
	*relation = *var;
	options->val.sval.type = T_String;
	options->val.sval.sval = pln_stream_options_json(ref->options);
	options->location = var->location;
	sample->relation = (Node *) relation;
	sample->method = list_make2(makeString("pipeline"), makeString("stream"));
	sample->args = list_make1(options);
	sample->location = var->location;
	memcpy(var, sample, sizeof(RangeTableSample));
}

static bool
is_file_reader(FuncCall *call)
{
	char	   *name = strVal(llast(call->funcname));

	if (list_length(call->funcname) == 2 &&
		strcmp(strVal(linitial(call->funcname)), "pipeline") != 0)
		return false;
	return list_length(call->funcname) <= 2 &&
		(strcmp(name, "read_files") == 0 || strcmp(name, "cloud_files") == 0);
}

static void
rewrite_range_function(PlnSql *sql, RangeFunction *range)
{
	ListCell   *lc;

	foreach(lc, range->functions)
	{
		Node	   *function = linitial(lfirst_node(List, lc));
		FuncCall   *call;
		PlnStreamRef *ref;

		if (!IsA(function, FuncCall))
			continue;
		call = (FuncCall *) function;
		ref = find_stream(sql, call->location);
		if (is_file_reader(call))
			pln_rewrite_read_files(sql, call, ref);
		else if (ref != NULL)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("STREAM of function \"%s\" is not supported",
							strVal(llast(call->funcname))),
					 errhint("STREAM takes a table or read_files(...)."),
					 pln_script_errposition(sql->script, ref->location)));
	}
}

/* SET t.col = ... -> SET col = ...; only where t is the target itself. */
static void
rewrite_targets(List *targets, RangeVar *relation)
{
	const char *target = relation->alias ? relation->alias->aliasname : relation->relname;
	ListCell   *lc;

	foreach(lc, targets)
	{
		ResTarget  *column = lfirst(lc);

		if (IsA(column, ResTarget) && column->name != NULL && column->indirection != NIL &&
			IsA(linitial(column->indirection), String) &&
			strcmp(column->name, target) == 0)
		{
			column->name = strVal(linitial(column->indirection));
			column->indirection = list_delete_first(column->indirection);
		}
	}
}

static void
rewrite_merge(MergeStmt *merge)
{
	ListCell   *lc;

	foreach(lc, merge->mergeWhenClauses)
	{
		MergeWhenClause *when = lfirst(lc);

		rewrite_targets(when->targetList, merge->relation);
	}
}

static bool
rewrite_walker(Node *node, void *context)
{
	PlnSql	   *sql = context;
	PlnStreamRef *ref;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_RangeVar:
			ref = find_stream(sql, ((RangeVar *) node)->location);
			if (ref != NULL)
				mark_stream((RangeVar *) node, ref);
			return false;
		case T_RangeTableSample:
			ref = find_stream(sql, exprLocation(((RangeTableSample *) node)->relation));
			if (ref != NULL)
				ereport(ERROR,
						(errcode(PLN_ERR_NOT_BUILT),
						 errmsg("TABLESAMPLE of a STREAM is not supported"),
						 pln_script_errposition(sql->script, ref->location)));
			break;
		case T_RangeFunction:
			rewrite_range_function(sql, (RangeFunction *) node);
			break;
		case T_TypeName:
			pln_rewrite_type((TypeName *) node);
			break;
		case T_FuncCall:
			/* arguments first: the node may turn into another kind */
			if (raw_expression_tree_walker(node, rewrite_walker, context))
				return true;
			pln_rewrite_function(sql, (FuncCall *) node);
			return false;
		case T_UpdateStmt:
			rewrite_targets(((UpdateStmt *) node)->targetList, ((UpdateStmt *) node)->relation);
			break;
		case T_MergeStmt:
			rewrite_merge((MergeStmt *) node);
			break;
		case T_Constraint:
			return rewrite_walker(((Constraint *) node)->raw_expr, context);
		case T_DefElem:
		case T_CollateClause:
			return false;
		default:
			break;
	}
	return raw_expression_tree_walker(node, rewrite_walker, context);
}

static void
rewrite_list(List *list, PlnSql *sql)
{
	ListCell   *lc;

	foreach(lc, list)
		(void) rewrite_walker(lfirst(lc), sql);
}

static void
rewrite_column(ColumnDef *column, PlnSql *sql)
{
	if (column->typeName != NULL)
		pln_rewrite_type(column->typeName);
	(void) rewrite_walker(column->raw_default, sql);
	rewrite_list(column->constraints, sql);
}

static void
rewrite_columns(List *elements, PlnSql *sql)
{
	ListCell   *lc;

	foreach(lc, elements)
	{
		Node	   *element = lfirst(lc);

		if (IsA(element, ColumnDef))
			rewrite_column((ColumnDef *) element, sql);
		else if (IsA(element, Constraint))
			(void) rewrite_walker(element, sql);
	}
}

static void
rewrite_alter_table(AlterTableStmt *alter, PlnSql *sql)
{
	ListCell   *lc;

	foreach(lc, alter->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);

		if (cmd->def == NULL)
			continue;
		if (IsA(cmd->def, ColumnDef))
			rewrite_column((ColumnDef *) cmd->def, sql);
		else if (IsA(cmd->def, Constraint) || cmd->subtype == AT_ColumnDefault)
			(void) rewrite_walker(cmd->def, sql);
	}
}

/*
 * The whole of a statement, query or expression.  Statements that hold no SQL of the
 * dialect stay as they are.
 */
void
pln_rewrite_raw(PlnSql *sql, Node *raw)
{
	if (raw == NULL)
		return;
	check_stack_depth();
	switch (nodeTag(raw))
	{
		case T_RawStmt:
			pln_rewrite_raw(sql, ((RawStmt *) raw)->stmt);
			break;
		case T_CreateStmt:
			rewrite_columns(((CreateStmt *) raw)->tableElts, sql);
			break;
		case T_CreateTableAsStmt:
			pln_rewrite_raw(sql, ((CreateTableAsStmt *) raw)->query);
			break;
		case T_ViewStmt:
			pln_rewrite_raw(sql, ((ViewStmt *) raw)->query);
			break;
		case T_ExplainStmt:
			pln_rewrite_raw(sql, ((ExplainStmt *) raw)->query);
			break;
		case T_CopyStmt:
			pln_rewrite_raw(sql, ((CopyStmt *) raw)->query);
			break;
		case T_PrepareStmt:
			pln_rewrite_raw(sql, ((PrepareStmt *) raw)->query);
			break;
		case T_DeclareCursorStmt:
			pln_rewrite_raw(sql, ((DeclareCursorStmt *) raw)->query);
			break;
		case T_CallStmt:
			(void) rewrite_walker((Node *) ((CallStmt *) raw)->funccall, sql);
			break;
		case T_AlterTableStmt:
			rewrite_alter_table((AlterTableStmt *) raw, sql);
			break;
		case T_IndexStmt:
			rewrite_list(((IndexStmt *) raw)->indexParams, sql);
			(void) rewrite_walker(((IndexStmt *) raw)->whereClause, sql);
			break;
		case T_SelectStmt:
		case T_InsertStmt:
		case T_UpdateStmt:
		case T_DeleteStmt:
		case T_MergeStmt:
			(void) rewrite_walker(raw, sql);
			break;
		default:
			break;
	}
}

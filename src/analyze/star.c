/*
 * star.c
 *	  * EXCEPT, QUALIFY and GROUP BY ALL: the parts of a query that need to know the
 *	  columns of its FROM clause.
 *
 * The dialect's parser leaves markers in the raw tree (tokens.c): a target "?except?"
 * behind a star, a last target "?qualify?", a grouping column "?all?".  Here they become
 * plain SQL, innermost query first.  Columns are learnt by analysing  SELECT * FROM
 * (the same FROM clause)  with the CTEs that are in scope; nothing is executed, and the
 * locks are those that analysing the query itself takes.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parsetree.h"
#include "utils/syscache.h"

#include "analyze/star.h"
#include "base/errors.h"
#include "compat/pg_compat.h"

#define EXCEPT_MARK		"?except?"
#define QUALIFY_MARK	"?qualify?"
#define ALL_MARK		"?all?"

typedef struct Expander
{
	PlnSql	   *sql;
	List	   *ctes;			/* CommonTableExpr in scope, outermost first */
	bool		recursive;		/* one of their WITH clauses is RECURSIVE */
} Expander;

static bool expand_walker(Node *node, void *context);

static int
source_position(Expander *x, int text_location)
{
	return pln_script_errposition(x->sql->script,
								  pln_sql_source_location(x->sql, text_location));
}

/*---------------------------------------------------------------- learning columns */

/* A later CTE hides an earlier one of its name. */
static WithClause *
scope_clause(Expander *x)
{
	WithClause *with = makeNode(WithClause);
	ListCell   *lc;
	ListCell   *other;

	if (x->ctes == NIL)
		return NULL;
	foreach(lc, x->ctes)
	{
		CommonTableExpr *cte = lfirst(lc);
		bool		hidden = false;

		for_each_cell(other, x->ctes, lnext(x->ctes, lc))
			hidden |= strcmp(((CommonTableExpr *) lfirst(other))->ctename, cte->ctename) == 0;
		if (!hidden)
			with->ctes = lappend(with->ctes, copyObject(cte));
	}
	with->recursive = x->recursive;
	with->location = -1;
	return with;
}

static Query *
analyze_probe(Expander *x, SelectStmt *probe)
{
	PlnErrorScope scope;
	RawStmt    *raw = makeNode(RawStmt);
	Query	   *query;

	if (probe->withClause == NULL)
		probe->withClause = scope_clause(x);
	raw->stmt = (Node *) probe;
	raw->stmt_location = 0;
	pln_error_scope_begin(&scope, x->sql->script, x->sql);
	query = parse_analyze_fixedparams(raw, x->sql->text, NULL, 0, NULL);
	pln_error_scope_end(&scope);
	return query;
}

static ResTarget *
make_target(char *name, Node *val, int location)
{
	ResTarget  *target = makeNode(ResTarget);

	target->name = name;
	target->val = val;
	target->location = location;
	return target;
}

static ColumnRef *
make_ref(List *fields, int location)
{
	ColumnRef  *ref = makeNode(ColumnRef);

	ref->fields = fields;
	ref->location = location;
	return ref;
}

/* What  SELECT star FROM (FROM clause of select)  yields. */
static Query *
probe_star(Expander *x, SelectStmt *select, List *star_fields, int location)
{
	SelectStmt *probe = makeNode(SelectStmt);
	ResTarget  *target = make_target(NULL, (Node *) make_ref(copyObject(star_fields), location),
									 location);

	probe->targetList = list_make1(target);
	probe->fromClause = copyObject(select->fromClause);
	return analyze_probe(x, probe);
}

static int
count_name(Query *query, const char *name)
{
	ListCell   *lc;
	int			n = 0;

	foreach(lc, query->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		n += !tle->resjunk && strcmp(tle->resname, name) == 0;
	}
	return n;
}

/*---------------------------------------------------------------- stars */

static bool
is_star(ResTarget *target)
{
	return target->val != NULL && IsA(target->val, ColumnRef) &&
		IsA(llast(((ColumnRef *) target->val)->fields), A_Star);
}

static bool
is_marker(ResTarget *target, const char *mark)
{
	return target->name != NULL && strcmp(target->name, mark) == 0;
}

/* One column of a star; qualified where its bare name would be ambiguous. */
static ColumnRef *
column_of_star(Query *query, TargetEntry *tle, List *star_fields, int location)
{
	List	   *fields;

	if (list_length(star_fields) > 1)
		fields = list_copy_head(star_fields, list_length(star_fields) - 1);
	else
	{
		fields = NIL;
		if (count_name(query, tle->resname) > 1 && IsA(tle->expr, Var))
		{
			RangeTblEntry *rte = rt_fetch(((Var *) tle->expr)->varno, query->rtable);

			if (rte->rtekind != RTE_JOIN)
				fields = list_make1(makeString(pstrdup(rte->eref->aliasname)));
		}
	}
	return make_ref(lappend(fields, makeString(pstrdup(tle->resname))), location);
}

static bool
name_excluded(List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(strVal(&castNode(A_Const, lfirst(lc))->val), name) == 0)
			return true;
	}
	return false;
}

/* Targets for a star without the excluded columns (A_Const of text). */
static List *
expand_star(Expander *x, SelectStmt *select, ResTarget *star, List *excluded)
{
	List	   *star_fields = ((ColumnRef *) star->val)->fields;
	Query	   *query = probe_star(x, select, star_fields, star->location);
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, excluded)
	{
		A_Const    *name = lfirst_node(A_Const, lc);

		if (count_name(query, strVal(&name->val)) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of * EXCEPT does not exist", strVal(&name->val)),
					 source_position(x, name->location)));
	}
	foreach(lc, query->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		if (tle->resjunk || name_excluded(excluded, tle->resname))
			continue;
		result = lappend(result,
						 make_target(NULL,
									 (Node *) column_of_star(query, tle, star_fields,
															 star->location),
									 star->location));
	}
	if (result == NIL)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("* EXCEPT leaves no column"),
				 source_position(x, star->location)));
	return result;
}

/* Stars with EXCEPT; all of them when every column must be known. */
static void
expand_stars(Expander *x, SelectStmt *select, bool all)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, select->targetList)
	{
		ResTarget  *target = lfirst(lc);
		ListCell   *next = lnext(select->targetList, lc);

		if (is_star(target) && next != NULL && is_marker(lfirst(next), EXCEPT_MARK))
		{
			List	   *names = castNode(A_ArrayExpr, ((ResTarget *) lfirst(next))->val)->elements;

			result = list_concat(result, expand_star(x, select, target, names));
		}
		else if (is_marker(target, EXCEPT_MARK))
			continue;			/* the star before it took it */
		else if (all && is_star(target))
			result = list_concat(result, expand_star(x, select, target, NIL));
		else
			result = lappend(result, target);
	}
	select->targetList = result;
}

/*---------------------------------------------------------------- GROUP BY ALL */

static bool
names_aggregate(List *funcname)
{
	FuncCandidateList candidate;

	for (candidate = FuncnameGetCandidates(funcname, -1, NIL, false, false, false, true);
		 candidate != NULL; candidate = candidate->next)
	{
		HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(candidate->oid));
		bool		aggregate;

		if (!HeapTupleIsValid(tuple))
			continue;
		aggregate = ((Form_pg_proc) GETSTRUCT(tuple))->prokind == PROKIND_AGGREGATE;
		ReleaseSysCache(tuple);
		if (aggregate)
			return true;
	}
	return false;
}

/* Does an expression hold an aggregate or window function of this query level? */
static bool
aggregate_walker(Node *node, void *context)
{
	if (node == NULL || IsA(node, SubLink))
		return false;
	if (IsA(node, GroupingFunc))
		return true;
	if (IsA(node, FuncCall))
	{
		FuncCall   *call = (FuncCall *) node;

		if (call->over != NULL || call->agg_star || call->agg_distinct ||
			call->agg_filter != NULL || call->agg_order != NIL ||
			names_aggregate(call->funcname))
			return true;
	}
	return raw_expression_tree_walker(node, aggregate_walker, context);
}

static bool
groups_by_all(SelectStmt *select)
{
	Node	   *item;

	if (list_length(select->groupClause) != 1)
		return false;
	item = linitial(select->groupClause);
	return IsA(item, ColumnRef) && list_length(((ColumnRef *) item)->fields) == 1 &&
		IsA(linitial(((ColumnRef *) item)->fields), String) &&
		strcmp(strVal(linitial(((ColumnRef *) item)->fields)), ALL_MARK) == 0;
}

/* Grouping by the positions of the targets without aggregate. */
static void
expand_group_by_all(SelectStmt *select)
{
	List	   *items = NIL;
	ListCell   *lc;
	int			n = 0;

	foreach(lc, select->targetList)
	{
		ResTarget  *target = lfirst(lc);
		A_Const    *position;

		n++;
		if (is_marker(target, QUALIFY_MARK) || aggregate_walker(target->val, NULL))
			continue;
		position = makeNode(A_Const);
		position->val.ival.type = T_Integer;
		position->val.ival.ival = n;
		position->location = target->location;
		items = lappend(items, position);
	}
	select->groupClause = items;
}

/*---------------------------------------------------------------- QUALIFY */

typedef struct AliasContext
{
	List	   *targets;		/* ResTarget with the aliases */
	Query	   *input;			/* names that are columns of the FROM clause; NULL = none */
} AliasContext;

static void replace_aliases(Node **slot, AliasContext *context);

static void
replace_in_list(List *list, AliasContext *context)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		Node	   *node = lfirst(lc);

		replace_aliases(&node, context);
		lfirst(lc) = node;
	}
}

/* QUALIFY may name a target's alias: put its expression there. */
static void
replace_aliases(Node **slot, AliasContext *context)
{
	Node	   *node = *slot;
	ListCell   *lc;

	if (node == NULL)
		return;
	check_stack_depth();
	switch (nodeTag(node))
	{
		case T_ColumnRef:
			{
				List	   *fields = ((ColumnRef *) node)->fields;

				if (list_length(fields) != 1 || !IsA(linitial(fields), String) ||
					(context->input != NULL &&
					 count_name(context->input, strVal(linitial(fields))) > 0))
					return;
				foreach(lc, context->targets)
				{
					ResTarget  *target = lfirst(lc);

					if (target->name != NULL &&
						strcmp(target->name, strVal(linitial(fields))) == 0)
					{
						*slot = copyObject(target->val);
						return;
					}
				}
				return;
			}
		case T_A_Expr:
			replace_aliases(&((A_Expr *) node)->lexpr, context);
			replace_aliases(&((A_Expr *) node)->rexpr, context);
			return;
		case T_BoolExpr:
			replace_in_list(((BoolExpr *) node)->args, context);
			return;
		case T_FuncCall:
			replace_in_list(((FuncCall *) node)->args, context);
			return;
		case T_CoalesceExpr:
			replace_in_list(((CoalesceExpr *) node)->args, context);
			return;
		case T_MinMaxExpr:
			replace_in_list(((MinMaxExpr *) node)->args, context);
			return;
		case T_List:
			replace_in_list((List *) node, context);
			return;
		case T_TypeCast:
			replace_aliases(&((TypeCast *) node)->arg, context);
			return;
		case T_NullTest:
			replace_aliases((Node **) &((NullTest *) node)->arg, context);
			return;
		case T_BooleanTest:
			replace_aliases((Node **) &((BooleanTest *) node)->arg, context);
			return;
		case T_CaseExpr:
			replace_aliases((Node **) &((CaseExpr *) node)->arg, context);
			replace_aliases((Node **) &((CaseExpr *) node)->defresult, context);
			replace_in_list(((CaseExpr *) node)->args, context);
			return;
		case T_CaseWhen:
			replace_aliases((Node **) &((CaseWhen *) node)->expr, context);
			replace_aliases((Node **) &((CaseWhen *) node)->result, context);
			return;
		default:
			return;
	}
}

/* Is it the name or the number of an output column? */
static bool
is_output_reference(Node *node, Query *output)
{
	if (IsA(node, A_Const))
		return true;
	return IsA(node, ColumnRef) && list_length(((ColumnRef *) node)->fields) == 1 &&
		IsA(linitial(((ColumnRef *) node)->fields), String) &&
		count_name(output, strVal(linitial(((ColumnRef *) node)->fields))) > 0;
}

/* ORDER BY moves to the outer query; what it computes becomes a hidden inner column. */
static int
move_sort_clause(Expander *x, SelectStmt *inner, SelectStmt *outer, Query *output)
{
	ListCell   *lc;
	int			hidden = 0;

	foreach(lc, outer->sortClause)
	{
		SortBy	   *sort = lfirst(lc);

		if (is_output_reference(sort->node, output))
			continue;
		if (outer->distinctClause != NIL)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("QUALIFY with DISTINCT and ORDER BY of an expression is not supported"),
					 source_position(x, sort->location)));
		hidden++;
		inner->targetList = lappend(inner->targetList,
									make_target(psprintf("?sort%d?", hidden), sort->node,
												sort->location));
		sort->node = (Node *) make_ref(list_make2(makeString("qualified"),
												  makeString(psprintf("?sort%d?", hidden))), -1);
	}
	return hidden;
}

/* Column names of the subquery: distinct, the output names where they are. */
static List *
subquery_names(Query *output, int visible)
{
	List	   *names = NIL;
	ListCell   *lc;
	int			n = 0;

	foreach(lc, output->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		if (tle->resjunk || ++n > visible)
			continue;
		names = lappend(names, makeString(count_name(output, tle->resname) > 1
										  ? psprintf("%s?%d", tle->resname, n)
										  : pstrdup(tle->resname)));
	}
	return names;
}

/* SELECT targets FROM (select with the condition as a column) WHERE that column */
static void
expand_qualify(Expander *x, SelectStmt *select)
{
	SelectStmt *inner = makeNode(SelectStmt);
	ResTarget  *condition;
	RangeSubselect *sub = makeNode(RangeSubselect);
	AliasContext aliases;
	Query	   *output;
	ListCell   *lc;
	int			visible;
	int			hidden;
	int			i = 0;

	memcpy(inner, select, sizeof(SelectStmt));
	condition = llast(inner->targetList);
	if (select->distinctClause != NIL && linitial(select->distinctClause) != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("QUALIFY with DISTINCT ON is not supported"),
				 source_position(x, condition->location)));
	aliases.targets = list_copy_head(inner->targetList, list_length(inner->targetList) - 1);
	aliases.input = inner->fromClause == NIL ? NULL
		: probe_star(x, inner, list_make1(makeNode(A_Star)), condition->location);
	replace_aliases(&condition->val, &aliases);

	inner->withClause = NULL;
	inner->distinctClause = NIL;
	inner->sortClause = NIL;
	inner->limitOffset = NULL;
	inner->limitCount = NULL;
	inner->limitOption = LIMIT_OPTION_DEFAULT;
	output = analyze_probe(x, copyObject(inner));
	visible = -1;				/* the condition is not */
	foreach(lc, output->targetList)
		visible += !((TargetEntry *) lfirst(lc))->resjunk;

	sub->alias = makeAlias("qualified", subquery_names(output, visible));
	sub->alias->colnames = lappend(sub->alias->colnames, makeString(QUALIFY_MARK));
	select->targetList = NIL;
	foreach(lc, output->targetList)
	{
		TargetEntry *tle = lfirst(lc);
		Node	   *ref;

		if (i >= visible)
			break;
		ref = (Node *) make_ref(list_make2(makeString("qualified"),
										   copyObject(list_nth(sub->alias->colnames, i))),
								condition->location);
		select->targetList = lappend(select->targetList,
									 make_target(pstrdup(tle->resname), ref,
												 condition->location));
		i++;
	}
	hidden = move_sort_clause(x, inner, select, output);
	for (i = 1; i <= hidden; i++)
		sub->alias->colnames = lappend(sub->alias->colnames,
									   makeString(psprintf("?sort%d?", i)));
	sub->subquery = (Node *) inner;
	select->fromClause = list_make1(sub);
	select->whereClause = (Node *) make_ref(list_make2(makeString("qualified"),
													   makeString(QUALIFY_MARK)),
											condition->location);
	select->groupClause = NIL;
	select->groupDistinct = false;
	select->havingClause = NULL;
	select->windowClause = NIL;
	select->lockingClause = NIL;
}

/*---------------------------------------------------------------- walking */

/* CTEs first, each with the ones before it in scope. */
static void
enter_with(Expander *x, WithClause *with)
{
	ListCell   *lc;

	x->recursive |= with->recursive;
	foreach(lc, with->ctes)
	{
		CommonTableExpr *cte = lfirst(lc);

		(void) expand_walker(cte->ctequery, x);
		x->ctes = lappend(x->ctes, cte);
	}
}

static void
expand_select(SelectStmt *select, Expander *x)
{
	bool		group_all;

	group_all = groups_by_all(select);
	expand_stars(x, select, group_all);
	if (group_all)
		expand_group_by_all(select);
	if (select->targetList != NIL && is_marker(llast(select->targetList), QUALIFY_MARK))
		expand_qualify(x, select);
}

static bool
expand_walker(Node *node, void *context)
{
	Expander   *x = context;

	if (node == NULL)
		return false;
	if (IsA(node, SelectStmt))
	{
		SelectStmt *select = (SelectStmt *) node;
		Expander	inner = *x;
		WithClause *with = select->withClause;

		check_stack_depth();
		inner.ctes = list_copy(x->ctes);
		if (with != NULL)
			enter_with(&inner, with);
		select->withClause = NULL;
		(void) raw_expression_tree_walker(node, expand_walker, &inner);
		expand_select(select, &inner);
		select->withClause = with;
		return false;
	}
	return raw_expression_tree_walker(node, expand_walker, context);
}

static void
expand_statement(Node *stmt, Expander *x)
{
	if (stmt == NULL)
		return;
	switch (nodeTag(stmt))
	{
		case T_CreateTableAsStmt:
			expand_statement(((CreateTableAsStmt *) stmt)->query, x);
			break;
		case T_ViewStmt:
			expand_statement(((ViewStmt *) stmt)->query, x);
			break;
		case T_ExplainStmt:
			expand_statement(((ExplainStmt *) stmt)->query, x);
			break;
		case T_CopyStmt:
			expand_statement(((CopyStmt *) stmt)->query, x);
			break;
		case T_DeclareCursorStmt:
			expand_statement(((DeclareCursorStmt *) stmt)->query, x);
			break;
		case T_InsertStmt:
			if (((InsertStmt *) stmt)->withClause != NULL)
				enter_with(x, ((InsertStmt *) stmt)->withClause);
			(void) expand_walker(((InsertStmt *) stmt)->selectStmt, x);
			break;
		case T_SelectStmt:
		case T_UpdateStmt:
		case T_DeleteStmt:
		case T_MergeStmt:
			(void) expand_walker(stmt, x);
			break;
		default:
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("* EXCEPT, QUALIFY and GROUP BY ALL are not supported in this statement"),
					 pln_script_errposition(x->sql->script, x->sql->expand_location)));
	}
}

RawStmt *
pln_expand_select(RawStmt *raw, PlnSql *sql)
{
	Expander	x = {0};

	if (!sql->needs_expand)
		return raw;
	x.sql = sql;
	expand_statement(raw->stmt, &x);
	return raw;
}

/*
 * qualify.c
 *	  QUALIFY: a filter on window functions, as a query around the query.
 *
 * The condition is the last target of the raw tree (tokens.c); it becomes a hidden
 * column of a subquery, and the WHERE clause of the query around it.  DISTINCT, ORDER BY
 * and LIMIT apply to what passes, so they move outwards.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#include "analyze/star_internal.h"
#include "base/errors.h"

typedef struct AliasContext
{
	List *targets; /* ResTarget with the aliases */
	Query *input;  /* names that are columns of the FROM clause; NULL = none */
} AliasContext;

static void replace_aliases(Node **slot, AliasContext *context);

static void
replace_in_list(List *list, AliasContext *context)
{
	ListCell *lc;

	foreach(lc, list)
	{
		Node *node = lfirst(lc);

		replace_aliases(&node, context);
		lfirst(lc) = node;
	}
}

/* QUALIFY may name a target's alias: put its expression there. */
static void
replace_aliases(Node **slot, AliasContext *context)
{
	Node *node = *slot;
	ListCell *lc;

	if (node == NULL)
		return;
	check_stack_depth();
	switch (nodeTag(node))
	{
		case T_ColumnRef:
		{
			List *fields = ((ColumnRef *) node)->fields;

			if (list_length(fields) != 1 || !IsA(linitial(fields), String) ||
				(context->input != NULL &&
				 pln_expand_count_name(context->input, strVal(linitial(fields))) > 0))
				return;
			foreach(lc, context->targets)
			{
				ResTarget *target = lfirst(lc);

				if (target->name != NULL && strcmp(target->name, strVal(linitial(fields))) == 0)
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
		   pln_expand_count_name(output, strVal(linitial(((ColumnRef *) node)->fields))) > 0;
}

/* ORDER BY moves to the outer query; what it computes becomes a hidden inner column. */
static int
move_sort_clause(PlnExpander *x, SelectStmt *inner, SelectStmt *outer, Query *output)
{
	ListCell *lc;
	int hidden = 0;

	foreach(lc, outer->sortClause)
	{
		SortBy *sort = lfirst(lc);

		if (is_output_reference(sort->node, output))
			continue;
		if (outer->distinctClause != NIL)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("QUALIFY with DISTINCT and ORDER BY of an expression is not supported"),
					 pln_expand_errposition(x, sort->location)));
		hidden++;
		inner->targetList =
			lappend(inner->targetList,
					pln_expand_target(psprintf("?sort%d?", hidden), sort->node, sort->location));
		sort->node = (Node *) pln_expand_ref(
			list_make2(makeString("qualified"), makeString(psprintf("?sort%d?", hidden))), -1);
	}
	return hidden;
}

/* Column names of the subquery: distinct, the output names where they are. */
static List *
subquery_names(Query *output, int visible)
{
	List *names = NIL;
	ListCell *lc;
	int n = 0;

	foreach(lc, output->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		if (tle->resjunk || ++n > visible)
			continue;
		names = lappend(names, makeString(pln_expand_count_name(output, tle->resname) > 1
											  ? psprintf("%s?%d", tle->resname, n)
											  : pstrdup(tle->resname)));
	}
	return names;
}

/* SELECT targets FROM (select with the condition as a column) WHERE that column */
void
pln_expand_qualify(PlnExpander *x, SelectStmt *select)
{
	SelectStmt *inner = makeNode(SelectStmt);
	ResTarget *condition;
	RangeSubselect *sub = makeNode(RangeSubselect);
	AliasContext aliases;
	Query *output;
	ListCell *lc;
	int visible;
	int hidden;
	int i = 0;

	memcpy(inner, select, sizeof(SelectStmt));
	condition = llast(inner->targetList);
	if (select->distinctClause != NIL && linitial(select->distinctClause) != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT), errmsg("QUALIFY with DISTINCT ON is not supported"),
				 pln_expand_errposition(x, condition->location)));
	aliases.targets = list_copy_head(inner->targetList, list_length(inner->targetList) - 1);
	aliases.input =
		inner->fromClause == NIL
			? NULL
			: pln_expand_probe_star(x, inner, list_make1(makeNode(A_Star)), condition->location);
	replace_aliases(&condition->val, &aliases);

	inner->withClause = NULL;
	inner->distinctClause = NIL;
	inner->sortClause = NIL;
	inner->limitOffset = NULL;
	inner->limitCount = NULL;
	inner->limitOption = LIMIT_OPTION_DEFAULT;
	output = pln_expand_probe(x, copyObject(inner));
	visible = -1; /* the condition is not */
	foreach(lc, output->targetList)
		visible += !((TargetEntry *) lfirst(lc))->resjunk;

	sub->alias = makeAlias("qualified", subquery_names(output, visible));
	sub->alias->colnames = lappend(sub->alias->colnames, makeString(PLN_MARK_QUALIFY));
	select->targetList = NIL;
	foreach(lc, output->targetList)
	{
		TargetEntry *tle = lfirst(lc);
		Node *ref;

		if (i >= visible)
			break;
		ref = (Node *) pln_expand_ref(
			list_make2(makeString("qualified"), copyObject(list_nth(sub->alias->colnames, i))),
			condition->location);
		select->targetList = lappend(
			select->targetList, pln_expand_target(pstrdup(tle->resname), ref, condition->location));
		i++;
	}
	hidden = move_sort_clause(x, inner, select, output);
	for (i = 1; i <= hidden; i++)
		sub->alias->colnames = lappend(sub->alias->colnames, makeString(psprintf("?sort%d?", i)));
	sub->subquery = (Node *) inner;
	select->fromClause = list_make1(sub);
	select->whereClause = (Node *) pln_expand_ref(
		list_make2(makeString("qualified"), makeString(PLN_MARK_QUALIFY)), condition->location);
	select->groupClause = NIL;
	select->groupDistinct = false;
	select->havingClause = NULL;
	select->windowClause = NIL;
	select->lockingClause = NIL;
}

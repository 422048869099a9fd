/*
 * star.c
 *	  * EXCEPT, QUALIFY and GROUP BY ALL: the parts of a query that need to know the
 *	  columns of its FROM clause.
 *
 * The dialect's parser leaves markers in the raw tree (tokens.c): a target "?except?"
 * behind a star, a last target "?qualify?", a grouping column "?all?".  Here they become
 * plain SQL, innermost query first.  Columns are learnt by analysing  SELECT * FROM
 * (the same FROM clause)  with the CTEs that are in scope; nothing is executed, and the
 * locks are those that analysing the query itself takes.  QUALIFY is in qualify.c.
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
#include "analyze/star_internal.h"
#include "base/errors.h"
#include "compat/pg_compat.h"

static bool expand_walker(Node *node, void *context);

int
pln_expand_errposition(PlnExpander *x, int text_location)
{
	return pln_script_errposition(x->sql->script, pln_sql_source_location(x->sql, text_location));
}

/*---------------------------------------------------------------- learning columns */

/* A later CTE hides an earlier one of its name. */
static WithClause *
scope_clause(PlnExpander *x)
{
	WithClause *with = makeNode(WithClause);
	ListCell *lc;
	ListCell *other;

	if (x->ctes == NIL)
		return NULL;
	foreach(lc, x->ctes)
	{
		CommonTableExpr *cte = lfirst(lc);
		bool hidden = false;

		for_each_cell(other, x->ctes, lnext(x->ctes, lc))
			hidden |= strcmp(((CommonTableExpr *) lfirst(other))->ctename, cte->ctename) == 0;
		if (!hidden)
			with->ctes = lappend(with->ctes, copyObject(cte));
	}
	with->recursive = x->recursive;
	with->location = -1;
	return with;
}

Query *
pln_expand_probe(PlnExpander *x, SelectStmt *probe)
{
	PlnErrorScope scope;
	RawStmt *raw = makeNode(RawStmt);
	Query *query;

	if (probe->withClause == NULL)
		probe->withClause = scope_clause(x);
	raw->stmt = (Node *) probe;
	raw->stmt_location = 0;
	pln_error_scope_begin(&scope, x->sql->script, x->sql);
	query = parse_analyze_fixedparams(raw, x->sql->text, NULL, 0, NULL);
	pln_error_scope_end(&scope);
	return query;
}

ResTarget *
pln_expand_target(char *name, Node *val, int location)
{
	ResTarget *target = makeNode(ResTarget);

	target->name = name;
	target->val = val;
	target->location = location;
	return target;
}

ColumnRef *
pln_expand_ref(List *fields, int location)
{
	ColumnRef *ref = makeNode(ColumnRef);

	ref->fields = fields;
	ref->location = location;
	return ref;
}

/* What  SELECT star FROM (FROM clause of select)  yields. */
Query *
pln_expand_probe_star(PlnExpander *x, SelectStmt *select, List *star_fields, int location)
{
	SelectStmt *probe = makeNode(SelectStmt);
	Node *star = (Node *) pln_expand_ref(copyObject(star_fields), location);
	ResTarget *target = pln_expand_target(NULL, star, location);

	probe->targetList = list_make1(target);
	probe->fromClause = copyObject(select->fromClause);
	return pln_expand_probe(x, probe);
}

int
pln_expand_count_name(Query *query, const char *name)
{
	ListCell *lc;
	int n = 0;

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
	List *fields;

	if (list_length(star_fields) > 1)
		fields = list_copy_head(star_fields, list_length(star_fields) - 1);
	else
	{
		fields = NIL;
		if (pln_expand_count_name(query, tle->resname) > 1 && IsA(tle->expr, Var))
		{
			RangeTblEntry *rte = rt_fetch(((Var *) tle->expr)->varno, query->rtable);

			if (rte->rtekind != RTE_JOIN)
				fields = list_make1(makeString(pstrdup(rte->eref->aliasname)));
		}
	}
	return pln_expand_ref(lappend(fields, makeString(pstrdup(tle->resname))), location);
}

static bool
name_excluded(List *names, const char *name)
{
	ListCell *lc;

	foreach(lc, names)
	{
		if (strcmp(strVal(&castNode(A_Const, lfirst(lc))->val), name) == 0)
			return true;
	}
	return false;
}

/* Targets for a star without the excluded columns (A_Const of text). */
static List *
expand_star(PlnExpander *x, SelectStmt *select, ResTarget *star, List *excluded)
{
	List *star_fields = ((ColumnRef *) star->val)->fields;
	Query *query = pln_expand_probe_star(x, select, star_fields, star->location);
	List *result = NIL;
	ListCell *lc;

	foreach(lc, excluded)
	{
		A_Const *name = lfirst_node(A_Const, lc);

		if (pln_expand_count_name(query, strVal(&name->val)) == 0)
			ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
							errmsg("column \"%s\" of * EXCEPT does not exist", strVal(&name->val)),
							pln_expand_errposition(x, name->location)));
	}
	foreach(lc, query->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		if (tle->resjunk || name_excluded(excluded, tle->resname))
			continue;
		result = lappend(result,
						 pln_expand_target(
							 NULL, (Node *) column_of_star(query, tle, star_fields, star->location),
							 star->location));
	}
	if (result == NIL)
		ereport(ERROR, (errcode(PLN_ERR_SYNTAX), errmsg("* EXCEPT leaves no column"),
						pln_expand_errposition(x, star->location)));
	return result;
}

/* Stars with EXCEPT; all of them when every column must be known. */
static void
expand_stars(PlnExpander *x, SelectStmt *select, bool all)
{
	List *result = NIL;
	ListCell *lc;

	foreach(lc, select->targetList)
	{
		ResTarget *target = lfirst(lc);
		ListCell *next = lnext(select->targetList, lc);

		if (is_star(target) && next != NULL && is_marker(lfirst(next), PLN_MARK_EXCEPT))
		{
			List *names = castNode(A_ArrayExpr, ((ResTarget *) lfirst(next))->val)->elements;

			result = list_concat(result, expand_star(x, select, target, names));
		}
		else if (is_marker(target, PLN_MARK_EXCEPT))
			continue; /* the star before it took it */
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
		HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(candidate->oid));
		bool aggregate;

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
		FuncCall *call = (FuncCall *) node;

		if (call->over != NULL || call->agg_star || call->agg_distinct ||
			call->agg_filter != NULL || call->agg_order != NIL || names_aggregate(call->funcname))
			return true;
	}
	return raw_expression_tree_walker(node, aggregate_walker, context);
}

static bool
groups_by_all(SelectStmt *select)
{
	Node *item;

	if (list_length(select->groupClause) != 1)
		return false;
	item = linitial(select->groupClause);
	return IsA(item, ColumnRef) && list_length(((ColumnRef *) item)->fields) == 1 &&
		   IsA(linitial(((ColumnRef *) item)->fields), String) &&
		   strcmp(strVal(linitial(((ColumnRef *) item)->fields)), PLN_MARK_ALL) == 0;
}

/* Grouping by the positions of the targets without aggregate. */
static void
expand_group_by_all(SelectStmt *select)
{
	List *items = NIL;
	ListCell *lc;
	int n = 0;

	foreach(lc, select->targetList)
	{
		ResTarget *target = lfirst(lc);
		A_Const *position;

		n++;
		if (is_marker(target, PLN_MARK_QUALIFY) || aggregate_walker(target->val, NULL))
			continue;
		position = makeNode(A_Const);
		position->val.ival.type = T_Integer;
		position->val.ival.ival = n;
		position->location = target->location;
		items = lappend(items, position);
	}
	select->groupClause = items;
}

/*---------------------------------------------------------------- walking */

/* CTEs first, each with the ones before it in scope. */
static void
enter_with(PlnExpander *x, WithClause *with)
{
	ListCell *lc;

	x->recursive |= with->recursive;
	foreach(lc, with->ctes)
	{
		CommonTableExpr *cte = lfirst(lc);

		(void) expand_walker(cte->ctequery, x);
		x->ctes = lappend(x->ctes, cte);
	}
}

static void
expand_select(SelectStmt *select, PlnExpander *x)
{
	bool group_all;

	group_all = groups_by_all(select);
	expand_stars(x, select, group_all);
	if (group_all)
		expand_group_by_all(select);
	if (select->targetList != NIL && is_marker(llast(select->targetList), PLN_MARK_QUALIFY))
		pln_expand_qualify(x, select);
}

static bool
expand_walker(Node *node, void *context)
{
	PlnExpander *x = context;

	if (node == NULL)
		return false;
	if (IsA(node, SelectStmt))
	{
		SelectStmt *select = (SelectStmt *) node;
		PlnExpander inner = *x;
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
expand_statement(Node *stmt, PlnExpander *x)
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
					 errmsg("* EXCEPT, QUALIFY, GROUP BY ALL are not supported in this statement"),
					 pln_script_errposition(x->sql->script, x->sql->expand_location)));
	}
}

RawStmt *
pln_expand_select(RawStmt *raw, PlnSql *sql)
{
	PlnExpander x = {0};

	if (!sql->needs_expand)
		return raw;
	x.sql = sql;
	expand_statement(raw->stmt, &x);
	return raw;
}

/*
 * wrap.c
 *	  A SELECT put around an analysed query: casts, conditions, further columns.
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_node.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "ivm/wrap.h"

TupleDesc
pln_query_desc(Query *query)
{
	return ExecCleanTypeFromTL(query->targetList);
}

/* SELECT <targets> FROM (query) "query"; targets come later. */
static Query *
wrap_query(Query *query)
{
	Query	   *outer = makeNode(Query);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	RangeTblRef *ref = makeNode(RangeTblRef);
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);

		if (!te->resjunk)
			names = lappend(names, makeString(pstrdup(te->resname)));
	}
	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = query;
	rte->alias = makeAlias("q", NIL);
	rte->eref = makeAlias("q", names);
	rte->inFromCl = true;
	ref->rtindex = 1;
	outer->commandType = CMD_SELECT;
	outer->querySource = QSRC_ORIGINAL;
	outer->canSetTag = true;
	outer->rtable = list_make1(rte);
	outer->jointree = makeFromExpr(list_make1(ref), NULL);
	return outer;
}

static Var *
output_var(TargetEntry *te)
{
	return makeVar(1, te->resno, exprType((Node *) te->expr), exprTypmod((Node *) te->expr),
				   exprCollation((Node *) te->expr), 0);
}

Query *
pln_query_coerce(Query *query, int ncolumns, char **names, Oid *types, int32 *typmods,
				 Oid *collations)
{
	ParseState *pstate = make_parsestate(NULL);
	bool		differs = false;
	Query	   *outer;
	List	   *targets = NIL;
	ListCell   *lc;
	int			i = 0;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);

		if (te->resjunk)
			continue;
		PLN_ENSURE(i < ncolumns);
		differs |= exprType((Node *) te->expr) != types[i] ||
			exprTypmod((Node *) te->expr) != typmods[i] ||
			exprCollation((Node *) te->expr) != collations[i] ||
			strcmp(te->resname, names[i]) != 0;
		i++;
	}
	if (!differs)
		return query;
	outer = wrap_query(query);
	i = 0;
	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);
		Node	   *expr;

		if (te->resjunk)
			continue;
		expr = coerce_to_target_type(pstate, (Node *) output_var(te),
									 exprType((Node *) te->expr), types[i], typmods[i],
									 COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1);
		if (expr == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" is of type %s but the query gives %s", names[i],
							format_type_with_typemod(types[i], typmods[i]),
							format_type_be(exprType((Node *) te->expr))),
					 errhint("Cast it in the query.")));
		assign_expr_collations(pstate, expr);
		if (OidIsValid(collations[i]) && exprCollation(expr) != collations[i])
		{
			CollateExpr *collate = makeNode(CollateExpr);

			collate->arg = (Expr *) expr;
			collate->collOid = collations[i];
			collate->location = -1;
			expr = (Node *) collate;
		}
		targets = lappend(targets, makeTargetEntry((Expr *) expr, i + 1, pstrdup(names[i]),
												   false));
		i++;
	}
	outer->targetList = targets;
	free_parsestate(pstate);
	return outer;
}

/* The query's own columns, as targets of the SELECT around it. */
static List *
passed_through(Query *query)
{
	List	   *targets = NIL;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);

		if (!te->resjunk)
			targets = lappend(targets, makeTargetEntry((Expr *) output_var(te), te->resno,
													   pstrdup(te->resname), false));
	}
	return targets;
}

Query *
pln_query_filter(Query *query, List *quals)
{
	Query	   *outer = wrap_query(query);
	List	   *tests = NIL;
	ListCell   *lc;

	outer->targetList = passed_through(query);
	foreach(lc, quals)
	{
		BooleanTest *test = makeNode(BooleanTest);

		test->arg = copyObject(lfirst(lc));
		test->booltesttype = IS_TRUE;
		test->location = -1;
		tests = lappend(tests, test);
	}
	outer->jointree->quals = list_length(tests) == 1 ? linitial(tests) :
		(Node *) makeBoolExpr(AND_EXPR, tests, -1);
	return outer;
}

Query *
pln_query_append(Query *query, List *extra)
{
	Query	   *outer = wrap_query(query);
	ListCell   *lc;

	outer->targetList = passed_through(query);
	foreach(lc, extra)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);

		te->resno = list_length(outer->targetList) + 1;
		outer->targetList = lappend(outer->targetList, te);
	}
	return outer;
}

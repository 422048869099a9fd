/*
 * star_internal.h
 *	  What star.c and qualify.c share.
 */
#ifndef PIPELINE_ANALYZE_STAR_INTERNAL_H
#define PIPELINE_ANALYZE_STAR_INTERNAL_H

#include "dialect/parse.h"

#define PLN_MARK_EXCEPT		"?except?"
#define PLN_MARK_QUALIFY	"?qualify?"
#define PLN_MARK_ALL		"?all?"

typedef struct PlnExpander
{
	PlnSql	   *sql;
	List	   *ctes;			/* CommonTableExpr in scope, outermost first */
	bool		recursive;		/* one of their WITH clauses is RECURSIVE */
} PlnExpander;

/* star.c */
extern int	pln_expand_errposition(PlnExpander *x, int text_location);
extern Query *pln_expand_probe(PlnExpander *x, SelectStmt *probe);
extern Query *pln_expand_probe_star(PlnExpander *x, SelectStmt *select, List *star_fields,
									int location);
extern int	pln_expand_count_name(Query *query, const char *name);
extern ResTarget *pln_expand_target(char *name, Node *val, int location);
extern ColumnRef *pln_expand_ref(List *fields, int location);

/* qualify.c */
extern void pln_expand_qualify(PlnExpander *x, SelectStmt *select);

#endif							/* PIPELINE_ANALYZE_STAR_INTERNAL_H */

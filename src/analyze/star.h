/*
 * star.h
 *	  * EXCEPT, QUALIFY and GROUP BY ALL, which need the columns of the FROM clause.
 */
#ifndef PIPELINE_ANALYZE_STAR_H
#define PIPELINE_ANALYZE_STAR_H

#include "dialect/parse.h"

/*
 * Rewrite the raw tree of a statement whose sql->needs_expand is set into one that the
 * server analyses.  Names must have been resolved: FROM clauses are analysed as they
 * stand.  Changes the tree in place and returns it.
 */
extern RawStmt *pln_expand_select(RawStmt *raw, PlnSql *sql);

#endif							/* PIPELINE_ANALYZE_STAR_H */

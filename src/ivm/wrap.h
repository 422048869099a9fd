/*
 * wrap.h
 *	  A SELECT put around an analysed query.
 */
#ifndef PIPELINE_IVM_WRAP_H
#define PIPELINE_IVM_WRAP_H

#include "access/tupdesc.h"
#include "nodes/parsenodes.h"

/*
 * SELECT * FROM (query) with the i-th output coerced to types[i]/typmods[i] (assignment
 * rules, 42804 naming the column) and named names[i]; the query itself when nothing differs.
 */
extern Query *pln_query_coerce(Query *query, int ncolumns, char **names, Oid *types,
							   int32 *typmods, Oid *collations);

/* SELECT * FROM (query) WHERE each of quals IS TRUE; quals have Vars of varno 1. */
extern Query *pln_query_filter(Query *query, List *quals);

/* Row type of a SELECT's visible output. */
extern TupleDesc pln_query_desc(Query *query);

/* SELECT *, extra ... FROM (query); extra is a list of TargetEntry, numbered here. */
extern Query *pln_query_append(Query *query, List *extra);

#endif							/* PIPELINE_IVM_WRAP_H */

/*
 * matview_ddl.h
 *	  Creating a true materialized view from an analysed query, and replacing its query
 *	  (correctness B4, B5).
 */
#ifndef PIPELINE_WRITE_MATVIEW_DDL_H
#define PIPELINE_WRITE_MATVIEW_DDL_H

#include "nodes/parsenodes.h"

/* CREATE MATERIALIZED VIEW schema.name WITH NO DATA with this query (a SELECT without resjunk
 * output left over); fillfactor 90 unless options give one.  Owner = current user.  42P07 when the
 * name is taken. */
extern Oid	pln_matview_create(const char *schema, const char *name, Query *query, List *options);

/*
 * Replace the stored query.  Same column names, types and collations, or columns appended: done
 * in place, indexes, grants, comments and dependants survive.  Anything else raises 42P16 as CREATE
 * OR REPLACE VIEW does, listing dependants in the detail.  Returns true when columns
 * were appended.  The caller refills the view.
 */
extern bool pln_matview_replace_query(Oid matview, Query *query);

/* Would pln_matview_replace_query accept it?  For plans and dry runs. */
extern bool pln_matview_can_replace(Oid matview, Query *query);

#endif							/* PIPELINE_WRITE_MATVIEW_DDL_H */

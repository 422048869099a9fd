/*
 * execute.h
 *	  From a stored query to rows in a receiver; shared by the kinds of flow.
 */
#ifndef PIPELINE_FLOW_EXECUTE_H
#define PIPELINE_FLOW_EXECUTE_H

#include "nodes/parsenodes.h"
#include "tcop/dest.h"
#include "utils/rel.h"

#include "flow/flow.h"

/*
 * The relation must belong to the role that the flow runs as: its owner can attach code to it
 * (constraints, indexes, defaults) that would run with that role's rights.  Raises 42501.
 */
extern void pln_flow_check_owner(Relation rel, Oid owner);

/* Take AccessShareLock on every relation, expand views and row security. */
extern Query *pln_rewrite_query(Query *query);

/* Raise 42501 unless the rights that the query needs are there, at every level. */
extern void pln_check_rights(Query *query);

/*
 * Raise 40001 when the snapshot of this transaction is older than the content or the definition
 * of a relation that the rewritten query reads (correctness A5).
 */
extern void pln_check_versions(Query *query);

/* Of a rewritten query: changes with it and with each view and policy that was expanded. */
extern char *pln_query_hash(Query *query);

/* Base relations of a rewritten query without the relation itself. */
extern List *pln_query_inputs(Query *query, Oid self);

/* Plan and run under the active snapshot. */
extern void pln_execute_query(Query *query, DestReceiver *dest, bool parallel_ok);

/* For each visible column of the query its attribute in desc, by name. */
extern AttrNumber *pln_map_columns(Query *query, TupleDesc desc, int *ncolumns);

/* The i-th visible column of the query is the i-th attribute of desc: views, whose columns may
 * have been renamed since. */
extern AttrNumber *pln_map_positions(Query *query, TupleDesc desc, int *ncolumns);

/* Copy counts of the expectations into the outcome. */
extern void pln_flow_note_counts(PlnFlowContext *cxt);

/* Make sure that every input is captured at this level; reasons of those that are not are
 * appended to *reasons. True when something was created. */
extern bool pln_flow_capture(PlnFlowContext *cxt, List *relids, bool stream, List **reasons);

#endif							/* PIPELINE_FLOW_EXECUTE_H */

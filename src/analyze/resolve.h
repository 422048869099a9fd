/*
 * resolve.h
 *	  Names in a raw query tree: which datasets of the pipeline it reads, and the tree
 *	  with every name made definite, temporary views inlined and file columns filled in.
 */
#ifndef PIPELINE_ANALYZE_RESOLVE_H
#define PIPELINE_ANALYZE_RESOLVE_H

#include "analyze/program.h"

/* Set node->inputs (and node->streaming) from its raw tree. */
extern void pln_resolve_inputs(PlnProgram *program, PlnNode *node);

/*
 * A copy of node->raw ready for parse analysis.  NULL when the columns of a file source are
 * not known and may not be looked at now (node->unknown_schema is set then).
 * flow_id is that of the dataset's flow (its frozen file schemas), 0 = none yet.
 */
extern RawStmt *pln_resolve_query(PlnProgram *program, PlnNode *node, int64 flow_id);

#endif							/* PIPELINE_ANALYZE_RESOLVE_H */

/*
 * define_internal.h
 *	  Shared by the define_*.c files of this folder only.
 */
#ifndef PIPELINE_ANALYZE_DEFINE_INTERNAL_H
#define PIPELINE_ANALYZE_DEFINE_INTERNAL_H

#include "access/tupdesc.h"

#include "analyze/program.h"

/* define_table.c: the relation behind a streaming table; returns query coerced to its columns. */
extern Query *pln_define_table(PlnProgram *program, PlnNode *node, Query *query);

/* define_matview.c */
extern void pln_define_matview(PlnProgram *program, PlnNode *node, Query *query);
extern void pln_define_view(PlnProgram *program, PlnNode *node, RawStmt *raw, Query *query);

/* define_flow.c: (re)make the view that keeps a flow's query; NULL query drops it. */
extern Oid	pln_define_flow_view(PlnProgram *program, PlnNode *node, Query *query);
extern void pln_drop_flow_view(PlnFlow *flow);

/* define.c */
extern void pln_define_expectations(PlnProgram *program, PlnNode *node, TupleDesc desc);
extern char *pln_define_fingerprint(PlnProgram *program, Query *query);
extern void pln_define_note(PlnProgram *program, PlnNode *node, const char *change,
							const char *effect);
extern void pln_define_ddl(const char *sql);
extern void pln_define_move_private(PlnNode *node, const char *kind);

#endif							/* PIPELINE_ANALYZE_DEFINE_INTERNAL_H */

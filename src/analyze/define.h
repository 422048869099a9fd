/*
 * define.h
 *	  From checked declarations to relations, flow views and catalog rows.
 */
#ifndef PIPELINE_ANALYZE_DEFINE_H
#define PIPELINE_ANALYZE_DEFINE_H

#include "analyze/program.h"

/*
 * Define every dataset of the program in topological order, as its owner and with the
 * pinned settings: everything is analysed, created or altered, or an error is raised and
 * the caller's (sub)transaction undoes the rest.  Datasets of the pipeline that the program does
 * not hold become INACTIVE.  Fills program->plan and the lower half of each node.
 */
extern void pln_program_define(PlnProgram *program);

/* One NOTICE for each clause (of char *) that was accepted and has no effect. */
extern void pln_define_notices(List *clauses, const char *relation);

#endif							/* PIPELINE_ANALYZE_DEFINE_H */

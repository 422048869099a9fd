/*
 * unbuilt.h
 *	  Refusals of declarations whose engine is not there, each with what to type now.
 */
#ifndef PIPELINE_ANALYZE_UNBUILT_H
#define PIPELINE_ANALYZE_UNBUILT_H

#include "dialect/parse.h"

/*
 * Raise 0A000 with the cursor on the clause when the declaration needs what is not built.
 * call is the statement that updates the dataset now, for hints.
 */
extern void pln_refuse_unbuilt(PlnScript *script, PlnCreateDataset *decl, const char *call);

/* A flow apart from its table: always 0A000. */
extern void pln_refuse_flow(PlnScript *script, PlnFlowDef *flow, int location)
			pg_attribute_noreturn();

/* A schedule (NULL: its removal) at this location: always 0A000. */
extern void pln_refuse_schedule(PlnScript *script, const PlnSchedule *schedule, int location,
								const char *name, const char *call)
			pg_attribute_noreturn();

#endif							/* PIPELINE_ANALYZE_UNBUILT_H */

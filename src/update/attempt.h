/*
 * attempt.h
 *	  The only place that catches errors (house-style §5).
 */
#ifndef PIPELINE_UPDATE_ATTEMPT_H
#define PIPELINE_UPDATE_ATTEMPT_H

#include "utils/elog.h"
#include "utils/palloc.h"

typedef void (*PlnStep) (void *arg);

/*
 * Run a step in an internal subtransaction.  NULL: it succeeded and its work stands.
 * Otherwise its work is undone and the error is returned, copied into context; user, security
 * context, settings, snapshots and resource owner are as before.
 */
extern ErrorData *pln_attempt(PlnStep step, void *arg, MemoryContext context);

/* The same, but the work is undone also when the step succeeds: for checks. */
extern ErrorData *pln_attempt_undo(PlnStep step, void *arg, MemoryContext context);

/* Cancel and shutdown must be rethrown once they are recorded. */
extern bool pln_error_is_cancel(const ErrorData *error);

#endif							/* PIPELINE_UPDATE_ATTEMPT_H */

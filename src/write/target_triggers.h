/*
 * target_triggers.h
 *	  The triggers of a target, as far as our writes fire them.
 */
#ifndef PIPELINE_WRITE_TARGET_TRIGGERS_H
#define PIPELINE_WRITE_TARGET_TRIGGERS_H

#include "utils/rel.h"
#include "utils/reltrigger.h"

/*
 * Takes our own triggers (DML guard, capture) out of the executor's copy of a relation's trigger
 * list; NULL when none is left.
 */
extern TriggerDesc *pln_target_triggers(TriggerDesc *desc);

/*
 * The server fires no deferred trigger of a security-restricted operation: raise 0A000 before
 * rows are written instead of 42501 at the commit.
 */
extern void pln_target_refuse_deferred(Relation rel, TriggerDesc *desc);

#endif							/* PIPELINE_WRITE_TARGET_TRIGGERS_H */

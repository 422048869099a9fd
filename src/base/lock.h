/*
 * lock.h
 *	  The lock order: pipeline, datasets in topological order, sources (house-style §9).
 */
#ifndef PIPELINE_BASE_LOCK_H
#define PIPELINE_BASE_LOCK_H

#include "storage/lock.h"

/* Heavyweight object locks on catalog ids (correctness B6); transaction level. */
extern void pln_lock_dataset(int64 dataset_id);		/* waits */
extern bool pln_try_lock_dataset(int64 dataset_id);

/*
 * The lock of a pipeline, exclusive.  session = true: survives the transactions of a CALL and
 * must be given back by pln_unlock_pipeline, also when an error passes (no catalog access there).
 * false: until the end of the (sub)transaction.  Returns false when it is busy and wait is false.
 */
extern bool pln_lock_pipeline(int64 pipeline_id, bool session, bool wait);
extern void pln_unlock_pipeline(int64 pipeline_id);
extern bool pln_pipeline_is_locked(int64 pipeline_id);	/* by any backend, us included */

#endif							/* PIPELINE_BASE_LOCK_H */

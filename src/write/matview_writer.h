/*
 * matview_writer.h
 *	  Full recompute of a materialized view: built beside, swapped (architecture §5,
 *	  correctness B15, interface §3.20).
 *
 * Readers see the old rows until the swap; ACCESS EXCLUSIVE is held for the swap only.  Tuples are
 * frozen as core REFRESH does, so that older snapshots do not see an empty view.  All indexes are
 * built on the new heap before the swap and exchanged by relfilenode, so that the time under the
 * lock does not depend on the number of rows.
 */
#ifndef PIPELINE_WRITE_MATVIEW_WRITER_H
#define PIPELINE_WRITE_MATVIEW_WRITER_H

#include "executor/tuptable.h"
#include "utils/rel.h"

typedef struct PlnMatviewWriter PlnMatviewWriter;

/* Takes EXCLUSIVE on the view (waits), makes the transient heap. */
extern PlnMatviewWriter *pln_matview_writer_open(Oid matview);
extern void pln_matview_writer_put(PlnMatviewWriter *writer, TupleTableSlot *slot);
/* Builds the indexes, swaps, drops the old heap, marks populated, updates statistics.
 * Returns the new relfilenode. */
extern Oid	pln_matview_writer_close(PlnMatviewWriter *writer);

#endif							/* PIPELINE_WRITE_MATVIEW_WRITER_H */

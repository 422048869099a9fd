/*
 * quarantine.h
 *	  <dataset>_quarantine tables: creation, writing, replay (interface §1, §3.8, §3.21).
 */
#ifndef PIPELINE_EXPECT_QUARANTINE_H
#define PIPELINE_EXPECT_QUARANTINE_H

#include "executor/tuptable.h"
#include "utils/rel.h"

#include "expect/expect.h"

/*
 * Create the table beside its dataset: the dataset's columns, then _rules text[],
 * _update_id uuid, _quarantined_at timestamptz, _replayed_at timestamptz; owner of the dataset, no
 * grants.  Or adapt an existing one to new columns.  Returns its oid.
 */
extern Oid	pln_quarantine_ensure(Relation dataset, Oid existing);

typedef struct PlnQuarantineWriter PlnQuarantineWriter;
extern PlnQuarantineWriter *pln_quarantine_open(Oid quarantine, TupleDesc row_desc,
												const char *update_id, EState *estate);
extern void pln_quarantine_put(PlnQuarantineWriter *writer, TupleTableSlot *slot,
							   PlnExpectSet *set);
extern void pln_quarantine_close(PlnQuarantineWriter *writer);

/* Rows that went back into the dataset by replay. */
extern int64 pln_quarantine_replayed(Oid quarantine);

/* Full refresh: delete rows not replayed (interface §3.21). */
extern void pln_quarantine_reset(Oid quarantine);

#endif							/* PIPELINE_EXPECT_QUARANTINE_H */

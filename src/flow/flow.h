/*
 * flow.h
 *	  What writes into a dataset: one table of operations per kind of flow.
 *
 * A flow runs in the transaction, subtransaction and memory context that its caller made;
 * it never commits and never catches.  What it fills in PlnFlowContext lives in the
 * context that was current at the call and is readable after the subtransaction aborted.
 */
#ifndef PIPELINE_FLOW_FLOW_H
#define PIPELINE_FLOW_FLOW_H

#include "catalog/event_log.h"
#include "expect/expect.h"

typedef struct PlnFlowContext
{
	PlnPipeline *pipeline;
	PlnUpdate  *update;
	PlnDataset *dataset;
	PlnFlow    *flow;
	List	   *expectations;	/* of PlnExpectationRow */
	List	   *retype;			/* of char *: DDL to run once a full refresh emptied the table */
	List	   *input_names;	/* for events */
	Oid			owner;
	bool		full_refresh;
	PlnEventBuffer *buffer;		/* for events, may be NULL */

	/* filled by run */
	PlnOutcome *outcome;
	PlnExpectSet *expect;		/* NULL when the dataset has none */
	List	   *reasons;		/* of PlnReason: why the technique was chosen */
} PlnFlowContext;

typedef struct PlnFlowOps
{
	const char *flow_type;		/* of flow_definition events */
	bool		is_batch;		/* has a PLANNING state */

	/* Start what must be running before the first read (capture); true: something new was
	 * made that the caller should commit before run (correctness B7). */
	bool		(*prepare) (PlnFlowContext *cxt);

	/* One refresh: locks, snapshot, rows, checkpoints, state. Raises on failure. */
	void		(*run) (PlnFlowContext *cxt);
} PlnFlowOps;

extern const PlnFlowOps pln_append_flow;
extern const PlnFlowOps pln_view_full_flow;

/* What a full refresh of this streaming table could not bring back: files of the ledger that are
 * gone, replayed rows; a sentence, or NULL. */
extern char *pln_append_loss(PlnDataset *dataset);

/*
 * Put rows of the quarantine that match the condition through the current expectations again: those
 * that pass enter the table (an append like any other) and are marked replayed.  Counts as
 * replayed_records in an event of its own.
 */
extern void pln_flow_replay(PlnDataset *dataset, const char *condition, int64 *replayed,
							int64 *still_failing);

extern const PlnFlowOps *pln_flow_ops(const PlnDataset *dataset);

#endif							/* PIPELINE_FLOW_FLOW_H */

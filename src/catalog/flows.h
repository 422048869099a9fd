/*
 * flows.h
 *	  Rows of pipeline_internal.flows: what writes into a dataset.
 */
#ifndef PIPELINE_CATALOG_FLOWS_H
#define PIPELINE_CATALOG_FLOWS_H

#include "nodes/pg_list.h"

#include "dialect/nodes.h"

typedef struct PlnFlow
{
	int64		id;				/* 0 = not stored yet */
	int64		dataset_id;
	char	   *name;
	char	   *uid;			/* uuid text; new after a full refresh (dialect-reference §3.3) */
	PlnFlowKind kind;
	bool		once;
	bool		once_done;
	char	   *query;			/* as typed */
	Oid			view;			/* flow view in pipeline_data; InvalidOid for views and matviews
								 * that need none */
	int64		batch_id;		/* of the last batch that committed */
	char	   *query_hash;		/* of a view's query as it was run last, with all views and policies
								 * in it expanded; NULL before, and for streaming tables */
} PlnFlow;

extern PlnFlow *pln_flow_get(int64 id);
extern List *pln_flows_of_dataset(int64 dataset_id);	/* of PlnFlow, by id */
extern List *pln_flows_of_pipeline(int64 pipeline_id);	/* the same for all datasets at once */
extern void pln_flow_save(PlnFlow *flow);
extern void pln_flow_delete(int64 id);	/* with checkpoints and ledger */
extern void pln_flow_reset(PlnFlow *flow);	/* full refresh: new uid, no checkpoints, no ledger,
											 * once_done = false, batch_id = 0 */

/*
 * What a flow reads, for lineage, dependents and flow_definition events: Oids and char *,
 * in step.  Places that are no relation (files) have InvalidOid, and their path as name.
 */
extern void pln_flow_set_inputs(int64 flow_id, List *input_relids, List *input_names);

/* After set_inputs: which of them are read with STREAM, the others in batch.  Without it
 * lineage goes by the kind of the dataset. */
extern void pln_flow_mark_streams(int64 flow_id, List *stream_relids);
extern List *pln_flow_inputs(int64 flow_id, List **input_names);

#endif							/* PIPELINE_CATALOG_FLOWS_H */

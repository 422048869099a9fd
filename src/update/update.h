/*
 * update.h
 *	  One update of a pipeline: define, run the flows in order, report.
 */
#ifndef PIPELINE_UPDATE_UPDATE_H
#define PIPELINE_UPDATE_UPDATE_H

#include "analyze/program.h"

typedef struct PlnRequest
{
	PlnPipeline *pipeline;		/* source, settings and parameters as they are to be used */
	Oid			owner;
	const PlnParam *params;
	int			nparams;
	PlnCreateDataset *create;	/* standalone CREATE that was just parsed, else NULL */
	PlnScript  *script;			/* with create */
	Query	   *native_query;	/* of CREATE MATERIALIZED VIEW ... WITH (pipeline...) */
	List	   *native_columns; /* of String: its column names, may be NIL */
	PlnRefreshPolicy native_policy;
	List	   *datasets;		/* selectors, of char *; NIL = all */
	bool		full_refresh;
	bool		failed_only;
	bool		validate_only;
	bool		cascade;
	bool		allow_loss;
	bool		nonatomic;		/* may commit between datasets */
	bool		wait;			/* for a busy pipeline, whatever pipeline.on_busy says */
	const char *cause;			/* USER_ACTION */

	bool		hide_details;	/* caller is not the owner: messages may hold rows and SQL */

	/* results */
	int			ndatasets;		/* of the program; set by pln_update_check */
	char	   *update_id;		/* NULL: skipped because busy */
	char	   *state;
} PlnRequest;

/*
 * Run it.  nonatomic: one transaction per dataset, failures of flows are recorded and end in an
 * ERROR after the siblings committed (interface §3.1).  Otherwise everything happens in the
 * caller's transaction and the first failure is raised at once; what is then known of it can be
 * recorded by pln_update_record_failure() after the caller rolled back.
 */
extern void pln_update_run(PlnRequest *request);

/*
 * After the rollback of a failed atomic update, in a transaction that will be committed: write
 * its update row and events, if the pipeline still exists.  True when something was written.
 */
extern bool pln_update_record_failure(void);

/* Only parse, build and check; everything is rolled back. For CREATE PROCEDURE (missing_ok) and
 * pipeline.plan; returns the plan items (of PlnPlanItem). */
extern List *pln_update_check(PlnRequest *request, bool missing_ok, bool file_io);

#endif							/* PIPELINE_UPDATE_UPDATE_H */

/*
 * event_log.h
 *	  Append-only events: columns, types and JSON shapes of dialect-reference §3.
 */
#ifndef PIPELINE_CATALOG_EVENT_LOG_H
#define PIPELINE_CATALOG_EVENT_LOG_H

#include "catalog/datasets.h"
#include "catalog/flows.h"
#include "catalog/pipelines.h"
#include "catalog/updates.h"

/* Whom an event is about; unset members are left out of origin. */
typedef struct PlnOrigin
{
	PlnPipeline *pipeline;
	PlnUpdate  *update;
	PlnDataset *dataset;
	PlnFlow    *flow;
} PlnOrigin;

/* Any event: details is the JSON payload below the event_type key; error may be NULL. */
extern void pln_event(const PlnOrigin *origin, const char *level, const char *event_type,
					  const char *message, const char *details_json, const char *error_json);

/* The shapes of dialect-reference §3.5 and the texts of §3.6. */
extern void pln_event_create_update(const PlnOrigin *origin);
extern void pln_event_user_action(const PlnOrigin *origin, const char *action);
extern void pln_event_update_progress(const PlnOrigin *origin, const char *state);
extern void pln_event_dataset_definition(const PlnOrigin *origin, int nflows, List *expectations);
extern void pln_event_flow_definition(const PlnOrigin *origin, List *input_names,
									  const char *flow_type, TupleDesc schema,
									  const char *explain_text);
/* status QUEUED, PLANNING, STARTING, RUNNING, COMPLETED, IDLE, SKIPPED, EXCLUDED, STOPPED.
 * outcome gives metrics and data_quality and may be NULL. */
extern void pln_event_flow_progress(const PlnOrigin *origin, const char *status,
									const PlnOutcome *outcome);
/* FAILED with the error: level ERROR; samples is a JSON array of rows or NULL. */
extern void pln_event_flow_failed(const PlnOrigin *origin, const PlnOutcome *outcome,
								  const char *samples_json);
/* One chosen technique and the applicable others; reasons is a List of PlnReason. */
extern void pln_event_planning(const PlnOrigin *origin, const char *technique, List *reasons);
extern void pln_event_listing(const PlnOrigin *origin, const char *source_path, int64 nfiles,
							  double elapsed_ms);

/* Remove events and update rows older than pipeline.event_retention; own short statement. */
extern void pln_event_log_trim(int64 pipeline_id);

#endif							/* PIPELINE_CATALOG_EVENT_LOG_H */

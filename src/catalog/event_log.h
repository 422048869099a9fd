/*
 * event_log.h
 *	  Append-only events: columns, types and JSON shapes of dialect-reference §3.
 */
#ifndef PIPELINE_CATALOG_EVENT_LOG_H
#define PIPELINE_CATALOG_EVENT_LOG_H

#include "access/tupdesc.h"
#include "lib/stringinfo.h"

#include "catalog/datasets.h"
#include "catalog/flows.h"
#include "catalog/pipelines.h"
#include "catalog/updates.h"

/*
 * Events that are held back: pln_event() puts them there instead of into the table when
 * origin->buffer is set.  One flush is one INSERT for all of them; the times are those
 * of the events.  Not flushing throws them away (no-op updates in a row, interface §3.15).
 */
typedef struct PlnEventBuffer
{
	MemoryContext context;		/* owns the buffer; must outlive the transactions it spans */
	int			n;
	StringInfoData rows;		/* JSON array, not closed yet */
	List	   *notices;		/* payloads of NOTIFY pipeline */
} PlnEventBuffer;

extern PlnEventBuffer *pln_event_buffer_create(MemoryContext context);
extern void pln_event_buffer_flush(PlnEventBuffer *buffer); /* it can be filled again */
extern void pln_event_buffer_discard(PlnEventBuffer *buffer);

/* Whom an event is about; unset members are left out of origin. */
typedef struct PlnOrigin
{
	PlnPipeline *pipeline;
	PlnUpdate  *update;
	PlnDataset *dataset;
	PlnFlow    *flow;
	PlnEventBuffer *buffer;		/* NULL: written at once */
} PlnOrigin;

/* catalog.schema.name, each part quoted where it needs it: names in origin and details. */
extern char *pln_event_object_name(const char *schema_name, const char *name);

/* Any event: details is the JSON payload below the event_type key; error may be NULL. */
extern void pln_event(const PlnOrigin *origin, const char *level, const char *event_type,
					  const char *message, const char *details_json, const char *error_json);

/*
 * The shapes of dialect-reference §3.5 and the texts of §3.6.  Input names are as
 * pln_relation_name() gives them; those of files are left out.  flow_type is COMPLETE,
 * APPEND, CHANGE, SNAPSHOT_CHANGE, MATERIALIZED_VIEW or VIEW.
 */
extern void pln_event_create_update(const PlnOrigin *origin);
extern void pln_event_user_action(const PlnOrigin *origin, const char *action);
extern void pln_event_runtime_details(const PlnOrigin *origin);
extern void pln_event_update_progress(const PlnOrigin *origin, const char *state);
extern void pln_event_dataset_definition(const PlnOrigin *origin, int nflows, List *expectations);
extern void pln_event_flow_definition(const PlnOrigin *origin, List *input_names,
									  const char *flow_type, TupleDesc schema,
									  const char *explain_text);
/* status QUEUED, PLANNING, STARTING, RUNNING, COMPLETED, IDLE, SKIPPED, EXCLUDED, STOPPED.
 * outcome gives metrics and data_quality and may be NULL: give it with one event of a batch
 * only, RUNNING for streaming flows, COMPLETED for the others. */
extern void pln_event_flow_progress(const PlnOrigin *origin, const char *status,
									const PlnOutcome *outcome);
/* FAILED with the error: level ERROR; samples is a JSON array of rows or NULL. */
extern void pln_event_flow_failed(const PlnOrigin *origin, const PlnOutcome *outcome,
								  const char *samples_json);
/* technique: NO_OP, FULL_RECOMPUTE, ROW_BASED, ... (dialect-reference §4.3, the word of the
 * message).  reasons, a List of PlnReason, say why an incremental technique was not possible
 * or not taken. */
/* update_progress FAILED with the error of a definition. */
extern void pln_event_update_failed(const PlnOrigin *origin, const PlnOutcome *outcome);
extern void pln_event_planning(const PlnOrigin *origin, const char *technique, List *reasons);
extern void pln_event_listing(const PlnOrigin *origin, const char *source_path, int64 nfiles,
							  double elapsed_ms);

/* Remove events and update rows older than pipeline.event_retention; own short statement. */
extern void pln_event_log_trim(int64 pipeline_id);

#endif							/* PIPELINE_CATALOG_EVENT_LOG_H */

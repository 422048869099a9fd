/*
 * event_log.c
 *	  Append-only events: storing them, one by one or from a buffer.
 *
 * Every event is rendered to one JSON object, columns as keys; one INSERT stores one or
 * many of them.  Failures are also sent with NOTIFY pipeline, by the transaction that
 * stores them, without texts that may hold data of rows.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/async.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "base/errors.h"
#include "base/guc.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/spi.h"
#include "catalog/event_internal.h"
#include "catalog/event_log.h"

#define UNIX_EPOCH_SHIFT_MS \
	(((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)) * SECS_PER_DAY * 1000)

char *
pln_event_object_name(const char *schema_name, const char *name)
{
	return psprintf("%s.%s", quote_identifier(get_database_name(MyDatabaseId)),
					pln_quote_qualified(schema_name, name));
}

/* ---- storing ---- */

/* The layout of uuid version 7: sorts by time, random below the millisecond. */
static char *
time_based_uuid(TimestampTz now)
{
	pg_uuid_t	uuid;
	uint64		ms = (uint64) (now / 1000 + UNIX_EPOCH_SHIFT_MS);
	int			i;

	if (!pg_strong_random(uuid.data, UUID_LEN))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (i = 0; i < 6; i++)
		uuid.data[i] = (unsigned char) (ms >> (8 * (5 - i)));
	uuid.data[6] = (uuid.data[6] & 0x0f) | 0x70;
	uuid.data[8] = (uuid.data[8] & 0x3f) | 0x80;
	return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&uuid)));
}

static void
append_origin(StringInfo json, const PlnOrigin *origin)
{
	PlnPipeline *pipeline = origin->pipeline;
	PlnDataset *dataset = origin->dataset;
	PlnFlow    *flow = origin->flow;

	pln_json_open(json, "origin", '{');
	if (pipeline != NULL)
	{
		pln_json_text(json, "pipeline_id", pipeline->uid);
		pln_json_text(json, "pipeline_type", pipeline->standalone ? "DBSQL" : "WORKSPACE");
		pln_json_text(json, "pipeline_name", pln_pipeline_display_name(pipeline));
	}
	if (origin->update != NULL)
		pln_json_text(json, "update_id", origin->update->id);
	if (dataset != NULL)
		pln_json_text(json, "dataset_name",
					  pln_event_object_name(dataset->schema_name, dataset->name));
	if (flow != NULL)
	{
		pln_json_text(json, "flow_id", flow->uid);
		pln_json_text(json, "flow_name", dataset == NULL ? flow->name :
					  pln_event_object_name(dataset->schema_name, flow->name));
		if (flow->batch_id > 0)
			pln_json_int(json, "batch_id", flow->batch_id);
	}
	pln_json_close(json, '}');
}

static const char *
maturity_of(const char *event_type)
{
	static const char *const evolving[] = {
		"planning_information", "operation_progress", "stream_progress",
		"cluster_resources", "autoscale"
	};
	int			i;

	for (i = 0; i < lengthof(evolving); i++)
	{
		if (strcmp(evolving[i], event_type) == 0)
			return "EVOLVING";
	}
	return "STABLE";
}

PlnEventBuffer *
pln_event_buffer_create(MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	PlnEventBuffer *buffer = palloc0(sizeof(PlnEventBuffer));

	buffer->context = context;
	initStringInfo(&buffer->rows);
	MemoryContextSwitchTo(old);
	return buffer;
}

void
pln_event_buffer_discard(PlnEventBuffer *buffer)
{
	buffer->n = 0;
	resetStringInfo(&buffer->rows);
	list_free_deep(buffer->notices);
	buffer->notices = NIL;
}

void
pln_event_buffer_flush(PlnEventBuffer *buffer)
{
	PlnArgs		args;
	ListCell   *lc;

	if (buffer->n == 0)
		return;
	appendStringInfoChar(&buffer->rows, ']');
	pln_args_init(&args);
	pln_args_jsonb(&args, buffer->rows.data);
	(void) pln_spi_run_args(
		"INSERT INTO pipeline_internal.events (id, pipeline_id, dataset_id, update_id,"
		" \"timestamp\", level, maturity_level, event_type, message, origin, details, error)"
		" SELECT e.id, e.pipeline_id, e.dataset_id, e.update_id,"
		" timestamptz '2000-01-01 00:00:00+00' + e.at * interval '1 microsecond',"
		" e.level, e.maturity_level, e.event_type, e.message, e.origin, e.details, e.error"
		" FROM jsonb_to_recordset($1) AS e (id uuid, pipeline_id bigint, dataset_id bigint,"
		" update_id uuid, at bigint, level text, maturity_level text, event_type text,"
		" message text, origin jsonb, details jsonb, error jsonb)", &args);
	foreach(lc, buffer->notices)
		Async_Notify("pipeline", (char *) lfirst(lc));
	pln_event_buffer_discard(buffer);
}

static void
append_row(StringInfo json, const PlnOrigin *origin, const char *level,
		   const char *event_type, const char *message, const char *details_json,
		   const char *error_json)
{
	TimestampTz now = GetCurrentTimestamp();

	pln_json_open(json, NULL, '{');
	pln_json_text(json, "id", time_based_uuid(now));
	pln_json_int(json, "at", now);
	if (origin->pipeline != NULL)
		pln_json_int(json, "pipeline_id", origin->pipeline->id);
	if (origin->dataset != NULL)
		pln_json_int(json, "dataset_id", origin->dataset->id);
	if (origin->update != NULL)
		pln_json_text(json, "update_id", origin->update->id);
	pln_json_text(json, "level", level);
	pln_json_text(json, "maturity_level", maturity_of(event_type));
	pln_json_text(json, "event_type", event_type);
	pln_json_text(json, "message", message);
	append_origin(json, origin);
	pln_json_open(json, "details", '{');
	pln_json_raw(json, event_type, details_json);
	pln_json_close(json, '}');
	if (error_json != NULL)
		pln_json_raw(json, "error", error_json);
	pln_json_close(json, '}');
}

void
pln_event_notify(const PlnOrigin *origin, const char *level, const char *event_type,
				 const char *message, const char *details_json, const char *error_json,
				 const char *notice)
{
	PlnEventBuffer *buffer = origin->buffer;
	MemoryContext old;

	if (buffer == NULL)
		buffer = pln_event_buffer_create(CurrentMemoryContext);
	if (buffer->n++ == 0)
		appendStringInfoChar(&buffer->rows, '[');
	append_row(&buffer->rows, origin, level, event_type, message, details_json, error_json);
	if (notice != NULL)
	{
		old = MemoryContextSwitchTo(buffer->context);
		buffer->notices = lappend(buffer->notices, pstrdup(notice));
		MemoryContextSwitchTo(old);
	}
	if (origin->buffer == NULL)
	{
		pln_event_buffer_flush(buffer);
		pfree(buffer->rows.data);
		pfree(buffer);
	}
}

void
pln_event(const PlnOrigin *origin, const char *level, const char *event_type,
		  const char *message, const char *details_json, const char *error_json)
{
	pln_event_notify(origin, level, event_type, message, details_json, error_json, NULL);
}

/* Open updates and the last update of the pipeline are kept whatever their age. */
void
pln_event_log_trim(int64 pipeline_id)
{
	PlnArgs		args;

	if (pln_guc_event_retention <= 0)
		return;
	pln_args_init(&args);
	pln_args_int8(&args, pipeline_id);
	pln_args_int4(&args, pln_guc_event_retention);
	(void) pln_spi_run_args(
		"WITH old AS (DELETE FROM pipeline_internal.updates u WHERE u.pipeline_id = $1"
		"  AND u.ended_at IS NOT NULL"
		"  AND coalesce(u.last_at, u.ended_at) < now() - $2 * interval '1 minute'"
		"  AND u.seq < (SELECT max(x.seq) FROM pipeline_internal.updates x"
		"   WHERE x.pipeline_id = $1) RETURNING u.id),"
		" outcomes AS (DELETE FROM pipeline_internal.update_datasets o USING old"
		"  WHERE o.update_id = old.id)"
		" DELETE FROM pipeline_internal.events e WHERE e.pipeline_id = $1"
		" AND e.\"timestamp\" < now() - $2 * interval '1 minute'", &args);
}

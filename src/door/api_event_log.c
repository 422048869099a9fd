/*
 * api_event_log.c
 *	  pipeline.event_log(): events of a pipeline or dataset, as far as the user may see them.
 *
 * A dataset's log is its own events and those of the updates that it took part in.  Events
 * are read page by page, so that a long log needs little memory.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "base/errors.h"
#include "base/spi.h"
#include "door/access.h"

PG_FUNCTION_INFO_V1(pipeline_event_log);

#define EVENT_LOG_COLUMNS 10
#define EVENT_LOG_PAGE "1000"

/*
 * $3 = redact: for pg_read_all_stats.  URLs go everywhere, to the end of their string; of
 * errors the samples, the details, and the texts of the SQLSTATE classes whose texts quote
 * data.
 */
#define HIDE_URLS(text) \
	"regexp_replace(" text ", '[A-Za-z][A-Za-z0-9+.-]*://[^\"\\\\]*', '<url>', 'g')"

#define EVENT_COLUMNS \
	"e.id::text AS id," \
	" jsonb_build_object('data_plane_id'," \
	"  jsonb_build_object('instance', 'execution', 'seq_no', e.seq)) AS sequence," \
	" e.origin, e.\"timestamp\"," \
	" CASE WHEN $3 THEN " HIDE_URLS("e.message") " ELSE e.message END AS message," \
	" e.level, e.maturity_level," \
	" CASE WHEN NOT $3 THEN e.error WHEN e.error IS NOT NULL THEN " \
	HIDE_URLS("(e.error - 'samples' || jsonb_build_object('exceptions'," \
	"  (SELECT jsonb_agg(CASE WHEN x->>'sqlstate' ~ '^(22|23|P0)'" \
	"   THEN x - 'detail' - 'hint' || '{\"message\": \"(not shown: it may hold data)\"}'" \
	"   ELSE x - 'detail' END) FROM jsonb_array_elements(e.error->'exceptions') x)))::text") \
	"::jsonb END AS error," \
	" CASE WHEN $3 THEN " HIDE_URLS("e.details::text") "::jsonb ELSE e.details END AS details," \
	" e.event_type, e.seq, e.dataset_id"

typedef struct EventFilter
{
	PlnAccess	access;
	List	   *readable;		/* of int64 *: datasets that the user may read */
} EventFilter;

static bool
is_readable(const EventFilter *filter, int64 dataset_id)
{
	ListCell   *lc;

	foreach(lc, filter->readable)
	{
		if (*(int64 *) lfirst(lc) == dataset_id)
			return true;
	}
	return false;
}

static bool
is_visible(const EventFilter *filter, PlnRows *rows, uint64 row)
{
	char	   *type;

	if (filter->access.owner || filter->access.stats)
		return true;
	type = pln_row_text(rows, row, "event_type");
	if (filter->access.run &&
		(strcmp(type, "create_update") == 0 || strcmp(type, "update_progress") == 0))
		return true;
	return strcmp(type, "flow_progress") == 0 &&
		is_readable(filter, pln_row_int8(rows, row, "dataset_id"));
}

static List *
note_readable(List *readable, PlnDataset *dataset, PlnPipeline *pipeline)
{
	PlnAccess	access = pln_access_of_dataset(dataset, pipeline);
	int64	   *id;

	if (!access.read && !access.owner)
		return readable;
	id = palloc(sizeof(int64));
	*id = dataset->id;
	return lappend(readable, id);
}

static void
fill_filter(EventFilter *filter, PlnTarget *target, const char *name)
{
	ListCell   *lc;

	filter->readable = NIL;
	if (target->dataset != NULL)
	{
		filter->access = pln_access_of_dataset(target->dataset, target->pipeline);
		filter->readable = note_readable(NIL, target->dataset, target->pipeline);
	}
	else
	{
		filter->access = pln_access_of_pipeline(target->pipeline);
		if (!filter->access.owner && !filter->access.stats)
		{
			foreach(lc, pln_datasets_of_pipeline(target->pipeline->id))
				filter->readable = note_readable(filter->readable, lfirst(lc),
												 target->pipeline);
		}
	}
	if (!filter->access.owner && !filter->access.stats && !filter->access.run &&
		filter->readable == NIL)
		pln_access_refuse(target->dataset != NULL ? "dataset" : "pipeline", name);
}

static PlnRows *
fetch_page(PlnTarget *target, const EventFilter *filter, int64 after)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, target->pipeline->id);
	pln_args_int8(&args, after);
	pln_args_bool(&args, !filter->access.owner);
	if (target->dataset == NULL)
		return pln_spi_run_args(
			"SELECT " EVENT_COLUMNS " FROM pipeline_internal.events e"
			" WHERE e.pipeline_id = $1 AND e.seq > $2 ORDER BY e.seq LIMIT " EVENT_LOG_PAGE,
			&args);
	pln_args_int8(&args, target->dataset->id);
	return pln_spi_run_args(
		"SELECT " EVENT_COLUMNS " FROM pipeline_internal.events e"
		" WHERE e.pipeline_id = $1 AND e.seq > $2 AND (e.dataset_id = $4"
		"  OR (e.dataset_id IS NULL AND (e.update_id IS NULL OR EXISTS"
		"   (SELECT FROM pipeline_internal.events x"
		"    WHERE x.update_id = e.update_id AND x.dataset_id = $4))))"
		" ORDER BY e.seq LIMIT " EVENT_LOG_PAGE, &args);
}

static void
put_event(ReturnSetInfo *rsinfo, PlnRows *rows, uint64 row, bool with_error)
{
	Datum	   *values = palloc(sizeof(Datum) * rows->desc->natts);
	bool	   *nulls = palloc(sizeof(bool) * rows->desc->natts);
	int			i;

	heap_deform_tuple(rows->tuples[row], rows->desc, values, nulls);
	if (!with_error)
	{
		for (i = 0; i < EVENT_LOG_COLUMNS; i++)
		{
			if (strcmp(NameStr(TupleDescAttr(rows->desc, i)->attname), "error") == 0)
				nulls[i] = true;
		}
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
put_events(ReturnSetInfo *rsinfo, PlnTarget *target, const EventFilter *filter)
{
	MemoryContext page = AllocSetContextCreate(CurrentMemoryContext, "pipeline event page",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(page);
	bool		with_error = filter->access.owner || filter->access.stats;
	int64		after = 0;

	for (;;)
	{
		PlnRows    *rows = fetch_page(target, filter, after);
		uint64		i;

		CHECK_FOR_INTERRUPTS();
		for (i = 0; i < rows->n; i++)
		{
			if (is_visible(filter, rows, i))
				put_event(rsinfo, rows, i, with_error);
		}
		if (rows->n == 0)
			break;
		after = pln_row_int8(rows, rows->n - 1, "seq");
		MemoryContextReset(page);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(page);
}

Datum
pipeline_event_log(PG_FUNCTION_ARGS)
{
	PlnTarget	target;
	EventFilter filter;
	char	   *name;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("the name of a pipeline or dataset must not be null")));
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	InitMaterializedSRF(fcinfo, 0);
	target = pln_target_find(name);
	fill_filter(&filter, &target, name);
	put_events((ReturnSetInfo *) fcinfo->resultinfo, &target, &filter);
	return (Datum) 0;
}

/*
 * updates.c
 *	  Run history: pipeline_internal.updates and update_datasets.
 *
 * An update is open while ended_at is null.  Whether it still runs is not stored but
 * decided by the pipeline lock, which dies with its holder.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/uuid.h"

#include "base/errors.h"
#include "base/json.h"
#include "base/spi.h"
#include "catalog/event_log.h"
#include "catalog/updates.h"

#define SHORT_ID_LENGTH 6

static Datum
text_array(List *words)
{
	Datum	   *values = palloc(sizeof(Datum) * Max(list_length(words), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, words)
		values[n++] = CStringGetTextDatum((char *) lfirst(lc));
	return PointerGetDatum(construct_array(values, n, TEXTOID, -1, false, TYPALIGN_INT));
}

PlnUpdate *
pln_update_start(int64 pipeline_id, const char *cause, bool full_refresh, bool validate_only,
				 List *selection)
{
	PlnUpdate  *update = palloc0(sizeof(PlnUpdate));
	PlnArgs		args;
	Datum		id = DirectFunctionCall1(gen_random_uuid, (Datum) 0);
	ListCell   *lc;

	update->id = DatumGetCString(DirectFunctionCall1(uuid_out, id));
	update->pipeline_id = pipeline_id;
	update->cause = pstrdup(cause);
	update->full_refresh = full_refresh;
	update->validate_only = validate_only;
	foreach(lc, selection)
		update->selection = lappend(update->selection, pstrdup((char *) lfirst(lc)));
	update->run_as = GetUserNameFromId(GetUserId(), false);
	update->started_at = GetCurrentTimestamp();

	pln_args_init(&args);
	pln_args_uuid(&args, DatumGetUUIDP(id));
	pln_args_int8(&args, pipeline_id);
	pln_args_text(&args, cause);
	pln_args_text(&args, update->run_as);
	pln_args_bool(&args, full_refresh);
	pln_args_bool(&args, validate_only);
	pln_args_datum(&args, TEXTARRAYOID, text_array(selection), false);
	pln_args_timestamptz(&args, update->started_at);
	(void) pln_spi_run_args(
		"INSERT INTO pipeline_internal.updates (id, pipeline_id, cause, run_as, full_refresh,"
		" validate_only, selection, state, started_at)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, 'CREATED', $8)", &args);
	return update;
}

void
pln_update_set_state(PlnUpdate *update, const char *state)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, update->id);
	pln_args_text(&args, state);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.updates SET state = $2"
		" WHERE id = $1::uuid AND ended_at IS NULL", &args);
}

/*
 * The row of the no-op before this one counts this one too, and ours goes.  True when there
 * was such a row.
 */
static bool
fold_noop(PlnUpdate *update)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, update->id);
	pln_args_int8(&args, update->pipeline_id);
	return pln_spi_run_args(
		"WITH me AS (SELECT u.seq, u.selection, u.full_refresh"
		"  FROM pipeline_internal.updates u WHERE u.id = $1::uuid),"
		" before AS (SELECT u.* FROM pipeline_internal.updates u, me"
		"  WHERE u.pipeline_id = $2 AND u.seq < me.seq ORDER BY u.seq DESC LIMIT 1),"
		" folded AS (UPDATE pipeline_internal.updates u"
		"  SET noop_runs = u.noop_runs + 1, last_at = clock_timestamp() FROM before, me"
		"  WHERE u.id = before.id AND before.is_noop AND before.ended_at IS NOT NULL"
		"  AND before.selection = me.selection AND before.full_refresh = me.full_refresh"
		"  RETURNING u.id)"
		" DELETE FROM pipeline_internal.updates u"
		" WHERE u.id = $1::uuid AND EXISTS (SELECT FROM folded)", &args)->processed > 0;
}

void
pln_update_end(PlnUpdate *update, const char *state, const char *message)
{
	PlnArgs		args;

	if (update->is_noop && !update->validate_only && strcmp(state, "COMPLETED") == 0)
	{
		update->is_folded = fold_noop(update);
		if (update->is_folded)
			return;
	}
	pln_args_init(&args);
	pln_args_text(&args, update->id);
	pln_args_text(&args, state);
	pln_args_text(&args, message);
	pln_args_bool(&args, update->is_noop && !update->validate_only);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.updates SET state = $2, message = $3,"
		" ended_at = clock_timestamp(), is_noop = $4, noop_runs = $4::int4,"
		" last_at = CASE WHEN $4 THEN clock_timestamp() END"
		" WHERE id = $1::uuid", &args);
}

static char *
quality_json(List *quality)
{
	StringInfoData json;
	ListCell   *lc;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '[');
	foreach(lc, quality)
	{
		PlnQualityCount *count = lfirst(lc);

		pln_json_open(&json, NULL, '{');
		if (count->dataset != NULL)
			pln_json_text(&json, "dataset", count->dataset);
		pln_json_text(&json, "name", count->name);
		pln_json_text(&json, "action", count->action);
		pln_json_int(&json, "passed", count->passed);
		pln_json_int(&json, "failed", count->failed);
		pln_json_close(&json, '}');
	}
	pln_json_close(&json, ']');
	return json.data;
}

/* A flow that is tried again in the same update replaces its outcome. */
void
pln_update_outcome(PlnUpdate *update, const PlnOutcome *outcome)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, update->id);
	pln_args_int8(&args, outcome->dataset_id);
	pln_args_text(&args, outcome->flow_name ? outcome->flow_name : outcome->dataset_name);
	pln_args_text(&args, outcome->dataset_name);
	pln_args_text(&args, outcome->state);
	pln_args_text(&args, outcome->refresh_type);
	pln_args_text(&args, outcome->refresh_reason);
	pln_args_int8(&args, outcome->rows_out);
	pln_args_int8(&args, outcome->rows_dropped);
	pln_args_int8(&args, outcome->rows_quarantined);
	pln_args_int8(&args, outcome->files);
	pln_args_float8(&args, outcome->elapsed_ms);
	pln_args_text(&args, outcome->sqlstate);
	pln_args_text(&args, outcome->message);
	pln_args_text(&args, outcome->detail);
	pln_args_text(&args, outcome->hint);
	pln_args_text(&args, outcome->constraint);
	pln_args_jsonb(&args, quality_json(outcome->quality));
	(void) pln_spi_run_args(
		"INSERT INTO pipeline_internal.update_datasets (update_id, dataset_id, flow_name,"
		" dataset_name, state, refresh_type, refresh_reason, rows_out, rows_dropped,"
		" rows_quarantined, files, elapsed_ms, sqlstate, message, detail, hint,"
		" constraint_name, quality) VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,"
		" $12, $13, $14, $15, $16, $17, $18)"
		" ON CONFLICT (update_id, dataset_id, flow_name) DO UPDATE SET"
		" state = excluded.state, refresh_type = excluded.refresh_type,"
		" refresh_reason = excluded.refresh_reason, rows_out = excluded.rows_out,"
		" rows_dropped = excluded.rows_dropped, rows_quarantined = excluded.rows_quarantined,"
		" files = excluded.files, elapsed_ms = excluded.elapsed_ms,"
		" sqlstate = excluded.sqlstate, message = excluded.message, detail = excluded.detail,"
		" hint = excluded.hint, constraint_name = excluded.constraint_name,"
		" quality = excluded.quality, recorded_at = clock_timestamp()", &args);
}

/*
 * Judged by the last update that did not exclude the dataset: after an update of a
 * selection the failures of others are still failures.
 */
List *
pln_update_last_failed(int64 pipeline_id)
{
	PlnArgs		args;
	PlnRows    *rows;
	List	   *ids = NIL;
	uint64		i;

	pln_args_init(&args);
	pln_args_int8(&args, pipeline_id);
	rows = pln_spi_run_args(
		"SELECT d.id FROM pipeline_internal.datasets d,"
		" LATERAL (SELECT o.update_id FROM pipeline_internal.update_datasets o"
		"  WHERE o.dataset_id = d.id AND o.state <> 'EXCLUDED'"
		"  ORDER BY o.recorded_at DESC LIMIT 1) AS latest"
		" WHERE d.pipeline_id = $1 AND EXISTS (SELECT FROM pipeline_internal.update_datasets o"
		"  WHERE o.update_id = latest.update_id AND o.dataset_id = d.id"
		"  AND o.state IN ('FAILED', 'SKIPPED', 'CANCELED'))"
		" ORDER BY d.id", &args);
	for (i = 0; i < rows->n; i++)
	{
		int64	   *id = palloc(sizeof(int64));

		*id = pln_row_int8(rows, i, "id");
		ids = lappend(ids, id);
	}
	return ids;
}

void
pln_updates_close_orphans(int64 pipeline_id)
{
	PlnArgs		args;
	PlnRows    *rows;
	PlnOrigin	origin;
	uint64		i;

	pln_args_init(&args);
	pln_args_int8(&args, pipeline_id);
	rows = pln_spi_run_args(
		"UPDATE pipeline_internal.updates SET state = 'FAILED',"
		" message = 'server process lost', ended_at = clock_timestamp()"
		" WHERE pipeline_id = $1 AND ended_at IS NULL RETURNING id", &args);
	if (rows->n == 0)
		return;
	memset(&origin, 0, sizeof(origin));
	origin.pipeline = pln_pipeline_get(pipeline_id);
	for (i = 0; i < rows->n; i++)
	{
		PlnUpdate	lost;

		memset(&lost, 0, sizeof(lost));
		lost.id = pln_row_text(rows, i, "id");
		lost.pipeline_id = pipeline_id;
		origin.update = &lost;
		pln_event_update_progress(&origin, "FAILED");
	}
}

char *
pln_update_short_id(const PlnUpdate *update)
{
	return pnstrdup(update->id, SHORT_ID_LENGTH);
}

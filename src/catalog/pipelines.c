/*
 * pipelines.c
 *	  Rows of pipeline_internal.pipelines.
 *
 * Rows are never deleted: a dropped pipeline keeps its history under its old name.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "catalog/pipelines.h"

/* The owner as it is now: REASSIGN OWNED changes it without an event trigger. */
#define PIPELINE_COLUMNS \
	"p.id, p.uid, p.schema_name, p.name, p.standalone, p.source, p.settings, p.parameters," \
	" p.dropped, coalesce(CASE WHEN p.dropped THEN NULL WHEN p.standalone THEN" \
	" (SELECT c.relowner FROM pipeline_internal.datasets d JOIN pg_class c ON c.oid = d.relid" \
	"  WHERE d.pipeline_id = p.id LIMIT 1) ELSE" \
	" (SELECT f.proowner FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace" \
	"  JOIN pg_language l ON l.oid = f.prolang WHERE l.lanname = 'pipeline'" \
	"  AND n.nspname = p.schema_name AND f.proname = p.name LIMIT 1) END, p.owner) AS owner"

static PlnPipeline *
pipeline_from_row(PlnRows *rows, uint64 row)
{
	PlnPipeline *pipeline = palloc0(sizeof(PlnPipeline));
	bool		isnull;

	pipeline->id = pln_row_int8(rows, row, "id");
	pipeline->uid = pln_row_text(rows, row, "uid");
	pipeline->schema_name = pln_row_text(rows, row, "schema_name");
	pipeline->name = pln_row_text(rows, row, "name");
	pipeline->standalone = pln_row_bool(rows, row, "standalone");
	pipeline->owner = pln_row_oid(rows, row, "owner");
	pipeline->source = pln_row_text(rows, row, "source");
	pipeline->settings = pln_settings_from_array(pln_row_datum(rows, row, "settings", &isnull));
	pipeline->parameters = pln_row_text(rows, row, "parameters");
	pipeline->dropped = pln_row_bool(rows, row, "dropped");
	return pipeline;
}

static PlnPipeline *
only_row(PlnRows *rows)
{
	return rows->n == 0 ? NULL : pipeline_from_row(rows, 0);
}

/* A procedure is preferred to a hidden pipeline, a living row to a dropped one. */
PlnPipeline *
pln_pipeline_find(const char *schema_name, const char *name)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, schema_name);
	pln_args_text(&args, name);
	return only_row(pln_spi_run_args(
		"SELECT " PIPELINE_COLUMNS " FROM pipeline_internal.pipelines p"
		" WHERE schema_name = $1 AND name = $2"
		" ORDER BY standalone, dropped, id DESC LIMIT 1", &args));
}

PlnPipeline *
pln_pipeline_find_kind(const char *schema_name, const char *name, bool standalone)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, schema_name);
	pln_args_text(&args, name);
	pln_args_bool(&args, standalone);
	return only_row(pln_spi_run_args(
		"SELECT " PIPELINE_COLUMNS " FROM pipeline_internal.pipelines p"
		" WHERE schema_name = $1 AND name = $2 AND standalone = $3"
		" ORDER BY dropped, id DESC LIMIT 1", &args));
}

PlnPipeline *
pln_pipeline_get(int64 id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	return only_row(pln_spi_run_args(
		"SELECT " PIPELINE_COLUMNS " FROM pipeline_internal.pipelines p WHERE id = $1", &args));
}

PlnPipeline *
pln_pipeline_by_uid(const char *uid)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, uid);
	return only_row(pln_spi_run_args(
		"SELECT " PIPELINE_COLUMNS " FROM pipeline_internal.pipelines p WHERE uid = $1::uuid",
		&args));
}

static void
add_columns(PlnArgs *args, const PlnPipeline *pipeline)
{
	pln_args_text(args, pipeline->schema_name);
	pln_args_text(args, pipeline->name);
	pln_args_bool(args, pipeline->standalone);
	pln_args_oid(args, pipeline->owner);
	pln_args_text(args, pipeline->source);
	pln_args_datum(args, TEXTARRAYOID, pln_settings_to_array(pipeline->settings), false);
	pln_args_jsonb(args, pipeline->parameters ? pipeline->parameters : "{}");
	pln_args_bool(args, pipeline->dropped);
}

void
pln_pipeline_save(PlnPipeline *pipeline)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	add_columns(&args, pipeline);
	if (pipeline->id == 0)
	{
		rows = pln_spi_run_args(
			"INSERT INTO pipeline_internal.pipelines"
			" (schema_name, name, standalone, owner, source, settings, parameters, dropped)"
			" VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id, uid", &args);
		pipeline->id = pln_row_int8(rows, 0, "id");
		pipeline->uid = pln_row_text(rows, 0, "uid");
		return;
	}
	pln_args_int8(&args, pipeline->id);
	rows = pln_spi_run_args(
		"UPDATE pipeline_internal.pipelines SET schema_name = $1, name = $2, standalone = $3,"
		" owner = $4, source = $5, settings = $6, parameters = $7, dropped = $8"
		" WHERE id = $9", &args);
	PLN_ENSURE(rows->processed == 1);
}

char *
pln_pipeline_display_name(const PlnPipeline *pipeline)
{
	return pln_quote_qualified(pipeline->schema_name, pipeline->name);
}

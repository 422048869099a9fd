/*
 * checkpoints.c
 *	  Positions of flows in their sources, and the ledger of files.
 *
 * All of it is written in the transaction that writes the rows, so that a position and
 * what it stands for commit or vanish together.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "base/errors.h"
#include "base/json.h"
#include "base/spi.h"
#include "catalog/checkpoints.h"

PlnFrontier *
pln_checkpoint_get(int64 flow_id, Oid relid, int ordinal)
{
	PlnArgs		args;
	PlnRows    *rows;
	PlnFrontier *frontier;
	bool		isnull;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_oid(&args, relid);
	pln_args_int4(&args, ordinal);
	rows = pln_spi_run_args(
		"SELECT incarnation, snap, own_xid, own_seq, fingerprint, evaluated_at"
		" FROM pipeline_internal.checkpoints"
		" WHERE flow_id = $1 AND relid = $2 AND ordinal = $3", &args);
	if (rows->n == 0)
		return NULL;
	frontier = palloc0(sizeof(PlnFrontier));
	frontier->incarnation = (int32) pln_row_int8(rows, 0, "incarnation");
	frontier->snapshot = pln_row_text(rows, 0, "snap");
	frontier->own_xid = (uint64) pln_row_int8(rows, 0, "own_xid");
	frontier->own_seq = pln_row_int8(rows, 0, "own_seq");
	frontier->fingerprint = pln_row_text(rows, 0, "fingerprint");
	frontier->evaluated_at = DatumGetTimestampTz(pln_row_datum(rows, 0, "evaluated_at",
															   &isnull));
	return frontier;
}

void
pln_checkpoint_set(int64 flow_id, Oid relid, int ordinal, const PlnFrontier *frontier)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_oid(&args, relid);
	pln_args_int4(&args, ordinal);
	pln_args_int4(&args, frontier->incarnation);
	pln_args_datum(&args, PG_SNAPSHOTOID,
				   DirectFunctionCall1(pg_snapshot_in, CStringGetDatum(frontier->snapshot)),
				   false);
	pln_args_xid8(&args, frontier->own_xid);
	pln_args_int8(&args, frontier->own_seq);
	pln_args_text(&args, frontier->fingerprint);
	pln_args_timestamptz(&args, frontier->evaluated_at);
	(void) pln_spi_run_args(
		"INSERT INTO pipeline_internal.checkpoints"
		" (flow_id, relid, ordinal, incarnation, snap, own_xid, own_seq, fingerprint,"
		" evaluated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
		" ON CONFLICT (flow_id, relid, ordinal) DO UPDATE SET"
		" incarnation = excluded.incarnation, snap = excluded.snap,"
		" own_xid = excluded.own_xid, own_seq = excluded.own_seq,"
		" fingerprint = excluded.fingerprint, evaluated_at = excluded.evaluated_at", &args);
}

void
pln_checkpoints_delete(int64 flow_id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	(void) pln_spi_run_args(
		"DELETE FROM pipeline_internal.checkpoints WHERE flow_id = $1", &args);
}

/* ---- file sources ---- */

char *
pln_file_source_schema(int64 flow_id, int ordinal)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_int4(&args, ordinal);
	rows = pln_spi_run_args(
		"SELECT schema FROM pipeline_internal.file_sources"
		" WHERE flow_id = $1 AND ordinal = $2", &args);
	return rows->n == 0 ? NULL : pln_row_text(rows, 0, "schema");
}

char *
pln_file_source_frozen(int64 flow_id, int ordinal, const char *path, const char *options_json)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_int4(&args, ordinal);
	pln_args_text(&args, path);
	pln_args_jsonb(&args, options_json);
	rows = pln_spi_run_args(
		"SELECT schema FROM pipeline_internal.file_sources"
		" WHERE flow_id = $1 AND ordinal = $2 AND path = $3 AND options = $4", &args);
	return rows->n == 0 ? NULL : pln_row_text(rows, 0, "schema");
}

void
pln_file_source_save(int64 flow_id, int ordinal, const char *path, const char *options_json,
					 const char *schema_json)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_int4(&args, ordinal);
	pln_args_text(&args, path);
	pln_args_jsonb(&args, options_json ? options_json : "{}");
	pln_args_jsonb(&args, schema_json);
	(void) pln_spi_run_args(
		"INSERT INTO pipeline_internal.file_sources (flow_id, ordinal, path, options, schema)"
		" VALUES ($1, $2, $3, $4, $5) ON CONFLICT (flow_id, ordinal) DO UPDATE SET"
		" path = excluded.path, options = excluded.options, schema = excluded.schema", &args);
}

static Datum
make_array(Datum *values, int n, Oid type)
{
	bool		is_text = type == TEXTOID;

	return PointerGetDatum(construct_array(values, n, type, is_text ? -1 : sizeof(int64),
										   is_text ? false : FLOAT8PASSBYVAL,
										   is_text ? TYPALIGN_INT : TYPALIGN_DOUBLE));
}

List *
pln_ledger_new_files(int64 flow_id, int ordinal, int nfiles, char **paths, int64 *sizes,
					 TimestampTz *mtimes, bool allow_overwrites)
{
	PlnArgs		args;
	PlnRows    *rows;
	List	   *indexes = NIL;
	Datum	   *path_values;
	Datum	   *size_values;
	Datum	   *mtime_values;
	uint64		row;
	int			i;

	if (nfiles == 0)
		return NIL;
	path_values = palloc(sizeof(Datum) * nfiles);
	size_values = palloc(sizeof(Datum) * nfiles);
	mtime_values = palloc(sizeof(Datum) * nfiles);
	for (i = 0; i < nfiles; i++)
	{
		path_values[i] = CStringGetTextDatum(paths[i]);
		size_values[i] = Int64GetDatum(sizes[i]);
		mtime_values[i] = TimestampTzGetDatum(mtimes[i]);
	}
	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_int4(&args, ordinal);
	pln_args_datum(&args, TEXTARRAYOID, make_array(path_values, nfiles, TEXTOID), false);
	pln_args_datum(&args, INT8ARRAYOID, make_array(size_values, nfiles, INT8OID), false);
	pln_args_datum(&args, TIMESTAMPTZARRAYOID,
				   make_array(mtime_values, nfiles, TIMESTAMPTZOID), false);
	pln_args_bool(&args, allow_overwrites);
	rows = pln_spi_run_args(
		"SELECT (u.ord - 1)::int4 AS i"
		" FROM unnest($3, $4, $5) WITH ORDINALITY AS u (path, size, mtime, ord)"
		" LEFT JOIN pipeline_internal.files f ON f.flow_id = $1 AND f.ordinal = $2"
		" AND f.path = u.path AND f.state IN ('DONE', 'SKIPPED')"
		" WHERE f.path IS NULL OR ($6 AND f.state = 'DONE'"
		" AND (f.size <> u.size OR f.mtime <> u.mtime)) ORDER BY u.ord", &args);
	for (row = 0; row < rows->n; row++)
		indexes = lappend_int(indexes, (int) pln_row_int8(rows, row, "i"));
	return indexes;
}

/* One statement for all files, as JSON: a first load may bring ten thousands. */
static char *
ledger_json(List *entries)
{
	StringInfoData json;
	ListCell   *lc;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '[');
	foreach(lc, entries)
	{
		PlnLedgerEntry *entry = lfirst(lc);

		pln_json_open(&json, NULL, '{');
		pln_json_text(&json, "path", entry->path);
		pln_json_int(&json, "size", entry->size);
		pln_json_int(&json, "mtime_us", entry->mtime);
		pln_json_text(&json, "state", entry->state);
		pln_json_int(&json, "rows", entry->rows);
		pln_json_int(&json, "malformed", entry->malformed);
		pln_json_int(&json, "rescued", entry->rescued);
		pln_json_text(&json, "error", entry->error);
		pln_json_close(&json, '}');
	}
	pln_json_close(&json, ']');
	return json.data;
}

void
pln_ledger_record(int64 flow_id, int ordinal, const char *update_id, List *entries)
{
	PlnArgs		args;

	if (entries == NIL)
		return;
	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_int4(&args, ordinal);
	pln_args_text(&args, update_id);
	pln_args_jsonb(&args, ledger_json(entries));
	(void) pln_spi_run_args(
		"INSERT INTO pipeline_internal.files AS f (flow_id, ordinal, path_sha256, path, size,"
		" mtime, state, rows, malformed, rescued, error, update_id)"
		" SELECT $1, $2, sha256(textsend(e.path)), e.path, e.size,"
		" timestamptz '2000-01-01 00:00:00+00' + e.mtime_us * interval '1 microsecond',"
		" e.state, e.rows, e.malformed, e.rescued, e.error, $3::uuid"
		" FROM jsonb_to_recordset($4) AS e (path text, size bigint, mtime_us bigint,"
		"  state text, rows bigint, malformed bigint, rescued bigint, error text)"
		" ON CONFLICT (flow_id, ordinal, path_sha256) DO UPDATE SET size = excluded.size,"
		" mtime = excluded.mtime, state = excluded.state, rows = excluded.rows,"
		" malformed = excluded.malformed, rescued = excluded.rescued,"
		" error = excluded.error, update_id = excluded.update_id,"
		" recorded_at = clock_timestamp()", &args);
}

int64
pln_ledger_count(int64 flow_id, int ordinal)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_int4(&args, ordinal);
	return pln_row_int8(pln_spi_run_args(
		"SELECT count(*) AS n FROM pipeline_internal.files"
		" WHERE flow_id = $1 AND ordinal = $2", &args), 0, "n");
}

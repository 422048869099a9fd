/*
 * datasets.c
 *	  Rows of pipeline_internal.datasets.
 *
 * A dataset's row lives as long as its relation, or, for temporary views, as its
 * definition.  Its flows, expectations, checkpoints and ledger go with it; events and
 * update results stay.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/timestamp.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/spi.h"
#include "catalog/datasets.h"

#define DATASET_COLUMNS \
	"id, pipeline_id, schema_name, name, kind, relid, state, state_reason, definition, query," \
	" fingerprint, policy, properties, comment, is_private, quarantine, relfilenode, filled"

static const char *const kind_names[] = {
	[PLN_STREAMING_TABLE] = "STREAMING_TABLE",
	[PLN_MATERIALIZED_VIEW] = "MATERIALIZED_VIEW",
	[PLN_VIEW] = "VIEW",
	[PLN_TEMPORARY_VIEW] = "TEMPORARY_VIEW"
};

static const char *const state_names[] = {
	[PLN_DATASET_ACTIVE] = "ACTIVE",
	[PLN_DATASET_INACTIVE] = "INACTIVE",
	[PLN_DATASET_SUSPENDED] = "SUSPENDED"
};

static const char *const policy_names[] = {
	[PLN_POLICY_AUTO] = "AUTO",
	[PLN_POLICY_INCREMENTAL] = "INCREMENTAL",
	[PLN_POLICY_STRICT] = "INCREMENTAL STRICT",
	[PLN_POLICY_FULL] = "FULL"
};

/* Position of a stored word in its table; the CHECK constraints keep others out. */
static int
word_index(const char *word, const char *const *words, int nwords)
{
	int			i;

	for (i = 0; i < nwords; i++)
	{
		if (strcmp(words[i], word) == 0)
			return i;
	}
	elog(ERROR, "unexpected word \"%s\" in pipeline_internal.datasets", word);
	return 0;					/* keep compiler quiet */
}

const char *
pln_dataset_kind_name(PlnDatasetKind kind)
{
	return kind_names[kind];
}

const char *
pln_dataset_state_name(PlnDatasetState state)
{
	return state_names[state];
}

const char *
pln_policy_name(PlnRefreshPolicy policy)
{
	return policy_names[policy];
}

static PlnDataset *
dataset_from_row(PlnRows *rows, uint64 row)
{
	PlnDataset *dataset = palloc0(sizeof(PlnDataset));

	dataset->id = pln_row_int8(rows, row, "id");
	dataset->pipeline_id = pln_row_int8(rows, row, "pipeline_id");
	dataset->schema_name = pln_row_text(rows, row, "schema_name");
	dataset->name = pln_row_text(rows, row, "name");
	dataset->kind = word_index(pln_row_text(rows, row, "kind"), kind_names,
							   lengthof(kind_names));
	dataset->relid = pln_row_oid(rows, row, "relid");
	dataset->state = word_index(pln_row_text(rows, row, "state"), state_names,
								lengthof(state_names));
	dataset->state_reason = pln_row_text(rows, row, "state_reason");
	dataset->definition = pln_row_text(rows, row, "definition");
	dataset->query = pln_row_text(rows, row, "query");
	dataset->fingerprint = pln_row_text(rows, row, "fingerprint");
	dataset->policy = word_index(pln_row_text(rows, row, "policy"), policy_names,
								 lengthof(policy_names));
	dataset->properties = pln_row_text(rows, row, "properties");
	dataset->comment = pln_row_text(rows, row, "comment");
	dataset->is_private = pln_row_bool(rows, row, "is_private");
	dataset->quarantine = pln_row_oid(rows, row, "quarantine");
	dataset->relfilenode = pln_row_oid(rows, row, "relfilenode");
	dataset->filled = pln_row_bool(rows, row, "filled");
	return dataset;
}

static PlnDataset *
only_row(PlnRows *rows)
{
	return rows->n == 0 ? NULL : dataset_from_row(rows, 0);
}

PlnDataset *
pln_dataset_get(int64 id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	return only_row(pln_spi_run_args(
		"SELECT " DATASET_COLUMNS " FROM pipeline_internal.datasets WHERE id = $1", &args));
}

PlnDataset *
pln_dataset_by_relid(Oid relid)
{
	PlnArgs		args;

	if (!OidIsValid(relid))
		return NULL;
	pln_args_init(&args);
	pln_args_oid(&args, relid);
	return only_row(pln_spi_run_args(
		"SELECT " DATASET_COLUMNS " FROM pipeline_internal.datasets WHERE relid = $1", &args));
}

/*
 * Temporary views and private tables are known to their pipeline only, so that two
 * pipelines may use one name: the published dataset is preferred, then the oldest.
 */
PlnDataset *
pln_dataset_find(const char *schema_name, const char *name)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, schema_name);
	pln_args_text(&args, name);
	return only_row(pln_spi_run_args(
		"SELECT " DATASET_COLUMNS " FROM pipeline_internal.datasets"
		" WHERE schema_name = $1 AND name = $2"
		" ORDER BY kind = 'TEMPORARY_VIEW' OR is_private, id LIMIT 1", &args));
}

List *
pln_datasets_of_pipeline(int64 pipeline_id)
{
	PlnArgs		args;
	PlnRows    *rows;
	List	   *datasets = NIL;
	uint64		i;

	pln_args_init(&args);
	pln_args_int8(&args, pipeline_id);
	rows = pln_spi_run_args(
		"SELECT " DATASET_COLUMNS " FROM pipeline_internal.datasets"
		" WHERE pipeline_id = $1 ORDER BY id", &args);
	for (i = 0; i < rows->n; i++)
		datasets = lappend(datasets, dataset_from_row(rows, i));
	return datasets;
}

static void
add_columns(PlnArgs *args, const PlnDataset *dataset)
{
	pln_args_int8(args, dataset->pipeline_id);
	pln_args_text(args, dataset->schema_name);
	pln_args_text(args, dataset->name);
	pln_args_text(args, kind_names[dataset->kind]);
	pln_args_oid(args, dataset->relid);
	pln_args_text(args, state_names[dataset->state]);
	pln_args_text(args, dataset->state_reason);
	pln_args_text(args, dataset->definition);
	pln_args_text(args, dataset->query);
	pln_args_text(args, dataset->fingerprint);
	pln_args_text(args, policy_names[dataset->policy]);
	pln_args_jsonb(args, dataset->properties ? dataset->properties : "{}");
	pln_args_text(args, dataset->comment);
	pln_args_bool(args, dataset->is_private);
	pln_args_oid(args, dataset->quarantine);
	pln_args_oid(args, dataset->relfilenode);
	pln_args_bool(args, dataset->filled);
}

void
pln_dataset_save(PlnDataset *dataset)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	add_columns(&args, dataset);
	if (dataset->id == 0)
	{
		rows = pln_spi_run_args(
			"INSERT INTO pipeline_internal.datasets"
			" (pipeline_id, schema_name, name, kind, relid, state, state_reason, definition,"
			" query, fingerprint, policy, properties, comment, is_private, quarantine,"
			" relfilenode, filled)"
			" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,"
			" $17) RETURNING id", &args);
		dataset->id = pln_row_int8(rows, 0, "id");
		return;
	}
	pln_args_int8(&args, dataset->id);
	rows = pln_spi_run_args(
		"UPDATE pipeline_internal.datasets SET pipeline_id = $1, schema_name = $2, name = $3,"
		" kind = $4, relid = $5,"
		" state_since = CASE WHEN state = $6 THEN state_since ELSE clock_timestamp() END,"
		" state = $6, state_reason = $7, definition = $8, query = $9, fingerprint = $10,"
		" policy = $11, properties = $12, comment = $13, is_private = $14, quarantine = $15,"
		" relfilenode = $16, filled = $17 WHERE id = $18", &args);
	if (rows->processed == 0)
		pln_raise_dropped("dataset", pln_dataset_display_name(dataset));
}

void
pln_dataset_set_state(int64 id, PlnDatasetState state, const char *reason)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	pln_args_text(&args, state_names[state]);
	pln_args_text(&args, state == PLN_DATASET_ACTIVE ? NULL : reason);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.datasets SET state = $2, state_reason = $3,"
		" state_since = CASE WHEN state = $2 THEN state_since ELSE clock_timestamp() END"
		" WHERE id = $1 AND (state, state_reason) IS DISTINCT FROM ($2, $3)", &args);
}

void
pln_dataset_delete(int64 id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	(void) pln_spi_run_args("DELETE FROM pipeline_internal.datasets WHERE id = $1", &args);
}

/* A NO_OP keeps the row count of the refresh before it. */
void
pln_dataset_refreshed(int64 id, const char *update_id, const char *refresh_type, int64 rows)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	pln_args_text(&args, update_id);
	pln_args_text(&args, refresh_type);
	pln_args_int8(&args, rows);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.datasets SET last_update_id = $2::uuid,"
		" last_refresh_type = $3, last_refreshed_at = clock_timestamp(),"
		" last_rows = CASE WHEN $3 = 'NO_OP' THEN last_rows ELSE $4 END WHERE id = $1", &args);
}

char *
pln_dataset_display_name(const PlnDataset *dataset)
{
	return pln_quote_qualified(dataset->schema_name, dataset->name);
}

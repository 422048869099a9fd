/*
 * flows.c
 *	  Rows of pipeline_internal.flows and flow_inputs.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "base/spi.h"
#include "catalog/flows.h"

#define FLOW_COLUMNS \
	"id, dataset_id, name, uid, kind, once, once_done, query, view, batch_id, query_hash"

static const char *const kind_names[] = {
	[PLN_FLOW_INSERT] = "INSERT",
	[PLN_FLOW_AUTO_CDC] = "AUTO_CDC",
	[PLN_FLOW_CDC_SNAPSHOT] = "CDC_SNAPSHOT",
	[PLN_FLOW_REPLACE_WHERE] = "REPLACE_WHERE",
	[PLN_FLOW_REPLACE_USING] = "REPLACE_USING"
};

static PlnFlowKind
kind_from_name(const char *name)
{
	int			i;

	for (i = 0; i < lengthof(kind_names); i++)
	{
		if (strcmp(kind_names[i], name) == 0)
			return i;
	}
	elog(ERROR, "unexpected word \"%s\" in pipeline_internal.flows", name);
	return 0;					/* keep compiler quiet */
}

static PlnFlow *
flow_from_row(PlnRows *rows, uint64 row)
{
	PlnFlow    *flow = palloc0(sizeof(PlnFlow));

	flow->id = pln_row_int8(rows, row, "id");
	flow->dataset_id = pln_row_int8(rows, row, "dataset_id");
	flow->name = pln_row_text(rows, row, "name");
	flow->uid = pln_row_text(rows, row, "uid");
	flow->kind = kind_from_name(pln_row_text(rows, row, "kind"));
	flow->once = pln_row_bool(rows, row, "once");
	flow->once_done = pln_row_bool(rows, row, "once_done");
	flow->query = pln_row_text(rows, row, "query");
	flow->view = pln_row_oid(rows, row, "view");
	flow->batch_id = pln_row_int8(rows, row, "batch_id");
	flow->query_hash = pln_row_text(rows, row, "query_hash");
	return flow;
}

static List *
flows_from_rows(PlnRows *rows)
{
	List	   *flows = NIL;
	uint64		i;

	for (i = 0; i < rows->n; i++)
		flows = lappend(flows, flow_from_row(rows, i));
	return flows;
}

PlnFlow *
pln_flow_get(int64 id)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	rows = pln_spi_run_args(
		"SELECT " FLOW_COLUMNS " FROM pipeline_internal.flows WHERE id = $1", &args);
	return rows->n == 0 ? NULL : flow_from_row(rows, 0);
}

List *
pln_flows_of_dataset(int64 dataset_id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, dataset_id);
	return flows_from_rows(pln_spi_run_args(
		"SELECT " FLOW_COLUMNS " FROM pipeline_internal.flows"
		" WHERE dataset_id = $1 ORDER BY id", &args));
}

List *
pln_flows_of_pipeline(int64 pipeline_id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, pipeline_id);
	return flows_from_rows(pln_spi_run_args(
		"SELECT " FLOW_COLUMNS " FROM pipeline_internal.flows"
		" WHERE dataset_id IN (SELECT d.id FROM pipeline_internal.datasets d"
		" WHERE d.pipeline_id = $1) ORDER BY id", &args));
}

void
pln_flow_save(PlnFlow *flow)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	pln_args_int8(&args, flow->dataset_id);
	pln_args_text(&args, flow->name);
	pln_args_text(&args, kind_names[flow->kind]);
	pln_args_bool(&args, flow->once);
	pln_args_bool(&args, flow->once_done);
	pln_args_text(&args, flow->query);
	pln_args_oid(&args, flow->view);
	pln_args_int8(&args, flow->batch_id);
	pln_args_text(&args, flow->query_hash);
	if (flow->id == 0)
	{
		rows = pln_spi_run_args(
			"INSERT INTO pipeline_internal.flows"
			" (dataset_id, name, kind, once, once_done, query, view, batch_id, query_hash)"
			" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id, uid", &args);
		flow->id = pln_row_int8(rows, 0, "id");
		flow->uid = pln_row_text(rows, 0, "uid");
		return;
	}
	pln_args_int8(&args, flow->id);
	rows = pln_spi_run_args(
		"UPDATE pipeline_internal.flows SET dataset_id = $1, name = $2, kind = $3, once = $4,"
		" once_done = $5, query = $6, view = $7, batch_id = $8, query_hash = $9 WHERE id = $10",
		&args);
	if (rows->processed == 0)
		pln_raise_dropped("flow", flow->name);
}

void
pln_flow_delete(int64 id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	(void) pln_spi_run_args("DELETE FROM pipeline_internal.flows WHERE id = $1", &args);
}

void
pln_flow_reset(PlnFlow *flow)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	pln_args_int8(&args, flow->id);
	(void) pln_spi_run_args(
		"DELETE FROM pipeline_internal.checkpoints WHERE flow_id = $1", &args);
	(void) pln_spi_run_args("DELETE FROM pipeline_internal.files WHERE flow_id = $1", &args);
	rows = pln_spi_run_args(
		"UPDATE pipeline_internal.flows SET uid = gen_random_uuid(), once_done = false,"
		" batch_id = 0 WHERE id = $1 RETURNING uid", &args);
	PLN_ENSURE(rows->n == 1);
	flow->uid = pln_row_text(rows, 0, "uid");
	flow->once_done = false;
	flow->batch_id = 0;
}

void
pln_flow_set_inputs(int64 flow_id, List *input_relids, List *input_names)
{
	PlnArgs		args;
	int			n = list_length(input_names);
	Datum	   *relids = palloc(sizeof(Datum) * Max(n, 1));
	Datum	   *names = palloc(sizeof(Datum) * Max(n, 1));
	int			i;

	PLN_ENSURE(list_length(input_relids) == n);
	for (i = 0; i < n; i++)
	{
		relids[i] = ObjectIdGetDatum(list_nth_oid(input_relids, i));
		names[i] = CStringGetTextDatum((char *) list_nth(input_names, i));
	}
	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	(void) pln_spi_run_args(
		"DELETE FROM pipeline_internal.flow_inputs WHERE flow_id = $1", &args);
	if (n == 0)
		return;
	pln_args_datum(&args, OIDARRAYOID,
				   PointerGetDatum(construct_array(relids, n, OIDOID, sizeof(Oid), true,
												   TYPALIGN_INT)), false);
	pln_args_datum(&args, TEXTARRAYOID,
				   PointerGetDatum(construct_array(names, n, TEXTOID, -1, false,
												   TYPALIGN_INT)), false);
	(void) pln_spi_run_args(
		"INSERT INTO pipeline_internal.flow_inputs (flow_id, ordinal, relid, name)"
		" SELECT $1, u.ordinal, nullif(u.relid, 0::oid), u.name"
		" FROM unnest($2, $3) WITH ORDINALITY AS u (relid, name, ordinal)", &args);
}

void
pln_flow_mark_streams(int64 flow_id, List *stream_relids)
{
	PlnArgs		args;
	int			n = list_length(stream_relids);
	Datum	   *relids = palloc(sizeof(Datum) * Max(n, 1));
	int			i;

	for (i = 0; i < n; i++)
		relids[i] = ObjectIdGetDatum(list_nth_oid(stream_relids, i));
	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	pln_args_datum(&args, OIDARRAYOID,
				   PointerGetDatum(construct_array(relids, n, OIDOID, sizeof(Oid), true,
												   TYPALIGN_INT)), false);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.flow_inputs SET streaming = relid = ANY ($2)"
		" WHERE flow_id = $1 AND relid IS NOT NULL", &args);
}

List *
pln_flow_inputs(int64 flow_id, List **input_names)
{
	PlnArgs		args;
	PlnRows    *rows;
	List	   *relids = NIL;
	uint64		i;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	rows = pln_spi_run_args(
		"SELECT relid, name FROM pipeline_internal.flow_inputs"
		" WHERE flow_id = $1 ORDER BY ordinal", &args);
	*input_names = NIL;
	for (i = 0; i < rows->n; i++)
	{
		relids = lappend_oid(relids, pln_row_oid(rows, i, "relid"));
		*input_names = lappend(*input_names, pln_row_text(rows, i, "name"));
	}
	return relids;
}

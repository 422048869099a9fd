/*
 * expectations.c
 *	  Rows of pipeline_internal.expectations.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "base/errors.h"
#include "base/spi.h"
#include "catalog/expectations.h"

static const char *const action_names[] = {
	[PLN_ACTION_WARN] = "WARN",
	[PLN_ACTION_DROP] = "DROP",
	[PLN_ACTION_QUARANTINE] = "QUARANTINE",
	[PLN_ACTION_FAIL] = "FAIL"
};

static const char *const threshold_names[] = {
	[PLN_THRESHOLD_NONE] = "NONE",
	[PLN_THRESHOLD_PERCENT] = "PERCENT",
	[PLN_THRESHOLD_ROWS] = "ROWS"
};

const char *
pln_action_name(PlnAction action)
{
	return action_names[action];
}

bool
pln_action_from_name(const char *name, PlnAction *action)
{
	int			i;

	for (i = 0; i < lengthof(action_names); i++)
	{
		if (pg_strcasecmp(action_names[i], name) == 0)
		{
			*action = i;
			return true;
		}
	}
	return false;
}

static PlnThresholdKind
threshold_from_name(const char *name)
{
	int			i;

	for (i = 0; i < lengthof(threshold_names); i++)
	{
		if (strcmp(threshold_names[i], name) == 0)
			return i;
	}
	elog(ERROR, "unexpected word \"%s\" in pipeline_internal.expectations", name);
	return 0;					/* keep compiler quiet */
}

static PlnExpectationRow *
expectation_from_row(PlnRows *rows, uint64 row)
{
	PlnExpectationRow *expectation = palloc0(sizeof(PlnExpectationRow));
	bool		known;
	bool		isnull;

	expectation->id = pln_row_int8(rows, row, "id");
	expectation->dataset_id = pln_row_int8(rows, row, "dataset_id");
	expectation->name = pln_row_text(rows, row, "name");
	expectation->condition = pln_row_text(rows, row, "condition");
	known = pln_action_from_name(pln_row_text(rows, row, "action"), &expectation->action);
	PLN_ENSURE(known);
	expectation->threshold_kind = threshold_from_name(pln_row_text(rows, row,
																   "threshold_kind"));
	expectation->threshold = DatumGetFloat8(pln_row_datum(rows, row, "threshold", &isnull));
	expectation->origin = pln_row_text(rows, row, "origin");
	return expectation;
}

List *
pln_expectations_of_dataset(int64 dataset_id)
{
	PlnArgs		args;
	PlnRows    *rows;
	List	   *expectations = NIL;
	uint64		i;

	pln_args_init(&args);
	pln_args_int8(&args, dataset_id);
	rows = pln_spi_run_args(
		"SELECT id, dataset_id, name, condition, action, threshold_kind, threshold, origin"
		" FROM pipeline_internal.expectations WHERE dataset_id = $1 ORDER BY id", &args);
	for (i = 0; i < rows->n; i++)
		expectations = lappend(expectations, expectation_from_row(rows, i));
	return expectations;
}

static PlnExpectationRow *
find_by_name(List *expectations, const char *name)
{
	ListCell   *lc;

	foreach(lc, expectations)
	{
		PlnExpectationRow *expectation = lfirst(lc);

		if (strcmp(expectation->name, name) == 0)
			return expectation;
	}
	return NULL;
}

static void
save(PlnExpectationRow *expectation)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	pln_args_int8(&args, expectation->dataset_id);
	pln_args_text(&args, expectation->name);
	pln_args_text(&args, expectation->condition);
	pln_args_text(&args, action_names[expectation->action]);
	pln_args_text(&args, threshold_names[expectation->threshold_kind]);
	pln_args_float8(&args, expectation->threshold);
	pln_args_text(&args, expectation->origin);
	rows = pln_spi_run_args(
		"INSERT INTO pipeline_internal.expectations"
		" (dataset_id, name, condition, action, threshold_kind, threshold, origin)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7)"
		" ON CONFLICT (dataset_id, name) DO UPDATE SET condition = excluded.condition,"
		" action = excluded.action, threshold_kind = excluded.threshold_kind,"
		" threshold = excluded.threshold RETURNING id", &args);
	expectation->id = pln_row_int8(rows, 0, "id");
}

static bool
same_rule(const PlnExpectationRow *a, const PlnExpectationRow *b)
{
	return strcmp(a->condition, b->condition) == 0 && a->action == b->action &&
		a->threshold_kind == b->threshold_kind && a->threshold == b->threshold;
}

static void
delete_by_id(int64 id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	(void) pln_spi_run_args("DELETE FROM pipeline_internal.expectations WHERE id = $1", &args);
}

/*
 * Writes only what differs: an unchanged definition, the usual case in every update, costs
 * one SELECT.
 */
void
pln_expectations_replace(int64 dataset_id, const char *origin, List *rows)
{
	List	   *stored = pln_expectations_of_dataset(dataset_id);
	ListCell   *lc;

	foreach(lc, stored)
	{
		PlnExpectationRow *old = lfirst(lc);

		if (strcmp(old->origin, origin) == 0 && find_by_name(rows, old->name) == NULL)
			delete_by_id(old->id);
	}
	foreach(lc, rows)
	{
		PlnExpectationRow *row = lfirst(lc);
		PlnExpectationRow *old = find_by_name(stored, row->name);

		row->dataset_id = dataset_id;
		row->origin = pstrdup(origin);
		if (find_by_name(rows, row->name) != row ||
			(old != NULL && strcmp(old->origin, origin) != 0))
			ereport(ERROR,
					(errcode(PLN_ERR_DUPLICATE),
					 errmsg("expectation \"%s\" already exists", row->name),
					 old == NULL ? 0 :
					 errdetail("Its origin is \"%s\".", old->origin)));
		if (old != NULL && same_rule(old, row))
			row->id = old->id;
		else
			save(row);
	}
}

bool
pln_expectation_drop(int64 dataset_id, const char *name)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, dataset_id);
	pln_args_text(&args, name);
	return pln_spi_run_args(
		"DELETE FROM pipeline_internal.expectations WHERE dataset_id = $1 AND name = $2",
		&args)->processed == 1;
}

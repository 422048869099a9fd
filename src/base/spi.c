/*
 * spi.c
 *	  The only SPI caller for our own metadata statements.
 *
 * Plans are kept per statement text for the life of the backend; the plan cache notices
 * DROP and CREATE EXTENSION by itself.  Texts given to pln_spi_run() are string literals
 * of this library, so their addresses serve as keys.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/xid8.h"

#include "base/errors.h"
#include "base/secctx.h"
#include "base/spi.h"

typedef struct PlanEntry
{
	const char *sql;			/* hash key: the literal's address */
	SPIPlanPtr	plan;
} PlanEntry;

static HTAB *plans = NULL;

static PlanEntry *
find_plan(const char *sql)
{
	bool		found;
	PlanEntry  *entry;

	if (plans == NULL)
	{
		HASHCTL		ctl;

		memset(&ctl, 0, sizeof(ctl));
		ctl.keysize = sizeof(const char *);
		ctl.entrysize = sizeof(PlanEntry);
		ctl.hcxt = TopMemoryContext;
		plans = hash_create("pipeline metadata plans", 128, &ctl,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(plans, &sql, HASH_ENTER, &found);
	if (!found)
		entry->plan = NULL;
	return entry;
}

/* Copy what SPI returned into the context that is current. */
static PlnRows *
copy_rows(MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	PlnRows    *rows = palloc0(sizeof(PlnRows));
	uint64		i;

	rows->processed = SPI_processed;
	if (SPI_tuptable != NULL)
	{
		rows->n = SPI_tuptable->numvals;
		rows->desc = CreateTupleDescCopy(SPI_tuptable->tupdesc);
		rows->tuples = palloc(sizeof(HeapTuple) * Max(rows->n, 1));
		for (i = 0; i < rows->n; i++)
			rows->tuples[i] = heap_copytuple(SPI_tuptable->vals[i]);
	}
	MemoryContextSwitchTo(old);
	return rows;
}

static char *
null_flags(int nargs, const bool *nulls)
{
	char	   *flags;
	int			i;

	if (nulls == NULL)
		return NULL;
	flags = palloc(nargs + 1);
	for (i = 0; i < nargs; i++)
		flags[i] = nulls[i] ? 'n' : ' ';
	flags[nargs] = '\0';
	return flags;
}

static PlnRows *
run(const char *sql, bool keep, int nargs, const Oid *argtypes, const Datum *values,
	const bool *nulls)
{
	MemoryContext caller = CurrentMemoryContext;
	PlnSecContext ctx;
	PlnRows    *rows;
	char	   *flags = null_flags(nargs, nulls);
	int			rc;

	pln_enter_metadata(&ctx);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (keep)
	{
		PlanEntry  *entry = find_plan(sql);

		if (entry->plan == NULL)
		{
			SPIPlanPtr	plan = SPI_prepare(sql, nargs, unconstify(Oid *, argtypes));

			if (plan == NULL || SPI_keepplan(plan) != 0)
				elog(ERROR, "could not prepare metadata statement: %s",
					 SPI_result_code_string(SPI_result));
			entry->plan = plan;
		}
		rc = SPI_execute_plan(entry->plan, unconstify(Datum *, values), flags, false, 0);
	}
	else
		rc = SPI_execute_with_args(sql, nargs, unconstify(Oid *, argtypes),
								   unconstify(Datum *, values), flags, false, 0);
	if (rc < 0)
		elog(ERROR, "metadata statement failed: %s", SPI_result_code_string(rc));
	rows = copy_rows(caller);
	SPI_finish();
	pln_leave(&ctx);
	if (flags != NULL)
		pfree(flags);
	return rows;
}

PlnRows *
pln_spi_run(const char *sql, int nargs, const Oid *argtypes, const Datum *values,
			const bool *nulls)
{
	return run(sql, true, nargs, argtypes, values, nulls);
}

PlnRows *
pln_spi_run_once(const char *sql, int nargs, const Oid *argtypes, const Datum *values,
				 const bool *nulls)
{
	return run(sql, false, nargs, argtypes, values, nulls);
}

uint64
pln_spi_user(const char *sql)
{
	uint64		processed;
	int			rc;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	rc = SPI_execute(sql, false, 0);
	if (rc < 0)
		elog(ERROR, "statement failed: %s", SPI_result_code_string(rc));
	processed = SPI_processed;
	SPI_finish();
	return processed;
}

void
pln_spi_begin_nonatomic(void)
{
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

void
pln_spi_commit(void)
{
	SPI_commit();
}

void
pln_spi_end_nonatomic(void)
{
	SPI_finish();
}

/* ---- reading results, by column name ---- */

static int
column_number(PlnRows *rows, const char *column)
{
	int			i;

	for (i = 0; i < rows->desc->natts; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(rows->desc, i)->attname), column) == 0)
			return i + 1;
	}
	elog(ERROR, "metadata query has no column \"%s\"", column);
	return 0;					/* keep compiler quiet */
}

Datum
pln_row_datum(PlnRows *rows, uint64 row, const char *column, bool *isnull)
{
	PLN_ENSURE(row < rows->n);
	return heap_getattr(rows->tuples[row], column_number(rows, column), rows->desc, isnull);
}

char *
pln_row_text(PlnRows *rows, uint64 row, const char *column)
{
	bool		isnull;
	bool		varlena;
	Oid			output;
	Datum		value = pln_row_datum(rows, row, column, &isnull);

	if (isnull)
		return NULL;
	getTypeOutputInfo(TupleDescAttr(rows->desc, column_number(rows, column) - 1)->atttypid,
					  &output, &varlena);
	return OidOutputFunctionCall(output, value);
}

int64
pln_row_int8(PlnRows *rows, uint64 row, const char *column)
{
	bool		isnull;
	Datum		value = pln_row_datum(rows, row, column, &isnull);

	if (isnull)
		return 0;
	switch (TupleDescAttr(rows->desc, column_number(rows, column) - 1)->atttypid)
	{
		case INT8OID:
			return DatumGetInt64(value);
		case INT4OID:
			return DatumGetInt32(value);
		case INT2OID:
			return DatumGetInt16(value);
		case XID8OID:
			return (int64) U64FromFullTransactionId(DatumGetFullTransactionId(value));
		default:
			elog(ERROR, "metadata column \"%s\" is not an integer", column);
	}
	return 0;					/* keep compiler quiet */
}

Oid
pln_row_oid(PlnRows *rows, uint64 row, const char *column)
{
	bool		isnull;
	Datum		value = pln_row_datum(rows, row, column, &isnull);

	return isnull ? InvalidOid : DatumGetObjectId(value);
}

bool
pln_row_bool(PlnRows *rows, uint64 row, const char *column)
{
	bool		isnull;
	Datum		value = pln_row_datum(rows, row, column, &isnull);

	return !isnull && DatumGetBool(value);
}

bool
pln_row_isnull(PlnRows *rows, uint64 row, const char *column)
{
	bool		isnull;

	(void) pln_row_datum(rows, row, column, &isnull);
	return isnull;
}

/* ---- arguments ---- */

void
pln_args_init(PlnArgs *args)
{
	args->n = 0;
}

void
pln_args_datum(PlnArgs *args, Oid type, Datum value, bool isnull)
{
	PLN_ENSURE(args->n < PLN_MAX_ARGS);
	args->types[args->n] = type;
	args->values[args->n] = value;
	args->nulls[args->n] = isnull;
	args->n++;
}

void
pln_args_text(PlnArgs *args, const char *value)
{
	pln_args_datum(args, TEXTOID, value ? CStringGetTextDatum(value) : (Datum) 0,
				   value == NULL);
}

void
pln_args_int4(PlnArgs *args, int32 value)
{
	pln_args_datum(args, INT4OID, Int32GetDatum(value), false);
}

void
pln_args_int8(PlnArgs *args, int64 value)
{
	pln_args_datum(args, INT8OID, Int64GetDatum(value), false);
}

void
pln_args_oid(PlnArgs *args, Oid value)
{
	pln_args_datum(args, OIDOID, ObjectIdGetDatum(value), !OidIsValid(value));
}

void
pln_args_bool(PlnArgs *args, bool value)
{
	pln_args_datum(args, BOOLOID, BoolGetDatum(value), false);
}

void
pln_args_float8(PlnArgs *args, double value)
{
	pln_args_datum(args, FLOAT8OID, Float8GetDatum(value), false);
}

void
pln_args_jsonb(PlnArgs *args, const char *json)
{
	pln_args_datum(args, JSONBOID,
				   json ? DirectFunctionCall1(jsonb_in, CStringGetDatum(json)) : (Datum) 0,
				   json == NULL);
}

void
pln_args_uuid(PlnArgs *args, const pg_uuid_t *value)
{
	pln_args_datum(args, UUIDOID, UUIDPGetDatum(value), value == NULL);
}

void
pln_args_timestamptz(PlnArgs *args, int64 value)
{
	pln_args_datum(args, TIMESTAMPTZOID, TimestampTzGetDatum(value), false);
}

void
pln_args_xid8(PlnArgs *args, uint64 value)
{
	pln_args_datum(args, XID8OID,
				   FullTransactionIdGetDatum(FullTransactionIdFromU64(value)), false);
}

PlnRows *
pln_spi_run_args(const char *sql, PlnArgs *args)
{
	return run(sql, true, args->n, args->types, args->values, args->nulls);
}

/*
 * spi.h
 *	  The only SPI caller for our own metadata statements.
 *
 * Statements are ours (never text of users), run as the extension's owner with
 * search_path "pg_catalog, pg_temp", take values as $n, and their plans are kept per
 * statement text.  Results are copied into the caller's context.
 */
#ifndef PIPELINE_BASE_SPI_H
#define PIPELINE_BASE_SPI_H

#include "access/htup.h"
#include "access/tupdesc.h"
#include "utils/uuid.h"

/* Result rows of a metadata query, in the caller's context. */
typedef struct PlnRows
{
	TupleDesc	desc;
	uint64		n;
	HeapTuple  *tuples;
	uint64		processed;		/* rows touched, also for INSERT/UPDATE/DELETE */
} PlnRows;

/*
 * Run one statement.  argtypes/values/nulls have nargs entries; nulls may be NULL (no
 * null argument).  Sees the current snapshot after CommandCounterIncrement.  Raises
 * what the statement raises.
 */
extern PlnRows *pln_spi_run(const char *sql, int nargs, const Oid *argtypes,
							const Datum *values, const bool *nulls);

/* The same for statements whose text is built at run time (DDL): no plan is kept. */
extern PlnRows *pln_spi_run_once(const char *sql, int nargs, const Oid *argtypes,
								 const Datum *values, const bool *nulls);

extern Datum pln_row_datum(PlnRows *rows, uint64 row, const char *column, bool *isnull);
/* NULL for null; any type by its output function */
extern char *pln_row_text(PlnRows *rows, uint64 row, const char *column);
/* int2/4/8; 0 for null */
extern int64 pln_row_int8(PlnRows *rows, uint64 row, const char *column);
extern Oid	pln_row_oid(PlnRows *rows, uint64 row, const char *column);		/* oid and reg types */
extern bool pln_row_bool(PlnRows *rows, uint64 row, const char *column);	/* false for null */
extern bool pln_row_isnull(PlnRows *rows, uint64 row, const char *column);

/* Argument list builder: pln_args_text(&a, "x"); ... pln_spi_run_args(sql, &a). */
#define PLN_MAX_ARGS 32
typedef struct PlnArgs
{
	int			n;
	Oid			types[PLN_MAX_ARGS];
	Datum		values[PLN_MAX_ARGS];
	bool		nulls[PLN_MAX_ARGS];
} PlnArgs;

extern void pln_args_init(PlnArgs *args);
extern void pln_args_text(PlnArgs *args, const char *value);	/* NULL = null */
extern void pln_args_int4(PlnArgs *args, int32 value);
extern void pln_args_int8(PlnArgs *args, int64 value);
extern void pln_args_oid(PlnArgs *args, Oid value);		/* InvalidOid = null */
extern void pln_args_bool(PlnArgs *args, bool value);
extern void pln_args_float8(PlnArgs *args, double value);
extern void pln_args_jsonb(PlnArgs *args, const char *json);	/* NULL = null */
extern void pln_args_uuid(PlnArgs *args, const pg_uuid_t *value);	/* NULL = null */
extern void pln_args_timestamptz(PlnArgs *args, int64 value);
extern void pln_args_xid8(PlnArgs *args, uint64 value);
extern void pln_args_datum(PlnArgs *args, Oid type, Datum value, bool isnull);
extern PlnRows *pln_spi_run_args(const char *sql, PlnArgs *args);

/*
 * Run a statement as the current user, with his rights and path, not as ours: DDL that creates a
 * user's relation, plain statements of the DO door.  Returns rows processed.
 */
extern uint64 pln_spi_user(const char *sql);

/*
 * Transactions of a non-atomic CALL or DO.  Begin connects; commit ends the transaction and
 * starts the next one (not inside a subtransaction; snapshots and locks are gone afterwards);
 * end disconnects.
 */
extern void pln_spi_begin_nonatomic(void);
extern void pln_spi_commit(void);
extern void pln_spi_end_nonatomic(void);

#endif							/* PIPELINE_BASE_SPI_H */

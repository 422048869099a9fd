/*
 * api_check_row.c
 *	  pipeline.check_row: what the expectations of a temporary view become in the
 *	  queries that read it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "expect/inline_check.h"

PG_FUNCTION_INFO_V1(pipeline_check_row);

typedef struct CheckRowState
{
	uint64		generation;
	PlnInlineView *view;
} CheckRowState;

/*
 * check_row(view text, rules text[], actions text[], VARIADIC results bool[]): counts, and
 * says whether the row stays.  The first three are constants in every query that we make.
 */
Datum
pipeline_check_row(PG_FUNCTION_ARGS)
{
	CheckRowState *state = fcinfo->flinfo->fn_extra;
	Datum	   *results;
	bool	   *nulls;
	int			n;

	if (state == NULL)
	{
		state = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(CheckRowState));
		fcinfo->flinfo->fn_extra = state;
	}
	if (state->view == NULL || state->generation != pln_inline_generation())
	{
		state->view = pln_inline_view(text_to_cstring(PG_GETARG_TEXT_PP(0)),
									  PG_GETARG_ARRAYTYPE_P(1), PG_GETARG_ARRAYTYPE_P(2));
		state->generation = pln_inline_generation();
	}
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(3), BOOLOID, 1, true, TYPALIGN_CHAR,
					  &results, &nulls, &n);
	PG_RETURN_BOOL(pln_inline_count(state->view, n, results, nulls));
}

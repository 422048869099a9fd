/*
 * api_cast.c
 *	  Functions that source text of the dialect calls: TRY_CAST, to_timestamp.
 *
 * TRY_CAST must not raise on bad text, row by row.  Text that is plainly good or plainly
 * bad is decided by looking at it.  For the rest the type's input function reports
 * softly where the server can (from 16 on); before that it runs in a subtransaction,
 * and only errors that are about the value become null.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "base/errors.h"
#include "compat/pg_compat.h"

PG_FUNCTION_INFO_V1(pipeline_try_cast);
PG_FUNCTION_INFO_V1(pipeline_to_timestamp_text);
PG_FUNCTION_INFO_V1(pipeline_to_timestamp_epoch);

typedef enum TextVerdict
{
	TEXT_GOOD,					/* the input function cannot raise */
	TEXT_BAD,					/* it would raise */
	TEXT_UNKNOWN
} TextVerdict;

/* Kept per call site. */
typedef struct CastState
{
	Oid			type;
	int32		typmod;
	Oid			ioparam;
	FmgrInfo	input;
} CastState;

static bool
is_digits(const char *s, int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		if (s[i] < '0' || s[i] > '9')
			return false;
	}
	return n > 0;
}

static TextVerdict
judge_number(const char *text, int max_digits, bool fraction)
{
	const char *p = text;
	int			whole;
	int			part = 0;

	while (isspace((unsigned char) *p))
		p++;
	/* Infinity and NaN are left to the input function */
	if (!(*p >= '0' && *p <= '9') && strchr("+-.iInN", *p) == NULL)
		return TEXT_BAD;
	if (*p == '\0')
		return TEXT_BAD;
	if (*p == '-' || *p == '+')
		p++;
	whole = strspn(p, "0123456789");
	p += whole;
	if (fraction && *p == '.')
	{
		part = strspn(p + 1, "0123456789");
		p += part + 1;
	}
	if (*p == '\0' && whole > 0 && whole + part <= max_digits)
		return TEXT_GOOD;
	return TEXT_UNKNOWN;
}

/* yyyy-mm-dd with a day that every month has */
static TextVerdict
judge_date(const char *text)
{
	int			month;
	int			day;

	if (strlen(text) != 10 || !is_digits(text, 4) || text[4] != '-' ||
		!is_digits(text + 5, 2) || text[7] != '-' || !is_digits(text + 8, 2))
		return TEXT_UNKNOWN;
	month = atoi(text + 5);
	day = atoi(text + 8);
	if (strncmp(text, "0000", 4) != 0 && month >= 1 && month <= 12 && day >= 1 && day <= 28)
		return TEXT_GOOD;
	return TEXT_UNKNOWN;
}

static TextVerdict
judge_text(const CastState *state, const char *text)
{
	switch (state->type)
	{
		case INT2OID:
			return judge_number(text, 4, false);
		case INT4OID:
			return judge_number(text, 9, false);
		case INT8OID:
			return judge_number(text, 18, false);
		case FLOAT8OID:
			return judge_number(text, 300, true);
		case NUMERICOID:
			return judge_number(text, state->typmod < 0 ? 1000 : 0, true);
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return judge_date(text);
		case TEXTOID:
			return TEXT_GOOD;
		default:
			return TEXT_UNKNOWN;
	}
}

#ifdef PLN_HAVE_SOFT_INPUT
static bool
try_input(CastState *state, char *text, Datum *result)
{
	ErrorSaveContext escontext = {T_ErrorSaveContext};

	return InputFunctionCallSafe(&state->input, text, state->ioparam, state->typmod,
								 (Node *) &escontext, result);
}
#else
/* Is the error about the value, and not about the session or the server? */
static bool
is_value_error(int sqlstate)
{
	int			category = ERRCODE_TO_CATEGORY(sqlstate);

	return category == ERRCODE_DATA_EXCEPTION ||
		category == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION ||
		category == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION;
}

static bool
try_input(CastState *state, char *text, Datum *result)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool good = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		*result = InputFunctionCall(&state->input, text, state->ioparam, state->typmod);
		ReleaseCurrentSubTransaction();
		good = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (!is_value_error(error->sqlerrcode))
			ReThrowError(error);
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return good;
}
#endif

/* The type of the second argument, with the length that NULL::numeric(10,2) carries. */
static CastState *
cast_state(FmgrInfo *flinfo)
{
	CastState  *state = flinfo->fn_extra;
	Oid			input;

	if (state != NULL)
		return state;
	state = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(CastState));
	state->type = get_fn_expr_argtype(flinfo, 1);
	state->typmod = -1;
	if (!OidIsValid(state->type))
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("could not determine the type of TRY_CAST")));
	if (flinfo->fn_expr != NULL && IsA(flinfo->fn_expr, FuncExpr) &&
		list_length(((FuncExpr *) flinfo->fn_expr)->args) == 2)
		state->typmod = exprTypmod(lsecond(((FuncExpr *) flinfo->fn_expr)->args));
	getTypeInputInfo(state->type, &input, &state->ioparam);
	fmgr_info_cxt(input, &state->input, flinfo->fn_mcxt);
	flinfo->fn_extra = state;
	return state;
}

/* pipeline.try_cast(value text, NULL::type): null for null and for what is no such value */
Datum
pipeline_try_cast(PG_FUNCTION_ARGS)
{
	CastState  *state = cast_state(fcinfo->flinfo);
	char	   *input;
	Datum		result;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	input = text_to_cstring(PG_GETARG_TEXT_PP(0));
	switch (judge_text(state, input))
	{
		case TEXT_GOOD:
			PG_RETURN_DATUM(InputFunctionCall(&state->input, input, state->ioparam,
											  state->typmod));
		case TEXT_BAD:
			PG_RETURN_NULL();
		case TEXT_UNKNOWN:
			break;
	}
	if (!try_input(state, input, &result))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(result);
}

/* pipeline.to_timestamp(text): ISO and what the session's DateStyle takes */
Datum
pipeline_to_timestamp_text(PG_FUNCTION_ARGS)
{
	char	   *input = text_to_cstring(PG_GETARG_TEXT_PP(0));

	PG_RETURN_DATUM(DirectFunctionCall3(timestamptz_in, CStringGetDatum(input),
										ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
}

/* pipeline.to_timestamp(double precision): seconds since 1970 */
Datum
pipeline_to_timestamp_epoch(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(DirectFunctionCall1(float8_timestamptz, PG_GETARG_DATUM(0)));
}

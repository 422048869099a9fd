/*
 * api_cast.c
 *	  pipeline.try_cast(): TRY_CAST of the dialect.
 *
 * The usual types are read without an error being raised; for the others the type's input
 * function runs in a subtransaction, and only errors of class 22 (data exception) and those of a
 * domain's constraints mean NULL.
 * One polymorphic function, not one for each type: those would be chosen for domains over
 * their type, too, and pass by the domain's checks.
 *
 * A value that is no text goes by the text that a cast to text gives, and a number that
 * becomes an integer loses its fraction first, as in Spark; a cast of PostgreSQL rounds.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

#include "base/errors.h"
#include "compat/soft_input.h"
#include "update/attempt.h"

PG_FUNCTION_INFO_V1(pipeline_try_cast);

/* Found once per call site. */
typedef struct CastTarget
{
	Oid			type;
	int32		typmod;
	Oid			ioparam;
	FmgrInfo	input;

	/* the value to be cast */
	Oid			source;
	bool		source_is_text;
	bool		truncate;		/* a number with a fraction to an integer type */
	bool		to_text_is_cast;	/* to_text is a cast to text, else an output function */
	FmgrInfo	to_text;
} CastTarget;

typedef struct CastStep
{
	CastTarget *target;
	char	   *text;
	Datum		result;
} CastStep;

/* NULL::numeric(10,2) as second argument carries the typmod. */
static int32
argument_typmod(FmgrInfo *flinfo)
{
	List	   *args = NIL;

	if (flinfo->fn_expr != NULL && IsA(flinfo->fn_expr, FuncExpr))
		args = ((FuncExpr *) flinfo->fn_expr)->args;
	return list_length(args) == 2 ? exprTypmod(lsecond(args)) : -1;
}

static bool
is_integer(Oid type)
{
	type = getBaseType(type);
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* How the value to be cast becomes text. */
static void
find_source(CastTarget *target, FmgrInfo *flinfo)
{
	Oid			type = get_fn_expr_argtype(flinfo, 0);
	Oid			function;
	bool		varlena;

	target->source = OidIsValid(type) ? getBaseType(type) : TEXTOID;
	target->source_is_text = target->source == TEXTOID || target->source == VARCHAROID;
	if (target->source_is_text)
		return;
	target->truncate = is_integer(target->type) &&
		(target->source == NUMERICOID || target->source == FLOAT8OID ||
		 target->source == FLOAT4OID);
	target->to_text_is_cast = find_coercion_pathway(TEXTOID, target->source, COERCION_EXPLICIT,
													&function) == COERCION_PATH_FUNC;
	if (!target->to_text_is_cast)
		getTypeOutputInfo(target->source, &function, &varlena);
	fmgr_info_cxt(function, &target->to_text, flinfo->fn_mcxt);
}

static CastTarget *
find_target(FmgrInfo *flinfo)
{
	CastTarget *target = flinfo->fn_extra;
	Oid			input;

	if (target != NULL)
		return target;
	target = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(CastTarget));
	target->type = get_fn_expr_argtype(flinfo, 1);
	target->typmod = argument_typmod(flinfo);
	if (!OidIsValid(target->type))
		target->type = get_func_rettype(flinfo->fn_oid);
	if (get_typtype(target->type) == TYPTYPE_PSEUDO)
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the type to cast to"),
				 errhint("pipeline.try_cast(value, NULL::integer)")));
	getTypeInputInfo(target->type, &input, &target->ioparam);
	fmgr_info_cxt(input, &target->input, flinfo->fn_mcxt);
	find_source(target, flinfo);
	flinfo->fn_extra = target;
	return target;
}

/* Without the fraction; what is no finite number stays, and is no integer. */
static Datum
truncate_number(CastTarget *target, Datum value)
{
	switch (target->source)
	{
		case FLOAT8OID:
			value = DirectFunctionCall1(float8_numeric, value);
			break;
		case FLOAT4OID:
			value = DirectFunctionCall1(float8_numeric, DirectFunctionCall1(ftod, value));
			break;
		default:
			break;
	}
	return DirectFunctionCall2(numeric_trunc, value, Int32GetDatum(0));
}

/* The value's text. */
static char *
value_text(CastTarget *target, Datum value)
{
	if (target->source_is_text)
		return text_to_cstring(DatumGetTextPP(value));
	if (target->truncate)
		return DatumGetCString(DirectFunctionCall1(numeric_out, truncate_number(target, value)));
	if (target->to_text_is_cast)
		return TextDatumGetCString(FunctionCall1(&target->to_text, value));
	return OutputFunctionCall(&target->to_text, value);
}

static void
input_step(void *arg)
{
	CastStep   *step = arg;

	step->result = InputFunctionCall(&step->target->input, step->text, step->target->ioparam,
									 step->target->typmod);
}

Datum
pipeline_try_cast(PG_FUNCTION_ARGS)
{
	CastStep	step;
	ErrorData  *error;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	step.target = find_target(fcinfo->flinfo);
	step.text = value_text(step.target, PG_GETARG_DATUM(0));
	switch (pln_soft_input(step.target->type, step.target->typmod, step.text, &step.result))
	{
		case PLN_SOFT_OK:
			PG_RETURN_DATUM(step.result);
		case PLN_SOFT_BAD:
			PG_RETURN_NULL();
		case PLN_SOFT_UNKNOWN:
			break;
	}
	error = pln_attempt(input_step, &step, CurrentMemoryContext);
	if (error == NULL)
		PG_RETURN_DATUM(step.result);
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION &&
		error->sqlerrcode != ERRCODE_CHECK_VIOLATION &&
		error->sqlerrcode != ERRCODE_NOT_NULL_VIOLATION)
		ReThrowError(error);
	FreeErrorData(error);
	PG_RETURN_NULL();
}

/*
 * api_cast.c
 *	  pipeline.try_cast(): TRY_CAST of the dialect.
 *
 * The usual types are read without an error being raised; for the others the type's input
 * function runs in a subtransaction, and only errors of class 22 (data exception) and those of a
 * domain's constraints mean NULL.
 * One polymorphic function, not one for each type: those would be chosen for domains over
 * their type, too, and pass by the domain's checks.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

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
	flinfo->fn_extra = target;
	return target;
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
	step.text = text_to_cstring(PG_GETARG_TEXT_PP(0));
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

/*
 * language.c
 *	  LANGUAGE pipeline: DO, CALL and the check at CREATE PROCEDURE.
 *
 * DO runs its statements now, in order, in one transaction (interface §3.6).  CALL runs one
 * update of the pipeline that the procedure's body declares.  In a non-atomic context a
 * failure is recorded after the rollback and committed before the error goes on
 * (correctness B10).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "commands/proclang.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "base/errors.h"
#include "base/guc.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "catalog/event_log.h"
#include "door/door.h"
#include "update/attempt.h"
#include "update/update.h"

PG_FUNCTION_INFO_V1(pipeline_call_handler);
PG_FUNCTION_INFO_V1(pipeline_inline_handler);
PG_FUNCTION_INFO_V1(pipeline_validator);

/* ---- procedures ---- */

static void
load_arguments(HeapTuple tuple, PlnProcedure *procedure)
{
	Oid		   *types;
	char	  **names;
	char	   *modes;
	int			n = get_func_arg_info(tuple, &types, &names, &modes);
	int			i;

	procedure->nargs = n;
	procedure->arg_names = names;
	procedure->arg_types = types;
	for (i = 0; i < n; i++)
	{
		if (names == NULL || names[i][0] == '\0')
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
					 errmsg("parameter %d of the pipeline has no name", i + 1),
					 errhint("The body refers to parameters by name: ${name}.")));
		if (modes != NULL && modes[i] != PROARGMODE_IN)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
					 errmsg("parameter \"%s\" of the pipeline must be IN", names[i])));
		if (get_typtype(types[i]) == TYPTYPE_PSEUDO)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
					 errmsg("parameter \"%s\" of the pipeline must have a definite type",
					 		names[i])));
	}
}

PlnProcedure *
pln_procedure_load(Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	PlnProcedure *procedure = palloc0(sizeof(PlnProcedure));
	Form_pg_proc form;
	Datum		source;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", oid);
	form = (Form_pg_proc) GETSTRUCT(tuple);
	procedure->oid = oid;
	procedure->schema_name = get_namespace_name(form->pronamespace);
	procedure->name = pstrdup(NameStr(form->proname));
	procedure->owner = form->proowner;
	procedure->is_procedure = form->prokind == PROKIND_PROCEDURE;
	procedure->security_definer = form->prosecdef;
	procedure->has_variadic = OidIsValid(form->provariadic);
	source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	procedure->source = TextDatumGetCString(source);
	(void) SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proconfig, &isnull);
	procedure->has_settings = !isnull;
	(void) SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proacl, &isnull);
	procedure->has_acl = !isnull;
	load_arguments(tuple, procedure);
	ReleaseSysCache(tuple);
	return procedure;
}

/*
 * The values of DEFAULT expressions, evaluated as the owner; NULL where there is none.
 */
char **
pln_procedure_defaults(PlnProcedure *procedure)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(procedure->oid));
	char	  **values = palloc0(sizeof(char *) * Max(procedure->nargs, 1));
	bool		isnull;
	Datum		datum = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargdefaults, &isnull);
	PlnSecContext sec;

	pln_enter_owner(&sec, procedure->owner, NIL);
	if (!isnull)
	{
		List	   *defaults = castNode(List, stringToNode(TextDatumGetCString(datum)));
		int			first = procedure->nargs - list_length(defaults);
		EState	   *estate = CreateExecutorState();
		ExprContext *econtext = CreateExprContext(estate);
		ListCell   *lc;

		foreach(lc, defaults)
		{
			ExprState  *state = ExecPrepareExpr(lfirst(lc), estate);
			Datum		value = ExecEvalExprSwitchContext(state, econtext, &isnull);
			int			at = first + foreach_current_index(lc);
			Oid			output;
			bool		varlena;

			getTypeOutputInfo(procedure->arg_types[at], &output, &varlena);
			if (!isnull)
				values[at] = OidOutputFunctionCall(output, value);
		}
		/* the values were made by output functions in our context */
		FreeExecutorState(estate);
	}
	pln_leave(&sec);
	ReleaseSysCache(tuple);
	return values;
}

/* ---- CALL ---- */

Datum
pipeline_call_handler(PG_FUNCTION_ARGS)
{
	PlnProcedure *procedure;
	PlnRequest	request;
	bool		nonatomic = fcinfo->context != NULL && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic;
	char	  **values;
	int			i;

	if (CALLED_AS_TRIGGER(fcinfo) || CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a pipeline cannot be a trigger")));
	if (nonatomic)
		pln_spi_begin_nonatomic();
	procedure = pln_procedure_load(fcinfo->flinfo->fn_oid);
	values = palloc0(sizeof(char *) * Max(procedure->nargs, 1));
	for (i = 0; i < procedure->nargs; i++)
	{
		Oid			output;
		bool		varlena;

		getTypeOutputInfo(procedure->arg_types[i], &output, &varlena);
		if (!fcinfo->args[i].isnull)
			values[i] = OidOutputFunctionCall(output, fcinfo->args[i].value);
	}
	memset(&request, 0, sizeof(request));
	pln_request_for_procedure(&request, procedure, values);
	request.nonatomic = nonatomic;
	pln_door_update(&request, nonatomic);
	if (nonatomic)
		pln_spi_end_nonatomic();
	PG_RETURN_VOID();
}

/* ---- DO ---- */

typedef struct InlineContext
{
	const char *source;
	bool		nonatomic;
} InlineContext;

static void
inline_step(void *arg)
{
	InlineContext *inl = arg;
	PlnScript  *script = pln_parse_script(inl->source, NULL, 0);
	ListCell   *lc;

	foreach(lc, script->stmts)
	{
		CHECK_FOR_INTERRUPTS();
		pln_door_statement(script, lfirst(lc));
		CommandCounterIncrement();
	}
}

Datum
pipeline_inline_handler(PG_FUNCTION_ARGS)
{
	InlineCodeBlock *block = (InlineCodeBlock *) PG_GETARG_POINTER(0);
	InlineContext inl;

	inl.source = block->source_text;
	inl.nonatomic = !block->atomic;
	if (inl.nonatomic)
		pln_spi_begin_nonatomic();
	pln_door_guard(inline_step, &inl, inl.nonatomic);
	if (inl.nonatomic)
		pln_spi_end_nonatomic();
	PG_RETURN_VOID();
}

/* ---- CREATE PROCEDURE ---- */

static void
check_procedure(PlnProcedure *procedure)
{
	if (!procedure->is_procedure)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("a pipeline must be a procedure"),
				 errhint("CREATE PROCEDURE %s() LANGUAGE pipeline AS ...",
						 pln_quote_qualified(procedure->schema_name, procedure->name))));
	if (procedure->has_settings || procedure->security_definer)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("a pipeline has neither SET clauses nor SECURITY DEFINER"),
				 errdetail("They would make CALL atomic. A pipeline runs as its owner anyway."),
				 errhint("Set parameters before CREATE PROCEDURE: those that change results are "
						 "kept with the pipeline.")));
	if (procedure->has_variadic)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("a pipeline has no VARIADIC parameter")));
}

static void
check_overload(PlnProcedure *procedure)
{
	FuncCandidateList candidates =
		FuncnameGetCandidates(list_make2(makeString(procedure->schema_name),
										 makeString(procedure->name)),
							  -1, NIL, false, false, false, true);

	for (; candidates != NULL; candidates = candidates->next)
	{
		if (candidates->oid != procedure->oid)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_FUNCTION),
					 errmsg("pipeline \"%s\" exists with other parameters",
							pln_quote_qualified(procedure->schema_name, procedure->name)),
					 errhint("A pipeline has one signature: DROP PROCEDURE %s first.",
							 pln_quote_qualified(procedure->schema_name, procedure->name))));
	}
}

/* EXECUTE is not for everybody: the run acts with the owner's rights (interface §3.2). */
static void
revoke_public(PlnProcedure *procedure)
{
	(void) pln_spi_user(psprintf("REVOKE EXECUTE ON PROCEDURE %s FROM PUBLIC",
								 pln_quote_qualified(procedure->schema_name, procedure->name)));
}

static bool
needs_arguments(PlnProcedure *procedure)
{
	char	  **defaults = pln_procedure_defaults(procedure);
	int			i;

	for (i = 0; i < procedure->nargs; i++)
	{
		if (defaults[i] == NULL)
			return true;
	}
	return false;
}

static void
say_created(PlnProcedure *procedure, int ndatasets, bool replaced, List *plan)
{
	ListCell   *lc;
	char	   *name = pln_quote_qualified(procedure->schema_name, procedure->name);

	if (pln_guc_messages == PLN_MESSAGES_QUIET)
		return;
	if (!replaced)
		ereport(NOTICE,
				(errmsg("pipeline \"%s\": %d %s, not run yet; start it with  CALL %s(%s);", name,
						ndatasets, ndatasets == 1 ? "dataset" : "datasets", name,
						needs_arguments(procedure) ? "..." : "")));
	else
	{
		foreach(lc, plan)
		{
			PlnPlanItem *item = lfirst(lc);

			ereport(NOTICE,
					(errmsg("%s: %s; %s", item->dataset, item->change, item->effect)));
		}
	}
}

Datum
pipeline_validator(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	PlnProcedure *procedure;
	PlnPipeline *existing;
	PlnRequest	request;
	PlnOrigin	origin;
	List	   *plan;

	if (!CheckFunctionValidatorAccess(fcinfo->flinfo->fn_oid, oid))
		PG_RETURN_VOID();
	procedure = pln_procedure_load(oid);
	check_procedure(procedure);
	/* a restore creates procedures before their tables: nothing is looked up (B12) */
	if (!check_function_bodies)
		PG_RETURN_VOID();
	check_overload(procedure);
	existing = pln_pipeline_find(procedure->schema_name, procedure->name);
	memset(&request, 0, sizeof(request));
	pln_request_for_procedure(&request, procedure, pln_procedure_defaults(procedure));
	/* a definition is made in the session that types it: its settings count from now on */
	request.pipeline->settings = pln_pin_settings(procedure->schema_name);
	plan = pln_update_check(&request, true, false);
	if (!procedure->has_acl && (existing == NULL || existing->dropped))
		revoke_public(procedure);
	pln_pipeline_save(request.pipeline);
	memset(&origin, 0, sizeof(origin));
	origin.pipeline = request.pipeline;
	pln_event_user_action(&origin, existing != NULL && !existing->dropped ? "EDIT" : "CREATE");
	say_created(procedure, request.ndatasets, existing != NULL && !existing->dropped, plan);
	PG_RETURN_VOID();
}

/*
 * api_update.c
 *	  pipeline.run_update, pipeline.refresh, pipeline.plan.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/uuid.h"

#include "base/errors.h"
#include "base/guc.h"
#include "base/spi.h"
#include "door/door.h"

PG_FUNCTION_INFO_V1(pipeline_run_update);
PG_FUNCTION_INFO_V1(pipeline_refresh);
PG_FUNCTION_INFO_V1(pipeline_plan);

static bool
is_nonatomic(FunctionCallInfo fcinfo)
{
	return fcinfo->context != NULL && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic;
}

static void
require(FunctionCallInfo fcinfo, int arg, const char *name)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("argument \"%s\" must not be null", name)));
}

static bool
flag(FunctionCallInfo fcinfo, int arg)
{
	return !PG_ARGISNULL(arg) && PG_GETARG_BOOL(arg);
}

static List *
text_list(FunctionCallInfo fcinfo, int arg)
{
	List	   *list = NIL;
	Datum	   *values;
	bool	   *nulls;
	int			n;
	int			i;

	if (PG_ARGISNULL(arg))
		return NIL;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(arg), TEXTOID, -1, false, TYPALIGN_INT,
					  &values, &nulls, &n);
	for (i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(PLN_ERR_NULL_ARGUMENT),
					 errmsg("datasets must not hold nulls")));
		list = lappend(list, TextDatumGetCString(values[i]));
	}
	return list;
}

static Datum
update_result(const char *update_id, const char *state)
{
	TupleDesc	desc = CreateTemplateTupleDesc(2);
	Datum		values[2] = {0, 0};
	bool		nulls[2] = {true, true};

	TupleDescInitEntry(desc, 1, "update_id", UUIDOID, -1, 0);
	TupleDescInitEntry(desc, 2, "state", TEXTOID, -1, 0);
	desc = BlessTupleDesc(desc);
	if (update_id != NULL)
	{
		values[0] = DirectFunctionCall1(uuid_in, CStringGetDatum(update_id));
		nulls[0] = false;
	}
	if (state != NULL)
	{
		values[1] = CStringGetTextDatum(state);
		nulls[1] = false;
	}
	return HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
}

static void
say_plan(List *plan)
{
	ListCell   *lc;

	if (pln_guc_messages == PLN_MESSAGES_QUIET)
		return;
	foreach(lc, plan)
	{
		PlnPlanItem *item = lfirst(lc);

		ereport(NOTICE, (errmsg("%s: %s; %s", item->dataset, item->change, item->effect)));
	}
	if (plan == NIL)
		ereport(NOTICE, (errmsg("no change")));
}

/*
 * pipeline.run_update(pipeline text, datasets text[], full_refresh bool, parameters jsonb,
 *	 failed_only bool, validate_only bool, atomic bool, cascade bool, allow_loss bool,
 *	 INOUT update_id uuid, INOUT state text)
 *
 * Raises 42704 for unknown names, 42501, 55006 when busy, and what the first failed flow raised.
 */
Datum
pipeline_run_update(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	PlnRequest	request;
	bool		nonatomic = is_nonatomic(fcinfo);
	char	   *update_id = NULL;
	char	   *state = NULL;

	require(fcinfo, 0, "pipeline");
	if (nonatomic)
		pln_spi_begin_nonatomic();
	memset(&request, 0, sizeof(request));
	pln_request_by_name(&request, TextDatumGetCString(PG_GETARG_DATUM(0)),
						PG_ARGISNULL(3) ? "{}" :
						DatumGetCString(DirectFunctionCall1(jsonb_out, PG_GETARG_DATUM(3))));
	request.datasets = text_list(fcinfo, 1);
	request.full_refresh = flag(fcinfo, 2);
	request.failed_only = flag(fcinfo, 4);
	request.validate_only = flag(fcinfo, 5);
	request.cascade = flag(fcinfo, 7);
	request.allow_loss = flag(fcinfo, 8);
	request.nonatomic = nonatomic && !flag(fcinfo, 6);
	if (request.full_refresh && !has_privs_of_role(GetUserId(), request.owner))
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_ALLOWED),
				 errmsg("only the owner of pipeline %s may refresh it fully",
						pln_pipeline_display_name(request.pipeline))));
	if (request.validate_only)
	{
		say_plan(pln_update_check(&request, false, true));
		request.state = "COMPLETED";
	}
	else
		pln_door_update(&request, nonatomic);
	if (request.update_id != NULL)
		update_id = MemoryContextStrdup(caller, request.update_id);
	if (request.state != NULL)
		state = MemoryContextStrdup(caller, request.state);
	if (nonatomic)
		pln_spi_end_nonatomic();
	PG_RETURN_DATUM(update_result(update_id, state));
}

/* pipeline.refresh(dataset regclass, full_refresh bool) */
Datum
pipeline_refresh(PG_FUNCTION_ARGS)
{
	PlnRequest	request;
	bool		nonatomic = is_nonatomic(fcinfo);

	require(fcinfo, 0, "dataset");
	if (nonatomic)
		pln_spi_begin_nonatomic();
	memset(&request, 0, sizeof(request));
	pln_request_for_dataset(&request, PG_GETARG_OID(0));
	request.full_refresh = flag(fcinfo, 1);
	/* one dataset, one transaction; guarded, so that its failure is in the log */
	pln_door_update(&request, nonatomic);
	if (nonatomic)
		pln_spi_end_nonatomic();
	PG_RETURN_VOID();
}

/* pipeline.plan(pipeline text) -> (dataset, change, effect) */
Datum
pipeline_plan(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PlnRequest	request;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	memset(&request, 0, sizeof(request));
	pln_request_by_name(&request, TextDatumGetCString(PG_GETARG_DATUM(0)), "{}");
	foreach(lc, pln_update_check(&request, false, true))
	{
		PlnPlanItem *item = lfirst(lc);
		Datum		values[3];
		bool		nulls[3] = {false, false, false};

		values[0] = CStringGetTextDatum(item->dataset);
		values[1] = CStringGetTextDatum(item->change);
		values[2] = CStringGetTextDatum(item->effect);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

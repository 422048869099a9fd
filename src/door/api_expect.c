/*
 * api_expect.c
 *	  Expectations by function: expect..., expect_all..., drop_expectation,
 *	  try_expectation, replay_quarantine (interface §1).
 *
 * Rules added here are additive and survive a redefinition (interface §3.16).
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/lock.h"
#include "base/secctx.h"
#include "catalog/event_log.h"
#include "door/door.h"
#include "expect/expect.h"
#include "expect/quarantine.h"
#include "flow/execute.h"
#include "flow/flow.h"

PG_FUNCTION_INFO_V1(pipeline_expect);
PG_FUNCTION_INFO_V1(pipeline_expect_or_drop);
PG_FUNCTION_INFO_V1(pipeline_expect_or_fail);
PG_FUNCTION_INFO_V1(pipeline_expect_all);
PG_FUNCTION_INFO_V1(pipeline_expect_all_or_drop);
PG_FUNCTION_INFO_V1(pipeline_expect_all_or_fail);
PG_FUNCTION_INFO_V1(pipeline_drop_expectation);
PG_FUNCTION_INFO_V1(pipeline_try_expectation);
PG_FUNCTION_INFO_V1(pipeline_replay_quarantine);

#define FUNCTION_ORIGIN "function"

static char *
required_text(FunctionCallInfo fcinfo, int arg, const char *name)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("argument \"%s\" must not be null", name)));
	return TextDatumGetCString(PG_GETARG_DATUM(arg));
}

/* The dataset, for its owner only. */
static PlnDataset *
owned_dataset(FunctionCallInfo fcinfo, int arg)
{
	PlnDataset *dataset;
	Oid			relid;

	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("argument \"dataset\" must not be null")));
	relid = PG_GETARG_OID(arg);
	dataset = pln_dataset_by_relid(relid);
	if (dataset == NULL ||
		(dataset->kind != PLN_STREAMING_TABLE && dataset->kind != PLN_MATERIALIZED_VIEW))
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("%s is not a streaming table or materialized view of a pipeline",
						pln_relation_name(relid)),
				 errhint("SELECT dataset FROM pipeline.datasets;")));
	if (!pg_class_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER,
					   dataset->kind == PLN_MATERIALIZED_VIEW ? OBJECT_MATVIEW : OBJECT_TABLE,
					   get_rel_name(relid));
	return dataset;
}

static List *
function_rows(int64 dataset_id)
{
	List	   *rows = NIL;
	ListCell   *lc;

	foreach(lc, pln_expectations_of_dataset(dataset_id))
	{
		PlnExpectationRow *row = lfirst(lc);

		if (strcmp(row->origin, FUNCTION_ORIGIN) == 0)
			rows = lappend(rows, row);
	}
	return rows;
}

static void
check_condition(PlnDataset *dataset, const char *name, const char *condition)
{
	PlnPipeline *pipeline = pln_pipeline_get(dataset->pipeline_id);
	PlnSql	   *sql = pln_sql_make(condition);
	Relation	rel = table_open(dataset->relid, AccessShareLock);
	PlnSecContext sec;
	PlnErrorScope scope;

	pln_enter_settings(&sec, pipeline->settings);
	pln_error_scope_begin(&scope, sql->script, sql);
	(void) pln_expect_analyze(name, sql, RelationGetDescr(rel));
	pln_error_scope_end(&scope);
	pln_leave(&sec);
	table_close(rel, NoLock);
}

/* Add or replace rules of ours on the dataset. */
static void
add_rules(PlnDataset *dataset, List *names, List *conditions, PlnAction action)
{
	List	   *rows = function_rows(dataset->id);
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, names, lc2, conditions)
	{
		PlnExpectationRow *row = palloc0(sizeof(PlnExpectationRow));
		ListCell   *old;

		if (((char *) lfirst(lc))[0] == '\0')
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("an expectation needs a name")));
		check_condition(dataset, lfirst(lc), lfirst(lc2));
		foreach(old, rows)
		{
			if (strcmp(((PlnExpectationRow *) lfirst(old))->name, lfirst(lc)) == 0)
				rows = foreach_delete_current(rows, old);
		}
		row->dataset_id = dataset->id;
		row->name = lfirst(lc);
		row->condition = lfirst(lc2);
		row->action = action;
		row->origin = FUNCTION_ORIGIN;
		rows = lappend(rows, row);
	}
	pln_expectations_replace(dataset->id, FUNCTION_ORIGIN, rows);
	if (action == PLN_ACTION_QUARANTINE && !OidIsValid(dataset->quarantine))
	{
		Relation	rel = table_open(dataset->relid, AccessShareLock);

		dataset->quarantine = pln_quarantine_ensure(rel, InvalidOid);
		table_close(rel, NoLock);
		pln_dataset_save(dataset);
	}
}

static void
add_one(FunctionCallInfo fcinfo, PlnAction action)
{
	PlnDataset *dataset = owned_dataset(fcinfo, 0);
	char	   *name = required_text(fcinfo, 1, "name");
	char	   *condition = required_text(fcinfo, 2, "condition");

	add_rules(dataset, list_make1(name), list_make1(condition), action);
}

Datum
pipeline_expect(PG_FUNCTION_ARGS)
{
	char	   *word = required_text(fcinfo, 3, "on_violation");
	PlnAction	action;

	if (!pln_action_from_name(word, &action))
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("unknown action \"%s\"", word),
				 errhint("on_violation is warn, drop, quarantine or fail.")));
	add_one(fcinfo, action);
	PG_RETURN_VOID();
}

Datum
pipeline_expect_or_drop(PG_FUNCTION_ARGS)
{
	add_one(fcinfo, PLN_ACTION_DROP);
	PG_RETURN_VOID();
}

Datum
pipeline_expect_or_fail(PG_FUNCTION_ARGS)
{
	add_one(fcinfo, PLN_ACTION_FAIL);
	PG_RETURN_VOID();
}

static void
add_all(FunctionCallInfo fcinfo, PlnAction action)
{
	PlnDataset *dataset = owned_dataset(fcinfo, 0);
	List	   *names = NIL;
	List	   *conditions = NIL;
	JsonbIterator *it;
	JsonbValue	value;
	JsonbIteratorToken token;
	int			depth = 0;

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("argument \"rules\" must not be null")));
	it = JsonbIteratorInit(&PG_GETARG_JSONB_P(1)->root);
	while ((token = JsonbIteratorNext(&it, &value, false)) != WJB_DONE)
	{
		depth += token == WJB_BEGIN_OBJECT ? 1 : token == WJB_END_OBJECT ? -1 : 0;
		if (token == WJB_BEGIN_ARRAY || depth > 1 ||
			(token == WJB_VALUE && value.type != jbvString))
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("rules must be a JSON object of name and condition"),
					 errhint("'{\"valid_id\": \"id IS NOT NULL\"}'")));
		if (token == WJB_KEY)
			names = lappend(names, pnstrdup(value.val.string.val, value.val.string.len));
		else if (token == WJB_VALUE)
			conditions = lappend(conditions, pnstrdup(value.val.string.val,
													  value.val.string.len));
	}
	add_rules(dataset, names, conditions, action);
}

Datum
pipeline_expect_all(PG_FUNCTION_ARGS)
{
	add_all(fcinfo, PLN_ACTION_WARN);
	PG_RETURN_VOID();
}

Datum
pipeline_expect_all_or_drop(PG_FUNCTION_ARGS)
{
	add_all(fcinfo, PLN_ACTION_DROP);
	PG_RETURN_VOID();
}

Datum
pipeline_expect_all_or_fail(PG_FUNCTION_ARGS)
{
	add_all(fcinfo, PLN_ACTION_FAIL);
	PG_RETURN_VOID();
}

Datum
pipeline_drop_expectation(PG_FUNCTION_ARGS)
{
	PlnDataset *dataset = owned_dataset(fcinfo, 0);
	char	   *name = required_text(fcinfo, 1, "name");
	ListCell   *lc;

	foreach(lc, pln_expectations_of_dataset(dataset->id))
	{
		PlnExpectationRow *row = lfirst(lc);

		if (strcmp(row->name, name) == 0 && strcmp(row->origin, "source") == 0)
			ereport(ERROR,
					(errcode(PLN_ERR_STATE),
					 errmsg("expectation \"%s\" of \"%s\" belongs to its definition", name,
							pln_dataset_display_name(dataset)),
					 errhint("Remove it there, with CREATE OR REFRESH or CREATE OR REPLACE "
							 "PROCEDURE.")));
	}
	if (!pln_expectation_drop(dataset->id, name))
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("dataset \"%s\" has no expectation \"%s\"",
						pln_dataset_display_name(dataset), name)));
	PG_RETURN_VOID();
}

/* ---- trying a condition ---- */

static Datum
pair_result(FunctionCallInfo fcinfo, int64 a, int64 b, char *json)
{
	TupleDesc	desc;
	Datum		values[3];
	bool		nulls[3] = {false, false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum(a);
	values[1] = Int64GetDatum(b);
	if (desc->natts == 3)
	{
		nulls[2] = json == NULL;
		values[2] = json ? DirectFunctionCall1(jsonb_in, CStringGetDatum(json)) : (Datum) 0;
	}
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

/*
 * pipeline.try_expectation(dataset, condition) -> (passed, failed, sample): how many of the
 * rows that are there now pass; sample holds up to ten that fail.  For who may read the dataset.
 */
Datum
pipeline_try_expectation(PG_FUNCTION_ARGS)
{
	Oid			relid;
	char	   *condition = required_text(fcinfo, 1, "condition");
	PlnExpectationRow row;
	PlnExpectSet *set;
	EState	   *estate;
	Relation	rel;
	TableScanDesc scan;
	TupleTableSlot *slot;
	PlnQualityCount *count;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("argument \"dataset\" must not be null")));
	relid = PG_GETARG_OID(0);
	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(relid));
	memset(&row, 0, sizeof(row));
	row.name = "condition";
	row.condition = condition;
	row.action = PLN_ACTION_FAIL;
	row.origin = FUNCTION_ORIGIN;
	rel = table_open(relid, AccessShareLock);
	if (!RELKIND_HAS_TABLE_AM(rel->rd_rel->relkind) || rel->rd_rel->relrowsecurity)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("cannot try a condition on %s", pln_relation_name(relid)),
				 errdetail("It is not a plain table or materialized view without row security.")));
	estate = CreateExecutorState();
	set = pln_expect_compile(list_make1(&row), RelationGetDescr(rel), estate);
	slot = table_slot_create(rel, NULL);
	scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		(void) pln_expect_eval(set, slot);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	count = linitial(pln_expect_counts(set));
	table_close(rel, NoLock);
	PG_RETURN_DATUM(pair_result(fcinfo, count->passed, count->failed, pln_expect_samples(set)));
}

/* ---- replay ---- */

Datum
pipeline_replay_quarantine(PG_FUNCTION_ARGS)
{
	PlnDataset *dataset = owned_dataset(fcinfo, 0);
	char	   *condition = required_text(fcinfo, 1, "condition");
	int64		replayed;
	int64		still_failing;

	if (dataset->kind != PLN_STREAMING_TABLE)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("only the rows of a streaming table can be replayed"),
				 errhint("Repair the source and refresh the materialized view.")));
	if (!OidIsValid(dataset->quarantine))
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("dataset \"%s\" has no quarantine table",
				 		pln_dataset_display_name(dataset)),
				 errhint("Declare an expectation with ON VIOLATION QUARANTINE ROW.")));
	pln_flow_replay(dataset, condition, &replayed, &still_failing);
	PG_RETURN_DATUM(pair_result(fcinfo, replayed, still_failing, NULL));
}

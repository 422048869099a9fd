/*
 * test_reader.c
 *	  A reader of sources for tests, as SQL functions.
 *
 * The extension's script does not declare them: a test does, as a superuser, so users never
 * meet them.  The reader keeps its position in pipeline_internal.checkpoints like a flow.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "base/errors.h"
#include "base/spi.h"
#include "source/internal.h"

PG_FUNCTION_INFO_V1(pipeline_test_ensure);
PG_FUNCTION_INFO_V1(pipeline_test_register);
PG_FUNCTION_INFO_V1(pipeline_test_changes);
PG_FUNCTION_INFO_V1(pipeline_test_append);
PG_FUNCTION_INFO_V1(pipeline_test_trim);
PG_FUNCTION_INFO_V1(pipeline_test_forget);

/* test_ensure(source regclass, level int, attnums int[], role name) returns text */
Datum
pipeline_test_ensure(PG_FUNCTION_ARGS)
{
	Bitmapset  *attnums = NULL;
	PlnReason  *reason;
	bool		created;

	if (!PG_ARGISNULL(2))
	{
		Datum	   *values;
		int			n;
		int			i;

		deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), INT4OID, 4, true, TYPALIGN_INT,
						  &values, NULL, &n);
		for (i = 0; i < n; i++)
			attnums = bms_add_member(attnums, DatumGetInt32(values[i]));
	}
	reason = pln_capture_ensure(PG_GETARG_OID(0), PG_GETARG_INT32(1), attnums,
								get_role_oid(NameStr(*PG_GETARG_NAME(3)), false), &created);
	PG_RETURN_TEXT_P(cstring_to_text(reason ? psprintf("%s: %s", reason->code, reason->text) :
									 created ? "created" : "captured"));
}

/* test_register(relation regclass, streaming bool) */
Datum
pipeline_test_register(PG_FUNCTION_ARGS)
{
	pln_source_register_own(PG_GETARG_OID(0), PG_GETARG_BOOL(1));
	PG_RETURN_VOID();
}

/*
 * test_append(relation regclass, first int, last int): rows (n, 'n') into a table (int, text),
 * as our own writer would: past triggers, recorded as an append.
 */
Datum
pipeline_test_append(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	List	   *ranges = NIL;
	int32		last = PG_GETARG_INT32(2);
	int32		n;

	for (n = PG_GETARG_INT32(1); n <= last; n++)
	{
		Datum		values[2];
		bool		nulls[2] = {false, false};
		HeapTuple	tuple;
		BlockNumber block;

		values[0] = Int32GetDatum(n);
		values[1] = CStringGetTextDatum(psprintf("%d", n));
		tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
		simple_heap_insert(rel, tuple);
		block = ItemPointerGetBlockNumber(&tuple->t_self);
		ranges = lappend_int(lappend_int(ranges, (int) block), (int) block);
	}
	table_close(rel, NoLock);
	pln_append_log_record(PG_GETARG_OID(0), GetCurrentTransactionId(),
						  last - PG_GETARG_INT32(1) + 1, ranges);
	PG_RETURN_VOID();
}

Datum
pipeline_test_trim(PG_FUNCTION_ARGS)
{
	pln_source_trim(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}

Datum
pipeline_test_forget(PG_FUNCTION_ARGS)
{
	pln_source_forget(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}

static PlnFrontier *
get_checkpoint(int64 reader, Oid relid)
{
	PlnFrontier *frontier;
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	pln_args_int8(&args, reader);
	pln_args_oid(&args, relid);
	rows = pln_spi_run_args("SELECT incarnation, snap, own_xid, own_seq, fingerprint"
							" FROM pipeline_internal.checkpoints"
							" WHERE flow_id = $1 AND relid = $2 AND ordinal = 0", &args);
	if (rows->n == 0)
		return NULL;
	frontier = palloc0(sizeof(PlnFrontier));
	frontier->incarnation = (int32) pln_row_int8(rows, 0, "incarnation");
	frontier->snapshot = pln_row_text(rows, 0, "snap");
	frontier->own_xid = (uint64) pln_row_int8(rows, 0, "own_xid");
	frontier->own_seq = pln_row_int8(rows, 0, "own_seq");
	frontier->fingerprint = pln_row_text(rows, 0, "fingerprint");
	return frontier;
}

static void
set_checkpoint(int64 reader, Oid relid, const PlnFrontier *frontier)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, reader);
	pln_args_oid(&args, relid);
	pln_args_int4(&args, frontier->incarnation);
	pln_args_text(&args, frontier->snapshot);
	pln_args_xid8(&args, frontier->own_xid);
	pln_args_int8(&args, frontier->own_seq);
	pln_args_text(&args, frontier->fingerprint);
	pln_spi_run_args("INSERT INTO pipeline_internal.checkpoints AS c (flow_id, relid, ordinal,"
					 " incarnation, snap, own_xid, own_seq, fingerprint, evaluated_at)"
					 " VALUES ($1, $2, 0, $3, $4::pg_catalog.pg_snapshot, $5, $6, $7,"
					 " pg_catalog.now()) ON CONFLICT (flow_id, relid, ordinal) DO UPDATE"
					 " SET incarnation = $3, snap = $4::pg_catalog.pg_snapshot, own_xid = $5,"
					 " own_seq = $6, fingerprint = $7", &args);
}

static void
put_text(ReturnSetInfo *rsinfo, const char *text)
{
	Datum		value = CStringGetTextDatum(text);
	bool		isnull = false;

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
}

/* Run the delta query under the active snapshot; rows as (a,b). */
static void
put_rows(ReturnSetInfo *rsinfo, Query *query)
{
	PlannedStmt *plan = pg_plan_query(query, "", CURSOR_OPT_PARALLEL_OK, NULL);
	Tuplestorestate *store = tuplestore_begin_heap(false, false, work_mem);
	DestReceiver *dest = CreateDestReceiver(DestTuplestore);
	TupleTableSlot *slot;
	QueryDesc  *desc;

	SetTuplestoreDestReceiverParams(dest, store, CurrentMemoryContext, false, NULL, NULL);
	desc = CreateQueryDesc(plan, "", GetActiveSnapshot(), InvalidSnapshot, dest, NULL, NULL, 0);
	ExecutorStart(desc, 0);
	ExecutorRun(desc, ForwardScanDirection, 0, true);
	ExecutorFinish(desc);
	slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(desc->tupDesc), &TTSOpsMinimalTuple);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
	while (tuplestore_gettupleslot(store, true, false, slot))
	{
		StringInfoData text;
		int			i;

		initStringInfo(&text);
		slot_getallattrs(slot);
		for (i = 0; i < slot->tts_tupleDescriptor->natts; i++)
		{
			Oid			output;
			bool		varlena;

			appendStringInfoString(&text, i > 0 ? "," : "(");
			if (slot->tts_isnull[i])
				continue;
			getTypeOutputInfo(TupleDescAttr(slot->tts_tupleDescriptor, i)->atttypid,
							  &output, &varlena);
			appendStringInfoString(&text, OidOutputFunctionCall(output, slot->tts_values[i]));
		}
		appendStringInfoChar(&text, ')');
		put_text(rsinfo, text.data);
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(store);
}

static void
put_summary(ReturnSetInfo *rsinfo, const PlnChanges *changes)
{
	static const char *const kinds[] = {"NONE", "APPEND", "GENERAL", "EVERYTHING"};
	ListCell   *lc;

	put_text(rsinfo, psprintf("%s rows=" INT64_FORMAT, kinds[changes->kind], changes->rows));
	foreach(lc, changes->reasons)
	{
		PlnReason  *reason = lfirst(lc);
		char	   *clipped = strstr(reason->text, " in transaction ");

		put_text(rsinfo, psprintf("reason %s: %s", reason->code,
								  clipped ? pnstrdup(reason->text, clipped - reason->text) :
								  reason->text));
	}
	if (changes->offence != NULL)
		put_text(rsinfo, psprintf("offence: %s",
								  pnstrdup(changes->offence, strcspn(changes->offence, " "))));
}

/*
 * test_changes(source regclass, reader bigint, options text) returns setof text
 *
 * options: view, or for streams any of stream, skip, only, latest.  The position moves unless
 * the stream would have failed; a first read or "everything" moves it too.
 */
Datum
pipeline_test_changes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			relid = PG_GETARG_OID(0);
	int64		reader = PG_GETARG_INT64(1);
	char	   *mode = text_to_cstring(PG_GETARG_TEXT_PP(2));
	PlnStreamOptions options;
	PlnChanges *changes;
	PlnFrontier *frontier;
	bool		view = strstr(mode, "view") != NULL;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	options.skip_change_commits = strstr(mode, "skip") != NULL;
	options.only_inserts = strstr(mode, "only") != NULL;
	options.starting_latest = strstr(mode, "latest") != NULL;
	frontier = get_checkpoint(reader, relid);
	LockRelationOid(relid, AccessShareLock);
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	UpdateActiveSnapshotCommandId();
	changes = pln_source_changes(relid, frontier, view ? NULL : &options);
	put_summary(rsinfo, changes);
	if (changes->kind == PLN_CHANGE_APPEND ||
		(changes->kind == PLN_CHANGE_GENERAL && !view && changes->offence == NULL))
		put_rows(rsinfo, pln_source_delta_query(changes));
	if (changes->offence == NULL)
		set_checkpoint(reader, relid, changes->frontier);
	PopActiveSnapshot();
	return (Datum) 0;
}

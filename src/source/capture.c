/*
 * capture.c
 *	  The trigger functions: capture of changes, and the guard of streaming tables.
 *
 * They run in every writer's session, with the writer's rights, and use none: logs and
 * headers are written below the privilege checks, only into relations that our own catalog
 * names for the trigger's table (correctness A9).  No user code runs here except
 * detoasting.  A log that is not as we made it costs the reader its delta ("everything
 * changed"), never the writer his statement (A8).
 *
 * What is known of a table is cached per backend and dropped by relcache invalidation;
 * whoever changes our catalog rows sends one for the table and all that inherit from it.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"
#include "utils/xid8.h"

#include "base/errors.h"
#include "base/guc.h"
#include "base/ident.h"
#include "source/internal.h"

PG_FUNCTION_INFO_V1(pipeline_capture_insert);
PG_FUNCTION_INFO_V1(pipeline_capture_update);
PG_FUNCTION_INFO_V1(pipeline_capture_delete);
PG_FUNCTION_INFO_V1(pipeline_capture_truncate);
PG_FUNCTION_INFO_V1(pipeline_guard_dml);

/* Rows held back before they go to the log together. */
#define MAX_BATCH_ROWS 1000
#define MAX_BATCH_BYTES 65536

/* From this many rows on a statement gets its own buffer ring. */
#define BULK_ROWS 1000

typedef struct CaptureTarget
{
	int64		source_id;
	Oid			relid;			/* of the source: the trigger's table, or an ancestor */
	PlnSourceKind kind;
	PlnCaptureLevel level;
	int32		generation;
	Oid			log;
	int			ncols;
	AttrNumber *attnums;		/* of the trigger's table; NULL: some column is not found */
} CaptureTarget;

/* Last top transaction of this backend that logged inserts: outlives the cached entry. */
typedef struct InsertedSource
{
	int64		source_id;		/* hash key */
	uint64		xid;
} InsertedSource;

typedef struct CaptureEntry
{
	Oid			relid;			/* hash key */
	bool		valid;
	MemoryContext context;
	List	   *targets;		/* of CaptureTarget */
} CaptureEntry;

typedef struct LogWriter
{
	Relation	log;
	CaptureTarget *target;
	int64		seq;
	int16		incarnation;
	FullTransactionId xid;
	CommandId	cid;
	BulkInsertState bistate;
	TupleTableSlot **slots;
	int			nslots;			/* made */
	int			nused;
	Size		bytes;
	BlockNumber first;
	BlockNumber last;
	int64		rows;
} LogWriter;

static HTAB *entries = NULL;
static HTAB *inserted = NULL;

/* ---- cache ---- */

static void
forget_entry(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	CaptureEntry *entry;

	if (OidIsValid(relid))
	{
		entry = hash_search(entries, &relid, HASH_FIND, NULL);
		if (entry != NULL)
			entry->valid = false;
		return;
	}
	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->valid = false;
}

static void
init_entries(void)
{
	HASHCTL		ctl;

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(CaptureEntry);
	ctl.hcxt = TopMemoryContext;
	entries = hash_create("pipeline capture", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.keysize = sizeof(int64);
	ctl.entrysize = sizeof(InsertedSource);
	inserted = hash_create("pipeline inserts", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(forget_entry, (Datum) 0);
}

static AttrNumber *
map_attnums(Oid table, const PlnSource *source, const PlnLog *log)
{
	AttrNumber *attnums = palloc(sizeof(AttrNumber) * Max(log->ncols, 1));
	int			i;

	for (i = 0; i < log->ncols; i++)
	{
		char	   *name;

		attnums[i] = log->attnums[i];
		if (attnums[i] > 0 && table != source->relid)
		{
			/* names from the syscache: a lock on the parent could deadlock with its DDL */
			name = get_attname(source->relid, attnums[i], true);
			attnums[i] = name ? get_attnum(table, name) : InvalidAttrNumber;
		}
		if (attnums[i] <= 0)
			return NULL;
	}
	return attnums;
}

static List *
add_targets(List *targets, Oid table, Oid relid)
{
	PlnSource  *source = pln_source_find(relid);
	ListCell   *lc;

	if (source != NULL && source->active && source->kind != PLN_SOURCE_OWN_MATVIEW &&
		source->level != PLN_CAPTURE_NONE)
	{
		CaptureTarget *target = palloc0(sizeof(CaptureTarget));
		PlnLog	   *log = pln_source_log(source, source->generation);

		target->source_id = source->id;
		target->relid = source->relid;
		target->kind = source->kind;
		target->level = source->level;
		target->generation = source->generation;
		if (log != NULL)
		{
			target->log = log->relid;
			target->ncols = log->ncols;
			target->attnums = map_attnums(table, source, log);
		}
		targets = lappend(targets, target);
	}
	foreach(lc, pln_source_parents(relid))
		targets = add_targets(targets, table, lfirst_oid(lc));
	return targets;
}

/* Valid until the next call for the same table. */
static CaptureEntry *
find_entry(Oid table)
{
	CaptureEntry *entry;
	MemoryContext old;
	volatile bool complete = false;
	bool		found;

	if (entries == NULL)
		init_entries();
	entry = hash_search(entries, &table, HASH_ENTER, &found);
	if (!found)
	{
		entry->valid = false;
		entry->context = NULL;
		entry->targets = NIL;
	}
	if (entry->valid)
		return entry;
	entry->targets = NIL;
	if (entry->context != NULL)
		MemoryContextReset(entry->context);
	else
		entry->context = AllocSetContextCreate(TopMemoryContext, "pipeline capture entry",
											   ALLOCSET_SMALL_SIZES);

	/* Set before reading: an invalidation that arrives meanwhile must not be lost. */
	entry->valid = true;
	old = MemoryContextSwitchTo(entry->context);
	PG_TRY();
	{
		entry->targets = add_targets(NIL, table, table);
		complete = true;
	}
	PG_FINALLY();
	{
		entry->valid = entry->valid && complete;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	return entry;
}

/* ---- writing rows ---- */

static void
flush_rows(LogWriter *w)
{
	int			i;

	if (w->nused == 0)
		return;
	if (w->nused == 1 && w->bistate == NULL)
		table_tuple_insert(w->log, w->slots[0], w->cid, 0, NULL);
	else
		table_multi_insert(w->log, w->slots, w->nused, w->cid, 0, w->bistate);
	for (i = 0; i < w->nused; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&w->slots[i]->tts_tid);

		w->first = Min(w->first, block);
		w->last = w->rows == 0 ? block : Max(w->last, block);
		w->rows++;
		ExecClearTuple(w->slots[i]);
	}
	w->nused = 0;
	w->bytes = 0;
}

static void
add_row(LogWriter *w, TupleTableSlot *row, int16 op, int64 ord)
{
	TupleTableSlot *slot;
	CaptureTarget *target = w->target;
	int			i;

	if (w->nused == w->nslots)
		w->slots[w->nslots++] = table_slot_create(w->log, NULL);
	slot = w->slots[w->nused++];
	ExecClearTuple(slot);
	slot->tts_values[PLN_LOG_XID - 1] = FullTransactionIdGetDatum(w->xid);
	slot->tts_values[PLN_LOG_SEQ - 1] = Int64GetDatum(w->seq);
	slot->tts_values[PLN_LOG_ORD - 1] = Int32GetDatum((int32) ord);
	slot->tts_values[PLN_LOG_OP - 1] = Int16GetDatum(op);
	slot->tts_values[PLN_LOG_INCARNATION - 1] = Int16GetDatum(w->incarnation);
	memset(slot->tts_isnull, 0, sizeof(bool) * PLN_LOG_FIXED);
	slot_getallattrs(row);
	for (i = 0; i < target->ncols; i++)
	{
		AttrNumber	attnum = target->attnums[i];

		slot->tts_values[PLN_LOG_FIXED + i] = row->tts_values[attnum - 1];
		slot->tts_isnull[PLN_LOG_FIXED + i] = row->tts_isnull[attnum - 1];
	}
	ExecStoreVirtualTuple(slot);

	/* the values belong to the tuplestore's current tuple */
	ExecMaterializeSlot(slot);
	w->bytes += ExecFetchSlotHeapTuple(slot, false, NULL)->t_len;
	if (w->nused == MAX_BATCH_ROWS || w->bytes >= MAX_BATCH_BYTES)
		flush_rows(w);
}

static void
add_rows(LogWriter *w, Relation table, Tuplestorestate *store, int16 op)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(RelationGetDescr(table),
												   &TTSOpsMinimalTuple);
	int64		ord = 0;

	tuplestore_select_read_pointer(store, 0);
	tuplestore_rescan(store);
	while (tuplestore_gettupleslot(store, true, false, row))
	{
		CHECK_FOR_INTERRUPTS();
		add_row(w, row, op, ++ord);
	}
	tuplestore_rescan(store);
	ExecDropSingleTupleTableSlot(row);
}

/* Rows of both stores into the log; the header gets what it covers.  log is open. */
static void
write_rows(PlnHeader *header, CaptureTarget *target, Relation table, Relation log,
		   Tuplestorestate *old_rows, Tuplestorestate *new_rows)
{
	LogWriter	w;
	int64		expected = 0;
	int			i;

	memset(&w, 0, sizeof(w));
	w.log = log;
	w.target = target;
	w.seq = header->seq = pln_header_next_seq();
	w.incarnation = (int16) pln_incarnation();
	w.xid = GetTopFullTransactionId();
	w.cid = GetCurrentCommandId(true);
	w.first = InvalidBlockNumber;
	if (old_rows != NULL)
		expected += tuplestore_tuple_count(old_rows);
	if (new_rows != NULL)
		expected += tuplestore_tuple_count(new_rows);
	w.slots = palloc(sizeof(TupleTableSlot *) * Min(expected, MAX_BATCH_ROWS));
	if (expected >= BULK_ROWS)
		w.bistate = GetBulkInsertState();

	if (old_rows != NULL)
		add_rows(&w, table, old_rows, new_rows ? PLN_OP_UPDATED_OLD : PLN_OP_DELETED);
	if (new_rows != NULL)
		add_rows(&w, table, new_rows, old_rows ? PLN_OP_UPDATED_NEW : PLN_OP_INSERTED);
	flush_rows(&w);

	if (w.bistate != NULL)
	{
		FreeBulkInsertState(w.bistate);
		table_finish_bulk_insert(log, 0);
	}
	for (i = 0; i < w.nslots; i++)
		ExecDropSingleTupleTableSlot(w.slots[i]);
	header->generation = target->generation;
	header->heap = RelationGetRelid(log);
	header->relfilenode = log->rd_node.relNode;
	header->first_block = w.first;
	header->last_block = w.last;
}

static bool
has_inserted(int64 source_id)
{
	uint64		xid = pln_current_top_xid();
	InsertedSource *entry = hash_search(inserted, &source_id, HASH_FIND, NULL);

	return entry != NULL && xid != 0 && entry->xid == xid;
}

static void
note_insert(int64 source_id)
{
	InsertedSource *entry = hash_search(inserted, &source_id, HASH_ENTER, NULL);

	entry->xid = pln_current_top_xid();
}

/* Does this level want the rows of such a statement? */
static bool
wants_rows(const CaptureTarget *target, char kind)
{
	if (kind == PLN_HEADER_TRUNCATE)
		return false;
	switch (target->level)
	{
		case PLN_CAPTURE_SIGNED:
			return true;
		case PLN_CAPTURE_STREAM:
			/* a stream needs old images only of rows of the same transaction (A15) */
			return kind == PLN_HEADER_APPEND || target->kind == PLN_SOURCE_OWN_TABLE ||
				has_inserted(target->source_id);
		default:
			return false;
	}
}

/* One statement into one log.  false: the cached log is gone, look again. */
static bool
capture_into(CaptureTarget *target, Relation table, char kind, Tuplestorestate *old_rows,
			 Tuplestorestate *new_rows, bool last_try)
{
	PlnHeader	header;

	pln_header_init(&header, target->source_id, kind);
	if (new_rows != NULL)
		header.rows = tuplestore_tuple_count(new_rows);
	else if (old_rows != NULL)
		header.rows = tuplestore_tuple_count(old_rows);

	if (wants_rows(target, kind))
	{
		const char *problem = "lost a column";
		Relation	log = NULL;

		if (target->attnums != NULL)
			log = pln_log_open(target->log, RowExclusiveLock, RelationGetDescr(table),
							   target->ncols, target->attnums, &problem);
		if (log == NULL && !last_try)
			return false;
		if (log == NULL)
		{
			header.kind = PLN_HEADER_EVERYTHING;
			header.note = psprintf("change log %s", problem);
		}
		else
		{
			header.natts = pln_source_natts(target->relid);
			write_rows(&header, target, table, log, old_rows, new_rows);
			table_close(log, NoLock);
			if (kind == PLN_HEADER_APPEND)
				note_insert(target->source_id);
		}
		/* rows of a streaming table in the same subtransaction as an append of ours */
		if (target->kind == PLN_SOURCE_OWN_TABLE && kind == PLN_HEADER_APPEND)
			header.row_xid = GetCurrentTransactionId();
	}
	pln_header_write(&header);
	return true;
}

static void
capture_statement(Relation table, char kind, Tuplestorestate *old_rows,
				  Tuplestorestate *new_rows)
{
	MemoryContext context;
	MemoryContext old;
	int			i;

	context = AllocSetContextCreate(CurrentMemoryContext, "pipeline capture",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	for (i = 0;; i++)
	{
		List	   *targets = find_entry(RelationGetRelid(table))->targets;

		if (i >= list_length(targets))
			break;
		if (!capture_into(list_nth(targets, i), table, kind, old_rows, new_rows, false))
		{
			/* The log was replaced by a newer generation, whose lock wait told us so. */
			forget_entry((Datum) 0, RelationGetRelid(table));
			targets = find_entry(RelationGetRelid(table))->targets;
			if (i >= list_length(targets))
				break;
			(void) capture_into(list_nth(targets, i), table, kind, old_rows, new_rows, true);
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

static TriggerData *
trigger_data(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function is only for triggers of the extension \"pipeline\"")));
	return (TriggerData *) fcinfo->context;
}

/* A trigger under another name is not ours: two of them would log everything twice. */
static void
capture(FunctionCallInfo fcinfo, const char *name, char kind)
{
	TriggerData *data = trigger_data(fcinfo);
	Tuplestorestate *old_rows = data->tg_oldtable;
	Tuplestorestate *new_rows = data->tg_newtable;

	if (!TRIGGER_FIRED_AFTER(data->tg_event) || TRIGGER_FIRED_FOR_ROW(data->tg_event) ||
		strcmp(data->tg_trigger->tgname, name) != 0)
		return;
	if (kind != PLN_HEADER_TRUNCATE &&
		(old_rows == NULL || tuplestore_tuple_count(old_rows) == 0) &&
		(new_rows == NULL || tuplestore_tuple_count(new_rows) == 0))
		return;					/* it hit no row */
	capture_statement(data->tg_relation, kind, old_rows, new_rows);
}

Datum
pipeline_capture_insert(PG_FUNCTION_ARGS)
{
	capture(fcinfo, PLN_TRIGGER_INSERT, PLN_HEADER_APPEND);
	return PointerGetDatum(NULL);
}

Datum
pipeline_capture_update(PG_FUNCTION_ARGS)
{
	capture(fcinfo, PLN_TRIGGER_UPDATE, PLN_HEADER_UPDATE);
	return PointerGetDatum(NULL);
}

Datum
pipeline_capture_delete(PG_FUNCTION_ARGS)
{
	capture(fcinfo, PLN_TRIGGER_DELETE, PLN_HEADER_DELETE);
	return PointerGetDatum(NULL);
}

Datum
pipeline_capture_truncate(PG_FUNCTION_ARGS)
{
	capture(fcinfo, PLN_TRIGGER_TRUNCATE, PLN_HEADER_TRUNCATE);
	return PointerGetDatum(NULL);
}

/*
 * BEFORE STATEMENT on streaming tables (interface §3.8).  Our own writer does not fire it;
 * a superuser passes has_privs_of_role() and so counts as owner.
 */
Datum
pipeline_guard_dml(PG_FUNCTION_ARGS)
{
	TriggerData *data = trigger_data(fcinfo);
	Relation	rel = data->tg_relation;
	char	   *name = pln_relation_name(RelationGetRelid(rel));

	if (!pln_guc_allow_dml)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("table \"%s\" is maintained by a pipeline", name),
				 errhint("Its owner may change rows by hand after  "
						 "SET LOCAL pipeline.allow_dml = on;")));
	if (!has_privs_of_role(GetUserId(), rel->rd_rel->relowner))
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_ALLOWED),
				 errmsg("table \"%s\" is maintained by a pipeline", name),
				 errdetail("Only its owner may change rows by hand."),
				 errhint("SET ROLE %s;",
						 quote_identifier(GetUserNameFromId(rel->rd_rel->relowner, false)))));
	return PointerGetDatum(NULL);
}

bool
pln_is_own_trigger(Oid tgfoid)
{
	Oid			namespace_id = get_namespace_oid("pipeline_internal", true);

	return OidIsValid(namespace_id) && get_func_namespace(tgfoid) == namespace_id;
}

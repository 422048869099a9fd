/*
 * receiver.c
 *	  The DestReceiver every refresh writes through.
 *
 * Slots are made in a context of their own: receiveSlot runs in the query's context, which
 * is gone before a writer's last flush.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "write/receiver.h"

typedef struct Receiver
{
	DestReceiver pub;
	PlnReceiverSpec spec;
	MemoryContext context;
	TupleTableSlot *mapped;		/* NULL when slots are passed through */
	int64		rows_in;
	int64		rows_out;
} Receiver;

/* A mismatch would make malformed tuples that crash whoever reads them later. */
static void
check_types(Receiver *receiver, TupleDesc query)
{
	int			i;

	if (query->natts != receiver->spec.ncolumns)
		elog(ERROR, "query gives %d columns, expected %d", query->natts,
			 receiver->spec.ncolumns);
	for (i = 0; i < query->natts; i++)
	{
		Form_pg_attribute from = TupleDescAttr(query, i);
		AttrNumber	attno = receiver->spec.target_attno[i];
		Form_pg_attribute to = TupleDescAttr(receiver->spec.target_desc, attno - 1);

		if (to->attisdropped || from->atttypid != to->atttypid)
			elog(ERROR, "column \"%s\" of the query has type %s, expected %s",
				 NameStr(from->attname), format_type_be(from->atttypid),
				 format_type_be(to->atttypid));
	}
}

static bool
is_identity(Receiver *receiver, TupleDesc query)
{
	TupleDesc	target = receiver->spec.target_desc;
	int			i;

	if (query->natts != target->natts)
		return false;
	for (i = 0; i < query->natts; i++)
	{
		if (receiver->spec.target_attno[i] != i + 1 ||
			TupleDescAttr(target, i)->attisdropped ||
			TupleDescAttr(query, i)->attlen != TupleDescAttr(target, i)->attlen)
			return false;
	}
	return true;
}

static void
receiver_startup(DestReceiver *self, int operation, TupleDesc query)
{
	Receiver   *receiver = (Receiver *) self;
	MemoryContext old;

	check_types(receiver, query);
	if (is_identity(receiver, query))
		return;
	old = MemoryContextSwitchTo(receiver->context);
	receiver->mapped = MakeSingleTupleTableSlot(receiver->spec.target_desc, &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
}

static TupleTableSlot *
map_slot(Receiver *receiver, TupleTableSlot *slot)
{
	TupleTableSlot *mapped = receiver->mapped;
	int			n = receiver->spec.ncolumns;
	int			i;

	slot_getallattrs(slot);
	ExecClearTuple(mapped);
	memset(mapped->tts_isnull, true, sizeof(bool) * mapped->tts_tupleDescriptor->natts);
	for (i = 0; i < n; i++)
	{
		int			at = receiver->spec.target_attno[i] - 1;

		mapped->tts_values[at] = slot->tts_values[i];
		mapped->tts_isnull[at] = slot->tts_isnull[i];
	}
	return ExecStoreVirtualTuple(mapped);
}

static bool
receiver_receive(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;
	PlnReceiverSpec *spec = &receiver->spec;
	TupleTableSlot *row = receiver->mapped ? map_slot(receiver, slot) : slot;

	receiver->rows_in++;
	if (spec->expectations != NULL)
	{
		PlnVerdict	verdict = pln_expect_eval(spec->expectations, row);

		if (verdict == PLN_ROW_QUARANTINE && spec->quarantine != NULL)
			pln_quarantine_put(spec->quarantine, row, spec->expectations);
		if (verdict != PLN_ROW_KEEP)
			return true;
	}
	spec->put_row(spec->writer, row);
	receiver->rows_out++;
	return true;
}

static void
receiver_shutdown(DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;

	if (receiver->mapped != NULL)
		ExecDropSingleTupleTableSlot(receiver->mapped);
	receiver->mapped = NULL;
}

static void
receiver_destroy(DestReceiver *self)
{
}

DestReceiver *
pln_receiver_create(const PlnReceiverSpec *spec)
{
	Receiver   *receiver = palloc0(sizeof(Receiver));

	receiver->pub.receiveSlot = receiver_receive;
	receiver->pub.rStartup = receiver_startup;
	receiver->pub.rShutdown = receiver_shutdown;
	receiver->pub.rDestroy = receiver_destroy;
	receiver->pub.mydest = DestNone;
	receiver->spec = *spec;
	receiver->context = CurrentMemoryContext;
	return (DestReceiver *) receiver;
}

int64
pln_receiver_rows_in(DestReceiver *receiver)
{
	return ((Receiver *) receiver)->rows_in;
}

int64
pln_receiver_rows_out(DestReceiver *receiver)
{
	return ((Receiver *) receiver)->rows_out;
}

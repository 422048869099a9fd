/*
 * net.c
 *	  The net effect of a transaction that inserts and also updates or deletes (A15).
 *
 * A stream sees what a transaction made of the table, not its steps: a row inserted and then
 * updated is one insert of its last form, inserted and deleted it is nothing.  An old image
 * that no earlier insert of the same transaction accounts for is an older row: the
 * transaction is no append.
 *
 * Rows are matched by image (datum_image_eq), never by the types' own equality: 1.0 and 1.00
 * are different rows.  Two passes: first the old images, which are usually few, then only
 * new images that can match one.  Memory grows with those, not with the transaction.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "common/hashfn.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "source/internal.h"

typedef struct ImageKey
{
	uint64		xid;
	uint64		hash;
} ImageKey;

typedef struct Image
{
	ImageKey	key;
	int64		seq;
	int32		ord;
	int16		op;
	bool		cancelled;
	bool		inserted;		/* goes back to an INSERT of this transaction */
	ItemPointerData tid;
	MinimalTuple tuple;			/* NULL: only its place matters */
} Image;

typedef struct Bucket
{
	ImageKey	key;
	List	   *live;			/* of Image: new images not cancelled yet */
} Bucket;

typedef struct NetScan
{
	Relation	log;
	int16		incarnation;
	int64		first_block;
	int64		last_block;
	uint64		own_xid;
	int64		own_seq;
	int			n;
	PlnNetTransaction *xacts;
	bool		only_inserts;
	HTAB	   *buckets;
	Image	  **images;
	int			nimages;
	int			maximages;
} NetScan;

static int
compare_xacts(const void *a, const void *b)
{
	uint64		x = ((const PlnNetTransaction *) a)->xid;
	uint64		y = ((const PlnNetTransaction *) b)->xid;

	return x < y ? -1 : x > y ? 1 : 0;
}

static PlnNetTransaction *
find_xact(NetScan *scan, uint64 xid)
{
	PlnNetTransaction key;

	key.xid = xid;
	return bsearch(&key, scan->xacts, scan->n, sizeof(PlnNetTransaction), compare_xacts);
}

static uint64
image_hash(TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	uint64		hash = 0;
	int			i;

	for (i = PLN_LOG_FIXED; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		uint64		h = 0x9e37;

		if (!slot->tts_isnull[i])
			h = datum_image_hash(slot->tts_values[i], att->attbyval, att->attlen);
		hash = hash_combine64(hash, h);
	}
	return hash;
}

static bool
image_equal(TupleDesc desc, MinimalTuple left, MinimalTuple right)
{
	HeapTupleData a;
	HeapTupleData b;
	int			i;

	a.t_len = left->t_len + MINIMAL_TUPLE_OFFSET;
	a.t_data = (HeapTupleHeader) ((char *) left - MINIMAL_TUPLE_OFFSET);
	b.t_len = right->t_len + MINIMAL_TUPLE_OFFSET;
	b.t_data = (HeapTupleHeader) ((char *) right - MINIMAL_TUPLE_OFFSET);
	for (i = PLN_LOG_FIXED; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		bool		anull;
		bool		bnull;
		Datum		x = heap_getattr(&a, i + 1, desc, &anull);
		Datum		y = heap_getattr(&b, i + 1, desc, &bnull);

		if (anull != bnull)
			return false;
		if (!anull && !datum_image_eq(x, y, att->attbyval, att->attlen))
			return false;
	}
	return true;
}

static void
keep_image(NetScan *scan, TupleTableSlot *slot, const ImageKey *key, int16 op, bool with_tuple)
{
	Image	   *image = palloc0(sizeof(Image));

	image->key = *key;
	image->seq = DatumGetInt64(slot->tts_values[PLN_LOG_SEQ - 1]);
	image->ord = DatumGetInt32(slot->tts_values[PLN_LOG_ORD - 1]);
	image->op = op;
	image->inserted = op == PLN_OP_INSERTED;
	image->tid = slot->tts_tid;
	if (with_tuple)
		image->tuple = ExecCopySlotMinimalTuple(slot);
	if (scan->nimages == scan->maximages)
	{
		scan->maximages *= 2;
		scan->images = repalloc_huge(scan->images, sizeof(Image *) * scan->maximages);
	}
	scan->images[scan->nimages++] = image;
}

/* One row of the log in the pass over old images (negative) or new ones. */
static void
visit_row(NetScan *scan, TupleTableSlot *slot, bool negative)
{
	int16		op = DatumGetInt16(slot->tts_values[PLN_LOG_OP - 1]);
	ImageKey	key;
	Bucket	   *bucket;
	bool		found;

	if ((op < 0) != negative)
		return;
	memset(&key, 0, sizeof(key));
	key.hash = image_hash(slot);
	key.xid = U64FromFullTransactionId(
		DatumGetFullTransactionId(slot->tts_values[PLN_LOG_XID - 1]));
	if (negative)
	{
		bucket = hash_search(scan->buckets, &key, HASH_ENTER, &found);
		bucket->live = NIL;
		keep_image(scan, slot, &key, op, true);
		return;
	}
	bucket = hash_search(scan->buckets, &key, HASH_FIND, NULL);
	if (bucket != NULL)
		keep_image(scan, slot, &key, op, true);
	else if (scan->only_inserts && op == PLN_OP_UPDATED_NEW)
		keep_image(scan, slot, &key, op, false);
}

static void
scan_log(NetScan *scan, bool negative)
{
	TupleTableSlot *slot = table_slot_create(scan->log, NULL);
	TableScanDesc desc;
	ItemPointerData low;
	ItemPointerData high;

	ItemPointerSet(&low, scan->first_block < 0 ? 0 : scan->first_block, 0);
	ItemPointerSet(&high, scan->first_block < 0 ? MaxBlockNumber : scan->last_block,
				   MaxOffsetNumber);
	desc = table_beginscan_tidrange(scan->log, GetActiveSnapshot(), &low, &high);
	while (table_scan_getnextslot_tidrange(desc, ForwardScanDirection, slot))
	{
		uint64		xid;

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		xid = U64FromFullTransactionId(
			DatumGetFullTransactionId(slot->tts_values[PLN_LOG_XID - 1]));
		if (DatumGetInt16(slot->tts_values[PLN_LOG_INCARNATION - 1]) != scan->incarnation ||
			find_xact(scan, xid) == NULL ||
			(xid == scan->own_xid &&
			 DatumGetInt64(slot->tts_values[PLN_LOG_SEQ - 1]) <= scan->own_seq))
			continue;
		visit_row(scan, slot, negative);
	}
	table_endscan(desc);
	ExecDropSingleTupleTableSlot(slot);
}

/* Statement order; within a statement old images go first, as a whole. */
static int
compare_images(const void *a, const void *b)
{
	const Image *x = *(Image *const *) a;
	const Image *y = *(Image *const *) b;

	if (x->key.xid != y->key.xid)
		return x->key.xid < y->key.xid ? -1 : 1;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	if ((x->op < 0) != (y->op < 0))
		return x->op < 0 ? -1 : 1;
	return x->ord < y->ord ? -1 : x->ord > y->ord ? 1 : 0;
}

/*
 * Take back the row that an old image shows.  true = the transaction had made it.  A row that
 * goes back to an INSERT is preferred: rows of one image cannot be told apart.
 */
static bool
cancel(NetScan *scan, Image *old_image)
{
	Bucket	   *bucket = hash_search(scan->buckets, &old_image->key, HASH_FIND, NULL);
	Image	   *match = NULL;
	ListCell   *lc;

	foreach(lc, bucket->live)
	{
		Image	   *image = lfirst(lc);

		if (!image_equal(RelationGetDescr(scan->log), image->tuple, old_image->tuple))
			continue;
		match = image;
		if (image->inserted)
			break;
	}
	if (match == NULL)
		return false;
	bucket->live = list_delete_ptr(bucket->live, match);
	match->cancelled = true;
	old_image->inserted = match->inserted;
	return true;
}

/* The old image of the same updated row: in the same statement, under the same ord. */
static bool
came_from_insert(NetScan *scan, Image *new_image)
{
	Image		key = *new_image;
	Image	   *keyp = &key;
	Image	  **found;

	key.op = PLN_OP_UPDATED_OLD;
	found = bsearch(&keyp, scan->images, scan->nimages, sizeof(Image *), compare_images);
	return found != NULL && (*found)->inserted;
}

static void
replay(NetScan *scan)
{
	int			i;

	for (i = 0; i < scan->nimages; i++)
	{
		Image	   *image = scan->images[i];

		CHECK_FOR_INTERRUPTS();
		if (image->op < 0)
		{
			if (!cancel(scan, image))
				find_xact(scan, image->key.xid)->residual = true;
			continue;
		}
		if (image->op == PLN_OP_UPDATED_NEW)
			image->inserted = came_from_insert(scan, image);
		if (image->tuple != NULL)
		{
			Bucket	   *bucket = hash_search(scan->buckets, &image->key, HASH_FIND, NULL);

			bucket->live = lcons(image, bucket->live);
		}
	}
}

List *
pln_net_effect(Relation log, int16 incarnation, int64 first_block, int64 last_block,
			   uint64 own_xid, int64 own_seq, int n, PlnNetTransaction *xacts,
			   bool only_inserts)
{
	MemoryContext context;
	MemoryContext caller;
	NetScan		scan;
	HASHCTL		ctl;
	List	   *dead = NIL;
	int			i;

	context = AllocSetContextCreate(CurrentMemoryContext, "pipeline net effect",
									ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	memset(&scan, 0, sizeof(scan));
	scan.log = log;
	scan.incarnation = incarnation;
	scan.first_block = first_block;
	scan.last_block = last_block;
	scan.own_xid = own_xid;
	scan.own_seq = own_seq;
	scan.n = n;
	scan.xacts = xacts;
	scan.only_inserts = only_inserts;
	qsort(xacts, n, sizeof(PlnNetTransaction), compare_xacts);
	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(ImageKey);
	ctl.entrysize = sizeof(Bucket);
	ctl.hcxt = context;
	scan.buckets = hash_create("pipeline images", 1024, &ctl,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	scan.maximages = 256;
	scan.images = palloc(sizeof(Image *) * scan.maximages);

	scan_log(&scan, true);
	scan_log(&scan, false);
	qsort(scan.images, scan.nimages, sizeof(Image *), compare_images);
	replay(&scan);

	MemoryContextSwitchTo(caller);
	for (i = 0; i < scan.nimages; i++)
	{
		Image	   *image = scan.images[i];

		if (image->op > 0 && (image->cancelled || (only_inserts && !image->inserted)))
		{
			PlnDeadRow *row = palloc(sizeof(PlnDeadRow));

			row->xid = image->key.xid;
			row->tid = image->tid;
			dead = lappend(dead, row);
		}
	}
	MemoryContextDelete(context);
	return dead;
}

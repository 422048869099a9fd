/*
 * frontier.c
 *	  Positions in a source: (incarnation, snapshot, own transaction, own sequence).
 *
 * A backend's own transaction is never in its own snapshot, so what it had logged when the
 * position was taken is told apart by the sequence (correctness A1).  Only top-level xids
 * are ever tested against a snapshot (A2).
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "utils/fmgrprotos.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "source/frontier.h"
#include "source/internal.h"

PlnFrontierTest *
pln_frontier_test(const PlnFrontier *frontier)
{
	PlnFrontierTest *test = palloc(sizeof(PlnFrontierTest));

	test->incarnation = frontier->incarnation;
	test->snapshot = DirectFunctionCall1(pg_snapshot_in, CStringGetDatum(frontier->snapshot));
	test->xmin = U64FromFullTransactionId(
		DatumGetFullTransactionId(DirectFunctionCall1(pg_snapshot_xmin, test->snapshot)));
	test->own_xid = frontier->own_xid;
	test->own_seq = frontier->own_seq;
	return test;
}

bool
pln_frontier_covers(const PlnFrontierTest *test, int32 incarnation, uint64 xid, int64 seq)
{
	if (incarnation != test->incarnation)
		return incarnation < test->incarnation;
	if (xid == test->own_xid)
		return seq <= test->own_seq;
	return DatumGetBool(
		DirectFunctionCall2(pg_visible_in_snapshot,
							FullTransactionIdGetDatum(FullTransactionIdFromU64(xid)),
							test->snapshot));
}

PlnFrontier *
pln_source_frontier_now(Oid relid)
{
	PlnFrontier *frontier = palloc0(sizeof(PlnFrontier));
	PlnSource  *source = pln_source_find(relid);
	Datum		snapshot;

	PLN_ENSURE(ActiveSnapshotSet());
	frontier->incarnation = pln_incarnation();
	snapshot = DirectFunctionCall1(pg_current_snapshot, (Datum) 0);
	frontier->snapshot = DatumGetCString(DirectFunctionCall1(pg_snapshot_out, snapshot));
	frontier->own_xid = pln_current_top_xid();
	if (source != NULL)
	{
		frontier->own_seq = pln_headers_own_seq(source->id, frontier->own_xid);
		if (source->active)
			frontier->fingerprint = pln_fingerprint_make(source, InvalidOid);
	}
	frontier->evaluated_at = GetCurrentTransactionStartTimestamp();
	return frontier;
}

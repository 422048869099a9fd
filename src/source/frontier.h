/*
 * frontier.h
 *	  Is a header consumed? (correctness A1)
 */
#ifndef PIPELINE_SOURCE_FRONTIER_H
#define PIPELINE_SOURCE_FRONTIER_H

#include "catalog/checkpoints.h"

/* A frontier made ready for many tests. */
typedef struct PlnFrontierTest
{
	int32		incarnation;
	Datum		snapshot;		/* pg_snapshot */
	uint64		xmin;			/* of the snapshot */
	uint64		own_xid;
	int64		own_seq;
} PlnFrontierTest;

extern PlnFrontierTest *pln_frontier_test(const PlnFrontier *frontier);
extern bool pln_frontier_covers(const PlnFrontierTest *test, int32 incarnation, uint64 xid,
								int64 seq);

#endif							/* PIPELINE_SOURCE_FRONTIER_H */

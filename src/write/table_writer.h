/*
 * table_writer.h
 *	  Bulk writing of rows into a streaming table, on COPY's path (correctness B9):
 *	  constraints, generated columns, partition routing, user triggers, indexes.
 */
#ifndef PIPELINE_WRITE_TABLE_WRITER_H
#define PIPELINE_WRITE_TABLE_WRITER_H

#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "storage/block.h"
#include "utils/rel.h"

/* A run of blocks that the writer really got tuples in. */
typedef struct PlnBlockRange
{
	BlockNumber first;
	BlockNumber last;
} PlnBlockRange;

/* What was appended to one heap: input of the append log (correctness A2, A14). */
typedef struct PlnAppended
{
	Oid			relid;			/* the leaf for partitioned targets */
	TransactionId row_xid;		/* xmin of the tuples (may be a subtransaction) */
	int64		rows;
	List	   *ranges;			/* of PlnBlockRange, merged to a small number */
} PlnAppended;

typedef struct PlnTableWriter PlnTableWriter;

/*
 * The relation is open with RowExclusiveLock, the estate has no range table yet: it becomes the
 * writer's.  Slots given to put have the target's descriptor (generated columns are computed;
 * identity and defaults come from the caller's query) and are not changed.  Raises 0A000 for
 * targets that cannot be written so: constraints checked at the commit, FORCE ROW LEVEL
 * SECURITY, foreign partitions.
 */
extern PlnTableWriter *pln_table_writer_open(Relation rel, EState *estate);
extern void pln_table_writer_put(PlnTableWriter *writer, TupleTableSlot *slot);

/* Of PlnAppended, in the current context; only heaps that got rows. */
extern List *pln_table_writer_close(PlnTableWriter *writer);
extern int64 pln_table_writer_bytes(PlnTableWriter *writer);	/* valid until close */

#endif							/* PIPELINE_WRITE_TABLE_WRITER_H */

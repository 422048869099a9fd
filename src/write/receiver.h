/*
 * receiver.h
 *	  The DestReceiver every refresh writes through: evaluates the expectations on each
 *	  row, counts, drops, routes, and hands the kept rows to a writer.
 */
#ifndef PIPELINE_WRITE_RECEIVER_H
#define PIPELINE_WRITE_RECEIVER_H

#include "tcop/dest.h"

#include "expect/expect.h"
#include "expect/quarantine.h"

/* Where kept rows go. */
typedef void (*PlnPutRow) (void *writer, TupleTableSlot *slot);

typedef struct PlnReceiverSpec
{
	TupleDesc	target_desc;	/* what put_row wants */
	AttrNumber *target_attno;	/* for each query column its attribute in target_desc */
	int			ncolumns;		/* of the query */
	PlnExpectSet *expectations; /* NULL when none; evaluated on target_desc rows */
	PlnQuarantineWriter *quarantine;	/* NULL when none */
	PlnPutRow	put_row;
	void	   *writer;
} PlnReceiverSpec;

/*
 * The query's column types must equal the target attributes' (checked once at startup, XX000:
 * the caller casts); attributes without a query column are NULL.  Without mapping work (same
 * order, same descriptor) slots are passed through.
 */
extern DestReceiver *pln_receiver_create(const PlnReceiverSpec *spec);
extern int64 pln_receiver_rows_in(DestReceiver *receiver);
extern int64 pln_receiver_rows_out(DestReceiver *receiver); /* handed to the writer */

#endif							/* PIPELINE_WRITE_RECEIVER_H */

/*
 * file_ledger.h
 *	  The files of a streaming read: those listed now and not consumed yet.
 *
 * Which files are consumed is written in the transaction that writes their rows.
 */
#ifndef PIPELINE_SOURCE_FILE_LEDGER_H
#define PIPELINE_SOURCE_FILE_LEDGER_H

#include "source/stream_ref.h"

typedef struct PlnFileBatch PlnFileBatch;

/* List the source and leave out what the ledger has.  Rights on the place are those of the current user. */
extern PlnFileBatch *pln_file_batch_open(int64 flow_id, PlnStreamSource *source);
extern int	pln_file_batch_count(PlnFileBatch *batch);	/* files to read */
extern int64 pln_file_batch_listed(PlnFileBatch *batch);
extern double pln_file_batch_listing_ms(PlnFileBatch *batch);

/* Let the range-table entry, a call of read_files, read just this batch. */
extern void pln_file_batch_substitute(PlnFileBatch *batch, RangeTblEntry *rte);

/* After the rows were read: ledger rows, frozen schema. */
extern void pln_file_batch_record(PlnFileBatch *batch, int64 flow_id, const char *update_id);

/* Files of the flow's ledger that are no longer there; the sources' places are asked. */
extern int64 pln_file_ledger_gone(int64 flow_id);

/* The batch that a call of pipeline_internal.read_file_batch(id) means. */
extern PlnFileBatch *pln_file_batch_get(int id);

#endif							/* PIPELINE_SOURCE_FILE_LEDGER_H */

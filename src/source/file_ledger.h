/*
 * file_ledger.h
 *	  The files of a streaming read: those listed now and not consumed yet.
 *
 * Which files are consumed is written in the transaction that writes their rows.
 */
#ifndef PIPELINE_SOURCE_FILE_LEDGER_H
#define PIPELINE_SOURCE_FILE_LEDGER_H

#include "files/files.h"
#include "source/stream_ref.h"

typedef struct PlnFileBatch PlnFileBatch;

/* At the start of a flow; keep_unstable for a second try after 55006. */
extern void pln_file_batches_reset(bool keep_unstable);

/* List the source and leave out what the ledger has.  Rights on the place are those of the
 * current user. */
extern PlnFileBatch *pln_file_batch_open(int64 flow_id, PlnStreamSource *source);
extern int	pln_file_batch_count(PlnFileBatch *batch);	/* files to read */
extern bool pln_file_batch_has_news(PlnFileBatch *batch);	/* something to record */
extern int64 pln_file_batch_listed(PlnFileBatch *batch);
extern double pln_file_batch_listing_ms(PlnFileBatch *batch);

/* Let the range-table entry, a call of read_files, read just this batch. */
extern void pln_file_batch_substitute(PlnFileBatch *batch, RangeTblEntry *rte);

/* The batch that a call of pipeline.read_file_batch(id) means; NULL = none. */
extern PlnFileBatch *pln_file_batch_get(int id);
extern PlnFileReader *pln_file_batch_reader(PlnFileBatch *batch, PlnFileSchema **schema);

/* After the rows were read: the ledger.  Raises 55006 when a file changed in between. */
extern void pln_file_batch_record(PlnFileBatch *batch, int64 flow_id, const char *update_id);
extern int	pln_file_ledger_unstable(void); /* files left out so far in this flow */

/* Files of the list that are not in the ledger; for schema evolution. */
extern List *pln_file_ledger_new(int64 flow_id, int ordinal, List *listed,
								 bool allow_overwrites);

/* Files of the flow's ledger that are no longer there. */
extern int64 pln_file_ledger_gone(int64 flow_id);

#endif							/* PIPELINE_SOURCE_FILE_LEDGER_H */

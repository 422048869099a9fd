/*
 * reading.h
 *	  State of one pln_source_changes(): transactions with pending headers, and what to read.
 */
#ifndef PIPELINE_SOURCE_READING_H
#define PIPELINE_SOURCE_READING_H

#include "access/transam.h"

#include "source/internal.h"

/* One transaction with pending headers. */
typedef struct PlnXact
{
	int32		incarnation;
	uint64		xid;
	List	   *headers;		/* of PlnHeader, by seq */
	bool		inserted;		/* has log rows of inserts */
	bool		residual;		/* changed rows that were there before */
	bool		needs_net;		/* only its rows can tell */
	int64		truncate_seq;	/* > 0: rows logged before are gone */
	const char *what;			/* of its first update, delete or truncate */
	TimestampTz at;
} PlnXact;

/* State of one pln_source_changes(). */
typedef struct PlnReading
{
	PlnSource  *source;
	const PlnFrontier *frontier;
	const PlnStreamOptions *options;	/* NULL: a view */
	Bitmapset  *attnums;		/* that the reader needs; NULL = all captured */
	PlnChanges *changes;
	List	   *xacts;			/* of PlnXact */
	List	   *parts;			/* of PlnPart */
	List	   *logs;			/* of PlnLog */
	bool		check_counts;	/* appended rows may be gone from the heap */
	int64		old_images;		/* logged; -1 = some were not */
} PlnReading;

extern void pln_changes_add_reason(PlnChanges *changes, const char *code, char *text);
extern void pln_changes_everything(PlnChanges *changes, const char *code, char *text);
extern void pln_reading_net(PlnReading *r);
extern void pln_reading_build(PlnReading *r);

/* Rows are in the relation itself, found by their xmin. */
static inline bool
pln_header_is_own_append(const PlnHeader *header)
{
	return header->kind == PLN_HEADER_APPEND && header->generation == 0 &&
		TransactionIdIsValid(header->row_xid);
}

#endif							/* PIPELINE_SOURCE_READING_H */

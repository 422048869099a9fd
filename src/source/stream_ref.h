/*
 * stream_ref.h
 *	  Which range-table entries of an analysed query are read as a stream.
 *
 * STREAM t is kept as  t TABLESAMPLE pipeline.stream('{options}')  and STREAM read_files()
 * as  pipeline.read_files(path, options)  with a "stream" member in the options: both
 * survive in a stored view, its dump and its restore, and both are ordinary SQL when the
 * view is read by hand (all rows, all files).
 */
#ifndef PIPELINE_SOURCE_STREAM_REF_H
#define PIPELINE_SOURCE_STREAM_REF_H

#include "nodes/parsenodes.h"

#include "source/source.h"

typedef enum PlnRefKind
{
	PLN_REF_STREAM_TABLE,
	PLN_REF_STREAM_FILES,
	PLN_REF_BATCH_FILES
} PlnRefKind;

typedef struct PlnStreamSource
{
	PlnRefKind	kind;
	RangeTblEntry *rte;			/* in place in the query: may be modified */
	int			ordinal;		/* n-th of its relation, or n-th file source, from 0 */
	Oid			relid;			/* tables only */
	PlnStreamOptions options;	/* tables only */
	char	   *path;			/* files only */
	char	   *options_json;	/* files only */
} PlnStreamSource;

/* All of them, in range-table order, at every query level; the query may be rewritten or not. */
extern List *pln_query_sources(Query *query);

extern bool pln_rte_is_stream(RangeTblEntry *rte);
extern bool pln_rte_is_read_files(RangeTblEntry *rte);

/* OIDs of the two markers; looked up by name, the caller may keep them for one statement. */
extern Oid	pln_stream_method(void);
extern Oid	pln_read_files_function(void);

/* The query that a view or materialized view stores, copied; with OLD and NEW entries. */
extern Query *pln_stored_query(Oid relid);

/* Every relation that the query reads at any level: a List of oids without duplicates. */
extern List *pln_query_relations(Query *query);

#endif							/* PIPELINE_SOURCE_STREAM_REF_H */

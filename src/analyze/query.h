/*
 * query.h
 *	  Parse analysis of resolved queries, and what a streaming or a batch query may hold.
 */
#ifndef PIPELINE_ANALYZE_QUERY_H
#define PIPELINE_ANALYZE_QUERY_H

#include "access/tupdesc.h"

#include "dialect/parse.h"

/*
 * Analyse a resolved raw query in the current user and settings.  Columns of _metadata of file
 * sources are usable and not part of "*" (dialect-reference §6.5).  Raises the server's errors
 * at the user's text, and 0A000 for data-modifying WITH, FOR UPDATE, temporary relations.
 */
extern Query *pln_analyze_query(PlnScript *script, PlnSql *sql, RawStmt *raw);

/* Raises 0A000 unless the query may feed a streaming table: reads at least one stream, in
 * places where each new row yields its output once. */
extern void pln_check_streaming_query(PlnScript *script, PlnSql *sql, Query *query,
									  const char *dataset);

/* Raises 0A000 when a batch query reads a stream. */
extern void pln_check_batch_query(PlnScript *script, PlnSql *sql, Query *query,
								  const char *dataset);

/* errposition() for an offset of sql->text, inside an error scope of sql. */
extern int	pln_sql_errposition(PlnSql *sql, int text_location);

#endif							/* PIPELINE_ANALYZE_QUERY_H */

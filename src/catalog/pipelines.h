/*
 * pipelines.h
 *	  Rows of pipeline_internal.pipelines: a procedure of LANGUAGE pipeline, or the hidden
 *	  pipeline of one dataset that was created by a statement of its own.
 */
#ifndef PIPELINE_CATALOG_PIPELINES_H
#define PIPELINE_CATALOG_PIPELINES_H

#include "nodes/pg_list.h"

typedef struct PlnPipeline
{
	int64		id;				/* 0 = not stored yet */
	char	   *uid;			/* uuid text: pipeline_id of the event log */
	char	   *schema_name;
	char	   *name;
	bool		standalone;		/* hidden pipeline of one dataset */
	Oid			owner;			/* kept current by event triggers */
	char	   *source;			/* body of the procedure, or the CREATE statement */
	List	   *settings;		/* pinned, "name=value" (secctx.h) */
	char	   *parameters;		/* JSON object of the values used last, never NULL */
	bool		dropped;		/* procedure is gone; kept for its history */
} PlnPipeline;

/*
 * All raise nothing when the row is missing: they return NULL / NIL.  Procedures and hidden
 * pipelines may share a name, and dropped rows keep theirs: find prefers the procedure, then
 * the living row, then the newest; look at ->standalone and ->dropped.
 */
extern PlnPipeline *pln_pipeline_find(const char *schema_name, const char *name);
extern PlnPipeline *pln_pipeline_find_kind(const char *schema_name, const char *name,
										   bool standalone);
extern PlnPipeline *pln_pipeline_get(int64 id);
extern PlnPipeline *pln_pipeline_by_uid(const char *uid);	/* text of a valid uuid */

/* Insert (id == 0, sets id and uid) or update. */
extern void pln_pipeline_save(PlnPipeline *pipeline);

/* "schema.name", quoted as needed: for messages, NOTICEs and origin.pipeline_name */
extern char *pln_pipeline_display_name(const PlnPipeline *pipeline);

#endif							/* PIPELINE_CATALOG_PIPELINES_H */

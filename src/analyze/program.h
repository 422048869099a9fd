/*
 * program.h
 *	  A pipeline's source as a graph of declared datasets.
 */
#ifndef PIPELINE_ANALYZE_PROGRAM_H
#define PIPELINE_ANALYZE_PROGRAM_H

#include "catalog/datasets.h"
#include "catalog/flows.h"
#include "catalog/pipelines.h"
#include "dialect/parse.h"

/* One declared dataset. */
typedef struct PlnNode
{
	int			index;			/* in PlnProgram.nodes */
	PlnCreateDataset *decl;
	char	   *schema;			/* where it is declared to live */
	char	   *name;
	char	   *stored_schema;	/* the same, or pipeline_data for PRIVATE tables */
	char	   *stored_name;
	RawStmt    *raw;			/* its query, names unresolved; NULL for an empty target */
	PlnSql	   *sql;			/* where raw came from */
	List	   *inputs;			/* node indexes it reads, temporary views included */
	bool		streaming;		/* temporary views: reads a stream */
	bool		native;			/* made by PostgreSQL's own statement: the view's stored query is
								 * the definition, there is no text */
	Query	   *analysed;		/* of a native CREATE */
	List	   *file_schemas;	/* of char *: JSON of each file source, to be frozen */
	List	   *file_paths;		/* of char *, with file_schemas */
	List	   *file_options;	/* of char *: JSON, with file_schemas */
	bool		unknown_schema; /* below a file source whose columns are not known yet */

	/* filled when defined (define.h) */
	PlnDataset *dataset;		/* NULL for temporary views */
	PlnFlow    *flow;
	List	   *expectations;	/* of PlnExpectationRow, all origins */
	bool		created;		/* relation was made just now */
	bool		full_refresh;	/* asked for in this update; set before define */
	Query	   *unfiltered;		/* materialized views with DROP rules: query to count over */
	List	   *retype;			/* of char *: ALTER TABLE ..., to run once the table is empty */
	List	   *input_relids;	/* base relations of the query */
	List	   *stream_relids;	/* those of them that are read as streams */
	List	   *input_names;	/* display names, for events */
} PlnNode;

/* One line of pipeline.plan(). */
typedef struct PlnPlanItem
{
	char	   *dataset;
	char	   *change;
	char	   *effect;
} PlnPlanItem;

typedef struct PlnProgram
{
	PlnScript  *script;
	PlnPipeline *pipeline;
	Oid			owner;
	bool		allow_file_io;	/* CREATE's check does none (interface §3.4) */
	bool		missing_ok;		/* CREATE: unknown sources are a NOTICE */
	int			nnodes;
	PlnNode   **nodes;			/* in order of declaration */
	int		   *order;			/* node indexes, topological */
	PlnNode    *current;		/* being defined, for reports of failures */
	List	   *plan;			/* of PlnPlanItem, filled by define */
} PlnProgram;

/*
 * Build the graph: names, duplicates (42710), cycles (42P17 naming the path), statements that a
 * pipeline source may not hold.  Touches no relation.
 */
extern PlnProgram *pln_program_build(PlnScript *script, PlnPipeline *pipeline, Oid owner);

/* A program of the one CREATE statement given in the DO door. */
extern PlnProgram *pln_program_standalone(PlnScript *script, PlnCreateDataset *decl,
										  PlnPipeline *pipeline, Oid owner);

/*
 * A program of one materialized view that was made by PostgreSQL's own statement: query is that
 * of the CREATE, or NULL when the view exists already.
 */
extern PlnProgram *pln_program_native(PlnPipeline *pipeline, Oid owner, Query *query,
									  List *column_names, PlnRefreshPolicy policy);

/* The node a name means, or NULL.  schema NULL = unqualified. */
extern PlnNode *pln_program_find(PlnProgram *program, PlnNode *reader, const char *schema,
								 const char *name);

extern char *pln_node_display_name(PlnNode *node);

#endif							/* PIPELINE_ANALYZE_PROGRAM_H */

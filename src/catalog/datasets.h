/*
 * datasets.h
 *	  Rows of pipeline_internal.datasets.
 */
#ifndef PIPELINE_CATALOG_DATASETS_H
#define PIPELINE_CATALOG_DATASETS_H

#include "nodes/pg_list.h"

#include "dialect/nodes.h"

typedef enum PlnDatasetState
{
	PLN_DATASET_ACTIVE,
	PLN_DATASET_INACTIVE,		/* definition removed or source dropped: rows stay */
	PLN_DATASET_SUSPENDED		/* needs a person; see state_reason */
} PlnDatasetState;

typedef struct PlnDataset
{
	int64		id;				/* 0 = not stored yet */
	int64		pipeline_id;
	char	   *schema_name;	/* as declared; follows renames */
	char	   *name;
	PlnDatasetKind kind;
	Oid			relid;			/* InvalidOid for temporary views */
	PlnDatasetState state;
	char	   *state_reason;	/* NULL when active */
	char	   *definition;		/* statement as typed */
	char	   *query;			/* query as typed, NULL for an empty target */
	char	   *fingerprint;	/* of what decides the content; compared at each update */
	PlnRefreshPolicy policy;
	char	   *properties;		/* JSON object, never NULL */
	char	   *comment;
	bool		is_private;
	Oid			quarantine;		/* InvalidOid when none */
	Oid			relfilenode;	/* as we left it: a foreign REFRESH changes it */
	bool		filled;			/* first fill is done */
} PlnDataset;

extern PlnDataset *pln_dataset_get(int64 id);
extern PlnDataset *pln_dataset_by_relid(Oid relid);

/* Any state.  Published datasets before temporary views and private tables of that name. */
extern PlnDataset *pln_dataset_find(const char *schema_name, const char *name);
extern List *pln_datasets_of_pipeline(int64 pipeline_id);	/* of PlnDataset, by id */
extern void pln_dataset_save(PlnDataset *dataset);	/* insert (id == 0) or update */
extern void pln_dataset_set_state(int64 id, PlnDatasetState state, const char *reason);
extern void pln_dataset_delete(int64 id);	/* with flows, expectations, checkpoints, ledger */

/* What pipeline.datasets shows of the last refresh. */
extern void pln_dataset_refreshed(int64 id, const char *update_id, const char *refresh_type,
								  int64 rows);

/* "schema.name", quoted as needed */
extern char *pln_dataset_display_name(const PlnDataset *dataset);

extern const char *pln_dataset_kind_name(PlnDatasetKind kind);	/* STREAMING_TABLE, ... */
extern const char *pln_dataset_state_name(PlnDatasetState state);	/* ACTIVE, ... */
extern const char *pln_policy_name(PlnRefreshPolicy policy);	/* AUTO, INCREMENTAL STRICT, ... */

#endif							/* PIPELINE_CATALOG_DATASETS_H */

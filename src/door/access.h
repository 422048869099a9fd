/*
 * access.h
 *	  What the current user may see of a pipeline or dataset (interface §3.29), and how
 *	  names of them are looked up.
 */
#ifndef PIPELINE_DOOR_ACCESS_H
#define PIPELINE_DOOR_ACCESS_H

#include "catalog/datasets.h"
#include "catalog/pipelines.h"

typedef struct PlnAccess
{
	bool		owner;			/* everything */
	bool		stats;			/* pg_read_all_stats: all but row samples and URLs */
	bool		run;			/* EXECUTE on the procedure: the update list */
	bool		read;			/* SELECT on the dataset: its state, times, counts */
} PlnAccess;

extern PlnAccess pln_access_of_pipeline(const PlnPipeline *pipeline);	/* read is false */
extern PlnAccess pln_access_of_dataset(const PlnDataset *dataset, const PlnPipeline *pipeline);

/* What a name stands for: a pipeline, or one dataset of it. */
typedef struct PlnTarget
{
	PlnPipeline *pipeline;
	PlnDataset *dataset;		/* NULL: the pipeline as a whole */
} PlnTarget;

/*
 * name is a possibly qualified name as in SQL, or the uuid of a pipeline.  Unqualified names go
 * through the search path; in one schema the procedure wins over the dataset, and both over what
 * was dropped under that name.  42704 when there is none, 0A000 for another database.
 */
extern PlnTarget pln_target_find(const char *name);

/* 42501 for a dataset or pipeline that the user may see nothing of. */
extern void pln_access_refuse(const char *what, const char *name) pg_attribute_noreturn();

#endif							/* PIPELINE_DOOR_ACCESS_H */

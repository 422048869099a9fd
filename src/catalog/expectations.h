/*
 * expectations.h
 *	  Rows of pipeline_internal.expectations.
 */
#ifndef PIPELINE_CATALOG_EXPECTATIONS_H
#define PIPELINE_CATALOG_EXPECTATIONS_H

#include "nodes/pg_list.h"

#include "dialect/nodes.h"

typedef struct PlnExpectationRow
{
	int64		id;				/* 0 = not stored yet */
	int64		dataset_id;
	char	   *name;
	char	   *condition;		/* dialect text as typed */
	PlnAction	action;
	PlnThresholdKind threshold_kind;
	double		threshold;
	char	   *origin;			/* "source", "function" or "table <rules table>" */
} PlnExpectationRow;

extern List *pln_expectations_of_dataset(int64 dataset_id); /* of PlnExpectationRow, by id */

/*
 * Make the stored rows with this origin equal to the list (origin "source": what the
 * definition says).  Rows of other origins are additive and survive; a name they use
 * raises 42710.  Rows whose name exists with this origin keep their id.
 */
extern void pln_expectations_replace(int64 dataset_id, const char *origin, List *rows);

extern bool pln_expectation_drop(int64 dataset_id, const char *name);	/* false: unknown */

extern const char *pln_action_name(PlnAction action);	/* WARN, DROP, QUARANTINE, FAIL */
extern bool pln_action_from_name(const char *name, PlnAction *action);

#endif							/* PIPELINE_CATALOG_EXPECTATIONS_H */

/*
 * inline_check.h
 *	  Expectations of temporary views, which have no writer of their own: they are checked
 *	  inside the queries that read the view.
 *
 * A reader gets  SELECT * FROM (view) v WHERE pipeline.check_row(...) OFFSET 0; the
 * counts gather here, per backend, from pln_inline_reset() to the end of the flow.
 */
#ifndef PIPELINE_EXPECT_INLINE_CHECK_H
#define PIPELINE_EXPECT_INLINE_CHECK_H

#include "utils/array.h"

#include "catalog/expectations.h"
#include "catalog/updates.h"

typedef struct PlnInlineView PlnInlineView;

extern void pln_inline_reset(void);
extern uint64 pln_inline_generation(void);	/* changes with every reset */

/* The counters of a view; they live until the next reset. */
extern PlnInlineView *pln_inline_view(const char *name, ArrayType *rules, ArrayType *actions);

/* Count one row; true when it stays. */
extern bool pln_inline_count(PlnInlineView *view, int n, const Datum *results,
							 const bool *nulls);

extern List *pln_inline_counts(void);	/* of PlnQualityCount, dataset set */
extern int64 pln_inline_dropped(void);

/* Raise 23514 when a FAIL rule of a view was violated; after the last row. */
extern void pln_inline_finish(void);

#endif							/* PIPELINE_EXPECT_INLINE_CHECK_H */

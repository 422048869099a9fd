/*
 * expect.h
 *	  Expectations: checked against a row type, compiled, evaluated in the pass that
 *	  writes the row (architecture §6, dialect-reference §2).
 *
 * pass = condition IS TRUE.  Every expectation is evaluated on every row, once.
 * FAIL beats DROP/QUARANTINE; a row violating QUARANTINE and DROP rules goes to quarantine.
 */
#ifndef PIPELINE_EXPECT_EXPECT_H
#define PIPELINE_EXPECT_EXPECT_H

#include "access/tupdesc.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

#include "catalog/expectations.h"

typedef enum PlnVerdict
{
	PLN_ROW_KEEP,
	PLN_ROW_DROP,
	PLN_ROW_QUARANTINE,
	PLN_ROW_FAIL				/* counted and sampled; the row is not written */
} PlnVerdict;

typedef struct PlnExpectSet PlnExpectSet;

/*
 * Analyse one condition (dialect text) against a row type.  Raises: not boolean 42804, unknown
 * column 42703, subquery / aggregate / window / set-returning / volatile function 0A000-class
 * errors as the server's own, each with a position inside the condition (scope of the caller
 * when sql is given).  Returns the analysed, coerced, collated expression with Vars of varno 1.
 */
extern Node *pln_expect_analyze(const char *name, PlnSql *sql, TupleDesc desc);

/* Compile stored expectations for rows of desc.  Lives in the current context. */
extern PlnExpectSet *pln_expect_compile(List *rows, TupleDesc desc, EState *estate);

/* Evaluate all on the row; counts.  An error inside names the expectation in its context. */
extern PlnVerdict pln_expect_eval(PlnExpectSet *set, TupleTableSlot *slot);

extern int	pln_expect_count(PlnExpectSet *set);

/* Indexes (0-based) of the expectations that the last evaluated row violated. */
extern Bitmapset *pln_expect_last_violated(PlnExpectSet *set);
extern const char *pln_expect_name(PlnExpectSet *set, int index);

/* After the last row: thresholds are decided, and 23514 with the constraint name is raised when a
 * FAIL rule was violated or a threshold passed.  Message, detail as interface §2:
 * expectation "x" violated by n of m rows, first (row text).  target is the display name. */
extern void pln_expect_finish(PlnExpectSet *set, const char *target);

/* Counts as PlnQualityCount (catalog/updates.h), and up to ten violating rows of FAIL
 * rules as JSON array text (NULL when none). Both stay readable after pln_expect_finish raised
 * when the set lives in a context that survives. */
extern List *pln_expect_counts(PlnExpectSet *set);
extern char *pln_expect_samples(PlnExpectSet *set);
extern int64 pln_expect_dropped(PlnExpectSet *set);	/* rows removed by one or more DROP rules */
extern int64 pln_expect_quarantined(PlnExpectSet *set);

#endif							/* PIPELINE_EXPECT_EXPECT_H */

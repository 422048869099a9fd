/*
 * classify.h
 *	  What a query's answer depends on besides the rows it reads.
 */
#ifndef PIPELINE_IVM_CLASSIFY_H
#define PIPELINE_IVM_CLASSIFY_H

#include "nodes/parsenodes.h"

#include "base/errors.h"

/*
 * Can the answer change while no source changes?  NULL = no.  Otherwise the reason: volatile
 * functions, time functions, STABLE functions of users, files and foreign tables read in batch
 * (correctness A12, A13).  STABLE built-ins that depend only on pinned settings are fine.
 */
extern PlnReason *pln_classify_self_changing(Query *query);

#endif							/* PIPELINE_IVM_CLASSIFY_H */

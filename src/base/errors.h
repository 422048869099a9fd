/*
 * errors.h
 *	  SQLSTATE aliases (house rules: the standard classes only), PLN_ENSURE, and the
 *	  deferred refusal PlnReason.
 */
#ifndef PIPELINE_BASE_ERRORS_H
#define PIPELINE_BASE_ERRORS_H

#include "utils/elog.h"

#define PLN_ERR_UNKNOWN_OBJECT		ERRCODE_UNDEFINED_OBJECT	/* 42704 */
#define PLN_ERR_DUPLICATE			ERRCODE_DUPLICATE_OBJECT	/* 42710 */
#define PLN_ERR_SYNTAX				ERRCODE_SYNTAX_ERROR	/* 42601 */
#define PLN_ERR_CYCLE				ERRCODE_INVALID_OBJECT_DEFINITION	/* 42P17 */
#define PLN_ERR_NOT_BUILT			ERRCODE_FEATURE_NOT_SUPPORTED	/* 0A000 */
#define PLN_ERR_BAD_VALUE			ERRCODE_INVALID_PARAMETER_VALUE /* 22023 */
#define PLN_ERR_NULL_ARGUMENT		ERRCODE_NULL_VALUE_NOT_ALLOWED	/* 22004 */
#define PLN_ERR_NOT_ALLOWED			ERRCODE_INSUFFICIENT_PRIVILEGE	/* 42501 */
#define PLN_ERR_EXPECTATION			ERRCODE_CHECK_VIOLATION /* 23514 */
#define PLN_ERR_BUSY				ERRCODE_OBJECT_IN_USE	/* 55006 */
#define PLN_ERR_STATE				ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE	/* 55000 */
#define PLN_ERR_RETRY				ERRCODE_T_R_SERIALIZATION_FAILURE	/* 40001 */
#define PLN_ERR_BAD_FILE_ROW		ERRCODE_BAD_COPY_FILE_FORMAT	/* 22P04 */

/* For states that no user can cause. */
#define PLN_ENSURE(cond) \
	do { \
		if (unlikely(!(cond))) \
			elog(ERROR, "internal error in pipeline: %s at %s:%d", #cond, __FILE__, __LINE__); \
	} while (0)

/* A row of our catalog that is gone: its object was dropped by another session meanwhile. */
static inline void
pln_raise_dropped(const char *kind, const char *name)
{
	ereport(ERROR,
			(errcode(PLN_ERR_RETRY),
			 errmsg("%s \"%s\" was dropped while it was updated", kind, name),
			 errhint("Run the update again.")));
}

/* Why something was not done incrementally, not captured, not skipped: a value, not an error. */
typedef struct PlnReason
{
	const char *code;			/* name of dialect-reference §4.3, or one of ours */
	char	   *text;			/* a sentence for people */
	const char *operator_name;	/* NULL when not about one operator */
} PlnReason;

#endif							/* PIPELINE_BASE_ERRORS_H */

/*
 * report.h
 *	  What an update says to the client and the server log (interface §2).
 */
#ifndef PIPELINE_UPDATE_REPORT_H
#define PIPELINE_UPDATE_REPORT_H

#include "catalog/updates.h"
#include "catalog/pipelines.h"

typedef struct PlnTally
{
	int			completed;
	int			failed;
	int			skipped;
	int			worked;			/* completed with something done */
	PlnOutcome *first_failure;
	ErrorData  *first_error;
} PlnTally;

/* What somebody who is not the owner may know of an error: no rows, no SQL (interface §3.29). */
extern char *pln_report_discreet(const char *sqlstate, const char *constraint);

/* hide: the caller is not the owner. */
extern void pln_report_outcome(const PlnOutcome *outcome, const char *name, bool hide);
extern void pln_report_end(const PlnUpdate *update, const PlnPipeline *pipeline,
						   const PlnTally *tally, double elapsed_ms);

/* Raise the failure of the update; does not return. */
extern void pln_report_raise(const PlnUpdate *update, const PlnPipeline *pipeline,
							 const PlnTally *tally, bool hide) pg_attribute_noreturn();

/* The message of an error, with what its context says of an expectation. */
extern char *pln_report_error_text(const ErrorData *error);

#endif							/* PIPELINE_UPDATE_REPORT_H */

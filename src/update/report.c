/*
 * report.c
 *	  What an update says to the client and the server log (interface §2).
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "base/guc.h"
#include "update/report.h"

#define NAME_WIDTH 20

static void
append_padded(StringInfo line, const char *text, int width)
{
	int			length = pg_mbstrlen(text);

	appendStringInfoString(line, text);
	for (; length < width; length++)
		appendStringInfoChar(line, ' ');
	appendStringInfoString(line, " ");
}

static void
append_counts(StringInfo counts, const PlnOutcome *outcome)
{
	ListCell   *lc;

	appendStringInfo(counts, INT64_FORMAT " %s", outcome->rows_out,
					 outcome->rows_out == 1 ? "row" : "rows");
	if (outcome->files > 0)
		appendStringInfo(counts, "  " INT64_FORMAT " %s", outcome->files,
						 outcome->files == 1 ? "file" : "files");
	if (outcome->rows_dropped > 0)
		appendStringInfo(counts, "  " INT64_FORMAT " dropped", outcome->rows_dropped);
	if (outcome->rows_quarantined > 0)
		appendStringInfo(counts, "  " INT64_FORMAT " quarantined", outcome->rows_quarantined);
	foreach(lc, outcome->quality)
	{
		PlnQualityCount *count = lfirst(lc);

		if (count->failed > 0)
			appendStringInfo(counts, "  %s: " INT64_FORMAT " failed", count->name, count->failed);
	}
	if (outcome->refresh_type != NULL && strcmp(outcome->refresh_type, "APPEND") != 0)
	{
		appendStringInfo(counts, "  %s", outcome->refresh_type);
		if (outcome->refresh_reason != NULL)
			appendStringInfo(counts, " (%s)", outcome->refresh_reason);
	}
}

char *
pln_report_discreet(const char *sqlstate, const char *constraint)
{
	if (constraint != NULL)
		return psprintf("\"%s\" violated", constraint);
	return psprintf("failed with SQLSTATE %s", sqlstate);
}

void
pln_report_outcome(const PlnOutcome *outcome, const char *name, bool hide)
{
	StringInfoData line;
	StringInfoData counts;
	bool		noop = outcome->refresh_type != NULL &&
		strcmp(outcome->refresh_type, "NO_OP") == 0;

	if (pln_guc_messages == PLN_MESSAGES_QUIET ||
		(pln_guc_messages == PLN_MESSAGES_SUMMARY &&
		 (noop || strcmp(outcome->state, "EXCLUDED") == 0)))
		return;
	initStringInfo(&line);
	initStringInfo(&counts);
	append_padded(&line, name, NAME_WIDTH);
	append_padded(&line, outcome->state, 11);
	if (strcmp(outcome->state, "COMPLETED") == 0)
		append_counts(&counts, outcome);
	else if (outcome->message != NULL)
		appendStringInfoString(&counts, hide ?
							   pln_report_discreet(outcome->sqlstate, outcome->constraint) :
							   outcome->message);
	append_padded(&line, counts.data, 33);
	if (strcmp(outcome->state, "COMPLETED") == 0)
		appendStringInfo(&line, "%.0f ms", outcome->elapsed_ms);
	while (line.len > 0 && line.data[line.len - 1] == ' ')
		line.data[--line.len] = '\0';
	ereport(NOTICE, (errmsg("%s", line.data)));
}

void
pln_report_end(const PlnUpdate *update, const PlnPipeline *pipeline, const PlnTally *tally,
			   double elapsed_ms)
{
	const char *state = tally->failed > 0 ? "FAILED" : "COMPLETED";

	if (pln_guc_messages != PLN_MESSAGES_QUIET && tally->failed == 0)
		ereport(NOTICE,
				(errmsg("update %s %s%s, %.0f ms", pln_update_short_id(update), state,
						tally->worked == 0 ? ", nothing new" : "", elapsed_ms)));
	if (pln_guc_log_updates == PLN_LOG_ALL ||
		(pln_guc_log_updates == PLN_LOG_FAILED && tally->failed > 0))
		ereport(LOG,
				(errmsg("update %s of pipeline %s %s: %d COMPLETED, %d FAILED, %d SKIPPED, %.0f ms",
						update->id, pln_pipeline_display_name(pipeline), state,
						tally->completed, tally->failed, tally->skipped, elapsed_ms),
				 errhidestmt(true)));
}

char *
pln_report_error_text(const ErrorData *error)
{
	StringInfoData text;
	const char *at;

	initStringInfo(&text);
	appendStringInfoString(&text, error->message);
	/* an error inside a condition: its context names the expectation */
	at = error->context ? strstr(error->context, "expectation \"") : NULL;
	if (at != NULL)
	{
		const char *end = strchr(at, '\n');

		appendStringInfo(&text, " (%.*s)", end ? (int) (end - at) : (int) strlen(at), at);
	}
	return text.data;
}

void
pln_report_raise(const PlnUpdate *update, const PlnPipeline *pipeline, const PlnTally *tally,
				 bool hide)
{
	const ErrorData *error = tally->first_error;
	StringInfoData counts;

	initStringInfo(&counts);
	appendStringInfo(&counts, "%d %s FAILED", tally->failed,
					 tally->failed == 1 ? "dataset" : "datasets");
	if (tally->skipped > 0)
		appendStringInfo(&counts, ", %d SKIPPED", tally->skipped);
	if (tally->completed > 0)
		appendStringInfo(&counts, ", %d COMPLETED", tally->completed);
	ereport(ERROR,
			(errcode(error->sqlerrcode),
			 errmsg("update %s of pipeline \"%s\" failed: %s", pln_update_short_id(update),
					pln_pipeline_display_name(pipeline), counts.data),
			 hide ? errdetail("%s: %s", tally->first_failure->dataset_name,
							  pln_report_discreet(unpack_sql_state(error->sqlerrcode),
												  error->constraint_name)) :
			 errdetail("%s: %s%s%s", tally->first_failure->dataset_name,
					   pln_report_error_text(error), error->detail ? ". " : "",
					   error->detail ? error->detail : ""),
			 error->hint && !hide ? errhint("%s", error->hint) :
			 errhint("SELECT * FROM pipeline.problems;"),
			 error->constraint_name ?
			 err_generic_string(PG_DIAG_CONSTRAINT_NAME, error->constraint_name) : 0));
	pg_unreachable();
}

/*
 * event_payload.c
 *	  What the events say: JSON shapes, levels and texts of dialect-reference §3.4-3.6.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/version.h"
#include "catalog/event_internal.h"
#include "catalog/event_log.h"
#include "catalog/expectations.h"

typedef struct StatusText
{
	const char *status;
	const char *level;
	const char *message;		/* with the flow's name for %s */
} StatusText;

static const StatusText status_texts[] = {
	{"QUEUED", "INFO", "Flow '%s' is QUEUED."},
	{"PLANNING", "INFO", "Flow '%s' is PLANNING."},
	{"STARTING", "INFO", "Flow '%s' is STARTING."},
	{"RUNNING", "INFO", "Flow '%s' is RUNNING."},
	{"COMPLETED", "INFO", "Flow '%s' has COMPLETED."},
	{"FAILED", "ERROR", "Flow '%s' has FAILED."},
	{"SKIPPED", "WARN", "Flow '%s' SKIPPED due to upstream failure(s)."},
	{"EXCLUDED", "INFO", "Flow '%s' is EXCLUDED."},
	{"IDLE", "INFO", "Flow '%s' is IDLE, waiting for new data."},
	{"STOPPED", "INFO", "Flow '%s' has STOPPED."}
};

static char *
dataset_full_name(const PlnDataset *dataset)
{
	return pln_event_object_name(dataset->schema_name, dataset->name);
}

/* For message texts: as the user named it. */
static const char *
flow_short_name(const PlnOrigin *origin)
{
	if (origin->flow != NULL)
		return origin->flow->name;
	return origin->dataset != NULL ? origin->dataset->name : "";
}

/* What listeners get of a failure. */
static char *
failure_notice(const PlnOrigin *origin, const char *sqlstate)
{
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	if (origin->pipeline != NULL)
		pln_json_text(&json, "pipeline", pln_pipeline_display_name(origin->pipeline));
	if (origin->update != NULL)
		pln_json_text(&json, "update_id", origin->update->id);
	if (origin->dataset != NULL)
		pln_json_text(&json, "dataset", pln_dataset_display_name(origin->dataset));
	if (origin->flow != NULL)
		pln_json_text(&json, "flow", origin->flow->name);
	pln_json_text(&json, "state", "FAILED");
	if (sqlstate != NULL)
		pln_json_text(&json, "sqlstate", sqlstate);
	pln_json_close(&json, '}');
	return json.data;
}

/* ---- updates ---- */

/* "USER_ACTION" as words: "user action" */
static char *
cause_words(const char *cause)
{
	char	   *words = pstrdup(cause);
	char	   *at;

	for (at = words; *at != '\0'; at++)
		*at = (*at == '_') ? ' ' : pg_ascii_tolower((unsigned char) *at);
	return words;
}

void
pln_event_create_update(const PlnOrigin *origin)
{
	PlnUpdate  *update = origin->update;
	PlnPipeline *pipeline = origin->pipeline;
	bool		full_selection = update->full_refresh && update->selection != NIL;
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_text(&json, "run_as", update->run_as);
	pln_json_text(&json, "cause", update->cause);
	pln_json_bool(&json, "full_refresh", update->full_refresh && !full_selection);
	pln_json_text_list(&json, "refresh_selection", full_selection ? NIL : update->selection);
	pln_json_text_list(&json, "full_refresh_selection",
					   full_selection ? update->selection : NIL);
	pln_json_bool(&json, "validate_only", update->validate_only);
	pln_json_text(&json, "effective_publishing_mode", "DIRECT_PUBLISHING");
	pln_json_open(&json, "config", '{');
	pln_json_text(&json, "name", pipeline->name);
	pln_json_text(&json, "catalog", get_database_name(MyDatabaseId));
	pln_json_text(&json, "schema", pipeline->schema_name);
	pln_json_bool(&json, "continuous", false);
	pln_json_bool(&json, "development", false);
	pln_json_close(&json, '}');
	pln_json_close(&json, '}');
	pln_event(origin, "INFO", "create_update",
			  psprintf("Update %s started by %s.", pln_update_short_id(update),
					   cause_words(update->cause)),
			  json.data, NULL);
}

void
pln_event_user_action(const PlnOrigin *origin, const char *action)
{
	StringInfoData json;
	char	   *user = GetUserNameFromId(GetUserId(), false);

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_text(&json, "action", action);
	pln_json_text(&json, "user_name", user);
	pln_json_int(&json, "user_id", GetUserId());
	pln_json_close(&json, '}');
	pln_event(origin, "INFO", "user_action",
			  origin->dataset == NULL ? psprintf("User '%s' performed %s.", user, action) :
			  psprintf("User '%s' performed %s on '%s'.", user, action,
					   pln_dataset_display_name(origin->dataset)), json.data, NULL);
}

void
pln_event_update_progress(const PlnOrigin *origin, const char *state)
{
	bool		failed = strcmp(state, "FAILED") == 0;
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_text(&json, "state", state);
	if (strcmp(state, "CANCELED") == 0)
		pln_json_text(&json, "cancellation_cause", "USER_ACTION");
	pln_json_close(&json, '}');
	pln_event_notify(origin, failed ? "ERROR" : "INFO", "update_progress",
			  psprintf("Update %s is %s.", pln_update_short_id(origin->update), state),
			  json.data, NULL, failed ? failure_notice(origin, NULL) : NULL);
}

/* ---- definitions ---- */

void
pln_event_dataset_definition(const PlnOrigin *origin, int nflows, List *expectations)
{
	const char *type = pln_dataset_kind_name(origin->dataset->kind);
	StringInfoData json;
	ListCell   *lc;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_text(&json, "dataset_type", type);
	pln_json_int(&json, "num_flows", nflows);
	pln_json_open(&json, "expectations", '[');
	foreach(lc, expectations)
	{
		PlnExpectationRow *expectation = lfirst(lc);

		pln_json_open(&json, NULL, '{');
		pln_json_text(&json, "name", expectation->name);
		pln_json_text(&json, "constraint", expectation->condition);
		pln_json_text(&json, "action", pln_action_name(expectation->action));
		pln_json_close(&json, '}');
	}
	pln_json_close(&json, ']');
	pln_json_close(&json, '}');
	pln_event(origin, "INFO", "dataset_definition",
			  psprintf("Dataset '%s' defined as %s.", origin->dataset->name, type),
			  json.data, NULL);
}

static void
append_columns(StringInfo json, const char *key, TupleDesc desc)
{
	int			i;

	pln_json_open(json, key, '[');
	for (i = 0; desc != NULL && i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		pln_json_open(json, NULL, '{');
		pln_json_text(json, "name", NameStr(att->attname));
		pln_json_text(json, "data_type", format_type_with_typemod(att->atttypid,
																  att->atttypmod));
		pln_json_close(json, '}');
	}
	pln_json_close(json, ']');
}

/* Paths of files are no datasets.  A quoted name may hold a slash. */
static bool
is_file_path(const char *input_name)
{
	return strchr(input_name, '/') != NULL && strchr(input_name, '"') == NULL;
}

static void
append_inputs(StringInfo json, List *input_names)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, input_names)
	{
		char	   *name = lfirst(lc);

		if (!is_file_path(name))
			names = lappend(names, psprintf("%s.%s",
											quote_identifier(get_database_name(MyDatabaseId)),
											name));
	}
	if (names == NIL)
		pln_json_text(json, "input_datasets", NULL);
	else
		pln_json_text_list(json, "input_datasets", names);
}

void
pln_event_flow_definition(const PlnOrigin *origin, List *input_names, const char *flow_type,
						  TupleDesc schema, const char *explain_text)
{
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_text(&json, "output_dataset", dataset_full_name(origin->dataset));
	append_inputs(&json, input_names);
	pln_json_text(&json, "flow_type", flow_type);
	append_columns(&json, "schema", schema);
	pln_json_text(&json, "explain_text", explain_text);
	pln_json_text(&json, "comment", origin->dataset->comment);
	pln_json_text(&json, "language", "SQL");
	pln_json_bool(&json, "once", origin->flow != NULL && origin->flow->once);
	pln_json_open(&json, "spark_conf", '[');
	pln_json_close(&json, ']');
	pln_json_close(&json, '}');
	pln_event(origin, "INFO", "flow_definition",
			  psprintf("Flow '%s' defined as %s.", flow_short_name(origin), flow_type),
			  json.data, NULL);
}

/* ---- flows ---- */

static void
append_metrics(StringInfo json, const PlnOrigin *origin, const PlnOutcome *outcome)
{
	bool		is_cdc = origin->flow != NULL && (origin->flow->kind == PLN_FLOW_AUTO_CDC ||
												  origin->flow->kind == PLN_FLOW_CDC_SNAPSHOT);

	pln_json_open(json, "metrics", '{');
	if (is_cdc)
	{
		pln_json_int(json, "num_upserted_rows", outcome->rows_upserted);
		pln_json_int(json, "num_deleted_rows", outcome->rows_deleted);
	}
	else
		pln_json_int(json, "num_output_rows", outcome->rows_out);
	if (origin->dataset != NULL && origin->dataset->kind == PLN_STREAMING_TABLE)
	{
		/* an update reads all that there was when it began */
		pln_json_int(json, "backlog_bytes", 0);
		pln_json_int(json, "backlog_files", 0);
	}
	if (outcome->bytes_out > 0)
		pln_json_int(json, "num_output_bytes", outcome->bytes_out);
	pln_json_int(json, "executor_time_ms", (int64) outcome->elapsed_ms);
	pln_json_close(json, '}');
}

/* Rules of a temporary view are counted where the view is read. */
static char *
quality_dataset(const PlnOrigin *origin, const PlnOutcome *outcome,
				const PlnQualityCount *count)
{
	if (count->dataset != NULL)
		return psprintf("%s.%s", quote_identifier(get_database_name(MyDatabaseId)),
						count->dataset);
	return origin->dataset == NULL ? outcome->dataset_name : dataset_full_name(origin->dataset);
}

static void
append_quality(StringInfo json, const PlnOrigin *origin, const PlnOutcome *outcome)
{
	ListCell   *lc;

	if (outcome->quality == NIL && outcome->rows_replayed == 0)
		return;
	pln_json_open(json, "data_quality", '{');
	pln_json_int(json, "dropped_records", outcome->rows_dropped);
	if (outcome->rows_quarantined > 0)
		pln_json_int(json, "quarantined_records", outcome->rows_quarantined);
	if (outcome->rows_replayed > 0)
		pln_json_int(json, "replayed_records", outcome->rows_replayed);
	pln_json_open(json, "expectations", '[');
	foreach(lc, outcome->quality)
	{
		PlnQualityCount *count = lfirst(lc);

		pln_json_open(json, NULL, '{');
		pln_json_text(json, "name", count->name);
		pln_json_text(json, "dataset", quality_dataset(origin, outcome, count));
		pln_json_int(json, "passed_records", count->passed);
		pln_json_int(json, "failed_records", count->failed);
		pln_json_close(json, '}');
	}
	pln_json_close(json, ']');
	pln_json_close(json, '}');
}

static const StatusText *
status_text(const PlnOrigin *origin, const char *status)
{
	static const StatusText once_done = {
		"SKIPPED", "INFO", "Flow '%s' SKIPPED, it was processed by a previous iteration."
	};
	int			i;

	if (strcmp(status, "SKIPPED") == 0 && origin->flow != NULL && origin->flow->once_done)
		return &once_done;
	for (i = 0; i < lengthof(status_texts); i++)
	{
		if (strcmp(status_texts[i].status, status) == 0)
			return &status_texts[i];
	}
	elog(ERROR, "unknown flow status \"%s\"", status);
	return NULL;				/* keep compiler quiet */
}

static char *
status_message(const StatusText *text, const PlnOrigin *origin)
{
	StringInfoData message;
	const char *at = strstr(text->message, "%s");

	initStringInfo(&message);
	appendBinaryStringInfo(&message, text->message, at - text->message);
	appendStringInfoString(&message, flow_short_name(origin));
	appendStringInfoString(&message, at + 2);
	return message.data;
}

void
pln_event_flow_progress(const PlnOrigin *origin, const char *status, const PlnOutcome *outcome)
{
	const StatusText *text = status_text(origin, status);
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_text(&json, "status", status);
	if (outcome != NULL)
	{
		append_metrics(&json, origin, outcome);
		append_quality(&json, origin, outcome);
	}
	pln_json_close(&json, '}');
	pln_event(origin, text->level, "flow_progress", status_message(text, origin), json.data,
			  NULL);
}

/* The shape of dialect-reference §3.2, with SQLSTATE, detail, hint and constraint beside it. */
static char *
error_json(const PlnOutcome *outcome, const char *samples_json)
{
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_bool(&json, "fatal", true);
	pln_json_open(&json, "exceptions", '[');
	pln_json_open(&json, NULL, '{');
	pln_json_text(&json, "class_name", outcome->sqlstate);
	pln_json_text(&json, "message", outcome->message);
	pln_json_open(&json, "stack", '[');
	pln_json_close(&json, ']');
	pln_json_text(&json, "sqlstate", outcome->sqlstate);
	if (outcome->detail != NULL)
		pln_json_text(&json, "detail", outcome->detail);
	if (outcome->hint != NULL)
		pln_json_text(&json, "hint", outcome->hint);
	if (outcome->constraint != NULL)
		pln_json_text(&json, "constraint", outcome->constraint);
	pln_json_close(&json, '}');
	pln_json_close(&json, ']');
	if (samples_json != NULL)
		pln_json_raw(&json, "samples", samples_json);
	pln_json_close(&json, '}');
	return json.data;
}

void
pln_event_flow_failed(const PlnOrigin *origin, const PlnOutcome *outcome,
					  const char *samples_json)
{
	const StatusText *text = status_text(origin, "FAILED");

	pln_event_notify(origin, text->level, "flow_progress", status_message(text, origin),
			  "{\"status\":\"FAILED\"}", error_json(outcome, samples_json),
			  failure_notice(origin, outcome->sqlstate));
}

/* ---- planning and listing ---- */

/* A reason's code is an issue type or the sub type of one (dialect-reference §4.3). */
static void
append_issue(StringInfo json, const PlnReason *reason)
{
	static const struct
	{
		const char *code;
		const char *issue_type;
		const char *key;
	}			subtypes[] = {
		{"OPERATOR_NOT_SUPPORTED", "PLAN_NOT_INCREMENTALIZABLE", NULL},
		{"AGGREGATE_NOT_TOP_NODE", "PLAN_NOT_INCREMENTALIZABLE", NULL},
		{"AGGREGATE_WITH_DISTINCT", "PLAN_NOT_INCREMENTALIZABLE", NULL},
		{"AGGREGATE_WITH_UNSUPPORTED_EXPRESSION", "PLAN_NOT_INCREMENTALIZABLE", NULL},
		{"SUBQUERY_EXPRESSION", "PLAN_NOT_INCREMENTALIZABLE", NULL},
		{"WINDOW_FUNCTION_NOT_TOP_LEVEL", "PLAN_NOT_INCREMENTALIZABLE", NULL},
		{"WINDOW_FUNCTION_WITHOUT_PARTITION_BY", "PLAN_NOT_INCREMENTALIZABLE", NULL},
		{"STREAMING_SOURCE", "PLAN_NOT_DETERMINISTIC", "plan_not_deterministic_sub_type"},
		{"USER_DEFINED_FUNCTION", "PLAN_NOT_DETERMINISTIC", "plan_not_deterministic_sub_type"},
		{"TIME_FUNCTION", "PLAN_NOT_DETERMINISTIC", "plan_not_deterministic_sub_type"},
		{"NON_DETERMINISTIC_EXPRESSION", "PLAN_NOT_DETERMINISTIC",
		"plan_not_deterministic_sub_type"},
		{"NUM_JOINS_THRESHOLD_EXCEEDED", "INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL",
		"cost_model_rejection_subtype"},
		{"CHANGESET_SIZE_THRESHOLD_EXCEEDED", "INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL",
		"cost_model_rejection_subtype"},
		{"TABLE_SIZE_THRESHOLD_EXCEEDED", "INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL",
		"cost_model_rejection_subtype"},
		{"EXCESSIVE_OPERATOR_NESTING", "INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL",
		"cost_model_rejection_subtype"},
		{"COST_MODEL_REJECTION_SUB_TYPE_UNSPECIFIED",
			"INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL", "cost_model_rejection_subtype"}
	};
	const char *key = "plan_not_incrementalizable_sub_type";
	int			i;

	pln_json_open(json, NULL, '{');
	for (i = 0; i < lengthof(subtypes); i++)
	{
		if (strcmp(subtypes[i].code, reason->code) == 0)
			break;
	}
	if (i < lengthof(subtypes))
	{
		if (subtypes[i].key != NULL)
			key = subtypes[i].key;
		pln_json_text(json, "issue_type", subtypes[i].issue_type);
		pln_json_text(json, key, reason->code);
	}
	else
		pln_json_text(json, "issue_type", reason->code);
	pln_json_bool(json, "prevent_incrementalization", true);
	if (reason->operator_name != NULL)
		pln_json_text(json, "operator_name", reason->operator_name);
	if (reason->text != NULL)
		pln_json_text(json, "message", reason->text);
	pln_json_close(json, '}');
}

static void
append_technique(StringInfo json, const char *technique, bool chosen, bool applicable,
				 List *reasons)
{
	ListCell   *lc;

	pln_json_open(json, NULL, '{');
	pln_json_text(json, "maintenance_type", psprintf("MAINTENANCE_TYPE_%s", technique));
	pln_json_bool(json, "is_chosen", chosen);
	pln_json_bool(json, "is_applicable", applicable);
	if (reasons != NIL)
	{
		pln_json_open(json, "incrementalization_issues", '[');
		foreach(lc, reasons)
			append_issue(json, lfirst(lc));
		pln_json_close(json, ']');
	}
	pln_json_close(json, '}');
}

void
pln_event_planning(const PlnOrigin *origin, const char *technique, List *reasons)
{
	bool		full = strcmp(technique, "FULL_RECOMPUTE") == 0;
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_open(&json, "technique_information", '[');
	append_technique(&json, full ? "COMPLETE_RECOMPUTE" : technique, true, true,
					 full ? NIL : reasons);
	if (!full)
		append_technique(&json, "COMPLETE_RECOMPUTE", false, true, NIL);
	else if (reasons != NIL)
		append_technique(&json, "ROW_BASED", false, false, reasons);
	pln_json_close(&json, ']');
	if (origin->dataset != NULL)
	{
		pln_json_open(&json, "target_table_information", '{');
		pln_json_text(&json, "table_name", dataset_full_name(origin->dataset));
		pln_json_close(&json, '}');
	}
	pln_json_close(&json, '}');
	pln_event(origin, "INFO", "planning_information",
			  psprintf("Flow '%s' has been planned to be executed as %s.",
					   flow_short_name(origin), technique),
			  json.data, NULL);
}

void
pln_event_listing(const PlnOrigin *origin, const char *source_path, int64 nfiles,
				  double elapsed_ms)
{
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_text(&json, "type", "AUTO_LOADER_LISTING");
	pln_json_text(&json, "status", "COMPLETED");
	pln_json_int(&json, "duration_ms", (int64) elapsed_ms);
	pln_json_open(&json, "auto_loader_details", '{');
	pln_json_text(&json, "source_path", source_path);
	pln_json_int(&json, "num_files_listed", nfiles);
	pln_json_close(&json, '}');
	pln_json_close(&json, '}');
	pln_event(origin, "INFO", "operation_progress",
			  psprintf("Listed " INT64_FORMAT " files for flow '%s'.", nfiles,
					   flow_short_name(origin)),
			  json.data, NULL);
}

void
pln_event_update_failed(const PlnOrigin *origin, const PlnOutcome *outcome)
{
	pln_event_notify(origin, "ERROR", "update_progress",
					 psprintf("Update %s is FAILED.", pln_update_short_id(origin->update)),
					 "{\"state\": \"FAILED\"}", error_json(outcome, NULL),
					 failure_notice(origin, NULL));
}

/* dialect-reference §3.4: which software ran it. */
void
pln_event_runtime_details(const PlnOrigin *origin)
{
	StringInfoData json;

	initStringInfo(&json);
	pln_json_open(&json, NULL, '{');
	pln_json_open(&json, "runtime_version", '{');
	pln_json_text(&json, "dbr_version",
				  psprintf("pipeline %s on PostgreSQL %s", PLN_SQL_VERSION, PG_VERSION));
	pln_json_close(&json, '}');
	pln_json_close(&json, '}');
	pln_event(origin, "INFO", "runtime_details", "Runtime details.", json.data, NULL);
}

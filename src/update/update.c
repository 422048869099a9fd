/*
 * update.c
 *	  One update of a pipeline: define, run the flows in order, report.
 *
 * Who commits: a non-atomic update commits after its start row, after the definitions and
 * after each dataset; an atomic one never does.  Every step that runs user SQL is an
 * attempt (attempt.c), so that a failed flow leaves its siblings and its own event behind.
 * All that outlives a commit is allocated under the runner's context, a child of the
 * portal's.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "portability/instr_time.h"
#include "utils/acl.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "access/table.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "analyze/define.h"
#include "base/debug_point.h"
#include "base/errors.h"
#include "base/guc.h"
#include "base/ident.h"
#include "base/lock.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "base/version.h"
#include "catalog/event_log.h"
#include "flow/flow.h"
#include "source/file_ledger.h"
#include "source/source.h"
#include "update/attempt.h"
#include "update/report.h"
#include "update/select.h"
#include "update/update.h"

typedef struct Runner
{
	PlnRequest *request;
	PlnPipeline *pipeline;
	PlnUpdate  *update;
	PlnProgram *program;
	MemoryContext context;
	PlnEventBuffer *buffer;		/* held back until something is done (interface §3.15) */
	PlnTally	tally;
	bool	   *selected;
	bool	   *blocked;		/* failed, skipped, or below such a node */
	ErrorData  *cancel;			/* to be rethrown at the end */
	instr_time	started;

	/* the flow that is being attempted */
	PlnFlowContext flow;
	bool		committed_needed;
} Runner;

/*
 * What is known of an atomic update that failed: its rows were rolled back with it and are
 * written again by pln_update_record_failure().
 */
typedef struct Failure
{
	char	   *schema_name;
	char	   *name;
	bool		full_refresh;
	List	   *selection;
	char	   *dataset_schema;
	char	   *dataset_name;
	PlnOutcome *outcome;
	char	   *samples;
} Failure;

static Failure *last_failure = NULL;
static MemoryContext failure_context = NULL;

/* This backend is updating a pipeline; nested updates are refused: flows keep state of their own
 * per backend. */
static bool running = false;

static double
elapsed_ms(instr_time *since)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, *since);
	return INSTR_TIME_GET_MILLISEC(now);
}

static PlnOrigin
origin_of(Runner *runner, PlnNode *node)
{
	PlnOrigin	origin = {runner->pipeline, runner->update, NULL, NULL, runner->buffer};

	if (node != NULL)
	{
		origin.dataset = node->dataset;
		origin.flow = node->flow;
	}
	return origin;
}

static void
set_state(Runner *runner, const char *state)
{
	PlnOrigin	origin = origin_of(runner, NULL);

	pln_update_set_state(runner->update, state);
	pln_event_update_progress(&origin, state);
}

static void
end_step(Runner *runner)
{
	if (runner->tally.worked + runner->tally.failed + runner->tally.skipped > 0)
		pln_event_buffer_flush(runner->buffer);
	if (runner->request->nonatomic)
		pln_spi_commit();
	else
		CommandCounterIncrement();
}

/* ---- definitions ---- */

static void
parse_program(Runner *runner)
{
	PlnRequest *request = runner->request;
	PlnScript  *script = request->script;

	if (request->create != NULL)
	{
		runner->program = pln_program_standalone(script, request->create, runner->pipeline,
												 request->owner);
		return;
	}
	if (request->native_query != NULL ||
		(runner->pipeline->standalone && runner->pipeline->source[0] == '\0'))
	{
		runner->program = pln_program_native(runner->pipeline, request->owner,
											 request->native_query, request->native_columns,
											 request->native_policy);
		return;
	}
	script = pln_parse_script(runner->pipeline->source, request->params, request->nparams);
	if (runner->pipeline->standalone)
	{
		PlnCreateDataset *create = linitial(script->stmts);
		List	   *datasets = pln_datasets_of_pipeline(runner->pipeline->id);

		/* the statement is kept as typed; a rename since then counts */
		if (datasets != NIL)
		{
			create->name->schema = ((PlnDataset *) linitial(datasets))->schema_name;
			create->name->name = ((PlnDataset *) linitial(datasets))->name;
		}
		runner->program = pln_program_standalone(script, create, runner->pipeline,
												 request->owner);
	}
	else
		runner->program = pln_program_build(script, runner->pipeline, request->owner);
}

/* What is fully refreshed is decided first: it may change types (define_table.c). */
static void
define_step(void *arg)
{
	Runner	   *runner = arg;

	parse_program(runner);
	runner->selected = pln_select_nodes(runner->program, runner->request);
	pln_select_full_refresh(runner->program, runner->request, runner->selected);
	pln_program_define(runner->program);
	runner->blocked = palloc0(sizeof(bool) * Max(runner->program->nnodes, 1));
}

/* A definition, or the "*" in it, means something else than at the last update. */
static void
say_changes(Runner *runner)
{
	ListCell   *lc;

	if (pln_guc_messages == PLN_MESSAGES_QUIET)
		return;
	foreach(lc, runner->program->plan)
	{
		PlnPlanItem *item = lfirst(lc);

		if (strcmp(item->change, "new") != 0)
			ereport(NOTICE, (errmsg("%s: %s; %s", item->dataset, item->change, item->effect)));
	}
}

static void
definition_events(Runner *runner)
{
	int			i;

	for (i = 0; i < runner->program->nnodes; i++)
	{
		PlnNode    *node = runner->program->nodes[runner->program->order[i]];
		PlnOrigin	origin = origin_of(runner, node);
		Relation	rel;
		const char *flow_type = "VIEW";

		if (node->dataset == NULL)
			continue;
		pln_event_dataset_definition(&origin, node->flow != NULL ? 1 : 0, node->expectations);
		if (node->flow != NULL)
			flow_type = pln_flow_ops(node->dataset)->flow_type;
		rel = table_open(node->dataset->relid, AccessShareLock);
		pln_event_flow_definition(&origin, node->input_names, flow_type, RelationGetDescr(rel),
								  NULL);
		table_close(rel, AccessShareLock);
		if (node->flow != NULL && runner->selected[node->index])
			pln_event_flow_progress(&origin, "QUEUED", NULL);
	}
}

/* ---- one dataset ---- */

static void
prepare_step(void *arg)
{
	Runner	   *runner = arg;
	PlnSecContext sec;

	/* rights are those of the owner; capture itself acts as the extension's owner */
	pln_enter_owner(&sec, runner->request->owner, runner->pipeline->settings);
	PushActiveSnapshot(GetTransactionSnapshot());
	runner->committed_needed = pln_flow_ops(runner->flow.dataset)->prepare(&runner->flow);
	PopActiveSnapshot();
	pln_leave(&sec);
}

static void
run_step(void *arg)
{
	Runner	   *runner = arg;

	pln_flow_ops(runner->flow.dataset)->run(&runner->flow);
}

#define FILE_TRIES 5

/* A file that changed while it was read is left out, and the flow tried again without it. */
static ErrorData *
run_flow(Runner *runner)
{
	ErrorData  *error;
	int			unstable;
	int			tries = 0;

	pln_file_batches_reset(false);
	do
	{
		unstable = pln_file_ledger_unstable();
		runner->flow.outcome->files = 0;
		error = pln_attempt(run_step, runner, runner->context);
		if (error == NULL || pln_file_ledger_unstable() == unstable)
			break;
		pln_file_batches_reset(true);
	} while (++tries < FILE_TRIES);
	/* nobody may read the batch once the flow is over */
	pln_file_batches_reset(false);
	return error;
}

static void
fill_flow(Runner *runner, PlnNode *node)
{
	PlnFlowContext *flow = &runner->flow;

	memset(flow, 0, sizeof(PlnFlowContext));
	flow->pipeline = runner->pipeline;
	flow->update = runner->update;
	flow->dataset = node->dataset;
	flow->flow = node->flow;
	flow->expectations = node->expectations;
	flow->retype = node->retype;
	flow->input_names = node->input_names;
	flow->owner = runner->request->owner;
	flow->full_refresh = node->full_refresh;
	flow->buffer = runner->buffer;
	flow->outcome = palloc0(sizeof(PlnOutcome));
	flow->outcome->dataset_id = node->dataset->id;
	flow->outcome->dataset_name = pln_node_display_name(node);
	flow->outcome->flow_name = node->flow->name;
}

static bool
is_noop(const PlnOutcome *outcome)
{
	return outcome->refresh_type != NULL && strcmp(outcome->refresh_type, "NO_OP") == 0;
}

static void
record_success(Runner *runner, PlnNode *node, PlnOrigin *origin)
{
	PlnOutcome *outcome = runner->flow.outcome;
	bool		batch = pln_flow_ops(node->dataset)->is_batch;

	outcome->state = "COMPLETED";
	if (batch)
	{
		pln_event_flow_progress(origin, "PLANNING", NULL);
		pln_event_planning(origin, outcome->refresh_type, runner->flow.reasons);
	}
	pln_event_flow_progress(origin, "STARTING", NULL);
	/* counts once: on RUNNING for streams, on COMPLETED for batch flows (reference §0.4) */
	pln_event_flow_progress(origin, "RUNNING", batch ? NULL : outcome);
	pln_event_flow_progress(origin, "COMPLETED", batch ? outcome : NULL);
	pln_update_outcome(runner->update, outcome);
	pln_dataset_refreshed(node->dataset->id, runner->update->id, outcome->refresh_type,
						  outcome->rows_out);
	runner->tally.completed++;
	if (!is_noop(outcome))
		runner->tally.worked++;
}

static void
describe_failure(Runner *runner, PlnOutcome *outcome, ErrorData *error)
{
	outcome->state = pln_error_is_cancel(error) ? "CANCELED" : "FAILED";
	outcome->refresh_type = NULL;
	outcome->sqlstate = pstrdup(unpack_sql_state(error->sqlerrcode));
	outcome->message = pln_report_error_text(error);
	outcome->detail = error->detail;
	outcome->hint = error->hint;
	outcome->constraint = error->constraint_name;
	outcome->rows_out = 0;
	outcome->rows_dropped = 0;
	outcome->rows_quarantined = 0;
}

static void
note_failure(Runner *runner, PlnNode *node, PlnOutcome *outcome, ErrorData *error)
{
	runner->blocked[node->index] = true;
	runner->tally.failed++;
	if (runner->tally.first_failure == NULL)
	{
		runner->tally.first_failure = outcome;
		runner->tally.first_error = error;
	}
	if (pln_error_is_cancel(error))
		runner->cancel = error;
}

static void
record_failure(Runner *runner, PlnNode *node, PlnOrigin *origin, ErrorData *error)
{
	PlnOutcome *outcome = runner->flow.outcome;
	char	   *samples = runner->flow.expect ? pln_expect_samples(runner->flow.expect) : NULL;

	describe_failure(runner, outcome, error);
	note_failure(runner, node, outcome, error);
	if (runner->flow.reasons != NIL)
	{
		pln_event_flow_progress(origin, "PLANNING", NULL);
		pln_event_planning(origin, "FULL_RECOMPUTE", runner->flow.reasons);
	}
	pln_event_flow_progress(origin, "STARTING", NULL);
	pln_event_flow_failed(origin, outcome, samples);
	pln_update_outcome(runner->update, outcome);
}

/* Keep what is needed to tell of it after the rollback. */
static void
remember_failure(Runner *runner, PlnNode *node, ErrorData *error)
{
	MemoryContext old;
	Failure    *failure;

	if (failure_context == NULL)
		failure_context = AllocSetContextCreate(TopMemoryContext, "pipeline failure",
												ALLOCSET_SMALL_SIZES);
	MemoryContextReset(failure_context);
	old = MemoryContextSwitchTo(failure_context);
	failure = palloc0(sizeof(Failure));
	failure->schema_name = pstrdup(runner->pipeline->schema_name);
	failure->name = pstrdup(runner->pipeline->name);
	failure->full_refresh = runner->request->full_refresh;
	failure->dataset_schema = pstrdup(node->schema);
	failure->dataset_name = pstrdup(node->name);
	failure->outcome = palloc0(sizeof(PlnOutcome));
	failure->outcome->dataset_name = pln_node_display_name(node);
	failure->outcome->flow_name = pstrdup(node->flow->name);
	if (runner->flow.expect != NULL)
		failure->samples = pln_expect_samples(runner->flow.expect);
	describe_failure(runner, failure->outcome, error);
	MemoryContextSwitchTo(old);
	last_failure = failure;
}

/* The error as it is for the owner, and what others may know of it for them. */
static void
raise_error(Runner *runner, ErrorData *error)
{
	if (!runner->request->hide_details || pln_error_is_cancel(error))
		ReThrowError(error);
	ereport(ERROR,
			(errcode(error->sqlerrcode),
			 errmsg("update of pipeline \"%s\" failed: %s",
					pln_pipeline_display_name(runner->pipeline),
					pln_report_discreet(unpack_sql_state(error->sqlerrcode),
										error->constraint_name))));
}

/* All or nothing: the first failure ends an atomic update. */
static void
raise_atomic(Runner *runner, PlnNode *node, ErrorData *error)
{
	remember_failure(runner, node, error);
	runner->flow.outcome->message = pln_report_error_text(error);
	note_failure(runner, node, runner->flow.outcome, error);
	if (runner->program->nnodes > 1 && !pln_error_is_cancel(error))
		pln_report_raise(runner->update, runner->pipeline, &runner->tally,
						 runner->request->hide_details);
	/* the statement was about this one dataset: its error is the statement's error */
	if (error->detail == NULL && strstr(runner->flow.outcome->message, "expectation \""))
		error->detail = runner->flow.outcome->message;
	raise_error(runner, error);
}

static void
skip_node(Runner *runner, PlnNode *node, const char *state)
{
	PlnOrigin	origin = origin_of(runner, node);
	PlnOutcome *outcome = palloc0(sizeof(PlnOutcome));

	outcome->dataset_id = node->dataset->id;
	outcome->dataset_name = pln_node_display_name(node);
	outcome->flow_name = node->flow->name;
	outcome->state = state;
	pln_event_flow_progress(&origin, state, NULL);
	pln_update_outcome(runner->update, outcome);
	if (strcmp(state, "SKIPPED") == 0)
		runner->tally.skipped++;
	pln_report_outcome(outcome, node->name, runner->request->hide_details);
}

static void
run_node(Runner *runner, PlnNode *node)
{
	PlnOrigin	origin = origin_of(runner, node);
	instr_time	start;
	ErrorData  *error;

	fill_flow(runner, node);
	INSTR_TIME_SET_CURRENT(start);
	error = pln_attempt(prepare_step, runner, runner->context);
	if (error == NULL && runner->committed_needed)
	{
		end_step(runner);
		pln_debug_point("capture started");
	}
	if (error == NULL)
		error = run_flow(runner);
	runner->flow.outcome->elapsed_ms = elapsed_ms(&start);
	if (error == NULL)
		record_success(runner, node, &origin);
	else if (!runner->request->nonatomic)
		raise_atomic(runner, node, error);
	else
		record_failure(runner, node, &origin, error);
	pln_report_outcome(runner->flow.outcome, node->name, runner->request->hide_details);
	pln_debug_point("before commit");
	end_step(runner);
}

static bool
has_blocked_input(Runner *runner, PlnNode *node)
{
	ListCell   *lc;

	foreach(lc, node->inputs)
	{
		if (runner->blocked[lfirst_int(lc)])
			return true;
	}
	return false;
}

static void
run_nodes(Runner *runner)
{
	int			i;

	for (i = 0; i < runner->program->nnodes; i++)
	{
		PlnNode    *node = runner->program->nodes[runner->program->order[i]];

		CHECK_FOR_INTERRUPTS();
		if (has_blocked_input(runner, node))
			runner->blocked[node->index] = true;
		if (node->flow == NULL)
			continue;
		if (runner->cancel != NULL)
			runner->blocked[node->index] = true;
		if (!runner->selected[node->index])
			skip_node(runner, node, "EXCLUDED");
		else if (runner->blocked[node->index])
			skip_node(runner, node, "SKIPPED");
		else
			run_node(runner, node);
	}
}

/* ---- the whole ---- */

static void
finish(Runner *runner, const char *state, const char *message)
{
	PlnOrigin	origin = origin_of(runner, NULL);

	runner->update->is_noop = runner->tally.worked == 0 && runner->tally.failed == 0 &&
		runner->tally.skipped == 0;
	pln_event_update_progress(&origin, state);
	pln_update_end(runner->update, state, message);
	if (runner->update->is_folded)
		pln_event_buffer_discard(runner->buffer);
	else
		pln_event_buffer_flush(runner->buffer);
	runner->request->state = pstrdup(state);
	end_step(runner);
}

static void
fail_definition(Runner *runner, ErrorData *error)
{
	PlnOrigin	origin = origin_of(runner, NULL);

	if (runner->request->nonatomic)
	{
		PlnOutcome	outcome;
		PlnNode    *node = runner->program ? runner->program->current : NULL;

		memset(&outcome, 0, sizeof(outcome));
		describe_failure(runner, &outcome, error);
		if (node != NULL)
			outcome.message = psprintf("%s: %s", pln_node_display_name(node), outcome.message);
		pln_event_update_failed(&origin, &outcome);
		pln_event_buffer_flush(runner->buffer);
		pln_update_end(runner->update, "FAILED", outcome.message);
		end_step(runner);
	}
	raise_error(runner, error);
}

static void
trim_step(void *arg)
{
	Runner	   *runner = arg;
	List	   *relids = NIL;
	ListCell   *lc;
	int			i;

	for (i = 0; i < runner->program->nnodes; i++)
		relids = list_concat_unique_oid(relids, runner->program->nodes[i]->input_relids);
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(lc, relids)
		pln_source_trim(lfirst_oid(lc));
	pln_event_log_trim(runner->pipeline->id);
	PopActiveSnapshot();
}

/*
 * Drop what every reader has passed, in a transaction of its own (correctness C3).  An update
 * is not failed by its clean-up: what is left now goes with the next one.
 */
static void
trim(Runner *runner)
{
	ErrorData  *error;

	if (!runner->request->nonatomic || runner->tally.worked == 0)
		return;
	error = pln_attempt(trim_step, runner, runner->context);
	if (error != NULL)
		ereport(LOG,
				(errmsg("clean-up after an update of pipeline \"%s\" failed: %s",
						pln_pipeline_display_name(runner->pipeline), error->message)));
	end_step(runner);
}

static void
run_update(Runner *runner)
{
	PlnRequest *request = runner->request;
	PlnOrigin	origin;
	ErrorData  *error;
	double		ms;

	pln_updates_close_orphans(runner->pipeline->id);
	runner->update = pln_update_start(runner->pipeline->id, request->cause,
									  request->full_refresh, false, request->datasets);
	request->update_id = runner->update->id;
	origin = origin_of(runner, NULL);
	pln_event_create_update(&origin);
	pln_event_user_action(&origin, "START");
	pln_event_runtime_details(&origin);
	set_state(runner, "INITIALIZING");
	end_step(runner);
	pln_debug_point("update started");

	error = pln_attempt(define_step, runner, runner->context);
	if (error != NULL)
		fail_definition(runner, error);
	if (request->full_refresh)
		set_state(runner, "RESETTING");
	set_state(runner, "SETTING_UP_TABLES");
	say_changes(runner);
	definition_events(runner);
	set_state(runner, "RUNNING");
	end_step(runner);
	pln_debug_point("tables set up");

	run_nodes(runner);
	ms = elapsed_ms(&runner->started);
	finish(runner, runner->cancel ? "CANCELED" : runner->tally.failed > 0 ? "FAILED" : "COMPLETED",
		   runner->tally.first_failure ? runner->tally.first_failure->message : NULL);
	pln_report_end(runner->update, runner->pipeline, &runner->tally, ms);
	if (runner->cancel == NULL)
		trim(runner);
	if (runner->cancel != NULL)
		ReThrowError(runner->cancel);
	if (runner->tally.failed > 0)
		pln_report_raise(runner->update, runner->pipeline, &runner->tally,
						 runner->request->hide_details);
}

/* False: busy, and the request is to be skipped. */
static bool
take_pipeline(PlnRequest *request)
{
	bool		wait = request->wait || pln_guc_on_busy == PLN_BUSY_WAIT;

	if (running)
		ereport(ERROR,
				(errcode(PLN_ERR_BUSY),
				 errmsg("an update cannot start inside another update"),
				 errdetail("A query, function or trigger of a dataset that is being updated tried "
						   "to update pipeline \"%s\".",
						   pln_pipeline_display_name(request->pipeline))));
	if (pln_lock_pipeline(request->pipeline->id, request->nonatomic, wait))
		return true;
	if (pln_guc_on_busy == PLN_BUSY_SKIP)
	{
		PlnOrigin	origin = {request->pipeline, NULL, NULL, NULL, NULL};

		pln_event(&origin, "WARN", "user_action",
				  "Update was skipped: another update of this pipeline is running.",
				  "{\"action\": \"START\", \"skipped\": true}", NULL);
		ereport(NOTICE,
				(errmsg("pipeline \"%s\": another update is running, this one is skipped",
						pln_pipeline_display_name(request->pipeline))));
		return false;
	}
	ereport(ERROR,
			(errcode(PLN_ERR_BUSY),
			 errmsg("an update of pipeline \"%s\" is running already",
					pln_pipeline_display_name(request->pipeline)),
			 errhint("Wait for it, or SET pipeline.on_busy = wait;")));
	return false;				/* keep compiler quiet */
}

static bool
same_text(const char *a, const char *b)
{
	return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static bool
same_json(const char *a, const char *b)
{
	return DatumGetBool(DirectFunctionCall2(jsonb_eq,
											DirectFunctionCall1(jsonb_in, CStringGetDatum(a)),
											DirectFunctionCall1(jsonb_in, CStringGetDatum(b))));
}

/* Written only when something of it changed: a run that does nothing leaves the row alone. */
static void
save_changed(PlnPipeline *pipeline)
{
	PlnPipeline *stored = pln_pipeline_get(pipeline->id);
	ListCell   *lc;
	ListCell   *lc2;
	bool		same;

	same = stored != NULL && stored->owner == pipeline->owner &&
		stored->standalone == pipeline->standalone && stored->dropped == pipeline->dropped &&
		same_text(stored->source, pipeline->source) &&
		same_text(stored->schema_name, pipeline->schema_name) &&
		same_text(stored->name, pipeline->name) &&
		list_length(stored->settings) == list_length(pipeline->settings) &&
		same_json(stored->parameters, pipeline->parameters);
	if (same)
	{
		forboth(lc, stored->settings, lc2, pipeline->settings)
			same &= strcmp(lfirst(lc), lfirst(lc2)) == 0;
	}
	if (!same)
		pln_pipeline_save(pipeline);
}

/*
 * The definition of a dataset of its own is the stored one, as it is once the lock is there: a
 * REFRESH that waited must not bring back what was replaced meanwhile.
 */
static void
reread(PlnRequest *request)
{
	PlnPipeline *stored = pln_pipeline_get(request->pipeline->id);

	if (stored == NULL || stored->dropped || stored->owner != request->pipeline->owner ||
		!same_text(stored->schema_name, request->pipeline->schema_name) ||
		!same_text(stored->name, request->pipeline->name))
		ereport(ERROR,
				(errcode(PLN_ERR_RETRY),
				 errmsg("dataset \"%s\" was dropped, renamed or given to another role while this "
						"update waited", pln_pipeline_display_name(request->pipeline)),
				 errhint("Look it up in pipeline.datasets, then run the statement again.")));
	request->pipeline = stored;
}

void
pln_update_run(PlnRequest *request)
{
	MemoryContext parent = request->nonatomic ? PortalContext : CurrentMemoryContext;
	Runner	   *volatile runner;
	MemoryContext old;

	last_failure = NULL;
	PreventCommandIfReadOnly("a pipeline update");
	pln_check_version();
	request->hide_details = !has_privs_of_role(GetUserId(), request->owner);
	if (request->pipeline->id == 0)
		pln_pipeline_save(request->pipeline);
	if (!take_pipeline(request))
		return;
	if (request->pipeline->standalone && request->create == NULL && request->native_query == NULL)
		reread(request);
	save_changed(request->pipeline);
	old = MemoryContextSwitchTo(AllocSetContextCreate(parent, "pipeline update",
													  ALLOCSET_DEFAULT_SIZES));
	runner = palloc0(sizeof(Runner));
	runner->request = request;
	runner->pipeline = request->pipeline;
	runner->context = CurrentMemoryContext;
	runner->buffer = pln_event_buffer_create(CurrentMemoryContext);
	INSTR_TIME_SET_CURRENT(((Runner *) runner)->started);
	running = true;
	PG_TRY();
	{
		run_update(runner);
	}
	PG_FINALLY();
	{
		running = false;
		if (request->nonatomic)
			pln_unlock_pipeline(request->pipeline->id);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
}

bool
pln_update_record_failure(void)
{
	Failure    *failure = last_failure;
	PlnPipeline *pipeline;
	PlnOrigin	origin;
	PlnUpdate  *update;
	List	   *flows;

	last_failure = NULL;
	if (failure == NULL)
		return false;
	pipeline = pln_pipeline_find(failure->schema_name, failure->name);
	if (pipeline == NULL)
		return false;			/* it was created by what is rolled back */
	update = pln_update_start(pipeline->id, "USER_ACTION", failure->full_refresh, false, NIL);
	memset(&origin, 0, sizeof(origin));
	origin.pipeline = pipeline;
	origin.update = update;
	origin.dataset = pln_dataset_find(failure->dataset_schema, failure->dataset_name);
	flows = origin.dataset ? pln_flows_of_dataset(origin.dataset->id) : NIL;
	origin.flow = flows ? linitial(flows) : NULL;
	pln_event_create_update(&origin);
	if (origin.dataset != NULL)
	{
		failure->outcome->dataset_id = origin.dataset->id;
		pln_event_flow_failed(&origin, failure->outcome, failure->samples);
		pln_update_outcome(update, failure->outcome);
	}
	origin.dataset = NULL;
	origin.flow = NULL;
	pln_event_update_progress(&origin, "FAILED");
	pln_update_end(update, "FAILED", failure->outcome->message);
	return true;
}

/* ---- checking ---- */

typedef struct CheckContext
{
	Runner		runner;
	PlnPipeline pipeline;		/* a copy: its id may be that of an undone row */
	bool		missing_ok;
	bool		file_io;
	List	   *plan;
} CheckContext;

static void
check_step(void *arg)
{
	CheckContext *check = arg;
	Runner	   *runner = &check->runner;
	int			i;

	pln_pipeline_save(runner->pipeline);
	parse_program(runner);
	runner->program->missing_ok = check->missing_ok;
	runner->program->allow_file_io = check->file_io;
	pln_program_define(runner->program);
	check->plan = runner->program->plan;
	runner->request->ndatasets = 0;
	for (i = 0; i < runner->program->nnodes; i++)
	{
		if (runner->program->nodes[i]->decl->dataset_kind != PLN_TEMPORARY_VIEW)
			runner->request->ndatasets++;
	}
}

List *
pln_update_check(PlnRequest *request, bool missing_ok, bool file_io)
{
	CheckContext check;
	ErrorData  *error;

	memset(&check, 0, sizeof(check));
	check.pipeline = *request->pipeline;
	check.runner.request = request;
	check.runner.pipeline = &check.pipeline;
	check.missing_ok = missing_ok;
	check.file_io = file_io;
	error = pln_attempt_undo(check_step, &check, CurrentMemoryContext);
	if (error != NULL)
		ReThrowError(error);
	return check.plan;
}

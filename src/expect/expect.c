/*
 * expect.c
 *	  Expectations: checked against a row type, compiled, evaluated in the pass that
 *	  writes the row.
 *
 * All conditions of a dataset are one expression program: a projection of the row onto one
 * boolean per expectation.  The result slot is filled from the left, so the first column
 * that still holds the sentinel tells which condition was being computed when an error
 * came.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/errors.h"
#include "catalog/updates.h"
#include "dialect/parse.h"
#include "expect/expect.h"

#define MAX_SAMPLES 10
#define MAX_ROW_TEXT 200
#define MAX_ROW_JSON 8192

/* No boolean has this value: "not computed yet". */
#define SENTINEL ((Datum) 0x7f)

typedef struct Rule
{
	char	   *name;
	PlnAction	action;
	PlnThresholdKind threshold_kind;
	double		threshold;
	int64		failed;
	char	   *first;			/* text of the first row that failed, for rules that can raise */
} Rule;

struct PlnExpectSet
{
	MemoryContext context;		/* counters and samples; survives the flow's error */
	int			n;
	Rule	   *rules;
	TupleDesc	desc;
	ExprContext *econtext;
	ProjectionInfo *projection;
	TupleTableSlot *result;
	Bitmapset  *violated;		/* by the last row */
	MemoryContext row_context;
	int64		rows;
	int64		dropped;
	int64		quarantined;
	int			nsamples;
	StringInfoData samples;		/* JSON array, not closed */
	bool		evaluating;
};

/* ---- analysis ---- */

/* What the rows are called in messages and in  dataset.column. */
static const char *
row_name(TupleDesc desc)
{
	Oid			relid = desc->tdtypeid == RECORDOID || !OidIsValid(desc->tdtypeid) ?
		InvalidOid : typeidTypeRelid(desc->tdtypeid);

	return OidIsValid(relid) ? get_rel_name(relid) : "row";
}

static ParseState *
row_parse_state(TupleDesc desc, const char *text)
{
	ParseState *pstate = make_parsestate(NULL);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	ParseNamespaceItem *item = palloc0(sizeof(ParseNamespaceItem));
	int			i;

	pstate->p_sourcetext = text;
	rte->rtekind = RTE_SUBQUERY;
	rte->alias = makeAlias(row_name(desc), NIL);
	rte->eref = makeAlias(row_name(desc), NIL);
	item->p_nscolumns = palloc0(sizeof(ParseNamespaceColumn) * Max(desc->natts, 1));
	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		ParseNamespaceColumn *column = &item->p_nscolumns[i];

		rte->eref->colnames = lappend(rte->eref->colnames,
									  makeString(att->attisdropped ? pstrdup("") :
												 pstrdup(NameStr(att->attname))));
		if (att->attisdropped)
			continue;
		column->p_varno = 1;
		column->p_varattno = att->attnum;
		column->p_vartype = att->atttypid;
		column->p_vartypmod = att->atttypmod;
		column->p_varcollid = att->attcollation;
		column->p_varnosyn = 1;
		column->p_varattnosyn = att->attnum;
	}
	pstate->p_rtable = list_make1(rte);
	item->p_names = rte->eref;
	item->p_rte = rte;
	item->p_rtindex = 1;
	item->p_cols_visible = true;
	item->p_lateral_ok = true;
	pstate->p_namespace = list_make1(item);
	return pstate;
}

/* Node of a kind that a condition must not hold: the first one, or NULL. */
static bool
forbidden_walker(Node *node, Node **found)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink) || IsA(node, Aggref) || IsA(node, GroupingFunc) ||
		IsA(node, WindowFunc) || (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcretset))
	{
		*found = node;
		return true;
	}
	return expression_tree_walker(node, forbidden_walker, found);
}

/* A condition is about one row (dialect-reference §2.1). */
static void
check_forbidden(ParseState *pstate, const char *name, Node *expr)
{
	Node	   *found = NULL;
	int			code = ERRCODE_FEATURE_NOT_SUPPORTED;
	const char *what;

	(void) forbidden_walker(expr, &found);
	if (found == NULL)
		return;
	if (IsA(found, SubLink))
		what = "a subquery";
	else if (IsA(found, WindowFunc))
	{
		what = "a window function";
		code = ERRCODE_WINDOWING_ERROR;
	}
	else if (IsA(found, FuncExpr))
		what = "a set-returning function";
	else
	{
		what = "an aggregate function";
		code = ERRCODE_GROUPING_ERROR;
	}
	ereport(ERROR,
			(errcode(code),
			 errmsg("expectation \"%s\" uses %s", name, what),
			 errdetail("A condition is about one row."),
			 errhint("Check the whole in a materialized view that has an expectation with FAIL "
					 "UPDATE."),
			 parser_errposition(pstate, exprLocation(found))));
}

Node *
pln_expect_analyze(const char *name, PlnSql *sql, TupleDesc desc)
{
	ParseState *pstate = row_parse_state(desc, sql->text);
	Node	   *expr;

	expr = transformExpr(pstate, pln_sql_parse_expr(sql), EXPR_KIND_OTHER);
	check_forbidden(pstate, name, expr);
	expr = coerce_to_boolean(pstate, expr, "EXPECT");
	assign_expr_collations(pstate, expr);
	if (contain_volatile_functions(expr))
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("expectation \"%s\" uses a volatile function", name),
				 errdetail("Its answer must depend on the row and the time of the update only.")));
	free_parsestate(pstate);
	return expr;
}

/* ---- compiling ---- */

static void
compile_context(void *arg)
{
	errcontext("expectation \"%s\"", (char *) arg);
}

/* The analysed, planned condition of one rule. */
static Expr *
compile_rule(PlnExpectationRow *row, TupleDesc desc)
{
	PlnSql	   *sql = pln_sql_make(row->condition);
	PlnErrorScope scope;
	ErrorContextCallback callback;
	Expr	   *expr;

	callback.callback = compile_context;
	callback.arg = row->name;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	pln_error_scope_begin(&scope, sql->script, sql);
	expr = (Expr *) pln_expect_analyze(row->name, sql, desc);
	pln_error_scope_end(&scope);
	/* constants are folded here, which can raise as well */
	expr = expression_planner(expr);
	error_context_stack = callback.previous;
	return expr;
}

PlnExpectSet *
pln_expect_compile(List *rows, TupleDesc desc, EState *estate)
{
	PlnExpectSet *set = palloc0(sizeof(PlnExpectSet));
	List	   *targets = NIL;
	TupleDesc	result;
	MemoryContext old;
	ListCell   *lc;

	set->context = CurrentMemoryContext;
	set->rules = palloc0(sizeof(Rule) * Max(list_length(rows), 1));
	set->desc = desc;
	initStringInfo(&set->samples);
	set->row_context = AllocSetContextCreate(CurrentMemoryContext, "pipeline expectation row",
											 ALLOCSET_SMALL_SIZES);
	foreach(lc, rows)
	{
		PlnExpectationRow *row = lfirst(lc);
		Rule	   *rule = &set->rules[set->n++];

		rule->name = pstrdup(row->name);
		rule->action = row->action;
		rule->threshold_kind = row->threshold_kind;
		rule->threshold = row->threshold;
		old = MemoryContextSwitchTo(estate->es_query_cxt);
		targets = lappend(targets, makeTargetEntry(compile_rule(row, desc), set->n,
												   pstrdup(row->name), false));
		MemoryContextSwitchTo(old);
	}
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	result = ExecTypeFromTL(targets);
	set->econtext = CreateExprContext(estate);
	set->result = MakeSingleTupleTableSlot(result, &TTSOpsVirtual);
	/* Vars mean the row given as scan tuple; slots of any kind may come */
	set->projection = ExecBuildProjectionInfo(targets, set->econtext, set->result, NULL, NULL);
	MemoryContextSwitchTo(old);
	return set;
}

/* ---- evaluating ---- */

static void
error_context(void *arg)
{
	PlnExpectSet *set = arg;
	int			i;

	if (!set->evaluating)
		return;
	for (i = 0; i < set->n; i++)
	{
		if (set->result->tts_values[i] == SENTINEL)
			break;
	}
	if (i < set->n)
		errcontext("expectation \"%s\"", set->rules[i].name);
}

static char *
row_text(PlnExpectSet *set, TupleTableSlot *slot)
{
	StringInfoData text;
	int			i;
	bool		first = true;

	initStringInfo(&text);
	appendStringInfoChar(&text, '(');
	slot_getallattrs(slot);
	for (i = 0; i < set->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(set->desc, i);
		Oid			output;
		bool		varlena;

		if (att->attisdropped)
			continue;
		appendStringInfoString(&text, first ? "" : ", ");
		first = false;
		if (slot->tts_isnull[i])
		{
			appendStringInfoString(&text, "null");
			continue;
		}
		getTypeOutputInfo(att->atttypid, &output, &varlena);
		appendStringInfoString(&text, OidOutputFunctionCall(output, slot->tts_values[i]));
	}
	if (text.len > MAX_ROW_TEXT)
	{
		text.len = pg_mbcliplen(text.data, text.len, MAX_ROW_TEXT);
		text.data[text.len] = '\0';
		appendStringInfoString(&text, "...");
	}
	appendStringInfoChar(&text, ')');
	return text.data;
}

/* The row as JSON; a row too large to keep as its clipped text. */
static char *
row_json(PlnExpectSet *set, TupleTableSlot *slot)
{
	bool		free_it;
	HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, &free_it);
	Datum		row = heap_copy_tuple_as_datum(tuple, set->desc);
	char	   *json = TextDatumGetCString(DirectFunctionCall1(row_to_json, row));
	StringInfoData clipped;

	if (strlen(json) <= MAX_ROW_JSON)
		return json;
	initStringInfo(&clipped);
	escape_json(&clipped, row_text(set, slot));
	return psprintf("{\"row\": %s}", clipped.data);
}

static bool
can_raise(Rule *rule)
{
	return rule->action == PLN_ACTION_FAIL || rule->threshold_kind != PLN_THRESHOLD_NONE;
}

/* Keep the row as an example of what the rules that can raise met. */
static void
keep_sample(PlnExpectSet *set, TupleTableSlot *slot, bool name_it)
{
	MemoryContext old = MemoryContextSwitchTo(set->row_context);
	int			i;

	if (set->nsamples < MAX_SAMPLES)
	{
		char	   *json = row_json(set, slot);

		appendStringInfo(&set->samples, "%s%s", set->nsamples++ == 0 ? "[" : ", ", json);
	}
	for (i = 0; name_it && i < set->n; i++)
	{
		Rule	   *rule = &set->rules[i];

		if (can_raise(rule) && rule->failed == 1 && rule->first == NULL)
			rule->first = MemoryContextStrdup(set->context, row_text(set, slot));
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(set->row_context);
}

PlnVerdict
pln_expect_eval(PlnExpectSet *set, TupleTableSlot *slot)
{
	ErrorContextCallback callback;
	PlnVerdict	verdict = PLN_ROW_KEEP;
	bool		sample = false;
	bool		first = false;
	int			i;

	for (i = 0; i < set->n; i++)
		set->result->tts_values[i] = SENTINEL;
	callback.callback = error_context;
	callback.arg = set;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	set->evaluating = true;
	ResetExprContext(set->econtext);
	set->econtext->ecxt_scantuple = slot;
	ExecClearTuple(set->result);
	(void) ExecProject(set->projection);
	set->evaluating = false;
	error_context_stack = callback.previous;

	set->rows++;
	if (set->violated != NULL)
	{
		bms_free(set->violated);
		set->violated = NULL;
	}
	for (i = 0; i < set->n; i++)
	{
		Rule	   *rule = &set->rules[i];

		if (!set->result->tts_isnull[i] && DatumGetBool(set->result->tts_values[i]))
			continue;
		rule->failed++;
		sample |= can_raise(rule);
		first |= can_raise(rule) && rule->failed == 1;
		if (rule->action == PLN_ACTION_WARN)
			continue;
		set->violated = bms_add_member(set->violated, i);
		if (rule->action == PLN_ACTION_FAIL)
			verdict = PLN_ROW_FAIL;
		else if (rule->action == PLN_ACTION_QUARANTINE && verdict != PLN_ROW_FAIL)
			verdict = PLN_ROW_QUARANTINE;
		else if (rule->action == PLN_ACTION_DROP && verdict == PLN_ROW_KEEP)
			verdict = PLN_ROW_DROP;
	}
	if (verdict == PLN_ROW_DROP)
		set->dropped++;
	else if (verdict == PLN_ROW_QUARANTINE)
		set->quarantined++;
	if (first || (sample && set->nsamples < MAX_SAMPLES))
		keep_sample(set, slot, first);
	return verdict;
}

/* ---- results ---- */

int
pln_expect_count(PlnExpectSet *set)
{
	return set->n;
}

Bitmapset *
pln_expect_last_violated(PlnExpectSet *set)
{
	return set->violated;
}

const char *
pln_expect_name(PlnExpectSet *set, int index)
{
	return set->rules[index].name;
}

static bool
above_threshold(PlnExpectSet *set, Rule *rule)
{
	switch (rule->threshold_kind)
	{
		case PLN_THRESHOLD_PERCENT:
			return set->rows > 0 && rule->failed * 100.0 > rule->threshold * set->rows;
		case PLN_THRESHOLD_ROWS:
			return rule->failed > rule->threshold;
		default:
			return rule->action == PLN_ACTION_FAIL && rule->failed > 0;
	}
}

/* The rules that raise besides the one that the message is about. */
static char *
others_text(PlnExpectSet *set, int after)
{
	StringInfoData text;
	int			i;

	initStringInfo(&text);
	for (i = after + 1; i < set->n; i++)
	{
		if (above_threshold(set, &set->rules[i]))
			appendStringInfo(&text, "%s\"%s\" (" INT64_FORMAT ")",
							 text.len > 0 ? ", " : " Violated as well: ", set->rules[i].name,
							 set->rules[i].failed);
	}
	if (text.len > 0)
		appendStringInfoChar(&text, '.');
	return text.data;
}

static char *
threshold_text(Rule *rule)
{
	if (rule->threshold_kind == PLN_THRESHOLD_NONE)
		return "";
	return psprintf(", more than %g%s", rule->threshold,
					rule->threshold_kind == PLN_THRESHOLD_PERCENT ? " percent" : "");
}

void
pln_expect_finish(PlnExpectSet *set, const char *target)
{
	int			i;

	for (i = 0; i < set->n; i++)
	{
		Rule	   *rule = &set->rules[i];

		if (!above_threshold(set, rule))
			continue;
		ereport(ERROR,
				(errcode(PLN_ERR_EXPECTATION),
				 errmsg("expectation \"%s\" violated by " INT64_FORMAT " of " INT64_FORMAT
						" rows%s%s%s", rule->name, rule->failed, set->rows,
						threshold_text(rule),
						rule->first ? ", first " : "", rule->first ? rule->first : ""),
				 errdetail("Nothing was written to %s.%s", target, others_text(set, i)),
				 err_generic_string(PG_DIAG_CONSTRAINT_NAME, rule->name)));
	}
}

List *
pln_expect_counts(PlnExpectSet *set)
{
	List	   *counts = NIL;
	int			i;

	for (i = 0; i < set->n; i++)
	{
		PlnQualityCount *count = palloc0(sizeof(PlnQualityCount));

		count->name = pstrdup(set->rules[i].name);
		count->action = pln_action_name(set->rules[i].action);
		count->failed = set->rules[i].failed;
		count->passed = set->rows - set->rules[i].failed;
		counts = lappend(counts, count);
	}
	return counts;
}

char *
pln_expect_samples(PlnExpectSet *set)
{
	return set->nsamples == 0 ? NULL : psprintf("%s]", set->samples.data);
}

int64
pln_expect_dropped(PlnExpectSet *set)
{
	return set->dropped;
}

int64
pln_expect_quarantined(PlnExpectSet *set)
{
	return set->quarantined;
}

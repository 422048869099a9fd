/*
 * inline_check.c
 *	  Expectations of temporary views.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "base/errors.h"
#include "expect/inline_check.h"

struct PlnInlineView
{
	char	   *name;
	int			n;
	char	  **rules;
	PlnAction  *actions;
	int64	   *failed;
	int64		rows;
	int64		dropped;
};

static MemoryContext inline_context = NULL;
static List *views = NIL;
static uint64 generation = 0;

void
pln_inline_reset(void)
{
	if (inline_context == NULL)
		inline_context = AllocSetContextCreate(TopMemoryContext, "pipeline inline checks",
											   ALLOCSET_SMALL_SIZES);
	MemoryContextReset(inline_context);
	views = NIL;
	generation++;
}

uint64
pln_inline_generation(void)
{
	return generation;
}

static void
fill_rules(PlnInlineView *view, ArrayType *rules, ArrayType *actions)
{
	Datum	   *names;
	Datum	   *words;
	int			nwords;
	int			i;

	deconstruct_array(rules, TEXTOID, -1, false, TYPALIGN_INT, &names, NULL, &view->n);
	deconstruct_array(actions, TEXTOID, -1, false, TYPALIGN_INT, &words, NULL, &nwords);
	if (nwords != view->n)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("check_row needs as many actions as rules")));
	view->rules = palloc(sizeof(char *) * Max(view->n, 1));
	view->actions = palloc(sizeof(PlnAction) * Max(view->n, 1));
	view->failed = palloc0(sizeof(int64) * Max(view->n, 1));
	for (i = 0; i < view->n; i++)
	{
		view->rules[i] = TextDatumGetCString(names[i]);
		if (!pln_action_from_name(TextDatumGetCString(words[i]), &view->actions[i]))
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("unknown action \"%s\"", TextDatumGetCString(words[i]))));
	}
}

PlnInlineView *
pln_inline_view(const char *name, ArrayType *rules, ArrayType *actions)
{
	MemoryContext old;
	PlnInlineView *view;
	ListCell   *lc;

	if (inline_context == NULL)
		pln_inline_reset();
	foreach(lc, views)
	{
		view = lfirst(lc);
		if (strcmp(view->name, name) == 0)
			return view;
	}
	old = MemoryContextSwitchTo(inline_context);
	view = palloc0(sizeof(PlnInlineView));
	view->name = pstrdup(name);
	fill_rules(view, rules, actions);
	views = lappend(views, view);
	MemoryContextSwitchTo(old);
	return view;
}

bool
pln_inline_count(PlnInlineView *view, int n, const Datum *results, const bool *nulls)
{
	bool		keep = true;
	int			i;

	if (n != view->n)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("check_row needs as many results as rules")));
	view->rows++;
	for (i = 0; i < n; i++)
	{
		if (!nulls[i] && DatumGetBool(results[i]))
			continue;
		view->failed[i]++;
		if (view->actions[i] != PLN_ACTION_WARN)
			keep = false;
	}
	if (!keep)
		view->dropped++;
	return keep;
}

List *
pln_inline_counts(void)
{
	List	   *counts = NIL;
	ListCell   *lc;
	int			i;

	foreach(lc, views)
	{
		PlnInlineView *view = lfirst(lc);

		for (i = 0; i < view->n; i++)
		{
			PlnQualityCount *count = palloc0(sizeof(PlnQualityCount));

			count->dataset = pstrdup(view->name);
			count->name = pstrdup(view->rules[i]);
			count->action = pln_action_name(view->actions[i]);
			count->failed = view->failed[i];
			count->passed = view->rows - view->failed[i];
			counts = lappend(counts, count);
		}
	}
	return counts;
}

int64
pln_inline_dropped(void)
{
	int64		dropped = 0;
	ListCell   *lc;

	foreach(lc, views)
		dropped += ((PlnInlineView *) lfirst(lc))->dropped;
	return dropped;
}

void
pln_inline_finish(void)
{
	ListCell   *lc;
	int			i;

	foreach(lc, views)
	{
		PlnInlineView *view = lfirst(lc);

		for (i = 0; i < view->n; i++)
		{
			if (view->actions[i] != PLN_ACTION_FAIL || view->failed[i] == 0)
				continue;
			ereport(ERROR,
					(errcode(PLN_ERR_EXPECTATION),
					 errmsg("expectation \"%s\" of temporary view \"%s\" violated by "
							INT64_FORMAT " of " INT64_FORMAT " rows",
							view->rules[i], view->name, view->failed[i], view->rows),
					 err_generic_string(PG_DIAG_CONSTRAINT_NAME, view->rules[i])));
		}
	}
}

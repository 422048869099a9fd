/*
 * track.c
 *	  Follows a token stream of SQL far enough to know where a FROM item may begin.
 *
 * That is all the SQL that we read by ourselves: STREAM, LIVE, read_files and names
 * given by parameters mean something of their own only there.
 */
#include "postgres.h"

#include "dialect/internal.h"

static const char *const clause_words[] = {
	"where", "group", "having", "window", "order", "limit", "offset", "fetch", "union",
	"intersect", "except", "minus", "returning", "qualify", "select", "set", "when", "for",
	"values", NULL
};

/* Words behind which a plain statement names a relation. */
static const char *const target_words[] = {
	"into", "update", "table", "view", "schema", "references", NULL
};

/* Words that may stand between those and the name. */
static const char *const filler_words[] = {
	"lateral", "only", "if", "not", "exists", NULL
};

static bool
word_in(const PlnToken *token, const char *const *words)
{
	for (; *words != NULL; words++)
	{
		if (pln_token_is(token, *words))
			return true;
	}
	return false;
}

bool
pln_token_begins_query(const PlnToken *token)
{
	return pln_token_is(token, "select") || pln_token_is(token, "with") ||
		pln_token_is(token, "values") || pln_token_is(token, "table");
}

/* The closing parenthesis that belongs to tok[open], or n. */
int
pln_matching_paren(const PlnToken *tok, int n, int open)
{
	int			depth = 0;
	int			i;

	for (i = open; i < n; i++)
	{
		if (tok[i].type == '(')
			depth++;
		else if (tok[i].type == ')' && --depth == 0)
			return i;
	}
	return n;
}

static void
push_level(PlnTracker *t, bool query, bool call, bool in_from)
{
	PlnTrackLevel *level;

	if (++t->depth >= t->max_depth)
	{
		t->max_depth *= 2;
		t->levels = repalloc_array(t->levels, PlnTrackLevel, t->max_depth);
	}
	level = &t->levels[t->depth];
	level->query = query;
	level->call = call;
	level->in_from = in_from;
	level->from_token = -1;
}

/* expect_item: the first token is a FROM item itself. */
void
pln_track_begin(PlnTracker *t, const PlnToken *tok, int n, bool expect_item)
{
	t->max_depth = 16;
	t->levels = palloc_array(PlnTrackLevel, t->max_depth);
	t->depth = -1;
	push_level(t, true, false, expect_item);
	t->expect = expect_item;
	t->item = false;
	t->merge = n > 0 && pln_token_is(&tok[0], "merge");
}

static void
open_paren(PlnTracker *t, const PlnToken *next)
{
	if (pln_token_begins_query(next))
	{
		push_level(t, true, false, false);
		t->expect = false;
	}
	else if (t->expect)
		push_level(t, false, false, true);	/* a join in parentheses, or STREAM(x) */
	else
		push_level(t, false, true, false);
}

/* Does this FROM open a clause (and not belong to EXTRACT, TRIM, IS DISTINCT FROM)? */
static bool
is_from_clause(PlnTracker *t, const PlnToken *tok, int i)
{
	if (t->levels[t->depth].call)
		return false;
	return !(i >= 2 && pln_token_is(&tok[i - 1], "distinct") &&
			 (pln_token_is(&tok[i - 2], "is") || pln_token_is(&tok[i - 2], "not")));
}

/*
 * Take token i into account.  Afterwards t->item says whether it may begin a FROM item
 * (or is the name behind INTO, UPDATE, TABLE).
 */
void
pln_track_step(PlnTracker *t, const PlnToken *tok, int n, int i)
{
	const PlnToken *token = &tok[i];
	PlnTrackLevel *level = &t->levels[t->depth];
	bool		after_dot = i > 0 && tok[i - 1].type == '.';

	t->item = t->expect && !after_dot;
	if (token->type == '(')
	{
		t->item = false;
		open_paren(t, &tok[i + 1]);
		return;
	}
	if (token->type == ')')
	{
		if (t->depth > 0)
			t->depth--;
		t->expect = false;
		return;
	}
	if (token->type == ',')
	{
		t->expect = level->in_from;
		return;
	}
	if (after_dot || token->type != PLN_T_IDENT || token->quote != 0)
	{
		t->expect = false;
		return;
	}
	if (t->expect && (word_in(token, filler_words) ||
					  (pln_token_is(token, "stream") &&
					   (tok[i + 1].type == '(' || pln_token_names_relation(&tok[i + 1])))))
		return;					/* the item is still to come */
	t->expect = false;
	if (pln_token_is(token, "from"))
	{
		if (is_from_clause(t, tok, i))
		{
			level->in_from = true;
			level->from_token = i;
			t->expect = true;
		}
	}
	else if (pln_token_is(token, "join"))
		t->expect = level->in_from;
	else if (pln_token_is(token, "using"))
		t->expect = t->merge && t->depth == 0;
	else if (word_in(token, target_words))
		t->expect = !level->call;
	else if (word_in(token, clause_words))
	{
		level->in_from = false;
		if (pln_token_is(token, "select"))
			level->from_token = -1;
	}
}

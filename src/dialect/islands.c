/*
 * islands.c
 *	  Embedded SQL between the tokens of our own grammar: where it ends.
 *
 * An island ends at the end of the statement, at a closing parenthesis that it did not
 * open, or in front of the word that must follow it; a word ends it only outside of
 * parentheses and not as its first token.
 */
#include "postgres.h"

#include "base/errors.h"
#include "dialect/internal.h"

typedef struct StopWords
{
	const char *first;
	const char *second;			/* NULL: whatever follows */
} StopWords;

static const StopWords column_stops[] = {
	{"comment", NULL}, {"constraint", NULL}, {"primary", "key"}, {"foreign", "key"},
	{"references", NULL}, {"check", NULL}, {"unique", NULL}, {"mask", NULL},
	{"generated", NULL}, {"default", NULL}, {NULL, NULL}
};

static const StopWords keys_stops[] = {
	{"keys", NULL}, {NULL, NULL}
};

static const StopWords cdc_stops[] = {
	{"apply", "as"}, {"sequence", "by"}, {"ignore", "null"}, {"system", "sequence"},
	{"columns", NULL}, {"stored", "as"}, {"track", "history"}, {NULL, NULL}
};

static const StopWords by_name_stops[] = {
	{"by", "name"}, {"select", NULL}, {"with", NULL}, {"values", NULL}, {"table", NULL},
	{NULL, NULL}
};

static const StopWords sync_stops[] = {
	{"sync", NULL}, {"async", NULL}, {"full", NULL}, {NULL, NULL}
};

/* Indexed by PlnIslandEnd. */
static const StopWords *const stops[] = {
	NULL, NULL, column_stops, keys_stops, cdc_stops, by_name_stops, sync_stops
};

static const PlnToken *
tok(PlnParser *ps, int i)
{
	return &ps->tok[i >= 0 && i < ps->n ? i : ps->n];
}

void
pln_syntax_error(PlnParser *ps, int i)
{
	const PlnToken *token = tok(ps, i);

	if (token->type == PLN_T_END && ps->script->source[token->location] != ';')
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("syntax error at end of input"),
				 pln_script_errposition(ps->script, token->location)));
	ereport(ERROR,
			(errcode(PLN_ERR_SYNTAX),
			 errmsg("syntax error at or near \"%s\"",
					token->type == PLN_T_END ? ";"
					: pnstrdup(ps->script->source + token->location,
							   token->end - token->location)),
			 pln_script_errposition(ps->script, token->location)));
}

/* A clause that is known and not built. */
void
pln_refuse(PlnParser *ps, int location, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("%s is not supported", what),
			 hint ? errhint("%s", hint) : 0,
			 pln_script_errposition(ps->script, location)));
}

static bool
is_stop(PlnParser *ps, int i, const StopWords *words)
{
	/* NOT NULL ends a column's DEFAULT, IS NOT NULL does not */
	if (words == column_stops && pln_token_is(tok(ps, i), "not") &&
		pln_token_is(tok(ps, i + 1), "null") && !pln_token_is(tok(ps, i - 1), "is"))
		return true;
	for (; words->first != NULL; words++)
	{
		if (pln_token_is(tok(ps, i), words->first) &&
			(words->second == NULL || pln_token_is(tok(ps, i + 1), words->second)))
			return true;
	}
	return false;
}

/* How much a token changes the depth of STRUCT<a: INT, ...>. */
static int
angle_change(const PlnToken *token)
{
	if (token->type == '<')
		return 1;
	if (token->type == '>')
		return -1;
	if (token->type == PLN_T_OP && strspn(token->str, ">") == strlen(token->str))
		return -(int) strlen(token->str);
	return 0;
}

static int
island_end(PlnParser *ps, PlnIslandEnd until, bool type)
{
	int			depth = 0;
	int			angle = 0;
	int			i;

	for (i = ps->pos; i < ps->n; i++)
	{
		const PlnToken *token = &ps->tok[i];

		if (token->type == '(' || token->type == '[')
			depth++;
		else if (token->type == ')' || token->type == ']')
		{
			if (depth == 0)
				break;
			depth--;
		}
		else if (type)
			angle += angle_change(token);
		if (depth > 0 || angle > 0)
			continue;
		if (until == PLN_UNTIL_COLUMN_CLAUSE && token->type == ',')
			break;
		if (i > ps->pos && stops[until] != NULL && is_stop(ps, i, stops[until]))
			break;
	}
	return i;
}

/* The SQL from the current token on, its syntax checked; the parser stands behind it. */
PlnSql *
pln_read_island(PlnParser *ps, PlnIslandEnd until, PlnSqlKind kind)
{
	int			end = island_end(ps, until, false);
	PlnSql	   *sql;

	if (end <= ps->pos)
		pln_syntax_error(ps, ps->pos);
	sql = pln_embed(ps, ps->pos, end, kind, NULL);
	pln_sql_check(sql, kind);
	ps->pos = end;
	return sql;
}

/* A column's type; a view's column has none. */
void
pln_read_type(PlnParser *ps, PlnColumnDef *column)
{
	int			end;
	PlnSql	   *sql;

	/* no type: the first token is a column clause already */
	if (is_stop(ps, ps->pos, column_stops))
		return;
	end = island_end(ps, PLN_UNTIL_COLUMN_CLAUSE, true);
	if (end <= ps->pos)
		return;
	sql = pln_embed(ps, ps->pos, end, PLN_SQL_TYPE, NULL);
	column->type = pln_sql_parse_type(sql);
	column->type_text = sql->original;
	ps->pos = end;
}

/*
 * tokens.c
 *	  Operators, literals and clauses that the server's grammar does not take, rewritten
 *	  token by token into what it takes; known forms that are not built are refused.
 *
 * A rule looks at the tokens around it and never at names in the catalog.  What can be
 * parsed as it stands is left to rewrite.c.
 */
#include "postgres.h"

#include "common/keywords.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "dialect/internal.h"

static const char *const interval_units[] = {
	"year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond",
	NULL
};

/* These may follow INTERVAL 'n' in the server's grammar. */
static const char *const native_units[] = {
	"year", "month", "day", "hour", "minute", "second", NULL
};

static const char *const bare_functions[] = {
	"current_timestamp", "current_date", "current_time", "localtimestamp", "localtime",
	"current_user", "session_user", "current_role", "current_catalog", NULL
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

static const PlnToken *
tok(PlnEmbed *e, int i)
{
	return pln_embed_token(e, i);
}

static bool
is_reserved(const PlnToken *token)
{
	int			keyword;

	if (token->type != PLN_T_IDENT || token->quote != 0)
		return false;
	keyword = ScanKeywordLookup(token->str, &ScanKeywords);
	return keyword >= 0 && ScanKeywordCategories[keyword] == RESERVED_KEYWORD;
}

static bool
is_constant(const PlnToken *token)
{
	return token->type == PLN_T_ICONST || token->type == PLN_T_FCONST ||
		token->type == PLN_T_SCONST || token->type == PLN_T_PARAMREF;
}

/* Can an operand end with this token? */
static bool
ends_operand(const PlnToken *token)
{
	return is_constant(token) || token->type == ')' || token->type == ']' ||
		(token->type == PLN_T_IDENT && (!is_reserved(token) || pln_token_is(token, "end") ||
										pln_token_is(token, "null") ||
										pln_token_is(token, "true") ||
										pln_token_is(token, "false")));
}

static bool
begins_operand(const PlnToken *token)
{
	return is_constant(token) || token->type == '(' ||
		(token->type == PLN_T_IDENT && (!is_reserved(token) || pln_token_is(token, "case") ||
										pln_token_is(token, "cast") ||
										pln_token_is(token, "null")));
}

static bool
is_interval_unit(const PlnToken *token, const char **unit)
{
	const char *const *u;

	if (token->type != PLN_T_IDENT || token->quote != 0)
		return false;
	for (u = interval_units; *u != NULL; u++)
	{
		size_t		n = strlen(*u);

		if (strncmp(token->str, *u, n) == 0 &&
			(token->str[n] == '\0' || strcmp(token->str + n, "s") == 0))
		{
			*unit = token->str;
			return true;
		}
	}
	return false;
}

/* INTERVAL 5 MINUTES, INTERVAL 1 DAY 2 HOURS, INTERVAL '5' MINUTES -> INTERVAL '5 minutes' */
static void
interval_rule(PlnEmbed *e, int i)
{
	StringInfoData buf;
	int			to = i + 1;
	const char *unit;

	if (tok(e, to)->type == PLN_T_SCONST && word_in(tok(e, to + 1), native_units))
		return;
	initStringInfo(&buf);
	for (;;)
	{
		bool		minus = tok(e, to)->type == '-';
		const PlnToken *number = tok(e, to + minus);
		const char *value;

		if (!is_constant(number) || !is_interval_unit(tok(e, to + minus + 1), &unit))
			break;
		value = number->type == PLN_T_PARAMREF ? pln_param_value(e->ps, number) : number->str;
		if (number->type == PLN_T_PARAMREF && !pln_is_number(value))
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("value of parameter \"%s\" is not a number", number->str),
					 pln_script_errposition(e->ps->script, number->location)));
		appendStringInfo(&buf, "%s%s%s %s", buf.len > 0 ? " " : "", minus ? "-" : "", value, unit);
		to += minus + 2;
	}
	if (buf.len == 0)
		return;
	e->edit[i].text = psprintf("INTERVAL %s", quote_literal_cstr(buf.data));
	pln_embed_drop(e, i + 1, to);
}

/* TRY_CAST(x AS type) -> pipeline.try_cast((x), NULL::type) */
static void
try_cast_rule(PlnEmbed *e, int i)
{
	int			close = pln_matching_paren(e->tok, e->n, i + 1);
	int			depth = 0;
	int			as = -1;
	int			j;

	for (j = i + 2; j < close; j++)
	{
		if (e->tok[j].type == '(')
			depth++;
		else if (e->tok[j].type == ')')
			depth--;
		else if (depth == 0 && pln_token_is(&e->tok[j], "as"))
			as = j;
	}
	if (as < i + 3 || as + 1 >= close)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("syntax error in TRY_CAST"),
				 errhint("Write  TRY_CAST(expression AS type)."),
				 pln_script_errposition(e->ps->script, e->tok[i].location)));
	e->edit[i].text = "pipeline.try_cast";
	e->edit[i + 1].after = "(";
	e->edit[as].text = "), NULL::";
}

/* The token behind the > that closes the < at i, or -1. */
static int
matching_angle(PlnEmbed *e, int i)
{
	int			depth = 0;

	for (; i < e->n; i++)
	{
		const PlnToken *token = &e->tok[i];

		if (token->type == '<')
			depth++;
		else if (token->type == '>')
			depth--;
		else if (token->type == PLN_T_OP && strspn(token->str, ">") == strlen(token->str))
			depth -= strlen(token->str);
		else if (token->type == ';')
			return -1;
		if (depth <= 0)
			return depth == 0 ? i + 1 : -1;
	}
	return -1;
}

/* ARRAY<type> -> type[]; STRUCT<...>, MAP<...> and nested ones -> jsonb */
static void
complex_type_rule(PlnEmbed *e, int i)
{
	int			to = matching_angle(e, i + 1);
	int			j;

	if (to < 0)
		return;
	/* a comparison of columns with these names: only a type has ", name" or ":" inside */
	if (!pln_token_is(&e->tok[i], "array") && e->kind != PLN_SQL_TYPE &&
		!pln_token_is(tok(e, i - 1), "as") && tok(e, i - 1)->type != PLN_T_TYPECAST)
		return;
	if (pln_token_is(&e->tok[i], "array"))
	{
		for (j = i + 2; j < to - 1 && e->tok[j].type != '<'; j++)
			;
		if (j == to - 1 && to - i > 3)
		{
			pln_embed_drop(e, i, i + 2);
			e->edit[to - 1].text = "[]";
			return;
		}
	}
	e->edit[i].text = "jsonb";
	pln_embed_drop(e, i + 1, to);
}

/* One step of a JSON path at i: .name, [0], ['name']; appends it and returns what follows. */
static int
json_step(PlnEmbed *e, int i, List **path)
{
	const PlnToken *next = tok(e, i + 1);

	if (tok(e, i)->type == '.' && next->type == PLN_T_IDENT)
	{
		*path = lappend(*path, next->quote != 0 ? next->str
						: pnstrdup(e->ps->script->source + next->location,
								   next->end - next->location));
		return i + 2;
	}
	if (tok(e, i)->type == '[' && tok(e, i + 2)->type == ']' &&
		(next->type == PLN_T_ICONST || next->type == PLN_T_SCONST || next->quote == '"'))
	{
		*path = lappend(*path, next->str);
		return i + 3;
	}
	if (tok(e, i)->type == '[' && next->type == '*')
		pln_refuse_token(e, i + 1, "[*] in a JSON path",
						 "Use jsonb_path_query_array(column::jsonb, '$.path[*]').");
	return i;
}

/* First token of the name chain or call that ends before i. */
static int
operand_start(PlnEmbed *e, int i)
{
	int			from = i - 1;
	int			depth = 0;

	if (e->tok[from].type == ')' || e->tok[from].type == ']')
	{
		for (; from >= 0; from--)
		{
			if (e->tok[from].type == ')' || e->tok[from].type == ']')
				depth++;
			else if ((e->tok[from].type == '(' || e->tok[from].type == '[') && --depth == 0)
				break;
		}
		if (from < 0)
			return -1;
		if (!(from > 0 && e->tok[from - 1].type == PLN_T_IDENT && !is_reserved(&e->tok[from - 1])))
			return from;
		from--;
	}
	while (from >= 2 && e->tok[from - 1].type == '.' && e->tok[from - 2].type == PLN_T_IDENT)
		from -= 2;
	return from;
}

/* Is the colon at i that of a slice, a[1:n]? */
static bool
in_slice(PlnEmbed *e, int i)
{
	int			depth = 0;

	for (i--; i >= 0; i--)
	{
		if (e->tok[i].type == ')' || e->tok[i].type == ']')
			depth++;
		else if (e->tok[i].type == '(' || e->tok[i].type == '[')
		{
			if (depth-- == 0)
				return e->tok[i].type == '[' && !pln_token_is(tok(e, i - 1), "array");
		}
	}
	return false;
}

/* Are the tokens [from, to) a target of the SELECT list, without a name? */
static bool
is_whole_target(PlnEmbed *e, int from, int to)
{
	PlnTrackLevel *level = &e->track.levels[e->track.depth];
	const PlnToken *before = tok(e, from - 1);
	const PlnToken *after = tok(e, to);

	return level->query && !level->in_from && level->from_token < 0 &&
		(before->type == ',' || pln_token_is(before, "select") ||
		 pln_token_is(before, "distinct")) &&
		(after->type == ',' || pln_token_is(after, "from"));
}

/* column:a.b[0] -> ((column)::jsonb #>> '{a,b,0}') */
static void
json_path_rule(PlnEmbed *e, int i)
{
	List	   *path = NIL;
	StringInfoData buf;
	ListCell   *lc;
	const PlnToken *prev = tok(e, i - 1);
	int			from;
	int			to;
	int			next;

	if ((prev->type != PLN_T_IDENT && prev->type != ')' && prev->type != ']') || in_slice(e, i))
		return;
	from = operand_start(e, i);
	if (from < 0 || e->edit[from].before != NULL)
		return;
	if (tok(e, i + 1)->type == PLN_T_IDENT)
	{
		const PlnToken *first = tok(e, i + 1);

		path = list_make1(first->quote != 0 ? first->str
						  : pnstrdup(e->ps->script->source + first->location,
									 first->end - first->location));
		to = i + 2;
	}
	else
		to = json_step(e, i + 1, &path);
	if (path == NIL)
		return;					/* the server's parser will complain */
	while ((next = json_step(e, to, &path)) > to)
		to = next;

	initStringInfo(&buf);
	foreach(lc, path)
		appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : "", quote_literal_cstr(lfirst(lc)));
	e->edit[from].before = "((";
	e->edit[i].text = psprintf(")::jsonb #>> ARRAY[%s])%s%s", buf.data,
							   is_whole_target(e, from, to) ? " AS " : "",
							   is_whole_target(e, from, to) ? pln_quote_word(llast(path)) : "");
	pln_embed_drop(e, i + 1, to);
}

/* a [NOT] RLIKE b -> a ~ b, a !~ b */
static void
rlike_rule(PlnEmbed *e, int i)
{
	bool		negated = pln_token_is(tok(e, i - 1), "not");

	if (!ends_operand(tok(e, negated ? i - 2 : i - 1)) || !begins_operand(tok(e, i + 1)))
		return;
	if (negated)
		pln_embed_drop(e, i - 1, i);
	e->edit[i].text = negated ? "!~" : "~";
}

static void
mark_expand(PlnEmbed *e, int i)
{
	if (!e->sql->needs_expand)
		e->sql->expand_location = e->tok[i].location;
	e->sql->needs_expand = true;
}

/* SELECT * EXCEPT (a, b): the list becomes a marker target behind the star. */
static void
star_except_rule(PlnEmbed *e, int i)
{
	StringInfoData buf;
	int			j = i + 2;
	const PlnToken *before = tok(e, i - 2);

	if (!(before->type == ',' || before->type == '.' || before->type == ')' ||
		  pln_token_is(before, "select") || pln_token_is(before, "distinct") ||
		  pln_token_is(before, "all")))
		return;
	if (pln_token_begins_query(tok(e, j)) || tok(e, j)->type != PLN_T_IDENT)
		return;					/* the set operation */
	initStringInfo(&buf);
	appendStringInfoString(&buf, ", ARRAY[");
	for (;; j += 2)
	{
		if (tok(e, j)->type != PLN_T_IDENT)
			return;
		appendStringInfoString(&buf, quote_literal_cstr(tok(e, j)->str));
		if (tok(e, j + 1)->type == ')')
			break;
		if (tok(e, j + 1)->type != ',')
			return;
		appendStringInfoString(&buf, ", ");
	}
	appendStringInfoString(&buf, "] AS \"?except?\"");
	e->edit[i].text = buf.data;
	pln_embed_drop(e, i + 1, j + 2);
	mark_expand(e, i);
}

static const char *const after_qualify[] = {
	"order", "limit", "offset", "fetch", "union", "intersect", "except", "minus", "window",
	"for", NULL
};

/* QUALIFY condition: moved behind the targets of its SELECT, as a marker target. */
static void
qualify_rule(PlnEmbed *e, int i)
{
	PlnTrackLevel *level = &e->track.levels[e->track.depth];
	int			depth = 0;
	int			to;
	int			at;
	int			j;

	if (!level->query || !begins_operand(tok(e, i + 1)) || pln_token_is(tok(e, i - 1), "as") ||
		tok(e, i - 1)->type == ',')
		return;
	for (to = i + 1; to < e->n; to++)
	{
		if (e->tok[to].type == '(')
			depth++;
		else if (e->tok[to].type == ')' && --depth < 0)
			break;
		else if (depth == 0 && word_in(&e->tok[to], after_qualify))
			break;
	}
	if (to == i + 1)
		return;
	at = level->from_token >= 0 ? level->from_token : i;
	e->edit[at].insert_from = i + 1;
	e->edit[at].insert_to = to;
	for (j = i + 1; j < to; j++)
		e->edit[j].moved = true;
	pln_embed_drop(e, i, i + 1);
	mark_expand(e, i);
}

/* GROUP BY ALL */
static void
group_by_all_rule(PlnEmbed *e, int i)
{
	const PlnToken *next = tok(e, i + 3);

	if (next->type == PLN_T_END || next->type == ')' || pln_token_is(next, "having") ||
		word_in(next, after_qualify) || pln_token_is(next, "qualify"))
	{
		e->edit[i + 2].text = "\"?all?\"";
		mark_expand(e, i);
	}
}

static void
refused_clauses(PlnEmbed *e, int i)
{
	const PlnToken *token = &e->tok[i];
	const PlnToken *next = tok(e, i + 1);
	bool		in_from = e->track.levels[e->track.depth].in_from;

	if ((pln_token_is(token, "semi") || pln_token_is(token, "anti")) &&
		pln_token_is(next, "join"))
		pln_refuse_token(e, i, pln_token_is(token, "semi") ? "SEMI JOIN" : "ANTI JOIN",
						 "Write WHERE EXISTS (SELECT ...) or WHERE NOT EXISTS (SELECT ...).");
	if (pln_token_is(token, "lateral") && pln_token_is(next, "view"))
		pln_refuse_token(e, i, "LATERAL VIEW",
						 "Write CROSS JOIN LATERAL unnest(array) AS alias(column).");
	if (in_from && (pln_token_is(token, "pivot") || pln_token_is(token, "unpivot")) &&
		next->type == '(' && ends_operand(tok(e, i - 1)))
		pln_refuse_token(e, i, "PIVOT",
						 "Write one aggregate with FILTER (WHERE ...) for each column.");
	if (e->kind == PLN_SQL_QUERY && pln_token_is(next, "by") &&
		(pln_token_is(token, "sort") || pln_token_is(token, "distribute") ||
		 pln_token_is(token, "cluster")))
		pln_refuse_token(e, i, "SORT BY, DISTRIBUTE BY or CLUSTER BY in a query",
						 "Use ORDER BY.");
	if (in_from && (pln_token_is(token, "version") || pln_token_is(token, "timestamp")) &&
		pln_token_is(next, "as") && pln_token_is(tok(e, i + 2), "of"))
		pln_refuse_token(e, i, "time travel", NULL);
	if (pln_token_is(token, "div") && ends_operand(tok(e, i - 1)) && begins_operand(next))
		pln_refuse_token(e, i, "the operator DIV", "Use div(a, b), or a / b for integers.");
	if (token->type == '*' && pln_token_is(next, "replace") && tok(e, i + 2)->type == '(')
		pln_refuse_token(e, i + 1, "SELECT * REPLACE", "List the columns.");
}

static void
operator_rules(PlnEmbed *e, int i)
{
	const PlnToken *token = &e->tok[i];

	if (strcmp(token->str, "==") == 0)
		e->edit[i].text = "=";
	else if (strcmp(token->str, "<=>") == 0)
		e->edit[i].text = "IS NOT DISTINCT FROM";
	else if (strcmp(token->str, "!") == 0)
		e->edit[i].text = "NOT";
}

static void
word_rules(PlnEmbed *e, int i)
{
	const PlnToken *token = &e->tok[i];
	const PlnToken *next = tok(e, i + 1);

	if (next->type == '(')
	{
		if (tok(e, i + 2)->type == ')' && word_in(token, bare_functions))
			pln_embed_drop(e, i + 1, i + 3);
		else if (pln_token_is(token, "try_cast"))
			try_cast_rule(e, i);
		else if (pln_token_is(token, "array") && !pln_token_begins_query(tok(e, i + 2)))
		{
			int			close = pln_matching_paren(e->tok, e->n, i + 1);

			e->edit[i + 1].text = "[";
			if (close < e->n)
				e->edit[close].text = "]";
		}
	}
	if (pln_token_is(token, "interval"))
		interval_rule(e, i);
	else if ((pln_token_is(token, "array") || pln_token_is(token, "struct") ||
			  pln_token_is(token, "map")) && next->type == '<')
		complex_type_rule(e, i);
	else if (pln_token_is(token, "rlike") || pln_token_is(token, "regexp"))
		rlike_rule(e, i);
	else if (pln_token_is(token, "qualify"))
		qualify_rule(e, i);
	else if (pln_token_is(token, "group") && pln_token_is(next, "by") &&
			 pln_token_is(tok(e, i + 2), "all"))
		group_by_all_rule(e, i);
	else if (pln_token_is(token, "minus") && pln_token_begins_query(next) &&
			 ends_operand(tok(e, i - 1)))
		e->edit[i].text = "EXCEPT";
	else if (pln_token_is(token, "r") && next->type == PLN_T_SCONST && next->quote == '\'' &&
			 next->location == token->end)
		pln_embed_drop(e, i, i + 1);	/* r'\d': our strings are raw anyway */
	else if ((pln_token_is(token, "except") || pln_token_is(token, "exclude")) &&
			 tok(e, i - 1)->type == '*' && next->type == '(')
		star_except_rule(e, i);
}

/* All rules for the token at i, which stands for itself so far. */
void
pln_embed_token_rules(PlnEmbed *e, int i)
{
	const PlnToken *token = &e->tok[i];

	if (i > 0 && e->tok[i - 1].type == '.')
		return;
	refused_clauses(e, i);
	if (token->type == PLN_T_OP)
		operator_rules(e, i);
	else if (token->type == ':' && i > 0 && e->tok[i - 1].end == token->location)
		json_path_rule(e, i);
	else if (token->type == PLN_T_IDENT && token->quote == 0)
		word_rules(e, i);
}

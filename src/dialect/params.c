/*
 * params.c
 *	  Pipeline parameters: ${name}, :name and IDENTIFIER(:name).
 *
 * A value is never lexed again.  Inside of a string it becomes part of the string; as a
 * name it is one dotted identifier whose parts are quoted; anywhere else it is one
 * literal: the number that it spells, or a quoted string.  So no value can add a token
 * to the statement (correctness A7).
 */
#include "postgres.h"

#include "parser/scansup.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "dialect/internal.h"

static bool
is_word_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || IS_HIGHBIT_SET(c);
}

static bool
is_word_part(char c)
{
	return is_word_start(c) || (c >= '0' && c <= '9') || c == '$';
}

/* A JSON number; others (0123, .5, 1e) are text. */
bool
pln_is_number(const char *s)
{
	if (*s == '-')
		s++;
	if (*s == '0')
		s++;
	else if (*s >= '1' && *s <= '9')
		s += strspn(s, "0123456789");
	else
		return false;
	if (*s == '.')
	{
		s++;
		if (*s < '0' || *s > '9')
			return false;
		s += strspn(s, "0123456789");
	}
	if (*s == 'e' || *s == 'E')
	{
		s++;
		if (*s == '+' || *s == '-')
			s++;
		if (*s < '0' || *s > '9')
			return false;
		s += strspn(s, "0123456789");
	}
	return *s == '\0';
}

/* Always in double quotes: a word of the user must not become a keyword. */
char *
pln_quote_word(const char *word)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '"');
	for (; *word != '\0'; word++)
	{
		if (*word == '"')
			appendStringInfoChar(&buf, '"');
		appendStringInfoChar(&buf, *word);
	}
	appendStringInfoChar(&buf, '"');
	return buf.data;
}

static const char *
lookup_param(PlnParser *ps, const char *name, int location)
{
	ListCell   *lc;
	const char *value = NULL;
	bool		found = false;
	int			i;

	for (i = 0; i < ps->nparams && !found; i++)
	{
		if (pg_strcasecmp(ps->params[i].name, name) == 0)
		{
			found = true;
			value = ps->params[i].value;
		}
	}
	/* the caller's value beats SET, the last SET beats the ones before */
	if (!found)
	{
		foreach(lc, ps->set_params)
		{
			PlnSet	   *set = lfirst(lc);

			if (pg_strcasecmp(set->key, name) == 0)
			{
				found = true;
				value = set->value;
			}
		}
	}
	if (!found)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("parameter \"%s\" is not known", name),
				 errhint("Declare it as an argument of the pipeline's procedure."),
				 pln_script_errposition(ps->script, location)));
	if (value == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("parameter \"%s\" has no value", name),
				 errhint("Give the procedure's argument a DEFAULT, or pass a value."),
				 pln_script_errposition(ps->script, location)));
	return value;
}

const char *
pln_param_value(PlnParser *ps, const PlnToken *token)
{
	return lookup_param(ps, token->str, token->location);
}

/* The parts (char *) of a dotted name, folded like any identifier; 22023 otherwise. */
static List *
split_identifier(PlnParser *ps, const char *value, const char *name, int location)
{
	List	   *parts = NIL;
	const char *p = value;

	for (;;)
	{
		const char *from = p;

		if (*p == '"' || *p == '`')
		{
			StringInfoData part;
			char		quote = *p++;

			initStringInfo(&part);
			while (*p != '\0' && (*p != quote || p[1] == quote))
			{
				if (*p == quote)
					p++;
				appendStringInfoChar(&part, *p++);
			}
			if (*p != quote || part.len == 0)
				break;
			p++;
			parts = lappend(parts, part.data);
		}
		else
		{
			if (!is_word_start(*p))
				break;
			while (is_word_part(*p))
				p++;
			parts = lappend(parts, downcase_truncate_identifier(from, p - from, false));
		}
		if (*p == '\0')
			return parts;
		if (*p++ != '.')
			break;
	}
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("value of parameter \"%s\" is not a name", name),
			 errdetail("Here a value must be one identifier; it may have dots between its parts."),
			 pln_script_errposition(ps->script, location)));
}

List *
pln_param_identifier(PlnParser *ps, const PlnToken *token)
{
	return split_identifier(ps, pln_param_value(ps, token), token->str, token->location);
}

/* One literal token of SQL (a number keeps its sign as "-5": two tokens of one constant). */
char *
pln_param_literal(PlnParser *ps, const PlnToken *token)
{
	const char *value = pln_param_value(ps, token);

	if (pln_is_number(value))
		return *value == '-' ? psprintf("(%s)", value) : pstrdup(value);
	if (pg_strcasecmp(value, "true") == 0)
		return pstrdup("TRUE");
	if (pg_strcasecmp(value, "false") == 0)
		return pstrdup("FALSE");
	return quote_literal_cstr(value);
}

/* Replace every ${name} inside of a string's value; NULL when there is none. */
static char *
interpolate(PlnParser *ps, const PlnToken *token)
{
	StringInfoData buf;
	const char *p = token->str;
	bool		any = false;

	if (strstr(p, "${") == NULL)
		return NULL;
	initStringInfo(&buf);
	while (*p != '\0')
	{
		int			n = 2;

		if (p[0] == '$' && p[1] == '{' && is_word_start(p[2]))
		{
			while (is_word_part(p[n]) || p[n] == '.' || p[n] == '-')
				n++;
			if (p[n] == '}')
			{
				appendStringInfoString(&buf, lookup_param(ps, pnstrdup(p + 2, n - 2),
														  token->location));
				p += n + 1;
				any = true;
				continue;
			}
		}
		appendStringInfoChar(&buf, *p++);
	}
	return any ? buf.data : NULL;
}

/* Is the colon at tok[i] the start of :name?  slice: directly inside of [ ]. */
static bool
is_colon_param(const PlnToken *tok, int n, int i, bool slice)
{
	const PlnToken *prev = i > 0 ? &tok[i - 1] : NULL;

	if (slice || i + 1 >= n || tok[i + 1].type != PLN_T_IDENT || tok[i + 1].quote != 0 ||
		tok[i + 1].location != tok[i].end)
		return false;
	/* column:path is glued to what stands before */
	return !(prev != NULL && prev->end == tok[i].location &&
			 (prev->type == PLN_T_IDENT || prev->type == ')' || prev->type == ']'));
}

/* name_${x}, ${x}_name: one identifier that is glued together. */
static int
glue_word(PlnParser *ps, const PlnToken *tok, int n, int i, PlnToken *out)
{
	StringInfoData buf;
	int			to = i;
	bool		param = false;

	while (to < n && (to == i || tok[to].location == tok[to - 1].end) &&
		   (tok[to].type == PLN_T_PARAMREF ||
			(tok[to].type == PLN_T_IDENT && tok[to].quote == 0)))
		param |= tok[to++].type == PLN_T_PARAMREF;
	if (!param || to - i < 2)
		return i;
	initStringInfo(&buf);
	for (*out = tok[i]; i < to; i++)
	{
		const char *value = tok[i].type == PLN_T_PARAMREF ? pln_param_value(ps, &tok[i])
			: tok[i].str;
		const char *p;

		for (p = value; *p != '\0'; p++)
		{
			if (!is_word_part(*p))
				ereport(ERROR,
						(errcode(PLN_ERR_BAD_VALUE),
						 errmsg("value of parameter \"%s\" cannot be part of a name", tok[i].str),
						 pln_script_errposition(ps->script, tok[i].location)));
		}
		appendStringInfoString(&buf, value);
	}
	if (!is_word_start(buf.data[0]))
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("\"%s\" is not a name", buf.data),
				 pln_script_errposition(ps->script, out->location)));
	out->type = PLN_T_IDENT;
	out->quote = '`';			/* no keyword, whatever the value */
	out->str = downcase_truncate_identifier(buf.data, buf.len, false);
	out->end = tok[to - 1].end;
	return to;
}

/* IDENTIFIER(:name) or IDENTIFIER(${name}) */
static bool
is_identifier_call(const PlnToken *tok, int n, int i, int *last)
{
	if (!pln_token_is(&tok[i], "identifier") || i + 3 >= n || tok[i + 1].type != '(')
		return false;
	if (tok[i + 2].type == PLN_T_PARAMREF && tok[i + 3].type == ')')
		*last = i + 3;
	else if (i + 4 < n && tok[i + 2].type == ':' && tok[i + 3].type == PLN_T_IDENT &&
			 tok[i + 4].type == ')')
		*last = i + 4;
	else
		return false;
	return true;
}

/*
 * Copy a statement's tokens into ps->tok: :name becomes one token, glued names and
 * strings with parameters inside get their final value.
 */
void
pln_prepare_tokens(PlnParser *ps, const PlnToken *tok, int n)
{
	PlnToken   *out = palloc_array(PlnToken, n + 1);
	char	   *brackets = palloc(n + 1);
	int			depth = 0;
	int			nout = 0;
	int			i = 0;
	int			next;
	int			last;

	while (i < n)
	{
		PlnToken   *o = &out[nout++];
		bool		slice = depth > 0 && brackets[depth - 1] == '[';
		char	   *value;

		*o = tok[i];
		if (tok[i].type == '(')
			brackets[depth++] = '(';
		else if (tok[i].type == '[')
			brackets[depth++] = i > 0 && pln_token_is(&tok[i - 1], "array") ? 'a' : '[';
		else if ((tok[i].type == ')' || tok[i].type == ']') && depth > 0)
			depth--;

		if (is_identifier_call(tok, n, i, &last))
		{
			*o = tok[last - 1];
			o->type = PLN_T_PARAMREF;
			o->identifier_param = true;
			o->location = tok[i].location;
			o->end = tok[last].end;
			i = last + 1;
		}
		else if ((next = glue_word(ps, tok, n, i, o)) > i)
			i = next;
		else if (tok[i].type == ':' && is_colon_param(tok, n, i, slice))
		{
			o->type = PLN_T_PARAMREF;
			o->str = pnstrdup(ps->script->source + tok[i + 1].location,
							  tok[i + 1].end - tok[i + 1].location);
			o->end = tok[i + 1].end;
			i += 2;
		}
		else
		{
			if ((tok[i].quote == '\'' || tok[i].quote == '"') &&
				(value = interpolate(ps, &tok[i])) != NULL)
			{
				o->str = value;
				o->text = tok[i].quote == '"' ? pln_quote_word(value) : quote_literal_cstr(value);
			}
			i++;
		}
	}
	out[nout] = tok[n];
	out[nout].type = PLN_T_END;
	ps->tok = out;
	ps->n = nout;
	ps->pos = 0;
}

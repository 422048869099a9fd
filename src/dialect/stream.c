/*
 * stream.c
 *	  STREAM, LIVE and read_files at the start of a FROM item.
 *
 * STREAM x and STREAM(x), with their WITH and WATERMARK clauses, are taken out of the
 * text and remembered by the text offset of the relation's first token; rewrite.c finds
 * the relation by it.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/json.h"

#include "base/errors.h"
#include "dialect/internal.h"

static void
syntax_error(PlnEmbed *e, int i, const char *message)
{
	ereport(ERROR,
			(errcode(PLN_ERR_SYNTAX),
			 errmsg("%s", message),
			 pln_script_errposition(e->ps->script,
									i < e->n ? e->tok[i].location
									: e->sql->location + e->sql->length)));
}

static bool
is_file_reader(const PlnToken *token)
{
	return pln_token_is(token, "read_files") || pln_token_is(token, "cloud_files");
}

static const char *const other_readers[] = {
	"read_kafka", "read_kinesis", "read_pubsub", "read_pulsar", NULL
};

/* Double quotes are string quotes among the arguments of read_files(). */
static void
quote_reader_arguments(PlnEmbed *e, int open)
{
	int			close = pln_matching_paren(e->tok, e->n, open);
	int			i;

	for (i = open + 1; i < close; i++)
	{
		if (e->tok[i].quote == '"' && pln_embed_token(e, i + 1)->type != PLN_T_EQUALS_GREATER)
			e->edit[i].text = quote_literal_cstr(e->tok[i].str);
	}
}

/* The token behind name, name.name... or a call that begins at i. */
static int
item_end(PlnEmbed *e, int i)
{
	if (pln_token_is(pln_embed_token(e, i), "select") || !pln_token_names_relation(&e->tok[i]))
		syntax_error(e, i, "STREAM takes one table or one call of read_files");
	i++;
	while (pln_embed_token(e, i)->type == '.' &&
		   (pln_embed_token(e, i + 1)->type == PLN_T_IDENT ||
			pln_embed_token(e, i + 1)->type == PLN_T_PARAMREF))
		i += 2;
	if (pln_embed_token(e, i)->type == '(')
	{
		int			close = pln_matching_paren(e->tok, e->n, i);

		return Min(close + 1, e->n);
	}
	return i;
}

static char *
option_value(PlnEmbed *e, int *pos)
{
	const PlnToken *token = pln_embed_token(e, *pos);
	const char *sign = "";

	if (token->type == '-' || token->type == '+')
	{
		sign = token->type == '-' ? "-" : "";
		token = pln_embed_token(e, ++*pos);
		if (token->type != PLN_T_ICONST && token->type != PLN_T_FCONST)
			syntax_error(e, *pos, "option value expected");
	}
	++*pos;
	switch (token->type)
	{
		case PLN_T_PARAMREF:
			return pstrdup(pln_param_value(e->ps, token));
		case PLN_T_SCONST:
		case PLN_T_IDENT:
		case PLN_T_ICONST:
		case PLN_T_FCONST:
			return psprintf("%s%s", sign, token->str);
		default:
			syntax_error(e, *pos - 1, "option value expected");
	}
	return NULL;
}

/* ( name [= value], ... ) from the parenthesis at i on; returns the token behind it. */
static int
parse_options(PlnEmbed *e, int i, PlnStreamRef *ref)
{
	do
	{
		PlnProperty *option = palloc0_object(PlnProperty);
		const PlnToken *token = pln_embed_token(e, ++i);

		if (token->type != PLN_T_IDENT && token->type != PLN_T_SCONST)
			syntax_error(e, i, "option name expected");
		option->location = token->location;
		option->value_location = -1;
		/* as written: the core lexer has folded the bare word */
		option->key = token->quote != 0 ? token->str
			: pnstrdup(e->ps->script->source + token->location, token->end - token->location);
		i++;
		if (pln_embed_token(e, i)->type == '=' ||
			pln_embed_token(e, i)->type == PLN_T_EQUALS_GREATER)
		{
			i++;
			option->value_location = pln_embed_token(e, i)->location;
			option->value = option_value(e, &i);
		}
		ref->options = lappend(ref->options, option);
	} while (pln_embed_token(e, i)->type == ',');
	if (pln_embed_token(e, i)->type != ')')
		syntax_error(e, i, "syntax error in the options of STREAM");
	return i + 1;
}

/* WATERMARK expression DELAY OF INTERVAL n unit; returns the token behind it, or i. */
static int
parse_watermark(PlnEmbed *e, int i, PlnStreamRef *ref)
{
	int			depth = 0;
	int			to;

	for (to = i + 1; to < e->n && depth >= 0; to++)
	{
		const PlnToken *token = &e->tok[to];

		if (token->type == '(')
			depth++;
		else if (token->type == ')')
			depth--;
		else if (depth == 0 && pln_token_is(token, "delay") &&
				 pln_token_is(pln_embed_token(e, to + 1), "of"))
			break;
	}
	if (to >= e->n || depth < 0)
		return i;				/* an alias "watermark" */
	to += 2;
	if (!pln_token_is(pln_embed_token(e, to), "interval"))
		syntax_error(e, to, "INTERVAL expected in the WATERMARK clause");
	to++;
	if (pln_embed_token(e, to)->type == PLN_T_SCONST &&
		pln_embed_token(e, to + 1)->type != PLN_T_IDENT)
		to++;
	else
		to += 2;
	to = Min(to, e->n);
	ref->has_watermark = true;
	ref->watermark = pnstrdup(e->ps->script->source + e->tok[i].location,
							  e->tok[to - 1].end - e->tok[i].location);
	return to;
}

static void
take_stream(PlnEmbed *e, int i)
{
	PlnStreamRef *ref = palloc0_object(PlnStreamRef);
	int			first = i + 1;
	int			to;

	ref->location = e->tok[i].location;
	if (pln_embed_token(e, first)->type == '(')
	{
		first++;
		if (pln_token_begins_query(pln_embed_token(e, first)))
			pln_refuse_token(e, i, "STREAM of a subquery",
							 "Name the query by CREATE TEMPORARY VIEW, and write STREAM(name).");
		to = item_end(e, first);
		if (pln_embed_token(e, to)->type != ')')
			syntax_error(e, to, "STREAM takes one table or one call of read_files");
		pln_embed_drop(e, i, first);
		pln_embed_drop(e, to, to + 1);
		to++;
	}
	else
	{
		to = item_end(e, first);
		pln_embed_drop(e, i, first);
	}
	if (pln_token_is(pln_embed_token(e, to), "with") && pln_embed_token(e, to + 1)->type == '(')
	{
		int			end = parse_options(e, to + 1, ref);

		pln_embed_drop(e, to, end);
		to = end;
	}
	if (pln_token_is(pln_embed_token(e, to), "watermark"))
		pln_embed_drop(e, to, parse_watermark(e, to, ref));
	if (pln_token_is(&e->tok[first], "live") && pln_embed_token(e, first + 1)->type == '.')
		first += 2;
	e->sql->streams = lappend(e->sql->streams, ref);
	e->stream_tokens = lappend_int(e->stream_tokens, first);
}

/* The token at i may begin an item of a FROM clause. */
void
pln_embed_from_item(PlnEmbed *e, int i)
{
	const PlnToken *token = &e->tok[i];
	const PlnToken *next = pln_embed_token(e, i + 1);
	const char *const *reader;

	if (pln_token_is(token, "stream") && (next->type == '(' || pln_token_names_relation(next)))
		take_stream(e, i);
	else if (pln_token_is(token, "live") && next->type == '.')
		pln_embed_drop(e, i, i + 2);
	else if (is_file_reader(token) && next->type == '(')
		quote_reader_arguments(e, i + 1);
	else if (pln_token_is(token, "pipeline") && next->type == '.' &&
			 is_file_reader(pln_embed_token(e, i + 2)) &&
			 pln_embed_token(e, i + 3)->type == '(')
		quote_reader_arguments(e, i + 3);
	else if (next->type == '(')
	{
		for (reader = other_readers; *reader != NULL; reader++)
		{
			if (pln_token_is(token, *reader))
				pln_refuse_token(e, i, *reader, NULL);
		}
	}
}

/* {"skipchangecommits": true, ...} */
char *
pln_stream_options_json(List *options)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '{');
	foreach(lc, options)
	{
		PlnProperty *option = lfirst(lc);
		const char *value = option->value;
		char	   *key = asc_tolower(option->key, strlen(option->key));

		if (buf.len > 1)
			appendStringInfoString(&buf, ", ");
		escape_json(&buf, key);
		appendStringInfoString(&buf, ": ");
		if (value == NULL || pg_strcasecmp(value, "true") == 0)
			appendStringInfoString(&buf, "true");
		else if (pg_strcasecmp(value, "false") == 0)
			appendStringInfoString(&buf, "false");
		else if (pln_is_number(value))
			appendStringInfoString(&buf, value);
		else
			escape_json(&buf, value);
	}
	appendStringInfoChar(&buf, '}');
	return buf.data;
}

static void
argument_error(PlnSql *sql, int location, const char *message)
{
	ereport(ERROR,
			(errcode(PLN_ERR_SYNTAX),
			 errmsg("%s", message),
			 errhint("Write  read_files('path', format => 'json', option => value)."),
			 pln_posmap_errposition(sql, location)));
}

static Node *
text_const(const char *text, int location)
{
	A_Const    *constant = makeNode(A_Const);

	constant->val.sval.type = T_String;
	constant->val.sval.sval = pstrdup(text);
	constant->location = location;
	return (Node *) constant;
}

/* The text of a constant argument. */
static char *
constant_text(PlnSql *sql, Node *arg, int location)
{
	if (IsA(arg, TypeCast))
		return constant_text(sql, ((TypeCast *) arg)->arg, location);
	if (IsA(arg, A_Expr) && ((A_Expr *) arg)->kind == AEXPR_OP &&
		((A_Expr *) arg)->lexpr == NULL &&
		strcmp(strVal(linitial(((A_Expr *) arg)->name)), "-") == 0)
		return psprintf("-%s", constant_text(sql, ((A_Expr *) arg)->rexpr, location));
	if (IsA(arg, A_Const) && !((A_Const *) arg)->isnull)
	{
		A_Const    *constant = (A_Const *) arg;

		switch (nodeTag(&constant->val))
		{
			case T_Integer:
				return psprintf("%d", intVal(&constant->val));
			case T_Float:
				return pstrdup(castNode(Float, &constant->val)->fval);
			case T_Boolean:
				return pstrdup(boolVal(&constant->val) ? "true" : "false");
			case T_String:
				return pstrdup(strVal(&constant->val));
			default:
				break;
		}
	}
	argument_error(sql, location, "arguments of read_files must be constants");
	return NULL;
}

/* cloudFiles.x and x are one option; case does not matter. */
static char *
option_name(const char *name)
{
	const char *prefix = "cloudfiles.";

	if (pg_strncasecmp(name, prefix, strlen(prefix)) == 0)
		name += strlen(prefix);
	return asc_tolower(name, strlen(name));
}

static Node *
named_arg(const char *name, const char *value, int location)
{
	NamedArgExpr *arg = makeNode(NamedArgExpr);

	arg->name = option_name(name);
	arg->arg = (Expr *) text_const(value, location);
	arg->argnumber = -1;
	arg->location = location;
	return (Node *) arg;
}

/* map('key', 'value', ...) of cloud_files */
static List *
map_arguments(PlnSql *sql, FuncCall *map)
{
	List	   *result = NIL;
	ListCell   *lc;

	if (list_length(map->args) % 2 != 0)
		argument_error(sql, map->location, "map() of cloud_files takes pairs of key and value");
	for (lc = list_head(map->args); lc != NULL; lc = lnext(map->args, lc))
	{
		char	   *key = constant_text(sql, lfirst(lc), map->location);

		lc = lnext(map->args, lc);
		result = lappend(result, named_arg(key, constant_text(sql, lfirst(lc), map->location),
										   map->location));
	}
	return result;
}

/*
 * read_files(...) and cloud_files(...) in one shape: pipeline.read_files(path text
 * constant, name => text constant, ... [, stream => '{options}']).
 */
void
pln_rewrite_read_files(PlnSql *sql, FuncCall *call, PlnStreamRef *stream)
{
	bool		cloud = strcmp(strVal(llast(call->funcname)), "cloud_files") == 0;
	List	   *args = NIL;
	ListCell   *lc;
	int			n = 0;

	foreach(lc, call->args)
	{
		Node	   *arg = lfirst(lc);

		n++;
		if (IsA(arg, NamedArgExpr))
		{
			NamedArgExpr *named = (NamedArgExpr *) arg;

			if (n == 1)
				argument_error(sql, named->location,
							   "the first argument of read_files is the path");
			if (strcmp(named->name, "stream") == 0)
				argument_error(sql, named->location, "read_files has no option \"stream\"");
			args = lappend(args, named_arg(named->name,
										   constant_text(sql, (Node *) named->arg, named->location),
										   named->location));
		}
		else if (n == 1)
			args = lappend(args, text_const(constant_text(sql, arg, call->location),
											call->location));
		else if (cloud && n == 2)
			args = lappend(args, named_arg("format", constant_text(sql, arg, call->location),
										   call->location));
		else if (cloud && n == 3 && IsA(arg, FuncCall) &&
				 strcmp(strVal(llast(((FuncCall *) arg)->funcname)), "map") == 0)
			args = list_concat(args, map_arguments(sql, (FuncCall *) arg));
		else
			argument_error(sql, call->location,
						   "arguments of read_files behind the path must be named");
	}
	if (n == 0)
		argument_error(sql, call->location, "read_files needs a path");
	if (stream != NULL)
		args = lappend(args, named_arg("stream", pln_stream_options_json(stream->options),
									   call->location));
	call->funcname = list_make2(makeString("pipeline"), makeString("read_files"));
	call->args = args;
}

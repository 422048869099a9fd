/*
 * embed.c
 *	  Tokens of embedded SQL to the text that the server's parser is given.
 *
 * Only what the server's grammar does not take is changed here, by edits on single
 * tokens; whatever it parses is rewritten in the raw tree (rewrite.c).  White space and
 * comments stay.  Every written piece is entered in the position map.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "dialect/internal.h"

static const PlnToken end_token;

const PlnToken *
pln_embed_token(PlnEmbed *e, int i)
{
	return i >= 0 && i < e->n ? &e->tok[i] : &end_token;
}

void
pln_embed_drop(PlnEmbed *e, int from, int to)
{
	int			i;

	for (i = from; i < to && i < e->n; i++)
		e->edit[i].drop = true;
}

/* A form that is known and not built: say so, with the cursor on it. */
void
pln_refuse_token(PlnEmbed *e, int i, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("%s is not supported", what),
			 hint ? errhint("%s", hint) : 0,
			 pln_script_errposition(e->ps->script, e->tok[i].location)));
}

static void
resolve_param(PlnEmbed *e, int i)
{
	const PlnToken *token = &e->tok[i];
	bool		name = e->track.item || token->identifier_param ||
		pln_embed_token(e, i - 1)->type == '.' || pln_embed_token(e, i + 1)->type == '.';

	if (name)
	{
		StringInfoData buf;
		ListCell   *lc;

		initStringInfo(&buf);
		foreach(lc, pln_param_identifier(e->ps, token))
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? "." : "", pln_quote_word(lfirst(lc)));
		e->edit[i].text = buf.data;
	}
	else
		e->edit[i].text = pln_param_literal(e->ps, token);
}

static void
apply_rules(PlnEmbed *e)
{
	int			i;

	pln_track_begin(&e->track, e->tok, e->n, e->kind == PLN_SQL_FROM_ITEM);
	for (i = 0; i < e->n; i++)
	{
		const PlnToken *token = &e->tok[i];

		CHECK_FOR_INTERRUPTS();
		pln_track_step(&e->track, e->tok, e->n, i);
		if (e->edit[i].drop || e->edit[i].text != NULL)
			continue;			/* a rule of an earlier token took it */
		if (token->type == PLN_T_PARAMREF)
			resolve_param(e, i);
		else if (token->text != NULL)
			e->edit[i].text = token->text;
		else if (token->quote == '`')
			e->edit[i].text = pln_quote_word(token->str);
		if (e->track.item)
			pln_embed_from_item(e, i);
		if (!e->edit[i].drop && e->edit[i].text == NULL)
			pln_embed_token_rules(e, i);
	}
}

static void
write_text(PlnEmbed *e, const char *text, int source)
{
	pln_posmap_add(e->map, e->buf.len, source, false);
	appendStringInfoString(&e->buf, text);
}

static void
write_source(PlnEmbed *e, int from, int to)
{
	if (to <= from)
		return;
	pln_posmap_add(e->map, e->buf.len, from, true);
	appendBinaryStringInfo(&e->buf, e->ps->script->source + from, to - from);
}

/* Rewritten tokens get blanks around them, so that neighbours cannot fuse. */
static void
write_padded(PlnEmbed *e, const char *text, int source)
{
	write_text(e, " ", source);
	write_text(e, text, source);
	write_text(e, " ", source);
}

static void write_tokens(PlnEmbed *e, int from, int to, bool moved);

static void
write_token(PlnEmbed *e, int i)
{
	const PlnToken *token = &e->tok[i];
	PlnEdit    *edit = &e->edit[i];

	if (edit->insert_to > edit->insert_from)
	{
		write_padded(e, ", (", e->tok[edit->insert_from].location);
		write_tokens(e, edit->insert_from, edit->insert_to, true);
		write_padded(e, ") AS \"?qualify?\"", token->location);
	}
	if (edit->before != NULL)
		write_padded(e, edit->before, token->location);
	if (edit->text != NULL)
	{
		write_text(e, " ", token->location);
		e->text_offset[i] = e->buf.len;
		write_text(e, edit->text, token->location);
		write_text(e, " ", token->location);
	}
	else
	{
		e->text_offset[i] = e->buf.len;
		if (edit->drop)
			write_text(e, " ", token->location);
		else
			write_source(e, token->location, token->end);
	}
	if (edit->after != NULL)
		write_padded(e, edit->after, token->location);
}

static void
write_tokens(PlnEmbed *e, int from, int to, bool moved)
{
	int			i;

	for (i = from; i < to; i++)
	{
		if (e->edit[i].moved && !moved)
			continue;
		if (i > from)
			write_source(e, e->tok[i - 1].end, e->tok[i].location);
		write_token(e, i);
	}
}

static void
write_sql(PlnEmbed *e)
{
	int			start = e->sql->location;
	int			end = start + e->sql->length;

	initStringInfo(&e->buf);
	e->map = pln_posmap_create();
	if (e->kind == PLN_SQL_EXPR)
		write_text(e, "(", start);	/* one expression, whatever it holds */
	else if (e->kind == PLN_SQL_FROM_ITEM)
		write_text(e, "SELECT * FROM ", start);
	write_tokens(e, 0, e->n, false);
	/* an error at the end points behind the last token */
	if (e->kind == PLN_SQL_EXPR)
		write_text(e, ")", end);
	else
		write_text(e, " ", end);
	e->sql->text = e->buf.data;
	e->sql->posmap = e->map;
}

static void
set_stream_offsets(PlnEmbed *e)
{
	ListCell   *lc;
	ListCell   *tc;

	forboth(lc, e->sql->streams, tc, e->stream_tokens)
		((PlnStreamRef *) lfirst(lc))->text_location = e->text_offset[lfirst_int(tc)];
}

/*
 * Tokens [from, to) of the statement as a piece of SQL; not empty.  Clauses that were
 * left out because they have no effect are added to *notices when that is not NULL.
 * The syntax is not checked here.
 */
PlnSql *
pln_embed(PlnParser *ps, int from, int to, PlnSqlKind kind, List **notices)
{
	PlnSql	   *sql = palloc0_object(PlnSql);
	PlnEmbed	e = {0};

	Assert(from < to);
	e.ps = ps;
	e.sql = sql;
	e.kind = kind;
	e.n = to - from;
	/* a copy, so that the token behind the slice reads as the end */
	e.tok = palloc0_array(PlnToken, e.n + 1);
	memcpy(unconstify(PlnToken *, e.tok), ps->tok + from, sizeof(PlnToken) * e.n);
	e.edit = palloc0_array(PlnEdit, e.n + 1);
	e.text_offset = palloc0_array(int, e.n + 1);

	sql->script = ps->script;
	sql->location = e.tok[0].location;
	sql->length = e.tok[e.n - 1].end - sql->location;
	sql->original = pnstrdup(ps->script->source + sql->location, sql->length);
	sql->expand_location = -1;
	if (kind == PLN_SQL_PLAIN)
		pln_embed_plain_rules(&e);
	apply_rules(&e);
	write_sql(&e);
	set_stream_offsets(&e);
	if (notices != NULL)
		*notices = list_concat(*notices, e.notices);
	return sql;
}

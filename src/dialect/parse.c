/*
 * parse.c
 *	  Entry points of the dialect: a body to statements, pieces of SQL to raw trees.
 *
 * Which statements are the dialect's own is decided by their first words (classify);
 * everything else is a plain statement of the server.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parser.h"
#include "utils/guc.h"

#include "base/errors.h"
#include "dialect/internal.h"

typedef enum StatementClass
{
	STATEMENT_GRAMMAR,			/* gram.y */
	STATEMENT_SET,				/* SET of a setting that the server does not know */
	STATEMENT_PLAIN
} StatementClass;

static bool
is(const PlnToken *tok, int n, int i, const char *word)
{
	return i < n && pln_token_is(&tok[i], word);
}

/* The token behind name, name.name, name.name.name at i. */
static int
skip_name(const PlnToken *tok, int n, int i)
{
	while (i + 1 < n && tok[i + 1].type == '.')
		i += 2;
	return i + 1;
}

/* WITH (options) before AS, WITH CHECK OPTION, WITH [NO] DATA: the server's own forms. */
static bool
has_native_view_clause(const PlnToken *tok, int n)
{
	int			depth = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (tok[i].type == '(')
			depth++;
		else if (tok[i].type == ')')
			depth--;
		else if (depth == 0 && pln_token_is(&tok[i], "as"))
			break;
		else if (depth == 0 && pln_token_is(&tok[i], "with") && i + 1 < n &&
				 tok[i + 1].type == '(')
			return true;
	}
	return (is(tok, n, n - 1, "option") && is(tok, n, n - 2, "check")) ||
		(is(tok, n, n - 1, "data") &&
		 (is(tok, n, n - 2, "with") || (is(tok, n, n - 2, "no") && is(tok, n, n - 3, "with"))));
}

static StatementClass
classify_create(const PlnToken *tok, int n)
{
	static const char *const words[] = {
		"private", "temporary", "temp", "streaming", "live", "materialized", NULL
	};
	bool		own = false;
	int			i = 1;
	const char *const *word;

	if (is(tok, n, 1, "or"))
	{
		own = is(tok, n, 2, "refresh");
		i = 3;
	}
	if (is(tok, n, i, "flow") && i == 1)
		return STATEMENT_GRAMMAR;
	for (; i < n; i++)
	{
		for (word = words; *word != NULL && !pln_token_is(&tok[i], *word); word++)
			;
		if (*word == NULL)
			break;
		if (!is(tok, n, i, "temporary") && !is(tok, n, i, "temp"))
			own = true;
	}
	if (is(tok, n, i, "view"))
		return has_native_view_clause(tok, n) ? STATEMENT_PLAIN : STATEMENT_GRAMMAR;
	if (is(tok, n, i, "table"))
		return own ? STATEMENT_GRAMMAR : STATEMENT_PLAIN;
	return own ? STATEMENT_GRAMMAR : STATEMENT_PLAIN;
}

static StatementClass
classify_refresh(const PlnToken *tok, int n)
{
	if (is(tok, n, 1, "materialized") &&
		(is(tok, n, 3, "concurrently") || is(tok, n, n - 1, "data")))
		return STATEMENT_PLAIN;
	return STATEMENT_GRAMMAR;
}

static StatementClass
classify_alter(const PlnToken *tok, int n)
{
	int			i;
	bool		table = is(tok, n, 1, "table");
	bool		matview = is(tok, n, 1, "materialized") && is(tok, n, 2, "view");

	if (is(tok, n, 1, "streaming") || is(tok, n, 1, "live"))
		return STATEMENT_GRAMMAR;
	if (!table && !matview)
		return STATEMENT_PLAIN;
	i = skip_name(tok, n, table ? 2 : 3);
	if (is(tok, n, i, "set") && (is(tok, n, i + 1, "tblproperties") || is(tok, n, i + 1, "tags") ||
								 is(tok, n, i + 1, "row") ||
								 (matview && is(tok, n, i + 1, "owner"))))
		return STATEMENT_GRAMMAR;
	if (is(tok, n, i, "unset") || (is(tok, n, i, "drop") && is(tok, n, i + 1, "row")))
		return STATEMENT_GRAMMAR;
	if (is(tok, n, i, "alter") && is(tok, n, i + 1, "column") &&
		(is(tok, n, i + 3, "comment") || is(tok, n, i + 3, "unset") ||
		 is(tok, n, i + 4, "mask") || is(tok, n, i + 4, "tags")))
		return STATEMENT_GRAMMAR;
	if (table)
		return STATEMENT_PLAIN;
	if (is(tok, n, i, "add") || is(tok, n, i, "owner") ||
		(is(tok, n, i, "rename") && is(tok, n, i + 1, "to")) ||
		((is(tok, n, i, "alter") || is(tok, n, i, "drop")) &&
		 (is(tok, n, i + 1, "schedule") || is(tok, n, i + 1, "trigger"))))
		return STATEMENT_GRAMMAR;
	return STATEMENT_PLAIN;
}

static StatementClass
classify_drop(const PlnToken *tok, int n)
{
	int			i;

	if (is(tok, n, 1, "streaming") || is(tok, n, 1, "live"))
		return STATEMENT_GRAMMAR;
	if (!is(tok, n, 1, "materialized"))
		return STATEMENT_PLAIN;
	for (i = 2; i < n; i++)
	{
		if (tok[i].type == ',')
			return STATEMENT_PLAIN;
	}
	return STATEMENT_GRAMMAR;
}

/* SET key = value, where the server has no setting of that name. */
static StatementClass
classify_set(const PlnToken *tok, int n)
{
	static const char *const server_forms[] = {
		"local", "session", "time", "role", "transaction", "constraints", NULL
	};
	StringInfoData name;
	const char *const *form;
	int			end = n > 1 ? skip_name(tok, n, 1) : n;
	int			i;

	if (end >= n || tok[end].type != '=')
		return STATEMENT_PLAIN;
	for (form = server_forms; *form != NULL; form++)
	{
		if (end == 2 && pln_token_is(&tok[1], *form))
			return STATEMENT_PLAIN;
	}
	initStringInfo(&name);
	for (i = 1; i < end; i++)
	{
		if (tok[i].type != PLN_T_IDENT && tok[i].type != '.')
			return STATEMENT_PLAIN;
		appendStringInfoString(&name, tok[i].str);
	}
	return GetConfigOption(name.data, true, false) != NULL ? STATEMENT_PLAIN : STATEMENT_SET;
}

static StatementClass
classify(PlnParser *ps, const PlnToken *tok, int n)
{
	if (is(tok, n, 0, "create"))
		return classify_create(tok, n);
	if (is(tok, n, 0, "refresh"))
		return classify_refresh(tok, n);
	if (is(tok, n, 0, "alter"))
		return classify_alter(tok, n);
	if (is(tok, n, 0, "drop"))
		return classify_drop(tok, n);
	if ((is(tok, n, 0, "grant") || is(tok, n, 0, "revoke")) && is(tok, n, 1, "refresh") &&
		is(tok, n, 2, "on"))
		return STATEMENT_GRAMMAR;
	if (is(tok, n, 0, "explain"))
		return is(tok, n, 1, "create") && n > 1 ? classify_create(tok + 1, n - 1)
			: STATEMENT_PLAIN;
	if (is(tok, n, 0, "describe") || is(tok, n, 0, "desc"))
	{
		if (n > 2 && (is(tok, n, 1, "history") || is(tok, n, 1, "detail")) &&
			tok[2].type == PLN_T_IDENT)
			pln_refuse(ps, tok[1].location,
					   is(tok, n, 1, "history") ? "DESCRIBE HISTORY" : "DESCRIBE DETAIL",
					   "Use SELECT * FROM pipeline.event_log('name').");
		return STATEMENT_GRAMMAR;
	}
	if ((is(tok, n, 0, "apply") && is(tok, n, 1, "changes")) ||
		(is(tok, n, 0, "auto") && is(tok, n, 1, "cdc")) || is(tok, n, 0, "use"))
		return STATEMENT_GRAMMAR;
	if (is(tok, n, 0, "set"))
		return classify_set(tok, n);
	return STATEMENT_PLAIN;
}

static void
parse_set(PlnParser *ps)
{
	PlnSet	   *set = pln_make_stmt(ps, PLN_STMT_SET, sizeof(PlnSet));
	int			end = skip_name(ps->tok, ps->n, 1);
	const char *source = ps->script->source;
	const PlnToken *value;

	set->key = pnstrdup(source + ps->tok[1].location,
						ps->tok[end - 1].end - ps->tok[1].location);
	if (end + 1 >= ps->n)
		pln_syntax_error(ps, end + 1);
	value = &ps->tok[end + 1];
	if (end + 2 == ps->n && value->type == PLN_T_PARAMREF)
		set->value = pstrdup(pln_param_value(ps, value));
	else if (end + 2 == ps->n && value->quote != 0)
		set->value = value->str;
	else
		set->value = pnstrdup(source + value->location,
							  ps->tok[ps->n - 1].end - value->location);
	ps->set_params = lappend(ps->set_params, set);
}

/* CREATE OR REPLACE TABLE name */
static PlnName *
replaced_table(PlnParser *ps)
{
	List	   *parts = NIL;
	int			i = 4;
	int			end;

	if (ps->n <= 4 || !is(ps->tok, ps->n, 0, "create") || !is(ps->tok, ps->n, 1, "or") ||
		!is(ps->tok, ps->n, 2, "replace") || !is(ps->tok, ps->n, 3, "table"))
		return NULL;
	if (is(ps->tok, ps->n, 4, "if") && is(ps->tok, ps->n, 5, "not"))
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("IF NOT EXISTS cannot be combined with OR REPLACE"),
				 pln_script_errposition(ps->script, ps->tok[4].location)));
	end = skip_name(ps->tok, ps->n, i);
	for (; i < end && i < ps->n; i += 2)
	{
		if (ps->tok[i].type == PLN_T_PARAMREF)
			parts = list_concat(parts, pln_param_identifier(ps, &ps->tok[i]));
		else if (ps->tok[i].type == PLN_T_IDENT)
			parts = lappend(parts, ps->tok[i].str);
		else
			pln_syntax_error(ps, i);
	}
	return pln_make_name(ps, parts, ps->tok[4].location);
}

static void
parse_plain(PlnParser *ps)
{
	PlnPlain   *plain = pln_make_stmt(ps, PLN_STMT_PLAIN, sizeof(PlnPlain));

	plain->replaces = replaced_table(ps);
	plain->sql = pln_embed(ps, 0, ps->n, PLN_SQL_PLAIN, &plain->notices);
	pln_sql_check(plain->sql, PLN_SQL_PLAIN);
}

static void
parse_statement(PlnParser *ps, const PlnToken *tok, int n)
{
	pln_prepare_tokens(ps, tok, n);
	ps->result = NULL;
	ps->dataset = NULL;
	ps->column = NULL;
	ps->cdc = NULL;
	ps->cdc_snapshot = false;
	ps->refresh = NULL;
	ps->clauses_seen = 0;
	switch (classify(ps, ps->tok, ps->n))
	{
		case STATEMENT_GRAMMAR:
			pln_grammar_run(ps);
			break;
		case STATEMENT_SET:
			parse_set(ps);
			break;
		case STATEMENT_PLAIN:
			parse_plain(ps);
			break;
	}
	ps->script->stmts = lappend(ps->script->stmts, ps->result);
}

PlnScript *
pln_parse_script(const char *source, const PlnParam *params, int nparams)
{
	PlnScript  *script = palloc0_object(PlnScript);
	PlnParser	ps = {0};
	PlnTokens  *tokens;
	int			from = 0;
	int			depth = 0;
	int			i;

	script->source = pstrdup(source);
	ps.script = script;
	ps.params = params;
	ps.nparams = nparams;
	tokens = pln_scan(script);
	for (i = 0; i <= tokens->n; i++)
	{
		int			type = tokens->tok[i].type;

		if (type == '(')
			depth++;
		else if (type == ')' && depth > 0)
			depth--;
		if (type == PLN_T_END || (type == ';' && depth == 0))
		{
			CHECK_FOR_INTERRUPTS();
			if (i > from)
				parse_statement(&ps, &tokens->tok[from], i - from);
			from = i + 1;
		}
	}
	return script;
}

/*
 * A stored condition or query as a script of its own, one piece long.  Parameters are
 * not known here.
 */
PlnSql *
pln_sql_make(const char *text)
{
	PlnScript  *script = palloc0_object(PlnScript);
	PlnParser	ps = {0};
	PlnTokens  *tokens;
	int			i;

	script->source = pstrdup(text);
	ps.script = script;
	tokens = pln_scan(script);
	pln_prepare_tokens(&ps, tokens->tok, tokens->n);
	for (i = 0; i < ps.n && ps.tok[i].type != ';'; i++)
		;
	if (ps.n == 0 || i < ps.n)
		pln_syntax_error(&ps, i);
	return pln_embed(&ps, 0, ps.n,
					 pln_token_begins_query(&ps.tok[0]) ? PLN_SQL_QUERY : PLN_SQL_EXPR, NULL);
}

/* raw_parser() with errors moved to the source, and the dialect's rewriting. */
static List *
parse_raw(PlnSql *sql, RawParseMode mode)
{
	PlnErrorScope scope;
	List	   *raw;

	pln_error_scope_begin(&scope, sql->script, sql);
	raw = raw_parser(sql->text, mode);
	pln_error_scope_end(&scope);
	return raw;
}

static void
piece_error(PlnSql *sql, const char *message)
{
	ereport(ERROR,
			(errcode(PLN_ERR_SYNTAX),
			 errmsg("%s", message),
			 pln_script_errposition(sql->script, sql->location)));
}

RawStmt *
pln_sql_parse_plain(PlnSql *sql)
{
	List	   *raw = parse_raw(sql, RAW_PARSE_DEFAULT);

	if (list_length(raw) != 1)
		piece_error(sql, "one statement expected");
	pln_rewrite_raw(sql, linitial(raw));
	return linitial_node(RawStmt, raw);
}

RawStmt *
pln_sql_parse_query(PlnSql *sql)
{
	List	   *raw = parse_raw(sql, RAW_PARSE_DEFAULT);
	RawStmt    *stmt;

	if (list_length(raw) != 1)
		piece_error(sql, "one query expected");
	stmt = linitial_node(RawStmt, raw);
	if (!IsA(stmt->stmt, SelectStmt))
		piece_error(sql, "a query must begin with SELECT, WITH or VALUES");
	if (((SelectStmt *) stmt->stmt)->intoClause != NULL)
		piece_error(sql, "SELECT INTO is not allowed here");
	pln_rewrite_raw(sql, (Node *) stmt);
	return stmt;
}

/*
 * Parse an expression: first without the parentheses around it, so that it cannot close
 * them, "a) OR (b", then with them.
 */
static List *
parse_inside(PlnSql *sql)
{
	char	   *open = strchr(sql->text, '(');
	char	   *close = strrchr(sql->text, ')');

	PLN_ENSURE(open != NULL && close > open);
	*open = *close = ' ';
	(void) parse_raw(sql, RAW_PARSE_PLPGSQL_EXPR);
	*open = '(';
	*close = ')';
	return parse_raw(sql, RAW_PARSE_PLPGSQL_EXPR);
}

Node *
pln_sql_parse_expr(PlnSql *sql)
{
	/* the text has parentheses around it: whatever parses is one expression */
	List	   *raw = parse_inside(sql);
	SelectStmt *select = castNode(SelectStmt, linitial_node(RawStmt, raw)->stmt);
	Node	   *wrapped;

	if (list_length(select->targetList) != 1 || select->fromClause != NIL)
		piece_error(sql, "one expression expected");
	/* rewritten below its target, which is never overwritten */
	wrapped = linitial(select->targetList);
	pln_rewrite_raw(sql, (Node *) select);
	return castNode(ResTarget, wrapped)->val;
}

TypeName *
pln_sql_parse_type(PlnSql *sql)
{
	List	   *raw = parse_raw(sql, RAW_PARSE_TYPE_NAME);
	TypeName   *type = linitial_node(TypeName, raw);

	if (type->setof || type->pct_type)
		piece_error(sql, "a column needs a plain type");
	pln_rewrite_type(type);
	return type;
}

/* Parse and forget: for the errors. */
void
pln_sql_check(PlnSql *sql, PlnSqlKind kind)
{
	switch (kind)
	{
		case PLN_SQL_QUERY:
		case PLN_SQL_FROM_ITEM:
			(void) pln_sql_parse_query(sql);
			break;
		case PLN_SQL_EXPR:
			(void) pln_sql_parse_expr(sql);
			break;
		case PLN_SQL_TYPE:
			(void) pln_sql_parse_type(sql);
			break;
		case PLN_SQL_PLAIN:
			(void) pln_sql_parse_plain(sql);
			break;
	}
}

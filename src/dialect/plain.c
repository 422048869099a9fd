/*
 * plain.c
 *	  Plain statements: clauses of Databricks' CREATE TABLE, INSERT and MERGE that
 *	  PostgreSQL spells differently or does without.
 */
#include "postgres.h"

#include "base/errors.h"
#include "compat/pg_compat.h"
#include "dialect/internal.h"

static const PlnToken *
tok(PlnEmbed *e, int i)
{
	return pln_embed_token(e, i);
}

static bool
is_text(const PlnToken *token)
{
	return token->type == PLN_T_SCONST || token->quote == '"';
}

static int
behind_parens(PlnEmbed *e, int open)
{
	return Min(pln_matching_paren(e->tok, e->n, open) + 1, e->n);
}

/* A clause that is left out; named once for a statement. */
static void
note(PlnEmbed *e, const char *clause)
{
	ListCell   *lc;

	foreach(lc, e->notices)
	{
		if (strcmp(lfirst(lc), clause) == 0)
			return;
	}
	e->notices = lappend(e->notices, pstrdup(clause));
}

/* One clause behind the columns of CREATE TABLE: the token behind it, or i. */
static int
table_clause(PlnEmbed *e, int i, const char **name)
{
	const PlnToken *next = tok(e, i + 1);

	if (pln_token_is(&e->tok[i], "comment") && is_text(next))
	{
		*name = "COMMENT";
		return i + 2;
	}
	if (pln_token_is(&e->tok[i], "location") && is_text(next))
	{
		*name = "LOCATION";
		return i + 2;
	}
	if (pln_token_is(&e->tok[i], "using") && pln_token_is(next, "delta"))
	{
		*name = "USING DELTA";
		return i + 2;
	}
	if (pln_token_is(&e->tok[i], "tblproperties") && next->type == '(')
	{
		*name = "TBLPROPERTIES";
		return behind_parens(e, i + 1);
	}
	if ((pln_token_is(&e->tok[i], "partitioned") || pln_token_is(&e->tok[i], "cluster")) &&
		pln_token_is(next, "by"))
	{
		*name = pln_token_is(&e->tok[i], "cluster") ? "CLUSTER BY" : "PARTITIONED BY";
		return tok(e, i + 2)->type == '(' ? behind_parens(e, i + 2) : Min(i + 3, e->n);
	}
	return i;
}

/* COMMENT 'text' of a column, expectations, inside of the column list */
static void
column_list_rules(PlnEmbed *e, int open, int close)
{
	int			i;

	for (i = open + 1; i < close; i++)
	{
		if (pln_token_is(&e->tok[i], "comment") && is_text(tok(e, i + 1)) &&
			e->tok[i - 1].type != ',' && i > open + 1)
		{
			pln_embed_drop(e, i, i + 2);
			note(e, "COMMENT on a column");
		}
		else if (pln_token_is(&e->tok[i], "constraint") && pln_token_is(tok(e, i + 2), "expect"))
			pln_refuse_token(e, i, "an expectation on an ordinary table",
							 "Use CHECK, or CREATE STREAMING TABLE.");
	}
}

static void
create_table_rules(PlnEmbed *e, int i)
{
	const char *name = NULL;
	int			to;

	if (pln_token_is(tok(e, 1), "or") && pln_token_is(tok(e, 2), "replace"))
		pln_embed_drop(e, 1, 3);
	/* the name, then perhaps columns */
	for (i++; i < e->n && e->tok[i].type != '('; i++)
	{
		if (pln_token_is(&e->tok[i], "as") || table_clause(e, i, &name) > i)
			break;
	}
	if (tok(e, i)->type == '(')
	{
		to = behind_parens(e, i);
		column_list_rules(e, i, to);
		i = to;
	}
	while (i < e->n && !pln_token_is(&e->tok[i], "as"))
	{
		if (pln_token_is(&e->tok[i], "flow"))
			pln_refuse_token(e, i, "CREATE TABLE ... FLOW", "Use CREATE STREAMING TABLE.");
		to = table_clause(e, i, &name);
		pln_embed_drop(e, i, to);
		if (to > i)
			note(e, name);
		i = Max(to, i + 1);
	}
}

static void
insert_rules(PlnEmbed *e)
{
	int			i;

	if (pln_token_is(tok(e, 1), "overwrite"))
		pln_refuse_token(e, 1, "INSERT OVERWRITE", "Use TRUNCATE, then INSERT INTO.");
	if (pln_token_is(tok(e, 1), "into") && pln_token_is(tok(e, 2), "table") &&
		tok(e, 3)->type == PLN_T_IDENT)
		pln_embed_drop(e, 2, 3);
	for (i = 2; i < e->n && e->tok[i].type != '(' && !pln_token_begins_query(&e->tok[i]); i++)
	{
		if (pln_token_is(&e->tok[i], "by") && pln_token_is(tok(e, i + 1), "name"))
			pln_refuse_token(e, i, "INSERT ... BY NAME outside of a flow",
							 "List the columns behind the table's name.");
	}
}

static void
merge_rules(PlnEmbed *e)
{
	int			i;

	for (i = 1; i < e->n; i++)
	{
		const PlnToken *token = &e->tok[i];
		const PlnToken *next = tok(e, i + 1);

		if (pln_token_is(token, "matched") && pln_token_is(next, "by"))
		{
			if (pln_token_is(tok(e, i + 2), "target"))
				pln_embed_drop(e, i + 1, i + 3);
			else if (!PLN_HAVE_MERGE_BY_SOURCE && pln_token_is(tok(e, i + 2), "source"))
				pln_refuse_token(e, i + 1, "WHEN NOT MATCHED BY SOURCE",
								 "Use DELETE or UPDATE with NOT EXISTS.");
		}
		if (pln_token_is(token, "set") && next->type == '*')
			pln_refuse_token(e, i + 1, "UPDATE SET *", "List the columns.");
		if (pln_token_is(token, "insert") && next->type == '*')
			pln_refuse_token(e, i + 1, "INSERT *", "List the columns.");
		if (pln_token_is(token, "schema") && pln_token_is(next, "evolution"))
			pln_refuse_token(e, i, "WITH SCHEMA EVOLUTION", NULL);
	}
}

/* PostgreSQL grants on views of any kind as on tables (dialect-reference §1.15). */
static void
grant_rules(PlnEmbed *e)
{
	int			i;

	for (i = 1; i < e->n && !pln_token_is(&e->tok[i], "on"); i++)
		;
	if (pln_token_is(tok(e, i + 1), "view") && tok(e, i + 2)->type == PLN_T_IDENT &&
		!pln_token_is(tok(e, i + 2), "to") && !pln_token_is(tok(e, i + 2), "from"))
		pln_embed_drop(e, i + 1, i + 2);
	else if ((pln_token_is(tok(e, i + 1), "materialized") && pln_token_is(tok(e, i + 2), "view")) ||
			 (pln_token_is(tok(e, i + 1), "streaming") && pln_token_is(tok(e, i + 2), "table")))
		pln_embed_drop(e, i + 1, i + 3);
}

/* Statements that Databricks has and PostgreSQL has not. */
static const struct
{
	const char *first;
	const char *second;			/* NULL: any */
	const char *name;
	const char *hint;
}			refused_statements[] =
{
	{"optimize", NULL, "OPTIMIZE", "Use VACUUM or CLUSTER."},
	{"copy", "into", "COPY INTO",
	"Use CREATE STREAMING TABLE ... AS SELECT * FROM STREAM read_files('path')."},
	{"restore", NULL, "RESTORE", NULL},
	{"undrop", NULL, "UNDROP", NULL},
	{"cache", NULL, "CACHE", NULL},
	{"uncache", NULL, "UNCACHE", NULL},
	{"convert", "to", "CONVERT TO DELTA", NULL},
	{"show", "create", "SHOW CREATE", "Use SELECT * FROM pipeline.describe('name')."},
	{"show", "tables", "SHOW TABLES", "Use SELECT * FROM pipeline.datasets."},
	{"show", "views", "SHOW VIEWS", "Use SELECT * FROM pipeline.datasets."},
	{"show", "columns", "SHOW COLUMNS", "Query information_schema.columns."},
	{"show", "schemas", "SHOW SCHEMAS", "Query pg_namespace."},
	{"show", "databases", "SHOW DATABASES", "Query pg_database."},
	{"show", "catalogs", "SHOW CATALOGS", "Query pg_database."},
	{"show", "tblproperties", "SHOW TBLPROPERTIES", "Use SELECT * FROM pipeline.describe('name')."},
	{"create", "sink", "CREATE SINK", NULL},
	{"create", "catalog", "CREATE CATALOG", NULL},
};

void
pln_embed_plain_rules(PlnEmbed *e)
{
	int			i;

	for (i = 0; i < (int) lengthof(refused_statements); i++)
	{
		if (pln_token_is(tok(e, 0), refused_statements[i].first) &&
			(refused_statements[i].second == NULL ||
			 pln_token_is(tok(e, 1), refused_statements[i].second)))
			pln_refuse_token(e, 0, refused_statements[i].name, refused_statements[i].hint);
	}
	if (pln_token_is(tok(e, 0), "create"))
	{
		i = pln_token_is(tok(e, 1), "or") ? 3 : 1;
		if (pln_token_is(tok(e, i), "table"))
			create_table_rules(e, i);
	}
	else if (pln_token_is(tok(e, 0), "insert"))
		insert_rules(e);
	else if (pln_token_is(tok(e, 0), "merge"))
		merge_rules(e);
	else if (pln_token_is(tok(e, 0), "grant") || pln_token_is(tok(e, 0), "revoke"))
		grant_rules(e);
}

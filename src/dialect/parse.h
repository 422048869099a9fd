/*
 * parse.h
 *	  Entry points of the dialect: text to statements, pieces of SQL to raw trees.
 */
#ifndef PIPELINE_DIALECT_PARSE_H
#define PIPELINE_DIALECT_PARSE_H

#include "dialect/nodes.h"

/* A pipeline parameter: ${name} and :name in the text. */
typedef struct PlnParam
{
	const char *name;
	const char *value;			/* NULL: no value known yet (raises 22023 where it is used) */
} PlnParam;

/*
 * Parse a whole body.  Every statement's syntax is checked, including the embedded
 * SQL, before anything is returned.  Raises 42601 with the cursor on the user's text,
 * 0A000 naming the clause for forms that are not built, 22023 for parameters.
 */
extern PlnScript *pln_parse_script(const char *source, const PlnParam *params, int nparams);

/* A query (PlnSql holding a SELECT) as one RawStmt; STREAM t has become
 * t TABLESAMPLE pipeline.stream('{options json}') and dialect types, functions and
 * operators have become PostgreSQL's.  read_files/cloud_files calls stay RangeFunctions
 * whose FuncCall has the name pipeline.read_files and, when streaming, a last named
 * argument "stream" => '{options}'. */
extern RawStmt *pln_sql_parse_query(PlnSql *sql);

/* An expression (expectation condition, DEFAULT, ...). */
extern Node *pln_sql_parse_expr(PlnSql *sql);

/* Wrap stored dialect text (an expectation's condition, a flow's query) as a script of
 * its own, so that the functions here can be used on it. */
extern PlnSql *pln_sql_make(const char *text);

/* A plain statement; may yield exactly one RawStmt. */
extern RawStmt *pln_sql_parse_plain(PlnSql *sql);

/*
 * Positions.  Between begin and end every error raised with a cursor position that
 * counts in sql->text is moved to the user's source (see measurements A).  Positions of
 * nested, foreign queries are left alone.  Calls nest.
 */
typedef struct PlnErrorScope
{
	ErrorContextCallback callback;
	PlnScript  *script;
	PlnSql	   *sql;			/* NULL: positions count in script->source */
	bool		moved;			/* private: this error's position is final already */
} PlnErrorScope;

extern void pln_error_scope_begin(PlnErrorScope *scope, PlnScript *script, PlnSql *sql);
extern void pln_error_scope_end(PlnErrorScope *scope);

/* For ereport(): errposition() for a byte offset of script->source; -1 is ignored.
 * Works inside and outside of scopes. */
extern int	pln_script_errposition(PlnScript *script, int location);

/* The byte offset of script->source that an offset of sql->text stands for. */
extern int	pln_sql_source_location(PlnSql *sql, int text_location);

/* For a Spark function that PostgreSQL does not have: what to write instead, or NULL. */
extern const char *pln_function_hint(const char *name);

#endif							/* PIPELINE_DIALECT_PARSE_H */

/*
 * internal.h
 *	  What the files of dialect/ share; nobody else includes it.
 */
#ifndef PIPELINE_DIALECT_INTERNAL_H
#define PIPELINE_DIALECT_INTERNAL_H

#include "lib/stringinfo.h"

#include "dialect/scan.h"

/* position.c */
typedef struct PlnPosMap PlnPosMap;

extern PlnPosMap *pln_posmap_create(void);
extern void pln_posmap_add(PlnPosMap *map, int text_from, int source_from, bool verbatim);
extern int	pln_posmap_errposition(PlnSql *sql, int text_location);

/* One statement on its way through the grammar. */
typedef struct PlnParser
{
	PlnScript  *script;
	const PlnParam *params;
	int			nparams;
	List	   *set_params;		/* of PlnSet *: what SET of this script defined so far */
	PlnToken   *tok;			/* n tokens of the statement, then one of type PLN_T_END */
	int			n;
	int			pos;			/* the token that the grammar gets next */
	PlnStmt    *result;

	/* what the grammar is building */
	PlnCreateDataset *dataset;
	PlnColumnDef *column;
	PlnCdcSpec *cdc;
	bool		cdc_snapshot;
	List	   *choice;			/* of char *: the last column list of AUTO CDC */
	PlnRefresh *refresh;
	int			clauses_seen;	/* bits of PLN_CLAUSE_* */
	int			clause_location[32];	/* by number of the bit */
} PlnParser;

/* params.c */
extern const char *pln_param_value(PlnParser *ps, const PlnToken *token);
extern List *pln_param_identifier(PlnParser *ps, const PlnToken *token);
extern char *pln_param_literal(PlnParser *ps, const PlnToken *token);
extern void pln_prepare_tokens(PlnParser *ps, const PlnToken *tok, int n);
extern char *pln_quote_word(const char *word);
extern bool pln_is_number(const char *text);

/* track.c: which token begins an item of a FROM clause */
typedef struct PlnTracker
{
	struct PlnTrackLevel *levels;
	int			depth;
	int			max_depth;
	bool		item;			/* the token of the last step may begin a FROM item */
	bool		expect;
	bool		merge;			/* USING at the top introduces an item */
} PlnTracker;

typedef struct PlnTrackLevel
{
	bool		query;			/* a SELECT of its own */
	bool		call;			/* parentheses of an expression or call */
	bool		in_from;
	int			from_token;		/* the FROM of the current SELECT, -1 = none so far */
} PlnTrackLevel;

extern void pln_track_begin(PlnTracker *tracker, const PlnToken *tok, int n, bool expect_item);
extern void pln_track_step(PlnTracker *tracker, const PlnToken *tok, int n, int i);
extern bool pln_token_begins_query(const PlnToken *token);
extern int	pln_matching_paren(const PlnToken *tok, int n, int open);

/* embed.c */
typedef enum PlnSqlKind
{
	PLN_SQL_QUERY,
	PLN_SQL_EXPR,
	PLN_SQL_FROM_ITEM,			/* becomes SELECT * FROM item */
	PLN_SQL_TYPE,
	PLN_SQL_PLAIN
} PlnSqlKind;

/* Text under construction; edit[i] says how token i is written. */
typedef struct PlnEdit
{
	char	   *before;
	char	   *text;			/* in place of the token; NULL = as it is */
	char	   *after;
	bool		drop;
	bool		moved;			/* written elsewhere */
	int			insert_from;	/* tokens [from, to) are written before this one, as QUALIFY */
	int			insert_to;
} PlnEdit;

typedef struct PlnEmbed
{
	PlnParser  *ps;
	PlnSql	   *sql;
	PlnSqlKind	kind;
	const PlnToken *tok;
	int			n;
	PlnEdit    *edit;
	int		   *text_offset;	/* of each token, once written */
	PlnTracker	track;
	List	   *stream_tokens;	/* of int: first token of each streamed relation */
	List	   *notices;		/* of char *: clauses without effect that were left out */
	StringInfoData buf;
	PlnPosMap  *map;
} PlnEmbed;

extern PlnSql *pln_embed(PlnParser *ps, int from, int to, PlnSqlKind kind, List **notices);
extern const PlnToken *pln_embed_token(PlnEmbed *e, int i);
extern void pln_embed_drop(PlnEmbed *e, int from, int to);
extern void pln_refuse_token(PlnEmbed *e, int i, const char *what, const char *hint)
			pg_attribute_noreturn();

/* stream.c: STREAM, LIVE, read_files at the start of a FROM item */
extern void pln_embed_from_item(PlnEmbed *e, int i);
extern char *pln_stream_options_json(List *options);
extern void pln_rewrite_read_files(PlnSql *sql, FuncCall *call, PlnStreamRef *stream);

/* tokens.c: operators, types, literals that the server's grammar does not take */
extern void pln_embed_token_rules(PlnEmbed *e, int i);
extern void pln_embed_plain_rules(PlnEmbed *e);

/* rewrite.c */
extern void pln_rewrite_raw(PlnSql *sql, Node *raw);
extern void pln_rewrite_type(TypeName *type);

/* functions.c */
extern FuncCall *pln_make_system_call(const char *name, List *args, int location);
extern Node *pln_make_cast(Node *arg, const char *type, int location);
extern void pln_rewrite_function(PlnSql *sql, FuncCall *call);

/* patterns.c: date and time functions with patterns of Spark */
extern Node *pln_build_datetime(PlnSql *sql, FuncCall *call);

/* islands.c: embedded SQL between the grammar's own tokens */
typedef enum PlnIslandEnd
{
	PLN_UNTIL_END,				/* of the statement */
	PLN_UNTIL_PAREN,			/* the closing parenthesis of the one before */
	PLN_UNTIL_COLUMN_CLAUSE,	/* a column's type or DEFAULT */
	PLN_UNTIL_KEYS,
	PLN_UNTIL_CDC_CLAUSE,
	PLN_UNTIL_BY_NAME,			/* or the query itself */
	PLN_UNTIL_SYNC				/* SYNC or ASYNC */
} PlnIslandEnd;

extern PlnSql *pln_read_island(PlnParser *ps, PlnIslandEnd until, PlnSqlKind kind);
extern void pln_read_type(PlnParser *ps, PlnColumnDef *column);
extern void pln_syntax_error(PlnParser *ps, int token) pg_attribute_noreturn();
extern void pln_refuse(PlnParser *ps, int location, const char *what, const char *hint)
			pg_attribute_noreturn();

/* build.c: actions of the grammar */
#define PLN_MOD_STREAMING		0x01
#define PLN_MOD_LIVE			0x02
#define PLN_MOD_MATERIALIZED	0x04
#define PLN_MOD_TEMPORARY		0x08
#define PLN_MOD_PRIVATE			0x10
#define PLN_MOD_OR_REFRESH		0x20
#define PLN_MOD_OR_REPLACE		0x40

#define PLN_CLAUSE_COMMENT		0x01
#define PLN_CLAUSE_PROPERTIES	0x02
#define PLN_CLAUSE_PARTITION	0x04
#define PLN_CLAUSE_CLUSTER		0x08
#define PLN_CLAUSE_LOCATION		0x10
#define PLN_CLAUSE_USING		0x20
#define PLN_CLAUSE_SCHEDULE		0x40
#define PLN_CLAUSE_POLICY		0x80
#define PLN_CLAUSE_COLLATION	0x100
#define PLN_CLAUSE_CDC_IGNORE	0x200
#define PLN_CLAUSE_CDC_DELETE	0x400
#define PLN_CLAUSE_CDC_TRUNCATE	0x800
#define PLN_CLAUSE_CDC_SEQUENCE	0x1000
#define PLN_CLAUSE_CDC_COLUMNS	0x2000
#define PLN_CLAUSE_CDC_STORED	0x4000
#define PLN_CLAUSE_CDC_TRACK	0x8000
#define PLN_CLAUSE_FULL			0x10000
#define PLN_CLAUSE_WHERE		0x20000
#define PLN_CLAUSE_SYNC			0x40000

extern void *pln_make_stmt(PlnParser *ps, PlnStmtKind kind, Size size);
extern PlnName *pln_make_name(PlnParser *ps, List *parts, int location);
extern void pln_begin_dataset(PlnParser *ps, int modifiers, bool is_table, int location);
extern void pln_finish_dataset(PlnParser *ps);
extern void pln_clause_once(PlnParser *ps, int clause, int location);
extern void pln_notice(PlnParser *ps, const char *clause);
extern PlnFlowDef *pln_make_flow(PlnFlowKind kind, int location);
extern PlnFlowDef *pln_make_query_flow(PlnSql *query, bool once, bool by_name, int location);
extern PlnFlowDef *pln_make_cdc_flow(PlnParser *ps, PlnName *target, bool once, int location);
extern void pln_begin_cdc(PlnParser *ps, int location);
extern PlnSchedule *pln_make_schedule(PlnScheduleKind kind, int location);
extern PlnSchedule *pln_schedule_every(PlnParser *ps, const char *n, const char *unit,
									   int location);
extern int64 pln_interval_seconds(PlnParser *ps, const char *n, const char *unit, int location);
extern char *pln_word_as_written(PlnParser *ps, const char *word, int location);

/* parse.c */
extern void pln_sql_check(PlnSql *sql, PlnSqlKind kind);
extern TypeName *pln_sql_parse_type(PlnSql *sql);

/* gram.y */
extern void pln_grammar_run(PlnParser *ps);

#endif							/* PIPELINE_DIALECT_INTERNAL_H */

/*
 * nodes.h
 *	  Statements of the dialect, as plain structs (dialect-reference §1).
 *
 * Nothing here knows the catalog.  All strings and lists live in the context that
 * was current when pln_parse_script() was called.  Locations are byte offsets into
 * PlnScript.source, -1 when unknown.
 */
#ifndef PIPELINE_DIALECT_NODES_H
#define PIPELINE_DIALECT_NODES_H

#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"

/* A piece of the user's SQL (a query, an expression, a whole plain statement). */
typedef struct PlnSql
{
	struct PlnScript *script;
	char	   *original;		/* verbatim source slice, for display and fingerprints */
	char	   *text;			/* what the server's parser is given: dialect tokens rewritten */
	int			location;		/* where the slice starts in script->source */
	int			length;
	List	   *streams;		/* of PlnStreamRef, in order of location */
	void	   *posmap;			/* text offset -> source offset, private to dialect/ */
	bool		needs_expand;	/* has * EXCEPT, QUALIFY or GROUP BY ALL: the raw tree must go
								 * through pln_expand_select() before it is analysed */
	int			expand_location;	/* the first of these in the source */
} PlnSql;

/* One relation or read_files() call that is read with STREAM. */
typedef struct PlnStreamRef
{
	int			text_location;	/* offset in PlnSql.text of the relation's first token */
	List	   *options;		/* of PlnProperty: skipChangeCommits, onlyInserts, ... */
	bool		has_watermark;
	char	   *watermark;		/* verbatim clause, NULL when none */
	int			location;		/* of the STREAM keyword in the source */
} PlnStreamRef;

typedef struct PlnName
{
	char	   *catalog;		/* NULL when not given */
	char	   *schema;			/* NULL when not given; "LIVE." is dropped by the parser */
	char	   *name;
	bool		live;			/* was written LIVE.x */
	int			location;
} PlnName;

typedef struct PlnProperty
{
	char	   *key;			/* as written, without quotes */
	char	   *value;			/* text form; NULL for a bare key */
	int			location;
	int			value_location;
} PlnProperty;

typedef enum PlnAction
{
	PLN_ACTION_WARN,
	PLN_ACTION_DROP,
	PLN_ACTION_QUARANTINE,
	PLN_ACTION_FAIL
} PlnAction;

typedef enum PlnThresholdKind
{
	PLN_THRESHOLD_NONE,
	PLN_THRESHOLD_PERCENT,
	PLN_THRESHOLD_ROWS
} PlnThresholdKind;

/* CONSTRAINT name EXPECT (condition) [ON VIOLATION ...]; also EXPECT ALL FROM table. */
typedef struct PlnExpectationDef
{
	char	   *name;			/* NULL for EXPECT ALL FROM */
	PlnSql	   *condition;		/* NULL for EXPECT ALL FROM */
	PlnAction	action;
	PlnThresholdKind threshold_kind;
	double		threshold;		/* fails above this */
	PlnName    *rules_table;	/* EXPECT ALL FROM table [WHERE tag = '...'] */
	char	   *rules_tag;
	int			location;
} PlnExpectationDef;

/* One column of a dataset's column list. */
typedef struct PlnColumnDef
{
	char	   *name;
	char	   *type_text;		/* NULL when only a name (views) */
	TypeName   *type;			/* parsed and dialect-mapped; NULL when no type */
	bool		not_null;
	char	   *comment;
	bool		is_identity;	/* GENERATED ... AS IDENTITY */
	bool		identity_always;
	List	   *identity_options;	/* of DefElem */
	PlnSql	   *generated;		/* GENERATED ALWAYS AS (expr) */
	PlnSql	   *default_expr;
	bool		informational_key;	/* PRIMARY KEY / REFERENCES on the column: NOTICE only */
	int			location;
} PlnColumnDef;

typedef enum PlnScheduleKind
{
	PLN_SCHEDULE_NONE,
	PLN_SCHEDULE_EVERY,
	PLN_SCHEDULE_CRON,
	PLN_SCHEDULE_TRIGGER
} PlnScheduleKind;

typedef struct PlnSchedule
{
	PlnScheduleKind kind;
	int			every;			/* in unit */
	char	   *unit;			/* HOURS, DAYS, WEEKS */
	char	   *cron;
	char	   *time_zone;
	int64		at_most_every_s;	/* 0 = not given */
	int			location;
} PlnSchedule;

typedef enum PlnRefreshPolicy
{
	PLN_POLICY_AUTO,
	PLN_POLICY_INCREMENTAL,
	PLN_POLICY_STRICT,
	PLN_POLICY_FULL
} PlnRefreshPolicy;

typedef enum PlnDatasetKind
{
	PLN_STREAMING_TABLE,
	PLN_MATERIALIZED_VIEW,
	PLN_VIEW,					/* CREATE VIEW: published, ordinary view */
	PLN_TEMPORARY_VIEW			/* known to the pipeline only */
} PlnDatasetKind;

typedef enum PlnFlowKind
{
	PLN_FLOW_INSERT,			/* AS query, INSERT [ONCE] INTO t BY NAME query */
	PLN_FLOW_AUTO_CDC,
	PLN_FLOW_CDC_SNAPSHOT,
	PLN_FLOW_REPLACE_WHERE,
	PLN_FLOW_REPLACE_USING
} PlnFlowKind;

typedef struct PlnCdcSpec
{
	PlnSql	   *source;			/* "STREAM t" as a FROM item turned into SELECT * FROM ... */
	List	   *keys;			/* of char * */
	bool		ignore_null_updates;
	List	   *ignore_null_columns;	/* of char *; NIL = all */
	bool		ignore_null_except;
	PlnSql	   *delete_when;
	PlnSql	   *truncate_when;
	PlnSql	   *sequence_by;
	bool		columns_except;
	List	   *columns;		/* of char *; NIL = all */
	int			scd_type;		/* 1 or 2 */
	bool		track_except;
	List	   *track_columns;	/* of char *; NIL = all */
	PlnSql	   *version_query;	/* FROM SNAPSHOT (..) WITH VERSION (..) */
	int			location;
} PlnCdcSpec;

typedef struct PlnFlowDef
{
	PlnFlowKind kind;
	char	   *name;			/* NULL: named like its target */
	PlnName    *target;
	bool		once;
	bool		by_name;
	PlnSql	   *query;			/* INSERT and REPLACE flows */
	PlnSql	   *replace_where;
	List	   *replace_using;	/* of char * */
	PlnSql	   *sequence_by;
	PlnCdcSpec *cdc;
	char	   *comment;
	int			location;
} PlnFlowDef;

typedef enum PlnStmtKind
{
	PLN_STMT_CREATE_DATASET,
	PLN_STMT_CREATE_FLOW,
	PLN_STMT_REFRESH,
	PLN_STMT_ALTER,
	PLN_STMT_DROP,
	PLN_STMT_GRANT_REFRESH,		/* and REVOKE */
	PLN_STMT_EXPLAIN_CREATE,	/* EXPLAIN CREATE MATERIALIZED VIEW */
	PLN_STMT_DESCRIBE,
	PLN_STMT_SET,				/* SET key = value */
	PLN_STMT_USE,				/* USE CATALOG / USE SCHEMA */
	PLN_STMT_PLAIN				/* any other SQL statement of PostgreSQL, dialect-rewritten */
} PlnStmtKind;

/* What every statement starts with. */
typedef struct PlnStmt
{
	PlnStmtKind kind;
	int			location;		/* first token */
	int			length;			/* without the semicolon */
	char	   *original;		/* verbatim */
} PlnStmt;

typedef struct PlnCreateDataset
{
	PlnStmt		stmt;
	PlnDatasetKind dataset_kind;
	PlnName    *name;
	bool		or_refresh;
	bool		or_replace;
	bool		if_not_exists;
	bool		is_private;
	bool		legacy;			/* LIVE TABLE spellings */
	List	   *columns;		/* of PlnColumnDef, NIL when no list */
	List	   *expectations;	/* of PlnExpectationDef */
	char	   *comment;
	List	   *properties;		/* of PlnProperty (TBLPROPERTIES) */
	List	   *partition_by;	/* of char * */
	List	   *cluster_by;		/* of char * */
	bool		cluster_auto;
	PlnRefreshPolicy policy;
	bool		has_policy;
	int			policy_location;
	PlnSchedule *schedule;		/* NULL when none */
	PlnFlowDef *flow;			/* AS query, or FLOW clause; NULL for an empty target */
	List	   *notices;		/* of char *: accepted clauses without effect (PRIMARY KEY ...) */
} PlnCreateDataset;

typedef struct PlnCreateFlow
{
	PlnStmt		stmt;
	PlnFlowDef *flow;
} PlnCreateFlow;

typedef struct PlnRefresh
{
	PlnStmt		stmt;
	PlnDatasetKind dataset_kind;
	PlnName    *name;
	bool		full;
	bool		async;
	PlnSql	   *where;
} PlnRefresh;

typedef enum PlnAlterKind
{
	PLN_ALTER_ADD_SCHEDULE,
	PLN_ALTER_ALTER_SCHEDULE,
	PLN_ALTER_DROP_SCHEDULE,
	PLN_ALTER_COLUMN_COMMENT,
	PLN_ALTER_SET_PROPERTIES,
	PLN_ALTER_OWNER,
	PLN_ALTER_RENAME
} PlnAlterKind;

typedef struct PlnAlter
{
	PlnStmt		stmt;
	PlnDatasetKind dataset_kind;
	PlnName    *name;
	PlnAlterKind alter_kind;
	PlnSchedule *schedule;
	char	   *column;
	char	   *text;			/* comment, owner or new name */
	List	   *properties;
	bool		is_table;		/* ALTER TABLE t SET TBLPROPERTIES: t need not be a dataset */
	int			clause_location;	/* of the action's first word */
} PlnAlter;

typedef struct PlnDrop
{
	PlnStmt		stmt;
	PlnDatasetKind dataset_kind;
	PlnName    *name;
	bool		if_exists;
	bool		cascade;
} PlnDrop;

typedef struct PlnGrantRefresh
{
	PlnStmt		stmt;
	bool		is_grant;
	PlnDatasetKind dataset_kind;
	PlnName    *name;
	List	   *grantees;		/* of char * */
} PlnGrantRefresh;

typedef struct PlnExplainCreate
{
	PlnStmt		stmt;
	PlnCreateDataset *create;
} PlnExplainCreate;

typedef struct PlnDescribe
{
	PlnStmt		stmt;
	PlnName    *name;
	bool		extended;
} PlnDescribe;

typedef struct PlnSet
{
	PlnStmt		stmt;
	char	   *key;
	char	   *value;
} PlnSet;

typedef struct PlnUse
{
	PlnStmt		stmt;
	bool		is_catalog;
	char	   *name;
	int			name_location;
} PlnUse;

typedef struct PlnPlain
{
	PlnStmt		stmt;
	PlnSql	   *sql;
	PlnName    *replaces;		/* CREATE OR REPLACE TABLE: drop this table first */
	List	   *notices;		/* of char *: accepted clauses without effect */
} PlnPlain;

/* A parsed body. */
typedef struct PlnScript
{
	const char *source;			/* the user's text */
	List	   *stmts;			/* of PlnStmt * (cast by kind) */
} PlnScript;

#endif							/* PIPELINE_DIALECT_NODES_H */

%{
/*
 * gram.y
 *	  Grammar of the dialect's own statements.
 *
 * Queries, expressions and types inside of them are not parsed here: where one is
 * expected, an action reads the tokens up to the place where it must end (islands.c).
 * Such a rule is empty; when the parser has already looked at the first token of the
 * island, it is given back.  No word is reserved that the server does not reserve; a
 * few words count as keywords only in front of certain others (keyword_in_context).
 *
 * One file because bison takes a grammar in one piece.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"

#include "base/errors.h"
#include "dialect/internal.h"

#define YYMALLOC palloc
#define YYFREE	 pfree

#define YYLLOC_DEFAULT(Current, Rhs, N) \
	do { \
		if (N) \
			(Current) = (Rhs)[1]; \
		else \
			(Current) = -1; \
	} while (0)

/* Read embedded SQL; a token that was looked at already belongs to it. */
#define ISLAND(until, kind) \
	(yychar == PLN_YYEMPTY ? (void) 0 : (void) (ps->pos--, yyclearin), \
	 pln_read_island(ps, until, kind))
%}

%define api.prefix {pln_yy}
%define api.pure full
%define api.location.type {int}
%define parse.error simple
%expect 0
%locations
%parse-param {PlnParser *ps}
%lex-param {PlnParser *ps}

%union
{
	char	   *str;
	const PlnToken *token;
	List	   *list;
	bool		boolean;
	int			ival;
	double		dbl;
	int64		seconds;
	PlnName    *name;
	PlnSql	   *sql;
	PlnFlowDef *flow;
	PlnExpectationDef *expectation;
	PlnSchedule *schedule;
	PlnProperty *property;
	DefElem    *defelem;
}

%code provides
{
static int	pln_yylex(PLN_YYSTYPE *value, int *location, PlnParser *ps);
static void pln_yyerror(int *location, PlnParser *ps, const char *message);
}

/* must be the first tokens, in the order of the core lexer's codes */
%token <str>	IDENT UIDENT FCONST SCONST USCONST BCONST XCONST Op
%token <str>	ICONST PARAM
%token			TYPECAST DOT_DOT COLON_EQUALS EQUALS_GREATER
%token			LESS_EQUALS GREATER_EQUALS NOT_EQUALS
%token <str>	DQUOTED OTHER
%token <token>	PARAMREF

%token <str>
	K_ABOVE K_ADD K_ALL K_ALTER K_ALWAYS K_APPLY K_AS K_ASYNC K_AT K_AUTO
	K_BITEMPORAL K_BY
	K_CASCADE K_CATALOG K_CDC K_CHANGES K_CHECK K_CLUSTER K_COLLATION K_COLUMN
	K_COLUMNS K_COMMENT K_CONSTRAINT K_CREATE K_CRON
	K_DATABASE K_DEFAULT K_DEFERRABLE K_DELETE K_DESC K_DESCRIBE K_DROP
	K_ENFORCED K_EVERY K_EXCEPT K_EXISTS K_EXPECT K_EXPLAIN K_EXTENDED
	K_FAIL K_FILTER K_FLOW K_FOREIGN K_FROM K_FULL
	K_GENERATED K_GRANT
	K_HISTORY
	K_IDENTITY K_IF K_IGNORE K_INCREMENT K_INCREMENTAL K_INITIALLY K_INSERT K_INTERVAL
	K_INTO
	K_KEY K_KEYS
	K_LIVE K_LOCATION
	K_MASK K_MATERIALIZED K_MOST
	K_NAME K_NONE K_NORELY K_NOT K_NOT_LA K_NULL
	K_ON K_ONCE K_OR K_OWNER
	K_PARTITIONED K_PERCENT K_POLICY K_PRIMARY K_PRIVATE
	K_QUARANTINE
	K_REFERENCES K_REFRESH K_RELY K_RENAME K_REPLACE K_RESTRICT K_REVOKE K_ROW K_ROWS
	K_SCD K_SCHEDULE K_SCHEMA K_SEQUENCE K_SET K_SNAPSHOT K_START K_STORED K_STREAMING
	K_STRICT K_SYNC K_SYSTEM
	K_TABLE K_TAGS K_TBLPROPERTIES K_TEMPORARY K_TIME K_TO K_TRACK K_TRIGGER K_TRUNCATE
	K_TYPE
	K_UNIQUE K_UNSET K_UPDATE K_UPDATES K_USE K_USING
	K_VERSION K_VIEW K_VIOLATION
	K_WARN K_WHEN K_WHERE K_WITH
	K_ZONE

%type <str>		word ident string number signed_number unreserved opt_constraint_name
%type <list>	name_part name_parts ident_list paren_idents column_choice idents_any opt_sequence
%type <list>	sequence_options properties property_list grantees
%type <str>		property_key property_word property_value grantee
%type <name>	name
%type <boolean> opt_not_exists opt_if_exists opt_cascade opt_once opt_by_name
%type <boolean> is_table column_filter opt_extended
%type <ival>	or_modifiers modifiers dataset_kind grant_kind opt_refresh_word
%type <sql>		query query_in_parens condition_in_parens
%type <sql>		until_end expression_in_cdc expression_by_name cdc_source column_expr
%type <flow>	flow_clause insert_body flow_body cdc_flow
%type <expectation> violation expectation
%type <schedule> schedule
%type <seconds> at_most interval
%type <property> property
%type <defelem> sequence_option
%type <str>		opt_time_zone opt_comment

%%

statement:
	create_dataset
	| create_flow
	| apply_changes
	| refresh
	| alter
	| drop
	| grant
	| explain
	| describe
	| use
	;

/*---------------------------------------------------------------- names and words */

word:
	IDENT
	| DQUOTED
	| unreserved
	;

/* one identifier */
ident:
	word
	| PARAMREF
		{
			List	   *parts = pln_param_identifier(ps, $1);

			if (list_length(parts) != 1)
				ereport(ERROR,
						(errcode(PLN_ERR_BAD_VALUE),
						 errmsg("value of parameter \"%s\" is not one identifier", $1->str),
						 pln_script_errposition(ps->script, @1)));
			$$ = linitial(parts);
		}
	;

name_part:
	word			{ $$ = list_make1($1); }
	| PARAMREF
		{
			$$ = pln_param_identifier(ps, $1);
		}
	;

name_parts:
	name_part
	| name_parts '.' name_part		{ $$ = list_concat($1, $3); }
	;

name:
	name_parts		{ $$ = pln_make_name(ps, $1, @1); }
	;

ident_list:
	ident						{ $$ = list_make1($1); }
	| ident_list ',' ident		{ $$ = lappend($1, $3); }
	;

paren_idents:
	'(' ident_list ')'			{ $$ = $2; }
	;

idents_any:
	paren_idents
	| ident_list
	;

string:
	SCONST
	| DQUOTED
	| PARAMREF
		{
			$$ = pstrdup(pln_param_value(ps, $1));
		}
	;

number:
	ICONST
	| FCONST
	| PARAMREF
		{
			$$ = pstrdup(pln_param_value(ps, $1));
			if (!pln_is_number($$))
				ereport(ERROR,
						(errcode(PLN_ERR_BAD_VALUE),
						 errmsg("value of parameter \"%s\" is not a number", $1->str),
						 pln_script_errposition(ps->script, @1)));
		}
	;

signed_number:
	number
	| '-' number	{ $$ = psprintf("-%s", $2); }
	;

/*---------------------------------------------------------------- embedded SQL */

query:
	/* empty */		{ $$ = ISLAND(PLN_UNTIL_END, PLN_SQL_QUERY); }
	;

until_end:
	/* empty */		{ $$ = ISLAND(PLN_UNTIL_SYNC, PLN_SQL_EXPR); }
	;

query_in_parens:
	/* empty */		{ $$ = ISLAND(PLN_UNTIL_PAREN, PLN_SQL_QUERY); }
	;

condition_in_parens:
	/* empty */		{ $$ = ISLAND(PLN_UNTIL_PAREN, PLN_SQL_EXPR); }
	;

expression_in_cdc:
	/* empty */		{ $$ = ISLAND(PLN_UNTIL_CDC_CLAUSE, PLN_SQL_EXPR); }
	;

expression_by_name:
	/* empty */		{ $$ = ISLAND(PLN_UNTIL_BY_NAME, PLN_SQL_EXPR); }
	;

cdc_source:
	/* empty */		{ $$ = ISLAND(PLN_UNTIL_KEYS, PLN_SQL_FROM_ITEM); }
	;

column_expr:
	/* empty */		{ $$ = ISLAND(PLN_UNTIL_COLUMN_CLAUSE, PLN_SQL_EXPR); }
	;

column_type:
	/* empty */
		{
			if (yychar != PLN_YYEMPTY)
			{
				ps->pos--;
				yyclearin;
			}
			pln_read_type(ps, ps->column);
		}
	;

/*---------------------------------------------------------------- CREATE dataset */

create_dataset:
	dataset_head opt_elements clauses dataset_body
		{ pln_finish_dataset(ps); }
	;

dataset_head:
	K_CREATE or_modifiers modifiers is_table
		{ pln_begin_dataset(ps, $2 | $3, $4, @1); }
	opt_not_exists name
		{
			ps->dataset->if_not_exists = $6;
			ps->dataset->name = $7;
		}
	;

or_modifiers:
	/* empty */				{ $$ = 0; }
	| K_OR K_REFRESH		{ $$ = PLN_MOD_OR_REFRESH; }
	| K_OR K_REPLACE		{ $$ = PLN_MOD_OR_REPLACE; }
	;

modifiers:
	/* empty */						{ $$ = 0; }
	| modifiers K_STREAMING			{ $$ = $1 | PLN_MOD_STREAMING; }
	| modifiers K_LIVE				{ $$ = $1 | PLN_MOD_LIVE; }
	| modifiers K_MATERIALIZED		{ $$ = $1 | PLN_MOD_MATERIALIZED; }
	| modifiers K_TEMPORARY			{ $$ = $1 | PLN_MOD_TEMPORARY; }
	| modifiers K_PRIVATE			{ $$ = $1 | PLN_MOD_PRIVATE; }
	;

is_table:
	K_TABLE			{ $$ = true; }
	| K_VIEW		{ $$ = false; }
	;

opt_not_exists:
	/* empty */					{ $$ = false; }
	| K_IF K_NOT K_EXISTS		{ $$ = true; }
	;

opt_elements:
	/* empty */
	| '(' elements ')'
	;

elements:
	element
	| elements ',' element
	;

element:
	expectation
		{ ps->dataset->expectations = lappend(ps->dataset->expectations, $1); }
	| table_constraint
	| column
		{ ps->dataset->columns = lappend(ps->dataset->columns, ps->column); }
	;

expectation:
	K_CONSTRAINT ident K_EXPECT '(' condition_in_parens ')' violation
		{
			$$ = $7;
			$$->name = $2;
			$$->condition = $5;
			$$->location = @1;
		}
	| K_EXPECT K_ALL K_FROM name violation
		{
			$$ = $5;
			$$->rules_table = $4;
			$$->location = @1;
		}
	| K_EXPECT K_ALL K_FROM name K_WHERE ident '=' string violation
		{
			if (strcmp($6, "tag") != 0)
				ereport(ERROR,
						(errcode(PLN_ERR_SYNTAX),
						 errmsg("rules can be chosen by their tag only"),
						 errhint("Write  EXPECT ALL FROM rules WHERE tag = '...'."),
						 pln_script_errposition(ps->script, @6)));
			$$ = $9;
			$$->rules_table = $4;
			$$->rules_tag = $8;
			$$->location = @1;
		}
	;

violation:
	/* empty */
		{ $$ = palloc0_object(PlnExpectationDef); }
	| K_ON K_VIOLATION K_FAIL K_UPDATE
		{
			$$ = palloc0_object(PlnExpectationDef);
			$$->action = PLN_ACTION_FAIL;
		}
	| K_ON K_VIOLATION tolerant_action
		{
			$$ = palloc0_object(PlnExpectationDef);
			$$->action = $<ival>3;
		}
	| K_ON K_VIOLATION tolerant_action K_FAIL K_ABOVE number K_PERCENT
		{
			$$ = palloc0_object(PlnExpectationDef);
			$$->action = $<ival>3;
			$$->threshold_kind = PLN_THRESHOLD_PERCENT;
			$$->threshold = strtod($6, NULL);
			if ($$->threshold > 100)
				ereport(ERROR,
						(errcode(PLN_ERR_BAD_VALUE),
						 errmsg("threshold of %s percent is out of range", $6),
						 pln_script_errposition(ps->script, @6)));
		}
	| K_ON K_VIOLATION tolerant_action K_FAIL K_ABOVE number K_ROWS
		{
			$$ = palloc0_object(PlnExpectationDef);
			$$->action = $<ival>3;
			$$->threshold_kind = PLN_THRESHOLD_ROWS;
			$$->threshold = strtod($6, NULL);
		}
	;

tolerant_action:
	K_WARN						{ $<ival>$ = PLN_ACTION_WARN; }
	| K_DROP K_ROW				{ $<ival>$ = PLN_ACTION_DROP; }
	| K_QUARANTINE K_ROW		{ $<ival>$ = PLN_ACTION_QUARANTINE; }
	;

table_constraint:
	opt_constraint_name K_PRIMARY K_KEY paren_idents constraint_options
		{ pln_notice(ps, "PRIMARY KEY"); }
	| opt_constraint_name K_FOREIGN K_KEY paren_idents K_REFERENCES name opt_paren_idents
	  constraint_options
		{ pln_notice(ps, "FOREIGN KEY"); }
	| opt_constraint_name K_CHECK '('
		{
			pln_refuse(ps, @2, "CHECK in the column list of a dataset",
					   "Use CONSTRAINT name EXPECT (condition) ON VIOLATION FAIL UPDATE.");
		}
	| opt_constraint_name K_UNIQUE '('
		{ pln_refuse(ps, @2, "UNIQUE in the column list of a dataset", NULL); }
	;

opt_constraint_name:
	/* empty */					{ $$ = NULL; }
	| K_CONSTRAINT ident		{ $$ = $2; }
	;

opt_paren_idents:
	/* empty */
	| paren_idents
	;

constraint_options:
	/* empty */
	| constraint_options constraint_option
	;

constraint_option:
	K_RELY
	| K_NORELY
	| K_NOT_LA K_ENFORCED
	| K_NOT_LA K_DEFERRABLE
	| K_DEFERRABLE
	| K_INITIALLY word
	;

column:
	ident
		{
			ps->column = palloc0_object(PlnColumnDef);
			ps->column->name = $1;
			ps->column->location = @1;
		}
	column_type column_properties
	;

column_properties:
	/* empty */
	| column_properties column_property
	;

column_property:
	K_NOT K_NULL				{ ps->column->not_null = true; }
	| K_NULL
	| K_COMMENT string			{ ps->column->comment = $2; }
	| opt_constraint_name K_PRIMARY K_KEY constraint_options
		{
			ps->column->informational_key = true;
			pln_notice(ps, "PRIMARY KEY");
		}
	| opt_constraint_name K_REFERENCES name opt_paren_idents constraint_options
		{
			ps->column->informational_key = true;
			pln_notice(ps, "FOREIGN KEY");
		}
	| opt_constraint_name K_FOREIGN K_KEY K_REFERENCES name opt_paren_idents constraint_options
		{
			ps->column->informational_key = true;
			pln_notice(ps, "FOREIGN KEY");
		}
	| K_CHECK
		{
			pln_refuse(ps, @1, "CHECK in the column list of a dataset",
					   "Use CONSTRAINT name EXPECT (condition) ON VIOLATION FAIL UPDATE.");
		}
	| K_UNIQUE
		{ pln_refuse(ps, @1, "UNIQUE in the column list of a dataset", NULL); }
	| K_MASK
		{ pln_refuse(ps, @1, "MASK", "Put a view over the dataset and grant access to the view."); }
	| K_GENERATED K_ALWAYS K_AS '(' condition_in_parens ')'
		{ ps->column->generated = $5; }
	| K_GENERATED K_ALWAYS K_AS K_IDENTITY opt_sequence
		{
			ps->column->is_identity = true;
			ps->column->identity_always = true;
			ps->column->identity_options = $5;
		}
	| K_GENERATED K_BY K_DEFAULT K_AS K_IDENTITY opt_sequence
		{
			ps->column->is_identity = true;
			ps->column->identity_options = $6;
		}
	| K_DEFAULT column_expr
		{ ps->column->default_expr = $2; }
	;

opt_sequence:
	/* empty */						{ $$ = NIL; }
	| '(' sequence_options ')'		{ $$ = $2; }
	;

sequence_options:
	sequence_option						{ $$ = list_make1($1); }
	| sequence_options sequence_option	{ $$ = lappend($1, $2); }
	;

sequence_option:
	K_START opt_with signed_number
		{ $$ = makeDefElem("start", (Node *) makeFloat($3), @1); }
	| K_INCREMENT opt_by signed_number
		{ $$ = makeDefElem("increment", (Node *) makeFloat($3), @1); }
	;

opt_with:
	/* empty */
	| K_WITH
	;

opt_by:
	/* empty */
	| K_BY
	;

clauses:
	/* empty */
	| clauses clause
	;

clause:
	K_USING word
		{
			pln_clause_once(ps, PLN_CLAUSE_USING, @1);
			if (strcmp($2, "delta") != 0)
				pln_refuse(ps, @2, "USING with a format other than DELTA", NULL);
			pln_notice(ps, "USING DELTA");
		}
	| K_PARTITIONED K_BY paren_idents
		{
			pln_clause_once(ps, PLN_CLAUSE_PARTITION, @1);
			ps->dataset->partition_by = $3;
			pln_notice(ps, "PARTITIONED BY");
		}
	| K_CLUSTER K_BY paren_idents
		{
			pln_clause_once(ps, PLN_CLAUSE_CLUSTER, @1);
			ps->dataset->cluster_by = $3;
			pln_notice(ps, "CLUSTER BY");
		}
	| K_CLUSTER K_BY K_AUTO
		{
			pln_clause_once(ps, PLN_CLAUSE_CLUSTER, @1);
			ps->dataset->cluster_auto = true;
			pln_notice(ps, "CLUSTER BY");
		}
	| K_CLUSTER K_BY K_NONE
		{ pln_clause_once(ps, PLN_CLAUSE_CLUSTER, @1); }
	| K_LOCATION string
		{
			pln_clause_once(ps, PLN_CLAUSE_LOCATION, @1);
			pln_notice(ps, "LOCATION");
		}
	| K_COMMENT string
		{
			pln_clause_once(ps, PLN_CLAUSE_COMMENT, @1);
			ps->dataset->comment = $2;
		}
	| K_TBLPROPERTIES properties
		{
			pln_clause_once(ps, PLN_CLAUSE_PROPERTIES, @1);
			ps->dataset->properties = $2;
		}
	| K_DEFAULT K_COLLATION word
		{
			pln_clause_once(ps, PLN_CLAUSE_COLLATION, @1);
			pln_notice(ps, "DEFAULT COLLATION");
		}
	| K_REFRESH K_POLICY refresh_policy
		{
			pln_clause_once(ps, PLN_CLAUSE_POLICY, @1);
			ps->dataset->has_policy = true;
			ps->dataset->policy_location = @1;
		}
	| schedule
		{
			pln_clause_once(ps, PLN_CLAUSE_SCHEDULE, @1);
			ps->dataset->schedule = $1;
		}
	| K_WITH K_ROW K_FILTER
		{
			pln_refuse(ps, @1, "WITH ROW FILTER",
					   "Put a view over the dataset and grant access to the view.");
		}
	;

refresh_policy:
	K_AUTO						{ ps->dataset->policy = PLN_POLICY_AUTO; }
	| K_INCREMENTAL				{ ps->dataset->policy = PLN_POLICY_INCREMENTAL; }
	| K_INCREMENTAL K_STRICT	{ ps->dataset->policy = PLN_POLICY_STRICT; }
	| K_FULL					{ ps->dataset->policy = PLN_POLICY_FULL; }
	;

properties:
	'(' property_list ')'		{ $$ = $2; }
	;

property_list:
	property						{ $$ = list_make1($1); }
	| property_list ',' property	{ $$ = lappend($1, $3); }
	;

property:
	property_key opt_equals property_value
		{
			$$ = palloc0_object(PlnProperty);
			$$->key = $1;
			$$->value = $3;
			$$->location = @1;
			$$->value_location = @3;
		}
	;

opt_equals:
	/* empty */
	| '='
	| EQUALS_GREATER
	;

/* as written: option names keep their case */
property_word:
	word			{ $$ = pln_word_as_written(ps, $1, @1); }
	;

property_key:
	SCONST
	| property_word
	| property_key '.' property_word	{ $$ = psprintf("%s.%s", $1, $3); }
	;

property_value:
	SCONST
	| property_word
	| signed_number
	;

schedule:
	K_SCHEDULE opt_refresh_word K_EVERY number word
		{ $$ = pln_schedule_every(ps, $4, $5, @1); }
	| K_SCHEDULE opt_refresh_word K_CRON string opt_time_zone
		{
			$$ = pln_make_schedule(PLN_SCHEDULE_CRON, @1);
			$$->cron = $4;
			$$->time_zone = $5;
		}
	| K_TRIGGER K_ON K_UPDATE at_most
		{
			$$ = pln_make_schedule(PLN_SCHEDULE_TRIGGER, @1);
			$$->at_most_every_s = $4;
		}
	;

opt_refresh_word:
	/* empty */			{ $$ = 0; }
	| K_REFRESH			{ $$ = 1; }
	;

opt_time_zone:
	/* empty */					{ $$ = NULL; }
	| K_AT K_TIME K_ZONE string	{ $$ = $4; }
	| K_AT K_TIME K_ZONE IDENT
		{
			ereport(ERROR,
					(errcode(PLN_ERR_SYNTAX),
					 errmsg("the time zone of a schedule must be a string"),
					 errhint("Write  AT TIME ZONE 'Europe/Berlin'."),
					 pln_script_errposition(ps->script, @4)));
		}
	;

at_most:
	/* empty */							{ $$ = 0; }
	| K_AT K_MOST K_EVERY interval		{ $$ = $4; }
	;

interval:
	K_INTERVAL number word		{ $$ = pln_interval_seconds(ps, $2, $3, @1); }
	| K_INTERVAL SCONST IDENT	{ $$ = pln_interval_seconds(ps, $2, $3, @1); }
	| K_INTERVAL SCONST			{ $$ = pln_interval_seconds(ps, $2, NULL, @1); }
	;

dataset_body:
	/* empty */
	| K_AS query
		{ ps->dataset->flow = pln_make_query_flow($2, false, true, @1); }
	| K_FLOW flow_clause
		{
			if (ps->dataset->dataset_kind != PLN_STREAMING_TABLE)
				ereport(ERROR,
						(errcode(PLN_ERR_SYNTAX),
						 errmsg("FLOW is allowed for streaming tables only"),
						 errhint("Write  AS query."),
						 pln_script_errposition(ps->script, @1)));
			ps->dataset->flow = $2;
			$2->location = @1;
		}
	;

/*---------------------------------------------------------------- flows */

flow_clause:
	K_INSERT opt_once opt_by_name query
		{ $$ = pln_make_query_flow($4, $2, $3, @1); }
	| K_AUTO K_CDC opt_once cdc_flow
		{
			$$ = $4;
			$$->once = $3;
		}
	| K_REPLACE K_WHERE expression_by_name opt_by_name query
		{
			$$ = pln_make_query_flow($5, false, $4, @1);
			$$->kind = PLN_FLOW_REPLACE_WHERE;
			$$->replace_where = $3;
		}
	| K_REPLACE K_USING paren_idents K_SEQUENCE K_BY expression_by_name opt_by_name query
		{
			$$ = pln_make_query_flow($8, false, $7, @1);
			$$->kind = PLN_FLOW_REPLACE_USING;
			$$->replace_using = $3;
			$$->sequence_by = $6;
		}
	;

opt_once:
	/* empty */		{ $$ = false; }
	| K_ONCE		{ $$ = true; }
	;

opt_by_name:
	/* empty */		{ $$ = false; }
	| K_BY K_NAME	{ $$ = true; }
	;

opt_comment:
	/* empty */			{ $$ = NULL; }
	| K_COMMENT string	{ $$ = $2; }
	;

create_flow:
	K_CREATE K_FLOW name opt_comment K_AS flow_body
		{
			PlnCreateFlow *create = pln_make_stmt(ps, PLN_STMT_CREATE_FLOW, sizeof(PlnCreateFlow));

			if ($3->schema != NULL || $3->catalog != NULL)
				ereport(ERROR,
						(errcode(PLN_ERR_SYNTAX),
						 errmsg("the name of a flow is one identifier"),
						 pln_script_errposition(ps->script, @3)));
			create->flow = $6;
			create->flow->name = $3->name;
			create->flow->comment = $4;
			create->flow->location = @1;
		}
	;

flow_body:
	K_INSERT insert_body
		{ $$ = $2; }
	| K_AUTO K_CDC opt_once K_INTO name cdc_flow
		{
			$$ = $6;
			$$->target = $5;
			$$->once = $3;
		}
	| K_APPLY K_CHANGES K_INTO name cdc_flow
		{
			$$ = $5;
			$$->target = $4;
		}
	;

insert_body:
	opt_once K_INTO opt_once name opt_by_name query
		{
			$$ = pln_make_query_flow($6, $1 || $3, $5, @2);
			$$->target = $4;
		}
	| opt_once K_INTO opt_once name opt_by_name K_REPLACE K_WHERE expression_by_name opt_by_name
	  query
		{
			$$ = pln_make_query_flow($10, $1 || $3, $5 || $9, @2);
			$$->kind = PLN_FLOW_REPLACE_WHERE;
			$$->target = $4;
			$$->replace_where = $8;
		}
	| opt_once K_INTO opt_once name opt_by_name K_REPLACE K_USING paren_idents K_SEQUENCE K_BY
	  expression_by_name opt_by_name query
		{
			$$ = pln_make_query_flow($13, $1 || $3, $5 || $12, @2);
			$$->kind = PLN_FLOW_REPLACE_USING;
			$$->target = $4;
			$$->replace_using = $8;
			$$->sequence_by = $11;
		}
	;

apply_changes:
	K_APPLY K_CHANGES K_INTO name cdc_flow
		{
			PlnCreateFlow *create = pln_make_stmt(ps, PLN_STMT_CREATE_FLOW, sizeof(PlnCreateFlow));

			create->flow = $5;
			create->flow->target = $4;
			create->flow->location = @1;
		}
	| K_AUTO K_CDC opt_once K_INTO name cdc_flow
		{
			PlnCreateFlow *create = pln_make_stmt(ps, PLN_STMT_CREATE_FLOW, sizeof(PlnCreateFlow));

			create->flow = $6;
			create->flow->target = $5;
			create->flow->once = $3;
			create->flow->location = @1;
		}
	;

cdc_flow:
	K_FROM
		{ pln_begin_cdc(ps, @1); }
	cdc_from K_KEYS idents_any
		{ ps->cdc->keys = $5; }
	cdc_clauses
		{ $$ = pln_make_cdc_flow(ps, NULL, false, @1); }
	;

cdc_from:
	cdc_source
		{ ps->cdc->source = $1; }
	| K_SNAPSHOT '(' query_in_parens ')'
		{
			ps->cdc->source = $3;
			ps->cdc_snapshot = true;
		}
	| K_SNAPSHOT '(' query_in_parens ')' K_WITH K_VERSION '(' query_in_parens ')'
		{
			ps->cdc->source = $3;
			ps->cdc->version_query = $8;
			ps->cdc_snapshot = true;
		}
	;

cdc_clauses:
	/* empty */
	| cdc_clauses cdc_clause
	;

/* (a, b) or * EXCEPT (a, b); true = the exclusion */
column_filter:
	column_choice
		{
			ps->choice = $1;
			$$ = false;
		}
	| '*' K_EXCEPT idents_any
		{
			ps->choice = $3;
			$$ = true;
		}
	;

column_choice:
	idents_any
	| '*'			{ $$ = NIL; }
	;

cdc_clause:
	K_IGNORE K_NULL K_UPDATES
		{
			pln_clause_once(ps, PLN_CLAUSE_CDC_IGNORE, @1);
			ps->cdc->ignore_null_updates = true;
		}
	| K_IGNORE K_NULL K_UPDATES K_ON column_filter
		{
			pln_clause_once(ps, PLN_CLAUSE_CDC_IGNORE, @1);
			ps->cdc->ignore_null_updates = true;
			ps->cdc->ignore_null_except = $5;
			ps->cdc->ignore_null_columns = ps->choice;
		}
	| K_APPLY K_AS K_DELETE K_WHEN expression_in_cdc
		{
			pln_clause_once(ps, PLN_CLAUSE_CDC_DELETE, @1);
			ps->cdc->delete_when = $5;
		}
	| K_APPLY K_AS K_TRUNCATE K_WHEN expression_in_cdc
		{
			pln_clause_once(ps, PLN_CLAUSE_CDC_TRUNCATE, @1);
			ps->cdc->truncate_when = $5;
		}
	| K_SEQUENCE K_BY expression_in_cdc
		{
			pln_clause_once(ps, PLN_CLAUSE_CDC_SEQUENCE, @1);
			ps->cdc->sequence_by = $3;
		}
	| K_SYSTEM K_SEQUENCE
		{ pln_refuse(ps, @1, "SYSTEM SEQUENCE BY", NULL); }
	| K_COLUMNS K_TO K_UPDATE
		{ pln_refuse(ps, @1, "COLUMNS TO UPDATE", "Use IGNORE NULL UPDATES."); }
	| K_COLUMNS column_filter
		{
			pln_clause_once(ps, PLN_CLAUSE_CDC_COLUMNS, @1);
			ps->cdc->columns_except = $2;
			ps->cdc->columns = ps->choice;
		}
	| K_STORED K_AS K_SCD K_TYPE number
		{
			pln_clause_once(ps, PLN_CLAUSE_CDC_STORED, @1);
			if (strcmp($5, "1") != 0 && strcmp($5, "2") != 0)
				ereport(ERROR,
						(errcode(PLN_ERR_BAD_VALUE),
						 errmsg("SCD type must be 1 or 2"),
						 pln_script_errposition(ps->script, @5)));
			ps->cdc->scd_type = $5[0] - '0';
		}
	| K_STORED K_AS K_BITEMPORAL
		{ pln_refuse(ps, @3, "STORED AS BITEMPORAL", "Use STORED AS SCD TYPE 2."); }
	| K_TRACK K_HISTORY K_ON column_filter
		{
			pln_clause_once(ps, PLN_CLAUSE_CDC_TRACK, @1);
			ps->cdc->track_except = $4;
			ps->cdc->track_columns = ps->choice;
		}
	;

/*---------------------------------------------------------------- other statements */

dataset_kind:
	K_MATERIALIZED K_VIEW		{ $$ = PLN_MATERIALIZED_VIEW; }
	| K_STREAMING K_TABLE		{ $$ = PLN_STREAMING_TABLE; }
	| K_STREAMING K_LIVE K_TABLE	{ $$ = PLN_STREAMING_TABLE; }
	| K_LIVE K_TABLE			{ $$ = PLN_MATERIALIZED_VIEW; }
	;

refresh:
	K_REFRESH dataset_kind
		{
			ps->refresh = pln_make_stmt(ps, PLN_STMT_REFRESH, sizeof(PlnRefresh));
			ps->refresh->dataset_kind = $2;
		}
	name refresh_options
		{ ps->refresh->name = $4; }
	| K_REFRESH K_TABLE
		{
			ps->refresh = pln_make_stmt(ps, PLN_STMT_REFRESH, sizeof(PlnRefresh));
			ps->refresh->dataset_kind = PLN_STREAMING_TABLE;
		}
	name refresh_options
		{ ps->refresh->name = $4; }
	;

refresh_options:
	/* empty */
	| refresh_options refresh_option
	;

refresh_option:
	K_FULL
		{
			pln_clause_once(ps, PLN_CLAUSE_FULL, @1);
			ps->refresh->full = true;
		}
	| K_SYNC
		{ pln_clause_once(ps, PLN_CLAUSE_SYNC, @1); }
	| K_ASYNC
		{
			pln_clause_once(ps, PLN_CLAUSE_SYNC, @1);
			ps->refresh->async = true;
		}
	| K_WHERE until_end
		{
			pln_clause_once(ps, PLN_CLAUSE_WHERE, @1);
			ps->refresh->where = $2;
		}
	;

alter:
	K_ALTER dataset_kind name
		{
			PlnAlter   *alter = pln_make_stmt(ps, PLN_STMT_ALTER, sizeof(PlnAlter));

			alter->dataset_kind = $2;
			alter->name = $3;
		}
	alter_action
		{ ((PlnAlter *) ps->result)->clause_location = @5; }
	| K_ALTER K_TABLE name
		{
			PlnAlter   *alter = pln_make_stmt(ps, PLN_STMT_ALTER, sizeof(PlnAlter));

			alter->dataset_kind = PLN_STREAMING_TABLE;
			alter->is_table = true;
			alter->name = $3;
		}
	alter_action
		{ ((PlnAlter *) ps->result)->clause_location = @5; }
	;

alter_action:
	K_ADD schedule
		{
			((PlnAlter *) ps->result)->alter_kind = PLN_ALTER_ADD_SCHEDULE;
			((PlnAlter *) ps->result)->schedule = $2;
		}
	| K_ALTER schedule
		{
			((PlnAlter *) ps->result)->alter_kind = PLN_ALTER_ALTER_SCHEDULE;
			((PlnAlter *) ps->result)->schedule = $2;
		}
	| K_DROP K_SCHEDULE
		{ ((PlnAlter *) ps->result)->alter_kind = PLN_ALTER_DROP_SCHEDULE; }
	| K_ALTER K_COLUMN ident K_COMMENT string
		{
			((PlnAlter *) ps->result)->alter_kind = PLN_ALTER_COLUMN_COMMENT;
			((PlnAlter *) ps->result)->column = $3;
			((PlnAlter *) ps->result)->text = $5;
		}
	| K_SET K_TBLPROPERTIES properties
		{
			((PlnAlter *) ps->result)->alter_kind = PLN_ALTER_SET_PROPERTIES;
			((PlnAlter *) ps->result)->properties = $3;
		}
	| K_SET K_OWNER K_TO ident
		{
			((PlnAlter *) ps->result)->alter_kind = PLN_ALTER_OWNER;
			((PlnAlter *) ps->result)->text = $4;
		}
	| K_OWNER K_TO ident
		{
			((PlnAlter *) ps->result)->alter_kind = PLN_ALTER_OWNER;
			((PlnAlter *) ps->result)->text = $3;
		}
	| K_RENAME K_TO ident
		{
			((PlnAlter *) ps->result)->alter_kind = PLN_ALTER_RENAME;
			((PlnAlter *) ps->result)->text = $3;
		}
	| K_ALTER K_COLUMN ident K_SET K_MASK
		{ pln_refuse(ps, @5, "MASK", NULL); }
	| K_ALTER K_COLUMN ident K_DROP K_MASK
		{ pln_refuse(ps, @5, "MASK", NULL); }
	| K_ALTER K_COLUMN ident K_SET K_TAGS
		{ pln_refuse(ps, @5, "SET TAGS", "Use COMMENT or SECURITY LABEL."); }
	| K_ALTER K_COLUMN ident K_UNSET K_TAGS
		{ pln_refuse(ps, @5, "UNSET TAGS", NULL); }
	| K_SET K_ROW K_FILTER
		{ pln_refuse(ps, @2, "ROW FILTER", NULL); }
	| K_DROP K_ROW K_FILTER
		{ pln_refuse(ps, @2, "ROW FILTER", NULL); }
	| K_SET K_TAGS
		{ pln_refuse(ps, @2, "SET TAGS", "Use COMMENT or SECURITY LABEL."); }
	| K_UNSET K_TAGS
		{ pln_refuse(ps, @2, "UNSET TAGS", NULL); }
	;

drop:
	K_DROP dataset_kind opt_if_exists name opt_cascade
		{
			PlnDrop    *drop = pln_make_stmt(ps, PLN_STMT_DROP, sizeof(PlnDrop));

			drop->dataset_kind = $2;
			drop->if_exists = $3;
			drop->name = $4;
			drop->cascade = $5;
		}
	;

opt_if_exists:
	/* empty */			{ $$ = false; }
	| K_IF K_EXISTS		{ $$ = true; }
	;

opt_cascade:
	/* empty */			{ $$ = false; }
	| K_CASCADE			{ $$ = true; }
	| K_RESTRICT		{ $$ = false; }
	;

grant:
	K_GRANT K_REFRESH K_ON grant_kind name K_TO grantees
		{
			PlnGrantRefresh *grant = pln_make_stmt(ps, PLN_STMT_GRANT_REFRESH,
												   sizeof(PlnGrantRefresh));

			grant->is_grant = true;
			grant->dataset_kind = $4;
			grant->name = $5;
			grant->grantees = $7;
		}
	| K_REVOKE K_REFRESH K_ON grant_kind name K_FROM grantees
		{
			PlnGrantRefresh *grant = pln_make_stmt(ps, PLN_STMT_GRANT_REFRESH,
												   sizeof(PlnGrantRefresh));

			grant->dataset_kind = $4;
			grant->name = $5;
			grant->grantees = $7;
		}
	;

/* K_MATERIALIZED and K_STREAMING are words here only in front of VIEW and TABLE */
grant_kind:
	/* empty */			{ $$ = PLN_MATERIALIZED_VIEW; }
	| dataset_kind
	| K_TABLE			{ $$ = PLN_STREAMING_TABLE; }
	;

grantees:
	grantee						{ $$ = list_make1($1); }
	| grantees ',' grantee		{ $$ = lappend($1, $3); }
	;

grantee:
	ident
	;

explain:
	K_EXPLAIN create_dataset
		{
			PlnCreateDataset *create = ps->dataset;
			PlnExplainCreate *explain;

			if (create->dataset_kind != PLN_MATERIALIZED_VIEW)
				pln_refuse(ps, @1, "EXPLAIN CREATE of anything but a materialized view", NULL);
			explain = pln_make_stmt(ps, PLN_STMT_EXPLAIN_CREATE, sizeof(PlnExplainCreate));
			explain->create = create;
		}
	;

describe:
	describe_word opt_table_word opt_extended name
		{
			PlnDescribe *describe = pln_make_stmt(ps, PLN_STMT_DESCRIBE, sizeof(PlnDescribe));

			describe->name = $4;
			describe->extended = $3;
		}
	| describe_word opt_table_word opt_extended name K_AS
		{ pln_refuse(ps, @5, "DESCRIBE ... AS JSON", "Use pipeline.describe(dataset)."); }
	;

describe_word:
	K_DESCRIBE
	| K_DESC
	;

opt_table_word:
	/* empty */
	| K_TABLE
	;

opt_extended:
	/* empty */		{ $$ = false; }
	| K_EXTENDED	{ $$ = true; }
	;

use:
	K_USE K_CATALOG ident
		{
			PlnUse	   *use = pln_make_stmt(ps, PLN_STMT_USE, sizeof(PlnUse));

			use->is_catalog = true;
			use->name = $3;
			use->name_location = @3;
		}
	| K_USE use_schema ident
		{
			PlnUse	   *use = pln_make_stmt(ps, PLN_STMT_USE, sizeof(PlnUse));

			use->name = $3;
			use->name_location = @3;
		}
	| K_USE ident
		{
			PlnUse	   *use = pln_make_stmt(ps, PLN_STMT_USE, sizeof(PlnUse));

			use->name = $2;
			use->name_location = @2;
		}
	;

use_schema:
	K_SCHEMA
	| K_DATABASE
	;

unreserved:
	K_ABOVE | K_ADD | K_ALTER | K_ALWAYS | K_APPLY | K_ASYNC | K_AT | K_AUTO
	| K_BITEMPORAL | K_BY
	| K_CASCADE | K_CDC | K_CHANGES | K_CLUSTER | K_COLUMNS | K_COMMENT | K_CRON
	| K_DELETE | K_DESCRIBE | K_DROP
	| K_ENFORCED | K_EVERY | K_EXISTS | K_EXPLAIN
	| K_FAIL | K_FILTER | K_FLOW | K_FULL
	| K_GENERATED
	| K_HISTORY
	| K_IDENTITY | K_IGNORE | K_INCREMENT | K_INCREMENTAL | K_INSERT | K_INTERVAL
	| K_KEY | K_KEYS
	| K_LOCATION
	| K_MASK | K_MOST
	| K_NAME | K_NONE | K_NORELY
	| K_OWNER
	| K_PARTITIONED | K_PERCENT | K_POLICY | K_PRIVATE
	| K_QUARANTINE
	| K_REFRESH | K_RELY | K_RENAME | K_REPLACE | K_RESTRICT | K_REVOKE | K_ROW | K_ROWS
	| K_SCD | K_SCHEDULE | K_SEQUENCE | K_SET | K_START | K_STORED
	| K_STRICT | K_SYNC | K_SYSTEM
	| K_TAGS | K_TBLPROPERTIES | K_TEMPORARY | K_TIME | K_TRACK | K_TRIGGER | K_TRUNCATE
	| K_TYPE
	| K_UNSET | K_UPDATE | K_UPDATES | K_USE
	| K_VERSION | K_VIEW | K_VIOLATION
	| K_WARN
	| K_ZONE
	;

%%

StaticAssertDecl(IDENT == PLN_T_IDENT && SCONST == PLN_T_SCONST && Op == PLN_T_OP &&
				 ICONST == PLN_T_ICONST && EQUALS_GREATER == PLN_T_EQUALS_GREATER &&
				 NOT_EQUALS == PLN_T_NOT_EQUALS,
				 "tokens of the core lexer must come first");

typedef struct Keyword
{
	const char *word;
	int			token;
} Keyword;

#define PLN_KEYWORD(word, token) {word, token},
static const Keyword keywords[] = {
#include "dialect/kwlist.h"
};
#undef PLN_KEYWORD

static int
compare_keyword(const void *word, const void *keyword)
{
	return strcmp(word, ((const Keyword *) keyword)->word);
}

/*
 * Words that are names in some places where our grammar could not tell: they count as
 * keywords only in front of what must follow them there.
 */
static int
keyword_in_context(int token, const PlnToken *prev, const PlnToken *next,
				   const PlnToken *second)
{
	switch (token)
	{
		case K_ONCE:
			if (pln_token_is(prev, "into"))
				return next->type == PLN_T_IDENT && !pln_token_is(next, "by") &&
					!pln_token_begins_query(next) ? token : IDENT;
			return pln_token_is(prev, "insert") || pln_token_is(prev, "cdc") ? token : IDENT;
		case K_CONSTRAINT:
			return pln_token_is(second, "expect") || pln_token_is(second, "primary") ||
				pln_token_is(second, "foreign") || pln_token_is(second, "references") ||
				pln_token_is(second, "check") || pln_token_is(second, "unique") ? token : IDENT;
		case K_EXPECT:
			return next->type == '(' || pln_token_is(next, "all") ? token : IDENT;
		case K_IF:
			return pln_token_is(next, "not") || pln_token_is(next, "exists") ? token : IDENT;
		case K_PRIMARY:
		case K_FOREIGN:
			return pln_token_is(next, "key") ? token : IDENT;
		case K_SNAPSHOT:
			return next->type == '(' ? token : IDENT;
		case K_NOT:
			return pln_token_is(next, "enforced") || pln_token_is(next, "deferrable")
				? K_NOT_LA : token;
		case K_DEFERRABLE:
		case K_INITIALLY:
			return next->type == ',' || next->type == ')' || next->type == PLN_T_IDENT
				? token : IDENT;
		case K_EXTENDED:
			return next->type == PLN_T_IDENT || next->type == PLN_T_PARAMREF ? token : IDENT;
		case K_CATALOG:
		case K_SCHEMA:
		case K_DATABASE:
			return pln_token_is(prev, "use") &&
				(next->type == PLN_T_IDENT || next->type == PLN_T_PARAMREF) ? token : IDENT;
		case K_MATERIALIZED:
			return pln_token_is(next, "view") ? token : IDENT;
		case K_STREAMING:
			return pln_token_is(next, "table") || pln_token_is(next, "live") ||
				pln_token_is(next, "view") ? token : IDENT;
		case K_LIVE:
			return pln_token_is(next, "table") || pln_token_is(next, "view") ? token : IDENT;
		default:
			return token;
	}
}

static int
pln_yylex(PLN_YYSTYPE *value, int *location, PlnParser *ps)
{
	const PlnToken *token;
	const PlnToken *end = &ps->tok[ps->n];
	const Keyword *keyword;
	int			i = ps->pos++;

	token = i < ps->n ? &ps->tok[i] : end;
	*location = token->location;
	if (token->type == PLN_T_PARAMREF)
	{
		value->token = token;
		return PARAMREF;
	}
	value->str = token->str;
	if (token->type > 0 && token->type < 256 && strchr("().,=-*", token->type) == NULL)
		return OTHER;
	if (token->type != PLN_T_IDENT)
		return token->type;
	if (token->quote == '"')
		return DQUOTED;
	if (token->quote != 0 || (i > 0 && ps->tok[i - 1].type == '.'))
		return IDENT;
	keyword = bsearch(token->str, keywords, lengthof(keywords), sizeof(Keyword), compare_keyword);
	if (keyword == NULL)
		return IDENT;
	return keyword_in_context(keyword->token, i > 0 ? &ps->tok[i - 1] : end,
							  i + 1 < ps->n ? &ps->tok[i + 1] : end,
							  i + 2 < ps->n ? &ps->tok[i + 2] : end);
}

static void
pln_yyerror(int *location, PlnParser *ps, const char *message)
{
	/* the offending token is the one that was read last */
	pln_syntax_error(ps, ps->pos - 1);
}

/* Parse the tokens of one statement of the dialect; ps->result is set. */
void
pln_grammar_run(PlnParser *ps)
{
	(void) pln_yyparse(ps);
	PLN_ENSURE(ps->result != NULL);
}

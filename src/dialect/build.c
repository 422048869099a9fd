/*
 * build.c
 *	  Actions of the grammar that are more than an assignment, and the rules between
 *	  clauses that the grammar does not express.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "base/errors.h"
#include "dialect/internal.h"

/* A statement node; it becomes the result of the parse. */
void *
pln_make_stmt(PlnParser *ps, PlnStmtKind kind, Size size)
{
	PlnStmt    *stmt = palloc0(size);

	stmt->kind = kind;
	stmt->location = ps->tok[0].location;
	stmt->length = ps->tok[ps->n - 1].end - stmt->location;
	stmt->original = pnstrdup(ps->script->source + stmt->location, stmt->length);
	ps->result = stmt;
	return stmt;
}

PlnName *
pln_make_name(PlnParser *ps, List *parts, int location)
{
	PlnName    *name = palloc0_object(PlnName);
	int			n = list_length(parts);

	if (n > 3)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("improper qualified name (too many dotted names)"),
				 pln_script_errposition(ps->script, location)));
	name->location = location;
	name->name = llast(parts);
	if (n > 1)
		name->schema = list_nth(parts, n - 2);
	if (n > 2)
		name->catalog = linitial(parts);
	if (n == 2 && strcmp(name->schema, "live") == 0 && ps->script->source[location] != '"' &&
		ps->script->source[location] != '`')
	{
		name->live = true;
		name->schema = NULL;
	}
	return name;
}

/* A word of the source in its own spelling (the lexer has folded it). */
char *
pln_word_as_written(PlnParser *ps, const char *word, int location)
{
	const char *source = ps->script->source + location;

	if (pg_strncasecmp(source, word, strlen(word)) == 0)
		return pnstrdup(source, strlen(word));
	return pstrdup(word);
}

void
pln_clause_once(PlnParser *ps, int clause, int location)
{
	if (ps->clauses_seen & clause)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("clause given more than once"),
				 pln_script_errposition(ps->script, location)));
	ps->clauses_seen |= clause;
	ps->clause_location[pg_rightmost_one_pos32(clause)] = location;
}

/* A clause that is accepted and has no effect; named once per statement. */
void
pln_notice(PlnParser *ps, const char *clause)
{
	ListCell   *lc;

	foreach(lc, ps->dataset->notices)
	{
		if (strcmp(lfirst(lc), clause) == 0)
			return;
	}
	ps->dataset->notices = lappend(ps->dataset->notices, pstrdup(clause));
}

static void
statement_error(PlnParser *ps, int location, const char *message, const char *hint)
{
	ereport(ERROR,
			(errcode(PLN_ERR_SYNTAX),
			 errmsg("%s", message),
			 hint ? errhint("%s", hint) : 0,
			 pln_script_errposition(ps->script, location)));
}

/* CREATE [OR ...] words TABLE or VIEW: which kind of dataset is it? */
void
pln_begin_dataset(PlnParser *ps, int modifiers, bool is_table, int location)
{
	PlnCreateDataset *create = pln_make_stmt(ps, PLN_STMT_CREATE_DATASET,
											 sizeof(PlnCreateDataset));
	bool		streaming = (modifiers & PLN_MOD_STREAMING) != 0;
	bool		live = (modifiers & PLN_MOD_LIVE) != 0;
	bool		temporary = (modifiers & PLN_MOD_TEMPORARY) != 0;
	bool		is_private = (modifiers & PLN_MOD_PRIVATE) != 0;

	ps->dataset = create;
	create->or_refresh = (modifiers & PLN_MOD_OR_REFRESH) != 0;
	create->or_replace = (modifiers & PLN_MOD_OR_REPLACE) != 0;
	create->legacy = live;
	if (modifiers & PLN_MOD_MATERIALIZED)
	{
		if (is_table || streaming || live || temporary)
			statement_error(ps, location, "invalid combination of words before TABLE or VIEW",
							"Write  CREATE [OR REFRESH] [PRIVATE] MATERIALIZED VIEW.");
		create->dataset_kind = PLN_MATERIALIZED_VIEW;
		create->is_private = is_private;
	}
	else if (is_table)
	{
		if (!streaming && !live)
			statement_error(ps, location, "invalid combination of words before TABLE or VIEW",
							"Write  CREATE [OR REFRESH] STREAMING TABLE, or CREATE TABLE.");
		create->dataset_kind = streaming ? PLN_STREAMING_TABLE : PLN_MATERIALIZED_VIEW;
		create->is_private = is_private || temporary;
		if (create->or_replace && streaming)
			statement_error(ps, location, "a streaming table cannot be created with OR REPLACE",
							"Write  CREATE OR REFRESH STREAMING TABLE.");
	}
	else
	{
		if (is_private || (streaming && !live && !temporary))
			statement_error(ps, location, "invalid combination of words before TABLE or VIEW",
							"Write  CREATE VIEW, or CREATE TEMPORARY VIEW.");
		create->dataset_kind = live || temporary ? PLN_TEMPORARY_VIEW : PLN_VIEW;
		if (create->or_refresh && create->dataset_kind == PLN_VIEW)
			statement_error(ps, location, "a view cannot be created with OR REFRESH",
							"Write  CREATE OR REPLACE VIEW.");
	}
}

static void
refuse_clauses(PlnParser *ps, int clauses, const char *message)
{
	int			seen = ps->clauses_seen & clauses;

	if (seen != 0)
		statement_error(ps, ps->clause_location[pg_rightmost_one_pos32(seen)], message, NULL);
}

static void
check_columns(PlnParser *ps, PlnCreateDataset *create)
{
	bool		is_view = create->dataset_kind == PLN_VIEW ||
		create->dataset_kind == PLN_TEMPORARY_VIEW;
	ListCell   *lc;
	ListCell   *other;

	foreach(lc, create->columns)
	{
		PlnColumnDef *column = lfirst(lc);

		if (is_view && column->type != NULL)
			statement_error(ps, column->location, "the columns of a view have no types",
							"Write a CAST in the query.");
		if (create->dataset_kind != PLN_STREAMING_TABLE &&
			(column->is_identity || column->generated != NULL || column->default_expr != NULL))
			pln_refuse(ps, column->location,
					   "an identity, generated or default column outside of a streaming table",
					   NULL);
		if ((column->is_identity || column->generated != NULL || column->default_expr != NULL) &&
			column->type == NULL)
			statement_error(ps, column->location, "the column needs a type", NULL);
		foreach(other, create->columns)
		{
			if (lfirst(other) == column)
				break;
			if (strcmp(((PlnColumnDef *) lfirst(other))->name, column->name) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 errmsg("column \"%s\" specified more than once", column->name),
						 pln_script_errposition(ps->script, column->location)));
		}
	}
}

static void
check_expectations(PlnParser *ps, PlnCreateDataset *create)
{
	ListCell   *lc;
	ListCell   *other;

	foreach(lc, create->expectations)
	{
		PlnExpectationDef *def = lfirst(lc);

		if (create->dataset_kind == PLN_VIEW)
			statement_error(ps, def->location, "a view cannot have expectations",
							"Use CREATE TEMPORARY VIEW or CREATE MATERIALIZED VIEW.");
		if (def->name == NULL)
			continue;
		foreach(other, create->expectations)
		{
			PlnExpectationDef *before = lfirst(other);

			if (before == def)
				break;
			if (before->name != NULL && strcmp(before->name, def->name) == 0)
				ereport(ERROR,
						(errcode(PLN_ERR_DUPLICATE),
						 errmsg("expectation \"%s\" specified more than once", def->name),
						 pln_script_errposition(ps->script, def->location)));
		}
	}
}

/* Rules between the clauses of a CREATE; the node is complete. */
void
pln_finish_dataset(PlnParser *ps)
{
	PlnCreateDataset *create = ps->dataset;
	bool		is_view = create->dataset_kind == PLN_VIEW ||
		create->dataset_kind == PLN_TEMPORARY_VIEW;

	if (create->if_not_exists && (create->or_refresh || create->or_replace))
		statement_error(ps, create->stmt.location,
						"IF NOT EXISTS cannot be combined with OR REFRESH or OR REPLACE", NULL);
	if (create->dataset_kind == PLN_TEMPORARY_VIEW &&
		(create->name->schema != NULL || create->name->catalog != NULL))
		statement_error(ps, create->name->location,
						"the name of a temporary view is one identifier", NULL);
	if (is_view)
		refuse_clauses(ps, ~(PLN_CLAUSE_COMMENT | PLN_CLAUSE_PROPERTIES),
					   "clause is not allowed for a view");
	if (create->dataset_kind != PLN_MATERIALIZED_VIEW)
		refuse_clauses(ps, PLN_CLAUSE_POLICY,
					   "REFRESH POLICY is allowed for materialized views only");
	if (ps->clauses_seen & PLN_CLAUSE_PARTITION)
		refuse_clauses(ps, PLN_CLAUSE_CLUSTER,
					   "CLUSTER BY and PARTITIONED BY exclude each other");
	if (create->dataset_kind != PLN_STREAMING_TABLE && create->flow == NULL)
		pln_syntax_error(ps, ps->n);	/* AS query is missing */
	check_columns(ps, create);
	check_expectations(ps, create);
}

PlnFlowDef *
pln_make_flow(PlnFlowKind kind, int location)
{
	PlnFlowDef *flow = palloc0_object(PlnFlowDef);

	flow->kind = kind;
	flow->location = location;
	return flow;
}

PlnFlowDef *
pln_make_query_flow(PlnSql *query, bool once, bool by_name, int location)
{
	PlnFlowDef *flow = pln_make_flow(PLN_FLOW_INSERT, location);

	flow->query = query;
	flow->once = once;
	flow->by_name = by_name;
	return flow;
}

void
pln_begin_cdc(PlnParser *ps, int location)
{
	ps->cdc = palloc0_object(PlnCdcSpec);
	ps->cdc->scd_type = 1;
	ps->cdc->location = location;
}

/* All clauses of AUTO CDC have been read. */
PlnFlowDef *
pln_make_cdc_flow(PlnParser *ps, PlnName *target, bool once, int location)
{
	PlnCdcSpec *cdc = ps->cdc;
	PlnFlowDef *flow = pln_make_flow(ps->cdc_snapshot ? PLN_FLOW_CDC_SNAPSHOT : PLN_FLOW_AUTO_CDC,
									 location);

	flow->cdc = cdc;
	flow->target = target;
	flow->once = once;
	if (ps->cdc_snapshot)
		refuse_clauses(ps, PLN_CLAUSE_CDC_SEQUENCE | PLN_CLAUSE_CDC_DELETE |
					   PLN_CLAUSE_CDC_TRUNCATE | PLN_CLAUSE_CDC_IGNORE | PLN_CLAUSE_CDC_COLUMNS,
					   "clause is not allowed for AUTO CDC FROM SNAPSHOT");
	else if (cdc->sequence_by == NULL)
		statement_error(ps, cdc->location, "AUTO CDC needs SEQUENCE BY",
						"Add  SEQUENCE BY column  behind KEYS (...).");
	if (cdc->scd_type != 1)
		refuse_clauses(ps, PLN_CLAUSE_CDC_TRUNCATE,
					   "APPLY AS TRUNCATE WHEN is allowed with SCD TYPE 1 only");
	else
		refuse_clauses(ps, PLN_CLAUSE_CDC_TRACK,
					   "TRACK HISTORY is allowed with SCD TYPE 2 only");
	return flow;
}

PlnSchedule *
pln_make_schedule(PlnScheduleKind kind, int location)
{
	PlnSchedule *schedule = palloc0_object(PlnSchedule);

	schedule->kind = kind;
	schedule->location = location;
	return schedule;
}

static int
positive_int(PlnParser *ps, const char *n, int location)
{
	char	   *end;
	long		value;

	errno = 0;
	value = strtol(n, &end, 10);
	if (errno != 0 || *end != '\0' || value < 1 || value > 1000000)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("invalid number in a schedule: \"%s\"", n),
				 pln_script_errposition(ps->script, location)));
	return value;
}

/* SCHEDULE EVERY n unit; the ranges are those of the dialect. */
PlnSchedule *
pln_schedule_every(PlnParser *ps, const char *n, const char *unit, int location)
{
	static const struct
	{
		const char *one;
		const char *many;
		int			max;
	}			units[] =
	{
		{"hour", "HOURS", 72}, {"day", "DAYS", 31}, {"week", "WEEKS", 8}
	};
	PlnSchedule *schedule = pln_make_schedule(PLN_SCHEDULE_EVERY, location);
	int			i;

	for (i = 0; i < (int) lengthof(units); i++)
	{
		if (strcmp(unit, units[i].one) != 0 && pg_strcasecmp(unit, units[i].many) != 0)
			continue;
		schedule->every = positive_int(ps, n, location);
		schedule->unit = pstrdup(units[i].many);
		if (schedule->every > units[i].max)
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("EVERY %s %s is out of range", n, unit),
					 errdetail("Up to 72 hours, 31 days or 8 weeks are possible."),
					 pln_script_errposition(ps->script, location)));
		return schedule;
	}
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("unit of EVERY must be HOURS, DAYS or WEEKS, not \"%s\"", unit),
			 errhint("Write  SCHEDULE CRON '0 */5 * * * ?'  for shorter intervals."),
			 pln_script_errposition(ps->script, location)));
}

/* INTERVAL n unit, INTERVAL 'n unit' in seconds; at least one. */
int64
pln_interval_seconds(PlnParser *ps, const char *n, const char *unit, int location)
{
	static const struct
	{
		const char *name;
		int			seconds;
	}			units[] =
	{
		{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 604800}
	};
	int			i;

	if (unit == NULL)
	{
		char	   *copy = pstrdup(n);
		char	   *blank = strchr(copy, ' ');

		if (blank != NULL)
		{
			*blank++ = '\0';
			unit = blank + strspn(blank, " ");
			n = copy;
		}
	}
	for (i = 0; unit != NULL && i < (int) lengthof(units); i++)
	{
		size_t		len = strlen(units[i].name);

		if (pg_strncasecmp(unit, units[i].name, len) == 0 &&
			(unit[len] == '\0' || pg_strcasecmp(unit + len, "s") == 0))
			return (int64) positive_int(ps, n, location) * units[i].seconds;
	}
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("invalid interval of a schedule"),
			 errhint("Write  INTERVAL 5 MINUTES."),
			 pln_script_errposition(ps->script, location)));
}

/*
 * unbuilt.c
 *	  Refusals of declarations whose engine is not there, each with what to type now.
 *
 * The hints are made of the reader's own names and keys, so that they can be typed.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "analyze/unbuilt.h"
#include "base/errors.h"
#include "base/ident.h"

static void
refuse(PlnScript *script, int location, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("%s is not supported yet", what),
			 errhint("%s", hint),
			 pln_script_errposition(script, location)));
}

/* The five fields of cron for EVERY; where cron cannot count so, something near. */
static char *
cron_fields(const PlnSchedule *schedule)
{
	int			n = schedule->every;

	switch (schedule->kind)
	{
		case PLN_SCHEDULE_TRIGGER:
			return "* * * * *";
		case PLN_SCHEDULE_EVERY:
			if (strcmp(schedule->unit, "HOURS") == 0)
				return n == 1 ? "0 * * * *" :
					n < 24 ? psprintf("0 */%d * * *", n) : "0 0 * * *";
			if (strcmp(schedule->unit, "DAYS") == 0)
				return n == 1 ? "0 0 * * *" : psprintf("0 0 */%d * *", n);
			return "0 0 * * 0";
		default:
			return "0 2 * * *";
	}
}

void
pln_refuse_schedule(PlnScript *script, const PlnSchedule *schedule, int location,
					const char *name, const char *call)
{
	const char *what = "DROP SCHEDULE";
	char	   *hint;

	if (schedule == NULL)
		hint = psprintf("With pg_cron: SELECT cron.unschedule(%s);", quote_literal_cstr(name));
	else
	{
		what = schedule->kind == PLN_SCHEDULE_TRIGGER ? "TRIGGER ON UPDATE" : "SCHEDULE";
		hint = psprintf("With pg_cron: SELECT cron.schedule(%s, '%s', %s);",
						quote_literal_cstr(name), cron_fields(schedule),
						quote_literal_cstr(call));
	}
	refuse(script, location, what, hint);
	pg_unreachable();
}

/* ---- flows ---- */

static char *
key_list(List *keys)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, keys)
		appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : "", quote_identifier(lfirst(lc)));
	return buf.data;
}

/* The relation that AUTO CDC reads, without STREAM. */
static char *
source_name(PlnSql *source)
{
	RawStmt    *raw = source != NULL ? pln_sql_parse_query(source) : NULL;
	List	   *from = raw != NULL ? ((SelectStmt *) raw->stmt)->fromClause : NIL;
	Node	   *item = from != NIL ? linitial(from) : NULL;

	if (item != NULL && IsA(item, RangeTableSample))
		item = ((RangeTableSample *) item)->relation;
	if (item == NULL || !IsA(item, RangeVar))
		return "source";
	return pln_quote_qualified(((RangeVar *) item)->schemaname, ((RangeVar *) item)->relname);
}

/* The current rows (type 1) or the history (type 2) as a query over all changes. */
static char *
cdc_hint(PlnFlowDef *flow, PlnName *target)
{
	PlnCdcSpec *cdc = flow->cdc;
	char	   *keys = key_list(cdc->keys);
	char	   *sequence = cdc->sequence_by != NULL ? cdc->sequence_by->original : "sequence";
	char	   *name = pln_quote_qualified(target->schema, target->name);
	char	   *source = source_name(cdc->source);

	if (cdc->scd_type == 2)
		return psprintf("CREATE MATERIALIZED VIEW %s AS SELECT *, %s AS __start_at, "
						"lead(%s) OVER (PARTITION BY %s ORDER BY %s) AS __end_at FROM %s;",
						name, sequence, sequence, keys, sequence, source);
	return psprintf("CREATE MATERIALIZED VIEW %s AS SELECT DISTINCT ON (%s) * FROM %s "
					"ORDER BY %s, %s DESC;",
					name, keys, source, keys, sequence);
}

/* What to type instead of a flow; NULL for one that is built. */
static char *
flow_hint(PlnFlowDef *flow, PlnName *target)
{
	char	   *name = pln_quote_qualified(target->schema, target->name);

	switch (flow->kind)
	{
		case PLN_FLOW_AUTO_CDC:
			return cdc_hint(flow, target);
		case PLN_FLOW_CDC_SNAPSHOT:
			return psprintf("The last snapshot alone: CREATE MATERIALIZED VIEW %s AS SELECT ...",
							name);
		case PLN_FLOW_REPLACE_WHERE:
		case PLN_FLOW_REPLACE_USING:
			return psprintf("All rows at each update: CREATE MATERIALIZED VIEW %s AS SELECT ...",
							name);
		case PLN_FLOW_INSERT:
			if (flow->once)
				return psprintf("Create %s, then once by hand: INSERT INTO %s SELECT ...",
								name, name);
			break;
	}
	return NULL;
}

static const char *
flow_words(PlnFlowDef *flow)
{
	switch (flow->kind)
	{
		case PLN_FLOW_AUTO_CDC:
			return "AUTO CDC";
		case PLN_FLOW_CDC_SNAPSHOT:
			return "AUTO CDC FROM SNAPSHOT";
		case PLN_FLOW_REPLACE_WHERE:
			return "REPLACE WHERE";
		case PLN_FLOW_REPLACE_USING:
			return "REPLACE USING";
		case PLN_FLOW_INSERT:
			break;
	}
	return "INSERT ONCE";
}

void
pln_refuse_flow(PlnScript *script, PlnFlowDef *flow, int location)
{
	bool		cdc = flow->kind == PLN_FLOW_AUTO_CDC || flow->kind == PLN_FLOW_CDC_SNAPSHOT;
	char	   *hint = flow_hint(flow, flow->target);

	if (hint == NULL)
		hint = psprintf("CREATE STREAMING TABLE %s AS SELECT ... FROM STREAM(a) "
						"UNION ALL SELECT ... FROM STREAM(b);",
						pln_quote_qualified(flow->target->schema, flow->target->name));
	refuse(script, location, cdc ? flow_words(flow) : "CREATE FLOW", hint);
	pg_unreachable();
}

void
pln_refuse_unbuilt(PlnScript *script, PlnCreateDataset *decl, const char *call)
{
	char	   *hint = decl->flow != NULL ? flow_hint(decl->flow, decl->name) : NULL;

	if (hint != NULL)
		refuse(script, decl->flow->location, flow_words(decl->flow), hint);
	if (decl->schedule != NULL)
		pln_refuse_schedule(script, decl->schedule, decl->schedule->location,
							pln_quote_qualified(decl->name->schema, decl->name->name), call);
	if (decl->has_policy &&
		(decl->policy == PLN_POLICY_INCREMENTAL || decl->policy == PLN_POLICY_STRICT))
		refuse(script, decl->policy_location, "REFRESH POLICY INCREMENTAL",
			   "Type REFRESH POLICY FULL, or leave it out: each refresh computes all rows.");
}

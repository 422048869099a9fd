/*
 * api_look.c
 *	  pipeline.describe() and pipeline.check_setup().
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/tuplestore.h"
#include "utils/varlena.h"

#include "base/errors.h"
#include "base/guc.h"
#include "base/ident.h"
#include "base/spi.h"
#include "door/access.h"

PG_FUNCTION_INFO_V1(pipeline_describe);
PG_FUNCTION_INFO_V1(pipeline_check_setup);

/* The SQL version that this library was made for. */
#define PLN_SQL_VERSION "1.0"

static void
put_pair(ReturnSetInfo *rsinfo, const char *item, const char *value)
{
	Datum		values[2];
	bool		nulls[2] = {false, value == NULL};

	values[0] = CStringGetTextDatum(item);
	values[1] = value != NULL ? CStringGetTextDatum(value) : (Datum) 0;
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* ---- describe ---- */

static void
describe_columns(ReturnSetInfo *rsinfo, PlnDataset *dataset)
{
	PlnArgs		args;
	PlnRows    *rows;
	uint64		i;

	pln_args_init(&args);
	pln_args_oid(&args, dataset->relid);
	rows = pln_spi_run_args(
		"SELECT a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),"
		" CASE WHEN a.attnotnull THEN 'NOT NULL' END,"
		" 'COMMENT ' || quote_literal(col_description(a.attrelid, a.attnum))) AS type"
		" FROM pg_attribute a WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped"
		" ORDER BY a.attnum", &args);
	for (i = 0; i < rows->n; i++)
		put_pair(rsinfo, pln_row_text(rows, i, "attname"), pln_row_text(rows, i, "type"));
}

static PlnRows *
fetch_details(PlnDataset *dataset)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, dataset->id);
	return pln_spi_run_args(
		"SELECT pg_get_userbyid(c.relowner) AS owner,"
		" CASE WHEN c.reltuples >= 0 THEN format('%s bytes, %s rows',"
		"  pg_table_size(c.oid), c.reltuples::bigint)"
		"  ELSE format('%s bytes', pg_table_size(c.oid)) END AS statistics,"
		" (SELECT string_agg(format('%s=%s', p.key, p.value), ', ' ORDER BY p.key)"
		"  FROM jsonb_each_text(d.properties) p) AS properties,"
		" (SELECT string_agg(format('%s %s', e.name, e.action), ', ' ORDER BY e.id)"
		"  FROM pipeline_internal.expectations e WHERE e.dataset_id = d.id) AS expectations,"
		" d.last_refreshed_at, d.last_update_id,"
		" CASE WHEN d.last_refresh_type = 'FULL_RECOMPUTE' THEN 'RECOMPUTED'"
		"  WHEN d.last_refresh_type = 'NO_OP' THEN 'NO_OP'"
		"  WHEN d.last_refresh_type IS NOT NULL THEN 'INCREMENTAL' END AS last_refresh_type,"
		" o.state AS last_state"
		" FROM pipeline_internal.datasets d"
		" LEFT JOIN pg_class c ON c.oid = d.relid"
		" LEFT JOIN pipeline_internal.latest_outcomes o ON o.dataset_id = d.id"
		" WHERE d.id = $1", &args);
}

static void
describe_details(ReturnSetInfo *rsinfo, PlnDataset *dataset, PlnPipeline *pipeline,
				 PlnRows *details, bool is_owner)
{
	put_pair(rsinfo, "", "");
	put_pair(rsinfo, "# Detailed Table Information", "");
	put_pair(rsinfo, "Catalog", get_database_name(MyDatabaseId));
	put_pair(rsinfo, "Schema", dataset->schema_name);
	put_pair(rsinfo, "Table", dataset->name);
	put_pair(rsinfo, "Type", pln_dataset_kind_name(dataset->kind));
	put_pair(rsinfo, "Owner", pln_row_text(details, 0, "owner"));
	if (dataset->comment != NULL)
		put_pair(rsinfo, "Comment", dataset->comment);
	put_pair(rsinfo, "Statistics", pln_row_text(details, 0, "statistics"));
	put_pair(rsinfo, "Pipeline", pln_pipeline_display_name(pipeline));
	put_pair(rsinfo, "State", dataset->state_reason == NULL ?
			 pln_dataset_state_name(dataset->state) :
			 psprintf("%s: %s", pln_dataset_state_name(dataset->state), dataset->state_reason));
	put_pair(rsinfo, "Refresh Policy", pln_policy_name(dataset->policy));
	put_pair(rsinfo, "Expectations", pln_row_text(details, 0, "expectations"));
	if (OidIsValid(dataset->quarantine))
		put_pair(rsinfo, "Quarantine", pln_relation_name(dataset->quarantine));
	if (is_owner)
	{
		put_pair(rsinfo, "Table Properties", pln_row_text(details, 0, "properties"));
		put_pair(rsinfo, "View Text", dataset->query);
	}
}

/* Nothing has a schedule of its own yet: refreshes are started by hand or by a job. */
static void
describe_refresh(ReturnSetInfo *rsinfo, PlnRows *details)
{
	put_pair(rsinfo, "", "");
	put_pair(rsinfo, "# Refresh Information", "");
	put_pair(rsinfo, "Last Refreshed", pln_row_text(details, 0, "last_refreshed_at"));
	put_pair(rsinfo, "Last Refresh Type", pln_row_text(details, 0, "last_refresh_type"));
	put_pair(rsinfo, "Latest Refresh Status", pln_row_text(details, 0, "last_state"));
	put_pair(rsinfo, "Latest Refresh", pln_row_text(details, 0, "last_update_id"));
	put_pair(rsinfo, "Refresh Schedule", "MANUAL");
}

Datum
pipeline_describe(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PlnDataset *dataset;
	PlnPipeline *pipeline;
	PlnAccess	access;
	PlnRows    *details;
	Oid			relid;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("the dataset must not be null")));
	relid = PG_GETARG_OID(0);
	InitMaterializedSRF(fcinfo, 0);
	dataset = pln_dataset_by_relid(relid);
	if (dataset == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("\"%s\" is not a dataset of a pipeline", pln_relation_name(relid)),
				 errhint("SELECT dataset FROM pipeline.datasets;")));
	pipeline = pln_pipeline_get(dataset->pipeline_id);
	access = pln_access_of_dataset(dataset, pipeline);
	if (!access.owner && !access.stats && !access.read)
		pln_access_refuse("dataset", pln_dataset_display_name(dataset));
	details = fetch_details(dataset);
	describe_columns(rsinfo, dataset);
	describe_details(rsinfo, dataset, pipeline, details, access.owner);
	describe_refresh(rsinfo, details);
	return (Datum) 0;
}

/* ---- check_setup ---- */

static void
put_check(ReturnSetInfo *rsinfo, const char *check, bool ok, const char *what_to_type)
{
	Datum		values[3];
	bool		nulls[3] = {false, false, ok};

	values[0] = CStringGetTextDatum(check);
	values[1] = BoolGetDatum(ok);
	values[2] = ok ? (Datum) 0 : CStringGetTextDatum(what_to_type);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Is our library in a list of libraries, with or without a path? */
static bool
lists_library(const char *setting)
{
	const char *value = GetConfigOption(setting, true, false);
	List	   *names;
	ListCell   *lc;

	if (value == NULL || !SplitDirectoriesString(pstrdup(value), ',', &names))
		return false;
	foreach(lc, names)
	{
		const char *name = last_dir_separator(lfirst(lc));

		name = name != NULL ? name + 1 : lfirst(lc);
		if (strcmp(name, "pipeline") == 0 || strcmp(name, "pipeline.so") == 0)
			return true;
	}
	return false;
}

/*
 * The native statements (REFRESH MATERIALIZED VIEW, ...) are ours only in sessions that
 * loaded the library before.
 */
static void
check_preload(ReturnSetInfo *rsinfo)
{
	bool		ok = lists_library("shared_preload_libraries") ||
		lists_library("session_preload_libraries") || lists_library("local_preload_libraries");

	put_check(rsinfo, "library is preloaded", ok,
			  psprintf("ALTER DATABASE %s SET session_preload_libraries = 'pipeline';",
					   quote_identifier(get_database_name(MyDatabaseId))));
}

static void
check_versions(ReturnSetInfo *rsinfo)
{
	PlnRows    *rows = pln_spi_run(
		"SELECT extversion FROM pg_extension WHERE extname = 'pipeline'", 0, NULL, NULL, NULL);
	char	   *version = rows->n > 0 ? pln_row_text(rows, 0, "extversion") : NULL;

	put_check(rsinfo, "library and SQL versions match",
			  version != NULL && strcmp(version, PLN_SQL_VERSION) == 0,
			  "ALTER EXTENSION pipeline UPDATE;");
}

static void
check_event_triggers(ReturnSetInfo *rsinfo)
{
	PlnRows    *rows = pln_spi_run(
		"SELECT evtname FROM pg_event_trigger"
		" WHERE evtname IN ('pipeline_sql_drop', 'pipeline_ddl_command_end')"
		" AND evtenabled <> 'A' ORDER BY evtname", 0, NULL, NULL, NULL);
	StringInfoData fix;
	uint64		i;

	initStringInfo(&fix);
	for (i = 0; i < rows->n; i++)
		appendStringInfo(&fix, "%sALTER EVENT TRIGGER %s ENABLE ALWAYS;", i > 0 ? " " : "",
						 quote_identifier(pln_row_text(rows, i, "evtname")));
	put_check(rsinfo, "event triggers are enabled", rows->n == 0, fix.data);
}

static void
check_cron(ReturnSetInfo *rsinfo)
{
	bool		installed = OidIsValid(get_extension_oid("pg_cron", true));
	const char *workers = GetConfigOption("cron.use_background_workers", true, false);
	PlnRows    *rows;

	if (installed)
	{
		put_check(rsinfo, "pg_cron is installed", true, NULL);
		put_check(rsinfo, "pg_cron runs jobs in background workers",
				  workers != NULL && strcmp(workers, "on") == 0,
				  "ALTER SYSTEM SET cron.use_background_workers = on; -- and restart the server");
		return;
	}
	rows = pln_spi_run(
		"SELECT FROM pg_available_extensions WHERE name = 'pg_cron'", 0, NULL, NULL, NULL);
	put_check(rsinfo, "pg_cron is installed", false, rows->n > 0 ?
			  "CREATE EXTENSION pg_cron; -- for schedules only" :
			  psprintf("apt install postgresql-%d-cron -- for schedules only",
					   atoi(GetConfigOption("server_version_num", false, false)) / 10000));
}

static void
check_locations(ReturnSetInfo *rsinfo)
{
	bool		ok = (pln_guc_allowed_locations != NULL &&
					  pln_guc_allowed_locations[0] != '\0') ||
		has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES);

	put_check(rsinfo, "files may be read", ok,
			  "ALTER SYSTEM SET pipeline.allowed_locations = '/landing'; SELECT pg_reload_conf();");
}

Datum
pipeline_check_setup(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	check_versions(rsinfo);
	check_preload(rsinfo);
	check_event_triggers(rsinfo);
	check_locations(rsinfo);
	check_cron(rsinfo);
	return (Datum) 0;
}

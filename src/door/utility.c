/*
 * utility.c
 *	  The one ProcessUtility hook: statements of PostgreSQL's own grammar on our datasets.
 *
 * Takes CREATE MATERIALIZED VIEW only when it has a pipeline.* option, and REFRESH
 * MATERIALIZED VIEW only of a dataset; everything else goes on at once.  Holds no logic:
 * it rewrites the statement into a request and calls down.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "parser/parse_node.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "door/door.h"
#include "door/utility.h"
#include "source/source.h"

static ProcessUtility_hook_type next_hook = NULL;

/* The extension's objects are there, and nobody is installing or upgrading them. */
static bool
is_ready(void)
{
	return !IsBinaryUpgrade && !creating_extension && IsTransactionState() &&
		OidIsValid(get_namespace_oid("pipeline_internal", true)) &&
		OidIsValid(get_relname_relid("datasets", get_namespace_oid("pipeline_internal", true)));
}

/* ---- CREATE MATERIALIZED VIEW ... WITH (pipeline.x = ...) ---- */

static bool
has_our_options(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (option->defnamespace != NULL && strcmp(option->defnamespace, "pipeline") == 0)
			return true;
	}
	return false;
}

/* errposition() for a place in the statement that the user typed */
static int
option_position(const char *query_string, DefElem *option)
{
	if (query_string == NULL || option->location < 0)
		return 0;
	return errposition(pg_mbstrlen_with_len(query_string, option->location) + 1);
}

static PlnRefreshPolicy
policy_value(const char *query_string, DefElem *option)
{
	const char *value = defGetString(option);

	if (pg_strcasecmp(value, "auto") == 0)
		return PLN_POLICY_AUTO;
	if (pg_strcasecmp(value, "full") == 0)
		return PLN_POLICY_FULL;
	if (pg_strcasecmp(value, "incremental") == 0 ||
		pg_strcasecmp(value, "incremental strict") == 0)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("refresh policy %s is not supported yet", value),
				 errhint("Use pipeline.refresh_policy = 'auto'."),
				 option_position(query_string, option)));
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("invalid value for option \"pipeline.refresh_policy\": \"%s\"", value),
			 errhint("Values are auto, incremental, incremental strict and full."),
			 option_position(query_string, option)));
	return PLN_POLICY_AUTO;		/* keep compiler quiet */
}

static PlnRefreshPolicy
read_options(const char *query_string, List *options)
{
	PlnRefreshPolicy policy = PLN_POLICY_AUTO;
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (option->defnamespace == NULL)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("storage option \"%s\" together with pipeline options",
							option->defname),
					 errhint("Set it afterwards: ALTER MATERIALIZED VIEW ... SET (%s = ...);",
							 option->defname),
					 option_position(query_string, option)));
		if (strcmp(option->defname, "refresh_policy") == 0)
			policy = policy_value(query_string, option);
		else if (strcmp(option->defname, "schedule") == 0)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("option \"pipeline.schedule\" is not supported yet"),
					 errhint("SELECT cron.schedule('...', 'REFRESH MATERIALIZED VIEW ...');"),
					 option_position(query_string, option)));
		else
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("unrecognized option \"pipeline.%s\"", option->defname),
					 errhint("Options are pipeline.refresh_policy and pipeline.schedule."),
					 option_position(query_string, option)));
	}
	return policy;
}

static void
create_matview(const char *query_string, CreateTableAsStmt *stmt)
{
	IntoClause *into = stmt->into;

	if (into->skipData)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("WITH NO DATA together with pipeline options"),
				 errhint("Create it with data, or as an ordinary materialized view.")));
	pln_door_create_native(into->rel, stmt->if_not_exists, into->colNames,
						   read_options(query_string, into->options),
						   copyObject(castNode(Query, stmt->query)));
}

/* ---- REFRESH MATERIALIZED VIEW ---- */

static void
refresh_step(void *arg)
{
	pln_update_run((PlnRequest *) arg);
}

/*
 * At top level and outside a block the failure can be recorded and committed before the
 * error goes on (correctness B10).
 */
static void
refresh(Oid relid, bool top_level)
{
	PlnRequest	request;

	if (top_level)
		pln_spi_begin_nonatomic();
	memset(&request, 0, sizeof(request));
	pln_request_for_dataset(&request, relid);
	pln_door_guard(refresh_step, &request, top_level);
	if (top_level)
		pln_spi_end_nonatomic();
}

static Oid
refreshed_dataset(RefreshMatViewStmt *stmt)
{
	Oid			relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	PlnDataset *dataset = OidIsValid(relid) ? pln_dataset_by_relid(relid) : NULL;

	if (dataset == NULL || stmt->skipData)
		return InvalidOid;
	/* an inactive or restored view without a definition is the server's to refresh */
	return dataset->state == PLN_DATASET_ACTIVE ? relid : InvalidOid;
}

/* Native forms of interface §1 that would otherwise pretend, or fail in core's words. */
static void
refuse_unbuilt(Node *stmt)
{
	const char *what = NULL;
	ListCell   *lc;

	if (IsA(stmt, AlterTableStmt) && ((AlterTableStmt *) stmt)->objtype == OBJECT_MATVIEW)
	{
		foreach(lc, ((AlterTableStmt *) stmt)->cmds)
		{
			AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

			if ((cmd->subtype == AT_SetRelOptions || cmd->subtype == AT_ResetRelOptions) &&
				has_our_options(castNode(List, cmd->def)))
				what = "ALTER MATERIALIZED VIEW ... SET/RESET (pipeline...)";
		}
	}
	else if (IsA(stmt, ExplainStmt))
	{
		/* NULL for a query */
		Node	   *create = castNode(Query, ((ExplainStmt *) stmt)->query)->utilityStmt;

		if (create != NULL && IsA(create, CreateTableAsStmt) &&
			has_our_options(((CreateTableAsStmt *) create)->into->options))
			what = "EXPLAIN CREATE MATERIALIZED VIEW";
	}
	else if (IsA(stmt, GrantStmt))
	{
		foreach(lc, ((GrantStmt *) stmt)->privileges)
		{
			AccessPriv *privilege = lfirst_node(AccessPriv, lc);

			if (privilege->priv_name != NULL && strcmp(privilege->priv_name, "refresh") == 0)
				what = ((GrantStmt *) stmt)->is_grant ? "GRANT REFRESH" : "REVOKE REFRESH";
		}
	}
	if (what != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("%s is not supported yet", what)));
}

static void
call_next(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
		  ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *query_env,
		  DestReceiver *dest, QueryCompletion *qc)
{
	if (next_hook != NULL)
		next_hook(pstmt, query_string, read_only_tree, context, params, query_env, dest, qc);
	else
		standard_ProcessUtility(pstmt, query_string, read_only_tree, context, params,
								query_env, dest, qc);
}

/* The view's storage is the one that the restore made. */
static void
note_filled(Oid relid)
{
	PlnDataset *dataset;
	Relation	rel;

	CommandCounterIncrement();
	dataset = pln_dataset_by_relid(relid);
	if (dataset == NULL)
		return;
	rel = relation_open(relid, AccessShareLock);
	dataset->relfilenode = rel->rd_rel->relfilenode;
	dataset->filled = true;
	relation_close(rel, NoLock);
	pln_dataset_save(dataset);
}

static void
hook(PlannedStmt *pstmt, const char *query_string, bool read_only_tree,
	 ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *query_env,
	 DestReceiver *dest, QueryCompletion *qc)
{
	Node	   *stmt = pstmt->utilityStmt;

	if (IsA(stmt, CreateTableAsStmt) &&
		((CreateTableAsStmt *) stmt)->objtype == OBJECT_MATVIEW &&
		has_our_options(((CreateTableAsStmt *) stmt)->into->options))
	{
		if (!is_ready())
			ereport(ERROR,
					(errcode(PLN_ERR_STATE),
					 errmsg("extension \"pipeline\" is not installed in this database"),
					 errhint("CREATE EXTENSION pipeline;")));
		create_matview(query_string, (CreateTableAsStmt *) stmt);
		return;
	}
	refuse_unbuilt(stmt);
	if (IsA(stmt, RefreshMatViewStmt) && is_ready())
	{
		Oid			relid = refreshed_dataset((RefreshMatViewStmt *) stmt);

		if (OidIsValid(relid) && pln_source_is_restored())
		{
			/* a restore fills views as core does: no events, no failing rules (B13) */
			call_next(pstmt, query_string, read_only_tree, context, params, query_env, dest, qc);
			note_filled(relid);
			return;
		}
		if (OidIsValid(relid))
		{
			refresh(relid, context == PROCESS_UTILITY_TOPLEVEL && !IsTransactionBlock() &&
					!IsSubTransaction());
			if (qc != NULL)
				SetQueryCompletion(qc, CMDTAG_REFRESH_MATERIALIZED_VIEW, 0);
			return;
		}
	}
	call_next(pstmt, query_string, read_only_tree, context, params, query_env, dest, qc);
}

void
pln_utility_install(void)
{
	next_hook = ProcessUtility_hook;
	ProcessUtility_hook = hook;
}

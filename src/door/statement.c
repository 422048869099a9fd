/*
 * statement.c
 *	  Statements of the DO door: each is executed now, as the caller.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "analyze/define.h"
#include "analyze/star.h"
#include "analyze/unbuilt.h"
#include "base/errors.h"
#include "base/guc.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "door/door.h"

static void
refuse(PlnScript *script, int location, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("%s", what),
			 hint ? errhint("%s", hint) : 0,
			 pln_script_errposition(script, location)));
}

static RangeVar *
range_var(PlnScript *script, PlnName *name)
{
	if (name->catalog != NULL && strcmp(name->catalog, get_database_name(MyDatabaseId)) != 0)
		refuse(script, name->location,
			   psprintf("catalog \"%s\" is not the current database", name->catalog),
			   psprintf("Leave it out: %s", pln_quote_qualified(name->schema, name->name)));
	return makeRangeVar(name->schema, name->name, -1);
}

/* ---- CREATE ---- */

static void
note_skipped(PlnName *name)
{
	ereport(NOTICE,
			(errcode(ERRCODE_DUPLICATE_TABLE),
			 errmsg("relation \"%s\" already exists, skipping", name->name)));
}

static void
create_stored(PlnScript *script, PlnCreateDataset *decl, Query *native_query)
{
	RangeVar   *rv = range_var(script, decl->name);
	char	   *schema = get_namespace_name(RangeVarGetCreationNamespace(rv));
	Oid			existing = get_relname_relid(decl->name->name, get_namespace_oid(schema, false));
	PlnDataset *dataset = pln_dataset_find(schema, decl->name->name);
	PlnRequest	request;
	PlnPipeline *pipeline;

	if (decl->is_private)
		refuse(script, decl->stmt.location, "a private table belongs into a pipeline",
			   "Declare it in CREATE PROCEDURE ... LANGUAGE pipeline.");
	if (OidIsValid(existing) && decl->if_not_exists)
	{
		note_skipped(decl->name);
		return;
	}
	if (OidIsValid(existing) && !decl->or_refresh && !decl->or_replace)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("relation \"%s\" already exists", decl->name->name),
				 dataset ? errhint("To change its definition: CREATE OR REFRESH %s ...",
								   decl->dataset_kind == PLN_STREAMING_TABLE ?
								   "STREAMING TABLE" : "MATERIALIZED VIEW") : 0,
				 pln_script_errposition(script, decl->name->location)));
	if (OidIsValid(existing) && dataset != NULL && !pg_class_ownercheck(existing, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, decl->name->name);
	pipeline = pln_pipeline_find(schema, decl->name->name);
	if (pipeline != NULL && !pipeline->standalone && !pipeline->dropped)
		ereport(ERROR,
				(errcode(PLN_ERR_DUPLICATE),
				 errmsg("a pipeline named %s exists", pln_pipeline_display_name(pipeline)),
				 pln_script_errposition(script, decl->name->location)));
	if (pipeline == NULL || (pipeline->dropped && pipeline->owner != GetUserId()))
	{
		pipeline = palloc0(sizeof(PlnPipeline));
		pipeline->schema_name = schema;
		pipeline->name = decl->name->name;
		pipeline->parameters = "{}";
	}
	pipeline->standalone = true;
	pipeline->dropped = false;
	pipeline->owner = OidIsValid(existing) && dataset != NULL ? pipeline->owner : GetUserId();
	if (!OidIsValid(pipeline->owner))
		pipeline->owner = GetUserId();
	pipeline->source = native_query ? "" : decl->stmt.original;
	pipeline->settings = pln_pin_settings(NULL);
	memset(&request, 0, sizeof(request));
	request.pipeline = pipeline;
	request.owner = pipeline->owner;
	if (native_query == NULL)
	{
		request.create = decl;
		request.script = script;
	}
	else
	{
		ListCell   *lc;

		request.native_query = native_query;
		request.native_policy = decl->policy;
		foreach(lc, decl->columns)
			request.native_columns = lappend(request.native_columns,
											 makeString(((PlnColumnDef *) lfirst(lc))->name));
	}
	request.wait = true;
	request.cause = "USER_ACTION";
	pln_update_run(&request);
}

/* PostgreSQL's own CREATE MATERIALIZED VIEW with options of ours: nothing of it is dialect. */
void
pln_door_create_native(RangeVar *name, bool if_not_exists, List *column_names,
					   PlnRefreshPolicy policy, Query *query)
{
	PlnScript  *script = palloc0(sizeof(PlnScript));
	PlnCreateDataset *decl = palloc0(sizeof(PlnCreateDataset));
	ListCell   *lc;

	script->source = "";
	decl->stmt.kind = PLN_STMT_CREATE_DATASET;
	decl->stmt.location = -1;
	decl->stmt.original = "";
	decl->dataset_kind = PLN_MATERIALIZED_VIEW;
	decl->if_not_exists = if_not_exists;
	decl->policy = policy;
	decl->name = palloc0(sizeof(PlnName));
	decl->name->catalog = name->catalogname;
	decl->name->schema = name->schemaname;
	decl->name->name = name->relname;
	decl->name->location = -1;
	foreach(lc, column_names)
	{
		PlnColumnDef *column = palloc0(sizeof(PlnColumnDef));

		column->name = strVal(lfirst(lc));
		decl->columns = lappend(decl->columns, column);
	}
	create_stored(script, decl, query);
}

static void
run_utility(Node *node, const char *text)
{
	PlannedStmt *plan = makeNode(PlannedStmt);

	plan->commandType = CMD_UTILITY;
	plan->canSetTag = true;
	plan->utilityStmt = node;
	plan->stmt_location = -1;
	plan->stmt_len = 0;
	PushActiveSnapshot(GetTransactionSnapshot());
	ProcessUtility(plan, text, false, PROCESS_UTILITY_QUERY, NULL, NULL, None_Receiver, NULL);
	if (ActiveSnapshotSet())
		PopActiveSnapshot();
}

/* A view of its own is PostgreSQL's view. */
static void
create_view(PlnScript *script, PlnCreateDataset *decl)
{
	ViewStmt   *stmt = makeNode(ViewStmt);
	PlnErrorScope scope;
	RawStmt    *raw;
	ListCell   *lc;

	if (decl->expectations != NIL || decl->flow == NULL || decl->flow->query->streams != NIL)
		refuse(script, decl->stmt.location,
			   "a temporary view with expectations or a stream belongs into a pipeline",
			   "Declare it in CREATE PROCEDURE ... LANGUAGE pipeline.");
	stmt->view = range_var(script, decl->name);
	if (decl->dataset_kind == PLN_TEMPORARY_VIEW)
		stmt->view->relpersistence = RELPERSISTENCE_TEMP;
	if (decl->if_not_exists &&
		OidIsValid(get_relname_relid(decl->name->name,
									 RangeVarGetCreationNamespace(stmt->view))))
	{
		note_skipped(decl->name);
		return;
	}
	pln_error_scope_begin(&scope, script, decl->flow->query);
	raw = pln_expand_select(pln_sql_parse_query(decl->flow->query), decl->flow->query);
	stmt->query = raw->stmt;
	stmt->replace = decl->or_replace || decl->or_refresh;
	foreach(lc, decl->columns)
		stmt->aliases = lappend(stmt->aliases, makeString(((PlnColumnDef *) lfirst(lc))->name));
	run_utility((Node *) stmt, decl->flow->query->text);
	pln_error_scope_end(&scope);
	if (decl->comment != NULL)
		(void) pln_spi_user(psprintf("COMMENT ON VIEW %s IS %s",
									 pln_quote_qualified(decl->name->schema, decl->name->name),
									 pln_quote_literal(decl->comment)));
}

/* ---- the others ---- */

static Oid
dataset_relid(PlnScript *script, PlnName *name, PlnDatasetKind kind, bool missing_ok)
{
	Oid			relid = RangeVarGetRelid(range_var(script, name), NoLock, true);
	PlnDataset *dataset = OidIsValid(relid) ? pln_dataset_by_relid(relid) : NULL;

	if (!OidIsValid(relid) && missing_ok)
		return InvalidOid;
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("%s \"%s\" does not exist",
						kind == PLN_MATERIALIZED_VIEW ? "materialized view" : "streaming table",
						name->name),
				 pln_script_errposition(script, name->location)));
	if (dataset == NULL || dataset->kind != kind)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a %s of a pipeline", name->name,
						kind == PLN_MATERIALIZED_VIEW ? "materialized view" : "streaming table"),
				 dataset != NULL && dataset->kind == PLN_STREAMING_TABLE ?
				 errhint("REFRESH STREAMING TABLE %s", quote_identifier(name->name)) :
				 dataset != NULL && dataset->kind == PLN_MATERIALIZED_VIEW ?
				 errhint("REFRESH MATERIALIZED VIEW %s", quote_identifier(name->name)) : 0,
				 pln_script_errposition(script, name->location)));
	return relid;
}

static void
refresh(PlnScript *script, PlnRefresh *stmt)
{
	PlnRequest	request;

	if (stmt->where != NULL)
		refuse(script, stmt->where->location,
			   "REFRESH ... WHERE needs a REPLACE WHERE flow", NULL);
	if (stmt->async)
		refuse(script, stmt->stmt.location, "REFRESH ... ASYNC is not supported yet",
			   "Leave out ASYNC.");
	memset(&request, 0, sizeof(request));
	pln_request_for_dataset(&request, dataset_relid(script, stmt->name, stmt->dataset_kind,
													false));
	request.full_refresh = stmt->full;
	pln_update_run(&request);
}

static void
drop(PlnScript *script, PlnDrop *stmt)
{
	const char *what = stmt->dataset_kind == PLN_MATERIALIZED_VIEW ? "MATERIALIZED VIEW" :
		stmt->dataset_kind == PLN_STREAMING_TABLE ? "TABLE" : "VIEW";

	(void) range_var(script, stmt->name);	/* checks the catalog */
	(void) pln_spi_user(psprintf("DROP %s %s%s%s", what, stmt->if_exists ? "IF EXISTS " : "",
								 pln_quote_qualified(stmt->name->schema, stmt->name->name),
								 stmt->cascade ? " CASCADE" : ""));
}

static void
alter(PlnScript *script, PlnAlter *stmt)
{
	const char *what = stmt->dataset_kind == PLN_MATERIALIZED_VIEW ? "MATERIALIZED VIEW" :
		"TABLE";
	char	   *name = pln_quote_qualified(stmt->name->schema, stmt->name->name);

	if (stmt->alter_kind == PLN_ALTER_ADD_SCHEDULE ||
		stmt->alter_kind == PLN_ALTER_ALTER_SCHEDULE ||
		stmt->alter_kind == PLN_ALTER_DROP_SCHEDULE)
		pln_refuse_schedule(script, stmt->schedule,
							stmt->schedule ? stmt->schedule->location : stmt->clause_location,
							name,
							psprintf("CALL pipeline.refresh(%s)", quote_literal_cstr(name)));
	(void) dataset_relid(script, stmt->name, stmt->dataset_kind, false);
	switch (stmt->alter_kind)
	{
		case PLN_ALTER_COLUMN_COMMENT:
			(void) pln_spi_user(psprintf("COMMENT ON COLUMN %s.%s IS %s", name,
										 quote_identifier(stmt->column),
										 stmt->text ? pln_quote_literal(stmt->text) : "NULL"));
			break;
		case PLN_ALTER_OWNER:
			(void) pln_spi_user(psprintf("ALTER %s %s OWNER TO %s", what, name,
										 quote_identifier(stmt->text)));
			break;
		case PLN_ALTER_RENAME:
			(void) pln_spi_user(psprintf("ALTER %s %s RENAME TO %s", what, name,
										 quote_identifier(stmt->text)));
			break;
		default:
			refuse(script, stmt->clause_location,
				   "ALTER ... SET TBLPROPERTIES is not supported yet",
				   "Repeat CREATE OR REFRESH with the new TBLPROPERTIES.");
	}
}

static void
describe(PlnScript *script, PlnDescribe *stmt)
{
	Oid			relid = RangeVarGetRelid(range_var(script, stmt->name), NoLock, true);
	Oid			argtypes[1] = {OIDOID};
	Datum		values[1];
	PlnRows    *rows;
	uint64		i;

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s\" does not exist", stmt->name->name),
				 errhint("SELECT dataset FROM pipeline.datasets;"),
				 pln_script_errposition(script, stmt->name->location)));
	if (pln_dataset_by_relid(relid) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a dataset of a pipeline", stmt->name->name),
				 errhint("SELECT dataset FROM pipeline.datasets;"),
				 pln_script_errposition(script, stmt->name->location)));
	if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) &&
		pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, stmt->name->name);
	values[0] = ObjectIdGetDatum(relid);
	rows = pln_spi_run("SELECT item, value FROM pipeline.describe($1::oid::regclass)",
					   1, argtypes, values, NULL);
	for (i = 0; i < rows->n; i++)
	{
		char	   *value = pln_row_text(rows, i, "value");

		ereport(NOTICE,
				(errmsg("%s: %s", pln_row_text(rows, i, "item"), value ? value : "")));
	}
}

static void
set_option(PlnScript *script, PlnSet *stmt)
{
	if (GetConfigOption(stmt->key, true, false) == NULL)
		return;					/* a name for ${key} in what follows, no setting of the server */
	(void) set_config_option(stmt->key, stmt->value, superuser() ? PGC_SUSET : PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

static void
use(PlnScript *script, PlnUse *stmt)
{
	if (stmt->is_catalog)
	{
		if (strcmp(stmt->name, get_database_name(MyDatabaseId)) != 0)
			refuse(script, stmt->name_location,
				   psprintf("catalog \"%s\" is not the current database", stmt->name),
				   psprintf("Connect to it: \\c %s", quote_identifier(stmt->name)));
		return;
	}
	if (!OidIsValid(get_namespace_oid(stmt->name, true)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("schema \"%s\" does not exist", stmt->name),
				 errhint("CREATE SCHEMA %s;", quote_identifier(stmt->name)),
				 pln_script_errposition(script, stmt->name_location)));
	(void) set_config_option("search_path",
							 psprintf("%s, %s", quote_identifier(stmt->name),
									  GetConfigOption("search_path", false, false)),
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

static void
run_planned(Query *query, const char *text)
{
	PlannedStmt *plan;
	QueryDesc  *desc;

	if (query->commandType == CMD_UTILITY)
	{
		run_utility(query->utilityStmt, text);
		return;
	}
	PushActiveSnapshot(GetTransactionSnapshot());
	plan = pg_plan_query(query, text, 0, NULL);
	PushCopiedSnapshot(GetActiveSnapshot());
	UpdateActiveSnapshotCommandId();
	desc = CreateQueryDesc(plan, text, GetActiveSnapshot(), InvalidSnapshot, None_Receiver,
						   NULL, NULL, 0);
	ExecutorStart(desc, 0);
	ExecutorRun(desc, ForwardScanDirection, 0L, true);
	if (query->commandType == CMD_SELECT && query->canSetTag &&
		pln_guc_messages != PLN_MESSAGES_QUIET)
		ereport(NOTICE,
				(errmsg("SELECT gave " UINT64_FORMAT " rows; DO shows none",
						desc->estate->es_processed)));
	ExecutorFinish(desc);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
	PopActiveSnapshot();
	PopActiveSnapshot();
}

/* ---- CREATE OR REPLACE TABLE ---- */

typedef struct Replacement
{
	char	   *schema;
	char	   *name;
	char	   *new_name;		/* CREATE TABLE AS: made under this name, then renamed; or NULL */
} Replacement;

static void
refuse_replacing(PlnScript *script, PlnPlain *stmt, Oid relid)
{
	PlnDataset *dataset = pln_dataset_by_relid(relid);
	char		relkind = get_rel_relkind(relid);

	if (dataset != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s is a dataset of a pipeline", pln_dataset_display_name(dataset)),
				 errhint("CREATE OR REFRESH %s %s ...",
						 dataset->kind == PLN_STREAMING_TABLE ? "STREAMING TABLE" :
						 "MATERIALIZED VIEW", pln_dataset_display_name(dataset)),
				 pln_script_errposition(script, stmt->replaces->location)));
	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", stmt->replaces->name),
				 pln_script_errposition(script, stmt->replaces->location)));
}

static void
drop_replaced(Replacement *replacement)
{
	(void) pln_spi_user(psprintf("DROP TABLE %s",
								 pln_quote_qualified(replacement->schema, replacement->name)));
	CommandCounterIncrement();
}

/*
 * Before CREATE OR REPLACE TABLE: the old table goes, in the same transaction.  That of
 * CREATE TABLE AS goes afterwards, since the query may read it.
 */
static void
begin_replacement(PlnScript *script, PlnPlain *stmt, RawStmt *raw, Replacement *replacement)
{
	RangeVar   *rv = range_var(script, stmt->replaces);
	Oid			nsp = RangeVarGetCreationNamespace(rv);
	Oid			relid = get_relname_relid(rv->relname, nsp);

	replacement->schema = get_namespace_name(nsp);
	replacement->name = rv->relname;
	replacement->new_name = NULL;
	if (!OidIsValid(relid))
		return;
	refuse_replacing(script, stmt, relid);
	if (IsA(raw->stmt, CreateTableAsStmt))
	{
		IntoClause *into = ((CreateTableAsStmt *) raw->stmt)->into;

		replacement->new_name = ChooseRelationName(rv->relname, NULL, "new", nsp, false);
		into->rel->schemaname = replacement->schema;
		into->rel->relname = replacement->new_name;
	}
	else
		drop_replaced(replacement);
}

static void
end_replacement(Replacement *replacement)
{
	if (replacement->new_name == NULL)
		return;
	drop_replaced(replacement);
	(void) pln_spi_user(psprintf("ALTER TABLE %s RENAME TO %s",
								 pln_quote_qualified(replacement->schema, replacement->new_name),
								 quote_identifier(replacement->name)));
}

/* The table that a plain statement makes, as text; NULL when it makes none. */
static char *
made_table(RawStmt *raw)
{
	RangeVar   *rv;

	if (IsA(raw->stmt, CreateStmt))
		rv = ((CreateStmt *) raw->stmt)->relation;
	else if (IsA(raw->stmt, CreateTableAsStmt))
		rv = ((CreateTableAsStmt *) raw->stmt)->into->rel;
	else
		return NULL;
	return pln_quote_qualified(rv->schemaname, rv->relname);
}

/* Any other statement: as typed, with the caller's rights and without restriction (C16). */
static void
plain(PlnScript *script, PlnPlain *stmt)
{
	PlnErrorScope scope;
	RawStmt    *raw;
	List	   *queries;
	ListCell   *lc;
	char	   *table;
	Replacement replacement = {0};

	pln_error_scope_begin(&scope, script, stmt->sql);
	raw = pln_sql_parse_plain(stmt->sql);
	table = made_table(raw);
	if (IsA(raw->stmt, TransactionStmt))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("DO is one transaction"),
				 errhint("Put COMMIT and ROLLBACK around DO."),
				 pln_script_errposition(script, stmt->stmt.location)));
	raw = pln_expand_select(raw, stmt->sql);
	if (stmt->replaces != NULL)
		begin_replacement(script, stmt, raw, &replacement);
	PushActiveSnapshot(GetTransactionSnapshot());
	queries = pg_analyze_and_rewrite_fixedparams(raw, stmt->sql->text, NULL, 0, NULL);
	PopActiveSnapshot();
	foreach(lc, queries)
	{
		run_planned(lfirst_node(Query, lc), stmt->sql->text);
		CommandCounterIncrement();
	}
	if (stmt->replaces != NULL)
		end_replacement(&replacement);
	pln_error_scope_end(&scope);
	if (table != NULL)
		pln_define_notices(stmt->notices, table);
}

void
pln_door_statement(PlnScript *script, PlnStmt *stmt)
{
	switch (stmt->kind)
	{
		case PLN_STMT_CREATE_DATASET:
			{
				PlnCreateDataset *decl = (PlnCreateDataset *) stmt;

				if (decl->dataset_kind == PLN_VIEW || decl->dataset_kind == PLN_TEMPORARY_VIEW)
					create_view(script, decl);
				else
					create_stored(script, decl, NULL);
			}
			break;
		case PLN_STMT_CREATE_FLOW:
			pln_refuse_flow(script, ((PlnCreateFlow *) stmt)->flow, stmt->location);
			break;
		case PLN_STMT_REFRESH:
			refresh(script, (PlnRefresh *) stmt);
			break;
		case PLN_STMT_ALTER:
			alter(script, (PlnAlter *) stmt);
			break;
		case PLN_STMT_DROP:
			drop(script, (PlnDrop *) stmt);
			break;
		case PLN_STMT_GRANT_REFRESH:
			if (((PlnGrantRefresh *) stmt)->is_grant)
				refuse(script, stmt->location, "GRANT REFRESH is not supported yet",
					   "For a whole pipeline: GRANT EXECUTE ON PROCEDURE ... TO ...");
			else
				refuse(script, stmt->location, "REVOKE REFRESH is not supported yet",
					   "For a whole pipeline: REVOKE EXECUTE ON PROCEDURE ... FROM ...");
			break;
		case PLN_STMT_EXPLAIN_CREATE:
			refuse(script, stmt->location,
				   "EXPLAIN CREATE MATERIALIZED VIEW is not supported yet",
				   "Look at its query: EXPLAIN SELECT ...");
			break;
		case PLN_STMT_DESCRIBE:
			describe(script, (PlnDescribe *) stmt);
			break;
		case PLN_STMT_SET:
			set_option(script, (PlnSet *) stmt);
			break;
		case PLN_STMT_USE:
			use(script, (PlnUse *) stmt);
			break;
		case PLN_STMT_PLAIN:
			plain(script, (PlnPlain *) stmt);
			break;
	}
}

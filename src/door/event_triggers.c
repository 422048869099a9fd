/*
 * event_triggers.c
 *	  Keeps our catalog in step with what the server does to relations and procedures.
 *
 * Both triggers are ENABLE ALWAYS, run with whatever rights the user has, and return after
 * one or two statements when the command touched nothing of ours.  They do nothing while
 * the extension itself is created, updated or dropped.  A procedure's row is found by name:
 * the old one stands in the parse tree of the command that changed it.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/spi.h"
#include "catalog/event_log.h"
#include "source/source.h"

PG_FUNCTION_INFO_V1(pipeline_on_sql_drop);
PG_FUNCTION_INFO_V1(pipeline_on_ddl_command_end);

/* A pipeline's procedure: in pg_proc by that name, in our language. */
#define PROCEDURE_EXISTS(schema, name) \
	"EXISTS (SELECT FROM pg_proc x JOIN pg_namespace n ON n.oid = x.pronamespace" \
	" JOIN pg_language l ON l.oid = x.prolang" \
	" WHERE l.lanname = 'pipeline' AND n.nspname = " schema " AND x.proname = " name ")"

static void
check_caller(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("not called by the event trigger manager")));
}

/* False while our tables are not there, or not to be touched. */
static bool
catalog_is_ready(void)
{
	Oid			nsp;

	if (creating_extension || IsBinaryUpgrade)
		return false;
	nsp = get_namespace_oid("pipeline_internal", true);
	return OidIsValid(nsp) && OidIsValid(get_relname_relid("events", nsp));
}

static PlnRows *
run_int8(const char *sql, int64 value)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, value);
	return pln_spi_run_args(sql, &args);
}

static PlnOrigin
dataset_origin(PlnDataset *dataset)
{
	PlnOrigin	origin;

	memset(&origin, 0, sizeof(origin));
	origin.pipeline = pln_pipeline_get(dataset->pipeline_id);
	origin.dataset = dataset;
	return origin;
}

/* ---- relations dropped ---- */

/* Sources that only this dataset read are not captured any more. */
static List *
inputs_of_dataset(int64 dataset_id)
{
	PlnRows    *rows = run_int8(
		"SELECT i.relid FROM pipeline_internal.flow_inputs i"
		" JOIN pipeline_internal.flows f ON f.id = i.flow_id"
		" WHERE f.dataset_id = $1 AND i.relid IS NOT NULL"
		" UNION SELECT c.relid FROM pipeline_internal.checkpoints c"
		" JOIN pipeline_internal.flows f ON f.id = c.flow_id WHERE f.dataset_id = $1",
		dataset_id);
	List	   *relids = NIL;
	uint64		i;

	for (i = 0; i < rows->n; i++)
		relids = lappend_oid(relids, pln_row_oid(rows, i, "relid"));
	return relids;
}

static void
forget_dataset(PlnDataset *dataset)
{
	PlnOrigin	origin = dataset_origin(dataset);
	List	   *inputs = inputs_of_dataset(dataset->id);
	ListCell   *lc;

	pln_event_user_action(&origin, "DELETE");
	pln_dataset_delete(dataset->id);
	if (origin.pipeline != NULL && origin.pipeline->standalone &&
		pln_datasets_of_pipeline(origin.pipeline->id) == NIL)
	{
		origin.pipeline->dropped = true;
		pln_pipeline_save(origin.pipeline);
	}
	foreach(lc, inputs)
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))))
			pln_source_forget_if_unread(lfirst_oid(lc));
	}
}

/*
 * The flow's view is gone but its dataset stays: core's CASCADE took it along with something
 * that it read.  The rows stay; nothing fills them any more.
 */
static void
deactivate_flow(int64 flow_id)
{
	PlnFlow    *flow = pln_flow_get(flow_id);
	PlnDataset *dataset;
	PlnOrigin	origin;

	if (flow == NULL)
		return;					/* went with its dataset */
	dataset = pln_dataset_get(flow->dataset_id);
	flow->view = InvalidOid;
	pln_flow_save(flow);
	pln_dataset_set_state(dataset->id, PLN_DATASET_INACTIVE, "source dropped");
	origin = dataset_origin(dataset);
	origin.flow = flow;
	pln_event(&origin, "WARN", "flow_progress",
			  psprintf("Flow '%s' has STOPPED.", flow->name),
			  "{\"status\":\"STOPPED\",\"reason\":\"source dropped\"}", NULL);
}

/* What was stored about a relation must not meet the next one that gets its oid. */
static void
forget_relation(Oid relid)
{
	PlnArgs		args;

	pln_source_forget(relid);
	pln_args_init(&args);
	pln_args_oid(&args, relid);
	(void) pln_spi_run_args(
		"DELETE FROM pipeline_internal.checkpoints WHERE relid = $1", &args);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.flow_inputs SET relid = NULL WHERE relid = $1", &args);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.datasets SET quarantine = NULL WHERE quarantine = $1", &args);
}

/*
 * Commands that ran in a subtransaction and were undone are listed too: only what is really
 * gone counts.
 */
static void
relations_dropped(void)
{
	PlnRows    *rows = pln_spi_run(
		"SELECT o.objid, d.id AS dataset_id, f.id AS flow_id"
		" FROM pg_event_trigger_dropped_objects() o"
		" LEFT JOIN pipeline_internal.datasets d ON d.relid = o.objid"
		" LEFT JOIN pipeline_internal.flows f ON f.view = o.objid"
		" WHERE o.classid = 'pg_class'::regclass AND o.objsubid = 0"
		" AND (d.id IS NOT NULL OR f.id IS NOT NULL"
		"  OR EXISTS (SELECT FROM pipeline_internal.flow_inputs i WHERE i.relid = o.objid)"
		"  OR EXISTS (SELECT FROM pipeline_internal.checkpoints c WHERE c.relid = o.objid)"
		"  OR EXISTS (SELECT FROM pipeline_internal.sources s WHERE s.relid = o.objid)"
		"  OR EXISTS (SELECT FROM pipeline_internal.capture_grants g WHERE g.source = o.objid)"
		"  OR EXISTS (SELECT FROM pipeline_internal.datasets q WHERE q.quarantine = o.objid))"
		" AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = o.objid)"
		" ORDER BY o.objid", 0, NULL, NULL, NULL);
	uint64		i;

	/* datasets first: flows that go with them need no state */
	for (i = 0; i < rows->n; i++)
	{
		PlnDataset *dataset = pln_dataset_get(pln_row_int8(rows, i, "dataset_id"));

		if (dataset != NULL)
			forget_dataset(dataset);
	}
	for (i = 0; i < rows->n; i++)
	{
		if (!pln_row_isnull(rows, i, "flow_id"))
			deactivate_flow(pln_row_int8(rows, i, "flow_id"));
		else
			forget_relation(pln_row_oid(rows, i, "objid"));
	}
}

/* ---- procedures dropped ---- */

static void
forget_pipeline(int64 id)
{
	PlnOrigin	origin;

	memset(&origin, 0, sizeof(origin));
	origin.pipeline = pln_pipeline_get(id);
	origin.pipeline->dropped = true;
	pln_pipeline_save(origin.pipeline);
	(void) run_int8(
		"UPDATE pipeline_internal.datasets SET state = 'INACTIVE',"
		" state_reason = 'pipeline dropped', state_since = clock_timestamp()"
		" WHERE pipeline_id = $1 AND state_reason IS DISTINCT FROM 'pipeline dropped'", id);
	pln_event_user_action(&origin, "DELETE");
}

static void
forget_pipelines(PlnRows *rows)
{
	uint64		i;

	for (i = 0; i < rows->n; i++)
		forget_pipeline(pln_row_int8(rows, i, "id"));
}

static void
procedures_dropped(void)
{
	forget_pipelines(pln_spi_run(
		"SELECT p.id FROM pg_event_trigger_dropped_objects() o"
		" JOIN pipeline_internal.pipelines p ON p.schema_name = o.address_names[1]"
		" AND p.name = o.address_names[2]"
		" WHERE o.classid = 'pg_proc'::regclass AND NOT p.standalone AND NOT p.dropped"
		" AND NOT " PROCEDURE_EXISTS("p.schema_name", "p.name")
		" ORDER BY p.id", 0, NULL, NULL, NULL));
}

Datum
pipeline_on_sql_drop(PG_FUNCTION_ARGS)
{
	check_caller(fcinfo);
	if (catalog_is_ready())
	{
		relations_dropped();
		procedures_dropped();
	}
	PG_RETURN_NULL();
}

/* ---- relations renamed, moved, given away ---- */

/* A row without a relation, left by a failed definition, would stand in the way of the name. */
static void
rename_dataset(PlnDataset *dataset, const char *schema_name, const char *name)
{
	PlnPipeline *pipeline = pln_pipeline_get(dataset->pipeline_id);
	ListCell   *lc;
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, dataset->pipeline_id);
	pln_args_text(&args, schema_name);
	pln_args_text(&args, name);
	(void) pln_spi_run_args(
		"DELETE FROM pipeline_internal.datasets WHERE pipeline_id = $1 AND schema_name = $2"
		" AND name = $3 AND relid IS NULL", &args);
	foreach(lc, pln_flows_of_dataset(dataset->id))
	{
		PlnFlow    *flow = lfirst(lc);

		if (strcmp(flow->name, dataset->name) == 0)
		{
			flow->name = pstrdup(name);
			pln_flow_save(flow);
		}
	}
	dataset->schema_name = pstrdup(schema_name);
	dataset->name = pstrdup(name);
	pln_dataset_save(dataset);
	if (pipeline != NULL && pipeline->standalone)
	{
		pipeline->schema_name = pstrdup(schema_name);
		pipeline->name = pstrdup(name);
		pln_pipeline_save(pipeline);
	}
}

/* Flow views and the quarantine table belong to whom the dataset belongs. */
static void
give_away(Oid relid, Oid owner)
{
	HeapTuple	tuple;
	Oid			current;

	if (!OidIsValid(relid))
		return;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return;
	current = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	/* recursing = true: the right was checked on the dataset itself */
	if (current != owner)
		ATExecChangeOwner(relid, owner, true, AccessExclusiveLock);
}

static void
follow_owner(PlnDataset *dataset, Oid owner)
{
	PlnPipeline *pipeline = pln_pipeline_get(dataset->pipeline_id);
	ListCell   *lc;

	foreach(lc, pln_flows_of_dataset(dataset->id))
		give_away(((PlnFlow *) lfirst(lc))->view, owner);
	give_away(dataset->quarantine, owner);
	if (pipeline != NULL && pipeline->standalone && pipeline->owner != owner)
	{
		pipeline->owner = owner;
		pln_pipeline_save(pipeline);
	}
}

static void
follow_relations(PlnRows *rows)
{
	uint64		i;

	for (i = 0; i < rows->n; i++)
	{
		PlnDataset *dataset = pln_dataset_get(pln_row_int8(rows, i, "id"));
		char	   *schema_name = pln_row_text(rows, i, "nspname");
		char	   *name = pln_row_text(rows, i, "relname");

		/* a private table is known by its declared name, wherever it is stored */
		if (!dataset->is_private && (strcmp(dataset->schema_name, schema_name) != 0 ||
									 strcmp(dataset->name, name) != 0))
			rename_dataset(dataset, schema_name, name);
		follow_owner(dataset, pln_row_oid(rows, i, "relowner"));
	}
}

#define FOLLOW_RELATIONS \
	"SELECT d.id, n.nspname, c.relname, c.relowner FROM pipeline_internal.datasets d" \
	" JOIN pg_class c ON c.oid = d.relid JOIN pg_namespace n ON n.oid = c.relnamespace"

static void
relations_altered(void)
{
	follow_relations(pln_spi_run(
		FOLLOW_RELATIONS
		" WHERE d.relid IN (SELECT a.objid FROM pg_event_trigger_ddl_commands() a"
		" WHERE a.classid = 'pg_class'::regclass) ORDER BY d.id", 0, NULL, NULL, NULL));
}

static void
all_relations_altered(void)
{
	follow_relations(pln_spi_run(FOLLOW_RELATIONS " ORDER BY d.id", 0, NULL, NULL, NULL));
}

/* ---- procedures created, renamed, moved, given away ---- */

static bool
is_routine(ObjectType type)
{
	return type == OBJECT_PROCEDURE || type == OBJECT_ROUTINE || type == OBJECT_FUNCTION;
}

static void
rename_pipelines(const char *old_schema, const char *old_name, const char *schema,
				 const char *name)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, old_schema);
	pln_args_text(&args, old_name);
	pln_args_text(&args, schema);
	pln_args_text(&args, name);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.pipelines SET schema_name = $3, name = $4"
		" WHERE NOT standalone AND NOT dropped AND name = $2"
		" AND (schema_name = $1 OR ($1 IS NULL"
		"  AND NOT " PROCEDURE_EXISTS("schema_name", "pipelines.name") "))"
		" AND " PROCEDURE_EXISTS("$3", "$4"), &args);
}

/* The routine that the command was about, as it is called now. */
static bool
current_routine_name(char **schema, char **name)
{
	PlnRows    *rows = pln_spi_run(
		"SELECT n.nspname, p.proname FROM pg_event_trigger_ddl_commands() a"
		" JOIN pg_proc p ON p.oid = a.objid JOIN pg_namespace n ON n.oid = p.pronamespace"
		" JOIN pg_language l ON l.oid = p.prolang"
		" WHERE a.classid = 'pg_proc'::regclass AND l.lanname = 'pipeline'",
		0, NULL, NULL, NULL);

	if (rows->n == 0)
		return false;
	*schema = pln_row_text(rows, 0, "nspname");
	*name = pln_row_text(rows, 0, "proname");
	return true;
}

static void
procedure_renamed(Node *parsetree)
{
	char	   *schema;
	char	   *name;

	if (!current_routine_name(&schema, &name))
		return;
	if (IsA(parsetree, RenameStmt))
	{
		RenameStmt *rename = (RenameStmt *) parsetree;
		ObjectWithArgs *object = castNode(ObjectWithArgs, rename->object);

		rename_pipelines(schema, strVal(llast(object->objname)), schema, name);
	}
	else
	{
		AlterObjectSchemaStmt *move = castNode(AlterObjectSchemaStmt, parsetree);
		ObjectWithArgs *object = castNode(ObjectWithArgs, move->object);
		List	   *names = object->objname;
		char	   *old_schema = NULL;

		if (list_length(names) > 1)
			old_schema = strVal(list_nth(names, list_length(names) - 2));
		rename_pipelines(old_schema, name, schema, name);
	}
}

/* A pipeline writes its datasets with the rights of its owner. */
static void
check_new_owner(PlnPipeline *pipeline, Oid owner)
{
	PlnRows    *rows = run_int8(
		"SELECT d.id, c.relowner, c.relkind FROM pipeline_internal.datasets d"
		" JOIN pg_class c ON c.oid = d.relid WHERE d.pipeline_id = $1 ORDER BY d.id",
		pipeline->id);
	uint64		i;

	for (i = 0; i < rows->n; i++)
	{
		PlnDataset *dataset;

		if (has_privs_of_role(owner, pln_row_oid(rows, i, "relowner")))
			continue;
		dataset = pln_dataset_get(pln_row_int8(rows, i, "id"));
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_ALLOWED),
				 errmsg("role \"%s\" does not own dataset \"%s\" of pipeline \"%s\"",
						GetUserNameFromId(owner, false), pln_dataset_display_name(dataset),
						pln_pipeline_display_name(pipeline)),
				 errhint("Give it the datasets first: ALTER TABLE %s OWNER TO %s;",
						 pln_relation_name(dataset->relid),
						 quote_identifier(GetUserNameFromId(owner, false)))));
	}
}

/* REASSIGN OWNED fires no event trigger: readers of the owner ask the procedure itself. */
static void
follow_owners(void)
{
	PlnRows    *rows = pln_spi_run(
		"SELECT p.id, x.proowner FROM pg_event_trigger_ddl_commands() a"
		" JOIN pg_proc x ON x.oid = a.objid JOIN pg_namespace n ON n.oid = x.pronamespace"
		" JOIN pg_language l ON l.oid = x.prolang AND l.lanname = 'pipeline'"
		" JOIN pipeline_internal.pipelines p ON p.schema_name = n.nspname AND p.name = x.proname"
		" WHERE a.classid = 'pg_proc'::regclass AND NOT p.standalone AND NOT p.dropped"
		" AND p.owner <> x.proowner ORDER BY p.id", 0, NULL, NULL, NULL);
	uint64		i;

	for (i = 0; i < rows->n; i++)
	{
		PlnPipeline *pipeline = pln_pipeline_get(pln_row_int8(rows, i, "id"));

		check_new_owner(pipeline, pln_row_oid(rows, i, "proowner"));
		pipeline->owner = pln_row_oid(rows, i, "proowner");
		pln_pipeline_save(pipeline);
	}
}

/* Also for functions of other languages: CALL and GRANT by name would become ambiguous. */
static void
refuse_second_signature(void)
{
	PlnRows    *rows = pln_spi_run(
		"SELECT n.nspname, p.proname FROM pg_event_trigger_ddl_commands() a"
		" JOIN pg_proc p ON p.oid = a.objid JOIN pg_namespace n ON n.oid = p.pronamespace"
		" WHERE a.classid = 'pg_proc'::regclass AND EXISTS (SELECT FROM pg_proc x"
		"  WHERE x.pronamespace = p.pronamespace AND x.proname = p.proname AND x.oid <> p.oid)"
		" AND " PROCEDURE_EXISTS("n.nspname", "p.proname"), 0, NULL, NULL, NULL);

	if (rows->n > 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_FUNCTION),
				 errmsg("pipeline \"%s\" has one signature only",
						pln_quote_qualified(pln_row_text(rows, 0, "nspname"),
											pln_row_text(rows, 0, "proname"))),
				 errhint("DROP PROCEDURE %s;",
						 pln_quote_qualified(pln_row_text(rows, 0, "nspname"),
											 pln_row_text(rows, 0, "proname")))));
}

/* CREATE OR REPLACE in another language ends a pipeline as DROP does. */
static void
routines_created(void)
{
	refuse_second_signature();
	forget_pipelines(pln_spi_run(
		"SELECT p.id FROM pg_event_trigger_ddl_commands() a JOIN pg_proc x ON x.oid = a.objid"
		" JOIN pg_namespace n ON n.oid = x.pronamespace"
		" JOIN pipeline_internal.pipelines p ON p.schema_name = n.nspname AND p.name = x.proname"
		" WHERE a.classid = 'pg_proc'::regclass AND NOT p.standalone AND NOT p.dropped"
		" AND NOT " PROCEDURE_EXISTS("p.schema_name", "p.name"), 0, NULL, NULL, NULL));
}

static void
routine_altered(Node *parsetree)
{
	if (IsA(parsetree, RenameStmt) || IsA(parsetree, AlterObjectSchemaStmt))
	{
		refuse_second_signature();
		procedure_renamed(parsetree);
	}
	else if (IsA(parsetree, AlterOwnerStmt))
		follow_owners();
}

static void
schema_renamed(RenameStmt *rename)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_text(&args, rename->subname);
	pln_args_text(&args, rename->newname);
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.pipelines SET schema_name = $2"
		" WHERE schema_name = $1 AND NOT dropped", &args);
	/* private tables keep their declared schema, which is the pipeline's */
	(void) pln_spi_run_args(
		"UPDATE pipeline_internal.datasets SET schema_name = $2 WHERE schema_name = $1", &args);
	all_relations_altered();
}

static ObjectType
altered_type(Node *parsetree)
{
	switch (nodeTag(parsetree))
	{
		case T_RenameStmt:
			return ((RenameStmt *) parsetree)->renameType;
		case T_AlterObjectSchemaStmt:
			return ((AlterObjectSchemaStmt *) parsetree)->objectType;
		case T_AlterOwnerStmt:
			return ((AlterOwnerStmt *) parsetree)->objectType;
		default:
			return OBJECT_TABLE;
	}
}

/* Captured tables: new columns and partitions are captured before anybody can write them. */
static void
sources_altered(bool created)
{
	PlnRows    *rows = pln_spi_run(
		"SELECT DISTINCT a.objid FROM pg_event_trigger_ddl_commands() a"
		" JOIN pg_class c ON c.oid = a.objid AND c.relkind IN ('r', 'p')"
		" WHERE a.classid = 'pg_class'::regclass ORDER BY 1", 0, NULL, NULL, NULL);
	uint64		i;

	for (i = 0; i < rows->n; i++)
		pln_source_relation_altered(pln_row_oid(rows, i, "objid"), created);
}

Datum
pipeline_on_ddl_command_end(PG_FUNCTION_ARGS)
{
	EventTriggerData *data;
	Node	   *parsetree;

	check_caller(fcinfo);
	if (!catalog_is_ready())
		PG_RETURN_NULL();
	data = (EventTriggerData *) fcinfo->context;
	parsetree = data->parsetree;
	if (IsA(parsetree, CreateFunctionStmt))
		routines_created();
	else if (is_routine(altered_type(parsetree)))
		routine_altered(parsetree);
	else if (IsA(parsetree, RenameStmt) && altered_type(parsetree) == OBJECT_SCHEMA)
		schema_renamed((RenameStmt *) parsetree);
	else if (IsA(parsetree, CreateStmt))
		sources_altered(true);
	else
	{
		relations_altered();
		sources_altered(false);
	}
	PG_RETURN_NULL();
}

/*
 * request.c
 *	  From what a door was asked to a request for an update.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "door/door.h"

/* A dropped pipeline's history is its owner's: only he gets it back with the name. */
static PlnPipeline *
find_or_make(const char *schema_name, const char *name, Oid owner)
{
	PlnPipeline *pipeline = pln_pipeline_find_kind(schema_name, name, false);

	if (pipeline == NULL || (pipeline->dropped && pipeline->owner != owner))
	{
		pipeline = palloc0(sizeof(PlnPipeline));
		pipeline->schema_name = pstrdup(schema_name);
		pipeline->name = pstrdup(name);
		pipeline->parameters = "{}";
		pipeline->settings = pln_pin_settings(schema_name);
	}
	return pipeline;
}

static char *
parameters_json(const PlnParam *params, int n)
{
	StringInfoData json;
	int			i;

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for (i = 0; i < n; i++)
	{
		if (params[i].value == NULL)
			continue;
		if (json.len > 1)
			appendStringInfoString(&json, ", ");
		escape_json(&json, params[i].name);
		appendStringInfoString(&json, ": ");
		escape_json(&json, params[i].value);
	}
	appendStringInfoChar(&json, '}');
	return json.data;
}

/*
 * A value that the caller chose is SQL that runs as the owner, and it would redefine the
 * datasets that use it: for members of the owning role only (correctness A7).
 */
static void
check_overrides(PlnProcedure *procedure, char **values)
{
	char	  **defaults;
	int			i;

	if (procedure->nargs == 0 || has_privs_of_role(GetUserId(), procedure->owner))
		return;
	defaults = pln_procedure_defaults(procedure);
	for (i = 0; i < procedure->nargs; i++)
	{
		if (values[i] == NULL && defaults[i] == NULL)
			continue;
		if (values[i] == NULL || defaults[i] == NULL || strcmp(values[i], defaults[i]) != 0)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_ALLOWED),
					 errmsg("parameter \"%s\" of pipeline \"%s\" may be set only by its owner",
							procedure->arg_names[i],
							pln_quote_qualified(procedure->schema_name, procedure->name)),
					 errhint("Leave it out: the run then uses its default.")));
	}
}

void
pln_request_for_procedure(PlnRequest *request, PlnProcedure *procedure, char **values)
{
	PlnPipeline *pipeline = find_or_make(procedure->schema_name, procedure->name,
										 procedure->owner);
	PlnParam   *params = palloc(sizeof(PlnParam) * Max(procedure->nargs, 1));
	int			i;

	check_overrides(procedure, values);
	for (i = 0; i < procedure->nargs; i++)
	{
		params[i].name = procedure->arg_names[i];
		params[i].value = values[i];
	}
	pipeline->owner = procedure->owner;
	pipeline->source = procedure->source;
	pipeline->standalone = false;
	pipeline->dropped = false;
	pipeline->parameters = parameters_json(params, procedure->nargs);
	request->pipeline = pipeline;
	request->owner = procedure->owner;
	request->params = params;
	request->nparams = procedure->nargs;
	request->cause = "USER_ACTION";
}

static char *
json_member(Jsonb *object, const char *name)
{
	JsonbValue	key;
	JsonbValue *value;

	key.type = jbvString;
	key.val.string.val = unconstify(char *, name);
	key.val.string.len = strlen(name);
	value = findJsonbValueFromContainer(&object->root, JB_FOBJECT, &key);
	if (value == NULL || value->type == jbvNull)
		return NULL;
	if (value->type == jbvString)
		return pnstrdup(value->val.string.val, value->val.string.len);
	if (value->type == jbvNumeric)
		return DatumGetCString(DirectFunctionCall1(numeric_out,
												   NumericGetDatum(value->val.numeric)));
	if (value->type == jbvBool)
		return pstrdup(value->val.boolean ? "true" : "false");
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("parameter \"%s\" must be a string, number or boolean", name)));
	return NULL;				/* keep compiler quiet */
}

static Oid
find_procedure(const char *schema_name, const char *name)
{
	FuncCandidateList candidates;
	Oid			nsp = get_namespace_oid(schema_name, true);

	if (!OidIsValid(nsp))
		return InvalidOid;
	candidates = FuncnameGetCandidates(list_make2(makeString(pstrdup(schema_name)),
												  makeString(pstrdup(name))),
									   -1, NIL, false, false, false, true);
	for (; candidates != NULL; candidates = candidates->next)
	{
		HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(candidates->oid));
		bool		ours;

		ours = HeapTupleIsValid(tuple) &&
			strcmp(get_language_name(((Form_pg_proc) GETSTRUCT(tuple))->prolang, false),
				   "pipeline") == 0;
		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
		if (ours)
			return candidates->oid;
	}
	return InvalidOid;
}

static void
check_unknown_parameters(PlnProcedure *procedure, Jsonb *given)
{
	JsonbIterator *it = JsonbIteratorInit(&given->root);
	JsonbValue	value;
	JsonbIteratorToken token;
	StringInfoData names;
	int			n;

	if (!JB_ROOT_IS_OBJECT(given))
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("parameters must be a JSON object"),
				 errhint("'{\"name\": \"value\"}'")));
	initStringInfo(&names);
	for (n = 0; n < procedure->nargs; n++)
		appendStringInfo(&names, "%s%s", n > 0 ? ", " : "", procedure->arg_names[n]);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		int			i;
		bool		known = false;

		if (token != WJB_KEY)
			continue;
		for (i = 0; i < procedure->nargs; i++)
			known |= strlen(procedure->arg_names[i]) == value.val.string.len &&
				memcmp(procedure->arg_names[i], value.val.string.val,
					   value.val.string.len) == 0;
		if (!known)
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("pipeline \"%s\" has no parameter \"%.*s\"",
							pln_quote_qualified(procedure->schema_name, procedure->name),
							value.val.string.len, value.val.string.val),
					 names.len > 0 ? errhint("Its parameters are %s.", names.data) :
					 errhint("It has none.")));
	}
}

static void
request_for_stored(PlnRequest *request, PlnPipeline *pipeline, const char *parameters)
{
	Oid			oid;
	PlnProcedure *procedure;
	Jsonb	   *given = DatumGetJsonbP(DirectFunctionCall1(jsonb_in,
														   CStringGetDatum(parameters)));
	char	  **values;
	int			i;

	if (pipeline->standalone)
	{
		request->pipeline = pipeline;
		request->owner = pipeline->owner;
		request->cause = "USER_ACTION";
		return;
	}
	oid = find_procedure(pipeline->schema_name, pipeline->name);
	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("procedure of pipeline \"%s\" does not exist any more",
						pln_pipeline_display_name(pipeline))));
	procedure = pln_procedure_load(oid);
	check_unknown_parameters(procedure, given);
	values = pln_procedure_defaults(procedure);
	for (i = 0; i < procedure->nargs; i++)
	{
		char	   *value = json_member(given, procedure->arg_names[i]);

		if (value != NULL)
			values[i] = value;
	}
	pln_request_for_procedure(request, procedure, values);
}

/* EXECUTE on the procedure is the right to run it; a hidden pipeline is its dataset's. */
static void
check_may_run(PlnPipeline *pipeline)
{
	Oid			oid;

	if (has_privs_of_role(GetUserId(), pipeline->owner))
		return;
	oid = pipeline->standalone ? InvalidOid :
		find_procedure(pipeline->schema_name, pipeline->name);
	if (!OidIsValid(oid) || pg_proc_aclcheck(oid, GetUserId(), ACL_EXECUTE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_ALLOWED),
				 errmsg("permission denied for pipeline \"%s\"",
						pln_pipeline_display_name(pipeline))));
}

void
pln_request_by_name(PlnRequest *request, const char *name, const char *parameters)
{
	List	   *parts = textToQualifiedNameList(cstring_to_text(name));
	PlnPipeline *pipeline = NULL;
	char	   *schema_name;
	char	   *object;
	ListCell   *lc;

	DeconstructQualifiedName(parts, &schema_name, &object);
	if (schema_name != NULL)
		pipeline = pln_pipeline_find(schema_name, object);
	else
	{
		foreach(lc, fetch_search_path(false))
		{
			char	   *nsp = get_namespace_name(lfirst_oid(lc));

			if (nsp != NULL && pipeline == NULL)
				pipeline = pln_pipeline_find(nsp, object);
			if (nsp != NULL && schema_name == NULL && OidIsValid(find_procedure(nsp, object)))
				schema_name = nsp;
		}
	}
	if ((pipeline == NULL || pipeline->dropped) && schema_name != NULL &&
		OidIsValid(find_procedure(schema_name, object)))
	{
		/* made while check_function_bodies was off, or restored */
		PlnProcedure *procedure = pln_procedure_load(find_procedure(schema_name, object));

		pipeline = find_or_make(schema_name, object, procedure->owner);
		pipeline->owner = procedure->owner;
		pipeline->dropped = false;
	}
	if (pipeline == NULL || pipeline->dropped)
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("pipeline \"%s\" does not exist", name),
				 errhint("SELECT * FROM pipeline.pipelines;")));
	check_may_run(pipeline);
	request_for_stored(request, pipeline, parameters);
}

void
pln_request_for_dataset(PlnRequest *request, Oid relid)
{
	PlnDataset *dataset = pln_dataset_by_relid(relid);
	PlnPipeline *pipeline = dataset ? pln_pipeline_get(dataset->pipeline_id) : NULL;

	if (pipeline == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("%s is not a dataset of a pipeline", pln_relation_name(relid)),
				 errhint("SELECT dataset FROM pipeline.datasets;")));
	if (!has_privs_of_role(GetUserId(), pipeline->owner) &&
		!pg_class_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER,
					   get_rel_relkind(relid) == RELKIND_MATVIEW ? OBJECT_MATVIEW : OBJECT_TABLE,
					   get_rel_name(relid));
	if (dataset->state != PLN_DATASET_ACTIVE)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("dataset \"%s\" is not active: %s", pln_dataset_display_name(dataset),
						dataset->state_reason ? dataset->state_reason : "suspended"),
				 errhint("Define it again with CREATE OR REFRESH.")));
	request_for_stored(request, pipeline, pipeline->parameters);
	request->datasets = list_make1(pln_dataset_display_name(dataset));
	request->wait = true;		/* REFRESH of one dataset waits (interface §3.7) */
}

void
pln_door_guard(PlnStep step, void *arg, bool nonatomic)
{
	ErrorData  *error;

	if (!nonatomic)
	{
		step(arg);
		return;
	}
	error = pln_attempt(step, arg, PortalContext);
	if (error == NULL)
		return;
	if (pln_update_record_failure())
		pln_spi_commit();
	ReThrowError(error);
}

static void
update_step(void *arg)
{
	pln_update_run((PlnRequest *) arg);
}

void
pln_door_update(PlnRequest *request, bool nonatomic)
{
	if (request->nonatomic)
		pln_update_run(request);
	else
		pln_door_guard(update_step, request, nonatomic);
}

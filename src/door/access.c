/*
 * access.c
 *	  What the current user may see of a pipeline or dataset, and how names are looked up.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/dbcommands.h"
#include "commands/proclang.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "base/errors.h"
#include "base/ident.h"
#include "door/access.h"

#define UUID_TEXT_LENGTH 36

static bool
may_execute(const PlnPipeline *pipeline)
{
	Oid			language = get_language_oid("pipeline", true);
	Oid			nsp = get_namespace_oid(pipeline->schema_name, true);
	CatCList   *candidates;
	bool		result = false;
	int			i;

	if (pipeline->standalone || pipeline->dropped || !OidIsValid(nsp))
		return false;
	candidates = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(pipeline->name));
	for (i = 0; i < candidates->n_members; i++)
	{
		Form_pg_proc form = (Form_pg_proc) GETSTRUCT(&candidates->members[i]->tuple);

		if (form->pronamespace == nsp && form->prolang == language &&
			pg_proc_aclcheck(form->oid, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK)
			result = true;
	}
	ReleaseSysCacheList(candidates);
	return result;
}

PlnAccess
pln_access_of_pipeline(const PlnPipeline *pipeline)
{
	PlnAccess	access;

	access.owner = has_privs_of_role(GetUserId(), pipeline->owner);
	access.stats = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	access.run = may_execute(pipeline);
	access.read = false;
	return access;
}

PlnAccess
pln_access_of_dataset(const PlnDataset *dataset, const PlnPipeline *pipeline)
{
	PlnAccess	access = pln_access_of_pipeline(pipeline);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(dataset->relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return access;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	access.owner |= has_privs_of_role(GetUserId(), owner);
	access.read = pg_class_aclcheck(dataset->relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
	return access;
}

void
pln_access_refuse(const char *what, const char *name)
{
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_ALLOWED),
			 errmsg("permission denied for %s \"%s\"", what, name)));
	pg_unreachable();
}

/* ---- names ---- */

static bool
is_uuid_text(const char *text)
{
	int			i;

	if (strlen(text) != UUID_TEXT_LENGTH)
		return false;
	for (i = 0; i < UUID_TEXT_LENGTH; i++)
	{
		bool		dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !isxdigit((unsigned char) text[i]))
			return false;
	}
	return true;
}

static bool
find_in_schema(const char *schema_name, const char *name, PlnTarget *target)
{
	PlnPipeline *procedure = pln_pipeline_find_kind(schema_name, name, false);

	target->dataset = NULL;
	target->pipeline = procedure;
	if (procedure != NULL && !procedure->dropped)
		return true;
	target->dataset = pln_dataset_find(schema_name, name);
	if (target->dataset != NULL)
		target->pipeline = pln_pipeline_get(target->dataset->pipeline_id);
	else if (procedure == NULL)
		target->pipeline = pln_pipeline_find_kind(schema_name, name, true);
	return target->pipeline != NULL;
}

static bool
find_in_path(const char *name, PlnTarget *target)
{
	List	   *path = fetch_search_path(false);
	bool		found = false;
	ListCell   *lc;

	foreach(lc, path)
	{
		char	   *schema_name = get_namespace_name(lfirst_oid(lc));

		if (schema_name != NULL && find_in_schema(schema_name, name, target))
		{
			found = true;
			break;
		}
	}
	list_free(path);
	return found;
}

PlnTarget
pln_target_find(const char *name)
{
	PlnTarget	target = {NULL, NULL};
	List	   *parts;
	int			n;
	bool		found;

	if (is_uuid_text(name))
	{
		target.pipeline = pln_pipeline_by_uid(name);
		if (target.pipeline != NULL)
			return target;
	}
	parts = textToQualifiedNameList(cstring_to_text(name));
	n = list_length(parts);
	if (n == 3 && strcmp(strVal(linitial(parts)), get_database_name(MyDatabaseId)) != 0)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("cross-database references are not implemented: \"%s\"", name)));
	if (n > 3)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("improper qualified name (too many dotted names): \"%s\"", name)));
	found = n == 1 ? find_in_path(strVal(linitial(parts)), &target) :
		find_in_schema(strVal(list_nth(parts, n - 2)), strVal(llast(parts)), &target);
	if (!found)
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("there is no pipeline or dataset \"%s\"", name),
				 errhint("SELECT pipeline FROM pipeline.pipelines;")));
	return target;
}

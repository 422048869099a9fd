/*
 * api_source.c
 *	  SQL functions about capture: who may have a table captured, and the way to end it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/spi.h"
#include "source/source.h"

PG_FUNCTION_INFO_V1(pipeline_allow_capture);
PG_FUNCTION_INFO_V1(pipeline_disallow_capture);
PG_FUNCTION_INFO_V1(pipeline_disable_capture);

static void
check_owner(Oid relid)
{
	if (get_rel_relkind(relid) == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (!pg_class_ownercheck(relid, GetUserId()))
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_ALLOWED),
				 errmsg("must be owner of \"%s\"", pln_relation_name(relid))));
}

Datum
pipeline_allow_capture(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Oid			role = get_role_oid(NameStr(*PG_GETARG_NAME(1)), false);
	PlnArgs		args;

	check_owner(relid);
	pln_args_init(&args);
	pln_args_oid(&args, relid);
	pln_args_oid(&args, role);
	pln_spi_run_args("INSERT INTO pipeline_internal.capture_grants (source, grantee)"
					 " VALUES ($1, $2) ON CONFLICT DO NOTHING", &args);
	PG_RETURN_VOID();
}

Datum
pipeline_disallow_capture(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Oid			role = get_role_oid(NameStr(*PG_GETARG_NAME(1)), false);
	PlnArgs		args;

	check_owner(relid);
	pln_args_init(&args);
	pln_args_oid(&args, relid);
	pln_args_oid(&args, role);
	if (pln_spi_run_args("DELETE FROM pipeline_internal.capture_grants"
						 " WHERE source = $1 AND grantee = $2", &args)->processed == 0)
		ereport(ERROR,
				(errcode(PLN_ERR_UNKNOWN_OBJECT),
				 errmsg("capture of \"%s\" was not allowed to role \"%s\"",
						pln_relation_name(relid), GetUserNameFromId(role, false))));
	PG_RETURN_VOID();
}

Datum
pipeline_disable_capture(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);

	check_owner(relid);
	pln_source_forget(relid);
	PG_RETURN_VOID();
}

/*
 * secctx.c
 *	  The only place that changes user, security context, search_path and settings.
 *
 * Both switches set SECURITY_RESTRICTED_OPERATION and put settings in place with
 * GUC_ACTION_SAVE under a nest level of their own.  pln_leave() undoes both; an error is
 * undone by the abort of the (sub)transaction that the caller runs in.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/errors.h"
#include "base/secctx.h"

/*
 * Settings that decide what a query returns (interface §3.5).  search_path is pinned apart.
 */
static const char *const pinned_settings[] = {
	"TimeZone",
	"DateStyle",
	"IntervalStyle",
	"extra_float_digits",
	"lc_monetary",
	"lc_numeric",
	"lc_time",
	"bytea_output",
	"xmloption",
	"default_text_search_config",
	"standard_conforming_strings"
};

/* Our own SQL means the same whatever the user's session says. */
static const char *const metadata_settings[][2] = {
	{"search_path", "pg_catalog, pg_temp"},
	{"standard_conforming_strings", "on"},
	{"quote_all_identifiers", "off"},
	{"transform_null_equals", "off"},
	{"array_nulls", "on"}
};

/*
 * The owner of our schemas is the extension's owner; the syscache keeps this cheap and
 * current, also after DROP and CREATE EXTENSION.
 */
Oid
pln_extension_owner(void)
{
	HeapTuple	tuple;
	Oid			owner;

	tuple = SearchSysCache1(NAMESPACENAME, CStringGetDatum("pipeline_internal"));
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("extension \"pipeline\" is not installed in this database"),
				 errhint("CREATE EXTENSION pipeline;")));
	owner = ((Form_pg_namespace) GETSTRUCT(tuple))->nspowner;
	ReleaseSysCache(tuple);
	return owner;
}

static void
set_option(const char *name, const char *value)
{
	const char *current = GetConfigOption(name, true, false);

	if (current != NULL && strcmp(current, value) == 0)
		return;
	(void) set_config_option(name, value, superuser() ? PGC_SUSET : PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

static void
set_options(List *settings)
{
	ListCell   *lc;

	foreach(lc, settings)
	{
		char	   *name = pstrdup((char *) lfirst(lc));
		char	   *equals = strchr(name, '=');

		PLN_ENSURE(equals != NULL);
		*equals = '\0';
		set_option(name, equals + 1);
		pfree(name);
	}
}

static void
switch_user(PlnSecContext *ctx, Oid user)
{
	GetUserIdAndSecContext(&ctx->save_user, &ctx->save_context);
	SetUserIdAndSecContext(user, ctx->save_context | SECURITY_RESTRICTED_OPERATION);
	ctx->guc_nest_level = NewGUCNestLevel();
}

void
pln_enter_metadata(PlnSecContext *ctx)
{
	int			i;

	switch_user(ctx, pln_extension_owner());
	for (i = 0; i < lengthof(metadata_settings); i++)
		set_option(metadata_settings[i][0], metadata_settings[i][1]);
}

void
pln_enter_owner(PlnSecContext *ctx, Oid owner, List *settings)
{
	switch_user(ctx, owner);
	set_options(settings);
}

void
pln_enter_settings(PlnSecContext *ctx, List *settings)
{
	GetUserIdAndSecContext(&ctx->save_user, &ctx->save_context);
	ctx->guc_nest_level = NewGUCNestLevel();
	set_options(settings);
}

void
pln_leave(PlnSecContext *ctx)
{
	AtEOXact_GUC(false, ctx->guc_nest_level);
	SetUserIdAndSecContext(ctx->save_user, ctx->save_context);
}

/*
 * The path that names resolve in: the pipeline's schema, the creator's path, pg_temp last
 * and explicit (correctness C19).  Temporary schemas and those that do not exist are left
 * out: nothing that a caller makes later may change what a name means.
 */
static char *
pinned_path(const char *schema_name)
{
	StringInfoData path;
	List	   *oids = fetch_search_path(false);
	ListCell   *lc;

	initStringInfo(&path);
	if (schema_name != NULL)
		appendStringInfo(&path, "%s, ", quote_identifier(schema_name));
	foreach(lc, oids)
	{
		char	   *name = get_namespace_name(lfirst_oid(lc));

		if (name == NULL || isTempNamespace(lfirst_oid(lc)) ||
			(schema_name != NULL && strcmp(name, schema_name) == 0))
			continue;
		appendStringInfo(&path, "%s, ", quote_identifier(name));
	}
	list_free(oids);
	appendStringInfoString(&path, "pg_temp");
	return path.data;
}

List *
pln_pin_settings(const char *schema_name)
{
	List	   *settings = NIL;
	int			i;

	settings = lappend(settings, psprintf("search_path=%s", pinned_path(schema_name)));
	for (i = 0; i < lengthof(pinned_settings); i++)
	{
		const char *value = GetConfigOption(pinned_settings[i], false, false);

		settings = lappend(settings, psprintf("%s=%s", pinned_settings[i], value));
	}
	return settings;
}

Datum
pln_settings_to_array(List *settings)
{
	Datum	   *values = palloc(sizeof(Datum) * Max(list_length(settings), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, settings)
		values[n++] = CStringGetTextDatum((char *) lfirst(lc));
	return PointerGetDatum(construct_array(values, n, TEXTOID, -1, false, TYPALIGN_INT));
}

List *
pln_settings_from_array(Datum array)
{
	List	   *settings = NIL;
	Datum	   *values;
	int			n;
	int			i;

	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT,
					  &values, NULL, &n);
	for (i = 0; i < n; i++)
		settings = lappend(settings, TextDatumGetCString(values[i]));
	return settings;
}

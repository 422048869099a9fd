/*
 * secctx.h
 *	  The only place that changes user, security context, search_path and settings.
 *
 * Every enter has its leave on the normal path; on error the transaction or
 * subtransaction abort restores user, context and settings by itself.
 */
#ifndef PIPELINE_BASE_SECCTX_H
#define PIPELINE_BASE_SECCTX_H

#include "nodes/pg_list.h"

typedef struct PlnSecContext
{
	Oid			save_user;
	int			save_context;
	int			guc_nest_level;
} PlnSecContext;

/* Owner of the extension (looked up by name each time). */
extern Oid	pln_extension_owner(void);

/* Run metadata statements: extension owner, search_path = pg_catalog, pg_temp. */
extern void pln_enter_metadata(PlnSecContext *ctx);

/*
 * Run user SQL of a dataset: its owner, security-restricted, with the pinned settings:
 * a list of "name=value" strings as pln_pin_settings() returned them.
 */
extern void pln_enter_owner(PlnSecContext *ctx, Oid owner, List *settings);

/* The same user, only with pinned settings (definitions are analysed as the caller). */
extern void pln_enter_settings(PlnSecContext *ctx, List *settings);

extern void pln_leave(PlnSecContext *ctx);

/*
 * Settings that change results (interface §3.5), as "name=value" strings, in the current
 * context.  search_path becomes: schema_name first when not NULL, then the current path,
 * pg_temp last.
 */
extern List *pln_pin_settings(const char *schema_name);

/* text[] in and out of the catalog */
extern Datum pln_settings_to_array(List *settings);
extern List *pln_settings_from_array(Datum array);

#endif							/* PIPELINE_BASE_SECCTX_H */

/*
 * door.h
 *	  Shared by the doors: requests, statements, and recording failures after a rollback.
 */
#ifndef PIPELINE_DOOR_DOOR_H
#define PIPELINE_DOOR_DOOR_H

#include "update/attempt.h"
#include "update/update.h"

typedef struct PlnProcedure
{
	Oid			oid;
	char	   *schema_name;
	char	   *name;
	Oid			owner;
	char	   *source;
	bool		is_procedure;
	bool		security_definer;
	bool		has_settings;
	bool		has_acl;
	bool		has_variadic;
	int			nargs;
	char	  **arg_names;
	Oid		   *arg_types;
} PlnProcedure;

extern PlnProcedure *pln_procedure_load(Oid oid);
extern char **pln_procedure_defaults(PlnProcedure *procedure);

/* Pipeline row, owner and parameters for a run of this procedure with these values. A caller who
 * is not a member of the owning role may not override a value (42501). */
extern void pln_request_for_procedure(PlnRequest *request, PlnProcedure *procedure,
									  char **values);

/* The pipeline of that name, whichever kind, ready to run with its defaults. 42704. */
extern void pln_request_by_name(PlnRequest *request, const char *name, const char *parameters);

/* The pipeline that owns the dataset, with that dataset selected. 42704, 42501. */
extern void pln_request_for_dataset(PlnRequest *request, Oid relid);

/*
 * Run a step; when it fails in a non-atomic context: undo it, record the failure of an update
 * that was in it, commit, raise.
 */
extern void pln_door_guard(PlnStep step, void *arg, bool nonatomic);

/* Run an update; guarded when it is atomic inside a non-atomic context. */
extern void pln_door_update(PlnRequest *request, bool nonatomic);

/* CREATE MATERIALIZED VIEW ... WITH (pipeline...) of PostgreSQL's grammar, analysed. */
extern void pln_door_create_native(RangeVar *name, bool if_not_exists, List *column_names,
								   PlnRefreshPolicy policy, Query *query);

/* One statement of the DO door, executed now (always within the caller's transaction). */
extern void pln_door_statement(PlnScript *script, PlnStmt *stmt);

#endif							/* PIPELINE_DOOR_DOOR_H */

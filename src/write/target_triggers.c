/*
 * target_triggers.c
 *	  The triggers of a target, as far as our writes fire them.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/errors.h"
#include "base/ident.h"
#include "write/target_triggers.h"

/* Recompute what the executor asks of a trigger list about INSERT. */
static void
set_insert_flags(TriggerDesc *desc)
{
	int			i;

	desc->trig_insert_before_row = false;
	desc->trig_insert_after_row = false;
	desc->trig_insert_instead_row = false;
	desc->trig_insert_before_statement = false;
	desc->trig_insert_after_statement = false;
	desc->trig_insert_new_table = false;
	for (i = 0; i < desc->numtriggers; i++)
	{
		int16		type = desc->triggers[i].tgtype;

		desc->trig_insert_before_row |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_ROW, TRIGGER_TYPE_BEFORE, TRIGGER_TYPE_INSERT);
		desc->trig_insert_after_row |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_ROW, TRIGGER_TYPE_AFTER, TRIGGER_TYPE_INSERT);
		desc->trig_insert_instead_row |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_ROW, TRIGGER_TYPE_INSTEAD, TRIGGER_TYPE_INSERT);
		desc->trig_insert_before_statement |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_STATEMENT, TRIGGER_TYPE_BEFORE,
					TRIGGER_TYPE_INSERT);
		desc->trig_insert_after_statement |=
			TRIGGER_TYPE_MATCHES(type, TRIGGER_TYPE_STATEMENT, TRIGGER_TYPE_AFTER,
					TRIGGER_TYPE_INSERT);
		desc->trig_insert_new_table |=
			TRIGGER_FOR_INSERT(type) && desc->triggers[i].tgnewtable != NULL;
	}
}

TriggerDesc *
pln_target_triggers(TriggerDesc *desc)
{
	Oid			ours = get_namespace_oid("pipeline_internal", false);
	int			kept = 0;
	int			i;

	if (desc == NULL)
		return NULL;
	for (i = 0; i < desc->numtriggers; i++)
	{
		if (get_func_namespace(desc->triggers[i].tgfoid) != ours)
			desc->triggers[kept++] = desc->triggers[i];
	}
	desc->numtriggers = kept;
	if (kept == 0)
		return NULL;
	set_insert_flags(desc);
	return desc;
}

static char
constraint_type(Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	char		result;

	if (!HeapTupleIsValid(tuple))
		return CONSTRAINT_TRIGGER;
	result = ((Form_pg_constraint) GETSTRUCT(tuple))->contype;
	ReleaseSysCache(tuple);
	return result;
}

/* What the owner can type. */
static char *
deferred_way_out(char *table, Trigger *trigger, const char *name)
{
	switch (constraint_type(trigger->tgconstraint))
	{
		case CONSTRAINT_FOREIGN:
			return psprintf("ALTER TABLE %s ALTER CONSTRAINT %s NOT DEFERRABLE;", table, name);
		case CONSTRAINT_TRIGGER:
			return psprintf("DROP TRIGGER %s ON %s;  then create it INITIALLY IMMEDIATE.",
							quote_identifier(trigger->tgname), table);
		default:
			return psprintf("ALTER TABLE %s DROP CONSTRAINT %s;  then add it INITIALLY "
							"IMMEDIATE.", table, name);
	}
}

void
pln_target_refuse_deferred(Relation rel, TriggerDesc *desc)
{
	int			i;

	for (i = 0; desc != NULL && i < desc->numtriggers; i++)
	{
		Trigger    *trigger = &desc->triggers[i];
		char	   *table;
		char	   *name;

		if (!trigger->tginitdeferred || trigger->tgenabled == TRIGGER_DISABLED ||
			!TRIGGER_FOR_INSERT(trigger->tgtype))
			continue;
		table = pln_relation_name(RelationGetRelid(rel));
		name = get_constraint_name(trigger->tgconstraint);
		if (name == NULL)
			name = trigger->tgname;
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("constraint \"%s\" of table \"%s\" is checked at the commit only",
						name, table),
				 errdetail("Updates write with the rights of the owner, restricted; deferred "
						   "checks cannot run there."),
				 errhint("%s", deferred_way_out(table, trigger, quote_identifier(name)))));
	}
}

/*
 * ensure.c
 *	  Starting capture on a relation, and registering relations of our own.
 *
 * Rights are checked for the given role before anything is made as the extension's owner.
 * Whatever a running writer may have cached (level, generation) changes only under SHARE ROW
 * EXCLUSIVE on R and all that inherit from it: so no transaction ever logs with the old
 * settings after a reader has relied on the new ones.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_subscription_rel.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/sinvaladt.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"

#include "base/errors.h"
#include "base/guc.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "base/spi.h"
#include "catalog/datasets.h"
#include "source/internal.h"

#define LOCK_TRIES 5

/* Pause between two tries, so that the writers that queued behind us get through. */
#define LOCK_PAUSE_US 100000L

typedef struct TriggerShape
{
	const char *name;
	const char *event;			/* SQL */
	const char *function;
} TriggerShape;

static const TriggerShape capture_triggers[] = {
	{PLN_TRIGGER_INSERT, "AFTER INSERT", "capture_insert"},
	{PLN_TRIGGER_UPDATE, "AFTER UPDATE", "capture_update"},
	{PLN_TRIGGER_DELETE, "AFTER DELETE", "capture_delete"},
	{PLN_TRIGGER_TRUNCATE, "AFTER TRUNCATE", "capture_truncate"}
};

static const char *const transition_tables[] = {
	"REFERENCING NEW TABLE AS pln_new",
	"REFERENCING OLD TABLE AS pln_old NEW TABLE AS pln_new",
	"REFERENCING OLD TABLE AS pln_old",
	""
};

static const TriggerShape guard_trigger = {
	PLN_TRIGGER_GUARD, "BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE", "guard_dml"
};

static PlnReason *
refuse(const char *code, char *text)
{
	PlnReason  *reason = palloc0(sizeof(PlnReason));

	reason->code = code;
	reason->text = text;
	return reason;
}

/* ---- what can be captured ---- */

static bool
has_subscription(Oid relid)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_oid(&args, relid);
	return pln_spi_run_args("SELECT 1 FROM pg_catalog.pg_subscription_rel WHERE srrelid = $1",
							&args)->n > 0;
}

/*
 * Our own relations: capturing them would write to them while they are written.  A private
 * dataset lives beside the logs and is an ordinary source.
 */
static bool
is_internal(Oid relid)
{
	Oid			nsp = get_rel_namespace(relid);

	return nsp == get_namespace_oid("pipeline_internal", true) ||
		nsp == get_namespace_oid("pipeline", true) ||
		(nsp == get_namespace_oid("pipeline_data", true) && pln_dataset_by_relid(relid) == NULL);
}

/* One relation of the tree; root = R itself. */
static PlnReason *
heap_problem(Oid relid, bool root)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);
	const char *name = pln_relation_name(relid);
	PlnReason  *problem = NULL;
	char		kind;

	if (rel == NULL)
		return refuse("INPUT_NOT_IN_DELTA", pstrdup("the relation does not exist"));
	kind = rel->rd_rel->relkind;
	if (root && kind == RELKIND_VIEW)
		problem = refuse("INPUT_NOT_IN_DELTA", psprintf("\"%s\" is a view", name));
	else if (root && kind == RELKIND_MATVIEW)
		problem = refuse("INPUT_NOT_IN_DELTA",
						 psprintf("\"%s\" is a materialized view", name));
	else if (kind == RELKIND_FOREIGN_TABLE)
		problem = refuse("INPUT_NOT_IN_DELTA", psprintf("\"%s\" is a foreign table", name));
	else if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE)
		problem = refuse("INPUT_NOT_IN_DELTA", psprintf("\"%s\" is not a table", name));
	else if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		problem = refuse("INPUT_NOT_IN_DELTA", psprintf("\"%s\" is a temporary table", name));
	else if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		problem = refuse("INPUT_NOT_IN_DELTA",
						 psprintf("\"%s\" is unlogged: a crash empties it unnoticed", name));
	else if (kind == RELKIND_RELATION && rel->rd_rel->relam != HEAP_TABLE_AM_OID)
		problem = refuse("INPUT_NOT_IN_DELTA",
						 psprintf("\"%s\" is not stored as a heap", name));
	else if (relid < FirstNormalObjectId)
		problem = refuse("INPUT_NOT_IN_DELTA", psprintf("\"%s\" is a system catalog", name));
	else if (is_internal(relid))
		problem = refuse("INPUT_NOT_IN_DELTA",
						 psprintf("\"%s\" is a part of the extension", name));
	relation_close(rel, NoLock);
	if (problem == NULL && has_subscription(relid))
		problem = refuse("INPUT_NOT_IN_DELTA",
						 psprintf("\"%s\" is fed by a subscription, whose writes fire no "
								  "statement triggers", name));
	return problem;
}

static PlnReason *
relation_problem(Oid relid)
{
	PlnReason  *problem = NULL;
	ListCell   *lc;

	if (pln_source_is_child(relid))
		return refuse("INPUT_NOT_IN_DELTA",
					  psprintf("\"%s\" is a partition or child table: writes through its parent "
							   "cannot be told apart; read the parent", pln_relation_name(relid)));
	foreach(lc, pln_source_relations(relid))
	{
		problem = heap_problem(lfirst_oid(lc), lfirst_oid(lc) == relid);
		if (problem != NULL)
			break;
	}
	return problem;
}

PlnReason *
pln_source_streamable(Oid relid)
{
	if (get_rel_relkind(relid) == RELKIND_MATVIEW)
		return refuse("INPUT_NOT_IN_DELTA",
					  psprintf("\"%s\" is a materialized view: its rows are updated by each "
							   "refresh", pln_relation_name(relid)));
	return relation_problem(relid);
}

/* correctness A9 */
static bool
may_capture(Oid relid, Oid role)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	Oid			owner = rel->rd_rel->relowner;
	PlnArgs		args;
	PlnRows    *rows;
	uint64		i;

	relation_close(rel, NoLock);
	if (has_privs_of_role(role, owner) ||
		pg_class_aclcheck(relid, role, ACL_TRIGGER) == ACLCHECK_OK)
		return true;
	pln_args_init(&args);
	pln_args_oid(&args, relid);
	rows = pln_spi_run_args("SELECT grantee::pg_catalog.oid AS grantee"
							" FROM pipeline_internal.capture_grants WHERE source = $1", &args);
	for (i = 0; i < rows->n; i++)
	{
		Oid			grantee = pln_row_oid(rows, i, "grantee");

		if (GetUserNameFromId(grantee, true) != NULL && has_privs_of_role(role, grantee))
			return true;
	}
	return false;
}

/* Row types in our tables would make core refuse the user's ALTER TABLE (correctness B17). */
static bool
is_row_type(Oid type)
{
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);

	if (OidIsValid(element))
		return is_row_type(element);
	if (get_typtype(base) == TYPTYPE_RANGE)
		return is_row_type(get_range_subtype(base));
	if (get_typtype(base) == TYPTYPE_MULTIRANGE)
		return is_row_type(get_multirange_range(base));
	return type_is_rowtype(base);
}

/* Attributes to log: what is asked for; all columns for NULL or a whole-row reference. */
PlnReason *
pln_capture_choose_attributes(Oid relid, Bitmapset *asked, Bitmapset **chosen)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(rel);
	bool		all = asked == NULL || bms_is_member(0, asked);
	PlnReason  *problem = NULL;
	int			i;

	*chosen = NULL;
	for (i = 1; i <= desc->natts && problem == NULL; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i - 1);

		if (att->attisdropped || !(all || bms_is_member(i, asked)))
			continue;
		if (!is_row_type(att->atttypid))
			*chosen = bms_add_member(*chosen, i);
		else
			problem = refuse("INPUT_NOT_IN_DELTA",
							 psprintf("column \"%s\" of \"%s\" is of a row type",
									  NameStr(att->attname), pln_relation_name(relid)));
	}
	relation_close(rel, NoLock);
	return problem;
}

/* ---- locks ---- */

/* Whom we wait for, for the message: process ids in a list. */
static char *
describe_blockers(Oid relid)
{
	LOCKTAG		tag;
	VirtualTransactionId *holders;
	StringInfoData text;
	int			n;
	int			i;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	holders = GetLockConflicts(&tag, ShareRowExclusiveLock, &n);
	initStringInfo(&text);
	for (i = 0; i < n; i++)
	{
		PGPROC	   *proc = holders[i].backendId == InvalidBackendId ? NULL :
			BackendIdGetProc(holders[i].backendId);

		if (text.len > 0)
			appendStringInfoString(&text, ", ");
		if (proc != NULL)
			appendStringInfo(&text, "%d", proc->pid);
		else
			appendStringInfoString(&text, "a prepared transaction");
	}
	return text.len > 0 ? text.data : pstrdup("none any more");
}

/* One try under lock_timeout, in a subtransaction of its own; the lock outlives it. */
static bool
try_lock(Oid relid)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool locked = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		PlnSecContext ctx;

		pln_enter_settings(&ctx, list_make1(psprintf("lock_timeout=%d",
													 pln_guc_source_lock_timeout)));
		LockRelationOid(relid, ShareRowExclusiveLock);
		pln_leave(&ctx);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		locked = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			ReThrowError(error);
		FreeErrorData(error);
	}
	PG_END_TRY();
	return locked;
}

static void
lock_relation(Oid relid)
{
	int			i;

	for (i = 0; i < LOCK_TRIES; i++)
	{
		if (i > 0)
			pg_usleep(LOCK_PAUSE_US);
		CHECK_FOR_INTERRUPTS();
		if (ConditionalLockRelationOid(relid, ShareRowExclusiveLock) || try_lock(relid))
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not lock \"%s\" to start capturing its changes",
					pln_relation_name(relid)),
			 errdetail("Processes that hold locks on it: %s.", describe_blockers(relid)),
			 errhint("Run the update again when they have ended, or raise it:  "
					 "SET pipeline.source_lock_timeout = '30s';")));
}

/* R and all that inherit from it, in the order that DDL uses. */
static List *
lock_tree(Oid relid)
{
	List	   *relids;
	ListCell   *lc;

	lock_relation(relid);
	relids = pln_source_relations(relid);
	foreach(lc, relids)
	{
		if (lfirst_oid(lc) != relid)
			lock_relation(lfirst_oid(lc));
	}
	return relids;
}

/* ---- triggers ---- */

typedef enum TriggerState
{
	TRIGGER_MISSING,
	TRIGGER_OFF,				/* not ENABLE ALWAYS */
	TRIGGER_GOOD
} TriggerState;

static TriggerState
trigger_state(Oid relid, const TriggerShape *shape)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	TriggerState state = TRIGGER_MISSING;
	int			i;

	for (i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if (strcmp(trigger->tgname, shape->name) != 0)
			continue;
		if (!pln_is_own_trigger(trigger->tgfoid))
			ereport(ERROR,
					(errcode(PLN_ERR_DUPLICATE),
					 errmsg("table \"%s\" has a trigger \"%s\" that is not of this extension",
							pln_relation_name(relid), shape->name),
					 errhint("ALTER TRIGGER %s ON %s RENAME TO ...;", shape->name,
							 pln_relation_name(relid))));
		state = trigger->tgenabled == TRIGGER_FIRES_ALWAYS ? TRIGGER_GOOD : TRIGGER_OFF;
	}
	relation_close(rel, NoLock);
	return state;
}

static bool
triggers_good(Oid relid)
{
	ListCell   *lc;
	int			i;

	foreach(lc, pln_source_relations(relid))
	{
		for (i = 0; i < lengthof(capture_triggers); i++)
		{
			if (trigger_state(lfirst_oid(lc), &capture_triggers[i]) != TRIGGER_GOOD)
				return false;
		}
	}
	return true;
}

bool
pln_capture_has_triggers(Oid relid)
{
	int			i;

	for (i = 0; i < lengthof(capture_triggers); i++)
	{
		if (trigger_state(relid, &capture_triggers[i]) != TRIGGER_MISSING)
			return true;
	}
	return false;
}

static void
make_trigger(Oid relid, const TriggerShape *shape, const char *transition)
{
	TriggerState state = trigger_state(relid, shape);
	char	   *name = pln_relation_name(relid);

	if (state == TRIGGER_MISSING)
		pln_spi_run_once(psprintf("CREATE TRIGGER %s %s ON %s %s FOR EACH STATEMENT"
								  " EXECUTE FUNCTION pipeline_internal.%s()",
								  shape->name, shape->event, name, transition, shape->function),
						 0, NULL, NULL, NULL);
	if (state != TRIGGER_GOOD)
		pln_spi_run_once(psprintf("ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %s",
								  name, shape->name), 0, NULL, NULL, NULL);
}

void
pln_capture_make_triggers(List *relids)
{
	ListCell   *lc;
	int			i;

	foreach(lc, relids)
	{
		for (i = 0; i < lengthof(capture_triggers); i++)
			make_trigger(lfirst_oid(lc), &capture_triggers[i], transition_tables[i]);
	}
}

/* ---- our rows ---- */

static int64
insert_source(Oid relid, const char *kind, PlnCaptureLevel level)
{
	PlnArgs		args;
	PlnRows    *rows;

	pln_args_init(&args);
	pln_args_oid(&args, relid);
	pln_args_text(&args, kind);
	pln_args_text(&args, pln_source_level_name(level));
	rows = pln_spi_run_args("INSERT INTO pipeline_internal.sources (relid, kind, level)"
							" VALUES ($1, $2, $3) RETURNING id", &args);
	return pln_row_int8(rows, 0, "id");
}

static void
update_source(int64 id, PlnCaptureLevel level, int32 generation)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, id);
	pln_args_text(&args, pln_source_level_name(level));
	pln_args_int4(&args, generation);
	pln_spi_run_args("UPDATE pipeline_internal.sources"
					 " SET level = $2, generation = $3, active = true WHERE id = $1", &args);
}

/* Writers of all backends look again: they hold no lock now, or the caller holds SHARE ROW
 * EXCLUSIVE, or an old answer does no harm. */
void
pln_source_invalidate(Oid relid)
{
	ListCell   *lc;

	foreach(lc, pln_source_relations(relid))
		CacheInvalidateRelcacheByRelid(lfirst_oid(lc));
}

/* The attributes of the current generation, NULL when it cannot be written any more. */
static Bitmapset *
logged_attributes(const PlnSource *source)
{
	PlnLog	   *log = pln_source_log(source, source->generation);
	Bitmapset  *attnums = NULL;
	Relation	rel;
	Relation	log_rel;
	const char *problem;
	int			i;

	if (log == NULL)
		return NULL;
	rel = relation_open(source->relid, AccessShareLock);
	log_rel = pln_log_open(log->relid, AccessShareLock, RelationGetDescr(rel), log->ncols,
						   log->attnums, &problem);
	relation_close(rel, NoLock);
	if (log_rel == NULL)
		return NULL;
	relation_close(log_rel, NoLock);
	for (i = 0; i < log->ncols; i++)
		attnums = bms_add_member(attnums, log->attnums[i]);
	return attnums;
}

static bool
log_suffices(const PlnSource *source, Bitmapset *needed, Bitmapset *logged)
{
	if (source->level <= PLN_CAPTURE_MARK || needed == NULL)
		return true;			/* who needs rows will say so */
	return source->generation > 0 && bms_is_subset(needed, logged);
}

int32
pln_log_next_generation(int64 source_id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, source_id);
	return (int32) pln_row_int8(
		pln_spi_run_args("SELECT pg_catalog.max(generation) AS n"
						 " FROM pipeline_internal.source_logs WHERE source_id = $1", &args),
		0, "n") + 1;
}

PlnReason *
pln_capture_ensure(Oid relid, PlnCaptureLevel level, Bitmapset *attnums, Oid role,
				   bool *created)
{
	PlnSource  *source;
	Bitmapset  *needed = NULL;
	Bitmapset  *logged = NULL;
	PlnReason  *problem;
	List	   *relids;
	bool		own;

	*created = false;
	source = pln_source_find(relid);
	if (source != NULL && source->kind == PLN_SOURCE_OWN_MATVIEW)
		return NULL;			/* our writer records what it does */
	own = source != NULL && source->kind == PLN_SOURCE_OWN_TABLE;
	problem = relation_problem(relid);
	if (own && problem == NULL)
	{
		/* Changes by hand are rare: log them whole, or only that they happened. */
		level = pln_capture_choose_attributes(relid, NULL, &needed) == NULL ? PLN_CAPTURE_SIGNED :
			PLN_CAPTURE_MARK;
	}
	else if (problem == NULL && level > PLN_CAPTURE_MARK)
		problem = pln_capture_choose_attributes(relid, attnums, &needed);
	if (problem != NULL)
		return problem;

	if (source != NULL)
	{
		level = Max(level, source->level);
		logged = logged_attributes(source);
		if (source->active && source->level == level && log_suffices(source, needed, logged) &&
			triggers_good(relid))
			return NULL;
	}
	if (!own && !may_capture(relid, role))
		return refuse("CAPTURE_NOT_ALLOWED",
					  psprintf("role \"%s\" may not capture changes of \"%s\"; its owner can "
							   "allow it:  SELECT pipeline.allow_capture(%s, %s);",
							   GetUserNameFromId(role, false), pln_relation_name(relid),
							   pln_quote_literal(pln_relation_name(relid)),
							   pln_quote_literal(GetUserNameFromId(role, false))));

	relids = lock_tree(relid);
	source = pln_source_find(relid);	/* somebody else may have been faster */
	if (source == NULL)
	{
		(void) insert_source(relid, "captured", level);
		source = pln_source_find(relid);
	}
	level = Max(level, source->level);
	logged = logged_attributes(source);
	source->level = level;
	if (!log_suffices(source, needed, logged))
	{
		source->generation = pln_log_next_generation(source->id);
		pln_log_create(source->id, source->generation, relid, bms_union(needed, logged));
	}
	update_source(source->id, level, source->generation);
	pln_capture_make_triggers(relids);
	pln_source_invalidate(relid);
	CommandCounterIncrement();
	*created = true;
	if (!own)
		ereport(NOTICE,
				(errmsg("changes of \"%s\" are captured from now on", pln_relation_name(relid))));
	return NULL;
}

void
pln_source_register_own(Oid relid, bool is_streaming_table)
{
	ListCell   *lc;

	if (pln_source_find(relid) == NULL)
	{
		(void) insert_source(relid, is_streaming_table ? "own_table" : "own_matview",
							 PLN_CAPTURE_MARK);
		pln_source_invalidate(relid);
	}
	if (!is_streaming_table)
		return;
	foreach(lc, pln_source_relations(relid))
		make_trigger(lfirst_oid(lc), &guard_trigger, "");
}

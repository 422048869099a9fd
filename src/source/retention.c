/*
 * retention.c
 *	  Trimming logs, and dropping what belongs to a source.
 *
 * A header may go when every stored frontier covers it and its transaction is older than any
 * snapshot in use: a reader in its first fill has no stored frontier yet, but holds the
 * snapshot that it will store.  Rows of logs are never deleted: a log that has grown is
 * replaced by a new generation and dropped when none of its headers is left and no writer
 * holds it (correctness B7).  So logs need no replica identity.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "nodes/bitmapset.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/ident.h"
#include "base/spi.h"
#include "source/internal.h"

/* A log of this many blocks is followed by a new generation at the next trim. */
#define ROTATE_BLOCKS (8 * 1024 * 1024 / BLCKSZ)

static const char *const all_triggers[] = {
	PLN_TRIGGER_INSERT, PLN_TRIGGER_UPDATE, PLN_TRIGGER_DELETE, PLN_TRIGGER_TRUNCATE
};

/* The oldest xid that some snapshot may still see as running, widened. */
static uint64
horizon(void)
{
	Oid			headers = pln_source_catalog("log_headers");
	Relation	rel = table_open(headers, AccessShareLock);
	TransactionId xid = GetOldestNonRemovableTransactionId(rel);
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	table_close(rel, NoLock);
	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return ((uint64) epoch << 32) | xid;
}

static void
delete_headers(const PlnSource *source)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, source->id);
	pln_args_oid(&args, source->relid);
	pln_args_int4(&args, pln_incarnation());
	pln_args_xid8(&args, horizon());
	pln_spi_run_args(
		"DELETE FROM pipeline_internal.log_headers AS h WHERE ctid = ANY (ARRAY("
		" SELECT h.ctid FROM pipeline_internal.log_headers AS h"
		" WHERE h.source_id = $1"
		" AND (h.incarnation < $3 OR (h.incarnation = $3 AND h.xid < $4))"
		" AND NOT EXISTS (SELECT 1 FROM pipeline_internal.checkpoints AS c"
		" WHERE c.relid = $2 AND NOT (h.incarnation < c.incarnation"
		" OR (h.incarnation = c.incarnation AND CASE WHEN h.xid = c.own_xid"
		" THEN h.seq <= c.own_seq"
		" ELSE pg_catalog.pg_visible_in_snapshot(h.xid, c.snap) END)))"
		" FOR UPDATE OF h SKIP LOCKED))", &args);
}

/* Has the generation headers, committed or by us? */
static bool
has_headers(int64 source_id, int32 generation)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, source_id);
	pln_args_int4(&args, generation);
	return pln_spi_run_args("SELECT 1 FROM pipeline_internal.log_headers"
							" WHERE source_id = $1 AND generation = $2 LIMIT 1", &args)->n > 0;
}

static void
forget_log(int64 source_id, int32 generation)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, source_id);
	pln_args_int4(&args, generation);
	pln_spi_run_args("DELETE FROM pipeline_internal.source_logs"
					 " WHERE source_id = $1 AND generation = $2", &args);
}

static void
drop_table(Oid relid)
{
	if (get_rel_relkind(relid) == RELKIND_RELATION)
		pln_spi_run_once(psprintf("DROP TABLE %s", pln_relation_name(relid)),
						 0, NULL, NULL, NULL);
}

static void
drop_drained(const PlnSource *source)
{
	ListCell   *lc;

	foreach(lc, pln_source_logs(source))
	{
		PlnLog	   *log = lfirst(lc);

		if (log->generation == source->generation ||
			has_headers(source->id, log->generation))
			continue;

		/* Whoever still writes into it holds a lock until his header is visible or gone. */
		if (get_rel_relkind(log->relid) == RELKIND_RELATION)
		{
			if (!ConditionalLockRelationOid(log->relid, AccessExclusiveLock))
				continue;
			if (has_headers(source->id, log->generation))
			{
				UnlockRelationOid(log->relid, AccessExclusiveLock);
				continue;
			}
			drop_table(log->relid);
		}
		forget_log(source->id, log->generation);
	}
}

/* Same columns, new file: writers may go on in the old one until they notice. */
static void
rotate(PlnSource *source)
{
	PlnLog	   *log = pln_source_log(source, source->generation);
	Relation	rel;
	BlockNumber blocks;
	Bitmapset  *attnums = NULL;
	PlnArgs		args;
	int			i;

	if (log == NULL)
		return;
	rel = try_relation_open(log->relid, AccessShareLock);
	if (rel == NULL)
		return;
	blocks = rel->rd_rel->relkind == RELKIND_RELATION ? RelationGetNumberOfBlocks(rel) : 0;
	relation_close(rel, AccessShareLock);
	if (blocks < ROTATE_BLOCKS)
		return;
	for (i = 0; i < log->ncols; i++)
	{
		if (log->attnums[i] <= 0)
			return;				/* unusable: the next pln_capture_ensure() makes a new one */
		attnums = bms_add_member(attnums, log->attnums[i]);
	}
	source->generation++;
	pln_log_create(source->id, source->generation, source->relid, attnums);
	pln_args_init(&args);
	pln_args_int8(&args, source->id);
	pln_args_int4(&args, source->generation);
	pln_spi_run_args("UPDATE pipeline_internal.sources SET generation = $2 WHERE id = $1", &args);
	pln_source_invalidate(source->relid);
}

/* Names follow renames and attribute numbers follow a restore. */
static void
refresh_columns(const PlnSource *source)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, source->id);
	pln_args_oid(&args, source->relid);
	pln_args_int4(&args, pln_incarnation());
	pln_spi_run_args(
		"UPDATE pipeline_internal.source_logs AS l SET columns = n.columns FROM ("
		" SELECT s.generation, pg_catalog.array_agg(a.attname ORDER BY u.place) AS columns"
		" FROM pipeline_internal.source_logs AS s,"
		" pg_catalog.unnest(s.attnums) WITH ORDINALITY AS u(attnum, place),"
		" pg_catalog.pg_attribute AS a"
		" WHERE s.source_id = $1 AND s.incarnation = $3"
		" AND a.attrelid = $2 AND a.attnum = u.attnum GROUP BY s.generation) AS n"
		" WHERE l.source_id = $1 AND l.generation = n.generation AND l.columns <> n.columns",
		&args);
	pln_spi_run_args(
		"UPDATE pipeline_internal.source_logs AS l SET attnums = n.attnums, incarnation = $3"
		" FROM (SELECT s.generation, pg_catalog.array_agg(a.attnum ORDER BY u.place) AS attnums"
		" FROM pipeline_internal.source_logs AS s,"
		" pg_catalog.unnest(s.columns) WITH ORDINALITY AS u(name, place),"
		" pg_catalog.pg_attribute AS a"
		" WHERE s.source_id = $1 AND s.incarnation <> $3"
		" AND a.attrelid = $2 AND a.attname = u.name AND NOT a.attisdropped"
		" GROUP BY s.generation) AS n"
		" WHERE l.source_id = $1 AND l.generation = n.generation"
		" AND pg_catalog.cardinality(n.attnums) = pg_catalog.cardinality(l.columns)",
		&args);
}

/*
 * Two trims of one source at once would both rotate: the second one leaves it to the first.
 * The lock is on the row of our catalog, and nobody waits for it.
 */
static bool
claim(int64 source_id)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, source_id);
	return pln_spi_run_args("SELECT 1 FROM pipeline_internal.sources WHERE id = $1"
							" FOR UPDATE SKIP LOCKED", &args)->n > 0;
}

void
pln_source_trim(Oid relid)
{
	PlnSource  *source = pln_source_find(relid);

	if (source == NULL || !claim(source->id))
		return;
	source = pln_source_find(relid);
	if (source == NULL)
		return;
	delete_headers(source);
	refresh_columns(source);
	rotate(source);
	drop_drained(source);
	if (!source->active)
		pln_capture_drop_triggers(relid);
}

/* DROP TRIGGER takes ACCESS EXCLUSIVE: only where that is free at once. */
void
pln_capture_drop_triggers(Oid relid)
{
	ListCell   *lc;
	int			i;

	foreach(lc, pln_source_relations(relid))
	{
		Oid			table = lfirst_oid(lc);
		Relation	rel;
		bool		ours[lengthof(all_triggers)];
		bool		in_use;
		int			t;

		if (!ConditionalLockRelationOid(table, AccessExclusiveLock))
			continue;
		rel = try_relation_open(table, NoLock);
		if (rel == NULL)
			continue;
		memset(ours, 0, sizeof(ours));
		for (t = 0; rel->trigdesc != NULL && t < rel->trigdesc->numtriggers; t++)
		{
			Trigger    *trigger = &rel->trigdesc->triggers[t];

			for (i = 0; i < lengthof(all_triggers); i++)
				ours[i] = ours[i] || (strcmp(trigger->tgname, all_triggers[i]) == 0 &&
									  pln_is_own_trigger(trigger->tgfoid));
		}
		in_use = rel->rd_refcnt > (rel->rd_isnailed ? 2 : 1);
		relation_close(rel, NoLock);
		for (i = 0; i < lengthof(all_triggers) && !in_use; i++)
		{
			if (ours[i])
				pln_spi_run_once(psprintf("DROP TRIGGER %s ON %s", all_triggers[i],
										  pln_relation_name(table)), 0, NULL, NULL, NULL);
		}
	}
}

/*
 * Drops logs and headers; triggers too when R is still there.  Without the lock for that they
 * stay, switched off by the missing row, until the table is captured again or dropped.
 */
void
pln_source_forget(Oid relid)
{
	PlnSource  *source = pln_source_find(relid);
	List	   *logs;
	ListCell   *lc;
	PlnArgs		args;

	if (source == NULL)
		return;
	logs = pln_source_logs(source);
	pln_args_init(&args);
	pln_args_int8(&args, source->id);
	pln_spi_run_args("DELETE FROM pipeline_internal.log_headers WHERE source_id = $1", &args);
	pln_spi_run_args("DELETE FROM pipeline_internal.source_logs WHERE source_id = $1", &args);
	pln_spi_run_args("DELETE FROM pipeline_internal.sources WHERE id = $1", &args);
	pln_args_init(&args);
	pln_args_oid(&args, relid);
	pln_spi_run_args("DELETE FROM pipeline_internal.capture_grants AS g WHERE g.source = $1"
					 " AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class AS c"
					 " WHERE c.oid = g.source)", &args);
	foreach(lc, logs)
		drop_table(((PlnLog *) lfirst(lc))->relid);
	if (get_rel_relkind(relid) == '\0')
		return;
	pln_source_invalidate(relid);
	pln_capture_drop_triggers(relid);
}

void
pln_source_forget_if_unread(Oid relid)
{
	PlnSource  *source = pln_source_find(relid);
	PlnArgs		args;

	if (source == NULL || source->kind == PLN_SOURCE_OWN_MATVIEW)
		return;
	pln_args_init(&args);
	pln_args_oid(&args, relid);
	if (pln_spi_run_args("SELECT 1 FROM pipeline_internal.checkpoints WHERE relid = $1 LIMIT 1",
						 &args)->n > 0)
		return;
	if (source->kind == PLN_SOURCE_CAPTURED)
		pln_source_forget(relid);
	else
		pln_source_trim(relid);
}

void
pln_source_record_everything(Oid relid, const char *reason_code)
{
	PlnSource  *source = pln_source_find(relid);
	PlnHeader	header;

	if (source == NULL)
		return;
	pln_header_init(&header, source->id, PLN_HEADER_EVERYTHING);
	header.note = psprintf("its content was replaced (%s)", reason_code);
	pln_header_write(&header);
}

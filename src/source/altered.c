/*
 * altered.c
 *	  DDL on a captured table, in the transaction of the DDL.
 *
 * Called from the event trigger at ddl_command_end.  Readers do not rely on it: the
 * fingerprint and the shape of the logs tell when it was missed.  It spares them a loss:
 *
 *	- a column was added: a log of all columns gets a generation with the new one before
 *	  anybody can write it;
 *	- a partition or child table was created: it gets its triggers while it is empty, and a
 *	  SPARE header says that the new fingerprint stands for no missed change.  An attached
 *	  table gets triggers only: its rows came by no statement that was captured.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "nodes/bitmapset.h"
#include "utils/lsyscache.h"

#include "base/spi.h"
#include "source/internal.h"

/* All columns were logged, and now there are more behind them. */
static bool
log_needs_columns(const PlnSource *source, Bitmapset **attnums)
{
	PlnLog	   *log = pln_source_log(source, source->generation);
	Bitmapset  *logged = NULL;
	Bitmapset  *missing;
	AttrNumber	last = 0;
	int			i;

	if (log == NULL || pln_capture_choose_attributes(source->relid, NULL, attnums) != NULL)
		return false;
	for (i = 0; i < log->ncols; i++)
	{
		if (log->attnums[i] <= 0)
			return false;		/* unusable */
		logged = bms_add_member(logged, log->attnums[i]);
		last = Max(last, log->attnums[i]);
	}
	missing = bms_difference(*attnums, logged);
	return !bms_is_empty(missing) && bms_next_member(missing, -1) > last;
}

static void
widen_log(PlnSource *source, Bitmapset *attnums)
{
	PlnArgs		args;

	source->generation = pln_log_next_generation(source->id);
	pln_log_create(source->id, source->generation, source->relid, attnums);
	pln_args_init(&args);
	pln_args_int8(&args, source->id);
	pln_args_int4(&args, source->generation);
	pln_spi_run_args("UPDATE pipeline_internal.sources SET generation = $2 WHERE id = $1", &args);
	pln_source_invalidate(source->relid);
}

static void
adopt_child(const PlnSource *source, Oid relid, bool created)
{
	char	   *before = pln_fingerprint_make(source, relid);
	PlnHeader	header;

	pln_capture_make_triggers(list_make1_oid(relid));
	CommandCounterIncrement();
	if (!created)
		return;
	pln_header_init(&header, source->id, PLN_HEADER_SPARE);
	header.note = pln_fingerprint_spare(before, pln_fingerprint_make(source, InvalidOid));
	pln_header_write(&header);
}

void
pln_source_relation_altered(Oid relid, bool created)
{
	PlnSource  *source;
	Bitmapset  *attnums = NULL;
	ListCell   *lc;

	/* DDL of a restore settles nothing: the first update compares the fingerprints */
	if (pln_source_is_restored())
		return;
	source = pln_source_owning(relid);
	if (source == NULL || !source->active || source->kind == PLN_SOURCE_OWN_MATVIEW)
		return;
	if (log_needs_columns(source, &attnums))
		widen_log(source, attnums);

	/* A streaming table without a reader has no triggers yet. */
	if (!pln_capture_has_triggers(source->relid))
		return;
	foreach(lc, pln_source_relations(source->relid))
	{
		Oid			child = lfirst_oid(lc);
		char		kind = get_rel_relkind(child);

		if (!pln_capture_has_triggers(child) &&
			(kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE))
			adopt_child(source, child, created && child == relid);
	}
}

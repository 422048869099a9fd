/*
 * rows.c
 *	  Rows of pipeline_internal.sources and source_logs, read without SPI.
 *
 * Capture triggers run in sessions of anybody, inside their statements: they read these
 * tables by index under a catalog snapshot, so the newest committed state counts whatever
 * the isolation level of the writer is.  Nothing here takes a lock on a user's relation.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "source/internal.h"

Oid
pln_source_catalog(const char *name)
{
	Oid			namespace_id = get_namespace_oid("pipeline_internal", true);

	return OidIsValid(namespace_id) ? get_relname_relid(name, namespace_id) : InvalidOid;
}

static Datum
column(HeapTuple tuple, TupleDesc desc, const char *name, bool *isnull)
{
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), name) == 0)
			return heap_getattr(tuple, i + 1, desc, isnull);
	}
	elog(ERROR, "metadata table has no column \"%s\"", name);
	return (Datum) 0;			/* keep compiler quiet */
}

static AttrNumber
column_number(Relation rel, const char *name)
{
	AttrNumber	attnum = get_attnum(RelationGetRelid(rel), name);

	PLN_ENSURE(attnum > 0);
	return attnum;
}

const char *
pln_source_level_name(PlnCaptureLevel level)
{
	switch (level)
	{
		case PLN_CAPTURE_NONE:
			return "none";
		case PLN_CAPTURE_MARK:
			return "mark";
		case PLN_CAPTURE_STREAM:
			return "stream";
		case PLN_CAPTURE_SIGNED:
			return "signed";
	}
	return NULL;				/* keep compiler quiet */
}

static PlnCaptureLevel
level_from_name(const char *name)
{
	if (strcmp(name, "mark") == 0)
		return PLN_CAPTURE_MARK;
	if (strcmp(name, "stream") == 0)
		return PLN_CAPTURE_STREAM;
	if (strcmp(name, "signed") == 0)
		return PLN_CAPTURE_SIGNED;
	return PLN_CAPTURE_NONE;
}

static PlnSourceKind
kind_from_name(const char *name)
{
	if (strcmp(name, "own_table") == 0)
		return PLN_SOURCE_OWN_TABLE;
	if (strcmp(name, "own_matview") == 0)
		return PLN_SOURCE_OWN_MATVIEW;
	return PLN_SOURCE_CAPTURED;
}

PlnSource *
pln_source_find(Oid relid)
{
	Oid			table = pln_source_catalog("sources");
	Oid			index = pln_source_catalog("sources_relid_key");
	PlnSource  *source = NULL;
	Relation	rel;
	TupleDesc	desc;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	if (!OidIsValid(table))
		return NULL;
	rel = table_open(table, AccessShareLock);
	desc = RelationGetDescr(rel);
	ScanKeyInit(&key, column_number(rel, "relid"), BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, index, OidIsValid(index), NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;

		source = palloc0(sizeof(PlnSource));
		source->id = DatumGetInt64(column(tuple, desc, "id", &isnull));
		source->relid = relid;
		source->kind = kind_from_name(TextDatumGetCString(column(tuple, desc, "kind", &isnull)));
		source->level =
			level_from_name(TextDatumGetCString(column(tuple, desc, "level", &isnull)));
		source->generation = DatumGetInt32(column(tuple, desc, "generation", &isnull));
		source->active = DatumGetBool(column(tuple, desc, "active", &isnull));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return source;
}

/*
 * Attributes are found by number while the numbers were recorded in this incarnation: so
 * renames do no harm.  After a restore numbers may have moved: then by name.
 */
static AttrNumber
resolve_attribute(Oid relid, AttrNumber attnum, const char *name, bool by_number)
{
	if (by_number)
		return get_attname(relid, attnum, true) != NULL ? attnum : InvalidAttrNumber;
	return get_attnum(relid, name);
}

static PlnLog *
log_from_tuple(const PlnSource *source, HeapTuple tuple, TupleDesc desc)
{
	PlnLog	   *log = palloc0(sizeof(PlnLog));
	bool		isnull;
	bool		by_number;
	Datum	   *names;
	Datum	   *numbers;
	int			nnames;
	int			nnumbers;
	int			i;

	log->source_id = source->id;
	log->generation = DatumGetInt32(column(tuple, desc, "generation", &isnull));
	log->relid = DatumGetObjectId(column(tuple, desc, "log", &isnull));
	by_number = DatumGetInt32(column(tuple, desc, "incarnation", &isnull)) == pln_incarnation();
	deconstruct_array(DatumGetArrayTypeP(column(tuple, desc, "columns", &isnull)),
					  NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &names, NULL, &nnames);
	deconstruct_array(DatumGetArrayTypeP(column(tuple, desc, "attnums", &isnull)),
					  INT2OID, 2, true, TYPALIGN_SHORT, &numbers, NULL, &nnumbers);
	PLN_ENSURE(nnames == nnumbers);
	log->ncols = nnames;
	log->attnums = palloc(sizeof(AttrNumber) * Max(nnames, 1));
	for (i = 0; i < nnames; i++)
		log->attnums[i] = resolve_attribute(source->relid, DatumGetInt16(numbers[i]),
											NameStr(*DatumGetName(names[i])), by_number);
	return log;
}

/* generation 0 = all of them */
static List *
read_logs(const PlnSource *source, int32 generation)
{
	Oid			table = pln_source_catalog("source_logs");
	Oid			index = pln_source_catalog("source_logs_pkey");
	List	   *logs = NIL;
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;

	if (!OidIsValid(table))
		return NIL;
	rel = table_open(table, AccessShareLock);
	ScanKeyInit(&keys[0], column_number(rel, "source_id"), BTEqualStrategyNumber, F_INT8EQ,
				Int64GetDatum(source->id));
	ScanKeyInit(&keys[1], column_number(rel, "generation"), BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(generation));
	scan = systable_beginscan(rel, index, OidIsValid(index), NULL, generation == 0 ? 1 : 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		logs = lappend(logs, log_from_tuple(source, tuple, RelationGetDescr(rel)));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return logs;
}

List *
pln_source_logs(const PlnSource *source)
{
	return read_logs(source, 0);
}

PlnLog *
pln_source_log(const PlnSource *source, int32 generation)
{
	List	   *logs = generation > 0 ? read_logs(source, generation) : NIL;

	return logs == NIL ? NULL : (PlnLog *) linitial(logs);
}

List *
pln_source_relations(Oid relid)
{
	return find_all_inheritors(relid, NoLock, NULL);
}

AttrNumber
pln_source_natts(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	AttrNumber	natts;

	if (!HeapTupleIsValid(tuple))
		return 0;
	natts = ((Form_pg_class) GETSTRUCT(tuple))->relnatts;
	ReleaseSysCache(tuple);
	return natts;
}

/* There is no syscache on pg_inherits. */
List *
pln_source_parents(Oid relid)
{
	List	   *parents = NIL;
	Relation	rel = table_open(InheritsRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, InheritsRelidSeqnoIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		parents = lappend_oid(parents, ((Form_pg_inherits) GETSTRUCT(tuple))->inhparent);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return parents;
}

bool
pln_source_is_child(Oid relid)
{
	return pln_source_parents(relid) != NIL;
}

PlnSource *
pln_source_owning(Oid relid)
{
	PlnSource  *source = pln_source_find(relid);
	ListCell   *lc;

	if (source != NULL)
		return source;
	foreach(lc, pln_source_parents(relid))
	{
		source = pln_source_owning(lfirst_oid(lc));
		if (source != NULL)
			return source;
	}
	return NULL;
}

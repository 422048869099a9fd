/*
 * matview_writer.c
 *	  Full recompute of a materialized view: built beside, swapped.
 *
 * Locks: EXCLUSIVE on the view from the start (one builder; readers go on), ACCESS EXCLUSIVE
 * from the swap to the end of the transaction.  The indexes are built on the new heap before
 * that and exchanged file by file, so the time under the lock does not grow with the rows.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_internals.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/cluster.h"
#include "commands/defrem.h"
#include "commands/matview.h"
#include "commands/tablecmds.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_utilcmd.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "base/debug_point.h"
#include "base/errors.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "write/matview_writer.h"

#define BATCH_ROWS 1000
#define BATCH_BYTES 65536

struct PlnMatviewWriter
{
	Oid			matview;
	Oid			new_heap;
	Relation	rel;			/* the new heap */
	MemoryContext context;
	MemoryContext batch_context;	/* what the access method leaks into */
	BulkInsertState bistate;
	CommandId	cid;
	TupleTableSlot **slots;
	int			nslots;
	int			allocated;
	Size		batch_bytes;
	int64		rows;
};

PlnMatviewWriter *
pln_matview_writer_open(Oid matview)
{
	PlnMatviewWriter *writer = palloc0(sizeof(PlnMatviewWriter));
	Relation	view = table_open(matview, ExclusiveLock);

	CheckTableNotInUse(view, "REFRESH MATERIALIZED VIEW");
	writer->matview = matview;
	writer->context = AllocSetContextCreate(CurrentMemoryContext, "pipeline matview writer",
											ALLOCSET_DEFAULT_SIZES);
	writer->batch_context = AllocSetContextCreate(writer->context, "pipeline matview batch",
												  ALLOCSET_DEFAULT_SIZES);
	writer->new_heap = make_new_heap(matview, view->rd_rel->reltablespace, view->rd_rel->relam,
									 view->rd_rel->relpersistence, ExclusiveLock);
	table_close(view, NoLock);
	LockRelationOid(writer->new_heap, AccessExclusiveLock);
	writer->rel = table_open(writer->new_heap, NoLock);
	writer->cid = GetCurrentCommandId(true);
	writer->bistate = GetBulkInsertState();
	writer->slots = palloc0(sizeof(TupleTableSlot *) * BATCH_ROWS);
	return writer;
}

/* ---- rows ---- */

static void
flush(PlnMatviewWriter *writer)
{
	MemoryContext old;
	int			i;

	if (writer->nslots == 0)
		return;
	old = MemoryContextSwitchTo(writer->batch_context);
	/* nobody else sees this heap before the swap: frozen, as core's REFRESH writes it */
	table_multi_insert(writer->rel, writer->slots, writer->nslots, writer->cid,
					   TABLE_INSERT_SKIP_FSM | TABLE_INSERT_FROZEN, writer->bistate);
	MemoryContextSwitchTo(old);
	MemoryContextReset(writer->batch_context);
	for (i = 0; i < writer->nslots; i++)
		ExecClearTuple(writer->slots[i]);
	writer->rows += writer->nslots;
	writer->nslots = 0;
	writer->batch_bytes = 0;
}

void
pln_matview_writer_put(PlnMatviewWriter *writer, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);
	TupleTableSlot *own;

	if (writer->nslots == writer->allocated)
		writer->slots[writer->allocated++] =
			MakeSingleTupleTableSlot(RelationGetDescr(writer->rel), &TTSOpsHeapTuple);
	own = writer->slots[writer->nslots++];
	ExecCopySlot(own, slot);
	writer->batch_bytes += ((HeapTupleTableSlot *) own)->tuple->t_len;
	if (writer->nslots == BATCH_ROWS || writer->batch_bytes >= BATCH_BYTES)
		flush(writer);
	MemoryContextSwitchTo(old);
}

static void
finish_rows(PlnMatviewWriter *writer)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);
	int			i;

	flush(writer);
	FreeBulkInsertState(writer->bistate);
	table_finish_bulk_insert(writer->rel, TABLE_INSERT_SKIP_FSM | TABLE_INSERT_FROZEN);
	for (i = 0; i < writer->allocated; i++)
		ExecDropSingleTupleTableSlot(writer->slots[i]);
	table_close(writer->rel, NoLock);
	MemoryContextSwitchTo(old);
}

/* ---- indexes ---- */

/*
 * The same index on the new heap.  Named by the server: it only lives until the swap.
 */
static Oid
clone_index(PlnMatviewWriter *writer, Oid index_oid)
{
	Relation	index = index_open(index_oid, AccessShareLock);
	Relation	heap = table_open(writer->new_heap, NoLock);
	int			natts = RelationGetDescr(heap)->natts;
	AttrMap    *map = make_attrmap(natts);
	IndexStmt  *stmt;
	ObjectAddress address;
	Oid			constraint;
	int			i;

	for (i = 0; i < natts; i++)
		map->attnums[i] = i + 1;
	stmt = generateClonedIndexStmt(NULL, index, map, &constraint);
	stmt->idxcomment = NULL;
	stmt->primary = false;
	stmt->isconstraint = false;
	stmt->deferrable = false;
	stmt->initdeferred = false;
	stmt->transformed = true;
	table_close(heap, NoLock);
	index_close(index, NoLock);
	address = DefineIndex(writer->new_heap, stmt, InvalidOid, InvalidOid, InvalidOid,
						  false, false, false, false, true);
	CommandCounterIncrement();
	return address.objectId;
}

/* For messages: looked up before anything can fail. */
typedef struct IndexNames
{
	char	   *view;
	char	   *index;
} IndexNames;

/* A duplicate is reported with the name of the transient index; the user knows his own. */
static void
index_context(void *arg)
{
	IndexNames *names = arg;

	if (names->index == NULL)
		return;
	if (geterrcode() == ERRCODE_UNIQUE_VIOLATION)
	{
		errmsg("could not create unique index \"%s\"", names->index);
#ifndef USE_ASSERT_CHECKING
		/* a server with assertions insists that these fields are set once */
		err_generic_string(PG_DIAG_TABLE_NAME, names->view);
		err_generic_string(PG_DIAG_CONSTRAINT_NAME, names->index);
#endif
	}
	errcontext("refresh of materialized view \"%s\"", names->view);
}

static List *
clone_indexes(PlnMatviewWriter *writer, List *indexes)
{
	List	   *clones = NIL;
	PlnSecContext sec;
	ErrorContextCallback callback;
	IndexNames	names = {get_rel_name(writer->matview), NULL};
	ListCell   *lc;

	/* conditions and expressions of indexes are the users', run with the rights we have now;
	 * only the path is made safe, as core does for maintenance */
	pln_enter_settings(&sec, list_make1("search_path=pg_catalog, pg_temp"));
	callback.callback = index_context;
	callback.arg = &names;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	foreach(lc, indexes)
	{
		CHECK_FOR_INTERRUPTS();
		names.index = get_rel_name(lfirst_oid(lc));
		clones = lappend_oid(clones, clone_index(writer, lfirst_oid(lc)));
	}
	error_context_stack = callback.previous;
	pln_leave(&sec);
	return clones;
}

/* ---- the swap ---- */

static void
swap_statistics(Form_pg_class a, Form_pg_class b)
{
	int32		pages = a->relpages;
	float4		tuples = a->reltuples;
	int32		visible = a->relallvisible;

	a->relpages = b->relpages;
	a->reltuples = b->reltuples;
	a->relallvisible = b->relallvisible;
	b->relpages = pages;
	b->reltuples = tuples;
	b->relallvisible = visible;
}

/* The toast tables changed hands with their heaps: so do their dependencies. */
static void
relink_toast(Oid toast, Oid owner)
{
	ObjectAddress base;
	ObjectAddress toast_address;

	if (!OidIsValid(toast))
		return;
	(void) deleteDependencyRecordsFor(RelationRelationId, toast, false);
	ObjectAddressSet(base, RelationRelationId, owner);
	ObjectAddressSet(toast_address, RelationRelationId, toast);
	recordDependencyOn(&toast_address, &base, DEPENDENCY_INTERNAL);
}

/*
 * Exchange the storage of two relations of one kind, following core's swap_relation_files
 * with toast swapped by link.
 */
static void
swap_storage(Oid keep, Oid transient)
{
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple1 = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(keep));
	HeapTuple	tuple2 = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(transient));
	Form_pg_class form1;
	Form_pg_class form2;
	CatalogIndexState indstate;
	Relation	rel1;
	Relation	rel2;
	Oid			swap;

	PLN_ENSURE(HeapTupleIsValid(tuple1) && HeapTupleIsValid(tuple2));
	form1 = (Form_pg_class) GETSTRUCT(tuple1);
	form2 = (Form_pg_class) GETSTRUCT(tuple2);
	PLN_ENSURE(form1->relam == form2->relam && OidIsValid(form1->relfilenode));

	swap = form1->relfilenode;
	form1->relfilenode = form2->relfilenode;
	form2->relfilenode = swap;
	swap = form1->reltablespace;
	form1->reltablespace = form2->reltablespace;
	form2->reltablespace = swap;
	swap = form1->reltoastrelid;
	form1->reltoastrelid = form2->reltoastrelid;
	form2->reltoastrelid = swap;
	if (form1->relkind != RELKIND_INDEX)
	{
		/* the new heap holds frozen rows only; its own horizons are those it was made with */
		form1->relfrozenxid = form2->relfrozenxid;
		form1->relminmxid = form2->relminmxid;
	}
	swap_statistics(form1, form2);

	/* the storage of the first is new in this subtransaction: it matters to WAL skipping */
	rel1 = relation_open(keep, NoLock);
	rel2 = relation_open(transient, NoLock);
	rel2->rd_createSubid = rel1->rd_createSubid;
	rel2->rd_newRelfilenodeSubid = rel1->rd_newRelfilenodeSubid;
	rel2->rd_firstRelfilenodeSubid = rel1->rd_firstRelfilenodeSubid;
	RelationAssumeNewRelfilenode(rel1);
	relation_close(rel1, NoLock);
	relation_close(rel2, NoLock);

	indstate = CatalogOpenIndexes(pg_class);
	CatalogTupleUpdateWithInfo(pg_class, &tuple1->t_self, tuple1, indstate);
	CatalogTupleUpdateWithInfo(pg_class, &tuple2->t_self, tuple2, indstate);
	CatalogCloseIndexes(indstate);
	relink_toast(form1->reltoastrelid, keep);
	relink_toast(form2->reltoastrelid, transient);
	heap_freetuple(tuple1);
	heap_freetuple(tuple2);
	table_close(pg_class, RowExclusiveLock);
	RelationCloseSmgrByOid(keep);
	RelationCloseSmgrByOid(transient);
}

/* Toast tables are named after the heap that owns them. */
static void
rename_toast(Oid matview)
{
	Relation	rel = table_open(matview, NoLock);
	Oid			toast = rel->rd_rel->reltoastrelid;
	char		name[NAMEDATALEN];

	table_close(rel, NoLock);
	if (!OidIsValid(toast))
		return;
	snprintf(name, NAMEDATALEN, "pg_toast_%u", matview);
	RenameRelationInternal(toast, name, true, false);
	snprintf(name, NAMEDATALEN, "pg_toast_%u_index", matview);
	RenameRelationInternal(toast_get_valid_index(toast, AccessExclusiveLock), name, true, true);
	CommandCounterIncrement();
	ResetRelRewrite(toast);
}

static void
drop_transient(Oid heap)
{
	ObjectAddress address;

	ObjectAddressSet(address, RelationRelationId, heap);
	performDeletion(&address, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
}

static void
set_row_counts(Oid relid, int64 rows)
{
	Relation	rel = relation_open(relid, NoLock);
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));
	BlockNumber all_visible;

	visibilitymap_count(rel, &all_visible, NULL);
	((Form_pg_class) GETSTRUCT(tuple))->relallvisible = all_visible;
	((Form_pg_class) GETSTRUCT(tuple))->relpages = RelationGetNumberOfBlocks(rel);
	((Form_pg_class) GETSTRUCT(tuple))->reltuples = rows;
	CatalogTupleUpdate(pg_class, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_class, RowExclusiveLock);
	relation_close(rel, NoLock);
	CommandCounterIncrement();
}

static void
swap_all(PlnMatviewWriter *writer, List *indexes, List *clones)
{
	Relation	view;
	ListCell   *lc;
	ListCell   *lc2;

	LockRelationOid(writer->matview, AccessExclusiveLock);
	view = table_open(writer->matview, NoLock);
	CheckTableNotInUse(view, "REFRESH MATERIALIZED VIEW");
	SetMatViewPopulatedState(view, true);
	table_close(view, NoLock);
	CommandCounterIncrement();
	foreach(lc, indexes)
		LockRelationOid(lfirst_oid(lc), AccessExclusiveLock);
	swap_storage(writer->matview, writer->new_heap);
	forboth(lc, indexes, lc2, clones)
		swap_storage(lfirst_oid(lc), lfirst_oid(lc2));
	CommandCounterIncrement();
	drop_transient(writer->new_heap);
	CommandCounterIncrement();
	rename_toast(writer->matview);
	CommandCounterIncrement();
}

Oid
pln_matview_writer_close(PlnMatviewWriter *writer)
{
	Relation	view;
	List	   *indexes;
	List	   *clones;
	Oid			relfilenode;
	int64		rows;

	finish_rows(writer);
	rows = writer->rows;
	set_row_counts(writer->new_heap, rows);
	view = table_open(writer->matview, NoLock);
	indexes = RelationGetIndexList(view);
	table_close(view, NoLock);
	clones = clone_indexes(writer, indexes);
	pln_debug_point("view built");
	swap_all(writer, indexes, clones);

	view = table_open(writer->matview, NoLock);
	relfilenode = view->rd_rel->relfilenode;
	pgstat_count_truncate(view);
	pgstat_count_heap_insert(view, rows);
	table_close(view, NoLock);
	MemoryContextDelete(writer->context);
	return relfilenode;
}

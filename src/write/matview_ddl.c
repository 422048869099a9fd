/*
 * matview_ddl.c
 *	  Creating a true materialized view from an analysed query, and replacing its query
 *	  (correctness B4, B5).
 *
 * Core has no CREATE OR REPLACE for materialized views.  The parts exist, though: the rule
 * that holds the query is replaced as for views, and columns are appended the way ALTER TABLE
 * does it.  Anything else is refused as CREATE OR REPLACE VIEW refuses it.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "catalog/toasting.h"
#include "commands/matview.h"
#include "commands/tablecmds.h"
#include "commands/view.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/spi.h"
#include "compat/pg_compat.h"
#include "write/matview_ddl.h"

/* Leaves room on each page, so that keyed updates can be HOT. */
#define FILLFACTOR 90

static ColumnDef *
column_def(TargetEntry *te)
{
	Oid			type = exprType((Node *) te->expr);
	ColumnDef  *def = makeColumnDef(te->resname, type, exprTypmod((Node *) te->expr),
									exprCollation((Node *) te->expr));

	if (!OidIsValid(def->collOid) && type_is_collatable(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_COLLATION),
				 errmsg("no collation was derived for column \"%s\" with collatable type %s",
						te->resname, format_type_be(type)),
				 errhint("Use the COLLATE clause to set the collation explicitly.")));
	return def;
}

static void
make_toast(Oid relid, List *reloptions)
{
	static char *namespaces[] = HEAP_RELOPT_NAMESPACES;
	Datum		options;

	options = transformRelOptions((Datum) 0, reloptions, "toast", namespaces, true, false);
	(void) heap_reloptions(RELKIND_TOASTVALUE, options, true);
	NewRelationCreateToastTable(relid, options);
}

Oid
pln_matview_create(const char *schema, const char *name, Query *query, List *options)
{
	CreateStmt *create = makeNode(CreateStmt);
	ObjectAddress address;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);

		if (!te->resjunk)
			create->tableElts = lappend(create->tableElts, column_def(te));
	}
	create->relation = makeRangeVar(pstrdup(schema), pstrdup(name), -1);
	create->options = options ? options :
		list_make1(makeDefElem("fillfactor", (Node *) makeInteger(FILLFACTOR), -1));
	create->oncommit = ONCOMMIT_NOOP;
	address = DefineRelation(create, RELKIND_MATVIEW, InvalidOid, NULL, NULL);
	CommandCounterIncrement();
	make_toast(address.objectId, create->options);
	StoreViewQuery(address.objectId, query, false);
	CommandCounterIncrement();
	/* like WITH NO DATA: unreadable until it is filled */
	{
		Relation	rel = table_open(address.objectId, AccessExclusiveLock);

		SetMatViewPopulatedState(rel, false);
		table_close(rel, NoLock);
	}
	CommandCounterIncrement();
	return address.objectId;
}

/* ---- replacing ---- */

typedef enum Difference
{
	SAME_COLUMNS,
	APPENDED_COLUMNS,
	OTHER_COLUMNS
} Difference;

static Difference
compare_columns(TupleDesc desc, Query *query, char **what)
{
	ListCell   *lc;
	int			i = 0;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);
		Form_pg_attribute att;

		if (te->resjunk)
			continue;
		if (i >= desc->natts)
			return APPENDED_COLUMNS;
		att = TupleDescAttr(desc, i++);
		if (strcmp(NameStr(att->attname), te->resname) != 0)
		{
			*what = psprintf("cannot change name of column \"%s\" to \"%s\"",
							 NameStr(att->attname), te->resname);
			return OTHER_COLUMNS;
		}
		if (att->atttypid != exprType((Node *) te->expr) ||
			att->atttypmod != exprTypmod((Node *) te->expr) ||
			att->attcollation != exprCollation((Node *) te->expr))
		{
			*what = psprintf("cannot change column \"%s\" from %s to %s", te->resname,
							 format_type_with_typemod(att->atttypid, att->atttypmod),
							 format_type_with_typemod(exprType((Node *) te->expr),
													  exprTypmod((Node *) te->expr)));
			return OTHER_COLUMNS;
		}
	}
	if (i < desc->natts)
	{
		*what = psprintf("cannot drop column \"%s\"",
						 NameStr(TupleDescAttr(desc, i)->attname));
		return OTHER_COLUMNS;
	}
	return SAME_COLUMNS;
}

/* One row of pg_attribute, with its dependencies on type and collation. */
static void
insert_attribute(Relation pg_attribute, CatalogIndexState indstate, Oid relid,
				 Form_pg_attribute att, AttrNumber attnum)
{
	Datum		values[Natts_pg_attribute];
	bool		nulls[Natts_pg_attribute];
	HeapTuple	tuple;
	ObjectAddress self;
	ObjectAddress type;
	ObjectAddress collation;

	memset(values, 0, sizeof(values));
	memset(nulls, 0, sizeof(nulls));
	values[Anum_pg_attribute_attrelid - 1] = ObjectIdGetDatum(relid);
	values[Anum_pg_attribute_attname - 1] = NameGetDatum(&att->attname);
	values[Anum_pg_attribute_atttypid - 1] = ObjectIdGetDatum(att->atttypid);
	values[Anum_pg_attribute_attstattarget - 1] = Int32GetDatum(att->attstattarget);
	values[Anum_pg_attribute_attlen - 1] = Int16GetDatum(att->attlen);
	values[Anum_pg_attribute_attnum - 1] = Int16GetDatum(attnum);
	values[Anum_pg_attribute_attndims - 1] = Int32GetDatum(att->attndims);
	values[Anum_pg_attribute_attcacheoff - 1] = Int32GetDatum(-1);
	values[Anum_pg_attribute_atttypmod - 1] = Int32GetDatum(att->atttypmod);
	values[Anum_pg_attribute_attbyval - 1] = BoolGetDatum(att->attbyval);
	values[Anum_pg_attribute_attalign - 1] = CharGetDatum(att->attalign);
	values[Anum_pg_attribute_attstorage - 1] = CharGetDatum(att->attstorage);
	values[Anum_pg_attribute_attcompression - 1] = CharGetDatum(att->attcompression);
	values[Anum_pg_attribute_attnotnull - 1] = BoolGetDatum(false);
	values[Anum_pg_attribute_atthasdef - 1] = BoolGetDatum(false);
	values[Anum_pg_attribute_atthasmissing - 1] = BoolGetDatum(false);
	values[Anum_pg_attribute_attidentity - 1] = CharGetDatum('\0');
	values[Anum_pg_attribute_attgenerated - 1] = CharGetDatum('\0');
	values[Anum_pg_attribute_attisdropped - 1] = BoolGetDatum(false);
	values[Anum_pg_attribute_attislocal - 1] = BoolGetDatum(true);
	values[Anum_pg_attribute_attinhcount - 1] = Int32GetDatum(0);
	values[Anum_pg_attribute_attcollation - 1] = ObjectIdGetDatum(att->attcollation);
	nulls[Anum_pg_attribute_attacl - 1] = true;
	nulls[Anum_pg_attribute_attoptions - 1] = true;
	nulls[Anum_pg_attribute_attfdwoptions - 1] = true;
	nulls[Anum_pg_attribute_attmissingval - 1] = true;
	tuple = heap_form_tuple(RelationGetDescr(pg_attribute), values, nulls);
	tuple = pln_compat_version_attribute(pg_attribute, tuple);
	CatalogTupleInsertWithInfo(pg_attribute, tuple, indstate);
	heap_freetuple(tuple);
	ObjectAddressSubSet(self, RelationRelationId, relid, attnum);
	ObjectAddressSet(type, TypeRelationId, att->atttypid);
	recordDependencyOn(&self, &type, DEPENDENCY_NORMAL);
	if (!OidIsValid(att->attcollation) || att->attcollation == DEFAULT_COLLATION_OID)
		return;
	ObjectAddressSet(collation, CollationRelationId, att->attcollation);
	recordDependencyOn(&self, &collation, DEPENDENCY_NORMAL);
}

/*
 * Append the query's further columns to the view: pg_attribute rows and relnatts, as ALTER TABLE
 * ADD COLUMN does for tables.  The old heap is never read with them: the view is refilled.
 */
static void
append_columns(Relation rel, Query *query)
{
	int			old = RelationGetNumberOfAttributes(rel);
	int			added;
	TupleDesc	desc = CreateTemplateTupleDesc(list_length(query->targetList));
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	Relation	pg_attribute = table_open(AttributeRelationId, RowExclusiveLock);
	CatalogIndexState indstate = CatalogOpenIndexes(pg_attribute);
	Oid			relid = RelationGetRelid(rel);
	HeapTuple	tuple;
	ListCell   *lc;
	int			n = 0;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);

		if (te->resjunk)
			continue;
		n++;
		TupleDescInitEntry(desc, n, te->resname, exprType((Node *) te->expr),
						   exprTypmod((Node *) te->expr), 0);
		TupleDescInitEntryCollation(desc, n, exprCollation((Node *) te->expr));
	}
	added = n - old;
	CheckAttributeNamesTypes(desc, RELKIND_MATVIEW, 0);
	for (n = old; n < old + added; n++)
		insert_attribute(pg_attribute, indstate, relid, TupleDescAttr(desc, n), n + 1);
	CatalogCloseIndexes(indstate);
	table_close(pg_attribute, RowExclusiveLock);
	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));
	((Form_pg_class) GETSTRUCT(tuple))->relnatts = old + added;
	CatalogTupleUpdate(pg_class, &tuple->t_self, tuple);
	table_close(pg_class, RowExclusiveLock);
	CacheInvalidateRelcache(rel);
}

static char *
list_dependants(Oid relid)
{
	PlnArgs		args;
	PlnRows    *rows;
	StringInfoData names;
	uint64		i;

	pln_args_init(&args);
	pln_args_oid(&args, relid);
	rows = pln_spi_run_args("SELECT DISTINCT r.ev_class FROM pg_depend d "
							"JOIN pg_rewrite r ON r.oid = d.objid "
							"WHERE d.classid = 'pg_rewrite'::regclass "
							"AND d.refclassid = 'pg_class'::regclass AND d.refobjid = $1 "
							"AND r.ev_class <> $1 ORDER BY 1", &args);
	initStringInfo(&names);
	for (i = 0; i < rows->n; i++)
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "",
						 pln_relation_name(pln_row_oid(rows, i, "ev_class")));
	return names.len > 0 ? psprintf("Views that depend on it: %s.", names.data) : NULL;
}

bool
pln_matview_can_replace(Oid matview, Query *query)
{
	Relation	rel = table_open(matview, AccessShareLock);
	char	   *what;
	Difference	difference = compare_columns(RelationGetDescr(rel), query, &what);

	table_close(rel, NoLock);
	return difference != OTHER_COLUMNS;
}

bool
pln_matview_replace_query(Oid matview, Query *query)
{
	Relation	rel = table_open(matview, AccessExclusiveLock);
	char	   *what = NULL;
	Difference	difference = compare_columns(RelationGetDescr(rel), query, &what);

	CheckTableNotInUse(rel, "CREATE OR REPLACE MATERIALIZED VIEW");
	if (difference == OTHER_COLUMNS)
	{
		char	   *dependants = list_dependants(matview);

		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				 errmsg("%s of materialized view %s", what, pln_relation_name(matview)),
				 dependants ? errdetail("%s", dependants) : 0,
				 errhint("DROP MATERIALIZED VIEW %s; the next update makes it anew.",
						 pln_relation_name(matview))));
	}
	if (difference == APPENDED_COLUMNS)
	{
		append_columns(rel, query);
		CommandCounterIncrement();
		/* a view of narrow columns had no need of one; the new heap gets one if the old has */
		AlterTableCreateToastTable(matview, (Datum) 0, AccessExclusiveLock);
	}
	StoreViewQuery(matview, query, true);
	table_close(rel, NoLock);
	CommandCounterIncrement();
	return difference == APPENDED_COLUMNS;
}

/*
 * quarantine.c
 *	  <dataset>_quarantine tables: creation and writing.
 *
 * Created beside the dataset, for its owner, without grants; he may repair rows in it at any
 * time.  Written in the transaction that writes the good rows.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/spi.h"
#include "expect/quarantine.h"

/* Our columns, after those of the dataset. */
#define EXTRA_COLUMNS 4
static const struct
{
	const char *name;
	const char *type;
	Oid			oid;
}			extra_columns[EXTRA_COLUMNS] = {
	{"_rules", "pg_catalog.text[]", TEXTARRAYOID},
	{"_update_id", "pg_catalog.uuid", UUIDOID},
	{"_quarantined_at", "pg_catalog.timestamptz", TIMESTAMPTZOID},
	{"_replayed_at", "pg_catalog.timestamptz", TIMESTAMPTZOID}
};

/* ---- the table ---- */

static char *
column_sql(Form_pg_attribute att)
{
	char	   *type = format_type_extended(att->atttypid, att->atttypmod,
											FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);

	if (OidIsValid(att->attcollation) && att->attcollation != get_typcollation(att->atttypid))
		return psprintf("%s %s COLLATE %s", quote_identifier(NameStr(att->attname)), type,
						generate_collation_name(att->attcollation));
	return psprintf("%s %s", quote_identifier(NameStr(att->attname)), type);
}

static void
check_names(Relation dataset)
{
	TupleDesc	desc = RelationGetDescr(dataset);
	int			i;
	int			j;

	for (i = 0; i < desc->natts; i++)
	{
		for (j = 0; j < EXTRA_COLUMNS; j++)
		{
			if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), extra_columns[j].name) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 errmsg("column name \"%s\" is taken by the quarantine table",
								extra_columns[j].name),
						 errhint("Rename the column of %s.",
								 pln_relation_name(RelationGetRelid(dataset)))));
		}
	}
}

static Oid
create_table(Relation dataset)
{
	TupleDesc	desc = RelationGetDescr(dataset);
	Oid			nsp = RelationGetNamespace(dataset);
	char	   *name = pln_choose_name(RelationGetRelationName(dataset), "_quarantine", nsp);
	char	   *qualified = pln_quote_qualified(get_namespace_name(nsp), name);
	StringInfoData sql;
	int			i;

	check_names(dataset);
	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE TABLE %s (", qualified);
	for (i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			appendStringInfo(&sql, "%s, ", column_sql(TupleDescAttr(desc, i)));
	}
	for (i = 0; i < EXTRA_COLUMNS; i++)
		appendStringInfo(&sql, "%s%s %s", i > 0 ? ", " : "", extra_columns[i].name,
						 extra_columns[i].type);
	appendStringInfoChar(&sql, ')');
	(void) pln_spi_user(sql.data);
	CommandCounterIncrement();
	pln_revoke_all(get_relname_relid(name, nsp));
	(void) pln_spi_user(psprintf("COMMENT ON TABLE %s IS %s", qualified,
								 pln_quote_literal(psprintf("rows that expectations of %s rejected",
															RelationGetRelationName(dataset)))));
	CommandCounterIncrement();
	return get_relname_relid(name, nsp);
}

/* The dataset grew columns: so does its quarantine. */
static void
add_columns(Relation dataset, Oid quarantine)
{
	TupleDesc	desc = RelationGetDescr(dataset);
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped ||
			get_attnum(quarantine, NameStr(att->attname)) != InvalidAttrNumber)
			continue;
		(void) pln_spi_user(psprintf("ALTER TABLE %s ADD COLUMN %s",
									 pln_relation_name(quarantine), column_sql(att)));
		CommandCounterIncrement();
	}
}

Oid
pln_quarantine_ensure(Relation dataset, Oid existing)
{
	if (!OidIsValid(existing) || get_rel_relkind(existing) != RELKIND_RELATION)
		return create_table(dataset);
	add_columns(dataset, existing);
	return existing;
}

/* ---- writing ---- */

#define BATCH_ROWS 100

struct PlnQuarantineWriter
{
	Relation	rel;
	TupleDesc	row_desc;
	AttrNumber *attno;			/* per column of the row: attribute of the table */
	AttrNumber	extra[EXTRA_COLUMNS];
	Datum		update_id;
	TimestampTz now;
	CommandId	cid;
	EState	   *estate;
	ResultRelInfo *rri;
	TupleTableSlot *slot;
	MemoryContext row_context;
};

static AttrNumber
find_attribute(Relation rel, const char *name, Oid type)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), name) == 0 &&
			att->atttypid == type)
			return att->attnum;
	}
	ereport(ERROR,
			(errcode(PLN_ERR_STATE),
			 errmsg("quarantine table %s has no column \"%s\" of type %s",
					pln_relation_name(RelationGetRelid(rel)), name, format_type_be(type)),
			 errhint("Rename the table; the next update makes a new one.")));
	return InvalidAttrNumber;	/* keep compiler quiet */
}

PlnQuarantineWriter *
pln_quarantine_open(Oid quarantine, TupleDesc row_desc, const char *update_id, EState *estate)
{
	PlnQuarantineWriter *writer = palloc0(sizeof(PlnQuarantineWriter));
	int			i;

	writer->rel = table_open(quarantine, RowExclusiveLock);
	if (writer->rel->rd_rel->relowner != GetUserId())
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_ALLOWED),
				 errmsg("quarantine table \"%s\" does not belong to the owner of its dataset",
						pln_relation_name(quarantine)),
				 errhint("ALTER TABLE %s OWNER TO %s;", pln_relation_name(quarantine),
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
	if (writer->rel->rd_rel->relkind != RELKIND_RELATION || writer->rel->trigdesc != NULL ||
		writer->rel->rd_rel->relrowsecurity)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("quarantine table %s must be a plain table without triggers and row "
						 "security",
						pln_relation_name(quarantine))));
	writer->row_desc = row_desc;
	writer->attno = palloc0(sizeof(AttrNumber) * Max(row_desc->natts, 1));
	for (i = 0; i < row_desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(row_desc, i);

		if (!att->attisdropped)
			writer->attno[i] = find_attribute(writer->rel, NameStr(att->attname), att->atttypid);
	}
	for (i = 0; i < EXTRA_COLUMNS; i++)
		writer->extra[i] = find_attribute(writer->rel, extra_columns[i].name,
										  extra_columns[i].oid);
	writer->update_id = DirectFunctionCall1(uuid_in, CStringGetDatum(update_id));
	writer->now = GetCurrentTransactionStartTimestamp();
	writer->cid = GetCurrentCommandId(true);
	writer->estate = estate;
	writer->rri = makeNode(ResultRelInfo);
	InitResultRelInfo(writer->rri, writer->rel, 1, NULL, 0);
	ExecOpenIndices(writer->rri, false);
	writer->slot = table_slot_create(writer->rel, NULL);
	writer->row_context = AllocSetContextCreate(CurrentMemoryContext, "pipeline quarantine row",
												ALLOCSET_DEFAULT_SIZES);
	return writer;
}

static Datum
rule_names(PlnExpectSet *set)
{
	Bitmapset  *violated = pln_expect_last_violated(set);
	Datum	   *names = palloc(sizeof(Datum) * pln_expect_count(set));
	int			n = 0;
	int			i = -1;

	while ((i = bms_next_member(violated, i)) >= 0)
		names[n++] = CStringGetTextDatum(pln_expect_name(set, i));
	return PointerGetDatum(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
}

void
pln_quarantine_put(PlnQuarantineWriter *writer, TupleTableSlot *slot, PlnExpectSet *set)
{
	MemoryContext old = MemoryContextSwitchTo(writer->row_context);
	TupleTableSlot *row = writer->slot;
	int			natts = RelationGetDescr(writer->rel)->natts;
	int			i;

	slot_getallattrs(slot);
	ExecClearTuple(row);
	memset(row->tts_isnull, true, sizeof(bool) * natts);
	for (i = 0; i < writer->row_desc->natts; i++)
	{
		if (writer->attno[i] == 0)
			continue;
		row->tts_values[writer->attno[i] - 1] = slot->tts_values[i];
		row->tts_isnull[writer->attno[i] - 1] = slot->tts_isnull[i];
	}
	row->tts_values[writer->extra[0] - 1] = rule_names(set);
	row->tts_values[writer->extra[1] - 1] = writer->update_id;
	row->tts_values[writer->extra[2] - 1] = TimestampTzGetDatum(writer->now);
	for (i = 0; i < 3; i++)
		row->tts_isnull[writer->extra[i] - 1] = false;
	ExecStoreVirtualTuple(row);
	if (RelationGetDescr(writer->rel)->constr != NULL)
		ExecConstraints(writer->rri, row, writer->estate);
	table_tuple_insert(writer->rel, row, writer->cid, 0, NULL);
	if (writer->rri->ri_NumIndices > 0)
		list_free(ExecInsertIndexTuples(writer->rri, row, writer->estate, false, false, NULL,
										NIL));
	ExecClearTuple(row);
	MemoryContextSwitchTo(old);
	MemoryContextReset(writer->row_context);
}

void
pln_quarantine_close(PlnQuarantineWriter *writer)
{
	ExecDropSingleTupleTableSlot(writer->slot);
	ExecCloseIndices(writer->rri);
	table_close(writer->rel, NoLock);
	MemoryContextDelete(writer->row_context);
}

/* ---- counts and clearing ---- */

void
pln_quarantine_reset(Oid quarantine)
{
	(void) pln_spi_user(psprintf("DELETE FROM %s WHERE _replayed_at IS NULL",
								 pln_relation_name(quarantine)));
}

int64
pln_quarantine_replayed(Oid quarantine)
{
	return (int64) pln_spi_user(psprintf("SELECT FROM %s WHERE _replayed_at IS NOT NULL",
										 pln_relation_name(quarantine)));
}

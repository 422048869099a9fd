/*
 * change_log.c
 *	  Reading what capture triggers logged, and making logs.
 *
 * A row of a log belongs to the delta when its (incarnation, xid) is among those of the new
 * headers and it is not in the consumed part of our own transaction.  Block ranges only
 * shorten the scan: they are left out after a restore or a rewrite of the log.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/bitmapset.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/ident.h"
#include "base/spi.h"
#include "source/internal.h"

static char *
type_name(Oid type, int32 typmod)
{
	return format_type_extended(type, typmod,
								FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
}

static char *
collation_name(Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Form_pg_collation form;
	char	   *name;

	PLN_ENSURE(HeapTupleIsValid(tuple));
	form = (Form_pg_collation) GETSTRUCT(tuple);
	name = pln_quote_qualified(get_namespace_name(form->collnamespace), NameStr(form->collname));
	ReleaseSysCache(tuple);
	return name;
}

static int
log_column(const PlnLog *log, AttrNumber attnum)
{
	int			i;

	for (i = 0; i < log->ncols; i++)
	{
		if (log->attnums[i] == attnum)
			return i;
	}
	return -1;
}

/* The value that ADD COLUMN left in the catalog for rows that were there; NULL = none. */
static char *
stored_missing_value(Oid relid, const char *name)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	AttrNumber	attnum = get_attnum(relid, name);
	char	   *text = NULL;

	if (attnum > 0 && TupleDescAttr(RelationGetDescr(rel), attnum - 1)->atthasmissing)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
		bool		isnull;
		Datum		value = getmissingattr(RelationGetDescr(rel), attnum, &isnull);
		Oid			output;
		bool		varlena;

		getTypeOutputInfo(att->atttypid, &output, &varlena);
		if (!isnull)
			text = OidOutputFunctionCall(output, value);
	}
	relation_close(rel, NoLock);
	return text;
}

/*
 * ADD COLUMN with a constant default keeps it in the catalog, of the leaves for a partitioned
 * table.  A default that was set later says nothing about rows that were there, and a rewrite
 * forgets which of the two it was.
 */
char *
pln_missing_value(Relation rel, AttrNumber attnum)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
	char	   *type = type_name(att->atttypid, att->atttypmod);
	ListCell   *lc;

	if (att->attidentity != '\0' || att->attgenerated != '\0')
		return NULL;
	if (!att->atthasdef)
		return psprintf("NULL::%s", type);
	foreach(lc, pln_source_relations(RelationGetRelid(rel)))
	{
		char	   *text = stored_missing_value(lfirst_oid(lc), NameStr(att->attname));

		if (text != NULL)
			return psprintf("%s::%s", pln_quote_literal(text), type);
	}
	return NULL;
}

/*
 * Columns that the log lacks are NULL where nobody needs them.  A column that was added after all
 * rows of the part were logged has the value that older rows of the table have.
 */
static void
append_columns(StringInfo sql, Oid relid, const PlnLog *log, AttrNumber natts)
{
	Relation	rel = table_open(relid, AccessShareLock);
	Relation	log_rel = relation_open(log->relid, AccessShareLock);
	int			i;

	for (i = 0; i < RelationGetDescr(rel)->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
		int			c = att->attisdropped ? -1 : log_column(log, i + 1);

		if (i > 0)
			appendStringInfoString(sql, ", ");
		if (att->attisdropped)
			appendStringInfo(sql, "NULL::pg_catalog.int4 AS \"dropped %d\"", i + 1);
		else if (c < 0)
		{
			char	   *missing = i >= natts ? pln_missing_value(rel, i + 1) :
				NULL;

			appendStringInfo(sql, "%s AS %s",
							 missing ? missing :
							 psprintf("NULL::%s", type_name(att->atttypid, att->atttypmod)),
							 quote_identifier(NameStr(att->attname)));
		}
		else
		{
			Form_pg_attribute have = TupleDescAttr(RelationGetDescr(log_rel),
												   PLN_LOG_FIXED + c);

			appendStringInfo(sql, "d.%s AS %s", quote_identifier(NameStr(have->attname)),
							 quote_identifier(NameStr(att->attname)));
		}
	}
	relation_close(log_rel, NoLock);
	table_close(rel, NoLock);
}

static void
append_conditions(StringInfo sql, const PlnPart *part)
{
	ListCell   *lc;
	int			i;

	appendStringInfo(sql, " WHERE d.op OPERATOR(pg_catalog.%s) 0::pg_catalog.int2"
					 " AND d.incarnation OPERATOR(pg_catalog.=) %d::pg_catalog.int2"
					 " AND d.xid OPERATOR(pg_catalog.=) ANY ('{",
					 part->old_images ? "<" : ">", part->incarnation);
	for (i = 0; i < part->nxids; i++)
		appendStringInfo(sql, "%s" UINT64_FORMAT, i > 0 ? "," : "", part->xids[i]);
	appendStringInfoString(sql, "}'::pg_catalog.xid8[])");
	if (part->own_xid != 0)
		appendStringInfo(sql, " AND (d.xid OPERATOR(pg_catalog.<>) '" UINT64_FORMAT
						 "'::pg_catalog.xid8 OR d.seq OPERATOR(pg_catalog.>) " INT64_FORMAT
						 "::pg_catalog.int8)", part->own_xid, part->own_seq);
	foreach(lc, part->skip_seqs)
	{
		PlnHeader  *header = lfirst(lc);

		appendStringInfo(sql, " AND (d.xid OPERATOR(pg_catalog.<>) '" UINT64_FORMAT
						 "'::pg_catalog.xid8 OR d.seq OPERATOR(pg_catalog.<>) " INT64_FORMAT
						 "::pg_catalog.int8)", header->xid, header->seq);
	}
	if (part->dead != NIL && !part->old_images)
	{
		appendStringInfoString(sql, " AND d.ctid OPERATOR(pg_catalog.<>) ALL ('{");
		foreach(lc, part->dead)
		{
			ItemPointer tid = &((PlnDeadRow *) lfirst(lc))->tid;

			appendStringInfo(sql, "%s\"(%u,%u)\"", foreach_current_index(lc) > 0 ? "," : "",
							 ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid));
		}
		appendStringInfoString(sql, "}'::pg_catalog.tid[])");
	}
}

void
pln_change_log_sql(StringInfo sql, Oid relid, const PlnPart *part, const PlnLog *log)
{
	int			branches = part->everywhere ? 1 : list_length(part->ranges);
	int			i;

	for (i = 0; i < branches; i++)
	{
		appendStringInfo(sql, "%sSELECT ", sql->len > 0 ? " UNION ALL " : "");
		append_columns(sql, relid, log, part->natts);
		appendStringInfo(sql, " FROM ONLY %s AS d", pln_relation_name(part->heap));
		append_conditions(sql, part);
		pln_delta_where_ranges(sql, part, i);
	}
}

/* ---- making ---- */

/* Default privileges of the extension's owner may have granted something. */
static void
revoke_all(const char *log_name)
{
	PlnArgs		args;
	PlnRows    *rows;
	uint64		i;

	pln_args_init(&args);
	pln_args_text(&args, log_name);
	rows = pln_spi_run_args(
		"SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC'"
		" ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END AS grantee"
		" FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a"
		" WHERE c.oid = $1::pg_catalog.regclass AND a.grantee <> c.relowner", &args);
	for (i = 0; i < rows->n; i++)
		pln_spi_run_once(psprintf("REVOKE ALL ON %s FROM %s CASCADE", log_name,
								  pln_row_text(rows, i, "grantee")), 0, NULL, NULL, NULL);
}

/* A new log with these attributes of relid (plain attribute numbers), known to the catalog. */
void
pln_log_create(int64 source_id, int32 generation, Oid relid, Bitmapset *attnums)
{
	Relation	rel = table_open(relid, AccessShareLock);
	char	   *name = psprintf("pipeline_data.log_" INT64_FORMAT "_%d", source_id, generation);
	StringInfoData sql;
	Datum	   *names = palloc(sizeof(Datum) * Max(bms_num_members(attnums), 1));
	Datum	   *numbers = palloc(sizeof(Datum) * Max(bms_num_members(attnums), 1));
	int			n = 0;
	int			attnum = -1;
	PlnArgs		args;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE TABLE %s (xid pg_catalog.xid8, seq pg_catalog.int8,"
					 " ord pg_catalog.int4, op pg_catalog.int2, incarnation pg_catalog.int2",
					 name);
	while ((attnum = bms_next_member(attnums, attnum)) > 0)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);

		appendStringInfo(&sql, ", c%d %s", attnum, type_name(att->atttypid, att->atttypmod));
		if (OidIsValid(att->attcollation) && att->attcollation != DEFAULT_COLLATION_OID)
			appendStringInfo(&sql, " COLLATE %s", collation_name(att->attcollation));
		names[n] = NameGetDatum(&att->attname);
		numbers[n] = Int16GetDatum(attnum);
		n++;
	}
	appendStringInfoString(&sql, ") USING heap");
	pln_spi_run_once(sql.data, 0, NULL, NULL, NULL);
	revoke_all(name);
	pln_spi_run_once(psprintf("COMMENT ON TABLE %s IS %s", name,
							  pln_quote_literal(psprintf("change log of %s",
														 pln_relation_name(relid)))),
					 0, NULL, NULL, NULL);

	pln_args_init(&args);
	pln_args_int8(&args, source_id);
	pln_args_int4(&args, generation);
	pln_args_text(&args, name);
	pln_args_datum(&args, NAMEARRAYOID,
				   PointerGetDatum(construct_array(names, n, NAMEOID, NAMEDATALEN, false,
												   TYPALIGN_CHAR)), false);
	pln_args_datum(&args, INT2ARRAYOID,
				   PointerGetDatum(construct_array(numbers, n, INT2OID, 2, true,
												   TYPALIGN_SHORT)), false);
	pln_args_int4(&args, pln_incarnation());
	pln_spi_run_args("INSERT INTO pipeline_internal.source_logs"
					 " (source_id, generation, log, columns, attnums, incarnation)"
					 " VALUES ($1, $2, $3::pg_catalog.regclass, $4, $5, $6)", &args);
	table_close(rel, NoLock);
}

/*
 * open.c
 *	  The only way to open a change log or the header table: with a check of its shape.
 *
 * Tuples are formed for the shape that we expect; a table that somebody altered would get
 * malformed ones and bring the server down at the next read (correctness A8).
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "utils/rel.h"

#include "base/errors.h"
#include "base/secctx.h"
#include "source/internal.h"

static const Oid log_fixed_types[PLN_LOG_FIXED] = {
	XID8OID, INT8OID, INT4OID, INT2OID, INT2OID
};

static const Oid header_types[] = {
	INT8OID, INT4OID, XID8OID, INT8OID, CHAROID, INT4OID, INT2OID, REGCLASSOID, INT8OID,
	INT8OID, XIDOID, INT8OID, OIDOID, TIMESTAMPTZOID, TEXTOID
};

/* NULL = a plain heap of ours that runs no code of others */
static const char *
foreign_trait(Relation rel)
{
	if (rel->rd_rel->relkind != RELKIND_RELATION)
		return "is not a table";
	if (rel->rd_rel->relowner != pln_extension_owner())
		return "belongs to another role";
	if (rel->rd_rel->relam != HEAP_TABLE_AM_OID)
		return "is not a heap";
	if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		return "is not permanent";
	if (rel->rd_rel->relhasrules || rel->rd_rel->relhastriggers)
		return "has rules or triggers";
	if (rel->rd_rel->relispartition || rel->rd_rel->relhassubclass)
		return "takes part in inheritance";
	if (rel->rd_att->constr != NULL &&
		(rel->rd_att->constr->num_check > 0 || rel->rd_att->constr->has_generated_stored))
		return "has constraints or generated columns";
	return NULL;
}

static const char *
log_shape_problem(Relation log, TupleDesc desc, int ncols, const AttrNumber *attnums)
{
	TupleDesc	have = RelationGetDescr(log);
	const char *problem = foreign_trait(log);
	int			i;

	if (problem != NULL)
		return problem;
	if (log->rd_rel->relhasindex && RelationGetIndexList(log) != NIL)
		return "has an index";
	if (have->natts != PLN_LOG_FIXED + ncols)
		return "has another number of columns";
	for (i = 0; i < have->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(have, i);
		Oid			type;

		if (i < PLN_LOG_FIXED)
			type = log_fixed_types[i];
		else
		{
			AttrNumber	attnum = attnums[i - PLN_LOG_FIXED];

			if (attnum <= 0 || attnum > desc->natts ||
				TupleDescAttr(desc, attnum - 1)->attisdropped)
				return "has a column that the source lost";
			type = TupleDescAttr(desc, attnum - 1)->atttypid;
		}
		if (att->attisdropped || att->atttypid != type)
			return "has a column of another type";
	}
	return NULL;
}

Relation
pln_log_open(Oid log, LOCKMODE lockmode, TupleDesc desc, int ncols,
			 const AttrNumber *attnums, const char **problem)
{
	Relation	rel = OidIsValid(log) ? try_relation_open(log, lockmode) : NULL;

	*problem = NULL;
	if (rel == NULL)
	{
		*problem = "does not exist";
		return NULL;
	}
	*problem = log_shape_problem(rel, desc, ncols, attnums);
	if (*problem == NULL)
		return rel;
	relation_close(rel, lockmode);
	return NULL;
}

Relation
pln_headers_open(LOCKMODE lockmode)
{
	Oid			table = pln_source_catalog("log_headers");
	Relation	rel;
	TupleDesc	desc;
	bool		good;
	int			i;

	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("table \"pipeline_internal.log_headers\" does not exist"),
				 errhint("CREATE EXTENSION pipeline;")));
	rel = table_open(table, lockmode);
	desc = RelationGetDescr(rel);
	good = foreign_trait(rel) == NULL && desc->natts == lengthof(header_types);
	for (i = 0; good && i < desc->natts; i++)
		good = !TupleDescAttr(desc, i)->attisdropped &&
			TupleDescAttr(desc, i)->atttypid == header_types[i];
	if (!good)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("table \"pipeline_internal.log_headers\" is not as the extension made it"),
				 errhint("Undo what was altered, or drop and create the extension.")));
	return rel;
}

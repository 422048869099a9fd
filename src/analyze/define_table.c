/*
 * define_table.c
 *	  The table behind a streaming table.
 *
 * Created from the column list or the query; later definitions may add columns (old rows
 * read NULL there), and may not change a type except in a full refresh (dialect-reference
 * §5.8).
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "analyze/define_internal.h"
#include "analyze/query.h"
#include "base/errors.h"
#include "base/ident.h"
#include "ivm/wrap.h"
#include "source/source.h"

typedef struct Column
{
	char	   *name;
	Oid			type;
	int32		typmod;
	Oid			collation;
	PlnColumnDef *def;			/* NULL when it comes from the query alone */
	bool		in_query;
} Column;

typedef struct Columns
{
	int			n;
	Column	   *list;
} Columns;

static Column *
find_column(Columns *columns, const char *name)
{
	int			i;

	for (i = 0; i < columns->n; i++)
	{
		if (strcmp(columns->list[i].name, name) == 0)
			return &columns->list[i];
	}
	return NULL;
}

static void
check_query_names(PlnProgram *program, PlnNode *node, Query *query)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);

		if (te->resjunk)
			continue;
		if (strcmp(te->resname, "?column?") == 0)
			ereport(ERROR,
					(errcode(PLN_ERR_SYNTAX),
					 errmsg("column %d of dataset \"%s\" has no name", te->resno, node->name),
					 errhint("Give the expression an alias: ... AS name."),
					 pln_script_errposition(program->script, node->sql->location)));
		foreach(lc2, query->targetList)
		{
			TargetEntry *other = lfirst_node(TargetEntry, lc2);

			if (other->resno < te->resno && !other->resjunk &&
				strcmp(other->resname, te->resname) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 errmsg("column \"%s\" of dataset \"%s\" is given twice",
								te->resname, node->name),
						 pln_script_errposition(program->script, node->sql->location)));
		}
	}
}

/* Has the list types, or does it hold expectations (and names) only? */
static bool
has_typed_columns(PlnCreateDataset *decl)
{
	ListCell   *lc;

	foreach(lc, decl->columns)
	{
		if (((PlnColumnDef *) lfirst(lc))->type != NULL)
			return true;
	}
	return false;
}

static void
declared_columns(PlnProgram *program, PlnNode *node, Columns *columns)
{
	ListCell   *lc;

	columns->list = palloc0(sizeof(Column) * list_length(node->decl->columns));
	foreach(lc, node->decl->columns)
	{
		PlnColumnDef *def = lfirst(lc);
		Column	   *column = &columns->list[columns->n];

		if (def->type == NULL)
			ereport(ERROR,
					(errcode(PLN_ERR_SYNTAX),
					 errmsg("column \"%s\" of streaming table \"%s\" has no type",
							def->name, node->name),
					 pln_script_errposition(program->script, def->location)));
		if (find_column(columns, def->name) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("column \"%s\" specified more than once", def->name),
					 pln_script_errposition(program->script, def->location)));
		column->name = def->name;
		typenameTypeIdAndMod(NULL, def->type, &column->type, &column->typmod);
		column->collation = get_typcollation(column->type);
		column->def = def;
		columns->n++;
	}
}

static void
add_query_columns(PlnProgram *program, PlnNode *node, Query *query, Columns *columns)
{
	bool		declared = columns->n > 0;
	ListCell   *lc;

	if (!declared)
		columns->list = palloc0(sizeof(Column) * Max(list_length(query->targetList), 1));
	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);
		Column	   *column;

		if (te->resjunk)
			continue;
		column = find_column(columns, te->resname);
		if (column == NULL && declared)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("query column \"%s\" is not in the column list of streaming table "
							 "\"%s\"",
							te->resname, node->name),
					 errhint("Add it to the list, or leave the list out."),
					 pln_script_errposition(program->script, node->sql->location)));
		if (column == NULL)
		{
			column = &columns->list[columns->n++];
			column->name = te->resname;
			column->type = exprType((Node *) te->expr);
			column->typmod = exprTypmod((Node *) te->expr);
			column->collation = exprCollation((Node *) te->expr);
		}
		else if (column->def->generated != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_GENERATED_ALWAYS),
					 errmsg("query column \"%s\" is a generated column", te->resname),
					 pln_script_errposition(program->script, column->def->location)));
		column->in_query = true;
	}
}

static char *
column_sql(Column *column)
{
	StringInfoData sql;
	PlnColumnDef *def = column->def;

	initStringInfo(&sql);
	appendStringInfo(&sql, "%s %s", quote_identifier(column->name),
					 format_type_extended(column->type, column->typmod,
										  FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
	if (OidIsValid(column->collation) && column->collation != get_typcollation(column->type))
		appendStringInfo(&sql, " COLLATE %s", generate_collation_name(column->collation));
	if (def == NULL)
		return sql.data;
	if (def->not_null)
		appendStringInfoString(&sql, " NOT NULL");
	if (def->is_identity)
	{
		ListCell   *lc;

		appendStringInfo(&sql, " GENERATED %s AS IDENTITY",
						 def->identity_always ? "ALWAYS" : "BY DEFAULT");
		if (def->identity_options != NIL)
		{
			appendStringInfoString(&sql, " (");
			foreach(lc, def->identity_options)
			{
				DefElem    *option = lfirst_node(DefElem, lc);

				appendStringInfo(&sql, "%s %s ",
								 strcmp(option->defname, "start") == 0 ? "START WITH" :
								 "INCREMENT BY", defGetString(option));
			}
			appendStringInfoChar(&sql, ')');
		}
	}
	if (def->generated != NULL)
		appendStringInfo(&sql, " GENERATED ALWAYS AS (%s) STORED", def->generated->original);
	if (def->default_expr != NULL)
		appendStringInfo(&sql, " DEFAULT %s", def->default_expr->original);
	return sql.data;
}

static void
create_table(PlnProgram *program, PlnNode *node, Columns *columns)
{
	StringInfoData sql;
	char	   *relation = pln_quote_qualified(node->schema, node->stored_name);
	int			i;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE TABLE %s (", relation);
	for (i = 0; i < columns->n; i++)
		appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "", column_sql(&columns->list[i]));
	appendStringInfoChar(&sql, ')');
	pln_define_ddl(sql.data);
	if (node->decl->is_private)
		pln_define_move_private(node, "TABLE");
	node->dataset->relid = get_relname_relid(node->stored_name,
											 get_namespace_oid(node->stored_schema, false));
	PLN_ENSURE(OidIsValid(node->dataset->relid));
	if (node->decl->is_private)
		pln_revoke_all(node->dataset->relid);
	node->dataset->fingerprint = NULL;
	node->dataset->filled = false;
	node->created = true;
	pln_source_register_own(node->dataset->relid, true);
	pln_define_note(program, node, "new", "created, filled by this update");
}

static void
raise_retype(PlnProgram *program, PlnNode *node, Column *column, Form_pg_attribute att)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("column \"%s\" of streaming table \"%s\" is %s and cannot become %s",
					column->name, node->name,
					format_type_with_typemod(att->atttypid, att->atttypmod),
					format_type_with_typemod(column->type, column->typmod)),
			 errdetail("Rows that were read before keep their type."),
			 errhint("Cast the column in the query, or refresh the table fully: "
					 "CALL pipeline.refresh(%s, full_refresh => true);",
					 pln_quote_literal(pln_node_display_name(node))),
			 pln_script_errposition(program->script,
									column->def ? column->def->location :
									node->sql ? node->sql->location : node->decl->stmt.location)));
}

/* New columns are added, others must fit what the table has. */
static void
adapt_table(PlnProgram *program, PlnNode *node, Columns *columns)
{
	char	   *relation = pln_quote_qualified(node->stored_schema, node->stored_name);
	Oid			relid = node->dataset->relid;
	int			i;

	for (i = 0; i < columns->n; i++)
	{
		Column	   *column = &columns->list[i];
		AttrNumber	attno = get_attnum(relid, column->name);
		Relation	rel;
		Form_pg_attribute att;

		if (attno == InvalidAttrNumber)
		{
			pln_define_ddl(psprintf("ALTER TABLE %s ADD COLUMN %s", relation,
										  column_sql(column)));
			pln_define_note(program, node, psprintf("column %s added", column->name),
							"old rows keep NULL there");
			continue;
		}
		rel = table_open(relid, AccessShareLock);
		att = TupleDescAttr(RelationGetDescr(rel), attno - 1);
		if (att->atttypid == column->type && att->atttypmod == column->typmod)
			;
		else if (column->def == NULL && att->atttypmod < 0 &&
				 can_coerce_type(1, &column->type, &att->atttypid, COERCION_IMPLICIT))
			;
		else if (node->full_refresh)
			node->retype = lappend(node->retype,
								   psprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s USING NULL",
											relation, quote_identifier(column->name),
											format_type_extended(column->type, column->typmod,
																 FORMAT_TYPE_TYPEMOD_GIVEN |
																 FORMAT_TYPE_FORCE_QUALIFY)));
		else
			raise_retype(program, node, column, att);
		/* what the query is coerced to */
		if (node->retype == NIL || !node->full_refresh)
		{
			column->type = att->atttypid;
			column->typmod = att->atttypmod;
			column->collation = att->attcollation;
		}
		table_close(rel, AccessShareLock);
	}
}

static Query *
coerce_query(Query *query, Columns *columns)
{
	int			n = list_length(query->targetList);
	char	  **names = palloc(sizeof(char *) * Max(n, 1));
	Oid		   *types = palloc(sizeof(Oid) * Max(n, 1));
	int32	   *typmods = palloc(sizeof(int32) * Max(n, 1));
	Oid		   *collations = palloc(sizeof(Oid) * Max(n, 1));
	ListCell   *lc;

	n = 0;
	foreach(lc, query->targetList)
	{
		TargetEntry *te = lfirst_node(TargetEntry, lc);
		Column	   *column;

		if (te->resjunk)
			continue;
		column = find_column(columns, te->resname);
		names[n] = te->resname;
		types[n] = column->type;
		typmods[n] = column->typmod;
		collations[n] = column->collation;
		n++;
	}
	return pln_query_coerce(query, n, names, types, typmods, collations);
}

Query *
pln_define_table(PlnProgram *program, PlnNode *node, Query *query)
{
	Columns		columns = {0, NULL};

	if (has_typed_columns(node->decl))
		declared_columns(program, node, &columns);
	if (query != NULL)
	{
		check_query_names(program, node, query);
		add_query_columns(program, node, query, &columns);
	}
	if (columns.n == 0)
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("streaming table \"%s\" has neither columns nor a query", node->name),
				 pln_script_errposition(program->script, node->decl->stmt.location)));
	if (OidIsValid(node->dataset->relid))
		adapt_table(program, node, &columns);
	else
		create_table(program, node, &columns);
	return query ? coerce_query(query, &columns) : NULL;
}

/*
 * classify.c
 *	  What a query's answer depends on besides the rows it reads.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "ivm/classify.h"
#include "source/stream_ref.h"

static PlnReason *
reason(const char *code, const char *operator_name, const char *text)
{
	PlnReason  *made = palloc0(sizeof(PlnReason));

	made->code = code;
	made->operator_name = operator_name;
	made->text = pstrdup(text);
	return made;
}

/*
 * Built-in STABLE functions whose result is not fixed by the pinned settings: the clock,
 * and what reads the catalog, other tables or the session.
 */
static bool
reads_more_than_settings(Oid funcid)
{
	char	   *name = get_func_name(funcid);

	return funcid == F_NOW || funcid == F_STATEMENT_TIMESTAMP ||
		funcid == F_TRANSACTION_TIMESTAMP || funcid == F_AGE_TIMESTAMPTZ ||
		funcid == F_AGE_TIMESTAMP ||
		strncmp(name, "pg_", 3) == 0 || strncmp(name, "has_", 4) == 0 ||
		strncmp(name, "txid_", 5) == 0 || strncmp(name, "current_", 8) == 0 ||
		strstr(name, "_to_xml") != NULL || strncmp(name, "inet_", 5) == 0;
}

static bool
check_function(Oid funcid, void *context)
{
	PlnReason **found = context;
	char		volatility = func_volatile(funcid);

	if (volatility == PROVOLATILE_IMMUTABLE)
		return false;
	if (get_func_namespace(funcid) != PG_CATALOG_NAMESPACE)
	{
		if (funcid == pln_read_files_function())
			*found = reason("INPUT_NOT_IN_DELTA", "read_files", "it reads files");
		else if (strcmp(get_namespace_name(get_func_namespace(funcid)), "pipeline") == 0 &&
				 volatility == PROVOLATILE_STABLE)
			return false;		/* dialect functions of ours depend on pinned settings only */
		else if (strcmp(get_func_name(funcid), "check_row") == 0 &&
				 strcmp(get_namespace_name(get_func_namespace(funcid)), "pipeline") == 0)
			return false;		/* counts, and answers by the row alone */
		else
			*found = reason("UDF_NOT_DETERMINISTIC", get_func_name(funcid),
							psprintf("function %s is not IMMUTABLE", get_func_name(funcid)));
		return true;
	}
	if (volatility == PROVOLATILE_VOLATILE)
	{
		*found = reason("EXPRESSION_NOT_DETERMINISTIC", get_func_name(funcid),
						psprintf("function %s is volatile", get_func_name(funcid)));
		return true;
	}
	if (reads_more_than_settings(funcid))
	{
		*found = reason("TIME_FUNCTION", get_func_name(funcid),
						psprintf("the result of %s changes by itself", get_func_name(funcid)));
		return true;
	}
	return false;
}

static bool
self_changing_walker(Node *node, PlnReason **found)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, check_function, found))
		return true;
	if (IsA(node, SQLValueFunction) &&
		((SQLValueFunction *) node)->op <= SVFOP_LOCALTIMESTAMP_N)
	{
		*found = reason("TIME_FUNCTION", NULL, "it uses the current time");
		return true;
	}
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_FOREIGN_TABLE)
		{
			*found = reason("INPUT_NOT_IN_DELTA", NULL,
							psprintf("%s is a foreign table", get_rel_name(rte->relid)));
			return true;
		}
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, self_changing_walker, found,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, self_changing_walker, found);
}

PlnReason *
pln_classify_self_changing(Query *query)
{
	PlnReason  *found = NULL;

	(void) self_changing_walker((Node *) query, &found);
	return found;
}

/*
 * query.c
 *	  Parse analysis of resolved queries.
 *
 * The columns of _metadata are not in the column list of a file source, so that "*" does
 * not show them.  A column-reference hook hands out Vars beyond the last column, and once
 * analysis is over the range-table entry gets the columns that these Vars mean.
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/analyze.h"
#include "parser/parse_func.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "parser/scansup.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "analyze/query.h"
#include "base/errors.h"
#include "executor/executor.h"
#include "files/files.h"
#include "source/stream_ref.h"

int
pln_sql_errposition(PlnSql *sql, int text_location)
{
	if (text_location < 0)
		return 0;
	return errposition(pg_mbstrlen_with_len(sql->text, text_location) + 1);
}

/* ---- _metadata ---- */

static Var *
metadata_var(ParseNamespaceItem *item, int level, int field, int location)
{
	RangeTblFunction *rtfunc = linitial_node(RangeTblFunction, item->p_rte->functions);
	Oid			type = pln_metadata_columns[field].type;
	Var		   *var;

	var = makeVar(item->p_rtindex, list_length(rtfunc->funccolnames) + field + 1, type, -1,
				  type == TEXTOID ? DEFAULT_COLLATION_OID : InvalidOid, level);
	var->location = location;
	return var;
}

/* The file source that a reference means: the one with this alias, or the only one. */
static ParseNamespaceItem *
find_file_source(ParseState *pstate, const char *alias, int *level)
{
	*level = 0;
	for (; pstate != NULL; pstate = pstate->parentParseState, (*level)++)
	{
		ListCell   *lc;

		foreach(lc, pstate->p_namespace)
		{
			ParseNamespaceItem *item = lfirst(lc);

			if (pln_rte_is_read_files(item->p_rte) &&
				(alias == NULL || strcmp(item->p_names->aliasname, alias) == 0))
				return item;
		}
	}
	return NULL;
}

/* _metadata as a whole: a JSON object of its fields. */
static Node *
metadata_object(ParseState *pstate, ParseNamespaceItem *item, int level, int location)
{
	List	   *args = NIL;
	int			i;

	for (i = 0; i < PLN_METADATA_COLUMNS; i++)
	{
		args = lappend(args, makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
									   CStringGetTextDatum(pln_metadata_columns[i].name),
									   false, false));
		args = lappend(args, metadata_var(item, level, i, location));
	}
	return ParseFuncOrColumn(pstate, list_make2(makeString("pg_catalog"),
												makeString("jsonb_build_object")),
							 args, pstate->p_last_srf, NULL, false, location);
}

static Node *
metadata_hook(ParseState *pstate, ColumnRef *cref, Node *var)
{
	ParseNamespaceItem *item;
	const char *names[3];
	int			n = list_length(cref->fields);
	int			at;
	int			level;
	int			i;
	Node	   *found;

	if (var != NULL || n > 3)
		return NULL;
	if (n == 1 && IsA(linitial(cref->fields), String))
	{
		/* names mean the same in any case where the dialect comes from; only what the
		 * server does not find by its own rules gets here */
		char	   *exact = strVal(linitial(cref->fields));
		char	   *folded = downcase_identifier(exact, strlen(exact), false, false);

		if (strcmp(exact, folded) != 0 &&
			(found = colNameToVar(pstate, folded, false, cref->location)) != NULL)
			return found;
	}
	for (i = 0; i < n; i++)
	{
		if (!IsA(list_nth(cref->fields, i), String))
			return NULL;
		names[i] = strVal(list_nth(cref->fields, i));
	}
	/* _metadata | _metadata.f | alias._metadata | alias._metadata.f */
	at = strcmp(names[0], "_metadata") == 0 ? 0 : 1;
	if (at >= n || strcmp(names[at], "_metadata") != 0 || n - at > 2)
		return NULL;
	item = find_file_source(pstate, at == 1 ? names[0] : NULL, &level);
	if (item == NULL)
		return NULL;
	if (n - at == 1)
		return metadata_object(pstate, item, level, cref->location);
	for (i = 0; i < PLN_METADATA_COLUMNS; i++)
	{
		if (strcmp(pln_metadata_columns[i].name, names[at + 1]) == 0)
			return (Node *) metadata_var(item, level, i, cref->location);
	}
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("_metadata has no field \"%s\"", names[at + 1]),
			 errhint("Its fields are file_path, file_name, file_size, file_modification_time, "
					 "file_block_start and file_block_length."),
			 parser_errposition(pstate, cref->location)));
	return NULL;				/* keep compiler quiet */
}

static void
setup_hooks(ParseState *pstate, void *arg)
{
	pstate->p_post_columnref_hook = metadata_hook;
}

/* Give the Vars that the hook made their columns. */
static bool
add_metadata_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		if (pln_rte_is_read_files(rte))
		{
			RangeTblFunction *rtfunc = linitial_node(RangeTblFunction, rte->functions);
			int			i;

			for (i = 0; i < PLN_METADATA_COLUMNS; i++)
			{
				Oid			type = pln_metadata_columns[i].type;
				char	   *name = psprintf("_metadata_%s", pln_metadata_columns[i].name);

				rtfunc->funccolnames = lappend(rtfunc->funccolnames, makeString(name));
				rtfunc->funccoltypes = lappend_oid(rtfunc->funccoltypes, type);
				rtfunc->funccoltypmods = lappend_int(rtfunc->funccoltypmods, -1);
				rtfunc->funccolcollations =
					lappend_oid(rtfunc->funccolcollations,
								type == TEXTOID ? DEFAULT_COLLATION_OID : InvalidOid);
				rte->eref->colnames = lappend(rte->eref->colnames, makeString(pstrdup(name)));
			}
			rtfunc->funccolcount += PLN_METADATA_COLUMNS;
		}
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, add_metadata_walker, context,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, add_metadata_walker, context);
}

/* ---- analysis ---- */

static void
refuse(PlnSql *sql, const char *what, const char *hint, int location)
{
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("%s", what),
			 hint ? errhint("%s", hint) : 0,
			 pln_sql_errposition(sql, location)));
}

/* What ends with the session cannot feed what stays; core refuses it as well. */
static bool
refuse_temporary(Node *node, PlnSql *sql)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		if (rte->rtekind == RTE_RELATION &&
			get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP)
			refuse(sql, psprintf("the query of a dataset must not use the temporary relation "
								 "\"%s\"", get_rel_name(rte->relid)),
				   "It ends with the session; use an ordinary table or view.", -1);
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, refuse_temporary, sql, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, refuse_temporary, sql);
}

static void
check_common(PlnSql *sql, Query *query)
{
	if (query->commandType != CMD_SELECT || query->utilityStmt != NULL)
		refuse(sql, "the query of a dataset must be a SELECT", NULL, -1);
	if (query->hasModifyingCTE)
		refuse(sql, "the query of a dataset must not change data", NULL, -1);
	if (query->rowMarks != NIL)
		refuse(sql, "the query of a dataset must not lock rows", "Remove FOR UPDATE.", -1);
	(void) refuse_temporary((Node *) query, sql);
}

Query *
pln_analyze_query(PlnScript *script, PlnSql *sql, RawStmt *raw)
{
	PlnErrorScope scope;
	Query	   *query;

	pln_error_scope_begin(&scope, script, sql);
	query = parse_analyze_withcb(raw, sql->text, setup_hooks, NULL, NULL);
	check_common(sql, query);
	(void) add_metadata_walker((Node *) query, NULL);
	pln_error_scope_end(&scope);
	return query;
}

/* ---- where a stream may stand ---- */

typedef struct StreamCheck
{
	PlnScript  *script;
	PlnSql	   *sql;
	const char *dataset;
	Oid			method;
	Oid			read_files;
} StreamCheck;

static bool query_streams(StreamCheck *check, Query *query, List *outer);

/* With the cursor on the first STREAM of the query, where no better place is known. */
static void
refuse_stream(StreamCheck *check, const char *what, const char *hint, int location)
{
	PlnStreamRef *ref = check->sql->streams ? linitial(check->sql->streams) : NULL;

	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("%s", what),
			 errdetail("In the query of streaming table \"%s\".", check->dataset),
			 hint ? errhint("%s", hint) : 0,
			 location >= 0 ? pln_sql_errposition(check->sql, location) :
			 pln_script_errposition(check->script,
									ref ? ref->location : check->sql->location)));
}

static bool
rte_streams(StreamCheck *check, Query *query, RangeTblEntry *rte, List *outer)
{
	if (rte->rtekind == RTE_RELATION)
		return rte->tablesample != NULL && rte->tablesample->tsmhandler == check->method;
	if (rte->rtekind == RTE_SUBQUERY)
		return query_streams(check, rte->subquery, lcons(query, list_copy(outer)));
	if (rte->rtekind == RTE_FUNCTION && pln_rte_is_read_files(rte))
	{
		List	   *sources = pln_query_sources(query);
		ListCell   *lc;

		foreach(lc, sources)
		{
			PlnStreamSource *source = lfirst(lc);

			if (source->rte == rte)
				return source->kind == PLN_REF_STREAM_FILES;
		}
		return false;
	}
	if (rte->rtekind == RTE_CTE)
	{
		Query	   *holder = rte->ctelevelsup == 0 ? query :
			list_nth(outer, rte->ctelevelsup - 1);
		ListCell   *lc;

		if (rte->self_reference)
			return false;
		foreach(lc, holder->cteList)
		{
			CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

			if (strcmp(cte->ctename, rte->ctename) == 0)
			{
				List	   *above = list_copy_tail(outer, rte->ctelevelsup);

				return query_streams(check, castNode(Query, cte->ctequery),
									 rte->ctelevelsup == 0 ?
									 lcons(query, list_copy(outer)) :
									 lcons(holder, above));
			}
		}
	}
	return false;
}

/* New rows come from a log, where they have no system columns. */
static void
refuse_system_columns(StreamCheck *check, Query *query, int rtindex)
{
	Bitmapset  *attnos = NULL;
	int			attno;

	pull_varattnos((Node *) query->targetList, rtindex, &attnos);
	pull_varattnos((Node *) query->jointree, rtindex, &attnos);
	attno = bms_next_member(attnos, -1);
	if (attno >= 0 && attno + FirstLowInvalidHeapAttributeNumber < 0)
		refuse_stream(check, "system columns of a stream cannot be read",
					  "Leave out ctid, xmin, tableoid and the like.", -1);
}

/* Streams under a FROM item; raises where one stands on a side that an outer join can fill. */
static int
from_streams(StreamCheck *check, Query *query, Node *item, List *outer)
{
	if (IsA(item, RangeTblRef))
	{
		int			rtindex = ((RangeTblRef *) item)->rtindex;
		RangeTblEntry *rte = rt_fetch(rtindex, query->rtable);

		if (!rte_streams(check, query, rte, outer))
			return 0;
		if (rte->rtekind == RTE_RELATION)
			refuse_system_columns(check, query, rtindex);
		return 1;
	}
	if (IsA(item, FromExpr))
	{
		ListCell   *lc;
		int			n = 0;

		foreach(lc, ((FromExpr *) item)->fromlist)
			n += from_streams(check, query, lfirst(lc), outer);
		return n;
	}
	else
	{
		JoinExpr   *join = castNode(JoinExpr, item);
		int			left = from_streams(check, query, join->larg, outer);
		int			right = from_streams(check, query, join->rarg, outer);

		if ((join->jointype == JOIN_LEFT && right > 0) ||
			(join->jointype == JOIN_RIGHT && left > 0) ||
			(join->jointype == JOIN_FULL && left + right > 0))
			refuse_stream(check,
						  "a stream stands on a side of an outer join that can be filled with "
								 "nulls",
				   "Put the stream on the preserved side, or use a materialized view.", -1);
		return left + right;
	}
}

static bool
sublink_walker(Node *node, StreamCheck *check)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
	{
		List	   *sources = pln_query_sources(castNode(Query, ((SubLink *) node)->subselect));
		ListCell   *lc;

		foreach(lc, sources)
		{
			if (((PlnStreamSource *) lfirst(lc))->kind != PLN_REF_BATCH_FILES)
				refuse_stream(check, "a stream cannot be read in a subquery expression",
					   "Join it in FROM.", ((SubLink *) node)->location);
		}
		return false;
	}
	return expression_tree_walker(node, sublink_walker, check);
}

/* OFFSET 0 is a fence (resolve.c puts one around checked views), not a limit. */
static bool
is_zero(Node *offset)
{
	Node	   *value = offset ? eval_const_expressions(NULL, offset) : NULL;

	return value == NULL ||
		(IsA(value, Const) && !((Const *) value)->constisnull &&
		 DatumGetInt64(((Const *) value)->constvalue) == 0);
}

static void
refuse_stateful(StreamCheck *check, Query *query)
{
	const char *view = "Use a materialized view, or read the table without STREAM.";

	if (query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL ||
		query->havingQual != NULL)
		refuse_stream(check, "aggregation over a stream is not supported yet", view, -1);
	if (query->hasWindowFuncs)
		refuse_stream(check, "window functions over a stream are not supported",
			   "Keep the latest row per key with AUTO CDC, or use a materialized view.", -1);
	if (query->distinctClause != NIL)
		refuse_stream(check, "DISTINCT over a stream is not supported yet", view, -1);
	if (query->limitCount != NULL || !is_zero(query->limitOffset))
		refuse_stream(check, "LIMIT over a stream is not supported", view, -1);
	if (query->hasRecursive)
		refuse_stream(check, "WITH RECURSIVE over a stream is not supported", view, -1);
}

static bool
setop_streams(StreamCheck *check, Query *query, Node *node, List *outer)
{
	SetOperationStmt *setop;
	bool		left;
	bool		right;

	if (IsA(node, RangeTblRef))
		return rte_streams(check, query,
						   rt_fetch(((RangeTblRef *) node)->rtindex, query->rtable), outer);
	setop = castNode(SetOperationStmt, node);
	left = setop_streams(check, query, setop->larg, outer);
	right = setop_streams(check, query, setop->rarg, outer);
	if (!left && !right)
		return false;
	if (setop->op != SETOP_UNION || !setop->all)
		refuse_stream(check, "a stream can only be combined with UNION ALL",
			   "Use UNION ALL, or a materialized view.", -1);
	if (left != right)
		refuse_stream(check, "UNION ALL of a stream with a batch query would repeat the batch rows",
			   "Read every branch with STREAM.", -1);
	return true;
}

/* Does the query yield a stream?  Raises where it does so in a way that cannot be run. */
static bool
query_streams(StreamCheck *check, Query *query, List *outer)
{
	int			n;

	if (query->setOperations != NULL)
	{
		bool		streams = setop_streams(check, query, query->setOperations, outer);

		if (streams)
			refuse_stateful(check, query);
		return streams;
	}
	n = from_streams(check, query, (Node *) query->jointree, outer);
	(void) sublink_walker((Node *) query->targetList, check);
	(void) sublink_walker((Node *) query->jointree, check);
	if (n > 1)
		refuse_stream(check, "joining two streams is not supported yet",
			   "Read one side without STREAM, or use a materialized view.", -1);
	if (n > 0)
		refuse_stateful(check, query);
	return n > 0;
}

void
pln_check_streaming_query(PlnScript *script, PlnSql *sql, Query *query, const char *dataset)
{
	PlnErrorScope scope;
	StreamCheck check;

	pln_error_scope_begin(&scope, script, sql);
	check.script = script;
	check.sql = sql;
	check.dataset = dataset;
	check.method = pln_stream_method();
	check.read_files = pln_read_files_function();
	if (!query_streams(&check, query, NIL))
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("streaming table \"%s\" reads no stream", dataset),
				 errhint("Write FROM STREAM(...), or create a materialized view."),
				 pln_script_errposition(script, sql->location)));
	pln_error_scope_end(&scope);
}

void
pln_check_batch_query(PlnScript *script, PlnSql *sql, Query *query, const char *dataset)
{
	ListCell   *lc;

	foreach(lc, pln_query_sources(query))
	{
		PlnStreamSource *source = lfirst(lc);

		if (source->kind != PLN_REF_BATCH_FILES)
		{
			PlnStreamRef *ref = sql->streams ? linitial(sql->streams) : NULL;

			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("\"%s\" cannot read a stream: only streaming tables can", dataset),
					 errhint("Leave out STREAM, or create a streaming table."),
					 pln_script_errposition(script, ref ? ref->location : sql->location)));
		}
	}
}

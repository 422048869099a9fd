/*
 * stream_ref.c
 *	  Which range-table entries of an analysed query are read as a stream.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/rel.h"

#include "base/errors.h"
#include "base/ident.h"
#include "source/stream_ref.h"

typedef struct CollectContext
{
	List	   *sources;
	List	   *relids;
	int			nfiles;
	Oid			stream_method;
	Oid			read_files;
} CollectContext;

Oid
pln_stream_method(void)
{
	Oid			argtypes[1] = {INTERNALOID};

	return LookupFuncName(list_make2(makeString("pipeline"), makeString("stream")),
						  1, argtypes, false);
}

Oid
pln_read_files_function(void)
{
	Oid			argtypes[2] = {TEXTOID, JSONBOID};

	return LookupFuncName(list_make2(makeString("pipeline"), makeString("read_files")),
						  2, argtypes, false);
}

static bool
is_stream(RangeTblEntry *rte, Oid method)
{
	return rte->rtekind == RTE_RELATION && rte->tablesample != NULL &&
		rte->tablesample->tsmhandler == method;
}

static FuncExpr *
read_files_call(RangeTblEntry *rte, Oid function)
{
	RangeTblFunction *rtfunc;

	if (rte->rtekind != RTE_FUNCTION || list_length(rte->functions) != 1)
		return NULL;
	rtfunc = linitial_node(RangeTblFunction, rte->functions);
	if (!IsA(rtfunc->funcexpr, FuncExpr) ||
		((FuncExpr *) rtfunc->funcexpr)->funcid != function)
		return NULL;
	return (FuncExpr *) rtfunc->funcexpr;
}

bool
pln_rte_is_stream(RangeTblEntry *rte)
{
	return is_stream(rte, pln_stream_method());
}

bool
pln_rte_is_read_files(RangeTblEntry *rte)
{
	return read_files_call(rte, pln_read_files_function()) != NULL;
}

/* Constant argument; parse analysis leaves casts of literals unfolded only for non-text. */
static Const *
constant_argument(Node *arg)
{
	if (arg != NULL && IsA(arg, NamedArgExpr))
		arg = (Node *) ((NamedArgExpr *) arg)->arg;
	if (arg == NULL || !IsA(arg, Const) || ((Const *) arg)->constisnull)
		return NULL;
	return (Const *) arg;
}

/* A member of a JSON object is there and not false. */
static bool
option_is_on(Jsonb *options, const char *name)
{
	Datum		value;
	char	   *shown;
	LOCAL_FCINFO(fcinfo, 2);

	InitFunctionCallInfoData(*fcinfo, NULL, 2, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = JsonbPGetDatum(options);
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = CStringGetTextDatum(name);
	fcinfo->args[1].isnull = false;
	value = jsonb_object_field_text(fcinfo);
	if (fcinfo->isnull)
		return false;
	shown = TextDatumGetCString(value);
	return pg_strcasecmp(shown, "false") != 0;
}

static bool
option_equals(Jsonb *options, const char *name, const char *wanted)
{
	Datum		value;
	LOCAL_FCINFO(fcinfo, 2);

	InitFunctionCallInfoData(*fcinfo, NULL, 2, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = JsonbPGetDatum(options);
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = CStringGetTextDatum(name);
	fcinfo->args[1].isnull = false;
	value = jsonb_object_field_text(fcinfo);
	return !fcinfo->isnull && pg_strcasecmp(TextDatumGetCString(value), wanted) == 0;
}

static void
add_stream(RangeTblEntry *rte, CollectContext *cxt)
{
	PlnStreamSource *source = palloc0(sizeof(PlnStreamSource));
	Const	   *arg = constant_argument(linitial(rte->tablesample->args));
	Jsonb	   *options;
	char	   *json;
	ListCell   *lc;

	source->kind = PLN_REF_STREAM_TABLE;
	source->rte = rte;
	source->relid = rte->relid;
	foreach(lc, cxt->sources)
	{
		PlnStreamSource *other = lfirst(lc);

		if (other->kind == PLN_REF_STREAM_TABLE && other->relid == rte->relid)
			source->ordinal++;
	}
	PLN_ENSURE(arg != NULL);
	json = TextDatumGetCString(arg->constvalue);
	options = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json)));
	source->options.skip_change_commits = option_is_on(options, "skipchangecommits");
	source->options.only_inserts = option_is_on(options, "onlyinserts");
	source->options.starting_latest = option_equals(options, "startingversion", "latest");
	cxt->sources = lappend(cxt->sources, source);
}

static void
add_files(RangeTblEntry *rte, FuncExpr *call, CollectContext *cxt)
{
	PlnStreamSource *source = palloc0(sizeof(PlnStreamSource));
	Const	   *path = constant_argument(linitial(call->args));
	Const	   *options = constant_argument(lsecond(call->args));

	PLN_ENSURE(path != NULL && options != NULL);
	source->rte = rte;
	source->ordinal = cxt->nfiles++;
	source->path = TextDatumGetCString(path->constvalue);
	source->options_json = DatumGetCString(DirectFunctionCall1(jsonb_out, options->constvalue));
	source->kind = option_is_on(DatumGetJsonbP(options->constvalue), "stream") ?
		PLN_REF_STREAM_FILES : PLN_REF_BATCH_FILES;
	cxt->sources = lappend(cxt->sources, source);
}

static bool
collect_walker(Node *node, CollectContext *cxt)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;
		FuncExpr   *call;

		if (rte->rtekind == RTE_RELATION && rte->relkind != RELKIND_VIEW)
			cxt->relids = list_append_unique_oid(cxt->relids, rte->relid);
		if (is_stream(rte, cxt->stream_method))
			add_stream(rte, cxt);
		else if ((call = read_files_call(rte, cxt->read_files)) != NULL)
			add_files(rte, call, cxt);
		return false;			/* query_tree_walker goes into its members by itself */
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, collect_walker, cxt,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, collect_walker, cxt);
}

static void
collect(Query *query, CollectContext *cxt)
{
	memset(cxt, 0, sizeof(CollectContext));
	cxt->stream_method = pln_stream_method();
	cxt->read_files = pln_read_files_function();
	(void) collect_walker((Node *) query, cxt);
}

List *
pln_query_sources(Query *query)
{
	CollectContext cxt;

	collect(query, &cxt);
	return cxt.sources;
}

List *
pln_query_relations(Query *query)
{
	CollectContext cxt;

	collect(query, &cxt);
	return cxt.relids;
}

Query *
pln_stored_query(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	RewriteRule *rule;
	Query	   *query;

	if ((rel->rd_rel->relkind != RELKIND_VIEW && rel->rd_rel->relkind != RELKIND_MATVIEW) ||
		rel->rd_rules == NULL || rel->rd_rules->numLocks < 1)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("relation %s holds no query", pln_relation_name(relid)),
				 errhint("Create the dataset again.")));
	rule = rel->rd_rules->rules[0];
	query = copyObject(linitial_node(Query, rule->actions));
	table_close(rel, NoLock);
	return query;
}

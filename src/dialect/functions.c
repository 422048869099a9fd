/*
 * functions.c
 *	  Functions of Spark: those with an exact twin become it, for the others there is a
 *	  hint that names PostgreSQL's way.
 *
 * Only unqualified calls are taken: schema.name(...) is always the user's own.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "parser/parser.h"

#include "dialect/internal.h"

/* The same arguments under another name. */
static const struct
{
	const char *spark;
	int			nargs;			/* -1 = any */
	const char *schema;			/* NULL = as found by the path */
	const char *postgres;
}			renamed[] =
{
	{"ucase", 1, "pg_catalog", "upper"},
	{"lcase", 1, "pg_catalog", "lower"},
	{"len", 1, "pg_catalog", "length"},
	{"mean", 1, "pg_catalog", "avg"},
	{"std", 1, "pg_catalog", "stddev"},
	{"array_size", 1, "pg_catalog", "cardinality"},
	{"size", 1, "pg_catalog", "cardinality"},
	{"explode", 1, "pg_catalog", "unnest"},
	{"instr", 2, "pg_catalog", "strpos"},
	{"uuid", 0, "pg_catalog", "gen_random_uuid"},
	{"rand", 0, "pg_catalog", "random"},
	{"to_timestamp", 1, "pipeline", "to_timestamp"},
};

static List *
system_name(const char *schema, const char *name)
{
	List	   *result = list_make1(makeString(pstrdup(name)));

	if (schema != NULL)
		result = lcons(makeString(pstrdup(schema)), result);
	return result;
}

FuncCall *
pln_make_system_call(const char *name, List *args, int location)
{
	return makeFuncCall(system_name("pg_catalog", name), args, COERCE_EXPLICIT_CALL, location);
}

Node *
pln_make_cast(Node *arg, const char *type, int location)
{
	TypeCast   *cast = makeNode(TypeCast);

	cast->arg = arg;
	cast->typeName = SystemTypeName(pstrdup(type));
	cast->location = location;
	return (Node *) cast;
}

static Node *
make_null_test(Node *arg, NullTestType type, int location)
{
	NullTest   *test = makeNode(NullTest);

	test->arg = (Expr *) arg;
	test->nulltesttype = type;
	test->location = location;
	return (Node *) test;
}

static Node *
make_case(Node *condition, Node *yes, Node *no, int location)
{
	CaseExpr   *result = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = (Expr *) condition;
	when->result = (Expr *) yes;
	when->location = location;
	result->args = list_make1(when);
	result->defresult = (Expr *) no;
	result->location = location;
	return (Node *) result;
}

/* coalesce(a, b, ...) */
static Node *
build_coalesce(FuncCall *call)
{
	CoalesceExpr *result = makeNode(CoalesceExpr);

	result->args = call->args;
	result->location = call->location;
	return (Node *) result;
}

static Node *
build_if(FuncCall *call)
{
	return make_case(linitial(call->args), lsecond(call->args), lthird(call->args),
					 call->location);
}

static Node *
build_nvl2(FuncCall *call)
{
	return make_case(make_null_test(linitial(call->args), IS_NOT_NULL, call->location),
					 lsecond(call->args), lthird(call->args), call->location);
}

static Node *
build_isnull(FuncCall *call)
{
	return make_null_test(linitial(call->args), IS_NULL, call->location);
}

static Node *
build_isnotnull(FuncCall *call)
{
	return make_null_test(linitial(call->args), IS_NOT_NULL, call->location);
}

/* locate(sub, s), charindex(sub, s) */
static Node *
build_locate(FuncCall *call)
{
	return (Node *) pln_make_system_call("strpos",
										 list_make2(lsecond(call->args), linitial(call->args)),
										 call->location);
}

static Node *
date_arithmetic(FuncCall *call, const char *operator)
{
	return (Node *) makeSimpleA_Expr(AEXPR_OP, pstrdup(operator),
									 pln_make_cast(linitial(call->args), "date", call->location),
									 lsecond(call->args), call->location);
}

static Node *
build_date_add(FuncCall *call)
{
	return date_arithmetic(call, "+");
}

static Node *
build_date_sub(FuncCall *call)
{
	return date_arithmetic(call, "-");
}

/* datediff(end, start) in days */
static Node *
build_datediff(FuncCall *call)
{
	return (Node *) makeSimpleA_Expr(AEXPR_OP, "-",
									 pln_make_cast(linitial(call->args), "date", call->location),
									 pln_make_cast(lsecond(call->args), "date", call->location),
									 call->location);
}

static Node *
build_to_date(FuncCall *call)
{
	return pln_make_cast(linitial(call->args), "date", call->location);
}

/* year(x) and its kin: integers, as in Spark */
static Node *
build_extract(FuncCall *call)
{
	const char *field = strVal(linitial(call->funcname));
	A_Const    *constant = makeNode(A_Const);
	FuncCall   *part;

	if (strcmp(field, "dayofmonth") == 0)
		field = "day";
	else if (strcmp(field, "dayofyear") == 0)
		field = "doy";
	else if (strcmp(field, "weekofyear") == 0)
		field = "week";
	constant->val.sval.type = T_String;
	constant->val.sval.sval = pstrdup(field);
	constant->location = -1;
	part = pln_make_system_call("date_part", list_make2(constant, linitial(call->args)),
								call->location);
	/* seconds have a fraction in PostgreSQL; the cast must not round up */
	return pln_make_cast((Node *) pln_make_system_call("trunc", list_make1(part), call->location),
						 "int4", call->location);
}

/* array_contains(array, x) */
static Node *
build_array_contains(FuncCall *call)
{
	return (Node *) makeSimpleA_Expr(AEXPR_OP_ANY, "=", lsecond(call->args),
									 linitial(call->args), call->location);
}

static Node *
build_struct(FuncCall *call)
{
	RowExpr    *row = makeNode(RowExpr);

	row->args = call->args;
	row->row_format = COERCE_EXPLICIT_CALL;
	row->location = call->location;
	return (Node *) row;
}

static const struct
{
	const char *spark;
	int			min_args;
	int			max_args;
	Node	   *(*build) (FuncCall *call);
}			built[] =
{
	{"nvl", 2, 2, build_coalesce},
	{"ifnull", 2, 2, build_coalesce},
	{"nvl2", 3, 3, build_nvl2},
	{"if", 3, 3, build_if},
	{"iff", 3, 3, build_if},
	{"isnull", 1, 1, build_isnull},
	{"isnotnull", 1, 1, build_isnotnull},
	{"locate", 2, 2, build_locate},
	{"charindex", 2, 2, build_locate},
	{"date_add", 2, 2, build_date_add},
	{"date_sub", 2, 2, build_date_sub},
	{"datediff", 2, 2, build_datediff},
	{"to_date", 1, 1, build_to_date},
	{"year", 1, 1, build_extract},
	{"quarter", 1, 1, build_extract},
	{"month", 1, 1, build_extract},
	{"day", 1, 1, build_extract},
	{"dayofmonth", 1, 1, build_extract},
	{"dayofyear", 1, 1, build_extract},
	{"weekofyear", 1, 1, build_extract},
	{"hour", 1, 1, build_extract},
	{"minute", 1, 1, build_extract},
	{"second", 1, 1, build_extract},
	{"array_contains", 2, 2, build_array_contains},
	{"struct", 1, 1000, build_struct},
};

static void
overwrite_call(FuncCall *call, Node *node)
{
	Size		size = 0;

	switch (nodeTag(node))
	{
		case T_CoalesceExpr:
			size = sizeof(CoalesceExpr);
			break;
		case T_CaseExpr:
			size = sizeof(CaseExpr);
			break;
		case T_NullTest:
			size = sizeof(NullTest);
			break;
		case T_FuncCall:
			size = sizeof(FuncCall);
			break;
		case T_A_Expr:
			size = sizeof(A_Expr);
			break;
		case T_TypeCast:
			size = sizeof(TypeCast);
			break;
		case T_RowExpr:
			size = sizeof(RowExpr);
			break;
		default:
			break;
	}
	Assert(size > 0 && size <= sizeof(FuncCall));
	memcpy(call, node, size);
}

/* count_if(condition) -> count(*) FILTER (WHERE condition) */
static void
rewrite_count_if(FuncCall *call)
{
	call->funcname = system_name("pg_catalog", "count");
	call->agg_filter = linitial(call->args);
	call->args = NIL;
	call->agg_star = true;
}

/* Replace a call of a Spark function, arguments already rewritten, in place. */
void
pln_rewrite_function(PlnSql *sql, FuncCall *call)
{
	Node	   *datetime;
	const char *name = strVal(linitial(call->funcname));
	int			nargs = list_length(call->args);
	int			i;

	if (list_length(call->funcname) != 1)
		return;
	for (i = 0; i < (int) lengthof(renamed); i++)
	{
		if (strcmp(name, renamed[i].spark) == 0 &&
			(renamed[i].nargs < 0 || renamed[i].nargs == nargs))
		{
			call->funcname = system_name(renamed[i].schema, renamed[i].postgres);
			return;
		}
	}
	/* what follows is no plain function call any more */
	if (call->agg_distinct || call->agg_star || call->func_variadic || call->over != NULL ||
		call->agg_order != NIL)
		return;
	if (nargs == 1 && strcmp(name, "count_if") == 0 && call->agg_filter == NULL)
	{
		rewrite_count_if(call);
		return;
	}
	if (call->agg_filter != NULL)
		return;
	datetime = pln_build_datetime(sql, call);
	if (datetime != NULL)
	{
		overwrite_call(call, datetime);
		return;
	}
	for (i = 0; i < (int) lengthof(built); i++)
	{
		if (strcmp(name, built[i].spark) == 0 && nargs >= built[i].min_args &&
			nargs <= built[i].max_args)
		{
			overwrite_call(call, built[i].build(call));
			return;
		}
	}
}

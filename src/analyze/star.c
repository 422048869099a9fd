#include "postgres.h"
#include "analyze/star.h"
#include "base/errors.h"
RawStmt *
pln_expand_select(RawStmt *raw, PlnSql *sql)
{
	if (!sql->needs_expand)
		return raw;
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("* EXCEPT, QUALIFY and GROUP BY ALL are not supported"),
			 pln_script_errposition(sql->script, sql->expand_location)));
}

/*
 * version.c
 *	  The library against the SQL objects of the extension.
 */
#include "postgres.h"

#include "base/errors.h"
#include "base/spi.h"
#include "base/version.h"

void
pln_check_version(void)
{
	PlnRows    *rows = pln_spi_run("SELECT extversion FROM pg_extension WHERE extname = 'pipeline'",
								   0, NULL, NULL, NULL);
	char	   *version = rows->n > 0 ? pln_row_text(rows, 0, "extversion") : NULL;

	if (version != NULL && strcmp(version, PLN_SQL_VERSION) != 0)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("extension \"pipeline\" has SQL version %s, its library is for %s",
						version, PLN_SQL_VERSION),
				 errhint("ALTER EXTENSION pipeline UPDATE;")));
}

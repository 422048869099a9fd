/*
 * ident.c
 *	  Names in SQL text that we build, names of objects for messages, the hash of a text.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "common/md5.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/spi.h"

char *
pln_quote_qualified(const char *schema, const char *name)
{
	return quote_qualified_identifier(schema, name);
}

char *
pln_relation_name(Oid relid)
{
	char	   *name = get_rel_name(relid);

	if (name == NULL)
		return psprintf("%u", relid);
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name);
}

char *
pln_quote_literal(const char *text)
{
	return quote_literal_cstr(text);
}

char *
pln_choose_name(const char *base, const char *suffix, Oid namespace_id)
{
	int			attempt;

	for (attempt = 0;; attempt++)
	{
		char		tail[NAMEDATALEN];
		char		name[NAMEDATALEN];
		int			room;
		int			len;

		if (attempt == 0)
			snprintf(tail, sizeof(tail), "%s", suffix);
		else
			snprintf(tail, sizeof(tail), "%s%d", suffix, attempt);
		room = NAMEDATALEN - 1 - (int) strlen(tail);
		len = pg_mbcliplen(base, strlen(base), room);
		memcpy(name, base, len);
		strcpy(name + len, tail);
		if (!OidIsValid(get_relname_relid(name, namespace_id)))
			return pstrdup(name);
	}
}

void
pln_revoke_all(Oid relid)
{
	PlnArgs		args;
	PlnRows    *rows;
	uint64		i;

	pln_args_init(&args);
	pln_args_oid(&args, relid);
	rows = pln_spi_run_args(
		"SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' "
		"ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee "
		"FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = $1 AND a.grantee <> c.relowner",
		&args);
	for (i = 0; i < rows->n; i++)
		(void) pln_spi_run_once(psprintf("REVOKE ALL ON %s FROM %s CASCADE",
										 pln_relation_name(relid),
										 pln_row_text(rows, i, "grantee")),
								0, NULL, NULL, NULL);
	CommandCounterIncrement();
}

char *
pln_hash_text(const char *text)
{
	char		hash[MD5_DIGEST_LENGTH * 2 + 1];
	const char *error = NULL;

	if (!pg_md5_hash(text, strlen(text), hash, &error))
		elog(ERROR, "could not compute md5: %s", error);
	return pstrdup(hash);
}

/*
 * ident.h
 *	  Names in SQL text that we build, and names of objects for messages.
 */
#ifndef PIPELINE_BASE_IDENT_H
#define PIPELINE_BASE_IDENT_H

#include "nodes/pg_list.h"

extern char *pln_quote_qualified(const char *schema, const char *name);	/* "a"."b" as needed */
extern char *pln_relation_name(Oid relid);	/* schema.name quoted as needed; for SQL and messages */
extern char *pln_quote_literal(const char *text);	/* 'text' with quotes */

/* prefix_name[_suffix], clipped to 63 bytes at a character boundary, unique in the schema */
extern char *pln_choose_name(const char *base, const char *suffix, Oid namespace_id);

/* Take every grant on the relation away, also those of ALTER DEFAULT PRIVILEGES. */
extern void pln_revoke_all(Oid relid);

/* md5 in hex, palloc'd: tells a definition from the one before. */
extern char *pln_hash_text(const char *text);

#endif							/* PIPELINE_BASE_IDENT_H */

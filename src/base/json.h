/*
 * json.h
 *	  Writing JSON text piece by piece; strings are quoted by the server's escape_json().
 *
 * A key of NULL adds an element to an array.  Commas are put by looking at what stands
 * before.
 */
#ifndef PIPELINE_BASE_JSON_H
#define PIPELINE_BASE_JSON_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

extern void pln_json_open(StringInfo json, const char *key, char bracket);	/* '{' or '[' */
extern void pln_json_close(StringInfo json, char bracket);	/* '}' or ']' */
extern void pln_json_text(StringInfo json, const char *key, const char *value); /* NULL: null */
extern void pln_json_int(StringInfo json, const char *key, int64 value);
extern void pln_json_float(StringInfo json, const char *key, double value);
extern void pln_json_bool(StringInfo json, const char *key, bool value);
extern void pln_json_raw(StringInfo json, const char *key, const char *value);	/* is JSON */
extern void pln_json_text_list(StringInfo json, const char *key, List *values); /* of char * */

#endif							/* PIPELINE_BASE_JSON_H */

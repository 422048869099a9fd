/*
 * json.c
 *	  Writing JSON text piece by piece.
 */
#include "postgres.h"

#include <math.h>

#include "utils/json.h"

#include "base/json.h"

/* The comma, when something stands before in this object or array, and the key. */
static void
begin_item(StringInfo json, const char *key)
{
	char		last = json->len == 0 ? '\0' : json->data[json->len - 1];

	if (last != '\0' && last != '{' && last != '[')
		appendStringInfoChar(json, ',');
	if (key != NULL)
	{
		escape_json(json, key);
		appendStringInfoChar(json, ':');
	}
}

void
pln_json_open(StringInfo json, const char *key, char bracket)
{
	begin_item(json, key);
	appendStringInfoChar(json, bracket);
}

void
pln_json_close(StringInfo json, char bracket)
{
	appendStringInfoChar(json, bracket);
}

void
pln_json_text(StringInfo json, const char *key, const char *value)
{
	begin_item(json, key);
	if (value == NULL)
		appendStringInfoString(json, "null");
	else
		escape_json(json, value);
}

void
pln_json_int(StringInfo json, const char *key, int64 value)
{
	begin_item(json, key);
	appendStringInfo(json, INT64_FORMAT, value);
}

/* JSON has no NaN and no infinity. */
void
pln_json_float(StringInfo json, const char *key, double value)
{
	begin_item(json, key);
	if (isnan(value) || isinf(value))
		appendStringInfoString(json, "null");
	else
		appendStringInfo(json, "%.17g", value);
}

void
pln_json_bool(StringInfo json, const char *key, bool value)
{
	begin_item(json, key);
	appendStringInfoString(json, value ? "true" : "false");
}

void
pln_json_raw(StringInfo json, const char *key, const char *value)
{
	begin_item(json, key);
	appendStringInfoString(json, value);
}

void
pln_json_text_list(StringInfo json, const char *key, List *values)
{
	ListCell   *lc;

	pln_json_open(json, key, '[');
	foreach(lc, values)
		pln_json_text(json, NULL, (char *) lfirst(lc));
	pln_json_close(json, ']');
}

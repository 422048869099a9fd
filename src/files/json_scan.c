/*
 * json_scan.c
 *	  A JSON scanner that reports errors as values and allocates nothing.
 *
 * The server's parser on 15 raises for an unpaired surrogate, \u0000 or deep nesting and
 * builds every string.  Here a bad line is an ordinary outcome and most members are looked
 * at once, so the scanner only finds where values begin and end, and checks the grammar of
 * RFC 8259 on the way.  Input is valid text of the database, so bytes with the high bit
 * are parts of characters and stand only inside strings.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "files/decode.h"

/* A number that numeric surely takes; and a document that jsonb surely holds. */
#define SAFE_NUMBER_LEN		1000
#define SAFE_EXPONENT_LEN	3
#define SAFE_JSONB_LEN		(16 * 1024 * 1024)

void
pln_json_scan_init(PlnJsonScan *scan, const char *text, int len, int max_depth)
{
	scan->p = text;
	scan->end = text + len;
	scan->max_depth = max_depth;
	scan->error = NULL;
}

void
pln_json_scan_space(PlnJsonScan *scan)
{
	const char *p = scan->p;

	while (p < scan->end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	scan->p = p;
}

bool
pln_json_scan_end(PlnJsonScan *scan)
{
	pln_json_scan_space(scan);
	if (scan->p == scan->end)
		return true;
	scan->error = "something follows the end of the JSON value";
	return false;
}

static bool
fail(PlnJsonScan *scan, const char *error)
{
	scan->error = error;
	return false;
}

static int
hex_value(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Four hex digits at p; -1 = no such. */
static int
hex4(const char *p, const char *end)
{
	int			i;
	int			result = 0;

	if (end - p < 4)
		return -1;
	for (i = 0; i < 4; i++)
	{
		int			v = hex_value((unsigned char) p[i]);

		if (v < 0)
			return -1;
		result = result * 16 + v;
	}
	return result;
}

static bool
scan_string(PlnJsonScan *scan, PlnJsonValue *value)
{
	const char *p = scan->p + 1;
	const char *end = scan->end;

	value->kind = PLN_JSON_STRING;
	value->start = scan->p;
	for (;;)
	{
		while (p < end && *p != '"' && *p != '\\' && (unsigned char) *p >= 0x20)
			p++;
		if (p == end)
			return fail(scan, "a string is not closed");
		if (*p == '"')
			break;
		if (*p != '\\')
			return fail(scan, "a control character stands inside a string");
		value->escaped = true;
		if (++p == end)
			return fail(scan, "a string is not closed");
		if (*p == 'u')
		{
			int			code = hex4(p + 1, end);

			if (code < 0)
				return fail(scan, "\\u is not followed by four hexadecimal digits");
			/* surrogates and zero: whether they are text is found by pln_json_unescape() */
			if (code == 0 || (code >= 0xD800 && code <= 0xDFFF) ||
				(code >= 0x80 && GetDatabaseEncoding() != PG_UTF8))
				value->risky = true;
			p += 5;
		}
		else if (strchr("\"\\/bfnrt", *p) != NULL && *p != '\0')
			p++;
		else
			return fail(scan, "an unknown escape stands inside a string");
	}
	p++;
	value->len = p - value->start;
	scan->p = p;
	return true;
}

static bool
scan_digits(const char **p, const char *end)
{
	const char *start = *p;

	while (*p < end && **p >= '0' && **p <= '9')
		(*p)++;
	return *p > start;
}

static bool
scan_word(PlnJsonScan *scan, const char *word, PlnJsonKind kind, PlnJsonValue *value)
{
	int			len = strlen(word);

	if (scan->end - scan->p < len || memcmp(scan->p, word, len) != 0)
		return false;
	if (scan->end - scan->p > len &&
		(isalnum((unsigned char) scan->p[len]) || scan->p[len] == '_'))
		return false;
	value->kind = kind;
	value->special = kind == PLN_JSON_SPECIAL;
	value->start = scan->p;
	value->len = len;
	scan->p += len;
	return true;
}

static bool
scan_number(PlnJsonScan *scan, PlnJsonValue *value)
{
	const char *p = scan->p;
	const char *end = scan->end;

	value->kind = PLN_JSON_NUMBER;
	value->start = p;
	if (*p == '-')
		p++;
	if (p < end && *p == '0')
		p++;
	else if (!scan_digits(&p, end))
		return fail(scan, "a value is malformed");
	if (p < end && *p == '.')
	{
		p++;
		if (!scan_digits(&p, end))
			return fail(scan, "a number is malformed");
	}
	if (p < end && (*p == 'e' || *p == 'E'))
	{
		const char *exponent;

		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		exponent = p;
		if (!scan_digits(&p, end))
			return fail(scan, "a number is malformed");
		if (p - exponent > SAFE_EXPONENT_LEN)
			value->risky = true;
	}
	if (p < end && (isalnum((unsigned char) *p) || *p == '.' || *p == '_' || *p == '+' ||
					*p == '-'))
		return fail(scan, "a number is malformed");
	value->len = p - value->start;
	if (value->len > SAFE_NUMBER_LEN)
		value->risky = true;
	scan->p = p;
	return true;
}

static bool
scan_scalar(PlnJsonScan *scan, PlnJsonValue *value)
{
	value->escaped = value->risky = value->special = false;
	if (scan->p == scan->end)
		return fail(scan, "the record ends too early");
	switch (*scan->p)
	{
		case '"':
			return scan_string(scan, value);
		case 't':
			if (scan_word(scan, "true", PLN_JSON_BOOL, value))
				return true;
			break;
		case 'f':
			if (scan_word(scan, "false", PLN_JSON_BOOL, value))
				return true;
			break;
		case 'n':
			if (scan_word(scan, "null", PLN_JSON_NULL, value))
				return true;
			break;
		case 'N':
			if (scan_word(scan, "NaN", PLN_JSON_SPECIAL, value))
				return true;
			break;
		case 'I':
			if (scan_word(scan, "Infinity", PLN_JSON_SPECIAL, value))
				return true;
			break;
		default:
			if (*scan->p == '-' && scan_word(scan, "-Infinity", PLN_JSON_SPECIAL, value))
				return true;
			return scan_number(scan, value);
	}
	return fail(scan, "a value is malformed");
}

/* A key and its colon. */
static bool
scan_key(PlnJsonScan *scan, PlnJsonValue *key)
{
	pln_json_scan_space(scan);
	key->escaped = key->risky = key->special = false;
	if (scan->p == scan->end || *scan->p != '"')
		return fail(scan, scan->p == scan->end ? "the record ends too early" :
					"a member does not start with a quoted name");
	if (!scan_string(scan, key))
		return false;
	pln_json_scan_space(scan);
	if (scan->p == scan->end || *scan->p != ':')
		return fail(scan, "a member name is not followed by a colon");
	scan->p++;
	pln_json_scan_space(scan);
	return true;
}

/*
 * An object or array with all that it holds.  The stack remembers which bracket closes
 * each level; one loop, so that depth costs no C stack.
 */
static bool
scan_nested(PlnJsonScan *scan, PlnJsonValue *value)
{
	char		stack[512];
	int			depth = 0;
	PlnJsonValue inner;
	bool		risky = false;

	value->kind = *scan->p == '{' ? PLN_JSON_OBJECT : PLN_JSON_ARRAY;
	value->start = scan->p;
	value->escaped = value->special = false;
	for (;;)
	{
		/* a value is due here */
		if (scan->p < scan->end && (*scan->p == '{' || *scan->p == '['))
		{
			char		close = *scan->p == '{' ? '}' : ']';

			if (depth == scan->max_depth || depth == (int) sizeof(stack))
				return fail(scan, "brackets are nested too deeply");
			stack[depth++] = close;
			scan->p++;
			pln_json_scan_space(scan);
			if (scan->p == scan->end || *scan->p != close)
			{
				if (close == '}')
				{
					if (!scan_key(scan, &inner))
						return false;
					risky |= inner.risky;
				}
				continue;
			}
		}
		else
		{
			if (!scan_scalar(scan, &inner))
				return false;
			risky |= inner.risky || inner.special;
			value->special |= inner.special;
			pln_json_scan_space(scan);
		}

		/* behind a value, or at the bracket that closes an empty one */
		while (depth > 0 && scan->p < scan->end && *scan->p == stack[depth - 1])
		{
			depth--;
			scan->p++;
			if (depth > 0)
				pln_json_scan_space(scan);
		}
		if (depth == 0)
			break;
		if (scan->p == scan->end)
			return fail(scan, "the record ends too early");
		if (*scan->p != ',')
			return fail(scan, "a comma or a closing bracket is missing");
		scan->p++;
		pln_json_scan_space(scan);
		if (stack[depth - 1] == '}')
		{
			if (!scan_key(scan, &inner))
				return false;
			risky |= inner.risky;
		}
	}
	value->len = scan->p - value->start;
	value->risky = risky || value->len > SAFE_JSONB_LEN;
	return true;
}

bool
pln_json_scan_value(PlnJsonScan *scan, PlnJsonValue *value)
{
	pln_json_scan_space(scan);
	if (scan->p < scan->end && (*scan->p == '{' || *scan->p == '['))
		return scan_nested(scan, value);
	return scan_scalar(scan, value);
}

bool
pln_json_scan_open(PlnJsonScan *scan, char bracket)
{
	pln_json_scan_space(scan);
	if (scan->p == scan->end || *scan->p != bracket)
		return fail(scan, bracket == '{' ? "the record is not a JSON object" :
					"the record is not a JSON array");
	scan->p++;
	return true;
}

bool
pln_json_scan_next(PlnJsonScan *scan, char bracket, bool first, PlnJsonValue *key,
				   PlnJsonValue *value, bool *done)
{
	char		close = bracket == '{' ? '}' : ']';

	*done = false;
	pln_json_scan_space(scan);
	if (scan->p < scan->end && *scan->p == close)
	{
		scan->p++;
		*done = true;
		return true;
	}
	if (!first)
	{
		if (scan->p == scan->end)
			return fail(scan, "the record ends too early");
		if (*scan->p != ',')
			return fail(scan, "a comma or a closing bracket is missing");
		scan->p++;
		pln_json_scan_space(scan);
	}
	if (bracket == '{' && !scan_key(scan, key))
		return false;
	return pln_json_scan_value(scan, value);
}

/* One code point in the database encoding; false when it has none there. */
static bool
append_code(StringInfo out, pg_wchar code)
{
	unsigned char utf8[8];
	unsigned char converted[8 * MAX_CONVERSION_GROWTH];
	int			len;
	Oid			proc;

	unicode_to_utf8(code, utf8);
	len = pg_utf_mblen(utf8);
	if (GetDatabaseEncoding() == PG_UTF8 || code < 0x80)
	{
		appendBinaryStringInfo(out, (char *) utf8, len);
		return true;
	}
	proc = FindDefaultConversionProc(PG_UTF8, GetDatabaseEncoding());
	if (!OidIsValid(proc) ||
		pg_do_encoding_conversion_buf(proc, PG_UTF8, GetDatabaseEncoding(), utf8, len,
									  converted, sizeof(converted), true) < len)
		return false;
	appendStringInfoString(out, (char *) converted);
	return true;
}

bool
pln_json_unescape(const PlnJsonValue *string, StringInfo out)
{
	const char *p = string->start + 1;
	const char *end = string->start + string->len - 1;

	resetStringInfo(out);
	while (p < end)
	{
		const char *plain = p;
		int			code;

		while (p < end && *p != '\\')
			p++;
		if (p > plain)
			appendBinaryStringInfo(out, plain, p - plain);
		if (p == end)
			break;
		p++;
		switch (*p++)
		{
			case 'b':
				appendStringInfoChar(out, '\b');
				break;
			case 'f':
				appendStringInfoChar(out, '\f');
				break;
			case 'n':
				appendStringInfoChar(out, '\n');
				break;
			case 'r':
				appendStringInfoChar(out, '\r');
				break;
			case 't':
				appendStringInfoChar(out, '\t');
				break;
			case 'u':
				code = hex4(p, end);
				p += 4;
				if (code >= 0xD800 && code <= 0xDBFF)
				{
					int			low;

					if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
						return false;
					low = hex4(p + 2, end);
					if (low < 0xDC00 || low > 0xDFFF)
						return false;
					code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
					p += 6;
				}
				else if (code >= 0xDC00 && code <= 0xDFFF)
					return false;
				if (code == 0 || !append_code(out, code))
					return false;
				break;
			default:
				appendStringInfoChar(out, p[-1]);
		}
	}
	return true;
}

void
pln_json_append_string(StringInfo out, const char *text, int len)
{
	const char *end = text + len;

	appendStringInfoCharMacro(out, '"');
	while (text < end)
	{
		const char *plain = text;

		while (text < end && (unsigned char) *text >= 0x20 && *text != '"' && *text != '\\')
			text++;
		if (text > plain)
			appendBinaryStringInfo(out, plain, text - plain);
		if (text == end)
			break;
		switch (*text)
		{
			case '"':
				appendStringInfoString(out, "\\\"");
				break;
			case '\\':
				appendStringInfoString(out, "\\\\");
				break;
			case '\n':
				appendStringInfoString(out, "\\n");
				break;
			case '\r':
				appendStringInfoString(out, "\\r");
				break;
			case '\t':
				appendStringInfoString(out, "\\t");
				break;
			default:
				appendStringInfo(out, "\\u%04x", (unsigned char) *text);
		}
		text++;
	}
	appendStringInfoCharMacro(out, '"');
}

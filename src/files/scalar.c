/*
 * scalar.c
 *	  Text and JSON scalars to datums, with misfits as values in place of errors.
 *
 * The common types are checked here before anything that could raise is called.  Types
 * without such a check (uuid, inet, domains, varchar(n), ...) and texts at the edge of what
 * a type holds go through their input function inside a subtransaction.
 *
 * In a column whose type was inferred a text fits only if the value says all that the text
 * said: 00501 is no number there.  Types that the user gave take what they can read.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "common/shortest_dec.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

/* Digits of a decimal that double precision always gives back. */
#define DOUBLE_DIGITS	15
/* Beyond this no digits are compared: the value counts as not exact. */
#define MAX_DIGITS		400
/* Integers that double precision holds without gaps. */
#define DOUBLE_INTEGER	(INT64CONST(1) << 53)

struct PlnConverter
{
	PlnFileColumn *column;
	PlnFileOptions *options;
	PlnTimePattern *date_pattern;
	PlnTimePattern *timestamp_pattern;
	FmgrInfo	input;
	Oid			ioparam;
	bool		has_bound;		/* numeric(p,s): absolute values stay below it */
	Datum		bound;
	int			scale;
};

typedef struct NumberParts
{
	bool		valid;
	bool		integer;		/* digits only */
	bool		plain;			/* no leading zeros, no plus, no bare point */
	bool		negative;
	const char *digits;			/* of the mantissa, point included */
	int			ndigits;
	int			exponent;		/* as written, clipped */
} NumberParts;

bool
pln_text_equals_nocase(const char *s, int len, const char *word)
{
	return (int) strlen(word) == len && pg_strncasecmp(s, word, len) == 0;
}

static void
parse_number(const char *s, int len, NumberParts *n)
{
	const char *p = s;
	const char *end = s + len;
	const char *digits;
	int			before;
	int			after = 0;
	bool		sign;

	memset(n, 0, sizeof(NumberParts));
	sign = p < end && (*p == '-' || *p == '+');
	if (sign)
		n->negative = *p++ == '-';
	digits = p;
	while (p < end && isdigit((unsigned char) *p))
		p++;
	before = p - digits;
	n->integer = true;
	if (p < end && *p == '.')
	{
		n->integer = false;
		p++;
		while (p < end && isdigit((unsigned char) *p))
		{
			p++;
			after++;
		}
	}
	n->digits = digits;
	n->ndigits = p - digits;
	if (before + after == 0)
		return;
	if (p < end && (*p == 'e' || *p == 'E'))
	{
		bool		minus;
		const char *start;

		n->integer = false;
		p++;
		minus = p < end && *p == '-';
		if (p < end && (*p == '-' || *p == '+'))
			p++;
		start = p;
		while (p < end && isdigit((unsigned char) *p))
		{
			if (n->exponent < 1000000)
				n->exponent = n->exponent * 10 + (*p - '0');
			p++;
		}
		if (p == start)
			return;
		if (minus)
			n->exponent = -n->exponent;
	}
	n->plain = !(sign && !n->negative) && !(before > 1 && *digits == '0');
	n->valid = p == end;
}

/* Significant digits without leading and trailing zeros; value = 0.DIGITS * 10^*exponent. */
static int
significant(const NumberParts *n, char *out, int *exponent)
{
	int			count = 0;
	int			point = -1;
	int			seen = 0;
	int			i;
	int			leading = 0;

	for (i = 0; i < n->ndigits; i++)
	{
		char		c = n->digits[i];

		if (c == '.')
		{
			point = seen;
			continue;
		}
		seen++;
		if (count == 0 && c == '0')
		{
			leading++;
			continue;
		}
		if (count < MAX_DIGITS)
			out[count] = c;
		count++;
	}
	if (point < 0)
		point = seen;
	*exponent = n->exponent + point - leading;
	if (count > MAX_DIGITS)
		return count;
	while (count > 0 && out[count - 1] == '0')
		count--;
	return count;
}

/* Does the double print as this number again? */
static bool
survives_double(const NumberParts *n, double value)
{
	char		digits[MAX_DIGITS];
	char		back_digits[MAX_DIGITS];
	char		buf[DOUBLE_SHORTEST_DECIMAL_LEN];
	NumberParts back;
	int			exponent;
	int			back_exponent;
	int			count;

	/* shorter texts need not be looked at digit by digit */
	if (n->ndigits <= DOUBLE_DIGITS)
		return isfinite(value);
	count = significant(n, digits, &exponent);
	if (count > MAX_DIGITS || !isfinite(value))
		return false;
	if (count <= DOUBLE_DIGITS)
		return true;
	double_to_shortest_decimal_buf(value, buf);
	parse_number(buf, strlen(buf), &back);
	return significant(&back, back_digits, &back_exponent) == count &&
		back_exponent == exponent && memcmp(digits, back_digits, count) == 0;
}

/* strtod on text without terminator.  False: beyond the range. */
static bool
read_double(const char *s, int len, double *value)
{
	char		local[64];
	char	   *copy = len < (int) sizeof(local) ? local : palloc(len + 1);

	memcpy(copy, s, len);
	copy[len] = '\0';
	errno = 0;
	*value = strtod(copy, NULL);
	if (copy != local)
		pfree(copy);
	return errno == 0;
}

static bool
read_int64(const char *s, int len, int64 *value)
{
	const char *end = s + len;
	bool		negative = false;
	int64		v = 0;

	if (s < end && (*s == '-' || *s == '+'))
		negative = *s++ == '-';
	if (s == end)
		return false;
	for (; s < end; s++)
	{
		if (!isdigit((unsigned char) *s) || pg_mul_s64_overflow(v, 10, &v) ||
			pg_sub_s64_overflow(v, *s - '0', &v))
			return false;
	}
	if (!negative && v == PG_INT64_MIN)
		return false;
	*value = negative ? v : -v;
	return true;
}

PlnNumberClass
pln_classify_number(const char *s, int len, bool *beyond_double)
{
	NumberParts n;
	double		d;

	*beyond_double = false;
	if (len == 0 || !(isdigit((unsigned char) *s) || *s == '-' || *s == '.'))
		return PLN_NUMBER_NONE;
	parse_number(s, len, &n);
	if (!n.valid || !n.plain)
		return PLN_NUMBER_NONE;
	if (n.integer && !(n.negative && n.ndigits == 1 && *n.digits == '0'))
	{
		int64		i;

		if (!read_int64(s, len, &i))
		{
			*beyond_double = true;
			return PLN_NUMBER_BIG;
		}
		*beyond_double = i > DOUBLE_INTEGER || i < -DOUBLE_INTEGER;
		return i >= PG_INT32_MIN && i <= PG_INT32_MAX ? PLN_NUMBER_INT4 : PLN_NUMBER_INT8;
	}
	if (!read_double(s, len, &d) || !survives_double(&n, d))
	{
		*beyond_double = true;
		return PLN_NUMBER_DECIMAL;
	}
	return PLN_NUMBER_DOUBLE;
}

/* ---- one function per kind of type ---- */

static PlnFit
convert_bool(PlnConverter *conv, const char *s, int len, Datum *value)
{
	bool		b;

	if (pln_text_equals_nocase(s, len, "true"))
		b = true;
	else if (pln_text_equals_nocase(s, len, "false"))
		b = false;
	else if (conv->column->inferred || !parse_bool_with_len(s, len, &b))
		return PLN_FIT_NOT;
	*value = BoolGetDatum(b);
	return PLN_FIT_OK;
}

static PlnFit
convert_integer(PlnConverter *conv, const char *s, int len, Datum *value)
{
	int64		v;
	int			digits = len > 0 && (*s == '-' || *s == '+') ? len - 1 : len;

	if (!read_int64(s, len, &v))
		return PLN_FIT_NOT;
	if (conv->column->inferred &&
		(*s == '+' || (digits > 1 && s[len - digits] == '0') || (*s == '-' && v == 0)))
		return PLN_FIT_NOT;
	switch (conv->column->type)
	{
		case INT2OID:
			if (v < PG_INT16_MIN || v > PG_INT16_MAX)
				return PLN_FIT_NOT;
			*value = Int16GetDatum((int16) v);
			break;
		case INT4OID:
			if (v < PG_INT32_MIN || v > PG_INT32_MAX)
				return PLN_FIT_NOT;
			*value = Int32GetDatum((int32) v);
			break;
		default:
			*value = Int64GetDatum(v);
	}
	return PLN_FIT_OK;
}

static bool
read_special(PlnConverter *conv, const char *s, int len, double *value)
{
	PlnFileOptions *o = conv->options;

	if (pln_text_equals_nocase(s, len, o->nan_value) || pln_text_equals_nocase(s, len, "NaN"))
		*value = get_float8_nan();
	else if (pln_text_equals_nocase(s, len, o->positive_inf) ||
			 pln_text_equals_nocase(s, len, "Infinity"))
		*value = get_float8_infinity();
	else if (pln_text_equals_nocase(s, len, o->negative_inf) ||
			 pln_text_equals_nocase(s, len, "-Infinity"))
		*value = -get_float8_infinity();
	else
		return false;
	return true;
}

static PlnFit
convert_float(PlnConverter *conv, const char *s, int len, Datum *value)
{
	NumberParts n;
	double		d;
	PlnFit		fit = PLN_FIT_OK;

	parse_number(s, len, &n);
	if (!n.valid)
	{
		if (!read_special(conv, s, len, &d))
			return PLN_FIT_NOT;
	}
	else
	{
		if ((conv->column->inferred && !n.plain) || !read_double(s, len, &d))
			return PLN_FIT_NOT;
		if (conv->column->inferred && !survives_double(&n, d))
			fit = PLN_FIT_LOSSY;
	}
	if (conv->column->type == FLOAT4OID)
	{
		float		f = (float) d;

		if (isinf(f) && !isinf(d))
			return PLN_FIT_NOT;
		*value = Float4GetDatum(f);
	}
	else
		*value = Float8GetDatum(d);
	return fit;
}

static PlnFit
convert_numeric(PlnConverter *conv, const char *s, int len, Datum *value)
{
	NumberParts n;
	char	   *copy;
	Datum		num;

	parse_number(s, len, &n);
	if (!n.valid || (conv->column->inferred && !n.plain))
		return PLN_FIT_NOT;
	/* what numeric surely holds; nobody's amounts have more digits */
	if (n.ndigits > 10000 || n.exponent > 10000 || n.exponent < -5000)
		return PLN_FIT_NOT;
	copy = pnstrdup(s, len);
	num = DirectFunctionCall3(numeric_in, CStringGetDatum(copy), ObjectIdGetDatum(InvalidOid),
							  Int32GetDatum(-1));
	if (conv->has_bound)
	{
		num = DirectFunctionCall2(numeric_round, num, Int32GetDatum(conv->scale));
		if (DatumGetBool(DirectFunctionCall2(numeric_ge,
											 DirectFunctionCall1(numeric_abs, num),
											 conv->bound)))
			return PLN_FIT_NOT;
		num = DirectFunctionCall2(numeric, num, Int32GetDatum(conv->column->typmod));
	}
	*value = num;
	return PLN_FIT_OK;
}

static PlnFit
convert_time(PlnConverter *conv, const char *s, int len, Datum *value)
{
	PlnTimePattern *pattern = conv->column->type == DATEOID ?
	conv->date_pattern : conv->timestamp_pattern;
	Timestamp	ts;
	PlnTime		t;

	if (pattern != NULL ? !pln_time_match(pattern, s, len, &t) : !pln_time_iso(s, len, &t))
		return PLN_FIT_NOT;
	if (conv->column->type == DATEOID)
	{
		/* a pattern may read over a time, the default may not */
		if (pattern == NULL && t.has_time)
			return PLN_FIT_NOT;
		*value = DateADTGetDatum(pln_time_date(&t));
		return PLN_FIT_OK;
	}
	if (conv->column->type == TIMESTAMPTZOID)
		ts = pln_time_timestamptz(&t, conv->options->zone);
	else
	{
		/* a zone says more than this type keeps */
		if (t.has_zone)
			return PLN_FIT_NOT;
		ts = pln_time_timestamp(&t);
	}
	if (conv->column->typmod >= 0)
		AdjustTimestampForTypmod(&ts, conv->column->typmod);
	*value = TimestampGetDatum(ts);
	return t.lossy && conv->column->inferred ? PLN_FIT_LOSSY : PLN_FIT_OK;
}

/* How regclass and its like, ltree, tsquery and others say that a text is none of theirs. */
static bool
is_name_error(int code)
{
	return code == ERRCODE_SYNTAX_ERROR || code == ERRCODE_INVALID_NAME ||
		code == ERRCODE_UNDEFINED_OBJECT || code == ERRCODE_UNDEFINED_TABLE ||
		code == ERRCODE_UNDEFINED_FUNCTION || code == ERRCODE_AMBIGUOUS_FUNCTION ||
		code == ERRCODE_UNDEFINED_SCHEMA;
}

/*
 * The type's own input function, in a subtransaction that takes back what it did when it
 * raises about the value.  Anything else, a cancel above all, goes on.
 */
static PlnFit
convert_guarded(PlnConverter *conv, char *text, Datum *value)
{
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile PlnFit fit = PLN_FIT_NOT;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(cxt);
	PG_TRY();
	{
		*value = InputFunctionCall(&conv->input, text, conv->ioparam, conv->column->typmod);
		ReleaseCurrentSubTransaction();
		fit = PLN_FIT_OK;
	}
	PG_CATCH();
	{
		ErrorData  *edata;
		int			class;

		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		class = ERRCODE_TO_CATEGORY(edata->sqlerrcode);
		if (class != ERRCODE_DATA_EXCEPTION &&
			class != ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION &&
			class != ERRCODE_TO_CATEGORY(ERRCODE_PROGRAM_LIMIT_EXCEEDED) &&
			class != ERRCODE_TO_CATEGORY(ERRCODE_FEATURE_NOT_SUPPORTED) &&
			!is_name_error(edata->sqlerrcode))
		{
			MemoryContextSwitchTo(cxt);
			CurrentResourceOwner = owner;
			ReThrowError(edata);
		}
		FreeErrorData(edata);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(cxt);
	CurrentResourceOwner = owner;
	return fit;
}

static PlnFit
convert_jsonb_document(PlnConverter *conv, const PlnJsonValue *json, Datum *value)
{
	char	   *copy = pnstrdup(json->start, json->len);

	if (json->risky || conv->column->type != JSONBOID)
		return convert_guarded(conv, copy, value);
	*value = DirectFunctionCall1(jsonb_in, CStringGetDatum(copy));
	return PLN_FIT_OK;
}

/* Text that should be a JSON document, for example in a CSV field. */
static PlnFit
convert_json_text(PlnConverter *conv, const char *s, int len, Datum *value)
{
	PlnJsonScan scan;
	PlnJsonValue json;

	pln_json_scan_init(&scan, s, len, conv->options->max_depth);
	if (!pln_json_scan_value(&scan, &json) || !pln_json_scan_end(&scan) ||
		json.kind == PLN_JSON_SPECIAL)
		return PLN_FIT_NOT;
	return convert_jsonb_document(conv, &json, value);
}

PlnFit
pln_convert_text(PlnConverter *conv, const char *s, int len, Datum *value)
{
	switch (conv->column->type)
	{
		case TEXTOID:
			*value = PointerGetDatum(cstring_to_text_with_len(s, len));
			return PLN_FIT_OK;
		case BOOLOID:
			return convert_bool(conv, s, len, value);
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return convert_integer(conv, s, len, value);
		case FLOAT4OID:
		case FLOAT8OID:
			return convert_float(conv, s, len, value);
		case NUMERICOID:
			return convert_numeric(conv, s, len, value);
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return convert_time(conv, s, len, value);
		case JSONBOID:
		case JSONOID:
			return convert_json_text(conv, s, len, value);
		default:
			return convert_guarded(conv, pnstrdup(s, len), value);
	}
}

PlnFit
pln_convert_json(PlnConverter *conv, const PlnJsonValue *json, StringInfo buf, Datum *value)
{
	Oid			type = conv->column->type;

	if (type == JSONBOID || type == JSONOID)
		return json->kind == PLN_JSON_SPECIAL ? PLN_FIT_NOT :
			convert_jsonb_document(conv, json, value);
	switch (json->kind)
	{
		case PLN_JSON_STRING:
			if (!json->escaped)
				return pln_convert_text(conv, json->start + 1, json->len - 2, value);
			if (!pln_json_unescape(json, buf))
				return PLN_FIT_NOT;
			return pln_convert_text(conv, buf->data, buf->len, value);
		case PLN_JSON_BOOL:
			if (type != BOOLOID && type != TEXTOID)
				return PLN_FIT_NOT;
			break;
		case PLN_JSON_NUMBER:
		case PLN_JSON_SPECIAL:
			if (type == BOOLOID || type == DATEOID || type == TIMESTAMPOID ||
				type == TIMESTAMPTZOID)
				return PLN_FIT_NOT;
			break;
		case PLN_JSON_OBJECT:
		case PLN_JSON_ARRAY:
			if (type != TEXTOID)
				return PLN_FIT_NOT;
			break;
		case PLN_JSON_NULL:
			return PLN_FIT_NOT;
	}
	return pln_convert_text(conv, json->start, json->len, value);
}

PlnConverter *
pln_converter_make(PlnFileColumn *column, PlnFileOptions *options)
{
	PlnConverter *conv = palloc0(sizeof(PlnConverter));
	Oid			function;

	conv->column = column;
	conv->options = options;
	getTypeInputInfo(column->type, &function, &conv->ioparam);
	fmgr_info_cxt(function, &conv->input, CurrentMemoryContext);
	if (options->date_format != NULL)
		conv->date_pattern = pln_time_pattern_compile("dateFormat", options->date_format);
	if (options->timestamp_format != NULL)
		conv->timestamp_pattern = pln_time_pattern_compile("timestampFormat",
														   options->timestamp_format);
	if (column->type == NUMERICOID && column->typmod >= 0)
	{
		/* the packing of numeric.c: 16 bits of precision, 11 of scale, less the header */
		int			packed = column->typmod - VARHDRSZ;
		int			precision = (packed >> 16) & 0xffff;

		conv->scale = ((packed & 0x7ff) ^ 1024) - 1024;
		conv->has_bound = true;
		conv->bound = DirectFunctionCall3(numeric_in,
										  CStringGetDatum(psprintf("1e%d",
																   precision - conv->scale)),
										  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	}
	return conv;
}

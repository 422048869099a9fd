/*
 * soft_input.c
 *	  Text to a value without raising when the text is not one.
 *
 * PG16: input functions report softly, for every type; this file shrinks to the call of
 * InputFunctionCallSafe.  For 15 the usual types are done here, each following its input
 * function in core; the others are unknown.
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "compat/pg_compat.h"
#include "compat/soft_input.h"

#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#else
#include "common/int.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/float.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#endif

/* Cut to the length of the typmod, as an explicit cast does. */
static PlnSoftResult
soft_text(Oid type, int32 typmod, char *text, Datum *result)
{
	*result = CStringGetTextDatum(text);
	if (type == VARCHAROID && typmod >= 0)
		*result = DirectFunctionCall3(varchar, *result, Int32GetDatum(typmod),
									  BoolGetDatum(true));
	else if (type == BPCHAROID && typmod >= 0)
		*result = DirectFunctionCall3(bpchar, *result, Int32GetDatum(typmod),
									  BoolGetDatum(true));
	return PLN_SOFT_OK;
}

#if PG_VERSION_NUM >= 160000

PlnSoftResult
pln_soft_input(Oid type, int32 typmod, char *text, Datum *result)
{
	ErrorSaveContext escontext = {T_ErrorSaveContext};
	FmgrInfo	input;
	Oid			function;
	Oid			ioparam;

	if (type == TEXTOID || type == VARCHAROID || type == BPCHAROID)
		return soft_text(type, typmod, text, result);
	getTypeInputInfo(type, &function, &ioparam);
	fmgr_info(function, &input);
	if (!InputFunctionCallSafe(&input, text, ioparam, typmod, (Node *) &escontext, result))
		return PLN_SOFT_BAD;
	return PLN_SOFT_OK;
}

#else

/* pg_strtoint64() of core, reporting instead of raising. */
static bool
parse_int(const char *text, int64 min, int64 max, int64 *result)
{
	const char *at = text;
	int64		value = 0;
	bool		negative = false;

	while (isspace((unsigned char) *at))
		at++;
	if (*at == '-' || *at == '+')
		negative = *at++ == '-';
	if (!isdigit((unsigned char) *at))
		return false;
	/* accumulated as a negative number: there is one more of them */
	for (; isdigit((unsigned char) *at); at++)
	{
		if (pg_mul_s64_overflow(value, 10, &value) ||
			pg_sub_s64_overflow(value, *at - '0', &value))
			return false;
	}
	while (isspace((unsigned char) *at))
		at++;
	if (*at != '\0' || (!negative && value == PG_INT64_MIN))
		return false;
	*result = negative ? value : -value;
	return *result >= min && *result <= max;
}

static PlnSoftResult
soft_int(Oid type, const char *text, Datum *result)
{
	int64		value;

	switch (type)
	{
		case INT2OID:
			if (!parse_int(text, PG_INT16_MIN, PG_INT16_MAX, &value))
				return PLN_SOFT_BAD;
			*result = Int16GetDatum((int16) value);
			return PLN_SOFT_OK;
		case INT4OID:
			if (!parse_int(text, PG_INT32_MIN, PG_INT32_MAX, &value))
				return PLN_SOFT_BAD;
			*result = Int32GetDatum((int32) value);
			return PLN_SOFT_OK;
		default:
			if (!parse_int(text, PG_INT64_MIN, PG_INT64_MAX, &value))
				return PLN_SOFT_BAD;
			*result = Int64GetDatum(value);
			return PLN_SOFT_OK;
	}
}

static PlnSoftResult
soft_float(Oid type, char *text, Datum *result)
{
	bool		have_error = false;
	float8		wide = float8in_internal_opt_error(text, NULL, "double precision", text,
												   &have_error);
	float		narrow;

	if (have_error)
		return PLN_SOFT_BAD;
	if (type == FLOAT8OID)
	{
		*result = Float8GetDatum(wide);
		return PLN_SOFT_OK;
	}
	if (isnan(wide) || isinf(wide) || wide == 0)
	{
		*result = Float4GetDatum((float4) wide);
		return PLN_SOFT_OK;
	}
	/* rounded once, from the text: strtof as float4in does */
	narrow = strtof(text, NULL);
	if (isinf(narrow) || narrow == 0)
		return PLN_SOFT_BAD;
	*result = Float4GetDatum(narrow);
	return PLN_SOFT_OK;
}

/* NaN, infinity, inf, with the signs that set_var_from_str's caller numeric_in() accepts. */
static bool
is_numeric_word(const char *at, int len)
{
	if (len > 0 && (*at == '+' || *at == '-'))
	{
		at++;
		len--;
		if (len == 3 && pg_strncasecmp(at, "NaN", 3) == 0)
			return false;
	}
	return (len == 3 && pg_strncasecmp(at, "NaN", 3) == 0) ||
		(len == 3 && pg_strncasecmp(at, "inf", 3) == 0) ||
		(len == 8 && pg_strncasecmp(at, "infinity", 8) == 0);
}

/* Digits before the point after which make_result() overflows, and the largest scale. */
#define NUMERIC_MAX_INT_DIGITS		131072
#define NUMERIC_MAX_FRACTION_DIGITS 16383

/*
 * May numeric_in() be called without an error?  Syntax and range, after set_var_from_str().
 */
static bool
is_numeric_text(const char *text)
{
	const char *at = text;
	const char *end = text + strlen(text);
	int64		int_digits = 0; /* after leading zeros */
	int64		leading_zeros = 0;	/* directly behind the point, when nothing stands before */
	int64		fraction_digits = 0;
	int64		exponent = 0;
	bool		any_digit = false;
	bool		nonzero = false;

	while (at < end && isspace((unsigned char) *at))
		at++;
	while (end > at && isspace((unsigned char) end[-1]))
		end--;
	if (is_numeric_word(at, end - at))
		return true;
	if (at < end && (*at == '+' || *at == '-'))
		at++;
	for (; at < end && isdigit((unsigned char) *at); at++)
	{
		any_digit = true;
		nonzero |= *at != '0';
		int_digits += nonzero;
	}
	if (at < end && *at == '.')
	{
		for (at++; at < end && isdigit((unsigned char) *at); at++)
		{
			any_digit = true;
			fraction_digits++;
			if (!nonzero && *at == '0')
				leading_zeros++;
			nonzero |= *at != '0';
		}
	}
	if (!any_digit)
		return false;
	if (at < end && (*at == 'e' || *at == 'E'))
	{
		char	   *exponent_text = pnstrdup(at + 1, end - at - 1);
		bool		ok = parse_int(exponent_text, -(PG_INT32_MAX / 4), PG_INT32_MAX / 4, &exponent);

		pfree(exponent_text);
		if (!ok)
			return false;
		at = end;
	}
	if (at != end)
		return false;
	if (fraction_digits - exponent > NUMERIC_MAX_FRACTION_DIGITS)
		return false;
	return !nonzero ||
		(int_digits > 0 ? int_digits : -leading_zeros) + exponent <= NUMERIC_MAX_INT_DIGITS;
}

/* apply_typmod() of core raises; here the rounded value is compared with the first one that is
 * too large. */
static bool
fits_typmod(Datum value, int32 typmod)
{
	int			precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
	int			scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
	Datum		rounded;
	Datum		limit;

	if (numeric_is_nan(DatumGetNumeric(value)))
		return true;
	if (numeric_is_inf(DatumGetNumeric(value)))
		return false;
	rounded = DirectFunctionCall1(numeric_abs,
								  DirectFunctionCall2(numeric_round, value,
													  Int32GetDatum(scale)));
	limit = DirectFunctionCall3(numeric_in,
								CStringGetDatum(psprintf("1e%d", precision - scale)),
								ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	return DatumGetBool(DirectFunctionCall2(numeric_lt, rounded, limit));
}

static PlnSoftResult
soft_numeric(int32 typmod, char *text, Datum *result)
{
	if (!is_numeric_text(text))
		return PLN_SOFT_BAD;
	*result = DirectFunctionCall3(numeric_in, CStringGetDatum(text),
								  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	if (typmod < (int32) VARHDRSZ)
		return PLN_SOFT_OK;
	if (!fits_typmod(*result, typmod))
		return PLN_SOFT_BAD;
	*result = DirectFunctionCall2(numeric, *result, Int32GetDatum(typmod));
	return PLN_SOFT_OK;
}

static PlnSoftResult
soft_bool(const char *text, Datum *result)
{
	const char *end = text + strlen(text);
	bool		value;

	while (isspace((unsigned char) *text))
		text++;
	while (end > text && isspace((unsigned char) end[-1]))
		end--;
	if (!parse_bool_with_len(text, end - text, &value))
		return PLN_SOFT_BAD;
	*result = BoolGetDatum(value);
	return PLN_SOFT_OK;
}

/* After date_in(). */
static bool
date_from_fields(int dtype, struct pg_tm *tm, Datum *result)
{
	DateADT		date;

	switch (dtype)
	{
		case DTK_DATE:
			break;
		case DTK_EPOCH:
			GetEpochTime(tm);
			break;
		case DTK_LATE:
			DATE_NOEND(date);
			*result = DateADTGetDatum(date);
			return true;
		case DTK_EARLY:
			DATE_NOBEGIN(date);
			*result = DateADTGetDatum(date);
			return true;
		default:
			return false;
	}
	if (!IS_VALID_JULIAN(tm->tm_year, tm->tm_mon, tm->tm_mday))
		return false;
	date = date2j(tm->tm_year, tm->tm_mon, tm->tm_mday) - POSTGRES_EPOCH_JDATE;
	if (!IS_VALID_DATE(date))
		return false;
	*result = DateADTGetDatum(date);
	return true;
}

/* After timestamp_in() and timestamptz_in(); tz is NULL for the former. */
static bool
timestamp_from_fields(int dtype, struct pg_tm *tm, fsec_t fsec, int *tz, int32 typmod,
					  Datum *result)
{
	Timestamp	timestamp;
	bool		error = false;

	switch (dtype)
	{
		case DTK_DATE:
			if (tm2timestamp(tm, fsec, tz, &timestamp) != 0)
				return false;
			break;
		case DTK_EPOCH:
			timestamp = SetEpochTimestamp();
			break;
		case DTK_LATE:
			TIMESTAMP_NOEND(timestamp);
			break;
		case DTK_EARLY:
			TIMESTAMP_NOBEGIN(timestamp);
			break;
		default:
			return false;
	}
	if (!AdjustTimestampForTypmodError(&timestamp, typmod, &error) || error)
		return false;
	*result = TimestampGetDatum(timestamp);
	return true;
}

/*
 * DecodeDateTime() raises for an unknown time zone whose name looks like a date: letters with
 * punctuation, after a date.
 */
static PlnSoftResult
check_zone_names(char **field, int *ftype, int nf)
{
	bool		after_date = false;
	bool		after_number = false;
	int			i;

	for (i = 0; i < nf; i++)
	{
		if (ftype[i] == DTK_DATE && !isdigit((unsigned char) *field[i]) &&
			(after_date || after_number) && pg_tzset(field[i]) == NULL)
			return after_date ? PLN_SOFT_BAD : PLN_SOFT_UNKNOWN;
		after_date |= ftype[i] == DTK_DATE;
		after_number |= ftype[i] == DTK_NUMBER;
	}
	return PLN_SOFT_OK;
}

static PlnSoftResult
soft_datetime(Oid type, int32 typmod, char *text, Datum *result)
{
	char		workbuf[MAXDATELEN + MAXDATEFIELDS];
	char	   *field[MAXDATEFIELDS];
	int			ftype[MAXDATEFIELDS];
	struct pg_tm tm;
	fsec_t		fsec;
	int			nf;
	int			tz;
	int			dtype;
	PlnSoftResult zones;
	bool		ok;

	if (ParseDateTime(text, workbuf, sizeof(workbuf), field, ftype, MAXDATEFIELDS, &nf) != 0)
		return PLN_SOFT_BAD;
	zones = check_zone_names(field, ftype, nf);
	if (zones != PLN_SOFT_OK)
		return zones;
	if (DecodeDateTime(field, ftype, nf, &dtype, &tm, &fsec, &tz) != 0)
		return PLN_SOFT_BAD;
	if (type == DATEOID)
		ok = date_from_fields(dtype, &tm, result);
	else
		ok = timestamp_from_fields(dtype, &tm, fsec, type == TIMESTAMPTZOID ? &tz : NULL, typmod,
							result);
	return ok ? PLN_SOFT_OK : PLN_SOFT_BAD;
}

/* After string_to_uuid(). */
static PlnSoftResult
soft_uuid(char *text, Datum *result)
{
	const char *at = text;
	bool		braces = *at == '{';
	int			i;

	if (braces)
		at++;
	for (i = 0; i < UUID_LEN; i++)
	{
		if (!isxdigit((unsigned char) at[0]) || !isxdigit((unsigned char) at[1]))
			return PLN_SOFT_BAD;
		at += 2;
		if (*at == '-' && i % 2 == 1 && i < UUID_LEN - 1)
			at++;
	}
	if ((braces && *at++ != '}') || *at != '\0')
		return PLN_SOFT_BAD;
	*result = DirectFunctionCall1(uuid_in, CStringGetDatum(text));
	return PLN_SOFT_OK;
}

PlnSoftResult
pln_soft_input(Oid type, int32 typmod, char *text, Datum *result)
{
	switch (type)
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return soft_text(type, typmod, text, result);
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return soft_int(type, text, result);
		case FLOAT4OID:
		case FLOAT8OID:
			return soft_float(type, text, result);
		case NUMERICOID:
			return soft_numeric(typmod, text, result);
		case BOOLOID:
			return soft_bool(text, result);
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return soft_datetime(type, typmod, text, result);
		case UUIDOID:
			return soft_uuid(text, result);
		default:
			return PLN_SOFT_UNKNOWN;
	}
}

#endif

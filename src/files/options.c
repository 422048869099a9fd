/*
 * options.c
 *	  The options of read_files: one table says name, kind and place of each.
 *
 * An option that the dialect has and we have not is in the table too, so that it is
 * refused by name (0A000) instead of being taken for a slip of the pen (22023).
 */
#include "postgres.h"

#include <limits.h>

#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/formatting.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

typedef enum OptionKind
{
	OPT_BOOL,
	OPT_STRING,
	OPT_CHAR,
	OPT_COUNT,					/* int64, at least min */
	OPT_SIZE,					/* bytes with unit */
	OPT_CUSTOM,
	OPT_IGNORED,				/* changes how files are found, never which */
	OPT_FIXED,					/* only this value is built */
	OPT_REFUSED
} OptionKind;

typedef void (*OptionParser) (PlnFileOptions *options, const char *name, const char *value);

typedef struct OptionDef
{
	const char *name;
	OptionKind	kind;
	size_t		offset;
	int64		min;			/* OPT_COUNT */
	const char *fixed;			/* OPT_FIXED */
	OptionParser parse;			/* OPT_CUSTOM */
} OptionDef;

static void parse_format(PlnFileOptions *options, const char *name, const char *value);
static void parse_mode(PlnFileOptions *options, const char *name, const char *value);
static void parse_evolution(PlnFileOptions *options, const char *name, const char *value);
static void parse_rescued(PlnFileOptions *options, const char *name, const char *value);
static void parse_corrupt(PlnFileOptions *options, const char *name, const char *value);
static void parse_encoding(PlnFileOptions *options, const char *name, const char *value);
static void parse_compression(PlnFileOptions *options, const char *name, const char *value);
static void parse_line_sep(PlnFileOptions *options, const char *name, const char *value);
static void parse_sep(PlnFileOptions *options, const char *name, const char *value);
static void parse_escape(PlnFileOptions *options, const char *name, const char *value);
static void parse_zone(PlnFileOptions *options, const char *name, const char *value);
static void parse_modified(PlnFileOptions *options, const char *name, const char *value);
static void parse_age(PlnFileOptions *options, const char *name, const char *value);
static void parse_pattern(PlnFileOptions *options, const char *name, const char *value);
static void parse_depth(PlnFileOptions *options, const char *name, const char *value);

#define AT(member)			offsetof(PlnFileOptions, member), 0, NULL, NULL
#define COUNT(member, min)	offsetof(PlnFileOptions, member), min, NULL, NULL
#define CUSTOM(function)	0, 0, NULL, function
#define FIXED(value)		0, 0, value, NULL
#define NOTHING				0, 0, NULL, NULL

static const OptionDef option_defs[] = {
	{"format", OPT_CUSTOM, CUSTOM(parse_format)},
	{"schema", OPT_STRING, AT(schema)},
	{"schemaHints", OPT_STRING, AT(schema_hints)},
	{"inferColumnTypes", OPT_BOOL, AT(infer_types)},
	{"inferSchema", OPT_BOOL, AT(infer_types)},
	{"schemaEvolutionMode", OPT_CUSTOM, CUSTOM(parse_evolution)},
	{"rescuedDataColumn", OPT_CUSTOM, CUSTOM(parse_rescued)},
	{"columnNameOfCorruptRecord", OPT_CUSTOM, CUSTOM(parse_corrupt)},
	{"partitionColumns", OPT_STRING, AT(partition_columns)},
	{"mode", OPT_CUSTOM, CUSTOM(parse_mode)},
	{"pathGlobFilter", OPT_STRING, AT(name_glob)},
	{"fileNamePattern", OPT_STRING, AT(name_glob)},
	{"recursiveFileLookup", OPT_BOOL, AT(recursive_lookup)},
	{"modifiedAfter", OPT_CUSTOM, CUSTOM(parse_modified)},
	{"modifiedBefore", OPT_CUSTOM, CUSTOM(parse_modified)},
	{"minFileAge", OPT_CUSTOM, CUSTOM(parse_age)},
	{"includeExistingFiles", OPT_BOOL, AT(include_existing)},
	{"allowOverwrites", OPT_BOOL, AT(allow_overwrites)},
	{"maxFilesPerTrigger", OPT_COUNT, COUNT(max_files, 1)},
	{"maxBytesPerTrigger", OPT_SIZE, COUNT(max_bytes, 1)},
	{"ignoreCorruptFiles", OPT_BOOL, AT(ignore_corrupt)},
	{"ignoreMissingFiles", OPT_BOOL, AT(ignore_missing)},
	{"encoding", OPT_CUSTOM, CUSTOM(parse_encoding)},
	{"charset", OPT_CUSTOM, CUSTOM(parse_encoding)},
	{"compression", OPT_CUSTOM, CUSTOM(parse_compression)},
	{"lineSep", OPT_CUSTOM, CUSTOM(parse_line_sep)},
	{"multiLine", OPT_BOOL, AT(multi_line)},
	{"readerCaseSensitive", OPT_BOOL, AT(case_sensitive)},
	{"timeZone", OPT_CUSTOM, CUSTOM(parse_zone)},
	{"dateFormat", OPT_CUSTOM, CUSTOM(parse_pattern)},
	{"timestampFormat", OPT_CUSTOM, CUSTOM(parse_pattern)},
	{"primitivesAsString", OPT_BOOL, AT(primitives_as_string)},
	{"prefersDecimal", OPT_BOOL, AT(prefers_decimal)},
	{"inferTimestamp", OPT_BOOL, AT(infer_timestamp)},
	{"dropFieldIfAllNull", OPT_BOOL, AT(drop_if_all_null)},
	{"maxNestingDepth", OPT_CUSTOM, CUSTOM(parse_depth)},
	{"header", OPT_BOOL, AT(header)},
	{"sep", OPT_CUSTOM, CUSTOM(parse_sep)},
	{"delimiter", OPT_CUSTOM, CUSTOM(parse_sep)},
	{"quote", OPT_CHAR, AT(quote)},
	{"escape", OPT_CUSTOM, CUSTOM(parse_escape)},
	{"comment", OPT_CHAR, AT(comment)},
	{"nullValue", OPT_STRING, AT(null_value)},
	{"emptyValue", OPT_STRING, AT(empty_value)},
	{"nanValue", OPT_STRING, AT(nan_value)},
	{"positiveInf", OPT_STRING, AT(positive_inf)},
	{"negativeInf", OPT_STRING, AT(negative_inf)},
	{"skipRows", OPT_COUNT, COUNT(skip_rows, 0)},
	{"maxColumns", OPT_COUNT, COUNT(max_columns, 1)},
	{"ignoreLeadingWhiteSpace", OPT_BOOL, AT(trim_leading)},
	{"ignoreTrailingWhiteSpace", OPT_BOOL, AT(trim_trailing)},

	/* found by listing alone: the set of files is the same */
	{"useNotifications", OPT_IGNORED, NOTHING},
	{"useManagedFileEvents", OPT_IGNORED, NOTHING},
	{"useIncrementalListing", OPT_IGNORED, NOTHING},
	{"backfillInterval", OPT_IGNORED, NOTHING},

	{"validateOptions", OPT_FIXED, FIXED("true")},
	{"useStrictGlobber", OPT_FIXED, FIXED("true")},
	{"preferDate", OPT_FIXED, FIXED("true")},
	{"allowNonNumericNumbers", OPT_FIXED, FIXED("true")},
	{"mergeSchema", OPT_FIXED, FIXED("false")},
	{"enforceSchema", OPT_FIXED, FIXED("false")},
	{"allowComments", OPT_FIXED, FIXED("false")},
	{"allowUnquotedFieldNames", OPT_FIXED, FIXED("false")},
	{"allowSingleQuotes", OPT_FIXED, FIXED("false")},
	{"allowBackslashEscapingAnyCharacter", OPT_FIXED, FIXED("false")},
	{"allowNumericLeadingZeros", OPT_FIXED, FIXED("false")},
	{"allowUnquotedControlChars", OPT_FIXED, FIXED("false")},
	{"maxCharsPerColumn", OPT_FIXED, FIXED("-1")},
	{"unescapedQuoteHandling", OPT_FIXED, FIXED("STOP_AT_DELIMITER")},
	{"locale", OPT_FIXED, FIXED("en-US")},
	{"cleanSource", OPT_FIXED, FIXED("OFF")},
	{"wholeText", OPT_FIXED, FIXED("false")},

	{"cleanSource.retentionDuration", OPT_REFUSED, NOTHING},
	{"cleanSource.moveDestination", OPT_REFUSED, NOTHING},
	{"charToEscapeQuoteEscaping", OPT_REFUSED, NOTHING},
	{"badRecordsPath", OPT_REFUSED, NOTHING},
	{"singleVariantColumn", OPT_REFUSED, NOTHING},
	{"maxFileAge", OPT_REFUSED, NOTHING},
	{"schemaLocation", OPT_REFUSED, NOTHING},
	{"rowTag", OPT_REFUSED, NOTHING},
	{"attributePrefix", OPT_REFUSED, NOTHING},
	{"valueTag", OPT_REFUSED, NOTHING}
};

static void
bad_value(const char *name, const char *value, const char *expected)
{
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("invalid value \"%s\" for option \"%s\" of read_files", value, name),
			 errdetail("Expected %s.", expected)));
}

static void
not_built(const char *name, const char *value)
{
	if (value == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_NOT_BUILT),
				 errmsg("option \"%s\" of read_files is not supported", name)));
	ereport(ERROR,
			(errcode(PLN_ERR_NOT_BUILT),
			 errmsg("value \"%s\" of option \"%s\" of read_files is not supported", value, name)));
}

static void
parse_format(PlnFileOptions *options, const char *name, const char *value)
{
	static const char *const known[] = {
		"xml", "parquet", "avro", "orc", "binaryFile", "delta", "kafka", NULL
	};
	int			i;

	if (pg_strcasecmp(value, "json") == 0 || pg_strcasecmp(value, "ndjson") == 0 ||
		pg_strcasecmp(value, "jsonl") == 0)
		options->format = PLN_FORMAT_JSON;
	else if (pg_strcasecmp(value, "csv") == 0)
		options->format = PLN_FORMAT_CSV;
	else if (pg_strcasecmp(value, "text") == 0)
		options->format = PLN_FORMAT_TEXT;
	else
	{
		for (i = 0; known[i] != NULL; i++)
			if (pg_strcasecmp(value, known[i]) == 0)
				not_built(name, value);
		bad_value(name, value, "json, csv or text");
	}
}

static void
parse_mode(PlnFileOptions *options, const char *name, const char *value)
{
	if (pg_strcasecmp(value, "PERMISSIVE") == 0)
		options->mode = PLN_MODE_PERMISSIVE;
	else if (pg_strcasecmp(value, "DROPMALFORMED") == 0)
		options->mode = PLN_MODE_DROPMALFORMED;
	else if (pg_strcasecmp(value, "FAILFAST") == 0)
		options->mode = PLN_MODE_FAILFAST;
	else
		bad_value(name, value, "PERMISSIVE, DROPMALFORMED or FAILFAST");
}

static void
parse_evolution(PlnFileOptions *options, const char *name, const char *value)
{
	if (pg_strcasecmp(value, "addNewColumns") == 0)
		options->evolution = PLN_EVOLVE_ADD;
	else if (pg_strcasecmp(value, "rescue") == 0)
		options->evolution = PLN_EVOLVE_RESCUE;
	else if (pg_strcasecmp(value, "failOnNewColumns") == 0)
		options->evolution = PLN_EVOLVE_FAIL;
	else if (pg_strcasecmp(value, "none") == 0)
		options->evolution = PLN_EVOLVE_NONE;
	else if (pg_strcasecmp(value, "addNewColumnsWithTypeWidening") == 0)
		not_built(name, value);
	else
		bad_value(name, value, "addNewColumns, rescue, failOnNewColumns or none");
}

static void
parse_rescued(PlnFileOptions *options, const char *name, const char *value)
{
	options->rescued_column = *value ? pln_column_name(value) : NULL;
	options->rescued_given = true;
}

static void
parse_corrupt(PlnFileOptions *options, const char *name, const char *value)
{
	if (*value == '\0')
		bad_value(name, value, "a column name");
	options->corrupt_column = pln_column_name(value);
	options->corrupt_given = true;
}

static void
parse_encoding(PlnFileOptions *options, const char *name, const char *value)
{
	int			encoding = pg_char_to_encoding(value);

	if (pg_strcasecmp(value, "ISO-8859-1") == 0)
		encoding = PG_LATIN1;
	else if (pg_strcasecmp(value, "US-ASCII") == 0)
		encoding = PG_UTF8;		/* a subset */
	if (pg_strncasecmp(value, "UTF-16", 6) == 0 || pg_strncasecmp(value, "UTF-32", 6) == 0)
		not_built(name, value);
	if (encoding < 0)
		bad_value(name, value, "the name of an encoding that the server knows");

	/*
	 * Encodings that only clients may use have bytes of wide characters that look like
	 * quotes, brackets and backslashes; records are cut before they are converted.
	 */
	if (!PG_VALID_BE_ENCODING(encoding))
		not_built(name, value);
	options->encoding = encoding;
}

static void
parse_compression(PlnFileOptions *options, const char *name, const char *value)
{
	if (pg_strcasecmp(value, "gzip") == 0 || pg_strcasecmp(value, "gz") == 0 ||
		pg_strcasecmp(value, "deflate") == 0)
		options->compression = "gzip";
	else if (pg_strcasecmp(value, "none") == 0 || pg_strcasecmp(value, "uncompressed") == 0)
		options->compression = "none";
	else if (pg_strcasecmp(value, "bzip2") == 0 || pg_strcasecmp(value, "snappy") == 0 ||
			 pg_strcasecmp(value, "lz4") == 0 || pg_strcasecmp(value, "zstd") == 0)
		not_built(name, value);
	else
		bad_value(name, value, "gzip, deflate or none");
}

/* Spark files have \t and the like spelled out. */
static char *
unescape_value(const char *value)
{
	StringInfoData out;

	initStringInfo(&out);
	for (; *value; value++)
	{
		if (value[0] == '\\' && value[1] != '\0')
		{
			value++;
			appendStringInfoChar(&out, *value == 't' ? '\t' : *value == 'n' ? '\n' :
								 *value == 'r' ? '\r' : *value);
		}
		else
			appendStringInfoChar(&out, *value);
	}
	return out.data;
}

static void
parse_line_sep(PlnFileOptions *options, const char *name, const char *value)
{
	char	   *sep = unescape_value(value);

	if (strcmp(sep, "\n") == 0 || strcmp(sep, "\r\n") == 0)
		options->line_sep = PLN_LINES_LF;
	else if (strcmp(sep, "\r") == 0)
		options->line_sep = PLN_LINES_CR;
	else
		not_built(name, value);
}

static void
parse_sep(PlnFileOptions *options, const char *name, const char *value)
{
	char	   *sep = strcmp(value, "\\") == 0 ? pstrdup(value) : unescape_value(value);

	if (*sep == '\0' || strpbrk(sep, "\r\n") != NULL)
		bad_value(name, value, "at least one character, and no line end");
	options->sep = sep;
}

static char
single_byte(const char *name, const char *value)
{
	char	   *c = strcmp(value, "\\") == 0 ? pstrdup(value) : unescape_value(value);

	if (c[0] == '\0')
		return '\0';
	if (c[1] != '\0' || (unsigned char) c[0] >= 0x80 || c[0] == '\n' || c[0] == '\r')
		bad_value(name, value, "one ASCII character, or the empty string for none");
	return c[0];
}

static void
parse_escape(PlnFileOptions *options, const char *name, const char *value)
{
	options->escape = single_byte(name, value);
	options->escape_given = true;
}

static void
parse_zone(PlnFileOptions *options, const char *name, const char *value)
{
	options->zone = pg_tzset(value);
	if (options->zone == NULL)
		bad_value(name, value, "the name of a time zone");
}

static void
parse_modified(PlnFileOptions *options, const char *name, const char *value)
{
	PlnTime		t;
	TimestampTz ts;

	if (!pln_time_iso(value, strlen(value), &t))
		bad_value(name, value, "a time such as 2026-03-01 or 2026-03-01T08:00:00Z");
	ts = pln_time_timestamptz(&t, session_timezone);
	if (pg_strcasecmp(name, "modifiedAfter") == 0)
	{
		options->modified_after = ts;
		options->has_modified_after = true;
	}
	else
	{
		options->modified_before = ts;
		options->has_modified_before = true;
	}
}

static void
parse_age(PlnFileOptions *options, const char *name, const char *value)
{
	static const struct
	{
		const char *unit;
		int64		usec;
	}			units[] = {
		{"ms", 1000}, {"s", USECS_PER_SEC}, {"sec", USECS_PER_SEC},
		{"second", USECS_PER_SEC}, {"seconds", USECS_PER_SEC},
		{"m", USECS_PER_MINUTE}, {"min", USECS_PER_MINUTE}, {"minute", USECS_PER_MINUTE},
		{"minutes", USECS_PER_MINUTE}, {"h", USECS_PER_HOUR}, {"hour", USECS_PER_HOUR},
		{"hours", USECS_PER_HOUR}, {"d", USECS_PER_DAY}, {"day", USECS_PER_DAY},
		{"days", USECS_PER_DAY}
	};
	char	   *rest;
	long		n = strtol(value, &rest, 10);
	size_t		i;

	while (*rest == ' ')
		rest++;
	for (i = 0; i < lengthof(units); i++)
		if (rest != value && n >= 0 && n <= 1000000 && pg_strcasecmp(rest, units[i].unit) == 0)
		{
			options->min_file_age = n * units[i].usec;
			return;
		}
	bad_value(name, value, "a number with a unit, such as 30 seconds");
}

static void
parse_pattern(PlnFileOptions *options, const char *name, const char *value)
{
	/* compiled again where it is used: here only its errors matter */
	pfree(pln_time_pattern_compile(name, value));
	if (pg_strcasecmp(name, "dateFormat") == 0)
		options->date_format = pstrdup(value);
	else
		options->timestamp_format = pstrdup(value);
}

static void
parse_depth(PlnFileOptions *options, const char *name, const char *value)
{
	char	   *rest;
	long		n = strtol(value, &rest, 10);

	if (rest == value || *rest != '\0' || n < 1 || n > 500)
		bad_value(name, value, "a number from 1 to 500");
	options->max_depth = (int) n;
}

static int64
parse_count(const char *name, const char *value, int64 min, bool with_unit)
{
	static const char units[] = "kmgt";
	char	   *rest;
	int64		n;
	int64		scale = 1;

	errno = 0;
	n = strtoll(value, &rest, 10);
	if (rest != value && with_unit && *rest != '\0')
	{
		char		lower;
		const char *unit;

		while (*rest == ' ')
			rest++;
		lower = pg_tolower((unsigned char) *rest);
		unit = lower ? strchr(units, lower) : NULL;
		if (unit != NULL)
		{
			scale = INT64CONST(1) << (10 * (unit - units + 1));
			rest++;
		}
		if (pg_tolower((unsigned char) *rest) == 'b')
			rest++;
	}
	if (rest == value || *rest != '\0' || errno != 0 || n < min || n > PG_INT64_MAX / scale)
		bad_value(name, value, with_unit ? "a size such as 500m or 10g" :
				  psprintf("a whole number, at least " INT64_FORMAT, min));
	return n * scale;
}

static const OptionDef *
find_option(const char *name)
{
	const OptionDef *best = NULL;
	int			best_distance = INT_MAX;
	size_t		i;
	char	   *lower = asc_tolower(name, strlen(name));

	for (i = 0; i < lengthof(option_defs); i++)
		if (pg_strcasecmp(option_defs[i].name, name) == 0)
			return &option_defs[i];

	for (i = 0; i < lengthof(option_defs) && strlen(name) <= 100; i++)
	{
		const char *known = option_defs[i].name;
		char	   *known_lower = asc_tolower(known, strlen(known));
		int			distance = varstr_levenshtein(lower, strlen(lower), known_lower,
												  strlen(known_lower), 1, 1, 1, false);

		if (distance < best_distance)
		{
			best_distance = distance;
			best = &option_defs[i];
		}
	}
	ereport(ERROR,
			(errcode(PLN_ERR_BAD_VALUE),
			 errmsg("unknown option \"%s\" of read_files", name),
			 best != NULL && best_distance <= 2 + (int) strlen(name) / 3 ?
			 errhint("Perhaps you meant \"%s\".", best->name) : 0));
	return NULL;				/* keep the compiler quiet */
}

static void
set_option(PlnFileOptions *options, const char *name, const char *value)
{
	const OptionDef *def;
	char	   *place;
	bool		flag;

	if (pg_strncasecmp(name, "cloudFiles.", 11) == 0)
		name += 11;
	def = find_option(name);
	place = (char *) options + def->offset;
	switch (def->kind)
	{
		case OPT_BOOL:
			if (!parse_bool(value, &flag))
				bad_value(def->name, value, "true or false");
			*(bool *) place = flag;
			break;
		case OPT_STRING:
			*(char **) place = pstrdup(value);
			break;
		case OPT_CHAR:
			*place = single_byte(def->name, value);
			break;
		case OPT_COUNT:
			*(int64 *) place = parse_count(def->name, value, def->min, false);
			break;
		case OPT_SIZE:
			*(int64 *) place = parse_count(def->name, value, def->min, true);
			break;
		case OPT_CUSTOM:
			def->parse(options, def->name, value);
			break;
		case OPT_IGNORED:
			break;
		case OPT_FIXED:
			if (pg_strcasecmp(def->fixed, value) != 0)
				not_built(def->name, value);
			break;
		case OPT_REFUSED:
			not_built(def->name, NULL);
			break;
	}
}

/* A path as read_files gets it: local, absolute, without scheme. */
static char *
clean_path(const char *path)
{
	const char *colon = strchr(path, ':');
	const char *slash = strchr(path, '/');

	if (path[0] == '\0')
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("path of read_files is empty")));
	if (colon != NULL && colon > path + 1 && slash != NULL && slash == colon + 1)
	{
		if (pg_strncasecmp(path, "file:", 5) != 0)
			ereport(ERROR,
					(errcode(PLN_ERR_NOT_BUILT),
					 errmsg("read_files cannot read \"%s\"", path),
					 errdetail("Only local paths are supported.")));
		path = colon + 1;
		if (strncmp(path, "///", 3) == 0)
			path += 2;
	}
	if (!is_absolute_path(path))
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("path \"%s\" of read_files is not absolute", path)));
	return pstrdup(path);
}

static void
check_combination(PlnFileOptions *options, bool evolution_given)
{
	if (options->schema != NULL)
	{
		if (!evolution_given)
			options->evolution = PLN_EVOLVE_NONE;
		else if (options->evolution == PLN_EVOLVE_ADD)
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("mode \"%s\" of read_files needs an inferred schema",
							"addNewColumns"),
					 errhint("Give schemaHints in place of schema.")));
		if (options->schema_hints != NULL)
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("options \"%s\" and \"%s\" of read_files exclude each other",
							"schema", "schemaHints")));
	}
	if (!options->rescued_given && options->schema == NULL &&
		options->evolution != PLN_EVOLVE_NONE)
		options->rescued_column = "_rescued_data";
	if (options->quote != '\0' && options->sep != NULL &&
		strchr(options->sep, options->quote) != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("options \"sep\" and \"quote\" of read_files must differ")));
}

static PlnFileOptions *
make_defaults(void)
{
	PlnFileOptions *options = palloc0(sizeof(PlnFileOptions));

	options->infer_types = true;
	options->corrupt_column = "_corrupt_record";
	options->include_existing = true;
	options->max_files = 1000;
	options->encoding = PG_UTF8;
	options->case_sensitive = true;
	options->max_depth = 500;
	options->quote = '"';
	options->escape = '\\';
	options->empty_value = "";
	options->nan_value = "NaN";
	options->positive_inf = "Inf";
	options->negative_inf = "-Inf";
	options->max_columns = 20480;
	return options;
}

PlnFileOptions *
pln_file_options_parse(const char *path, List *names, List *values)
{
	PlnFileOptions *options = make_defaults();
	bool		evolution_given = false;
	ListCell   *name;
	ListCell   *value;

	options->path = clean_path(path);
	forboth(name, names, value, values)
	{
		const char *n = lfirst(name);

		set_option(options, n, lfirst(value));
		if (pg_strcasecmp(n, "schemaEvolutionMode") == 0 ||
			pg_strcasecmp(n, "cloudFiles.schemaEvolutionMode") == 0)
			evolution_given = true;
	}
	check_combination(options, evolution_given);
	return options;
}

PlnFileOptions *
pln_file_options_from_jsonb(const char *path, Jsonb *json)
{
	List	   *names = NIL;
	List	   *values = NIL;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	v;
	char	   *name = NULL;

	if (!JB_ROOT_IS_OBJECT(json))
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("options of read_files must be a JSON object")));
	it = JsonbIteratorInit(&json->root);
	while ((token = JsonbIteratorNext(&it, &v, true)) != WJB_DONE)
	{
		char	   *text = NULL;

		if (token == WJB_KEY)
			name = pnstrdup(v.val.string.val, v.val.string.len);
		if (token != WJB_VALUE)
			continue;
		if (strcmp(name, "stream") == 0 || v.type == jbvNull)
			continue;
		if (v.type == jbvString)
			text = pnstrdup(v.val.string.val, v.val.string.len);
		else if (v.type == jbvBool)
			text = v.val.boolean ? "true" : "false";
		else if (v.type == jbvNumeric)
			text = DatumGetCString(DirectFunctionCall1(numeric_out,
													   NumericGetDatum(v.val.numeric)));
		else
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("value of option \"%s\" of read_files is no scalar", name)));
		names = lappend(names, name);
		values = lappend(values, text);
	}
	return pln_file_options_parse(path, names, values);
}

const char *
pln_file_format_name(PlnFileFormat format)
{
	switch (format)
	{
		case PLN_FORMAT_JSON:
			return "json";
		case PLN_FORMAT_CSV:
			return "csv";
		case PLN_FORMAT_TEXT:
			return "text";
		case PLN_FORMAT_DETECT:
			break;
	}
	return "unknown";
}

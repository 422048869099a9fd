/*
 * hints.c
 *	  Functions of Spark that PostgreSQL does not have, and what to write instead.
 *	  Shown when such a function is not found.
 */
#include "postgres.h"

#include "dialect/parse.h"

typedef struct FunctionHint
{
	const char *name;
	const char *hint;
} FunctionHint;

/* sorted by name */
static const FunctionHint hints[] = {
	{"add_months", "Use (date + n * interval '1 month')::date."},
	{"aggregate", "Use a subquery over unnest(array)."},
	{"approx_count_distinct", "Use count(DISTINCT expression)."},
	{"approx_percentile", "Use percentile_disc(p) WITHIN GROUP (ORDER BY expression)."},
	{"array_distinct", "Use ARRAY(SELECT DISTINCT x FROM unnest(array) x)."},
	{"array_except", "Use ARRAY(SELECT unnest(a) EXCEPT SELECT unnest(b))."},
	{"array_intersect", "Use ARRAY(SELECT unnest(a) INTERSECT SELECT unnest(b))."},
	{"array_join", "Use array_to_string(array, delimiter)."},
	{"array_max", "Use (SELECT max(x) FROM unnest(array) x)."},
	{"array_min", "Use (SELECT min(x) FROM unnest(array) x)."},
	{"array_sort", "Use ARRAY(SELECT x FROM unnest(array) x ORDER BY x)."},
	{"array_union", "Use ARRAY(SELECT unnest(a) UNION SELECT unnest(b))."},
	{"arrays_overlap", "Use a && b."},
	{"base64", "Use encode(bytes, 'base64')."},
	{"bin", "Use n::bit(64)::text."},
	{"bround", "Use round(numeric, digits)."},
	{"collect_list", "Use array_agg(x) FILTER (WHERE x IS NOT NULL)."},
	{"collect_set", "Use array_agg(DISTINCT x) FILTER (WHERE x IS NOT NULL)."},
	{"conv", "Use to_hex(n), or a cast through bit strings."},
	{"crc32", "Use hashtext(text) for a checksum of your own."},
	{"date_format", "Use to_char(timestamp, 'YYYY-MM-DD HH24:MI:SS')."},
	{"date_from_unix_date", "Use date '1970-01-01' + n."},
	{"dateadd", "Use timestamp + n * interval '1 day'."},
	{"datediff", "Use end::date - start::date."},
	{"decode", "Use CASE expression WHEN value THEN result ... END."},
	{"element_at", "Use array[n], or json -> 'key'."},
	{"endswith", "Use right(text, length(suffix)) = suffix."},
	{"equal_null", "Use a IS NOT DISTINCT FROM b."},
	{"exists", "Use EXISTS (SELECT FROM unnest(array) x WHERE ...)."},
	{"explode_outer", "Use LEFT JOIN LATERAL unnest(array) AS alias(column) ON true."},
	{"filter", "Use ARRAY(SELECT x FROM unnest(array) x WHERE ...)."},
	{"first", "Use (array_agg(x ORDER BY ...))[1], or min(x)."},
	{"first_value", "Add an OVER clause, or use (array_agg(x ORDER BY ...))[1]."},
	{"flatten", "Use ARRAY(SELECT unnest(array))."},
	{"format_number", "Use to_char(number, 'FM999,999,990.00')."},
	{"format_string", "Use format('%s', value)."},
	{"from_json", "Use text::jsonb, and column:path or jsonb_to_record(...)."},
	{"from_unixtime", "Use to_timestamp(seconds)."},
	{"from_utc_timestamp", "Use (timestamp AT TIME ZONE 'UTC') AT TIME ZONE zone."},
	{"get_json_object", "Use column:path, or text::jsonb #>> '{path}'."},
	{"hash", "Use hashtext(text)."},
	{"hex", "Use to_hex(n), or encode(bytes, 'hex')."},
	{"input_file_name", "Use _metadata.file_path of read_files."},
	{"json_tuple", "Use text::jsonb ->> 'key' for each key."},
	{"kurtosis", "Compute it from sums of powers."},
	{"last", "Use (array_agg(x ORDER BY ... DESC))[1], or max(x)."},
	{"last_day", "Use (date_trunc('month', date) + interval '1 month - 1 day')::date."},
	{"levenshtein", "Install it with CREATE EXTENSION fuzzystrmatch."},
	{"log2", "Use log(2, x)."},
	{"map", "Use jsonb_build_object('key', value, ...)."},
	{"map_keys", "Use jsonb_object_keys(json)."},
	{"max_by", "Use (array_agg(x ORDER BY y DESC))[1]."},
	{"median", "Use percentile_cont(0.5) WITHIN GROUP (ORDER BY x)."},
	{"min_by", "Use (array_agg(x ORDER BY y))[1]."},
	{"monotonically_increasing_id", "Use row_number() OVER (), or an identity column."},
	{"months_between", "Use extract(year FROM age(a, b)) * 12 + extract(month FROM age(a, b))."},
	{"named_struct", "Use jsonb_build_object('key', value, ...)."},
	{"next_day", "Use date arithmetic with extract(isodow FROM date)."},
	{"percentile", "Use percentile_cont(p) WITHIN GROUP (ORDER BY x)."},
	{"percentile_approx", "Use percentile_disc(p) WITHIN GROUP (ORDER BY x)."},
	{"pmod", "Use mod(mod(a, b) + b, b)."},
	{"posexplode", "Use unnest(array) WITH ORDINALITY."},
	{"regexp_extract", "Use (regexp_match(text, pattern))[n]."},
	{"regexp_extract_all", "Use regexp_matches(text, pattern, 'g')."},
	{"schema_of_json", "Use jsonb_typeof(json)."},
	{"sequence", "Use generate_series(from, to, step)."},
	{"sha", "Use encode(sha256(bytes), 'hex')."},
	{"sha1", "Use encode(sha256(bytes), 'hex')."},
	{"sha2", "Use encode(sha256(text::bytea), 'hex')."},
	{"shuffle", "Use ORDER BY random()."},
	{"skewness", "Compute it from sums of powers."},
	{"slice", "Use array[from:to]."},
	{"sort_array", "Use ARRAY(SELECT x FROM unnest(array) x ORDER BY x)."},
	{"split", "Use string_to_array(text, delimiter), or regexp_split_to_array(text, pattern)."},
	{"startswith", "Use starts_with(text, prefix)."},
	{"substring_index", "Use split_part(text, delimiter, n)."},
	{"timestamp_micros", "Use to_timestamp(n / 1e6)."},
	{"timestamp_millis", "Use to_timestamp(n / 1e3)."},
	{"timestamp_seconds", "Use to_timestamp(n)."},
	{"timestampadd", "Use timestamp + n * interval '1 minute'."},
	{"timestampdiff", "Use extract(epoch FROM b - a)."},
	{"to_json", "Use to_jsonb(value)."},
	{"to_unix_timestamp", "Use extract(epoch FROM timestamp)."},
	{"to_utc_timestamp", "Use (timestamp AT TIME ZONE zone) AT TIME ZONE 'UTC'."},
	{"transform", "Use ARRAY(SELECT expression FROM unnest(array) x)."},
	{"trunc", "Use date_trunc('month', date)::date."},
	{"try_add", "Use a + b, or CASE to guard it."},
	{"try_divide", "Use a / nullif(b, 0)."},
	{"try_to_number", "Use TRY_CAST(text AS numeric)."},
	{"try_to_timestamp", "Use TRY_CAST(text AS timestamptz)."},
	{"typeof", "Use pg_typeof(value)."},
	{"unbase64", "Use decode(text, 'base64')."},
	{"unhex", "Use decode(text, 'hex')."},
	{"unix_date", "Use date - date '1970-01-01'."},
	{"unix_timestamp", "Use extract(epoch FROM timestamp)."},
	{"weekday", "Use extract(isodow FROM date) - 1."},
	{"window", "Use date_bin('5 minutes', timestamp, 'epoch'::timestamptz)."},
	{"xxhash64", "Use hashtextextended(text, 0)."},
	{"zip_with", "Use unnest(a, b) in FROM."},
};

static int
compare_hint(const void *name, const void *hint)
{
	return strcmp(name, ((const FunctionHint *) hint)->name);
}

const char *
pln_function_hint(const char *name)
{
	const FunctionHint *found = bsearch(name, hints, lengthof(hints), sizeof(FunctionHint),
										compare_hint);

	return found != NULL ? found->hint : NULL;
}

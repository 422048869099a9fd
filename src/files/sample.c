/*
 * sample.c
 *	  Which columns a sample of files has, and what kinds of values each of them holds.
 *
 * A column is a key as it is spelled.  A spelling that differs from an earlier one in case
 * only is an alias: with readerCaseSensitive its values are not looked at (they will be
 * rescued), else they count for the first spelling.  Malformed records say nothing.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

/* A table can hardly have more: its rows must fit a page. */
#define MAX_COLUMNS		1500

static uint32
hash_name(const char *name, int len)
{
	return hash_bytes((const unsigned char *) name, len);
}

static void
grow(PlnSample *sample)
{
	int			i;

	sample->maxcolumns *= 2;
	sample->columns = repalloc(sample->columns, sample->maxcolumns * sizeof(PlnSampleColumn));
	sample->mask = sample->maxcolumns * 2 - 1;
	sample->slots = repalloc(sample->slots, (sample->mask + 1) * sizeof(int));
	memset(sample->slots, 0xff, (sample->mask + 1) * sizeof(int));
	for (i = 0; i < sample->ncolumns; i++)
	{
		PlnSampleColumn *column = &sample->columns[i];
		uint32		slot = hash_name(column->source, column->len) & sample->mask;

		while (sample->slots[slot] >= 0)
			slot = (slot + 1) & sample->mask;
		sample->slots[slot] = i;
	}
}

/* The column of a key, made when it is new. */
static PlnSampleColumn *
column_of(PlnSample *sample, const char *name, int len)
{
	PlnSampleColumn *column;
	uint32		slot;
	int			i = sample->last + 1 < sample->ncolumns ? sample->last + 1 : 0;

	if (i < sample->ncolumns && sample->columns[i].len == len &&
		memcmp(sample->columns[i].source, name, len) == 0)
	{
		sample->last = i;
		return &sample->columns[i];
	}
	for (slot = hash_name(name, len) & sample->mask; sample->slots[slot] >= 0;
		 slot = (slot + 1) & sample->mask)
	{
		column = &sample->columns[sample->slots[slot]];
		if (column->len == len && memcmp(column->source, name, len) == 0)
		{
			sample->last = sample->slots[slot];
			return column;
		}
	}

	if (sample->ncolumns == sample->maxcolumns)
	{
		grow(sample);
		return column_of(sample, name, len);
	}
	column = &sample->columns[sample->ncolumns];
	column->source = MemoryContextAlloc(sample->cxt, len + 1);
	memcpy(column->source, name, len);
	column->source[len] = '\0';
	column->len = len;
	column->flags = 0;
	column->alias = -1;
	for (i = 0; i < sample->ncolumns; i++)
		if (sample->columns[i].alias < 0 &&
			pg_strcasecmp(sample->columns[i].source, column->source) == 0)
		{
			column->alias = i;
			break;
		}
	if (column->alias < 0 && ++sample->ndata > MAX_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("files below \"%s\" have more than %d columns", sample->options->path,
						MAX_COLUMNS),
				 errhint("Name the wanted columns with schema => 'name type, ...'.")));
	sample->slots[slot] = sample->ncolumns;
	sample->last = sample->ncolumns++;
	if (sample->ncolumns > 20 * MAX_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("files below \"%s\" have too many names", sample->options->path)));
	return column;
}

void
pln_sample_note(PlnSample *sample, const char *name, int len, int flags)
{
	PlnSampleColumn *column = column_of(sample, name, len);

	if (column->alias >= 0)
	{
		if (sample->options->case_sensitive)
			return;
		column = &sample->columns[column->alias];
	}
	column->flags |= flags;
}

static int
number_flags(const char *s, int len)
{
	static const int by_class[] = {
		0, PLN_SEEN_INT4, PLN_SEEN_INT8, PLN_SEEN_BIG, PLN_SEEN_DOUBLE, PLN_SEEN_DECIMAL
	};
	bool		beyond;
	int			flags = by_class[pln_classify_number(s, len, &beyond)];

	return flags != 0 && beyond ? flags | PLN_SEEN_BEYOND : flags;
}

static int
time_flags(PlnSample *sample, const char *s, int len)
{
	PlnTime		t;

	if (sample->date_pattern != NULL && pln_time_match(sample->date_pattern, s, len, &t))
		return PLN_SEEN_DATE;
	if (sample->timestamp_pattern != NULL)
	{
		if (pln_time_match(sample->timestamp_pattern, s, len, &t))
			return t.lossy ? PLN_SEEN_STRING : t.has_zone ? PLN_SEEN_ZONED : PLN_SEEN_TIME;
		if (sample->date_pattern != NULL || !pln_time_iso(s, len, &t) || t.has_time)
			return PLN_SEEN_STRING;
		return PLN_SEEN_DATE;
	}
	if (!pln_time_iso(s, len, &t) || t.lossy)
		return PLN_SEEN_STRING;
	if (!t.has_time)
		return sample->date_pattern != NULL ? PLN_SEEN_STRING : PLN_SEEN_DATE;
	return t.has_zone ? PLN_SEEN_ZONED : PLN_SEEN_TIME;
}

int
pln_sample_text_flags(PlnSample *sample, const char *s, int len)
{
	PlnFileOptions *o = sample->options;
	int			flags = number_flags(s, len);

	if (flags != 0)
		return flags;
	if (pln_text_equals_nocase(s, len, "true") || pln_text_equals_nocase(s, len, "false"))
		return PLN_SEEN_BOOL;
	if (pln_text_equals_nocase(s, len, o->nan_value) ||
		pln_text_equals_nocase(s, len, o->positive_inf) ||
		pln_text_equals_nocase(s, len, o->negative_inf))
		return PLN_SEEN_SPECIAL;
	return time_flags(sample, s, len);
}

static int
json_flags(PlnSample *sample, const PlnJsonValue *value)
{
	switch (value->kind)
	{
		case PLN_JSON_NULL:
			return 0;
		case PLN_JSON_BOOL:
			return sample->options->primitives_as_string ? PLN_SEEN_STRING : PLN_SEEN_BOOL;
		case PLN_JSON_NUMBER:
			return sample->options->primitives_as_string ? PLN_SEEN_STRING :
				number_flags(value->start, value->len);
		case PLN_JSON_SPECIAL:
			return sample->options->primitives_as_string ? PLN_SEEN_STRING : PLN_SEEN_SPECIAL;
		case PLN_JSON_STRING:
			if (sample->options->infer_timestamp && !value->escaped)
			{
				int			flags = time_flags(sample, value->start + 1, value->len - 2);

				return flags == PLN_SEEN_DATE ? PLN_SEEN_STRING : flags;
			}
			return PLN_SEEN_STRING;
		case PLN_JSON_OBJECT:
		case PLN_JSON_ARRAY:
			return PLN_SEEN_NESTED;
	}
	return PLN_SEEN_STRING;
}

/* ---- sampling ---- */

/* A malformed record says nothing: it is looked through before its keys count. */
static void
sample_json_record(PlnSample *sample, PlnRecord *record)
{
	PlnJsonScan scan;
	PlnJsonValue key;
	PlnJsonValue value;
	bool		done = false;
	bool		first;
	int			flags;
	int			pass;

	if (record->error != NULL)
		return;
	for (pass = 0; pass < 2; pass++)
	{
		pln_json_scan_init(&scan, record->text, record->len, sample->options->max_depth);
		if (!pln_json_scan_open(&scan, '{'))
			return;
		for (first = true;; first = false)
		{
			if (!pln_json_scan_next(&scan, '{', first, &key, &value, &done))
				return;
			if (done)
				break;
			if (pass == 0)
				continue;
			flags = json_flags(sample, &value);
			if (!key.escaped)
				pln_sample_note(sample, key.start + 1, key.len - 2, flags);
			else if (pln_json_unescape(&key, &sample->buf))
				pln_sample_note(sample, sample->buf.data, sample->buf.len, flags);
		}
		if (!pln_json_scan_end(&scan))
			return;
	}
}

static void
sample_csv_record(PlnSample *sample, PlnCsvReader *csv, PlnRecord *record)
{
	int			i;
	int			n = csv->nfields;

	if (record->error != NULL)
		return;
	if (csv->header != NIL)
		n = Min(n, list_length(csv->header));
	for (i = 0; i < n; i++)
	{
		const char *name;
		char		position[16];
		const char *text;
		int			len;
		int			flags = 0;

		if (csv->header != NIL)
			name = list_nth(csv->header, i);
		else
		{
			snprintf(position, sizeof(position), "_c%d", i);
			name = position;
		}
		if (pln_csv_field(csv, record, i, &sample->buf, &text, &len) && len > 0)
			flags = pln_sample_text_flags(sample, text, len);
		pln_sample_note(sample, name, strlen(name), flags);
	}
}

static void
sample_file(PlnSample *sample, PlnFileInfo *info, int64 *budget)
{
	MemoryContext filecxt = AllocSetContextCreate(CurrentMemoryContext, "pipeline sample",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(filecxt);
	PlnFileInfo copy = *info;	/* inference leaves the ledger's figures alone */
	PlnInput   *in = pln_input_open(&copy, sample->options);
	PlnJsonReader json = {0};
	PlnCsvReader csv;
	PlnRecord	record;
	int			n;
	ListCell   *lc;

	if (in != NULL)
	{
		if (sample->options->format == PLN_FORMAT_CSV)
			pln_csv_init(&csv, sample->options, info);
		for (n = 0; n < PLN_SAMPLE_RECORDS && in->bytes < *budget; n++)
		{
			CHECK_FOR_INTERRUPTS();
			if (sample->options->format == PLN_FORMAT_JSON)
			{
				if (!pln_json_next(in, &json, &record))
					break;
				sample_json_record(sample, &record);
			}
			else
			{
				if (!pln_csv_next(in, &csv, &record))
					break;
				sample_csv_record(sample, &csv, &record);
			}
			sample->records++;
		}
		/* a header without rows names columns too */
		if (sample->options->format == PLN_FORMAT_CSV && n == 0)
			foreach(lc, csv.header)
				pln_sample_note(sample, lfirst(lc), strlen(lfirst(lc)), 0);
		*budget -= in->bytes;
		pln_input_close(in);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(filecxt);
}

void
pln_sample_files(PlnSample *sample, List *files, PlnFileOptions *options)
{
	int64		budget = PLN_SAMPLE_BYTES;
	int			n = 0;
	ListCell   *lc;

	memset(sample, 0, sizeof(PlnSample));
	sample->options = options;
	sample->cxt = CurrentMemoryContext;
	sample->last = -1;
	sample->maxcolumns = 32;
	sample->columns = palloc(sample->maxcolumns * sizeof(PlnSampleColumn));
	sample->mask = sample->maxcolumns * 2 - 1;
	sample->slots = palloc((sample->mask + 1) * sizeof(int));
	memset(sample->slots, 0xff, (sample->mask + 1) * sizeof(int));
	initStringInfo(&sample->buf);
	if (options->date_format != NULL)
		sample->date_pattern = pln_time_pattern_compile("dateFormat", options->date_format);
	if (options->timestamp_format != NULL)
		sample->timestamp_pattern = pln_time_pattern_compile("timestampFormat",
														  options->timestamp_format);
	foreach(lc, files)
	{
		if (n++ == PLN_SAMPLE_FILES || budget <= 0)
			break;
		sample_file(sample, lfirst(lc), &budget);
	}
}

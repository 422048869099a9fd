/*
 * infer.c
 *	  Column names and types from a sample of the files.
 *
 * A type is inferred only if every value of the sample says in it all that its text says:
 * 00123, +49 and 2024-02-30 keep their column text, an integer beyond 64 bits or a decimal
 * that double precision cannot give back makes it numeric.  What does not fit later is
 * rescued by the reader; types of known columns never change.
 *
 * JSON: true/false boolean, integers bigint, other numbers double precision, strings text,
 * objects and arrays jsonb, only null text, anything mixed text.  CSV: the narrowest of
 * integer, bigint, numeric, double precision, date, timestamp with or without time zone,
 * boolean, else text; times with and without zone do not mix.
 *
 * Keys that differ in case only are one column with readerCaseSensitive false; else the
 * first spelling is the column and values of the others are rescued.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/heap.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

#define SEEN_INT4		0x0001
#define SEEN_INT8		0x0002
#define SEEN_BIG		0x0004
#define SEEN_DOUBLE		0x0008
#define SEEN_DECIMAL	0x0010
#define SEEN_SPECIAL	0x0020
#define SEEN_NUMBER		0x003f
#define SEEN_BOOL		0x0040
#define SEEN_STRING		0x0080
#define SEEN_NESTED		0x0100
#define SEEN_DATE		0x0200
#define SEEN_TIME		0x0400	/* without zone */
#define SEEN_ZONED		0x0800
/* some number beyond what double precision keeps */
#define SEEN_BEYOND		0x1000

/* More columns than a table can have help nobody; system columns need some room. */
#define MAX_COLUMNS		1500

typedef struct InferColumn
{
	char	   *source;
	int			len;
	int			flags;
	int			alias;			/* the column this is another spelling of, or -1 */
} InferColumn;

typedef struct Inference
{
	PlnFileOptions *options;
	MemoryContext cxt;			/* of names */
	PlnTimePattern *date_pattern;
	PlnTimePattern *timestamp_pattern;
	InferColumn *columns;
	int			ncolumns;
	int			maxcolumns;
	int		   *slots;
	uint32		mask;
	int			last;
	int			ndata;			/* columns that are no alias */
	int64		records;
	StringInfoData buf;
} Inference;

static uint32
hash_name(const char *name, int len)
{
	return hash_bytes((const unsigned char *) name, len);
}

static void
grow(Inference *inf)
{
	int			i;

	inf->maxcolumns *= 2;
	inf->columns = repalloc(inf->columns, inf->maxcolumns * sizeof(InferColumn));
	inf->mask = inf->maxcolumns * 2 - 1;
	inf->slots = repalloc(inf->slots, (inf->mask + 1) * sizeof(int));
	memset(inf->slots, 0xff, (inf->mask + 1) * sizeof(int));
	for (i = 0; i < inf->ncolumns; i++)
	{
		uint32		slot = hash_name(inf->columns[i].source, inf->columns[i].len) & inf->mask;

		while (inf->slots[slot] >= 0)
			slot = (slot + 1) & inf->mask;
		inf->slots[slot] = i;
	}
}

/* The column of a key, made when it is new. */
static InferColumn *
column_of(Inference *inf, const char *name, int len)
{
	InferColumn *column;
	uint32		slot;
	int			i = inf->last + 1 < inf->ncolumns ? inf->last + 1 : 0;

	if (i < inf->ncolumns && inf->columns[i].len == len &&
		memcmp(inf->columns[i].source, name, len) == 0)
	{
		inf->last = i;
		return &inf->columns[i];
	}
	for (slot = hash_name(name, len) & inf->mask; inf->slots[slot] >= 0;
		 slot = (slot + 1) & inf->mask)
	{
		column = &inf->columns[inf->slots[slot]];
		if (column->len == len && memcmp(column->source, name, len) == 0)
		{
			inf->last = inf->slots[slot];
			return column;
		}
	}

	if (inf->ncolumns == inf->maxcolumns)
	{
		grow(inf);
		return column_of(inf, name, len);
	}
	column = &inf->columns[inf->ncolumns];
	column->source = MemoryContextAlloc(inf->cxt, len + 1);
	memcpy(column->source, name, len);
	column->source[len] = '\0';
	column->len = len;
	column->flags = 0;
	column->alias = -1;
	for (i = 0; i < inf->ncolumns; i++)
		if (inf->columns[i].alias < 0 &&
			pg_strcasecmp(inf->columns[i].source, column->source) == 0)
		{
			column->alias = i;
			break;
		}
	if (column->alias < 0 && ++inf->ndata > MAX_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("files below \"%s\" have more than %d columns", inf->options->path,
						MAX_COLUMNS),
				 errhint("Name the columns with schema => '...'; the rest goes to the rescued column.")));
	inf->slots[slot] = inf->ncolumns;
	inf->last = inf->ncolumns++;
	if (inf->ncolumns > 20 * MAX_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("files below \"%s\" have too many names", inf->options->path)));
	return column;
}

static void
note(Inference *inf, const char *name, int len, int flags)
{
	InferColumn *column = column_of(inf, name, len);

	if (column->alias >= 0)
	{
		if (inf->options->case_sensitive)
			return;
		column = &inf->columns[column->alias];
	}
	column->flags |= flags;
}

static int
number_flags(const char *s, int len)
{
	static const int by_class[] = {
		0, SEEN_INT4, SEEN_INT8, SEEN_BIG, SEEN_DOUBLE, SEEN_DECIMAL
	};
	bool		beyond;
	int			flags = by_class[pln_classify_number(s, len, &beyond)];

	return flags != 0 && beyond ? flags | SEEN_BEYOND : flags;
}

static int
time_flags(Inference *inf, const char *s, int len)
{
	PlnTime		t;

	if (inf->date_pattern != NULL && pln_time_match(inf->date_pattern, s, len, &t))
		return SEEN_DATE;
	if (inf->timestamp_pattern != NULL)
	{
		if (pln_time_match(inf->timestamp_pattern, s, len, &t))
			return t.lossy ? SEEN_STRING : t.has_zone ? SEEN_ZONED : SEEN_TIME;
		if (inf->date_pattern != NULL || !pln_time_iso(s, len, &t) || t.has_time)
			return SEEN_STRING;
		return SEEN_DATE;
	}
	if (!pln_time_iso(s, len, &t) || t.lossy)
		return SEEN_STRING;
	if (!t.has_time)
		return inf->date_pattern != NULL ? SEEN_STRING : SEEN_DATE;
	return t.has_zone ? SEEN_ZONED : SEEN_TIME;
}

static int
csv_flags(Inference *inf, const char *s, int len)
{
	PlnFileOptions *o = inf->options;
	int			flags = number_flags(s, len);

	if (flags != 0)
		return flags;
	if (pln_text_equals_nocase(s, len, "true") || pln_text_equals_nocase(s, len, "false"))
		return SEEN_BOOL;
	if (pln_text_equals_nocase(s, len, o->nan_value) ||
		pln_text_equals_nocase(s, len, o->positive_inf) ||
		pln_text_equals_nocase(s, len, o->negative_inf))
		return SEEN_SPECIAL;
	return time_flags(inf, s, len);
}

static int
json_flags(Inference *inf, const PlnJsonValue *value)
{
	switch (value->kind)
	{
		case PLN_JSON_NULL:
			return 0;
		case PLN_JSON_BOOL:
			return inf->options->primitives_as_string ? SEEN_STRING : SEEN_BOOL;
		case PLN_JSON_NUMBER:
			return inf->options->primitives_as_string ? SEEN_STRING :
				number_flags(value->start, value->len);
		case PLN_JSON_SPECIAL:
			return inf->options->primitives_as_string ? SEEN_STRING : SEEN_SPECIAL;
		case PLN_JSON_STRING:
			if (inf->options->infer_timestamp && !value->escaped)
			{
				int			flags = time_flags(inf, value->start + 1, value->len - 2);

				return flags == SEEN_DATE ? SEEN_STRING : flags;
			}
			return SEEN_STRING;
		case PLN_JSON_OBJECT:
		case PLN_JSON_ARRAY:
			return SEEN_NESTED;
	}
	return SEEN_STRING;
}

/* ---- sampling ---- */

/* A malformed record says nothing: it is looked through before its keys count. */
static void
sample_json_record(Inference *inf, PlnRecord *record)
{
	PlnJsonScan scan;
	PlnJsonValue key;
	PlnJsonValue value;
	bool		done = false;
	bool		first;
	int			pass;

	if (record->error != NULL)
		return;
	for (pass = 0; pass < 2; pass++)
	{
		pln_json_scan_init(&scan, record->text, record->len, inf->options->max_depth);
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
			if (!key.escaped)
				note(inf, key.start + 1, key.len - 2, json_flags(inf, &value));
			else if (pln_json_unescape(&key, &inf->buf))
				note(inf, inf->buf.data, inf->buf.len, json_flags(inf, &value));
		}
		if (!pln_json_scan_end(&scan))
			return;
	}
}

static void
sample_csv_record(Inference *inf, PlnCsvReader *csv, PlnRecord *record)
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
		if (pln_csv_field(csv, record, i, &inf->buf, &text, &len) && len > 0)
			flags = csv_flags(inf, text, len);
		note(inf, name, strlen(name), flags);
	}
}

static void
sample_file(Inference *inf, PlnFileInfo *info, int64 *budget)
{
	MemoryContext filecxt = AllocSetContextCreate(CurrentMemoryContext, "pipeline sample",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(filecxt);
	PlnFileInfo copy = *info;	/* inference leaves the ledger's figures alone */
	PlnInput   *in = pln_input_open(&copy, inf->options);
	PlnJsonReader json = {0};
	PlnCsvReader csv;
	PlnRecord	record;
	int			n;
	ListCell   *lc;

	if (in != NULL)
	{
		if (inf->options->format == PLN_FORMAT_CSV)
			pln_csv_init(&csv, inf->options);
		for (n = 0; n < PLN_SAMPLE_RECORDS && in->bytes < *budget; n++)
		{
			CHECK_FOR_INTERRUPTS();
			if (inf->options->format == PLN_FORMAT_JSON)
			{
				if (!pln_json_next(in, &json, &record))
					break;
				sample_json_record(inf, &record);
			}
			else
			{
				if (!pln_csv_next(in, &csv, &record))
					break;
				sample_csv_record(inf, &csv, &record);
			}
			inf->records++;
		}
		/* a header without rows names columns too */
		if (inf->options->format == PLN_FORMAT_CSV && n == 0)
			foreach(lc, csv.header)
				note(inf, lfirst(lc), strlen(lfirst(lc)), 0);
		*budget -= in->bytes;
		pln_input_close(in);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(filecxt);
}

static void
sample(Inference *inf, List *files, PlnFileOptions *options)
{
	int64		budget = PLN_SAMPLE_BYTES;
	int			n = 0;
	ListCell   *lc;

	memset(inf, 0, sizeof(Inference));
	inf->options = options;
	inf->cxt = CurrentMemoryContext;
	inf->last = -1;
	inf->maxcolumns = 32;
	inf->columns = palloc(inf->maxcolumns * sizeof(InferColumn));
	inf->mask = inf->maxcolumns * 2 - 1;
	inf->slots = palloc((inf->mask + 1) * sizeof(int));
	memset(inf->slots, 0xff, (inf->mask + 1) * sizeof(int));
	initStringInfo(&inf->buf);
	if (options->date_format != NULL)
		inf->date_pattern = pln_time_pattern_compile("dateFormat", options->date_format);
	if (options->timestamp_format != NULL)
		inf->timestamp_pattern = pln_time_pattern_compile("timestampFormat",
														  options->timestamp_format);
	foreach(lc, files)
	{
		if (n++ == PLN_SAMPLE_FILES || budget <= 0)
			break;
		sample_file(inf, lfirst(lc), &budget);
	}
}

/* ---- types ---- */

static Oid
number_type(Inference *inf, int flags)
{
	bool		csv = inf->options->format == PLN_FORMAT_CSV;

	if ((flags & SEEN_NUMBER) == SEEN_SPECIAL)
		return csv ? TEXTOID : FLOAT8OID;
	if ((flags & (SEEN_DOUBLE | SEEN_DECIMAL | SEEN_SPECIAL)) == 0)
	{
		if (flags & SEEN_BIG)
			return NUMERICOID;
		return csv && !(flags & SEEN_INT8) ? INT4OID : INT8OID;
	}
	if ((flags & SEEN_BEYOND) || inf->options->prefers_decimal)
		return NUMERICOID;
	return FLOAT8OID;
}

static Oid
column_type(Inference *inf, int flags)
{
	int			kinds = flags & ~SEEN_BEYOND;

	if (!inf->options->infer_types || kinds == 0)
		return TEXTOID;
	if ((kinds & ~SEEN_NUMBER) == 0)
		return number_type(inf, flags);
	switch (kinds)
	{
		case SEEN_BOOL:
			return BOOLOID;
		case SEEN_NESTED:
			return JSONBOID;
		case SEEN_DATE:
			return DATEOID;
		case SEEN_TIME:
		case SEEN_TIME | SEEN_DATE:
			return TIMESTAMPOID;
		case SEEN_ZONED:
			return TIMESTAMPTZOID;
	}
	return TEXTOID;
}

/* ---- the schema ---- */

static PlnFileColumn *
find_name(List *columns, const char *name)
{
	ListCell   *lc;

	foreach(lc, columns)
		if (strcmp(((PlnFileColumn *) lfirst(lc))->name, name) == 0)
			return lfirst(lc);
	return NULL;
}

/* Make the SQL name one that a table can have beside the others. */
static void
settle_name(PlnFileColumn *column, List *others)
{
	char	   *base = column->name;
	int			n = 1;

	if (*base == '\0')
		base = column->name = "_empty";
	while (SystemAttributeByName(column->name) != NULL || find_name(others, column->name) != NULL)
	{
		char		tail[16];
		int			room;

		snprintf(tail, sizeof(tail), "_%d", ++n);
		room = pg_mbcliplen(base, strlen(base), NAMEDATALEN - 1 - (int) strlen(tail));
		column->name = psprintf("%.*s%s", room, base, tail);
	}
}

static List *
sampled_columns(Inference *inf, List *columns)
{
	int			i;

	for (i = 0; i < inf->ncolumns; i++)
	{
		InferColumn *found = &inf->columns[i];
		PlnFileColumn *column;

		if (found->alias >= 0)
			continue;
		if (found->flags == 0 && inf->options->drop_if_all_null &&
			inf->options->format == PLN_FORMAT_JSON)
			continue;
		column = pln_schema_make_column(found->source, column_type(inf, found->flags), -1);
		column->inferred = true;

		/* a key that is called like the rescued column is itself rescued */
		if (inf->options->rescued_column != NULL &&
			strcmp(column->name, inf->options->rescued_column) == 0)
			continue;
		settle_name(column, columns);
		columns = lappend(columns, column);
	}
	return columns;
}

static List *
apply_hints(List *columns, PlnFileOptions *options)
{
	ListCell   *lc;

	if (options->schema_hints == NULL)
		return columns;
	foreach(lc, pln_schema_parse_ddl("schemaHints", options->schema_hints))
	{
		PlnFileColumn *hint = lfirst(lc);
		PlnFileColumn *column = find_name(columns, hint->name);

		if (column == NULL)
		{
			columns = lappend(columns, hint);
			continue;
		}
		column->type = hint->type;
		column->typmod = hint->typmod;
		column->collation = hint->collation;
		column->inferred = false;
	}
	return columns;
}

static bool
partition_wanted(PlnFileOptions *options, const char *key)
{
	char	   *list;
	char	   *save = NULL;
	char	   *item;

	if (options->partition_columns == NULL)
		return !options->recursive_lookup;
	list = pstrdup(options->partition_columns);
	for (item = strtok_r(list, ", ", &save); item; item = strtok_r(NULL, ", ", &save))
		if (strcmp(item, key) == 0)
			return true;
	return false;
}

/* Columns from k=v directories; a column that the user declared becomes one of them. */
static List *
add_partitions(List *columns, List *files, PlnFileOptions *options, PlnFileOptions *csv)
{
	Inference	inf;
	ListCell   *lc;
	int			i;

	sample(&inf, NIL, csv);
	foreach(lc, files)
	{
		List	   *keys;
		List	   *values;
		ListCell   *key;
		ListCell   *value;

		CHECK_FOR_INTERRUPTS();
		pln_file_partitions(lfirst(lc), &keys, &values);
		forboth(key, keys, value, values)
		{
			const char *k = lfirst(key);
			const char *v = lfirst(value);

			if (partition_wanted(options, k))
				note(&inf, k, strlen(k), v ? csv_flags(&inf, v, strlen(v)) : 0);
		}
	}
	for (i = 0; i < inf.ncolumns; i++)
	{
		PlnFileColumn *column;
		PlnFileColumn *known;
		Oid			type = column_type(&inf, inf.columns[i].flags);

		if (inf.columns[i].alias >= 0)
			continue;
		if (type != INT4OID && type != INT8OID && type != DATEOID)
			type = TEXTOID;
		column = pln_schema_make_column(inf.columns[i].source, type, -1);
		column->kind = PLN_COLUMN_PARTITION;
		column->inferred = true;
		known = find_name(columns, column->name);
		if (known == NULL)
		{
			settle_name(column, columns);
			columns = lappend(columns, column);
		}
		else if (!known->inferred)
		{
			known->kind = PLN_COLUMN_PARTITION;
			known->source = column->source;
		}
	}
	return columns;
}

static PlnFileSchema *
build_schema(List *columns, PlnFileOptions *options)
{
	PlnFileSchema *schema = palloc0(sizeof(PlnFileSchema));
	PlnFileColumn *corrupt = find_name(columns, options->corrupt_column);
	ListCell   *lc;

	if (corrupt != NULL && !corrupt->inferred)
	{
		if (corrupt->type != TEXTOID)
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_VALUE),
					 errmsg("corrupt-record column \"%s\" must be a string", corrupt->name)));
		corrupt->kind = PLN_COLUMN_CORRUPT;
	}
	else if (corrupt == NULL && options->corrupt_given && options->schema == NULL)
	{
		corrupt = pln_schema_make_column(options->corrupt_column, TEXTOID, -1);
		corrupt->kind = PLN_COLUMN_CORRUPT;
		columns = lappend(columns, corrupt);
	}
	if (options->rescued_column != NULL && find_name(columns, options->rescued_column) != NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("column \"%s\" cannot be the rescued-data column as well",
						options->rescued_column)));
	schema->format = options->format;
	schema->rescued = options->rescued_column;
	schema->columns = palloc0(sizeof(PlnFileColumn) * Max(list_length(columns), 1));
	foreach(lc, columns)
		schema->columns[schema->ncolumns++] = *(PlnFileColumn *) lfirst(lc);
	return schema;
}

PlnFileSchema *
pln_files_infer(List *files, PlnFileOptions *options)
{
	PlnFileOptions as_csv;		/* directory names are read as CSV fields are */
	Inference	inf;
	List	   *columns;

	pln_files_detect_format(files, options);
	if (options->schema != NULL)
		columns = pln_schema_parse_ddl("schema", options->schema);
	else if (options->format == PLN_FORMAT_TEXT)
	{
		columns = list_make1(pln_schema_make_column("value", TEXTOID, -1));
		if (!options->rescued_given)
			options->rescued_column = NULL;
	}
	else
	{
		sample(&inf, files, options);
		columns = apply_hints(sampled_columns(&inf, NIL), options);
		if (columns == NIL && inf.records == 0)
			ereport(ERROR,
					(errcode(PLN_ERR_STATE),
					 errmsg("cannot infer a schema from \"%s\": %s", options->path,
							files == NIL ? "there are no files" : "the files are empty"),
					 errhint("Add a file first, or give schema => 'name type, ...'.")));
	}
	if (options->format == PLN_FORMAT_TEXT &&
		(list_length(columns) != 1 ||
		 ((PlnFileColumn *) linitial(columns))->type != TEXTOID))
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("format \"text\" of read_files has one column of type string")));
	if (options->format == PLN_FORMAT_DETECT)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("cannot tell the format of \"%s\": there are no files", options->path),
				 errhint("Add format => 'csv', 'json' or 'text'.")));
	as_csv = *options;
	as_csv.format = PLN_FORMAT_CSV;
	as_csv.infer_types = true;
	columns = add_partitions(columns, files, options, &as_csv);
	return build_schema(columns, options);
}

/* ---- evolution ---- */

static bool
is_known(PlnFileSchema *schema, PlnFileColumn *column)
{
	int			i;

	for (i = 0; i < schema->ncolumns; i++)
	{
		PlnFileColumn *known = &schema->columns[i];

		if (strcmp(known->source, column->source) == 0)
			return true;
		/* another spelling of a known name is rescued, or read into it */
		if (pg_strcasecmp(known->source, column->source) == 0)
			return true;
	}
	return schema->rescued != NULL && strcmp(schema->rescued, column->name) == 0;
}

PlnFileSchema *
pln_file_schema_evolve(PlnFileSchema *old, List *files, PlnFileOptions *options, List **added)
{
	PlnFileSchema *schema;
	Inference	inf;
	List	   *known = NIL;
	int			i;
	ListCell   *lc;

	*added = NIL;
	options->format = old->format;
	if (options->evolution == PLN_EVOLVE_RESCUE || options->evolution == PLN_EVOLVE_NONE ||
		old->format == PLN_FORMAT_TEXT)
		return old;
	for (i = 0; i < old->ncolumns; i++)
		known = lappend(known, &old->columns[i]);
	sample(&inf, files, options);
	foreach(lc, sampled_columns(&inf, NIL))
	{
		PlnFileColumn *column = lfirst(lc);

		if (is_known(old, column))
			continue;
		if (options->evolution == PLN_EVOLVE_FAIL)
			ereport(ERROR,
					(errcode(PLN_ERR_BAD_FILE_ROW),
					 errmsg("files below \"%s\" have a new column \"%s\"", options->path,
							column->source),
					 errhint("Add schemaHints => '%s %s', or remove the files that have it.",
							 quote_identifier(column->source),
							 format_type_be(column->type))));
		settle_name(column, known);
		known = lappend(known, column);
		*added = lappend(*added, column);
	}
	if (*added == NIL)
		return old;
	schema = palloc(sizeof(PlnFileSchema));
	*schema = *old;
	schema->ncolumns = list_length(known);
	schema->columns = palloc(sizeof(PlnFileColumn) * schema->ncolumns);
	i = 0;
	foreach(lc, known)
		schema->columns[i++] = *(PlnFileColumn *) lfirst(lc);
	return schema;
}

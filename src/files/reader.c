/*
 * reader.c
 *	  Rows from files: records to datums, misfits to the rescued column, counts per file.
 *
 * Three contexts: the reader's own, one per file, one per row that is reset before each.
 * Memory is that of the longest record.  What happens to a record or value that does not
 * fit is decided here and nowhere else:
 *
 *	malformed record	PERMISSIVE: a row of nulls, the text verbatim in the corrupt-record
 *						column, else {"_corrupt_record": text, "_line": n, "_file_path": p} in
 *						the rescued one; DROPMALFORMED: left out; FAILFAST: 22P04.
 *	value that does not fit its column, surplus or missing CSV field
 *						null there, {"column": value, "_file_path": p} in the rescued column
 *						(missing fields are null and nothing else).  FAILFAST raises unless
 *						the user asked for the rescued column by name.  Without rescued column
 *						DROPMALFORMED leaves the row out, and PERMISSIVE keeps the whole record
 *						in the corrupt-record column, or else counts the value as lost.
 *	key that is no column
 *						rescued unless null; without rescued column ignored, as the dialect has it.
 *	key that occurs twice
 *						the last one is the value, the others are rescued.
 *	value that its column can only hold in part (more digits than double precision)
 *						both: the nearest value there, the text in the rescued column.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/base64.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/debug_point.h"
#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

struct PlnFileReader
{
	PlnFileOptions *options;
	PlnFileSchema *schema;
	List	   *files;
	int			next_file;
	MemoryContext cxt;
	MemoryContext filecxt;
	MemoryContext rowcxt;

	PlnConverter **converters;
	bool	   *is_string;		/* '' is a value there */
	PlnNameMap *map;
	int			corrupt;		/* column numbers, -1 = none */
	int			rescued;
	int			metadata;		/* first of them */
	int			ndata;
	int		   *data_columns;	/* by position, for CSV without header */

	/* the open file */
	PlnFileInfo *info;
	PlnInput   *in;
	PlnJsonReader json;
	PlnCsvReader csv;
	int		   *csv_map;		/* field to column, -1 = none; NULL until the header is read */
	int			csv_fields;
	Datum		file_values[PLN_METADATA_COLUMNS];
	Datum	   *partitions;		/* by column */
	bool	   *partition_null;

	/* the row */
	PlnRecord	record;
	PlnJsonValue *found;		/* by column, with the spelling of its key */
	const char **found_key;
	int		   *found_keylen;
	bool	   *present;
	StringInfoData rescue;		/* members so far; empty = nothing rescued */
	StringInfoData buf;
	bool		drop;			/* DROPMALFORMED and something did not fit */
	bool		keep_record;	/* the record goes to the corrupt-record column */
};

PlnFileReader *
pln_file_reader_open(PlnFileOptions *options, PlnFileSchema *schema, List *files,
					 MemoryContext cxt)
{
	MemoryContext own = AllocSetContextCreate(cxt, "pipeline file reader",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(own);
	PlnFileReader *r = palloc0(sizeof(PlnFileReader));
	int			n = schema->ncolumns;
	int			i;

	r->options = options;
	r->schema = schema;
	r->files = files;
	r->cxt = own;
	r->filecxt = AllocSetContextCreate(own, "pipeline file", ALLOCSET_DEFAULT_SIZES);
	r->rowcxt = AllocSetContextCreate(own, "pipeline file row", ALLOCSET_DEFAULT_SIZES);
	options->format = schema->format;
	pln_files_detect_format(files, options);
	r->converters = palloc0(sizeof(PlnConverter *) * Max(n, 1));
	r->is_string = palloc0(sizeof(bool) * Max(n, 1));
	r->partitions = palloc0(sizeof(Datum) * Max(n, 1));
	r->partition_null = palloc0(sizeof(bool) * Max(n, 1));
	r->found = palloc0(sizeof(PlnJsonValue) * Max(n, 1));
	r->found_key = palloc0(sizeof(char *) * Max(n, 1));
	r->found_keylen = palloc0(sizeof(int) * Max(n, 1));
	r->present = palloc0(sizeof(bool) * Max(n, 1));
	r->data_columns = palloc0(sizeof(int) * Max(n, 1));
	r->corrupt = -1;
	for (i = 0; i < n; i++)
	{
		PlnFileColumn *column = &schema->columns[i];
		char		category;
		bool		preferred;

		r->converters[i] = pln_converter_make(column, options);
		get_type_category_preferred(column->type, &category, &preferred);
		r->is_string[i] = category == TYPCATEGORY_STRING;
		if (column->kind == PLN_COLUMN_CORRUPT)
			r->corrupt = i;
		else if (column->kind == PLN_COLUMN_DATA)
			r->data_columns[r->ndata++] = i;
	}
	r->rescued = schema->rescued != NULL ? n : -1;
	r->metadata = n + (schema->rescued != NULL ? 1 : 0);
	r->map = pln_name_map_make(schema, options->case_sensitive);
	initStringInfo(&r->rescue);
	initStringInfo(&r->buf);
	MemoryContextSwitchTo(old);
	return r;
}

void
pln_file_reader_close(PlnFileReader *r)
{
	if (r->in != NULL)
		pln_input_close(r->in);
	MemoryContextDelete(r->cxt);
}

PlnFileInfo *
pln_file_reader_file(PlnFileReader *r)
{
	return r->info;
}

/* ---- what does not fit ---- */

/* A member of the rescued object; value is JSON already when it is not text. */
static void
rescue(PlnFileReader *r, const char *key, int keylen, const char *value, int len, bool is_text)
{
	if (r->rescued < 0)
		return;
	appendStringInfoString(&r->rescue, r->rescue.len == 0 ? "{" : ", ");
	pln_json_append_string(&r->rescue, key, keylen);
	appendStringInfoString(&r->rescue, ": ");
	if (is_text)
		pln_json_append_string(&r->rescue, value, len);
	else
		appendBinaryStringInfo(&r->rescue, value, len);
}

static void
rescue_json(PlnFileReader *r, const char *key, int keylen, const PlnJsonValue *value)
{
	rescue(r, key, keylen, value->start, value->len, value->special);
}

static char *
clip(const char *text, int len)
{
	int			shown = pg_mbcliplen(text, len, 100);

	return psprintf("%.*s%s", shown, text, shown < len ? "..." : "");
}

/*
 * Something of the record cannot be stored where it belongs.  True: the caller rescues it.
 * what names the place, for the message of FAILFAST.
 */
static bool
misfit(PlnFileReader *r, const char *what, const char *text, int len)
{
	if (r->options->mode == PLN_MODE_FAILFAST && !r->options->rescued_given)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_FILE_ROW),
				 errmsg("malformed record in file \"%s\", line " INT64_FORMAT ": %s",
						r->info->path, r->record.line, what),
				 text != NULL ? errdetail("It is: %s", clip(text, len)) : 0));
	if (r->rescued >= 0)
		return true;
	if (r->options->mode == PLN_MODE_DROPMALFORMED)
		r->drop = true;
	else if (r->corrupt >= 0)
		r->keep_record = true;
	else
		r->info->lost++;
	return false;
}

static char *
misfit_text(PlnFileReader *r, int column)
{
	PlnFileColumn *c = &r->schema->columns[column];

	return psprintf("value of column \"%s\" does not fit type %s", c->name,
					format_type_with_typemod(c->type, c->typmod));
}

/* The record as text of the database, whatever its bytes are. */
static char *
record_text(PlnFileReader *r, int *len)
{
	char	   *text;

	if (r->record.text != NULL)
	{
		*len = r->record.len;
		return unconstify(char *, r->record.text);
	}
	text = pln_input_printable(r->in, r->record.raw, r->record.rawlen);
	*len = strlen(text);
	return text;
}

/* PERMISSIVE: values and isnull become the row.  False: no row. */
static bool
malformed(PlnFileReader *r, const char *why, Datum *values, bool *isnull)
{
	char	   *text;
	int			len;

	if (r->options->mode == PLN_MODE_FAILFAST)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_FILE_ROW),
				 errmsg("malformed record in file \"%s\", line " INT64_FORMAT,
						r->info->path, r->record.line),
				 errdetail("Reason: %s.", why)));
	if (r->options->mode == PLN_MODE_DROPMALFORMED)
	{
		r->drop = true;
		return false;
	}
	r->info->malformed++;
	memset(isnull, true, r->schema->ncolumns);
	resetStringInfo(&r->rescue);
	text = record_text(r, &len);
	if (r->schema->format == PLN_FORMAT_TEXT)
	{
		isnull[0] = false;
		values[0] = PointerGetDatum(cstring_to_text_with_len(text, len));
	}
	else if (r->corrupt >= 0)
	{
		isnull[r->corrupt] = false;
		values[r->corrupt] = PointerGetDatum(cstring_to_text_with_len(text, len));
	}
	else if (r->rescued >= 0)
		rescue(r, "_corrupt_record", 15, text, len, true);
	else
		r->info->lost++;
	if (r->rescued >= 0 && r->corrupt < 0)
	{
		char	   *line = psprintf(INT64_FORMAT, r->record.line);

		if (r->record.text == NULL)
		{
			/* \xHH may also have been in the text: the exact bytes stand beside */
			int			room = pg_b64_enc_len(r->record.rawlen);
			char	   *encoded = palloc(room + 1);
			int			n = pg_b64_encode(r->record.raw, r->record.rawlen, encoded, room);

			rescue(r, "_corrupt_bytes", 14, encoded, Max(n, 0), true);
		}
		rescue(r, "_line", 5, line, strlen(line), false);
	}
	return true;
}

/* ---- JSON ---- */

static int
find_member(PlnFileReader *r, const PlnJsonValue *key, const char **name, int *len)
{
	if (!key->escaped)
	{
		*name = key->start + 1;
		*len = key->len - 2;
	}
	else if (pln_json_unescape(key, &r->buf))
	{
		*name = pnstrdup(r->buf.data, r->buf.len);
		*len = r->buf.len;
	}
	else
	{
		/* a key that is no text: rescued under its spelling */
		*name = key->start + 1;
		*len = key->len - 2;
		return -1;
	}
	return pln_name_map_find(r->map, *name, *len);
}

static bool
decode_json(PlnFileReader *r, Datum *values, bool *isnull)
{
	PlnJsonScan scan;
	PlnJsonValue key;
	PlnJsonValue value;
	bool		done;
	bool		first;
	int			i;

	if (r->record.error != NULL)
		return malformed(r, r->record.error, values, isnull);
	memset(r->present, false, r->schema->ncolumns);
	pln_json_scan_init(&scan, r->record.text, r->record.len, r->options->max_depth);
	if (!pln_json_scan_open(&scan, '{'))
		return malformed(r, scan.error, values, isnull);
	for (first = true;; first = false)
	{
		const char *name;
		int			len;

		if (!pln_json_scan_next(&scan, '{', first, &key, &value, &done))
			return malformed(r, scan.error, values, isnull);
		if (done)
			break;
		i = find_member(r, &key, &name, &len);
		if (i < 0)
		{
			if (value.kind != PLN_JSON_NULL)
				rescue_json(r, name, len, &value);
			continue;
		}
		if (r->present[i] && r->found[i].kind != PLN_JSON_NULL)
			rescue_json(r, r->found_key[i], r->found_keylen[i], &r->found[i]);
		r->present[i] = true;
		r->found[i] = value;
		r->found_key[i] = name;
		r->found_keylen[i] = len;
	}
	if (!pln_json_scan_end(&scan))
		return malformed(r, scan.error, values, isnull);

	for (i = 0; i < r->schema->ncolumns; i++)
	{
		PlnJsonValue *v = &r->found[i];
		PlnFit		fit;

		if (!r->present[i] || v->kind == PLN_JSON_NULL)
			continue;
		fit = pln_convert_json(r->converters[i], v, &r->buf, &values[i]);
		isnull[i] = fit == PLN_FIT_NOT;
		if (fit == PLN_FIT_LOSSY)
			rescue_json(r, r->found_key[i], r->found_keylen[i], v);
		else if (fit == PLN_FIT_NOT && misfit(r, misfit_text(r, i), v->start, v->len))
			rescue_json(r, r->found_key[i], r->found_keylen[i], v);
	}
	return true;
}

/* ---- CSV ---- */

/* Which column each field of this file fills. */
static void
map_fields(PlnFileReader *r)
{
	MemoryContext old = MemoryContextSwitchTo(r->filecxt);
	List	   *header = r->csv.header;
	bool		any = false;
	int			i;

	r->csv_fields = header != NIL ? list_length(header) : r->ndata;
	r->csv_map = palloc(sizeof(int) * Max(r->csv_fields, 1));
	memset(r->present, false, r->schema->ncolumns);
	for (i = 0; i < r->csv_fields; i++)
	{
		const char *name = header != NIL ? list_nth(header, i) : NULL;
		int			column = name != NULL ? pln_name_map_find(r->map, name, strlen(name)) :
			r->data_columns[i];

		/* two spellings of one column: the first has it */
		if (column >= 0 && r->present[column])
			column = -1;
		if (column >= 0)
			r->present[column] = any = true;
		r->csv_map[i] = column;
	}
	if (!any && r->rescued < 0 && header != NIL)
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_FILE_ROW),
				 errmsg("header of file \"%s\" names no column of the schema", r->info->path),
				 errhint("Add header => false if the file has no header.")));
	r->csv.expected = r->csv_fields;
	MemoryContextSwitchTo(old);
}

static void
decode_field(PlnFileReader *r, int n, Datum *values, bool *isnull)
{
	const char *text;
	int			len;
	int			column = n < r->csv_fields ? r->csv_map[n] : -1;
	PlnFit		fit;
	const char *source;

	if (!pln_csv_field(&r->csv, &r->record, n, &r->buf, &text, &len))
		return;
	if (column < 0)
	{
		char		position[16];

		snprintf(position, sizeof(position), "_c%d", n);
		source = n < r->csv_fields && r->csv.header != NIL ?
			list_nth(r->csv.header, n) : position;
		rescue(r, source, strlen(source), text, len, true);
		return;
	}
	if (len == 0 && !r->is_string[column])
		return;
	source = r->schema->columns[column].source;
	fit = pln_convert_text(r->converters[column], text, len, &values[column]);
	isnull[column] = fit == PLN_FIT_NOT;
	if (fit == PLN_FIT_LOSSY)
		rescue(r, source, strlen(source), text, len, true);
	else if (fit == PLN_FIT_NOT && misfit(r, misfit_text(r, column), text, len))
		rescue(r, source, strlen(source), text, len, true);
}

static bool
decode_csv(PlnFileReader *r, Datum *values, bool *isnull)
{
	int			i;

	if (r->csv_map == NULL)
		map_fields(r);
	if (r->record.error != NULL)
		return malformed(r, r->record.error, values, isnull);
	if (r->csv.nfields != r->csv_fields &&
		(r->csv.nfields > r->csv_fields || r->options->mode != PLN_MODE_PERMISSIVE))
		misfit(r, psprintf("%d fields in place of %d", r->csv.nfields, r->csv_fields), NULL, 0);
	for (i = 0; i < r->csv.nfields; i++)
		decode_field(r, i, values, isnull);
	return true;
}

/* ---- files and rows ---- */

static void
open_partitions(PlnFileReader *r)
{
	List	   *keys;
	List	   *values;
	int			i;

	pln_file_partitions(r->info, &keys, &values);
	for (i = 0; i < r->schema->ncolumns; i++)
	{
		ListCell   *key;
		ListCell   *value;

		r->partition_null[i] = true;
		if (r->schema->columns[i].kind != PLN_COLUMN_PARTITION)
			continue;
		forboth(key, keys, value, values)
		{
			const char *v = lfirst(value);

			if (strcmp(lfirst(key), r->schema->columns[i].source) != 0 || v == NULL)
				continue;
			r->partition_null[i] = pln_convert_text(r->converters[i], v, strlen(v),
													&r->partitions[i]) == PLN_FIT_NOT;
			/* the directory stays to be seen in file_path: nothing to rescue */
			if (r->partition_null[i] && r->options->mode == PLN_MODE_FAILFAST)
				ereport(ERROR,
						(errcode(PLN_ERR_BAD_FILE_ROW),
						 errmsg("directory of file \"%s\": %s", r->info->path,
								misfit_text(r, i))));
		}
	}
}

/* Next file that can be opened; false when there is none. */
static bool
open_next_file(PlnFileReader *r)
{
	MemoryContext old = MemoryContextSwitchTo(r->filecxt);

	while (r->next_file < list_length(r->files))
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(r->filecxt);
		r->info = list_nth(r->files, r->next_file++);
		r->info->rows = r->info->malformed = r->info->rescued = 0;
		r->info->dropped = r->info->lost = 0;
		r->in = pln_input_open(r->info, r->options);
		if (r->in == NULL)
			continue;
		pln_debug_point("file opened");
		memset(&r->json, 0, sizeof(PlnJsonReader));
		r->csv_map = NULL;
		if (r->schema->format == PLN_FORMAT_CSV)
		{
			pln_csv_init(&r->csv, r->options, r->info);
			if (!r->options->header)
				r->csv.expected = r->ndata;
		}
		r->file_values[0] = CStringGetTextDatum(r->info->path);
		r->file_values[1] = CStringGetTextDatum(r->info->name);
		r->file_values[2] = Int64GetDatum(r->info->size);
		r->file_values[3] = TimestampTzGetDatum(r->info->mtime);
		r->file_values[4] = Int64GetDatum(0);
		r->file_values[5] = Int64GetDatum(r->info->size);
		open_partitions(r);
		MemoryContextSwitchTo(old);
		return true;
	}
	MemoryContextSwitchTo(old);
	return false;
}

static bool
next_record(PlnFileReader *r)
{
	switch (r->schema->format)
	{
		case PLN_FORMAT_JSON:
			return pln_json_next(r->in, &r->json, &r->record);
		case PLN_FORMAT_CSV:
			return pln_csv_next(r->in, &r->csv, &r->record);
		default:
			return pln_text_next(r->in, &r->record);
	}
}

/* One record to a row; false: it gives none. */
static bool
decode(PlnFileReader *r, Datum *values, bool *isnull)
{
	bool		row;
	int			i;

	memset(isnull, true, r->schema->ncolumns);
	resetStringInfo(&r->rescue);
	r->drop = r->keep_record = false;
	switch (r->schema->format)
	{
		case PLN_FORMAT_JSON:
			row = decode_json(r, values, isnull);
			break;
		case PLN_FORMAT_CSV:
			row = decode_csv(r, values, isnull);
			break;
		default:
			row = true;
			if (r->record.error != NULL)
				row = malformed(r, r->record.error, values, isnull);
			else
			{
				isnull[0] = false;
				values[0] = PointerGetDatum(cstring_to_text_with_len(r->record.text,
																	 r->record.len));
			}
	}
	if (r->drop)
	{
		r->info->dropped++;
		return false;
	}
	if (!row)
		return false;
	if (r->keep_record)
	{
		char	   *text;
		int			len;

		text = record_text(r, &len);
		values[r->corrupt] = PointerGetDatum(cstring_to_text_with_len(text, len));
		isnull[r->corrupt] = false;
	}
	for (i = 0; i < r->schema->ncolumns; i++)
		if (r->schema->columns[i].kind == PLN_COLUMN_PARTITION)
		{
			values[i] = r->partitions[i];
			isnull[i] = r->partition_null[i];
		}
	if (r->rescued >= 0)
	{
		isnull[r->rescued] = r->rescue.len == 0;
		if (r->rescue.len > 0)
		{
			rescue(r, "_file_path", 10, r->info->path, strlen(r->info->path), true);
			appendStringInfoChar(&r->rescue, '}');
			values[r->rescued] = PointerGetDatum(cstring_to_text_with_len(r->rescue.data,
																		  r->rescue.len));
			r->info->rescued++;
		}
	}
	for (i = 0; i < PLN_METADATA_COLUMNS; i++)
	{
		values[r->metadata + i] = r->file_values[i];
		isnull[r->metadata + i] = false;
	}
	return true;
}

bool
pln_file_reader_next(PlnFileReader *r, Datum *values, bool *isnull)
{
	for (;;)
	{
		MemoryContext old;
		bool		row;

		CHECK_FOR_INTERRUPTS();
		if (r->in == NULL && !open_next_file(r))
			return false;
		MemoryContextReset(r->rowcxt);

		/* buffers of the input and of the header live as long as the file */
		old = MemoryContextSwitchTo(r->filecxt);
		row = next_record(r);
		if (!row)
		{
			pln_input_close(r->in);
			r->in = NULL;
			r->info->done = !r->info->changed;
			MemoryContextSwitchTo(old);
			continue;
		}
		MemoryContextSwitchTo(r->rowcxt);
		row = decode(r, values, isnull);
		MemoryContextSwitchTo(old);
		if (row)
		{
			r->info->rows++;
			return true;
		}
	}
}

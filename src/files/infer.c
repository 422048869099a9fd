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

#include "catalog/heap.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "files/decode.h"
#include "files/files.h"

/* ---- types ---- */

static Oid
number_type(PlnSample *sample, int flags)
{
	bool		csv = sample->options->format == PLN_FORMAT_CSV;

	if ((flags & PLN_SEEN_NUMBER) == PLN_SEEN_SPECIAL)
		return csv ? TEXTOID : FLOAT8OID;
	if ((flags & (PLN_SEEN_DOUBLE | PLN_SEEN_DECIMAL | PLN_SEEN_SPECIAL)) == 0)
	{
		if (flags & PLN_SEEN_BIG)
			return NUMERICOID;
		return csv && !(flags & PLN_SEEN_INT8) ? INT4OID : INT8OID;
	}
	if ((flags & PLN_SEEN_BEYOND) || sample->options->prefers_decimal)
		return NUMERICOID;
	return FLOAT8OID;
}

static Oid
column_type(PlnSample *sample, int flags)
{
	int			kinds = flags & ~PLN_SEEN_BEYOND;

	if (!sample->options->infer_types || kinds == 0)
		return TEXTOID;
	if ((kinds & ~PLN_SEEN_NUMBER) == 0)
		return number_type(sample, flags);
	switch (kinds)
	{
		case PLN_SEEN_BOOL:
			return BOOLOID;
		case PLN_SEEN_NESTED:
			return JSONBOID;
		case PLN_SEEN_DATE:
			return DATEOID;
		case PLN_SEEN_TIME:
		case PLN_SEEN_TIME | PLN_SEEN_DATE:
			return TIMESTAMPOID;
		case PLN_SEEN_ZONED:
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
sampled_columns(PlnSample *sample, List *columns)
{
	int			i;

	for (i = 0; i < sample->ncolumns; i++)
	{
		PlnSampleColumn *found = &sample->columns[i];
		PlnFileColumn *column;

		if (found->alias >= 0)
			continue;
		if (found->flags == 0 && sample->options->drop_if_all_null &&
			sample->options->format == PLN_FORMAT_JSON)
			continue;
		column = pln_schema_make_column(found->source, column_type(sample, found->flags), -1);
		column->inferred = true;

		/* a key that is called like the rescued column is itself rescued */
		if (sample->options->rescued_column != NULL &&
			strcmp(column->name, sample->options->rescued_column) == 0)
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
		ListCell   *c;

		/* a key whose name had to be changed is hinted at as it is spelled */
		foreach(c, columns)
			if (column == NULL && strcmp(((PlnFileColumn *) lfirst(c))->source, hint->source) == 0)
				column = lfirst(c);
		if (column == NULL)
		{
			settle_name(hint, columns);
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
	PlnSample	sample;
	ListCell   *lc;
	int			i;

	pln_sample_files(&sample, NIL, csv);
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
				pln_sample_note(&sample, k, strlen(k),
								v ? pln_sample_text_flags(&sample, v, strlen(v)) : 0);
		}
	}
	for (i = 0; i < sample.ncolumns; i++)
	{
		PlnFileColumn *column;
		PlnFileColumn *known;
		Oid			type = column_type(&sample, sample.columns[i].flags);

		if (sample.columns[i].alias >= 0)
			continue;
		if (type != INT4OID && type != INT8OID && type != DATEOID)
			type = TEXTOID;
		column = pln_schema_make_column(sample.columns[i].source, type, -1);
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
	PlnSample	sample;
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
		pln_sample_files(&sample, files, options);
		columns = apply_hints(sampled_columns(&sample, NIL), options);
		if (columns == NIL && sample.records == 0)
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
	PlnSample	sample;
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
	pln_sample_files(&sample, files, options);
	foreach(lc, apply_hints(sampled_columns(&sample, NIL), options))
	{
		PlnFileColumn *column = lfirst(lc);

		if (is_known(old, column))
			continue;
		if (!column->inferred && strcmp(column->name, options->corrupt_column) == 0)
			column->kind = PLN_COLUMN_CORRUPT;
		/* a hint for it says that it is wanted */
		else if (column->inferred && options->evolution == PLN_EVOLVE_FAIL)
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

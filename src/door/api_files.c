/*
 * api_files.c
 *	  SQL functions over files: read arguments, call src/files, return rows.
 *
 * Rights to read are checked by src/files for the calling user.
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "base/errors.h"
#include "files/files.h"

PG_FUNCTION_INFO_V1(pipeline_infer_schema);
PG_FUNCTION_INFO_V1(pipeline_read_files);
PG_FUNCTION_INFO_V1(pipeline_internal_list_files);
PG_FUNCTION_INFO_V1(pipeline_internal_file_schema);

/* A tuplestore for the function's result, in the context of the query. */
static Tuplestorestate *
start_rows(FunctionCallInfo fcinfo, TupleDesc *desc)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old;
	Tuplestorestate *store;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) ||
		(rsinfo->allowedModes & SFRM_Materialize) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	old = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, desc) == TYPEFUNC_COMPOSITE)
		*desc = CreateTupleDescCopy(*desc);
	else if (rsinfo->expectedDesc != NULL)
		*desc = CreateTupleDescCopy(rsinfo->expectedDesc);
	else
		ereport(ERROR,
				(errcode(PLN_ERR_SYNTAX),
				 errmsg("a column definition list is required for functions returning \"%s\"",
						"record")));
	store = tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0, false,
								  work_mem);
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = store;
	rsinfo->setDesc = *desc;
	MemoryContextSwitchTo(old);
	return store;
}

static PlnFileOptions *
options_of(FunctionCallInfo fcinfo, int path_arg, int options_arg)
{
	if (PG_ARGISNULL(path_arg))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("path must not be null")));
	if (PG_ARGISNULL(options_arg))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("options must not be null")));
	return pln_file_options_from_jsonb(text_to_cstring(PG_GETARG_TEXT_PP(path_arg)),
									   PG_GETARG_JSONB_P(options_arg));
}

/* infer_schema(path text, format text, options jsonb) -> (column_name, data_type) */
Datum
pipeline_infer_schema(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Tuplestorestate *store = start_rows(fcinfo, &desc);
	PlnFileOptions *options = options_of(fcinfo, 0, 2);
	PlnFileSchema *schema;
	int			i;

	if (!PG_ARGISNULL(1))
	{
		char	   *format = text_to_cstring(PG_GETARG_TEXT_PP(1));
		PlnFileOptions *only = pln_file_options_parse(options->path,
													  list_make1("format"),
													  list_make1(format));

		options->format = only->format;
	}
	schema = pln_files_infer(pln_files_list(options), options);
	for (i = 0; i < pln_file_schema_width(schema) - PLN_METADATA_COLUMNS; i++)
	{
		Datum		values[2];
		bool		nulls[2] = {false, false};
		const char *name;
		Oid			type;
		Oid			collation;
		int32		typmod;

		pln_file_schema_column(schema, i, &name, &type, &typmod, &collation);
		values[0] = CStringGetTextDatum(name);
		values[1] = CStringGetTextDatum(format_type_with_typemod(type, typmod));
		tuplestore_putvalues(store, desc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * Where each column of the definition list comes from.  The list's types stand for hints:
 * a column of the files is read as the type that was asked for.
 */
static int *
map_columns(TupleDesc desc, PlnFileSchema *schema)
{
	int		   *map = palloc(sizeof(int) * Max(desc->natts, 1));
	int			width = pln_file_schema_width(schema);
	int			i;
	int			n;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const char *name = NULL;
		Oid			type = InvalidOid;
		Oid			collation;
		int32		typmod;

		for (n = 0; n < width; n++)
		{
			pln_file_schema_column(schema, n, &name, &type, &typmod, &collation);
			if (strcmp(name, NameStr(att->attname)) == 0)
				break;
			/* what _metadata.x of a dataset's query is called in its stored form */
			if (n >= width - PLN_METADATA_COLUMNS &&
				strcmp(psprintf("_metadata_%s", name), NameStr(att->attname)) == 0)
				break;
		}
		if (n == width)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("files have no column \"%s\"", NameStr(att->attname))));
		if (n < schema->ncolumns && schema->columns[n].kind != PLN_COLUMN_CORRUPT)
		{
			if (type != att->atttypid || typmod != att->atttypmod)
				schema->columns[n].inferred = false;
			schema->columns[n].type = att->atttypid;
			schema->columns[n].typmod = att->atttypmod;
		}
		else if (type != att->atttypid)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" has type %s, not %s", name, format_type_be(type),
							format_type_be(att->atttypid))));
		map[i] = n;
	}
	return map;
}

/* read_files(path text, options jsonb) -> setof record */
Datum
pipeline_read_files(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Tuplestorestate *store = start_rows(fcinfo, &desc);
	PlnFileOptions *options = options_of(fcinfo, 0, 1);
	List	   *files = pln_files_list(options);
	PlnFileSchema *schema = pln_files_infer(files, options);
	int		   *map = map_columns(desc, schema);
	int			width = pln_file_schema_width(schema);
	Datum	   *values = palloc(sizeof(Datum) * width);
	bool	   *isnull = palloc(sizeof(bool) * width);
	Datum	   *row = palloc(sizeof(Datum) * Max(desc->natts, 1));
	bool	   *rownull = palloc(sizeof(bool) * Max(desc->natts, 1));
	PlnFileReader *reader = pln_file_reader_open(options, schema, files, CurrentMemoryContext);

	while (pln_file_reader_next(reader, values, isnull))
	{
		int			i;

		for (i = 0; i < desc->natts; i++)
		{
			row[i] = values[map[i]];
			rownull[i] = isnull[map[i]];
		}
		tuplestore_putvalues(store, desc, row, rownull);
	}
	pln_file_reader_close(reader);
	return (Datum) 0;
}

/*
 * list_files(path text, options jsonb, read boolean) -> one row per file; with read the
 * counts of reading it, else null.
 */
Datum
pipeline_internal_list_files(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Tuplestorestate *store = start_rows(fcinfo, &desc);
	PlnFileOptions *options = options_of(fcinfo, 0, 1);
	List	   *files = pln_files_list(options);
	bool		read = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	ListCell   *lc;

	if (read && files != NIL)
	{
		PlnFileSchema *schema = pln_files_infer(files, options);
		int			width = pln_file_schema_width(schema);
		Datum	   *values = palloc(sizeof(Datum) * width);
		bool	   *isnull = palloc(sizeof(bool) * width);
		PlnFileReader *reader = pln_file_reader_open(options, schema, files,
													 CurrentMemoryContext);

		while (pln_file_reader_next(reader, values, isnull))
			;
		pln_file_reader_close(reader);
	}
	foreach(lc, files)
	{
		PlnFileInfo *info = lfirst(lc);
		Datum		values[10];
		bool		nulls[10] = {false};
		int			i;

		values[0] = CStringGetTextDatum(info->path);
		values[1] = CStringGetTextDatum(info->name);
		values[2] = CStringGetTextDatum(info->dir);
		values[3] = Int64GetDatum(info->size);
		values[4] = TimestampTzGetDatum(info->mtime);
		values[5] = Int64GetDatum(info->rows);
		values[6] = Int64GetDatum(info->malformed);
		values[7] = Int64GetDatum(info->rescued);
		values[8] = Int64GetDatum(info->dropped);
		values[9] = Int64GetDatum(info->lost);
		for (i = 5; i < 10; i++)
			nulls[i] = !read;
		tuplestore_putvalues(store, desc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * file_schema(path text, options jsonb, old jsonb) -> jsonb: the schema to freeze for the
 * files; with old, what schemaEvolutionMode makes of it.
 */
Datum
pipeline_internal_file_schema(PG_FUNCTION_ARGS)
{
	PlnFileOptions *options = options_of(fcinfo, 0, 1);
	List	   *files = pln_files_list(options);
	PlnFileSchema *schema;

	if (PG_ARGISNULL(2))
		schema = pln_files_infer(files, options);
	else
	{
		Datum		old = DirectFunctionCall1(jsonb_out, PG_GETARG_DATUM(2));
		List	   *added;

		schema = pln_file_schema_evolve(pln_file_schema_from_json(DatumGetCString(old)), files,
										options, &added);
	}
	PG_RETURN_DATUM(DirectFunctionCall1(jsonb_in,
										CStringGetDatum(pln_file_schema_to_json(schema))));
}

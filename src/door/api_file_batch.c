/*
 * api_file_batch.c
 *	  pipeline.read_file_batch: the rows of the files that a flow reads now.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/errors.h"
#include "source/file_ledger.h"

PG_FUNCTION_INFO_V1(pipeline_read_file_batch);

/* For each asked column the reader's; by name, types must agree. */
static int *
map_columns(TupleDesc asked, PlnFileSchema *schema)
{
	int			width = pln_file_schema_width(schema);
	int		   *map = palloc(sizeof(int) * Max(asked->natts, 1));
	int			i;
	int			j;

	for (i = 0; i < asked->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(asked, i);

		map[i] = -1;
		for (j = 0; j < width; j++)
		{
			const char *name;
			Oid			type;
			int32		typmod;
			Oid			collation;
			bool		metadata = j >= width - PLN_METADATA_COLUMNS;

			pln_file_schema_column(schema, j, &name, &type, &typmod, &collation);
			if (metadata)
				name = psprintf("_metadata_%s", name);
			if (strcmp(name, NameStr(att->attname)) == 0 && type == att->atttypid)
				map[i] = j;
		}
		if (map[i] < 0)
			ereport(ERROR,
					(errcode(PLN_ERR_STATE),
					 errmsg("the files have no column \"%s\" of that type any more",
							NameStr(att->attname)),
					 errhint("Run the pipeline, or repeat CREATE OR REFRESH.")));
	}
	return map;
}

/* read_file_batch(id int) returns setof record: only inside a flow that made the batch. */
Datum
pipeline_read_file_batch(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PlnFileBatch *batch = pln_file_batch_get(PG_GETARG_INT32(0));
	PlnFileSchema *schema;
	PlnFileReader *reader;
	TupleDesc	desc;
	Datum	   *values;
	bool	   *nulls;
	Datum	   *out;
	bool	   *out_nulls;
	int		   *map;

	if (batch == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("there is no file batch %d", PG_GETARG_INT32(0)),
				 errhint("Read files with pipeline.read_files().")));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	desc = rsinfo->setDesc;
	reader = pln_file_batch_reader(batch, &schema);
	map = map_columns(desc, schema);
	values = palloc(sizeof(Datum) * pln_file_schema_width(schema));
	nulls = palloc(sizeof(bool) * pln_file_schema_width(schema));
	out = palloc(sizeof(Datum) * Max(desc->natts, 1));
	out_nulls = palloc(sizeof(bool) * Max(desc->natts, 1));
	while (pln_file_reader_next(reader, values, nulls))
	{
		int			i;

		CHECK_FOR_INTERRUPTS();
		for (i = 0; i < desc->natts; i++)
		{
			out[i] = values[map[i]];
			out_nulls[i] = nulls[map[i]];
		}
		tuplestore_putvalues(rsinfo->setResult, desc, out, out_nulls);
	}
	pln_file_reader_close(reader);
	return (Datum) 0;
}

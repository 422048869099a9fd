/*
 * file_ledger.c
 *	  The files of a streaming read: those listed now and not consumed yet.
 *
 * A file counts as consumed only when it did not change while it was read (interface
 * §3.22).  One that did makes the flow fail with 55006 and is left out when the caller tries
 * again; the next update lists it anew.
 */
#include "postgres.h"

#include <unistd.h>

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

#include "base/errors.h"
#include "base/spi.h"
#include "catalog/checkpoints.h"
#include "files/files.h"
#include "source/file_ledger.h"

struct PlnFileBatch
{
	int			id;
	Oid			user;			/* who may read it: whom the flow runs as */
	int			ordinal;
	char	   *path;
	char	   *options_json;
	PlnFileOptions *options;
	PlnFileSchema *schema;
	List	   *files;			/* of PlnFileInfo: to be read now */
	List	   *passed_over;	/* of PlnFileInfo: includeExistingFiles = false */
	int64		listed;
	double		listing_ms;
};

/* Batches of the flow that runs in this backend; reset with each flow. */
static MemoryContext batch_context = NULL;
static List *batches = NIL;
static int	next_id = 1;

/* Paths that changed while they were read, in the attempts of the current flow. */
static List *unstable = NIL;

void
pln_file_batches_reset(bool keep_unstable)
{
	if (batch_context == NULL)
		batch_context = AllocSetContextCreate(TopMemoryContext, "pipeline file batches",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(batch_context);
	batches = NIL;
	if (!keep_unstable)
	{
		list_free_deep(unstable);
		unstable = NIL;
	}
}

static bool
is_unstable(const char *path)
{
	ListCell   *lc;

	foreach(lc, unstable)
	{
		if (strcmp(lfirst(lc), path) == 0)
			return true;
	}
	return false;
}

/* The listed files that the ledger does not have. */
List *
pln_file_ledger_new(int64 flow_id, int ordinal, List *listed, bool allow_overwrites)
{
	int			n = list_length(listed);
	char	  **paths = palloc(sizeof(char *) * Max(n, 1));
	int64	   *sizes = palloc(sizeof(int64) * Max(n, 1));
	TimestampTz *mtimes = palloc(sizeof(TimestampTz) * Max(n, 1));
	List	   *files = NIL;
	ListCell   *lc;
	int			i = 0;

	foreach(lc, listed)
	{
		PlnFileInfo *file = lfirst(lc);

		paths[i] = file->path;
		sizes[i] = file->size;
		mtimes[i] = file->mtime;
		i++;
	}
	foreach(lc, pln_ledger_new_files(flow_id, ordinal, n, paths, sizes, mtimes,
									 allow_overwrites))
	{
		PlnFileInfo *file = list_nth(listed, lfirst_int(lc));

		if (!is_unstable(file->path))
			files = lappend(files, file);
	}
	return files;
}

PlnFileBatch *
pln_file_batch_open(int64 flow_id, PlnStreamSource *source)
{
	MemoryContext old;
	PlnFileBatch *batch;
	List	   *listed;
	char	   *schema;
	Datum		options;
	instr_time	start;
	instr_time	stop;

	if (batch_context == NULL)
		pln_file_batches_reset(false);
	old = MemoryContextSwitchTo(batch_context);
	batch = palloc0(sizeof(PlnFileBatch));
	batch->id = next_id++;
	batch->user = GetUserId();
	batch->ordinal = source->ordinal;
	batch->path = pstrdup(source->path);
	batch->options_json = pstrdup(source->options_json);
	options = DirectFunctionCall1(jsonb_in, CStringGetDatum(batch->options_json));
	batch->options = pln_file_options_from_jsonb(batch->path, DatumGetJsonbP(options));
	schema = pln_file_source_schema(flow_id, source->ordinal);
	if (schema == NULL)
		ereport(ERROR,
				(errcode(PLN_ERR_STATE),
				 errmsg("the columns of the files in \"%s\" are not known", batch->path),
				 errhint("Run the pipeline, or repeat CREATE OR REFRESH.")));
	batch->schema = pln_file_schema_from_json(schema);
	INSTR_TIME_SET_CURRENT(start);
	listed = pln_files_list(batch->options);
	INSTR_TIME_SET_CURRENT(stop);
	INSTR_TIME_SUBTRACT(stop, start);
	batch->listing_ms = INSTR_TIME_GET_MILLISEC(stop);
	batch->listed = list_length(listed);
	pln_files_detect_format(listed, batch->options);
	batch->options->format = batch->schema->format;
	batch->files = pln_file_ledger_new(flow_id, source->ordinal, listed,
									   batch->options->allow_overwrites);
	if (!batch->options->include_existing &&
		pln_ledger_count(flow_id, source->ordinal) == 0)
	{
		batch->passed_over = batch->files;
		batch->files = NIL;
	}
	batches = lappend(batches, batch);
	MemoryContextSwitchTo(old);
	return batch;
}

int
pln_file_batch_count(PlnFileBatch *batch)
{
	return list_length(batch->files);
}

bool
pln_file_batch_has_news(PlnFileBatch *batch)
{
	return batch->files != NIL || batch->passed_over != NIL;
}

int64
pln_file_batch_listed(PlnFileBatch *batch)
{
	return batch->listed;
}

double
pln_file_batch_listing_ms(PlnFileBatch *batch)
{
	return batch->listing_ms;
}

void
pln_file_batch_substitute(PlnFileBatch *batch, RangeTblEntry *rte)
{
	RangeTblFunction *rtfunc = linitial_node(RangeTblFunction, rte->functions);
	FuncExpr   *call = castNode(FuncExpr, rtfunc->funcexpr);
	Oid			argtypes[1] = {INT4OID};

	call->funcid = LookupFuncName(list_make2(makeString("pipeline"),
											 makeString("read_file_batch")),
								  1, argtypes, false);
	call->args = list_make1(makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
									  Int32GetDatum(batch->id), false, true));
}

PlnFileBatch *
pln_file_batch_get(int id)
{
	ListCell   *lc;

	foreach(lc, batches)
	{
		PlnFileBatch *batch = lfirst(lc);

		if (batch->id == id && batch->user == GetUserId())
			return batch;
	}
	return NULL;
}

PlnFileReader *
pln_file_batch_reader(PlnFileBatch *batch, PlnFileSchema **schema)
{
	*schema = batch->schema;
	return pln_file_reader_open(batch->options, batch->schema, batch->files,
								CurrentMemoryContext);
}

/* ---- ledger ---- */

static PlnLedgerEntry *
ledger_entry(PlnFileInfo *file, const char *state)
{
	PlnLedgerEntry *entry = palloc0(sizeof(PlnLedgerEntry));

	entry->path = file->path;
	entry->size = file->size;
	entry->mtime = file->mtime;
	entry->state = state;
	entry->rows = file->rows;
	entry->malformed = file->malformed + file->dropped;
	entry->rescued = file->rescued;
	return entry;
}

static void
refuse_changed(PlnFileInfo *file)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	unstable = lappend(unstable, pstrdup(file->path));
	MemoryContextSwitchTo(old);
	ereport(ERROR,
			(errcode(PLN_ERR_BUSY),
			 errmsg("file \"%s\" changed while it was read", file->path),
			 errdetail("Nothing of it was taken."),
			 errhint("It is read by a later update, once it is complete.")));
}

void
pln_file_batch_record(PlnFileBatch *batch, int64 flow_id, const char *update_id)
{
	List	   *entries = NIL;
	ListCell   *lc;

	foreach(lc, batch->files)
	{
		PlnFileInfo *file = lfirst(lc);

		if (file->changed)
			refuse_changed(file);
		if (file->missing)
			continue;			/* ignoreMissingFiles: it may come back */
		entries = lappend(entries, ledger_entry(file, file->corrupt ? "SKIPPED" : "DONE"));
	}
	foreach(lc, batch->passed_over)
		entries = lappend(entries, ledger_entry(lfirst(lc), "SKIPPED"));
	if (entries != NIL)
		pln_ledger_record(flow_id, batch->ordinal, update_id, entries);
}

int
pln_file_ledger_unstable(void)
{
	return list_length(unstable);
}

/* ---- full refresh ---- */

int64
pln_file_ledger_gone(int64 flow_id)
{
	PlnArgs		args;
	PlnRows    *rows;
	int64		gone = 0;
	uint64		i;

	pln_args_init(&args);
	pln_args_int8(&args, flow_id);
	rows = pln_spi_run_args("SELECT path FROM pipeline_internal.files "
							"WHERE flow_id = $1 AND state = 'DONE'", &args);
	for (i = 0; i < rows->n; i++)
	{
		char	   *path = pln_row_text(rows, i, "path");

		if (path[0] == '/' && access(path, F_OK) != 0)
			gone++;
	}
	return gone;
}

/*
 * stream_method.c
 *	  TABLESAMPLE pipeline.stream: the mark that STREAM leaves in a stored query.
 *
 * An update replaces it by the rows that are new.  When somebody reads a flow view by hand
 * it samples everything.
 */
#include "postgres.h"

#include "access/tsmapi.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"

PG_FUNCTION_INFO_V1(pipeline_stream_handler);

static void
sample_size(PlannerInfo *root, RelOptInfo *rel, List *args, BlockNumber *pages, double *tuples)
{
	*pages = rel->pages;
	*tuples = rel->tuples;
}

/* Where the next tuple of the current block is; blocks come in order by themselves. */
typedef struct StreamSample
{
	OffsetNumber last;
} StreamSample;

static void
init_sample(SampleScanState *node, int eflags)
{
	node->tsm_state = palloc0(sizeof(StreamSample));
}

static void
begin_sample(SampleScanState *node, Datum *params, int nparams, uint32 seed)
{
	((StreamSample *) node->tsm_state)->last = InvalidOffsetNumber;
}

static OffsetNumber
next_tuple(SampleScanState *node, BlockNumber block, OffsetNumber maxoffset)
{
	StreamSample *sample = node->tsm_state;

	sample->last = sample->last == InvalidOffsetNumber ? FirstOffsetNumber :
		OffsetNumberNext(sample->last);
	if (sample->last > maxoffset)
		sample->last = InvalidOffsetNumber;
	return sample->last;
}

Datum
pipeline_stream_handler(PG_FUNCTION_ARGS)
{
	TsmRoutine *tsm = makeNode(TsmRoutine);

	tsm->parameterTypes = list_make1_oid(TEXTOID);
	tsm->repeatable_across_queries = true;
	tsm->repeatable_across_scans = true;
	tsm->SampleScanGetSampleSize = sample_size;
	tsm->InitSampleScan = init_sample;
	tsm->BeginSampleScan = begin_sample;
	tsm->NextSampleBlock = NULL;
	tsm->NextSampleTuple = next_tuple;
	tsm->EndSampleScan = NULL;
	PG_RETURN_POINTER(tsm);
}

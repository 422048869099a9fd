/*
 * api_graph.c
 *	  pipeline.graph(): the datasets of a pipeline and what they read.
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "base/spi.h"
#include "door/access.h"
#include "graph/graph.h"

PG_FUNCTION_INFO_V1(pipeline_graph);

/* A dataset of the pipeline, or something outside that one of them reads. */
typedef struct DrawNode
{
	char	   *name;
	const char *kind;			/* NULL: not a dataset of this pipeline */
	List	   *inputs;			/* ints */
} DrawNode;

typedef struct Drawing
{
	char	   *title;
	DrawNode	   *nodes;
	int			nnodes;
	int		   *order;
} Drawing;

static int
find_node(Drawing *drawing, const char *name)
{
	int			i;

	for (i = 0; i < drawing->nnodes; i++)
	{
		if (strcmp(drawing->nodes[i].name, name) == 0)
			return i;
	}
	return -1;
}

static int
add_node(Drawing *drawing, char *name, const char *kind)
{
	DrawNode	   *node = &drawing->nodes[drawing->nnodes];

	node->name = name;
	node->kind = kind;
	node->inputs = NIL;
	return drawing->nnodes++;
}

static PlnRows *
fetch_edges(int64 pipeline_id, bool with_files)
{
	PlnArgs		args;

	pln_args_init(&args);
	pln_args_int8(&args, pipeline_id);
	pln_args_bool(&args, with_files);
	return pln_spi_run_args(
		"SELECT DISTINCT e.upstream, format('%I.%I', d.schema_name, d.name) AS downstream"
		" FROM pipeline_internal.edges e"
		" JOIN pipeline_internal.datasets d ON d.id = e.dataset_id"
		" WHERE e.pipeline_id = $1 AND ($2 OR e.upstream_relation IS NOT NULL)"
		" ORDER BY 2, 1", &args);
}

/*
 * Nodes in an order in which everything comes after what it reads.  A circle cannot be
 * defined, but a view can be redefined behind our back: then the order is that of definition.
 */
static void
order_nodes(Drawing *drawing)
{
	PlnGraph   *graph = pln_graph_create(drawing->nnodes);
	int			i;

	for (i = 0; i < drawing->nnodes; i++)
	{
		ListCell   *lc;

		foreach(lc, drawing->nodes[i].inputs)
			pln_graph_add_edge(graph, lfirst_int(lc), i);
	}
	drawing->order = pln_graph_order(graph);
	if (drawing->order != NULL)
		return;
	drawing->order = palloc(sizeof(int) * drawing->nnodes);
	for (i = 0; i < drawing->nnodes; i++)
		drawing->order[i] = i;
}

static void
load_drawing(Drawing *drawing, PlnPipeline *pipeline, bool with_files)
{
	List	   *datasets = pln_datasets_of_pipeline(pipeline->id);
	PlnRows    *edges = fetch_edges(pipeline->id, with_files);
	ListCell   *lc;
	uint64		i;

	drawing->title = pln_pipeline_display_name(pipeline);
	drawing->nnodes = 0;
	drawing->nodes = palloc(sizeof(DrawNode) * (list_length(datasets) + edges->n + 1));
	foreach(lc, datasets)
	{
		PlnDataset *dataset = lfirst(lc);

		(void) add_node(drawing, pln_dataset_display_name(dataset),
						pln_dataset_kind_name(dataset->kind));
	}
	for (i = 0; i < edges->n; i++)
	{
		char	   *upstream = pln_row_text(edges, i, "upstream");
		int			to = find_node(drawing, pln_row_text(edges, i, "downstream"));
		int			from = find_node(drawing, upstream);

		if (from < 0)
			from = add_node(drawing, upstream, NULL);
		drawing->nodes[to].inputs = lappend_int(drawing->nodes[to].inputs, from);
	}
	order_nodes(drawing);
}

/* ---- formats ---- */

static void
draw_text(Drawing *drawing, StringInfo out)
{
	int			i;

	appendStringInfo(out, "pipeline %s", drawing->title);
	for (i = 0; i < drawing->nnodes; i++)
	{
		DrawNode	   *node = &drawing->nodes[drawing->order[i]];
		const char *separator = " <- ";
		ListCell   *lc;

		if (node->kind == NULL)
			continue;
		appendStringInfo(out, "\n  %s (%s)", node->name, node->kind);
		foreach(lc, node->inputs)
		{
			appendStringInfo(out, "%s%s", separator, drawing->nodes[lfirst_int(lc)].name);
			separator = ", ";
		}
	}
}

/* A label within double quotes; each format has its own way to write the awkward characters. */
static void
append_label(StringInfo out, const char *text, bool mermaid)
{
	const char *at;

	appendStringInfoChar(out, '"');
	for (at = text; *at != '\0'; at++)
	{
		if (mermaid && strchr("\"<>#&", *at) != NULL)
			appendStringInfo(out, "#%d;", *at);
		else if (*at == '\n' || *at == '\r')
			appendStringInfoChar(out, ' ');
		else
		{
			if (!mermaid && (*at == '"' || *at == '\\'))
				appendStringInfoChar(out, '\\');
			appendStringInfoChar(out, *at);
		}
	}
	appendStringInfoChar(out, '"');
}

static void
append_edges(Drawing *drawing, StringInfo out, const char *arrow, const char *end)
{
	int			i;

	for (i = 0; i < drawing->nnodes; i++)
	{
		ListCell   *lc;

		foreach(lc, drawing->nodes[drawing->order[i]].inputs)
			appendStringInfo(out, "\n  n%d %s n%d%s", lfirst_int(lc), arrow,
							 drawing->order[i], end);
	}
}

static void
draw_mermaid(Drawing *drawing, StringInfo out)
{
	int			i;

	appendStringInfoString(out, "flowchart LR");
	for (i = 0; i < drawing->nnodes; i++)
	{
		DrawNode	   *node = &drawing->nodes[drawing->order[i]];
		bool		view = node->kind != NULL && strcmp(node->kind, "STREAMING_TABLE") != 0;

		/* what lies outside is a cylinder, views are rounded, tables are boxes */
		appendStringInfo(out, "\n  n%d%s", drawing->order[i],
						 node->kind == NULL ? "[(" : view ? "(" : "[");
		append_label(out, node->name, true);
		appendStringInfoString(out, node->kind == NULL ? ")]" : view ? ")" : "]");
	}
	append_edges(drawing, out, "-->", "");
}

static void
draw_dot(Drawing *drawing, StringInfo out)
{
	int			i;

	appendStringInfoString(out, "digraph ");
	append_label(out, drawing->title, false);
	appendStringInfoString(out, " {\n  rankdir=LR;");
	for (i = 0; i < drawing->nnodes; i++)
	{
		DrawNode	   *node = &drawing->nodes[drawing->order[i]];
		bool		view = node->kind != NULL && strcmp(node->kind, "STREAMING_TABLE") != 0;

		appendStringInfo(out, "\n  n%d [label=", drawing->order[i]);
		append_label(out, node->name, false);
		appendStringInfo(out, ", shape=%s];",
						 node->kind == NULL ? "cylinder" : view ? "ellipse" : "box");
	}
	append_edges(drawing, out, "->", ";");
	appendStringInfoString(out, "\n}");
}

Datum
pipeline_graph(PG_FUNCTION_ARGS)
{
	PlnTarget	target;
	PlnAccess	access;
	Drawing		drawing;
	StringInfoData out;
	char	   *name;
	char	   *format;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(PLN_ERR_NULL_ARGUMENT),
				 errmsg("pipeline and format must not be null")));
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	format = text_to_cstring(PG_GETARG_TEXT_PP(1));
	target = pln_target_find(name);
	access = pln_access_of_pipeline(target.pipeline);
	if (!access.owner && !access.stats)
		pln_access_refuse("pipeline", name);
	load_drawing(&drawing, target.pipeline, access.owner);
	initStringInfo(&out);
	if (strcmp(format, "text") == 0)
		draw_text(&drawing, &out);
	else if (strcmp(format, "mermaid") == 0)
		draw_mermaid(&drawing, &out);
	else if (strcmp(format, "dot") == 0)
		draw_dot(&drawing, &out);
	else
		ereport(ERROR,
				(errcode(PLN_ERR_BAD_VALUE),
				 errmsg("unknown graph format \"%s\"", format),
				 errhint("Formats are text, mermaid and dot.")));
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}

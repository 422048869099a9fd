/*
 * graph.c
 *	  DAG algebra on ints.
 *
 * Edges are kept as adjacency lists in both directions.  Nothing recurses: a pipeline may
 * be thousands of datasets deep.
 */
#include "postgres.h"

#include "lib/binaryheap.h"
#include "nodes/pg_list.h"

#include "base/errors.h"
#include "graph/graph.h"

struct PlnGraph
{
	int			nnodes;
	List	  **out;			/* int lists: readers of a node */
	List	  **in;				/* int lists: what a node reads */
};

PlnGraph *
pln_graph_create(int nnodes)
{
	PlnGraph   *graph = palloc(sizeof(PlnGraph));

	PLN_ENSURE(nnodes >= 0);
	graph->nnodes = nnodes;
	graph->out = palloc0(sizeof(List *) * Max(nnodes, 1));
	graph->in = palloc0(sizeof(List *) * Max(nnodes, 1));
	return graph;
}

void
pln_graph_add_edge(PlnGraph *graph, int from, int to)
{
	PLN_ENSURE(from >= 0 && from < graph->nnodes && to >= 0 && to < graph->nnodes);
	if (list_member_int(graph->in[to], from))
		return;
	graph->in[to] = lappend_int(graph->in[to], from);
	graph->out[from] = lappend_int(graph->out[from], to);
}

/* Smallest on top. */
static int
compare_nodes(Datum a, Datum b, void *arg)
{
	int			x = DatumGetInt32(a);
	int			y = DatumGetInt32(b);

	return (x < y) - (x > y);
}

/*
 * Kahn's algorithm.  Fills order and returns how many nodes it got; the others are on
 * cycles or behind one.  indegree is left at 0 for those that it got.
 */
static int
sort_nodes(PlnGraph *graph, int *order, int *indegree)
{
	binaryheap *ready = binaryheap_allocate(Max(graph->nnodes, 1), compare_nodes, NULL);
	int			n = 0;
	int			i;

	for (i = 0; i < graph->nnodes; i++)
	{
		indegree[i] = list_length(graph->in[i]);
		if (indegree[i] == 0)
			binaryheap_add(ready, Int32GetDatum(i));
	}
	while (!binaryheap_empty(ready))
	{
		int			node = DatumGetInt32(binaryheap_remove_first(ready));
		ListCell   *lc;

		order[n++] = node;
		foreach(lc, graph->out[node])
		{
			if (--indegree[lfirst_int(lc)] == 0)
				binaryheap_add(ready, Int32GetDatum(lfirst_int(lc)));
		}
	}
	binaryheap_free(ready);
	return n;
}

int *
pln_graph_order(PlnGraph *graph)
{
	int		   *order = palloc(sizeof(int) * Max(graph->nnodes, 1));
	int		   *indegree = palloc(sizeof(int) * Max(graph->nnodes, 1));

	if (sort_nodes(graph, order, indegree) < graph->nnodes)
		return NULL;
	pfree(indegree);
	return order;
}

/* The smallest of the nodes that node reads and that the sort did not get. */
static int
unsorted_input(PlnGraph *graph, int node, const int *indegree)
{
	int			best = -1;
	ListCell   *lc;

	foreach(lc, graph->in[node])
	{
		if (indegree[lfirst_int(lc)] > 0 && (best < 0 || lfirst_int(lc) < best))
			best = lfirst_int(lc);
	}
	return best;
}

/*
 * Every node that the sort did not get reads another such node: walking against the edges
 * must come to a node seen before, and what lies between is a cycle.
 */
int *
pln_graph_cycle(PlnGraph *graph, int *length)
{
	int		   *order = palloc(sizeof(int) * Max(graph->nnodes, 1));
	int		   *indegree = palloc(sizeof(int) * Max(graph->nnodes, 1));
	int		   *step = palloc0(sizeof(int) * Max(graph->nnodes, 1));
	int		   *walk = order;	/* reused */
	int		   *cycle;
	int			node = 0;
	int			n = 0;
	int			smallest = 0;
	int			i;

	*length = 0;
	if (sort_nodes(graph, order, indegree) == graph->nnodes)
		return NULL;
	while (indegree[node] == 0)
		node++;
	while (step[node] == 0)
	{
		walk[n] = node;
		step[node] = ++n;
		node = unsorted_input(graph, node, indegree);
		PLN_ENSURE(node >= 0);
	}
	*length = n - step[node] + 1;
	cycle = palloc(sizeof(int) * *length);
	/* the walk went against the edges */
	for (i = 0; i < *length; i++)
	{
		cycle[i] = walk[n - 1 - i];
		if (cycle[i] < cycle[smallest])
			smallest = i;
	}
	for (i = 0; i < *length; i++)
		walk[i] = cycle[(smallest + i) % *length];
	memcpy(cycle, walk, sizeof(int) * *length);
	return cycle;
}

static bool *
reach(PlnGraph *graph, List **edges, int node)
{
	bool	   *seen = palloc0(sizeof(bool) * Max(graph->nnodes, 1));
	List	   *todo = list_make1_int(node);

	PLN_ENSURE(node >= 0 && node < graph->nnodes);
	while (todo != NIL)
	{
		int			at = llast_int(todo);
		ListCell   *lc;

		todo = list_delete_last(todo);
		foreach(lc, edges[at])
		{
			if (!seen[lfirst_int(lc)])
			{
				seen[lfirst_int(lc)] = true;
				todo = lappend_int(todo, lfirst_int(lc));
			}
		}
	}
	return seen;
}

bool *
pln_graph_ancestors(PlnGraph *graph, int node)
{
	return reach(graph, graph->in, node);
}

bool *
pln_graph_descendants(PlnGraph *graph, int node)
{
	return reach(graph, graph->out, node);
}

/*
 * graph.h
 *	  DAG algebra on ints: nodes are 0 .. n-1, an edge leads from what is read to its reader.
 */
#ifndef PIPELINE_GRAPH_GRAPH_H
#define PIPELINE_GRAPH_GRAPH_H

typedef struct PlnGraph PlnGraph;

extern PlnGraph *pln_graph_create(int nnodes);

/* Adding an edge twice is the same as adding it once. */
extern void pln_graph_add_edge(PlnGraph *graph, int from, int to);

/*
 * The nodes such that every edge leads to the right; among those that are ready the
 * smallest comes first, so that nodes without an edge between them keep their given order as far
 * as possible.  NULL when there is a cycle.
 */
extern int *pln_graph_order(PlnGraph *graph);

/*
 * One cycle as the nodes on it, in the direction of the edges, first node not repeated; it
 * starts with its smallest node.  NULL when there is none.  A node that reads itself is a
 * cycle of length 1.
 */
extern int *pln_graph_cycle(PlnGraph *graph, int *length);

/* Nodes from which / to which a path leads, as nnodes flags; the node itself only if it is
 * on a cycle. */
extern bool *pln_graph_ancestors(PlnGraph *graph, int node);
extern bool *pln_graph_descendants(PlnGraph *graph, int node);

#endif							/* PIPELINE_GRAPH_GRAPH_H */

/*
 * select.h
 *	  Which datasets of a program an update touches.
 */
#ifndef PIPELINE_UPDATE_SELECT_H
#define PIPELINE_UPDATE_SELECT_H

#include "update/update.h"

/* True per node index: selected by request->datasets ('+x' with everything upstream, 'x+' with
 * everything downstream) and failed_only; 42704 for a name that is not in the program. */
extern bool *pln_select_nodes(PlnProgram *program, PlnRequest *request);

/* Refuse or extend a full refresh: pipelines.reset.allowed, streaming descendants (cascade),
 * lost files and replayed rows (allow_loss); sets node->full_refresh (interface §3.19). */
extern void pln_select_full_refresh(PlnProgram *program, PlnRequest *request, bool *selected);

#endif							/* PIPELINE_UPDATE_SELECT_H */

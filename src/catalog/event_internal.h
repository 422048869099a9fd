/*
 * event_internal.h
 *	  Between event_payload.c and event_log.c.
 */
#ifndef PIPELINE_CATALOG_EVENT_INTERNAL_H
#define PIPELINE_CATALOG_EVENT_INTERNAL_H

#include "catalog/event_log.h"

/* pln_event(), and NOTIFY pipeline with this payload when the event is stored; NULL: none. */
extern void pln_event_notify(const PlnOrigin *origin, const char *level,
							 const char *event_type, const char *message,
							 const char *details_json, const char *error_json,
							 const char *notice);

#endif							/* PIPELINE_CATALOG_EVENT_INTERNAL_H */

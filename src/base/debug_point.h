/*
 * debug_point.h
 *	  Named points where a test can make an update fail, wait or die.
 */
#ifndef PIPELINE_BASE_DEBUG_POINT_H
#define PIPELINE_BASE_DEBUG_POINT_H

extern void pln_debug_point(const char *name);

#endif							/* PIPELINE_BASE_DEBUG_POINT_H */

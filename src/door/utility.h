/*
 * utility.h
 *	  The one ProcessUtility hook: statements of PostgreSQL's own grammar on our datasets.
 */
#ifndef PIPELINE_DOOR_UTILITY_H
#define PIPELINE_DOOR_UTILITY_H

extern void pln_utility_install(void);

#endif							/* PIPELINE_DOOR_UTILITY_H */

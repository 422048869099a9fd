/*
 * version.h
 *	  The library against the SQL objects of the extension.
 */
#ifndef PIPELINE_BASE_VERSION_H
#define PIPELINE_BASE_VERSION_H

/* SQL version that this library was built for. */
#define PLN_SQL_VERSION "1.0"

/* Raises 55000 with the command to type when the installed SQL version is another one. */
extern void pln_check_version(void);

#endif							/* PIPELINE_BASE_VERSION_H */

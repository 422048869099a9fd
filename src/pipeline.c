/*
 * pipeline.c
 *	  Module magic and _PG_init; wires everything, is included by nobody.
 */
#include "postgres.h"

#include "fmgr.h"

#include "base/guc.h"
#include "door/utility.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	pln_guc_init();
	pln_utility_install();
}

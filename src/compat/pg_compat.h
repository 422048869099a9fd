/*
 * pg_compat.h
 *	  Every PG_VERSION_NUM test in the tree.  Shims take the newest signature.
 */
#ifndef PIPELINE_COMPAT_PG_COMPAT_H
#define PIPELINE_COMPAT_PG_COMPAT_H

#include "executor/executor.h"
#include "utils/acl.h"

#if PG_VERSION_NUM < 150000
#error "pipeline needs PostgreSQL 15 or newer"
#endif

/* PG16: input functions that report instead of raising; drop the other way with PG15 */
#if PG_VERSION_NUM >= 160000
#define PLN_HAVE_SOFT_INPUT
#include "nodes/miscnodes.h"
#endif

/* PG17: MERGE has WHEN NOT MATCHED BY SOURCE */
#define PLN_HAVE_MERGE_BY_SOURCE	(PG_VERSION_NUM >= 170000)

/*
 * PG15.19 and its siblings: attributes carry a version, which must grow with each change of a
 * row type, or the server warns.
 */
#if PG_VERSION_NUM >= 150019 && PG_VERSION_NUM < 160000
#include "catalog/heap.h"
#define pln_compat_version_attribute(rel, tuple) \
	SetAttributeVersionInTuple(rel, tuple, GetNextAttributeVersion())
#else
#define pln_compat_version_attribute(rel, tuple) (tuple)
#endif

#endif							/* PIPELINE_COMPAT_PG_COMPAT_H */

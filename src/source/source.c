/*
 * source.c
 *	  What changed since a frontier: pending headers, what they mean for the reader, and the
 *	  query that delivers the rows.
 *
 * Everything here runs under the caller's active snapshot: headers, log rows and heap rows
 * are one consistent state with the frontier that is handed back.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parser.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/errors.h"
#include "base/ident.h"
#include "base/secctx.h"
#include "source/reading.h"

/* xmin of a tuple is 32 bit: older headers are not matched (correctness C1). */
#define MAX_XID_AGE ((uint64) 1 << 31)

/* The private part of PlnChanges. */
typedef struct Delta
{
	PlnSource  *source;
	List	   *parts;			/* of PlnPart */
} Delta;

/* ---- A16: a statement on R that is still running has not logged its rows yet ---- */

static void
check_not_in_use(Oid relid)
{
	ListCell   *lc;

	foreach(lc, pln_source_relations(relid))
	{
		Relation	rel = RelationIdGetRelation(lfirst_oid(lc));
		bool		busy;

		if (rel == NULL)
			continue;

		/* Our own reference is one; a running query that only reads is harmless. */
		busy = rel->rd_refcnt > (rel->rd_isnailed ? 2 : 1) &&
			CheckRelationLockedByMe(rel, RowExclusiveLock, true);
		RelationClose(rel);
		if (busy)
			ereport(ERROR,
					(errcode(PLN_ERR_BUSY),
					 errmsg("cannot read changes of \"%s\" while a statement on it is running in "
							"this session", pln_relation_name(lfirst_oid(lc))),
					 errhint("Run the update after the statement has ended.")));
	}
}

/* ---- grouping ---- */

static void
add_header(PlnReading *r, PlnHeader *header)
{
	PlnXact    *xact = r->xacts == NIL ? NULL : llast(r->xacts);

	if (xact == NULL || xact->incarnation != header->incarnation || xact->xid != header->xid)
	{
		xact = palloc0(sizeof(PlnXact));
		xact->incarnation = header->incarnation;
		xact->xid = header->xid;
		r->xacts = lappend(r->xacts, xact);
	}
	xact->headers = lappend(xact->headers, header);
}

static const char *
kind_verb(char kind)
{
	switch (kind)
	{
		case PLN_HEADER_UPDATE:
			return "updated";
		case PLN_HEADER_DELETE:
			return "deleted";
		default:
			return "truncated";
	}
}

/* Can the rows of our own append still be found by their xmin? */
static bool
check_append(PlnReading *r, const PlnHeader *header)
{
	uint64		next = U64FromFullTransactionId(ReadNextFullTransactionId());

	if (header->incarnation != pln_incarnation())
		pln_changes_everything(r->changes, "CHANGE_SET_MISSING",
				   pstrdup("rows that were not read yet were restored from a dump"));
	else if (next - header->xid >= MAX_XID_AGE)
		pln_changes_everything(r->changes, "CHANGE_SET_MISSING",
				   pstrdup("rows that were not read yet are more than 2^31 transactions old"));
	return r->changes->kind != PLN_CHANGE_EVERYTHING;
}

/* A statement that may have touched older rows. */
static void
note_change(PlnReading *r, PlnXact *xact, const PlnHeader *header)
{
	if (xact->what == NULL)
	{
		xact->what = kind_verb(header->kind);
		xact->at = header->at;
	}
	if (header->kind == PLN_HEADER_TRUNCATE)
		xact->truncate_seq = header->seq;
	if (header->generation == 0 || !xact->inserted)
		xact->residual = true;
	else
		xact->needs_net = true;
	if (header->generation > 0 && r->options != NULL && r->options->only_inserts)
		xact->needs_net = true;
	r->check_counts = true;
	if (header->generation == 0)
		r->old_images = -1;
	else if (r->old_images >= 0)
		r->old_images += header->rows;
}

/* false: everything changed */
static bool
classify_header(PlnReading *r, PlnXact *xact, const PlnHeader *header)
{
	switch (header->kind)
	{
		case PLN_HEADER_APPEND:
			if (pln_header_is_own_append(header))
				return check_append(r, header);
			if (header->generation > 0)
				xact->inserted = true;
			else if (r->options != NULL)
				pln_changes_everything(r->changes, "CHANGE_SET_MISSING",
						   pstrdup("its rows were not recorded before"));
			else
				xact->residual = true;	/* for a view: only that it changed is known */
			break;
		case PLN_HEADER_UPDATE:
		case PLN_HEADER_DELETE:
			note_change(r, xact, header);
			break;
		case PLN_HEADER_TRUNCATE:
			note_change(r, xact, header);
			if (r->options == NULL)
				pln_changes_everything(r->changes, "DATA_HAS_CHANGED", pstrdup("it was truncated"));
			break;
		case PLN_HEADER_SPARE:
			break;
		case PLN_HEADER_ERASE:
			if (r->options == NULL)
				xact->residual = true;
			break;
		case PLN_HEADER_EVERYTHING:
			pln_changes_everything(r->changes, "DATA_HAS_CHANGED",
					   header->note ? header->note : pstrdup("its content was replaced"));
			break;
		default:
			if (r->options == NULL)
				xact->residual = true;
			else
				pln_changes_everything(r->changes, "CHANGE_SET_MISSING",
						   pstrdup("its rows were not recorded before"));
			break;
	}
	return r->changes->kind != PLN_CHANGE_EVERYTHING;
}

/* ---- what it means for the reader ---- */

static PlnXact *
first_residual(PlnReading *r)
{
	ListCell   *lc;

	foreach(lc, r->xacts)
	{
		PlnXact    *xact = lfirst(lc);

		if (xact->residual)
			return xact;
	}
	return NULL;
}

static char *
describe_offence(const PlnXact *xact)
{
	if (xact->what == NULL)
		return pstrdup("inserted");
	return psprintf("%s in transaction " UINT64_FORMAT " at %s", xact->what, xact->xid,
					timestamptz_to_str(xact->at));
}

static void
evaluate(PlnReading *r)
{
	PlnChanges *changes = r->changes;
	bool		tolerant = r->options != NULL &&
		(r->options->skip_change_commits || r->options->only_inserts);
	PlnXact    *residual = first_residual(r);

	if (residual == NULL || tolerant)
		pln_reading_net(r);
	residual = first_residual(r);
	changes->kind = residual == NULL ? PLN_CHANGE_APPEND : PLN_CHANGE_GENERAL;
	if (residual != NULL)
	{
		pln_changes_add_reason(changes, "DATA_HAS_CHANGED",
							   psprintf("rows were %s", describe_offence(residual)));
		if (!tolerant)
		{
			if (r->options != NULL)
				changes->offence = describe_offence(residual);
			return;
		}
	}
	pln_reading_build(r);
}

/* Is the frontier comparable at all?  false: everything changed. */
static bool
check_frontier(PlnReading *r, PlnChanges *changes, List *pending)
{
	const PlnFrontier *frontier = r->frontier;
	PlnReason  *reason;
	List	   *spares = NIL;
	ListCell   *lc;

	if (frontier->incarnation > pln_incarnation())
	{
		pln_changes_everything(changes, "CHANGE_SET_MISSING",
				   pstrdup("the position was recorded in a later state of the database"));
		return false;
	}
	if (frontier->fingerprint == NULL)
	{
		pln_changes_everything(changes, "CHANGE_SET_MISSING",
				   pstrdup("its changes were not captured when it was read last"));
		return false;
	}
	if (r->source->kind == PLN_SOURCE_CAPTURED && pln_source_is_child(r->source->relid))
	{
		pln_changes_everything(changes, "PARTITION_SCHEMA_CHANGED",
				   pstrdup("it became a partition or child table"));
		return false;
	}

	/* Row versions and files of another incarnation say nothing (correctness A3). */
	if (frontier->incarnation != pln_incarnation())
		return true;
	foreach(lc, pending)
	{
		PlnHeader  *header = lfirst(lc);

		if (header->kind == PLN_HEADER_SPARE && header->note != NULL)
			spares = lappend(spares, header->note);
	}
	reason = pln_fingerprint_compare(frontier->fingerprint, changes->frontier->fingerprint,
									 spares);
	if (reason != NULL)
	{
		changes->kind = PLN_CHANGE_EVERYTHING;
		changes->reasons = lappend(changes->reasons, reason);
		return false;
	}
	if (r->options == NULL &&
		pln_fingerprint_policies_differ(frontier->fingerprint, changes->frontier->fingerprint))
	{
		pln_changes_everything(changes, "CONFIGURATION_CHANGED",
							   pstrdup("its row security changed"));
		return false;
	}
	return true;
}

PlnChanges *
pln_source_changes(Oid relid, const PlnFrontier *frontier, const PlnStreamOptions *options)
{
	return pln_source_changes_of(relid, frontier, NULL, options);
}

PlnChanges *
pln_source_changes_of(Oid relid, const PlnFrontier *frontier, Bitmapset *attnums,
					  const PlnStreamOptions *options)
{
	PlnChanges *changes = palloc0(sizeof(PlnChanges));
	Delta	   *delta = palloc0(sizeof(Delta));
	PlnReading		r;
	List	   *pending;
	ListCell   *lc;

	PLN_ENSURE(ActiveSnapshotSet());
	memset(&r, 0, sizeof(r));
	changes->relid = relid;
	changes->provider = delta;
	check_not_in_use(relid);
	changes->frontier = pln_source_frontier_now(relid);
	r.source = delta->source = pln_source_find(relid);
	r.frontier = frontier;
	r.options = options;
	r.attnums = bms_is_member(0, attnums) ? NULL : attnums;
	r.changes = changes;
	if (r.source == NULL || !r.source->active)
	{
		pln_changes_everything(changes, "CHANGE_SET_MISSING",
							   pstrdup("its changes are not captured"));
		return changes;
	}
	if (frontier == NULL)
	{
		if (options == NULL || !options->starting_latest)
			pln_changes_everything(changes, "CHANGE_SET_MISSING",
								   pstrdup("it was not read before"));
		return changes;
	}
	pending = pln_headers_pending(r.source->id, frontier);
	if (!check_frontier(&r, changes, pending))
		return changes;

	foreach(lc, pending)
		add_header(&r, lfirst(lc));
	if (r.xacts == NIL)
		return changes;
	foreach(lc, r.xacts)
	{
		PlnXact    *xact = lfirst(lc);
		ListCell   *lh;

		foreach(lh, xact->headers)
		{
			if (!classify_header(&r, xact, lfirst(lh)))
				return changes;
		}
	}
	r.logs = pln_source_logs(r.source);
	evaluate(&r);
	delta->parts = r.parts;
	return changes;
}

/* ---- the query ---- */

/* Logs have no grants: their rows are read as the extension's owner. */
static bool
set_check_as_user(Node *node, Oid *owner)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, set_check_as_user, owner,
								 QTW_EXAMINE_RTES_BEFORE);
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		if (rte->rtekind == RTE_RELATION)
			rte->checkAsUser = *owner;
		return false;
	}
	return expression_tree_walker(node, set_check_as_user, owner);
}

static void
append_empty(StringInfo sql, Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	int			i;

	appendStringInfoString(sql, "SELECT ");
	for (i = 0; i < RelationGetDescr(rel)->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		appendStringInfo(sql, "%sNULL::%s", i > 0 ? ", " : "",
						 att->attisdropped ? "pg_catalog.int4" :
						 format_type_extended(att->atttypid, att->atttypmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN |
											  FORMAT_TYPE_FORCE_QUALIFY));
	}
	appendStringInfoString(sql, " WHERE false");
	table_close(rel, NoLock);
}

Query *
pln_source_delta_query(PlnChanges *changes)
{
	Delta	   *delta = changes->provider;
	Oid			owner = pln_extension_owner();
	PlnSecContext ctx;
	StringInfoData sql;
	List	   *raw;
	Query	   *query;
	ListCell   *lc;

	PLN_ENSURE(changes->kind != PLN_CHANGE_EVERYTHING && changes->offence == NULL);
	initStringInfo(&sql);
	foreach(lc, delta->parts)
	{
		PlnPart    *part = lfirst(lc);

		if (part->generation == 0)
			pln_append_log_sql(&sql, changes->relid, part);
		else
			pln_change_log_sql(&sql, changes->relid, part,
							   pln_source_log(delta->source, part->generation));
	}
	if (sql.len == 0)
		append_empty(&sql, changes->relid);

	pln_enter_metadata(&ctx);
	raw = raw_parser(sql.data, RAW_PARSE_DEFAULT);
	PLN_ENSURE(list_length(raw) == 1);
	query = parse_analyze_fixedparams(linitial_node(RawStmt, raw), sql.data, NULL, 0, NULL);
	pln_leave(&ctx);
	(void) set_check_as_user((Node *) query, &owner);
	return query;
}

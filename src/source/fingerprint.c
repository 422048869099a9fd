/*
 * fingerprint.c
 *	  The capture fingerprint: did something happen to R that fires no trigger?
 *
 * Text "1 g=.. i=.. s=.. f=.. p=.. a=n-..,... c=n:type:typmod:collation,..." (A6):
 *
 *	g	our triggers on R and all that inherit (oid, row version, enabled state)
 *	i	inheritance and partitions (rows of pg_inherits, with row version)
 *	s	membership in subscriptions: apply fires no statement triggers
 *	f	relfilenodes
 *	p	row security: it decides what a reader of R sees
 *	a	row version of each captured column in pg_attribute
 *	c	the captured columns
 *
 * A different g, i or s means that changes may have been missed.  A different f alone is a
 * rewrite that keeps the content (VACUUM FULL, CLUSTER, SET TABLESPACE): a rewrite that
 * changes it (ALTER COLUMN TYPE ... USING) also writes the column's pg_attribute row, and
 * TRUNCATE has its own trigger.  Columns may be added to c: a wider capture misses nothing.
 * Without triggers (a materialized view) any new relfilenode is new content.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_policy.h"
#include "catalog/pg_subscription_rel.h"
#include "catalog/pg_trigger.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/errors.h"
#include "source/internal.h"

/* One of the catalogs' row versions: survives freezing, not a new version of the row. */
#define ROW_VERSION(tuple) HeapTupleHeaderGetRawXmin((tuple)->t_data)

/*
 * Catalogs are read as they are now, a transaction of REPEATABLE READ reads rows as they were: a
 * fingerprint that is newer than the rows would hide what happened in between (correctness A5).
 */
static void
check_version(HeapTuple tuple)
{
	TransactionId xmin = ROW_VERSION(tuple);

	if (!IsolationUsesXactSnapshot() || HeapTupleHeaderXminFrozen(tuple->t_data) ||
		TransactionIdIsCurrentTransactionId(xmin) ||
		!XidInMVCCSnapshot(xmin, GetTransactionSnapshot()))
		return;
	ereport(ERROR,
			(errcode(PLN_ERR_RETRY),
			 errmsg("a source was altered or truncated after this transaction began"),
			 errhint("Run the transaction again.")));
}

void
pln_source_check_version(Oid relid, bool inherit)
{
	List	   *relids = inherit ? find_all_inheritors(relid, AccessShareLock, NULL) :
		list_make1_oid(relid);
	ListCell   *lc;

	foreach(lc, relids)
	{
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(lfirst_oid(lc)));

		if (!HeapTupleIsValid(tuple))
			continue;
		check_version(tuple);
		ReleaseSysCache(tuple);
	}
	list_free(relids);
}

static void
add_hash(uint64 *hash, uint64 value)
{
	*hash = hash_combine64(*hash, hash_bytes_extended((const unsigned char *) &value,
													  sizeof(value), 0) |
						   UINT64CONST(1));
}

static bool
is_our_trigger(const char *name)
{
	return strcmp(name, PLN_TRIGGER_INSERT) == 0 || strcmp(name, PLN_TRIGGER_UPDATE) == 0 ||
		strcmp(name, PLN_TRIGGER_DELETE) == 0 || strcmp(name, PLN_TRIGGER_TRUNCATE) == 0;
}

static void
hash_triggers(uint64 *hash, Oid relid)
{
	Relation	rel = table_open(TriggerRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);

		if (!is_our_trigger(NameStr(form->tgname)))
			continue;
		check_version(tuple);
		add_hash(hash, form->oid);
		add_hash(hash, ROW_VERSION(tuple));
		add_hash(hash, form->tgenabled);
		add_hash(hash, form->tgfoid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

static void
hash_inherits(uint64 *hash, Oid relid)
{
	Relation	rel = table_open(InheritsRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, InheritsRelidSeqnoIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_inherits form = (Form_pg_inherits) GETSTRUCT(tuple);

		check_version(tuple);
		add_hash(hash, form->inhrelid);
		add_hash(hash, form->inhparent);
		add_hash(hash, ROW_VERSION(tuple));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

static void
hash_subscriptions(uint64 *hash, Oid relid)
{
	Relation	rel = table_open(SubscriptionRelRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_subscription_rel_srrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, SubscriptionRelSrrelidSrsubidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		add_hash(hash, relid);
		add_hash(hash, ((Form_pg_subscription_rel) GETSTRUCT(tuple))->srsubid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

static void
hash_relfilenode(uint64 *hash, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

	if (!HeapTupleIsValid(tuple))
		return;
	check_version(tuple);
	add_hash(hash, relid);
	add_hash(hash, ((Form_pg_class) GETSTRUCT(tuple))->relfilenode);
	ReleaseSysCache(tuple);
}

static void
hash_attribute(uint64 *hash, Oid relid, const char *name)
{
	HeapTuple	tuple = SearchSysCacheAttName(relid, name);

	if (!HeapTupleIsValid(tuple))
		return;
	check_version(tuple);
	add_hash(hash, ROW_VERSION(tuple));
	ReleaseSysCache(tuple);
}

/* Row security of the relation: switched on or off, policies made, altered or dropped. */
static void
hash_policies(uint64 *hash, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;

	if (!HeapTupleIsValid(tuple))
		return;
	add_hash(hash, ((Form_pg_class) GETSTRUCT(tuple))->relrowsecurity);
	add_hash(hash, ((Form_pg_class) GETSTRUCT(tuple))->relforcerowsecurity);
	ReleaseSysCache(tuple);
	rel = table_open(PolicyRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_policy_polrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, PolicyPolrelidPolnameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		add_hash(hash, ((Form_pg_policy) GETSTRUCT(tuple))->oid);
		add_hash(hash, ROW_VERSION(tuple));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/* Columns of the current log generation: texts 'c' and, over all relations, 'a'. */
static void
describe_columns(StringInfo text, StringInfo versions, const PlnSource *source, List *relids)
{
	PlnLog	   *log = pln_source_log(source, source->generation);
	ListCell   *lc;
	uint64		hash;
	int			i;

	for (i = 0; log != NULL && i < log->ncols; i++)
	{
		AttrNumber	attnum = log->attnums[i];
		HeapTuple	tuple = SearchSysCacheAttNum(source->relid, attnum);
		Form_pg_attribute form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_attribute) GETSTRUCT(tuple);
		appendStringInfo(text, "%d:%u:%d:%u,", attnum, form->atttypid, form->atttypmod,
						 form->attcollation);
		hash = 0;
		foreach(lc, relids)
			hash_attribute(&hash, lfirst_oid(lc), NameStr(form->attname));
		appendStringInfo(versions, "%d-%llx,", attnum, (unsigned long long) hash);
		ReleaseSysCache(tuple);
	}
}

char *
pln_fingerprint_make(const PlnSource *source, Oid without)
{
	List	   *relids = list_delete_oid(pln_source_relations(source->relid), without);
	uint64		triggers = 0;
	uint64		inherits = 0;
	uint64		subscriptions = 0;
	uint64		files = 0;
	uint64		policies = 0;
	StringInfoData attributes;
	StringInfoData columns;
	ListCell   *lc;

	initStringInfo(&attributes);
	initStringInfo(&columns);
	foreach(lc, relids)
	{
		Oid			relid = lfirst_oid(lc);

		hash_triggers(&triggers, relid);
		hash_inherits(&inherits, relid);
		hash_subscriptions(&subscriptions, relid);
		hash_relfilenode(&files, relid);
		hash_policies(&policies, relid);
	}
	describe_columns(&columns, &attributes, source, relids);
	return psprintf("1 g=%016llx i=%016llx s=%016llx f=%016llx p=%016llx a=%s c=%s",
					(unsigned long long) triggers, (unsigned long long) inherits,
					(unsigned long long) subscriptions, (unsigned long long) files,
					(unsigned long long) policies, attributes.data, columns.data);
}

static PlnReason *
reason(const char *code, const char *text)
{
	PlnReason  *r = palloc0(sizeof(PlnReason));

	r->code = code;
	r->text = pstrdup(text);
	return r;
}

/* The part after " x=", up to a blank. */
static char *
part(const char *fingerprint, char letter)
{
	char		mark[4] = {' ', letter, '=', '\0'};
	const char *at = strstr(fingerprint, mark);

	if (at == NULL)
		return pstrdup("");
	at += 3;
	return pnstrdup(at, strcspn(at, " "));
}

static bool
same(const char *before, const char *now, char letter)
{
	return strcmp(part(before, letter), part(now, letter)) == 0;
}

/* Every entry of the list before is there now: more columns may have come. */
static bool
entries_kept(const char *before, const char *now, char letter)
{
	char	   *had = part(before, letter);
	char	   *have = psprintf(",%s", part(now, letter));
	char	   *item;
	char	   *save = NULL;

	for (item = strtok_r(had, ",", &save); item != NULL; item = strtok_r(NULL, ",", &save))
	{
		if (strstr(have, psprintf(",%s,", item)) == NULL)
			return false;
	}
	return true;
}

/* The fingerprint with one part exchanged. */
static char *
with_part(const char *fingerprint, char letter, const char *value)
{
	char		mark[4] = {' ', letter, '=', '\0'};
	const char *at = strstr(fingerprint, mark);

	PLN_ENSURE(at != NULL);
	at += 3;
	return psprintf("%s%s%s", pnstrdup(fingerprint, at - fingerprint), value,
					at + strcspn(at, " "));
}

/* Note of a SPARE header: what the fingerprint was, and what it became without a loss. */
char *
pln_fingerprint_spare(const char *before, const char *after)
{
	return psprintf("%s|%s", before, after);
}

/* Part by part: a part that changed for another reason too stays different. */
static const char *
apply_spare(const char *fingerprint, const char *spare)
{
	static const char letters[] = "gisfa";
	const char *bar = strchr(spare, '|');
	char	   *before;
	int			i;

	if (bar == NULL)
		return fingerprint;
	before = pnstrdup(spare, bar - spare);
	for (i = 0; letters[i] != '\0'; i++)
	{
		if (same(fingerprint, before, letters[i]))
			fingerprint = with_part(fingerprint, letters[i], part(bar + 1, letters[i]));
	}
	return fingerprint;
}

PlnReason *
pln_fingerprint_compare(const char *before, const char *now, List *spares)
{
	bool		has_log;
	ListCell   *lc;

	if (strcmp(before, now) == 0)
		return NULL;
	if (strncmp(before, "1 ", 2) != 0)
		return reason("CONFIGURATION_CHANGED", "its capture was recorded by another version");
	foreach(lc, spares)
		before = apply_spare(before, lfirst(lc));
	/* first, because new partitions bring new triggers */
	if (!same(before, now, 'i'))
		return reason("PARTITION_SCHEMA_CHANGED",
					  "partitions or child tables were added or removed");
	if (!same(before, now, 'g'))
		return reason("CHANGE_SET_MISSING",
					  "its capture triggers were disabled, altered or made anew");
	if (!same(before, now, 's'))
		return reason("CHANGE_SET_MISSING", "its membership in a subscription changed");
	if (!entries_kept(before, now, 'c'))
		return reason("DATA_SCHEMA_CHANGED", "a column that is read changed its type or is gone");
	has_log = part(before, 'c')[0] != '\0';
	if (!same(before, now, 'f') && (!has_log || !entries_kept(before, now, 'a')))
		return reason("DATA_HAS_CHANGED", "it was rewritten or its content was replaced");
	return NULL;
}

/* For readers that show R's rows as they are now: who may see which is part of the answer. */
bool
pln_fingerprint_policies_differ(const char *before, const char *now)
{
	return before != NULL && now != NULL && !same(before, now, 'p');
}

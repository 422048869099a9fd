/*
 * lock.c
 *	  The lock order: pipeline, datasets in topological order, sources (house-style §9).
 *
 * Locks are heavyweight object locks: the class is our catalog table, the object its id.
 * They conflict with nothing else, so autovacuum and readers never notice them.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

#include "base/errors.h"
#include "base/lock.h"

static Oid
catalog_class(const char *table)
{
	Oid			relid = get_relname_relid(table, get_namespace_oid("pipeline_internal", false));

	PLN_ENSURE(OidIsValid(relid));
	return relid;
}

/* Class of the last pipeline lock, for releasing it without catalog access. */
static Oid	pipelines_class = InvalidOid;

static LOCKTAG
lock_tag(const char *table, int64 id)
{
	LOCKTAG		tag;
	Oid			class_id = catalog_class(table);

	if (strcmp(table, "pipelines") == 0)
		pipelines_class = class_id;
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, class_id, (uint32) id, 0);
	return tag;
}

void
pln_lock_dataset(int64 dataset_id)
{
	LOCKTAG		tag = lock_tag("datasets", dataset_id);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	/* what we looked up before we waited may be stale */
	AcceptInvalidationMessages();
}

bool
pln_try_lock_dataset(int64 dataset_id)
{
	LOCKTAG		tag = lock_tag("datasets", dataset_id);

	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

bool
pln_lock_pipeline(int64 pipeline_id, bool session, bool wait)
{
	LOCKTAG		tag = lock_tag("pipelines", pipeline_id);

	return LockAcquire(&tag, ExclusiveLock, session, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

/* Also called while an error passes, where the catalog cannot be asked for the class. */
void
pln_unlock_pipeline(int64 pipeline_id)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, pipelines_class, (uint32) pipeline_id, 0);
	LockRelease(&tag, ExclusiveLock, true);
}

bool
pln_pipeline_is_locked(int64 pipeline_id)
{
	LOCKTAG		tag = lock_tag("pipelines", pipeline_id);

	if (LockHeldByMe(&tag, ExclusiveLock))
		return true;
	if (LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, ExclusiveLock, false);
	return false;
}

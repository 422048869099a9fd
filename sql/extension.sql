-- What CREATE EXTENSION makes: each query lists violations of a rule, so all are empty.
CREATE EXTENSION pipeline;
\pset tuples_only on

-- every object has a comment
SELECT pg_describe_object(d.classid, d.objid, 0)
FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'pipeline'
	AND c.relkind IS DISTINCT FROM 'S' AND d.classid <> 'pg_type'::regclass
	AND coalesce(obj_description(d.objid, d.classid::regclass::name), '') = ''
ORDER BY 1;

-- no function is SECURITY DEFINER
SELECT p.oid::regprocedure FROM pg_proc p
WHERE p.pronamespace IN ('pipeline'::regnamespace, 'pipeline_internal'::regnamespace)
	AND p.prosecdef ORDER BY 1;

-- nothing private is granted to PUBLIC
SELECT n.nspname FROM pg_namespace n, aclexplode(n.nspacl) a
WHERE n.nspname = 'pipeline_internal' AND a.grantee = 0;
SELECT c.oid::regclass FROM pg_class c, aclexplode(c.relacl) a
WHERE c.relnamespace IN ('pipeline_internal'::regnamespace, 'pipeline_data'::regnamespace)
	AND a.grantee = 0;
SELECT p.oid::regprocedure
FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
WHERE p.pronamespace = 'pipeline_internal'::regnamespace AND a.grantee = 0 ORDER BY 1;

-- every private table has a primary key and is dumped, sequences too
SELECT c.oid::regclass FROM pg_class c
WHERE c.relnamespace = 'pipeline_internal'::regnamespace AND c.relkind = 'r'
	AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) ORDER BY 1;
SELECT c.oid::regclass FROM pg_class c, pg_extension e
WHERE e.extname = 'pipeline' AND c.relnamespace = 'pipeline_internal'::regnamespace
	AND c.relkind IN ('r', 'S') AND c.oid <> ALL (e.extconfig) ORDER BY 1;

-- no column type that stops pg_upgrade or ALTER TABLE of others
SELECT a.attrelid::regclass, a.attname, t.typname
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relnamespace = 'pipeline_internal'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
	AND (t.typtype = 'c' OR (t.typname LIKE 'reg%' AND t.typname NOT IN ('regclass', 'regrole')))
ORDER BY 1, 2;

-- views hide rows safely, and those for users can be read by everybody
SELECT c.oid::regclass FROM pg_class c
WHERE c.relnamespace IN ('pipeline'::regnamespace, 'pipeline_internal'::regnamespace)
	AND c.relkind = 'v' AND NOT coalesce('security_barrier=true' = ANY (c.reloptions), false) ORDER BY 1;
SELECT c.oid::regclass FROM pg_class c
WHERE c.relnamespace = 'pipeline'::regnamespace AND c.relkind = 'v'
	AND NOT EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.grantee = 0 AND a.privilege_type = 'SELECT')
ORDER BY 1;
-- ... but not be written
SELECT c.oid::regclass, a.privilege_type FROM pg_class c, aclexplode(c.relacl) a
WHERE c.relnamespace = 'pipeline'::regnamespace AND a.grantee = 0 AND a.privilege_type <> 'SELECT';

\pset tuples_only off
SELECT lanname, lanpltrusted FROM pg_language WHERE lanname = 'pipeline';
SELECT evtname, evtevent, evtenabled, proconfig
FROM pg_event_trigger t JOIN pg_proc p ON p.oid = t.evtfoid WHERE evtname LIKE 'pipeline%' ORDER BY 1;

-- somebody without any right sees nothing and breaks nothing
CREATE ROLE regress_pln_nobody;
SET ROLE regress_pln_nobody;
SELECT (SELECT count(*) FROM pipeline.pipelines), (SELECT count(*) FROM pipeline.datasets),
	(SELECT count(*) FROM pipeline.flows), (SELECT count(*) FROM pipeline.expectations),
	(SELECT count(*) FROM pipeline.updates), (SELECT count(*) FROM pipeline.progress),
	(SELECT count(*) FROM pipeline.problems), (SELECT count(*) FROM pipeline.quality),
	(SELECT count(*) FROM pipeline.lineage);
SELECT "check", ok FROM pipeline.check_setup() WHERE "check" ~ 'versions|event triggers';
SELECT * FROM pipeline.dependents('pg_class');
SELECT * FROM pipeline_internal.events;
SELECT pipeline_internal.validator(0);
RESET ROLE;
SELECT * FROM pipeline.event_log('no_such_pipeline');
SELECT * FROM pipeline.event_log(NULL);
SELECT * FROM pipeline.event_log('not a name');
SELECT * FROM pipeline.event_log('elsewhere.s.t');
SELECT * FROM pipeline.describe('pg_class');
SELECT * FROM pipeline.describe(NULL);
SELECT pipeline.graph('no_such_pipeline');
SELECT pipeline.graph('x', NULL);
DROP ROLE regress_pln_nobody;

-- gone and back
DROP EXTENSION pipeline;
SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pipeline%';
CREATE EXTENSION pipeline;
DROP EXTENSION pipeline;

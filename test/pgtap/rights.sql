-- What a role without rights may do, what EXECUTE and SELECT open, and what stays closed.
BEGIN;
SELECT plan(42);
CREATE ROLE regress_pln_owner;
CREATE ROLE regress_pln_nobody;
CREATE ROLE regress_pln_reader;
CREATE ROLE regress_pln_runner;
CREATE ROLE regress_pln_stats IN ROLE pg_read_all_stats;
-- what new tables are granted by default must not reach rejected and private rows
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO regress_pln_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE regress_pln_owner GRANT SELECT ON TABLES TO regress_pln_reader;

-- ---- nothing of the private schemas is PUBLIC's
SELECT schema_privs_are('pipeline', 'public', ARRAY['USAGE']);
SELECT schema_privs_are('pipeline_internal', 'public', ARRAY[]::text[]);
SELECT schema_privs_are('pipeline_data', 'public', ARRAY['USAGE']);
SELECT is_empty(
	$$SELECT c.oid::regclass, a.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
		aclexplode(c.relacl) a
	WHERE n.nspname IN ('pipeline_internal', 'pipeline_data') AND a.grantee <> c.relowner$$,
	'no relation of pipeline_internal or pipeline_data is granted to anybody');
SELECT is_empty(
	$$SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE n.nspname IN ('pipeline_internal', 'pipeline_data')
		AND has_function_privilege('public', p.oid, 'EXECUTE')$$, 'nor is a function');

-- ---- a pipeline
GRANT CREATE ON SCHEMA public TO regress_pln_owner;
SET ROLE regress_pln_owner;
SET pipeline.messages = quiet;
CREATE TABLE src (id int, secret text);
INSERT INTO src VALUES (1, 'alpha'), (NULL, 'beta');
CREATE PROCEDURE p(floor text DEFAULT '0') LANGUAGE pipeline AS $$
	CREATE STREAMING TABLE good (
		CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION QUARANTINE ROW
	) AS SELECT id, secret FROM STREAM(src) WHERE coalesce(id, 0) >= ${floor};
	CREATE PRIVATE STREAMING TABLE hidden AS SELECT secret FROM STREAM(src);
	CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM hidden;
$$;
CALL p();
RESET ROLE;
SELECT results_eq('SELECT n FROM total', ARRAY[2::bigint], 'it ran');
SELECT function_owner_is('p', ARRAY['text'], 'regress_pln_owner', 'its owner');
SELECT is_empty(
	$$SELECT c.oid::regclass, c.relowner::regrole FROM pipeline.datasets d JOIN pg_class c ON c.oid = d.relation
	WHERE c.relowner <> 'regress_pln_owner'::regrole$$, 'what it made belongs to its owner');
SELECT is(has_function_privilege('public', 'p(text)', 'EXECUTE'), false, 'EXECUTE is not given to PUBLIC');
SELECT table_privs_are('good_quarantine', 'regress_pln_reader', ARRAY[]::text[]);
SELECT is_empty(
	$$SELECT c.oid::regclass, a.grantee::regrole FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
		aclexplode(c.relacl) a
	WHERE n.nspname = 'pipeline_data' AND a.grantee <> c.relowner$$,
	'private tables, flow views and logs are granted to nobody');
SELECT is_empty(
	$$SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = 'pipeline_data' AND c.relname LIKE 'log\_%'
		AND c.relowner <> (SELECT extowner FROM pg_extension WHERE extname = 'pipeline')$$,
	'logs belong to the extension''s owner');

-- ---- nobody
SET ROLE regress_pln_nobody;
SELECT throws_ok('CALL p()', '42501', NULL, 'nobody may not run it');
SELECT throws_ok($$CALL pipeline.run_update('p')$$, '42501', NULL, 'nor by run_update');
SELECT throws_ok($$CALL pipeline.refresh('good')$$, '42501', NULL, 'nor refresh a dataset');
SELECT throws_ok($$SELECT pipeline.plan('p')$$, '42501', NULL, 'nor see what would change');
SELECT throws_ok($$SELECT pipeline.expect('good', 'x', 'id > 0')$$, '42501', NULL, 'nor add a rule');
SELECT throws_ok($$SELECT pipeline.drop_expectation('good', 'has_id')$$, '42501', NULL, 'nor drop one');
SELECT throws_ok($$SELECT pipeline.try_expectation('good', 'id > 0')$$, '42501', NULL, 'nor probe rows by a condition');
SELECT throws_ok($$SELECT pipeline.replay_quarantine('good')$$, '42501', NULL, 'nor replay');
SELECT throws_ok($$SELECT pipeline.event_log('p')$$, '42501', NULL, 'nor see its log');
SELECT throws_ok($$SELECT pipeline.describe('good')$$, '42501', NULL, 'nor its description');
SELECT throws_ok($$SELECT pipeline.graph('p')$$, '42501', NULL, 'nor its graph');
SELECT throws_ok($$SELECT pipeline.allow_capture('src', 'regress_pln_nobody')$$, '42501', NULL, 'nor allow capture');
SELECT throws_ok($$SELECT pipeline.disable_capture('src')$$, '42501', NULL, 'nor end it');
SELECT throws_ok($$SELECT pipeline.infer_schema('/etc/passwd', 'text')$$, '42501', NULL, 'nor look into files');
SELECT throws_ok($$SELECT * FROM pipeline.read_files('/etc/passwd', '{"format": "text"}') AS f (value text)$$,
	'42501', NULL, 'nor read them');
SELECT throws_ok('SELECT * FROM pipeline_internal.datasets', '42501', NULL, 'nor the catalog');
SELECT throws_ok('SELECT secret FROM pipeline_data."public.hidden"', '42501', NULL, 'nor a private table');
SELECT is_empty($$SELECT pipeline FROM pipeline.pipelines UNION ALL SELECT dataset FROM pipeline.datasets
	UNION ALL SELECT dataset FROM pipeline.flows UNION ALL SELECT dataset FROM pipeline.expectations
	UNION ALL SELECT pipeline FROM pipeline.updates UNION ALL SELECT dataset FROM pipeline.quality
	UNION ALL SELECT downstream FROM pipeline.lineage UNION ALL SELECT object FROM pipeline.problems
	UNION ALL SELECT source::text FROM pipeline.change_logs UNION ALL SELECT pipeline FROM pipeline.progress$$,
	'the views are empty for nobody');
RESET ROLE;

-- ---- SELECT on a dataset
GRANT SELECT ON good TO regress_pln_reader;
REVOKE SELECT ON total FROM regress_pln_reader;
SET ROLE regress_pln_reader;
SELECT results_eq('SELECT dataset, state, query, definition FROM pipeline.datasets',
	$$VALUES ('public.good', 'ACTIVE', NULL::text, NULL::text)$$, 'a reader sees the state, no SQL');
SELECT results_eq('SELECT expectation, condition, passed FROM pipeline.expectations JOIN pipeline.quality USING (dataset, expectation)',
	$$VALUES ('has_id', NULL::text, 1::bigint)$$, 'and counts, no condition');
SELECT bag_eq($$SELECT DISTINCT event_type FROM pipeline.event_log('good')$$, ARRAY['flow_progress'],
	'and the progress of its flow');
SELECT throws_ok('SELECT * FROM good_quarantine', '42501', NULL, 'but no rejected rows');
SELECT throws_ok('CALL p()', '42501', NULL, 'and may not run anything');
RESET ROLE;

-- ---- EXECUTE on the pipeline
GRANT EXECUTE ON PROCEDURE p TO regress_pln_runner;
SET ROLE regress_pln_runner;
SET pipeline.messages = quiet;
SELECT lives_ok('CALL p()', 'who has EXECUTE may run it, without rights on its tables');
SELECT throws_ok($$CALL p('1; DROP TABLE src')$$, '42501', NULL, 'with the defaults only');
SELECT throws_ok($$CALL pipeline.run_update('p', full_refresh => true)$$, '42501', NULL, 'and not anew');
SELECT results_eq('SELECT DISTINCT pipeline, state, message FROM pipeline.updates',
	$$VALUES ('public.p', 'COMPLETED', NULL::text)$$, 'and sees its updates');
SELECT throws_ok('SELECT * FROM total', '42501', NULL, 'but no rows');
RESET ROLE;

-- ---- pg_read_all_stats
SET ROLE regress_pln_stats;
SELECT bag_eq('SELECT dataset FROM pipeline.datasets WHERE query IS NULL AND definition IS NULL AND properties IS NULL',
	ARRAY['public.good', 'public.hidden', 'public.total'], 'monitoring sees every dataset, no SQL');
SELECT is((SELECT count(*) > 0 FROM pipeline.event_log('p') WHERE event_type = 'flow_progress'), true, 'and events');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;

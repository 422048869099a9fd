-- The public surface as a role without any right sees it: names, arguments, results, volatility,
-- strictness, views with their columns, comments.  Callers use name => value, so names are
-- part of it.
BEGIN;
SELECT plan(15);
CREATE ROLE regress_pln_nobody;
SET LOCAL ROLE regress_pln_nobody;

-- ---- functions and procedures
CREATE TEMP TABLE expected_functions (name, arguments, result, volatility, strict) AS VALUES
	('allow_capture', 'source regclass, role name', 'void', 'v', true),
	('check_row', 'view text, rules text[], actions text[], VARIADIC results boolean[]', 'boolean', 'v', true),
	('check_setup', 'OUT "check" text, OUT ok boolean, OUT what_to_type text', 'SETOF record', 'v', false),
	('dependents', 'source regclass, OUT dataset text, OUT kind text, OUT pipeline text, OUT depth integer, OUT state text', 'SETOF record', 's', true),
	('describe', 'dataset regclass, OUT item text, OUT value text', 'SETOF record', 'v', false),
	('disable_capture', 'source regclass', 'void', 'v', true),
	('disallow_capture', 'source regclass, role name', 'void', 'v', true),
	('drop_expectation', 'dataset regclass, name text', 'void', 'v', false),
	('event_log', 'pipeline_or_dataset text, OUT id text, OUT sequence jsonb, OUT origin jsonb, OUT "timestamp" timestamp with time zone, OUT message text, OUT level text, OUT maturity_level text, OUT error jsonb, OUT details jsonb, OUT event_type text', 'SETOF record', 'v', false),
	('expect', 'dataset regclass, name text, condition text, on_violation text DEFAULT ''warn''::text', 'void', 'v', false),
	('expect_all', 'dataset regclass, rules jsonb', 'void', 'v', false),
	('expect_all_or_drop', 'dataset regclass, rules jsonb', 'void', 'v', false),
	('expect_all_or_fail', 'dataset regclass, rules jsonb', 'void', 'v', false),
	('expect_or_drop', 'dataset regclass, name text, condition text', 'void', 'v', false),
	('expect_or_fail', 'dataset regclass, name text, condition text', 'void', 'v', false),
	('graph', 'pipeline text, format text DEFAULT ''text''::text', 'text', 'v', false),
	('infer_schema', 'path text, format text DEFAULT NULL::text, options jsonb DEFAULT ''{}''::jsonb, OUT column_name text, OUT data_type text', 'SETOF record', 'v', false),
	('plan', 'pipeline text, OUT dataset text, OUT change text, OUT effect text', 'SETOF record', 'v', true),
	('read_file_batch', 'batch integer', 'SETOF record', 'v', true),
	('read_files', 'path text, options jsonb DEFAULT ''{}''::jsonb', 'SETOF record', 'v', true),
	('refresh', 'IN dataset regclass, IN full_refresh boolean DEFAULT false', 'procedure', 'v', false),
	('replay_quarantine', 'dataset regclass, condition text DEFAULT ''true''::text, OUT replayed bigint, OUT still_failing bigint', 'record', 'v', false),
	('run_update', 'IN pipeline text, IN datasets text[] DEFAULT ''{}''::text[], IN full_refresh boolean DEFAULT false, IN parameters jsonb DEFAULT ''{}''::jsonb, IN failed_only boolean DEFAULT false, IN validate_only boolean DEFAULT false, IN atomic boolean DEFAULT false, IN cascade boolean DEFAULT false, IN allow_loss boolean DEFAULT false, INOUT update_id uuid DEFAULT NULL::uuid, INOUT state text DEFAULT NULL::text', 'procedure', 'v', false),
	('stream', 'internal', 'tsm_handler', 'v', true),
	('to_timestamp', 'value double precision', 'timestamp with time zone', 'i', true),
	('to_timestamp', 'value text', 'timestamp with time zone', 's', true),
	('try_cast', 'value "any", as_type anyelement', 'anyelement', 's', false),
	('try_cast', 'value text, as_type anyelement', 'anyelement', 's', false),
	('try_expectation', 'dataset regclass, condition text, OUT passed bigint, OUT failed bigint, OUT sample jsonb', 'record', 'v', false);

SELECT results_eq(
	$$SELECT p.proname::text COLLATE "C", pg_get_function_arguments(p.oid),
		coalesce(pg_get_function_result(p.oid), 'procedure'), p.provolatile::text, p.proisstrict
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE n.nspname = 'pipeline' ORDER BY 1, 2$$,
	$$SELECT name COLLATE "C", arguments, result, volatility, strict
	FROM expected_functions ORDER BY 1, 2$$,
	'functions and procedures of schema pipeline');
SELECT is_empty(
	$$SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE n.nspname = 'pipeline' AND (p.prosecdef OR p.proconfig IS NOT NULL OR p.proleakproof)$$,
	'none is SECURITY DEFINER, has settings or claims to be leakproof');
SELECT is_empty(
	$$SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE n.nspname = 'pipeline'
		AND NOT has_function_privilege('regress_pln_nobody', p.oid, 'EXECUTE')$$,
	'all of them may be called by anybody');
SELECT is_empty(
	$$SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace,
		unnest(p.proargnames) WITH ORDINALITY a (name, i)
	WHERE n.nspname = 'pipeline' AND a.name !~ '^[a-z][a-z_]*$'
	UNION
	SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE n.nspname = 'pipeline' AND p.pronargs > 0 AND p.proargnames IS NULL
		AND p.prorettype <> 'tsm_handler'::regtype$$,
	'every argument has a name in snake case');

-- ---- views
CREATE TEMP TABLE expected_views (name, columns) AS VALUES
	('change_logs',
		'source regclass, kind text, level text, rows_pending bigint, bytes bigint, '
		|| 'readers bigint'),
	('datasets',
		'dataset text, kind text, relation regclass, pipeline text, owner regrole, '
		|| 'state text, state_reason text, state_since timestamp with time zone, refresh_policy text, '
		|| 'last_update_state text, last_refresh_type text, last_refreshed_at timestamp with time zone, '
		|| 'last_rows bigint, last_update_id uuid, quarantine regclass, comment text, '
		|| 'properties jsonb, query text, definition text'),
	('expectations',
		'dataset text, expectation text, action text, fail_above text, origin text, '
		|| 'pipeline text, condition text'),
	('flows',
		'flow text, dataset text, pipeline text, flow_id uuid, kind text, once boolean, '
		|| 'once_done boolean, batch_id bigint, inputs text[], query text'),
	('lineage',
		'upstream text, downstream text, via text, mode text, upstream_relation regclass, '
		|| 'downstream_relation regclass, pipeline text'),
	('pipelines',
		'pipeline text, pipeline_id uuid, owner regrole, kind text, datasets bigint, '
		|| 'state text, last_update_id uuid, last_update_state text, last_started_at timestamp with time zone, '
		|| 'last_ended_at timestamp with time zone, source text'),
	('problems',
		'object text, since timestamp with time zone, sqlstate text, message text, '
		|| 'what_to_type text'),
	('progress',
		'pipeline text, update_id uuid, state text, started_at timestamp with time zone, '
		|| 'elapsed interval, completed bigint, failed bigint, skipped bigint, remaining bigint, '
		|| 'latest text, latest_at timestamp with time zone'),
	('quality',
		'ended_at timestamp with time zone, update_id uuid, dataset text, expectation text, '
		|| 'action text, passed bigint, failed bigint, dropped bigint, pass_rate numeric'),
	('updates',
		'update_id uuid, pipeline text, state text, cause text, run_as text, started_at timestamp with time zone, '
		|| 'ended_at timestamp with time zone, duration interval, noop_runs integer, '
		|| 'last_at timestamp with time zone, full_refresh boolean, validate_only boolean, '
		|| 'selection text[], message text');

SELECT results_eq(
	$$SELECT c.relname::text COLLATE "C", (SELECT string_agg(a.attname::text || ' '
			|| format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
		FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = 'pipeline' ORDER BY 1$$,
	'SELECT name COLLATE "C", columns COLLATE "C" FROM expected_views ORDER BY 1',
	'relations of schema pipeline and their columns');
SELECT is_empty(
	$$SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = 'pipeline' AND c.relkind <> 'v'$$, 'all of them are views');
SELECT is_empty(
	$$SELECT v.name FROM expected_views v
	WHERE NOT has_table_privilege('regress_pln_nobody', 'pipeline.' || v.name, 'SELECT')
		OR has_table_privilege('regress_pln_nobody', 'pipeline.' || v.name, 'INSERT, UPDATE, DELETE, TRUNCATE')$$,
	'anybody may read them, nobody may write');

-- ---- the rest of the extension
SELECT bag_eq(
	$$SELECT n.nspname::text FROM pg_depend d JOIN pg_namespace n ON n.oid = d.objid
	WHERE d.classid = 'pg_namespace'::regclass AND d.refclassid = 'pg_extension'::regclass
		AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pipeline')$$,
	ARRAY['pipeline', 'pipeline_internal', 'pipeline_data'], 'schemas');
SELECT is_empty(
	$$SELECT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pipeline')
		AND pg_describe_object(d.classid, d.objid, 0) !~ '\mpipeline|^sequence '$$,
	'nothing of it is called otherwise or stands in another schema');
SELECT language_is_trusted('pipeline', 'the language is trusted: what runs has the rights of its owner');
SELECT bag_eq(
	$$SELECT concat_ws(' ', evtname, evtevent, evtenabled) FROM pg_event_trigger$$,
	ARRAY['pipeline_sql_drop sql_drop A', 'pipeline_ddl_command_end ddl_command_end A'], 'event triggers');

-- ---- comments; identity columns make the sequences, which have none
SELECT is_empty(
	$$SELECT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pipeline')
		AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = d.objid
			AND d.classid = 'pg_class'::regclass AND c.relkind = 'S')
		AND coalesce(obj_description(d.objid, d.classid::regclass::text::name), '') = ''$$,
	'every member of the extension has a comment');
SELECT is_empty(
	$$SELECT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pipeline')
		AND obj_description(d.objid, d.classid::regclass::text::name) ~ '\.$'$$,
	'no comment ends in a full stop');

-- ---- settings
SELECT results_eq(
	$$SELECT name, context, coalesce(boot_val, '') FROM pg_settings WHERE name LIKE 'pipeline.%' ORDER BY name COLLATE "C"$$,
	$$VALUES ('pipeline.allow_dml', 'user', 'off'), ('pipeline.allowed_locations', 'superuser', ''),
		('pipeline.event_retention', 'superuser', '0'), ('pipeline.log_updates', 'superuser', 'failed'),
		('pipeline.messages', 'user', 'summary'), ('pipeline.on_busy', 'user', 'error'),
		('pipeline.source_lock_timeout', 'user', '1000')$$, 'settings');
SELECT throws_ok($$SET pipeline.no_such_setting = 1$$, '42602', NULL, 'the prefix is reserved');

SELECT * FROM finish();
ROLLBACK;

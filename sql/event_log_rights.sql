-- Who sees what of the event log and the views. Rows are put in by hand.
CREATE EXTENSION pipeline;
CREATE ROLE regress_pln_owner;
CREATE ROLE regress_pln_stats IN ROLE pg_read_all_stats;
CREATE ROLE regress_pln_runner;
CREATE ROLE regress_pln_reader;
CREATE ROLE regress_pln_nobody;
CREATE SCHEMA rights AUTHORIZATION regress_pln_owner;
GRANT USAGE ON SCHEMA rights TO PUBLIC;
SET check_function_bodies = off;
SET ROLE regress_pln_owner;
CREATE TABLE rights."T.1" (a int);
CREATE TABLE rights.u (a int);
CREATE PROCEDURE rights."P""q"() LANGUAGE pipeline AS 'x';
REVOKE ALL ON PROCEDURE rights."P""q"() FROM PUBLIC;
GRANT EXECUTE ON PROCEDURE rights."P""q"() TO regress_pln_runner;
GRANT SELECT ON rights."T.1" TO regress_pln_reader;
RESET ROLE;
INSERT INTO pipeline_internal.pipelines (uid, schema_name, name, owner, source) VALUES
	('00000000-0000-0000-0000-000000000001', 'rights', 'P"q', 'regress_pln_owner', 'secret source');
INSERT INTO pipeline_internal.datasets (pipeline_id, schema_name, name, kind, relid, definition, query) VALUES
	(1, 'rights', 'T.1', 'STREAMING_TABLE', 'rights."T.1"', 'secret definition', 'secret query'),
	(1, 'rights', 'u', 'STREAMING_TABLE', 'rights.u', 'secret definition', 'secret query');
INSERT INTO pipeline_internal.expectations (dataset_id, name, condition, action) VALUES
	(1, 'positive', 'a > 0', 'DROP');
INSERT INTO pipeline_internal.updates (id, pipeline_id, cause, run_as, state, message, started_at, ended_at) VALUES
	('00000000-0000-0000-0000-000000000011', 1, 'USER_ACTION', 'x', 'FAILED', 'row (secret)', now(), now()),
	('00000000-0000-0000-0000-000000000012', 1, 'USER_ACTION', 'x', 'RUNNING', NULL, now(), NULL);
INSERT INTO pipeline_internal.update_datasets (update_id, dataset_id, flow_name, dataset_name, state,
	rows_out, sqlstate, message, quality) VALUES
	('00000000-0000-0000-0000-000000000011', 1, 'T.1', 'rights."T.1"', 'COMPLETED', 3, NULL, NULL,
		'[{"name": "positive", "action": "DROP", "passed": 3, "failed": 1}]'),
	('00000000-0000-0000-0000-000000000011', 2, 'u', 'rights.u', 'FAILED', 0, '23514', 'row (secret)', '[]');
INSERT INTO pipeline_internal.events (id, pipeline_id, dataset_id, update_id, "timestamp", level, event_type,
	message, origin, details, error) VALUES
	(gen_random_uuid(), 1, NULL, '00000000-0000-0000-0000-000000000011', now(), 'INFO', 'create_update', 'c', '{}', '{"create_update": {}}', NULL),
	(gen_random_uuid(), 1, NULL, '00000000-0000-0000-0000-000000000012', now(), 'INFO', 'update_progress', 'other update', '{}', '{"update_progress": {}}', NULL),
	(gen_random_uuid(), 1, 1, '00000000-0000-0000-0000-000000000011', now(), 'INFO', 'operation_progress', 'listed', '{}',
		'{"operation_progress": {"auto_loader_details": {"source_path": "https://u:secret@h/x y", "n": 4}}}', NULL),
	(gen_random_uuid(), 1, 1, '00000000-0000-0000-0000-000000000011', now(), 'INFO', 'flow_progress', 'T.1', '{}', '{"flow_progress": {"status": "COMPLETED"}}', NULL),
	(gen_random_uuid(), 1, 2, '00000000-0000-0000-0000-000000000011', now(), 'ERROR', 'flow_progress', 'u', '{}', '{"flow_progress": {"status": "FAILED"}}',
		'{"fatal": true, "samples": [{"a": "secret"}], "exceptions": [{"class_name": "23514", "sqlstate": "23514", "message": "row (secret)", "detail": "secret"}]}'),
	(gen_random_uuid(), 1, 2, '00000000-0000-0000-0000-000000000011', now(), 'ERROR', 'flow_progress', 'u', '{}', '{"flow_progress": {"status": "FAILED"}}',
		'{"fatal": true, "exceptions": [{"class_name": "42P01", "sqlstate": "42P01", "message": "relation \"x\" does not exist, see s3://secret", "detail": "secret"}]}');

\set log 'SELECT event_type, message, details::text || coalesce(error::text, '''') AS content FROM pipeline.event_log(:target);'
\set views 'SELECT (SELECT string_agg(pipeline || coalesce('' '' || source, ''''), '','') FROM pipeline.pipelines) AS pipelines, (SELECT string_agg(dataset || coalesce('' '' || query, ''''), '', '' ORDER BY dataset) FROM pipeline.datasets) AS datasets, (SELECT string_agg(expectation || coalesce('' '' || condition, ''''), '','') FROM pipeline.expectations) AS expectations, (SELECT string_agg(state || coalesce('' '' || message, ''''), '', '' ORDER BY update_id) FROM pipeline.updates) AS updates, (SELECT string_agg(object || '' '' || message, '', '' ORDER BY object) FROM pipeline.problems) AS problems, (SELECT string_agg(format(''%s %s %s %s %s'', expectation, passed, failed, dropped, pass_rate), '','') FROM pipeline.quality) AS quality \\gx'
\set target '''rights."P""q"'''

SET ROLE regress_pln_owner;
:log
:views
SELECT DISTINCT sequence #>> '{data_plane_id,instance}' FROM pipeline.event_log('rights."T.1"');
-- the events of a dataset, and of the updates that it was in
SELECT event_type, message FROM pipeline.event_log('rights."T.1"');
SELECT count(*) FROM pipeline.event_log('00000000-0000-0000-0000-000000000001');
SET search_path = pg_catalog, rights;
SELECT count(*) FROM pipeline.event_log('"T.1"');
RESET search_path;
SET ROLE regress_pln_stats;
:log
:views
SET ROLE regress_pln_runner;
:log
:views
SELECT event_type, message FROM pipeline.event_log('rights."T.1"');
SET ROLE regress_pln_reader;
:log
:views
SELECT pipeline.graph('rights."P""q"');
SELECT count(*) FILTER (WHERE item = 'View Text') AS texts, count(*) > 10 AS rows FROM pipeline.describe('rights."T.1"');
SELECT * FROM pipeline.describe('rights.u');
SET ROLE regress_pln_nobody;
:log
:views
SELECT * FROM pipeline.event_log('rights."T.1"');
SELECT * FROM pipeline.describe('rights."T.1"');
RESET ROLE;
-- a history longer than a page
INSERT INTO pipeline_internal.events (id, pipeline_id, "timestamp", level, event_type, message, origin, details)
SELECT gen_random_uuid(), 1, now(), 'INFO', 'user_action', 'x', '{}', '{}' FROM generate_series(1, 2500);
SELECT count(*), count(DISTINCT id) FROM pipeline.event_log('rights."P""q"');

SET client_min_messages = warning;
DROP SCHEMA rights CASCADE;
DROP EXTENSION pipeline;
DROP ROLE regress_pln_owner, regress_pln_stats, regress_pln_runner, regress_pln_reader, regress_pln_nobody;

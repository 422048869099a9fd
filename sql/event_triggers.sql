-- DDL of users and our catalog. Rows are put in by hand: this is about the triggers alone.
CREATE EXTENSION pipeline;
CREATE ROLE regress_pln_ana;
CREATE ROLE regress_pln_bob;
CREATE SCHEMA evt AUTHORIZATION regress_pln_ana;
CREATE SCHEMA evt2;
GRANT ALL ON SCHEMA evt, evt2 TO PUBLIC;
SET check_function_bodies = off;
SET ROLE regress_pln_ana;
CREATE TABLE evt.src (a int);
CREATE TABLE evt.t (a int);
CREATE TABLE evt.t_quarantine (a int);
CREATE MATERIALIZED VIEW evt.m AS SELECT count(*) FROM evt.t;
CREATE VIEW evt.v AS SELECT * FROM evt.t;
CREATE PROCEDURE evt.orders() LANGUAGE pipeline AS 'x';
RESET ROLE;
CREATE VIEW pipeline_data.flow AS SELECT a FROM evt.src;
ALTER VIEW pipeline_data.flow OWNER TO regress_pln_ana;
INSERT INTO pipeline_internal.pipelines (schema_name, name, standalone, owner) VALUES
	('evt', 'orders', false, 'regress_pln_ana'), ('evt', 'm', true, 'regress_pln_ana');
INSERT INTO pipeline_internal.datasets (pipeline_id, schema_name, name, kind, relid, quarantine) VALUES
	(1, 'evt', 't', 'STREAMING_TABLE', 'evt.t', 'evt.t_quarantine'),
	(2, 'evt', 'm', 'MATERIALIZED_VIEW', 'evt.m', NULL), (1, 'evt', 'v', 'VIEW', 'evt.v', NULL);
INSERT INTO pipeline_internal.flows (dataset_id, name, kind, view) VALUES
	(1, 't', 'INSERT', 'pipeline_data.flow'), (2, 'm', 'INSERT', NULL);
INSERT INTO pipeline_internal.flow_inputs (flow_id, ordinal, relid, name) VALUES
	(1, 1, 'evt.src', 'evt.src'), (1, 2, NULL, '/landing/x'), (2, 1, 'evt.t', 'evt.t');
INSERT INTO pipeline_internal.checkpoints VALUES (1, 'evt.src', 0, 1, '1:1:', '0', 0, NULL, now());
SELECT upstream, downstream, via, mode, pipeline FROM pipeline.lineage ORDER BY 1, 2;
SELECT * FROM pipeline.dependents('evt.src');
SELECT pipeline.graph('evt.orders');
SELECT pipeline.graph('evt.orders', 'mermaid');
SELECT pipeline.graph('evt.orders', 'dot');
SELECT pipeline.graph('evt.orders', 'svg');

-- names follow
ALTER TABLE evt.t RENAME TO "T x";
ALTER MATERIALIZED VIEW evt.m SET SCHEMA evt2;
ALTER PROCEDURE evt.orders RENAME TO "Ord";
ALTER PROCEDURE evt."Ord" SET SCHEMA evt2;
SELECT dataset, pipeline, relation FROM pipeline.datasets ORDER BY 1;
SELECT flow, dataset, inputs FROM pipeline.flows ORDER BY 1;
SELECT upstream, downstream FROM pipeline.lineage ORDER BY 1, 2;
SET search_path = evt2;
ALTER PROCEDURE "Ord" SET SCHEMA evt;
RESET search_path;
ALTER SCHEMA evt RENAME TO evt3;
SELECT dataset, pipeline, relation FROM pipeline.datasets ORDER BY 1;
ALTER SCHEMA evt3 RENAME TO evt;
SELECT pipeline, kind, state FROM pipeline.pipelines ORDER BY 1;

-- one signature
CREATE FUNCTION evt."Ord"(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE evt."Ord"(a int) LANGUAGE pipeline AS 'x';
CREATE FUNCTION evt.other() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION evt.other(int) RETURNS int LANGUAGE sql AS 'SELECT 1';

-- owners follow; the pipeline's must own the datasets
ALTER PROCEDURE evt."Ord" OWNER TO regress_pln_bob;
ALTER TABLE evt."T x" OWNER TO regress_pln_bob;
ALTER VIEW evt.v OWNER TO regress_pln_bob;
SELECT relname, relowner::regrole FROM pg_class WHERE relname IN ('T x', 'flow', 't_quarantine', 'v') ORDER BY 1;
ALTER PROCEDURE evt."Ord" OWNER TO regress_pln_bob;
ALTER MATERIALIZED VIEW evt2.m OWNER TO regress_pln_bob;
SELECT pipeline, owner FROM pipeline.pipelines ORDER BY 1;
-- fires no event trigger
REASSIGN OWNED BY regress_pln_bob TO regress_pln_ana;
SELECT pipeline, owner FROM pipeline.pipelines ORDER BY 1;

-- a role without any right on our schemas
SET ROLE regress_pln_ana;
CREATE TABLE evt.plain (a int);
ALTER TABLE evt.plain RENAME TO plain2;
DROP TABLE evt.plain2;
RESET ROLE;

-- what was undone is not gone
DO $$
BEGIN
	DROP TABLE evt."T x" CASCADE;
	RAISE 'undo';
EXCEPTION WHEN raise_exception THEN
	DROP FUNCTION evt.other();
END $$;
SELECT dataset, state FROM pipeline.datasets ORDER BY 1;

-- drops
DROP TABLE evt.src;
BEGIN;
SET LOCAL client_min_messages = warning;
DROP SCHEMA evt CASCADE;
SELECT dataset FROM pipeline.datasets;
SELECT pipeline, state FROM pipeline.pipelines ORDER BY 1;
ROLLBACK;
DROP TABLE evt.src CASCADE;
SELECT dataset, state, state_reason FROM pipeline.datasets ORDER BY 1;
SELECT object, sqlstate, message, what_to_type FROM pipeline.problems;
SELECT count(*) FROM pipeline_internal.checkpoints;
SELECT flow_id, relid, name FROM pipeline_internal.flow_inputs ORDER BY 1, 3;
DROP PROCEDURE evt."Ord";
SELECT dataset, state, state_reason FROM pipeline.datasets ORDER BY 1;
SELECT pipeline, state FROM pipeline.pipelines ORDER BY 1;
DROP TABLE evt."T x" CASCADE;
SELECT count(*) FROM pipeline.datasets;
SELECT level, event_type, message FROM pipeline_internal.events ORDER BY seq;
SELECT count(*) FROM pipeline.event_log('evt2.m');

DROP EXTENSION pipeline;
SET client_min_messages = warning;
DROP SCHEMA evt, evt2 CASCADE;
DROP ROLE regress_pln_ana, regress_pln_bob;

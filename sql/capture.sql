-- Capture of changes and what a reader is given, below pipelines: with the reader of
-- src/source/test_reader.c, whose position is stored like that of a flow.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
RESET client_min_messages;
CREATE SCHEMA capture;
SET search_path = capture;
CREATE FUNCTION test_ensure(regclass, int, int[], name) RETURNS text
    LANGUAGE C AS '$libdir/pipeline', 'pipeline_test_ensure';
CREATE FUNCTION test_register(regclass, bool) RETURNS void
    LANGUAGE C AS '$libdir/pipeline', 'pipeline_test_register';
CREATE FUNCTION test_changes(regclass, bigint, text) RETURNS SETOF text
    LANGUAGE C AS '$libdir/pipeline', 'pipeline_test_changes';
CREATE FUNCTION test_append(regclass, int, int) RETURNS void
    LANGUAGE C AS '$libdir/pipeline', 'pipeline_test_append';
CREATE FUNCTION test_trim(regclass) RETURNS void
    LANGUAGE C AS '$libdir/pipeline', 'pipeline_test_trim';
CREATE FUNCTION test_forget(regclass) RETURNS void
    LANGUAGE C AS '$libdir/pipeline', 'pipeline_test_forget';
CREATE FUNCTION test_drain(source regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    pending bigint;
BEGIN
    -- an old snapshot of some background process may hold headers back for a moment
    FOR i IN 1..300 LOOP
        PERFORM test_trim(source);
        SELECT rows_pending INTO pending FROM pipeline.change_logs AS l WHERE l.source = $1;
        EXIT WHEN pending = 0;
        PERFORM pg_sleep(0.1);
    END LOOP;
    RETURN pending;
END $$;
-- two readers, 900001 and 900002, are flows of a pipeline that never runs
INSERT INTO pipeline_internal.pipelines (id, schema_name, name, owner)
    OVERRIDING SYSTEM VALUE VALUES (900000, 'capture', 'readers', current_user::regrole);
INSERT INTO pipeline_internal.datasets (id, pipeline_id, schema_name, name, kind)
    OVERRIDING SYSTEM VALUE VALUES (900000, 900000, 'capture', 'd', 'STREAMING_TABLE');
INSERT INTO pipeline_internal.flows (id, dataset_id, name, kind)
    OVERRIDING SYSTEM VALUE VALUES (900001, 900000, 'f1', 'INSERT'), (900002, 900000, 'f2', 'INSERT');
\set r1 900001
\set r2 900002

-- A stream gets what was inserted since it read last, once.
CREATE TABLE src (id int PRIMARY KEY, v numeric);
INSERT INTO src VALUES (1, 1), (2, 2);
SELECT test_ensure('src', 2, NULL, current_user);
SELECT test_ensure('src', 2, NULL, current_user);
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'src'::regclass ORDER BY 1;
SELECT test_changes('src', :r1, 'stream');
SELECT test_changes('src', :r1, 'stream');
INSERT INTO src VALUES (3, 3);
INSERT INTO src SELECT g, g FROM generate_series(4, 5) g;
SELECT test_changes('src', :r1, 'stream');
SELECT test_changes('src', :r1, 'stream');

-- The net effect of a transaction counts; statements that hit nothing are not seen.
UPDATE src SET v = 9 WHERE id = 99;
DELETE FROM src WHERE id = 99;
BEGIN;
INSERT INTO src VALUES (10, 10), (11, 1.0), (12, 12);
DELETE FROM src WHERE id = 10;
UPDATE src SET v = 1.00 WHERE id = 11;
COMMIT;
SELECT test_changes('src', :r1, 'stream');

-- An older row was updated: refused until somebody decides; nothing is lost meanwhile.
UPDATE src SET v = 9 WHERE id = 1;
INSERT INTO src VALUES (13, 13);
SELECT test_changes('src', :r1, 'stream');
SELECT test_changes('src', :r1, 'stream');
SELECT test_changes('src', :r1, 'skip');

-- skipChangeCommits leaves out whole transactions, onlyInserts only what is not new.
SELECT test_changes('src', :r2, 'latest');
INSERT INTO src VALUES (20, 2);
BEGIN;
UPDATE src SET v = 10 WHERE id = 1;
INSERT INTO src VALUES (30, 3), (31, 3);
UPDATE src SET v = 3.5 WHERE id IN (1, 31);
COMMIT;
DELETE FROM src WHERE id = 20;
INSERT INTO src VALUES (40, 4);
BEGIN;
SELECT test_changes('src', :r2, 'only');
ROLLBACK;
SELECT test_changes('src', :r2, 'skip');

-- Reading inside the writing transaction, with savepoints.
BEGIN;
INSERT INTO src VALUES (50, 5);
SELECT test_changes('src', :r2, 'stream');
INSERT INTO src VALUES (51, 5);
SAVEPOINT a;
INSERT INTO src VALUES (52, 5);
ROLLBACK TO a;
INSERT INTO src VALUES (53, 5);
SELECT test_changes('src', :r2, 'stream');
SELECT test_changes('src', :r2, 'stream');
INSERT INTO src VALUES (54, 5);
COMMIT;
SELECT test_changes('src', :r2, 'stream');
SELECT test_changes('src', :r2, 'stream');

-- Not while a statement on the table is still running in the session.
CREATE FUNCTION read_src() RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN PERFORM capture.test_changes('capture.src', 900002, 'stream'); RETURN 1; END $$;
INSERT INTO src SELECT read_src() + 60, 6;
SELECT count(*) FROM (SELECT read_src() FROM src OFFSET 0) AS reading_is_harmless;

-- ON CONFLICT and MERGE.
INSERT INTO src VALUES (50, 0), (70, 7) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
SELECT test_changes('src', :r2, 'only');
MERGE INTO src USING (VALUES (70, 70), (71, 71)) AS n (id, v) ON src.id = n.id
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.v);
SELECT test_changes('src', :r2, 'only');

-- Rewrites that keep the content are harmless, others are everything.
VACUUM FULL src;
INSERT INTO src VALUES (79);
SELECT test_changes('src', :r2, 'stream');
ALTER TABLE src ALTER v SET DEFAULT 0;
INSERT INTO src (id) VALUES (80);
SELECT test_changes('src', :r2, 'stream');
ALTER TABLE src ALTER v TYPE numeric USING v * 100;
SELECT test_changes('src', :r2, 'stream');
ALTER TABLE src DISABLE TRIGGER ALL;
DELETE FROM src WHERE id = 2;
ALTER TABLE src ENABLE TRIGGER ALL;
SELECT test_changes('src', :r2, 'stream');
SELECT test_ensure('src', 2, NULL, current_user);
SELECT test_changes('src', :r2, 'stream');
SET session_replication_role = replica;
INSERT INTO src VALUES (81, 1);
RESET session_replication_role;
SELECT test_changes('src', :r2, 'stream');
TRUNCATE src;
SELECT test_changes('src', :r2, 'view');

-- A log that somebody altered: the writer goes on, the reader starts over.
SELECT test_changes('src', :r2, 'view');
SELECT log AS log1 FROM pipeline_internal.source_logs WHERE source_id =
    (SELECT id FROM pipeline_internal.sources WHERE relid = 'src'::regclass) \gset
ALTER TABLE :log1 ALTER c2 TYPE text;
INSERT INTO src VALUES (90, 9);
SELECT test_changes('src', :r2, 'view');
ALTER TABLE :log1 DROP c2;
INSERT INTO src VALUES (91, 9);
SELECT test_ensure('src', 3, NULL, current_user);
INSERT INTO src VALUES (92, 9);
SELECT test_changes('src', :r2, 'view');
SELECT test_changes('src', :r2, 'view');
INSERT INTO src VALUES (93, 9);
SELECT test_changes('src', :r2, 'view');

-- Trimming keeps what a reader has not passed.
DELETE FROM pipeline_internal.checkpoints WHERE flow_id = :r1;
SELECT test_drain('src');
INSERT INTO src VALUES (94, 9);
SELECT test_trim('src');
SELECT rows_pending, readers FROM pipeline.change_logs WHERE source = 'src'::regclass;
SELECT test_changes('src', :r2, 'view');
SELECT test_drain('src');
INSERT INTO src SELECT g, g FROM generate_series(1000, 200000) g;
SELECT count(*) FROM test_changes('src', :r2, 'view');
SELECT test_drain('src');
SELECT rows_pending, bytes < 100000 AS small FROM pipeline.change_logs WHERE source = 'src'::regclass;
INSERT INTO src VALUES (95, 9);
SELECT test_changes('src', :r2, 'view');

-- Partitions: attribute numbers differ, statements on root and leaves count once.
CREATE TABLE p (id int, k int, v text) PARTITION BY RANGE (k);
CREATE TABLE p1 (x int, v text, k int, id int);
ALTER TABLE p1 DROP x;
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id);
CREATE TABLE p21 PARTITION OF p2 DEFAULT;
SELECT test_ensure('p', 3, ARRAY[1, 3], current_user);
SELECT test_changes('p', :r1, 'stream');
INSERT INTO p VALUES (3, 1, 'c'), (4, 11, 'd');
INSERT INTO p1 (id, k, v) VALUES (5, 5, 'e');
INSERT INTO p2 VALUES (6, 15, 'f');
INSERT INTO p21 VALUES (7, 15, 'g');
SELECT test_changes('p', :r1, 'stream');
INSERT INTO p1 (id, k, v) VALUES (8, 5, 'h');
-- a wider capture: rows logged before cannot serve whoever needs the new column
SELECT test_ensure('p', 3, ARRAY[2], current_user);
SELECT test_changes('p', :r1, 'stream');
BEGIN;
INSERT INTO p VALUES (9, 1, 'i');
UPDATE p SET k = k + 10 WHERE id = 9;
COMMIT;
SELECT test_changes('p', :r1, 'stream');
SELECT test_ensure('p21', 3, NULL, current_user);
-- a new partition is captured from its first row on, an attached one came with rows
INSERT INTO p VALUES (10, 1, 'before');
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30);
INSERT INTO p3 VALUES (11, 20, 'direct');
INSERT INTO p VALUES (12, 21, 'root');
CREATE TABLE p4 PARTITION OF p FOR VALUES FROM (30) TO (40);
SELECT test_changes('p', :r1, 'stream');
INSERT INTO p4 VALUES (13, 31, 'direct');
SELECT test_changes('p', :r1, 'stream');
CREATE TABLE p5 (id int, k int, v text);
INSERT INTO p5 VALUES (14, 41, 'attached');
ALTER TABLE p ATTACH PARTITION p5 FOR VALUES FROM (40) TO (50);
SELECT test_changes('p', :r1, 'stream');
INSERT INTO p5 VALUES (15, 41, 'direct');
SELECT test_changes('p', :r1, 'stream');
ALTER TABLE p DETACH PARTITION p5;
SELECT test_changes('p', :r1, 'stream');
-- a new column: rows from before have its default, rows from after their value
INSERT INTO p VALUES (16, 1, 'narrow');
ALTER TABLE p ADD c int, ADD d text DEFAULT 'dd', ADD ts timestamptz DEFAULT '2026-01-01 00:00:00+00';
INSERT INTO p VALUES (17, 1, 'wide', 5, 'e', NULL);
INSERT INTO p2 (id, k, d) VALUES (18, 11, 'leaf');
SELECT test_changes('p', :r1, 'stream');
INSERT INTO p VALUES (19, 1, 'narrow', 6);
ALTER TABLE p ADD volatile float DEFAULT random();
SELECT test_changes('p', :r1, 'stream');

-- What cannot be captured.
CREATE UNLOGGED TABLE u (id int);
CREATE TEMPORARY TABLE te (id int);
CREATE VIEW vi AS SELECT 1 AS id;
CREATE TYPE comp AS (a int);
CREATE TABLE ro (id int, c comp);
SELECT test_ensure('u', 2, NULL, current_user);
SELECT regexp_replace(test_ensure('te', 2, NULL, current_user), 'pg_temp_\d+', 'pg_temp');
SELECT test_ensure('vi', 2, NULL, current_user);
SELECT test_ensure('ro', 2, NULL, current_user);
SELECT test_ensure('ro', 2, ARRAY[1], current_user);

-- Values: TOAST, collations, domains, types without operators.
CREATE DOMAIN money2 AS numeric(10, 2);
CREATE TABLE ty (id int, t text COLLATE "C", big text, d money2, j json, p point, a int[],
    gen int GENERATED ALWAYS AS (id * 2) STORED);
ALTER TABLE ty ALTER big SET STORAGE EXTERNAL;
SELECT test_ensure('ty', 3, NULL, current_user);
SELECT test_changes('ty', :r1, 'stream');
BEGIN;
INSERT INTO ty SELECT g, 't' || g, repeat('abc' || g, 3000), 1.5, '{"a": 1}', '(1,2)', '{1,2}'
    FROM generate_series(4, 6) g;
UPDATE ty SET d = 2 WHERE id = 4;
DELETE FROM ty WHERE id = 6;
COMMIT;
SELECT length(x), left(x, 10), right(x, 32) FROM test_changes('ty', :r1, 'stream') x;

-- Rights: writers need none, readers of the table need its owner's leave.
CREATE ROLE regress_pln_owner;
CREATE ROLE regress_pln_reader;
GRANT USAGE ON SCHEMA capture TO regress_pln_owner, regress_pln_reader;
CREATE TABLE other (id int);
ALTER TABLE other OWNER TO regress_pln_owner;
SELECT test_ensure('other', 2, NULL, 'regress_pln_reader');
SET ROLE regress_pln_reader;
SELECT pipeline.allow_capture('other', 'regress_pln_reader');
SET ROLE regress_pln_owner;
SELECT pipeline.allow_capture('other', 'regress_pln_reader');
RESET ROLE;
SELECT test_ensure('other', 2, NULL, 'regress_pln_reader');
SELECT test_changes('other', :r1, 'stream');
SET ROLE regress_pln_owner;
INSERT INTO other VALUES (1);
SELECT kind, level, rows_pending, readers FROM pipeline.change_logs;
CREATE TRIGGER mine AFTER INSERT ON other EXECUTE FUNCTION pipeline_internal.capture_insert();
SET ROLE regress_pln_reader;
SELECT count(*) FROM pipeline.change_logs;
RESET ROLE;
SELECT test_changes('other', :r1, 'stream');
SET ROLE regress_pln_owner;
SELECT pipeline.disallow_capture('other', 'regress_pln_reader');
SELECT pipeline.disallow_capture('other', 'regress_pln_reader');
SELECT pipeline.disable_capture('other');
RESET ROLE;
SELECT test_changes('other', :r1, 'stream');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'other'::regclass;
INSERT INTO other VALUES (2);

-- Our own streaming tables: no copy of rows, rows are found by xmin.
CREATE TABLE st (id int, v text);
SELECT test_register('st', true);
SELECT test_append('st', 1, 3);
SELECT test_ensure('st', 2, NULL, current_user);
SELECT test_changes('st', :r1, 'stream'), test_changes('st', :r2, 'stream');
SELECT test_append('st', 4, 6);
SELECT test_changes('st', :r1, 'stream');
SELECT test_changes('st', :r1, 'stream');
BEGIN;
SAVEPOINT a;
SELECT test_append('st', 7, 8);
RELEASE a;
SELECT test_changes('st', :r1, 'stream');
SAVEPOINT a;
SELECT test_append('st', 9, 9);
ROLLBACK TO a;
SELECT test_append('st', 10, 10);
SELECT test_changes('st', :r1, 'stream');
COMMIT;
SELECT test_changes('st', :r1, 'stream');
VACUUM FREEZE st;
VACUUM FULL st;
SELECT test_changes('st', :r2, 'stream');
-- many small and large appends
SELECT count(test_append('st', g, g + g % 7 * 100)) FROM generate_series(1001, 1100) g;
SELECT count(*) - 1 AS delivered FROM test_changes('st', :r1, 'stream');
SELECT count(*) FROM st WHERE id > 1000;
SELECT count(*) - 1 AS delivered FROM test_changes('st', :r2, 'stream');

-- Changes by hand are refused, or recorded beside our appends.
INSERT INTO st VALUES (100, 'hand');
COPY st FROM stdin;
\.
DELETE FROM st;
TRUNCATE st;
SET pipeline.allow_dml = on;
INSERT INTO st VALUES (100, 'hand');
BEGIN;
INSERT INTO st VALUES (5000, 'hand');
SELECT test_append('st', 5001, 5002);
INSERT INTO st VALUES (5003, 'hand');
COMMIT;
SELECT test_changes('st', :r1, 'stream');
SELECT count(*) - 1 AS delivered FROM test_changes('st', :r2, 'stream');
-- deleted before a lagging reader came
SELECT test_append('st', 6001, 6005);
DELETE FROM st WHERE id = 6003;
UPDATE st SET v = 'u' WHERE id = 6004;
SELECT test_append('st', 6006, 6006);
SELECT test_changes('st', :r1, 'stream');
SELECT test_changes('st', :r1, 'skip');
-- which rows were not read yet cannot be told: never guessed
DELETE FROM st WHERE id IN (1, 6006);
SELECT test_changes('st', :r2, 'skip');
SELECT test_append('st', 7001, 7003);
ALTER TABLE st ALTER v TYPE text USING v || 'x';
SELECT test_changes('st', :r1, 'skip');
SELECT test_append('st', 7001, 7003);
TRUNCATE st;
SELECT test_append('st', 8001, 8001);
SELECT test_changes('st', :r1, 'skip');
SELECT test_append('st', 8002, 8002);
SELECT test_changes('st', :r1, 'skip');
RESET pipeline.allow_dml;
SET ROLE regress_pln_reader;
SET pipeline.allow_dml = on;
RESET ROLE;
GRANT INSERT ON st TO regress_pln_reader;
ALTER TABLE st OWNER TO regress_pln_owner;
SET ROLE regress_pln_reader;
INSERT INTO st VALUES (1, '');
RESET ROLE;
RESET pipeline.allow_dml;

-- Nothing of ours is left on a table that is forgotten.
SELECT test_forget('src');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'src'::regclass;
INSERT INTO src VALUES (96, 9);
SELECT test_forget(s.relid) FROM pipeline_internal.sources AS s
    JOIN pg_class AS c ON c.oid = s.relid WHERE c.relnamespace = 'capture'::regnamespace;
SELECT count(*) AS orphans FROM pipeline_internal.source_logs
    WHERE source_id NOT IN (SELECT id FROM pipeline_internal.sources);
SELECT count(*) AS orphans FROM pipeline_internal.log_headers
    WHERE source_id NOT IN (SELECT id FROM pipeline_internal.sources);
SELECT count(*) AS orphans FROM pg_class
    WHERE relnamespace = 'pipeline_data'::regnamespace AND relname LIKE 'log\_%' AND relkind = 'r'
    AND oid NOT IN (SELECT log FROM pipeline_internal.source_logs);
DELETE FROM pipeline_internal.datasets WHERE id = 900000;
DELETE FROM pipeline_internal.pipelines WHERE id = 900000;
SET client_min_messages = warning;
DROP SCHEMA capture CASCADE;
DROP ROLE regress_pln_owner;
DROP ROLE regress_pln_reader;

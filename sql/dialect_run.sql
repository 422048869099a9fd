--
-- The dialect in execution: what docs/dialect.md accepts runs here in the DO door, and its
-- result is looked at.  Forms that only pipelines hold run in procedures.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
CREATE SCHEMA dialect_run;
SET search_path = dialect_run, public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, MDY';
CREATE TABLE a (id int, k text, v numeric, ts timestamptz, j jsonb);
INSERT INTO a VALUES
	(1, 'x', 1.5, '2026-01-01 10:20:30.75', '{"x": {"y": "z"}, "l": [{"a b": 7}]}'),
	(2, 'x', 2.5, '2026-01-02 11:00:00', '{"x": {"y": "w"}}'),
	(3, 'y', NULL, '2026-01-03 12:00:00', NULL);
CREATE TABLE b (id int, tags text[]);
INSERT INTO b VALUES (1, '{p,q}'), (2, NULL);
CREATE TABLE src (id int, site text);
INSERT INTO src VALUES (1, 'north'), (2, 'south'), (3, NULL);
-- Run a query of the dialect in the DO door and show its rows as JSON.
CREATE FUNCTION run(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('DO LANGUAGE pipeline %L', 'CREATE OR REPLACE TABLE result AS ' || query);
	RETURN QUERY SELECT to_json(r)::text FROM result r;
END $$;
-- Run statements of the dialect; what is refused is shown with its hint.
CREATE FUNCTION refused(statements text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	EXECUTE format('DO LANGUAGE pipeline %L', statements);
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
SELECT current_database() = 'contrib_regression' AS named_so;
SET pipeline.messages = quiet;
RESET client_min_messages;
\pset format unaligned
\pset tuples_only on
\pset fieldsep ' | '

-- 1. Views
DO LANGUAGE pipeline $$
CREATE VIEW v1 AS SELECT id, k AS name FROM a;
CREATE VIEW contrib_regression.dialect_run.v2 AS SELECT * FROM a WHERE id > 1;
CREATE OR REPLACE VIEW v3 (n COMMENT 'first', m) COMMENT "both quotes" AS SELECT id, `k` FROM a;
CREATE VIEW `Odd Name` AS (SELECT 1 AS one);
CREATE VIEW native WITH (security_barrier) AS SELECT 1 AS a;
CREATE TEMPORARY VIEW passing AS SELECT 5 AS five;
$$;
SELECT count(*) FROM v2;
SELECT n, m, obj_description('v3'::regclass) FROM v3 WHERE n = 1;
SELECT one FROM "Odd Name";
SELECT five FROM passing;
SELECT refused('CREATE VIEW other_db.dialect_run.v4 AS SELECT 1');
SELECT refused('CREATE MATERIALIZED VIEW other_db.dialect_run.v4 AS SELECT 1 AS a');

-- 2. Materialized views
DO LANGUAGE pipeline $$
CREATE MATERIALIZED VIEW m1 (id BIGINT COMMENT 'the key', name STRING, PRIMARY KEY (id) NOT ENFORCED RELY,
	CONSTRAINT named EXPECT (name IS NOT NULL) ON VIOLATION DROP ROW)
	COMMENT "c" TBLPROPERTIES (quality = "gold") AS SELECT id, site AS name FROM src;
CREATE OR REPLACE MATERIALIZED VIEW m2 REFRESH POLICY FULL CLUSTER BY (id) AS SELECT id FROM src;
CREATE OR REFRESH LIVE TABLE m3 USING DELTA PARTITIONED BY (id) LOCATION '/x' AS SELECT id FROM src WHERE id == 1;
CREATE MATERIALIZED VIEW IF NOT EXISTS m3 REFRESH POLICY AUTO AS SELECT 99 AS id;
$$;
SELECT * FROM m1 ORDER BY 1;
SELECT attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum) FROM pg_attribute
	WHERE attrelid = 'm1'::regclass AND attnum > 0;
SELECT * FROM m3;
INSERT INTO src VALUES (4, 'west');
DO LANGUAGE pipeline 'REFRESH MATERIALIZED VIEW m1; REFRESH MATERIALIZED VIEW m2 FULL';
SELECT count(*) FROM m1;
SELECT count(*) FROM m2;
DO LANGUAGE pipeline 'CREATE OR REPLACE MATERIALIZED VIEW m2 AS SELECT id * 10 AS id FROM src';
SELECT max(id) FROM m2;

-- 3. Streaming tables
DO LANGUAGE pipeline $$
CREATE STREAMING TABLE t1 (
	sk BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5),
	id INT NOT NULL COMMENT 'k',
	site STRING DEFAULT 'none',
	twice INT GENERATED ALWAYS AS (id * 2),
	CONSTRAINT sited EXPECT (site IS NOT NULL) ON VIOLATION DROP ROW,
	CONSTRAINT small EXPECT (id < 100) ON VIOLATION WARN
) COMMENT 'x' CLUSTER BY AUTO AS SELECT id, site FROM STREAM(src) s;
CREATE OR REFRESH STREAMING TABLE t2 AS SELECT `id` FROM STREAM contrib_regression.dialect_run.src WITH (skipChangeCommits) AS x WHERE id <> 2;
CREATE STREAMING TABLE t3 (CONSTRAINT c EXPECT (site <=> 'north') ON VIOLATION QUARANTINE ROW)
	FLOW INSERT BY NAME SELECT * FROM STREAM src;
CREATE STREAMING TABLE IF NOT EXISTS t2 AS SELECT 1 AS nope FROM STREAM src;
CREATE STREAMING TABLE t4 AS SELECT s.id, b.tags FROM STREAM(src) WATERMARK now() DELAY OF INTERVAL 3 MINUTES s JOIN b USING (id);
$$;
SELECT * FROM t1 ORDER BY id;
SELECT count(*) FROM t2;
SELECT * FROM t3;
SELECT * FROM t4 ORDER BY id;
INSERT INTO src VALUES (5, 'east');
DO LANGUAGE pipeline 'REFRESH STREAMING TABLE t1; REFRESH TABLE t2 SYNC';
SELECT id, site, twice FROM t1 ORDER BY id;
SELECT count(*) FROM t2;
-- a relation called stream
CREATE TABLE stream AS SELECT 1 AS one;
SELECT run('SELECT one FROM stream');
SELECT run('SELECT s.one FROM dialect_run.stream AS s');

-- 4. A pipeline: private tables, temporary views, LIVE, parameters
CREATE PROCEDURE p(word text DEFAULT 'north', lim int DEFAULT 2) LANGUAGE pipeline AS $$
SET greeting = hello;
CREATE TEMPORARY VIEW recent (CONSTRAINT sited EXPECT (site IS NOT NULL)) AS SELECT * FROM STREAM(src);
CREATE OR REFRESH PRIVATE STREAMING TABLE p_private AS SELECT id FROM STREAM(src);
CREATE OR REFRESH STREAMING LIVE TABLE p_all AS SELECT id, site, '${greeting} ${word}' AS w, :lim AS n FROM STREAM(LIVE.recent);
CREATE OR REFRESH LIVE TABLE p_count COMMENT "of ${word}" AS SELECT count(*) AS n FROM LIVE.p_all WHERE site = ${word};
CREATE MATERIALIZED VIEW ${word}_private AS SELECT count(*) AS n FROM LIVE.p_private;
CREATE VIEW p_view AS SELECT n FROM p_count;
$$;
CALL p();
SELECT * FROM p_all ORDER BY id;
SELECT * FROM p_view;
SELECT n, to_regclass('p_private') IS NULL FROM north_private;
-- the clauses without effect are named once
SET pipeline.messages = summary;
CREATE OR REPLACE PROCEDURE q() LANGUAGE pipeline AS $$
CREATE STREAMING TABLE q1 (id INT PRIMARY KEY, site STRING REFERENCES b (id)) USING DELTA PARTITIONED BY (id) LOCATION '/x'
	DEFAULT COLLATION UTF8_BINARY AS SELECT * FROM STREAM(src) WATERMARK now() DELAY OF INTERVAL 1 HOUR;
CREATE MATERIALIZED VIEW q2 CLUSTER BY NONE AS SELECT 1 AS a;
$$;
SET pipeline.messages = quiet;
CALL q();
SET pipeline.messages = summary;
CREATE OR REPLACE PROCEDURE q() LANGUAGE pipeline AS $$
CREATE STREAMING TABLE q1 (id INT PRIMARY KEY, site STRING REFERENCES b (id)) USING DELTA PARTITIONED BY (id) LOCATION '/x'
	DEFAULT COLLATION UTF8_BINARY AS SELECT * FROM STREAM(src) WATERMARK now() DELAY OF INTERVAL 1 HOUR;
CREATE MATERIALIZED VIEW q2 CLUSTER BY (a) AS SELECT 1 AS a;
$$;
SET pipeline.messages = quiet;

-- 5. The other statements
SET client_min_messages = warning;
CREATE ROLE dialect_run_owner;
GRANT CREATE, USAGE ON SCHEMA dialect_run TO dialect_run_owner;
RESET client_min_messages;
DO LANGUAGE pipeline $$
ALTER STREAMING TABLE t1 ALTER COLUMN site COMMENT 'where';
ALTER STREAMING TABLE t2 RENAME TO t2_new;
ALTER MATERIALIZED VIEW m3 OWNER TO dialect_run_owner;
DROP MATERIALIZED VIEW IF EXISTS not_there;
DROP MATERIALIZED VIEW m2;
DROP STREAMING TABLE t4 CASCADE;
$$;
SELECT col_description('t1'::regclass, 3), to_regclass('t2_new'), to_regclass('m2'), to_regclass('t4');
SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'm3'::regclass;
DO LANGUAGE pipeline $$ USE CATALOG contrib_regression; USE SCHEMA public; CREATE TABLE dialect_run_used AS SELECT 1 AS a; DROP TABLE public.dialect_run_used; USE dialect_run; $$;
DO LANGUAGE pipeline $$ SET spark.thing = 3; SET LOCAL work_mem = '2MB'; SET day = '2026-01-01'; CREATE TABLE of_set AS SELECT ${day}::date AS d, '${spark.thing}' AS s; $$;
SELECT * FROM of_set;
-- the notices end with times, so only the first ones
DO LANGUAGE pipeline $$ CREATE TABLE described AS SELECT item, value FROM pipeline.describe('m1') $$;
SELECT item, value FROM described LIMIT 3;
SET client_min_messages = warning;
SELECT refused('DESCRIBE m1'), refused('DESC TABLE EXTENDED m1'), refused('DESCRIBE v1');
RESET client_min_messages;

-- 6. Plain statements
SET pipeline.messages = summary;
DO LANGUAGE pipeline $$
CREATE TABLE c USING DELTA COMMENT 'c' TBLPROPERTIES ('a' = 'b') PARTITIONED BY (a) CLUSTER BY (a) LOCATION '/x' AS SELECT 1 AS a;
CREATE TABLE d (id INT COMMENT 'k', name STRING COMMENT 'n', tier STRING) USING DELTA;
INSERT INTO TABLE d SELECT id, k, 'old' FROM a;
$$;
-- the new one may be made of the old one
DO LANGUAGE pipeline $$
CREATE OR REPLACE TABLE c AS SELECT a + 1 AS a, 'b' AS b FROM c;
CREATE OR REPLACE TABLE c AS SELECT a + 1 AS a, b FROM c;
CREATE OR REPLACE TABLE new_one AS SELECT 1 AS a;
CREATE OR REPLACE TABLE contrib_regression.dialect_run.new_one (a STRING, PRIMARY KEY (a));
$$;
SELECT * FROM c;
SELECT count(*), pg_typeof(max(a)) FROM new_one;
SELECT count(*) FROM pg_class WHERE relnamespace = 'dialect_run'::regnamespace AND relname LIKE 'c\_new%';
SET pipeline.messages = quiet;
DO LANGUAGE pipeline $$
MERGE INTO d t USING (SELECT 1 AS id, 'one' AS name UNION ALL SELECT 9, 'nine') s ON t.id = s.id
	WHEN MATCHED THEN UPDATE SET t.name = s.name, t.tier = 'new'
	WHEN NOT MATCHED BY TARGET THEN INSERT (id, name) VALUES (s.id, s.name);
UPDATE d SET d.tier = 'upd' WHERE id == 2;
DELETE FROM d WHERE id == 3;
$$;
SELECT * FROM d ORDER BY id;
SELECT refused(s) FROM (VALUES
	('CREATE OR REPLACE TABLE m1 AS SELECT 1 AS a'), ('CREATE OR REPLACE TABLE t1 (a INT)'), ('CREATE OR REPLACE TABLE v1 AS SELECT 1 AS a'),
	('CREATE OR REPLACE TABLE a AS SELECT 1 AS one'), ('CREATE OR REPLACE TABLE IF NOT EXISTS c AS SELECT 1 AS a'),
	('CREATE OR REPLACE TABLE c AS SELECT 1/0 AS a'), ('CREATE TABLE c AS SELECT 1 AS a'), ('COMMIT')) AS x(s);
SELECT * FROM c;

-- 7. Inside of queries
SELECT run($$SELECT CAST(1.25 AS STRING) a, '1.5'::DOUBLE b, CAST(3 AS LONG) c, CAST(3 AS SHORT) d, CAST(4 AS TINYINT) e, CAST(5 AS BYTE) f,
	CAST(ts AS TIMESTAMP_NTZ) g, CAST(ts AS TIMESTAMP_LTZ) h, CAST(v AS DECIMAL(10,1)) i, CAST('{"q": 1}' AS VARIANT) k, CAST(2.5 AS DEC) l,
	CAST('a' AS BINARY) m FROM a WHERE id = 1$$);
SELECT run($$SELECT CAST(tags AS ARRAY<STRING>) a, CAST('{"a": 1}' AS STRUCT<a: INT, b: ARRAY<STRING>>) b, '{"k": 1}'::MAP<STRING, INT> c FROM b WHERE id == 1$$);
SELECT run($$SELECT id FROM a WHERE id == 1 AND k <=> 'x' AND !(v != 1.5) AND k RLIKE '^X|x' AND k NOT RLIKE 'y'$$);
SELECT run($$SELECT NULL <=> NULL a, current_timestamp() IS NOT NULL b, current_date() = current_date c, current_user() = current_user d$$);
SELECT run($$SELECT INTERVAL 5 MINUTES a, INTERVAL 1 DAY 2 HOURS b, INTERVAL '3' WEEKS c, INTERVAL '3' DAY d, INTERVAL -2 days e, timestamp '2026-01-01' + INTERVAL 90 SECONDS f$$);
SELECT run($$SELECT nvl(v, 0) a, ifnull(k, '-') b, if(v > 2, 'big', 'small') c, iff(true, 1, 2) d, nvl2(v, 1, 2) e, isnull(v) f, isnotnull(v) g FROM a ORDER BY id$$);
SELECT run($$SELECT year(ts) a, quarter(ts) b, month(ts) c, day(ts) d, dayofmonth(ts) e, dayofyear(ts) f, weekofyear(ts) g, hour(ts) h, minute(ts) i, second(ts) j FROM a WHERE id = 1$$);
SELECT run($$SELECT datediff(ts, date '2025-12-25') a, date_add(ts, 3) b, date_sub(ts, 1) c, to_date('2026-03-04') d, to_timestamp('2026-03-04 05:06:07') e, to_timestamp(3.5) f FROM a WHERE id = 1$$);
SELECT run($$SELECT locate('b', 'abc') a, charindex('c', 'abc') b, instr('abc', 'a') c, ucase('x') d, lcase('X') e, len('abc') f, size(array(1, 2)) g, array_size(array(1)) h,
	array_contains(array('a', 'b'), 'b') i, CAST(struct(1, 'x') AS STRING) k, rand() < 1 l, length(CAST(uuid() AS STRING)) m, r'\d+' n$$);
SELECT run($$SELECT count_if(v > 1) a, mean(v) b, std(v) IS NOT NULL c FROM a$$);
SELECT run($$SELECT explode(tags) AS t FROM b$$);
SELECT run($$SELECT j:x, j:x.y, j:l[0]['a b'], a.j:x.y::text AS t FROM a WHERE j:x.y == 'z'$$);
SELECT run($$SELECT id FROM a MINUS SELECT id FROM b$$);
SELECT run($$SELECT "k", 'it''s' AS `a string` FROM a WHERE id = 1$$);

-- 8. * EXCEPT, QUALIFY, GROUP BY ALL
SELECT run($$SELECT * EXCEPT (ts, j) FROM a ORDER BY id$$);
SELECT run($$SELECT a.* EXCEPT (ts, j, v), b.tags FROM a JOIN b USING (id) ORDER BY id$$);
SELECT run($$SELECT id, k FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC) = 1 ORDER BY id$$);
SELECT run($$SELECT id, row_number() OVER (ORDER BY id DESC) AS rn FROM a WHERE id > 1 QUALIFY rn = 1$$);
SELECT run($$SELECT k, count(*) AS n, sum(v) AS v FROM a GROUP BY ALL ORDER BY k$$);
SELECT run($$SELECT k, count(*) AS n FROM a GROUP BY ALL HAVING count(*) > 1 QUALIFY max(n) OVER () = n$$);

-- in the other statements
DO LANGUAGE pipeline $$
CREATE TABLE e AS SELECT * EXCEPT (ts, j) FROM a QUALIFY rank() OVER (ORDER BY id) = 1;
INSERT INTO e SELECT n, k, 7 FROM (SELECT k, count(*) AS n FROM a GROUP BY ALL) x QUALIFY max(n) OVER () = n;
$$;
SELECT * FROM e;
SELECT refused('PREPARE s AS SELECT * EXCEPT (id) FROM a'), refused('DELETE FROM e WHERE v IN (SELECT v FROM a QUALIFY rank() OVER (ORDER BY id) = 1)');
SELECT count(*) FROM e;

-- 9. Patterns of dates and times
SELECT run($$SELECT to_timestamp('2024-11-05 01:11:03', 'yyyy-MM-dd HH:mm:ss') a, to_timestamp('2024-11-05 01:11:03', 'yyyy-MM-dd HH:mm:ss'::text) b$$);
SELECT p, v, run(format('SELECT to_timestamp(%L, %L) AS t', v, p)) FROM (VALUES
	('yyyy-MM-dd HH:mm:ss', '2024-11-05 01:11:03'), ('yyyy-MM-dd''T''HH:mm:ss.SSS', '2024-11-05T01:11:03.250'),
	('yyyy-MM-dd''T''HH:mm:ss''Z''', '2024-11-05T13:11:03Z'), ('yyyy-MM-dd''T''HH:mm:ssXXX', '2024-11-05T01:11:03+02:30'),
	('yyyy-MM-dd HH:mm:ss Z', '2024-11-05 01:11:03 -0130'), ('yyyyMMddHHmmssSSS', '20241105011103123'),
	('d MMM yyyy h:mm a', '5 Nov 2024 3:04 PM'), ('EEE, MMMM dd, yyyy hh:mm a', 'Tue, November 05, 2024 12:04 AM'),
	('EEEE dd.MM.yyyy HH''h''mm', 'Tuesday 05.11.2024 13h59'), ('yyyy-DDD', '2024-310'), ('yyyy年MM月dd日', '2024年11月05日'),
	('M/d/y H:m:s', '11/5/2024 1:2:3'), ('yyyy-MM-dd HH:mm:ss.SSSSSS', '2024-11-05 01:11:03.123456'), ('yyyy-MM-dd HH:mm:ss.S', '2024-11-05 01:11:03.5'),
	-- PostgreSQL's own stay
	('YYYY-MM-DD HH24:MI:SS', '2024-11-05 01:11:03'), ('yyyy-mm-dd hh24:mi:ss', '2024-11-05 01:11:03'), ('YYYY-MM-DD HH:MI:SS AM', '2024-11-05 01:11:03 PM'),
	('DD-Mon-YYYY', '05-Nov-2024'), ('yyyy-mm-dd', '2024-11-05'), ('YYYY-MM-DD"T"HH24:MI:SS.US', '2024-11-05T01:11:03.000001'), ('dd month yyyy', '05 november 2024')) x(p, v);
SELECT run($$SELECT to_date('11/5/2024', 'M/d/yyyy') a, to_date('05112024', 'ddMMyyyy') b, to_date('2024-11-05', 'YYYY-MM-DD') c,
	unix_timestamp('2024-11-05 01:11:03', 'yyyy-MM-dd HH:mm:ss') d, unix_timestamp('1969-12-31 23:59:59.5') e, to_unix_timestamp(ts) f,
	unix_timestamp() > 1e9 g, from_unixtime(0) h, from_unixtime(3661, 'HH:mm:ss') i FROM a WHERE id = 1$$);
SELECT p, run(format('SELECT date_format(ts, %L) AS t FROM a WHERE id = 1', p)) FROM (VALUES
	('yyyy-MM-dd HH:mm:ss.SSS'), ('d/M/yy h:m:s a'), ('E EEEE MMM MMMM'), ('ddE ddD ''o''''clock'' HH:00:00 Q G'), ('yyyy-MM-dd''T''HH:mm:ssxxx Z'),
	('yyyyMMdd'), ('ss.S ss.SS ss.SSSS ss.SSSSSS'), ('''"\'' yyyy'), ('YYYY-MM-DD HH24:MI'), ('FMMonth DD')) x(p);
SELECT run($$SELECT date_format('2026-01-01 13:04:05', 'h a') a, date_format(date '2026-02-03', 'dd.MM.') b, to_char(ts, 'HH:mm') c, to_char(ts, 'HH24:MI') d, to_char(12.5, '99D9') e,
	to_char(ts, (SELECT 'yyyy')) f FROM a WHERE id = 1$$);
-- wrong values without an error are what must not come out
SELECT p, refused(format('CREATE TABLE no AS SELECT to_timestamp(''x'', %L)', p)) FROM (VALUES
	('YYYY-MM-dd HH:mm:ss'), ('YYYY-MM-DD HH:MM:SS'), ('yyyy-MM-dd HH:mm:SS'), ('yyyy-mm-dd hh:mm:ss'), ('yyyy-MM-dd HH:MM:ss'), ('YYYY-MM-DDTHH24:MI:SS'),
	('dd-MMM-YYYY'), ('YYYY-MM-DD''T''HH24'), ('DD.MM.YYYY hh:mi a'), ('yy-MM-dd'), ('yyyyMd'), ('mm:ss'), ('yyyy yyyy'), ('yyyy-MM-dd KK'), ('yyyy-MM-dd z'), ('yyyy-MM-dd[ HH:mm]'),
	('yyyy-MM-dd HH:mm:ss.SSSSSSSSS'), ('yyyy SSS'), ('yyyy-MM-dd ''x'), ('MMMMM yyyy')) x(p);
SELECT p, refused(format('CREATE TABLE no AS SELECT date_format(now(), %L)', p)) FROM (VALUES ('u'), ('HH:MM'), ('yyyy-MM-ddXXX'), ('YYYY-MM-DD e'), ('zzz')) x(p);
SELECT run($$SELECT to_timestamp('2024-11-05T01:11:03Z', 'yyyy-MM-dd''T''HH:mm:ssXXX')$$);
DO LANGUAGE pipeline $$ CREATE TABLE no AS SELECT 'ä', to_timestamp(k, 'yyyy-MM-dd KK:mm') FROM a $$;
-- a pattern that is no literal is PostgreSQL's, or not found
DO LANGUAGE pipeline $$ CREATE TABLE no AS SELECT date_format(ts, k) FROM a $$;

-- 10. TRY_CAST
SELECT run($$SELECT TRY_CAST(3.7 AS INT) a, TRY_CAST(-3.7::double AS BIGINT) b, TRY_CAST(3e9 AS INT) c, TRY_CAST(40000 AS SHORT) d, TRY_CAST(99.75::real AS TINYINT) e,
	TRY_CAST('NaN'::float AS INT) f, TRY_CAST(1e300::double AS LONG) g, TRY_CAST('infinity'::numeric AS INT) h, TRY_CAST(9223372036854775807.9 AS LONG) i,
	TRY_CAST(9223372036854775808 AS LONG) k, TRY_CAST(-0.9 AS INT) l, TRY_CAST(7::bigint AS INT) m$$);
SELECT run($$SELECT TRY_CAST('3' AS INT) a, TRY_CAST('3.7' AS INT) b, TRY_CAST('x' AS DATE) c, TRY_CAST(NULL AS INT) d, TRY_CAST(true AS STRING) e, TRY_CAST(ts AS DATE) f,
	TRY_CAST(3.75 AS DECIMAL(3,1)) g, TRY_CAST(1234 AS DECIMAL(3,1)) h, TRY_CAST(k AS INT) i, TRY_CAST(v AS INT) l, TRY_CAST(v + id AS INT) m FROM a WHERE id = 1$$);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
SELECT run($$SELECT TRY_CAST(2.9 AS positive) a, TRY_CAST(0.9 AS positive) b, TRY_CAST('-1' AS positive) c$$);

-- 11. What is refused when it runs says what to type instead
SELECT refused(s) FROM (VALUES
	('CREATE MATERIALIZED VIEW no SCHEDULE EVERY 2 HOURS AS SELECT 1 AS a'), ('CREATE STREAMING TABLE no SCHEDULE CRON ''0 15 2 * * ?'' AS SELECT * FROM STREAM src'),
	('CREATE MATERIALIZED VIEW no SCHEDULE EVERY 1 DAY AS SELECT 1 AS a'), ('CREATE MATERIALIZED VIEW no SCHEDULE EVERY 8 WEEKS AS SELECT 1 AS a'),
	('CREATE MATERIALIZED VIEW no TRIGGER ON UPDATE AT MOST EVERY INTERVAL 5 MINUTES AS SELECT 1 AS a'),
	('CREATE MATERIALIZED VIEW no REFRESH POLICY INCREMENTAL AS SELECT 1 AS a'), ('CREATE MATERIALIZED VIEW no REFRESH POLICY INCREMENTAL STRICT AS SELECT 1 AS a'),
	('ALTER MATERIALIZED VIEW m1 ADD SCHEDULE EVERY 3 DAYS'), ('ALTER MATERIALIZED VIEW m1 ALTER TRIGGER ON UPDATE'), ('ALTER MATERIALIZED VIEW m1 DROP SCHEDULE'),
	('ALTER STREAMING TABLE t1 SET TBLPROPERTIES (a = 1)'),
	('CREATE FLOW f AS INSERT INTO t1 BY NAME SELECT * FROM STREAM(src)'), ('CREATE FLOW f AS INSERT ONCE INTO t1 BY NAME SELECT * FROM src'),
	('CREATE FLOW f AS INSERT INTO t1 REPLACE WHERE id > 1 BY NAME SELECT * FROM src'),
	('CREATE FLOW f AS AUTO CDC INTO t1 FROM STREAM(src) KEYS (id, "Site") SEQUENCE BY ts'),
	('AUTO CDC INTO t1 FROM STREAM(dialect_run.src) KEYS (id) SEQUENCE BY ts STORED AS SCD TYPE 2'),
	('CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM src) KEYS (id)'),
	('CREATE STREAMING TABLE no FLOW AUTO CDC FROM STREAM src KEYS (id) SEQUENCE BY ts'),
	('CREATE STREAMING TABLE no FLOW REPLACE USING (id) SEQUENCE BY id BY NAME SELECT * FROM STREAM src'),
	('EXPLAIN CREATE MATERIALIZED VIEW no AS SELECT 1 AS a'), ('GRANT REFRESH ON m1 TO public'), ('REVOKE REFRESH ON m1 FROM public'),
	('REFRESH STREAMING TABLE t1 ASYNC'), ('REFRESH STREAMING TABLE t1 WHERE id > 1'), ('DESCRIBE nowhere.nothing'), ('DROP MATERIALIZED VIEW other_db.dialect_run.m1'),
	('USE SCHEMA nowhere'), ('USE CATALOG other_db')) AS x(s);
CREATE PROCEDURE no() LANGUAGE pipeline AS $$ CREATE STREAMING TABLE no; CREATE FLOW f AS INSERT INTO no BY NAME SELECT * FROM STREAM(src); $$;
CREATE PROCEDURE no() LANGUAGE pipeline AS $$ CREATE MATERIALIZED VIEW no SCHEDULE EVERY 1 HOUR AS SELECT 1 AS a; $$;
-- the cursor
DO LANGUAGE pipeline $$ ALTER MATERIALIZED VIEW m1 DROP SCHEDULE $$;
DO LANGUAGE pipeline $$ ALTER MATERIALIZED VIEW m1 ADD TRIGGER ON UPDATE $$;
DO LANGUAGE pipeline $$ CREATE MATERIALIZED VIEW no REFRESH POLICY INCREMENTAL AS SELECT 1 AS a $$;
DO LANGUAGE pipeline $$ DESCRIBE nothing $$;
DO LANGUAGE pipeline $$ REFRESH MATERIALIZED VIEW other_db.dialect_run.heavy $$;
DO LANGUAGE pipeline $$ USE CATALOG other_db $$;
DO LANGUAGE pipeline $$ CREATE OR REPLACE TABLE m1 AS SELECT 1 AS a $$;

SET client_min_messages = warning;
DROP PROCEDURE p(text, int);
DROP PROCEDURE q();
DROP SCHEMA dialect_run CASCADE;
DROP ROLE dialect_run_owner;

-- Queries over a stream: each shape is created over one row and sees three more in a later
-- update, where the rows come from the change log and not from the table.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
SET pipeline.messages = quiet;
CREATE SCHEMA shapes;
SET search_path = shapes;
CREATE TABLE src (gone int, id int, v text);
ALTER TABLE src DROP COLUMN gone;
CREATE TABLE dim (id int, n text);
INSERT INTO dim VALUES (1, 'one'), (2, 'two');
INSERT INTO src VALUES (1, 'a');
CREATE PROCEDURE p() LANGUAGE pipeline AS $$
	CREATE OR REFRESH STREAMING TABLE whole AS SELECT s AS w, (s).id AS i, to_jsonb(s) AS j, s::text AS t, s IS NULL AS isn FROM STREAM(src) s;
	CREATE OR REFRESH STREAMING TABLE aliases AS SELECT a, b FROM STREAM(src) AS x(a, b);
	CREATE OR REFRESH STREAMING TABLE using_ AS SELECT id, v, n FROM STREAM(src) JOIN dim USING (id);
	CREATE OR REFRESH STREAMING TABLE lateral_ AS SELECT s.id, l.m FROM STREAM(src) s CROSS JOIN LATERAL (SELECT max(n) AS m FROM dim d WHERE d.id <= s.id) l;
	CREATE OR REFRESH STREAMING TABLE with_itself AS SELECT s.id, c.n FROM STREAM(src) s, (SELECT count(*) AS n FROM src) c;
	CREATE OR REFRESH STREAMING TABLE subquery AS SELECT q.id, q.u FROM (SELECT id, upper(v) AS u FROM STREAM(src) WHERE v IS NOT NULL) q
		WHERE EXISTS (SELECT FROM dim WHERE dim.id = q.id);
	CREATE OR REFRESH STREAMING TABLE cte AS WITH q AS (SELECT id, v FROM STREAM(src)) SELECT * FROM q;
	CREATE OR REFRESH STREAMING TABLE union_ AS SELECT id, v FROM STREAM(src) UNION ALL SELECT id + 100, v FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE set_returning AS SELECT id, unnest(ARRAY[1, 2]) AS x FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE scalar AS SELECT id, (SELECT n FROM dim WHERE dim.id = src.id) AS n FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE anti AS SELECT id AS `ID`, v AS `select` FROM STREAM(src) WHERE (id, v) NOT IN (SELECT id, n FROM dim);
	CREATE OR REFRESH STREAMING TABLE chained AS SELECT w.i, w.isn, a.b FROM STREAM(whole) w LEFT JOIN aliases a ON a.a = w.i;
$$;
CALL p();
INSERT INTO src VALUES (2, 'b'), (3, NULL), (NULL, NULL);
UPDATE dim SET n = 'zwei' WHERE id = 2;
CALL p();
CALL p();
SELECT * FROM whole ORDER BY i;
SELECT * FROM aliases ORDER BY a;
SELECT * FROM using_ ORDER BY id;
SELECT * FROM lateral_ ORDER BY id;
SELECT * FROM with_itself ORDER BY id;
SELECT * FROM subquery ORDER BY id;
SELECT * FROM cte ORDER BY id;
SELECT * FROM union_ ORDER BY id, v;
SELECT * FROM set_returning ORDER BY id, x;
SELECT * FROM scalar ORDER BY id;
SELECT * FROM anti ORDER BY "ID";
SELECT * FROM chained ORDER BY i;

-- the log has no system columns: refused from the start, not at the second update
CREATE FUNCTION refused(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('DO LANGUAGE pipeline %L', 'CREATE OR REFRESH STREAMING TABLE shapes.x AS ' || query);
	EXECUTE 'DROP TABLE shapes.x';
	RETURN 'taken';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;
SELECT c, refused(format('SELECT %s::text AS c, id FROM STREAM(shapes.src)', c)) FROM unnest('{ctid,xmin,cmin,xmax,tableoid}'::text[]) c;
SELECT refused('SELECT id FROM STREAM(shapes.src) WHERE tableoid IS NOT NULL');
SELECT to_regclass('shapes.x');

-- inheritance: a stream reads the children too
CREATE TABLE parent (id int);
CREATE TABLE child (x int) INHERITS (parent);
CREATE PROCEDURE i() LANGUAGE pipeline AS 'CREATE OR REFRESH STREAMING TABLE inherited AS SELECT * FROM STREAM(parent)';
CALL i();
INSERT INTO parent VALUES (1);
INSERT INTO child VALUES (2, 2);
CALL i();
CREATE TABLE later (y text) INHERITS (parent);
INSERT INTO later VALUES (3, 'y');
CALL i();
SELECT * FROM inherited ORDER BY id;
-- partitions come, rows go to them through the root and directly
CREATE TABLE parted (k int, id int) PARTITION BY LIST (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE PROCEDURE q() LANGUAGE pipeline AS 'CREATE OR REFRESH STREAMING TABLE parts AS SELECT * FROM STREAM(parted)';
CALL q();
INSERT INTO parted VALUES (1, 1);
INSERT INTO parted_1 VALUES (1, 2);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
INSERT INTO parted VALUES (2, 3), (1, 4);
INSERT INTO parted_2 (id, k) VALUES (5, 2);
CALL q();
CALL q();
SELECT * FROM parts ORDER BY id;

DROP PROCEDURE p;
DROP PROCEDURE i;
DROP PROCEDURE q;
DROP SCHEMA shapes CASCADE;

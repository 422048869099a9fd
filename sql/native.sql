-- What PostgreSQL's own grammar has for materialized views works on datasets, and only there.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
RESET client_min_messages;
SET pipeline.messages = quiet;
CREATE ROLE regress_pln_owner;
CREATE SCHEMA native;
CREATE SCHEMA elsewhere;
SET search_path = native, public;
CREATE TABLE s (id int PRIMARY KEY, g text, v int);
INSERT INTO s SELECT i, chr(96 + i % 3 + 1), i FROM generate_series(1, 6) i;
CREATE FUNCTION datasets() RETURNS TABLE (dataset text, refresh_policy text, state text) LANGUAGE sql AS $$
	SELECT dataset, refresh_policy, state FROM pipeline.datasets WHERE dataset ~ '^(native|elsewhere)' ORDER BY 1 $$;

-- a plain materialized view stays one
CREATE MATERIALIZED VIEW plain AS SELECT g, sum(v) AS v FROM s GROUP BY g;
REFRESH MATERIALIZED VIEW plain;
REFRESH MATERIALIZED VIEW plain WITH NO DATA;
SELECT * FROM datasets();

-- WITH (pipeline.refresh_policy = ...)
CREATE MATERIALIZED VIEW m WITH (pipeline.refresh_policy = 'full') AS SELECT g, sum(v) AS v FROM s GROUP BY g;
CREATE MATERIALIZED VIEW renamed (a, b) WITH (pipeline.refresh_policy = 'auto') AS SELECT g, sum(v) FROM s GROUP BY g;
CREATE MATERIALIZED VIEW IF NOT EXISTS m WITH (pipeline.refresh_policy = 'auto') AS SELECT 1 AS x;
CREATE MATERIALIZED VIEW m WITH (pipeline.refresh_policy = 'full') AS SELECT 1 AS x;
CREATE MATERIALIZED VIEW tricky WITH (pipeline.refresh_policy = 'full') AS
	WITH w AS (SELECT id, '${x} :y `z` "' AS t, $q$don't$q$ AS q FROM s) SELECT * FROM w WHERE t LIKE '%{x}%' OR id = ANY ('{1,2}');
CREATE MATERIALIZED VIEW vals WITH (pipeline.refresh_policy = 'full') AS VALUES (1, 'a'), (2, 'b');
CREATE MATERIALIZED VIEW tab WITH (pipeline.refresh_policy = 'full') AS TABLE s;
SELECT * FROM datasets();
SELECT * FROM m ORDER BY g;
SELECT * FROM renamed ORDER BY a;
SELECT * FROM tricky ORDER BY id;
SELECT * FROM vals ORDER BY 1;
SELECT count(*) FROM tab;
-- refused, and nothing is left
CREATE MATERIALIZED VIEW bad WITH (pipeline.refresh_policy = 'fuull') AS SELECT 1 AS a;
CREATE MATERIALIZED VIEW bad WITH (pipeline.refresh_policy = 7) AS SELECT 1 AS a;
CREATE MATERIALIZED VIEW bad WITH (pipeline.nonsense = 'x') AS SELECT 1 AS a;
CREATE MATERIALIZED VIEW bad WITH (pipeline.refresh_policy = 'full') AS SELECT * FROM missing;
CREATE MATERIALIZED VIEW bad WITH (pipeline.refresh_policy = 'full') AS SELECT missing FROM s;
CREATE MATERIALIZED VIEW bad WITH (pipeline.refresh_policy = 'full') AS SELECT 1 / 0 AS a;
CREATE TEMP TABLE tt (a int);
CREATE MATERIALIZED VIEW bad WITH (pipeline.refresh_policy = 'full') AS SELECT * FROM tt;
SELECT count(*) FROM datasets();
SELECT to_regclass('bad');
BEGIN;
CREATE MATERIALIZED VIEW undone WITH (pipeline.refresh_policy = 'full') AS SELECT * FROM s;
SELECT count(*) FROM undone;
ROLLBACK;
SELECT to_regclass('undone'), count(*) FROM datasets();
BEGIN;
CREATE MATERIALIZED VIEW undone WITH (pipeline.refresh_policy = 'full') AS SELECT * FROM s;
SAVEPOINT a;
INSERT INTO s VALUES (100, 'z', 1);
REFRESH MATERIALIZED VIEW undone;
SELECT count(*) FROM undone;
ROLLBACK TO a;
SELECT count(*) FROM undone;
REFRESH MATERIALIZED VIEW undone;
SELECT count(*) FROM undone;
COMMIT;
SELECT count(*) FROM undone;
DROP MATERIALIZED VIEW undone;

-- REFRESH in all its forms
INSERT INTO s VALUES (7, 'z', 7);
REFRESH MATERIALIZED VIEW m;
SELECT * FROM m ORDER BY g;
CREATE UNIQUE INDEX ON m (g);
INSERT INTO s VALUES (8, 'z', 8);
REFRESH MATERIALIZED VIEW CONCURRENTLY m;
SELECT * FROM m WHERE g = 'z';
REFRESH MATERIALIZED VIEW m WITH NO DATA;
SELECT * FROM m;
SELECT relispopulated FROM pg_class WHERE oid = 'm'::regclass;
REFRESH MATERIALIZED VIEW m;
SELECT * FROM m WHERE g = 'z';
PREPARE r AS SELECT v FROM m WHERE g = 'z';
EXECUTE r;
CREATE FUNCTION refresh_it() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO native.s VALUES (9, 'z', 9);
	REFRESH MATERIALIZED VIEW native.m;
	RETURN (SELECT v FROM native.m WHERE g = 'z');
END $$;
SELECT refresh_it();
EXECUTE r;
-- not while the session itself reads it
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM m;
FETCH 0 FROM c;
INSERT INTO s VALUES (10, 'z', 10);
REFRESH MATERIALIZED VIEW m;
ROLLBACK;
-- a change in the same statement's transaction, then an error: the old rows
BEGIN;
DELETE FROM s;
REFRESH MATERIALIZED VIEW m;
SELECT count(*) FROM m;
ROLLBACK;
SELECT count(*) FROM m;
REFRESH MATERIALIZED VIEW m;
SELECT count(*) FROM m;

-- names and owners
ALTER MATERIALIZED VIEW m RENAME TO m2;
ALTER MATERIALIZED VIEW m2 SET SCHEMA elsewhere;
SELECT * FROM datasets();
INSERT INTO s VALUES (11, 'y', 11);
REFRESH MATERIALIZED VIEW elsewhere.m2;
SELECT v FROM elsewhere.m2 WHERE g = 'y';
ALTER MATERIALIZED VIEW elsewhere.m2 RENAME COLUMN v TO total;
INSERT INTO s VALUES (12, 'y', 12);
REFRESH MATERIALIZED VIEW elsewhere.m2;
SELECT total FROM elsewhere.m2 WHERE g = 'y';
-- its sources are renamed: it follows, as a core view does
ALTER TABLE s RENAME TO src;
ALTER TABLE src RENAME v TO amount;
INSERT INTO src VALUES (13, 'y', 13);
REFRESH MATERIALIZED VIEW elsewhere.m2;
REFRESH MATERIALIZED VIEW renamed;
SELECT total FROM elsewhere.m2 WHERE g = 'y';
SELECT b FROM renamed WHERE a = 'y';
ALTER SCHEMA elsewhere RENAME TO elsewhere2;
SELECT dataset FROM pipeline.datasets WHERE dataset ~ 'm2';
ALTER SCHEMA elsewhere2 RENAME TO elsewhere;
GRANT USAGE, CREATE ON SCHEMA native, elsewhere TO regress_pln_owner;
ALTER MATERIALIZED VIEW elsewhere.m2 OWNER TO regress_pln_owner;
SELECT owner FROM pipeline.datasets WHERE dataset = 'elsewhere.m2';
INSERT INTO src VALUES (14, 'y', 14);
REFRESH MATERIALIZED VIEW elsewhere.m2;
SELECT total FROM elsewhere.m2 WHERE g = 'y';
GRANT SELECT ON src TO regress_pln_owner;
SET ROLE regress_pln_owner;
REFRESH MATERIALIZED VIEW elsewhere.m2;
RESET ROLE;
SELECT total FROM elsewhere.m2 WHERE g = 'y';
-- used columns cannot go, unused ones can
ALTER TABLE src DROP COLUMN amount;
ALTER TABLE src ALTER COLUMN amount TYPE bigint;
ALTER TABLE src ADD COLUMN spare int;
ALTER TABLE src DROP COLUMN spare;
REFRESH MATERIALIZED VIEW renamed;

-- nobody writes into it
INSERT INTO renamed VALUES ('q', 1);
DELETE FROM renamed;
TRUNCATE renamed;
-- DROP
CREATE VIEW above AS SELECT * FROM elsewhere.m2;
DROP MATERIALIZED VIEW elsewhere.m2;
DROP MATERIALIZED VIEW elsewhere.m2 CASCADE;
DROP TABLE src;
DROP TABLE src CASCADE;
SELECT * FROM datasets();
DROP MATERIALIZED VIEW vals;
SELECT * FROM datasets();

SET client_min_messages = warning;
DROP SCHEMA native, elsewhere CASCADE;
DROP OWNED BY regress_pln_owner;
DROP ROLE regress_pln_owner;
SELECT * FROM pipeline.datasets WHERE dataset ~ '^(native|elsewhere)';
SELECT count(*) FROM pg_class WHERE relnamespace = 'pipeline_data'::regnamespace AND relname ~ '^(native|elsewhere)';

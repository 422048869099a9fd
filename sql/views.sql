-- Materialized views: what core's REFRESH keeps is kept, definitions change in place where core
-- lets them, and are refused with the reason where not.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
RESET client_min_messages;
SET pipeline.messages = quiet;
CREATE ROLE regress_pln_owner;
CREATE ROLE regress_pln_reader;
CREATE SCHEMA views;
SET search_path = views, public;
CREATE TABLE s (id int PRIMARY KEY, g text, v numeric, long text);
INSERT INTO s SELECT i, chr(96 + i % 3 + 1), i, (SELECT string_agg(md5(i || '.' || j), '') FROM generate_series(1, 300) j) FROM generate_series(1, 9) i;
ALTER TABLE s ALTER long SET STORAGE EXTERNAL;
UPDATE s SET long = long;
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, g, v, long FROM views.s$$;
CREATE MATERIALIZED VIEW core AS SELECT id, g, v, long FROM s;

-- both have the same rows, out of line values too
CREATE FUNCTION same_as_core() RETURNS TABLE (missing bigint, too_many bigint, rows bigint, toasted bool) LANGUAGE plpgsql AS $$
BEGIN
	REFRESH MATERIALIZED VIEW views.core;
	RETURN QUERY SELECT (SELECT count(*) FROM (SELECT * FROM views.core EXCEPT ALL SELECT * FROM views.m) x),
		(SELECT count(*) FROM (SELECT * FROM views.m EXCEPT ALL SELECT * FROM views.core) x),
		(SELECT count(*) FROM views.m),
		(SELECT pg_relation_size(reltoastrelid) > 0 FROM pg_class WHERE oid = 'views.m'::regclass);
END $$;
SELECT * FROM same_as_core();

-- everything that users hang on it
CREATE UNIQUE INDEX m_id ON m (id);
CREATE INDEX m_part ON m (v) WHERE v > 3;
CREATE INDEX m_expr ON m ((upper(g))) INCLUDE (v) WITH (fillfactor = 70);
CREATE INDEX m_hash ON m USING hash (g);
CREATE INDEX m_brin ON m USING brin (id);
CREATE INDEX m_cov ON m (g COLLATE "C" DESC NULLS LAST, v numeric_ops);
ALTER INDEX m_id SET (fillfactor = 50);
ALTER INDEX m_expr ALTER COLUMN 1 SET STATISTICS 20;
CREATE STATISTICS m_stat (dependencies) ON g, v FROM m;
COMMENT ON MATERIALIZED VIEW m IS 'comment of the view';
COMMENT ON COLUMN m.v IS 'comment of the column';
COMMENT ON INDEX m_part IS 'comment of the index';
GRANT SELECT ON m TO regress_pln_reader;
GRANT SELECT (id) ON m TO PUBLIC;
ALTER MATERIALIZED VIEW m ALTER v SET STATISTICS 7;
ALTER MATERIALIZED VIEW m CLUSTER ON m_id;
CREATE VIEW above AS SELECT g, sum(v) AS v FROM m GROUP BY g;
CREATE FUNCTION state() RETURNS TABLE (what text) LANGUAGE sql AS $$
	SELECT format('index %s valid %s clustered %s %s %s', pg_get_indexdef(indexrelid), indisvalid, indisclustered,
		obj_description(indexrelid), (SELECT attstattarget FROM pg_attribute a WHERE a.attrelid = indexrelid AND attnum = 1))
	FROM pg_index WHERE indrelid = 'views.m'::regclass
	UNION ALL SELECT format('%s acl %s, options %s, comment %s', relkind, relacl, reloptions, obj_description(oid))
	FROM pg_class WHERE oid = 'views.m'::regclass
	UNION ALL SELECT format('column %s acl %s statistics %s comment %s', attname, attacl, attstattarget, col_description(attrelid, attnum))
	FROM pg_attribute WHERE attrelid = 'views.m'::regclass AND attnum > 0
	UNION ALL SELECT format('statistics %s', pg_get_statisticsobjdef(oid)) FROM pg_statistic_ext WHERE stxrelid = 'views.m'::regclass
	UNION ALL SELECT format('toast %s', (reltoastrelid::regclass::text = 'pg_toast.pg_toast_' || oid)) FROM pg_class WHERE oid = 'views.m'::regclass
	ORDER BY 1
$$;
CREATE TEMP TABLE before AS SELECT * FROM state();
SELECT * FROM before;
SELECT 'm'::regclass::oid AS oid \gset
INSERT INTO s VALUES (10, 'z', 1.0, (SELECT string_agg(md5(j::text), '') FROM generate_series(1, 400) j)), (11, NULL, NULL, NULL);
UPDATE s SET v = 5.00, long = long || 'y' WHERE id = 5;
REFRESH MATERIALIZED VIEW m;
SELECT * FROM same_as_core();
SELECT * FROM before EXCEPT SELECT * FROM state();
SELECT count(*) FROM before WHERE what IN (SELECT what FROM state());
SELECT 'm'::regclass::oid = :oid AS same_oid;
SELECT * FROM above ORDER BY 1;
-- the indexes give the new rows
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM m WHERE id = 10;
SELECT id FROM m WHERE id = 10;
SELECT id FROM m WHERE v > 3 ORDER BY v;
SELECT count(*) FROM m WHERE upper(g) = 'Z';
SELECT count(*) FROM m WHERE g = 'z';
RESET enable_seqscan;
RESET enable_bitmapscan;
-- again and again, after rewrites by others
VACUUM FULL m;
CLUSTER m;
REINDEX TABLE m;
VACUUM ANALYZE m;
DELETE FROM s WHERE id > 9;
REFRESH MATERIALIZED VIEW CONCURRENTLY m;
SELECT * FROM same_as_core();
SELECT * FROM before EXCEPT SELECT * FROM state();
-- nothing changed: nothing is written
SELECT pg_relation_filenode('m') AS node \gset
REFRESH MATERIALIZED VIEW m;
SELECT pg_relation_filenode('m') = :node AS same_file;
SELECT last_refresh_type FROM pipeline.datasets WHERE dataset = 'views.m';

-- a user's unique index that the new rows break
\set VERBOSITY terse
CREATE UNIQUE INDEX m_g ON m (g) WHERE id < 4;
INSERT INTO s VALUES (0, 'a', 1, 'x');
SELECT count(*) FROM m;
DO $$
BEGIN
	REFRESH MATERIALIZED VIEW views.m;
EXCEPTION WHEN unique_violation THEN
	RAISE NOTICE 'unique_violation';
END $$;
SELECT count(*) FROM m;
DROP INDEX m_g;
REFRESH MATERIALIZED VIEW m;
SELECT count(*) FROM m;
\set VERBOSITY default

-- the same columns: in place
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, g || '!' AS g, v * 2 AS v, long FROM views.s WHERE id > 3$$;
SELECT id, g, v FROM m ORDER BY id;
SELECT * FROM before EXCEPT SELECT * FROM state();
-- one column more at the end: in place
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, g, v, long, length(long) AS len, id % 2 = 0 AS even FROM views.s$$;
SELECT id, g, v, len, even FROM m ORDER BY id;
SELECT 'm'::regclass::oid = :oid AS same_oid;
SELECT * FROM before EXCEPT SELECT * FROM state();
SELECT * FROM above ORDER BY 1;
CREATE INDEX m_len ON m (len);
REFRESH MATERIALIZED VIEW m;
SELECT pg_get_viewdef('m');
-- anything else is refused, with the views that would break, and nothing happens
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, g, v::int AS v, long, length(long) AS len, true AS even FROM views.s$$;
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, g AS h, v, long, length(long) AS len, true AS even FROM views.s$$;
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, g, v FROM views.s$$;
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, nope FROM views.s$$;
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, g, v, long, 1 / 0 AS len, true AS even FROM views.s$$;
SELECT count(*), count(len) FROM m;
SELECT pg_get_viewdef('m');
-- the way through
DROP MATERIALIZED VIEW m CASCADE;
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.m AS SELECT id, g FROM views.s$$;
SELECT count(*) FROM m;

-- the owner's rights count, as in core
DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW views.n AS SELECT count(*) AS n, current_user::text AS who FROM views.s$$;
ALTER MATERIALIZED VIEW n OWNER TO regress_pln_owner;
GRANT USAGE, CREATE ON SCHEMA views TO regress_pln_owner;
INSERT INTO s VALUES (20, 'x', 1, 'x');
REFRESH MATERIALIZED VIEW n;
SELECT n, who FROM n;
GRANT SELECT ON s TO regress_pln_owner;
REFRESH MATERIALIZED VIEW n;
SELECT n, who FROM n;
SET ROLE regress_pln_reader;
REFRESH MATERIALIZED VIEW views.n;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA views CASCADE;
DROP ROLE regress_pln_owner, regress_pln_reader;
SELECT dataset FROM pipeline.datasets WHERE dataset LIKE 'views.%';
SELECT relname FROM pg_class WHERE relnamespace = 'pipeline_data'::regnamespace AND relname LIKE 'views%';

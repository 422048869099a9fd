-- Who may do what: runs, parameters, capture, private schemas, and user code, which always runs
-- as the owner of its dataset and security-restricted, whoever starts the update.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
RESET client_min_messages;
SET pipeline.messages = quiet;
-- the error of a statement, without the number of the update
CREATE FUNCTION public.refused(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || regexp_replace(SQLERRM, '^update \w+ of', 'update of');
END $$;
CREATE ROLE regress_pln_alice;
CREATE ROLE regress_pln_bob;
CREATE ROLE regress_pln_mallory;
CREATE SCHEMA ali AUTHORIZATION regress_pln_alice;
CREATE SCHEMA bob AUTHORIZATION regress_pln_bob;
CREATE SCHEMA mal AUTHORIZATION regress_pln_mallory;
GRANT USAGE ON SCHEMA ali, bob, mal TO PUBLIC;

-- EXECUTE = may run, and nothing else
SET ROLE regress_pln_alice;
CREATE TABLE ali.secret (id int, v text);
INSERT INTO ali.secret VALUES (1, 'top'), (NULL, 'bad');
CREATE PROCEDURE ali.p(region text DEFAULT 'north', src text DEFAULT 'secret') LANGUAGE pipeline AS $$
	CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION QUARANTINE ROW)
		AS SELECT id, v, '${region}' AS region FROM STREAM(secret);
	CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT count(*) AS n, current_user::text AS who FROM ${src};
	CREATE OR REFRESH PRIVATE MATERIALIZED VIEW hidden AS SELECT * FROM secret;
$$;
SELECT proacl FROM pg_proc WHERE oid = 'ali.p'::regproc;
SET ROLE regress_pln_bob;
CALL ali.p();
SET ROLE regress_pln_alice;
GRANT EXECUTE ON PROCEDURE ali.p TO regress_pln_bob;
CREATE OR REPLACE PROCEDURE ali.p(region text DEFAULT 'north', src text DEFAULT 'secret') LANGUAGE pipeline AS $$
	CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION QUARANTINE ROW)
		AS SELECT id, v, '${region}' AS region FROM STREAM(secret);
	CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT count(*) AS n, current_user::text AS who FROM ${src};
	CREATE OR REFRESH PRIVATE MATERIALIZED VIEW hidden AS SELECT * FROM secret;
$$;
SELECT proacl FROM pg_proc WHERE oid = 'ali.p'::regproc;
SET ROLE regress_pln_bob;
CALL ali.p();
CALL ali.p('north');
CALL ali.p('south');
CALL ali.p('north', 'pg_authid');
CALL pipeline.run_update('ali.p', parameters => '{"region": "south"}');
CALL pipeline.run_update('ali.p', full_refresh => true);
CALL pipeline.refresh('ali.m');
CALL pipeline.refresh('ali.t', full_refresh => true);
REFRESH MATERIALIZED VIEW ali.m;
DO LANGUAGE pipeline 'REFRESH MATERIALIZED VIEW ali.m';
DO LANGUAGE pipeline 'REFRESH STREAMING TABLE ali.t FULL';
DO LANGUAGE pipeline 'DROP MATERIALIZED VIEW ali.m';
DO LANGUAGE pipeline 'CREATE OR REFRESH STREAMING TABLE ali.t AS SELECT 1 AS id, NULL AS v, NULL AS region FROM STREAM(ali.secret)';
CREATE PROCEDURE bob.thief() LANGUAGE pipeline AS 'CREATE OR REFRESH MATERIALIZED VIEW ali.m AS SELECT 1 AS n, NULL::text AS who';
CALL bob.thief();
SELECT pipeline.expect('ali.t', 'x', 'true');
SELECT pipeline.drop_expectation('ali.t', 'has_id');
SELECT * FROM pipeline.try_expectation('ali.t', 'true');
SELECT * FROM pipeline.replay_quarantine('ali.t');
SELECT pipeline.disable_capture('ali.secret');
SELECT pipeline.allow_capture('ali.secret', 'regress_pln_bob');
SELECT * FROM ali.t;
SELECT * FROM ali.t_quarantine;
SELECT * FROM ali.m;
INSERT INTO ali.t VALUES (9);
-- private schemas
SELECT * FROM pipeline_internal.events;
SELECT * FROM pipeline_data."ali.t flow";
SELECT pipeline_internal.capture_insert();
SELECT pipeline_internal.guard_dml();
SELECT relname FROM pg_class WHERE relnamespace = 'pipeline_data'::regnamespace AND has_table_privilege(oid, 'SELECT');
CREATE TABLE bob.mine (id int);
CREATE TRIGGER x AFTER INSERT ON bob.mine EXECUTE FUNCTION pipeline_internal.capture_insert();
SELECT * FROM pipeline.change_logs;
SET pipeline.debug_point = 'rows written=kill';
SET pipeline.allowed_locations = '/';
-- the owner's view of it
SET ROLE regress_pln_alice;
SELECT * FROM ali.t;
SELECT * FROM ali.m;
SELECT id, v, _rules FROM ali.t_quarantine;
SELECT source, level FROM pipeline.change_logs ORDER BY source::text;
SELECT DISTINCT state, run_as FROM pipeline.updates;
SELECT relname, relowner::regrole, relacl FROM pg_class
	WHERE relnamespace = 'ali'::regnamespace AND relkind IN ('r', 'm') ORDER BY 1;
-- the owner may not change a streaming table by accident
INSERT INTO ali.t VALUES (9);
DELETE FROM ali.t;
TRUNCATE ali.t;
BEGIN;
SET LOCAL pipeline.allow_dml = on;
UPDATE ali.t SET v = 'erased';
SELECT * FROM ali.t;
ROLLBACK;
-- arguments are values, never SQL
CALL ali.p('x'' AS region FROM STREAM(secret); DROP TABLE secret; --');
CALL ali.p('north', 'secret; DROP TABLE secret');
CALL ali.p('north', 'secret, pg_authid');
CALL ali.p('north', '(SELECT 1)');
CALL ali.p('north', NULL);
SELECT count(*) FROM ali.secret;
CALL ali.p();

-- capture: ownership, TRIGGER, or allow_capture
SET ROLE regress_pln_alice;
CREATE TABLE ali.shared (id int);
INSERT INTO ali.shared VALUES (1);
SET ROLE regress_pln_bob;
DO LANGUAGE pipeline 'CREATE OR REFRESH STREAMING TABLE bob.s AS SELECT * FROM STREAM(ali.shared)';
SET ROLE regress_pln_alice;
GRANT SELECT ON ali.shared TO regress_pln_bob;
SET ROLE regress_pln_bob;
DO LANGUAGE pipeline 'CREATE OR REFRESH STREAMING TABLE bob.s AS SELECT * FROM STREAM(ali.shared)';
SELECT to_regclass('bob.s');
DO LANGUAGE pipeline 'CREATE OR REFRESH MATERIALIZED VIEW bob.v AS SELECT count(*) AS n FROM ali.shared';
SELECT tgname FROM pg_trigger WHERE tgrelid = 'ali.shared'::regclass;
SELECT last_refresh_type FROM pipeline.datasets WHERE dataset = 'bob.v';
SET ROLE regress_pln_alice;
SELECT pipeline.allow_capture('ali.shared', 'regress_pln_bob');
SET ROLE regress_pln_bob;
DO LANGUAGE pipeline 'CREATE OR REFRESH STREAMING TABLE bob.s AS SELECT * FROM STREAM(ali.shared)';
SELECT * FROM bob.s;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'ali.shared'::regclass ORDER BY 1;
-- bob's captures do not touch alice's writes, nor show him more than SELECT does
SET ROLE regress_pln_alice;
INSERT INTO ali.shared VALUES (2);
REVOKE SELECT ON ali.shared FROM regress_pln_bob;
SET ROLE regress_pln_bob;
DO LANGUAGE pipeline 'REFRESH STREAMING TABLE bob.s';
REFRESH MATERIALIZED VIEW bob.v;
SELECT * FROM bob.s;
SET ROLE regress_pln_alice;
GRANT SELECT (id) ON ali.shared TO regress_pln_bob;
SET ROLE regress_pln_bob;
DO LANGUAGE pipeline 'REFRESH STREAMING TABLE bob.s';
SELECT * FROM bob.s ORDER BY 1;
-- row security of the source holds for its readers
SET ROLE regress_pln_alice;
CREATE TABLE ali.rls (id int, who name);
ALTER TABLE ali.rls ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON ali.rls FOR SELECT USING (who = current_user);
INSERT INTO ali.rls VALUES (1, 'regress_pln_alice'), (2, 'regress_pln_bob');
GRANT SELECT, TRIGGER ON ali.rls TO regress_pln_bob;
SET ROLE regress_pln_bob;
DO LANGUAGE pipeline 'CREATE OR REFRESH STREAMING TABLE bob.r AS SELECT * FROM STREAM(ali.rls)';
DO LANGUAGE pipeline 'CREATE OR REFRESH MATERIALIZED VIEW bob.rv AS SELECT count(*) AS n, max(who) AS who FROM ali.rls';
SET ROLE regress_pln_alice;
INSERT INTO ali.rls VALUES (3, 'regress_pln_alice'), (4, 'regress_pln_bob');
RESET ROLE;
DO LANGUAGE pipeline 'REFRESH STREAMING TABLE bob.r';
REFRESH MATERIALIZED VIEW bob.rv;
SELECT * FROM bob.r ORDER BY 1;
SELECT * FROM bob.rv;

-- code of the owner: spy says as whom it runs, and whether it could become somebody else
SET ROLE regress_pln_mallory;
CREATE FUNCTION mal.spy(tag text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	power text := 'FREE';
BEGIN
	BEGIN
		PERFORM set_config('role', 'none', true);
	EXCEPTION WHEN insufficient_privilege THEN
		power := 'restricted';
	END;
	RAISE NOTICE '% runs as % %', tag, current_user, power;
	RETURN true;
END $$;
CREATE FUNCTION mal.spy_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM mal.spy(TG_ARGV[0]);
	RETURN NEW;
END $$;
CREATE DOMAIN mal.dom AS int CHECK (mal.spy('domain') OR value > 0);
CREATE TABLE mal.src (id int, v int);
CREATE VIEW mal.between_ AS SELECT id, v FROM mal.src WHERE mal.spy('view');
CREATE PROCEDURE mal.p() LANGUAGE pipeline AS $$
	CREATE OR REFRESH STREAMING TABLE t (
		CONSTRAINT c1 EXPECT (mal.spy('constant condition')) ON VIOLATION DROP ROW,
		CONSTRAINT c2 EXPECT (mal.spy('condition ' || v) AND v > 0) ON VIOLATION QUARANTINE ROW)
	AS SELECT id, v, mal.spy('constant of the query') AS a, mal.spy('query ' || v) AS b, v::mal.dom AS d
		FROM STREAM(src) WHERE mal.spy('filter');
	CREATE OR REFRESH MATERIALIZED VIEW m (CONSTRAINT c1 EXPECT (mal.spy('condition of the view')) ON VIOLATION DROP ROW)
		AS SELECT id, mal.spy('view column ' || v) AS b FROM between_;
$$;
RESET ROLE;
CALL mal.p();
SET ROLE regress_pln_mallory;
ALTER TABLE mal.t ADD CHECK (mal.spy('check') OR id > 0);
CREATE TRIGGER t1 BEFORE INSERT ON mal.t FOR EACH ROW EXECUTE FUNCTION mal.spy_trigger('before trigger');
CREATE TRIGGER t2 AFTER INSERT ON mal.t FOR EACH ROW EXECUTE FUNCTION mal.spy_trigger('after trigger');
CREATE TRIGGER t3 AFTER INSERT ON mal.t FOR EACH STATEMENT EXECUTE FUNCTION mal.spy_trigger('statement trigger');
CREATE TRIGGER t4 AFTER TRUNCATE ON mal.t FOR EACH STATEMENT EXECUTE FUNCTION mal.spy_trigger('truncate trigger');
CREATE INDEX ON mal.t ((mal.spy('index of the table ' || id)));
CREATE INDEX ON mal.m ((mal.spy('index of the view ' || id))) WHERE mal.spy('index condition ' || id);
INSERT INTO mal.src VALUES (3, 3), (4, -4);
RESET ROLE;
CALL mal.p();
DO LANGUAGE pipeline 'REFRESH STREAMING TABLE mal.t FULL';
UPDATE mal.t_quarantine SET v = 4 WHERE id = 4;
SELECT * FROM pipeline.replay_quarantine('mal.t');
REFRESH MATERIALIZED VIEW mal.m;
-- a trigger that would run after the owner switch has ended
SET ROLE regress_pln_mallory;
CREATE CONSTRAINT TRIGGER t5 AFTER INSERT ON mal.t DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION mal.spy_trigger('deferred trigger');
INSERT INTO mal.src VALUES (7, 7);
RESET ROLE;
SELECT public.refused('DO LANGUAGE pipeline ''REFRESH STREAMING TABLE mal.t''');
SELECT count(*) FROM mal.t WHERE id = 7;
SET ROLE regress_pln_mallory;
DROP TRIGGER t5 ON mal.t;
CREATE CONSTRAINT TRIGGER t5 AFTER INSERT ON mal.t DEFERRABLE INITIALLY IMMEDIATE
	FOR EACH ROW EXECUTE FUNCTION mal.spy_trigger('deferrable trigger');
RESET ROLE;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
SELECT public.refused('DO LANGUAGE pipeline ''REFRESH STREAMING TABLE mal.t''');
COMMIT;
SELECT count(*) FROM mal.t WHERE id = 7;
DROP TRIGGER t5 ON mal.t;
-- triggers on the quarantine table are refused as a whole
CREATE TRIGGER q1 BEFORE INSERT ON mal.t_quarantine FOR EACH ROW EXECUTE FUNCTION mal.spy_trigger('quarantine trigger');
INSERT INTO mal.src VALUES (-8, -8);
SELECT public.refused('DO LANGUAGE pipeline ''REFRESH STREAMING TABLE mal.t''');
DROP TRIGGER q1 ON mal.t_quarantine;
-- files are read with the owner's rights, not with the caller's
SET ROLE regress_pln_mallory;
CREATE PROCEDURE mal.files() LANGUAGE pipeline AS $$
	CREATE OR REFRESH STREAMING TABLE passwords AS SELECT * FROM STREAM read_files('/etc/passwd', format => 'text');
$$;
RESET ROLE;
CALL mal.files();
-- names: a temporary table or a search_path of the caller does not get between
SET ROLE regress_pln_mallory;
CREATE TABLE mal.secret (id int, v text);
INSERT INTO mal.secret VALUES (666, 'false');
CREATE FUNCTION mal.count() RETURNS int LANGUAGE sql AS 'SELECT -1';
RESET ROLE;
GRANT EXECUTE ON PROCEDURE ali.p TO regress_pln_mallory;
SET ROLE regress_pln_mallory;
SET search_path = mal, pg_temp, pg_catalog;
CREATE TEMP TABLE secret (id int, v text);
INSERT INTO secret VALUES (667, 'false');
CALL ali.p();
RESET search_path;
RESET ROLE;
SELECT count(*) FROM ali.t WHERE id > 600;
SELECT n FROM ali.m;

SET client_min_messages = warning;
DROP OWNED BY regress_pln_alice, regress_pln_bob, regress_pln_mallory CASCADE;
DROP FUNCTION public.refused;
DROP ROLE regress_pln_alice, regress_pln_bob, regress_pln_mallory;
SELECT relname FROM pg_class WHERE relnamespace = 'pipeline_data'::regnamespace AND relname ~ '^(ali|bob|mal)';

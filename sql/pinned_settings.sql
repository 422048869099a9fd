-- The session that starts an update does not matter: results depend on the settings under which
-- a pipeline was defined.  A dataset never mixes two answers.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
SET pipeline.messages = quiet;
CREATE SCHEMA pinned;
CREATE SCHEMA decoy;
CREATE TABLE pinned.s (id int, at timestamptz, d text, f float8, i interval);
CREATE TABLE decoy.s (id int, at timestamptz, d text, f float8, i interval);
CREATE TABLE pinned.days (day date, name text);
CREATE FUNCTION pinned.label() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'pinned' $$;
CREATE FUNCTION decoy.label() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'decoy' $$;
CREATE FUNCTION decoy.lower(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'decoy' $$;
CREATE FUNCTION decoy.plus(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT -1 $$;
CREATE OPERATOR decoy.+ (FUNCTION = decoy.plus, LEFTARG = int, RIGHTARG = int);

SET TimeZone = 'America/New_York';
SET DateStyle = 'ISO, DMY';
SET IntervalStyle = 'postgres';
CREATE PROCEDURE pinned.p() LANGUAGE pipeline AS $$
	CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT in_march EXPECT (d::date >= '01/03/2026') ON VIOLATION QUARANTINE ROW)
	AS SELECT id, at::date AS day, to_char(at, 'HH24:MI TZ') AS clock, d::date AS d, at::text AS at_text, f::text AS f,
		i::text AS i, lower('ABC') AS low, label() AS label, id + 1 AS next
	FROM STREAM(s);
	CREATE OR REFRESH MATERIALIZED VIEW v AS SELECT date_trunc('day', at)::text AS day, count(*) AS n, min(d::date)::text AS d,
		string_agg(f::text || i::text, ' ' ORDER BY id) AS texts, max(label()) AS label FROM s GROUP BY 1;
$$;
INSERT INTO pinned.s VALUES (1, '2026-03-02 03:30+00', '04/03/2026', 0.1, '1 day 2 hours');
CALL pinned.p();
SELECT t.* FROM pinned.t;
SELECT * FROM pinned.v;

-- the same from a session of another place, with a path of its own
\c -
\set VERBOSITY terse
SET client_min_messages = warning;
SET pipeline.messages = quiet;
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'German, MDY';
SET IntervalStyle = 'iso_8601';
SET extra_float_digits = -10;
SET search_path = decoy, pg_temp, pg_catalog;
SET bytea_output = 'escape';
SET standard_conforming_strings = off;
SET default_text_search_config = 'german';
CREATE TEMP TABLE s (id int, at timestamptz, d text, f float8, i interval);
INSERT INTO pinned.s VALUES (2, '2026-03-02 04:30+00', '05/03/2026', 0.30000000000000004, '1 day 2 hours'),
	(3, '2026-03-03 03:30+00', '06/02/2026', 0.2, '1 mon');
CALL pinned.p();
SHOW TimeZone;
SHOW search_path;
SHOW extra_float_digits;
SHOW DateStyle;
RESET ALL;
SET client_min_messages = warning;
SET pipeline.messages = quiet;
SELECT id, day, clock, d, at_text, f, i, low, label, next FROM pinned.t ORDER BY id;
SELECT id, d, day FROM pinned.t_quarantine;
SELECT * FROM pinned.v ORDER BY day;

-- native REFRESH, run_update, replay, and a failed update leave nothing of ours behind
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'SQL, MDY';
SET search_path = decoy;
SET statement_timeout = '100s';
INSERT INTO pinned.s VALUES (4, '2026-03-03 04:30+00', '07/03/2026', 0.4, '2 days');
REFRESH MATERIALIZED VIEW pinned.v;
UPDATE pinned.t_quarantine SET d = '2026-03-06';
SELECT * FROM pipeline.replay_quarantine('pinned.t');
BEGIN;
INSERT INTO pinned.s VALUES (5, now(), 'no date', 0, '0');
DO $$
BEGIN
	CALL pinned.p();
EXCEPTION WHEN invalid_datetime_format THEN
	RAISE WARNING 'invalid date; TimeZone %, DateStyle %, search_path %', current_setting('TimeZone'), current_setting('DateStyle'), current_setting('search_path');
END $$;
SHOW TimeZone;
SHOW search_path;
SHOW statement_timeout;
ROLLBACK;
RESET ALL;
SET client_min_messages = warning;
SET pipeline.messages = quiet;
SELECT id, clock, d FROM pinned.t ORDER BY id;
SELECT * FROM pinned.v ORDER BY day;

-- the whole is what the definition's session would compute
SET TimeZone = 'America/New_York';
SET DateStyle = 'ISO, DMY';
SET search_path = pinned;
SELECT * FROM pinned.v EXCEPT ALL
SELECT date_trunc('day', at)::text, count(*), min(d::date)::text, string_agg(f::text || i::text, ' ' ORDER BY id), max(label()) FROM pinned.s GROUP BY 1;

-- defined again elsewhere: computed anew, in one piece
SET TimeZone = 'UTC';
CREATE OR REPLACE PROCEDURE pinned.p() LANGUAGE pipeline AS $$
	CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT in_march EXPECT (d::date >= '01/03/2026') ON VIOLATION QUARANTINE ROW)
	AS SELECT id, at::date AS day, to_char(at, 'HH24:MI TZ') AS clock, d::date AS d, at::text AS at_text, f::text AS f,
		i::text AS i, lower('ABC') AS low, label() AS label, id + 1 AS next
	FROM STREAM(s);
	CREATE OR REFRESH MATERIALIZED VIEW v AS SELECT date_trunc('day', at)::text AS day, count(*) AS n, min(d::date)::text AS d,
		string_agg(f::text || i::text, ' ' ORDER BY id) AS texts, max(label()) AS label FROM s GROUP BY 1;
$$;
SET TimeZone = 'Asia/Tokyo';
CALL pinned.p();
SELECT * FROM pinned.v ORDER BY day;
SELECT last_refresh_type FROM pipeline.datasets WHERE dataset = 'pinned.v';

RESET ALL;
SET client_min_messages = warning;
DROP PROCEDURE pinned.p;
DROP SCHEMA pinned, decoy CASCADE;

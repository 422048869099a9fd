-- JSON files: inference, conversion, malformed records, both layouts.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
RESET client_min_messages;
CREATE SCHEMA files_json;
SET search_path = files_json, pg_catalog;
SET TimeZone = 'UTC';

-- Landing folders of this test, below the data directory.
CREATE FUNCTION dir(name text DEFAULT '') RETURNS text LANGUAGE sql SECURITY DEFINER AS
	$$SELECT current_setting('data_directory') || '/files_json/' || name$$;
CREATE FUNCTION sh(command text) RETURNS void LANGUAGE plpgsql AS
	$$BEGIN EXECUTE format('COPY (SELECT 1 WHERE false) TO PROGRAM %L',
		format('cd %s && { %s; }', current_setting('data_directory'), command)); END$$;
-- Bytes of a new file, exactly.
CREATE FUNCTION put(name text, content bytea) RETURNS void LANGUAGE plpgsql AS
	$$BEGIN
		PERFORM sh(format('mkdir -p "$(dirname "%s")"', dir(name)));
		EXECUTE format('COPY (SELECT %L) TO PROGRAM %L',
			replace(encode(content, 'base64'), E'\n', ''), format('base64 -d > "%s"', dir(name)));
	END$$;
CREATE FUNCTION put(name text, content text) RETURNS void LANGUAGE sql AS
	$$SELECT put(name, convert_to(content, 'UTF8'))$$;
CREATE FUNCTION hide(t text) RETURNS text LANGUAGE sql AS
	$$SELECT replace(replace(t, dir(), 'DIR/'), rtrim(dir(), '/'), 'DIR')$$;
CREATE FUNCTION schema_of(name text, options jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS
	$$SELECT string_agg(format('%I %s', column_name, data_type), ', ')
		FROM pipeline.infer_schema(dir(name), NULL, options)$$;
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS
	$$DECLARE m text; d text; h text;
	BEGIN EXECUTE statement; RETURN 'no error';
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
		RETURN hide(concat_ws(E'\n', SQLSTATE || ' ' || m, nullif(d, ''), nullif(h, ''))); END$$;
-- What reading gives, as JSON per row; NULL members are left out.
CREATE FUNCTION counts(name text, options jsonb DEFAULT '{}')
	RETURNS TABLE (file text, "rows" int8, malformed int8, rescued int8, dropped int8, lost int8)
	LANGUAGE sql AS
	$$SELECT hide(file_path), "rows", malformed, rescued, dropped, lost
		FROM pipeline_internal.list_files(dir(name), options, true)$$;
CREATE FUNCTION read(name text, options jsonb DEFAULT '{}') RETURNS SETOF text
	LANGUAGE plpgsql AS
	$$BEGIN RETURN QUERY EXECUTE (SELECT format(
		'SELECT hide(jsonb_strip_nulls(to_jsonb(r))::text) FROM pipeline.read_files(%L, %L) AS r (%s)',
		dir(name), options, schema_of(name, options))); END$$;
SELECT sh('rm -rf files_json');

-- ---- inference ----
-- union of keys, widest fitting type, NULL where absent
SELECT put('types/a.json', $J${"id": 1, "price": 10, "ok": true, "tag": null}
{"id": 2, "price": 10.5, "extra": {"x": [1, 2]}}
{"id": 3}
{"id": 4, "ok": false, "tag": "late", "price": -1e2}
$J$);
SELECT schema_of('types');
SELECT * FROM read('types');
-- without types: text, nested values as they are written
SELECT schema_of('types', '{"inferColumnTypes": false}');
SELECT * FROM read('types', '{"inferColumnTypes": "false"}') LIMIT 2;
SELECT schema_of('types', '{"primitivesAsString": true}');
SELECT schema_of('types', '{"prefersDecimal": true, "dropFieldIfAllNull": true}');

-- numbers keep what was written
SELECT put('numbers/a.json', $J${"big": 9223372036854775807, "huge": 9223372036854775808, "d": 0.30000000000000004, "long": 0.1234567890123456789, "mix": 1, "id": 9007199254740993}
{"big": -9223372036854775808, "huge": 1, "d": 2.50, "long": 1.5, "mix": 1.25, "id": 1.5, "n": NaN}
$J$);
SELECT schema_of('numbers');
SELECT big, huge, d, long, mix, id, n FROM pipeline.read_files(dir('numbers'), '{}')
	AS (big bigint, huge numeric, d float8, long numeric, mix float8, id numeric, n float8);

-- conflicts become text, and text keeps the spelling
SELECT put('conflict/a.json', $J${"a": 1, "b": true, "c": {"k": 1.50}, "d": [1]}
{"a": "x", "b": 0, "c": "s", "d": {"k":  "v"}}
$J$);
SELECT schema_of('conflict');
SELECT * FROM read('conflict');

-- strings stay text unless a type is given
SELECT put('digits/a.json', $J${"zip": "00501", "when": "07-04-2031", "u": "A0EE00C1-0000-4000-8000-0000000000FE", "n": "12", "e": ""}
$J$);
SELECT schema_of('digits');
SELECT * FROM read('digits');
SELECT schema_of('digits', '{"schemaHints": "n int, zip STRING, u uuid"}');
SELECT * FROM read('digits', '{"schemaHints": "n int, zip STRING, u uuid"}');
SELECT schema_of('digits', '{"schema": "n INT, zip STRING"}');
SELECT * FROM read('digits', '{"schema": "n INT, zip STRING"}');
-- times are text unless asked for
SELECT put('times/a.json', $J${"t": "2026-03-01T08:00:00Z", "l": "2026-03-01 08:00:00.25"}
$J$);
SELECT schema_of('times'), schema_of('times', '{"inferTimestamp": true}');
SELECT * FROM read('times', '{"inferTimestamp": true}');
SELECT * FROM read('times', '{"schema": "t TIMESTAMP, l TIMESTAMP_NTZ"}');

-- names: folded for SQL, exact in files; case conflicts; duplicate keys; odd names
SELECT put('names/a.json', $J${"userId": 1, "USERID": 2, "user id": 3, "": 4, "xmin": 5, "_rescued_data": 6}
{"userId": 7, "userId": 8, "\u0075serId": 9, "k\u00e4se": 1, "x": 1, "x": null}
$J$);
SELECT schema_of('names');
SELECT * FROM read('names');
SELECT * FROM read('names', '{"readerCaseSensitive": false}') LIMIT 1;
SELECT schema_of('names', '{"rescuedDataColumn": "saved"}');
SELECT schema_of('names', '{"schemaEvolutionMode": "none"}');

-- ---- explicit types and misfits ----
SELECT put('misfit/a.json', $J${"i": 1, "s": 70000, "d": 12.345, "b": "yes", "day": "2024-02-29", "t": "x", "j": "text", "u": "no uuid", "v": "abc"}
{"i": 2147483648, "s": "7", "d": 1e9, "b": 1, "day": "2024-02-30", "t": 1, "j": [1, NaN], "u": null, "v": "abcdef"}
{"i": "x", "s": 1.0, "d": "1e400", "b": false, "day": 20240301, "t": {"a":  1}, "j": null, "new": {"k": "v"}}
$J$);
\set misfit '{"schema": "i int, s smallint, d DECIMAL(5,2), b boolean, day date, t string, j VARIANT, u uuid, v varchar(4)", "rescuedDataColumn": "_rescued_data"}'
SELECT schema_of('misfit', :'misfit');
SELECT * FROM read('misfit', :'misfit');
SELECT * FROM counts('misfit', :'misfit');
-- no rescued column: counted as lost, or the record is kept, or left out
\set misfit '{"schema": "i int, day date"}'
SELECT * FROM read('misfit', :'misfit');
SELECT * FROM counts('misfit', :'misfit');
\set misfit '{"schema": "i int, day date, _corrupt_record string"}'
SELECT * FROM read('misfit', :'misfit');
SELECT * FROM counts('misfit', :'misfit');
\set misfit '{"schema": "i int, day date", "mode": "DROPMALFORMED"}'
SELECT * FROM read('misfit', :'misfit');
SELECT * FROM counts('misfit', :'misfit');
SELECT error_of($$SELECT * FROM read('misfit', '{"schema": "i int", "mode": "failfast"}')$$);
-- FAILFAST with a rescued column that the user named: misfits are rescued
SELECT * FROM read('misfit', '{"schema": "i int", "mode": "failfast", "rescuedDataColumn": "_r"}');
-- types without a check of their own: anything but the value's fault is an error
CREATE DOMAIN small AS int CHECK (VALUE < 10);
CREATE FUNCTION broken(int) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE insufficient_privilege; END$$;
CREATE DOMAIN broken AS int CHECK (broken(VALUE));
SELECT put('domain/a.json', $J${"v": 5, "c": "pg_class"}
{"v": 50, "c": "no_such_table"}
$J$);
SELECT * FROM read('domain', '{"schema": "v small, c regclass", "rescuedDataColumn": "_r"}');
SELECT error_of($$SELECT * FROM read('domain', '{"schema": "v broken", "rescuedDataColumn": "_r"}')$$);
-- what no text can hold
SELECT put('zero/a.json', $J${"id": 1, "s": "a\u0000b", "o": {"k": "\ud800"}, "ok": "\ud83d\ude00 \"\\\/\b\f\n\r\t"}
$J$);
SELECT * FROM read('zero');
SELECT count(*) FILTER (WHERE f.s IS NULL), count(*) FILTER (WHERE f.o IS NULL)
	FROM pipeline.read_files(dir('zero'), '{"schema": "s string, o variant"}') AS f (s text, o jsonb);

-- ---- malformed records ----
SELECT put('bad/a.json', $J${"id": 1}
{"id": 2, "s": "unfinished
{"id": 3}
not json at all

{"id": 4} trailing
[{"id": 5}]
$J$);
SELECT * FROM read('bad');
SELECT * FROM counts('bad');
SELECT * FROM read('bad', '{"columnNameOfCorruptRecord": "raw"}');
SELECT * FROM read('bad', '{"mode": "DROPMALFORMED"}');
SELECT * FROM counts('bad', '{"mode": "DROPMALFORMED"}');
SELECT error_of($$SELECT * FROM read('bad', '{"mode": "FAILFAST"}')$$);
-- every way to be malformed
SELECT put('worse/a.json', E'{"id": 1}\n{"id": 01}\n{"id": +1}\n{"id": .5}\n{"id": 1.}\n{"id": 1e}\n{"id": tru}\n{"id": "a\tb"}\n{"id": "\\x"}\n{"id": "\\u12"}\n{"id": 1,}\n{"id": [1,]}\n{"id": {"a"}}\n{"id" 1}\n{id: 1}\n{\'id\': 1}\n{"id": [1}\n{"id": {"a": 1]}\n{\n5\n"s"\nnull\n[]\n[1]\n[{"id": 2}, 3]\n[{"id": 2}\n{"id": 1}{"id": 2}\n \t\r\n  {"id": 7}  ');
SELECT * FROM read('worse');
SELECT * FROM counts('worse');
-- nesting beyond the limit is malformed, not an error
SELECT put('deep/a.json', '{"id": 1, "a": ' || repeat('[', 499) || repeat(']', 499) || '}'
	|| E'\n{"id": 2, "a": ' || repeat('[', 100000) || repeat(']', 100000) || E'}\n');
SELECT id, length(a::text), left(_rescued_data, 40) FROM pipeline.read_files(dir('deep'), '{}')
	AS (id bigint, a jsonb, _rescued_data text);
SELECT * FROM counts('deep', '{"maxNestingDepth": 10}');
-- bytes that are no UTF-8, and a NUL
SELECT put('bytes/a.json', '\x7b226964223a20317d0a7b226964223a202261ff62227d0a7b226964223a2022610062227d0a'::bytea);
SELECT * FROM read('bytes');
SELECT * FROM read('bytes', '{"columnNameOfCorruptRecord": "raw"}');
-- other encodings
SELECT put('latin/a.json', '\x7b2273223a2022e4f6fc227d0a'::bytea);
SELECT * FROM read('latin', '{"encoding": "ISO-8859-1"}');
SELECT put('utf16/a.json', '\xfffe7b00'::bytea);
SELECT error_of($$SELECT * FROM read('utf16')$$);

-- ---- layouts ----
SELECT put('multi/a.json', E'[{"id": 1},\n {"id": 2}]');
SELECT put('multi/b.json', E'{"id": 3}\n{"id": 4}\n');
SELECT put('multi/c.json', E'{\n"id": 5\n}\n');
SELECT * FROM read('multi', '{"multiLine": true}');
SELECT * FROM counts('multi', '{"multiLine": true}');
SELECT * FROM read('multi');
SELECT error_of($$SELECT * FROM read('multi', '{"mode": "FAILFAST"}')$$);
-- damaged documents: what comes before is kept, the rest is one malformed record
SELECT put('damaged/a.json', E'[{"id": 1}, {"id": tru}, 7, {"id": "]}"}\n {"id": 3}]');
SELECT put('damaged/b.json', E'[{"id": 1}, {"id": 2');
SELECT put('damaged/c.json', E'[{"id": 1}, ]');
SELECT put('damaged/d.json', E'[{"id": 1}');
SELECT put('damaged/e.json', E'[]\n\n[ ]');
SELECT * FROM read('damaged', '{"multiLine": true}');
SELECT * FROM counts('damaged', '{"multiLine": true}');
-- CRLF, CR, no line end, byte order mark, nothing at all
SELECT put('ends/crlf.json', E'\uFEFF{"id": 1}\r\n{"id": 2}\r\n');
SELECT put('ends/cr.json', E'{"id": 3}\r{"id": 4}');
SELECT put('ends/empty.json', '');
SELECT put('ends/blank.json', E'\n\r\n\n');
SELECT * FROM read('ends');
SELECT * FROM counts('ends');
-- a record longer than any buffer, in both layouts
SELECT put('long/a.json', '{"id": 1, "s": "' || repeat('x', 3000000) || E'"}\n{"id": 2, "s": "y"}');
SELECT id, length(s) FROM pipeline.read_files(dir('long'), '{}') AS (id bigint, s text);
SELECT id, length(s) FROM pipeline.read_files(dir('long'), '{"multiLine": true}') AS (id bigint, s text);
-- compressed, also in several members, truncated, and damaged
SELECT sh($$cd files_json && mkdir gz && printf '{"id": 1}\n' | gzip > gz/a.json.gz && printf '{"id": 2}\n{"id": 3}\n' | gzip >> gz/a.json.gz$$);
SELECT * FROM read('gz');
SELECT sh($$cd files_json && mkdir cut && for i in $(seq 1000); do echo "{\"id\": $i}"; done | gzip | head -c 1500 > cut/b.json.gz && echo '{"id": 0}' > cut/a.json$$);
SELECT error_of($$SELECT * FROM read('cut')$$);
SELECT count(*) > 0 FROM read('cut', '{"ignoreCorruptFiles": true}');
SELECT put('zst/a.json.zst', 'x');
SELECT error_of($$SELECT * FROM read('zst')$$);

-- the acceptance data keep their decimals
SELECT put('parcels/a.json', $J${"scan_id": 1, "weight_kg": 2.50}
{"scan_id": null, "weight_kg": 1200}
{"scan_id": 8, "weight_kg": 10.10}
{"weight_kg": 3.333}
{"scan_id": 9, "weight_kg": null}
$J$);
SELECT scan_id, weight_kg, weight_kg::numeric(10,2)
	FROM pipeline.read_files(dir('parcels'), '{}') AS (scan_id bigint, weight_kg float8);

-- ---- the frozen schema ----
SELECT put('evolve/1.json', '{"id": 1, "qty": 5, "Amount": 1.5}');
SELECT jsonb_pretty(pipeline_internal.file_schema(dir('evolve'), '{"schemaHints": "amount DECIMAL(10,2), _corrupt_record STRING"}'));
CREATE TABLE frozen AS SELECT pipeline_internal.file_schema(dir('evolve')) AS s;
SELECT pipeline_internal.file_schema(dir('evolve'), '{}', s) = s FROM frozen;
SELECT put('evolve/2.json', $J${"id": 2, "qty": "seven"}
{"id": 3, "qty": 8, "new": "n", "ID": 4, "AMOUNT": 1, "_rescued_data": 0}
{"id": 4, "qty": {"n": 9}, "xmin": true}
$J$);
-- new columns follow, known ones keep their types, other spellings are not new
SELECT c->>'name', c->>'source', c->>'type'
	FROM frozen, jsonb_array_elements(pipeline_internal.file_schema(dir('evolve'), '{}', s)->'columns') AS c;
SELECT mode, pipeline_internal.file_schema(dir('evolve'), jsonb_build_object('schemaEvolutionMode', mode), s) = s
	FROM frozen, unnest('{rescue,none}'::text[]) AS mode;
SELECT error_of($$SELECT pipeline_internal.file_schema(dir('evolve'), '{"schemaEvolutionMode": "failOnNewColumns"}', s) FROM frozen$$);
SELECT c->>'name', c->>'type'
	FROM frozen, jsonb_array_elements(pipeline_internal.file_schema(dir('evolve'), '{"schemaEvolutionMode": "failOnNewColumns", "schemaHints": "new varchar(9), xmin string, qty string"}', s)->'columns') AS c;
SELECT error_of($$SELECT pipeline_internal.file_schema(dir('evolve'), '{}', '{"columns": 1}')$$);
SELECT error_of($$SELECT pipeline_internal.file_schema(dir('evolve'), '{}', '{"format": "json", "columns": [{"name": "x"}]}')$$);

SELECT sh('rm -rf files_json');
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA files_json CASCADE;

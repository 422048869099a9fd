-- CSV and text files: quoting, nulls, inference, headers, misfits.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
RESET client_min_messages;
CREATE SCHEMA files_csv;
SET search_path = files_csv, pg_catalog;
SET TimeZone = 'UTC';

-- Landing folders of this test, below the data directory.
CREATE FUNCTION dir(name text DEFAULT '') RETURNS text LANGUAGE sql SECURITY DEFINER AS
	$$SELECT current_setting('data_directory') || '/files_csv/' || name$$;
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
SELECT sh('rm -rf files_csv');

-- ---- RFC 4180 ----
SELECT put('rfc/a.csv', E'\uFEFFid,name,note\r\n1,"a, b","line one\r\nline two"\r\n2,"say ""hi""",\r\n3, padded ,"x"');
SELECT schema_of('rfc', '{"header": true}');
SELECT * FROM read('rfc', '{"header": true}');
SELECT put('rfc/a.csv', E'\uFEFFid,name,note\r\n' || repeat(E'9,z,z\r\n', 5000) ||
	E'1,"a, b","line one\r\nline two"\r\n2,"say ""hi""",\r\n3, padded ,"x"');
SELECT count(*), count(*) FILTER (WHERE name = 'z') FROM pipeline.read_files(dir('rfc'), '{"header": true}')
	AS (name text);
SELECT * FROM read('rfc', '{"header": true, "ignoreLeadingWhiteSpace": true, "ignoreTrailingWhiteSpace": true}') OFFSET 5002;

-- escapes: a backslash before a quote, a doubled quote, or a backslash that means itself
SELECT put('escape/a.csv', $C$id,v
1,"{\"a\":\"b\",\"c\":1}"
2,"C:\dir\"
3,"say ""hi"""
4,"two\\"
5,"mid"dle,x
6,in"side
7,"a\b"
$C$);
SELECT * FROM read('escape', '{"header": true}');
SELECT * FROM read('escape', '{"header": true, "escape": "\""}');
SELECT * FROM read('escape', '{"header": true, "quote": ""}') LIMIT 2;
SELECT put('quote/a.csv', E'id;v\n1;\'a;b\'\n# no row\n2;\'it\'\'s\'\n');
SELECT * FROM read('quote', '{"header": true, "sep": ";", "quote": "''", "comment": "#"}');
SELECT put('sep/a.csv', E'id||v\n1||a|b\n2||"x||y"\n');
SELECT * FROM read('sep', '{"header": true, "delimiter": "||"}');
SELECT put('tsv/a.tsv', E'id\tv\n1\ta,b\n');
SELECT put('tsv/b.csv', E'id,v\n2,"a\tb"\n');
SELECT * FROM read('tsv', '{"header": true}');

-- a quote that is never closed costs its line and no other
SELECT put('open/a.csv', E'id,v\n1,a\n2,"open\n3,c\n4,"d"\n5,"also open\n6,f');
SELECT * FROM read('open', '{"header": true}');
SELECT * FROM counts('open', '{"header": true}');
SELECT * FROM read('open', '{"header": true, "mode": "DROPMALFORMED"}');
SELECT error_of($$SELECT * FROM read('open', '{"header": true, "mode": "FAILFAST"}')$$);
-- ... nor does the search for its end go on for ever
SELECT put('reach/a.csv', E'id,v\n1,"open\n' || repeat(E'2,x\n', 400000));
SELECT count(*), count(id), min(left(_rescued_data, 40)) FROM pipeline.read_files(dir('reach'), '{"header": true}')
	AS (id int, _rescued_data text);

-- ---- nulls ----
SELECT put('null/a.csv', E'id,s,n\n1,,\n2,"",5\n3,NULL,6\n4,\\N,7\n');
SELECT id, s, s IS NULL AS is_null, n FROM pipeline.read_files(dir('null'), '{"header": true}') AS (id int, s text, n int);
SELECT id, s, s IS NULL AS is_null, n FROM pipeline.read_files(dir('null'), '{"header": true, "nullValue": "NULL", "emptyValue": "-"}')
	AS (id int, s text, n int);

-- ---- inference ----
SELECT put('zeros/a.csv', E'acct,phone,big,flag,day\n00123,+4917,12345678901234567890,1,2024-02-30\n00456,0049,2,0,2024-03-01\n');
SELECT schema_of('zeros', '{"header": true}');
SELECT * FROM read('zeros', '{"header": true}');
SELECT put('kinds/a.csv', E'i,l,n,d,exact,b,day,ts,tz,mixed,dt,inf,q,minus,e\n1,3000000000,99999999999999999999,1.5,0.12345678901234567890,true,2024-02-29,2024-01-01T10:00:00,2024-01-01 10:00:00+02:00,2024-01-01 10:00:00,2024-01-01,Inf,"7",-0,\n-2,1,1,NaN,1,FALSE,2024-03-01,2024-01-01 10:00:00.5,2024-01-01T10:00Z,2024-01-01T10:00:00Z,2024-01-01T10:00,x,"8",3,\n');
SELECT schema_of('kinds', '{"header": true}');
SELECT * FROM read('kinds', '{"header": true}');
SELECT schema_of('kinds', '{"header": true, "inferSchema": "false"}');
SELECT schema_of('kinds', '{"header": true, "schemaHints": "i STRING, `L` DOUBLE, extra DATE"}');
-- without header
SELECT put('bare/a.csv', E'1,x\n2,y,z\n3\n');
SELECT schema_of('bare');
SELECT * FROM read('bare');
SELECT schema_of('bare', '{"schema": "id INT, name STRING, more STRING COMMENT ''a, b'' NOT NULL"}');
SELECT * FROM read('bare', '{"schema": "id INT, name STRING"}');
SELECT * FROM counts('bare', '{"schema": "id INT, name STRING"}');
SELECT error_of($$SELECT * FROM read('bare', '{"schema": "id INT, name STRING", "mode": "FAILFAST"}')$$);
SELECT * FROM read('bare', '{"schema": "id INT, name STRING", "mode": "DROPMALFORMED"}');
-- headers: duplicates, gaps, case, columns in another order, columns missing and new
SELECT put('heads/a.csv', E'a,a,,B,b\n1,2,3,4,5\n');
SELECT schema_of('heads', '{"header": true}');
SELECT * FROM read('heads', '{"header": true}');
SELECT put('heads2/a.csv', E'id,v\n1,a\n');
SELECT put('heads2/b.csv', E'v,new,id\nb,n,2\n');
SELECT put('heads2/c.csv', E'v\nc\n');
SELECT put('heads2/d.csv', E'id,v\n');
SELECT * FROM read('heads2', '{"header": true}');
SELECT * FROM read('heads2', '{"header": true, "schema": "v string, id int"}');
SELECT error_of($$SELECT * FROM read('heads2', '{"header": true, "schema": "x string"}')$$);
SELECT put('skip/a.csv', E'made by hand\n"on" monday\nid,v\n\n1,a\n');
SELECT * FROM read('skip', '{"header": true, "skipRows": 2}');

-- a surprise behind the sample: rescued, or an error that names the line
SELECT sh($$mkdir files_csv/late && { echo n,s; seq -f '%.0f,w' 30000; echo '30001,"one, two"'; echo 3.5,w; echo n/a,w; } > files_csv/late/a.csv$$);
SELECT schema_of('late', '{"header": true}');
SELECT count(*), count(n), max(s) FILTER (WHERE n = 30001) FROM pipeline.read_files(dir('late'), '{"header": true}') AS (n int, s text);
SELECT n, s, hide(_rescued_data) FROM pipeline.read_files(dir('late'), '{"header": true}') AS (n int, s text, _rescued_data text)
	WHERE _rescued_data IS NOT NULL;
SELECT error_of($$SELECT * FROM read('late', '{"header": true, "mode": "FAILFAST"}')$$);

-- ---- conversion ----
SELECT put('convert/a.csv', E'n,f,d,t,b,j\n001,1.5,03/04/2024,2024.04.03 17:05,t,"{""a"": [1]}"\n+5,Infinity,30/02/2024,2024.04.03 25:05,no,{a}\n,"",,"","",""\n');
\set convert '{"header": true, "schema": "n BIGINT, f FLOAT, d DATE, t TIMESTAMP, b BOOLEAN, j VARIANT", "rescuedDataColumn": "_r", "dateFormat": "dd/MM/yyyy", "timestampFormat": "yyyy.MM.dd HH:mm[:ss]", "timeZone": "Europe/Berlin"}'
SELECT * FROM read('convert', :'convert');
SELECT put('formats/a.csv', E'"Mar 4, 2024 5:06:07 PM","4-3-24","Monday 20240304T101112.5+0130"\n');
SELECT * FROM pipeline.read_files(dir('formats'), '{"timestampFormat": "MMM d, yyyy h:mm:ss a", "schema": "a TIMESTAMP_NTZ"}') AS (a timestamp);
SELECT * FROM pipeline.read_files(dir('formats'), '{"dateFormat": "d-M-yy", "schema": "a STRING, b DATE"}') AS (b date);
SELECT * FROM pipeline.read_files(dir('formats'), $${"timestampFormat": "EEEE yyyyMMdd'T'HHmmss.SXX", "schema": "a STRING, b STRING, c TIMESTAMP"}$$) AS (c timestamptz);
-- NaN and infinities
SELECT put('special/a.csv', E'f\n1.5\nNaN\nInf\n-Inf\nn/a\n');
SELECT schema_of('special', '{"header": true, "nanValue": "n/a"}');
SELECT * FROM pipeline.read_files(dir('special'), '{"header": true, "nanValue": "n/a"}') AS (f float8);
-- encodings
SELECT put('latin/a.csv', '\x69642c76e90a312c22e4223b0a322cff0a'::bytea);
SELECT * FROM read('latin', '{"header": true, "encoding": "latin1"}');
SELECT put('bytes/a.csv', '\x69642c760a312c610a322c61ff620a332c630a'::bytea);
SELECT * FROM read('bytes', '{"header": true}');
-- CR line ends, one column with blank lines, a field longer than any buffer
SELECT put('cr/a.csv', E'id,v\r1,"a\rb"\r2,c');
SELECT * FROM read('cr', '{"header": true}');
SELECT put('one/a.csv', E'v\na\n\nb\n');
SELECT * FROM read('one', '{"header": true}');
SELECT put('long/a.csv', E'id,v\n1,"' || repeat(E'x\n', 400000) || E'"\n2,y\n');
SELECT id, length(v) FROM pipeline.read_files(dir('long'), '{"header": true}') AS (id int, v text);

-- ---- text ----
SELECT put('text/a.txt', E'first\n\n  third \r\nlast');
SELECT schema_of('text');
SELECT * FROM read('text');
SELECT put('text/b.txt', '\x61ff620a'::bytea);
SELECT * FROM read('text/b.txt');
SELECT * FROM counts('text');
SELECT error_of($$SELECT * FROM read('text', '{"mode": "FAILFAST"}')$$);
SELECT error_of($$SELECT * FROM read('text', '{"schema": "a int"}')$$);

SELECT sh('rm -rf files_csv');
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA files_csv CASCADE;

-- Which files a path stands for, who may read them, and the options of read_files.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pipeline;
RESET client_min_messages;
CREATE SCHEMA files_list;
SET search_path = files_list, pg_catalog;
SET TimeZone = 'UTC';

-- Landing folders of this test, below the data directory.
CREATE FUNCTION dir(name text DEFAULT '') RETURNS text LANGUAGE sql SECURITY DEFINER AS
	$$SELECT current_setting('data_directory') || '/files_list/' || name$$;
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
SELECT sh('rm -rf files_list');
CREATE FUNCTION names(path text, options jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS
	$$SELECT string_agg(hide(file_path), ' ' ORDER BY file_path COLLATE "C") FROM pipeline_internal.list_files(dir(path), options)$$;

-- ---- listing ----
SELECT put(n, 'x') FROM unnest('{a/m_05.json,a/M_05.json,a/m_06.json.tmp,a/.hidden,a/_SUCCESS,a/sub/b.json,a/sub/deep/c.csv,a/_tmp/d.json,a/b[1].json,a/é.json}'::text[]) AS n;
SELECT names('a');
SELECT names('a/m_05.json');
SELECT names('a/');
SELECT names('a/*.json');
SELECT names('a/*');
SELECT names('a/**/*.json');
SELECT names('a/*/*');
SELECT names('a/[mx]_0?.json'), names('a/[^m]_0[1-5].json'), names('a/?.json');
SELECT names('a/{m_05.json,sub/{b,x}.json}'), names('{a,b}/sub');
SELECT names('a/b[1].json'), names('a/b\[1\].json');
SELECT names('a/nothing*'), names('a/*/nothing.json');
SELECT names('a', '{"pathGlobFilter": "*.{json,csv}"}'), names('a', '{"fileNamePattern": "[a-c].*"}');
SELECT error_of($$SELECT names('missing')$$);
SELECT error_of($$SELECT names('missing/*.json')$$);
SELECT error_of($$SELECT names('a/[m')$$);
SELECT error_of($$SELECT names('a/{m')$$);
SELECT directory, file_name, file_size FROM pipeline_internal.list_files(dir('a/s*'));
-- links: followed, loops end, links to nowhere and pipes are no files
SELECT sh('cd files_list/a && ln -s .. sub/up && ln -s sub/b.json link.json && ln -s nowhere dead.json && mkfifo pipe.json');
SELECT names('a', '{"pathGlobFilter": "[bl]*.json"}');
SELECT sh('rm files_list/a/sub/up files_list/a/link.json files_list/a/dead.json files_list/a/pipe.json');
-- times
SELECT sh($$cd files_list/a && touch -d '2001-02-03T04:05:06Z' m_05.json && touch -d '2020-01-01T00:00:00Z' M_05.json$$);
SELECT names('a', '{"modifiedBefore": "2001-02-03T04:05:07Z"}'), names('a', '{"modifiedBefore": "2001-02-03T04:05:06Z"}');
SELECT names('a', '{"modifiedAfter": "2001-02-03T04:05:06Z", "modifiedBefore": "2020-01-02"}');
SELECT names('a', '{"minFileAge": "1 days"}');
SELECT file_modification_time, file_size, file_block_start, file_block_length, hide(file_path), file_name
	FROM pipeline.read_files(dir('a/m_05.json'), '{"format": "text"}')
	AS (file_modification_time timestamptz, file_size int8, file_block_start int8, file_block_length int8, file_path text, file_name text);

-- ---- partitions ----
SELECT put('p/day=2024-01-01/n=7/region=a%2Fb/x.json', '{"id": 1}');
SELECT put('p/day=2024-01-02/n=08/region=__HIVE_DEFAULT_PARTITION__/x.json', '{"id": 2}');
SELECT schema_of('p');
SELECT * FROM read('p');
SELECT schema_of('p', '{"partitionColumns": "n"}'), schema_of('p', '{"partitionColumns": ""}'), schema_of('p', '{"recursiveFileLookup": true}');
SELECT * FROM read('p', '{"schema": "id int, n int"}');

-- ---- formats ----
SELECT error_of($$SELECT schema_of('a')$$);
SELECT put('f/one.JSON', '{"id": 1}');
SELECT schema_of('f');
SELECT put('g/data', E'\n [{"id": 1}]'), put('h/data', 'id,v'), put('i/x.parquet', 'PAR1'), put('j/x.json', '');
SELECT schema_of('g');
SELECT error_of($$SELECT schema_of('h')$$);
SELECT error_of($$SELECT schema_of('i')$$);
SELECT error_of($$SELECT schema_of('j')$$);
SELECT sh('mkdir files_list/none');
SELECT error_of($$SELECT schema_of('none', '{"format": "json"}')$$);
SELECT error_of($$SELECT schema_of('none', '{"schema": "id int"}')$$);
SELECT schema_of('none', '{"schema": "id int", "format": "json"}');
SELECT column_name FROM pipeline.infer_schema(dir('h'), 'csv');

-- ---- options ----
SELECT o, error_of(format('SELECT names(''a'', %L)', o)) FROM unnest(ARRAY[
	'{"headr": true}', '{"zzzzzzzzzz": 1}', '{"cloudFiles.Format": "json"}', '{"format": "parquet"}', '{"format": "jsn"}',
	'{"header": "maybe"}', '{"mode": "x"}', '{"schemaEvolutionMode": "x"}', '{"maxFilesPerTrigger": 0}',
	'{"maxBytesPerTrigger": "10g"}', '{"maxBytesPerTrigger": "10x"}', '{"quote": "ab"}', '{"sep": ""}',
	'{"encoding": "UTF-16"}', '{"encoding": "x"}', '{"encoding": "SJIS"}', '{"rowTag": "a"}', '{"cleanSource": "DELETE"}',
	'{"cleanSource": "off"}', '{"allowSingleQuotes": true}', '{"useNotifications": true}', '{"compression": "zstd"}',
	'{"modifiedAfter": "yesterday"}', '{"minFileAge": "soon"}', '{"dateFormat": "yyyy-QQ"}', '{"dateFormat": "yyyy[-MM"}',
	'{"timestampFormat": ""}', '{"timeZone": "Mars"}', '{"skipRows": -1}', '{"schema": "id int", "schemaHints": "id int"}',
	'{"schema": "id int", "schemaEvolutionMode": "addNewColumns"}', '{"header": null, "stream": {"x": 1}}',
	'{"header": [1]}', '[1]', '{"maxNestingDepth": 501}', '{"lineSep": ";"}', '{"sep": "\"", "quote": "\""}'
	]) AS o;
SELECT o, error_of(format('SELECT schema_of(''f'', %L)', o)) FROM unnest(ARRAY[
	'{"schema": ""}', '{"schema": "id"}', '{"schema": "id nothing"}', '{"schema": "id int, ID string"}', '{"schema": "a.b int"}',
	'{"schema": "id array<int"}', '{"schema": "`id int"}', '{"schema": "id record"}', '{"schema": "id int comment x"}',
	'{"schema": "id int, _corrupt_record int"}', '{"schema": "id int, r string", "rescuedDataColumn": "r"}',
	'{"schemaHints": "id.x int"}']) AS o;
SELECT schema_of('f', '{"schema": "a STRING, b: BIGINT, c DECIMAL(10,2), d decimal, e TIMESTAMP, f TIMESTAMP_NTZ NOT NULL, g STRUCT<x: INT, y: ARRAY<STRING>>, h MAP<STRING, INT>, i BINARY, j TINYINT, k double precision, l varchar(10), m FLOAT, n double, o LONG, `p q` int"}');
SELECT error_of($$SELECT * FROM pipeline.infer_schema('relative/path')$$);
SELECT error_of($$SELECT * FROM pipeline.infer_schema('s3://bucket/x')$$);
SELECT error_of($$SELECT * FROM pipeline.infer_schema('')$$);
SELECT error_of($$SELECT * FROM pipeline.infer_schema(NULL)$$);
SELECT column_name FROM pipeline.infer_schema('file://' || dir('f'));
SELECT error_of($$SELECT * FROM pipeline.read_files(dir('f')) AS (x int)$$);
SELECT error_of($$SELECT * FROM pipeline.read_files(dir('f')) AS (file_size int)$$);
SELECT error_of($$SELECT * FROM pipeline.read_files(dir('f'))$$);

-- ---- rights ----
CREATE ROLE regress_pln_files;
GRANT USAGE ON SCHEMA files_list TO regress_pln_files;
SELECT put('secret/s.json', '{"id": 1}');
SELECT put('f2/t.json', '{"id": 1}');
SET ROLE regress_pln_files;
SELECT error_of($$SELECT schema_of('f')$$);
SELECT error_of($$SELECT schema_of('not_there')$$);
RESET ROLE;
SELECT set_config('pipeline.allowed_locations', 'https://x/, ' || dir('f') || ' , ' || dir('a/sub/'), false) IS NULL;
SET ROLE regress_pln_files;
SELECT schema_of('f'), schema_of('f/*.JSON'), schema_of('a/sub/b.json', '{"format": "text"}');
-- below the place, not beside it; no way out by dots or links
SELECT error_of($$SELECT schema_of('f2')$$);
SELECT error_of($$SELECT schema_of('f/../secret')$$);
SELECT error_of($$SELECT schema_of('f/../f2/*')$$);
SELECT error_of($$SELECT schema_of('*/s.json')$$);
SELECT error_of($$SELECT schema_of('a/sub/*/../../../secret/*')$$);
RESET ROLE;
SELECT sh('cd files_list/f && ln -s ../secret/s.json s.json');
SET ROLE regress_pln_files;
SELECT error_of($$SELECT schema_of('f')$$);
RESET ROLE;
SELECT sh('cd files_list/f && rm s.json && ln -s ../secret d');
SET ROLE regress_pln_files;
SELECT error_of($$SELECT schema_of('f')$$);
RESET ROLE;
SELECT sh('cd files_list/f && rm d');
GRANT pg_read_server_files TO regress_pln_files;
RESET pipeline.allowed_locations;
SET ROLE regress_pln_files;
SELECT schema_of('secret');
RESET ROLE;
REVOKE USAGE ON SCHEMA files_list FROM regress_pln_files;
DROP ROLE regress_pln_files;


SELECT sh('rm -rf files_list');
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA files_list CASCADE;

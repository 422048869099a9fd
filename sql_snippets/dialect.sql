-- What the parser of the dialect makes of a text: for tests; nothing is executed.
CREATE FUNCTION pipeline_internal.parse(source text, parameters jsonb DEFAULT '{}',
    OUT n int, OUT kind text, OUT name text, OUT detail jsonb)
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_parse';
COMMENT ON FUNCTION pipeline_internal.parse(text, jsonb)
IS 'statements of a pipeline source, parsed';

CREATE FUNCTION pipeline_internal.rewrite(source text, parameters jsonb DEFAULT '{}',
    OUT n int, OUT query text)
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_rewrite';
COMMENT ON FUNCTION pipeline_internal.rewrite(text, jsonb)
IS 'queries of a pipeline source as PostgreSQL understands them';

-- What the parser of the dialect makes of a text: for tests; nothing is executed.
CREATE FUNCTION pipeline_internal.parse(source text, parameters jsonb DEFAULT '{}',
    OUT n int, OUT kind text, OUT name text, OUT detail jsonb)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_parse';
COMMENT ON FUNCTION pipeline_internal.parse(text, jsonb)
IS 'statements of a pipeline source, parsed';

CREATE FUNCTION pipeline_internal.rewrite(source text, parameters jsonb DEFAULT '{}',
    OUT n int, OUT query text)
RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_rewrite';
COMMENT ON FUNCTION pipeline_internal.rewrite(text, jsonb)
IS 'queries of a pipeline source as PostgreSQL understands them';

-- to_timestamp(x) of the dialect takes text in ISO form as well.
CREATE FUNCTION pipeline.to_timestamp(value text) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN value::pg_catalog.timestamptz;
COMMENT ON FUNCTION pipeline.to_timestamp(text) IS 'text to timestamp, in the session''s time zone';

CREATE FUNCTION pipeline.to_timestamp(value double precision) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.to_timestamp(value);
COMMENT ON FUNCTION pipeline.to_timestamp(double precision) IS 'seconds since 1970 to timestamp';

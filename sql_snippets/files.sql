CREATE FUNCTION pipeline.infer_schema(
	path text, format text DEFAULT NULL, options jsonb DEFAULT '{}',
	OUT column_name text, OUT data_type text)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_infer_schema';
COMMENT ON FUNCTION pipeline.infer_schema(text, text, jsonb) IS
	'columns that read_files would find in files, with the rescued-data column';

CREATE FUNCTION pipeline_internal.read_files(path text, options jsonb DEFAULT '{}')
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_internal_read_files';
COMMENT ON FUNCTION pipeline_internal.read_files(text, jsonb) IS
	'rows of files; the column definition list says which columns, and as which types they are read';

CREATE FUNCTION pipeline_internal.list_files(
	path text, options jsonb DEFAULT '{}', "read" boolean DEFAULT false,
	OUT file_path text, OUT file_name text, OUT directory text, OUT file_size bigint,
	OUT file_modification_time timestamp with time zone, OUT "rows" bigint, OUT malformed bigint,
	OUT rescued bigint, OUT dropped bigint, OUT lost bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_internal_list_files';
COMMENT ON FUNCTION pipeline_internal.list_files(text, jsonb, boolean) IS
	'files of a path, and the counts of reading them when asked';

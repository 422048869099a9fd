CREATE FUNCTION pipeline.check_row(
	view text, rules text[], actions text[], VARIADIC results boolean[])
RETURNS boolean
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_check_row';
COMMENT ON FUNCTION pipeline.check_row(text, text[], text[], boolean[]) IS
	'what the expectations of a temporary view become in the queries that read it: counts, and says whether the row stays';

CREATE FUNCTION pipeline.read_file_batch(batch integer)
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_read_file_batch';
COMMENT ON FUNCTION pipeline.read_file_batch(integer) IS
	'rows of the files that a running flow reads; of use only to the flow itself';

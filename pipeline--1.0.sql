-- pipeline--1.0.sql: install script of the extension pipeline, SQL version 1.0

-- complain if the script is read by psql instead of CREATE EXTENSION
\echo Use "CREATE EXTENSION pipeline" to load this file. \quit

-- ---------------------------------------------------------------------------
-- 1. Schemas
-- ---------------------------------------------------------------------------

CREATE SCHEMA pipeline;
COMMENT ON SCHEMA pipeline IS 'data pipelines: functions, procedures and views for users';

CREATE SCHEMA pipeline_internal;
COMMENT ON SCHEMA pipeline_internal IS 'data pipelines: configuration and history, private to the extension';

CREATE SCHEMA pipeline_data;
COMMENT ON SCHEMA pipeline_data IS 'data pipelines: change logs, group state, flow views, private tables';

-- ---------------------------------------------------------------------------
-- 2. Tables
-- ---------------------------------------------------------------------------

-- 2.1 Definitions

CREATE TABLE pipeline_internal.pipelines (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	uid uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid() UNIQUE,
	schema_name text NOT NULL,
	name text NOT NULL,
	standalone boolean NOT NULL DEFAULT false,
	owner regrole NOT NULL,
	source text,
	settings text[] NOT NULL DEFAULT '{}',
	parameters jsonb NOT NULL DEFAULT '{}',
	dropped boolean NOT NULL DEFAULT false,
	created_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
CREATE UNIQUE INDEX pipelines_name_key ON pipeline_internal.pipelines
	(schema_name, name, standalone) WHERE NOT dropped;
COMMENT ON TABLE pipeline_internal.pipelines IS
	'procedures of LANGUAGE pipeline, and the hidden pipelines of datasets that were created by a statement of their own';

CREATE TABLE pipeline_internal.datasets (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	pipeline_id bigint NOT NULL REFERENCES pipeline_internal.pipelines,
	schema_name text NOT NULL,
	name text NOT NULL,
	kind text NOT NULL
		CHECK (kind IN ('STREAMING_TABLE', 'MATERIALIZED_VIEW', 'VIEW', 'TEMPORARY_VIEW')),
	relid regclass UNIQUE,
	state text NOT NULL DEFAULT 'ACTIVE' CHECK (state IN ('ACTIVE', 'INACTIVE', 'SUSPENDED')),
	state_reason text,
	state_since timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	definition text,
	query text,
	fingerprint text,
	policy text NOT NULL DEFAULT 'AUTO'
		CHECK (policy IN ('AUTO', 'INCREMENTAL', 'INCREMENTAL STRICT', 'FULL')),
	properties jsonb NOT NULL DEFAULT '{}',
	comment text,
	is_private boolean NOT NULL DEFAULT false,
	quarantine regclass,
	relfilenode oid,
	filled boolean NOT NULL DEFAULT false,
	created_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	last_update_id uuid,
	last_refresh_type text,
	last_rows bigint,
	last_refreshed_at timestamptz,
	UNIQUE (pipeline_id, schema_name, name)
);
CREATE INDEX datasets_name_idx ON pipeline_internal.datasets (schema_name, name);
COMMENT ON TABLE pipeline_internal.datasets IS
	'streaming tables, materialized views and views of pipelines';

CREATE TABLE pipeline_internal.flows (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	dataset_id bigint NOT NULL REFERENCES pipeline_internal.datasets ON DELETE CASCADE,
	name text NOT NULL,
	uid uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid(),
	kind text NOT NULL
		CHECK (kind IN ('INSERT', 'AUTO_CDC', 'CDC_SNAPSHOT', 'REPLACE_WHERE', 'REPLACE_USING')),
	once boolean NOT NULL DEFAULT false,
	once_done boolean NOT NULL DEFAULT false,
	query text,
	view regclass,
	batch_id bigint NOT NULL DEFAULT 0,
	query_hash text,
	UNIQUE (dataset_id, name)
);
CREATE INDEX flows_view_idx ON pipeline_internal.flows (view);
COMMENT ON TABLE pipeline_internal.flows IS 'what writes into a dataset';

CREATE TABLE pipeline_internal.flow_inputs (
	flow_id bigint NOT NULL REFERENCES pipeline_internal.flows ON DELETE CASCADE,
	ordinal integer NOT NULL,
	relid regclass,
	name text NOT NULL,
	streaming boolean,
	PRIMARY KEY (flow_id, ordinal)
);
CREATE INDEX flow_inputs_relid_idx ON pipeline_internal.flow_inputs (relid);
COMMENT ON TABLE pipeline_internal.flow_inputs IS 'relations and places that a flow reads';

CREATE TABLE pipeline_internal.expectations (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	dataset_id bigint NOT NULL REFERENCES pipeline_internal.datasets ON DELETE CASCADE,
	name text NOT NULL,
	condition text NOT NULL,
	action text NOT NULL CHECK (action IN ('WARN', 'DROP', 'QUARANTINE', 'FAIL')),
	threshold_kind text NOT NULL DEFAULT 'NONE'
		CHECK (threshold_kind IN ('NONE', 'PERCENT', 'ROWS')),
	threshold double precision NOT NULL DEFAULT 0,
	origin text NOT NULL DEFAULT 'source',
	UNIQUE (dataset_id, name)
);
COMMENT ON TABLE pipeline_internal.expectations IS 'conditions on the rows of a dataset';

-- 2.2 Positions

CREATE TABLE pipeline_internal.checkpoints (
	flow_id bigint NOT NULL REFERENCES pipeline_internal.flows ON DELETE CASCADE,
	relid regclass NOT NULL,
	ordinal integer NOT NULL,
	incarnation integer NOT NULL,
	snap pg_snapshot NOT NULL,
	own_xid xid8 NOT NULL,
	own_seq bigint NOT NULL,
	fingerprint text,
	evaluated_at timestamptz NOT NULL,
	PRIMARY KEY (flow_id, relid, ordinal)
);
CREATE INDEX checkpoints_relid_idx ON pipeline_internal.checkpoints (relid);
COMMENT ON TABLE pipeline_internal.checkpoints IS 'what a flow has consumed of a relation';

CREATE TABLE pipeline_internal.file_sources (
	flow_id bigint NOT NULL REFERENCES pipeline_internal.flows ON DELETE CASCADE,
	ordinal integer NOT NULL,
	path text NOT NULL,
	options jsonb NOT NULL DEFAULT '{}',
	schema jsonb,
	PRIMARY KEY (flow_id, ordinal)
);
COMMENT ON TABLE pipeline_internal.file_sources IS 'file sources of flows with their frozen schema';

-- The key is a hash of the path: a btree on the path itself would refuse long ones.
CREATE TABLE pipeline_internal.files (
	flow_id bigint NOT NULL REFERENCES pipeline_internal.flows ON DELETE CASCADE,
	ordinal integer NOT NULL,
	path_sha256 bytea NOT NULL,
	path text NOT NULL,
	size bigint NOT NULL,
	mtime timestamptz NOT NULL,
	state text NOT NULL CHECK (state IN ('DONE', 'SKIPPED', 'FAILED')),
	rows bigint NOT NULL DEFAULT 0,
	malformed bigint NOT NULL DEFAULT 0,
	rescued bigint NOT NULL DEFAULT 0,
	error text,
	update_id uuid,
	recorded_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	PRIMARY KEY (flow_id, ordinal, path_sha256)
);
COMMENT ON TABLE pipeline_internal.files IS 'ledger of the files that flows have read';

-- 2.3 History.  No foreign keys: history outlives what it is about.

CREATE TABLE pipeline_internal.updates (
	id uuid PRIMARY KEY,
	seq bigint GENERATED ALWAYS AS IDENTITY,
	pipeline_id bigint NOT NULL,
	cause text NOT NULL,
	run_as text NOT NULL,
	full_refresh boolean NOT NULL DEFAULT false,
	validate_only boolean NOT NULL DEFAULT false,
	selection text[] NOT NULL DEFAULT '{}',
	state text NOT NULL,
	message text,
	started_at timestamptz NOT NULL,
	ended_at timestamptz,
	is_noop boolean NOT NULL DEFAULT false,
	noop_runs integer NOT NULL DEFAULT 0,
	last_at timestamptz
);
CREATE UNIQUE INDEX updates_pipeline_idx ON pipeline_internal.updates (pipeline_id, seq);
CREATE INDEX updates_open_idx ON pipeline_internal.updates (pipeline_id) WHERE ended_at IS NULL;
COMMENT ON TABLE pipeline_internal.updates IS 'runs of pipelines';

CREATE TABLE pipeline_internal.update_datasets (
	update_id uuid NOT NULL,
	dataset_id bigint NOT NULL,
	flow_name text NOT NULL,
	dataset_name text NOT NULL,
	state text NOT NULL,
	refresh_type text,
	refresh_reason text,
	rows_out bigint NOT NULL DEFAULT 0,
	rows_dropped bigint NOT NULL DEFAULT 0,
	rows_quarantined bigint NOT NULL DEFAULT 0,
	files bigint NOT NULL DEFAULT 0,
	elapsed_ms double precision NOT NULL DEFAULT 0,
	sqlstate text,
	message text,
	detail text,
	hint text,
	constraint_name text,
	quality jsonb NOT NULL DEFAULT '[]',
	recorded_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	PRIMARY KEY (update_id, dataset_id, flow_name)
);
CREATE INDEX update_datasets_dataset_idx ON pipeline_internal.update_datasets
	(dataset_id, recorded_at);
COMMENT ON TABLE pipeline_internal.update_datasets IS
	'outcome of each flow in each update, with the counts of its expectations';

CREATE TABLE pipeline_internal.events (
	seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id uuid NOT NULL,
	pipeline_id bigint,
	dataset_id bigint,
	update_id uuid,
	"timestamp" timestamptz NOT NULL,
	level text NOT NULL CHECK (level IN ('INFO', 'WARN', 'ERROR', 'METRICS')),
	maturity_level text,
	event_type text NOT NULL,
	message text NOT NULL,
	origin jsonb NOT NULL,
	details jsonb NOT NULL,
	error jsonb
);
CREATE INDEX events_pipeline_idx ON pipeline_internal.events (pipeline_id, seq);
CREATE INDEX events_dataset_idx ON pipeline_internal.events (dataset_id, seq);
CREATE INDEX events_update_idx ON pipeline_internal.events (update_id);
COMMENT ON TABLE pipeline_internal.events IS 'the event log: only appended to, and trimmed by age';

-- 2.4 Tables of sources and logs
CREATE TABLE pipeline_internal.incarnation (
    number int PRIMARY KEY,
    system_identifier bigint NOT NULL,
    database_oid oid NOT NULL
);
COMMENT ON TABLE pipeline_internal.incarnation IS
'Identities that this database had: a restore, a clone or pg_upgrade adds a row';

CREATE TABLE pipeline_internal.sources (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    relid regclass NOT NULL,
    kind text NOT NULL CHECK (kind IN ('own_table', 'own_matview', 'captured')),
    level text NOT NULL CHECK (level IN ('none', 'mark', 'stream', 'signed')),
    generation int NOT NULL DEFAULT 0,
    active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    CONSTRAINT sources_relid_key UNIQUE (relid)
);
COMMENT ON TABLE pipeline_internal.sources IS
'Relations whose changes are recorded, how much of them, and the log generation written now';

CREATE TABLE pipeline_internal.source_logs (
    source_id bigint NOT NULL,
    generation int NOT NULL,
    log regclass NOT NULL,
    columns name[] NOT NULL,
    attnums int2[] NOT NULL,
    incarnation int NOT NULL,
    CONSTRAINT source_logs_pkey PRIMARY KEY (source_id, generation)
);
COMMENT ON TABLE pipeline_internal.source_logs IS
'Change logs by generation: after five fixed columns they hold these columns of the source';

CREATE TABLE pipeline_internal.capture_grants (
    source regclass NOT NULL,
    grantee regrole NOT NULL,
    PRIMARY KEY (source, grantee)
);
COMMENT ON TABLE pipeline_internal.capture_grants IS
'Roles that owners allowed to have a table captured';

CREATE TABLE pipeline_internal.log_headers (
    source_id bigint NOT NULL,
    incarnation int NOT NULL,
    xid xid8 NOT NULL,
    seq bigint NOT NULL,
    kind "char" NOT NULL,
    generation int NOT NULL,
    natts int2 NOT NULL,
    heap regclass,
    first_block bigint,
    last_block bigint,
    row_xid xid,
    rows bigint NOT NULL,
    relfilenode oid,
    at timestamptz NOT NULL,
    note text,
    CONSTRAINT log_headers_pkey PRIMARY KEY (source_id, incarnation, xid, seq)
);
COMMENT ON TABLE pipeline_internal.log_headers IS
'One row per captured statement or append, until every reader has passed it';

CREATE FUNCTION pipeline_internal.capture_insert() RETURNS trigger
    LANGUAGE C VOLATILE CALLED ON NULL INPUT
    PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pipeline_capture_insert';
COMMENT ON FUNCTION pipeline_internal.capture_insert() IS
'trigger: records inserted rows of a source';

CREATE FUNCTION pipeline_internal.capture_update() RETURNS trigger
    LANGUAGE C VOLATILE CALLED ON NULL INPUT
    PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pipeline_capture_update';
COMMENT ON FUNCTION pipeline_internal.capture_update() IS
'trigger: records updated rows of a source';

CREATE FUNCTION pipeline_internal.capture_delete() RETURNS trigger
    LANGUAGE C VOLATILE CALLED ON NULL INPUT
    PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pipeline_capture_delete';
COMMENT ON FUNCTION pipeline_internal.capture_delete() IS
'trigger: records deleted rows of a source';

CREATE FUNCTION pipeline_internal.capture_truncate() RETURNS trigger
    LANGUAGE C VOLATILE CALLED ON NULL INPUT
    PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pipeline_capture_truncate';
COMMENT ON FUNCTION pipeline_internal.capture_truncate() IS
'trigger: records that a source was truncated';

CREATE FUNCTION pipeline_internal.guard_dml() RETURNS trigger
    LANGUAGE C VOLATILE CALLED ON NULL INPUT
    PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pipeline_guard_dml';
COMMENT ON FUNCTION pipeline_internal.guard_dml() IS
'trigger: refuses changes by hand of a streaming table';

REVOKE ALL ON FUNCTION pipeline_internal.capture_insert() FROM PUBLIC;
REVOKE ALL ON FUNCTION pipeline_internal.capture_update() FROM PUBLIC;
REVOKE ALL ON FUNCTION pipeline_internal.capture_delete() FROM PUBLIC;
REVOKE ALL ON FUNCTION pipeline_internal.capture_truncate() FROM PUBLIC;
REVOKE ALL ON FUNCTION pipeline_internal.guard_dml() FROM PUBLIC;

CREATE FUNCTION pipeline.allow_capture(source regclass, role name) RETURNS void
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pipeline_allow_capture';
COMMENT ON FUNCTION pipeline.allow_capture(regclass, name) IS
'lets a role have the changes of your table captured for its pipelines';

CREATE FUNCTION pipeline.disallow_capture(source regclass, role name) RETURNS void
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pipeline_disallow_capture';
COMMENT ON FUNCTION pipeline.disallow_capture(regclass, name) IS
'takes back pipeline.allow_capture; a capture that runs goes on until pipeline.disable_capture';

CREATE FUNCTION pipeline.disable_capture(source regclass) RETURNS void
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pipeline_disable_capture';
COMMENT ON FUNCTION pipeline.disable_capture(regclass) IS
'drops triggers and change logs of your table; a reader with the right to starts them again';

-- ---------------------------------------------------------------------------
-- 3. Functions
-- ---------------------------------------------------------------------------

-- 3.1 Running

CREATE PROCEDURE pipeline.run_update(
	pipeline text,
	datasets text[] DEFAULT '{}',
	full_refresh boolean DEFAULT false,
	parameters jsonb DEFAULT '{}',
	failed_only boolean DEFAULT false,
	validate_only boolean DEFAULT false,
	atomic boolean DEFAULT false,
	cascade boolean DEFAULT false,
	allow_loss boolean DEFAULT false,
	INOUT update_id uuid DEFAULT NULL,
	INOUT state text DEFAULT NULL)
LANGUAGE C
AS 'MODULE_PATHNAME', 'pipeline_run_update';
COMMENT ON PROCEDURE pipeline.run_update(text, text[], boolean, jsonb, boolean, boolean, boolean, boolean, boolean, uuid, text) IS
	'run one update of a pipeline with options';

CREATE PROCEDURE pipeline.refresh(dataset regclass, full_refresh boolean DEFAULT false)
LANGUAGE C
AS 'MODULE_PATHNAME', 'pipeline_refresh';
COMMENT ON PROCEDURE pipeline.refresh(regclass, boolean) IS 'refresh one dataset';

CREATE FUNCTION pipeline.plan(
	pipeline text, OUT dataset text, OUT change text, OUT effect text)
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'pipeline_plan';
COMMENT ON FUNCTION pipeline.plan(text) IS 'what the next update of a pipeline would change';

-- 3.2 Expectations

CREATE FUNCTION pipeline.expect(
	dataset regclass, name text, condition text, on_violation text DEFAULT 'warn')
RETURNS void
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_expect';
COMMENT ON FUNCTION pipeline.expect(regclass, text, text, text) IS
	'add an expectation to a dataset; on_violation is warn, drop, quarantine or fail';

CREATE FUNCTION pipeline.expect_or_drop(dataset regclass, name text, condition text)
RETURNS void
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_expect_or_drop';
COMMENT ON FUNCTION pipeline.expect_or_drop(regclass, text, text) IS
	'add an expectation that drops the rows that violate it';

CREATE FUNCTION pipeline.expect_or_fail(dataset regclass, name text, condition text)
RETURNS void
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_expect_or_fail';
COMMENT ON FUNCTION pipeline.expect_or_fail(regclass, text, text) IS
	'add an expectation that fails the update when a row violates it';

CREATE FUNCTION pipeline.expect_all(dataset regclass, rules jsonb)
RETURNS void
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_expect_all';
COMMENT ON FUNCTION pipeline.expect_all(regclass, jsonb) IS
	'add expectations given as {"name": "condition", ...}';

CREATE FUNCTION pipeline.expect_all_or_drop(dataset regclass, rules jsonb)
RETURNS void
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_expect_all_or_drop';
COMMENT ON FUNCTION pipeline.expect_all_or_drop(regclass, jsonb) IS
	'add expectations that drop the rows that violate them';

CREATE FUNCTION pipeline.expect_all_or_fail(dataset regclass, rules jsonb)
RETURNS void
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_expect_all_or_fail';
COMMENT ON FUNCTION pipeline.expect_all_or_fail(regclass, jsonb) IS
	'add expectations that fail the update when a row violates them';

CREATE FUNCTION pipeline.drop_expectation(dataset regclass, name text)
RETURNS void
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_drop_expectation';
COMMENT ON FUNCTION pipeline.drop_expectation(regclass, text) IS
	'remove an expectation that was added by a function';

CREATE FUNCTION pipeline.try_expectation(
	dataset regclass, condition text,
	OUT passed bigint, OUT failed bigint, OUT sample jsonb)
RETURNS record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_try_expectation';
COMMENT ON FUNCTION pipeline.try_expectation(regclass, text) IS
	'count the rows of a dataset that pass and fail a condition, with some that fail';

CREATE FUNCTION pipeline.replay_quarantine(
	dataset regclass, condition text DEFAULT 'true',
	OUT replayed bigint, OUT still_failing bigint)
RETURNS record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_replay_quarantine';
COMMENT ON FUNCTION pipeline.replay_quarantine(regclass, text) IS
	'put repaired rows of the quarantine table back into the dataset, under its current expectations';

-- 3.3 Looking

CREATE FUNCTION pipeline.event_log(
	pipeline_or_dataset text,
	OUT id text, OUT sequence jsonb, OUT origin jsonb, OUT "timestamp" timestamptz,
	OUT message text, OUT level text, OUT maturity_level text, OUT error jsonb,
	OUT details jsonb, OUT event_type text)
RETURNS SETOF record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_event_log';
COMMENT ON FUNCTION pipeline.event_log(text) IS
	'events of a pipeline or of one dataset, as far as the caller may see them';

CREATE FUNCTION pipeline.describe(dataset regclass, OUT item text, OUT value text)
RETURNS SETOF record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE ROWS 30
AS 'MODULE_PATHNAME', 'pipeline_describe';
COMMENT ON FUNCTION pipeline.describe(regclass) IS 'columns, definition and refresh information of a dataset';

CREATE FUNCTION pipeline.graph(pipeline text, format text DEFAULT 'text')
RETURNS text
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_graph';
COMMENT ON FUNCTION pipeline.graph(text, text) IS
	'the datasets of a pipeline and what they read, as text, mermaid or dot';

CREATE FUNCTION pipeline.check_setup(OUT "check" text, OUT ok boolean, OUT what_to_type text)
RETURNS SETOF record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'pipeline_check_setup';
COMMENT ON FUNCTION pipeline.check_setup() IS
	'whether the server is set up for pipelines, and what to type where it is not';

-- 3.4 Functions that pipeline source calls

CREATE FUNCTION pipeline.stream(internal)
RETURNS tsm_handler
LANGUAGE C VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'pipeline_stream_handler';
COMMENT ON FUNCTION pipeline.stream(internal) IS
	'marks a relation as read with STREAM in the query of a flow';

CREATE FUNCTION pipeline.try_cast(value text, as_type anyelement)
RETURNS anyelement
LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_try_cast';
COMMENT ON FUNCTION pipeline.try_cast(text, anyelement) IS
	'the text as a value of the type of the second argument, null when it is not one';

CREATE FUNCTION pipeline.try_cast(value "any", as_type anyelement)
RETURNS anyelement
LANGUAGE C STABLE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_try_cast';
COMMENT ON FUNCTION pipeline.try_cast("any", anyelement) IS
	'the value in the type of the second argument, null when it does not fit; a number becomes an integer without its fraction';

CREATE FUNCTION pipeline.to_timestamp(value text)
RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN value::timestamptz;
COMMENT ON FUNCTION pipeline.to_timestamp(text) IS 'the text as a timestamp with time zone';

CREATE FUNCTION pipeline.to_timestamp(value double precision)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.to_timestamp(value);
COMMENT ON FUNCTION pipeline.to_timestamp(double precision) IS
	'the timestamp at this number of seconds after 1970-01-01 00:00 UTC';

-- 3.5 Functions of other parts
-- What the parser of the dialect makes of a text: for tests; nothing is executed.
CREATE FUNCTION pipeline_internal.parse(source text, parameters jsonb DEFAULT '{}',
    OUT n int, OUT kind text, OUT name text, OUT detail jsonb)
RETURNS SETOF record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_parse';
COMMENT ON FUNCTION pipeline_internal.parse(text, jsonb)
IS 'statements of a pipeline source, parsed';

CREATE FUNCTION pipeline_internal.rewrite(source text, parameters jsonb DEFAULT '{}',
    OUT n int, OUT query text)
RETURNS SETOF record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_rewrite';
COMMENT ON FUNCTION pipeline_internal.rewrite(text, jsonb)
IS 'queries of a pipeline source as PostgreSQL understands them';

CREATE FUNCTION pipeline.infer_schema(
	path text, format text DEFAULT NULL, options jsonb DEFAULT '{}',
	OUT column_name text, OUT data_type text)
RETURNS SETOF record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_infer_schema';
COMMENT ON FUNCTION pipeline.infer_schema(text, text, jsonb) IS
	'columns that read_files would find in files, with the rescued-data column';

CREATE FUNCTION pipeline.read_files(path text, options jsonb DEFAULT '{}')
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_read_files';
COMMENT ON FUNCTION pipeline.read_files(text, jsonb) IS
	'rows of files; the column definition list says which columns, and as which types they are read';

CREATE FUNCTION pipeline_internal.list_files(
	path text, options jsonb DEFAULT '{}', "read" boolean DEFAULT false,
	OUT file_path text, OUT file_name text, OUT directory text, OUT file_size bigint,
	OUT file_modification_time timestamp with time zone, OUT "rows" bigint, OUT malformed bigint,
	OUT rescued bigint, OUT dropped bigint, OUT lost bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_internal_list_files';
COMMENT ON FUNCTION pipeline_internal.list_files(text, jsonb, boolean) IS
	'files of a path, and the counts of reading them when asked';

CREATE FUNCTION pipeline_internal.file_schema(
	path text, options jsonb DEFAULT '{}', old jsonb DEFAULT NULL)
RETURNS jsonb
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_internal_file_schema';
COMMENT ON FUNCTION pipeline_internal.file_schema(text, jsonb, jsonb) IS
	'columns of a file source as they are frozen, and what new files make of the frozen ones';

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

-- 3.6 Private functions

CREATE FUNCTION pipeline_internal.call_handler()
RETURNS language_handler
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_call_handler';
COMMENT ON FUNCTION pipeline_internal.call_handler() IS 'runs procedures of LANGUAGE pipeline';

CREATE FUNCTION pipeline_internal.inline_handler(source internal)
RETURNS void
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_inline_handler';
COMMENT ON FUNCTION pipeline_internal.inline_handler(internal) IS 'runs DO LANGUAGE pipeline';

CREATE FUNCTION pipeline_internal.validator(procedure oid)
RETURNS void
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'pipeline_validator';
COMMENT ON FUNCTION pipeline_internal.validator(oid) IS 'checks procedures of LANGUAGE pipeline';

CREATE FUNCTION pipeline_internal.on_sql_drop()
RETURNS event_trigger
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'pipeline_on_sql_drop';
COMMENT ON FUNCTION pipeline_internal.on_sql_drop() IS
	'keeps the configuration in step with dropped relations and procedures';

CREATE FUNCTION pipeline_internal.on_ddl_command_end()
RETURNS event_trigger
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'pipeline_on_ddl_command_end';
COMMENT ON FUNCTION pipeline_internal.on_ddl_command_end() IS
	'keeps the configuration in step with renamed, moved and re-owned relations and procedures';

-- ---------------------------------------------------------------------------
-- 4. Language
-- ---------------------------------------------------------------------------

CREATE TRUSTED LANGUAGE pipeline
	HANDLER pipeline_internal.call_handler
	INLINE pipeline_internal.inline_handler
	VALIDATOR pipeline_internal.validator;
COMMENT ON LANGUAGE pipeline IS 'declarative data pipelines';

-- ---------------------------------------------------------------------------
-- 5. Views
-- ---------------------------------------------------------------------------

-- The views read our tables with the rights of their owner and filter by those of the user:
-- the owner sees everything of his; pg_read_all_stats all but SQL texts, messages that may hold
-- data of rows, and places of files; EXECUTE on a pipeline shows its updates, SELECT on a dataset its
-- state and counts.

-- 5.1 Who may see what

CREATE VIEW pipeline_internal.pipeline_access WITH (security_barrier) AS
SELECT p.id, p.uid, p.schema_name, p.name, p.standalone, p.dropped, p.source, p.created_at,
	pg_catalog.format('%I.%I', p.schema_name, p.name) AS pipeline,
	o.owner::regrole AS owner,
	pg_catalog.pg_has_role(o.owner, 'USAGE') AS is_owner,
	pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all,
	coalesce(x.may_run, false) AS may_run
FROM pipeline_internal.pipelines p
LEFT JOIN LATERAL (
	SELECT f.proowner, pg_catalog.has_function_privilege(f.oid, 'EXECUTE') AS may_run
	FROM pg_catalog.pg_proc f
	JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
	JOIN pg_catalog.pg_language l ON l.oid = f.prolang
	WHERE NOT p.standalone AND NOT p.dropped AND l.lanname = 'pipeline'
		AND n.nspname = p.schema_name AND f.proname = p.name
	LIMIT 1) x ON true
LEFT JOIN LATERAL (
	SELECT c.relowner
	FROM pipeline_internal.datasets d
	JOIN pg_catalog.pg_class c ON c.oid = d.relid
	WHERE p.standalone AND d.pipeline_id = p.id
	LIMIT 1) r ON true
CROSS JOIN LATERAL (SELECT coalesce(x.proowner, r.relowner, p.owner) AS owner) o;
COMMENT ON VIEW pipeline_internal.pipeline_access IS 'pipelines with the rights that the current user has on them';

CREATE VIEW pipeline_internal.dataset_access WITH (security_barrier) AS
SELECT d.*, p.pipeline, p.standalone, p.dropped AS pipeline_dropped,
	pg_catalog.format('%I.%I', d.schema_name, d.name) AS dataset,
	coalesce(c.relowner, p.owner)::regrole AS owner,
	p.is_owner OR coalesce(pg_catalog.pg_has_role(c.relowner, 'USAGE'), false) AS is_owner,
	p.sees_all,
	coalesce(pg_catalog.has_table_privilege(c.oid, 'SELECT'), false) AS may_read
FROM pipeline_internal.datasets d
JOIN pipeline_internal.pipeline_access p ON p.id = d.pipeline_id
LEFT JOIN pg_catalog.pg_class c ON c.oid = d.relid;
COMMENT ON VIEW pipeline_internal.dataset_access IS 'datasets with the rights that the current user has on them';

-- A session lock, or one of the transaction, is held on the pipeline while an update runs.
CREATE VIEW pipeline_internal.running_pipelines WITH (security_barrier) AS
SELECT DISTINCT l.objid::bigint AS lock_id
FROM pg_catalog.pg_locks l
JOIN pg_catalog.pg_database b ON b.oid = l.database
WHERE l.locktype = 'object' AND l.granted AND l.mode = 'ExclusiveLock'
	AND b.datname = pg_catalog.current_database()
	AND l.classid = 'pipeline_internal.pipelines'::regclass;
COMMENT ON VIEW pipeline_internal.running_pipelines IS 'low 32 bits of the ids of pipelines that are being updated';

-- The last update of each dataset that did not leave it out.
CREATE VIEW pipeline_internal.latest_outcomes WITH (security_barrier) AS
SELECT l.*
FROM pipeline_internal.datasets d
CROSS JOIN LATERAL (
	SELECT o.* FROM pipeline_internal.update_datasets o
	WHERE o.dataset_id = d.id AND o.state <> 'EXCLUDED'
	ORDER BY o.recorded_at DESC LIMIT 1) l;
COMMENT ON VIEW pipeline_internal.latest_outcomes IS 'what came of the last update of each dataset';

-- What reads what.  Flows note their inputs; of a plain view the server knows them.  Relations have the
-- names that they have now, what is gone has its last name.
CREATE VIEW pipeline_internal.edges WITH (security_barrier) AS
SELECT d.id AS dataset_id, d.pipeline_id, r.relation AS upstream_relation, r.via, r.mode,
	u.id AS upstream_dataset_id,
	CASE WHEN u.id IS NOT NULL THEN pg_catalog.format('%I.%I', u.schema_name, u.name)
		WHEN c.oid IS NOT NULL THEN pg_catalog.format('%I.%I', n.nspname, c.relname)
		ELSE r.name END AS upstream
FROM pipeline_internal.datasets d
CROSS JOIN LATERAL (
	SELECT i.relid::oid AS relation, i.name, f.name AS via,
		CASE WHEN i.relid IS NULL AND i.streaming IS NULL THEN 'FILES'
			WHEN coalesce(i.streaming, d.kind = 'STREAMING_TABLE') THEN 'STREAM'
			ELSE 'BATCH' END AS mode
	FROM pipeline_internal.flows f
	JOIN pipeline_internal.flow_inputs i ON i.flow_id = f.id
	WHERE f.dataset_id = d.id
	UNION ALL
	SELECT DISTINCT p.refobjid, NULL, d.name, 'VIEW'
	FROM pg_catalog.pg_rewrite w
	JOIN pg_catalog.pg_depend p ON p.classid = 'pg_catalog.pg_rewrite'::regclass AND p.objid = w.oid
	WHERE d.kind = 'VIEW' AND w.ev_class = d.relid
		AND p.refclassid = 'pg_catalog.pg_class'::regclass AND p.refobjid <> d.relid) r
LEFT JOIN pg_catalog.pg_class c ON c.oid = r.relation
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pipeline_internal.datasets u ON u.relid = r.relation;
COMMENT ON VIEW pipeline_internal.edges IS 'what each dataset reads';

-- 5.2 Definitions

CREATE VIEW pipeline.pipelines WITH (security_barrier) AS
SELECT p.pipeline, p.uid AS pipeline_id, p.owner,
	CASE WHEN p.standalone THEN 'DATASET' ELSE 'PROCEDURE' END AS kind,
	(SELECT pg_catalog.count(*) FROM pipeline_internal.datasets d WHERE d.pipeline_id = p.id) AS datasets,
	CASE WHEN p.dropped THEN 'DROPPED'
		WHEN r.lock_id IS NOT NULL THEN 'RUNNING'
		ELSE 'IDLE' END AS state,
	u.id AS last_update_id, u.state AS last_update_state, u.started_at AS last_started_at,
	coalesce(u.last_at, u.ended_at) AS last_ended_at,
	CASE WHEN p.is_owner THEN p.source END AS source
FROM pipeline_internal.pipeline_access p
LEFT JOIN pipeline_internal.running_pipelines r ON r.lock_id = p.id & 4294967295
LEFT JOIN LATERAL (
	SELECT x.* FROM pipeline_internal.updates x
	WHERE x.pipeline_id = p.id AND x.ended_at IS NOT NULL
	ORDER BY x.seq DESC LIMIT 1) u ON true
WHERE (p.is_owner OR p.sees_all OR p.may_run) AND NOT (p.standalone AND p.dropped);
COMMENT ON VIEW pipeline.pipelines IS 'pipelines that the current user may see';

CREATE VIEW pipeline.datasets WITH (security_barrier) AS
SELECT d.dataset, d.kind, d.relid AS relation, d.pipeline, d.owner,
	d.state, d.state_reason, d.state_since, d.policy AS refresh_policy,
	o.state AS last_update_state, d.last_refresh_type, d.last_refreshed_at, d.last_rows,
	d.last_update_id, d.quarantine, d.comment,
	CASE WHEN d.is_owner THEN d.properties END AS properties,
	CASE WHEN d.is_owner THEN d.query END AS query,
	CASE WHEN d.is_owner THEN d.definition END AS definition
FROM pipeline_internal.dataset_access d
LEFT JOIN pipeline_internal.latest_outcomes o ON o.dataset_id = d.id
WHERE d.is_owner OR d.sees_all OR d.may_read;
COMMENT ON VIEW pipeline.datasets IS 'datasets that the current user may see, with their last refresh';

CREATE VIEW pipeline.flows WITH (security_barrier) AS
SELECT f.name AS flow, d.dataset, d.pipeline, f.uid AS flow_id, f.kind, f.once, f.once_done,
	f.batch_id,
	ARRAY(SELECT i.name FROM pipeline_internal.flow_inputs i
		WHERE i.flow_id = f.id AND (d.is_owner OR i.relid IS NOT NULL)
		ORDER BY i.ordinal) AS inputs,
	CASE WHEN d.is_owner THEN f.query END AS query
FROM pipeline_internal.flows f
JOIN pipeline_internal.dataset_access d ON d.id = f.dataset_id
WHERE d.is_owner OR d.sees_all OR d.may_read;
COMMENT ON VIEW pipeline.flows IS 'what writes into the datasets';

CREATE VIEW pipeline.expectations WITH (security_barrier) AS
SELECT d.dataset, e.name AS expectation, e.action,
	CASE e.threshold_kind
		WHEN 'PERCENT' THEN e.threshold || ' PERCENT'
		WHEN 'ROWS' THEN e.threshold || ' ROWS' END AS fail_above,
	e.origin, d.pipeline,
	CASE WHEN d.is_owner THEN e.condition END AS condition
FROM pipeline_internal.expectations e
JOIN pipeline_internal.dataset_access d ON d.id = e.dataset_id
WHERE d.is_owner OR d.sees_all OR d.may_read;
COMMENT ON VIEW pipeline.expectations IS 'conditions on the rows of the datasets';

CREATE VIEW pipeline.lineage WITH (security_barrier) AS
SELECT e.upstream, d.dataset AS downstream, e.via, e.mode,
	e.upstream_relation::regclass AS upstream_relation, d.relid AS downstream_relation, d.pipeline
FROM pipeline_internal.edges e
JOIN pipeline_internal.dataset_access d ON d.id = e.dataset_id
WHERE d.is_owner OR ((d.sees_all OR d.may_read) AND e.upstream_relation IS NOT NULL);
COMMENT ON VIEW pipeline.lineage IS 'which dataset reads what';

-- 5.3 Runs

CREATE VIEW pipeline.updates WITH (security_barrier) AS
SELECT u.id AS update_id, p.pipeline,
	CASE WHEN u.ended_at IS NULL AND r.lock_id IS NULL THEN 'FAILED' ELSE u.state END AS state,
	u.cause, u.run_as, u.started_at, u.ended_at,
	coalesce(u.ended_at, CASE WHEN r.lock_id IS NOT NULL THEN pg_catalog.clock_timestamp() END)
		- u.started_at AS duration,
	u.noop_runs, u.last_at, u.full_refresh, u.validate_only, u.selection,
	CASE WHEN u.ended_at IS NULL AND r.lock_id IS NULL THEN 'server process lost'
		WHEN p.is_owner THEN u.message END AS message
FROM pipeline_internal.updates u
JOIN pipeline_internal.pipeline_access p ON p.id = u.pipeline_id
LEFT JOIN pipeline_internal.running_pipelines r ON r.lock_id = p.id & 4294967295
WHERE p.is_owner OR p.sees_all OR p.may_run;
COMMENT ON VIEW pipeline.updates IS
	'runs of pipelines; updates in a row that found nothing new are one row with noop_runs and last_at';

CREATE VIEW pipeline.progress WITH (security_barrier) AS
SELECT p.pipeline, u.id AS update_id, u.state, u.started_at,
	pg_catalog.clock_timestamp() - u.started_at AS elapsed,
	o.completed, o.failed, o.skipped,
	greatest(n.flows - o.recorded, 0) AS remaining, o.latest, o.latest_at
FROM pipeline_internal.updates u
JOIN pipeline_internal.pipeline_access p ON p.id = u.pipeline_id
JOIN pipeline_internal.running_pipelines r ON r.lock_id = p.id & 4294967295
CROSS JOIN LATERAL (
	SELECT pg_catalog.count(*) FILTER (WHERE x.state = 'COMPLETED') AS completed,
		pg_catalog.count(*) FILTER (WHERE x.state = 'FAILED') AS failed,
		pg_catalog.count(*) FILTER (WHERE x.state = 'SKIPPED') AS skipped,
		pg_catalog.count(*) AS recorded,
		(pg_catalog.array_agg(x.dataset_name ORDER BY x.recorded_at DESC))[1] AS latest,
		pg_catalog.max(x.recorded_at) AS latest_at
	FROM pipeline_internal.update_datasets x WHERE x.update_id = u.id) o
CROSS JOIN LATERAL (
	SELECT pg_catalog.count(*) AS flows
	FROM pipeline_internal.flows f
	JOIN pipeline_internal.datasets d ON d.id = f.dataset_id
	WHERE d.pipeline_id = p.id AND d.state = 'ACTIVE') n
WHERE u.ended_at IS NULL AND (p.is_owner OR p.sees_all OR p.may_run);
COMMENT ON VIEW pipeline.progress IS 'updates that are running now';

CREATE VIEW pipeline.quality WITH (security_barrier) AS
SELECT o.recorded_at AS ended_at, o.update_id, coalesce(q.dataset, d.dataset, o.dataset_name) AS dataset,
	q.name AS expectation, q.action, q.passed, q.failed,
	CASE WHEN q.action = 'DROP' THEN q.failed ELSE 0 END AS dropped,
	pg_catalog.round(q.passed::numeric / nullif(q.passed + q.failed, 0), 6) AS pass_rate
FROM pipeline_internal.update_datasets o
CROSS JOIN LATERAL pg_catalog.jsonb_to_recordset(o.quality)
	AS q (dataset text, name text, action text, passed bigint, failed bigint)
LEFT JOIN pipeline_internal.dataset_access d ON d.id = o.dataset_id
LEFT JOIN pipeline_internal.updates u ON d.id IS NULL AND u.id = o.update_id
LEFT JOIN pipeline_internal.pipeline_access p ON p.id = u.pipeline_id
WHERE o.state = 'COMPLETED'
	AND (d.is_owner OR d.sees_all OR d.may_read OR p.is_owner OR p.sees_all);
COMMENT ON VIEW pipeline.quality IS
	'counts of each expectation in each update; dropped counts the rows that it kept out';

CREATE VIEW pipeline.problems WITH (security_barrier) AS
-- datasets whose last update failed
SELECT d.dataset AS object, o.recorded_at AS since, o.sqlstate,
	CASE WHEN d.is_owner THEN pg_catalog.concat_ws('. ', o.message, o.detail)
		ELSE 'update failed' END AS message,
	CASE WHEN d.is_owner AND o.hint IS NOT NULL THEN o.hint
		WHEN d.standalone THEN pg_catalog.format('CALL pipeline.refresh(%L);', d.dataset)
		ELSE pg_catalog.format('CALL pipeline.run_update(%L, failed_only => true);', d.pipeline)
		END AS what_to_type
FROM pipeline_internal.dataset_access d
JOIN pipeline_internal.latest_outcomes o ON o.dataset_id = d.id AND o.state = 'FAILED'
WHERE d.state = 'ACTIVE' AND (d.is_owner OR d.sees_all OR d.may_read)
UNION ALL
-- datasets that nothing fills any more
SELECT d.dataset, d.state_since, '55000', pg_catalog.concat_ws(': ', d.state, d.state_reason),
	CASE WHEN d.relid IS NULL THEN NULL
		WHEN d.state = 'SUSPENDED'
			THEN pg_catalog.format('CALL pipeline.refresh(%L, full_refresh => true);', d.dataset)
		WHEN d.state_reason = 'source dropped'
			THEN pg_catalog.format('-- create the source again, then  CALL pipeline.run_update(%L);',
				d.pipeline)
		ELSE pg_catalog.format('-- if it is not needed any more  DROP %s %s;', CASE d.kind WHEN 'STREAMING_TABLE' THEN 'TABLE'
			WHEN 'MATERIALIZED_VIEW' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, d.dataset) END
FROM pipeline_internal.dataset_access d
WHERE d.state <> 'ACTIVE' AND (d.is_owner OR d.sees_all OR d.may_read)
UNION ALL
-- updates that failed before any dataset did: definitions, lost processes
SELECT p.pipeline, coalesce(u.ended_at, u.started_at), NULL,
	CASE WHEN u.ended_at IS NULL THEN 'server process lost'
		WHEN p.is_owner THEN u.message ELSE 'update failed' END,
	pg_catalog.format('CALL pipeline.run_update(%L);', p.pipeline)
FROM pipeline_internal.pipeline_access p
CROSS JOIN LATERAL (
	SELECT x.* FROM pipeline_internal.updates x
	WHERE x.pipeline_id = p.id ORDER BY x.seq DESC LIMIT 1) u
LEFT JOIN pipeline_internal.running_pipelines r ON r.lock_id = p.id & 4294967295
WHERE NOT p.dropped AND (p.is_owner OR p.sees_all OR p.may_run)
	AND (u.state = 'FAILED' OR (u.ended_at IS NULL AND r.lock_id IS NULL))
	AND NOT EXISTS (SELECT FROM pipeline_internal.update_datasets o
		WHERE o.update_id = u.id AND o.state = 'FAILED')
UNION ALL
-- files that could not be read
SELECT d.dataset, pg_catalog.max(l.recorded_at), '22P04',
	CASE WHEN d.is_owner THEN pg_catalog.format('%s files could not be read, the last: %s: %s', pg_catalog.count(*),
			(pg_catalog.array_agg(l.path ORDER BY l.recorded_at DESC))[1],
			(pg_catalog.array_agg(l.error ORDER BY l.recorded_at DESC))[1])
		ELSE pg_catalog.format('%s files could not be read', pg_catalog.count(*)) END,
	pg_catalog.format('CALL pipeline.refresh(%L);', d.dataset)
FROM pipeline_internal.files l
JOIN pipeline_internal.flows f ON f.id = l.flow_id
JOIN pipeline_internal.dataset_access d ON d.id = f.dataset_id
WHERE l.state = 'FAILED' AND (d.is_owner OR d.sees_all OR d.may_read)
GROUP BY d.dataset, d.is_owner;
COMMENT ON VIEW pipeline.problems IS 'what needs a person, and what to type';

-- 5.4 Views of other parts
CREATE VIEW pipeline.change_logs WITH (security_barrier) AS
SELECT s.relid AS source,
       s.kind,
       s.level,
       (SELECT COALESCE(pg_catalog.sum(h.rows), 0)::bigint
        FROM pipeline_internal.log_headers AS h
        WHERE h.source_id = s.id) AS rows_pending,
       (SELECT COALESCE(pg_catalog.sum(pg_catalog.pg_total_relation_size(l.log)), 0)::bigint
        FROM pipeline_internal.source_logs AS l
        WHERE l.source_id = s.id) AS bytes,
       (SELECT pg_catalog.count(*)
        FROM pipeline_internal.checkpoints AS c
        WHERE c.relid = s.relid) AS readers
FROM pipeline_internal.sources AS s
JOIN pg_catalog.pg_class AS r ON r.oid = s.relid
WHERE pg_catalog.pg_has_role(r.relowner, 'USAGE')
   OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE');
COMMENT ON VIEW pipeline.change_logs IS
'What is recorded of your tables for pipelines: rows kept, bytes, number of readers';

-- 5.5 Functions over views

CREATE FUNCTION pipeline.dependents(
	source regclass,
	OUT dataset text, OUT kind text, OUT pipeline text, OUT depth integer, OUT state text)
RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 10
BEGIN ATOMIC
	WITH RECURSIVE below (relation, depth) AS (
		SELECT source::oid, 0
		UNION
		SELECT l.downstream_relation::oid, b.depth + 1
		FROM below b
		JOIN pipeline.lineage l ON l.upstream_relation = b.relation
		-- a query cannot be deeper than there are datasets
		WHERE b.depth <= (SELECT count(*) FROM pipeline.datasets)
	)
	SELECT d.dataset, d.kind, d.pipeline, min(b.depth), d.state
	FROM below b
	JOIN pipeline.datasets d ON d.relation = b.relation
	WHERE b.depth > 0
	GROUP BY d.dataset, d.kind, d.pipeline, d.state
	ORDER BY min(b.depth), d.dataset;
END;
COMMENT ON FUNCTION pipeline.dependents(regclass) IS
	'datasets that read a relation, directly or through other datasets';

-- ---------------------------------------------------------------------------
-- 6. Event triggers
-- ---------------------------------------------------------------------------

CREATE EVENT TRIGGER pipeline_sql_drop ON sql_drop
	EXECUTE FUNCTION pipeline_internal.on_sql_drop();
ALTER EVENT TRIGGER pipeline_sql_drop ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER pipeline_sql_drop IS
	'data pipelines: datasets, sources and pipelines that are dropped';

CREATE EVENT TRIGGER pipeline_ddl_command_end ON ddl_command_end
	WHEN tag IN ('CREATE TABLE', 'ALTER TABLE', 'ALTER VIEW', 'ALTER MATERIALIZED VIEW', 'ALTER SCHEMA',
		'ALTER PROCEDURE', 'ALTER ROUTINE', 'ALTER FUNCTION',
		'CREATE PROCEDURE', 'CREATE FUNCTION')
	EXECUTE FUNCTION pipeline_internal.on_ddl_command_end();
ALTER EVENT TRIGGER pipeline_ddl_command_end ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER pipeline_ddl_command_end IS
	'data pipelines: datasets and pipelines that are renamed, moved or given away';

-- ---------------------------------------------------------------------------
-- 7. Grants
-- ---------------------------------------------------------------------------

GRANT USAGE ON SCHEMA pipeline TO PUBLIC;
-- Owners look up their private tables there; the schema itself gives no right on any table.
GRANT USAGE ON SCHEMA pipeline_data TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA pipeline TO PUBLIC;
-- Functions of pipeline_internal: the schema gives no USAGE, and they give no EXECUTE.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA pipeline_internal FROM PUBLIC;

-- ---------------------------------------------------------------------------
-- 8. Dump marks
-- ---------------------------------------------------------------------------

SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.pipelines', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.pipelines_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.datasets', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.datasets_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.flows', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.flows_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.flow_inputs', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.expectations', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.expectations_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.checkpoints', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.file_sources', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.files', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.updates', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.updates_seq_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.update_datasets', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.events', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.events_seq_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.incarnation', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.sources', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.sources_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.source_logs', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.capture_grants', '');
SELECT pg_catalog.pg_extension_config_dump('pipeline_internal.log_headers', '');

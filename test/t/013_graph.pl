# The DAG: order, cycles, failures, selection, inactive datasets, drops, the event log.
use strict;
use warnings;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('graph');
my $db;

# ---- a failure skips only what is downstream
$db = fresh_db($node, 'failure');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (1),(0),(2)');
my $body = 'CREATE OR REFRESH STREAMING TABLE a AS SELECT id FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE bad AS SELECT 10 / %s AS q FROM STREAM(src);
	CREATE OR REFRESH MATERIALIZED VIEW x AS SELECT count(*) AS n FROM bad;
	CREATE OR REFRESH MATERIALIZED VIEW z AS SELECT n + 1 AS n FROM x;
	CREATE OR REFRESH MATERIALIZED VIEW ok AS SELECT count(*) AS n FROM a;';
pipeline($node, $db, 'p', sprintf($body, 'id'));
my $err = fails_with($node, $db, 'CALL p()', '22012', qr/1 dataset FAILED, 2 SKIPPED, 2 COMPLETED/, 'failed flow');
like($err, qr/bad: division by zero/, 'DETAIL names the dataset and the error');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM a), (SELECT n FROM ok), (SELECT count(*) FROM bad)', ['3|3|0'], 'siblings completed');
rows_are($node, $db, q(SELECT dataset, last_update_state FROM pipeline.datasets ORDER BY 1),
	['public.a|COMPLETED', 'public.bad|FAILED', 'public.ok|COMPLETED', 'public.x|SKIPPED', 'public.z|SKIPPED'], 'states');
rows_are($node, $db, q(SELECT count(*) FROM pipeline.event_log('x') WHERE details #>> '{flow_progress,status}' = 'RUNNING'), ['0'], 'a skipped flow never ran');
rows_are($node, $db, q(SELECT object, sqlstate FROM pipeline.problems WHERE sqlstate IS NOT NULL), ['public.bad|22012'], 'problems');
pipeline($node, $db, 'p', sprintf($body, 'nullif(id, 0)'));
$node->safe_psql($db, q(CALL pipeline.run_update('p', failed_only => true)));
rows_are($node, $db, 'SELECT (SELECT string_agg(q::text, $$,$$ ORDER BY q) FROM bad), (SELECT n FROM x), (SELECT n FROM z), (SELECT count(*) FROM a)',
	['5,10|3|4|3'], 'only the failed ones ran, nothing twice');
rows_are($node, $db, q(SELECT count(*) FROM pipeline.problems WHERE object = 'public.bad'), ['0'], 'no problem left');

# ---- selection
$db = fresh_db($node, 'selection');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (1)');
pipeline($node, $db, 'p', 'CREATE OR REFRESH STREAMING TABLE a AS SELECT id FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE b AS SELECT id FROM STREAM(a);
	CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT count(*) AS n FROM b;
	CREATE OR REFRESH MATERIALIZED VIEW other AS SELECT count(*) AS n FROM src;');
my $counts = 'SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT n FROM m), (SELECT n FROM other)';
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, $counts, ['1|1|1|1'], 'all');
$node->safe_psql($db, q(INSERT INTO src VALUES (2); CALL pipeline.run_update('p', datasets => '{b}')));
rows_are($node, $db, $counts, ['1|1|1|1'], 'b alone uses what is there');
$node->safe_psql($db, q(CALL pipeline.run_update('p', datasets => '{+b}')));
rows_are($node, $db, $counts, ['2|2|1|1'], 'b with everything upstream');
$node->safe_psql($db, q(CALL pipeline.run_update('p', datasets => '{a+}')));
rows_are($node, $db, $counts, ['2|2|2|1'], 'a with everything downstream');
fails_with($node, $db, q(CALL pipeline.run_update('p', datasets => '{nope}')), '42704', qr/no dataset "nope"/, 'unknown dataset');
fails_with($node, $db, q(CALL pipeline.run_update('p', datasets => '{a}', full_refresh => true)), '55000', qr/streams that read it/, 'full refresh under a stream');
$node->safe_psql($db, q(DELETE FROM src WHERE id = 1; CALL pipeline.run_update('p', datasets => '{a}', full_refresh => true, cascade => true)));
rows_are($node, $db, 'SELECT (SELECT string_agg(id::text, $$,$$) FROM a), (SELECT string_agg(id::text, $$,$$) FROM b)', ['2|2'], 'full refresh with its readers');

# ---- dry run
$node->safe_psql($db, q(INSERT INTO src VALUES (3); CALL pipeline.run_update('p', validate_only => true)));
rows_are($node, $db, 'SELECT count(*) FROM a', ['1'], 'a dry run writes nothing');

# ---- atomic
$node->safe_psql($db, q(CALL pipeline.run_update('p', atomic => true)));
rows_are($node, $db, $counts, ['2|2|2|2'], 'atomic');

# ---- cycles, duplicates, missing sources
$db = fresh_db($node, 'wrong');
$node->safe_psql($db, 'CREATE TABLE src (id int)');
my $create = sub { "CREATE PROCEDURE w() LANGUAGE pipeline AS \$p\$ $_[0] \$p\$" };
fails_with($node, $db, $create->('CREATE OR REFRESH STREAMING TABLE a AS SELECT * FROM STREAM(b); CREATE OR REFRESH STREAMING TABLE b AS SELECT * FROM STREAM(a);'),
	'42P17', qr/a -> .*b -> .*a|b -> .*a -> .*b/s, 'cycle');
fails_with($node, $db, $create->('CREATE OR REFRESH STREAMING TABLE a AS SELECT * FROM STREAM(a);'), '42P17', qr/circle/, 'self reference');
fails_with($node, $db, $create->('CREATE OR REFRESH STREAMING TABLE a AS SELECT * FROM STREAM(src); CREATE OR REFRESH MATERIALIZED VIEW a AS SELECT 1 AS x;'),
	'42710', qr/"a" is defined twice/, 'duplicate');
fails_with($node, $db, $create->('CREATE OR REFRESH STREAMING TABLE a AS SELECT nope FROM STREAM(src);'), '42703', qr/nope.*LINE 1: .*nope/s, 'unknown column');
fails_with($node, $db, $create->('CREATE OR REFRESH STREAMING TABLE a AS SELECT 1 FROM STREAM(src) WHER;'), '42601', qr/LINE 1/, 'syntax');
rows_are($node, $db, q(SELECT count(*) FROM pg_proc WHERE proname = 'w'), ['0'], 'nothing was created');
$node->safe_psql($db, $create->('CREATE OR REFRESH STREAMING TABLE a AS SELECT * FROM STREAM(not_there);'));
fails_with($node, $db, 'CALL w()', '42P01', qr/not_there/, 'a missing source is an error at the run');

# ---- privileges
rows_are($node, $db, q(SELECT has_function_privilege('public', 'w()', 'EXECUTE')), ['f'], 'EXECUTE is not for everybody');

# ---- a definition that is removed leaves its table
$db = fresh_db($node, 'removed');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (1)');
pipeline($node, $db, 'p', 'CREATE OR REFRESH STREAMING TABLE a AS SELECT id FROM STREAM(src); CREATE OR REFRESH STREAMING TABLE b AS SELECT id FROM STREAM(src);');
$node->safe_psql($db, 'CALL p()');
pipeline($node, $db, 'p', 'CREATE OR REFRESH STREAMING TABLE a AS SELECT id FROM STREAM(src);');
$node->safe_psql($db, 'INSERT INTO src VALUES (2); CALL p()');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)', ['2|1'], 'rows stay, no refresh');
rows_are($node, $db, q(SELECT state FROM pipeline.datasets WHERE dataset = 'public.b'), ['INACTIVE'], 'inactive');
fails_with($node, $db, 'CREATE PROCEDURE q() LANGUAGE pipeline AS $$ CREATE OR REFRESH STREAMING TABLE a AS SELECT id FROM STREAM(src); $$',
	'55000', qr/belongs to pipeline/, 'one pipeline per dataset');

# ---- drops
$db = fresh_db($node, 'drops');
$node->safe_psql($db, 'CREATE TABLE src (id int PRIMARY KEY); INSERT INTO src VALUES (1)');
pipeline($node, $db, 'p', 'CREATE OR REFRESH STREAMING TABLE t AS SELECT id FROM STREAM(src); CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t;');
$node->safe_psql($db, 'CALL p()');
fails_with($node, $db, 'DROP TABLE src', '2BP01', qr/\bt\b/, 'DROP TABLE names the reader');
$node->safe_psql($db, 'DROP TABLE src CASCADE');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM t), (SELECT n FROM m)', ['1|1'], 'rows stay');
rows_are($node, $db, q(SELECT dataset, state FROM pipeline.datasets ORDER BY 1), ['public.m|ACTIVE', 'public.t|INACTIVE'], 'the stream is inactive');
rows_are($node, $db, q(SELECT message ~ 'source dropped' OR object ~ 't' FROM pipeline.problems WHERE object = 'public.t'), ['t'], 'and why');
$db = fresh_db($node, 'drops2');
$node->safe_psql($db, 'CREATE SCHEMA s; CREATE TABLE src (id int PRIMARY KEY); INSERT INTO src VALUES (1)');
pipeline($node, $db, 's.p', 'CREATE OR REFRESH STREAMING TABLE t AS SELECT id FROM STREAM(public.src); CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t;');
$node->safe_psql($db, 'CALL s.p()');
$node->safe_psql($db, 'BEGIN; INSERT INTO src VALUES (2); DO LANGUAGE pipeline $$REFRESH STREAMING TABLE s.t$$; DROP SCHEMA s CASCADE; COMMIT');
rows_are($node, $db, q(SELECT count(*) FROM pipeline.datasets), ['0'], 'datasets are gone');
rows_are($node, $db, q(SELECT count(*) FROM pg_trigger WHERE tgrelid = 'src'::regclass), ['0'], 'no trigger is left on the source');
$node->safe_psql($db, 'INSERT INTO src VALUES (3)');
$node->safe_psql($db, 'CREATE SCHEMA s');
pipeline($node, $db, 's.p', 'CREATE OR REFRESH STREAMING TABLE t AS SELECT id FROM STREAM(public.src);');
$node->safe_psql($db, 'CALL s.p()');
rows_are($node, $db, 'SELECT count(*) FROM s.t', ['3'], 'created again');
fails_with($node, $db, 'BEGIN; INSERT INTO src VALUES (4); SAVEPOINT a; INSERT INTO src VALUES (4);', '23505', qr/duplicate/, 'error in the transaction');
$node->psql($db, 'BEGIN; INSERT INTO src VALUES (5); SAVEPOINT a; INSERT INTO src VALUES (5); ROLLBACK TO a; DROP TABLE src CASCADE; COMMIT', on_error_stop => 0);
rows_are($node, $db, q(SELECT to_regclass('src') IS NULL), ['t'], 'dropped after a savepoint');
my ($rc, $out, $why) = $node->psql($db, 'DROP EXTENSION pipeline');
isnt($rc, 0, 'DROP EXTENSION is refused while pipelines exist');
$node->safe_psql($db, 'CREATE TABLE keep (id int); INSERT INTO keep VALUES (1)');
pipeline($node, $db, 'public.k', 'CREATE OR REFRESH STREAMING TABLE kt AS SELECT id FROM STREAM(keep);');
$node->safe_psql($db, 'CALL public.k(); DROP EXTENSION pipeline CASCADE');
rows_are($node, $db, q(SELECT count(*) FROM pg_trigger WHERE tgrelid = 'keep'::regclass), ['0'], 'CASCADE leaves no trigger');
$node->safe_psql($db, 'INSERT INTO keep VALUES (2); CREATE EXTENSION pipeline');
rows_are($node, $db, 'SELECT count(*) FROM keep', ['2'], 'the source keeps its data');

# ---- the log after a failure
$db = fresh_db($node, 'failed_log');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (1),(2),(3),(-1)');
pipeline($node, $db, 'p', 'CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT pos EXPECT (id > 0) ON VIOLATION FAIL UPDATE) AS SELECT * FROM STREAM(src);');
my $failed = q(SELECT level, error::text ~ 'pos' AND error::text ~ '1 of 4', details #> '{flow_progress,data_quality}' IS NULL
	FROM pipeline.event_log('p') WHERE event_type = 'flow_progress' AND details #>> '{flow_progress,status}' = 'FAILED');
fails_with($node, $db, 'CALL p()', '23514', qr/pos/, 'CALL');
rows_are($node, $db, $failed, ['ERROR|t|t'], 'the failure is in the log');
rows_are($node, $db, q(SELECT state FROM pipeline.updates), ['FAILED'], 'update FAILED');
fails_with($node, $db, 'BEGIN; CALL p(); COMMIT', '23514', qr/pos/, 'inside a block');
rows_are($node, $db, q(SELECT count(*) FROM pipeline.updates WHERE state <> 'FAILED'), ['0'], 'never COMPLETED');
fails_with($node, $db, q(CALL pipeline.run_update('p', atomic => true)), '23514', qr/pos/, 'atomic');
rows_are($node, $db, 'SELECT count(*) FROM pipeline.updates', ['2'], 'an atomic failure is recorded after its rollback');
fails_with($node, $db, 'DO LANGUAGE pipeline $$REFRESH STREAMING TABLE t$$', '23514', qr/pos/, 'REFRESH');
rows_are($node, $db, 'SELECT count(*) FROM pipeline.updates', ['3'], 'so is that of REFRESH');
$node->safe_psql($db, 'CREATE ROLE nobody_here');
rows_are($node, $db, q(SET ROLE nobody_here; SELECT count(*) FROM pipeline.datasets), ['0'], 'no rights: nothing to see');
fails_with($node, $db, q(SET ROLE nobody_here; SELECT * FROM pipeline.event_log('p')), '42501', qr/permission|denied/, 'no rights: event_log');

# ---- shape and sums
$db = fresh_db($node, 'log_shape');
$node->safe_psql($db, 'CREATE TABLE src (a int, b int); INSERT INTO src VALUES (1,1),(1,1),(1,0),(0,0)');
pipeline($node, $db, 'p', 'CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT e1 EXPECT (a = 1), CONSTRAINT e2 EXPECT (b = 1) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(src);');
$node->safe_psql($db, 'CALL p(); INSERT INTO src VALUES (0, 1); CALL p()');
counts_are($node, $db, 'p', 'e1', '3|2', 'e1');
counts_are($node, $db, 'p', 'e2', '3|2', 'e2');
rows_are($node, $db, q(SELECT sum((details #>> '{flow_progress,data_quality,dropped_records}')::int), sum((details #>> '{flow_progress,metrics,num_output_rows}')::int)
	FROM pipeline.event_log('p')), ['2|3'], 'dropped and output');
rows_are($node, $db, q(SELECT count(*) = count(DISTINCT id), bool_and("timestamp" IS NOT NULL AND level IS NOT NULL AND message <> '' AND (event_type = 'user_action' OR origin->>'update_id' IS NOT NULL))
	FROM pipeline.event_log('p')), ['t|t'], 'every event is complete');
rows_are($node, $db, q(SELECT string_agg(details #>> '{flow_progress,status}', ' ' ORDER BY (sequence #>> '{data_plane_id,seq_no}')::bigint)
	FROM pipeline.event_log('p') WHERE event_type = 'flow_progress' AND origin->>'update_id' = (SELECT update_id::text FROM pipeline.updates ORDER BY started_at LIMIT 1)),
	['QUEUED STARTING RUNNING COMPLETED'], 'order of states');

# ---- several updates of several layers with files
$db = fresh_db($node, 'orders');
my $dir = PostgreSQL::Test::Utils::tempdir();
write_file("$dir/orders.json", <<'J');
{"order_id": 1, "customer_id": 1, "amount": "10.50", "order_ts": "2024-05-01 10:00:00"}
{"order_id": null, "customer_id": 1, "amount": "99", "order_ts": "2024-05-01 10:05:00"}
{"order_id": 2, "customer_id": 2, "amount": "-3", "order_ts": "2024-05-01 23:59:59"}
{"order_id": 3, "customer_id": 9, "amount": "7", "order_ts": "2024-05-02 00:00:00"}
J
$node->safe_psql($db, q(CREATE TABLE dim_customers (id int, region text); INSERT INTO dim_customers VALUES (1,'north'),(2,'south')));
pipeline($node, $db, 'p', "
	CREATE OR REFRESH MATERIALIZED VIEW gold AS SELECT DATE(s.order_ts) AS day, d.region, SUM(s.amount) AS amount, COUNT(*) AS n
		FROM silver s JOIN dim_customers d ON d.id = s.customer_id GROUP BY DATE(s.order_ts), d.region;
	CREATE OR REFRESH STREAMING TABLE silver (CONSTRAINT valid_id EXPECT (order_id IS NOT NULL) ON VIOLATION DROP ROW, CONSTRAINT valid_amt EXPECT (amount > 0))
		AS SELECT order_id, customer_id, CAST(amount AS DECIMAL(10,2)) AS amount, CAST(order_ts AS timestamp) AS order_ts FROM STREAM(bronze);
	CREATE OR REFRESH STREAMING TABLE bronze AS SELECT * FROM STREAM read_files('$dir', format => 'json');");
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM bronze), (SELECT count(*) FROM silver)', ['4|3'], 'bronze and silver');
rows_are($node, $db, 'SELECT * FROM gold ORDER BY 1, 2', ['2024-05-01|north|10.50|1', '2024-05-01|south|-3.00|1'], 'gold');
counts_are($node, $db, 'p', 'valid_id', '3|1', 'valid_id');
counts_are($node, $db, 'p', 'valid_amt', '3|1', 'counted over all rows');
$node->safe_psql($db, q(INSERT INTO dim_customers VALUES (9,'west'); UPDATE dim_customers SET region = 'east' WHERE id = 2; CALL p()));
rows_are($node, $db, 'SELECT * FROM gold ORDER BY 1, 2', ['2024-05-01|east|-3.00|1', '2024-05-01|north|10.50|1', '2024-05-02|west|7.00|1'], 'gold follows the dimension');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM bronze), (SELECT count(*) FROM silver)', ['4|3'], 'streams unchanged');

# ---- awkward names
$db = fresh_db($node, 'names');
my $long = 'x' x 63;
$node->safe_psql($db, qq(CREATE SCHEMA "Sch ema"; CREATE TABLE "Sch ema"."Tab ""le" ("Id " int, "größe" text); INSERT INTO "Sch ema"."Tab ""le" VALUES (1, 'ü')));
$node->safe_psql($db, qq(CREATE PROCEDURE "Sch ema"."Pipe.line"() LANGUAGE pipeline AS \$\$
	CREATE OR REFRESH STREAMING TABLE "$long" (CONSTRAINT "regel ä" EXPECT ("größe" IS NOT NULL) ON VIOLATION QUARANTINE ROW) AS SELECT * FROM STREAM("Tab ""le");
	CREATE OR REFRESH MATERIALIZED VIEW `select` AS SELECT count(*) AS `Größe` FROM "$long"; \$\$));
$node->safe_psql($db, 'CALL "Sch ema"."Pipe.line"()');
rows_are($node, $db, qq(SELECT * FROM "Sch ema"."$long"), ['1|ü'], 'table');
rows_are($node, $db, 'SELECT "Größe" FROM "Sch ema"."select"', ['1'], 'view');
rows_are($node, $db, q(SELECT count(*) > 0 FROM pipeline.event_log('"Sch ema"."Pipe.line"')), ['t'], 'log');

$node->stop;
done_testing();

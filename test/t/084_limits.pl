# What README.md lists under "Limits": each line is provoked, with its SQLSTATE, and leaves nothing.
use strict;
use warnings;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('limits');
my $db = fresh_db($node, 'limits');
my $empty = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql($db, q(CREATE TABLE src (id int, v int, at timestamptz); INSERT INTO src VALUES (1, 1, now());
	CREATE VIEW look AS SELECT * FROM src;
	CREATE TABLE rules (name text, "constraint" text, tag text);));

sub run_do { return "DO LANGUAGE pipeline \$do\$ $_[0] \$do\$"; }
sub define { return "CREATE PROCEDURE p() LANGUAGE pipeline AS \$p\$ $_[0] \$p\$"; }

# ---- not built yet
my $cdc = 'KEYS (id) SEQUENCE BY at';
for my $case (
	[ 'AUTO CDC', define("CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(src) $cdc;"), qr/AUTO CDC/ ],
	[ 'APPLY CHANGES', define("CREATE STREAMING TABLE t; APPLY CHANGES INTO t FROM STREAM(src) $cdc;"), qr/AUTO CDC/ ],
	[ 'CREATE FLOW', define('CREATE STREAMING TABLE t; CREATE FLOW f AS INSERT INTO t BY NAME SELECT * FROM STREAM(src);'), qr/CREATE FLOW/ ],
	[ 'REPLACE WHERE', run_do('CREATE STREAMING TABLE t FLOW REPLACE WHERE id > 1 BY NAME SELECT id FROM src'), qr/REPLACE WHERE/ ],
	[ 'SCHEDULE EVERY', run_do('CREATE STREAMING TABLE t SCHEDULE EVERY 1 HOUR AS SELECT * FROM STREAM(src)'), qr/SCHEDULE/ ],
	[ 'SCHEDULE CRON', run_do(q(CREATE MATERIALIZED VIEW t SCHEDULE CRON '0 0 2 * * ?' AS SELECT id FROM src)), qr/SCHEDULE/ ],
	[ 'TRIGGER', run_do('CREATE MATERIALIZED VIEW t TRIGGER ON UPDATE AS SELECT id FROM src'), qr/TRIGGER ON UPDATE/ ],
	[ 'INCREMENTAL', run_do('CREATE MATERIALIZED VIEW t REFRESH POLICY INCREMENTAL AS SELECT id FROM src'), qr/INCREMENTAL/ ],
	[ 'INCREMENTAL STRICT', run_do('CREATE MATERIALIZED VIEW t REFRESH POLICY INCREMENTAL STRICT AS SELECT id FROM src'), qr/INCREMENTAL/ ],
	[ 'native schedule', q(CREATE MATERIALIZED VIEW t WITH (pipeline.schedule = 'every 1 hour') AS SELECT id FROM src), qr/pipeline\.schedule/ ],
	[ 'EXPLAIN CREATE', run_do('EXPLAIN CREATE MATERIALIZED VIEW t AS SELECT id FROM src'), qr/EXPLAIN/ ],
	[ 'GRANT REFRESH', run_do('GRANT REFRESH ON src TO postgres'), qr/GRANT REFRESH/ ],
	[ 'EXPECT ALL FROM', define('CREATE STREAMING TABLE t (EXPECT ALL FROM rules ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(src);'), qr/EXPECT ALL FROM/ ],
	[ 's3', run_do(q(CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('s3://b/x', format => 'json'))), qr{s3://b/x} ],
	[ 'https', run_do(q(CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('https://h/x.json', format => 'json'))), qr{https://h/x} ],
	[ 'parquet', run_do(qq(CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('$empty', format => 'parquet'))), qr/parquet/ ],
	[ 'Kafka', run_do(q(CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_kafka(subscribe => 'x'))), qr/read_kafka/ ],
	[ 'aggregation', run_do('CREATE STREAMING TABLE t AS SELECT id, count(*) AS n FROM STREAM(src) GROUP BY id'), qr/aggregat/i ],
	[ 'DISTINCT', run_do('CREATE STREAMING TABLE t AS SELECT DISTINCT id FROM STREAM(src)'), qr/DISTINCT/ ],
	[ 'two streams', run_do('CREATE STREAMING TABLE t AS SELECT a.id FROM STREAM(src) a JOIN STREAM(src) b ON a.id = b.id'), qr/two streams|join/i ],
	[ 'window function', run_do('CREATE STREAMING TABLE t AS SELECT id, row_number() OVER (ORDER BY id) AS n FROM STREAM(src)'), qr/window/i ],
	[ 'LIMIT', run_do('CREATE STREAMING TABLE t AS SELECT id FROM STREAM(src) LIMIT 1'), qr/LIMIT/ ],
	[ 'row filter', run_do('CREATE STREAMING TABLE t WITH ROW FILTER f ON (id) AS SELECT id FROM STREAM(src)'), qr/ROW FILTER/ ],
	[ 'stream of a view', run_do('CREATE STREAMING TABLE t AS SELECT id FROM STREAM(look)'), qr/look/ ])
{
	my ($name, $sql, $message) = @$case;
	fails_with($node, $db, $sql, '0A000', $message, $name);
}

# ---- refused for good
fails_with($node, $db, run_do('CREATE STREAMING TABLE t AS SELECT id FROM src'), '0A000', qr/reads no stream/, 'a stream is needed');
fails_with($node, $db, run_do('CREATE MATERIALIZED VIEW t AS SELECT id FROM STREAM(src)'), '0A000', qr/cannot read a stream/, 'a view reads none');
fails_with($node, $db, define('CREATE VIEW v AS SELECT id FROM src;') =~ s/LANGUAGE/SECURITY DEFINER LANGUAGE/r, '42P13',
	qr/neither SET clauses nor SECURITY DEFINER/, 'SECURITY DEFINER');
fails_with($node, $db, define('CREATE VIEW v AS SELECT id FROM src;') =~ s/LANGUAGE/SET work_mem = '1MB' LANGUAGE/r, '42P13',
	qr/neither SET clauses nor SECURITY DEFINER/, 'SET');
rows_are($node, $db, q(SELECT (SELECT count(*) FROM pipeline.datasets), (SELECT count(*) FROM pipeline.pipelines),
	(SELECT count(*) FROM pg_class WHERE relname = 't'), (SELECT count(*) FROM pg_trigger WHERE tgrelid = 'src'::regclass)),
	['0|0|0|0'], 'nothing is left of all these');

$node->safe_psql($db, run_do('CREATE MATERIALIZED VIEW stored AS SELECT id FROM src'));
fails_with($node, $db, run_do('CREATE STREAMING TABLE t AS SELECT id FROM STREAM(stored)'), '0A000', qr/stored/, 'stream of a materialized view');
$node->safe_psql($db, 'DROP MATERIALIZED VIEW stored');

pipeline($node, $db, 'p', q(CREATE STREAMING TABLE t TBLPROPERTIES ('pipelines.reset.allowed' = 'false') AS SELECT id, v FROM STREAM(src);
	CREATE STREAMING TABLE skipping AS SELECT id, v FROM STREAM src WITH (skipChangeCommits);
	CREATE STREAMING TABLE above AS SELECT id, v FROM STREAM(skipping);));
$node->safe_psql($db, 'CALL p()');
fails_with($node, $db, 'CREATE PROCEDURE p(x int) LANGUAGE pipeline AS $$ CREATE VIEW v AS SELECT 1 AS x; $$', '42723', qr/other parameters/, 'overload');
fails_with($node, $db, "$_", '55000', qr/maintained by a pipeline/, $_)
	for 'INSERT INTO t VALUES (9, 9)', 'UPDATE t SET v = 0', 'DELETE FROM t', 'TRUNCATE t';
fails_with($node, $db, q(CALL pipeline.run_update('p', datasets => '{t}', full_refresh => true)), '55000', qr/forbidden/, 'reset.allowed');
fails_with($node, $db, q(CALL pipeline.run_update('p', datasets => '{skipping}', full_refresh => true)), '55000',
	qr/above/, 'full refresh below a stream');

# ---- what falls back
$node->safe_psql($db, q(UPDATE src SET v = 2; INSERT INTO src VALUES (2, 2)));
fails_with($node, $db, 'CALL p()', '55000', qr/"?public\.src"? .*updated/s, 'a source row was updated');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM t), (SELECT string_agg(id::text, $$,$$) FROM skipping)', ['1|1,2'],
	'skipChangeCommits passes over it, the others stand still');
$node->safe_psql($db, run_do(q(CREATE MATERIALIZED VIEW clock AS SELECT now() AS at; CREATE MATERIALIZED VIEW calm AS SELECT count(*) AS n FROM src)));
$node->safe_psql($db, run_do('REFRESH MATERIALIZED VIEW clock; REFRESH MATERIALIZED VIEW calm'));
rows_are($node, $db, q(SELECT dataset, last_refresh_type FROM pipeline.datasets WHERE kind = 'MATERIALIZED_VIEW' ORDER BY 1),
	[ 'public.calm|NO_OP', 'public.clock|FULL_RECOMPUTE' ], 'unchanged sources: nothing is done, but for the clock');

$node->stop;
done_testing();

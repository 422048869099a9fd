# Streaming tables: concurrency, full refresh, static joins, redefinition, direct writes.
use strict;
use warnings;
use PipelineTest;
use Test::More;

my $node = pipeline_node('streams');
my $db;

# ---- a lower number commits later
for my $how ('COMMIT', 'SAVEPOINT', 'PREPARE')
{
	$db = fresh_db($node, 'late_' . lc $how);
	$node->safe_psql($db, q(CREATE TABLE src (id bigint GENERATED ALWAYS AS IDENTITY, v text)));
	pipeline($node, $db, 'p', 'CREATE OR REFRESH STREAMING TABLE t AS SELECT id, v FROM STREAM(src);');
	$node->safe_psql($db, 'CALL p()');
	my $in = '';
	my $out = '';
	my $timer = IPC::Run::timeout(60);
	my $session = IPC::Run::start(['psql', '-XAtq', '-d', $node->connstr($db), '-f', '-'],
		'<', \$in, '>', \$out, '2>', \my $err, $timer);
	my $say = sub {
		my ($sql, $mark) = @_;
		$in .= "$sql;\n\\echo $mark\n";
		pump $session until $out =~ /$mark/;
	};
	$say->('BEGIN', 'begun');
	$say->('SAVEPOINT a', 'saved') if $how eq 'SAVEPOINT';
	$say->(q(INSERT INTO src (v) VALUES ('slow')), 'first');
	$node->safe_psql($db, q(INSERT INTO src (v) VALUES ('fast')));
	$node->safe_psql($db, 'CALL p()') for 1 .. 2;
	rows_are($node, $db, 'SELECT * FROM t', ['2|fast'], "$how: only what is committed");
	$say->('SAVEPOINT b', 'saved_b') if $how eq 'SAVEPOINT';
	$say->(q(INSERT INTO src (v) VALUES ('slow2')), 'second');
	if ($how eq 'PREPARE')
	{
		$say->(q(PREPARE TRANSACTION 'x'), 'prepared');
		$node->safe_psql($db, 'CALL p()');
		rows_are($node, $db, 'SELECT * FROM t', ['2|fast'], "$how: prepared is not committed");
		$node->safe_psql($db, q(COMMIT PREPARED 'x'));
	}
	else
	{
		$say->('COMMIT', 'done');
	}
	$node->safe_psql($db, 'CALL p()') for 1 .. 2;
	rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|slow', '2|fast', '3|slow2'], "$how: each row once");
	$in .= "\\q\n";
	$session->finish;
}

# ---- two refreshes at the same time, and a writer
$db = fresh_db($node, 'concurrent');
$node->safe_psql($db, 'CREATE TABLE src (id int PRIMARY KEY)');
$node->safe_psql($db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM(src)$$');
$node->safe_psql($db, 'INSERT INTO src SELECT g FROM generate_series(1, 1000) g');
{
	my @running;
	my $refresh = 'DO LANGUAGE pipeline $$REFRESH STREAMING TABLE t$$';
	my $writes = join(';', map { "INSERT INTO src VALUES ($_)" } 1001 .. 2000);
	for my $sql ($refresh, $refresh, $writes)
	{
		my ($out, $err) = ('', '');
		push @running, [ IPC::Run::start(['psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($db), '-f', '-'],
			'<', \(my $text = "SET pipeline.messages = quiet; $sql"), '>', \$out, '2>', \$err), \$err ];
	}
	for my $r (@running)
	{
		$r->[0]->finish;
		is(${ $r->[1] }, '', 'no error');
	}
	$node->safe_psql($db, $refresh);
	rows_are($node, $db, 'SELECT count(*), count(DISTINCT id) FROM t', ['2000|2000'], 'each row once');
}

# ---- a second update of one pipeline is refused
$db = fresh_db($node, 'busy');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (1)');
pipeline($node, $db, 'p', 'CREATE OR REFRESH MATERIALIZED VIEW slow AS SELECT id, pg_sleep(2)::text AS s FROM src;');
{
	my ($out, $err) = ('', '');
	my $first = IPC::Run::start(['psql', '-Xq', '-d', $node->connstr($db), '-c', 'CALL p()'], '>', \$out, '2>', \$err);
	$node->poll_query_until($db, q(SELECT count(*) > 0 FROM pipeline.updates WHERE state = 'RUNNING')) or die;
	fails_with($node, $db, 'CALL p()', '55006', qr/running already/, 'second CALL');
	$node->safe_psql($db, 'SET pipeline.on_busy = skip; CALL p()');
	$node->safe_psql($db, 'SET pipeline.on_busy = wait; CALL p()');
	$first->finish;
	rows_are($node, $db, q(SELECT count(*) FROM pipeline.updates WHERE state = 'COMPLETED'), ['2'], 'one refused, one skipped, one waited');
}

# ---- rows that left the source
$db = fresh_db($node, 'left');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src SELECT g FROM generate_series(1, 5) g');
$node->safe_psql($db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM src WITH (skipChangeCommits)$$');
my $refresh = 'DO LANGUAGE pipeline $$REFRESH STREAMING TABLE t$$';
my $full = 'DO LANGUAGE pipeline $$REFRESH STREAMING TABLE t FULL$$';
my $ids = q(SELECT string_agg(id::text, ',' ORDER BY id) FROM t);
$node->safe_psql($db, "DELETE FROM src WHERE id <= 3; INSERT INTO src VALUES (6); $refresh");
rows_are($node, $db, $ids, ['1,2,3,4,5,6'], 'a plain update never removes rows');
$node->safe_psql($db, $full);
rows_are($node, $db, $ids, ['4,5,6'], 'full refresh: what the source has');
$node->safe_psql($db, $refresh);
rows_are($node, $db, $ids, ['4,5,6'], 'nothing twice');
$node->safe_psql($db, "INSERT INTO src VALUES (7); $refresh");
rows_are($node, $db, $ids, ['4,5,6,7'], 'goes on');

# ---- without the option a change is an error that consumes nothing
$db = fresh_db($node, 'changed');
$node->safe_psql($db, 'CREATE TABLE src (id int PRIMARY KEY, v int); INSERT INTO src VALUES (1,1),(2,2)');
$node->safe_psql($db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM(src)$$');
$node->safe_psql($db, 'UPDATE src SET v = 9 WHERE id = 77');
$node->safe_psql($db, 'BEGIN; INSERT INTO src VALUES (50, 1); DELETE FROM src WHERE id = 50; COMMIT');
$node->safe_psql($db, $refresh);
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|1', '2|2'], 'changes without net effect are none');
$node->safe_psql($db, 'UPDATE src SET v = 9 WHERE id = 1; INSERT INTO src VALUES (3,3)');
fails_with($node, $db, $refresh, '55000', qr/src.*updated|src.*not append-only/, 'updated row');
$node->safe_psql($db, 'DELETE FROM src WHERE id = 2');
fails_with($node, $db, $refresh, '55000', qr/src/, 'deleted row');
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|1', '2|2'], 'nothing was read');
$node->safe_psql($db, $full);
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|9', '3|3'], 'full refresh');
$node->safe_psql($db, "INSERT INTO src VALUES (4,4); $refresh");
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|9', '3|3', '4|4'], 'later rows are delivered');

# ---- skipChangeCommits skips whole transactions
$db = fresh_db($node, 'skip_commits');
$node->safe_psql($db, 'CREATE TABLE src (id int PRIMARY KEY, v int); INSERT INTO src VALUES (1,1)');
$node->safe_psql($db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM src WITH (skipChangeCommits)$$');
$node->safe_psql($db, $_) for 'INSERT INTO src VALUES (2,2)',
	'BEGIN; UPDATE src SET v = 10 WHERE id = 1; INSERT INTO src VALUES (3,3); COMMIT',
	'DELETE FROM src WHERE id = 2', 'INSERT INTO src VALUES (4,4)', $refresh;
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|1', '2|2', '4|4'], 'row 3 is skipped with its transaction');

# ---- stream-static join
for my $join ('JOIN', 'LEFT JOIN')
{
	$db = fresh_db($node, $join eq 'JOIN' ? 'static_inner' : 'static_left');
	$node->safe_psql($db, q(CREATE TABLE r (id int, dev int, val int); CREATE TABLE d (dev int, site text);
		INSERT INTO d VALUES (1,'north'); INSERT INTO r VALUES (1,1,10),(2,2,20);));
	pipeline($node, $db, 'p', "CREATE OR REFRESH STREAMING TABLE g AS SELECT r.id, r.val, d.site FROM STREAM(r) r $join d ON d.dev = r.dev;");
	$node->safe_psql($db, 'CALL p()');
	my @first = $join eq 'JOIN' ? ('1|10|north') : ('1|10|north', '2|20|');
	rows_are($node, $db, 'SELECT * FROM g ORDER BY 1', \@first, "$join: first");
	$node->safe_psql($db, q(UPDATE d SET site = 'south'; INSERT INTO d VALUES (2,'west'); CALL p()));
	rows_are($node, $db, 'SELECT * FROM g ORDER BY 1', \@first, "$join: old rows are not revisited");
	$node->safe_psql($db, 'INSERT INTO r VALUES (3,1,30),(4,2,40); CALL p()');
	rows_are($node, $db, 'SELECT * FROM g ORDER BY 1', [ @first, '3|30|south', '4|40|west' ], "$join: new rows see the new side");
}

# ---- redefinition keeps rows
$db = fresh_db($node, 'redefinition');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (1),(2)');
$node->safe_psql($db, q(DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT id, 'v1' AS ver FROM STREAM(src)$$));
$node->safe_psql($db, 'INSERT INTO src VALUES (3)');
$node->safe_psql($db, q(DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT id, 'v2' AS ver FROM STREAM(src) WHERE id <> 2$$));
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|v1', '2|v1', '3|v2'], 'old rows stay');
$node->safe_psql($db, $full);
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|v2', '3|v2'], 'full refresh applies the new query');
$node->safe_psql($db, q(INSERT INTO src VALUES (4);
	DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT id, 'v3' AS ver, id * 2 AS twice FROM STREAM(src)$$));
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|v2|', '3|v2|', '4|v3|8'], 'a new column reads NULL in old rows');
fails_with($node, $db, q(DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT id::text AS id FROM STREAM(src)$$),
	'42804', qr/column "id".*cannot become text/, 'changed type');

# ---- what a stream may not be
$db = fresh_db($node, 'not_a_stream');
$node->safe_psql($db, 'CREATE TABLE s (id int, v int)');
$node->safe_psql($db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW mv AS SELECT id % 2 AS p, sum(v) AS v FROM s GROUP BY 1$$');
fails_with($node, $db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t1 AS SELECT * FROM STREAM(mv)$$', '0A000', qr/mv|stream/, 'stream of a materialized view');
fails_with($node, $db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t2 AS SELECT * FROM s$$', '0A000', qr/reads no stream/, 'no stream');
fails_with($node, $db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW m2 AS SELECT * FROM STREAM(s)$$', '0A000', qr/cannot read a stream/, 'view over a stream');
for my $query ('SELECT count(*) AS n FROM STREAM(s)', 'SELECT DISTINCT id FROM STREAM(s)', 'SELECT id FROM STREAM(s) LIMIT 3',
	'SELECT id, row_number() OVER (ORDER BY v) AS n FROM STREAM(s)', 'SELECT a.id FROM STREAM(s) a JOIN STREAM(s) b USING (id)',
	'SELECT s.id FROM mv LEFT JOIN STREAM(s) s ON s.id = mv.p', 'SELECT p FROM mv WHERE p IN (SELECT id FROM STREAM(s))')
{
	fails_with($node, $db, "DO LANGUAGE pipeline \$\$CREATE OR REFRESH STREAMING TABLE t3 AS $query\$\$", '0A000', qr/stream|supported/, $query);
}
rows_are($node, $db, q(SELECT count(*) FROM pipeline.datasets), ['1'], 'nothing is left behind');

# ---- direct writes
$db = fresh_db($node, 'direct');
$node->safe_psql($db, 'CREATE TABLE src (id int, v int); INSERT INTO src VALUES (1,1),(2,2)');
$node->safe_psql($db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM(src);
	CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t$$');
fails_with($node, $db, $_, '55000', qr/maintained by a pipeline/, $_)
	for 'INSERT INTO t VALUES (9,9)', 'UPDATE t SET v = 0', 'DELETE FROM t', 'TRUNCATE t', "COPY t FROM PROGRAM 'echo 9'";
fails_with($node, $db, 'INSERT INTO m VALUES (1)', '42809', qr/materialized view/, 'INSERT INTO m');
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|1', '2|2'], 'unchanged');
$node->safe_psql($db, 'CREATE INDEX ON t (id); ANALYZE t; GRANT SELECT ON t TO PUBLIC; VACUUM t');
$node->safe_psql($db, "BEGIN; SET LOCAL pipeline.allow_dml = on; DELETE FROM t WHERE id = 2; COMMIT; INSERT INTO src VALUES (3,3); $refresh");
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|1', '3|3'], 'allowed DML, and the stream goes on');
$node->safe_psql($db, 'REFRESH MATERIALIZED VIEW m');
rows_are($node, $db, 'SELECT * FROM m', ['2'], 'the view saw it');
$node->safe_psql($db, 'ALTER TABLE t RENAME TO t9; INSERT INTO src VALUES (4,4); DO LANGUAGE pipeline $$REFRESH STREAMING TABLE t9$$');
rows_are($node, $db, 'SELECT * FROM t9 ORDER BY 1', ['1|1', '3|3', '4|4'], 'updates go on under the new name');

# ---- streams of streams, in one transaction and over several
$db = fresh_db($node, 'chain');
$node->safe_psql($db, 'CREATE TABLE src (v int); INSERT INTO src SELECT generate_series(1, 7)');
pipeline($node, $db, 'p', 'CREATE OR REFRESH MATERIALIZED VIEW s AS SELECT sum(v) AS total FROM c;
	CREATE OR REFRESH STREAMING TABLE c AS SELECT v - 1 AS v FROM STREAM(b);
	CREATE OR REFRESH STREAMING TABLE b AS SELECT v * 10 AS v FROM STREAM(a);
	CREATE OR REFRESH STREAMING TABLE a AS SELECT v FROM STREAM(src) WHERE v % 3 = 0;');
$node->safe_psql($db, 'CALL p()');
my $all = q(SELECT (SELECT string_agg(v::text, ',' ORDER BY v) FROM a), (SELECT string_agg(v::text, ',' ORDER BY v) FROM b),
	(SELECT string_agg(v::text, ',' ORDER BY v) FROM c), (SELECT total FROM s));
rows_are($node, $db, $all, ['3,6|30,60|29,59|88'], 'one update brings data through all hops');
$node->safe_psql($db, 'INSERT INTO src VALUES (9); CALL p()');
rows_are($node, $db, $all, ['3,6,9|30,60,90|29,59,89|177'], 'second update');
$node->safe_psql($db, 'BEGIN; INSERT INTO src VALUES (12); CALL p(); INSERT INTO src VALUES (15); CALL p(); COMMIT; CALL p()');
rows_are($node, $db, $all, ['3,6,9,12,15|30,60,90,120,150|29,59,89,119,149|445'], 'inside the writing transaction, twice');
$node->safe_psql($db, 'BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO src VALUES (18); CALL p(); ROLLBACK; CALL p()');
rows_are($node, $db, $all, ['3,6,9,12,15|30,60,90,120,150|29,59,89,119,149|445'], 'a rolled back update leaves nothing');
$node->safe_psql($db, 'VACUUM FULL a; VACUUM FREEZE b; INSERT INTO src VALUES (21); CALL p()');
rows_are($node, $db, $all, ['3,6,9,12,15,21|30,60,90,120,150,210|29,59,89,119,149,209|654'], 'after VACUUM FULL and FREEZE');

$node->stop;
done_testing();

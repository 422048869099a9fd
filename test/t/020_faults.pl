# Faults in the middle of an update: every dataset stays at its last good state, the next update
# goes on, no row is lost or doubled.
use strict;
use warnings;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('faults', conf => "restart_after_crash = on\n");
my @points = ('update started', 'tables set up', 'capture started', 'file opened', 'rows written',
	'checkpoint written', 'before commit', 'view built');

# A session that is left open; say sends one statement and waits for it.
sub session
{
	my ($db) = @_;
	my $self = { in => '', out => '', err => '', n => 0 };
	$self->{timer} = IPC::Run::timeout(120);
	$self->{run} = IPC::Run::start(['psql', '-XAtq', '-d', $node->connstr($db), '-f', '-'],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, $self->{timer});
	return $self;
}

sub start_sql
{
	my ($s, $sql) = @_;
	$s->{mark} = 'done_' . ++$s->{n} . '_';
	$s->{in} .= "$sql;\n\\echo $s->{mark}\n";
	$s->{run}->pump_nb;
}

sub wait_sql
{
	my ($s) = @_;
	$s->{run}->pump until $s->{out} =~ /$s->{mark}/;
}

sub say_sql
{
	my ($s, $sql) = @_;
	start_sql($s, $sql);
	wait_sql($s);
}

sub end_session
{
	my ($s) = @_;
	$s->{in} .= "\\q\n";
	eval { $s->{run}->finish; };
	return $s->{err};
}

sub is_waiting
{
	my ($db) = @_;
	$node->poll_query_until($db,
		q(SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7077 AND NOT granted))
		or die 'nobody waits';
}

# A connection may succeed before the server notices that a backend was killed: ask its log.
sub server_is_back
{
	my ($offset) = @_;
	$node->wait_for_log(qr/database system is ready to accept connections/, $offset);
}

# ---- a pipeline of files, tables, rules and a view, and what must hold of it
my $query = q(SELECT d.name, count(*) AS n, sum(g.v) AS v FROM good g JOIN dim d ON d.k = g.k GROUP BY d.name);

sub make_pipeline
{
	my ($db) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	fresh_db($node, $db);
	$node->safe_psql($db, q(CREATE TABLE src (id int PRIMARY KEY, k int, v int);
		CREATE TABLE dim (k int, name text); INSERT INTO dim VALUES (0, 'zero'), (1, 'one');));
	pipeline($node, $db, 'p', qq(
		CREATE OR REFRESH MATERIALIZED VIEW gold AS $query;
		CREATE OR REFRESH STREAMING TABLE good (
			CONSTRAINT no_sevens EXPECT (v % 7 <> 0) ON VIOLATION DROP ROW,
			CONSTRAINT no_fives EXPECT (v % 5 <> 0) ON VIOLATION QUARANTINE ROW) AS SELECT * FROM STREAM(merged);
		CREATE OR REFRESH STREAMING TABLE merged AS SELECT id, k, v FROM STREAM(src);
		CREATE OR REFRESH STREAMING TABLE bronze AS SELECT id, v FROM STREAM read_files('$dir', format => 'json', schema => 'id int, v int');
		CREATE OR REFRESH STREAMING TABLE silver (CONSTRAINT small EXPECT (v < 1000) ON VIOLATION QUARANTINE ROW)
			AS SELECT * FROM STREAM(bronze);));
	return { db => $db, dir => $dir, next => 1, files => [] };
}

sub add_files
{
	my ($p) = @_;
	for (1, 2)
	{
		my $file = sprintf('f%04d.json', scalar @{ $p->{files} });
		write_file("$p->{dir}/$file",
			join('', map { my $id = $p->{next}++; qq({"id": $id, "v": ) . ($id % 4 ? $id : 1000 + $id) . "}\n" } 1 .. 20));
		push @{ $p->{files} }, $file;
	}
}

sub add_rows
{
	my ($p) = @_;
	my $from = $p->{next};
	$p->{next} += 50;
	$node->safe_psql($p->{db}, "INSERT INTO src SELECT g, g % 2, g FROM generate_series($from, $from + 49) g");
}

sub change_dim
{
	my ($p) = @_;
	$node->safe_psql($p->{db}, q(UPDATE dim SET name = name || 'x' WHERE k = 1));
}

# True for each, or the name of what is wrong.
sub all_is_well
{
	my ($p, $name) = @_;
	my $files = @{ $p->{files} };
	my $log = sub {
		my ($dataset, $what) = @_;
		return "(SELECT coalesce(sum((details #>> '{flow_progress,$what}')::bigint), 0) FROM pipeline.event_log('$dataset'))";
	};
	my %checks = (
		'rows of src' => q(NOT EXISTS (SELECT id, k, v FROM src EXCEPT ALL SELECT * FROM merged)
			AND NOT EXISTS (SELECT * FROM merged EXCEPT ALL SELECT id, k, v FROM src)),
		'good rows' => q(NOT EXISTS (SELECT * FROM src WHERE v % 7 <> 0 AND v % 5 <> 0 EXCEPT ALL SELECT * FROM good)
			AND NOT EXISTS (SELECT * FROM good EXCEPT ALL SELECT * FROM src WHERE v % 7 <> 0 AND v % 5 <> 0)),
		'quarantined rows' => q(NOT EXISTS (SELECT * FROM src WHERE v % 5 = 0 EXCEPT ALL SELECT id, k, v FROM good_quarantine)
			AND NOT EXISTS (SELECT id, k, v FROM good_quarantine EXCEPT ALL SELECT * FROM src WHERE v % 5 = 0)),
		'rows of files' => "(SELECT count(*) = $files * 20 AND count(DISTINCT id) = $files * 20 FROM bronze)",
		'silver' => "(SELECT count(*) FROM silver) + (SELECT count(*) FROM silver_quarantine) = $files * 20
			AND NOT EXISTS (SELECT id FROM silver INTERSECT SELECT id FROM silver_quarantine)
			AND (SELECT count(DISTINCT id) = count(*) FROM silver) AND (SELECT count(DISTINCT id) = count(*) FROM silver_quarantine)",
		'ledger' => "(SELECT count(*) = $files AND bool_and(state = 'DONE' AND rows = 20) IS NOT FALSE FROM pipeline_internal.files)",
		'gold' => "NOT EXISTS (SELECT * FROM gold EXCEPT ALL $query) AND NOT EXISTS ($query EXCEPT ALL SELECT * FROM gold)",
		'output rows in the log' => join(' AND ', map { $log->($_, 'metrics,num_output_rows') . " = (SELECT count(*) FROM $_)" }
				qw(merged good bronze silver)),
		'rule counts' => q((SELECT coalesce(sum(passed + failed), 0) = 2 * (SELECT count(*) FROM src)
				AND coalesce(sum(failed) FILTER (WHERE expectation = 'no_fives'), 0) = (SELECT count(*) FROM src WHERE v % 5 = 0)
				AND coalesce(sum(failed) FILTER (WHERE expectation = 'no_sevens'), 0) = (SELECT count(*) FROM src WHERE v % 7 = 0)
			FROM pipeline.quality WHERE dataset = 'public.good')),
		'dropped rows in the log' => $log->('good', 'data_quality,dropped_records')
			. ' = (SELECT count(*) FROM src WHERE v % 7 = 0 AND v % 5 <> 0)',
		'rows in and rows out' => q((SELECT coalesce(sum(rows_out + rows_dropped + rows_quarantined), 0) = (SELECT count(*) FROM src)
			FROM pipeline_internal.update_datasets WHERE flow_name = 'good' AND state = 'COMPLETED')),
		'no update is open' => q(NOT EXISTS (SELECT FROM pipeline.updates WHERE state NOT IN ('COMPLETED', 'FAILED', 'CANCELED') OR ended_at IS NULL)),
		'no problem is left' => 'NOT EXISTS (SELECT FROM pipeline.problems)');
	my @names = sort keys %checks;
	my @bad = grep { $node->safe_psql($p->{db}, "SELECT $checks{$_}") ne 't' } @names;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join(', ', @bad), '', "$name: nothing lost, nothing doubled");
}

my $lost = q(SELECT count(*) FROM pipeline.updates WHERE state = 'FAILED' AND message = 'server process lost');

# ---- the backend dies, at each point, with each kind of news
my $n = 0;
for my $point (@points)
{
	my $p = make_pipeline('kill_' . $n++);
	my $crashes = 0;
	for my $news ('everything', 'files', 'rows', 'dimension')
	{
		add_files($p) if $news eq 'everything' || $news eq 'files';
		add_rows($p) if $news eq 'everything' || $news eq 'rows';
		change_dim($p) if $news eq 'dimension';
		my $offset = -s $node->logfile;
		my $rc = $node->psql($p->{db}, "SET pipeline.debug_point = '$point=kill'; CALL p()", stderr => \my $err);
		server_is_back($offset) if $rc != 0;
		$crashes++ if $rc != 0;
		rows_are($node, $p->{db}, $lost, [$crashes], "$point, $news: the update reads FAILED") if $rc != 0;
		$node->safe_psql($p->{db}, 'CALL p()');
		all_is_well($p, "killed at \"$point\" with new $news");
		rows_are($node, $p->{db}, $lost, [$crashes], "$point, $news: and stays so");
	}
	# a point that is never reached would test nothing
	cmp_ok($crashes, '>=', 1, "$point: reached");
	$node->safe_psql($p->{db}, 'CALL p()');
	all_is_well($p, "killed at \"$point\", another update");
}

# ---- immediate stop of the server, while it waits there
for my $point (@points)
{
	my $p = make_pipeline('stop_' . $n++);
	add_files($p);
	add_rows($p);
	my $holder = session($p->{db});
	my $runner = session($p->{db});
	say_sql($holder, 'SELECT pg_advisory_lock(7077)');
	start_sql($runner, "SET pipeline.debug_point = '$point=wait'; CALL p()");
	is_waiting($p->{db});
	rows_are($node, $p->{db}, 'SELECT count(*) FROM pipeline.progress', ['1'], "$point: in progress");
	$node->stop('immediate');
	end_session($_) for $holder, $runner;
	$node->start;
	rows_are($node, $p->{db}, $lost, ['1'], "$point: lost with the server");
	$node->safe_psql($p->{db}, 'CALL p()');
	all_is_well($p, "server stopped at \"$point\"");
}

# ---- an error at each point, then no error
my $errors = make_pipeline('error');
for my $point (@points)
{
	add_files($errors);
	add_rows($errors);
	change_dim($errors);
	my $rc = $node->psql($errors->{db}, "SET pipeline.debug_point = '$point=error'; CALL p()", stderr => \my $err, on_error_stop => 1);
	$node->safe_psql($errors->{db}, 'CALL p()');
	all_is_well($errors, "error at \"$point\"");
}

# ---- the client goes away, and cancels
for my $how ('terminate', 'cancel', 'timeout')
{
	my $p = make_pipeline($how);
	$node->safe_psql($p->{db}, 'CALL p()');
	add_files($p);
	add_rows($p);
	my $before = $node->safe_psql($p->{db}, 'SELECT (SELECT count(*) FROM merged), (SELECT count(*) FROM good), (SELECT count(*) FROM bronze)');
	my $holder = session($p->{db});
	my $runner = session($p->{db});
	say_sql($holder, 'SELECT pg_advisory_lock(7077)');
	start_sql($runner, "SET pipeline.debug_point = 'rows written=wait'; "
		. ($how eq 'timeout' ? 'SET statement_timeout = 2000; ' : '') . 'CALL p()');
	is_waiting($p->{db});
	$node->safe_psql($p->{db}, "SELECT pg_${how}_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
		unless $how eq 'timeout';
	if ($how eq 'terminate')
	{
		$runner->{run}->pump until $runner->{err} =~ /terminating connection/;
	}
	else
	{
		wait_sql($runner);
	}
	say_sql($holder, 'SELECT pg_advisory_unlock(7077)');
	my $err = end_session($runner);
	end_session($holder);
	like($err, $how eq 'terminate' ? qr/terminating connection/ : qr/canceling statement/, "$how: the client is told");
	$node->poll_query_until($p->{db}, 'SELECT count(*) = 0 FROM pipeline.progress') or die;
	rows_are($node, $p->{db}, 'SELECT state FROM pipeline.updates ORDER BY started_at DESC LIMIT 1',
		[$how eq 'terminate' ? 'FAILED' : 'CANCELED'], "$how: state");
	rows_are($node, $p->{db}, 'SELECT (SELECT count(*) FROM merged), (SELECT count(*) FROM good), (SELECT count(*) FROM bronze)',
		[$before], "$how: nothing of it is kept");
	$node->safe_psql($p->{db}, 'CALL p()');
	all_is_well($p, $how);
}

# ---- an error late in the stream
my $db = fresh_db($node, 'late');
$node->safe_psql($db, q(CREATE TABLE src (id int, d int); INSERT INTO src SELECT g, 1 FROM generate_series(1, 5) g));
pipeline($node, $db, 'p', q(
	CREATE OR REFRESH STREAMING TABLE t AS SELECT id, id / d AS r FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE below AS SELECT id FROM STREAM(t);
	CREATE OR REFRESH STREAMING TABLE beside AS SELECT id FROM STREAM(src);));
$node->safe_psql($db, 'CALL p()');
$node->safe_psql($db, q(INSERT INTO src SELECT g, CASE WHEN g = 200000 THEN 0 ELSE 1 END FROM generate_series(6, 200000) g));
for my $try (1, 2)
{
	fails_with($node, $db, 'CALL p()', '22012', qr/1 dataset FAILED, 1 SKIPPED, 1 COMPLETED.*division by zero/s, "division by zero, try $try");
	rows_are($node, $db, 'SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM below), (SELECT count(*) FROM beside)',
		['5|5|200000'], "the last good state, try $try");
}
rows_are($node, $db, q(SELECT object, sqlstate, what_to_type FROM pipeline.problems),
	[q(public.t|22012|CALL pipeline.run_update('public.p', failed_only => true);)], 'and a way on');
pipeline($node, $db, 'p', q(
	CREATE OR REFRESH STREAMING TABLE t AS SELECT id, id / nullif(d, 0) AS r FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE below AS SELECT id FROM STREAM(t);
	CREATE OR REFRESH STREAMING TABLE beside AS SELECT id FROM STREAM(src);));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT count(*), count(DISTINCT id), (SELECT count(*) FROM below), (SELECT count(*) FROM beside) FROM t',
	['200000|200000|200000|200000'], 'after the repair');

# ---- a source that goes away, and one that is renamed
$db = fresh_db($node, 'gone');
$node->safe_psql($db, q(CREATE TABLE a (id int); CREATE TABLE b (id int); INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)));
pipeline($node, $db, 'p', q(
	CREATE OR REFRESH STREAMING TABLE ta AS SELECT id FROM STREAM(a);
	CREATE OR REFRESH STREAMING TABLE tb AS SELECT id FROM STREAM(b);
	CREATE OR REFRESH MATERIALIZED VIEW vb AS SELECT count(*) AS n FROM tb;));
$node->safe_psql($db, 'CALL p()');
fails_with($node, $db, 'DROP TABLE a', '2BP01', qr/a/, 'DROP of a source that is read');
$node->safe_psql($db, 'INSERT INTO b VALUES (2); DROP TABLE a CASCADE');
rows_are($node, $db, 'SELECT * FROM ta', ['1'], 'the streaming table keeps its rows');
rows_are($node, $db, q(SELECT state, state_reason FROM pipeline.datasets WHERE dataset = 'public.ta'), ['INACTIVE|source dropped'], 'inactive');
fails_with($node, $db, 'CALL p()', '42P01', qr/"?a"?/, 'CALL names it');
rows_are($node, $db, 'SELECT * FROM ta', ['1'], 'and nothing is lost');
$node->safe_psql($db, 'CREATE TABLE a (id int); INSERT INTO a VALUES (7)');
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT * FROM ta ORDER BY 1', ['1', '7'], 'a new source of the name is read from its start');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM tb), n FROM vb', ['2|2'], 'the others go on');
$node->safe_psql($db, 'ALTER TABLE b RENAME TO c; INSERT INTO c VALUES (3)');
fails_with($node, $db, 'CALL p()', '42P01', qr/"?b"?/, 'a renamed source is missing by its old name');
rows_are($node, $db, 'SELECT count(*) FROM tb', ['2'], 'nothing happened');
$node->safe_psql($db, 'ALTER TABLE c RENAME TO b; CALL p()');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM tb), n FROM vb', ['3|3'], 'back again: each row once');

# ---- capture that cannot be started
$db = fresh_db($node, 'locked');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (1)');
pipeline($node, $db, 'p', 'CREATE OR REFRESH STREAMING TABLE t AS SELECT id FROM STREAM(src);');
my $locker = session($db);
say_sql($locker, 'BEGIN; INSERT INTO src VALUES (2)');
my $pid = $node->safe_psql($db, q(SELECT pid FROM pg_locks WHERE relation = 'src'::regclass AND mode = 'RowExclusiveLock'));
fails_with($node, $db, q(SET pipeline.source_lock_timeout = '20ms'; CALL p()), '55P03', qr/DETAIL:.*\b$pid\b/, 'a writer holds the lock');
say_sql($locker, 'INSERT INTO src VALUES (3)');
say_sql($locker, 'COMMIT');
$node->safe_psql($db, 'CALL p(); INSERT INTO src VALUES (4); CALL p()');
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1', '2', '3', '4'], 'after the commit');
say_sql($locker, 'BEGIN; LOCK TABLE src IN ACCESS EXCLUSIVE MODE');
fails_with($node, $db, q(SET lock_timeout = '200ms'; CALL p()), '55P03', qr/lock timeout/, 'lock_timeout');
say_sql($locker, 'COMMIT');
end_session($locker);
$node->safe_psql($db, 'INSERT INTO src VALUES (5); CALL p()');
rows_are($node, $db, 'SELECT count(*), count(DISTINCT id) FROM t', ['5|5'], 'then it goes on');

# ---- no room
$db = fresh_db($node, 'room');
$node->safe_psql($db, 'CREATE TABLE src (id int, t text); INSERT INTO src VALUES (0, repeat(\'x\', 1000))');
pipeline($node, $db, 'p', q(
	CREATE OR REFRESH STREAMING TABLE t AS SELECT id, t FROM STREAM(src);
	CREATE OR REFRESH MATERIALIZED VIEW v AS SELECT a.id, a.t FROM t a ORDER BY a.t, a.id DESC;));
$node->safe_psql($db, 'CALL p()');
$node->safe_psql($db, q(INSERT INTO src SELECT g, repeat(md5(g::text), 30) FROM generate_series(1, 5000) g));
fails_with($node, $db, q(SET work_mem = '64kB'; SET temp_file_limit = '1MB'; CALL p()), '53400', qr/temp_file_limit/, 'temp_file_limit');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM v)', ['5001|1'], 'the view keeps its rows');
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM v)', ['5001|5001'], 'with room it goes on');

# ---- a full disk: the server may not write files above a size that is no multiple of a block
$db = fresh_db($node, 'disk');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (0)');
pipeline($node, $db, 'p', q(
	CREATE OR REFRESH STREAMING TABLE small AS SELECT id FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE wide AS SELECT id, repeat('x', 2000) AS t FROM STREAM(src);
	CREATE OR REFRESH MATERIALIZED VIEW v AS SELECT id, repeat('x', 2000) AS t FROM src;));
$node->safe_psql($db, 'CALL p()');
$node->stop;
my @ctl = ('pg_ctl', '-w', '-s', '-D', $node->data_dir);
system_or_bail('bash', '-c', 'ulimit -f 20481; exec "$@"', 'limited', @ctl, '-l', $node->logfile, 'start');
$node->safe_psql($db, 'INSERT INTO src SELECT generate_series(1, 20000)');
for my $try (1, 2)
{
	fails_with($node, $db, 'CALL p()', '53100', qr/2 datasets FAILED, 1 COMPLETED.*could not extend file/s, "full disk, try $try");
	rows_are($node, $db, 'SELECT (SELECT count(*) FROM small), (SELECT count(*) FROM wide), (SELECT count(*) FROM v)',
		['20001|1|1'], "full disk, try $try: the last good state");
}
rows_are($node, $db, q(SELECT object, sqlstate FROM pipeline.problems ORDER BY 1), ['public.v|53100', 'public.wide|53100'], 'problems');
system_or_bail(@ctl, 'stop');
$node->start;
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, q(SELECT (SELECT count(*) FROM small), (SELECT count(*) FROM wide), (SELECT count(DISTINCT id) FROM wide), (SELECT count(*) FROM v)),
	['20001|20001|20001|20001'], 'with room it goes on');

# ---- files that move under the reader: it stops where it has opened the first
$db = fresh_db($node, 'moving');
my $dir = PostgreSQL::Test::Utils::tempdir();
my $stop = "SET pipeline.debug_point = 'file opened=wait'; CALL p()";
pipeline($node, $db, 'p', qq(CREATE OR REFRESH STREAMING TABLE t AS SELECT id FROM STREAM read_files('$dir', format => 'json', schema => 'id int');));
write_file("$dir/a.json", qq({"id": 1}\n{"id": 2}\n));
write_file("$dir/b.json", qq({"id": 3}\n));
my $holder = session($db);
my $runner = session($db);
say_sql($holder, 'SELECT pg_advisory_lock(7077)');
start_sql($runner, $stop);
is_waiting($db);
write_file("$dir/a.json", qq({"id": 1}\n{"id": 2}\n{"id": 4}\n));
say_sql($holder, 'SELECT pg_advisory_unlock(7077)');
wait_sql($runner);
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['3'], 'a file that grew is left for later, the others are read');
rows_are($node, $db, q(SELECT regexp_replace(path, '.*/', ''), rows FROM pipeline_internal.files), ['b.json|1'], 'ledger');
$node->safe_psql($db, 'CALL p()') for 1, 2;
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1', '2', '3', '4'], 'then it is read once, whole');
write_file("$dir/c.json", qq({"id": 21}\n{"id": 22}\n));
write_file("$dir/d.json", qq({"id": 23}\n));
say_sql($holder, 'SELECT pg_advisory_lock(7077)');
start_sql($runner, $stop);
is_waiting($db);
unlink("$dir/d.json");
say_sql($holder, 'SELECT pg_advisory_unlock(7077)');
wait_sql($runner);
like($runner->{err}, qr/ERROR:.*d\.json/s, 'a file that vanished after the listing is named');
rows_are($node, $db, 'SELECT count(*) FROM t', ['4'], 'nothing of that batch');
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1', '2', '3', '4', '21', '22'], 'without it the rest is read once');
write_file("$dir/d.json", qq({"id": 23}\n));
$node->safe_psql($db, 'CALL p()') for 1, 2;
rows_are($node, $db, 'SELECT count(*), count(DISTINCT id) FROM t', ['7|7'], 'it comes back: once');
end_session($_) for $holder, $runner;

$node->stop;
done_testing();

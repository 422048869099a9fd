# Dump and restore: the next update goes on where the last one ended, and what was not consumed
# of a plain table at the time of the dump is read once.  A backlog between two streaming tables
# cannot be told from the rows around it after a restore: it is refused, never guessed.
use strict;
use warnings;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('dump');
my $db = fresh_db($node, 'old');
my $landing = PostgreSQL::Test::Utils::tempdir();
my $dump = PostgreSQL::Test::Utils::tempdir() . '/old.sql';

write_file("$landing/1.json", qq({"id": 1}\n{"id": 2}\n));
$node->safe_psql($db, 'CREATE SCHEMA s; CREATE TABLE s.src (id int, v int); INSERT INTO s.src VALUES (1, 10), (2, NULL)');
pipeline($node, $db, 's.p', qq(
	CREATE STREAMING TABLE files AS SELECT id FROM STREAM read_files('$landing', format => 'json');
	CREATE STREAMING TABLE rows (CONSTRAINT has_v EXPECT (v IS NOT NULL) ON VIOLATION QUARANTINE ROW) AS SELECT * FROM STREAM(src);
	CREATE STREAMING TABLE copies AS SELECT * FROM STREAM(rows);
	CREATE MATERIALIZED VIEW total (CONSTRAINT some EXPECT (v > 0)) AS SELECT (SELECT count(*) FROM files) AS files, (SELECT sum(v) FROM copies) AS v;));
$node->safe_psql($db, 'CREATE ROLE runner; GRANT EXECUTE ON PROCEDURE s.p TO runner; CALL s.p()');
$node->safe_psql($db, q(SELECT pipeline.expect('s.rows', 'small', 'v < 1000')));
# broken by what is there, from the next update on: a restore must not trip over it
$node->safe_psql($db, q(SELECT pipeline.expect('s.total', 'not_ten', 'v <> 10', 'fail')));
# a backlog: a row that no update has seen, and one that only the first table has
$node->safe_psql($db, q(INSERT INTO s.src VALUES (3, 30); CALL pipeline.run_update('s.p', datasets => '{rows}'); INSERT INTO s.src VALUES (4, 40)));
my @before = map { $node->safe_psql($db, $_) } my @state = (
	'SELECT dataset, kind, state, last_refresh_type, last_rows FROM pipeline.datasets ORDER BY 1',
	q(SELECT update_id, state, noop_runs FROM pipeline.updates WHERE state = 'COMPLETED' ORDER BY started_at LIMIT 2),
	q(SELECT id, event_type, message FROM pipeline.event_log('s.p') l WHERE l.origin->>'update_id' IN
		(SELECT update_id::text FROM pipeline.updates ORDER BY started_at LIMIT 2)),
	'SELECT dataset, expectation, passed, failed, update_id FROM pipeline.quality ORDER BY 1, 2, ended_at',
	'SELECT dataset, expectation, action, condition, origin FROM pipeline.expectations ORDER BY 1, 2',
	'SELECT upstream, downstream, mode FROM pipeline.lineage ORDER BY 1, 2');

$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr($db) ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE new TEMPLATE template0');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('new') ], 'restore');

for my $n (0 .. $#state)
{
	is($node->safe_psql('new', $state[$n]), $before[$n], "the same: $state[$n]");
}
rows_are($node, 'new', 'SELECT (SELECT count(*) FROM s.files), (SELECT count(*) FROM s.rows), (SELECT count(*) FROM s.copies),
	(SELECT count(*) FROM s.rows_quarantine), (SELECT v FROM s.total)', ['2|2|1|1|10'], 'rows');
rows_are($node, 'new', q(SELECT has_function_privilege('runner', 's.p()', 'EXECUTE'), has_function_privilege('public', 's.p()', 'EXECUTE')),
	['t|f'], 'EXECUTE');

# the backlog, then news of all kinds
$node->safe_psql('new', q(SELECT pipeline.drop_expectation('s.total', 'not_ten')));
fails_with($node, 'new', 'CALL s.p()', '55000', qr/restored from a dump.*full_refresh => true/s,
	'the backlog between two streaming tables');
rows_are($node, 'new', 'SELECT id, v FROM s.rows ORDER BY id', [ '1|10', '3|30', '4|40' ], 'the backlog of the source, once');
rows_are($node, 'new', 'SELECT id, v FROM s.copies ORDER BY id', ['1|10'], 'the second table stands still');
$node->safe_psql('new', q(CALL pipeline.refresh('s.copies', full_refresh => true); CALL s.p()));
rows_are($node, 'new', 'SELECT id, v FROM s.copies ORDER BY id', [ '1|10', '3|30', '4|40' ], 'until it was refreshed in full');
rows_are($node, 'new', 'SELECT files, v FROM s.total', ['2|80'], 'the view follows');
write_file("$landing/2.json", qq({"id": 3}\n));
$node->safe_psql('new', 'INSERT INTO s.src VALUES (5, 50), (6, NULL), (7, 5000); CALL s.p()');
rows_are($node, 'new', 'SELECT (SELECT count(*) FROM s.files), (SELECT count(*) FROM s.copies), (SELECT count(*) FROM s.rows_quarantine)',
	['3|5|2'], 'news');
rows_are($node, 'new', q(SELECT failed FROM pipeline.quality WHERE expectation = 'small' ORDER BY ended_at DESC LIMIT 1), ['2'],
	'the rule that a function added; NULL violates it');
fails_with($node, 'new', 'UPDATE s.rows SET v = 0', '55000', qr/maintained by a pipeline/, 'the guard');

# the old database knows nothing of it
$node->safe_psql($db, q(SELECT pipeline.drop_expectation('s.total', 'not_ten'); CALL s.p()));
rows_are($node, $db, 'SELECT id FROM s.copies ORDER BY id', [ 1, 3, 4 ], 'the old database goes on for itself');

# a copy of the directory is another matter of identity: CREATE DATABASE ... TEMPLATE
$node->safe_psql('postgres', 'CREATE DATABASE clone TEMPLATE new');
$node->safe_psql('clone', 'INSERT INTO s.src VALUES (8, 80); CALL s.p()');
rows_are($node, 'clone', 'SELECT count(*), count(DISTINCT id) FROM s.copies', ['6|6'], 'a clone goes on, each row once');
rows_are($node, 'clone', 'SELECT count(*) FROM pipeline.problems', ['0'], 'without a problem');

$node->stop;
done_testing();

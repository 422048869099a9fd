# Every SQLSTATE that users can meet, once: the code, the message with the object's name, what to
# type next, and the cursor, also behind text of several bytes a character.
use strict;
use warnings;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('errors');
my $db = fresh_db($node, 'errors');
my $dir = PostgreSQL::Test::Utils::tempdir();

write_file("$dir/bad.json", qq({"id": 1}\n{"id": 2\n));
$node->safe_psql($db, q(
	CREATE ROLE nobody_much; GRANT CREATE ON SCHEMA public TO nobody_much;
	CREATE TABLE src (id int, v text); INSERT INTO src VALUES (1, 'a'), (2, 'b');
	CREATE TABLE other (id int); INSERT INTO other VALUES (1);
	CREATE TABLE plain (id int);
	CREATE PROCEDURE p(landing text DEFAULT 'src') LANGUAGE pipeline AS
		$$CREATE STREAMING TABLE t AS SELECT * FROM STREAM(${landing});
		CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v;$$;
	CALL p();
	GRANT SELECT ON src TO nobody_much;));

# refused(name, SQL, SQLSTATE, message, hint, cursor): hint and cursor may be undef for none.
# Every message begins in lower case or with a keyword, and has no full stop.
sub refused
{
	my ($name, $sql, $sqlstate, $message, $hint, $cursor) = @_;
	my ($out, $err);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $rc = $node->psql($db, "\\set VERBOSITY verbose\n$sql", stdout => \$out, stderr => \$err, on_error_stop => 1);
	my ($code, $text) = $err =~ /ERROR:  (\w{5}): (.*)/;
	my ($said) = $err =~ /^HINT:  (.*)/m;

	isnt($rc, 0, "$name: fails") or return '';
	is($code, $sqlstate, "$name: SQLSTATE") or diag($err);
	like($text, $message, "$name: message");
	like($text, qr/^(?:["a-z0-9]|[A-Z]{2}).*[^.]$/, "$name: style of the message");
	if (defined $hint) { like($said, $hint, "$name: hint"); }
	if (defined $cursor) { cursor_is($err, $cursor, "$name: cursor"); }
	return $err;
}

sub in_do { return "DO LANGUAGE pipeline \$\$ $_[0]; \$\$"; }
sub in_procedure { return "CREATE PROCEDURE bad() LANGUAGE pipeline AS \$\$ $_[0]; \$\$"; }

# ---- 42704: what is not there
refused('unknown pipeline', q(CALL pipeline.run_update('nix')), '42704', qr/pipeline "nix"/, qr/SELECT .* pipeline\.pipelines;/);
refused('unknown dataset of a pipeline', q(CALL pipeline.run_update('p', '{nix}')), '42704', qr/"nix"/, qr/pipeline\.datasets;/);
refused('a table that is no dataset', q(CALL pipeline.refresh('plain')), '42704', qr/plain/, qr/pipeline\.datasets;/);
refused('log of something unknown', q(SELECT * FROM pipeline.event_log('nix')), '42704', qr/"nix"/, qr/pipeline\.pipelines;/);
refused('unknown expectation', q(SELECT pipeline.drop_expectation('t', 'nix')), '42704', qr/"nix"/);
refused('unknown role', q(SELECT pipeline.allow_capture('src', 'nix')), '42704', qr/role "nix"/);

# ---- 42710 and its kin: names given twice
refused('dataset twice', in_procedure('CREATE MATERIALIZED VIEW d AS SELECT 1 AS a; CREATE MATERIALIZED VIEW d AS SELECT 2 AS a'),
	'42710', qr/"d"/, undef, 'd AS SELECT 2');
refused('expectation twice', in_do('CREATE STREAMING TABLE d (CONSTRAINT c EXPECT (id > 0), CONSTRAINT c EXPECT (id > 1)) AS SELECT * FROM STREAM(src)'),
	'42710', qr/expectation "c"/, undef, ['c EXPECT (id > 1)', 'CONSTRAINT c EXPECT (id > 1)']);
refused('table exists', in_do('CREATE STREAMING TABLE t AS SELECT * FROM STREAM(src)'), '42P07', qr/"t" already exists/, qr/CREATE OR REFRESH STREAMING TABLE/, 't AS SELECT');
refused('a table of somebody else', in_procedure('CREATE MATERIALIZED VIEW plain AS SELECT 1 AS a'), '42P07', qr/plain.*already exists/, undef, 'plain AS');
refused('dataset of another pipeline', in_procedure('CREATE MATERIALIZED VIEW m AS SELECT 1 AS a'), '55000', qr/m.* belongs to pipeline .*p/, qr/Drop/, 'm AS');
refused('second signature', 'CREATE PROCEDURE p() LANGUAGE pipeline AS $$CREATE MATERIALIZED VIEW d AS SELECT 1 AS a$$', '42723', qr/pipeline .*p/, qr/DROP PROCEDURE public\.p/);

# ---- 42601: bad source, the cursor on it
my $wide = q(/* größer, 日本語, 😀 */);
for my $case (
	['a word', 'CREATE MATERIALIZD VIEW d AS SELECT 1 AS a', qr/"MATERIALIZD"/, 'MATERIALIZD'],
	['in our clause', 'CREATE STREAMING TABLE d (CONSTRAINT c EXPECT (id > 0) ON VIOLATION EXPLODE) AS SELECT * FROM STREAM(src)', qr/"EXPLODE"/, 'EXPLODE'],
	['in the query', 'CREATE MATERIALIZED VIEW d AS SELECT (1 AS a', qr/"AS"/, 'AS a'],
	['OR REPLACE', 'CREATE OR REPLACE STREAMING TABLE d AS SELECT * FROM STREAM(src)', qr/OR REPLACE/, 'CREATE OR REPLACE'],
	['a view with expectations', 'CREATE VIEW d (CONSTRAINT c EXPECT (a > 0)) AS SELECT 1 AS a', qr/view/, 'CONSTRAINT c'])
{
	my ($name, $statement, $message, $cursor) = @$case;
	refused("$name in DO", in_do("$wide $statement"), '42601', $message, undef, $cursor);
	refused("$name in CREATE PROCEDURE", in_procedure("$wide\n SELECT 'ü'; $statement") =~ s/SELECT 'ü'; //r, '42601', $message, undef, $cursor);
}
refused('a query is no declaration', in_procedure("$wide SELECT 1"), '42601', qr/declarations/, qr/DO LANGUAGE pipeline/, 'SELECT 1');
refused('nothing declared', in_procedure(''), '42601', qr/no dataset/, qr/CREATE (STREAMING TABLE|MATERIALIZED VIEW)/);

for my $condition ('id > 0) OR (true', 'true; DROP TABLE src', 'true FROM src', 'true AS x', '')
{
	refused("condition '$condition'", "SELECT pipeline.expect('t', 'x', '$condition')", '42601', qr/syntax error/);
	refused("trying '$condition'", "SELECT * FROM pipeline.try_expectation('t', '$condition')", '42601', qr/syntax error/);
}

# ---- what the server's parser says, with the cursor in our text
for my $door (\&in_do, \&in_procedure)
{
	refused('unknown column', $door->("$wide CREATE MATERIALIZED VIEW d AS SELECT 'äöü' AS a, nix FROM src"), '42703', qr/"nix"/, undef, 'nix FROM');
	refused('unknown function of Spark', $door->("$wide CREATE MATERIALIZED VIEW d AS SELECT collect_list(v) AS a FROM src"), '42883', qr/collect_list/, qr/array_agg/, 'collect_list');
	refused('no boolean', $door->("$wide CREATE STREAMING TABLE d (CONSTRAINT `größe` EXPECT (id + 1)) AS SELECT * FROM STREAM(src)"), '42804', qr/boolean/, undef, ['id + 1', '`größe`', 'CONSTRAINT']);
}

# ---- 42P17: a circle, with its path
my $err = refused('circle', in_procedure('CREATE MATERIALIZED VIEW a AS SELECT x FROM b; CREATE MATERIALIZED VIEW b AS SELECT x FROM c; CREATE MATERIALIZED VIEW c AS SELECT x FROM a'),
	'42P17', qr/circle/, undef, 'a AS SELECT');
like($err, qr/^DETAIL:  .*public\.a\b.*public\.[bc]\b.*public\.[bc]\b/m, 'circle: the path is named');
refused('reads itself', in_procedure('CREATE MATERIALIZED VIEW a AS SELECT * FROM a'), '42P17', qr/circle/, undef, 'a AS SELECT');

# ---- 0A000: what cannot be done
refused('batch into a stream', in_do('CREATE STREAMING TABLE d AS SELECT * FROM src'), '0A000', qr/"d" reads no stream/, qr/STREAM\(/, ['SELECT * FROM src', 'd AS']);
refused('stream into a view', in_do('CREATE MATERIALIZED VIEW d AS SELECT * FROM STREAM(src)'), '0A000', qr/"d" cannot read a stream/, qr/STREAM/);
refused('window over a stream', in_do('CREATE STREAMING TABLE d AS SELECT id, row_number() OVER (PARTITION BY v ORDER BY id) AS rn FROM STREAM(src)'), '0A000', qr/window function/, qr/AUTO CDC|materialized view/);
refused('a statement of Spark', in_do('OPTIMIZE src ZORDER BY (id)'), '0A000', qr/OPTIMIZE/, qr/VACUUM|CLUSTER/, 'OPTIMIZE');
refused('subquery in an expectation', in_do('CREATE STREAMING TABLE d (CONSTRAINT c EXPECT (id IN (SELECT id FROM other))) AS SELECT * FROM STREAM(src)'), '0A000', qr/subquer/);
refused('temporary table', 'CREATE TEMP TABLE tmp (a int); ' . in_do('CREATE MATERIALIZED VIEW d AS SELECT * FROM tmp'), '0A000', qr/"tmp"/, qr/ordinary table/);

# ---- 22023 and 22004: values of options and arguments
refused('unknown option', in_do("CREATE STREAMING TABLE d AS SELECT * FROM STREAM read_files('$dir', formt => 'json')"), '22023', qr/"formt" of read_files/, qr/"format"/);
refused('value of an option', in_do("CREATE STREAMING TABLE d AS SELECT * FROM STREAM read_files('$dir', format => 'json', mode => 'LOUD')"), '22023', qr/"LOUD".*"mode"/);
refused('relative path', in_do(q(CREATE STREAMING TABLE d AS SELECT * FROM STREAM read_files('a/b', format => 'json'))), '22023', qr{"a/b"});
refused('unit of EVERY', in_do('CREATE MATERIALIZED VIEW d SCHEDULE EVERY 5 MINUTES AS SELECT 1 AS a'), '22023', qr/"?minutes"?/i, qr/CRON/, ['MINUTES', 'EVERY', 'SCHEDULE EVERY']);
refused('native option', q(CREATE MATERIALIZED VIEW d WITH (pipeline.refresh_polcy = 'auto') AS SELECT 1 AS a), '22023', qr/"pipeline\.refresh_polcy"/, qr/pipeline\.refresh_policy/, ['pipeline.refresh_polcy', 'refresh_polcy']);
refused('parameter', in_procedure('CREATE MATERIALIZED VIEW d AS SELECT ${nix} AS a'), '22023', qr/parameter "nix"/, qr/argument/, '${nix}');
refused('a value that is no name', q(CALL p('src; DROP TABLE src')), '22023', qr/parameter "landing"/, undef, '${landing}');
refused('unknown parameter', q(CALL pipeline.run_update('p', parameters => '{"nix": 1}')), '22023', qr/"nix"/);
refused('action', q(SELECT pipeline.expect('t', 'x', 'true', 'explode')), '22023', qr/"explode"/, qr/warn, drop, quarantine or fail/);
refused('rules', q(SELECT pipeline.expect_all('t', '[1]')), '22023', qr/JSON object/, qr/valid_id/);
refused('graph format', q(SELECT pipeline.graph('p', 'svg')), '22023', qr/"svg"/, qr/mermaid/);
refused('null pipeline', q(CALL pipeline.run_update(NULL)), '22004', qr/"pipeline" must not be null/);
refused('null dataset', q(CALL pipeline.refresh(NULL)), '22004', qr/"dataset" must not be null/);
refused('null name', q(SELECT pipeline.expect('t', NULL, 'true')), '22004', qr/"name" must not be null/);

# ---- 42P13: procedures that are no pipelines
refused('function', 'CREATE FUNCTION f() RETURNS int LANGUAGE pipeline AS $$CREATE MATERIALIZED VIEW d AS SELECT 1 AS a$$', '42P13', qr/must be a procedure/, qr/CREATE PROCEDURE/);
refused('OUT parameter', 'CREATE PROCEDURE bad(OUT a int) LANGUAGE pipeline AS $$CREATE MATERIALIZED VIEW d AS SELECT 1 AS a$$', '42P13', qr/"a"/);
refused('SECURITY DEFINER', 'CREATE PROCEDURE bad() LANGUAGE pipeline SECURITY DEFINER AS $$CREATE MATERIALIZED VIEW d AS SELECT 1 AS a$$', '42P13', qr/SECURITY DEFINER/);

# ---- 42501: rights
refused('CALL of another', 'SET ROLE nobody_much; CALL p()', '42501', qr/procedure p/);
refused('REFRESH of another', 'SET ROLE nobody_much; REFRESH MATERIALIZED VIEW m', '42501', qr/\bm\b/);
refused('rule on another', q(SET ROLE nobody_much; SELECT pipeline.expect('t', 'x', 'true')), '42501', qr/\bt\b/);
refused('log of another', q(SET ROLE nobody_much; SELECT * FROM pipeline.event_log('p')), '42501', qr/"(public\.)?p"/);
refused('file', 'SET ROLE nobody_much; ' . in_do("CREATE STREAMING TABLE d AS SELECT * FROM STREAM read_files('$dir', format => 'json')"), '42501', qr/\Q$dir\E/, qr/allowed_locations/);
$err = refused('source without SELECT', 'SET ROLE nobody_much; ' . in_do('CREATE STREAMING TABLE d AS SELECT * FROM STREAM(other)'), '42501', qr/./);
like($err, qr/^(?:.*ERROR|DETAIL):  .*\bother\b/m, 'source without SELECT: the source is named');
$node->safe_psql($db, 'GRANT SELECT ON other TO nobody_much');
$err = refused('capture', 'SET ROLE nobody_much; ' . in_do('CREATE STREAMING TABLE d AS SELECT * FROM STREAM(other)'), '42501', qr/./);
like($err, qr/^(?:HINT|DETAIL):  .*pipeline\.allow_capture\('(?:public\.)?other', 'nobody_much'\)/m, 'capture: the line that its owner types');

# ---- 23514 with the name of the rule where programs look for it
$err = refused('FAIL UPDATE', in_do('CREATE STREAMING TABLE d (CONSTRAINT small EXPECT (id < 2) ON VIOLATION FAIL UPDATE) AS SELECT * FROM STREAM(src)'),
	'23514', qr/expectation "small" violated by 1 of 2 rows/);
like($err, qr/^CONSTRAINT NAME:  small$/m, 'FAIL UPDATE: constraint field in DO');
$node->safe_psql($db, 'CREATE PROCEDURE strict() LANGUAGE pipeline AS $$CREATE STREAMING TABLE d (CONSTRAINT `sehr klein` EXPECT (id < 2) ON VIOLATION FAIL UPDATE) AS SELECT * FROM STREAM(src)$$');
$err = refused('FAIL UPDATE in CALL', 'CALL strict()', '23514', qr/pipeline "public\.strict" failed: 1 dataset FAILED/, qr/\w.*;$/);
like($err, qr/^CONSTRAINT NAME:  sehr klein$/m, 'FAIL UPDATE: constraint field in CALL');
like($err, qr/^DETAIL:  .*d: expectation "sehr klein" violated by 1 of 2 rows/m, 'FAIL UPDATE: dataset and rule in the detail');

# ---- errors of the user's own expressions keep their state and name the dataset
$node->safe_psql($db, 'CREATE PROCEDURE zero() LANGUAGE pipeline AS $$CREATE MATERIALIZED VIEW z AS SELECT 1 / (id - 1) AS a FROM src$$');
$err = refused('division', 'CALL zero()', '22012', qr/pipeline "public\.zero" failed/, qr/\w.*;$/);
like($err, qr/^DETAIL:  .*z: division by zero/m, 'division: the dataset in the detail');

# ---- 55000: states
$node->safe_psql($db, q(UPDATE src SET v = 'x' WHERE id = 2));
$err = refused('updated source', 'CALL p()', '55000', qr/pipeline "public\.p" failed/);
like($err, qr/(?:DETAIL|HINT):.*src.*append-only/, 'updated source: the source in the detail');
like($err, qr/FULL|full_refresh/, 'updated source: the way out');
$node->safe_psql($db, q(CALL pipeline.run_update('p', full_refresh => true)));
refused('DML', 'INSERT INTO t VALUES (1)', '55000', qr/t" is maintained by a pipeline/, qr/pipeline\.allow_dml/);
$node->safe_psql($db, q(DO LANGUAGE pipeline $$CREATE STREAMING TABLE keep TBLPROPERTIES ('pipelines.reset.allowed' = 'false') AS SELECT * FROM STREAM(src)$$));
refused('no reset', in_do('REFRESH STREAMING TABLE keep FULL'), '55000', qr/keep.* forbidden/);
refused('no quarantine', q(SELECT pipeline.replay_quarantine('t')), '55000', qr/t" has no quarantine/, qr/QUARANTINE ROW/);
refused('rule of the source', q(SELECT pipeline.drop_expectation('d', 'sehr klein')), '55000', qr/"sehr klein"/, qr/CREATE OR REPLACE PROCEDURE/);

# ---- 42809: the wrong kind
refused('wrong kind', in_do('REFRESH MATERIALIZED VIEW t'), '42809', qr/"t" is not a materialized view/, undef, 't');

# ---- 22P04: a file row
refused('malformed', in_do("CREATE STREAMING TABLE f AS SELECT * FROM STREAM read_files('$dir', format => 'json', mode => 'FAILFAST', schema => 'id bigint')"),
	'22P04', qr/bad\.json/);

# ---- 55P03: a source that is in use
{
	my $session = $node->background_psql($db);
	$session->query_safe('BEGIN; INSERT INTO other VALUES (7)');
	$err = refused('locked source', q(SET pipeline.source_lock_timeout = '50ms'; ) . in_do('CREATE STREAMING TABLE d2 AS SELECT * FROM STREAM(other)'),
		'55P03', qr/other/, qr/source_lock_timeout/);
	like($err, qr/^DETAIL:  .*\d+/m, 'locked source: who holds it');
	$session->query_safe('ROLLBACK');
	$session->quit;
}

# ---- 55006: an update that is running
{
	$node->safe_psql($db, q(CREATE FUNCTION wait_here(int) RETURNS int LANGUAGE plpgsql STABLE AS $$BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN $1; END$$;
		CREATE PROCEDURE slow() LANGUAGE pipeline AS $$CREATE MATERIALIZED VIEW s AS SELECT wait_here(id) AS id FROM src$$));
	my $holder = $node->background_psql($db);
	$holder->query_safe('SELECT pg_advisory_lock(4711)');
	my $runner = $node->background_psql($db, on_error_stop => 0);
	$runner->query_until(qr/started/, "\\echo started\nCALL slow();\n");
	ok($node->poll_query_until($db, q(SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory')), 'an update runs');
	refused('busy', 'CALL slow()', '55006', qr/"(public\.)?slow"/, qr/pipeline\.on_busy/);
	my ($out, $notices);
	is($node->psql($db, 'SET pipeline.on_busy = skip; CALL slow()', stdout => \$out, stderr => \$notices), 0, 'busy: skipped when asked for');
	$holder->query_safe('SELECT pg_advisory_unlock(4711)');
	$holder->quit;
	$runner->quit;
	rows_are($node, $db, 'SELECT count(*) FROM s', ['2'], 'and the one that ran has filled the view');
}

# An update in a transaction block is running until its end.
{
	my $holder = $node->background_psql($db);
	# Its notices are no failure.
	$holder->query('BEGIN; CALL p()');
	refused('busy in a transaction', q(SET lock_timeout = '60s'; CALL p()), '55006', qr/"(public\.)?p"/, qr/pipeline\.on_busy/);
	$holder->query('ROLLBACK');
	$holder->quit;
}

# ---- 40001: somebody else's update since the snapshot
{
	my $session = $node->background_psql($db, on_error_stop => 0);
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
	$node->safe_psql($db, q(INSERT INTO src VALUES (50, 'later'); CALL p()));
	$session->query("\\set VERBOSITY verbose\nCALL p();");
	like($session->{stderr}, qr/ERROR:  40001: /, 'a refresh since the snapshot: SQLSTATE');
	$session->query('ROLLBACK');
	$session->quit;
}

# ---- 25006
refused('read only', 'BEGIN READ ONLY; CALL p()', '25006', qr/read-only transaction/);

# ---- 55000: the library is of another version than the SQL objects
$node->safe_psql($db, q(UPDATE pg_extension SET extversion = '0.9' WHERE extname = 'pipeline'));
refused('other version', 'CALL p()', '55000', qr/0\.9/, qr/ALTER EXTENSION pipeline UPDATE;/);
$node->safe_psql($db, q(UPDATE pg_extension SET extversion = '1.0' WHERE extname = 'pipeline'));
$node->safe_psql($db, 'CALL p()');

# ---- CALL: the client did not send the text, so it is shown
$node->safe_psql($db, "CREATE PROCEDURE later() LANGUAGE pipeline AS \$\$ $wide CREATE MATERIALIZED VIEW l AS SELECT 'äöü' AS a, id FROM other; \$\$; CALL later()");
$node->safe_psql($db, 'ALTER TABLE other RENAME TO elsewhere');
$err = refused('source renamed', 'CALL later()', '42P01', qr/"other" does not exist/, undef, 'other');
like($err, qr/^QUERY:  .*CREATE MATERIALIZED VIEW l/m, 'source renamed: the body is shown');

# Whatever was refused left no dataset behind.
rows_are($node, $db, q(SELECT string_agg(dataset, ' ' ORDER BY dataset) FROM pipeline.datasets),
	['public.d public.keep public.l public.m public.s public.t public.z'], 'nothing is left of what was refused');
rows_are($node, $db, q(SELECT count(*) FROM pg_class WHERE relname IN ('a', 'b', 'c', 'd2', 'f', 'bad')), ['0'], 'nor a relation');

$node->stop;
done_testing();

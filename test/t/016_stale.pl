# What an update read before something else changed it: snapshots that are older than a source,
# views that lie between, conditions that change by themselves, definitions that were replaced
# while a refresh waited.
use strict;
use warnings;
use PipelineTest;
use Test::More;

my $node = pipeline_node('stale');
my $db = 'postgres';

# ---- REPEATABLE READ must not read a table as it is now with the rows of then
$node->safe_psql($db, q(CREATE TABLE src (id int); INSERT INTO src VALUES (1);
	CREATE TABLE dim (id int, n text); INSERT INTO dim VALUES (1, 'one'), (2, 'two');
	CREATE UNLOGGED TABLE loose (id int); INSERT INTO loose VALUES (1), (2);
	CREATE PROCEDURE j() LANGUAGE pipeline AS $$ CREATE STREAMING TABLE joined AS SELECT s.id, d.n FROM STREAM(src) s JOIN dim d USING (id) $$; CALL j();
	CREATE PROCEDURE l() LANGUAGE pipeline AS $$ CREATE MATERIALIZED VIEW of_loose AS SELECT id FROM loose $$; CALL l()));
for my $case (
	[ 'j', 'the other side of a join', 'INSERT INTO src VALUES (2)', q(TRUNCATE dim; INSERT INTO dim VALUES (1, 'one'), (2, 'two')),
		'SELECT id, n FROM joined ORDER BY 1', [ '1|one', '2|two' ] ],
	[ 'l', 'a table that is not captured', 'SELECT 1', 'TRUNCATE loose; INSERT INTO loose VALUES (3)', 'SELECT id FROM of_loose', ['3'] ])
{
	my ($procedure, $name, $mine, $theirs, $query, $rows) = @$case;
	my $session = $node->background_psql($db, on_error_stop => 0);

	$session->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $mine");
	$node->safe_psql($db, $theirs);
	$session->query("CALL $procedure()");
	like($session->{stderr}, qr/altered or truncated after this transaction began/, "$name: refused");
	$session->{stderr} = '';
	$session->query('ROLLBACK');
	$session->quit;
	$node->safe_psql($db, $mine);
	$node->safe_psql($db, "CALL $procedure()");
	rows_are($node, $db, $query, $rows, "$name: nothing is lost");
}

# ---- a condition that changes by itself, a view that is replaced
$node->safe_psql($db, q(CREATE TABLE ev (t timestamptz); INSERT INTO ev VALUES (now()), (now() + interval '1 day');
	CREATE VIEW between AS SELECT t FROM ev;
	DO LANGUAGE pipeline $$CREATE MATERIALIZED VIEW recent (CONSTRAINT fresh EXPECT (t > now() - interval '1 second') ON VIOLATION DROP ROW) AS SELECT t FROM ev;
		CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM between$$));
sleep 2;
$node->safe_psql($db, 'REFRESH MATERIALIZED VIEW recent');
rows_are($node, $db, 'SELECT count(*) FROM recent', ['1'], 'a DROP condition with now() is looked at again');
$node->safe_psql($db, 'CREATE OR REPLACE VIEW between AS SELECT t FROM ev WHERE t > now(); REFRESH MATERIALIZED VIEW counted');
rows_are($node, $db, 'SELECT n FROM counted', ['1'], 'a view in between that was replaced is a change');
$node->safe_psql($db, 'CREATE OR REPLACE VIEW between AS SELECT t FROM ev WHERE false; REFRESH MATERIALIZED VIEW counted; REFRESH MATERIALIZED VIEW counted');
rows_are($node, $db, 'SELECT n FROM counted', ['0'], 'and again');

# ---- a refresh that waited keeps the definition that it finds
$node->safe_psql($db, 'DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE d AS SELECT id FROM STREAM(src)$$');
my $first = $node->background_psql($db);
my $second = $node->background_psql($db);
$first->query('BEGIN; DO LANGUAGE pipeline $$CREATE OR REFRESH STREAMING TABLE d AS SELECT id, id * 10 AS z FROM STREAM(src)$$');
$second->query_until(qr/started/, "\\echo started\nCALL pipeline.refresh('d');\n\\echo finished\n");
$node->poll_query_until($db, q(SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock')) or die 'the second session does not wait';
$first->query('COMMIT');
$second->query_until(qr/finished/, "\n");
$first->quit;
$second->quit;
$node->safe_psql($db, q(INSERT INTO src VALUES (7); CALL pipeline.refresh('d')));
rows_are($node, $db, 'SELECT id, z FROM d WHERE id = 7', ['7|70'], 'the newer definition stays');

# ---- our own SQL does not depend on the session's parser settings
$node->safe_psql($db, q(SET standard_conforming_strings = off; SET quote_all_identifiers = on; SET transform_null_equals = on; SET array_nulls = off;
	INSERT INTO src VALUES (8); CALL pipeline.refresh('d')));
rows_are($node, $db, 'SELECT id, z FROM d WHERE id = 8', ['8|80'], 'under odd parser settings');

$node->stop;
done_testing();

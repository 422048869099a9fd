# Expectations: NULL conditions, several rules on one row, FAIL, errors inside a condition,
# views, refusals, quarantine, guards.
use strict;
use warnings;
use PipelineTest;
use Test::More;

my $node = pipeline_node('expectations');
my $db;

# ---- a condition that is NULL is violated
$db = fresh_db($node, 'null_condition');
$node->safe_psql($db, q(CREATE TABLE src (id int, qty int);
	INSERT INTO src VALUES (1, 5), (2, NULL), (3, -1), (4, NULL);));
pipeline($node, $db, 'p', q(
	CREATE OR REFRESH STREAMING TABLE dropped (CONSTRAINT pos EXPECT (qty > 0) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE warned (CONSTRAINT pos EXPECT (qty > 0)) AS SELECT * FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE failing (CONSTRAINT pos EXPECT (qty > 0 OR id = 3) ON VIOLATION FAIL UPDATE) AS SELECT * FROM STREAM(src);));
fails_with($node, $db, 'CALL p()', '23514', qr/expectation "pos" violated by 2 of 4 rows/, 'FAIL on NULL');
rows_are($node, $db, 'SELECT * FROM dropped', ['1|5'], 'DROP drops NULL');
rows_are($node, $db, 'SELECT count(*) FROM warned', ['4'], 'warn keeps NULL');
rows_are($node, $db, 'SELECT count(*) FROM failing', ['0'], 'FAIL writes nothing');
counts_are($node, $db, 'dropped', 'pos', '1|3', 'counts of DROP');
counts_are($node, $db, 'warned', 'pos', '1|3', 'counts of warn');
rows_are($node, $db, q(SELECT dataset, state FROM pipeline.datasets ORDER BY 1),
	['public.dropped|ACTIVE', 'public.failing|ACTIVE', 'public.warned|ACTIVE'], 'datasets');
rows_are($node, $db, q(SELECT l.details #>> '{flow_progress,data_quality,dropped_records}'
	FROM pipeline.event_log('dropped') l WHERE l.details #> '{flow_progress,data_quality}' IS NOT NULL),
	['3'], 'dropped records');

# ---- two DROP rules on one row: the row is dropped once
$db = fresh_db($node, 'two_rules');
$node->safe_psql($db, q(CREATE TABLE src (id int, a int, b int);
	INSERT INTO src VALUES (1,1,1),(2,0,1),(3,1,0),(4,0,0),(5,NULL,1);));
pipeline($node, $db, 'p', q(CREATE OR REFRESH STREAMING TABLE t (
	CONSTRAINT a_ok EXPECT (a = 1) ON VIOLATION DROP ROW,
	CONSTRAINT b_ok EXPECT (b = 1) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(src);));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT * FROM t', ['1|1|1'], 'one row stays');
counts_are($node, $db, 'p', 'a_ok', '2|3', 'first rule');
counts_are($node, $db, 'p', 'b_ok', '3|2', 'second rule');
rows_are($node, $db, q(SELECT sum((l.details #>> '{flow_progress,data_quality,dropped_records}')::int),
	sum((l.details #>> '{flow_progress,metrics,num_output_rows}')::int) FROM pipeline.event_log('p') l),
	['4|1'], 'dropped once each');

# ---- FAIL UPDATE is atomic
$db = fresh_db($node, 'fail_update');
$node->safe_psql($db, q(CREATE TABLE src (id int GENERATED ALWAYS AS IDENTITY, amt int);
	INSERT INTO src (amt) SELECT g FROM generate_series(1, 1000) g;));
my $fail = q(CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT nonneg EXPECT (amt >= %s) ON VIOLATION FAIL UPDATE) AS SELECT * FROM STREAM(src););
pipeline($node, $db, 'p', sprintf($fail, '0'));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT count(*) FROM t', ['1000'], 'first update');
counts_are($node, $db, 't', 'nonneg', '1000|0', 'a FAIL rule that holds is counted');
$node->safe_psql($db, q(INSERT INTO src (amt) SELECT g FROM generate_series(1, 500) g; INSERT INTO src (amt) VALUES (-7);));
for my $try (1, 2)
{
	fails_with($node, $db, 'CALL p()', '23514', qr/"nonneg" violated by 1 of 501 rows/, "violation, try $try");
	rows_are($node, $db, 'SELECT count(*) FROM t', ['1000'], "nothing written, try $try");
}
pipeline($node, $db, 'p', sprintf($fail, '-10'));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT count(*), count(DISTINCT id) FROM t', ['1501|1501'], 'all rows once after repair');

# ---- an error inside a condition
$db = fresh_db($node, 'condition_error');
$node->safe_psql($db, q(CREATE TABLE src (id int, a int, b int, txt text);
	INSERT INTO src VALUES (1,4,2,'10'),(2,4,0,'20'),(3,4,1,'abc');));
pipeline($node, $db, 'p1', q(CREATE OR REFRESH STREAMING TABLE t1 (CONSTRAINT ratio EXPECT (a / b > 1) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(src);));
pipeline($node, $db, 'p2', q(CREATE OR REFRESH STREAMING TABLE t2 (CONSTRAINT isnum EXPECT (txt::int > 0)) AS SELECT * FROM STREAM(src);));
fails_with($node, $db, 'CALL p1()', '22012', qr/ratio/, 'division by zero');
fails_with($node, $db, 'CALL p2()', '22P02', qr/isnum/, 'bad cast');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM t1), (SELECT count(*) FROM t2)', ['0|0'], 'nothing written');
rows_are($node, $db, q(SELECT event_type, level, message ~ 'FAILED', error->'exceptions'->0->>'message' ~ 'division by zero'
	FROM pipeline.event_log('p1') WHERE level = 'ERROR' AND event_type = 'flow_progress'),
	['flow_progress|ERROR|t|t'], 'failed event with the error');

# ---- expectations on a materialized view
$db = fresh_db($node, 'view');
$node->safe_psql($db, q(CREATE TABLE o (id int PRIMARY KEY, g text, amt int);
	INSERT INTO o VALUES (1,'a',10),(2,'a',-4),(3,'b',-1);));
pipeline($node, $db, 'p', q(CREATE OR REFRESH MATERIALIZED VIEW m (
	CONSTRAINT pos EXPECT (total > 0) ON VIOLATION DROP ROW,
	CONSTRAINT few EXPECT (n < 3)) AS SELECT g, sum(amt) AS total, count(*) AS n FROM o GROUP BY g;));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT * FROM m', ['a|6|2'], 'DROP is part of the content');
counts_are($node, $db, 'm', 'pos', '1|1', 'counted over the unfiltered rows');
$node->safe_psql($db, 'UPDATE o SET amt = 5 WHERE id = 3; UPDATE o SET amt = -20 WHERE id = 1; CALL p()');
rows_are($node, $db, 'SELECT * FROM m', ['b|5|1'], 'after an update');
$node->safe_psql($db, q(INSERT INTO o VALUES (4,'b',1),(5,'b',1); CALL p()));
rows_are($node, $db, 'SELECT * FROM m', ['b|7|3'], 'warn keeps the row');
$node->safe_psql($db, 'DELETE FROM o WHERE id IN (1,2); CALL p()');
rows_are($node, $db, 'SELECT * FROM m', ['b|7|3'], 'a group that is gone is neither passed nor failed');
$node->safe_psql($db, 'REFRESH MATERIALIZED VIEW m');
rows_are($node, $db, 'SELECT * FROM m', ['b|7|3'], 'native REFRESH agrees');

# ---- refused conditions leave nothing behind
$db = fresh_db($node, 'refused');
$node->safe_psql($db, 'CREATE TABLE src (id int); CREATE TABLE ok (id int);');
for my $case (
	['id IN (SELECT id FROM ok)', '0A000', qr/subquery|subqueries/],
	['sum(id) > 0', '42803', qr/aggregate/],
	['id + 1', '42804', qr/boolean/],
	['missing > 0', '42703', qr/missing/],
	['random() > id', '0A000|42P17', qr/volatile/])
{
	my ($condition, $state, $pattern) = @$case;
	fails_with($node, $db, qq(DO LANGUAGE pipeline \$\$CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT c EXPECT ($condition)) AS SELECT * FROM STREAM(src);\$\$),
		"(?:$state)", $pattern, "condition $condition");
}
rows_are($node, $db, q(SELECT to_regclass('t') IS NULL, count(*) FROM pipeline.datasets), ['t|0'], 'nothing left');
$node->safe_psql($db, 'DROP TABLE src, ok');

# ---- updates without new rows
$db = fresh_db($node, 'idle');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src VALUES (1),(-1);');
pipeline($node, $db, 'p', q(CREATE OR REFRESH STREAMING TABLE t (CONSTRAINT pos EXPECT (id > 0) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(src);));
for (1 .. 3)
{
	$node->safe_psql($db, 'CALL p()');
	rows_are($node, $db, 'SELECT * FROM t', ['1'], "rows after update $_");
}
counts_are($node, $db, 'p', 'pos', '1|1', 'counts are not repeated');
rows_are($node, $db, q(SELECT state, noop_runs FROM pipeline.updates ORDER BY started_at), ['COMPLETED|0', 'COMPLETED|2'],
	'no-op updates in a row are one row');

# ---- quarantine: valid and quarantined together are the input
$db = fresh_db($node, 'quarantine');
$node->safe_psql($db, q(CREATE TABLE raw (id int, temp int);
	INSERT INTO raw VALUES (1,20),(2,999),(NULL,20),(4,NULL),(NULL,NULL);));
pipeline($node, $db, 'p', q(CREATE OR REFRESH STREAMING TABLE good (
	CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION QUARANTINE ROW,
	CONSTRAINT sane EXPECT (temp BETWEEN -50 AND 150) ON VIOLATION QUARANTINE ROW) AS SELECT * FROM STREAM(raw);));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT * FROM good', ['1|20'], 'good rows');
rows_are($node, $db, 'SELECT id, temp, _rules FROM good_quarantine ORDER BY id NULLS LAST, temp NULLS LAST',
	['2|999|{sane}', '4||{sane}', '|20|{has_id}', '||{has_id,sane}'], 'quarantined rows with their reasons');
$node->safe_psql($db, 'UPDATE good_quarantine SET temp = 99 WHERE id = 2');
rows_are($node, $db, q(SELECT * FROM pipeline.replay_quarantine('good')), ['1|3'], 'replay');
rows_are($node, $db, 'SELECT * FROM good ORDER BY 1', ['1|20', '2|99'], 'repaired row is in');
rows_are($node, $db, 'SELECT count(*) FILTER (WHERE _replayed_at IS NULL), count(*) FROM good_quarantine', ['3|4'], 'marked');
rows_are($node, $db, q(SELECT * FROM pipeline.replay_quarantine('good')), ['0|3'], 'not twice');

# ---- several reasons, counts per update
$db = fresh_db($node, 'reasons');
$node->safe_psql($db, q(CREATE TABLE raw (id int, a int, b int); INSERT INTO raw VALUES (1,1,1),(2,0,0),(2,0,0),(3,1,0);));
pipeline($node, $db, 'p', q(CREATE OR REFRESH STREAMING TABLE t (
	CONSTRAINT r_a EXPECT (a = 1) ON VIOLATION QUARANTINE ROW,
	CONSTRAINT r_b EXPECT (b = 1) ON VIOLATION QUARANTINE ROW) AS SELECT * FROM STREAM(raw);));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT * FROM t', ['1|1|1'], 'target');
rows_are($node, $db, 'SELECT id, a, b, _rules FROM t_quarantine ORDER BY id', ['2|0|0|{r_a,r_b}', '2|0|0|{r_a,r_b}', '3|1|0|{r_b}'], 'one row per row');
counts_are($node, $db, 't', 'r_a', '2|2', 'r_a');
counts_are($node, $db, 't', 'r_b', '1|3', 'r_b');
$node->safe_psql($db, 'INSERT INTO raw VALUES (4,0,1); CALL p()');
rows_are($node, $db, 'SELECT id, _rules FROM t_quarantine WHERE id = 4', ['4|{r_a}'], 'second update');
counts_are($node, $db, 't', 'r_a', '2|3', 'r_a, both updates');
counts_are($node, $db, 't', 'r_b', '2|3', 'r_b, both updates');

# ---- a guard view
$db = fresh_db($node, 'guard');
$node->safe_psql($db, q(CREATE TABLE dim (k int, v text); INSERT INTO dim VALUES (1,'a'),(2,'b');));
pipeline($node, $db, 'p', q(CREATE OR REFRESH MATERIALIZED VIEW chk (CONSTRAINT one EXPECT (n = 1) ON VIOLATION FAIL UPDATE) AS SELECT k, count(*) AS n FROM dim GROUP BY k;));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT * FROM chk ORDER BY 1', ['1|1', '2|1'], 'passes');
$node->safe_psql($db, q(INSERT INTO dim VALUES (2,'c')));
fails_with($node, $db, 'CALL p()', '23514', qr/"one" violated by 1 of 2 rows/, 'guard');
rows_are($node, $db, 'SELECT * FROM chk ORDER BY 1', ['1|1', '2|1'], 'keeps its last good rows');
$node->safe_psql($db, q(INSERT INTO dim VALUES (3,'d'); DELETE FROM dim WHERE v = 'b'; CALL p()));
rows_are($node, $db, 'SELECT * FROM chk ORDER BY 1', ['1|1', '2|1', '3|1'], 'passes again');
$node->safe_psql($db, q(INSERT INTO dim VALUES (NULL,'x'),(NULL,'y')));
fails_with($node, $db, 'CALL p()', '23514', qr/"one"/, 'NULL is one group');

# ---- thresholds
$db = fresh_db($node, 'threshold');
$node->safe_psql($db, 'CREATE TABLE src (id int); INSERT INTO src SELECT g FROM generate_series(1, 100) g;');
pipeline($node, $db, 'p', q(CREATE OR REFRESH STREAMING TABLE t (
	CONSTRAINT big EXPECT (id > 10) ON VIOLATION QUARANTINE ROW FAIL ABOVE 20 PERCENT) AS SELECT * FROM STREAM(src);));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM t_quarantine)', ['90|10'], 'below the threshold');
$node->safe_psql($db, 'INSERT INTO src VALUES (1),(2),(3),(50)');
fails_with($node, $db, 'CALL p()', '23514', qr/big/, 'above the threshold');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM t_quarantine)', ['90|10'], 'nothing of it stays');

# ---- functions
$db = fresh_db($node, 'functions');
$node->safe_psql($db, 'CREATE TABLE src (id int, v int); INSERT INTO src VALUES (1, 1), (2, NULL);');
pipeline($node, $db, 'p', q(CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM(src);));
$node->safe_psql($db, q(CALL p(); SELECT pipeline.expect_or_drop('t', 'has_v', 'v IS NOT NULL')));
$node->safe_psql($db, q(SELECT pipeline.expect_all('t', '{"small": "id < 100"}')));
rows_are($node, $db, q(SELECT passed, failed, sample FROM pipeline.try_expectation('t', 'v IS NOT NULL')), ['1|1|[{"v": null, "id": 2}]'], 'try');
rows_are($node, $db, q(SELECT expectation, action, origin FROM pipeline.expectations ORDER BY 1), ['has_v|DROP|function', 'small|WARN|function'], 'view of rules');
$node->safe_psql($db, 'INSERT INTO src VALUES (3, 3), (400, NULL); CALL p()');
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['1|1', '2|', '3|3'], 'applies to new rows only');
counts_are($node, $db, 't', 'small', '1|1', 'counted');
$node->safe_psql($db, q(SELECT pipeline.drop_expectation('t', 'has_v'); INSERT INTO src VALUES (5, NULL); CALL p()));
rows_are($node, $db, 'SELECT count(*) FROM t', ['4'], 'dropped rule is gone');

# ---- temporary views
$db = fresh_db($node, 'temp_view');
$node->safe_psql($db, 'CREATE TABLE src (id int, v int); INSERT INTO src VALUES (1, 1), (2, NULL), (3, -3);');
pipeline($node, $db, 'p', q(
	CREATE TEMPORARY VIEW clean (CONSTRAINT has_v EXPECT (v IS NOT NULL) ON VIOLATION DROP ROW, CONSTRAINT pos EXPECT (v > 0)) AS SELECT * FROM STREAM(src);
	CREATE OR REFRESH STREAMING TABLE t AS SELECT id FROM STREAM(clean) WHERE id <> 1;));
$node->safe_psql($db, 'CALL p()');
rows_are($node, $db, 'SELECT * FROM t ORDER BY 1', ['3'], 'dropped in the view');
counts_are($node, $db, 't', 'has_v', '2|1', 'every row of the view is counted');
counts_are($node, $db, 't', 'pos', '1|2', 'also by its second rule');
rows_are($node, $db, q(SELECT to_regclass('clean') IS NULL), ['t'], 'the view is in no catalog');

$node->stop;
done_testing();

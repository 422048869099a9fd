# Writing: what COPY's path means for streaming tables (constraints, partitions, triggers, keys), and
# the swap of materialized views (indexes, TOAST, duplicates, older snapshots, crash).
use strict;
use warnings;
use PipelineTest;
use Test::More;

my $node = pipeline_node('writing');
my $db;

sub refresh
{
	my ($table) = @_;
	$node->safe_psql($db, "CALL pipeline.refresh('$table')");
	return;
}

# ---- triggers of the user fire, in COPY's order; batches give way to them
$db = fresh_db($node, 'triggers');
$node->safe_psql($db, q(
	CREATE TABLE src (id int); INSERT INTO src VALUES (1), (2);
	CREATE TABLE log (n serial, what text);
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $f$
	BEGIN
		IF tg_level = 'STATEMENT' THEN
			INSERT INTO public.log (what) VALUES (tg_when || ' statement');
			RETURN NULL;
		END IF;
		INSERT INTO public.log (what)
			VALUES (tg_when || ' row ' || new.id || ' of ' || (SELECT count(*) FROM public.t));
		IF tg_when = 'BEFORE' THEN new.id := new.id + 100; END IF;
		IF new.id = 104 THEN RETURN NULL; END IF;
		RETURN new;
	END $f$;
	CREATE FUNCTION note_new() RETURNS trigger LANGUAGE plpgsql AS $f$
	BEGIN
		INSERT INTO public.log (what) SELECT 'new rows ' || count(*) FROM new_rows;
		RETURN NULL;
	END $f$;
	DO LANGUAGE pipeline $$CREATE STREAMING TABLE t AS SELECT * FROM STREAM(src)$$;));
rows_are($node, $db, 'SELECT id FROM t ORDER BY id', [1, 2], 'before there are triggers');
$node->safe_psql($db, q(
	CREATE TRIGGER new_rows AFTER INSERT ON t REFERENCING NEW TABLE AS new_rows
		FOR EACH STATEMENT EXECUTE FUNCTION note_new();
	INSERT INTO src VALUES (3);));
refresh('t');
rows_are($node, $db, 'SELECT what FROM log ORDER BY n', ['new rows 1'], 'a transition table');
$node->safe_psql($db, q(
	TRUNCATE log;
	CREATE TRIGGER row_before BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();
	CREATE TRIGGER row_after AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();
	CREATE TRIGGER stmt_before BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note();
	CREATE TRIGGER stmt_after AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note();
	INSERT INTO src VALUES (4), (5), (6);));
refresh('t');
rows_are($node, $db, 'SELECT what FROM log ORDER BY n',
	['BEFORE statement', 'BEFORE row 4 of 3', 'BEFORE row 5 of 3', 'BEFORE row 6 of 4',
	'AFTER row 105 of 5', 'AFTER row 106 of 5', 'new rows 2', 'AFTER statement'],
	'triggers in order, each seeing the rows before');
rows_are($node, $db, 'SELECT id FROM t ORDER BY id', [1, 2, 3, 105, 106], 'what the triggers left');

# ---- keys, checks, generated columns
$db = fresh_db($node, 'constraints');
$node->safe_psql($db, q(
	CREATE TABLE src (id int, k int); INSERT INTO src SELECT i, i % 3 FROM generate_series(1, 2500) i;
	CREATE TABLE keys (k int PRIMARY KEY); INSERT INTO keys VALUES (0), (1), (2);
	DO LANGUAGE pipeline $$CREATE STREAMING TABLE t AS SELECT * FROM STREAM(src)$$;
	ALTER TABLE t ADD CONSTRAINT t_k FOREIGN KEY (k) REFERENCES keys;
	ALTER TABLE t ADD CONSTRAINT t_id CHECK (id > 0);
	CREATE UNIQUE INDEX t_u ON t (id);
	INSERT INTO src SELECT i, i % 3 FROM generate_series(2501, 5000) i;));
refresh('t');
rows_are($node, $db, 'SELECT count(*), sum(id) FROM t', ['5000|12502500'], 'rows that satisfy all');
for my $case (['9001, 7', '23503', qr/"t_k"/], ['-1, 1', '23514', qr/"t_id"/], ['17, 1', '23505', qr/"t_u"/])
{
	my ($row, $sqlstate, $pattern) = @$case;
	$node->safe_psql($db, "BEGIN; INSERT INTO src SELECT i, 0 FROM generate_series(6000, 6100) i;
		INSERT INTO src VALUES ($row); COMMIT;");
	fails_with($node, $db, q(CALL pipeline.refresh('t')), $sqlstate, $pattern, "row ($row)");
	rows_are($node, $db, 'SELECT count(*) FROM t', ['5000'], "nothing of the batch with ($row)");
	# the bad rows go, and with them the place in the stream
	$node->safe_psql($db, "DELETE FROM src WHERE id >= 6000 OR ctid IN (SELECT max(ctid) FROM src WHERE (id, k) = ($row))");
	$node->safe_psql($db, q(CALL pipeline.refresh('t', full_refresh => true)));
}
rows_are($node, $db, 'SELECT count(*), count(DISTINCT id) FROM t', ['5000|5000'], 'after all refusals');

# ---- what cannot be written so is refused before a row is written
$node->safe_psql($db, q(ALTER TABLE t ALTER CONSTRAINT t_k DEFERRABLE INITIALLY DEFERRED;
	INSERT INTO src VALUES (8000, 0);));
fails_with($node, $db, q(CALL pipeline.refresh('t')), '0A000',
	qr/"t_k" of table "public.t" is checked at the commit only.*ALTER CONSTRAINT t_k NOT DEFERRABLE/s,
	'a deferred foreign key');
$node->safe_psql($db, 'ALTER TABLE t ALTER CONSTRAINT t_k NOT DEFERRABLE');
refresh('t');
rows_are($node, $db, 'SELECT count(*) FROM t', ['5001'], 'the hint helps');

$node->safe_psql($db, q(
	CREATE ROLE pln_writer; CREATE SCHEMA own AUTHORIZATION pln_writer;
	SET ROLE pln_writer; CREATE TABLE own.src (id int); INSERT INTO own.src VALUES (1);
	DO LANGUAGE pipeline $$CREATE STREAMING TABLE own.t AS SELECT * FROM STREAM(own.src)$$;
	ALTER TABLE own.t ENABLE ROW LEVEL SECURITY; ALTER TABLE own.t FORCE ROW LEVEL SECURITY;
	CREATE POLICY positive ON own.t USING (id > 0);
	INSERT INTO own.src VALUES (-1);));
fails_with($node, $db, q(CALL pipeline.refresh('own.t')), '0A000',
	qr/row-level security of table "own.t" binds its owner too/, 'FORCE ROW LEVEL SECURITY');

# ---- a streaming table that is a partition takes its own rows only
$node->safe_psql($db, q(
	CREATE TABLE psrc (id int, k int); INSERT INTO psrc VALUES (1, 5);
	DO LANGUAGE pipeline $$CREATE STREAMING TABLE part AS SELECT * FROM STREAM(psrc)$$;
	CREATE TABLE parent (id int, k int) PARTITION BY LIST (k);
	ALTER TABLE parent ATTACH PARTITION part FOR VALUES IN (5);
	INSERT INTO psrc VALUES (2, 5);));
refresh('part');
rows_are($node, $db, 'SELECT * FROM parent ORDER BY id', ['1|5', '2|5'], 'a row of the partition');
$node->safe_psql($db, 'INSERT INTO psrc VALUES (3, 7)');
fails_with($node, $db, q(CALL pipeline.refresh('part')), '23514', qr/violates partition constraint/,
	'a row of another partition');

# ---- each rule reports a row of its own
$node->safe_psql($db, 'CREATE TABLE fsrc (id int, a int, b int); INSERT INTO fsrc VALUES (1, 1, 0), (2, 0, 1)');
fails_with($node, $db, q(DO LANGUAGE pipeline $$CREATE STREAMING TABLE f (
	CONSTRAINT ra EXPECT (a = 1) ON VIOLATION FAIL UPDATE,
	CONSTRAINT rb EXPECT (b = 1) ON VIOLATION FAIL UPDATE) AS SELECT * FROM STREAM(fsrc)$$), '23514',
	qr/"ra" violated by 1 of 2 rows, first \(2, 0, 1\).*Violated as well: "rb" \(1\)/s, 'two FAIL rules');
fails_with($node, $db, q(DO LANGUAGE pipeline $$CREATE STREAMING TABLE f (
	CONSTRAINT folded EXPECT (id > 0 AND 1 / 0 > 1)) AS SELECT * FROM STREAM(fsrc)$$), '22012',
	qr/expectation "folded"/, 'an error in a constant part names the rule');

# ---- quarantine in batches: each row once, with its own rules, keys of the owner kept up
$node->safe_psql($db, q(
	CREATE TABLE qsrc (id int, a int, b int, t text);
	INSERT INTO qsrc SELECT i, i % 3, i % 2, repeat('x', i % 200) FROM generate_series(1, 5000) i;
	DO LANGUAGE pipeline $$CREATE STREAMING TABLE q (
		CONSTRAINT a_ok EXPECT (a > 0) ON VIOLATION QUARANTINE ROW,
		CONSTRAINT b_ok EXPECT (b > 0) ON VIOLATION QUARANTINE ROW) AS SELECT * FROM STREAM(qsrc)$$;
	CREATE UNIQUE INDEX q_key ON q_quarantine (id);
	INSERT INTO qsrc SELECT i, i % 3, i % 2, repeat('x', i % 200) FROM generate_series(5001, 10000) i;));
refresh('q');
rows_are($node, $db, q(SELECT _rules, count(*), count(DISTINCT id), count(DISTINCT _update_id)
	FROM q_quarantine GROUP BY 1 ORDER BY 1),
	['{a_ok}|1667|1667|2', '{a_ok,b_ok}|1666|1666|2', '{b_ok}|3334|3334|2'], 'rows and their rules');
rows_are($node, $db, q(SELECT count(*) FROM (SELECT * FROM qsrc EXCEPT ALL
	(TABLE q UNION ALL SELECT id, a, b, t FROM q_quarantine)) x), ['0'], 'kept and quarantined are the input');
rows_are($node, $db, q(SET enable_seqscan = off; SELECT id FROM q_quarantine WHERE id = 9996), ['9996'],
	'the index on the quarantine knows the new rows');

# ---- materialized views: indexes come along, duplicates are reported as core does
$db = fresh_db($node, 'views');
$node->safe_psql($db, 'CREATE EXTENSION amcheck');
$node->safe_psql($db, q(
	CREATE TABLE src (id int, t text, big text);
	INSERT INTO src SELECT i, 't' || i, CASE WHEN i % 100 = 0 THEN
		(SELECT string_agg(md5((g * i)::text), '') FROM generate_series(1, 200) g) END
		FROM generate_series(1, 3000) i;
	DO LANGUAGE pipeline $$CREATE MATERIALIZED VIEW m AS SELECT * FROM src$$;
	CREATE UNIQUE INDEX m_id ON m (id) WITH (fillfactor = 70);
	CREATE INDEX m_t ON m (lower(t) text_pattern_ops) WHERE id > 10;
	CREATE INDEX m_hash ON m USING hash (t);
	CREATE INDEX m_brin ON m USING brin (id);
	COMMENT ON INDEX m_t IS 'mine';
	CLUSTER m USING m_id;
	CREATE STATISTICS m_s ON id, t FROM m;));
my $shape = q(SELECT pg_get_indexdef(indexrelid), indisclustered, obj_description(indexrelid)
	FROM pg_index WHERE indrelid = 'm'::regclass ORDER BY 1);
my $before = $node->safe_psql($db, $shape);
my $check = q(SELECT count(bt_index_check(indexrelid, true)) FROM pg_index
	JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = c.relam
	WHERE indrelid = 'm'::regclass AND amname = 'btree');

# an older snapshot sees a full view, whatever its age
my $old = $node->background_psql($db);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM src');
$node->safe_psql($db, q(INSERT INTO src VALUES (3001, 't', repeat('y', 100)); REFRESH MATERIALIZED VIEW m;));
is($old->query_safe('SELECT count(*) FROM m'), 3001, 'an older snapshot reads the new rows');
$old->quit;
is($node->safe_psql($db, $shape), $before, 'definitions, cluster flag and comments stay');
rows_are($node, $db, $check, ['2'], 'btree indexes have every row');
rows_are($node, $db, q(SELECT count(*) FROM verify_heapam('m', check_toast => true)), ['0'], 'heap and TOAST');
rows_are($node, $db, q(SET enable_seqscan = off; SELECT id FROM m WHERE t = 't77'), ['77'], 'hash index');
rows_are($node, $db, q(SELECT count(*) FROM m FULL JOIN src USING (id, t)
	WHERE m.big IS DISTINCT FROM src.big), ['0'], 'TOAST values are those of the source');
rows_are($node, $db, q(SELECT count(*) FROM pg_class WHERE relname LIKE 'pg_temp%' OR relrewrite <> 0), ['0'],
	'nothing transient is left');
rows_are($node, $db, q(SELECT t.relname = 'pg_toast_' || c.oid FROM pg_class c
	JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.oid = 'm'::regclass), ['t'], 'name of the TOAST table');

$node->safe_psql($db, q(INSERT INTO src VALUES (3001, 'again', NULL)));
fails_with($node, $db, 'REFRESH MATERIALIZED VIEW m', '23505',
	qr/could not create unique index "m_id"/, 'a duplicate names the index of the user');
$node->safe_psql($db, q(DELETE FROM src WHERE t = 'again'));

# a swap that is rolled back, in a subtransaction and as a whole
$node->safe_psql($db, q(INSERT INTO src VALUES (3002, 'two', NULL);
	BEGIN; REFRESH MATERIALIZED VIEW m; ROLLBACK;));
rows_are($node, $db, 'SELECT count(*) FROM m', ['3001'], 'rolled back');
$node->safe_psql($db, q(BEGIN; SAVEPOINT a; REFRESH MATERIALIZED VIEW m; ROLLBACK TO a;
	REFRESH MATERIALIZED VIEW m; COMMIT;));
rows_are($node, $db, 'SELECT count(*) FROM m', ['3002'], 'after a savepoint');
rows_are($node, $db, $check, ['2'], 'indexes after rollbacks');

# a wide column is appended to a view of narrow ones
$node->safe_psql($db, q(DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW w AS SELECT id FROM src$$;
	DO LANGUAGE pipeline $$CREATE OR REFRESH MATERIALIZED VIEW w AS SELECT id, repeat(md5(id::text), 1) AS t,
		(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 500) g) AS wide FROM src WHERE id < 3$$;));
rows_are($node, $db, 'SELECT id, length(wide) FROM w ORDER BY id', ['1|16000', '2|16000'], 'appended wide column');

# ---- crash right after the commit, also where new files are not logged
for my $level ('replica', 'minimal')
{
	$node->append_conf('postgresql.conf', "wal_level = $level\nmax_wal_senders = 0\nwal_skip_threshold = '64kB'\n");
	$node->restart;
	$node->safe_psql($db, qq(INSERT INTO src VALUES (4000, '$level', repeat('z', 5000)); REFRESH MATERIALIZED VIEW m;));
	my $rows = $node->safe_psql($db, q(SELECT count(*), md5(string_agg(m::text, '' ORDER BY id)) FROM m));
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql($db, q(SELECT count(*), md5(string_agg(m::text, '' ORDER BY id)) FROM m)), $rows,
		"rows after a crash, wal_level = $level");
	rows_are($node, $db, $check, ['2'], "indexes after a crash, wal_level = $level");
	$node->safe_psql($db, 'DELETE FROM src WHERE id = 4000');
}

$node->stop;
done_testing();

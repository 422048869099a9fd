# Who may see and do what: findings of a review, each of which got through once.
use strict;
use warnings;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('security');
my $db = fresh_db($node, 'sec');
my $dir = PostgreSQL::Test::Utils::tempdir();
chmod 0755, $dir;
$node->safe_psql($db, 'CREATE ROLE alice; CREATE ROLE bob; CREATE SCHEMA shared; GRANT ALL ON SCHEMA shared TO alice, bob;
	CREATE SCHEMA bob AUTHORIZATION bob; CREATE SCHEMA ali AUTHORIZATION alice; GRANT pg_read_server_files TO alice');

# ---- an EXECUTE-only caller sees no rows in messages
$node->safe_psql($db, q(SET ROLE alice; CREATE TABLE ali.src (id int, secret text); INSERT INTO ali.src VALUES (1, 'ok');
	CREATE PROCEDURE shared.p() LANGUAGE pipeline AS $$ CREATE OR REFRESH STREAMING TABLE st
		(CONSTRAINT pos EXPECT (id > 0) ON VIOLATION FAIL UPDATE) AS SELECT id, secret FROM STREAM(ali.src) $$;
	GRANT EXECUTE ON PROCEDURE shared.p TO bob; CALL shared.p(); INSERT INTO ali.src VALUES (-1, 'TOPSECRET')));
my ($rc, $out, $err) = $node->psql($db, 'SET ROLE bob; CALL shared.p()');
isnt($rc, 0, 'the run fails');
unlike($err, qr/TOPSECRET/, 'the caller does not see the row');
like($err, qr/"pos" violated/, 'but what failed');
fails_with($node, $db, 'SET ROLE alice; CALL shared.p()', '23514', qr/TOPSECRET/, 'the owner sees it');

# ---- datasets of somebody else are not written with the pipeline's rights
$node->safe_psql($db, q(CREATE TABLE shared.psrc (id int); INSERT INTO shared.psrc VALUES (1);
	CREATE PROCEDURE shared.pp() LANGUAGE pipeline AS $$ CREATE OR REFRESH STREAMING TABLE pst AS SELECT * FROM STREAM(psrc) $$; CALL shared.pp();
	CREATE FUNCTION bob.whoami(i int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $f$ BEGIN RAISE NOTICE 'ran as %', current_user; RETURN true; END $f$;));
$node->safe_psql($db, 'UPDATE pg_class SET relowner = (SELECT oid FROM pg_roles WHERE rolname = $$bob$$) WHERE oid = $$shared.pst$$::regclass');
$node->safe_psql($db, 'SET ROLE bob; ALTER TABLE shared.pst ADD CHECK (bob.whoami(id))');
$node->safe_psql($db, 'INSERT INTO shared.psrc VALUES (2)');
($rc, $out, $err) = $node->psql($db, 'CALL shared.pp()');
isnt($rc, 0, 'a dataset that belongs to somebody else is refused');
unlike($err, qr/ran as postgres/, 'its code does not run');

# ---- a new owner of a name does not inherit its history
$node->safe_psql($db, q(SET ROLE alice; DROP PROCEDURE shared.p));
$node->safe_psql($db, q(SET ROLE bob; CREATE PROCEDURE shared.p() LANGUAGE pipeline AS $$ CREATE VIEW vv AS SELECT 1 AS a $$; CALL shared.p()));
rows_are($node, $db, q(SET ROLE bob; SELECT count(*) FROM pipeline.event_log('shared.p') l WHERE l::text LIKE '%TOPSECRET%'), ['0'], 'no old events');
rows_are($node, $db, q(SET ROLE bob; SELECT count(*) FROM pipeline.updates WHERE state = 'FAILED'), ['0'], 'no old updates');

# ---- a file batch is gone with its flow
write_file("$dir/a.csv", "id,v\n1,topsecret\n");
chmod 0644, "$dir/a.csv";
$node->safe_psql($db, "SET ROLE alice; CREATE PROCEDURE shared.fp() LANGUAGE pipeline AS \$\$ CREATE OR REFRESH STREAMING TABLE ft AS SELECT * FROM STREAM read_files('$dir', format => 'csv', header => true) \$\$; GRANT EXECUTE ON PROCEDURE shared.fp TO bob");
fails_with($node, $db, 'SET ROLE bob; SET pipeline.messages = quiet; CALL shared.fp(); SELECT * FROM pipeline.read_file_batch(1) AS t(id bigint, v text)',
	'55000', qr/no file batch/, 'read_file_batch after the flow');

# ---- an update inside an update
$node->safe_psql($db, q(CREATE TABLE n1 (id int); INSERT INTO n1 VALUES (1); DO LANGUAGE pipeline $$CREATE STREAMING TABLE inner_st AS SELECT * FROM STREAM(n1)$$;
	CREATE FUNCTION evil(i int) RETURNS int LANGUAGE plpgsql AS $f$ BEGIN EXECUTE 'DO LANGUAGE pipeline $x$REFRESH STREAMING TABLE inner_st$x$'; RETURN i; END $f$));
fails_with($node, $db, 'DO LANGUAGE pipeline $$CREATE STREAMING TABLE outer_st AS SELECT evil(id) AS id FROM STREAM(n1)$$', '55006', qr/inside another update/, 'nested update');
rows_are($node, $db, 'DO LANGUAGE pipeline $$REFRESH STREAMING TABLE inner_st$$; SELECT count(*) FROM inner_st', ['1'], 'later updates are fine');

# ---- a condition is one expression
fails_with($node, $db, q(SELECT pipeline.expect('inner_st', 'x', 'id > 0) OR (true')), '42601', qr/syntax error/, 'a condition cannot close its parentheses');
fails_with($node, $db, q(SELECT pipeline.expect('inner_st', '', 'true')), '22023', qr/needs a name/, 'a rule needs a name');

# ---- system columns of a stream
fails_with($node, $db, 'DO LANGUAGE pipeline $$CREATE STREAMING TABLE sysc AS SELECT ctid::text AS c, id FROM STREAM(n1)$$', '0A000', qr/system columns/, 'system columns');

# ---- DDL of private tables runs as their owner
$node->safe_psql($db, q(SET ROLE alice; CREATE FUNCTION ali.who() RETURNS int VOLATILE LANGUAGE plpgsql AS $f$ BEGIN RAISE NOTICE 'ran as %', current_user; RETURN 1; END $f$;
	CREATE TABLE ali.psrc (id int); INSERT INTO ali.psrc VALUES (1);
	CREATE PROCEDURE ali.pp() LANGUAGE pipeline AS $$ CREATE PRIVATE STREAMING TABLE pt (id int) AS SELECT id FROM STREAM(psrc); CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM pt $$;
	CALL ali.pp()));
my $quiet = '';
$node->psql($db, q(SET ROLE alice; CREATE OR REPLACE PROCEDURE ali.pp() LANGUAGE pipeline AS $$ CREATE PRIVATE STREAMING TABLE pt (id int, d int DEFAULT ali.who()) AS SELECT id FROM STREAM(psrc); CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM pt $$;
	INSERT INTO ali.psrc VALUES (2); CALL ali.pp()), stderr => \$quiet);
unlike($quiet, qr/ran as postgres/, 'a DEFAULT of a private table');
like($quiet, qr/ran as alice/, 'is evaluated as its owner');
rows_are($node, $db, 'SELECT n FROM ali.total', ['2'], 'and the table works');

# ---- an open cursor is not cut short
fails_with($node, $db, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM inner_st; FETCH 1 FROM c; DO LANGUAGE pipeline $$REFRESH STREAMING TABLE inner_st FULL$$',
	'55006', qr/being used by active queries/, 'full refresh under a cursor');

# ---- temporary objects of a caller are no sources
$node->safe_psql($db, q(CREATE PROCEDURE miss() LANGUAGE pipeline AS $$ CREATE MATERIALIZED VIEW over_missing AS SELECT * FROM missing_src $$));
fails_with($node, $db, 'CREATE TEMP VIEW missing_src AS SELECT 1 AS a; CALL miss()', '0A000', qr/temporary/, 'a temporary view');

# ---- row security and rights are looked at although nothing changed
$node->safe_psql($db, q(CREATE TABLE ali.rls (id int); ALTER TABLE ali.rls OWNER TO alice; INSERT INTO ali.rls SELECT generate_series(1, 4);
	SET ROLE alice; ALTER TABLE ali.rls ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON ali.rls USING (id <= 2); GRANT SELECT ON ali.rls TO bob; GRANT USAGE ON SCHEMA ali TO bob; SELECT pipeline.allow_capture('ali.rls', 'bob');
	SET ROLE bob; DO LANGUAGE pipeline $$CREATE MATERIALIZED VIEW bob.seen AS SELECT * FROM ali.rls$$));
rows_are($node, $db, 'SELECT count(*) FROM bob.seen', ['2'], 'a view holds what its owner may see');
$node->safe_psql($db, q(SET ROLE alice; DROP POLICY p ON ali.rls; CREATE POLICY p ON ali.rls USING (true); SET ROLE bob; CALL pipeline.refresh('bob.seen')));
rows_are($node, $db, 'SELECT count(*) FROM bob.seen', ['4'], 'a changed policy is a change');
$node->safe_psql($db, 'SET ROLE alice; REVOKE SELECT ON ali.rls FROM bob');
fails_with($node, $db, q(SET ROLE bob; CALL pipeline.refresh('bob.seen')), '42501', qr/permission denied/, 'a revoked right ends the refresh');

# ---- the extension's own relations are no sources
fails_with($node, $db, "DO LANGUAGE pipeline \$\$CREATE STREAMING TABLE own_$_->[0] AS SELECT * FROM STREAM($_->[1])\$\$", '0A000', qr/part of the extension/, "$_->[1] is no stream")
	for ([ 'h', 'pipeline_internal.log_headers' ], [ 'e', 'pipeline_internal.events' ],
		[ 'l', $node->safe_psql($db, q(SELECT oid::regclass FROM pg_class WHERE relnamespace = 'pipeline_data'::regnamespace AND relname LIKE 'log%' AND relkind = 'r' LIMIT 1)) ]);
$node->safe_psql($db, 'DO LANGUAGE pipeline $$CREATE MATERIALIZED VIEW own_view AS SELECT count(*) AS n FROM pipeline_internal.log_headers$$; INSERT INTO ali.psrc VALUES (3); REFRESH MATERIALIZED VIEW own_view');
rows_are($node, $db, q(SELECT count(*) FROM pg_trigger WHERE tgrelid = 'pipeline_internal.log_headers'::regclass), ['0'], 'a view over them captures nothing');

$node->stop;
done_testing();

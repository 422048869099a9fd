# The monitoring queries of docs/event-log.md, against a pipeline that ran six updates: the
# figures are those of the rows that were put in.
use strict;
use warnings;
use FindBin;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('monitoring');
my $db = fresh_db($node, 'monitoring');
my $landing = PostgreSQL::Test::Utils::tempdir();

# ---- the queries, by number
my %query;
{
	my $document = slurp_file("$FindBin::RealBin/../../docs/event-log.md");
	while ($document =~ /^### (\d+)\. [^\n]*\n(.*?)(?=^### |\z)/msg)
	{
		my ($n, $section) = ($1, $2);
		my @sql;
		while ($section =~ /^```sql\n(.*?)^```/msg) { push @sql, grep { /\S/ } split /;\s*\n/, $1; }
		$query{$n} = \@sql;
	}
}
is(join(',', sort { $a <=> $b } keys %query), join(',', 1 .. 15), 'the document has fifteen queries');

sub answers
{
	my ($n, $expected, $name, $which) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	rows_are($node, $db, $query{$n}[ $which || 0 ], $expected, "$n: $name");
}

# ---- six updates
my $body = q(
	CREATE STREAMING TABLE parcels AS SELECT id, weight FROM STREAM read_files('%s', format => 'json');
	CREATE STREAMING TABLE clean (
		CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW,
		CONSTRAINT light EXPECT (weight <= 30)
	) AS SELECT id, weight, weight / nullif(id, 13) AS q FROM STREAM(parcels);
	CREATE MATERIALIZED VIEW totals (CONSTRAINT not_much EXPECT (total < %d) ON VIOLATION FAIL UPDATE)
		AS SELECT sum(weight) AS total FROM clean;
	CREATE MATERIALIZED VIEW twice AS SELECT 2 * total AS total FROM totals;);
$node->safe_psql($db, 'CREATE SCHEMA shop');

sub define
{
	my ($limit) = @_;
	pipeline($node, $db, 'shop.orders', sprintf($body, $landing, $limit));
}

# 1: four rows of one file, one without id, one heavy
define(1000);
write_file("$landing/1.json", join("\n", map { qq({"id": $_->[0], "weight": $_->[1]}) }
		([ 1, 10 ], [ 2, 40 ], [ 'null', 5 ], [ 3, 1 ])) . "\n");
$node->safe_psql($db, 'CALL shop.orders()');
# 2 and 3: nothing new
$node->safe_psql($db, 'CALL shop.orders()') for 1, 2;
# 4: two more files; the sum is too much
write_file("$landing/2.json", qq({"id": 4, "weight": 990}\n));
write_file("$landing/3.json", qq({"id": 5, "weight": 2}\n{"id": null, "weight": 1}\n));
fails_with($node, $db, 'CALL shop.orders()', '23514', qr/1 dataset FAILED, 1 SKIPPED, 2 COMPLETED/, 'update 4');
my $fourth = $node->safe_psql($db, q(SELECT update_id FROM pipeline.updates ORDER BY started_at DESC LIMIT 1));
$node->safe_psql($db, q(CREATE VIEW event_log_raw AS SELECT * FROM pipeline.event_log('shop.orders')));
answers(1, [$fourth], 'the failed update is the latest');
answers(4, [ 'parcels|COMPLETED|3||t', 'clean|COMPLETED|2|1|t', 'totals|FAILED|||t', 'twice|SKIPPED|||t' ],
	'flows of the failed update');
answers(6, [ 'INITIALIZING|t', 'SETTING_UP_TABLES|t', 'RUNNING|t', 'FAILED|' ], 'phases of the failed update');
my $errors = $node->safe_psql($db, $query{13}[0]);
like($errors, qr/^totals\|23514\|[^\n]*"not_much" violated by 1 of 1 rows[^\n]*1043/, '13: the first failure, with its row');
is(scalar(split /\n/, $errors), 2, '13: the flow and the update');

# 5: repaired, only what failed and what it held up; 6: everything
define(2000);
$node->safe_psql($db, q(CALL pipeline.run_update('shop.orders', failed_only => true)));
write_file("$landing/4.json", qq({"id": 6, "weight": 7}\n));
$node->safe_psql($db, 'CALL shop.orders()');
rows_are($node, $db, 'SELECT total FROM shop.twice', ['2100'], 'all rows once');

# ---- the answers
my @updates = split /\n/, $node->safe_psql($db, 'SELECT update_id FROM pipeline.updates ORDER BY started_at');
is(scalar(@updates), 5, 'two updates that found nothing are one');
answers(1, [ $updates[-1] ], 'the latest update');
answers(2, [ 'clean|has_id|6|2', 'clean|light|6|2', 'totals|not_much|3|0' ], 'totals of expectations');
answers(3, [ 'clean|2|6|0.333', 'parcels|0|8|0.000' ], 'dropped against written');
answers(4, [ 'parcels|COMPLETED|1||t', 'clean|COMPLETED|1|0|t', 'totals|COMPLETED|1|0|t', 'twice|COMPLETED|1||t' ],
	'flows of the latest update');
answers(5, [ '1|COMPLETED|t', '2|COMPLETED|t', '3|FAILED|t', '4|COMPLETED|t', '5|COMPLETED|t' ], 'updates');
answers(6, [ 'INITIALIZING|t', 'SETTING_UP_TABLES|t', 'RUNNING|t', 'COMPLETED|' ], 'phases');
answers(7, [ 'clean|parcels|APPEND', 'parcels||APPEND', 'totals|clean|MATERIALIZED_VIEW',
	'twice|totals|MATERIALIZED_VIEW' ], 'lineage');
like($node->safe_psql($db, $query{8}[0]), qr/^[1-9]\d*\|[1-9]\d*$/, '8: backlog of streaming flows');

# 9: one line per issue; what was chosen for each view in each update
my %chosen;
$chosen{$_}++ for split /\n/, $node->safe_psql($db, $query{9}[0]);
ok($chosen{'totals|MAINTENANCE_TYPE_COMPLETE_RECOMPUTE|CHANGE_SET_MISSING'}, '9: first fill');
is($chosen{"$_|MAINTENANCE_TYPE_NO_OP|"}, 1, "9: $_ was left alone once") for 'totals', 'twice';
ok(scalar(grep { /^twice\|MAINTENANCE_TYPE_COMPLETE_RECOMPUTE\|/ && !/CHANGE_SET_MISSING/ } keys %chosen),
	'9: a later recompute has a reason of its own');
answers(9, [q(Flow 'twice' has been planned to be executed as FULL_RECOMPUTE.)], 'the message', 1);

# 10: the log of one dataset, here of the view that was skipped in the failed update
my $history = $query{10}[0] =~ s/shop\.daily/shop.twice/r;
rows_are($node, $db, $history, [ 'COMPLETED|4', 'FAILED|1', 'INITIALIZING|5', 'RUNNING|5', 'SETTING_UP_TABLES|5' ],
	'10: history of one view');
answers(11, [ 'CREATE|t|1', 'EDIT|t|1', 'START|t|5' ], 'who did what');

my @listings = split /\n/, $node->safe_psql($db, $query{12}[0]);
is(join(',', map { (split /\|/)[2] } @listings), '1,1,3,4', '12: files listed')
	or diag(join("\n", @listings));
answers(14, [ 'has_id|75.0|t', 'light|75.0|t', 'not_much|100.0|f' ], 'service levels');
answers(15, ['3'], 'events with counts of a stream');

# ---- the views say the same without JSON
rows_are($node, $db, q(SELECT dataset, expectation, sum(passed), sum(failed), sum(dropped) FROM pipeline.quality
	GROUP BY 1, 2 ORDER BY 1, 2), [ 'shop.clean|has_id|6|2|2', 'shop.clean|light|6|2|0', 'shop.totals|not_much|3|0|0' ],
	'pipeline.quality');
rows_are($node, $db, q(SELECT state, noop_runs, full_refresh FROM pipeline.updates ORDER BY started_at),
	[ 'COMPLETED|0|f', 'COMPLETED|2|f', 'FAILED|0|f', 'COMPLETED|0|f', 'COMPLETED|0|f' ], 'pipeline.updates');

# ---- each event: one key that is its type, names, order
rows_are($node, $db, q(SELECT count(*) FROM event_log_raw
	WHERE (SELECT array_agg(k) FROM jsonb_object_keys(details) k) <> ARRAY[event_type]), ['0'],
	'details have one key, the type');
rows_are($node, $db, q(SELECT count(*) FILTER (WHERE origin->>'pipeline_name' <> 'shop.orders'),
	count(*) FILTER (WHERE origin->>'pipeline_id' <> (SELECT pipeline_id::text FROM pipeline.pipelines)),
	count(*) - count(DISTINCT id), count(*) - count(DISTINCT sequence)
	FROM event_log_raw), ['0|0|0|0'], 'origin, ids and sequence');
rows_are($node, $db, q(SELECT DISTINCT origin->>'dataset_name' FROM event_log_raw WHERE event_type = 'flow_progress' ORDER BY 1),
	[ map { "monitoring.shop.$_" } qw(clean parcels totals twice) ], 'names have three parts');

$node->stop;
done_testing();

# The acceptance pipeline: three layers, files, parameters, guard view, temporary view.
use strict;
use warnings;
use File::Copy;
use FindBin;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('parcels');
my $db = fresh_db($node, 'parcels');
my $data = "$FindBin::RealBin/../data/parcels";
my $landing = PostgreSQL::Test::Utils::tempdir();
my $body = PostgreSQL::Test::Utils::slurp_file("$data/pipeline.sql");

copy($_, $landing) or die for glob("$data/landing/day1/*");
$node->safe_psql($db, q(CREATE SCHEMA sales;
	CREATE TABLE sales.depots (depot_id int, region text);
	INSERT INTO sales.depots VALUES (1,'north'),(2,'south');));
$node->safe_psql($db, "CREATE PROCEDURE sales.parcels(landing text DEFAULT '$landing') LANGUAGE pipeline AS \$body\$ $body \$body\$");

sub check_counts
{
	my ($update, $rule) = @_;
	return $node->safe_psql($db, qq(
		SELECT (e->>'passed_records') || '/' || (e->>'failed_records')
		FROM pipeline.event_log('sales.parcels') l,
			jsonb_array_elements(l.details #> '{flow_progress,data_quality,expectations}') e
		WHERE l.origin->>'update_id' = '$update' AND e->>'name' = '$rule'));
}

sub run_update
{
	$node->safe_psql($db, 'CALL sales.parcels()');
	return $node->safe_psql($db, 'SELECT update_id FROM pipeline.updates ORDER BY started_at DESC LIMIT 1');
}

my $gold = 'SELECT scan_day, region, scans, parcels, total_weight, round(avg_weight, 4) FROM sales.gold_daily_throughput ORDER BY 1, 2';
my $heavy = 'SELECT parcel_id, weight_kg, region FROM sales.heavy_parcels ORDER BY 1, 2, 3';
my $sizes = 'SELECT (SELECT count(*) FROM sales.bronze_scans), (SELECT count(*) FROM sales.silver_scans)';
my @day1 = ('2026-03-01|north|3|3|2.25|0.7500', '2026-03-01|south|2|2|1202.50|601.2500', '2026-03-02|south|2|2|10.85|5.4250');

# run 1
my $update = run_update();
rows_are($node, $db, $sizes, ['9|8'], 'run 1: bronze and silver');
is(check_counts($update, 'has_scan_id'), '8/1', 'run 1: has_scan_id');
is(check_counts($update, 'plausible_weight'), '6/3', 'run 1: plausible_weight');
rows_are($node, $db, qq(SELECT sum((details #>> '{flow_progress,data_quality,dropped_records}')::int)
	FROM pipeline.event_log('sales.silver_scans') WHERE origin->>'update_id' = '$update'), ['1'], 'run 1: dropped');
rows_are($node, $db, $heavy, ['P-102|1200.00|south', 'P-106|10.10|south'], 'run 1: heavy parcels');
rows_are($node, $db, $gold, \@day1, 'run 1: gold');
rows_are($node, $db, 'SELECT * FROM sales.depot_key_check ORDER BY 1', ['1|1', '2|1'], 'run 1: guard');
rows_are($node, $db, q(SELECT source_file, count(*) FROM sales.silver_scans GROUP BY 1 ORDER BY 1),
	['scans_0001.json|5', 'scans_0002.json|3'], 'source file of each silver row');

# run 2: nothing new
$update = run_update();
rows_are($node, $db, $sizes, ['9|8'], 'run 2: nothing read again');
is(check_counts($update, 'has_scan_id'), '', 'run 2: no new counts');
rows_are($node, $db, $gold, \@day1, 'run 2: gold');
rows_are($node, $db, qq(SELECT origin->>'dataset_name' ~ 'gold_daily_throughput|depot_key_check', message ~ 'NO_OP', count(*)
	FROM pipeline.event_log('sales.parcels') WHERE event_type = 'planning_information' AND origin->>'update_id' = '$update' GROUP BY 1, 2),
	['t|t|2'], 'run 2: views are NO_OP');

# run 3: day 2 arrives
copy($_, $landing) or die for glob("$data/landing/day2/*");
$update = run_update();
rows_are($node, $db, $sizes, ['12|10'], 'run 3: bronze and silver');
is(check_counts($update, 'has_scan_id'), '2/1', 'run 3: has_scan_id');
is(check_counts($update, 'plausible_weight'), '3/0', 'run 3: plausible_weight');
rows_are($node, $db, $heavy, ['P-102|1200.00|south', 'P-106|10.10|north', 'P-106|10.10|south'], 'run 3: heavy parcels');
my @day2 = (@day1[0, 1], '2026-03-02|north|1|1|10.10|10.1000', '2026-03-02|south|3|3|14.18|4.7267');
rows_are($node, $db, $gold, \@day2, 'run 3: gold');

# run 4: a dimension changes
$node->safe_psql($db, q(UPDATE sales.depots SET region = 'centre' WHERE depot_id = 2));
$update = run_update();
rows_are($node, $db, $sizes, ['12|10'], 'run 4: streams unchanged');
rows_are($node, $db, $heavy, ['P-102|1200.00|south', 'P-106|10.10|north', 'P-106|10.10|south'], 'run 4: old rows keep south');
rows_are($node, $db, $gold, [ sort map { s/south/centre/r } @day2 ], 'run 4: gold follows');
rows_are($node, $db, qq(SELECT count(*) FROM pipeline.event_log('sales.gold_daily_throughput')
	WHERE event_type = 'planning_information' AND origin->>'update_id' = '$update'), ['1'], 'run 4: the technique is named');

# the guard
$node->safe_psql($db, q(INSERT INTO sales.depots VALUES (2,'x')));
fails_with($node, $db, 'CALL sales.parcels()', '23514', qr/one_row_per_depot/, 'guard');
rows_are($node, $db, 'SELECT * FROM sales.depot_key_check ORDER BY 1', ['1|1', '2|1'], 'the guard keeps its old rows');
rows_are($node, $db, q(SELECT sum(scans) FROM sales.gold_daily_throughput WHERE region IN ('centre', 'x')), ['10'],
	'the others are brought up to date');
rows_are($node, $db, 'SELECT state FROM pipeline.updates ORDER BY started_at DESC LIMIT 1', ['FAILED'], 'update FAILED');

rows_are($node, $db, q(SELECT count(*) FROM pg_class WHERE relname = 'heavy_scans'), ['0'], 'heavy_scans is in no catalog');
rows_are($node, $db, q(SELECT relkind FROM pg_class WHERE relname = 'scans_for_bi'), ['v'], 'scans_for_bi is a view');

$node->stop;
done_testing();

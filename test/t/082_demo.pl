# The demo: its files run as scripts/demo.sh runs them, and show what they promise.
use strict;
use warnings;
use FindBin;
use File::Path qw(make_path);
use File::Copy;
use IPC::Run;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $source = "$FindBin::RealBin/../../demo";
my $demo = PostgreSQL::Test::Utils::tempdir();
for my $from (glob("$source/data/*/*/*"))
{
	my ($dir, $name) = $from =~ m{\Q$source\E/(.*)/([^/]+)$} or die $from;
	make_path("$demo/$dir");
	copy($from, "$demo/$dir/$name") or die "$from: $!";
}

my $node = pipeline_node('demo', extension => 0,
	conf => "pipeline.allowed_locations = '$demo/'\n");
my $db = fresh_db($node, 'demo');
my %said;

for my $file (sort glob("$source/*.sql"))
{
	my ($name) = $file =~ m{([^/]+)\.sql$};
	my ($out, $err) = ('', '');
	my $ok = IPC::Run::run([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-v', "demo_dir=$demo",
			'--echo-queries', '-d', $node->connstr($db), '-f', $file ], '<', \'', '>', \$out, '2>', \$err);
	ok($ok, "$name ends well") or diag($err);
	unlike($err, qr/ERROR|WARNING/, "$name complains about nothing");
	$said{$name} = $err;
}

# only new files are read
like($said{'02_first_day'}, qr/bronze_orders +COMPLETED +74 rows  2 files /, 'first day: two files of orders');
like($said{'04_second_day'}, qr/bronze_orders +COMPLETED +42 rows  1 file /, 'second day: one');
like($said{'04_second_day'}, qr/update \w+ COMPLETED, nothing new,/, 'then nothing');
rows_are($node, $db, q(SELECT source_file, count(*) FROM shop.bronze_orders GROUP BY 1 ORDER BY 1),
	['orders_2026-03-01_a.json|40', 'orders_2026-03-01_b.json|34', 'orders_2026-03-02_a.json|42'],
	'every line of every file once');

# what the rules did; the figures are counted in the files
rows_are($node, $db, q(SELECT expectation, action, sum(passed), sum(failed) FROM pipeline.quality
	WHERE dataset = 'shop.silver_orders' GROUP BY 1, 2 ORDER BY 1), [
	'has_order_id|DROP|113|3', 'has_price|DROP|114|2', 'known_currency|WARN|113|3',
	'positive_quantity|QUARANTINE|111|5' ], 'counts of 116 orders, those of a replay apart');
rows_are($node, $db, q(SELECT count(*), count(_replayed_at) FROM shop.silver_orders_quarantine), ['5|1'], 'quarantine');
rows_are($node, $db, 'SELECT count(*), count(DISTINCT order_id) FROM shop.silver_orders', ['109|109'], 'silver orders');

# gold equals its query
rows_are($node, $db, q(WITH customers AS (
		SELECT DISTINCT ON (customer_id) customer_id, country FROM shop.bronze_customers
		ORDER BY customer_id, updated_at DESC),
	fresh AS (SELECT o.ordered_at::date AS day, c.country, count(*) AS orders, sum(o.amount) AS revenue
		FROM shop.silver_orders o JOIN customers c USING (customer_id) GROUP BY 1, 2)
	SELECT (SELECT count(*) FROM (SELECT * FROM fresh EXCEPT ALL SELECT * FROM shop.gold_daily_revenue) a),
		(SELECT count(*) FROM (SELECT * FROM shop.gold_daily_revenue EXCEPT ALL SELECT * FROM fresh) b),
		(SELECT count(*) FROM fresh)), ['0|0|12'], 'gold follows new orders and the customers who moved');
rows_are($node, $db, q(SELECT count(*) FROM pipeline.problems), ['0'], 'no problem is left');

$node->stop;
done_testing();

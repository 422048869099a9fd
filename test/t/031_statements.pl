# Every statement form that the dialect must take, one by one as a user types it: it works, and
# what it makes is looked at, or it is refused with 0A000 and the cursor on the clause.
use strict;
use warnings;
use FindBin;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('statements');
# Three-part names in the file have this database's name.
my $db = 'postgres';
my $landing = PostgreSQL::Test::Utils::tempdir();

mkdir "$landing/$_" or die for qw(scans csv);
write_file("$landing/scans/a.json", qq({"scan_id": 1, "site": "n"}\n{"scan_id": 2, "site": "s"}\n));
write_file("$landing/csv/a.csv", "id,v\n1,a\n2,b\n3,\n");
$node->safe_psql($db, q(
	CREATE ROLE analyst;
	CREATE SCHEMA bronze; CREATE SCHEMA silver; CREATE SCHEMA gold;
	CREATE TABLE silver.parcels (parcel_id text, depot_id int, weight_kg numeric(10,2), status text, seen_at timestamptz);
	CREATE TABLE silver.customers (customer_id text, name text, tier text);
	CREATE TABLE silver.depots (depot_id int, region text);
	CREATE TABLE silver.scans (scan_id bigint, parcel_id text, depot_id int, weight_kg numeric(10,2), scanned_at timestamptz);
	CREATE TABLE bronze.orders (order_id int, quantity int, unit_price numeric(8,2), op text, order_date timestamptz);
	CREATE TABLE bronze.scans_north (scan_id bigint, site text);
	CREATE TABLE bronze.scans_south (LIKE bronze.scans_north);
	CREATE TABLE bronze.scans_archive (LIKE bronze.scans_north);
	CREATE TABLE customer_feed (id int, name text, phone text, ts timestamptz);
	INSERT INTO silver.parcels VALUES ('P1', 1, 10, 'ok', '2026-01-01'), ('P1', 1, 12, 'ok', '2026-01-02'), ('P2', 2, 40, 'late', '2026-01-03');
	INSERT INTO silver.customers VALUES ('c1', 'Ann', 'gold'), ('c2', 'Bob', NULL);
	INSERT INTO silver.depots VALUES (1, 'north'), (2, 'south');
	INSERT INTO silver.scans VALUES (1, 'P1', 1, 10, '2026-01-02'), (2, 'P2', 2, 2000, '2026-01-03'), (NULL, 'P3', 2, 4, '2025-01-03');
	INSERT INTO bronze.orders VALUES (1, 2, 3.5, 'I', '2026-01-01'), (NULL, 1, 1, 'I', '2026-01-01');
	INSERT INTO bronze.scans_north VALUES (1, 'n');
	INSERT INTO bronze.scans_south VALUES (2, 's');
	INSERT INTO bronze.scans_archive VALUES (3, 'a');
	INSERT INTO customer_feed VALUES (1, 'a', '1', '2026-01-01');));

# The statements; one of the pipeline section carries $in_pipeline{text}.
my $text = slurp_file("$FindBin::RealBin/../data/statements.sql");
my %in_pipeline;
$text =~ s{'/landing/}{'$landing/}g;
my ($outside, $inside) = split /^-- P: .*\n/m, $text;
my @statements;
for my $part ($outside, $inside)
{
	(my $bare = $part) =~ s/--[^\n]*//g;
	for my $statement (split /;\s*(?:\n|\z)/, $bare)
	{
		$statement =~ s/^\s+//;
		next if $statement eq '';
		push @statements, $statement;
		$in_pipeline{$statement} = 1 if $part eq $inside && $statement !~ /^DROP/;
	}
}

# What each must come to, in the order of the file: its first words; then either a query with its
# answer, or "0A000" with the name of the clause in the message and the text under the cursor.
# "before" runs first, where an earlier statement that is refused would have made the object.
my $strict = q(DO LANGUAGE pipeline $$CREATE MATERIALIZED VIEW IF NOT EXISTS gold.strict AS
	SELECT depot_id, max(weight_kg) AS heaviest FROM silver.parcels GROUP BY depot_id$$);
my @outcomes = (
	['CREATE VIEW gold.parcels_for_bi', q(SELECT sum(gross_weight) FROM gold.parcels_for_bi), '62.00'],
	['CREATE VIEW postgres.gold.heavy', q(SELECT parcel_id FROM gold.heavy), 'P2'],
	['CREATE TABLE gold.dim_customer', q(SELECT string_agg(format_type(atttypid, atttypmod) || attidentity::text, ',' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'gold.dim_customer'::regclass AND attnum > 0), 'biginta,text,text,text'],
	['MERGE INTO gold.dim_customer', q(SELECT customer_sk, customer_id, name, tier FROM gold.dim_customer ORDER BY 1), "1|c1|Ann|gold\n2|c2|Bob|"],
	['ALTER TABLE silver.parcels ADD CONSTRAINT', q(SELECT convalidated FROM pg_constraint WHERE conname = 'weight_not_negative'), 't'],
	['ALTER TABLE silver.parcels ALTER COLUMN', q(SELECT attnotnull FROM pg_attribute WHERE attrelid = 'silver.parcels'::regclass AND attname = 'parcel_id'), 't'],
	['CREATE MATERIALIZED VIEW gold.weight_by_region SCHEDULE', '0A000', 'SCHEDULE', 'SCHEDULE'],
	['CREATE OR REPLACE MATERIALIZED VIEW gold.by_status SCHEDULE CRON', '0A000', 'SCHEDULE', 'SCHEDULE'],
	['CREATE MATERIALIZED VIEW gold.latest TRIGGER', '0A000', 'TRIGGER ON UPDATE', 'TRIGGER'],
	['CREATE MATERIALIZED VIEW gold.strict REFRESH POLICY', '0A000', 'REFRESH POLICY INCREMENTAL', 'INCREMENTAL STRICT|REFRESH POLICY'],
	['EXPLAIN CREATE MATERIALIZED VIEW gold.maybe', '0A000', 'EXPLAIN CREATE MATERIALIZED VIEW', 'EXPLAIN'],
	['ALTER MATERIALIZED VIEW gold.strict ADD SCHEDULE', '0A000', 'SCHEDULE', 'ADD SCHEDULE|SCHEDULE', before => $strict],
	['ALTER MATERIALIZED VIEW gold.strict ALTER TRIGGER', '0A000', 'TRIGGER ON UPDATE', 'ALTER TRIGGER|TRIGGER'],
	['ALTER MATERIALIZED VIEW gold.strict DROP SCHEDULE', '0A000', 'SCHEDULE', 'DROP SCHEDULE|SCHEDULE'],
	['REFRESH MATERIALIZED VIEW gold.strict', q(SELECT * FROM gold.strict ORDER BY 1), "1|13.00\n2|40.00",
		before => q(UPDATE silver.parcels SET weight_kg = 13 WHERE weight_kg = 12)],
	['REFRESH MATERIALIZED VIEW gold.strict FULL', q(SELECT state, full_refresh FROM pipeline.updates ORDER BY started_at DESC LIMIT 1), 'COMPLETED|t'],
	['GRANT REFRESH ON', '0A000', 'GRANT REFRESH', 'GRANT|REFRESH'],
	['REVOKE REFRESH ON', '0A000', 'REFRESH', 'REVOKE|REFRESH'],
	['DESCRIBE EXTENDED gold.strict', q(SELECT count(*) > 10 FROM pipeline.describe('gold.strict')), 't'],
	['CREATE STREAMING TABLE gold.scans_by_site', q(SELECT parcel_id, region FROM gold.scans_by_site ORDER BY 1), "P1|north\nP2|south\nP3|south"],
	['CREATE OR REFRESH STREAMING TABLE silver.clean', q(SELECT scan_id, parcel_id FROM silver.clean ORDER BY 1), "1|P1\n2|P2"],
	['CREATE OR REFRESH STREAMING TABLE silver.tolerant', q(SELECT count(*) FROM silver.tolerant), '3'],
	['CREATE OR REFRESH STREAMING TABLE bronze.old_style', q(SELECT scan_id, site FROM bronze.old_style ORDER BY 1), "1|n\n2|s"],
	['CREATE OR REFRESH STREAMING TABLE bronze.csv_scans', q(SELECT id, v, src_file ~ '/csv/a.csv$' FROM bronze.csv_scans ORDER BY 1), "1|a|t\n2|b|t\n3||t"],
	# An update of old rows and a row in one transaction is skipped as a whole, a row by itself is not.
	['REFRESH STREAMING TABLE silver.tolerant', q(SELECT scan_id, parcel_id FROM silver.tolerant ORDER BY 1 NULLS FIRST), "|P3\n1|P1\n2|P2\n5|P5",
		before => q(BEGIN; UPDATE silver.scans SET depot_id = 1 WHERE scan_id = 2; INSERT INTO silver.scans (scan_id, parcel_id) VALUES (4, 'P4'); COMMIT;
			INSERT INTO silver.scans (scan_id, parcel_id) VALUES (5, 'P5'))],
	['REFRESH STREAMING TABLE silver.tolerant FULL', q(SELECT count(*), max(depot_id) FROM silver.tolerant), '5|2'],
	# in a pipeline
	['CREATE TEMPORARY VIEW recent', q(SELECT parcel_id FROM probe ORDER BY 1), "P1\nP2",
		with => 'CREATE MATERIALIZED VIEW probe AS SELECT parcel_id FROM recent'],
	['CREATE TEMPORARY VIEW orders_cleaned', q(SELECT count(*), sum(order_total) FROM probe), '2|8.00',
		with => 'CREATE STREAMING TABLE probe AS SELECT * FROM STREAM(orders_cleaned)'],
	['CREATE OR REFRESH STREAMING TABLE all_scans', '0A000', 'CREATE FLOW', 'CREATE FLOW',
		with => 'CREATE FLOW from_north AS INSERT INTO all_scans BY NAME SELECT * FROM STREAM(bronze.scans_north)'],
	['CREATE FLOW from_north', '0A000', 'CREATE FLOW', 'CREATE FLOW', with => 'CREATE OR REFRESH STREAMING TABLE all_scans'],
	['CREATE FLOW from_south', '0A000', 'CREATE FLOW', 'CREATE FLOW', with => 'CREATE OR REFRESH STREAMING TABLE all_scans'],
	['CREATE FLOW history', '0A000', 'INSERT ONCE|CREATE FLOW', 'CREATE FLOW|ONCE|INSERT', with => 'CREATE OR REFRESH STREAMING TABLE all_scans'],
	['CREATE OR REFRESH STREAMING TABLE orders_current', '0A000', 'AUTO CDC', 'AUTO CDC|CREATE FLOW',
		with => 'CREATE FLOW f AS AUTO CDC INTO orders_current FROM STREAM(bronze.orders) KEYS (order_id) SEQUENCE BY order_date'],
	['CREATE FLOW orders_cdc', '0A000', 'AUTO CDC', 'AUTO CDC|CREATE FLOW',
		with => 'CREATE STREAMING TABLE orders_current; CREATE TEMPORARY VIEW orders_cleaned AS SELECT * FROM STREAM(bronze.orders)'],
	['CREATE OR REFRESH STREAMING TABLE customers_history', '0A000', 'AUTO CDC', 'AUTO CDC',
		with => 'AUTO CDC INTO customers_history FROM STREAM(customer_feed) KEYS (id) SEQUENCE BY ts'],
	['APPLY CHANGES INTO LIVE.customers_history', '0A000', 'AUTO CDC|APPLY CHANGES', 'APPLY CHANGES',
		with => 'CREATE STREAMING TABLE customers_history'],
	['DROP MATERIALIZED VIEW IF EXISTS gold.not_there', q(SELECT to_regclass('gold.not_there') IS NULL), 't']);

is(scalar @statements, scalar @outcomes, 'one outcome for each statement of the file');
for my $statement (@statements)
{
	my ($start, $outcome, $answer, $cursor, %opt);
	my @entry = @{ shift @outcomes };
	my ($out, $err, $sql);

	($start, $outcome, $answer) = splice @entry, 0, 3;
	$cursor = shift @entry if $outcome eq '0A000';
	%opt = @entry;
	is(substr($statement, 0, length $start), $start, "statement $start") or last;
	$node->safe_psql($db, $opt{before}) if $opt{before};
	if ($in_pipeline{$statement})
	{
		my $order = $opt{with} =~ /^CREATE (?:STREAMING|OR|TEMP)/ ? "$opt{with}; $statement;" : "$statement; $opt{with};";
		$sql = "CREATE OR REPLACE PROCEDURE probe_it() LANGUAGE pipeline AS \$\$ $order \$\$; CALL probe_it()";
	}
	else
	{
		$sql = "DO LANGUAGE pipeline \$\$ $statement; \$\$";
	}
	my $rc = $node->psql($db, "\\set VERBOSITY verbose\n$sql", stdout => \$out, stderr => \$err, on_error_stop => 1);
	if ($outcome eq '0A000')
	{
		like($err, qr/ERROR:  0A000: [^\n]*(?:$answer)/, "$start: refused by the name of the clause");
		cursor_is($err, [split /\|/, $cursor], "$start: cursor on the clause");
	}
	else
	{
		is($rc, 0, "$start: works") or diag($err);
		is($node->safe_psql($db, $outcome), $answer, "$start: result");
	}
	$node->safe_psql($db, 'DROP PROCEDURE IF EXISTS probe_it; DROP TABLE IF EXISTS all_scans, orders_current, customers_history;
		DO $$BEGIN EXECUTE (SELECT format($f$DROP %s probe$f$, CASE relkind WHEN $f$m$f$ THEN $f$MATERIALIZED VIEW$f$ ELSE $f$TABLE$f$ END)
			FROM pg_class WHERE relname = $f$probe$f$ AND relkind IN ($f$m$f$, $f$r$f$)); EXCEPTION WHEN null_value_not_allowed THEN NULL; END$$')
		if $in_pipeline{$statement};
}

# The counts of what was made.
counts_are($node, $db, 'silver.clean', 'has_id', '2|1', 'DROP ROW');
counts_are($node, $db, 'silver.clean', 'sane_weight', '2|1', 'warn');
counts_are($node, $db, 'silver.clean', 'known_depot', '3|0', 'FAIL UPDATE that holds');
rows_are($node, $db, q(SELECT comment, properties->>'quality' FROM pipeline.datasets WHERE dataset = 'silver.clean'),
	['clean scans|silver'], 'COMMENT and TBLPROPERTIES in double quotes');

# The outside part that works, as one block: the order and the one transaction do no harm.
my $rest = join(";\n", grep { !$in_pipeline{$_} && /^(?:CREATE OR REFRESH STREAMING TABLE silver.tolerant|REFRESH STREAMING|DROP|DESCRIBE)/ } @statements);
$node->safe_psql($db, "DO LANGUAGE pipeline \$\$\n$rest;\n\$\$");
rows_are($node, $db, 'SELECT count(*) FROM silver.tolerant', ['5'], 'several statements in one DO');

# Grants name the kind of object as Databricks does; IF NOT EXISTS keeps the view that is there.
$node->safe_psql($db, q(DO LANGUAGE pipeline $$CREATE VIEW gold.plain AS SELECT 1 AS n; CREATE VIEW IF NOT EXISTS gold.plain AS SELECT 2 AS m;
	GRANT SELECT ON MATERIALIZED VIEW gold.strict TO analyst; GRANT SELECT ON STREAMING TABLE silver.tolerant TO analyst;
	GRANT SELECT, INSERT ON VIEW gold.plain TO analyst; REVOKE INSERT ON VIEW gold.plain FROM analyst$$));
rows_are($node, $db, q(SELECT n FROM gold.plain), ['1'], 'CREATE VIEW IF NOT EXISTS of a view that exists');
rows_are($node, $db, q(SELECT has_table_privilege('analyst', 'gold.strict', 'SELECT'), has_table_privilege('analyst', 'silver.tolerant', 'SELECT'),
	has_table_privilege('analyst', 'gold.plain', 'SELECT'), has_table_privilege('analyst', 'gold.plain', 'INSERT')), ['t|t|t|f'], 'GRANT and REVOKE');

# ---- the three doors: what people bring from elsewhere, pasted
$db = fresh_db($node, 'doors');
$node->safe_psql($db, q(
	CREATE TABLE raw_orders (order_id text, customer_id text, ts text, amount text, status text, payload text);
	CREATE TABLE customers (customer_id text, name text, region text);
	INSERT INTO raw_orders VALUES
		('o1', 'c1', '2026-01-01 10:00:00', '10.50', 'new', '{"items": [{"sku": "a", "qty": 2}], "addr": {"city": "Köln"}}'),
		('o2', 'c2', '2026-01-02 11:30:00', 'abc', 'paid', '{}'),
		(NULL, 'c3', '2026-01-03', '-5', 'new', NULL),
		('o1', 'c1', '2026-01-05 10:00:00', '12.50', ' paid', '{"items": [], "addr": {"city": "Ulm"}}');
	INSERT INTO customers VALUES ('c1', 'Ann', 'EU'), ('c2', 'Bob', 'US');));

# a pipeline with old and new spellings, in an order that is not that of execution
$node->safe_psql($db, q(CREATE PROCEDURE medallion() LANGUAGE pipeline AS $body$
CREATE OR REFRESH LIVE TABLE daily_revenue COMMENT "Revenue" AS
SELECT date(order_ts) AS day, c.region, sum(amount) AS revenue, count(DISTINCT order_id) AS orders
FROM LIVE.silver_orders o LEFT JOIN customers c USING (customer_id) GROUP BY date(order_ts), c.region;

CREATE OR REFRESH STREAMING TABLE silver_orders (
	CONSTRAINT valid_order_id EXPECT (order_id IS NOT NULL) ON VIOLATION DROP ROW,
	CONSTRAINT valid_amount EXPECT (amount > 0),
	CONSTRAINT `valid status` EXPECT (status IN ('NEW', 'PAID'))
) COMMENT 'Cleaned orders' TBLPROPERTIES ('quality' = 'silver')
AS SELECT order_id, customer_id, TRY_CAST(amount AS DECIMAL(12,2)) AS amount, CAST(ts AS TIMESTAMP) AS order_ts,
	upper(trim(status)) AS status, payload:addr.city AS city, current_timestamp() AS processed_at
FROM STREAM(LIVE.raw_orders);

CREATE MATERIALIZED VIEW latest_orders AS
SELECT * FROM silver_orders QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY order_ts DESC) = 1;

CREATE TEMPORARY LIVE VIEW flagged AS
SELECT *, CASE WHEN amount IS NULL THEN 'no amount' WHEN amount <= 0 THEN 'not positive' END AS error_reason FROM LIVE.silver_orders;
CREATE LIVE TABLE rejected AS SELECT * FROM LIVE.flagged WHERE error_reason IS NOT NULL;

CREATE LIVE TABLE row_counts (CONSTRAINT same EXPECT (a == b) ON VIOLATION FAIL UPDATE) AS
SELECT * FROM (SELECT count(*) AS a FROM silver_orders) x CROSS JOIN (SELECT count(*) AS b FROM raw_orders WHERE order_id IS NOT NULL) y;
CREATE MATERIALIZED VIEW missing_customers (CONSTRAINT found EXPECT (r_key IS NOT NULL)) AS
SELECT o.order_id, c.customer_id AS r_key FROM silver_orders o LEFT JOIN customers c ON c.customer_id = o.customer_id;
CREATE MATERIALIZED VIEW in_range (CONSTRAINT range EXPECT (amount BETWEEN lo AND hi) ON VIOLATION DROP ROW) AS
SELECT o.order_id, o.amount, b.lo, b.hi FROM silver_orders o
CROSS JOIN (SELECT avg(amount) - 3 * stddev(amount) AS lo, avg(amount) + 3 * stddev(amount) AS hi FROM silver_orders) b;
CREATE STREAMING LIVE TABLE bronze_copy AS SELECT *, 'src' AS origin FROM STREAM(raw_orders);
CREATE VIEW orders_for_bi AS SELECT order_id, amount, city FROM silver_orders;
$body$; CALL medallion()));
rows_are($node, $db, 'SELECT order_id, amount, order_ts, status, city FROM silver_orders ORDER BY order_ts',
	['o1|10.50|2026-01-01 10:00:00|NEW|Köln', 'o2||2026-01-02 11:30:00|PAID|', 'o1|12.50|2026-01-05 10:00:00|PAID|Ulm'], 'procedure: silver');
rows_are($node, $db, 'SELECT * FROM daily_revenue ORDER BY 1', ['2026-01-01|EU|10.50|1', '2026-01-02|US||1', '2026-01-05|EU|12.50|1'], 'procedure: gold');
rows_are($node, $db, 'SELECT order_id, amount FROM latest_orders ORDER BY 1', ['o1|12.50', 'o2|'], 'procedure: QUALIFY');
rows_are($node, $db, 'SELECT order_id, error_reason FROM rejected', ['o2|no amount'], 'procedure: flag and reason');
rows_are($node, $db, 'SELECT * FROM row_counts', ['3|3'], 'procedure: counts of two layers');
rows_are($node, $db, 'SELECT order_id, amount FROM in_range ORDER BY 2', ['o1|10.50', 'o1|12.50'], 'procedure: range from history');
rows_are($node, $db, 'SELECT count(*) FROM orders_for_bi', ['3'], 'procedure: published view');
rows_are($node, $db, q(SELECT dataset, expectation, action, passed, failed FROM pipeline.quality ORDER BY 1, 2),
	['public.in_range|range|DROP|2|1', 'public.missing_customers|found|WARN|3|0', 'public.row_counts|same|FAIL|1|0',
		'public.silver_orders|valid status|WARN|4|0', 'public.silver_orders|valid_amount|WARN|2|2', 'public.silver_orders|valid_order_id|DROP|3|1'],
	'procedure: each rule is counted');
$node->safe_psql($db, q(INSERT INTO raw_orders VALUES ('o9', 'c9', '2026-02-01', '7', 'VOID', NULL); CALL medallion()));
rows_are($node, $db, 'SELECT (SELECT count(*) FROM silver_orders), (SELECT count(*) FROM bronze_copy), (SELECT a FROM row_counts)',
	['4|5|4'], 'procedure: the next update reads what is new');

# DO: one statement after the other, as in a notebook
$node->safe_psql($db, 'DO LANGUAGE pipeline $$' . q(
CREATE OR REFRESH STREAMING TABLE flagged_orders AS
SELECT *, NOT (coalesce(TRY_CAST(amount AS DOUBLE) > 0, false) AND coalesce(order_id IS NOT NULL, false)) AS is_quarantined FROM STREAM(raw_orders);
CREATE VIEW valid_orders AS SELECT * FROM flagged_orders WHERE is_quarantined = false;
CREATE VIEW invalid_orders AS SELECT * FROM flagged_orders WHERE is_quarantined;
CREATE OR REPLACE TABLE by_region AS SELECT region, count(*) AS n FROM customers GROUP BY ALL;
INSERT INTO TABLE by_region VALUES ('ASIA', 0);
CREATE MATERIALIZED VIEW keys (CONSTRAINT one EXPECT (n == 1) ON VIOLATION FAIL UPDATE) AS SELECT customer_id, count(*) AS n FROM customers GROUP BY customer_id;
) . '$$');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM valid_orders), (SELECT count(*) FROM invalid_orders), (SELECT count(*) FROM by_region)',
	['3|2|3'], 'DO: flag and split, managed table');
$node->safe_psql($db, q(INSERT INTO customers VALUES ('c1', 'Ann again', 'EU')));
fails_with($node, $db, 'DO LANGUAGE pipeline $$REFRESH MATERIALIZED VIEW keys$$', '23514', qr/"one" violated by 1 of 2 rows/, 'DO: uniqueness');
$node->safe_psql($db, q(DELETE FROM customers WHERE name = 'Ann again'));

# native statements, and functions
$node->safe_psql($db, q(CREATE MATERIALIZED VIEW per_region WITH (pipeline.refresh_policy = 'auto') AS SELECT region, count(*) AS n FROM customers GROUP BY region;
	INSERT INTO customers VALUES ('c7', 'Zoe', 'EU');
	REFRESH MATERIALIZED VIEW per_region;));
rows_are($node, $db, 'SELECT * FROM per_region ORDER BY 1', ['EU|2', 'US|1'], 'native: CREATE and REFRESH');
$node->safe_psql($db, q(
	SELECT pipeline.expect_or_drop('silver_orders', 'has_customer', 'customer_id IS NOT NULL');
	SELECT pipeline.expect_all('silver_orders', '{"cheap": "amount < 1000", "recent": "order_ts > date ''2020-01-01''"}');
	INSERT INTO raw_orders VALUES ('o10', NULL, '2026-03-01', '5', 'new', NULL), ('o11', 'c1', '2026-03-01', '5000', 'new', NULL);
	CALL pipeline.run_update('medallion', '{silver_orders}');));
rows_are($node, $db, q(SELECT order_id FROM silver_orders WHERE order_ts >= '2026-03-01'), ['o11'], 'functions: a rule that drops');
rows_are($node, $db, q(SELECT expectation, passed, failed FROM pipeline.quality WHERE expectation IN ('has_customer', 'cheap', 'recent') ORDER BY 1),
	['cheap|1|1', 'has_customer|1|1', 'recent|2|0'], 'functions: counts');
rows_are($node, $db, q(SELECT passed, failed FROM pipeline.try_expectation('silver_orders', 'amount > 11')), ['2|3'], 'functions: a rule tried on what is there');

# ---- forms whose effect is easily half right
$db = fresh_db($node, 'effects');
$node->safe_psql($db, q(CREATE TABLE x (s text, t text); INSERT INTO x VALUES ('Jun 12 1998', '2024-11-05 01:11:03');));
$node->safe_psql($db, 'DO LANGUAGE pipeline $$' . q(
CREATE MATERIALIZED VIEW dates AS SELECT to_date(s, 'MMM dd yyyy') AS d, to_timestamp(t, 'yyyy-MM-dd HH:mm:ss') AS t,
	to_timestamp('05/11/2024 1:02 PM', 'dd/MM/yyyy h:mm a') AS pm FROM x;
CREATE STREAMING TABLE filled (id BIGINT GENERATED ALWAYS AS IDENTITY, s STRING, note STRING DEFAULT 'none', twice STRING GENERATED ALWAYS AS (s || s))
	AS SELECT s FROM STREAM(x);
) . "CREATE MATERIALIZED VIEW batch AS SELECT id, v, _metadata.file_name AS f FROM read_files('$landing/csv', format => 'csv', header => true);\$\$");
rows_are($node, $db, 'SELECT d, t, pm FROM dates', ['1998-06-12|2024-11-05 01:11:03+00|2024-11-05 13:02:00+00'], "Spark's date patterns");
rows_are($node, $db, 'SELECT * FROM filled', ['1|Jun 12 1998|none|Jun 12 1998Jun 12 1998'], 'columns that fill themselves');
rows_are($node, $db, 'SELECT * FROM batch ORDER BY id', ['1|a|a.csv', '2|b|a.csv', '3||a.csv'], 'files without STREAM');
write_file("$landing/csv/b.csv", "id,v\n4,d\n");
unlink "$landing/csv/a.csv";
$node->safe_psql($db, 'REFRESH MATERIALIZED VIEW batch');
rows_are($node, $db, 'SELECT * FROM batch', ['4|d|b.csv'], 'files without STREAM: those that are there now');
my $typo = fails_with($node, $db, 'DO LANGUAGE pipeline $$CREATE STREAMING TABLE k AS SELECT * FROM STREAM x WITH (skipChangeCommit)$$',
	'22023', qr/"skipChangeCommit"/, 'a misspelt option of STREAM');
cursor_is($typo, 'skipChangeCommit', 'a misspelt option of STREAM: cursor');
$node->safe_psql($db, 'CREATE VIEW vx AS SELECT upper(s) AS s FROM x');
$typo = fails_with($node, $db, 'DO LANGUAGE pipeline $$CREATE STREAMING TABLE k AS SELECT * FROM STREAM vx$$',
	'0A000', qr/"vx" cannot be read as a stream/, 'STREAM of a view');
unlike($typo, qr/TABLESAMPLE/, 'STREAM of a view: in our words');
fails_with($node, $db, 'DO LANGUAGE pipeline $$CREATE STREAMING TABLE k AS SELECT * FROM STREAM dates$$',
	'0A000', qr/dates.* cannot be read as a stream/, 'STREAM of a materialized view');

$node->stop;
done_testing();

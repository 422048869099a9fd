# Real files, as they come: JSON arrays and CSV of the npm package vega-datasets, from landing to
# gold.  Counts and sums are checked against jq and awk over the same files.
use strict;
use warnings;
use File::Copy;
use File::Path qw(make_path);
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $package = 'vega-datasets';
my $version = '2.11.0';
my @files = qw(flights-200k.json movies.json birdstrikes.csv airports.csv weather.csv);

# The package's data folder: from $PIPELINE_CACHE (or a folder of ours below /tmp), else from the
# registry.  Returns nothing and a reason when it cannot be had.
sub data_folder
{
	my $cache = $ENV{PIPELINE_CACHE} || "/tmp/pipeline-cache-$<";
	my $dir = "$cache/$package-$version";
	my ($out, $err);

	make_path($cache, { mode => 0755 });
	# Below /tmp the name can be guessed: whose folder is it?
	return (undef, "$cache belongs to somebody else") if (stat $cache)[4] != $>;
	return $dir if !grep { !-s "$dir/$_" } @files;
	return (undef, 'npm is not installed') if system('command -v npm >/dev/null 2>&1') != 0;
	make_path($dir);
	local $ENV{npm_config_cache} = "$cache/npm";
	local $ENV{npm_config_update_notifier} = 'false';
	my $ok = eval {
		IPC::Run::run(['npm', 'pack', '--silent', '--fetch-retries=1', '--fetch-timeout=60000',
			'--pack-destination', $dir, "$package\@$version"], '<', \'', '>', \$out, '2>', \$err,
			IPC::Run::timeout(180));
	};
	return (undef, "the npm registry does not answer") unless $ok;
	# Each file appears under its name when it is complete.
	system_or_bail('tar', '-xzf', "$dir/$package-$version.tgz", '-C', $dir, '--strip-components=2',
		map { "package/data/$_" } @files);
	unlink "$dir/$package-$version.tgz";
	return $dir;
}

my ($data, $reason) = data_folder();
plan skip_all => $reason unless $data;
plan skip_all => 'jq is not installed' if system('command -v jq >/dev/null 2>&1') != 0;

# What jq says about files of landing: one value a line.
sub jq
{
	my ($filter, @paths) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run(['jq', '-s', '-r', "add | $filter", @paths], '>', \$out, '2>', \$err)
		or die "jq: $err";
	chomp $out;
	return $out;
}

# What awk says about the lines behind the header; only for files without quoted commas.
sub awk
{
	my ($program, @paths) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run(['awk', '-F,', "{ sub(/\\r\$/, \"\") } FNR > 1 { $program } END { print_all() }
		function print_all() { for (k in n) print k \"|\" n[k] }", @paths], '>', \$out, '2>', \$err)
		or die "awk: $err";
	return join("\n", sort split(/\n/, $out));
}

my $landing = PostgreSQL::Test::Utils::tempdir();
my %folder = (
	'flights-200k.json' => 'flights', 'movies.json' => 'movies', 'birdstrikes.csv' => 'birds',
	'airports.csv' => 'airports', 'weather.csv' => 'weather');
for my $file (@files)
{
	mkdir "$landing/$folder{$file}" or die;
	copy("$data/$file", "$landing/$folder{$file}") or die;
}
sub landed { return glob("$landing/$_[0]/*"); }

my $node = pipeline_node('vega');
my $db = fresh_db($node, 'vega');
my $log = 'vega.load';

$node->safe_psql($db, 'CREATE SCHEMA vega');
$node->safe_psql($db, "CREATE PROCEDURE vega.load(landing text DEFAULT '$landing') LANGUAGE pipeline AS " . q($body$
-- gold
CREATE OR REFRESH MATERIALIZED VIEW gold_genres COMMENT "Films and money by genre" AS
SELECT coalesce(genre, 'none') AS genre, count(*) AS films, sum(worldwide_gross) AS gross,
	min(released) AS first_day
FROM LIVE.silver_movies GROUP BY coalesce(genre, 'none');

CREATE OR REFRESH MATERIALIZED VIEW gold_delays AS
SELECT CASE WHEN delay <= 0 THEN 'punctual' WHEN delay <= 30 THEN 'late' ELSE 'very late' END AS class,
	count(*) AS flights, sum(delay) AS minutes, sum(distance) AS miles
FROM silver_flights GROUP BY ALL;

CREATE OR REFRESH MATERIALIZED VIEW gold_weather_months (
	CONSTRAINT whole_month EXPECT (days BETWEEN 28 AND 31)
) AS SELECT location, year(day) AS y, month(day) AS m, count(*) AS days, sum(rain) AS rain
FROM silver_weather GROUP BY location, year(day), month(day);

-- Two kinds of files meet: strikes per state, and the airports of that state.
CREATE OR REFRESH MATERIALIZED VIEW gold_states AS
SELECT b.state, b.strikes, b.cost, coalesce(a.airports, 0) AS airports
FROM (SELECT state, count(*) AS strikes, sum(cost) AS cost FROM silver_birds GROUP BY state) b
LEFT JOIN (SELECT state, count(*) AS airports FROM silver_airports GROUP BY state) a
	ON a.state = b.state;

CREATE OR REFRESH MATERIALIZED VIEW airport_keys (
	CONSTRAINT unique_code EXPECT (n = 1) ON VIOLATION FAIL UPDATE
) AS SELECT code, count(*) AS n FROM silver_airports GROUP BY code;

CREATE VIEW films_for_bi AS SELECT title, genre, released FROM silver_movies;

-- bronze: one folder a kind, as it came
CREATE OR REFRESH STREAMING TABLE bronze_flights TBLPROPERTIES ("quality" = "bronze") AS
SELECT *, _metadata.file_name AS file FROM STREAM read_files('${landing}/flights', format => 'json', multiLine => true);
CREATE OR REFRESH STREAMING TABLE bronze_movies AS
SELECT *, _metadata.file_name AS file FROM STREAM read_files('${landing}/movies', format => 'json', multiLine => true);
CREATE OR REFRESH STREAMING TABLE bronze_birds AS
SELECT *, _metadata.file_name AS file FROM STREAM read_files('${landing}/birds', format => 'csv', header => 'true');
CREATE OR REFRESH STREAMING TABLE bronze_airports AS
SELECT *, _metadata.file_name AS file FROM STREAM read_files('${landing}/airports', format => 'csv', header => 'true');
CREATE OR REFRESH STREAMING TABLE bronze_weather AS
SELECT *, _metadata.file_name AS file FROM STREAM read_files('${landing}/weather', format => 'csv', header => 'true');

-- silver
CREATE OR REFRESH STREAMING TABLE silver_flights (
	CONSTRAINT punctual EXPECT (delay <= 0),
	CONSTRAINT far EXPECT (distance >= 200) ON VIOLATION DROP ROW,
	CONSTRAINT clock EXPECT (hour >= 0 AND hour < 24) ON VIOLATION QUARANTINE ROW
) AS SELECT CAST(delay AS INT) AS delay, CAST(distance AS INT) AS distance,
	CAST(time AS DECIMAL(9,6)) AS hour, file
FROM STREAM(LIVE.bronze_flights);

CREATE OR REFRESH STREAMING TABLE silver_movies (
	CONSTRAINT titled EXPECT (title IS NOT NULL) ON VIOLATION DROP ROW,
	CONSTRAINT words EXPECT (NOT title RLIKE '^[0-9]+$'),
	CONSTRAINT shown EXPECT (released < DATE '2012-01-01') ON VIOLATION QUARANTINE ROW,
	CONSTRAINT earned EXPECT (worldwide_gross > 0),
	CONSTRAINT home_is_part EXPECT (us_gross <= worldwide_gross),
	CONSTRAINT budget EXPECT (budget >= 1000000) ON VIOLATION QUARANTINE ROW,
	CONSTRAINT length_if_known EXPECT (CASE WHEN minutes IS NOT NULL THEN minutes BETWEEN 60 AND 240 ELSE TRUE END)
) AS SELECT TRIM(title) AS title, TO_DATE(`Release Date`, 'Mon DD YYYY') AS released,
	CAST(`Worldwide Gross` AS BIGINT) AS worldwide_gross, `us gross` AS us_gross,
	CAST(`production budget` AS DECIMAL(14,2)) AS budget, CAST(`running time min` AS INT) AS minutes,
	`major genre` AS genre, `imdb rating` AS rating, file
FROM STREAM(LIVE.bronze_movies);

CREATE OR REFRESH STREAMING TABLE silver_birds (
	CONSTRAINT has_state EXPECT (state IS NOT NULL AND state <> 'N/A') ON VIOLATION QUARANTINE ROW,
	CONSTRAINT has_speed EXPECT (speed > 0)
) AS SELECT `Airport Name` AS airport, `Flight Date` AS day, `origin state` AS state,
	CAST(`cost total $` AS DECIMAL(12,2)) AS cost, `speed ias in knots` AS speed, file
FROM STREAM(LIVE.bronze_birds);

CREATE OR REFRESH STREAMING TABLE silver_airports (
	CONSTRAINT in_a_state EXPECT (state != 'NA') ON VIOLATION DROP ROW,
	CONSTRAINT northern EXPECT (latitude BETWEEN 0 AND 90),
	CONSTRAINT letters EXPECT (code RLIKE '^[A-Z]{3}$')
) AS SELECT UPPER(iata) AS code, name, state, country, latitude, longitude FROM STREAM(LIVE.bronze_airports);

CREATE OR REFRESH STREAMING TABLE silver_weather (
	CONSTRAINT ordered EXPECT (cold <= warm) ON VIOLATION FAIL UPDATE,
	CONSTRAINT dry EXPECT (rain == 0)
) AS SELECT location, date AS day, CAST(precipitation AS DECIMAL(6,1)) AS rain,
	CAST(temp_max AS DECIMAL(5,1)) AS warm, CAST(temp_min AS DECIMAL(5,1)) AS cold, weather
FROM STREAM(LIVE.bronze_weather);
$body$));

# CALL; its notices
sub update
{
	my ($out, $err);
	my $rc = $node->psql($db, 'CALL vega.load()', stdout => \$out, stderr => \$err, on_error_stop => 1);
	is($rc, 0, "update: $_[0]") or diag($err);
	return $err;
}

# The same lines, in whatever order.
sub same_lines
{
	my ($got, $want, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(join("\n", sort split(/\n/, $got)), join("\n", sort split(/\n/, $want)), $name);
}

sub one { return $node->safe_psql($db, $_[0]); }

# The jq conditions of the rules of silver_movies; jq orders null below numbers, SQL does not.
my $year = '(."Release Date"[-4:] | tonumber)';
my %movie_rule = (
	titled => '.Title != null',
	words => '.Title != null and (.Title | tostring | test("^[0-9]+$") | not)',
	shown => "$year < 2012",
	earned => '(."Worldwide Gross" // 0) > 0',
	home_is_part => '."US Gross" != null and ."Worldwide Gross" != null and ."US Gross" <= ."Worldwide Gross"',
	budget => '(."Production Budget" // 0) >= 1000000',
	length_if_known => '."Running Time min" == null or (."Running Time min" >= 60 and ."Running Time min" <= 240)');
my $good_movie = "select($movie_rule{titled}) | select($movie_rule{shown}) | select($movie_rule{budget})";
my %flight_rule = (punctual => '.delay <= 0', far => '.distance >= 200', clock => '.time >= 0 and .time < 24');

# Everything that the files say, against everything that the tables hold.
sub check_all
{
	my ($name) = @_;
	my @flights = landed('flights');
	my @movies = landed('movies');
	my @weather = landed('weather');
	my @birds = landed('birds');
	my @airports = landed('airports');

	# bronze
	same_lines(one('SELECT count(*), sum(delay), sum(distance), round(sum(time)::numeric, 3)::float8 FROM vega.bronze_flights'),
		jq('"\(length)|\(map(.delay) | add)|\(map(.distance) | add)|" + (map(.time) | add * 1000 | round / 1000 | tostring)', @flights),
		"$name: flights");
	same_lines(one('SELECT count(*), count(title), sum("worldwide gross"), sum("imdb votes"), count("running time min"), count("us dvd sales") FROM vega.bronze_movies'),
		jq('"\(length)|\(map(select(.Title != null)) | length)|\(map(."Worldwide Gross") | add)|\(map(."IMDB Votes") | add)|\(map(select(."Running Time min" != null)) | length)|\(map(select(."US DVD Sales" != null)) | length)"', @movies),
		"$name: movies");
	same_lines(one(q(SELECT title || '=' || count(*) FROM vega.bronze_movies WHERE title ~ '^[0-9]+$' GROUP BY title )),
		jq('map(select((.Title | type) == "number").Title | tostring) + map(.Title | strings | select(test("^[0-9]+$"))) | group_by(.) | map("\(.[0])=\(length)")[]', @movies),
		"$name: titles that are numbers stay as written");
	same_lines(one(q(SELECT 'cost|' || sum("cost total $") FROM vega.bronze_birds UNION ALL
		SELECT 'rows|' || count(*) FROM vega.bronze_birds UNION ALL
		SELECT 'speed|' || sum("speed ias in knots") FROM vega.bronze_birds UNION ALL
		SELECT 'speeds|' || count("speed ias in knots") FROM vega.bronze_birds)),
		awk('n["rows"]++; n["cost"] += $13; n["speed"] += $14; if (length($14)) n["speeds"]++', @birds), "$name: bird strikes");
	same_lines(one(q(SELECT 'days|' || count(*) FROM vega.bronze_weather UNION ALL
		SELECT location || '|' || round(sum(precipitation)::numeric, 1)::float8 FROM vega.bronze_weather GROUP BY location ORDER BY 1)),
		awk('n["days"]++; n[$1] += $3', @weather), "$name: weather");
	# Some names of airports have quoted commas, so awk sees the first field only.
	same_lines(one(q(SELECT 'codes|' || count(*) FROM vega.bronze_airports UNION ALL
		SELECT 'letters|' || count(*) FROM vega.bronze_airports WHERE iata ~ '^[A-Z]{3}$')),
		awk('n["codes"]++; if ($1 ~ /^[A-Z][A-Z][A-Z]$/) n["letters"]++', @airports), "$name: airports");
	same_lines(one(join(' UNION ALL ', map { "SELECT count(*) FROM vega.bronze_$_ WHERE _rescued_data IS NOT NULL" }
		sort values %folder)), join("\n", (0) x 5), "$name: nothing was rescued");

	# silver
	for my $rule (sort keys %movie_rule)
	{
		counts_are($node, $db, $log, $rule, jq("map($movie_rule{$rule}) | \"\\(map(select(.)) | length)|\\(map(select(not)) | length)\"", @movies),
			"$name: rule $rule");
	}
	for my $rule (sort keys %flight_rule)
	{
		counts_are($node, $db, $log, $rule, jq("map($flight_rule{$rule}) | \"\\(map(select(.)) | length)|\\(map(select(not)) | length)\"", @flights),
			"$name: rule $rule");
	}
	same_lines(one('SELECT count(*), sum(worldwide_gross), sum(budget)::bigint, min(released), max(released) < DATE \'2012-01-01\' FROM vega.silver_movies'),
		jq("map($good_movie) | \"\\(length)|\\(map(.\"Worldwide Gross\") | add)|\\(map(.\"Production Budget\") | add)|\\(map(.\"Release Date\" | strptime(\"%b %d %Y\") | mktime) | min | strftime(\"%Y-%m-%d\"))|t\"", @movies),
		"$name: good movies");
	same_lines(one(q(SELECT coalesce(title, '') || ': ' || array_to_string(_rules, ',') FROM vega.silver_movies_quarantine )),
		jq("map(select(.Title != null) | {t: (.Title | tostring | sub(\"^ +\"; \"\") | sub(\" +\$\"; \"\")), r: ([(if $movie_rule{shown} then empty else \"shown\" end), (if $movie_rule{budget} then empty else \"budget\" end)])} | select(.r | length > 0) | \"\\(.t): \\(.r | join(\",\"))\") | sort[]", @movies),
		"$name: quarantined movies and why");
	same_lines(one(q(SELECT sum(delay), sum(distance), count(*) FROM vega.silver_flights)),
		jq("map(select($flight_rule{far}) | select($flight_rule{clock})) | \"\\(map(.delay) | add)|\\(map(.distance) | add)|\\(length)\"", @flights),
		"$name: far flights");
	counts_are($node, $db, $log, 'ordered', one('SELECT count(*) || \'|0\' FROM vega.bronze_weather'), "$name: rule ordered");
	counts_are($node, $db, $log, 'has_speed', join('|', map { s/.*\|//r } split /\n/, awk('n[$14 + 0 > 0 ? "a" : "b"]++', @birds)), "$name: rule has_speed");
	same_lines(one(q(SELECT (SELECT count(*) FROM vega.silver_birds) + (SELECT count(*) FROM vega.silver_birds_quarantine))),
		one('SELECT count(*) FROM vega.bronze_birds'), "$name: quarantine loses nothing");

	# gold
	same_lines(one(q(SELECT genre, films, gross FROM vega.gold_genres )),
		jq("map($good_movie) | group_by(.\"Major Genre\" // \"none\") | map(\"\\(.[0].\"Major Genre\" // \"none\")|\\(length)|\\(map(.\"Worldwide Gross\") | add)\")[]", @movies),
		"$name: genres");
	same_lines(one('SELECT class, flights, minutes FROM vega.gold_delays ORDER BY class'),
		jq("map(select($flight_rule{far}) | select($flight_rule{clock}) | . + {c: (if .delay <= 0 then \"punctual\" elif .delay <= 30 then \"late\" else \"very late\" end)}) | group_by(.c) | map(\"\\(.[0].c)|\\(length)|\\(map(.delay) | add)\")[]", @flights),
		"$name: delays");
	same_lines(one(q(SELECT location || ' ' || y || ' ' || m || '|' || (rain * 10)::int FROM vega.gold_weather_months )),
		awk('split($2, d, "-"); n[$1 " " d[1] + 0 " " d[2] + 0] += int($3 * 10 + 0.5)', @weather),
		"$name: tenths of rain by month");
	same_lines(one(q(SELECT state || '|' || strikes FROM vega.gold_states )),
		awk('if (length($6) && $6 != "N/A") n[$6]++', @birds), "$name: strikes by state");
	same_lines(one(q(SELECT count(*), count(DISTINCT title) > 2000 FROM vega.films_for_bi)), one('SELECT count(*), true FROM vega.silver_movies') =~ s/\|t/|t/r,
		"$name: published view");
	return;
}

# ---- the first batch
my $told = update('first batch');
like($told, qr/NOTICE:  bronze_flights +COMPLETED +231083 rows +1 file /m, 'the notice counts rows and files');
check_all('first batch');
rows_are($node, $db, q(SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
	WHERE attrelid = 'vega.bronze_weather'::regclass AND attnum > 0 ORDER BY attnum),
	['location text', 'date date', 'precipitation double precision', 'temp_max double precision',
		'temp_min double precision', 'wind double precision', 'weather text', '_rescued_data text', 'file text'],
	'inferred types of CSV');
rows_are($node, $db, q(SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
	WHERE attrelid = 'vega.bronze_movies'::regclass AND attnum > 0 AND attname IN ('title', 'us gross', 'imdb rating', 'director') ORDER BY attnum),
	['title text', 'us gross bigint', 'director text', 'imdb rating double precision'], 'inferred types of JSON, numbers among titles');
rows_are($node, $db, q(SELECT expectation, action, passed + failed = 3201 FROM pipeline.quality WHERE dataset = 'vega.silver_movies' ORDER BY 1),
	['budget|QUARANTINE|t', 'earned|WARN|t', 'home_is_part|WARN|t', 'length_if_known|WARN|t', 'shown|QUARANTINE|t', 'titled|DROP|t', 'words|WARN|t'],
	'each rule sees each row');
rows_are($node, $db, q(SELECT (l.details #>> '{flow_progress,metrics,num_output_rows}')::int,
		q->>'dropped_records', (q->>'quarantined_records')::int
	FROM pipeline.event_log('vega.silver_movies') l, LATERAL (SELECT l.details #> '{flow_progress,data_quality}') x(q) WHERE q IS NOT NULL),
	[one(q(SELECT (SELECT count(*) FROM vega.silver_movies), 1, 3200 - (SELECT count(*) FROM vega.silver_movies)))],
	'what was written, dropped and quarantined is the input');
rows_are($node, $db, q(SELECT distinct file FROM vega.silver_movies), ['movies.json'], 'rows know their file');

# ---- a rule that the data does not keep, under FAIL UPDATE: nothing is written
pipeline($node, $db, 'vega.strict', q(CREATE OR REFRESH STREAMING TABLE vega.strict_movies (
	CONSTRAINT titled EXPECT (title IS NOT NULL) ON VIOLATION FAIL UPDATE) AS SELECT title, "us gross" FROM STREAM(vega.bronze_movies);));
fails_with($node, $db, 'CALL vega.strict()', '23514', qr/expectation "titled" violated by 1 of 3201 rows/, 'one film without a title');
rows_are($node, $db, 'SELECT count(*) FROM vega.strict_movies', ['0'], 'nothing of the batch');

# ---- nothing new
my $before = one(q(SELECT string_agg(dataset || last_rows, ',' ORDER BY dataset) FROM pipeline.datasets WHERE pipeline = 'vega.load'));
like(update('again'), qr/COMPLETED, nothing new/, 'a second update reads nothing');
utime(undef, undef, $_) for map { landed($_) } values %folder;
like(update('touched'), qr/COMPLETED, nothing new/, 'nor does one after the files were touched');
rows_are($node, $db, q(SELECT string_agg(dataset || last_rows, ',' ORDER BY dataset) FROM pipeline.datasets WHERE pipeline = 'vega.load'),
	[$before], 'counts of the last refresh stay');
rows_are($node, $db, 'SELECT (SELECT count(*) FROM vega.bronze_flights), (SELECT count(*) FROM vega.bronze_movies)', ['231083|3201'], 'no row twice');

# ---- the second batch: parts of the same data under other names
write_file("$landing/movies/more.json", jq('.[100:350] + [{"Title": "Made Up", "Release Date": "Jan 01 2011", "Production Budget": 5, "US Gross": -1, "Worldwide Gross": 2}]', "$data/movies.json"));
write_file("$landing/flights/2002.json", jq('.[0:20000]', "$data/flights-200k.json"));
write_file("$landing/flights/empty.json", '[]');
write_file("$landing/weather/later.csv", "location,date,precipitation,temp_max,temp_min,wind,weather\n"
	. join('', map { "Berlin,2016-02-0$_,$_.5,$_,-1,3.3,rain\n" } 1 .. 9));
write_file("$landing/birds/more.csv", join("\r\n", (split /\r?\n/, slurp_file("$data/birdstrikes.csv"))[0, 20 .. 520]));
$told = update('second batch');
like($told, qr/NOTICE:  bronze_movies +COMPLETED +251 rows +1 file /m, 'films of the new file only');
like($told, qr/NOTICE:  bronze_flights +COMPLETED +20000 rows +2 files /m, 'flights of the new files only');
unlike($told, qr/bronze_airports +COMPLETED +[1-9]/, 'no airports');
check_all('second batch');
rows_are($node, $db, q(SELECT file, count(*) FROM vega.bronze_movies GROUP BY file ORDER BY file),
	['more.json|251', 'movies.json|3201'], 'each file once');
rows_are($node, $db, q(SELECT location, y, m, days, rain FROM vega.gold_weather_months WHERE location = 'Berlin'),
	['Berlin|2016|2|9|49.5'], 'a new group');
rows_are($node, $db, q(SELECT passed, failed FROM pipeline.quality WHERE expectation = 'whole_month' ORDER BY ended_at DESC LIMIT 1),
	['96|1'], 'a month that is not whole');
like(update('third'), qr/COMPLETED, nothing new/, 'and nothing new behind it');

# ---- the repaired rows of the quarantine come back
my $held = one(q(SELECT count(*) FROM vega.silver_movies_quarantine WHERE _rules = '{budget}' AND title <> 'Made Up' AND budget > 0));
one(q(UPDATE vega.silver_movies_quarantine SET budget = budget + 1000000 WHERE _rules = '{budget}' AND title <> 'Made Up'));
my $films = one('SELECT count(*) FROM vega.silver_movies');
my $back = one(q(SELECT replayed FROM pipeline.replay_quarantine('vega.silver_movies', $c$title <> 'Made Up'$c$)));
cmp_ok($back, '>=', $held, 'rows with a repaired budget pass');
is(one('SELECT count(*) FROM vega.silver_movies'), $films + $back, 'and are in the table');
update('after the replay');
is(one('SELECT sum(films) FROM vega.gold_genres'), $films + $back, 'and in gold');

$node->stop;
done_testing();

# Landing files: read once, inferred, malformed, rescued, evolving; with the right answers.
use strict;
use warnings;
use Encode;
use File::Copy;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('files');
my $db = fresh_db($node, 'files');
my $n = 0;

# A new landing folder and a streaming table over it.
sub landing
{
	my ($options, $query) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $table = 'f' . ++$n;
	$query ||= 'SELECT *';
	return ($dir, $table,
		"DO LANGUAGE pipeline \$\$CREATE OR REFRESH STREAMING TABLE $table AS $query FROM STREAM read_files('$dir', $options)\$\$",
		"DO LANGUAGE pipeline \$\$REFRESH STREAMING TABLE $table\$\$");
}
my ($dir, $t, $create, $refresh);

# ---- inference over JSON
($dir, $t, $create) = landing(q(format => 'json'));
write_file("$dir/a.json", <<'J');
{"id": 1, "price": 10, "ok": true, "tag": null}
{"id": 2, "price": 10.5, "extra": {"x": [1, 2]}}
{"id": 3}
{"id": 4, "ok": false, "tag": "late", "price": -1e2}
J
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT id, price, ok, tag, extra FROM $t ORDER BY id",
	['1|10|t||', '2|10.5|||{"x": [1, 2]}', '3||||', '4|-100|f|late|'], 'values');
rows_are($node, $db, "SELECT pg_typeof(id), pg_typeof(price), pg_typeof(ok), pg_typeof(tag), pg_typeof(extra) FROM $t LIMIT 1",
	['bigint|double precision|boolean|text|jsonb'], 'types');

# ---- a type conflict in a later file is kept
($dir, $t, $create, $refresh) = landing(q(format => 'json'));
write_file("$dir/1.json", qq({"id": 1, "qty": 5}\n));
$node->safe_psql($db, $create);
write_file("$dir/2.json", <<'J');
{"id": 2, "qty": "seven"}
{"id": 3, "qty": 8, "new": "n"}
{"id": 4, "qty": {"n": 9}}
J
$node->safe_psql($db, $refresh);
rows_are($node, $db, "SELECT id, qty, new FROM $t ORDER BY id", ['1|5|', '2||', '3|8|n', '4||'], 'each id once, new column');
rows_are($node, $db, "SELECT id, (_rescued_data::jsonb)->'qty', (_rescued_data::jsonb)->>'_file_path' LIKE '%/2.json' FROM $t WHERE _rescued_data IS NOT NULL ORDER BY id",
	['2|"seven"|t', '4|{"n": 9}|t'], 'surprises are rescued with their file');

# ---- strings of digits stay text, hints give types
($dir, $t, $create) = landing(q(format => 'json'));
my $digits = '{"zip": "00501", "when": "07-04-2031", "u": "A0EE00C1-0000-4000-8000-0000000000FE", "n": "12", "e": ""}' . "\n";
write_file("$dir/a.json", $digits);
$node->safe_psql($db, $create);
rows_are($node, $db, qq(SELECT zip, "when", u, n, e = '' FROM $t), ['00501|07-04-2031|A0EE00C1-0000-4000-8000-0000000000FE|12|t'], 'text');
($dir, $t, $create) = landing(q(format => 'json', schemaHints => 'n int, zip string'));
write_file("$dir/a.json", $digits);
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT n + 1, zip FROM $t", ['13|00501'], 'hints');

# ---- malformed lines
my $bad = <<'J';
{"id": 1}
{"id": 2, "s": "unfinished
{"id": 3}
not json at all

{"id": 4} trailing
[{"id": 5}]
J
($dir, $t, $create, $refresh) = landing(q(format => 'json', mode => 'FAILFAST', schema => 'id bigint, s string'));
write_file("$dir/a.json", $bad);
fails_with($node, $db, $create, '22P04', qr/a\.json.*\b2\b|line 2.*a\.json/s, 'FAILFAST names file and line');
rows_are($node, $db, "SELECT to_regclass('$t') IS NULL", ['t'], 'nothing of it');
write_file("$dir/a.json", qq({"id": 1}\n{"id": 3}\n));
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT id FROM $t ORDER BY 1", ['1', '3'], 'after the repair');
($dir, $t, $create, $refresh) = landing(q(format => 'json'));
write_file("$dir/a.json", $bad);
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT count(*) FILTER (WHERE id IN (1, 3)), count(*) FILTER (WHERE id IS NULL AND _rescued_data IS NOT NULL) >= 3 FROM $t",
	['2|t'], 'PERMISSIVE keeps good rows and bad lines');
rows_are($node, $db, "SELECT count(*) FROM $t WHERE _rescued_data LIKE '%not json at all%'", ['1'], 'verbatim');

# ---- CSV: quotes, newlines, BOM, CRLF, no last newline
($dir, $t, $create) = landing(q(format => 'csv', header => true));
my $rows = qq(1,"a, b","line one\r\nline two"\r\n2,"say ""hi""",\r\n3, padded ,"x");
write_file("$dir/a.csv", "\xEF\xBB\xBFid,name,note\r\n$rows");
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT id, name, replace(replace(note, E'\\r', ''), E'\\n', '/') FROM $t ORDER BY id",
	['1|a, b|line one/line two', '2|say "hi"|', '3| padded |x'], 'RFC 4180');
($dir, $t, $create) = landing(q(format => 'csv', header => 'true'));
write_file("$dir/a.csv", "\xEF\xBB\xBFid,name,note\r\n" . ("9,z,z\r\n" x 5000) . $rows);
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT count(*) FROM $t", ['5003'], 'with many lines before');

# ---- CSV: no information is lost by inference
($dir, $t, $create) = landing(q(format => 'csv', header => true));
write_file("$dir/a.csv", "acct,phone,big,flag,day\n00123,+4917,12345678901234567890,1,2024-02-30\n00456,0049,2,0,2024-03-01\n");
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT acct::text, phone::text, big::text, day::text FROM $t ORDER BY acct",
	['00123|+4917|12345678901234567890|2024-02-30', '00456|0049|2|2024-03-01'], 'leading zeros, big numbers, a day that is none');

# ---- CSV: empty against NULL
my $empties = "id,s,n\n1,,\n2,\"\",5\n3,NULL,6\n4,\\N,7\n";
for my $case (['header => true', '3|1'], [q(header => true, nullValue => 'NULL'), '2|2'])
{
	my $name = 'e' . ++$n;
	$dir = PostgreSQL::Test::Utils::tempdir();
	write_file("$dir/a.csv", $empties);
	$node->safe_psql($db, "DO LANGUAGE pipeline \$\$CREATE OR REFRESH STREAMING TABLE $name (CONSTRAINT has_s EXPECT (s IS NOT NULL))
		AS SELECT * FROM STREAM read_files('$dir', format => 'csv', $case->[0])\$\$");
	counts_are($node, $db, $name, 'has_s', $case->[1], "NULLs with $case->[0]");
	rows_are($node, $db, "SELECT id FROM $name WHERE s = ''", ['2'], 'quoted empty is a string');
}

# ---- a surprise after the sample
my $long = "n,s\n" . join('', map { "$_,w\n" } 1 .. 30000) . "30001,\"one, two\"\n3.5,w\nn/a,w\n";
($dir, $t, $create) = landing(q(format => 'csv', header => true));
write_file("$dir/a.csv", $long);
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT count(*), count(*) FILTER (WHERE s = 'one, two') FROM $t", ['30003|1'], 'all rows');
rows_are($node, $db, "SELECT count(*) FROM $t x WHERE to_jsonb(x)::text LIKE '%3.5%' OR to_jsonb(x)::text LIKE '%n/a%'", ['2'], 'nothing is lost');

# ---- files are read once
($dir, $t, $create, $refresh) = landing(q(format => 'csv', header => true));
my $ids = "SELECT string_agg(id::text, ',' ORDER BY id) FROM $t";
write_file("$dir/a.csv", "id\n1\n2\n");
$node->safe_psql($db, $create);
rows_are($node, $db, $ids, ['1,2'], 'first');
$node->safe_psql($db, $refresh);
rows_are($node, $db, $ids, ['1,2'], 'nothing new');
write_file("$dir/a.csv", "id\n1\n2\n3\n");
$node->safe_psql($db, $refresh);
rows_are($node, $db, $ids, ['1,2'], 'an appended line is not seen');
write_file("$dir/a.csv", "id\n9\n");
$node->safe_psql($db, $refresh);
rows_are($node, $db, $ids, ['1,2'], 'nor is a rewritten file');
write_file("$dir/b.csv", "id\n1\n2\n");
$node->safe_psql($db, $refresh);
rows_are($node, $db, $ids, ['1,1,2,2'], 'a new path is always read');
unlink "$dir/a.csv";
$node->safe_psql($db, $refresh);
write_file("$dir/a.csv", "id\n7\n");
$node->safe_psql($db, $refresh);
rows_are($node, $db, $ids, ['1,1,2,2'], 'a known path stays known');
$node->restart;
$node->safe_psql($db, $refresh);
rows_are($node, $db, $ids, ['1,1,2,2'], 'after a restart');
($dir, $t, $create, $refresh) = landing(q(format => 'csv', header => true, allowOverwrites => true));
$ids = "SELECT string_agg(id::text, ',' ORDER BY id) FROM $t";
write_file("$dir/a.csv", "id\n1\n2\n");
$node->safe_psql($db, $create);
write_file("$dir/a.csv", "id\n1\n2\n3\n");
$node->safe_psql($db, $refresh);
rows_are($node, $db, $ids, ['1,1,2,2,3'], 'allowOverwrites reads the whole file again');

# ---- the set of known paths decides, not a high-water mark
($dir, $t, $create, $refresh) = landing(q(format => 'json'));
write_file("$dir/m_05.json", qq({"id": 5}\n));
$node->safe_psql($db, $create);
write_file("$dir/m_03.json", qq({"id": 3}\n));
utime(978307200, 978307200, "$dir/m_03.json");
mkdir "$dir/sub";
write_file("$dir/sub/a.json", qq({"id": 1}\n));
write_file("$dir/M_05.json", qq({"id": 55}\n));
write_file("$dir/m_05.json.tmp", qq({"id": 6}\n));
rename("$dir/m_05.json.tmp", "$dir/m_06.json");
$node->safe_psql($db, $refresh) for 1 .. 2;
rows_are($node, $db, "SELECT string_agg(id::text, ',' ORDER BY id) FROM $t", ['1,3,5,6,55'], 'older names and times, sub-folders, other case');

# ---- one bad file among three
($dir, $t, $create, $refresh) = landing(q(format => 'json', mode => 'FAILFAST', schema => 'id bigint'));
$node->safe_psql($db, "DO LANGUAGE pipeline \$\$CREATE OR REFRESH STREAMING TABLE $t AS SELECT * FROM STREAM read_files('$dir', format => 'json', mode => 'FAILFAST', schema => 'id bigint')\$\$");
write_file("$dir/1.json", qq({"id": 1}\n));
write_file("$dir/2.json", qq({"id": 2\n));
write_file("$dir/3.json", qq({"id": 3}\n));
fails_with($node, $db, $refresh, '22P04', qr/2\.json/, "bad file, try $_") for 1 .. 2;
rows_are($node, $db, "SELECT count(*) FROM $t", ['0'], 'nothing of the batch');
write_file("$dir/2.json", qq({"id": 2}\n));
$node->safe_psql($db, $refresh) for 1 .. 2;
rows_are($node, $db, "SELECT string_agg(id::text, ',' ORDER BY id) FROM $t", ['1,2,3'], 'each row once');
rows_are($node, $db, "SELECT count(*) FROM pipeline.event_log('$t') WHERE event_type = 'update_progress' AND details #>> '{update_progress,state}' = 'FAILED'",
	['2'], 'two failed updates in the log');

# ---- JSON arrays, lines, pretty-printed documents
my @layouts = (["a.json", qq([{"id": 1},\n {"id": 2}])], ["b.json", qq({"id": 3}\n{"id": 4}\n)], ["c.json", qq({\n"id": 5\n}\n)]);
($dir, $t, $create) = landing(q(format => 'json', multiLine => true));
write_file("$dir/$_->[0]", $_->[1]) for @layouts;
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT string_agg(id::text, ',' ORDER BY id) FROM $t", ['1,2,3,4,5'], 'multiLine');
($dir, $t, $create) = landing(q(format => 'json', schema => 'id bigint', rescuedDataColumn => '_rescued_data'));
write_file("$dir/$_->[0]", $_->[1]) for @layouts;
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT string_agg(id::text, ',' ORDER BY id), count(*) FILTER (WHERE id IS NULL AND _rescued_data IS NOT NULL) > 0 FROM $t WHERE id IS NULL OR id IN (3, 4)",
	['3,4|t'], 'line by line: the rest is kept as malformed');

# ---- metadata, and what "*" shows
($dir, $t, $create) = landing(q(format => 'json'), 'SELECT *, _metadata.file_name AS name, _metadata.file_size AS size, _metadata.file_modification_time AS at');
write_file("$dir/m.json", qq({"id": 1}\n));
utime(1767225600, 1767225600, "$dir/m.json");
$node->safe_psql($db, $create);
rows_are($node, $db, "SELECT id, name, size, at FROM $t", ['1|m.json|10|2026-01-01 00:00:00+00'], 'metadata');
rows_are($node, $db, "SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '$t'::regclass AND attnum > 0",
	['id,_rescued_data,name,size,at'], 'no hidden column in *');

# ---- places
$node->safe_psql($db, 'CREATE ROLE plain LOGIN; GRANT CREATE ON SCHEMA public TO plain');
($dir, $t, $create) = landing(q(format => 'json', schema => 'id bigint'));
write_file("$dir/a.json", qq({"id": 1}\n));
fails_with($node, $db, "SET ROLE plain; $create", '42501', qr/allowed_locations/, 'a place that is not allowed');
$node->safe_psql('postgres', "ALTER SYSTEM SET pipeline.allowed_locations = '$dir'");
$node->reload;
$node->poll_query_until($db, "SELECT current_setting('pipeline.allowed_locations') = '$dir'");
$node->safe_psql($db, "SET ROLE plain; $create");
rows_are($node, $db, "SELECT count(*) FROM $t", ['1'], 'an allowed place');
symlink('/etc/passwd', "$dir/x.json");
fails_with($node, $db, "SET ROLE plain; DO LANGUAGE pipeline \$\$REFRESH STREAMING TABLE $t\$\$", '42501', qr/passwd|allowed/, 'a link that leads out of it');
fails_with($node, $db, "DO LANGUAGE pipeline \$\$CREATE OR REFRESH STREAMING TABLE q AS SELECT * FROM STREAM read_files('$dir', format => 'json', headr => true)\$\$",
	'22023', qr/header/, 'an unknown option names the nearest');

$node->stop;
done_testing();

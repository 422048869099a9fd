# Every SQL block of README.md and docs/*.md runs, in order, in a fresh database for each file;
# where a text block follows, that is what psql shows.
#
# After a message changed: PIPELINE_DOCS_OUT=/tmp/docs make test SUITES=tap TESTS=080 writes the
# documents there as they should be, to be compared and copied.
#
# /srv/landing in the documents stands for a directory of the test.  Ids, milliseconds and
# fractions of seconds are masked.  In a text block, lines that psql writes to standard error
# (NOTICE and the like) and result tables are compared each in their order.
use strict;
use warnings;
use FindBin;
use File::Path qw(make_path);
use IPC::Run;
use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/../..";
my $cron = have_extension('pg_cron');
my $messages = qr/^(?:NOTICE|WARNING|ERROR|DETAIL|HINT|CONTEXT|LINE \d+|INFO|LOG): /;

# Blocks of a file: [ line, sql, expected text or undef ].
sub blocks
{
	my ($file) = @_;
	my (@blocks, $kind, $text, $line);
	my $after_sql = 0;

	open(my $in, '<:encoding(UTF-8)', $file) or die "$file: $!";
	while (my $row = <$in>)
	{
		if (!defined $kind && $row =~ /^```(\w*)\s*$/)
		{
			($kind, $text, $line) = ($1, '', $.);
		}
		elsif (defined $kind && $row =~ /^```\s*$/)
		{
			push @blocks, [ $line, $text, undef ] if $kind eq 'sql';
			$blocks[-1][2] = $text if $kind eq 'text' && $after_sql;
			$after_sql = $kind eq 'sql';
			undef $kind;
		}
		elsif (defined $kind) { $text .= $row; }
		elsif ($row =~ /\S/) { $after_sql = 0; }
	}
	die "$file: a block is not closed" if defined $kind;
	return @blocks;
}

sub mask
{
	my ($text) = @_;
	$text =~ s/^psql:<stdin>:\d+: //mg;
	$text =~ s/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/00000000-0000-0000-0000-000000000000/g;
	$text =~ s/\b([Uu]pdate) [0-9a-f]{6}\b/$1 000000/g;
	$text =~ s/ *\b\d+ ms\b/ 0 ms/g;
	$text =~ s/(\d\d:\d\d:\d\d)\.\d+/$1/g;
	$text =~ s/[ \t]+$//mg;
	return $text;
}

# Messages and the rest, without empty lines at the ends.
sub parts
{
	my ($text) = @_;
	my (@message, @result);
	my $in_message = 0;
	for (split /\n/, $text)
	{
		# a caret under a statement belongs to the LINE above it
		$in_message = 1, push(@message, $_), next if /$messages/ || ($in_message && /^ *\^$/);
		$in_message = 0;
		push @result, $_;
	}
	shift @result while @result && $result[0] eq '';
	pop @result while @result && $result[-1] eq '';
	return (join("\n", @message), join("\n", @result));
}

# The document with what came out in place of its text blocks.
sub rewrite
{
	my ($file, $shown) = @_;
	my $out = $ENV{PIPELINE_DOCS_OUT};
	my $text = slurp_file("$root/$file");
	my $n = 0;
	$text =~ s{(^```sql\n(?:.*?\n)?```\n)(\s*^```text\n)?((?(2).*?^```\n))}{
		my ($sql, $open, $now) = ($1, $2, $shown->[$n++]);
		$sql . (defined $open ? "$open$now\n```\n" : '')}gmse;
	make_path("$out/docs");
	open(my $fh, '>', "$out/$file") or die "$out/$file: $!";
	print $fh $text;
	close $fh;
	return;
}

my $node = pipeline_node('readme', extension => 0, cron => $cron);
my $dbs = 0;

for my $file ('README.md', map { "docs/$_" } map { m{([^/]+)$} } sort glob("$root/docs/*.md"))
{
	my @blocks = blocks("$root/$file");
	next if !@blocks;
	my $landing = PostgreSQL::Test::Utils::tempdir();
	my $text = join('', map { $_->[1] } @blocks);
	make_path("$landing/$_") for $text =~ m{/srv/landing/(\w+)/}g;

	# pg_cron works in one database only
	my $db = $text =~ /pg_cron/ ? 'postgres' : 'doc' . ++$dbs;
	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0") if $db ne 'postgres';
	$node->safe_psql($db, 'CREATE EXTENSION pipeline') if $text !~ /CREATE EXTENSION pipeline/;

	my @shown;
	for my $block (@blocks)
	{
		my ($line, $sql, $expected) = @$block;
		my $name = "$file line $line";
		my ($out, $err) = ('', '');
		SKIP:
		{
			skip "$name: pg_cron is not installed", 1 if !$cron && $sql =~ /\bcron\b/;
			$sql =~ s{/srv/landing}{$landing}g;
			IPC::Run::run([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($db) ],
				'<', \$sql, '>', \$out, '2>', \$err);
			my $rc = $? >> 8;
			my $fails = defined $expected && $expected =~ /^ERROR: /m;
			is($rc, $fails ? 3 : 0, "$name " . ($fails ? 'fails as it says' : 'runs')) or diag($err);
			s{\Q$landing\E}{/srv/landing}g for $out, $err;
			$err =~ s/^psql:<stdin>:\d+: //mg;
			push @shown, join("\n", map { s/[ \t]+$//mgr =~ s/\A\n+|\n+\z//gr } grep { /\S/ } $err, $out);
			next if !defined $expected;
			my ($message, $result) = parts(mask($expected));
			$err = join("\n", grep { /\S/ } split /\n/, mask($err));
			is($err, $message, "$name: messages") if $message ne '' || $err =~ /^(?:ERROR|WARNING)/m;
			is((parts(mask("\n$out")))[1], $result, "$name: result");
		}
	}
	rewrite($file, \@shown) if $ENV{PIPELINE_DOCS_OUT};
}

$node->stop;
done_testing();

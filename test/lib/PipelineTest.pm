# PipelineTest.pm - what the TAP tests share.
#
#   use PipelineTest;
#   my $node = pipeline_node('main');                  # running, extension created in postgres
#   my $node = pipeline_node('main', conf => "...", cron => 1, extension => 0);
#   skip_without_extension('pg_cron');                 # plan skip_all with a reason
package PipelineTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(pipeline_node have_extension skip_without_extension
	fresh_db rows_are fails_with cursor_is pipeline write_file counts_are);

# Is the extension's control file in the installation under test?
sub have_extension
{
	my ($name) = @_;
	chomp(my $share = `pg_config --sharedir`);
	return -e "$share/extension/$name.control";
}

sub skip_without_extension
{
	my ($name) = @_;
	plan skip_all => "extension $name is not installed" unless have_extension($name);
	return;
}

# A started node with the library preloaded.  Options: conf (text for postgresql.conf),
# cron (preload pg_cron too, for database postgres), extension (0: do not create it),
# init (arguments of init, as a list reference).
sub pipeline_node
{
	my ($name, %opt) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $preload = $opt{cron} ? 'pg_cron,pipeline' : 'pipeline';

	$node->init(@{ $opt{init} || [] });
	$node->append_conf('postgresql.conf', <<"CONF");
shared_preload_libraries = '$preload'
timezone = 'UTC'
autovacuum = off
jit = off
max_prepared_transactions = 5
CONF
	$node->append_conf('postgresql.conf', "cron.database_name = 'postgres'\n") if $opt{cron};
	$node->append_conf('postgresql.conf', $opt{conf}) if defined $opt{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pipeline') unless defined $opt{extension} && !$opt{extension};
	return $node;
}

# A new database with the extension.
sub fresh_db
{
	my ($node, $db) = @_;
	$node->safe_psql('postgres', qq(CREATE DATABASE "$db" TEMPLATE template0));
	$node->safe_psql($db, 'CREATE EXTENSION pipeline');
	return $db;
}

# The query gives exactly these rows, in the order of the query.
sub rows_are
{
	my ($node, $db, $sql, $expected, $name) = @_;
	my $want = join("\n", @$expected);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql($db, $sql), $want, $name);
}

# The statement fails with this SQLSTATE and a text that matches.
sub fails_with
{
	my ($node, $db, $sql, $sqlstate, $pattern, $name) = @_;
	my ($out, $err);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $rc = $node->psql($db, "\\set VERBOSITY verbose\n$sql", stdout => \$out, stderr => \$err,
		on_error_stop => 1);
	isnt($rc, 0, "$name: fails");
	like($err, qr/ERROR:  $sqlstate: /, "$name: SQLSTATE $sqlstate");
	like($err, $pattern, "$name: message");
	return $err;
}

# The cursor of psql's message stands on one of these texts.  psql shows at least ten characters
# behind the cursor, and counts columns of the terminal: wide characters count twice.
sub cursor_is
{
	my ($err, $expected, $name) = @_;
	my $text = $err;
	my $width = 0;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	utf8::decode($text);
	my ($line, $blanks) = $text =~ /^(LINE \d+: .*)\n( *)\^$/m or return fail("$name: has a cursor");
	while ($width < length $blanks && $line ne '')
	{
		$width += $line =~ s/^[\p{East_Asian_Width=W}\p{East_Asian_Width=F}]// ? 2 : $line =~ s/^.// ? 1 : 0;
	}
	utf8::encode($line);
	$line =~ s/\.\.\.$//;
	for my $start (ref $expected ? @$expected : ($expected))
	{
		my $shown = length $start < length $line ? length $start : length $line;
		return pass($name) if $shown > 0 && substr($start, 0, $shown) eq substr($line, 0, $shown);
	}
	return is($line, ref $expected ? join(' or ', @$expected) : $expected, $name);
}

# CREATE [OR REPLACE] PROCEDURE of a pipeline with this body.
sub pipeline
{
	my ($node, $db, $name, $body) = @_;
	$node->safe_psql($db,
		"CREATE OR REPLACE PROCEDURE $name() LANGUAGE pipeline AS \$pipeline\$ $body \$pipeline\$");
}

sub write_file
{
	my ($path, $content) = @_;
	open(my $fh, '>:raw', $path) or die "$path: $!";
	print $fh $content;
	close($fh);
}

# Sums over the whole log of one expectation: passed|failed.
sub counts_are
{
	my ($node, $db, $log, $rule, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql($db, qq(
		SELECT sum((e->>'passed_records')::bigint) || '|' || sum((e->>'failed_records')::bigint)
		FROM pipeline.event_log('$log') l,
			jsonb_array_elements(l.details #> '{flow_progress,data_quality,expectations}') e
		WHERE l.event_type = 'flow_progress' AND e->>'name' = '$rule')), $expected, $name);
}

1;

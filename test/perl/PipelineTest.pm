package PipelineTest;

# Shared by the TAP tests: a cluster with the library, databases with the extension, and
# checks that compare rows as psql prints them (unaligned, "|" between columns).

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(start_node fresh_db rows_are fails_with pipeline write_file counts_are);

# A running server with the library preloaded.  Extra configuration lines may be given.
sub start_node
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', join("\n",
		"shared_preload_libraries = 'pipeline'",
		"timezone = 'UTC'", "autovacuum = off", "max_prepared_transactions = 5", @conf, ''));
	$node->start;
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

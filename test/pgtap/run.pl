# Runs each test/pgtap/*.sql in its own database of one throwaway server; each file is one
# subtest.  The files hold pgTAP calls only: BEGIN, plan, finish and ROLLBACK are theirs.
use strict;
use warnings;

use File::Basename;
use PipelineTest;
use PostgreSQL::Test::Utils;
use TAP::Parser;
use Test::More;

skip_without_extension('pgtap');

my $wanted = $ENV{PIPELINE_TESTS};
my @files = grep { !$wanted || basename($_) =~ /$wanted/ } sort glob(dirname(__FILE__) . '/*.sql');
plan skip_all => 'no pgTAP file matches' if !@files;

my $node = pipeline_node('pgtap', extension => 0, cron => have_extension('pg_cron'));
my $n = 0;

for my $file (@files)
{
	subtest basename($file, '.sql') => sub {
		my $db = 'pgtap' . ++$n;
		$node->safe_psql('postgres', "CREATE DATABASE $db");
		$node->safe_psql($db, 'CREATE EXTENSION pgtap; CREATE EXTENSION pipeline');
		my ($out, $err) = ('', '');
		my $rc = $node->psql($db, slurp_file($file), stdout => \$out, stderr => \$err,
			on_error_die => 0);
		is($rc, 0, 'psql ends well') or diag($err);

		my $parser = TAP::Parser->new({ tap => $out });
		while (my $result = $parser->next)
		{
			if ($result->is_test) { ok($result->is_ok, $result->description); }
			elsif ($result->is_comment) { diag($result->comment); }
		}
		ok(!$parser->parse_errors, 'the plan is kept') or diag(join("\n", $parser->parse_errors));
	};
}

$node->stop;
done_testing();

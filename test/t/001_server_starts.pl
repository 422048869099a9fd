# The library can be preloaded, survives a restart, and refuses settings that it does not know.
use strict;
use warnings;

use PipelineTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = pipeline_node('main', extension => 0);

is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'),
	'pipeline', 'the library is preloaded');
is($node->safe_psql('postgres', 'SHOW pipeline.on_busy'), 'error', 'its settings exist');

$node->restart;
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server restarts with it');

my ($rc, $out, $err) = $node->psql('postgres', "SET pipeline.no_such_setting = 'on'");
isnt($rc, 0, 'a setting that does not exist is refused');
like($err, qr/invalid configuration parameter name/, 'with the reason');

$node->stop;
done_testing();

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

our @EXPORT = qw(pipeline_node have_extension skip_without_extension);

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
CONF
	$node->append_conf('postgresql.conf', "cron.database_name = 'postgres'\n") if $opt{cron};
	$node->append_conf('postgresql.conf', $opt{conf}) if defined $opt{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pipeline') unless defined $opt{extension} && !$opt{extension};
	return $node;
}

1;

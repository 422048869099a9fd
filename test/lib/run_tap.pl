#!/usr/bin/env perl
# run_tap.pl [--exec PROGRAM] [--jobs N] --skips FILE --counts FILE TEST...
#
# Runs TAP programs as prove does, and writes "passed failed" to the counts file.  One
# assertion is one test; a program that breaks its plan or dies adds a failure.  Every skip is
# printed with its reason; a skip that FILE does not list is a failure.
use strict;
use warnings;

use Getopt::Long;
use TAP::Harness;

my ($exec, $jobs, $skips_file, $counts_file) = (undef, 1);
GetOptions('exec=s' => \$exec, 'jobs=i' => \$jobs, 'skips=s' => \$skips_file,
	'counts=s' => \$counts_file)
	or die "bad arguments\n";

# Lines "file<TAB>part of the reason".
my @expected;
open(my $in, '<', $skips_file) or die "$skips_file: $!\n";
while (<$in>)
{
	chomp;
	next if /^\s*(#|$)/;
	my ($file, $reason) = split /\t/, $_, 2;
	die "$skips_file: no tab in \"$_\"\n" unless defined $reason;
	push @expected, [ $file, $reason ];
}
close $in;

my ($bad_skips, @reports) = (0);

sub note_skip
{
	my ($file, $reason) = @_;
	my $ok = grep { index($file, $_->[0]) >= 0 && index($reason, $_->[1]) >= 0 } @expected;
	$bad_skips++ unless $ok;
	push @reports, ($ok ? 'skipped' : 'UNEXPECTED SKIP') . ": $file: $reason";
	return;
}

# PostgreSQL's modules bail out where a server does not start.  That ends one program, which then
# counts as failed; the others still run.
{
	package PipelineHarness;
	our @ISA = ('TAP::Harness');
	sub _bailout { return; }
}

my $harness = PipelineHarness->new({
	($exec ? (exec => [$exec]) : ()),
	jobs => $jobs,
	timer => 1,
	failures => 1,
	merge => 0,
});
$harness->callback(made_parser => sub {
	my ($parser, $job) = @_;
	my $file = $job->[0];
	$parser->callback(test => sub {
		my ($test) = @_;
		note_skip($file, $test->explanation || 'no reason') if $test->has_skip;
	});
	$parser->callback(plan => sub {
		my ($plan) = @_;
		note_skip($file, $plan->explanation || 'no reason') if $plan->has_skip;
	});
});

my $result = $harness->runtests(@ARGV);
my $failed = $result->failed;
for my $parser ($result->parsers)
{
	# Died, broke its plan or said nothing, though no single assertion failed.
	$failed++ if !$parser->failed && ($parser->parse_errors || $parser->exit || $parser->wait);
}
print "$_\n" for @reports;
$failed += $bad_skips;

# An unexpected skip counts once, as the failure that it is.
my $passed = $result->passed - ($bad_skips < $result->skipped ? $bad_skips : $result->skipped);
$passed = 0 if $passed < 0;
open(my $out, '>', $counts_file) or die "$counts_file: $!\n";
print $out "$passed $failed\n";
close $out;
exit($failed ? 1 : 0);

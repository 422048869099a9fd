# Random writers, random updates: each committed row of each source is in the targets exactly once.
#
# PIPELINE_SEED repeats a run, PIPELINE_SECONDS sets how long it lasts (30).  One interpreter
# drives several sessions in turn, so a seed fixes the order of all statements.
use strict;
use warnings;
use IPC::Run;
use PipelineTest;
use Test::More;
use Time::HiRes qw(time);

my $seed = $ENV{PIPELINE_SEED} || int(time * 1000) % 1000000007;
my $seconds = $ENV{PIPELINE_SECONDS} || 30;
note("PIPELINE_SEED=$seed");
srand($seed);

my $node = pipeline_node('random', conf => "max_connections = 50\nmax_prepared_transactions = 20\n");
my (@history, $db, %next_id, @sessions, @prepared, $prepared_number);
my $bad = 0;

sub pick { return $_[ int rand @_ ]; }

# ---- sessions

sub new_session
{
	my $s = { in => '', out => '', err => '', open => 0, n => 0 };
	$s->{run} = IPC::Run::start(['psql', '-XAtq', '-d', $node->connstr($db), '-f', '-'],
		'<', \$s->{in}, '>', \$s->{out}, '2>', \$s->{err}, $s->{timer} = IPC::Run::timeout(120));
	return $s;
}

# Runs the statement, returns its error text or ''.
sub do_sql
{
	my ($number, $sql) = @_;
	my $s = $sessions[$number];
	my $mark = 'mark' . ++$s->{n} . 'x';
	my $at = time;
	push @history, "$number: $sql";
	($s->{out}, $s->{err}) = ('', '');
	$s->{timer}->start(120);
	$s->{in} .= "$sql;\n\\echo $mark\n\\warn $mark\n";
	$s->{run}->pump until $s->{out} =~ /$mark/ && $s->{err} =~ /$mark/;
	my $error = $s->{err} =~ /^(?:psql:\S+ )?(ERROR:.*?)\n(?:psql:\S+ )?mark/ms ? $1 : '';
	$history[-1] .= sprintf(' -- %.1f s', time - $at) if time - $at > 1;
	$history[-1] .= " -- $error" if $error;
	return $error;
}

sub complain
{
	my ($text) = @_;
	$bad++;
	diag("seed $seed: $text");
	diag('  ' . $_) for @history[ ($#history > 150 ? $#history - 150 : 0) .. $#history ];
}

# The statement may fail only with these.
sub try_sql
{
	my ($number, $sql, $allowed) = @_;
	my $error = do_sql($number, $sql);
	complain("unexpected error: $error\n  of: $sql") if $error && !($allowed && $error =~ $allowed);
	return $error;
}

# ---- one world: sources, pipeline, expectations

my @rules = ('', q((CONSTRAINT r EXPECT (v % 5 <> 0) ON VIOLATION DROP ROW)),
	q((CONSTRAINT r EXPECT (v % 5 <> 0) ON VIOLATION QUARANTINE ROW)));

sub build_world
{
	my ($n) = @_;
	my ($body, @streams) = ('');
	$db = fresh_db($node, "world$n");
	(@history, @prepared, %next_id) = ();
	$node->safe_psql($db, q(CREATE TABLE dim (k int PRIMARY KEY, name text); INSERT INTO dim SELECT g, 'n' || g FROM generate_series(0, 3) g));
	my $sources = 1 + int rand 3;
	for my $i (1 .. $sources)
	{
		my $kind = pick('append', 'append', 'skip');
		my $partitioned = rand() < 0.25;
		my $parts = $partitioned ? 'PARTITION BY LIST (k)' : '';
		$next_id{"s$i"} = 1;
		$node->safe_psql($db, "CREATE TABLE s$i (id int, k int, v int, t text) $parts");
		if ($partitioned)
		{
			$node->safe_psql($db, "CREATE TABLE s${i}_p$_ PARTITION OF s$i FOR VALUES IN (" . join(',', $_ * 2, $_ * 2 + 1) . ')') for 0, 1;
		}
		my $with = $kind eq 'skip' ? ' WITH (skipChangeCommits)' : '';
		my $rule = int rand @rules;
		my $stream = { source => "s$i", kind => $kind, rule => $rule, target => "a$i", partitioned => $partitioned };
		$body .= "CREATE OR REFRESH STREAMING TABLE a$i $rules[$rule] AS SELECT id, k, v FROM STREAM s$i$with;\n";
		if (rand() < 0.7)
		{
			my $join = pick('JOIN', 'LEFT JOIN');
			$body .= "CREATE OR REFRESH STREAMING TABLE b$i AS SELECT a.id, a.k, a.v, d.name FROM STREAM(a$i) a $join dim d ON d.k = a.k;\n";
			$stream->{chain} = "b$i";
			if (rand() < 0.5)
			{
				$body .= "CREATE OR REFRESH STREAMING TABLE c$i AS SELECT id, k, v FROM STREAM(b$i) WHERE v >= 0;\n";
				$stream->{chain2} = "c$i";
			}
		}
		$body .= "CREATE OR REFRESH MATERIALIZED VIEW m$i AS SELECT k, count(*) AS n, sum(v) AS v FROM a$i GROUP BY k;\n";
		$stream->{view} = ["m$i", "SELECT k, count(*) AS n, sum(v) AS v FROM a$i GROUP BY k"];
		push @streams, $stream;
	}
	my $both = join(' UNION ALL ', map { "SELECT s.id, d.name FROM s$_ s JOIN dim d USING (k)" } 1 .. $sources);
	$body .= "CREATE OR REFRESH MATERIALIZED VIEW everything AS $both;\n";
	# the views read what is there, before the sessions start to disturb
	pipeline($node, $db, 'p', $body);
	push @history, "body: $body";
	$node->safe_psql($db, 'SET pipeline.messages = quiet; CALL p()');
	@sessions = map { new_session() } 0 .. 3;
	$_->{open} = 0 for @sessions;
	try_sql($_, "SET pipeline.messages = quiet; SET lock_timeout = '300ms'") for 0 .. $#sessions;
	return { streams => \@streams, views => [ [ 'everything', $both ], map { $_->{view} } @streams ] };
}

# ---- steps

sub insert_sql
{
	my ($source) = @_;
	my $from = $next_id{$source};
	my $count = pick(1, 1, 2, 5, 30, 300);
	$next_id{$source} += $count;
	return "INSERT INTO $source (id, k, v, t) SELECT g, g % 4, g % 23, repeat('x', g % 50) FROM generate_series($from, "
		. ($from + $count - 1) . ') g';
}

my $write_error = qr/deadlock|lock timeout|current transaction is aborted|could not serialize|could not obtain/;

sub write_step
{
	my ($number, $stream) = @_;
	my $s = $sessions[$number];
	my $source = $stream->{source};
	my $what = rand();
	if ($what < 0.70)
	{
		return insert_sql($source);
	}
	elsif ($what < 0.80)
	{
		# no net change: a row that comes and goes within the transaction
		my $id = $next_id{$source}++;
		my $wrap = $s->{open} ? ['', ''] : ['BEGIN; ', '; COMMIT'];
		return $wrap->[0] . "INSERT INTO $source (id, k, v) VALUES ($id, 1, 1); "
			. pick("DELETE FROM $source WHERE id = $id", "UPDATE $source SET v = v + 1, t = 'again' WHERE id = $id") . $wrap->[1];
	}
	elsif ($stream->{kind} eq 'skip' && !$s->{called})
	{
		$s->{changed} = $s->{open};
		return pick("UPDATE $source SET t = 'changed' WHERE id % 10 = " . int(rand 10),
			"DELETE FROM $source WHERE id % 50 = " . int(rand 50));
	}
	return "UPDATE $source SET v = 1 WHERE id < 0";
}

sub step
{
	my ($world) = @_;
	my $number = int rand @sessions;
	my $s = $sessions[$number];
	my $stream = pick(@{ $world->{streams} });
	my $what = rand();
	my $error = '';

	if ($what < 0.45)
	{
		my $sql = write_step($number, $stream);
		# an INSERT has nobody to wait for, whatever the datasets do
		$error = try_sql($number, $sql, $sql =~ /^INSERT[^;]*$/ ? undef : $write_error);
	}
	elsif ($what < 0.53 && !$s->{open})
	{
		try_sql($number, 'BEGIN ' . pick('', '', 'ISOLATION LEVEL REPEATABLE READ'));
		$s->{open} = 1;
		$s->{saves} = 0;
		return;
	}
	elsif ($what < 0.66 && $s->{open})
	{
		my $how = rand();
		if ($how < 0.2)
		{
			$error = try_sql($number, 'SAVEPOINT s' . ++$s->{saves}, $write_error);
		}
		elsif ($how < 0.35 && $s->{saves})
		{
			try_sql($number, 'ROLLBACK TO s' . $s->{saves}, $write_error);
			return;
		}
		else
		{
			end_transaction($number, $how);
			return;
		}
	}
	elsif ($what < 0.80)
	{
		# rows that were delivered cannot be skipped any more when their transaction turns out to
		# change older rows: of updates and changes a transaction has one kind only
		return if $s->{changed};
		$s->{called} = $s->{open};
		# an update; inside of a transaction it is atomic, and may meet another one
		$error = try_sql($number, 'CALL p()', qr/running already|updated by this session|could not serialize|$write_error/);
	}
	elsif ($what < 0.84 && @prepared)
	{
		my $name = splice(@prepared, int rand @prepared, 1);
		try_sql($number, pick('COMMIT', 'COMMIT', 'ROLLBACK') . " PREPARED '$name'") unless $s->{open};
		push @prepared, $name if $s->{open};
		return;
	}
	elsif ($what < 0.88)
	{
		$error = try_sql($number, pick(q(UPDATE dim SET name = name || 'x' WHERE k = ) . int(rand 4),
			'DELETE FROM dim WHERE k = 3', q(INSERT INTO dim VALUES (3, 'again') ON CONFLICT DO NOTHING)), $write_error);
	}
	elsif ($what < 0.93 && !$s->{open} && !grep({ $_->{open} } @sessions) && !@prepared)
	{
		my $source = $stream->{source};
		$s->{columns}++;
		my @rewrites = ("VACUUM FULL $stream->{target}", "VACUUM $source", "ANALYZE $source",
			"ALTER TABLE $source ADD COLUMN x" . $next_id{$source}++ . ' int', "VACUUM FULL pipeline_internal.log_headers",
			"DROP INDEX IF EXISTS ${source}_i; CREATE INDEX ${source}_i ON $source (id)");
		push @rewrites, "VACUUM FULL $source" , "CREATE INDEX IF NOT EXISTS ${source}_c ON $source (v); CLUSTER $source USING ${source}_c"
			unless $stream->{partitioned};
		try_sql($number, pick(@rewrites), $write_error);
		check($world) if rand() < 0.3;
		return;
	}
	else
	{
		return;
	}
	if ($error && $s->{open})
	{
		do_sql($number, 'ROLLBACK');
		$s->{open} = $s->{called} = $s->{changed} = 0;
	}
	return;
}

sub end_transaction
{
	my ($number, $how) = @_;
	my $s = $sessions[$number];
	if ($how > 0.9)
	{
		my $name = 'x' . ++$prepared_number;
		my $error = do_sql($number, "PREPARE TRANSACTION '$name'");
		push @prepared, $name unless $error;
		complain("PREPARE: $error") if $error && $error !~ /LISTEN|temporary|session-level|both|aborted/;
	}
	else
	{
		try_sql($number, $how < 0.75 ? 'COMMIT' : 'ROLLBACK', qr/could not serialize/);
	}
	$s->{open} = $s->{called} = $s->{changed} = 0;
	return;
}

# ---- the truth

# Rows that a stream must have delivered are kept by a trigger of our own: of each transaction
# its net new rows, unless it changed older rows and the stream skips such commits.
sub shadow
{
	my ($world) = @_;
	for my $stream (@{ $world->{streams} })
	{
		my $t = $stream->{source};
		my $skip = $stream->{kind} eq 'skip';
		$node->safe_psql($db, qq(
			CREATE TABLE truth_$t (xid xid8, sign int, id int, k int, v int, t text);
			INSERT INTO truth_$t SELECT '3'::xid8, 1, id, k, v, t FROM $t;
			CREATE FUNCTION note_$t() RETURNS trigger LANGUAGE plpgsql AS \$f\$
			BEGIN
				IF TG_OP <> 'INSERT' THEN INSERT INTO truth_$t VALUES (pg_current_xact_id(), -1, OLD.id, OLD.k, OLD.v, OLD.t); END IF;
				IF TG_OP <> 'DELETE' THEN INSERT INTO truth_$t VALUES (pg_current_xact_id(), 1, NEW.id, NEW.k, NEW.v, NEW.t); END IF;
				RETURN NULL;
			END \$f\$;
			CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON $t FOR EACH ROW EXECUTE FUNCTION note_$t();
			CREATE VIEW due_$t AS
			WITH net AS (SELECT xid, id, k, v, t, sum(sign) AS n FROM truth_$t GROUP BY xid, id, k, v, t HAVING sum(sign) <> 0),
				changed AS (SELECT DISTINCT xid FROM net WHERE n < 0)
			SELECT id, k, v FROM net, generate_series(1, n) WHERE n > 0 ) . ($skip ? 'AND xid NOT IN (SELECT xid FROM changed)' : ''));
	}
}

sub differ
{
	my ($name, $a, $b) = @_;
	$_ = "($_)" for $a, $b;
	my $n = $node->safe_psql($db, "SELECT (SELECT count(*) FROM ($a EXCEPT ALL $b) x), (SELECT count(*) FROM ($b EXCEPT ALL $a) x)");
	return if $n eq '0|0';
	complain("$name: missing|too many = $n");
	diag($node->safe_psql($db, "SELECT 'missing', * FROM ($a EXCEPT ALL $b) x UNION ALL SELECT 'too many', * FROM ($b EXCEPT ALL $a) y LIMIT 10"));
	return;
}

sub check
{
	my ($world) = @_;
	push @history, 'check';
	my ($out, $err);
	if ($node->psql($db, q(SET pipeline.messages = quiet; SET lock_timeout = '20s'; CALL p()), stdout => \$out, stderr => \$err, on_error_stop => 1) != 0)
	{
		# an open or prepared transaction may hold the pipeline
		complain("update of the check: $err")
			unless $err =~ /running already/ && (@prepared || grep { $_->{open} } @sessions);
		return;
	}
	for my $s (@{ $world->{streams} })
	{
		my $due = "SELECT id, k, v FROM due_$s->{source}";
		my $kept = $s->{rule} ? "$due WHERE (v % 5 <> 0) IS TRUE" : $due;
		differ("$s->{target} of $s->{source}", $kept, "SELECT id, k, v FROM $s->{target}");
		differ("quarantine of $s->{target}", "$due WHERE (v % 5 <> 0) IS NOT TRUE", "SELECT id, k, v FROM $s->{target}_quarantine")
			if $s->{rule} == 2;
		differ("chain $s->{chain2}", "SELECT id, k, v FROM $s->{chain} WHERE v >= 0", "SELECT id, k, v FROM $s->{chain2}") if $s->{chain2};
		if ($s->{chain})
		{
			# rows whose partner was missing at the time may be absent, none may be there twice
			my $extra = $node->safe_psql($db, "SELECT count(*) FROM (SELECT id, k, v FROM $s->{chain} EXCEPT ALL SELECT id, k, v FROM $s->{target}) x");
			complain("$s->{chain} has $extra rows too many") if $extra ne '0';
			my $lost = $node->safe_psql($db, "SELECT count(*) FROM (SELECT id, k, v FROM $s->{target} WHERE k <> 3 EXCEPT ALL SELECT id, k, v FROM $s->{chain}) x");
			complain("$s->{chain} misses $lost rows") if $lost ne '0';
		}
	}
	differ("view $_->[0]", $_->[1], "SELECT * FROM $_->[0]") for @{ $world->{views} };
	return;
}

sub close_world
{
	my ($world) = @_;
	for my $number (0 .. $#sessions)
	{
		try_sql($number, pick('COMMIT', 'ROLLBACK'), qr/could not serialize/) if $sessions[$number]{open};
		$sessions[$number]{open} = 0;
	}
	try_sql(0, pick('COMMIT', 'ROLLBACK') . " PREPARED '$_'") for @prepared;
	@prepared = ();
	check($world);
	my $counts = $node->safe_psql($db, join(' UNION ALL ', map { "SELECT count(*) FROM due_$_->{source}" } @{ $world->{streams} }));
	return $counts =~ tr/\n/ /r;
}

# TRUNCATE ends a stream with an error that loses nothing, unless it skips such commits.
sub truncate_source
{
	my ($world) = @_;
	my $s = $world->{streams}[0];
	my $before = $node->safe_psql($db, "SELECT count(*) FROM $s->{target}");
	# of an empty table it changes nothing
	$node->safe_psql($db, insert_sql($s->{source}) . '; SET pipeline.messages = quiet; CALL p()');
	$before = $node->safe_psql($db, "SELECT count(*) FROM $s->{target}");
	try_sql(0, "TRUNCATE $s->{source}");
	try_sql(0, insert_sql($s->{source}));
	if ($s->{kind} eq 'skip')
	{
		check($world);
		return;
	}
	my $error = do_sql(0, 'CALL p()');
	complain("TRUNCATE: \"$error\"") if $error !~ /lost its place|not append-only/;
	my $after = $node->safe_psql($db, "SELECT count(*) FROM $s->{target}");
	complain("TRUNCATE: $before rows became $after") if $before ne $after;
}

my $started = time;
my ($worlds, $steps) = (0, 0);
while (time - $started < $seconds && !$bad)
{
	my $world = build_world(++$worlds);
	shadow($world);
	# by steps, not by time: a seed makes the same worlds again
	for (my $here = 0; $here < 200 && !$bad; $here++)
	{
		step($world);
		$steps++;
		check($world) if rand() < 0.02;
	}
	my $rows = $bad ? '?' : close_world($world);
	truncate_source($world) if !$bad;
	for my $s (@sessions)
	{
		$s->{in} .= "\\q\n";
		eval { $s->{run}->finish; };
	}
	is($bad, 0, "world $worlds, rows $rows");
}
cmp_ok($steps, '>', 20, "$steps steps");

$node->stop;
done_testing();

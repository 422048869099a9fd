#!/usr/bin/env bash
# The install script: guard line first; plain CREATE, no OR REPLACE and no IF NOT EXISTS (they
# would adopt what another role put there before); COMMENT ON for every object; every function
# states volatility, strictness and parallel safety.
# Fix: write the missing clause; a function that takes nulls says CALLED ON NULL INPUT.
for script in pipeline--*.sql; do
  perl -0777 -e '
    my $file = shift;
    open(my $in, "<", $file) or die "$file: $!\n";
    my $text = <$in>;
    my ($guard) = $text =~ /^((?:\s*--[^\n]*\n|\s*\/\*.*?\*\/[ \t]*\n|\s*\n)*+[^\n]*)/s;
    print "$file:1: the first statement is not the guard \\echo ... \\quit\n"
      unless $guard =~ /^\\echo .*\\quit\s*$/m;

    # Cut into statements; bodies in dollar quotes and in literals are blanked, so that words in
    # them are no clauses, and line breaks are kept for the line numbers.
    sub blank { my $s = shift; $s =~ s/[^\n]/ /g; return $s; }
    my $code = $text;
    $code =~ s{(--[^\n]*)|(/\*.*?\*/)|(\$(\w*)\$.*?\$\4\$)|(\x27(?:[^\x27]|\x27\x27)*\x27)|(^\\[^\n]*)}
      { defined $1 || defined $2 || defined $6 ? blank($&)
          : defined $3 ? "\$\$" . blank(substr($&, 4)) . "\$\$"
          : "\x27" . blank(substr($&, 2)) . "\x27" }gmsex;
    my ($line, @statements) = (1);
    for my $piece (split /(;)/, $code) {
      if ($piece eq ";") { next; }
      my ($lead) = $piece =~ /^(\s*)/;
      my $at = $line + ($lead =~ tr/\n//);
      $line += ($piece =~ tr/\n//);
      (my $s = $piece) =~ s/\s+/ /g;
      $s =~ s/^ | $//g;
      push @statements, [ $at, $s ] if length $s;
    }

    # SQL-standard bodies (BEGIN ATOMIC … END) hold semicolons; glue them.
    my @glued;
    for my $st (@statements) {
      if (@glued && $glued[-1][1] =~ /\bBEGIN ATOMIC\b/i && $glued[-1][1] !~ /\bEND$/i) {
        $glued[-1][1] .= " ; $st->[1]";
      } else { push @glued, [@$st]; }
    }

    my (%commented, @objects);
    my $norm = sub {
      my $s = lc shift; $s =~ s/"//g; $s =~ s/\s+//g; return $s;
    };
    for my $st (@glued) {
      my ($at, $s) = @$st;
      print "$file:$at: OR REPLACE\n" if $s =~ /^CREATE OR REPLACE\b/i;
      print "$file:$at: IF NOT EXISTS\n" if $s =~ /\bIF NOT EXISTS\b/i;
      if ($s =~ /^COMMENT ON (TABLE|VIEW|TYPE|SCHEMA|SEQUENCE|DOMAIN|LANGUAGE|EVENT TRIGGER|PROCEDURE|FUNCTION|ROUTINE|AGGREGATE|INDEX) ([\w."]+)/i) {
        my ($kind, $name) = (lc $1, $norm->($2));
        $kind = "routine" if $kind =~ /^(procedure|function|routine|aggregate)$/;
        $commented{"$kind $name"}++;
      }
      next unless $s =~ /^CREATE (?:OR REPLACE )?(?:UNLOGGED |TRUSTED )?(TABLE|VIEW|TYPE|SCHEMA|SEQUENCE|DOMAIN|LANGUAGE|EVENT TRIGGER|PROCEDURE|FUNCTION|AGGREGATE) (?:IF NOT EXISTS )?([\w."]+)/i;
      my ($kind, $name) = (lc $1, $norm->($2));
      my $routine = $kind =~ /^(procedure|function|aggregate)$/;
      push @objects, [ $at, $kind, ($routine ? "routine" : $kind) . " $name" ];
      if ($kind eq "function") {
        # The clauses stand before or after the body, never inside it: bodies are blank.
        (my $clauses = $s) =~ s/\bBEGIN ATOMIC\b.*$//i;
        print "$file:$at: $name states no volatility\n"
          unless $clauses =~ /\b(IMMUTABLE|STABLE|VOLATILE)\b/i;
        print "$file:$at: $name states no strictness (STRICT or CALLED ON NULL INPUT)\n"
          unless $clauses =~ /\b(STRICT|CALLED ON NULL INPUT|RETURNS NULL ON NULL INPUT)\b/i;
        print "$file:$at: $name states no parallel safety\n"
          unless $clauses =~ /\bPARALLEL (SAFE|RESTRICTED|UNSAFE)\b/i;
      }
    }
    # Overloads: as many comments as definitions.
    my %seen;
    for my $o (@objects) {
      my ($at, $kind, $key) = @$o;
      print "$file:$at: no COMMENT ON for $kind ", $key =~ s/^\S+ //r, "\n"
        if ++$seen{$key} > ($commented{$key} || 0);
    }
  ' "$script"
done
exit 0

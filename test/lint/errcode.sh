#!/usr/bin/env bash
# Every ereport(ERROR has an errcode; primary messages start lower case and end without a stop.
# Fix: choose the SQLSTATE from the table of docs/architecture.md or base/errors.h.
# errcode_for_* and a call through a macro PLN_ERR… inside errcode() count; a rethrown ErrorData
# is no ereport.
find src \( -name '*.[chy]' \) ! -name 'gram.[ch]' -print0 | sort -z |
  xargs -0 perl -0777 -ne '
    my $text = $_;
    # Comments out, line breaks kept.
    $text =~ s{/\*.*?\*/}{ my $c = $&; $c =~ s/[^\n]//g; $c }gse;
    while ($text =~ /\bereport(?:_domain)?\s*(\((?:[^()"\x27]++|"(?:[^"\\]|\\.)*+"|\x27(?:[^\x27\\]|\\.)*+\x27|(?1))*\))/gs) {
      my ($call, $line) = ($1, 1 + (substr($text, 0, $-[0]) =~ tr/\n//));
      print "$ARGV:$line: ereport without errcode\n"
        if $call =~ /^\(\s*(?:ERROR|FATAL)\b/ && $call !~ /\berrcode(?:_for_\w+)?\s*\(/;
      while ($call =~ /\berrmsg(?:_internal)?\s*\(\s*"((?:[^"\\]|\\.)*)"/g) {
        my $msg = $1;
        print "$ARGV:$line: message starts upper case: $msg\n"
          if $call =~ /^\(\s*(?:ERROR|FATAL|WARNING)\b/ && $msg =~ /^[A-Z][a-z]/;
        print "$ARGV:$line: message ends with a stop: $msg\n"
          if $call =~ /^\(\s*(?:ERROR|FATAL)\b/ && $msg =~ /\.$/;
      }
      while ($call =~ /\berr(?:detail|hint)\s*\(\s*"((?:[^"\\]|\\.)*)"\s*[,)]/g) {
        my $msg = $1;
        print "$ARGV:$line: detail or hint starts lower case: $msg\n" if $msg =~ /^[a-z]+ /;
      }
    }
  '
exit 0

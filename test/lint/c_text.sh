#!/usr/bin/env bash
# The text of C files: no // comments, no line over 100 columns (tabs are 4), no blanks at line
# ends, indentation by tabs, a file header that names the file, at most 1,200 lines unless the
# header says why.
# Fix: as said; the body of a comment or a string may not be longer either.
find src \( -name '*.[chy]' \) ! -name 'gram.[ch]' -print0 | sort -z |
  xargs -0 perl -CSD -Mopen=:utf8 -ne '
    if ($. == 1) {
      ($long, $named, $first) = (0, 0, $_);
      ($base = $ARGV) =~ s{.*/}{};
      ($comment, $why) = (0, 0);
    }
    chomp;
    my $line = $_;
    $named = 1 if $. <= 3 && index($line, $base) >= 0;
    $why = 1 if $. <= 40 && $line =~ /\blines\b.*\bbecause\b|\bone file because\b/i;
    1 while $line =~ s/\t/" " x (4 - length($`) % 4)/e;
    print "$ARGV:$.: ", length($line), " columns\n" if length($line) > 100;
    print "$ARGV:$.: blanks at the end\n" if /[ \t]$/;
    print "$ARGV:$.: indented by blanks\n" if /^ {2,}\S/ && !$comment && !/^ \*/;
    # Strings and block comments of this line out, then look for //.
    my $code = $_;
    $code =~ s/"(?:[^"\\]|\\.)*"/""/g;
    if ($comment) { $comment = 0 if $code =~ s{^.*?\*/}{}; }
    if (!$comment) {
      $code =~ s{/\*.*?\*/}{}g;
      $comment = 1 if $code =~ s{/\*.*$}{};
      print "$ARGV:$.: // comment\n" if $code =~ m{//};
    }
    if (eof) {
      print "$ARGV:1: the file header does not name the file\n" unless $named;
      print "$ARGV:$.: more than 1200 lines\n" if $. > 1200 && !$why;
      close ARGV;
    }
  '
exit 0

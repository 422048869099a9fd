#!/usr/bin/env bash
# Shell and Perl files parse; those that are called are executable.
# Fix: as the message says; chmod +x.
for f in scripts/*.sh test/lint/*.sh test/lint/run bench/*.sh .ci/run; do
  [ -e "$f" ] || continue
  bash -n "$f" 2>&1
  case $f in
    */lib.sh | test/lint/*.sh) ;;
    *) [ -x "$f" ] || echo "$f: not executable" ;;
  esac
done
# Without PostgreSQL's own Perl modules only our own are checked: syntax needs what is imported.
for f in test/lib/*.pl; do
  perl -c "$f" 2>&1 | grep -v 'syntax OK$'
done
exit 0

#!/usr/bin/env bash
# Commit subjects have at most 60 characters and no stop at the end.  Outside a git clone there
# is nothing to look at.
# Fix: git commit --amend, before it is published.
git -c safe.directory='*' rev-parse HEAD >/dev/null 2>&1 || exit 0
git -c safe.directory='*' log --no-merges --format='%h %s' |
  awk '{ s = substr($0, length($1) + 2) } length(s) > 60 || s ~ /\.$/ { print $1 ": " s }'
exit 0

#!/usr/bin/env bash
# The tree and its commit messages speak about the software, not about who or what wrote them,
# and name no path of somebody's machine.
# Fix: say it without; in a commit message, before it is published, by git commit --amend.
words='\b(assistant|chatbot|language model|large language|sub-?agent)s?\b|co-authored-by:|generated (with|by) (an? )?(ai|model)\b|as an ai\b'
paths='/(work|root|mnt|Users)/[A-Za-z0-9_.-]+|/home/[a-z][a-z0-9_-]*/|/tmp/(pgsrc|infra|bash_jobs)'
self=test/lint/words.sh

files() {
  if git -c safe.directory='*' rev-parse --git-dir >/dev/null 2>&1; then
    git -c safe.directory='*' ls-files -co --exclude-standard -z
  else
    find . -type f ! -name '*.o' ! -name '*.so' ! -name '*.d' -printf '%P\0'
  fi
}
files | grep -zvxF "$self" | xargs -0 grep -nIiE -e "$words" 2>/dev/null
files | grep -zvxF "$self" | xargs -0 grep -nIE -e "(^|[^A-Za-z0-9_.:/}\$])$paths" 2>/dev/null

if git -c safe.directory='*' rev-parse HEAD >/dev/null 2>&1; then
  git -c safe.directory='*' log --format='%h %B' | grep -iE -e "$words" | sed 's|^|commit message: |'
  git -c safe.directory='*' log --format='%h %B' | grep -E -e "(^|[^A-Za-z0-9_.:/])$paths" |
    sed 's|^|commit message: |'
fi
exit 0

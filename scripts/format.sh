#!/usr/bin/env bash
# format.sh [--check] - clang-format over the lines that differ from FORMAT_BASE (default HEAD).
#
# Only those lines: clang-format cannot align declarations as pgindent does, so a whole file
# never comes out unchanged.  --check prints what would change and ends with 1.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
command -v git-clang-format >/dev/null ||
  die "no git-clang-format; install it with: apt-get install clang-format"

export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
base=${FORMAT_BASE:-HEAD}
if [ "${1:-}" != --check ]; then
  exec git clang-format --extensions c,h "$base" -- src
fi
change=$(git clang-format --diff --extensions c,h "$base" -- src)
case $change in
  '' | 'no modified files to format' | *'did not modify any files') exit 0 ;;
esac
printf '%s\n' "$change"
exit 1

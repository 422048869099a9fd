#!/usr/bin/env bash
# coverage.sh - which lines the tests reach: a table here, annotated sources in coverage/.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

export PIPELINE_WORK
PIPELINE_WORK=$(pln_work_dir pipeline-coverage)
trap 'rm -rf "$PIPELINE_WORK"' EXIT

status=0
"$ROOT/scripts/test.sh" --suites "regress isolation tap pgtap" --label coverage \
  --make 'EXTRA_CFLAGS=-O0 --coverage' --make 'EXTRA_LDFLAGS=--coverage' || status=$?

rm -rf "$ROOT/coverage"
mkdir -p "$ROOT/coverage"
cd "$PIPELINE_WORK/src"
# Servers write a file's counts only when they ran it; a file without counts was never loaded.
find . -name '*.gcda' -exec gcov -p {} + 2>/dev/null |
  awk -F"'" '
    /^File/ { file = $2 }
    /^Lines executed/ {
      split($0, part, /[:% ]+/)
      if (file ~ /^src\/.*\.[cy]$/) {
        lines = $0; sub(/.* of /, "", lines)
        printf "%6.1f%% %6d  %s\n", part[3], lines, file
        covered += part[3] * lines / 100; total += lines
      }
      file = ""
    }
    END { if (total) printf "%6.1f%% %6d  all\n", 100 * covered / total, total }' |
  sort -k3,3 | awk '$3 == "all" { all = $0; next } { print } END { print all }' | tee "$ROOT/coverage/summary.txt"
cp ./*src#*.gcov "$ROOT/coverage/" 2>/dev/null || true
exit "$status"

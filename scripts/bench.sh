#!/usr/bin/env bash
# bench.sh [NAME...] - run bench/NAME.sh, or all of them, each in throwaway servers of its own.
#   BENCH_ROUNDS=7  BENCH_ROWS=2000000
# Prints TSV; a benchmark that cannot run is named, and the exit status is then 1.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

names=("$@")
if [ ${#names[@]} = 0 ]; then
  mapfile -t names < <(cd "$ROOT/bench" && ls ./*.sh | sed 's|^\./||; s/\.sh$//' | grep -vx lib)
fi
export BENCH_WORK
BENCH_WORK=$(pln_work_dir pipeline-bench)
trap 'rm -rf "$BENCH_WORK"' EXIT
trap 'exit 130' INT TERM

status=0
printf 'figure\tours\tpeer\tratio\tbudget\tverdict\n'
for name in "${names[@]}"; do
  [ -e "$ROOT/bench/$name.sh" ] || die "no bench/$name.sh"
  bash "$ROOT/bench/$name.sh" </dev/null || { echo "bench.sh: $name failed" >&2; status=1; }
done
exit $status

#!/usr/bin/env bash
# test.sh - build, install into a private copy of PostgreSQL, run the suites, count.
#
#   scripts/test.sh [--suites "lint regress isolation tap pgtap"] [--tests REGEX]
#                   [--make VAR=VALUE]... [--label TEXT]
#
# The last line is "N passed, N failed"; the exit status is 1 when anything failed.  A regress
# file, an isolation spec, a lint rule and a TAP assertion count one each.
#   PIPELINE_WORK=DIR   keep build and results in DIR (below /tmp when root), so that the next
#                       run compiles only what changed
#   PIPELINE_JOBS=N     how many compilers and TAP programs run at once
# After a failure diffs and server logs are in tmp_check/ of the tree.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

suites="lint regress isolation tap pgtap"
tests=
label=
make_args=()
while [ $# -gt 0 ]; do
  case $1 in
    --suites) [ -z "$2" ] || suites=$2; shift 2 ;;
    --tests) tests=$2; shift 2 ;;
    --make) make_args+=("$2"); shift 2 ;;
    --label) label=" ($2)"; shift 2 ;;
    *) die "unknown argument $1" ;;
  esac
done

# No suite may hang for ever: each has this many seconds.
suite_timeout=${PIPELINE_SUITE_TIMEOUT:-1500}

if [ -n "${PIPELINE_WORK:-}" ]; then
  work=$PIPELINE_WORK
  pln_make_dir "$work"
  rm -rf "$work/out"
else
  work=$(pln_work_dir pipeline-test)
fi

cleanup() {
  local pidfile
  # Servers that a broken run left behind.
  while IFS= read -r pidfile; do
    kill -INT "$(head -n 1 "$pidfile")" 2>/dev/null || true
  done < <(find "$work" -name postmaster.pid 2>/dev/null)
  [ -n "${PIPELINE_WORK:-}" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

src=$work/src
out=$work/out
pln_install_copy "$work/inst"
pln_copy_tree "$src"
pln_make_dir "$out"
cd "$src"

total_passed=0
total_failed=0
summary=()

# count SUITE PASSED FAILED
count() {
  total_passed=$((total_passed + $2))
  total_failed=$((total_failed + $3))
  summary+=("$(printf '%-10s %5d passed, %d failed' "$1" "$2" "$3")")
}

# The server's own complaints are failures of the suite that provoked them.
# check_log SUITE DIR
check_log() {
  local found
  found=$(grep -rhE --include='*.log' 'TRAP: |runtime error: |AddressSanitizer' "$2" | sort -u |
    head -n 20 || true)
  [ -n "$found" ] || return 0
  echo "$found"
  count "$1 log" 0 1
}

# schedule FILE: names of the tests in it that --tests selects
schedule() {
  sed -n 's/^test:[[:space:]]*//p' "$1" | tr ' ' '\n' | { grep -E -- "${tests:-.}" || true; }
}

# run_regress SUITE PROGRAM INPUTDIR SCHEDULE
run_regress() {
  local suite=$1 program=$2 input=$3 names name passed
  mapfile -t names < <(schedule "$4")
  if [ ${#names[@]} = 0 ]; then
    [ -n "$tests" ] || die "$4 lists no test"
    return 0
  fi
  # pg_regress gives up at a missing expected file; an empty one makes it a failure like others.
  for name in "${names[@]}"; do
    [ -e "$input/expected/$name.out" ] || as_user touch "$input/expected/$name.out"
  done
  pln_make_dir "$out/$suite"
  pln_test_conf "$out/$suite.conf"
  # pg_regress sets PGTZ and PGDATESTYLE for its clients; the tests see what users see.
  as_user timeout -k 10 "$suite_timeout" "$program" \
    --bindir="$PLN_BIN" --inputdir="$input" --outputdir="$out/$suite" \
    --temp-instance="$out/$suite/instance" --temp-config="$out/$suite.conf" \
    --encoding=UTF8 --no-locale --dbname=contrib_regression \
    --launcher='env -u PGTZ -u PGDATESTYLE -u PGOPTIONS' \
    "${names[@]}" </dev/null >"$out/$suite.out" 2>&1 || true
  grep -E '^(test|    ) |^(ok|not ok) ' "$out/$suite.out" || cat "$out/$suite.out"
  # One line a test, in the form of 15 and in that of 16 and later.
  passed=$(grep -cE '^test .* \.\.\. ok |^ok [0-9]' "$out/$suite.out" || true)
  count "$suite" "$passed" $((${#names[@]} - passed))
  if [ "$passed" != ${#names[@]} ]; then
    if [ -s "$out/$suite/regression.diffs" ]; then
      head -n 400 "$out/$suite/regression.diffs"
    else
      tail -n 30 "$out/$suite.out"
      tail -n 30 "$out/$suite/log/postmaster.log" 2>/dev/null || true
    fi
  fi
  check_log "$suite" "$out/$suite/log"
}

# run_tap SUITE FILE...
run_tap() {
  local suite=$1 passed failed jobs
  shift
  jobs=$(pln_jobs)
  pln_make_dir "$out/$suite"
  as_user env PATH="$PLN_BIN:$PATH" PERL5LIB="$PLN_PGXS_TEST/perl:$src/test/lib" \
    TESTDIR="$out/$suite" PGPORT=65432 PG_REGRESS="$PLN_PGXS_TEST/regress/pg_regress" \
    PG_TEST_TIMEOUT_DEFAULT="${PG_TEST_TIMEOUT_DEFAULT:-120}" PIPELINE_TESTS="$tests" \
    timeout -k 10 "$suite_timeout" perl test/lib/run_tap.pl --jobs "$((jobs > 2 ? 2 : jobs))" \
    --skips test/expected_skips --counts "$out/$suite.counts" "$@" </dev/null || true
  read -r passed failed <"$out/$suite.counts" 2>/dev/null || { passed=0 failed=1; }
  count "$suite" "$passed" "$failed"
  check_log "$suite" "$out/$suite"
}

run_lint() {
  local passed failed
  pln_make_dir "$out/lint"
  # In the tree itself: commit messages are looked at too.
  (cd "$ROOT" && PG_CONFIG=$PLN_PG_CONFIG PLN_SO=$src/pipeline.so PIPELINE_TESTS=$tests \
    perl test/lib/run_tap.pl --exec bash --skips test/expected_skips \
    --counts "$out/lint.counts" test/lint/run </dev/null) || true
  read -r passed failed <"$out/lint.counts" 2>/dev/null || { passed=0 failed=1; }
  count lint "$passed" "$failed"
}

finish() {
  echo
  printf '%s\n' "${summary[@]}"
  if [ "$total_failed" != 0 ]; then
    rm -rf "$ROOT/tmp_check"
    if mkdir -p "$ROOT/tmp_check" 2>/dev/null; then
      # Diffs and logs, not the data directories.
      (cd "$out" && find . \( -name '*.diffs' -o -name '*.out' -o -name '*.log' \
        -o -name 'regress_log_*' \) -type f -print0 | tar --null -T - -cf -) |
        tar -C "$ROOT/tmp_check" --no-same-owner -xf -
      echo "diffs and logs are in tmp_check/"
    fi
  fi
  echo "$total_passed passed, $total_failed failed"
  [ "$total_failed" = 0 ]
}

echo "== build$label"
if ! pln_build "$src" "${make_args[@]}" </dev/null; then
  count build 0 1
  finish
  exit 1
fi

for suite in $suites; do
  echo "== $suite$label"
  case $suite in
    lint) run_lint ;;
    regress)
      run_regress regress "$PLN_PGXS_TEST/regress/pg_regress" . test/regress_schedule ;;
    isolation)
      run_regress isolation "$PLN_PGXS_TEST/isolation/pg_isolation_regress" test \
        test/isolation_schedule ;;
    tap)
      mapfile -t files < <(ls test/t/*.pl | { grep -E -- "${tests:-.}" || true; })
      [ ${#files[@]} = 0 ] || run_tap tap "${files[@]}" ;;
    pgtap)
      if [ -z "$tests" ] || ls test/pgtap | grep -qE -- "$tests"; then
        run_tap pgtap test/pgtap/run.pl
      fi ;;
    *) die "unknown suite $suite" ;;
  esac
done
[ ${#summary[@]} != 0 ] || die "no test matches \"$tests\""
finish

# lib.sh - what the benchmarks share.  A benchmark sources it, starts servers, takes samples in
# interleaved rounds and reports medians; its output is TSV without a header:
#   figure  ours  peer  ratio  budget  ok|short
# Times are milliseconds.  Benchmarks are no tests: "short" is a finding, not a failure.

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

BENCH_ROUNDS=${BENCH_ROUNDS:-7}
BENCH_ROWS=${BENCH_ROWS:-2000000}

# Build once per run; scripts/bench.sh hands its work directory down.
if [ -n "${BENCH_WORK:-}" ]; then
  bench_work=$BENCH_WORK
else
  bench_work=$(pln_work_dir pipeline-bench)
fi
bench_dir=$(pln_work_dir pipeline-bench-run)
bench_servers=()

bench_cleanup() {
  local server
  for server in "${bench_servers[@]}"; do pln_cluster_stop "$bench_dir/$server" || true; done
  rm -rf "$bench_dir"
  [ -n "${BENCH_WORK:-}" ] || rm -rf "$bench_work"
}
trap bench_cleanup EXIT
trap 'exit 130' INT TERM

pln_install_copy "$bench_work/inst"
if [ ! -e "$bench_work/built" ]; then
  pln_copy_tree "$bench_work/src"
  (cd "$bench_work/src" && pln_build "$bench_work/src") </dev/null >&2
  touch "$bench_work/built"
fi

# bench_server NAME [plain]: a running throwaway server, with our library unless plain.
bench_server() {
  local preload
  preload=pipeline
  [ "${2:-}" != plain ] || preload=
  pln_cluster_init "$bench_dir/$1" 5432 <<CONF
fsync = off
shared_buffers = 1GB
work_mem = 64MB
maintenance_work_mem = 256MB
max_wal_size = 16GB
checkpoint_timeout = 1h
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
shared_preload_libraries = '$preload'
CONF
  bench_servers+=("$1")
  pln_cluster_start "$bench_dir/$1"
  [ -z "$preload" ] || sql "$1" 'CREATE EXTENSION pipeline'
}

# client SERVER [psql arguments]
client() {
  local server=$1
  shift
  (cd / && as_user "$PLN_BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$bench_dir/$server" \
    -p 5432 -U postgres postgres "$@")
}

# sql SERVER STATEMENTS
sql() {
  client "$1" <<<"SET client_min_messages = warning; $2;" >/dev/null
}

# timed SERVER SETUP STATEMENTS: prints the milliseconds of the statements, which run in the
# session of the setup; a CHECKPOINT stands between them.  Statements stand one a line, each
# with its semicolon.
timed() {
  client "$1" <<SQL | awk '/^Time: / { ms += $2 } END { printf "%.3f\n", ms }'
SET client_min_messages = warning;
$2
CHECKPOINT;
\timing on
$3
SQL
}

# sample KEY MILLISECONDS
sample() {
  echo "$2" >>"$bench_dir/sample.$1"
}

median() {
  sort -g "$bench_dir/sample.$1" |
    awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# rotate ROUND WORD...: the words, started at another one each round
rotate() {
  local round=$1 n
  shift
  n=$((round % $#))
  echo "${@:n+1}" "${@:1:n}"
}

# report FIGURE OURS-KEY PEER-KEY BUDGET: medians and their ratio against a budget ("-": none)
report() {
  awk -v f="$1" -v o="$(median "$2")" -v p="$(median "$3")" -v b="$4" 'BEGIN {
    r = o / p
    printf "%s\t%.1f\t%.1f\t%.2f\t%s\t%s\n", f, o, p, r, b, b == "-" ? "-" : r <= b ? "ok" : "short" }'
}

# report_ms FIGURE OURS-KEY BUDGET: a median against milliseconds
report_ms() {
  awk -v f="$1" -v o="$(median "$2")" -v b="$3" 'BEGIN {
    printf "%s\t%.1f\t-\t-\t%s\t%s\n", f, o, b, o <= b ? "ok" : "short" }'
}

# stall SERVER SELECT STATEMENT: the longest milliseconds that the SELECT, run again and again
# from another connection, took while the statement ran
stall() {
  local server=$1 log=$bench_dir/stall.log reader
  (client "$server" -c 'SET client_min_messages = warning' -f - <<SQL >"$log" 2>/dev/null
\timing on
$2 \watch 0.005
SQL
  ) &
  reader=$!
  until grep -q '^Time: ' "$log" 2>/dev/null; do sleep 0.02; done
  sql "$server" "$3"
  # The reader ends with its connection; psql is not our child when it runs as another user.
  sql "$server" "SELECT pg_sleep(0.05);
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
  wait "$reader" 2>/dev/null || true
  awk '/^Time: / && $2 > max { max = $2 } END { print max + 0 }' "$log"
}

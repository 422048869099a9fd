#!/usr/bin/env bash
# full_refresh.sh - a full refresh of a view, against core's REFRESH MATERIALIZED VIEW in a
# server that does not have our library; and how long a reader waits meanwhile.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

bench_server main
bench_server core plain

wide='SELECT f.id, f.k, f.amount, f.label, d.name FROM bench.facts f JOIN bench.dim d ON d.k = f.k'
grouped='SELECT k, count(*) AS n, sum(amount) AS amount FROM bench.facts GROUP BY k'

for server in main core; do
  sql $server "
    CREATE SCHEMA bench;
    CREATE TABLE bench.dim AS SELECT k, 'name ' || k AS name FROM generate_series(0, 9999) k;
    CREATE TABLE bench.facts AS
      SELECT i AS id, i % 10000 AS k, (i % 1000)::numeric + 0.25 AS amount, 'label ' || i % 5000 AS label
      FROM generate_series(1, $BENCH_ROWS) i;
    VACUUM ANALYZE bench.dim; VACUUM ANALYZE bench.facts"
done
for view in wide grouped; do
  sql core "CREATE MATERIALIZED VIEW bench.$view AS ${!view}"
  sql main "CREATE MATERIALIZED VIEW bench.$view WITH (pipeline.refresh_policy = 'full') AS ${!view}"
done

for round in $(seq 0 $((BENCH_ROUNDS - 1))); do
  for view in wide grouped; do
    for server in $(rotate "$round" main core); do
      if [ "$server" = core ]; then
        statement="REFRESH MATERIALIZED VIEW bench.$view;"
      else
        statement="CALL pipeline.refresh('bench.$view', full_refresh => true);"
      fi
      sample "$view.$server" "$(timed "$server" "SELECT count(*) FROM bench.facts;" "$statement")"
    done
  done
done
for view in wide grouped; do
  for server in main core; do
    client "$server" -c "SELECT count(*), md5(string_agg(v::text, ' ' ORDER BY v::text)) FROM bench.$view v" \
      >"$bench_dir/rows.$server"
  done
  cmp -s "$bench_dir/rows.main" "$bench_dir/rows.core" || die "bench.$view differs from core's"
done

for round in 1 2 3; do
  sample stall.core "$(stall core 'SELECT 1 FROM bench.wide LIMIT 1' 'REFRESH MATERIALIZED VIEW bench.wide')"
  sample stall.main "$(stall main 'SELECT 1 FROM bench.wide LIMIT 1' \
    "CALL pipeline.refresh('bench.wide', full_refresh => true)")"
done

report "full refresh, join of $BENCH_ROWS rows, against core" wide.main wide.core 1.05
report "full refresh, 10000 groups of $BENCH_ROWS rows, against core" grouped.main grouped.core 1.05
report 'longest wait of a SELECT during a full refresh, against core' stall.main stall.core -

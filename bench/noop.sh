#!/usr/bin/env bash
# noop.sh - an update of 20 small datasets for which nothing is new.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

bench_server main

body=
for i in $(seq 1 10); do
  body+="CREATE STREAMING TABLE stream_$i AS SELECT * FROM STREAM(src_$i);
    CREATE MATERIALIZED VIEW view_$i AS SELECT k, count(*) AS n, sum(v) AS v FROM stream_$i GROUP BY k;
    "
done
sql main "CREATE SCHEMA bench;
  DO \$\$ BEGIN FOR i IN 1..10 LOOP
    EXECUTE format('CREATE TABLE bench.src_%s AS SELECT i AS id, i %% 7 AS k, i * 3 AS v
      FROM generate_series(1, 1000) i', i);
  END LOOP; END \$\$;
  CREATE PROCEDURE bench.noop() LANGUAGE pipeline AS \$\$ $body \$\$;
  CALL bench.noop()"

# Each sample is the second update of its session, as in a server that has been up for a while.
for round in $(seq 1 $((BENCH_ROUNDS * 3))); do
  sample noop "$(timed main 'CALL bench.noop();' 'CALL bench.noop();')"
done
n=$(client main -c 'SELECT sum(n) FROM bench.view_10')
[ "$n" = 1000 ] || die "bench.view_10 counts $n of 1000 rows"

report_ms '20 small datasets, nothing new (ms)' noop 60

#!/usr/bin/env bash
# stream_refresh.sh - a streaming table takes 2M new rows, without and with three expectations,
# against a plain INSERT … SELECT of the same rows and against counting by hand.
#
# Each round has a new source: the tables are created while it is empty, it is filled, then each
# variant is timed in an order that changes from round to round.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

bench_server main

columns='a int, b int, amount numeric, label text, at timestamptz'

for round in $(seq 0 $((BENCH_ROUNDS - 1))); do
  sql main "
    DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench;
    CREATE TABLE bench.src ($columns);
    CREATE TABLE bench.plain ($columns);
    CREATE TABLE bench.by_hand ($columns);
    CREATE TABLE bench.counts (not_negative bigint, not_large bigint, has_label bigint);
    DO LANGUAGE pipeline \$\$
      CREATE STREAMING TABLE bench.bare AS SELECT * FROM STREAM(bench.src);
      CREATE STREAMING TABLE bench.checked (
        CONSTRAINT not_negative EXPECT (a >= 0),
        CONSTRAINT not_large EXPECT (amount < 990),
        CONSTRAINT has_label EXPECT (label IS NOT NULL)
      ) AS SELECT * FROM STREAM(bench.src);
    \$\$;
    INSERT INTO bench.src
      SELECT i, i % 1000, (i % 1000)::numeric + 0.25, 'label ' || i % 5000,
        timestamptz '2026-01-01' + i * interval '1 second'
      FROM generate_series(1, $BENCH_ROWS) i;
    VACUUM ANALYZE bench.src"
  for variant in $(rotate "$round" plain bare checked by_hand); do
    case $variant in
      plain) statement='INSERT INTO bench.plain SELECT * FROM bench.src;' ;;
      bare) statement="CALL pipeline.refresh('bench.bare');" ;;
      checked) statement="CALL pipeline.refresh('bench.checked');" ;;
      by_hand) statement="BEGIN;
        INSERT INTO bench.by_hand SELECT * FROM bench.src;
        INSERT INTO bench.counts SELECT count(*) FILTER (WHERE (a >= 0) IS NOT TRUE),
          count(*) FILTER (WHERE (amount < 990) IS NOT TRUE),
          count(*) FILTER (WHERE (label IS NOT NULL) IS NOT TRUE) FROM bench.src;
        COMMIT;" ;;
    esac
    sample "$variant" "$(timed main 'SELECT count(*) FROM bench.src;' "$statement")"
  done
  # A refresh that did not take the rows would be fast.
  for table in bare checked; do
    n=$(client main -c "SELECT count(*) FROM bench.$table")
    [ "$n" = "$BENCH_ROWS" ] || die "bench.$table has $n of $BENCH_ROWS rows"
  done
done

report "refresh of $BENCH_ROWS rows, no expectation, against INSERT SELECT" bare plain 0.85
report "refresh of $BENCH_ROWS rows, 3 expectations, against INSERT SELECT" checked plain 1.10
report "refresh of $BENCH_ROWS rows, 3 expectations, against counting by hand" checked by_hand 1.00

-- The second day: one more file in each folder.  Only those are read, the streaming tables grow
-- by their rows, and the views follow, also the customer who moved.
\setenv DEMO_DIR :demo_dir
\! cp "$DEMO_DIR"/data/day2/orders/* "$DEMO_DIR/landing/orders/"
\! cp "$DEMO_DIR"/data/day2/customers/* "$DEMO_DIR/landing/customers/"
\! cp "$DEMO_DIR"/data/day2/payments/* "$DEMO_DIR/landing/payments/"

CALL shop.orders();

-- files listed and rows written by the bronze flows, update by update
SELECT split_part(origin->>'dataset_name', '.', 3) AS dataset,
  details->'flow_progress'->'metrics'->>'num_output_rows' AS rows_of_this_update,
  row_number() OVER (PARTITION BY origin->>'dataset_name' ORDER BY "timestamp") AS update
FROM pipeline.event_log('shop.orders')
WHERE event_type = 'flow_progress' AND details->'flow_progress'->>'status' = 'RUNNING'
  AND origin->>'dataset_name' LIKE '%bronze%'
ORDER BY 1, 3;

SELECT source_file, count(*) AS rows FROM shop.bronze_orders GROUP BY 1 ORDER BY 1;

SELECT * FROM shop.gold_daily_revenue ORDER BY day, country;

SELECT customer_id, name, city FROM shop.silver_customers WHERE name = 'Carla Eriksen';

-- and when nothing arrives, nothing is done
CALL shop.orders();

SELECT pipeline, state, cause, noop_runs FROM pipeline.updates ORDER BY started_at;

SELECT * FROM pipeline.problems;

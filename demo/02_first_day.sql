-- Files of the first day arrive.  One CALL is one update: every dataset in the order of its inputs.
\setenv DEMO_DIR :demo_dir
\! cp "$DEMO_DIR"/data/day1/orders/* "$DEMO_DIR/landing/orders/"
\! cp "$DEMO_DIR"/data/day1/customers/* "$DEMO_DIR/landing/customers/"
\! cp "$DEMO_DIR"/data/day1/payments/* "$DEMO_DIR/landing/payments/"

CALL shop.orders();

-- bronze keeps everything, also the line that was cut off and the price that is no number
SELECT source_file, count(*) AS rows, count(_rescued_data) AS rescued
FROM shop.bronze_orders GROUP BY 1 ORDER BY 1;

SELECT order_id, unit_price, _rescued_data::jsonb - '_file_path' AS rescued
FROM shop.bronze_orders WHERE _rescued_data IS NOT NULL ORDER BY order_id;

-- gold
SELECT * FROM shop.gold_daily_revenue ORDER BY day, country;

SELECT * FROM shop.gold_best_products ORDER BY revenue DESC LIMIT 3;

-- what each expectation counted in this update
SELECT dataset, expectation, action, passed, failed, dropped, round(100 * pass_rate, 1) AS percent
FROM pipeline.quality ORDER BY dataset, expectation;

-- the event log, in SQL
SELECT event_type, level, count(*) FROM pipeline.event_log('shop.orders')
GROUP BY 1, 2 ORDER BY 1, 2;

-- which dataset reads what
SELECT upstream, downstream, mode FROM pipeline.lineage WHERE mode <> 'FILES' ORDER BY 2, 1;

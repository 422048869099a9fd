-- A shop receives JSON files of orders, customers and payments.  One procedure declares what
-- becomes of them: bronze (as they came), silver (typed and checked), gold (answers).
\setenv DEMO_DIR :demo_dir
\set landing :demo_dir '/landing'
\! mkdir -p "$DEMO_DIR/landing/orders" "$DEMO_DIR/landing/customers" "$DEMO_DIR/landing/payments"

CREATE SCHEMA shop;

CREATE PROCEDURE shop.orders(landing text DEFAULT :'landing')
LANGUAGE pipeline AS $$

-- bronze
CREATE OR REFRESH STREAMING TABLE bronze_orders
COMMENT "Orders as they came"
AS SELECT *, _metadata.file_name AS source_file
FROM STREAM read_files('${landing}/orders', format => 'json',
  schemaHints => 'order_id bigint, customer_id bigint, product string, quantity int, unit_price decimal(10,2), currency string');

CREATE OR REFRESH STREAMING TABLE bronze_customers
AS SELECT * FROM STREAM read_files('${landing}/customers', format => 'json',
  schema => 'customer_id bigint, name string, city string, country string, segment string, updated_at timestamp');

CREATE OR REFRESH STREAMING TABLE bronze_payments
AS SELECT * FROM STREAM read_files('${landing}/payments', format => 'json',
  schema => 'payment_id string, order_id bigint, amount decimal(10,2), method string, paid_at timestamp');

-- silver
CREATE OR REFRESH STREAMING TABLE silver_orders (
  CONSTRAINT has_order_id EXPECT (order_id IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT has_price EXPECT (unit_price > 0) ON VIOLATION DROP ROW,
  CONSTRAINT positive_quantity EXPECT (quantity > 0) ON VIOLATION QUARANTINE ROW,
  CONSTRAINT known_currency EXPECT (currency = 'EUR')
)
COMMENT "Typed and checked orders"
AS SELECT order_id, customer_id, product, quantity, unit_price,
  quantity * unit_price AS amount, upper(currency) AS currency,
  to_timestamp(ordered_at) AS ordered_at
FROM STREAM(bronze_orders);

CREATE OR REFRESH STREAMING TABLE silver_payments (
  CONSTRAINT paid_something EXPECT (amount > 0) ON VIOLATION DROP ROW
)
AS SELECT order_id, amount, method, paid_at FROM STREAM(bronze_payments);

-- The newest state of each customer; a materialized view, because customers change.
CREATE OR REFRESH MATERIALIZED VIEW silver_customers (
  CONSTRAINT has_city EXPECT (city IS NOT NULL)
)
AS SELECT customer_id, name, city, country, segment
FROM bronze_customers
QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY updated_at DESC) = 1;

-- A guard: two rows for one customer would count orders twice, so the update has to fail.
CREATE OR REFRESH MATERIALIZED VIEW customer_key_check (
  CONSTRAINT one_row_per_customer EXPECT (n = 1) ON VIOLATION FAIL UPDATE
)
AS SELECT customer_id, count(*) AS n FROM silver_customers GROUP BY customer_id;

-- gold
CREATE TEMPORARY VIEW priced_orders
AS SELECT o.*, c.country, c.segment
FROM silver_orders o JOIN silver_customers c USING (customer_id);

CREATE OR REFRESH MATERIALIZED VIEW gold_daily_revenue
COMMENT "Revenue per day and country"
AS SELECT CAST(ordered_at AS DATE) AS day, country, count(*) AS orders, sum(amount) AS revenue
FROM priced_orders GROUP BY ALL;

CREATE OR REFRESH MATERIALIZED VIEW gold_open_invoices
AS SELECT o.customer_id, count(*) AS orders, sum(o.amount) AS amount
FROM priced_orders o
WHERE NOT EXISTS (SELECT 1 FROM silver_payments p WHERE p.order_id = o.order_id)
GROUP BY o.customer_id;

CREATE OR REFRESH MATERIALIZED VIEW gold_best_products
AS SELECT product, sum(quantity) AS sold, sum(amount) AS revenue
FROM priced_orders GROUP BY product;
$$;

-- Orders without a positive quantity were set aside, with the names of the rules.
SELECT order_id, product, quantity, amount, _rules, _replayed_at IS NOT NULL AS replayed
FROM shop.silver_orders_quarantine ORDER BY order_id;

-- The shop finds out that one of them was a sale of two.
UPDATE shop.silver_orders_quarantine SET quantity = 2, amount = 2 * unit_price WHERE quantity = -2;

SELECT * FROM pipeline.replay_quarantine('shop.silver_orders');

SELECT order_id, quantity, amount FROM shop.silver_orders
WHERE order_id IN (SELECT order_id FROM shop.silver_orders_quarantine);

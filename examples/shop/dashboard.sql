-- Customers by country
SELECT k.name, count(*) AS customers FROM customers c JOIN countries k ON k.code = c.country GROUP BY k.name ORDER BY 2 DESC;
-- Orders by month
SELECT date_trunc('month', placed_at)::date AS month, count(*) AS orders FROM orders WHERE placed_at >= '2025-01-01' GROUP BY 1 ORDER BY 1;
-- Orders by channel and status
SELECT channel, status, count(*) AS orders FROM orders GROUP BY channel, status ORDER BY channel, status;
-- Returned, in percent
SELECT channel, round(100.0 * count(*) FILTER (WHERE status = 'returned') / count(*), 1) AS returned FROM orders GROUP BY channel ORDER BY channel;
-- Revenue by category
SELECT k.name, round(sum(l.quantity * l.unit_price)) AS revenue FROM order_lines l JOIN products p ON p.product_id = l.product_id
  JOIN categories k ON k.category_id = p.category_id GROUP BY k.name ORDER BY k.name;
-- How many orders a customer has
SELECT least(orders, 10) AS orders, count(*) AS customers FROM (SELECT customer_id, count(*) AS orders FROM orders GROUP BY customer_id) AS t GROUP BY 1 ORDER BY 1;

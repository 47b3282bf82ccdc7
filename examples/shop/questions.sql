-- Q1 How many customers do we have?
SELECT COUNT(*) AS number_of_customers FROM customers;
-- Q2 How many customers come from each country? Show the names of the countries.
SELECT c.name AS country, COUNT(*) AS customers FROM customers cu JOIN countries c ON cu.country = c.code GROUP BY c.name ORDER BY customers DESC;
-- Q3 What share of customers takes the newsletter?
SELECT ROUND(100.0 * SUM(CASE WHEN newsletter THEN 1 ELSE 0 END) / COUNT(*), 2) AS newsletter_percent FROM customers;
-- Q4 How many orders came in by month?
SELECT DATE_TRUNC('month', placed_at) AS month, COUNT(*) AS orders FROM orders GROUP BY 1 ORDER BY 1;
-- Q5 Which channel brings the most orders?
SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel ORDER BY n DESC LIMIT 1;
-- Q6 What is the average shipping fee by channel?
SELECT channel, AVG(shipping) AS avg_shipping FROM orders GROUP BY channel ORDER BY channel;
-- Q7 What was our revenue, after discounts?
SELECT SUM(quantity * unit_price * (1 - discount)) AS revenue FROM order_lines;
-- Q8 List revenue by product category, the largest first.
SELECT ca.name AS category, SUM(ol.quantity * ol.unit_price * (1 - ol.discount)) AS revenue FROM order_lines ol JOIN products p ON p.product_id = ol.product_id JOIN categories ca ON ca.category_id = p.category_id GROUP BY ca.name ORDER BY revenue DESC;
-- Q9 What percentage of orders was returned?
SELECT CAST(COUNT(CASE WHEN status = 'returned' THEN 1 END) AS REAL) * 100 / COUNT(*) AS percentage FROM orders;
-- Q10 How many customers have never ordered anything?
SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id WHERE o.order_id IS NULL;
-- Q11 How many customers have ordered at least once?
SELECT COUNT(DISTINCT customer_id) FROM orders;
-- Q12 How many orders does a customer place on average?
SELECT AVG(order_count) AS avg_orders FROM (SELECT customer_id, COUNT(*) AS order_count FROM orders GROUP BY customer_id) AS per_customer;
-- Q13 How many customers ordered more than five times?
SELECT COUNT(*) FROM (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 5) AS frequent;
-- Q14 What is the distribution of the number of orders per customer?
SELECT order_count, COUNT(*) AS customers FROM (SELECT customer_id, COUNT(*) AS order_count FROM orders GROUP BY customer_id) t GROUP BY order_count ORDER BY order_count;
-- Q15 Who are our ten best customers by revenue?
SELECT o.customer_id, SUM(ol.quantity * ol.unit_price) AS revenue FROM orders o JOIN order_lines ol ON ol.order_id = o.order_id GROUP BY o.customer_id ORDER BY revenue DESC LIMIT 10;
-- Q15 instead How many customers have more than six orders, and how many orders are theirs?
SELECT count(*) AS customers, sum(n) AS orders FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) t WHERE n > 6;
-- Q16 What is the median age of customers at the start of 2025?
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY EXTRACT(YEAR FROM AGE(DATE '2025-01-01', born))) AS median_age FROM customers;
-- Q17 How many customers are there in each age group?
SELECT CASE WHEN born > DATE '2000-01-01' THEN 'under 25' WHEN born > DATE '1985-01-01' THEN '25-39' WHEN born > DATE '1960-01-01' THEN '40-64' ELSE '65+' END AS age_group, COUNT(*) FROM customers GROUP BY 1;
-- Q18 Among customers in Germany, how many joined in 2024?
SELECT COUNT(*) FROM customers WHERE country = 'DE' AND EXTRACT(YEAR FROM joined_on) = 2024;
-- Q19 How did signups develop by quarter?
SELECT EXTRACT(YEAR FROM joined_on) AS year, EXTRACT(QUARTER FROM joined_on) AS quarter, COUNT(*) AS signups FROM customers GROUP BY 1, 2 ORDER BY 1, 2;
-- Q20 How do orders change from month to month, in percent?
WITH monthly AS (SELECT DATE_TRUNC('month', placed_at) AS month, COUNT(*) AS orders FROM orders GROUP BY 1) SELECT month, orders, ROUND(100.0 * (orders - LAG(orders) OVER (ORDER BY month)) / LAG(orders) OVER (ORDER BY month), 1) AS growth FROM monthly ORDER BY month;
-- Q21 Show the running total of orders over the year.
SELECT month, SUM(orders) OVER (ORDER BY month) AS running_total FROM (SELECT DATE_TRUNC('month', placed_at) AS month, COUNT(*) AS orders FROM orders GROUP BY 1) m ORDER BY month;
-- Q22 What share of all orders has each channel?
SELECT channel, COUNT(*) AS orders, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS share FROM orders GROUP BY channel ORDER BY share DESC;
-- Q23 At which hours of the day do people order?
SELECT EXTRACT(HOUR FROM placed_at AT TIME ZONE 'UTC') AS hour, COUNT(*) AS orders FROM orders GROUP BY 1 ORDER BY 1;
-- Q24 On which weekday do most orders come in?
SELECT EXTRACT(DOW FROM placed_at AT TIME ZONE 'UTC') AS weekday, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY n DESC LIMIT 3;
-- Q25 How many lines does an order have on average?
SELECT ROUND(AVG(line_count), 2) AS lines_per_order FROM (SELECT order_id, COUNT(*) AS line_count FROM order_lines GROUP BY order_id) t;
-- Q26 How many orders have exactly one line?
SELECT COUNT(*) FROM (SELECT order_id FROM order_lines GROUP BY order_id HAVING COUNT(*) = 1) single_line;
-- Q27 What is the average order value?
SELECT AVG(order_total) AS aov FROM (SELECT o.order_id, SUM(ol.quantity * ol.unit_price * (1 - ol.discount)) AS order_total FROM orders o JOIN order_lines ol ON o.order_id = ol.order_id GROUP BY o.order_id) t;
-- Q27 instead What is revenue over orders?
SELECT sum(quantity * unit_price * (1 - discount)) / count(DISTINCT order_id) AS aov FROM order_lines;
-- Q28 Find the number of orders from the app in the first half of the year.
SELECT COUNT(*) FROM orders WHERE channel = 'app' AND placed_at >= '2025-01-01 00:00+00' AND placed_at < '2025-07-01 00:00+00';
-- Q29 Which products were never sold?
SELECT p.product_id, p.name FROM products p WHERE NOT EXISTS (SELECT 1 FROM order_lines ol WHERE ol.product_id = p.product_id);
-- Q29 instead Which products were sold fewer than a hundred times?
SELECT p.name, n FROM (SELECT product_id, count(*) AS n FROM order_lines GROUP BY product_id HAVING count(*) < 100) s JOIN products p USING (product_id) ORDER BY 1;
-- Q30 What are the five most sold products?
SELECT p.name, SUM(ol.quantity) AS sold FROM order_lines ol JOIN products p ON p.product_id = ol.product_id GROUP BY p.name ORDER BY sold DESC LIMIT 5;
-- Q31 List all products that cost more than 90.
SELECT name, price FROM products WHERE price > 90 ORDER BY price DESC;
-- Q32 How much discount did we give in all?
SELECT SUM(quantity * unit_price * discount) AS discount_given FROM order_lines;
-- Q33 What part of lines was sold at a discount, by category?
SELECT ca.name, AVG(CASE WHEN ol.discount > 0 THEN 1.0 ELSE 0.0 END) AS discounted FROM order_lines ol JOIN products p USING (product_id) JOIN categories ca USING (category_id) GROUP BY ca.name ORDER BY ca.name;
-- Q34 How many customers bought toys?
SELECT COUNT(DISTINCT o.customer_id) FROM orders o JOIN order_lines ol ON ol.order_id = o.order_id JOIN products p ON p.product_id = ol.product_id JOIN categories ca ON ca.category_id = p.category_id WHERE ca.name = 'Toys';
-- Q35 How many customers bought toys but no books?
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o JOIN order_lines ol ON ol.order_id = o.order_id JOIN products p ON p.product_id = ol.product_id WHERE o.customer_id = c.customer_id AND p.category_id = 5) AND NOT EXISTS (SELECT 1 FROM orders o JOIN order_lines ol ON ol.order_id = o.order_id JOIN products p ON p.product_id = ol.product_id WHERE o.customer_id = c.customer_id AND p.category_id = 1);
-- Q36 How many customers came back, with two orders or more, by country?
SELECT cu.country, COUNT(*) AS returning_customers FROM customers cu JOIN (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) o ON o.customer_id = cu.customer_id WHERE o.n >= 2 GROUP BY cu.country ORDER BY 2 DESC;
-- Q37 What is the return rate by channel?
SELECT channel, COUNT(*) FILTER (WHERE status = 'returned')::numeric / COUNT(*) AS return_rate FROM orders GROUP BY channel ORDER BY return_rate DESC;
-- Q38 What is the revenue by country?
SELECT cu.country, SUM(ol.quantity * ol.unit_price * (1 - ol.discount)) AS revenue FROM customers cu JOIN orders o ON o.customer_id = cu.customer_id JOIN order_lines ol ON ol.order_id = o.order_id GROUP BY cu.country ORDER BY revenue DESC;
-- Q39 Which countries have more than 250 customers?
SELECT country FROM customers GROUP BY country HAVING COUNT(*) > 250;
-- Q40 What is the difference between orders by web and by app?
SELECT SUM(CASE WHEN channel = 'web' THEN 1 ELSE 0 END) - SUM(CASE WHEN channel = 'app' THEN 1 ELSE 0 END) AS difference FROM orders;
-- Q41 What is the smallest and the largest shipping fee?
SELECT MIN(shipping), MAX(shipping) FROM orders;
-- Q42 How spread are order quantities?
SELECT AVG(quantity), STDDEV(quantity), VARIANCE(quantity) FROM order_lines;
-- Q43 Show the first ten orders with their customers' names.
SELECT o.order_id, c.full_name, o.placed_at FROM orders o JOIN customers c ON c.customer_id = o.customer_id ORDER BY o.placed_at LIMIT 10;
-- Q43 instead How many orders were placed on each of the first ten days?
SELECT placed_at::date AS day, count(*) FROM orders WHERE placed_at < '2025-01-11 00:00+00' GROUP BY 1 ORDER BY 1;
-- Q44 What is the email address of customer 17?
SELECT email FROM customers WHERE customer_id = 17;
-- Q44 instead How many customers take the newsletter in Austria?
SELECT count(*) FROM customers WHERE newsletter AND country = 'AT';
-- Q45 How many orders are there by status and channel?
SELECT status, channel, COUNT(*) AS n FROM orders GROUP BY status, channel ORDER BY status, channel;
-- Q46 Give subtotals of orders by channel and status, and in all.
SELECT COALESCE(channel::text, 'all') AS channel, COALESCE(status::text, 'all') AS status, COUNT(*) FROM orders GROUP BY ROLLUP (channel, status) ORDER BY 1, 2;
-- Q47 How many customers ordered in both January and February?
SELECT COUNT(*) FROM (SELECT customer_id FROM orders WHERE placed_at < '2025-02-01 00:00+00' INTERSECT SELECT customer_id FROM orders WHERE placed_at >= '2025-02-01 00:00+00' AND placed_at < '2025-03-01 00:00+00') both_months;
-- Q48 How many new buyers were there by month, by the month of the first order?
SELECT DATE_TRUNC('month', first_order) AS month, COUNT(*) AS new_buyers FROM (SELECT customer_id, MIN(placed_at) AS first_order FROM orders GROUP BY customer_id) f GROUP BY 1 ORDER BY 1;
-- Q49 How many customers used more than one channel?
SELECT COUNT(*) FROM (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(DISTINCT channel) > 1) multi;
-- Q50 Rank the countries by customers.
SELECT country, customers, RANK() OVER (ORDER BY customers DESC) AS rank FROM (SELECT country, COUNT(*) AS customers FROM customers GROUP BY country) t ORDER BY rank;
-- Q51 Do newsletter readers order more often than others?
SELECT c.newsletter, COUNT(*)::numeric / COUNT(DISTINCT c.customer_id) AS orders_per_buyer FROM customers c JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.newsletter;
-- Q52 What is the average quantity of lines whose price is above the average price of all products?
SELECT AVG(quantity) FROM order_lines WHERE unit_price > (SELECT AVG(price) FROM products);
-- Q53 In which months were there more orders than in an average month?
WITH m AS (SELECT DATE_TRUNC('month', placed_at) AS month, COUNT(*) AS n FROM orders GROUP BY 1) SELECT month FROM m WHERE n > (SELECT AVG(n) FROM m) ORDER BY month;
-- Q54 How many orders were free of shipping?
SELECT SUM((shipping = 0)::int) AS free_shipping, COUNT(*) AS orders FROM orders;
-- Q55 What is the 90th percentile of the shipping fee?
SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY shipping) FROM orders;
-- Q56 How many customers joined before 2023 and ordered in December?
SELECT COUNT(DISTINCT c.customer_id) FROM customers c INNER JOIN orders o ON c.customer_id = o.customer_id WHERE c.joined_on < '2023-01-01' AND o.placed_at >= '2025-12-01 00:00+00';
-- Q57 Is there a correlation between quantity and discount?
SELECT CORR(quantity, discount) FROM order_lines;
-- Q58 What revenue did each quarter bring, by channel?
SELECT DATE_TRUNC('quarter', o.placed_at) AS quarter, o.channel, SUM(ol.quantity * ol.unit_price * (1 - ol.discount)) AS revenue FROM orders o JOIN order_lines ol ON ol.order_id = o.order_id GROUP BY 1, 2 ORDER BY 1, 2;
-- Q59 How many days pass between a customer's first and last order, on average?
SELECT AVG(last_order::date - first_order::date) AS days FROM (SELECT customer_id, MIN(placed_at) AS first_order, MAX(placed_at) AS last_order FROM orders GROUP BY customer_id HAVING COUNT(*) > 1) t;
-- Q60 Which tables are there?
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name;

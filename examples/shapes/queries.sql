-- Counts, sums and averages of the three shapes: of all rows, of five groups, of 500.
-- clinic visits
SELECT count(*) FROM visit
-- clinic visits by kind
SELECT kind, count(*) FROM visit GROUP BY kind
-- clinic visits by ward
SELECT ward, count(*) FROM visit GROUP BY ward
-- clinic sum of cost
SELECT sum(cost) FROM visit
-- clinic sum of cost by kind
SELECT kind, sum(cost) FROM visit GROUP BY kind
-- clinic sum of cost by ward
SELECT ward, sum(cost) FROM visit GROUP BY ward
-- clinic average cost
SELECT avg(cost) FROM visit
-- clinic average cost by kind
SELECT kind, avg(cost) FROM visit GROUP BY kind
-- clinic average cost by ward
SELECT ward, avg(cost) FROM visit GROUP BY ward
-- shop orders
SELECT count(*) FROM purchase
-- shop orders by channel
SELECT channel, count(*) FROM purchase GROUP BY channel
-- shop orders by product
SELECT product, count(*) FROM purchase GROUP BY product
-- shop sum of amount
SELECT sum(amount) FROM purchase
-- shop sum of amount by channel
SELECT channel, sum(amount) FROM purchase GROUP BY channel
-- shop sum of amount by product
SELECT product, sum(amount) FROM purchase GROUP BY product
-- shop average amount
SELECT avg(amount) FROM purchase
-- shop average amount by channel
SELECT channel, avg(amount) FROM purchase GROUP BY channel
-- shop average amount by product
SELECT product, avg(amount) FROM purchase GROUP BY product
-- telemetry readings
SELECT count(*) FROM reading
-- telemetry readings by status
SELECT status, count(*) FROM reading GROUP BY status
-- telemetry readings by site
SELECT site, count(*) FROM reading GROUP BY site
-- telemetry sum of bytes
SELECT sum(bytes) FROM reading
-- telemetry sum of bytes by status
SELECT status, sum(bytes) FROM reading GROUP BY status
-- telemetry sum of bytes by site
SELECT site, sum(bytes) FROM reading GROUP BY site
-- telemetry average bytes
SELECT avg(bytes) FROM reading
-- telemetry average bytes by status
SELECT status, avg(bytes) FROM reading GROUP BY status
-- telemetry average bytes by site
SELECT site, avg(bytes) FROM reading GROUP BY site

-- Outer queries over three released tables. The embedded engine must give PostgreSQL's text and types, or refuse.
SELECT k, g, n FROM leaf_1 ORDER BY k, g
SELECT k, sum(n) FROM leaf_1 GROUP BY k ORDER BY 1
SELECT k, avg(n), count(*), min(n), max(n) FROM leaf_1 GROUP BY k ORDER BY k NULLS FIRST
SELECT k, sum(n) * 100.0 / sum(sum(n)) OVER () AS share FROM leaf_1 GROUP BY k ORDER BY k
SELECT k, round(100.0 * n / sum(n) OVER (), 2) FROM leaf_1 ORDER BY n, k
SELECT n / 7, n % 7, n * 2, n - 1, -n FROM leaf_1 ORDER BY 3, k
SELECT g / 2, g % 2, -g / 2, -g % 2, g::smallint / 2::smallint FROM leaf_1 ORDER BY g, k
SELECT n / 2.0, n * 1.5, n + 0.25 FROM leaf_1 ORDER BY n, k
SELECT n::float8 / 3, n::real, sqrt(n::float8) FROM leaf_1 WHERE n >= 0 ORDER BY n, k
SELECT k, sum(n) FILTER (WHERE g > 1), count(*) FILTER (WHERE g IS NULL) FROM leaf_1 GROUP BY k HAVING sum(n) > 10 ORDER BY 1
SELECT k, CASE WHEN sum(n) > 50 THEN 'many' WHEN sum(n) > 10 THEN 'some' ELSE 'few' END FROM leaf_1 GROUP BY k ORDER BY 1
SELECT row_number() OVER (ORDER BY n, k), rank() OVER (ORDER BY g), dense_rank() OVER (ORDER BY g DESC) FROM leaf_1 ORDER BY 1
SELECT n, lag(n) OVER (ORDER BY n, k), lead(n, 2, 0) OVER (ORDER BY n, k) FROM leaf_1 ORDER BY n, k
SELECT n, sum(n) OVER (ORDER BY n, k), avg(n) OVER (ORDER BY n, k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM leaf_1 ORDER BY n, k
SELECT k, n, sum(n) OVER (PARTITION BY k ORDER BY g NULLS FIRST) FROM leaf_1 ORDER BY k, g NULLS FIRST
SELECT first_value(k) OVER w, last_value(k) OVER w, nth_value(k, 2) OVER w FROM leaf_1 WINDOW w AS (ORDER BY n, k) ORDER BY n, k
SELECT ntile(3) OVER (ORDER BY n, k), percent_rank() OVER (ORDER BY n), cume_dist() OVER (ORDER BY n) FROM leaf_1 ORDER BY n, k
SELECT count(*) OVER (PARTITION BY k), n FROM leaf_1 ORDER BY n, k
SELECT sum(n) OVER (ORDER BY g RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM leaf_1 WHERE g IS NOT NULL ORDER BY n, k
SELECT sum(n) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM leaf_1 ORDER BY n, k
SELECT DISTINCT k FROM leaf_1 ORDER BY k DESC
SELECT DISTINCT g, k IS NULL FROM leaf_1 ORDER BY 1, 2
SELECT DISTINCT ON (k) k, g, n FROM leaf_1 ORDER BY k, n DESC, g
SELECT * FROM leaf_1 ORDER BY n DESC, k LIMIT 3 OFFSET 1
SELECT k FROM leaf_1 UNION SELECT 'zz' ORDER BY 1
SELECT k, n FROM leaf_1 UNION ALL SELECT 'total', sum(n) FROM leaf_1 ORDER BY 2, 1
SELECT g FROM leaf_1 INTERSECT SELECT 1 ORDER BY 1
SELECT g FROM leaf_1 EXCEPT SELECT 1 ORDER BY 1
SELECT 1 UNION SELECT 2.5 ORDER BY 1
SELECT NULL UNION ALL SELECT 1 ORDER BY 1
SELECT 'a' UNION ALL SELECT NULL ORDER BY 1
VALUES (1, 'a'), (2, NULL) ORDER BY 1
SELECT * FROM (VALUES (1, 2.5), (3, NULL)) v(a, b) ORDER BY a
SELECT a.k, a.n, b.n FROM leaf_1 a JOIN leaf_1 b ON a.k = b.k AND a.g < b.g ORDER BY 1, 2, 3
SELECT a.k, b.d FROM leaf_1 a LEFT JOIN leaf_2 b ON b.n = a.n ORDER BY 1, 2, a.n
SELECT count(*) FROM leaf_1 a CROSS JOIN leaf_2 b
SELECT n, k FROM leaf_1 JOIN (SELECT k, max(g) AS top FROM leaf_1 GROUP BY k) m USING (k) ORDER BY 1, 2
SELECT k, m.top FROM leaf_1 NATURAL JOIN (SELECT k, max(g) AS top FROM leaf_1 GROUP BY k) m ORDER BY 1, 2
SELECT * FROM leaf_1 a FULL JOIN leaf_2 b ON a.n = b.n ORDER BY a.n, b.n, a.k
SELECT k FROM leaf_1 WHERE n > (SELECT avg(n) FROM leaf_1) ORDER BY 1
SELECT k FROM leaf_1 o WHERE n = (SELECT max(n) FROM leaf_1 i WHERE i.k = o.k) ORDER BY 1
SELECT k FROM leaf_1 WHERE g IN (SELECT g FROM leaf_1 WHERE n > 20) ORDER BY k, n
SELECT k FROM leaf_1 WHERE g NOT IN (SELECT 2) ORDER BY k, n
SELECT k FROM leaf_1 o WHERE EXISTS (SELECT FROM leaf_2 i WHERE i.n = o.n) ORDER BY 1
SELECT k FROM leaf_1 WHERE n = ANY (ARRAY[12, 40]) ORDER BY 1
SELECT k FROM leaf_1 WHERE n = ANY ('{12,40}') ORDER BY 1
SELECT k FROM leaf_1 WHERE n <> ALL ('{12,40}') ORDER BY 1, n
SELECT k FROM leaf_1 WHERE (k, g) IN (('a', 1), ('b', 2)) ORDER BY 1
WITH t AS (SELECT k, sum(n) AS s FROM leaf_1 GROUP BY k) SELECT k, s, s / (SELECT sum(s) FROM t) FROM t ORDER BY 1
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT i, i * i FROM r ORDER BY 1
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
SELECT t.k, l.m FROM leaf_1 t, LATERAL (SELECT max(n) AS m FROM leaf_1 u WHERE u.k = t.k) l ORDER BY 1, 2
SELECT t.k, l.m FROM leaf_1 t LEFT JOIN LATERAL (SELECT n AS m FROM leaf_2 u WHERE u.n > t.n ORDER BY n LIMIT 1) l ON true ORDER BY 1, 2
SELECT s, n FROM generate_series(1, 3) s LEFT JOIN leaf_1 ON g = s ORDER BY 1, 2
SELECT generate_series(1, 3)
SELECT * FROM generate_series(10, 1, -4) WITH ORDINALITY ORDER BY 2
SELECT * FROM unnest(ARRAY['x', NULL, 'y']) WITH ORDINALITY AS u(v, i) ORDER BY i
SELECT k, upper(k), length(k), k || '!' || n FROM leaf_1 ORDER BY k, n
SELECT substring('abcdef' from 2 for 3), substr('abcdef', 3), left('abc', 2), right('abc', 2), position('c' in 'abc')
SELECT replace('abc', 'b', 'x'), trim('  a '), ltrim('xxa', 'x'), rtrim('axx', 'x'), lpad('a', 3, '-'), repeat('ab', 2), reverse('abc')
SELECT concat('a', NULL, 1), coalesce(NULL, 'b'), nullif(1, 1), greatest(1, 2.5, NULL), least('a', 'b')
SELECT split_part('a,b,c', ',', 2), initcap('hello world'), strpos('abc', 'c'), md5('a')
SELECT k LIKE 'a%', k NOT LIKE '_', k ILIKE 'A', 'a%b' LIKE 'a\%b' FROM leaf_1 ORDER BY n, k
SELECT k ~ '^[ab]$', k !~ 'a', k ~* 'A' FROM leaf_1 ORDER BY n, k
SELECT d, n FROM leaf_2 ORDER BY d
SELECT date_trunc('month', d), sum(n) FROM leaf_2 GROUP BY 1 ORDER BY 1
SELECT extract(year FROM d), extract(dow FROM d), date_part('month', d) FROM leaf_2 ORDER BY d
SELECT d + 1, d - 1, d - DATE '2024-01-01', d + interval '1 month' FROM leaf_2 ORDER BY d
SELECT d::timestamp, d::text, to_char(d, 'YYYY-MM') FROM leaf_2 ORDER BY d
SELECT d > '2024-01-15', d BETWEEN '2024-01-01' AND DATE '2024-02-01' FROM leaf_2 ORDER BY d
SELECT timestamp '2024-01-31 10:00' + interval '1 month', interval '1 day' * 3, interval '90 minutes', age(timestamp '2024-03-01', timestamp '2024-01-15')
SELECT timestamptz '2024-01-31 10:00+02', timestamptz '2024-01-31 10:00+02' AT TIME ZONE 'America/New_York'
SELECT to_timestamp(0), timestamptz '2024-01-01 00:00+00'::date, date '2024-01-01'::timestamptz
SELECT * FROM generate_series(timestamp '2024-01-01', '2024-01-03', '1 day') t ORDER BY 1
SELECT p, f, b, n FROM leaf_3 ORDER BY n
SELECT p * n, p / 3, p + 1, p - 0.001, -p, abs(p), p % 2 FROM leaf_3 ORDER BY n
SELECT sum(p), avg(p), min(p), max(p), count(DISTINCT p) FROM leaf_3
SELECT p, sum(n) FROM leaf_3 GROUP BY p ORDER BY p DESC
SELECT DISTINCT p FROM leaf_3 ORDER BY 1
SELECT p > 1, p = 1.5, p = 1.50, p <> 2, p IS DISTINCT FROM 1.5, p IN (1.5, 2) FROM leaf_3 ORDER BY n
SELECT round(p), round(p, 1), trunc(p), ceil(p), floor(p), sign(p) FROM leaf_3 ORDER BY n
SELECT p::int, p::text, p::float8, f::numeric, f::int, n::text, b::text FROM leaf_3 ORDER BY n
SELECT f + 1, f * 2, f / 3, -f, round(f), floor(f), abs(f), f > 0.5, f = 0.1 FROM leaf_3 ORDER BY n
SELECT sum(f), min(f), max(f), avg(f) FROM leaf_3 WHERE f < 100
SELECT power(2, 10), power(2.0, 3), exp(0.0), ln(1.0), log(100.0), mod(7, 3), 2 ^ 3, pi()
SELECT b, NOT b, b AND NULL, b OR NULL, b IS TRUE, b IS NOT FALSE, b IS UNKNOWN FROM leaf_3 ORDER BY n
SELECT bool_and(b), bool_or(b), every(b) FROM leaf_3
SELECT b, count(*) FROM leaf_3 GROUP BY b ORDER BY b
SELECT array_agg(k ORDER BY k), string_agg(k, '-' ORDER BY k DESC) FROM leaf_1
SELECT array_agg(n ORDER BY n), array_agg(g ORDER BY g NULLS FIRST) FROM leaf_1
SELECT array_to_string(ARRAY[1, NULL, 3], ','), array_to_string(ARRAY['a', NULL], ',', '*'), array_length(ARRAY[1, 2], 1), (ARRAY[5, 6])[2], (ARRAY[5, 6])[0]
SELECT ARRAY(SELECT k FROM leaf_1 WHERE k IS NOT NULL ORDER BY k), ARRAY[1, 2] || 3, 0 || ARRAY[1], ARRAY[1] || ARRAY[2]
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM leaf_1
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY f) FROM leaf_3
SELECT k, g, sum(n) FROM leaf_1 GROUP BY ROLLUP (k, g) ORDER BY 1, 2, 3
SELECT k, g, grouping(k, g), sum(n) FROM leaf_1 GROUP BY CUBE (k, g) ORDER BY 3, 1, 2, 4
SELECT k, sum(n) FROM leaf_1 GROUP BY GROUPING SETS ((k), ()) ORDER BY 2, 1
SELECT g AS x, count(*) AS c FROM leaf_1 GROUP BY x ORDER BY c DESC, x
SELECT k AS g, g AS k FROM leaf_1 ORDER BY g, k
SELECT sum(n) AS s FROM leaf_1 ORDER BY s
SELECT g + 1 FROM leaf_1 GROUP BY g + 1 ORDER BY g + 1
SELECT count(DISTINCT k), count(k), count(*), sum(DISTINCT g) FROM leaf_1
SELECT sum(g), avg(g), sum(g::smallint) FROM leaf_1
SELECT x.k, x.c FROM (SELECT k, count(*) AS c FROM leaf_1 GROUP BY k) x WHERE x.c > 1 ORDER BY 1
SELECT * FROM (SELECT * FROM leaf_1 ORDER BY n DESC, k LIMIT 2) AS virtual_table LIMIT 1000
SELECT count(*) FROM (SELECT 1) AS t
SELECT 1 AS "?column?", 'x', NULL, true, 1.10, 1e3, 10000000000, -5
SELECT 1::bigint, 2::smallint, '3'::int, '4.50'::numeric(6,2), 'abc'::varchar(2), 't'::bool, 5::text
SELECT '2024-02-30'::text, date '2024-02-29', '1 day'::interval
SELECT 7 / 0
SELECT 2147483647 + 1
SELECT 9223372036854775807 + 1
SELECT 'abc'::int
SELECT 1 / 0.0
SELECT (SELECT n FROM leaf_1)
SELECT sum(k) FROM leaf_1
SELECT k + 1 FROM leaf_1
SELECT nope FROM leaf_1
SELECT n FROM leaf_1, leaf_2
SELECT k, n FROM leaf_1 GROUP BY k
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(n, 0, 100, 4) FROM leaf_1 ORDER BY n, k
SELECT stddev(n), variance(g) FROM leaf_1
SELECT mode() WITHIN GROUP (ORDER BY g) FROM leaf_1
SELECT corr(n, g) FROM leaf_1
SELECT max(k), min(k) FROM leaf_1
SELECT max(d) - min(d), max(d) FROM leaf_2
SELECT k, max(n) - min(n) AS spread FROM leaf_1 GROUP BY k ORDER BY spread DESC, k
SELECT to_char(n, '999,999'), to_char(1234.5, 'FM9999.00') FROM leaf_1 ORDER BY n, k
SELECT overlay('abcdef' placing 'X' from 2 for 2), chr(65), ascii('A'), quote_literal('a''b'), quote_ident('Select')
SELECT regexp_replace('abc', 'b', 'x'), translate('abc', 'ab', 'xy'), starts_with('abc', 'a')
SELECT json_build_object('k', k, 'n', n) FROM leaf_1 ORDER BY n, k
SELECT k COLLATE "C" FROM leaf_1 ORDER BY k COLLATE "C" DESC
SELECT n FROM leaf_1 ORDER BY n + 0, k FETCH FIRST 2 ROWS ONLY
SELECT n FROM leaf_1 ORDER BY k USING <
SELECT coalesce(k, 'none') AS k, sum(n) FROM leaf_1 GROUP BY 1 ORDER BY 1
SELECT coalesce(k, 'none') AS label, sum(n) FROM leaf_1 GROUP BY label ORDER BY label
SELECT n BETWEEN 10 AND 20, n NOT BETWEEN SYMMETRIC 20 AND 10 FROM leaf_1 ORDER BY n, k
SELECT CASE k WHEN 'a' THEN 1 WHEN 'b' THEN 2.5 END FROM leaf_1 ORDER BY n, k
SELECT CASE WHEN n = 0 THEN NULL ELSE 100 / n END FROM leaf_1 WHERE n <> 0 ORDER BY n, k
SELECT nullif(n, 12) / 2 FROM leaf_1 ORDER BY n, k
SELECT a.* FROM leaf_1 a ORDER BY a.n, a.k LIMIT 1
SELECT a.k AS x, a.k AS x FROM leaf_1 a ORDER BY a.n, a.k LIMIT 1
SELECT string_agg(DISTINCT k, ',') FROM leaf_1 WHERE k = 'a'
SELECT sum(n) FILTER (WHERE k = 'a') OVER (PARTITION BY g) FROM leaf_1 ORDER BY n, k
SELECT cast(n AS numeric(10,1)), cast(p AS numeric(4,0)) FROM leaf_1 JOIN leaf_3 USING (n) ORDER BY n
SELECT n::numeric / 3 * 3 = n, (n / 3.0)::numeric(10,4) FROM leaf_1 ORDER BY n, k
SELECT least(p, 2), greatest(p, 1.5) FROM leaf_3 ORDER BY n
SELECT p FROM leaf_3 WHERE p > 1 AND p < 10 ORDER BY p
SELECT (p * 2)::int8 AS twice, count(*) FROM leaf_3 GROUP BY 1 ORDER BY 1
SELECT round(p / 3, 3) AS third, count(*) FROM leaf_3 GROUP BY 1 ORDER BY 1
SELECT p / 3 AS third, count(*) FROM leaf_3 GROUP BY 1 ORDER BY 1
SELECT EXISTS (SELECT 1), NOT EXISTS (SELECT 1 FROM leaf_1 WHERE false), ARRAY[1]::text[], '{}'::int[]
SELECT date_trunc('day', timestamptz '2024-01-31 10:00+02'), extract(hour FROM timestamp '2024-01-01 13:14:15.5'), extract(epoch FROM interval '1 day')
SELECT d, sum(n) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM leaf_2 ORDER BY d
SELECT d, n - lag(n) OVER (ORDER BY d) AS change, round(100.0 * (n - lag(n) OVER (ORDER BY d)) / nullif(lag(n) OVER (ORDER BY d), 0), 1) FROM leaf_2 ORDER BY d
SELECT t.d::date, coalesce(sum(l.n), 0) FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-04', interval '1 day') AS t(d) LEFT JOIN leaf_2 l ON l.d = t.d::date GROUP BY 1 ORDER BY 1
SELECT pg_typeof(n), pg_typeof(sum(n)) FROM leaf_1 GROUP BY n ORDER BY n

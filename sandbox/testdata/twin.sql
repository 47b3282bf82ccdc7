-- What is easily different between engines: text, types and column names are PostgreSQL's.
-- integer division, remainders, overflow
SELECT 7 / 2, -7 / 2, 7 / -2, 7 % 3, -7 % 3, 7 % -3, (-7)::bigint / 2, 7::smallint / 2::smallint, mod(-7, 3), div(-7, 2)
SELECT n / 2 * 2, n / 2.0 * 2, (n / 2)::float8, n::float8 / 2 FROM leaf_1 ORDER BY n
SELECT 2147483647 + 1
SELECT 9223372036854775807 + 1
SELECT (-32768)::smallint / (-1)::smallint
SELECT 1 / 0
SELECT n / (n - 12) FROM leaf_1 ORDER BY n
SELECT 5 / NULL, NULL / 0, 0.0 / 3, -0.0, 0 * -1.5
SELECT sum(n) / count(*), sum(n) / count(*)::numeric, avg(n), avg(n)::int, sum(n)::float8 / count(*) FROM leaf_1
SELECT pg_typeof(sum(n)), pg_typeof(avg(n)), pg_typeof(count(*)), pg_typeof(sum(g)), pg_typeof(max(g)) FROM leaf_1
-- numeric scales
SELECT 1.0 / 3, 1.00 / 3, 10.0 / 3, 100000.0 / 3, 1 / 3.0, 2.50 * 2.50, 1.10 + 1.1, 1.0 - 1.00, 5.0 % 3
SELECT round(2.5), round(-2.5), round(3.5), round(2.5::float8), round(2.345, 2), round(-2.345, 2), trunc(2.789, 1), ceil(-0.5), floor(-0.5)
SELECT p, p * 2, p / 4, p * p, p + 0.001, round(p, 1), p::int, p::text FROM leaf_3 ORDER BY p
SELECT sum(p), avg(p), min(p), max(p), stddev(p), variance(p), stddev_pop(p), var_pop(p) FROM leaf_3
SELECT sum(f), avg(f), stddev(f), min(f), max(f) FROM leaf_3 WHERE f < 1e10
SELECT 1e3, 1.5e-3, 1e-10 * 1e-10, 12345678901234567890 * 10, 0.1 + 0.2, 0.1::float8 + 0.2::float8
SELECT 1.23::numeric(10,1), 1.25::numeric(10,1), 1.35::numeric(10,1), -1.25::numeric(10,1), 123.456::numeric(5,2)
SELECT 1234.5::numeric(3,1)
SELECT power(2, 10), power(2.0, 0.5), sqrt(2), sqrt(2.0), exp(1), exp(1.0), ln(10), ln(10.0), log(100), log(2, 8), log(2.0, 8.0), cbrt(27)
SELECT factorial(5), gcd(12, 18), lcm(4, 6), sign(-2.5), abs(-3), abs(-3.5), width_bucket(5.5, 0, 10, 4), width_bucket(n, 0, 40, 4) FROM leaf_1 ORDER BY n
SELECT 3.7::int, -3.5::int, 2.5::int, 3.5::int, 2.5::float8::int, 3.5::float8::int, '42'::int, ' 42 '::int, 42::text, 4.20::text, 1e20::float8::text
SELECT 'abc'::int
SELECT true::int, 1::bool, 'yes'::bool, 'off'::bool, true::text, (n > 5)::int FROM leaf_1 ORDER BY n
SELECT 1e400::float8
SELECT 'NaN'::float8, 'Infinity'::float8, '-Infinity'::float8, 'NaN'::float8 = 'NaN'::float8, 'NaN'::float8 > 'Infinity'::float8
SELECT 'NaN'::numeric, 'NaN'::numeric + 1
SELECT 1::float4 / 3, 1::float8 / 3, (1::float4 / 3)::float8, 16777217::float4, 0.1::float4 + 0.2::float4
-- times, zones, to_char
SELECT timestamptz '2024-03-31 01:30:00+00', timestamptz '2024-03-31 01:30:00+00' AT TIME ZONE 'Europe/Berlin', timestamp '2024-03-31 02:30' AT TIME ZONE 'Europe/Berlin'
SELECT date_trunc('month', timestamptz '2024-03-31 23:30:00-05'), date_trunc('week', date '2024-01-01'), date_trunc('quarter', timestamp '2024-05-06 07:08:09')
SELECT d + 1, d - 1, d - date '2024-01-01', d + interval '1 month', d - interval '1 day', d::timestamp, d::timestamptz FROM leaf_2 ORDER BY d
SELECT date '2024-01-31' + interval '1 month', date '2024-02-29' + interval '1 year', timestamp '2024-03-31' - interval '1 month'
SELECT age(date '2024-03-01', date '2023-12-31'), timestamp '2024-03-01' - timestamp '2023-12-31 12:00', justify_days(interval '40 days'), interval '1 month' * 1.5
SELECT extract(dow FROM d), extract(isodow FROM d), extract(doy FROM d), extract(week FROM d), extract(isoyear FROM d), extract(quarter FROM d), extract(epoch FROM d), extract(century FROM d) FROM leaf_2 ORDER BY d
SELECT date_part('year', d), date_part('month', d), date_part('epoch', d::timestamp) FROM leaf_2 ORDER BY d
SELECT to_char(d, 'YYYY-MM-DD'), to_char(d, 'FMMonth DD, YYYY'), to_char(d, 'Day'), to_char(d, 'IYYY-IW'), to_char(d, 'Q'), to_char(d, 'DDth Mon YY'), to_char(d, 'MON') FROM leaf_2 ORDER BY d
SELECT to_char(timestamp '2024-05-06 17:08:09.123', 'HH12:MI:SS AM'), to_char(timestamp '2024-05-06 17:08:09.123', 'HH24:MI:SS.MS'), to_char(timestamp '2024-05-06 17:08:09.123', 'J'), to_char(timestamp '2024-05-06 17:08:09.123', 'TMMonth')
SELECT to_char(n, '999,999'), to_char(n, 'FM999'), to_char(n, '000'), to_char(n, 'S999'), to_char(n, '999.99'), to_char(n, 'MI999'), to_char(n, '999PR') FROM leaf_1 ORDER BY n
SELECT to_char(1234.567, '9,999.99'), to_char(-0.5, 'FM0.00'), to_char(0.1, '.99'), to_char(1234567, '9.99EEEE'), to_char(12, 'RN'), to_char(125.8::float8, '999D9')
SELECT to_date('2024-05-06', 'YYYY-MM-DD'), to_timestamp('2024-05-06 07:08', 'YYYY-MM-DD HH24:MI'), to_timestamp(1700000000), to_number('1,234.5', '9,999.9')
SELECT make_date(2024, 2, 29), make_timestamp(2024, 1, 2, 3, 4, 5.5), make_interval(days => 3), date_bin('15 minutes', timestamp '2024-01-01 10:17', timestamp '2024-01-01')
SELECT make_date(2023, 2, 29)
SELECT '2024-02-30'::date
SELECT date '2024-01-01' = timestamp '2024-01-01', date '2024-01-01' < timestamptz '2024-01-01 00:00:01+00', 'infinity'::timestamp > now()
SELECT interval '1 year 2 mons 3 days 04:05:06.7', interval '-1 day', interval '36 hours', interval '1 day' = interval '24 hours', interval '90 minutes'::text
SELECT d::text, d::timestamp::text, to_char(d, 'YYYY')::int + 1 FROM leaf_2 ORDER BY d
SELECT extract(hour FROM timestamptz '2024-06-01 12:00:00+00'), extract(timezone FROM timestamptz '2024-06-01 12:00:00+00'), (timestamptz '2024-06-01 12:00:00+00')::date
SELECT time '12:34:56', time '12:34' + interval '1 hour', '2024-01-01 10:00'::timestamp::time
SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', date '2024-03-01')
SELECT localtime IS NOT NULL, current_date = now()::date, extract(epoch FROM now()) > 0
-- NULLs and order
SELECT k, g FROM leaf_1 ORDER BY k, g
SELECT k, g FROM leaf_1 ORDER BY k DESC, g DESC
SELECT k, g FROM leaf_1 ORDER BY k NULLS FIRST, g DESC NULLS LAST
SELECT k, row_number() OVER (ORDER BY k DESC, n) FROM leaf_1 ORDER BY 2
SELECT max(k), min(k), count(k), count(*), count(DISTINCT k), string_agg(k, ',' ORDER BY k), array_agg(g ORDER BY g DESC NULLS LAST) FROM leaf_1
SELECT NULL = NULL, NULL IS NULL, NULL IS DISTINCT FROM 1, 1 IN (NULL, 1), 1 NOT IN (NULL, 2), NULL AND false, NULL OR true, NOT NULL::bool
SELECT coalesce(k, '-'), nullif(g, 1), greatest(g, n), least(g, n, NULL), num_nulls(k, g) FROM leaf_1 ORDER BY n
SELECT sum(n) FILTER (WHERE k = 'none'), avg(n) FILTER (WHERE false), count(*) FILTER (WHERE k IS NULL), bool_and(n > 0), bool_or(n > 30), every(n > -10) FROM leaf_1
SELECT sum(x), avg(x), max(x), count(x), array_agg(x), string_agg(x::text, ',') FROM (SELECT n AS x FROM leaf_1 WHERE false) e
SELECT k, sum(n) FROM leaf_1 GROUP BY ROLLUP (k) ORDER BY k NULLS LAST, 2
SELECT k, g, sum(n), grouping(k, g) FROM leaf_1 GROUP BY CUBE (k, g) ORDER BY 4, 1, 2, 3
SELECT k, g, count(*) FROM leaf_1 GROUP BY GROUPING SETS ((k), (g), ()) ORDER BY 1, 2, 3
-- names of columns
SELECT 1, 1 + 1, 'a', true, NULL, -n, n::text, n::int8, upper(k), count(*) OVER (), CASE WHEN true THEN 1 END, ARRAY[1], (SELECT 5), EXISTS (SELECT 1) FROM leaf_1 ORDER BY n LIMIT 1
SELECT current_date IS NULL, date '2024-01-01', interval '1 day', extract(year FROM date '2024-01-01'), 1::bigint, cast(1 AS numeric(4,1)), 'x'::varchar(3), ROW(1, 'a')::text
SELECT (SELECT n AS inner_name FROM leaf_1 WHERE n = 12), coalesce(1, 2), greatest(1, 2), nullif(1, 2), trim('  x '), substring('abc', 2), position('b' in 'abc')
SELECT x.*, x.n AS n FROM leaf_1 x ORDER BY 3 LIMIT 2
SELECT * FROM (SELECT 1, 2, 'c') AS t
SELECT * FROM (SELECT 1 + 1, count(*) FROM leaf_1) AS t
SELECT "?column?" FROM (SELECT 1 + 1) t
SELECT a FROM (SELECT 1 AS a, 2 AS a) t
SELECT K FROM leaf_1 ORDER BY N LIMIT 1
SELECT n AS "Anzahl ""N""", k AS "k.k" FROM leaf_1 ORDER BY 1 LIMIT 1
-- strings
SELECT upper(k), lower(k), initcap('hello wORLD x1y'), length('Äbc'), octet_length('Äbc'), reverse('Äbc'), ascii('Ä'), chr(196) FROM leaf_1 ORDER BY n LIMIT 1
SELECT 'a' || NULL, concat('a', NULL, 1, true), concat_ws('-', 'a', NULL, 'b'), format('%s is %s', 'x', 1), format('%I %L', 'a b', 'c''d'), repeat('ab', 3), lpad('x', 4, 'ab'), rpad('abc', 2)
SELECT substring('abcdef' from 0 for 3), substring('abc', -1), substr('abc', 2, 10), left('abcd', -1), right('abcd', -1), overlay('abcdef' placing 'X' from 2 for 3), split_part('a,b,c', ',', 2), split_part('a,b,c', ',', -1)
SELECT trim(both 'x' from 'xxaxx'), ltrim('  a'), rtrim('a  ') || '|', btrim('xyaxy', 'xy'), strpos('abc', 'c'), position('' in 'abc'), translate('12345', '143', 'ax'), replace('aaa', 'a', 'bb'), starts_with('abc', 'ab')
SELECT 'abc' LIKE 'a%', 'abc' LIKE 'A%', 'abc' ILIKE 'A%', 'a_c' LIKE 'a\_c', 'a%c' LIKE 'a!%c' ESCAPE '!', 'abc' SIMILAR TO '(a|b)%', NULL LIKE 'a', k LIKE '%' FROM leaf_1 ORDER BY n LIMIT 1
SELECT 'abc' ~ '^a', 'abc' ~* 'B', 'abc' !~ 'z', regexp_replace('foobar', 'o+', '0'), regexp_replace('foobar', 'o', '0', 'g'), substring('foobar' from 'o(.)b'), regexp_match('foobar', 'o(.)')
SELECT regexp_split_to_array('a1b22c', '[0-9]+'), string_to_array('a,b,,c', ','), array_to_string(ARRAY['a', NULL, 'b'], ',', '*'), md5('a'), encode('abc', 'hex'), to_hex(255), quote_ident('a b'), quote_literal('a''b')
SELECT 'b' > 'a', 'B' > 'a', 'Ä' > 'z', 'a' < 'a ', 'a'::char(3) = 'a', 'a'::varchar = 'a ', 'abc'::char(2), 'abcdef'::varchar(3), length('ab '::char(5))
SELECT E'a\nb', 'it''s', U&'\0041', $$x$$, 'a\b'
SELECT k || ':' || n::text || ':' || (n > 5)::text || ':' || 1.50::text FROM leaf_1 ORDER BY n
-- windows
SELECT n, sum(n) OVER (ORDER BY n), avg(n) OVER (ORDER BY n ROWS 1 PRECEDING), count(*) OVER (ORDER BY k), rank() OVER (ORDER BY k DESC), dense_rank() OVER (ORDER BY k) FROM leaf_1 ORDER BY n
SELECT n, lag(n, 1, -1) OVER w, lead(n) OVER w, first_value(n) OVER w, last_value(n) OVER w, nth_value(n, 2) OVER w FROM leaf_1 WINDOW w AS (ORDER BY n) ORDER BY n
SELECT n, ntile(4) OVER (ORDER BY n), percent_rank() OVER (ORDER BY g), cume_dist() OVER (ORDER BY g), row_number() OVER (PARTITION BY k ORDER BY n) FROM leaf_1 ORDER BY n
SELECT n, sum(n) OVER (ORDER BY n RANGE BETWEEN 10 PRECEDING AND 5 FOLLOWING), sum(n) OVER (ORDER BY n GROUPS 1 PRECEDING), sum(n) OVER (ORDER BY n ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM leaf_1 ORDER BY n
SELECT d, sum(n) OVER (ORDER BY d RANGE BETWEEN interval '20 days' PRECEDING AND CURRENT ROW) FROM leaf_2 ORDER BY d
SELECT n, sum(n) FILTER (WHERE n > 5) OVER (ORDER BY n), round(100.0 * n / sum(n) OVER (), 2), n - avg(n) OVER () FROM leaf_1 ORDER BY n
SELECT k, sum(sum(n)) OVER (ORDER BY k), rank() OVER (ORDER BY sum(n) DESC) FROM leaf_1 GROUP BY k ORDER BY k
SELECT ntile(0) OVER (ORDER BY n) FROM leaf_1
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY n), mode() WITHIN GROUP (ORDER BY g), percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY n) FROM leaf_1
SELECT corr(n, g), covar_pop(n, g), covar_samp(n, g), regr_slope(n, g), regr_intercept(n, g), regr_r2(n, g), regr_count(n, g) FROM leaf_1
-- table expressions, unions, sub-queries
WITH a AS (SELECT k, sum(n) s FROM leaf_1 GROUP BY k), b AS (SELECT max(s) m FROM a) SELECT a.k, a.s, b.m, a.s = b.m FROM a, b ORDER BY 1
WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 5) SELECT i, sum(i) OVER (ORDER BY i) FROM t ORDER BY i
WITH RECURSIVE t(i) AS (SELECT 1 UNION SELECT (i * 2) % 7 FROM t) SELECT i FROM t ORDER BY i
WITH a AS MATERIALIZED (SELECT n FROM leaf_1), b AS NOT MATERIALIZED (SELECT n FROM a WHERE n > 5) SELECT count(*) FROM a, b
WITH leaf AS (SELECT * FROM leaf_1) SELECT * FROM leaf UNION ALL SELECT k, g, n FROM leaf_1 ORDER BY 3, 1, 2
SELECT k FROM leaf_1 UNION SELECT d::text FROM leaf_2 ORDER BY 1
SELECT 1 UNION ALL SELECT 2.5 UNION ALL SELECT NULL ORDER BY 1
SELECT g FROM leaf_1 INTERSECT ALL SELECT g FROM leaf_1 ORDER BY 1
SELECT g FROM leaf_1 EXCEPT ALL SELECT 1 ORDER BY 1
(SELECT n FROM leaf_1 ORDER BY n LIMIT 1) UNION ALL (SELECT n FROM leaf_1 ORDER BY n DESC LIMIT 1) ORDER BY 1
SELECT 1 UNION SELECT 'a'
SELECT 1, 2 UNION SELECT 1
SELECT n FROM leaf_1 o WHERE n > (SELECT avg(n) FROM leaf_1 i WHERE i.k = o.k) ORDER BY 1
SELECT k, (SELECT count(*) FROM leaf_1 i WHERE i.n < o.n) FROM leaf_1 o ORDER BY n
SELECT (SELECT n FROM leaf_1)
SELECT n FROM leaf_1 WHERE n > ALL (SELECT n FROM leaf_2 WHERE n < 20) ORDER BY n
SELECT n, n = ANY (SELECT n FROM leaf_2), n IN (SELECT NULL::bigint), n NOT IN (SELECT n FROM leaf_2) FROM leaf_1 ORDER BY n
SELECT a.k, b.k FROM leaf_1 a LEFT JOIN leaf_1 b ON a.g = b.g AND b.k = 'b' ORDER BY a.n, b.n
SELECT * FROM leaf_1 a JOIN leaf_2 b USING (n) ORDER BY n, d
SELECT a.n FROM leaf_1 a FULL JOIN leaf_2 b ON a.n = b.n WHERE a.n IS NULL OR b.n IS NULL ORDER BY 1
SELECT x.v, x.o FROM leaf_2 l, LATERAL unnest(ARRAY[l.n, -l.n]) WITH ORDINALITY AS x(v, o) ORDER BY l.d, x.o
SELECT k FROM leaf_1 GROUP BY k HAVING count(*) > 1 ORDER BY sum(n) DESC
SELECT k, n FROM leaf_1 GROUP BY k
SELECT nope FROM leaf_1
SELECT n FROM leaf_1 WHERE k = 1
SELECT sum(k) FROM leaf_1
SELECT n FROM leaf_1 ORDER BY n LIMIT -1
SELECT DISTINCT n FROM leaf_1 ORDER BY k
SELECT n FROM leaf_1 ORDER BY 7
SELECT n FROM leaf_1 ORDER BY n OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY
SELECT g FROM leaf_1 ORDER BY g NULLS FIRST FETCH FIRST 2 ROWS WITH TIES
-- functions that return sets, arrays, rows, JSON
SELECT generate_series(1, 3), n FROM leaf_1 WHERE n = 12
SELECT generate_series(1, 3), generate_series(1, 2)
SELECT * FROM generate_series(1, 10, 3)
SELECT * FROM generate_series(5, 1)
SELECT * FROM generate_series(date '2024-01-30', date '2024-02-02', interval '1 day') AS g(day)
SELECT x FROM generate_series(0.5, 2.0, 0.5) x
SELECT unnest(ARRAY[1, 2]), unnest(ARRAY['a', 'b', 'c'])
SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b', 'c']) AS u(i, t)
SELECT string_to_table('a,b', ',')
SELECT regexp_split_to_table('a b c', ' ')
SELECT array_length(ARRAY[1, 2, 3], 1), cardinality(ARRAY[[1, 2], [3, 4]]), ARRAY[1, 2] || 3, (ARRAY[5, 6, 7])[2], (ARRAY[5, 6, 7])[2:3], 2 = ANY (ARRAY[1, 2]), ARRAY[1, 2] @> ARRAY[1], array_position(ARRAY['a', 'b'], 'b')
SELECT array_agg(n ORDER BY n), array_agg(DISTINCT k ORDER BY k), array_agg(k) FILTER (WHERE k > 'a') FROM leaf_1
SELECT json_build_object('k', k, 'n', n), json_agg(n ORDER BY n) FROM leaf_1 GROUP BY k, n ORDER BY n
SELECT row_to_json(t) FROM (SELECT k, n FROM leaf_1 ORDER BY n LIMIT 1) t
SELECT to_json(1.50), to_jsonb('a'::text), '{"a": [1, 2]}'::jsonb -> 'a' ->> 1, jsonb_pretty('{"a":1}'::jsonb)
SELECT ROW(1, 'a') = ROW(1, 'a'), ROW(1, 2) < ROW(1, 3), (1, NULL) IS NULL, ROW(NULL, NULL) IS NULL
SELECT CASE k WHEN 'a' THEN 1 WHEN 'b' THEN 2.5 ELSE NULL END, CASE WHEN n > 10 THEN 'x' END FROM leaf_1 ORDER BY n
SELECT CASE WHEN true THEN 1 ELSE 1 / 0 END, coalesce(1, 1 / 0)
SELECT b, NOT b, b IS TRUE, b IS NOT FALSE, b IS UNKNOWN, b AND NULL, b::int, count(*) OVER (PARTITION BY b) FROM leaf_3 ORDER BY n, p
SELECT 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 4, 16 >> 2, 2 ^ 3, |/ 16, @ -5, 5 !~~ 'a'
SELECT bit_and(n), bit_or(n), bit_xor(n) FROM leaf_1
SELECT n BETWEEN 0 AND 12, n NOT BETWEEN SYMMETRIC 12 AND 0 FROM leaf_1 ORDER BY n
SELECT '550e8400-e29b-41d4-a716-446655440000'::uuid, 'x'::bytea, B'101', '1 day'::interval, '192.168.0.1'::inet, '{1,2}'::int[]
SELECT concat_ws(',', true, 1, NULL, 'x'), concat(true, false), format('%s', true), array_to_string(ARRAY[true,false], ','), 'a' || true
SELECT pg_typeof(max(g)) FROM leaf_1
SELECT g / 0 FROM leaf_1 WHERE g IS NULL
SELECT '{"b":1, "a":2}'::jsonb, '{"b":1, "a":2}'::json, '192.168.000.001'::inet, 'abc  '::bpchar, 'ab'::char(5) || '|', 'a'::"char", 'abc'::name, 'ABCDEF00-0000-0000-0000-000000000000'::uuid, '  12 '::oid, 'a b'::tsvector, '08:00:2b:01:02:03'::macaddr, '(1,2)'::point, '12.5'::money
SELECT '{ 1 , 2}'::int[], '{a,"b c",NULL}'::text[], '{{1,2},{3,4}}'::int[], '[1,5)'::int4range, '1 2 3'::int2vector, 'pg_class'::regclass, 'int4'::regtype
SELECT 'pg_class'::regclass::oid, 1259::regclass, 23::regtype::text, '1259'::regclass
SELECT '10:00'::time, '2024-01-01 10:00+02'::timestamptz, '20240101'::date, 'Jan 5, 2024'::date, 'today'::date = current_date, '1/8/1999'::date, 'epoch'::timestamp
SELECT '1e3'::numeric, '.5'::numeric, '0x10'::int, '1_000'::int, '+5'::int, '1e2'::int
-- chars of several lengths, whose equal values look otherwise
SELECT DISTINCT coalesce(c, 'x') FROM leaf_4 ORDER BY 1
SELECT coalesce(c, c5), count(*) FROM leaf_4 GROUP BY 1 ORDER BY 1
SELECT c FROM leaf_4 UNION SELECT c5 FROM leaf_4 ORDER BY 1
SELECT c FROM leaf_4 INTERSECT SELECT c5 FROM leaf_4 ORDER BY 1
SELECT n, greatest(c, 'b'), least(c, 'b '), greatest(c, c5) FROM leaf_4 WHERE c IS NOT NULL ORDER BY n
SELECT max(coalesce(c, 'x')), min(v::bpchar) FROM leaf_4
SELECT array_agg(DISTINCT c ORDER BY c), array_position(array_agg(c ORDER BY n), 'ab '), array_remove(array_agg(c ORDER BY n), 'ab '), array_agg(c) @> ARRAY['ab '::bpchar], array_to_string(array_agg(c ORDER BY n), ','), array_agg(c ORDER BY n) = array_agg(c5 ORDER BY n), json_agg(c ORDER BY n), unnest(array_agg(c ORDER BY n)) FROM leaf_4
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY c), mode() WITHIN GROUP (ORDER BY c5) FROM leaf_4
SELECT x, count(*) FROM (VALUES ('a'::bpchar), ('a ')) v(x) GROUP BY x
SELECT ARRAY[c, v], ARRAY[v, c], ARRAY[c] = ARRAY[c5], c = ANY (ARRAY[v]), c = ANY (ARRAY[t]) FROM leaf_4 ORDER BY n
SELECT (c, n) = (c5, n), (c, n) < ('b ', n), ROW(c, n) IS NULL FROM leaf_4 ORDER BY n
SELECT to_json(c) FROM leaf_4 ORDER BY n

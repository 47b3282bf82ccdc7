-- Forms of SQL with places for parameters, for TestDescribedBesidePostgres (described_test.go says how they are read).

-- over samples: small whole big dec free single double txt short flag day at zoned token
-- over (SELECT COLUMN, count(*) AS n FROM customers GROUP BY 1) q: tier born balance score rating level clicks newsletter segment seen joined
SELECT COLUMN = $1, $2 <> COLUMN, COLUMN < $3, COLUMN >= $4 FROM TABLE
SELECT COLUMN FROM TABLE WHERE COLUMN = $1 AND COLUMN > $2 OR $3
SELECT nullif(COLUMN, $1) FROM TABLE
SELECT nullif($1, COLUMN) FROM TABLE
SELECT coalesce(COLUMN, $1), coalesce($2, COLUMN, $3) FROM TABLE
SELECT greatest(COLUMN, $1) FROM TABLE
SELECT least($1, COLUMN) FROM TABLE
SELECT CASE WHEN $1 THEN COLUMN ELSE $2 END, CASE WHEN COLUMN IS NULL THEN $3 ELSE COLUMN END FROM TABLE
SELECT CASE COLUMN WHEN $1 THEN $2 WHEN $3 THEN 'a' ELSE 'b' END FROM TABLE
SELECT CASE $1 WHEN COLUMN THEN 1 END FROM TABLE
SELECT COLUMN IN ($1, $2), $3 IN (COLUMN, COLUMN) FROM TABLE
SELECT COLUMN NOT IN ($1, $2) FROM TABLE
SELECT COLUMN BETWEEN $1 AND $2 FROM TABLE
SELECT $1 BETWEEN COLUMN AND COLUMN FROM TABLE
SELECT COLUMN BETWEEN SYMMETRIC $1 AND $2 FROM TABLE
SELECT COLUMN IS DISTINCT FROM $1, $2 IS NOT DISTINCT FROM COLUMN FROM TABLE
SELECT COLUMN = ANY($1) FROM TABLE
SELECT COLUMN <> ALL($1) FROM TABLE
SELECT COLUMN = ANY(ARRAY[$1, $2]) FROM TABLE
SELECT $1 = ANY(ARRAY[COLUMN]) FROM TABLE
SELECT ARRAY[COLUMN, $1] FROM TABLE
SELECT lag(COLUMN, $1) OVER (ORDER BY COLUMN) FROM TABLE
SELECT lead(COLUMN, $1, $2) OVER (ORDER BY COLUMN) FROM TABLE
SELECT nth_value(COLUMN, $1) OVER (ORDER BY COLUMN) FROM TABLE
SELECT first_value(COLUMN) OVER (ORDER BY COLUMN ROWS BETWEEN $1 PRECEDING AND $2 FOLLOWING) FROM TABLE
SELECT ntile($1) OVER (ORDER BY COLUMN) FROM TABLE
SELECT $1 UNION SELECT COLUMN FROM TABLE
SELECT COLUMN FROM TABLE UNION ALL SELECT $1
SELECT COLUMN, $1 FROM TABLE UNION ALL SELECT $2, COLUMN FROM TABLE
SELECT COLUMN FROM TABLE INTERSECT SELECT $1
SELECT $1 EXCEPT SELECT COLUMN FROM TABLE
SELECT COLUMN FROM TABLE WHERE COLUMN IN (SELECT $1)
SELECT $1 IN (SELECT COLUMN FROM TABLE)
SELECT COLUMN = (SELECT $1) FROM TABLE
SELECT COLUMN FROM TABLE WHERE (COLUMN, 1) = ($1, $2)
SELECT COLUMN FROM TABLE WHERE (COLUMN, COLUMN) IN (($1, $2))
SELECT COLUMN + $1 FROM TABLE
SELECT $1 - COLUMN FROM TABLE
SELECT COLUMN * $1 FROM TABLE
SELECT COLUMN / $1 FROM TABLE
SELECT COLUMN % $1 FROM TABLE
SELECT COLUMN || $1 FROM TABLE
SELECT count(*) FILTER (WHERE COLUMN = $1) FROM TABLE
SELECT COLUMN FROM TABLE GROUP BY COLUMN HAVING min(COLUMN) > $1
SELECT COLUMN FROM TABLE GROUP BY COLUMN HAVING COLUMN = $1 ORDER BY COLUMN LIMIT $2 OFFSET $3
SELECT max(COLUMN) = $1, sum(COLUMN) > $2 FROM TABLE
SELECT percentile_disc($1) WITHIN GROUP (ORDER BY COLUMN) FROM TABLE
SELECT array_position(ARRAY[COLUMN], $1) FROM TABLE
SELECT array_append(ARRAY[COLUMN], $1) FROM TABLE
SELECT array_remove(ARRAY[COLUMN], $1) FROM TABLE
SELECT array_prepend($1, ARRAY[COLUMN]) FROM TABLE
SELECT ARRAY[COLUMN] || $1 FROM TABLE
SELECT ARRAY[COLUMN] = $1 FROM TABLE
SELECT ARRAY[COLUMN] @> $1 FROM TABLE
SELECT ARRAY[COLUMN] && ARRAY[$1] FROM TABLE
SELECT (ARRAY[COLUMN])[$1] FROM TABLE
SELECT a.COLUMN FROM TABLE JOIN (SELECT $1 AS p) r ON true JOIN samples a ON a.COLUMN = $2
WITH q AS (SELECT COLUMN FROM TABLE WHERE COLUMN = $1) SELECT COLUMN FROM q WHERE COLUMN < $2
SELECT COLUMN FROM TABLE WHERE $1::text = 'a' AND COLUMN = $2
SELECT $1, COLUMN FROM TABLE WHERE COLUMN = $1
SELECT COLUMN FROM TABLE WHERE COLUMN = $1 AND $1 IS NOT NULL
SELECT COLUMN FROM TABLE ORDER BY COLUMN = $1, COLUMN FETCH FIRST $2 ROWS ONLY
SELECT COLUMN::text LIKE $1 FROM TABLE
SELECT to_char(COLUMN, $1) FROM TABLE
SELECT count(*) FROM TABLE GROUP BY CASE WHEN COLUMN > $1 THEN 1 ELSE $2 END
SELECT COLUMN FROM (VALUES ($1)) v(p), TABLE WHERE COLUMN::text = v.p
SELECT string_agg(COLUMN::text, $1) FROM TABLE
SELECT min(coalesce(COLUMN, $1)) FROM TABLE
SELECT concat(COLUMN, $1) FROM TABLE

-- over customers: tier born balance score rating level clicks newsletter segment seen joined email
SELECT count(*) FROM TABLE WHERE COLUMN = $1
SELECT count(*) FROM TABLE WHERE COLUMN > $1 AND COLUMN <= $2 OR $3
SELECT count(*) FROM TABLE WHERE COLUMN IN ($1, $2) OR COLUMN NOT IN ($3)
SELECT count(*) FROM TABLE WHERE COLUMN BETWEEN $1 AND $2
SELECT count(*) FROM TABLE WHERE COLUMN = ANY($1)
SELECT count(*) FROM TABLE WHERE COLUMN <> ALL($1)
SELECT count(*) FROM TABLE WHERE COLUMN IS DISTINCT FROM $1
SELECT count(*) FROM TABLE WHERE nullif(COLUMN, $1) IS NULL
SELECT count(*) FROM TABLE WHERE coalesce(COLUMN, $1) = $2
SELECT count(*) FROM TABLE WHERE greatest(COLUMN, $1) = $2
SELECT count(*) FROM TABLE WHERE COLUMN IN (SELECT $1)
SELECT count(*) FROM TABLE WHERE (COLUMN, tier) = ($1, $2)
SELECT count(*) FROM TABLE WHERE CASE WHEN COLUMN = $1 THEN $2 ELSE COLUMN END = $3
SELECT count(*) FROM TABLE WHERE CASE COLUMN WHEN $1 THEN $2 ELSE false END
SELECT count(*) FILTER (WHERE COLUMN = $1), count(*) FROM TABLE LIMIT $2
SELECT sum(CASE WHEN COLUMN = $1 THEN 1 ELSE 0 END) FROM TABLE
SELECT sum(CASE WHEN COLUMN = $1 THEN $2 ELSE 0 END) FROM TABLE
SELECT nullif(COLUMN, $1), count(*) FROM TABLE GROUP BY 1
SELECT coalesce(COLUMN, $1), count(*) FROM TABLE GROUP BY 1
SELECT CASE WHEN COLUMN < $1 THEN $2 ELSE $3 END, count(*) FROM TABLE GROUP BY 1
SELECT tier, count(*) FROM TABLE GROUP BY tier HAVING count(*) > $1 AND min(COLUMN) < $2
SELECT max(COLUMN) FROM TABLE WHERE COLUMN + $1 > COLUMN
SELECT count(*) FROM TABLE WHERE COLUMN - $1 > $2
SELECT count(*) FROM TABLE WHERE COLUMN * $1 > $2
SELECT COLUMN, count(*) FROM TABLE GROUP BY COLUMN UNION ALL SELECT $1, $2
SELECT $1, COLUMN, count(*) FROM TABLE WHERE COLUMN = $2 GROUP BY COLUMN
SELECT count(*) FROM TABLE WHERE COLUMN::text LIKE $1
SELECT percentile_disc($1) WITHIN GROUP (ORDER BY COLUMN) FROM TABLE
SELECT count(*) FROM (SELECT COLUMN, lag(COLUMN, $1, $2) OVER (PARTITION BY customer_id ORDER BY level) AS before FROM TABLE) t WHERE before = COLUMN
SELECT count(*) FROM (SELECT ntile($1) OVER (PARTITION BY customer_id ORDER BY level) AS part FROM TABLE WHERE COLUMN = $2) t WHERE part = $3

-- over customers: country
SELECT count(*) FROM TABLE WHERE COLUMN = $1 OR COLUMN IN ($2, $3) OR COLUMN > $4
SELECT count(*) FROM TABLE WHERE COLUMN = ANY($1)
SELECT coalesce(COLUMN, $1), nullif(COLUMN, $2), count(*) FROM TABLE GROUP BY 1, 2
SELECT COLUMN, lag(COLUMN, 1, $1) OVER (ORDER BY COLUMN) FROM (SELECT COLUMN, count(*) AS n FROM TABLE GROUP BY 1) q WHERE COLUMN = $2

-- over samples: id
SELECT $1
SELECT $1, $2
SELECT $1::int, $2::text, $3::date, $4::numeric(10,2), $5::varchar(3), $6::char(4), $7::boolean, $8::int[], $9::text[], $10::interval, $11::timestamptz, $12::uuid
SELECT CAST($1 AS bigint) + $1
SELECT $1 + 1, $2 + 1.5, $3 + 1::bigint, $4 * 1e0
SELECT $1 + $2
SELECT -$1
SELECT $1 AND $2, NOT $3, $4 OR true
SELECT $1 IS NULL
SELECT $1 IS TRUE, $2 IS NOT UNKNOWN
SELECT $1 || $2, $3 || 'a', 1 || $4
SELECT $1 = $2
SELECT $1 = 'a', $2 > 1, $3 < 1.5, $4 = true, $5 = date '2024-01-01'
SELECT $1 LIKE 'a%', 'a' LIKE $2, $3 ILIKE $4, $5 NOT LIKE 'b' ESCAPE '!', $6 SIMILAR TO $7, $8 ~ $9, $10 ~* 'a', 'a' !~ $11
SELECT txt LIKE $1, short LIKE $2, short ~ $3, txt SIMILAR TO $4 FROM samples
SELECT txt LIKE $1 ESCAPE $2 FROM samples
SELECT $1 BETWEEN 1 AND 2, 1 BETWEEN $2 AND $3, $4 BETWEEN $5 AND 2.5
SELECT $1 IN (1, 2), $2 IN ('a', 'b'), 1 IN ($3, $4), $5 IN (1, 2.5)
SELECT coalesce($1, 1), coalesce('a', $2), coalesce($3, $4), coalesce($5, 1.5, 2)
SELECT nullif($1, 1), nullif(1, $2), nullif($3, $4), nullif('a', $5), nullif(1.5, $6)
SELECT greatest($1, 1), least($2, 'a'), greatest($3, $4)
SELECT CASE WHEN $1 THEN 1 ELSE 2 END, CASE $2 WHEN 1 THEN $3 ELSE 'a' END, CASE WHEN true THEN $4 ELSE $5 END, CASE WHEN true THEN $6 END
SELECT CASE $1 WHEN 'a' THEN 1 WHEN 'b' THEN 2 END
SELECT ARRAY[$1, 2], ARRAY[$2, 'a'], ARRAY[$3]
SELECT $1::int[] = ARRAY[1], ARRAY[1, 2] || $2, ARRAY[1] || $3::int[], array_append($4::int[], $5)
SELECT 1 = ANY($1), 'a' = ANY($2), 1.5 = ANY($3), $4 = ANY('{1,2}'::int[]), $5 = ANY(ARRAY['a'])
SELECT ROW($1, 1) = ROW(2, $2)
SELECT (ARRAY[1, 2, 3])[$1:$2]
SELECT array_to_string(ARRAY[1, 2], $1, $2), array_length(ARRAY[1], $3), cardinality($4::int[]), string_to_array($5, $6), array_upper($7::int[], $8)
SELECT unnest($1::int[]), unnest($2::text[])
SELECT * FROM unnest($1::int[], $2::text[]) u(a, b)
SELECT * FROM generate_series($1, 10) g
SELECT * FROM generate_series($1, $2::int) g
SELECT * FROM generate_series(1, $1, $2) g
SELECT * FROM generate_series($1::date, $2::date, $3) g
SELECT * FROM generate_series(timestamp '2024-01-01', $1, $2) g
SELECT id FROM samples LIMIT $1
SELECT id FROM samples OFFSET $1
SELECT id FROM samples FETCH FIRST $1 ROWS ONLY
SELECT id FROM samples LIMIT $1 + 1
VALUES ($1, $2)
VALUES ($1, 'a'), (1, $2), ($3, $4)
SELECT * FROM (VALUES ($1, 1), ($2, $3)) v(a, b)
SELECT * FROM (VALUES (1.5, $1), ($2, now())) v(a, b)
SELECT $1 UNION SELECT 1
SELECT $1 UNION SELECT $2
SELECT $1 UNION SELECT $2 UNION SELECT 1
SELECT $1 UNION ALL SELECT 'a' UNION ALL SELECT 'b'
SELECT 1 UNION SELECT $1 UNION SELECT 2.5
SELECT 1, $1 UNION ALL SELECT $2, 2
SELECT $1 AS a UNION SELECT 1.5 ORDER BY a LIMIT $2
SELECT ($1), (SELECT $2), (SELECT $3 + 1)
SELECT EXISTS (SELECT 1 FROM samples WHERE id = $1)
SELECT ARRAY(SELECT id FROM samples WHERE id > $1)
SELECT a FROM (SELECT $1 AS a) t WHERE a = 'x'
SELECT a + 1 FROM (SELECT $1::int AS a) t
SELECT id FROM samples WHERE id = (SELECT max(id) FROM samples WHERE id < $1)
SELECT id FROM samples WHERE id > ALL (SELECT $1::int)
WITH q AS (SELECT $1 AS a, $2::int AS b) SELECT a, b FROM q
WITH q (a) AS (VALUES ($1), (2)) SELECT a + $2 FROM q
WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + $1 FROM r WHERE i < $2) SELECT i FROM r
WITH RECURSIVE r (i) AS (SELECT $1::int UNION ALL SELECT i + 1 FROM r WHERE i < $2) SELECT i FROM r
SELECT lag(id, $1, $2) OVER w, lead(id, $3) OVER w, ntile($4) OVER w, nth_value(txt, $5) OVER w, first_value($6) OVER w FROM samples WINDOW w AS (ORDER BY id)
SELECT sum(id) OVER (ORDER BY id ROWS $1 PRECEDING), sum(big) OVER (ORDER BY id RANGE BETWEEN $2 PRECEDING AND CURRENT ROW), sum(id) OVER (ORDER BY id GROUPS $3 PRECEDING) FROM samples
SELECT sum(id) OVER (ORDER BY day RANGE BETWEEN $1 PRECEDING AND CURRENT ROW) FROM samples
SELECT lag($1) OVER (ORDER BY id), lag('a', 1, $2) OVER (ORDER BY id), lag(1.5, 1, $3) OVER (ORDER BY id) FROM samples
SELECT rank($1) WITHIN GROUP (ORDER BY id), percentile_cont($2) WITHIN GROUP (ORDER BY double) FROM samples
SELECT percentile_cont($1) WITHIN GROUP (ORDER BY double), percentile_disc($2) WITHIN GROUP (ORDER BY id) FROM samples
SELECT mode() WITHIN GROUP (ORDER BY id = $1) FROM samples
SELECT count($1) FROM samples
SELECT sum($1) FROM samples
SELECT avg($1), max($2) FROM samples
SELECT max($1), min($2) FROM samples
SELECT sum($1::int), avg($2::numeric), count(DISTINCT $3::int) FROM samples
SELECT array_agg($1) FROM samples
SELECT bool_and($1), bool_or($2), every($3) FROM samples
SELECT string_agg(txt, $1), string_agg($2, ',') FROM samples
SELECT string_agg(txt, $1 ORDER BY id = $2) FROM samples
SELECT json_agg($1) FROM samples
SELECT json_build_object('a', $1), json_build_object($2, 1)
SELECT json_object_agg(txt, $1) FROM samples
SELECT array_agg(id ORDER BY id) FILTER (WHERE id > $1) FROM samples
SELECT date '2024-01-01' + $1, date '2024-01-01' - $2
SELECT $1 + date '2024-01-01', $2 - date '2024-01-01'
SELECT timestamp '2024-01-01' + $1, timestamp '2024-01-01' - $2
SELECT now() - $1, now() + $2, $3 + now()
SELECT interval '1 day' + $1, interval '1 day' * $2, $3 * interval '1 day', interval '1 day' / $4, interval '1 day' - $5
SELECT $1 * interval '1 day' + day FROM samples
SELECT day + $1::int, at + $2::interval, day - $3::date, zoned - $4 FROM samples
SELECT date_trunc($1, at), date_trunc('day', $2), date_part($3, at), date_part('day', $4) FROM samples
SELECT date_trunc('day', $1::timestamp), date_trunc($2, zoned, $3) FROM samples
SELECT extract(year FROM $1::date), extract(hour FROM zoned - $2) FROM samples
SELECT extract(year FROM $1)
SELECT age($1, at), age(at, $2), age($3::timestamp) FROM samples
SELECT make_date($1, $2, $3), make_timestamp($4, $5, $6, $7, $8, $9), make_interval($10, $11)
SELECT make_interval(days => $1)
SELECT to_date($1, $2), to_timestamp($3), to_timestamp($4, 'YYYY'), to_number($5, $6), to_char(now(), $7), to_char($8, 'YYYY'), to_char(1, $9)
SELECT at AT TIME ZONE $1, zoned AT TIME ZONE $2, $3 AT TIME ZONE 'UTC', timezone($4, at) FROM samples
SELECT date_bin($1, at, $2), (at, at) OVERLAPS ($3, $4) FROM samples
SELECT current_date - $1, current_timestamp - $2, localtimestamp > $3
SELECT length($1), upper($2), lower($3), initcap($4), reverse($5), trim($6), btrim($7, $8), ltrim($9), rtrim($10, 'a'), md5($11), ascii($12), chr($13)
SELECT substr($1, $2, $3), substring($4 FROM $5 FOR $6), substring($7, $8), substring(txt FROM $9), left($10, $11), right($12, $13) FROM samples
SELECT substring($1 FROM 2), substring($2 FROM 'a'), substring(txt FROM $3 FOR '#') FROM samples
SELECT overlay(txt PLACING $1 FROM $2 FOR $3), position($4 IN txt), position('a' IN $5), strpos($6, $7), repeat($8, $9), replace($10, $11, $12), translate($13, $14, $15) FROM samples
SELECT lpad($1, $2, $3), rpad($4, $5), split_part($6, $7, $8), starts_with($9, $10), concat($11, $12), concat_ws($13, $14, 1), format($15, $16), quote_literal($17), quote_ident($18), quote_nullable($19)
SELECT concat($1::text, $2::int), concat_ws(',', $3::text), format('%s %L', $4::text, $5::int)
SELECT regexp_replace($1, $2, $3), regexp_replace(txt, $4, $5, $6), regexp_match($7, $8), regexp_matches(txt, $9), regexp_split_to_array($10, $11), regexp_count($12, $13), regexp_like($14, $15), regexp_substr($16, $17), regexp_instr($18, $19) FROM samples
SELECT regexp_split_to_table($1, $2), string_to_table($3, $4)
SELECT octet_length($1::text), bit_length($2::text), char_length($3), to_hex($4::int), encode($5, 'hex'), decode($6, $7)
SELECT abs($1::int), ceil($2::numeric), floor($3::float8), round($4::numeric, $5), trunc($6::numeric, $7), sign($8::int)
SELECT abs($1), ceil($2)
SELECT sqrt($1), exp($2), ln($3), cbrt($4), degrees($5), sin($6), atan2($7, $8)
SELECT power($1, $2), power(id, $3), power($4, 2), mod($5, $6), mod(id, $7), div($8, 2), log($9), log($10, $11), gcd($12, id), lcm(big, $13) FROM samples
SELECT round($1), round($2, 2), round(id, $3), trunc($4), trunc(dec, $5) FROM samples
SELECT width_bucket($1, 0, 10, $2), width_bucket(dec, $3, $4, $5), width_bucket(double, $6, $7, 3), width_bucket($8::int, ARRAY[1, 2]), width_bucket(id, $9) FROM samples
SELECT random() < $1, setseed($2)
SELECT id << $1, id >> $2, id & $3, big | $4, id # $5, ~$6 FROM samples
SELECT $1 # 1, $2 & 3, $3 << 1, 2 << $4
SELECT $1::json ->> $2, $3::json -> 'a', $4::jsonb ->> 'a'
SELECT pg_typeof($1), pg_typeof($2::int)
SELECT current_setting($1), current_setting($2, $3), set_config($4, $5, $6)
SELECT has_table_privilege($1, 'SELECT'), has_table_privilege('samples', $2), has_schema_privilege($3, $4)
SELECT to_regclass($1), $2::regclass, obj_description($3), obj_description($4, 'pg_class'), col_description($5, $6), format_type($7, $8), pg_get_viewdef($9::regclass), pg_get_userbyid($10)
SELECT relname FROM pg_class WHERE oid = $1 AND relname = $2 AND relkind = $3 AND relnamespace = $4
SELECT relname FROM pg_class WHERE relname LIKE $1 AND relkind IN ($2, $3) AND reltuples > $4 AND relnatts = $5
SELECT relname FROM pg_class WHERE relname = ANY($1) AND oid = ANY($2) AND relkind = ANY($3)
SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > $2 AND NOT attisdropped
SELECT nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid WHERE n.nspname = $1 AND c.relname = $2
SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2 AND ordinal_position > $3
SELECT table_name FROM information_schema.tables WHERE table_schema = $1 AND table_type IN ($2, $3)
SELECT typname FROM pg_type WHERE oid = $1 AND typelem = $2 AND typtype = $3
SELECT name, setting FROM pg_settings WHERE name = $1
SELECT id FROM samples WHERE txt COLLATE "C" < $1
SELECT id FROM samples ORDER BY $1
SELECT id FROM samples GROUP BY id, $1
SELECT DISTINCT $1 FROM samples
SELECT DISTINCT ON (id = $1) id FROM samples
SELECT id FROM samples TABLESAMPLE bernoulli ($1)
SELECT s.id FROM samples s LEFT JOIN samples r ON r.id = s.id AND r.txt = $1 WHERE s.small = $2
SELECT s.id FROM samples s, LATERAL (SELECT p.price * $1 AS x FROM products p WHERE p.product_id = s.id AND p.released > $2) q
SELECT grouping(id), count(*) FROM samples GROUP BY ROLLUP (id) HAVING count(*) > $1 OR id = $2
SELECT price * $1, price + $2, product_id / $3, weight * $4, released + $5, name || $6, category || $7, NOT $8 FROM products
SELECT category = $1, category || $2, coalesce(category, $3), nullif(category, $4), category IN ($5, $6), category = ANY($7), lag(category, 1, $8) OVER (ORDER BY name) FROM products
SELECT count(*) * $1, sum(balance) / $2, avg(level) > $3, round(avg(balance), $4) FROM customers
SELECT nullif(count(*), $1), coalesce(sum(clicks), $2), greatest(count(*), $3) FROM customers
SELECT tier, count(*), lag(count(*), $1, $2) OVER (ORDER BY tier), sum(count(*)) OVER (ORDER BY tier ROWS $3 PRECEDING) FROM customers GROUP BY tier
SELECT tier, n, n + $1 FROM (SELECT tier, count(*) AS n FROM customers WHERE level > $2 GROUP BY tier) t WHERE n > $3 AND tier <> $4 LIMIT $5
SELECT tier, count(*) FROM customers GROUP BY tier UNION ALL SELECT $1, $2
SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY count(*) DESC LIMIT $1
SELECT c.tier, count(*) FROM customers c JOIN orders o ON o.customer_id = c.customer_id WHERE o.total > $1 AND c.born < $2 GROUP BY c.tier
SELECT p.category, count(*) FROM lines l JOIN products p ON p.product_id = l.product_id WHERE p.price > $1 AND l.quantity = $2 GROUP BY p.category
SELECT count(*) FROM customers WHERE extract(year FROM born) = $1 AND date_trunc($2, joined) = $3
SELECT count(*) FROM customers WHERE born + $1 > $2
SELECT count(*) FROM customers WHERE joined > now() - $1
SELECT count(*) FROM customers WHERE joined > $1::timestamptz - interval '1 day' * $2
SELECT count(*) FROM customers WHERE upper(tier) = $1 AND left(tier, $2) = $3 AND tier LIKE $4 AND tier || $5 = 'a'
SELECT count(*) FROM customers WHERE width_bucket(balance, $1, $2, $3) = $4
SELECT width_bucket(balance, $1, $2, $3), count(*) FROM customers GROUP BY 1
SELECT floor(balance / $1) * $2, count(*) FROM customers GROUP BY 1
SELECT level % $1, count(*) FROM customers GROUP BY 1
SELECT count(*) FROM customers WHERE level = ANY($1) AND tier = ANY(ARRAY[$2, $3])
SELECT count(*) FROM customers WHERE level IN (SELECT product_id FROM products WHERE price > $1)
SELECT count(*) FROM customers WHERE level IN (SELECT p.product_id FROM products p JOIN products q ON q.category = p.category WHERE p.price > $1 AND q.weight * $2 < 9 LIMIT $3 OFFSET $4)
SELECT count(*) FROM customers WHERE tier IN (SELECT p.name FROM products p JOIN products q ON q.category = p.category WHERE p.released + $1 > $2 GROUP BY p.name HAVING count(*) > $3) AND level > $4
SELECT count(*) FROM customers WHERE level > (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1 AND n.nspname = $2 AND c.relname LIKE $3)
SELECT count(*) FROM customers WHERE tier IN (VALUES ($1), ($2))
EXPLAIN SELECT count(*) FROM customers WHERE level = $1

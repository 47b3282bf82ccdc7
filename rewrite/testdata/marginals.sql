-- people
CREATE TABLE "private"."main"."people@…#1" AS SELECT t.r AS r, t."1:sex" AS "1:sex", count(*) AS n
FROM "private"."main"."people@…" AS t
WHERE t.r <= 256
GROUP BY t.r, t."1:sex"
ORDER BY r;

-- visits
CREATE TABLE "private"."main"."visits@…#4" AS SELECT t.r AS r, min(t."4:fee") AS "4:fee", count(*) AS n
FROM "private"."main"."visits@…" AS t
WHERE t.r <= 256
GROUP BY t.r, (TRY_CAST((TRY_CAST(t."4:fee" AS DECIMAL(6,2)) * CAST('100' AS DECIMAL(3,0))) AS BIGINT) // CAST('1000' AS BIGINT))
ORDER BY r;
CREATE TABLE "private"."main"."visits@…#1+2" AS SELECT t.r AS r, t."1:ward" AS "1:ward", t."2:minutes" AS "2:minutes", count(*) AS n
FROM "private"."main"."visits@…" AS t
WHERE t.r <= 256
GROUP BY t.r, t."1:ward", t."2:minutes"
ORDER BY r;
CREATE TABLE "private"."main"."visits@…#5" AS SELECT t.r AS r, min(t."5:weight") AS "5:weight", count(*) AS n
FROM "private"."main"."visits@…" AS t
WHERE t.r <= 256
GROUP BY t.r, CASE WHEN (t."5:weight" >= CAST('0.5' AS DOUBLE)) THEN LEAST(CASE WHEN (t."5:weight" < ((floor(((t."5:weight" * CAST('10' AS DOUBLE)) / CAST('5' AS DOUBLE))) * CAST('5' AS DOUBLE)) / CAST('10' AS DOUBLE))) THEN (floor(((t."5:weight" * CAST('10' AS DOUBLE)) / CAST('5' AS DOUBLE))) - CAST('1' AS DOUBLE)) WHEN (t."5:weight" >= (((floor(((t."5:weight" * CAST('10' AS DOUBLE)) / CAST('5' AS DOUBLE))) + CAST('1' AS DOUBLE)) * CAST('5' AS DOUBLE)) / CAST('10' AS DOUBLE))) THEN (floor(((t."5:weight" * CAST('10' AS DOUBLE)) / CAST('5' AS DOUBLE))) + CAST('1' AS DOUBLE)) ELSE floor(((t."5:weight" * CAST('10' AS DOUBLE)) / CAST('5' AS DOUBLE))) END, CAST('400' AS DOUBLE)) WHEN t."5:weight" IS NOT NULL THEN CAST('0' AS DOUBLE) END
ORDER BY r;
CREATE TABLE "private"."main"."visits@…#3" AS SELECT t.r AS r, min(t."3:at") AS "3:at", count(*) AS n
FROM "private"."main"."visits@…" AS t
WHERE t.r <= 14
GROUP BY t.r, ((epoch_us(t."3:at") - CAST('1704067200000000' AS BIGINT)) // CAST('3600000000' AS BIGINT))
ORDER BY r;

-- SELECT count(*) FROM visits
SELECT CAST(COALESCE(sum(s.n), 0) AS BIGINT) AS k1
FROM (SELECT t.n AS n
   FROM "private"."main"."visits@…#4" AS t
   WHERE t.r <= 10) AS s

-- SELECT count(*) FROM visits WHERE minutes > 20
SELECT CAST(COALESCE(s.n2, 60) AS INTEGER) AS c1,
       CAST(COALESCE(sum(s.n), 0) AS BIGINT) AS k1
FROM (SELECT t.n AS n,
        t."2:minutes" AS n2
   FROM "private"."main"."visits@…#1+2" AS t
   WHERE t.r <= 10) AS s
GROUP BY s.n2

-- SELECT ward, sum(minutes), avg(minutes) FROM visits GROUP BY ward
SELECT CAST(COALESCE(s.n1, 5) AS INTEGER) AS c1,
       CAST(COALESCE(sum(CASE WHEN s.n2 IS NOT NULL THEN s.n END), 0) AS BIGINT) AS k1,
       CAST(GREATEST(LEAST(COALESCE((sum((CAST(CAST(s.n2 AS BIGINT) AS HUGEINT) * s.n)) - (CAST('29' AS HUGEINT) * CAST(CAST(COALESCE(sum(CASE WHEN s.n2 IS NOT NULL THEN s.n END), 0) AS BIGINT) AS HUGEINT))), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k2
FROM (SELECT t.n AS n,
        t."1:ward" AS n1,
        t."2:minutes" AS n2
   FROM "private"."main"."visits@…#1+2" AS t
   WHERE t.r <= 10) AS s
GROUP BY s.n1

-- SELECT count(*), count(fee) FROM visits WHERE fee >= 50
SELECT CAST(COALESCE((TRY_CAST((TRY_CAST(s.n4 AS DECIMAL(6,2)) * CAST('100' AS DECIMAL(3,0))) AS BIGINT) // CAST('1000' AS BIGINT)), 101) AS INTEGER) AS c1,
       CAST(COALESCE(sum(s.n), 0) AS BIGINT) AS k1
FROM (SELECT t.n AS n,
        t."4:fee" AS n4
   FROM "private"."main"."visits@…#4" AS t
   WHERE t.r <= 10) AS s
GROUP BY 1

-- SELECT count(*) FROM people WHERE sex = 'f'
SELECT CAST(COALESCE(s.n1, 3) AS INTEGER) AS c1,
       CAST(COALESCE(sum(s.n), 0) AS BIGINT) AS k1
FROM (SELECT t.n AS n,
        t."1:sex" AS n1
   FROM "private"."main"."people@…#1" AS t
   WHERE t.r <= 1) AS s
GROUP BY s.n1


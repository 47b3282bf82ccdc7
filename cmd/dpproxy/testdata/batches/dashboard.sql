-- charts as a BI tool writes them
SELECT "region" AS "region", COUNT(*) AS "count" FROM "public"."people" GROUP BY "region" ORDER BY "count" DESC LIMIT 1000;
SELECT region AS region, education AS education, COUNT(*) AS count FROM (SELECT * FROM people) AS virtual_table GROUP BY region, education ORDER BY count DESC LIMIT 10000;
SELECT DATE_TRUNC('year', hired) AS hired, COUNT(*) AS count FROM (SELECT * FROM people) AS virtual_table WHERE hired >= '2020-01-01' AND hired < '2025-01-01' GROUP BY DATE_TRUNC('year', hired) ORDER BY count DESC LIMIT 1000;
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS band, sex, COUNT(*) AS n FROM people GROUP BY 1, 2;
SELECT education, region, sex, COUNT(*) AS n FROM people GROUP BY CUBE (education, region, sex);
SELECT sex, SUM(CASE WHEN income >= 50000 THEN 1 ELSE 0 END) AS rich, COUNT(*) AS n FROM people GROUP BY sex;
SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 18 AND 64;
SELECT region, COUNT(*) AS n FROM people WHERE income < 12345 GROUP BY region;
SELECT * FROM people LIMIT 100;

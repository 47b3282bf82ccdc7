-- the monthly report
SELECT count(*) FROM people;
SELECT sex, count(*) FROM people GROUP BY sex;
SELECT region, count(*) FROM people GROUP BY region;
SELECT region, education, count(*) FROM people GROUP BY region, education;
SELECT sex, region, count(*) FROM people GROUP BY sex, region;
SELECT age / 10 * 10 AS decade, count(*) FROM people GROUP BY 1 ORDER BY 1;
SELECT region, count(*) FROM people WHERE age >= 65 GROUP BY region;
SELECT age / 10 * 10 AS decade, sex, count(*) FROM people GROUP BY 1, 2;
SELECT region, count(*) FILTER (WHERE age < 18) AS minors, count(*) FROM people GROUP BY region;
SELECT date_trunc('year', hired) AS year, count(*) FROM people GROUP BY 1 ORDER BY 1;
SELECT date_trunc('month', hired) AS month, count(*) FROM people WHERE hired >= DATE '2024-01-01' GROUP BY 1 ORDER BY 1;
SELECT width_bucket(income, 0, 100000, 10) AS band, count(*) FROM people GROUP BY 1;
SELECT region, avg(income) FROM people GROUP BY region;
SELECT education, sex, count(*) FROM people GROUP BY ROLLUP (education, sex);
SELECT kind, count(*) FROM visits GROUP BY kind;
SELECT date_trunc('month', visited_at) AS month, kind, count(*) FROM visits GROUP BY 1, 2;

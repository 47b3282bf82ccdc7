-- the demo's monthly report
SELECT count(*) FROM people;
SELECT sex, count(*) FROM people GROUP BY sex;
SELECT region, count(*) FROM people GROUP BY region;
SELECT region, education, count(*) FROM people GROUP BY region, education;
SELECT sex, region, count(*) FROM people GROUP BY sex, region;
SELECT age / 10 AS decade, sex, count(*) FROM people GROUP BY decade, sex;
SELECT region, count(*) FROM people WHERE age >= 65 GROUP BY region;
SELECT education, sex, count(*) FROM people GROUP BY ROLLUP (education, sex);

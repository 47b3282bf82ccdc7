-- what a yearly report asks of the demo
SELECT region, sex, count(*) FROM people GROUP BY region, sex;
SELECT region, age / 10 AS decade, count(*) FROM people GROUP BY region, decade;
SELECT sex, age / 10 AS decade, count(*) FROM people GROUP BY sex, decade;
SELECT count(*) FROM people WHERE age >= 60;

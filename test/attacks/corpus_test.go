package attacks

// publicCorpus are statements of every fate: answered, free, refused by each stage. Neighbours must treat each alike.
var publicCorpus = []string{
	`SELECT count(*) FROM people`, `SELECT count(*) FROM people WHERE age BETWEEN 25 AND 31`, `SELECT count(*) FROM people WHERE hiv AND city = 'c3'`,
	`SELECT count(*) FROM people WHERE note = 'n1' OR income >= 50500`, `SELECT count(note) FROM people`, `SELECT count(*) FILTER (WHERE hiv) AS a, count(*) FROM people`,
	`SELECT city, count(*) FROM people GROUP BY city ORDER BY count(*) DESC LIMIT 2`, `SELECT city, hiv, count(*) FROM people GROUP BY city, hiv HAVING count(*) > -1000000`,
	`SELECT note, count(*) FROM people WHERE city IS NULL GROUP BY note`, `SELECT width_bucket(age, 0, 120, 12) AS b, count(*) FROM people GROUP BY 1 ORDER BY 1`,
	`SET dp.epsilon = 0.5`, `SELECT count(*) FROM people WHERE age < 40`, `SELECT count(*) FROM people WHERE age < 41`, `SELECT age, sum(count(*)) OVER (ORDER BY age) FROM people GROUP BY age`,
	`SET dp.error_columns = on`, `SELECT city, count(*) FROM people GROUP BY city`, `RESET ALL`,
	`EXPLAIN SELECT count(*) FROM people WHERE income < 1500`, `SELECT count(*) FROM people WHERE city = 'Zzyzx'`, `SELECT count(*) FROM people WHERE note LIKE 'a%'`,
	`SELECT * FROM people`, `SELECT count(*) FROM people WHERE uid = 7`, `SELECT count(*) FROM nowhere`, `SELECT count(*) FROM people WHERE age / 0 > 1`,
	`SELECT note::int, count(*) FROM people GROUP BY 1`, `SELECT sum(income) FROM people`, `SELECT count(*) FROM people WHERE age > (SELECT max(age) FROM people)`,
	`SELECT DISTINCT city FROM people`, `SELECT count(DISTINCT city) FROM people`, `SELECT reltuples FROM pg_class WHERE relname = 'people'`,
	`SELECT * FROM pg_stats`, `SELECT n_live_tup FROM pg_stat_user_tables`, `SELECT pg_relation_size('people')`, `SELECT charge, kind, name, cost FROM dp.charges`,
	`SELECT * FROM dp.tables`, `SELECT * FROM dp.columns`, `SELECT user_name, spent, remaining FROM dp.budget`, `SHOW dp.budget`,
	`SELECT count(*) FROM people WHERE CASE WHEN hiv THEN note::int ELSE 1 END > 0`, `BEGIN`, `SELECT count(*) FROM people WHERE age = 25`, `ROLLBACK`,
}

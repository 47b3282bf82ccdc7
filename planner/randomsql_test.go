package planner

import (
	"math/rand"
	"strings"
)

// conditions and keys that the generator combines.
var (
	someConditions = []string{
		"age > 30", "age BETWEEN 20 AND 39", "age IN (1, 2, 50)", "age IS NULL", "NOT (age < 50)", "age % 3 = 1", "age <> 7", "(age > 90) IS NOT TRUE",
		"sex = 'Male'", "sex LIKE '%male'", "sex IS NULL", "sex <> 'other'", "sex IN ('Female', 'other')", "upper(sex) = 'MALE'", "NOT sex = 'Male'",
		"income >= 50000", "income < 1234.5", "income BETWEEN 1000 AND 2500", "NOT income > 777.25", "income IS NOT NULL", "income = 1000",
		"hired >= '2020-01-01'", "extract(month FROM hired) = 5", "hired BETWEEN '2010-05-05' AND '2015-01-01'", "date_trunc('year', hired) = '2011-01-01'",
		"active", "active IS TRUE", "NOT active", "kids > 3", "kids = 0", "age > kids * 5", "CASE WHEN sex = 'Male' THEN kids > 2 ELSE active END",
		"score < 2.5", "score >= 7.25", "seen::date = '2024-02-03'", "extract(hour FROM seen) < 12", "COALESCE(age, 0) = 0", "true", "age IS DISTINCT FROM 4",
	}
	someKeys = []string{"", "", "sex", "age", "age / 10", "kids", "active", "sex, active", "width_bucket(age, 0, 120, 6)", "extract(year FROM hired)", "income",
		"floor(income / 50000)", "CASE WHEN age < 18 THEN 'young' ELSE sex END", "age > kids, sex", "kids, kids > 3", "seen::date", "ROLLUP (sex, active)", "CUBE (sex, kids)", "GROUPING SETS ((age / 10), (sex), (age / 10, sex))", "sex, ROLLUP (active)", "score", "extract(dow FROM seen)"}
	someCounts = []string{"count(*)", "count(sex)", "count(age)", "count(*) FILTER (WHERE active)", "count(*) FILTER (WHERE age > kids)", "sum(CASE WHEN age > 40 THEN 1 ELSE 0 END)",
		"sum((sex = 'Male')::int)", "count(NULLIF(sex, 'Male'))", "sum(CASE WHEN age < 10 THEN 0 WHEN age < 20 THEN 1 END)", "count(*) FILTER (WHERE income > 999.5)",
		"count(DISTINCT age)", "count(DISTINCT sex) FILTER (WHERE active)", "count(DISTINCT age % 7)", "count(DISTINCT (sex, kids))", "count(DISTINCT kids) FILTER (WHERE age > kids)",
		"count(*) FILTER (WHERE age < 18)", "count(*) FILTER (WHERE age BETWEEN 18 AND 64)", "count(*) FILTER (WHERE age >= 65)", "count(*) FILTER (WHERE NOT active)"}
)

func condition(r *rand.Rand, depth int) string {
	switch n := r.Intn(6); {
	case depth > 0 && n == 0:
		return "(" + condition(r, depth-1) + " AND " + condition(r, depth-1) + ")"
	case depth > 0 && n == 1:
		return "(" + condition(r, depth-1) + " OR " + condition(r, depth-1) + ")"
	case depth > 0 && n == 2:
		return "NOT " + condition(r, depth-1)
	case depth > 0 && n == 3:
		return "(" + condition(r, depth-1) + ") IS NOT FALSE"
	}
	return someConditions[r.Intn(len(someConditions))]
}

func randomSQL(r *rand.Rand) string {
	keys := someKeys[r.Intn(len(someKeys))]
	var items []string
	for range 1 + r.Intn(3) {
		items = append(items, someCounts[r.Intn(len(someCounts))])
	}
	sql := "SELECT " + strings.Join(items, ", ") + " FROM people WHERE " + condition(r, 2)
	if args := map[string]string{"ROLLUP (sex, active)": "sex, active", "CUBE (sex, kids)": "kids, sex", "GROUPING SETS ((age / 10), (sex), (age / 10, sex))": "age / 10, sex", "sex, ROLLUP (active)": "active"}[keys]; args != "" {
		sql = "SELECT grouping(" + args + "), " + strings.TrimPrefix(sql, "SELECT ") // tells NULL from NULL
	}
	if keys != "" {
		sql += " GROUP BY " + keys
	}
	return sql
}

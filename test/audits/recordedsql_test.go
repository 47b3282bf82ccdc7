package audits

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// source is something that statements are made over: what follows FROM, and the columns by kind.
type source struct {
	from, unit    string
	whole, text   []string
	numeric, date []string
}

const perPerson = `(SELECT who, count(*) AS n, sum(minutes) AS m, max(minutes) AS longest, count(DISTINCT ward) AS w FROM visits%s GROUP BY who%s) t`

// sources are every way that rows of a unit, of its rows in other tables, and public rows come together.
var sources = []source{
	{"people p", "p.person_id", []string{"p.age", "p.income"}, []string{"p.sex"}, nil, nil},
	{"visits v", "v.who", []string{"v.minutes"}, []string{"v.ward"}, []string{"v.cost"}, []string{"v.day"}},
	{"calls c", "c.who", []string{"c.paid"}, []string{"c.kind"}, []string{"c.secs"}, nil},
	{"people p JOIN visits v ON v.who = p.person_id", "p.person_id", []string{"p.age", "v.minutes"}, []string{"p.sex", "v.ward"}, []string{"v.cost"}, []string{"v.day"}},
	{"people p LEFT JOIN visits v ON v.who = p.person_id AND v.minutes > 3", "p.person_id", []string{"p.age", "v.minutes"}, []string{"p.sex", "v.ward"}, nil, nil},
	{"visits v JOIN visits o ON o.who = v.who", "v.who", []string{"v.minutes", "o.minutes"}, []string{"v.ward", "o.ward"}, nil, nil},
	{"visits v JOIN calls c ON c.who = v.who", "v.who", []string{"v.minutes", "c.paid"}, []string{"v.ward", "c.kind"}, nil, []string{"v.day"}},
	{"people p JOIN visits v ON v.who = p.person_id JOIN calls c ON c.who = p.person_id", "c.who", []string{"p.age", "c.paid"}, []string{"p.sex", "v.ward", "c.kind"}, nil, nil},
	{"visits v JOIN wards k ON k.code = v.ward", "v.who", []string{"v.minutes", "k.floor"}, []string{"k.label"}, nil, []string{"v.day"}},
	{"visits v JOIN wards k ON k.code >= v.ward", "v.who", []string{"v.minutes"}, []string{"k.label"}, nil, nil},
	{fmt.Sprintf(perPerson, "", ""), "t.who", []string{"t.n", "t.m", "t.longest", "t.w"}, nil, nil, nil},
	{fmt.Sprintf(perPerson, " WHERE ward <> 'B'", " HAVING count(*) > 1"), "t.who", []string{"t.n", "t.m"}, nil, nil, nil},
	{"(SELECT DISTINCT who, ward FROM visits) t", "t.who", nil, []string{"t.ward"}, nil, nil},
	{"people p JOIN " + fmt.Sprintf(perPerson, "", "") + " ON t.who = p.person_id", "t.who", []string{"p.age", "t.n", "t.longest"}, []string{"p.sex"}, nil, nil},
	{"people p LEFT JOIN (SELECT who, count(*) AS n FROM calls GROUP BY who) t ON t.who = p.person_id", "p.person_id", []string{"p.age", "t.n"}, []string{"p.sex"}, nil, nil},
	{"(SELECT who, ward, count(*) AS n FROM visits GROUP BY who, ward) t", "t.who", []string{"t.n"}, []string{"t.ward"}, nil, nil},
	{"(SELECT who, minutes, ward FROM visits WHERE minutes BETWEEN 0 AND 7) t", "t.who", []string{"t.minutes"}, []string{"t.ward"}, nil, nil},
}

// maker makes statements.
type maker struct{ r *rand.Rand }

func (m maker) of(list ...string) string { return list[m.r.IntN(len(list))] }

func (m maker) chance(of int) bool { return m.r.IntN(of) == 0 }

// texts are the declared values that conditions name, and one that nobody declared.
var texts = []string{"'f'", "'m'", "'A'", "'B'", "'in'", "'out'", "'ground'", "'other'"}

func (m maker) condition(o source, depth int) string {
	if depth > 0 {
		switch m.r.IntN(6) {
		case 0:
			return "(" + m.condition(o, depth-1) + " AND " + m.condition(o, depth-1) + ")"
		case 1:
			return "(" + m.condition(o, depth-1) + " OR " + m.condition(o, depth-1) + ")"
		case 2:
			return "NOT (" + m.condition(o, depth-1) + ")"
		case 3:
			return o.unit + m.of(" IN", " NOT IN") + m.of(" (SELECT who FROM calls WHERE paid < 0)", " (SELECT who FROM visits WHERE ward = 'A')", " (SELECT who FROM visits GROUP BY who HAVING count(*) > 1)")
		}
	}
	var all []string
	for _, c := range o.whole {
		all = append(all, fmt.Sprintf("%s %s %d", c, m.of("<", ">", "<=", ">=", "=", "<>"), m.r.IntN(12)-2), fmt.Sprintf("%s BETWEEN %d AND %d", c, m.r.IntN(5)-3, m.r.IntN(9)),
			fmt.Sprintf("%s IN (%d, %d, %d)", c, m.r.IntN(9), m.r.IntN(9), m.r.IntN(9)), c+" % 3 = 1", c+" IS NULL", fmt.Sprintf("abs(%s) > %d", c, m.r.IntN(6)))
	}
	for _, c := range o.text {
		v := m.of(texts...)
		all = append(all, c+" = "+v, c+" <> "+v, c+" IN ("+v+", "+m.of(texts...)+")", c+" IS NOT NULL", c+" LIKE '%o%'", "upper("+c+") = 'A'", "coalesce("+c+", 'none') = 'none'")
	}
	for _, c := range o.numeric {
		all = append(all, fmt.Sprintf("%s %s %d", c, m.of("<", ">="), m.r.IntN(11)))
	}
	for _, c := range o.date {
		all = append(all, c+m.of(" < ", " >= ")+"'2025-02-"+m.of("03", "11", "20")+"'", "extract(month FROM "+c+") = "+m.of("1", "2", "3"))
	}
	return m.of(all...)
}

func (m maker) aggregate(o source) string {
	all := []string{"count(*)", "count(*)", "count(DISTINCT " + o.unit + ")"}
	for _, c := range o.whole {
		all = append(all, "sum("+c+")", "avg("+c+")", "count("+c+")", "stddev("+c+")", "sum("+c+" * "+c+")", "sum(CASE WHEN "+m.condition(o, 0)+" THEN "+c+" ELSE -1 END)", "count(DISTINCT "+c+")", "sum(abs("+c+") + 1)")
	}
	for _, c := range o.text {
		all = append(all, "count("+c+")", "count(DISTINCT "+c+")")
	}
	for _, c := range o.numeric {
		all = append(all, "sum("+c+")", "avg("+c+")", "variance("+c+")")
	}
	a := m.of(all...)
	if m.chance(5) {
		a += " FILTER (WHERE " + m.condition(o, 0) + ")"
	}
	return a
}

func (m maker) key(o source) string {
	var all []string
	for _, c := range o.text {
		all = append(all, c, c, "CASE WHEN "+m.condition(o, 0)+" THEN "+c+" ELSE 'rest' END", "upper("+c+")")
	}
	for _, c := range o.whole {
		all = append(all, c+" / 4", c+" > 3", "CASE WHEN "+m.condition(o, 0)+" THEN 'yes' ELSE 'no' END")
	}
	for _, c := range o.date {
		all = append(all, "extract(month FROM "+c+")", "date_trunc('month', "+c+")")
	}
	return m.of(all...)
}

// chosen are aggregates that choose a value, of which a statement has nothing else.
func (m maker) chosen(o source) string {
	if len(o.whole) == 0 {
		return "mode() WITHIN GROUP (ORDER BY " + o.text[0] + ")"
	}
	c := m.of(o.whole...)
	return m.of("percentile_cont(0.5) WITHIN GROUP (ORDER BY "+c+")", "percentile_disc(0.8) WITHIN GROUP (ORDER BY "+c+")", "min("+c+")", "max("+c+")", "mode() WITHIN GROUP (ORDER BY "+c+")")
}

// statement is a random one.
func (m maker) statement() string {
	o := sources[m.r.IntN(len(sources))]
	where, from := "", " FROM "+o.from
	if !m.chance(4) {
		where = " WHERE " + m.condition(o, 2)
	}
	if m.chance(12) {
		return "SELECT " + m.chosen(o) + from + where
	}
	if m.chance(15) {
		return "SELECT town, " + m.aggregate(sources[0]) + " FROM people p GROUP BY town"
	}
	var items, keys []string
	for range 1 + m.r.IntN(3) {
		items = append(items, m.aggregate(o))
	}
	for range m.r.IntN(3) {
		keys = append(keys, m.key(o))
	}
	if len(keys) == 0 {
		return "SELECT " + strings.Join(items, ", ") + from + where
	}
	by := strings.Join(keys, ", ")
	if m.chance(4) {
		by = m.of("ROLLUP (", "CUBE (") + by + ")"
	}
	sql := "SELECT " + strings.Join(append(keys, items...), ", ") + from + where + " GROUP BY " + by
	if m.chance(5) {
		sql += " HAVING count(*) > 3"
	}
	if m.chance(5) {
		sql += " ORDER BY " + fmt.Sprint(len(keys)+1) + " DESC LIMIT 2"
	}
	return sql
}

// inflations try to let a row, or a unit, count for more than the plan says (T45).
var inflations = []string{
	`SELECT count(*) FROM people a, generate_series(1, 1000)`, `SELECT count(*) FROM people a CROSS JOIN (VALUES (1), (2), (3)) x(i)`,
	`SELECT count(*) FROM people a JOIN people b ON a.age = b.age`, `SELECT count(*) FROM people a, people b`, `SELECT count(*) FROM visits a JOIN visits b ON a.who = b.who JOIN visits c ON c.who = a.who`,
	`SELECT count(*) FROM (SELECT * FROM people UNION ALL SELECT * FROM people) t`, `SELECT count(*) FROM (SELECT age FROM people UNION ALL SELECT age FROM people) t`,
	`SELECT count(*) FROM people a, LATERAL (VALUES (1), (2), (3)) x(i)`, `SELECT count(*) FROM people a, LATERAL (SELECT * FROM visits v WHERE v.who = a.person_id) x`,
	`SELECT count(*) FROM people a, LATERAL generate_series(1, a.income) g`, `SELECT count(*) * 1000000 FROM people`, `SELECT sum(1000000) FROM people`, `SELECT sum(age * 1000000) FROM people`,
	`SELECT sum(n) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t`, `SELECT sum(n * 1000) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t`,
	`SELECT sum(n) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t`, `SELECT sum(n) FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t, generate_series(1, 1000)`,
	`SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)`, `SELECT count(*) FROM people WHERE age = (SELECT max(age) FROM people)`,
	`SELECT count(*) FROM people p WHERE (SELECT count(*) FROM visits v WHERE v.who <> p.person_id) > 3`, `SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE minutes > 8)`,
	`SELECT count(*) FROM (SELECT * FROM people LIMIT 5) t`, `SELECT count(*) FROM (SELECT * FROM people ORDER BY age LIMIT 5 OFFSET 3) t`, `SELECT count(*) FROM (SELECT DISTINCT ON (sex) * FROM people) t`,
	`SELECT count(*) FROM (SELECT DISTINCT age FROM people) t`, `SELECT count(*) FROM people TABLESAMPLE BERNOULLI (50) REPEATABLE (1)`, `SELECT count(*) FROM people TABLESAMPLE SYSTEM (10)`,
	`SELECT count(*) FROM (SELECT *, row_number() OVER (ORDER BY age) AS i FROM people) t WHERE i < 5`, `SELECT count(*) FROM (SELECT age, rank() OVER (ORDER BY income) AS i FROM people) t WHERE i = 1`,
	`SELECT count(*) FROM visits v JOIN wards k ON true`, `SELECT sum(v.minutes * k.floor) FROM visits v JOIN wards k ON k.code >= v.ward`, `SELECT count(*) FROM visits v JOIN wards k ON k.code = v.ward JOIN wards l ON l.floor <> k.floor`,
	`WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 100) SELECT count(*) FROM people, t`, `SELECT count(*) FROM people p FULL JOIN visits v ON v.minutes = p.age`,
	`SELECT count(*) FROM people p JOIN visits v ON v.who <> p.person_id`, `SELECT count(*) FROM people p JOIN visits v ON v.who > p.person_id`, `SELECT count(*) FROM people NATURAL JOIN people q`,
	`SELECT count(*) FROM people WHERE person_id IN (SELECT person_id FROM people ORDER BY income LIMIT 3)`, `SELECT count(unnest(ARRAY[1, 2, 3])) FROM people`, `SELECT generate_series(1, 1000), count(*) FROM people GROUP BY 1`,
	`SELECT sum(power(age, 9)) FROM people`, `SELECT sum(exp(age)) FROM people`, `SELECT sum(CASE WHEN age = 7 THEN 1000000000 ELSE 0 END) FROM people`, `SELECT count(*) FROM people a LEFT JOIN visits v ON true`,
	`SELECT count(*) FROM (SELECT who FROM visits INTERSECT ALL SELECT who FROM calls) t`, `SELECT count(*) FROM (SELECT who FROM visits EXCEPT SELECT who FROM calls) t`, `SELECT count(*) FROM ONLY people, ONLY visits`,
}

package truth

import (
	"fmt"
	"regexp"
	"strings"
)

// What is around the counts and within their conditions, beside what places and keys are: sub-queries that are
// answered first, those over the row's own unit, window functions over each unit's rows, rows of two tables one below
// the other, and queries over the groups.

// first is a condition with a sub-query over private rows that is answered first, or empty if there is none.
func (g *grammar) first(p place) string {
	in := g.tablePlace(g.private())
	where := ""
	if g.chance(2) {
		where = " WHERE " + g.condition(in.columns)
	}
	from := " FROM " + in.text + where
	operator := g.one(" > ", " <= ", " < ", " >= ")
	if g.chance(3) {
		c, ok := g.pick(p.columns, textKind)
		m, is := g.pick(in.columns, textKind)
		if ok && is {
			having := g.one(" HAVING count(*) > 0", " HAVING count(*) > 20", "")
			by := " GROUP BY " + g.one("1", m.name) + having
			return c.name + g.one(" IN ", " IN ", " NOT IN ", " = ANY ") + "(SELECT " + m.name + from + by + ")"
		}
	}
	c, ok := g.pick(p.columns, wholeKind, moneyKind, wholeKind)
	m, is := g.pick(in.columns, wholeKind, moneyKind)
	if !ok || !is {
		return ""
	}
	value := g.one("avg(", "avg(", "count(") + m.name + ")" // a sum of nothing is 0 in what is released
	if by, has := g.pick(in.columns, textKind, boolKind); has && g.chance(2) {
		having := g.one(" HAVING count(*) > 0", " HAVING count(*) > 0", "")
		return c.name + operator + g.one("ALL", "ANY") + " (SELECT " + value + from + " GROUP BY " + by.name + having + ")"
	}
	return c.name + operator + "(SELECT " + g.one("", "1 + ", "0.5 * ") + value + from + ")"
}

// ofUnit is a number that a sub-query over the row's own unit has for it, and whether there is one.
func (g *grammar) ofUnit(p place) (string, bool) {
	if p.single == nil {
		return "", false
	}
	for range 4 {
		e := g.s.edges[g.IntN(len(g.s.edges))]
		if e.parent != p.single.name || p.single.public || len(e.on) > 1 || !e.natural {
			continue
		}
		t := g.s.table(e.child)
		a := g.alias(t.name)
		columns, where := qualified(a, t.columns), ""
		if g.chance(2) {
			where = " AND " + g.condition(columns)
		}
		value := "count(*)"
		if c, ok := g.pick(columns, wholeKind); ok && g.chance(2) {
			value = g.one("sum(", "min(", "max(", "count(", "count(DISTINCT ") + c.name + ")"
		}
		return "(SELECT " + value + " FROM " + t.name + " AS " + a + " WHERE " + a + "." + e.on[0][0] + " = " + p.alias + "." + e.on[0][1] + where + ")", true
	}
	return "", false
}

// primary are the columns of a table's primary key.
var primary = regexp.MustCompile(`^PRIMARY KEY \((.*)\)$`)

// windowed is a sub-query with window functions over each unit's rows, in an order without ties.
func (g *grammar) windowed() (place, bool) {
	in := g.tablePlace(g.private())
	if in.unit == "" || in.single.bound == 1 || len(in.single.keys) == 0 {
		return place{}, false
	}
	m := primary.FindStringSubmatch(in.single.keys[0])
	if m == nil {
		return place{}, false
	}
	direction := g.one("", " DESC")
	var by []string
	for _, c := range strings.Split(m[1], ", ") {
		by = append(by, in.alias+"."+c+direction)
	}
	over := " OVER (PARTITION BY " + in.unit + " ORDER BY " + strings.Join(by, ", ")
	a := g.alias("windowed")
	p := place{alias: a}
	var list []string
	add := func(sql, name string, c column) {
		list = append(list, sql+" AS "+name)
		p.columns = append(p.columns, column{name: a + "." + name, kind: c.kind, values: c.values})
	}
	if c, ok := g.pick(in.columns, textKind, boolKind, dateKind, wholeKind); ok && g.chance(2) {
		add(c.name, "c", c)
	}
	numbers := column{kind: wholeKind, values: []string{"1", "2", "3", "0"}}
	add(g.one("row_number()"+over+")", "row_number()"+over+")", "count(*)"+over+" ROWS UNBOUNDED PRECEDING)", "count(*) OVER (PARTITION BY "+in.unit+")", "rank()"+over+")", "ntile(3)"+over+")"), "n", numbers)
	if c, ok := g.pick(in.columns, textKind, boolKind, dateKind, wholeKind); ok {
		add(g.one("lag(", "lead(", "first_value(")+c.name+")"+over+")", "f", c)
	}
	if c, ok := g.pick(in.columns, wholeKind); ok && g.chance(2) {
		add(g.one("sum(", "max(", "min(")+c.name+")"+over+g.one(" ROWS UNBOUNDED PRECEDING)", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", ")"), "s", c)
	}
	if c, ok := g.pick(in.columns, wholeKind, dateKind); ok && g.chance(2) {
		near, far := "1", "40"
		if c.kind == dateKind {
			near, far = "interval '36 hours'", "interval '30 days'"
		}
		add("count(*) OVER (PARTITION BY "+in.unit+" ORDER BY "+c.name+direction+" RANGE BETWEEN "+g.one(far+" PRECEDING AND ",
			near+" PRECEDING AND ", "CURRENT ROW AND ")+g.one(near, far)+" FOLLOWING)", "r", numbers)
	}
	if c, ok := g.pick(in.columns, textKind, boolKind); ok && g.chance(2) {
		add("rank() OVER (PARTITION BY "+in.unit+" ORDER BY "+c.name+direction+")", "t", numbers)
	}
	where := ""
	if g.chance(3) {
		where = " WHERE " + g.condition(in.columns)
	}
	p.text = "(SELECT " + strings.Join(list, ", ") + " FROM " + in.text + where + ") AS " + a
	return p, true
}

// united are rows of two tables, one below the other.
func (g *grammar) united() (place, bool) {
	a := g.alias("united")
	p := place{alias: a}
	var parts []string
	of := []kind{wholeKind, moneyKind, dateKind, boolKind}[g.IntN(4)]
	for i := range 2 + g.IntN(2) {
		in := g.tablePlace(g.private())
		c, ok := g.pick(in.columns, of)
		if !ok {
			return place{}, false
		}
		where := ""
		if g.chance(2) {
			where = " WHERE " + g.condition(in.columns)
		}
		if i == 0 {
			p.columns = append(p.columns, column{name: a + ".src", kind: textKind, values: []string{"'p0'", "'p1'", "'p2'"}}, column{name: a + ".v", kind: c.kind, values: c.values})
		}
		parts = append(parts, "SELECT "+fmt.Sprintf("'p%d' AS src, ", i)+c.name+" AS v FROM "+in.text+where)
	}
	p.text = "(" + strings.Join(parts, " UNION ALL ") + ") AS " + a
	return p, true
}

// above are queries over groups of one key k1 with a count a1, of which no two have one key.
var above = []string{
	"SELECT k1, a1, sum(a1) OVER (ORDER BY a1, k1 ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS w, lag(a1, 1, 0) OVER (ORDER BY a1 DESC, k1) AS l, ntile(3) OVER (ORDER BY a1, k1) AS t FROM (%s) AS q",
	"SELECT k1, avg(a1) OVER (ORDER BY k1 ROWS 2 PRECEDING) AS m, first_value(a1) OVER (ORDER BY a1, k1) AS f, cume_dist() OVER (ORDER BY a1) AS c, max(a1) OVER () - a1 AS d FROM (%s) AS q",
	"SELECT DISTINCT ON (a1) a1, k1 FROM (%s) AS q ORDER BY a1, k1",
	"WITH q AS (%s) SELECT x.k1, x.a1, y.k1 AS l FROM q x LEFT JOIN q y ON y.a1 = x.a1 + 1",
	"WITH q AS (%s), m AS (SELECT avg(a1) AS m FROM q) SELECT k1, round(100.0 * a1 / NULLIF((SELECT sum(a1) FROM q), 0), 2) AS p FROM q, m WHERE a1 >= m.m",
	"WITH q AS (%s) SELECT k1 FROM q WHERE a1 > 3 EXCEPT SELECT k1 FROM q WHERE a1 BETWEEN SYMMETRIC 60 AND 20",
	"WITH q AS (%s) SELECT k1, 'low' AS b FROM q WHERE a1 <= 20 UNION SELECT k1, 'high' FROM q WHERE a1 > 10 UNION SELECT k1, 'low' FROM q WHERE a1 < 2",
	"WITH q AS (%s) SELECT a1 % 5 AS r FROM q INTERSECT ALL SELECT a1 %% 7 FROM q",
	"SELECT CASE WHEN a1 > 20 THEN 'many' WHEN a1 > 5 THEN 'some' ELSE 'few' END AS b, count(*) AS n, sum(a1) AS s, grouping(CASE WHEN a1 > 20 THEN 'many' WHEN a1 > 5 THEN 'some' ELSE 'few' END) AS g FROM (%s) AS q GROUP BY ROLLUP (1) HAVING sum(a1) > 3",
	"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a1) AS p, percentile_disc(0.5) WITHIN GROUP (ORDER BY a1) FILTER (WHERE a1 > 5) AS d, string_agg(k1::text, ',' ORDER BY a1 DESC, k1) AS s, max(k1) FILTER (WHERE a1 > 4) AS m FROM (%s) AS q",
	"WITH q AS (%s) SELECT k1, (SELECT count(*) FROM q y WHERE y.a1 > q.a1) AS above, EXISTS (SELECT 1 FROM q y WHERE y.a1 = q.a1 AND y.k1 <> q.k1) AS twin FROM q",
	"WITH q AS (%s) SELECT k1, a1 FROM q WHERE a1 >= ALL (SELECT a1 FROM q) OR a1 = ANY (ARRAY[1, 2, 3]) OR k1::text LIKE '%%\\_%%' OR k1::text LIKE 'a!%%' ESCAPE '!'",
	"WITH RECURSIVE q AS (%s), r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT r.i, count(q.a1) AS n, coalesce(sum(q.a1), 0) AS s FROM r LEFT JOIN q ON q.a1 % 4 + 1 = r.i GROUP BY r.i",
}

// around puts a query over the groups around a statement, where it has one key and a count.
func (g *grammar) around(s *statement, keys int) {
	if keys != 1 || s.sets != "" || s.having != "" || s.found() || s.outs[keys].role != countRole || len(s.union) > 0 || s.wrapper != "" {
		return
	}
	s.having = "count(*) > 0"
	query := above[g.IntN(len(above))]
	query = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(query, "%%", "%"), "%", "%%"), "%%s", "%s")
	s.wrapper, s.fixed, s.order, s.limit = query, true, nil, 0
	for i := range s.outs[keys:] { // what is not shown is not asked
		if i > 0 {
			s.outs = s.outs[:keys+1]
			break
		}
	}
}

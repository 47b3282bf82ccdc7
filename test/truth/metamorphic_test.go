package truth

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// law is a relation between answers that holds whatever the rows are, so that no oracle is needed: the statements'
// answers are numbers, and parts of them add up, or agree.
type law struct {
	name  string
	sql   []string
	holds func(answers [][][]string) string // empty, or what is wrong
}

// total adds a column up; NULL is nothing.
func total(rows [][]string, column int) float64 {
	sum := 0.0
	for _, row := range rows {
		if x, err := strconv.ParseFloat(row[column], 64); err == nil {
			sum += x
		}
	}
	return sum
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// addUp holds if columns of the later answers add up to those of the first.
func addUp(columns ...int) func([][][]string) string {
	return func(answers [][][]string) string {
		for _, c := range columns {
			parts := 0.0
			for _, rows := range answers[1:] {
				parts += total(rows, c)
			}
			if whole := total(answers[0], c); !near(whole, parts) {
				return fmt.Sprintf("column %d: %v in all, %v in parts", c+1, whole, parts)
			}
		}
		return ""
	}
}

// alike holds if all answers have the rows of the first.
func alike(answers [][][]string) string {
	for i, rows := range answers[1:] {
		if len(rows) != len(answers[0]) {
			return fmt.Sprintf("%d rows for %d", len(rows), len(answers[0]))
		}
		left := slices.Clone(answers[0])
		for _, row := range rows {
			at := slices.IndexFunc(left, func(have []string) bool { return slices.EqualFunc(have, row, sameNumber) })
			if at < 0 {
				return fmt.Sprintf("statement %d has %s", i+2, show(row))
			}
			left = slices.Delete(left, at, at+1)
		}
	}
	return ""
}

// sameNumber takes a sum of nothing for NULL.
func sameNumber(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err1 == nil && err2 == nil && near(x, y) || a == null && isZero(b) || b == null && isZero(a)
}

// law picks one.
func (g *grammar) law() law {
	g.names = 0
	p := g.place()
	for p.where != "" { // a law has conditions of its own
		p = g.place()
	}
	sum := "count(*)"
	number, numeric := g.pick(p.columns, wholeKind, wholeKind, moneyKind, realKind)
	if numeric {
		sum = "sum(" + number.name + ")"
	}
	condition := g.condition(p.columns)
	from, count := " FROM "+p.text, "SELECT count(*), "+sum
	switch g.IntN(7) {
	case 0: // TLP: three-valued logic partitions the rows
		return law{name: "a condition, its negation and its NULLs", holds: addUp(0, 1),
			sql: []string{count + from, count + from + " WHERE " + condition, count + from + " WHERE NOT (" + condition + ")", count + from + " WHERE (" + condition + ") IS NULL"}}
	case 1:
		return law{name: "FILTER is WHERE", holds: alike,
			sql: []string{"SELECT count(*) FILTER (WHERE " + condition + "), " + sum + " FILTER (WHERE " + condition + ")" + from, count + from + " WHERE " + condition}}
	case 2:
		c := g.one("2", "-3", "0.5", "7")
		return law{name: "a sum of a constant is the constant times the count", holds: alike,
			sql: []string{"SELECT sum(" + c + ")" + from + " WHERE " + condition, "SELECT " + c + " * count(*)" + from + " WHERE " + condition}}
	case 3:
		key, ok := g.key(p.columns)
		if !ok || foundBy(key, p.columns) { // texts of few people are in no group
			key = "1 = 1"
		}
		return law{name: "groups add up to the total", holds: addUp(1, 2),
			sql: []string{"SELECT 'all', count(*), " + sum + from, "SELECT " + key + ", count(*), " + sum + from + " GROUP BY 1"}}
	case 4:
		key, ok := g.key(p.columns)
		if !ok {
			key = "1 = 1"
		}
		q := "SELECT " + key + " AS k, count(*) AS n, " + sum + " AS s" + from + " WHERE " + condition + " GROUP BY 1"
		return law{name: "a CTE is its inlining", holds: alike, sql: []string{q, "WITH q AS (" + q + ") SELECT k, n, s FROM q", "SELECT * FROM (" + q + ") AS virtual_table"}}
	case 5:
		cased := "count(CASE WHEN " + condition + " THEN 1 END)"
		if numeric {
			cased = "sum(CASE WHEN " + condition + " THEN " + number.name + " END)"
		}
		return law{name: "CASE in a sum is FILTER", holds: alike,
			sql: []string{"SELECT count(CASE WHEN " + condition + " THEN 1 END), " + cased + from, count + from + " WHERE " + condition}}
	default:
		c, _ := g.pick(p.columns, valueKinds...)
		return law{name: "NULLs and the others are all", holds: addUp(0, 1),
			sql: []string{count + from, count + from + " WHERE " + c.name + " IS NULL", count + from + " WHERE " + c.name + " IS NOT NULL"}}
	}
}

// laws asks the statements of n laws; it returns how many statements there were.
func (p *pair) laws(t *testing.T, n int, tl *tally) {
	g := &grammar{dice: newDice(*seed, 3), s: p.schema}
	for range n {
		l := g.law()
		p.fresh()
		var answers [][][]string
		for _, sql := range l.sql {
			tl.asked++
			a := p.ask(sql)
			if a.err != nil {
				if v := judgeError(a); v.class != refused && p.plain.ask(strings.ReplaceAll(sql, "public.", "")).err == nil {
					tl.classes[v.class]++
					t.Errorf("%s on %s, %s: %s\n  %s;", p.schema.name, p.engine, v.class, v.why, sql)
				}
				break
			}
			answers = append(answers, a.rows)
		}
		if len(answers) < len(l.sql) {
			tl.classes[refused]++
			continue
		}
		switch why := l.holds(answers); {
		case why == "":
			tl.classes["law holds"]++
		default:
			tl.classes[wrong]++
			t.Errorf("%s on %s, WRONG: %s: %s\n  %s;", p.schema.name, p.engine, l.name, why, strings.Join(l.sql, ";\n  "))
		}
	}
}

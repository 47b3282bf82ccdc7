package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Random databases over the tables of neighbourPolicy, built up of what each person has.

// neighbourTables are created without the constraint that people are unique, so that the bound must be enforced.
var neighbourTables = []string{
	"CREATE SCHEMA clinic",
	"CREATE TABLE clinic.people (person_id int, age int, sex text)",
	"CREATE TABLE clinic.visits (visit int PRIMARY KEY, who int, ward text, minutes int, cost numeric(6,2), day date, room int, rank int)",
	"CREATE TABLE clinic.doses (visit int, drug text)",
	"CREATE TABLE clinic.buys (who int, part int, maker int, amount int, price numeric(6,2))",
	"CREATE TABLE clinic.calls (who int, visit int, secs double precision, paid bigint, moment timestamp, kind text, rank bigint)",
}

// tuples are rows by table, each written as SQL.
type tuples map[string][]string

func (a tuples) add(b tuples) {
	for table, rows := range b {
		a[table] = append(a[table], rows...)
	}
}

// A person's visits and calls have ranks from 0 on, each once.

// visitsOf is how many visits' numbers belong to each person, so that visits stay unique.
const visitsOf = 100

// person draws what a person has. Alike: rows that differ in nothing but their keys; wild: values at and beyond the
// ends of the domains; unique: at most one row in people.
func person(r *rand.Rand, id int, most int, unique bool) tuples {
	wild := r.IntN(2) == 0
	return drawPerson(r, id, func() int { return r.IntN(most + 1) }, wild, r.IntN(3) == 0, unique)
}

// crowd draws a person whose rows are many and alike, as who gains most where a bound does not hold.
func crowd(r *rand.Rand, id int, rows int) tuples {
	return drawPerson(r, id, func() int { return rows }, r.IntN(2) == 0, true, false)
}

func drawPerson(r *rand.Rand, id int, rows func() int, wild, alike, unique bool) tuples {
	d := drawer{r: r, wild: wild}
	seed := r.Uint64()
	next := func() {
		if alike {
			d.r = rand.New(rand.NewPCG(seed, 1))
		}
	}
	out := tuples{}
	people := 1
	if !unique {
		people = r.IntN(3)
	}
	for range people {
		next()
		out["people"] = append(out["people"], fmt.Sprintf("(%d, %s, %s)", id, d.integer(0, 9), d.text("f", "m")))
	}
	numbers := r.Perm(visitsOf)
	for i := range rows() {
		next()
		visit := id*visitsOf + numbers[i]
		out["visits"] = append(out["visits"], fmt.Sprintf("(%d, %d, %s, %s, %s, %s, %s, %d)", visit, id, d.text("A", "B", "C"), d.integer(-5, 9), d.cost(), d.day(), d.integer(0, 9), i))
		for range r.IntN(4) {
			next()
			out["doses"] = append(out["doses"], fmt.Sprintf("(%d, %s)", visit, d.text("x", "y")))
		}
	}
	for i := range rows() {
		next()
		visit := fmt.Sprint(r.IntN(4) * visitsOf)
		switch r.IntN(4) {
		case 0:
			visit = "NULL"
		case 1, 2:
			visit = fmt.Sprint(id*visitsOf + numbers[r.IntN(2)])
		}
		out["calls"] = append(out["calls"], fmt.Sprintf("(%d, %s, %s, %s, %s, %s, %d)", id, visit, d.secs(), d.bigint(), d.moment(), d.text("in", "out"), i))
	}
	for range rows() {
		next()
		out["buys"] = append(out["buys"], fmt.Sprintf("(%d, %s, %s, %s, %s)", id, d.integer(0, 3), d.integer(0, 1), d.integer(-2, 9), d.cost()))
	}
	return out
}

// nobody has rows without a unit: keys that are NULL, and doses of visits that may come or go with another unit.
func nobody(r *rand.Rand, persons int) tuples {
	d := drawer{r, true}
	out := tuples{"people": {"(NULL, 3, 'f')"}}
	for range r.IntN(6) {
		out["calls"] = append(out["calls"], fmt.Sprintf("(NULL, %d, %s, %s, %s, 'in', 1)", r.IntN(persons)*visitsOf, d.secs(), d.bigint(), d.moment()))
		out["doses"] = append(out["doses"], fmt.Sprintf("(%d, %s)", r.IntN(persons*visitsOf), d.text("x", "y")), "(NULL, 'x')")
	}
	for i := range r.IntN(4) {
		out["visits"] = append(out["visits"], fmt.Sprintf("(%d, NULL, 'A', 1, 1, DATE '2025-01-01', 1, 1)", -1-i))
	}
	return out
}

// stranger is one row that names no unit.
func stranger(r *rand.Rand) tuples {
	d := drawer{r, false}
	switch r.IntN(3) {
	case 0:
		return tuples{"people": {fmt.Sprintf("(NULL, %s, %s)", d.integer(0, 9), d.text("f", "m"))}}
	case 1:
		return tuples{"visits": {fmt.Sprintf("(-100, NULL, %s, %s, %s, %s, %s, 1)", d.text("A", "B", "C"), d.integer(-5, 9), d.cost(), d.day(), d.integer(0, 9))}}
	}
	return tuples{"calls": {fmt.Sprintf("(NULL, %d, %s, %s, %s, %s, 1)", r.IntN(4)*visitsOf, d.secs(), d.bigint(), d.moment(), d.text("in", "out"))}}
}

// script replaces all rows, which are stored in an order of their own.
func (a tuples) script(r *rand.Rand) string {
	var b strings.Builder
	for _, table := range []string{"people", "visits", "doses", "buys", "calls"} {
		fmt.Fprintf(&b, "DELETE FROM clinic.%s;\n", table)
		rows := append([]string(nil), a[table]...)
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if len(rows) > 0 {
			fmt.Fprintf(&b, "INSERT INTO clinic.%s VALUES %s;\n", table, strings.Join(rows, ", "))
		}
	}
	return b.String()
}

// drawer draws values of the columns' types.
type drawer struct {
	r    *rand.Rand
	wild bool
}

// oneOf is one of the hostile values, where the drawer is wild, and NULL at times.
func (d drawer) oneOf(hostile ...string) (string, bool) {
	switch {
	case d.r.IntN(8) == 0:
		return "NULL", true
	case d.wild && d.r.IntN(2) == 0:
		return hostile[d.r.IntN(len(hostile))], true
	}
	return "", false
}

func (d drawer) integer(least, most int) string {
	if v, ok := d.oneOf("2147483647", "-2147483648", "-2900", "2900", fmt.Sprint(least), fmt.Sprint(most), fmt.Sprint(least-1), fmt.Sprint(most+1)); ok {
		return v
	}
	return fmt.Sprint(least + d.r.IntN(most-least+1))
}

func (d drawer) text(values ...string) string {
	if v, ok := d.oneOf("''", "'other'", "'Ä\U0001F600'", "'"+strings.Repeat("z", 3000)+"'", "'"+values[0]+" '"); ok {
		return v
	}
	return "'" + values[d.r.IntN(len(values))] + "'"
}

func (d drawer) cost() string {
	if v, ok := d.oneOf("9999.99", "-9999.99", "0", "10", "10.01", "-0.01"); ok {
		return v
	}
	return fmt.Sprintf("%d.%02d", d.r.IntN(10), d.r.IntN(100))
}

func (d drawer) day() string {
	if v, ok := d.oneOf("DATE '0001-01-01'", "DATE 'infinity'", "DATE '-infinity'", "DATE '2025-01-01'", "DATE '2025-03-31'", "DATE '2025-04-01'"); ok {
		return v
	}
	return fmt.Sprintf("DATE '2025-0%d-%02d'", 1+d.r.IntN(3), 1+d.r.IntN(28))
}

func (d drawer) secs() string {
	if v, ok := d.oneOf("'NaN'::double precision", "'Infinity'::double precision", "'-Infinity'::double precision", "1e300", "-1e300", "0", "60", "4.999999999999999"); ok {
		return v
	}
	return fmt.Sprintf("%g", d.r.Float64()*60)
}

func (d drawer) bigint() string {
	if v, ok := d.oneOf("9223372036854775807", "-9223372036854775808", "1000", "-1000", "1001", "-1001"); ok {
		return v
	}
	return fmt.Sprint(d.r.IntN(2001) - 1000)
}

func (d drawer) moment() string {
	if v, ok := d.oneOf("TIMESTAMP 'infinity'", "TIMESTAMP '-infinity'", "TIMESTAMP '2025-01-01 00:00'", "TIMESTAMP '2025-01-08 00:00'", "TIMESTAMP '1900-01-01'"); ok {
		return v
	}
	return fmt.Sprintf("TIMESTAMP '2025-01-0%d %02d:%02d:%02d.5'", 1+d.r.IntN(7), d.r.IntN(24), d.r.IntN(60), d.r.IntN(60))
}

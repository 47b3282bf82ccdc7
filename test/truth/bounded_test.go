package truth

import (
	"math"
	"strconv"
	"testing"
)

// TestBoundedRowsLikeASample: where a unit has more rows than are counted, those that are counted are like the others.
// Once they were those of the lowest values, so that every average was low and a group of the highest values nearly
// gone.
func TestBoundedRowsLikeASample(t *testing.T) {
	for _, engine := range []string{"postgres", "duckdb", "snapshot"} {
		p := pairOver(t, shop(*seed), engine, func(s *schema) { s.table("lineitem").bound = 3 })
		got := p.ask(`SELECT count(*), avg(line_no) FROM lineitem`)
		want := p.plain.ask(`SELECT sum(least(n, 3)), (SELECT avg(line_no) FROM lineitem) FROM (SELECT customer_id, count(*) AS n FROM lineitem JOIN orders USING (order_id) GROUP BY 1) q`)
		if got.err != nil || want.err != nil {
			t.Fatal(got.err, want.err)
		}
		if got.rows[0][0] != want.rows[0][0] {
			t.Errorf("%s: %s rows are counted of %s", engine, got.rows[0][0], want.rows[0][0])
		}
		shown, err1 := strconv.ParseFloat(got.rows[0][1], 64)
		mean, err2 := strconv.ParseFloat(want.rows[0][1], 64)
		if err1 != nil || err2 != nil {
			t.Fatal(got.rows, want.rows)
		}
		if off := shown/mean - 1; math.Abs(off) > 0.12 {
			t.Errorf("%s: the average of 3 rows a customer is %.4g, of all %.4g", engine, shown, mean)
		}
	}
}

// TestMoneyIsSummed: a sum of money in cents over a wide domain has an answer at an ordinary ε.
func TestMoneyIsSummed(t *testing.T) {
	p := pairOver(t, shop(*seed), "duckdb", func(s *schema) {
		table := s.table("lineitem")
		table.bound = 40
		s.zcdp = true // whose noise grows with the root of the rows, and so its parameter with their square
		for i, c := range table.columns {
			if c.name == "price" {
				table.columns[i].rules = "domain: {min: 0, max: 1000000, step: 1}, outside: clamp"
			}
		}
	})
	for _, sql := range []string{`SELECT sum(price) FROM lineitem`, `SELECT flag, sum(price), avg(line_no) FROM lineitem GROUP BY 1`, `SELECT sum(price * quantity) FROM lineitem`, `SELECT sum(price * (1 - discount)) FROM lineitem`, `SELECT stddev(price) FROM lineitem`} {
		for _, e := range []string{"0.1", "1"} {
			p.fresh()
			if a := p.ask("SET dp.epsilon = " + e); a.err != nil {
				t.Fatal(a.err)
			}
			if a := p.ask(sql); a.err != nil {
				t.Errorf("ε %s: %s: %s", e, sql, a.err.Message)
			}
		}
	}
}

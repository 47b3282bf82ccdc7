package planner

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// sums are sums and differences of people's columns, with numbers that they are compared with; the last has moments,
// which an interval is of.
var sums = []struct {
	text  string
	ends  []string
	whole bool
}{
	{"income - age * 1000", []string{"0", "1000", "-118500", "12.5", "50000", "300000"}, false},
	{"0.5 * income - 250 * age + 0.25", []string{"0", "0.25", "750.25", "-3"}, false},
	{"age - kids", []string{"0", "3", "-9", "2.5", "200"}, true},
	{"2 * kids - 3 * age + 7", []string{"7", "0", "-340", "-3.5"}, true},
	{"hired + age - date '2010-01-01'", []string{"0", "-3652", "100"}, true},
	{"hired + kids - (hired - age)", []string{"9", "50"}, true},
	{"hired - date '2013-06-01' - 40 * age", []string{"0", "-365", "31"}, true},
	{"kids - income", []string{"0", "-1000", "-0.5", "9"}, false},
}

// TestTwinComputed plans statements about sums of columns as if a plan could look at a few cells only, so that each is
// a column of its own, and holds them against the twin, which evaluates them as they are written. What was bought is
// free again.
func TestTwinComputed(t *testing.T) {
	const seed = 59
	defer func(most, plain int) { plans.MaxCells, linear.MaxPlain = most, plain }(plans.MaxCells, linear.MaxPlain)
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	people := c.Dataset.Tables[0]
	one := func(list ...string) string { return list[r.Intn(len(list))] }
	condition := func() string {
		s := sums[r.Intn(len(sums))]
		end, op := s.ends[r.Intn(len(s.ends))], one("<", "<=", ">", ">=", "=", "<>")
		return one(s.text+" "+op+" "+end, end+" "+op+" "+s.text, "NOT ("+s.text+" "+op+" "+end+")", "("+s.text+") IS NULL", s.text+" BETWEEN "+end+" AND "+s.ends[0],
			s.text+" IN ("+end+", 3)", "age * 1000 "+op+" income", "kids + 10 "+op+" age", "hired "+op+" date '2020-06-01' - age - kids", "seen - interval '1 hour' * 0 IS NOT NULL")
	}
	key := func() string {
		s := sums[r.Intn(len(sums))]
		end := s.ends[r.Intn(len(s.ends))]
		if s.whole && r.Intn(3) == 0 {
			return one("("+s.text+") / 100", "("+s.text+") % 3", "abs("+s.text+") / 50")
		}
		return one("CASE WHEN "+s.text+" >= "+end+" THEN 'a' WHEN "+condition()+" THEN 'b' END", s.text+" > "+end, "floor(("+s.text+") / 1000)", "age * 1000 <= income")
	}
	answered, computed, kept, free := 0, 0, 0, 0
	for range 300 {
		sql := "SELECT count(*), count(*) FILTER (WHERE " + condition() + ") FROM people WHERE " + condition()
		if r.Intn(2) == 0 {
			sql += " GROUP BY " + key()
		}
		plans.MaxCells = 1 << (9 + r.Intn(12))
		linear.MaxPlain = plans.MaxCells / 2
		p := planOrRefusal(t, c, sql)
		if p == nil {
			continue
		}
		if answered++; !slices.ContainsFunc(p.Measures, func(m *plans.Measure) bool { _, ok := m.Table.Derived.(*derived.Computed); return ok }) {
			continue
		}
		computed++
		rows := randomRows(r, people, 60)
		agree(t, sql, answer(p.Leaves[0], trueVectors(t, p, rows)), naive(t, c, sql, rows))
		own := c
		shelf := &shelf{}
		own.Holdings = shelf
		shelf.buy(p)
		if kept++; planOrRefusal(t, own, sql).Cost.IsZero() {
			free++
		}
	}
	t.Logf("seed %d: %d answered, %d over computed columns, %d of %d free when asked again", seed, answered, computed, free, kept)
	if computed < 150 || free < kept {
		t.Errorf("%d of 300 statements were over computed columns, %d of %d are free when asked again", computed, free, kept)
	}
}

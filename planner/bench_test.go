package planner

import (
	"fmt"
	"math/rand"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// BenchmarkBuildHeld plans a prepared count over a range that a paid release answers: the path of a saved answer.
func BenchmarkBuildHeld(b *testing.B) {
	c := testContext(b, testPolicy(b))
	c.Settings.Epsilon = epsilon(b, "0.5")
	statements, refusal := parse.Parse("SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2")
	if refusal != nil {
		b.Fatal(refusal)
	}
	params := []policy.Value{int64(30), int64(40)}
	p, refusal := Build(statements[0], params, c)
	if refusal != nil {
		b.Fatal(refusal)
	}
	c.Holdings.(*shelf).buy(p)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		params[0] = int64(i % 40)
		p, refusal := Build(statements[0], params, c)
		if refusal != nil || !p.Cost.IsZero() {
			b.Fatal(refusal, p)
		}
	}
}

func BenchmarkBuildFresh(b *testing.B) {
	c := testContext(b, testPolicy(b))
	statements, _ := parse.Parse("SELECT sex, count(*) FROM people WHERE hired >= '2020-01-01' GROUP BY sex")
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := Build(statements[0], nil, c); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, refusal := parse.Parse("SELECT count(*) FROM people WHERE age BETWEEN 30 AND 40"); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

// interval is the condition of the i-th of many counts.
func interval(i int) string {
	from := i * 7919 % 9000
	return fmt.Sprintf("kids = %d AND hired BETWEEN date '2000-01-01' + %d AND date '2000-01-01' + %d", i%10, from, from+1+i*31%400)
}

// manyHeld is a context in which so many releases are held over people, and reading them takes what it takes in a
// proxy: each once.
func manyHeld(b testing.TB, static bool, most int) reuse.Context {
	b.Helper()
	c := testContext(b, testPolicy(b))
	c.Dataset.Buying.Cells = 0
	c.Dataset.Tables[0].Static = static
	r := rand.New(rand.NewSource(1))
	shelf := c.Holdings.(*shelf)
	for len(shelf.list) < most {
		sql, from := "SELECT count(*) FROM people WHERE "+interval(len(shelf.list)), r.Intn(9000)
		switch r.Intn(10) {
		case 0:
			sql = fmt.Sprintf("SELECT sex, count(*) FROM people WHERE income < %d.5 GROUP BY sex", r.Intn(200000))
		case 1:
			sql = fmt.Sprintf("SELECT kids, active, count(*) FROM people WHERE age >= %d AND hired < date '2000-01-01' + %d GROUP BY kids, active", r.Intn(100), from)
		}
		statements, refusal := parse.Parse(sql)
		if refusal != nil {
			b.Fatal(refusal)
		}
		p, refusal := Build(statements[0], nil, reuse.Context{Policy: c.Policy, Dataset: c.Dataset, User: c.User, Settings: c.Settings, Now: c.Now})
		if refusal != nil {
			b.Fatal(sql, refusal)
		}
		shelf.buy(p)
	}
	shelf.Views(c.Dataset.Tables[0])
	c.Holdings = shelf.inventory
	return c
}

// BenchmarkTenThousandHeld plans dashboards' queries with ten thousand live releases over their table: asked before,
// read from one of them, read from sums and differences, and from none. Each plan is of another question, but
// asked-again.
func BenchmarkTenThousandHeld(b *testing.B) {
	for _, of := range []struct {
		name   string
		static bool
		sql    func(i int) string
	}{
		{"nothing-held", false, func(i int) string {
			return fmt.Sprintf("SELECT count(*) FROM people WHERE kids = %d AND hired < date '2000-01-01' + %d", i%10, i%9000)
		}},
		{"again", true, func(int) string {
			return "SELECT sex, count(*) FROM people WHERE income < 99999.5 GROUP BY sex"
		}},
		{"fresh", false, func(i int) string {
			return fmt.Sprintf("SELECT count(*) FROM people WHERE score < 5 AND kids = 3 AND income >= %d.5", i%4096*40)
		}},
		{"fresh-static", true, func(i int) string {
			return fmt.Sprintf("SELECT count(*) FROM people WHERE kids = %d AND hired < date '2000-01-01' + %d", i%10, i%9000)
		}},
		{"mixed", true, func(i int) string {
			from := i % 8000 * 7919 % 9000
			return fmt.Sprintf("SELECT count(*) FROM people WHERE kids = %d AND (hired < date '2000-01-01' + %d OR hired > date '2000-01-01' + %d OR hired IS NULL)", i%10, from, from+1+i*31%400)
		}},
		{"groups-static", true, func(i int) string {
			return fmt.Sprintf("SELECT kids, count(*) FROM people WHERE hired < date '2000-01-01' + %d GROUP BY kids", i%9000)
		}},
	} {
		b.Run(of.name, func(b *testing.B) {
			c := manyHeld(b, of.static, 10_000)
			if of.name == "nothing-held" {
				c.Holdings = &shelf{}
			}
			if of.name == "again" {
				buyOne(b, c, of.sql(0))
			}
			if of.name == "mixed" {
				buyOne(b, c, "SELECT kids, count(*) FROM people GROUP BY kids")
				c.Settings.Epsilon = epsilon(b, "0.01")
			}
			parsed := make([]parse.Statement, 4096) // more than are planned: nothing is remembered
			for i := range parsed {
				statements, refusal := parse.Parse(of.sql(i))
				if refusal != nil {
					b.Fatal(refusal)
				}
				parsed[i] = statements[0]
			}
			b.ReportAllocs()
			mixed, before := 0, processorTime()
			for i := 0; b.Loop(); i++ {
				p, refusal := Build(parsed[i%len(parsed)], nil, c)
				if refusal != nil {
					b.Fatal(refusal)
				}
				if p.Leaves[0].Counts[0].Runs[0].Mix != nil {
					mixed++
				}
			}
			b.ReportMetric(float64(processorTime()-before)/float64(b.N)/1e6, "cpu-ms/op")
			b.ReportMetric(float64(mixed)/float64(b.N), "mixed/op")
		})
	}
}

// processorTime is what this process has worked: it is comparable on a machine that others use too.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func buyOne(b *testing.B, c reuse.Context, sql string) {
	b.Helper()
	statements, refusal := parse.Parse(sql)
	if refusal != nil {
		b.Fatal(refusal)
	}
	p, refusal := Build(statements[0], nil, c)
	if refusal != nil {
		b.Fatal(refusal)
	}
	for _, m := range p.Measures {
		if !m.Held {
			c.Holdings.(*reuse.Index).Add(reuse.Holding{ID: 20_000, Digest: m.Digest, Spec: m.Spec, Described: m.Describe()})
		}
	}
}

// BenchmarkLinearScan is what it would take to read the descriptions of ten thousand releases for each plan.
func BenchmarkLinearScan(b *testing.B) {
	c := manyHeld(b, true, 10_000)
	people := c.Dataset.Tables[0]
	list := c.Holdings.(*reuse.Index).ByTable[linear.KnownOf(people).Fingerprint]
	for b.Loop() {
		found := 0
		for _, h := range list {
			if m := reuse.ReadHeld(h, people); m != nil {
				found++
			}
		}
		if found < 9000 {
			b.Fatal(found)
		}
	}
}

package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// BenchmarkBuildHeld plans a prepared count over a range that a paid release answers: the path of a saved answer.
func BenchmarkBuildHeld(b *testing.B) {
	c := testContext(b, testPolicy(b))
	c.Settings.Epsilon = epsilon(b, "0.5")
	statements, refusal := Parse("SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2")
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
	statements, _ := Parse("SELECT sex, count(*) FROM people WHERE hired >= '2020-01-01' GROUP BY sex")
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := Build(statements[0], nil, c); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, refusal := Parse("SELECT count(*) FROM people WHERE age BETWEEN 30 AND 40"); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

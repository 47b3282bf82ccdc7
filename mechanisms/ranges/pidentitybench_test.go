package ranges

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkPIdentity times the parts of a release of all ranges over 4096 cells: made once, then for each release and
// query.
func BenchmarkPIdentity(b *testing.B) {
	s, err := pIdentityOf(4096, PIdentityVersion(AllRanges))
	if err != nil {
		b.Fatal(err)
	}
	r, x := rand.New(rand.NewPCG(1, 2)), make([]int64, 4096)
	for i := range x {
		x[i] = r.Int64N(1000)
	}
	y, spans := s.Observe(x), []Span{{1000, 3000}}
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"open", func() { pIdentities.known = nil; _, _ = pIdentityOf(4096, 1) }},
		{"observe", func() { s.Observe(x) }},
		{"fit", func() { s.Fit(y) }},
		{"variance", func() { s.Variance(spans) }},
		{"shape", func() { s.Shape(spans, nil) }},
		{"terms", func() { s.Terms(spans) }},
		{"mean variance", func() { s.MeanVariance(AllRanges) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				part.do()
			}
		})
	}
}

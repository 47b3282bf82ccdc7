package rewrite_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/rewrite"
)

// releasedStatements are those whose releases are audited as black boxes: one of each kind of leaf.
var releasedStatements = []string{
	joinStatements[0], joinStatements[3], joinStatements[10], joinStatements[11], joinStatements[16], joinStatements[18],
	lookupStatements[0], sumStatements[0], sumStatements[1], sumStatements[7],
	`SELECT kind, count(*), avg(secs) FROM calls GROUP BY 1`,
	`SELECT count(*) FROM calls WHERE moment >= '2025-01-02' AND moment < '2025-01-05'`,
	`SELECT sum(n) FROM (SELECT who, count(*) AS n FROM calls GROUP BY who) t`,
}

// farthest is the pair of neighbours, of many that are drawn, whose observations of a measure are farthest apart.
func (db database) farthest(t *testing.T, r *rand.Rand, m measured, replace bool) (one, other []privacy.Group) {
	t.Helper()
	best := -1.0
	for range 24 {
		both := nobody(r, 6)
		for id := range 2 {
			both.add(person(r, id, 4, false))
		}
		var found [2][]privacy.Group
		for i := range found {
			side := tuples{}
			side.add(both)
			if i == 0 || replace {
				side.add(person(r, 4, 14, false))
			}
			if err := db.load(side.script(r)); err != nil {
				t.Fatal(err)
			}
			found[i] = m.groups(t, db.run, sound, false)
		}
		if l1, _ := m.shares(m.observed(t, found[0]), m.observed(t, found[1]), sound); l1 > best {
			best, one, other = l1, found[0], found[1]
		}
	}
	return one, other
}

// TestAuditReleases plays a guessing game against the releases of statements, on the neighbours that are farthest apart of
// those drawn: nobody tells them apart by more than is paid. The guesser knows both databases, and is told the logarithm of
// the likelihood ratio, which is all that a release says about them. One judgement of a release that keeps its claim fails
// with a probability of at most 1e-6, all of them with 3e-5. The same releases with half of their noise are caught.
func TestAuditReleases(t *testing.T) {
	const seed, alarm = 909, stattest.Alarm(1e-6)
	t.Logf("seed %d", seed)
	answers := stattest.Length(8000, 200_000)
	db, all := duckDatabase(t), variants(t, rewrite.DuckDB)
	for _, name := range variantNames[:2] {
		caught := 0
		for i, m := range measures(t, all[name], db.dialect, releasedStatements, privacy.MicroEpsilon(1_000_000)) {
			one, other := db.farthest(t, rand.New(rand.NewPCG(seed, uint64(i))), m, name == "replace-one")
			paid := m.measure.Cost.Epsilon.Float()
			if got := m.epsilon(t, m.measure.Spec, one, other, answers, alarm); got > paid {
				t.Errorf("%s: %s\nε is at least %.4f, paid are %.4f", name, m.statement, got, paid)
			}
			if got := m.epsilon(t, halfNoise(m.measure.Spec), one, other, answers, alarm); got > paid {
				caught++
			}
		}
		if caught < 7 {
			t.Errorf("%s: releases with half of their noise were caught %d times: the audit is too weak", name, caught)
		}
		t.Logf("%s: %d of %d releases with half of their noise were caught", name, caught, len(releasedStatements))
	}
}

// halfNoise halves the noise of a spec, as a mistake in calibration would.
func halfNoise(s mechanisms.Spec) mechanisms.Spec {
	less := func(n mechanisms.Noise) mechanisms.Noise { n.Den *= 2; return n }
	if s.Sums == nil {
		s.Noise = less(s.Noise)
		return s
	}
	s.Sums = append([]mechanisms.Sum(nil), s.Sums...)
	for i := range s.Sums {
		s.Sums[i].Noise = less(s.Sums[i].Noise)
	}
	return s
}

// epsilon is a lower bound of what the releases of two databases tell about which of them it is.
func (m measured) epsilon(t *testing.T, spec mechanisms.Spec, one, other []privacy.Group, answers int, alarm stattest.Alarm) float64 {
	t.Helper()
	a, b := m.observed(t, one), m.observed(t, other)
	width := len(a) / spec.Counters
	random := rand.NewChaCha8([32]byte{7})
	sample := func(groups []privacy.Group) []float64 {
		truth := mechanisms.Weighed(privacy.Seal(groups), m.measure.Weigh)
		ratios := make([]float64, answers)
		for i := range ratios {
			noisy, err := mechanisms.Release(spec, m.measure.Place, truth, random)
			if err != nil {
				t.Fatal(err)
			}
			for j, x := range noisy.Value().Observations {
				n := spec.Noise
				if spec.Sums != nil {
					n = spec.Sums[j/width].Noise
				}
				ratios[i] += (math.Abs(float64(x-a[j])) - math.Abs(float64(x-b[j]))) * float64(n.Den) / float64(n.Num)
			}
			ratios[i] = math.Round(ratios[i]*1e9) / 1e9
		}
		return ratios
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other)}.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

package rewrite_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// released are the statements whose releases are audited as black boxes: each aggregate, each form of join, each
// aggregate per unit, grouping sets, choices. A bound that is switched off shows where bounded, elsewhere the domain of
// what is aggregated bounds as well. Where spread, a unit moves so many numbers by so little that a guesser with few
// answers misses a fault; the exact comparison (TestAuditNeighbours) does not.
var released = []struct {
	what, text      string
	bounded, spread bool
}{
	{"count", `SELECT count(*) FROM calls`, true, false},
	{"count with a condition", `SELECT count(*) FROM calls WHERE secs > 20`, true, false},
	{"counts of groups", `SELECT kind, count(*) FROM calls GROUP BY 1`, true, false},
	{"counts of groups with a condition", `SELECT ward, count(*) FROM visits WHERE minutes > -5 GROUP BY 1`, true, false},
	{"FILTER", `SELECT count(*) FILTER (WHERE secs < 30), count(*) FILTER (WHERE secs >= 30) FROM calls`, true, false},
	{"a condition within a step as a key", `SELECT secs > 22.5, count(*) FROM calls GROUP BY 1`, true, false},
	{"range", `SELECT count(*) FROM calls WHERE moment >= '2025-01-02' AND moment < '2025-01-05'`, true, true},
	{"time of the day", `SELECT count(*) FROM calls WHERE moment::time <= '22:30'`, true, false},
	{"sum", `SELECT sum(paid) FROM calls`, true, false},
	{"sum of groups", `SELECT ward, sum(minutes) FROM visits GROUP BY 1`, true, true},
	{"sum of an expression", `SELECT sum(CASE WHEN kind = 'in' THEN 10 ELSE -5 END) FROM calls`, true, false},
	{"avg", `SELECT kind, count(*), avg(secs) FROM calls GROUP BY 1`, true, false},
	{"stddev, variance", `SELECT stddev(minutes), variance(minutes) FROM visits`, true, true},
	{"corr, regr_slope", `SELECT corr(minutes, room), regr_slope(room, minutes) FROM visits`, true, true},
	{"bit_and, bit_or", `SELECT bit_and(minutes), bit_or(room) FROM visits`, true, true},
	{"rank, percent_rank", `SELECT rank(3) WITHIN GROUP (ORDER BY minutes), cume_dist(5) WITHIN GROUP (ORDER BY room),
		percent_rank(2) WITHIN GROUP (ORDER BY minutes DESC) FROM visits`, true, false},
	{"count(DISTINCT unit)", `SELECT ward, count(DISTINCT who) FROM visits GROUP BY 1`, false, false},
	{"count(DISTINCT column)", `SELECT count(DISTINCT room) FROM visits`, true, false},
	{"sum(DISTINCT column)", `SELECT sum(DISTINCT minutes) FROM visits`, true, true},
	{"sum(DISTINCT column) of groups, avg", `SELECT ward, sum(DISTINCT room), avg(DISTINCT minutes) FROM visits GROUP BY 1`, true, true},
	{"grouping sets", `SELECT ward, room, count(*) FROM visits GROUP BY GROUPING SETS ((ward), (room), ())`, true, false},
	{"ROLLUP", `SELECT ward, extract(month FROM day), count(*) FROM visits GROUP BY ROLLUP (1, 2)`, true, false},
	{"CUBE with means", `SELECT sex, age > 4, count(*), avg(age) FROM people GROUP BY CUBE (1, 2)`, false, false},
	{"join", joinStatements[0], true, false},
	{"join with groups of both", `SELECT p.sex, v.ward, count(*) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1, 2`, true, false},
	{"left join", joinStatements[3], true, false},
	{"self-join", `SELECT a.kind, b.kind, count(*) FROM calls a JOIN calls b ON a.who = b.who GROUP BY 1, 2`, true, false},
	{"join of three tables", `SELECT p.sex, count(*), sum(v.minutes) FROM people p JOIN visits v ON p.person_id = v.who JOIN calls c ON c.who = v.who GROUP BY 1`, true, false},
	{"join along a key", joinStatements[10], true, false},
	{"join with a public table", lookupStatements[0], true, false},
	{"semi-join", joinStatements[11], true, false},
	{"anti-join", `SELECT sex, count(*) FROM people WHERE person_id NOT IN (SELECT who FROM calls WHERE paid < 0) GROUP BY 1`, true, false},
	{"counts per unit", `SELECT sum(n) FROM (SELECT who, count(*) AS n FROM calls GROUP BY who) t`, false, false},
	{"units by their count", `SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t GROUP BY 1`, false, false},
	{"sums per unit", `SELECT avg(s) FROM (SELECT who, sum(minutes) AS s FROM visits GROUP BY who) t`, false, false},
	{"HAVING per unit", `SELECT count(*) FROM (SELECT who FROM visits GROUP BY who HAVING sum(minutes) > 10) t`, false, false},
	{"view", viewStatements[0], true, false},
	{"shares", `SELECT kind, count(*) * 100.0 / sum(count(*)) OVER () FROM calls GROUP BY 1`, true, false},
	{"join with a public table that multiplies", matchStatements[1], true, false},
	{"sub-query that is correlated", joinStatements[12], false, false},
	{"first row of a unit", windowStatements[1], false, false},  // its condition bounds as well
	{"number within a unit", windowStatements[0], false, false}, // as does its domain, where each row has a number of its own
	{"first and last value of a unit", windowStatements[10], true, false},
	{"UNION ALL of tables", unionStatements[0], true, false},
	{"INTERSECT of units", unionStatements[11], false, false},
	{"sum with what is looked up by two columns", listedStatements[2], true, true},
	{"FULL JOIN of units", fullStatements[2], false, false},
	{"INTERSECT of several columns", unionStatements[18], false, true}, // a unit that has four of them is seldom
	{"LEFT JOIN of a calendar", listStatements[0], true, true},
	{"lag", windowStatements[5], true, false},
	{"view with an aggregate", viewStatements[4], false, false},
	{"percentile", `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY minutes) FROM visits`, true, false},
	{"percentiles of groups", `SELECT ward, percentile_disc(0.7) WITHIN GROUP (ORDER BY minutes) FROM visits GROUP BY 1`, true, true},
	{"percentile per unit", `SELECT percentile_disc(0.6) WITHIN GROUP (ORDER BY n) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t`, false, false},
	{"median", `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY minutes) FROM visits`, true, false},
	{"min", `SELECT min(minutes) FROM visits`, true, false},
	{"max", `SELECT max(room) FROM visits`, true, false},
	{"mode", `SELECT mode() WITHIN GROUP (ORDER BY ward) FROM visits`, true, false},
	{wide, `SELECT count(*) FROM (SELECT who FROM calls GROUP BY who HAVING sum(paid) > 50) t`, false, false},
}

// wide is a form that is audited at full length alone: 20,000 releases of its 6,002 sums take as long as those of all
// other forms at the short one.
const wide = "HAVING per unit, of many sums"

// pair are two databases that differ in one unit: what a measure is given of each.
type pair struct {
	score float64
	sides [2][]privacy.Group
}

var (
	everyBound  = regexp.MustCompile(`(\.[rd] <=|LEAST\(s\.k,) (\d+)`)
	groupBound  = regexp.MustCompile(`(\.d <=) \d+`)
	rowsOff     = fault{name: "bounding rows is switched off", sql: func(s string) string { return bounds.ReplaceAllString(s, "$1 1000000") }, claimed: 1}
	groupsOff   = fault{name: "bounding groups is switched off", sql: func(s string) string { return groupBound.ReplaceAllString(s, "$1 1000000") }, claimed: 1}
	boundsTwice = fault{name: "sensitivity is halved", sql: func(s string) string {
		return everyBound.ReplaceAllStringFunc(s, func(b string) string {
			var n int
			at := strings.LastIndex(b, " ")
			fmt.Sscan(b[at:], &n)
			return b[:at+1] + fmt.Sprint(2*n)
		})
	}, claimed: 1}
)

// farthest are the pairs of neighbours, of many that are drawn, that say most: with the SQL as it is the pair whose
// releases differ most, with one of the faults in it the one that a guesser would tell apart most easily.
func (db database) farthest(t *testing.T, r *rand.Rand, m measured, replace bool, among []fault) map[string]pair {
	t.Helper()
	best := map[string]pair{}
	for n := range stattest.Length(12, 60) {
		both := nobody(r, 6)
		for id := range 2 {
			both.add(person(r, id, 4, false))
		}
		sides := map[string]*[2][]privacy.Group{sound.name: {}}
		for i := range 2 {
			side := tuples{}
			side.add(both)
			if i == 0 || replace {
				if n%2 == 0 {
					side.add(person(r, 4, 14, false))
				} else {
					side.add(crowd(r, 4, 14))
				}
			}
			if err := db.load(side.script(r)); err != nil {
				t.Fatal(err)
			}
			for _, f := range append([]fault{sound}, among...) {
				if f.name != sound.name && f.sql(m.query.SQL()) == m.query.SQL() {
					continue
				}
				if sides[f.name] == nil {
					sides[f.name] = &[2][]privacy.Group{}
				}
				sides[f.name][i] = m.groups(t, db.run, f, false)
			}
		}
		for name, groups := range sides {
			loss, places := m.loss(t, *groups)
			if name != sound.name {
				loss /= math.Sqrt(places)
			}
			if old, have := best[name]; !have || loss > old.score {
				best[name] = pair{loss, *groups}
			}
		}
	}
	return best
}

// loss is the largest logarithm of a likelihood ratio of two databases' releases (its mean, where noise is Gaussian:
// their ρ), and in how many places they differ; of a choice, the number of rows that they differ by.
func (m measured) loss(t *testing.T, sides [2][]privacy.Group) (loss, places float64) {
	t.Helper()
	spec := m.measure.Spec
	if ch, is := spec.Kind.(*mechanisms.Choice); is {
		return apart(ch, sides), 1
	}
	a, b := m.observed(t, sides[0]), m.observed(t, sides[1])
	for j := range a {
		if a[j] != b[j] {
			places++
			loss += ratio(noiseAt(spec, j, len(a)), 0, float64(a[j]-b[j]))
		}
	}
	return -loss, max(places, 1)
}

// noiseAt is the noise of an observation, of so many.
func noiseAt(spec mechanisms.Spec, at, of int) mechanisms.Noise {
	if spec.Counts().Sums != nil {
		return spec.Counts().Sums[at/(of/spec.Counters)].Noise
	}
	return spec.Counts().Noise
}

// ratio is the logarithm of the likelihood of the one database over that of the other, negated, by how far an
// observation is from what each would be without noise.
func ratio(n mechanisms.Noise, toOne, toOther float64) float64 {
	scale := float64(n.Den) / float64(n.Num)
	if n.Kind == mechanisms.DiscreteLaplace {
		return (math.Abs(toOne) - math.Abs(toOther)) * scale
	}
	return (toOne*toOne - toOther*toOther) / 2 * scale
}

// apart is how much two databases' cells differ for a choice: of the largest, which compares cells with each other, the
// most and the least rows that a cell of the one has more, else all rows that they differ by.
func apart(ch *mechanisms.Choice, sides [2][]privacy.Group) float64 {
	cells := map[string]int64{}
	for i, groups := range sides {
		for _, g := range groups {
			cells[fmt.Sprint(g.Cells)] += g.Counts[0] * int64(1-2*i)
		}
	}
	sum, most, least := int64(0), int64(0), int64(0)
	for _, n := range cells {
		sum, most, least = sum+max(n, -n), max(most, n), min(least, n)
	}
	if ch.Kind == mechanisms.Largest {
		return float64(most - least)
	}
	return float64(sum)
}

// bounding is a way to bound a unit's rows: the policy, the database that is asked, and the δ of the claim.
type bounding struct {
	name  string
	rules *policy.Policy
	db    database
	delta float64
}

// boundings are the relations of neighbours, rows and groups, ε and ρ, each on an engine, at full length on both and
// over all statements.
func boundings(t *testing.T) (list []bounding) {
	oneGroup := strings.NewReplacer("max_rows_per_unit: 4\n", "max_groups_per_unit: 1\n        max_rows_per_group: 3\n",
		"max_rows_per_unit: 3\n", "max_groups_per_unit: 1\n        max_rows_per_group: 3\n").Replace(neighbourPolicy)
	names := []string{"replace-one", "add-remove, rho", "add-remove, one group", "add-remove", "replace-one, groups", "replace-one, groups, rho", "add-remove, groups"}
	dbs := []database{postgresDatabase(t), duckDatabase(t)}
	for n, name := range names[:stattest.Length(3, len(names))] {
		for e, db := range dbs {
			if stattest.Length(0, 1) == 0 && e != n%2 {
				continue
			}
			all := variantTexts()
			all["add-remove, one group"] = oneGroup
			plain, rho := strings.CutSuffix(name, ", rho")
			b := bounding{name + ", " + db.dialect.String(), parsedFor(t, all[plain], db.dialect), db, 0}
			if rho {
				b.rules.Datasets[0].Accountant, b.delta = privacy.ZCDP, 0.01
			}
			list = append(list, b)
		}
	}
	return list
}

// paid is the ε, at the δ of the claim, that a measure costs; unit is the loss of a pair that is as far apart as is
// claimed.
func (b bounding) paid(t *testing.T, m *plans.Measure) (paid, unit float64) {
	t.Helper()
	if b.delta == 0 {
		return m.Cost.Epsilon.Float(), m.Cost.Epsilon.Float()
	}
	return stattest.LeastEpsilon(m.Cost.Rho, privacy.AttoDelta(int64(b.delta*1e18))).Float(), m.Cost.Rho.Float()
}

// TestAuditReleases plays a guessing game against the releases of statements, on the neighbours that are farthest apart
// of those drawn, under each rule that bounds a unit's rows: nobody distinguishes them by more than is paid, ε, or what
// a ρ converts to. The guesser knows both databases, and is given the logarithm of the likelihood ratio, which is all
// that a release says about them; of a choice he is given what was chosen. One judgement of a release that keeps its
// claim fails with a probability of at most 1e-7; the test prints how much that is of all. The same releases with
// bounding switched off, with sensitivity halved (bounds twice as high as claimed) and with half of their noise are
// caught.
func TestAuditReleases(t *testing.T) {
	threats.Nightly(t, "rewrite.TestAuditNeighbours (bounds, sensitivity), mechanisms/noise.TestT21ExactChances and test/audits.TestT21LowerBounds (noise)")
	const seed, alarm = 909, stattest.Alarm(1e-7)
	t.Logf("seed %d", seed)
	// Where a guesser with few answers misses, the short audit spends no time on many: a fifth sees the gross faults
	// alone.
	few, answers := stattest.Length(1000, 200_000), stattest.Length(5000, 200_000)
	judged, caught := 0, map[string]map[string]bool{}
	for _, b := range boundings(t) {
		attained := 0
		for i, s := range released {
			if b.delta > 0 && i%stattest.Length(4, 1) > 0 || s.what == wide && stattest.Length(0, 1) == 0 {
				continue
			}
			catch := func(fault string, is bool) {
				if caught[fault] == nil {
					caught[fault] = map[string]bool{}
				}
				caught[fault][s.what] = caught[fault][s.what] || is
			}
			for _, m := range measures(t, b.rules, b.db.dialect, []string{s.text}, privacy.MicroEpsilon(1_000_000)) {
				// A fault is caught in a form of statements once: after that it is not looked for there.
				missing := slices.DeleteFunc([]fault{rowsOff, groupsOff, boundsTwice}, func(f fault) bool { return !s.bounded || caught[f.name][s.what] })
				pairs := b.db.farthest(t, rand.New(rand.NewPCG(seed, drawnFor(s.what))), m, strings.HasPrefix(b.name, "replace-one"), missing)
				paid, unit := b.paid(t, m.measure)
				answers := answers
				if s.spread {
					answers = few
				}
				judge := func(spec mechanisms.Spec, p pair) float64 {
					return m.epsilon(t, spec, p.sides, answers, b.delta, alarm)
				}
				judged++
				if got := judge(m.measure.Spec, pairs[sound.name]); got > paid {
					t.Errorf("%s: %s: %s\nε is at least %.4f, paid are %.4f", b.name, s.what, m.statement, got, paid)
				}
				if !mechanisms.Is[*mechanisms.Choice](m.measure.Spec) {
					if pairs[sound.name].score > 0.9*unit {
						attained++
					}
					if !caught["half of the noise"][s.what] {
						catch("half of the noise", judge(halfNoise(m.measure.Spec), pairs[sound.name]) > paid)
					}
				}
				for _, f := range missing {
					if p, planted := pairs[f.name]; planted {
						catch(f.name, judge(m.measure.Spec, p) > paid)
					}
				}
			}
		}
		t.Logf("%s: %d releases on neighbours that are as far apart as is claimed", b.name, attained)
	}
	allCaught(t, caught)
	t.Logf("%d sound releases judged: the probability that any is accused is at most %.1g", judged, float64(judged)*float64(alarm))
}

// drawnFor is a form's own stream of databases, which no other form changes.
func drawnFor(what string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(what))
	return h.Sum64()
}

// allCaught holds the faults that were caught, by form, against those that must be.
func allCaught(t *testing.T, caught map[string]map[string]bool) {
	t.Helper()
	for fault, whats := range caught {
		found := 0
		for _, s := range released {
			is, tried := whats[s.what]
			if found += count(is); tried && !is {
				t.Logf("%s: not caught in %s", fault, s.what)
				if !s.spread && fault != groupsOff.name {
					t.Errorf("%s is not caught in %s", fault, s.what)
				}
			}
		}
		t.Logf("%s: caught in %d of %d forms", fault, found, len(whats))
		if found < len(whats)/2 {
			t.Errorf("%s is caught in %d of %d forms", fault, found, len(whats))
		}
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// halfNoise halves the noise of a spec, as a mistake in calibration would.
func halfNoise(s mechanisms.Spec) mechanisms.Spec {
	less := func(n mechanisms.Noise) mechanisms.Noise {
		if n.Den *= 2; n.Kind != mechanisms.DiscreteLaplace {
			n.Den *= 2 // of a variance
		}
		return n
	}
	return otherNoise(s, less)
}

// epsilon is a lower bound of what the releases of two databases tell about which of them it is.
func (m measured) epsilon(t *testing.T, spec mechanisms.Spec, sides [2][]privacy.Group, answers int, delta float64, alarm stattest.Alarm) float64 {
	t.Helper()
	random := rand.NewChaCha8([32]byte{7})
	each := func(groups []privacy.Group, see func(observations []int64)) {
		truth := mechanisms.Weighed(m.measure.Spec, privacy.Seal(groups), m.measure.Weigh)
		for range answers {
			noisy, err := mechanisms.Release(spec, m.measure.Place, truth, random)
			if err != nil {
				t.Fatal(err)
			}
			see(noisy.Value().Observations)
		}
	}
	if mechanisms.Is[*mechanisms.Choice](spec) {
		return m.epsilonOfChoice(t, sides, each, delta, alarm)
	}
	a, b := m.observed(t, sides[0]), m.observed(t, sides[1])
	var ratios [2][]float64
	for i, groups := range sides {
		each(groups, func(observations []int64) {
			sum := 0.0
			for j, x := range observations {
				sum += ratio(noiseAt(spec, j, len(a)), float64(x-a[j]), float64(x-b[j]))
			}
			ratios[i] = append(ratios[i], math.Round(sum*1e9)/1e9)
		})
	}
	bound, err := stattest.Audit{One: ratios[0], Other: ratios[1], Delta: delta}.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// epsilonOfChoice is the same of choices, whose answers have no order.
func (m measured) epsilonOfChoice(t *testing.T, sides [2][]privacy.Group, each func([]privacy.Group, func([]int64)), delta float64, alarm stattest.Alarm) float64 {
	t.Helper()
	outcomes := map[string]int{}
	var chosen [2][]int
	for i, groups := range sides {
		each(groups, func(observations []int64) {
			key := fmt.Sprint(observations)
			if _, known := outcomes[key]; !known {
				outcomes[key] = len(outcomes)
			}
			chosen[i] = append(chosen[i], outcomes[key])
		})
	}
	bound, err := stattest.Choices{One: chosen[0], Other: chosen[1], Delta: delta}.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

package rewrite_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// alarmStatements ask for a yes or no of every form of rows; the first ones of one table, whose run they share.
var alarmStatements = []string{
	`SELECT count(*) > 3 FROM calls`,
	`SELECT count(*) FILTER (WHERE kind = 'in') >= 2 FROM calls WHERE secs < 50`,
	`SELECT bool_or(paid > 500), every(secs < 40) FROM calls`,
	`SELECT 'alarm' FROM visits WHERE ward = 'A' HAVING count(*) > 2`,
	`SELECT bool_and(minutes < 9) FROM visits`,
	`SELECT count(*) >= 2 FROM people p JOIN visits v ON p.person_id = v.who WHERE p.sex = 'f'`,
	`SELECT count(*) > 4 FROM calls a JOIN calls b ON a.who = b.who WHERE a.kind = 'in'`,
	`SELECT count(*) > 1 FROM people WHERE person_id IN (SELECT who FROM visits WHERE ward = 'B')`,
	`SELECT count(*) > 2 FROM (SELECT who, count(*) AS n FROM calls GROUP BY who) t WHERE n > 1`,
	`SELECT count(*) > 2 FROM stays WHERE minutes > 3`,
	`SELECT count(*) > 4 FROM visits v JOIN wards w ON w.code = v.ward`,
	`SELECT count(*) > 4 FROM visits v JOIN tags t ON t.code = v.ward`,
}

const alarmsOfCalls = 3

// alarmsOf are the questions of statements, with the spec of the run that each is asked of.
func alarmsOf(t *testing.T, p *policy.Policy, d dialect.Dialect, statements []string) (list []measured) {
	t.Helper()
	c := contextOf(t, p, privacy.MicroEpsilon(1_000_000))
	c.Settings.Alarms = 2
	for _, text := range statements {
		plan := planOf(t, text, c)
		found := 0
		for _, column := range plan.Leaves[0].Counts {
			for _, run := range column.Runs {
				if run.Threshold == nil || run.Threshold.Measure == nil {
					continue
				}
				q, err := rewrite.Render(run.Threshold.Measure, d)
				if err != nil {
					t.Fatal(err)
				}
				found, list = found+1, append(list, measured{text, run.Threshold.Measure, q})
			}
		}
		if found == 0 {
			t.Errorf("%s asks no run of alarms", text)
		}
	}
	return list
}

// streams draws neighbours and returns what is counted for each question on each side.
func (db database) streams(t *testing.T, r *rand.Rand, list []measured, replace bool, f fault) (counts [2][]int64) {
	t.Helper()
	both := nobody(r, 6)
	for id := range 2 {
		both.add(person(r, id, 4, false))
	}
	for i := range counts {
		side := tuples{}
		side.add(both)
		if i == 0 || replace {
			side.add(person(r, 4, 14, false))
		}
		if err := db.load(side.script(r)); err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			counts[i] = append(counts[i], trueCells(m.measure, m.query, db.run(t, f.sql(m.query.SQL()), m.query.Args()))[0])
		}
	}
	return counts
}

// alarmShare holds the difference of a question's counts against what the run is calibrated to: every count moves by no
// more than a unit's rows, and when a unit comes, upwards. 1 is what is claimed.
func alarmShare(m *plans.Measure, with, without int64) float64 {
	a := m.Spec.Kind.(*mechanisms.Alarm)
	if with < without && a.Contribution.Neighbors == privacy.AddRemove {
		return 100
	}
	return float64(max(with-without, without-with)) / float64(a.Contribution.Rows)
}

// TestAuditAlarms: what a unit's rows move, in the counts that runs of alarms are asked about, is at most what the runs
// are calibrated to, on both engines; and nobody who sees the answers of a run tells neighbours apart by more than is
// paid. With bounding switched off and the claim halved the counts move by more; the answers of runs with a fourth of
// their noise tell more. A sound run is accused with a probability of at most 1e-7.
func TestAuditAlarms(t *testing.T) {
	const seed = 3131
	t.Logf("seed %d", seed)
	rounds := stattest.Length(16, 600)
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		db := open(t)
		for i, rules := range []string{"add-remove", "replace-one", "add-remove, groups", "add-remove, no units"} {
			if !threats.Night() && (i%2 == 0) == (name == "DuckDB") { // each rule on one engine
				continue
			}
			t.Run(name+", "+rules, func(t *testing.T) {
				list := alarmsOf(t, variants(t, db.dialect)[rules], db.dialect, alarmStatements)
				found := worst{}
				for _, f := range []fault{sound, rowsOff, boundsTwice} {
					r := rand.New(rand.NewPCG(seed, 1))
					for range rounds {
						if f.name != sound.name && found[f.name] > 1 {
							break // found
						}
						counts := db.streams(t, r, list, rules == "replace-one", f)
						for i, m := range list {
							share := alarmShare(m.measure, counts[0][i], counts[1][i])
							if f.name == sound.name && share > 1 {
								t.Errorf("%s\nmoves by %d, %.2f times the claim", m.statement, counts[0][i]-counts[1][i], share)
							}
							found[f.name] = max(found[f.name], share)
						}
					}
				}
				t.Logf("the share of the claim that a unit moves at most: %v", found)
				if found[sound.name] < 1 || found[rowsOff.name] <= 1 || found[boundsTwice.name] <= 1 {
					t.Error("the databases are too tame, or a fault is not found")
				}
			})
		}
	}
}

// TestAuditAlarmAnswers asks runs about neighbours, of those drawn the ones that differ most in all counts together.
func TestAuditAlarmAnswers(t *testing.T) {
	threats.Nightly(t, "rewrite.TestAuditAlarms (what moves the counts) and mechanisms/sparse.TestAuditsOfInstances (the noise)")
	const seed, alarm = 3132, stattest.Alarm(1e-7)
	t.Logf("seed %d", seed)
	runs := stattest.Length(50_000, 400_000)
	db := postgresDatabase(t)
	for _, rules := range []string{"add-remove", "replace-one"} {
		list := alarmsOf(t, variants(t, db.dialect)[rules], db.dialect, alarmStatements[:alarmsOfCalls])
		farthest := func(f fault) (best [2][]int64) {
			r, most := rand.New(rand.NewPCG(seed, 1)), int64(-1)
			for range stattest.Length(120, 300) {
				counts, apart := db.streams(t, r, list, rules == "replace-one", f), int64(0)
				for i := range list {
					apart += max(counts[0][i]-counts[1][i], counts[1][i]-counts[0][i])
				}
				if apart > most {
					best, most = counts, apart
				}
			}
			return best
		}
		spec := list[0].measure.Spec
		for _, m := range list {
			if *m.measure.Spec.Kind.(*mechanisms.Alarm) != *spec.Kind.(*mechanisms.Alarm) {
				t.Fatalf("%s: another run than the others of its table", m.statement)
			}
		}
		counts := farthest(sound)
		if got := alarmEpsilon(t, list, spec, counts, runs, alarm); got > 1 || got < 0.1 {
			t.Errorf("%s: ε is at least %.4f, paid are 1: more than that, or the audit is blind", rules, got)
		}
		loud := spec
		run := *spec.Kind.(*mechanisms.Alarm)
		run.Cost.Epsilon = privacy.MicroEpsilon(4_000_000)
		loud.Kind = &run
		for name, got := range map[string]float64{"a fourth of the noise": alarmEpsilon(t, list, loud, counts, runs, alarm),
			"bounding is switched off": alarmEpsilon(t, list, spec, farthest(rowsOff), runs, alarm)} {
			t.Logf("%s: %s: ε is at least %.3f of 1", rules, name, got)
			if got <= 1 {
				t.Errorf("%s: %s is not caught: ε is at least %.4f of 1", rules, name, got)
			}
		}
	}
}

// alarmEpsilon is a lower bound of what the answers of runs tell about two streams of counts. Each question's threshold
// is halfway: the analyst knows both databases.
func alarmEpsilon(t *testing.T, list []measured, spec mechanisms.Spec, counts [2][]int64, runs int, alarm stattest.Alarm) float64 {
	t.Helper()
	random := rand.NewChaCha8([32]byte{31})
	var answers [2][]int
	for side := range counts {
		for range runs {
			w, err := mechanisms.Open(spec, nil, privacy.Sensitive[[]privacy.Group]{}, random, func([]byte) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			code := 0
			for i, m := range list {
				code *= 3
				if w.Left() == 0 {
					code += 2
					continue
				}
				truth := privacy.Seal([]privacy.Group{{Cells: make([]int32, len(m.measure.Grain)), Counts: []int64{counts[side][i]}}})
				said, err := w.Answer(mechanisms.Question{Place: func([]int32, int) int { return 0 }, Groups: truth, Least: (counts[0][i] + counts[1][i] + 1) / 2})
				if err != nil {
					t.Fatal(err)
				}
				code += count(said.Value().Value != 0)
			}
			answers[side] = append(answers[side], code)
		}
	}
	bound, err := stattest.Choices{One: answers[0], Other: answers[1]}.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

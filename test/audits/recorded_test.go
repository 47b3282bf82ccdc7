package audits

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// recordedPolicy bounds what each person has of visits and calls; %s are the dataset's own lines, and visits' bounds.
const recordedPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: "duckdb:lab.duckdb"}
ledger: {url: "sqlite:ledger.db"}
users: [{name: alice, password: %q}]
datasets:
  - id: lab
    unit: {name: person, key: people.person_id}
%s
    cap: {epsilon: 900000, delta: 0.5}
    budgets: {"*": {epsilon: 900, delta: 0.0001}}
    defaults: {epsilon: 0.5, max_epsilon: 1, confidence: 0.95}
    tables:
      - name: people
        source: main.people
        expected_rows: 60
        max_rows_per_unit: 1
        extremes: true
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 9, step: 1}, outside: clamp}
          - {name: income, type: integer, domain: {min: -4, max: 11, step: 1}, nulls: exclude}
          - {name: town, type: text%s}
      - name: visits
        source: main.visits
        unit: visits.who = people.person_id
        extremes: true
        %s
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: minutes, type: integer, domain: {min: -5, max: 9, step: 1}, outside: clamp}
          - {name: cost, type: "numeric(6,2)", domain: {min: 0, max: 10, step: 0.5}}
          - {name: day, type: date, domain: {min: 2025-01-01, max: 2025-03-31, step: 1 day}}
      - name: calls
        source: main.calls
        unit: calls.who = people.person_id
        max_rows_per_unit: 2
        extremes: true
        columns:
          - {name: kind, type: text, domain: {values: [in, out]}, outside: exclude}
          - {name: paid, type: bigint, domain: {min: -10, max: 10, step: 1}}
          - {name: secs, type: double precision, domain: {min: 0, max: 60, step: 5}, outside: clamp}
      - name: wards
        source: main.wards
        public: true
        columns: [{name: code, type: text}, {name: label, type: text}, {name: floor, type: integer}]
`

// world is a policy that statements are recorded under.
type world struct {
	name, dataset, town, visits string
	replace                     bool
}

var worlds = []world{
	{"add-remove, ε", "    neighbors: add-remove\n    accountant: pure", ", domain: {values: [Bree, Rivendell]}", "max_rows_per_unit: 3", false},
	{"replace-one, ε, groups", "    neighbors: replace-one\n    units: 40\n    accountant: pure", ", domain: {values: [Bree, Rivendell]}", "max_groups_per_unit: 2\n        max_rows_per_group: 2", true},
	{"add-remove, ρ, found keys", "    neighbors: add-remove\n    accountant: zcdp", ", keys: discover", "max_groups_per_unit: 3\n        max_rows_per_group: 1", false},
	{"replace-one, ρ", "    neighbors: replace-one\n    units: 40\n    accountant: zcdp", ", domain: {values: [Bree, Rivendell]}", "max_rows_per_unit: 3", true},
}

// someone is what a person has, as rows of the three tables: more than the bounds allow, alike, and outside of the
// domains.
func someone(r *rand.Rand, id int) (people, visits, calls []string) {
	of := func(list ...string) string { return list[r.IntN(len(list))] }
	whole := func(low, high int) string {
		if r.IntN(9) == 0 {
			return of("NULL", "2147483647", "-2147483648")
		}
		return fmt.Sprint(low + r.IntN(high-low+1))
	}
	for range 1 + r.IntN(2) {
		people = append(people, fmt.Sprintf("(%d, %s, %s, %s, %s)", id, of("'f'", "'m'", "'m'", "'other'", "NULL"), whole(0, 9), whole(-4, 11), of("'Bree'", "'Bree'", "'Rivendell'", fmt.Sprintf("'home of %d'", id))))
	}
	alike, ward, minutes := r.IntN(3) == 0, of("'A'", "'B'", "'C'", "'X'"), whole(-5, 9)
	for range r.IntN(9) {
		if !alike {
			ward, minutes = of("'A'", "'B'", "'C'", "'X'", "NULL"), whole(-5, 9)
		}
		visits = append(visits, fmt.Sprintf("(%d, %s, %s, %s, %s)", id, ward, minutes, of("0", "9.99", "10", "-3.5", "4.25", "999", "NULL"), of("'2025-01-01'", "'2025-02-11'", "'2025-03-31'", "'1999-01-01'", "NULL")))
	}
	for range r.IntN(6) {
		calls = append(calls, fmt.Sprintf("(%d, %s, %s, %s)", id, of("'in'", "'out'", "'odd'", "NULL"), whole(-10, 10), of("0", "60", "'NaN'", "'Infinity'", "-1e300", "17.5", "NULL")))
	}
	return people, visits, calls
}

// recordedHouse is a pipeline over one database, and its recorder.
type recordedHouse struct {
	service *service.Service
	answers *pipeline.Answerer
	*recorder
}

// recordedSide opens the database of 40 people, without one of them or with another in her place; −1: of all.
func recordedSide(t *testing.T, w world, seed uint64, other int) *recordedHouse {
	t.Helper()
	dir := memory.Dir(t)
	db, err := sql.Open("duckdb", filepath.Join(dir, "lab.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	var people, visits, calls []string
	for id := range 40 {
		r := rand.New(rand.NewPCG(seed, uint64(id)))
		if id == other {
			if !w.replace {
				continue
			}
			r = rand.New(rand.NewPCG(seed, uint64(1000+id)))
		}
		p, v, c := someone(r, id)
		people, visits, calls = append(people, p...), append(visits, v...), append(calls, c...)
	}
	for _, s := range []string{`CREATE TABLE people (person_id INTEGER, sex VARCHAR, age INTEGER, income INTEGER, town VARCHAR)`,
		`CREATE TABLE visits (who INTEGER, ward VARCHAR, minutes INTEGER, cost DECIMAL(6,2), day DATE)`, `CREATE TABLE calls (who INTEGER, kind VARCHAR, paid BIGINT, secs DOUBLE)`,
		`CREATE TABLE wards (code VARCHAR, label VARCHAR, floor INTEGER)`, `INSERT INTO wards VALUES ('A', 'ground', 0), ('B', 'ground', 2), ('C', 'top', 3)`,
		"INSERT INTO people VALUES " + strings.Join(people, ", "), "INSERT INTO visits VALUES " + strings.Join(visits, ", "), "INSERT INTO calls VALUES " + strings.Join(calls, ", ")} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, recordedPolicy, kit.Verifier(t, "alice"), w.dataset, w.town, w.visits), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := service.Open(t.Context(), path, ledger.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	s := &recordedHouse{service: h, recorder: &recorder{}}
	s.begin(0)
	s.answers = pipeline.NewAnswerer(recordedBackend{h.Backend, s.recorder}, recordedLedger{h.Ledger, s.recorder}, h.Engine, s.recorder, slog.New(slog.DiscardHandler), proxy.NewMetrics())
	s.answers.UsePublic(&h.Public)
	return s
}

// settings are those of every statement: each is asked by somebody who has asked nothing yet.
func (s *recordedHouse) settings(number uint64) plans.Settings {
	number %= 1 << 20 // whoever asks, she asks alike
	return plans.Settings{Epsilon: []privacy.Epsilon{privacy.MicroEpsilon(100_000), privacy.MicroEpsilon(500_000), privacy.MicroEpsilon(1_000_000)}[number%3],
		Confidence: s.service.Policy().Datasets[0].Defaults.Confidence, SearchPath: []string{"public"}, Zone: time.UTC, Release: number%2 == 0}
}

// ask has a statement answered, and says how it ended, but for the numbers.
func (s *recordedHouse) ask(text string, number uint64) string {
	s.begin(number)
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		return "refused: " + refusal.Message
	}
	p := s.service.Policy()
	session := &pipeline.Session{User: fmt.Sprintf("u%d", number), Database: "lab", Policy: p, Dataset: p.Datasets[0]}
	session.Settings.Settings = s.settings(number)
	result, err := s.answers.Answer(context.Background(), session, statements[0], nil)
	if err != nil {
		return fmt.Sprintf("refused: %v %v", err, result.Notices)
	}
	return fmt.Sprintf("answered: %v %v", result.Columns, result.Notices)
}

// claims are what the plan of a statement says of each measure, by its digest.
func (s *recordedHouse) claims(text string, number uint64) map[ledger.Digest]claim {
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		return nil
	}
	p := s.service.Policy()
	plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: fmt.Sprintf("u%d", number), Settings: s.settings(number), Public: &s.service.Public, Now: s.service.Ledger.Now()})
	if refusal != nil {
		return nil
	}
	list := map[ledger.Digest]claim{}
	if len(plan.Inner) > 0 { // its measures replace those that are planned once sub-queries are answered, for another part of the budget
		return list
	}
	for _, m := range plan.Measures {
		d := claimOf(m.Spec, m.Contribution())
		for c := range m.Spec.Counts().Sums {
			d.byCounter = append(d.byCounter, claimOf(inSteps(m.Spec.Only(c)), m.Contribution()))
		}
		list[ledger.Digest(m.Digest)] = d
	}
	return list
}

// tally is what a recording has seen.
type tally struct {
	kit.Findings
	answered, refused, pairs, releases, chosen, attained int
}

// record asks every side the statement and holds each against the first. Which sampler fills a release depends on how
// often its noise was drawn in this process before, by whichever side (noise.Fill): then sides draw otherwise, and the
// statement is asked anew by others, who find the same sampler. What is really amiss is amiss each time.
func (c *tally) record(sides []*recordedHouse, text string, number uint64) {
	const tries, users = 3, 1 << 20
	before := *c
	for try := range uint64(tries) {
		*c = before
		c.Findings = slices.Clone(before.Findings)
		if c.recordOnce(sides, text, number+try*users); len(c.Findings) == len(before.Findings) {
			return
		}
	}
}

func (c *tally) recordOnce(sides []*recordedHouse, text string, number uint64) {
	ends := make([]string, len(sides))
	var all sync.WaitGroup
	for i, s := range sides {
		all.Add(1)
		go func() {
			defer all.Done()
			ends[i] = s.ask(text, number)
		}()
	}
	all.Wait()
	if strings.HasPrefix(ends[0], "answered") {
		c.answered++
	} else {
		c.refused++
	}
	plan := sides[0].claims(text, number)
	for i, other := range sides[1:] {
		c.pairs++
		drawn := strings.Contains(text, "town") || strings.Contains(ends[0], "answered first, ") // keys that are found, and what the rest is planned on
		if kit.BesideValues(ends[i+1]) != kit.BesideValues(ends[0]) && !drawn {
			c.Add("%s\nends otherwise on a neighbour:\n%s\n%s", text, ends[0], ends[i+1])
		}
		c.compare(sides[0].recorder, other.recorder, text, plan)
	}
}

// compare holds two sides' steps against each other.
func (c *tally) compare(one, other *recorder, text string, plan map[ledger.Digest]claim) {
	mine, others := one.ordered(), other.ordered()
	for i := range min(len(mine), len(others)) {
		a, b := mine[i], others[i]
		if a.what != b.what {
			if i > 0 && mine[i-1].keys == nil {
				c.Add("%s\n%s\n%s", text, a.what, b.what)
			}
			return // what follows keys that were found may differ as they do
		}
		spec := a.item.Spec
		if a.what != "save" || mechanisms.Is[*mechanisms.Choice](spec) || mechanisms.Is[*mechanisms.Alarm](spec) || mechanisms.Is[*mechanisms.Online](spec) || a.keys != nil || b.keys != nil {
			c.chosen += oneIf(a.what == "save")
			if !reflect.DeepEqual(a.keys, b.keys) {
				return
			}
			continue
		}
		d, known := plan[a.item.Digest]
		if !known {
			continue // planned after keys were found, or sub-queries answered
		}
		c.releases++
		if why := miscalibrated(a.item, d); why != "" {
			c.Add("%s\n%s", text, why)
		}
		why, share := exceeded(a, b, d)
		if why != "" {
			c.Add("%s\n%s", text, why)
		}
		c.attained += oneIf(share == 1)
	}
	if len(one.steps) != len(other.steps) {
		c.Add("%s\n%d steps on one side, %d on a neighbour", text, len(one.steps), len(other.steps))
	}
	if one.bytes != other.bytes && c.chosen == 0 {
		c.Add("%s\n%d random bytes on one side, %d on a neighbour", text, one.bytes, other.bytes)
	}
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// TestT45Recorded asks random statements, and those that would inflate what a unit counts for, of neighbouring
// databases through whole pipelines whose noise is the same: what is sent, charged and drawn is equal, and no true
// count differs by more than is declared, or than the charge pays for. Nothing here is a matter of chance: there are no
// false alarms.
func TestT45Recorded(t *testing.T) {
	const seed = 450
	t.Logf("seed %d", seed)
	statements, neighbours := kit.Length(40, 100, 2500), kit.Length(2, 3, 20)
	var sum tally
	for n, w := range worlds {
		sides := []*recordedHouse{recordedSide(t, w, seed+uint64(n), -1)}
		for k := range neighbours {
			sides = append(sides, recordedSide(t, w, seed+uint64(n), k))
		}
		var c tally
		m, number := maker{rand.New(rand.NewPCG(seed, uint64(n)))}, uint64(0)
		for _, text := range inflations {
			number++
			c.record(sides, text, number)
		}
		t.Logf("%s: %d of %d inflating forms refused", w.name, c.refused, len(inflations))
		for c.answered < statements && len(c.Findings) < 20 {
			number++
			c.record(sides, m.statement(), number)
		}
		t.Logf("%s: %d statements answered, %d refused; %d releases compared, %d of them as far apart as is declared; %d choices and keys", w.name, c.answered, c.refused, c.releases, c.attained, c.chosen)
		c.None(t)
		if c.attained == 0 || c.answered < c.refused/3 {
			t.Error("the databases are too tame, or the statements too wild")
		}
		sum.answered, sum.pairs, sum.releases, sum.attained = sum.answered+c.answered, sum.pairs+c.pairs, sum.releases+c.releases, sum.attained+c.attained
		sum.Findings = append(sum.Findings, c.Findings...)
	}
	threats.Reached(t, "T45", "%d statements answered of each of %d neighbours, %d releases compared, %d of them as far apart as is declared: %d beyond it", sum.answered, neighbours, sum.releases, sum.attained, len(sum.Findings))
}

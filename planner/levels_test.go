package planner

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// trustingPolicy has releases of all kinds that levels may and may not have.
const trustingPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: "duckdb:firm.duckdb"}
users:
  - {name: alice, password: "SCRAM-SHA-256$4096:8EWKhj2ogpvGvd7KaI/qCQ==$bAANfPPZ9drMzPBuhqgN3dO4gvAJCK6kkd6rmt3mG9A=:4q8DTu8uRc3WMOS/Xkv6HPcWmrMsDUzCViSBvTWG1eg="}
  - {name: bob, password: "SCRAM-SHA-256$4096:8EWKhj2ogpvGvd7KaI/qCQ==$bAANfPPZ9drMzPBuhqgN3dO4gvAJCK6kkd6rmt3mG9A=:4q8DTu8uRc3WMOS/Xkv6HPcWmrMsDUzCViSBvTWG1eg="}
datasets:
  - id: firm
    unit: {name: person, key: hires.uid}
    accountant: zcdp
    cap: {epsilon: 20, delta: 1e-6}
    levels: {near: 0.999, staff: 0.5, guests: 0.1}
    budgets: {alice: {epsilon: 3, delta: 1e-6}, bob: {epsilon: 3, delta: 1e-6, level: LEVEL}}
    defaults: {epsilon: 0.5}
    tables:
      - name: hires
        rows_per_unit_total: 3
        appends: hired
        expected_rows: 10000
        columns:
          - {name: hired, type: date, domain: {min: 2024-01-01, max: 2024-12-31}, nulls: exclude, outside: exclude}
          - {name: age, type: integer, domain: {min: 0, max: 99}}
        releases:
          - {kind: range, columns: [hired], epsilon: 0.5, insist: true}
          - {kind: range, columns: [age], epsilon: 0.5, insist: true}
          - {kind: histogram, name: ages, columns: [age], epsilon: 0.5, insist: true}
`

func trusting(t *testing.T, level string) (p *policy.Policy, c reuse.Context) {
	t.Helper()
	p, err := policy.Parse([]byte(strings.ReplaceAll(trustingPolicy, "LEVEL", level)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c = testContext(t, p.For("bob"))
	c.User, c.Dataset, c.Settings.Epsilon = "bob", c.Policy.Datasets[0], epsilon(t, "0.5")
	return p, c
}

// TestReleaseAtALevel: she is offered what can be shown at her level, at its price and its error, with the levels of
// the draw; the rest is counted afresh, and check says which that is.
func TestReleaseAtALevel(t *testing.T) {
	const ages, days = "SELECT count(*) FROM hires WHERE age < 30", "SELECT count(*) FROM hires WHERE hired < DATE '2024-02-01'"
	p, bob := trusting(t, "staff")
	m := mustBuild(t, bob, ages).Measures[0]
	if m.Declared == nil || m.Cost.String() != "ρ 0.03125" || !strings.Contains(m.Why, "you have it at level staff: with more noise on top, for 0.5 of its ε") {
		t.Errorf("%s at %s: %s", m.Name, m.Cost, m.Why)
	}
	levels, err := reuse.LevelsOf(m)
	if err != nil || len(levels) != 4 || levels[0].Cost.String() != "ρ 0.125" || levels[2].Cost != m.Cost {
		t.Errorf("levels %+v, %v", levels, err)
	}
	alice := testContext(t, p.For("alice"))
	alice.Dataset, alice.Settings.Epsilon = alice.Policy.Datasets[0], epsilon(t, "0.5")
	whole := mustBuild(t, alice, ages).Measures[0]
	if a, b := whole.Spec.Counts().Noise, m.Spec.Counts().Noise; whole.Cost.String() != "ρ 0.125" || float64(b.Num)/float64(b.Den)/(float64(a.Num)/float64(a.Den)) < 3.99 {
		t.Errorf("noise %v at the whole, %v at half of its ε", a, b)
	}
	if whole.Digest != m.Digest || strings.Contains(whole.Why, "level") {
		t.Errorf("the measure at the whole: %s", whole.Why)
	}
	if mustBuild(t, alice, days).Measures[0].Continual == nil || mustBuild(t, bob, days).Measures[0].Declared != nil {
		t.Error("a release that grows, at a level")
	}
	const byAge = "SELECT age, count(*) FROM hires GROUP BY 1"
	_, near := trusting(t, "near")
	if of := mustBuild(t, bob, byAge).Measures[0].Declared; of == nil || of.Name != "ages" {
		t.Errorf("by age from %v", of)
	}
	if of := mustBuild(t, near, byAge).Measures[0].Declared; of != nil && of.Name == "ages" {
		t.Error("a level too near the whole")
	}
	want := []string{"dataset firm: release hires_hired is not there at level near, staff, guests", "dataset firm: release ages is not there at level near"}
	if got := choose.LevelNotes(p); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

package truth

import (
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/test/paths"
)

// TestPathsOfGenerated plans statements of the grammar, without asking them, and prints the access paths that answer
// them (docs/paths.md), twenty statements from one account. SEED and STATEMENTS are those of the suite.
func TestPathsOfGenerated(t *testing.T) {
	const perLedger = 20
	verifier := "SCRAM-SHA-256$4096:8EWKhj2ogpvGvd7KaI/qCQ==$bAANfPPZ9drMzPBuhqgN3dO4gvAJCK6kkd6rmt3mG9A=:4q8DTu8uRc3WMOS/Xkv6HPcWmrMsDUzCViSBvTWG1eg="
	for _, make := range schemas {
		s, tally := make(*seed), new(paths.Tally)
		p, err := policy.Parse([]byte(s.policy(`{url: "duckdb:x.duckdb"}`, verifier)), s.name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range []float64{0, 50} {
			a := paths.NewAnalyst(p, time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC), tally)
			if a.Context.Settings.MaxError = off; off > 0 {
				a.Context.Settings.Epsilon = a.Context.Dataset.Defaults.MaxEpsilon
			}
			g := &grammar{dice: newDice(*seed, 2), s: s}
			for i := range max(perLedger, *statements/len(schemas)/8) {
				if i%perLedger == 0 {
					a.Forget()
				}
				a.Ask(g.statement().sql(false), nil, true)
			}
		}
		t.Logf("%s: %s", s.name, tally.Table())
		if tally.Questions == 0 {
			t.Errorf("no statement over %s asks for anything", s.name)
		}
	}
}

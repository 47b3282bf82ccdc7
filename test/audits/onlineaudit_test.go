package audits

import (
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// adaptively opens an online release so often, over the fixture without a person (0 means with all), asks what the last
// answer suggests, and returns a number that tells the whole transcript coarsely. Between two sessions the release is
// revoked.
func adaptively(t *testing.T, without, sessions int, epsilon string) []float64 {
	t.Helper()
	path := kit.Keyed(t, kit.DuckDBReleasing(t, without, "          - {kind: online, name: o, columns: [{column: age, step: 60}, hiv], epsilon: "+epsilon+", updates: 2, insist: true}\n"))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rich := strings.NewReplacer("max_epsilon: 1,", "max_epsilon: 100,", "{epsilon: 10,", "{epsilon: 900000,", "{epsilon: 20,", "{epsilon: 900000,").Replace(string(text))
	if err := os.WriteFile(path, []byte(rich), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := service.Open(t.Context(), path, ledger.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	answers := pipeline.NewAnswerer(h.Backend, h.Ledger, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics())
	ask := func(q string) int64 {
		got, err := kit.Unwired(t.Context(), h, answers, "alice", q, 100)
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	out := make([]float64, sessions)
	for i := range out {
		first, second := ask("SELECT count(*) FROM people WHERE hiv"), int64(0) // person 7 alone
		if first > 0 {
			second = ask("SELECT count(*) FROM people WHERE hiv AND age < 60")
		} else {
			second = ask("SELECT count(*) FROM people WHERE NOT hiv AND age < 60")
		}
		out[i] = float64(first) + float64(second)/1e4
		for _, r := range h.Ledger.Holdings("alice", "lab") {
			if err := h.Ledger.Revoke(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// TestAuditOfOnlineSessions: on neighbouring databases, what an analyst who chooses her questions by the answers is
// answered bounds the loss from below by no more than she paid. The planted fault, sessions of ε 40 that are said to
// cost 1, is found; against faults of a few times the cost, so few sessions are blind. False alarm: 1e-6.
func TestAuditOfOnlineSessions(t *testing.T) {
	kit.Beside(t)
	const alarm = 1e-6
	for _, c := range []struct {
		epsilon string
		paid    float64
		fault   bool
	}{{"1", 1, false}, {"40", 1, true}} {
		sessions := stattest.Length(1000, 10_000)
		one, other := adaptively(t, 0, sessions, c.epsilon), adaptively(t, 7, sessions, c.epsilon)
		bound, err := stattest.Audit{One: one, Other: other}.Epsilon(alarm)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("sessions of ε %s: at least %.3f", c.epsilon, bound)
		if (bound > c.paid) != c.fault {
			t.Errorf("sessions of ε %s, said to cost %g: at least %.3f", c.epsilon, c.paid, bound)
		}
	}
}

package planner

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// fixedNow is what now() is in tests.
var fixedNow = time.Date(2024, 3, 15, 10, 30, 0, 0, time.UTC)

// testPolicy is testdata/policy.yaml with changes, each a text that it has and what replaces it.
func testPolicy(t testing.TB, changes ...string) *policy.Policy {
	t.Helper()
	data, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("testdata/policy.yaml has no %s", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	p, err := policy.Parse([]byte(text), "testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func epsilon(t testing.TB, s string) privacy.Epsilon {
	t.Helper()
	e, err := privacy.ParseEpsilon(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func testContext(t testing.TB, p *policy.Policy) reuse.Context {
	t.Helper()
	c, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	held := &shelf{}
	return reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: fixedNow, Holdings: held, Left: held.left,
		Settings: plans.Settings{Epsilon: epsilon(t, "0.1"), Confidence: c, Zone: time.UTC, SearchPath: []string{"public"}}}
}

// shelf holds what a test has bought.
type shelf struct {
	list []reuse.Holding
	now  time.Time

	inventory *reuse.Index
	read      int // so many of the list are in it
}

// left is all updates of an online release, and two yes answers of a run of alarms.
func (s *shelf) left(id int64) int {
	for _, h := range s.list {
		if o, ok := h.Spec.Kind.(*mechanisms.Online); ok && h.ID == id {
			return o.Updates
		}
	}
	return 2
}

func (s *shelf) Held(d plans.Digest) []reuse.Holding {
	var out []reuse.Holding
	for _, h := range s.list {
		if h.Digest == d {
			out = append(out, h)
		}
	}
	return out
}

func (s *shelf) Views(t *policy.Table) *reuse.Views {
	if s.inventory == nil || s.read > len(s.list) {
		s.inventory, s.read = reuse.NewIndex(), 0
	}
	for ; s.read < len(s.list); s.read++ {
		s.inventory.Add(s.list[s.read])
	}
	return s.inventory.Views(t)
}

func (s *shelf) buy(p *plans.Plan) {
	for _, m := range p.Measures {
		if !m.Held {
			s.list = append(s.list, reuse.Holding{ID: int64(len(s.list) + 1), Digest: m.Digest, Spec: m.Spec, Cost: m.Cost, Described: m.Describe(), At: s.now})
		}
	}
}

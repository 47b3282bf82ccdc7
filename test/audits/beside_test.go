package audits

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/rewrite"
)

// gathering is a backend of so many slots. Each query waits until as many as are to meet have come, or for long.
type gathering struct {
	backend.Backend
	slots, meet int
	mu          sync.Mutex
	running     int
	most        int
	met         chan struct{}
	all         sync.Once // closes it
}

func (g *gathering) Slots() int { return g.slots }

func (g *gathering) Execute(ctx context.Context, q rewrite.Query, receipts []*ledger.Receipt, hold time.Duration) ([]privacy.Sensitive[[]privacy.Group], error) {
	g.mu.Lock()
	g.running++
	if g.most = max(g.most, g.running); g.running == g.meet {
		g.all.Do(func() { close(g.met) })
	}
	g.mu.Unlock()
	select {
	case <-g.met:
	case <-time.After(60 * time.Second):
	}
	time.Sleep(50 * time.Millisecond) // one more would be seen
	defer func() {
		g.mu.Lock()
		g.running--
		g.mu.Unlock()
	}()
	return g.Backend.Execute(ctx, q, receipts, hold)
}

// TestQueriesSideBySide: a statement's queries, of which some are for several measures, run beside each other in as
// many slots as one user may have, no more; what is drawn and saved, in which order and with which randomness, and so
// each byte of the answer, is what it is one after the other.
func TestQueriesSideBySide(t *testing.T) {
	const seed = 3119
	const text = `SELECT 1, count(*) FROM people UNION ALL SELECT 2, count(*) FROM visits UNION ALL SELECT 3, count(*) FROM calls
		UNION ALL SELECT 4, count(*) FROM people WHERE age > 40 UNION ALL SELECT 5, count(*) FROM visits WHERE ward = 'A'
		UNION ALL SELECT 6, count(*) FROM people p JOIN calls c ON c.who = p.person_id ORDER BY 1` // four scans of six measures
	w := worlds[0]
	var answers, saves []string
	for _, c := range []struct{ slots, most int }{{1, 1}, {2, 1}, {4, 3}, {9, 4}} {
		s := recordedSide(t, w, seed, -1)
		g := &gathering{Backend: recordedBackend{s.service.Backend, s.recorder}, slots: c.slots, meet: c.most, met: make(chan struct{})}
		s.answers = pipeline.NewAnswerer(g, recordedLedger{s.service.Ledger, s.recorder}, s.service.Engine, s.recorder, slog.New(slog.DiscardHandler), proxy.NewMetrics())
		statements, refusal := parse.Parse(text)
		if refusal != nil {
			t.Fatal(refusal)
		}
		s.begin(7)
		p := s.service.Policy()
		session := &pipeline.Session{User: "u7", Database: "lab", Policy: p, Dataset: p.Datasets[0]}
		session.Settings.Settings = s.settings(7)
		result, err := s.answers.Answer(t.Context(), session, statements[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-g.met:
		default:
			t.Errorf("%d slots: %d queries side by side, not %d", c.slots, g.most, c.most)
		}
		if g.most > c.most {
			t.Errorf("%d slots: %d queries side by side, above %d", c.slots, g.most, c.most)
		}
		answers = append(answers, fmt.Sprint(result.Rows.Value().Data, result.Notices))
		saved := ""
		for _, st := range s.steps {
			if st.what == "save" {
				saved += fmt.Sprintf("%x %v\n", st.item.Digest, st.observations)
			}
		}
		saves = append(saves, saved)
	}
	for i := range answers {
		if answers[i] != answers[0] || saves[i] != saves[0] {
			t.Errorf("side by side:\n%s\n%s\none after the other:\n%s\n%s", answers[i], saves[i], answers[0], saves[0])
		}
	}
}

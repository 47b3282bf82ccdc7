package audits

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// failsOnce is a ledger whose first save of a release fails so.
type failsOnce struct {
	ledger.Ledger
	fail func() error
}

func (l *failsOnce) next() error {
	if fail := l.fail; fail != nil {
		l.fail = nil
		return fail()
	}
	return nil
}

func (l *failsOnce) Save(ctx context.Context, r *ledger.Receipt, drawn mechanisms.Drawn) (int64, error) {
	if err := l.next(); err != nil {
		return 0, err
	}
	return l.Ledger.Save(ctx, r, drawn)
}

// TestOneFaultLeavesTheOthersAnswered: a statement pays for three counts at once. Where one of them cannot be drawn or
// saved, the others are, and stay free; what was charged is shown beside the error (privacy rule 5).
func TestOneFaultLeavesTheOthersAnswered(t *testing.T) {
	const all = `SELECT count(*) FROM people WHERE city = 'c1' UNION ALL SELECT count(*) FROM people WHERE income < 5000 UNION ALL SELECT count(*) FROM people WHERE hiv`
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("a fault") },
		"panic": func() error { panic("a fault") },
	} {
		path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0)
		h, err := service.Open(t.Context(), path, ledger.Options{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		answers := pipeline.NewAnswerer(h.Backend, &failsOnce{h.Ledger, fail}, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics())
		r, err := kit.UnwiredResult(t.Context(), h, answers, "alice", all, 1)
		if err == nil || len(r.Notices) != 1 || !strings.HasPrefix(r.Notices[0].Message, "cost ε 0.999") || !strings.Contains(r.Notices[0].Message, "what was saved of it is yours") {
			t.Errorf("%s: %v, notices %v", name, err, r.Notices)
		}
		again, err := kit.UnwiredResult(t.Context(), h, answers, "alice", "EXPLAIN "+all, 1)
		if err != nil {
			t.Fatal(err)
		}
		free := 0
		for _, line := range again.Rows.Value().Data {
			free += strings.Count(fmt.Sprint(line), "Answered from: release")
		}
		if free != 2 {
			t.Errorf("%s: asked again, %d of the three are free, want the two that were saved", name, free)
		}
	}
}

package answers

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestTemplatesFollow: a proxy that keeps templates of plans answers each question as one does that has just begun and
// keeps nothing: rows, columns, notices, dp.last and errors, for inner ranges and others; after SET, purchases of hers
// and of others, a withdrawn release and another policy, at once (privacy rules 1 and 3). What it does not pay for, the
// other one does not either.
func TestTemplatesFollow(t *testing.T) {
	kit.Beside(t)
	_, path := kit.Lab{Engine: "duckdb", People: 300, Budgets: kit.Budgets{User: "100", Cap: "1000"}}.Lay(t, 0)
	h, err := service.Open(t.Context(), path, ledger.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	began := func() *pipeline.Answerer {
		return pipeline.NewAnswerer(h.Backend, h.Ledger, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics())
	}
	kept, own := began(), h.Policy()
	session := func(user string, p *policy.Policy, change func(*plans.Settings)) *pipeline.Session {
		s := &pipeline.Session{User: user, Database: "lab", Policy: p, Dataset: p.Datasets[0]}
		s.Settings.Settings = plans.Settings{Epsilon: privacy.MicroEpsilon(500_000), Confidence: p.Datasets[0].Defaults.Confidence, SearchPath: []string{"public"}, Zone: time.UTC}
		if change != nil {
			change(&s.Settings.Settings)
		}
		return s
	}
	statement := func(sql string) parse.Statement {
		statements, refusal := parse.Parse(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return statements[0]
	}
	atOnce := map[bool]bool{}
	ask := func(a *pipeline.Answerer, s *pipeline.Session, sql string, params ...policy.Value) string {
		r, at := a.AtOnce(context.Background(), s, statement(sql), params) // as a session does
		err := error(nil)
		if atOnce[a == kept] = atOnce[a == kept] || at; !at {
			r, err = a.Answer(context.Background(), s, statement(sql), params)
		}
		text := fmt.Sprintf("%v %+v %+v %v", err, r.Columns, r.Notices, r.Tag)
		if r.Rows.Valid() {
			text += fmt.Sprintf(" %v", r.Rows.Value())
		}
		if r.Last != nil {
			told := *s
			told.Last = func() *pipeline.Last { return r.Last }
			last, err := a.Answer(context.Background(), &told, statement("SELECT cost, remaining, error, confidence, notice, detail FROM dp.last"), nil)
			text += fmt.Sprintf(" %v %v", err, last.Rows.Value().Data)
		}
		return text
	}
	const sql = "SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2"
	ranges := [][]policy.Value{{int64(20), int64(30)}, {int64(21), int64(21)}, {int64(1), int64(118)}, {int64(0), int64(50)}, {int64(3), int64(119)}, {int64(40), int64(30)}, {nil, int64(30)}, {int64(-5), int64(300)}, {int64(64), int64(93)}}
	written := func(sql string, params []policy.Value) string {
		for i, p := range params {
			sql = strings.ReplaceAll(sql, "$"+strconv.Itoa(i+1), fmt.Sprint(p))
		}
		return sql
	}
	same := func(what string, s *pipeline.Session) {
		t.Helper()
		for _, params := range ranges {
			before := fmt.Sprint(h.Ledger.Holdings(s.User, "lab"))
			own, want := ask(kept, s, sql, params...), ask(began(), s, sql, params...)
			if text := written(sql, params); !slices.Contains(params, nil) { // as a client without parameters writes it
				own, want = own+ask(kept, s, text), want+ask(began(), s, text)
			}
			if after := fmt.Sprint(h.Ledger.Holdings(s.User, "lab")); after != before {
				continue // the first of them has paid
			}
			if own != want {
				t.Errorf("%s, %v:\n%s\nwithout what is kept:\n%s", what, params, own, want)
			}
		}
	}
	alice := session("alice", own, nil)
	ask(kept, alice, sql, int64(20), int64(30))
	if held := h.Ledger.Holdings("alice", "lab"); len(held) != 1 {
		t.Fatal(held)
	}
	same("held", alice)
	same("SET dp.epsilon", session("alice", own, func(s *plans.Settings) { s.Epsilon = privacy.MicroEpsilon(100_000) }))
	same("SET dp.confidence", session("alice", own, func(s *plans.Settings) { s.Confidence, _ = mechanisms.NewConfidence(.8) }))
	same("SET dp.error_columns", session("alice", own, func(s *plans.Settings) { s.ErrorColumns = true }))
	same("SET dp.max_error", session("alice", own, func(s *plans.Settings) { s.MaxError = 1e5 }))
	if got := ask(kept, session("bob", own, nil), "SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30"); len(h.Ledger.Holdings("bob", "lab")) != 1 {
		t.Errorf("bob has what alice has paid for: %s", got)
	}
	same("after bob has paid", alice)

	changed := kit.Edited(t, path, "domain: {min: 0, max: 119, step: 1}, outside: clamp", "domain: {min: 0, max: 99, step: 1}, outside: clamp")
	same("another policy", session("alice", changed, nil))
	same("the policy as it was", alice)

	if err := h.Ledger.Revoke(t.Context(), h.Ledger.Holdings("alice", "lab")[0].ID); err != nil {
		t.Fatal(err)
	}
	left := fmt.Sprint(h.Ledger.Holdings("alice", "lab"))
	poor := session("alice", own, func(s *plans.Settings) { s.Epsilon = privacy.MicroEpsilon(100_000) })
	if got := ask(kept, poor, sql, int64(22), int64(33)); fmt.Sprint(h.Ledger.Holdings("alice", "lab")) == left {
		t.Errorf("a withdrawn release still answers: %s", got)
	}
	ask(kept, alice, "SELECT city, count(*) FROM people GROUP BY city")
	same("after she has bought more", alice)
	if !atOnce[true] || atOnce[false] {
		t.Errorf("answered at once by what has kept templates, and by what has just begun: %v", atOnce)
	}
}

package main

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// TestLineBeforeTheCharge: of many statements at once, on a grid that answers few of them a second, those that wait too long for
// the database are refused and not charged; each one that is charged is answered from the rows, none by the noise that a
// fault leaves.
func TestLineBeforeTheCharge(t *testing.T) {
	beside(t)
	const asked, together = 36, 10 // with one connection for paid queries
	s := lab{engine: "postgres", timing: "{grid: 20ms, fresh: 240ms}", change: []string{"backend: {url:", "backend: {deadline: 200ms, url:", "sslmode=disable", "sslmode=disable&pool_max_conns=2",
		"server: {", "server: {limits: {user_connections: 100, user_statements: 100, user_purchases: 100}, ", "    tables:\n", "    buying: {cells: 0}\n    tables:\n"}}.serve(t, 0)
	answers := make([]answer, asked)
	clients := make([]*wire, asked)
	for i := range clients {
		clients[i] = s.connect("alice", "lab")
	}
	var all sync.WaitGroup
	begun := time.Now()
	for i, w := range clients {
		all.Go(func() {
			var err error
			if answers[i], err = w.tryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age < %d`, 40+i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	answered, refused := 0, 0
	for i, a := range answers {
		if a.err != nil {
			if a.err.Code != "53400" || !strings.HasSuffix(a.err.Message, "nothing was charged") {
				t.Errorf("question %d: %s %s", i, a.err.Code, a.err.Message)
			}
			refused++
			continue
		}
		answered++
		if truth := 1000 * (22 + i) / 60; math.Abs(float64(count(t, a)-truth)) > 200 {
			t.Errorf("question %d is answered by %d, which is far from %d", i, count(t, a), truth)
		}
	}
	w := s.connect("alice", "lab")
	charges := count(t, w.ask(`SELECT count(*) FROM dp.charges`))
	if told := strings.Count(s.logText(), "a paid query failed"); told > 0 {
		t.Errorf("%d paid queries failed", told)
	}
	if charges != answered || answered < together || refused == 0 {
		t.Errorf("%d charges, %d answers, %d refusals", charges, answered, refused)
	}
	threats.Reached(t, "T3", "%d statements at once for one connection: %d charged and answered from rows, %d refused for free, in %s", asked, answered, refused, took.Round(time.Millisecond))
}

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// TestAnswerOutlivesAnOutage: a ledger that goes away between a charge and its release loses nobody's answer, when it comes
// back as late as a standby is promoted: the draw that was made is the one that is saved and sent.
func TestAnswerOutlivesAnOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for an outage of some seconds")
	}
	h := sharedFixture(t, budgets{"10", "10"})
	p := serveProcess(t, h.policy)
	w := p.connect("alice", "lab")
	held := lockPeople(t, h.server, h.data)
	answered := make(chan answer, 1)
	const question = `SELECT count(*) FROM people WHERE age < 44`
	go func() {
		a, err := w.tryAsk(question)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	if held.waiting() == 0 {
		t.Fatal("the query does not run")
	}
	h.server.Exec(t, "postgres", "ALTER DATABASE "+h.database+" ALLOW_CONNECTIONS false",
		fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'", h.database))
	held.exec(`ROLLBACK`)
	const outage = 5 * time.Second
	time.Sleep(outage)
	h.server.Exec(t, "postgres", "ALTER DATABASE "+h.database+" ALLOW_CONNECTIONS true")
	first := <-answered
	if first.err != nil || len(first.rows) != 1 {
		t.Fatalf("after an outage of %s: %v", outage, first.err)
	}
	again := w.ask(question)
	if charges := w.charges(); charges != 1 || again.err != nil || again.rows[0][0] != first.rows[0][0] {
		t.Errorf("%d charges; first %v, then %v", charges, first.rows, again.rows)
	}
	threats.Reached(t, "T31", "the ledger away for %s after a charge: answered, saved, charged once", outage)
}

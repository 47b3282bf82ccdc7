package durability

import (
	"fmt"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestAnswerOutlivesAnOutage: a ledger that goes away between a charge and its release loses nobody's answer, when it
// comes back as late as a standby is promoted: the draw that was made is the one that is saved and sent.
func TestAnswerOutlivesAnOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for an outage of some seconds")
	}
	h := sharedFixture(t, kit.Budgets{User: "10", Cap: "10"})
	p := kit.Serve(t, h.policy)
	w := p.Connect("alice", "lab")
	held := kit.LockPeople(t, h.server, h.data)
	answered := make(chan kit.Answer, 1)
	const question = `SELECT count(*) FROM people WHERE age < 44`
	go func() {
		a, err := w.TryAsk(question)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	if held.Waiting() == 0 {
		t.Fatal("the query does not run")
	}
	h.server.Exec(t, "postgres", "ALTER DATABASE "+h.database+" ALLOW_CONNECTIONS false",
		fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'", h.database))
	held.Exec(`ROLLBACK`)
	// The ledger itself looks twenty seconds for what became of a commit: only what lasts longer is the statement's.
	outage := time.Duration(kit.Length(5, 25, 25)) * time.Second
	time.Sleep(outage)
	h.server.Exec(t, "postgres", "ALTER DATABASE "+h.database+" ALLOW_CONNECTIONS true")
	first := <-answered
	if first.Err != nil || len(first.Rows) != 1 {
		t.Fatalf("after an outage of %s: %v", outage, first.Err)
	}
	again := w.Ask(question)
	if charges := w.Charges(); charges != 1 || again.Err != nil || again.Rows[0][0] != first.Rows[0][0] {
		t.Errorf("%d charges; first %v, then %v", charges, first.Rows, again.Rows)
	}
	threats.Reached(t, "T31", "the ledger away for %s after a charge: answered, saved, charged once", outage)
}

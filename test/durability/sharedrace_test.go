package durability

import (
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// raceBudget has 64 connections race for a budget of 100 answers, in each of some runs on ledgers of their own, and
// tells in how many of them there were exactly 100.
func raceBudget(t *testing.T, runs int, proxies func(t *testing.T) []*kit.Program) (exact int) {
	t.Helper()
	for run := range runs {
		t.Run(fmt.Sprint("run ", run+1), func(t *testing.T) {
			answers, found := raceOn(proxies(t), 64, 4)
			found.None(t)
			if answers == 100 {
				exact++
			} else {
				t.Errorf("%d answers, must be exactly 100", answers)
			}
		})
	}
	return exact
}

// TestT23RacingProxies: 64 connections, on one proxy with the embedded ledger and on two that share a ledger in
// PostgreSQL, ask distinct questions at 0.1 each under a budget of 10.
func TestT23RacingProxies(t *testing.T) {
	kit.Beside(t)
	runs, embedded, shared := threats.Length(1, 20), 0, 0
	t.Run("sqlite", func(t *testing.T) {
		embedded = raceBudget(t, runs, func(t *testing.T) []*kit.Program {
			return []*kit.Program{kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "100"}, 0))}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		shared = raceBudget(t, runs, func(t *testing.T) []*kit.Program {
			h := sharedFixture(t, kit.Budgets{User: "10", Cap: "100"})
			return []*kit.Program{kit.Serve(t, h.policy), kit.Serve(t, h.copied(t))}
		})
	})
	if !t.Failed() {
		threats.Reached(t, "T23", "64 connections: exactly 100 answers in %d of %d runs on SQLite, in %d of %d on two proxies and PostgreSQL", embedded, runs, shared, runs)
	}
}

// TestT24RacingAtEachIsolationLevel: the same, whatever isolation level the ledger's server is set to.
func TestT24RacingAtEachIsolationLevel(t *testing.T) {
	kit.Beside(t)
	levels, exact := []string{"read committed", "repeatable read", "serializable"}, 0
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			exact += raceBudget(t, 1, func(t *testing.T) []*kit.Program {
				h := sharedFixture(t, kit.Budgets{User: "10", Cap: "100"})
				h.server.Exec(t, "postgres", fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", h.database, level))
				return []*kit.Program{kit.Serve(t, h.policy), kit.Serve(t, h.copied(t))}
			})
		})
	}
	if !t.Failed() {
		threats.Reached(t, "T24", "exactly 100 answers at %d of %d levels", exact, len(levels))
	}
}

package pipeline

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestBalanceText: how many more questions of the same cost fit is said as a person would say it.
func TestBalanceText(t *testing.T) {
	cost := privacy.Cost{Rho: privacy.PicoRho(10)}
	for limit, want := range map[int64]string{35: "; about 3 more such questions", 19: "; about 1 more such question", 9: "; not enough is left for another"} {
		if got := balanceText(cost, ledger.Balance{Limit: privacy.Cost{Rho: privacy.PicoRho(limit)}}); !strings.HasSuffix(got, want) {
			t.Errorf("of ρ %d: %q, want %q at its end", limit, got, want)
		}
	}
}

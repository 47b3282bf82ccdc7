package embedded_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// TestPlannedCatalogStatements: psql's statements also pass the planner, which lets only known functions and relations
// through.
func TestPlannedCatalogStatements(t *testing.T) {
	asked, answered := 0, 0
	for _, text := range sandboxtest.Recorded(t, "psql") {
		if !sandboxtest.CatalogOnly(text) {
			continue
		}
		asked++
		if _, err := sandboxtest.Planned(t, sandboxtest.Embedded(t), sandboxtest.Census(), text); err == nil {
			answered++
		} else if os.Getenv("DPPROXY_VERBOSE") != "" {
			fmt.Printf("--- %v\n%s\n", err, text)
		}
	}
	t.Logf("%d of %d recorded statements answered", answered, asked)
	if answered*10 < asked*9 {
		t.Errorf("%d of %d recorded statements answered, want 90 %%", answered, asked)
	}
}

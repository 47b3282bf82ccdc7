package embedded_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// recordedRates are the shares of recorded client statements (SELECTs without parameters that read catalogs alone) that
// the embedded engine must at least answer.
var recordedRates = map[string]float64{"psql": 0.9}

func TestRecordedStatements(t *testing.T) {
	for _, client := range []string{"psql", "pgjdbc", "sqlalchemy", "psycopg2", "psycopg3", "asyncpg", "pgx", "dbeaver", "metabase", "pandas", "psqlodbc", "superset", "grafana", "redash"} {
		t.Run(client, func(t *testing.T) {
			asked, answered := 0, 0
			for _, text := range sandboxtest.Recorded(t, client) {
				if !sandboxtest.CatalogOnly(text) {
					continue
				}
				asked++
				_, err := sandboxtest.Ask(t, sandboxtest.Embedded(t), text)
				if err == nil {
					answered++
				} else if os.Getenv("DPPROXY_VERBOSE") != "" {
					fmt.Printf("--- %s: %v\n%s\n", client, err, text)
				}
			}
			t.Logf("%s: %d of %d recorded statements answered", client, answered, asked)
			if rate := recordedRates[client]; asked > 0 && float64(answered) < rate*float64(asked) {
				t.Errorf("%s: %d of %d, want at least %.0f %%", client, answered, asked, 100*rate)
			}
		})
	}
}

package service

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestPathsInTerms: the ledger is given how the rows of each relation name their unit, by the names of the database:
// what a table or a column is called in the policy, and where a file lies, is no part of it. Of a trusted SELECT
// nothing is given.
func TestPathsInTerms(t *testing.T) {
	const text = `version: 1
backend: {url: "BACKEND"}
users: [{name: alice, password: "SCRAM-SHA-256$4096:8EWKhj2ogpvGvd7KaI/qCQ==$bAANfPPZ9drMzPBuhqgN3dO4gvAJCK6kkd6rmt3mG9A=:4q8DTu8uRc3WMOS/Xkv6HPcWmrMsDUzCViSBvTWG1eg="}]
datasets:
  - id: shop
    unit: {name: customer, key: customers.Id}
    accountant: pure
    cap: {epsilon: 1}
    budgets: {alice: {epsilon: 1}}
    tables:
      - {name: customers, max_rows_per_unit: 1, columns: [{name: active, type: boolean}]}
      - {name: ORDERS, source: sales.Orders, unit: ORDERS.customer = customers.Id, max_rows_per_unit: 5, columns: [{name: paid, type: boolean}]}
      - {name: lines, source: sales.order_lines, unit: lines.order_id = ORDERS.id, max_rows_per_unit: 9, columns: [{name: sent, type: boolean}]}
      - {name: stays, trusted: true, source: SELECT customer FROM sales.stays, unit: stays.customer = customers.Id, max_rows_per_unit: 9, columns: [{name: sent, type: boolean}]}
`
	for backend, want := range map[string]map[string]string{
		"postgres://dpproxy@127.0.0.1/shop": {"public.customers": "Id", "sales.Orders": "customer", "sales.order_lines": "order_id = sales.Orders.id, customer"},
		"duckdb:shop.duckdb":                {"main.customers": "id", "sales.orders": "customer", "sales.order_lines": "order_id = sales.orders.id, customer"},
	} {
		written := strings.ReplaceAll(text, "BACKEND", backend)
		if strings.HasPrefix(backend, "duckdb") {
			written = strings.ReplaceAll(written, "FROM sales.stays", "FROM private.sales.stays")
		}
		p, err := policy.Parse([]byte(written), filepath.Join(t.TempDir(), "policy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if got := terms(p).Datasets[0].Paths; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", backend, got, want)
		}
	}
	p, err := policy.Parse([]byte(`version: 1
backend: {url: "duckdb:shop.duckdb"}
users: [{name: alice, password: "SCRAM-SHA-256$4096:8EWKhj2ogpvGvd7KaI/qCQ==$bAANfPPZ9drMzPBuhqgN3dO4gvAJCK6kkd6rmt3mG9A=:4q8DTu8uRc3WMOS/Xkv6HPcWmrMsDUzCViSBvTWG1eg="}]
datasets: [{id: shop, unit: row, accountant: pure, cap: {epsilon: 1}, budgets: {alice: {epsilon: 1}}, tables: [{name: sales, columns: [{name: paid, type: boolean}]}]}]
`), filepath.Join(t.TempDir(), "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := terms(p).Datasets[0].Paths; len(got) > 0 {
		t.Errorf("rows that are units have the paths %v", got)
	}
}

package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// shopSQL is an order shop as people have them: customers, their orders and the lines of these are private, products
// and days are public.
var shopSQL = []string{
	`CREATE TABLE customer AS SELECT i AS id, (ARRAY['north','south','east','west'])[1 + i % 4] AS region, date '2020-01-01' + i % 1500 AS since FROM generate_series(1, 20000) i`,
	`ALTER TABLE customer ADD PRIMARY KEY (id)`,
	`CREATE TABLE orders AS SELECT i AS id, 1 + (i * 7919) % 20000 AS customer, date '2023-01-01' + (i * 31) % 1000 AS day, (ARRAY['new','paid','sent','back'])[1 + i % 4] AS status, (((i * 37) % 100000)::numeric / 100)::numeric(10,2) AS amount FROM generate_series(1, 60000) i`,
	`ALTER TABLE orders ADD PRIMARY KEY (id)`,
	`CREATE TABLE product AS SELECT i AS id, 'product ' || i AS name, (ARRAY['toys','food','books','tools','music'])[1 + i % 5] AS category, i % 977 AS price FROM generate_series(1, 4000) i`,
	`CREATE TABLE calendar AS SELECT date '2020-01-01' + i AS day, (date '2020-01-01' + i)::text AS label FROM generate_series(0, 2500) i`,
	`ANALYZE`,
}

const shopPolicy = `version: 1
server: {listen: "127.0.0.1:0", limits: {statement_cpu: %s, statement_memory: 256MiB, user_memory: 512MiB, memory: %s}}
backend: {url: %q}
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: mallory, password: %q}
  - {name: alice, password: %q}
datasets:
  - id: shop
    unit: {name: customer, key: customer.id}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 900000, delta: 0}
    budgets: {"*": {epsilon: 100000, delta: 0}}
    defaults: {epsilon: 0.1, max_epsilon: 100, confidence: 0.95}
    tables:
      - name: customer
        source: public.customer
        expected_rows: 20000
        max_rows_per_unit: 1
        columns:
          - {name: region, type: text, domain: {values: [north, south, east, west]}}
          - {name: since, type: date, domain: {min: 2020-01-01, max: 2024-12-31, step: 1 day}}
      - name: orders
        source: public.orders
        unit: orders.customer = customer.id
        expected_rows: 60000
        max_rows_per_unit: 10
        columns:
          - {name: day, type: date, domain: {min: 2023-01-01, max: 2025-12-31, step: 1 day}}
          - {name: status, type: text, domain: {values: [new, paid, sent, back]}}
          - {name: amount, type: "numeric(10,2)", domain: {min: 0, max: 1000, step: 0.01}, outside: clamp}
      - name: product
        source: public.product
        public: true
        max_rows: 10000
        columns: [{name: id, type: integer}, {name: name, type: text}, {name: category, type: text}, {name: price, type: integer}]
      - name: calendar
        source: public.calendar
        public: true
        max_rows: 10000
        columns: [{name: day, type: date}, {name: label, type: text}]
`

// shop is a proxy process over the shop.
type shop struct{ *kit.Program }

// open serves the shop.
func open(t *testing.T, cpu, memory string) *shop {
	t.Helper()
	server := pgtest.Start(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, append(shopSQL, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)...)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text := fmt.Sprintf(shopPolicy, cpu, memory, server.URLFor(role, database), kit.Verifier(t, "mallory"), kit.Verifier(t, "alice"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &shop{kit.Serve(t, path)}
}

// taken is what the process and its children have resident, in bytes. Pages of the program that they share are counted
// for each of them.
func (s *shop) taken() (bytes int64) {
	for _, pid := range append(s.Children(), s.Cmd.Process.Pid) {
		bytes += resident(pid)
	}
	return bytes
}

func resident(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}

// watch samples the memory until ctx ends, and returns the most that was seen.
func (s *shop) watch(ctx context.Context) <-chan int64 {
	out := make(chan int64, 1)
	go func() {
		most := s.taken()
		for ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
			most = max(most, s.taken())
		}
		out <- most
	}()
	return out
}

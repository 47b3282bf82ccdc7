package hostile

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/test/kit"
)

// shopSQL is an order shop as people have them: customers, their orders and the lines of these are private, products and
// days are public.
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
type shop struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string
	exited  chan struct{}
	mu      sync.Mutex
	log     strings.Builder
}

var listeningLine = regexp.MustCompile(`msg=listening address=(\S+)`)

// open serves the shop.
func open(t *testing.T, cpu, memory string) *shop {
	t.Helper()
	dir := t.TempDir()
	program, err := kit.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := pgtest.Start(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, append(shopSQL, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)...)
	verifiers := [2]string{}
	for i, name := range []string{"mallory", "alice"} {
		v, err := policy.Verifier(name, strings.NewReader(strings.Repeat(name+"-salt", 20)))
		if err != nil {
			t.Fatal(err)
		}
		verifiers[i] = v
	}
	path := filepath.Join(dir, "policy.yaml")
	text := fmt.Sprintf(shopPolicy, cpu, memory, server.URLFor(role, database), verifiers[0], verifiers[1])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, cmd: exec.Command(program, "serve", "--policy", path), exited: make(chan struct{})}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		defer close(s.exited)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			s.mu.Lock()
			if s.log.Len() < 1<<20 {
				s.log.WriteString(lines.Text() + "\n")
			}
			s.mu.Unlock()
			if m := listeningLine.FindStringSubmatch(lines.Text()); m != nil {
				listening <- m[1]
			}
		}
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGKILL)
		<-s.exited
	})
	select {
	case s.address = <-listening:
	case <-s.exited:
		t.Fatalf("dpproxy did not start\n%s", s.told())
	case <-time.After(2 * time.Minute):
		t.Fatalf("dpproxy does not listen\n%s", s.told())
	}
	return s
}

func (s *shop) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *shop) alive() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

func (s *shop) url(user string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/shop?sslmode=disable&connect_timeout=20", user, user, s.address)
}

// taken is what the process and its children have resident, in bytes. Pages of the program that they share are counted for
// each of them.
func (s *shop) taken() (bytes int64) {
	for _, pid := range append(children(s.cmd.Process.Pid), s.cmd.Process.Pid) {
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

// children are the processes that a process has started, as far as the system tells at once.
func children(parent int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, path := range lists {
		text, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
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

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner"
)

// errorForms are expressions that fail in PostgreSQL on person 7 and on nobody else: each would be an exact bit if it ever
// reached the private database. %s stands where the form needs a boolean that tells her apart.
var errorForms = []string{
	`CASE WHEN hiv THEN 1/(uid-7) ELSE 1 END > 0`, `CASE WHEN hiv THEN 1/0 ELSE 1 END > 0`, `1/(age-25) > 0`, `10 % (age-25) > 0`,
	`CASE WHEN hiv THEN 2147483647 + age ELSE 1 END > 0`, `(9223372036854775807 * age) > 0`, `income * 1e308 * 1e308 > 0`,
	`DATE '5874897-12-31' + age > DATE '2000-01-01'`, `sqrt(24 - age) > 0`, `ln(age - 25) > 0`, `power(age - 25, -1) > 0`, `exp(age * 1000) > 0`,
	`note::int > 0`, `note::json IS NOT NULL`, `note::timestamptz > now()`, `city::date > now()`, `note::numeric > 0`, `(note || '-')::uuid IS NOT NULL`,
	`note ~ (city || '(')`, `note ~ '('`, `note LIKE (city || '\')`, `note LIKE 'a\'`, `substr(note, 1, 24 - age) = ''`, `chr(age - 25) = ''`,
	`repeat(note, 1000000000) = ''`, `lpad(note, 1000000000) = ''`, `make_date(age - 25, 1, 1) IS NOT NULL`, `to_date(note, 'YYYY') IS NOT NULL`,
	`width_bucket(income, 5, 5, 10) > 0`, `set_bit(B'0', age, 1) IS NOT NULL`, `decode(note, 'hex') IS NOT NULL`,
	`convert_from(note::bytea, 'UTF8') = ''`, `(SELECT age FROM people) > 0`, `age = (SELECT uid FROM people LIMIT 2)`,
	`CASE WHEN hiv THEN (SELECT count(*) FROM generate_series(1, 100000000)) > 0 ELSE true END`, `pg_sleep(CASE WHEN hiv THEN 5 ELSE 0 END) IS NULL`,
	`error(concat('x', note)) IS NULL`, `query_to_xml('select note from people', true, true, '') IS NOT NULL`, `hiv::int / (1 - hiv::int) = 0`,
	`nullif(1/(age-25), 0) IS NULL`, `generate_series(1, 1/(age-25)) > 0`, `ctid IS NOT NULL`, `uid = 7`, `tableoid > 0`,
}

// formPlaces are the places of a query where a form may stand.
var formPlaces = map[string]string{
	"WHERE":    `SELECT count(*) FROM people WHERE %s`,
	"GROUP BY": `SELECT (%s), count(*) FROM people GROUP BY 1`,
	"HAVING":   `SELECT count(*) FROM people HAVING bool_or(%s)`,
	"argument": `SELECT count(CASE WHEN %s THEN 1 END) FROM people`,
	"FILTER":   `SELECT count(*) FILTER (WHERE %s) FROM people`,
}

// pair is two proxies over neighbouring databases, with one policy and equal fresh ledgers.
type pair struct{ with, without *wire }

func neighbours(t *testing.T, b budgets) pair {
	t.Helper()
	with := serveProcess(t, duckFixture(t, b, 0))
	without := serveProcess(t, duckFixture(t, b, 7))
	return pair{with.connect("alice", "lab"), without.connect("alice", "lab")}
}

// sameShape is procedure P1: it asks both and returns the first difference but for noised cells. Nothing else may differ:
// kinds and order of frames, row descriptions, numbers of rows, tags, every field of errors and notices.
func (p pair) sameShape(sql string) string {
	a, b := p.with.ask(sql), p.without.ask(sql)
	if slices.Equal(a.frames, b.frames) {
		return ""
	}
	for i := range min(len(a.frames), len(b.frames)) {
		if a.frames[i] != b.frames[i] {
			return fmt.Sprintf("%s\n  with:    %s\n  without: %s", sql, a.frames[i], b.frames[i])
		}
	}
	return fmt.Sprintf("%s: %d frames against %d", sql, len(a.frames), len(b.frames))
}

// TestT1ErrorOracle: 40 forms in each place are refused, or answered alike on neighbours.
func TestT1ErrorOracle(t *testing.T) {
	p := neighbours(t, budgets{"1000", "1000"})
	refused, answered := 0, 0
	for place, query := range formPlaces {
		for _, form := range errorForms {
			sql := fmt.Sprintf(query, form)
			if d := p.sameShape(sql); d != "" {
				t.Errorf("%s: %s", place, d)
			}
			if p.with.ask(sql).err != nil {
				refused++
			} else {
				answered++
			}
		}
	}
	for _, table := range []string{`SELECT * FROM dp.budget`, `SELECT id, kind, name, cost FROM dp.charges`, `SELECT name, kind FROM dp.releases`} {
		a, b := p.with.ask(table), p.without.ask(table)
		if fmt.Sprint(a.rows) != fmt.Sprint(b.rows) || len(a.rows) == 0 {
			t.Errorf("%s: %v with, %v without", table, a.rows, b.rows)
		}
	}
	t.Logf("%d forms refused, %d answered", refused, answered)
	if refused == 0 {
		t.Error("no form was refused")
	}
}

// TestP1CatchesAnOracle: the procedure itself must see a difference. The planted faults are what a proxy that forwarded the
// forms would show.
func TestP1CatchesAnOracle(t *testing.T) {
	p := neighbours(t, budgets{"10", "10"})
	p.without = p.without.as(t, `SELECT count(*) FROM people WHERE nosuch`)
	if p.sameShape(`SELECT count(*) FROM people`) == "" {
		t.Error("an error on one side was not seen")
	}
}

// as is w with every question replaced by another.
func (w *wire) as(t *testing.T, sql string) *wire {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	go relay(far, w, sql)
	return &wire{t: t, conn: near, Frontend: newFrontend(near)}
}

// TestT23RacingClients: 16 connections ask distinct questions at 0.1 each under a budget of 10: exactly 100 answers.
func TestT23RacingClients(t *testing.T) {
	for _, b := range []budgets{{user: "10", cap: "100"}, {user: "100", cap: "10"}} {
		p := serveProcess(t, duckFixture(t, b, 0))
		answers := race(t, p)
		if answers != 100 {
			t.Errorf("budget %s under cap %s: %d answers at 0.1, must be exactly 100", b.user, b.cap, answers)
		}
	}
}

// race has 16 connections ask until the budget is spent and counts the answers.
func race(t *testing.T, p *program) int {
	t.Helper()
	const connections, each = 16, 30
	var mu sync.Mutex
	var all sync.WaitGroup
	answers := 0
	for c := range connections {
		user := []string{"alice", "alice"}[c%2]
		w := p.connect(user, "lab")
		all.Add(1)
		go func() {
			defer all.Done()
			for q := range each {
				a, err := w.tryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, c+1, 1000*(q+1)))
				if err != nil {
					t.Errorf("connection %d: %v", c, err)
					return
				}
				switch {
				case a.err == nil && len(a.rows) == 1:
					mu.Lock()
					answers++
					mu.Unlock()
				case a.err == nil || a.err.Code != "DP001":
					t.Errorf("neither an answer nor DP001: %v", a.err)
					return
				}
			}
		}()
	}
	all.Wait()
	return answers
}

// TestT25Kills: kill -9 at random moments. At each restart: answers seen <= charges <= budget, and a question that was
// answered is free and answered alike.
func TestT25Kills(t *testing.T) {
	kills := 20
	if testing.Short() {
		kills = 3
	}
	path := duckFixture(t, budgets{"1000", "1000"}, 0)
	p := serveProcess(t, path)
	journal := map[string]string{}
	for k := range kills {
		w := p.connect("alice", "lab")
		killAt := time.Duration((k*7919)%50) * time.Millisecond
		time.AfterFunc(killAt, func() { _ = p.cmd.Process.Signal(syscall.SIGKILL) })
		for q := 0; ; q++ {
			sql := fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, k+1, 1000*(q+1))
			a, err := w.tryAsk(sql)
			if err != nil {
				break
			}
			if a.err == nil {
				journal[sql] = a.rows[0][0]
			}
		}
		p.stop(syscall.SIGKILL)
		p.restart()
		audit(t, p, journal)
	}
	if len(journal) == 0 {
		t.Error("no answer arrived before any kill: the test tested nothing")
	}
	t.Logf("%d kills, %d answers", kills, len(journal))
}

// audit is procedure P4 for one user who asks at 0.1 a question: a saved answer is free and the same, and the charges cover
// every answer that was seen.
func audit(t *testing.T, p *program, journal map[string]string) {
	t.Helper()
	w := p.connect("alice", "lab")
	before := w.ask(`SELECT count(*), coalesce(sum(cost), 0) FROM dp.charges`)
	if before.err != nil {
		t.Fatal(before.err)
	}
	var charges int
	fmt.Sscan(before.rows[0][0], &charges)
	if charges < len(journal) {
		t.Fatalf("%d answers were seen, %d charges are in the ledger", len(journal), charges)
	}
	for sql, value := range journal {
		a := w.ask(sql)
		if a.err != nil || a.rows[0][0] != value {
			t.Fatalf("%s: %s before the kill, %v after it (%v)", sql, value, a.rows, a.err)
		}
	}
	if after := w.ask(`SELECT count(*), coalesce(sum(cost), 0) FROM dp.charges`); fmt.Sprint(after.rows) != fmt.Sprint(before.rows) {
		t.Fatalf("asking again was charged: %v, then %v", before.rows, after.rows)
	}
}

// TestT49DeepSQL: 14 shapes at growing sizes are refused with 54000 or 54001, or answered, and the process lives.
func TestT49DeepSQL(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"1000", "1000"}, 0))
	w := p.connect("alice", "lab")
	pid := p.cmd.Process.Pid
	for name, shape := range deepShapes {
		for _, n := range []int{1_000, 10_000, 28_000, 60_000} {
			sql := shape(n)
			if len(sql) > 900_000 {
				continue
			}
			a, err := w.tryAsk(sql)
			if err != nil {
				t.Fatalf("%s of %d: the connection died: %v\n%s", name, n, err, p.logText())
			}
			if a.err != nil && n >= 28_000 && !strings.HasPrefix(a.err.Code, "54") {
				t.Errorf("%s of %d: %s %s, want 54000 or 54001", name, n, a.err.Code, a.err.Message)
			}
			if a.err == nil && n >= 28_000 {
				t.Errorf("%s of %d: answered", name, n)
			}
		}
	}
	if w.ask("SELECT 1").err != nil || p.cmd.Process.Pid != pid {
		t.Error("the process did not survive")
	}
}

var deepShapes = map[string]func(n int) string{
	"plus":        func(n int) string { return "SELECT 1" + strings.Repeat("+1", n) },
	"cast":        func(n int) string { return "SELECT 1" + strings.Repeat("::int", n) },
	"parentheses": func(n int) string { return "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) },
	"not":         func(n int) string { return "SELECT " + strings.Repeat("NOT ", n) + "true" },
	"union":       func(n int) string { return "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", n) },
	"and":         func(n int) string { return "SELECT true" + strings.Repeat(" AND true", n) },
	"or":          func(n int) string { return "SELECT true" + strings.Repeat(" OR true", n) },
	"in":          func(n int) string { return "SELECT 1 IN (1" + strings.Repeat(",1", n) + ")" },
	"concat":      func(n int) string { return "SELECT ''" + strings.Repeat("||''", n) },
	"case": func(n int) string {
		return "SELECT " + strings.Repeat("CASE WHEN true THEN ", n) + "1" + strings.Repeat(" END", n)
	},
	"brackets": func(n int) string { return "SELECT " + strings.Repeat("ARRAY[", n) + "1" + strings.Repeat("]", n) },
	"subquery": func(n int) string {
		return strings.Repeat("SELECT * FROM (", n) + "SELECT 1" + strings.Repeat(") t", n)
	},
	"minus":      func(n int) string { return "SELECT " + strings.Repeat("- ", n) + "1" },
	"statements": func(n int) string { return strings.Repeat("SELECT 1;", n) },
}

// TestT49LimitsMatter: without the limits, the grammar's C library dies on what they refuse. The child is this test
// binary; its death is what the limits are there for.
func TestT49LimitsMatter(t *testing.T) {
	if _, refusal := planner.Parse(deepShapes["plus"](28_000)); refusal == nil {
		t.Fatal("28,000 additions were admitted")
	}
	if err := parserSelfTest(t.Context()); err != nil {
		t.Errorf("the deepest admitted texts: %v", err)
	}
}

// TestT52LengthField: 200 connections announce 2 GiB with five bytes. Memory stays, the connections are closed.
func TestT52LengthField(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"10", "10"}, 0))
	before := residentKiB(t, p.cmd.Process.Pid)
	huge := append([]byte{'Q'}, 0x7f, 0xff, 0xff, 0xff)
	for c := range 200 {
		var conn net.Conn
		if c%4 == 0 {
			conn = p.connect("alice", "lab").conn
		} else {
			var err error
			if conn, err = net.Dial("tcp", p.address); err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		if _, err := conn.Write(huge); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatalf("connection %d is still open", c)
		}
	}
	if grown := residentKiB(t, p.cmd.Process.Pid) - before; grown > 64<<10 {
		t.Errorf("memory grew by %d KiB, may grow by 65536", grown)
	}
	if a := p.connect("alice", "lab").ask("SELECT 1"); a.err != nil {
		t.Error(a.err)
	}
}

// TestT52Edges: each edge of the length field is refused, before and after authentication, and the process lives.
func TestT52Edges(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"10", "10"}, 0))
	for _, n := range []uint32{0, 1, 2, 3, 1<<20 + 5, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		w := p.connect("alice", "lab")
		head := binary.BigEndian.AppendUint32([]byte{'Q'}, n)
		if _, err := w.conn.Write(head); err != nil {
			t.Fatal(err)
		}
		_ = w.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, w.conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("length %d: the connection is still open", n)
		}
	}
	if a := p.connect("alice", "lab").ask("SELECT 1"); a.err != nil {
		t.Error(a.err)
	}
}

// residentKiB reads the resident memory of a process.
func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	for _, line := range strings.Split(string(status), "\n") {
		var n int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &n); err == nil {
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// asJSON is for messages of tests.
func asJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

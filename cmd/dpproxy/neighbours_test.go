package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// exact is every frame of an answer, data rows included.
func (a answer) exact() []string {
	return append(slices.Clone(a.frames), fmt.Sprint(a.rows))
}

// TestRule16PlansReadNothingPrivate: EXPLAIN is the same, byte for byte, over a database of a thousand people, its
// neighbour, an empty one, and one of another size and shape.
func TestRule16PlansReadNothingPrivate(t *testing.T) {
	beside(t)
	b := budgets{"1000", "1000"}
	sides := map[string]*wire{}
	for name, change := range map[string]string{"a thousand": "", "without number 7": `DELETE FROM people WHERE uid = 7`, "empty": `DELETE FROM people`,
		"other": `INSERT INTO people SELECT uid + i * 1000, 99, 5, 'n1', 'c0', true FROM people, generate_series(1, 100) AS g(i)`} {
		path := duckFixture(t, b, 0)
		if change != "" {
			duckExec(t, path, change)
		}
		sides[name] = serveProcess(t, path).connect("alice", "lab")
	}
	for _, setting := range []string{`RESET ALL`, `SET dp.epsilon = 0.5`, `SET dp.release = on`, `SET dp.error_columns = on`} {
		for _, w := range sides {
			w.ask(setting)
		}
		for _, sql := range publicCorpus {
			if !strings.HasPrefix(sql, "SELECT") {
				continue
			}
			want := sides["a thousand"].ask("EXPLAIN " + sql).exact()
			for name, w := range sides {
				if got := w.ask("EXPLAIN " + sql).exact(); !slices.Equal(got, want) {
					t.Errorf("%s; EXPLAIN %s\na thousand: %v\n%s: %v", setting, sql, want, name, got)
				}
			}
		}
	}
}

// TestRule23CostsArePublic: on neighbouring databases in PostgreSQL the refusals, the costs, the ledger's rows and every
// statement that reaches the database are equal, with their arguments.
func TestRule23CostsArePublic(t *testing.T) {
	beside(t)
	b := budgets{"1000", "1000"}
	var servers [2]*pgtest.Server
	var paths [2]string
	var w [2]*wire
	for i, without := range []int{0, 7} {
		servers[i] = pgtest.Start(t, logged...)
		paths[i], _ = pgFixture(t, servers[i], b, without)
		w[i] = serveProcess(t, paths[i]).connect("alice", "lab")
	}
	before := [2]int{len(statements(t, servers[0])), len(statements(t, servers[1]))}
	p := pair{w[0], w[1]}
	for _, sql := range publicCorpus {
		if d := p.sameShape(sql); d != "" {
			t.Error(d)
		}
	}
	for i, sql := range publicCorpus {
		fresh := strings.Replace(sql, "FROM people WHERE ", fmt.Sprintf("FROM people WHERE income < %d AND ", 2000+1000*i), 1)
		if d := p.sameExtended(fresh); d != "" {
			t.Error(d)
		}
	}
	found, _, _ := errorOracle(p, errorForms)
	found.none(t)
	for _, sql := range []string{`SELECT charge, user_name, kind, name, cost FROM dp.charges`, `SELECT name, kind, cells, cost, paid FROM dp.releases`, `SELECT * FROM dp.budget`} {
		if a, b := w[0].ask(sql), w[1].ask(sql); a.err != nil || len(a.rows) == 0 || fmt.Sprint(a.rows) != fmt.Sprint(b.rows) {
			t.Errorf("%s:\n%v\n%v", sql, a.rows, b.rows)
		}
	}
	one, other := statements(t, servers[0])[before[0]:], statements(t, servers[1])[before[1]:]
	if !slices.Equal(one, other) {
		for i := range min(len(one), len(other)) {
			if one[i] != other[i] {
				t.Errorf("the databases saw different statements:\n%s\n%s", one[i], other[i])
				break
			}
		}
		t.Errorf("%d statements on one side, %d on the other", len(one), len(other))
	}
	if leaves := strings.Count(strings.Join(one, "\n"), `"people"`); leaves < 10 {
		t.Errorf("%d statements over people: the test tested nothing", leaves)
	}
	for _, line := range one {
		if strings.Contains(line, "ERROR") {
			t.Error("the database saw a statement that failed: ", line)
		}
	}
}

// left is in the statement that begins a transaction: the milliseconds that the deadline of two minutes leaves, which depend on
// when the query had its turn.
var left = regexp.MustCompile(`'statement_timeout', '(11[0-9]{4}|120000)'`)

// braced is a list of names in a statement's arguments.
var braced = regexp.MustCompile(`\{[^}]*\}`)

// statements are the lines of a server's log, but for the pool's pings, which depend on the clock; lists are sorted, because
// the look at the schema before a charge asks for its columns in any order.
func statements(t *testing.T, s *pgtest.Server) []string {
	t.Helper()
	lines, _ := statementsSince(t, s, 0)
	return lines
}

// statementsSince are those from a place of the log on, and the place where it ends now.
func statementsSince(t *testing.T, s *pgtest.Server, at int) (lines []string, end int) {
	t.Helper()
	text, err := os.ReadFile(s.Log())
	if err != nil {
		t.Fatal(err)
	}
	if end = bytes.LastIndexByte(text, '\n') + 1; end == at {
		return nil, end
	}
	text = text[at:end]
	lines = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i := range lines {
		lines[i] = braced.ReplaceAllStringFunc(lines[i], func(list string) string {
			names := strings.Split(strings.Trim(list, "{}"), ",")
			slices.Sort(names)
			return strings.Join(names, ",")
		})
		lines[i] = left.ReplaceAllString(lines[i], "what is left of two minutes")
	}
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, "statement: -- ping") }), end
}

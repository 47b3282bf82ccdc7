package attacks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// exact is every frame of an answer, data rows included.
func exact(a kit.Answer) []string {
	return append(slices.Clone(a.Frames), fmt.Sprint(a.Rows))
}

// TestRule16PlansReadNothingPrivate: EXPLAIN is the same, byte for byte, over a database of a thousand people, its
// neighbour, an empty one, and one of another size and shape.
func TestRule16PlansReadNothingPrivate(t *testing.T) {
	kit.Beside(t)
	b := kit.Budgets{User: "1000", Cap: "1000"}
	sides := map[string]*kit.Wire{}
	for name, change := range map[string]string{"a thousand": "", "without number 7": `DELETE FROM people WHERE uid = 7`, "empty": `DELETE FROM people`,
		"other": `INSERT INTO people SELECT uid + i * 1000, 99, 5, 'n1', 'c0', true FROM people, generate_series(1, 100) AS g(i)`} {
		path := kit.DuckDB(t, b, 0)
		if change != "" {
			kit.ExecDuckDB(t, path, change)
		}
		sides[name] = kit.Serve(t, path).Connect("alice", "lab")
	}
	for _, setting := range []string{`RESET ALL`, `SET dp.epsilon = 0.5`, `SET dp.release = on`, `SET dp.error_columns = on`} {
		for _, w := range sides {
			w.Ask(setting)
		}
		for _, sql := range publicCorpus {
			if !strings.HasPrefix(sql, "SELECT") {
				continue
			}
			want := exact(sides["a thousand"].Ask("EXPLAIN VERBOSE " + sql))
			for name, w := range sides {
				if got := exact(w.Ask("EXPLAIN VERBOSE " + sql)); !slices.Equal(got, want) {
					t.Errorf("%s; EXPLAIN %s\na thousand: %v\n%s: %v", setting, sql, want, name, got)
				}
			}
		}
	}
}

// TestRule23CostsArePublic: on neighbouring databases in PostgreSQL the refusals, the costs, the ledger's rows and
// every statement that reaches the database are equal, with their arguments.
func TestRule23CostsArePublic(t *testing.T) {
	kit.Beside(t)
	b := kit.Budgets{User: "1000", Cap: "1000"}
	var servers [2]*pgtest.Server
	var paths [2]string
	var w [2]*kit.Wire
	for i, without := range []int{0, 7} {
		servers[i] = pgtest.Start(t, kit.Logged...)
		paths[i], _ = kit.Postgres(t, servers[i], b, without)
		w[i] = kit.Serve(t, paths[i]).Connect("alice", "lab")
	}
	before := [2]int{len(kit.Statements(t, servers[0])), len(kit.Statements(t, servers[1]))}
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
	found.None(t)
	for _, sql := range []string{`SELECT charge, user_name, kind, name, cost FROM dp.charges`, `SELECT name, kind, cells, cost, paid FROM dp.releases`, `SELECT * FROM dp.budget`} {
		if a, b := w[0].Ask(sql), w[1].Ask(sql); a.Err != nil || len(a.Rows) == 0 || fmt.Sprint(a.Rows) != fmt.Sprint(b.Rows) {
			t.Errorf("%s:\n%v\n%v", sql, a.Rows, b.Rows)
		}
	}
	one, other := kit.Statements(t, servers[0])[before[0]:], kit.Statements(t, servers[1])[before[1]:]
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

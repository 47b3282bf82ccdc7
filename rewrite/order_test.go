package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// orderedPolicy has a column whose floating sums depend on their order, and one of many decimal places.
func orderedPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	text := strings.Replace(alikePolicy, "{name: a, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}",
		"{name: a, type: double precision, domain: {min: -1000000000, max: 1000000000, step: 2000}, outside: clamp}", 1)
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestT15OrderOfRows: the rows of a table in a thousand orders, among them numbers whose floating sum depends on it,
// have one sum before noise on both engines; and one row more moves it by no more than a unit may.
func TestT15OrderOfRows(t *testing.T) {
	p := orderedPolicy(t)
	shuffles := threats.Length(60, 1000)
	r := rand.New(rand.NewPCG(36, 15))
	values := []string{"1e16", "-1e16", "1", "4503599627370496", "0.1", "-0.7", "1e300", "-1e300", "5e-324"}
	for range 60 {
		values = append(values, "0.5", fmt.Sprint(r.Float64()*1e9))
	}
	fill := func(order []int) []string {
		rows := make([]string, len(order))
		for k, i := range order {
			rows[k] = fmt.Sprintf("(%d, '%s', 1)", i+1, values[i])
		}
		return []string{"DELETE FROM clinic.people", "INSERT INTO clinic.people VALUES " + strings.Join(rows, ", ")}
	}
	create := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int, a double precision, b int)"}
	duck, conn := duckDB(t, create), postgresConn(t, create)
	run := map[dialect.Dialect]engine{dialect.DuckDB: duckQueries(duck), dialect.PostgreSQL: postgresQueries(conn)}
	exec := map[dialect.Dialect]func(string) error{
		dialect.DuckDB:     func(s string) error { _, err := duck.Exec(s); return err },
		dialect.PostgreSQL: func(s string) error { _, err := conn.Exec(t.Context(), s); return err },
	}
	m := alikePlan(t, p, "SELECT sum(a) FROM people").Measures[0]
	all := make([]int, len(values))
	for i := range all {
		all[i] = i
	}
	moved, distinct := int64(0), 0
	for d, ask := range run {
		q, err := rewrite.Render(m, d)
		if err != nil {
			t.Fatal(err)
		}
		sum := func(order []int) []int64 {
			for _, s := range fill(order) {
				if err := exec[d](s); err != nil {
					t.Fatal(err)
				}
			}
			return trueCells(m, q, ask(t, q.SQL(), q.Args()))
		}
		want := sum(all)
		distinct++
		for range shuffles {
			order := slices.Clone(all)
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			if got := sum(order); !slices.Equal(got, want) {
				t.Fatalf("%v: the sum is %d in one order and %d in another", d, want, got)
			}
		}
		for _, left := range r.Perm(len(values))[:8] {
			without := sum(slices.Delete(slices.Clone(all), left, left+1))
			for i := range want {
				moved = max(moved, want[i]-without[i], without[i]-want[i])
			}
		}
	}
	if most := m.Spec.Sensitivity(m.Contribution()).L1; moved > most {
		t.Errorf("a row moves the sum by %d, declared %d", moved, most)
	}
	threats.Reached(t, "T15", "%d orders on each of 2 engines: %d sums, one an engine; a row moves them by at most %d of %d declared", shuffles, distinct, moved, m.Spec.Sensitivity(m.Contribution()).L1)
}

package engines

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// renderAll writes the queries of measures that are bought at one moment.
func renderAll(t *testing.T, b backend.Backend, list ...*plans.Measure) []rewrite.Query {
	t.Helper()
	queries, err := rewrite.RenderAll(t.Context(), list, b.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	return queries
}

// TestScansArePaidMeasureByMeasure: a scan of two measures runs on receipts of both, or of one, of which alone the
// groups are then handed out; on none, on another's and on a spent one it does not run. What each counts is what it
// counts alone.
func TestScansArePaidMeasureByMeasure(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *backendtest.House{"DuckDB": func(t *testing.T) *backendtest.House { return backendtest.DuckHouse(t) }, "PostgreSQL": func(t *testing.T) *backendtest.House { return backendtest.PostgresHouse(t) }} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			for _, table := range []string{"people", "visits"} {
				grain := map[string]string{"people": "sex", "visits": "clinic"}[table]
				a, spec := backendtest.NewAccount(t), backendtest.NearlyExact(4)
				by, all := backendtest.Measure(t, h.Policy, table, grain), backendtest.Measure(t, h.Policy, table)
				q := renderAll(t, h, by, all)
				if !q[0].Beside(q[1]) || len(q[0].Measures()) != 2 {
					t.Fatalf("%s: the measures are not read in one scan", table)
				}
				for _, one := range q {
					if got, want := backendtest.Counts(t, h, one), backendtest.Counts(t, h, backendtest.Render(t, map[int]*plans.Measure{0: by, 1: all}[one.Number()], h)); !slices.Equal(got, want) {
						t.Errorf("%s, measure %d: %v, alone %v", table, one.Number(), got, want)
					}
				}
				first, second := a.Pay(t, by, spec), a.Pay(t, all, spec)
				for what, receipts := range map[string][]*ledger.Receipt{"no receipt": {nil, nil}, "too few": {first}, "the other's": {nil, first}} {
					if counted, err := h.Execute(t.Context(), q[0], receipts, 0); err == nil || counted != nil {
						t.Errorf("%s: executed", what)
					}
				}
				counted, err := h.Execute(t.Context(), q[0], []*ledger.Receipt{nil, second}, 0)
				if err != nil || counted[0].Valid() || !counted[1].Valid() {
					t.Errorf("%s: on one receipt of two: %v, %v", table, counted, err)
				}
				if _, err := h.Execute(t.Context(), q[0], []*ledger.Receipt{nil, second}, 0); err == nil {
					t.Error("a receipt was spent twice")
				}
				other := *by
				other.Digest[0] ^= 1
				third := a.Pay(t, &other, spec)
				if _, err := h.Execute(t.Context(), q[0], []*ledger.Receipt{third, second}, 0); err == nil {
					t.Error("a receipt of another measure paid")
				}
			}
		})
	}
}

// TestAFaultOfAScanIsOfAllItsMeasures: what fails a scan leaves none of its measures groups, and one line names them
// all.
func TestAFaultOfAScanIsOfAllItsMeasures(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *backendtest.House{"DuckDB": func(t *testing.T) *backendtest.House { return backendtest.DuckHouse(t) }, "PostgreSQL": func(t *testing.T) *backendtest.House { return backendtest.PostgresHouse(t) }} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			a, spec := backendtest.NewAccount(t), backendtest.NearlyExact(4)
			by, all := backendtest.Measure(t, h.Policy, "people", "sex"), backendtest.Measure(t, h.Policy, "people")
			receipts := []*ledger.Receipt{a.Pay(t, by, spec), a.Pay(t, all, spec)}
			h.SetDeadline(time.Nanosecond)
			counted, err := h.Execute(t.Context(), renderAll(t, h, by, all)[0], receipts, 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := range counted {
				if got := backendtest.Reveal(t, counted[i], spec); !slices.Equal(got, make([]int64, 4)) {
					t.Errorf("measure %d: got %v, want zeros", i, got)
				}
			}
			if log := h.Log.String(); strings.Count(log, "privacy rule 5") != 1 || h.Faults("clinic") != 1 {
				t.Errorf("not one line: %s", log)
			}
		})
	}
}

// TestResultsRefuseOtherMeasuresRows: a row of no measure, or with something in a column that its measure does not
// have, is a fault.
func TestResultsRefuseOtherMeasuresRows(t *testing.T) {
	h := backendtest.DuckHouse(t)
	q := renderAll(t, h, backendtest.Measure(t, h.Policy, "people", "sex"), backendtest.Measure(t, h.Policy, "people"))[0]
	for what, c := range map[string]struct {
		measure int32
		cell    int32
		count   int64
		sound   bool
	}{
		"a row of the first":                     {0, 3, 5, true},
		"a row of the second":                    {1, 0, 5, true},
		"a measure that there is not":            {2, 0, 5, false},
		"a measure below all":                    {-1, 0, 5, false},
		"a cell of a measure that has no cells":  {1, 1, 5, false},
		"a count that cannot be":                 {0, 1, -5, false},
		"a cell that the measure does not know":  {0, 4, 5, false},
		"a cell below all of the measure's":      {0, -1, 5, false},
		"a cell below all of a measure with one": {1, -1, 5, false},
	} {
		r := execute.NewResults(q)
		if err := r.Add(c.measure, []int32{c.cell}, []int64{c.count}); (err == nil) != c.sound {
			t.Errorf("%s: %v", what, err)
		}
		if !c.sound {
			continue
		}
		if err := r.Add(c.measure, []int32{c.cell}, []int64{c.count}); err == nil {
			t.Errorf("%s, twice: taken", what)
		}
		if other := r.Add(1-c.measure, []int32{0}, []int64{1}); other != nil {
			t.Errorf("%s, and one of the other: %v", what, other)
		}
	}
}

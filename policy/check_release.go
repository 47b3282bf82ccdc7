package policy

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Made-up rows: how many are shown where the file does not say, and at most.
const (
	defaultSyntheticRows = 10_000
	maxSyntheticRows     = 100_000
)

// mechanismsOf are the mechanisms of a kind of release; the first is the one without `mechanism`.
var mechanismsOf = map[ReleaseKind][]string{
	OnlineRelease:    {"multiplicative-weights", "median", "median-basic"},
	SyntheticRelease: {"mwem", "small-database", "dawa"},
}

// coarsen makes a column's cells wider, as many of them as step says making one.
func coarsen(r *Release, f releaseColumnT, at place) bool {
	if f.Step == "" {
		r.Widths = append(r.Widths, 1)
		return true
	}
	d := r.Columns[len(r.Columns)-1].Domain
	at = at.key("step")
	if r.Kind != OnlineRelease && r.Kind != SyntheticRelease {
		at.problem("step: wider cells are for online and synthetic releases")
		return false
	}
	if !d.Ordered() {
		at.problem("step: only an ordered column has wider cells")
		return false
	}
	step, err := ParseStep(d.Type, string(f.Step))
	if err != nil {
		at.problem("step %v", err)
		return false
	}
	width := step.over(d.Step)
	if width < 1 {
		at.problem("step is %.40s, must be a multiple of the column's step of %s", f.Step, d.step())
		return false
	}
	r.Widths = append(r.Widths, width)
	return true
}

// over is how many of a smaller step make s, 0 where no whole number does, or too large a one.
func (s Step) over(small Step) int {
	if s.Decimal.Coefficient != nil && small.Decimal.Coefficient != nil {
		scale := max(s.Decimal.Scale, small.Decimal.Scale)
		n, rest := new(big.Int).QuoRem(s.Decimal.At(scale), small.Decimal.At(scale), new(big.Int))
		if rest.Sign() != 0 || !n.IsInt64() || n.Int64() > MaxDomain {
			return 0
		}
		return int(n.Int64())
	}
	if small.Whole < 1 || s.Whole%small.Whole != 0 || s.Whole/small.Whole > MaxDomain {
		return 0
	}
	return int(s.Whole / small.Whole)
}

// instance reads what releases have beside columns and cost.
func instance(r *Release, f *releaseT, at place) {
	given := map[string]bool{
		"mechanism": f.Mechanism != "", "updates": f.Updates != "", "insist": f.Insist, "rows": f.Rows != "",
		"queries": f.Queries != "", "delta": f.Delta != "",
	}
	allowed := map[ReleaseKind][]string{RangeRelease: {"insist"}, HistogramRelease: {"insist"}, OnlineRelease: {"mechanism", "updates", "insist", "rows"}, SyntheticRelease: {"mechanism", "rows"}}[r.Kind]
	if f.Mechanism == "median-basic" {
		allowed = append(allowed, "queries", "delta")
	}
	for _, key := range allowed {
		delete(given, key)
	}
	at.unwanted("%s is not for this kind of release", given)
	r.Insist = f.Insist
	if r.Kind != OnlineRelease && r.Kind != SyntheticRelease {
		return
	}
	if contains([]string{"budget", "charges", "releases", "tables", "columns"}, r.Name) {
		at.key("name").problem("name is %s, but dp.%s is the proxy's own table", r.Name, r.Name)
	}
	if r.Mechanism = f.Mechanism; r.Mechanism == "" {
		r.Mechanism = mechanismsOf[r.Kind][0]
	} else if !contains(mechanismsOf[r.Kind], r.Mechanism) {
		at.key("mechanism").problem("mechanism of a release of kind %s is %s, must be one of %v", r.Kind, r.Mechanism, mechanismsOf[r.Kind])
	}
	if r.Rows = int(whole64(f.Rows, 1, maxSyntheticRows, at.key("rows"), "rows")); f.Rows == "" {
		r.Rows = defaultSyntheticRows
	}
	if r.Table.ExpectedRows < 1 {
		at.problem("expected_rows of the table is missing: this release begins with a public guess of the number of rows")
	}
	if r.Kind == OnlineRelease {
		r.Updates = int(whole64(f.Updates, 2, 1<<16, at.key("updates"), "updates"))
		if f.Updates == "" {
			at.problem("updates is missing: how many answers may come from the rows before the release stops")
		}
	}
	switch r.Mechanism {
	case "median-basic":
		basic(r, f, at)
	case "dawa":
		if len(r.Columns) != 1 || !r.Columns[0].Domain.Ordered() {
			at.key("columns").problem("dawa needs one column with an ordered domain: it looks for neighbouring cells that have about as many rows each")
		}
	}
}

// basic reads what the median mechanism in its first form needs: a number of questions, δ, and a public number of
// units.
func basic(r *Release, f *releaseT, at place) {
	d := r.Table.Dataset
	switch {
	case f.Queries == "" || f.Delta == "":
		at.problem("queries and delta are missing: median-basic answers a declared number of questions, and pays δ for them")
		return
	case d.Neighbors != privacy.ReplaceOne || !d.Unit.Row && r.Table.MaxRowsPerUnit != 1:
		at.problem("median-basic needs a public number of rows: neighbors: replace-one, and one row a unit")
		return
	case d.Accountant != privacy.Pure:
		at.problem("median-basic needs accountant: pure")
		return
	}
	r.Queries = whole64(f.Queries, 2, 1<<40, at.key("queries"), "queries")
	delta, err := privacy.ParseDelta(string(f.Delta))
	if err != nil || delta.Atto() < 1 {
		at.key("delta").problem("delta is %.40s, must be greater than 0 and below 1", f.Delta)
		return
	}
	r.Cost.Delta = delta
}

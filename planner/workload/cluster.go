package workload

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// maxCubeCells bounds the cells of a release for several statements, maxCubeWork the cells that all values together are
// sums of: planning looks at each. maxBatchWork bounds what is looked at for a whole batch.
const (
	maxCubeCells = 1 << 17
	maxCubeWork  = 1 << 20
	maxBatchWork = 1 << 26
)

// cluster is a set of requests over one table that one release answers.
type cluster struct {
	asks  []*workRequest
	cells *linear.Query // of the release; nil means the only ask's own
	cube  mechanisms.Cube
	work  int                    // cells that were looked at
	ways  []mechanisms.Candidate // at the whole cost, the one with the least error first, which is taken
}

// error is what the cluster's values err by together at the whole cost, by their weights.
func (k *cluster) error() float64 { return k.ways[0].Error }

// name tells how the cluster is measured.
func (k *cluster) name() string { return k.ways[0].Name }

// columns are all columns that the requests read, those that ranges are over first, then by name.
func (k *cluster) columns() []*policy.Column {
	var list []*policy.Column
	for _, a := range k.asks {
		own, _ := a.Query.Columns()
		for _, c := range own {
			list = predicate.WithColumn(list, c)
		}
	}
	return list
}

// aloneCluster is a cluster of one request, measured by its own cells.
func aloneCluster(a *workRequest, c reuse.Context, cost privacy.Cost) (*cluster, error) {
	spec, err := a.alone(cost)
	if err != nil {
		return nil, err
	}
	k := &cluster{asks: []*workRequest{a}}
	e := 0.0
	if a.chosen {
		e = 1 // there is nothing to compare it with: as exact as alone
	} else {
		variance := variances(spec, c.Settings.Confidence)
		for _, r := range a.rows {
			e += r.weight * a.errorAlone(r, variance)
		}
	}
	k.ways = []mechanisms.Candidate{{Name: "a count of its own", Spec: spec, Error: e}}
	return k, nil
}

// jointCluster is a cluster of several requests over one cube: nil where it would be too large, or some request is none
// of its cells.
func jointCluster(asks []*workRequest, cost privacy.Cost, all bool) (k *cluster, work int) {
	k = &cluster{asks: asks}
	if !k.lay() || !k.read() {
		return nil, k.work
	}
	c, err := k.cells.Table.ContributionTo(k.cells.Cells), error(nil)
	if all {
		k.ways, err = k.cube.Candidates(c, cost)
	} else {
		k.ways, err = k.cube.Quick(c, cost)
	}
	k.cube = mechanisms.Cube{} // it may be large, and there are many clusters
	if err != nil {
		return nil, k.work
	}
	slices.SortStableFunc(k.ways, func(a, b mechanisms.Candidate) int { return cmp.Compare(a.Error, b.Error) })
	return k, k.work << min(len(k.cells.Factors), 6)
}

// lay lays out the cells that the requests tell apart; false where they are too many, or some request is about others.
func (k *cluster) lay() bool {
	asks := k.asks
	table := asks[0].Table
	var ordered, other []*policy.Column
	for _, a := range asks {
		if !a.wholly() || a.chosen || a.Table != table {
			return false
		}
	}
	k.cells = linear.Identity(table, nil)
	classes := map[*policy.Column][]int32{}
	for _, c := range k.columns() {
		if c.Domain.Size() > plans.MaxCells { // of which nobody looks at each
			return false
		}
		class := k.classes(c)
		if classes[c] = class; slices.Max(class) == 0 {
			continue
		}
		if c.Domain.Ordered() && slices.Max(class) >= 4 {
			ordered = append(ordered, c)
		} else {
			other = append(other, c)
		}
	}
	byName := func(a, b *policy.Column) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(ordered, byName)
	slices.SortFunc(other, byName)
	for _, c := range slices.Concat(ordered, other) {
		p := &linear.Factor{Columns: []int{plans.ColumnIndex(table, c)}, Sizes: []int{c.Domain.Size()}, Class: classes[c], Classes: int(slices.Max(classes[c])) + 1, Masks: make([][]bool, 1)}
		k.cells.Factors, k.cells.Grain = append(k.cells.Factors, p), append(k.cells.Grain, p.Columns...)
		k.cube.Shape = append(k.cube.Shape, p.Classes)
		if k.cells.Cells *= p.Classes; k.cells.Cells > maxCubeCells {
			return false
		}
	}
	k.cube.Ordered = len(ordered)
	return len(k.cells.Factors) > 0
}

// classes numbers the cells of a column so that the cluster's requests treat cells of one number alike, in the order of
// their first cells.
func (k *cluster) classes(c *policy.Column) []int32 {
	out := make([]int32, c.Domain.Size())
	k.work += len(out) * len(k.asks)
	for _, a := range k.asks {
		kinds := a.Distinctions(c, len(out), func(cell int) int { return cell })
		seen := map[[2]int32]int32{}
		for i := range out {
			key := [2]int32{out[i], kinds[i]}
			n, ok := seen[key]
			if !ok {
				n = int32(len(seen))
				seen[key] = n
			}
			out[i] = n
		}
	}
	return out
}

// read finds which cells of the cube each value is the sum of.
func (k *cluster) read() bool {
	most := k.work + maxCubeWork
	for _, a := range k.asks {
		k.work += k.cells.Cells
		r := reuse.CoverCube(a.Query, k.cells)
		if r == nil {
			return false
		}
		attributes := k.attributes(a)
		for _, row := range a.rows {
			spans := cellsRead(r, row)
			if k.work += mechanisms.CellsIn(spans); k.work > most {
				return false
			}
			k.cube.Asked = append(k.cube.Asked, mechanisms.Asked{Spans: spans, Attributes: attributes, Weight: row.weight})
		}
	}
	return true
}

// attributes are the parts of the cube that decide what a request counts.
func (k *cluster) attributes(a *workRequest) []int {
	columns, _ := a.Query.Columns()
	return reuse.AttributesOf(columns, k.cells)
}

// cellsRead are the spans of a value.
func cellsRead(r *reuse.Reading, row workRow) []mechanisms.Span {
	list := make([][]mechanisms.Span, len(row.cells))
	for i, cell := range row.cells {
		list[i] = r.Spans[row.counter][cell]
	}
	return plans.JoinSpans(list)
}

package policy

import (
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// ReleaseKind names what a declared release holds.
type ReleaseKind uint8

// The kinds of declared releases. The zero value is invalid.
const (
	RangeRelease ReleaseKind = 1 + iota
	HistogramRelease
	OnlineRelease    // counting queries, one after the other
	SyntheticRelease // made-up rows
)

func (k ReleaseKind) String() string {
	return [...]string{"invalid", "range", "histogram", "online", "synthetic"}[k]
}

// Release is a release that the policy declares; each user pays its cost once.
type Release struct {
	Table   *Table
	Name    string // people_age, or as written
	Kind    ReleaseKind
	Columns []*Column
	Cost    privacy.Cost
	Epsilon privacy.Epsilon // as written; under zcdp the cost is ε²/2
	Refresh time.Duration   // 0: never
	Insist  bool            // used for all that it answers, also where a count for the same cost would be more exact
	Levels  []privacy.Cost  // of a draw that serves several levels of trust, falling: Cost is one of them; nil means there is one

	// Of online and synthetic releases:
	Widths    []int  // by column, how many of its regular cells make one of the release's
	Mechanism string // as in the file
	Updates   int    // online
	Rows      int    // how many made-up rows are shown
	Queries   int64  // median-basic
}

// Cells returns, for each cell that the release has of its i-th column, the column's first cell in it.
func (r *Release) Cells(i int) (from []int) {
	d, width := r.Columns[i].Domain, r.width(i)
	for c := 0; c < d.Regular; c += width {
		from = append(from, c)
	}
	for c := d.Regular; c < d.Size(); c++ {
		from = append(from, c)
	}
	return from
}

// Size is the number of those cells.
func (r *Release) Size(i int) int {
	d, width := r.Columns[i].Domain, r.width(i)
	return (d.Regular+width-1)/width + d.Size() - d.Regular
}

// width is how many regular cells of the i-th column make one of the release's.
func (r *Release) width(i int) int {
	if r.Widths == nil {
		return 1
	}
	return r.Widths[i]
}

// All lists the releases that the policy declares over the table.
func (t *Table) All() []*Release {
	return append(append(t.Releases[:len(t.Releases):len(t.Releases)], t.Sessions...), t.Synthetics...)
}

// Grows reports whether a release is kept over time.
func (r *Release) Grows() bool {
	return r.Kind == RangeRelease && len(r.Columns) == 1 && r.Table.Grows(r.Columns[0])
}

// MadeUp is the release whose rows have the name dp.people_made_up: of the table's the first synthetic one, and else
// the first online one, whose hypothesis has rows; nil means it has neither.
func (t *Table) MadeUp() *Release {
	for _, list := range [][]*Release{t.Synthetics, t.Sessions} {
		if len(list) > 0 {
			return list[0]
		}
	}
	return nil
}

// MadeUpName is the name of the table's made-up rows in schema dp.
func (t *Table) MadeUpName() string {
	name := t.Name + "_made_up"
	if t.Schema != "public" {
		name = t.Schema + "_" + name
	}
	return name
}

// MadeUp finds the release whose rows have a name in schema dp: that of a table's, or the release's own.
func (d *Dataset) MadeUp(name string) *Release {
	var found *Release
	for _, t := range d.Tables {
		for _, r := range append(t.Synthetics[:len(t.Synthetics):len(t.Synthetics)], t.Sessions...) {
			if r.Name == name {
				return r
			}
		}
		if r := t.MadeUp(); r != nil && t.MadeUpName() == name {
			found = r
		}
	}
	return found
}

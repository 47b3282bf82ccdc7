package policy

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Table is a private table, or a public one.
type Table struct {
	Dataset        *Dataset
	Name           string // what the analyst sees
	Schema         string // the schema it lies in for analysts: "public"
	Source         Source
	File           string // duckdb: the absolute path of the CSV or Parquet file behind the source; empty means a table
	View           View   // the SELECT in the place of a source; its zero value: a table
	Public         bool
	Static         bool   // its rows never change: releases drawn at different times are of the same rows
	Extreme        bool   // extremes: true at the table: of what counts a unit's rows too
	ExpectedRows   int64  // public guess
	UnitColumn     string // source column that names the unit; empty when a row is the unit, or it is found through Via
	NullEach       bool   // null_unit: each: a row whose unit is NULL is a unit of its own; else it is left out
	Via            *Via   // how the unit is found in another table; nil means in UnitColumn
	RowRank        string // source column that numbers each unit's rows, unique with the unit: rows beyond MaxRowsPerUnit are left out by it; empty means none
	MaxRowsPerUnit int64  // at least 1; with the two below, their product
	MaxGroups      int64  // most groups of one measure that a unit is in; 0 means as many as it has rows
	MaxPerGroup    int64  // most rows of a unit in one group; 0 means MaxRowsPerUnit
	MaxRows        int    // public tables: most rows copied
	Appends        *Appends
	Columns        []*Column  // as rows are stored and ordered; analysts see Shown
	Listed         []*Column  // Columns, and of Keys those that the policy lists, in its order: see Described
	Unique         [][]string // each the source columns of a key that no two rows of a unit share, sorted; declared, and proven or enforced where a plan relies on it
	Keys           []*Column  // columns without a domain that rows may be joined by: the unit's, those of Via, and `keys: join`
	Releases       []*Release // of counts: ranges and histograms
	Sessions       []*Release // online releases
	Synthetics     []*Release // synthetic releases
	Derived        Derivation // nil: a table of the policy
	Places         int        // of a derived table: the tables below it, each counted as often as one is made of it
	Opened         bool       // made by With, for one statement

	// AnyRows says that no bound of a unit's rows is declared: MaxRowsPerUnit is the most that may be, to which no
	// noise is calibrated.
	AnyRows bool

	// MaxTotal is max_total_per_unit, the most that a unit adds to a count; nil means none is declared.
	MaxTotal *big.Rat

	Frequency Frequency // min_frequency
}

// Via finds a row's unit in another table of the dataset: that of the row whose Key equals this row's Column. Key must
// be unique there, by a constraint that is read in the leaf's own transaction: else one unit's rows would move
// another's.
type Via struct {
	Column string // source column here
	Table  *Table
	Key    string // source column there
}

// Derivation is how the rows of a table that no policy lists come from others (docs/adr/0012). Package planner makes
// derived tables, package rewrite writes them.
type Derivation interface {
	Inputs() []*Table
	Meaning(Fingerprints) []byte // canonical: what the rows are, the inputs' fingerprints included
}

// View is a SELECT that the owner gave as source (docs/adr/0019). Trusted: it is sent as she wrote it, and what it
// promises is hers. Else package planner analyses it over the dataset's tables, as it would an analyst's sub-query, and
// it is never sent.
type View struct {
	Text         string
	Trusted      bool
	Line, Column int // of the text in the policy file
}

// Source is a base relation of the private database.
type Source struct{ Schema, Name string }

// Column is a column that analysts may use.
type Column struct {
	Table   *Table
	Name    string // what the analyst sees
	Source  string // its name in the database
	Type    Type
	Typmod  int32   // as in pg_attribute, −1: none
	Blanks  int     // above 0: it is a char of that length, whose trailing blanks do not count
	Ragged  bool    // of a char: its values may be shorter, and are then not filled up. A column of what was released of a choice, coalesce(store, 'x')
	Enum    bool    // it is of an enumerated type of the database, whose labels are its values
	Domain  *Domain // never nil in a private table; nil in a public one
	Nulls   NullRule
	Outside OutsideRule
	Snap    bool      // offgrid: snap
	Product []*Column // of an open column made by WithProduct: those whose combinations are its values
	Extreme bool      // extremes: true: min and max are answered as quantiles
	Ends    bool      // extremes: declared: min and max are the ends of the domain
	Private bool      // domain: private: its bounds are not known yet, Domain is a ladder of its type, and no question is answered over it. Or a List that was not read
	Hide    bool      // other: hide: GROUP BY has no row for the values outside the domain
	Join    bool      // one of Table.Keys: rows may be joined by it, and nothing else
	Unit    bool      // of Keys: it names the row's unit
	List    *List     // domain: {keys_of: …}: where its values are read; nil means the policy says them
	Open    *Column   // keys: discover, or domain: any: the policy's own column, or the statement's own of a text; of its values a statement knows some (docs/adr/0018)
	Any     bool      // of an open column: domain: any, of which no value is ever found (docs/adr/0145)
	Reading Reading   // of a column made by With: what it says of the text of Beside; nil means it is no such column
	Beside  *Column   // with Reading: the column of this table that it reads; nil means this table has it no more
	Input   *Column   // of a derived table: the column of an input that it is
	NullKey bool      // of an open column whose keys were found: NULL is one of them
	Hidden  bool      // of Keys: the policy names it, and does not list it among the columns
	Refers  *Column   // of Keys: the key whose values it holds: that in another table through which units are found, or, in a derived table, an input's; nil means none
	Comment string    // description for the catalog

	// MaxTotal is max_total_per_unit, the most that a unit's values add up to; nil means none is declared.
	MaxTotal *big.Rat

	Frequency Frequency // min_frequency
}

// Frequency is min_frequency: a group of fewer than Units units is shown with probability Beta at most. The zero value
// shows each.
type Frequency struct {
	Units int64
	Beta  float64 // in (0, ½), where there are Units
}

// String returns "", or the rule in words: "10 units, but with a probability of 0.05".
func (f Frequency) String() string {
	if f.Units == 0 {
		return ""
	}
	return fmt.Sprintf("%d units, but with a probability of %g", f.Units, f.Beta)
}

// Confidence is that of half-widths which are exceeded upwards with the probability Beta at most.
func (f Frequency) Confidence() mechanisms.Confidence {
	c, err := mechanisms.NewConfidence(1 - 2*f.Beta)
	if err != nil {
		panic("policy: " + err.Error()) // Beta is in (0, ½)
	}
	return c
}

// Both is the rule that keeps two rules.
func (f Frequency) Both(g Frequency) Frequency {
	if f.Units == 0 || g.Units == 0 {
		return Frequency{f.Units + g.Units, f.Beta + g.Beta}
	}
	return Frequency{max(f.Units, g.Units), min(f.Beta, g.Beta)}
}

// MinFrequency are the rules for groups of a private table's rows: by columns without one of their own, that of the
// dataset and of the tables below; and by what may be computed of any column below.
func (t *Table) MinFrequency() (own, computed Frequency) {
	base := t.Base()
	own = t.Dataset.Frequency
	for _, b := range base {
		own = own.Both(b.Frequency)
	}
	computed = own
	for _, b := range base {
		for _, c := range b.Columns {
			computed = computed.Both(c.Frequency)
		}
	}
	return own, computed
}

// NullRule says what a NULL becomes.
type NullRule uint8

// The rules for NULL. The zero value is invalid.
const (
	NullCell    NullRule = 1 + iota // a cell of its own
	NullExclude                     // the row is left out of the table
)

// OutsideRule says what a value outside its domain becomes.
type OutsideRule uint8

// The rules for values outside the domain. The zero value is invalid.
const (
	OutsideClamp   OutsideRule = 1 + iota // ordered columns: the nearest end
	OutsideOther                          // text: the value 'other'; other types: NULL
	OutsideExclude                        // the row is left out of the table
)

// Appends says that rows are only ever added to a table, in the order of a date column but for some delay.
type Appends struct {
	Column *Column
	Closes time.Duration // after a day's end (UTC), when its rows are all there
	Count  bool          // a question that reads days not closed is counted afresh; else they are left out of it
	Total  bool          // MaxRowsPerUnit bounds a unit's rows over the table's life
}

// Column returns the column of that name, or nil.
func (t *Table) Column(name string) *Column {
	return found(t.Columns, func(c *Column) bool { return c.Name == name })
}

// Shown are the columns that questions may be asked of: all but those whose bounds are not known yet.
func (t *Table) Shown() []*Column {
	if !slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Private }) {
		return t.Columns
	}
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c *Column) bool { return c.Private })
}

// Key returns the join key of that name, or nil: one of Keys, or the unit's column listed under another name.
func (t *Table) Key(name string) *Column {
	if k := found(t.Keys, func(k *Column) bool { return k.Name == name }); k != nil {
		return k
	}
	c := t.Column(name)
	if c == nil || t.Derived != nil {
		return nil
	}
	return t.sourceKey(c.Source)
}

// UnitType is the type of the column that names the table's units, 0 where the policy does not say.
func (t *Table) UnitType() Type {
	for t.Via != nil {
		t = t.Via.Table
	}
	for _, list := range [][]*Column{t.Keys, t.Columns} {
		for _, c := range list {
			if t.UnitColumn != "" && c.Source == t.UnitColumn && c.Type != 0 {
				return c.Type
			}
		}
	}
	if t.Dataset == nil {
		return 0
	}
	return t.Dataset.Unit.Type
}

// OfUnits reports whether the table is that of the unit's key, so that a row of it is a unit.
func (t *Table) OfUnits() bool {
	u := t.Dataset.Unit
	return t.Derived == nil && t.MaxRowsPerUnit == 1 && t.UnitColumn == u.Column && names(u.Table, t.Schema+"."+t.Name)
}

// Grows reports whether range releases over a column are kept over time: days that close are added to them.
func (t *Table) Grows(c *Column) bool {
	return t.Appends != nil && t.Appends.Total && t.Appends.Column == c
}

// Closed returns how many of the column's cells are closed at a time: the first ones, whose days are all over by it.
func (a *Appends) Closed(at time.Time) int {
	d := a.Column.Domain
	day := func(v Value) int64 { return int64(v.(Date)) }
	over := at.Add(-a.Closes).Unix()
	today := over / 86400
	if over%86400 < 0 {
		today-- // times before 1970 divide towards zero
	}
	if today > day(d.Max) {
		return d.Regular
	}
	return int(max(0, today-day(d.Min)) / d.Step.Whole)
}

// Base lists the tables of the policy whose rows t's rows come from, each once: t itself, its derivation's, and those
// that the units are found through.
func (t *Table) Base() []*Table {
	var list []*Table
	var add func(t *Table)
	add = func(t *Table) {
		if t.Derived != nil {
			for _, in := range t.Derived.Inputs() {
				add(in)
			}
			return
		}
		for _, have := range list {
			if have == t {
				return
			}
		}
		list = append(list, t)
		if t.Via != nil {
			add(t.Via.Table)
		}
	}
	add(t)
	return list
}

// DeclaresTotal reports whether the policy bounds what a unit adds to a count of the table, or to a sum of a column.
func (t *Table) DeclaresTotal() bool {
	return t.MaxTotal != nil || slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.MaxTotal != nil })
}

// Contribution is what one unit puts into the table, whatever is counted of it.
func (t *Table) Contribution() mechanisms.Contribution {
	return mechanisms.Contribution{Rows: t.MaxRowsPerUnit, Neighbors: t.Dataset.Neighbors}
}

// ContributionTo is what one unit puts into a measure of so many groups. With one group nothing but the unit's rows is
// bounded; with more, and where the policy says so, the groups that it is in and its rows in each.
func (t *Table) ContributionTo(groups int) mechanisms.Contribution {
	c := t.Contribution()
	if t.BoundsGroups(groups) {
		c.Groups, c.PerGroup = t.MaxGroups, t.MaxPerGroup
	}
	return c
}

// ContributionOf is that to a measure of so many groups which has bounds of its own: of a unit's rows, and of those in
// one group; 0 means the table's. With one row in a group a unit has no more rows than there are groups, whatever is
// declared of the table.
func (t *Table) ContributionOf(groups int, rows, perGroup int64) mechanisms.Contribution {
	c := t.ContributionTo(groups)
	if rows > 0 {
		c.Rows = rows
	}
	if perGroup > 0 {
		c.PerGroup = perGroup
	}
	if t.AnyRows && perGroup == 1 {
		c.Rows = int64(max(groups, 1))
	}
	return c
}

// BoundsGroups reports whether the SQL of a measure of so many groups bounds a unit's groups, and its rows in each.
func (t *Table) BoundsGroups(groups int) bool { return t.MaxGroups > 0 && groups > 1 }

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

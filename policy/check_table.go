package policy

import (
	"cmp"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// MaxPublicRows is the most that max_rows may be, DefaultPublicRows what it is where it is left out.
const (
	MaxPublicRows     = 10_000_000
	DefaultPublicRows = 100_000
)

const maxRowsPerUnit = 1_000_000

func (c *checker) table(d *Dataset, f *tableT, at place) {
	at = at.within("table", f.Name)
	t := &Table{Dataset: d, Schema: "public", Public: f.Public, Static: f.Static, Extreme: f.Extremes == "true"}
	t.ExpectedRows = whole64(f.ExpectedRows, 0, 1e15, at.key("expected_rows"), "expected_rows")
	tableName(t, f.Name, at.key("name"))
	for _, other := range d.Tables {
		if strings.EqualFold(other.Name, t.Name) && strings.EqualFold(other.Schema, t.Schema) {
			at.key("name").problem("name is given twice")
		}
	}
	d.Tables = append(d.Tables, t)
	c.source(t, f, at)
	c.relation(t, at)
	switch {
	case t.Public:
		publicTable(t, f, at)
	case t.Analysed():
		analysedTable(f, at)
	default:
		privateTable(t, f, at)
		if c.policy.Backend.Spark() && f.Appends.Column != "" {
			at.name("appends").problem("appends is not for a spark:// backend: nothing there keeps rows from being changed")
		}
	}
	columns(t, f, at.key("columns"))
	appends(t, f, c.policy.Backend.Snapshot, at)
	for i := range f.Releases {
		release(t, &f.Releases[i], at.key("releases").item(i))
	}
}

// tableName reads table or schema.table.
func tableName(t *Table, text string, at place) {
	t.Name = text
	if schema, name, ok := strings.Cut(text, "."); ok {
		t.Schema, t.Name = schema, name
	}
	if !checkName(t.Name, at, "name") || !checkName(t.Schema, at, "schema of name") {
		return
	}
	low := strings.ToLower(t.Schema)
	if strings.HasPrefix(low, "pg_") || low == "information_schema" || low == "dp" {
		at.problem("name is %.80q, but schema %s is the proxy's own", text, t.Schema)
	}
}

// usualSchema returns that of sources which name none.
func (c *checker) usualSchema() string {
	switch b := c.policy.Backend; {
	case c.embedded():
		return "main"
	case b.Spark():
		return cmp.Or(urlDatabase(b.URL), "default")
	case b.MySQL():
		return urlDatabase(b.URL)
	}
	return "public"
}

// source finds the base relation that a table reads.
func (c *checker) source(t *Table, f *tableT, at place) {
	text, here := f.Source, at.key("source")
	if text == "" {
		text, here = t.Name, at.key("name")
	}
	if isSelect(text) {
		switch {
		case !f.Trusted:
		case c.policy.Backend.MySQL():
			here.problem("source is a SELECT that is trusted, which nobody runs on MySQL: create a view of it there, and name that")
		case c.policy.Backend.Spark():
			here.problem("source is a SELECT that is trusted, which is not for a spark:// backend: what it calls could fail at a row there")
		}
		view(t, f, here, at)
		return
	}
	if f.Trusted {
		at.name("trusted").problem("trusted is for a SELECT as source, and this one names a table")
	}
	t.Source = Source{Schema: c.usualSchema(), Name: text}
	schema, name, qualified := strings.Cut(text, ".")
	if qualified {
		t.Source = Source{Schema: schema, Name: name}
	}
	if strings.Contains(name, ".") {
		here.problem("source is %.80q, must be table or schema.table", text)
		return
	}
	if !checkName(t.Source.Name, here, "source") || !checkName(t.Source.Schema, here, "schema of source") {
		return
	}
	if file, ok := c.policy.Backend.Files[t.Source.Name]; ok && t.Source.Schema == "main" {
		t.File = file
		return
	}
	if c.policy.Backend.URL == "duckdb:" {
		here.problem("source is %.80q, but an embedded duckdb: in memory has only the tables under backend.files", text)
	}
}

// relation refuses two datasets over one base relation (privacy rule 8), and a private relation shown as public.
func (c *checker) relation(t *Table, at place) {
	if t.View.Text != "" { // what it reads is for package planner to find
		return
	}
	key := t.Source.Schema + "\x00" + t.Source.Name
	if c.policy.Backend.Folds() {
		key = strings.ToLower(key)
	}
	if t.File != "" {
		key = t.File
		if real, err := filepath.EvalSymlinks(t.File); err == nil {
			key = real
		}
	}
	other, taken := c.relations[key]
	switch {
	case !taken:
		c.relations[key] = t
	case t.Public != other.Public:
		at.key("source").problem("source is also that of table %s in dataset %s: one is public and the other private", other.Name, other.Dataset.ID)
	case !t.Public && other.Dataset != t.Dataset:
		at.key("source").problem("source is also that of table %s in dataset %s: two datasets over one table would be two budgets over the same rows", other.Name, other.Dataset.ID)
	case !t.Public:
		c.twice = append(c.twice, twiceListed{t, other, at.key("unit")})
	}
}

func publicTable(t *Table, f *tableT, at place) {
	at.unwanted("%s is for private tables, and this one is public", map[string]bool{
		"unit": f.Unit != "", "max_rows_per_unit": f.MaxRowsPerUnit != "", "releases": len(f.Releases) > 0, "unique": len(f.Unique) > 0, "extremes": f.Extremes.asked(), "static": f.Static,
		"max_groups_per_unit": f.MaxGroupsPerUnit != "", "max_rows_per_group": f.MaxRowsPerGroup != "",
		"max_total_per_unit": f.MaxTotalPerUnit != "", "min_frequency": f.MinFrequency != frequencyT{},

		"appends": f.Appends.Column != "", "rows_per_unit_total": f.RowsPerUnitTotal != "", "row_rank": f.RowRank != "",
	})
	t.MaxRowsPerUnit = 1
	t.MaxRows = int(whole64(f.MaxRows, 1, MaxPublicRows, at.key("max_rows"), "max_rows"))
	if f.MaxRows == "" {
		t.MaxRows = DefaultPublicRows
	}
}

// unique reads the keys of which no two rows of a unit have the same value. Rows may be joined by their columns.
func unique(t *Table, list []uniqueT, at place) {
	if len(list) > 0 && !t.Public && (t.Dataset.Unit.Row || t.Analysed()) {
		at.problem("unique is for tables of which a unit may have several rows, and whose bounds are their own")
		return
	}
	for i, names := range list {
		here := at.item(i)
		var sources []string
		for _, name := range names {
			var source string
			kind, typmod := Type(0), int32(-1)
			if k := t.Key(name); k != nil {
				source = k.Source
			} else if c := t.Column(name); c != nil && c.Domain != nil && c.Open == nil {
				source, kind, typmod = c.Source, c.Type, c.Typmod
			} else {
				here.problem("unique: table %s has no column %.63q with keys: join or a domain", t.Name, name)
				return
			}
			if t.UnitColumn != "" && source == t.UnitColumn { // which rows of one unit share in any case
				continue
			}
			if slices.Contains(sources, source) {
				here.problem("unique: %.63q is given twice", name)
			}
			t.addKey(source, kind, typmod)
			sources = append(sources, source)
		}
		if len(sources) == 0 {
			here.problem("unique: a key must name a column beside the unit's; max_rows_per_unit: 1 says that a unit has one row")
			return
		}
		slices.Sort(sources)
		t.Unique = append(t.Unique, sources)
	}
}

func privateTable(t *Table, f *tableT, at place) {
	if f.MaxRows != "" {
		at.name("max_rows").problem("max_rows is for public tables; max_rows_per_unit bounds a unit's rows")
	}
	if f.RowsPerUnitTotal != "" && (f.Appends.Column == "" || t.Dataset.Unit.Row || f.MaxGroupsPerUnit != "" || f.MaxRowsPerGroup != "") {
		at.name("rows_per_unit_total").problem("rows_per_unit_total is for tables with appends, whose units have several rows, and takes the place of other bounds")
	}
	t.MaxRowsPerUnit = whole64(f.MaxRowsPerUnit, 1, maxRowsPerUnit, at.key("max_rows_per_unit"), "max_rows_per_unit")
	t.MaxTotal = maxTotal(t, f.MaxTotalPerUnit, at.key("max_total_per_unit"))
	t.Frequency = minFrequency(f.MinFrequency, at.key("min_frequency"))
	d := t.Dataset
	if d.Unit.Row {
		at.unwanted("%s is given, but in this dataset each row is a unit", map[string]bool{"row_rank": f.RowRank != "", "unit": f.Unit != ""})
		if f.MaxRowsPerUnit != "" && t.MaxRowsPerUnit != 1 {
			at.key("max_rows_per_unit").problem("max_rows_per_unit is %s, but in this dataset each row is a unit", f.MaxRowsPerUnit)
		}
		if f.MaxGroupsPerUnit != "" || f.MaxRowsPerGroup != "" {
			at.problem("max_groups_per_unit and max_rows_per_group are given, but in this dataset each row is a unit")
		}
		t.MaxRowsPerUnit = 1
		return
	}
	switch {
	case f.MaxGroupsPerUnit != "" || f.MaxRowsPerGroup != "":
		groupBounds(t, f, at)
	case f.RowsPerUnitTotal != "":
		totalRows(t, f, at)
	case f.MaxRowsPerUnit == "":
		t.MaxRowsPerUnit, t.AnyRows = maxRowsPerUnit, true
		at.unwanted("%s is given, but no max_rows_per_unit, which it needs",
			map[string]bool{"releases": len(f.Releases) > 0, "appends": f.Appends.Column != ""})
	}
}

// maxTotal reads what a unit adds at most to a count, or to a sum.
func maxTotal(t *Table, text decimal, at place) *big.Rat {
	if text == "" {
		return nil
	}
	word, most, ok := ReadContribution(string(text))
	switch {
	case t.Public || t.Dataset.Unit.Row || t.Analysed():
		at.problem("max_total_per_unit is for private tables of which a unit may have several rows")
	case !ok || word != "" || most.Cmp(big.NewRat(1e18, 1)) > 0:
		at.problem("max_total_per_unit is %.40q, must be a number above 0", string(text))
	default:
		return most
	}
	return nil
}

// defaultBeta is how likely a group of too few units is shown at most, where the policy does not say it; what is below
// leastBeta is as good as 0 in floating point.
const defaultBeta, leastBeta = 0.05, 1e-9

// minFrequency reads how many units are in a group that is shown.
func minFrequency(f frequencyT, at place) Frequency {
	if f.Units == "" {
		if f.Beta != "" {
			at.problem("min_frequency has no units: the fewest of a group that is shown")
		}
		return Frequency{}
	}
	out := Frequency{whole64(f.Units, 1, maxRowsPerUnit, at, "min_frequency"), defaultBeta}
	if f.Beta != "" {
		var err error
		out.Beta, err = strconv.ParseFloat(string(f.Beta), 64)
		if err != nil || !(out.Beta >= leastBeta && out.Beta < 0.5) {
			at.key("beta").problem("beta is %.40q, must be a number from %g to below 0.5", f.Beta, leastBeta)
		}
	}
	return out
}

// groupBounds reads the bounds by groups, which take the place of the bound of rows: that is their product.
func groupBounds(t *Table, f *tableT, at place) {
	t.MaxRowsPerUnit = 1
	switch {
	case f.MaxRowsPerUnit != "":
		at.name("max_rows_per_unit").problem("max_rows_per_unit is given beside max_groups_per_unit and max_rows_per_group: their product bounds a unit's rows")
		return
	case f.MaxGroupsPerUnit == "" || f.MaxRowsPerGroup == "":
		at.problem("max_groups_per_unit and max_rows_per_group belong together: one without the other bounds nothing")
		return
	}
	t.MaxGroups = whole64(f.MaxGroupsPerUnit, 1, maxRowsPerUnit, at.key("max_groups_per_unit"), "max_groups_per_unit")
	t.MaxPerGroup = whole64(f.MaxRowsPerGroup, 1, maxRowsPerUnit, at.key("max_rows_per_group"), "max_rows_per_group")
	if t.MaxRowsPerUnit = t.MaxGroups * t.MaxPerGroup; t.MaxRowsPerUnit > maxRowsPerUnit {
		at.problem("max_groups_per_unit times max_rows_per_group is %d, must be at most %d", t.MaxRowsPerUnit, maxRowsPerUnit)
	}
}

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

// A SELECT may be in the place of a source. What it means is for package planner, which knows the grammar
// (planner.CheckSQL); here is checked what may be beside it.

// isSelect tells a source that is a query from one that names a table.
func isSelect(text string) bool {
	fields := strings.Fields(strings.ToLower(text))
	return len(fields) > 1 && (fields[0] == "select" || fields[0] == "with" || fields[0] == "values")
}

// view reads a SELECT as source.
func view(t *Table, f *tableT, here, at place) {
	t.View = View{Text: strings.TrimRight(strings.TrimSpace(f.Source), "; \n\t"), Trusted: f.Trusted}
	if here.node != nil {
		t.View.Line, t.View.Column = here.node.Line, here.node.Column
	}
	if f.Appends.Column != "" {
		at.name("appends").problem("appends is for tables, whose rows a constraint or a privilege keeps; source is a SELECT")
	}
	if t.Public {
		here.problem("source is a SELECT, but only a plain table can be public: a view may show private rows")
	}
}

// analysedTable refuses what the SELECT decides.
func analysedTable(f *tableT, at place) {
	at.unwanted("%s is given, but the SELECT in source and the tables that it reads decide that; give it there, or mark the table trusted: true",
		map[string]bool{
			"unit": f.Unit != "", "max_rows_per_unit": f.MaxRowsPerUnit != "", "max_groups_per_unit": f.MaxGroupsPerUnit != "",
			"max_rows_per_group": f.MaxRowsPerGroup != "", "max_rows": f.MaxRows != "", "expected_rows": f.ExpectedRows != "",
			"extremes": f.Extremes.asked(), "releases": len(f.Releases) > 0,
			"max_total_per_unit": f.MaxTotalPerUnit != "", "min_frequency": f.MinFrequency != frequencyT{},
			"rows_per_unit_total": f.RowsPerUnitTotal != "", "row_rank": f.RowRank != "",
		})
}

// viewColumn reads a column of an analysed SELECT, which has the cells of what the SELECT makes it of.
func viewColumn(col *Column, f *columnT, at place) {
	at.unwanted("%s is given, but the column is what the SELECT in source makes it; give it to the columns that the SELECT reads",
		map[string]bool{
			"source": f.Source != "", "domain": !f.Domain.empty(), "outside": f.Outside != "", "nulls": f.Nulls != "", "offgrid": f.Offgrid != "",
			"extremes": f.Extremes != "", "other": f.Other != "", "min_frequency": f.MinFrequency != frequencyT{},
		})
	switch f.Keys {
	case "join":
		col.Join = true
	case "discover":
		at.key("keys").problem("keys: discover is for columns that the database has; the SELECT in source may show one")
	}
}

// UnitName is what one unit is called.
func (d *Dataset) UnitName() string {
	if d.Unit.Row {
		return "row"
	}
	return d.Unit.Name
}

// Analysed tells a table that is a SELECT over other tables of the dataset: its columns have no domains of their own,
// and no SQL reads it.
func (t *Table) Analysed() bool { return t.View.Text != "" && !t.View.Trusted }

package policy

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxRowsPerUnit    = 1_000_000
	maxPublicRows     = 10_000_000
	defaultPublicRows = 100_000
)

func (c *checker) table(d *Dataset, f *tableT, at place) {
	at = at.within("table", f.Name)
	t := &Table{Dataset: d, Schema: "public", Public: f.Public, Static: f.Static}
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
		"appends": f.Appends.Column != "", "rows_per_unit_total": f.RowsPerUnitTotal != "", "row_rank": f.RowRank != "",
	})
	t.MaxRowsPerUnit = 1
	t.MaxRows = int(whole64(f.MaxRows, 1, maxPublicRows, at.key("max_rows"), "max_rows"))
	if f.MaxRows == "" {
		t.MaxRows = defaultPublicRows
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
		at.problem("max_rows_per_unit is missing: the most rows that one %s has in this table; more are left out", d.Unit.Name)
		t.MaxRowsPerUnit = 1
	}
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

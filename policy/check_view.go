package policy

import "strings"

// A SELECT may stand in the place of a source. What it means is for package planner, which knows the grammar
// (planner.CheckViews); here is checked what may stand beside it.

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
			"rows_per_unit_total": f.RowsPerUnitTotal != "", "row_rank": f.RowRank != "",
		})
}

// viewColumn reads a column of an analysed SELECT, which has the cells of what the SELECT makes it of.
func viewColumn(col *Column, f *columnT, at place) {
	at.unwanted("%s is given, but the column is what the SELECT in source makes it; give it to the columns that the SELECT reads",
		map[string]bool{
			"source": f.Source != "", "domain": !f.Domain.empty(), "outside": f.Outside != "", "nulls": f.Nulls != "", "offgrid": f.Offgrid != "",
			"extremes": f.Extremes != "", "other": f.Other != "",
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

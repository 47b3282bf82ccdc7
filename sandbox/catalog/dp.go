package catalog

import (
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Schema dp describes the data as dpproxy sees them. SELECT * FROM dp.columns lists domains, cells, and what becomes of
// NULL and of values outside; the rows of dp.budget, dp.charges and dp.releases come with each query, from the ledger.

// DPTables are the columns of the tables of schema dp. The rows of budget, charges and releases come with a query;
// those of tables and columns are made here.
func DPTables() map[string][]sandbox.Column {
	all := map[string][]sandbox.Column{}
	for _, rel := range pgcatalog.Relations() {
		if rel.Schema == "dp" {
			all[rel.Name] = rowsOf(rel.Schema, rel.Name).Columns
		}
	}
	return all
}

func dpTables(d *policy.Dataset) sandbox.Rows {
	var records []record
	for _, t := range d.Tables {
		r := record{"table_schema": t.Schema, "table_name": t.Name, "public": t.Public, "trusted": t.View.Trusted}
		if !t.Public {
			if r["unit"] = "row"; !t.Analysed() {
				r["expected_rows"], r["max_rows_per_unit"] = t.ExpectedRows, t.MaxRowsPerUnit
			}
			if !d.Unit.Row {
				r["unit"] = d.Unit.Name
			}
		}
		records = append(records, r)
	}
	return rowsOf("dp", "tables", records...)
}

func dpColumns(d *policy.Dataset) sandbox.Rows {
	var records []record
	for _, t := range d.Tables {
		for _, c := range t.Described() {
			typ, typmod := c.DescribedType()
			r := record{"table_schema": t.Schema, "table_name": t.Name, "column_name": c.Name, "data_type": typ.Format(typmod)}
			if c.Join {
				r["domain"] = keyText(c)
			} else if c.Domain != nil {
				r["domain"], r["cells"] = domainText(c), int64(c.Domain.Size())
				r["nulls"], r["outside"] = "cell", "other"
				if c.Nulls == policy.NullExclude {
					r["nulls"] = "exclude"
				}
				switch c.Outside {
				case policy.OutsideClamp:
					r["outside"] = "clamp"
				case policy.OutsideExclude:
					r["outside"] = "exclude"
				}
			}
			records = append(records, r)
		}
	}
	return rowsOf("dp", "columns", records...)
}

package inspect

import (
	"fmt"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Keyed names the type of a column that is a key.
func (c ColumnShape) Keyed() string {
	if c.Loose {
		return c.KindOf + " under a collation that is not deterministic"
	}
	return c.KindOf
}

// unitTypeFinding says what a policy leaves out that would make numbering a unit's rows quicker: of a unit that is not
// declared as a whole number each row's text is hashed.
func unitTypeFinding(d *policy.Dataset, have Shape, in dialect.Dialect) []backend.Finding {
	if d.Unit.Row || d.Unit.Type != 0 {
		return nil
	}
	for _, t := range d.Tables {
		if t.UnitColumn == "" || t.Public || t.Analysed() || t.View.Text != "" {
			continue
		}
		schema, name := RelationOf(t, in)
		switch base := have[ColumnOf(schema, name, t.UnitColumn)].Base; base {
		case "smallint", "integer", "int", "bigint":
			return []backend.Finding{{Note: true, Text: fmt.Sprintf("unit: %s.%s is %s; saying so (type: %[3]s) lets queries that number a %s's rows do it almost twice as fast, and hides releases that were bought before", t.Name, t.UnitColumn, base, d.UnitName())}}
		}
	}
	return nil
}

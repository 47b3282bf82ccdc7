package twin

import (
	"context"
	"strings"

	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// How one table is made, or altered in place when the policy changes. A table that got a column "age int4" is altered
// with ALTER TABLE … ADD COLUMN "age" integer, and its number in the catalogs stays.

// table makes a table, or alters it in place: its object id stays, so that clients that remember it are right.
func (s *step) table(ctx context.Context, want *table) error {
	have := s.have[want.full()]
	if have != nil && !sameFields(have, want) && (want.kind == "v" || !s.alterable(have, want)) {
		if err := s.drop(ctx, have); err != nil {
			return err
		}
		have = nil
	}
	if have == nil {
		if err := s.create(ctx, want); err != nil {
			return err
		}
		have = &table{columns: make([]field, len(want.columns))}
	} else if err := s.alter(ctx, have, want); err != nil {
		return err
	}
	what := map[string]string{"r": "TABLE", "v": "VIEW"}[want.kind]
	if have.comment != want.comment {
		if err := s.exec(ctx, "COMMENT ON %s %s IS %s", what, want.full(), literal(want.comment)); err != nil {
			return err
		}
	}
	for i, c := range want.columns {
		if i < len(have.columns) && have.columns[i].comment == c.comment {
			continue
		}
		if err := s.exec(ctx, "COMMENT ON COLUMN %s.%s IS %s", want.full(), dialect.QuoteName(c.name), literal(c.comment)); err != nil {
			return err
		}
	}
	return nil
}

func (s *step) create(ctx context.Context, t *table) error {
	var items []string
	for _, c := range t.columns {
		if t.kind == "v" {
			items = append(items, "CAST(NULL AS "+c.text+") AS "+dialect.QuoteName(c.name))
			continue
		}
		items = append(items, dialect.QuoteName(c.name)+" "+c.text+map[bool]string{true: " NOT NULL"}[c.notNull])
	}
	if t.kind == "v" {
		return s.exec(ctx, "CREATE VIEW %s AS SELECT %s WHERE false", t.full(), strings.Join(items, ", "))
	}
	return s.exec(ctx, "CREATE TABLE %s (%s)", t.full(), strings.Join(items, ", "))
}

func sameFields(a, b *table) bool {
	if len(a.columns) != len(b.columns) {
		return false
	}
	for i := range a.columns {
		x, y := a.columns[i], b.columns[i]
		if x.name != y.name || x.text != y.text || x.notNull != y.notNull {
			return false
		}
	}
	return true
}

// alterable reports whether dropping columns, changing types and adding columns at the end leads to the wanted order.
func (s *step) alterable(have, want *table) bool {
	if strings.HasPrefix(have.comment, catalog.PublicComment) {
		return false // its rows are copied anew anyway
	}
	at := 0
	for _, c := range have.columns {
		k := fieldIndex(want, c.name)
		if k < 0 {
			continue
		}
		if k != at {
			return false
		}
		at++
	}
	return true
}

func fieldIndex(t *table, name string) int {
	for i, c := range t.columns {
		if c.name == name {
			return i
		}
	}
	return -1
}

// alter changes the columns of an empty table; have is then as wanted but for comments.
func (s *step) alter(ctx context.Context, have, want *table) error {
	var steps []string
	var now []field
	for _, c := range have.columns {
		k, quoted := fieldIndex(want, c.name), dialect.QuoteName(c.name)
		if k < 0 {
			steps = append(steps, "DROP COLUMN "+quoted)
			continue
		}
		w := want.columns[k]
		if w.text != c.text {
			steps = append(steps, "ALTER COLUMN "+quoted+" TYPE "+w.text+" USING NULL")
		}
		if w.notNull != c.notNull {
			steps = append(steps, "ALTER COLUMN "+quoted+map[bool]string{true: " SET NOT NULL", false: " DROP NOT NULL"}[w.notNull])
		}
		now = append(now, c)
	}
	for _, w := range want.columns[len(now):] {
		steps = append(steps, "ADD COLUMN "+dialect.QuoteName(w.name)+" "+w.text+map[bool]string{true: " NOT NULL"}[w.notNull])
		now = append(now, field{name: w.name})
	}
	have.columns = now
	if len(steps) == 0 {
		return nil
	}
	return s.exec(ctx, "ALTER TABLE %s %s", want.full(), strings.Join(steps, ", "))
}

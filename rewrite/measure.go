package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
)

// The SQL of a measure reads its table in up to three layers:
//
//	b  each row's normalised columns, rows that the rules exclude left out (by every column's rules, used or not)
//	s  b with each unit's rows numbered in the order of their own contents
//	   the cells and counts over the first rows of each unit that satisfy the predicate
//
// Numbering orders by the normalised values of all columns, so rows that tie are interchangeable for every measure of
// the table: which rows stay depends on the unit's own rows alone (privacy rule 10).

// maxArguments stays below the 65535 that PostgreSQL's protocol can carry.
const maxArguments = 60000

func checkMeasure(m *planner.Measure) error {
	switch {
	case m == nil || m.Table == nil || m.Table.Dataset == nil:
		return errors.New("rewrite: a measure without a table")
	case m.Table.Public:
		return errors.New("rewrite: a measure of a public table")
	case len(m.Counters) == 0:
		return errors.New("rewrite: a measure without counters")
	case m.Table.UnitColumn == "" && !m.Table.Dataset.Unit.Row:
		return errors.New("rewrite: a table that does not name its unit")
	case m.Table.UnitColumn != "" && m.Table.MaxRowsPerUnit < 1:
		return errors.New("rewrite: a table without a bound of rows per unit")
	}
	for i, c := range m.Grain {
		if slices.Contains(m.Grain[:i], c) {
			return errors.New("rewrite: a grain that names a column twice")
		}
	}
	return nil
}

// statement writes the query of a measure with or without the row bound.
func statement(m *planner.Measure, d Dialect, bounded bool) (text, error) {
	w := &writer{dialect: d, table: m.Table, seen: map[string]string{}}
	var items, keys, conditions []string
	if bounded {
		conditions = append(conditions, "s.r <= "+strconv.FormatInt(m.Table.MaxRowsPerUnit, 10))
		for _, c := range m.Table.Columns {
			w.use(c)
		}
	}
	for i, c := range m.Grain {
		n := w.use(c)
		items = append(items, w.output(w.cell(c, n), "c"+strconv.Itoa(i+1)))
		if c.Domain != nil && c.Domain.Single() {
			keys = append(keys, n)
		} else {
			keys = append(keys, strconv.Itoa(i+1))
		}
	}
	for i, p := range m.Counters {
		count := w.call("count", "*")
		if p != nil {
			count += " FILTER (WHERE " + w.predicate(p) + ")"
		}
		items = append(items, w.output(count, "k"+strconv.Itoa(i+1)))
	}
	if m.Where != nil {
		conditions = append(conditions, w.predicate(m.Where))
	}
	sql := "SELECT " + strings.Join(items, ",\n       ") + "\nFROM " + w.source(bounded) + " AS s"
	if len(conditions) > 0 {
		sql += "\nWHERE " + strings.Join(conditions, "\n  AND ")
	}
	if len(keys) > 0 {
		sql += "\nGROUP BY " + strings.Join(keys, ", ")
	}
	if w.err == nil && len(w.args) > maxArguments {
		w.fail("the query needs more than %d constants", maxArguments)
	}
	if w.err != nil {
		return text{}, w.err
	}
	return text{sql, w.args}, nil
}

// source writes the normalised rows, numbered within each unit where bounded.
func (w *writer) source(bounded bool) string {
	var items, conditions, order []string
	if bounded {
		items = append(items, "t."+w.name(w.table.UnitColumn)+" AS u")
	}
	if w.table.UnitColumn != "" {
		conditions = append(conditions, "t."+w.name(w.table.UnitColumn)+" IS NOT NULL")
	}
	for i, c := range w.table.Columns {
		if slices.Contains(w.used, c) {
			n := "n" + strconv.Itoa(i+1)
			items = append(items, w.normalised(c)+" AS "+n)
			order = append(order, "b."+n)
		}
		conditions = append(conditions, w.kept(c)...)
	}
	if len(items) == 0 {
		items = []string{"1 AS one"}
	}
	sql := "(SELECT " + strings.Join(items, ",\n        ") + "\n   FROM " + w.relation() + " AS t"
	if len(conditions) > 0 {
		sql += "\n   WHERE " + strings.Join(conditions, "\n     AND ")
	}
	sql += ")"
	if !bounded {
		return sql
	}
	window := "PARTITION BY b.u"
	if len(order) > 0 {
		window += " ORDER BY " + strings.Join(order, " ASC NULLS LAST, ") + " ASC NULLS LAST"
		order[0] = ", " + order[0]
	}
	return "(SELECT " + w.call("row_number") + " OVER (" + window + ") AS r" + strings.Join(order, ", ") + "\n  FROM " + sql + " AS b)"
}

// output names a value of the answer and gives it the type that the backend expects.
func (w *writer) output(expression, name string) string {
	kind := "int8"
	if strings.HasPrefix(name, "c") {
		kind = "int4"
	}
	return w.cast(expression, kind) + " AS " + name
}

// relation writes the table's name in full.
func (w *writer) relation() string {
	schema, name := Relation(w.table.Source, w.dialect)
	full := w.name(schema) + "." + w.name(name)
	if w.dialect == DuckDB {
		return w.name(Catalog) + "." + full
	}
	return full
}

// Relation returns the schema and name of a base relation in a database of that dialect. A source without a schema lies
// in the dialect's default schema.
func Relation(s policy.Source, d Dialect) (schema, name string) {
	switch {
	case s.Schema != "":
		return s.Schema, s.Name
	case d == DuckDB:
		return "main", s.Name
	default:
		return "public", s.Name
	}
}

// use notes that the query reads a column and returns its normalised value's name.
func (w *writer) use(c *policy.Column) string {
	at := slices.Index(w.table.Columns, c)
	if at < 0 || c.Domain == nil || c.Table != w.table {
		w.fail("a column that the measure's table does not have")
		return "NULL"
	}
	if !slices.Contains(w.used, c) {
		w.used = append(w.used, c)
	}
	return "s.n" + strconv.Itoa(at+1)
}

// writer holds what has been written of one query. The first failure is kept in err; what is written after it is void.
type writer struct {
	dialect Dialect
	table   *policy.Table
	used    []*policy.Column
	args    []any
	seen    map[string]string // argument text -> placeholder
	err     error
}

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("rewrite: "+format, args...)
	}
}

package semantics

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Columns whose values nobody declared (docs/adr/0018 and 0145). One of their cells stands for all values that nobody
// knows, so an expression over such a column is answered only where it is the same for all of these: city = 'Bern' is
// false, once Bern has a cell of its own.

// unknown refuses an expression on a cell that stands for values that nobody knows, unless it only compares the column
// with constants, each of which has a cell of its own. Constants without one are named in the refusal: the statement is
// then bound again with them.
func (b *Box) unknown(e *Expr) *refuse.Refusal {
	for _, i := range e.Cols {
		if !b.other[i] {
			continue
		}
		var named []refuse.NamedValue
		if !b.exact(e, &named) {
			return UnknownText(b.Table.Columns[i], e.Pos)
		}
		if len(named) > 0 {
			r := UnknownText(b.Table.Columns[i], e.Pos)
			r.Named = named
			return r
		}
	}
	return nil
}

// UnknownText refuses what depends on values of an open column that nobody knows.
func UnknownText(c *policy.Column, pos int) *refuse.Refusal {
	if c.Any {
		return anyText.At(pos, c.Name)
	}
	return OpenColumn.At(pos, c.Name)
}

// Knows reports whether an expression is the same for all values of its open columns that nobody knows; a column itself
// is not.
func (b *Box) Knows(e *Expr) bool {
	var named []refuse.NamedValue
	return e.Form != FormColumn && b.exact(e, &named)
}

// exact reports whether e is the same for all values that are not named.
func (b *Box) exact(e *Expr, named *[]refuse.NamedValue) bool {
	if !slices.ContainsFunc(e.Cols, func(i int) bool { return b.Table.Columns[i].Open != nil }) {
		return true
	}
	switch e.Form {
	case FormIsNull:
		if e.Args[0].Form == FormColumn {
			return true
		}
		fallthrough
	case FormAnd, FormOr, formNot, FormIs, FormOther:
		return !slices.ContainsFunc(e.Args, func(a *Expr) bool { return !b.exact(a, named) })
	case FormCompare:
		column, constant, _ := e.constantLast()
		return (e.Op == "=" || e.Op == "<>") && column.Form == FormColumn && b.names(column, constant, named)
	case formIn:
		return e.Args[0].Form == FormColumn &&
			!slices.ContainsFunc(e.Args[1:], func(a *Expr) bool { return !b.names(e.Args[0], a, named) })
	}
	return false
}

// names reports whether e is a constant text, and notes one that has no cell.
func (b *Box) names(column, e *Expr, named *[]refuse.NamedValue) bool {
	if !e.IsConstant() {
		return false
	}
	v, err := e.Eval(nil)
	if err != nil || v == nil {
		return err == nil
	}
	text, ok := v.(string)
	c := b.Table.Columns[column.Cols[0]]
	if !ok || text == policy.OtherValue || strings.ContainsRune(text, 0) {
		return false
	}
	if _, known := c.Domain.Cell(text); !known {
		*named = append(*named, refuse.NamedValue{Column: c.Open, Text: text})
	}
	return true
}

// Closed refuses what reads an open column otherwise than by comparing it or grouping by it.
func Closed(t *policy.Table, e *Expr) *refuse.Refusal {
	for _, i := range e.Cols {
		if c := t.Columns[i]; c.Open != nil {
			return UnknownText(c, e.Pos)
		}
	}
	return nil
}

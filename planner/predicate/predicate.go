// Package predicate holds conditions on the normalised columns of one private table, which are true or not, never NULL:
// the planner folds three-valued logic into them before. Of
//
//	SELECT count(*) FROM people WHERE NOT (age < 18 OR sex = 'f') AND hired < '2020-02-10 12:00'
//
// there are left the cells of age from 18 on, those of sex but for f and NULL, and a comparison of hired, whose
// constant lies inside a step: AllOf{InCells, InCells, Compare}. All and Any put such together, Not turns one round,
// and what comes out is written in one way, so that questions that mean the same have the same digest however they were
// asked. Package rewrite writes them in SQL.
package predicate

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// Pred is a two-valued predicate on the normalised columns of one table: true or not, never NULL. The planner has
// already folded three-valued logic into it.
type Pred interface{ pred() }

// AllOf holds where each of its parts holds, AnyOf where one does. Both are flat and non-empty.
type (
	AllOf []Pred
	AnyOf []Pred
)

// InCells holds where the column's cell is in one of the spans (sorted, disjoint, half-open). It can name the cells of
// 'other' and NULL.
type InCells struct {
	Column *policy.Column
	Spans  []mechanisms.Span
}

// Compare holds where the normalised column is not NULL and compares so with a constant of its type that lies off its
// grid. Op is one of < <= > >= = <>.
type Compare struct {
	Column *policy.Column
	Op     string
	Value  policy.Value
}

// Past holds where the normalised column, of moments or of whole numbers, is not NULL and lies so far past the start of
// its cell, in microseconds or in ones: of visited_at in steps of an hour it is, in the cells of 17:00,
// visited_at::time <= '17:30'. Op is one of those of Compare.
type Past struct {
	Column *policy.Column
	Op     string
	By     int64
}

// Between holds where two columns of one type are both not NULL and compare so, value by value.
type Between struct {
	Left, Right *policy.Column
	Op          string
}

// Sum holds where none of the columns of Terms is NULL and what they add up to, row by row, compares so with Value: of
// whole numbers, days and microseconds a whole number (int64), of terms of which some is a numeric a policy.Numeric.
// The planner has held the terms against the ends of whole numbers (derived.ComputedColumn).
type Sum struct {
	Terms []Term
	Op    string
	Value policy.Value
}

// Term is a column times a whole number that is not 0: dates count as days since 1970, moments as microseconds.
type Term struct {
	Times  int64
	Column *policy.Column
}

// Never holds nowhere.
type Never struct{}

func (AllOf) pred()   {}
func (AnyOf) pred()   {}
func (InCells) pred() {}
func (Compare) pred() {}
func (Between) pred() {}
func (Past) pred()    {}
func (Sum) pred()     {}
func (Never) pred()   {}

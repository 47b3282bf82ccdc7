package semantics

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
)

// PlaceOf is the position of the innermost part that fails so.
func (e *Expr) PlaceOf(err error) int {
	for _, a := range e.Args {
		if inner := scalar.Fails(a.Expr); inner != nil && inner.Error() == err.Error() {
			return a.PlaceOf(err)
		}
	}
	return e.Pos
}

// FailsOnRows is the error with which e ends on every row, as scalar.Fails tells it. What the statement itself chooses
// (CASE, NULLIF) may be NULL on all of them, so that what reads it need not fail. That of an average may, too, where
// there is nobody, and is an error all the same.
func (e *Expr) FailsOnRows() error {
	if e.chooses() {
		return e.Args[0].FailsOnRows()
	}
	if e.holdsChoice() {
		return nil
	}
	return scalar.Fails(e.Expr)
}

// chooses tells CASE and NULLIF of the statement's own, which are no constants.
func (e *Expr) chooses() bool {
	return !e.Formula && !e.IsConstant() && (e.Op == "case0" || e.Op == "case1" || e.Op == "nullif")
}

func (e *Expr) holdsChoice() bool {
	return !e.Formula && (e.chooses() || slices.ContainsFunc(e.Args, (*Expr).holdsChoice))
}

// FailingAlways evaluates the constant parts that every row evaluates, those that depend on the session among them.
func (e *Expr) FailingAlways() *refuse.Refusal {
	if e.IsConstant() {
		_, refusal := e.Value(nil)
		return refusal
	}
	switch e.Op {
	case "and", "or", "case0", "case1", "coalesce":
		return e.Args[0].FailingAlways()
	}
	for _, a := range e.Args {
		if refusal := a.FailingAlways(); refusal != nil {
			return refusal
		}
	}
	return nil
}

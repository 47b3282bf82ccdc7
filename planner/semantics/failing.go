package semantics

import (
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

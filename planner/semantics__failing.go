package planner

import (
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
)

// placeOf is the position of the innermost part that fails so.
func (e *expr) placeOf(err error) int {
	for _, a := range e.args {
		if _, inner := scalar.Fold(a.Expr); inner != nil && inner.Error() == err.Error() {
			return a.placeOf(err)
		}
	}
	return e.pos
}

// failingAlways evaluates the constant parts that every row evaluates, those that depend on the session among them.
func (e *expr) failingAlways() *refuse.Refusal {
	if e.isConstant() {
		_, refusal := e.value(nil)
		return refusal
	}
	switch e.op {
	case "and", "or", "case0", "case1", "coalesce":
		return nil
	}
	for _, a := range e.args {
		if refusal := a.failingAlways(); refusal != nil {
			return refusal
		}
	}
	return nil
}

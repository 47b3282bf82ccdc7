package pipeline

import (
	"context"
	"errors"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// A query may fail by its constants alone, whatever is released: to_char(n, '9.9.9') on each row that there is. It is run
// before the charge over leaves that have the public keys and made-up numbers. Two such leaves have no number in common, and
// another number of rows where the number is not certain; what fails on both of them, with one SQLSTATE, is taken to fail on all.
//
//	SELECT k, to_char(n, '9.9.9') FROM leaf_1   fails on both
//	SELECT k, 100 / n FROM leaf_1               fails on the zeros
//	SELECT k FROM leaf_1 WHERE n > 5            fails on none

// probes is how many leaves of made-up numbers are tried.
const probes = 2

// probe runs an outer query over leaf number i of made-up numbers; nil if it does not fail by a value.
func (a *Answerer) probe(ctx context.Context, s *Session, plan *plans.Plan, above outer.Query, i int) *refuse.Refusal {
	tables := make([]sandbox.Table, 0, len(plan.Leaves))
	for _, leaf := range plan.Leaves {
		tables = append(tables, sandbox.Table{Name: leaf.Name, Rows: privacy.Published(madeUp(leaf, i))})
	}
	err := a.workers.Ask(ctx, s.Policy.Server.Limits, sandboxSession(s, plan), func(session sandbox.Session) error {
		session.Unreleased = true
		_, err := a.engine.Query(ctx, session, above, tables)
		return err
	})
	var fault *scalar.Error
	if err == nil || !errors.As(err, &fault) || !ofAValue(fault.SQLState) {
		return nil
	}
	return refuse.Invalid(fault.SQLState, fault.Message, "")
}

// ofAValue reports whether an error is of what a query computes, and not of its resources or of the sandbox.
func ofAValue(state string) bool {
	return len(state) == 5 && (state[:2] == "22" || state[:2] == "42" || state[:2] == "21" || state[:2] == "0A")
}

// madeUp are rows of a leaf for probe i: as many as it certainly has, but at most two and three.
func madeUp(leaf *plans.Leaf, i int) sandbox.Rows {
	rows := sandbox.Rows{Columns: leafColumns(leaf)}
	for r := range min(leaf.CertainRows(), 2+i) {
		row := make([]policy.Value, 0, len(rows.Columns))
		for _, k := range leaf.Keys {
			row = append(row, k.Values[r])
		}
		for c := range leaf.Counts {
			row = append(row, madeUpNumber(rows.Columns[len(leaf.Keys)+c].Type, int64(i*(1000*(r+1)+7*c+3))))
		}
		rows.Data = append(rows.Data, row)
	}
	return rows
}

// madeUpNumber is a number as a value of a type; NULL if the type is none of numbers.
func madeUpNumber(t policy.Type, n int64) policy.Value {
	switch {
	case t.Integer():
		return n
	case t.Floating():
		return float64(n)
	case t == policy.NumericType:
		return policy.NewNumeric(n, 0)
	}
	return nil
}

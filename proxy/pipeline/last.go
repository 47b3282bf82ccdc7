package pipeline

import (
	"context"
	"strconv"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// Tools drop notices, so SELECT cost, remaining, error FROM dp.last shows what the notice of the session's last answer said, in
// one row: what it cost, what was left then, how far its counts may be off. It is what the notice is made of: the plan, the charge and
// the analyst's own account, never a released or a true value. What has no notice (catalogs, dp.*) leaves it as it is, so that asking
// for it does not change it.

// Last is what is known of an answer beside its rows.
type Last struct {
	cost       privacy.Cost
	balance    *ledger.Balance // after it; nil: it was free
	error      width           // the largest half-width that the notice tells
	known      bool            // there is one, of the columns themselves
	confidence float64
	notice     Notice
}

// lastOf is what dp.last shows of an answer; nil: its notice says nothing.
func (a *account) lastOf(ctx context.Context, x *execution, p compiled, bought purchase, told []Notice) *Last {
	if len(told) == 0 || x.Dataset == nil {
		return nil
	}
	l := &Last{cost: bought.charged, notice: told[0], confidence: p.plan.Confidence.Float()}
	if len(p.plan.Measures) == 0 {
		l.cost = x.prior.cost
	}
	if !l.cost.IsZero() {
		if b, err := a.ledger.Balance(ctx, x.User, x.Dataset.ID); err == nil {
			l.balance = &b
		}
	}
	_, l.error, l.known = halfWidths(p.plan)
	return l
}

// tell replaces the notice by what it has become.
func (l *Last) tell(told []Notice) {
	if l != nil && len(told) > 0 {
		l.notice = told[0]
	}
}

// lastRows: cost, remaining, budget, error, confidence, notice, detail. Amounts are ε under the pure accountant, ρ under zCDP, as in
// dp.budget, and under either in the unit of the cost; remaining is what was left when it was charged, of what was free what is left now. Before the first answer all is NULL.
func (a *account) lastRows(ctx context.Context, s *Session) ([][]policy.Value, error) {
	var l *Last
	if s.Last != nil {
		l = s.Last()
	}
	if l == nil {
		return [][]policy.Value{make([]policy.Value, 7)}, nil
	}
	b := l.balance
	if b == nil {
		now, err := a.ledger.Balance(ctx, s.User, s.Dataset.ID)
		if err != nil {
			return nil, err
		}
		b = &now
	}
	amount := amountIn(l.cost)
	if l.cost.IsZero() {
		if amount = amountIn(b.Limit); b.Left().Epsilon.Micro() != 0 {
			amount = inEpsilon
		}
	}
	row := []policy.Value{amount(l.cost), amount(b.Left()), amount(b.Limit), nil,
		decimalValue(strconv.FormatFloat(l.confidence, 'f', -1, 64)), l.notice.Message, l.notice.Detail}
	if l.known {
		row[3] = decimalValue(l.error.String())
	}
	return [][]policy.Value{row}, nil
}

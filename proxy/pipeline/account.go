package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// account is what an analyst may know of what she has spent and holds.
type account struct {
	ledger ledger.Ledger
	log    *slog.Logger
}

// maxCharges bounds dp.charges: the latest ones.
const maxCharges = 10_000

// ownTables makes the dp.* tables that an outer query reads: the analyst's own account. An admin sees every budget and
// charge, and no more of the data than she has paid for.
func (a *account) ownTables(ctx context.Context, s *Session, plan *plans.Plan) ([]sandbox.Table, error) {
	var tables []sandbox.Table
	seen := map[string]bool{}
	for _, r := range plan.Outer.Relations {
		if r.Schema != "dp" || seen[r.Name] {
			continue
		}
		seen[r.Name] = true
		columns, known := catalog.DPTables()[r.Name]
		if !known {
			continue
		}
		rows, made, err := a.ownRows(ctx, s, r.Name)
		if err != nil {
			a.log.ErrorContext(ctx, "own account cannot be read", "table", r.Name, "error", err)
			return nil, errLedger
		}
		if made {
			tables = append(tables, sandbox.Table{Schema: "dp", Name: r.Name, Rows: privacy.Published(sandbox.Rows{Columns: columns, Data: rows})})
		}
	}
	return tables, nil
}

// ownRows are the rows of dp.budget, dp.charges, dp.releases or dp.last; dp.tables and dp.columns come from the policy,
// so the sandbox makes them itself.
func (a *account) ownRows(ctx context.Context, s *Session, name string) (rows [][]policy.Value, made bool, err error) {
	if s.Dataset == nil {
		return nil, true, nil
	}
	switch name {
	case "budget":
		rows, err = a.budgetRows(ctx, s)
	case "charges":
		rows, err = a.chargeRows(ctx, s)
	case "last":
		rows, err = a.lastRows(ctx, s)
	case "releases":
		rows = releaseRows(s, a.ledger.Holdings(s.User, s.Dataset.ID))
	default:
		return nil, false, nil
	}
	return rows, true, err
}

func (a *account) isAdmin(s *Session) bool {
	u := s.Policy.User(s.User)
	return u != nil && u.Admin
}

// budgetRows: user_name, dataset, accountant, spent, budget, remaining, share_spent, window_ends, lifetime_spent,
// lifetime_budget. Amounts are ε under the pure accountant, ρ under zCDP.
func (a *account) budgetRows(ctx context.Context, s *Session) ([][]policy.Value, error) {
	var balances []ledger.Balance
	if a.isAdmin(s) {
		all, err := a.ledger.Balances(ctx, s.Dataset.ID)
		if err != nil {
			return nil, err
		}
		balances = all
	} else {
		own, err := a.ledger.Balance(ctx, s.User, s.Dataset.ID)
		if err != nil {
			return nil, err
		}
		balances = []ledger.Balance{own}
	}
	var rows [][]policy.Value
	for _, b := range balances {
		rows = append(rows, budgetRows(s.Dataset, b.User, b)...)
	}
	if a.isAdmin(s) {
		spent, limit, err := a.ledger.Cap(ctx, s.Dataset.ID)
		if err != nil {
			return nil, err
		}
		rows = append(rows, budgetRows(s.Dataset, "(cap)", ledger.Balance{Spent: spent, Limit: limit})...)
	}
	return rows, nil
}

// budgetRows are the rows of an account in dp.budget: one, and under either accountant one for each of its two
// conditions.
func budgetRows(d *policy.Dataset, user string, b ledger.Balance) (rows [][]policy.Value) {
	row := func(accountant string, amount func(privacy.Cost) policy.Value) {
		ends, lifeSpent, lifeLimit := policy.Value(nil), policy.Value(nil), policy.Value(nil)
		if !b.WindowEnds.IsZero() {
			ends = policy.Timestamptz(b.WindowEnds.UnixMicro())
			lifeSpent, lifeLimit = amount(b.LifeSpent), amount(b.LifeLimit)
		}
		rows = append(rows, []policy.Value{user, d.ID, accountant, amount(b.Spent), amount(b.Limit), amount(b.Left()), ends, lifeSpent, lifeLimit})
	}
	if d.Accountant == privacy.Either {
		row("either: ε", inEpsilon)
		row("either: ρ", inRho)
		return rows
	}
	row(d.Accountant.String(), amountIn(b.Limit))
	return rows
}

func inEpsilon(c privacy.Cost) policy.Value { return decimalValue(c.Epsilon.String()) }

func inRho(c privacy.Cost) policy.Value { return decimalValue(c.Rho.String()) }

// amountIn gives costs as exact decimals in the unit of one: ρ where it names that.
func amountIn(c privacy.Cost) func(privacy.Cost) policy.Value {
	if c.Rho.Pico() != 0 {
		return inRho
	}
	return inEpsilon
}

// amount is a cost in its own unit, as an exact decimal.
func amount(c privacy.Cost) policy.Value { return amountIn(c)(c) }

func (a *account) chargeRows(ctx context.Context, s *Session) ([][]policy.Value, error) {
	user := s.User
	if a.isAdmin(s) {
		user = ""
	}
	charges, err := a.ledger.Charges(ctx, user, s.Dataset.ID, maxCharges)
	if err != nil {
		return nil, err
	}
	var rows [][]policy.Value
	// Numbered within what she sees: the ledger's own numbers would tell how much others asked.
	for i, c := range charges {
		rows = append(rows, []policy.Value{int64(len(charges) - i), policy.Timestamptz(c.At.UnixMicro()), c.User, c.Kind, c.Name, amount(c.Cost)})
	}
	return rows, nil
}

// releaseRows: what she has paid for, and what the policy declares that she has not paid for yet.
func releaseRows(s *Session, held []ledger.Release) [][]policy.Value {
	var rows [][]policy.Value
	paid := map[string]bool{}
	for _, r := range held {
		if r.Item.Shared || mechanisms.Is[*mechanisms.Online](r.Item.Spec) {
			paid[r.Item.Name] = true
		}
		rows = append(rows, []policy.Value{r.Item.Name, r.Item.Kind, tableName(r.Item.Table), int64(r.Item.Spec.Cells), amount(r.Item.Cost), r.Item.Shared, true, policy.Timestamptz(r.At.UnixMicro())})
	}
	for _, t := range s.Dataset.Tables {
		for _, r := range t.All() {
			if !paid[r.Name] {
				cells := int64(1)
				for i := range r.Columns {
					cells *= int64(len(r.Cells(i)))
				}
				rows = append(rows, []policy.Value{r.Name, r.Kind.String(), t.Name, cells, amount(r.Cost), r.Kind != policy.OnlineRelease, false, nil})
			}
		}
	}
	return rows
}

func tableName(qualified string) string {
	_, name, _ := strings.Cut(qualified, ".")
	return name
}

// decimalValue is the exact numeric of a plain decimal text.
func decimalValue(text string) policy.Value {
	whole, fraction, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return nil
	}
	return policy.Numeric{Coefficient: n, Scale: int32(len(fraction))}
}

// Tools drop notices, so SELECT cost, remaining, error FROM dp.last shows what the notice of the session's last answer
// said, in one row: what it cost, what was left then, how far its counts may be off. It is what the notice is made of:
// the plan, the charge and the analyst's own account, never a released or a true value. What has no notice (catalogs,
// dp.*) leaves it as it is, so that asking for it does not change it.

// Last is what is known of an answer beside its rows.
type Last struct {
	cost       privacy.Cost
	balance    *ledger.Balance // after it; nil means it was free
	error      width           // the largest half-width that the notice tells
	known      bool            // there is one, of the columns themselves
	confidence float64
	notice     Notice
}

// lastOf is what dp.last shows of an answer; nil means its notice says nothing.
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
	l.error, l.known = widest(p.plan)
	return l
}

// tell replaces the notice by what it has become.
func (l *Last) tell(told []Notice) {
	if l != nil && len(told) > 0 {
		l.notice = told[0]
	}
}

// lastRows: cost, remaining, budget, error, confidence, notice, detail. Amounts are ε under the pure accountant, ρ
// under zCDP, as in dp.budget, and under either in the unit of the cost; remaining is what was left when it was
// charged, of what was free what is left now. Before the first answer all is NULL.
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

func (a *account) balanceAfter(ctx context.Context, s *Session, cost privacy.Cost, charge accounting.Charge) string {
	if s.Dataset == nil {
		return ""
	}
	b, err := a.ledger.Balance(ctx, s.User, s.Dataset.ID)
	if err != nil {
		return ""
	}
	if !b.Holds(charge) {
		return fmt.Sprintf("the budget does not hold it: %s of %s is left", b.Left().In(b.Limit), b.Limit)
	}
	if b.Limit.Rho.Pico() != 0 && !cost.IsZero() {
		return balanceText(cost, b.After(charge))
	}
	return fmt.Sprintf("%s of %s", b.After(charge).Left(), b.Limit)
}

// costText gives a cost and the balance after it: in ε, or, under zCDP, in shares of the budget.
func (a *account) costText(ctx context.Context, s *Session, cost privacy.Cost) string {
	b, err := a.ledger.Balance(ctx, s.User, s.Dataset.ID)
	if err != nil {
		return cost.String()
	}
	return balanceText(cost, b)
}

func balanceText(cost privacy.Cost, b ledger.Balance) string {
	charge := accounting.Price(cost)
	if b.Limit.Rho.Pico() == 0 {
		text := fmt.Sprintf("%s; %s of %s left", cost, b.Left().Epsilon, b.Limit.Epsilon)
		return text + windowText(b)
	}
	text := fmt.Sprintf("%s %% of your budget (%s)", privacy.Percent(b.Share(charge), 2), cost)
	if more := b.More(charge); more > 0 {
		text += fmt.Sprintf("; about %d more such question%s", more, plural(int(more)))
	} else {
		text += "; not enough is left for another"
	}
	return text + windowText(b)
}

func windowText(b ledger.Balance) string {
	if b.WindowEnds.IsZero() {
		return ""
	}
	return " until " + b.WindowEnds.UTC().Format(time.DateOnly)
}

package pipeline

import (
	"context"
	"log/slog"
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
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

// ownRows are the rows of dp.budget, dp.charges, dp.releases or dp.last; dp.tables and dp.columns come from the policy, so the
// sandbox makes them itself.
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

// budgetRows are the rows of an account in dp.budget: one, and under either accountant one for each of its two conditions.
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

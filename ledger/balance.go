package ledger

import (
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// A Balance is told beside an account, of which it is what may be shown: what was spent by each condition of its
// filter. What it says of a cost that nobody has paid yet is what the filter will say.

// Left is what the user may still spend: the lesser of the window's and the lifetime's rest. Under either accountant it
// names ε and ρ, of which a cost needs to fit one.
func (b Balance) Left() privacy.Cost {
	rest := b.Limit.Less(b.Spent)
	if b.LifeLimit.IsZero() {
		return rest
	}
	return rest.Least(b.LifeLimit.Less(b.LifeSpent))
}

// Holds reports whether the user could pay a charge.
func (b Balance) Holds(c accounting.Charge) bool {
	return holds(b.Limit, b.Spent, c) && (b.LifeLimit.IsZero() || holds(b.LifeLimit, b.LifeSpent, c))
}

func holds(limit, spent privacy.Cost, c accounting.Charge) bool {
	return accounting.Filter{Limit: limit.Less(spent)}.Holds(c)
}

// After is the balance after a charge.
func (b Balance) After(c accounting.Charge) Balance {
	b.Spent, b.LifeSpent = after(b.Limit, b.Spent, c), after(b.LifeLimit, b.LifeSpent, c)
	return b
}

func after(limit, spent privacy.Cost, c accounting.Charge) privacy.Cost {
	more := accounting.Filter{Limit: limit.Less(spent), Spent: c}.Shown()
	if limit.Epsilon.Micro() == 0 {
		more.Epsilon = privacy.Epsilon{}
	}
	if limit.Rho.Pico() == 0 {
		more.Rho = privacy.Rho{}
	}
	return spent.Plus(more)
}

// Share is what of the budget a charge is, by the condition of which it is the lesser part.
func (b Balance) Share(c accounting.Charge) float64 {
	share := func(cost, limit int64) float64 {
		if cost == 0 && limit == 0 {
			return 0
		}
		return float64(cost) / float64(limit)
	}
	rho := share(c.Cost.Rho.Pico()+min(c.Converted.Pico(), 1e18), b.Limit.Rho.Pico())
	switch {
	case b.Limit.Rho.Pico() == 0:
		return share(c.Cost.Epsilon.Micro(), b.Limit.Epsilon.Micro())
	case b.Limit.Epsilon.Micro() == 0 || c.Cost.Rho.Pico() != 0:
		return rho
	}
	return min(rho, share(c.Cost.Epsilon.Micro(), b.Limit.Epsilon.Micro()))
}

// More is how many further charges of one kind the balance holds, about.
func (b Balance) More(c accounting.Charge) int64 {
	left, most := b.Left(), int64(0)
	if rho := c.Concentrated().Cost.Rho.Pico(); rho > 0 {
		most = left.Rho.Pico() / rho
	}
	if c.Cost.Rho.Pico() == 0 && c.Cost.Epsilon.Micro() > 0 {
		most = max(most, left.Epsilon.Micro()/c.Cost.Epsilon.Micro())
	}
	return most
}

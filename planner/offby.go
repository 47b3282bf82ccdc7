package planner

import (
	"math/big"
	"strings"
)

// How far a column is off that is a count or a sum times a constant, or several of them: sum(price) is a sum of cents times
// 0.01, and its error is that of the cents times 0.01.

// weighedCount is a column of counts or sums with what one is worth.
type weighedCount struct {
	column int
	worth  *big.Rat
}

// unitOf is what one of the whole numbers of a sum is worth.
func unitOf(s *summand) *big.Rat {
	if s == nil {
		return nil
	}
	return s.unit
}

// linearShown reads an expression over a leaf's row as count columns times constants; nil: it is something else.
func (b *binder) linearShown(leaf int, e *expr) (out []weighedCount) {
	if leaf < 0 {
		return nil
	}
	decimals := -1
	for len(e.args) > 0 {
		if strings.HasPrefix(e.op, "cast:") && e.Typmod() < 0 && numeric(e) {
			if e.Type().Integer() && !e.args[0].Type().Integer() {
				decimals = 0
			}
			e = e.args[0]
			continue
		}
		if e.op != "round" || len(e.args) != 2 || !e.args[1].isConstant() || e.args[1].parameter > 0 {
			break
		}
		n, ok := mustConstant(e.args[1]).(int64)
		if !ok || n < 0 || n > mostDecimals {
			return nil
		}
		decimals, e = int(n), e.args[0]
	}
	keys := len(b.questions[leaf].keys)
	for _, p := range linearOf(e) {
		switch {
		case p.times.Sign() == 0 || len(p.of) == 0:
			continue
		case len(p.of) > 1 || p.of[0].column < keys || decimals >= 0 && decimalsOf(p.times) > decimals:
			return nil
		}
		out = append(out, weighedCount{p.of[0].column - keys, new(big.Rat).Abs(p.times)})
	}
	return out
}

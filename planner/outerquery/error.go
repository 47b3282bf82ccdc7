package outerquery

import (
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/planner/semantics"
)

// How far a column is off that is a count or a sum times a constant, or several of them: sum(price) is a sum of cents times
// 0.01, and its error is that of the cents times 0.01.

// WeighedCount is a column of counts or sums with what one is worth.
type WeighedCount struct {
	Column int
	Worth  *big.Rat
}

// linearShown reads an expression over a leaf's row as count columns times constants; nil: it is something else.
func (b *Query) linearShown(leaf int, e *semantics.Expr) (out []WeighedCount) {
	if leaf < 0 {
		return nil
	}
	decimals := -1
	for len(e.Args) > 0 {
		if strings.HasPrefix(e.Op, "cast:") && e.Typmod() < 0 && semantics.Numeric(e) {
			if e.Type().Integer() && !e.Args[0].Type().Integer() {
				decimals = 0
			}
			e = e.Args[0]
			continue
		}
		if e.Op != "round" || len(e.Args) != 2 || !e.Args[1].IsConstant() || e.Args[1].Parameter > 0 {
			break
		}
		n, ok := semantics.MustConstant(e.Args[1]).(int64)
		if !ok || n < 0 || n > semantics.MaxDecimals {
			return nil
		}
		decimals, e = int(n), e.Args[0]
	}
	keys := len(b.Questions[leaf].Keys)
	for _, p := range semantics.LinearOf(e) {
		switch {
		case p.Times.Sign() == 0 || len(p.Of) == 0:
			continue
		case len(p.Of) > 1 || p.Of[0].Column < keys || decimals >= 0 && semantics.DecimalsOf(p.Times) > decimals:
			return nil
		}
		out = append(out, WeighedCount{p.Of[0].Column - keys, new(big.Rat).Abs(p.Times)})
	}
	return out
}

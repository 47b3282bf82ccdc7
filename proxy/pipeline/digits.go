package pipeline

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/internal/digits"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What the values of an answer tell of their own errors: SELECT sex, avg(income) FROM people GROUP BY sex has averages
// of which no ± is known before they are released, and then "avg about ±1,400 a value at 95 %". Under SET dp.digits =
// significant they have the digits that this leaves. Both are made of what was released, and cost nothing.

// looksAtErrors reports whether the errors of an answer's values are found when these are there.
func looksAtErrors(plan *plans.Plan) bool {
	return plan.WantsErrors() || plan.Significant || slices.Contains(tellsOff(plan), true)
}

// isComputed reports whether a column has no half-width before anything is released, nor a clamp that will give one.
func isComputed(c plans.OutColumn) bool {
	_, known := widthOf(c)
	return c.Noisy && !known && len(c.Climbs) == 0
}

// mostToldCells bounds the cells that are redrawn for a notice that nobody has asked for, and the values that are
// computed of them; mostToldTime ends it where these are costly, so that an answer that was paid for is there.
const (
	mostToldCells = 256
	mostToldTime  = 200 * time.Millisecond

	mostDigitsTime = 2 * time.Second // where values have the digits that their errors leave
)

// tellsOff are the columns whose errors the notice tells when their values are there: numbers that are computed from
// few cells, without an engine, and under dp.digits all that have no half-width. nil means none are.
func tellsOff(plan *plans.Plan) []bool {
	if !plan.Significant && !isQuickRedrawn(plan) {
		return nil
	}
	told := make([]bool, len(plan.Columns))
	for i, c := range plan.Columns {
		number := c.Type.Integer() || c.Type.Floating() || c.Type == policy.NumericType
		told[i] = isComputed(c) && isShown(c) && !isChosen(c) && number
	}
	return told
}

// isQuickRedrawn reports whether redraws bound a plan's computed columns, and take next to no time.
func isQuickRedrawn(plan *plans.Plan) bool {
	if !isRedrawn(plan) || plan.Outer.Direct == nil || isMadeUp(plan) || len(plan.Measures) == 0 {
		return false
	}
	if redrawsFor(plan.Confidence.Float()) > leastRedraws {
		return false
	}
	cells := len(plan.Columns)
	if at := plan.Outer.Direct.Leaf; at >= 0 {
		cells *= max(1, plan.Leaves[at].Rows)
	}
	drawn := 0
	for _, m := range plan.Measures {
		drawn += m.Spec.Cells * max(1, len(m.Counters))
	}
	return max(cells, drawn) <= mostToldCells
}

// offOf is how far a number may be off by its interval, nil where that is not known.
func offOf(v policy.Value, b bar) *big.Rat {
	x, ok := numberOf(v)
	low, okLow := numberOf(b.low)
	high, okHigh := numberOf(b.high)
	if !ok || !okLow || !okHigh {
		return nil
	}
	return digits.Off(x, low, high)
}

// offTexts say of the columns that tellsOff names how far their values are off: the largest of each.
func offTexts(plan *plans.Plan, rows sandbox.Rows, bars [][]bar) []string {
	var widths said
	var unknown []string
	for i, told := range tellsOff(plan) {
		if !told {
			continue
		}
		var most *big.Rat
		without := 0
		for r, row := range rows.Data {
			off := offOf(row[i], bars[r][i])
			if off == nil {
				without++
			} else if most == nil || off.Cmp(most) > 0 {
				most = off
			}
		}
		switch name := columnName(plan, i); {
		case most == nil:
			unknown = append(unknown, name)
		case most.Sign() <= 0: // no redraw moves it
			widths.add("about ±0", name)
		case without > 0:
			widths.add("about ±"+digits.Text(most)+" where it is known", name)
		default:
			widths.add("about ±"+digits.Text(most), name)
		}
	}
	var texts []string
	if len(widths.texts) == 1 && len(widths.names[0]) == shownColumns(plan) {
		texts = append(texts, "error "+widths.texts[0]+" a value at "+percent(plan.Confidence))
	} else if len(widths.texts) > 0 {
		texts = append(texts, widths.text()+" a value at "+percent(plan.Confidence))
	}
	if len(unknown) > 0 {
		texts = append(texts, "no ± is known for "+namesText(unknown))
	}
	return texts
}

// toldOff adds to the notice of an answer what its values tell of their errors.
func toldOff(notices []Notice, texts []string) []Notice {
	if len(notices) == 0 || len(texts) == 0 {
		return notices
	}
	out := slices.Clone(notices)
	out[0].Message += "; " + strings.Join(texts, "; ")
	return out
}

// significant is a value of a column with the digits that its error leaves, of the same type; as it is where that is
// not known, or would not fit.
func significant(c plans.OutColumn, v policy.Value, off *big.Rat) policy.Value {
	x, ok := numberOf(v)
	if !ok || off == nil || off.Sign() <= 0 {
		return v
	}
	_, decimals := digits.Place(off)
	n := digits.Round(x, off)
	switch v := v.(type) {
	case int64:
		if n.IsInt() && n.Num().IsInt64() && wholeWithin(c.Type, n.Num()) == n.Num().Int64() {
			return n.Num().Int64()
		}
	case float64:
		if c.Type == policy.Float4 {
			f, _ := n.Float32()
			return float64(f)
		}
		f, _ := n.Float64()
		return f
	case policy.Numeric:
		return significantNumeric(c, v, n, int32(decimals))
	}
	return v
}

// significantNumeric has as many decimals as the error leaves, or as the column's type says.
func significantNumeric(c plans.OutColumn, v policy.Numeric, n *big.Rat, decimals int32) policy.Numeric {
	if decimals > v.Scale {
		return v
	}
	scale := decimals
	if c.Typmod >= 0 {
		scale = v.Scale
	}
	power := func(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
	whole := new(big.Rat).Mul(n, new(big.Rat).SetInt(power(scale)))
	out := policy.Numeric{Coefficient: new(big.Int).Set(whole.Num()), Scale: scale}
	if c.Typmod >= 0 {
		if precision, _ := policy.NumericTypmod(c.Typmod); out.Coefficient.CmpAbs(power(int32(precision))) >= 0 {
			return v
		}
	}
	return out
}

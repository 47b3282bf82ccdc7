package pipeline

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// notices say what an answer cost, what is left and how exact it is. They depend on the plan, the charge and the
// analyst's own account, never on a true value; what is said of the values that are sent is added to them
// (mostlyNoise).
func (a *Answerer) notices(ctx context.Context, x *execution, p compiled, bought purchase) []Notice {
	plan, found := p.plan, x.prior.cost
	public := publicParts(plan)
	if answers := x.prior.answers; len(plan.Measures) == 0 && answers != nil {
		parts := append([]string{"free"}, public...)
		if !found.IsZero() {
			parts[0] = "cost " + a.account.costText(ctx, x.Session, found)
		}
		return []Notice{{Message: strings.Join(parts, "; "), Detail: strings.Join(plan.Notes, "\n")}}
	}
	if len(plan.Measures) == 0 && !found.IsZero() {
		return []Notice{{Message: "cost " + a.account.costText(ctx, x.Session, found) + "; no key was found that enough " + x.Dataset.Unit.Name + "s have"}}
	}
	if len(plan.Measures) == 0 {
		if len(public) == 0 {
			return nil
		}
		return []Notice{{Message: "free: " + strings.Join(public, "; "), Detail: strings.Join(plan.Notes, "\n")}}
	}
	parts := make([]string, 0, 2+len(p.errors))
	if bought.charged.IsZero() {
		parts = append(parts, freeOf(plan))
	} else {
		parts = append(parts, "cost "+a.account.costText(ctx, x.Session, bought.charged))
	}
	parts = append(parts, p.errors...)
	if plan.WantsErrors() && hasChoices(plan) {
		parts = append(parts, "bounds of what is chosen are NULL: it is near in rows, and how far that is in values the rows alone know")
	}
	n := Notice{Message: strings.Join(parts, "; ")}
	n.Detail = strings.Join(slices.Concat(firstUses(plan, bought), refinements(plan, bought), public, plan.Notes), "\n")
	return []Notice{n}
}

// dated adds of which moment the rows are that were counted, where those are a snapshot's: "cost ε 0.1; …; as of
// 2026-11-23 02:00 UTC". The releases are those of an answer that has just been made of them.
func (r *reader) dated(ctx context.Context, s *Session, plan *plans.Plan, ids []int64, notices []Notice) []Notice {
	var moments []string
	for i, m := range plan.Measures {
		release, err := r.estimate(ctx, s, ids[i], m.Through())
		if err != nil || release.asOf == 0 {
			continue
		}
		if at := dateOf(release.asOf); !slices.Contains(moments, at) {
			moments = append(moments, at)
		}
	}
	if len(moments) == 0 || len(notices) == 0 {
		return notices
	}
	slices.Sort(moments)
	out := slices.Clone(notices)
	out[0].Message += "; as of " + strings.Join(moments, " and ")
	return out
}

// dateOf writes the moment of a snapshot; 0 means nothing.
func dateOf(asOf int64) string {
	if asOf == 0 {
		return ""
	}
	return time.Unix(0, asOf).UTC().Format("2006-01-02 15:04") + " UTC"
}

// publicParts says what of an answer comes from the policy alone, lest it be taken for what the data say.
func publicParts(plan *plans.Plan) []string {
	var parts []string
	for _, table := range plan.Probed {
		parts = append(parts, "no rows of "+table+" are shown, whether there are any or not: they are private, and dp.probes is empty")
	}
	for _, leaf := range plan.Leaves {
		text := "these are the values that the policy declares, whether rows have them or not"
		switch {
		case leaf.Found:
			text = "these are the keys that were found"
		case len(leaf.Counts) > 0:
			text = "no row satisfies the condition, or none that does adds anything, by the domains that the policy declares (SELECT * FROM dp.columns)"
		}
		if len(leaf.Measures()) == 0 && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return parts
}

// freeOf names what a free answer was read from.
func freeOf(plan *plans.Plan) string {
	var names []string
	for _, m := range plan.Measures {
		names = append(names, m.Name)
	}
	if len(plan.Measures) == 1 && mechanisms.Is[*mechanisms.Alarm](plan.Measures[0].Spec) {
		return "free: a question of your run " + names[0]
	}
	return "free: answered from " + strings.Join(names, ", ") + ", which you have paid for"
}

// unlessNearer says when a release does not answer what it could: a question gets the least error that its ε buys
// (docs/adr/0189).
func unlessNearer(m *plans.Measure) string {
	if m.Declared != nil && m.Declared.Insist || mechanisms.Is[*mechanisms.Synthetic](m.Spec) {
		return ""
	}
	return ", where no count within dp.epsilon is more exact (SET dp.release = on: there too)"
}

// firstUses announces releases that are free from now on.
func firstUses(plan *plans.Plan, bought purchase) []string {
	if bought.charged.IsZero() {
		return nil
	}
	var lines []string
	for _, m := range plan.Measures {
		if m.Held || m.Declared == nil && m.Kind != "range" {
			continue
		}
		what := "every count over its columns"
		if mechanisms.Is[*mechanisms.Synthetic](m.Spec) {
			what = "whatever is asked of its made-up rows"
		}
		if m.Kind == "range" {
			what = "every range over " + m.Grain[0].Name
		}
		if mechanisms.Is[*mechanisms.Alarm](m.Spec) {
			continue // what it was asked tells
		}
		if o, ok := m.Spec.Kind.(*mechanisms.Online); ok {
			lines = append(lines, fmt.Sprintf("first use of online release %s: %s; every count by its cells is free from now on, until its %d updates are used%s", m.Name, m.Cost, o.Updates, unlessNearer(m)))
			continue
		}
		lines = append(lines, fmt.Sprintf("first use of release %s: %s; %s is free from now on%s", m.Name, m.Cost, what, unlessNearer(m)))
	}
	return lines
}

// percent writes a confidence with as many digits as it needs, up to ten.
func percent(c mechanisms.Confidence) string {
	return strconv.FormatFloat(100*c.Float(), 'g', 10, 64) + " %"
}

// leafErrorText gives the half-width of the counts that a computed answer is made of; dp.error_columns gives that of
// the computed values themselves. A sum's is told in the units of what is summed, the largest of several.
func leafErrorText(plan *plans.Plan, at string) string {
	var widest int64 = -1
	var sums *big.Rat
	for _, leaf := range plan.Leaves {
		for _, c := range leaf.Counts {
			for _, run := range c.Runs {
				if run.Threshold != nil && run.Measure >= 0 {
					return fmt.Sprintf("an answer is right where the count is at least %d away from its threshold, %s", plan.Measures[run.Measure].Spec.Margin(plan.Confidence), at)
				}
				if run.Measure < 0 || run.Selected != nil {
					continue
				}
				own := runWidth(plan, &run, plan.Confidence)
				if c.Unit == nil {
					widest = max(widest, own)
				} else if off := new(big.Rat).Mul(new(big.Rat).SetInt64(own), c.Unit); sums == nil || off.Cmp(sums) > 0 {
					sums = off
				}
			}
		}
	}
	var from []string
	if widest >= 0 {
		from = append(from, fmt.Sprintf("counts with error ±%d", widest))
	}
	if sums != nil {
		from = append(from, "sums with error ±"+figure(sums))
	}
	if len(from) == 0 {
		return ""
	}
	of := "(SET dp.error_columns = on shows that of the result)"
	if plan.ErrorColumns {
		of = "(_low and _high show that of the result)"
	}
	return "computed from " + strings.Join(from, " and ") + " " + at + " each " + of
}

// errorParts say how exact an answer will be. They take time, to find half-widths, and belong to planning: what takes
// too much is refused before the charge.
func errorParts(plan *plans.Plan) (parts []string) {
	if len(plan.Measures) == 0 {
		return nil
	}
	if e := errorText(plan); e != "" {
		parts = append(parts, e)
	}
	return append(parts, pickErrors(plan, "at "+percent(plan.Confidence))...)
}

// errorText gives the half-widths of the counts in the answer, and of sums in its units.
func errorText(plan *plans.Plan) string {
	low, high, ok := halfWidths(plan)
	at := "at " + percent(plan.Confidence)
	if !ok {
		return leafErrorText(plan, at)
	}
	computed := computedText(plan)
	switch least, most := low.String(), high.String(); {
	case least == most && computed != "":
		return fmt.Sprintf("error ±%s a value (%s) %s", most, columnOf(plan, most), at) + computed
	case least == most:
		return "error ±" + most + " a value " + at
	default:
		return fmt.Sprintf("error ±%s (%s) to ±%s (%s) a value %s", least, columnOf(plan, least), most, columnOf(plan, most), at) + computed
	}
}

// halfWidths are the least and the largest half-width of a plan's columns; false means none is known by constants.
func halfWidths(plan *plans.Plan) (low, high width, ok bool) {
	for _, c := range plan.Columns {
		own, known := widthOf(c)
		if !known {
			continue
		}
		if !ok || own.cmp(low) < 0 {
			low = own
		}
		if !ok || own.cmp(high) > 0 {
			high = own
		}
		ok = true
	}
	return low, high, ok
}

// columnOf names the first column with a half-width of this figure.
func columnOf(plan *plans.Plan, figure string) string {
	for _, c := range plan.Columns {
		if own, ok := widthOf(c); ok && c.Name != "" && own.String() == figure {
			return c.Name
		}
	}
	return ""
}

// figure writes a half-width, rounded up: whole numbers as they are, others with as many digits as matter.
func figure(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	decimals, scaled, ten := 0, new(big.Rat).Set(x), big.NewRat(10, 1)
	for ; scaled.Cmp(big.NewRat(1000, 1)) < 0 && !scaled.IsInt() && decimals < 30; decimals++ {
		scaled.Mul(scaled, ten)
	}
	up := new(big.Int).Add(scaled.Num(), new(big.Int).Sub(scaled.Denom(), big.NewInt(1)))
	up.Quo(up, scaled.Denom())
	return new(big.Rat).Quo(new(big.Rat).SetInt(up), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))).FloatString(decimals)
}

// computedText says where the error of columns is shown that are computed from several counts or sums, beside columns
// whose error the notice tells: it is not theirs.
func computedText(plan *plans.Plan) string {
	computed := 0
	for _, c := range plan.Columns {
		if _, known := widthOf(c); c.Noisy && c.Bound == plans.Unbounded && !known {
			computed++
		}
	}
	for _, leaf := range plan.Leaves {
		for _, c := range leaf.Counts {
			if slices.ContainsFunc(c.Runs, func(r plans.Run) bool { return r.Selected != nil }) {
				computed-- // what is chosen has an error of its own kind, which is told
			}
		}
	}
	if computed <= 0 {
		return ""
	}
	if plan.ErrorColumns {
		return "; _low and _high show that of computed columns"
	}
	return "; SET dp.error_columns = on shows that of computed columns"
}

// An answer that is mostly noise says so: SELECT city, sum(spent) FROM orders GROUP BY 1 at a small ε may be off by 490
// in each row, while the rows shown are near 34. The note is made of the rows that are sent and of the plan's
// half-widths, so it says nothing that who reads both could not say herself; it is no part of what an answer costs or
// of whether there is one.

// mostlyNoise tells of the column that is most lost in its noise, where at least half of the values shown are no
// further from zero than they may be off; "" where there is none. What is computed from several counts has no
// half-width of its own, and rows with bounds beside them show theirs.
func mostlyNoise(plan *plans.Plan, rows sandbox.Rows) string {
	if len(rows.Columns) != len(plan.Columns) {
		return ""
	}
	told, noisy := "", 0
	var most *big.Rat
	for _, c := range plan.Columns {
		if c.Noisy {
			noisy++
		}
	}
	for i, c := range plan.Columns {
		off, known := widthOf(c)
		if !known || !c.Noisy || c.Bound != plans.Unbounded {
			continue
		}
		near, ok := middle(rows.Data, i)
		if !ok || off.cmp(near) <= 0 {
			continue
		}
		ratio := new(big.Rat).Quo(off.rat(), new(big.Rat).Add(near.rat(), big.NewRat(1, 1<<20))) // of zero, too, it is a number
		if most != nil && ratio.Cmp(most) <= 0 {
			continue
		}
		if most, told = ratio, fmt.Sprintf("mostly noise: ±%s on values near %s", off, near); noisy > 1 {
			told += " (" + c.Name + ")"
		}
	}
	return told
}

// middle is the median of the sizes of a column's values; false means it has no numbers.
func middle(rows [][]policy.Value, column int) (median width, ok bool) {
	sizes := make([]width, 0, 8)
	for _, row := range rows {
		if n, ok := sizeOf(row[column]); ok {
			sizes = append(sizes, n)
		}
	}
	if len(sizes) == 0 {
		return width{}, false
	}
	slices.SortFunc(sizes, width.cmp)
	return sizes[(len(sizes)-1)/2], true
}

func sizeOf(v policy.Value) (size width, ok bool) {
	if whole, ok := v.(int64); ok && whole != math.MinInt64 {
		return width{rows: max(whole, -whole)}, true
	}
	n := new(big.Rat)
	switch v := v.(type) {
	case int64:
		n.SetInt64(v)
	case float64:
		if n.SetFloat64(v) == nil { // infinite, or no number
			return width{}, false
		}
	case policy.Numeric:
		if v.Coefficient == nil {
			return width{}, false
		}
		n.SetInt(v.Coefficient)
		if scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(v.Scale, 0))), nil); scale.Sign() > 0 {
			n.Quo(n, new(big.Rat).SetInt(scale))
		}
	default:
		return width{}, false
	}
	return width{off: n.Abs(n)}, true
}

// toldNoise adds to the notice of an answer that it is mostly noise.
func toldNoise(notices []Notice, plan *plans.Plan, rows sandbox.Rows) []Notice {
	text := mostlyNoise(plan, rows)
	if text == "" || len(notices) == 0 {
		return notices
	}
	out := slices.Clone(notices)
	out[0].Message += "; " + text
	return out
}

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
	parts := make([]string, 0, 3+len(p.errors))
	if bought.charged.IsZero() {
		parts = append(parts, freeOf(plan))
	} else {
		parts = append(parts, "cost "+a.account.costText(ctx, x.Session, bought.charged))
	}
	parts = append(parts, p.errors...)
	if text := boundsText(plan); text != "" {
		parts = append(parts, text)
	}
	if plan.WantsErrors() && hasChoices(plan) {
		whose := strings.Join(append([]string{"what is chosen"}, unknownError(plan, nil)...), ", ")
		parts = append(parts, "bounds of "+whose+" are NULL: it is near in rows, and how far that is in values the rows alone know")
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
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
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

// How far each shown column may be off. Notices, EXPLAIN, prices and the bounds of dp.low and dp.high all go by this,
// and say nothing else: what goes into a computed column has errors of its own, which are not the column's.

// isChosen reports whether a column is a value that was chosen, or a yes or no that was asked for: what is said of
// these is in ranks, and not in values (pickErrors).
func isChosen(c plans.OutColumn) bool {
	return c.Source != nil && slices.ContainsFunc(c.Source.Runs, func(r plans.Run) bool {
		return r.Measure >= 0 && (r.Selected != nil || r.Threshold != nil)
	})
}

// isRedrawn reports whether redraws bound a plan's computed columns, row by row. Noise around what is chosen, or around
// an online release, cannot be drawn afresh. What is read from counts, such as a quantile from a range release, can be.
func isRedrawn(plan *plans.Plan) bool {
	return len(plan.Columns) > 0 && !hasChoices(plan) && !isOnline(plan) && redrawsFor(plan.Confidence.Float()) > 0
}

// errorParts say how exact the shown columns will be: each by its own ±, or that none is known. They take time, to find
// half-widths, and belong to planning: what takes too much is refused before the charge.
//
// Of the columns in known the values of the answer have an error, which the notice gains when they are there (toldOff).
func errorParts(plan *plans.Plan, known []bool) (parts []string) {
	parts = knownErrors(plan)
	if unknown := unknownError(plan, known); len(unknown) > 0 {
		return append(parts, "no ± is known for "+namesText(unknown))
	}
	return parts
}

// knownErrors are those that are known before anything is released.
func knownErrors(plan *plans.Plan) (parts []string) {
	if len(plan.Measures) == 0 {
		return nil
	}
	at := "at " + percent(plan.Confidence)
	var widths said
	for i, c := range plan.Columns {
		if w, known := widthOf(c); known && isShown(c) {
			widths.add("±"+w.String(), columnName(plan, i))
		}
	}
	switch {
	case len(widths.texts) == 1 && len(widths.names[0]) == shownColumns(plan):
		parts = append(parts, "error "+widths.texts[0]+" a value "+at)
	case len(widths.texts) > 0:
		parts = append(parts, widths.text()+" a value "+at)
	}
	parts = append(parts, pickErrors(plan, at)...)
	if len(plan.Columns) == 0 && !hasChoices(plan) && !isMadeUp(plan) {
		parts = append(parts, "no ± is known")
	}
	return parts
}

// isMadeUp reports whether rows of a plan are synthetic, of which no error is promised.
func isMadeUp(plan *plans.Plan) bool {
	return slices.ContainsFunc(plan.Leaves, func(l *plans.Leaf) bool { return l.Synthetic != nil })
}

// boundsText says where a session finds bounds of the shown columns of which no ± is known; "" where there are none.
func boundsText(plan *plans.Plan) string {
	unknown := unknownError(plan, tellsOff(plan))
	if len(unknown) == 0 || !isRedrawn(plan) {
		return ""
	}
	whose := "its"
	if len(unknown) > 1 {
		whose = "their"
	}
	if plan.ErrorColumns {
		return "_low and _high are " + whose + " bounds"
	}
	return "SET dp.error_columns = on shows " + whose + " bounds"
}

// unknownError names the shown columns of which no error is known, but for those of which the answer will tell one.
func unknownError(plan *plans.Plan, told []bool) (names []string) {
	for i, c := range plan.Columns {
		if told != nil && told[i] {
			continue
		}
		if _, known := widthOf(c); isShown(c) && !known && !isChosen(c) && len(c.Climbs) == 0 {
			names = append(names, columnName(plan, i))
		}
	}
	return names
}

// isShown reports whether a column holds noise and is shown itself, rather than an end of its interval.
func isShown(c plans.OutColumn) bool { return c.Noisy && c.Bound == plans.Unbounded }

// shownColumns is how many columns of a plan hold noise and are shown.
func shownColumns(plan *plans.Plan) (n int) {
	for _, c := range plan.Columns {
		if isShown(c) {
			n++
		}
	}
	return n
}

// columnName names a column: where its name is another's too, or it has none, by its place.
func columnName(plan *plans.Plan, column int) string {
	name := plan.Columns[column].Name
	for i, c := range plan.Columns {
		if i != column && c.Name == name || name == "?column?" || name == "" {
			return fmt.Sprintf("column %d", column+1)
		}
	}
	return name
}

// mostNamed is how many columns of one error a notice names, and mostSaid how many errors.
const mostNamed, mostSaid = 5, 5

// namesText lists names, the first of many.
func namesText(names []string) string {
	if more := len(names) - mostNamed; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// said is what is said of columns, each text once with the columns that it is said of.
type said struct {
	texts []string
	names [][]string
}

func (s *said) add(text, name string) {
	at := slices.Index(s.texts, text)
	if at < 0 {
		at = len(s.texts)
		s.texts, s.names = append(s.texts, text), append(s.names, nil)
	}
	s.names[at] = append(s.names[at], name)
}

// text is each text behind the names of its columns, the first of many.
func (s *said) text() string {
	var list []string
	for i, text := range s.texts {
		if i == mostSaid && len(s.texts) > mostSaid+1 {
			list = append(list, fmt.Sprintf("and %d more, which EXPLAIN (FORMAT JSON) lists", len(s.texts)-i))
			break
		}
		list = append(list, namesText(s.names[i])+" "+text)
	}
	return strings.Join(list, ", ")
}

// widest is the largest half-width of a plan's columns; false means none is known by constants.
func widest(plan *plans.Plan) (most width, ok bool) {
	for _, c := range plan.Columns {
		if own, known := widthOf(c); known && (!ok || own.cmp(most) > 0) {
			most, ok = own, true
		}
	}
	return most, ok
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
	n, ok := numberOf(v)
	if !ok {
		return width{}, false
	}
	return width{off: n.Abs(n)}, true
}

// numberOf is a value as a number.
func numberOf(v policy.Value) (n *big.Rat, ok bool) {
	n = new(big.Rat)
	switch v := v.(type) {
	case int64:
		n.SetInt64(v)
	case float64:
		if n.SetFloat64(v) == nil { // infinite, or no number
			return nil, false
		}
	case policy.Numeric:
		if v.Coefficient == nil {
			return nil, false
		}
		n.SetInt(v.Coefficient)
		if scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(v.Scale, 0))), nil); scale.Sign() > 0 {
			n.Quo(n, new(big.Rat).SetInt(scale))
		}
	default:
		return nil, false
	}
	return n, true
}

// toldNoise adds to the notice of an answer what its rows show: that it is mostly noise, or mostly of no value.
func toldNoise(notices []Notice, plan *plans.Plan, rows sandbox.Rows) []Notice {
	if len(notices) == 0 {
		return notices
	}
	out := slices.Clone(notices)
	for _, text := range []string{mostlyNoise(plan, rows), mostlyNull(plan, rows), nothingInside(plan, rows)} {
		if text != "" {
			out[0].Message += "; " + text
		}
	}
	return out
}

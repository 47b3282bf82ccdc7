package rewrite

import (
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Predicates are positive: a comparison with NULL is NULL, and a condition takes that as not true.

// maxRanges is the number of ranges beyond which a set of cells is written as cell numbers.
const maxRanges = 24

// maxListed is the number of cells beyond which their numbers are looked up, which some engines do not do by a list.
const maxListed = 64

func (w *writer) predicate(p predicate.Pred) string {
	switch p := p.(type) {
	case predicate.AllOf:
		return w.join([]predicate.Pred(p), " AND ")
	case predicate.AnyOf: // an engine asks a row once for what all parts say, and first if it finds that few rows have it
		if shared, rest := predicate.Factored(p); len(shared) > 0 {
			return w.predicate(predicate.All(append(shared, rest)...))
		}
		return w.join([]predicate.Pred(p), " OR ")
	case predicate.InCells:
		return w.inCells(p)
	case predicate.Compare:
		return w.compareValue(p.Column, w.use(p.Column), p.Op, p.Value)
	case predicate.Past:
		return w.past(p)
	case predicate.Between:
		return w.compareColumns(p)
	case predicate.Sum:
		return w.compareSum(p)
	case predicate.Never:
		return "false"
	}
	w.fail("a predicate of an unknown kind")
	return "false"
}

func (w *writer) join(parts []predicate.Pred, word string) string {
	if len(parts) == 0 {
		w.fail("an empty conjunction or disjunction")
	}
	if len(parts) > MaxSQL/leastArm {
		w.tooLong()
		return "false"
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = w.predicate(p)
	}
	return "(" + strings.Join(texts, word) + ")"
}

// anyOf and allOf write conditions of which there may be one, or none.
func anyOf(parts []string) string { return several(parts, " OR ", "false") }

func allOf(parts []string, otherwise string) string { return several(parts, " AND ", otherwise) }

func several(parts []string, word, otherwise string) string {
	switch len(parts) {
	case 0:
		return otherwise
	case 1:
		return parts[0]
	}
	return "(" + strings.Join(parts, word) + ")"
}

func (w *writer) inCells(p predicate.InCells) string {
	if w.at(p.Column); w.err != nil {
		return "false"
	}
	d := p.Column.Domain
	after := 0
	for _, s := range p.Spans {
		if s.From < after || s.To <= s.From || s.To > d.Size() {
			w.fail("cells that are not sorted, not disjoint or not in the domain")
			return "false"
		}
		after = s.To
	}
	if w.onRaw && p.Column.Open == nil && (!d.Ordered() || len(p.Spans) <= maxRanges) {
		return w.inStored(p.Column, p.Spans)
	}
	n := w.use(p.Column)
	var parts []string
	if predicate.Contains(p.Spans, d.Null) {
		parts = append(parts, n+" IS NULL")
	}
	if len(p.Spans) > maxRanges {
		parts = append(parts, w.cellNumbers(p.Column, n, p.Spans))
	} else {
		for _, s := range p.Spans {
			if s.From < d.Valued() {
				parts = append(parts, w.between(p.Column, n, s.From, min(s.To, d.Valued())))
			}
		}
	}
	return anyOf(parts)
}

// between holds for the cells from a to b, b left out. Normalised values lie within the domain.
func (w cells) between(c *policy.Column, n string, a, b int) string {
	low := func(cell int) string {
		if !c.Domain.Ordered() {
			return w.whole(int64(cell))
		}
		return w.constant(c, c.Domain.Low(cell))
	}
	var parts []string
	if a > 0 {
		parts = append(parts, w.operate(n, ">=", low(a)))
	}
	if b < c.Domain.Valued() {
		parts = append(parts, w.operate(n, "<", low(b)))
	}
	return allOf(parts, n+" IS NOT NULL")
}

// cellNumbers looks the number of the cell up in a list, or, of many, in a text of bits, a 1 for each cell that is
// meant: of the 100,000 parts of p_type LIKE 'PROMO%' there are 16,700. The last bit is of no cell.
func (w cells) cellNumbers(c *policy.Column, n string, spans []mechanisms.Span) string {
	number := w.cast(w.number(c, n), "int4")
	if spans = predicate.Intersect(spans, predicate.FromTo(0, c.Domain.Valued())); len(spans) == 0 {
		return "false"
	}
	if period, once := comesRound(spans); period > 0 {
		rest := w.operate(number, "%", w.int4(period))
		parts := []string{w.oneOf(rest, once, period)}
		if len(once) <= fewSpans {
			parts[0] = w.amongSpans(rest, once, period)
		}
		if from := spans[0].From; from > 0 {
			parts = append(parts, w.operate(number, ">=", w.int4(from)))
		}
		return allOf(append(parts, w.operate(number, "<", w.int4(spans[len(spans)-1].To))), "true")
	}
	return w.oneOf(number, spans, c.Domain.Valued())
}

// maxRounds is how many spans there may be in a period.
const maxRounds = 8

// comesRound finds after how many cells spans repeat, from the first on to the last, and which of the numbers below
// that they have: of at::time BETWEEN '09:00' AND '17:00' over three years of minutes 480 of 1,440 instead of half a
// million. 0 means they do not, or are few. What it finds is held against all of them.
func comesRound(spans []mechanisms.Span) (period int, once []mechanisms.Span) {
	least, most := spans[0].From, spans[len(spans)-1].To
	for k := 1; k <= maxRounds && 3*k < len(spans); k++ {
		period = spans[1+k].From - spans[1].From
		var all []mechanisms.Span
		once = nil
		for at := -2 * period; at < most; at += period { // the first may be cut off at the domain's end, the second is whole
			for _, s := range spans[1 : 1+k] {
				if from, to := max(s.From+at, least), min(s.To+at, most); from < to {
					all = append(all, mechanisms.Span{From: from, To: to})
				}
			}
		}
		if !slices.Equal(all, spans) {
			continue
		}
		for _, s := range spans[1 : 1+k] {
			from, to := s.From%period, (s.To-1)%period+1
			if from < to {
				once = append(once, mechanisms.Span{From: from, To: to})
			} else {
				once = append(once, mechanisms.Span{From: 0, To: to}, mechanisms.Span{From: from, To: period})
			}
		}
		slices.SortFunc(once, func(a, b mechanisms.Span) int { return a.From - b.From })
		return period, once
	}
	return 0, nil
}

// fewSpans is how many spans are compared with their ends.
const fewSpans = 4

// amongSpans reports whether a number from 0 to below another one lies in few spans.
func (w *composed) amongSpans(number string, spans []mechanisms.Span, below int) string {
	parts := make([]string, len(spans))
	for i, s := range spans {
		var ends []string
		if s.From > 0 {
			ends = append(ends, w.operate(number, ">=", w.int4(s.From)))
		}
		if s.To < below {
			ends = append(ends, w.operate(number, "<", w.int4(s.To)))
		}
		parts[i] = allOf(ends, number+" IS NOT NULL")
	}
	return anyOf(parts)
}

// oneOf reports whether a number below another one lies in spans.
func (w *composed) oneOf(number string, spans []mechanisms.Span, below int) string {
	var list []string
	var bits strings.Builder
	for _, s := range spans {
		for cell := s.From; cell < min(s.To, below); cell++ {
			list = append(list, strconv.Itoa(cell))
			bits.WriteString(strings.Repeat("0", cell-bits.Len()) + "1")
		}
	}
	if len(list) == 0 {
		return "false"
	}
	if len(list) <= maxListed {
		return dialect.Fill(w.dialect.OneOfNumbers, number, strings.Join(list, w.dialect.Comma))
	}
	bits.WriteByte('0')
	return dialect.Fill(w.dialect.OneOfMany, number, strings.Join(list, w.dialect.Comma), bits.String(), strconv.Itoa(bits.Len()-1))
}

// compareSum writes a comparison of what columns add up to, of which nothing can fail (sum.go).
func (w *writer) compareSum(p predicate.Sum) string {
	column := derived.ComputedColumn(p.Terms).Column()
	if column == nil {
		w.fail("a sum of numbers that are too large")
		return "false"
	}
	return w.compareValue(column, w.computedColumn(p.Terms, column), p.Op, p.Value)
}

// compareValue compares n, a value of a column's domain or NULL, with a constant. A constant outside the domain decides
// it for every value that is not NULL, so only constants within the domain are written.
func (w cells) compareValue(c *policy.Column, n, op string, v policy.Value) string {
	if w.err != nil {
		return "false"
	}
	d := c.Domain
	low, ok := predicate.Order(d.Min, v)
	high, also := predicate.Order(d.Max, v)
	if !slices.Contains([]string{"<", "<=", ">", ">=", "=", "<>"}, op) || !ok || !also {
		w.fail("a comparison that its column does not have")
		return "false"
	}
	above, below := high < 0, low > 0
	switch {
	case above && (op == "<" || op == "<=" || op == "<>"), below && (op == ">" || op == ">=" || op == "<>"):
		return n + " IS NOT NULL"
	case above || below:
		return "false"
	}
	if number, isNumeric := v.(policy.Numeric); isNumeric {
		return w.decimals(c).compare(n, op, number)
	}
	return w.operate(n, op, w.constant(c, v))
}

// past writes a comparison of how far a value lies past the start of its cell, all of which are of one length.
func (w *writer) past(p predicate.Past) string {
	n, d := w.use(p.Column), p.Column.Domain
	if w.err != nil {
		return "false"
	}
	least, isWhole := policy.UnitsOf(d.Min)
	switch d.Min.(type) {
	case policy.Timestamp, policy.Timestamptz:
		n = w.micros(n)
	case int64:
	default:
		isWhole = false
	}
	if !isWhole || d.Ladder != nil || d.Step.Whole < 1 || predicate.Opposite[p.Op] == "" {
		w.fail("a comparison that its column does not have")
		return "false"
	}
	return w.operate(w.operate(w.above(n, least), "%", w.whole(d.Step.Whole)), p.Op, w.whole(p.By))
}

// compareColumns writes a comparison of two columns of one type, whose normalised values have one type as well.
func (w *writer) compareColumns(p predicate.Between) string {
	a, b := w.use(p.Left), w.use(p.Right)
	if w.err != nil {
		return "false"
	}
	if !slices.Contains([]string{"<", "<=", ">", ">=", "=", "<>"}, p.Op) || p.Left.Type != p.Right.Type || p.Left.Typmod != p.Right.Typmod ||
		!p.Left.Domain.Ordered() || !p.Right.Domain.Ordered() {
		w.fail("a comparison that its columns do not have")
		return "false"
	}
	return w.operate(a, p.Op, b)
}

// Of a column with more cells than a plan looks at, a measure's SQL tells pieces of neighbouring cells apart. The piece
// of a normalised value is a total function of it: comparisons with the least values of the pieces, by halves, and,
// where many are of one length, the cell's number divided by that length.

// checkCuts holds the pieces against their columns.
func checkCuts(m *plans.Measure) error {
	if m.Cuts != nil && len(m.Cuts) != len(m.Grain) {
		return errors.New("rewrite: pieces of other columns than the grain's")
	}
	for i, starts := range m.Cuts {
		if starts == nil {
			continue
		}
		d := m.Grain[i].Domain
		if d == nil || !d.Ordered() || m.Grain[i].Open != nil || len(starts) == 0 || starts[0] != 0 || starts[len(starts)-1] >= d.Size() ||
			d.Null >= 0 && starts[len(starts)-1] != d.Null {
			return errors.New("rewrite: pieces of other cells than their column's")
		}
		for n := 1; n < len(starts); n++ {
			if starts[n] <= starts[n-1] {
				return errors.New("rewrite: pieces that are not in order")
			}
		}
	}
	return nil
}

// piece writes the number of the cell, or of the piece, of a normalised value n of the i-th column of the grain.
func (w cells) piece(m *plans.Measure, i int, n string) string {
	c := m.Grain[i]
	if m.Cuts == nil || m.Cuts[i] == nil {
		return w.cell(c, n)
	}
	starts, null := m.Cuts[i], c.Domain.Null >= 0
	if null {
		starts = starts[:len(starts)-1]
	}
	runs := plans.EvenRuns(starts, c.Domain.Regular)
	number := w.compared(c, n, starts, runs, func(r plans.EvenRun) string { return w.pieceIn(c, n, starts, r) })
	if !null {
		return number
	}
	return "CASE WHEN " + n + " IS NULL THEN " + strconv.Itoa(len(starts)) + " ELSE " + number + " END"
}

// compared finds the run that a value that is not NULL lies in, by halves, and says what of says there.
func (w cells) compared(
	c *policy.Column, n string, starts []int, runs []plans.EvenRun, of func(plans.EvenRun) string,
) string {
	half := len(runs) / 2
	if half == 0 {
		return of(runs[0])
	}
	return "CASE WHEN " + w.operate(n, "<", w.constant(c, c.Domain.Low(starts[runs[half].From]))) +
		" THEN " + w.compared(c, n, starts, runs[:half], of) + " ELSE " + w.compared(c, n, starts, runs[half:], of) + " END"
}

// pieceIn is the number of the piece of a value that lies in a run.
//
// Claim: nothing can fail, whichever branches an engine evaluates. A cell's number, a piece's first cell, how many
// pieces there are, and a length, which is above 0, are at most 2^30 (policy.MaxDomain),
// so that sums and differences of two of them lie within an int4.
func (w cells) pieceIn(c *policy.Column, n string, starts []int, r plans.EvenRun) string {
	if r.Length == 0 {
		return strconv.Itoa(r.From)
	}
	number := w.operate(w.cellsPast(c, n, starts[r.From]), "/", w.int4(r.Length))
	if r.From > 0 {
		number = w.operate(number, "+", w.int4(r.From))
	}
	return number
}

// cellsPast is how many cells the one of a value lies behind another.
func (w cells) cellsPast(c *policy.Column, n string, from int) string {
	number := w.cast(w.number(c, n), "int4")
	if from > 0 {
		number = w.operate(number, "-", w.int4(from))
	}
	return number
}

// cell writes the number of the cell of a normalised value n; it agrees with policy.Domain.Cell.
func (w cells) cell(c *policy.Column, n string) string {
	if c.Domain == nil {
		w.fail("a column without a domain")
		return "NULL"
	}
	number := w.number(c, n)
	if c.Domain.Null < 0 {
		return number
	}
	return "COALESCE(" + number + ", " + strconv.Itoa(c.Domain.Null) + ")"
}

// number is the cell of a value that is not NULL; NULL for NULL.
func (w cells) number(c *policy.Column, n string) string {
	d := c.Domain
	if !d.Ordered() {
		return n
	}
	if d.Ladder != nil {
		starts, each := make([]int, d.Regular), make([]plans.EvenRun, d.Regular)
		for i := range starts {
			starts[i], each[i].From = i, i
		}
		number := w.compared(c, n, starts, each, func(r plans.EvenRun) string { return strconv.Itoa(r.From) })
		return "CASE WHEN " + n + " IS NOT NULL THEN " + number + " END"
	}
	least, most, _ := wholeEnds(d)
	switch d.Min.(type) {
	case int64:
		return w.steps(n, least, most, d.Step.Whole)
	case policy.Date:
		return w.quotient(w.days(n, w.constant(c, d.Min)), d.Step.Whole)
	case policy.Timestamp, policy.Timestamptz:
		return w.steps(w.micros(n), least, most, d.Step.Whole)
	case policy.Numeric:
		if step := d.Step.Decimal.Coefficient; step != nil && step.Sign() > 0 {
			return w.decimals(c).cell(n)
		}
		w.fail("a step that is not positive")
		return "NULL"
	case float64:
		return w.floatCell(c, n)
	}
	w.fail("a domain of a type that is not ordered")
	return "NULL"
}

// steps is floor((n − least)/step) for an integer n from least to most. Where the public width of the domain exceeds 64
// bits the difference is taken in a wider type.
func (w cells) steps(n string, least, most, step int64) string {
	if new(big.Int).Sub(big.NewInt(most), big.NewInt(least)).IsInt64() {
		return w.quotient(w.above(n, least), step)
	}
	return dialect.Fill(w.dialect.WideSteps, n, strconv.FormatInt(least, 10), strconv.FormatInt(step, 10))
}

// quotient is floor(above/step) for integers above ≥ 0 and step ≥ 1.
func (w cells) quotient(above string, step int64) string {
	if step == 1 {
		return above
	}
	if step < 1 {
		w.fail("a step that is not positive")
	}
	return w.operate(above, "/", w.whole(step))
}

// days is the number of days from one to another.
func (w cells) days(n, from string) string { return dialect.Fill(w.dialect.Days, n, from) }

// micros is the number of microseconds from 1970 to a finite moment, in UTC for a moment with a zone: the session's
// zone has no part in it.
func (w cells) micros(n string) string { return dialect.Fill(w.dialect.Micros, n) }

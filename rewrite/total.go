package rewrite

import (
	"math/big"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// What a column's values add up to is found as she would find it: the database adds them up as they are, and what
// brings the sum to whole numbers of the grid is done once a group, not once a row.
//
//	sum(income) of numeric(12,2) from 0 to 100000:
//	  rows whose income her policy allows, each as it is stored:  sum(t."income")
//	  the release's whole number, of cents:                       sum(t."income") * 100
//	avg(income), of which a sum from the middle is observed:      sum(t."income") * 100 - 5000000 * count(t."income")
//
// Claim. A total is the sum over its rows of factor's value, where that is not NULL. Proof. factor is round(n·10^−e) −
// c of a normalised value n, cut at Low and High, which the ends of the domain keep (bounded). Where the column's
// values have no more than −e digits after the point (Domain.Scale, which the database's own type keeps) n·10^−e is
// whole, and Σ(n·10^−e − c) = 10^−e·Σn − c·m over the m values that are not NULL, which sum and count leave out. No sum
// overflows: 2^63 rows of a number within the domain have fewer digits than a decimal holds, which is seen to when the
// SQL is written. Limits. Were there more digits all the same, the total alone would be rounded, not each value; one
// unit's rows then still move it by at most Low and High a row, since rounding grows with what is rounded and whole
// numbers move it by themselves.

// total writes what the rows of a group add up to, in the type wide, NULL where there are none; empty means of the sum
// this cannot be said.
func (w *writer) total(sum *plans.Sum, filter string) string {
	f, ok := alone(sum)
	if !ok {
		return ""
	}
	n := w.use(f.Column)
	each, scale, shift := w.addend(f, n)
	if w.err != nil || each == "" {
		return ""
	}
	total := w.summed(w.timesRows(each, shift != nil), scale) + filter
	if shift != nil {
		total = shift(total)
	}
	if f.Centre != 0 {
		count := w.cast(w.countOf(n, filter), "wide")
		total = w.operate(total, "-", w.operate(w.literal(strconv.FormatInt(f.Centre, 10), "wide"), "*", count))
	}
	if times := sum.Terms[0].Times; times != 1 {
		total = w.operate(w.literal(strconv.FormatInt(times, 10), "wide"), "*", total)
	}
	return total
}

// sumOf is what a counter adds up of each row; nil means it counts rows.
func sumOf(m *plans.Measure, counter int) *plans.Sum {
	if m.Sums == nil {
		return nil
	}
	return m.Sums[counter]
}

// factorsOf are those of all terms of a sum.
func factorsOf(sum *plans.Sum) (list []plans.Factor) {
	if sum == nil {
		return nil
	}
	for _, t := range sum.Terms {
		list = append(list, t.Factors...)
	}
	return list
}

// alone is the factor of a sum of one, a whole number of times.
func alone(sum *plans.Sum) (f plans.Factor, ok bool) {
	if len(sum.Terms) != 1 || len(sum.Terms[0].Factors) != 1 || sum.Over > 1 || sum.Over < 0 {
		return f, false
	}
	if f = sum.Terms[0].Factors[0]; f.Filled { // NULL counts as something
		return f, false
	}
	size := new(big.Int).Mul(new(big.Int).Abs(big.NewInt(sum.Terms[0].Times)), big.NewInt(max(-f.Low, f.High, 1)))
	return f, size.Cmp(big.NewInt(maxAdded)) <= 0 && max(f.Centre, -f.Centre) <= maxAdded
}

// addend is what is added up of a column's normalised values n, how many digits after the point that has, and how the
// sum is brought to the grid; nil means it is on it.
func (w cells) addend(f plans.Factor, n string) (each string, scale int32, shift func(total string) string) {
	if !onlyWithin(f) {
		return "", 0, nil
	}
	if w.exact(f) {
		return w.exactAddend(f, n)
	}
	f.Centre = 0
	return w.uncut(f, n), 0, nil
}

// exact reports whether a column's values are on the factor's grid as they are, and a sum of them has room.
func (w cells) exact(f plans.Factor) bool {
	d := f.Column.Domain
	switch d.Min.(type) {
	case int64:
		return f.Exponent == 0
	case policy.Numeric:
		if d.Scale < 0 || -f.Exponent < int(d.Scale) || -f.Exponent > maxShifted {
			return false
		}
		if w.dialect.Digits == 0 {
			return true
		}
		held, err := fixedOf(f.Column, w.dialect)
		if err != nil || held.wide > w.dialect.Narrow {
			return false
		}
		least, most := held.ends()
		return max(digits(least), digits(most))+int32(-f.Exponent)+digitsOfRows <= w.dialect.Digits
	}
	return false
}

// maxShifted is the most digits that a sum is shifted by: 10^18 is a whole number.
const maxShifted = 18

// digitsOfRows are those of the largest number of rows.
const digitsOfRows = 19

func (w cells) exactAddend(f plans.Factor, n string) (each string, scale int32, shift func(total string) string) {
	if f.Column.Type.Integer() {
		return w.cast(n, "int8"), 0, nil
	}
	power := strconv.FormatInt(tenTo(-f.Exponent), 10)
	if w.dialect.Digits == 0 { // what the database may hold as whole numbers, too
		n = w.cast(n, "numeric")
	} else if held, err := fixedOf(f.Column, w.dialect); err == nil { // which exact has seen
		scale = held.scale
	}
	return n, scale, func(total string) string {
		switch {
		case w.dialect.Digits > 0:
			return w.cast(w.operate(total, "*", w.literal(power, w.dialect.DecimalOf(int32(len(power)), 0))), "wide")
		case f.Exponent == 0:
			return total
		}
		return w.operate(total, "*", w.literal(power, "wide"))
	}
}

// onlyWithin reports whether the domain's ends keep a factor within its own, so that nothing of a row is compared with
// these.
func onlyWithin(f plans.Factor) bool {
	c := f.Column
	if c.Table == nil || c.Open != nil || c.Domain == nil || !c.Domain.Ordered() || !ofThePolicy(c) || f.Exponent > maxExponent || f.Exponent < -maxExponent {
		return false
	}
	for _, end := range []policy.Value{c.Domain.Min, c.Domain.Max} {
		list := gridAt(end, f.Exponent)
		if len(list) == 0 {
			return false
		}
		for _, k := range list {
			if k.Sub(k, big.NewInt(f.Centre)).Cmp(big.NewInt(f.Low)) < 0 || k.Cmp(big.NewInt(f.High)) > 0 {
				return false
			}
		}
	}
	return true
}

// ofThePolicy reports whether a column's values are those of a table's of the policy, or NULL: a join, a union or a
// sub-query hands them on as they are. What is computed may be of another type than its domain says.
func ofThePolicy(c *policy.Column) bool {
	return c.Table.Derived == nil || slices.ContainsFunc(c.Table.Base(), func(t *policy.Table) bool {
		return slices.ContainsFunc(t.Columns, func(own *policy.Column) bool {
			if own.Type != c.Type || own.Typmod != c.Typmod || own.Open != nil || own.Domain == nil || !own.Domain.Ordered() {
				return false
			}
			low, ok := predicate.Order(own.Domain.Min, c.Domain.Min)
			high, also := predicate.Order(own.Domain.Max, c.Domain.Max)
			return ok && also && low == 0 && high == 0
		})
	})
}

// Where a measure reads rows as they are stored, and no row reaches the sum whose value is not in the column's domain,
// the stored values themselves are added up, and none is brought into its domain first.

// settledColumns are the columns of which that is so, by the measure's condition or by the column's own rules. Claim.
// Of each row that an aggregate sees, the stored value of such a column is its normalised one, and all that is asked of
// it is total on every stored value, whenever the database evaluates it. Proof. The condition, or the rules that leave
// rows out, hold of values of the domain alone, and nothing is clamped; what is left is its sum as it is (exact) and
// its count.
func (w cells) settledColumns(m *plans.Measure) (list []*policy.Column) {
	for _, sum := range m.Sums {
		if sum == nil {
			continue
		}
		f, ok := alone(sum)
		if !ok || slices.Contains(list, f.Column) || slices.Contains(m.Grain, f.Column) || !onlyWithin(f) ||
			!w.exact(f) || !declaredAlone(m.Where, f.Column) {
			continue
		}
		if w.sumsOnly(m, f.Column) {
			list = append(list, f.Column)
		}
	}
	return list
}

// sumsOnly reports whether a measure's counters ask of a column for its sum as it is and whether it is NULL, and no
// more.
func (w cells) sumsOnly(m *plans.Measure, c *policy.Column) bool {
	for i, p := range m.Counters {
		sum := sumOf(m, i)
		if slices.ContainsFunc(factorsOf(sum), func(f plans.Factor) bool { return f.Column == c }) {
			if own, ok := alone(sum); !ok || !onlyWithin(own) || !w.exact(own) {
				return false
			}
		}
		rest := withoutNulls(p, []*policy.Column{c})
		if rest == nil {
			continue
		}
		if columns, _ := predicate.Columns(rest, nil); slices.Contains(columns, c) {
			return false
		}
	}
	return true
}

// declaredAlone reports whether only rows with a value of the column's domain are read, and it is the stored one.
func declaredAlone(where predicate.Pred, c *policy.Column) bool {
	if c.Outside == policy.OutsideClamp {
		return false
	}
	if c.Outside == policy.OutsideExclude && c.Nulls == policy.NullExclude {
		return true
	}
	return slices.ContainsFunc(predicate.Conjuncts(where), func(p predicate.Pred) bool {
		in, ok := p.(predicate.InCells)
		return ok && in.Column == c && c.Domain.Null >= 0 && !predicate.Contains(in.Spans, c.Domain.Null)
	})
}

// hoisted is a measure whose condition says what all of its counters do of one column: that it is not NULL. The
// database then leaves a row out before it calculates with it, and need not look again.
//
//	SELECT city, avg(income) …: rows are counted, and their incomes added up, WHERE income >= 0 AND income <= 100000
//
// Claim. The answer is the same. Proof. A counter counts the same rows. A group of which no row is left is not
// returned, and all of its counters were 0: a combination of cells that does not come counts 0.
func hoisted(m *plans.Measure) *plans.Measure {
	own := *m
	for _, p := range predicate.Conjuncts(m.Counters[0]) {
		c := notNull(p)
		if c == nil || !c.Domain.Ordered() || slices.ContainsFunc(m.Counters, func(q predicate.Pred) bool {
			return !slices.ContainsFunc(predicate.Conjuncts(q), func(part predicate.Pred) bool { return notNull(part) == c })
		}) {
			continue
		}
		counters := make([]predicate.Pred, len(own.Counters))
		for i, q := range own.Counters {
			counters[i] = withoutNulls(q, []*policy.Column{c})
		}
		own.Counters, own.Where = counters, predicate.All(own.Where, p)
	}
	return &own
}

// withoutNulls is a predicate without those of its parts that say no more than that one of some columns is not NULL.
func withoutNulls(p predicate.Pred, columns []*policy.Column) predicate.Pred {
	var left []predicate.Pred
	for _, part := range predicate.Conjuncts(p) {
		if c := notNull(part); c == nil || !slices.Contains(columns, c) {
			left = append(left, part)
		}
	}
	switch len(left) {
	case 0:
		return nil
	case 1:
		return left[0]
	}
	return predicate.AllOf(left)
}

// notNull is the column of which a predicate says that it is not NULL, and no more; nil means it says something else.
func notNull(p predicate.Pred) *policy.Column {
	if in, ok := p.(predicate.InCells); ok && in.Column.Domain != nil && len(in.Spans) == 1 && in.Spans[0] == (mechanisms.Span{From: 0, To: in.Column.Domain.Null}) {
		return in.Column
	}
	return nil
}

// counter writes a counter of the measure: a number of rows, an int8, or what they add up to, wide and not yet cut.
func (w *writer) counter(m *plans.Measure, i int) (expression string, summed bool) {
	p := m.Counters[i]
	if sum := sumOf(m, i); sum != nil && len(sum.Terms) > 0 {
		var columns []*policy.Column
		for _, f := range factorsOf(sum) {
			if !f.Filled {
				columns = append(columns, f.Column) // of which a NULL adds nothing
			}
		}
		return w.sum(sum, w.filter(withoutNulls(p, columns))), true
	}
	if c := notNull(p); c != nil && c.Domain.Ordered() {
		return w.countOf(w.use(c), ""), false // without a filter, of a value that is looked at anyway
	}
	return w.countOf("*", w.filter(p)), false
}

// rounded is a floating number as a whole one, the even one at the half.
func (w *composed) rounded(n string) string { return dialect.Fill(w.dialect.Rounded, n) }

// What counts the rows up to a bound compares each row's rank, and PostgreSQL takes each row apart as far as that,
// where her own `SELECT count(*) FROM visits` reads none of its columns, and `GROUP BY ward` the first few. Where an
// index has what is read of the rows beyond the bound, all rows are counted, and theirs are taken away:
//
//	SELECT … AS c1, sum(s.k1) AS k1
//	FROM (SELECT t.ward AS x1, count(*) AS k1 FROM visits AS t WHERE t.minutes > 20 GROUP BY 1
//	      UNION ALL
//	      SELECT t.ward AS x1, 0 - count(*) AS k1 FROM visits AS t WHERE t.minutes > 20 AND (t.dp_rank > 10 OR t.dp_rank IS NULL) GROUP BY 1) AS s
//	GROUP BY 1
//
// Claim. Each counter of each cell is what it is with dp_rank >= 1 AND dp_rank <= 10 AND who IS NOT NULL in the place
// of the two parts, so that whatever was claimed of that, its sensitivity first of all, is true of this. Proof. Both
// parts are of one statement, so of the rows of one snapshot. By Rank, which the same snapshot proves, a row's rank is
// NULL, which the condition does not let through and the second part has, or 1 and more, of a row that names its unit:
// of these the condition lets through those up to 10, and the second part has the others. Every row is of one kind. A
// counter is a number of rows, or what exact numbers of them add up to (sum.go), neither rounded nor cut before all
// parts are added: that of all rows is that of those let through, and that of the others. A cell all of whose rows are
// beyond counts 0, as one that does not come does. The index says which plan is quick and proves nothing. Limits. How
// long it takes depends on how many rows lie beyond the bound, as how long a scan takes depends on how many there are.

// countsBeyond reports whether a measure may be counted so: its rows are counted by their stored values, or all of
// them.
func countsBeyond(m *plans.Measure, d dialect.Dialect) bool {
	t := m.Table
	if !d.PartialIndexes || t.Derived != nil || t.Via != nil || t.RowRank == "" || t.NullEach || m.Open != nil || m.Window != nil {
		return false
	}
	w := writerOf(m, d, assumed{ranks: ranksBeyond})
	return !w.groupsBounded(m) && w.tallies(m)
}

// beyond holds for the rows beyond the bound.
func (w *columns) beyond() string {
	rank := "t." + w.name(w.table.RowRank)
	return "(" + w.operate(rank, ">", w.whole(w.table.MaxRowsPerUnit)) + " OR " + rank + " IS NULL)"
}

// taken are counters that are taken away from what they are added to.
func (w *composed) taken(counters []string) (list []string) {
	for _, c := range counters {
		list = append(list, w.operate(w.whole(0), "-", c))
	}
	return list
}

// A count of the rows from a value on compares each row's with the domain's other end as well, which her own `WHERE age
// > 40` does not. DuckDB knows the least and the largest value of each block of rows, and looks at none of a block for
// a comparison that all or none of them satisfy, but for one of two it looks at all. So all rows from the value on are
// counted, less those past the end, which it looks for where there may be some:
//
//	SELECT (SELECT count(*) FROM people AS t WHERE t.age >= 41) - (SELECT count(*) FROM people AS t WHERE t.age > 119) AS k1
//
// Claim. It is count(*) WHERE age >= 41 AND age <= 119. Proof. Both counts are of one statement, so of the rows of one
// snapshot, under the same other conditions. 41 lies in the domain, which ends at 119: so a row past the end is one
// from 41 on, and the second count has just those of the first that the claim has not. A NULL is in neither; NaN, above
// every number, is in both, or from below in neither. Limits. Where blocks have rows past the end, these are read
// twice.

// end is how the condition on a column that reaches to one end of its domain is written in one part of a count.
type end struct {
	column *policy.Column
	past   bool // the rows past the end; else all up to the other
}

// within writes it for the cells from a on, or, with a at 0, for those before the cell that comes after them.
func (e *end) within(w cells, raw string, a, b int) string {
	d := e.column.Domain
	switch {
	case e.past && a > 0:
		return w.operate(raw, ">", w.constant(e.column, d.Max))
	case e.past:
		return w.operate(raw, "<", w.constant(e.column, d.Min))
	case a > 0:
		return w.operate(raw, ">=", w.constant(e.column, d.Low(a)))
	}
	return w.operate(raw, "<", w.constant(e.column, d.Low(b)))
}

// oneEnded finds the column of which a count is written so: the condition on it is a range of cells, beside others of
// other columns, which reaches to one end of its domain; nil means none.
func (w *composed) oneEnded(m *plans.Measure) *policy.Column {
	if !w.dialect.EndsApart || !countsAlone(m) {
		return nil
	}
	parts := predicate.Conjuncts(m.Where)
	for i, p := range parts {
		in, ok := p.(predicate.InCells)
		if !ok || in.Column.Open != nil || !in.Column.Domain.Ordered() || in.Column.Outside == policy.OutsideClamp || len(in.Spans) != 1 || !reachesOneEnd(in.Column.Domain, in.Spans[0]) {
			continue
		}
		if !slices.ContainsFunc(slices.Delete(slices.Clone(parts), i, i+1), func(o predicate.Pred) bool {
			columns, _ := predicate.Columns(o, nil)
			return slices.Contains(columns, in.Column)
		}) {
			return in.Column
		}
	}
	return nil
}

func reachesOneEnd(d *policy.Domain, s mechanisms.Span) bool {
	return s.To <= d.Valued() && (s.From > 0) != (s.To < d.Valued())
}

// lessPast writes such a count.
func (w *writer) lessPast(m *plans.Measure, c *policy.Column) string {
	var counts []string
	ruled := slices.DeleteFunc(slices.Clone(m.Table.Columns), func(o *policy.Column) bool { return o == c }) // whose values of the domain no rule leaves out
	for _, past := range []bool{false, true} {
		w.end = &end{c, past}
		from, conditions := w.storedRows(m, ruled)
		counts = append(counts, "(SELECT "+w.call("count", "*")+" FROM "+from+where("", conditions)+")")
	}
	w.end = nil
	return "SELECT " + w.operate(counts[0], "-", counts[1]) + " AS k1"
}

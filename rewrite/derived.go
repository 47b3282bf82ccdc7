package rewrite

import (
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

// derived writes the rows of a derived table: the unit u, what is used of its columns and keys.
func (w *writer) derived() string {
	switch d := w.table.Derived.(type) {
	case *derived.Paired:
		return w.paired(d)
	case *derived.Marked:
		return w.marked(d)
	case *derived.PerUnit:
		return w.perUnit(d)
	case *derived.Laddered:
		return w.laddered(d)
	case *derived.Matched:
		return w.matched(d)
	case *derived.Computed:
		return w.computed(d)
	case *derived.Tabulated:
		return w.tabulated(d)
	case *derived.Tested:
		return w.tested(d)
	case *derived.United:
		return w.united(d)
	case *derived.Windowed:
		return w.windowFunctions(d)
	}
	w.fail("a derivation of an unknown kind")
	return "()"
}

// sub are the writers of a derived table's inputs: their aliases differ at each depth, so that none hides another.
func (w *writer) sub(t *policy.Table, side string) *writer {
	return w.over(t, side+strconv.Itoa(w.depth))
}

// paired equates the units themselves, whatever keys are equal besides: no pair is of two units.
func (w *writer) paired(p *derived.Paired) string {
	a, b := w.sub(p.Left, "a"), w.sub(p.Right, "b")
	if len(p.Origins) > len(w.table.Columns) || len(p.KeyOrigins) != len(w.table.Keys) {
		w.fail("a pairing whose columns are not its inputs'")
		return "()"
	}
	from := map[bool]*writer{false: a, true: b}
	items := w.items(a, func(i int) string {
		if i >= len(p.Origins) { // whether an outer join has found a partner: a boolean's cell that is never NULL
			return "CASE WHEN " + b.alias + ".u IS NULL THEN 0 ELSE 1 END"
		}
		return from[p.Origins[i].Right].use(p.Origins[i].Column)
	}, func(i int) string { return from[p.KeyOrigins[i].Right].useKey(p.KeyOrigins[i].Column) })
	on := append([]string{w.equal(a.alias+".u", b.alias+".u")}, equals(a, b, p.On)...)
	for _, e := range p.Alike {
		on = append(on, w.operate(a.use(e.Left), "=", b.use(e.Right)))
	}
	on = append(append(on, a.conditions(p.Only)...), b.conditions(p.Where)...)
	join := "JOIN"
	if p.Outer {
		join = "LEFT JOIN"
	}
	return "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + a.input() + "\n  " + join + " " + b.input() + "\n    ON " + strings.Join(on, " AND ") + ")"
}

func equals(a, b *writer, on []derived.Equal) []string {
	var list []string
	for _, e := range on {
		list = append(list, a.equal(a.useKey(e.Left), b.useKey(e.Right)))
	}
	return list
}

// marked asks for each row whether the unit has others. Only the first column more is the mark's.
func (w *writer) marked(m *derived.Marked) string {
	a, b := w.sub(m.From, "a"), w.sub(m.Other, "b")
	items := w.passed(a, len(m.From.Columns))
	last, join := w.table.Columns[len(w.table.Columns)-1], ""
	if slices.Contains(w.used, last) {
		has, mark := "", " AS n"+strconv.Itoa(len(w.table.Columns))
		switch {
		case m.Other == m.From && len(m.On) == 0 && m.Where == nil: // itself
			has = a.alias + ".u IS NOT NULL"
		case w.dialect.MarksByJoin && (len(m.On) == 0 || w.dialect.ExactKeys):
			has, join = w.joinsOther(a, b, m)
		case w.dialect.MarksByJoin:
			return w.partedByOther(a, b, m, items, mark)
		default:
			has = w.hasOther(a, b, m)
		}
		items = append(items, "CASE WHEN "+has+" THEN 1 ELSE 0 END"+mark)
	}
	return "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + a.input() + join + ")"
}

// tested writes the rows of its input with the cell that their conditions make: the first of which the arm holds, or the
// last.
func (w *writer) tested(d *derived.Tested) string {
	a := w.sub(d.From, "a")
	items := w.passed(a, len(d.From.Columns))
	if last := len(w.table.Columns); slices.Contains(w.used, w.table.Columns[last-1]) {
		cell := "CASE"
		for k, arm := range d.Arms {
			cell += " WHEN " + a.predicate(arm) + " THEN " + strconv.Itoa(k)
		}
		items = append(items, cell+" ELSE "+strconv.Itoa(len(d.Arms))+" END AS n"+strconv.Itoa(last))
	}
	return "(SELECT " + w.named(items) + "\n  FROM " + a.input() + ")"
}

// partedByOther are the rows that have another, and below them those that have none:
//
//	(WITH a1 AS (SELECT a1.u AS u, a1.n2 AS n2, a1.j2 AS e1 FROM (…) AS a1),
//	  b1 AS (SELECT b1.u AS u, b1.j1 AS e1 FROM (…) AS b1 WHERE …)
//	  SELECT a1.*, 1 AS n3 FROM a1 WHERE EXISTS (SELECT 1 FROM b1 WHERE (b1.u OPERATOR(pg_catalog.=) a1.u) AND (b1.e1 OPERATOR(pg_catalog.=) a1.e1))
//	  UNION ALL
//	  SELECT a1.*, 0 AS n3 FROM a1 WHERE NOT EXISTS (…))
//
// Claim. It has the rows of From once each, with the marks that hasOther gives, whatever the types of units and keys
// are. Proof. EXISTS is true or false and never NULL, so each row of a1 is in one part and not in the other. It is true
// just where some row of b1 is equal in all, which is where ANY of its rows is; where ANY gives false or NULL, CASE
// makes 0 too. The same pairs of columns are compared, by the same operators. Nothing groups by a key: 1.0 and 1.00,
// 'a' and 'A' of a collation that takes them for equal, 0 and −0 are what = says of them, and where = is not the
// equality that the type groups by (citext, char(n) beside varchar) it makes no difference.
//
// The parts are a semi-join and an anti-join, by hash tables in batches or by sorting, whose steps do not grow with the
// square of the rows however little memory there is. What two parts name is read once, and kept, on the disk where it
// is long.
func (w *writer) partedByOther(a, b *writer, m *derived.Marked, items []string, mark string) string {
	others, on := []string{b.alias + ".u AS u"}, []string{w.equal(b.alias+".u", a.alias+".u")}
	for i, e := range equated(a, b, m) {
		key := "e" + strconv.Itoa(i+1)
		items, others = append(items, e[0]+" AS "+key), append(others, e[1]+" AS "+key)
		on = append(on, w.equal(b.alias+"."+key, a.alias+"."+key))
	}
	where := b.only(m.Where)
	part := func(not, n string) string {
		return "SELECT " + a.alias + ".*, " + n + mark + " FROM " + a.alias + " WHERE " + not + "EXISTS (SELECT 1 FROM " + b.alias + " WHERE " + strings.Join(on, " AND ") + ")"
	}
	return "(WITH " + a.alias + " AS (SELECT " + strings.Join(items, ", ") + "\n  FROM " + a.input() + "),\n  " +
		b.alias + " AS (SELECT " + strings.Join(others, ", ") + "\n  FROM " + b.input() + where + ")\n  " + part("", "1") + "\n  UNION ALL\n  " + part("NOT ", "0") + ")"
}

// joinsOther is hasOther as a join with the others' units and keys, each combination of them once:
//
//	(SELECT a1.u AS u, CASE WHEN h1.u IS NOT NULL THEN 1 ELSE 0 END AS n3
//	  FROM (…) AS a1
//	  LEFT JOIN (SELECT DISTINCT b1.u AS u, b1.j1 AS j1 FROM (…) AS b1 WHERE …) AS h1
//	    ON (h1.u OPERATOR(pg_catalog.=) a1.u) AND (h1.j1 OPERATOR(pg_catalog.=) a1.j2))
//
// Claim. It has the rows of From once each, with the marks that hasOther gives. Proof. A row of a meets the rows of h
// whose unit and keys equal its own. DISTINCT leaves one of those that are equal to each other, and of two that are
// not, at most one equals a's: equality on the types of units, and of keys where the dialect says that they are exact,
// is one of their texts (package backend refuses others before anything is asked), and on those of columns it is the
// one that DISTINCT goes by. So there is one h, or none, and there is one just where some row of b is equal. Where a
// unit or a key is NULL no row is equal, and ANY gives NULL or false, of which CASE makes 0 too.
func (w *writer) joinsOther(a, b *writer, m *derived.Marked) (has, join string) {
	h := "h" + strconv.Itoa(w.depth)
	others, on := []string{b.alias + ".u AS u"}, []string{w.equal(h+".u", a.alias+".u")}
	for i, e := range equated(a, b, m) {
		j := "j" + strconv.Itoa(i+1)
		others, on = append(others, e[1]+" AS "+j), append(on, w.equal(h+"."+j, e[0]))
	}
	where := b.only(m.Where)
	return h + ".u IS NOT NULL", "\n  LEFT JOIN (SELECT DISTINCT " + strings.Join(others, ", ") + " FROM " + b.input() + where + ") AS " + h + "\n    ON " + strings.Join(on, " AND ")
}

// hasOther is written as membership, which both engines look up in a table rather than row by row.
func (w *writer) hasOther(a, b *writer, m *derived.Marked) string {
	own, others := []string{w.joinable(a.alias + ".u")}, []string{w.joinable(b.alias + ".u")}
	for _, e := range equated(a, b, m) {
		own, others = append(own, w.joinable(e[0])), append(others, w.joinable(e[1]))
	}
	where := b.only(m.Where)
	row := w.dialect.Row
	if len(own) == 1 {
		row = w.dialect.RowOfOne
	}
	return w.inQuery(dialect.Fill(row, strings.Join(own, ", ")), "SELECT "+strings.Join(others, ", ")+" FROM "+b.input()+where)
}

// equated are what is equal in rows of a mark's two sides, beside the unit: keys, and columns. Of a column that may be
// NULL it is whether it is, and else the value.
func equated(a, b *writer, m *derived.Marked) (list [][2]string) {
	for _, e := range m.On {
		list = append(list, [2]string{a.useKey(e.Left), b.useKey(e.Right)})
	}
	for _, e := range m.Same {
		own, other, d := a.use(e.Left), b.use(e.Right), e.Left.Domain
		if d.Null >= 0 {
			isNull := func(n string) string { return "CASE WHEN " + n + " IS NULL THEN 1 ELSE 0 END" }
			list = append(list, [2]string{isNull(own), isNull(other)})
			least := "0"
			if d.Ordered() {
				least = a.constant(e.Left, d.Min)
			}
			own, other = "COALESCE("+own+", "+least+")", "COALESCE("+other+", "+least+")"
		}
		list = append(list, [2]string{own, other})
	}
	return list
}

// passed are the unit, and what is used of an input's first columns and its keys, which keep their places.
func (w *writer) passed(a *writer, columns int) []string {
	return w.items(a, func(i int) string {
		if i >= columns {
			return ""
		}
		return a.use(a.table.Columns[i])
	}, func(i int) string { return a.useKey(a.table.Keys[i]) })
}

// items are the unit of an input, and what is used of the table's columns, but for those that are empty, and of its
// keys.
func (w *writer) items(a *writer, column, key func(i int) string) []string {
	items := []string{a.alias + ".u AS u"}
	for i, c := range w.table.Columns {
		if slices.Contains(w.used, c) {
			if value := column(i); value != "" {
				items = append(items, value+" AS n"+strconv.Itoa(i+1))
			}
		}
	}
	for i, k := range w.table.Keys {
		if slices.Contains(w.usedKeys, k) {
			items = append(items, key(i)+" AS j"+strconv.Itoa(i+1))
		}
	}
	return items
}

// groupedByUnit are the unit and the keys of rows, as columns and as what the rows are grouped by.
func (w *writer) groupedByUnit(keys []derived.UnitKey) (items, groups []string) {
	items, groups = []string{w.alias + ".u AS u"}, []string{w.alias + ".u"}
	for i, k := range keys {
		key := w.unitKey(k)
		items, groups = append(items, key+" AS n"+strconv.Itoa(i+1)), append(groups, key)
	}
	return items, groups
}

// perUnit groups a unit's rows. Everything that is grouped by is part of the unit's own rows.
func (w *writer) perUnit(u *derived.PerUnit) string {
	a := w.sub(u.From, "a")
	items, groups := a.groupedByUnit(u.Keys)
	for _, k := range u.JoinKeys {
		key := a.useKey(k)
		groups = append(groups, key)
	}
	at := 0
	for _, k := range u.From.Keys {
		if !k.Unit && !slices.Contains(u.JoinKeys, k) {
			continue
		}
		if at++; !k.Unit {
			items = append(items, a.useKey(k)+" AS j"+strconv.Itoa(at))
		}
	}
	for i, g := range u.Aggregates {
		at := len(u.Keys) + i
		if at < len(w.table.Columns) && slices.Contains(w.used, w.table.Columns[at]) {
			items = append(items, a.unitAggregate(g, w.table.Columns[at], "")+" AS n"+strconv.Itoa(at+1))
		}
	}
	var conditions []string
	if derived.NullableUnit(u.From) { // such rows are units of their own, and none has a group that names it
		conditions = append(conditions, a.alias+".u IS NOT NULL")
	}
	conditions = append(conditions, a.conditions(u.Where)...)
	for _, k := range u.JoinKeys {
		if u.Present {
			conditions = append(conditions, a.useKey(k)+" IS NOT NULL")
		}
	}
	where := ""
	if len(conditions) > 0 {
		where = "\n  WHERE " + strings.Join(conditions, " AND ")
	}
	having := ""
	if u.Of != nil {
		having = "\n  HAVING " + w.operate(w.call("count", "*")+a.filter(u.Of), ">", w.whole(0))
	}
	return "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + a.input() + where + "\n  GROUP BY " + strings.Join(groups, ", ") + having + ")"
}

// cellsOfClasses returns the cells of each class of runs, and the classes in the order of their first cells.
func cellsOfClasses(runs []derived.ClassRun) (order []int32, cells map[int32][]mechanisms.Span) {
	cells = map[int32][]mechanisms.Span{}
	from := 0
	for _, run := range runs {
		spans := cells[run.Class]
		if len(spans) == 0 {
			order = append(order, run.Class)
		}
		if at := len(spans) - 1; at >= 0 && spans[at].To == from {
			spans[at].To += run.Length
		} else {
			spans = append(spans, mechanisms.Span{From: from, To: from + run.Length})
		}
		cells[run.Class] = spans
		from += run.Length
	}
	return order, cells
}

// unitKey is the value of the first cell of a row's class.
func (w *writer) unitKey(k derived.UnitKey) string {
	n := w.use(k.Column)
	if k.First == nil || w.err != nil {
		return n
	}
	d := k.Column.Domain
	cell := 0
	for _, run := range k.First {
		if run.Length < 1 || run.Length > d.Size()-cell || run.Class < 0 || int(run.Class) > cell {
			w.fail("classes of another number of cells")
			return n
		}
		cell += run.Length
	}
	if cell != d.Size() {
		w.fail("classes of another number of cells")
		return n
	}
	if !d.Ordered() && slices.Equal(k.First, derived.Singles(cell)) { // the number of the cell
		return n
	}
	if first := w.firstByNumber(k.Column, n, k.First); first != "" || w.err != nil {
		return first
	}
	order, classes := cellsOfClasses(k.First)
	if len(order) > MaxSQL/leastArm {
		w.tooLong()
		return n
	}
	var sql strings.Builder
	sql.WriteString("CASE")
	for _, first := range order {
		if int(first) == d.Null {
			continue // the CASE is NULL without an arm; a class that begins with the last cell is that cell alone
		}
		value := strconv.Itoa(int(first))
		if d.Ordered() {
			value = w.constant(k.Column, d.Low(int(first)))
		}
		sql.WriteString(" WHEN " + w.predicate(predicate.InCells{Column: k.Column, Spans: classes[first]}) + " THEN " + value)
	}
	return sql.String() + " END"
}

// leastArm is less than an arm of a CASE takes, in bytes.
const leastArm = 20

// firstByNumber is the least value of the first cell of a value's class, where classes are neighbouring cells, as of
// n / 10, which are found as pieces are, or come round, as of n % 10. Empty: they are others.
//
// Claim: nothing can fail. For numbers of cells see pieceIn; what they are made into lies in the domain, whose ends
// are no more than 2^63 apart. A bin is a constant number of microseconds, above 0, and begins with
// a moment of the domain; of a value before it, for which an engine might evaluate it, the bin is a moment too.
func (w cells) firstByNumber(c *policy.Column, n string, runs []derived.ClassRun) string {
	d := c.Domain
	if !d.Ordered() || d.Ladder != nil {
		return ""
	}
	starts, period := classStarts(runs, d.Regular)
	least, most, isWhole := wholeEnds(d)
	isWhole = isWhole && new(big.Int).Sub(big.NewInt(most), big.NewInt(least)).IsInt64()
	switch {
	case len(starts) == d.Regular && d.Single():
		return n
	case starts != nil:
		each := plans.EvenRuns(starts, d.Regular)
		if !isWhole {
			each = make([]plans.EvenRun, len(starts))
			for i := range each {
				each[i].From = i
			}
		}
		if len(each) > MaxSQL/leastArm {
			w.tooLong()
			return n
		}
		first := w.compared(c, n, starts, each, func(r plans.EvenRun) string {
			return w.firstIn(c, n, starts[r.From], r.Length)
		})
		if d.Null >= 0 {
			first = "CASE WHEN " + n + " IS NOT NULL THEN " + first + " END"
		}
		return first
	case period > 0 && isWhole && c.Type != policy.TimestampT && c.Type != policy.TimestampTZ:
		return w.valueOfCell(c, w.operate(w.cellsPast(c, n, 0), "%", w.int4(period)))
	}
	return ""
}

// firstIn is the least value of the first cell of a value's class, where classes are of one length from a cell on;
// length 0: where there is one.
func (w cells) firstIn(c *policy.Column, n string, from, length int) string {
	least := c.Domain.Low(from)
	if length == 0 {
		return w.constant(c, least)
	}
	switch least.(type) {
	case policy.Timestamp, policy.Timestamptz:
		return w.bins(c, n, least, int64(length)*c.Domain.Step.Whole)
	}
	return w.valueOfCell(c, w.operate(w.cellsPast(c, n, 0), "-", w.operate(w.cellsPast(c, n, from), "%", w.int4(length))))
}

// valueOfCell is the least value of the cell of a number, of whole numbers and days.
func (w cells) valueOfCell(c *policy.Column, number string) string {
	step := c.Domain.Step.Whole
	if least, isDay := c.Domain.Min.(policy.Date); isDay {
		return w.operate(w.constant(c, least), "+", w.operate(number, "*", w.int4(int(step))))
	}
	least, _ := policy.UnitsOf(c.Domain.Min)
	return w.operate(w.whole(least), "+", w.operate(w.cast(number, "int8"), "*", w.whole(step)))
}

// classStarts finds that the classes of regular cells are neighbouring ones, of which the first are starts, or that
// each cell is of the class of the one a period before, and that what is not regular is not
// among them; nil and 0: it is otherwise.
func classStarts(runs []derived.ClassRun, regular int) (starts []int, period int) {
	neighbours, round, cell := true, true, 0
	for _, r := range runs {
		isFirst := int(r.Class) == cell
		switch {
		case cell < regular && cell+r.Length > regular, cell >= regular && (r.Length > 1 || !isFirst):
			return nil, 0
		case cell < regular && isFirst:
			starts = append(starts, cell)
		case cell < regular:
			neighbours = neighbours && int(r.Class) == starts[len(starts)-1]
		}
		if cell < regular {
			round = round && r.Length == 1 && int(r.Class) == cell%len(starts)
		}
		if cell += r.Length; !neighbours && !round {
			return nil, 0
		}
	}
	if neighbours {
		return starts, 0
	}
	return nil, len(starts)
}

// unitAggregate is an aggregate over a unit's rows, whose number is bounded, so that no sum overflows; where over is
// not empty, over the frame of a window.
func (w *writer) unitAggregate(g derived.UnitAggregate, c *policy.Column, over string) string {
	filter, of := w.filter(g.Where)+over, func(n string) string { return n }
	if over != "" && g.Where != nil && w.dialect.PlainWindows {
		filter, of = over, func(n string) string { return "CASE WHEN " + w.predicate(g.Where) + " THEN " + n + " END" }
	}
	counted := func(argument string) string { return w.withinDomain(c, w.call("count", argument)+filter) }
	if g.Kind == derived.UnitCount && filter == over && g.Where != nil {
		return counted(of("1"))
	}
	if g.Kind == derived.UnitCount {
		return counted("*")
	}
	if g.Kind == derived.UnitDistinctKeys {
		return counted("DISTINCT " + w.useKey(g.Key))
	}
	n := of(w.use(g.Column))
	switch g.Kind {
	case derived.UnitDistinct:
		return counted("DISTINCT " + n)
	case derived.UnitMean:
		return meanOf(w, g.Column, c, n, filter)
	case derived.UnitMin, derived.UnitMax:
		word := map[derived.UnitAggregateKind]string{derived.UnitMin: "min", derived.UnitMax: "max"}[g.Kind]
		return w.call(word, n) + filter
	case derived.UnitSum:
		if c.Type != policy.NumericType {
			return w.cast(w.withinDomain(c, w.summed(n, 0)+filter), "int8")
		}
		scale := int32(0)
		if g.Column.Type == policy.NumericType {
			scale = w.decimals(g.Column).digits()
		}
		return w.withinDomain(c, w.decimals(c).settled(w.summed(n, scale)+filter))
	}
	w.fail("an aggregate of an unknown kind")
	return "NULL"
}

// meanOf is the mean of a unit's values n of a column, to the nearest number of derived.MeanDigits: of k values that of
// their distances d from the domain's least value, (2·Σd + k) / 2k, in whole numbers.
//
// Claim: nothing can fail. Sums are wide until they are cut at what as many values as a policy may declare add up to, k
// is from 1 to that many, and no number on the way is beyond 2^62 (derived.MeanDigits). Without a value it is NULL.
func meanOf(w *writer, of, c *policy.Column, n, filter string) string {
	rows, scale := w.table.MaxRowsPerUnit, max(of.Domain.Scale, 0)
	digits := derived.MeanDigits(of, rows)
	units := w.uncut(plans.Factor{Column: of, Exponent: -int(scale)}, n)
	if units == "" { // of decimals that an engine holds with more digits
		units = w.onGrid(of, n, -int(scale))
	}
	if digits < 0 {
		w.fail("a mean of values that are too large")
		return "NULL"
	}
	least, _ := derived.UnitsOf(of.Domain.Min, scale)
	most, _ := derived.UnitsOf(of.Domain.Max, scale)
	end, power := derived.MaxAbs(least, most), tenTo(int(digits-scale))
	end.Mul(end, big.NewInt(rows))
	sum := "COALESCE(" + w.summed(units, 0) + filter + ", " + w.literal("0", "wide") + ")"
	low, high := w.literal("-"+end.String(), "wide"), w.literal(end.String(), "wide")
	sum = w.cast("GREATEST(LEAST("+sum+", "+high+"), "+low+")", "int8")
	count := w.call("count", n) + filter
	k := "GREATEST(LEAST(" + count + ", " + w.whole(rows) + "), " + w.whole(1) + ")"
	first := power * least.Int64()
	twice := w.operate(w.operate(sum, "*", w.whole(2*power)), "-", w.operate(k, "*", w.whole(2*first-1)))
	mean := w.operate(w.operate(twice, "/", w.operate(k, "*", w.whole(2))), "+", w.whole(first))
	mean = w.withinDomain(c, w.decimals(c).tenths(mean, digits))
	return "CASE WHEN " + w.operate(count, ">", w.whole(0)) + " THEN " + mean + " END"
}

// withinDomain cuts a number that is made of a unit's rows, of which no number is declared, at the ends of its domain:
// those of as many rows as a policy may declare. A value outside has no cell: an answer with one is none, and would
// tell of that unit. It is cut where it is made, while it is wide, so that nothing is too large for what it is cast to.
func (w *writer) withinDomain(c *policy.Column, x string) string {
	if !w.table.AnyRows {
		return x
	}
	low, high := w.constant(c, c.Domain.Min), w.constant(c, c.Domain.Max)
	below, above := "WHEN "+x+" < "+low+" THEN "+low, "WHEN "+x+" > "+high+" THEN "+high
	return "CASE " + below + " " + above + " ELSE " + x + " END"
}

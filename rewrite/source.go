package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A table of the policy is read in up to two layers:
//
//	b  each row's unit u, normalised columns n and join keys j; rows that the rules exclude left out (by every column's
//	   rules, used or not)
//	s  b with each unit's rows numbered in the order of a hash of their own contents, of which the first are taken
//
// Where the bound of a join relies on a key that no two rows of a unit share (derived.Unique), and no constraint proves
// it, of the rows in b that share it the first is taken before s numbers what is left. If no two share it that leaves
// out nothing. One after the other: two numberings of the same rows side by side may tell rows apart that tie, each in
// its own way, and then which of them are first in both depends on how they are stored.
//
// The order (roworder.go) is of the unit's own rows alone (privacy rule 10), that by which rows are added before all
// else. A derived table (derived.go) reads its inputs so.

// source writes the rows of the writer's table with what has been used of them, in parentheses; bound is what is left
// for the caller's WHERE.
func (w *writer) source() (from string, bound []string) {
	if w.depth++; w.depth > 64 {
		w.fail("derived tables that are nested too deeply")
		return "", nil
	}
	defer func() { w.depth-- }()
	switch {
	case w.table.Derived != nil:
		return w.derived(), nil
	case w.unbounded() && len(w.enforced()) == 0:
		return w.base(false, 0), nil
	case w.unbounded():
		return w.numbered(), nil
	case w.dialect.Ready && !w.table.Dataset.Unit.Row && len(w.enforced()) == 0:
		return w.base(false, w.table.MaxRowsPerUnit), nil
	case w.table.Dataset.Unit.Row || w.settled(w.table) && len(w.enforced()) == 0:
		return w.base(false, 0), nil
	}
	return w.numbered(), []string{w.alias + ".r <= " + strconv.FormatInt(w.table.MaxRowsPerUnit, 10)}
}

// unbounded reports whether all rows of a unit are read: those that a ladder adds up, and those of which no bound is
// declared; but of a table that has one row of a unit by the policy that one is read everywhere.
func (w *columns) unbounded() bool {
	return (w.allRows || w.table.AnyRows) && w.table.MaxRowsPerUnit > 1
}

// enforced are the keys of the writer's table of which one row each is taken, of those that a unit has.
func (w *writer) enforced() (list []derived.Unique) {
	for _, u := range w.unique {
		if u.Table == w.table {
			list = append(list, u)
		}
	}
	return list
}

// oneOfKey numbers the rows of a unit that share a key, by the equality with which rows are joined, in the order of all
// its rows. Rows with NULL in it share none.
func (w *writer) oneOfKey(u derived.Unique) string {
	by, nulls := []string{"b.u"}, []string{}
	if w.table.NullEach { // rows that name no unit are units of their own, and must not move each other
		nulls = append(nulls, "b.u IS NULL")
	}
	for _, k := range u.Keys {
		at := slices.Index(w.table.Keys, k)
		if at < 0 || k.Unit {
			w.fail("a unique key that the table does not have")
			return "NULL"
		}
		j := "b.j" + strconv.Itoa(at+1)
		nulls = append(nulls, j+" IS NULL")
		by = append(by, w.joinable(j))
	}
	return "CASE WHEN " + strings.Join(nulls, " OR ") + " THEN 1 ELSE " + w.call("row_number") + " OVER (PARTITION BY " + strings.Join(by, ", ") + w.rowOrder("b") + ") END"
}

// input writes a table as an input of a derived one, under the writer's alias.
func (w *writer) input() string {
	from, bound := w.source()
	if bound == nil {
		return from + " AS " + w.alias
	}
	return "(SELECT * FROM " + from + " AS " + w.alias + " WHERE " + bound[0] + ") AS " + w.alias
}

// provable reports whether a unique constraint on the unit's column would prove the table's bound.
func provable(t *policy.Table) bool {
	return t.Derived == nil && t.UnitColumn != "" && t.View.Text == ""
}

// base writes a table's normalised rows: what is used, or, to number them, everything. A snapshot holds them so; with
// most above 0 those of each unit's first ranks are read there.
func (w *writer) base(everything bool, most int64) string {
	t, ready := w.table, w.dialect.Ready
	var items, conditions []string
	from, unit := w.stored(everything)
	if w.where != "" { // which leaves more rows out than what nearly all satisfy
		conditions = append(conditions, w.where)
	}
	if !t.Dataset.Unit.Row {
		if everything || w.alias != "s" || w.depth > 1 {
			items = append(items, unit+" AS u")
		}
		if ready && everything {
			items = append(items, "t.r AS r")
		}
		if !ready {
			conditions = append(conditions, w.known(unit)...)
		}
	}
	if w.marginal != nil {
		items = append(items, "t.n AS n")
	}
	for i, c := range t.Columns {
		if everything || slices.Contains(w.used, c) {
			items = append(items, w.value(c)+" AS n"+strconv.Itoa(i+1))
		}
		if !ready {
			conditions = append(conditions, w.kept(c)...)
		}
	}
	if most > 0 {
		conditions = append(conditions, "t.r <= "+strconv.FormatInt(most, 10))
	}
	seen, within := w.windowed(everything)
	from, conditions = from+seen, append(conditions, within...)
	for i, k := range t.Keys {
		if !k.Unit && (everything || slices.Contains(w.usedKeys, k)) {
			name := w.name(k.Source)
			if ready {
				name = w.copiedKey(k)
			}
			items = append(items, "t."+name+" AS j"+strconv.Itoa(i+1))
		}
	}
	if w.open != nil {
		items = append(items, w.raw(w.open)+" AS k")
	}
	if len(items) == 0 {
		items = []string{"1 AS one"}
	}
	sql := "(SELECT " + strings.Join(items, ",\n        ") + "\n   FROM " + from
	return sql + where("   ", conditions) + ")"
}

// stored is what the rows are read from, and each row's unit.
func (w *writer) stored(everything bool) (from, unit string) {
	t := w.table
	from, unit = w.relation(t)+" AS t", "t."+w.nameOf(t.UnitColumn)
	via := t.Via
	if w.dialect.Ready { // each row of a snapshot has its unit
		unit, via = "t.u", nil
	}
	if w.marginal != nil {
		from = w.marginalName(*w.marginal) + " AS t"
	}
	for i := 1; via != nil; via, i = via.Table.Via, i+1 {
		on := "t"
		if i > 1 {
			on = "v" + strconv.Itoa(i-1)
		}
		v := "v" + strconv.Itoa(i)
		from += "\n   JOIN " + w.relation(via.Table) + " AS " + v + " ON " + w.equal(v+"."+w.name(via.Key), on+"."+w.name(via.Column))
		unit = v + "." + w.nameOf(via.Table.UnitColumn)
	}
	for _, c := range t.Columns {
		if w.looksUp(c) && (everything || slices.Contains(w.used, c)) {
			from += "\n   LEFT JOIN " + w.foundValues(c)
		}
	}
	return from, unit
}

// settled reports whether no query has to choose which of a unit's rows stay: a constraint proves that a unit has one
// row, or the policy names the column that numbers them.
func (w *composed) settled(t *policy.Table) bool {
	return t.RowRank != "" || slices.Contains(w.proven, t)
}

// known are the conditions that a row has a unit, which the constraint that proves a bound proves as well, and is among
// the rows of it that are read.
//
// Where the policy names a rank, `row_rank: visit`, they are t.visit >= 1 AND t.visit <= k. Claim: a unit has at most k
// such rows, and which they are depends on that unit's own rows alone (privacy rule 10). Proof: the query runs only
// where a constraint shows, in its own snapshot, that no two rows share unit and rank, NULL aside, and that the rank is
// a whole number (Required): k ranks are k rows. The rank is a value of the row, so a neighbour's rows are the same
// with and without another unit's.
//
// Where CHECK constraints show in that snapshot what one of these conditions says of every row (Rank), it is left out:
// it holds of each row that is read.
func (w *columns) known(unit string) []string {
	var list []string
	if !slices.Contains(w.proven, w.table) && !w.table.NullEach && (w.table.RowRank == "" || w.ranks == ranksAny) {
		list = []string{unit + " IS NOT NULL"}
	}
	if rank := w.table.RowRank; rank != "" && !w.unbounded() {
		rank = "t." + w.name(rank)
		if w.ranks == ranksAny {
			list = append(list, w.operate(rank, ">=", w.whole(1)))
		}
		if w.ranks == ranksAny || w.ranks == ranksPositive {
			list = append(list, w.operate(rank, "<=", w.whole(w.table.MaxRowsPerUnit)))
		}
	}
	return list
}

// inBytes is a join key as rows are ordered by it: keys that are different differ there, whatever their column's
// collation takes for equal. The type of a key that is not listed is not known.
func (w *composed) inBytes(k *policy.Column, name string) string {
	if k.Type != 0 && !k.Type.Textual() {
		return name
	}
	return dialect.Fill(w.dialect.TextKey, name)
}

// single is a value, and another for rows that are units of their own because they name none: no bound is for these.
func (w *columns) single(unit, own, value string) string {
	if !w.table.NullEach {
		return value
	}
	return "CASE WHEN " + unit + " IS NULL THEN " + own + " ELSE " + value + " END"
}

// nameOf is name, where an empty one is not used.
func (w *composed) nameOf(s string) string {
	if s == "" {
		return ""
	}
	return w.name(s)
}

// numbered writes a table's rows with each unit's numbered.
func (w *writer) numbered() string {
	w.numberings++
	items := ""
	for i := range w.table.Columns {
		items += ", b.n" + strconv.Itoa(i+1)
	}
	for i, k := range w.table.Keys {
		if !k.Unit {
			items += ", b.j" + strconv.Itoa(i+1)
		}
	}
	window := "PARTITION BY b.u" + w.rowOrder("b")
	unit := ""
	if w.alias != "s" || w.depth > 1 {
		unit = ", b.u"
	}
	base := w.base(true, 0)
	for i, u := range w.enforced() {
		q := "q" + strconv.Itoa(i+1)
		base = "(SELECT * FROM (SELECT b.*, " + w.oneOfKey(u) + " AS " + q + "\n  FROM " + base + " AS b) AS b WHERE b." + q + " = 1)"
	}
	return "(SELECT " + w.single("b.u", "1", w.call("row_number")+" OVER ("+window+")") + " AS r" + unit + items + "\n  FROM " + base + " AS b)"
}

// countsRows reports whether a measure asks for the number of a bounded table's rows and nothing else: which rows of a
// unit stay does not matter then. (Counting takes about half as long as numbering where units have several rows, and no
// less where each has one.)
func (w *composed) countsRows(m *plans.Measure) bool {
	return !w.dialect.Ready && len(m.Grain) == 0 && m.Where == nil && m.Table.MaxRowsPerUnit > 1 && countsAlone(m) && m.Table.Derived == nil && !m.Table.Dataset.Unit.Row && !w.settled(m.Table)
}

// unitCounts writes the query of such a measure.
func (w *writer) unitCounts() string {
	most := w.summed(w.single("s.u", "s.k", "LEAST(s.k, "+strconv.FormatInt(w.table.MaxRowsPerUnit, 10)+")"), 0)
	return "SELECT " + w.output("COALESCE("+most+", 0)", "k1") + "\nFROM (SELECT b.u, " + w.call("count", "*") + " AS k\n  FROM " + w.over(w.table, "b").base(false, 0) +
		" AS b\n  GROUP BY b.u) AS s"
}

// equal compares two keys. Where the engine cannot compare their types the statement fails when it is parsed, alike for
// any rows.
func (w *composed) equal(a, b string) string {
	return w.operate(w.joinable(a), "=", w.joinable(b))
}

// joinable is a key as joins compare it.
func (w *composed) joinable(key string) string { return dialect.Fill(w.dialect.Key, key) }

// inQuery reports whether a value is among the rows of a query.
func (w *composed) inQuery(value, query string) string {
	return dialect.Fill(w.dialect.Within, value, query)
}

// tabulated writes the rows of its input with what the list says of the combination of cells that each has. Where
// nothing of the list is used the rows are the input's. Nothing can fail: a cell's number is below its domain's size,
// and the product of these is an int4.
func (w *writer) tabulated(d *derived.Tabulated) string {
	a := w.sub(d.From, "a")
	items := w.passed(a, len(d.From.Columns))
	alias := "m" + strconv.Itoa(w.depth)
	numbers := make([]string, len(d.Combinations))
	for i, at := range d.Combinations {
		numbers[i] = strconv.Itoa(int(at))
	}
	names, lists := []string{"c"}, [][]string{numbers}
	for i, c := range d.Columns {
		at := len(d.From.Columns) + i
		if at >= len(w.table.Columns) {
			w.fail("a listed column that the table does not have")
			return "()"
		}
		if !slices.Contains(w.used, w.table.Columns[at]) {
			continue
		}
		said := make([]string, len(numbers))
		for k := range said {
			if said[k] = "NULL"; c.At(k) != nil {
				said[k] = strconv.Itoa(int(c.Values[k]))
			}
		}
		name := "v" + strconv.Itoa(i+1)
		names, lists = append(names, name), append(lists, said)
		value := alias + "." + name
		switch c.Type {
		case policy.DateType:
			value = w.operate(w.constant(w.table.Columns[at], policy.Date(0)), "+", value)
		case policy.NumericType:
			value = w.decimals(w.table.Columns[at]).tenths(value, c.Scale)
		default:
			value = w.cast(value, "int8")
		}
		items = append(items, value+" AS n"+strconv.Itoa(at+1))
	}
	if len(lists) == 1 {
		return "(SELECT " + w.named(items) + "\n  FROM " + a.input() + ")"
	}
	on := w.operate(a.cellsTogether(d.Args), "=", alias+".c")
	return "(SELECT " + w.named(items) + "\n  FROM " + a.input() + "\n  LEFT JOIN " + w.parallel(alias, names, lists...) + "\n    ON " + on + ")"
}

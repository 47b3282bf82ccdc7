package rewrite

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Beside each of its tables a snapshot holds marginals: how many of the table's rows have each rank and each
// combination of values of some columns, where these are few. A measure that reads no other columns reads a marginal in
// the rows' place (docs/adr/0156), and takes no longer of more rows. Of `visits`, whose first columns are ward and
// minutes:
//
//	CREATE TABLE "visits@1f…#1+2" AS SELECT t.r AS r, t."1:ward" AS "1:ward", t."2:minutes" AS "2:minutes", count(*) AS n FROM "visits@1f…" AS t
//	WHERE t.r <= 256 GROUP BY t.r, t."1:ward", t."2:minutes" ORDER BY r
//
//	SELECT count(*), sum(minutes) FROM visits WHERE minutes > 20, at most 10 rows of a person:
//	SELECT sum(s.n), sum(s.n2 * s.n) FROM (SELECT t."2:minutes" AS n2, t.n AS n FROM "visits@1f…#1+2" AS t WHERE t.r <= 10) AS s WHERE s.n2 >= 21
//
// Claim. A measure has the same answer over a marginal as over the rows. Proof. A row of the marginal counts for n rows
// that have one rank and, of each column that the measure reads, values of which everything that it asks of them is the
// same: the bound, conditions, cells and pieces, and what a row adds to a sum, which are functions of these alone. So a
// number of rows is the sum of n, and a sum of what rows add that of n times what one adds. Of a column that has many
// values a marginal holds one for each cell, the least that a row has; conditions of cells and pieces are the same for
// all values of a cell, and a measure that asks more of the column (a comparison inside a step, a sum) does not read
// that marginal (suffices). Rows beyond its ranks are beyond the bound of each measure that does.
//
// Claim. Nothing here fails. Proof. What one row adds is a whole number below 2^62, or a decimal of at most 18 digits
// (total, sum), n is below 2^63, of all rows of a marginal together too, for they are different rows: products and
// their sums lie below 2^125, within HUGEINT, or have 37 digits, within DECIMAL.
//
// Claim. Which marginals there are, and which one a measure reads, is a function of the policy's columns and of the
// measure. Proof. marginals reads domains, and suffices the measure and the table's bound. None is left out because
// rows have many different values. So SQL, costs and refusals are the same for neighbours, and how long a measure takes
// depends on how many of at most maxPairs combinations come, where it depended on the number of rows.

const (
	maxPairs     = 1 << 18             // rows of a marginal: combinations of its columns' values, and ranks
	maxRanks     = 1 << 8              // ranks of a marginal: a bound beyond it reads rows
	fewOfAll     = maxPairs / maxRanks // combinations of several columns' values
	fewAsTheyAre = 1 << 12             // values of a column that are not brought together cell by cell
)

// part is a column of a marginal.
type part struct {
	column *policy.Column
	cells  bool // one value of a cell represents all of them
	size   int  // how many values there are, NULL among them
}

// marginal is the rows of a table by rank and by some columns, in the order of the table's; by none: by rank alone.
type marginal []part

// size is how many combinations of values it has at most.
func (m marginal) size() int {
	size := 1
	for _, p := range m {
		size *= p.size
	}
	return size
}

// ranks are those of the rows that it counts.
func (m marginal) ranks() int64 { return int64(min(maxRanks, maxPairs/m.size())) }

// partOf is the column as one of a marginal.
func partOf(c *policy.Column) (p part, ok bool) {
	if c.Made() || c.Open != nil || c.Domain == nil {
		return p, false
	}
	values, cells := valuesOf(c), uint64(c.Domain.Size())
	if values <= max(fewAsTheyAre, cells) {
		return part{c, false, int(values)}, values <= maxPairs
	}
	return part{c, true, int(cells)}, cells <= maxPairs
}

// valuesOf is how many different values a column of a snapshot may hold, NULL among them.
func valuesOf(c *policy.Column) uint64 {
	d := c.Domain
	if !d.Ordered() {
		return uint64(d.Size())
	}
	width := new(big.Int)
	switch d.Min.(type) {
	case policy.Numeric:
		held, err := fixedOf(c, dialect.Snapshot)
		if err != nil {
			return math.MaxUint64
		}
		least, most := held.ends()
		width.Sub(most, least)
	case float64:
		return math.MaxUint64
	default:
		least, most, _ := wholeEnds(d)
		width.Sub(big.NewInt(most), big.NewInt(least))
	}
	if !width.IsInt64() {
		return math.MaxUint64
	}
	return width.Uint64() + 1 + uint64(d.Size()-d.Valued())
}

// marginals lists those of a table, the smallest first. Columns are put together in the order of their sizes, as many
// as have few combinations, so that the rows are counted once for all of them; each other one has its own. Where no
// column has few values, rows are counted by rank alone.
func marginals(t *policy.Table) []marginal {
	var parts []part
	for _, c := range t.Columns {
		if p, ok := partOf(c); ok {
			parts = append(parts, p)
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.size, b.size) })
	list := []marginal{nil}
	for _, p := range parts {
		if last := &list[len(list)-1]; last.size()*p.size <= fewOfAll {
			*last = append(*last, p)
		} else {
			list = append(list, marginal{p})
		}
	}
	for _, m := range list {
		slices.SortFunc(m, func(a, b part) int {
			return cmp.Compare(slices.Index(t.Columns, a.column), slices.Index(t.Columns, b.column))
		})
	}
	slices.SortStableFunc(list, func(a, b marginal) int { return cmp.Compare(a.size(), b.size()) })
	return list
}

// marginalName names one of the writer's table by the places of its columns.
func (w *columns) marginalName(m marginal) string {
	places := make([]string, len(m))
	for i, p := range m {
		places[i] = strconv.Itoa(slices.Index(w.table.Columns, p.column) + 1)
	}
	return w.held(copyName(w.table) + "#" + strings.Join(places, "+"))
}

// Marginals writes the statements that make the marginals of a table, when Arrange's have made the table.
func (e Extraction) Marginals() ([]string, error) {
	w := newWriter(dialect.Snapshot, e.Table, "t")
	var texts []string
	for _, m := range marginals(e.Table) {
		texts = append(texts, "CREATE TABLE "+w.marginalName(m)+" AS "+w.countedBy(m))
	}
	return texts, w.settledText()
}

// countedBy counts the rows of the writer's table for a marginal.
func (w *columns) countedBy(m marginal) string {
	var items, keys []string
	where, order := "", ""
	if !w.table.Dataset.Unit.Row {
		items, keys = append(items, "t.r AS r"), append(keys, "t.r")
		where, order = "\nWHERE t.r <= "+strconv.FormatInt(m.ranks(), 10), "\nORDER BY r"
	}
	for _, p := range m {
		name := w.copied(p.column)
		value, key := "t."+name, "t."+name
		if p.cells {
			value, key = w.call("min", value), w.number(p.column, value)
		}
		items, keys = append(items, value+" AS "+name), append(keys, key)
	}
	text := "SELECT " + strings.Join(append(items, w.call("count", "*")+" AS n"), ", ") + "\nFROM " + w.relation(w.table) + " AS t" + where
	if len(keys) > 0 {
		text += "\nGROUP BY " + strings.Join(keys, ", ")
	}
	return text + order
}

// marginalOf finds the smallest marginal that says all that a measure asks; nil means none does.
func (w *writer) marginalOf(m *plans.Measure) *marginal {
	t := m.Table
	if !w.dialect.Ready || t.Derived != nil || m.Open != nil || m.Window != nil || w.groupsBounded(m) || len(w.enforced()) > 0 {
		return nil
	}
	read := readBy(m)
	for _, own := range marginals(t) {
		if (t.Dataset.Unit.Row || t.MaxRowsPerUnit <= own.ranks()) && own.suffices(read) {
			return &own
		}
	}
	return nil
}

// readBy are the columns that a measure reads, each with whether it asks more of them than their cells.
func readBy(m *plans.Measure) map[*policy.Column]bool {
	read := map[*policy.Column]bool{}
	note := func(more bool, columns ...*policy.Column) {
		for _, c := range columns {
			read[c] = read[c] || more
		}
	}
	note(false, m.Grain...)
	for _, p := range append([]predicate.Pred{m.Where}, m.Counters...) {
		for _, part := range predicate.Conjuncts(p) {
			columns, onGrid := predicate.Columns(part, nil)
			note(!onGrid, columns...)
		}
	}
	for _, sum := range m.Sums {
		if sum == nil {
			continue
		}
		for _, term := range sum.Terms {
			for _, f := range term.Factors {
				note(true, f.Column)
			}
		}
	}
	return read
}

// suffices reports whether a marginal says all that is asked of columns.
func (m marginal) suffices(read map[*policy.Column]bool) bool {
	for c, more := range read {
		if !slices.ContainsFunc(m, func(p part) bool { return p.column == c && !(p.cells && more) }) {
			return false
		}
	}
	return true
}

// countOf writes how many rows an aggregate sees of which n is not NULL, of all with *: an int8. count is one in each
// database, and is not cast once more: for a query that reads no row, a cast is some of its time.
func (w *writer) countOf(n, filter string) string {
	switch {
	case w.marginal == nil:
		return w.call("count", n) + filter
	case n == "*":
		n = "s.n"
	default:
		n = "CASE WHEN " + n + " IS NOT NULL THEN s.n END"
	}
	return w.cast("COALESCE("+w.summed(n, 0)+filter+", 0)", "int8")
}

// timesRows is what a row adds up to n of, a whole number or a decimal, for all rows that it counts for.
func (w *writer) timesRows(n string, decimal bool) string {
	switch {
	case w.marginal == nil:
		return n
	case decimal:
		return w.operate(n, "*", w.cast("s.n", w.dialect.DecimalOf(digitsOfRows, 0)))
	}
	return w.operate(w.cast(n, "wide"), "*", "s.n")
}

// discovery writes the query that finds the keys of an open column: each key's text, cut as everywhere else, and the
// number of units of which it is counted. Of a unit's keys, in the order of a hash of the unit and the key, the first
// are counted: as many as the noise is made for.
//
// Claim. A unit moves the numbers of at most k keys, k = m.Finding.KeysEach(), each by 1, whatever rows it has.
// Neighbours. Its rows are absent, or others: it moves k numbers, or k of each of two. Proof. g has each pair of a unit
// and a key once, so that a unit has one row in s for each of its keys, numbered without gaps or ties by row_number
// over the rows of that u: of these k are left, each in the group of another key. Which they are is a function of u and
// of its own keys, for what follows the hash is the key, and no two keys of a unit are the same: so other units' rows
// are left as they are. Where a constraint proves that a unit has one row, it has one key. Rows that name no unit are
// units of their own, of one row and so of one key (single): g.n of them have a key. ∎ Limit: all keys of a unit are
// sorted, at most as many as it has rows, to choose k.
func (w *writer) discovery(m *plans.Measure) string {
	v := w.over(m.Table, "b")
	v.open = m.Open
	units := w.call("count", "*") + " AS units"
	if slices.Contains(w.proven, m.Table) {
		return "SELECT b.k, " + units + "\nFROM " + v.base(false, 0) + " AS b\nGROUP BY b.k"
	}
	pairs := "(SELECT DISTINCT b.u, b.k\n  FROM " + v.base(false, 0) + " AS b)"
	order := " ORDER BY " + w.hashed([]limb{w.unitLimb("g.u"), w.textLimb("g.k")}) + ", g.k"
	number, items := w.call("row_number")+" OVER (PARTITION BY g.u"+order+")", "g.k, "
	if m.Table.NullEach {
		units = w.output(w.summed(w.single("s.u", "s.n", w.whole(1)), 0), "units")
		pairs = "(SELECT b.u, b.k, " + w.call("count", "*") + " AS n\n  FROM " + v.base(false, 0) + " AS b\n  GROUP BY b.u, b.k)"
		number, items = w.single("g.u", "1", number), "g.u, g.k, g.n, "
	}
	counted := "\nWHERE s.d <= " + strconv.FormatInt(m.Finding.KeysEach(), 10)
	return "SELECT s.k, " + units + "\nFROM (SELECT " + items + number + " AS d\n  FROM " + pairs + " AS g) AS s" +
		counted + "\nGROUP BY s.k"
}

// fewValues is the number of values of an open column, or of one of whole numbers, that are compared one by one with
// each row's; more are looked up.
const fewValues = 16

// lookedUp reports whether the cells of a column are found by a join with its values.
func lookedUp(c *policy.Column) bool {
	return len(c.Domain.Values) > fewValues && (c.Open != nil || c.Type.Integer() || c.List != nil)
}

// looksUp reports whether rows of the writer's table are joined with the values of a column: of a snapshot, which holds
// the cells of those that are declared, with the values of open columns alone.
func (w *columns) looksUp(c *policy.Column) bool {
	return lookedUp(c) && (c.Open != nil || !w.dialect.Ready) && slices.Contains(w.table.Columns, c)
}

// found is the alias of a column's values.
func (w *columns) found(c *policy.Column) string {
	return "o" + strconv.Itoa(slices.Index(w.table.Columns, c)+1)
}

// foundValues are the values of a column, v, each with its place, i, joined to the rows that have them. No value is
// there twice, so each row stays one row.
func (w *columns) foundValues(c *policy.Column) string {
	rows := dialect.Fill(w.dialect.Numbered, w.list(c), w.found(c), strconv.Itoa(len(c.Domain.Values)+1))
	return rows + " ON " + w.operate(w.raw(c), "=", w.found(c)+".v")
}

// list is a column's values. Thousands of numbers, or of the keys of a public table, are one constant or argument:
//
//	'{8507,8532,…}'::pg_catalog.int8[], $1::pg_catalog.text[]
func (w *columns) list(c *policy.Column) string {
	values := c.Domain.Values
	switch {
	case c.Open != nil:
	case c.Type.Integer():
		for _, v := range values {
			w.digits(strings.TrimPrefix(v, "-"))
		}
		return dialect.Fill(w.dialect.Numbers, strings.Join(values, ","))
	case c.Type == policy.UUID:
		return w.texts(values, "uuid")
	default:
		return w.texts(values, "text")
	}
	return dialect.Fill(w.dialect.List, strings.Join(w.values(c, values), ", "))
}

// combination writes the numbers of the cells of several columns as one text.
func (w *columns) combination(c *policy.Column) string {
	text := ""
	for i, part := range c.Product {
		number := w.cast(w.cast(w.cell(part, "("+w.normalised(part)+")"), "int4"), "text")
		if i == 0 {
			text = number
			continue
		}
		text = w.operate(w.operate(text, "||", dialect.Fill(w.dialect.Quoted, ",")), "||", number)
	}
	return text
}

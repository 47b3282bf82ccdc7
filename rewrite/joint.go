package rewrite

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Measures over the same rows that are bought at one moment are read in one scan (shared_scan.go says which). Of
//
//	SELECT (SELECT count(*) FROM people WHERE age > 40), (SELECT count(*) FROM people WHERE sex = 'f')
//
// the one scan is of people, once:
//
//	WITH scan AS (SELECT count(*) FILTER (WHERE t.age > 40) AS k1, count(*) FILTER (WHERE t.sex = 'f') AS k2 FROM people AS t WHERE …)
//	SELECT 0 AS measure, t.k1 FROM (SELECT sum(s.k1) AS k1 FROM scan AS s) AS t
//	UNION ALL
//	SELECT 1 AS measure, t.k1 FROM (SELECT sum(s.k2) AS k1 FROM scan AS s) AS t
//
// There are two forms:
//
//   - rows that are read as they are stored (stored.go) are counted once, by all columns of which some measure needs the cells, where these have
//     few combinations, with each measure's conditions as its counters'; each measure then adds up what it needs of that tally (where the engine reads
//     columns so quickly that another scan takes less, as DuckDB does, each measure has a scan of its own);
//   - rows that have to be numbered first are numbered once, and what the measures need of them is kept for all of them (where they lie on
//     several machines that would gather them on one, and each measure numbers them).
//
// Claim. Each measure is counted as it is by a query of its own (Render). Proof. The second form's rows are those of
// each measure's source: the text that reads them is held to be the same for all, so what it reads is. In the first, a
// row counts for a counter where the measure's condition and the counter's own hold of it, which is what WHERE and
// FILTER say in a query of its own; the tally's combinations are finer than each measure's, and numbers of rows and
// exact sums of parts add up. The rules of every column leave the same rows out, of columns of the tally after it. A
// combination that a query of the measure's own would not return counts 0 here, as one that does not come does.

// RenderAll writes the SQL of measures that are bought at one moment: one query for each, several of which may be of
// one scan. It ends with ctx.
func RenderAll(ctx context.Context, list []*plans.Measure, d dialect.Dialect) ([]Query, error) {
	if d.Words == nil {
		return nil, errors.New("rewrite: no such dialect")
	}
	for _, m := range list {
		if err := checkMeasure(m); err != nil {
			return nil, err
		}
	}
	queries := make([]Query, len(list))
	for _, set := range together(list, d) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s, err := scanOf(set.measures, d); err == nil && (len(set.measures) == 1 || !s.text.tooLong()) {
			for i, at := range set.places {
				queries[at] = Query{scan: s, number: i}
			}
			continue
		}
		for i, at := range set.places { // together they may need more constants than a text may have, or be too long
			s, err := scanOf(set.measures[i:i+1], d)
			if err != nil {
				return nil, err
			}
			queries[at] = Query{scan: s}
		}
	}
	return queries, nil
}

// joinedArgs tells constants of one text from those of another.
func joinedArgs(args []any) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.(string)
	}
	return strings.Join(texts, "\x00")
}

// writerOf is a writer of a query over a measure's table.
func writerOf(m *plans.Measure, d dialect.Dialect, a assumed) *writer {
	w := newWriter(d, m.Table, "s")
	w.proven, w.unique, w.ranks, w.window = a.single, a.enforced, a.ranks, m.Window
	return w
}

// joint writes the query of several measures.
func (w *writer) joint(list []*plans.Measure) string {
	var parts []string
	with := ""
	stored := w.asStored(list[0])
	var all *plans.Measure // which they are tallied by; nil means by none
	others := func(m *plans.Measure) bool { return m.Table != w.table }
	if w.dialect.OneScan && (stored || w.table.Derived != nil && !slices.ContainsFunc(list, others)) {
		if all = w.jointly(list); w.tallyRows(all) > fewJoint {
			all = nil
		}
	}
	switch {
	case all != nil:
		of := w.tallyOfRows
		if stored {
			of = w.tallyOf
		}
		t, counter := of(hoisted(all)), 0
		with = dialect.Fill(w.dialect.With, "scan", t.sql) + "\n"
		for _, m := range list {
			parts = append(parts, w.fromTally(m, t, "scan", counter))
			counter += len(m.Counters)
		}
	case stored: // a constraint proves what was to be numbered
		for _, m := range list {
			parts = append(parts, w.over(m.Table, "s").measure(m))
		}
	default:
		var rows string
		rows, parts = w.fromRows(list)
		with = dialect.Fill(w.dialect.With, "scan", rows) + "\n"
	}
	return with + w.stacked(list, parts)
}

// tallyRows is how many rows a tally of a measure of nothing is expected to have, by stored values, or by the
// normalised ones of a derived table; more than any limit: many.
func (w *composed) tallyRows(m *plans.Measure) uint64 {
	if m.Table.Derived == nil {
		return w.combinations(m)
	}
	product := uint64(1)
	for _, c := range m.Grain {
		few := storedValues(c)
		if few == 0 || product > fewJoint {
			return math.MaxUint64
		}
		product *= few
	}
	return product
}

// tallyOfRows writes the tally of a measure's normalised rows by the columns of its grain.
func (w *writer) tallyOfRows(m *plans.Measure) tally {
	t := tally{columns: m.Grain, binned: m.Grain, names: map[*policy.Column]string{}}
	var items, keys []string
	for i, c := range m.Grain {
		name := "x" + strconv.Itoa(i+1)
		items, keys = append(items, w.use(c)+" AS "+name), append(keys, strconv.Itoa(i+1))
		t.names[c] = "s." + name
	}
	for i := range m.Counters {
		name := "k" + strconv.Itoa(i+1)
		count, summed := w.counter(m, i)
		t.summed, items = append(t.summed, summed), append(items, count+" AS "+name)
	}
	conditions := w.conditions(m.Where)
	from, bound := w.source()
	t.sql = selected(items, from, append(bound, conditions...), keys)
	return t
}

// jointly is a measure of which several, over one table, are made: by the columns of all of them, in pieces that all of
// theirs are made of, under the conditions that all of them have, and with each one's others as its counters' own.
func (w *composed) jointly(list []*plans.Measure) *plans.Measure {
	own := &plans.Measure{Table: list[0].Table}
	for _, m := range list {
		own = merged(own, m)
	}
	parts, common := make([][]condition, len(list)), w.conditionsOf(list[0])
	for k, m := range list {
		parts[k] = w.conditionsOf(m)
		common = slices.DeleteFunc(common, func(c condition) bool { return !c.among(parts[k]) })
	}
	for _, c := range common {
		own.Where = predicate.All(own.Where, c.pred)
	}
	for k, m := range list {
		var rest predicate.Pred
		for _, c := range parts[k] {
			if !c.among(common) {
				rest = predicate.All(rest, c.pred)
			}
		}
		for i, p := range m.Counters {
			if rest != nil {
				p = predicate.All(rest, p)
			}
			own.Counters, own.Sums = append(own.Counters, p), append(own.Sums, sumOf(m, i))
		}
	}
	return own
}

// condition is one of the conditions that all hold of a measure's rows, and how it is written for rows as they are
// stored, or for those of a derived table.
type condition struct {
	pred predicate.Pred
	text string
}

func (c condition) among(list []condition) bool {
	return slices.ContainsFunc(list, func(o condition) bool { return o.text == c.text })
}

// conditionsOf are those of a measure.
func (w *composed) conditionsOf(m *plans.Measure) (list []condition) {
	for _, p := range predicate.Conjuncts(m.Where) {
		v := writerOf(m, w.dialect, assumed{})
		text := ""
		if m.Table.Derived == nil {
			text = v.onStored(p)
		} else {
			text = v.predicate(p)
		}
		list = append(list, condition{p, text + "\x00" + joinedArgs(v.args)})
	}
	return list
}

// merged is a measure of nothing, by the columns of two over one table, in pieces that both of theirs are made of.
func merged(of, m *plans.Measure) *plans.Measure {
	own := &plans.Measure{Table: of.Table, Grain: slices.Clone(of.Grain), Cuts: slices.Clone(of.Cuts)}
	for i, c := range m.Grain {
		var starts []int
		if m.Cuts != nil {
			starts = m.Cuts[i]
		}
		at := slices.Index(own.Grain, c)
		switch {
		case at < 0:
			own.Grain, own.Cuts = append(own.Grain, c), append(own.Cuts, starts)
		case starts == nil || own.Cuts[at] == nil:
			own.Cuts[at] = nil
		default:
			all := slices.Concat(own.Cuts[at], starts)
			slices.Sort(all)
			own.Cuts[at] = slices.Compact(all)
		}
	}
	return own
}

// fromRows writes the bounded rows that several measures read, with what all of them need, and each measure's cells and
// counts of them.
func (w *writer) fromRows(list []*plans.Measure) (rows string, parts []string) {
	used := make([]bool, len(w.table.Columns))
	for _, m := range list {
		v := w.over(m.Table, "s")
		items, keys := v.counted(m)
		conditions := v.conditions(m.Where)
		for i, c := range m.Table.Columns {
			if slices.Contains(v.used, c) && i < len(used) {
				used[i] = true
			}
		}
		parts = append(parts, selected(items, "scan", conditions, keys))
	}
	from, bound, depth := "", []string(nil), w.depth
	for i, m := range list {
		v := w.over(m.Table, "s")
		for at, is := range used {
			if is && at < len(m.Table.Columns) {
				v.used = append(v.used, m.Table.Columns[at])
			}
		}
		text, its := v.source()
		if w.depth = depth; i == 0 {
			from, bound = text, its
		} else if text != from || !slices.Equal(its, bound) {
			w.fail("measures of other rows in one scan")
		}
	}
	var items []string
	for i, is := range used {
		if is {
			items = append(items, "s.n"+strconv.Itoa(i+1))
		}
	}
	if len(items) == 0 {
		items = []string{"1 AS one"}
	}
	return selected([]string{strings.Join(items, ", ")}, from, bound, nil), parts
}

// stacked writes the answers of several measures one below the other, each row with the number of its measure before
// it; columns that a measure does not have are 0.
func (w *composed) stacked(list []*plans.Measure, parts []string) string {
	cells, counts := 0, 0
	for _, m := range list {
		cells, counts = max(cells, len(m.Grain)), max(counts, len(m.Counters))
	}
	var texts []string
	for number, m := range list {
		items := []string{w.cast(strconv.Itoa(number), "int4") + " AS measure"}
		column := func(name string, have bool) {
			if have {
				items = append(items, "t."+name)
			} else {
				items = append(items, w.output("0", name))
			}
		}
		for i := range cells {
			column("c"+strconv.Itoa(i+1), i < len(m.Grain))
		}
		for i := range counts {
			column("k"+strconv.Itoa(i+1), i < len(m.Counters))
		}
		texts = append(texts, "SELECT "+strings.Join(items, ", ")+"\nFROM ("+parts[number]+") AS t")
	}
	return strings.Join(texts, "\nUNION ALL\n")
}

// Shape is a kind of question to a table, as `dpproxy check` has a database plan it.
type Shape struct {
	What  string
	Table *policy.Table
	Query Query
}

// Shapes are the kinds of question to the private tables of a dataset of which an engine with several machines may
// count some where the rows lie, and others not. Tables whose units are found through others, or whose rows have a
// rank, have none: they need a proof, of which check says whether there is one.
func Shapes(d *policy.Dataset, in dialect.Dialect) (list []Shape, err error) {
	var tables []*policy.Table
	for _, t := range d.Tables {
		if !t.Public && !t.Analysed() && len(Required(t)) == 0 {
			tables = append(tables, t)
		}
	}
	add := func(what string, t, rows *policy.Table, grain ...*policy.Column) {
		if rows == nil || err != nil {
			return
		}
		m := &plans.Measure{Table: rows, Grain: grain, Counters: []predicate.Pred{nil}, Kind: "count",
			PerGroup: 1} // no noise is calibrated to it
		for i := range grain {
			m.Cuts = append(m.Cuts, twoPieces(grain[i].Domain))
			m.Groups = append(m.Groups, plans.Grouping{Columns: 1, Cells: m.Size(i), Classes: m.Size(i)})
		}
		var q Query
		if q, err = Render(m, in); err == nil {
			list = append(list, Shape{what, t, q})
		}
	}
	for _, t := range tables {
		add("count(*)", t, t)
		if i := slices.IndexFunc(t.Columns, func(c *policy.Column) bool { return c.Domain != nil && c.Open == nil }); i >= 0 {
			add("GROUP BY "+t.Columns[i].Name, t, t, t.Columns[i])
		}
		if d.Unit.Row {
			continue
		}
		if units := derived.NewPerUnit(&derived.PerUnit{From: t, Aggregates: []derived.UnitAggregate{{Kind: derived.UnitCount}}}); units != nil {
			add("a sub-query per "+d.Unit.Name, t, units, units.Columns[0])
		}
		for _, o := range tables {
			if o == t {
				continue
			}
			add("JOIN "+o.Name, t, derived.NewPaired(&derived.Paired{Left: t, Right: o}))
			marked := derived.NewMarked(&derived.Marked{From: t, Other: o})
			add("EXISTS in "+o.Name, t, marked, marked.Columns[len(marked.Columns)-1])
		}
	}
	return list, err
}

// twoPieces cuts a domain of many cells; nil means it is looked at cell by cell.
func twoPieces(d *policy.Domain) []int {
	if !d.Ordered() || d.Regular < 4 {
		return nil
	}
	cuts := []int{0, d.Regular / 2}
	if d.Null >= 0 {
		cuts = append(cuts, d.Null)
	}
	return cuts
}

package rewrite

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Measures over the same rows that are bought at one moment are read in one scan. Of
//
//	SELECT (SELECT count(*) FROM people WHERE age > 40), (SELECT count(*) FROM people WHERE sex = 'f')
//
// the one scan is of people, once:
//
//	WITH scan AS (SELECT count(*) FILTER (WHERE t.age > 40) AS k1, count(*) FILTER (WHERE t.sex = 'f') AS k2 FROM people AS t WHERE …)
//	SELECT 0 AS leaf, t.k1 FROM (SELECT sum(s.k1) AS k1 FROM scan AS s) AS t
//	UNION ALL
//	SELECT 1 AS leaf, t.k1 FROM (SELECT sum(s.k2) AS k1 FROM scan AS s) AS t
//
// There are two forms:
//
//   - rows that are read as they are stored (stored.go) are counted once, by all columns of which some measure needs the cells, where these have
//     few combinations, with each measure's conditions as its counters'; each measure then adds up what it needs of that tally (where the engine reads
//     columns so quickly that another scan takes less, as DuckDB does, each measure has a scan of its own);
//   - rows that have to be numbered first are numbered once, and what the measures need of them is kept for all of them (where they lie on
//     several machines that would gather them on one, and each measure numbers them).
//
// Claim. Each measure is counted as it is by a query of its own (Render). Proof. The second form's rows are those of each measure's source: the text
// that reads them is held to be the same for all, so what it reads is. In the first, a row counts for a counter where the measure's
// condition and the counter's own hold of it, which is what WHERE and FILTER say in a query of its own; the tally's combinations
// are finer than each measure's, and numbers of rows and exact sums of parts add up. The rules of every column leave the same rows out, of columns of the
// tally after it. A combination that a query of the measure's own would not return counts 0 here, as one that does not come does.
//
// Claim. Which measures are read in one scan is a function of their plans. Proof. together reads the measures and the policy, never rows.
// So what one failure says is public, too: all measures of a scan have no groups then.

// A scan is of at most so many measures and counters, so that the text stays of one size with those of single measures, and its answer of so many
// combinations of cells, which are in memory together.
const (
	mostLeaves   = 16
	mostCounters = 128
	mostRows     = 1 << 17
)

// fewJoint is how many combinations of stored values a tally for several measures may have: beyond it, adding up the tally for each measure is
// no less than reading the rows again.
const fewJoint = 1 << 14

// mostTried is how many scans over the same rows are looked at for a measure: those that were begun last.
const mostTried = 4

// RenderAll writes the SQL of measures that are bought at one moment: one query for each, several of which may be of one scan. It ends with ctx.
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
		if s, err := scanOf(set.measures, d); err == nil {
			for i, at := range set.places {
				queries[at] = Query{scan: s, leaf: i}
			}
			continue
		}
		for i, at := range set.places { // together they may need more constants than a text may have
			s, err := scanOf(set.measures[i:i+1], d)
			if err != nil {
				return nil, err
			}
			queries[at] = Query{scan: s}
		}
	}
	return queries, nil
}

// readTogether are measures that are read in one scan, and their places in a list.
type readTogether struct {
	by       shared
	places   []int
	measures []*plans.Measure
	counters int
	rows     int            // of the answer, at most
	grain    *plans.Measure // by what they are tallied; nil: their rows are numbered
}

// together parts measures into those that are read in one scan, in order.
func together(list []*plans.Measure, d dialect.Dialect) (sets []*readTogether) {
next:
	for i, m := range list {
		own := readTogether{places: []int{i}, measures: []*plans.Measure{m}, counters: len(m.Counters), rows: mostOf(m)}
		if len(list) > 1 {
			own.by = sharedBy(m, d)
		}
		if own.by.table != nil && (mayBeStored(m.Table, d) || m.Table.Derived != nil) {
			own.grain = merged(&plans.Measure{Table: m.Table}, m)
		}
		tried := 0
		for _, set := range slices.Backward(sets) {
			if own.by == (shared{}) || tried == mostTried {
				break
			}
			if set.by != own.by {
				continue
			}
			if tried++; set.takes(&own, d) {
				continue next
			}
		}
		sets = append(sets, &own)
	}
	return sets
}

// takes adds a measure over the same rows to a scan, if it may be read there.
func (s *readTogether) takes(own *readTogether, d dialect.Dialect) bool {
	m := own.measures[0]
	if len(s.places) == mostLeaves || s.counters+own.counters > mostCounters || s.rows+own.rows > mostRows {
		return false
	}
	if s.grain != nil {
		grain := merged(s.grain, m)
		if writerOf(m, d, assumed{}).tallyRows(grain) > fewJoint {
			return false
		}
		s.grain = grain
	}
	s.places, s.measures = append(s.places, own.places...), append(s.measures, m)
	s.counters, s.rows = s.counters+own.counters, s.rows+own.rows
	return true
}

// mostOf is how many combinations of cells a measure has, or one more than a scan may have.
func mostOf(m *plans.Measure) int {
	rows := 1
	for i := range m.Grain {
		if rows *= m.Size(i); rows > mostRows {
			return mostRows + 1
		}
	}
	return rows
}

// mayBeStored tells whether the rows of a table of the policy are read as they are stored, as far as may be expected: where a unit has one row a
// constraint most often proves it (where rows are not kept none is believed).
func mayBeStored(t *policy.Table, d dialect.Dialect) bool {
	return alwaysStored(t) || t.MaxRowsPerUnit == 1 && provable(t) && d.OneScan && !d.KeepsNoRows
}

// alwaysStored tells whether they are, whatever constraints there are.
func alwaysStored(t *policy.Table) bool { return t.Dataset.Unit.Row || t.RowRank != "" }

// shared is what measures that may be read in one scan have alike; the zero value: a measure is read by itself.
type shared struct {
	table *policy.Table
	rows  string // of a derived table: the text that reads them; of one that is read as it is stored: the conditions by which an index may find them
}

// sharedBy finds it. A derived table's rows are kept for several measures where they are numbered whatever constraints prove: else reading them twice takes less
// than keeping them, and they are tallied, for measures of one SELECT, or each measure reads them.
func sharedBy(m *plans.Measure, d dialect.Dialect) shared {
	a := assumed{}
	if m.Table.Derived != nil {
		a.single = singles(m.Table, d)
	}
	w := writerOf(m, d, a)
	switch {
	case m.Open != nil || m.Window != nil || w.groupsBounded(m):
		return shared{}
	case m.Table.Derived == nil && alwaysStored(m.Table) && !d.OneScan:
		return shared{}
	case m.Table.Derived == nil && mayBeStored(m.Table, d):
		return shared{table: m.Table, rows: w.narrowConditions(m)}
	}
	w.used = m.Table.Columns
	text, bound := w.source()
	switch {
	case w.numberings > 0 && d.KeepsNoRows:
		return shared{}
	case w.err != nil || w.numberings == 0 && (m.Table.Derived == nil || !d.OneScan):
		return shared{}
	case w.numberings == 0:
		return shared{table: m.Table, rows: w.narrowConditions(m)}
	case m.Table.Derived == nil:
		return shared{table: m.Table}
	}
	return shared{rows: text + "\x00" + bound + "\x00" + joinedArgs(w.args)}
}

func joinedArgs(args []any) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.(string)
	}
	return strings.Join(texts, "\x00")
}

// writerOf is a writer of a query over a measure's table.
func writerOf(m *plans.Measure, d dialect.Dialect, a assumed) *writer {
	return &writer{composed: &composed{dialect: d, proven: a.single, unique: a.enforced, ranks: a.ranks, seen: map[string]string{}, window: m.Window}, table: m.Table, alias: "s"}
}

// joint writes the query of several measures.
func (w *writer) joint(list []*plans.Measure) string {
	var parts []string
	with := ""
	stored := w.asStored(list[0])
	var all *plans.Measure // which they are tallied by; nil: by none
	if w.dialect.OneScan && (stored || w.sameTable(list)) {
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

// sameTable tells whether measures are of one derived table.
func (w *writer) sameTable(list []*plans.Measure) bool {
	return list[0].Table.Derived != nil && !slices.ContainsFunc(list, func(m *plans.Measure) bool { return m.Table != list[0].Table })
}

// tallyRows is how many rows a tally of a measure of nothing is expected to have, by stored values, or by the normalised ones of a derived table;
// more than any limit: many.
func (w *writer) tallyRows(m *plans.Measure) uint64 {
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
	var items, keys, conditions []string
	for i, c := range m.Grain {
		name := "x" + strconv.Itoa(i+1)
		items, keys = append(items, w.use(c)+" AS "+name), append(keys, strconv.Itoa(i+1))
		t.names[c] = "s." + name
	}
	for i := range m.Counters {
		name := "k" + strconv.Itoa(i+1)
		count, summed := w.counter(m, i)
		if t.summed = append(t.summed, summed); !summed {
			items = append(items, w.output(count, name))
		} else {
			items = append(items, count+" AS "+name)
		}
	}
	if m.Where != nil {
		conditions = append(conditions, w.predicate(m.Where))
	}
	from, bound := w.source()
	if bound != "" {
		conditions = append([]string{bound}, conditions...)
	}
	t.sql = selected(items, from, conditions, keys)
	return t
}

// jointly is a measure of which several, over one table, are made: by the columns of all of them, in pieces that all of theirs are made of, under
// the conditions that all of them have, and with each one's others as its counters' own.
func (w *writer) jointly(list []*plans.Measure) *plans.Measure {
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
			var sum *plans.Sum
			if m.Sums != nil {
				sum = m.Sums[i]
			}
			if rest != nil {
				p = predicate.All(rest, p)
			}
			own.Counters, own.Sums = append(own.Counters, p), append(own.Sums, sum)
		}
	}
	return own
}

// condition is one of the conditions that all hold of a measure's rows, and how it is written for rows as they are stored, or for those of a derived table.
type condition struct {
	pred predicate.Pred
	text string
}

func (c condition) among(list []condition) bool {
	return slices.ContainsFunc(list, func(o condition) bool { return o.text == c.text })
}

// conditionsOf are those of a measure.
func (w *writer) conditionsOf(m *plans.Measure) (list []condition) {
	for _, p := range conjuncts(m.Where) {
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

// A condition is narrow where it holds in less than an eighth of its column's cells.
const narrow = 8

// narrowConditions are the narrow ones of a measure, by which an index may find its rows: measures that are read in one scan have the same ones.
//
//	count(*) WHERE seen >= '2025-12-01' and count(*) WHERE seen >= '2025-12-01' AND sex = 'f' are read in one scan WHERE seen >= '2025-12-01';
//	count(*) WHERE seen >= '2025-12-01' and count(*) WHERE born < '1930-01-01' each by itself, for a scan of both would be one of all rows
func (w *writer) narrowConditions(m *plans.Measure) string {
	var texts []string
	for _, c := range w.conditionsOf(m) {
		if isNarrow(c.pred) {
			texts = append(texts, c.text)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\x00")
}

func isNarrow(p predicate.Pred) bool {
	switch p := p.(type) {
	case predicate.Never:
		return true
	case predicate.AnyOf:
		return !slices.ContainsFunc(p, func(part predicate.Pred) bool { return !isNarrow(part) })
	case predicate.AllOf:
		return slices.ContainsFunc(p, isNarrow)
	case predicate.InCells:
		return plans.CellsIn(p.Spans)*narrow < p.Column.Domain.Size()
	case predicate.Compare:
		d := p.Column.Domain
		below, ok := d.Cell(p.Value)
		switch {
		case p.Op == "=":
			return true
		case !ok || !d.Ordered():
			return false
		case p.Op == "<" || p.Op == "<=":
			return below*narrow < d.Size()
		}
		return p.Op != "<>" && (d.Size()-below)*narrow < d.Size()
	}
	return false
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

// fromRows writes the bounded rows that several measures read, with what all of them need, and each measure's cells and counts of them.
func (w *writer) fromRows(list []*plans.Measure) (rows string, parts []string) {
	used := make([]bool, len(w.table.Columns))
	for _, m := range list {
		v := w.over(m.Table, "s")
		items, keys := v.counted(m)
		var conditions []string
		if m.Where != nil {
			conditions = append(conditions, v.predicate(m.Where))
		}
		for i, c := range m.Table.Columns {
			if slices.Contains(v.used, c) && i < len(used) {
				used[i] = true
			}
		}
		parts = append(parts, selected(items, "scan", conditions, keys))
	}
	from, bound, depth := "", "", w.depth
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
		} else if text != from || its != bound {
			w.fail("measures of other rows in one scan")
		}
	}
	var items, conditions []string
	for i, is := range used {
		if is {
			items = append(items, "s.n"+strconv.Itoa(i+1))
		}
	}
	if len(items) == 0 {
		items = []string{"1 AS one"}
	}
	if bound != "" {
		conditions = []string{bound}
	}
	return selected([]string{strings.Join(items, ", ")}, from, conditions, nil), parts
}

// stacked writes the answers of several measures one below the other, each row with the number of its measure before it; columns that a measure does not have are 0.
func (w *writer) stacked(list []*plans.Measure, parts []string) string {
	cells, counts := 0, 0
	for _, m := range list {
		cells, counts = max(cells, len(m.Grain)), max(counts, len(m.Counters))
	}
	var texts []string
	for leaf, m := range list {
		items := []string{w.cast(strconv.Itoa(leaf), "int4") + " AS leaf"}
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
		texts = append(texts, "SELECT "+strings.Join(items, ", ")+"\nFROM ("+parts[leaf]+") AS t")
	}
	return strings.Join(texts, "\nUNION ALL\n")
}

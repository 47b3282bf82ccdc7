package planner

import (
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// The law of what is held (privacy rule 27): whatever an account has bought, an answer that is read from it is what a
// fresh account would have paid for. Statements are drawn over one account that buys all of them; each is planned for
// it and for an account that holds nothing, and both plans read the true counts of the same rows, with noise left out.
// The rows are drawn cell by cell, NULL's and 'other' among them, of whatever table the measures are over: the law
// holds of every linear map on cells, whether or not rows of a derived table can be such.

var (
	historySeed       = flag.Int64("history-seed", 7, "of the statements of TestHistory and of its rows")
	historyDrawn      = flag.Int("history-statements", 2000, "how many statements TestHistory draws")
	historyPredicates = flag.Int("history-conditions", 2000, "how many conditions TestHistoryOfPredicates asks")
	historyBought     = flag.Int("history-bought", 200, "how many statements an account of TestHistory has bought; it asks ten times as many")
)

// drawer draws statements over the tables of a policy.
type drawer struct {
	*rand.Rand
	constants map[*policy.Column][]string // few, so that they come again
	met       map[*policy.Table][]string  // conditions that stood in a statement, with §. for its table's name
}

func (d *drawer) one(of ...string) string { return of[d.Intn(len(of))] }

// constant is one that values of a column are compared with: on its steps, between two, at its ends, beyond.
func (d *drawer) constant(c *policy.Column) string {
	if d.constants[c] == nil {
		dom := c.Domain
		list := []policy.Value{dom.Low(0), dom.Low(dom.Regular - 1)}
		if dom.Ordered() {
			list = append(list, dom.Max)
		}
		for range 4 {
			cell := d.Intn(dom.Regular)
			list = append(list, dom.Low(cell))
			if !dom.Single() {
				list = append(list, inside(d.Rand, c, cell))
			}
		}
		for _, v := range list {
			d.constants[c] = append(d.constants[c], "'"+policy.FormatValue(c.Type, v)+"'::"+c.Type.Name())
		}
	}
	return d.one(d.constants[c]...)
}

// inside is a value of a column's type within a cell.
func inside(r *rand.Rand, c *policy.Column, cell int) policy.Value {
	low, high := c.Domain.Low(cell), c.Domain.High(cell)
	switch low := low.(type) {
	case policy.Numeric:
		n := low.Rescale(max(low.Scale, c.Domain.Scale, 2))
		width := new(big.Int).Sub(high.(policy.Numeric).At(n.Scale), n.Coefficient)
		return policy.Numeric{Coefficient: width.Add(n.Coefficient, width.Rand(r, width)), Scale: n.Scale}
	case float64:
		return low + (high.(float64)-low)*float64(1+r.Intn(7))/8
	case int64:
		return low + r.Int63n(high.(int64)-low+1)
	case policy.Date:
		return low + policy.Date(r.Int63n(int64(high.(policy.Date)-low)+1))
	case policy.Timestamp:
		return low + policy.Timestamp(r.Int63n(4)*int64(high.(policy.Timestamp)-low)/4)
	}
	return low
}

// condition is one over the columns of a table, as by a name.
func (d *drawer) condition(t *policy.Table, as string, depth int) string {
	if list := d.met[t]; len(list) > 0 && d.Intn(3) == 0 {
		return strings.ReplaceAll(list[d.Intn(len(list))], "§", as)
	}
	text := d.drawn(t, "§", depth)
	if len(d.met[t]) < 40 {
		d.met[t] = append(d.met[t], text)
	}
	return strings.ReplaceAll(text, "§", as)
}

func (d *drawer) drawn(t *policy.Table, as string, depth int) string {
	of := func(depth int) string { return d.condition(t, as, depth) }
	if depth > 0 {
		switch d.Intn(8) {
		case 0, 1:
			return "(" + of(depth-1) + " AND " + of(depth-1) + ")"
		case 2, 3:
			return "(" + of(depth-1) + " OR " + of(depth-1) + ")"
		case 4:
			return "NOT (" + of(depth-1) + ")"
		case 5:
			return "(" + of(depth-1) + ") IS " + d.one("", "NOT ") + d.one("TRUE", "FALSE", "UNKNOWN")
		case 6: // of which one holds, or none, wherever it is not NULL
			p := of(depth - 1)
			return d.one("("+p+" OR NOT ("+p+"))", "NOT ("+p+" AND NOT ("+p+"))", "("+p+" AND NOT ("+p+"))")
		}
	}
	c := t.Columns[d.Intn(len(t.Columns))]
	name := as + c.Name
	switch d.Intn(9) {
	case 0:
		return name + " IS " + d.one("", "NOT ") + "NULL"
	case 1:
		return name + " IN (" + d.constant(c) + ", " + d.constant(c) + ")"
	case 2:
		if c.Domain.Single() {
			return name + " IS " + d.one("", "NOT ") + "DISTINCT FROM " + d.constant(c)
		}
	case 3:
		return "(" + name + d.one(" < ", " <= ", " = ") + d.constant(c) + " OR " + name + d.one(" > ", " >= ", " <> ") + d.constant(c) + ")"
	case 4:
		return name + d.one("", " NOT") + " BETWEEN " + d.constant(c) + " AND " + d.constant(c)
	}
	return name + " " + d.one("<", "<=", ">", ">=", "=", "<>") + " " + d.constant(c)
}

// counts are what is counted over the rows of a table.
func (d *drawer) counts(t *policy.Table, as string) string {
	var items []string
	for range 1 + d.Intn(2) {
		c := t.Columns[d.Intn(len(t.Columns))]
		item := d.one("count(*)", "count(*)", "count("+as+c.Name+")", "sum(("+d.condition(t, as, 1)+")::int)", "count(DISTINCT "+as+c.Name+")")
		if strings.Contains(item, "DISTINCT") && !c.Domain.Single() {
			item = "count(*)"
		}
		if c.Type.Integer() || c.Type == policy.NumericType {
			item = d.one(item, item, "sum("+as+c.Name+")", "avg("+as+c.Name+")")
		}
		if d.Intn(4) == 0 {
			item += " FILTER (WHERE " + d.condition(t, as, 1) + ")"
		}
		items = append(items, item)
	}
	return strings.Join(items, ", ")
}

// key is a group key over a table's columns, with the comma or words before it; empty means there is none.
func (d *drawer) key(t *policy.Table, as string) string {
	c := t.Columns[d.Intn(len(t.Columns))]
	return d.one("", "", "", as+c.Name, as+c.Name, "("+d.condition(t, as, 0)+")")
}

// statement is one over the tables of a dataset, of which the first holds the unit.
func (d *drawer) statement(tables []*policy.Table) string {
	t := tables[d.Intn(len(tables))]
	depth := d.Intn(4)
	grouped := func(counts, from, key string) string {
		if key == "" {
			return "SELECT " + counts + from
		}
		return "SELECT " + key + ", " + counts + from + " GROUP BY 1"
	}
	switch d.Intn(12) {
	case 0, 1: // a join by the unit
		a, b := tables[0], tables[1]
		from := " FROM " + b.Name + " v JOIN " + a.Name + " e ON v.person_id = e.person_id WHERE " + d.one(d.condition(a, "e.", depth), d.condition(b, "v.", depth)) + d.one("", " AND "+d.condition(b, "v.", 1))
		return grouped(d.one(d.counts(a, "e."), d.counts(b, "v.")), from, d.one(d.key(a, "e."), d.key(b, "v.")))
	case 2, 3: // rows of which others are, or are not, there
		a, b := tables[0], tables[1]
		from := " FROM " + a.Name + " e WHERE " + d.one("", "NOT ") + "EXISTS (SELECT 1 FROM " + b.Name + " v WHERE v.person_id = e.person_id AND " + d.condition(b, "v.", min(depth, 1)) + ")" + d.one("", " AND ", " OR ")
		if strings.HasSuffix(from, " ") {
			from += d.condition(a, "e.", depth)
		}
		return grouped(d.counts(a, "e."), from, d.key(a, "e."))
	case 4: // one row a unit
		b := tables[1]
		return "SELECT count(*), sum(n) FROM (SELECT person_id, count(*) AS n FROM " + b.Name + " WHERE " + d.condition(b, "", min(depth, 1)) + " GROUP BY person_id) s" + d.one("", " WHERE n > 1 OR n <= 1", " WHERE n > 1")
	case 5:
		return "SELECT " + d.counts(t, "") + " FROM " + t.Name
	}
	return grouped(d.counts(t, ""), " FROM "+t.Name+" WHERE "+d.condition(t, "", depth), d.key(t, ""))
}

// cellRows are rows of a table by the cells of its columns: as many of each kind as chance has it, all by themselves.
func cellRows(r *rand.Rand, t *policy.Table, n int) []scalar.Row {
	rows := make([]scalar.Row, n)
	for i := range rows {
		row := make(scalar.Row, len(t.Columns))
		for j, c := range t.Columns {
			if c.Private || c.Domain == nil {
				continue
			}
			cell := r.Intn(c.Domain.Size())
			if c.Domain.Null >= 0 && r.Intn(4) == 0 {
				cell = c.Domain.Null
			}
			row[j] = c.Domain.Low(cell)
			if !c.Domain.Single() && cell < c.Domain.Regular && c.Domain.Ladder == nil {
				row[j] = inside(r, c, cell)
			}
		}
		rows[i] = row
	}
	return rows
}

// readsCounts tells plans that read nothing but counts and sums: no choices, alarms or made-up rows.
func readsCounts(p *plans.Plan) bool {
	if len(p.Inner)+len(p.Finds) > 0 || slices.ContainsFunc(p.Measures, func(m *plans.Measure) bool { return !mechanisms.Is[*mechanisms.Counts](m.Spec) }) {
		return false
	}
	return !slices.ContainsFunc(p.Leaves, func(l *plans.Leaf) bool {
		return l.Synthetic != nil || slices.ContainsFunc(l.Counts, func(c plans.CountColumn) bool {
			return slices.ContainsFunc(c.Runs, func(r plans.Run) bool { return r.Threshold != nil || r.Selected != nil })
		})
	})
}

// tableRows are the rows of each table that measures are over, by its meaning.
type tableRows struct {
	*rand.Rand
	of map[string][]scalar.Row
}

// truth are the true vectors of a plan's measures over the rows.
func (r *tableRows) truth(t *testing.T, p *plans.Plan) [][][]int64 {
	out := make([][][]int64, len(p.Measures))
	for i, m := range p.Measures {
		of := linear.KnownOf(m.Table).Fingerprint
		if r.of[of] == nil {
			r.of[of] = cellRows(r.Rand, m.Table, 60)
		}
		out[i] = measureOn(t, m, r.of[of])
	}
	return out
}

// planOf plans a statement; nil means it is refused.
func planOf(t *testing.T, c reuse.Context, sql string) *plans.Plan {
	t.Helper()
	list, refusal := parse.Parse(sql)
	if refusal != nil {
		t.Fatalf("%s: %v", sql, refusal)
	}
	p, refusal := Build(list[0], nil, c)
	if refusal != nil {
		return nil
	}
	return p
}

// historyPolicy has columns of every kind of domain and rule, over rows that never change.
func historyPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	data, err := os.ReadFile("testdata/history.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(data, "testdata/history.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHistory: what a long ledger answers for nothing is what a fresh account pays for.
func TestHistory(t *testing.T) {
	p := historyPolicy(t)
	d := &drawer{Rand: rand.New(rand.NewSource(*historySeed))}
	answered, free, mixed := 0, 0, 0
	for asked := 0; asked < *historyDrawn; {
		c := testContext(t, p)
		d.constants, d.met = map[*policy.Column][]string{}, map[*policy.Table][]string{}
		c.Dataset.Buying.Cells = d.Intn(2) * 64 // 0: what is bought is what is asked for
		for _, of := range c.Dataset.Tables {
			buys(t, c, "SELECT count(*) FROM "+of.Name)
		}
		for range *historyBought {
			if bought := planOf(t, c, d.statement(c.Dataset.Tables)); bought != nil {
				c.Holdings.(*shelf).buy(bought)
			}
		}
		c.Settings.Epsilon = epsilon(t, "0.001") // so that what is held is always more exact
		alone := c
		alone.Holdings = &shelf{}
		for range min(*historyDrawn-asked, 10**historyBought) {
			asked++
			sql := d.statement(c.Dataset.Tables)
			got := planOf(t, c, sql)
			if got != nil {
				answered++
			}
			if got != nil && !slices.ContainsFunc(got.Measures, func(m *plans.Measure) bool { return m.Held }) {
				continue
			}
			want := planOf(t, alone, sql)
			if got == nil || want == nil {
				if got != want {
					t.Errorf("%s is refused to one of both", sql)
				}
				continue
			}
			if !readsCounts(got) || !readsCounts(want) {
				continue
			}
			free++
			if slices.ContainsFunc(got.Leaves, func(l *plans.Leaf) bool {
				return slices.ContainsFunc(l.Counts, func(c plans.CountColumn) bool { return len(c.Runs) > 0 && c.Runs[0].Mix != nil })
			}) {
				mixed++
			}
			rows := &tableRows{d.Rand, map[string][]scalar.Row{}}
			read, fresh := rows.truth(t, got), rows.truth(t, want)
			for i := range want.Leaves {
				if a, b := fmt.Sprint(answer(got.Leaves[i], read)), fmt.Sprint(answer(want.Leaves[i], fresh)); a != b {
					t.Errorf("%s is read from what is held as\n%s, and fresh as\n%s", sql, a, b)
					break
				}
			}
		}
	}
	t.Logf("seed %d: %d of %d statements were answered, %d with what was held, %d by sums and differences", *historySeed, answered, *historyDrawn, free, mixed)
	if free < *historyDrawn/20 || mixed < *historyDrawn/100 {
		t.Errorf("too few are answered with what is held")
	}
}

// predicates draws conditions on some columns of a table, off the grid too.
func (d *drawer) predicate(columns []*policy.Column, depth int) predicate.Pred {
	if depth > 0 {
		p, q := d.predicate(columns, depth-1), d.predicate(columns, d.Intn(depth))
		switch d.Intn(6) {
		case 0, 1:
			return predicate.All(p, q)
		case 2, 3:
			return predicate.Any(p, q)
		case 4:
			return predicate.Not(p)
		}
	}
	c := columns[d.Intn(len(columns))]
	if dom := c.Domain; dom.Ordered() && !dom.Single() && d.Intn(2) == 0 {
		v := inside(d.Rand, c, d.Intn(min(dom.Regular, 3)))
		return predicate.Compare{Column: c, Op: d.one("<", "<=", ">", ">=", "=", "<>"), Value: v}
	}
	spans := predicate.FromTo(d.Intn(c.Domain.Size()), 1+d.Intn(c.Domain.Size()))
	if c.Domain.Null >= 0 && d.Intn(3) == 0 {
		spans = predicate.Unite(spans, predicate.One(c.Domain.Null))
	}
	return predicate.Cells(c, spans)
}

// sumOf adds up cells.
func sumOf(cells []int64, spans []mechanisms.Span) (sum int64) {
	for _, s := range spans {
		for _, n := range cells[s.From:s.To] {
			sum += n
		}
	}
	return sum
}

// counted is what a measure counts: the rows of a filter, by the cells of some columns, put into few classes at times.
func (d *drawer) counted(t *policy.Table, columns []*policy.Column, filter predicate.Pred, counts ...predicate.Pred) *linear.Query {
	s := linear.Identity(t, columns)
	s.Filter, s.Counts, s.Sums, s.Values, s.Cells = filter, counts, make([]*linear.Summand, len(counts)), make([]*linear.DistinctValues, len(counts)), 1
	for _, p := range s.Factors {
		if p.Masks = make([][]bool, len(counts)); d.Intn(2) == 0 {
			for i := range p.Class {
				p.Class[i] = int32(d.Intn(3))
			}
			p.Class[0], p.Class[1], p.Classes = 0, 1, 3
			p.Class[2] = 2
		}
		for c := range counts {
			if d.Intn(4) == 0 {
				p.Masks[c] = make([]bool, len(p.Class))
				for i := range p.Masks[c] {
					p.Masks[c][i] = d.Intn(3) > 0
				}
			}
		}
		s.Cells *= p.Classes
	}
	return s
}

// TestHistoryOfPredicates: what the measures of a long ledger add up to, or contain, is what is asked, on whatever
// rows.
func TestHistoryOfPredicates(t *testing.T) {
	d := &drawer{Rand: rand.New(rand.NewSource(*historySeed))}
	table := historyPolicy(t).Datasets[0].Tables[0]
	confidence := testContext(t, historyPolicy(t)).Settings.Confidence
	asked, mixed, contained := 0, 0, 0
	counting := func(s *linear.Query) *plans.Measure {
		m := s.Measure(s.Kind(), "drawn")
		var err error
		if m.Spec, err = mechanisms.Plain(len(s.Counts), s.Cells, table.ContributionTo(s.Cells), privacy.Cost{Epsilon: epsilon(t, "0.1")}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for asked < *historyPredicates {
		var columns []*policy.Column
		for range 3 {
			columns = predicate.WithColumn(columns, table.Columns[d.Intn(len(table.Columns))])
		}
		index, met := reuse.NewIndex(), []predicate.Pred{nil}
		condition := func() predicate.Pred {
			p, q := met[d.Intn(len(met))], met[d.Intn(len(met))]
			switch d.Intn(6) {
			case 0:
				return predicate.Not(p)
			case 1:
				return predicate.All(p, q)
			case 2:
				return predicate.Any(p, q)
			case 3:
				return predicate.All(p, predicate.Not(q))
			}
			return d.predicate(columns, d.Intn(3))
		}
		for id := range int64(30) {
			filter := condition()
			met = append(met, filter)
			counts, by := []predicate.Pred{nil}, columns[:0]
			if d.Intn(3) == 0 {
				counts = append(counts, condition())
			}
			if d.Intn(3) == 0 {
				by = columns[:1+d.Intn(len(columns))]
			}
			m := counting(d.counted(table, by, filter, counts...))
			index.Add(reuse.Holding{ID: id + 1, Digest: m.Digest, Spec: m.Spec, Described: m.Describe()})
		}
		views := index.Views(table)
		combining := &reuse.Combining{Views: views, Confidence: confidence}
		rows := cellRows(d.Rand, table, 40)
		for range 200 {
			asked++
			s := d.counted(table, columns[:d.Intn(2)], condition(), nil)
			own := measureOn(t, counting(s), rows)
			for _, h := range views.Finer(s) {
				r := reuse.CoverHeld(s, h.HeldOn)
				if r == nil {
					r = reuse.CoverWithin(s, h.Measure.Query)
				}
				if r == nil {
					continue
				}
				contained++
				read := measureOn(t, counting(h.Measure.Query), rows)
				for cell, spans := range r.Spans[0] {
					if got := sumOf(read[r.Counters[0]], spans); got != own[0][cell] {
						t.Fatalf("%s contains as %d in cell %d what are %d rows of %s", predText(h.Measure.Filter), got, cell, own[0][cell], predText(s.Filter))
					}
				}
			}
			var list []reuse.Mixing
			for cell := range s.Cells {
				if wanted, ok := s.ConditionOf(0, cell); ok {
					list = append(list, reuse.Mixing{Cell: cell, Wanted: wanted, Limit: math.Inf(1), Near: views.Near(wanted)})
				}
			}
			found := combining.Within(s, list, "static")
			if found == nil {
				continue
			}
			mixed++
			truth := make([][][]int64, len(found.Measures))
			for i, m := range found.Measures {
				truth[i] = measureOn(t, m, rows)
			}
			for cell := range s.Cells {
				got := int64(0)
				if mix := found.Reading.Mix; mix != nil {
					got = mixedTruth(mix.Terms[0][cell], truth)
				} else {
					got = sumOf(truth[0][found.Reading.Counters[0]], found.Reading.Spans[0][cell])
				}
				if got != own[0][cell] {
					t.Fatalf("what is held adds up to %d in cell %d, which are %d rows of %s: %d measures", got, cell, own[0][cell], predText(list[cell].Wanted), len(found.Measures))
				}
			}
		}
	}
	t.Logf("seed %d: of %d conditions %d were added up, %d contained", *historySeed, asked, mixed, contained)
	if mixed < asked/20 || contained < asked/20 {
		t.Error("too few are answered with what is held")
	}
}

package planner

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// comparisons draws comparisons of columns with constants, and has the cuts that each makes in a column's values, and
// whether some are within its steps.
type comparisons struct {
	r      *rand.Rand
	cuts   map[string][]string
	within map[string]bool
}

// boundsOf are constants to compare a column with: within its steps, on them, and at its ends and beyond them.
var boundsOf = map[string][][]string{
	"income": {{"0.01", "500", "12345.67", "12345.68", "77000.5", "199999.99"}, {"1000", "13000", "77000"},
		{"0", "200000", "-1", "250000"}},
	"score": {{"0.1", "2.75", "2.750001", "9.999"}, {"0.5", "3", "9.5"}, {"0", "10", "-2", "11"}},
}

// drawn is a comparison of a column with one of some constants, or of its own of some kinds.
func (c comparisons) drawn(column string, kinds int, bounds ...string) string {
	if len(bounds) == 0 {
		kind := c.r.Intn(kinds)
		bounds, c.within[column] = boundsOf[column][kind], c.within[column] || kind == 0
	}
	op, bound := []string{"<", "<=", ">", ">=", "<", ">", "=", "<>"}[c.r.Intn(8)], bounds[c.r.Intn(len(bounds))]
	for _, side := range map[string][]string{"<": {"before"}, ">=": {"before"}, ">": {"after"}, "<=": {"after"},
		"=": {"before", "after"}, "<>": {"before", "after"}}[op] {
		if cut := side + " " + bound; !slices.Contains(c.cuts[column], cut) {
			c.cuts[column] = append(c.cuts[column], cut)
		}
	}
	if c.r.Intn(5) == 0 {
		return bound + " " + predicate.Mirrored[op] + " " + column
	}
	return column + " " + op + " " + bound
}

// around is a value of a column from and around the bounds, or NULL.
func around(r *rand.Rand, column string) policy.Value {
	bounds := slices.Concat(boundsOf[column]...)
	v, _ := strconv.ParseFloat(bounds[r.Intn(len(bounds))], 64)
	v += []float64{0, 0, -0.01, 0.01, -0.000001}[r.Intn(5)]
	switch {
	case r.Intn(8) == 0:
		return nil
	case column == "score":
		return min(max(v, 0), 10)
	}
	n, err := policy.ParseNumeric(strconv.FormatFloat(min(max(v, 0), 200000), 'f', 6, 64))
	if err != nil {
		panic(err)
	}
	return n
}

// firstOf is a key by which of some conditions holds first.
func firstOf(list []string) string {
	var b strings.Builder
	for i, condition := range list {
		fmt.Fprintf(&b, " WHEN %s THEN %d", condition, i)
	}
	return "CASE" + b.String() + " END"
}

// allOf is a key by what all of some conditions are.
func allOf(list []string) string {
	key := "0"
	for _, condition := range list {
		key = fmt.Sprintf("3 * (%s) + CASE WHEN %s THEN 1 WHEN NOT (%[2]s) THEN 0 ELSE 2 END", key, condition)
	}
	return key
}

// TestConditionsAreIntervals: a key by some comparisons of one or two columns asks for at most as many cells as these
// cut the columns' values into, and NULL, unless all are on a column's steps; each row lies in a cell in which the comparisons are what they are on it.
func TestConditionsAreIntervals(t *testing.T) {
	const seed = 223
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	c.Settings.Epsilon, c.Dataset.Buying.Cells = c.Dataset.Defaults.MaxEpsilon, 0
	people := c.Dataset.Tables[0]
	at := places(people)
	long, released, joint := 0, 0, 0
	for range 400 {
		of := comparisons{r, map[string][]string{}, map[string]bool{}}
		columns := []string{"income", "score"}[:1+r.Intn(2)]
		list := make([]string, 1+r.Intn(14))
		together := len(columns) == 2 && len(list) <= 6 && r.Intn(2) == 0
		awaited := r.Intn(4) == 0
		for i := range list {
			column := columns[r.Intn(len(columns))]
			switch {
			case together:
				list[i] = of.drawn("income", 2) + []string{" AND ", " OR "}[r.Intn(2)] + of.drawn("score", 2)
			case awaited && r.Intn(4) == 0:
				list[i] = of.drawn("income", 0, "(SELECT avg(income) FROM people)",
					"(SELECT count(*) / 7.0 FROM people)")
				of.within["income"] = true
			default:
				list[i] = of.drawn(column, 3)
			}
		}
		intervals := 1
		for column := range of.cuts {
			if of.within[column] || together && (of.within["income"] || of.within["score"]) {
				intervals *= len(of.cuts[column]) + 2
			} else { // cells decide
				intervals *= columnOf(people, column).Domain.Size()
			}
		}
		keyed := []func(list []string) string{firstOf, allOf}[r.Intn(2)]
		text := "SELECT " + keyed(list) + " AS k, count(*) FROM people GROUP BY 1"
		plan, refusal := planned(t, c, text)
		if refusal != nil {
			t.Errorf("%s: %s", text, refusal.Message)
			continue
		}
		m := plan.Measures[len(plan.Measures)-1]
		cells := 1
		for i := range m.Grain {
			cells *= m.Size(i)
		}
		if cells > intervals {
			t.Errorf("%s asks for %d cells, of %d combinations of intervals", text, cells, intervals)
		}
		if len(columns) == 1 {
			slices.Reverse(list)
			again, _ := planned(t, c, "SELECT "+keyed(list)+" AS k, count(*) FROM people GROUP BY 1")
			if !bytes.Equal(again.Measures[len(again.Measures)-1].Table.Fingerprint(), m.Table.Fingerprint()) {
				t.Errorf("%s has other cells in another order", text)
			}
		}
		long += len(list) / 11
		if together {
			joint++
		}
		if strings.Contains(text, "(SELECT") {
			released++
			continue
		}
		rows := randomRows(r, people, 60)
		for i := range rows {
			for _, column := range []string{"income", "score"} {
				rows[i][at[columnOf(people, column)]] = around(r, column)
			}
		}
		agree(t, text, answer(plan.Leaves[0], trueVectors(t, plan, rows)), naive(t, c, text, rows))
	}
	t.Logf("%d lists of more than ten, %d with released numbers, %d of both columns", long, released, joint)
	if long < 50 || released < 40 || joint < 20 {
		t.Error("too few of a kind were drawn")
	}
}

// TestTruthsAreAll: what predicates of all kinds are together on a row is one of the combinations that Truths has.
func TestTruthsAreAll(t *testing.T) {
	const seed = 224
	r := rand.New(rand.NewSource(seed))
	people := testContext(t, testPolicy(t)).Dataset.Tables[0]
	at := places(people)
	column := func(names ...string) *policy.Column { return columnOf(people, names[r.Intn(len(names))]) }
	compared := func(c *policy.Column) predicate.Pred {
		cell, d := r.Intn(c.Domain.Regular), c.Domain
		v := d.Low(cell)
		if !d.Single() && r.Intn(2) == 0 {
			v = semantics.InnerOf(d, cell, semantics.LastOf(d, cell))
		}
		return predicate.Compare{Column: c, Op: []string{"<", "<=", ">", ">=", "=", "<>"}[r.Intn(6)], Value: v}
	}
	var drawn func(depth int) predicate.Pred
	drawn = func(depth int) predicate.Pred {
		op := []string{"<", "<=", ">", ">=", "=", "<>"}[r.Intn(6)]
		age, kids := columnOf(people, "age"), columnOf(people, "kids")
		switch kind := r.Intn(8); {
		case kind == 0:
			c := column("income", "sex", "age")
			from := r.Intn(c.Domain.Size())
			return predicate.Cells(c, predicate.FromTo(from, from+1+r.Intn(c.Domain.Size()-from)))
		case kind == 1:
			return predicate.Past{Column: column("seen"), Op: op, By: r.Int63n(3600) * 1e6}
		case kind == 2:
			return predicate.Between{Left: age, Right: kids, Op: op}
		case kind == 3:
			return predicate.Sum{Terms: []predicate.Term{{Times: 1, Column: age}, {Times: -2, Column: kids}}, Op: op,
				Value: int64(r.Intn(60))}
		case kind < 6 || depth == 0:
			return compared(column("income", "score", "seen"))
		case kind == 6:
			return predicate.All(drawn(depth-1), predicate.Not(drawn(depth-1)))
		}
		return predicate.Any(drawn(depth-1), predicate.Not(drawn(depth-1)))
	}
	looked, left := 0, 0
	for range 300 {
		list := make([]predicate.Pred, 1+r.Intn(4))
		for i := range list {
			list[i] = drawn(2)
		}
		all := predicate.Truths(list, 1<<20)
		if all == nil {
			continue
		}
		may := map[string]bool{}
		for of := range all {
			may[fmt.Sprint(of)] = true
		}
		looked, left = looked+1, left+1<<len(list)-len(may)
		for _, row := range randomRows(r, people, 60) {
			is := make([]bool, len(list))
			for i, p := range list {
				is[i] = holdsOn(t, p, row, at)
			}
			if !may[fmt.Sprint(is)] {
				t.Fatalf("%v are %v on %v, of which there is no combination in %v", list, is, row, may)
			}
		}
	}
	if t.Logf("%d lists, %d combinations do not occur", looked, left); looked < 250 || left < 200 {
		t.Error("too few were drawn")
	}
}

func columnOf(t *policy.Table, name string) *policy.Column {
	return t.Columns[slices.IndexFunc(t.Columns, func(c *policy.Column) bool { return c.Name == name })]
}

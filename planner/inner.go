package planner

import (
	"math"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Sub-queries that are answered before the statement around them is planned to the end (ADR 117). Of
//
//	SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)
//
// the average is planned first, at half of what the statement may cost, and the count for a number in its place.
// Whoever runs the plan buys the average, hands on what was released (Context.Answers), and has the statement planned
// again.
//
// Claim: the statement is as private as two statements, of which an analyst asks the second for what she was answered
// by the first. Proof: she could ask them so. Nothing but the released answer goes from the one to the other: the plan
// of the first is made without the second, and this one's plan is a function of the text, the policy, the settings, her
// holdings and that answer (Build is pure); each is charged by itself before it runs, and the ledger's filters hold for
// costs that are chosen by what was released before (mechanisms/accounting). Together they cost at most what the
// statement may: of k sub-queries over private rows and the statement around them each has a (k+1)-th, whatever was
// released and whatever she holds, so that asked again all of them are found at the exactness that they were bought at.
//
// Limits: before the first is charged, the second's plan is made for a number that is not the one to come. Its cost is
// bounded by its part (AddInner); whether it is refused may depend on what is released (x / (SELECT …) where that came
// to 0), and what the first has cost is then spent.

// maxDepth is how deep such sub-queries may be nested.
const maxDepth = 3

// inners are the sub-queries of one statement which are answered first.
type inners struct {
	of      parse.Statement
	values  []policy.Value
	context reuse.Context // of each
	depth   int
	answers map[string]*plans.Answer
	known   []*plans.Answer
	waiting []*plans.Inner // those that are not answered yet, in the order in which they were met
	private int
	parts   int // that the statement is planned for
}

// planWithin plans a statement that is nested so deep in others.
func planWithin(s parse.Statement, values []policy.Value, c reuse.Context, depth int) (*plans.Plan, *refuse.Refusal) {
	for parts := 1; ; {
		part := c.Part(parts)
		in := &inners{of: s, values: values, context: part, depth: depth + 1, answers: map[string]*plans.Answer{},
			parts: parts}
		p, refusal := planOpen(s, values, part, in)
		if in.private >= parts && in.private > 0 {
			parts = in.private + 1
			continue
		}
		if refusal != nil {
			return nil, refusal
		}
		if len(in.waiting) > 0 {
			p.AddInner(in.waiting, shareOf(part))
		}
		p.Notes = once(append(in.notes(), p.Notes...))
		return p, nil
	}
}

// shareOf is what a part of a statement may cost.
func shareOf(part reuse.Context) (share privacy.Cost) {
	if part.Dataset != nil {
		share = part.Share(1)
	}
	return share
}

// answer is the binder's Answering.
func (in *inners) answer(sel *pg.SelectStmt, use bind.Use) (*plans.Answer, *refuse.Refusal) {
	key := ast.Deparsed(sel)
	if a := in.answers[key]; a != nil || use == bind.Explored {
		return a, nil
	}
	if in.depth > maxDepth {
		return nil, bind.SubqueryDepth.At(-1, in.depth, maxDepth)
	}
	a := in.context.Answers[key]
	if a != nil {
		in.known = append(in.known, a)
	} else {
		c := in.context
		c.Alternatives, c.Settings.ErrorColumns, c.Settings.Significant, c.Settings.MaxError = false, false, false, 0
		of := in.of.Within(sel, key)
		of.Listed = use == bind.Listed
		p, refusal := planWithin(of, in.values, c, in.depth)
		if refusal != nil {
			return nil, refusal
		}
		if a, refusal = standing(p, key, c); refusal != nil {
			return nil, refusal
		}
		in.waiting = append(in.waiting, &plans.Inner{Key: key, Plan: p})
		c.Work.Spare()
	}
	if in.answers[key] = a; a.Private {
		in.private++
	}
	if in.private >= in.parts { // the statement around it is planned for more parts, once it is known for how many
		return nil, &refuse.Refusal{ID: "more-parts"}
	}
	return a, nil
}

// notes say what was answered first, or will be.
func (in *inners) notes() (notes []string) {
	for _, w := range in.waiting {
		notes = append(notes, answeredFirst(w))
		notes = append(notes, w.Plan.Notes...)
	}
	for _, a := range in.known {
		notes = append(notes, a.Notes...)
	}
	return notes
}

// once leaves out what is there twice.
func once(notes []string) (list []string) {
	for _, n := range notes {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

func answeredFirst(w *plans.Inner) string {
	return "answered first, for at most " + w.Plan.Cost.String() + ": " + w.Key + ". The rest is planned for what is released of it"
}

// standing returns typed rows in place of a plan's answer: what its projection makes of a leaf in which each count is
// the part of the expected rows that falls on a group, each sum lies near the middle of its bounds, and so does what is
// chosen among its candidates. Where an engine is needed they are one row of small values. What is divided has as many
// digits as a released mean has, which lies on no column's grid: for a number on a grid the rest could be cheap to plan
// where it is not for what is released, and be given up after the first part is paid for.
func standing(p *plans.Plan, key string, c reuse.Context) (*plans.Answer, *refuse.Refusal) {
	a := &plans.Answer{Standing: true, Private: p.Private(), Columns: columnsOf(p, key, c.Types)}
	if len(a.Columns) == 0 {
		return nil, semantics.RowSubquery.At(-1)
	}
	small := make([]policy.Value, len(a.Columns))
	for i := range a.Columns {
		column := &a.Columns[i]
		if column.Type == policy.Unknown {
			column.Type = policy.Text
		}
		if column.Type == 0 {
			return nil, bind.SubqueryType.At(-1)
		}
		small[i] = smallOf(column.Type, c)
	}
	d := p.Outer.Direct
	if d == nil || d.Leaf < 0 {
		a.Rows = [][]policy.Value{small}
		return a, nil
	}
	leaf := p.Leaves[d.Leaf]
	for r := range leaf.Rows {
		if r >= maxStanding || d.Limit >= 0 && int64(r) >= d.Limit {
			break
		}
		c.Work.Step(1 + len(d.Items))
		row, made := standingRow(p, leaf, r), slices.Clone(small)
		for i, item := range d.Items {
			if v, err := item.Eval(row); err == nil && v != nil {
				made[i] = v
			}
		}
		a.Rows = append(a.Rows, made)
	}
	return a, nil
}

// columnsOf are the columns of a sub-query; nil means only an engine knows them, which has not told them or refuses it.
func columnsOf(p *plans.Plan, key string, types *reuse.Types) (columns []plans.AnswerColumn) {
	for _, c := range p.Columns {
		columns = append(columns, plans.AnswerColumn{Name: c.Name, Type: c.Type, Typmod: c.Typmod})
	}
	if len(columns) > 0 || types == nil {
		return columns
	}
	told, asked := types.Known[key]
	if !asked {
		types.Wanted = &plans.Inner{Key: key, Plan: p}
	}
	return slices.Clone(told)
}

// maxStanding bounds the rows in place of an answer.
const maxStanding = 4096

// standingRow is a row of a leaf as it may be.
func standingRow(p *plans.Plan, leaf *plans.Leaf, r int) []policy.Value {
	var row []policy.Value
	for _, k := range leaf.Keys {
		if r >= len(k.Values) {
			return append(make([]policy.Value, len(leaf.Keys)), make([]policy.Value, len(leaf.Counts))...)
		}
		row = append(row, k.Values[r])
	}
	for i := range leaf.Counts {
		run, _ := leaf.Counts[i].At(r)
		var v policy.Value
		switch {
		case run == nil || run.Measure < 0:
			v = int64(0)
		case run.Threshold != nil:
			v = true
		case run.Selected != nil:
			if at := leaf.Counts[i].In(run, r); at < len(run.Selected.Values) && len(run.Selected.Values[at]) > 0 {
				v = run.Selected.Values[at][len(run.Selected.Values[at])/2]
			} else {
				v = int64(1)
			}
		default:
			m := p.Measures[run.Measure]
			n := int64(leastStanding)
			if m.Table != nil {
				n = max(n, m.Table.ExpectedRows/int64(max(leaf.Rows, 1)))
			}
			n += int64(3 + 2*i)
			if sums := m.Spec.Counts().Sums; run.Counter < len(sums) && leaf.Counts[i].Unit != nil {
				b := sums[run.Counter].Bound
				middle := b.Low/2 + b.High/2
				if middle != 0 {
					n = min(n, math.MaxInt32)
					if most := int64(math.MaxInt64/2) / n; middle > most || middle < -most {
						middle = most
					}
				}
				n = n*middle + n/3
			}
			v = n
		}
		row = append(row, v)
	}
	return row
}

// leastStanding is the least count in place of one: beyond the error below which an average is NULL, for most
// settings.
const leastStanding = 1_000_000

// smallOf is a value that divides, and is no extreme.
func smallOf(t policy.Type, c reuse.Context) policy.Value {
	switch t {
	case policy.Bool:
		return true
	case policy.Int2, policy.Int4, policy.Int8:
		return int64(1)
	case policy.NumericType:
		return policy.NewNumeric(10000000000000003, 16)
	case policy.Float4, policy.Float8:
		return 1.0000000000000002
	case policy.DateType:
		return policy.Date(c.Now.Unix() / 86400)
	case policy.TimestampT:
		return policy.Timestamp(c.Now.UnixMicro())
	case policy.TimestampTZ:
		return policy.Timestamptz(c.Now.UnixMicro())
	case policy.Text, policy.Varchar, policy.Bpchar:
		return "a"
	}
	return nil
}

// describing answers sub-queries for a Describe: their columns have types, and the parameters in them are the
// statement's. Engine is set where one types them.
func describing(b *aggregate.Binder, of parse.Statement, depth int, engine *bool) bind.Answering {
	known := map[string]*plans.Answer{}
	return func(sel *pg.SelectStmt, use bind.Use) (*plans.Answer, *refuse.Refusal) {
		key := ast.Deparsed(sel)
		if a := known[key]; a != nil || use == bind.Explored {
			return a, nil
		}
		if depth > maxDepth {
			return nil, bind.SubqueryDepth.At(-1, depth, maxDepth)
		}
		own := aggregate.NewBinder(b.Context, b.Params)
		own.Text, own.Top, own.Inside = key, sel, true
		own.Inner = describing(own, of, depth+1, engine)
		out, refusal := outerquery.Bind(own)
		if refusal != nil {
			return nil, refusal
		}
		if out.Tree != nil {
			outerquery.SeeInTree(own)
			*engine = true
		}
		p := &plans.Plan{Columns: out.Columns}
		if len(out.Columns) == 0 && b.Context.Types != nil {
			of := of.Within(sel, key)
			of.ParamTypes = b.Params.Types
			if p, refusal = planWithin(of, nil, b.Context, depth); refusal != nil {
				return nil, refusal
			}
		}
		a, refusal := standing(p, key, b.Context)
		if refusal == nil {
			known[key] = a
		}
		return a, refusal
	}
}

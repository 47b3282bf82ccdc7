package plans

import (
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// Inner is a sub-query that must be answered before its statement can be planned to the end (ADR 117): of
//
//	SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)
//
// the average, with a plan of its own. What is released of it is an Answer, and stands in the statement as a constant.
type Inner struct {
	Key  string // what names it among a statement's sub-queries: its SQL
	Plan *Plan
}

// Answer is what a sub-query came to: released rows, or, where Standing, rows that stand for those which are not known
// yet.
type Answer struct {
	Columns  []AnswerColumn
	Rows     [][]policy.Value
	Private  bool // it asks private rows, and so has a part of what its statement may cost
	Standing bool
	Notes    []string // of its plan
}

// AnswerColumn is a column of it. What reads it has its type, a char's too, whose values have their blanks here as in
// any answer.
type AnswerColumn struct {
	Name   string
	Type   policy.Type
	Typmod int32
}

// Private reports whether a plan asks private rows: by its statement, and not by what was released of its sub-queries,
// for which perhaps no row can be counted.
func (p *Plan) Private() bool { return len(p.Leaves)+len(p.Inner) > 0 }

// Inmost are the plans that are answered first of all: those of sub-queries which wait for no others.
func (p *Plan) Inmost() (list []*Inner) {
	for _, in := range p.Inner {
		if below := in.Plan.Inmost(); len(below) > 0 {
			list = append(list, below...)
		} else {
			list = append(list, in)
		}
	}
	return list
}

// Within is the plan and those of its sub-queries, each before what waits for it.
func (p *Plan) Within() (list []*Plan) {
	for _, in := range p.Inner {
		list = append(list, in.Plan.Within()...)
	}
	return append(list, p)
}

// Bought are the measures that a plan and its sub-queries buy or read.
func (p *Plan) Bought() (list []*Measure) {
	for _, q := range p.Within() {
		list = append(list, q.Measures...)
	}
	return list
}

// AddInner makes a plan wait for sub-queries, and pay for them. Its own part is not known before they are answered, but
// never dearer than most.
func (p *Plan) AddInner(list []*Inner, most privacy.Cost) {
	if most.Delta = p.Cost.Delta; p.Cost.Fits(most) {
		p.Cost = most
	}
	for _, in := range list {
		p.Cost = p.Cost.Plus(in.Plan.Cost)
	}
	p.Inner = list
}

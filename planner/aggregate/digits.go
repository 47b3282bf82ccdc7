package aggregate

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// bit_and and bit_or. SELECT bit_or(flags) FROM people is read digit by digit: a digit of the result is 1 where clearly
// more rows than noise makes have it, so each digit that the domain leaves open has a counter.

// bit_and and bit_or of a column of whole numbers are read off a counter for each binary digit that the domain leaves
// open: of the rows that have it (bit_or), or do not have it (bit_and). With values from 8 to 15 those are three, and
//
//	bit_or(x) = 8 + 1·[some row has digit 0] + 2·[… digit 1] + 4·[… digit 2]
//
// A digit is set where its noisy count is above twice its own half-width: post-processing of released counters, whose
// sensitivity is all that the privacy rests on. Equal values are counted each, which DISTINCT does not change.
var digitAggregates = semantics.WordSet("bit_and bit_or")

func (g *Grouping) digits(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	if len(f.Args) != 1 || f.FuncVariadic {
		return nil, refuse.UnknownFunction.At(pos, name)
	}
	arg, refusal := t.Expr(f.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	switch arg.Type() {
	case policy.Int2, policy.Int4, policy.Int8:
	default:
		return nil, refuse.UnknownFunction.At(pos, name+"("+arg.Type().Name()+")")
	}
	if arg.Form != semantics.FormColumn || len(arg.Cols) != 1 {
		return nil, bind.NoAggregate.At(pos, name+" of what is no column")
	}
	least, most, ok := semantics.WholeRange(g.Rows.Table.Columns[arg.Cols[0]].Domain)
	if !ok {
		return nil, bind.NoAggregate.At(pos, name+" of a column whose domain is no range of all whole numbers between its ends")
	}
	present, refusal := g.present(arg, where)
	if refusal != nil {
		return nil, refusal
	}
	w := g.formula("numeric")
	common, open := semantics.OpenDigits(least, most)
	terms := []string{fmt.Sprintf("'%s'::int8", common)}
	for _, d := range open {
		holds, refusal := d.Holds(f.Args[0], name == "bit_or", t, pos)
		if refusal != nil {
			return nil, refusal
		}
		counter := g.Question.CounterFor(append(present[:len(present):len(present)], linear.Conjuncts([]*semantics.Expr{holds})...))
		seen, unseen := d.Worth.String(), "0"
		if name == "bit_and" {
			seen, unseen = unseen, seen
		}
		terms = append(terms, fmt.Sprintf("CASE WHEN %s > 2 * %s THEN '%s'::int8 ELSE '%s'::int8 END", w.Counter(counter), w.Counter(g.Question.WidthOf(counter)), seen, unseen))
	}
	if g.Question.UnknownError == nil {
		g.Question.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	g.b.Notes.Add("bit_and and bit_or are told digit by digit, by counts above twice their own error: a digit that few rows have, or few have not, goes unseen")
	return g.found(fmt.Sprintf("CASE WHEN %s THEN (%s)::%s END", w.Clear(g.Question.CounterFor(present), 0), strings.Join(terms, " + "), ast.InternalNames[arg.Type()]), arg.Type())
}

// boolean binds bool_or, bool_and and every: whether some row has it, or none has it not. SELECT bool_or(late) FROM
// trips is that clearly more rows than noise makes are late: a digit of bit_or, without its column. With SET dp.alarms
// they may be alarms instead (threshold.go), which cost less and stand alone.
func (g *Grouping) boolean(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	if len(f.Args) != 1 || f.FuncVariadic || f.AggStar {
		return nil, refuse.UnknownFunction.At(pos, name)
	}
	arg, refusal := t.Expr(f.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	if arg, refusal = t.Typed(arg, policy.Bool); refusal != nil { // bool_or('f')
		return nil, refusal
	}
	if arg.Type() != policy.Bool {
		return nil, refuse.UnknownFunction.At(pos, name+"("+arg.Type().Name()+")")
	}
	present, refusal := g.present(arg, where)
	if refusal != nil {
		return nil, refusal
	}
	told := ""
	if name != "bool_or" {
		if arg, refusal = t.Not(arg); refusal != nil {
			return nil, refusal
		}
		told = "NOT "
	}
	w := g.formula("")
	n := g.Question.CounterFor(append(present[:len(present):len(present)], linear.Conjuncts([]*semantics.Expr{arg})...))
	if g.Question.UnknownError == nil {
		g.Question.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	g.b.Notes.Add("bool_or, bool_and and every are told by counts above twice their own error: a few rows go unseen")
	return g.found(fmt.Sprintf("CASE WHEN %s THEN %s(%s > 2 * %s) END", w.Clear(g.Question.CounterFor(present), 0), told, w.Counter(n), w.Counter(g.Question.WidthOf(n))), policy.Bool)
}

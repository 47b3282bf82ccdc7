package bind

import (
	"fmt"
	"math/big"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// bit_and and bit_or. SELECT bit_or(flags) FROM people is told digit by digit: a digit of the result is 1 where clearly more rows than noise
// makes have it, so each digit that the domain leaves open has a counter.

// bit_and and bit_or of a column of whole numbers are told by a counter for each binary digit that the domain leaves open:
// of the rows that have it (bit_or), or do not have it (bit_and). With values from 8 to 15 those are three, and
//
//	bit_or(x) = 8 + 1·[some row has digit 0] + 2·[… digit 1] + 4·[… digit 2]
//
// A digit is told where its noisy count is above twice its own half-width: post-processing of released counters, whose
// sensitivity is all that the privacy rests on. Equal values are counted each, which DISTINCT does not change.
var digitAggregates = semantics.WordSet("bit_and bit_or")

// digit is one that the values of a domain may differ in: those have it for which (x − from) % modulus ≥ half.
type digit struct {
	from, modulus, half *big.Int
	worth               *big.Int // what it adds to the number: the sign's is negative
	sign                bool     // those have it for which x − from is below half
}

// openDigits are the digits in which whole numbers from least to most may differ, in two's complement, and the number that
// the others make.
func openDigits(least, most int64) (common *big.Int, digits []digit) {
	n := max(new(big.Int).Xor(big.NewInt(least), big.NewInt(least>>63)).BitLen(), new(big.Int).Xor(big.NewInt(most), big.NewInt(most>>63)).BitLen())
	crosses := least < 0 && most >= 0
	common = new(big.Int)
	if !crosses {
		n = new(big.Int).Xor(big.NewInt(least), big.NewInt(most)).BitLen()
		common.Lsh(common.Rsh(big.NewInt(least), uint(n)), uint(n)) // towards −∞: the lowest n digits are none
	}
	power := func(k int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(k)) }
	from := common
	if crosses {
		from = new(big.Int).Neg(power(n))
		digits = append(digits, digit{from: from, modulus: power(n + 1), half: power(n), worth: from, sign: true})
	}
	for k := range n {
		digits = append(digits, digit{from: from, modulus: power(k + 1), half: power(k), worth: power(k)})
	}
	return common, digits
}

// wholeRange is a domain of all whole numbers between its ends.
func wholeRange(d *policy.Domain) (least, most int64, ok bool) {
	if d == nil || d.Step.Whole != 1 {
		return 0, 0, false
	}
	least, ok = d.Min.(int64)
	most, whole := d.Max.(int64)
	return least, most, ok && whole
}

// digits binds bit_and and bit_or.
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
		return nil, noAggregate.At(pos, name+" of what is no column")
	}
	least, most, ok := wholeRange(g.Rows.Table.Columns[arg.Cols[0]].Domain)
	if !ok {
		return nil, noAggregate.At(pos, name+" of a column whose domain is no range of all whole numbers between its ends")
	}
	present, refusal := g.present(arg, where)
	if refusal != nil {
		return nil, refusal
	}
	w := &formula{g: g, number: "numeric"}
	common, open := openDigits(least, most)
	terms := []string{fmt.Sprintf("'%s'::int8", common)}
	for _, d := range open {
		holds, refusal := d.condition(f.Args[0], name == "bit_or", t, pos)
		if refusal != nil {
			return nil, refusal
		}
		counter := g.Q.CounterFor(append(present[:len(present):len(present)], linear.Conjuncts([]*semantics.Expr{holds})...))
		seen, unseen := d.worth.String(), "0"
		if name == "bit_and" {
			seen, unseen = unseen, seen
		}
		terms = append(terms, fmt.Sprintf("CASE WHEN %s > 2 * %s THEN '%s'::int8 ELSE '%s'::int8 END", w.counter(counter), w.counter(g.Q.WidthOf(counter)), seen, unseen))
	}
	if g.Q.UnknownError == nil {
		g.Q.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	g.b.Notes.Add("bit_and and bit_or are told digit by digit, by counts above twice their own error: a digit that few rows have, or few have not, goes unseen")
	return w.found(fmt.Sprintf("CASE WHEN %s THEN (%s)::%s END", w.clear(g.Q.CounterFor(present), 0), strings.Join(terms, " + "), ast.InternalNames[arg.Type()]), arg.Type())
}

// boolean binds bool_or, bool_and and every: whether some row has it, or none has it not. SELECT bool_or(late) FROM trips is that
// clearly more rows than noise makes are late: a digit of bit_or, without its column. With SET dp.alarms they may be alarms instead
// (threshold.go), which cost less and stand alone.
func (g *Grouping) boolean(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	if len(f.Args) != 1 || f.FuncVariadic || f.AggStar {
		return nil, refuse.UnknownFunction.At(pos, name)
	}
	arg, refusal := t.Expr(f.Args[0])
	if refusal != nil {
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
	w := &formula{g: g}
	n := g.Q.CounterFor(append(present[:len(present):len(present)], linear.Conjuncts([]*semantics.Expr{arg})...))
	if g.Q.UnknownError == nil {
		g.Q.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	g.b.Notes.Add("bool_or, bool_and and every are told by counts above twice their own error: a few rows go unseen")
	return w.found(fmt.Sprintf("CASE WHEN %s THEN %s(%s > 2 * %s) END", w.clear(g.Q.CounterFor(present), 0), told, w.counter(n), w.counter(g.Q.WidthOf(n))), policy.Bool)
}

// condition is that a value has the digit, or has it not. Numerics do not overflow, so that it fails for no value.
func (d digit) condition(x *pg.Node, has bool, t *semantics.Translator, pos int) (*semantics.Expr, *refuse.Refusal) {
	e, refusal := t.Expr(ast.Cast(x, policy.NumericType))
	op := ">="
	if has == d.sign {
		op = "<"
	}
	for _, step := range []struct {
		op string
		by *big.Int
	}{{"-", d.from}, {"%", d.modulus}, {op, d.half}} {
		if refusal != nil {
			return nil, refusal
		}
		constant, refused := t.Expr(ast.Cast(pg.MakeAConstStrNode(step.by.String(), int32(pos)), policy.NumericType))
		if refused != nil {
			return nil, refused
		}
		e, refusal = t.Combine(step.op, pos, e, constant)
	}
	return e, refusal
}

package semantics

import (
	"iter"
	"maps"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Conditions that stand together say something of one another. Where one that reads a single column decides, the others
// do not matter (Matters), and what is equated with a constant is that constant in the conditions beside it. Of
//
//	a.status = 'M' AND a.status = b.status
//
// the second says that b.status is 'M', which reads one column.
//
// Claim: beside a = c the condition a = b is (b = c) OR (a IS NULL AND NULL), in three values. Proof: where a is c both
// are b = c; where a is another value the whole is false; where a is NULL, a = c is NULL and so is each of the two, or
// the first of them true, so that the whole is NULL.

// conjuncts are the parts of nested ANDs.
func conjuncts(e *Expr, into []*Expr) []*Expr {
	if e.Form != FormAnd {
		return append(into, e)
	}
	for _, a := range e.Args {
		into = conjuncts(a, into)
	}
	return into
}

// equated are the constants that some conditions equate expressions with, by the expression.
func equated(list []*Expr) map[string]*Expr {
	var known map[string]*Expr
	for _, e := range list {
		if e.Form != FormCompare || e.Op != "=" || len(e.Args) != 2 {
			continue
		}
		for i, a := range e.Args {
			if c := e.Args[1-i]; !a.IsConstant() && c.IsConstant() && c.Parameter == 0 && MustConstant(c) != nil {
				if known == nil {
					known = map[string]*Expr{}
				}
				known[a.Canon] = c
			}
		}
	}
	return known
}

// equalToKnown is the truth of an equation of two columns' expressions, one of which is a constant where the conditions
// beside it hold; not ok: it is another one.
func (l *Lowerer) equalToKnown(e *Expr, known map[string]*Expr) (truth, bool, *refuse.Refusal) {
	if e.Form != FormCompare || e.Op != "=" || len(e.Args) != 2 || len(e.Cols) < 2 {
		return truth{}, false, nil
	}
	for i, a := range e.Args {
		b, c := e.Args[1-i], known[a.Canon]
		if c == nil || len(a.Cols) != 1 || len(b.Cols) != 1 || a.Type() == policy.Bpchar || b.Type() == policy.Bpchar { // char(n) is equal to more than one text
			continue
		}
		s, err := l.Env.Call("=", b.Expr, c.Expr)
		if err != nil {
			return truth{}, false, nil
		}
		equal := Node(FormCompare, "=", s, e.Pos, b, c)
		equal.order(l.Env, "=")
		t, ok, refusal := l.Lower(equal)
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		absent, ok, refusal := l.Lower(Node(FormIsNull, "isnull", scalar.IsNull(a.Expr), e.Pos, a))
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		return truth{Holds: t.Holds, Fails: predicate.All(t.Fails, predicate.Not(absent.Holds))}, true, nil
	}
	return truth{}, false, nil
}

// junction is the truth of conditions that are joined by AND or OR.
func (l *Lowerer) junction(e *Expr) (truth, bool, *refuse.Refusal) {
	args := e.Args
	var known map[string]*Expr
	if e.Form == FormAnd {
		args = conjuncts(e, nil)
		known = equated(args)
	}
	return l.joined(e.Form, args, func(a *Expr) (truth, bool, *refuse.Refusal) {
		t, ok, refusal := l.equalToKnown(a, known)
		if !ok && refusal == nil {
			t, ok, refusal = l.Lower(a)
		}
		return t, ok, refusal
	})
}

// joined is the truth of conditions that are joined by AND or OR, of which each is found by part.
func (l *Lowerer) joined(
	form Form, list []*Expr, part func(*Expr) (truth, bool, *refuse.Refusal),
) (truth, bool, *refuse.Refusal) {
	holds, fails := make([]predicate.Pred, len(list)), make([]predicate.Pred, len(list))
	around := l.matter
	defer func() { l.matter = around }()
	for i, a := range DecidingFirst(list) {
		t, ok, refusal := part(a)
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		holds[i], fails[i] = t.Holds, t.Fails
		if form == FormAnd {
			l.Matters(a, predicate.Not(t.Fails))
		} else {
			l.Matters(a, predicate.Not(t.Holds))
		}
	}
	if form == FormAnd {
		return truth{Holds: predicate.All(holds...), Fails: predicate.Any(fails...)}, true, nil
	}
	return truth{Holds: predicate.Any(holds...), Fails: predicate.All(fails...)}, true, nil
}

// DecidingFirst are conditions that stand together, with their places, those first that read one column: where these
// decide, the others do not matter.
func DecidingFirst(list []*Expr) iter.Seq2[int, *Expr] {
	return func(yield func(int, *Expr) bool) {
		for _, several := range []bool{false, true} {
			for i, e := range list {
				if several == (len(e.Cols) > 1) && !yield(i, e) {
					return
				}
			}
		}
	}
}

// Matters says that what is lowered from now on matters only where p holds, which e, a condition that was lowered, says
// of one column's cells.
func (l *Lowerer) Matters(e *Expr, p predicate.Pred) {
	if len(e.Cols) != 1 || e.Awaited {
		return
	}
	column := e.Cols[0]
	c := l.Table.Columns[column]
	var left SpansOf
	switch p := p.(type) {
	case predicate.InCells:
		if p.Column != c {
			return
		}
		left = p.Spans
	case predicate.Never:
	default:
		return
	}
	if spans, narrowed := l.matter[column]; narrowed {
		left = predicate.Intersect(left, spans)
	}
	l.matter = maps.Clone(l.matter)
	if l.matter == nil {
		l.matter = map[int]SpansOf{}
	}
	l.matter[column] = left
}

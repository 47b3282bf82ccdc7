package pipeline

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// lookup is a statement that is asked, with what is remembered of it (remembered.go). It is looked up once, before
// anything else is done for it.
type lookup struct {
	lifted    parse.Lifted
	held      []ledger.Release
	statement []byte // the key of its text, without what a template leaves open; nil means nothing is kept of it
	values    []byte // the key of its parameters, or of the numbers that were lifted out of it
	valued    bool   // it has one: answers to parameters of rare types are not kept
	template  *planner.Template
	answer    Result
	answered  bool // whole, as it was when it was asked before
}

// lookUp looks a statement up.
func (a *Answerer) lookUp(s *Session, stmt parse.Statement, params []policy.Value) (l lookup) {
	l.lifted = parse.Lift(stmt, params)
	if s.Dataset == nil {
		return l
	}
	l.held = a.ledger.Holdings(s.User, s.Dataset.ID)
	key := appendStatement(make([]byte, 0, 384), s, l.lifted.Text, &stmt, a.public.version())
	n := len(key)
	key, l.valued = appendValues(key, l.lifted.Values)
	l.statement, l.values = key[:n:n], key[n:]
	a.remembered.find(s, &l)
	return l
}

// appendStatement adds what an answer depends on besides the policy, the holdings and the values of parameters: what is
// asked of which dataset, with which types of parameters and settings, its literals read how, over which copies of the
// public tables. When they were read is left out: what depends on the time is not kept.
func appendStatement(b []byte, s *Session, asked string, stmt *parse.Statement, copies int64) []byte {
	types := stmt.ParamTypes
	text := func(t string) {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	b = binary.AppendVarint(b, copies)
	text(s.Dataset.ID)
	text(asked)
	b = binary.AppendUvarint(b, uint64(len(types)))
	for _, t := range types {
		b = binary.AppendUvarint(b, uint64(t))
	}
	set := &s.Settings.Settings
	b = binary.AppendVarint(append(b, '|'), set.Epsilon.Micro())
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(set.Confidence.Float()))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(set.MaxError))
	b = binary.AppendVarint(binary.AppendVarint(b, int64(set.Alarms)), set.Delta.Atto())
	b = append(b, flag(set.ErrorColumns), flag(set.Release), byte(set.Probes), byte(set.OffGrid), flag(stmt.HandedOn))
	if set.Zone != nil {
		text(set.Zone.String())
		_, east := time.Unix(0, 0).In(set.Zone).Zone() // '+05:30' names two: as an interval, and in POSIX's sign
		b = binary.AppendVarint(b, int64(east))
	}
	text(set.Form.Dates)
	text(set.Form.Intervals)
	b = append(b, set.Form.Digits)
	earlier := !stmt.Literals.SameSettings(set.Zone, set.Form)
	if b = append(b, flag(earlier)); earlier {
		text(stmt.Literals.Zone.String())
		text(stmt.Literals.Form.Dates)
		text(stmt.Literals.Form.Intervals)
	}
	b = binary.AppendUvarint(b, uint64(len(set.SearchPath)))
	for _, schema := range set.SearchPath {
		text(schema)
	}
	return b
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// appendValues adds the values of parameters; false means some are of rare types.
func appendValues(b []byte, values []policy.Value) (with []byte, ok bool) {
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.AppendVarint(append(b, 'i'), v)
		case bool:
			b = fmt.Appendf(b, "b%t", v)
		case string:
			b = append(binary.AppendUvarint(append(b, 's'), uint64(len(v))), v...)
		case float64:
			b = binary.BigEndian.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case policy.Date:
			b = binary.AppendVarint(append(b, 'd'), int64(v))
		case policy.Timestamp:
			b = binary.AppendVarint(append(b, 't'), int64(v))
		case policy.Timestamptz:
			b = binary.AppendVarint(append(b, 'z'), int64(v))
		case policy.Time:
			b = binary.AppendVarint(append(b, 'h'), int64(v))
		default:
			return b, false
		}
	}
	return b, true
}

// A statement whose parameters alone change is planned from a template (ADR 86), which is kept with its answers.

// plan plans a statement that was looked up, from its template where there is one.
func (a *Answerer) plan(ctx context.Context, x *execution, stmt parse.Statement, params []policy.Value, l *lookup) (*plans.Plan, *refuse.Refusal) {
	if l.template != nil {
		if p := l.template.Plan(l.lifted); p != nil {
			return p, nil
		}
	}
	c := a.planContext(ctx, x.Session, x.prior)
	p, refusal := planner.Build(stmt, params, c)
	if refusal != nil || l.statement == nil || l.lifted.Empty() || !sameList(l.held, a.ledger.Holdings(x.User, x.Dataset.ID)) {
		return p, refusal
	}
	if t := planner.TemplateOf(stmt, params, p, c); t != nil && !slices.ContainsFunc(l.held, undescribed) {
		a.remembered.keepTemplate(x.Session, l, t)
	}
	return p, nil
}

// quickly is the plan of a statement that is read in microseconds from what is held already, asked before or not; nil:
// it takes a slot of its user's to plan it, or to read it. What it takes is bounded by the template: one row, of one
// sum of the cells of one release.
func (a *Answerer) quickly(l *lookup) *plans.Plan {
	if l.template == nil {
		return nil
	}
	p := l.template.Quick(l.lifted)
	if p == nil || p.WantsErrors() || !a.reader.estimates.kept(p.Measures[0].HeldID) {
		return nil
	}
	return p
}

// undescribed reports whether the planner finds a release by its digest alone, which a template does not look for.
func undescribed(r ledger.Release) bool {
	return len(r.Item.Described) == 0 || r.Item.Described[0] != plans.DescribedVersion
}

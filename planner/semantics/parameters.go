package semantics

import (
	"strconv"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Parameters are the $n of one statement: constants of a plan, or types to be found.
type Parameters struct {
	Values     []policy.Value
	Types      []policy.Type // as the client gave or Describe inferred them; 0 means unknown
	Describing bool          // values are not there: each parameter is a NULL whose type its surroundings tell
	Seen       int
}

// constant is parameter n as a constant. An untyped one takes its type from its surroundings, as in PostgreSQL.
func (p *Parameters) constant(n int, env scalar.Env, pos int) (*Expr, *refuse.Refusal) {
	p.Seen = max(p.Seen, n)
	t := p.TypeOf(n)
	if p.Describing {
		e := ConstantExpr(nil, orUnknown(t), pos)
		e.Parameter, e.Canon = n, "$"+strconv.Itoa(n)
		return e, nil
	}
	if n < 1 || n > len(p.Values) {
		return nil, refuse.UnknownParam.At(pos, n)
	}
	v := p.Values[n-1]
	if _, isArray := v.([]policy.Value); v == nil || t != 0 || isArray {
		if s, isText := v.(string); isText && t != 0 && !t.Textual() && t != policy.UUID && t != policy.Unknown {
			parsed, err := env.ParseText(t, s)
			if err != nil {
				return nil, ScalarRefusal(err, pos)
			}
			v = parsed
		}
		return ConstantExpr(v, orUnknown(t), pos), nil
	}
	return ConstantExpr(PlainText(env, v), policy.Unknown, pos), nil
}

// PlainText is the text form of a parameter's value, as an untyped literal.
func PlainText(env scalar.Env, v policy.Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	return env.FormatText(TypeOfValue(v), v)
}

// TypeOfValue is the type that a bare Go value stands for.
func TypeOfValue(v policy.Value) policy.Type {
	switch v.(type) {
	case bool:
		return policy.Bool
	case int64:
		return policy.Int8
	case float64:
		return policy.Float8
	case policy.Numeric:
		return policy.NumericType
	case policy.Date:
		return policy.DateType
	case policy.Timestamp:
		return policy.TimestampT
	case policy.Timestamptz:
		return policy.TimestampTZ
	case policy.Time:
		return policy.TimeT
	case policy.Interval:
		return policy.IntervalT
	}
	return policy.Unknown
}

func orUnknown(t policy.Type) policy.Type {
	if t == 0 {
		return policy.Unknown
	}
	return t
}

// TypeOf is the type of a parameter; 0 means nothing has said it yet.
func (p *Parameters) TypeOf(n int) policy.Type {
	if n >= 1 && n <= len(p.Types) {
		return p.Types[n-1]
	}
	return 0
}

// Note records the type that a parameter's surroundings give it; the first place decides.
func (p *Parameters) Note(e *Expr, t policy.Type) {
	if e == nil || e.Parameter == 0 || t == policy.Unknown || t == 0 || p.TypeOf(e.Parameter) != 0 {
		return
	}
	for len(p.Types) < e.Parameter {
		p.Types = append(p.Types, 0)
	}
	p.Types[e.Parameter-1] = t
}

// Inferred are the types of all parameters. Those that nothing tells are unknown: a client is told text, as by
// PostgreSQL, and what it sends stands there as a literal without a type, which an engine reads as it needs.
func (p *Parameters) Inferred() []policy.Type {
	out := make([]policy.Type, max(p.Seen, len(p.Types)))
	for i := range out {
		if out[i] = p.TypeOf(i + 1); out[i] == 0 {
			out[i] = policy.Unknown
		}
	}
	return out
}

// TypeName is the name of a type as messages have it.
func TypeName(t policy.Type) string { return scalar.TypeName(t) }

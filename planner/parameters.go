package planner

import (
	"strconv"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// parameters are the $n of one statement: constants of a plan, or types to be found.
type parameters struct {
	values     []policy.Value
	types      []policy.Type // as the client gave or Describe inferred them; 0: unknown
	describing bool          // values are not there: each parameter is a NULL whose type its surroundings tell
	seen       int
}

// constant is parameter n as a constant. An untyped one takes its type from its surroundings, as in PostgreSQL.
func (p *parameters) constant(n int, env scalar.Env, pos int) (*expr, *refuse.Refusal) {
	p.seen = max(p.seen, n)
	t := p.typeOf(n)
	if p.describing {
		e := constantExpr(nil, orUnknown(t), pos)
		e.parameter, e.canon = n, "$"+strconv.Itoa(n)
		return e, nil
	}
	if n < 1 || n > len(p.values) {
		return nil, refuse.UnknownParam.At(pos, n)
	}
	v := p.values[n-1]
	if _, isArray := v.([]policy.Value); v == nil || t != 0 || isArray {
		if s, isText := v.(string); isText && t != 0 && !t.Textual() && t != policy.UUID && t != policy.Unknown {
			parsed, err := env.ParseText(t, s)
			if err != nil {
				return nil, scalarRefusal(err, pos)
			}
			v = parsed
		}
		return constantExpr(v, orUnknown(t), pos), nil
	}
	return constantExpr(plainText(env, v), policy.Unknown, pos), nil
}

// plainText is the text form of a parameter's value, as an untyped literal.
func plainText(env scalar.Env, v policy.Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	return env.FormatText(typeOfValue(v), v)
}

// typeOfValue is the type that a bare Go value stands for.
func typeOfValue(v policy.Value) policy.Type {
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

func (p *parameters) typeOf(n int) policy.Type {
	if n >= 1 && n <= len(p.types) {
		return p.types[n-1]
	}
	return 0
}

// note records the type that a parameter's surroundings give it; the first place decides.
func (p *parameters) note(e *expr, t policy.Type) {
	if e == nil || e.parameter == 0 || t == policy.Unknown || t == 0 || p.typeOf(e.parameter) != 0 {
		return
	}
	for len(p.types) < e.parameter {
		p.types = append(p.types, 0)
	}
	p.types[e.parameter-1] = t
}

// inferred are the types of all parameters. Those that nothing tells are unknown: a client is told text, as by
// PostgreSQL, and what it sends stands there as a literal without a type, which an engine reads as it needs.
func (p *parameters) inferred() []policy.Type {
	out := make([]policy.Type, max(p.seen, len(p.types)))
	for i := range out {
		if out[i] = p.typeOf(i + 1); out[i] == 0 {
			out[i] = policy.Unknown
		}
	}
	return out
}

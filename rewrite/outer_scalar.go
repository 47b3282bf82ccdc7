package rewrite

import (
	"encoding/json"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// ScalarCall is a function, operator or cast that the embedded engine leaves to package scalar, because its own version
// would mean something else than PostgreSQL's. It travels in the query's text as JSON; Expr makes it computable.
type ScalarCall struct {
	Name string      `json:"f,omitempty"` // a function or operator; empty: a cast
	To   policy.Type `json:"to,omitempty"`
	Mod  int32       `json:"mod,omitempty"`
	Args []ScalarArg `json:"a"`
}

// ScalarArg is an argument: a value that comes with each row, or an untyped literal.
type ScalarArg struct {
	Type    policy.Type `json:"t,omitempty"`
	Mod     int32       `json:"m,omitempty"`
	Literal *string     `json:"u,omitempty"`
}

// ParseScalarCall reads the text of a ScalarCall.
func ParseScalarCall(text string) (ScalarCall, error) {
	var c ScalarCall
	err := json.Unmarshal([]byte(text), &c)
	return c, err
}

func (c ScalarCall) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// Expr resolves the call; the row holds the arguments in order, literals included.
func (c ScalarCall) Expr(env scalar.Env) (scalar.Expr, error) {
	args := make([]scalar.Expr, len(c.Args))
	for i, a := range c.Args {
		if a.Literal != nil {
			args[i] = scalar.Constant(*a.Literal, policy.Unknown)
		} else {
			args[i] = scalar.Column(i, a.Type, a.Mod)
		}
	}
	if c.Name != "" {
		return env.Call(c.Name, args...)
	}
	return env.Cast(args[0], c.To, c.Mod)
}

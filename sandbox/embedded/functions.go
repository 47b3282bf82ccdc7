package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math"
	"slices"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Our functions inside DuckDB. pg_call computes what DuckDB has not as PostgreSQL has it, by package planner/scalar, with which
// the planner computes too: to_char(d, 'YYYY') over a released column d becomes pg_call('…', d), where the text names the
// function and the types. Values pass as texts.

// function is a scalar function over texts, or lists of texts, written in Go.
type function struct {
	inputs   []string
	variadic bool
	row      func(args []driver.Value) (any, error)
}

func (f function) Config() duckdb.ScalarFuncConfig {
	text, _ := duckdb.NewTypeInfo(duckdb.TYPE_VARCHAR)
	list, _ := duckdb.NewListInfo(text)
	config := duckdb.ScalarFuncConfig{ResultTypeInfo: text, SpecialNullHandling: true}
	for _, in := range f.inputs {
		if in == "list" {
			config.InputTypeInfos = append(config.InputTypeInfos, list)
		} else {
			config.InputTypeInfos = append(config.InputTypeInfos, text)
		}
	}
	if f.variadic {
		config.VariadicTypeInfo = text
	}
	return config
}

func (f function) Executor() duckdb.ScalarFuncExecutor {
	return duckdb.ScalarFuncExecutor{RowExecutor: func(args []driver.Value) (result any, err error) {
		defer func() {
			if recover() != nil {
				result, err = nil, marked(sandbox.ErrBroken)
			}
		}()
		if result, err = f.row(args); err != nil {
			return nil, marked(err)
		}
		return result, nil
	}}
}

// register adds our functions to an instance.
func (i *instance) register(ctx context.Context, conn *sql.Conn) error {
	for name, f := range map[string]function{
		"pg_call":              {inputs: []string{"text"}, variadic: true, row: i.call},
		"pg_instants":          {inputs: []string{"text", "text", "text"}, row: i.instants},
		"pg_ident":             {inputs: []string{"text"}, row: parseIdent},
		"pg_regexp":            {inputs: []string{"text", "text", "text", "text"}, variadic: true, row: i.regexps},
		"pg_join":              {inputs: []string{"text", "text", "list"}, row: join},
		"pg_array_text":        {inputs: []string{"list"}, row: arrayText},
		"pg_interval_min":      {inputs: []string{"list"}, row: intervalEnd(-1, true)},
		"pg_interval_max":      {inputs: []string{"list"}, row: intervalEnd(1, true)},
		"pg_interval_least":    {inputs: []string{"list"}, row: intervalEnd(-1, false)},
		"pg_interval_greatest": {inputs: []string{"list"}, row: intervalEnd(1, false)},
		"num_in":               {inputs: []string{"text"}, row: numericIn},
		"num_sum":              {inputs: []string{"list"}, row: numericSum},
		"num_least":            {inputs: []string{"list"}, row: numericEnd(-1, false)},
		"num_greatest":         {inputs: []string{"list"}, row: numericEnd(1, false)},
		"num_min":              {inputs: []string{"list"}, row: numericEnd(-1, true)},
		"num_max":              {inputs: []string{"list"}, row: numericEnd(1, true)},
		"num_spread":           {inputs: []string{"text", "list"}, row: numericSpread},
		"pg_percentile_cont":   {inputs: []string{"text", "list"}, row: percentile},
	} {
		if err := duckdb.RegisterScalarUDF(conn, name, f); err != nil {
			return err
		}
	}
	return nil
}

// resolved is a scalar call made computable, with room for one row.
type resolved struct {
	call outer.ScalarCall
	expr scalar.Expr
	row  scalar.Row
}

// call computes what the engine leaves to package scalar: the call's text, then its arguments.
func (i *instance) call(args []driver.Value) (any, error) {
	text, _ := args[0].(string)
	r := i.calls[text]
	if r == nil {
		call, err := outer.ParseScalarCall(text)
		if err != nil {
			return nil, err
		}
		expr, err := call.Expr(i.env)
		if err != nil {
			return nil, err
		}
		r = &resolved{call: call, expr: expr, row: make(scalar.Row, len(call.Args))}
		i.calls[text] = r
	}
	if len(args) != len(r.row)+1 {
		return nil, sandbox.ErrBroken
	}
	for k, a := range r.call.Args {
		if a.Literal != nil {
			continue
		}
		v, err := argument(i.env, a.Type, args[k+1])
		if err != nil {
			return nil, err
		}
		r.row[k] = v
	}
	v, err := r.expr.Eval(r.row)
	if err != nil {
		return nil, err
	}
	return returned(v)
}

// begin sets what is constant during one query.
func (i *instance) begin(zone string, form scalar.Form, now time.Time) {
	location, _, ok := scalar.SessionZone(zone)
	if !ok {
		location = time.UTC
	}
	i.env = scalar.Env{Now: now, Zone: location, Form: form}
	i.calls = map[string]*resolved{}
}

// percentile is percentile_cont over double precision: the fraction, then the values.
func percentile(args []driver.Value) (any, error) {
	fraction, err := argument(scalar.Env{}, policy.Float8, args[0])
	p, ok := fraction.(float64)
	if err != nil || !ok {
		return nil, err
	}
	if p < 0 || p > 1 || math.IsNaN(p) {
		return nil, &scalar.Error{SQLState: "22003", Message: "percentile value is not between 0 and 1"}
	}
	list, _ := args[1].([]any)
	var values []float64
	for _, one := range list {
		v, err := argument(scalar.Env{}, policy.Float8, one)
		if err != nil {
			return nil, err
		}
		if f, ok := v.(float64); ok {
			values = append(values, f)
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	slices.SortFunc(values, func(a, b float64) int { return scalar.Compare(policy.Float8, a, b) })
	at := p * float64(len(values)-1)
	low, high := int(math.Floor(at)), int(math.Ceil(at))
	if low == high {
		return returned(values[low])
	}
	return returned(values[low] + (at-float64(low))*(values[high]-values[low]))
}

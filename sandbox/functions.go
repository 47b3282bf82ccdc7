package sandbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"math/big"
	"sort"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// faultMark begins the text of an error that a function of ours, or a macro, raises inside the engine: then SQLSTATE,
// a bar, the message, and the mark again. It is how such an error is told from the engine's own.
const faultMark = rewrite.FaultMark

func marked(err error) error {
	var fault *scalar.Error
	if !errors.As(err, &fault) {
		fault = errBroken
	}
	return errors.New(faultMark + fault.SQLState + "|" + fault.Message + faultMark)
}

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
				result, err = nil, marked(errBroken)
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
		"pg_call":            {inputs: []string{"text"}, variadic: true, row: i.call},
		"num_in":             {inputs: []string{"text"}, row: numericIn},
		"num_sum":            {inputs: []string{"list"}, row: numericSum},
		"num_least":          {inputs: []string{"list"}, row: numericEnd(-1)},
		"num_greatest":       {inputs: []string{"list"}, row: numericEnd(1)},
		"pg_percentile_cont": {inputs: []string{"text", "list"}, row: percentile},
	} {
		if err := duckdb.RegisterScalarUDF(conn, name, f); err != nil {
			return err
		}
	}
	return nil
}

// resolved is a scalar call made computable, with room for one row.
type resolved struct {
	call rewrite.ScalarCall
	expr scalar.Expr
	row  scalar.Row
}

// call computes what the engine leaves to package scalar: the call's text, then its arguments.
func (i *instance) call(args []driver.Value) (any, error) {
	text, _ := args[0].(string)
	r := i.calls[text]
	if r == nil {
		call, err := rewrite.ParseScalarCall(text)
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
		return nil, errBroken
	}
	for k, a := range r.call.Args {
		if a.Literal != nil {
			continue
		}
		v, err := argument(a.Type, args[k+1])
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
func (i *instance) begin(zone string, now time.Time) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	i.env = scalar.Env{Now: now, Zone: location}
	i.calls = map[string]*resolved{}
}

func numericIn(args []driver.Value) (any, error) {
	text, ok := args[0].(string)
	if !ok {
		return nil, nil
	}
	v, err := scalar.Env{Zone: time.UTC}.ParseText(policy.NumericType, text)
	if err != nil {
		return nil, err
	}
	n, ok := v.(policy.Numeric)
	if !ok {
		return nil, errRange
	}
	return encodeNumeric(n)
}

// numerics reads a list of stored numerics, NULLs left out.
func numerics(v driver.Value) ([]policy.Numeric, error) {
	list, _ := v.([]any)
	var out []policy.Numeric
	for _, one := range list {
		if text, ok := one.(string); ok {
			n, err := decodeNumeric(text)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// numericSum has the largest scale of its parts, as PostgreSQL's has.
func numericSum(args []driver.Value) (any, error) {
	list, err := numerics(args[0])
	if err != nil || len(list) == 0 {
		return nil, err
	}
	scale := int32(0)
	for _, n := range list {
		scale = max(scale, n.Scale)
	}
	sum := new(big.Int)
	for _, n := range list {
		sum.Add(sum, n.At(scale))
	}
	return encodeNumeric(policy.Numeric{Coefficient: sum, Scale: scale})
}

// numericEnd finds the least (side −1) or largest (side 1) value; of equal ones the last.
func numericEnd(side int) func([]driver.Value) (any, error) {
	return func(args []driver.Value) (any, error) {
		list, err := numerics(args[0])
		if err != nil || len(list) == 0 {
			return nil, err
		}
		best := list[0]
		for _, n := range list[1:] {
			if n.Cmp(best)*side >= 0 {
				best = n
			}
		}
		return encodeNumeric(best)
	}
}

// percentile is percentile_cont over double precision: the fraction, then the values.
func percentile(args []driver.Value) (any, error) {
	fraction, err := argument(policy.Float8, args[0])
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
		v, err := argument(policy.Float8, one)
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
	sort.Float64s(values)
	at := p * float64(len(values)-1)
	low, high := int(math.Floor(at)), int(math.Ceil(at))
	if low == high {
		return returned(values[low])
	}
	return returned(values[low] + (at-float64(low))*(values[high]-values[low]))
}

// faultOf turns an error of the engine into one that may be shown: ours as it was raised, the engine's by its class.
func faultOf(err error) *scalar.Error {
	if _, rest, ok := strings.Cut(err.Error(), faultMark); ok {
		if inner, _, ok := strings.Cut(rest, faultMark); ok {
			if state, message, ok := strings.Cut(inner, "|"); ok && len(state) == 5 {
				return &scalar.Error{SQLState: state, Message: message}
			}
		}
	}
	var fault *duckdb.Error
	if !errors.As(err, &fault) {
		return &scalar.Error{SQLState: errBroken.SQLState, Message: err.Error()}
	}
	switch fault.Type {
	case duckdb.ErrorTypeOutOfRange:
		return errRange
	case duckdb.ErrorTypeDivideByZero:
		return &scalar.Error{SQLState: "22012", Message: "division by zero"}
	case duckdb.ErrorTypeConversion:
		return &scalar.Error{SQLState: "22P02", Message: "invalid input syntax for the type of a cast"}
	case duckdb.ErrorTypeOutOfMemory, duckdb.ErrorTypeObjectSize:
		return errResources
	case duckdb.ErrorTypeInvalidInput:
		if strings.Contains(fault.Msg, "More than one row") {
			return &scalar.Error{SQLState: "21000", Message: "more than one row returned by a subquery used as an expression"}
		}
		return &scalar.Error{SQLState: "22023", Message: "a function of the query was given a value that it does not take"}
	}
	switch fault.Type {
	case duckdb.ErrorTypeNotImplemented, duckdb.ErrorTypeBinder:
		return &scalar.Error{SQLState: "DP002", Message: "the embedded sandbox cannot run this query over released answers"}
	}
	// The parent writes this text to the operator's log and shows a constant one.
	return &scalar.Error{SQLState: errBroken.SQLState, Message: err.Error()}
}

var errRange = &scalar.Error{SQLState: "22003", Message: "value out of range"}

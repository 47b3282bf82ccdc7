package embedded

import (
	"database/sql/driver"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Values on their way into DuckDB's tables and out of its results, and as texts to and from our functions.

// store turns a value of type t into what the engine's appender takes for outer.Storage(t).
func store(t policy.Type, v policy.Value) (driver.Value, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case int64:
		switch t {
		case policy.Int2:
			return int16(v), nil
		case policy.Int4:
			return int32(v), nil
		}
		return v, nil
	case float64:
		if t == policy.Float4 {
			return float32(v), nil
		}
		return v, nil
	case policy.Numeric:
		return encodeNumeric(v)
	case policy.Date:
		return time.Unix(int64(v)*86400, 0).UTC(), nil
	case policy.Timestamp:
		return time.UnixMicro(int64(v)).UTC(), nil
	case policy.Timestamptz:
		return time.UnixMicro(int64(v)).UTC(), nil
	case policy.Time:
		return int64(v), nil
	case policy.Interval:
		return duckdb.Interval{Months: v.Months, Days: v.Days, Micros: v.Micros}, nil
	case []policy.Value:
		element, _ := outer.ArrayElement(t)
		list := make([]any, len(v))
		for i := range v {
			one, err := store(element, v[i])
			if err != nil {
				return nil, err
			}
			list[i] = one
		}
		return list, nil
	}
	return v, nil
}

// restore turns a value that the engine returned for a column of type t into a policy.Value.
func restore(t policy.Type, v any) (policy.Value, error) {
	if element, ok := outer.ArrayElement(t); ok && v != nil {
		list, ok := v.([]any)
		if !ok {
			return nil, sandbox.ErrBroken
		}
		values := make([]policy.Value, len(list))
		for i := range list {
			one, err := restore(element, list[i])
			if err != nil {
				return nil, err
			}
			values[i] = one
		}
		return values, nil
	}
	switch v := v.(type) {
	case int64:
		if t == policy.TimeT {
			return policy.Time(v), nil
		}
		return v, nil
	case nil, bool, float64:
		return v, nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case *big.Int:
		if !v.IsInt64() {
			return nil, errRange
		}
		return v.Int64(), nil
	case float32:
		return float64(v), nil
	case duckdb.Decimal:
		return policy.Numeric{Coefficient: v.Value, Scale: int32(v.Scale)}, nil
	case duckdb.Interval:
		return policy.Interval{Months: v.Months, Days: v.Days, Micros: v.Micros}, nil
	case time.Time:
		switch t {
		case policy.DateType:
			return policy.Date(v.Unix() / 86400), nil
		case policy.TimestampTZ:
			return policy.Timestamptz(v.UnixMicro()), nil
		}
		return policy.Timestamp(v.UnixMicro()), nil
	case string:
		if t == policy.NumericType {
			return decodeNumeric(v)
		}
		return v, nil
	}
	return nil, sandbox.ErrBroken
}

// argument reads the text in which the engine hands a value of type t to a function of ours.
func argument(t policy.Type, v driver.Value) (policy.Value, error) {
	text, ok := v.(string)
	if !ok {
		return nil, nil
	}
	switch t {
	case policy.Bool:
		return text == "true", nil
	case policy.Int2, policy.Int4, policy.Int8:
		return strconv.ParseInt(text, 10, 64)
	case policy.Float4:
		return strconv.ParseFloat(text, 32)
	case policy.Float8:
		return strconv.ParseFloat(text, 64)
	case policy.NumericType:
		if strings.IndexByte(text, '|') < 0 { // a decimal of the engine's
			return policy.ParseNumeric(text)
		}
		return decodeNumeric(text)
	case policy.DateType:
		n, err := strconv.ParseInt(text, 10, 32)
		return policy.Date(n), err
	case policy.TimestampT:
		n, err := strconv.ParseInt(text, 10, 64)
		return policy.Timestamp(n), err
	case policy.TimestampTZ:
		n, err := strconv.ParseInt(text, 10, 64)
		return policy.Timestamptz(n), err
	case policy.TimeT:
		n, err := strconv.ParseInt(text, 10, 64)
		return policy.Time(n), err
	case policy.IntervalT:
		return scalar.Env{}.ParseText(t, text) // as the engine writes it, whatever IntervalStyle is: '-1 days +00:30:00' has a sign for each field
	}
	return text, nil
}

// returned writes the result of a function of ours in the text that the engine's query turns back into its type.
func returned(v policy.Value) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case policy.Numeric:
		return encodeNumeric(v)
	case policy.Date:
		return strconv.FormatInt(int64(v), 10), nil
	case policy.Timestamp:
		return strconv.FormatInt(int64(v), 10), nil
	case policy.Timestamptz:
		return strconv.FormatInt(int64(v), 10), nil
	case policy.Time:
		return strconv.FormatInt(int64(v), 10), nil
	case policy.Interval:
		return strconv.FormatInt(int64(v.Months), 10) + " months " + strconv.FormatInt(int64(v.Days), 10) + " days " +
			strconv.FormatInt(v.Micros, 10) + " microseconds", nil
	case string:
		return v, nil
	}
	return nil, sandbox.ErrBroken
}

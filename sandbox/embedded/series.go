package embedded

import (
	"database/sql/driver"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// generate_series over instants, stepped in the session's zone.

// maxInSeries bounds a series of instants.
const maxInSeries = 1_000_000

var (
	errStepZero   = &scalar.Error{SQLState: "22023", Message: "step size cannot equal zero"}
	errLongSeries = &scalar.Error{SQLState: "54000", Message: "the series has more elements than the query may use"}
)

// instants is generate_series over timestamptz: each element is the one before it plus the step, in the session's zone,
// where a day may have 23 or 25 hours. They are parted by commas.
func (i *instance) instants(args []driver.Value) (any, error) {
	var ends [2]policy.Timestamptz
	for k := range ends {
		v, err := argument(policy.TimestampTZ, args[k])
		if err != nil {
			return nil, err
		}
		at, ok := v.(policy.Timestamptz)
		if !ok {
			return nil, nil
		}
		ends[k] = at
	}
	v, err := argument(policy.IntervalT, args[2])
	if err != nil {
		return nil, err
	}
	step, ok := v.(policy.Interval)
	if !ok {
		return nil, nil
	}
	sign := scalar.Compare(policy.IntervalT, step, policy.Interval{})
	if sign == 0 {
		return nil, errStepZero
	}
	next, err := i.env.Call("+", scalar.Column(0, policy.TimestampTZ, -1), scalar.Column(1, policy.IntervalT, -1))
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	at := ends[0]
	for n := 0; sign > 0 && at <= ends[1] || sign < 0 && at >= ends[1]; n++ {
		if n == maxInSeries {
			return nil, errLongSeries
		}
		if n > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.FormatInt(int64(at), 10))
		v, err := next.Eval(scalar.Row{at, step})
		if err != nil {
			return nil, err
		}
		if at, ok = v.(policy.Timestamptz); !ok {
			return nil, sandbox.ErrBroken
		}
	}
	return out.String(), nil
}

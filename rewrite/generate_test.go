package rewrite_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// generate makes rows whose values lie inside, at the ends of, between the cells of, and outside their domains.
func generate(r *rand.Rand, table *policy.Table, rows, units int) []stored {
	list := make([]stored, rows)
	for i := range list {
		list[i].unit = int64(r.IntN(units))
		if r.IntN(20) == 0 {
			list[i].unit = nil
		}
		for _, c := range table.Columns {
			v := value(r, c)
			if c.Outside == policy.OutsideExclude && r.IntN(10) > 0 {
				v = c.Domain.Low(r.IntN(c.Domain.Regular))
			}
			list[i].raw = append(list[i].raw, v)
		}
		if i > 0 && r.IntN(8) == 0 {
			list[i].raw = list[i-1].raw // duplicates
		}
	}
	return list
}

func value(r *rand.Rand, c *policy.Column) policy.Value {
	d := c.Domain
	if r.IntN(8) == 0 {
		return nil
	}
	if c.Type == policy.Bool {
		return r.IntN(2) == 0
	}
	if c.Type.Integer() && !d.Ordered() {
		if list := extremes(c); r.IntN(4) == 0 {
			return list[r.IntN(len(list))]
		}
		return d.Low(r.IntN(d.Regular))
	}
	if !d.Ordered() {
		outside := []string{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"}
		if c.Type != policy.UUID {
			outside = []string{"", "female", "Male ", "other", "FEMALE", "日本", "'; DROP", `\`, "NaN"}
		}
		if r.IntN(4) == 0 {
			return outside[r.IntN(len(outside))]
		}
		return d.Values[r.IntN(len(d.Values))]
	}
	if r.IntN(5) == 0 {
		list := extremes(c)
		return list[r.IntN(len(list))]
	}
	low := d.Low(r.IntN(d.Regular))
	switch low := low.(type) {
	case int64:
		return low + min(r.Int64N(d.Step.Whole), d.Max.(int64)-low)
	case policy.Date:
		return low + policy.Date(r.Int64N(d.Step.Whole))
	case policy.Timestamp:
		return low + policy.Timestamp(r.Int64N(d.Step.Whole))
	case policy.Timestamptz:
		return low + policy.Timestamptz(r.Int64N(d.Step.Whole))
	case policy.Numeric:
		n := low.Rescale(max(low.Scale, 2))
		n.Coefficient.Add(n.Coefficient, d.Step.Decimal.At(n.Scale).SetInt64(r.Int64N(30)))
		return n
	case float64:
		return nearby(c, low, r.IntN(5))
	}
	panic("value")
}

// nearby is a boundary, a number next to it, or one within the cell.
func nearby(c *policy.Column, low float64, way int) float64 {
	towards := []float64{math.Inf(1), math.Inf(-1)}
	switch {
	case way < 2 && c.Type == policy.Float4:
		return float64(math.Nextafter32(float32(low), float32(towards[way])))
	case way < 2:
		return math.Nextafter(low, towards[way])
	case way == 2:
		return float64(float32(low + 0.04))
	}
	return low
}

func extremes(c *policy.Column) []policy.Value {
	d := c.Domain
	ends := []policy.Value{d.Low(0), d.High(d.Regular - 1)}
	switch c.Type {
	case policy.Int2:
		return append(ends, int64(math.MinInt16), int64(math.MaxInt16), int64(6), int64(-6))
	case policy.Int4:
		return append(ends, int64(math.MinInt32), int64(math.MaxInt32), int64(-1), int64(120))
	case policy.Int8:
		return append(ends, int64(math.MinInt64)+1, int64(math.MaxInt64)-1, int64(0))
	case policy.Float4:
		return append(ends, math.NaN(), math.Inf(1), math.Inf(-1), float64(math.MaxFloat32), float64(math.SmallestNonzeroFloat32))
	case policy.Float8:
		return append(ends, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0.0)
	case policy.NumericType:
		if c.Typmod >= 0 {
			precision, _ := policy.NumericTypmod(c.Typmod)
			most := int64(math.Pow10(int(precision))) - 1
			return append(ends, policy.NewNumeric(-1, 2), policy.NewNumeric(-most, 2), policy.NewNumeric(most, 2), math.NaN())
		}
		return append(ends, policy.NewNumeric(-150000001, 8), policy.NewNumeric(7250000001, 9), policy.NewNumeric(math.MaxInt64, 0), math.NaN(), math.Inf(1), math.Inf(-1))
	case policy.DateType:
		return append(ends, endless(1), endless(-1), policy.Date(-700000), d.Max.(policy.Date)+1)
	case policy.TimestampT:
		return append(ends, endless(1), endless(-1), d.Max.(policy.Timestamp)+1, d.Min.(policy.Timestamp)-1)
	}
	return append(ends, endless(1), endless(-1), d.Max.(policy.Timestamptz)+1, d.Min.(policy.Timestamptz)-1)
}

// sqlValue writes a raw value for either database. DuckDB's decimals have no NaN and no infinity: NULL is in place of
// NaN, and a number beyond every domain for an infinity.
func sqlValue(c *policy.Column, v policy.Value, duck bool) string {
	if f, ok := v.(float64); ok && c.Type == policy.NumericType && duck {
		switch {
		case math.IsNaN(f):
			return "NULL"
		case f > 0:
			return "99999999"
		}
		return "-99999999"
	}
	switch v := v.(type) {
	case nil:
		return "NULL"
	case beyond:
		if duck {
			return v.duck
		}
		return v.postgres
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case endless:
		if v > 0 {
			return "'infinity'"
		}
		return "'-infinity'"
	case float64:
		return "'" + strings.Replace(strconv.FormatFloat(v, 'g', -1, 64), "+Inf", "Infinity", 1) + "'"
	case policy.Date:
		return "'" + time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly) + "'"
	case policy.Timestamp:
		return "'" + time.UnixMicro(int64(v)).UTC().Format("2006-01-02 15:04:05.000000") + "'"
	case policy.Timestamptz:
		return "'" + time.UnixMicro(int64(v)).UTC().Format("2006-01-02 15:04:05.000000") + "+00'"
	case policy.Numeric:
		return v.String()
	}
	return fmt.Sprint(v)
}

// schemaSQL creates the test tables and fills them.
func schemaSQL(table *policy.Table, unit string, specs []spec, rows []stored, duck bool) []string {
	name := table.Source.Schema + "." + table.Source.Name
	create := "CREATE TABLE " + name + " (" + unit + " bigint"
	for _, s := range specs {
		kind := s.kind
		if duck && kind == "numeric" {
			kind = "DECIMAL(38,9)"
		}
		create += ", " + s.name + " " + kind
	}
	statements := []string{create + ")"}
	for len(rows) > 0 {
		n := min(len(rows), 200)
		var tuples []string
		for _, row := range rows[:n] {
			values := []string{sqlValue(nil, row.unit, duck)}
			for i, c := range table.Columns {
				values = append(values, sqlValue(c, row.raw[i], duck))
			}
			tuples = append(tuples, "("+strings.Join(values, ", ")+")")
		}
		statements = append(statements, "INSERT INTO "+name+" VALUES "+strings.Join(tuples, ",\n"))
		rows = rows[n:]
	}
	return statements
}

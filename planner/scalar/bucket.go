package scalar

import (
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/policy"
)

// buckets registers width_bucket(value, low, high, count).
func (r registry) buckets() {
	n, f := policy.NumericType, policy.Float8
	r.many("width_bucket", []policy.Type{n, n, n, policy.Int4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		return numericBucket([3]numeric{a[0].(numeric), a[1].(numeric), a[2].(numeric)}, a[3].(int64))
	})
	r.many("width_bucket", []policy.Type{f, f, f, policy.Int4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		return floatBucket([3]float64{a[0].(float64), a[1].(float64), a[2].(float64)}, a[3].(int64))
	})
}

var (
	errBucketCount  = fail(stateWidthBucket, "count must be greater than zero")
	errBucketBounds = fail(stateWidthBucket, "lower bound cannot equal upper bound")
)

// WidthBucketOf names, for Call, width_bucket(operand, ARRAY[…]) over the operand and the array's elements: no
// statement can call a function of this name.
const WidthBucketOf = "[]width_bucket"

// Elements are those of an ARRAY[…], which are texts where none of them has a type: no number is among ARRAY['1', '3'].
func (env Env) Elements(list []Expr) []Expr {
	if slices.ContainsFunc(list, func(e Expr) bool { return e.Type() != policy.Unknown }) {
		return list
	}
	out := slices.Clone(list)
	for i, e := range out {
		if text, err := env.Coerce(e, policy.Text); err == nil {
			out[i] = text
		}
	}
	return out
}

// thresholds is how many of the thresholds, which are in order, are not above the operand. Where they are in none, it
// is what PostgreSQL's search by halves comes to.
func (env Env) thresholds(args []Expr) (Expr, error) {
	common, ok := args[0].Type(), true // which an array without types, '{18,30,65}', has
	if slices.ContainsFunc(args[1:], func(e Expr) bool { return e.Type() != policy.Unknown }) {
		elements, t, err := env.unify("ARRAY", args[1:])
		if err != nil {
			return nil, err
		}
		args = append([]Expr{args[0]}, elements...)
		common, ok = env.Common(common, t)
	} else if common == policy.Unknown {
		common = policy.Text
	}
	if !ok || !supported(common) {
		return nil, failf(stateUndefined, "function width_bucket(%s, %s[]) does not exist", args[0].Type().Name(), args[len(args)-1].Type().Name())
	}
	typed := make([]Expr, len(args))
	for i, e := range args {
		var err error
		if typed[i], err = env.Coerce(e, common); err != nil {
			return nil, err
		}
	}
	b := &body{loose: true, many: func(_ *Env, values []policy.Value) (policy.Value, error) {
		operand, list := values[0], values[1:]
		if operand == nil {
			return nil, nil
		}
		if slices.Contains(list, nil) {
			return nil, fail(stateNull, "thresholds array must not contain NULLs")
		}
		low, high := 0, len(list)
		for low < high {
			if middle := (low + high) / 2; Compare(common, operand, list[middle]) < 0 {
				high = middle
			} else {
				low = middle + 1
			}
		}
		return int64(low), nil
	}}
	return &call{node{typed, policy.Int4, -1}, WidthBucketOf, b, &env}, nil
}

// numericBucket finds the bucket of v[0] among count equal ones between v[1] and v[2]. The
// share is a rounded quotient, as in PostgreSQL: a value just below the upper bound may get bucket count+1.
func numericBucket(v [3]numeric, count int64) (policy.Value, error) {
	if count <= 0 {
		return nil, errBucketCount
	}
	scale := max(v[0].Scale, v[1].Scale, v[2].Scale)
	at, low, high := atScale(v[0], scale), atScale(v[1], scale), atScale(v[2], scale)
	direction := low.Cmp(high)
	switch {
	case direction == 0:
		return nil, errBucketBounds
	case direction < 0 && at.Cmp(low) < 0, direction > 0 && at.Cmp(low) > 0:
		return int64(0), nil
	case direction < 0 && at.Cmp(high) >= 0, direction > 0 && at.Cmp(high) <= 0:
		return inRange(policy.Int4, count+1, false)
	}
	top := new(big.Int).Sub(at, low)
	top.Mul(top.Abs(top), big.NewInt(count))
	width := new(big.Int).Sub(high, low)
	share, err := divideNumeric(newNumeric(top, scale), newNumeric(width.Abs(width), scale))
	if err != nil {
		return nil, err
	}
	return numericToInt(floorPlusOne(share.(numeric)), policy.Int4)
}

func floorPlusOne(n numeric) numeric {
	n = floorNumeric(n)
	n.Coefficient.Add(n.Coefficient, pow10(0))
	return n
}

// floatBucket is numericBucket on floats, with the same roundings as PostgreSQL's.
func floatBucket(v [3]float64, count int64) (policy.Value, error) {
	at, low, high := v[0], v[1], v[2]
	if count <= 0 {
		return nil, errBucketCount
	}
	if math.IsNaN(at) || math.IsNaN(low) || math.IsNaN(high) {
		return nil, fail(stateWidthBucket, "operand, lower bound, and upper bound cannot be NaN")
	}
	if math.IsInf(low, 0) || math.IsInf(high, 0) {
		return nil, fail(stateWidthBucket, "lower and upper bounds must be finite")
	}
	if low == high {
		return nil, errBucketBounds
	}
	sign := 1.0
	if low > high {
		sign = -1
	}
	switch {
	case at*sign < low*sign:
		return int64(0), nil
	case at*sign >= high*sign:
		return inRange(policy.Int4, count+1, false)
	}
	bucket := float64(count)*((at-low)*sign)/((high-low)*sign) + 1
	if !(bucket >= 0 && bucket <= math.MaxInt32) {
		return nil, unsupported("a bucket this wide")
	}
	return int64(bucket), nil
}

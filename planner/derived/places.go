package derived

import (
	"math"

	"github.com/dpproxy/dpproxy/policy"
)

// Places number what the keys of a public table find in one of its columns: of two keys with the same number the values
// are the same, to the last digit. Of 100,000 parts
//
//	p_brand = 'Brand#23'
//
// is one of 25 brands' truths: evaluated once for each, it is known of every part. Keys of which no row is found, or
// NULL, have the number 0.
type Places struct {
	Count int // numbers are below it
	of    []int32
	first int64
}

// Of is the number of a key.
func (p *Places) Of(key int64) int {
	if key < p.first || uint64(key)-uint64(p.first) >= uint64(len(p.of)) {
		return 0
	}
	return int(p.of[key-p.first])
}

// Keys are how many numbers are listed.
func (p *Places) Keys() int { return len(p.of) }

// Places numbers a column of the rows, or, of −1, whether there is one; nil means the keys are no whole numbers near
// one another, or the values cannot be told apart here. It is made once for an index.
func (k *Keyed) Places(column int) *Places {
	if k.dense == nil || len(k.keys) > 1 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p, made := k.values[column]
	if !made {
		p = k.numbered(column)
		if k.values == nil {
			k.values = map[int]*Places{}
		}
		k.values[column] = p
	}
	return p
}

func (k *Keyed) numbered(column int) *Places {
	p := &Places{Count: 1, of: make([]int32, len(k.dense)), first: k.first}
	numbers := map[any]int32{}
	for i, row := range k.dense {
		if row == nil || column >= 0 && row[column] == nil {
			continue
		}
		var looks any
		if column >= 0 {
			var ok bool
			if looks, ok = looksOf(row[column]); !ok {
				return nil
			}
		}
		n, met := numbers[looks]
		if !met {
			n = int32(p.Count)
			numbers[looks] = n
			p.Count++
		}
		p.of[i] = n
	}
	return p
}

// digits and bits are what numbers look like that are equal and may look otherwise: 1.0 and 1.00, 0 and −0.
type (
	digits string
	bits   uint64
)

// looksOf is a value as what is equal where values are the same in every respect.
func looksOf(v policy.Value) (any, bool) {
	switch v := v.(type) {
	case string, int64, bool, policy.Date, policy.Timestamp, policy.Timestamptz, policy.Time, policy.Interval:
		return v, true
	case float64:
		return bits(math.Float64bits(v)), true
	case policy.Numeric:
		return digits(v.String()), true
	}
	return nil, false
}

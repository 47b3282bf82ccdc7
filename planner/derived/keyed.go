package derived

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Keyed are the rows of a public table by the values of some of its columns, no two of them by the same. A plan looks
// into it once for each cell: of lineitem JOIN part ON l_partkey = p_partkey 100,000 times, so that keys which are
// whole numbers near one another, as serial ones are, are places in a list. So are they of several columns where one
// tells the rows apart by itself, as s_suppkey does in
//
//	l_suppkey = s_suppkey AND c_nationkey = s_nationkey
type Keyed struct {
	Twice  bool // two rows have the same key: there is nothing to look up in
	Digest string
	byText map[string][]policy.Value
	dense  [][]policy.Value // by one of the keys, from first on; nil means by text
	first  int64
	by     int // which
	keys   []Key

	mu     sync.Mutex // plans share an index
	values map[int]*Places
}

// Key is a column by whose values rows are looked for. Where a varchar is compared with a char its trailing blanks do
// not count: it is looked for without them, as the values of a char are.
type Key struct {
	Column int
	Short  bool
}

// Of is the key of a row.
func (k Key) Of(row []policy.Value) policy.Value {
	v := row[k.Column]
	if text, ok := v.(string); ok && k.Short {
		return strings.TrimRight(text, " ")
	}
	return v
}

// BytesKeyed is about what a public row takes in an index by its key.
const BytesKeyed = 96

// sparsest is how many places a list may have for each row.
const sparsest = 4

// KeyedBy reads rows by their keys, a step each, whatever the keys are; rows of which one is NULL are left out.
func KeyedBy(rows [][]policy.Value, keys []Key, step func()) *Keyed {
	k := &Keyed{byText: make(map[string][]policy.Value, len(rows))}
	hash := sha256.New()
	values := make([]policy.Value, len(keys))
	list := make([]extent, len(keys))
	for _, row := range rows {
		if step(); k.Twice {
			continue
		}
		for i, k := range keys {
			values[i] = k.Of(row)
		}
		key, known := JoinKey(values)
		if !known {
			continue
		}
		if k.byText[key] != nil {
			k.Twice, k.byText = true, nil
			continue
		}
		for i, v := range values {
			list[i].take(v, len(k.byText) == 0)
		}
		k.byText[key] = row
		fmt.Fprintf(hash, "%q", key)
		for _, v := range row {
			fmt.Fprintf(hash, " %q", predicate.Text(v))
		}
	}
	if k.Twice {
		return k
	}
	k.Digest = hex.EncodeToString(hash.Sum(nil)[:16])
	for i := range keys {
		if k.dense = k.listed(keys[i].Column, list[i]); k.dense != nil {
			k.first, k.by, k.keys, k.byText = list[i].least, i, keys, nil
			break
		}
	}
	return k
}

// extent is from where to where the values of a key go.
type extent struct {
	least, most int64
	other       bool // one of them is no whole number
}

func (e *extent) take(v policy.Value, first bool) {
	n, whole := v.(int64)
	switch {
	case !whole:
		e.other = true
	case first:
		e.least, e.most = n, n
	default:
		e.least, e.most = min(e.least, n), max(e.most, n)
	}
}

// listed are the rows as a list by one column; nil means its values are far apart, or two rows have the same.
func (k *Keyed) listed(column int, e extent) [][]policy.Value {
	span := uint64(e.most) - uint64(e.least)
	if e.other || span >= uint64(sparsest*len(k.byText)) {
		return nil
	}
	list := make([][]policy.Value, span+1)
	for _, row := range k.byText {
		at := row[column].(int64) - e.least
		if list[at] != nil {
			return nil
		}
		list[at] = row
	}
	return list
}

// Find is the row with a key, nil where there is none.
func (k *Keyed) Find(key []policy.Value) []policy.Value {
	if k.dense == nil {
		text, known := JoinKey(key)
		if !known {
			return nil
		}
		return k.byText[text]
	}
	n, ok := wholeOf(key[k.by])
	if !ok || n < k.first || uint64(n)-uint64(k.first) >= uint64(len(k.dense)) {
		return nil
	}
	row := k.dense[n-k.first]
	for i, own := range k.keys {
		if row != nil && i != k.by && !sameKey(key[i], own.Of(row)) {
			return nil
		}
	}
	return row
}

// sameKey tells values whose key texts are equal.
func sameKey(a, b policy.Value) bool {
	n, whole := a.(int64)
	if m, also := b.(int64); whole && also {
		return n == m
	}
	left, known := joinText(a)
	right, also := joinText(b)
	return known && also && left == right
}

// wholeOf is a value as the whole number that it equals, as joinText has them equal.
func wholeOf(v policy.Value) (int64, bool) {
	if n, ok := v.(int64); ok || v == nil {
		return n, ok
	}
	x, ok := RatOf(v)
	if !ok || !x.IsInt() || !x.Num().IsInt64() {
		return 0, false
	}
	return x.Num().Int64(), true
}

// JoinKey is the key text of values that are equal where their texts are; false where one is NULL, which equals
// nothing.
func JoinKey(values []policy.Value) (string, bool) {
	var b strings.Builder
	for _, v := range values {
		text, known := joinText(v)
		if !known {
			return "", false
		}
		b.Write(predicate.EncodeText(nil, text))
	}
	return b.String(), true
}

// joinText is the key text of a value; false for NULL, which equals nothing.
func joinText(v policy.Value) (string, bool) {
	if v == nil {
		return "", false
	}
	if n, ok := v.(int64); ok { // as below
		return strconv.FormatInt(n, 10), true
	}
	if x, ok := RatOf(v); ok {
		return x.RatString(), true
	}
	return predicate.Text(v), true
}

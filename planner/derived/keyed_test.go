package derived

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestKeyedRows holds what is found by a key against a search through all rows by JoinKey, for keys near one another,
// far apart, of several columns, of texts, of numbers of other types, and NULL.
func TestKeyedRows(t *testing.T) {
	const seed = 1404
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	numeric := func(n int64, scale int32) policy.Value {
		c := new(big.Int).Mul(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
		return policy.Numeric{Coefficient: c, Scale: scale}
	}
	serial := int64(0)
	kinds := map[string]func() policy.Value{
		"near":   func() policy.Value { return int64(r.IntN(300) - 40) },
		"serial": func() policy.Value { serial++; return serial / 2 }, // each of two columns tells the rows apart
		"far":    func() policy.Value { return int64(r.Uint64()) },
		"extreme": func() policy.Value {
			return []policy.Value{int64(-1 << 63), int64(1<<63 - 1), int64(0), nil}[r.IntN(4)]
		},
		"text":    func() policy.Value { return fmt.Sprint("k", r.IntN(300)) },
		"numeric": func() policy.Value { return numeric(int64(r.IntN(300)), int32(r.IntN(3))) },
		"null":    func() policy.Value { return []policy.Value{nil, int64(r.IntN(300))}[r.IntN(2)] },
	}
	for name, draw := range kinds {
		for _, columns := range []int{1, 2} {
			var rows [][]policy.Value
			var keys []Key
			for c := range columns {
				keys = append(keys, Key{Column: c})
			}
			taken := map[string]bool{}
			for range 200 {
				row := make([]policy.Value, columns+1)
				for c := range columns {
					row[c] = draw()
				}
				row[columns] = int64(len(rows))
				if key, known := JoinKey(row[:columns]); known && taken[key] {
					continue
				} else if known {
					taken[key] = true
				}
				rows = append(rows, row)
			}
			steps := 0
			k := KeyedBy(rows, keys, func() { steps++ })
			if k.Twice || steps != len(rows) {
				t.Fatalf("%s: twice %t, %d steps for %d rows", name, k.Twice, steps, len(rows))
			}
			if (k.dense != nil) != (columns == 1 && (name == "near" || name == "null") || name == "serial") {
				t.Errorf("%s over %d columns: a list: %t", name, columns, k.dense != nil)
			}
			for range 500 {
				key := make([]policy.Value, columns)
				for c := range key {
					switch r.IntN(3) {
					case 0:
						key[c] = draw()
					case 1:
						key[c] = rows[r.IntN(len(rows))][c]
					default:
						key[c] = policy.Numeric{Coefficient: big.NewInt(int64(r.IntN(3000) - 500)), Scale: 1}
					}
				}
				var want []policy.Value
				if wanted, known := JoinKey(key); known {
					for _, row := range rows {
						if have, known := JoinKey(row[:columns]); known && have == wanted {
							want = row
						}
					}
				}
				if got := k.Find(key); (got == nil) != (want == nil) || got != nil && got[columns] != want[columns] {
					t.Fatalf("%s: %v finds %v, must be %v", name, key, got, want)
				}
			}
			if again := append(rows, rows[len(rows)-1]); rows[len(rows)-1][0] != nil && !KeyedBy(again, keys, func() {}).Twice {
				if _, known := JoinKey(rows[len(rows)-1][:columns]); known {
					t.Errorf("%s: a key that two rows have is not seen", name)
				}
			}
		}
	}
}

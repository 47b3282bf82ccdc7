package units

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestUnitNumbers: units that are texts have different numbers if and only if they are different, whoever asks, and
// these end in what DuckDB's statement makes of them.
func TestUnitNumbers(t *testing.T) {
	t.Parallel()
	const seed = 1430
	r := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	texts := []string{"", "a", "ab", "a\x01", "a\x00", "123456789012345", "1234567890123456", "1234567890123457", "12345678901234567", strings.Repeat("1", 255), strings.Repeat("1", 256), "ü", strings.Repeat("ü", 127) + "ab", strings.Repeat("ü", 128) + "ab", strings.Repeat("x", 128) + "a", strings.Repeat("x", 128) + "b", strings.Repeat("\U0001f600", 1000) + strings.Repeat("0", 64)}
	for i := range 20000 {
		texts = append(texts, fmt.Sprint(i))
	}
	var taken atomic.Int64
	u := New(&taken, Memory)
	found := make([]map[string]int64, 4)
	var all sync.WaitGroup
	for i := range found {
		mine := slices.Clone(texts)
		r.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		found[i] = map[string]int64{}
		all.Go(func() {
			var work Search
			for list := range slices.Chunk(append(mine, mine[:100]...), 1+i*700) {
				list = append(list, list[0]) // once more, before it is there
				numbers := make([]int64, len(list))
				err := u.Of(func(i int) []byte { return []byte(list[i]) }, numbers, &work)
				for at, text := range list {
					if before, twice := found[i][text]; err != nil || twice && before != numbers[at] {
						t.Errorf("%q: %d, %d, %v", text, before, numbers[at], err)
					}
					found[i][text] = numbers[at]
				}
			}
		})
	}
	all.Wait()
	seen := map[int64]bool{}
	for text, n := range found[0] {
		if seen[n] || n < rewrite.UnitPlace {
			t.Errorf("%q is number %d, as another one is", text, n)
		}
		seen[n] = true
		for _, other := range found {
			if other[text] != n {
				t.Errorf("%q is %d and %d", text, n, other[text])
			}
		}
	}
	if most := taken.Load(); most <= 0 || most > 4<<20 {
		t.Errorf("%d bytes for %d texts", most, len(texts))
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	number, err := rewrite.Number(&policy.Table{Dataset: &policy.Dataset{}}, []rewrite.Staged{{Table: "s", Field: "v"}}, "units")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE s (v VARCHAR)"); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts[5:45] {
		if _, err := db.Exec("INSERT INTO s VALUES ($1)", text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(number); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query("SELECT v, u FROM units")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	compared := 0
	for rows.Next() {
		var text string
		var n int64
		if err := rows.Scan(&text, &n); err != nil {
			t.Fatal(err)
		}
		if compared++; n%rewrite.UnitPlace != found[0][text]%rewrite.UnitPlace {
			t.Errorf("%.20q: hash %d, DuckDB's %d", text, found[0][text]%rewrite.UnitPlace, n%rewrite.UnitPlace)
		}
	}
	if compared != 40 {
		t.Errorf("%d of 40 compared", compared)
	}
	full := New(new(atomic.Int64), 1<<16)
	for i := range 100000 {
		if err = full.Of(func(int) []byte { return []byte(fmt.Sprint(i)) }, make([]int64, 1), new(Search)); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrMany) {
		t.Errorf("100,000 units in 64 KiB: %v", err)
	}
}

package backend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestUnitNumbers: units that are texts have different numbers if and only if they are different, whoever asks, and these end in what
// DuckDB's statement makes of them.
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
	u := newUnitNumbers(&taken, unitsMemory)
	found := make([]map[string]int64, 4)
	var all sync.WaitGroup
	for i := range found {
		mine := slices.Clone(texts)
		r.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		found[i] = map[string]int64{}
		all.Go(func() {
			var work unitSearch
			for list := range slices.Chunk(append(mine, mine[:100]...), 1+i*700) {
				list = append(list, list[0]) // once more, before it is there
				numbers := make([]int64, len(list))
				err := u.of(func(i int) []byte { return []byte(list[i]) }, numbers, &work)
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
	number, err := rewrite.Number(testPolicy(t, "postgres://h/d").Datasets[0].Tables[0], []rewrite.Staged{{Table: "s", Field: "v"}}, "units")
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
	full := newUnitNumbers(new(atomic.Int64), 1<<16)
	for i := range 100000 {
		if err = full.of(func(int) []byte { return []byte(fmt.Sprint(i)) }, make([]int64, 1), new(unitSearch)); err != nil {
			break
		}
	}
	if !errors.Is(err, errManyUnits) {
		t.Errorf("100,000 units in 64 KiB: %v", err)
	}
}

// TestSnapshotOfManyUnits: where the numbers of units have no room, the same rows are read again, in the same moment, and counted alike.
func TestSnapshotOfManyUnits(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	b.source.(*Postgres).partPages = 1
	for i, most := range []int64{unitsMemory, 0, 4096} {
		b.unitsMost = most
		if err := renewed(t, h, 3*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := people(t, h); got != "[]: [40]" {
			t.Errorf("with %d bytes: %s", most, got)
		}
		again := strings.Count(h.log.String(), "reading again")
		if want := max(i, 0); again != want {
			t.Errorf("with %d bytes: read again %d times, not %d", most, again, want)
		}
		if got := counts(t, h, render(t, measure(t, h.policy, "visits", "minutes"), h)); len(got) == 0 {
			t.Error("no visits")
		}
	}
}

// TestRowsByTheirUnits: a table of which no unit has very many rows is known to be one, and no other is.
func TestRowsByTheirUnits(t *testing.T) {
	t.Parallel()
	var all counted
	if all.light() {
		t.Error("what nobody has counted is light")
	}
	for range 2 {
		own := make(unitCounts, countsLength)
		for i := range 200000 {
			own.of(uint64(i%1000), 1)
			own.of(maphash.String(unitSeed, fmt.Sprint(i%50000)), 1)
		}
		all.add(own)
	}
	if !all.light() {
		t.Error("500 rows of each unit are many")
	}
	heavy := make(unitCounts, countsLength)
	for range rewrite.MostRanked/2 + 1 {
		heavy.of(7, 1)
	}
	if all.add(heavy); !all.light() {
		t.Error("one half of the most rows is many")
	}
	if all.add(heavy); all.light() {
		t.Error("a unit with more than the most rows is light")
	}
}

// TestSnapshotOfHeavyUnits: a unit with very many rows has as many ranks.
func TestSnapshotOfHeavyUnits(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	h.source(fmt.Sprintf("INSERT INTO visits SELECT 3, 'north', i %% 60 FROM generate_series(1, %d) AS s(i)", rewrite.MostRanked+10000))
	if err := renewedBy(t, b, 3*time.Second, func() *policy.Policy { return h.policy }); err != nil {
		t.Fatal(err)
	}
	table := `private.main."` + rewrite.Copied(h.policy.Datasets[0].Tables[1]) + `"`
	var rows, ranks, most, units int64
	row := b.copies[0].db.QueryRowContext(context.Background(), "SELECT count(*), count(DISTINCT r), max(r), count(DISTINCT u) FROM "+table+" WHERE u = (SELECT u FROM "+table+" GROUP BY u ORDER BY count(*) DESC LIMIT 1)")
	if err := row.Scan(&rows, &ranks, &most, &units); err != nil {
		t.Fatal(err)
	}
	if rows <= rewrite.MostRanked || ranks != rows || most != rows || units != 1 {
		t.Errorf("%d rows of %d units with %d ranks up to %d", rows, units, ranks, most)
	}
}

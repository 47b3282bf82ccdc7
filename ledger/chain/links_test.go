package chain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// written is a ledger of three datasets in the order of its numbers: terms, charges in turns, and now and then a
// policy.
func written(t *testing.T, random *rand.Rand, split bool) []Row {
	t.Helper()
	var links Links
	var rows []Row
	add := func(kind Kind, ds int64, body []byte) {
		t.Helper()
		r := Row{Seq: links.Last + 1 + random.Int64N(3), Kind: kind, At: links.Time + random.Int64N(2), DS: ds, Holder: "ann", Body: body}
		if len(rows) == 0 {
			r.Seq = 1
		}
		if kind == RowTerms && ds == 0 {
			r.DS = r.Seq
		}
		if links.Link(&r); links.Of(r) != r.Chain {
			t.Fatal("a row is in two chains")
		}
		if err := links.Take(r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	genesis := Body()
	genesis.Digest([32]byte{byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())})
	if split {
		genesis.Bool(true)
	}
	add(RowGenesis, 0, genesis.Bytes())
	var sets []int64
	for range 3 {
		add(RowTerms, 0, []byte{1})
		sets = append(sets, rows[len(rows)-1].DS)
	}
	for n := range 30 {
		switch {
		case n == 12 && !split:
			add(RowChains, 0, nil)
		case n%10 == 9:
			add(RowPolicy, 0, []byte{byte(n)})
		default:
			add(RowCharge, sets[random.IntN(len(sets))], []byte{byte(n)})
		}
	}
	return rows
}

// read folds rows, in whatever order they are given.
func read(rows []Row) (*Links, error) {
	var links Links
	for _, r := range rows {
		if err := links.Take(r); err != nil {
			return &links, err
		}
	}
	return &links, nil
}

// TestLinksMissNothing: a row that is left out, changed, doubled, moved to another dataset or put elsewhere in its
// chain is found by what follows it, or is the last of its chain with no row of chain 0 behind it, which the head says.
func TestLinksMissNothing(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		for _, split := range []bool{true, false} {
			rows := written(t, random, split)
			whole, err := read(rows)
			if err != nil {
				t.Fatal(err)
			}
			heads := whole.Heads()
			for i, r := range rows {
				wrong := func(what string, rows []Row) {
					t.Helper()
					if links, err := read(rows); err == nil && links.At(heads) || err != nil && !errors.Is(err, ErrOrder) {
						t.Fatalf("seed %d: row %d of %d, %s: %v", seed, i, len(rows), what, err)
					}
				}
				wrong("left out", slices.Delete(slices.Clone(rows), i, i+1))
				changed := func(change func(*Row)) []Row {
					list := slices.Clone(rows)
					change(&list[i])
					return list
				}
				wrong("later", changed(func(r *Row) { r.At++ }))
				wrong("of another user", changed(func(r *Row) { r.Holder = "bob" }))
				wrong("of another number", changed(func(r *Row) { r.Seq++ }))
				wrong("of another kind", changed(func(r *Row) { r.Kind = RowForfeit }))
				wrong("of another dataset", changed(func(r *Row) { r.DS = rows[1].DS + rows[2].DS - r.DS }))
				wrong("twice", slices.Insert(slices.Clone(rows), i, r))
				if i+1 < len(rows) && (r.Chain == rows[i+1].Chain || r.Chain*rows[i+1].Chain == 0) {
					list := slices.Clone(rows)
					list[i], list[i+1] = list[i+1], list[i]
					wrong("after the next", list)
				}
				// Cut off with all of its chain that follows: what is behind it in others is not whole, if it is of
				// chain 0 or has that behind it.
				last := slices.IndexFunc(rows, func(o Row) bool { return o.Seq > r.Seq && o.Chain == 0 })
				cut := slices.DeleteFunc(slices.Clone(rows), func(o Row) bool { return o.Seq >= r.Seq && o.Chain == r.Chain })
				links, err := read(cut)
				if found := err != nil; found != (last >= 0 && r.Chain != 0 || r.Chain == 0 && slices.ContainsFunc(rows, func(o Row) bool { return o.Seq > r.Seq && o.Chain != 0 })) {
					t.Fatalf("seed %d: cut off from row %d on: %v", seed, i, err)
				}
				if err == nil && links.At(heads) {
					t.Fatalf("seed %d: the heads are the same without row %d", seed, i)
				}
			}
		}
	}
}

// TestLinksOfDatasetsCommute: rows of two datasets may be read in either order, and the chains end alike.
func TestLinksOfDatasetsCommute(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		rows := written(t, random, seed%2 == 0)
		whole, err := read(rows)
		if err != nil {
			t.Fatal(err)
		}
		mixed := slices.Clone(rows)
		for range 200 {
			i := random.IntN(len(mixed) - 1)
			if a, b := mixed[i], mixed[i+1]; a.Chain != b.Chain && a.Chain*b.Chain != 0 {
				mixed[i], mixed[i+1] = b, a
			}
		}
		other, err := read(mixed)
		if err != nil || !other.At(whole.Heads()) || other.Rows != whole.Rows || other.Last != whole.Last || other.Time != whole.Time {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestChainsBeginApart: chains of two datasets, and of one dataset in two ledgers, have nothing in common.
func TestChainsBeginApart(t *testing.T) {
	seen := map[[32]byte]string{}
	for seed := range uint64(10) {
		rows := written(t, rand.New(rand.NewPCG(seed, 2)), true)
		links, err := read(rows[:4])
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range links.Heads() {
			where := fmt.Sprintf("chain %d of seed %d", h.Chain, seed)
			if other := seen[h.Hash]; other != "" && h.Chain != 0 {
				t.Errorf("%s begins as %s does", where, other)
			}
			seen[h.Hash] = where
		}
	}
}

package chain

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A ledger has one chain for what concerns more than one dataset, or none (policies, terms, names, forfeits), whose
// number is 0, and one for each dataset, of its number, for what is done within it: charges, releases, what they go on
// with. So whoever writes in one dataset need not wait for who writes in another (docs/adr/0148).
//
// Numbers of rows are larger from row to row in each chain, have gaps, and are never used twice. Chain 0 is written
// only by who keeps everybody else off all chains: so its rows have larger numbers than all that was there before, and
// smaller ones than all that comes after. The rows of all chains by number are an order in which they may be read: of
// two that this order does not keep in the order in which they were written, each is of another dataset, and neither
// asks about the other.
//
// Claim: who takes a row out, puts one in, changes one, moves one to another chain or another place in the order that
// counts, has changed the hash of each row behind it that depends on it: of all that follow in its chain; of each row
// of chain 0 after it; and, if it is one of chain 0, of each row of any chain after it. Proof: a row's hash covers its
// number, kind, time, dataset and body, which say its chain, and what stood before: in a dataset's chain the heads of
// that chain and of chain 0, in chain 0 the heads of all chains in the order of their numbers. The head of a chain
// without a row is a hash of the dataset's number and of the row that began it, so that no two chains begin alike.
// SHA-256 has no known collisions.
//
// Limits: what nothing depends on yet, the last rows of each chain, can be cut off without a trace in the rows
// themselves, as the last rows of one chain could; the witness has seen the heads of all chains. There is no secret in
// a hash: who writes the whole ledger anew has a whole ledger, and the witness's is another one.

// Head is where a chain ends.
type Head struct {
	Chain int64    // the dataset's number, or 0
	Seq   int64    // of the last row; of a chain without one, of the row that began it
	Hash  [32]byte // the last row's, or what replaces it
	At    int64
}

// Ends reports whether a chain that ends at h ends at o.
func (h Head) Ends(o Head) bool { return h.Chain == o.Chain && h.Seq == o.Seq && h.Hash == o.Hash }

// Links are the chains of a ledger, as far as they were read. Those of a ledger that was made before datasets had
// chains are one, up to a row that begins the others.
type Links struct {
	Rows  int64 // read so far
	Last  int64 // the largest number among them
	Time  int64 // the latest of theirs
	heads map[int64]Head
	split bool    // each dataset has a chain of its own
	sets  []int64 // datasets, while it is one chain
}

// ErrOrder: a row does not follow from those before it.
var ErrOrder = errors.New("it does not follow")

// Split reports whether each dataset has a chain of its own.
func (l *Links) Split() bool { return l.split }

// Clone is a copy that can go on by itself.
func (l *Links) Clone() *Links {
	c := *l
	c.heads, c.sets = maps.Clone(l.heads), slices.Clip(l.sets)
	return &c
}

// Head is where a dataset's chain, or chain 0, ends.
func (l *Links) Head(chain int64) Head { return l.heads[l.In(chain)] }

// In is the chain that has the rows of a dataset.
func (l *Links) In(ds int64) int64 {
	if l.split {
		return ds
	}
	return 0
}

// Heads are the ends of all chains, by number.
func (l *Links) Heads() []Head {
	list := make([]Head, 0, len(l.heads))
	for _, chain := range slices.Sorted(maps.Keys(l.heads)) {
		list = append(list, l.heads[chain])
	}
	return list
}

// At reports whether the chains end just there.
func (l *Links) At(ends []Head) bool {
	there := map[int64]bool{}
	for _, h := range ends {
		if own, ok := l.heads[h.Chain]; !ok || !own.Ends(h) {
			return false
		}
		there[h.Chain] = true
	}
	return len(there) == len(l.heads)
}

// Moved are the ends of the chains that end otherwise than they did.
func (l *Links) Moved(since *Links) []Head {
	return slices.DeleteFunc(l.Heads(), func(h Head) bool { return since.heads[h.Chain] == h })
}

// Of is the chain of a row that comes next.
func (l *Links) Of(r Row) int64 {
	switch r.Kind {
	case RowBind, RowCharge, RowSave, RowRevoke, RowGrow, RowStep:
		return l.In(r.DS)
	}
	return 0
}

// Link makes a row, whose other fields are set, the next one of its chain.
func (l *Links) Link(r *Row) {
	r.Chain = l.Of(*r)
	r.Hash = r.Link(l.before(r.Chain))
}

// before is what the next row of a chain follows.
func (l *Links) before(chain int64) [32]byte {
	if !l.split {
		return l.heads[0].Hash
	}
	e := Encoder{b: make([]byte, 0, 128)}
	if chain != 0 {
		e.Text("dataset")
		e.Digest(l.heads[chain].Hash)
		e.Digest(l.heads[0].Hash)
		return e.Hash()
	}
	e.Text("all")
	for _, h := range l.Heads() {
		e.Int(h.Chain)
		e.Digest(h.Hash)
	}
	return e.Hash()
}

// Take checks that a row is the next one of its chain, and goes on to it.
func (l *Links) Take(r Row) error {
	chain := l.Of(r)
	own, begun := l.heads[chain]
	all := l.heads[0]
	switch {
	case (r.Kind == RowGenesis) != (r.Seq == 1), begun == (r.Kind == RowGenesis):
		return fmt.Errorf("%w: row %d is out of place", ErrOrder, r.Seq)
	case r.Seq <= own.Seq || r.Seq <= all.Seq || chain == 0 && r.Seq <= l.Last:
		return fmt.Errorf("%w: row %d is behind row %d", ErrOrder, r.Seq, max(own.Seq, all.Seq))
	case r.At < own.At || r.At < all.At || chain == 0 && r.At < l.Time:
		return fmt.Errorf("%w: row %d is older than row %d", ErrOrder, r.Seq, max(own.Seq, all.Seq))
	case r.Link(l.before(chain)) != r.Hash:
		return fmt.Errorf("%w: row %d has not the hash that follows from row %d", ErrOrder, r.Seq, own.Seq)
	}
	return l.Move(r)
}

// Move goes on to a row that Link has made.
func (l *Links) Move(r Row) error {
	if l.heads == nil {
		l.heads = map[int64]Head{}
	}
	chain := l.Of(r)
	l.heads[chain] = Head{chain, r.Seq, r.Hash, r.At}
	l.Rows, l.Last, l.Time = l.Rows+1, max(l.Last, r.Seq), max(l.Time, r.At)
	switch {
	case r.Kind == RowGenesis:
		d := Read(r.Body)
		d.Digest()
		l.split = d.More() && d.Bool()
	case r.Kind == RowTerms && r.DS == r.Seq && l.split:
		l.begin(r.DS, r)
	case r.Kind == RowTerms && r.DS == r.Seq:
		l.sets = append(l.sets, r.DS)
	case r.Kind == RowChains && l.split:
		return fmt.Errorf("%w: row %d begins chains that are there", ErrOrder, r.Seq)
	case r.Kind == RowChains:
		l.split = true
		for _, ds := range l.sets {
			l.begin(ds, r)
		}
		l.sets = nil
	}
	return nil
}

// begin begins the chain of a dataset.
func (l *Links) begin(ds int64, with Row) {
	var e Encoder
	e.Text("chain of a dataset")
	e.Int(ds)
	e.Digest(with.Hash)
	l.heads[ds] = Head{ds, with.Seq, sha256.Sum256(e.b), with.At}
}

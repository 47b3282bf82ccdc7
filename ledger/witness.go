package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The witness is a small file that knows how far the ledger has come: its name, the number and hash of the last row of
// each of its chains, and what has been charged in each, and in all. An older copy of the ledger that is put back does
// not contain one of these rows, and is refused; so is one of which only one dataset's chain is older. It protects as
// far as it survives what the ledger does not: beside the ledger it catches a file put back or cut off, on another disk
// also a lost disk. It has two places that are written in turn, so that a torn write loses one only.
//
// It is written after each commit and before the commit is acknowledged, so a killed process leaves it at most one
// commit behind; it is flushed to its disk once a second and at Close, so after a power cut it may be a second behind.
// Behind is never an alarm: it only vouches for less.
type witness struct {
	file store.File
	turn int64 // of the last mark written
	dirt bool  // a mark is not flushed yet
}

// mark is one state of the ledger.
type mark struct {
	name Digest
	ends []end // of all its chains, chain 0 first; none means there is no mark
}

// end is where a chain ends, and what was charged in its dataset until then; with chain 0, in all. at is the time of
// the last row among these, of which chain 0 has some (who changes groups charges them); 0 means the mark was written
// by a program that did not note it.
type end struct {
	chain, seq int64
	hash       Digest
	total      privacy.Cost
	at         int64
}

func (m mark) none() bool { return len(m.ends) == 0 }

func markOf(b *book) mark {
	m := mark{name: b.name}
	for _, h := range b.links.Heads() {
		e := end{h.Chain, h.Seq, h.Hash, b.totals[h.Chain], max(h.At, b.links.Head(0).At)}
		if h.Chain == 0 {
			e.total, e.at = b.total, b.links.Time
		}
		m.ends = append(m.ends, e)
	}
	return m
}

// of reports whether a chain of b ends there.
func (e end) of(b *book) bool {
	h := b.links.Head(e.chain)
	return h.Chain == e.chain && h.Seq == e.seq && h.Hash == e.hash
}

// missing is what was charged at a mark and b does not hold: the sum of what each dataset lacks, for what came later in
// one does not make up for what another has lost; or what is lacking in all, if that is more. Nor does what came later
// in the same one, where an older copy was charged again before it was held against the mark: the mark's last row is
// known by its time, and what is younger cannot have been seen. Nor can what is of that time be, in a chain that lacks
// this row, unless the ledger's time stood still: then too much is forfeited rather than too little. What was forfeited
// since makes up for it, for that was missing then.
//
// Limits: where the clock that the copy was charged by is behind the mark's, charges of before its time are taken for
// seen ones.
//
// A forfeit is taken for the loss of every mark that is older than it, also of one that saw other rows than those it
// was for. One witness alone is not misled by that, since its total is of all that it has ever seen, on whichever copy.
// Two are, which were at work on different copies (TestForfeitIsTakenForEveryLoss):
//
//	proxies A and B share a ledger of 4. A charges 6: its witness has seen 10
//	the copy of 4 is put back before B has seen these; B goes on and charges 5: its witness has seen 9
//	the copy of 4 is put back again. A accepts, and 6 are forfeited: 10. B accepts, misses 9 − 10, and nothing is forfeited: of 15 that were spent 10 are counted
//
// To leave forfeits out would have each of the proxies that ran side by side forfeit the same loss once more, which is
// the common case. What tells the two apart is whether one mark's last row comes before the other's on one line, which
// a number, a time and a hash of each do not say: it would take hashes of earlier rows in each mark, and the accepting
// mark's in the row of the forfeit.
func (m mark) missing(b *book) (sum privacy.Cost) {
	var all privacy.Cost
	lacks := func(e end, held privacy.Cost, passed bool) privacy.Cost {
		held = held.Less(b.later[e].after)
		if !passed {
			held = held.Less(b.later[e].beside)
		}
		return e.total.Less(held)
	}
	for _, e := range m.ends {
		switch {
		case e.chain == 0: // of several chains others have rows of that time which were seen
			all = lacks(e, b.total, len(m.ends) > 1 || b.passed[e])
		case !b.passed[e] || !b.passed[m.ends[0]]:
			sum = sum.Plus(lacks(e, b.totals[e.chain], b.passed[e]))
		}
	}
	return sum.Most(all)
}

// A mark begins with a text that says how it is written: of one chain, as programs did before datasets had chains, of
// any number, and with the times of their last rows.
const (
	oneChainMagic = "dpproxy ledger witness"
	chainsMagic   = "dpproxy witness of chains"
	witnessMagic  = "dpproxy dated witness of chains"
	witnessPlace  = 4096 // a place of its own block, so that a torn write cannot reach the other one
)

func (m mark) encode(turn int64) []byte {
	e := chain.Body()
	e.Int(turn)
	e.Digest(m.name)
	e.Int(int64(len(m.ends)))
	for _, end := range m.ends {
		e.Int(end.chain)
		e.Int(end.seq)
		e.Digest(end.hash)
		e.Cost(end.total)
		e.Int(end.at)
	}
	var whole chain.Encoder
	whole.Blob(e.Bytes())
	b := append([]byte(witnessMagic), whole.Bytes()...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// decodeMark reads the mark that p begins with.
func decodeMark(p []byte) (m mark, turn int64, ok bool) {
	magic, size := witnessMagic, 0
	if bytes.HasPrefix(p, []byte(chainsMagic)) {
		magic = chainsMagic
	}
	switch old := len(oneChainMagic) + 105; { // the form, and 13 numbers of eight bytes
	case bytes.HasPrefix(p, []byte(magic)) && len(p) >= len(magic)+8:
		if n := binary.BigEndian.Uint64(p[len(magic):]); n < uint64(len(p)) {
			size = len(magic) + 8 + int(n)
		}
	case bytes.HasPrefix(p, []byte(oneChainMagic)):
		magic, size = oneChainMagic, old
	}
	if size == 0 || len(p) < size+sha256.Size {
		return mark{}, 0, false
	}
	body, sum := p[:size], p[size:size+sha256.Size]
	if want := sha256.Sum256(body); string(sum) != string(want[:]) {
		return mark{}, 0, false
	}
	if magic == oneChainMagic {
		d, only := chain.Read(body[len(magic):]), end{}
		turn, m.name, only.seq, only.hash, only.total = d.Int(), d.Digest(), d.Int(), d.Digest(), d.Cost()
		m.ends = []end{only}
		return m, turn, d.End() == nil
	}
	d := chain.Read(body[len(magic)+8:])
	turn, m.name = d.Int(), d.Digest()
	for range d.Count() {
		e := end{chain: d.Int(), seq: d.Int(), hash: d.Digest(), total: d.Cost()}
		if magic == witnessMagic {
			e.at = d.Int()
		}
		m.ends = append(m.ends, e)
	}
	return m, turn, d.End() == nil && !m.none() && m.ends[0].chain == 0
}

// placeOf is where a mark of that size is written at a turn: the two places of one block each are at the file's
// beginning, behind them those of two blocks, of four, and so on. A ledger whose chains have become too many for its
// places goes on in larger ones.
func placeOf(size, turn int64) int64 {
	place := int64(witnessPlace)
	for place < size {
		place *= 2
	}
	return 2*(place-witnessPlace) + turn%2*place
}

// readWitness returns the latest mark, and false if there is no file, or one of zeros alone: a power cut may leave the
// length of the first mark and not its bytes. A ledger that has rows is refused without a witness as well. Any other
// file without a readable mark is ErrWitness.
func readWitness(d store.Disk, path string) (mark, int64, bool, error) {
	p, err := d.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.Trim(p, "\x00")) == 0 {
		return mark{}, 0, false, nil
	}
	if err != nil {
		return mark{}, 0, true, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	var latest mark
	var turn int64
	found := false
	for place := int64(witnessPlace); placeOf(place, 0) < int64(len(p)); place *= 2 {
		for at := placeOf(place, 0); at <= placeOf(place, 1) && at < int64(len(p)); at += place {
			if m, t, ok := decodeMark(p[at:]); ok && (!found || t > turn) {
				latest, turn, found = m, t, true
			}
		}
	}
	if !found {
		return mark{}, 0, true, fmt.Errorf("%w: neither of its two marks is whole", ErrWitness)
	}
	return latest, turn, true, nil
}

func openWitness(d store.Disk, path string, turn int64) (*witness, error) {
	f, err := d.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &witness{file: f, turn: turn}, nil
}

// write notes a state.
func (w *witness) write(m mark) error {
	w.turn++
	p := m.encode(w.turn)
	if _, err := w.file.WriteAt(p, placeOf(int64(len(p)), w.turn)); err != nil {
		return err
	}
	w.dirt = true
	return nil
}

func (w *witness) flush() error {
	if !w.dirt {
		return nil
	}
	w.dirt = false
	return w.file.Sync()
}

func (w *witness) close() error {
	return errors.Join(w.flush(), w.file.Close())
}

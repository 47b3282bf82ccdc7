package ledger

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The witness is a small file that knows how far the ledger has come: its name, the number and hash of its last row, and
// what has been charged in all. An older copy of the ledger that is put back does not contain that row, and is refused.
// It protects as far as it survives what the ledger does not: beside the ledger it catches a file put back or cut off,
// on another disk also a lost disk. It has two places that are written in turn, so that a torn write loses one only.
//
// It is written after each commit and before the commit is acknowledged, so a killed process leaves it at most one
// commit behind; it is flushed to its disk once a second and at Close (Options.SyncWitness: each time), so after a
// power cut it may be a second behind. Behind is never an alarm: it only vouches for less.
type witness struct {
	path string
	file store.File
	turn int64 // of the last mark written
	sync bool  // flush each mark
	dirt bool  // a mark is not flushed yet
}

// mark is one state of the ledger.
type mark struct {
	name  Digest
	seq   int64
	hash  Digest
	total privacy.Cost
}

const (
	witnessMagic = "dpproxy ledger witness"
	witnessPlace = 4096 // a place of its own block, so that a torn write cannot reach the other one
)

func (m mark) encode(turn int64) []byte {
	e := chain.Body()
	e.Int(turn)
	e.Digest(m.name)
	e.Int(m.seq)
	e.Digest(m.hash)
	e.Cost(m.total)
	b := append([]byte(witnessMagic), e.Bytes()...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func decodeMark(p []byte) (m mark, turn int64, ok bool) {
	size := len(mark{}.encode(0))
	if len(p) < size || string(p[:len(witnessMagic)]) != witnessMagic {
		return mark{}, 0, false
	}
	body, sum := p[:size-sha256.Size], p[size-sha256.Size:size]
	if want := sha256.Sum256(body); string(sum) != string(want[:]) {
		return mark{}, 0, false
	}
	d := chain.Read(body[len(witnessMagic):])
	turn, m.name, m.seq, m.hash, m.total = d.Int(), d.Digest(), d.Int(), d.Digest(), d.Cost()
	return m, turn, d.End() == nil
}

// readWitness returns the latest mark, and false if there is no file, or one of zeros alone: a power cut may leave the length
// of the first mark and not its bytes. A ledger that has rows is refused without a witness as well. Any other file without a
// readable mark is ErrWitness.
func readWitness(d store.Disk, path string) (mark, int64, bool, error) {
	p, err := d.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.Trim(p, "\x00")) == 0 {
		return mark{}, 0, false, nil
	}
	if err != nil {
		return mark{}, 0, true, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	latest, turn, found := decodeMark(p)
	if len(p) > witnessPlace {
		if m, t, ok := decodeMark(p[witnessPlace:]); ok && (!found || t > turn) {
			latest, turn, found = m, t, true
		}
	}
	if !found {
		return mark{}, 0, true, fmt.Errorf("%w: neither of its two marks is whole", ErrWitness)
	}
	return latest, turn, true, nil
}

func openWitness(d store.Disk, path string, turn int64, sync bool) (*witness, error) {
	f, err := d.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &witness{path: path, file: f, turn: turn, sync: sync}, nil
}

// write notes a state.
func (w *witness) write(m mark) error {
	w.turn++
	if _, err := w.file.WriteAt(m.encode(w.turn), w.turn%2*witnessPlace); err != nil {
		return err
	}
	w.dirt = true
	if w.sync {
		return w.flush()
	}
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

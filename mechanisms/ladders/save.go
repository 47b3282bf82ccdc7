package ladders

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const header = "dpproxy ladder 1\n"

// Save writes the rungs so that levels not paid for yet can be revealed later, by another process, too. What is written
// is the finest level: whoever can read it has seen it. It belongs where the ledger's own rows are.
func (r Rungs) Save(w io.Writer) error {
	if err := r.ladder.check(0); err != nil {
		return err
	}
	values := sealed.Open(r.values)
	text := []byte(header)
	text = binary.AppendVarint(text, r.ladder.l1)
	text = binary.AppendVarint(text, int64(len(r.ladder.levels)))
	text = binary.AppendVarint(text, int64(len(values[0])))
	for i, e := range r.ladder.levels {
		text = binary.AppendVarint(text, e.Micro())
		for _, x := range values[i] {
			text = binary.AppendVarint(text, x)
		}
	}
	sum := sha256.Sum256(text)
	if _, err := w.Write(append(text, sum[:]...)); err != nil {
		return fmt.Errorf("rungs were not saved: %w", err)
	}
	return nil
}

// Load reads what Save wrote. It refuses what was cut short or changed.
func Load(r io.Reader) (Rungs, error) {
	text, err := io.ReadAll(bufio.NewReader(io.LimitReader(r, (MostLevels+1)*MostCells*binary.MaxVarintLen64)))
	if err != nil {
		return Rungs{}, fmt.Errorf("rungs were not read: %w", err)
	}
	body := len(text) - sha256.Size
	if body < len(header) || string(text[:len(header)]) != header {
		return Rungs{}, errors.New("rungs do not begin with their header")
	}
	if sum := sha256.Sum256(text[:body]); !bytes.Equal(sum[:], text[body:]) {
		return Rungs{}, errors.New("rungs have another checksum than they were saved with")
	}
	at := bytes.NewReader(text[len(header):body])
	next := func() (n int64) {
		if err == nil {
			n, err = binary.ReadVarint(at)
		}
		return n
	}
	l1, levels, cells := next(), next(), next()
	if err != nil || levels < 1 || levels > MostLevels || cells < 0 || cells > MostCells {
		return Rungs{}, errors.New("rungs have an impossible size")
	}
	epsilons, values := make([]privacy.Epsilon, levels), make([][]int64, levels)
	for i := range epsilons {
		epsilons[i], values[i] = privacy.MicroEpsilon(next()), make([]int64, cells)
		for c := range values[i] {
			values[i][c] = min(max(next(), -mostNoisy), mostNoisy)
		}
	}
	if err != nil || at.Len() != 0 {
		return Rungs{}, errors.New("rungs have an impossible size")
	}
	l, err := New(epsilons, privacy.Sensitivity{L1: l1, L2Squared: math.MaxInt64})
	if err != nil {
		return Rungs{}, err
	}
	return Rungs{l, privacy.Seal(values)}, nil
}

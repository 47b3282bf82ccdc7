package chain

import (
	"encoding/binary"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// Release is the stored form of a drawn release: its observations as zigzag varints, its keys, and what is sealed
// behind them, which of most releases is nothing.
func Release(n mechanisms.Noisy, sealed []byte) []byte {
	b := make([]byte, 0, 2*len(n.Observations)+len(sealed)+16)
	b = append(b, Form)
	b = binary.AppendUvarint(b, uint64(len(n.Observations)))
	for _, v := range n.Observations {
		b = binary.AppendVarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(n.Keys)))
	for _, k := range n.Keys {
		b = append(binary.AppendUvarint(b, uint64(len(k))), k...)
	}
	return append(b, sealed...)
}

// ReadRelease reads what Release wrote.
func ReadRelease(b []byte) (n mechanisms.Noisy, sealed []byte, err error) {
	d := Read(b)
	n.Observations = make([]int64, d.length())
	for i := range n.Observations {
		v, size := binary.Varint(d.b)
		if d.take(size); size <= 0 {
			d.fail()
		}
		n.Observations[i] = v
	}
	if keys := d.length(); keys > 0 { // none, or one for each observation
		if keys != len(n.Observations) {
			d.fail()
		}
		n.Keys = make([]string, keys)
	}
	for i := range n.Keys {
		n.Keys[i] = string(d.take(d.length()))
	}
	if d.err != nil {
		return mechanisms.Noisy{}, nil, d.err
	}
	return n, d.b, nil
}

// length reads a varint length of things that take at least a byte each.
func (d *Decoder) length() int {
	n, size := binary.Uvarint(d.b)
	if d.take(size); size <= 0 || n > uint64(len(d.b)) {
		d.fail()
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

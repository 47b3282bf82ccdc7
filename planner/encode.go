package planner

import (
	"encoding/binary"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// The canonical encoding of measures. Every part is preceded by its length or count, so that different measures have
// different encodings.

func encodeText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func encodeSpans(b []byte, spans []mechanisms.Span) []byte {
	b = binary.AppendUvarint(b, uint64(len(spans)))
	for _, s := range spans {
		b = binary.AppendUvarint(b, uint64(s.From))
		b = binary.AppendUvarint(b, uint64(s.To))
	}
	return b
}

// encodePred writes a canonical predicate.
func encodePred(b []byte, p Pred) []byte {
	switch p := p.(type) {
	case AllOf:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(p)))
		for _, q := range p {
			b = encodePred(b, q)
		}
		return b
	case AnyOf:
		b = binary.AppendUvarint(append(b, 'o'), uint64(len(p)))
		for _, q := range p {
			b = encodePred(b, q)
		}
		return b
	case InCells:
		return encodeSpans(encodeText(append(b, 'i'), p.Column.Name), p.Spans)
	case Compare:
		b = encodeText(encodeText(append(b, 'c'), p.Column.Name), p.Op)
		return encodeText(b, textOf(canonicalValue(p.Value)))
	case Between:
		return encodeText(encodeText(encodeText(append(b, 'b'), p.Left.Name), p.Right.Name), p.Op)
	case Never:
		return append(b, 'n')
	}
	return append(b, 't')
}

// canonicalValue makes 1.50 and 1.5 one value.
func canonicalValue(v policy.Value) policy.Value {
	n, ok := v.(policy.Numeric)
	if !ok {
		return v
	}
	for n.Scale > 0 {
		shorter := n.Rescale(n.Scale - 1)
		if shorter.Cmp(n) != 0 {
			break
		}
		n = shorter
	}
	return n
}

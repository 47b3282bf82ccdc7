package predicate

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// The canonical encoding of predicates, of which that of measures is made. Every part is preceded by its length or
// count, so that what is different has different encodings.

// EncodeText writes a text behind its length.
func EncodeText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// EncodeSpans writes spans behind their number.
func EncodeSpans(b []byte, spans []mechanisms.Span) []byte {
	b = binary.AppendUvarint(b, uint64(len(spans)))
	for _, s := range spans {
		b = binary.AppendUvarint(b, uint64(s.From))
		b = binary.AppendUvarint(b, uint64(s.To))
	}
	return b
}

// Encode writes a canonical predicate.
func Encode(b []byte, p Pred) []byte {
	switch p := p.(type) {
	case AllOf:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(p)))
		for _, q := range p {
			b = Encode(b, q)
		}
		return b
	case AnyOf:
		b = binary.AppendUvarint(append(b, 'o'), uint64(len(p)))
		for _, q := range p {
			b = Encode(b, q)
		}
		return b
	case InCells:
		return EncodeSpans(EncodeText(append(b, 'i'), p.Column.Name), p.Spans)
	case Compare:
		b = EncodeText(EncodeText(append(b, 'c'), p.Column.Name), p.Op)
		return EncodeText(b, Text(CanonicalValue(p.Value)))
	case Past:
		b = EncodeText(EncodeText(append(b, 'p'), p.Column.Name), p.Op)
		return binary.AppendVarint(b, p.By)
	case Between:
		return EncodeText(EncodeText(EncodeText(append(b, 'b'), p.Left.Name), p.Right.Name), p.Op)
	case Sum:
		b = binary.AppendUvarint(append(b, 's'), uint64(len(p.Terms)))
		for _, t := range p.Terms {
			b = EncodeText(binary.AppendVarint(b, t.Times), t.Column.Name)
		}
		return EncodeText(EncodeText(b, p.Op), Text(CanonicalValue(p.Value)))
	case Never:
		return append(b, 'n')
	}
	return append(b, 't')
}

// CanonicalValue makes 1.50 and 1.5 one value.
func CanonicalValue(v policy.Value) policy.Value {
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

// Text writes a value for canonical texts and literals: equal values have equal texts within one Go type.
func Text(v policy.Value) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return v
	case policy.Numeric:
		return v.String()
	case policy.Date:
		return "d" + strconv.FormatInt(int64(v), 10)
	case policy.Timestamp:
		return "t" + strconv.FormatInt(int64(v), 10)
	case policy.Timestamptz:
		return "z" + strconv.FormatInt(int64(v), 10)
	case policy.Time:
		return "h" + strconv.FormatInt(int64(v), 10)
	case policy.Interval:
		return "i" + strconv.FormatInt(int64(v.Months), 10) + "/" + strconv.FormatInt(int64(v.Days), 10) + "/" + strconv.FormatInt(v.Micros, 10)
	case []policy.Value:
		parts := make([]string, len(v))
		for i, p := range v {
			parts[i] = strconv.Quote(Text(p))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "?"
}

package encoding

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// copySignature begins a binary copy: no flags, no extension.
const copySignature = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// CopyWriter writes rows as CopyData messages.
type CopyWriter struct {
	*parse.Copy
	encoder *Encoder
	names   []string
	forced  []bool // by column: always in quotes
	out     []byte
	from    int // where the message begins that is open
	open    bool
	value   []byte
}

// NewCopyWriter writes the rows of columns as COPY asks for.
func NewCopyWriter(how *parse.Copy, e *Encoder, columns []sandbox.Column) *CopyWriter {
	w := &CopyWriter{Copy: how, encoder: e, forced: make([]bool, len(columns))}
	for i, col := range columns {
		w.names = append(w.names, CString(col.Name))
		w.forced[i] = how.ForceAll || slices.Contains(how.ForceQuote, col.Name)
	}
	return w
}

// Len is how many bytes are written and not sent.
func (w *CopyWriter) Len() int { return len(w.out) }

// Written is what is written and not sent.
func (w *CopyWriter) Written() Encoded { return Encoded(w.out) }

// WholeRows is that without the row that failed.
func (w *CopyWriter) WholeRows() Encoded { return Encoded(w.out[:w.from]) }

// Sent forgets what was sent.
func (w *CopyWriter) Sent() { w.out = w.out[:0] }

// message opens a message, unless one is open: as with PostgreSQL, the head of a binary copy is in that of the first
// row.
func (w *CopyWriter) message() {
	if !w.open {
		w.open, w.from = true, len(w.out)
		w.out = append(w.out, 'd', 0, 0, 0, 0)
	}
}

func (w *CopyWriter) sealed() (err error) {
	if w.Format != parse.CopyBinary {
		if w.out, err = w.encoder.charset.rewritten(w.out, w.from+5); err != nil {
			return err
		}
		w.out = append(w.out, '\n')
	}
	binary.BigEndian.PutUint32(w.out[w.from+1:], uint32(len(w.out)-w.from-1))
	w.open = false
	return nil
}

// Begin writes what precedes the rows.
func (w *CopyWriter) Begin() error {
	switch {
	case w.Format == parse.CopyBinary:
		w.message()
		w.out = append(w.out, copySignature...)
	case w.Header:
		w.message()
		for i, name := range w.names {
			w.part(i)
			if w.Format == parse.CopyCSV {
				w.quoted(name, false)
			} else {
				w.escaped(name)
			}
		}
		return w.sealed()
	}
	return nil
}

// End writes what follows them: a binary copy says that no row follows.
func (w *CopyWriter) End() error {
	if w.Format != parse.CopyBinary {
		return nil
	}
	w.message()
	w.out = binary.BigEndian.AppendUint16(w.out, 0xFFFF)
	return w.sealed()
}

// part begins a column.
func (w *CopyWriter) part(i int) {
	if i > 0 {
		w.out = append(w.out, w.Delimiter)
	}
}

// Row writes the i-th row: like an encoder's, it is of what was released.
func (w *CopyWriter) Row(rows privacy.Released[sandbox.Rows], i int) error {
	if !rows.Valid() {
		return ErrMismatch
	}
	values := rows.Value().Data[i]
	if len(values) != len(w.names) {
		return ErrMismatch
	}
	w.message()
	if w.Format == parse.CopyBinary {
		w.out = binary.BigEndian.AppendUint16(w.out, uint16(len(values)))
	}
	for i, v := range values {
		if err := w.field(i, v); err != nil {
			return err
		}
	}
	return w.sealed()
}

func (w *CopyWriter) field(i int, v policy.Value) (err error) {
	if w.Format == parse.CopyBinary {
		at := len(w.out)
		w.out = binary.BigEndian.AppendUint32(w.out, 0xFFFFFFFF)
		if v != nil {
			w.out, err = w.encoder.binary(w.out, w.encoder.types[i], v)
			binary.BigEndian.PutUint32(w.out[at:], uint32(len(w.out)-at-4))
		}
		return err
	}
	w.part(i)
	if v == nil {
		w.out = append(w.out, w.Null...)
		return nil
	}
	if w.value, err = w.encoder.text(w.value[:0], w.encoder.types[i], v); err != nil {
		return err
	}
	if w.Format == parse.CopyCSV {
		w.quoted(string(w.value), w.forced[i])
	} else {
		w.escaped(string(w.value))
	}
	return nil
}

// copyEscapes are the characters that text writes as a backslash and a letter.
var copyEscapes = map[byte]byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v'}

// escaped writes a value of the text format.
func (w *CopyWriter) escaped(s string) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if letter, ok := copyEscapes[c]; ok {
			w.out = append(w.out, '\\', letter)
			continue
		}
		if c == '\\' || c == w.Delimiter {
			w.out = append(w.out, '\\')
		}
		w.out = append(w.out, c)
	}
}

// quoted writes a value of the CSV format, in quotes where it could be misread.
func (w *CopyWriter) quoted(s string, always bool) {
	misread := s == w.Null || len(w.names) == 1 && s == `\.` ||
		strings.IndexByte(s, w.Delimiter) >= 0 || strings.IndexByte(s, w.Quote) >= 0 || strings.ContainsAny(s, "\r\n")
	if !always && !misread {
		w.out = append(w.out, s...)
		return
	}
	w.out = append(w.out, w.Quote)
	for i := 0; i < len(s); i++ {
		if s[i] == w.Quote || s[i] == w.Escape {
			w.out = append(w.out, w.Escape)
		}
		w.out = append(w.out, s[i])
	}
	w.out = append(w.out, w.Quote)
}

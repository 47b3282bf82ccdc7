package derived

import (
	"encoding/binary"

	"github.com/dpproxy/dpproxy/policy"
)

// Matched are the rows of From, each once for every row of a public table that it matches (docs/adr/0029). Which it
// matches is known when the statement is planned, for each combination of cells of some columns: the private database
// sees numbers alone, of combinations and of public rows. A row is there as often as its combination has matches, so a
// unit's rows are multiplied by the most matches that one combination has, and by no more.
type Matched struct {
	From      *policy.Table
	Args      []*policy.Column // of From, by name
	Matches   []Match          // by combination, then row
	Rows      int              // of the public table, as far as they are numbered
	Outer     bool             // rows of From without a match stay, with NULL for the public row
	Preserved bool             // rows of the public table without a match are to be seen: a further column says that a row is of From
}

// Match is a combination of the arguments' cells, the first column's slowest, and a public row that it matches.
type Match struct{ Combination, Row int32 }

// MaxMatches is how many public rows one private row may match; MaxPairs, how many matches are told to the database.
const (
	MaxMatches = 1 << 10
	MaxPairs   = 1 << 14
)

func (m *Matched) Inputs() []*policy.Table { return []*policy.Table{m.From} }

// Meaning is canonical: public rows are numbered in the order of their values, and what these are is in what is made of
// them.
func (m *Matched) Meaning(f policy.Fingerprints) []byte {
	b := encodeNames(encodeInputs([]byte("matched"), m, f), m.Args)
	b = binary.AppendUvarint(b, uint64(m.Rows))
	b = binary.AppendUvarint(b, uint64(len(m.Matches)))
	for _, match := range m.Matches {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(match.Combination)), uint64(match.Row))
	}
	for _, flag := range []bool{m.Outer, m.Preserved} {
		if b = append(b, 'n'); flag {
			b[len(b)-1] = 'y'
		}
	}
	return b
}

// Most is the largest number of allowed matches of one combination.
func (m *Matched) Most(allowed func(row int32) bool) int64 {
	most, here := int64(0), int64(0)
	for i, match := range m.Matches {
		if i > 0 && match.Combination != m.Matches[i-1].Combination {
			here = 0
		}
		if allowed(match.Row) {
			here++
		}
		most = max(most, here)
	}
	if m.Outer {
		most = max(most, 1)
	}
	return most
}

// NewMatched makes the table of a Matched: the columns and keys of From, then the public row. It is nil where a unit
// could have too many rows.
func NewMatched(m *Matched, public string) *policy.Table {
	times := max(m.Most(func(int32) bool { return true }), 1)
	if times > MaxMatches || m.From.MaxRowsPerUnit > MaxRows/times {
		return nil
	}
	t := newExtended(m, m.From.MaxRowsPerUnit*times)
	t.Name += " with " + public
	nulls := policy.NullExclude
	if m.Outer {
		nulls = policy.NullCell
	}
	domain := steppedDomain(policy.Int4, -1, 0, int64(max(m.Rows, 1)-1), nulls)
	if domain == nil {
		return nil
	}
	addColumn(t, &policy.Column{Name: "row of " + public, Type: policy.Int4, Typmod: -1}, m.From, domain)
	if m.Preserved {
		addColumn(t, &policy.Column{Name: "has " + m.From.Name, Type: policy.Bool, Typmod: -1}, m.From, truths())
	}
	return t
}

// Row is the position of the column that says which public row it is.
func (m *Matched) Row() int { return len(m.From.Columns) }

// MatchedIn is the Matched whose rows a table has, with further columns or without; nil means none.
func MatchedIn(t *policy.Table) *Matched {
	for ; t != nil; t = Widened(t) {
		if d, ok := t.Derived.(*Matched); ok {
			return d
		}
	}
	return nil
}

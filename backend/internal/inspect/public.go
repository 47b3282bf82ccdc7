package inspect

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A public table is copied through the text forms of its values, which both databases write alike.

// bytesOfValue is what a value of a copy takes in memory, with its share of the row: a million rows of six columns took
// 750 MB.
const bytesOfValue = 125

// CopyTable checks the table, reads it by read and makes values of the texts. Its errors name the table's columns and
// nothing else.
func CopyTable(t *policy.Table, d dialect.Dialect, read func(sql string, add func(row []*string) error) error) (privacy.Released[[][]policy.Value], error) {
	var none privacy.Released[[][]policy.Value]
	sql, err := rewrite.Copy(t, d, t.MaxRows+1)
	if err != nil {
		return none, err
	}
	var rows [][]policy.Value
	var bad error // the copy's own verdict, which the operator may see, unlike the database's errors
	err = read(sql, func(texts []*string) error {
		var row []policy.Value
		if row, bad = publicRow(t, texts); bad == nil && len(rows) == t.MaxRows {
			bad = fmt.Errorf("has more than %d rows, which is its max_rows: its copy lies in dpproxy's memory, where each "+
				"100000 rows take some %d MB, and in the sandbox; where there is room, give it a larger max_rows (at most %d)",
				t.MaxRows, (len(t.Columns)*bytesOfValue+9)/10, policy.MaxPublicRows)
		}
		rows = append(rows, row)
		return bad
	})
	switch {
	case bad != nil:
		return none, bad
	case err != nil:
		return none, fmt.Errorf("cannot be read (%s)", execute.Cause(err))
	}
	return privacy.Published(rows), nil
}

func publicRow(t *policy.Table, texts []*string) ([]policy.Value, error) {
	if len(texts) != len(t.Columns) {
		return nil, execute.ErrResult
	}
	row := make([]policy.Value, len(texts))
	for i, text := range texts {
		if text == nil {
			continue
		}
		v, err := publicValue(t.Columns[i].Type, *text)
		switch n := v.(type) {
		case policy.Numeric:
			if err == nil {
				v, err = declared(n, t.Columns[i].Typmod)
			}
		case string:
			if c := t.Columns[i]; c.Blanks > 0 {
				short := strings.TrimRight(n, " ")
				if v = short; utf8.RuneCountInString(short) > c.Blanks {
					err = execute.ErrResult
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("column %s holds a value that is not of type %s, or is infinite or beyond the year 9999", t.Columns[i].Name, t.Columns[i].Type)
		}
		row[i] = v
	}
	return row, nil
}

// declared is a numeric with the digits after the point that its column is declared with, which PostgreSQL would have
// given it; the sandbox computes with it by what is declared (ADR 158).
func declared(n policy.Numeric, typmod int32) (policy.Numeric, error) {
	if typmod < 4 {
		return n, nil
	}
	digits, scale := (typmod-4)>>16, (typmod-4)&0xffff
	if scale > digits { // fewer digits than places, or places before the point
		return n, nil
	}
	if n.Scale > scale {
		return n, execute.ErrResult
	}
	n = n.Rescale(scale)
	if most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil); n.Coefficient != nil && n.Coefficient.CmpAbs(most) >= 0 {
		return n, execute.ErrResult
	}
	return n, nil
}

// publicValue reads the text form of a value.
func publicValue(t policy.Type, text string) (policy.Value, error) {
	switch {
	case t.Textual():
		return text, nil
	case t.Floating():
		f, err := strconv.ParseFloat(text, 8*int(t.Length()))
		if err != nil && !math.IsInf(f, 0) {
			return nil, err
		}
		return f, nil
	case t == policy.TimestampTZ:
		at, err := time.Parse("2006-01-02 15:04:05.999999Z07", text)
		return policy.Timestamptz(at.UnixMicro()), err
	case t == policy.TimestampT:
		at, err := time.Parse("2006-01-02 15:04:05.999999", text)
		return policy.Timestamp(at.UnixMicro()), err
	case t == policy.DateType:
		text, _ = strings.CutSuffix(text, " 00:00:00") // a timestamp column at midnight
	}
	return policy.ParseValue(t, text)
}

// TextRow is a row of texts, and where to scan it into.
func TextRow(n int) (texts []*string, into []any) {
	texts = make([]*string, n)
	for i := range texts {
		into = append(into, &texts[i])
	}
	return texts, into
}

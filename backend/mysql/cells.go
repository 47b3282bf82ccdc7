package mysql

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A cell of MySQL's becomes a value of the type that the policy declares, here and not in SQL, so that each has one
// meaning and none fails: what is no value of the type is NULL. Of `SELECT t.born, LEFT(t.name, 7) FROM shop.people AS
// t` the cell 0000-00-00 is NULL, 2021-02-31 is NULL, and of a name so many characters come as tell it from all
// declared ones.
//
// Claim. The value is a function of the cell and of the schema alone, total, and for keys one to one: two keys are one
// text here if and only if MySQL takes them for equal. Proof of the last, by type: whole numbers of 64 bits are taken
// as int64, those without a sign modulo 2^64; decimals of one scale have one text each; texts are in a _bin collation,
// which compares code points, with blanks at the end left out where it pads them, and come as the bytes that are
// stored, of a character set in which each code point is other bytes: the server would convert those that are no
// character of it to question marks, all alike; bytes are written in hexadecimal digits; moments, and numbers of bits,
// have one form for each precision, and labels of one ENUM differ, and from '', which means a value that is no label.
// Keys of other types are refused (KeyClass), and so is comparing two of different classes.

// Column is a column of a relation as it is read.
type Column struct {
	Name  string // as the policy writes it
	Kind  string // DuckDB's type of its values
	Item  string // what is selected
	Most  int    // bytes that a cell has in a row
	Value func(driver.Value) driver.Value
}

// LongestKey is the most characters that the type of a key that is a text may allow.
const LongestKey = 4096

// ColumnOf plans how a column is read for those that the policy makes of it, and as a key.
func ColumnOf(name string, at Shape, columns []*policy.Column, key, whole bool) (Column, error) {
	c := Column{Name: name, Item: "t." + Quote(name), Most: 64}
	switch {
	case len(columns) > 0 && columns[0].Table.Public: // one row of those may be as long as it likes, and a value of another type is noted
		c.Kind, c.Value = "VARCHAR", publicCell(columns[0].Type)
	case key && whole:
		c.Kind, c.Value = "BIGINT", wholeKey
	case key:
		c.Kind, c.Value, c.Most = "VARCHAR", textKey(at), 4*LongestKey+64
		if at.Collation != "" {
			c.Item = "CAST(" + c.Item + " AS BINARY)"
		}
	default:
		kind := ""
		for _, column := range columns {
			own, err := rewrite.ColumnType(column, dialect.MySQL)
			if err != nil {
				return c, err
			}
			if kind != "" && own != kind { // two tables show it as two types: each reads the text
				own = "VARCHAR"
			}
			kind = own
		}
		c.Kind, c.Value = kind, valueOf(kind, at)
		if kind == "VARCHAR" && at.textual() {
			n := maxCharacters(columns)
			c.Item, c.Most = fmt.Sprintf("LEFT(t.%s, %d)", Quote(name), n), 4*n+64
		}
	}
	return c, nil
}

// maxCharacters is how many of a text's tell it from every other that some column does not take for the same.
func maxCharacters(columns []*policy.Column) int {
	most := 64 // of a text that is read as a number or a moment
	for _, c := range columns {
		if c.Open != nil || c.Domain == nil {
			most = max(most, c.Longest())
			continue
		}
		for _, v := range c.Domain.Values {
			most = max(most, utf8.RuneCountInString(v))
		}
	}
	return most + 1
}

// valueOf makes a value of DuckDB's type of a cell.
func valueOf(kind string, at Shape) func(driver.Value) driver.Value {
	var width, scale int32
	if _, err := fmt.Sscanf(kind, "DECIMAL(%d,%d)", &width, &scale); err == nil {
		return func(v driver.Value) driver.Value { return decimalCell(v, width, scale) }
	}
	switch kind {
	case "BIGINT":
		return WholeCell
	case "FLOAT", "DOUBLE":
		return floatCell(kind)
	case "BOOLEAN":
		return boolCell
	case "DATE", "TIMESTAMP", "TIMESTAMPTZ":
		return momentCell
	case "UUID":
		return uuidCell
	}
	return textCell
}

// WholeCell is a whole number; one beyond int64 is the nearest, which lies beyond a domain's end as it does.
func WholeCell(v driver.Value) driver.Value {
	text, ok := cellText(v)
	if !ok {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		return int64(math.MaxInt64)
	}
	return nil
}

// wholeKey is a whole number that is a key. Those beyond int64 are below 0: keys are compared for equality alone.
func wholeKey(v driver.Value) driver.Value {
	text, ok := cellText(v)
	if !ok {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return int64(n)
	}
	return nil
}

func floatCell(kind string) func(driver.Value) driver.Value {
	return func(v driver.Value) driver.Value {
		var f float64
		switch v := v.(type) {
		case float32:
			f = float64(v)
		case float64:
			f = v
		default:
			return nil
		}
		if kind == "FLOAT" {
			return float32(f)
		}
		return f
	}
}

// boolCell is true of every number but 0, as in MySQL's conditions.
func boolCell(v driver.Value) driver.Value {
	switch v := v.(type) {
	case int64:
		return v != 0
	case []byte: // of BIT
		return slices.ContainsFunc(v, func(b byte) bool { return b != 0 })
	}
	return nil
}

// decimalCell is a decimal of so many digits, scale of them after the point, of which MySQL has no more than that
// (Inspect sees to it). One with more digits before the point is the nearest.
func decimalCell(v driver.Value, width, scale int32) driver.Value {
	text, ok := cellText(v)
	if !ok {
		return nil
	}
	digits, negative := strings.CutPrefix(strings.TrimPrefix(text, "+"), "-")
	before, after, _ := strings.Cut(digits, ".")
	if len(after) > int(scale) || len(before) > 100 {
		return nil
	}
	n, ok := new(big.Int).SetString(before+after+strings.Repeat("0", int(scale)-len(after)), 10)
	if !ok || n.Sign() < 0 {
		return nil
	}
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(width)), nil)
	if n.Cmp(most) >= 0 {
		n.Sub(most, big.NewInt(1))
	}
	if negative {
		n.Neg(n)
	}
	if width <= 18 {
		return n.Int64() // as DuckDB holds it
	}
	return n
}

// momentCell is a date or a moment, of what MySQL writes: 2024-02-29, 2024-02-29 13:59:59.5. It may write what is none:
// 0000-00-00, 2024-00-10, and where a mode allowed it 2024-02-31.
func momentCell(v driver.Value) driver.Value {
	text, ok := cellText(v)
	if !ok || len(text) < len(time.DateOnly) || len(text) > len("2024-02-29 13:59:59.000000") {
		return nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04:05.999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return nil
}

// publicCell is the text of a value of a public table, as publicValue reads it. What MySQL writes for no date is NULL.
func publicCell(t policy.Type) func(driver.Value) driver.Value {
	return func(v driver.Value) driver.Value {
		text := textCell(v)
		switch {
		case t == policy.Bool && boolCell(v) != nil:
			return strconv.FormatBool(boolCell(v).(bool))
		case t.Moment() && strings.HasPrefix(fmt.Sprint(text), "0000-00-00"):
			return nil
		case t == policy.TimestampTZ && text != nil:
			return text.(string) + "+00"
		case t == policy.UUID:
			if id, ok := uuidCell(v).(duckdb.UUID); ok {
				return id.String()
			}
		}
		return text
	}
}

// uuidCell is a UUID, of its text or of 16 bytes.
func uuidCell(v driver.Value) driver.Value {
	raw, ok := v.([]byte)
	if !ok {
		return nil
	}
	if len(raw) != 16 {
		text := string(raw)
		if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
			return nil
		}
		var err error
		if raw, err = hex.DecodeString(strings.ReplaceAll(text, "-", "")); err != nil || len(raw) != 16 {
			return nil
		}
	}
	return duckdb.UUID(raw)
}

// textCell is a text. Bytes that are no UTF-8, which MySQL keeps where nobody looked, become the character for that.
func textCell(v driver.Value) driver.Value {
	text, ok := cellText(v)
	if !ok {
		switch v := v.(type) {
		case float32:
			return strconv.FormatFloat(float64(v), 'g', -1, 32)
		case float64:
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return nil
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// textKey is the text that a key is compared by.
func textKey(at Shape) func(driver.Value) driver.Value {
	return func(v driver.Value) driver.Value {
		text, ok := cellText(v)
		switch {
		case !ok:
			return nil
		case at.bytes():
			return hex.EncodeToString([]byte(text))
		case at.Data == "decimal":
			text = plainDecimal(text)
		}
		if at.Pads {
			text = strings.TrimRight(text, " ")
		}
		characters, _, _ := strings.Cut(at.Collation, "_")
		if characters == "latin1" {
			text = ofLatin1(text)
		}
		beyond := characters == "ascii" && strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
		if beyond || !utf8.ValidString(text) || strings.HasPrefix(text, "\x00") {
			return "\x00" + hex.EncodeToString([]byte(text))
		}
		return text
	}
}

// windows1252 are the characters of the bytes from 80 to 9f that MySQL calls latin1: Windows' code page, and controls
// where that has nothing.
var windows1252 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

func ofLatin1(text string) string {
	var b strings.Builder
	for i := range len(text) {
		r := rune(text[i])
		if r >= 0x80 && r < 0xa0 {
			r = windows1252[r-0x80]
		}
		b.WriteRune(r)
	}
	return b.String()
}

// plainDecimal leaves out what ZEROFILL and a negative zero write.
func plainDecimal(text string) string {
	digits, negative := strings.CutPrefix(text, "-")
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || digits[0] == '.' {
		digits = "0" + digits
	}
	if negative && strings.Trim(digits, "0.") != "" {
		return "-" + digits
	}
	return digits
}

// KeyClass names the types whose values are one text if and only if they are equal, one name for all that MySQL
// compares with each other so; empty means of this type it is not known.
func KeyClass(at Shape) string {
	switch at.Data {
	case "tinyint", "smallint", "mediumint", "int", "year":
		return "whole"
	case "bigint":
		if at.Unsigned {
			return "whole without a sign"
		}
		return "whole"
	case "decimal":
		return "decimal of scale " + strconv.Itoa(at.Scale)
	case "char", "varchar", "tinytext", "text":
		if !at.Exact || at.Length > LongestKey {
			return ""
		}
		if at.Pads {
			return "text that is padded"
		}
		return "text"
	case "binary":
		return fmt.Sprint("binary of length ", at.Length) // which is filled up with bytes of 0
	case "varbinary":
		if at.Length > LongestKey {
			return ""
		}
		return "varbinary"
	case "enum":
		if !at.Exact || emptyLabel.MatchString(at.Full) {
			return ""
		}
		return at.Full
	case "date", "datetime", "timestamp", "bit", "uuid":
		return at.Full
	}
	return ""
}

// emptyLabel matches an ENUM of whose labels one is empty, or a blank where these do not count: enum('a',”).
var emptyLabel = regexp.MustCompile(`^enum\((?:'(?:[^']|'')*',)*' *'(?:,.*)?\)$`)

// Shape is what MySQL's catalog says of a column.
type Shape struct {
	Data, Full string // "varchar", "varchar(20)"
	Unsigned   bool
	Precision  int  // of a decimal
	Scale      int  // of a decimal, −1: none
	Length     int  // in characters, of a text, or in bytes
	Exact      bool // texts are equal where their code points are, but for blanks at the end where
	Pads       bool // it pads them
	Computed   bool // when it is read
	Collation  string
}

// textual reports whether LEFT cuts it. ENUM and SET are among them: their labels are texts.
func (s Shape) textual() bool {
	return strings.HasSuffix(s.Data, "text") || strings.HasSuffix(s.Data, "blob") || slices.Contains([]string{"char", "varchar", "binary", "varbinary", "enum", "set"}, s.Data)
}

// bytes reports whether it holds bytes, and not characters.
func (s Shape) bytes() bool {
	return s.Data == "binary" || s.Data == "varbinary" || s.Data == "bit"
}

// Quote quotes a name.
func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

package encoding

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// What a client sends and is sent is in its client_encoding; within the proxy all text is UTF-8. Text is read from it
// before anything looks at a message, and written in it when a message is made.

// Charset is a client's encoding. A nil one is UTF-8, or SQL_ASCII, which PostgreSQL does not convert either.
type Charset struct {
	name string
	encoding.Encoding
}

// charsets are those that can be converted as PostgreSQL does, by its names. Those of several bytes differ from its
// tables in a few hundred signs that have two codes, each of which is read.
var charsets = map[string]encoding.Encoding{
	"LATIN1": charmap.ISO8859_1, "LATIN2": charmap.ISO8859_2, "LATIN3": charmap.ISO8859_3, "LATIN4": charmap.ISO8859_4, "LATIN5": charmap.ISO8859_9,
	"LATIN6": charmap.ISO8859_10, "LATIN7": charmap.ISO8859_13, "LATIN8": charmap.ISO8859_14, "LATIN9": charmap.ISO8859_15, "LATIN10": charmap.ISO8859_16,
	"ISO_8859_5": charmap.ISO8859_5, "ISO_8859_6": charmap.ISO8859_6, "ISO_8859_7": charmap.ISO8859_7, "ISO_8859_8": charmap.ISO8859_8,
	"WIN1250": charmap.Windows1250, "WIN1251": charmap.Windows1251, "WIN1252": charmap.Windows1252, "WIN1253": charmap.Windows1253, "WIN1254": charmap.Windows1254,
	"WIN1255": charmap.Windows1255, "WIN1256": charmap.Windows1256, "WIN1257": charmap.Windows1257, "WIN1258": charmap.Windows1258,
	"WIN866": charmap.CodePage866, "WIN874": charmap.Windows874, "KOI8R": charmap.KOI8R, "KOI8U": charmap.KOI8U,
	"EUC_JP": japanese.EUCJP, "SJIS": japanese.ShiftJIS, "UHC": korean.EUCKR,
	"GBK": simplifiedchinese.GBK, "GB18030": simplifiedchinese.GB18030,
}

// charsetNames are other names of encodings, without case and punctuation.
var charsetNames = map[string]string{
	"utf8": "UTF8", "unicode": "UTF8", "sqlascii": "SQL_ASCII", "koi8": "KOI8R", "win": "WIN1251", "alt": "WIN866",
	"iso88591": "LATIN1", "iso88592": "LATIN2", "iso88593": "LATIN3", "iso88594": "LATIN4", "iso88599": "LATIN5", "iso885910": "LATIN6",
	"iso885913": "LATIN7", "iso885914": "LATIN8", "iso885915": "LATIN9", "iso885916": "LATIN10",
	"shiftjis": "SJIS", "mskanji": "SJIS", "win932": "SJIS", "windows932": "SJIS", "win936": "GBK", "windows936": "GBK",
	"win949": "UHC", "windows949": "UHC",
}

func init() {
	for name := range charsets {
		low := strings.ReplaceAll(strings.ToLower(name), "_", "")
		charsetNames[low] = name
		if number, ok := strings.CutPrefix(low, "win"); ok {
			charsetNames["windows"+number] = name
		}
	}
}

// CharsetOf returns the encoding that a session has in force.
func CharsetOf(name string) *Charset {
	if e, ok := charsets[name]; ok {
		return &Charset{name, e}
	}
	return nil
}

// read makes UTF-8 of what a client sent.
func (s *Charset) read(text []byte) ([]byte, *pgerror.Failure) {
	if s == nil || ascii(text) {
		return text, nil
	}
	out, err := s.NewDecoder().Bytes(text)
	if err != nil || bytes.ContainsRune(out, utf8.RuneError) {
		return nil, pgerror.New("22021", fmt.Sprintf("invalid byte sequence for encoding %q", s.name))
	}
	return out, nil
}

// written makes the client's encoding of UTF-8. What is not in it is an error, as it is in PostgreSQL, but for the
// signs that dpproxy itself uses: an EXPLAIN is to be read everywhere.
func (s *Charset) written(text []byte) ([]byte, *pgerror.Failure) {
	if s == nil || ascii(text) {
		return text, nil
	}
	if out, err := s.NewEncoder().Bytes(text); err == nil {
		return out, nil
	}
	var out []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		one, err := s.NewEncoder().Bytes(text[:size])
		if plain, ok := signs[r]; err != nil && ok {
			one, err = []byte(plain), nil
		}
		if err != nil {
			return nil, pgerror.New("22P05", fmt.Sprintf(`character with byte sequence %s in encoding "UTF8" has no equivalent in encoding %q`, spelt(text[:size]), s.name))
		}
		out, text = append(out, one...), text[size:]
	}
	return out, nil
}

// signs are those that dpproxy uses beyond ASCII, for encodings that lack them.
var signs = map[rune]string{'ε': "epsilon", 'δ': "delta", 'ρ': "rho", 'σ': "sigma", '±': "+/-", '…': "...", '×': "x", '²': "^2", '√': "sqrt ",
	'≤': "<=", '≥': ">=", '–': "-", '’': "'", '→': "->", '∞': "infinity"}

// told is written for what a client is sent beside its rows: there is always something to send.
func (s *Charset) told(text string) string {
	if s == nil {
		return text
	}
	out, refusal := s.written([]byte(text))
	if refusal == nil {
		return string(out)
	}
	var some strings.Builder
	for _, r := range text {
		if one, refusal := s.written([]byte(string(r))); refusal == nil {
			some.Write(one)
		} else {
			some.WriteByte('?')
		}
	}
	return some.String()
}

func ascii(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return b >= utf8.RuneSelf })
}

// spelt writes bytes as PostgreSQL's messages do.
func spelt(text []byte) string {
	return strings.TrimSpace(fmt.Sprintf("% #x", text))
}

// Heard makes UTF-8 of a message's text. Parameters are read where their types are known.
func (s *Charset) Heard(msg pgproto3.FrontendMessage) *pgerror.Failure {
	if s == nil {
		return nil
	}
	var texts []*string
	switch m := msg.(type) {
	case *pgproto3.Query:
		texts = []*string{&m.String}
	case *pgproto3.Parse:
		texts = []*string{&m.Name, &m.Query}
	case *pgproto3.Bind:
		texts = []*string{&m.DestinationPortal, &m.PreparedStatement}
	case *pgproto3.Describe:
		texts = []*string{&m.Name}
	case *pgproto3.Execute:
		texts = []*string{&m.Portal}
	case *pgproto3.Close:
		texts = []*string{&m.Name}
	}
	for _, text := range texts {
		out, refusal := s.read([]byte(*text))
		if refusal != nil {
			return refusal
		}
		*text = string(out)
	}
	return nil
}

// Said writes a message's text. Rows are written where they are encoded.
func (s *Charset) Said(msg pgproto3.BackendMessage) pgproto3.BackendMessage {
	if s == nil {
		return msg
	}
	switch m := msg.(type) {
	case *pgproto3.ErrorResponse:
		m.Message, m.Detail, m.Hint = s.told(m.Message), s.told(m.Detail), s.told(m.Hint)
	case *pgproto3.NoticeResponse:
		m.Message, m.Detail, m.Hint = s.told(m.Message), s.told(m.Detail), s.told(m.Hint)
	case *pgproto3.ParameterStatus:
		m.Value = s.told(m.Value)
	case *pgproto3.RowDescription:
		for i := range m.Fields {
			m.Fields[i].Name = []byte(s.told(string(m.Fields[i].Name)))
		}
	}
	return msg
}

// rewritten writes what is in dst from some point on.
func (s *Charset) rewritten(dst []byte, from int) ([]byte, error) {
	if s == nil {
		return dst, nil
	}
	out, refusal := s.written(dst[from:])
	if refusal != nil {
		return dst[:from], refusal
	}
	return append(dst[:from], out...), nil
}

// textual reports whether the binary form of a type is text.
func textual(t policy.Type) bool {
	switch t {
	case policy.Text, policy.Varchar, policy.Unknown, oidName, policy.Bpchar, oidJSON, oidJSONB, oidXML, oidNodeTree:
		return true
	}
	return false
}

// CharsetName is PostgreSQL's name of an encoding, whatever a client calls it: UTF8 of "utf-8".
func CharsetName(value string) (string, bool) {
	name := strings.ToLower(strings.Trim(strings.TrimSpace(value), `'"`))
	known, ok := charsetNames[strings.NewReplacer("-", "", "_", "", " ", "").Replace(name)]
	return known, ok
}

// Package csv splits files of CSV for the embedded engine, each line by its own bytes alone.
package csv

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// A CSV file is split into lines and fields here, and not by the engine, whose reading of one line may depend on
// others: it guesses how lines end, and drops all lines after a quote that nobody closes without a word. Here a line is
// split by its own bytes alone. A line with more or fewer fields than the header is left out and named to the owner. A
// quote that is not closed, or closed in the middle of a field, leaves no line after it whose reading is sure: such a
// file is refused at the start, before anybody can ask.

// MaxField bounds what is kept of a field. A longer text is no value of any domain, however it ends.
const MaxField = 1 << 20

// Field is one of a line. A quoted one is a text even where it is empty.
type Field struct {
	text   []byte
	quoted bool
}

// Reader splits a file of CSV with commas, double quotes that are doubled within quotes, and lines that end with \n or
// \r\n.
type Reader struct {
	in     *bufio.Reader
	Line   int // of the record that was read last; the first is 1
	next   int
	fields []Field
	record []Field // a part of fields
}

// NewReader reads what a file holds.
func NewReader(in io.Reader) *Reader {
	r := &Reader{in: bufio.NewReaderSize(in, 1<<18), next: 1}
	if mark, _ := r.in.Peek(3); string(mark) == "\ufeff" {
		_, _ = r.in.Discard(3)
	}
	return r
}

// BadQuote names the line in which a field begins whose quotes are wrong.
type BadQuote struct {
	line int
}

func (e BadQuote) Error() string {
	return fmt.Sprintf("line %d has a quote that is not closed, or not at the end of its field: no line after it can be read for sure; "+
		"a quote within a quoted field must be written twice", e.line)
}

// Read returns the fields of the next line that is not empty, until io.EOF. They are good until the next call.
func (r *Reader) Read() ([]Field, error) {
	for {
		r.record = r.fields[:0]
		r.Line = r.next
		ended, err := r.split()
		if err != nil {
			return nil, err
		}
		r.fields = r.record
		blank := len(r.record) == 1 && len(r.record[0].text) == 0 && !r.record[0].quoted
		if !blank {
			return r.record, nil
		}
		if ended {
			return nil, io.EOF
		}
	}
}

// grow adds a field, in whose place an earlier line's may have memory.
func (r *Reader) grow() *Field {
	if len(r.record) < cap(r.record) {
		r.record = r.record[:len(r.record)+1]
		f := &r.record[len(r.record)-1]
		f.text, f.quoted = f.text[:0], false
		return f
	}
	r.record = append(r.record, Field{})
	return &r.record[len(r.record)-1]
}

// split reads one line. It reports whether the file has ended.
func (r *Reader) split() (ended bool, err error) {
	f := r.grow()
	begun := false // a byte of the field has been read
	for {
		b, err := r.in.ReadByte()
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil:
			return false, errors.New("cannot be read")
		case b == '"' && !begun:
			f.quoted = true
			last, err := r.quoted(f)
			if err != nil || last != ',' {
				return last == 0, err
			}
			f, begun = r.grow(), false
			continue
		case b == ',':
			f, begun = r.grow(), false
			continue
		case b == '\n':
			r.next++
			if n := len(f.text); n > 0 && f.text[n-1] == '\r' {
				f.text = f.text[:n-1]
			}
			return false, nil
		}
		begun = true
		f.keep(b)
	}
}

func (f *Field) keep(b byte) {
	if len(f.text) < MaxField {
		f.text = append(f.text, b)
	}
}

// quoted reads a field behind its first quote and returns the byte that ends it: a comma, the line's end, or 0 at the
// file's.
func (r *Reader) quoted(f *Field) (last byte, err error) {
	begins := r.next
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return 0, BadQuote{begins}
		}
		if b == '\n' {
			r.next++
		}
		if b != '"' {
			f.keep(b)
			continue
		}
		b, err = r.in.ReadByte()
		if b == '\r' && err == nil {
			if b, err = r.in.ReadByte(); err == nil && b != '\n' {
				return 0, BadQuote{begins}
			}
		}
		switch {
		case err != nil:
			return 0, nil
		case b == '"':
			f.keep(b)
		case b == ',':
			return ',', nil
		case b == '\n':
			r.next++
			return '\n', nil
		default:
			return 0, BadQuote{begins}
		}
	}
}

// Value is the text of a field, nil for none. A byte that belongs to no UTF-8 is written as U+FFFD and two digits, so
// that two texts stay two: it is a text outside of every domain that does not list it.
func (f Field) Value() any {
	if len(f.text) == 0 && !f.quoted {
		return nil
	}
	if utf8.Valid(f.text) {
		return string(f.text)
	}
	var b strings.Builder
	for rest := f.text; len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		if c == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "\ufffd%02X", rest[0])
		} else {
			b.Write(rest[:n])
		}
		rest = rest[n:]
	}
	return b.String()
}

// File is a file with its header read.
type File struct {
	*Reader
	file  *os.File
	Names []string // lower case
}

// Close closes the file.
func (c *File) Close() error { return c.file.Close() }

// Open opens a file and reads its header.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	c := &File{NewReader(file), file, nil}
	header, err := c.Read()
	if err != nil {
		file.Close()
		return nil, errors.New("has no header line of CSV")
	}
	seen := map[string]bool{}
	for _, f := range header {
		name := strings.ToLower(string(f.text))
		if name == "" || seen[name] {
			file.Close()
			return nil, errors.New("its header has an empty name, or one twice")
		}
		seen[name] = true
		c.Names = append(c.Names, name)
	}
	return c, nil
}

// Ragged are the lines of a file that do not have the header's number of fields.
type Ragged struct {
	first []int
	All   int // how many
}

// Add counts a line.
func (r *Ragged) Add(line int) {
	if r.All++; len(r.first) < 5 {
		r.first = append(r.first, line)
	}
}

// String names the lines: "lines 3, 17 and 2 more".
func (r Ragged) String() string {
	var b strings.Builder
	b.WriteString("line")
	if r.All > 1 {
		b.WriteString("s")
	}
	for i, n := range r.first {
		switch {
		case i == 0:
		case i == len(r.first)-1 && r.All == len(r.first):
			b.WriteString(" and")
		default:
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %d", n)
	}
	if more := r.All - len(r.first); more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

package parse

import (
	"strings"

	"github.com/dpproxy/dpproxy/planner/mysql"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Dialect is the SQL that a text is written in.
type Dialect uint8

// The dialects. The zero value is PostgreSQL's, as everywhere else.
const (
	PostgreSQL Dialect = iota
	MySQL
)

// Dialects are the names of the dialects in settings and flags.
var Dialects = []string{"postgres", "mysql"}

func (d Dialect) String() string { return Dialects[d] }

// ParseDialect reads the name of a dialect; PostgreSQL's is what any other text names.
func ParseDialect(name string) Dialect {
	if strings.EqualFold(name, Dialects[MySQL]) {
		return MySQL
	}
	return PostgreSQL
}

// Piece is one statement of a text, without its semicolon.
type Piece = mysql.Piece

// Split cuts a text into statements by the dialect's lexical structure, without parsing them. Pieces without a token
// are left out. What cannot be read is part of the last piece.
func Split(text string, d Dialect) []Piece {
	if d == MySQL {
		return mysql.Split(text)
	}
	var out []Piece
	lex, from := lexer{text: text}, -1
	for {
		t := lex.next()
		switch {
		case t.kind == tokenInvalid || t.kind == tokenEnd:
			if t.kind == tokenInvalid && from < 0 {
				from = t.from
			}
			if from >= 0 {
				out = append(out, Piece{Text: strings.TrimSpace(text[from:]), From: from})
			}
			return out
		case t.kind == tokenSemi:
			if from >= 0 {
				out = append(out, Piece{Text: strings.TrimSpace(text[from:t.from]), From: from})
			}
			from = -1
		case from < 0:
			from = t.from
		}
	}
}

// ParseAs splits and parses the text of one message in a dialect. Names in MySQL's are looked up in the dataset, which
// may be nil.
func ParseAs(text string, dialect Dialect, d *policy.Dataset) ([]Statement, *refuse.Refusal) {
	if dialect == MySQL {
		return parseMySQL(text, d)
	}
	return Parse(text)
}

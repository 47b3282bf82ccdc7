package parse

import (
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/internal/material"
)

func countTokens(text string) int {
	lex := lexer{text: text}
	for n := 0; ; n++ {
		if k := lex.next().kind; k == tokenEnd || k == tokenInvalid {
			return n
		}
	}
}

// TestLexerAgreesWithScanner: comments are tokens to the grammar's scanner and are taken out of its count.
func TestLexerAgreesWithScanner(t *testing.T) {
	texts := append(material.Statements(t), `SELECT E'a\'b' /* /* x */ */ , $q$ ' $q$ , U&"a""b", 1.5e-3, .5, 1..2, a->>'x', a<-1, a@-1, 0x1F, 1_000`,
		"SELECT 'a'\n 'b', 'a' -- c\n 'b\\', E'x' -- c\n '\\'y', $1, a::int, x[1:2]")
	for _, text := range texts {
		scanned, err := pg.Scan(text)
		if err != nil {
			continue
		}
		want := 0
		for _, tok := range scanned.Tokens {
			if tok.Token != pg.Token_SQL_COMMENT && tok.Token != pg.Token_C_COMMENT {
				want++
			}
		}
		if got := countTokens(text); got != want {
			t.Errorf("%d tokens, the scanner finds %d in %.200s", got, want, text)
		}
	}
}

func FuzzLexerAgreesWithScanner(f *testing.F) {
	for _, s := range []string{`SELECT E'a\'b'`, `/* /* */ */ 1`, `$a$ $b$ $a$`, `a-- x`, `U&'x' 1.e3`, "'a'\n'b'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkLimits(text) != nil {
			return
		}
		scanned, err := pg.Scan(text)
		if err != nil {
			return
		}
		want := 0
		for _, tok := range scanned.Tokens {
			if tok.Token != pg.Token_SQL_COMMENT && tok.Token != pg.Token_C_COMMENT {
				want++
			}
		}
		if got := countTokens(text); got != want {
			t.Errorf("%d tokens, the scanner finds %d in %q", got, want, text)
		}
	})
}

func TestLimitsAdmitRecordedStatements(t *testing.T) {
	for _, text := range material.Statements(t) {
		if r := checkLimits(text); r != nil {
			t.Errorf("%s (%s): %.300s", r.Message, r.ID, text)
		}
	}
}

func TestLimitsRefuse(t *testing.T) {
	many := func(n int, s string) string { return strings.Repeat(s, n) }
	for id, texts := range map[string][]string{
		"statement-too-long":      {"SELECT '" + many(MaxBytes, "x") + "'"},
		"too-many-tokens":         {"SELECT 1" + many(MaxTokens, ",1")},
		"chain-too-long":          {"SELECT 1" + many(300, "+1"), "SELECT 1" + many(300, "::int"), "SELECT " + many(300, "NOT ") + "true", "SELECT " + many(300, "- ") + "1", "SELECT 1" + many(300, " IS NULL"), "SELECT 1 FROM t" + many(300, " JOIN t ON a"), "SELECT 'x'" + many(300, ` COLLATE "C"`)},
		"nesting-too-deep":        {"SELECT " + many(300, "(") + "1" + many(300, ")"), "SELECT " + many(300, "CASE WHEN true THEN ") + "1" + many(300, " END"), "SELECT a" + many(300, "[a") + many(300, "]")},
		"too-many-set-operations": {"SELECT 1" + many(36, " UNION SELECT 1")},
		"list-too-long":           {"SELECT 1 IN (1" + many(1000, ",1") + ")"},
		"name-too-long":           {"SELECT " + many(64, "x"), `SELECT "` + many(64, "x") + `"`},
		"invalid-text":            {"SELECT '\x00'", "SELECT '\xff'"},
	} {
		for _, text := range texts {
			for _, big := range []string{text, text + many(100, " "), text + "; SELECT 1"} {
				r := checkLimits(big)
				if r == nil || r.ID != id {
					t.Errorf("%.40s…: got %v, want %s", text, r, id)
				}
			}
		}
	}
}

// TestDeepestAdmitted: the limits admit the self-test's text, and nothing deeper of its shape.
func TestDeepestAdmitted(t *testing.T) {
	text := DeepestAdmitted()
	if r := checkLimits(text); r != nil {
		t.Fatalf("refused: %v", r)
	}
	if r := checkLimits(text + strings.Repeat(" + 1", maxChain)); r == nil {
		t.Error("a deeper text is admitted")
	}
	if _, err := pg.Parse(text); err != nil {
		t.Fatal(err)
	}
}

// TestLargeParameterNumbers: a parameter that no client can bind is refused before anything is made for each number
// below it.
func TestLargeParameterNumbers(t *testing.T) {
	for text, refused := range map[string]bool{
		"SELECT $65535": false, "SELECT $65536": true, "SELECT $1000000000": true, "SELECT $99999999999999999999": true, "SELECT '$65536'": false,
	} {
		if _, r := Parse(text); (r != nil) != refused || refused && r.SQLState != "42P02" {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

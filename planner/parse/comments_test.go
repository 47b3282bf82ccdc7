package parse

import (
	"strings"
	"testing"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// TestCommentsAreBlanked: every byte stays in its place, what looks like a comment inside a string or a name stays, and
// what is left is read as the grammar reads the text with its comments.
func TestCommentsAreBlanked(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1":                                    "SELECT 1",
		"SELECT/**/1":                                 "SELECT    1",
		"SELECT 1 -- one\n, 2":                        "SELECT 1       \n, 2",
		"/* a /* b */ -- c\n */ SELECT 1":             strings.Repeat(" ", 22) + "SELECT 1",
		"SELECT '/* x */', '-- y' -- z":               "SELECT '/* x */', '-- y'     ",
		`SELECT E'\'/*', "/*", U&"--", $a$/*$a$/*1*/`: `SELECT E'\'/*', "/*", U&"--", $a$/*$a$     `,
		"SELECT 2*/* two */3, 4-- four":               "SELECT 2*         3, 4       ",
		"SELECT 'a' -- b\n 'c'":                       "SELECT 'a' -- b\n 'c'",
		"SELECT 'a' \n/* b */\n 'c'":                  "SELECT 'a'           'c'",
		"SELECT 1 /* é */ + 1":                        "SELECT 1          + 1",
	} {
		got, refused := withoutComments(text)
		if refused != nil || got != want || len(got) != len(text) {
			t.Errorf("%q: %q, want %q (%v)", text, got, want, refused)
		}
		_, asIs := pg.Parse(text)
		if _, err := pg.Parse(got); (err == nil) != (asIs == nil) {
			t.Errorf("%q: without comments %v, with them %v", text, err, asIs)
		}
	}
}

// TestPlacesBesideComments: positions count characters of the text as it was written.
func TestPlacesBesideComments(t *testing.T) {
	for text, want := range map[string]struct {
		message string
		at      int
	}{
		"SELECT /* é */ 1 1":        {`syntax error at or near "1"`, 18},
		"SELECT 'é', /* ü /* */ 1":  {`unterminated /* comment at or near "/* ü /* */ 1"`, 13},
		"SELECT 1 -- é\n FROM FROM": {`syntax error at or near "FROM"`, 21},
		"SELECT (1 /* é */":         {"syntax error at end of input", 18},
		"SELECT 1 /*":               {`unterminated /* comment at or near "/*"`, 10},
		"SELECT 'a":                 {`unterminated quoted string at or near "'a"`, 8},
		"SELECT '/*' 'a'":           {`syntax error at or near "'a'"`, 13},
	} {
		_, r := Parse(text)
		if r == nil || r.Message != want.message || r.Position != want.at || r.SQLState != "42601" {
			t.Errorf("%q: %+v, want %q at %d", text, r, want.message, want.at)
		}
		if _, refused := admitted(text); (refused != nil) != strings.HasPrefix(want.message, "unterminated /*") {
			t.Errorf("%q: refused before the grammar: %+v", text, refused)
		}
	}
}

// TestCommentsStayInTheText: what an analyst wrote is what her statement says it is.
func TestCommentsStayInTheText(t *testing.T) {
	const text = "SELECT 1 /* Superset: chart 7 */ ; -- next\nSELECT 2 /* b */"
	statements, refused := Parse(text)
	if refused != nil || len(statements) != 2 {
		t.Fatalf("%v, %v", statements, refused)
	}
	for i, want := range []string{"SELECT 1 /* Superset: chart 7 */", "-- next\nSELECT 2 /* b */"} {
		if statements[i].Text != want {
			t.Errorf("statement %d is %q, want %q", i, statements[i].Text, want)
		}
	}
}

func FuzzWithoutComments(f *testing.F) {
	for _, s := range []string{"SELECT/**/1", "SELECT 'a'/*\n*/\n'b'", "SELECT 1--\n2", "SELECT $a$/*$a$ /* /* */ */", `SELECT E'\'--' + -- x`, "SELECT +/*-*/-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		blank, refused := admitted(text)
		if refused != nil {
			return
		}
		as, err := pg.Parse(text)
		own, ownErr := pg.Parse(blank)
		if (err == nil) != (ownErr == nil) {
			t.Fatalf("%q: %v, blanked %q: %v", text, err, blank, ownErr)
		}
		if err == nil && (len(as.Stmts) != len(own.Stmts) || len(as.Stmts) > 0 && !sameTrees(as, own)) {
			t.Fatalf("%q and %q are read differently", text, blank)
		}
	})
}

// TestLexersAreLinear: the lexers of both dialects look at each byte a bounded number of times, whatever kind of token
// it is in. A text four times as long takes about four times as long, and not sixteen; what is measured is the
// fastest of some tries, far from what a squared time would be, and a shape is looked at five times before it is found.
func TestLexersAreLinear(t *testing.T) {
	passes := map[string]func(text string){
		"limits":      func(text string) { _ = checkLimits(text) },
		"comments":    func(text string) { _, _ = withoutComments(text) },
		"split":       func(text string) { Split(text, PostgreSQL) },
		"split MySQL": func(text string) { Split(text, MySQL) },
	}
	fastest := func(pass func(string), text string) time.Duration {
		least := time.Hour
		for range 5 {
			begun := time.Now()
			pass(text)
			least = min(least, time.Since(begun))
		}
		return least
	}
	for name, shape := range longTexts {
		short, long := "SELECT "+shape(8<<10), "SELECT "+shape(60<<10)
		for pass, run := range passes {
			var ratio float64
			for range 5 {
				// 30 µs are what a text costs whatever its length; 7.5 times the length, 56 times if it were
				// squared.
				ratio = float64(fastest(run, long)) / float64(fastest(run, short)+30*time.Microsecond)
				if ratio < 40 {
					break
				}
			}
			if ratio >= 40 {
				t.Errorf("%s of %s: %.0f times the time for 7.5 times the text", pass, name, ratio)
			}
		}
	}
}

// texts of one kind of token each, of n bytes or somewhat fewer, that a scanner may look at again and again.
var longTexts = map[string]func(n int) string{
	"open comments":     repeated("/*"),
	"comments":          repeated("/**/"),
	"closed comments":   repeated("*/"),
	"nested comments":   func(n int) string { return strings.Repeat("/*", n/4) + strings.Repeat("*/", n/4) },
	"line comments":     repeated("--\n"),
	"plus":              repeated("+"),
	"plus and minus":    repeated("+-"),
	"plus to the end":   func(n int) string { return strings.Repeat("+", n-1) + "@" },
	"at":                repeated("@"),
	"less":              repeated("<"),
	"quotes":            repeated("'"),
	"names":             repeated(`"`),
	"strings":           repeated("''\n"),
	"commented strings": repeated("'' --x\n, "),
	"spaces":            repeated(" "),
	"dollars":           repeated("$"),
	"tags":              repeated("$a"),
	"open tag":          func(n int) string { return "$a$" + strings.Repeat("$b", n/2) },
	"empty tags":        repeated("$$,"),
	"long tag":          func(n int) string { return "$" + strings.Repeat("a", n) },
	"backslashes":       func(n int) string { return "E'" + strings.Repeat(`\`, n) },
	"code points":       func(n int) string { return "U&'" + strings.Repeat(`\0041`, n/5) + "'" },
	"semicolons":        repeated(";"),
	"parentheses":       repeated("("),
	"digits":            repeated("9"),
	"hex digits":        func(n int) string { return "0x" + strings.Repeat("f", n) },
	"dots":              repeated("1.."),
	"parameters":        repeated("$1,"),
	"letters":           repeated("é"),
	"bits":              repeated("X''\n"),
	"back quotes":       repeated("`"),
	"hashes":            repeated("#\n"),
	"marked comments":   repeated("/*!*/"),
}

func repeated(s string) func(n int) string {
	return func(n int) string { return strings.Repeat(s, n/len(s)) }
}

package kit

import (
	"bytes"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// left is in the statement that begins a transaction: the milliseconds that the deadline of two minutes leaves, which
// depend on when the query had its turn.
var left = regexp.MustCompile(`'statement_timeout', '(11[0-9]{4}|120000)'`)

// braced is a list of names in a statement's arguments.
var braced = regexp.MustCompile(`\{[^}]*\}`)

// Statements are the lines of a server's log, but for the pool's pings, which depend on the clock; lists are sorted,
// because the look at the schema before a charge asks for its columns in any order.
func Statements(t *testing.T, s *pgtest.Server) []string {
	t.Helper()
	lines, _ := StatementsSince(t, s, 0)
	return lines
}

// StatementsSince are those from a place of the log on, and the place where it ends now.
func StatementsSince(t *testing.T, s *pgtest.Server, at int) (lines []string, end int) {
	t.Helper()
	log, err := os.Open(s.Log())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(io.NewSectionReader(log, int64(at), math.MaxInt64-int64(at)))
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if whole == 0 {
		return nil, at
	}
	text, end = text[:whole], at+whole
	lines = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i := range lines {
		lines[i] = braced.ReplaceAllStringFunc(lines[i], func(list string) string {
			names := strings.Split(strings.Trim(list, "{}"), ",")
			slices.Sort(names)
			return strings.Join(names, ",")
		})
		lines[i] = left.ReplaceAllString(lines[i], "what is left of two minutes")
	}
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, "statement: -- ping") }), end
}

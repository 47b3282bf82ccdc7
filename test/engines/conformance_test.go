package engines

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// having is what neighbours are not asked with: which groups are shown is then for the noised counts to say.
var having = regexp.MustCompile(` HAVING \S+ > 0`)

// counted names the table of a bare count, of which neighbours differ by the table's bound.
var counted = regexp.MustCompile(`^SELECT count\(\*\) FROM (\w+)$`)

// money are statements of sums in cents, which take more ε than others until no cent of noise is left.
var money = regexp.MustCompile(`(sum|avg|stddev)\(.*(income|price)`)

// TestConformance asks each engine that is installed all shapes of leaves, and holds the matrix of docs/engines.md
// against what came of them.
func TestConformance(t *testing.T) {
	plain := truth(t, shop(false))
	want := map[string][][]string{}
	for _, s := range shapes {
		for _, statement := range s.statements {
			want[statement] = plain(statement)
		}
	}
	m := newMatrix(t)
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			with, without := lay(t, e, shop(true)), lay(t, e, shop(false))
			found := m.column(e.name)
			with.settle(t, found)
			without.settle(t, nil)
			if a, b := strings.Join(with.refused, "; "), strings.Join(without.refused, "; "); a != b {
				t.Fatalf("one person's rows change what is refused: %s; without them %s", a, b)
			}
			with.serve(t)
			without.serve(t)
			for _, b := range []struct{ row, of string }{{"one row a unit", "SELECT sex, count(*) FROM people GROUP BY sex"}, {"several rows a unit", "SELECT ward, count(*) FROM visits GROUP BY ward"}} {
				found[b.row] += without.how(t, found[b.row], b.of)
			}
			for _, s := range shapes {
				askAll(t, s, with, without, want, found)
			}
			if a, b := fmt.Sprint(with.w.Charges(), with.w.Spent()), fmt.Sprint(without.w.Charges(), without.w.Spent()); a != b {
				t.Errorf("charged %s, without one person's rows %s", a, b)
			}
			for _, side := range []*side{with, without} {
				if said := side.program.LogText(); strings.Contains(said, canary) || strings.Contains(said, "privacy rule 5") {
					t.Errorf("the log:\n%s", said)
				}
			}
		})
	}
	m.hold(t)
}

// side is one dpproxy over an engine.
type side struct {
	path, backend string
	allowed       []part
	refused       []string // parts that the engine does not take
	bounds        map[string]int
	program       *kit.Program
	w             *kit.Wire
}

func lay(t *testing.T, e engine, tables []*table) *side {
	t.Helper()
	dir := t.TempDir()
	return &side{path: filepath.Join(dir, "policy.yaml"), backend: e.lay(t, dir, tables), bounds: map[string]int{"people": 1, "visits": 3}}
}

// write writes the policy with some parts.
func (s *side) write(t *testing.T, with ...part) {
	t.Helper()
	columns, tables := "", ""
	for _, p := range with {
		columns, tables = columns+p.columns, tables+p.tables
	}
	if err := os.WriteFile(s.path, fmt.Appendf(nil, policyText+"%s", s.backend, kit.Verifier(t, "alice"), columns, tables), 0o600); err != nil {
		t.Fatal(err)
	}
}

// settle finds the parts of the policy that check accepts over this engine, and what it says of how bounds hold.
func (s *side) settle(t *testing.T, found map[string]string) {
	t.Helper()
	s.write(t)
	c := kit.Run(t, "", "check", "--policy", s.path)
	if c.Code != 0 {
		t.Fatalf("check: %d\n%s%s", c.Code, c.Stdout, c.Stderr)
	}
	if found != nil {
		found["one row a unit"], found["several rows a unit"] = proofOf(t, c.Stdout, "people"), proofOf(t, c.Stdout, "visits")
	}
	for _, p := range parts {
		s.write(t, p)
		c := kit.Run(t, "", "check", "--policy", s.path)
		why := fatalOf(c)
		if why == "" {
			s.allowed = append(s.allowed, p)
			maps.Copy(s.bounds, p.bounds)
		} else {
			s.refused = append(s.refused, p.name)
		}
		if found != nil && why != "" {
			found[p.name] = "refused: " + why
		}
	}
	s.write(t, s.allowed...)
}

// proofOf is what check says of the bound of a table's rows.
func proofOf(t *testing.T, checked, table string) string {
	t.Helper()
	for line := range strings.Lines(checked) {
		if _, said, ok := strings.Cut(line, "table "+table+": "); ok {
			switch {
			case strings.HasPrefix(said, "a unique constraint on "):
				return "proved by a constraint"
			case strings.HasPrefix(said, "no constraint proves") || strings.HasPrefix(said, "Spark enforces no constraint"):
				return "enforced"
			}
		}
	}
	t.Fatalf("check says nothing of how the rows of %s are bounded:\n%s", table, checked)
	return ""
}

// fatalOf is why check refuses a policy, without the names of this run; empty means it does not.
func fatalOf(c kit.Ran) string {
	if c.Code == 0 {
		return ""
	}
	for line := range strings.Lines(c.Stdout + c.Stderr) {
		for _, before := range []string{"error: dataset shop: ", "dataset shop, "} { // what the database is found to be, and what the policy may not say
			if _, said, ok := strings.Cut(line, before); ok {
				said, _, _ = strings.Cut(strings.TrimSpace(said), "; ")
				return said
			}
		}
	}
	return strings.TrimSpace(c.Stdout + c.Stderr)
}

func (s *side) serve(t *testing.T) {
	t.Helper()
	s.program = kit.Serve(t, s.path)
	s.w = s.program.Connect("alice", "shop")
}

// how is what a bound takes of the engine, by the query that EXPLAIN shows.
func (s *side) how(t *testing.T, proof, statement string) string {
	t.Helper()
	a := s.w.Ask("EXPLAIN VERBOSE " + statement)
	text := strings.Join(slices.Concat(a.Rows...), "\n")
	switch {
	case a.Err != nil:
		t.Fatal(a.Err)
	case strings.HasPrefix(proof, "proved"):
		return ": rows are read as they are"
	case strings.Contains(text, "row_number"):
		return ": each query numbers the rows"
	case strings.Contains(text, "t.r <= "):
		return ": by the ranks of the copy"
	}
	t.Fatalf("how a bound is kept is not in\n%s", text)
	return ""
}

// askAll asks both sides a shape's statements: without the one person's rows each must answer what plain PostgreSQL
// does, and with them nothing that is not noised may differ.
func askAll(t *testing.T, s shape, with, without *side, want map[string][][]string, found map[string]string) {
	name := s.name
	if name == "" {
		name = s.of
	}
	if slices.Contains(without.refused, s.of) { // which settle has reported
		return
	}
	answered, refused := 0, ""
	for _, statement := range s.statements {
		epsilon := "SET dp.epsilon = 10000"
		if money.MatchString(statement) {
			epsilon = "SET dp.epsilon = 40000"
		}
		for _, side := range []*side{with, without} {
			if a := side.w.Ask(epsilon); a.Err != nil {
				t.Fatal(a.Err)
			}
		}
		got := without.w.Ask(statement)
		switch {
		case got.Err != nil && strings.HasPrefix(got.Err.Code, "DP"):
			refused = strings.TrimSuffix(got.Err.Message, ".")
		case got.Err != nil:
			t.Errorf("%s: %v", statement, got.Err)
		case !alike(got.Rows, want[statement]):
			t.Errorf("%s:\ngot  %v\nwant %v", statement, got.Rows, want[statement])
		default:
			answered++
		}
		if s.of == parts[1].name { // whether a key is found is for the noise to say
			with.w.Ask(statement)
			continue
		}
		other := with.w.Ask(statement)
		statement = having.ReplaceAllString(statement, "")
		a, b := without.w.Ask(statement), with.w.Ask(statement)
		if difference := kit.SameFrames(statement, b, a); difference != "" {
			t.Error(difference)
		}
		if said := fmt.Sprint(other, b); strings.Contains(said, canary) {
			t.Errorf("%s: what is told holds a row's text: %s", statement, said)
		}
		if (got.Err == nil) != (other.Err == nil) {
			t.Errorf("%s: %v; without one person's rows %v", statement, other.Err, got.Err)
		}
		if table := counted.FindStringSubmatch(statement); table != nil && a.Err == nil && b.Err == nil {
			if apart := kit.Count(t, b) - kit.Count(t, a); apart != with.bounds[table[1]] {
				t.Errorf("%s: one person's rows move it by %d, must be %d", statement, apart, with.bounds[table[1]])
			}
		}
	}
	switch {
	case answered == len(s.statements):
		found[name] = "yes"
	case answered == 0:
		found[name] = "refused: " + refused
	default:
		found[name] = fmt.Sprintf("%d of %d: %s", answered, len(s.statements), refused)
	}
}

// alike reports whether rows are equal, each value by its text: what a statement is charged for is so much that no
// noise is left.
func alike(got, want [][]string) bool { return slices.EqualFunc(got, want, slices.Equal[[]string]) }

package answers

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

const (
	tourBegin  = "<!-- tour: written by `make docs` -->"
	tourEnd    = "<!-- end of tour -->"
	tourPrompt = "demo=> "
	shellMark  = "$ "
)

// TestTour runs the statements of the tour, and of README's first minute, through the real psql against a demo, and
// fails if one of them is no longer answered as it is there: with rows, or with the same SQLSTATE-bearing refusal. With
// -update it writes what is answered.
func TestTour(t *testing.T) {
	kit.Beside(t)
	rows := "20000"
	if *kit.Update {
		rows = "1000000"
	}
	for _, path := range []string{"../../README.md", "../../docs/tour.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(text), tourBegin)
		tour, after, ok2 := strings.Cut(rest, tourEnd)
		if !ok || !ok2 {
			t.Fatalf("%s has no tour", path)
		}
		p := kit.Demo(t, t.TempDir(), rows)
		session := kit.StartPsql(t, p.Address, "analyst", "demo")
		written := answeredAnew(tour, session.Run, func(statement, wanted, out string) {
			if strings.Contains(out, "ERROR:") != strings.Contains(wanted, "ERROR:") && !*kit.Update {
				t.Errorf("%s\nnow prints:\n%s", statement, out)
			}
		})
		if *kit.Update {
			if err := os.WriteFile(path, []byte(before+tourBegin+strings.TrimRight(written, "\n")+"\n"+tourEnd+after), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// answeredAnew answers the prompts of a text's fenced parts anew, and compares each answer with the one that is there.
func answeredAnew(text string, answer func(statement string) string, compare func(statement, wanted, out string)) string {
	var written strings.Builder
	fenced := false
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		prompt := ""
		for _, p := range []string{tourPrompt, shellMark} {
			if fenced && strings.HasPrefix(line, p) {
				prompt = p
			}
		}
		if prompt == "" {
			fence := strings.HasPrefix(line, "```")
			if fenced = fenced != fence; fence || !fenced {
				written.WriteString(line)
			}
			continue
		}
		statement := strings.TrimSpace(line)
		if prompt == tourPrompt {
			statement = strings.TrimSpace(strings.TrimPrefix(line, prompt))
		}
		out := answer(statement)
		compare(statement, shown(lines[i+1:]), out)
		written.WriteString(line + out)
	}
	return written.String()
}

// shown returns what is under a prompt.
func shown(lines []string) string {
	for i, line := range lines {
		if strings.HasPrefix(line, tourPrompt) || strings.HasPrefix(line, shellMark) || strings.HasPrefix(line, "```") {
			return strings.Join(lines[:i], "")
		}
	}
	return strings.Join(lines, "")
}

// smallDemo serves a demo of few rows under the policy of a million, so that plans, costs and expected errors, which
// are functions of the policy, are those of a million. With -update it has the million.
func smallDemo(t *testing.T) *kit.Program {
	t.Helper()
	dir, rows := t.TempDir(), "20000"
	if *kit.Update {
		rows = "1000000"
	}
	kit.Demo(t, dir, rows).Stop(syscall.SIGTERM)
	path := filepath.Join(dir, "policy.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	million := strings.NewReplacer("expected_rows: 20000\n", "expected_rows: 1000000\n", "expected_rows: 40000\n", "expected_rows: 2000000\n").Replace(string(text))
	if err := os.WriteFile(path, []byte(million), 0o600); err != nil {
		t.Fatal(err)
	}
	return kit.Serve(t, path)
}

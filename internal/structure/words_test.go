package structure

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	updateWords = flag.Bool("update-words", false, "write testdata/words.txt: how many phrases of the dialect, and lines that are too long, each directory has")
	showWords   = flag.String("words", "", "print each phrase of the dialect below this directory, with its place and what to write instead; all: everywhere")
)

const wordsFile = "testdata/words.txt"

// TestWords: in no directory are there more phrases of the dialect, or more lines above 120 columns, than
// testdata/words.txt has. The numbers fall: `go test ./internal/structure -run TestWords -update-words` writes smaller
// ones.
func TestWords(t *testing.T) {
	var phrases []string
	now, err := Words("../..", func(file string, line int, phrase, instead string) {
		if *showWords == "all" || *showWords != "" && strings.HasPrefix(file, strings.TrimSuffix(*showWords, "/")+"/") {
			phrases = append(phrases, fmt.Sprintf("%s:%d: %q: write %q", file, line, phrase, instead))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if *showWords != "" {
		t.Log(strings.Join(phrases, "\n"))
	}
	if *updateWords {
		var text strings.Builder
		for _, dir := range slices.Sorted(maps.Keys(now)) {
			if w := now[dir]; w != (Worded{}) {
				fmt.Fprintf(&text, "%s %d %d\n", dir, w.Phrases, w.Long)
			}
		}
		if err := os.WriteFile(wordsFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(wordsFile)
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]Worded{}
	for line := range strings.Lines(string(text)) {
		var dir string
		var w Worded
		if _, err := fmt.Sscan(line, &dir, &w.Phrases, &w.Long); err != nil {
			t.Fatalf("%s: %q: %v", wordsFile, line, err)
		}
		may[dir] = w
	}
	for dir, w := range now {
		if most := may[dir]; w.Phrases > most.Phrases || w.Long > most.Long {
			t.Errorf("%s has %d phrases of the dialect and %d lines above %d columns, may have %d and %d: `go test ./internal/structure -run TestWords -words %s` shows the phrases",
				dir, w.Phrases, w.Long, MaxColumns, most.Phrases, most.Long, dir)
		}
	}
}

func TestDialectIsFound(t *testing.T) {
	for line, want := range map[string]int{
		"isOpen tells whether it is open": 1, "isOpen reports whether it is open": 0, "it returns the column; nil: there is none": 1,
		"it returns the column, or nil if there is none": 0, "this hangs on the policy": 1, "what a plan's cost brings": 0, "what the plan brings": 1, "she is told": 1,
		"DP003, nothing charged: see rule 5": 0,
	} {
		found := 0
		for _, d := range dialect {
			found += len(d.words.FindAllString(line, -1))
		}
		if found != want {
			t.Errorf("%q has %d phrases of the dialect, want %d", line, found, want)
		}
	}
	prose, long := source([]byte("package p\n\n// told\nvar x = \"told\" /* told */ // told\n\nvar y = `" + strings.Repeat("x", 120) + "`\n"))
	if got := strings.Count(strings.Join(prose, "\n"), "told"); got != 3 || long != 1 {
		t.Errorf("%d comments have the word, want 3; %d lines are too long, want 1", got, long)
	}
	prose, long = document("told\n```\ntold\n```\n| told |" + strings.Repeat("x", 120) + "\n")
	if got := strings.Count(strings.Join(prose, "\n"), "told"); got != 1 || long != 0 {
		t.Errorf("%d lines of prose have the word, want 1; %d are too long, want 0", got, long)
	}
}

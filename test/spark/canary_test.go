package spark

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// refused are statements that fail in one place or another.
var refused = []string{
	"SELECT note FROM people", "SELECT * FROM people LIMIT 3", "SELECT CAST(note AS integer), count(*) FROM people GROUP BY 1", "SELECT count(*) FROM people WHERE city::integer > 3",
	"SELECT min(note) FROM people", "SELECT city, count(*) FROM people WHERE 1 / (age - age) > 0 GROUP BY city", "SELECT count(*) FROM nowhere", "SELECT nothing FROM people", "SELECT count(*) FROM people WHERE note ~ 'Z.*'",
}

// TestSparkSaysNothingOfRows: a canary in every row and in the files' path is in no answer, notice, error, plan, price,
// log line, metric or row of the ledger, also where a paid query fails by an error of Spark's that names the file.
func TestSparkSaysNothingOfRows(t *testing.T) {
	whole(t)
	s := shop(t, sparktest.Shared(t))
	p := kit.Serve(t, s.onSpark, "--log-level", "debug")
	w := p.Connect("alice", "shop")
	var heard strings.Builder
	ask := func(statement string) kit.Answer {
		a := w.Ask(statement)
		fmt.Fprintln(&heard, a.Frames, a.Rows, a.Notes)
		if a.Err != nil {
			fmt.Fprintf(&heard, "%+v\n", *a.Err)
		}
		return a
	}
	for i, q := range questions {
		if !strings.Contains(q, "note") { // whose pattern is her own
			ask("EXPLAIN VERBOSE " + q)
			ask("EXPLAIN (ALTERNATIVES, FORMAT JSON) " + q)
		}
		if i%3 == 0 && !strings.Contains(q, "note") {
			ask(q)
		}
	}
	for _, q := range refused {
		if a := ask(q); a.Err == nil {
			t.Errorf("%s: %v", q, a.Rows)
		}
	}
	before := w.Charges()
	if err := os.WriteFile(s.file("visits"), []byte(strings.Repeat(canary, 1000)), 0o600); err != nil { // a plan reads the catalog, and not the file
		t.Fatal(err)
	}
	broken := "SELECT ward, count(*) FROM visits WHERE minutes > 7 GROUP BY ward ORDER BY ward"
	if a := ask(broken); a.Err != nil || len(a.Rows) < 3 || a.Rows[0][1] != "0" {
		t.Errorf("over a broken file: %v %v", a.Rows, a.Err)
	}
	if err := os.Remove(s.file("visits")); err != nil {
		t.Fatal(err)
	}
	if a := ask(broken); a.Err != nil {
		t.Errorf("what she holds: %v", a.Err)
	}
	a := ask("SELECT ward, sum(minutes) FROM visits WHERE minutes > 9 GROUP BY ward ORDER BY ward")
	if a.Err == nil || !strings.Contains(a.Err.Error(), "nothing was charged") {
		t.Errorf("over a file that is gone: %v %v", a.Rows, a.Err)
	}
	if after := w.Charges(); after != before+1 {
		t.Errorf("%d charges, %d before, want one more", after, before)
	}
	for _, name := range []string{"dp.charges", "dp.releases", "dp.tables", "dp.columns", "dp.budget", "pg_catalog.pg_stats", "information_schema.columns"} {
		ask("SELECT * FROM " + name)
	}
	said := map[string]string{"a frame": heard.String(), "the log": p.LogText(), "the metrics": page(t, s.admin, "/metrics"), "the state": page(t, s.admin, "/healthz")}
	if !strings.Contains(said["the log"], "privacy rule 5") || !strings.Contains(said["the metrics"], "dpproxy_") {
		t.Errorf("the log has no fault, or there are no metrics:\n%s", said["the log"])
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.onSpark), "ledger.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no ledger")
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		said[filepath.Base(path)] = string(text)
	}
	c := kit.Run(t, "", "check", "--policy", s.onSpark)
	said["check"] = c.Stdout + c.Stderr
	for where, text := range said {
		if at := strings.Index(text, canary); at >= 0 {
			t.Errorf("%s has a canary: …%s…", where, text[max(0, at-200):min(len(text), at+200)])
		}
	}
}

// page reads one of the operator's pages.
func page(t *testing.T, address, path string) string {
	t.Helper()
	response, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

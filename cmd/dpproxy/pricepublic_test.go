package main

import (
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestPriceSaysWhatItDidNotRead: a price that depends on the rows of a public table is not put off to later.
func TestPriceSaysWhatItDidNotRead(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "1", Cap: "2"}, 0)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "    tables:\n", "    tables:\n      - {name: places, source: main.places, public: true, columns: [{name: place, type: text}, {name: country, type: text}]}\n", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := priced(t, 3, "--policy", path, "--user", "alice", writeScript(t, "SELECT country, count(*) FROM people JOIN places ON place = city GROUP BY 1"))
	f := r.Statements[0].Refusal
	if f == nil || f.ID != "public-table-not-copied" || !strings.Contains(f.Reason, "were not read") || strings.Contains(f.Hint, "later") {
		t.Errorf("%+v", f)
	}
}

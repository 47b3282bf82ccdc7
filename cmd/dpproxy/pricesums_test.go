package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestBatchTellsErrorsOfSumsInTheirOwnUnit: the error of a sum over a column in steps of 0.01 is shown in what the
// column holds, as one by one.
func TestBatchTellsErrorsOfSumsInTheirOwnUnit(t *testing.T) {
	kit.Beside(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("policy.yaml", `version: 1
backend: {url: "duckdb:", files: {people: people.csv}}
users: [{name: alice, password: "`+kit.Verifier(t, "alice")+`"}]
datasets:
  - id: d
    unit: {name: person, key: people.id}
    accountant: pure
    cap: {epsilon: 10, delta: 0}
    budgets: {"*": {epsilon: 10, delta: 0}}
    defaults: {epsilon: 1}
    tables:
      - name: people
        expected_rows: 1000
        max_rows_per_unit: 1
        columns: [{name: fee, type: "numeric(8,2)", domain: {min: 0, max: 100, step: 0.01}}]
`)
	out := kit.Run(t, "", "price", "--policy", path, "--user", "alice", "--fresh", write("report.sql", "SELECT sum(fee) FROM people;"))
	if out.Code != 0 || !strings.Contains(out.Stdout, "error ±299.6 a value") || !strings.Contains(out.Stdout, "RMSE 141.4 over 1 value, at most ±300;") {
		t.Errorf("exit %d: %s%s", out.Code, out.Stderr, out.Stdout)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestCodes: columns of codes with gaps are checked, served and read anew: GROUP BY has a row for each key of the
// public table that the policy's condition and the statement's leave; a key that is added is there once the policy is read
// again; a notice says that other codes count as NULL; a condition that is no SQL is a problem of its line.
func TestCodes(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, `CREATE TABLE concept (concept_id bigint PRIMARY KEY, domain_id text, name text)`,
		`INSERT INTO concept VALUES (8507, 'Gender', 'male'), (8532, 'Gender', 'female'),
			(9201, 'Visit', 'in'), (2000000009, 'Visit', 'out'), (0, NULL, 'none')`,
		`CREATE TABLE person (person_id int PRIMARY KEY, gender int, visit bigint)`,
		`INSERT INTO person SELECT i, CASE WHEN i % 3 = 0 THEN 8507 WHEN i % 3 = 1 THEN 8532 ELSE 8551 END,
			CASE WHEN i % 2 = 0 THEN 9201 END FROM generate_series(1, 1500) AS i`,
		`GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	path := codesPolicy(t, server.URLFor(role, database), `      - name: person
        expected_rows: 3000
        max_rows_per_unit: 1
        columns:
          - {name: gender, type: integer, domain: {keys_of: concept.concept_id, where: "domain_id = 'Gender'"}}
          - {name: visit, type: bigint, domain: {keys_of: concept.concept_id, where: "domain_id LIKE 'Vi%'"}, nulls: exclude, outside: exclude}
      - name: concept
        public: true
        columns: [{name: concept_id, type: bigint}, {name: domain_id, type: text}, {name: name, type: text}]
`)
	if out := kit.Run(t, "", "check", "--policy", path); out.Code != 0 ||
		strings.Contains(out.Stdout, "not read") || !strings.Contains(out.Stdout, "ok: serve would start") {
		t.Fatalf("check: exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	p := kit.Serve(t, path)
	w, err := p.Dial("alice", "data")
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"SELECT gender, count(*) FROM person GROUP BY 1 ORDER BY 1":                                                   "8507 250;8532 250;NULL 250",
		"SELECT visit, count(*) FROM person WHERE visit > 9201 GROUP BY 1":                                            "2000000009 0",
		"SELECT name, count(*) FROM person JOIN concept ON concept_id = gender WHERE concept_id <> 8532 GROUP BY 1":   "male 250",
		"SELECT count(*) FROM person WHERE gender IN (SELECT concept_id FROM concept WHERE name IN ('male', 'none'))": "250",
		"SELECT corr(gender, visit) FROM person":                                                                      "corr over private rows takes two columns",
	} {
		if got := rowsOf(w.Ask(sql)); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	for sql, noted := range map[string]bool{
		"SELECT count(*) FROM person JOIN concept ON concept_id = gender": true,
		"SELECT count(gender) FROM person":                                true,
		"SELECT count(*) FROM person WHERE gender < 8540":                 true,
		"SELECT count(*) FROM person WHERE visit > 9201":                  false, // it has another notice
		"SELECT count(*) FROM person":                                     false,
	} {
		notes := strings.Join(w.Ask(sql).Notes, "; ")
		if strings.Contains(notes, "values of gender outside its domain count as NULL") != noted ||
			strings.Contains(notes, "values of visit") {
			t.Errorf("%s: %s", sql, notes)
		}
	}
	server.Exec(t, database, `INSERT INTO concept VALUES (8551, 'Gender', 'unknown')`)
	kit.Edit(t, path, "expected_rows: 3000", "expected_rows: 3001")
	kit.Eventually(t, "a key that was added is there", func() bool {
		return rowsOf(w.Ask("SELECT gender, count(*) FROM person GROUP BY 1 ORDER BY 1")) ==
			"8507 250;8532 250;8551 250;NULL 0"
	})
	kit.Edit(t, path, "domain_id = 'Gender'", "domain = 'Gender'")
	if out := kit.Run(t, "", "check", "--policy", path); out.Code != 3 ||
		!strings.Contains(out.Stderr, "column gender of table person: where: ") {
		t.Errorf("check of a column that is not there: exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
}

// codesPolicy writes a policy of persons with such tables, and gives it alice.
func codesPolicy(t *testing.T, url, tables string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "policy.yaml")
	text := `version: 1
server: {listen: 127.0.0.1:0}
backend: {url: "` + url + `"}
ledger: {url: "sqlite:dpproxy.ledger"}
users: []
datasets:
  - id: data
    unit: {name: person, key: person.person_id, type: integer}
    accountant: pure
    cap: {epsilon: 100000, delta: 1e-6}
    budgets: {"*": {epsilon: 100000, delta: 1e-7}}
    defaults: {epsilon: 100, max_epsilon: 100, confidence: 0.95}
    tables:
` + tables
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := kit.Run(t, "alice\n", "user", "add", "alice", "--policy", path); out.Code != 0 {
		t.Fatal(out.Stderr)
	}
	return path
}

// TestLongListsOfCodes: a column of 131,000 whole numbers or 50,000 texts is answered as one of few is, whatever
// characters a code has, and so is every other column of its table.
func TestLongListsOfCodes(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, `CREATE TABLE item (item_id bigint PRIMARY KEY, item text)`,
		`INSERT INTO item SELECT i * 7 - 70, 'item ' || i FROM generate_series(1, 131000) AS i`,
		`CREATE TABLE icd (code text PRIMARY KEY)`,
		`INSERT INTO icd SELECT 'K' || i FROM generate_series(1, 49990) AS i`,
		`INSERT INTO icd VALUES ('a,b'), ('"'), ('{}'), ('\'), ('NULL'), (''), ('it''s "\x"')`,
		`CREATE TABLE person (person_id int PRIMARY KEY, sex text, item_id int, code text)`,
		`INSERT INTO person SELECT i, 'f', CASE WHEN i % 2 = 0 THEN -63 ELSE 7 END,
			(ARRAY['a,b', '"', '{}', '\', 'NULL', '', 'it''s "\x"', 'K7', 'none'])[1 + i % 9]
			FROM generate_series(1, 1800) AS i`,
		`GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	path := codesPolicy(t, server.URLFor(role, database), `      - name: person
        expected_rows: 3000
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: item_id, type: integer, domain: {keys_of: item.item_id}}
          - {name: code, type: text, domain: {keys_of: icd.code}}
      - {name: item, public: true, max_rows: 200000, columns: [{name: item_id, type: bigint}, {name: item, type: text}]}
      - {name: icd, public: true, columns: [{name: code, type: text}]}
`)
	w, err := kit.Serve(t, path).Dial("alice", "data")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"SELECT sex, count(*) FROM person GROUP BY 1 ORDER BY 1 LIMIT 1", "f 1800"},
		{"SELECT item_id, count(*) FROM person WHERE item_id IN " +
			"(-63, 7, 14) GROUP BY 1 ORDER BY 1", "-63 900;7 900;14 0"},
		{"SELECT i.item, count(*) FROM person p JOIN item i ON " +
			"i.item_id = p.item_id WHERE p.item_id = 7 GROUP BY 1", "item 11 900"},
		{"SELECT count(*) FROM person WHERE code IN ('a,b', '{}', 'NULL', '')", "800"},
		{"SELECT code, count(*) FROM person WHERE code IN ('\"', '\\', 'it''s " +
			"\"\\x\"', 'K7') GROUP BY 1 ORDER BY 2, 1 LIMIT 1", "\" 200"},
		{"SELECT count(*) FROM person WHERE code = '\\' AND item_id = 7", "100"},
		{"SELECT count(*) FROM person WHERE code = 'other'", "200"},
	} {
		if got := rowsOf(w.Ask(c[0])); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
}

// rowsOf are the rows of an answer on one line, or its error.
func rowsOf(a kit.Answer) string {
	if a.Err != nil {
		return a.Err.Message
	}
	var lines []string
	for _, row := range a.Rows {
		lines = append(lines, strings.Join(row, " "))
	}
	return strings.Join(lines, ";")
}

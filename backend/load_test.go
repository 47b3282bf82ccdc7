package backend

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// filePolicy is the people table alone, over a file of the given text.
func filePolicy(t *testing.T, name, text string) *policy.Policy {
	t.Helper()
	p := testPolicy(t, "duckdb:")
	d := p.Datasets[0]
	d.Tables = d.Tables[:1]
	d.Tables[0].File = filepath.Join(t.TempDir(), name)
	d.Tables[0].Source = policy.Source{Schema: "main", Name: "people"}
	if err := os.WriteFile(d.Tables[0].File, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFilesAreReadWithDeclaredTypes (rule 12): one cell types no column, whatever it holds.
func TestFilesAreReadWithDeclaredTypes(t *testing.T) {
	header := "\ufeffAGE,sex,income,person_id,note\r\n"
	rows := "34,Female,1000.5,p1,x\r\n35,\"Male\",2000,p2,\"a,\"\"b\"\"\r\nc\"\r\n"
	for name, c := range map[string]struct {
		text string
		want []string // people by sex, and by age where it is 34 or NULL
	}{
		"plain":                  {rows, []string{"[0]: [1]", "[1]: [1]"}},
		"one cell is no number":  {rows + "abc,Male,3,p3,\r\n", []string{"[0]: [1]", "[1]: [2]"}},
		"one cell is a date":     {rows + "2020-01-01,Male,3,p3,\r\n", []string{"[0]: [1]", "[1]: [2]"}},
		"semicolons in a cell":   {rows + "1,a;b;c;d;e;f;g,3,p3,\r\n", []string{"[0]: [1]", "[1]: [1]", "[2]: [1]"}},
		"empty and quoted empty": {rows + ",,,p3,\r\n1,\"\",3,p4,\r\n", []string{"[0]: [1]", "[1]: [1]", "[2]: [1]", "[3]: [1]"}},
		"a unit twice and none":  {rows + "1,Male,3,p2,\r\n1,Male,3,,\r\n", []string{"[0]: [1]", "[1]: [1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, filePolicy(t, "people.csv", header+c.text))
			if got := counts(t, h, render(t, measure(t, h.policy, "people", "sex"), h)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := inspect(t, h); strings.Contains(got, "fatal=true") {
				t.Errorf("got\n%s", got)
			}
		})
	}
	h := open(t, filePolicy(t, "people.csv", header+rows+"abc,Male,3,p3,\r\n"))
	if got, want := counts(t, h, render(t, measure(t, h.policy, "people", "age"), h)), []string{"[120]: [1]", "[34]: [1]", "[35]: [1]"}; !slices.Equal(got, want) {
		t.Errorf("ages: got %v, want %v", got, want)
	}
}

func TestBrokenFilesAreRefusedWithoutTheirContents(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"too many fields": {"people.csv", "age,sex,income,person_id\n1,Male,2,p1\n2,Male,2,p2," + canary + "\n", "line 3"},
		"too few fields":  {"people.csv", "age,sex,income,person_id\n1,Male,2,p1\n" + canary + "\n", "line 3"},
		"missing column":  {"people.csv", "age,sex,person_id\n" + canary + ",Male,p1\n", "no column income"},
		"double column":   {"people.csv", "age,sex,income,person_id,Age\n" + canary + ",Male,1,p1,2\n", "one twice"},
		"empty":           {"people.csv", "", "header"},
		"no parquet":      {"people.parquet", canary, "cannot be read"},
		"pattern":         {"p*.csv", "age,sex,income,person_id\n", "pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(context.Background(), filePolicy(t, c.file, c.text), discard())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("got %v, want something of %q", err, c.want)
			}
		})
	}
}

// TestLockdown: nothing outside the loaded tables can be reached from SQL.
func TestLockdown(t *testing.T) {
	for name, h := range map[string]*house{"file": duckHouse(t), "memory": open(t, filePolicy(t, "people.csv", "age,sex,income,person_id\n1,Male,2,p1\n"))} {
		db := h.Backend.(*DuckDB).db
		for _, statement := range []string{
			"SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/etc/hostname')", "ATTACH '/tmp/elsewhere.duckdb' AS elsewhere",
			"COPY (SELECT 1) TO '/tmp/elsewhere.csv'", "INSTALL httpfs", "LOAD httpfs", "SET TimeZone = 'Asia/Tokyo'", "SET enable_external_access = true",
			"SET GLOBAL lock_configuration = false", "RESET temp_directory", "SELECT * FROM people",
		} {
			if _, err := db.Exec(statement); err == nil {
				t.Errorf("%s: %s is allowed", name, statement)
			}
		}
	}
	h := duckHouse(t)
	for _, statement := range []string{"DELETE FROM private.main.people", "CREATE TABLE private.main.t (a integer)", "CREATE MACRO private.main.list_position(a, b) AS 0"} {
		if _, err := h.Backend.(*DuckDB).db.Exec(statement); err == nil {
			t.Errorf("%s is allowed", statement)
		}
	}
}

package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

// These are ways in which one person's rows once decided whether a paid query ended well: the answer was noise on
// nothing instead of the counts, which is a bit without any noise (privacy rule 24).

// bitPair are two proxies over neighbouring databases: the same statements are run in both, and then more in the first.
func bitPair(t *testing.T, server *pgtest.Server, change func(path string), both []string, hers ...string) (p pair, programs [2]*kit.Program, roles, databases [2]string) {
	t.Helper()
	var wires [2]*kit.Wire
	for i := range 2 {
		path, database := kit.Postgres(t, server, kit.Budgets{User: "1000", Cap: "1000"}, 0)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "postgres://")
		role, _, _ := strings.Cut(after, "@")
		statements := both
		if i == 0 {
			statements = append(statements[:len(statements):len(statements)], hers...)
		}
		for _, s := range statements {
			server.Exec(t, database, strings.ReplaceAll(s, "ROLE_", role))
		}
		change(path)
		programs[i], roles[i], databases[i] = kit.Serve(t, path), role, database
		wires[i] = programs[i].Connect("alice", "lab")
	}
	return pair{wires[0], wires[1]}, programs, roles, databases
}

// TestBitOfAnEncoding: one person's town has no counterpart in the encoding that the role asks for. The towns of all
// others are found all the same, with her and without.
func TestBitOfAnEncoding(t *testing.T) {
	kit.Beside(t)
	for _, setting := range []string{`ALTER ROLE ROLE_ SET client_encoding = 'LATIN1'`, `ALTER ROLE ROLE_ SET client_encoding = 'EUC_JP'`} {
		p, programs, _, _ := bitPair(t, pgtest.Shared(t), func(path string) {
			kit.Edit(t, path, append([]string{`{name: city, type: text, domain: {values: [c0, c1, c2, c3]}}`, `{name: city, type: text, keys: discover}`, "delta: 0", "delta: 1e-3"}, kit.Undeclared...)...)
		}, []string{setting}, `UPDATE people SET city = 'Київ ☃' WHERE uid = 7`)
		for _, w := range []*kit.Wire{p.with, p.without} {
			w.Ask(`SET dp.epsilon = 1`)
			if a := w.Ask(`SELECT city, count(*) FROM people GROUP BY city`); a.Err != nil || len(a.Rows) < 4 {
				t.Errorf("%s: %d towns, want all 4: %v", setting, len(a.Rows), a.Err)
			}
		}
		for _, program := range programs {
			if strings.Contains(program.LogText(), "a paid query failed") {
				t.Errorf("%s: a paid query failed:\n%s", setting, program.LogText())
			}
		}
	}
}

// TestBitOfTemporaryFiles: one person's 300,000 rows would not fit the limit of the role's temporary files. The role is
// refused at the start, in plain words, and one whose limit comes later before the next charge, with her and without.
func TestBitOfTemporaryFiles(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	const many = `INSERT INTO people SELECT 7, 20 + i % 50, i, 'n1', 'c1', true FROM generate_series(1, 300000) AS g(i)`
	p, programs, roles, _ := bitPair(t, server, func(path string) { kit.Edit(t, path, kit.Undeclared...) }, []string{`ALTER TABLE people DROP CONSTRAINT people_pkey`}, many)
	const sql = `SELECT city, count(*) FROM people WHERE age > %d GROUP BY city`
	for _, w := range []*kit.Wire{p.with, p.without} {
		w.Ask(`SET dp.epsilon = 1`)
		a := w.Ask(fmt.Sprintf(sql, 0))
		for _, row := range a.Rows[:4] {
			if n := kit.Count(t, kit.Answer{Rows: [][]string{row[1:]}}); n < 200 || n > 300 {
				t.Errorf("%v, of 250: the counts were not told", row)
			}
		}
	}
	for _, role := range roles {
		server.Exec(t, "postgres", `ALTER ROLE `+role+` SET temp_file_limit = '1MB'`)
	}
	for _, w := range []*kit.Wire{p.with, p.without} {
		before := w.Spent()
		if a := w.Ask(fmt.Sprintf(sql, 1)); a.Err == nil || a.Err.Code != "DP004" || w.Spent() != before {
			t.Errorf("a limit that rows may reach: %v, %s spent, before %s", a.Err, w.Spent(), before)
		}
	}
	if d := p.sameShape(fmt.Sprintf(sql, 2)); d != "" {
		t.Error(d)
	}
	for _, program := range programs {
		program.Stop(syscall.SIGKILL)
		for command, code := range map[string]int{"check": 3, "serve": 1} {
			out := kit.Run(t, "", command, "--policy", program.Policy)
			if out.Code != code || !strings.Contains(out.Stdout+out.Stderr, "temp_file_limit bounds the temporary files of dpproxy's sessions") {
				t.Errorf("%s: exit %d: %s%s", command, out.Code, out.Stdout, out.Stderr)
			}
		}
	}
}

// TestUnplannedIsFree: what the database does not plan is an error before the charge, and the same with one person
// more.
func TestUnplannedIsFree(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	p, programs, _, databases := bitPair(t, server, func(path string) { kit.Edit(t, path, kit.Undeclared...) }, []string{
		`CREATE FUNCTION public.yearly(float8) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN RETURN 12 * $1 / 12; END $$`, `ALTER TABLE people RENAME TO base`,
		`CREATE VIEW people AS SELECT uid, age, public.yearly(income) AS income, note, city, hiv FROM base`, `GRANT SELECT ON people TO ROLE_`}, `DELETE FROM base WHERE uid = 7`)
	if a := p.with.Ask(`SELECT count(*) FROM people WHERE income > 5000`); a.Err != nil || p.with.Spent() != "0.1" {
		t.Fatalf("%v, spent %s", a.Err, p.with.Spent())
	}
	if a := p.without.Ask(`SELECT count(*) FROM people WHERE income > 5000`); a.Err != nil {
		t.Fatal(a.Err)
	}
	for _, database := range databases {
		server.Exec(t, database, `REVOKE EXECUTE ON FUNCTION public.yearly(float8) FROM PUBLIC`)
	}
	const sql = `SELECT count(*) FROM people WHERE income > 6000`
	a := p.with.Ask(sql)
	if a.Err == nil || a.Err.Code != "DP004" || a.Err.Message != "the database does not accept the query that would answer this; nothing was charged" || a.Err.Hint == "" {
		t.Errorf("%+v", a.Err)
	}
	if d := p.sameShape(sql); d != "" {
		t.Error(d)
	}
	server.Exec(t, databases[0], `GRANT EXECUTE ON FUNCTION public.yearly(float8) TO PUBLIC`)
	if a := p.with.Ask(sql); a.Err != nil || p.with.Spent() != "0.2" {
		t.Errorf("a query that is planned again: %v, spent %s", a.Err, p.with.Spent())
	}
	if text := programs[0].LogText(); strings.Contains(text, "a paid query failed") || !strings.Contains(text, "does not plan a query") || strings.Contains(text, "yearly") {
		t.Errorf("the operator is told:\n%s", text)
	}
}

// TestBitOfALine: whatever one person's line of a CSV file holds, check and serve go on, and all others are counted as
// without it.
func TestBitOfALine(t *testing.T) {
	kit.Beside(t)
	for name, line := range map[string]string{"a word for a number": "7,old,1e400,n1,c1,maybe\n", "no UTF-8": "\xff,20,5,n\xfe1,c\xff,true\n", "a field too many": "7,20,5,n1,c1,true,\n",
		"a field too few": "7\n", "NUL": "7,2\x000,5,n1\x00,c1,true\n", "a lone return": "7,20\r,5,n1,c1,true\n", "a long text": "7,20,5,n1," + strings.Repeat("x", 5<<20) + ",true\n"} {
		t.Run(name, func(t *testing.T) {
			var wires [2]*kit.Wire
			for i := range 2 {
				dir := memory.Dir(t)
				path := kit.WritePolicy(t, dir, "duckdb:", "main", kit.Budgets{User: "1000", Cap: "1000"})
				kit.Edit(t, path, append([]string{`backend: {url: "duckdb:"}`, `backend: {url: "duckdb:", files: {people: people.csv}}`}, kit.Undeclared...)...)
				var text strings.Builder
				text.WriteString("uid,age,income,note,city,hiv\r\n")
				for uid := range 1000 {
					if uid == 7 && i == 0 {
						text.WriteString(line)
					} else if uid != 7 {
						fmt.Fprintf(&text, "%d,%d,%d,n%d,c%d,%v\r\n", uid, 18+uid%60, 1000*(uid%90), uid%5, uid%4, uid%2 == 0)
					}
				}
				if err := os.WriteFile(filepath.Join(dir, "people.csv"), []byte(text.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				if out := kit.Run(t, "", "check", "--policy", path); out.Code != 0 {
					t.Errorf("check: exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
				} else if ragged := strings.Contains(out.Stdout, "table people: line 9 of its file have another number"); ragged != (i == 0 && strings.HasPrefix(name, "a field too")) {
					t.Errorf("the line is named: %v\n%s", ragged, out.Stdout)
				}
				wires[i] = kit.Serve(t, path).Connect("alice", "lab")
				wires[i].Ask(`SET dp.epsilon = 1`)
				for _, row := range wires[i].Ask(`SELECT city, count(*) FROM people WHERE city IN ('c0', 'c1', 'c2') GROUP BY city`).Rows {
					if n := kit.Count(t, kit.Answer{Rows: [][]string{row[1:]}}); strings.HasPrefix(row[0], "c") && row[0] != "c3" && (n < 220 || n > 280) {
						t.Errorf("%v, of 250", row)
					}
				}
			}
			for _, sql := range []string{`SELECT hiv, count(*) FROM people GROUP BY hiv`, `SELECT count(*) FROM people WHERE age > 30`, `SELECT count(income), sum(age) FROM people`} {
				if d := (pair{wires[0], wires[1]}).sameShape(sql); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

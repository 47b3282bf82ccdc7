package rewrite_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// textsPolicy has texts that nobody declared.
var textsPolicy = policytest.Over("duckdb:warehouse.duckdb") + `
  - id: census
    unit: {name: person, key: notes.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: notes
        source: clinic.stored
        max_rows_per_unit: 500
        columns:
          - {name: note, type: text, domain: any}
          - {name: kind, type: text, domain: {values: [a, b]}}
`

// textValues are texts that matching, cutting and counting might take for others, or fail for.
var textValues = []string{
	"", " ", "  x  ", "%", "_", `\`, `\%`, `a\b`, `a\\b`, "a%b", "a_b", "ab", "aXb", "a.b", "a*b", "(a|b)", "[a]", "^a$", "a\nb", "a\r\nb", "a\tb", "'", `"`, "$1", "--", "/*", ";", "{}",
	"late", "Late", "LATE", "so late again", "special requests", "special packages requests", "requests special", "specialrequests", "SPECIAL REQUESTS", "special\nrequests",
	"13-555", "31-555", "23", "1", "13", "é", "É", "e\u0301", "ä", "Ä", "ß", "ẞ", "\u212a", "k", "K", "İ", "ı", "ſ", "s", "ﬀ", "Ǆ", "日本語", "日本", "\U0001F600", "\U0001F600\U0001F600", "\U0010ffff", "\u200d", "\ufeffa", "a\u00a0", "\u00a0a",
	"a@example.org", "A@Example.ORG", "a@b@c", "@", "@@", "other", "NULL", "null", "\x01\x7f", "aaaaaaaaaaaaaaab", "abcabcabc", "aab", "baa",
	strings.Repeat("x", 130), strings.Repeat("ä", 129) + "late", strings.Repeat("z", policy.MaxTextLength-4) + "late", strings.Repeat("z", policy.MaxTextLength-3) + "late",
	strings.Repeat("ü", policy.MaxTextLength+10) + "late", strings.Repeat("a", policy.MaxTextLength), strings.Repeat("ab", policy.MaxTextLength/2),
}

// textStatements ask what may be asked of them.
var textStatements = func() (list []string) {
	for _, pattern := range []string{
		"", "%", "_", "__", "%%", "%_", "_%", "%_%_%", `\%`, `\_`, `\\`, `%\\%`, `a\\b`, `a\b`, `%\%%`, `%\_%`, "a%b", "a_b", "a__b", "%late%", "late%", "%late", "_ate", "%special%requests%", "special_requests", "%a_b%", "%é%", "_́", "%日_語%", "%\n%", "a_\nb", "a.b", "%.%", "%*%",
		"(a|b)", "%[a]%", "^a$", "%$%", "%'%", `%"%`, "%{}%", "%a%a%a%a%b", "%_a%_a%_b", "other", "NULL", "%\u00a0", "%z%late", "x%x", `%\x01%`, "\U0001F600_", strings.Repeat("%a", 120) + "%b", strings.Repeat("_", 250) + "%", strings.Repeat("%_", 120),
	} {
		list = append(list, "SELECT count(*) FROM notes WHERE note LIKE '"+strings.ReplaceAll(pattern, "'", "''")+"'")
	}
	return append(list,
		`SELECT count(*) FROM notes WHERE note NOT LIKE '%a%'`, `SELECT note LIKE '%a%', count(*) FROM notes GROUP BY 1`, `SELECT kind, note LIKE 'a%' AND note LIKE '%b', count(*) FROM notes GROUP BY 1, 2`,
		`SELECT count(*) FROM notes WHERE note ILIKE '%LATE%'`, `SELECT count(*) FROM notes WHERE note ILIKE 'k'`, `SELECT count(*) FROM notes WHERE note NOT ILIKE '%s%'`,
		`SELECT count(*) FROM notes WHERE lower(note) = 'late'`, `SELECT count(*) FROM notes WHERE upper(note) IN ('LATE', 'K', 'S')`, `SELECT count(*) FROM notes WHERE upper(note) LIKE '%LATE'`,
		`SELECT count(*) FROM notes WHERE note = ''`, `SELECT count(*) FROM notes WHERE note <> ''`, `SELECT count(*) FROM notes WHERE note IS NULL`, `SELECT count(*), count(note) FROM notes`,
		`SELECT count(*) FROM notes WHERE note IN ('late', 'É', 'a@b@c', '\', ' ')`, `SELECT note, count(*) FROM notes WHERE note IN ('late', 'é', '%', '\') OR note IS NULL GROUP BY 1`,
		`SELECT left(note, 2), count(*) FROM notes WHERE left(note, 2) IN ('13', '31', '23', 'é', '日本', 'a@') GROUP BY 1`, `SELECT count(*) FROM notes WHERE left(note, 0) = ''`, `SELECT count(*) FROM notes WHERE right(note, 1) = 'b'`,
		`SELECT count(*) FROM notes WHERE right(note, 4) = 'late'`, `SELECT count(*) FROM notes WHERE right(note, 0) = ''`,
		`SELECT substring(note FROM 1 FOR 1), count(*) FROM notes WHERE substring(note FROM 1 FOR 1) IN ('a', '1', 'É', '') GROUP BY 1`, `SELECT count(*) FROM notes WHERE substring(note FROM 2) = 'b'`, `SELECT count(*) FROM notes WHERE substring(note FROM 2 FOR 1) IN ('%', '_', 'b', '')`,
		`SELECT count(*) FROM notes WHERE substring(note FROM -1 FOR 3) = 'a'`, `SELECT count(*) FROM notes WHERE substring(note FROM 0 FOR 1) = ''`, `SELECT count(*) FROM notes WHERE substr(note, 16384, 5) = 'e'`,
		`SELECT count(*) FROM notes WHERE substring(note FROM -20000 FOR 20003) = 'ab'`, `SELECT count(*) FROM notes WHERE substr(note, -2147483647, 2147483647) = ''`, `SELECT count(*) FROM notes WHERE substr(note, 2, 2147483647) = 'b'`,
		`SELECT count(*) FROM notes WHERE substr(note, 16385) = ''`, `SELECT count(*) FROM notes WHERE substr(note, 20000, 5) = ''`, `SELECT count(*) FROM notes WHERE left(note, 2147483647) = 'ab'`, `SELECT count(*) FROM notes WHERE split_part(note, 'a', 20000) = ''`,
		`SELECT count(*) FROM notes WHERE starts_with(note, 'a%')`, `SELECT count(*) FROM notes WHERE note ^@ '_'`, `SELECT count(*) FROM notes WHERE starts_with(note, '')`, `SELECT count(*) FROM notes WHERE starts_with(note, '\')`,
		`SELECT count(*) FROM notes WHERE position('late' IN note) > 0`, `SELECT count(*) FROM notes WHERE strpos(note, 'b') = 2`, `SELECT strpos(note, '@'), count(*) FROM notes WHERE strpos(note, '@') < 5 GROUP BY 1`, `SELECT count(*) FROM notes WHERE strpos(note, 'late') > 16000`,
		`SELECT length(note), count(*) FROM notes WHERE length(note) < 8 GROUP BY 1`, `SELECT count(*) FROM notes WHERE char_length(note) >= 16384`, `SELECT count(*) FROM notes WHERE length(note) BETWEEN 100 AND 200`,
		`SELECT count(*) FROM notes WHERE split_part(note, '@', 2) = 'example.org'`, `SELECT split_part(lower(note), '@', 2), count(*) FROM notes WHERE split_part(lower(note), '@', 2) IN ('example.org', 'b', '') GROUP BY 1`,
		`SELECT count(*) FROM notes WHERE split_part(note, 'b', 3) LIKE '%c%'`, `SELECT count(*) FROM notes WHERE split_part(note, 'aa', 2) = 'b'`,
		`SELECT count(*) FROM notes WHERE trim(note) = ''`, `SELECT count(*) FROM notes WHERE trim(note) = 'x'`, `SELECT count(*) FROM notes WHERE ltrim(note) = 'x  '`, `SELECT count(*) FROM notes WHERE rtrim(note) = '  x'`, `SELECT count(*) FROM notes WHERE length(rtrim(note)) = 1`,
		`SELECT CASE left(note, 1) WHEN 'a' THEN 'first' WHEN '' THEN 'none' ELSE 'others' END, count(*) FROM notes GROUP BY 1`,
		`SELECT left(note, 1), count(*) FROM notes WHERE left(note, 1) IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'x', 'ä', 'é') GROUP BY 1`, // more than are compared one by one
		`SELECT count(*) FROM notes WHERE coalesce(note, '') LIKE '%a%'`, `SELECT count(*) FROM notes WHERE coalesce(note, 'late') NOT LIKE '%late%'`, `SELECT count(*) FROM notes WHERE 'late' = coalesce(note, 'late')`, `SELECT count(*) FROM notes WHERE coalesce(note, '') <> ''`,
		`SELECT count(*) FROM notes WHERE coalesce(note, 'none') IN ('late', 'none')`, `SELECT count(*) FROM notes WHERE coalesce(note, 'none') NOT IN ('late', 'none')`, `SELECT length(coalesce(note, '')), count(*) FROM notes WHERE length(coalesce(note, '')) < 4 GROUP BY 1`,
		`SELECT count(*) FROM notes WHERE left(coalesce(note, 'abc'), 2) = 'ab'`, `SELECT count(*) FROM notes WHERE coalesce(left(note, 2), 'none') = 'none'`, `SELECT count(*) FROM notes WHERE upper(trim(coalesce(note, ' k '))) IN ('K', 'S')`, `SELECT coalesce(note, '') ILIKE '%LATE%', count(*) FROM notes GROUP BY 1`,
		`SELECT count(*) FROM notes WHERE note LIKE ANY (ARRAY['%late%', 'a_b', '%@%'])`, `SELECT count(*) FROM notes WHERE note NOT LIKE ALL (ARRAY['%late%', 'a_b'])`, `SELECT count(*) FROM notes WHERE note LIKE ALL ('{%a%,%b%}')`, `SELECT count(*) FROM notes WHERE note NOT LIKE ANY (ARRAY['%a%', '%b%', NULL])`,
		`SELECT count(*) FROM notes WHERE NOT coalesce(note, 'x') ILIKE ANY (ARRAY['%x%', '%LATE%', NULL])`, `SELECT kind = ANY (ARRAY['a', NULL]), count(*) FROM notes GROUP BY 1`, `SELECT kind >= ANY (ARRAY['b']), kind LIKE ALL (ARRAY['a%', '%']), count(*) FROM notes GROUP BY 1, 2`,
		`SELECT left(note, 1), count(*) FROM notes WHERE left(note, 1) = 'a' AND kind = 'a' OR left(note, 1) IN ('1', '%') AND kind = 'b' GROUP BY 1`,
		`SELECT n, count(*) FROM (SELECT person_id, count(*) AS n FROM notes WHERE note LIKE '%a%' GROUP BY 1) t GROUP BY 1`,
		`SELECT a.note LIKE '%a%', count(*) FROM notes a JOIN notes b ON a.person_id = b.person_id WHERE b.note = 'late' GROUP BY 1`)
}()

func textsFill() []string {
	list := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.stored (person_id int, note text, kind text)", "INSERT INTO clinic.stored VALUES (0, NULL, 'a'), (1, NULL, NULL)"}
	for i, v := range textValues {
		list = append(list, fmt.Sprintf("INSERT INTO clinic.stored VALUES (%d, '%s', '%s')", i%7, strings.ReplaceAll(v, "'", "''"), string("ab"[i%2])))
	}
	return list
}

// TestTextsAreReadAlike: what is asked of texts is what PostgreSQL says of them by the collation "C", on every engine,
// of texts that are hostile too. PostgreSQL is asked of the beginnings that dpproxy reads.
func TestTextsAreReadAlike(t *testing.T) {
	t.Parallel()
	fill := textsFill()
	own := postgresTexts(t, append(slices.Clone(fill), fmt.Sprintf(`CREATE VIEW clinic.notes AS SELECT person_id, left(note, %d) COLLATE "C" AS note, CASE WHEN kind IS NOT NULL THEN kind END AS kind FROM clinic.stored`, policy.MaxTextLength)))
	t.Run("DuckDB", func(t *testing.T) {
		joinsOn(t, parsedFor(t, textsPolicy, dialect.DuckDB), dialect.DuckDB, duckEngine(t, fill), own, textStatements)
	})
	p := parsedFor(t, textsPolicy, dialect.PostgreSQL)
	t.Run("PostgreSQL", func(t *testing.T) {
		joinsOn(t, p, dialect.PostgreSQL, postgresEngine(t, fill), own, textStatements)
	})
	t.Run("snapshot", func(t *testing.T) {
		joinsOn(t, p, dialect.Snapshot, duckQueries(copied(t, p, postgresConn(t, fill))), own, textStatements)
	})
}

// TestTextsTakeBoundedWork: the patterns that engines are slowest at, over texts that they are slowest at.
func TestTextsTakeBoundedWork(t *testing.T) {
	t.Parallel()
	fill := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.stored (person_id int, note text, kind text)",
		fmt.Sprintf("INSERT INTO clinic.stored SELECT i, repeat('a', %d), 'a' FROM generate_series(1, 200) AS g(i)", 2*policy.MaxTextLength)}
	for d, run := range map[dialect.Dialect]engine{dialect.DuckDB: duckEngine(t, fill), dialect.PostgreSQL: postgresEngine(t, fill)} {
		slowestPatterns(t, parsedFor(t, textsPolicy, d), d, run)
	}
}

func slowestPatterns(t *testing.T, p *policy.Policy, d dialect.Dialect, run engine) {
	t.Helper()
	for _, pattern := range []string{strings.Repeat("%a", 127) + "b", strings.Repeat("%a_", 85) + "b", "%" + strings.Repeat("a", 254) + "b", strings.Repeat("%_", 127) + "b", strings.Repeat(`%\%a`, 63) + "b"} {
		plan := textPlan(t, p, "SELECT count(*) FROM notes WHERE note LIKE '"+pattern+"'")
		q, err := rewrite.Render(plan.Measures[0], d)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		run(t, q.SQL(), q.Args())
		took := time.Since(began)
		t.Logf("%s: %.12s… takes %v of 200 texts", d, pattern, took)
		if took > 60*time.Second {
			t.Errorf("%s: %.12s… takes %v", d, pattern, took)
		}
	}
}

func textPlan(t *testing.T, p *policy.Policy, text string) *plans.Plan {
	t.Helper()
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0), Public: publicRows{},
		Settings: plans.Settings{Epsilon: p.Datasets[0].Defaults.Epsilon, Confidence: confidence, Zone: time.UTC}})
	if refusal != nil {
		t.Fatalf("%s: %s", refusal.ID, refusal.Message)
	}
	return plan
}

// TestPatternsOfSpark: a pattern is a regular expression of Java's in which no part is looked for again.
func TestPatternsOfSpark(t *testing.T) {
	t.Parallel()
	p := parsedFor(t, strings.Replace(textsPolicy, `"duckdb:warehouse.duckdb"`, `"spark://dpproxy@127.0.0.1/clinic"`, 1), dialect.Spark)
	for pattern, want := range map[string]string{
		"": `(?s)\A\z`, "a": `(?s)\Aa\z`, "%": `(?s)\A.*\z`, "a%": `(?s)\Aa.*\z`, "%a": `(?s)\A.*a\z`, "%a%": `(?s)\A(?>.*?a).*\z`, "%late%ly": `(?s)\A(?>.*?late).*ly\z`,
		"a%b_%%.%d": `(?s)\Aa(?>.*?b.)(?>.*?\.).*d\z`, `\%_\_`: `(?s)\A%._\z`,
	} {
		q := render(t, textPlan(t, p, "SELECT count(*) FROM notes WHERE note LIKE '"+pattern+"'").Measures[0], dialect.Spark)
		if hexed := "RLIKE CAST(X'" + hex.EncodeToString([]byte(want)) + "' AS STRING)"; !strings.Contains(q.SQL(), hexed) {
			t.Errorf("%s: no %s (%s) in\n%s", pattern, hexed, want, q.SQL())
		}
	}
}

package planner

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// mysqlGolden holds statements for MySQL, each with what it is read as, or why it is not.
const mysqlGolden = "testdata/mysql.golden"

// mysqlCases are the statements of the golden file, in its order, with the comments above them.
func mysqlCases(t testing.TB) (statements, comments []string) {
	t.Helper()
	data, err := os.ReadFile(mysqlGolden)
	if err != nil {
		t.Fatal(err)
	}
	comment := ""
	for _, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			comment += line + "\n"
		case line != "" && !strings.HasPrefix(line, "    "):
			statements, comments, comment = append(statements, line), append(comments, comment), ""
		}
	}
	return statements, comments
}

// readAs is a statement as it is read, and whether it is planned then.
func readAs(c reuse.Context, text string) string {
	statements, r := parse.ParseAs(text, parse.MySQL, c.Dataset)
	if r != nil {
		return "    refused: " + r.ID + ": " + r.Message + "\n"
	}
	out := ""
	for _, s := range statements {
		out += "    " + s.Translation() + "\n"
		if s.Kind != parse.KindSelect {
			continue
		}
		if _, r := Build(s, nil, c); r != nil {
			out += "    not planned: " + r.ID + "\n"
		}
	}
	return out
}

func TestMySQLTranslations(t *testing.T) {
	c := testContext(t, testPolicy(t))
	var out strings.Builder
	statements, comments := mysqlCases(t)
	for i, text := range statements {
		if comments[i] != "" && i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(comments[i] + text + "\n" + readAs(c, text))
	}
	want, _ := os.ReadFile(mysqlGolden)
	if *update {
		if err := os.WriteFile(mysqlGolden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(want) != out.String() {
		t.Errorf("%s differs; look, and run with -update\n%s", mysqlGolden, firstDifference(string(want), out.String()))
	}
}

// TestMySQLTraps: texts that the parser behind takes for something else than MySQL does. Each is refused, or read as
// MySQL reads it, and never as that parser does.
func TestMySQLTraps(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for text, want := range map[string]string{
		`SELECT TIMESTAMP '2020-01-01'`: `'2020-01-01'::date`, // not a column with an alias
		`SELECT DATE '2020-01-01'`:      `'2020-01-01'::date`,
		`SELECT TIME '10:00:00'`:        "!",
		`SELECT _utf8'abc'`:             "!",
		`SELECT N'abc'`:                 "!",
		`SELECT x'41'`:                  "!",
		`SELECT 0x41`:                   "!",
		`SELECT 'a' 'b'`:                "!", // one string, not an alias
		`SELECT 'a\'b' AS x`:            `'a''b'`,
		`SELECT 'a\%b' AS x`:            `E'a\\%b'`, // the parser drops the backslash
		`SELECT 5--3 AS x`:              "5 - -3",   // the parser sees a comment
		`SELECT 5 AS x // 3`:            "!",
		`SELECT 5 AS x /*! + 3 */`:      "!", // MySQL adds, the comment's inside runs
		`SELECT count(*) FROM people p FULL JOIN people q`:          "!",
		`SELECT count(*) FROM people AS full`:                       "!",
		`SELECT 1e AS x`:                                            "!",
		`SELECT @x`:                                                 "!",
		`SELECT age FROM people a, people b LIMIT 1 UNION SELECT 2`: "!",
		`SELECT f(1 AS x)`:                                          "!",
		`SELECT count(age a) FROM people`:                           "!",
		`SELECT NEXT VALUE FROM people`:                             `next AS "VALUE"`, // no sequence's
		"SELECT 1 AS x;":                                            "1",
		"SELECT `a``b`.c AS x FROM dp.budget `a``b`":                "\"a`b\".c",
		`SELECT "x" AS x`:                                           "'x'",
		`SELECT LOG(10) AS x`:                                       "ln(",
		`SELECT CURRENT_TIMESTAMP(6)`:                               "!",
		`SELECT count(*) FROM people WHERE hired = '24-01-01'`:      "!", // 2024 to MySQL, something else to PostgreSQL
		`SELECT count(*) FROM people WHERE hired = 20240101`:        "!",
		`SELECT count(*) FROM people WHERE age = '30x'`:             "!",
		`WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t`:            "!",
		`VALUES (1)`:   "!",
		`TABLE people`: "!",
		`SELECT count(DISTINCT age) OVER () FROM people`: "!",
	} {
		got := readAs(c, text)
		if want == "!" && !strings.Contains(got, "refused:") || want != "!" && !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, strings.TrimSpace(got), want)
		}
	}
}

// TestMySQLGrouping: how operators, joins and sets are grouped, and what the parser keeps out of order or drops.
func TestMySQLGrouping(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, one := range [][2]string{
		{"WITH a AS (SELECT 1 AS x) (WITH b AS (SELECT 2 AS y) SELECT y FROM b)", "!"},
		{"SELECT 1 UNION SELECT 2 INTERSECT SELECT 3", "!"},
		{"SELECT * FROM people a JOIN (people b RIGHT JOIN people c ON a.age = b.age)", "!"},
		{"SELECT age, count(*) FROM people GROUP BY age DESC", "!"},
		{"SELECT age, count(*) FROM people GROUP BY TRUE", "!"},
		{"SELECT count(*) AS n FROM people ORDER BY TRUE", "!"},
		{"SELECT count(*) INTO OUTFILE '/tmp/x' FROM people", "!"},
		{"SELECT " + "1" + strings.Repeat("0", 66), "!"},
		{"SELECT 0." + strings.Repeat("0", 63) + "1 AS x", "AS x"},
		{"SELECT JSON_VALUE(sex, '$.a') FROM people", "!"},
		{"SELECT `date_add`(hired, 1) FROM people", "!"},
		{"SELECT `extract`(hired) FROM people", "!"},
		{"SELECT TIMESTAMPDIFF(DAY, hired, seen) FROM people", "!"},
		{"SELECT hired + INTERVAL age DAY FROM people", "!"},
		{"SELECT /*+ MAX_EXECUTION_TIME(1) */ 5 AS x", "SELECT 5 AS x"},
		{"SELECT 1.50 AS a, .5 AS b, 1e2 AS c, 18446744073709551616 AS d",
			"1.50 AS a, .5 AS b, (1e2)::double precision AS c, 18446744073709551616 AS d"},
		{"SELECT COUNT(*)  /* all */  FROM people", `AS "COUNT(*)" `},
		{"SELECT 1 + 2 * 3 - -4 DIV 5 AS x", "(1 + (2 * 3)) - (-4 / 5)"},
		{"SELECT NOT age = 3 AS x FROM people", "NOT age = 3"},
		{"SELECT ! age = 3 AS x FROM people", "CASE WHEN NOT age <> 0 THEN 1 "},
		{"SELECT COUNT(*) FROM people WHERE age = 1 OR age = 2 AND kids = 1 XOR kids = 2", "age = 1 OR ("},
		{"SELECT COUNT(*) FROM people WHERE age BETWEEN 1 AND 2 AND kids = 1", "age BETWEEN 1 AND 2 AND kids = 1"},
		{"SELECT COUNT(*) FROM people WHERE - age BETWEEN (1) AND (2)", "- age BETWEEN 1 AND 2"},
		{"SELECT (SELECT COUNT(*) FROM people ORDER BY 1 LIMIT 1) AS x", "ORDER BY 1"},
		{"SELECT 1 AS x UNION (SELECT 2 LIMIT 1) UNION ALL SELECT 3 ORDER BY x LIMIT 4",
			"(SELECT 1 AS x UNION (SELECT 2 AS \"2\" LIMIT 1)) UNION ALL SELECT 3"},
		{"(SELECT 1 AS x) LIMIT 1", "SELECT 1 AS x LIMIT 1"},
		{"SELECT COUNT(*) FROM people a JOIN people b JOIN people c ON b.age = c.age",
			"people a CROSS JOIN people b JOIN people c"},
		{"SELECT COUNT(*) FROM people a LEFT JOIN people b JOIN people c ON b.age = c.age ON 1",
			"a LEFT JOIN (people b JOIN people c ON b.age = c.age) ON"},
	} {
		got := readAs(c, one[0])
		if want := one[1]; want == "!" && !strings.Contains(got, "refused:") || want != "!" && !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", one[0], strings.TrimSpace(got), want)
		}
	}
}

// TestMySQLCollation: what a constant means among declared values, and what is refused since collations differ.
func TestMySQLCollation(t *testing.T) {
	p := testPolicy(t)
	column := p.Datasets[0].Table("", "visits").Column("ward")
	for _, one := range []struct{ values, condition, want string }{
		{"Nord|nord|Süd", "ward = 'NORD'", "ward IN ('Nord', 'nord')"},
		{"Nord|nord|Süd", "ward <> 'NORD'", "ward NOT IN ('Nord', 'nord')"},
		{"Nord|West", "ward = 'nord'", "ward = 'Nord'"},
		{"Nord|West", "ward <=> 'nord'", "ward IS NOT DISTINCT FROM 'Nord'"},
		{"Nord|West", "'nord' = ward", "ward = 'Nord'"},
		{"Nord|West", "ward = 'east'", "ward = 'east'"},
		{"Nord|West", "ward = 'nord '", "!mysql-collation"}, // spaces at the end count in some collations
		{"Sud|Süd", "ward = 'sud'", "!mysql-collation"},
		{"Nord|Süd", "ward = 'sud'", "!mysql-collation"},
		{"Nord|Süd", "ward = 'Süd'", "ward = 'Süd'"},
		{"Nord|Süd", "ward = 'west'", "ward = 'west'"},
		{"Nord|Süd", "BINARY ward = 'sud'", "ward = 'sud'"},
		{"Nord|West", "ward IN ('NORD', 'x')", "ward IN ('Nord', 'x')"},
		{"Nord|West", "ward LIKE 'no%'", "ward ILIKE 'no%'"},
		{"Nord|Süd", "ward LIKE 's%'", "!mysql-collation"},
		{"Nord|West", "ward > 'm'", "!mysql-collation"},
		{"Nord|West", "ward RLIKE '^no'", "ward ~* '^no'"},
		{"Nord|West", `ward RLIKE '\\d'`, "!mysql-construct"},
		{"Nord|West", "CASE ward WHEN 'nord' THEN 1 ELSE 0 END = 1", "CASE WHEN ward = 'Nord' THEN 1 ELSE 0 END = 1"},
		{"Nord|West", "UPPER(ward) = 'nord'", "upper(ward) = 'NORD'"},
		{"Nord|West", "LEFT(ward, 2) = 'no'", "\"left\"(ward, 2) = 'No'"},
		{"Nord|West", "NULLIF(ward, 'nord') IS NULL", "CASE WHEN ward = 'Nord' THEN NULL ELSE ward END IS NULL"},
	} {
		domain := *column.Domain
		domain.Values = strings.Split(one.values, "|")
		column.Domain = &domain
		statements, r := parse.ParseAs("SELECT count(*) AS n FROM visits WHERE "+one.condition, parse.MySQL, p.Datasets[0])
		got := ""
		if r != nil {
			got = "!" + r.ID
		} else {
			_, got, _ = strings.Cut(statements[0].Translation(), " WHERE ")
		}
		if got != one.want {
			t.Errorf("%s over %s: %s, want %s", one.condition, one.values, got, one.want)
		}
	}
	for values, refused := range map[string]bool{"a|b": false, "a|A": true, "a|a ": true, "Sud|Süd": true, "Nord|Süd": false, "ß|ss": true, "æ|ae|x": true} {
		domain := *column.Domain
		domain.Values = strings.Split(values, "|")
		column.Domain = &domain
		for _, text := range []string{"SELECT ward, count(*) FROM visits GROUP BY ward", "SELECT DISTINCT ward FROM visits", "SELECT count(DISTINCT ward) FROM visits"} {
			if _, r := parse.ParseAs(text, parse.MySQL, p.Datasets[0]); (r != nil && r.ID == "mysql-collation") != refused {
				t.Errorf("%s over %s: %v, want refused %t", text, values, r, refused)
			}
		}
	}
}

// TestMySQLBesides: what is read as PostgreSQL's in every dialect, and positions of what is not read.
func TestMySQLBesides(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for text, want := range map[string]parse.StatementKind{"RESET dp.dialect": parse.KindReset, "SET dp.dialect TO postgres": parse.KindSet, "SHOW ALL": parse.KindShow, "begin": parse.KindBegin,
		"COMMIT": parse.KindCommit, "EXPLAIN (FORMAT JSON) SELECT `age` > 3 AS x FROM people": parse.KindExplain, "explain select count(*) from people": parse.KindExplain, "DELETE FROM people": parse.KindOther,
		"DECLARE c SCROLL CURSOR FOR SELECT `age` DIV 2 AS x FROM people": parse.KindDeclare, "PREPARE p (int) AS SELECT COUNT(*) DIV 2 AS x FROM people WHERE age > $1": parse.KindPrepare,
		"COPY (SELECT 7 DIV 2 AS `x`) TO STDOUT (FORMAT csv, HEADER)": parse.KindCopy, "copy people to stdout": parse.KindCopy, "EXECUTE p (3)": parse.KindExecute,
		"EXPLAIN (FORMAT JSON) EXECUTE p (3)": parse.KindExplain, "COPY people FROM STDIN": parse.KindOther} {
		s, r := parse.ParseAs(text, parse.MySQL, c.Dataset)
		if r != nil || len(s) != 1 || s[0].Kind != want {
			t.Errorf("%s: %v, %+v", text, r, s)
		}
	}
	s, r := parse.ParseAs("SELECT 1 AS a; SELECT 2 AS `b` # the end; SELECT\n; SHOW dp.epsilon", parse.MySQL, c.Dataset)
	if r != nil || len(s) != 3 || s[1].From != 15 || s[2].Kind != parse.KindShow {
		t.Errorf("three statements: %v, %+v", r, s)
	}
	_, r = parse.ParseAs("SELECT 'ä'; SELECT @x", parse.MySQL, c.Dataset)
	if r == nil || r.Position != 20 {
		t.Errorf("position: %+v", r)
	}
	for text, position := range map[string]int{"PREPARE p FROM 'SELECT 1'": 0, "DECLARE c CURSOR FOR SELECT @x": 29, "COPY (SELECT @x) TO STDOUT": 14,
		"COPY (SELECT 1 AS a TO STDOUT": 0, "PREPARE p (int[]) AS SELECT \"x\"": 0, "PREPARE p AS SELECT @x": 21, "EXPLAIN VALUES (1)": 1} {
		if _, r := parse.ParseAs(text, parse.MySQL, c.Dataset); r == nil || r.Position != position {
			t.Errorf("%s: %+v", text, r)
		}
	}
	s, r = parse.ParseAs("SELECT nosuch FROM people", parse.MySQL, c.Dataset)
	if r != nil {
		t.Fatal(r)
	}
	if _, r = Build(s[0], nil, c); r == nil || r.Position != 0 || !strings.HasPrefix(r.Detail, "It was read as: SELECT nosuch") {
		t.Errorf("refused when planned: %+v", r)
	}
	for _, deep := range []string{strings.Repeat("(", 5000), "SELECT " + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000), "SELECT 1" + strings.Repeat(" + 1", 4000),
		"SELECT " + strings.Repeat("NOT ", 4000) + "1", "SELECT 1" + strings.Repeat(" UNION SELECT 1", 2000), "SELECT 1 FROM t" + strings.Repeat(" JOIN t", 3000),
		"SELECT " + strings.Repeat("- f(", 900) + "1", "SELECT " + strings.Repeat("CASE WHEN 1 THEN ", 2000), "SELECT " + strings.Repeat("a", 70000)} {
		if _, r := parse.ParseAs(deep, parse.MySQL, c.Dataset); r == nil {
			t.Errorf("%.60s… was read", deep)
		}
	}
	if _, r := parse.ParseAs("SELECT count(*) FROM people WHERE age = 1"+strings.Repeat(" OR age = 2 AND kids = 1", 400), parse.MySQL, c.Dataset); r != nil {
		t.Errorf("a long chain of OR: %v", r)
	}
}

// TestMySQLWorkEnds: operands that a translation repeats are refused before they take long, and so is what the parser
// reads by trying, as soon as it is nested more deeply than is said.
func TestMySQLWorkEnds(t *testing.T) {
	c := testContext(t, testPolicy(t))
	read := func(form [3]string, n int) bool {
		text := "SELECT " + strings.Repeat(form[0], n) + form[1] + strings.Repeat(form[2], n) + " AS x FROM people"
		_, r := parse.ParseAs(text, parse.MySQL, c.Dataset)
		return r == nil
	}
	for _, form := range [][3]string{
		{"(", "age = 2", ") = 2"}, {"GREATEST(age, ", "1", ")"}, {"NULLIF(", "age", ", 1)"}, {"SQRT(", "age", ")"},
		{"CAST(", "age", " AS DECIMAL(20, 2))"}, {"1 + (age > ", "1", ")"},
	} {
		if !read(form, 1) || read(form, 45) {
			t.Errorf("%q: once %t, 45 times %t", form, read(form, 1), read(form, 45))
		}
	}
	for form, most := range map[[3]string]int{
		{"1 + INTERVAL ", "1", ""}: 0, {"INTERVAL(", "1", ", 2)"}: 0, {"JSON_VALUE(", "1", ", 2)"}: 0,
		{"((SELECT ", "1", ") UNION SELECT 2)"}: 5, {"(SELECT 1 FROM ((SELECT 1 FROM ", "people x", ") a) b)"}: 5,
	} {
		if read(form, most+1) {
			t.Errorf("%q is read %d times", form, most+1)
		}
	}
}

// TestMySQLMutations changes the statements of the golden file at random: nothing panics, and what is read is planned
// or refused. The seed is fixed.
func TestMySQLMutations(t *testing.T) {
	c := testContext(t, testPolicy(t))
	statements, _ := mysqlCases(t)
	random := rand.New(rand.NewPCG(20180606, 1))
	var words []string
	for _, s := range statements {
		words = append(words, strings.Fields(s)...)
	}
	read, refused := 0, 0
	for range 6000 {
		fields := strings.Fields(statements[random.IntN(len(statements))])
		for range 1 + random.IntN(2) {
			i := random.IntN(len(fields))
			switch random.IntN(4) {
			case 0:
				fields = append(fields[:i:i], fields[i+1:]...)
			case 1:
				fields[i] = words[random.IntN(len(words))]
			case 2:
				j := random.IntN(len(fields))
				fields[i], fields[j] = fields[j], fields[i]
			case 3:
				if b := []byte(fields[i]); len(b) > 0 {
					b[random.IntN(len(b))] = "()'\"`,.;*-/=<>!%&|a1 \\"[random.IntN(22)]
					fields[i] = string(b)
				}
			}
			if len(fields) == 0 {
				fields = []string{"SELECT"}
			}
		}
		if checkMySQL(t, c, strings.Join(fields, " ")) {
			read++
		} else {
			refused++
		}
	}
	t.Logf("seed 20180606: %d read, %d refused", read, refused)
	if read < 300 || refused < 500 {
		t.Errorf("%d read and %d refused: the mutations say little", read, refused)
	}
}

// checkMySQL reads and plans a text; a panic inside the translator would show as a refusal that names it.
func checkMySQL(t testing.TB, c reuse.Context, text string) bool {
	statements, r := parse.ParseAs(text, parse.MySQL, c.Dataset)
	if r != nil {
		if strings.Contains(r.Message, "while it was read") {
			t.Errorf("%s: %s", text, r.Message)
		}
		if r.Message == "" || r.Hint == "" && r.ID != "syntax-error" {
			t.Errorf("%s: refused without words: %+v", text, r)
		}
		return false
	}
	for _, s := range statements {
		if s.Kind == parse.KindSelect {
			_, _ = Build(s, []policy.Value{}, c)
		}
	}
	return true
}

func FuzzMySQL(f *testing.F) {
	statements, _ := mysqlCases(f)
	for _, s := range statements {
		f.Add(s)
	}
	c := testContext(f, testPolicy(f))
	f.Fuzz(func(t *testing.T, text string) { checkMySQL(t, c, text) })
}

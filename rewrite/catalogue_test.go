package rewrite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// everyQuery writes the SQL of the golden and random measures and of all statements under the policies of the neighbour
// tests, each text once, sorted by which tables it reads.
func everyQuery(t *testing.T, d dialect.Dialect) (fixture, clinic []string) {
	t.Helper()
	seen := map[string]bool{}
	take := func(list []string, q rewrite.Query) []string {
		texts := []string{q.SQL()}
		for _, s := range q.Proven() {
			texts = append(texts, s.SQL())
		}
		for _, text := range texts {
			if !seen[text] {
				seen[text], list = true, append(list, text)
			}
		}
		return list
	}
	for _, f := range withRandom(t) {
		q, err := rewrite.Render(f.measure, d)
		if err != nil {
			t.Fatal(err)
		}
		fixture = take(fixture, q)
	}
	all := variants(t, d)
	for i, name := range withBounds(all) {
		p := all[name]
		for _, m := range measures(t, p, d, byTurns(everyStatement(), i), privacy.MicroEpsilon(100_000)) {
			if !slices.ContainsFunc(m.query.Tables(), written) {
				clinic = take(clinic, m.query)
			}
		}
		for _, table := range p.Datasets[0].Tables {
			if !table.Public && !written(table) {
				if q, err := rewrite.Probe(table, d); err == nil { // else a column is open
					clinic = take(clinic, q)
				}
			}
		}
	}
	for _, m := range measures(t, parsedFor(t, coarse.Replace(neighbourPolicy), d), d, coarseStatements, privacy.MicroEpsilon(100_000)) {
		clinic = take(clinic, m.query)
	}
	alarms := alarmsOf(t, all["add-remove"], d, alarmStatements)
	for _, m := range alarms {
		if !slices.ContainsFunc(m.query.Tables(), written) {
			clinic = take(clinic, m.query)
		}
	}
	for _, m := range foundMeasures(t) {
		q, err := rewrite.Render(m, d)
		if err != nil {
			t.Fatal(err)
		}
		clinic = take(clinic, q)
	}
	return fixture, clinic
}

// copying is what is written of a snapshot: in PostgreSQL the queries that read the tables, in DuckDB what puts them in
// order and all queries over them.
func copying(t *testing.T, d dialect.Dialect) (fixture, clinic []string) {
	t.Helper()
	of := func(table *policy.Table) (texts []string) {
		e, err := rewrite.Extract(table, d)
		if err != nil {
			t.Fatal(err)
		}
		if d == dialect.PostgreSQL {
			part, err := e.Part(rewrite.Pages{First: 7, End: 4_000_000_000})
			if err != nil {
				t.Fatal(err)
			}
			return []string{e.SQL(), part.SQL()}
		}
		read := e.SQL()
		for _, single := range []bool{false, true} {
			list, err := e.Arrange(rewrite.Arrangement{Staged: "s", Numbers: "v", Heavy: "h", Single: single})
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, list...)
		}
		texts = append(texts, marginalsOf(t, e)...)
		if slices.ContainsFunc(e.Fields, func(f rewrite.Field) bool { return f.OfUnit }) {
			text, err := rewrite.Number(table, []rewrite.Staged{{Table: "a", Field: "u"}, {Table: "b", Field: "j1"}}, "v")
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		for i, text := range texts {
			_, query, _ := strings.Cut(text, "SELECT ")
			texts[i] = "SELECT " + query
		}
		return append(texts, read)
	}
	_, visits, people := tables(t)
	fixture = append(of(visits), of(people)...)
	for _, p := range variants(t, dialect.PostgreSQL) {
		for _, table := range p.Datasets[0].Tables {
			if !table.Public && !written(table) {
				clinic = append(clinic, of(table)...)
			}
		}
	}
	if d == dialect.DuckDB {
		first, second := everyQuery(t, dialect.Snapshot)
		fixture, clinic = append(fixture, first...), append(clinic, second...)
	}
	return fixture, clinic
}

// written reports whether a table is a SELECT of the data owner, whose text is hers.
func written(t *policy.Table) bool { return t.View.Text != "" }

// coarse makes the steps of numbers so large that sums are divided, and a decimal so long that its digits are read as a
// text.
var coarse = strings.NewReplacer("{min: 0, max: 60, step: 5}", "{min: -1000000000, max: 1000000000, step: 100000000}",
	`{name: cost, type: "numeric(6,2)", domain: {min: 0, max: 10, step: 0.5}}`, `{name: cost, type: "numeric(38,20)", domain: {min: 0, max: 999999999999999, step: 1000000000000}}`,
	"{min: -1000, max: 1000, step: 100}", "{min: -1000000000000, max: 1000000000000, step: 1000000000}")

var coarseStatements = []string{`SELECT sum(secs), avg(paid), corr(secs, paid) FROM calls`, `SELECT sum(cost), stddev(minutes) FROM visits`, `SELECT cost, count(*) FROM visits GROUP BY 1`}

func everyStatement() []string {
	list := slices.Concat(joinStatements, lookupStatements, matchStatements, usingStatements, sumStatements, groupStatements, moreStatements, unitStatements, windowStatements, tiedStatements, unionStatements, listedStatements, jointStatements, fullStatements, jointChoices)
	for _, s := range released {
		if !slices.Contains(list, s.text) {
			list = append(list, s.text)
		}
	}
	return list
}

// fixtureTables creates the tables of the golden measures.
func fixtureTables(t *testing.T, duck bool) []string {
	_, visits, people := tables(t)
	list := append([]string{"CREATE SCHEMA clinic"}, schemaSQL(people, "person_id", peopleSpecs, nil, duck)...)
	return append(list, schemaSQL(visits, "person_id", visitsSpecs, nil, duck)...)
}

var (
	parameter    = regexp.MustCompile(`\$\d+`)
	nodeKind     = regexp.MustCompile(`\{([A-Z]+)`)
	functionOIDs = regexp.MustCompile(`:(?:opfuncid|funcid|aggfnoid|winfnoid) (\d+)`)
)

// postgresParts are the functions with the types of their arguments, and the kinds of nodes, that PostgreSQL resolves a
// query into: what an implicit cast calls is among them.
func postgresParts(t *testing.T, conn *pgx.Conn, text string) []string {
	t.Helper()
	ctx := context.Background()
	text = parameter.ReplaceAllString(text, "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'") // a view has no parameters
	if _, err := conn.Exec(ctx, "CREATE OR REPLACE TEMP VIEW it AS "+text); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var tree string
	if err := conn.QueryRow(ctx, "SELECT ev_action::text FROM pg_catalog.pg_rewrite WHERE ev_class = 'pg_temp.it'::pg_catalog.regclass").Scan(&tree); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "DROP VIEW pg_temp.it"); err != nil {
		t.Fatal(err)
	}
	parts, oids := map[string]bool{}, map[string]bool{}
	for _, m := range nodeKind.FindAllStringSubmatchIndex(tree, -1) {
		kind := tree[m[2]:m[3]]
		if kind == "COERCEVIAIO" {
			kind = throughText(tree[m[0]:])
		}
		parts[kind] = true
	}
	for _, m := range functionOIDs.FindAllStringSubmatch(tree, -1) {
		oids[m[1]] = true
	}
	rows, err := conn.Query(ctx, "SELECT o::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.unnest($1::pg_catalog.text[]) AS o", slices.Collect(maps.Keys(oids)))
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Sorted(maps.Keys(parts)), names...)
}

// throughText names a conversion through a value's text, which is at the beginning of a node's text: to text, of a
// constant, or to whatever the type is.
func throughText(node string) string {
	depth, end := 0, 0
	for end = 0; end < len(node) && (depth > 0 || end == 0); end++ {
		switch node[end] {
		case '{':
			depth++
		case '}':
			depth--
		}
	}
	whole := node[:end]
	to := whole[strings.LastIndex(whole, ":resulttype ")+len(":resulttype "):]
	to, _, _ = strings.Cut(to, " ")
	inner := strings.TrimPrefix(whole, "{COERCEVIAIO :arg ")
	switch {
	case to == "25" || to == "1043":
		return "COERCEVIAIO to text"
	case strings.HasPrefix(inner, "{CONST"):
		return "COERCEVIAIO of a constant"
	}
	return "COERCEVIAIO to type " + to
}

// duckParts are the functions, operators and casts of a query as DuckDB's parser sees it.
func duckParts(t *testing.T, db *sql.DB, text string) []string {
	t.Helper()
	parts := map[string]bool{}
	duckNode(duckTree(t, db, text), parts)
	return slices.Sorted(maps.Keys(parts))
}

// duckTree is what DuckDB's parser makes of a query, without where in the text its parts are.
func duckTree(t *testing.T, db *sql.DB, text string) any {
	t.Helper()
	var answer string
	if err := db.QueryRow("SELECT json_serialize_sql($1::VARCHAR)::VARCHAR", text).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(answer), &tree); err != nil || tree["error"] != false {
		t.Fatalf("%v %v\n%s", err, tree["error_message"], text)
	}
	unplaced(tree)
	return tree
}

func unplaced(node any) {
	switch v := node.(type) {
	case []any:
		for _, x := range v {
			unplaced(x)
		}
	case map[string]any:
		delete(v, "query_location")
		for _, x := range v {
			unplaced(x)
		}
	}
}

var duckKinds = map[string]string{
	"COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHAN": ">",
	"COMPARE_GREATERTHANOREQUALTO": ">=", "COMPARE_IN": "IN", "COMPARE_NOT_IN": "NOT IN", "CONJUNCTION_AND": "AND", "CONJUNCTION_OR": "OR", "OPERATOR_NOT": "NOT",
	"OPERATOR_IS_NULL": "IS NULL", "OPERATOR_IS_NOT_NULL": "IS NOT NULL", "OPERATOR_COALESCE": "coalesce", "CASE_EXPR": "CASE", "COLUMN_REF": "column",
	"VALUE_CONSTANT": "constant", "STAR": "*", "SUBQUERY": "sub-query",
}

func duckNode(node any, parts map[string]bool) {
	switch v := node.(type) {
	case []any:
		for _, x := range v {
			duckNode(x, parts)
		}
	case map[string]any:
		if _, expression := v["class"]; expression {
			parts[duckName(v)] = true
		}
		for _, x := range v {
			duckNode(x, parts)
		}
	}
}

// duckName names an expression as the catalogue does, without types.
func duckName(v map[string]any) string {
	kind := fmt.Sprint(v["type"])
	if name, ok := duckKinds[kind]; ok {
		return name
	}
	if kind == "OPERATOR_CAST" {
		of := "…"
		child := v["child"].(map[string]any)
		for child["type"] == "OPERATOR_CAST" {
			child = child["child"].(map[string]any)
		}
		isConstant := func(v any) bool { return v.(map[string]any)["type"] == "VALUE_CONSTANT" }
		if list, ok := child["children"].([]any); isConstant(child) {
			of = "constant"
		} else if ok && child["function_name"] == "list_value" && !slices.ContainsFunc(list, func(v any) bool { return !isConstant(v) }) {
			of = "constants"
		}
		name := "CAST(" + of + " AS " + fmt.Sprint(v["cast_type"].(map[string]any)["id"]) + ")"
		if v["try_cast"] == true {
			return "TRY_" + strings.Replace(name, "constant", "…", 1)
		}
		return name
	}
	return strings.Replace(fmt.Sprint(v["function_name"]), "count_star", "count", 1)
}

// unlisted are those parts that the catalogue does not have. DuckDB's functions are looked up without their types,
// which its parser does not know.
func unlisted(d dialect.Dialect, parts []string) []string {
	listed := map[string]bool{}
	for _, s := range rewrite.Catalogue() {
		if d == dialect.PostgreSQL {
			for _, p := range s.PostgreSQL {
				listed[p] = true
			}
			continue
		}
		for _, p := range s.DuckDB {
			listed[bare(p)] = true
		}
	}
	return slices.DeleteFunc(parts, func(p string) bool { return listed[p] })
}

// bare is what DuckDB's parser calls an entry: a function without its types.
func bare(p string) string {
	if name, _, call := strings.Cut(p, "("); call && !strings.HasSuffix(name, "CAST") {
		return name
	}
	return p
}

// plant is what a mistake would write into SQL.
type plant struct {
	dialect dialect.Dialect
	name    string
	sql     func(string) string
}

func planted(pattern, with string) func(string) string {
	return func(s string) string { return regexp.MustCompile(pattern).ReplaceAllString(s, with) }
}

var plants = []plant{
	{dialect.PostgreSQL, "a logarithm", planted(`pg_catalog\.count\(\*\)`, "pg_catalog.sum(pg_catalog.ln(1))")},
	{dialect.PostgreSQL, "text read as a number", planted(`t\."age"`, `(t."city")::pg_catalog.int4`)},
	{dialect.PostgreSQL, "an implicit cast of a double", planted(`t\."score"`, `pg_catalog.sqrt(t."age")`)},
	{dialect.DuckDB, "a cast that is not tried", planted(`TRY_CAST\(t\."city" AS VARCHAR\)`, `CAST(t."city" AS UUID)`)},
	{dialect.DuckDB, "a square root", planted(`TRY_CAST\(t\."age" AS BIGINT\)`, `sqrt(TRY_CAST(t."age" AS BIGINT))`)},
	{dialect.DuckDB, "an error by hand", planted(`count\(\*\)`, `sum(error('x'))`)},
}

// TestCatalogue: generated SQL holds nothing but what the catalogue lists.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	pg, duck := postgresConn(t, fixtureTables(t, false)), duckDB(t, nil)
	clinic := postgresConn(t, neighbourTables)
	for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
		first, second := everyQuery(t, d)
		more, others := copying(t, d)
		first, second = append(first, more...), append(second, others...)
		texts := 0
		used := map[string]bool{}
		for i, list := range [][]string{first, second} {
			for _, text := range list {
				var parts []string
				switch {
				case d == dialect.DuckDB:
					parts = duckParts(t, duck, text)
				case i == 0:
					parts = postgresParts(t, pg, text)
				default:
					parts = postgresParts(t, clinic, text)
				}
				for _, p := range parts {
					used[p] = true
				}
				texts++
				if more := unlisted(d, parts); len(more) > 0 {
					t.Errorf("%s: %v is not in the catalogue\n%s", d, more, text)
					return
				}
			}
		}
		t.Logf("%s: %d texts, %d different functions, operators, casts and kinds of nodes", d, texts, len(used))
		for _, s := range rewrite.Catalogue() {
			for _, p := range map[dialect.Dialect][]string{dialect.PostgreSQL: s.PostgreSQL, dialect.DuckDB: s.DuckDB}[d] {
				if !s.Total && !used[p] && (d == dialect.PostgreSQL || !used[bare(p)]) {
					t.Errorf("%s: %s is in the catalogue, and nothing was written with it", d, p)
				}
			}
		}
	}
}

// TestCatalogueFindsPlants: a function that can fail, planted in the SQL of the golden measures, is found.
func TestCatalogueFindsPlants(t *testing.T) {
	pg, duck := postgresConn(t, fixtureTables(t, false)), duckDB(t, nil)
	for _, p := range plants {
		found := false
		for _, f := range features(t) {
			q, err := rewrite.Render(f.measure, p.dialect)
			if err != nil {
				t.Fatal(err)
			}
			text := p.sql(q.SQL())
			if text == q.SQL() {
				continue
			}
			if p.dialect == dialect.DuckDB {
				found = len(unlisted(p.dialect, duckParts(t, duck, text))) > 0
			} else if _, err := pg.Prepare(context.Background(), "", text); err == nil { // else PostgreSQL itself refuses its types
				found = len(unlisted(p.dialect, postgresParts(t, pg, text))) > 0
			} else {
				continue
			}
			break
		}
		if !found {
			t.Errorf("%s: %s is not found", p.dialect, p.name)
		}
	}
}

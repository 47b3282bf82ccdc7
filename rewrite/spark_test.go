package rewrite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Spark runs the SQL of measures over the very Parquet files that DuckDB has written, and both count what the twin
// counts. These tests run in `make spark`.

// sparkTypes are what Spark calls the types of the test tables.
var sparkTypes = strings.NewReplacer("` int", "` INT", "double precision", "DOUBLE", "timestamptz", "TIMESTAMP", "timestamp", "TIMESTAMP_NTZ", "integer", "INT", "real", "FLOAT", "uuid", "STRING",
	"text", "STRING", "varchar(20)", "STRING", "numeric", "DECIMAL", "smallint", "SMALLINT", "bigint", "BIGINT", "boolean", "BOOLEAN", "date", "DATE")

// sparkTable writes a table of DuckDB's as a Parquet file, and has Spark read it under the same name.
func sparkTable(t *testing.T, server *sparktest.Server, duck *sql.DB, schema, name string, columns []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	var items, declared []string
	for _, c := range columns {
		column, kind, _ := strings.Cut(c, " ")
		items, declared = append(items, column), append(declared, "`"+column+"` "+kind)
		if kind == "uuid" {
			items[len(items)-1] = column + "::VARCHAR AS " + column
		}
		if kind == "numeric" {
			declared[len(declared)-1] = "`" + column + "` DECIMAL(38,9)"
		}
		declared[len(declared)-1] = sparkTypes.Replace(declared[len(declared)-1])
	}
	for _, text := range []string{fmt.Sprintf("COPY (SELECT %s FROM %s.%s) TO '%s' (FORMAT parquet, PER_THREAD_OUTPUT true)", strings.Join(items, ", "), schema, name, dir)} {
		if _, err := duck.Exec(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	server.Exec(t, "CREATE TABLE "+schema+"."+name+" ("+strings.Join(declared, ", ")+") USING PARQUET LOCATION 'file:"+dir+"'")
}

// sparkQueries runs queries in one session.
func sparkQueries(t *testing.T, server *sparktest.Server) engine {
	session, err := hive.Settled(context.Background(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return func(t *testing.T, text string, args []any) (list [][]int64) {
		t.Helper()
		if len(args) > 0 {
			t.Fatal("Spark's SQL has arguments")
		}
		err := session.Query(t.Context(), text, func(r hive.Row) error {
			row := make([]int64, len(r))
			for i, v := range r {
				if v.Null || v.Kind != hive.Int && v.Kind != hive.Bigint {
					return fmt.Errorf("column %d is no number", i)
				}
				row[i] = v.Whole
			}
			list = append(list, row)
			return nil
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return list
	}
}

// columnsOf are the columns of a test table as schemaSQL declares them.
func columnsOf(specs []spec) []string {
	list := []string{"person_id bigint"}
	for _, s := range specs {
		list = append(list, s.name+" "+s.kind)
	}
	return list
}

// sessions is how many sessions ask at a time: while a statement of one is planned, another's runs.
const sessions = 3

// TestSparkAgreesWithTheTwin is TestEnginesAgreeWithTheTwin, and TestHostileRowsLieInGosCells, on Spark: over rows of
// both kinds in one table.
func TestSparkAgreesWithTheTwin(t *testing.T) {
	server := sparktest.Shared(t)
	_, visits, people := tables(t)
	r := rand.New(rand.NewPCG(20240611, 1))
	both := func(table *policy.Table, rows, units int) []stored {
		list := generate(r, table, rows, units)
		for _, row := range hostileRows(table) {
			if id, ok := row.unit.(int64); ok && id >= 0 && id < math.MaxInt64 {
				row.unit = id + 1_000_000 // of nobody who is generated
			}
			list = append(list, row)
		}
		return list
	}
	peopleRows, visitsRows := both(people, 1500, 900), both(visits, 900, 150)
	duck := duckDB(t, append(append([]string{"CREATE SCHEMA clinic"}, schemaSQL(people, "person_id", peopleSpecs, peopleRows, true)...), schemaSQL(visits, "person_id", visitsSpecs, visitsRows, true)...))
	clinic(t, server)
	sparkTable(t, server, duck, "clinic", "people", columnsOf(peopleSpecs))
	sparkTable(t, server, duck, "clinic", "visits", columnsOf(visitsSpecs))
	list := append(withRandom(t), otherOrders(t)...)
	if len(list) < 150 {
		t.Errorf("%d measures", len(list))
	}
	t.Run("measures", func(t *testing.T) {
		for i := range sessions {
			var share []feature
			for k := i; k < len(list); k += sessions {
				share = append(share, list[k])
			}
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				compareThese(t, share, dialect.Spark, sparkQueries(t, server), peopleRows, visitsRows, byGo{})
			})
		}
	})
}

// clinic makes the database of the tests' tables, until the test's end.
func clinic(t *testing.T, server *sparktest.Server) {
	t.Helper()
	server.Exec(t, "CREATE DATABASE clinic")
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE clinic CASCADE") })
}

// TestSparkTextsAreReadAlike is TestTextsAreReadAlike on Spark.
func TestSparkTextsAreReadAlike(t *testing.T) {
	server := sparktest.Shared(t)
	fill := textsFill()
	own := postgresTexts(t, append(slices.Clone(fill), fmt.Sprintf(`CREATE VIEW clinic.notes AS SELECT person_id, left(note, %d) COLLATE "C" AS note, CASE WHEN kind IS NOT NULL THEN kind END AS kind FROM clinic.stored`, policy.MaxTextLength)))
	clinic(t, server)
	sparkTable(t, server, duckDB(t, fill), "clinic", "stored", []string{"person_id int", "note text", "kind text"})
	p := parsedFor(t, strings.Replace(textsPolicy, `"duckdb:warehouse.duckdb"`, `"spark://dpproxy@127.0.0.1/clinic"`, 1), dialect.Spark)
	ask, known := sparkQueries(t, server), map[string][][]int64{}
	joinsOn(t, p, dialect.Spark, func(t *testing.T, text string, args []any) [][]int64 {
		if known[text] == nil { // each is asked for as the text in full, and where there are others as the shortest
			known[text] = ask(t, text, args)
		}
		return known[text]
	}, own, textStatements)
}

// TestSparkTextsTakeBoundedWork is TestTextsTakeBoundedWork on Spark.
func TestSparkTextsTakeBoundedWork(t *testing.T) {
	server := sparktest.Shared(t)
	clinic(t, server)
	server.Exec(t, "CREATE TABLE clinic.stored (person_id INT, note STRING, kind STRING) USING PARQUET",
		fmt.Sprintf("INSERT INTO clinic.stored SELECT CAST(id AS INT), repeat('a', %d), 'a' FROM range(200)", 2*policy.MaxTextLength))
	p := parsedFor(t, strings.Replace(textsPolicy, `"duckdb:warehouse.duckdb"`, `"spark://dpproxy@127.0.0.1/clinic"`, 1), dialect.Spark)
	slowestPatterns(t, p, dialect.Spark, sparkQueries(t, server))
}

// sparkWords are what Spark's SQL is made of beside what is in the catalogue.
var (
	sparkTokens  = regexp.MustCompile("`(?:[^`]|``)*`|'[^']*'|IS NOT NULL|IS NULL|NOT IN|[A-Za-z_][A-Za-z_0-9]*|[0-9]+|[<>]=|<>|\\|\\||[-+*/%^&=<>]")
	sparkClauses = strings.Fields("WITH SELECT FROM WHERE HAVING GROUP BY ORDER ASC DESC NULLS FIRST LAST AS ON JOIN LEFT UNION ALL DISTINCT FILTER OVER PARTITION ROWS RANGE BETWEEN UNBOUNDED PRECEDING FOLLOWING CURRENT ROW " +
		"WHEN THEN ELSE END true false NULL X BIGINT INT SMALLINT DOUBLE FLOAT STRING BOOLEAN DATE TIMESTAMP TIMESTAMP_NTZ DECIMAL")
	sparkNames = regexp.MustCompile(`^([a-z][a-z]?[0-9]*|one|pos|col|units|scan|measure)$`) // aliases and columns that we name
)

// TestSparkCatalogue: all SQL that the tests write for Spark is made of what the catalogue lists, texts are hexadecimal
// digits, and each entry of the catalogue's is in some of it.
func TestSparkCatalogue(t *testing.T) {
	t.Parallel()
	fixture, clinic := everyQuery(t, dialect.Spark)
	known := map[string]bool{}
	for _, s := range rewrite.Catalogue() {
		for _, w := range s.Spark {
			known[w] = false
		}
	}
	for _, text := range append(fixture, clinic...) {
		tokens := sparkTokens.FindAllString(text, -1)
		for i, token := range tokens {
			_, listed := known[token]
			switch {
			case listed:
				known[token] = true
			case token[0] == '`', token[0] >= '0' && token[0] <= '9', slices.Contains(sparkClauses, token), sparkNames.MatchString(token):
			case token == "-" && i+1 < len(tokens) && tokens[i+1][0] >= '0' && tokens[i+1][0] <= '9': // a number in a list
			case token == "*" && (i == 0 || tokens[i-1] == "SELECT" || tokens[i-1] == "count" || sparkNames.MatchString(tokens[i-1])):
			case token[0] == '\'':
				if !regexp.MustCompile(`^'[-+.:,0-9A-Za-z ]*'$`).MatchString(token) && token != "'.'" && token != "''" {
					t.Fatalf("the constant %s in\n%s", token, text)
				}
			default:
				t.Fatalf("%q is not in the catalogue, in\n%s", token, text)
			}
		}
	}
	known["CAST(… AS STRING)"] = true // of which the catalogue says more than one token
	for word, there := range known {
		if !there {
			t.Errorf("the catalogue lists %s, which no measure writes", word)
		}
	}
}

// TestSparkLeavesAsDuckDB: leaves of joins, sub-queries, sums, groups and window functions count over one set of
// Parquet files what DuckDB counts, of random people and of hostile rows.
func TestSparkLeavesAsDuckDB(t *testing.T) {
	server := sparktest.Shared(t)
	r := rand.New(rand.NewPCG(149, 1))
	rows := nobody(r, 40)
	for id := range 40 {
		rows.add(person(r, id, 6, false))
	}
	var random strings.Builder
	for table, list := range rows {
		fmt.Fprintf(&random, "INSERT INTO clinic.%s VALUES %s;\n", table, strings.Join(list, ", "))
	}
	for name, script := range map[string]string{"random": random.String(), "hostile": hostileScript(dialect.DuckDB)} {
		t.Run(name, func(t *testing.T) {
			duck := duckDB(t, neighbourTables)
			if _, err := duck.Exec(script); err != nil {
				t.Fatal(err)
			}
			clinic(t, server)
			for _, text := range neighbourTables[1:] {
				table, columns, _ := strings.Cut(strings.TrimPrefix(text, "CREATE TABLE clinic."), " (")
				columns = strings.ReplaceAll(strings.TrimSuffix(columns, ")"), " PRIMARY KEY", "")
				sparkTable(t, server, duck, "clinic", table, strings.Split(columns, ", "))
			}
			var asked []measured
			var others []measured
			for i, variant := range []string{"add-remove", "add-remove, groups"} {
				var statements []string
				for k, text := range everyStatement() {
					if k%4 == 2*i+count(name == "hostile") {
						statements = append(statements, text)
					}
				}
				asked = append(asked, measures(t, variants(t, dialect.Spark)[variant], dialect.Spark, statements, privacy.MicroEpsilon(100_000))...)
				others = append(others, measures(t, variants(t, dialect.DuckDB)[variant], dialect.DuckDB, statements, privacy.MicroEpsilon(100_000))...)
			}
			if len(asked) != len(others) || len(asked) < 100 {
				t.Fatalf("%d measures for Spark, %d for DuckDB", len(asked), len(others))
			}
			t.Run("measures", func(t *testing.T) {
				for i := range sessions {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						t.Parallel()
						spark, native := sparkQueries(t, server), duckQueries(duck)
						for k := i; k < len(asked); k += sessions {
							got, want := spark(t, asked[k].query.SQL(), nil), native(t, others[k].query.SQL(), others[k].query.Args())
							slices.SortFunc(got, slices.Compare)
							slices.SortFunc(want, slices.Compare)
							if !slices.EqualFunc(got, want, slices.Equal) {
								t.Errorf("%s:\nSpark  %v\nDuckDB %v", asked[k].statement, got, want)
							}
						}
					})
				}
			})
			t.Logf("%d measures", len(asked))
		})
	}
}

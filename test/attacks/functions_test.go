package attacks

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/test/kit"
)

// catalogFunctions are calls of every function of PostgreSQL's and DuckDB's catalogs, by name and numbers of arguments:
// a column of the private table where the first argument may be one, and NULL.
func catalogFunctions(t *testing.T, w *watched) (calls map[string]string, effects map[string]bool) {
	t.Helper()
	calls, effects = map[string]string{}, map[string]bool{}
	add := func(name, first string, arguments int) {
		list := slices.Repeat([]string{"NULL"}, arguments)
		column := map[string]string{"S": "note", "N": "age", "B": "hiv", "A": "note", "P": "note"}[first]
		if arguments > 0 && column != "" {
			list[0] = column
		}
		calls[fmt.Sprintf("%s %d", name, arguments)] = `"` + name + `"(` + strings.Join(list, ", ") + `)`
	}
	for _, line := range w.owner(`SELECT DISTINCT p.proname || ' ' || p.pronargs || ' ' || coalesce(max(ty.typcategory::text), '-') || ' ' || bool_or(p.provolatile = 'v')
		FROM pg_proc p LEFT JOIN pg_type ty ON ty.oid = p.proargtypes[0] WHERE p.prorettype NOT IN ('trigger'::regtype, 'internal'::regtype) GROUP BY p.proname, p.pronargs`) {
		var name, first string
		var arguments int
		var volatile bool
		if _, err := fmt.Sscan(line, &name, &arguments, &first, &volatile); err != nil {
			t.Fatal(line, err)
		}
		add(name, first, arguments)
		effects[name] = effects[name] || volatile
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT DISTINCT function_name, len(parameters) FROM duckdb_functions() WHERE regexp_matches(function_name, '^[a-z_0-9]+$')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var arguments int
		if err := rows.Scan(&name, &arguments); err != nil {
			t.Fatal(err)
		}
		add(name, "A", arguments)
	}
	return calls, effects
}

// harmless are, beside those that tell nothing (package pgcatalog), functions without a fixed value that may be called
// above the counts: they tell the time, or are random, or tell of the sandbox's own empty relations, or are answered by
// the proxy for the session itself.
var harmless = []string{"pg_sleep", "pg_cancel_backend", "pg_terminate_backend",
	"random", "clock_timestamp", "timeofday", "pg_advisory_unlock_all", "pg_database_size", "pg_indexes_size", "pg_total_relation_size",
	"pg_is_in_recovery", "pg_jit_available", "pg_partition_ancestors", "pg_partition_tree", "pg_tablespace_size", "pg_table_size", "pg_relation_size"}

// reaching are functions that run SQL from text, or read files, settings of others, or the network.
var reaching = regexp.MustCompile(`to_xml|xpath|^xml|pg_read|pg_ls_|^lo_|dblink|ts_stat|^query|_scan|^read_|glob|getenv|sniff|^pragma|serialized_sql|current_query|pg_sleep|nextval|^setval|^set_config|summary|parquet|which_secret|^duckdb_|storage_info|histogram`)

// columns are those of people that calls have for arguments.
var columns = regexp.MustCompile(`\b(note|age|hiv)\b`)

// calledWithNull is the name of a function that is called with NULL first, in small letters.
var calledWithNull = regexp.MustCompile(`([a-z_0-9]+)\(null`)

// TestEveryFunctionOfTheCatalogs is threat T43: a call of each over the private rows, and above them, is refused
// without a statement at the database, or is of a function on the list, or of one that may be called above the counts,
// of constants, which the sandbox answers first; nothing on the lists has an effect, and no name but those that are
// generated reaches the database.
func TestEveryFunctionOfTheCatalogs(t *testing.T) {
	kit.Beside(t)
	w := watch(t)
	calls, effects := catalogFunctions(t, w)
	listed := map[string]bool{"coalesce": true, "nullif": true, "greatest": true, "least": true, "current_date": true}
	facts, err := os.ReadFile("../../planner/scalar/catalog.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^function (\S+)`).FindAllStringSubmatch(string(facts), -1) {
		listed[m[1]] = true
	}
	alice := w.Connect("alice", "lab")
	ask := func(sql string) kit.Answer {
		a, err := alice.TryAsk(sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			alice = w.Connect("alice", "lab")
		}
		return a
	}
	refused, over, above, begun := 0, map[string]bool{}, map[string]bool{}, w.logged()
	for call, text := range calls {
		name, _, _ := strings.Cut(call, " ")
		before := w.logged()
		if a := ask(`SELECT count(*) FROM people WHERE ` + text + ` IS NULL`); a.Err == nil {
			over[name] = true
		} else if refused++; w.logged() != before {
			t.Errorf("%s is refused, and the database was asked: %.300s", text, w.since(before))
		}
		before = w.logged()
		if a := ask(`SELECT ` + columns.ReplaceAllString(text, "NULL")); a.Err == nil {
			above[name] = true
			always, constant := pgcatalog.Constant(name)
			if !constant {
				always = "NULL"
			}
			if pgcatalog.Silent(name) != nil && len(a.Rows) > 0 && a.Rows[0][0] != always {
				t.Errorf("%s tells %q", text, a.Rows)
			}
		}
		if w.logged() != before {
			t.Errorf("%s above the counts asks the database: %.300s", text, w.since(before))
		}
	}
	for name := range over {
		if !listed[name] && !above[name] {
			t.Errorf("%s is called over the private rows, and is not on the list", name)
		}
	}
	for name := range above {
		if (effects[name] || reaching.MatchString(name)) && !slices.Contains(harmless, name) && pgcatalog.Silent(name) == nil {
			t.Errorf("%s is called above the counts", name)
		}
	}
	asked := map[string]bool{}
	for _, call := range calledWithNull.FindAllStringSubmatch(strings.ToLower(w.since(begun)), -1) {
		asked[call[1]] = true
	}
	for call := range calls {
		name, _, _ := strings.Cut(call, " ")
		if !(over[name] && listed[name]) && len(name) > 3 && asked[strings.ToLower(name)] {
			t.Errorf("the database was asked for %s", name)
		}
	}
	if len(calls) < 3000 || refused == 0 || len(over) == 0 {
		t.Errorf("%d calls, %d refused, %d functions over rows", len(calls), refused, len(over))
	}
	threats.Reached(t, "T43", "%d calls of both catalogs over the rows: %d refused without a statement at the database, the others are of %d listed functions; above the counts %d functions may be called, none with an effect",
		len(calls), refused, len(over), len(above))
}

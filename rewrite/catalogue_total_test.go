package rewrite_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// worstPostgres are values of each type at the ends of what PostgreSQL holds.
var worstPostgres = map[string][]string{
	"smallint":                    {"NULL", "0", "-32768", "32767"},
	"integer":                     {"NULL", "0", "-2147483648", "2147483647"},
	"bigint":                      {"NULL", "0", "-9223372036854775808", "9223372036854775807"},
	"real":                        {"NULL", "0", "-0", "NaN", "Infinity", "-Infinity", "1e-45", "3.4028235e38", "-3.4028235e38"},
	"double precision":            {"NULL", "0", "-0", "NaN", "Infinity", "-Infinity", "5e-324", "-5e-324", "1.7976931348623157e308", "-1.7976931348623157e308"},
	"numeric":                     {"NULL", "0", "NaN", "Infinity", "-Infinity", "1e131071", "-1e131071", "1e-16383", "0." + strings.Repeat("9", 16383)},
	"text":                        {"NULL", "", "NULL", `\`, "\x01", "e\u0301", "\U0010ffff", strings.Repeat("z", 1<<20)},
	"date":                        {"NULL", "infinity", "-infinity", "4713-01-01 BC", "5874897-12-31"},
	"timestamp without time zone": {"NULL", "infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59.999999"},
	"timestamp with time zone":    {"NULL", "infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59.999999+00"},
	"uuid":                        {"NULL", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	"boolean":                     {"NULL", "true", "false"},
}

// worstDuck are the same of DuckDB's types.
var worstDuck = map[string][]string{
	"BOOLEAN": {"NULL", "true", "false"}, "INTEGER": {"NULL", "0", "-2147483648", "2147483647"}, "BIGINT": {"NULL", "0", "-9223372036854775808", "9223372036854775807"},
	"HUGEINT": {"NULL", "0", "-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"},
	"FLOAT":   {"NULL", "0", "-0", "NaN", "Infinity", "-Infinity", "1e-45", "3.4028235e38"}, "DOUBLE": {"NULL", "0", "-0", "NaN", "Infinity", "-Infinity", "5e-324", "1.7976931348623157e308", "-1.7976931348623157e308"},
	"DECIMAL(38,9)": {"NULL", "0", strings.Repeat("9", 29) + ".999999999", "-" + strings.Repeat("9", 29) + ".999999999"}, "DECIMAL(18,2)": {"NULL", "0", "9999999999999999.99"},
	"TINYINT": {"NULL", "-128", "127"}, "SMALLINT": {"NULL", "-32768", "32767"}, "UINTEGER": {"0", "4294967295"}, "UBIGINT": {"0", "18446744073709551615"}, "ENUM('a', '')": {"NULL", "a", ""},
	"TIMESTAMP_S": {"NULL", "infinity", "-infinity", "294247-01-10 04:00:54", "290309-12-22 (BC) 00:00:00"}, "TIMESTAMP_MS": {"NULL", "infinity", "-infinity", "294247-01-10 04:00:54.775", "290309-12-22 (BC) 00:00:00"},
	"TIMESTAMP_NS": {"NULL", "infinity", "-infinity", "2262-04-11 23:47:16.854775806", "1677-09-22 00:00:00"},
	"VARCHAR":      append([]string{"1e400", "infinity", "2024-02-30", "12:61", "0x1", "1_000", "tru", "{}", "99999999999999999999999999999999999999999"}, worstPostgres["text"]...),
	"UUID":         worstPostgres["uuid"], "DATE": {"NULL", "infinity", "-infinity", "5881580-07-10", "5877642-06-25 (BC)"},
	"TIMESTAMP": {"NULL", "infinity", "-infinity", "294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00"}, "TIMESTAMP WITH TIME ZONE": {"NULL", "infinity", "-infinity", "294247-01-10 04:00:54.775806+00", "290309-12-22 (BC) 00:00:00+00"},
}

// readAs are the types of columns, and of text that was read from files, that each declared type is read from in
// DuckDB: package backend refuses others, because not every such cast can be tried (a TIMESTAMP's as a TIMESTAMP WITH
// TIME ZONE).
var readAs = map[string][]string{
	"BOOLEAN": {"BOOLEAN", "VARCHAR"}, "HUGEINT": {"VARCHAR", "DECIMAL(38,9)", "HUGEINT", "BIGINT"}, "UUID": {"UUID", "VARCHAR"}, "DATE": {"DATE", "VARCHAR"}, "TIMESTAMP WITH TIME ZONE": {"TIMESTAMP WITH TIME ZONE", "VARCHAR"},
	"BIGINT": {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "UBIGINT", "VARCHAR", "DECIMAL(38,9)", "DECIMAL(18,2)"}, "FLOAT": {"FLOAT", "VARCHAR"}, "DOUBLE": {"DOUBLE", "FLOAT", "VARCHAR"},
	"DECIMAL": {"DECIMAL(38,9)", "DECIMAL(18,2)", "TINYINT", "INTEGER", "BIGINT", "HUGEINT", "VARCHAR"}, "VARCHAR": {"VARCHAR", "ENUM('a', '')", "UUID"},
	"TIMESTAMP": {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "VARCHAR"},
}

// valuesOf writes a list of values as rows of one column x.
func valuesOf(list []string, kind, alias string) string {
	var rows []string
	for _, v := range list {
		if v == "NULL" {
			rows = append(rows, "(CAST(NULL AS "+kind+"))")
		} else {
			rows = append(rows, "(CAST('"+strings.ReplaceAll(v, "'", "''")+"' AS "+kind+"))")
		}
	}
	return "(VALUES " + strings.Join(rows, ", ") + ") AS " + alias + "(x)"
}

// calls are queries that call a function of the catalogue with all worst values of its arguments' types together.
func calls(name string, args []string, worst map[string][]string) string {
	var from, list []string
	for i, kind := range args {
		alias := "abc"[i : i+1]
		from, list = append(from, valuesOf(worst[kind], kind, alias)), append(list, alias+".x")
	}
	return "SELECT count(r) FROM (SELECT " + name + "(" + strings.Join(list, ", ") + ") AS r FROM " + strings.Join(from, ", ") + ") AS q"
}

// totalPostgres are the calls of what the catalogue says is total in PostgreSQL.
func totalPostgres() map[string]string {
	queries := map[string]string{}
	for _, s := range rewrite.Catalogue() {
		for _, p := range s.PostgreSQL {
			name, rest, call := strings.Cut(p, "(")
			args := strings.Split(strings.TrimSuffix(rest, ")"), ",")
			if !s.Total || !call || rest == ")" || strings.HasPrefix(rest, "any") || rest == `"any")` {
				continue
			}
			queries[p] = calls("pg_catalog."+name, args, worstPostgres)
		}
	}
	for kind, list := range worstPostgres {
		queries["text of "+kind] = "SELECT count((x)::pg_catalog.text) FROM " + valuesOf(list, kind, "a")
		queries["greatest of "+kind] = "SELECT count(GREATEST(a.x, LEAST(a.x, b.x))) FROM " + valuesOf(list, kind, "a") + ", " + valuesOf(list, kind, "b")
		if kind == "text" || kind == "uuid" {
			queries["place of "+kind] = "SELECT count(pg_catalog.array_position(ARRAY['00000000-0000-0000-0000-000000000000'::" + kind + "], x)) FROM " + valuesOf(list, kind, "a")
		}
	}
	return queries
}

// totalDuck are the same in DuckDB: calls, casts that are tried, of every type to every type, comparisons and
// aggregates.
func totalDuck() map[string]string {
	queries := map[string]string{}
	for _, s := range rewrite.Catalogue() {
		for _, p := range s.DuckDB {
			if target, ok := strings.CutPrefix(p, "TRY_CAST(… AS "); ok {
				target = strings.Replace(strings.TrimSuffix(target, ")"), "DECIMAL", "DECIMAL(18,2)", 1)
				for _, kind := range readAs[strings.Replace(target, "(18,2)", "", 1)] {
					queries[p+" of "+kind] = "SELECT count(TRY_CAST(x AS " + target + ")) FROM " + valuesOf(worstDuck[kind], kind, "a")
				}
				continue
			}
			name, rest, call := strings.Cut(p, "(")
			args := strings.Split(strings.TrimSuffix(rest, ")"), ", ")
			if _, known := worstDuck[args[0]]; s.Total && call && known && !strings.HasPrefix(name, "range") {
				queries[p] = calls(name, args, worstDuck)
			}
		}
	}
	for kind, list := range worstDuck {
		a, b := valuesOf(list, kind, "a"), valuesOf(list, kind, "b")
		queries["comparisons of "+kind] = "SELECT count(a.x < b.x OR a.x = b.x OR a.x IN (b.x) OR a.x >= b.x), count(greatest(a.x, least(a.x, b.x))), count(hash(a.x, b.x)), min(a.x), max(a.x), count(CAST(a.x AS VARCHAR)) FROM " + a + ", " + b
	}
	return queries
}

// hashed is a hash of the worst texts.
var hashed = "SELECT count(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(x, 'UTF8')), 'hex')) FROM " + valuesOf(worstPostgres["text"], "text", "a")

// alsoTotal are calls of entries whose arguments have no one type, or none: of each dialect, the entry and a query.
var alsoTotal = map[dialect.Dialect]map[string]string{
	dialect.PostgreSQL: {
		"array_position(anycompatiblearray,anycompatible)": "SELECT count(pg_catalog.array_position(ARRAY['a', '']::text[], x)) FROM " + valuesOf(worstPostgres["text"], "text", "a"),
		"convert_to(text,name)":                            hashed, "sha256(bytea)": hashed, "encode(bytea,text)": hashed,
		"unnest(anyarray)": "SELECT count(x) FROM pg_catalog.unnest(ARRAY[NULL, '', 'a']::text[]) AS x",
		"count()":          "SELECT pg_catalog.count(*) FROM " + valuesOf(worstPostgres["numeric"], "numeric", "a"),
		`count("any")`:     "SELECT pg_catalog.count(x), pg_catalog.count(DISTINCT x) FROM " + valuesOf(worstPostgres["double precision"], "double precision", "a"),
		"row_number()":     "SELECT count(r) FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY x ORDER BY x) AS r FROM " + valuesOf(worstPostgres["text"], "text", "a") + ") AS q",
		"dense_rank()":     "SELECT count(r) FROM (SELECT pg_catalog.dense_rank() OVER (ORDER BY x) AS r FROM " + valuesOf(worstPostgres["numeric"], "numeric", "a") + ") AS q",
	},
	dialect.DuckDB: {
		"list_position(VARCHAR[], VARCHAR)": "SELECT count(list_position(['a', '', NULL], x)) FROM " + valuesOf(worstDuck["VARCHAR"], "VARCHAR", "a"),
		"list_position(BIGINT[], BIGINT)": "SELECT count(list_position([0::BIGINT, NULL], x)) FROM " +
			valuesOf(worstDuck["BIGINT"], "BIGINT", "a"),
		"list_position(UUID[], UUID)": "SELECT count(list_position(CAST(['00000000-0000-0000-0000-000000000000'] AS UUID[]), x)) FROM " + valuesOf(worstDuck["UUID"], "UUID", "a"),
		"round(DECIMAL)": "SELECT count(round(CAST(x AS DECIMAL(38,2)))), count(round(CAST(TRY_CAST(x AS DECIMAL(18,2)) AS DECIMAL(18,2)))), count(round(TRY_CAST(x AS DECIMAL(38,37)))) FROM " +
			"(VALUES ('999999999999999999999999999999999999.99'), ('-999999999999999999999999999999999999.99'), ('9999999999999999.99'), ('-9999999999999999.99'), ('9.9999999999999999999999999999999999999'), ('0.5'), (NULL)) AS a(x)",
		"range(BIGINT, BIGINT)": "SELECT count(x) FROM (SELECT unnest(range(0, 1000)) AS x)",
		"count(*)":              "SELECT count(*) FROM " + valuesOf(worstDuck["DOUBLE"], "DOUBLE", "a"),
		"count(ANY)":            "SELECT count(x), count(DISTINCT x) FROM " + valuesOf(worstDuck["DOUBLE"], "DOUBLE", "a"),
		"row_number()":          "SELECT count(r) FROM (SELECT row_number() OVER (PARTITION BY x ORDER BY x) AS r FROM " + valuesOf(worstDuck["VARCHAR"], "VARCHAR", "a") + ")",
		"dense_rank()":          "SELECT count(r) FROM (SELECT dense_rank() OVER (ORDER BY x) AS r FROM " + valuesOf(worstDuck["DOUBLE"], "DOUBLE", "a") + ")",
	},
}

// ofEachType are entries that the queries of every type call, by their own name or as an operator.
var ofEachType = []string{"greatest(T, T)", "least(T, T)", "hash(ANY…)", "min(T)", "max(T)"}

// uncalled are the total entries with arguments that no query calls.
func uncalled(d dialect.Dialect, queries map[string]string) (list []string) {
	for _, s := range rewrite.Catalogue() {
		for _, p := range map[dialect.Dialect][]string{dialect.PostgreSQL: s.PostgreSQL, dialect.DuckDB: s.DuckDB}[d] {
			_, called := queries[p]
			_, of := queries[p+" of "+"VARCHAR"]
			name, _, call := strings.Cut(p, "(")
			if s.Total && call && name != "CAST" && name != "row" && !called && !of && !slices.Contains(ofEachType, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// TestCatalogueIsTotal calls everything that the catalogue says is total with the worst values of its types.
func TestCatalogueIsTotal(t *testing.T) {
	pg, duck := postgresConn(t, nil), duckDB(t, nil)
	postgres, ducks := totalPostgres(), totalDuck()
	maps.Copy(postgres, alsoTotal[dialect.PostgreSQL])
	maps.Copy(ducks, alsoTotal[dialect.DuckDB])
	if list := append(uncalled(dialect.PostgreSQL, postgres), uncalled(dialect.DuckDB, ducks)...); len(list) > 0 {
		t.Errorf("the catalogue says of %v that they are total, and nothing calls them", list)
	}
	if len(uncalled(dialect.PostgreSQL, nil)) < 80 {
		t.Error("entries that nothing calls are not found")
	}
	for name, query := range postgres {
		if _, err := pg.Exec(t.Context(), query); err != nil {
			t.Errorf("PostgreSQL: %s: %.300v", name, err)
		}
	}
	for name, query := range ducks {
		if err := drained(duck, query, nil); err != nil {
			t.Errorf("DuckDB: %s: %.300v", name, err)
		}
	}
	t.Logf("%d calls in PostgreSQL, %d in DuckDB", len(postgres), len(ducks))
	for _, bad := range []string{calls("pg_catalog.int4", []string{"bigint"}, worstPostgres), calls("pg_catalog.ln", []string{"double precision"}, worstPostgres), calls("pg_catalog.date_mi", []string{"date", "date"}, worstPostgres)} {
		if _, err := pg.Exec(t.Context(), bad); err == nil {
			t.Errorf("a planted function does not fail: %.60s", bad)
		}
	}
	if drained(duck, fmt.Sprintf("SELECT count(CAST(x AS INTEGER)) FROM %s", valuesOf(worstDuck["BIGINT"], "BIGINT", "a")), nil) == nil {
		t.Error("a planted cast does not fail")
	}
}

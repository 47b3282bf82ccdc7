package catalog_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// TestCatalogShape: whatever clients ask of the catalogs comes back with the columns and types that a PostgreSQL 15
// server gives the same statement.
func TestCatalogShape(t *testing.T) {
	server := pgtest.Shared(t)
	conn, err := pgx.Connect(context.Background(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var version string
	if err := conn.QueryRow(context.Background(), "SHOW server_version").Scan(&version); err != nil || !strings.HasPrefix(version, "15") {
		t.Skipf("the server is version %s, the catalogs are those of 15 (%v)", version, err)
	}
	compared := 0
	for _, client := range []string{"psql", "pgjdbc", "sqlalchemy", "dbeaver", "metabase", "pandas", "psqlodbc", "superset", "grafana", "redash"} {
		for _, text := range sandboxtest.Recorded(t, client) {
			if !sandboxtest.CatalogOnly(text) {
				continue
			}
			described, err := conn.Prepare(context.Background(), "", text)
			if err != nil {
				continue
			}
			q, refusal := outer.Render(sandboxtest.Parse(t, text))
			if refusal != nil {
				continue
			}
			var want, got []string
			for _, f := range described.Fields {
				want = append(want, fmt.Sprintf("%s:%d", f.Name, f.DataTypeOID))
			}
			own, err := sandboxtest.Own(t).Describe(t.Context(), sandboxtest.Session, q, nil)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			for _, c := range own.Columns {
				got = append(got, fmt.Sprintf("%s:%d", c.Name, c.Type))
			}
			compared++
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s\n    got  %v\n    want %v", text, got, want)
			}
		}
	}
	t.Logf("%d statements compared", compared)
}

// TestCatalogSaysWhatThePolicySays is what alice sees: her datasets, this dataset's tables, herself.
func TestCatalogSaysWhatThePolicySays(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"SELECT datname FROM pg_database ORDER BY 1", "census"},
		{"SELECT relname FROM pg_class WHERE oid >= 16384 AND relkind = 'r' ORDER BY 1", "people visits"},
		{"SELECT table_schema || '.' || table_name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
			"clinic.visits dp.budget dp.charges dp.columns dp.last dp.releases dp.tables public.people"},
		{"SELECT column_name || ' ' || data_type || ' ' || is_nullable FROM information_schema.columns WHERE table_name = 'people' ORDER BY ordinal_position", "age integer YES sex text NO"},
		{"SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'clinic.visits'::regclass AND attnum > 0", "character varying(10)"},
		{"SELECT 'people'::regclass", "people"},
		// A table brings a type of its rows and one of lists of them.
		{"SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname IN ('public', 'clinic') AND reltype > 0 ORDER BY 1", "people visits"},
		{"SELECT t.typname || ' ' || t.typtype::text || ' ' || t.typinput::text || ' ' || format_type(t.oid, -1) || ' ' || t.typrelid::regclass::text FROM pg_class c JOIN pg_type t ON t.oid = c.reltype WHERE relname IN ('people', 'visits', 'budget') ORDER BY 1",
			"budget c record_in dp.budget dp.budget people c record_in people people visits c record_in clinic.visits clinic.visits"},
		{"SELECT a.typname || ' ' || a.oid::regtype::text || ' ' || (a.typelem = t.oid)::text FROM pg_type a JOIN pg_type t ON t.typarray = a.oid WHERE t.typname = 'people'", "_people people[] true"},
		{"SELECT oid::regclass FROM pg_class WHERE relname = 'visits'", "clinic.visits"},
		{"SELECT rolname FROM pg_roles ORDER BY 1", "alice dpproxy"},
		{"SELECT usename FROM pg_stat_activity", "alice"},
		{"SELECT current_setting('server_version')", "15.0 (dpproxy 0.1)"},
		{"SELECT setting FROM pg_settings WHERE name = 'application_name'", "psql"},
		{"SELECT current_user || current_schema() || pg_backend_pid()", "alicepublic4711"},
		{"SELECT array_to_string(current_schemas(true), ',')", "pg_catalog,public"},
		{"SELECT col_description('people'::regclass, 1)", "0 to 119; GROUP BY age; values outside count as the nearest end"},
		{"SELECT table_name || ' ' || column_name || ' ' || domain FROM dp.columns ORDER BY 1", "people age 0 to 119 people sex one of Female, Male visits kind one of a"},
		{"SELECT table_name || ' ' || max_rows_per_unit FROM dp.tables ORDER BY 1", "people 1 visits 5"},
		{"SELECT typname FROM pg_type WHERE oid IN (16, 23, 1009, 1700) ORDER BY oid", "bool int4 _text numeric"},
		{"SELECT has_table_privilege('people', 'SELECT') AND NOT has_table_privilege('people', 'INSERT')", "true"},
		{"SELECT DISTINCT reltuples, relpages, pg_relation_size(oid) FROM pg_class", "-1"},
		{"SELECT 'int4'::regtype::oid || ',' || 'character varying'::regtype::oid || ',' || 'pg_class'::regclass::oid", "23,1043,1259"},
	} {
		rows, err := sandboxtest.Planned(t, sandboxtest.Own(t), sandboxtest.Census(), c.sql)
		var got []string
		for _, r := range rows.Data {
			got = append(got, fmt.Sprint(r[0]))
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s\n    got  %s, %v\n    want %s", c.sql, strings.Join(got, " "), err, c.want)
		}
	}
	if _, err := sandboxtest.Planned(t, sandboxtest.Own(t), sandboxtest.Census(), "SELECT 'salaries'::regclass"); err == nil {
		t.Error("a table of another dataset is there")
	}
}

// TestNoStatementIsRecognisedByItsText: every psql command gives the same answer with other spaces and aliases.
func TestNoStatementIsRecognisedByItsText(t *testing.T) {
	changed := 0
	for _, text := range sandboxtest.Recorded(t, "psql") {
		if !sandboxtest.CatalogOnly(text) {
			continue
		}
		want, err := sandboxtest.Ask(t, sandboxtest.Own(t), text)
		if err != nil {
			continue
		}
		for name, other := range map[string]string{"spaces": respaced(text), "aliases": realiased(t, text)} {
			got, err := sandboxtest.Ask(t, sandboxtest.Own(t), other)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("with other %s: %v\n%s", name, err, other)
			}
			changed++
		}
	}
	t.Logf("%d changed statements", changed)
}

// respaced puts a comment or other space where the scanner finds space.
func respaced(text string) string {
	scan, err := pg.Scan(text)
	if err != nil {
		return text
	}
	var out strings.Builder
	last, tokens := int32(0), scan.GetTokens()
	for i, token := range tokens {
		if gap := text[last:token.GetStart()]; strings.TrimSpace(gap) == "" && gap != "" {
			// The grammar's own look-ahead behind NOT does not skip comments.
			kind := i % 3
			if i > 0 && strings.EqualFold(text[tokens[i-1].GetStart():tokens[i-1].GetEnd()], "not") {
				kind = 0
			}
			out.WriteString([]string{"\n\t", " /* x */ ", "  -- y\n"}[kind])
		} else {
			out.WriteString(gap)
		}
		out.WriteString(text[token.GetStart():token.GetEnd()])
		last = token.GetEnd()
	}
	return out.String() + text[last:]
}

// realiased gives every table alias another name.
func realiased(t *testing.T, text string) string {
	t.Helper()
	scan, err := pg.Scan(text)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := pg.ParseToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	aliases := map[string]bool{}
	for part := range strings.SplitSeq(tree, `"aliasname":"`) {
		aliases[part[:max(0, strings.IndexByte(part, '"'))]] = true
	}
	// A name that is also something else in the statement keeps its meaning only if it is left alone.
	for part := range strings.SplitSeq(tree, `"name":"`) {
		delete(aliases, part[:max(0, strings.IndexByte(part, '"'))])
	}
	var out strings.Builder
	last, tokens := int32(0), scan.GetTokens()
	for i, token := range tokens {
		word := text[token.GetStart():token.GetEnd()]
		out.WriteString(text[last:token.GetStart()])
		out.WriteString(word)
		// Not behind a dot: there it is a column or a relation of that name.
		if aliases[word] && (i == 0 || text[tokens[i-1].GetStart():tokens[i-1].GetEnd()] != ".") && !(i+1 < len(tokens) && text[tokens[i+1].GetStart():tokens[i+1].GetEnd()] == "(" && i > 0 && text[tokens[i-1].GetStart():tokens[i-1].GetEnd()] == ".") {
			out.WriteString("_renamed")
		}
		last = token.GetEnd()
	}
	return out.String() + text[last:]
}

var update = flag.Bool("update", false, "write postgres15/pg_get_keywords.tsv from what the server says")

// TestKeywordsAreTheServers holds the words of the grammar against a server of the version that they are of; with
// -update it writes them.
func TestKeywordsAreTheServers(t *testing.T) {
	conn, err := pgx.Connect(context.Background(), pgtest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var version string
	if err := conn.QueryRow(context.Background(), "SHOW server_version").Scan(&version); err != nil || !strings.HasPrefix(version, "15") {
		t.Skipf("the server is version %s, the words are of 15 (%v)", version, err)
	}
	rows, err := conn.Query(context.Background(), `SELECT concat_ws(E'\t', word, catcode, CASE WHEN barelabel THEN 't' ELSE 'f' END, catdesc, baredesc) FROM pg_get_keywords() ORDER BY word COLLATE "C"`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	const file = "postgres15/pg_get_keywords.tsv"
	want := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != want {
		t.Errorf("%s is not what the server says (%v); -update writes it", file, err)
	}
}

package sandbox_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// keyStatements ask for keys in words of their own; TABLE is in place of a table's number.
var keyStatements = []string{
	"SELECT conname, contype, convalidated, conrelid::regclass, confrelid::regclass, conindid::regclass, conkey, confkey, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conrelid::int8 >= 16 * 1024 AND contype <> 'c'",
	"SELECT indexrelid::regclass, indrelid::regclass, indisunique, indisprimary, indnatts, indkey, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 0, true), pg_get_indexdef(indexrelid, 1, true) FROM pg_index WHERE indrelid IN (SELECT oid FROM pg_class WHERE relname IN ('users', 'orders', 'lines', 'cards'))",
	"SELECT relname, relkind, relnatts, relhasindex, relhastriggers FROM pg_class WHERE relname IN ('users', 'orders', 'lines', 'cards') OR relkind = 'i' AND oid::int8 >= 16 * 1024 AND relname NOT LIKE 'pg_toast%'",
	"SELECT attrelid::regclass, attname, attnum, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid IN ('users'::regclass, 'sales.lines'::regclass, 'cards'::regclass, 'cards_pkey'::regclass) AND attnum > 0",
	"SELECT schemaname, tablename, indexname, indexdef FROM pg_indexes WHERE schemaname IN ('public', 'sales')",
	"SELECT tablename, hasindexes, hastriggers FROM pg_tables WHERE schemaname IN ('public', 'sales')",
	"SELECT constraint_schema, constraint_name, table_name, constraint_type, is_deferrable, initially_deferred, enforced, nulls_distinct FROM information_schema.table_constraints WHERE constraint_type <> 'CHECK' AND constraint_schema IN ('public', 'sales')",
	"SELECT constraint_name, table_schema, table_name, column_name, ordinal_position, position_in_unique_constraint FROM information_schema.key_column_usage WHERE table_schema IN ('public', 'sales')",
	"SELECT constraint_schema, constraint_name, unique_constraint_schema, unique_constraint_name, match_option, update_rule, delete_rule FROM information_schema.referential_constraints",
	"SELECT table_schema, table_name, column_name, constraint_schema, constraint_name FROM information_schema.constraint_column_usage WHERE table_schema IN ('public', 'sales') AND constraint_name NOT LIKE '%not_null'",
	"SELECT table_schema, table_name, constraint_schema, constraint_name FROM information_schema.constraint_table_usage WHERE table_schema IN ('public', 'sales')",
	`SELECT kcu.column_name, ccu.table_name, ccu.column_name FROM information_schema.table_constraints tc JOIN information_schema.key_column_usage kcu USING (constraint_schema, constraint_name)
		JOIN information_schema.constraint_column_usage ccu USING (constraint_schema, constraint_name) WHERE tc.constraint_type = 'FOREIGN KEY' AND tc.table_name = 'orders'`,
	"SELECT a.attname FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey) WHERE k.contype = 'p' AND k.conrelid = TABLE",
	"SELECT (x).n, (x).x FROM (SELECT information_schema._pg_expandarray(indkey) AS x FROM pg_index WHERE indrelid = TABLE) s",
	"SELECT conname, confrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = TABLE AND contype = 'f'",
}

// aboutKeys are the recorded statements that ask for keys: psql's \d, JDBC's getImportedKeys, SQLAlchemy's inspector.
func aboutKeys(t *testing.T) (list []string) {
	for _, client := range []string{"psql", "psql-session", "pgjdbc", "sqlalchemy", "pandas", "dbeaver", "metabase", "psqlodbc"} {
		for _, text := range sandboxtest.Recorded(t, client) {
			if strings.HasPrefix(text, "SELECT") && !notOfKeys.MatchString(text) && recordedKeys.MatchString(text) && !strings.Contains(text, "$1") {
				list = append(list, text)
			}
		}
	}
	return list
}

var (
	notOfKeys    = regexp.MustCompile(`contypid !=|pg_table_size|CARDINALITY`) // domains, and sizes, which nobody sees
	recordedKeys = regexp.MustCompile(`pg_constraint|pg_index\b|indkey|key_column_usage|table_constraints`)
	tableNumbers = regexp.MustCompile(`\b(16[34]\d\d|TABLE)\b`)
	largeNumbers = regexp.MustCompile(`\b\d{5,10}\b`)
)

// TestKeysAreThoseOfAServer: what clients ask of keys has the same answer over the policy's tables as over tables that
// were made with these keys on PostgreSQL, but for numbers.
func TestKeysAreThoseOfAServer(t *testing.T) {
	server := pgtest.Shared(t)
	server.Exec(t, "postgres", "CREATE DATABASE keyed")
	server.Exec(t, "keyed", sandboxtest.KeyedSQL...)
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", "keyed"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	p := sandboxtest.Keyed(t)
	for _, table := range p.Datasets[0].Tables {
		name := pgx.Identifier{table.Schema, table.Name}.Sanitize()
		server.Exec(t, "keyed", "COMMENT ON TABLE "+name+" IS '"+catalog.TableComment(table)+"'")
		for _, c := range table.Described() {
			server.Exec(t, "keyed", "COMMENT ON COLUMN "+name+"."+pgx.Identifier{c.Name}.Sanitize()+" IS '"+catalog.ColumnComment(c)+"'")
		}
	}
	engines := map[string]sandbox.Engine{"own": sandboxtest.OpenOwn(t), "twin": sandboxtest.OpenTwin(t, sandboxtest.NewServer(t), "keyed")}
	compared, rows := 0, 0
	for name, e := range engines {
		if err := e.Catalog(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		if err := e.Catalog(context.Background(), p); err != nil { // a twin that is in step stays
			t.Fatal(err)
		}
		for i, sql := range append(slices.Clone(keyStatements), aboutKeys(t)...) {
			for _, table := range []string{"public.orders", "sales.lines"} {
				if table != "public.orders" && !tableNumbers.MatchString(sql) {
					continue
				}
				want := sandboxtest.OnPostgreSQL(conn, tableNumbers.ReplaceAllString(sql, numberOf(t, conn, table)))
				if strings.HasPrefix(want, "error") {
					continue
				}
				oid, err := sandboxtest.Planned(t, e, p, "SELECT '"+table+"'::regclass::oid::int8")
				if err != nil {
					t.Fatal(err)
				}
				given, err := sandboxtest.Planned(t, e, p, tableNumbers.ReplaceAllString(sql, strconv.FormatInt(oid.Data[0][0].(int64), 10)))
				compared++
				rows += strings.Count(want, "| ")
				if got := unnumbered(sandboxtest.Written(given)); err != nil || got != unnumbered(want) {
					t.Errorf("%s: %d: %s\n%s: %v\n    got  %s\n    want %s", name, i, table, sql, err, got, unnumbered(want))
				}
			}
		}
	}
	if compared < 100 || rows < 100 {
		t.Errorf("%d statements with %d rows were compared", compared, rows)
	}
}

func numberOf(t *testing.T, conn *pgx.Conn, table string) string {
	t.Helper()
	var n string
	if err := conn.QueryRow(context.Background(), "SELECT $1::text::regclass::oid::text", table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// unnumbered sorts an answer's rows and leaves out numbers of objects.
func unnumbered(answer string) string {
	rows := strings.Split(strings.ReplaceAll(largeNumbers.ReplaceAllString(answer, "#"), "dpproxy", "postgres"), "| ")
	for i, r := range rows {
		rows[i] = strings.TrimSpace(r)
	}
	slices.Sort(rows[1:])
	return strings.Join(rows, "\n      | ")
}

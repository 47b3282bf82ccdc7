package twin_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// recordedClients are those whose statements were recorded.
var recordedClients = []string{"psql", "pgjdbc", "sqlalchemy", "psycopg2", "psycopg3", "asyncpg", "pgx", "dbeaver", "metabase", "pandas", "psqlodbc",
	"superset", "grafana", "redash", "node-postgres", "tableau"}

// TestRecordedStatementsOnTwin: the share of recorded client statements (SELECTs without parameters that read catalogs
// alone) that the twin answers. Apart are counted those that a PostgreSQL of this version refuses too (they name what
// only the recording's database or a newer version had), and those that no analyst may run (sleeping, ending others).
func TestRecordedStatementsOnTwin(t *testing.T) {
	e, server := sandboxtest.Twin(t), pgtest.Shared(t)
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", server.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var total, answered, refusedToo, forbidden int
	for _, client := range recordedClients {
		asked, here := 0, 0
		for _, text := range sandboxtest.Recorded(t, client) {
			if !sandboxtest.CatalogOnly(text) {
				continue
			}
			asked++
			_, err := sandboxtest.Planned(t, e, sandboxtest.Census(), text)
			state := sandboxtest.StateOf(err)
			switch {
			case err == nil:
				here++
			case state == "42501":
				forbidden++
			case sandboxtest.OnPostgreSQL(conn, text) == "error "+state:
				refusedToo++
			default:
				if os.Getenv("DPPROXY_VERBOSE") != "" {
					fmt.Printf("--- %s: %v\n%s\n", client, err, text)
				}
			}
		}
		t.Logf("%s: %d of %d answered", client, here, asked)
		total, answered = total+asked, answered+here
	}
	t.Logf("%d of %d answered, %d refused by PostgreSQL too, %d forbidden", answered, total, refusedToo, forbidden)
	if missing := total - answered - refusedToo - forbidden; missing > 0 {
		t.Errorf("%d recorded statements are not answered as PostgreSQL would", missing)
	}
}

// TestTwinCatalogsTellNothing: what catalogs say of the server, its roles and its other databases is the same on two
// servers whose other databases differ.
func TestTwinCatalogsTellNothing(t *testing.T) {
	var answers [2][]string
	for i := range answers {
		server := sandboxtest.NewServer(t)
		if i == 1 { // a neighbour: other roles, other databases, many writes, large values
			server.Exec(t, "postgres", "CREATE ROLE payroll_admin SUPERUSER", "CREATE DATABASE payroll")
			server.Exec(t, "payroll", "CREATE TABLE salaries (id int, note text)", "INSERT INTO salaries SELECT g, md5(g::text) FROM generate_series(1, 12345) g",
				"ANALYZE")
		}
		e := sandboxtest.OpenTwin(t, server, "dpproxy_twin")
		if err := e.Catalog(context.Background(), sandboxtest.Census()); err != nil {
			t.Fatal(err)
		}
		for _, query := range clusterQueries {
			rows, err := sandboxtest.Planned(t, e, sandboxtest.Census(), query)
			if err != nil {
				answers[i] = append(answers[i], "error "+sandboxtest.StateOf(err))
				continue
			}
			answers[i] = append(answers[i], sandboxtest.Written(rows))
		}
	}
	for k, query := range clusterQueries {
		if answers[0][k] != answers[1][k] {
			t.Errorf("%s\n    %.300s\n    %.300s", query, answers[0][k], answers[1][k])
		}
		for _, word := range []string{"twin_owner", "_session", "payroll", "postgres=", "dpproxy_twin", "salaries", "template1"} {
			if strings.Contains(answers[1][k], word) {
				t.Errorf("%s tells of %s", query, word)
			}
		}
	}
}

// clusterQueries ask for what only the server, not the twin, could know. Object ids of the twin's own tables are left
// out: they come from a counter of the whole server (docs/adr/0015).
var clusterQueries = []string{
	"SELECT * FROM pg_database", "SELECT * FROM pg_roles ORDER BY 1", "SELECT * FROM pg_user ORDER BY 1", "SELECT * FROM pg_group",
	"SELECT * FROM pg_auth_members", "SELECT * FROM pg_settings ORDER BY 1", "SELECT * FROM pg_stat_activity", "SELECT * FROM pg_tablespace",
	"SELECT * FROM pg_shdepend", "SELECT * FROM pg_shdescription", "SELECT * FROM pg_db_role_setting", "SELECT * FROM pg_prepared_xacts",
	"SELECT * FROM pg_stat_user_tables", "SELECT * FROM pg_statio_all_tables", "SELECT * FROM pg_replication_origin", "SELECT * FROM pg_subscription",
	"SELECT relname, relowner, relfilenode, relpages, reltuples, reltoastrelid, relfrozenxid, relacl, xmin FROM pg_class WHERE relnamespace <> 99 ORDER BY 1",
	"SELECT nspname, nspowner, nspacl, xmin FROM pg_namespace ORDER BY 1", "SELECT * FROM pg_init_privs ORDER BY 1, 2, 3",
	"SELECT datname, pg_get_userbyid(datdba), shobj_description(oid, 'pg_database'), pg_database_size(datname) FROM pg_database",
	"SELECT pg_get_userbyid(x::oid) FROM generate_series(1, 20000) x WHERE pg_get_userbyid(x::oid) NOT LIKE 'unknown%'",
	"SELECT DISTINCT pg_describe_object(c, x::oid, 0) FROM generate_series(1, 20000) x, unnest(ARRAY[1260, 1262]::oid[]) c",
	"SELECT pg_database_size('payroll'), pg_tablespace_size('pg_default'), pg_relation_size('pg_authid')",
	"SELECT has_database_privilege('payroll', 'connect'), pg_has_role('payroll_admin', 'member'), has_table_privilege('alice', 'people', 'select')",
	"SELECT acldefault('d', 10), makeaclitem(16384, 16384, 'SELECT', false)", "SELECT 16384::regrole", "SELECT to_regrole('payroll_admin')",
	"SELECT current_user, session_user, user, current_role, current_database(), current_catalog, version(), pg_backend_pid(), inet_server_addr(), inet_server_port(), pg_postmaster_start_time(), pg_conf_load_time(), pg_is_in_recovery(), txid_current_if_assigned()",
	"SELECT current_setting('data_directory', true), current_setting('port', true), current_setting('config_file', true), current_setting('session_authorization', true), current_setting('role', true)",
	"SELECT current_setting('data_directory')", "SELECT * FROM information_schema.tables ORDER BY 2, 3", "SELECT * FROM information_schema.schemata ORDER BY 2",
	"SELECT * FROM information_schema.enabled_roles", "SELECT * FROM information_schema.applicable_roles", "SELECT * FROM information_schema.administrable_role_authorizations",
	"SELECT * FROM information_schema.table_privileges WHERE table_schema <> 'pg_catalog' ORDER BY 1, 2, 3, 4, 5",
	"SELECT * FROM information_schema.role_table_grants ORDER BY 1, 2, 3, 4, 5", "SELECT * FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 3, 4",
	"SELECT * FROM information_schema.views WHERE table_schema <> 'pg_catalog' ORDER BY 2, 3", "SELECT * FROM information_schema.usage_privileges ORDER BY 1, 2, 3, 4, 5, 6",
	"SELECT schemaname, tablename, tableowner FROM pg_tables ORDER BY 1, 2", "SELECT schemaname, viewname, viewowner FROM pg_views ORDER BY 1, 2",
	"SELECT count(*) FROM pg_proc", "SELECT proname, proowner, proacl FROM pg_proc WHERE proacl IS NOT NULL OR proowner <> 10", "SELECT typname, typowner, typacl FROM pg_type WHERE typowner <> 10",
	"SELECT * FROM pg_largeobject_metadata", "SELECT * FROM pg_default_acl", "SELECT * FROM pg_extension", "SELECT extname, extowner FROM pg_extension",
	"SELECT * FROM dp.tables ORDER BY 1, 2", "SELECT * FROM dp.columns ORDER BY 1, 2, 3", "SELECT row_to_json(c) FROM pg_class c WHERE relname = 'pg_class'",
}

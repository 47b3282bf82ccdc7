package clients

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// demoInPostgres moves the demo's data from its DuckDB file to a PostgreSQL server, and the sandbox of its policy to
// another.
func demoInPostgres(t *testing.T, policyPath string) {
	t.Helper()
	server, twin := pgtest.Shared(t), pgtest.Start(t)
	role, database := server.Role(t, ""), server.Database(t)
	from, err := sql.Open("duckdb", filepath.Join(filepath.Dir(policyPath), "warehouse.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close(t.Context())
	tables, err := from.Query(`SELECT table_name, string_agg(column_name || ' ' || CASE data_type WHEN 'DOUBLE' THEN 'double precision' ELSE data_type END,
		', ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = 'main' GROUP BY table_name`)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	for tables.Next() {
		var table, columns string
		if err := tables.Scan(&table, &columns); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), table+".csv")
		if _, err := from.Exec(fmt.Sprintf("COPY %s TO '%s' (HEADER false)", table, file)); err != nil {
			t.Fatal(err)
		}
		server.Exec(t, database, fmt.Sprintf("CREATE TABLE %s (%s)", table, columns))
		text, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.PgConn().CopyFrom(t.Context(), text, "COPY "+table+" FROM STDIN CSV"); err != nil {
			t.Fatal(err)
		}
		text.Close()
	}
	server.Exec(t, database, `ALTER TABLE people ADD PRIMARY KEY (person_id)`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	rewritePolicy(t, policyPath, "url: duckdb:warehouse.duckdb", fmt.Sprintf("url: %q", server.URLFor(role, database)))
	twinPolicy(t, policyPath, twin, "clients_twin")
	text, err := os.ReadFile(policyPath)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(policyPath, []byte(strings.ReplaceAll(string(text), "source: main.", "source: public.")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// script is one client: the command that runs it, and a command that fails where it is not installed.
type script struct {
	name       string
	run, probe []string
}

// jdbcJar is pgjdbc as Debian has it; spark_client.py finds it by CLIENTS_PGJDBC.
const jdbcJar = "/usr/share/java/postgresql.jar"

// clientsDir is where scripts/clients installs what comes from PyPI and npm; empty outside `make clients`.
var clientsDir = os.Getenv("DPPROXY_CLIENTS")

// pythonScripts are run by each Python that has their modules: Debian's too where scripts/clients installs Debian's.
var pythonScripts = []struct {
	name, file, modules string
	pypi                bool // it comes from PyPI alone
}{
	{"psql", "psql_client.py", "shutil; assert shutil.which('psql')", false},
	{"psycopg2", "psycopg2_client.py", "psycopg2", false},
	{"psycopg", "psycopg_client.py", "psycopg", false},
	{"asyncpg", "asyncpg_client.py", "asyncpg", false},
	{"pg8000", "pg8000_client.py", "pg8000.native", true},
	{"sqlalchemy", "sqlalchemy_client.py", "sqlalchemy, psycopg2", false},
	{"django", "django_client.py", "django, psycopg", true},
	{"pgcli", "pgcli_client.py", "pgcli", true},
	{"ibis", "ibis_client.py", "ibis.backends.postgres", true},
	{"polars", "polars_client.py", "polars, psycopg", true},
	{"pyodbc", "odbc_client.py", "pyodbc; assert 'PostgreSQL Unicode' in pyodbc.drivers()", false},
}

// clientScripts run in testdata/clients. The Debian packages are for the interpreter in /usr/bin.
func clientScripts() []script {
	var all []script
	python := func(path, where string) {
		for _, s := range pythonScripts {
			if where == "" && !(s.pypi && clientsDir != "") || where != "" && s.name != "psql" {
				all = append(all, script{s.name + where, []string{path, s.file}, []string{path, "-c", "import " + s.modules}})
			}
		}
	}
	python("/usr/bin/python3", "")
	if clientsDir != "" {
		python(filepath.Join(clientsDir, "python", "bin", "python"), " of PyPI")
	}
	all = append(all,
		script{"isql", []string{"sh", "isql_client.sh"}, []string{"sh", "-c", "command -v isql && grep -q '^\\[PostgreSQL Unicode' /etc/odbcinst.ini"}},
		script{"node-postgres", []string{"node", "node_client.js"}, []string{"node", "-e", "require('pg')"}},
		script{"postgres.js", []string{"node", "postgresjs_client.js"}, []string{"node", "-e", "require('postgres')"}},
		script{"typeorm", []string{"node", "typeorm_client.js"}, []string{"node", "-e", "require('typeorm'); require('pg')"}},
		script{"drizzle", []string{"node", "drizzle_client.js"}, []string{"node", "-e", "require('drizzle-orm/node-postgres'); require('drizzle-kit')"}},
		script{"prisma", []string{"node", "prisma_client.js"}, []string{"node", "-e", "require('@prisma/adapter-pg'); require.resolve('prisma/package.json')"}},
		script{"kysely", []string{"node", "kysely_client.js"}, []string{"node", "-e", "require('kysely'); require('pg')"}},
		script{"pgjdbc", []string{"java", "-cp", jdbcJar, "JdbcClient.java"}, []string{"sh", "-c", "java --version && test -r " + jdbcJar}},
		script{"pgjdbc under GMT+3", []string{"java", "-Duser.timezone=GMT+3", "-cp", jdbcJar, "JdbcClient.java"}, []string{"sh", "-c", "java --version && test -r " + jdbcJar}},
		script{"postgres_fdw", []string{"sh", "fdw_client.sh"}, []string{"sh", "-c", "ls /usr/lib/postgresql/*/lib/postgres_fdw.so"}},
		script{"Perl's DBD::Pg", []string{"perl", "perl_client.pl"}, []string{"perl", "-MDBD::Pg", "-e", "1"}},
		script{"PHP's pgsql and PDO", []string{"php", "php_client.php"}, []string{"php", "-r", "exit(extension_loaded('pgsql') && extension_loaded('pdo_pgsql') ? 0 : 1);"}},
		script{"Ruby's pg", []string{"ruby", "ruby_client.rb"}, []string{"ruby", "-rpg", "-e", "1"}},
		script{"RPostgreSQL", []string{"Rscript", "r_client.R"}, []string{"Rscript", "-e", "library(RPostgreSQL)"}})
	if clientsDir != "" {
		dbt, mcp := filepath.Join(clientsDir, "dbt", "bin", "python"), filepath.Join(clientsDir, "mcp", "bin", "python")
		duckdb := filepath.Join(clientsDir, "duckdb", "bin", "python")
		spark := filepath.Join(clientsDir, "spark", "bin", "python")
		pgadmin := filepath.Join(clientsDir, "pgadmin", "bin", "python")
		superset := filepath.Join(clientsDir, "superset", "bin", "python")
		jars := filepath.Join(clientsDir, "java", "*")
		all = append(all, askedByAssistants()...)
		all = append(all,
			script{"jooq", []string{"java", "-cp", jars, "JooqClient.java"}, []string{"sh", "-c", "java --version && ls " + filepath.Join(clientsDir, "java") + "/jooq-codegen-*"}},
			script{"hibernate", []string{"sh", "-c", `d=$(mktemp -d) && javac -cp "$0" -d "$d" HibernateClient.java && java -cp "$d:$0" HibernateClient; s=$?; rm -r "$d"; exit $s`, jars},
				[]string{"sh", "-c", "javac --version && ls " + filepath.Join(clientsDir, "java") + "/hibernate-core-*"}},
			script{"DuckDB's postgres scanner", []string{duckdb, "duckdb_client.py"}, []string{duckdb, "-c", "import duckdb, duckdb_extension_postgres_scanner"}},
			script{"Spark's JDBC", []string{spark, "spark_client.py"}, []string{"sh", "-c", `java --version && "$0" -c "import pyspark" && test -r "$CLIENTS_PGJDBC"`, spark}},
			script{"mcp of PyPI", []string{mcp, "mcp_client.py"}, []string{mcp, "-c", "import mcp.client.stdio"}},
			script{"dbt", []string{dbt, "dbt_client.py"}, []string{dbt, "-c", "import dbt.adapters.postgres"}},
			script{"tokio-postgres", []string{filepath.Join(clientsDir, "rust_client"), "tokio"}, []string{"test", "-x", filepath.Join(clientsDir, "rust_client")}},
			script{"sqlx", []string{filepath.Join(clientsDir, "rust_client"), "sqlx"}, []string{"test", "-x", filepath.Join(clientsDir, "rust_client")}},
			script{"lib/pq", []string{filepath.Join(clientsDir, "libpq")}, []string{"test", "-x", filepath.Join(clientsDir, "libpq")}},
			script{"pgAdmin", []string{pgadmin, "pgadmin_client.py"}, []string{pgadmin, "-c",
				"import importlib.util, selenium, shutil; assert importlib.util.find_spec('pgadmin4') and shutil.which('chromedriver')"}},
			script{"superset", []string{superset, "superset_client.py"}, []string{superset, "-c",
				"import superset, selenium, shutil, os; assert shutil.which('chromedriver') and os.path.exists(os.environ['SUPERSET_TEMPLATE'])"}})
	}
	return all
}

// askedByAssistants are the servers, frameworks and generators by which models and programmers look at a database: they
// come as the user assistant, whose settings put hints into messages and intervals beside numbers.
func askedByAssistants() []script {
	servers := filepath.Join(clientsDir, "assistants", "bin", "python")
	frameworks := filepath.Join(clientsDir, "frameworks", "bin", "python")
	var all []script
	for _, c := range []struct{ name, run, file, probe string }{
		{"pg_dump", servers, "pg_dump_client.py", "import shutil; assert shutil.which('pg_dump')"},
		{"toolbox", servers, "assistants_client.py", "import mcp.client.stdio, toolbox_server"},
		{"dbhub", servers, "assistants_client.py", "import mcp.client.stdio; " + inNode("@bytebase/dbhub")},
		{"server-postgres", servers, "assistants_client.py",
			"import mcp.client.stdio; " + inNode("@modelcontextprotocol/server-postgres")},
		{"langchain", frameworks, "frameworks_client.py", "import langchain_community, psycopg2"},
		{"llamaindex", frameworks, "frameworks_client.py", "import llama_index.core, psycopg2"},
	} {
		all = append(all, script{c.name, []string{c.run, c.file, c.name}, []string{c.run, "-c", c.probe}})
	}
	for _, name := range []string{"kysely-codegen", "kanel", "postgraphile"} {
		probe := "require('pg'); require.resolve('" + name + "/package.json')"
		all = append(all, script{name, []string{"node", "generators_client.js", name}, []string{"node", "-e", probe}})
	}
	return all
}

// inNode is Python that fails where an npm package is not installed.
func inNode(name string) string {
	return "import os; assert os.path.exists(os.path.join(os.environ['NODE_PATH'], '" + name + "', 'package.json'))"
}

// clientAspects are the columns of the table that `make clients` prints; a script writes "did" and one of them.
var clientAspects = []string{"connects", "browses", "queries", "parameters", "cancels", "charts"}

// TestClients drives one proxy with each client that is installed: log-in by SCRAM over TLS, questions with parameters,
// results in text and binary, prepared statements, cursors, COPY, notices, errors, cancelling, transactions, resets,
// and browsing, which leaves the balance as it was. `make clients` runs it with more clients, and with PostgreSQL
// behind the proxy too; there the list of clients is fixed: one that is not installed, and that CLIENTS_LEFT_OUT does
// not name, fails.
func TestClients(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("starts other programs")
	}
	sides := []string{"demo"}
	if clientsDir != "" {
		sides = append(sides, "postgres")
	}
	var table []string
	for _, side := range sides {
		p, env := clientsProxy(t, side == "postgres")
		program, err := kit.Executable()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, "CLIENTS_SIDE="+side, "CLIENTS_PGJDBC="+jdbcJar, "DPPROXY_PROGRAM="+program)
		for _, mode := range []string{"verify-full", "disable"} {
			if t.Run(side+"/pgx "+mode, func(t *testing.T) { pgxModes(t, env, mode) }) && mode == "disable" {
				table = append(table, fmt.Sprintf("| %s | pgx | of go.mod | yes | yes | yes | yes | yes | – |", side))
			}
		}
		for i, s := range clientScripts() {
			mine := append(slices.Clone(env), fmt.Sprintf("CLIENTS_RUN=%d", i)) // for questions that nobody has asked
			t.Run(side+"/"+s.name, func(t *testing.T) { runScript(t, mine, side, s, &table) })
		}
		if t.Failed() {
			t.Log(p.LogText())
		}
		p.Stop(syscall.SIGTERM)
	}
	if clientsDir != "" {
		t.Logf("\n| behind | client | version | %s |\n|---|---|---|%s\n%s", strings.Join(clientAspects, " | "),
			strings.Repeat("---|", len(clientAspects)), strings.Join(table, "\n"))
	}
}

// runScript runs one client and adds its line to the table.
func runScript(t *testing.T, env []string, side string, s script, table *[]string) {
	cell := func(text string) { *table = append(*table, fmt.Sprintf("| %s | %s | %s |", side, s.name, text)) }
	if out, err := command(t, env, s.probe).CombinedOutput(); err != nil {
		why := strings.Split(strings.TrimSpace(string(out)), "\n")
		cell("not installed")
		if clientsDir != "" && !slices.Contains(strings.Split(os.Getenv("CLIENTS_LEFT_OUT"), ","), s.name) {
			t.Errorf("%s is not installed: %s", s.name, why[len(why)-1])
		}
		t.Skip(why[len(why)-1])
	}
	out, err := command(t, env, s.run).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	var version string
	var did []string
	for _, line := range strings.Split(string(out), "\n") {
		if v, found := strings.CutPrefix(line, "version "); found {
			version = v
		}
		if aspect, found := strings.CutPrefix(line, "did "); found {
			did = append(did, aspect)
			if !slices.Contains(clientAspects, aspect) {
				t.Errorf("unknown aspect %s", aspect)
			}
		}
	}
	t.Logf("%d checks", strings.Count("\n"+string(out), "\nok"))
	for _, aspect := range clientAspects {
		if version += " |"; slices.Contains(did, aspect) {
			version += " yes"
		} else {
			version += " –"
		}
	}
	cell(version)
}

// command runs a program among the scripts.
func command(t *testing.T, env, line []string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = filepath.Join("testdata", "clients")
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

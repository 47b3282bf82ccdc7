package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// manyTables makes a schema in which people have rows of so many tables, each with keys of three types, and the policy
// over it. What makes more is given the number of each table.
func manyTables(tables int, more func(int) string) (statements []string, text string) {
	statements = []string{"CREATE TABLE people (id bigint PRIMARY KEY, uid varchar(11) NOT NULL UNIQUE)"}
	var b strings.Builder
	b.WriteString(`
  - id: clinic
    unit: {name: person, key: people.id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - {name: people, max_rows_per_unit: 1, columns: [{name: uid, type: "varchar(11)", keys: join}]}
`)
	for i := range tables {
		statements = append(statements, fmt.Sprintf("CREATE TABLE t%d (id bigint PRIMARY KEY, uid %s NOT NULL UNIQUE, "+
			"who bigint REFERENCES people, sort_order integer)", i, more(i)))
		fmt.Fprintf(&b, `      - name: t%d
        unit: t%[1]d.who = people.id
        max_rows_per_unit: 3
        unique: [[id], [uid]]
        columns:
          - {name: id, type: bigint, keys: join}
          - {name: uid, type: "varchar(11)", keys: join}
          - {name: sort_order, type: integer, keys: join}
`, i)
	}
	return statements, b.String()
}

// TestTransactionsOfManyTables: how many transactions a look at a schema takes does not grow with its tables, and keys
// are compared by their types, of which there are as many as in a small one.
func TestTransactionsOfManyTables(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	statements, text := manyTables(60, func(int) string { return "varchar(11)" })
	server.Exec(t, database, append(statements, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)...)
	p, err := policy.Parse([]byte(policytest.Over(server.URLFor(role, database))+text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := backendtest.Open(t, p)
	if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") {
		t.Fatal(got)
	}
	var count int
	err = h.Backend.(*DB).aside.QueryRow(t.Context(),
		`SELECT pg_stat_get_db_xact_commit(oid) + pg_stat_get_db_xact_rollback(oid)
		FROM pg_catalog.pg_database WHERE datname = current_database()`).Scan(&count)
	if err != nil {
		t.Fatal(err)
	}
	if count > 100 { // those that made the tables are among them
		t.Errorf("%d transactions", count)
	}
}

// TestOneKeyOfManyIsNamed: of hundreds of keys the one whose type is another is named, in one finding and not in one
// for each pair.
func TestOneKeyOfManyIsNamed(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	statements, text := manyTables(20, func(i int) string {
		if i == 7 {
			return "char(11)"
		}
		return "varchar(11)"
	})
	server.Exec(t, database, append(statements, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)...)
	p, err := policy.Parse([]byte(policytest.Over(server.URLFor(role, database))+text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := backendtest.Inspect(t, backendtest.Open(t, p))
	const want = "table people, column uid; table t0, column uid; table t1, column uid; table t2, column uid; " +
		"and 16 more (character varying), and table t7, column uid (character): PostgreSQL takes different keys"
	if strings.Count(got, "fatal=true") != 1 || !strings.Contains(got, want) {
		t.Errorf("got\n%s", got)
	}
}

// TestADeadlineIsCalledADeadline: what was not read in time says nothing of the tables or of their keys.
func TestADeadlineIsCalledADeadline(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	statements, text := manyTables(3, func(int) string { return "varchar(11)" })
	server.Exec(t, database, append(statements, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)...)
	p, err := policy.Parse([]byte(policytest.Over(server.URLFor(role, database))+text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := backendtest.Open(t, p)
	holder, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE t1 IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	findings, err := h.Inspect(ctx, p, p.Datasets[0])
	if !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("%v, findings %v", err, findings)
	}
}

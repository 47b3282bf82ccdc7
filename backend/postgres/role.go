package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// roleSQL lists what dpproxy's role can do besides reading: the fatal ones let it change data or escape the database.
const roleSQL = `SELECT says, fatal FROM (
  SELECT 'is a superuser' AS says, true AS fatal, r.rolsuper AS holds FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
  UNION ALL SELECT 'bypasses row-level security', true, r.rolbypassrls AND NOT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
  UNION ALL SELECT 'may create roles', true, r.rolcreaterole AND NOT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
  UNION ALL SELECT 'may create objects in database ' || pg_catalog.current_database(), true, pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
  UNION ALL SELECT 'may create temporary tables (REVOKE TEMPORARY ON DATABASE ' || pg_catalog.quote_ident(pg_catalog.current_database()) || ' FROM PUBLIC)', false, pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP')
  UNION ALL SELECT 'is a member of ' || r.rolname, true, pg_catalog.pg_has_role(r.oid, 'MEMBER') FROM pg_catalog.pg_roles r
    WHERE r.rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_write_all_data')
  UNION ALL SELECT 'is a member of pg_read_all_data and so reads more than the policy names', false, pg_catalog.pg_has_role(r.oid, 'MEMBER')
    FROM pg_catalog.pg_roles r WHERE r.rolname = 'pg_read_all_data'
) f WHERE holds`

// relationSQL says of one table what the role can do with it, whether it can read it, and whose rows it sees.
const relationSQL = `SELECT
  pg_catalog.has_schema_privilege(n.oid, 'CREATE'),
  pg_catalog.pg_has_role(c.relowner, 'MEMBER'),
  pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'),
  pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND COALESCE((SELECT pg_catalog.bool_and(pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))
    FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attname::text = ANY ($3::text[]) AND NOT a.attisdropped), true),
  c.relrowsecurity AND NOT COALESCE((SELECT pg_catalog.bool_or(p.polpermissive) AND pg_catalog.bool_and(pg_catalog.pg_get_expr(p.polqual, p.polrelid) = 'true')
    FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid AND p.polcmd IN ('r', '*')
      AND (0 = ANY (p.polroles) OR EXISTS (SELECT FROM pg_catalog.unnest(p.polroles) AS g(role) WHERE pg_catalog.pg_has_role(g.role, 'USAGE')))), false),
  EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname = $2::text`

// roleFindings says where dpproxy's own role is stronger or weaker than its work needs.
func roleFindings(ctx context.Context, tx pgx.Tx, d *policy.Dataset) ([]backend.Finding, error) {
	rows, err := tx.Query(ctx, roleSQL)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (backend.Finding, error) {
		var f backend.Finding
		err := row.Scan(&f.Text, &f.Fatal)
		f.Text = "dpproxy's database role " + f.Text + "; it needs to read the policy's tables and nothing else"
		return f, err
	})
	if err != nil {
		return nil, err
	}
	var watches bool
	if err := tx.QueryRow(ctx, "SELECT "+mayAskSQL).Scan(&watches); err != nil {
		return nil, err
	}
	if !watches {
		list = append(list, backend.Finding{Fatal: true, Text: "dpproxy's database role may not read pg_locks, or not call currtid2: each query asks them whether its tables changed while it ran, and would fail after its charge. " +
			"GRANT SELECT ON pg_locks, pg_class, pg_namespace and pg_attribute, and EXECUTE on pg_lock_status(), pg_backend_pid() and currtid2(text, tid), to it"})
	}
	if len(list) > 0 && list[0].Fatal && list[0].Text == superuserFinding {
		return list[:1], nil // a superuser may do all the rest, too
	}
	for _, t := range d.Tables {
		if t.View.Text != "" {
			continue
		}
		more, err := relationFindings(ctx, tx, t)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

const superuserFinding = "dpproxy's database role is a superuser; it needs to read the policy's tables and nothing else"

func relationFindings(ctx context.Context, tx pgx.Tx, t *policy.Table) ([]backend.Finding, error) {
	schema, name := rewrite.Relation(t.Source, dialect.PostgreSQL)
	columns := []string{}
	for _, c := range t.Columns {
		columns = append(columns, c.Source)
	}
	columns = append(columns, inspect.KeyColumns(t)...)
	var creates, owns, writes, reads, secured, refers bool
	err := tx.QueryRow(ctx, relationSQL, schema, name, columns).Scan(&creates, &owns, &writes, &reads, &secured, &refers)
	if err == pgx.ErrNoRows {
		return nil, nil // CompareTable says so
	}
	if err != nil {
		return nil, err
	}
	var list []backend.Finding
	add := func(holds, fatal bool, format string, args ...any) {
		if holds {
			list = append(list, backend.Finding{Fatal: fatal, Text: fmt.Sprintf(format, args...)})
		}
	}
	add(owns, true, "dpproxy's database role owns %s.%s; grant it SELECT on a table of another role instead", schema, name)
	add(creates, true, "dpproxy's database role may create objects in schema %s: REVOKE CREATE ON SCHEMA %s FROM it and from PUBLIC", schema, schema)
	add(writes && !owns, true, "dpproxy's database role may change the rows of %s.%s; it needs SELECT alone", schema, name)
	add(!reads, true, "dpproxy's database role may not read all columns of %s.%s that the policy names", schema, name)
	add(secured, true, "table %s has row-level security, whose conditions may fail at a row, or depend on others' rows: give dpproxy's role all rows with "+
		"CREATE POLICY … ON %s.%s FOR SELECT TO … USING (true) as its only policy, and leave rows out by a SELECT as the table's source", t.Name, schema, name)
	add(t.Public && refers, false, "public table %s has a foreign key: that no private table can be told from it is assumed, not enforced", t.Name)
	return list, nil
}

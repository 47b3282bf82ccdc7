package backend

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Two tables of a policy may show the same rows though they name different relations: a partition beside its parent, a view
// beside what it reads. The policy alone cannot know. Such rows must have one unit (privacy rule 9), one dataset (rule 8),
// and be public in both or in neither (rule 13). What a function, a foreign table or a trusted SELECT reads is not followed:
// these are assumed to be as the owner says.

// sharedSQL finds the pairs of the given relations that show rows of one relation: partitions, children and what views read
// are followed. A pair that is one relation is left out, since the policy has been refused then where it must be.
const sharedSQL = `WITH RECURSIVE named(i, oid) AS (
  SELECT w.i, c.oid FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) WITH ORDINALITY AS w(s, t, i)
  JOIN pg_catalog.pg_namespace n ON n.nspname = w.s JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t
), reach(i, oid) AS (
  SELECT i, oid FROM named
  UNION SELECT r.i, x.oid FROM reach r CROSS JOIN LATERAL (
    SELECT h.inhrelid FROM pg_catalog.pg_inherits h WHERE h.inhparent = r.oid
    UNION ALL SELECT d.refobjid FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_depend d ON d.objid = w.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> w.ev_class WHERE w.ev_class = r.oid AND w.ev_type = '1') AS x(oid)
)
SELECT na.i, nb.i, pg_catalog.min(n.nspname || '.' || c.relname), pg_catalog.bool_or(ca.relkind IN ('v', 'm') OR cb.relkind IN ('v', 'm'))
FROM named na JOIN named nb ON na.i < nb.i AND na.oid <> nb.oid
JOIN reach a ON a.i = na.i JOIN reach b ON b.i = nb.i AND b.oid = a.oid
JOIN pg_catalog.pg_class c ON c.oid = a.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class ca ON ca.oid = na.oid JOIN pg_catalog.pg_class cb ON cb.oid = nb.oid
WHERE c.relkind IN ('r', 'p', 'f', 'm') GROUP BY na.i, nb.i ORDER BY na.i, nb.i`

// named are the tables of a policy that name relations.
func named(p *policy.Policy) (list []*policy.Table) {
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			if t.View.Text == "" {
				list = append(list, t)
			}
		}
	}
	return list
}

// overlapFindings says which tables of a dataset show rows that another table of the policy shows too.
func overlapFindings(ctx context.Context, tx pgx.Tx, p *policy.Policy, d *policy.Dataset) ([]Finding, error) {
	tables := named(p)
	var schemas, names []string
	for _, t := range tables {
		schema, name := rewrite.Relation(t.Source, dialect.PostgreSQL)
		schemas, names = append(schemas, schema), append(names, name)
	}
	rows, err := tx.Query(ctx, sharedSQL, schemas, names)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Finding
	for rows.Next() {
		var a, b int64
		var relation string
		var view bool
		if err := rows.Scan(&a, &b, &relation, &view); err != nil {
			return nil, errResult
		}
		list = append(list, overlapFinding(d, tables[a-1], tables[b-1], relation, view)...)
	}
	return list, rows.Err()
}

// overlapFinding says what is wrong with two tables that show rows of one relation. It is a finding of the second's dataset.
func overlapFinding(d *policy.Dataset, a, b *policy.Table, relation string, view bool) []Finding {
	shown := fmt.Sprintf("table %s and table %s both show rows of %s", a.Name, b.Name, relation)
	path := a.UnitColumn == b.UnitColumn && (a.Via == nil) == (b.Via == nil) &&
		(a.Via == nil || a.Via.Table == b.Via.Table && a.Via.Column == b.Via.Column && a.Via.Key == b.Via.Key)
	switch {
	case b.Dataset != d || a.Public && b.Public:
		return nil
	case a.Public != b.Public:
		return []Finding{{Fatal: true, Text: shown + ", and one is public and the other private: list the relation once, or in both as private"}}
	case a.Dataset != b.Dataset:
		return []Finding{{Fatal: true, Text: shown + fmt.Sprintf(", the first in dataset %s: two datasets over the same rows would be two budgets for them; list both in one dataset", a.Dataset.ID)}}
	case d.Unit.Row, !path:
		return []Finding{{Fatal: true, Text: shown + fmt.Sprintf(", and name their %ss differently: a row would belong to two %[1]ss, and the bounds of neither table would hold for both; "+
			"keep one of the tables, or give both one unit", unitOf(d))}}
	case view:
		return []Finding{{Text: shown + fmt.Sprintf(": that both name the same %s for a row is assumed, not enforced", unitOf(d))}}
	}
	return nil
}

// overlapFindings says which tables of a dataset show rows that another table of the policy shows too, through views of the file.
func (b *DuckDB) overlapFindings(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]Finding, error) {
	texts := map[string]string{} // of views, by folded name
	err := b.eachRow(ctx, "SELECT lower(schema_name || '.' || view_name), sql FROM duckdb_views() WHERE database_name = $1 AND NOT internal", func(row []*string) error {
		if row[0] == nil || row[1] == nil {
			return errResult
		}
		texts[*row[0]] = *row[1]
		return nil
	}, dialect.Catalog)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	tables := named(p)
	reaches := make([]map[string]bool, len(tables))
	for i, t := range tables {
		reaches[i] = map[string]bool{}
		schema, name := rewrite.Relation(t.Source, dialect.DuckDB)
		reach(conn, texts, strings.ToLower(schema+"."+name), reaches[i])
	}
	var list []Finding
	for i, a := range tables {
		for k, other := range tables[i+1:] {
			for _, name := range shared(reaches[i], reaches[i+1+k]) {
				list = append(list, overlapFinding(d, a, other, name, true)...)
			}
		}
	}
	return list, nil
}

// reach adds the tables that a relation shows rows of: itself, or what a view reads.
func reach(conn *sql.Conn, views map[string]string, name string, into map[string]bool) {
	if into[name] {
		return
	}
	into[name] = true
	text, isView := views[name]
	if !isView {
		return
	}
	_, body, _ := strings.Cut(text, " AS ")
	read, err := duckdb.GetTableNames(conn, body, true)
	if err != nil {
		return // the view is told of, as something assumed
	}
	for _, from := range read {
		parts := strings.Split(strings.ToLower(strings.ReplaceAll(from, `"`, "")), ".")
		if parts = parts[max(len(parts)-2, 0):]; len(parts) == 1 {
			schema, _, _ := strings.Cut(name, ".")
			parts = []string{schema, parts[0]}
		}
		reach(conn, views, strings.Join(parts, "."), into)
	}
}

// shared is the first relation that two tables both show rows of, if they are not one relation.
func shared(a, b map[string]bool) []string {
	if len(a) == len(b) && len(a) == 1 {
		return nil
	}
	var both []string
	for name := range a {
		if b[name] {
			both = append(both, name)
		}
	}
	slices.Sort(both)
	return both[:min(len(both), 1)]
}

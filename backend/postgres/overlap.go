package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// shownSQL says what each of the given relations shows rows of: partitions, children and what views read are followed.
// A view that calls a function of the database's own which is not immutable reads whatever that does.
const shownSQL = `WITH RECURSIVE named(i, oid) AS (
  SELECT w.i, c.oid FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) WITH ORDINALITY AS w(s, t, i)
  JOIN pg_catalog.pg_namespace n ON n.nspname = w.s JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t
), reach(i, oid) AS (
  SELECT i, oid FROM named
  UNION SELECT r.i, x.oid FROM reach r CROSS JOIN LATERAL (
    SELECT h.inhrelid FROM pg_catalog.pg_inherits h WHERE h.inhparent = r.oid
    UNION ALL SELECT d.refobjid FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_depend d ON d.objid = w.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> w.ev_class WHERE w.ev_class = r.oid AND w.ev_type = '1') AS x(oid)
)
SELECT r.i, n.nspname || '.' || c.relname, nc.relkind IN ('v', 'm'), COALESCE((SELECT pg_catalog.min(f.proname::pg_catalog.text)
    FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_depend d ON d.objid = w.oid AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
      AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
    JOIN pg_catalog.pg_proc f ON f.oid = d.refobjid AND f.provolatile <> 'i' JOIN pg_catalog.pg_language l ON l.oid = f.prolang AND l.lanname NOT IN ('internal', 'c')
    WHERE w.ev_class = r.oid AND w.ev_type = '1'), '')
FROM reach r JOIN named na ON na.i = r.i JOIN pg_catalog.pg_class nc ON nc.oid = na.oid
JOIN pg_catalog.pg_class c ON c.oid = r.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f', 'm', 'v') ORDER BY r.i`

// shownIn asks PostgreSQL's catalogs what tables show rows of.
func shownIn(ctx context.Context, tx pgx.Tx, tables []*policy.Table) ([]inspect.Extent, error) {
	schemas, names := inspect.RelationNames(tables, dialect.PostgreSQL)
	rows, err := tx.Query(ctx, shownSQL, schemas, names)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := make([]inspect.Extent, len(tables))
	for rows.Next() {
		var i int64
		var relation, function string
		var view bool
		if err := rows.Scan(&i, &relation, &view, &function); err != nil {
			return nil, execute.ErrResult
		}
		s := &list[i-1]
		if s.Add(relation); function != "" {
			s.Opaque = fmt.Sprintf("calls the function %s, which may read any table unless it is declared IMMUTABLE", function)
		}
		s.View = view
	}
	return list, rows.Err()
}

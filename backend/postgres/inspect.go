package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// The queries here read PostgreSQL's catalogs alone. They run with an empty search_path, so that operators and
// functions are pg_catalog's.

const shapeSQL = `SELECT w.s, w.t, w.a, c.oid::int8,
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'relation of another kind' END,
  pg_catalog.format_type(a.atttypid, NULL), CASE WHEN b.enum AND b.type = a.atttypid THEN 'enum' WHEN b.enum THEN 'domain of an enum' ELSE pg_catalog.format_type(b.type, NULL) END,
  CASE WHEN b.type = 'pg_catalog.numeric'::pg_catalog.regtype AND b.mod >= 4 THEN (b.mod - 4) & 2047 ELSE -1 END,
  COALESCE((SELECT NOT l.collisdeterministic FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation), false), a.attnotnull,
  a.attgenerated = 'v', c.relrowsecurity, pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) AS w(s, t, a)
JOIN pg_catalog.pg_namespace n ON n.nspname = w.s
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = w.a AND a.attnum > 0 AND NOT a.attisdropped
CROSS JOIN LATERAL (WITH RECURSIVE below(type, mod) AS (
    SELECT a.atttypid, a.atttypmod
    UNION ALL SELECT y.typbasetype, CASE WHEN y.typtypmod < 0 THEN below.mod ELSE y.typtypmod END
      FROM below JOIN pg_catalog.pg_type y ON y.oid = below.type AND y.typtype = 'd')
  SELECT below.type, below.mod, y.typtype = 'e' AS enum FROM below JOIN pg_catalog.pg_type y ON y.oid = below.type AND y.typtype <> 'd') AS b`

// oldestVersion is the first PostgreSQL whose EXTRACT is exact and whose array_position takes any text type.
const oldestVersion = 140000

// shapeArguments are those of shapeSQL: the columns' schemas, tables and columns.
func shapeArguments(list []inspect.ColumnName) []any {
	var schemas, tables, columns []string
	for _, p := range list {
		schemas, tables, columns = append(schemas, p.Schema), append(tables, p.Table), append(columns, p.Column)
	}
	return []any{schemas, tables, columns}
}

// collectShape reads what shapeSQL returned.
func collectShape(rows pgx.Rows) (inspect.Shape, error) {
	defer rows.Close()
	s := inspect.Shape{}
	for rows.Next() {
		var at inspect.ColumnName
		var c inspect.ColumnShape
		if err := rows.Scan(&at.Schema, &at.Table, &at.Column, &c.Relation, &c.Kind, &c.KindOf, &c.Base, &c.Scale, &c.Loose, &c.NotNull, &c.Computed, &c.Secured, &c.Readable); err != nil {
			return nil, execute.ErrResult
		}
		s[at] = c
	}
	return s, rows.Err()
}

// pinnedShape is what Inspect saw of some tables.
type pinnedShape struct {
	tables []*policy.Table
	shape  inspect.Shape
}

// datasetShape reads what the catalog says of a dataset's tables, and what its trusted SELECTs would show.
func datasetShape(ctx context.Context, tx pgx.Tx, d *policy.Dataset) (inspect.Shape, error) {
	rows, err := tx.Query(ctx, shapeSQL, shapeArguments(inspect.ColumnsRead(d.Tables, dialect.PostgreSQL))...)
	if err != nil {
		return nil, err
	}
	have, err := collectShape(rows)
	if err != nil {
		return nil, err
	}
	return have, viewShapes(ctx, tx, d.Tables, have)
}

// viewShapes adds what trusted SELECTs among tables would show.
func viewShapes(ctx context.Context, tx pgx.Tx, tables []*policy.Table, into inspect.Shape) error {
	for _, t := range tables {
		if t.View.Trusted {
			if err := viewShape(ctx, tx, t, into); err != nil {
				return err
			}
		}
	}
	return nil
}

func hasTrusted(tables []*policy.Table) bool {
	return slices.ContainsFunc(tables, func(t *policy.Table) bool { return t.View.Trusted })
}

// Inspect: see Backend.
func (b *DB) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]backend.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, execute.DefaultDeadline)
	defer cancel()
	findings, err := b.settingFindings(ctx, d)
	if err != nil {
		b.log.Warn("the private database's settings cannot be read", "cause", cause(err))
		return nil, backend.ErrUnavailable
	}
	pooler, err := b.poolerFindings(ctx)
	if err != nil {
		return nil, backend.ErrUnavailable
	}
	findings = slices.Concat(findings, b.linkFindings(), pooler)
	if inspect.Fatal(findings) { // no query would run
		return findings, nil
	}
	var have inspect.Shape
	err = b.transactionAside(ctx, execute.DefaultDeadline, func(tx pgx.Tx) (err error) {
		var seen []backend.Finding
		seen, have, err = b.schemaFindings(ctx, tx, p, d)
		findings = append(findings, seen...)
		return err
	})
	if err != nil {
		b.log.Warn("the private database's schema cannot be read", "cause", cause(err))
		return nil, backend.ErrUnavailable
	}
	if !inspect.Fatal(findings) {
		findings = append(append(findings, b.probe(ctx, d)...), b.keyFindings(ctx, d)...)
	}
	if b.cluster != nil {
		findings = append(findings, spreadKeyFindings(d, have)...)
		if !inspect.Fatal(findings) {
			findings = append(findings, b.shapeFindings(ctx, d)...)
		}
	}
	b.pins.Note(p, d, have)
	return findings, nil
}

// schemaFindings says what the catalogs say, all in one snapshot: of the server, how tables lie on it, the role, tables
// that count as one, and each table.
func (b *DB) schemaFindings(ctx context.Context, tx pgx.Tx, p *policy.Policy, d *policy.Dataset) (list []backend.Finding, have inspect.Shape, err error) {
	for _, look := range []func() ([]backend.Finding, error){
		func() ([]backend.Finding, error) { return serverFindings(ctx, tx) },
		func() ([]backend.Finding, error) { return b.clusterFindings(ctx, tx, d) },
		func() ([]backend.Finding, error) { return roleFindings(ctx, tx, d) },
	} {
		found, err := look()
		if err != nil {
			return nil, nil, err
		}
		list = append(list, found...)
	}
	if have, err = datasetShape(ctx, tx, d); err != nil {
		return nil, nil, err
	}
	judged, err := inspect.Judge(ctx, answers{tx}, p, d, have, dialect.PostgreSQL)
	if err != nil {
		return nil, nil, err
	}
	list = append(list, judged...)
	tables := slices.DeleteFunc(slices.Clone(d.Tables), (*policy.Table).Analysed)
	var asked proofs
	for _, t := range tables {
		asked.need(nil, slices.Concat(singleOf(t), rewrite.Required(t), inspect.DeclaredKeys(t)))
	}
	if err := asked.ask(ctx, tx); err != nil {
		return nil, nil, err
	}
	for _, t := range tables {
		list = append(list, b.tableFindings(t, have, asked)...)
	}
	return list, have, nil
}

// answers are PostgreSQL's, and Citus's, which has a question more (spreadKeyFindings).
type answers struct{ tx pgx.Tx }

var _ inspect.Questions = answers{}

// Class implements questions.
func (answers) Class(c inspect.ColumnShape) string { return exactClass(c) }

// Types implements questions.
func (answers) Types() string {
	return "a type of whole numbers, numeric with a scale, text or uuid"
}

// Joined implements questions.
func (answers) Joined(a, b inspect.ColumnShape) inspect.Equality { return joinedByValue(a, b) }

// Fails implements questions: 100 / age fails at a row that was stored without a word.
func (answers) Fails(t *policy.Table, c inspect.ColumnShape) string {
	if c.Computed && !t.Public {
		return "is computed when it is read (VIRTUAL), which could fail at a row: make it STORED"
	}
	return ""
}

// Shows implements questions.
func (a answers) Shows(ctx context.Context, tables []*policy.Table) ([]inspect.Extent, error) {
	return shownIn(ctx, a.tx, tables)
}

// serverFindings says whether it is a PostgreSQL that is new enough, and what is not believed of one that is not alone.
func serverFindings(ctx context.Context, tx pgx.Tx) (list []backend.Finding, err error) {
	var version int
	var alone bool
	if err := tx.QueryRow(ctx, "SELECT pg_catalog.current_setting('server_version_num')::int4, "+onlyPostgres).Scan(&version, &alone); err != nil {
		return nil, err
	}
	if version < oldestVersion {
		list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("the database is PostgreSQL %d; dpproxy needs %d or later", version/10000, oldestVersion/10000)})
	}
	if !alone {
		list = append(list, backend.Finding{Note: true, Text: "the database is not PostgreSQL alone (Citus, or an engine that speaks as it does): " +
			"no unique constraint is taken for a proof there, so that each query numbers a unit's rows, and units cannot be found through other tables"})
	}
	return list, nil
}

// singleOf is what proves that a unit has one row of a table at most.
func singleOf(t *policy.Table) []rewrite.Unique {
	if t.UnitColumn == "" {
		return nil
	}
	return []rewrite.Unique{{Table: t, Columns: []string{t.UnitColumn}}}
}

// tableFindings holds a table against the policy, by its shape and what constraints prove of it.
func (b *DB) tableFindings(t *policy.Table, have inspect.Shape, said proofs) []backend.Finding {
	list := inspect.CompareTable(t, have, dialect.PostgreSQL)
	single := singleOf(t)
	bound := inspect.BoundFinding(t, len(single) > 0 && said.hold(nil, single))
	for i := range bound {
		if b.cluster != nil { // where a constraint would spare nothing
			bound[i].Text, _, _ = strings.Cut(bound[i].Text, " (a unique constraint")
		}
	}
	list = append(append(list, bound...), inspect.RequiredFinding(t, said.hold(nil, rewrite.Required(t)))...)
	return append(list, inspect.UniqueFindings(t, func(u rewrite.Unique) bool { return said.hold(nil, []rewrite.Unique{u}) })...)
}

// probe has PostgreSQL parse, without running it, a query that uses each table as measures can.
func (b *DB) probe(ctx context.Context, d *policy.Dataset) []backend.Finding {
	var list []backend.Finding
	for _, t := range d.Tables {
		if t.Public || t.Analysed() {
			continue
		}
		q, err := rewrite.Probe(t, b.Dialect())
		if err == nil {
			err = b.transactionAside(ctx, execute.DefaultDeadline, func(tx pgx.Tx) error {
				_, err := tx.Prepare(ctx, "", q.SQL())
				return err
			})
			if err != nil {
				err = fmt.Errorf("PostgreSQL does not accept its queries (%s)", cause(err))
			}
		}
		if err != nil {
			list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("table %s: %v", t.Name, err)})
		}
	}
	return list
}

// typeSQL names a type, what ColumnShape calls its base, and whether its values have a collation: PostgreSQL describes
// a column of a domain by the type below it.
const typeSQL = `SELECT pg_catalog.format_type(y.oid, NULL), CASE y.typtype WHEN 'e' THEN 'enum' ELSE pg_catalog.format_type(y.oid, NULL) END,
y.typcollation <> 0 FROM pg_catalog.pg_type y WHERE y.oid = $1::pg_catalog.text::pg_catalog.oid`

// viewCollationSQL asks whether a collation takes different texts of a SELECT's column for equal. No row is read.
const viewCollationSQL = `SELECT COALESCE((SELECT NOT c.collisdeterministic FROM pg_catalog.pg_collation c
  WHERE c.oid = pg_catalog.pg_collation_for((SELECT v.%s FROM (%s) AS v WHERE false))::pg_catalog.regcollation), false)`

// viewShape adds what a trusted SELECT would show. One that PostgreSQL does not accept shows nothing. It is described
// within a transaction of its own, which a failure does not end.
func viewShape(ctx context.Context, tx pgx.Tx, t *policy.Table, into inspect.Shape) error {
	whole, err := rewrite.DescribeView(t, dialect.PostgreSQL)
	if err != nil {
		return err
	}
	inner, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = inner.Rollback(ctx) }()
	described, err := inner.Prepare(ctx, "", whole)
	if err != nil {
		return nil
	}
	schema, name := inspect.RelationOf(t, dialect.PostgreSQL)
	wanted := inspect.Viewed(t)
	for _, f := range described.Fields {
		if !slices.Contains(wanted, f.Name) {
			continue
		}
		c := inspect.ColumnShape{Kind: inspect.KindTrusted, Scale: -1}
		collated := false
		if err := inner.QueryRow(ctx, typeSQL, strconv.FormatUint(uint64(f.DataTypeOID), 10)).Scan(&c.KindOf, &c.Base, &collated); err != nil {
			return execute.ErrResult
		}
		if collated && slices.Contains(inspect.KeyColumns(t), f.Name) {
			if err := inner.QueryRow(ctx, fmt.Sprintf(viewCollationSQL, dialect.QuoteName(f.Name), whole)).Scan(&c.Loose); err != nil {
				return execute.ErrResult
			}
		}
		if f.TypeModifier >= 4 && c.KindOf == "numeric" {
			c.Scale = int((f.TypeModifier - 4) & 2047)
		}
		into[inspect.ColumnOf(schema, name, f.Name)] = c
	}
	return nil
}

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

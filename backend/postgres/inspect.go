package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// The queries here read PostgreSQL's catalogs alone. They run with an empty search_path, so that operators and
// functions are pg_catalog's. OFFSET 0 has a type looked up by its number, where PostgreSQL, which expects many, would
// read all types for each column.

const shapeSQL = `SELECT w.s, w.t, w.a, c.oid::int8,
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'relation of another kind' END,
  pg_catalog.format_type(a.atttypid, NULL), CASE WHEN b.enum AND b.type = a.atttypid THEN 'enum' WHEN b.enum THEN 'domain of an enum' ELSE pg_catalog.format_type(b.type, NULL) END,
  CASE WHEN b.type = 'pg_catalog.numeric'::pg_catalog.regtype AND b.mod >= 4 THEN (b.mod - 4) & 2047 ELSE -1 END,
  COALESCE((SELECT NOT l.collisdeterministic FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation), false),
  a.attcollation::int8, a.attnotnull,
  a.attgenerated = 'v', c.relrowsecurity, pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) AS w(s, t, a)
JOIN pg_catalog.pg_namespace n ON n.nspname = w.s
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = w.a AND a.attnum > 0 AND NOT a.attisdropped
CROSS JOIN LATERAL (WITH RECURSIVE below(type, mod) AS (
    SELECT a.atttypid, a.atttypmod
    UNION ALL SELECT y.typbasetype, CASE WHEN y.typtypmod < 0 THEN below.mod ELSE y.typtypmod END
      FROM below CROSS JOIN LATERAL (SELECT d.typbasetype, d.typtypmod FROM pg_catalog.pg_type d
        WHERE d.oid = below.type AND d.typtype = 'd' OFFSET 0) AS y)
  SELECT below.type, below.mod, y.typtype = 'e' AS enum FROM below CROSS JOIN LATERAL (
    SELECT d.typtype FROM pg_catalog.pg_type d WHERE d.oid = below.type AND d.typtype <> 'd' OFFSET 0) AS y) AS b`

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

// collation is the number of the collation that a column is compared by: 0 means it has none.
type collation int64

// collectShape reads what shapeSQL returned.
func collectShape(rows pgx.Rows) (inspect.Shape, error) {
	defer rows.Close()
	s := inspect.Shape{}
	for rows.Next() {
		var at inspect.ColumnName
		var c inspect.ColumnShape
		var by collation
		err := rows.Scan(&at.Schema, &at.Table, &at.Column, &c.Relation, &c.Kind, &c.KindOf, &c.Base, &c.Scale, &c.Loose,
			&by, &c.NotNull, &c.Computed, &c.Secured, &c.Readable)
		if err != nil {
			return nil, execute.ErrResult
		}
		c.More = by
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
		return nil, unread(err)
	}
	pooler, err := b.poolerFindings(ctx)
	if err != nil {
		return nil, unread(err)
	}
	findings = slices.Concat(findings, b.linkFindings(), pooler)
	if inspect.Fatal(findings) { // no query would run
		return findings, nil
	}
	var have inspect.Shape
	err = b.transactionAside(ctx, execute.DefaultDeadline, func(tx pgx.Tx) (err error) {
		var seen []backend.Finding
		seen, have, err = b.schemaFindings(ctx, tx, p, d)
		if findings = append(findings, seen...); err != nil || inspect.Fatal(findings) {
			return err
		}
		seen, err = b.parseFindings(ctx, tx, d, have)
		findings = append(findings, seen...)
		return err
	})
	if err != nil {
		b.log.Warn("the private database's schema cannot be read", "cause", cause(err))
		return nil, unread(err)
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

// unread is the error of a look at the schema that did not end well: one that took too long says so.
func unread(err error) error {
	var server *pgconn.PgError
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &server) && server.Code == "57014" {
		return fmt.Errorf("%w: its schema was not read within the deadline, %s", backend.ErrUnavailable,
			execute.DefaultDeadline)
	}
	return backend.ErrUnavailable
}

// parseFindings has PostgreSQL parse, without running it, a query that uses each table as measures can, and one that
// compares keys of each two kinds that measures may compare. In a copy keys are compared as texts, which no type
// refuses.
func (b *DB) parseFindings(
	ctx context.Context, tx pgx.Tx, d *policy.Dataset, have inspect.Shape,
) (list []backend.Finding, err error) {
	var texts []string
	var refused []func(error) backend.Finding // of each text
	ask := func(text string, err error, finding func(error) backend.Finding) {
		if err != nil {
			list = append(list, finding(err))
			return
		}
		texts, refused = append(texts, text), append(refused, finding)
	}
	for _, t := range d.Tables {
		if t.Public || t.Analysed() {
			continue
		}
		q, err := rewrite.Probe(t, b.Dialect())
		ask(q.SQL(), err, func(err error) backend.Finding {
			return backend.Finding{Fatal: true, Text: fmt.Sprintf("table %s: %v", t.Name, err)}
		})
	}
	for _, pair := range inspect.ComparedKeys(d, have, dialect.PostgreSQL) {
		text, err := rewrite.CompareKeys(pair.Left.Columns[0], pair.Right.Columns[0], dialect.PostgreSQL)
		finding := func(error) backend.Finding {
			return backend.Finding{Fatal: true, Text: pair.String() +
				"PostgreSQL does not compare them, but statements over both tables do; give them one type and collation"}
		}
		if collationsConflict(pair.Left.Kind, pair.Right.Kind) {
			err = errCollations
		}
		ask(text, err, finding)
	}
	return list, parse(ctx, tx, texts, func(i int, err error) {
		list = append(list, refused[i](fmt.Errorf("PostgreSQL does not accept its queries (%s)", cause(err))))
	})
}

// errCollations says that two columns have collations of their own that differ.
var errCollations = errors.New("collations differ")

// defaultCollation is the number of the one that is the database's.
const defaultCollation = 100

// collationsConflict reports whether both columns have collations of their own that differ: PostgreSQL prepares a
// comparison of them, and fails when it comes to the first pair of rows.
func collationsConflict(a, b inspect.ColumnShape) bool {
	own := func(c inspect.ColumnShape) collation {
		by, _ := c.More.(collation)
		if by == defaultCollation {
			return 0
		}
		return by
	}
	return own(a) != 0 && own(b) != 0 && own(a) != own(b)
}

// parse has PostgreSQL parse texts, as many in one message as it accepts one after another, and reports those that it
// refuses. Its error is one that says nothing of a text, such as a deadline.
func parse(ctx context.Context, tx pgx.Tx, texts []string, refused func(i int, err error)) error {
	for next := 0; next < len(texts); next++ {
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		accepted, err := parseSome(ctx, tx.Conn().PgConn(), texts[next:])
		var server *pgconn.PgError
		if err != nil && (!errors.As(err, &server) || !ofText(server.Code)) {
			return err
		}
		if next += accepted; err != nil {
			refused(next, err)
		}
		if err := inner.Rollback(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ofText reports whether an SQLSTATE is about what was asked: syntax and names, features, limits of a statement.
func ofText(code string) bool {
	return slices.Contains([]string{"42", "0A", "22", "54"}, execute.Class(code))
}

// parseSome has PostgreSQL parse texts in one message, up to the first that it refuses, and returns how many it
// accepts.
func parseSome(ctx context.Context, conn *pgconn.PgConn, texts []string) (accepted int, err error) {
	p := conn.StartPipeline(ctx)
	defer func() { err = cmp.Or(err, p.Close()) }()
	for _, text := range texts {
		p.SendPrepare("", text, nil)
	}
	if err := p.Sync(); err != nil {
		return 0, err
	}
	for {
		switch result, err := p.GetResults(); result.(type) {
		case *pgconn.StatementDescription:
			accepted++
		default:
			return accepted, err
		}
	}
}

// typeSQL names a type, what ColumnShape calls its base, and whether its values have a collation: PostgreSQL describes
// a column of a domain by the type below it.
const typeSQL = `SELECT pg_catalog.format_type(y.oid, NULL), CASE y.typtype WHEN 'e' THEN 'enum' ELSE pg_catalog.format_type(y.oid, NULL) END,
y.typcollation <> 0 FROM pg_catalog.pg_type y WHERE y.oid = $1::pg_catalog.text::pg_catalog.oid`

// viewCollationSQL asks for the collation of a SELECT's column, and whether it takes different texts for equal. No row
// is read.
const viewCollationSQL = `SELECT COALESCE(pg_catalog.max(c.oid::pg_catalog.int8), 0),
  COALESCE(pg_catalog.bool_or(NOT c.collisdeterministic), false) FROM pg_catalog.pg_collation c
WHERE c.oid = pg_catalog.pg_collation_for((SELECT v.%s FROM (%s) AS v WHERE false))::pg_catalog.regcollation`

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
		by := collation(0)
		collated := false
		if err := inner.QueryRow(ctx, typeSQL, strconv.FormatUint(uint64(f.DataTypeOID), 10)).Scan(&c.KindOf, &c.Base, &collated); err != nil {
			return execute.ErrResult
		}
		if collated && slices.Contains(inspect.KeyColumns(t), f.Name) {
			text := fmt.Sprintf(viewCollationSQL, dialect.QuoteName(f.Name), whole)
			if err := inner.QueryRow(ctx, text).Scan(&by, &c.Loose); err != nil {
				return execute.ErrResult
			}
		}
		c.More = by
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

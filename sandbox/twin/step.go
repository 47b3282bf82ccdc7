package twin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// What the twin should hold and what it holds: tables that the policy no longer lists are dropped, and so are schemas.

// step brings one twin database in step with its dataset, in one transaction.
type step struct {
	tx         pgx.Tx
	session    string
	have       map[string]*table
	statements []string // that are not sent yet
}

// table is a table or view as the twin has it.
type table struct {
	schema, name, kind, comment string
	columns                     []field
}

type field struct {
	name, text, comment string
	notNull             bool
}

// exec has a statement sent with those before it, by send.
func (s *step) exec(format string, args ...any) {
	s.statements = append(s.statements, fmt.Sprintf(format, args...))
}

// send has the server execute the statements, in one message: a policy of hundreds of tables needs thousands.
func (s *step) send(ctx context.Context) error {
	var batch pgx.Batch
	for _, sql := range s.statements {
		batch.Queue(sql)
	}
	results := s.tx.SendBatch(ctx, &batch)
	for _, sql := range s.statements {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // its error is the same
			return fmt.Errorf("%w (%s)", err, strings.SplitN(sql, " (", 2)[0])
		}
	}
	s.statements = nil
	return results.Close()
}

func (s *step) bring(ctx context.Context, database string, d *policy.Dataset) error {
	name, role := pgx.Identifier{database}.Sanitize(), pgx.Identifier{s.session}.Sanitize()
	for _, sql := range []string{"REVOKE ALL ON DATABASE " + name + " FROM PUBLIC", "REVOKE ALL ON DATABASE " + name + " FROM " + role,
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC", "COMMENT ON DATABASE " + name + " IS " + literal(ownMark)} {
		s.exec("%s", sql)
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	wanted := wantedTables(d)
	keys, err := s.dropKeys(ctx, d, wanted)
	if err != nil {
		return err
	}
	if err := s.dropUnwanted(ctx, wanted); err != nil {
		return err
	}
	schemas := map[string]bool{"dp": true}
	for _, t := range wanted {
		schemas[t.schema] = true
	}
	for _, schema := range slices.Sorted(maps.Keys(schemas)) {
		quoted := dialect.QuoteName(schema)
		s.exec("CREATE SCHEMA IF NOT EXISTS %s", quoted)
		s.exec("GRANT USAGE ON SCHEMA %s TO %s", quoted, role)
		s.exec("COMMENT ON SCHEMA %s IS %s", quoted, literal(catalog.Asking))
	}
	for _, t := range wanted {
		s.table(t)
		s.exec("GRANT SELECT ON %s TO %s", t.full(), role)
	}
	for _, sql := range keys {
		s.exec("%s", sql)
	}
	if err := s.dropSchemas(ctx, schemas); err != nil {
		return err
	}
	return s.send(ctx)
}

func (t *table) full() string {
	return dialect.QuoteName(t.schema) + "." + dialect.QuoteName(t.name)
}

// wantedTables are those of the policy, and the views of schema dp, whose rows come with each query: made-up rows are
// there whether they are paid for or not.
func wantedTables(d *policy.Dataset) []*table {
	var wanted []*table
	for _, t := range d.Tables {
		w := &table{schema: t.Schema, name: t.Name, kind: "r", comment: catalog.TableComment(t)}
		for _, c := range t.Described() {
			typ, typmod := c.DescribedType()
			w.columns = append(w.columns, field{name: c.Name, text: typ.Format(typmod), comment: catalog.ColumnComment(c), notNull: t.Always(c)})
		}
		wanted = append(wanted, w)
	}
	for _, t := range d.Tables {
		if t.MadeUp() == nil {
			continue
		}
		w := &table{schema: "dp", name: t.MadeUpName(), kind: "v", comment: catalog.MadeUpComment(t)}
		for _, c := range d.MadeUp(w.name).Columns {
			typ, typmod := c.DescribedType()
			w.columns = append(w.columns, field{name: c.Name, text: typ.Format(typmod)})
		}
		wanted = append(wanted, w)
	}
	for _, rel := range pgcatalog.Relations() {
		if rel.Schema != "dp" {
			continue
		}
		w := &table{schema: "dp", name: rel.Name, kind: "v", comment: catalog.ViewComment(rel.Name)}
		for _, c := range rel.Columns {
			w.columns = append(w.columns, field{name: c.Name, text: c.Type.Name()})
		}
		wanted = append(wanted, w)
	}
	return wanted
}

// dropKeys drops the keys that the twin has, foreign ones first, where they or a table's columns are not as wanted, and
// returns the statements that add the wanted ones when the tables are there. The tables are empty: no row is held
// against a key. That a column is not null is a constraint, too, from PostgreSQL 18 on, and is the column's matter
// (table).
func (s *step) dropKeys(ctx context.Context, d *policy.Dataset, wanted []*table) (add []string, err error) {
	rows, err := s.tx.Query(ctx, `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), pg_catalog.format('%I', k.conname), pg_catalog.pg_get_constraintdef(k.oid)
		FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND k.contype IN ('p', 'u', 'f') ORDER BY k.contype <> 'f', 1, 2`)
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	var drop []string
	var table, name, definition string
	if _, err := pgx.ForEachRow(rows, []any{&table, &name, &definition}, func() error {
		have[table+" "+name+" "+definition] = true
		drop = append(drop, "ALTER TABLE "+table+" DROP CONSTRAINT "+name)
		return nil
	}); err != nil {
		return nil, err
	}
	same, foreign := true, []string(nil)
	for _, c := range d.Constraints() {
		table, name := catalog.QuoteIdentifier(c.Of.Schema)+"."+catalog.QuoteIdentifier(c.Of.Name), catalog.QuoteIdentifier(c.Name)
		definition := catalog.ConstraintDefinition(c, true)
		same = same && have[table+" "+name+" "+definition]
		sql := "ALTER TABLE " + table + " ADD CONSTRAINT " + name + " " + definition
		if c.To != nil {
			foreign = append(foreign, sql)
		} else {
			add = append(add, sql)
		}
	}
	add = append(add, foreign...)
	for _, t := range wanted {
		same = same && s.have[t.full()] != nil && sameFields(s.have[t.full()], t)
	}
	if same && len(drop) == len(add) {
		return nil, nil
	}
	for _, sql := range drop {
		s.exec("%s", sql)
	}
	return add, nil
}

// read reads what the twin has.
func (s *step) read(ctx context.Context) error {
	rows, err := s.tx.Query(ctx, `SELECT n.nspname::text, c.relname::text, c.relkind::text, COALESCE(pg_catalog.obj_description(c.oid, 'pg_class'), ''),
		COALESCE(a.attname::text, ''), COALESCE(pg_catalog.format_type(a.atttypid, a.atttypmod), ''), COALESCE(a.attnotnull, false),
		COALESCE(pg_catalog.col_description(c.oid, a.attnum), '')
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relkind <> 'i' ORDER BY 1, 2, a.attnum`)
	if err != nil {
		return err
	}
	s.have = map[string]*table{}
	var t table
	var f field
	_, err = pgx.ForEachRow(rows, []any{&t.schema, &t.name, &t.kind, &t.comment, &f.name, &f.text, &f.notNull, &f.comment}, func() error {
		here := s.have[t.full()]
		if here == nil {
			here = &table{schema: t.schema, name: t.name, kind: t.kind, comment: t.comment}
			s.have[t.full()] = here
		}
		if f.name != "" {
			here.columns = append(here.columns, f)
		}
		return nil
	})
	return err
}

// dropUnwanted drops tables that the policy no longer lists. A table with rows is only dropped or changed where its own
// comment says that they are public: else somebody has put rows where none belong.
func (s *step) dropUnwanted(ctx context.Context, wanted []*table) error {
	keep := map[string]*table{}
	for _, t := range wanted {
		keep[t.full()] = t
	}
	for full, t := range s.have {
		if t.kind != "r" && t.kind != "v" {
			return fmt.Errorf("it holds %s.%s, which is no table of dpproxy's", t.schema, t.name)
		}
		want := keep[full]
		if t.kind == "r" && !strings.HasPrefix(t.comment, catalog.PublicComment) {
			var filled bool
			if err := s.tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+full+")").Scan(&filled); err != nil {
				return err
			}
			if filled {
				return fmt.Errorf("its table %s.%s holds rows; the tables of a twin are empty", t.schema, t.name)
			}
		}
		if want != nil && want.kind == t.kind && strings.HasPrefix(want.comment, catalog.PublicComment) == strings.HasPrefix(t.comment, catalog.PublicComment) {
			continue
		}
		s.drop(t)
	}
	return nil
}

func (s *step) drop(t *table) {
	delete(s.have, t.full())
	s.exec("DROP %s %s", kinds[t.kind], t.full())
}

// kinds are the words for what a table is.
var kinds = map[string]string{"r": "TABLE", "v": "VIEW"}

// dropSchemas drops the schemas that no table of the policy lies in.
func (s *step) dropSchemas(ctx context.Context, keep map[string]bool) error {
	rows, err := s.tx.Query(ctx, `SELECT n.nspname::text FROM pg_catalog.pg_namespace n
		WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname NOT IN ('information_schema', 'public')`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if !keep[name] {
			s.exec("DROP SCHEMA %s", dialect.QuoteName(name))
		}
	}
	return nil
}

// How one table is made, or altered in place when the policy changes. A table that got a column "age int4" is altered
// with ALTER TABLE … ADD COLUMN "age" integer, and its number in the catalogs stays.

// table makes a table, or alters it in place: its object id stays, so that clients that remember it are right.
func (s *step) table(want *table) {
	have := s.have[want.full()]
	if have != nil && !sameFields(have, want) && (want.kind == "v" || !s.alterable(have, want)) {
		s.drop(have)
		have = nil
	}
	if have == nil {
		s.create(want)
		have = &table{columns: make([]field, len(want.columns))}
	} else {
		s.alter(have, want)
	}
	if have.comment != want.comment {
		s.exec("COMMENT ON %s %s IS %s", kinds[want.kind], want.full(), literal(want.comment))
	}
	for i, c := range want.columns {
		if i < len(have.columns) && have.columns[i].comment == c.comment {
			continue
		}
		s.exec("COMMENT ON COLUMN %s.%s IS %s", want.full(), dialect.QuoteName(c.name), literal(c.comment))
	}
}

func (s *step) create(t *table) {
	var items []string
	for _, c := range t.columns {
		if t.kind == "v" {
			items = append(items, "CAST(NULL AS "+c.text+") AS "+dialect.QuoteName(c.name))
			continue
		}
		items = append(items, dialect.QuoteName(c.name)+" "+c.text+map[bool]string{true: " NOT NULL"}[c.notNull])
	}
	if t.kind == "v" {
		s.exec("CREATE VIEW %s AS SELECT %s WHERE false", t.full(), strings.Join(items, ", "))
		return
	}
	s.exec("CREATE TABLE %s (%s)", t.full(), strings.Join(items, ", "))
}

func sameFields(a, b *table) bool {
	if len(a.columns) != len(b.columns) {
		return false
	}
	for i := range a.columns {
		x, y := a.columns[i], b.columns[i]
		if x.name != y.name || x.text != y.text || x.notNull != y.notNull {
			return false
		}
	}
	return true
}

// alterable reports whether dropping columns, changing types and adding columns at the end leads to the wanted order.
func (s *step) alterable(have, want *table) bool {
	if strings.HasPrefix(have.comment, catalog.PublicComment) {
		return false // its rows are copied anew anyway
	}
	at := 0
	for _, c := range have.columns {
		k := fieldIndex(want, c.name)
		if k < 0 {
			continue
		}
		if k != at {
			return false
		}
		at++
	}
	return true
}

func fieldIndex(t *table, name string) int {
	for i, c := range t.columns {
		if c.name == name {
			return i
		}
	}
	return -1
}

// alter changes the columns of an empty table; have is then as wanted but for comments.
func (s *step) alter(have, want *table) {
	var steps []string
	var now []field
	for _, c := range have.columns {
		k, quoted := fieldIndex(want, c.name), dialect.QuoteName(c.name)
		if k < 0 {
			steps = append(steps, "DROP COLUMN "+quoted)
			continue
		}
		w := want.columns[k]
		if w.text != c.text {
			steps = append(steps, "ALTER COLUMN "+quoted+" TYPE "+w.text+" USING NULL")
		}
		if w.notNull != c.notNull {
			steps = append(steps, "ALTER COLUMN "+quoted+map[bool]string{true: " SET NOT NULL", false: " DROP NOT NULL"}[w.notNull])
		}
		now = append(now, c)
	}
	for _, w := range want.columns[len(now):] {
		steps = append(steps, "ADD COLUMN "+dialect.QuoteName(w.name)+" "+w.text+map[bool]string{true: " NOT NULL"}[w.notNull])
		now = append(now, field{name: w.name})
	}
	have.columns = now
	if len(steps) == 0 {
		return
	}
	s.exec("ALTER TABLE %s %s", want.full(), strings.Join(steps, ", "))
}

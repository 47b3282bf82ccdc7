package mysql

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Source is a MySQL or MariaDB database, of which snapshots are made (docs/adr/0092). No measure is ever sent to it:
// the declared columns of its private tables are read, cell by cell (package mysql), into DB tables of the same names
// in a file that is thrown away, where the extractions run that make a snapshot of them.
//
//	SELECT t.`person_id`, LEFT(t.`ward`, 7) FROM `shop`.`visits` AS t     in MySQL, for the extraction of
//	SELECT … FROM "private"."shop"."visits" AS t                         in DB
//
// Claim. What is read is the rows of one moment, under a schema that did not change between then and the end. Proof.
// InnoDB's consistent snapshot holds for all its tables, and others are refused. A definition is not in it: a key that
// was added a moment later says nothing of the snapshot's rows. So a first connection, the guard, opens a transaction
// and looks at each table, whose definition nobody can change until that transaction ends (a metadata lock); only then
// the second begins its snapshot and locks the same tables; the schema is held against what was inspected after that,
// and the guard is asked whether it is still there.
type Source struct {
	config *Config
	weak   bool
	log    *slog.Logger
	pins   inspect.Pins[seen]
}

// seen is what the catalog says of tables.
type seen struct {
	shape inspect.Shape
	keys  map[inspect.ColumnName]bool // the columns of primary keys
}

var _ snapshot.Source = (*Source)(nil)

// Open connects to the database that a policy names.
func Open(ctx context.Context, p *policy.Policy, log *slog.Logger) (*Source, error) {
	config, weak, err := ParseURL(p.Backend.URL)
	if err != nil {
		return nil, err
	}
	s := &Source{config: config, weak: weak, log: log}
	return s, s.beside(ctx, func(*Conn) error { return nil })
}

// Dialect: see source.
func (s *Source) Dialect() dialect.Dialect { return dialect.MySQL }

// Close: see source. Nothing stays open.
func (s *Source) Close() error { return nil }

// Identity: see source.
func (s *Source) Identity() string {
	return fmt.Sprintf("mysql %q %q %q", s.config.Net, s.config.Addr, s.config.DBName)
}

// mysqlAside bounds what is asked beside copies.
const mysqlAside = time.Minute

// beside runs do on a connection of its own. Its error holds no text of the server's.
func (s *Source) beside(ctx context.Context, do func(*Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, mysqlAside)
	defer cancel()
	c, err := Connect(ctx, s.config, mysqlAside)
	if err == nil {
		defer c.Close()
		err = do(c)
	}
	if err == nil || errors.Is(err, ErrFlavor) {
		return err
	}
	s.log.Warn("the private database does not answer", "cause", cause(err))
	return backend.ErrUnavailable
}

// ReadPublic: see Backend. The rows go the way of private ones, so that their values mean the same.
func (s *Source) ReadPublic(ctx context.Context, t *policy.Table) (rows privacy.Released[[][]policy.Value], err error) {
	engine, err := embedded.Start(ctx, os.TempDir())
	if err != nil {
		return rows, err
	}
	defer engine.Close()
	err = s.within(ctx, []*policy.Table{t}, false, func(r *reading) error {
		into := &snapshot.Maker{Instance: engine, Log: s.log}
		if err := into.Exec(ctx, "ATTACH ':memory:' AS "+dialect.Catalog); err != nil {
			return err
		}
		return r.bring(ctx, into, t, true, nil, t.MaxRows+1)
	})
	if err != nil {
		return rows, err
	}
	return inspect.CopyTable(t, dialect.MySQL, func(text string, add func([]*string) error) error { return engine.EachRow(ctx, text, add) })
}

// Consistent: see source.
func (s *Source) Consistent(ctx context.Context, into *snapshot.Maker, do func(snapshot.Reading) error) error {
	var tables []*policy.Table
	for _, e := range into.List {
		for t := e.Table; t != nil; t = nextOf(t) {
			if !slices.Contains(tables, t) {
				tables = append(tables, t)
			}
		}
	}
	err := into.Exec(ctx, embedded.Attach(filepath.Join(into.Directory, "read"+snapshot.FileEnd), dialect.Catalog, rand.Text(), false)) // by a key that nobody keeps
	if err != nil {
		return err
	}
	if err := s.within(ctx, tables, true, func(r *reading) error { return do(r) }); err != nil {
		return err
	}
	return into.Exec(ctx, "DETACH "+dialect.Catalog)
}

// cause names a fault as cause does, the server's by its number too.
func cause(err error) string {
	number, state, ok := Code(err)
	switch {
	case ok && !errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("error %d, SQLSTATE class %s", number, execute.Class(state))
	case errors.Is(err, ErrFlavor):
		return err.Error()
	case errors.Is(err, ErrAnswer):
		return execute.Cause(execute.ErrResult)
	}
	return execute.Cause(err)
}

// nextOf is the table through which a table's units are found; nil means its rows name them.
func nextOf(t *policy.Table) *policy.Table {
	if t.Via == nil {
		return nil
	}
	return t.Via.Table
}

// within runs do over rows of one moment, of tables whose schema, with pinned, is that which Inspect saw. Its error is
// do's, one of this package, or says a cause without the server's text.
func (s *Source) within(ctx context.Context, tables []*policy.Table, pinned bool, do func(*reading) error) error {
	limit := snapshot.LongestCopy
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline) + time.Minute // ctx ends it sooner, and the server is sent this
	}
	guard, err := Connect(ctx, s.config, limit)
	if err != nil {
		s.log.Warn("the private database does not answer", "cause", cause(err))
		return backend.ErrUnavailable
	}
	defer guard.Close()
	reader, err := Connect(ctx, s.config, limit)
	if err != nil {
		s.log.Warn("the private database does not answer", "cause", cause(err))
		return backend.ErrUnavailable
	}
	defer reader.Close()
	defer func() {
		if ctx.Err() != nil { // who left ends what the server still does for it
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), execute.ReadyTimeout)
			defer cancel()
			_ = s.kill(late, reader.ID)
		}
	}()
	r := &reading{Conn: reader, source: s}
	err = r.begin(ctx, guard, tables, pinned)
	if err == nil {
		err = do(r)
	}
	switch {
	case Failed(err) || errors.Is(err, execute.ErrResult):
		return fmt.Errorf("the tables cannot be read (%s)", cause(err))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// kill ends another connection of the same account.
func (s *Source) kill(ctx context.Context, id string) error {
	c, err := Connect(ctx, s.config, execute.ReadyTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Exec(ctx, "KILL CONNECTION "+id)
}

// reading is a transaction with one snapshot.
type reading struct {
	*Conn
	source *Source
	shape  inspect.Shape
	keys   map[inspect.ColumnName]bool
}

// begin: see Source.
func (r *reading) begin(ctx context.Context, guard *Conn, tables []*policy.Table, pinned bool) error {
	var looks []string
	for _, t := range tables {
		looks = append(looks, "SELECT 1 FROM "+relation(t)+" LIMIT 0")
	}
	lock := func(c *Conn, begin string) error {
		if err := c.Exec(ctx, begin); err != nil {
			return err
		}
		for _, look := range looks {
			if _, err := c.Texts(ctx, look); err != nil {
				return err
			}
		}
		return nil
	}
	if err := lock(guard, "START TRANSACTION READ ONLY"); err != nil {
		return err
	}
	if err := lock(r.Conn, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); err != nil {
		return err
	}
	seen := map[*policy.Dataset]bool{}
	r.shape, r.keys = inspect.Shape{}, map[inspect.ColumnName]bool{}
	for _, t := range tables {
		if d := t.Dataset; !seen[d] {
			seen[d] = true
			if err := r.unchanged(ctx, d, pinned); err != nil {
				return err
			}
		}
	}
	held, err := guard.Texts(ctx, "SELECT connection_id()")
	if err != nil || len(held) != 1 || held[0][0] != guard.ID {
		return errors.Join(err, execute.ErrResult)
	}
	return nil
}

// unchanged looks at a dataset's schema again.
func (r *reading) unchanged(ctx context.Context, d *policy.Dataset, pinned bool) error {
	have, err := look(ctx, r.Conn, d)
	if err != nil {
		return err
	}
	seen, _ := r.source.pins.Of(d)
	if pinned && !have.same(seen) {
		return backend.ErrDrift
	}
	maps.Copy(r.shape, have.shape)
	maps.Copy(r.keys, have.keys)
	return nil
}

// same reports whether a catalog says the same twice.
func (m seen) same(other seen) bool {
	return maps.Equal(m.shape, other.shape) && maps.Equal(m.keys, other.keys)
}

// Proven: see reading. A primary key alone is believed: InnoDB keeps its rows by it. Other unique keys are
// not checked where a session has switched that off (unique_checks), and what such sessions leave is not to be seen.
func (r *reading) Proven(_ context.Context, needs []rewrite.Unique) (bool, error) {
	return !slices.ContainsFunc(needs, func(u rewrite.Unique) bool { return !proven(r.shape, r.keys, u) }), nil
}

func proven(have inspect.Shape, keys map[inspect.ColumnName]bool, u rewrite.Unique) bool {
	columns := []string{}
	for _, c := range u.Columns {
		columns = append(columns, strings.ToLower(c))
	}
	if u.Nullable && u.Table.UnitColumn != "" { // rows are joined within a unit
		columns = append(columns, strings.ToLower(u.Table.UnitColumn))
	}
	any := false
	for at := range keys {
		if at.Schema == u.Table.Source.Schema && at.Table == u.Table.Source.Name {
			if !slices.Contains(columns, at.Column) {
				return false
			}
			any = true
		}
	}
	whole := u.Whole == "" || strings.HasPrefix(KeyClass(cellsOf(have[inspect.ColumnOf(u.Table.Source.Schema, u.Table.Source.Name, u.Whole)])), "whole")
	return any && whole && u.Table.View.Text == ""
}

// Numbers: see reading.
func (r *reading) Numbers() bool { return false }

// Rows: see reading.
func (r *reading) Rows(ctx context.Context, e rewrite.Extraction, into *snapshot.Staged) error {
	keys := map[*policy.Table][]string{}
	for t := e.Table; t != nil; t = nextOf(t) {
		if t == e.Table {
			keys[t] = inspect.KeyColumns(t)
		}
		if t.UnitColumn != "" {
			keys[t] = append(keys[t], t.UnitColumn)
		}
		if t.Via != nil {
			keys[t], keys[t.Via.Table] = append(keys[t], t.Via.Column), append(keys[t.Via.Table], t.Via.Key)
		}
	}
	for t := e.Table; t != nil; t = nextOf(t) {
		if err := r.bring(ctx, into.Maker, t, t == e.Table, keys[t], 0); err != nil {
			return err
		}
	}
	_, err := into.Pool.ExecContext(ctx, "INSERT INTO staged.main."+into.Name+" "+e.SQL(), e.Args()...)
	if err != nil {
		return cmp.Or(context.Cause(ctx), into.Failed(err))
	}
	for t := e.Table; t != nil; t = nextOf(t) {
		if err := into.Exec(ctx, "DROP TABLE "+relationDuck(t)); err != nil {
			return err
		}
	}
	return nil
}

func relation(t *policy.Table) string {
	return Quote(t.Source.Schema) + "." + Quote(t.Source.Name)
}

func relationDuck(t *policy.Table) string {
	return dialect.Catalog + "." + dialect.QuoteName(t.Source.Schema) + "." + dialect.QuoteName(t.Source.Name)
}

// columns plans how a table is read: its keys, and the columns that the policy shows, if it is not read for the keys
// alone.
func (r *reading) columns(t *policy.Table, visible bool, keys []string) (list []Column, err error) {
	uses := map[string][]*policy.Column{}
	var order []string
	use := func(name string, c *policy.Column) {
		if i := slices.IndexFunc(order, func(o string) bool { return strings.EqualFold(o, name) }); i < 0 {
			order = append(order, name)
		} else {
			name = order[i]
		}
		if c != nil {
			uses[name] = append(uses[name], c)
		}
	}
	for _, c := range t.Columns {
		if visible && !c.Made() {
			use(c.Source, c)
		}
	}
	for _, k := range keys {
		use(k, nil)
	}
	for _, name := range order {
		at, ok := r.shape[inspect.ColumnOf(t.Source.Schema, t.Source.Name, name)]
		if !ok {
			return nil, backend.ErrDrift
		}
		key := slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, name) })
		c, err := ColumnOf(name, cellsOf(at), uses[name], key, rewrite.WholeKey(t, name) || name == t.RowRank)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// errPacket says that a row might be more than the server sends.
var errPacket = errors.New("the private database's max_allowed_packet is less than a row of the policy's columns may take: raise it")

// bring reads a table into a DB table of its name; most, if not 0, bounds the rows.
func (r *reading) bring(ctx context.Context, into *snapshot.Maker, t *policy.Table, visible bool, keys []string, most int) error {
	list, err := r.columns(t, visible, keys)
	if err != nil {
		return err
	}
	var items, fields []string
	bytes := 64
	for _, c := range list {
		items, fields = append(items, c.Item), append(fields, dialect.QuoteName(c.Name)+" "+c.Kind)
		bytes += c.Most
	}
	if len(list) == 0 {
		items, fields = []string{"1"}, []string{"one BIGINT"}
		list = []Column{{Value: WholeCell}}
	}
	packet, err := r.Texts(ctx, "SELECT @@max_allowed_packet < "+fmt.Sprint(bytes))
	if err != nil || len(packet) != 1 || packet[0][0] != "0" {
		return cmp.Or(err, errPacket)
	}
	err = into.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+dialect.Catalog+"."+dialect.QuoteName(t.Source.Schema),
		"CREATE TABLE "+relationDuck(t)+" ("+strings.Join(fields, ", ")+")")
	if err != nil {
		return err
	}
	conn, err := into.Pool.Conn(ctx)
	if err != nil {
		return snapshot.ErrMaking
	}
	defer conn.Close()
	text := "SELECT " + strings.Join(items, ", ") + " FROM " + relation(t) + " AS t"
	if most > 0 {
		text += " LIMIT " + fmt.Sprint(most)
	}
	return conn.Raw(func(inner any) error {
		add, err := duckdb.NewAppender(inner.(driver.Conn), dialect.Catalog, t.Source.Schema, t.Source.Name)
		if err != nil {
			return snapshot.ErrMaking
		}
		row := make([]driver.Value, len(list))
		err = r.Each(ctx, text, nil, func(values []driver.Value) error {
			if len(values) != len(row) {
				return execute.ErrResult
			}
			for i, v := range values {
				row[i] = list[i].Value(v)
			}
			if add.AppendRow(row...) != nil {
				return snapshot.ErrMaking
			}
			return nil
		})
		if closed := add.Close(); err == nil && closed != nil {
			err = snapshot.ErrMaking
		}
		return err
	})
}

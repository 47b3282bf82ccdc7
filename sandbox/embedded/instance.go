package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/are"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// One DuckDB of a dataset, in the child: filled, then locked, then asked. Each query has a connection of its own, and its tables
// go with that connection.

// instance is one locked DuckDB in memory: the catalog and the public tables of a dataset, and our functions.
type instance struct {
	connector *duckdb.Connector
	db        *sql.DB
	env       scalar.Env
	calls     map[string]*resolved
	patterns  map[string]*are.Expression // compiled, of one query and the next
}

// lockdown is what an instance is told before anything of an analyst's reaches it. One thread: results come in a fixed
// order, and our functions are called by one caller at a time.
func lockdown(memory uint64) []string {
	return []string{
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET temp_directory = ''",
		"SET memory_limit = '" + strconv.FormatUint(memory>>20, 10) + "MiB'",
		"SET threads = 1",
		"SET preserve_insertion_order = true",
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	}
}

func openInstance(memory uint64, dataset string, tables []table) (*instance, error) {
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return nil, err
	}
	i := &instance{connector: connector, db: sql.OpenDB(connector)}
	if err := i.furnish(memory, dataset, tables); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// furnish fills a new instance and locks it.
func (i *instance) furnish(memory uint64, dataset string, tables []table) error {
	ctx := context.Background()
	conn, err := i.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := i.register(ctx, conn); err != nil {
		return err
	}
	i.begin(scalar.Literals{Now: time.Now()}, scalar.Literals{Now: time.Now()})
	static, err := catalog.Static(dataset)
	if err != nil {
		return err
	}
	for _, t := range layered(wired(static), tables) {
		if err := load(ctx, conn, t, false); err != nil {
			return err
		}
	}
	held, err := heldMemory(ctx, conn)
	if err != nil {
		return err
	}
	for _, statement := range append(macros(), lockdown(memory+held)...) {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// layered joins the rows of tables of one name.
func layered(lists ...[]table) []table {
	var all []table
	at := map[string]int{}
	for _, list := range lists {
		for _, t := range list {
			if k, ok := at[t.name]; ok {
				all[k].rows.Data = append(all[k].rows.Data, t.rows.Data...)
				continue
			}
			at[t.name] = len(all)
			all = append(all, t)
		}
	}
	return all
}

// heldMemory is what an instance takes for the tables that it keeps.
func heldMemory(ctx context.Context, conn *sql.Conn) (bytes uint64, err error) {
	err = conn.QueryRowContext(ctx, "SELECT coalesce(sum(memory_usage_bytes), 0)::UBIGINT FROM duckdb_memory()").Scan(&bytes)
	return bytes, err
}

func (i *instance) close() {
	_ = i.db.Close()
	_ = i.connector.Close()
}

// run answers one query on a connection of its own, whose temporary tables go with it.
func (i *instance) run(r *request, maxRows int, maxBytes int64) (sandbox.Rows, error) {
	ctx := context.Background()
	i.begin(r.texts, r.read)
	conn, err := i.db.Conn(ctx)
	if err != nil {
		return sandbox.Rows{}, err
	}
	defer func() {
		// ErrBadConn has database/sql close the connection instead of keeping it for the next query.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
	}()
	for _, t := range r.tables {
		if err := load(ctx, conn, t, true); err != nil {
			return sandbox.Rows{}, err
		}
	}
	var rows sandbox.Rows
	err = conn.Raw(func(raw any) error {
		var err error
		rows, err = query(ctx, raw.(*duckdb.Conn), r, maxRows, maxBytes)
		return err
	})
	return rows, err
}

// query prepares and runs the one SELECT of a request.
func query(ctx context.Context, conn *duckdb.Conn, r *request, maxRows int, maxBytes int64) (sandbox.Rows, error) {
	if !single(r.sql) {
		return sandbox.Rows{}, sandbox.ErrBroken
	}
	prepared, err := conn.PrepareContext(ctx, r.sql)
	if err != nil {
		return sandbox.Rows{}, err
	}
	defer prepared.Close()
	statement := prepared.(*duckdb.Stmt)
	if what, err := statement.StatementType(); err != nil || what != duckdb.STATEMENT_TYPE_SELECT {
		return sandbox.Rows{}, sandbox.ErrBroken
	}
	out, size := sandbox.Rows{Columns: r.columns}, int64(0)
	if r.kind == askDescribe {
		return out, nil
	}
	args := make([]driver.NamedValue, len(r.args))
	for k, a := range r.args {
		args[k] = driver.NamedValue{Ordinal: k + 1, Value: a}
	}
	rows, err := statement.QueryContext(ctx, args)
	if err != nil {
		return sandbox.Rows{}, err
	}
	defer rows.Close()
	if len(rows.Columns()) != len(r.columns) && len(r.columns) > 0 {
		return sandbox.Rows{}, sandbox.ErrBroken
	}
	line := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(line); err == io.EOF {
			return out, nil
		} else if err != nil {
			return sandbox.Rows{}, err
		}
		if len(out.Data) >= maxRows {
			return sandbox.Rows{}, sandbox.ErrTooMany
		}
		values := make([]policy.Value, len(r.columns))
		for k := range values {
			if values[k], err = restore(r.columns[k].Type, line[k]); err != nil {
				return sandbox.Rows{}, err
			}
		}
		if size += sandbox.SizeOf(values); size > maxBytes {
			return sandbox.Rows{}, sandbox.ErrResources
		}
		out.Data = append(out.Data, values)
	}
}

// single tells whether a text can hold no more than one statement: outside names and strings it has no semicolon, no
// comment and no dollar quote. The rewriting makes no other texts; this is the second lock on that door.
func single(sql string) bool {
	for i := 0; i < len(sql); i++ {
		switch sql[i] {
		case '\'', '"':
			end := strings.IndexByte(sql[i+1:], sql[i])
			if end < 0 {
				return false
			}
			i += end + 1
		case ';':
			return false
		case '-', '/', '$':
			// "//" is integer division, "$1" a parameter.
			if rest := sql[i+1:]; strings.HasPrefix(rest, "-") && sql[i] == '-' || strings.HasPrefix(rest, "*") && sql[i] == '/' ||
				sql[i] == '$' && (rest == "" || rest[0] < '0' || rest[0] > '9') {
				return false
			}
		}
	}
	return true
}

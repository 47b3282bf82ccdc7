package sandbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// household is all that lives in a child: an instance for each dataset that was asked about. Requests come one at a
// time.
type household struct {
	instances map[string]*instance
	memory    uint64 // that a query may take
	mostRows  int
	bound     dataBound
}

func (h *household) answer(r *request) (out *reply) {
	defer func() {
		if recover() != nil {
			out = &reply{fault: errBroken, worn: true}
		}
	}()
	if r.kind == askOpen {
		if old := h.instances[r.dataset]; old != nil {
			old.close()
			delete(h.instances, r.dataset)
		}
		if r.memory > 0 {
			h.memory = uint64(r.memory)
		}
		h.bound.lift()
		i, err := openInstance(h.memory, r.dataset, r.tables)
		if err != nil {
			return failed(err)
		}
		h.instances[r.dataset] = i
		h.bound.set(h.memory)
		return &reply{}
	}
	i := h.instances[r.dataset]
	if i == nil {
		return &reply{fault: errBroken}
	}
	rows, err := i.run(r, h.mostRows, int64(h.memory/2))
	out = &reply{rows: rows}
	if err != nil {
		out = failed(err)
	}
	out.worn = h.bound.worn(h.memory) || out.fault == errBroken // an engine in whom something broke may answer nobody any more
	return out
}

// instance is one locked DuckDB in memory: the catalog and the public tables of a dataset, and our functions.
type instance struct {
	connector *duckdb.Connector
	db        *sql.DB
	env       scalar.Env
	calls     map[string]*resolved
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
	i.begin("UTC", time.Now())
	static, err := staticTables(dataset)
	if err != nil {
		return err
	}
	for _, t := range layered(static, tables) {
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
func (i *instance) run(r *request, mostRows int, mostBytes int64) (Rows, error) {
	ctx := context.Background()
	i.begin(r.zone, time.UnixMicro(r.now))
	conn, err := i.db.Conn(ctx)
	if err != nil {
		return Rows{}, err
	}
	defer func() {
		// ErrBadConn has database/sql close the connection instead of keeping it for the next query.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
	}()
	for _, t := range r.tables {
		if err := load(ctx, conn, t, true); err != nil {
			return Rows{}, err
		}
	}
	var rows Rows
	err = conn.Raw(func(raw any) error {
		var err error
		rows, err = query(ctx, raw.(*duckdb.Conn), r, mostRows, mostBytes)
		return err
	})
	return rows, err
}

// query prepares and runs the one SELECT of a request.
func query(ctx context.Context, conn *duckdb.Conn, r *request, mostRows int, mostBytes int64) (Rows, error) {
	if !single(r.sql) {
		return Rows{}, errBroken
	}
	prepared, err := conn.PrepareContext(ctx, r.sql)
	if err != nil {
		return Rows{}, err
	}
	defer prepared.Close()
	statement := prepared.(*duckdb.Stmt)
	if what, err := statement.StatementType(); err != nil || what != duckdb.STATEMENT_TYPE_SELECT {
		return Rows{}, errBroken
	}
	out, size := Rows{Columns: r.columns}, int64(0)
	if r.kind == askDescribe {
		return out, nil
	}
	args := make([]driver.NamedValue, len(r.args))
	for k, a := range r.args {
		args[k] = driver.NamedValue{Ordinal: k + 1, Value: a}
	}
	rows, err := statement.QueryContext(ctx, args)
	if err != nil {
		return Rows{}, err
	}
	defer rows.Close()
	if len(rows.Columns()) != len(r.columns) && len(r.columns) > 0 {
		return Rows{}, errBroken
	}
	line := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(line); err == io.EOF {
			return out, nil
		} else if err != nil {
			return Rows{}, err
		}
		if len(out.Data) >= mostRows {
			return Rows{}, errTooMany
		}
		values := make([]policy.Value, len(r.columns))
		for k := range values {
			if values[k], err = restore(r.columns[k].Type, line[k]); err != nil {
				return Rows{}, err
			}
		}
		if size += rowSize(values); size > mostBytes {
			return Rows{}, errResources
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

// load creates a table and fills it.
func load(ctx context.Context, conn *sql.Conn, t table, temporary bool) error {
	var ddl strings.Builder
	ddl.WriteString("CREATE ")
	if temporary {
		ddl.WriteString("TEMP ")
	}
	ddl.WriteString("TABLE " + dialect.QuoteName(t.name) + " (")
	for k, c := range t.rows.Columns {
		if k > 0 {
			ddl.WriteString(", ")
		}
		ddl.WriteString(dialect.QuoteName(c.Name) + " " + outer.Storage(c.Type))
	}
	if len(t.rows.Columns) == 0 {
		// DuckDB has no table without columns; a leaf without any is only ever counted.
		ddl.WriteString(`" " BOOLEAN`)
	}
	ddl.WriteString(")")
	if _, err := conn.ExecContext(ctx, ddl.String()); err != nil {
		return err
	}
	if len(t.rows.Data) == 0 {
		return nil
	}
	return conn.Raw(func(raw any) error { return fill(raw.(driver.Conn), t, temporary) })
}

func fill(conn driver.Conn, t table, temporary bool) (err error) {
	database := "memory"
	if temporary {
		database = "temp"
	}
	appender, err := duckdb.NewAppender(conn, database, "main", t.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, appender.Close()) }()
	line := make([]driver.Value, max(1, len(t.rows.Columns)))
	for _, row := range t.rows.Data {
		if len(row) != len(t.rows.Columns) {
			return errBroken
		}
		for k, v := range row {
			if line[k], err = store(t.rows.Columns[k].Type, v); err != nil {
				return err
			}
		}
		if err := appender.AppendRow(line...); err != nil {
			return err
		}
	}
	return nil
}

var errTooMany = &scalar.Error{SQLState: "54000", Message: "the answer has more rows than the sandbox returns; add a LIMIT"}

package clients

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// look is one program of pgx's over one server, and what it has seen.
type look struct {
	t    *testing.T
	url  string
	seen seen
}

// lookByPgx uses pgx as programs do: its ways to send a query, parameters of every type, batches, COPY, transactions,
// pools, database/sql.
func lookByPgx(t *testing.T, url string) seen {
	t.Helper()
	l := &look{t: t, url: url, seen: seen{}}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		l.rows(mode)
		l.parameters(mode)
		l.constants(mode)
	}
	l.prepared()
	l.batches()
	l.copies()
	l.transactions()
	l.settings()
	l.ends()
	l.pools()
	l.databaseSQL()
	return l.seen
}

func (l *look) see(name, format string, args ...any) {
	l.t.Helper()
	if _, twice := l.seen[name]; twice {
		l.t.Errorf("%s is seen twice", name)
	}
	l.seen[name] = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(fmt.Sprintf(format, args...))
}

func (l *look) connect(mode pgx.QueryExecMode, change ...func(*pgx.ConnConfig)) *pgx.Conn {
	l.t.Helper()
	config, err := pgx.ParseConfig(l.url)
	if err != nil {
		l.t.Fatal(err)
	}
	config.DefaultQueryExecMode = mode
	for _, f := range change {
		f(config)
	}
	conn, err := pgx.ConnectConfig(l.t.Context(), config)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// errorText is what a program can tell of an error: all fields but the hint, which is dpproxy's own, and where in a
// server's source it was raised.
func errorText(err error) string {
	var e *pgconn.PgError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &e) && (e.Code == "42501" || strings.HasPrefix(e.Code, "DP")):
		return e.Severity + " " + e.Code // what is refused says so in its own words
	case errors.As(err, &e) && strings.HasPrefix(e.Code, "22"): // of which dpproxy repeats no value, and shows the operator
		message, _, _ := strings.Cut(e.Message, `: "`)
		return e.Severity + " " + e.Code + " " + strings.Replace(message, `value "40000" is`, "value is", 1)
	case errors.As(err, &e):
		return fmt.Sprintf("%s %s %s at %d detail %q", e.Severity, e.Code, e.Message, e.Position, e.Detail)
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	}
	return err.Error()
}

// valueText shows a decoded value with its type.
func valueText(v any) string {
	switch v := v.(type) {
	case time.Time:
		return "time " + v.UTC().Format(time.RFC3339Nano)
	case pgtype.Numeric:
		text, err := v.Value()
		return fmt.Sprint("numeric ", text, err)
	case pgtype.Interval, pgtype.Time, [16]byte, []byte:
		return fmt.Sprintf("%T %v", v, v)
	case []any:
		var parts []string
		for _, p := range v {
			parts = append(parts, valueText(p))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case driver.Valuer:
		text, err := v.Value()
		return fmt.Sprintf("%T %v %v", v, text, err)
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%T %v", v, v)
}

// asked is the rows of a query, or its error.
func asked(ctx context.Context, q interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, text string, args ...any) string {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return errorText(err)
	}
	return rowsText(rows)
}

func rowsText(rows pgx.Rows) string {
	defer rows.Close()
	var lines []string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return "cannot be read: " + err.Error()
		}
		var parts []string
		for _, v := range values {
			parts = append(parts, valueText(v))
		}
		lines = append(lines, strings.Join(parts, ", "))
	}
	if err := rows.Err(); err != nil {
		return strings.Join(append(lines, errorText(err)), " | ")
	}
	return strings.Join(lines, " | ") + " " + rows.CommandTag().String()
}

func (l *look) rows(mode pgx.QueryExecMode) {
	conn := l.connect(mode)
	for round := range 2 { // the second from what is kept
		for _, q := range besideQuestions {
			l.see(fmt.Sprintf("[%v %d] %s", mode, round, q), "%s", asked(l.t.Context(), conn, q))
		}
	}
	rows, err := conn.Query(l.t.Context(), "SELECT * FROM samples")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range rows.FieldDescriptions() {
		l.see(fmt.Sprintf("[%v] field %s", mode, f.Name), "%d %d %d %d", f.DataTypeOID, f.DataTypeSize, f.TypeModifier, f.Format)
	}
	rows.Close()
}

// besideQuestions are asked by each way.
var besideQuestions = []string{
	"SELECT * FROM samples ORDER BY id",
	"SELECT count(*), count(clicks), sum(balance), avg(level), count(score), min(id) FROM customers, (SELECT min(id) AS id FROM samples) s GROUP BY id",
	"SELECT tier, count(*), avg(balance), sum(clicks) FROM customers GROUP BY tier ORDER BY tier",
	"SELECT country, newsletter, count(*) FROM customers GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1, 2",
	"SELECT segment, level, count(*) FROM customers GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1, 2",
	"SELECT date_trunc('week', joined) AS week, count(*) FROM customers GROUP BY 1 HAVING count(*) > 0 ORDER BY 1",
	"SELECT o.status, count(*) AS n, sum(l.quantity) AS q, sum(l.price) FROM orders o JOIN lines l ON l.order_id = o.order_id GROUP BY o.status ORDER BY n DESC",
	"SELECT c.tier, p.category, count(*) FROM customers c JOIN orders o ON o.customer_id = c.customer_id JOIN lines l ON l.order_id = o.order_id JOIN products p ON p.product_id = l.product_id GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT extract(month FROM placed) AS m, count(*) FROM orders GROUP BY 1 HAVING count(*) > 0 ORDER BY 1",
	"SELECT born, count(*) FROM customers GROUP BY born HAVING count(*) > 0 ORDER BY born LIMIT 3",
	"SELECT count(*) FROM orders WHERE shipped IS NULL",
	"SELECT email FROM customers LIMIT 1",
	"SELECT ARRAY(SELECT name FROM products ORDER BY product_id LIMIT 3), array_agg(price ORDER BY price) FROM products WHERE product_id < 4",
	"SELECT json_agg(p ORDER BY product_id) FROM products p WHERE product_id < 3",
	"SELECT category, string_agg(name, ', ' ORDER BY name) FROM products GROUP BY category ORDER BY category",
	"SELECT 1/0", "SELECT 'x'::int", "SELECT nope FROM products", "SELECT * FROM nobody", "SELECT nofunction(1)", "SELECT 'a'::notype", "selec 1",
	"SELECT count(*) FROM customers WHERE nope = 1", "SELECT count(* FROM customers", "SELECT 99999999999::int", "SELECT '2024-13-01'::date", "SELECT 1 UNION SELECT 'x'",
	"SELECT name, count(*) FROM products", "SELECT (SELECT product_id FROM products)", "SELECT 1 FROM products ORDER BY 2", "SELECT products.nope FROM products", "SELECT p.name FROM products",
	"SELECT sum(name) FROM products", "SELECT 1 + 'x'", "SELECT 'a' || 1, 1 || 'a', 'a' || NULL", "SELECT * FROM products WHERE name", "SELECT * FROM products LIMIT -1", "SELECT count(*) FROM customers WHERE level = 'x'",
	"SELECT count(*) FROM customers WHERE born > '2024-02-30'", "SELECT count(*) FROM customers GROUP BY nope", "SELECT level FROM customers GROUP BY level ORDER BY level", "SELECT tier, level FROM customers GROUP BY tier",
}

// parameters sends values of Go's types, alone and compared with a column of each type.
func (l *look) parameters(mode pgx.QueryExecMode) {
	conn := l.connect(mode)
	ctx := l.t.Context()
	moment := time.Date(2024, 1, 15, 6, 0, 0, 0, time.UTC)
	number := func(text string) (n pgtype.Numeric) {
		if err := n.Scan(text); err != nil {
			l.t.Fatal(err)
		}
		return n
	}
	for _, p := range []struct {
		kind  string
		value any
	}{
		{"smallint", int16(-7)}, {"integer", int32(70000)}, {"bigint", int64(1) << 40}, {"int", 5}, {"bigint", uint32(9)}, {"real", float32(1.5)}, {"double precision", 2.25},
		{"numeric", number("12345678901234567890.000100")}, {"numeric", 7}, {"numeric", "7.50"}, {"numeric(6,2)", 1.005}, {"text", "it's \\ \"quoted\"\n"}, {"varchar", ""}, {"varchar(3)", "abc"}, {"char(5)", "ab"},
		{"boolean", true}, {"date", moment}, {"timestamp", moment}, {"timestamptz", moment}, {"interval", 90 * time.Minute},
		{"interval", pgtype.Interval{Months: 14, Days: -3, Microseconds: 5_500_000, Valid: true}}, {"uuid", "6f1c2d3e-0000-4000-8000-000000000001"}, {"uuid", [16]byte{1, 2, 3}},
		{"int[]", []int32{1, 2, 3}}, {"bigint[]", []int64{}}, {"text[]", []string{"a", "", "b,c", `d"e\`, "NULL"}}, {"float8[]", []float64{1.5, -2}},
		{"date[]", []time.Time{moment}}, {"boolean[]", []bool{true, false}}, {"uuid[]", [][16]byte{{1}}}, {"numeric[]", []pgtype.Numeric{number("1.50")}}, {"timestamptz[]", []time.Time{moment}},
		{"json", map[string]any{"a": []int{1}}}, {"jsonb", map[string]any{"b": nil}}, {"json", `{"x": 1}`}, {"int", nil}, {"text", nil}, {"int[]", nil}, {"text", (*string)(nil)},
		{"bytea", []byte{0, 1, 0xfe}}, {"time", pgtype.Time{Microseconds: 3_600_000_000, Valid: true}}, {"oid", uint32(26)}, {"name", "n"}, {"regclass", "products"}, {"money", "12.50"},
		{"int4range", pgtype.Range[int32]{Lower: 1, Upper: 3, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}}, {"int[]", [][]int32{{1, 2}, {3, 4}}},
		{"timestamptz", pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}}, {"double precision", "NaN"}, {"numeric", "NaN"},
	} {
		l.see(fmt.Sprintf("[%v] $1::%s %T %v", mode, p.kind, p.value, valueText(p.value)), "%s", asked(ctx, conn, "SELECT $1::"+p.kind, p.value))
	}
	for _, c := range []struct {
		where  string
		values []any
	}{
		{"tier = $1", []any{"gold"}}, {"tier = ANY($1)", []any{[]string{"gold", "silver"}}}, {"tier IN ($1, $2)", []any{"gold", "none"}}, {"country = $1", []any{"de"}}, {"born BETWEEN $1 AND $2", []any{moment.AddDate(-60, 0, 0), moment.AddDate(-50, 0, 0)}},
		{"born = $1", []any{"1950-03-02"}}, {"balance > $1", []any{10}}, {"balance >= $1", []any{10.5}}, {"balance < $1", []any{number("7.5")}}, {"balance = $1::numeric", []any{"7.5"}}, {"score >= $1", []any{2.5}}, {"rating < $1", []any{float32(2)}}, {"level = $1", []any{3}}, {"level = $1", []any{int16(3)}}, {"level = ANY($1)", []any{[]int16{1, 2}}},
		{"clicks IS NOT DISTINCT FROM $1", []any{nil}}, {"clicks = $1", []any{int64(7)}}, {"newsletter = $1", []any{true}}, {"newsletter IS NOT DISTINCT FROM $1", []any{nil}}, {"segment = $1", []any{"00000000-0000-4000-8000-000000000001"}}, {"seen < $1", []any{moment}}, {"joined >= $1", []any{moment}},
		{"joined BETWEEN $1 AND $2", []any{moment, moment.Add(48 * time.Hour)}}, {"joined > $1::timestamptz - $2::interval", []any{moment, 24 * time.Hour}}, {"email LIKE $1", []any{"%example.org"}}, {"email = $1", []any{"customer4@example.org"}},
		{"($1::text IS NULL OR tier = $1)", []any{nil}}, {"($1::text IS NULL OR tier = $1)", []any{"gold"}}, {"level > $1 AND level < $1 + 2", []any{1}}, {"level = $1", []any{"x"}}, {"level = $1", []any{40000}}, {"born > $1", []any{"soon"}}, {"level::text = $1", []any{"3"}}, {"coalesce(clicks, $1) = $1", []any{0}},
	} {
		l.see(fmt.Sprintf("[%v] where %s %v", mode, c.where, valueText(c.values)), "%s", asked(ctx, conn, "SELECT count(*) FROM customers WHERE "+c.where, c.values...))
	}
	l.see(fmt.Sprintf("[%v] limit", mode), "%s", asked(ctx, conn, "SELECT product_id FROM products ORDER BY product_id LIMIT $1 OFFSET $2", 3, 2))
	l.see(fmt.Sprintf("[%v] in the list", mode), "%s", asked(ctx, conn, "SELECT $1, $2::int + 1, count(*) FROM products", "x", 2))
	l.see(fmt.Sprintf("[%v] group", mode), "%s", asked(ctx, conn, "SELECT width_bucket(balance, $1, $2, $3) AS b, count(*) FROM customers GROUP BY 1 HAVING count(*) > 0 ORDER BY 1", 0, 20, 4))
	l.see(fmt.Sprintf("[%v] case", mode), "%s", asked(ctx, conn, "SELECT sum(CASE WHEN level > $1 THEN 1 ELSE 0 END), count(*) FILTER (WHERE tier = $2) FROM customers", 2, "gold"))
	l.see(fmt.Sprintf("[%v] too few", mode), "%s", asked(ctx, conn, "SELECT $1::int + $2::int", 1))
}

// constants are values of types that tables here have none of.
func (l *look) constants(mode pgx.QueryExecMode) {
	conn := l.connect(mode)
	for _, text := range []string{"interval '1 year 2 mons 3 days 04:05:06.7'", "ARRAY[1, NULL, 3]", "ARRAY['a', NULL, 'b,c']", "'{\"a\": 1}'::json", "'{\"b\": [1, 2]}'::jsonb", "ARRAY[[1, 2], [3, 4]]",
		"current_date - current_date", "time '10:20:30'", "'\\xdeadbeef'::bytea", "12.5::money", "int4range(1, 5)", "'NaN'::numeric", "'Infinity'::float8",
		"'infinity'::date", "ROW(1, 'a')", "1::oid", "'x'::name", "'c'::\"char\"", "'products'::regclass", "NULL", "ARRAY[true, false]", "ARRAY[date '2024-01-01']", "ARRAY[1.5, 2.25]",
		"'12:00'::interval", "1.5e300::numeric", "1e-10::numeric", "0.1::float4", "100000::float4 * 1e20::float4", "'a'::char(3)", "repeat('x', 10)", "chr(8364)", "$$dollar$$", "U&'\\00e9'", "E'\\x41'", "-0.0::float8", "current_user", "current_database()", "current_schema()",
		"pg_typeof(1.5)", "version() LIKE 'PostgreSQL 15%'", "now() - now()", "pg_backend_pid() > 0", "has_table_privilege('products', 'SELECT')", "has_table_privilege('products', 'INSERT')"} {
		l.see(fmt.Sprintf("[%v] %s", mode, text), "%s", asked(l.t.Context(), conn, "SELECT "+text))
	}
}

func (l *look) prepared() {
	ctx, conn := l.t.Context(), l.connect(pgx.QueryExecModeCacheStatement)
	for i, text := range []string{"SELECT count(*) FROM customers WHERE level = $1 AND tier = $2 AND joined < $3 AND balance > $4 AND segment = $5 AND born = $6 AND score > $7 AND newsletter = $8 AND clicks > $9 AND rating > $10 AND seen < $11 AND country = $12 AND email LIKE $13",
		"SELECT * FROM samples WHERE id = $1 AND small = $2 AND dec = $3 AND short = $4", "SELECT $1", "SELECT $1::int, $2 || 'x', $3 + 1, now() - $4", "SELECT count(*) FROM customers WHERE born > $1 + 5", "SELECT count(*) FROM customers WHERE joined > now() - $1",
		"SELECT count(*) FROM customers WHERE level IN ($1, $2)", "SELECT count(*) FROM customers WHERE level = ANY($1)", "SELECT date_trunc($1, joined), count(*) FROM customers GROUP BY 1", "SELECT count(*) FROM customers WHERE nope = $1", "SELECT $2::int", "INSERT INTO products VALUES ($1)", "SET TIME ZONE 'UTC'", "BEGIN", "", "SELECT 1; SELECT 2",
		"SELECT name FROM products LIMIT $1", "VALUES ($1::int, $2)", "SELECT count(*) FROM customers WHERE tier LIKE $1 || '%'", "SELECT count(*) FROM orders WHERE total BETWEEN $1 AND $2", "SELECT coalesce($1, 0), coalesce($2, 'x'), greatest($3, 1.5)", "SELECT count(*) FROM customers WHERE CASE WHEN $1 THEN level > 1 ELSE level > $2 END"} {
		d, err := conn.Prepare(ctx, fmt.Sprint("p", i), text)
		if err != nil {
			l.see("prepare "+text, "%s", errorText(err))
			continue
		}
		var fields []string
		for _, f := range d.Fields {
			fields = append(fields, fmt.Sprintf("%s %d %d %d", f.Name, f.DataTypeOID, f.DataTypeSize, f.TypeModifier))
		}
		l.see("prepare "+text, "%d %s", d.ParamOIDs, strings.Join(fields, ", "))
	}
	l.see("run p1", "%s", asked(ctx, conn, "p1", 1, 7, "1234.5", "short"))
	l.see("pg_prepared_statements", "%s", asked(ctx, conn, "SELECT name, statement, parameter_types::text, from_sql FROM pg_prepared_statements WHERE name LIKE 'p%' ORDER BY name"))
	l.see("deallocate", "%s %s", errorText(conn.Deallocate(ctx, "p1")), errorText(conn.DeallocateAll(ctx)))
	l.see("after deallocating", "%s", asked(ctx, conn, "SELECT count(*) FROM products WHERE product_id > $1", 5))
	_, err := conn.LoadType(ctx, "products")
	l.see("load a row type", "%s", errorText(err))
	_, err = conn.LoadType(ctx, "_text")
	l.see("load an array", "%s", errorText(err))
	_, err = conn.LoadType(ctx, "nosuch")
	l.see("load nothing", "%s", errorText(err))
	types, err := conn.LoadTypes(ctx, []string{"int4", "text"})
	l.see("load types", "%d %s", len(types), errorText(err))
}

func (l *look) batches() {
	ctx, conn := l.t.Context(), l.connect(pgx.QueryExecModeCacheStatement)
	for name, texts := range map[string][]string{
		"good":              {"SELECT count(*) FROM products", "SELECT count(*) FROM customers", "SET application_name = 'batch'", "SHOW application_name", "SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY 1"},
		"bad in the middle": {"SELECT count(*) FROM products", "SELECT 1/0", "SELECT count(*) FROM customers"},
		"transaction":       {"BEGIN", "SELECT count(*) FROM products", "COMMIT", "SELECT 1"},
	} {
		b := &pgx.Batch{}
		for _, text := range texts {
			b.Queue(text)
		}
		results := conn.SendBatch(ctx, b)
		var parts []string
		for range texts {
			rows, err := results.Query()
			if err != nil {
				parts = append(parts, errorText(err))
				continue
			}
			parts = append(parts, rowsText(rows))
		}
		l.see("batch "+name, "%s; %s; %c", strings.Join(parts, "; "), errorText(results.Close()), conn.PgConn().TxStatus())
		_, _ = conn.Exec(ctx, "ROLLBACK") // where it is in a transaction
	}
	pipeline := conn.PgConn().StartPipeline(ctx)
	pipeline.SendPrepare("a", "SELECT $1::int + 1", nil)
	pipeline.SendQueryParams("SELECT count(*) FROM customers", nil, nil, nil, nil)
	pipeline.SendPipelineSync()
	pipeline.SendQueryParams("SELECT 1/0", nil, nil, nil, nil)
	pipeline.SendQueryParams("SELECT 5", nil, nil, nil, nil)
	pipeline.SendPipelineSync()
	pipeline.SendQueryPrepared("a", [][]byte{[]byte("41")}, nil, nil)
	pipeline.SendDeallocate("a")
	pipeline.SendPipelineSync()
	if err := pipeline.Flush(); err != nil {
		l.t.Fatal(err)
	}
	var parts []string
	for range 20 {
		result, err := pipeline.GetResults()
		if err != nil {
			parts = append(parts, errorText(err))
			continue
		}
		if result == nil {
			break
		}
		switch r := result.(type) {
		case *pgconn.ResultReader:
			got := r.Read()
			parts = append(parts, fmt.Sprintf("%q %s %s", got.Rows, got.CommandTag, errorText(got.Err)))
		default:
			parts = append(parts, fmt.Sprintf("%T", r))
		}
	}
	l.see("pipeline", "%s; %s", strings.Join(parts, "; "), errorText(pipeline.Close()))
	all, err := conn.PgConn().Exec(ctx, "SELECT 1; SELECT count(*) FROM customers; SET application_name = 'm'; SELECT 'x' WHERE false; SHOW application_name").ReadAll()
	parts = nil
	for _, r := range all {
		parts = append(parts, fmt.Sprintf("%q %s", r.Rows, r.CommandTag))
	}
	l.see("several", "%s; %s", strings.Join(parts, "; "), errorText(err))
}

func (l *look) copies() {
	ctx, conn := l.t.Context(), l.connect(pgx.QueryExecModeCacheStatement)
	for _, text := range []string{"COPY (SELECT tier, count(*) FROM customers GROUP BY 1 ORDER BY 1) TO STDOUT", "COPY samples TO STDOUT", "COPY (SELECT * FROM samples ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER, FORCE_QUOTE *)",
		"COPY (SELECT * FROM samples ORDER BY id) TO STDOUT (FORMAT binary)", "COPY products (product_id, name) TO STDOUT WITH CSV DELIMITER ';' NULL '-'", "COPY products TO '/tmp/x'", "COPY products TO PROGRAM 'cat'", "COPY nobody TO STDOUT", "COPY (SELECT 1/0) TO STDOUT"} {
		var out bytes.Buffer
		tag, err := conn.PgConn().CopyTo(ctx, &out, text)
		l.see(text, "%q %s %s", out.String(), tag, errorText(err))
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"products"}, []string{"product_id"}, pgx.CopyFromRows([][]any{{1}}))
	l.see("CopyFrom", "%s", errorText(err))
	_, err = conn.PgConn().CopyFrom(ctx, strings.NewReader("1\n"), "COPY products (product_id) FROM STDIN")
	l.see("COPY FROM STDIN", "%s", errorText(err))
	l.see("after COPY", "%s", asked(ctx, conn, "SELECT 1"))
}

func (l *look) transactions() {
	ctx, conn := l.t.Context(), l.connect(pgx.QueryExecModeCacheStatement)
	for _, o := range []pgx.TxOptions{{}, {IsoLevel: pgx.Serializable}, {IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, {AccessMode: pgx.ReadWrite}, {IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable}, {BeginQuery: "BEGIN ISOLATION LEVEL READ UNCOMMITTED"}} {
		tx, err := conn.BeginTx(ctx, o)
		if err != nil {
			l.see(fmt.Sprint("begin ", o), "%s", errorText(err))
			continue
		}
		var got []string
		for _, name := range []string{"transaction_isolation", "transaction_read_only", "transaction_deferrable", "default_transaction_read_only"} {
			got = append(got, asked(ctx, tx, "SHOW "+name))
		}
		got = append(got, asked(ctx, tx, "SELECT count(*) FROM customers"))
		_, err = tx.Exec(ctx, "INSERT INTO products VALUES (1)")
		var e *pgconn.PgError
		l.see(fmt.Sprint("begin ", o), "%s %v", strings.Join(got, " "), errors.As(err, &e) && (e.Code == "42501" || e.Code == "25006"))
		l.see(fmt.Sprint("commit of a failed one ", o), "%v", tx.Commit(ctx))
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	inner, err := tx.Begin(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	l.see("inside a savepoint", "%s", asked(ctx, inner, "SELECT 1/0"))
	l.see("after an error", "%s", asked(ctx, inner, "SELECT 1"))
	l.see("rolled back", "%s %s", errorText(inner.Rollback(ctx)), asked(ctx, tx, "SELECT count(*) FROM customers"))
	l.see("committed", "%s", errorText(tx.Commit(ctx)))
	for number, script := range [][]string{
		{"BEGIN", "SAVEPOINT a", "SET application_name = 'inner'", "ROLLBACK TO a", "SHOW application_name", "RELEASE a", "RELEASE a", "COMMIT"},
		{"BEGIN READ ONLY", "SET TRANSACTION READ WRITE", "SELECT 1", "SET TRANSACTION READ ONLY", "SET TRANSACTION READ WRITE", "ROLLBACK"},
		{"BEGIN", "SELECT 1", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "ROLLBACK"},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SHOW default_transaction_read_only", "BEGIN", "SHOW transaction_read_only", "COMMIT", "SHOW transaction_read_only", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"},
		{"BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT product_id FROM products ORDER BY product_id", "FETCH 2 FROM c", "FETCH BACKWARD 1 FROM c", "FETCH LAST FROM c", "FETCH ABSOLUTE 3 FROM c", "MOVE 2 IN c", "FETCH RELATIVE 0 FROM c", "FETCH ALL FROM c", "CLOSE c", "FETCH c", "ROLLBACK"},
		{"BEGIN", "DECLARE d NO SCROLL CURSOR WITH HOLD FOR SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY tier", "FETCH 1 FROM d", "COMMIT", "FETCH NEXT FROM d", "FETCH PRIOR FROM d", "SELECT name, is_holdable, is_scrollable, is_binary FROM pg_cursors", "CLOSE ALL"},
		{"DECLARE e CURSOR FOR SELECT 1", "BEGIN", "DECLARE e CURSOR FOR SELECT 1/0", "FETCH e", "ROLLBACK"},
		{"PREPARE q (int, text) AS SELECT $1, $2, count(*) FROM customers", "EXECUTE q (1, 'a')", "EXECUTE q (1)", "EXECUTE q ('x', 'a')", "EXPLAIN EXECUTE q (1)", "PREPARE q AS SELECT 1", "DEALLOCATE q", "EXECUTE q (1, 'a')"},
		{"START TRANSACTION", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "ABORT", "END", "ROLLBACK"},
		{"BEGIN", "LOCK TABLE products IN ACCESS SHARE MODE", "ROLLBACK", "SET CONSTRAINTS ALL DEFERRED"},
		{"LISTEN a", "UNLISTEN a", "LISTEN \"b c\"", "UNLISTEN *", "SELECT pg_listening_channels()"},
		{"SELECT * FROM products FOR UPDATE", "SELECT name FROM products WHERE product_id = 1 FOR SHARE", "TABLE products", "VALUES (1, 'a'), (2, 'b')", "SELECT 1 INTO TEMP x", "CREATE VIEW v AS SELECT 1", "DROP TABLE products", "TRUNCATE products", "UPDATE products SET name = 'x'", "DELETE FROM products", "ANALYZE",
			"REINDEX TABLE products", "CHECKPOINT", "DO $$ BEGIN END $$", "COMMENT ON TABLE products IS 'x'", "ALTER TABLE products ADD x int", "CREATE ROLE x", "CLUSTER products", "LOAD 'x'", "MERGE INTO products USING samples ON false WHEN NOT MATCHED THEN INSERT VALUES (1)",
			"INSERT INTO products VALUES (1) RETURNING product_id", "WITH x AS (INSERT INTO products VALUES (1) RETURNING *) SELECT * FROM x", "EXPLAIN INSERT INTO products VALUES (1)"},
		{"SELECT 1 AS \"A b\", 2 AS a, 3 AS a", "SELECT", "SELECT FROM products WHERE product_id < 3", "SELECT *, 1 FROM products WHERE product_id = 1", "SELECT p FROM products p WHERE product_id = 1", "SELECT p.* FROM products p WHERE product_id = 1", "SELECT (p).name FROM products p WHERE product_id = 1",
			"SELECT DISTINCT ON (category) category, name FROM products ORDER BY category, product_id", "SELECT category, count(*) FROM products GROUP BY ROLLUP (category) ORDER BY 1 NULLS FIRST", "SELECT name, rank() OVER (PARTITION BY category ORDER BY price DESC) FROM products ORDER BY product_id LIMIT 3",
			"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n) FROM r", "SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS g(a, b)", "SELECT unnest(ARRAY[1, 2]), unnest(ARRAY['a', 'b', 'c'])", "SELECT name FROM products FETCH FIRST 2 ROWS WITH TIES", "SELECT name FROM products ORDER BY price DESC FETCH FIRST 2 ROWS ONLY"},
	} {
		for i, text := range script {
			tag, err := conn.Exec(ctx, text, pgx.QueryExecModeExec)
			_ = tag
			got := errorText(err)
			if err == nil {
				got = asked(ctx, conn, "SELECT 1") // the connection goes on
				got = tag.String() + " " + got
			}
			l.see(fmt.Sprintf("script %d.%d %s", number, i, text), "%s %c", got, conn.PgConn().TxStatus())
		}
		_, _ = conn.Exec(ctx, "ROLLBACK")
	}
}

func (l *look) settings() {
	ctx := l.t.Context()
	conn := l.connect(pgx.QueryExecModeCacheStatement, func(c *pgx.ConnConfig) {
		c.RuntimeParams["application_name"], c.RuntimeParams["timezone"], c.RuntimeParams["search_path"] = "beside", "Europe/Berlin", "public"
		c.RuntimeParams["statement_timeout"], c.RuntimeParams["options"] = "60000", "-c geqo=off -c work_mem=8MB -c extra_float_digits=0"
	})
	for _, name := range []string{"application_name", "TimeZone", "search_path", "statement_timeout", "geqo", "work_mem", "DateStyle", "IntervalStyle", "client_encoding", "server_encoding", "standard_conforming_strings", "max_identifier_length", "transaction_isolation",
		"extra_float_digits", "lc_collate", "lc_messages", "is_superuser", "session_authorization", "role", "bytea_output", "default_tablespace", "temp_tablespaces", "integer_datetimes", "block_size", "max_index_keys", "max_function_args", "wal_level", "row_security", "check_function_bodies", "lock_timeout",
		"idle_in_transaction_session_timeout", "client_min_messages", "backslash_quote", "escape_string_warning", "synchronous_commit", "default_transaction_isolation", "log_statement", "random_page_cost", "enable_seqscan", "timezone_abbreviations", "xmlbinary", "xmloption", "vacuum_cost_delay", "default_text_search_config", "in_hot_standby"} {
		l.see("show "+name, "%s", asked(ctx, conn, "SHOW "+name))
	}
	for _, name := range []string{"client_encoding", "DateStyle", "integer_datetimes", "IntervalStyle", "is_superuser", "server_encoding", "session_authorization", "standard_conforming_strings", "TimeZone", "application_name", "default_transaction_read_only", "in_hot_standby"} {
		l.see("told "+name, "%s", conn.PgConn().ParameterStatus(name))
	}
	for _, text := range []string{"SET work_mem = '64MB'", "SHOW work_mem", "SET LOCAL work_mem = '1MB'", "SET nosuch = 1", "SET my.own = 'x'", "SHOW my.own", "SELECT current_setting('my.none', true)", "SELECT current_setting('my.none')", "SET TIME ZONE 'Nowhere'", "SET TIME ZONE 'America/New_York'", "SELECT joined FROM (SELECT timestamptz '2024-07-01 12:00Z' AS joined) t", "SHOW timezone",
		"SELECT zoned::text, zoned::date, extract(hour FROM zoned) FROM samples ORDER BY id", "SELECT date_trunc('day', joined)::text, count(*) FROM customers GROUP BY 1 HAVING count(*) > 0 ORDER BY 1 LIMIT 3", "SET DateStyle = 'SQL, DMY'", "SET DateStyle = 'ISO, DMY'", "SELECT '03/04/2024'::date::text", "SET IntervalStyle = iso_8601", "SELECT interval '1 day 2 hours'::text", "RESET ALL", "SHOW timezone", "SHOW work_mem",
		"SET client_encoding = 'LATIN1'", "SHOW client_encoding", "SET NAMES 'UTF8'", "SET search_path TO nosuch", "SELECT count(*) FROM products", "SELECT count(*) FROM public.products", "SELECT current_schema()", "SET search_path TO DEFAULT", "SELECT current_schemas(true)", "SET ROLE analyst", "SET ROLE postgres", "SET ROLE NONE", "RESET ROLE", "SET SESSION AUTHORIZATION DEFAULT", "SET SESSION AUTHORIZATION postgres", "SET statement_timeout = '10ms'", "SELECT pg_sleep(1)", "SET statement_timeout = 0",
		"SET statement_timeout = 'soon'", "SET extra_float_digits = 99", "SET client_min_messages = loud", "SET default_transaction_isolation = 'serializable'", "SHOW transaction_isolation", "RESET default_transaction_isolation", "SELECT set_config('my.other', 'y', false), current_setting('my.other')", "SELECT name, setting FROM pg_settings WHERE name IN ('work_mem', 'TimeZone', 'max_index_keys') ORDER BY name", "SHOW ALL", "DISCARD PLANS", "DISCARD SEQUENCES", "DISCARD TEMP", "DISCARD ALL", "SHOW my.own"} {
		tag, err := conn.Exec(ctx, text, pgx.QueryExecModeExec)
		got := errorText(err)
		if err == nil {
			got = tag.String()
			if word, _, _ := strings.Cut(text, " "); (word == "SHOW" || word == "SELECT") && text != "SHOW ALL" {
				got += " " + asked(ctx, conn, text, pgx.QueryExecModeSimpleProtocol)
			}
		}
		name := "set " + text
		for n := 2; l.seen[name] != ""; n++ {
			name = fmt.Sprintf("set %s %d", text, n)
		}
		l.see(name, "%s", got)
	}
}

// ends is what becomes of a session whose statement is cut short.
func (l *look) ends() {
	conn := l.connect(pgx.QueryExecModeCacheStatement)
	ctx := l.t.Context()
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "SELECT pg_sleep(60)")
		done <- err
	}()
	for cancelled := false; !cancelled; {
		select {
		case err := <-done:
			l.see("cancelled", "%s %s", errorText(err), asked(ctx, conn, "SELECT 1"))
			cancelled = true
		case <-time.After(100 * time.Millisecond):
			_ = conn.PgConn().CancelRequest(ctx)
		}
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	_, err := conn.Exec(short, "SELECT pg_sleep(60)")
	cancel()
	l.see("timed out", "%v %v", errors.Is(err, context.DeadlineExceeded), conn.IsClosed())
	conn = l.connect(pgx.QueryExecModeCacheStatement)
	if _, err := conn.Exec(ctx, "LISTEN a"); err != nil {
		l.see("listen", "%s", errorText(err))
	}
	short, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
	_, err = conn.WaitForNotification(short)
	cancel()
	l.see("no notification", "%v %v", pgconn.Timeout(err), asked(ctx, conn, "SELECT 1"))
	conn = l.connect(pgx.QueryExecModeCacheStatement, func(c *pgx.ConnConfig) { c.RuntimeParams["idle_session_timeout"] = "300" })
	time.Sleep(time.Second)
	l.see("idle session", "%s", asked(ctx, conn, "SELECT 1"))
	conn = l.connect(pgx.QueryExecModeCacheStatement, func(c *pgx.ConnConfig) { c.RuntimeParams["idle_in_transaction_session_timeout"] = "300" })
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		l.t.Error(err)
	}
	time.Sleep(time.Second)
	l.see("idle in a transaction", "%s", asked(ctx, conn, "SELECT 1"))
	for _, wrong := range []string{"?sslmode=disable&nosuch=1", "?sslmode=disable&work_mem=much", "?sslmode=disable&options=-c%20nosuch%3D1", "?sslmode=disable&client_encoding=KLINGON", "?sslmode=disable&options=--nosuch", "?sslmode=disable&replication=database", "?sslmode=disable&DateStyle=German"} {
		base, _, _ := strings.Cut(l.url, "?")
		conn, err := pgx.Connect(ctx, base+wrong)
		var e *pgconn.PgError
		if errors.As(err, &e) {
			l.see("connect "+wrong, "%s", errorText(e))
			continue
		}
		l.see("connect "+wrong, "%v", err == nil)
		if err == nil {
			_ = conn.Close(ctx)
		}
	}
	base, _, _ := strings.Cut(l.url, "?")
	_, err = pgx.Connect(ctx, strings.TrimSuffix(base, "store")+"nosuch?sslmode=disable")
	var e *pgconn.PgError
	l.see("another database", "%v %s", errors.As(err, &e), errorText(err)[strings.LastIndex(errorText(err), "FATAL"):])
}

func (l *look) pools() {
	ctx := l.t.Context()
	config, err := pgxpool.ParseConfig(l.url)
	if err != nil {
		l.t.Fatal(err)
	}
	config.MaxConns = 200
	config.PrepareConn = func(ctx context.Context, c *pgx.Conn) (bool, error) {
		_, err := c.Exec(ctx, "DISCARD ALL")
		return err == nil, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // DISCARD ALL forgets what is prepared
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		l.t.Fatal(err)
	}
	defer pool.Close()
	var group sync.WaitGroup
	var mu sync.Mutex
	all := map[string]int{}
	start := make(chan struct{})
	for range 200 {
		group.Go(func() {
			conn, err := pool.Acquire(ctx)
			got := errorText(err)
			if err == nil {
				<-start
				got = asked(ctx, conn, "SELECT tier, count(*) FROM customers GROUP BY tier ORDER BY 1")
				conn.Release()
			}
			mu.Lock()
			all[got]++
			mu.Unlock()
		})
	}
	for range 600 {
		if pool.Stat().AcquiredConns() == 200 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	close(start)
	group.Wait()
	l.see("200 connections", "%v", all)
}

func (l *look) databaseSQL() {
	ctx := l.t.Context()
	config, err := pgx.ParseConfig(l.url)
	if err != nil {
		l.t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT s.*, (SELECT count(*) FROM customers) AS n FROM samples s ORDER BY id")
	if err != nil {
		l.see("database/sql", "%s", errorText(err))
		return
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, c := range types {
		length, hasLength := c.Length()
		precision, scale, hasDecimals := c.DecimalSize()
		l.see("column "+c.Name(), "%s %v %d %v %d %d %v", c.DatabaseTypeName(), c.ScanType(), length, hasLength, precision, scale, hasDecimals)
	}
	for i := 0; rows.Next(); i++ {
		values := make([]any, len(types))
		into := make([]any, len(types))
		for k := range values {
			into[k] = &values[k]
		}
		if err := rows.Scan(into...); err != nil {
			l.see(fmt.Sprint("row ", i), "%s", errorText(err))
			continue
		}
		text, err := json.Marshal(slices.DeleteFunc(values, func(v any) bool { return v == nil }))
		l.see(fmt.Sprint("row ", i), "%s %v", text, err)
	}
	l.see("rows", "%s", errorText(rows.Err()))
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	l.see("BeginTx", "%s", errorText(err))
	if err == nil {
		var n int
		l.see("in it", "%s %d", errorText(tx.QueryRow("SELECT count(*) FROM customers WHERE born < $1", time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)).Scan(&n)), n)
		l.see("Rollback", "%s", errorText(tx.Rollback()))
	}
	result, err := db.ExecContext(ctx, "SET application_name = 'x'")
	l.see("Exec", "%s", errorText(err))
	if err == nil {
		n, err := result.RowsAffected()
		l.see("RowsAffected", "%d %v", n, err)
	}
	var n sql.NullInt64
	l.see("NULL", "%s %v", errorText(db.QueryRow("SELECT min(small) FROM samples WHERE id = 3").Scan(&n)), n)
	_, err = db.ExecContext(ctx, "INSERT INTO products (product_id) VALUES ($1)", 1)
	l.see("INSERT", "%s", errorText(err))
}

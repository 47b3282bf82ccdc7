package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// conformance is what every sandbox must do, whatever it is made of.
func conformance(t *testing.T, open func(t *testing.T) sandbox.Engine) {
	e := open(t)
	p := sandboxtest.Clinic("n int", "kind varchar(10)", "cost numeric(8,2)")
	if err := e.Catalog(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	s := sandboxtest.Session
	s.Database = "clinic"
	c := &conforming{e: e, s: s, p: p}
	t.Run("values", c.values)
	t.Run("describe", c.describe)
	t.Run("parameters", c.parameters)
	t.Run("session", c.session)
	t.Run("forms", c.forms)
	t.Run("public", c.public)
	t.Run("own tables", c.ownTables)
	t.Run("nothing is left", c.nothingLeft)
	t.Run("end", c.end)
}

func TestConformance(t *testing.T) {
	t.Run("own", func(t *testing.T) { conformance(t, sandboxtest.OpenOwn) })
	t.Run("twin", func(t *testing.T) {
		conformance(t, func(t *testing.T) sandbox.Engine {
			return sandboxtest.OpenTwin(t, sandboxtest.NewServer(t), "conforming_twin")
		})
	})
}

type conforming struct {
	e sandbox.Engine
	s sandbox.Session
	p *policy.Policy
}

// ask runs a query over leaves; a leaf's table may have no rows.
func (c *conforming) ask(t *testing.T, text string, leaves []*plans.Leaf, tables ...sandbox.Table) (sandbox.Rows, error) {
	t.Helper()
	plan := sandboxtest.Parse(t, text, leaves...)
	for _, d := range c.p.Datasets {
		for _, table := range d.Tables {
			if table.Public {
				plan.Outer.Relations = append(plan.Outer.Relations, plans.Relation{Schema: table.Schema, Name: table.Name, Public: table})
			}
		}
	}
	for _, name := range []string{"budget", "tables", "columns"} {
		plan.Outer.Relations = append(plan.Outer.Relations, plans.Relation{Schema: "dp", Name: name})
	}
	q, refusal := outer.Render(plan)
	if refusal != nil {
		return sandbox.Rows{}, refusal
	}
	rows, err := c.e.Query(context.Background(), c.s, q, tables)
	if err != nil {
		return sandbox.Rows{}, err
	}
	return rows.Value(), nil
}

// hostileLeaf has a value of each type that is easily lost on the way, and NULL.
func hostileLeaf() (*plans.Leaf, sandbox.Table) {
	types := []struct {
		t      policy.Type
		mod    int32
		values []policy.Value
	}{
		{policy.Text, -1, []policy.Value{`a"b\c{},'$1; --`, "", "NULL", " ü\n\t😀 ", nil}},
		{policy.Varchar, 14, []policy.Value{"0123456789", "{}", `\N`, "null", nil}},
		{policy.Int2, -1, []policy.Value{int64(-32768), int64(32767), int64(0), int64(1), nil}},
		{policy.Int4, -1, []policy.Value{int64(-2147483648), int64(2147483647), int64(0), int64(1), nil}},
		{policy.Int8, -1, []policy.Value{int64(-9223372036854775808), int64(9223372036854775807), int64(0), int64(1), nil}},
		{policy.Float8, -1, []policy.Value{1e-300, -1.7976931348623157e308, 0.1, 1.0 / 3, nil}},
		{policy.NumericType, -1, []policy.Value{policy.NewNumeric(-100, 2), policy.NewNumeric(0, 3), policy.NewNumeric(1, 0), policy.NewNumeric(9223372036854775807, 18), nil}},
		{policy.NumericType, (8<<16 | 2) + 4, []policy.Value{policy.NewNumeric(-99999999, 2), policy.NewNumeric(0, 2), policy.NewNumeric(1, 2), policy.NewNumeric(150, 2), nil}},
		{policy.Bool, -1, []policy.Value{true, false, true, false, nil}},
		{policy.DateType, -1, []policy.Value{policy.Date(0), policy.Date(-25567), policy.Date(19782), policy.Date(2932896), nil}},
		{policy.TimestampT, -1, []policy.Value{policy.Timestamp(0), policy.Timestamp(1), policy.Timestamp(-1), policy.Timestamp(1709164800000000), nil}},
		{policy.TimestampTZ, -1, []policy.Value{policy.Timestamptz(0), policy.Timestamptz(1), policy.Timestamptz(-1), policy.Timestamptz(1709164800000000), nil}},
		{policy.UUID, -1, []policy.Value{"550e8400-e29b-41d4-a716-446655440000", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "550e8400-e29b-41d4-a716-446655440001", nil}},
	}
	leaf := &plans.Leaf{Name: "leaf_1", Rows: 5, Counts: []plans.CountColumn{{Name: "n1"}}}
	rows := sandbox.Rows{Data: make([][]policy.Value, 5)}
	for i, x := range types {
		name := fmt.Sprintf("k%d", i+1)
		leaf.Keys = append(leaf.Keys, plans.KeyColumn{Name: name, Type: x.t, Typmod: x.mod, Values: x.values})
		rows.Columns = append(rows.Columns, sandbox.Column{Name: name, Type: x.t, Typmod: x.mod})
		for r := range rows.Data {
			rows.Data[r] = append(rows.Data[r], x.values[r])
		}
	}
	rows.Columns = append(rows.Columns, sandbox.Column{Name: "n1", Type: policy.Int8, Typmod: -1})
	for r := range rows.Data {
		rows.Data[r] = append(rows.Data[r], int64(r))
	}
	return leaf, sandbox.Table{Name: "leaf_1", Rows: privacy.Published(rows)}
}

// values: what goes in comes out, with its type and modifier.
func (c *conforming) values(t *testing.T) {
	leaf, table := hostileLeaf()
	got, err := c.ask(t, "SELECT * FROM leaf_1 ORDER BY n1", []*plans.Leaf{leaf}, table)
	if err != nil {
		t.Fatal(err)
	}
	want := table.Rows.Value()
	for i, column := range want.Columns {
		if got.Columns[i] != column {
			t.Errorf("column %d is %+v, want %+v", i, got.Columns[i], column)
		}
		for r := range want.Data {
			if g, w := sandboxtest.Shown(column.Type, got.Data[r][i]), sandboxtest.Shown(column.Type, want.Data[r][i]); g != w || fmt.Sprintf("%T", got.Data[r][i]) != fmt.Sprintf("%T", want.Data[r][i]) {
				t.Errorf("%s, row %d: %T %s, want %T %s", column.Name, r, got.Data[r][i], g, want.Data[r][i], w)
			}
		}
	}
	for _, rows := range []int{0, 3} { // a leaf of no columns is only counted
		bare := &plans.Leaf{Name: "leaf_1", Rows: rows}
		got, err := c.ask(t, "SELECT count(*) FROM leaf_1", []*plans.Leaf{bare}, sandbox.Table{Name: "leaf_1",
			Rows: privacy.Published(sandbox.Rows{Data: make([][]policy.Value, rows)})})
		if err != nil || got.Data[0][0] != int64(rows) {
			t.Errorf("%d rows without columns: %v, %v", rows, got.Data, err)
		}
	}
}

// describe: the columns of a query that is only bound are those of its answer, and nothing is evaluated.
func (c *conforming) describe(t *testing.T) {
	leaf, table := hostileLeaf()
	for _, text := range []string{"SELECT k1, k7, sum(n1) OVER (ORDER BY n1), 1.5 * n1 AS x, k8 FROM leaf_1 ORDER BY n1", "SELECT count(*) AS c, max(k10) FROM leaf_1",
		"SELECT relname, reltuples, oid FROM pg_catalog.pg_class WHERE false", "SELECT 1 / (n1 - n1) AS never FROM leaf_1 LIMIT 0"} {
		q, refusal := outer.Render(sandboxtest.Parse(t, text, leaf))
		if refusal != nil {
			t.Fatal(refusal)
		}
		blank := sandbox.Table{Name: "leaf_1", Rows: privacy.Published(sandbox.Rows{Columns: table.Rows.Value().Columns})}
		described, err := c.e.Describe(context.Background(), c.s, q, []sandbox.Table{blank})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := c.e.Query(context.Background(), c.s, q, []sandbox.Table{table})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := rows.Value().Columns; fmt.Sprint(got) != fmt.Sprint(described.Columns) {
			t.Errorf("%s: described %v, answered %v", text, described.Columns, got)
		}
	}
}

// parameters: a parameter of a described statement has the type that PostgreSQL finds for it.
func (c *conforming) parameters(t *testing.T) {
	leaf, table := hostileLeaf()
	for text, want := range map[string]map[int]policy.Type{
		"SELECT k1 FROM leaf_1 WHERE k3 = $1 AND k2 LIKE $2 AND k10 > $3":              {1: policy.Int2, 2: policy.Text, 3: policy.DateType},
		"SELECT k7 * $1, k4 + $2, round(k7, $3), lag(k10, $4) OVER () FROM leaf_1":     {1: policy.NumericType, 2: policy.Int4, 3: policy.Int4, 4: policy.Int4},
		"SELECT k1 FROM leaf_1 WHERE k3 = ANY($1) AND k10 - $2 > 3 LIMIT $3":           {1: 1005, 2: policy.DateType, 3: policy.Int8},
		"SELECT sum(n1) OVER (ORDER BY k10 RANGE $1 PRECEDING), $2::jsonb FROM leaf_1": {1: policy.IntervalT, 2: 3802},
		"SELECT $1 UNION SELECT k1 FROM leaf_1":                                        {1: policy.Text},
	} {
		plan := sandboxtest.Parse(t, text, leaf)
		ast.Each(plan.Outer.Tree.ProtoReflect(), func(m protoreflect.Message) {
			if p, ok := m.Interface().(*pg.ParamRef); ok {
				p.Number = -p.Number
			}
		})
		q, refusal := outer.Render(plan)
		if refusal != nil {
			t.Fatal(refusal)
		}
		d, err := c.e.Describe(context.Background(), c.s, q, []sandbox.Table{{Name: "leaf_1", Rows: privacy.Published(sandbox.Rows{Columns: table.Rows.Value().Columns})}})
		if err != nil || !maps.Equal(d.Params, want) {
			t.Errorf("%s: %v, %v; want %v", text, d.Params, err, want)
		}
	}
}

// session: a query knows its own user, dataset and settings.
func (c *conforming) session(t *testing.T) {
	c.s.Settings = map[string]string{"timezone": "Asia/Kolkata", "search_path": "public", "server_version": "15.0", "application_name": "x"}
	defer func() { c.s.Settings = sandboxtest.Session.Settings }()
	rows, err := c.ask(t, `SELECT current_user, current_database(), current_setting('timezone'), pg_backend_pid(), timestamptz '2024-01-01 00:00+00' AT TIME ZONE 'UTC',
		extract(hour FROM timestamptz '2024-01-01 00:00+00'), current_setting('nothing', true)`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sandboxtest.Written(rows), "current_user:19 current_database:19 current_setting:25 pg_backend_pid:23 timezone:1114 extract:1700 current_setting:25 | alice clinic Asia/Kolkata 4711 2024-01-01 00:00:00 5 ∅ "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err = c.ask(t, "SELECT current_setting('nothing')", nil)
	if sandboxtest.StateOf(err) != "42704" {
		t.Errorf("a setting that does not exist: %v", err)
	}
}

// forms: n::text is what the session's settings make of n, and n itself is what it was.
func (c *conforming) forms(t *testing.T) {
	defer func() { c.s.Settings = sandboxtest.Session.Settings }()
	for _, f := range []struct{ style, digits, want string }{
		{"postgres", "1", "1 mon -2 days +03:04:05.5 0.3333333333333333 0.1 x1e+16 {0.3333333333333333} -1 days +02:03:04"},
		{"iso_8601", "0", "P1M-2DT3H4M5.5S 0.333333333333333 0.1 x1e+16 {0.333333333333333} P-1DT2H3M4S"},
		{"postgres_verbose", "-12", "@ 1 mon -2 days 3 hours 4 mins 5.5 secs 0.333 0.1 x1e+16 {0.333} @ 1 day -2 hours -3 mins -4 secs ago"},
		{"sql_standard", "3", "+0-1 -2 +3:04:05.5 0.3333333333333333 0.1 x1e+16 {0.3333333333333333} -1 2:03:04"},
	} {
		c.s.Settings = map[string]string{"timezone": "UTC", "search_path": "public", "intervalstyle": f.style, "extra_float_digits": f.digits}
		rows, err := c.ask(t, `SELECT (i * 1)::text || ' ' || (x / 3)::text || ' ' || (x / 10)::real::text || concat(' x', x * 1e16) || ' ' || array[x / 3]::text || ' ' || (interval '-1 2:03:04')::text AS t, i, x / 3 AS f, (x / 3)::real AS r
			FROM (SELECT 1::float8 AS x, interval '1 mon -2 days +03:04:05.5' AS i) AS q`, nil)
		if err != nil {
			t.Fatal(f.style, err)
		}
		got := rows.Data[0]
		if got[0] != f.want {
			t.Errorf("%s, %s:\ngot  %v\nwant %s", f.style, f.digits, got[0], f.want)
		}
		if got[1] != (policy.Interval{Months: 1, Days: -2, Micros: 11045500000}) || got[2] != 1.0/3 || got[3] != float64(float32(1.0/3)) {
			t.Errorf("%s, %s: values are %v", f.style, f.digits, got[1:])
		}
	}
}

// public: a public table's rows are those of the latest copy.
func (c *conforming) public(t *testing.T) {
	for _, n := range []int{3, 1, 0, 2} {
		var rows [][]policy.Value
		for i := range n {
			rows = append(rows, []policy.Value{fmt.Sprint("c", i), policy.NewNumeric(int64(i), 1)})
		}
		if err := c.e.Load(context.Background(), "clinic", codes(rows...)); err != nil {
			t.Fatal(err)
		}
		got, err := c.ask(t, "SELECT count(*), sum(weight), max(code) FROM lookup.codes", nil)
		if err != nil || got.Data[0][0] != int64(n) {
			t.Errorf("%d rows: %v, %v", n, got.Data, err)
		}
	}
	if err := c.e.Load(context.Background(), "clinic", sandbox.Table{Schema: "lookup", Name: "codes"}); err == nil {
		t.Error("rows that nobody released are loaded")
	}
}

// ownTables: dp.* shows what came with the query, and what the policy says.
func (c *conforming) ownTables(t *testing.T) {
	columns := catalog.DPTables()["budget"]
	row := make([]policy.Value, len(columns))
	row[0], row[1], row[2] = "alice", "clinic", "pure"
	row[3], row[4], row[5] = policy.NewNumeric(15, 1), policy.NewNumeric(3, 0), policy.NewNumeric(15, 1)
	own := sandbox.Table{Schema: "dp", Name: "budget", Rows: privacy.Published(sandbox.Rows{Columns: columns, Data: [][]policy.Value{row}})}
	rows, err := c.ask(t, "SELECT user_name, budget - spent AS rest, window_ends FROM dp.budget", nil, own)
	if err != nil || sandboxtest.Written(rows) != "user_name:25 rest:1700 window_ends:1184 | alice 1.5 ∅ " {
		t.Errorf("dp.budget: %s, %v", sandboxtest.Written(rows), err)
	}
	if rows, err = c.ask(t, "SELECT table_name FROM dp.tables ORDER BY 1", nil); err != nil || sandboxtest.Written(rows) != "table_name:25 | codes | visits " {
		t.Errorf("dp.tables: %s, %v", sandboxtest.Written(rows), err)
	}
	if rows, err = c.ask(t, "SELECT count(*) FROM dp.budget", nil); err != nil || rows.Data[0][0] != int64(0) {
		t.Errorf("dp.budget of a session that brought none: %s, %v", sandboxtest.Written(rows), err)
	}
}

// nothingLeft: the tables of one query are unknown to the next.
func (c *conforming) nothingLeft(t *testing.T) {
	leaf, table := hostileLeaf()
	if _, err := c.ask(t, "SELECT count(*) FROM leaf_1", []*plans.Leaf{leaf}, table); err != nil {
		t.Fatal(err)
	}
	if rows, err := c.ask(t, "SELECT count(*) FROM pg_catalog.pg_class WHERE relname LIKE 'leaf%'", nil); err != nil || rows.Data[0][0] != int64(0) {
		t.Errorf("a leaf stays in the catalogs: %v, %v", rows.Data, err)
	}
	if _, err := c.ask(t, "SELECT count(*) FROM leaf_1", nil); err == nil {
		t.Error("an earlier query's leaf can be read")
	}
	other := c.s
	other.Database = "nowhere"
	q, _ := outer.Render(sandboxtest.Parse(t, "SELECT 1"))
	_, _ = c.e.Query(context.Background(), other, q, nil) // whatever it says, it must not end the engine
	if _, err := c.ask(t, "SELECT 1", nil); err != nil {
		t.Error(err)
	}
}

// end: a cancelled query ends alone; a closed engine answers nothing.
func (c *conforming) end(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	q, refusal := outer.Render(sandboxtest.Parse(t, "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE (a + b) % 7 = 3"))
	if refusal != nil {
		t.Fatal(refusal)
	}
	go func() {
		time.Sleep(200 * time.Millisecond)
		cancel()
	}()
	if _, err := c.e.Query(ctx, c.s, q, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled query: %v", err)
	}
	if _, err := c.ask(t, "SELECT 1", nil); err != nil {
		t.Errorf("after it: %v", err)
	}
	if err := c.e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.ask(t, "SELECT 1", nil); sandboxtest.StateOf(err) != "57P01" {
		t.Errorf("a closed engine: %v", err)
	}
}

// codes is the public table of the policy Clinic.
func codes(rows ...[]policy.Value) sandbox.Table {
	return sandbox.Table{Schema: "lookup", Name: "codes", Rows: privacy.Published(sandboxtest.Codes(rows...))}
}

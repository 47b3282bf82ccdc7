package twin_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// Proxies that share a twin, each an engine here.

// manyCodes are rows of lookup.codes.
func manyCodes(n int, weight int64) sandbox.Table {
	var rows [][]policy.Value
	for i := range n {
		rows = append(rows, []policy.Value{fmt.Sprint("code ", i), policy.NewNumeric(weight, 0)})
	}
	return codes(rows...)
}

// shared opens proxies of one twin, which have the policy.
func shared(t *testing.T, name string, n int) (server *pgtest.Server, list []sandbox.Engine) {
	t.Helper()
	server = sandboxtest.NewServer(t)
	for range n {
		e := sandboxtest.OpenTwin(t, server, name)
		if err := e.Catalog(t.Context(), sandboxtest.Clinic("n int")); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return server, list
}

// together has each of three proxies that copy the codes wait at its COMMIT until the others write theirs or wait for
// it.
const together = `CREATE FUNCTION public.together() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  FOR i IN 1 .. 200 LOOP
    EXIT WHEN EXISTS (SELECT FROM lookup.codes WHERE xmin <> pg_current_xact_id()::xid) OR 2 <= (SELECT count(DISTINCT pid) FROM pg_locks
      WHERE relation = 'lookup.codes'::regclass AND pid <> pg_backend_pid() AND (mode = 'RowExclusiveLock' OR NOT granted));
    PERFORM pg_sleep(0.02);
  END LOOP;
  PERFORM pg_sleep(0.3);
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER together AFTER INSERT ON lookup.codes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.code = 'code 0') EXECUTE FUNCTION public.together()`

// TestCopiesAtOnce: proxies that are started together put a public table's rows into their twin once, and not once
// each; those that have read the same rows leave them alone.
func TestCopiesAtOnce(t *testing.T) {
	server, list := shared(t, "at_once", 3)
	what := func() string {
		return inTwin(t, server, "at_once", "SELECT concat_ws(' ', count(*), count(DISTINCT code), count(DISTINCT xmin::text), count(DISTINCT weight), min(xmin::text)) FROM lookup.codes")
	}
	load := func(tables ...sandbox.Table) {
		t.Helper()
		var all sync.WaitGroup
		for i, e := range list {
			all.Go(func() {
				if err := e.Load(context.Background(), "clinic", tables[i%len(tables)]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	before := ""
	server.Exec(t, "at_once", together)
	for i, step := range []struct {
		tables []sandbox.Table
		want   string
		stays  bool
	}{
		{[]sandbox.Table{manyCodes(3000, 1)}, "3000 3000 1 1 ", false},
		{[]sandbox.Table{manyCodes(3000, 1)}, "3000 3000 1 1 ", true},
		{[]sandbox.Table{manyCodes(3000, 1), manyCodes(3000, 2)}, "3000 3000 1 1 ", false},
		{[]sandbox.Table{manyCodes(2000, 2)}, "2000 2000 1 1 ", false},
		{[]sandbox.Table{codes()}, "0 0 0 0", false},
		{[]sandbox.Table{codes()}, "0 0 0 0", true},
		{[]sandbox.Table{codes([]policy.Value{"a", nil}, []policy.Value{"a", nil})}, "2 1 1 0 ", false},
		{[]sandbox.Table{codes([]policy.Value{"a", nil})}, "1 1 1 0 ", false},
	} {
		if load(step.tables...); i == 0 {
			server.Exec(t, "at_once", "DROP FUNCTION public.together CASCADE")
		}
		got := what()
		if len(got) < len(step.want) || got[:len(step.want)] != step.want || step.stays && got != before {
			t.Errorf("the twin has %s, want %s; before %s", got, step.want, before)
		}
		before = got
	}
}

// TestCopiesOfAnotherProxy: a query reads the copies that it was planned by, whatever another proxy has put into the
// twin, before it or while it waits.
func TestCopiesOfAnotherProxy(t *testing.T) {
	server, list := shared(t, "another", 2)
	plan := sandboxtest.Parse(t, "SELECT count(*), sum(c.weight) FROM lookup.codes c", &plans.Leaf{})
	plan.Outer.Relations = []plans.Relation{{Schema: "lookup", Name: "codes", Public: sandboxtest.Clinic("n int").Datasets[0].Tables[1]}}
	q, refusal := outer.Render(plan)
	if refusal != nil {
		t.Fatal(refusal)
	}
	const anew = "ALTER TABLE lookup.codes RENAME TO old; CREATE TABLE lookup.codes (code text, weight numeric); GRANT SELECT ON lookup.codes TO another_session; ALTER TABLE lookup.codes OWNER TO " + sandboxtest.Owner + "; "
	for name, c := range map[string]struct {
		mine    sandbox.Table
		other   sandbox.Table // which the other proxy loads; none means it does not
		between string        // what is done to the twin while the query waits
		form    string        // extra_float_digits of the session: not the usual way
		want    []policy.Value
	}{
		"mine":                {mine: manyCodes(3, 1), want: []policy.Value{int64(3), policy.NewNumeric(3, 0)}},
		"the same of another": {mine: manyCodes(4, 1), other: manyCodes(4, 1), want: []policy.Value{int64(4), policy.NewNumeric(4, 0)}},
		"others":              {mine: manyCodes(3, 1), other: manyCodes(3, 2), want: []policy.Value{int64(3), policy.NewNumeric(3, 0)}},
		"others, in binary":   {mine: manyCodes(3, 1), other: manyCodes(3, 2), form: "2", want: []policy.Value{int64(3), policy.NewNumeric(3, 0)}},
		"none":                {mine: manyCodes(3, 1), other: codes(), want: []policy.Value{int64(3), policy.NewNumeric(3, 0)}},
		"where mine has none": {mine: codes(), other: manyCodes(3, 2), want: []policy.Value{int64(0), nil}},
		"others while it waits": {mine: manyCodes(3, 1), between: "DELETE FROM lookup.codes; INSERT INTO lookup.codes SELECT 'x', 7 FROM generate_series(1, 9)",
			want: []policy.Value{int64(3), policy.NewNumeric(3, 0)}},
		"another table": {mine: manyCodes(3, 1), between: anew + "INSERT INTO lookup.codes SELECT 'x', 7 FROM generate_series(1, 9); DROP TABLE lookup.old",
			want: []policy.Value{int64(3), policy.NewNumeric(3, 0)}},
		"another table of other columns": {mine: manyCodes(3, 1), between: anew + "ALTER TABLE lookup.codes DROP weight; DROP TABLE lookup.old", want: []policy.Value{int64(3), policy.NewNumeric(3, 0)}},
		"no table":                       {mine: manyCodes(3, 1), between: "DROP TABLE lookup.codes", want: []policy.Value{int64(3), policy.NewNumeric(3, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), sandboxtest.Session
			s.Database = "clinic"
			if c.form != "" {
				s.Settings = map[string]string{"extra_float_digits": c.form, "search_path": "public", "timezone": "UTC"}
			}
			server.Exec(t, "another", "DROP TABLE IF EXISTS lookup.codes")
			for _, e := range list { // which makes anew what the last case has left
				if err := e.Catalog(ctx, sandboxtest.Clinic("n int")); err != nil {
					t.Fatal(err)
				}
			}
			if err := list[0].Load(ctx, "clinic", c.mine); err != nil {
				t.Fatal(err)
			}
			if c.other.Name != "" {
				if err := list[1].Load(ctx, "clinic", c.other); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan struct{})
			close(done)
			if c.between != "" {
				conn, err := pgx.Connect(ctx, server.URLFor("postgres", "another"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close(context.Background())
				if _, err := conn.Exec(ctx, "BEGIN; LOCK TABLE lookup.codes"); err != nil {
					t.Fatal(err)
				}
				done = make(chan struct{})
				go func() {
					defer close(done)
					server.Until(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'another')")
					if _, err := conn.Exec(ctx, c.between+"; COMMIT"); err != nil {
						t.Error(err)
					}
				}()
			}
			for range 2 { // the second finds what the first has
				got, err := list[0].Query(ctx, s, q, []sandbox.Table{c.mine})
				<-done
				if err != nil || !reflect.DeepEqual(got.Value().Data, [][]policy.Value{c.want}) {
					t.Errorf("it reads %v, %v; want %v", got, err, c.want)
				}
			}
			if c.other.Name == "" {
				return
			}
			if got, err := list[1].Query(ctx, s, q, []sandbox.Table{c.other}); err != nil || got.Value().Data[0][0] != int64(len(c.other.Rows.Value().Data)) {
				t.Errorf("the other reads %v, %v", got, err)
			}
		})
	}
}

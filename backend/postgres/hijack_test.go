package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// hijacks are functions, operators, casts and relations that would take the place of PostgreSQL's own if names were
// looked up in the schemas of the database or of the role. Each of them fails when it is called.
const hijacks = `
CREATE FUNCTION public.trap() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
CREATE FUNCTION public.trap(integer, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT public.trap() $$;
CREATE FUNCTION public.trap(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT public.trap() $$;
CREATE FUNCTION public.trap(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT public.trap() $$;
CREATE FUNCTION public.trap(numeric, numeric) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT public.trap() $$;
CREATE OPERATOR public.< (LEFTARG = integer, RIGHTARG = bigint, FUNCTION = public.trap);
CREATE OPERATOR public.> (LEFTARG = integer, RIGHTARG = bigint, FUNCTION = public.trap);
CREATE OPERATOR public.>= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.trap);
CREATE OPERATOR public.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.trap);
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.trap);
CREATE OPERATOR public.= (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = public.trap);
CREATE OPERATOR public.> (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = public.trap);
CREATE FUNCTION public.div(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT public.trap()::integer::numeric $$;
CREATE FUNCTION public.row_number() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT public.trap()::integer::bigint $$;
CREATE FUNCTION public.array_position(text[], text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT public.trap()::integer $$;
CREATE FUNCTION public.floor(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT public.trap()::integer::numeric $$;
CREATE DOMAIN public.int4 AS bigint CHECK (public.trap());
CREATE DOMAIN public.int8 AS bigint CHECK (public.trap());
CREATE DOMAIN public.text AS pg_catalog.text CHECK (public.trap());
CREATE AGGREGATE public.count(*) (SFUNC = int8inc, STYPE = bigint, INITCOND = '1000');
CREATE SCHEMA evil; CREATE TABLE evil.people (person_id bigint, age integer, sex pg_catalog.text, income numeric);
CREATE TABLE evil.pg_index (indrelid oid); GRANT USAGE ON SCHEMA evil TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA evil TO PUBLIC;
`

// TestNamesOfTheDatabaseAreNotUsed (T42).
func TestNamesOfTheDatabaseAreNotUsed(t *testing.T) {
	h := backendtest.PostgresHouse(t)
	m := backendtest.Measure(t, h.Policy, "people", "sex", "income")
	m.Where = predicate.InCells{Column: m.Table.Column("age"), Spans: []mechanisms.Span{{From: 10, To: 100}}}
	q := backendtest.Render(t, m, h)
	want := backendtest.Counts(t, h, q)
	h.Change(hijacks)
	h.Change(`DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || quote_ident(current_database()) || ' SET search_path = evil, public, pg_catalog'; END $$`)
	h.Backend.(*DB).pool.Reset()
	h.Backend.(*DB).aside.Reset()
	for _, trap := range []string{"SELECT age < 5::bigint FROM public.people", "SELECT floor(1.5)", "SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text", "SELECT 5::int4"} {
		if _, err := h.Backend.(*DB).pool.Exec(context.Background(), trap); err == nil {
			t.Errorf("the trap does not spring: %s", trap)
		}
	}
	if got := backendtest.Counts(t, h, q); len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v\n%s", got, want, h.Log)
	}
	called := strings.Count(h.Log.String(), "privacy rule 5") // a trap that is called fails its query
	if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") || !strings.Contains(got, "proves one row per person") {
		t.Errorf("got\n%s", got)
	}
	threats.Reached(t, "T42", "%d functions, operators, types and tables put in the way: %d called", strings.Count(hijacks, "CREATE ")-1, called)
}

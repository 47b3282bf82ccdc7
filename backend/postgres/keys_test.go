package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// keysDatasets have units in two tables, one found through another, and join keys.
const keysDatasets = `
  - id: clinic
    unit: {name: person, key: people.id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - {name: people, max_rows_per_unit: 1, columns: [{name: sex, type: text, domain: {values: [f, m]}}]}
      - {name: visits, unit: visits.who = people.id, max_rows_per_unit: 3, columns: [{name: ward, type: text, domain: {values: [A, B]}}, {name: room, type: integer, keys: join}]}
      - {name: doses, unit: doses.visit = visits.visit, max_rows_per_unit: 9, columns: [{name: drug, type: text, domain: {values: [x, y]}}, {name: room, type: bigint, keys: join}]}
`

// TestKeysThatDoNotCompareAreFatal: PostgreSQL would refuse, after the charge, a statement that compares two keys whose
// types or collations do not go together. It is found before; keys that nothing compares may be of any types.
func TestKeysThatDoNotCompareAreFatal(t *testing.T) {
	server := pgtest.Shared(t)
	for _, c := range []struct{ name, id, who, visit, through, room, other, want string }{
		{"all alike", "integer", "integer", "integer", "integer", "integer", "integer", ""},
		{"widths differ", "bigint", "integer", "smallint", "numeric", "integer", "bigint", ""},
		{"text and varchar", "text", "varchar(9)", "uuid", "uuid", "integer", "integer", ""},
		{"units differ", "integer", "text", "integer", "integer", "integer", "integer", "table people, column id (integer), and table visits, column who (text)"},
		{"path differs", "integer", "integer", "integer", "text", "integer", "integer", "table visits, column visit (integer), and table doses, column visit (text)"},
		{"join keys differ", "integer", "integer", "integer", "integer", "integer", "text", "table visits, column room (integer), and table doses, column room (text)"},
		{"collations differ", `text COLLATE "C"`, `text COLLATE "POSIX"`, "integer", "integer", "integer", "integer", "table people, column id (text), and table visits, column who (text)"},
		{"one collation is the default", `text COLLATE "C"`, "text", "integer", "integer", "integer", "integer", ""},
		{"whole and floating", "bigint", "double precision", "integer", "integer", "integer", "integer", "table people, column id (bigint), and table visits, column who (double precision)"},
		{"numeric and floating", "numeric", "real", "integer", "integer", "integer", "integer", "table people, column id (numeric), and table visits, column who (real)"},
		{"a path of another kind", "integer", "integer", "bigint", "real", "integer", "integer", "table visits, column visit (bigint), and table doses, column visit (real)"},
		{"all floating", "double precision", "real", "integer", "integer", "integer", "integer", "the unit's column id is double precision, of which equal values may have different texts"},
		{"a unit of numbers with and without a scale", "numeric(9,0)", "numeric", "integer", "integer", "integer", "integer", "table visits: the unit's column who is numeric, of which"},
		{"a unit of numbers with a scale", "numeric(9,0)", "numeric(9,0)", "integer", "integer", "integer", "integer", ""},
		{"a unit of a domain over floating ones", "floats", "floats", "integer", "integer", "integer", "integer", "the unit's column id is public.floats, of which equal values may have different texts"},
		{"a unit of a domain over a domain with a scale", "cents", "numeric(9,2)", "integer", "integer", "integer", "integer", ""},
		{"a unit of a domain without one", "anys", "numeric(9,2)", "integer", "integer", "integer", "integer", "the unit's column id is public.anys, of which"},
		{"a domain over floating ones as a path", "integer", "integer", "integer", "floats", "integer", "integer", "table visits, column visit (integer), and table doses, column visit (public.floats)"},
		{"a unit of intervals", "interval", "interval", "integer", "integer", "integer", "integer", "the unit's column id is interval, of which"},
		{"a unit of jsonb", "jsonb", "jsonb", "integer", "integer", "integer", "integer", "the unit's column id is jsonb, of which"},
		{"a unit of arrays", "numeric[]", "numeric[]", "integer", "integer", "integer", "integer", "the unit's column id is numeric[], of which"},
		{"a unit of enumerated values", "grade", "grade", "integer", "integer", "integer", "integer", ""},
		{"a unit whose case does not count", "text COLLATE ci", "text COLLATE ci", "integer", "integer", "integer", "integer", "the unit's column id is text under a collation that is not deterministic, of which"},
		{"a unit with blanks at its end and without", "char(9)", "varchar(9)", "integer", "integer", "integer", "integer", "table people, column id (character), and table visits, column who (character varying): PostgreSQL takes different keys"},
		{"a domain over varchar as a path", "integer", "integer", "words", "char(9)", "integer", "integer", "table visits, column visit (public.words), and table doses, column visit (character): PostgreSQL takes different keys"},
		{"a unit of blanks and of text", "char(9)", "text", "integer", "integer", "integer", "integer", ""},
		{"a path whose case does not count, and one whose does", "integer", "integer", "text", "text COLLATE ci", "integer", "integer", "table visits, column visit (text), and table doses, column visit (text under a collation that is not deterministic)"},
		{"no equality at all", "integer", "integer", "integer", "integer", "json", "integer", "table visits, column room (json)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			role, database := server.Role(t, ""), server.Database(t)
			server.Exec(t, database, `CREATE DOMAIN floats AS float8`, `CREATE DOMAIN twos AS numeric(9,2)`, `CREATE DOMAIN cents AS twos`, `CREATE DOMAIN anys AS numeric`, `CREATE DOMAIN words AS varchar(9)`,
				`CREATE TYPE grade AS ENUM ('a', 'b')`, `CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`,
				fmt.Sprintf(`CREATE TABLE people (id %s PRIMARY KEY, sex text)`, c.id),
				fmt.Sprintf(`CREATE TABLE visits (visit %s PRIMARY KEY, who %s, ward text, room %s)`, c.visit, c.who, c.room),
				fmt.Sprintf(`CREATE TABLE doses (visit %s, drug text, room %s)`, c.through, c.other), `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
			p, err := policy.Parse([]byte(policytest.Over(server.URLFor(role, database))+keysDatasets), "policy.yaml")
			if err != nil {
				t.Fatal(err)
			}
			got := backendtest.Inspect(t, backendtest.Open(t, p))
			if c.want == "" && strings.Contains(got, "fatal=true") || !strings.Contains(got, c.want) || c.want != "" && !strings.Contains(got, "fatal=true") {
				t.Errorf("want %q in\n%s", c.want, got)
			}
		})
	}
}

package policy

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestChanges: each line of a policy that is changed is reported, in the words of who wrote it, and nothing else is;
// what is secret is not.
func TestChanges(t *testing.T) {
	data, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text string) *Policy {
		t.Helper()
		p, err := Parse([]byte(text), "testdata/base.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := string(data)
	old := parse(base)
	if c := Changes(old, parse("# another comment\n"+base)); len(c) != 0 {
		t.Errorf("a comment changes %v", c)
	}
	for _, c := range changeCases {
		if !strings.Contains(base, c.from) {
			t.Fatalf("the base has no %q", c.from)
		}
		var told []string
		for _, change := range Changes(old, parse(strings.Replace(base, c.from, c.to, 1))) {
			told = append(told, change.Kind+" "+change.What)
			if strings.Contains(change.What, "SCRAM") || strings.Contains(change.What, "://") {
				t.Errorf("%s tells a secret", change.What)
			}
		}
		if !slices.Equal(told, c.want) {
			t.Errorf("%q to %q:\n%s\nnot\n%s", c.from, c.to, fmt.Sprintf("%q", told), fmt.Sprintf("%q", c.want))
		}
	}
}

// changeCases are edits of the base, each with all that it changes.
var changeCases = []struct {
	from, to string
	want     []string
}{
	{"name: alice\n    password: \"SCRAM-SHA-256$4096:8", "name: alice\n    password: \"SCRAM-SHA-256$4096:9", []string{"passwords_changed alice"}},
	{"name: alice\n", "name: alice\n    disabled: true\n", []string{"users_disabled alice"}},
	{"    admin: true\n", "    settings: {epsilon: 0.05}\n", []string{"admins_changed dba", "settings_changed dba"}},
	{"datasets:", "owners: [dba]\ndatasets:", []string{"owners_added dba"}},
	{"datasets:", "groups: [{name: team, members: [dba]}]\ndatasets:", []string{"groups_added team: dba"}},
	{"cap: {epsilon: 20,", "cap: {epsilon: 30,", []string{"caps_changed census: ε 20, δ 1e-06 to ε 30, δ 1e-06"}},
	{"{epsilon: 1, delta: 1e-7}\n    defaults", "{epsilon: 2, delta: 1e-7}\n    defaults", []string{"budgets_changed * of census: ε 1, δ 1e-07 to ε 2, δ 1e-07"}},
	{"refresh: 30d", "refresh: 7d", []string{"budgets_changed alice of census: ε 3, δ 1e-07 anew each 30d, ε 10, δ 1e-06 for life to ε 3, δ 1e-07 anew each 7d, ε 10, δ 1e-06 for life"}},
	{"max_epsilon: 1,", "max_epsilon: 2,", []string{"defaults_changed census: max_epsilon: 1 to 2"}},
	{"max: 119,", "max: 120,", []string{"columns_changed census.people.age: integer; 0 to 119 in 120 steps; outside: the nearest end; NULL: counted apart to integer; 0 to 120 in 121 steps; outside: the nearest end; NULL: counted apart"}},
	{"[Female, Male]", "[Male, Female]", []string{"columns_changed census.people.sex: text; Female, Male; outside: other; NULL: counted apart to text; Male, Female; outside: other; NULL: counted apart"}},
	{"          - {name: active, type: boolean}\n", "", []string{"columns_removed census.people.active"}},
	{"columns: [age], epsilon: 0.5", "columns: [age], epsilon: 0.4", []string{"releases_changed census.people.people_age: range over age for ε 0.5 to range over age for ε 0.4"}},
	{"expected_rows: 500000\n", "expected_rows: 400000\n", []string{"tables_changed census.people: expected_rows: 500000 to 400000"}},
	{"max_rows_per_unit: 10", "max_rows_per_unit: 5", []string{"tables_changed census.visits: rows of one unit that count: 10 to 5"}},
	{"        max_rows_per_unit: 10\n", "",
		[]string{"tables_changed census.visits: rows of one unit that count: 10 to any number"}},
	{"max_rows_per_unit: 10", "max_rows_per_unit: 10\n        max_total_per_unit: 2.5",
		[]string{"tables_changed census.visits: most that one unit adds to a count: none to 5/2"}},
	{"source: public.visits", "source: other.visits", []string{"tables_changed census.visits: source: public.visits to other.visits"}},
	{"neighbors: add-remove", "neighbors: replace-one\n    units: 1000", []string{"datasets_changed census: neighbors: add-remove to replace-one", "datasets_changed census: public number of units: 0 to 1000"}},
	{"5432/prod", "5432/other", []string{"restart backend"}},
	{"dpproxy@127.0.0.1:5432", "dpproxy:guess@127.0.0.1:5432", nil}, // nothing shows whether it is the password
	{"type: boolean}", "type: boolean}\n          - {name: paid, type: integer, domain: private}", []string{"columns_added census.people.paid: integer; its bounds are not known yet, and nothing is answered over it"}},
	{"type: boolean}", "type: boolean}\n          - {name: note, type: text, domain: any, nulls: exclude}", []string{"columns_added census.people.note: text; any text, never shown; conditions on it are answered; NULL: left out"}},
	{"listen: 127.0.0.1:6432", "listen: 127.0.0.1:6432\n  spans: true", []string{"restart spans"}},
	{"listen: 127.0.0.1:6432", "listen: 127.0.0.1:6433", []string{"restart listen"}},
	{"listen: 127.0.0.1:6432", "listen: 127.0.0.1:6432\n  limits: {connections: 10}", []string{"limits_changed server.limits"}},
	{"id: census", "id: censos", []string{"datasets_added censos", "datasets_removed census"}},
}

// TestChangesForgetNothing: each field of a policy is compared, or is known not to be. Whoever adds one adds it to
// Changes, and here.
func TestChangesForgetNothing(t *testing.T) {
	for _, c := range []struct {
		of    any
		known string
	}{
		{Policy{}, "Server Backend Sandbox Ledger Users Groups Owners Datasets; Path Digest views whole text lists"},
		{Server{}, "Listen Admin Console MCP TLS LDAP OIDC Timing Limits FixedWork Spans"},
		{User{}, "Name Login Verifier Identity Disabled Admin Settings Scoped"},
		{Group{}, "Name Members"},
		{Dataset{}, "ID Unit Neighbors Units Accountant Cap Budgets Levels Defaults Threshold Buying Frequency Tables; RenamedFrom groups Level finds whole lists"},
		{Unit{}, "Row Name Table Column Type"},
		{Budget{}, "Allowance Refresh Lifetime Level"},
		{Defaults{}, "Epsilon MaxEpsilon Confidence Freshness"},
		{Table{}, "Name Schema Source File View Public Static Extreme ExpectedRows UnitColumn NullEach Via RowRank MaxRowsPerUnit AnyRows MaxTotal MaxGroups MaxPerGroup MaxRows Appends Columns Unique Keys Releases Sessions Synthetics Frequency; Dataset Derived Places Opened Listed"},
		{Column{}, "Name Source Type Typmod Domain Nulls Outside Snap Extreme Ends Hide Join Unit Open Enum Private Comment MaxTotal Frequency; Table Blanks Ragged Product NullKey Hidden Refers Any Reading Beside Input List"},
		{Release{}, "Name Kind Columns Cost Refresh Insist Widths Mechanism Updates Rows Queries; Table Epsilon Levels"},
	} {
		var names []string
		for i := range reflect.TypeOf(c.of).NumField() {
			names = append(names, reflect.TypeOf(c.of).Field(i).Name)
		}
		known := strings.Fields(strings.ReplaceAll(c.known, ";", ""))
		slices.Sort(names)
		slices.Sort(known)
		if !slices.Equal(names, known) {
			t.Errorf("%T has the fields %v, and Changes knows %v", c.of, names, known)
		}
	}
}

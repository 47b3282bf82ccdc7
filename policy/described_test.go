package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// TestConstraints: keys are what the policy says of joins, and nothing that it does not say.
func TestConstraints(t *testing.T) {
	head := policytest.Over("postgres://reader@127.0.0.1:5432/shop") + `
  - id: shop
    unit: UNIT
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 100, delta: 0}
    budgets: {"*": {epsilon: 10, delta: 0}}
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    tables:
`
	const people = "      - {name: people, max_rows_per_unit: 1, columns: [{name: sex, type: boolean}]}\n"
	for _, c := range []struct{ name, unit, tables, want string }{
		{"the unit's own table and another", "{name: person, key: people.id, type: bigint}",
			people + "      - {name: visits, unit: visits.who = people.id, max_rows_per_unit: 8, columns: [{name: ill, type: boolean}]}\n",
			"people: sex boolean, id bigint; people_pkey (id)* | visits: ill boolean, who bigint; visits_who_fkey (who) -> people_pkey"},
		{"nothing says the type", "{name: person, key: people.id}", people, "people: sex boolean, id text; people_pkey (id)*"},
		{"the type that another table says", "{name: person, key: people.id}",
			people + "      - {name: bids, unit: bids.who = people.id, max_rows_per_unit: 1, columns: [{name: who, type: smallint, keys: join}, {name: won, type: boolean}]}\n",
			"people: sex boolean, id smallint; people_pkey (id)* | bids: who smallint, won boolean; bids_pkey (who)*, bids_who_fkey (who) -> people_pkey"},
		{"units of several rows have no primary key, and nothing leads to them", "{name: person, key: people.id}", strings.ReplaceAll(people, "unit: 1", "unit: 2") +
			"      - {name: visits, unit: visits.who = people.id, max_rows_per_unit: 8, columns: [{name: ill, type: boolean}]}\n",
			"people: sex boolean, id text | visits: ill boolean, who text"},
		{"rows of no unit", "{name: person, key: people.id}", strings.ReplaceAll(people, "max_rows", "null_unit: each, max_rows"), "people: sex boolean, id text"},
		{"through another table", "{name: person, key: people.id}",
			people + "      - {name: orders, unit: orders.who = people.id, max_rows_per_unit: 3, unique: [no], columns: [{name: no, type: integer, keys: join}, {name: paid, type: boolean}]}\n" +
				"      - {name: lines, unit: lines.no = orders.no, max_rows_per_unit: 9, unique: [[no, line]], columns: [{name: line, type: smallint, nulls: exclude, domain: {min: 1, max: 9}}]}\n",
			"people: sex boolean, id text; people_pkey (id)* | orders: no integer, paid boolean, who text; orders_pkey (no)*, orders_who_fkey (who) -> people_pkey | " +
				"lines: line smallint, no integer; lines_pkey (line, no)*, lines_no_fkey (no) -> orders_pkey met"},
		{"unique within a unit", "{name: person, key: people.id}",
			people + "      - {name: votes, unit: votes.who = people.id, max_rows_per_unit: 3, unique: [[about]], columns: [{name: about, type: integer, domain: {min: 1, max: 9}}]}\n",
			"people: sex boolean, id text; people_pkey (id)* | votes: about integer, who text; votes_who_about_key (who, about), votes_who_fkey (who) -> people_pkey"},
		{"a unit that is a column too", "{name: person, key: people.id}",
			"      - {name: people, max_rows_per_unit: 1, columns: [{name: number, source: id, type: integer, domain: {min: 1, max: 9}}]}\n",
			"people: number integer; people_pkey (number)*"},
		{"rows are units", "row", "      - {name: people, columns: [{name: sex, type: boolean}]}\n", "people: sex boolean"},
		{"names that are there", "{name: person, key: people.id}", people + "      - {name: people_pkey, public: true, columns: [{name: id, type: integer}]}\n",
			"people: sex boolean, id text; people_pkey1 (id)* | people_pkey: id integer"},
	} {
		p, err := policy.Parse([]byte(strings.Replace(head, "UNIT", c.unit, 1)+c.tables), "policy.yaml")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var tables []string
		for _, table := range p.Datasets[0].Tables {
			var columns, keys []string
			for _, col := range table.Described() {
				typ, typmod := col.DescribedType()
				columns = append(columns, col.Name+" "+typ.Format(typmod))
			}
			for _, k := range p.Datasets[0].Constraints() {
				if k.Of != table {
					continue
				}
				names := make([]string, len(k.Columns))
				for i, col := range k.Columns {
					names[i] = col.Name
				}
				text := fmt.Sprintf("%s (%s)%s", k.Name, strings.Join(names, ", "), map[bool]string{true: "*"}[k.Primary])
				if k.To != nil {
					text += " -> " + k.To.Name + map[bool]string{true: " met"}[k.Met]
				}
				keys = append(keys, text)
			}
			text := table.Name + ": " + strings.Join(columns, ", ")
			if keys != nil {
				text += "; " + strings.Join(keys, ", ")
			}
			tables = append(tables, text)
		}
		if got := strings.Join(tables, " | "); got != c.want {
			t.Errorf("%s:\n    got  %s\n    want %s", c.name, got, c.want)
		}
	}
}

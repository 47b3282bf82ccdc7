package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy/policytest"
)

// keyedPolicy is a policy of lines that find their unit through orders; columns are those of people, orders and lines.
func keyedPolicy(t *testing.T, people, orders, lines string) *Dataset {
	t.Helper()
	p, err := Parse([]byte(policytest.Over("postgres://reader@127.0.0.1:5432/shop")+`
  - id: shop
    unit: {name: person, key: people.id}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 100, delta: 0}
    budgets: {"*": {epsilon: 10, delta: 0}}
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    tables:
      - {name: people, max_rows_per_unit: 1, columns: [`+people+`]}
      - {name: orders, unit: orders.person_id = people.id, max_rows_per_unit: 5, columns: [`+orders+`]}
      - {name: lines, unit: lines.order_no = orders.order_no, max_rows_per_unit: 9, columns: [`+lines+`]}
`), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p.Datasets[0]
}

// TestKeysHaveOneType: a key whose type the policy does not say has that which the keys have that lead to it, or which
// it leads to; where two that lead to one another are said to be of types that no server has a foreign key between,
// there is none; and no table has two columns of a name.
func TestKeysHaveOneType(t *testing.T) {
	const qty = "{name: qty, type: integer, domain: {min: 0, max: 9}}"
	for _, c := range []struct{ people, orders, lines, want string }{
		{qty, qty, qty, "people.id text, orders.person_id text, orders.order_no text, lines.order_no text; 2 led"},
		{qty, qty, "{name: order_no, type: bigint, keys: join}", "people.id text, orders.person_id text, orders.order_no bigint, lines.order_no bigint; 2 led"},
		{qty, "{name: person_id, type: bigint, keys: join}, {name: order_no, type: integer, domain: {min: 0, max: 9}}", qty,
			"people.id bigint, orders.person_id bigint, orders.order_no integer, lines.order_no integer; 2 led"},
		{"{name: id, type: integer, domain: {min: 0, max: 9}}", qty, "{name: order_no, type: text, keys: join}",
			"people.id integer, orders.person_id integer, orders.order_no text, lines.order_no text; 2 led"},
		{"{name: id, type: integer, keys: join}", "{name: person_id, type: text, keys: join}, {name: order_no, type: date, keys: join}", "{name: order_no, type: integer, keys: join}",
			"people.id integer, orders.person_id text, orders.order_no date, lines.order_no integer; 0 led"},
		{"{name: ID, source: number, type: integer, domain: {min: 0, max: 9}}", qty, qty, "orders.person_id text, orders.order_no text, lines.order_no text; 1 led"},
	} {
		d := keyedPolicy(t, c.people, c.orders, c.lines)
		var said []string
		for _, table := range d.Tables {
			names := map[string]bool{}
			for _, c := range table.Described() {
				if name := strings.ToLower(c.Name); names[name] {
					t.Errorf("%s has two columns %s", table.Name, c.Name)
				} else {
					names[name] = true
				}
			}
			for _, k := range table.Keys {
				if k := table.describedAs(k); table.shows(k) {
					typ, typmod := k.DescribedType()
					said = append(said, table.Name+"."+k.Name+" "+typ.Format(typmod))
				}
			}
		}
		slices.SortStableFunc(said, func(a, b string) int { // of one table, the key that leads away first
			return strings.Compare(tableOrder(a), tableOrder(b))
		})
		led := 0
		for _, k := range d.Constraints() {
			if slices.ContainsFunc(k.Columns, func(c *Column) bool { return !k.Of.shows(c) }) {
				t.Errorf("%s is of columns that are not shown", k.Name)
			}
			if k.To != nil {
				led++
			}
		}
		if got := fmt.Sprintf("%s; %d led", strings.Join(said, ", "), led); got != c.want {
			t.Errorf("%s | %s | %s:\n    got  %s\n    want %s", c.people, c.orders, c.lines, got, c.want)
		}
	}
}

func tableOrder(key string) string {
	return fmt.Sprint(slices.IndexFunc([]string{"people.id", "orders.person_id", "orders.order_no", "lines.order_no"}, func(p string) bool { return strings.HasPrefix(key, p+" ") }))
}

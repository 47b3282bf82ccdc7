package sandboxtest

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// keyedText is a policy whose tables have keys of all kinds: listed and not, of one column and of two, found through another table.
const keyedText = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: "postgres://reader@127.0.0.1:5432/shop"}
ledger: {url: "sqlite:ledger.db"}
users: [{name: alice, password: "SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}]
datasets:
  - id: census
    unit: {name: user, key: users.id}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 100, delta: 0}
    budgets: {"*": {epsilon: 10, delta: 0}}
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    tables:
      - name: users
        max_rows_per_unit: 1
        columns:
          - {name: id, type: integer, keys: join}
          - {name: age, type: integer, domain: {min: 0, max: 120}}
      - name: orders
        unit: orders.user_id = users.id
        max_rows_per_unit: 5
        columns:
          - {name: status, type: text, domain: {values: [new, paid]}}
          - {name: order_no, type: bigint, keys: join}
          - {name: user_id, type: integer, keys: join}
      - name: sales.lines
        unit: sales.lines.order_no = orders.order_no
        max_rows_per_unit: 20
        unique: [[order_no, line_no]]
        columns:
          - {name: order_no, type: bigint, keys: join}
          - {name: line_no, type: smallint, domain: {min: 1, max: 50}}
          - {name: qty, type: integer, domain: {min: 0, max: 20}}
      - name: cards
        unit: cards.holder = users.id
        max_rows_per_unit: 1
        columns: [{name: kind, type: "varchar(9)", domain: {values: [gold, blue]}, nulls: exclude}]
`

// KeyedSQL makes the tables of the policy Keyed on a server, as their owner would.
var KeyedSQL = []string{
	"CREATE SCHEMA sales",
	"CREATE TABLE public.users (id integer PRIMARY KEY, age integer)",
	"CREATE TABLE public.orders (status text, order_no bigint PRIMARY KEY, user_id integer NOT NULL)",
	"ALTER TABLE public.orders ADD FOREIGN KEY (user_id) REFERENCES public.users NOT VALID",
	"CREATE TABLE sales.lines (order_no bigint NOT NULL REFERENCES public.orders, line_no smallint, qty integer, UNIQUE (line_no, order_no))",
	"CREATE TABLE public.cards (kind varchar(9) NOT NULL, holder integer PRIMARY KEY)",
	"ALTER TABLE public.cards ADD FOREIGN KEY (holder) REFERENCES public.users NOT VALID",
}

// Keyed is a policy of the dataset census, whose tables are joined by keys; changes are pairs of what stands in its text and what shall.
func Keyed(t testing.TB, changes ...string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(strings.NewReplacer(changes...).Replace(keyedText)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

package planner

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// keyOrders is a policy whose tables list their keys in various places.
const keyOrders = `version: 1
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
`

// TestStarsShowKeys: what * stands for has the keys that catalogs list, in their places, wherever that decides what a statement means: in the names that
// an alias gives, in DISTINCT, and in which columns of a UNION lie below one another.
func TestStarsShowKeys(t *testing.T) {
	p, err := policy.Parse([]byte(keyOrders), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	for _, s := range []struct{ sql, want string }{
		{"SELECT b, count(*) FROM (SELECT * FROM users) AS s (a, b) GROUP BY b", `histogram "users: age"`},
		{"SELECT b, count(*) FROM users AS s (a, b) GROUP BY b", `histogram "users: age"`},
		{"WITH s (a, b) AS (SELECT * FROM users) SELECT b, count(*) FROM s GROUP BY b", `histogram "users: age"`},
		{"SELECT a, count(*) FROM (SELECT * FROM users) AS s (a, b) GROUP BY a", `"a" names rows of one user`},
		{"WITH s (a, b, c) AS (SELECT * FROM users) SELECT b, count(*) FROM s GROUP BY b", `table "s" has 2 columns available but 3 columns specified`},
		{"SELECT b, count(*) FROM (SELECT o.*, u.* FROM users u JOIN orders o ON o.user_id = u.id) AS s (w, x, y, z, b) GROUP BY b", `.age"`},
		{"SELECT b, count(*) FROM (users u JOIN orders o ON o.user_id = u.id) AS s (x, b) GROUP BY b", `.age"`},
		{"SELECT d, count(*) FROM (sales.lines JOIN orders USING (order_no)) AS s (a, b, c, d) GROUP BY d", `.status"`},
		{"SELECT b, count(*) FROM (SELECT * FROM users UNION SELECT * FROM users) AS s (a, b) GROUP BY b", `age"`},
		{"SELECT * FROM orders LIMIT 0", "column status text\n  column order_no bigint\n  column user_id integer"},
		{"SELECT * FROM users u JOIN orders o ON o.user_id = u.id LIMIT 0", "column id integer\n  column age integer\n  column status text\n  column order_no bigint\n  column user_id integer"},
		{"SELECT * FROM (sales.lines JOIN orders USING (order_no)) AS s (a, b) LIMIT 0", "column a bigint\n  column b smallint\n  column qty integer\n  column status text\n  column user_id integer"},
		{"SELECT * FROM (SELECT status, user_id, count(*) AS n FROM orders GROUP BY 1, 2) s LIMIT 0", "column status text\n  column user_id integer\n  column n bigint"},
		{"SELECT DISTINCT * FROM orders", `names rows of one user`},
		{"SELECT o.*, count(*) FROM orders o GROUP BY 1", `names rows of one user`},
		{"SELECT n, count(*) FROM (SELECT u.*, count(*) AS n FROM users u GROUP BY 1, 2) s GROUP BY n", `users`},
		{"SELECT count(*) FROM (SELECT o.status, o.user_id FROM orders o UNION ALL SELECT o.* FROM (SELECT user_id, status FROM orders) o) s", `same keys and columns in the same places`},
		{"SELECT count(*) FROM (SELECT * FROM (SELECT user_id, status FROM orders) o UNION ALL SELECT * FROM (SELECT status, user_id FROM orders) o) s", `same keys and columns in the same places`},
	} {
		if got := golden(t, &c, "plan", s.sql); !strings.Contains(got, s.want) {
			t.Errorf("%s\n    got  %s\n    want %s", s.sql, got, s.want)
		}
	}
	distinct := golden(t, &c, "plan", "SELECT count(*) FROM (SELECT DISTINCT * FROM orders) s")
	if want := golden(t, &c, "plan", "SELECT count(*) FROM (SELECT DISTINCT status, order_no, user_id FROM orders) s"); distinct != want {
		t.Errorf("SELECT DISTINCT *: got %s\n    want %s", distinct, want)
	}
}

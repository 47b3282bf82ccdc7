package planner

import (
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestStarsShowKeys: what * means has the keys that catalogs list, in their places, wherever that decides what a
// statement means: in the names that an alias gives, in DISTINCT, and in which columns of a UNION lie below one
// another.
func TestStarsShowKeys(t *testing.T) {
	const path = "../sandbox/sandboxtest/keyed.yaml" // whose tables list their keys in various places
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(data, path)
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

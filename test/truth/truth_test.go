package truth

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

func asPgError(err error) (*pgconn.PgError, bool) {
	var e *pgconn.PgError
	ok := errors.As(err, &e)
	return e, ok
}

func TestSmoke(t *testing.T) {
	server := pgtest.Shared(t)
	s := shop(1)
	role, database := s.database(t, server)
	for name, b := range map[string]func(string) string{
		"postgres": func(string) string { return `{url: "` + server.URLFor(role, database) + `"}` },
		"duckdb":   func(dir string) string { return s.duckdb(t, dir) },
	} {
		h := open(t, s, b, "")
		c := h.connect()
		c.ask("SET dp.epsilon = 100000")
		for _, sql := range []string{"SELECT count(*) FROM customer", "SELECT status, count(*), sum(total), avg(total) FROM orders GROUP BY 1", "SELECT tier, count(*) FROM customer GROUP BY 1",
			"SELECT channel, count(*) FROM orders JOIN customer USING (customer_id) GROUP BY 1", "SELECT category, sum(quantity*price) FROM lineitem JOIN product USING (product_id) GROUP BY 1"} {
			a := c.ask(sql)
			t.Logf("%s: %v %v %q", sql, a.rows, a.err, a.said)
		}
		begin := time.Now()
		for range 20 {
			h.renew()
		}
		t.Logf("%s: renew takes %v", name, time.Since(begin)/20)
	}
}

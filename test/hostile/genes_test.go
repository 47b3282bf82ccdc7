package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// longest is the size of a hostile statement.
const longest = 64 << 10

// gene is a statement: a shape, how large, and what is put around it.
type gene struct {
	shape, around int
	size          float64 // in (0, 1]
	extra         int     // a second dimension of the shape
}

// filled repeats a part as often as fits the size.
func filled(size float64, head, tail, joint string, part func(i int) string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := 0; i < 1 || float64(b.Len()+len(tail)+64) < size*longest; i++ {
		if i > 0 {
			b.WriteString(joint)
		}
		b.WriteString(part(i))
	}
	b.WriteString(tail)
	return b.String()
}

// times is a number of parts of an extra dimension.
func times(extra, most int) int { return 1 + extra%most }

// shape makes a text of a size.
type shape struct {
	name string
	text func(size float64, extra int) string
}

var keys = []string{"day", "status", "amount", "date_trunc('month', day)", "extract(year FROM day)", "extract(dow FROM day)", "amount > 500", "day - date '2023-01-01'"}

func somekeys(extra int) string {
	return strings.Join(keys[:times(extra, len(keys))], ", ")
}

var shapes = []shape{
	{"a wide IN list", func(size float64, extra int) string {
		return filled(size, "SELECT count(*) FROM orders WHERE amount IN (", ")", ", ", func(i int) string { return fmt.Sprintf("%d.%02d", i%1000, i%97) })
	}},
	{"a wide NOT IN list of days", func(size float64, extra int) string {
		return filled(size, "SELECT day, count(*) FROM orders WHERE day NOT IN (", ") GROUP BY day", ", ", func(i int) string { return fmt.Sprintf("date '2023-01-01' + %d", i%1000) })
	}},
	{"many leaves", func(size float64, extra int) string {
		return filled(size, "SELECT ", "", " + ", func(i int) string { return fmt.Sprintf("(SELECT count(*) FROM orders WHERE amount < %d)", i%1000) })
	}},
	{"many filters", func(size float64, extra int) string {
		return filled(size, "SELECT ", " FROM orders", ", ", func(i int) string {
			return fmt.Sprintf("count(*) FILTER (WHERE amount < %d AND day > date '2023-01-01' + %d)", i, i%900)
		})
	}},
	{"sums of long sums", func(size float64, extra int) string {
		return filled(size/8, "SELECT sum(", ") FROM orders GROUP BY "+somekeys(extra), " + ", func(i int) string { return "amount" })
	}},
	{"many sums by many keys", func(size float64, extra int) string {
		return filled(size, "SELECT ", " FROM orders GROUP BY "+somekeys(extra), ", ", func(i int) string { return fmt.Sprintf("sum(amount * %d)", i) })
	}},
	{"grouping sets", func(size float64, extra int) string {
		return "SELECT count(*), sum(amount) FROM orders GROUP BY CUBE (" + somekeys(extra) + ")"
	}},
	{"many grouping sets", func(size float64, extra int) string {
		return filled(size, "SELECT count(*) FROM orders GROUP BY GROUPING SETS (", ")", ", ", func(i int) string { return "(" + keys[i%len(keys)] + ", " + keys[(i/8)%len(keys)] + ")" })
	}},
	{"fine groups", func(size float64, extra int) string {
		return "SELECT " + somekeys(extra) + ", count(*), avg(amount), stddev(amount) FROM orders GROUP BY " + somekeys(extra)
	}},
	{"long conditions", func(size float64, extra int) string {
		return filled(size/4, "SELECT count(*) FROM orders WHERE ", "", " OR ", func(i int) string {
			return fmt.Sprintf("(amount * %d + %d > 7 AND status LIKE '%%%c%%' AND day::text LIKE '%%%d%%')", i+1, i, 'a'+i%26, i%10)
		})
	}},
	{"quantiles", func(size float64, extra int) string {
		return filled(size/4, "SELECT ", " FROM orders", ", ", func(i int) string {
			return fmt.Sprintf("percentile_cont(%.4f) WITHIN GROUP (ORDER BY amount)", float64(i%1000)/1000)
		})
	}},
	{"a cohort of first orders", func(size float64, extra int) string {
		return "WITH first AS (SELECT customer, min(day) AS day FROM orders GROUP BY customer) SELECT date_trunc('month', f.day), date_trunc('month', o.day), count(DISTINCT o.customer), sum(o.amount) FROM orders o JOIN first f ON f.customer = o.customer GROUP BY 1, 2"
	}},
	{"a self-join", func(size float64, extra int) string {
		return "SELECT a." + keys[extra%3] + ", b." + keys[(extra/3)%3] + ", count(*) FROM orders a JOIN orders b ON a.customer = b.customer GROUP BY 1, 2"
	}},
	{"cross joins of public tables", func(size float64, extra int) string {
		list := []string{"product p0"}
		for i := range times(extra, 12) {
			list = append(list, fmt.Sprintf("product p%d", i+1))
		}
		return "SELECT count(*), max(p0.name || p1.name) FROM " + strings.Join(list, ", ") + " WHERE (p0.price * p1.price) % 7 = 3"
	}},
	{"cross joins above the boundary", func(size float64, extra int) string {
		list := []string{}
		for i := range 2 + times(extra, 4) {
			list = append(list, fmt.Sprintf("(SELECT day, count(*) AS n FROM orders GROUP BY day) q%d", i))
		}
		return "SELECT sum(q0.n * q1.n), count(*) FROM " + strings.Join(list, ", ")
	}},
	{"rows of public tables", func(size float64, extra int) string {
		return "SELECT a.*, b.*, c.label FROM product a, product b, calendar c"
	}},
	{"sorted rows of public tables", func(size float64, extra int) string {
		return "SELECT a.name || b.name AS x FROM product a, product b ORDER BY md5(a.name || b.name) DESC, x"
	}},
	{"series", func(size float64, extra int) string {
		return "SELECT count(*), sum(a) FROM generate_series(1, " + []string{"1000000", "1000000000", "1000000000000"}[extra%3] + ") a"
	}},
	{"crossed series", func(size float64, extra int) string {
		return "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE (a * b) % 7 = 3"
	}},
	{"grouped series", func(size float64, extra int) string {
		return "SELECT a % 1000003 AS k, count(*), min(a), max(a) FROM generate_series(1, 30000000) a GROUP BY 1 ORDER BY 2 DESC, 1"
	}},
	{"repeat", func(size float64, extra int) string {
		return fmt.Sprintf("SELECT length(repeat('x', %d))", []int{1_000_000, 100_000_000, 900_000_000, 2_000_000_000}[extra%4])
	}},
	{"repeated repeats", func(size float64, extra int) string {
		return fmt.Sprintf("SELECT sum(length(repeat(name, %d))) FROM product", 1000*times(extra, 200))
	}},
	{"string_agg", func(size float64, extra int) string {
		return "SELECT length(string_agg(repeat(a.name, 20) || b.name, ',')) FROM product a, product b"
	}},
	{"array_agg", func(size float64, extra int) string {
		return "SELECT array_agg(a.name || b.name) FROM product a, product b"
	}},
	{"rpad and replace", func(size float64, extra int) string {
		return "SELECT sum(length(replace(rpad(name, 20000, 'ab'), 'a', 'cccccccc'))) FROM product, generate_series(1, 1000) g"
	}},
	{"regular expressions", func(size float64, extra int) string {
		return "SELECT count(*) FROM product a, product b WHERE (a.name || b.name) ~ '(a|p|r)*(o|d|u)*(c|t)*( |1|2)*$' AND regexp_replace(a.name, '.', 'xx', 'g') <> b.name"
	}},
	{"a recursive query", func(size float64, extra int) string {
		return "WITH RECURSIVE r(i, s) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, s || s FROM r WHERE i < 60) SELECT max(length(s)) FROM r"
	}},
	{"an endless recursive query", func(size float64, extra int) string {
		return "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT (i + 1) % 10 FROM r) SELECT count(*) FROM r"
	}},
	{"doubling CTEs", func(size float64, extra int) string {
		n := 2 + times(extra, 30)
		parts := []string{"t0 AS (SELECT name FROM product)"}
		for i := 1; i <= n; i++ {
			parts = append(parts, fmt.Sprintf("t%d AS (SELECT * FROM t%d UNION ALL SELECT * FROM t%d)", i, i-1, i-1))
		}
		return "WITH " + strings.Join(parts, ", ") + fmt.Sprintf(" SELECT count(*) FROM t%d", n)
	}},
	{"doubling CTEs of counts", func(size float64, extra int) string {
		n := 2 + times(extra, 16)
		parts := []string{"t0 AS (SELECT day, count(*) AS n FROM orders GROUP BY day)"}
		for i := 1; i <= n; i++ {
			parts = append(parts, fmt.Sprintf("t%d AS (SELECT * FROM t%d UNION ALL SELECT * FROM t%d)", i, i-1, i-1))
		}
		return "WITH " + strings.Join(parts, ", ") + fmt.Sprintf(" SELECT sum(n) FROM t%d", n)
	}},
	{"nested sub-queries", func(size float64, extra int) string {
		n := times(extra, 60)
		return strings.Repeat("SELECT * FROM (", n) + "SELECT day, count(*) AS n FROM orders GROUP BY day" + strings.Repeat(") t", n)
	}},
	{"windows", func(size float64, extra int) string {
		return filled(size/4, "SELECT ", " FROM product a, calendar c", ", ", func(i int) string {
			return fmt.Sprintf("sum(a.price + %d) OVER (PARTITION BY a.category ORDER BY c.day, a.id ROWS BETWEEN %d PRECEDING AND CURRENT ROW)", i, i+1)
		})
	}},
	{"arithmetic above the counts", func(size float64, extra int) string {
		return filled(size, "SELECT day, ", " FROM orders GROUP BY day ORDER BY 2", ", ", func(i int) string { return fmt.Sprintf("(count(*) * %d + %d) %% 17", i+1, i) })
	}},
	{"sorts by many keys", func(size float64, extra int) string {
		return filled(size/4, "SELECT day, amount, count(*) FROM orders GROUP BY day, amount ORDER BY ", "", ", ", func(i int) string { return fmt.Sprintf("count(*) * 0 + %d", i) })
	}},
	{"VALUES joined", func(size float64, extra int) string {
		return filled(size, "SELECT v.b, count(*) FROM orders JOIN (VALUES ", ") AS v(a, b) ON v.a = orders.status GROUP BY 1", ", ", func(i int) string { return fmt.Sprintf("('%s', %d)", []string{"new", "paid", "x"}[i%3], i) })
	}},
	{"many statements", func(size float64, extra int) string {
		return filled(size, "", "", "; ", func(i int) string { return fmt.Sprintf("SELECT count(*) FROM orders WHERE amount < %d", i%1000) })
	}},
	{"many small statements", func(size float64, extra int) string {
		return filled(size, "", "", ";", func(i int) string { return "SELECT 1" })
	}},
	{"comments", func(size float64, extra int) string {
		return filled(size/8, "SELECT 1 ", " FROM orders", "", func(i int) string { return []string{"/**/", "/* x */ ", "-- x\n"}[extra%3] })
	}},
	{"long constants", func(size float64, extra int) string {
		return "SELECT md5('" + strings.Repeat("x", int(size*longest*0.9)) + "'), length(repeat('" + strings.Repeat("y", 50) + "', 1000000))"
	}},
	{"error columns", func(size float64, extra int) string {
		return "SET dp.error_columns = on; SELECT " + somekeys(extra) + ", sqrt(abs(count(*))), count(*) * 100.0 / sum(count(*)) OVER () FROM orders GROUP BY " + somekeys(extra) + "; SET dp.error_columns = off"
	}},
	{"a large epsilon", func(size float64, extra int) string {
		return "SET dp.epsilon = 90; SELECT " + somekeys(extra) + ", sum(amount), count(*) FROM orders GROUP BY " + somekeys(extra) + "; RESET dp.epsilon"
	}},
	{"an error to be met", func(size float64, extra int) string {
		return "SET dp.max_error = 0.001; EXPLAIN SELECT " + somekeys(extra) + ", sum(amount), count(*) FROM orders GROUP BY " + somekeys(extra) + "; SET dp.max_error = off"
	}},
	{"catalogs", func(size float64, extra int) string {
		return "SELECT count(*) FROM pg_catalog.pg_attribute a, pg_catalog.pg_attribute b, pg_catalog.pg_attribute c, pg_catalog.pg_type d WHERE a.attname < b.attname"
	}},
}

// around is how a statement is sent. Those that do not fit it are refused, which is an answer too.
var around = []string{"%s", "EXPLAIN %s", "EXPLAIN (ALTERNATIVES) %s", "EXPLAIN (FORMAT JSON) %s", "COPY (%s) TO STDOUT", "BEGIN; DECLARE c%d CURSOR WITH HOLD FOR %s; COMMIT; FETCH 10 FROM c%[1]d",
	"SELECT * FROM (%s) AS virtual_table LIMIT 1000", "PREPARE p%d AS %s; EXECUTE p%[1]d"}

var number int

func (g gene) text() string {
	s := shapes[g.shape].text(g.size, g.extra)
	a := around[g.around]
	if strings.Contains(a, "%d") {
		number++
		return fmt.Sprintf(a, number, s)
	}
	return fmt.Sprintf(a, s)
}

func (g gene) String() string {
	return fmt.Sprintf("%s, %.0f %% of 64 KiB, %d, as %.30s", shapes[g.shape].name, 100*g.size, g.extra, around[g.around])
}

func random(r *rand.Rand) gene {
	return gene{r.IntN(len(shapes)), r.IntN(len(around)) * r.IntN(2), 0.02 + 0.98*r.Float64()*r.Float64(), r.IntN(200)}
}

func (g gene) mutated(r *rand.Rand) gene {
	switch r.IntN(4) {
	case 0:
		g.size = min(g.size*(0.5+1.5*r.Float64()), 1)
	case 1:
		g.extra = max(g.extra+r.IntN(21)-10, 0)
	case 2:
		g.around = r.IntN(len(around))
	default:
		g.shape = r.IntN(len(shapes))
	}
	return g
}

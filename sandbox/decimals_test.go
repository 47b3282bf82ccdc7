package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/embedded"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// offers is a public table of numerics that are held as decimals, of each width that DuckDB has, and of one that is not.
func offers(r *rand.Rand) (*policy.Table, sandbox.Rows, string) {
	t := &policy.Table{Name: "offers", Schema: "public", Public: true}
	rows := sandbox.Rows{}
	ddl := []string{}
	add := func(name string, typ policy.Type, mod int32) {
		t.Columns = append(t.Columns, &policy.Column{Name: name, Type: typ, Typmod: mod})
		rows.Columns = append(rows.Columns, sandbox.Column{Name: name, Type: typ, Typmod: mod})
		ddl = append(ddl, name+" "+typ.Format(mod))
	}
	widths := [][2]int32{{4, 2}, {9, 0}, {15, 2}, {18, 18}, {18, 3}, {19, 4}, {30, 6}, {38, 10}, {38, 38}, {4, 4}}
	for i, w := range widths {
		add(fmt.Sprint("d", i), policy.NumericType, (w[0]<<16|w[1])+4)
	}
	add("free", policy.NumericType, -1)
	add("small", policy.Int2, -1)
	add("whole", policy.Int4, -1)
	add("large", policy.Int8, -1)
	add(`"decimal 1"`, policy.Text, -1)
	t.Columns[len(t.Columns)-1].Name, rows.Columns[len(t.Columns)-1].Name = "Decimal 1", "Decimal 1"
	ddl[len(ddl)-1] = `"Decimal 1" text`
	for range 60 {
		var row []policy.Value
		for _, w := range widths {
			most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(w[0])), nil)
			v := new(big.Int).Rand(r, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(1+r.Intn(int(w[0])))), nil))
			if r.Intn(12) == 0 {
				v = most.Sub(most, big.NewInt(1)) // all digits are nines
			}
			if r.Intn(3) == 0 {
				v.SetInt64(int64(r.Intn(3)))
			}
			if r.Intn(2) == 0 {
				v.Neg(v)
			}
			row = append(row, policy.Numeric{Coefficient: v, Scale: w[1]})
		}
		row = append(row, policy.NewNumeric(int64(r.Intn(2000)-1000), int32(r.Intn(4))), int64(r.Intn(1<<16)-1<<15), []int64{int64(r.Intn(10)), -1 << 31, 1<<31 - 1}[r.Intn(3)],
			[]int64{int64(r.Intn(10)), -1 << 63, 1<<63 - 1}[r.Intn(3)], fmt.Sprint("t", r.Intn(3)))
		if r.Intn(3) == 0 {
			row[r.Intn(len(row))] = nil
		}
		rows.Data = append(rows.Data, row)
	}
	return t, rows, "CREATE TABLE offers (" + strings.Join(ddl, ", ") + ")"
}

// amount draws an expression over numerics of offers; some columns overflow no type when multiplied, others have no decimal then.
func amount(r *rand.Rand, depth int) string {
	if depth == 0 || r.Intn(4) == 0 {
		return []string{"d0", "d1", "d2", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "free", "0.0001", "1.50", "-2", "7", "100000.000", "numeric '3.140'", "whole * 1.0", "small + 0.5"}[r.Intn(20)]
	}
	a, b := amount(r, depth-1), amount(r, depth-1)
	return []string{"(" + a + " + " + b + ")", "(" + a + " - " + b + ")", "(" + a + " * " + b + ")", "(" + a + " * small)", "(whole - " + a + ")", "(large + " + a + ")", "(-" + a + ")", "coalesce(" + a + ", 0)",
		"CASE WHEN " + a + " > " + b + " THEN " + a + " ELSE " + b + " END", "abs(" + a + ")", "round(" + a + ", 1)", a + "::numeric(20,3)", "(" + a + " / 3)", "greatest(" + a + ", " + b + ")"}[r.Intn(14)]
}

// decimalsOf draws statements.
func decimalsOf(r *rand.Rand) string {
	a := func() string { return amount(r, 1+r.Intn(2)) }
	op := []string{"=", "<>", "<", "<=", ">", ">="}[r.Intn(6)]
	column := fmt.Sprint("d", r.Intn(10))
	forms := []string{
		"SELECT " + a() + " AS x, " + a() + " AS y FROM offers ORDER BY 1, 2, free, d2",
		"SELECT count(*), count(" + column + ") FROM offers WHERE " + a() + " " + op + " " + a(),
		"SELECT count(*) FROM offers WHERE " + column + " IN (0, 0.00, 1, " + a() + ")",
		"SELECT count(*) FROM offers WHERE " + a() + " IS DISTINCT FROM " + a() + " AND " + column + " BETWEEN -5 AND 5000",
		"SELECT sum(" + a() + "), avg(" + column + "), min(" + a() + "), max(" + a() + ") FROM offers",
		`SELECT "Decimal 1", sum(` + a() + "), sum(" + column + ` * 2) FROM offers GROUP BY "Decimal 1" HAVING sum(` + a() + ") " + op + " (SELECT sum(" + a() + `) * 0.0001 FROM offers) ORDER BY 1`,
		"SELECT " + column + ", " + column + " * 2, count(*), sum(" + a() + ") FROM offers GROUP BY " + column + " ORDER BY " + column,
		`SELECT "Decimal 1", d1, sum(d2) FROM offers GROUP BY ROLLUP ("Decimal 1", d1) ORDER BY 1, 2, 3`,
		"SELECT d0, d1, grouping(d0), sum(d2) FROM offers GROUP BY GROUPING SETS ((d0, d1), (d0), ()) ORDER BY 1, 2, 3, 4",
		"SELECT x.v + 1, x.v FROM (SELECT " + a() + " AS v FROM offers ORDER BY 1, d2, d4, d5, free LIMIT 7) AS x ORDER BY 1, x.v::text COLLATE \"C\"",
		`WITH w AS (SELECT "Decimal 1" AS t, sum(` + column + ") AS s, " + `max(d2) AS m FROM offers GROUP BY 1) SELECT t, s, m - s, s * m FROM w WHERE s > (SELECT min(s) FROM w) ORDER BY 1`,
		"SELECT string_agg(v::text, ' ' ORDER BY v::text COLLATE \"C\") FROM (SELECT " + column + " AS v FROM offers UNION ALL SELECT d2 FROM offers) AS u",
		"SELECT DISTINCT " + column + " FROM offers ORDER BY 1 DESC",
		"SELECT DISTINCT ON (" + column + ") " + column + ", d2 + 1 FROM offers ORDER BY " + column + ", d2, free",
		"SELECT sum(d2) OVER (ORDER BY d0, d1, d2, free), " + column + " - lag(" + column + ") OVER (ORDER BY d0, d1, d2, free), max(d2) OVER (PARTITION BY d0) FROM offers ORDER BY d0, d1, d2, free",
		"SELECT count(*) FROM offers WHERE " + column + " IN (SELECT " + fmt.Sprint("d", r.Intn(10)) + " FROM offers)",
		"SELECT a." + column + ", b.d2 FROM offers a JOIN offers b ON a." + column + " = b.d2 ORDER BY 1, 2",
		"SELECT count(*), sum(" + column + ") FROM offers a JOIN offers b USING (" + column + ")",
		"SELECT array_agg(" + column + " ORDER BY d2, free, d1), string_agg(" + column + "::text, ',' ORDER BY d2, free, d1) FROM offers",
		"SELECT (SELECT o.d2 * 2 + p.d0 FROM offers p ORDER BY p.d2, p.d0, p.free LIMIT 1) AS v, (SELECT (SELECT max(d2) + 1)) FROM offers o ORDER BY 1",
		"SELECT sum(CASE WHEN d0 > 0 THEN d2 ELSE 0 END), sum(d2) FILTER (WHERE d1 > 5), stddev(d0), count(DISTINCT d2) FROM offers",
		"SELECT " + column + "::text, " + column + "::double precision, -" + column + ", to_json(" + column + ")::text FROM offers ORDER BY 1",
	}
	return forms[r.Intn(len(forms))]
}

// TestDecimalsAreNumerics asks drawn arithmetic over a public table in the embedded sandbox and of PostgreSQL: each answer is PostgreSQL's to the digit, or
// refused as before.
func TestDecimalsAreNumerics(t *testing.T) {
	const seed = 1158
	r := rand.New(rand.NewSource(seed))
	e, err := embedded.Start(context.Background(), sandbox.Options{Children: 1, Log: slog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p := sandboxtest.Clinic("n int")
	table, rows, ddl := offers(r)
	table.Dataset = p.Datasets[0]
	p.Datasets[0].Tables = append(p.Datasets[0].Tables, table)
	if err := e.Catalog(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	if err := e.Load(context.Background(), p.Datasets[0].ID, sandbox.Table{Schema: "public", Name: "offers", Rows: privacy.Published(rows)}); err != nil {
		t.Fatal(err)
	}
	server := sandboxtest.NewServer(t)
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", server.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), ddl); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows.Data {
		var values []string
		for i, v := range row {
			text := "NULL"
			if v != nil {
				text = "'" + sandboxtest.Shown(rows.Columns[i].Type, v) + "'"
			}
			values = append(values, text)
		}
		if _, err := conn.Exec(context.Background(), "INSERT INTO offers VALUES ("+strings.Join(values, ", ")+")"); err != nil {
			t.Fatal(err)
		}
	}
	s := sandboxtest.Session
	s.Database = p.Datasets[0].ID
	answered, refused, decimals, differ := 0, 0, 0, 0
	for range 1200 {
		text := decimalsOf(r)
		plan := sandboxtest.Parse(t, text)
		plan.Outer.Relations = []plans.Relation{{Schema: "public", Name: "offers", Public: table}}
		q, refusal := outer.Render(plan, e.Dialect())
		if refusal != nil {
			refused++
			continue
		}
		want := sandboxtest.OnPostgreSQL(conn, text)
		got := ""
		if out, err := e.Query(context.Background(), s, q, nil); err == nil {
			got = sandboxtest.Written(out.Value())
		} else if got = "error"; strings.HasPrefix(want, "error") {
			continue
		} else {
			got += " " + err.Error()
		}
		answered++
		if strings.Contains(q.SQL, "DECIMAL(") {
			decimals++
		}
		if got != want {
			if differ++; differ < 6 {
				t.Errorf("%s\n%s\nis  %.900s\nnot %.900s", text, q.SQL, got, want)
			}
		}
	}
	t.Logf("seed %d: %d answered, %d of them with decimals, %d refused, %d differ", seed, answered, decimals, refused, differ)
	if answered < 700 || decimals < 300 {
		t.Error("too few of them show anything")
	}
}

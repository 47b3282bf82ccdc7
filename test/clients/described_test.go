package clients

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/test/kit"
)

// describedFile has the forms whose types are described otherwise than by PostgreSQL, and why that is meant.
const describedFile = "testdata/beside/described.txt"

// TestDescribedBesidePostgres prepares each form of SQL that has a place for a parameter, over columns of each type:
// the types of parameters and columns that a client is sent before it sends a value are those that PostgreSQL tells, or
// the difference is listed with its reason. Forms are over a public table, over a private one's groups, and over its
// rows.
func TestDescribedBesidePostgres(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("starts a server")
	}
	forms := describedForms(t)
	found := map[besideDifference][]string{}
	s := openStore(t)
	plain, proxied := seen{}, seen{}
	proxy := s.serve(t).URL("analyst", "store")
	want, got := prepareForms(t, s.plainURL, forms), prepareForms(t, proxy, forms)
	for i, form := range forms {
		if want[i] != got[i] && !(strings.HasPrefix(want[i], "ERROR") && strings.HasPrefix(got[i], "ERROR")) { // of which no types are sent
			plain[form.name] += form.column + want[i] + "; "
			proxied[form.name] += form.column + got[i] + "; "
		}
	}
	asked := askForms(t, proxy)
	for sql, rows := range askForms(t, s.plainURL) {
		if rows != asked[sql] {
			t.Errorf("%s, asked with values\n  PostgreSQL: %s\n  dpproxy: %s", sql, rows, asked[sql])
		}
	}
	for name := range plain {
		d := besideDifference{"described " + name, strings.TrimSuffix(plain[name], "; "), strings.TrimSuffix(proxied[name], "; ")}
		found[d] = append(found[d], "described")
	}
	holdDifferences(t, describedFile, "# The forms whose types are told otherwise than by PostgreSQL, and why that is meant: TestDescribedBesidePostgres. Written by -update-beside, which keeps the reasons.\n", found, map[string]bool{"described": true})
}

// form is a statement with parameters: the name of its kind, and the column that it is over, with a colon.
type form struct{ name, column, sql string }

// prepareForms is what a server tells of each form: the types of its parameters and those of its columns.
func prepareForms(t *testing.T, url string, forms []form) (out []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, f := range forms {
		d, err := conn.PgConn().Prepare(t.Context(), "", f.sql, nil)
		if err != nil {
			kind, _, _ := strings.Cut(strings.TrimPrefix(errorText(err), "ERROR "), " ")
			out = append(out, "ERROR "+kind)
			continue
		}
		var columns []uint32
		for _, c := range d.Fields {
			columns = append(columns, c.DataTypeOID)
		}
		out = append(out, fmt.Sprint(d.ParamOIDs, " → ", columns))
	}
	return out
}

// askForms asks forms with values, which are encoded by the types that were sent.
func askForms(t *testing.T, url string) seen {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	out := seen{}
	for _, f := range []struct {
		sql    string
		values []any
	}{
		{"SELECT nullif(small, $1), nullif(short, $2), nullif($3, whole) FROM samples WHERE id = 1", []any{7, "long", 70000}},
		{"SELECT coalesce(short, $1), greatest(short, $2), least($3, big), coalesce($4, single) FROM samples WHERE id IN (1, 3) ORDER BY id", []any{"none", "sz", 5, 2.5}},
		{"SELECT lag(id, $1, $2) OVER (ORDER BY id), lead(short, $1, $3) OVER (ORDER BY id), ntile($4) OVER (ORDER BY id), nth_value(id, $5) OVER (ORDER BY id) FROM samples ORDER BY id", []any{1, 17, "last", 2, 2}},
		{"SELECT $1 UNION SELECT small FROM samples WHERE id = 1 ORDER BY 1", []any{3}},
		{"SELECT txt, $1 FROM samples WHERE id = 1 UNION ALL SELECT $2, big FROM samples WHERE id = 1 ORDER BY 2", []any{int64(1) << 40, "a"}},
		{"SELECT day FROM samples WHERE id = 1 UNION ALL SELECT $1 ORDER BY 1", []any{time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)}},
		{"SELECT zoned FROM samples WHERE id = 1 UNION SELECT $1 ORDER BY 1", []any{time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)}},
		{"SELECT ARRAY[id, small] || $1, array_append(ARRAY[short], $2), ARRAY[id] = $3, array_position(ARRAY[id, small], $4) FROM samples WHERE id = 1", []any{[]int32{8, 9}, "z", []int32{1}, 7}},
		{"SELECT id FROM samples WHERE short = ANY($1) OR small IN ($2, $3) ORDER BY id", []any{[]string{"short", "x"}, 32767, -5}},
		{"SELECT id, $1 IN (1, 2.5) FROM samples WHERE double > ALL(ARRAY[$2, -1e300]) ORDER BY id", []any{2.5, 2.0}},
		{"SELECT percentile_cont($1) WITHIN GROUP (ORDER BY double), percentile_disc($2) WITHIN GROUP (ORDER BY id), string_agg(txt, $3 ORDER BY id) FROM samples WHERE id IN (1, 4)", []any{0.5, 0.5, "-"}},
		{"SELECT * FROM (VALUES ($1, 1), ($2, $3)) v(a, b) ORDER BY b", []any{"x", "y", 2}},
		{"SELECT CASE WHEN flag THEN day ELSE $1 END, CASE whole WHEN $2 THEN $3 ELSE 'other' END FROM samples WHERE id IN (1, 2) ORDER BY id", []any{time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC), 70000, "this"}},
		{"SELECT tier, nullif(n, $1), lag(n, $2, $3) OVER (ORDER BY tier) FROM (SELECT tier, count(*) AS n FROM customers GROUP BY tier) q ORDER BY 1", []any{90, 1, 0}},
		{"SELECT tier, count(*) FROM customers GROUP BY tier UNION ALL SELECT $1, $2 ORDER BY 1", []any{"all", 300}},
		{"SELECT nullif(level, $1), count(*) FROM customers GROUP BY 1 ORDER BY 1", []any{2}},
		{"SELECT count(*) FROM customers WHERE level IN ($1, $2) OR email = ANY($3) OR email IN ($4, $5)", []any{1, 2, []string{"customer4@example.org"}, "customer3@example.com", "x"}},
		{"SELECT count(*) FROM customers WHERE level IN (SELECT p.product_id FROM products p JOIN products q ON q.category = p.category WHERE p.price > $1 AND q.product_id * $2 < 9 LIMIT $3)", []any{"1", 2, 100}},
		{"SELECT count(*) FROM customers WHERE score < $1", []any{math.NaN()}},
		{"SELECT count(*) FROM customers WHERE score >= $1 OR rating > $2", []any{math.NaN(), float32(math.NaN())}},
		{"SELECT count(*) FROM customers WHERE score = $1", []any{math.NaN()}},
		{"SELECT count(*) FROM customers WHERE score <> $1 AND rating <= $2", []any{math.NaN(), float32(math.NaN())}},
		{"SELECT count(*) FROM customers WHERE score BETWEEN $1 AND $2", []any{2.5, math.NaN()}},
		{"SELECT count(*) FROM customers WHERE score IN ($1, $2)", []any{2.5, math.NaN()}},
		{"SELECT count(*) FROM customers WHERE score = ANY($1)", []any{[]float64{2.5, math.NaN()}}},
		{"SELECT count(*) FROM customers WHERE score <> ALL($1)", []any{[]float64{2.5, math.NaN()}}},
		{"SELECT count(*) FROM customers WHERE score IS DISTINCT FROM $1", []any{math.NaN()}},
		{"SELECT count(*) FROM customers WHERE score IS NOT DISTINCT FROM $1", []any{math.NaN()}},
		{"SELECT count(*) FROM customers WHERE score IS NOT DISTINCT FROM $1 OR rating IS DISTINCT FROM $2", []any{2.5, float32(2.5)}},
		{"SELECT count(*) FROM customers WHERE score + $1 > 5", []any{math.NaN()}},
		{"SELECT count(*) FROM customers WHERE level < $1::float8", []any{math.NaN()}},
		{"SELECT count(*) FROM customers WHERE score < $1", []any{math.Inf(1)}},
		{"SELECT count(*) FROM customers WHERE score > $1", []any{math.Inf(-1)}},
		{"SELECT count(*) FROM customers WHERE score < 'NaN' AND rating <> 'NaN'", nil},
		{"SELECT count(*) FROM customers WHERE born IS DISTINCT FROM $1 AND nullif(tier, $2) IS NULL", []any{time.Date(1950, 3, 2, 0, 0, 0, 0, time.UTC), "gold"}},
	} {
		out[f.sql] = asked(t.Context(), conn, f.sql, f.values...)
	}
	return out
}

// describedForms are the statements of testdata/beside/forms.sql. Lines that begin with -- over name a table and
// columns of it; of the lines below them each means a statement over each of these tables, and of each of its
// columns where it has the word COLUMN.
func describedForms(t *testing.T) (out []form) {
	t.Helper()
	text, err := os.ReadFile("testdata/beside/forms.sql")
	if err != nil {
		t.Fatal(err)
	}
	var overs []string
	began := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if over, ok := strings.CutPrefix(line, "-- over "); ok {
			if began {
				overs, began = nil, false
			}
			overs = append(overs, over)
			continue
		}
		if line == "" || strings.HasPrefix(line, "--") {
			continue
		}
		began = true
		for _, over := range overs {
			table, columns, _ := strings.Cut(over, ": ")
			name := strings.ReplaceAll(line, "TABLE", table)
			if !strings.Contains(name, "COLUMN") {
				out = append(out, form{name, "", name})
				continue
			}
			for c := range strings.FieldsSeq(columns) {
				out = append(out, form{name, c + ": ", strings.ReplaceAll(name, "COLUMN", c)})
			}
		}
	}
	return out
}

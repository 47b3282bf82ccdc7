package answers

import (
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestBoundsOfColumns holds dp.low(x) and dp.high(x) against x_low and x_high of the same held answer: of counts they
// are the same, of what is computed they enclose the value. Beside a column they cost nothing.
func TestBoundsOfColumns(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "90", Cap: "90"}, 0))
	w := p.Connect("alice", "lab")
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	shown := w.Ask(`SET dp.error_columns = on; SELECT hiv, count(*) FROM people GROUP BY hiv ORDER BY hiv`)
	w.Ask(`RESET dp.error_columns`)
	spent := w.Spent()
	asked := w.Ask(`SELECT hiv, dp.low(count(*)), count(*) AS n, dp.high(count(*)) AS most FROM people GROUP BY hiv ORDER BY hiv`)
	for i, row := range asked.Rows {
		if row[1] != shown.Rows[i][2] || row[2] != shown.Rows[i][1] || row[3] != shown.Rows[i][3] || number(row[1]) >= number(row[3]) {
			t.Errorf("%v, with error columns %v", row, shown.Rows[i])
		}
	}
	if now := w.Spent(); now != spent {
		t.Errorf("bounds of a held answer cost: %s, then %s", spent, now)
	}
	for _, sql := range []string{
		`SELECT avg(income), dp.low(avg(income)), dp.high(avg(income)) FROM people`,
		`SELECT n, dp.low(n), dp.high(n) FROM (SELECT count(*) AS n FROM people WHERE age > 30) s`,
		`WITH c AS (SELECT hiv, count(*) AS n FROM people GROUP BY hiv) SELECT sum(n), dp.low(sum(n)), dp.high(sum(n)) FROM c`,
		`SELECT round(100.0 * count(*) FILTER (WHERE hiv) / count(*), 3), dp.low(round(100.0 * count(*) FILTER (WHERE hiv) / count(*), 3)),
			dp.high(round(100.0 * count(*) FILTER (WHERE hiv) / count(*), 3)) FROM people`,
	} {
		row := w.Ask(sql).Rows[0]
		if !(number(row[1]) < number(row[0]) && number(row[0]) < number(row[2])) {
			t.Errorf("%s: %v", sql, row)
		}
	}
	chosen := w.Ask(`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY income), dp.low(percentile_disc(0.5) WITHIN GROUP (ORDER BY income)) FROM people WHERE note <> 'n1' OR age > 30`)
	if chosen.Rows[0][1] != "NULL" && chosen.Rows[0][1] != "" || !strings.Contains(strings.Join(chosen.Notes, " "), "bounds of what is chosen are NULL") {
		t.Errorf("a chosen median: %v %v", chosen.Rows, chosen.Notes)
	}
	if row := w.Ask(`SELECT dp.low(3), dp.high(hiv::text) FROM people GROUP BY hiv`).Rows[0]; row[0] != "3" {
		t.Errorf("bounds of what has no noise: %v", row)
	}
	with := w.Ask(`SET dp.error_columns = on; SELECT count(*) AS n, dp.low(count(*)) FROM people`)
	w.Ask(`RESET dp.error_columns`)
	if row := with.Rows[0]; len(row) != 4 || row[1] != row[3] {
		t.Errorf("with error columns too: %v", with.Rows)
	}
	spent = w.Spent()
	for _, sql := range []string{
		`SELECT count(*) FROM people ORDER BY dp.low(count(*))`, `SELECT dp.low(count(*)) FROM people ORDER BY 1`, `SELECT dp.low(count(*)) AS n FROM people ORDER BY n`,
		`SELECT DISTINCT dp.low(count(*)) FROM people`, `SELECT dp.low(count(*)) + 1 FROM people`, `SELECT * FROM (SELECT dp.low(count(*)) FROM people) s`,
		`SELECT dp.low(count(*)) FROM people UNION ALL SELECT 1`, `SELECT hiv FROM people GROUP BY hiv HAVING dp.low(count(*)) > 100`,
		`SELECT s.*, dp.low(n) FROM (SELECT count(*) AS n FROM people) s`, `SELECT dp.low(n) FROM (SELECT count(*) AS n FROM people) s GROUP BY 1`,
	} {
		if got, err := w.TryAsk(sql); err != nil || got.Err == nil || got.Err.Code != "42501" || !strings.Contains(got.Err.Message, "stands only as a column of its own") {
			t.Errorf("%s: %v %v", sql, got.Rows, got.Err)
		}
	}
	if now := w.Spent(); now != spent {
		t.Errorf("refusals cost: %s, then %s", spent, now)
	}
	conn, err := pgx.Connect(t.Context(), p.URL("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} { // binary, and text
		var low, n, high int64
		if err := conn.QueryRow(t.Context(), `SELECT dp.low(count(*)), count(*), dp.high(count(*)) FROM people WHERE age >= $1`, mode, 30).Scan(&low, &n, &high); err != nil || !(low < n && n < high) {
			t.Errorf("%v: %d %d %d %v", mode, low, n, high, err)
		}
	}
	prepared, err := conn.Prepare(t.Context(), "", `SELECT hiv, dp.low(avg(income)), count(*) AS n, dp.high(count(*)) AS most FROM people GROUP BY hiv`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range prepared.Fields {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "hiv low n most" || prepared.Fields[1].DataTypeOID != 701 || prepared.Fields[3].DataTypeOID != 20 {
		t.Errorf("described as %s: %v", got, prepared.Fields)
	}
}

package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// incomeColumn is the lab's column that the bounds replace.
const incomeColumn = `{name: income, type: double precision, domain: {min: 0, max: 100000, step: 1000}}`

// extremeBounds are domains whose sums could overflow, or whose steps vanish beside their ends.
var extremeBounds = []string{
	`{name: income, type: bigint, domain: {min: 0, max: 2147483647, step: 1048576}}`, `{name: income, type: bigint, domain: {min: -2147483648, max: 2147483647, step: 1048576}}`,
	`{name: income, type: bigint, domain: {min: 0, max: 4611686018427387904, step: 4503599627370496}}`,
	`{name: income, type: bigint, domain: {min: -9223372036854775808, max: 9223372036854775807, step: 18014398509481984}}`,
	`{name: income, type: bigint, domain: {min: 9223372036854775800, max: 9223372036854775807, step: 1}}`,
	`{name: income, type: double precision, domain: {min: 0, max: 1e300, step: 1e297}}`, `{name: income, type: double precision, domain: {min: -1e300, max: 1e300, step: 1e297}}`,
	`{name: income, type: double precision, domain: {min: 0, max: 1e-300, step: 1e-303}}`, `{name: income, type: double precision, domain: {min: 0, max: 1.7976931348623157e308, step: 1e305}}`,
	`{name: income, type: numeric, domain: {min: 0, max: 1e30, step: 1e27}}`, `{name: income, type: numeric, domain: {min: 0, max: 1e-30, step: 1e-33}}`,
	`{name: income, type: double precision, domain: {min: 0, max: 0, step: 1}}`,
}

// extremeQuestions add the column up in every way.
var extremeQuestions = []string{`SELECT sum(income) FROM people`, `SELECT avg(income), count(*) FROM people`, `SELECT stddev(income) FROM people`, `SELECT sum(income * income) FROM people`,
	`SELECT city, sum(income) FROM people GROUP BY city`, `SELECT corr(income, age) FROM people`, `SELECT sum(income) * 1000000 FROM people`, `SELECT median(income) FROM people`,
	`SELECT sum(n) FROM (SELECT uid, sum(income) AS n FROM people GROUP BY uid) t`}

// TestT16ExtremeBounds: bounds at the ends of the types are refused when the policy is read, or sums over rows at those
// ends are answered or refused: no query fails on the database, and what is answered is a number within what the rows
// can add up to.
func TestT16ExtremeBounds(t *testing.T) {
	kit.Beside(t)
	atLoad, answered, refused, faults := 0, 0, 0, 0
	for _, engine := range []string{"duckdb", "postgres"} {
		for _, column := range extremeBounds {
			kind, ends := "bigint", []string{"9223372036854775807", "-9223372036854775808", "0"}
			if !strings.Contains(column, "bigint") {
				kind, ends = "double precision", []string{"1.7976931348623157e308", "-1.7976931348623157e308", "5e-324"}
			}
			if strings.Contains(column, "numeric") {
				kind, ends = "numeric(38, 9)", []string{"99999999999999999999999999999", "-99999999999999999999999999999", "0.000000001"}
			}
			var change []string
			change = append(change, fmt.Sprintf("ALTER TABLE people ALTER COLUMN income TYPE %s USING 0", kind))
			for i, end := range ends {
				change = append(change, fmt.Sprintf("UPDATE people SET income = %s WHERE uid %% 3 = %d", end, i))
			}
			l := kit.Lab{Engine: engine, People: 90, With: change, Change: append([]string{incomeColumn, column}, kit.Undeclared...)}
			s, err := l.Try(t, 0)
			if err != nil {
				atLoad++
				if !strings.Contains(err.Error(), "income") {
					t.Errorf("%s: %s: %v", engine, column, err)
				}
				continue
			}
			w := s.Connect("alice", "lab")
			for _, sql := range extremeQuestions {
				a := w.Ask(sql)
				switch {
				case a.Err == nil:
					answered++
					for _, row := range a.Rows {
						if text := strings.ToLower(row[len(row)-1]); strings.Contains(text, "nan") || strings.Contains(text, "inf") {
							t.Errorf("%s: %s: %s answers %s", engine, column, sql, text)
						}
					}
				case strings.HasPrefix(a.Err.Code, "22") || a.Err.Code == "DP002" || a.Err.Code == "42883" || a.Err.Code == "0A000":
					refused++
				default:
					t.Errorf("%s: %s: %s: %s %s", engine, column, sql, a.Err.Code, a.Err.Message)
				}
			}
			if n := strings.Count(s.LogText(), "a paid query failed"); n > 0 {
				faults += n
				t.Errorf("%s: %s: %d queries failed on the database:\n%s", engine, column, n, s.LogText())
			}
			s.Stop(9)
		}
	}
	threats.Reached(t, "T16", "%d bounds on 2 engines: %d refused at load; %d questions answered, %d refused, %d failed on the database", len(extremeBounds), atLoad, answered, refused, faults)
}

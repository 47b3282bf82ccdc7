package rewrite_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// storedColumn is a column of the tables below: its type in PostgreSQL and in the policy, its domain, and values that
// are worth a look.
type storedColumn struct{ kind, declared, domain, values string }

var storedColumns = []storedColumn{
	{"smallint", "integer", "min: -3, max: 40, step: 1", "-32768 32767 -4 -3 -2 0 39 40 41"},
	{"integer", "integer", "min: 0, max: 59, step: 5", "-2147483648 2147483647 -1 0 1 58 59 60"},
	{"text", "text", "values: [a, bb, '', 'ü']", "a bb ü A aa ccc '' üü ' ' b --"},
	{"bigint", "bigint", "min: -9223372036854775808, max: 9223372036854775807, step: 100000000000000000", "-9223372036854775808 9223372036854775807 0 -1"},
	{"boolean", "boolean", "", "true false"},
	{"date", "date", "min: 1999-12-31, max: 2001-02-01, step: 7 days", "infinity -infinity 1999-12-30 1999-12-31 2000-01-01 2001-02-01 2001-02-02 4713-01-01BC"},
	{"numeric(10,2)", "\"numeric(10,2)\"", "min: -10, max: 1000, step: 10", "NaN -10.00 -10.01 -9.99 0 -0.01 0.01 1000.00 1000.01 99999999.99 -99999999.99"},
	{"timestamp", "timestamp", "min: 1999-12-31, max: 2000-01-02, step: 1 hour", "infinity -infinity '1999-12-30 23:59:59.999999' 1999-12-31 '2000-01-01 00:00:00.000001' 2000-01-02 '2000-01-02 00:00:00.000001' '294276-12-31 23:59:59.999999' '4713-01-01 00:00:00 BC'"},
	{"timestamptz", "timestamptz", "min: 2000-01-01, max: 2000-01-03, step: 1 hour", "infinity -infinity '1999-12-31 23:59:59.999999+00' '2000-01-01 00:00:00+00' '2000-01-01 01:00:00+02' '2000-01-03 00:00:00+00' '2000-01-03 00:00:00.000001+00' '294276-12-31 23:59:59.999999+00'"},
	{"numeric", "numeric", "min: 0, max: 100, step: 1", "NaN Infinity -Infinity 0 -1e-20 1e-20 100 100.00000000001 99.99999999999999 1e131000 -1e131000 1e-16000 50.5"},
	{"bigint", "numeric", "min: 0, max: 9, step: 1", "-1 0 9 10 9223372036854775807 -9223372036854775808"},
	{"numeric", "numeric", "min: -9223372036, max: 9223372036, step: 1000000", "9223372036.854775807 9223372036.854775808 -9223372036.854775808 -9223372036.854775809 9223372036 1e10 -1e10"},
	{"varchar(3)", "varchar(3)", "values: [abc, d]", "abc d ab 'd ' D"},
	{"character(3)", "char(3)", "values: [x, yy]", "x yy 'x ' xyz"},
	{"mood", "enum", "values: [sad, ok]", "sad ok happy"},
	{"double precision", "double precision", "min: 0, max: 1, step: 0.1", "NaN Infinity -Infinity 0.5 -0.1 1 1.5"},
	{"uuid", "uuid", "values: [00000000-0000-0000-0000-000000000001]", "00000000-0000-0000-0000-000000000001 00000000-0000-0000-0000-000000000002"},
	{"integer", "integer", "min: 0, max: 2000000000, step: 1000", "0 1 2000000000 2000000001 -1"},
	{"integer", "integer", "min: 0, max: 2, step: 1", "0 1 2 3"},
}

// quotedValues splits a list of values, of which those with blanks are in quotes.
func quotedValues(list string) (values []string) {
	for i, part := range strings.Split(list, "'") {
		if i%2 == 1 {
			values = append(values, part)
			continue
		}
		values = append(values, strings.Fields(part)...)
	}
	return values
}

// stuff is a table of a policy, of columns as they are declared there; unit is the type of units, or row.
func stuff(t *testing.T, unit, declared string) *policy.Table {
	t.Helper()
	unit = "{name: person, key: stuff.who, type: " + unit + "}"
	bound := "        max_rows_per_unit: 4\n"
	if strings.Contains(unit, "row") {
		unit, bound = "row", ""
	}
	text := "version: 1\nserver: {listen: \"127.0.0.1:0\"}\nbackend: {url: \"postgres://h/d\"}\nledger: {url: \"sqlite:l\"}\nusers: []\ndatasets:\n  - id: d\n    unit: " + unit +
		"\n    accountant: pure\n    cap: {epsilon: 1}\n    budgets: {\"*\": {epsilon: 1}}\n    tables:\n      - name: stuff\n" + bound + "        columns:\n" + declared
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p.Datasets[0].Tables[0]
}

// TestStoredValuesAreTheirCells: a snapshot of values that are read as they are stored is the one that PostgreSQL's own
// SQL would have made, whatever the rules of the columns, their types and their order, and the ranks of rows are the
// same.
func TestStoredValuesAreTheirCells(t *testing.T) {
	t.Parallel()
	const seed = 143
	r := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	words := *dialect.PostgreSQL.Words
	words.Binary = false
	packed := 0
	for run := range 12 {
		unit := []string{"bigint", "text"}[run%2]
		columns := slices.Clone(storedColumns)
		r.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
		var fields, declared, rows []string
		for i, c := range columns {
			fields = append(fields, fmt.Sprintf("c%d %s", i, c.kind))
			text := fmt.Sprintf("{name: c%d, type: %s", i, c.declared)
			outside := []string{"clamp", "other", "exclude"}[max(r.IntN(20)-17, r.IntN(2))]
			if strings.Contains(c.domain, "values") && outside == "clamp" {
				outside = "other"
			}
			if c.domain != "" {
				text += ", domain: {" + c.domain + "}, outside: " + outside
			}
			if nulls := r.IntN(20) == 0; nulls && outside != "other" {
				text += ", nulls: exclude"
			}
			declared = append(declared, "          - "+text+"}\n")
		}
		for range 300 {
			row := []string{fmt.Sprintf("'%d'", r.IntN(9)), fmt.Sprintf("'%d'", r.IntN(3))}
			for _, c := range columns {
				values := quotedValues(c.values)
				if v := values[r.IntN(len(values))]; r.IntN(8) > 0 {
					row = append(row, "'"+v+"'")
				} else {
					row = append(row, "NULL")
				}
			}
			rows = append(rows, "("+strings.Join(row, ", ")+")")
		}
		table := stuff(t, unit, strings.Join(declared, ""))
		conn := postgresConn(t, []string{"CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')", "CREATE TABLE stuff (who " + unit + ", k bigint, " + strings.Join(fields, ", ") + ")",
			"INSERT INTO stuff VALUES " + strings.Join(rows, ", ")})
		var got [2][]string
		for i, from := range []dialect.Dialect{dialect.PostgreSQL, {Words: &words}} {
			e, err := rewrite.Extract(table, from)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				for _, f := range e.Fields {
					packed += f.Items() - 1
				}
			}
			db := snapshotOf(t, from, postgresRows(conn), table)
			for _, row := range duckRows(db)(t, `SELECT * FROM private.main."`+rewrite.Copied(table)+`"`, nil) {
				if unit == "text" {
					row[0] = row[0].(int64) & (1<<31 - 1) // its hash: numbers are by who came first
				}
				got[i] = append(got[i], fmt.Sprint(row...))
			}
			slices.Sort(got[i])
		}
		if len(got[0]) == 0 && run < 2 {
			t.Errorf("run %d: no row is left", run)
		}
		for i := range max(len(got[0]), len(got[1])) {
			if i >= len(got[0]) || i >= len(got[1]) || got[0][i] != got[1][i] {
				t.Fatalf("run %d: %d and %d rows; of %s\n%.2000s\nby PostgreSQL's SQL\n%.2000s", run, len(got[0]), len(got[1]), strings.Join(declared, ""), strings.Join(got[0][min(i, len(got[0])):], "\n"), strings.Join(got[1][min(i, len(got[1])):], "\n"))
			}
		}
	}
	if packed < 40 {
		t.Errorf("%d columns are packed with others", packed)
	}
}

// TestDecimalsAreFloored: of a numeric as PostgreSQL sends it are kept the digits that its own floor keeps, and it lies
// beyond an end of the domain where PostgreSQL says so.
func TestDecimalsAreFloored(t *testing.T) {
	t.Parallel()
	const seed = 1812
	r := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	numbers := []string{"0", "-0.00", "1", "-1", "0.01", "-0.01", "0.009", "-0.009", "9999", "10000", "-10000.0001", "99990000", "0.00001", "-0.00001", "92233720368547758.07", "-92233720368547758.07", "-92233720368547758.08",
		"NaN", "Infinity", "-Infinity", "1e19", "-1e19", "9223372036854775807", "-9223372036854775808", "9223372036854775807.5", "-9223372036854775808.5", "9223372036854775808", "-9223372036854775809", "92233720368547758.08", "-92233720368547758.081"}
	for range 2000 {
		text := strconv.Itoa(r.IntN(2)*2 - 1)[:1]
		if text == "1" {
			text = ""
		}
		for range 1 + r.IntN(16) {
			text += strconv.Itoa(r.IntN(10) * r.IntN(2))
		}
		text += "."
		for range 1 + r.IntN(12) {
			text += strconv.Itoa(r.IntN(10) * r.IntN(2))
		}
		numbers = append(numbers, text)
	}
	conn := postgresConn(t, nil)
	for _, c := range []struct {
		kind        string
		scale       int
		least, most string
	}{{"numeric(19,0)", 0, "-9223372036854775808", "9223372036854775807"}, {"numeric(18,2)", 2, "-92233720368547758.08", "92233720368547758.07"}, {"numeric(18,1)", 1, "-12345.5", "7000000000000.1"}} {
		for _, outside := range []string{"clamp", "other"} {
			domain := fmt.Sprintf("{min: %s, max: %s, step: 100000000000}", c.least, c.most)
			table := stuff(t, "row", fmt.Sprintf("          - {name: c0, type: %q, domain: %s, outside: %s}\n", c.kind, domain, outside))
			e, err := rewrite.Extract(table, dialect.PostgreSQL)
			if err != nil {
				t.Fatal(err)
			}
			f, long := e.Fields[0], rewrite.Field{Kind: rewrite.Long, Scale: int32(c.scale)}
			beyond := map[string]string{"clamp": "CASE WHEN x < %[2]s THEN %[2]s ELSE %[3]s END", "other": "NULL"}[outside]
			text := fmt.Sprintf("SELECT x, (floor(CASE WHEN x = 'NaN' THEN NULL WHEN x BETWEEN %[2]s AND %[3]s THEN x ELSE "+beyond+" END * 10 ^ %[1]d::numeric))::int8, "+
				"CASE WHEN x NOT IN ('NaN', 'Infinity', '-Infinity') THEN floor(x * 10 ^ %[1]d::numeric) * '1e-%[1]d'::numeric END::text FROM (SELECT x::numeric AS x, i FROM unnest($1::text[]) WITH ORDINALITY AS s(x, i)) AS s ORDER BY i",
				c.scale, c.least, c.most)
			got := conn.PgConn().ExecParams(t.Context(), text, [][]byte{[]byte("{" + strings.Join(numbers, ",") + "}")}, nil, nil, []int16{1}).Read()
			if got.Err != nil || len(got.Rows) != len(numbers) {
				t.Fatal(got.Err)
			}
			for i, row := range got.Rows {
				n, known, ok := f.Number(row[:1])
				if want := row[1]; !ok || known != (want != nil) || known && n != int64(binary.BigEndian.Uint64(want)) {
					t.Errorf("%s, %s, %s: %d %t %t, want %v", numbers[i], c.kind, outside, n, known, ok, want)
				}
				if text, ok := long.Decimal(row[0]); ok != (row[2] != nil) || text != string(row[2]) {
					t.Errorf("%s as a text of %d digits after the point: %q %t, want %q", numbers[i], c.scale, text, ok, row[2])
				}
			}
			for _, bad := range [][]byte{{}, {0, 1}, {0, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 1, 0, 0, 0}} {
				if _, _, ok := f.Number([][]byte{bad}); ok {
					t.Errorf("%v is a number", bad)
				}
				if text, ok := long.Decimal(bad); ok {
					t.Errorf("%v is the number %s", bad, text)
				}
			}
		}
	}
}

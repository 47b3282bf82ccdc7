package engines

import (
	"fmt"
	"strings"
	"time"
)

// canary is in a column that the policy does not list, and in texts of the hostile person's; nothing that anybody
// is shown may hold it.
const canary = "Zyxomma-4711"

// table is a table of the shop: its columns by our names of types, what constraints it has where there are any, and its
// rows as literals that every engine reads.
type table struct {
	name        string
	columns     [][2]string // name, type
	constraints string
	rows        []string
}

const (
	people = 300
	zoned  = "+00" // ends a moment with a zone; MariaDB reads it without, in UTC
)

func (t *table) add(format string, values ...any) {
	t.rows = append(t.rows, "("+fmt.Sprintf(format, values...)+")")
}

// shop is a shop's tables; with somebody more in it there is one more person, whose rows are as hostile as every engine
// stores them, and more than the bounds allow.
func shop(more bool) []*table {
	persons := &table{name: "people", constraints: "PRIMARY KEY (id)", columns: [][2]string{{"id", "bigint"}, {"sex", "text"}, {"age", "integer"}, {"income", "numeric(12,2)"}, {"hired", "date"}, {"city", "text"},
		{"vip", "boolean"}, {"score", "real"}, {"place", "integer"}, {"zip", "text"}, {"note", "text"}, {"secret", "text"}}}
	visits := &table{name: "visits", columns: [][2]string{{"who", "bigint"}, {"ward", "text"}, {"minutes", "integer"}, {"seen", "timestamptz"}}}
	orders := &table{name: "orders", constraints: "PRIMARY KEY (id)", columns: [][2]string{{"id", "integer"}, {"person", "bigint"}, {"placed", "timestamp"}}}
	lines := &table{name: "lines", columns: [][2]string{{"order_id", "integer"}, {"quantity", "integer"}, {"price", "numeric(8,2)"}}}
	stays := &table{name: "stays", columns: [][2]string{{"who", "bigint"}, {"ward", "text"}, {"nights", "integer"}}}
	calls := &table{name: "calls", constraints: "UNIQUE (who, nth), CHECK (nth >= 1)", columns: [][2]string{{"who", "bigint"}, {"nth", "bigint"}, {"secs", "integer"}}}
	cities := &table{name: "cities", columns: [][2]string{{"no", "integer"}, {"name", "text"}, {"area", "integer"}}, rows: []string{"(1, 'Bern', 52)", "(2, 'Basel', 23)", "(3, 'Zürich', 88)"}}
	day := time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := 1; i <= people; i++ {
		age := i * 7 % 100
		persons.add("%d, '%s', %d, %.2f, DATE '%s', '%s', %t, %d.5, %d, 'z%d', %s, '%s'", i, []string{"m", "f"}[i%2], age, float64(i*37%20)/4, day.AddDate(0, 0, i*13%3000).Format(time.DateOnly),
			[]string{"Bern", "Basel", "Zürich", "O''Hara"}[i%4], i%5 == 0, i%10, i%3+1, i%7, []string{"'alpha'", "'beta'", "''", "'x''y'", "'Ärger 50%'", "NULL"}[i%6], canary)
		for k := range age % 4 {
			minutes := fmt.Sprint((i + k) % 60)
			if (i+k)%13 == 0 {
				minutes = "NULL"
			}
			visits.add("%d, '%s', %s, '%s%s'", i, []string{"A", "B", "C"}[k], minutes, day.AddDate(9, 0, 0).Add(time.Duration((age*100+k)%8000)*time.Hour).Format(time.DateTime), zoned)
		}
		if i%5 == 0 {
			orders.add("%d, %d, '%s'", i*10, i, day.AddDate(8, 0, i*5%700).Format(time.DateTime))
			lines.add("%d, %d, %.2f", i*10, i%9, float64(i%8)/4)
			lines.add("%d, %d, %.2f", i*10, (i+3)%9, float64((i+1)%8)/4)
		}
		if i%3 == 0 {
			stays.add("%d, 'A', %d", i, i%6)
			stays.add("%d, 'B', %d", i, i%5)
		}
		for k := 1; i%4 == 0 && k <= 3; k++ {
			calls.add("%d, %d, %d", i, k, (i+k)%30)
		}
	}
	if more {
		const id = "9223372036854775807"
		persons.add("%s, '', 2147483647, 9999999999.99, DATE '9999-12-31', '%s', NULL, 3.4e38, -2147483648, 'z1', '%s', NULL", id, canary+strings.Repeat("ü", 60), canary+strings.Repeat("%_''", 40))
		for i := range 40 {
			visits.add("%s, %s, %d, %s", id, []string{"'a'", "''", "NULL", "'A'"}[i%4], []int{-2147483648, 2147483647, 59}[i%3], []string{"NULL", "'2037-12-31 23:59:59" + zoned + "'"}[i%2])
			orders.add("%d, %s, '9999-12-31 23:59:59'", 2147483000+i, id)
			lines.add("%d, -2147483648, 999999.99", 2147483000+i)
			stays.add("%s, '%s', 2147483647", id, []string{"A", "B", "C", "?"}[i%4])
			calls.add("%s, %d, -2147483648", id, i+1)
		}
	}
	return []*table{persons, visits, orders, lines, stays, calls, cities}
}

// create writes a table and its rows, with types by ours.
func (t *table) create(types map[string]string, constraints bool) []string {
	var columns []string
	for _, c := range t.columns {
		kind := c[1]
		if own, ok := types[kind]; ok {
			kind = own
		}
		columns = append(columns, c[0]+" "+kind)
	}
	if constraints && t.constraints != "" {
		columns = append(columns, t.constraints)
	}
	list := []string{fmt.Sprintf("CREATE TABLE %s (%s)", quoted(t.name, types), strings.Join(columns, ", "))}
	if len(t.rows) > 0 {
		list = append(list, fmt.Sprintf("INSERT INTO %s VALUES %s", quoted(t.name, types), strings.Join(t.rows, ", ")))
	}
	return list
}

// quoted is a table's name: lines is a word of MariaDB's.
func quoted(name string, types map[string]string) string {
	if q := types["`"]; q != "" {
		return q + name + q
	}
	return name
}

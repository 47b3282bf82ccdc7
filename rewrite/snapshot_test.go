package rewrite_test

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// rowsOf reads what an extraction asks for.
type rowsOf func(t *testing.T, text string, args []any) [][]any

// snapshotOf is a database with the tables as a snapshot holds them, read from another engine.
func snapshotOf(t *testing.T, from dialect.Dialect, read rowsOf, tables ...*policy.Table) *sql.DB {
	t.Helper()
	db := duckDB(t, []string{"CREATE SCHEMA stage"})
	var extractions []rewrite.Extraction
	var texts []rewrite.Staged
	for i, table := range tables {
		e, err := rewrite.Extract(table, from)
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, f := range e.Fields {
			fields = append(fields, f.Name+" "+map[rewrite.FieldKind]string{rewrite.Whole: "BIGINT", rewrite.Real: "DOUBLE", rewrite.Words: "VARCHAR", rewrite.Fixed: "BIGINT", rewrite.Long: "VARCHAR"}[f.Kind])
		}
		name := fmt.Sprintf("private.stage.t%d", i)
		exec(t, db, "CREATE TABLE "+name+" ("+strings.Join(fields, ", ")+")")
		stage(t, db, name, e, read(t, e.SQL(), e.Args()))
		extractions = append(extractions, e)
		for _, f := range e.Fields {
			if f.OfUnit {
				texts = append(texts, rewrite.Staged{Table: name, Field: f.Name})
			}
		}
	}
	numbers := "private.stage.units"
	if len(texts) > 0 {
		number, err := rewrite.Number(tables[0], texts, numbers)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, db, number)
	}
	for i, e := range extractions {
		arrange, err := e.Arrange(rewrite.Arrangement{Staged: fmt.Sprintf("private.stage.t%d", i), Numbers: numbers, Heavy: fmt.Sprintf("private.stage.h%d", i), Most: int64(i%2) * 2, Parts: i % 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append(arrange, marginalsOf(t, e)...) {
			exec(t, db, text)
		}
	}
	return db
}

func marginalsOf(t *testing.T, e rewrite.Extraction) []string {
	t.Helper()
	list, err := e.Marginals()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// fieldsOf are the fields of a row, of its items as an engine gives them: values, or PostgreSQL's bytes.
func fieldsOf(t *testing.T, e rewrite.Extraction, items []any) (row []any) {
	t.Helper()
	for _, f := range e.Fields {
		own := make([][]byte, f.Items())
		for i := range own {
			own[i], _ = items[i].([]byte)
		}
		value := items[0]
		items = items[f.Items():]
		bytes, sent := value.([]byte)
		switch {
		case f.Stored():
			n, known, ok := f.Number(own)
			if !ok {
				t.Fatalf("%s: %v", f.Name, own)
			}
			if value = nil; known {
				value = n
			}
		case !sent:
		case f.Kind == rewrite.Words:
			value = string(bytes)
		case f.Kind == rewrite.Whole:
			value = int64(binary.BigEndian.Uint64(bytes))
		case f.Kind == rewrite.Real:
			value = math.Float64frombits(binary.BigEndian.Uint64(bytes))
		case f.Kind == rewrite.Long || f.Kind == rewrite.Fixed:
			var n pgtype.Numeric
			if err := pgtype.NewMap().Scan(pgtype.NumericOID, pgtype.BinaryFormatCode, bytes, &n); err != nil {
				t.Fatal(err)
			}
			if f.Kind == rewrite.Fixed {
				value = floored(n, f.Scale).Int64()
				break
			}
			value = new(big.Rat).SetFrac(floored(n, f.Scale), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(f.Scale)), nil)).FloatString(int(f.Scale))
		default:
			t.Fatalf("%s of kind %d", f.Name, f.Kind)
		}
		row = append(row, value)
	}
	return row
}

// floored is floor(n · 10^scale).
func floored(n pgtype.Numeric, scale int32) *big.Int {
	x := new(big.Rat).SetInt(n.Int)
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n.Exp+scale, -n.Exp-scale))), nil))
	if n.Exp+scale < 0 {
		power.Inv(power)
	}
	x.Mul(x, power)
	return new(big.Int).Div(x.Num(), x.Denom()) // Euclid's: the denominator is positive
}

// stage writes the rows of a table, all in one transaction: each for itself takes three times as long.
func stage(t *testing.T, db *sql.DB, name string, e rewrite.Extraction, rows [][]any) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	insert, err := tx.Prepare("INSERT INTO " + name + " VALUES (?" + strings.Repeat(", ?", len(e.Fields)-1) + ")")
	if err != nil {
		t.Fatal(err)
	}
	for _, items := range rows {
		if _, err := insert.Exec(fieldsOf(t, e, items)...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := errors.Join(insert.Close(), tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

func exec(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatalf("%v\n%.600s", err, text)
	}
}

func duckRows(db *sql.DB) rowsOf {
	return func(t *testing.T, text string, args []any) (list [][]any) {
		rows, err := db.Query(text, args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		defer rows.Close()
		names, _ := rows.Columns()
		for rows.Next() {
			row, into := make([]any, len(names)), make([]any, len(names))
			for i := range row {
				into[i] = &row[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			list = append(list, row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return list
	}
}

// postgresRows are rows as PostgreSQL sends them in binary.
func postgresRows(conn *pgx.Conn) rowsOf {
	return func(t *testing.T, text string, args []any) (list [][]any) {
		var texts [][]byte
		for _, a := range args {
			texts = append(texts, []byte(a.(string)))
		}
		got := conn.PgConn().ExecParams(t.Context(), text, texts, nil, nil, []int16{1}).Read()
		if got.Err != nil {
			t.Fatalf("%v\n%s", got.Err, text)
		}
		for _, items := range got.Rows {
			row := make([]any, len(items))
			for i, v := range items {
				if v != nil {
					row[i] = v
				}
			}
			list = append(list, row)
		}
		return list
	}
}

// TestRanksOfHeavyUnits: rows of units that have many are ranked by another statement, and each has the rank that it
// would have had.
func TestRanksOfHeavyUnits(t *testing.T) {
	t.Parallel()
	const seed = 65536
	r := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	for _, c := range []struct{ kind, unit string }{{"bigint", "type: bigint"}, {"text", "type: text"}, {"bigint, null_unit: each", "type: bigint"}} {
		kind, each, _ := strings.Cut(c.kind, ",")
		text := strings.Replace(alikePolicy, "key: people.person_id}", "key: people.person_id, "+c.unit+"}", 1)
		text = strings.Replace(text, "max_rows_per_unit: 3", "max_rows_per_unit: 3\n       "+each, 1)
		p, err := policy.Parse([]byte(text), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		visits := p.Datasets[0].Tables[1]
		rows := []string{"CREATE SCHEMA clinic", "CREATE SCHEMA stage", "CREATE TABLE clinic.people (person_id " + kind + ", a int, b int)", "CREATE TABLE clinic.visits (who " + kind + ", c int, d int, k int, l int)"}
		for range 400 {
			who := strconv.Itoa(r.IntN(1 + r.IntN(30)))
			if r.IntN(20) == 0 {
				who = "NULL"
			}
			rows = append(rows, fmt.Sprintf("INSERT INTO clinic.visits VALUES (%s, %d, %d, %d, %d)", who, r.IntN(4), r.IntN(4), r.IntN(3), r.IntN(2)))
		}
		db := duckDB(t, rows)
		e, err := rewrite.Extract(visits, dialect.DuckDB)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, db, "CREATE TABLE stage.t AS "+e.SQL(), e.Args()...)
		number, err := rewrite.Number(visits, []rewrite.Staged{{Table: "stage.t", Field: "u"}}, "stage.units")
		if err != nil {
			t.Fatal(err)
		}
		exec(t, db, number)
		var want []string
		for i, most := range []int64{1000, 1, 5, 40, 1000} {
			texts, err := e.Arrange(rewrite.Arrangement{Staged: "stage.t", Numbers: "stage.units", Heavy: "stage.heavy", Most: most, Parts: i})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range texts {
				exec(t, db, text)
			}
			var got []string
			table := `main."` + rewrite.Copied(visits) + `"`
			for _, row := range duckRows(db)(t, "SELECT * FROM "+table, nil) {
				got = append(got, fmt.Sprint(row...))
			}
			slices.Sort(got)
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: units of more than %d rows are ranked otherwise", c.kind, most)
			}
			exec(t, db, "DROP TABLE "+table)
			exec(t, db, "DROP TABLE stage.heavy")
		}
		if none := kind == "bigint" && each != ""; (len(want) == 400) != none {
			t.Errorf("%s: %d rows of 400", c.kind, len(want))
		}
	}
}

// TestRowsLieByRank: what a snapshot holds is sorted by rank, so that DuckDB leaves out what lies beyond a bound; also
// as one is made, by several threads that need not keep the order of what they read.
func TestRowsLieByRank(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte(strings.Replace(alikePolicy, "key: people.person_id}", "key: people.person_id, type: bigint}", 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	visits := p.Datasets[0].Tables[1]
	const rows = 700_000
	db := duckDB(t, []string{"CREATE SCHEMA clinic", "CREATE SCHEMA stage", "CREATE TABLE clinic.people (person_id bigint, a int, b int)",
		fmt.Sprintf("CREATE TABLE clinic.visits AS SELECT (hash(i) %% 70000)::BIGINT AS who, (i %% 4)::INTEGER AS c, (i %% 3)::INTEGER AS d, (i %% 7)::INTEGER AS k, 0 AS l FROM range(%d) AS s(i)", rows)})
	exec(t, db, "SET preserve_insertion_order = false")
	exec(t, db, "SET threads = 4")
	e, err := rewrite.Extract(visits, dialect.DuckDB)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, "CREATE TABLE stage.t AS "+e.SQL(), e.Args()...)
	texts, err := e.Arrange(rewrite.Arrangement{Staged: "stage.t", Heavy: "stage.heavy", Light: true})
	if err != nil || len(texts) != 1 {
		t.Fatal(texts, err)
	}
	exec(t, db, texts[0])
	table := `main."` + rewrite.Copied(visits) + `"`
	back := duckRows(db)(t, "SELECT count(*) FROM (SELECT r, lag(r) OVER (ORDER BY rowid) AS before FROM "+table+") WHERE r < before", nil)
	all := duckRows(db)(t, "SELECT count(*), max(r) FROM "+table, nil)
	if back[0][0] != int64(0) || all[0][0] != int64(rows) || all[0][1].(int64) < 10 {
		t.Errorf("%v rows stand behind one of a higher rank; all, and the highest: %v", back[0][0], all[0])
	}
}

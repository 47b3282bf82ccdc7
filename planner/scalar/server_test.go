package scalar

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// server is the reference: a PostgreSQL session that holds testRows in table r.
type server struct {
	conn *pgconn.PgConn
	env  Env
	rows []Row
}

func newServer(t *testing.T) *server {
	s := pgtest.Shared(t)
	name := strings.ToLower(t.Name())
	s.Exec(t, "postgres", "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'")
	conn, err := pgconn.Connect(context.Background(), s.URLFor("postgres", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Log(err)
		}
	})
	out := &server{conn: conn, env: testEnv(t)}
	out.exec(t, "SET TimeZone = 'Europe/Paris'")
	out.exec(t, "SET DateStyle = 'ISO, MDY'")
	out.exec(t, "SET IntervalStyle = 'postgres'")
	out.exec(t, "SET max_parallel_workers_per_gather = 0")
	var columns, values []string
	for _, c := range testColumns {
		columns = append(columns, c.name+" "+c.declared)
	}
	for id, row := range testRows {
		var fields []string
		for _, field := range strings.Split(row, "|") {
			if field == "-" {
				fields = append(fields, "NULL")
			} else {
				fields = append(fields, "'"+field+"'")
			}
		}
		values = append(values, fmt.Sprintf("(%d, %s)", id, strings.Join(fields, ", ")))
	}
	out.exec(t, "CREATE TEMP TABLE r (id int, "+strings.Join(columns, ", ")+")")
	out.exec(t, "INSERT INTO r VALUES "+strings.Join(values, ", "))
	out.rows = rowsOf(t, out.env)
	return out
}

func (s *server) exec(t *testing.T, sql string) {
	if _, err := s.conn.Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// outcome is a value in text form or a SQLSTATE. NULL is "∅".
type outcome struct {
	text, state, message string
}

func (o outcome) String() string {
	if o.state != "" {
		return "!" + o.state
	}
	return o.text
}

// answer evaluates sql on row id, or on all when id is −1. The field describes the column.
func (s *server) answer(sql string, id int) (out []outcome, typ policy.Type, typmod int32, err error) {
	query := "SELECT " + sql + " FROM r"
	if id >= 0 {
		query += fmt.Sprintf(" WHERE id = %d", id)
	} else {
		query += " ORDER BY id"
	}
	results, err := s.conn.Exec(context.Background(), query).ReadAll()
	if err != nil {
		return nil, 0, 0, err
	}
	field := results[0].FieldDescriptions[0]
	for _, row := range results[0].Rows {
		if row[0] == nil {
			out = append(out, outcome{text: "∅"})
		} else {
			out = append(out, outcome{text: string(row[0])})
		}
	}
	return out, policy.Type(field.DataTypeOID), field.TypeModifier, nil
}

// expected is what PostgreSQL answers on every row; typ 0 says that no row has an answer.
func (s *server) expected(sql string) (out []outcome, typ policy.Type, typmod int32) {
	out, typ, typmod, err := s.answer(sql, -1)
	if err == nil {
		return out, typ, typmod
	}
	for id := range s.rows {
		one, t, m, err := s.answer(sql, id)
		if err != nil {
			pgErr, ok := err.(*pgconn.PgError)
			if !ok {
				return nil, 0, 0
			}
			out = append(out, outcome{state: pgErr.Code, message: pgErr.Message})
			continue
		}
		typ, typmod = t, m
		out = append(out, one[0])
	}
	return out, typ, typmod
}

// evaluated is what this package answers on every row.
func evaluated(env Env, sql string, rows []Row) (out []outcome, typ policy.Type, typmod int32) {
	e, err := compile(env, sql)
	if err == nil {
		typ, typmod = e.Type(), e.Typmod()
		if e, err = Fold(e); err == nil {
			typmod = e.Typmod()
		}
	}
	for _, row := range rows {
		if err != nil {
			out = append(out, outcomeOf(err))
			continue
		}
		v, err := e.Eval(row)
		switch {
		case err != nil:
			out = append(out, outcomeOf(err))
		case v == nil:
			out = append(out, outcome{text: "∅"})
		default:
			out = append(out, outcome{text: env.FormatText(e.Type(), v)})
		}
	}
	return out, typ, typmod
}

func outcomeOf(err error) outcome {
	e, ok := err.(*Error)
	if !ok {
		return outcome{state: "not an *Error", message: err.Error()}
	}
	return outcome{state: e.SQLState, message: e.Message}
}

// difference compares the two; "" is none. Refusals (0A000) are allowed and counted.
func (s *server) difference(sql string) (difference string, refused bool) {
	want, wantType, wantTypmod := s.expected(sql)
	got, gotType, gotTypmod := evaluated(s.env, sql, s.rows)
	if gotType == policy.Unknown {
		gotType = policy.Text
	}
	if len(want) != len(s.rows) {
		return sql + "\n\tthe server gave no answer", false
	}
	for i := range want {
		switch {
		case got[i].state == stateUnsupported:
			refused = true
		case want[i].state != "" && got[i].state != "":
			if want[i].state[:2] != got[i].state[:2] {
				return fmt.Sprintf("%s\n\trow %d: got %s (%s), want %s (%s)", sql, i, got[i], got[i].message, want[i],
					want[i].message), refused
			}
		case want[i].String() != got[i].String():
			return fmt.Sprintf("%s\n\trow %d: got %s %s, want %s %s", sql, i, got[i], got[i].message, want[i],
				want[i].message), refused
		case wantType != 0 && (wantType != gotType || wantTypmod != gotTypmod):
			return fmt.Sprintf("%s\n\tgot type %s, want %s", sql, gotType.Format(gotTypmod), wantType.Format(wantTypmod)),
				refused
		}
	}
	return "", refused
}

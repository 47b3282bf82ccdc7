package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// inCharset speaks with a server in one encoding.
type inCharset struct {
	*pgconn.PgConn
	encoding.Encoding
}

func (c inCharset) bytes(t *testing.T, text string) []byte {
	t.Helper()
	out, err := c.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// simple returns what comes for a text in the simple protocol: names and values as bytes, or the code of the error.
func (c inCharset) simple(sql []byte) string {
	var out bytes.Buffer
	results, err := c.Exec(context.Background(), string(sql)).ReadAll()
	for _, r := range results {
		for _, f := range r.FieldDescriptions {
			fmt.Fprintf(&out, "%q ", f.Name)
		}
		for _, row := range r.Rows {
			fmt.Fprintf(&out, "%q ", row)
		}
	}
	return out.String() + code(err)
}

// extended does it for a statement with parameters, in one format both ways.
func (c inCharset) extended(sql, value []byte, format int16) string {
	r := c.ExecParams(context.Background(), string(sql), [][]byte{value}, []uint32{25}, []int16{format}, []int16{format}).Read()
	return fmt.Sprintf("%q ", r.Rows) + code(r.Err)
}

func (c inCharset) copied(sql []byte) string {
	var out bytes.Buffer
	_, err := c.CopyTo(context.Background(), &out, string(sql))
	return fmt.Sprintf("%q ", out.Bytes()) + code(err)
}

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

// TestClientEncodings: what a client sends and is sent is in its encoding, byte for byte as with PostgreSQL.
func TestClientEncodings(t *testing.T) {
	server := pgtest.Shared(t)
	database := server.Database(t)
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0))
	for _, c := range []struct {
		name   string
		as     encoding.Encoding
		sample string
	}{
		{"LATIN1", charmap.ISO8859_1, "Größe é"}, {"LATIN9", charmap.ISO8859_15, "Größe €"}, {"WIN1252", charmap.Windows1252, "naïve “€”"}, {"windows-1251", charmap.Windows1251, "Жук"},
		{"KOI8R", charmap.KOI8R, "Жук"}, {"SJIS", japanese.ShiftJIS, "日本ソ能"}, {"EUC_JP", japanese.EUCJP, "日本ソ"}, {"GBK", simplifiedchinese.GBK, "中文"},
		{"UHC", korean.EUCKR, "한국"}, {"UTF8", encoding.Nop, "Größe 日本"},
	} {
		var sides [2]inCharset
		for i, url := range []string{server.URLFor("postgres", database) + "&client_encoding=" + c.name, p.URL("alice", "lab") + "&client_encoding=" + c.name} {
			conn, err := pgconn.Connect(t.Context(), url)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			defer conn.Close(context.Background())
			sides[i] = inCharset{conn, c.as}
		}
		same := func(what string, ask func(s inCharset) string) {
			if want, got := ask(sides[0]), ask(sides[1]); got != want {
				t.Errorf("%s, %s: %s, PostgreSQL %s", c.name, what, got, want)
			}
		}
		say := func(text string) []byte { return sides[0].bytes(t, text) }
		for _, sql := range []string{"SELECT '%s' AS \"%[1]s\", length('%[1]s'), '%[1]s' = '%[1]s'", "SELECT ARRAY['%s', 'a']", "SHOW client_encoding", "SELECT pg_client_encoding()",
			`SELECT E'\u2030'`, `SELECT E'\u2603'`, `SELECT E'\u0416'`, "SELECT \"%s\""} {
			text := sql
			if bytes.Contains([]byte(sql), []byte("%")) {
				text = fmt.Sprintf(sql, c.sample)
			}
			same(text, func(s inCharset) string { return s.simple(say(text)) })
			same("COPY of "+text, func(s inCharset) string { return s.copied(say("COPY (" + text + ") TO STDOUT")) })
			same("CSV of "+text, func(s inCharset) string { return s.copied(say("COPY (" + text + ") TO STDOUT (FORMAT csv, HEADER)")) })
		}
		for format := range int16(2) {
			same("a parameter", func(s inCharset) string { return s.extended([]byte("SELECT $1::text"), say(c.sample), format) })
			same("an array", func(s inCharset) string {
				return s.extended([]byte("SELECT ARRAY[$1::text, 'b']"), say(c.sample), format)
			})
		}
		for _, s := range sides {
			if a := s.simple(say("EXPLAIN SELECT count(*) FROM pg_class")); a == "" {
				t.Errorf("%s: no plan", c.name)
			}
		}
	}
}

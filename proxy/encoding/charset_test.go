package encoding

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/encoding/charmap"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// TestCharsetsAreThoseOfPostgreSQL: each byte of each encoding of single bytes is the character that PostgreSQL makes
// of it. Control characters beyond ASCII are left out, which a part of the encodings lacks here, and three letters that
// one of the two tables has at another place.
func TestCharsetsAreThoseOfPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	const read = `CREATE FUNCTION pg_temp.read(b int, e text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN convert_from(set_byte('\x00', 0, b), e); EXCEPTION WHEN OTHERS THEN RETURN ''; END $$`
	if _, err := conn.Exec(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	elsewhere := map[string]bool{"WIN1255 ca": true, "KOI8U ae": true, "KOI8U be": true}
	compared := 0
	for name, e := range charsets {
		if _, single := e.(*charmap.Charmap); !single {
			continue
		}
		for b := 0x80; b < 0x100; b++ {
			var want string
			if err := conn.QueryRow(t.Context(), `SELECT pg_temp.read($1, $2)`, b, name).Scan(&want); err != nil {
				t.Fatal(err)
			}
			got, refusal := CharsetOf(name).read([]byte{byte(b)})
			if refusal != nil {
				got = nil
			}
			r, _ := utf8.DecodeRune([]byte(want + string(got)))
			if place := fmt.Sprintf("%s %x", name, b); string(got) != want && (r < 0x80 || r > 0x9f) && !elsewhere[place] {
				t.Errorf("%s is %q, PostgreSQL's %q", place, got, want)
			}
			compared++
		}
	}
	t.Logf("%d bytes compared", compared)
}

// TestCharsetSigns: what dpproxy itself writes can be sent in every encoding, and other text is never changed silently.
func TestCharsetSigns(t *testing.T) {
	for name := range charsets {
		set := CharsetOf(name)
		for r := range signs {
			if out, refusal := set.written([]byte("a" + string(r) + "z")); refusal != nil || len(out) < 3 {
				t.Errorf("%s: %q is written as %q: %v", name, r, out, refusal)
			}
		}
		if out, refusal := set.written([]byte("☃")); refusal == nil && name != "GB18030" {
			t.Errorf("%s has a snowman: %q", name, out)
		} else if refusal != nil && refusal.SQLState != "22P05" {
			t.Errorf("%s: %v", name, refusal)
		}
	}
	if got := CharsetOf("LATIN1").told("ε ≤ 1, ☃ and ü"); got != "epsilon <= 1, ? and \xfc" {
		t.Errorf("told %q", got)
	}
}

package scalar

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// formPieces are what random text forms are made of, by type.
var formPieces = map[string][]string{
	"date": {"2020", "-", "01", "31", "/", "1", "5", "jan", "February", " ", " ", ",", "Mar", "20200131", "99", "BC", "AD",
		"10:11:12", "T", "Mon", "today", "epoch", ".", "0", "12", "31", "-", "2020-02-29", "1/2/2021", "Z", "+02", "5th"},
	"timestamp": {"2020-02-29", "2020-01-01", " ", " ", "T", "10:11:12", "10:11", "23:59:59.999999", ".5", "24:00:00", "am",
		"PM", "+02", "-03:30", "Z", "UTC", "1/2/2021", "Jan 5 2020", "Wed", ":", "20200131", "101112", "-", "0001-01-01", "BC",
		"10:11:60", "1:2:3", "12:30", "now", "Europe/Paris", "+0530", ",", "4"},
	"timestamptz": {"2020-02-29", "2020-07-01", " ", " ", "10:11:12", "02:30", "23:59:59.9999995", "+02", "-03:30", "Z",
		"UTC", "America/New_York", "GMT", "+25", "Jul 5, 2020", "1890-01-01", "-", "+01:02:03", "am", "24:00", "T", "+"},
	"interval": {"1", "2", "-3", "1.5", "+", "-", " ", " ", " ", " day", " days", " mon", " months", " year", " hours", " min",
		" sec", " week", "04:05:06", "-1:02", "10:11:12.5", "ago", "@ ", "P", "T", "1Y", "2M", "3D", "4H", "1h", "0.25", " ms",
		" us", "century", " decade", "1-2", ".", "d", "h", "100", "99999999999"},
	"numeric": {"1", "0", "23", ".", "-", "+", "e", "E5", "e-3", " ", "000", "12.50", "x", "_", "1e", "e400"},
	"float8":  {"1", "0", "23", ".", "-", "+", "e", "E5", "e-3", " ", "000", "12.50", "x", "inf", "NaN", "e300", "e308", "17976931348623157", "4.9e-324"},
	"float4":  {"1", "0", "23", ".", "-", "e", "E5", "e-3", "e38", "3.4", "1.17549435e-38", "16777217", "e-45", "0.1"},
	"int4":    {"1", "0", "2147483647", "-", "+", " ", "9", ".", "x", "\t", "00", "2147483648"},
	"int8":    {"1", "9223372036854775807", "-", "+", " ", "9", "8"},
	"bool":    {"t", "f", "true", "false", "y", "n", "yes", "no", "on", "off", "of", "o", "1", "0", " ", "T", "u", "e"},
	"uuid":    {"a0ee", "bc99", "-", "9c0b", "4ef8", "bb6d", "6bb9", "bd38", "0a11", "{", "}", "A0EE", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
}

// TestRandomTextForms compares what input functions make of random texts. Where PostgreSQL reads a form and this
// package does not, it must say so with 0A000.
func TestRandomTextForms(t *testing.T) {
	s := newServer(t)
	seed, count := number64(t, "SCALAR_SEED", 7), number64(t, "SCALAR_COUNT", 3000)
	t.Logf("seed %d, %d texts", seed, count)
	rng := rand.New(rand.NewPCG(seed, 2))
	var types []string
	for name := range testTypes {
		if formPieces[name] != nil {
			types = append(types, name)
		}
	}
	slices.Sort(types)
	failures, read := 0, 0
	for range count {
		name := types[rng.IntN(len(types))]
		pieces := formPieces[name]
		var b strings.Builder
		most := 5
		if name == "uuid" {
			most = 10
		}
		for range 1 + rng.IntN(most) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		if text := b.String(); strings.Contains(text, "now") || strings.Contains(text, "today") {
			continue
		}
		sql := "'" + b.String() + "'::" + name
		difference, _ := s.difference(sql)
		if out, _, _ := evaluated(s.env, sql, s.rows[:1]); out[0].state == "" {
			read++
		}
		if difference != "" {
			t.Error(difference)
			if failures++; failures == 60 {
				t.Fatal("too many differences")
			}
		}
	}
	t.Logf("%d read", read)
}

// TestRandomPatterns compares LIKE and regular expressions on random patterns over a few characters.
func TestRandomPatterns(t *testing.T) {
	s := newServer(t)
	seed, count := number64(t, "SCALAR_SEED", 7), number64(t, "SCALAR_COUNT", 3000)
	t.Logf("seed %d, %d patterns", seed, count)
	rng := rand.New(rand.NewPCG(seed, 3))
	word := func(letters []string, most int) string {
		var b strings.Builder
		for range rng.IntN(most) {
			b.WriteString(letters[rng.IntN(len(letters))])
		}
		return b.String()
	}
	texts := []string{"a", "b", "ab", "ö", "_", "%", `\`, "A", ""}
	likes := []string{"a", "b", "%", "_", `\`, "%", "_", "ö", "A", "%%", `\%`, `\\`}
	regexes := []string{"a", "b", "a*", "b+", "(a|b)", "[ab]", "[^a]", ".", "^", "$", "a?", "ö", "{2}", "(", ")", "*", "|",
		`\.`, `\d`, "[a-c]*", "(?:a|ab)", "{1,2}", "A", `\\`, "]", "[]a]", "}", `\mb`, "(ab)+", "{,2}", "-"}
	failures, refusals := 0, 0
	for range count {
		var sql string
		if rng.IntN(2) == 0 {
			operator := []string{"LIKE", "NOT LIKE", "ILIKE"}[rng.IntN(3)]
			sql = "'" + word(texts, 6) + "' " + operator + " '" + word(likes, 6) + "'"
			if rng.IntN(4) == 0 {
				sql += " ESCAPE '" + []string{"a", `\`, "", "%", "_", "ab"}[rng.IntN(6)] + "'"
			}
		} else {
			operator := []string{"~", "!~", "~*", "!~*"}[rng.IntN(4)]
			sql = "'" + word(texts, 6) + "' " + operator + " '" + word(regexes, 6) + "'"
		}
		difference, refused := s.difference(sql)
		if refused {
			refusals++
		}
		if difference != "" {
			t.Error(difference)
			if failures++; failures == 40 {
				t.Fatal("too many differences")
			}
		}
	}
	t.Logf("%d refused", refusals)
}

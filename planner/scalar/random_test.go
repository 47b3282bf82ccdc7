package scalar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// templates are the productions of random expressions by type: %b a boolean, %i an integer, %n a numeric, %f a float,
// %t a text, %d a date, %s a timestamp, %z a timestamp with zone, %v an interval, %c a time, %u a uuid, %a anything, %#
// a small integer constant, %p a text constant for patterns, %q a unit of time, %h and %N templates of times and of
// numbers.
var templates = map[byte][]string{
	'b': {"(%i = %i)", "(%i < %n)", "(%n >= %f)", "(%f <> %f)", "(%t < %t)", "(%d <= %s)", "(%s > %z)", "(%z = %z)",
		"(%v < %v)", "(%c < %c)", "(%c BETWEEN %c AND '17:00')", "(%u = %u)", "(%b AND %b)", "(%b OR %b)", "(NOT %b)", "(%a IS NULL)", "(%b IS TRUE)",
		"(%b IS NOT FALSE)", "(%b IS UNKNOWN)", "(%i IN (%i, %#, 10))", "(%t IN ('apple', %t))", "(%n NOT IN (1, 2.5, NULL))",
		"(%f IN (1.5, 2, -0.1))", "(%i BETWEEN %# AND %i)", "(%t LIKE %p)", "(%t NOT LIKE %p)", "(%t ILIKE %p)", "(%t SIMILAR TO '(a|b)_*')", "(%t NOT SIMILAR TO '%%e')",
		"(%t NOT ILIKE %t)", "(%i IS DISTINCT FROM %i)", "(%t IS NOT DISTINCT FROM %t)", "starts_with(%t, %t)", "regexp_like(%t, %p)", "regexp_like(%t, %t, 'i')",
		"(%i)::int4::bool", "(%b)::text::bool", "CASE WHEN %b THEN %b ELSE %b END", "coalesce(%b, %b)", "(%d = '2020-02-29')",
		"(%s < '2020-06-01')", "(%i = '10')", "(%n > '2.5')", "(%t LIKE %t ESCAPE '#')", "(%b = %b)", "(%b < true)",
		"isfinite(%d)", "isfinite(%s)", "isfinite(%v)", "(%n IN (%n, %i))", "(%d IN (%d, %s))", "(%d < '2021-01-01 10:00'::timestamptz)"},
	'i': {"(%i + %i)", "(%i - %#)", "(%i * %#)", "(%i / %i)", "(%i % %i)", "(- %i)", "abs(%i)", "mod(%i, %i)", "length(%t)",
		"(%n)::int4", "(%f)::int8", "(%i)::int2", "(%b)::int4", "(%d - %d)", "width_bucket(%n, 0, 100, 10)",
		"width_bucket(%f, 0, 100, %#)", "width_bucket(%n, %n, %n, %#)", "position(%t in %t)", "strpos(%t, 'p')", "ascii(%t)",
		"CASE WHEN %b THEN %i ELSE %i END", "CASE %i WHEN %# THEN %i WHEN %i THEN %# END", "coalesce(%i, %i)",
		"nullif(%i, %i)", "greatest(%i, %i)", "least(%i, %#)", "gcd(%i, %i)", "lcm(%#, %i)", "(%t)::int4", "(%i / %#)",
		"octet_length(%t)", "bit_length(%t)", "(%i)::int8", "min_scale(%n)", "(@ %i)", "(+ %i)", "('7' + %i)", "nullif(%i, %n)",
		"(%i & %i)", "(%i | %#)", "(%i # %i)", "(~ %i)", "(%i << %#)", "(%i >> %#)", "(%# << (%i)::int4)"},
	'n': {"(%n + %n)", "(%n - %i)", "(%n * %n)", "(%n / %n)", "(%n % %n)", "(- %n)", "abs(%n)", "round(%n)", "round(%n, %#)",
		"trunc(%n)", "trunc(%n, %#)", "floor(%n)", "ceil(%n)", "sign(%n)", "mod(%n, %n)", "div(%n, %n)", "(%i)::numeric",
		"(%f)::numeric", "(%n)::numeric(8,2)", "(%n)::numeric(20,5)", "(%n)::numeric(5,-2)", "extract(%q from %s)", "extract(%q from %d)",
		"extract(%q from %z)", "extract(%q from %c)", "extract(%q from %v)", "CASE WHEN %b THEN %n ELSE %i END", "coalesce(%n, %i)",
		"nullif(%n, %n)", "greatest(%n, %i, %n)", "least(%n, %n)", "sqrt(abs(%n))", "sqrt(%n)", "ln(%n)", "exp(%n / 1000)",
		"power(%n, %#)", "power(abs(%n), 0.5)", "log(%n)", "(%t)::numeric", "(%i / 3.0)", "gcd(%n, %n)", "log(2.0, %n)",
		"(%n ^ %#)", "trim_scale(%n)", "round(%n / %i, 2)", "power(%n, %n / 10)", "to_number(%t, %N)"},
	'f': {"(%f + %f)", "(%f - %i)", "(%f * %f)", "(%f / %f)", "(- %f)", "abs(%f)", "round(%f)", "floor(%f)", "ceil(%f)",
		"trunc(%f)", "sign(%f)", "(%i)::float8", "(%n)::float8", "(%n)::float4", "(%f)::float4", "(%f + %n)", "sqrt(%f)",
		"date_part(%q, %s)", "date_part(%q, %d)", "date_part(%q, %z)", "date_part(%q, %c)", "date_part(%q, %v)", "CASE WHEN %b THEN %f ELSE %n END",
		"coalesce(%f, %n)", "greatest(%f, %i)", "least(%f, %f)", "nullif(%f, %i)", "(%i * 1.5::float4)", "(%t)::float8", "(%f * %f)::float4", "radians(%f)", "degrees(%f)"},
	't': {"lower(%t)", "upper(%t)", "initcap(%t)", "reverse(%t)", "chr(%#)", "left(%t, %#)", "right(%t, %#)", "substr(%t, %#)",
		"substr(%t, %#, %#)", "substring(%t, %#, %i)", "trim(%t)", "btrim(%t, 'ae')", "ltrim(%t, %t)", "rtrim(%t)",
		"replace(%t, %t, %t)", "replace(%t, 'p', %t)", "concat(%a, %a)", "concat_ws('-', %a, %a, %a)", "(%t || %t)",
		"(%t || %a)", "(%a || 'x'::text)", "split_part(%t, 'p', %#)", "split_part(%t, %t, %#)", "lpad(%t, %#, 'xy')",
		"rpad(%t, %#)", "repeat(%t, 2)", "translate(%t, 'ap', 'b')", "(%a)::text", "(%t)::varchar(3)", "(%a)::varchar(4)",
		"CASE WHEN %b THEN %t ELSE 'x' END", "coalesce(%t, 'none')", "nullif(%t, %t)", "greatest(%t, %t)", "least(%t, 'b')",
		"to_char(%s, %h)", "to_char(%d, %h)", "to_char(%z, %h)", "to_char(%c, 'HH24:MI')",
		"to_char(%i, %N)", "to_char(%n, %N)", "to_char(%f, %N)", "to_char(%v, 'HH24:MI:SS')", "to_char(to_date(to_char(%d, 'YYYY-MM-DD'), 'YYYY-MM-DD'), 'FMDD Mon')", "substring(%t from %# for 2)",
		"CASE %t WHEN 'apple' THEN 'A' ELSE %t END", "md5(%t)", "to_hex(%i)", "overlay(%t placing %t from %#)", "overlay(%t placing 'xy' from %# for %i)"},
	'd': {"(%d + %#)", "(%d - %#)", "(%s)::date", "(%z)::date", "date(%s)", "make_date(%#, %#, %#)", "make_date(2000 + %#, 2, 28)",
		"CASE WHEN %b THEN %d ELSE %d END", "coalesce(%d, %d)", "greatest(%d, %d)", "least(%d, '2010-01-01')", "nullif(%d, %d)",
		"(%# + %d)", "(%d + %i)", "((%d)::text)::date"},
	's': {"(%d)::timestamp", "(%z)::timestamp", "(%s + %v)", "(%s - %v)", "(%d + %v)", "(%d - %v)", "(%v + %s)", "(%d + %c)",
		"date_trunc(%q, %s)", "date_trunc('month', %s)", "date_bin('36 hours', %s, %s)", "date_bin(%v, %s, '2001-01-01')", "(%z AT TIME ZONE 'UTC')", "(%z AT TIME ZONE 'America/New_York')",
		"CASE WHEN %b THEN %s ELSE %d END", "coalesce(%s, %d)", "greatest(%s, %d)", "(%s)::timestamp(0)", "(%s)::timestamp(3)",
		"((%s)::text)::timestamp", "nullif(%s, %d)", "(%s + '1 day')"},
	'z': {"(%s)::timestamptz", "(%d)::timestamptz", "(%z + %v)", "(%z - %v)", "date_trunc(%q, %z)", "date_trunc('day', %z)",
		"date_trunc('hour', %z, 'Asia/Kolkata')", "(%s AT TIME ZONE 'America/New_York')", "(%s AT TIME ZONE 'UTC')",
		"coalesce(%z, %s)", "greatest(%z, %d)", "((%z)::text)::timestamptz", "(%z)::timestamptz(2)"},
	'v': {"(%v + %v)", "(%v - %v)", "(- %v)", "(%v * %#)", "(%v * %f)", "(%v / %#)", "(%v / %f)", "(%s - %s)", "(%z - %z)", "(%c - %c)", "(%c)::interval",
		"age(%s, %s)", "age(%z, %z)", "age(%d, %d)", "date_trunc(%q, %v)", "coalesce(%v, %v)", "greatest(%v, %v)",
		"((%v)::text)::interval", "justify_hours(%v)", "justify_days(%v)", "justify_interval(%v)", "(%s - %d)", "(%# * %v)"},
	'c': {"(%s)::time", "(%z)::time", "(%v)::time", "(%c + %v)", "(%c - %v)", "(%v + %c)", "(%c)::time(0)", "(%s)::time(2)", "coalesce(%c, %c)", "greatest(%c, '12:00')", "nullif(%c, %c)",
		"((%c)::text)::time", "make_time(%#, %#, 5)", "CASE WHEN %b THEN %c ELSE %c END"},
	'u': {"coalesce(%u, %u)", "((%u)::text)::uuid", "nullif(%u, %u)", "greatest(%u, %u)"},
}

// leaves are columns and constants by type.
var leaves = map[byte][]string{
	'b': {"b", "b", "true", "false", "NULL::bool"},
	'i': {"i2", "i4", "i8", "i4", "0", "1", "7", "-3", "100", "2147483647", "3000000000", "NULL::int4", "2::int2"},
	'n': {"n", "n2", "n", "n2", "0.0", "1.5", "-2.50", "100.000", "0.0001", "123456789.123456789", "NULL::numeric"},
	'f': {"f4", "f8", "f8", "0.5::float8", "1e10::float8", "-2.5::float8", "0.1::float4", "3::float8", "NULL::float8"},
	't': {"t", "v", "t", "'apple'::text", "''::text", "'12'::text", "'A b'::text", "'2020-01-01'::text", "NULL::text", "'p'::text"},
	'd': {"d", "d", "date '2020-02-29'", "date '2019-12-31'", "date '1970-01-01'", "'2024-01-01'::date", "NULL::date"},
	's': {"ts", "ts", "timestamp '2020-02-29 12:30:45.678'", "timestamp '1999-12-31 23:59:59.999999'", "NULL::timestamp"},
	'z': {"tz", "tz", "timestamptz '2020-03-29 02:30:00+01'", "timestamptz '2020-10-25 02:30:00+01'", "timestamptz '1880-01-01 00:00:00Z'"},
	'v': {"iv", "iv", "interval '1 day'", "interval '1 mon'", "interval '-1 hour'", "interval '1 year 2 mons 3 days 04:05:06.789'", "interval '36:00'"},
	'c': {"tm", "tm", "time '00:00'", "time '24:00'", "time '09:30:15.25'", "NULL::time"},
	'u': {"u", "u", "'12345678-1234-5678-1234-567812345678'::uuid"},
	'#': {"0", "1", "2", "3", "-1", "5", "10", "-2", "30", "4"},
	'p': {"'a%'", "'%p%'", "'_p%e'", `'%\_%'`, "'%ö%e'", "''", "'%'", `'%\%%'`, `'a\\b%'`, "'%e_%'", "'A%'", "'%ss%'", `'x\'`},
	'q': {"'year'", "'month'", "'day'", "'hour'", "'minute'", "'second'", "'week'", "'quarter'", "'decade'", "'century'",
		"'millennium'", "'milliseconds'", "'microseconds'", "'epoch'", "'dow'", "'doy'", "'isodow'", "'isoyear'", "'julian'", "'timezone'", "'nothing'"},
}

// randomExpression draws an SQL expression of that kind.
func randomExpression(rng *rand.Rand, kind byte, depth int) string {
	if kind == 'a' {
		kind = "bintdfszvcu"[rng.IntN(11)]
	}
	if kind == 'h' {
		return randomTemplate(rng)
	}
	if kind == 'N' {
		return quoteSQL(drawNumberTemplate(rng))
	}
	productions := templates[kind]
	if depth <= 0 || productions == nil || rng.IntN(6) == 0 {
		list := leaves[kind]
		return list[rng.IntN(len(list))]
	}
	template := productions[rng.IntN(len(productions))]
	var b strings.Builder
	for i := 0; i < len(template); i++ {
		if template[i] != '%' || i+1 == len(template) || !strings.ContainsRune("bintdfszvcua#pqhN", rune(template[i+1])) {
			b.WriteByte(template[i])
			continue
		}
		i++
		b.WriteString(randomExpression(rng, template[i], depth-1))
	}
	return b.String()
}

// randomTemplate draws a template of to_char.
func randomTemplate(rng *rand.Rand) string {
	separators := []string{"-", "/", " ", ":", ".", ", ", "T", "", " x ", `"of"`, "FM", "th", "\\"}
	var b strings.Builder
	for range 1 + rng.IntN(4) {
		field := templateFields[rng.IntN(len(templateFields))]
		if rng.IntN(3) == 0 {
			field = strings.ToLower(field)
		}
		if rng.IntN(4) == 0 {
			field = "FM" + field
		}
		b.WriteString(field + separators[rng.IntN(len(separators))])
	}
	return "'" + b.String() + "'"
}

// TestRandomAgainstServer compares random typed expressions with a PostgreSQL server: type, value text on every row,
// and class of SQLSTATE. SCALAR_SEED and SCALAR_COUNT choose others and more.
func TestRandomAgainstServer(t *testing.T) {
	s := newServer(t)
	seed, count := number64(t, "SCALAR_SEED", 20241121), number64(t, "SCALAR_COUNT", 3000)
	t.Logf("seed %d, %d expressions", seed, count)
	rng := rand.New(rand.NewPCG(seed, 1))
	refusals, failures := 0, 0
	for range count {
		sql := randomExpression(rng, 'a', 1+rng.IntN(3))
		difference, refused := s.difference(sql)
		if refused {
			refusals++
			if os.Getenv("SCALAR_REFUSED") != "" {
				t.Log("refused: ", sql)
			}
		}
		if difference != "" {
			t.Error(difference)
			if failures++; failures == 40 {
				t.Fatal("too many differences")
			}
		}
	}
	t.Logf("%d refused on some row", refusals)
	if refusals > int(count)/5 {
		t.Errorf("more than a fifth refused")
	}
}

func number64(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return n
}

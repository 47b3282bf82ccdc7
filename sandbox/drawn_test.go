package sandbox_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// What the embedded sandbox answers is held against a PostgreSQL server by calls that are drawn: of every function, operator,
// cast and aggregate that the server's own catalog lists, over the edge values of each type, and of the forms of SQL that no
// catalog lists. It may answer as the server does, byte by byte with the type, or refuse; never otherwise.

// edges are values of each type, as SQL writes them. NULL is drawn for all of them.
var edges = map[string][]string{
	"boolean":          {"true", "false"},
	"smallint":         {"0::smallint", "1::smallint", "'-1'::smallint", "2::smallint", "7::smallint", "'32767'::smallint", "'-32768'::smallint"},
	"integer":          {"0", "1", "-1", "2", "3", "5", "10", "-2", "-7", "64", "300", "2147483647", "'-2147483648'::integer"},
	"bigint":           {"0::bigint", "1::bigint", "'-1'::bigint", "7::bigint", "4294967296", "9223372036854775807", "'-9223372036854775808'::bigint", "'-12345678901'::bigint"},
	"real":             {"0::real", "'-0'::real", "1.5::real", "'0.1'::real", "'-2.5'::real", "'NaN'::real", "'Infinity'::real", "'-Infinity'::real", "'3.4e38'::real", "'1e-45'::real", "'16777217'::real"},
	"double precision": {"0::float8", "'-0'::float8", "'0.5'::float8", "'-0.5'::float8", "'1.5'::float8", "'2.5'::float8", "'-2.5'::float8", "'0.1'::float8", "'NaN'::float8", "'Infinity'::float8", "'-Infinity'::float8", "'1e308'::float8", "'5e-324'::float8", "'123456789.125'::float8", "'1e15'::float8", "'1e16'::float8", "'2147483647.5'::float8", "'9223372036854775807'::float8"},
	"numeric":          {"0.0", "1.5", "2.5", "-0.5", "-2.50", "100.000", "0.0001", "123456789.123456789", "1e20::numeric", "'-1e-20'::numeric", "'NaN'::numeric", "'Infinity'::numeric", "'-Infinity'::numeric", "3::numeric", "'12.345'::numeric(8,2)", "99999999999999999999999999.99", "7::numeric"},
	"text": {"''::text", "'a'::text", "'abc'::text", "'A b'::text", "'foobar baz'::text", "'Äöß'::text", "'日本語'::text", "'😀x'::text", "' x '::text", "'12'::text", "'-3.5'::text", "'a,b,,c'::text", "E'a\\nb'::text", "E'it''s \\\\'::text",
		"'aaa'::text", "'2024-02-29'::text", "'ſK'::text", "'a_b%c'::text", "'İı'::text", "E'\\t'::text"},
	"character varying": {"'abc'::varchar", "''::varchar", "'Äb'::varchar(5)"},
	"date":              {"date '2024-02-29'", "date '1970-01-01'", "date '2000-12-31'", "date '0001-01-01'", "date '0044-03-15 BC'", "date '9999-12-31'", "date 'infinity'", "date '-infinity'", "date '2024-12-30'", "date '1969-12-31'", "date '200000-12-31'"},
	"timestamp without time zone": {"timestamp '2024-02-29 12:30:45.678901'", "timestamp '1970-01-01'", "timestamp '1999-12-31 23:59:59.999999'", "timestamp '2024-03-31 02:30:00'", "timestamp '0044-03-15 10:00 BC'",
		"timestamp 'infinity'", "timestamp '-infinity'", "timestamp '1969-12-31 23:59:59.5'", "timestamp '200000-12-31 23:59:59'"},
	"timestamp with time zone": {"timestamptz '2024-02-29 12:30:45.678901+00'", "timestamptz '1970-01-01 00:00:00+00'", "timestamptz '2024-03-31 01:30:00+00'", "timestamptz '2024-10-27 00:30:00+00'", "timestamptz '2024-07-01 05:00:00-07'",
		"timestamptz 'infinity'", "timestamptz '-infinity'", "timestamptz '1880-01-01 00:00:00+00'"},
	"interval":               {"interval '1 day'", "interval '1 mon'", "interval '-1 hour'", "interval '1 year 2 mons 3 days 04:05:06.789'", "interval '36:00'", "interval '-1 mon +5 days -00:00:01'", "interval '0'", "interval '40 days'", "interval '1 mon -30 days'", "interval '0.000001 s'"},
	"uuid":                   {"'12345678-1234-5678-1234-567812345678'::uuid", "'00000000-0000-0000-0000-000000000000'::uuid", "'ABCDEF00-0000-0000-0000-000000000001'::uuid"},
	"bytea":                  {`'\x00ff41'::bytea`, `''::bytea`, `'abc'::bytea`},
	"json":                   {`'{"a": 1, "b": [1, null, "x"]}'::json`, `'[1, 2.50, "ü"]'::json`, `'null'::json`, `'"t"'::json`, `'{ "b":1,  "a":{"c":true}}'::json`},
	"jsonb":                  {`'{"a": 1, "b": [1, null, "x"]}'::jsonb`, `'[1, 2.50, "ü"]'::jsonb`, `'null'::jsonb`, `'"t"'::jsonb`, `'{ "b":1,  "a":{"c":true}}'::jsonb`, `'[]'::jsonb`},
	"time without time zone": {"time '00:00'", "time '12:34:56.789'", "time '24:00'"},
	"integer[]":              {"ARRAY[1, 2, 3]", "ARRAY[]::integer[]", "ARRAY[3, NULL, 1]", "'{5}'::integer[]", "ARRAY[2, 2, NULL, NULL]"},
	"text[]":                 {"ARRAY['a', 'b', 'c']", "ARRAY[]::text[]", "ARRAY['b', NULL, '']", `'{"x y","NULL","q\"s",ü}'::text[]`, "ARRAY['a,b', '{}', 'null']"},
	"numeric[]":              {"ARRAY[1.0, 2.50]", "ARRAY[1.00, 1.0]", "ARRAY[1.5, NULL]"},
	"double precision[]":     {"ARRAY['NaN'::float8, 1]", "ARRAY[0.5::float8, -0.5::float8]"},
	"boolean[]":              {"ARRAY[true, NULL, false]"},
	"date[]":                 {"ARRAY[date '2024-01-01', NULL]"},
	"oid":                    {"23::oid", "0::oid"},
	"name":                   {"'abc'::name", "'A b'::name"},
}

// special are the values of arguments whose meaning is not that of their type: patterns, formats, units, zones, numbers that
// are lengths. They are found by function and place, else by the name of the type.
var special = map[string][]string{
	"regex": {"'a'", "'o+'", "'(o)(b)?'", "'[a-z]+'", "'^a'", "'c$'", "'.'", "''", "'b|ba'", "'(a|ab)(c|bcd)?'", `'\d+'`, `'\w+'`, `'\mf'`, `'\yb'`, "'a{1,2}'", "'a{,2}'", "'[[:alpha:]]+'", "'o+?'", "'(?:f)(o+)'", `'(.)\1'`,
		"'(?i)FOO'", "'fo(?=o)'", "'[^,]*'", "','", "'(a)|(b)'", `'\s'`, "'x*'", "'ö'", "'B'", `'[\w]+'`, `'\x41'`, "'[[:<:]]b'", "'('", "'a**'", "'***=a'", "'(foo|foobar).*'", "'(f|fo|foo)'", "'^'", "'$'", "'b*'", "'[A-Z]'", "'\\n'", "'a.b'", "'(?:ob|o)a'",
		`'\u00e4'`, `'[[=a=]]'`, `'\A\w'`, `'r\Z'`, "'(a?)*'", "'(x)?a'", "'[ä-ö]'", "'( )'", "'o{2}'"},
	"flags":   {"''", "'g'", "'i'", "'gi'", "'n'", "'s'", "'x'", "'q'", "'c'", "'gq'", "'w'"},
	"newtext": {"''", "'X'", `'<\1>'`, `'\&\&'`, `'\\'`, `'$1'`, `'\0'`, `'a\'`, `'\2-'`},
	"like":    {"'a%'", "'%b%'", "'_b_'", `'a\_b\%c'`, "''", "'%'", `'x\'`, "'A%'", "'%ö%'", `'%\%%'`, "'日_語'", "'__'"},
	"field": {"'year'", "'month'", "'day'", "'hour'", "'minute'", "'second'", "'week'", "'quarter'", "'decade'", "'century'", "'millennium'", "'milliseconds'", "'microseconds'", "'epoch'", "'dow'", "'doy'", "'isodow'", "'isoyear'",
		"'julian'", "'timezone'", "'timezone_hour'", "'days'", "'DAY'", "'nothing'"},
	"zone":   {"'UTC'", "'Europe/Berlin'", "'America/New_York'", "'Asia/Kolkata'", "'nowhere'", "'EST'", "'+02'", "interval '2 hours'", "'utc'"},
	"dates":  {"'YYYY-MM-DD'", "'HH24:MI:SS.US'", "'Mon DD, YYYY'", "'FMDay DDth'", "'IYYY-\"W\"IW'", "'HH12:MI AM'", "'Q'", "'DDD J'", "'MS'", "'TZ'", "'OF'", "'SSSS'", "'CC Y,YYY'", "'month'", "'D ID'", "'WW W'", "'BC'", "'RM'", "'Dy'", "'MONTH'"},
	"digits": {"'999'", "'FM999.00'", "'9,999.99'", "'S000'", "'MI9'", "'9PR'", "'RN'", "'9.99EEEE'", "'L9'", "'999V9'", "'FM9990.099'", "'SG9'", "'0009'", "'9th'", "'D9'", "'.99'", "'fm990D00'", "'999999999999999999G999'"},
	"length": {"0", "1", "2", "3", "5", "-1", "-2", "10", "100"},
	"parse":  {"'2024-02-29'", "'29 Feb 2024'", "'12:34:56'", "'2024-060'", "'abc'", "'20240229'", "''", "'1,234.5'", "'-12'", "' 7 '", "'2024-02-30'"},
	"encode": {"'hex'", "'base64'", "'escape'", "'x'"},
	"string": {"''", "'a'", "'b'", "','", "'ab'", "'x'", "'Ä'", "' '", "'aa'", "NULL"},
	"form":   {"'%s'", "'%s and %s'", "'%I'", "'%L'", "'%%'", "'%2$s %1$s'", "'%10s|'", "'%-5s|'", "'%'", "'%x'", "'a'", "'%s %s %s'", "'%*s'"},
	"small":  {"0", "1", "2", "3", "5", "-1", "10", "12"},
	"units":  {"'1 hour'", "'kB'"},
}

// places name the special values of a function's arguments.
var places = map[string][]string{
	"regexp_match": {"", "regex", "flags"}, "regexp_matches": {"", "regex", "flags"}, "regexp_replace": {"", "regex", "newtext", "flags", "flags", "flags"}, "regexp_like": {"", "regex", "flags"},
	"regexp_count": {"", "regex", "small", "flags"}, "regexp_instr": {"", "regex", "small", "small", "small", "flags", "small"}, "regexp_substr": {"", "regex", "small", "small", "flags", "small"},
	"regexp_split_to_array": {"", "regex", "flags"}, "regexp_split_to_table": {"", "regex", "flags"}, "~": {"", "regex"}, "!~": {"", "regex"}, "~*": {"", "regex"}, "!~*": {"", "regex"},
	"textregexsubstr": {"", "regex"}, "~~": {"", "like"}, "!~~": {"", "like"}, "~~*": {"", "like"}, "!~~*": {"", "like"}, "like": {"", "like"}, "notlike": {"", "like"},
	"date_trunc": {"field", "", "zone"}, "date_part": {"field"}, "extract": {"field"}, "timezone": {"zone"}, "to_char": {"", "formats"}, "to_date": {"parse", "dates"}, "to_timestamp": {"parse", "dates"}, "to_number": {"parse", "digits"},
	"left": {"", "length"}, "right": {"", "length"}, "lpad": {"", "length", "string"}, "rpad": {"", "length", "string"}, "repeat": {"", "length"}, "substr": {"", "length", "length"}, "substring": {"", "length", "length"},
	"split_part": {"", "string", "length"}, "overlay": {"", "string", "length", "length"}, "encode": {"", "encode"}, "decode": {"", "encode"}, "string_to_array": {"", "string", "string"}, "array_to_string": {"", "string", "string"},
	"strpos": {"", "string"}, "position": {"", "string"}, "replace": {"", "string", "string"}, "translate": {"", "string", "string"}, "trim": {"", "string"}, "btrim": {"", "string"}, "ltrim": {"", "string"}, "rtrim": {"", "string"},
	"round": {"", "length"}, "trunc": {"", "length"}, "chr": {"small"}, "format": {"form"}, "width_bucket": {"", "", "", "small"}, "make_date": {"", "small", "small"}, "make_timestamp": {"", "small", "small", "small", "small"},
	"power": {"", "small"}, "pow": {"", "small"}, "^": {"", "small"}, "factorial": {"small"}, "<<": {"", "small"}, ">>": {"", "small"}, "make_interval": {"small", "small", "small", "small", "small", "small", "small"}, "starts_with": {"", "string"}, "generate_series": {"small", "small", "small"},
	"array_fill": {"", ""}, "exp": {"small"},
}

// drawing is the state of one run of the test.
type drawing struct {
	t       *testing.T
	rng     *rand.Rand
	conn    *pgx.Conn
	e       sandbox.Engine
	session sandbox.Session
	zone    *time.Location
	asked   map[string]*tally // by what was drawn: function, operator, …
	calls   int
	shown   map[string]int
}

// tally is what became of the calls of one thing.
type tally struct{ equal, refused, faults, states int }

func newDrawing(t *testing.T, seed uint64, zone string) *drawing {
	server := pgtest.Shared(t)
	database := fmt.Sprintf("drawn_%d", seed)
	server.Exec(t, "postgres", "CREATE DATABASE "+database+" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'")
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	d := &drawing{t: t, rng: rand.New(rand.NewPCG(seed, 8)), conn: conn, e: sandboxtest.Embedded(t), session: sandboxtest.Session,
		asked: map[string]*tally{}, shown: map[string]int{}}
	if d.zone, err = time.LoadLocation(zone); err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for name, value := range d.session.Settings {
		settings[name] = value
	}
	settings["timezone"] = zone
	d.session.Settings = settings
	d.exec("SET TimeZone = '" + zone + "'")
	d.exec("SET statement_timeout = '5s'")
	d.exec("SET lc_messages = 'C'")
	return d
}

func (d *drawing) exec(sql string) {
	d.t.Helper()
	if _, err := d.conn.Exec(context.Background(), sql); err != nil {
		d.t.Fatal(err)
	}
}

func (d *drawing) one(list []string) string { return list[d.rng.IntN(len(list))] }

// embedded is the answer of the embedded sandbox as its session would be sent it.
func (d *drawing) embedded(query string) (answer, refusal string) {
	d.t.Helper()
	q, no := outer.Render(sandboxtest.Parse(d.t, query), d.e.Dialect())
	if no != nil {
		if no.SQLState == "DP002" {
			if !strings.Contains(no.Hint, "sandbox.url") {
				d.t.Errorf("%s\n    the refusal %q does not name the twin: %s", query, no.Message, no.Hint)
			}
			return "", no.Message
		}
		return "error " + no.SQLState, ""
	}
	rows, err := d.e.Query(context.Background(), d.session, q, nil)
	var fault *scalar.Error
	if errors.As(err, &fault) {
		if fault.SQLState == "DP002" || fault.SQLState == "0A000" {
			return "", fault.Message
		}
		return "error " + fault.SQLState, ""
	}
	if err != nil {
		d.t.Fatalf("%s\n    %v", query, err)
	}
	columns := rows.Value().Columns
	var out strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&out, "%s:%d ", c.Name, encoding.WireType(c.Type))
	}
	encoder := encoding.NewEncoder(columns, nil, encoding.Style{Zone: d.zone, Charset: encoding.CharsetOf("UTF8")}, nil)
	for i := range rows.Value().Data {
		out.WriteString("| ")
		message, err := encoder.Row(nil, rows, i)
		if err != nil {
			return "error of the encoder", ""
		}
		for message = message[7:]; len(message) > 0; {
			n := binary.BigEndian.Uint32(message)
			if message = message[4:]; n == 0xFFFFFFFF {
				out.WriteString("∅ ")
				continue
			}
			out.Write(message[:n])
			out.WriteByte(' ')
			message = message[n:]
		}
	}
	return out.String(), ""
}

// unsigned writes an answer without the sign of its zeros.
func unsigned(answer string) string { return minusZero.ReplaceAllString(answer, "${1}0$2") }

var minusZero = regexp.MustCompile(`([ {,])-0([ },])`)

// hold asks both and compares.
func (d *drawing) hold(what, query string) {
	d.t.Helper()
	if _, err := pg.Parse(query); err != nil { // extract(NULL FROM …)
		return
	}
	d.calls++
	have := d.asked[what]
	if have == nil {
		have = &tally{}
		d.asked[what] = have
	}
	got, refusal := d.embedded(query)
	if refusal != "" {
		have.refused++
		return
	}
	want := sandboxtest.OnPostgreSQL(d.conn, query)
	failed, fails := strings.HasPrefix(got, "error"), strings.HasPrefix(want, "error")
	if told := outer.Failing(sandboxtest.Parse(d.t, query), scalar.Env{Zone: d.zone, Now: time.Now()}, true); told != nil && !fails {
		d.t.Errorf("%s\n    is told to fail by its constants, %s %s, and does not", query, told.SQLState, told.Message)
	}
	switch {
	case got == want, want == "error 57014": // its time was over
		have.equal++
	case got == "error 54000" && strings.Count(want, " | ") > 100_000: // the most memory that a query may take, which a busy machine's collector reaches
		have.refused++
	case (strings.Contains(what, "OVER") || strings.HasPrefix(what, "a ") || strings.Contains(what, "{rows:")) && unsigned(got) == unsigned(want): // docs/sandboxes.md tells of it
		have.equal++
	case failed && fails && got[:8] == want[:8]: // of one class: there is no number
		have.states++
	default:
		have.faults++
		if d.shown[what]++; d.shown[what] <= 3 {
			d.t.Errorf("%s\n    got  %.300s\n    want %.300s", query, got, want)
		}
	}
}

// argument draws a value of a type, or of the place that it has.
func (d *drawing) argument(name string, i int, kind string) string {
	if d.rng.IntN(14) == 0 {
		return "NULL::" + kind
	}
	if at := places[name]; i < len(at) && at[i] != "" {
		list := special[at[i]]
		if at[i] == "formats" {
			list = special["dates"]
		}
		if slices.Contains([]string{"integer", "bigint", "smallint", "numeric", "double precision", "real"}, kind) == (list[0] == "0") && d.rng.IntN(8) > 0 {
			return d.one(list)
		}
	}
	value := d.one(edges[kind])
	if d.rng.IntN(3) == 0 { // the same value, of which the binder does not see that it is constant
		return "(SELECT " + value + ")"
	}
	return value
}

// callable is a function, operator or aggregate of the server's catalog with the types of one overload.
type callable struct {
	Kind, Name string // Kind: a, f, o
	Args       []string
}

// catalogCalls lists what analysts may call: not what stands behind operators, indexes and aggregates, and not what tells of
// the server.
const catalogCalls = `
	SELECT CASE prokind WHEN 'a' THEN 'a' ELSE 'f' END AS kind, proname::text AS name, ARRAY(SELECT format_type(t, -1) FROM unnest(proargtypes) WITH ORDINALITY u(t, n) ORDER BY n) AS args
	FROM pg_proc p WHERE pronamespace = 11 AND prokind IN ('f', 'a') AND prorettype NOT IN (2278, 2281, 2279, 3838) AND (provolatile <> 'v' OR proname LIKE 'regexp%')
		AND NOT EXISTS (SELECT FROM pg_operator WHERE oprcode = p.oid OR oprrest = p.oid OR oprjoin = p.oid) AND NOT EXISTS (SELECT FROM pg_amproc WHERE amproc = p.oid)
		AND NOT EXISTS (SELECT FROM pg_aggregate WHERE p.oid IN (aggtransfn, aggfinalfn, aggmtransfn, aggminvtransfn, aggmfinalfn, aggcombinefn, aggserialfn, aggdeserialfn))
		AND proname !~ '^(pg_|_pg|has_|to_reg|binary_upgrade|brin|gin|gist|spg|hash|bt|lo_|ts_|txid|inet|network|xml|xpath|query_to|table_to|schema_to|database_to|cursor_to|json_populate|json_to_record|jsonb_populate|jsonb_to_record|amvalid|tid|now$|transaction_timestamp$|statement_timestamp$|current_|obj_desc|col_desc|shobj|format_type|row_security|acl|currval|lastval|set_config|session_user|version|getdatabaseenc|float[48](um|up)|int[248](um|up|in|out|abs)|.*(_support|_sortsupport|recv|send|typmodin|typmodout|_in|_out)$|array_(subscript|typanalyze)|cash|convert|to_ascii|to_ts|phraseto|plainto|websearch|setweight|numnode|querytree|sha|unistr|normal|is_norm|suppress|icregex|nameicregex|like_|similar_escape|generate_subscripts$)'
	UNION ALL
	SELECT 'o', oprname, CASE WHEN oprleft = 0 THEN ARRAY[format_type(oprright, -1)] ELSE ARRAY[format_type(oprleft, -1), format_type(oprright, -1)] END FROM pg_operator WHERE oprnamespace = 11 AND oprname !~ '^(~[<>]|\*)[<>=~]'
	ORDER BY 1, 2, 3`

// polymorphic are types of which one is drawn for those that are any.
var polymorphic = []map[string]string{
	{"anyelement": "integer", "anyarray": "integer[]", "anynonarray": "integer", "anycompatible": "text", "anycompatiblearray": "text[]", "anycompatiblenonarray": "text", `"any"`: "text"},
	{"anyelement": "text", "anyarray": "text[]", "anynonarray": "boolean", "anycompatible": "integer", "anycompatiblearray": "integer[]", "anycompatiblenonarray": "integer", `"any"`: "boolean"},
	{"anyelement": "numeric", "anyarray": "numeric[]", "anynonarray": "numeric", "anycompatible": "numeric", "anycompatiblearray": "numeric[]", "anycompatiblenonarray": "numeric", `"any"`: "timestamp without time zone"},
	{"anyelement": "double precision", "anyarray": "double precision[]", "anynonarray": "double precision", "anycompatible": "double precision", "anycompatiblearray": "double precision[]", "anycompatiblenonarray": "double precision", `"any"`: "double precision"},
}

// catalog reads that list, with types for those that are any; what takes types of which no values are drawn is left out.
func (d *drawing) catalog() (list []callable) {
	d.t.Helper()
	rows, err := d.conn.Query(context.Background(), catalogCalls)
	if err != nil {
		d.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[callable])
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range all {
		for i, of := range polymorphic {
			one, any, known := callable{Kind: c.Kind, Name: c.Name}, false, true
			for _, a := range c.Args {
				if p := of[a]; p != "" {
					a, any = p, true
				}
				one.Args = append(one.Args, a)
				known = known && edges[a] != nil
			}
			if known && (any || i == 0) {
				list = append(list, one)
			}
		}
	}
	return list
}

// call draws one call.
func (d *drawing) call(c callable) string {
	args := make([]string, len(c.Args))
	for i, kind := range c.Args {
		args[i] = d.argument(c.Name, i, kind)
	}
	switch {
	case c.Kind == "o" && len(args) == 1:
		return "SELECT " + c.Name + " (" + args[0] + ")"
	case c.Kind == "o":
		return "SELECT " + args[0] + " " + c.Name + " " + args[1]
	case c.Kind == "a":
		return d.aggregated(c)
	}
	return `SELECT "` + c.Name + `"(` + strings.Join(args, ", ") + ")"
}

// aggregated draws an aggregate over a few rows.
func (d *drawing) aggregated(c callable) string {
	columns := []string{"x", "y", "z"}[:len(c.Args)]
	var rows []string
	for range 1 + d.rng.IntN(4) {
		row := []string{strconv.Itoa(len(rows))}
		for _, kind := range c.Args {
			row = append(row, d.argument("", 0, kind))
		}
		rows = append(rows, "("+strings.Join(row, ", ")+")")
	}
	given := columns
	if c.Name == "string_agg" && len(rows) > 1 { // its separator is a constant for most people
		given = []string{"x", d.argument("", 0, c.Args[1])}
	}
	call := c.Name + "(" + strings.Join(given, ", ")
	if len(columns) == 0 {
		call = c.Name + "(*"
	}
	from := " FROM (VALUES " + strings.Join(rows, ", ") + ") AS t(" + strings.Join(append([]string{"i"}, columns...), ", ") + ")"
	switch d.rng.IntN(7) {
	case 0:
		if len(columns) == 1 {
			return "SELECT " + c.Name + "(DISTINCT x)" + from
		}
	case 1:
		return "SELECT " + call + ") FILTER (WHERE i > 0)" + from
	case 2:
		return "SELECT " + call + ") OVER (ORDER BY i)" + from + " ORDER BY i"
	case 3:
		return "SELECT " + call + ") OVER (ORDER BY i ROWS 1 PRECEDING)" + from + " ORDER BY i"
	case 4:
		if len(columns) > 0 {
			return "SELECT " + call + " ORDER BY x DESC)" + from
		}
	}
	if len(columns) > 0 {
		return "SELECT " + call + " ORDER BY i)" + from
	}
	return "SELECT " + call + ")" + from
}

// forms are pieces of SQL that no catalog lists; in braces stands a type or a special value.
var forms = []string{
	"substring({text} FROM {regex})", "substring({text} FROM {length} FOR {length})", "substring({text} FOR {length})", "substring({text} SIMILAR 'a#\"b#\"c' ESCAPE '#')", "overlay({text} PLACING {string} FROM {length})",
	"overlay({text} PLACING {string} FROM {length} FOR {length})", "position({string} IN {text})", "trim({text})", "trim(LEADING {string} FROM {text})", "trim(TRAILING {string} FROM {text})", "trim(BOTH {string} FROM {text})",
	"{text} SIMILAR TO {like}", "{text} SIMILAR TO '(a|b)%'", "{text} NOT SIMILAR TO 'a+_'", "{text} LIKE {like} ESCAPE '#'", "{text} LIKE {like} ESCAPE ''", "{text} ILIKE {like}", "{text} NOT LIKE {like}", "{text} LIKE ANY (ARRAY['a%', '%b'])",
	"{text} ~ {regex}", "{text} ~* {regex}", "{text} !~ {regex}", "{text} ~ ANY (ARRAY['a', 'b'])", "regexp_match({text}, {regex})", "regexp_match({text}, {regex}, {flags})", "regexp_replace({text}, {regex}, {newtext})", "regexp_replace({text}, {regex}, {newtext}, {flags})",
	"regexp_split_to_array({text}, {regex})", "regexp_count({text}, {regex})", "regexp_matches({text}, {regex}, 'g')", "regexp_like({text}, {regex})", "regexp_substr({text}, {regex})", "regexp_instr({text}, {regex})",
	"extract(year FROM {date})", "extract(epoch FROM {interval})", "extract({field} FROM {timestamp without time zone})", "extract({field} FROM {timestamp with time zone})", "extract({field} FROM {date})", "extract({field} FROM {interval})", "date_part({field}, {date})",
	"{timestamp without time zone} AT TIME ZONE {zone}", "{timestamp with time zone} AT TIME ZONE {zone}", "({date}, {date}) OVERLAPS ({date}, {date})", "{date} + {interval}", "{date} - {date}", "age({timestamp without time zone}, {timestamp without time zone})",
	"CASE WHEN {boolean} THEN {integer} ELSE {numeric} END", "CASE {text} WHEN 'a' THEN 1 WHEN {text} THEN 2 END", "COALESCE({integer}, {numeric})", "COALESCE({text}, 'x')", "NULLIF({numeric}, {integer})", "NULLIF({text}, 'a')", "GREATEST({integer}, {double precision})",
	"LEAST({numeric}, {numeric})", "GREATEST({text}, {text})", "LEAST({date}, {timestamp without time zone})", "GREATEST({double precision}, {double precision})", "LEAST({real}, {double precision}, NULL)", "{integer} IN ({integer}, {bigint}, {numeric})", "{text} IN ('a', {text})",
	"{double precision} IN ({double precision}, 1)", "{numeric} BETWEEN {numeric} AND {integer}", "{date} BETWEEN SYMMETRIC {date} AND {date}", "{text} IS DISTINCT FROM {text}", "{double precision} IS NOT DISTINCT FROM {double precision}", "{numeric} IS DISTINCT FROM {numeric}",
	"{boolean} IS NOT TRUE", "{boolean} AND {boolean} OR {boolean}", "NOT {boolean}", "{integer}::text || {numeric}", "{text} || {boolean}", "{double precision}::text", "{real}::text", "{numeric}::text || 'x'", "{text} COLLATE \"C\" < {text}", "{text} < {text}", "{integer} = ANY ({integer[]})", "{text} = ANY ({text[]})",
	"{integer} <> ALL ({integer[]})", "{integer} > ANY ({integer[]})", "({integer[]})[{length}]", "({text[]})[{length}]", "({integer[]})[{length}:{length}]", "({text[]})[2:]", "ARRAY[{integer}, {integer}]", "ARRAY[{numeric}, {integer}]", "ARRAY[{text}, {text}]", "ARRAY[{double precision}]", "ARRAY[{boolean}]", "ARRAY[{date}]",
	"ARRAY[{interval}]", "ARRAY[{timestamp with time zone}]", "ARRAY[{integer[]}, {integer[]}]", "{integer[]} || {integer}", "{integer} || {integer[]}", "{text[]} || {text[]}", "{text[]} || {text}", "{integer[]}::text", "{text[]}::text", "{integer[]}::text[]", "{text[]}::varchar[]", "{numeric[]}::integer[]",
	"'{1,2}'::integer[] = {integer[]}", "{integer[]} < {integer[]}", "{text[]} = {text[]}", "{double precision[]} = {double precision[]}", "{numeric[]} = {numeric[]}", "{integer[]} @> {integer[]}", "{integer[]} && {integer[]}", "{text[]} <@ {text[]}", "array_agg({integer})", "unnest({text[]})", "unnest({integer[]})",
	"format({form})", "format({form}, {text})", "format({form}, {text}, {integer})", "format({form}, {numeric}, {boolean}, {date})", "concat({text}, {integer}, {boolean}, NULL, {double precision})", "concat_ws({string}, {text}, {numeric}, NULL, {date})", "concat({timestamp with time zone}, {interval})", "concat({text[]})",
	"quote_literal({text})", "quote_ident({text})", "quote_nullable({text})", "quote_literal({integer})", "to_char({timestamp without time zone}, {dates})", "to_char({date}, {dates})", "to_char({timestamp with time zone}, {dates})", "to_char({interval}, {dates})", "to_char({integer}, {digits})", "to_char({numeric}, {digits})",
	"to_char({double precision}, {digits})", "to_char({bigint}, {digits})", "to_date({parse}, {dates})", "to_timestamp({parse}, {dates})", "to_number({parse}, {digits})", "to_timestamp({double precision})", "to_timestamp({integer})", "make_interval(days => {small}, hours => {small})", "make_interval(years => 1, months => {small}, secs => {double precision})",
	"make_date({integer}, {small}, {small})", "make_timestamp(2024, {small}, {small}, 1, 2, {double precision})", "make_timestamptz(2024, {small}, {small}, 1, 2, 3.5)", "make_time({small}, {small}, 1.5)", "date_trunc({field}, {timestamp without time zone})", "date_trunc({field}, {timestamp with time zone}, {zone})", "date_trunc({field}, {date})",
	"date_bin({interval}, {timestamp without time zone}, timestamp '2001-01-01')", "generate_series({small}, {small})", "generate_series({small}, {small}, {small})", "generate_series({date}, date '2024-03-05', interval '1 day')", "generate_series(1.5, 4.0, {numeric})", "generate_series(timestamp '2024-01-31', timestamp '2024-05-31', interval '1 mon')",
	"generate_series(timestamptz '2024-03-30 12:00+00', timestamptz '2024-04-02 12:00+00', interval '1 day')", "string_to_array({text}, {string})", "string_to_array({text}, {string}, {string})", "array_to_string({text[]}, {string})", "array_to_string({integer[]}, {string}, {string})", "array_to_string({numeric[]}, ',')", "array_to_string({double precision[]}, ',')", "array_to_string({date[]}, ',')",
	"string_to_table({text}, {string})", "regexp_split_to_table({text}, {regex})", "array_position({integer[]}, {integer})", "array_position({text[]}, {text})", "array_remove({integer[]}, {integer})", "array_replace({integer[]}, {integer}, {integer})", "array_length({integer[]}, {length})", "array_upper({text[]}, 1)", "cardinality({integer[]})", "array_append({integer[]}, {integer})",
	"array_prepend({integer}, {integer[]})", "array_cat({text[]}, {text[]})", "array_dims({integer[]})", "array_ndims({integer[]})", "array_fill({integer}, ARRAY[3])", "array_positions({integer[]}, {integer})", "trim_array({integer[]}, {small})", "array_lower({integer[]}, 1)", "{json} -> 'a'", "{json} ->> 'a'", "{json} -> {length}", "{json} #>> '{b,0}'", "{jsonb} -> 'a'", "{jsonb} ->> 'b'", "{jsonb} @> '{\"a\": 1}'",
	"{jsonb} ? 'a'", "{jsonb} || {jsonb}", "{jsonb} - 'a'", "jsonb_typeof({jsonb})", "jsonb_pretty({jsonb})", "json_build_object('k', {integer}, 'v', {numeric})", "json_build_object('k', {text}, 'v', {date})", "jsonb_build_object('k', {integer}, 'j', {text})", "json_build_array({integer}, {text}, NULL)", "to_json({text})", "to_json({numeric})", "to_json({timestamp without time zone})", "to_jsonb({integer})",
	"to_json({double precision})", "json_build_object('f', {double precision}, 'b', {boolean}, 't', {timestamp without time zone})", "json_agg({text})", "json_agg({double precision})", "json_object_agg({text}, {numeric})", "row_to_json(ROW({integer}, {text}))", "(SELECT row_to_json(t) FROM (SELECT {integer} AS a, {text} AS b, {double precision} AS c, {date} AS d) t)", "ROW({integer}, {text})", "ROW({integer}, {integer}) = ROW({integer}, {integer})",
	"ROW({integer}, {integer}) < ROW({integer}, {integer})", "({integer}, {text}) IN (({integer}, {text}), (1, 'a'))", "{integer} / {integer}", "{integer} % {integer}", "{bigint} / {bigint}", "{bigint} * {integer}", "{integer} + {integer}", "{smallint} + {smallint}", "{smallint} * {integer}", "-{integer}", "-{smallint}", "-{bigint}", "-{numeric}", "-{double precision}", "-{interval}", "+{integer}", "@ {integer}", "~{integer}",
	"{numeric} / {numeric}", "{numeric} / {integer}", "{numeric} % {numeric}", "{numeric} * {numeric}", "{integer} / 3.0", "round({numeric}, {length})", "round({numeric})", "round({double precision})", "trunc({numeric}, {length})", "ceil({double precision})", "floor({numeric})", "{numeric} ^ {small}", "{double precision} ^ {double precision}", "{integer} ^ {small}", "power({numeric}, {small})", "sqrt({numeric})", "cbrt({double precision})",
	"exp({small})", "ln({numeric})", "log({numeric})", "log(2.0, {numeric})", "{double precision}::integer", "{double precision}::bigint", "{double precision}::numeric", "{numeric}::integer", "{numeric}::numeric(6,1)", "{double precision}::numeric(10,2)", "{text}::integer", "{text}::numeric", "{text}::date", "{text}::boolean", "{text}::double precision", "{integer}::boolean", "{boolean}::integer", "{text}::varchar(2)", "{text}::char(3)", "{integer}::varchar(1)",
	"{integer} & {integer}", "{integer} | {integer}", "{integer} # {integer}", "{integer} << {small}", "{integer} >> {length}", "{bigint} << {length}", "{interval} * {double precision}", "{interval} / {small}", "{interval} = {interval}", "{interval} < {interval}", "justify_interval({interval})", "justify_days({interval})", "{timestamp without time zone} - {timestamp without time zone}", "{timestamp with time zone} + {interval}", "{timestamp without time zone} + {interval}",
	"{timestamp with time zone} - {interval}", "{timestamp with time zone}::date", "{timestamp with time zone}::timestamp", "{timestamp without time zone}::timestamptz", "{date}::timestamptz", "{timestamp with time zone}::text", "{timestamp without time zone}::date", "{interval}::text", "{date}::text", "{timestamp without time zone}::timestamp(0)", "{timestamp with time zone}::time", "{date} = {timestamp without time zone}", "{date} < {timestamp with time zone}", "{date} + {integer}", "{uuid}::text", "{uuid} < {uuid}",
	"md5({text})", "encode({bytea}, {encode})", "decode({text}, {encode})", "length({text})", "char_length({text})", "octet_length({text})", "bit_length({text})", "upper({text})", "lower({text})", "initcap({text})", "ascii({text})", "chr({integer})", "reverse({text})", "to_hex({integer})", "to_hex({bigint})", "left({text}, {length})", "right({text}, {length})", "repeat({text}, {length})", "translate({text}, {string}, {string})", "strpos({text}, {string})",
	"split_part({text}, {string}, {length})", "lpad({text}, {length}, {string})", "rpad({text}, {length}, {string})", "ltrim({text}, {string})", "replace({text}, {string}, {string})", "starts_with({text}, {string})", "{text} ^@ {string}", "num_nulls({text}, {integer}, NULL)", "num_nonnulls({text}, {integer})", "pg_typeof({numeric})", "width_bucket({double precision}, 0, 10, {small})", "width_bucket({numeric}, 0.0, 10.0, {small})", "width_bucket({numeric}, ARRAY[1.0, 2.5])",
	"gcd({integer}, {integer})", "lcm({bigint}, {integer})", "factorial({small})", "mod({integer}, {integer})", "div({numeric}, {numeric})", "sign({numeric})", "sign({double precision})", "abs({integer})", "abs({double precision})", "scale({numeric})", "trim_scale({numeric})", "degrees({double precision})", "sin({double precision})", "atan2({double precision}, {double precision})", "isfinite({date})", "isfinite({interval})", "pg_size_pretty({bigint})", "exists(SELECT 1 WHERE {boolean})", "{integer} IN (SELECT {integer})",
	"{integer} > ALL (SELECT {integer})", "(SELECT {numeric} UNION SELECT {numeric} ORDER BY 1 LIMIT 1)", "greatest({interval}, {interval})", "{numeric} = {double precision}", "{integer} = {double precision}", "{bigint} < {numeric}", "{real} = {double precision}", "{real} + {real}", "{real} * {double precision}", "{real} / {integer}", "{real}::double precision", "{real}::numeric", "{double precision}::real", "{numeric}::double precision", "{bigint}::double precision", "{bigint}::real", "{double precision} / {double precision}",
	"{double precision} * {double precision}", "{double precision} + {double precision}", "{double precision} < {double precision}", "{double precision} = {double precision}", "{double precision} - {integer}", "encode({text}::bytea, 'hex')", "sha256({bytea})", "{text}::bytea",
}

// rowForms are statements over a few drawn rows, in braces the type of their column x; {rows:…} is the FROM item t(i, x).
var rowForms = []string{
	"SELECT x FROM {rows:text} ORDER BY x", "SELECT x FROM {rows:text} ORDER BY x DESC NULLS LAST", "SELECT x FROM {rows:double precision} ORDER BY x, i", "SELECT x FROM {rows:numeric} ORDER BY x, i", "SELECT x FROM {rows:date} ORDER BY x DESC, i", "SELECT x FROM {rows:interval} ORDER BY x, i", "SELECT x FROM {rows:uuid} ORDER BY x, i", "SELECT x FROM {rows:boolean} ORDER BY x, i",
	"SELECT x FROM {rows:timestamp with time zone} ORDER BY x, i", "SELECT x, count(*) FROM {rows:text} GROUP BY x ORDER BY x", "SELECT count(DISTINCT x) FROM {rows:double precision}", "SELECT count(DISTINCT x) FROM {rows:numeric}", "SELECT count(DISTINCT x) FROM {rows:interval}", "SELECT DISTINCT x FROM {rows:integer} ORDER BY x", "SELECT count(*) FROM (SELECT DISTINCT x FROM {rows:double precision}) q",
	"SELECT count(*) FROM (SELECT x FROM {rows:numeric} GROUP BY x) q", "SELECT count(*) FROM (SELECT x FROM {rows:double precision} UNION SELECT x FROM {rows:double precision}) q", "SELECT sum(x) FROM {rows:double precision}", "SELECT avg(x) FROM {rows:integer}", "SELECT avg(x) FROM {rows:numeric}", "SELECT avg(x) FROM {rows:bigint}", "SELECT sum(x) FROM {rows:bigint}", "SELECT sum(x) FROM {rows:integer}", "SELECT sum(x) FROM {rows:numeric}",
	"SELECT min(x), max(x) FROM {rows:double precision}", "SELECT min(x), max(x) FROM {rows:text}", "SELECT min(x), max(x) FROM {rows:date}", "SELECT min(x), max(x) FROM {rows:interval}", "SELECT min(x), max(x) FROM {rows:numeric}", "SELECT stddev(x), variance(x) FROM {rows:integer}", "SELECT stddev_pop(x), var_samp(x) FROM {rows:numeric}", "SELECT stddev(x) FROM {rows:double precision}", "SELECT string_agg(x, ',' ORDER BY x) FROM {rows:text}",
	"SELECT array_agg(x ORDER BY i) FROM {rows:text}", "SELECT array_agg(x ORDER BY x, i) FROM {rows:double precision}", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM {rows:double precision}", "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x) FROM {rows:integer}", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM {rows:integer}", "SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY x) FROM {rows:double precision}",
	"SELECT percentile_disc(0.75) WITHIN GROUP (ORDER BY x) FROM {rows:text}", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC) FROM {rows:double precision}", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM {rows:interval}", "SELECT mode() WITHIN GROUP (ORDER BY x) FROM {rows:integer}", "SELECT i, rank() OVER (ORDER BY x) FROM {rows:double precision} ORDER BY i", "SELECT i, rank() OVER (ORDER BY x DESC) FROM {rows:numeric} ORDER BY i",
	"SELECT i, dense_rank() OVER (ORDER BY x) FROM {rows:text} ORDER BY i", "SELECT i, ntile({small}) OVER (ORDER BY i) FROM {rows:text} ORDER BY i", "SELECT i, lag(x, {length}) OVER (ORDER BY i) FROM {rows:integer} ORDER BY i", "SELECT i, lead(x, {length}, {integer}) OVER (ORDER BY i) FROM {rows:integer} ORDER BY i", "SELECT i, lag(x, 1, 'none') OVER (ORDER BY i) FROM {rows:text} ORDER BY i", "SELECT i, lag(x, 1, 0) OVER (ORDER BY i) FROM {rows:numeric} ORDER BY i",
	"SELECT i, nth_value(x, {length}) OVER (ORDER BY i) FROM {rows:integer} ORDER BY i", "SELECT i, first_value(x) OVER (ORDER BY x, i) FROM {rows:double precision} ORDER BY i", "SELECT i, last_value(x) OVER (PARTITION BY x ORDER BY i) FROM {rows:double precision} ORDER BY i", "SELECT i, percent_rank() OVER (ORDER BY x), cume_dist() OVER (ORDER BY x) FROM {rows:integer} ORDER BY i",
	"SELECT i, sum(x) OVER (ORDER BY i ROWS {length} PRECEDING) FROM {rows:integer} ORDER BY i", "SELECT i, avg(x) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM {rows:numeric} ORDER BY i", "SELECT i, count(*) OVER (ORDER BY x RANGE BETWEEN {length} PRECEDING AND CURRENT ROW) FROM {rows:integer} ORDER BY i", "SELECT i, count(x) OVER (ORDER BY x RANGE BETWEEN interval '1 day' PRECEDING AND CURRENT ROW) FROM {rows:date} ORDER BY i",
	"SELECT i, sum(x) OVER (ORDER BY i) FROM {rows:double precision} ORDER BY i", "SELECT a.i, b.i FROM {rows:double precision} a JOIN {rows:double precision} b ON a.x = b.x ORDER BY 1, 2", "SELECT a.i, b.i FROM {rows:numeric} a JOIN {rows:numeric} b ON a.x = b.x ORDER BY 1, 2", "SELECT a.i FROM {rows:interval} a JOIN {rows:interval} b USING (x) ORDER BY 1", "SELECT i FROM {rows:integer} WHERE x IN (SELECT x FROM {rows:bigint}) ORDER BY 1",
	"SELECT i FROM {rows:integer} WHERE x NOT IN (SELECT x FROM {rows:integer}) ORDER BY 1", "SELECT x FROM {rows:integer} LIMIT {length}", "SELECT count(*) FROM (SELECT x FROM {rows:integer} ORDER BY i OFFSET {small}) q", "SELECT v, o FROM unnest({text[]}) WITH ORDINALITY AS u(v, o)", "SELECT * FROM unnest({integer[]}, {text[]}) AS u(a, b)", "SELECT * FROM string_to_table({text}, {string}) WITH ORDINALITY", "SELECT g FROM generate_series({small}, {small}, {small}) g",
	"SELECT * FROM regexp_matches({text}, {regex}, 'g')", "SELECT * FROM regexp_split_to_table({text}, {regex})", "SELECT bool_and(x), bool_or(x), every(x) FROM {rows:boolean}", "SELECT corr(x, i), covar_pop(x, i), regr_slope(x, i), regr_count(x, i) FROM {rows:double precision}", "SELECT bit_and(x), bit_or(x) FROM {rows:integer}", "SELECT json_agg(x ORDER BY i) FROM {rows:text}", "SELECT json_agg(t ORDER BY i) FROM {rows:text}", "SELECT pg_size_pretty(sum(x)) FROM {rows:bigint}", "SELECT json_agg(x ORDER BY i) FROM {rows:double precision}", "SELECT json_object_agg(i, x ORDER BY i) FROM {rows:text}",
	"SELECT x, grouping(x), count(*) FROM {rows:text} GROUP BY ROLLUP (x) ORDER BY 2, 1", "SELECT count(*) FILTER (WHERE x > 0) FROM {rows:double precision}", "SELECT x FROM {rows:integer} UNION SELECT x FROM {rows:numeric} ORDER BY 1", "SELECT x FROM {rows:integer} EXCEPT ALL SELECT x FROM {rows:integer} ORDER BY 1", "SELECT x FROM {rows:text} INTERSECT SELECT x FROM {rows:text} ORDER BY 1",
	"SELECT avg(x) FROM {rows:interval}", "SELECT sum(x) FROM {rows:interval}", "SELECT sum(x) FROM {rows:real}", "SELECT avg(x) FROM {rows:real}", "SELECT sum(DISTINCT x) FROM {rows:numeric}", "SELECT avg(DISTINCT x) FROM {rows:integer}", "SELECT string_agg(DISTINCT x, ',' ORDER BY x) FROM {rows:text}", "SELECT array_agg(DISTINCT x ORDER BY x) FROM {rows:integer}", "SELECT DISTINCT ON (x) x, i FROM {rows:integer} ORDER BY x, i DESC",
	"SELECT {time without time zone} < {time without time zone}", "SELECT {time without time zone} + {interval}", "SELECT {time without time zone} - {interval}", "SELECT {time without time zone} - {time without time zone}", "SELECT {date} + {time without time zone}",
	"SELECT {time without time zone}::text", "SELECT {time without time zone}::interval", "SELECT {time without time zone} < {interval}", "SELECT {time without time zone}::time(0)", "SELECT {timestamp without time zone}::time",
	"SELECT {timestamp without time zone}::time(1)", "SELECT {interval}::time", "SELECT to_char({time without time zone}, 'HH12:MI:SS AM')", "SELECT extract({field} FROM {time without time zone})", "SELECT date_trunc({field}, {time without time zone})",
	"SELECT GREATEST({time without time zone}, '12:00')", "SELECT ARRAY[{time without time zone}]", "SELECT NULLIF({time without time zone}, '24:00')", "SELECT json_build_object('t', {time without time zone})", "SELECT {time without time zone} IN ('12:34:56.789', {time without time zone})",
	"SELECT concat({time without time zone})", "SELECT make_time({small}, {small}, {double precision})", "SELECT CASE WHEN {boolean} THEN {time without time zone} END",
	"SELECT x FROM {rows:time without time zone} ORDER BY x DESC, i", "SELECT min(x), max(x), count(DISTINCT x) FROM {rows:time without time zone}", "SELECT x, count(*) FROM {rows:time without time zone} GROUP BY x ORDER BY 1",
}

// filled puts drawn values in a form's braces.
func (d *drawing) filled(form string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(form, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		what, after, _ := strings.Cut(rest, "}")
		rows, of := strings.CutPrefix(what, "rows:")
		switch {
		case of:
			var values []string
			for range 1 + d.rng.IntN(5) {
				values = append(values, "("+strconv.Itoa(len(values))+", "+d.argument("", 0, rows)+")")
			}
			alias := ""
			if !strings.HasPrefix(after, " a ") && !strings.HasPrefix(after, " b ") {
				alias = " AS t"
			}
			out.WriteString("(SELECT * FROM (VALUES " + strings.Join(values, ", ") + ") AS v(i, x))" + alias)
		case special[what] != nil && d.rng.IntN(20) > 0:
			out.WriteString(d.one(special[what]))
		case special[what] != nil:
			out.WriteString("NULL")
		case edges[what] != nil:
			out.WriteString(d.argument("", 0, what))
		default: // of an array literal or JSON in the form itself
			out.WriteString("{" + what + "}")
		}
		form = after
	}
}

// TestDrawnAgainstPostgreSQL holds drawn statements against a server. DPPROXY_SEED and DPPROXY_DRAWS choose others and more.
func TestDrawnAgainstPostgreSQL(t *testing.T) {
	seed, draws := fromEnv(t, "DPPROXY_SEED", 178), fromEnv(t, "DPPROXY_DRAWS", 2)
	for i, zone := range []string{"UTC", "Europe/Berlin"} {
		t.Logf("seed %d, %d draws of each, %s", seed, draws, zone)
		d := newDrawing(t, uint64(seed+i), zone)
		only := os.Getenv("DPPROXY_ONLY")
		for _, c := range d.catalog() {
			what := c.Kind + " " + c.Name
			for range draws {
				if query := d.call(c); only == "" || strings.Contains(what, only) {
					d.hold(what, query)
				}
			}
		}
		kinds := make([]string, 0, len(edges))
		for kind := range edges {
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		for _, from := range kinds {
			for _, to := range kinds {
				for range draws {
					if query := "SELECT (" + d.argument("", 0, from) + ")::" + to; only == "" || only == "cast" {
						d.hold("cast "+from+" to "+to, query)
					}
				}
			}
		}
		for _, form := range forms {
			for range 4 * draws {
				if query := "SELECT " + d.filled(form); only == "" || strings.Contains(form, only) {
					d.hold(form, query)
				}
			}
		}
		for _, form := range rowForms {
			for range 4 * draws {
				if query := d.filled(form); only == "" || strings.Contains(form, only) {
					d.hold(form, query)
				}
			}
		}
		total := tally{}
		for _, what := range d.asked {
			total.equal, total.refused, total.faults, total.states = total.equal+what.equal, total.refused+what.refused, total.faults+what.faults, total.states+what.states
		}
		t.Logf("%d statements: %d equal, %d refused, %d errors of another number, %d differ", d.calls, total.equal, total.refused, total.states, total.faults)
	}
}

func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

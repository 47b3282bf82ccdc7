package truth

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sqlType is a type of PostgreSQL's, by its OID.
type sqlType uint32

const (
	boolType     sqlType = 16
	byteaType    sqlType = 17
	int8Type     sqlType = 20
	int2Type     sqlType = 21
	int4Type     sqlType = 23
	textType     sqlType = 25
	real4Type    sqlType = 700
	real8Type    sqlType = 701
	moneyType    sqlType = 790
	charType     sqlType = 1042
	varcharType  sqlType = 1043
	dateType     sqlType = 1082
	clockType    sqlType = 1083
	momentType   sqlType = 1114
	zonedType    sqlType = 1184
	intervalType sqlType = 1186
	zonedClock   sqlType = 1266
	numericType  sqlType = 1700
	uuidType     sqlType = 2950
	textsType    sqlType = 1009
	wholesType   sqlType = 1007
)

// typeNames are the types that expressions are written of, as casts name them.
var typeNames = map[sqlType]string{
	boolType: "boolean", byteaType: "bytea", int8Type: "bigint", int2Type: "smallint", int4Type: "integer", textType: "text", real4Type: "real", real8Type: "double precision", moneyType: "money",
	charType: "bpchar", varcharType: "varchar", dateType: "date", clockType: "time", momentType: "timestamp", zonedType: "timestamptz", intervalType: "interval", zonedClock: "timetz",
	numericType: "numeric", uuidType: "uuid", textsType: "text[]", wholesType: "int4[]",
}

// ordinary are the types that values below the counts have.
var ordinary = []sqlType{boolType, int2Type, int4Type, int8Type, numericType, real4Type, real8Type, textType, textType, varcharType, charType, dateType, momentType, zonedType, intervalType, uuidType}

// constants are spellings of values; the first of each are as PostgreSQL writes them, whatever the session's settings.
var constants = map[sqlType][]string{
	boolType:     {"t", "f", "true", "false", "yes", "off", "1", "0", "on", "no", " TRUE", "y"},
	int2Type:     {"0", "1", "-3", "2", "7", "32767"},
	int4Type:     {"0", "1", "-2", "3", "5", "10", "2147483647", " 7 "},
	int8Type:     {"0", "1", "-3", "9223372036854775807", "9223372036854775803", "3000000000"},
	numericType:  {"0", "1.5", "-2.50", "0.001", "100.000", "2.5", "1e3", "0.0", "0.019", "12", "NaN"},
	real4Type:    {"0", "0.1", "1.5", "-2.5", "3", "1e10", "Infinity", "0.33333334"},
	real8Type:    {"0", "0.1", "1.5", "-2.5", "3", "1e-07", "1e10", "0.30000000000000004", "-0", "123456789.123", "NaN"},
	textType:     {"ab", "ab ", "", "Ab", "a_c", "%", " x", "10", "true", "O'Hara", `a\b`, "€5", "abcde", "1.50", "2024-03-01"},
	varcharType:  {"ab", "ab ", "", " x", "10", "abc", "x  "},
	charType:     {"ab", "ab  ", "x", "abc", "a c "},
	dateType:     {"2024-02-29", "2024-03-01", "2024-03-04", "2000-01-01", "20240229", "Feb 29 2024", "02/03/2024", "29-Feb-2024", "March 1, 2024", "2024/03/01", "01-03-24", "infinity", "epoch", "2024.060", "J2460370"},
	momentType:   {"2024-03-31 02:30:00", "2024-03-31 00:00:00", "2024-02-29 23:59:59.999999", "2024-03-31T01:00", "01/03/2024 10:00", "Mar 31 2024 2:30 AM", "20240331T023000", "epoch", "2024-03-30 24:00", "2024-03-31 02:30+05"},
	zonedType:    {"2024-03-31 00:30:00+00", "2024-03-31 01:00:00+00", "2024-03-31 02:30", "2024-03-31T01:00Z", "2024-03-31 05:00 Europe/Berlin", "2024-10-27 02:30", "01/03/2024 10:00+05:30", "2024-03-31 01:00 PST", "1890-01-01", "epoch"},
	intervalType: {"1 day", "36:00:00", "1 mon -1 days", "00:30:00", "P1DT2H", "1-2", "-1.5 hours", "@ 1 day ago", "1 2:03", "0", "1 year 2 mons 3 days 04:05:06.789", "1.5 weeks"},
	uuidType:     {"00000000-0000-0000-0000-00000000000a", "ffffffff-ffff-ffff-ffff-ffffffffffff", "{10000000-0000-0000-0000-000000000000}", "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"},
	byteaType:    {`\x6162`, `\x`, `ab\000`, "ab"},
	clockType:    {"12:30:00", "00:00:00.5", "24:00", "1:30 PM"},
	zonedClock:   {"12:30:00+00", "12:30:00+02", "01:00 PST"},
	moneyType:    {"12.50", "-3", "$1,000.00"},
	textsType:    {"{ab,NULL}", `{"ab ",x}`, "{}"},
	wholesType:   {"{1,2,NULL}", "{}", "{5}"},
}

// canonical tells how many of them are as PostgreSQL writes them.
func canonical(t sqlType) int {
	switch t {
	case dateType:
		return 4
	case momentType:
		return 3
	case zonedType:
		return 2
	case intervalType:
		return 4
	case boolType, uuidType, byteaType, clockType, zonedClock:
		return 2
	case moneyType:
		return 0
	}
	return len(constants[t])
}

// production is a way to write an expression: a function or an operator of these arguments.
type production struct {
	name string
	args []sqlType
	sign bool // an operator
}

// language is what expressions are written of.
type language struct {
	of       map[sqlType][]production
	implicit map[sqlType][]sqlType // to what: from what
	explicit map[sqlType][]sqlType
}

// written is dpproxy's own list of what it evaluates below the counts: operators, functions, casts.
func written(t testing.TB) *language {
	t.Helper()
	text, err := os.ReadFile("../../planner/scalar/catalog.txt")
	if err != nil {
		t.Fatal(err)
	}
	l := &language{of: map[sqlType][]production{}, implicit: map[sqlType][]sqlType{}, explicit: map[sqlType][]sqlType{}}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		switch f[0] {
		case "cast":
			from, to := oid(f[1]), oid(f[2])
			if typeNames[from] == "" || typeNames[to] == "" || from == to {
				continue
			}
			l.explicit[to] = append(l.explicit[to], from)
			if f[3] == "i" {
				l.implicit[to] = append(l.implicit[to], from)
			}
		case "function", "operator":
			for _, signature := range f[2:] {
				l.add(f[1], signature, f[0] == "operator")
			}
		}
	}
	for _, of := range slices.Sorted(maps.Keys(typeNames)) { // anything has a text
		if of != textType {
			l.explicit[textType] = append(l.explicit[textType], of)
		}
	}
	return l
}

func oid(text string) sqlType {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return sqlType(n)
}

// add takes 25+23=25; it says whether it is of types that expressions are written of.
func (l *language) add(name, signature string, sign bool) bool {
	arguments, result, _ := strings.Cut(signature, "=")
	p := production{name: name, sign: sign}
	if arguments != "" {
		for _, a := range strings.Split(arguments, "+") {
			p.args = append(p.args, oid(a))
		}
	}
	to := oid(result)
	if typeNames[to] == "" || slices.ContainsFunc(p.args, func(a sqlType) bool { return typeNames[a] == "" }) || moving[name] {
		return false
	}
	l.of[to] = append(l.of[to], p)
	return true
}

// moving are functions whose values depend on the clock or on chance.
var moving = map[string]bool{"now": true, "statement_timestamp": true, "transaction_timestamp": true, "clock_timestamp": true, "timeofday": true, "random": true, "localtime": true, "localtimestamp": true}

// beneath are the types that an ordinary statement's values have: what is of others is written above the counts alone.
func (p production) beneath() bool {
	return !slices.ContainsFunc(p.args, func(a sqlType) bool { return !slices.Contains(ordinary, a) })
}

// meant are the arguments that mean something by their texts: function, place, what may be there.
var meant = map[string]map[int][]string{
	"date_trunc": {0: fields[:14], 2: zones}, "date_part": {0: fields}, "extract": {0: fields}, "timezone": {0: zones},
	"date_bin": {0: {"interval '36 hours'", "interval '15 minutes'", "'7 days'", "interval '1 hour 30 seconds'"}},
	"chr":      {0: {"65", "97", "x", "8364"}}, "repeat": {1: {"0", "1", "2", "3"}}, "lpad": {1: {"0", "3", "6", "x"}}, "rpad": {1: {"0", "3", "6", "x"}},
	"split_part": {1: {"'b'", "' '", "'_'", "','"}, 2: {"1", "2", "-1"}},
	"substr":     {1: {"-1", "0", "1", "2", "x"}, 2: {"0", "1", "3", "x"}}, "substring": {1: {"0", "1", "2", "x"}, 2: {"0", "2", "4"}}, "left": {1: {"-2", "0", "1", "3", "x"}}, "right": {1: {"-2", "0", "1", "3", "x"}},
	"round": {1: {"0", "1", "-1", "2"}}, "trunc": {1: {"0", "1", "-1", "2"}}, "power": {1: {"2", "0.5", "-1", "x"}}, "pow": {1: {"2", "0", "3"}}, "^": {1: {"2", "0.5", "3"}},
	"width_bucket": {3: {"1", "4", "5"}}, "make_date": {0: {"2024", "2023"}, 1: {"2", "3", "12"}, 2: {"1", "28", "29"}}, "overlay": {2: {"1", "2", "3"}, 3: {"0", "2"}},
	"make_timestamp": {0: {"2024"}, 1: {"2", "3"}, 2: {"1", "29"}, 3: {"0", "23"}, 4: {"0", "59"}, 5: {"0", "59.5"}},
	"interval":       {1: {"0", "3"}}, "timestamp": {1: {"0", "3"}}, "timestamptz": {1: {"0", "2"}}, "varchar": {1: {"2", "8"}, 2: {"true"}}, "numeric": {1: {"262148"}},
	"~~": {1: patterns}, "!~~": {1: patterns}, "~~*": {1: patterns}, "!~~*": {1: patterns}, "~": {1: regulars}, "!~": {1: regulars}, "~*": {1: regulars}, "!~*": {1: regulars},
	"like_escape": {0: patterns, 1: {"'#'", `'\'`}}, "similar_to_escape": {0: {"'a%'", "'(a|b)_'"}, 1: {"'#'"}},
	"to_date": {0: {"'2024-02-29'", "'29 02 2024'", "x"}, 1: {"'YYYY-MM-DD'", "'DD MM YYYY'"}}, "exp": {0: {"1", "0.5", "x"}}, "justify_days": {0: {"x", "interval '40 days'"}},
	"translate": {1: {"'ab'", "'a '", "x"}, 2: {"'xy'", "''"}}, "starts_with": {1: {"'a'", "'ab '", "''", "x"}}, "strpos": {1: {"'b'", "' '", "x"}}, "position": {0: {"'b'", "' '", "x"}},
	"regexp_replace": {1: regulars, 3: {"'g'", "'i'"}}, "regexp_like": {1: regulars, 2: {"'i'"}}, "regexp_count": {1: regulars, 3: {"'i'"}}, "regexp_substr": {1: regulars, 4: {"'i'"}}, "regexp_instr": {1: regulars, 5: {"'i'"}}, "regexp_match": {1: regulars, 2: {"'i'"}}, "regexp_split_to_array": {1: regulars, 2: {"'i'"}},
	"factorial": {0: {"5", "x"}}, "to_hex": {}, "encode": {1: {"'hex'", "'base64'", "'escape'"}}, "decode": {1: {"'hex'", "'base64'"}}, "convert_from": {1: {"'UTF8'"}}, "normalize": {1: {"'NFC'"}},
	"array_to_string": {1: {"','", "'-'"}, 2: {"'none'"}}, "string_to_array": {1: {"' '", "'b'", "NULL"}}, "trim_array": {1: {"0", "1"}}, "array_fill": {}, "make_time": {0: {"1", "23"}, 1: {"0", "59"}, 2: {"0", "1.5"}},
}

var (
	fields   = []string{"'year'", "'month'", "'day'", "'hour'", "'minute'", "'second'", "'week'", "'quarter'", "'decade'", "'century'", "'millennium'", "'milliseconds'", "'microseconds'", "'MONTH'", "'epoch'", "'dow'", "'doy'", "'isodow'", "'isoyear'", "'julian'", "'timezone'", "'timezone_hour'"}
	zones    = []string{"'UTC'", "'Europe/Berlin'", "'America/New_York'", "'Asia/Kolkata'", "'+03'", "'PST8PDT'", "'<+02>-2'", "'EST'"}
	patterns = []string{"'a%'", "'%b'", "'ab'", "'ab   '", "'_b%'", `'a\_c'`, "'%'", "''", "'% '", "'A%'", "x"}
	regulars = []string{"'^a'", "'b$'", "'a.c'", "'[[:space:]]$'", "'(a|x)b?'", `'^\d+$'`, "'b *$'"}
	shapes   = map[sqlType][]string{
		momentType: {"'YYYY-MM-DD HH24:MI:SS'", "'FMDay, DD FMMonth'", "'IYYY-IW-ID'", "'HH12:MI AM'", "'Q J DDD'", "'MS US'"}, zonedType: {"'YYYY-MM-DD HH24:MI TZH:TZM'", "'HH24 TZ'", "'OF'", "'DD.MM.YYYY'"},
		intervalType: {"'HH24:MI:SS'", "'DD HH12'"}, numericType: {"'999.99'", "'FM0000.0'", "'S9'"}, int4Type: {"'000'", "'FM99'"}, int8Type: {"'9,999'"}, real4Type: {"'9.9'"}, real8Type: {"'9.99'", "'9.99EEEE'"},
	}
	templates = []string{"'DD/MM/YYYY HH24:MI'", "'YYYY-MM-DD'"}
)

// given is a constant that may be a parameter instead.
type given struct {
	of    sqlType
	text  string
	exact bool   // as PostgreSQL writes it: it has a binary form
	sql   string // where it is in the text

	cast     bool // a parameter is cast to its type
	declared bool // and its type is said
	always   bool // it is no parameter
	null     bool // it is NULL
}

// writer writes expressions of types over what is in scope. Constants that may be parameters are marks in what it
// writes.
type writer struct {
	dice
	l     *language
	scope map[sqlType][]string
	given []given
	below bool // what is written is evaluated on declared values, and chars have their blanks
}

// mark returns what replaces a given in a text.
func mark(i int) string { return fmt.Sprintf("\x01%d\x02", i) }

// constant writes a value of a type.
func (w *writer) constant(t sqlType) string {
	if w.chance(25) {
		w.given = append(w.given, given{of: t, sql: "NULL::" + typeNames[t], cast: w.chance(2), declared: w.chance(2), null: true})
		return mark(len(w.given) - 1)
	}
	list := constants[t]
	at := w.IntN(len(list))
	if w.chance(2) {
		at = w.IntN(min(len(list), max(1, canonical(t))))
	}
	if (t == dateType || t == momentType || t == zonedType) && w.chance(3) { // that depend on DateStyle
		at = slices.IndexFunc(list, func(text string) bool { return strings.Contains(text[:5], "/") })
	}
	text := list[at]
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	sql := w.one(quoted+"::"+typeNames[t], quoted+"::"+typeNames[t], "CAST("+quoted+" AS "+typeNames[t]+")", quoted)
	if t == charType {
		sql = w.one(quoted, quoted, quoted, quoted, quoted+"::bpchar", quoted+"::char(4)")
	}
	switch t {
	case int4Type, numericType:
		if _, err := strconv.ParseFloat(text, 64); err == nil && text != "NaN" && w.chance(2) {
			sql = "(" + text + ")"
		}
	case dateType, momentType, zonedType, intervalType:
		if w.chance(3) {
			sql = typeNames[t] + " " + quoted
		}
	case boolType:
		if at < 4 && w.chance(2) {
			sql = map[byte]string{'t': "true", 'f': "false"}[text[0]]
		}
	}
	w.given = append(w.given, given{of: t, text: text, exact: at < canonical(t), sql: sql, cast: w.chance(2), declared: w.chance(2)})
	return mark(len(w.given) - 1)
}

// leaf is a column, or now and then a constant.
func (w *writer) leaf(t sqlType) string {
	list := w.scope[t]
	if len(list) == 0 && w.chance(2) {
		if from := w.l.implicit[t]; len(from) > 0 {
			if list = w.scope[from[w.IntN(len(from))]]; len(list) > 0 {
				return list[w.IntN(len(list))]
			}
		}
	}
	if len(list) == 0 || w.chance(5) {
		if w.chance(12) {
			return "NULL::" + typeNames[t]
		}
		return w.constant(t)
	}
	return list[w.IntN(len(list))]
}

// expr writes an expression of a type.
func (w *writer) expr(t sqlType, depth int) string {
	if depth <= 0 {
		return w.leaf(t)
	}
	switch w.IntN(12) {
	case 0:
		return w.leaf(t)
	case 1:
		return w.choice(t, depth)
	case 2:
		if from := w.l.explicit[t]; len(from) > 0 && !(w.below && t == charType && !w.chance(20)) { // a cast to char is refused
			source := from[w.IntN(len(from))]
			if w.below && !slices.Contains(ordinary, source) {
				break
			}
			inner := w.expr(source, depth-1)
			return w.one("("+inner+")::"+typeNames[t], "CAST("+inner+" AS "+typeNames[t]+")")
		}
	case 3:
		if t == textType {
			return w.joined(depth)
		}
		if t == boolType {
			return w.predicate(depth)
		}
	case 4, 5:
		if t == boolType {
			return w.predicate(depth)
		}
		if t == varcharType {
			return "(" + w.expr(textType, depth-1) + ")" + w.one("::varchar", "::varchar(3)")
		}
	}
	list := w.l.of[t]
	for range 4 {
		if len(list) == 0 {
			break
		}
		if p := list[w.IntN(len(list))]; !w.below || p.beneath() {
			return w.call(p, depth)
		}
	}
	return w.choice(t, depth)
}

// mixed is an expression of a type, or of one that becomes it by itself.
func (w *writer) mixed(t sqlType, depth int) string {
	if from := w.l.implicit[t]; len(from) > 0 && w.chance(4) {
		if source := from[w.IntN(len(from))]; !w.below || slices.Contains(ordinary, source) {
			return w.expr(source, depth)
		}
	}
	return w.expr(t, depth)
}

// choice chooses among values.
func (w *writer) choice(t sqlType, depth int) string {
	a, b := w.expr(t, depth-1), w.mixed(t, depth-1)
	switch w.IntN(7) {
	case 0:
		return "coalesce(" + a + ", " + b + ")"
	case 1:
		return "nullif(" + a + ", " + b + ")"
	case 2:
		return w.one("greatest(", "least(") + a + ", " + b + ")"
	case 3:
		return "CASE WHEN " + w.expr(boolType, depth-1) + " THEN " + a + " ELSE " + b + " END"
	case 4:
		of := ordinary[w.IntN(len(ordinary))]
		return "CASE " + w.expr(of, depth-1) + " WHEN " + w.mixed(of, 0) + " THEN " + a + " WHEN " + w.constant(of) + " THEN " + b + w.one("", " ELSE "+w.leaf(t)) + " END"
	case 5:
		return "coalesce(" + a + ", NULL, " + b + ", " + w.constant(t) + ")"
	}
	return "CASE WHEN " + w.expr(boolType, depth-1) + " THEN " + a + " WHEN " + w.expr(boolType, 0) + " THEN " + b + " END"
}

// joined is a text that is put together.
func (w *writer) joined(depth int) string {
	any := func() string { return w.expr(ordinary[w.IntN(len(ordinary))], depth-1) }
	switch w.IntN(5) {
	case 0:
		return "concat(" + any() + ", '|', " + any() + ")"
	case 1:
		return "concat_ws('-', " + any() + ", " + any() + ", NULL, " + any() + ")"
	case 2:
		return "(" + any() + " || " + w.one("''::text", "' of '", "'|'::text") + ")"
	case 3:
		return "('x' || " + any() + "::text)"
	}
	return "(" + any() + ")::text"
}

// column is a leaf that is no constant, of any type that has some, and its type; a constant where nothing is in scope.
func (w *writer) column(of ...sqlType) (string, sqlType) {
	var there []sqlType
	for _, t := range of {
		if len(w.scope[t]) > 0 {
			there = append(there, t)
		}
	}
	if len(there) == 0 {
		return w.constant(of[0]), of[0]
	}
	t := there[w.IntN(len(there))]
	return w.scope[t][w.IntN(len(w.scope[t]))], t
}

// shallow is what a person writes: a column's text, or a column beside a constant. What depends on a setting or on
// blanks shows in it as it is.
func (w *writer) shallow() (string, sqlType) {
	texts := []sqlType{charType, charType, varcharType, textType}
	dated := []sqlType{dateType, momentType, zonedType}
	switch w.IntN(11) {
	case 0:
		c, _ := w.column(append([]sqlType{charType}, ordinary...)...)
		if len(w.scope[charType]) > 0 && w.chance(2) {
			c, _ = w.column(charType)
		}
		return w.one("concat("+c+", '|')", "concat_ws('-', "+c+", 'x')", "('of ' || "+c+")"), textType
	case 1, 2:
		kinds := []sqlType{intervalType, intervalType, zonedType, numericType}
		if w.chance(2) {
			kinds = []sqlType{real8Type, real4Type}
		}
		c, _ := w.column(kinds...)
		return w.one("("+c+")::text", "concat("+c+")", "("+c+" || '')"), textType
	case 3:
		c, _ := w.column(texts...)
		return w.one("octet_length(", "octet_length(", "length(", "bit_length(") + c + ")", int4Type
	case 4, 5:
		c, t := w.column(dated...)
		return "(" + c + w.one(" > ", " <= ", " = ") + w.constant(t) + ")", boolType
	case 6, 9:
		c, t := w.column(texts...)
		other := texts[w.IntN(len(texts))]
		if t == textType || other == textType {
			other = t
		}
		d, _ := w.column(other)
		return "(" + c + w.one(" = ", " <> ", " IN ", " < ") + "(" + w.one(w.constant(other), w.constant(other), d) + "))", boolType
	case 7, 10:
		c, t := w.column(texts...)
		other := texts[w.IntN(len(texts))]
		choice := w.one("coalesce(", "nullif(", "greatest(") + c + ", " + w.one(w.constant(other), w.leaf(other)) + ")"
		if w.chance(2) {
			return "(" + choice + w.one(" = ", " <> ") + w.constant(t) + ")", boolType
		}
		return choice, t
	}
	c, t := w.column(texts...)
	return "CASE WHEN " + w.leaf(boolType) + " THEN " + c + " ELSE " + w.leaf(t) + " END", t
}

// predicate is a condition that is no function.
func (w *writer) predicate(depth int) string {
	of := ordinary[w.IntN(len(ordinary))]
	a := w.expr(of, depth-1)
	switch w.IntN(14) {
	case 0:
		return "(" + w.expr(boolType, depth-1) + w.one(" AND ", " OR ") + w.expr(boolType, depth-1) + ")"
	case 1:
		return "(NOT " + w.expr(boolType, depth-1) + ")"
	case 2:
		return "(" + w.expr(boolType, depth-1) + w.one(" IS TRUE", " IS NOT TRUE", " IS FALSE", " IS NOT FALSE", " IS UNKNOWN", " IS NOT UNKNOWN") + ")"
	case 3:
		return "(" + a + w.one(" IS NULL", " IS NOT NULL", " ISNULL", " NOTNULL") + ")"
	case 4:
		return "(" + a + w.one(" IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + w.mixed(of, depth-1) + ")"
	case 5:
		return "(" + a + w.one(" IN (", " NOT IN (") + w.constant(of) + ", " + w.mixed(of, 0) + w.one("", ", NULL") + "))"
	case 6:
		return "(" + a + w.one(" BETWEEN ", " NOT BETWEEN ", " BETWEEN SYMMETRIC ", " NOT BETWEEN SYMMETRIC ") + w.mixed(of, 0) + " AND " + w.mixed(of, 0) + ")"
	case 7:
		return "(" + a + w.one(" = ANY (ARRAY[", " <> ALL (ARRAY[", " < ANY (ARRAY[", " >= ALL (ARRAY[") + w.constant(of) + ", " + w.constant(of) + "]))"
	case 8:
		other := ordinary[w.IntN(len(ordinary))]
		return "((" + a + ", " + w.expr(other, 0) + ")" + w.one(" = ", " <> ", " < ", " >= ") + "(" + w.mixed(of, 0) + ", " + w.expr(other, 0) + "))"
	case 9:
		text := []sqlType{textType, varcharType, charType}[w.IntN(3)]
		return "(" + w.expr(text, depth-1) + w.one(" LIKE ", " NOT LIKE ", " ILIKE ", " SIMILAR TO ", " ~ ", " !~* ") + w.one("'a%'", "'ab'", "'ab   '", "'%b_'", "'%b'", "'_b%'", "'ab$'") + ")"
	}
	return "(" + a + w.one(" = ", " = ", " <> ", " < ", " <= ", " > ", " >= ") + w.mixed(of, depth-1) + ")"
}

// call writes a function or an operator.
func (w *writer) call(p production, depth int) string {
	var args []string
	for i, t := range p.args {
		list := meant[p.name][i]
		switch {
		case p.name == "to_char" && i == 1:
			list = shapes[p.args[0]]
		case p.name == "to_timestamp" && len(p.args) == 2:
			list = [][]string{{"'29/02/2024 10:30'", "'2024-03-01'"}, templates}[i]
		case p.name == "timezone" && p.args[0] == intervalType && i == 0:
			list = []string{"interval '2 hours'", "interval '-05:30'"}
		case p.name == "round" && p.args[0] != numericType, p.name == "substring" && t == textType && i > 0, p.name == "overlay" && t != int4Type:
			list = nil
		case p.name == "substring" && t == textType && i == 1:
			list = regulars
		}
		if p.name == "position" || p.name == "date_bin" && i > 0 { // of other types than texts
			list = meant[p.name][i]
		}
		argument := ""
		if len(list) > 0 {
			argument = list[w.IntN(len(list))]
		}
		if argument == "" || argument == "x" {
			argument = w.mixed(t, depth-1)
		}
		args = append(args, argument)
	}
	switch {
	case p.sign && len(args) == 1:
		return "(" + p.name + " " + args[0] + ")"
	case p.sign:
		return "(" + args[0] + " " + p.name + " " + args[1] + ")"
	case p.name == "extract":
		return "extract(" + strings.Trim(args[0], "'") + " FROM " + args[1] + ")"
	case p.name == "position":
		return "position(" + args[0] + " IN " + args[1] + ")"
	case p.name == "overlay":
		text := "overlay(" + args[0] + " PLACING " + args[1] + " FROM " + args[2]
		if len(args) > 3 {
			text += " FOR " + args[3]
		}
		return text + ")"
	case p.name == "timezone" && w.chance(2):
		return "(" + args[1] + " AT TIME ZONE " + args[0] + ")"
	case p.name == "btrim" && w.chance(2):
		return "trim(" + strings.Join(append(args[1:], "FROM "+args[0]), " ") + ")"
	case slices.Contains([]string{"numeric", "interval", "timestamp", "varchar", "char", "time", "timetz", "bit"}, p.name):
		return `"` + p.name + `"(` + strings.Join(args, ", ") + ")"
	}
	return p.name + "(" + strings.Join(args, ", ") + ")"
}

// TestWrittenIsDrawn: each function and operator that dpproxy evaluates below the counts is drawn, but for those that
// depend on the clock; one that is added to package scalar is drawn from then on, and arguments that mean something by
// their texts have a list here.
func TestWrittenIsDrawn(t *testing.T) {
	l := written(t)
	drawn := map[string]bool{"concat": true, "concat_ws": true} // of any number of any: joined
	for _, list := range l.of {
		for _, p := range list {
			if p.beneath() {
				drawn[p.name] = true
			}
		}
	}
	text, err := os.ReadFile("../../planner/scalar/catalog.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 1 && (f[0] == "function" || f[0] == "operator") && !drawn[f[1]] && !moving[f[1]] {
			t.Errorf("%s is evaluated below the counts, and no statement of this suite has it", f[1])
		}
	}
}

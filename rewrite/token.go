package rewrite

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// kinds are the types in which columns are read, but for decimals of limited digits (decimal.go).
var kinds = map[policy.Type]string{
	policy.Bool: "bool", policy.Int2: "int8", policy.Int4: "int8", policy.Int8: "int8", policy.Float4: "float4", policy.Float8: "float8",
	policy.NumericType: "numeric", policy.Text: "text", policy.Varchar: "text", policy.UUID: "uuid", policy.DateType: "date",
	policy.TimestampT: "timestamp", policy.TimestampTZ: "timestamptz",
}

// name quotes an identifier. Names that PostgreSQL would cut or refuse are refused.
func (w *composed) name(s string) string {
	if s == "" || len(s) > 63 || strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
		w.fail("a name of the policy is empty, longer than 63 bytes, or not valid UTF-8")
	}
	return w.dialect.QuoteAs(s)
}

// operate writes a binary operator, the system's own even where others of that name exist.
func (w *composed) operate(left, operator, right string) string {
	return w.dialect.Operate(left, operator, right)
}

// divide is the operator / on floating values, which may be another one than on whole numbers.
func (w *composed) divide(left, right string) string {
	return dialect.Fill(w.dialect.Divide, left, right)
}

// call writes a function of the system catalog.
func (w *composed) call(function string, args ...string) string {
	return dialect.Fill(w.dialect.Call, function, strings.Join(args, ", "))
}

// cast converts a value of a known type, which cannot fail.
func (w *composed) cast(expression, kind string) string { return w.dialect.CastTo(expression, kind) }

// literal writes a constant of a type from text that holds digits, letters, and . : + - and spaces alone.
func (w *composed) literal(s, kind string) string {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(".:+- ", c) {
			w.fail("a constant that is no number, date or time")
			return "NULL"
		}
	}
	return dialect.Fill(w.dialect.Literal, s, w.dialect.Type(kind))
}

// digits writes a whole number that is not below 0, of the type that the engine gives it.
func (w *composed) digits(s string) string {
	if strings.Trim(s, "0123456789") != "" {
		w.fail("a constant that is no whole number")
		return "NULL"
	}
	return s
}

// whole writes an integer constant.
func (w *composed) whole(n int64) string { return w.literal(strconv.FormatInt(n, 10), "int8") }

// int4 writes a small one, as cells are numbered.
func (w *composed) int4(n int) string { return w.literal(strconv.Itoa(n), "int4") }

// float writes a floating constant.
func (w *composed) float(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.fail("a constant that is not finite")
	}
	return w.literal(strconv.FormatFloat(f, 'g', -1, 64), "float8")
}

// text writes a text as a value of a type; equal ones are one argument, where texts travel so.
func (w *composed) text(s, kind string) string {
	written, ok := w.seen[s]
	if !ok {
		if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
			w.fail("a text constant that is not valid UTF-8 without NUL")
		}
		var travels bool
		if written, travels = w.dialect.TextOf(s, len(w.args)+1); travels {
			w.args = append(w.args, s)
		}
		w.seen[s] = written
	}
	if kind == "text" {
		return written
	}
	return dialect.Fill(w.dialect.Typed, written, w.dialect.Type(kind))
}

// texts writes a list of a type, as one argument where texts travel so. It is of its own: an argument has one type.
func (w *composed) texts(list []string, kind string) string {
	travel := strings.Contains(w.dialect.Texts, "%1")
	items := make([]string, len(list))
	for i, v := range list {
		switch {
		case !travel:
			items[i] = w.text(v, kind)
		case strings.ContainsRune(v, 0), !utf8.ValidString(v):
			w.fail("a text constant that is not valid UTF-8 without NUL")
		default:
			items[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
		}
	}
	if !travel {
		return dialect.Fill(w.dialect.Texts, "", "", strings.Join(items, ", "))
	}
	w.args = append(w.args, "{"+strings.Join(items, ",")+"}")
	return dialect.Fill(w.dialect.Texts, strconv.Itoa(len(w.args)), w.dialect.Type(kind))
}

// constant writes a value of an ordered column's type.
func (w cells) constant(c *policy.Column, v policy.Value) string {
	switch v := v.(type) {
	case int64:
		return w.whole(v)
	case float64:
		return w.float(v)
	case policy.Numeric:
		return w.decimals(c).constant(v)
	case policy.Date:
		return w.literal(w.instant(int64(v)*86400, 0).Format(time.DateOnly), "date")
	case policy.Timestamp:
		return w.literal(w.instant(0, int64(v)).Format("2006-01-02 15:04:05.000000"), "timestamp")
	case policy.Timestamptz:
		return w.literal(w.instant(0, int64(v)).Format("2006-01-02 15:04:05.000000")+"+00", "timestamptz")
	}
	w.fail("a constant of a type that is not ordered")
	return "NULL"
}

// instant is a moment in UTC whose year has four digits, so that both dialects read its text alike.
func (w *composed) instant(seconds, micros int64) time.Time {
	t := time.Unix(seconds, 0)
	if micros != 0 {
		t = time.UnixMicro(micros)
	}
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		w.fail("a date outside the years 1 to 9999")
	}
	return t
}

// Safe is a kind of expression that the SQL for the private database may contain, and why no stored value makes it
// fail. catalogue_test.go holds all SQL that the tests have written against this list: PostgreSQL's form with the types
// that the database itself resolves, implicit casts included, DuckDB's as its parser sees it, Spark's as it is written.
// docs/functions.md is made of it.
type Safe struct {
	What       string
	PostgreSQL []string // functions behind operators and casts, with their arguments' types; node kinds in capitals
	DuckDB     []string // functions, operators, casts and node kinds
	Total      bool     // on every value of the types; else because of what it is given
	Why        string
	Spark      []string // functions, operators and casts
}

// Catalogue lists everything that the SQL of measures may contain.
func Catalogue() []Safe { return catalogue }

var catalogue = []Safe{
	{"comparisons", []string{
		"int28eq(smallint,bigint)", "int28ne(smallint,bigint)", "int28lt(smallint,bigint)", "int28le(smallint,bigint)", "int28gt(smallint,bigint)", "int28ge(smallint,bigint)",
		"int48eq(integer,bigint)", "int48ne(integer,bigint)", "int48lt(integer,bigint)", "int48le(integer,bigint)", "int48gt(integer,bigint)", "int48ge(integer,bigint)",
		"int84eq(bigint,integer)", "int84ne(bigint,integer)", "int84lt(bigint,integer)", "int84le(bigint,integer)", "int84gt(bigint,integer)", "int84ge(bigint,integer)",
		"int8eq(bigint,bigint)", "int8ne(bigint,bigint)", "int8lt(bigint,bigint)", "int8le(bigint,bigint)", "int8gt(bigint,bigint)", "int8ge(bigint,bigint)",
		"int4eq(integer,integer)", "int4ne(integer,integer)", "int4lt(integer,integer)", "int4le(integer,integer)", "int4gt(integer,integer)", "int4ge(integer,integer)",
		"float48eq(real,double precision)", "float48ne(real,double precision)", "float48lt(real,double precision)", "float48le(real,double precision)", "float48gt(real,double precision)", "float48ge(real,double precision)",
		"float84lt(double precision,real)", "float84ge(double precision,real)",
		"float8eq(double precision,double precision)", "float8ne(double precision,double precision)", "float8lt(double precision,double precision)", "float8le(double precision,double precision)", "float8gt(double precision,double precision)", "float8ge(double precision,double precision)",
		"numeric_eq(numeric,numeric)", "numeric_ne(numeric,numeric)", "numeric_lt(numeric,numeric)", "numeric_le(numeric,numeric)", "numeric_gt(numeric,numeric)", "numeric_ge(numeric,numeric)",
		"date_eq(date,date)", "date_ne(date,date)", "date_lt(date,date)", "date_le(date,date)", "date_gt(date,date)", "date_ge(date,date)",
		"timestamp_eq(timestamp without time zone,timestamp without time zone)", "timestamp_ne(timestamp without time zone,timestamp without time zone)", "timestamp_lt(timestamp without time zone,timestamp without time zone)",
		"timestamp_le(timestamp without time zone,timestamp without time zone)", "timestamp_gt(timestamp without time zone,timestamp without time zone)", "timestamp_ge(timestamp without time zone,timestamp without time zone)",
		"timestamptz_eq(timestamp with time zone,timestamp with time zone)", "timestamptz_ne(timestamp with time zone,timestamp with time zone)", "timestamptz_lt(timestamp with time zone,timestamp with time zone)",
		"timestamptz_le(timestamp with time zone,timestamp with time zone)", "timestamptz_gt(timestamp with time zone,timestamp with time zone)", "timestamptz_ge(timestamp with time zone,timestamp with time zone)",
		"texteq(text,text)", "textne(text,text)", "uuid_eq(uuid,uuid)", "uuid_ne(uuid,uuid)", "SCALARARRAYOPEXPR", "OPEXPR", "COLLATEEXPR",
	}, []string{"=", "<>", "<", "<=", ">", ">=", "IN", "NOT IN"}, true,
		"Numbers, moments and bytes have an order; NaN is above every number in both dialects. Texts are compared byte by byte.", []string{"=", "<>", "<", "<=", ">", ">=", "IN", "NOT IN"}},
	{"logic, NULL, choices between values", []string{"BOOLEXPR", "NULLTEST", "CASEEXPR", "CASEWHEN", "COALESCEEXPR", "MINMAXEXPR"},
		[]string{"AND", "OR", "NOT", "IS NULL", "IS NOT NULL", "CASE", "coalesce", "greatest(T, T)", "least(T, T)"}, true,
		"They choose among values that are there.", []string{"AND", "OR", "NOT", "IS NULL", "IS NOT NULL", "CASE", "COALESCE", "GREATEST", "LEAST", "nullif"}},
	{"NaN", nil, []string{"isnan(FLOAT)", "isnan(DOUBLE)"}, true, "PostgreSQL compares with NaN instead.", []string{"isnan"}},
	{"the place in a list", []string{"array_position(anycompatiblearray,anycompatible)", "ARRAYEXPR"}, []string{"list_position(VARCHAR[], VARCHAR)", "list_position(UUID[], UUID)", "list_position(BIGINT[], BIGINT)", "list_value"}, true,
		"NULL for what is not in it. The list is of the policy's values.", []string{"array_position", "array"}},
	{"whether a cell is one of many", nil, []string{"get_bit(BIT, INTEGER)", "CAST(constant AS BIT)"}, false,
		"The place is brought between the first and the last bit before it is looked at; NULL, which LEAST leaves out, is at the last, a 0.", nil},
	{"the found values of a column", []string{"unnest(anyarray)", "RANGETBLFUNCTION"}, []string{"unnest", "range(BIGINT, BIGINT)"}, true, "Lists of the policy's and of released values.", []string{"posexplode", "inline", "arrays_zip"}},
	{"casts that lose nothing", []string{"int8(integer)", "int8(smallint)", "float8(real)", "float8(integer)", `"numeric"(bigint)`, `"numeric"(integer)`, "RELABELTYPE"}, nil, true,
		"Every value of the one type is one of the other.", nil},
	{"the text of a value", []string{"COERCEVIAIO to text"}, []string{"CAST(… AS VARCHAR)"}, true,
		"Every value has a text, and PostgreSQL's has no more than the gigabyte that it may have.", []string{"CAST(… AS STRING)"}},
	{"a value of the declared type", nil, []string{"TRY_CAST(… AS BIGINT)", "TRY_CAST(… AS BOOLEAN)", "TRY_CAST(… AS DATE)", "TRY_CAST(… AS DECIMAL)", "TRY_CAST(… AS DOUBLE)",
		"TRY_CAST(… AS FLOAT)", "TRY_CAST(… AS HUGEINT)", "TRY_CAST(… AS TIMESTAMP)", "TRY_CAST(… AS TIMESTAMP WITH TIME ZONE)", "TRY_CAST(… AS UUID)", "TRY_CAST(… AS VARCHAR)"}, true,
		"NULL where the value does not fit. PostgreSQL's columns have the declared type, or the statement fails when it is parsed.", []string{"try_cast", "try_validate_utf8"}},
	{"constants", []string{"CONST", "PARAM", "FUNCEXPR", "COERCEVIAIO of a constant"}, []string{"CAST(constant AS BIGINT)", "CAST(constant AS BOOLEAN)", "CAST(constant AS DATE)", "CAST(constant AS DECIMAL)", "CAST(constant AS DOUBLE)",
		"CAST(constant AS HUGEINT)", "CAST(constant AS INTEGER)", "CAST(constant AS LIST)", "CAST(constant AS TIMESTAMP)", "CAST(constant AS TIMESTAMP WITH TIME ZONE)", "CAST(constant AS UUID)", "CAST(constant AS VARCHAR)", "CAST(constants AS LIST)", "constant"}, true,
		"Fixed by the plan, whatever the rows are; the policy and the plan were checked.", []string{"CAST"}},
	{"a long key, in a snapshot", []string{"length(text)", "octet_length(text)", "sha256(bytea)", "convert_to(text,name)", "encode(bytea,text)"}, []string{"length(VARCHAR)", "strlen(VARCHAR)", "sha256(VARCHAR)"}, true,
		"Every text has a length, and bytes in UTF-8, which is the database's own encoding; of all bytes there is a hash.", nil},
	{"the place of a row, where a snapshot reads a table in parts", []string{"tidge(tid,tid)", "tidlt(tid,tid)"}, nil, false,
		"Places are compared with constants, which are numbers of pages.", nil},
	{"a value of a snapshot, of the whole number that it came as", nil, []string{"CAST(… AS DATE)", "CAST(… AS DECIMAL)", "CAST(… AS INTEGER)", "make_timestamp(BIGINT)", "timezone(VARCHAR, TIMESTAMP)"}, false,
		"The number is of a value in the domain, whose ends the policy has checked. It is made before any query, and charges nothing.", nil},
	{"rounding", []string{"floor(double precision)", "floor(numeric)", "round(double precision)", "round(numeric)", "abs(double precision)"}, []string{"floor(DOUBLE)", "round(DOUBLE)", "round(DECIMAL)", "abs(DOUBLE)"}, true,
		"The result is no farther from zero by more than one.", []string{"floor", "round", "rint", "abs"}},
	{"the hash that orders a unit's rows and groups", []string{"int8xor(bigint,bigint)", "int8and(bigint,bigint)", "int8mod(bigint,bigint)", "numeric_mod(numeric,numeric)", "int8pl(bigint,bigint)"},
		[]string{"xor(BIGINT, BIGINT)", "&", "%", "TRY_CAST(… AS BIGINT)"}, false,
		"Its parts are whole numbers from 0 to 2^31 - 1 and its constants lie below 2^31, so that products lie below 2^62; it divides by 2^31 - 1 (rewrite/roworder.go).", []string{"^", "&", "%"}},
	{"the number of a text, for the hash", []string{"md5(text)", "textcat(text,text)", "COERCEVIAIO to type 1560", `"bit"(bit,integer,boolean)`, "int8(bit)"}, []string{"md5(VARCHAR)", "||"}, false,
		"Of a text cut to 128 characters. The first seven of its MD5's hexadecimal digits are a number of 28 bits.", []string{"md5", "conv", "||"}},
	{"the beginning of a text", []string{`"left"(text,integer)`}, []string{"left(VARCHAR, BIGINT)"}, false, "Every text has one; DuckDB refuses lengths beyond 32 bits, and the length is a constant.", []string{"left"}},
	{"what a statement asks of a text", []string{`"right"(text,integer)`, "substr(text,integer,integer)", "split_part(text,text,integer)", "translate(text,text,text)", "ltrim(text,text)", "rtrim(text,text)", "textlike(text,text)", "strpos(text,text)"},
		[]string{"right(VARCHAR, BIGINT)", "substr(VARCHAR, BIGINT, BIGINT)", "split_part(VARCHAR, VARCHAR, BIGINT)", "translate(VARCHAR, VARCHAR, VARCHAR)", "ltrim(VARCHAR, VARCHAR)", "rtrim(VARCHAR, VARCHAR)", "~~", "regexp_full_match(VARCHAR, VARCHAR, VARCHAR)", "strpos(VARCHAR, VARCHAR)"}, false,
		"Of a text cut to 16,384 characters. Places and lengths are constants from 0 or 1 on, what is looked for is not empty, and a pattern does not end with its escape; the only regular expressions are literals, . and .*, of at most 256 characters (rewrite/column.go); Spark's, which are Java's, have atomic groups of these.", []string{"right", "substr", "split_part", "translate", "ltrim", "rtrim", "instr", "length", "RLIKE"}},
	{"differences from a public value, and of bounded values", []string{"int8mi(bigint,bigint)", "int4mi(integer,integer)", "date_mi(date,date)", "numeric_sub(numeric,numeric)", "float8mi(double precision,double precision)"}, []string{"-"}, false,
		"Both lie within their domains, whose width, or the difference of whose ends, was found to fit the type when the SQL was written; a wider type is taken where it does not. Normalising leaves no NaN and no infinity.", []string{"try_subtract", "datediff"}},
	{"quotients by a public step", []string{"int48div(integer,bigint)", "int8div(bigint,bigint)", "int4div(integer,integer)", "div(numeric,numeric)", "numeric_div(numeric,numeric)", "float8div(double precision,double precision)", "int4mod(integer,integer)"}, []string{"//", "/", "%"}, false,
		"The divisor is a positive constant, or what GREATEST keeps at 1 or more, and what is divided is bounded; a quotient of floating numbers that would underflow is not reached.", []string{"div", "try_divide"}},
	{"products and sums of bounded numbers", []string{"int8mul(bigint,bigint)", "int4mul(integer,integer)", "int4pl(integer,integer)", "float8mul(double precision,double precision)", "float8pl(double precision,double precision)", "numeric_mul(numeric,numeric)", "numeric_add(numeric,numeric)"}, []string{"*", "+"}, false,
		"The operands lie between public ends, and the products of the ends and their sum were found to fit when the SQL was written.", []string{"try_multiply", "try_add"}},
	{"cells and bounded whole numbers as such", []string{"int4(bigint)", "int4(boolean)", "int4(double precision)", "int4(numeric)", "int8(double precision)", "int8(numeric)", "float4(double precision)"},
		[]string{"CAST(… AS INTEGER)", "CAST(… AS BIGINT)", "CAST(… AS FLOAT)", "CAST(… AS DOUBLE)", "CAST(… AS DECIMAL)", "CAST(… AS HUGEINT)"}, false,
		"A cell is below 2^30, a sum is cut at what a release may hold before it is cast, and a boundary of cells lies within its column's type.", nil},
	{"days of a list", []string{"date_pli(date,integer)"}, []string{"+"}, false, "The number of days is one of a public list, all of whose days are dates, or NULL.", nil},
	{"microseconds of a moment", []string{`"extract"(text,timestamp without time zone)`, `"extract"(text,timestamp with time zone)`}, []string{"epoch_us(TIMESTAMP)", "epoch_us(TIMESTAMP WITH TIME ZONE)"}, false,
		"Of a moment within its domain, so a finite one; the field is a constant.", []string{"unix_micros"}},
	{"the beginning of a moment's cell", []string{"date_bin(interval,timestamp without time zone,timestamp without time zone)", "date_bin(interval,timestamp with time zone,timestamp with time zone)"}, []string{"time_bucket(INTERVAL, TIMESTAMP, TIMESTAMP)", "time_bucket(INTERVAL, TIMESTAMP WITH TIME ZONE, TIMESTAMP WITH TIME ZONE)", "to_microseconds(BIGINT)"}, false,
		"Of a moment within its domain, or NULL, and by a constant number of microseconds from a constant moment that is not after it: their distance is less than ten thousand years.", []string{"timestamp_micros", "unix_micros", "mod"}},
	{"the digits of a decimal without its point", nil, []string{"replace(VARCHAR, VARCHAR, VARCHAR)"}, true, "Of a text.", []string{"replace"}},
	{"counting, the least and the largest", []string{"count()", `count("any")`, "min(bigint)", "max(bigint)", "min(integer)", "max(integer)", "min(smallint)", "max(smallint)", "min(double precision)", "max(double precision)", "min(real)", "max(real)",
		"min(numeric)", "max(numeric)", "min(date)", "max(date)", "AGGREF"}, []string{"count(*)", "count(ANY)", "min(T)", "max(T)"}, true, "Values are counted and compared.", []string{"count", "min", "max"}},
	{"sums", []string{"sum(bigint)", "sum(numeric)"}, []string{"sum(BIGINT)", "sum(INTEGER)", "sum(HUGEINT)", "sum(DECIMAL)"}, false,
		"Of numbers between public ends, in numeric, hugeint or the widest decimal, which no number of rows overflows.", []string{"try_sum"}},
	{"numbering a unit's rows and groups", []string{"row_number()", "dense_rank()", "WINDOWFUNC", "WINDOWCLAUSE"}, []string{"row_number()", "dense_rank()"}, true, "The order is of values that compare.", []string{"row_number", "dense_rank"}},
	{"what window functions say of a unit's rows", []string{"rank()", "ntile(integer)", "lag(anyelement,integer)", "lead(anyelement,integer)", "first_value(anyelement)", "last_value(anyelement)"},
		[]string{"rank()", "ntile(INTEGER)", "lag(T, INTEGER)", "lead(T, INTEGER)", "first_value(T)", "last_value(T)"}, false, "They number rows and choose among values that are there; how many parts, and how far, are constants above 0 or 0.", []string{"rank", "ntile", "lag", "lead", "first_value", "last_value"}},
	{"queries", []string{"QUERY", "ALIAS", "COMMONTABLEEXPR", "FROMEXPR", "JOINEXPR", "RANGETBLENTRY", "RANGETBLREF", "SETOPERATIONSTMT", "SORTGROUPCLAUSE", "SUBLINK", "TARGETENTRY", "VAR"},
		[]string{"column", "*", "sub-query", "row(…)", "window"}, true, "Joins and memberships compare keys that the database found comparable before anything was charged.", nil},
}

package mysql

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
)

// dateForm is the one form of dates and times that both databases read alike.
var dateForm = regexp.MustCompile(`^(\d{4}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?$`)

// dateParts splits a date constant, and refuses zero dates and forms that PostgreSQL reads differently.
func dateParts(s string) (day, clock string) {
	parts := dateForm.FindStringSubmatch(s)
	if parts == nil {
		bail(Temporal, "'"+s+"' as a date", "Write dates as '2024-12-31' and times as '2024-12-31 23:59:59'.")
	}
	if _, err := time.Parse("2006-1-2", parts[1]); err != nil || strings.HasPrefix(parts[1], "0000") {
		bail(Temporal, "'"+s+"' as a date", "There is no such day; zero dates are not dates here: use IS NULL for what is missing.")
	}
	return parts[1], parts[2]
}

// moment compares a date or time with a constant.
func moment(op string, a value, constant string) *pg.Node {
	day, clock := dateParts(constant)
	switch {
	case a.class != date || clock == "":
		if a.class == date {
			constant = day
		}
		return operator(op, a.node, textNode(constant))
	case strings.Trim(clock, "0:.") == "":
		return operator(op, a.node, textNode(day))
	}
	return operator(op, toTimestamp(a.node), textNode(constant)) // MySQL compares such a date as a time
}

// clockForm is the one form of times of the day that both databases read alike.
var clockForm = regexp.MustCompile(`^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?$`)

// clockText is a constant that is compared with a time of the day. MySQL's go on to 838 hours, which no moment shows.
func clockText(s string) string {
	if !clockForm.MatchString(s) {
		bail(Temporal, "'"+s+"' as a time of the day", "Write times as '09:30' or '09:30:00', from '00:00' to '23:59:59.999999'.")
	}
	return s
}

// asTime is a value that a date function is called with: a date, a time, or a constant of one form.
func asTime(v value, what string) value {
	switch {
	case v.isTime():
		return v
	case v.literal != nil:
		day, clock := dateParts(*v.literal)
		if clock == "" {
			return value{toDate(textNode(day)), kind{class: date}}
		}
		return value{toTimestamp(textNode(*v.literal)), kind{class: datetime}}
	case v.class == null:
		return value{cast(v.node, "date"), kind{class: date}}
	}
	bail(Untyped, what+" of what is no date or time", "CAST it AS DATE.")
	return value{}
}

// intervals are the units of INTERVAL, and whether a date stays a date.
var intervals = map[string]struct {
	text  string
	whole bool
	times int64
}{
	"microsecond": {"microseconds", false, 1}, "second": {"seconds", false, 1}, "minute": {"minutes", false, 1}, "hour": {"hours", false, 1},
	"day": {"days", true, 1}, "week": {"days", true, 7}, "month": {"months", true, 1}, "quarter": {"months", true, 3}, "year": {"years", true, 1},
}

const maxInterval = 1_000_000

// shift is d ± INTERVAL n unit.
func (t *translator) shift(op string, d value, by, of ast.ExprNode, sc *scope) value {
	d = asTime(d, "adding an INTERVAL")
	unit, known := intervals[unitOf(of)]
	if !known {
		bail(Construct, "INTERVAL … "+strings.ToUpper(unitOf(of)),
			"SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER and YEAR are read.")
	}
	amount := ""
	switch v := t.expr(by, sc); {
	case v.literal != nil:
		amount = *v.literal
	case v.node.GetAConst().GetIval() != nil:
		amount = strconv.Itoa(int(v.node.GetAConst().GetIval().Ival))
	}
	n, err := strconv.ParseInt(amount, 10, 64)
	if err != nil || n > maxInterval || n < -maxInterval {
		bail(Construct, "this INTERVAL", "Write a whole number: INTERVAL 7 DAY.")
	}
	interval := cast(textNode(strconv.FormatInt(n*unit.times, 10)+" "+unit.text), "pg_catalog", "interval")
	sum := operator(op, d.node, interval)
	if d.class == date && unit.whole {
		return value{toDate(sum), kind{class: date}}
	}
	if d.class == date {
		return value{sum, kind{class: datetime}}
	}
	return value{sum, kind{class: d.class}}
}

// formats are the parts of DATE_FORMAT that to_char has too. Letters alone that a format does not name mean themselves
// in MySQL, and are quoted.
var formats = map[byte]string{'Y': "YYYY", 'y': "YY", 'm': "MM", 'c': "FMMM", 'd': "DD", 'e': "FMDD", 'j': "DDD", 'H': "HH24", 'k': "FMHH24", 'i': "MI", 's': "SS", 'S': "SS",
	'T': "HH24:MI:SS", 'M': "FMMonth", 'b': "Mon", 'W': "FMDay", 'a': "Dy", 'p': "AM", 'h': "HH12", 'I': "HH12", 'l': "FMHH12", 'v': "IW", 'x': "IYYY"}

// dateFormat is DATE_FORMAT(d, '…').
func dateFormat(d, format value) value {
	d = asTime(d, "DATE_FORMAT")
	if format.literal == nil {
		bail(Construct, "DATE_FORMAT with a format that is no constant", "Write the format as a string: DATE_FORMAT(d, '%Y-%m').")
	}
	var out strings.Builder
	form := *format.literal
	for i := 0; i < len(form); i++ {
		c := form[i]
		if c == '%' && i+1 < len(form) && form[i+1] != '%' {
			i++
			part, known := formats[form[i]]
			if !known {
				bail(Construct, "%"+form[i:i+1]+" in DATE_FORMAT", "%Y %y %m %c %d %e %j %H %k %h %i %s %T %p %M %b %W %a %v and %x are read.")
			}
			out.WriteString(part)
			continue
		}
		if c == '%' {
			i++
		}
		if strings.IndexByte(" -/:.,", c) >= 0 || isDigit(c) {
			out.WriteByte(c)
		} else if c == '"' || c == '\\' || c < ' ' {
			bail(Construct, "this character in DATE_FORMAT", "Put the parts together with CONCAT.")
		} else {
			out.WriteString(`"` + string(c) + `"`)
		}
	}
	node := textNode(out.String())
	return value{call("to_char", d.node, node), kind{class: text, caseless: plain(form)}}
}

// part is a field of a date as a whole number.
func part(field string, d value) value {
	return value{toInteger(extract(field, asTime(d, strings.ToUpper(field)).node)), kind{class: integer}}
}

// ofClock is a function of a time of the day: HOUR(TIME(seen)).
func ofClock(name, field string, d value) value {
	switch {
	case field == "hour" || field == "minute":
		return value{toInteger(extract(field, d.node)), kind{class: integer}}
	case name == "second":
		return value{toInteger(call("floor", extract("second", d.node))), kind{class: integer}}
	case name == "time":
		return d
	}
	bail(Temporal, strings.ToUpper(name)+" of a time of the day", "Of a time HOUR, MINUTE and SECOND are read; ask for the others of the date.")
	return value{}
}

// fields are the functions that are parts of a date in PostgreSQL too.
var fields = map[string]string{"year": "year", "quarter": "quarter", "month": "month", "day": "day", "dayofmonth": "day", "dayofyear": "doy", "weekofyear": "week",
	"hour": "hour", "minute": "minute"}

// temporal are the functions of dates and times.
func temporal(name string, args []value) (value, bool) {
	switch len(args) {
	case 0:
		switch name {
		case "curdate", "current_date":
			return value{sqlValue(pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE), kind{class: date}}, true
		case "now", "current_timestamp", "localtime", "localtimestamp":
			return value{call("date_trunc", textNode("second"), sqlValue(pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP)), kind{class: datetime}}, true
		}
	case 1:
		d := args[0]
		field := fields[name]
		if d.class == clock {
			return ofClock(name, field, d), true
		}
		if field != "" {
			return part(field, d), true
		}
		switch name {
		case "time":
			return value{cast(toTimestamp(asTime(d, "TIME").node), "pg_catalog", "time"), kind{class: clock}}, true
		case "second":
			return value{toInteger(call("floor", extract("second", asTime(d, "SECOND").node))), kind{class: integer}}, true
		case "dayofweek":
			return value{operator("+", part("dow", d).node, intNode(1)), kind{class: integer}}, true
		case "weekday":
			return value{operator("-", part("isodow", d).node, intNode(1)), kind{class: integer}}, true
		case "date":
			return value{toDate(asTime(d, "DATE").node), kind{class: date}}, true
		case "timestamp":
			return value{toTimestamp(asTime(d, "TIMESTAMP").node), kind{class: datetime}}, true
		case "last_day":
			month := call("date_trunc", textNode("month"), toTimestamp(asTime(d, "LAST_DAY").node))
			last := operator("-", operator("+", month, cast(textNode("1 months"), "pg_catalog", "interval")), cast(textNode("1 days"), "pg_catalog", "interval"))
			return value{toDate(last), kind{class: date}}, true
		case "monthname", "dayname":
			form := "FMMonth"
			if name == "dayname" {
				form = "FMDay"
			}
			return value{call("to_char", asTime(d, strings.ToUpper(name)).node, textNode(form)), kind{class: text, caseless: true}}, true
		}
	case 2:
		switch name {
		case "date_format":
			return dateFormat(args[0], args[1]), true
		case "datediff":
			return value{operator("-", toDate(asTime(args[0], "DATEDIFF").node), toDate(asTime(args[1], "DATEDIFF").node)), kind{class: integer}}, true
		case "week":
			if mode := args[1].node.GetAConst().GetIval(); mode != nil && mode.Ival == 3 {
				return part("week", args[0]), true
			}
		}
	}
	return value{}, false
}

func sqlValue(op pg.SQLValueFunctionOp) *pg.Node {
	return &pg.Node{Node: &pg.Node_SqlvalueFunction{SqlvalueFunction: &pg.SQLValueFunction{Op: op, Typmod: -1, Location: -1}}}
}

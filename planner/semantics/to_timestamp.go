package semantics

import (
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// timeFields are the parts of a template that to_timestamp and to_date read here, each with its number of digits. BI
// tools write their time filters with them.
var timeFields = []struct {
	name   string
	digits int
}{{"YYYY", 4}, {"HH24", 2}, {"MM", 2}, {"DD", 2}, {"MI", 2}, {"SS", 2}, {"US", 6}, {"MS", 3}}

// toTime folds to_timestamp(text, template) and to_date(text, template) over constants; nil for any other call, and for
// templates with other fields.
func toTime(env scalar.Env, name string, args []*Expr, pos int) *Expr {
	if name != "to_timestamp" && name != "to_date" || len(args) != 2 || args[0].Form != formConstant || args[1].Form != formConstant {
		return nil
	}
	text, ok := MustConstant(args[0]).(string)
	template, known := MustConstant(args[1]).(string)
	if !ok || !known {
		return nil
	}
	at, ok := readTime(env, text, strings.ToUpper(template))
	if !ok {
		return nil
	}
	if name == "to_date" {
		_, offset := at.Zone()
		return ConstantExpr(policy.Date((at.Unix()+int64(offset))/86400), policy.DateType, pos)
	}
	return ConstantExpr(policy.Timestamptz(at.UnixMicro()), policy.TimestampTZ, pos)
}

// readTime reads text by a template of fixed-width fields and separators that both have in the same places.
func readTime(env scalar.Env, text, template string) (time.Time, bool) {
	values := map[string]int{"YYYY": 1, "MM": 1, "DD": 1}
	for template != "" {
		field := ""
		for _, f := range timeFields {
			if !strings.HasPrefix(template, f.name) {
				continue
			}
			n, ok := digitsOf(text, f.digits)
			if !ok {
				return time.Time{}, false
			}
			field, values[f.name], text = f.name, n, text[f.digits:]
			break
		}
		if field == "" {
			if text == "" || template[0] != text[0] || parse.IsWordStart(template[0]) && template[0] != 'T' {
				return time.Time{}, false
			}
			template, text = template[1:], text[1:]
			continue
		}
		template = template[len(field):]
	}
	zone := env.Zone
	if zone == nil {
		zone = time.UTC
	}
	at := time.Date(values["YYYY"], time.Month(values["MM"]), values["DD"], values["HH24"], values["MI"], values["SS"], values["US"]*1000+values["MS"]*1_000_000, zone)
	year, month, day := at.Date()
	exists := [3]int{year, int(month), day} == [3]int{values["YYYY"], values["MM"], values["DD"]}
	return at, text == "" && exists && values["HH24"] < 24 && values["MI"] < 60 && values["SS"] < 60 && year > 1900
}

// digitsOf reads exactly n digits.
func digitsOf(text string, n int) (value int, ok bool) {
	if len(text) < n {
		return 0, false
	}
	for i := 0; i < n; i++ {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		value = value*10 + int(text[i]-'0')
	}
	return value, true
}

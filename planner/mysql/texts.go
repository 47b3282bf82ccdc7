package mysql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// textual are the functions of texts.
func textual(name string, args []value) (value, bool) {
	str := func(i int) value { return asText(args[i], strings.ToUpper(name)) }
	switch {
	case name == "substr" || name == "substring" || name == "mid":
		return substringOf(args), true
	case (name == "concat" || name == "concat_ws") && len(args) > 0:
		return concatenated(name, args), true
	case len(args) == 1:
		v := str(0)
		switch name {
		case "lower", "lcase":
			return value{call("lower", v.node), cased(v.kind, strings.ToLower)}, true
		case "upper", "ucase":
			return value{call("upper", v.node), cased(v.kind, strings.ToUpper)}, true
		case "length", "octet_length":
			return value{call("octet_length", v.node), kind{class: integer}}, true
		case "char_length", "character_length":
			return value{call("char_length", v.node), kind{class: integer}}, true
		case "trim", "ltrim", "rtrim":
			fn := map[string]string{"trim": "btrim", "ltrim": "ltrim", "rtrim": "rtrim"}[name]
			trims := map[string]func(string) string{"trim": func(s string) string { return strings.Trim(s, " ") },
				"ltrim": func(s string) string { return strings.TrimLeft(s, " ") }, "rtrim": func(s string) string { return strings.TrimRight(s, " ") }}
			return value{call(fn, v.node), cased(v.kind, trims[name])}, true
		case "reverse":
			return value{call("reverse", v.node), kind{class: text, binary: v.binary}}, true
		}
	case len(args) == 2 && (name == "left" || name == "right"):
		v, n := str(0), args[1].node.GetAConst().GetIval()
		if n == nil || n.Ival < 0 {
			break
		}
		cut := func(s string) string {
			r := []rune(s)
			n := min(int(n.Ival), len(r))
			if name == "left" {
				return string(r[:n])
			}
			return string(r[len(r)-n:])
		}
		return value{call(name, v.node, args[1].node), cased(v.kind, cut)}, true
	case len(args) == 3 && name == "replace":
		v := str(0)
		return value{call("replace", v.node, str(1).node, str(2).node), kind{class: text, binary: v.binary}}, true
	}
	return value{}, false
}

// cased is the kind of a text function's result, whose values follow from those of its argument.
func cased(k kind, f func(string) string) kind {
	out := kind{class: text, binary: k.binary, caseless: false}
	if k.literal != nil {
		k.values = []string{*k.literal}
	}
	if k.values != nil && allPlain(k.values) {
		out.values = []string{}
		for _, v := range k.values {
			out.values = append(out.values, f(v))
		}
	}
	return out
}

// asText is a value where MySQL takes a text: whole and decimal numbers, dates and times are written alike by both.
func asText(v value, what string) value {
	switch v.class {
	case text:
		if v.literal != nil {
			v.node = toText(v.node)
		}
		return v
	case integer, date, datetime:
		return value{toText(v.node), kind{class: text, caseless: true}}
	case decimal:
		if v = shown(v); v.scale >= 0 {
			return value{toText(v.node), kind{class: text, caseless: true}}
		}
	case boolean:
		return asText(number(v, what), what)
	case null:
		return value{toText(v.node), kind{class: text, caseless: true}}
	}
	bail(Untyped, what+" of this type", "CAST it to a text or a number of known digits.")
	return value{}
}

// concatenated is CONCAT, which is NULL as soon as one part is, or CONCAT_WS, which leaves NULL parts out.
func concatenated(name string, args []value) value {
	k := kind{class: text, caseless: true, binary: true}
	var node *pg.Node
	var list []*pg.Node
	for _, a := range args {
		v := asText(a, strings.ToUpper(name))
		k.caseless = k.caseless && (v.caseless || v.literal != nil && plain(*v.literal))
		k.binary = k.binary && (v.binary || v.literal != nil || v.caseless)
		list = append(list, v.node)
		if node == nil {
			node = v.node
		} else {
			node = operator("||", node, v.node)
		}
	}
	if k.caseless {
		k.binary = false
	}
	if name == "concat_ws" {
		node = call("concat_ws", list...)
	}
	return value{node, k}
}

// substringOf is SUBSTRING from a constant place; MySQL counts from the end where it is negative.
func substringOf(args []value) value {
	if len(args) != 2 && len(args) != 3 {
		bail(Syntax, "syntax error in the arguments of SUBSTRING", "")
	}
	v := asText(args[0], "SUBSTRING")
	nodes := []*pg.Node{v.node, args[1].node}
	at, length := args[1].node.GetAConst().GetIval(), int32(1<<30)
	if len(args) == 3 {
		nodes = append(nodes, args[2].node)
		c := args[2].node.GetAConst().GetIval()
		if c == nil || c.Ival < 0 {
			at = nil
		} else {
			length = c.Ival
		}
	}
	if at == nil || at.Ival < 1 {
		bail(Construct, "SUBSTRING from a place that is no positive constant", "SUBSTRING(column, 1, 3), LEFT and RIGHT are read.")
	}
	return value{call("substr", nodes...), cased(v.kind, func(s string) string {
		r := []rune(s)
		from := min(int(at.Ival)-1, len(r))
		return string(r[from:min(from+int(length), len(r))])
	})}
}

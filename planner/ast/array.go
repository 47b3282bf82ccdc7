package ast

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// ArrayElements are the elements of an array that a statement writes out, each cast as the array is: those of
// ARRAY[1.6, $1]::int[] are 1.6::int and $1::int, those of '{2,3}'::int[] are '2'::int and '3'::int. false means it is
// none.
func ArrayElements(n *pg.Node) (elements []*pg.Node, ok bool) {
	switch v := n.GetNode().(type) {
	case *pg.Node_AArrayExpr:
		return v.AArrayExpr.Elements, true
	case *pg.Node_AConst:
		if v.AConst.GetSval() == nil {
			return nil, false
		}
		values, ok := SplitArray(v.AConst.GetSval().Sval)
		for _, value := range values {
			text, given := value.(string)
			element := pg.MakeAConstStrNode(text, v.AConst.Location)
			if !given {
				element = &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: v.AConst.Location}}}
			}
			elements = append(elements, element)
		}
		return elements, ok
	case *pg.Node_TypeCast:
		t := v.TypeCast.TypeName
		if elements, ok = ArrayElements(v.TypeCast.Arg); !ok || len(t.ArrayBounds) != 1 {
			return nil, false
		}
		element := &pg.TypeName{Names: t.Names, Typmods: t.Typmods, Typemod: t.Typemod, Location: t.Location}
		cast := make([]*pg.Node, len(elements))
		for i, e := range elements {
			cast[i] = &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: e, TypeName: element, Location: v.TypeCast.Location}}}
		}
		return cast, true
	}
	return nil, false
}

// SplitArray reads a one-dimensional array literal: {a,"b c",NULL}.
func SplitArray(text string) ([]policy.Value, bool) {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, false
	}
	text = text[1 : len(text)-1]
	var out []policy.Value
	if strings.TrimSpace(text) == "" {
		return out, true
	}
	for {
		item, rest, ok := arrayItem(strings.TrimLeft(text, " \t\n"))
		if !ok || rest != "" && rest[0] != ',' {
			return nil, false
		}
		if out = append(out, item); rest == "" {
			return out, true
		}
		text = rest[1:]
	}
}

// arrayItem reads the item that a text begins with, and returns what follows it.
func arrayItem(text string) (item policy.Value, rest string, ok bool) {
	var b strings.Builder
	quoted := strings.HasPrefix(text, `"`)
	if quoted {
		text = text[1:]
	}
	for len(text) > 0 && !(quoted && text[0] == '"') && !(!quoted && text[0] == ',') {
		if text[0] == '\\' && len(text) > 1 {
			text = text[1:]
		} else if !quoted && strings.IndexByte(`{}"`, text[0]) >= 0 {
			return nil, "", false
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	if quoted {
		behind, closed := strings.CutPrefix(text, `"`)
		return b.String(), strings.TrimLeft(behind, " \t\n"), closed
	}
	plain := strings.TrimSpace(b.String())
	if strings.EqualFold(plain, "null") {
		return nil, text, true
	}
	return plain, text, plain != ""
}

package outerquery

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// FROM and calls in the tree for an engine: FROM pg_class c keeps its name and gets its schema, FROM dp.my_rows becomes
// a leaf, and a call is rebuilt where its function is on the list.

// relation rebuilds a name in FROM: a WITH query, or a relation of the sandbox with its schema.
func (t *tree) relation(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	node, refusal := ast.Copied(n, t.node)
	v, out := n.GetRangeVar(), node.GetRangeVar()
	out.Catalogname, out.Schemaname = "", ""
	if refusal != nil || v.Schemaname == "" && t.scope.Find(v.Relname) != nil {
		return node, refusal
	}
	private, other, refusal := t.b.Resolve(v)
	if refusal != nil {
		return nil, refusal
	}
	if private != nil && t.preview != nil && private.Schema == t.preview.table.Schema && private.Name == t.preview.table.Name {
		return t.leafAs(node, v.Relname, t.preview.leaf), nil
	}
	if private != nil {
		return nil, bind.PrivateJoin.At(int(v.Location), private.Name)
	}
	if other.Release != nil {
		leaf, refusal := t.syntheticTable(other.Release, int(v.Location))
		return t.leafAs(node, v.Relname, leaf), refusal
	}
	out.Schemaname = other.Schema
	for _, have := range t.b.relations {
		if have == other {
			return node, nil
		}
	}
	t.b.relations = append(t.b.relations, other)
	return node, nil
}

// leafAs turns a relation into a leaf that has its name.
func (t *tree) leafAs(n *pg.Node, name, leaf string) *pg.Node {
	v := n.GetRangeVar()
	if v.Relname = leaf; v.Alias == nil {
		v.Alias = &pg.Alias{Aliasname: name}
	}
	return n
}

func (t *tree) callable(f *pg.FuncCall) *refuse.Refusal {
	if refusal := semantics.EngineFunction(f); refusal != nil {
		return refusal
	}
	return seriesBounded(t.b.Binder, f)
}

// subLink rebuilds a sub-query of an expression: a query of its own, with leaves of its own.
func (t *tree) subLink(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	asked, s := len(t.b.Questions), n.GetSubLink()
	out, refusal := ast.Copied(n, t.node)
	if refusal != nil && t.g == nil && s.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && t.b.around(refusal).ID == bind.CountedAround.ID {
		t.b.Forget(asked)
		each, also := t.b.ForEach(s.Subselect.GetSelectStmt(), t.scope, t.conditions)
		if each != nil && also == nil {
			return t.node(lookedUp(each))
		}
	}
	return out, refusal
}

// ownType refuses the name of a type that is none of PostgreSQL's own schemas.
func ownType(t *pg.TypeName) *refuse.Refusal {
	words := ast.Strings(t.Names)
	if len(words) > 2 || len(words) == 2 && words[0] != "pg_catalog" && words[0] != "information_schema" || t.Setof || t.PctType {
		return refuse.UnknownType.At(int(t.Location), strings.Join(words, "."))
	}
	if slices.ContainsFunc(t.Typmods, func(m *pg.Node) bool { return m.GetAConst() == nil }) {
		return refuse.Construct.At(int(t.Location), "this type modifier")
	}
	return nil
}

// parameter writes $n as a typed literal.
func (t *tree) parameter(p *pg.ParamRef) (*pg.Node, *refuse.Refusal) {
	n := int(p.Number)
	params := t.b.Params
	params.Seen = max(params.Seen, n)
	typ := params.TypeOf(n)
	if typ == policy.Bpchar || typ == ast.BpcharArray {
		return t.char(n, typ), nil
	}
	untyped := typ == 0 || typ == policy.Unknown
	null := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}}
	if params.Describing {
		if untyped && n > 0 {
			return &pg.Node{Node: &pg.Node_ParamRef{ParamRef: &pg.ParamRef{Number: -int32(n), Location: -1}}}, nil
		}
		return ast.Cast(null, typ), nil
	}
	if n < 1 || n > len(params.Values) {
		return nil, refuse.UnknownParam.At(int(p.Location), n)
	}
	v := params.Values[n-1]
	if given := semantics.TypeOfValue(v); typ == 0 && given != policy.Unknown {
		typ = given
	}
	switch v := v.(type) {
	case nil:
		return ast.Cast(null, typ), nil
	case string:
		if set := &t.b.Context.Settings; untyped && !set.Literals.SameSettings(set.Zone, set.Form) {
			t.b.Given = append(t.b.Given, v)
			return &pg.Node{Node: &pg.Node_ParamRef{ParamRef: &pg.ParamRef{Number: int32(len(t.b.Given)), Location: -1}}}, nil
		}
		return ast.Cast(pg.MakeAConstStrNode(v, -1), typ), nil
	case []policy.Value:
		return ast.Cast(pg.MakeAConstStrNode(t.arrayText(v), -1), typ), nil
	}
	return ast.Cast(pg.MakeAConstStrNode(t.b.Env.FormatText(semantics.TypeOfValue(v), v), -1), typ), nil
}

// char writes a parameter of type bpchar, or of an array of them, which has the blanks that it has.
func (t *tree) char(n int, typ policy.Type) *pg.Node {
	value := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}}
	if params := t.b.Params; !params.Describing && n <= len(params.Values) {
		switch v := params.Values[n-1].(type) {
		case string:
			value = pg.MakeAConstStrNode(v, -1)
		case []policy.Value:
			value = pg.MakeAConstStrNode(t.arrayText(v), -1)
		}
	}
	cast := ast.CastTo(value, policy.Bpchar, -1)
	if typ == ast.BpcharArray {
		cast.GetTypeCast().TypeName.ArrayBounds = []*pg.Node{pg.MakeIntNode(-1)}
	}
	return cast
}

func (t *tree) arrayText(values []policy.Value) string {
	parts := make([]string, len(values))
	for i, v := range values {
		if parts[i] = "NULL"; v != nil {
			text := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(semantics.PlainText(t.b.Env, v))
			parts[i] = `"` + text + `"`
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

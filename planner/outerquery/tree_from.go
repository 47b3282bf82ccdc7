package outerquery

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// FROM and calls in the tree for an engine: FROM pg_class c keeps its name and gets its schema, FROM dp.my_rows becomes a leaf, and a call
// is rebuilt where its function is on the list.

// fromItem rebuilds an item of FROM, in which no private rows are left.
func (t *tree) fromItem(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	switch v := n.Node.(type) {
	case *pg.Node_RangeVar:
		return t.relation(v.RangeVar)
	case *pg.Node_RangeSubselect:
		query, refusal := t.query(v.RangeSubselect.Subquery.GetSelectStmt())
		return &pg.Node{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Lateral: v.RangeSubselect.Lateral, Subquery: ast.Select(query), Alias: aliasCopy(v.RangeSubselect.Alias)}}}, refusal
	case *pg.Node_RangeFunction:
		f := v.RangeFunction
		if len(f.Coldeflist) > 0 {
			return nil, refuse.Construct.At(-1, "a column definition list")
		}
		functions, refusal := t.nodes(f.Functions)
		return &pg.Node{Node: &pg.Node_RangeFunction{RangeFunction: &pg.RangeFunction{Lateral: f.Lateral, Ordinality: f.Ordinality, IsRowsfrom: f.IsRowsfrom, Functions: functions, Alias: aliasCopy(f.Alias)}}}, refusal
	case *pg.Node_JoinExpr:
		j := v.JoinExpr
		parts, refusal := t.fixed(j.Larg, j.Rarg, j.Quals)
		if refusal != nil {
			return nil, refusal
		}
		return &pg.Node{Node: &pg.Node_JoinExpr{JoinExpr: &pg.JoinExpr{Jointype: j.Jointype, IsNatural: j.IsNatural, Larg: parts[0], Rarg: parts[1], Quals: parts[2],
			UsingClause: ast.StringNodes(j.UsingClause), JoinUsingAlias: aliasCopy(j.JoinUsingAlias), Alias: aliasCopy(j.Alias)}}}, nil
	}
	return nil, refuse.Construct.At(ast.Location(n), "this item of FROM")
}

func aliasCopy(a *pg.Alias) *pg.Alias {
	if a == nil {
		return nil
	}
	return &pg.Alias{Aliasname: a.Aliasname, Colnames: ast.StringNodes(a.Colnames)}
}

// relation rebuilds a name in FROM: a WITH query, or a relation of the sandbox with its schema.
func (t *tree) relation(v *pg.RangeVar) (*pg.Node, *refuse.Refusal) {
	out := &pg.RangeVar{Relname: v.Relname, Inh: true, Relpersistence: "p", Alias: aliasCopy(v.Alias), Location: -1}
	node := &pg.Node{Node: &pg.Node_RangeVar{RangeVar: out}}
	if v.Schemaname == "" && t.scope.Find(v.Relname) != nil {
		return node, nil
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

// call rebuilds a function call of the allow-list.
func (t *tree) call(f *pg.FuncCall) (*pg.Node, *refuse.Refusal) {
	if refusal := semantics.EngineFunction(f); refusal != nil {
		return nil, refusal
	}
	if refusal := seriesBounded(t.b.Binder, f); refusal != nil {
		return nil, refusal
	}
	args, refusal := t.nodes(f.Args)
	if refusal != nil {
		return nil, refusal
	}
	order, refusal := t.nodes(f.AggOrder)
	if refusal != nil {
		return nil, refusal
	}
	filter, refusal := t.node(f.AggFilter)
	if refusal != nil {
		return nil, refusal
	}
	out := &pg.FuncCall{Funcname: ast.StringNodes(f.Funcname), Args: args, AggOrder: order, AggFilter: filter, AggWithinGroup: f.AggWithinGroup,
		AggStar: f.AggStar, AggDistinct: f.AggDistinct, FuncVariadic: f.FuncVariadic, Funcformat: f.Funcformat, Location: -1}
	if f.Over != nil {
		if out.Over, refusal = t.window(f.Over); refusal != nil {
			return nil, refusal
		}
	}
	return &pg.Node{Node: &pg.Node_FuncCall{FuncCall: out}}, nil
}

func (t *tree) window(w *pg.WindowDef) (*pg.WindowDef, *refuse.Refusal) {
	out := &pg.WindowDef{Name: w.Name, Refname: w.Refname, FrameOptions: w.FrameOptions, Location: -1}
	var refusal *refuse.Refusal
	if out.PartitionClause, refusal = t.nodes(w.PartitionClause); refusal != nil {
		return nil, refusal
	}
	if out.OrderClause, refusal = t.nodes(w.OrderClause); refusal != nil {
		return nil, refusal
	}
	ends, refusal := t.fixed(w.StartOffset, w.EndOffset)
	if refusal != nil {
		return nil, refusal
	}
	out.StartOffset, out.EndOffset = ends[0], ends[1]
	return out, nil
}

// subLink rebuilds a sub-query of an expression: a query of its own, with leaves of its own.
func (t *tree) subLink(s *pg.SubLink) (*pg.Node, *refuse.Refusal) {
	test, refusal := t.node(s.Testexpr)
	if refusal != nil {
		return nil, refusal
	}
	asked := len(t.b.Questions)
	query, refusal := t.query(s.Subselect.GetSelectStmt())
	if refusal != nil && t.g == nil && s.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && t.b.Around(refusal).ID == bind.CountedAround.ID {
		t.b.Forget(asked)
		each, also := t.b.ForEach(s.Subselect.GetSelectStmt(), t.scope, t.conditions)
		if each != nil && also == nil {
			return t.node(lookedUp(each))
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	return &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{SubLinkType: s.SubLinkType, Testexpr: test, OperName: ast.StringNodes(s.OperName), Subselect: ast.Select(query), Location: -1}}}, nil
}

// typeNameCopy rebuilds the name of a type of PostgreSQL's own schemas.
func typeNameCopy(t *pg.TypeName) (*pg.TypeName, *refuse.Refusal) {
	words := ast.Strings(t.Names)
	if len(words) > 2 || len(words) == 2 && words[0] != "pg_catalog" && words[0] != "information_schema" || t.Setof || t.PctType {
		return nil, refuse.UnknownType.At(int(t.Location), strings.Join(words, "."))
	}
	out := &pg.TypeName{Names: ast.StringNodes(t.Names), Typemod: -1, Location: -1}
	for _, m := range t.Typmods {
		if m.GetAConst() == nil {
			return nil, refuse.Construct.At(int(t.Location), "this type modifier")
		}
		out.Typmods = append(out.Typmods, pg.MakeAConstIntNode(int64(m.GetAConst().GetIval().GetIval()), -1))
	}
	for range t.ArrayBounds {
		out.ArrayBounds = append(out.ArrayBounds, pg.MakeIntNode(-1))
	}
	return out, nil
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
	null := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}}
	if params.Describing && (typ == 0 || typ == policy.Unknown) && n > 0 {
		return &pg.Node{Node: &pg.Node_ParamRef{ParamRef: &pg.ParamRef{Number: -int32(n), Location: -1}}}, nil
	}
	if params.Describing {
		return ast.Cast(null, typ), nil
	}
	if n < 1 || n > len(params.Values) {
		return nil, refuse.UnknownParam.At(int(p.Location), n)
	}
	v := params.Values[n-1]
	if typ == 0 {
		if typ = semantics.TypeOfValue(v); typ == policy.Unknown {
			typ = 0
		}
	}
	switch v := v.(type) {
	case nil:
		return ast.Cast(null, typ), nil
	case string:
		if set := &t.b.Context.Settings; (typ == 0 || typ == policy.Unknown) && !set.Literals.SameSettings(set.Zone, set.Form) {
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

// arrayText writes an array literal.
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

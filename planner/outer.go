package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// bound is what a statement is bound to above its questions.
type bound struct {
	Outer
	Columns []OutColumn
	shown   *shown // nil: no column is a count as it is, or none that can be told here
	direct  *direct
}

// bind plans the outer query of a statement, collecting its questions.
func (b *binder) bind(sel *pg.SelectStmt) (*bound, *refuse.Refusal) {
	out, refusal := b.outer(sel)
	return out, b.around(refusal)
}

func (b *binder) outer(sel *pg.SelectStmt) (*bound, *refuse.Refusal) {
	if sel.IntoClause != nil {
		return nil, refuse.IntoTable.At(-1)
	}
	if len(sel.LockingClause) > 0 {
		return nil, refuse.RowLocks.At(-1, lockName(sel.LockingClause[0]))
	}
	sel = b.readArms(sel)
	d, columns, refusal := b.simple(sel)
	if refusal != nil {
		return nil, refusal
	}
	if d != nil {
		return &bound{Outer{Direct: &d.Direct}, columns, &shown{d.Leaf, d.counts, d.linear}, d}, nil
	}
	tree, refusal := b.engineTree(sel)
	if refusal != nil {
		return nil, refusal
	}
	columns, from := b.treeColumns(sel)
	if columns == nil {
		columns = b.outColumns(sel)
	}
	return &bound{Outer{Tree: tree, Relations: b.relations}, columns, from, nil}, nil
}

// simple tries the forms that need no engine: an aggregation over private rows, an empty preview of them, and a SELECT
// without FROM. A nil Direct sends the statement to the engine.
func (b *binder) simple(sel *pg.SelectStmt) (*direct, []OutColumn, *refuse.Refusal) {
	if sel.Larg != nil || len(sel.ValuesLists) > 0 {
		return nil, nil, nil
	}
	scope, refusal := b.with(sel, nil)
	if refusal != nil {
		return nil, nil, refusal
	}
	from, refusal := b.fromRows(sel, scope)
	switch {
	case refusal != nil:
		return nil, nil, refusal
	case from != nil && !isGrouped(sel):
		return b.preview(sel, from)
	case from != nil:
		g, refusal := b.group(sel, from)
		if refusal != nil {
			return nil, nil, refusal
		}
		return b.direct(sel, g)
	case isBareSelect(sel):
		return b.direct(sel, nil)
	case len(sel.FromClause) == 1 && scope == nil:
		return b.wrapper(sel)
	}
	return nil, nil, nil
}

// preview answers what clients send to learn the columns of a table (WHERE 1 <> 1, LIMIT 0); rows themselves are refused.
func (b *binder) preview(sel *pg.SelectStmt, from *rows) (*direct, []OutColumn, *refuse.Refusal) {
	none := isZero(sel.LimitCount)
	out, refusal := b.project(sel, from, false)
	if refusal != nil {
		return nil, nil, refusal
	}
	for _, e := range conjuncts(out.where) {
		if e.isConstant() && e.parameter == 0 {
			v, refusal := e.value(nil)
			if refusal != nil {
				return nil, nil, refusal
			}
			none = none || v != true
		}
	}
	if !none && b.isPreview(sel, nil) {
		return nil, nil, nil
	}
	if !none {
		return nil, nil, rawRows.At(from.pos, from.table.Name)
	}
	d := &direct{Direct: Direct{Leaf: -1, Limit: -1, Having: scalar.Constant(false, policy.Bool)}}
	columns := make([]OutColumn, len(out.names))
	for i, e := range out.exprs {
		t := e.Type()
		if t == policy.Unknown {
			t = policy.Text
		}
		d.show(b, nullOf(t))
		columns[i] = OutColumn{Name: out.names[i], Type: t, Typmod: e.Typmod()}
	}
	return d, columns, nil
}

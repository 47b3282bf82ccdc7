package bind

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A key of GROUP BY has one value in each cell of its columns. A condition in it that is decided within a step is one
// that the database decides as it does those of WHERE: where it holds is a function of a further column of the rows
// (derived.Tested), whose cells are the truth values that conditions on the same columns may have together. Of
//
//	SELECT CASE WHEN price < 12.34 THEN 'low' WHEN price < 56.78 THEN 'middle' END, count(*) FROM lineitem GROUP BY 1
//
// the key reads a column of three cells, and no price.

// Tested is a key, or an argument, with its conditions within a step as functions of such columns, or as it is where it
// has none. Of an argument they are all that it may read within a step: others are added up by what holds where (sums
// of CASE). All: so are conditions that are no more than of cells.
func (b *Binder) Tested(r *Rows, place string, n *pg.Node, e *semantics.Expr, all bool) (
	*semantics.Expr, *refuse.Refusal) {
	within := func(e *semantics.Expr) bool {
		return slices.ContainsFunc(e.Cols, func(c int) bool {
			d := r.Table.Columns[c].Domain
			return d != nil && !d.Single()
		})
	}
	if b.AsWritten || r.MeetsList() || !all && !within(e) {
		return e, nil
	}
	table, t, plain, found := r.Table, b.OverRows(r, place), b.OverRows(r, place), false
	var met []condition
	around := t.Hook
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if e, refusal := around(n); e != nil || refusal != nil {
			return e, refusal
		}
		if op := n.GetAExpr(); n.GetBoolExpr() == nil && n.GetBooleanTest() == nil && (op == nil ||
			op.Kind == pg.A_Expr_Kind_AEXPR_OP && predicate.Opposite[ast.Strings(op.Name)[len(op.Name)-1]] == "") {
			return nil, nil
		}
		e, refusal := plain.Expr(n)
		if refusal != nil || e.Type() != policy.Bool || e.IsConstant() {
			return nil, refusal
		}
		c, refusal := b.decided(r, e)
		if c == nil || refusal != nil {
			return nil, refusal
		}
		if tested := c.inColumns(r, e.Pos); tested != nil {
			found = true
			return tested, nil
		}
		met = append(met, *c)
		return e, nil
	}
	tested, refusal := t.Expr(n)
	if noted := b.Notes; refusal == nil && r.test(met, all) { // the columns have other names then
		tested, refusal = t.Expr(n)
		b.Notes = noted
	}
	if refusal != nil || !found || place != "GROUP BY" && within(tested) {
		r.Become(table)
		return e, refusal
	}
	return tested, nil
}

// condition is one that the database can decide, on the columns of a table: within a step, or by cells.
type condition struct {
	derived.Condition
	of     *policy.Table
	within bool
}

// decided is a condition on rows as the database decides it, or nil if that cannot.
func (b *Binder) decided(r *Rows, e *semantics.Expr) (*condition, *refuse.Refusal) {
	l := semantics.Lowerer{Table: r.Table, Env: b.Env, Box: semantics.NewBox(r.Table, b.Env), Notes: &b.Notes,
		OffGrid: b.Context.Settings.OffGrid}
	c, ok, within, refusal := l.Decided(e)
	if !ok || refusal != nil {
		return nil, refusal
	}
	return &condition{c, r.Table, within}, nil
}

// inColumns is a condition as a function of the cell of a column that the rows have, or a constant where it is the same
// for each row, for bounds beyond the domain or on a step. It returns nil if it is neither.
func (c *condition) inColumns(r *Rows, pos int) *semantics.Expr {
	if len(c.Columns()) == 0 {
		return semantics.ConstantExpr(truthOf(c.Holds, c.Fails), policy.Bool, pos)
	}
	at, truths, ok := derived.TestedIn(r.Table, c.Condition)
	switch {
	case !ok:
		return nil
	case strings.Trim(truths, truths[:1]) == "":
		return semantics.ConstantExpr(truthValues[truths[0]], policy.Bool, pos)
	}
	cell := semantics.ColumnExpr(at, policy.Int4, -1, pos)
	return semantics.Node(semantics.FormOther, "truth "+truths, ofCell{cell.Expr, truths}, pos, cell)
}

// ofCell is the truth value of a condition in each cell of its column.
type ofCell struct {
	cell   scalar.Expr
	truths string
}

func (o ofCell) Type() policy.Type { return policy.Bool }
func (o ofCell) Typmod() int32     { return -1 }

func (o ofCell) Eval(row scalar.Row) (policy.Value, error) {
	v, err := o.cell.Eval(row)
	if err != nil || v == nil {
		return nil, err
	}
	return truthValues[o.truths[v.(int64)]], nil
}

// truthValues are those of derived.Tested.
var truthValues = map[byte]policy.Value{'t': true, 'f': false, 'n': nil}

// maxTested is how many combinations there may be of the cells of a statement's conditions: as many as of ten that may
// be NULL and of which none says anything of another.
const maxTested = 59049

// test gives the rows a column for those conditions of a list that read the same columns, all of them or where some are
// within a step, and reports whether there are such.
func (r *Rows) test(list []condition, all bool) (some bool) {
	for len(list) > 0 {
		read := list[0].reads()
		var same, others []condition
		for _, c := range list {
			if slices.Equal(c.reads(), read) {
				same = append(same, c)
			} else {
				others = append(others, c)
			}
		}
		if all || slices.ContainsFunc(same, func(c condition) bool { return c.within }) {
			r.testTogether(same)
			some = true
		}
		list = others
	}
	return some
}

func (c *condition) reads() (list []int) {
	for _, of := range c.Columns() {
		list = append(list, slices.Index(c.of.Columns, of))
	}
	slices.Sort(list)
	return list
}

// testTogether gives the rows a column for conditions, or several where they have too many truth values together.
func (r *Rows) testTogether(list []condition) {
	own := make([]derived.Condition, len(list))
	for i, c := range list {
		own[i] = c.Over(c.of, r.Table)
	}
	switch t := derived.NewTested(r.Table, own); {
	case t == nil && len(list) > 1:
		r.testTogether(list[:len(list)/2])
		r.testTogether(list[len(list)/2:])
	case t != nil && derived.CellsTested(t) <= maxTested:
		r.Become(t)
	}
}

// truthOf is the value of a condition that reads no column: nil is NULL.
func truthOf(holds, fails predicate.Pred) policy.Value {
	switch {
	case holds == nil:
		return true
	case fails == nil:
		return false
	}
	return nil
}

// A sum of several columns that is below something else is settled: it becomes a column of its own (Computed), so
// that
//
//	CASE WHEN closed_at - opened_at > interval '1 day' THEN 'late' ELSE 'in time' END
//
// reads one column. A comparison is moved over first: l_commitdate < l_receiptdate - 3 is l_commitdate - l_receiptdate
// < -3. What is only added up stays as it is: the database adds it up term by term (linear.go).
//
// That is done only where the columns' cells cannot be looked at together, because there are too many combinations or
// values vary within them: other expressions are functions of cells that releases hold, and are planned as ever.

// Settles gives a translator over the rows a settler. Rows that meet a public list are not the rows' own.
func (b *Binder) Settles(t *semantics.Translator, r *Rows) *semantics.Translator {
	if !r.MeetsList() && !b.AsWritten {
		t.Settler = &semantics.Settler{Rows: r, Env: b.Env}
	}
	return t
}

// Own is the table that the rows are of.
func (r *Rows) Own() *policy.Table { return r.Table }

// Compute gives the rows a computed column.
func (r *Rows) Compute(terms derived.ComputedColumn) (at int, ok bool) {
	if at, ok = derived.ComputedIn(r.Table, terms); ok {
		return at, true
	}
	c := &derived.Computed{From: r.Table}
	if d, ok := r.Table.Derived.(*derived.Computed); ok && !slices.ContainsFunc(terms, func(t derived.ComputedTerm) bool {
		return slices.Index(r.Table.Columns, t.Column) >= len(d.From.Columns)
	}) {
		c = &derived.Computed{From: d.From, Columns: slices.Clone(d.Columns)}
		own := slices.Clone(terms)
		for i, t := range own {
			own[i].Column = d.From.Columns[slices.Index(r.Table.Columns, t.Column)]
		}
		terms = own
	}
	c.Columns = append(c.Columns, terms)
	t := derived.NewComputed(c)
	if t == nil {
		return 0, false
	}
	r.Become(t)
	return len(t.Columns) - 1, true
}

package aggregate

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A SELECT that aggregates private rows. SELECT age / 10, count(*) FROM people GROUP BY 1 HAVING count(*) > 5 becomes a
// question with the key age / 10 and one counter; what is said of the answer, here HAVING, is above it.

// Grouping is a SELECT that aggregates private rows: a question below, and expressions over its answer above.
type Grouping struct {
	b          *Binder
	Sel        *pg.SelectStmt
	Rows       *bind.Rows
	Question   *linear.Question
	Leaf       int // index of its leaf
	keyAt      map[string]int
	placed     map[int]*pg.Node // by key: the item of SELECT that GROUP BY names it by, by place or name
	twice      *pg.Node         // an item of GROUP BY that names a key by another item of SELECT, which PostgreSQL takes for another key
	Targets    []bind.Target
	Above      bool            // DISTINCT remains above the leaf
	centred    map[string]bool // arguments, by canonical text, of aggregates about a mean
	values     map[string]*linear.Argument
	lists      *lookup.Tabulator   // parts of arguments that have columns of their own
	given      map[*pg.Node]*Found // what nodes mean that were looked at first: Thresholds, and those of occupied
	Thresholds bool                // comparisons of a count with a constant, where nothing else is shown
	Fanned     *fanned             // the rows meet a public list
	occupied   []*pg.Node          // conditions beside HAVING: enough rows, or units, are in a group
}

// Group binds a grouped SELECT over private rows.
func (b *Binder) Group(sel *pg.SelectStmt, from *bind.Rows) (*Grouping, *refuse.Refusal) {
	if g := b.Groups[sel]; g != nil {
		return g, nil
	}
	otherWay := from.OtherWay()
	if otherWay == nil {
		return b.groupOf(sel, from)
	}
	questions := len(b.Questions)
	g, refusal := b.groupOf(sel, from)
	if refusal == nil {
		if refusal = g.meets(); refusal == nil {
			return g, nil
		}
	}
	delete(b.Groups, sel)
	b.Questions = b.Questions[:questions]
	alone, refusal := otherWay()
	if refusal != nil {
		return nil, refusal
	}
	return b.groupOf(sel, alone)
}

// groupOf binds the conditions, then the keys, then what the SELECT shows of them, and asks the question that these
// make. Aggregates are bound where they are met, which may be above: Look adds counters to it.
func (b *Binder) groupOf(sel *pg.SelectStmt, from *bind.Rows) (*Grouping, *refuse.Refusal) {
	if refusal := b.RowPickers(sel, false); refusal != nil {
		return nil, refusal
	}
	q := &linear.Question{Table: from.Table, Preserved: from.Preserved(), OffGrid: b.Context.Settings.OffGrid}
	g := &Grouping{b: b, Sel: sel, Rows: from.AskedBy(q), Question: q, keyAt: map[string]int{},
		given: map[*pg.Node]*Found{}}
	t := g.Below("WHERE")
	g.Question.Where = from.Where()
	if sel.WhereClause != nil && ast.HasAggregate(sel.WhereClause) {
		return nil, refuse.AggregateIn.At(ast.Location(sel.WhereClause), "WHERE")
	}
	if from.Candidates() != nil {
		if refusal := g.fan(from); refusal != nil {
			return nil, refusal
		}
		g.Question.Turned = g.Fanned
	} else if sel.WhereClause != nil {
		e, refusal := t.Condition(sel.WhereClause, "WHERE")
		if refusal != nil {
			return nil, refusal
		}
		g.Question.Where = append(append([]*semantics.Expr{}, from.Where()...), e)
	}
	g.Rows.First(g.Question.Where, g.b.Env.Work)
	g.Targets = g.Rows.Targets(sel)
	g.findCentred()
	if refusal := g.findKeys(); refusal != nil {
		return nil, refusal
	}
	g.combine()
	findFrequency(g)
	if g.Fanned != nil {
		if refusal := g.Fanned.tellsApart(ast.Location(sel.FromClause[0])); refusal != nil {
			return nil, refusal
		}
	} else {
		g.findTop()
		g.findThresholds()
	}
	if refusal := frequent(g); refusal != nil {
		return nil, refusal
	}
	if g.Question.SQL = b.Text; b.Top != sel {
		g.Question.SQL = ast.Deparsed(sel)
	}
	g.Leaf = len(b.Questions)
	if g.Fanned != nil {
		for _, sub := range g.Fanned.each {
			sub.Leaf = g.Leaf
		}
	}
	b.Questions = append(b.Questions, g.Question)
	if b.Groups[sel] = g; b.Occupied[sel] {
		g.Present(linear.OfGroups)
	}
	return g, nil
}

// Having are the conditions on groups: HAVING, that they are occupied, and min_frequency.
func Having(g *Grouping) *pg.Node {
	return bind.AllOf(append(ast.Conjuncts(g.Sel.HavingClause), g.occupied...))
}

// Below translates over the private rows.
func (g *Grouping) Below(place string) *semantics.Translator { return g.b.OverRows(g.Rows, place) }

// findKeys binds GROUP BY: columns first, then output names and positions, then expressions. SELECT DISTINCT without
// aggregation groups by what it shows.
func (g *Grouping) findKeys() *refuse.Refusal {
	aggregated := g.Sel.HavingClause != nil || len(g.Sel.GroupClause) > 0
	for _, t := range g.Targets {
		aggregated = aggregated || ast.HasAggregate(t.Node)
	}
	if bind.IsDistinct(g.Sel) && !aggregated {
		for _, t := range g.Targets {
			if ast.HasWindow(t.Node) {
				return bind.WindowOnRows.At(ast.Location(t.Node))
			}
			if refusal := g.addKey(t.Node); refusal != nil {
				return refusal
			}
		}
		return nil
	}
	g.Above = len(g.Sel.DistinctClause) > 0
	if refusal := g.groupClause(); refusal != nil {
		return refusal
	}
	return g.findLevels()
}

func (g *Grouping) addKey(n *pg.Node) *refuse.Refusal {
	_, refusal := g.key(n)
	return refusal
}

// key is the index of a key, added at first use.
func (g *Grouping) key(n *pg.Node) (int, *refuse.Refusal) {
	if ast.HasAggregate(n) {
		return 0, refuse.AggregateIn.At(ast.Location(n), "GROUP BY")
	}
	t := g.Below("GROUP BY")
	e, refusal := t.Expr(n)
	if refusal != nil {
		return 0, refusal
	}
	e = t.Settler.Settled(e)
	if e, refusal = t.Typed(e, policy.Text); refusal != nil {
		return 0, refusal
	}
	if _, known := g.keyAt[e.Canon]; !known {
		canon := e.Canon
		if e, refusal = g.b.Tested(g.Rows, "GROUP BY", n, e, false); refusal != nil {
			return 0, refusal
		}
		if g.Fanned != nil {
			if refusal := g.Fanned.key(n, e.Pos); refusal != nil {
				return 0, refusal
			}
		} else {
			g.b.Open.Want(g.Rows.Table, e.Cols)
		}
		g.keyAt[canon] = len(g.Question.Keys)
		g.Question.Keys = append(g.Question.Keys, e)
		return g.keyAt[canon], nil
	}
	return g.keyAt[e.Canon], nil
}

// Found is what a node above the leaf reads from it: a key, or a counter with the type that SQL gives its aggregate.
type Found struct {
	Key, Counter int      // −1: not that
	Formula      *pg.Node // over the leaf's columns, in neither case
	Type         policy.Type
	choice       bool  // the counter is a choice, of the type
	typmod       int32 // of a choice among chars
}

// Look returns the leaf's column that a node means; nil, nil means none, go on with its parts.
func (g *Grouping) Look(n *pg.Node) (*Found, *refuse.Refusal) {
	if f := g.given[n]; f != nil {
		return f, nil
	}
	if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
		return g.Aggregate(f)
	}
	switch n.GetNode().(type) {
	case *pg.Node_SubLink:
		return g.keyElsewhere(n), nil
	case *pg.Node_AConst, *pg.Node_ParamRef, *pg.Node_CollateClause, nil:
		return nil, nil
	}
	if g.Fanned != nil && n == g.Fanned.label {
		return &Found{Key: -1, Counter: 0, Type: policy.Int8}, nil
	}
	if f := n.GetGroupingFunc(); f != nil {
		return g.level(f)
	}
	isColumn := n.GetColumnRef() != nil
	if ast.HasAggregate(n) || ast.HasWindow(n) {
		return nil, nil
	}
	e, refusal := g.b.Explore(g.Below("SELECT"), n)
	if refusal != nil {
		if isColumn {
			return nil, refusal
		}
		return nil, nil
	}
	settled := g.b.Settles(&semantics.Translator{}, g.Rows.AskedBy(nil)).Settler.Settled(e) // a sum of columns may be a key by its computed one
	for _, canon := range []string{e.Canon, settled.Canon} {
		if k, known := g.keyAt[canon]; known {
			return &Found{Key: k, Counter: -1, Type: g.Question.Keys[k].Type()}, nil
		}
	}
	if isColumn {
		return nil, g.Rows.Ungrouped(ast.Strings(n.GetColumnRef().Fields), ast.Location(n))
	}
	return nil, nil
}

// keyElsewhere finds the key that a sub-query is; nil means it is none. What it would add to the rows is left out.
func (g *Grouping) keyElsewhere(n *pg.Node) *Found {
	e, refusal := g.b.Explore(g.b.OverRows(g.Rows.AskedBy(nil), "SELECT"), n)
	if refusal != nil {
		return nil
	}
	if k, known := g.keyAt[e.Canon]; known {
		return &Found{Key: k, Counter: -1, Type: g.Question.Keys[k].Type()}
	}
	return nil
}

// Hook is look for expressions over the leaf's row: its keys, then its counters.
func (g *Grouping) Hook(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
	f, refusal := g.Look(n)
	if f == nil || refusal != nil {
		return nil, refusal
	}
	pos := ast.Location(n)
	if f.Formula != nil {
		e, refusal := (&semantics.Translator{Env: g.b.Env, Params: g.b.Params, Columns: g.leafColumn, Place: "SELECT"}).Expr(f.Formula)
		if refusal != nil {
			return nil, refusal
		}
		e.Formula = true
		return e, nil
	}
	if f.Key >= 0 {
		t, typmod := g.Question.Keys[f.Key].Type(), g.Question.Keys[f.Key].Typmod()
		return semantics.ColumnExpr(f.Key, t, typmod, pos), nil
	}
	if f.choice {
		return semantics.ColumnExpr(len(g.Question.Keys)+f.Counter, f.Type, f.typmod, pos), nil
	}
	e := semantics.ColumnExpr(len(g.Question.Keys)+f.Counter, policy.Int8, -1, pos)
	if f.Type == policy.Int8 {
		return e, nil
	}
	s, err := g.b.Env.Cast(e.Expr, f.Type, -1)
	if err != nil {
		return nil, semantics.ScalarRefusal(err, pos)
	}
	return semantics.Node(semantics.FormOther, "cast:"+f.Type.Name(), s, pos, e), nil
}

// leafColumn resolves a column of the leaf in a formula.
func (g *Grouping) leafColumn(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	for i, c := range g.Question.Counters {
		if fields[len(fields)-1] != g.Question.ColumnName(i) {
			continue
		}
		typ := policy.Int8
		switch {
		case c.Threshold != nil:
			typ = policy.Bool
		case c.Choice != nil:
			typ = c.Choice.Typ
		}
		return semantics.ColumnExpr(len(g.Question.Keys)+i, typ, -1, pos), nil
	}
	return nil, semantics.UnknownColumn.At(pos, strings.Join(fields, "."))
}

// findCentred notes the arguments of aggregates about a mean: sums of them are added up from the same centre.
func (g *Grouping) findCentred() {
	g.centred = map[string]bool{}
	note := func(n *pg.Node) bool {
		f := n.GetFuncCall()
		if f == nil || len(f.Args) == 0 {
			return false
		}
		if name, refusal := ast.FunctionName(f); refusal == nil && (moments[name] || pairs[name]) {
			for _, a := range f.Args {
				if e, refusal := g.Below("an aggregate").Expr(a); refusal == nil {
					g.centred[e.Canon] = true
				}
			}
		}
		return false
	}
	g.visit(note)
}

// visit shows all that reads the groups: outputs, HAVING and ORDER BY.
func (g *Grouping) visit(f func(*pg.Node) bool) {
	for _, t := range g.Targets {
		ast.Holds(t.Node, f)
	}
	ast.Holds(g.Sel.HavingClause, f)
	for _, n := range g.Sel.SortClause {
		ast.Holds(n, f)
	}
}

// A GROUP BY of declared columns whose combinations are too many for one answer is refused, or, where the policy says
// `large_products: threshold`, answered as one by an open column is (docs/adr/0018): the combinations that enough units
// have are found, and shown. The column holds the numbers of the cells.

// combine puts a question's keys into one open column of their combinations, where the statement has been found to need
// too many cells, its keys are bare columns of one table, and these have more combinations than that.
func (g *Grouping) combine() {
	o, t := g.b.Open, g.Rows.Table
	if o == nil || !o.Large || t.Derived != nil || t.Opened || t.Finds() || t.Dataset.Unit.Row || g.Fanned != nil || g.Question.Sets != nil || len(g.Question.Keys) < 2 {
		return
	}
	var columns []*policy.Column
	combinations := 1
	for _, e := range g.Question.Keys {
		if e.Form != semantics.FormColumn || t.Columns[e.Cols[0]].Open != nil || slices.Contains(columns, t.Columns[e.Cols[0]]) {
			return
		}
		c := t.Columns[e.Cols[0]]
		columns = append(columns, c)
		combinations = min(combinations*c.Domain.Size(), 2*plans.MaxCells)
	}
	if combinations <= plans.MaxCells {
		return
	}
	whole := o.Product(t, columns)
	at := len(t.Columns)
	open := whole.Columns[at]
	known := whole
	if f := o.Found[open]; f != nil {
		known = whole.With(map[*policy.Column]policy.Found{open: {Values: g.within(f.Values, columns)}})
	}
	g.Rows.Become(known)
	key := semantics.ColumnExpr(at, policy.Text, -1, g.Question.Keys[0].Pos)
	for i, e := range g.Question.Keys {
		part := discovery.OfCombination{Columns: columns, Which: i, At: at}
		g.Question.Keys[i] = semantics.Node(semantics.FormOther, "of "+open.Name+":"+strconv.Itoa(i), part, e.Pos, key)
	}
	o.Want(known, []int{at})
}

// within leaves out combinations that the condition excludes.
func (g *Grouping) within(values []string, columns []*policy.Column) []string {
	t := g.Rows.Table
	var deciding []*semantics.Expr
	for _, e := range linear.Conjuncts(g.Question.Where) {
		if !slices.ContainsFunc(e.Cols, func(c int) bool {
			return !slices.Contains(columns, t.Columns[c]) || !t.Columns[c].Domain.Single()
		}) {
			deciding = append(deciding, e)
		}
	}
	row := make(scalar.Row, len(t.Columns))
	return slices.DeleteFunc(slices.Clone(values), func(text string) bool {
		for i, c := range columns {
			row[slices.Index(t.Columns, c)] = discovery.Combined(text, columns, i)
		}
		for _, e := range deciding {
			if v, err := e.Eval(row); err == nil && v != true {
				return true
			}
		}
		return false
	})
}

package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// viewProblems are those of the SELECTs in a policy that are in the place of sources.
func viewProblems(p *policy.Policy) (problems policy.Problems) {
	readers := map[string]*policy.Table{}
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			if t.View.Text != "" && t.View.Trusted {
				problems = append(problems, trustedProblems(p, t, readers)...)
			} else if t.View.Text != "" {
				if refusal := bind.CheckView(p, t); refusal != nil {
					problems = append(problems, viewProblem(p, t, refusal.InCharacters(t.View.Text)))
				}
			}
		}
	}
	return problems
}

func viewProblem(p *policy.Policy, t *policy.Table, r *refuse.Refusal) policy.Problem {
	text := "table " + t.Name + ": source"
	if r.Position > 0 {
		text += fmt.Sprintf(", character %d of the SELECT", r.Position)
	}
	text += ": " + r.Message
	if r.Hint != "" {
		text += ". " + r.Hint
	}
	return policy.Problem{Path: p.Path, Line: t.View.Line, Column: t.View.Column, Text: text}
}

// trustedProblems says what is wrong with a trusted SELECT: readers are those that read a relation.
func trustedProblems(p *policy.Policy, t *policy.Table, readers map[string]*policy.Table) policy.Problems {
	sources, refusal := viewSources(p, t)
	if refusal != nil {
		return policy.Problems{viewProblem(p, t, refusal.InCharacters(t.View.Text))}
	}
	var problems policy.Problems
	tell := func(other *policy.Table) {
		problems = append(problems, viewProblem(p, t, bind.ViewElsewhere.At(-1, other.Name, other.Dataset.ID)))
	}
	for _, s := range sources {
		name := sourceName(p, s)
		if other := readers[name]; other != nil && other.Dataset != t.Dataset {
			tell(other)
		}
		readers[name] = t
		for _, d := range p.Datasets {
			for _, other := range d.Tables {
				if d != t.Dataset && !other.Public && other.View.Text == "" && sourceName(p, other.Source) == name {
					tell(other)
				}
			}
		}
	}
	return problems
}

// sourceName is one name for however a relation is spelled: DuckDB does not tell capitals apart, and MySQL not
// everywhere.
func sourceName(p *policy.Policy, s policy.Source) string {
	if p.Backend.Folds() {
		return strings.ToLower(s.Schema + "\x00" + s.Name)
	}
	return s.Schema + "\x00" + s.Name
}

func embedded(p *policy.Policy) bool { return strings.HasPrefix(p.Backend.URL, "duckdb:") }

// ViewSources lists the relations that a trusted SELECT reads.
func ViewSources(p *policy.Policy, t *policy.Table) []policy.Source {
	sources, _ := viewSources(p, t) // a refusal was reported when the policy was checked
	return sources
}

// viewSources reads the relations out of a trusted SELECT, each of which must be written in full: the database looks
// for no name in any schema by itself.
func viewSources(p *policy.Policy, t *policy.Table) (sources []policy.Source, refusal *refuse.Refusal) {
	sel, refusal := bind.ViewSelect(t.View.Text)
	if refusal != nil {
		return nil, refusal
	}
	queries := map[string]bool{}
	ast.Each(sel.ProtoReflect(), func(m protoreflect.Message) {
		if c, ok := m.Interface().(*pg.CommonTableExpr); ok {
			queries[c.Ctename] = true
		}
	})
	catalog, full := "", "schema.table"
	if embedded(p) {
		catalog, full = "private", "private.schema.table"
	}
	ast.Each(sel.ProtoReflect(), func(m protoreflect.Message) {
		if refusal != nil {
			return
		}
		switch n := m.Interface().(type) {
		case *pg.InsertStmt, *pg.UpdateStmt, *pg.DeleteStmt, *pg.MergeStmt:
			refusal = refuse.Writes.At(-1, "a statement in WITH that changes data")
		case *pg.IntoClause:
			refusal = refuse.IntoTable.At(-1)
		case *pg.LockingClause:
			refusal = refuse.RowLocks.At(-1, "a locking clause")
		case *pg.ParamRef:
			refusal = refuse.UnknownParam.At(int(n.Location), n.Number)
		case *pg.RangeVar:
			if n.Schemaname == "" && queries[n.Relname] {
				return
			}
			if n.Schemaname == "" || n.Catalogname != catalog {
				refusal = bind.ViewName.At(int(n.Location), n.Relname, full)
				return
			}
			if s := (policy.Source{Schema: n.Schemaname, Name: n.Relname}); !slices.Contains(sources, s) {
				sources = append(sources, s)
			}
		}
	})
	return sources, refusal
}

// Describe infers the parameter types (given ones win; 0 means infer) and the answer's columns of a Select or Explain.
// Where only the sandbox knows types of the outer query, or of a sub-query that is answered first, ask is true:
// describe Build(nil parameters), whose columns are the answer's if Columns is nil.
func Describe(s parse.Statement, given []policy.Type, c reuse.Context) (d plans.Description, ask bool, refusal *refuse.Refusal) {
	c = c.Limited()
	defer c.Stopped(&refusal)
	explain := s.Kind == parse.KindExplain
	if explain {
		s = s.Explain.Statement
	}
	if s.Kind != parse.KindSelect {
		return d, false, nil
	}
	c.Settings.Literals = s.Literals
	b := aggregate.NewBinder(c, &semantics.Parameters{Types: slices.Clone(given), Describing: true})
	b.Text, b.Top = s.Text, s.Select()
	b.Inner = describing(b, s, 1, &ask)
	out, refusal := outerquery.Bind(b)
	if refusal != nil {
		return d, false, s.Placed(refusal)
	}
	if out.Tree != nil {
		outerquery.SeeInTree(b)
	}
	d.Params, d.Columns = b.Params.Inferred(), plans.Bounded(out.Columns, s.Bounds)
	if explain {
		d.Columns = []plans.OutColumn{{Name: "QUERY PLAN", Type: policy.Text, Typmod: -1}}
		return d, false, nil
	}
	d.Outputs = outerquery.Outputs(b, nil, nil, false)
	if out.Tree != nil {
		d.Columns, ask = nil, true
	}
	return d, ask, nil
}

// OfferedType returns the name of a type that a client gives a parameter, and reports whether a parameter may have it.
func OfferedType(t policy.Type) (name string, offered bool) {
	return semantics.TypeName(t), t == 0 || t == policy.Unknown || ast.Castable(t)
}

// Package inspect holds a policy against what a database says of its schema: the shape of its tables, the questions
// that each source answers (Questions), and the findings that follow. It reads no row but those of public tables.
package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// ColumnName names a column of the private database.
type ColumnName struct{ Schema, Table, Column string }

// ColumnOf names one.
func ColumnOf(schema, table, column string) ColumnName { return ColumnName{schema, table, column} }

// ColumnShape is what a database's catalog says of a column and its relation.
type ColumnShape struct {
	Relation int64  // the relation's number, which a replaced table does not keep
	Kind     string // "table", "partitioned table", "view", "foreign table", …
	KindOf   string // the column's type: "integer", "DECIMAL(12,2)", "email"
	Base     string // the type that a domain is over, kindOf itself where it is none; "enum" for every enumerated type, "domain of an enum" for one over it
	Scale    int    // of a numeric column, −1: none
	Loose    bool   // its collation takes different texts for equal
	NotNull  bool
	Computed bool // when it is read (GENERATED ALWAYS AS … VIRTUAL, since PostgreSQL 18)
	Secured  bool // the relation has row-level security
	Readable bool // by dpproxy's role
	More     any  // what else the catalog of one engine says, of a type that == compares
}

// Shape is what the catalog says of the columns that a dataset's policy names. Columns that do not exist are absent.
type Shape map[ColumnName]ColumnShape

// ColumnsRead lists the columns that tables read, the unit columns among them.
func ColumnsRead(tables []*policy.Table, in dialect.Dialect) []ColumnName {
	var list []ColumnName
	for _, t := range tables {
		if t.View.Text != "" {
			continue
		}
		schema, name := rewrite.Relation(t.Source, in)
		for _, key := range KeyColumns(t) {
			list = append(list, ColumnName{schema, name, key})
		}
		for _, c := range t.Columns {
			list = append(list, ColumnName{schema, name, c.Source})
		}
	}
	slices.SortFunc(list, func(a, b ColumnName) int {
		return strings.Compare(a.Schema+"\x00"+a.Table+"\x00"+a.Column, b.Schema+"\x00"+b.Table+"\x00"+b.Column)
	})
	return slices.Compact(list)
}

// Only is what it says of the columns that tables read.
func (s Shape) Only(tables []*policy.Table, in dialect.Dialect) Shape {
	list := Shape{}
	for _, at := range ColumnsRead(tables, in) {
		if c, ok := s[at]; ok {
			list[at] = c
		}
	}
	for _, t := range tables {
		if t.View.Text == "" {
			continue
		}
		schema, name := RelationOf(t, in)
		for at, c := range s {
			if at.Schema == schema && at.Table == name {
				list[at] = c
			}
		}
	}
	return list
}

// Drift is what became of the columns that a catalog had, in an operator's words: "people is another relation, a view,
// which was a table". It holds the names and types of columns that a policy names, and nothing else of the database's.
func (s Shape) Drift(now Shape) (list []string) {
	add := func(format string, args ...any) {
		if said := fmt.Sprintf(format, args...); !slices.Contains(list, said) {
			list = append(list, said)
		}
	}
	for at, was := range s {
		relation := strings.TrimPrefix(at.Schema+"."+at.Table, ".")
		column := relation + "." + at.Column
		is, there := now[at]
		switch {
		case !there:
			add("%s is gone", column)
		case is == was:
		case is.Relation != was.Relation || is.Kind != was.Kind:
			add("%s is another relation, a %s, which was a %s", relation, is.Kind, was.Kind)
		case is.KindOf != was.KindOf || is.Base != was.Base:
			add("%s is %s, which was %s", column, is.KindOf, was.KindOf)
		case is.Computed != was.Computed:
			add("%s became or ceased to be computed when it is read", column)
		case is.NotNull != was.NotNull:
			add("%s became or ceased to be NOT NULL", column)
		case is.Secured != was.Secured:
			add("row-level security of %s was switched on or off", relation)
		case is.Readable != was.Readable:
			add("the right to read %s was given or taken", column)
		default:
			add("%s has another scale or collation", column)
		}
	}
	for at := range now {
		if _, was := s[at]; !was {
			add("%s.%s.%s was not there", at.Schema, at.Table, at.Column)
		}
	}
	slices.Sort(list)
	return list
}

// KeyColumns are the columns that name a table's units and join its rows, each once.
func KeyColumns(t *policy.Table) []string {
	var list []string
	if t.UnitColumn != "" {
		list = append(list, t.UnitColumn)
	}
	for _, k := range t.Keys {
		if !slices.Contains(list, k.Source) {
			list = append(list, k.Source)
		}
	}
	if t.RowRank != "" && !slices.Contains(list, t.RowRank) {
		list = append(list, t.RowRank)
	}
	return list
}

// Pins are what Inspect saw of each dataset, by the policy that it was inspected for. A policy that is looked at may
// yet be refused, by the ledger or by what another of its datasets is like, and then nothing of it may matter to the
// one in force. So what was seen for a policy serves whoever reads its own tables, and decides for others only once it
// is in force (Adopt). What a user at a level reads is the whole policy's. Besides that one's the last one's is kept,
// since sessions may still ask under it, and that of one policy that is not in force; of others nothing.
//
//	inspect(p2), refused     p1's pins are as they were; p2's are dropped when p3 is inspected
//	inspect(p3), Adopt(p3)   p3's decide, p1's are kept for its sessions
type Pins[S any] struct {
	mu      sync.Mutex
	seen    map[*policy.Policy]map[*policy.Dataset]S
	inForce []*policy.Policy // the newest first, two at most
}

// Note is for Inspect.
func (p *Pins[S]) Note(of *policy.Policy, d *policy.Dataset, what S) {
	of, d = of.Whole(), d.Whole()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(append([]*policy.Policy{of}, p.inForce...))
	if p.seen[of] == nil {
		p.seen[of] = map[*policy.Dataset]S{}
	}
	p.seen[of][d] = what
}

// Adopt has what was seen for a policy decide.
func (p *Pins[S]) Adopt(of *policy.Policy) {
	of = of.Whole()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inForce) == 0 || p.inForce[0] != of {
		p.inForce = append([]*policy.Policy{of}, p.inForce[:min(len(p.inForce), 1)]...)
	}
	p.drop(p.inForce)
}

// drop forgets all but what was seen for these policies.
func (p *Pins[S]) drop(but []*policy.Policy) {
	kept := map[*policy.Policy]map[*policy.Dataset]S{}
	for _, of := range but {
		if seen := p.seen[of]; seen != nil {
			kept[of] = seen
		}
	}
	p.seen = kept
}

// Of is what was seen of a dataset of whichever policy.
func (p *Pins[S]) Of(d *policy.Dataset) (what S, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, seen := range p.seen {
		if what, known = seen[d.Whole()]; known {
			return what, true
		}
	}
	return what, false
}

// All is what was seen for a policy.
func (p *Pins[S]) All(of *policy.Policy) map[*policy.Dataset]S {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seen[of.Whole()])
}

// Deciding is what was seen for the policy in force.
func (p *Pins[S]) Deciding() map[*policy.Dataset]S {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inForce) == 0 {
		return nil
	}
	return maps.Clone(p.seen[p.inForce[0]])
}

// A trusted SELECT is held against the policy as a table is: the database describes what it would show, and does not
// run it.

// KindTrusted is the kind of relation that a trusted SELECT is.
const KindTrusted = "trusted SELECT"

// RelationOf is where the shape has a table: a SELECT has a place of its own, in no schema.
func RelationOf(t *policy.Table, in dialect.Dialect) (schema, name string) {
	if t.View.Text != "" {
		return "", t.Schema + "." + t.Name
	}
	return rewrite.Relation(t.Source, in)
}

// Viewed are the columns of a SELECT that the policy names.
func Viewed(t *policy.Table) []string {
	list := KeyColumns(t)
	for _, c := range t.Columns {
		if !slices.Contains(list, c.Source) {
			list = append(list, c.Source)
		}
	}
	return list
}

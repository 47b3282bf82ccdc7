package service

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
)

// terms says in the ledger's words what a policy grants.
func terms(p *policy.Policy) ledger.Terms {
	t := ledger.Terms{PolicyDigest: p.Digest}
	for _, d := range p.Datasets {
		t.Datasets = append(t.Datasets, datasetTerms(p, d))
	}
	return t
}

func datasetTerms(p *policy.Policy, d *policy.Dataset) ledger.DatasetTerms {
	t := ledger.DatasetTerms{ID: d.ID, RenamedFrom: d.RenamedFrom, Accountant: d.Accountant, Neighbors: d.Neighbors, Unit: unitText(d),
		Cap: d.Cap.Cost, Budgets: map[string]ledger.BudgetTerms{}, Groups: map[string][]string{}, Paths: map[string]string{}}
	for _, table := range d.Tables {
		if table.Public {
			continue
		}
		t.Relations = append(t.Relations, relations(p, table)...)
		if table.View.Text == "" && !d.Unit.Row {
			t.Paths[relation(p, table)] = path(p, table)
		}
	}
	for user, b := range d.Budgets {
		limits := ledger.BudgetTerms{Limit: b.Cost, Refresh: b.Refresh, Lifetime: privacy.Cost{}}
		if b.Lifetime != nil {
			limits.Lifetime = b.Lifetime.Cost
		}
		if p.Group(user) != nil {
			user = ledger.GroupAccount(user)
		}
		t.Budgets[user] = limits
	}
	for _, g := range p.Groups {
		t.Groups[g.Name] = g.Members
	}
	return t
}

func unitText(d *policy.Dataset) string {
	if d.Unit.Row {
		return "row"
	}
	return d.Unit.Name + " " + d.Unit.Table + "." + d.Unit.Column
}

// path says how a table's rows name their unit, in the names of the database: "customer_id", or "order_id =
// public.orders.id, customer_id" of rows whose unit is found in another table; a file goes by its name in the policy,
// so that it may be moved. Two tables over one relation have the same.
func path(p *policy.Policy, t *policy.Table) string {
	column := t.UnitColumn
	if t.Via != nil {
		through := t.Via.Table.Name // of a SELECT
		if t.Via.Table.View.Text == "" {
			through = t.Via.Table.Source.Schema + "." + t.Via.Table.Source.Name
		}
		column = t.Via.Column + " = " + through + "." + t.Via.Key
	}
	if p.Backend.Folds() {
		column = strings.ToLower(column)
	}
	if t.Via == nil {
		return column
	}
	return column + ", " + path(p, t.Via.Table)
}

// relations names all that a table reads: those of a trusted SELECT are in its text, and what an analysed one reads are
// tables of the dataset. A relation that is a file goes by the file.
func relations(p *policy.Policy, t *policy.Table) []string {
	switch {
	case t.Analysed():
		return nil
	case t.View.Text == "":
		return []string{relation(p, t)}
	}
	var names []string
	for _, s := range planner.ViewSources(p, t) {
		name := relation(p, &policy.Table{Source: s})
		for _, d := range p.Datasets {
			for _, other := range d.Tables {
				if other.File != "" && strings.EqualFold(other.Source.Schema+"."+other.Source.Name, s.Schema+"."+s.Name) {
					name = relation(p, other)
				}
			}
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// relation names what a table reads, by one name for however it is spelled, so that two datasets cannot give two
// budgets over the same rows: DuckDB does not tell capitals apart, and a link leads to the file that is read.
func relation(p *policy.Policy, t *policy.Table) string {
	if t.File != "" {
		if real, err := filepath.EvalSymlinks(t.File); err == nil {
			return "file " + real
		}
		return "file " + t.File
	}
	name := t.Source.Schema + "." + t.Source.Name
	if p.Backend.Folds() {
		return strings.ToLower(name)
	}
	return name
}

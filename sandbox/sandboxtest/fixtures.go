// Package sandboxtest is what the tests of the sandboxes share: policies, statements that were recorded, engines that
// last for the whole of a test binary, and answers as text. Only tests import it.
package sandboxtest

import (
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Session is alice's session of the policy Census.
var Session = sandbox.Session{User: "alice", Database: "census", PID: 4711, Settings: map[string]string{
	"server_version": "15.0 (dpproxy 0.1)", "server_version_num": "150000", "search_path": `"$user", public`, "timezone": "UTC",
	"application_name": "psql", "jit": "on"}}

// Census is a policy of two datasets; alice has a budget in one of them.
func Census() *policy.Policy {
	d := &policy.Dataset{ID: "census", Unit: policy.Unit{Name: "person", Table: "people", Column: "person_id"},
		Neighbors: privacy.AddRemove, Accountant: privacy.Pure, Budgets: map[string]policy.Budget{"alice": {}}}
	people := &policy.Table{Dataset: d, Name: "people", Schema: "public", ExpectedRows: 1000, MaxRowsPerUnit: 1}
	people.Columns = []*policy.Column{
		{Table: people, Name: "age", Type: policy.Int4, Typmod: -1, Nulls: policy.NullCell, Outside: policy.OutsideClamp,
			Domain: &policy.Domain{Type: policy.Int4, Min: int64(0), Max: int64(119), Step: policy.Step{Whole: 1}, Regular: 120, Other: -1, Null: 120}},
		{Table: people, Name: "sex", Type: policy.Text, Typmod: -1, Nulls: policy.NullExclude, Outside: policy.OutsideOther,
			Domain: &policy.Domain{Type: policy.Text, Values: []string{"Female", "Male"}, Regular: 2, Other: 2, Null: -1}},
	}
	visits := &policy.Table{Dataset: d, Name: "visits", Schema: "clinic", ExpectedRows: 5000, MaxRowsPerUnit: 5}
	visits.Columns = []*policy.Column{{Table: visits, Name: "kind", Type: policy.Varchar, Typmod: 14, Nulls: policy.NullCell,
		Outside: policy.OutsideOther, Domain: &policy.Domain{Type: policy.Varchar, Values: []string{"a"}, Regular: 1, Other: 1, Null: 2}}}
	d.Tables = []*policy.Table{people, visits}
	other := &policy.Dataset{ID: "payroll", Unit: policy.Unit{Row: true}, Budgets: map[string]policy.Budget{"bob": {}}}
	secret := &policy.Table{Dataset: other, Name: "salaries", Schema: "public", MaxRowsPerUnit: 1}
	secret.Columns = []*policy.Column{{Table: secret, Name: "amount", Type: policy.NumericType, Typmod: -1,
		Domain: &policy.Domain{Type: policy.NumericType, Min: policy.NewNumeric(0, 0), Max: policy.NewNumeric(9, 0),
			Step: policy.Step{Decimal: policy.NewNumeric(1, 0)}, Regular: 10, Other: -1, Null: -1}}}
	other.Tables = []*policy.Table{secret}
	return &policy.Policy{Datasets: []*policy.Dataset{d, other}}
}

// Clinic is a policy of one dataset, with the columns given for its table and a public table of codes.
func Clinic(columns ...string) *policy.Policy {
	d := &policy.Dataset{ID: "clinic", Unit: policy.Unit{Row: true}, Budgets: map[string]policy.Budget{"*": {}}}
	visits := &policy.Table{Dataset: d, Name: "visits", Schema: "public", MaxRowsPerUnit: 1}
	for _, c := range columns {
		name, text, _ := strings.Cut(c, " ")
		typ, typmod, err := policy.ParseType(text)
		if err != nil {
			panic(err)
		}
		visits.Columns = append(visits.Columns, &policy.Column{Table: visits, Name: name, Type: typ, Typmod: typmod, Comment: "the " + name})
	}
	codes := &policy.Table{Dataset: d, Name: "codes", Schema: "lookup", Public: true}
	codes.Columns = []*policy.Column{{Table: codes, Name: "code", Type: policy.Text, Typmod: -1}, {Table: codes, Name: "weight", Type: policy.NumericType, Typmod: -1}}
	d.Tables = []*policy.Table{visits, codes}
	return &policy.Policy{Datasets: []*policy.Dataset{d}}
}

// Codes are rows of the public table lookup.codes of the policy Clinic.
func Codes(rows ...[]policy.Value) sandbox.Rows {
	return sandbox.Rows{Data: rows,
		Columns: []sandbox.Column{{Name: "code", Type: policy.Text, Typmod: -1}, {Name: "weight", Type: policy.NumericType, Typmod: -1}}}
}

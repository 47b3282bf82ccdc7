package planner

import (
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// planOpen binds and plans a statement until nothing of its open columns is missing.
func planOpen(s parse.Statement, values []policy.Value, c Context) (*Plan, *refuse.Refusal) {
	o := &opening{found: map[*policy.Column]*finding{}, values: map[*policy.Column][]string{}}
	var last *refuse.Refusal
	for range mostBindings {
		o.tables = map[*policy.Table]*policy.Table{}
		p, refusal := build(s, values, c, o)
		if refusal != nil && len(refusal.Named) > 0 {
			last = refusal
			for _, v := range refusal.Named {
				o.values[v.Column] = append(o.values[v.Column], v.Text)
			}
			continue
		}
		if refusal != nil && refusal.ID == tooManyCells.ID && !o.large && c.Dataset != nil && c.Dataset.Threshold {
			o.large = true
			continue
		}
		if refusal != nil || len(o.wanted) == len(o.found) {
			if refusal == nil {
				refusal = o.finish(p, c)
			}
			if refusal != nil {
				return nil, refusal
			}
			return p, nil
		}
		for _, column := range o.wanted {
			if o.found[column] != nil {
				continue
			}
			if refusal := o.find(column, c); refusal != nil {
				return nil, refusal
			}
		}
	}
	return nil, last
}

package planner

import (
	"fmt"

	"github.com/dpproxy/dpproxy/planner/refuse"
)

// value puts an argument on its grid: a bare column on one that the database computes, an expression on that of its cells.
// What is averaged is added up from its middle, be it a column, a product or a sum: avg(2 * a + 3) errs by twice what avg(a) does.
func (g *grouping) value(arg *expr, centred bool, u use, pos int) (*value, *refuse.Refusal) {
	largest := u.largest(g.rows.table)
	key := fmt.Sprint(centred, u, largest, arg.canon)
	if v := g.values[key]; v != nil {
		return v, nil
	}
	v := &value{arg: arg, digits: decimalsIn(arg, g.rows.table), centred: centred, use: u, largest: largest}
	if refusal := v.place(g.rows.table, g.b.env, pos, &g.b.said); refusal != nil {
		return nil, refusal
	}
	if g.values == nil {
		g.values = map[string]*value{}
	}
	g.values[key] = v
	return v, nil
}

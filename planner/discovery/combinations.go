package discovery

import (
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Combinations of declared values that are too many for one answer (docs/adr/0018): a column holds the numbers of their
// cells, and its keys are found like any other's. In
//
//	SELECT city, age, income, count(*) FROM people GROUP BY 1, 2, 3
//
// the combination '4,31,7' has the fifth city, and so on.

// Product is the table with the column of the combinations of some, the same one each time that the statement is bound.
func (o *Keys) Product(t *policy.Table, columns []*policy.Column) *policy.Table {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	name := t.Name + "\x00" + strings.Join(names, "\x00")
	if o.products[name] == nil {
		if o.products == nil {
			o.products = map[string]*policy.Table{}
		}
		o.products[name] = t.WithProduct(columns)
	}
	return o.products[name]
}

// Combined is the i-th column's value in a combination. A placeholder, which is no combination, has some value.
func Combined(text string, columns []*policy.Column, i int) policy.Value {
	d := columns[i].Domain
	numbers := strings.Split(text, ",")
	if len(numbers) == len(columns) {
		if n, err := strconv.Atoi(numbers[i]); err == nil && n >= 0 && n < d.Size() {
			return d.Low(n)
		}
	}
	n, _ := strconv.Atoi(text[strings.LastIndexByte(text, ' ')+1:])
	return d.Low(max(n, 0) % d.Size())
}

// OfCombination is a column's value in a combination, an expression over the rows of the table that Product makes.
type OfCombination struct {
	Columns []*policy.Column
	Which   int // of them
	At      int // where the column of combinations is
}

func (k OfCombination) Type() policy.Type { return k.Columns[k.Which].Type }
func (k OfCombination) Typmod() int32     { return k.Columns[k.Which].Typmod }

func (k OfCombination) Eval(row scalar.Row) (policy.Value, error) {
	text, ok := row[k.At].(string)
	if !ok {
		return nil, nil
	}
	return Combined(text, k.Columns, k.Which), nil
}

// Package bounds plans what `dpproxy bounds` asks: between which ends the values of columns lie whose policy says
// `domain: private`, and how many rows a unit has. Of visits with such a column cost that is two histograms of units,
// each for a share of the price:
//
//	of cost, over the cells of its ladder (policy.Ladder), of one row of each person, which a hash picks (rewrite/roworder.go)
//	of the number of rows, over 1, 2, 3, 4, 5, 6, 7–8, 9–10, 11–15, …, of each person
//
// and what is read from them (read.go) is pasted into the policy. Nothing here has seen a row; the price does not hang
// on any.
//
// Why one row of each unit. With m rows a unit and questions at ε, a sum whose values are clamped at hi has noise that
// grows by m/ε with each step of hi, and loses one for each row above hi. Of m rows a unit these are m times as many as
// units whose picked row is above, as far as units have m rows: so hi is where 1/ε units have their row above, whatever
// m is, and the same histogram serves both ends. For the number of rows itself: noise grows by 1/ε with each row more,
// and a row is lost of each unit that has more; so the balance is where 1/ε units have more (Amin, Kulesza, Muñoz
// Medina, Vassilvitskii 2019 find the same rank). What 1/ε is, the dataset's default epsilon says: Ignored.
package bounds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// Kind is that of the measures, for dp.releases and the log.
const Kind = "bounds"

// maxRows is the most rows of a unit that are distinguished: what max_rows_per_unit may be at most.
const maxRows = 1_000_000

// Question is one histogram of units.
type Question struct {
	Table   *policy.Table  // of the policy
	Column  *policy.Column // of Table; nil means the number of a unit's rows is asked
	Domain  *policy.Domain // whose cells are counted
	Measure *plans.Measure
}

// Request is what is asked of one table, for one price.
type Request struct {
	Table     *policy.Table
	Questions []Question
	Cost      privacy.Cost // of all together
}

// Ask plans questions about the columns of a private table, and, with rows, about how many rows a unit has, each for an
// even share of the cost. Stored tells that they are read from a snapshot.
func Ask(t *policy.Table, columns []*policy.Column, rows, stored bool, cost privacy.Cost) (*Request, error) {
	switch {
	case t.Public:
		return nil, fmt.Errorf("table %s is public: nothing of it is bounded", t.Name)
	case t.Analysed():
		return nil, fmt.Errorf("table %s is a SELECT over other tables, whose columns have the bounds of what it reads: ask for those", t.Name)
	case rows && t.Dataset.Unit.Row:
		return nil, errors.New("each row is a unit in this dataset, and has one row")
	}
	n := int64(len(columns))
	if rows {
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("table %s has no column with domain: private, and nothing else was asked", t.Name)
	}
	share := privacy.Cost{Epsilon: privacy.MicroEpsilon(cost.Epsilon.Micro() / n), Rho: privacy.PicoRho(cost.Rho.Pico() / n)}
	if share.IsZero() {
		return nil, fmt.Errorf("%s is too little for %d questions", cost, n)
	}
	r := &Request{Table: t}
	for _, c := range columns {
		if !c.Private {
			return nil, fmt.Errorf("column %s has bounds: domain: private in their place has others found", c.Name)
		}
		own := alone(t, 1, stored)
		if err := r.add(Question{Table: t, Column: c, Domain: c.Domain}, own, own.Column(c.Name), share); err != nil {
			return nil, err
		}
	}
	if rows {
		most := int64(maxRows)
		if stored && t.RowRank != "" { // the copy has no rows of higher ranks
			most = t.MaxRowsPerUnit
		}
		units := derived.NewPerUnit(&derived.PerUnit{From: alone(t, most, stored), Aggregates: []derived.UnitAggregate{{Kind: derived.UnitCount}}})
		number := units.Columns[0]
		number.Domain = policy.RowsLadder(most)
		if err := r.add(Question{Table: t, Domain: number.Domain}, units, number, share); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// alone is the table with another bound of a unit's rows. Which stay is said by the hash of all that a row holds: not
// by a rank, which may be the order of time, nor by groups. (A snapshot is without the rows that a rank leaves out, and
// is the same table only with it.)
func alone(t *policy.Table, rows int64, stored bool) *policy.Table {
	own := t.With(nil)
	own.MaxGroups, own.MaxPerGroup, own.Appends = 0, 0, nil
	if !t.Dataset.Unit.Row {
		own.MaxRowsPerUnit, own.AnyRows = rows, false
	}
	if !stored {
		own.RowRank = ""
	}
	return own
}

// add plans the histogram of a table's units over the cells of one column.
func (r *Request) add(q Question, over *policy.Table, c *policy.Column, cost privacy.Cost) error {
	s := linear.Identity(over, []*policy.Column{c})
	spec, err := mechanisms.Plain(1, s.Cells, over.ContributionTo(s.Cells), cost)
	if err != nil {
		return err
	}
	q.Measure = s.Measure(Kind, "bounds of "+q.Name())
	q.Measure.Cost = cost
	s.Sold(q.Measure, spec)
	r.Questions = append(r.Questions, q)
	r.Cost = r.Cost.Plus(cost)
	return nil
}

// Name is what the question is about.
func (q Question) Name() string {
	if q.Column == nil {
		return "rows of " + q.Table.Name
	}
	return q.Table.Name + "." + q.Column.Name
}

// Held is a release that the user has paid for: what it is of, by its digest, and how exact.
type Held struct {
	ID     int64
	Digest plans.Digest
	Spec   mechanisms.Spec
}

// Know takes what is held already, where it is at least as exact as what is asked: such a question costs nothing
// (privacy rule 3).
func (r *Request) Know(held []Held) {
	for _, q := range r.Questions {
		m, best := q.Measure, q.Measure.Spec.RMSE(mechanisms.AllRanges)
		for _, h := range held {
			if h.Digest != m.Digest || h.Spec.Cells != m.Spec.Cells {
				continue
			}
			if off := h.Spec.RMSE(mechanisms.AllRanges); off <= best {
				best, m.Held, m.HeldID = off, true, h.ID
			}
		}
		if m.Held {
			m.Cost = privacy.Cost{}
		}
	}
	r.Cost = privacy.Cost{}
	for _, q := range r.Questions {
		r.Cost = r.Cost.Plus(q.Measure.Cost)
	}
}

// Plan is the plan that buys all of them in one charge.
func (r *Request) Plan(confidence mechanisms.Confidence) *plans.Plan {
	p := &plans.Plan{Dataset: r.Table.Dataset, Cost: r.Cost, Confidence: confidence}
	h := sha256.New()
	for _, q := range r.Questions {
		p.Measures = append(p.Measures, q.Measure)
		h.Write(append(q.Measure.Digest[:], q.Measure.Cost.String()...))
	}
	p.Statement = plans.Digest(h.Sum(nil))
	return p
}

// Ignored is how many units beyond an end cost a question at the dataset's default ε no more than the noise that a
// wider end would bring.
func Ignored(d *policy.Dataset) int64 {
	e := d.Defaults.Epsilon.Float()
	if e <= 0 {
		return 0
	}
	return int64(math.Floor(1 / e))
}

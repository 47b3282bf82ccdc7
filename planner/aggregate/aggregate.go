// Package aggregate binds the SELECTs that aggregate private rows: what stands in GROUP BY becomes keys, and aggregates
// become counters, of a question (package linear). The rows are package bind's, and what stands above the question is
// package outerquery's. Of
//
//	SELECT age / 10, avg(income) FROM people WHERE active GROUP BY 1 HAVING count(*) > 5
//
// the question has the key age / 10 (group.go) and two counters, of rows and of their incomes added up; avg(income) is
// SQL over both (moments.go), which HAVING and the SELECT around it read as columns of leaf_1.
package aggregate

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// Binder binds the SELECTs of one statement that aggregate private rows; Questions are what they ask.
type Binder struct {
	bind.Binder // of the rows
	Questions   []*linear.Question
	Groups      map[*pg.SelectStmt]*Grouping // each is bound once
}

func NewBinder(c reuse.Context, params *semantics.Parameters) *Binder {
	return &Binder{Binder: bind.NewBinder(c, params), Groups: map[*pg.SelectStmt]*Grouping{}}
}

// AnswerNothingFirst is for a statement of a batch, all of which is asked at once: WHERE income > (SELECT avg(income)
// FROM people) is refused in it.
func (b *Binder) AnswerNothingFirst() {
	b.Inner = func(_ *pg.SelectStmt, use bind.Use) (*plans.Answer, *refuse.Refusal) {
		if use == bind.Explored {
			return nil, nil
		}
		return nil, refuse.Construct.At(-1, "a sub-query that is answered before its statement")
	}
}

// Forget drops the questions from a number on, which what was refused has asked.
func (b *Binder) Forget(from int) {
	b.Questions = b.Questions[:from]
	for sel, g := range b.Groups {
		if g.Leaf >= from {
			delete(b.Groups, sel)
		}
	}
}

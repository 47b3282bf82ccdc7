// Package formula writes the SQL above counters: of
//
//	SELECT avg(income) FROM people
//
// with a counter of rows and one of their sum, `CASE WHEN leaf_1.n1 > leaf_1.n1_width THEN … leaf_1.n2 / leaf_1.n1
// END`. It is post-processing of what is released, in the SQL that sandboxes read (docs/adr/0013). What is asked, and
// which counters that takes, is package bind's.
package formula

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// Writer writes SQL over the columns of a leaf.
type Writer struct {
	Leaf     int // of the statement's
	Question *linear.Question
	Number   string // the type that is calculated in
}

// Counter is the column of a counter.
func (w *Writer) Counter(n int) string {
	return plans.LeafName(w.Leaf) + "." + w.Question.ColumnName(n)
}

// Clear is the condition that a counter is above least and above its own error: at no more than that, noise alone may
// have made it, and what is divided by it is anything (post-processing, as the error is public).
func (w *Writer) Clear(counter, least int) string {
	n, width := w.Counter(counter), w.Counter(w.Question.WidthOf(counter, linear.OfMeans))
	if least == 0 {
		return n + " > " + width
	}
	return fmt.Sprintf("%s > GREATEST(%d, %s)", n, least, width)
}

// Total is n times the mean of a value with the counters S and n, without a division.
func (w *Writer) Total(x *linear.Argument, s, n string) string {
	if x.Grid.Centre == 0 {
		s += "::numeric"
	}
	return w.Sum(x, s, n)
}

// Sum is the sum of a value with the counters S and n, of which the second is read where the value has a centre, or
// something is added to it.
func (w *Writer) Sum(x *linear.Argument, s, n string) string {
	if x.Grid.Centre != 0 {
		s = fmt.Sprintf("(%s + %d::numeric * %s)", s, x.Grid.Centre, n)
	}
	text := w.Times(w.Scaled(s, x.Grid.Exponent), x)
	if x.Plus != nil {
		text = fmt.Sprintf("(%s + %s * %s)", text, w.Constant(x.Plus), n)
	}
	return w.Digits(text, x)
}

// Mean is that of a value with the counters S and n, in floating point.
func (w *Writer) Mean(x *linear.Argument, s, n string) string {
	text := w.Times(w.Scaled(fmt.Sprintf("(%d::%s + %s::%[2]s / %[4]s)", x.Grid.Centre, w.Number, s, n), x.Grid.Exponent), x)
	if x.Plus != nil {
		text = fmt.Sprintf("(%s + %s)", text, w.Constant(x.Plus))
	}
	return text
}

// Digits gives an exact number as many digits after the point as a sum of the argument has in PostgreSQL.
func (w *Writer) Digits(text string, x *linear.Argument) string {
	own := max(-x.Grid.Exponent, 0)
	if x.Times != nil && x.Times.Cmp(big.NewRat(1, 1)) != 0 {
		own += semantics.DecimalsOf(x.Times)
	}
	if x.Plus != nil {
		own = max(own, semantics.DecimalsOf(x.Plus))
	}
	if w.Number != "numeric" || x.Digits < 0 || x.Digits == own {
		return text
	}
	return fmt.Sprintf("round(%s, %d)", text, x.Digits)
}

// Scaled multiplies by a power of ten.
func (w *Writer) Scaled(text string, exponent int) string {
	if exponent == 0 {
		return text
	}
	if w.Number == "float8" && exponent < 0 {
		return fmt.Sprintf("(%s::float8 / %s::float8)", text, semantics.Literal10(-exponent))
	}
	return fmt.Sprintf("(%s::%s * %s::%[2]s)", text, w.Number, semantics.Literal10(exponent))
}

// Variance is a variance, or the deviation that is asked for, with as many digits.
func (w *Writer) Variance(name, text string) string {
	switch {
	case !strings.HasPrefix(name, "stddev"):
		return text
	case w.Number == "numeric":
		return fmt.Sprintf("round(sqrt(%s), scale(%[1]s))", text)
	}
	return "sqrt(" + text + ")"
}

// Times multiplies by the constant of a product.
func (w *Writer) Times(text string, v *linear.Argument) string {
	if v.Times == nil || v.Times.Cmp(big.NewRat(1, 1)) == 0 {
		return text
	}
	return fmt.Sprintf("(%s * %s)", text, w.Constant(v.Times))
}

// Written is a constant with the digits that it was written with.
func (w *Writer) Written(x *linear.Argument) string {
	switch {
	case w.Number == "float8":
		f, _ := x.Most.Float64()
		return "'" + strconv.FormatFloat(f, 'g', -1, 64) + "'::float8"
	case x.Digits >= 0:
		return "'" + x.Most.FloatString(x.Digits) + "'::numeric"
	}
	return w.Constant(x.Most)
}

// Constant is an exact number, or its first twenty digits and more.
func (w *Writer) Constant(x *big.Rat) string {
	text := x.FloatString(20 + max(0, (x.Denom().BitLen()-x.Num().BitLen())/3))
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return "'" + text + "'::" + w.Number
}

// Parsed is the tree of such SQL.
func Parsed(text string) (*pg.Node, *refuse.Refusal) {
	tree, err := pg.Parse("SELECT " + text)
	if err != nil {
		return nil, semantics.Unsupported.At(-1, "this aggregate cannot be written")
	}
	return tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val, nil
}

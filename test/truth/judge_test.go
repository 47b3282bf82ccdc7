package truth

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A verdict's class. Each class but wrong, broken and denied is checked to the last value before it is given.
const (
	equal   = "equal"          // PostgreSQL's rows, no more and no less
	empty   = "zero groups"    // and besides groups of the domain in which nobody is: their counts are 0, their sums 0 or NULL
	nothing = "sum of nothing" // and sums to which no row belongs are 0, where PostgreSQL says NULL: whether one does is not told
	refused = "refused"        // by a code of the catalogue, before the charge
	fails   = "both fail"      // PostgreSQL fails too
	wrong   = "WRONG"
	broken  = "BROKEN" // an error that is no refusal
	denied  = "DENIED" // an error of PostgreSQL's own that PostgreSQL does not give: an undefined column that is there
)

// verdict is what became of one statement.
type verdict struct {
	class string
	why   string // of a refusal its code and text, of a fault what differs
}

func (v verdict) bad() bool { return v.class == wrong || v.class == broken || v.class == denied }

// judge holds an answer against PostgreSQL's; want has all rows, those that LIMIT leaves out too.
func judge(s *statement, got, want answer) verdict {
	switch {
	case got.err != nil && want.err != nil:
		return verdict{fails, want.err.Code}
	case got.err != nil:
		return judgeError(got)
	case want.err != nil:
		return verdict{wrong, "PostgreSQL fails: " + want.err.Message}
	}
	if len(got.columns) != len(want.columns) {
		return verdict{wrong, fmt.Sprintf("%d columns for %d", len(got.columns), len(want.columns))}
	}
	for i := range got.columns {
		if g, w := got.columns[i], want.columns[i]; g.Name != w.Name {
			return verdict{wrong, fmt.Sprintf("column %d is named %s for %s", i+1, g.Name, w.Name)}
		} else if g.DataTypeOID != w.DataTypeOID {
			return verdict{wrong, fmt.Sprintf("column %s has type %d for %d", g.Name, g.DataTypeOID, w.DataTypeOID)}
		}
	}
	j := &judged{s: s, got: got, want: want, scale: make([]float64, len(want.columns))}
	for _, row := range want.rows {
		for i, v := range row {
			if x, err := strconv.ParseFloat(v, 64); err == nil {
				j.scale[i] = max(j.scale[i], math.Abs(x))
			}
		}
	}
	if len(s.order) > 0 {
		return j.ordered()
	}
	return j.unordered()
}

func judgeError(got answer) verdict {
	why := got.err.Code + " " + got.err.Message
	switch {
	case strings.HasPrefix(got.err.Code, "DP"), got.err.Code == "0A000", strings.HasPrefix(got.err.Code, "54"), got.err.Code == "53400":
		return verdict{refused, why}
	case strings.HasPrefix(got.err.Code, "42"):
		return verdict{denied, why}
	}
	return verdict{broken, why}
}

type judged struct {
	s         *statement
	got, want answer
	scale     []float64 // the largest number of each column
	nothing   bool      // a sum of nothing has been taken for NULL
}

// sameRow compares two rows, each value by its type.
func (j *judged) sameRow(a, b []string) bool {
	nothing := false
	for i := range a {
		switch {
		case same(a[i], b[i], j.want.columns[i].DataTypeOID, j.scale[i]):
		case b[i] == null && isZero(a[i]) && j.sum(i):
			nothing = true
		default:
			return false
		}
	}
	j.nothing = j.nothing || nothing
	return true
}

// sum tells whether a column is a sum.
func (j *judged) sum(i int) bool {
	if j.s.fixed || i >= len(j.s.outs) {
		return false
	}
	o := j.s.outs[i]
	return o.role == valueRole && strings.HasPrefix(o.sql, "sum(")
}

// same compares two values of a type: whole numbers and texts exactly, numerics to the ninth digit, floats to the tenth of what
// is largest in their column, as sums of squares lose digits by cancelling.
func same(a, b string, oid uint32, scale float64) bool {
	if a == b || a == null || b == null {
		return a == b
	}
	switch oid {
	case 1700, 700, 701:
		x, err1 := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return err1 == nil && err2 == nil && math.Abs(x-y) <= 1e-9*max(scale, math.Abs(y))
	}
	return false
}

// hollow is a row of a group in which nobody is: counts are 0, all else is 0 or NULL.
func (j *judged) hollow(row []string) bool {
	if !j.s.grouped() || j.s.fixed {
		return false
	}
	for i, o := range j.s.outs {
		zero := row[i] == null || isZero(row[i])
		if o.role == countRole && !isZero(row[i]) || o.role == valueRole && !zero {
			return false
		}
	}
	return true
}

func isZero(s string) bool {
	x, err := strconv.ParseFloat(s, 64)
	return err == nil && x == 0
}

// sameKeys compares the keys of two rows.
func (j *judged) sameKeys(a, b []string) bool {
	for i, o := range j.s.outs {
		if o.role == keyRole && a[i] != b[i] {
			return false
		}
	}
	return true
}

// unordered: all of PostgreSQL's rows are there, and what is there besides is hollow, each group once.
func (j *judged) unordered() verdict {
	left := slices.Clone(j.got.rows)
	for _, row := range j.want.rows {
		at := slices.IndexFunc(left, func(have []string) bool { return j.sameRow(have, row) })
		if at < 0 {
			return verdict{wrong, fmt.Sprintf("lacks %s; has %s", show(row), j.nearest(row, left))}
		}
		left = slices.Delete(left, at, at+1)
	}
	return j.besides(left)
}

// besides judges the rows that are not PostgreSQL's.
func (j *judged) besides(left [][]string) verdict {
	for i, row := range left {
		again := func(other []string) bool { return j.s.sets == "" && j.sameKeys(row, other) }
		if !j.hollow(row) || slices.ContainsFunc(left[:i], again) || slices.ContainsFunc(j.want.rows, again) {
			return verdict{wrong, "has " + show(row) + ", which is not there"}
		}
	}
	if len(left) > 0 {
		return verdict{empty, ""}
	}
	if j.nothing {
		return verdict{nothing, ""}
	}
	return verdict{equal, ""}
}

// ordered: without the hollow rows these are PostgreSQL's first ones in its order; fewer than all of them only because of LIMIT.
func (j *judged) ordered() verdict {
	var left [][]string
	at := 0
	for _, row := range j.got.rows {
		switch {
		case at < len(j.want.rows) && j.sameRow(row, j.want.rows[at]):
			at++
		case j.hollow(row):
			left = append(left, row)
		case at < len(j.want.rows):
			return verdict{wrong, fmt.Sprintf("row %d is %s for %s", at+1, show(row), show(j.want.rows[at]))}
		default:
			return verdict{wrong, "has " + show(row) + ", which is not there"}
		}
	}
	if full := j.s.limit > 0 && len(j.got.rows) == j.s.limit; at < len(j.want.rows) && !full {
		return verdict{wrong, "lacks " + show(j.want.rows[at])}
	}
	if j.s.limit > 0 && len(j.got.rows) > j.s.limit {
		return verdict{wrong, "more rows than LIMIT"}
	}
	return j.besides(left)
}

// nearest is the row with the same keys, if there is one.
func (j *judged) nearest(row []string, rows [][]string) string {
	for _, r := range rows {
		if j.sameKeys(r, row) {
			return show(r)
		}
	}
	return fmt.Sprintf("%d other rows", len(rows))
}

func show(row []string) string {
	list := slices.Clone(row)
	for i := range list {
		if list[i] == null {
			list[i] = "NULL"
		}
	}
	return "(" + strings.Join(list, ", ") + ")"
}

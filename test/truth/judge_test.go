package truth

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// A verdict's class. Each class but wrong, broken and denied is checked to the last value before it is given.
const (
	equal   = "equal"                   // PostgreSQL's rows, no more and no less
	empty   = "zero groups"             // and besides groups of the domain in which nobody is: their counts are 0, their sums 0 or NULL
	nothing = "sum of nothing"          // and sums to which no row belongs are 0, where PostgreSQL says NULL: whether one does is secret
	divided = "division in zero groups" // 22012 whose hint names NULLIF, where PostgreSQL has no group at all
	steps   = "distinct steps"          // counts of different values are counts of different steps of the domain, as the notice says
	within  = "within its error"        // averages and variances of no more rows than the count of these may be off by are NULL, as the notice says
	unknown = "keys unknown"            // NOT IN looks past keys that are NULL, as the notice says
	refused = "refused"                 // by a code of the catalogue, before the charge
	fails   = "both fail"               // PostgreSQL fails too
	lenient = "PostgreSQL alone fails"  // on a value or a type that is not come to here
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
	case got.err != nil && got.err.Code == "22012" && strings.Contains(got.err.Hint, "NULLIF") && len(want.rows) == 0:
		return verdict{divided, ""}
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
		} else if g.DataTypeOID == pgtype.BPCharOID && w.DataTypeOID == pgtype.BPCharOID && g.TypeModifier < 0 { // a choice among chars is shown without blanks (docs/policy.md)
			got, want = got.withoutBlanks(i), want.withoutBlanks(i)
		} else if g.DataTypeOID != w.DataTypeOID {
			return verdict{wrong, fmt.Sprintf("column %s has type %d for %d", g.Name, g.DataTypeOID, w.DataTypeOID)}
		}
	}
	want = shownOf(s, got, want)
	j := &judged{s: s, got: got, want: want, scale: make([]float64, len(want.columns))}
	for _, row := range want.rows {
		for i, v := range row[:len(want.columns)] {
			if x, err := strconv.ParseFloat(v, 64); err == nil {
				j.scale[i] = max(j.scale[i], math.Abs(x))
			}
		}
	}
	if len(s.order) > 0 && s.sets == "" { // of ROLLUP several rows may have equal keys
		return j.ordered()
	}
	return j.unordered()
}

// shownOf is PostgreSQL's answer without the groups of a text that one person has, where they are not shown.
func shownOf(s *statement, got, want answer) answer {
	if !s.found() || s.fixed {
		return want
	}
	j, there := &judged{s: s, want: want}, map[string]bool{}
	for _, row := range got.rows {
		there[j.key(row)] = true
	}
	hidden := func(row []string) bool {
		for i, o := range s.outs {
			if o.found && (strings.HasPrefix(row[i], rare[:1]) || row[i] == strconv.Itoa(len(rare))) {
				return !there[j.key(row)]
			}
		}
		return false
	}
	want.rows = slices.DeleteFunc(slices.Clone(want.rows), hidden)
	return want
}

// withoutBlanks is an answer whose char column has no blanks that fill it up.
func (a answer) withoutBlanks(column int) answer {
	a.rows = slices.Clone(a.rows)
	for i, row := range a.rows {
		a.rows[i] = slices.Clone(row)
		if row[column] != null {
			a.rows[i][column] = strings.TrimRight(row[column], " ")
		}
	}
	return a
}

func judgeError(got answer) verdict {
	why := got.err.Code + " " + got.err.Message
	switch {
	case got.err.Code == "DP003" || got.err.Code == "DP004": // a ledger or a database that is not there
		return verdict{broken, why}
	case strings.HasPrefix(got.err.Code, "DP"), got.err.Code == "42501" && strings.HasSuffix(got.err.Message, " is not permitted"), got.err.Code == "0A000", strings.HasPrefix(got.err.Code, "54"), got.err.Code == "53400":
		return verdict{refused, why}
	case strings.HasPrefix(got.err.Hint, "Constants alone cause this error"), strings.HasPrefix(got.err.Hint, "This is found on the declared domain"), strings.HasPrefix(got.err.Hint, "Some value of the declared domain"): // an expression fails on a value that the policy declares
		return verdict{refused, why}
	case got.err.Code == "42883" && got.err.Message == "a value cannot be sent in the format that was asked for": // of a type that is none of a policy's
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
		case j.rounded(i, a[i], b[i]), j.product(i, a[i], b[i]), j.byChance(i, a[i], b[i]):
		case a[i] == null && j.unclear(i, b):
		case j.digits(i, a[i], b):
		case a[i] == null && i < len(j.s.outs) && b[i] == shareOfNobody(j.s.outs[i].sql):
			nothing = true
		case b[i] == null && isZero(a[i]) && j.sum(i):
			nothing = true
		default:
			return false
		}
	}
	j.nothing = j.nothing || nothing
	return true
}

var (
	ends      = regexp.MustCompile(`domain: \{min: ([-0-9.]+), max: ([-0-9.]+)(?:, step: ([0-9.]+))?`)
	counted   = regexp.MustCompile(`at most (\d+) rows of each`)
	variances = regexp.MustCompile(`^(?:var|stddev)`)
	squaresOf = regexp.MustCompile(`squares of an aggregate's argument are rounded to ([0-9.]+) where`)
)

// rounded tells a variance or a deviation of rounded squares: distances from the middle of the domain are squared and
// then rounded to whole squares of a step, a power of ten, of which the middle is at most √2^31 from the ends, and with
// n rows of a unit at most √(2^40/n). Each square is off by at most half of such a square g²; so the variance of N
// values, whose mean is not rounded, by at most g²/2·N/(N−1), which is g² at most.
func (j *judged) rounded(i int, a, b string) bool {
	if j.s.fixed || i >= len(j.s.outs) {
		return false
	}
	m := ends.FindStringSubmatch(j.s.outs[i].of.rules)
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	if strings.Contains(j.s.outs[i].sql, "stddev") {
		x, y = x*x, y*y
	}
	if m == nil { // of several columns: as the notice says
		g := squaresOf.FindStringSubmatch(strings.Join(j.got.said, "\n"))
		if g == nil || !variances.MatchString(j.s.outs[i].sql) {
			return false
		}
		square, _ := strconv.ParseFloat(g[1], 64)
		return math.Abs(x-y) <= square
	}
	least, _ := strconv.ParseFloat(m[1], 64)
	most, _ := strconv.ParseFloat(m[2], 64)
	_, places, _ := strings.Cut(m[3], ".")
	rows := 1.0
	if bound, err := strconv.ParseFloat(largest(counted, j.got.said), 64); err == nil {
		rows = max(rows, bound)
	}
	largest := math.Floor(math.Sqrt(min(1<<31, (1<<40)/rows)))
	finest := -len(places)
	exponent := finest
	for (most-least)*math.Pow10(-exponent) > 2*largest && max(math.Abs(least), math.Abs(most))*math.Pow10(-exponent) > largest {
		exponent++
	}
	if exponent == finest {
		return false
	}
	return math.Abs(x-y) <= math.Pow10(2*exponent)*(1+1e-9)+1e-9*y
}

// unclear tells an average or a variance of so few rows that it may be NULL: PostgreSQL's row says so behind its own
// columns (clearOf), in the order of the averages.
func (j *judged) unclear(i int, b []string) bool {
	if i >= len(j.s.outs) || j.s.behind(j.s.outs[i], "0") == "" {
		return false
	}
	behind := j.behind(i, b)
	return behind == null || strings.HasPrefix(behind, "-")
}

// digits tells two values of bit_and or bit_or apart by no more than digits that few rows tell.
func (j *judged) digits(i int, a string, b []string) bool {
	mask, err := strconv.ParseInt(j.behind(i, b), 10, 64)
	if mask < 0 {
		mask = -1 - mask
	}
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b[i], 10, 64)
	return err == nil && err1 == nil && err2 == nil && digitwise.MatchString(j.s.outs[i].sql) && x&mask == y&mask
}

// behind is what PostgreSQL's row says of how clear its i-th value is, behind its own columns.
func (j *judged) behind(i int, b []string) string {
	at := len(j.want.columns)
	if j.s.fixed || len(b) == at || i >= len(j.s.outs) || j.s.behind(j.s.outs[i], "0") == "" {
		return ""
	}
	for _, o := range j.s.outs[:i] {
		if j.s.behind(o, "0") != "" {
			at++
		}
	}
	return b[at]
}

// product tells a sum of products that are rounded row by row, to a power of ten with which the largest is at most
// 2^31: each is off by at most half of that, which is 5·2^−31 of the largest.
func (j *judged) product(i int, a, b string) bool {
	if j.s.fixed || i >= len(j.s.outs) || len(j.s.outs[i].pair) != 2 {
		return false
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	most, steps := 1.0, 1.0
	for _, c := range j.s.outs[i].pair {
		m := ends.FindStringSubmatch(c.rules)
		if m == nil {
			return false
		}
		least, _ := strconv.ParseFloat(m[1], 64)
		largest, _ := strconv.ParseFloat(m[2], 64)
		_, places, _ := strings.Cut(m[3], ".")
		most *= max(math.Abs(least), math.Abs(largest))
		steps *= math.Pow10(len(places))
	}
	const rows = 4000 // more than a schema's table has
	return err1 == nil && err2 == nil && most*steps > 1<<31 && math.Abs(x-y) <= rows*5*most/(1<<31)
}

// sum reports whether a column is a sum.
func (j *judged) sum(i int) bool {
	if j.s.fixed || i >= len(j.s.outs) {
		return false
	}
	o := j.s.outs[i]
	return o.role == valueRole && strings.HasPrefix(o.sql, "sum(")
}

// same compares two values of a type: whole numbers and texts exactly, numerics to the ninth digit, floats to the tenth
// of what is largest in their column, as sums of squares lose digits by cancelling, intervals by what they amount to:
// an average has its days and its time of day parted as the sums' were.
func same(a, b string, oid uint32, scale float64) bool {
	if a == b || a == null || b == null {
		return a == b
	}
	switch oid {
	case 1700, 700, 701:
		x, err1 := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return err1 == nil && err2 == nil && math.Abs(x-y) <= 1e-9*max(scale, math.Abs(y))
	case pgtype.IntervalOID:
		x, y := microseconds(a), microseconds(b)
		return x-y <= 1 && y-x <= 1
	}
	return false
}

// microseconds is what an interval amounts to, with months of 30 days, as PostgreSQL compares intervals.
func microseconds(text string) int64 {
	var v pgtype.Interval
	if err := v.Scan(text); err != nil {
		panic(err)
	}
	const day = 24 * 3600 * 1_000_000
	return (int64(v.Months)*30+int64(v.Days))*day + v.Microseconds
}

// hollow is a row of a group in which nobody is: counts are 0, or NULL where it is said that too few units show, all
// else is 0 or NULL.
func (j *judged) hollow(row []string) bool {
	if !j.s.grouped() || j.s.fixed {
		return false
	}
	for i, o := range j.s.outs {
		zero := row[i] == null || isZero(row[i]) || j.byChance(i, row[i], "0") || row[i] == "1" && amongNobody(o.sql)
		if o.role == countRole && !isZero(row[i]) && !j.byChance(i, row[i], "0") || o.role == valueRole && !zero {
			return false
		}
	}
	return true
}

// amongNobody reports whether an expression is 1 among no rows: a place in them.
func amongNobody(sql string) bool {
	return strings.HasPrefix(sql, "rank(") || strings.HasPrefix(sql, "cume_dist(")
}

// shareOfNobody is PostgreSQL's answer among no rows where dpproxy's is NULL (docs/sql.md), "" for other expressions.
func shareOfNobody(sql string) string {
	switch {
	case strings.HasPrefix(sql, "percent_rank("):
		return "0"
	case strings.HasPrefix(sql, "cume_dist("):
		return "1"
	}
	return ""
}

func isZero(s string) bool {
	x, err := strconv.ParseFloat(s, 64)
	return err == nil && x == 0
}

// unordered: all of PostgreSQL's rows are there, and what is there besides is hollow, each group once.
func (j *judged) unordered() verdict {
	left := map[string][][]string{} // by key: answers may have thousands of rows
	for _, row := range j.got.rows {
		left[j.key(row)] = append(left[j.key(row)], row)
	}
	var rest [][]string // those that are there to the last digit are found first, as 0.04 is near 1 beside two thousand millions
	for _, row := range j.want.rows {
		rows := left[j.key(row)]
		if at := slices.IndexFunc(rows, func(have []string) bool { return slices.Equal(have, row) }); at >= 0 {
			left[j.key(row)] = slices.Delete(rows, at, at+1)
		} else {
			rest = append(rest, row)
		}
	}
	for _, row := range rest {
		rows := left[j.key(row)]
		at := slices.IndexFunc(rows, func(have []string) bool {
			return j.sameRow(have, row) && nulls(have) == nulls(row)
		})
		if at < 0 { // a NULL that may be one, of which another row of these keys has none
			at = slices.IndexFunc(rows, func(have []string) bool { return j.sameRow(have, row) })
		}
		if at < 0 {
			return verdict{wrong, fmt.Sprintf("lacks %s; has %s", show(row), nearest(rows, len(j.got.rows)))}
		}
		left[j.key(row)] = slices.Delete(rows, at, at+1)
	}
	var besides [][]string
	for _, row := range j.got.rows {
		if rows := left[j.key(row)]; len(rows) > 0 && &rows[0][0] == &row[0] {
			besides, left[j.key(row)] = append(besides, row), rows[1:]
		}
	}
	return j.besides(besides)
}

// nulls are how many values of a row are NULL.
func nulls(row []string) (n int) {
	for _, v := range row {
		if v == null {
			n++
		}
	}
	return n
}

// key are the values of a row's keys, numbers without their last zeros.
func (j *judged) key(row []string) string {
	var b strings.Builder
	for i, o := range j.s.outs {
		if o.role != keyRole || j.s.fixed {
			continue
		}
		v := row[i]
		if oid := j.want.columns[i].DataTypeOID; oid == 1700 || oid == 700 || oid == 701 {
			if x, err := strconv.ParseFloat(v, 64); err == nil {
				v = strconv.FormatFloat(x+0, 'g', 12, 64)
			}
		}
		b.WriteString(v + "\x01")
	}
	return b.String()
}

// besides judges the rows that are not PostgreSQL's.
func (j *judged) besides(left [][]string) verdict {
	there := map[string]bool{}
	if j.s.sets == "" {
		for _, row := range j.want.rows {
			there[j.key(row)] = true
		}
	}
	for _, row := range left {
		k := j.key(row)
		if !j.hollow(row) || there[k] {
			return verdict{wrong, "has " + show(row) + ", which is not there"}
		}
		there[k] = j.s.sets == ""
	}
	if len(left) > 0 {
		return verdict{empty, ""}
	}
	if j.s.stepped() {
		return verdict{steps, ""}
	}
	if j.nothing {
		return verdict{nothing, ""}
	}
	return verdict{equal, ""}
}

// ordered: without the hollow rows these are PostgreSQL's first ones in its order; fewer than all of them only because
// of LIMIT.
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

// nearest is a row with the same keys, if there is one.
func nearest(rows [][]string, all int) string {
	if len(rows) > 0 {
		return show(rows[0])
	}
	return fmt.Sprintf("%d other rows", all)
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

// field is a column of an answer whose types are not said.
func field(name string, of uint32) pgconn.FieldDescription {
	return pgconn.FieldDescription{Name: name, DataTypeOID: of}
}

package answers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// clinicAnswer is what one statement brought.
type clinicAnswer struct {
	names []string
	rows  [][]string
	err   *pgconn.PgError
	took  time.Duration
}

// clinicAsk asks one statement; a connection that is lost is an error 08006.
func clinicAsk(conn *pgconn.PgConn, sql string) (a clinicAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	begin := time.Now()
	results, err := conn.Exec(ctx, sql).ReadAll()
	a.took = time.Since(begin)
	if err != nil && !errors.As(err, &a.err) {
		a.err = &pgconn.PgError{Code: "08006", Message: err.Error()}
	}
	for _, r := range results {
		for _, f := range r.FieldDescriptions {
			a.names = append(a.names, f.Name)
		}
		for _, values := range r.Rows {
			row := make([]string, len(values))
			for i, v := range values {
				if row[i] = string(v); v == nil {
					row[i] = "NULL"
				}
			}
			a.rows = append(a.rows, row)
		}
	}
	return a
}

// bounds are where the columns _low and _high of an answer with dp.error_columns are, by the place of their column;
// shown is the answer without them.
func (a clinicAnswer) bounds() (shown clinicAnswer, bounds []clinicRow) {
	var own []int
	low := map[int]int{}
	for i, name := range a.names {
		switch {
		case i > 0 && name == a.names[i-1]+"_low" && i+1 < len(a.names) && a.names[i+1] == a.names[i-1]+"_high":
			low[len(own)-1] = i
		case i > 1 && low[len(own)-1] == i-1:
		default:
			own = append(own, i)
			shown.names = append(shown.names, name)
		}
	}
	for _, row := range a.rows {
		r := clinicRow{}
		for i, at := range own {
			r.values = append(r.values, row[at])
			if l, bounded := low[i]; bounded {
				least, most := clinicWider(row[at], row[l], row[l+1])
				r.low, r.high = append(r.low, least), append(r.high, most)
			} else {
				r.low, r.high = append(r.low, row[at]), append(r.high, row[at])
			}
		}
		shown.rows, bounds = append(shown.rows, r.values), append(bounds, r)
	}
	return shown, bounds
}

// clinicBounds is the confidence of bounds that are asked for: the most at which computed columns have any, and twice as
// wide (clinicWider) what noise passes once in 10^5 values and less.
const clinicBounds = "0.998"

// clinicWider are the bounds of a number, twice as far from it.
func clinicWider(value, low, high string) (least, most string) {
	x, err := strconv.ParseFloat(value, 64)
	l, also := strconv.ParseFloat(low, 64)
	h, too := strconv.ParseFloat(high, 64)
	if err != nil || also != nil || too != nil {
		return low, high
	}
	return strconv.FormatFloat(2*l-x, 'g', -1, 64), strconv.FormatFloat(2*h-x, 'g', -1, 64)
}

// clinicRow is a row with the bounds of its values, which are the values where there are none.
type clinicRow struct{ values, low, high []string }

// is reports whether a row of PostgreSQL's is this one: each value is the same, or lies within its bounds, or, of what
// is chosen among the rows, between its neighbours in rank.
func (r clinicRow) is(w clinicWanted) bool {
	for i, want := range w.values {
		got := r.values[i]
		if got != want && !clinicBetween(want, r.low[i], r.high[i]) && !clinicBetween(got, w.low[i], w.high[i]) {
			return false
		}
	}
	return true
}

// clinicBetween reports whether a value lies from low to high: of arrays each element, of numbers and days by their
// order.
func clinicBetween(value, low, high string) bool {
	if strings.HasPrefix(value, "{") {
		values, lows, highs := strings.Split(strings.Trim(value, "{}"), ","),
			strings.Split(strings.Trim(low, "{}"), ","), strings.Split(strings.Trim(high, "{}"), ",")
		for i, v := range values {
			if len(lows) != len(values) || len(highs) != len(values) || !clinicBetween(v, lows[i], highs[i]) {
				return false
			}
		}
		return true
	}
	if clinicDay.MatchString(value) {
		return low <= value && value <= high
	}
	x, err := strconv.ParseFloat(value, 64)
	l, also := strconv.ParseFloat(low, 64)
	h, too := strconv.ParseFloat(high, 64)
	slack := 1e-9 * math.Abs(x)
	return err == nil && also == nil && too == nil && x >= l-slack && x <= h+slack
}

var clinicDay = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

// clinicWanted is a row of PostgreSQL's, with the neighbours in rank of what is chosen among rows.
type clinicWanted struct{ values, low, high []string }

// hollow reports whether it may be of a group that nobody is in: a count is 0.
func (r clinicRow) hollow() bool {
	return slices.Contains(r.values, "0") || slices.Contains(r.values, "0.00")
}

// clinicMatch holds an answer against PostgreSQL's: how many rows are of groups that nobody is in, and what differs.
func clinicMatch(got []clinicRow, want []clinicWanted) (hollow int, differs string) {
	found := make([]bool, len(want))
	for _, r := range got {
		at := 0
		for at < len(want) && (found[at] || !r.is(want[at])) {
			at++
		}
		switch {
		case at < len(want):
			found[at] = true
		case r.hollow():
			hollow++
		case differs == "":
			differs = fmt.Sprintf("has %q", r.values)
		}
	}
	if lacks := slices.Index(found, false); lacks >= 0 {
		differs = strings.TrimSpace(fmt.Sprintf("%s lacks %q", differs, want[lacks].values))
	}
	return hollow, differs
}

// clinicRanks is in the notice that what is chosen among rows may be off by a rank.
const clinicRanks = "rank error ±"

var clinicChosen = regexp.MustCompile(`^(?:(min|max)\(|percentile_(?:disc|cont)\((array\[[^]]*\]|[0-9.]+)\) WITHIN GROUP \(ORDER BY )`)

// clinicNeighbour is a question with the neighbours below or above of what its SELECT chooses by rank. That SELECT is in
// no parentheses.
func clinicNeighbour(sql string, above bool) string {
	var out strings.Builder
	depth := 0
	for at := 0; at < len(sql); at++ {
		m := clinicChosen.FindStringSubmatch(sql[at:])
		if depth > 0 || m == nil {
			depth += map[byte]int{'(': 1, ')': -1}[sql[at]]
			out.WriteByte(sql[at])
			continue
		}
		begin := at + len(m[0])
		end, open := begin, 1
		for ; open > 0; end++ {
			open += map[byte]int{'(': 1, ')': -1}[sql[end]]
		}
		x, shares := sql[begin:end-1], strings.Split(strings.Trim(strings.TrimPrefix(m[2], "array"), "[]"), ",")
		if m[1] != "" {
			shares = []string{map[string]string{"min": "0", "max": "1"}[m[1]]}
		}
		place := "greatest(1, floor(%[2]s * (count(%[1]s) - 1)))"
		if above {
			place = "least(count(%[1]s), ceil(%[2]s * (count(%[1]s) - 1)) + 2)"
		}
		for i, share := range shares {
			shares[i] = fmt.Sprintf("(array_agg(%[1]s ORDER BY %[1]s) FILTER (WHERE (%[1]s) IS NOT NULL))["+place+"::integer]", x, share)
		}
		if text := strings.Join(shares, ", "); strings.HasPrefix(m[2], "array") {
			out.WriteString("array[" + text + "]")
		} else {
			out.WriteString(text)
		}
		at = end - 1
	}
	return out.String()
}

// exact are rows without bounds.
func (a clinicAnswer) exact() (list []clinicRow) {
	for _, row := range a.rows {
		list = append(list, clinicRow{row, row, row})
	}
	return list
}

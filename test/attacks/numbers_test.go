package attacks

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// overNothing are aggregates over rows that nobody has.
var overNothing = []kit.Probe{
	{Name: "count", SQL: `SELECT count(*) FROM people WHERE age = 119`, Epsilon: 0.5, Number: nil},
	{Name: "sum", SQL: `SELECT sum(income) FROM people WHERE age = 119`, Epsilon: 0.5, Number: nil},
	{Name: "avg", SQL: `SELECT count(income), avg(income) FROM people WHERE age = 119`, Epsilon: 0.5, Number: overNothingAvg.read},
	{Name: "stddev", SQL: `SELECT count(age), stddev(age) FROM people WHERE age = 119`, Epsilon: 0.5, Number: overNothingStddev.read},
	{Name: "count distinct", SQL: `SELECT count(DISTINCT uid) FROM events WHERE amount > 99.75`, Epsilon: 0.5, Number: nil},
	{Name: "median", SQL: `SELECT median(income) FROM people WHERE age = 119`, Epsilon: 0.5, Number: nil},
}

// guarded reads answers of a count and a ratio. NULL is right where the noisy count is within its own error, and
// nowhere else: all counts beside NULL are below all the others. It tells nothing: the ratio is computed from the count
// that is shown.
type guarded struct {
	mu          sync.Mutex
	most, least float64 // the largest count beside NULL, and the least beside a number
}

var overNothingAvg, overNothingStddev = newGuarded(), newGuarded()

func newGuarded() *guarded { return &guarded{most: math.Inf(-1), least: math.Inf(1)} }

func (g *guarded) read(rows [][]string) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, ratio := kit.Cell(0, 0)(rows), kit.Cell(0, 1)(rows)
	if rows[0][1] == "" {
		g.most = max(g.most, n)
		return n
	}
	g.least = min(g.least, n)
	return ratio
}

// TestT5OverNothing: aggregates over no row at all are noisy numbers, never NaN, and the answer has its row; NULL is
// only what is divided by a noisy count within its own error, or chosen among the rows of one.
func TestT5OverNothing(t *testing.T) {
	kit.Beside(t)
	n := kit.Length(20, 200, 200)
	s := kit.Lab{Engine: "postgres", Users: n, People: 60, Change: kit.Undeclared}.Serve(t, 0)
	numbers, err := kit.DrawnBy(s.Program, n, overNothing)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	for i, q := range overNothing {
		good, distinct := 0, map[float64]bool{}
		for _, x := range numbers[i] {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				good++
				distinct[x] = true
			}
		}
		if q.Name == "median" { // a count beside it says that nothing is there, nearly always
			if good > n/2 {
				t.Errorf("median over nothing: %d of %d are values", good, n)
			}
		} else if good != n || len(distinct) < 2 {
			t.Errorf("%s over nothing: %d of %d are numbers, %d of them distinct", q.Name, good, n, len(distinct))
		}
		figures = append(figures, fmt.Sprintf("%s %d/%d of %d values", q.Name, good, n, len(distinct)))
	}
	for name, g := range map[string]*guarded{"avg": overNothingAvg, "stddev": overNothingStddev} {
		if g.most >= g.least || g.most < 1 || g.least < 2 {
			t.Errorf("%s is NULL beside counts up to %g, and a number beside counts from %g", name, g.most, g.least)
		}
	}
	threats.Reached(t, "T5", "noisy numbers: %s", strings.Join(figures, ", "))
}

// specials are what a floating column may hold at worst. Number 7 has each in turn.
var specials = []string{"'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "5e-324", "1.7976931348623157e308", "-1.7976931348623157e308", "NULL"}

// specialQuestions are each aggregate over the column, and the column as a key.
var specialQuestions = []string{
	`SELECT count(income), sum(income), avg(income), stddev(income) FROM people`, `SELECT median(income) FROM people`,
	`SELECT count(DISTINCT income) FROM people`, `SELECT corr(income, age) FROM people`,
	`SELECT width_bucket(income, 0, 100000, 4) AS b, count(*) FROM people GROUP BY 1 ORDER BY 1`,
	`SELECT income > 50000 AS above, count(*), sum(income) FROM people GROUP BY 1 ORDER BY 1`, `SELECT count(*) FROM people WHERE income = 0`,
}

// finite is a number on the grid of six decimal places or a boolean, and NULL where it is a key's.
var finite = regexp.MustCompile(`^(-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?|[tf]|NULL)$`)

// TestT17SpecialNumbers: with NaN, an infinity, -0, a subnormal or the largest number in the rows of number 7, each
// aggregate and each key is as finite, and of the same shape, as without her.
func TestT17SpecialNumbers(t *testing.T) {
	kit.Beside(t)
	answers, odd := 0, 0
	for _, engine := range []string{"duckdb", "postgres"} {
		without := kit.Lab{Engine: engine, Change: kit.Undeclared}.Serve(t, 7)
		for _, special := range specials {
			with := kit.Lab{Engine: engine, Change: kit.Undeclared, With: []string{"UPDATE people SET income = " + special + " WHERE uid = 7"}}.Serve(t, 0)
			p := pair{with.Connect("alice", "lab"), without.Connect("alice", "lab")}
			for _, sql := range specialQuestions {
				a, b := p.with.Ask(sql), p.without.Ask(sql)
				if d := kit.SameFrames(sql, paidAlike(a), paidAlike(b)); d != "" {
					t.Errorf("%s, %s: %s", engine, special, d)
				}
				answers++
				for _, row := range a.Rows {
					for _, x := range row {
						if !finite.MatchString(x) || strings.HasPrefix(x, "-0.") && strings.Trim(x, "-0.") == "" {
							odd++
							t.Errorf("%s, %s: %s answers %q", engine, special, sql, x)
						}
					}
				}
			}
			with.Stop(9)
		}
	}
	threats.Reached(t, "T17", "%d answers over %d special numbers on 2 engines: %d not finite, 0 differences of shape", answers, len(specials), odd)
}

// costNotice is what a notice says of the price: on the side that is asked again and again it is paid once.
var costNotice = regexp.MustCompile(`(?s)\*pgproto3.NoticeResponse.*`)

// paidAlike leaves the notices of price out of an answer.
func paidAlike(a kit.Answer) kit.Answer {
	out := a
	out.Frames = nil
	for _, f := range a.Frames {
		if !costNotice.MatchString(f) {
			out.Frames = append(out.Frames, f)
		}
	}
	return out
}

// TestT17NaNLowerBound is P2 where number 7's income is NaN: the noise holds for her.
func TestT17NaNLowerBound(t *testing.T) {
	kit.Beside(t)
	n := kit.Length(0, 4000, 20_000)
	if n == 0 {
		t.Skip("thousands of answers: a part of make safety")
	}
	probes := []kit.Probe{{Name: "SUM", SQL: `SELECT sum(income) FROM people WHERE hiv`, Epsilon: 1, Number: nil}, {Name: "COUNT", SQL: `SELECT count(income) FROM people WHERE hiv`, Epsilon: 1, Number: nil}}
	l := kit.Lab{Engine: "postgres", Users: n, People: 60, Change: kit.Undeclared, With: []string{`UPDATE people SET income = 'NaN' WHERE uid = 7`}}
	with, without := l.Pair(t)
	sides, err := kit.DrawnByBoth(with.Program, without.Program, n, probes)
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := kit.LowerBounds(sides, probes, kit.BoundsAlarm)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range probes {
		if bounds[i] > q.Epsilon {
			t.Errorf("%s with a NaN on one side: ε is at least %.3f, claimed %g", q.Name, bounds[i], q.Epsilon)
		}
	}
	threats.Reached(t, "T17", "a NaN on one side: ε of 1 at least %.2f (SUM), %.2f (COUNT) by %d answers a side", bounds[0], bounds[1], n)
}

// shapeOf writes a number's text with its digits masked: what is left is scale, sign aside, and form. Whole digits are
// noise.
var wholeDigits, anyDigit = regexp.MustCompile(`^-?[0-9]+`), regexp.MustCompile(`[0-9]`)

func shapeOf(text string) string {
	return anyDigit.ReplaceAllString(wholeDigits.ReplaceAllString(text, "n"), "d")
}

// TestT18TextOfNumbers: where only number 7 has an amount of six decimal places, the scale of what is printed, its
// type, width and modifier are the same without her, by both protocols.
func TestT18TextOfNumbers(t *testing.T) {
	kit.Beside(t)
	compared, differences := 0, 0
	for _, engine := range []string{"duckdb", "postgres"} {
		with, without := kit.Lab{Engine: engine}.Pair(t)
		p := pair{with.Connect("alice", "lab"), without.Connect("alice", "lab")}
		for i := range 20 {
			for _, form := range []string{`SELECT sum(amount) FROM events WHERE amount < %d`, `SELECT count(*), sum(amount) AS s FROM events WHERE amount >= %d`,
				`SELECT sum(amount) * 2, count(*) / 3 FROM events WHERE amount <> %d`} {
				sql := fmt.Sprintf(form, 2+i)
				a, b := p.with.Ask(sql), p.without.Ask(sql)
				compared++
				d := kit.SameFrames(sql, a, b)
				for k := 0; d == "" && k < len(a.Rows[0]); k++ {
					if x, y := shapeOf(a.Rows[0][k]), shapeOf(b.Rows[0][k]); x != y {
						d = fmt.Sprintf("%s: %s is printed as %s, and as %s", sql, a.Rows[0][k], x, y)
					}
				}
				if d == "" {
					d = p.sameExtended(sql)
				}
				if d != "" {
					differences++
					t.Error(d)
				}
			}
		}
	}
	threats.Reached(t, "T18", "%d differences of scale, width, type and modifier in %d answers by two protocols on 2 engines", differences, compared)
}

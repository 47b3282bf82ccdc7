package truth

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// gauges is one table with many days, on few of which anybody is: each day of an answer is a draw of its own.
func gauges(seed uint64) *schema {
	d := newDice(seed, 11)
	gauge := &table{name: "gauge", named: "gauge_id", bound: 1, keys: []string{"PRIMARY KEY (gauge_id)"}, columns: []column{
		{name: "gauge_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "moment", stored: "date", declared: "date",
			rules: "domain: {min: 2020-01-01, max: 2024-12-31}, nulls: exclude, outside: exclude", kind: dateKind},
		{name: "i", stored: "integer", declared: "integer",
			rules: "domain: {min: -5, max: 20}", kind: wholeKind},
		{name: "n", stored: "numeric(6,2)", declared: "numeric(6,2)",
			rules: "domain: {min: 0, max: 10, step: 0.01}", kind: moneyKind},
		{name: "f", stored: "double precision", declared: "double precision",
			rules: "domain: {min: -2, max: 8, step: 0.25}", kind: realKind},
		{name: "b", stored: "boolean", declared: "boolean", kind: boolKind},
	}}
	for id := range 400 {
		gauge.rows = append(gauge.rows, []string{strconv.Itoa(id), day("2020-01-01", d.IntN(1827)), strconv.Itoa(d.IntN(26) - 5), cents(d.IntN(1001)), quarters(d.IntN(41) - 8), d.one("t", "f", null)})
	}
	return &schema{name: "gauges", unit: "gauge.gauge_id", tables: []*table{gauge}}
}

// linear draws a linear function of counts and sums.
func (d dice) linear() string {
	term := func() string {
		sum := d.one("count(*)", "count(*) FILTER (WHERE b)", "sum(i)", "sum(n)", "sum(f)", "sum(-i)", "sum(-n)", "sum(2 * i)", "sum(CASE WHEN b THEN n END)", "coalesce(sum(n), 0)", "sum(i)::numeric", "sum(n)::float8", "-sum(f)")
		return d.one(sum, sum, "2 * "+sum, sum+" * 3", "-1 * ("+sum+")", "0.5 * "+sum)
	}
	text := term()
	for range d.few(0, 2) {
		text += d.one(" + ", " - ") + term()
	}
	return text
}

// TestBarsOfLinearFunctions: dp.low and dp.high of a linear function of counts and sums hold the true value as often as
// they say, bought afresh or read from what the statements before it bought, and are the same whenever they are asked for, as those of what is not linear are.
//
// Law. The bounds are one half-width to either side of the value. Each of 1,827 days has noise of its own, so that an
// answer is as many draws of each column. Over all statements the share of days whose true value lies within the bounds
// is 95 % at least: judged by the binomial distribution, with a false alarm once in ten million runs. Nor is it above
// 98.5 %, which at this ε would take bounds a third too wide. Noise is drawn by chance; statements by -truth-seed, a
// twentieth of -truth-statements, and 20 at least.
func TestBarsOfLinearFunctions(t *testing.T) {
	if !chosen("gauges", "duckdb") {
		t.Skip("another schema or engine is chosen")
	}
	byChance := *random
	*random = true
	t.Cleanup(func() { *random = byChance })
	p := pairOver(t, gauges(*seed), "duckdb", func(*schema) {})
	if a := p.ask("SET dp.epsilon = 1"); a.err != nil {
		t.Fatal(a.err)
	}
	d := newDice(*seed, 12)
	all := stattest.Coverage{Claim: 0.95}
	for range max(20, *statements/20) {
		fresh := d.chance(2)
		if fresh {
			p.fresh()
		}
		linear := d.linear()
		sql := "SELECT moment, " + linear + " AS x, dp.low(" + linear + ") AS low, dp.high(" + linear + ") AS high FROM gauge GROUP BY moment"
		got := p.ask(sql)
		if got.err != nil {
			t.Fatalf("%s: %s", sql, got.err.Message)
		}
		want := p.byDay(linear)
		if want.err != nil || len(want.rows) != len(got.rows) {
			t.Fatalf("%s: %v, %d rows for %d", sql, want.err, len(got.rows), len(want.rows))
		}
		if !evenly(got) {
			t.Fatalf("%s: bounds that are not a half-width to either side of the value", sql)
		}
		own := covered(got, want)
		if fresh { // others may be of noise that was drawn before
			all.Hits, all.Trials = all.Hits+own.Hits, all.Trials+own.Trials
		}
		if err := own.AtLeast(stattest.Usual); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		if again := p.ask(sql); !slices.EqualFunc(sortedRows(got), sortedRows(again), slices.Equal[[]string]) {
			t.Errorf("%s: other bounds when it is asked again", sql)
		}
	}
	if err := all.AtLeast(stattest.Usual); err != nil {
		t.Error(err)
	}
	if share := float64(all.Hits) / float64(all.Trials); share > 0.985 {
		t.Errorf("bounds hold %.2f %% of the values: they are too wide", 100*share)
	}
	t.Logf("%d of %d values lie within their bounds", all.Hits, all.Trials)
	for _, sql := range []string{
		"SELECT avg(n), dp.low(avg(n)), dp.high(avg(n)) FROM gauge",
		"SELECT b, 100.0 * count(*) / sum(count(*)) OVER () AS share, dp.low(100.0 * count(*) / sum(count(*)) OVER ()), dp.high(100.0 * count(*) / sum(count(*)) OVER ()) FROM gauge GROUP BY b",
	} {
		if first, again := p.ask(sql), p.ask(sql); first.err != nil || !slices.EqualFunc(sortedRows(first), sortedRows(again), slices.Equal[[]string]) {
			t.Errorf("%s: %v, and asked again %v %v", sql, first.rows, again.rows, first.err)
		}
	}
}

// TestBarsOfReleases: dp.low and dp.high of counts that a range release answers hold the true value as often as they
// say, where rows are on few days with long empty stretches between, and of days far apart together.
//
// Law. Each release of 40 is one draw of the noise; the counts of eight days that are a half-year apart are read from
// noises that hardly have one in common, so that the share of them that lies within its bounds is judged as that of
// TestBarsOfLinearFunctions is.
func TestBarsOfReleases(t *testing.T) {
	if !chosen("gauges", "duckdb") {
		t.Skip("another schema or engine is chosen")
	}
	byChance := *random
	*random = true
	t.Cleanup(func() { *random = byChance })
	s := gauges(*seed)
	s.tables[0].release = "kind: range, columns: [moment], epsilon: 1"
	for i, row := range s.tables[0].rows {
		row[1] = day("2020-01-01", 100+200*(i%8))
	}
	p := pairOver(t, s, "duckdb", func(*schema) {})
	for _, set := range []string{"SET dp.epsilon = 1", "SET dp.release = on"} {
		if a := p.ask(set); a.err != nil {
			t.Fatal(a.err)
		}
	}
	bars := func(key, where string) string {
		return "SELECT " + key + ", count(*), dp.low(count(*)), dp.high(count(*)) FROM gauge " + where + " GROUP BY 1"
	}
	lone, apart := stattest.Coverage{Claim: 0.95}, stattest.Coverage{Claim: 0.95}
	for range 40 {
		p.fresh()
		got, want := p.ask(bars("moment", "")), p.byDay("count(*)")
		together := p.ask(bars("extract(dow FROM moment)", "WHERE moment < '2024-12-31'"))
		if got.err != nil || want.err != nil || together.err != nil {
			t.Fatal(got.err, want.err, together.err)
		}
		if said := strings.Join(together.said, " "); !strings.Contains(said, "free") {
			t.Fatalf("days of the week are not read from the release: %s", said)
		}
		full := map[string]bool{}
		for _, row := range want.rows {
			full[row[0]] = number(row[1]) > 0
		}
		got.rows = slices.DeleteFunc(got.rows, func(row []string) bool { return !full[row[0]] })
		own := covered(got, want)
		lone.Hits, lone.Trials = lone.Hits+own.Hits, lone.Trials+own.Trials
		together.rows = together.rows[:1] // the others are of the same noises
		of := covered(together, p.plain.ask("SELECT extract(dow FROM moment), count(*) FROM gauge GROUP BY 1"))
		apart.Hits, apart.Trials = apart.Hits+of.Hits, apart.Trials+of.Trials
	}
	t.Logf("%d of %d days, and %d of %d days of the week, lie within their bounds", lone.Hits, lone.Trials, apart.Hits, apart.Trials)
	if err := lone.AtLeast(stattest.Usual); err != nil {
		t.Errorf("days with rows: %v", err)
	}
	if err := apart.AtLeast(stattest.Usual); err != nil {
		t.Errorf("days of the week: %v", err)
	}
}

// byDay is PostgreSQL's value of a linear function on each day, 0 where nobody is.
func (p *pair) byDay(linear string) answer {
	return p.plain.ask("SELECT d::date, coalesce(x, 0)" +
		" FROM generate_series('2020-01-01', '2024-12-31', interval '1 day') d LEFT JOIN (SELECT moment, " + nullsAsZero(linear) + " AS x FROM gauge GROUP BY moment) g ON moment = d::date")
}

// nullsAsZero is a linear function in which sums of nothing are 0, as dpproxy has them.
func nullsAsZero(linear string) string {
	for _, sum := range []string{"sum(CASE WHEN b THEN n END)", "sum(2 * i)", "sum(-i)", "sum(-n)", "sum(i)", "sum(n)", "sum(f)"} {
		linear = strings.ReplaceAll(linear, sum, "coalesce(("+strings.Replace(sum, "sum(", "sum( ", 1)+"), 0)")
	}
	return linear
}

// evenly reports whether all rows have the same bounds about their values, none only where all are 0, as those of
// sum(n) - sum(n) are.
func evenly(got answer) bool {
	width, largest := -1.0, 0.0
	for _, row := range got.rows {
		x, low, high := number(row[1]), number(row[2]), number(row[3])
		largest = max(largest, math.Abs(x))
		if width < 0 {
			width = high - x
		}
		if math.Abs(high-x-width) > 1e-6 || math.Abs(x-low-width) > 1e-6 {
			return false
		}
	}
	return width > 0 || largest == 0
}

// number is a number's value.
func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", text))
	}
	return x
}

// covered counts the rows whose true value lies within the bounds.
func covered(got, want answer) (c stattest.Coverage) {
	c.Claim = 0.95
	truth := map[string]float64{}
	for _, row := range want.rows {
		truth[row[0]] = number(row[1])
	}
	for _, row := range got.rows {
		c.Trials++
		if x, low, high := truth[row[0]], number(row[2]), number(row[3]); low <= x+1e-9 && x-1e-9 <= high {
			c.Hits++
		}
	}
	return c
}

// shownColumn is a column as drawn: a linear function of counts and sums, perhaps rounded, of which a ± is known, or
// something else.
type shownColumn struct {
	name, sql string
	linear    bool
}

// columns draws what a statement shows beside its key.
func (d dice) columns() (list []shownColumn) {
	for _, name := range []string{"a", "b", "c"}[:d.few(1, 3)] {
		c := shownColumn{name: name, sql: d.linear(), linear: true}
		if d.chance(3) {
			c.sql = d.one("round(0.07 * sum(i), 1)", "sum(i) / 3", "(sum(f) / 3)::int", "round(sum(n))",
				"round(sum(n) - 0.3 * count(*)) * 2", "(sum(n) * 0.7)::numeric(20,1)", "sum(i) / 4 - count(*) / 2")
		} else if d.chance(3) {
			c = shownColumn{name: name, sql: d.one("avg(i)", "avg(n) + 1", "count(*) > 2", "bool_or(b)", "sum(n) / 3",
				"count(*) * count(*)", "variance(i)", "greatest(count(*), 1)", "abs(sum(n))",
				"100.0 * count(*) FILTER (WHERE b) / (1 + count(*))", "sum(count(*)) OVER (ORDER BY moment)")}
		}
		list = append(list, c)
	}
	return list
}

// ofColumns is a statement that shows columns by day, perhaps through a sub-query.
func (d dice) ofColumns(columns []shownColumn) string {
	text, names := "SELECT moment", "moment"
	for _, c := range columns {
		text, names = text+", "+c.sql+" AS "+c.name, names+", "+c.name
	}
	text += " FROM gauge GROUP BY moment"
	switch at := d.IntN(4); {
	case at == 0 && !strings.Contains(text,
		" OVER "): // which an engine reads, and no ± is known through its sub-queries
		return "SELECT " + names + " FROM (" + text + ") q"
	case at == 1:
		return text + " ORDER BY moment DESC"
	}
	return text
}

var (
	sayOfAll     = regexp.MustCompile(`error ±([\d.]+) a value at 95 %`)
	sayOfSome    = regexp.MustCompile(`; ([^;]*±[^;]*) a value at 95 %`)
	sayOfUnknown = regexp.MustCompile(`no ± is known for ([^;\n]*)`)
)

// toldWidths are the ± that a notice tells of each column, and the columns of which it says that none is known.
func toldWidths(said string, columns []shownColumn) (widths map[string]float64, unknown []string) {
	widths = map[string]float64{}
	if m := sayOfAll.FindStringSubmatch(said); m != nil {
		for _, c := range columns {
			widths[c.name] = number(m[1])
		}
	} else if m := sayOfSome.FindStringSubmatch(said); m != nil {
		var names []string
		for _, part := range strings.Split(m[1], ", ") {
			name, width, last := strings.Cut(part, " ±")
			if names = append(names, name); last {
				for _, name := range names {
					widths[name] = number(width)
				}
				names = nil
			}
		}
	}
	if m := sayOfUnknown.FindStringSubmatch(said); m != nil {
		unknown = strings.Split(m[1], ", ")
	}
	return widths, unknown
}

// TestNoticesOfColumns: what a notice says beside an answer is true of each column that is shown, and of exactly that.
//
// Law. Each column has a ± of its own, or the notice names it among those of which none is known. Linear functions of
// counts and sums, rounded or not, have one, the others have none. The true values of 1,827 days, each with noise of
// its own, lie within a ± 95 % of the time at least: judged by the binomial distribution for each column of each
// statement, and for all together, with a false alarm once in ten million runs for each judgement. Noise is drawn by
// chance; statements by -truth-seed, a twentieth of -truth-statements, and 20 at least.
func TestNoticesOfColumns(t *testing.T) {
	if !chosen("gauges", "duckdb") {
		t.Skip("another schema or engine is chosen")
	}
	byChance := *random
	*random = true
	t.Cleanup(func() { *random = byChance })
	p := pairOver(t, gauges(*seed), "duckdb", func(*schema) {})
	if a := p.ask("SET dp.epsilon = 1"); a.err != nil {
		t.Fatal(a.err)
	}
	d := newDice(*seed, 13)
	all, others := stattest.Coverage{Claim: 0.95}, 0
	for range max(20, *statements/20) {
		p.fresh()
		columns := d.columns()
		sql := d.ofColumns(columns)
		got := p.ask(sql)
		if got.err != nil {
			t.Fatalf("%s: %s", sql, got.err.Message)
		}
		said := strings.Join(got.said, "\n")
		widths, unknown := toldWidths(said, columns)
		for i, c := range columns {
			width, told := widths[c.name]
			if told != c.linear || told == slices.Contains(unknown, c.name) {
				t.Errorf("%s\n  of %s a ± is told: %v, that none is known: %v\n  notes: %q", sql, c.name, told, !told,
					said)
			}
			if others++; !told || !c.linear {
				continue
			}
			others--
			want := p.byDay(c.sql)
			if want.err != nil || len(want.rows) != len(got.rows) {
				t.Fatalf("%s: %v, %d rows for %d", c.sql, want.err, len(got.rows), len(want.rows))
			}
			own := coveredWithin(got, i+1, width, want)
			all.Hits, all.Trials = all.Hits+own.Hits, all.Trials+own.Trials
			if err := own.AtLeast(stattest.Usual); err != nil {
				t.Errorf("%s\n  ±%g is told of %s: %v\n  notes: %q", sql, width, c.name, err, said)
			}
		}
	}
	if err := all.AtLeast(stattest.Usual); err != nil {
		t.Error(err)
	}
	if all.Trials == 0 || others == 0 {
		t.Error("the law has seen nothing")
	}
	t.Logf("%d of %d values lie within the ± of their columns; of %d columns none is known", all.Hits, all.Trials,
		others)
}

// coveredWithin counts the rows of which a column's true value is no further off than a width.
func coveredWithin(got answer, column int, width float64, want answer) stattest.Coverage {
	around := answer{}
	for _, row := range got.rows {
		x := number(row[column])
		around.rows = append(around.rows, []string{row[0], row[column], fmt.Sprint(x - width), fmt.Sprint(x + width)})
	}
	return covered(around, want)
}

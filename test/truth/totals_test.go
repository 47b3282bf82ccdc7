package truth

import (
	"flag"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var totalStatements = flag.Int("truth-totals", 40, "how many statements each engine is asked where no rows are bounded")

// noisy says that noise is drawn by chance, at the largest ε.
var noisy bool

// TestTotals: where the policy bounds no rows of a unit, what it adds in all is bounded, by a clamp that noise at the
// whole ε chooses; each answer is PostgreSQL's own, of all rows, up to a thousandth, NULL where it says that too few
// units show, or refused. Each statement has a ledger of its own.
func TestTotals(t *testing.T) {
	for _, engine := range []string{"postgres", "duckdb", "snapshot"} {
		p, tl := unbounded(t, engine), newTally()
		p.run(t, *totalStatements, tl)
		t.Log(tl.line(p, p.took))
	}
}

// unbounded is telemetry without bounds of rows, asked at the largest ε with drawn noise until the test ends.
func unbounded(t *testing.T, engine string) *pair {
	random0, held0 := *random, *held
	noisy, *random, *held = true, true, 1 // of calm words levels of shares would be drawn for seconds
	t.Cleanup(func() { noisy, *random, *held = false, random0, held0 })
	return pairOver(t, telemetry(*seed), engine, func(s *schema) {
		s.table("reading").bound, s.table("outage").bound = 0, 0
		device := s.table("device") // of which keys are found by chance where one account has them
		last := len(device.columns) - 1
		device.columns = device.columns[:last]
		for i, row := range device.rows {
			device.rows[i] = row[:last]
		}
	})
}

var saidOff = regexp.MustCompile(`(\w+) ±([0-9.]+) a value`)

// byChance tells a number that differs by noise, which is drawn at the largest ε: a key never does. Of what is said to
// be off by so much at 95 % it is within eight times that but in 4 of 10¹¹ draws, of which a million may be shown.
func (j *judged) byChance(i int, a, b string) bool {
	said := strings.Join(j.got.said, "\n")
	switch {
	case !noisy || i < len(j.s.outs) && j.s.outs[i].role == keyRole:
		return false
	case a == null:
		few := strings.Contains(said, "NULL: too few") && (b == null || isZero(b))
		return few || strings.Contains(said, "are NULL where the count of their rows is within its own error")
	case strings.Contains(said, "told digit by digit"):
		return true
	case b == null:
		b = "0"
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	part, least := 1000., .02
	if i < len(j.s.outs) && variances.MatchString(j.s.outs[i].sql) { // of few rows, and of squares up to 10^6
		part, least = 100, 5
	}
	for _, off := range saidOff.FindAllStringSubmatch(said, -1) {
		if off[1] == "error" || off[1] == j.want.columns[i].Name {
			half, _ := strconv.ParseFloat(off[2], 64)
			least = max(least, 8*half)
		}
	}
	return err1 == nil && err2 == nil && math.Abs(x-y) <= max(math.Abs(y), j.scale[i])/part+least
}

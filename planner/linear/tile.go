package linear

import (
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// tile numbers the steps of an ordered column around a condition that holds in a run of them: in tiles as wide as the
// run, or as many months wide where it is whole months, since who asks for one May asks for June next. A run that
// begins or ends the domain has one tile beside it. Steps that it does not number keep the numbers that they have.
func tile(d *policy.Domain, class, number []int32) {
	if !d.Ordered() {
		return
	}
	from, to := 0, 0
	for i := 0; i < d.Regular; i++ {
		switch {
		case class[i] < 0:
		case to == 0:
			from, to = i, i+1
		case i == to:
			to++
		default:
			return // two runs
		}
	}
	if to-from <= 1 {
		return
	}
	months := monthsOf(d, from, to)
	for i := range d.Regular {
		switch {
		case from == 0 || to == d.Regular:
			number[i] = 0
		case months > 0:
			number[i] = int32(scalar.FloorDiv(monthAt(d, i)-monthAt(d, from), months) + 1<<20)
		default:
			number[i] = int32(scalar.FloorDiv(i-from, to-from) + 1<<20)
		}
	}
}

// monthsOf is the number of months that a run of days, or of parts of them, is; 0 means it is not whole months.
func monthsOf(d *policy.Domain, from, to int) int {
	begin, ok := timeOf(d.Low(from))
	if !ok || to >= d.Regular || !isMonthStart(begin) {
		return 0
	}
	end, _ := timeOf(d.Low(to))
	if !isMonthStart(end) {
		return 0
	}
	return monthAt(d, to) - monthAt(d, from)
}

// monthAt counts months up to that of a step.
func monthAt(d *policy.Domain, cell int) int {
	t, _ := timeOf(d.Low(cell))
	return t.Year()*12 + int(t.Month())
}

func isMonthStart(t time.Time) bool {
	return t.Day() == 1 && t.Equal(time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC))
}

// timeOf reads a date or a timestamp; the zone of a timestamptz is taken as UTC, which only makes other tiles.
func timeOf(v policy.Value) (time.Time, bool) {
	switch v := v.(type) {
	case policy.Date:
		return time.Unix(int64(v)*86400, 0).UTC(), true
	case policy.Timestamp:
		return time.UnixMicro(int64(v)).UTC(), true
	case policy.Timestamptz:
		return time.UnixMicro(int64(v)).UTC(), true
	}
	return time.Time{}, false
}

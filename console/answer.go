package console

import (
	"math"
	"net/url"
	"strconv"
	"strings"
)

// answerView is an answer as a table, and as a plot where it has one.
type answerView struct {
	Notices []message
	Heads   []head
	Rows    [][]valueView
	Cut     bool
	Bars    *barChart
	Line    *lineChart
}

type head struct {
	Name   string
	Number bool // its values stand to the right
}

// valueView is one value, with the interval that its own x_low and x_high give.
type valueView struct {
	Head          string // of its column, for narrow screens
	Text, Between string
	Null, Number  bool
}

// escaped is a path's segment.
func escaped(name string) string { return url.PathEscape(name) }

func number(oid uint32) bool {
	switch oid {
	case 20, 21, 23, 700, 701, 1700:
		return true
	}
	return false
}

// moment tells the types that are put on an axis by their order, and are no numbers.
func moment(oid uint32) bool { return oid == 1082 || oid == 1114 || oid == 1184 }

// bounds finds, for each column, those that hold its interval.
func bounds(columns []column) (low, high map[int]int, hidden map[int]bool) {
	low, high, hidden = map[int]int{}, map[int]int{}, map[int]bool{}
	for i := 0; i+2 < len(columns); i++ {
		name := columns[i].Name
		if columns[i+1].Name == name+"_low" && columns[i+2].Name == name+"_high" {
			low[i], high[i], hidden[i+1], hidden[i+2] = i+1, i+2, true, true
		}
	}
	return low, high, hidden
}

func viewOf(a answer) answerView {
	v := answerView{Notices: a.Notices, Cut: a.Cut}
	low, high, hidden := bounds(a.Columns)
	for i, c := range a.Columns {
		if !hidden[i] {
			v.Heads = append(v.Heads, head{c.Name, number(c.OID)})
		}
	}
	for _, row := range a.Rows {
		var values []valueView
		for i, c := range row {
			if hidden[i] {
				continue
			}
			one := valueView{Head: a.Columns[i].Name, Text: c.Text, Null: c.Null, Number: number(a.Columns[i].OID)}
			if at, ok := low[i]; ok && !row[at].Null && !row[high[i]].Null {
				one.Between = row[at].Text + " to " + row[high[i]].Text
			}
			values = append(values, one)
		}
		v.Rows = append(v.Rows, values)
	}
	v.plot(a, low, high, hidden)
	return v
}

// maxBars is how many groups are drawn as bars; more are drawn as a line.
const maxBars = 30

// plot draws the first number that is no key: over the keys before it as bars, or as a line where the key is a number
// or a time, or where there are many.
func (v *answerView) plot(a answer, low, high map[int]int, hidden map[int]bool) {
	measure := -1
	for i, c := range a.Columns {
		if _, bounded := low[i]; number(c.OID) && !hidden[i] && (bounded || measure < 0 && i > 0) {
			if measure = i; bounded {
				break
			}
		}
	}
	if measure < 1 || len(a.Rows) < 2 || a.Cut {
		return
	}
	var points []point
	keys := 0
	for i := range a.Columns[:measure] {
		if !hidden[i] {
			keys++
		}
	}
	ordered := keys == 1 && (number(a.Columns[0].OID) || moment(a.Columns[0].OID))
	line := ordered && len(a.Rows) > 8 || len(a.Rows) > maxBars
	var xs []cell
	for _, row := range a.Rows {
		y, ok := numberOf(row[measure])
		if !ok || line && ordered && row[0].Null { // NULL has no place on an axis
			continue
		}
		xs = append(xs, row[0])
		p := point{Label: labelOf(row[:measure], hidden), Y: y, Low: y, High: y, Shown: row[measure].Text}
		if at, ok := low[measure]; ok {
			if l, ok := numberOf(row[at]); ok {
				p.Low = l
			}
			if h, ok := numberOf(row[high[measure]]); ok {
				p.High = h
			}
			p.Between = row[at].Text + " to " + row[high[measure]].Text
		}
		points = append(points, p)
	}
	if len(points) < 2 {
		return
	}
	if line {
		v.Line = lineOf(a.Columns[measure].Name, places(xs, ordered && number(a.Columns[0].OID)), points)
		return
	}
	v.Bars = barsOf(a.Columns[measure].Name, points)
}

// places are where the points stand on the axis: by the value of a key that is a number and rises, or one after the
// other.
func places(keys []cell, numbers bool) []float64 {
	xs, byValue := make([]float64, len(keys)), numbers
	for i, key := range keys {
		x, ok := numberOf(key)
		xs[i] = x
		byValue = byValue && ok && (i == 0 || x > xs[i-1])
	}
	for i := range xs {
		if !byValue {
			xs[i] = float64(i)
		}
	}
	return xs
}

func labelOf(keys []cell, hidden map[int]bool) string {
	var parts []string
	for i, k := range keys {
		switch {
		case hidden[i]:
		case k.Null:
			parts = append(parts, "NULL")
		default:
			parts = append(parts, k.Text)
		}
	}
	return strings.Join(parts, " · ")
}

// numberOf is a value as a number to draw. No number that is shown as text goes through it.
func numberOf(c cell) (float64, bool) {
	if c.Null {
		return 0, false
	}
	f, err := strconv.ParseFloat(c.Text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

package console

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// How fast an account is spent: what was left of it after each charge, and the day on which nothing is, if it goes on
// as in the last four weeks. What is left now is the ledger's own; the line goes back from there, charge by charge.
// Numbers here are drawn and compared with a calendar; what is charged and refused, the ledger knows in whole units.

// unit is what an account's amounts are drawn in.
type unit struct {
	name string
	of   func(privacy.Cost) float64
}

// unitOf is ε of a pure account, and else ρ, in which an ε that was paid counts as the ρ that it implies.
func unitOf(limit privacy.Cost) unit {
	if limit.Rho.Pico() == 0 {
		return unit{"ε", func(c privacy.Cost) float64 { return c.Epsilon.Float() }}
	}
	return unit{"ρ", func(c privacy.Cost) float64 {
		if c.Rho.Pico() == 0 && c.Epsilon.Micro() != 0 {
			return c.Epsilon.Rho().Float()
		}
		return c.Rho.Float()
	}}
}

// spend is one charge to an account.
type spend struct {
	at     time.Time
	amount float64
}

// account is what is known of one account, or of one of its two limits.
type account struct {
	limit, left float64
	ends        time.Time // of the window; zero: it is for life
	now         time.Time
	spends      []spend // of the account, oldest first
}

// outlook is how fast an account is spent.
type outlook struct {
	Pace  string // a day
	Until string // the day on which nothing is left, or why there is none
	Soon  bool   // within a month
	Chart *lineChart
}

const (
	paceOver    = 28 * 24 * time.Hour
	soon        = 30 * 24 * time.Hour
	leastPace   = 24 * time.Hour
	farthestOut = 100 * 365 * 24 * time.Hour
)

// look computes it. The pace is what was spent in the last four weeks, or since the first charge if that was later, and
// over a day at least: the first hour of somebody's work is no pace.
func (a account) look(u unit) outlook {
	var o outlook
	spent, since := 0.0, a.now
	for _, s := range a.spends {
		if a.now.Sub(s.at) <= paceOver {
			spent += s.amount
			if s.at.Before(since) {
				since = s.at
			}
		}
	}
	span := max(a.now.Sub(since), leastPace)
	perDay := spent / span.Hours() * 24
	out := time.Time{}
	switch {
	case a.left <= 0:
		o.Until, o.Soon = "spent", true
	case spent == 0:
		o.Until = "nothing spent in four weeks"
	default:
		o.Pace = fmt.Sprintf("%s %.3g a day", u.name, perDay)
		if days := a.left / perDay; days*24 < farthestOut.Hours() {
			out = a.now.Add(time.Duration(days * float64(24*time.Hour)))
		}
		switch {
		case out.IsZero():
			o.Until = "not in a hundred years"
		case !a.ends.IsZero() && !out.Before(a.ends):
			o.Until = "not before it is granted anew on " + day(a.ends)
			out = time.Time{}
		default:
			o.Until, o.Soon = day(out), out.Sub(a.now) < soon
		}
	}
	o.Chart = a.chart(u, out)
	return o
}

// maxSteps bounds the points of a line, however many charges there are.
const maxSteps = 200

// chart draws what was left, and what will be.
func (a account) chart(u unit, out time.Time) *lineChart {
	if len(a.spends) == 0 || a.limit <= 0 {
		return nil
	}
	type step struct {
		at   time.Time
		left float64
	}
	steps := make([]step, len(a.spends))
	left := a.left
	for i := len(a.spends) - 1; i >= 0; i-- { // after each charge, from now back
		steps[i] = step{a.spends[i].at, left}
		left += a.spends[i].amount
	}
	if math.Abs(left-a.limit) < 1e-6*a.limit {
		left = a.limit // but for what sums of fractions lose
	}
	first := step{a.spends[0].at, left}
	thin := []step{first}
	for bucket := range maxSteps { // the last of each part of them
		if at := len(steps) * (bucket + 1) / maxSteps; at > len(steps)*bucket/maxSteps {
			thin = append(thin, steps[at-1])
		}
	}
	thin = append(thin, step{a.now, a.left})
	begun := first.at
	drawn := max(a.now.Sub(begun), time.Hour)
	last := a.now
	if !out.IsZero() {
		last = a.now.Add(min(out.Sub(a.now), max(2*drawn, soon)))
	}
	x := func(t time.Time) float64 { return t.Sub(begun).Hours() }
	c := &lineChart{Measure: u.name + " left", Height: lineHeight}
	p := plane{left: 0, right: max(x(last), x(begun.Add(drawn)))}
	c.Grid, p.bottom, p.top = gridOf(0, max(a.limit, left))
	var line []string
	for i, s := range thin {
		if i > 0 { // it stays until the charge
			line = append(line, p.at(x(s.at), thin[i-1].left))
		}
		line = append(line, p.at(x(s.at), s.left))
	}
	c.Line = strings.Join(line, " ")
	c.Labels = []axisLabel{{"0%", "start", day(begun)}, {"100%", "end", day(begun.Add(time.Duration(p.right * float64(time.Hour))))}}
	if !out.IsZero() && out.After(a.now) {
		part := float64(last.Sub(a.now)) / float64(out.Sub(a.now))
		c.Ahead = p.at(x(a.now), a.left) + " " + p.at(x(last), a.left*(1-part))
		c.Labels = append(c.Labels, axisLabel{percent(p.x(x(a.now)) / 10), "middle", "now"})
		if at := p.x(x(a.now)); at < 150 || at > 850 {
			c.Labels = c.Labels[:2]
		}
	}
	return c
}

// spendsOf are the charges of an account, or with an empty name what the cap paid, oldest first, from a moment on.
func spendsOf(charges []ledger.Charge, name string, u unit, from time.Time) (list []spend) {
	for i := len(charges) - 1; i >= 0; i-- {
		c := charges[i]
		amount := u.of(c.Cost)
		if name == "" {
			amount = u.of(c.Pool)
		}
		if (name == "" || c.Account == name) && amount > 0 && !c.At.Before(from) {
			list = append(list, spend{c.At, amount})
		}
	}
	return list
}

// Plots are SVG that templates write, in percents of their width: text keeps its size on a phone. Numbers in them are
// made here, and what is in the answer is written as it came.

// point is one value of a plot.
type point struct {
	Label, Shown, Between string
	Y, Low, High          float64
}

// barChart has a bar for each group, one below the other, with its interval.
type barChart struct {
	Measure string
	Height  int
	Zero    string
	Bars    []bar
}

type bar struct {
	Label, Shown, Between string
	TextY, Top, Middle    int
	From, Width           string // in percent
	Low, High             string
	Error                 bool
	CapTop, CapBottom     int
}

const (
	barRow   = 46
	barThick = 16
)

func barsOf(measure string, points []point) *barChart {
	least, most := 0.0, 0.0
	for _, p := range points {
		least, most = min(least, p.Low, p.Y), max(most, p.High, p.Y)
	}
	if most == least {
		most = least + 1
	}
	x := func(v float64) float64 { return 100 * (v - least) / (most - least) }
	c := &barChart{Measure: measure, Height: len(points)*barRow + 4, Zero: percent(x(0))}
	for i, p := range points {
		top := i * barRow
		b := bar{Label: p.Label, Shown: p.Shown, Between: p.Between, TextY: top + 14, Top: top + 20, Middle: top + 20 + barThick/2, CapTop: top + 20 + 3, CapBottom: top + 20 + barThick - 3,
			From: percent(min(x(0), x(p.Y))), Width: percent(math.Abs(x(p.Y) - x(0))), Low: percent(x(p.Low)), High: percent(x(p.High)), Error: p.High > p.Low}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// lineChart has a line, the band of its intervals, and what is expected of it later. The plot itself is a square of a
// thousand that is stretched; what is written is placed over it in percents.
type lineChart struct {
	Measure string
	Height  int
	Band    string // points of a polygon
	Line    string // of a polyline
	Ahead   string // of a dashed one
	Grid    []gridLine
	Labels  []axisLabel
	Dots    []dot
}

type gridLine struct {
	Y     string // in percent
	TextY string
	Text  string
}

type axisLabel struct{ X, Anchor, Text string }

type dot struct{ X, Y, Title string }

const (
	lineHeight = 260
	maxDots    = 60 // more are a band to the eye
	maxPoints  = 400
	maxGrid    = 20 // round values; a range of which there are more is none that can be drawn
)

// plane maps values onto the thousand.
type plane struct{ left, right, bottom, top float64 }

func (p plane) x(v float64) float64 {
	if p.right <= p.left {
		return 500
	}
	return 1000 * (v - p.left) / (p.right - p.left)
}

func (p plane) y(v float64) float64 { return 1000 - 1000*(v-p.bottom)/(p.top-p.bottom) }

func (p plane) at(x, y float64) string { return coordinate(p.x(x)) + "," + coordinate(p.y(y)) }

func lineOf(measure string, xs []float64, points []point) *lineChart {
	p := plane{left: xs[0], right: xs[len(xs)-1]}
	banded := false
	for _, v := range points {
		p.bottom, p.top = min(p.bottom, v.Low), max(p.top, v.High)
		banded = banded || v.High > v.Low
	}
	c := &lineChart{Measure: measure, Height: lineHeight}
	c.Grid, p.bottom, p.top = gridOf(p.bottom, p.top)
	var line, above, below []string
	for i, v := range points {
		line = append(line, p.at(xs[i], v.Y))
		above, below = append(above, p.at(xs[i], v.High)), append(below, p.at(xs[i], v.Low))
		if len(points) <= maxDots {
			c.Dots = append(c.Dots, dot{percent(p.x(xs[i]) / 10), percent(p.y(v.Y) / 10), strings.TrimSpace(v.Label + ": " + v.Shown + " " + v.Between)})
		}
	}
	c.Line = strings.Join(line, " ")
	if banded {
		for i := len(below) - 1; i >= 0; i-- {
			above = append(above, below[i])
		}
		c.Band = strings.Join(above, " ")
	}
	middle := len(points) / 2
	c.Labels = []axisLabel{{"0%", "start", points[0].Label}, {percent(p.x(xs[middle]) / 10), "middle", points[middle].Label}, {"100%", "end", points[len(points)-1].Label}}
	return c
}

// gridOf are round values that hold the given ones between them.
func gridOf(least, most float64) (lines []gridLine, bottom, top float64) {
	if most <= least {
		most = least + 1
	}
	step := math.Pow(10, math.Floor(math.Log10((most-least)/3)))
	for _, times := range []float64{1, 2, 5, 10} {
		if (most-least)/(times*step) <= 5 {
			step *= times
			break
		}
	}
	bottom, top = math.Floor(least/step)*step, math.Ceil(most/step)*step
	for i := 0; i < maxGrid && bottom+float64(i)*step <= top+step/2; i++ {
		v := bottom + float64(i)*step
		y := 100 - 100*(v-bottom)/(top-bottom)
		lines = append(lines, gridLine{Y: percent(y), TextY: percent(y), Text: tidy(v)})
	}
	return lines, bottom, top
}

// tidy writes a value of the grid: its digits are few by construction.
func tidy(v float64) string {
	if math.Abs(v) < 1e-12 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }

// percentOf is a part of a whole, between nothing and all of it.
func percentOf(part float64) string { return percent(100 * min(max(part, 0), 1)) }

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// day is a date as owners' pages write it.
func day(t time.Time) string { return t.UTC().Format("2006-01-02") }

package console

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Plots are SVG that templates write, in percents of their width: text keeps its size on a phone. Numbers in them are
// made here, and what stands in the answer is written as it came.

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
// thousand that is stretched; what is written stands over it in percents.
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

package console

import (
	"fmt"
	"math"
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

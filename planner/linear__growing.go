package planner

import (
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// seen is the Spec of what can be read of a release of such a measure.
func (s *solved) seen(spec mechanisms.Spec) mechanisms.Spec {
	if s.grows {
		return spec.Through(s.closed)
	}
	return spec
}

// sold gives a measure the Spec of its release.
func (s *solved) sold(m *Measure, spec mechanisms.Spec) {
	if m.Spec = s.seen(spec); s.grows {
		m.Growth = &Growth{Spec: spec, Through: s.closed}
	}
}

// unclosed is the note of days that a reading leaves out.
func (s *solved) unclosed() string {
	a := s.table.Appends
	c := a.Column
	return "rows of which " + c.Name + " is " + policy.FormatValue(c.Type, c.Domain.Low(s.closed)) + " or later are left out: a day closes " + closesText(a.Closes) + " after its end (UTC)"
}

func closesText(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return predicate.Text(int64(d/(24*time.Hour))) + " d"
	}
	if d%time.Hour == 0 {
		return predicate.Text(int64(d/time.Hour)) + " h"
	}
	return d.String()
}

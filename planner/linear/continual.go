package linear

import (
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Queries whose cells are closed one by one: SELECT day, count(*) FROM visits GROUP BY day over a table to which rows
// are only added is read from a continual release up to the last day that is closed.

// Seen is the Spec of what can be read of a release of such a measure.
func (s *Query) Seen(spec mechanisms.Spec) mechanisms.Spec {
	if s.Continual {
		return spec.Through(s.Closed)
	}
	return spec
}

// Sold gives a measure the Spec of its release.
func (s *Query) Sold(m *plans.Measure, spec mechanisms.Spec) {
	if m.Spec = s.Seen(spec); s.Continual {
		m.Continual = &plans.Continual{Spec: spec, Through: s.Closed}
	}
}

// Unclosed is the note of days that a reading leaves out.
func (s *Query) Unclosed() string {
	a := s.Table.Appends
	c := a.Column
	return "rows of which " + c.Name + " is " + policy.FormatValue(c.Type, c.Domain.Low(s.Closed)) + " or later are left out: a day closes " + closesText(a.Closes) + " after its end (UTC)"
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

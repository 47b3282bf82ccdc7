package settings

import (
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
)

// Typed are the settings in force that change answers.
func (s *Settings) Typed() plans.Settings {
	s.settle()
	return s.typed
}

// Variables are all settings in force, by lower-case name.
func (s *Settings) Variables() map[string]string {
	s.settle()
	return s.variables
}

// settle finds what is in force. It is kept until something changes.
func (s *Settings) settle() {
	if s.fresh {
		return
	}
	all := make(map[string]string, len(known)+8)
	for low, v := range known {
		all[low] = v.shown(s.Value(low))
	}
	for _, layer := range []values{s.started, s.state.session, s.state.local} {
		for name := range layer {
			if known[name] == nil {
				all[name] = s.Value(name)
			}
		}
	}
	s.typed, s.variables, s.fresh = s.read(), all, true
}

func (s *Settings) read() plans.Settings {
	t := plans.Settings{
		ErrorColumns: s.Value("dp.error_columns") == "on",
		Release:      s.Value("dp.release") == "on",
		Probes:       map[string]plans.Probes{"empty": plans.ProbesEmpty, "made_up": plans.ProbesMadeUp}[s.Value("dp.probes")],
		OffGrid:      map[string]plans.OffGrid{"snap": plans.OffGridSnap, "exact": plans.OffGridExact}[s.Value("dp.offgrid")],
		SearchPath:   searchPath(s.Value("search_path"), s.user),
		Zone:         time.UTC,
	}
	if zone, _, ok := scalar.SessionZone(s.Value("timezone")); ok {
		t.Zone = zone
	}
	if digits, err := strconv.Atoi(s.Value("extra_float_digits")); err == nil {
		t.Form = scalar.FormOf(s.Value("datestyle"), s.Value("intervalstyle"), digits)
	}
	var highest privacy.Epsilon
	if s.dataset != nil {
		highest = s.dataset.Defaults.MaxEpsilon
		t.Epsilon, t.Confidence = s.dataset.Defaults.Epsilon, s.dataset.Defaults.Confidence
	}
	if n, err := strconv.Atoi(s.Value("dp.alarms")); err == nil {
		t.Alarms = n
	}
	if d, err := parseDelta(s.Value("dp.delta")); err == nil {
		t.Delta = d
	}
	if e, err := parseMaxError(s.Value("dp.max_error")); err == nil {
		t.MaxError = e
	}
	if e, err := privacy.ParseEpsilon(s.Value("dp.epsilon")); err == nil {
		t.Epsilon = e
	}
	if t.Epsilon.Micro() > highest.Micro() {
		t.Epsilon = highest // the policy was tightened since
	}
	if c := s.Value("dp.confidence"); s.dataset == nil || c != strconv.FormatFloat(s.dataset.Defaults.Confidence.Float(), 'g', -1, 64) {
		if p, err := parseConfidence(c); err == nil {
			t.Confidence = p
		}
	}
	return t
}

// Dialect is the SQL that the session's SELECTs are written in.
func (s *Settings) Dialect() parse.Dialect { return parse.ParseDialect(s.Value("dp.dialect")) }

// Milliseconds reads a whole variable in milliseconds.
func (s *Settings) Milliseconds(name string) time.Duration {
	n, err := strconv.ParseInt(s.Value(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// searchPath splits a list of schema names, quoted or not; of none it is empty, and not nil.
func searchPath(text, user string) []string {
	path := []string{}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if len(part) >= 2 && part[0] == '"' && part[len(part)-1] == '"' {
			part = strings.ReplaceAll(part[1:len(part)-1], `""`, `"`)
		} else {
			part = strings.ToLower(part)
		}
		if part == "$user" {
			part = user
		}
		if part != "" {
			path = append(path, part)
		}
	}
	return path
}

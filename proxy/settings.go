package proxy

import (
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// mostCustom bounds the variables of a client's own invention (a.b) in a session.
const mostCustom = 64

// values are variables by lower-case name. They are never changed in place, so a copy of the map's header is a snapshot.
type values map[string]string

func (v values) with(name, value string) values {
	c := make(values, len(v)+1)
	maps.Copy(c, v)
	c[name] = value
	return c
}

func (v values) without(name string) values {
	if _, ok := v[name]; !ok {
		return v
	}
	c := maps.Clone(v)
	delete(c, name)
	return c
}

// settings are a session's variables in layers: what the policy gives, what the client asked for at start-up, what it
// SET, and what holds until the transaction ends. RESET goes back to the first two.
type settings struct {
	user    string
	secure  bool // the server speaks TLS
	dataset *policy.Dataset
	given   values // by the policy
	started values // at start-up
	state   settingsState

	effective pipeline.Settings
	fresh     bool   // effective is up to date
	epoch     uint64 // changes with every change
}

// settingsState is the part that transactions restore.
type settingsState struct{ session, local values }

func newSettings(user string) *settings { return &settings{user: user} }

// adopt takes the defaults of a policy.
func (s *settings) adopt(d *policy.Dataset, u *policy.User) {
	s.dataset = d
	given := values{"session_authorization": u.Name, "ssl": onOff(s.secure), "dp.epsilon": d.Defaults.Epsilon.String(),
		"dp.confidence": strconv.FormatFloat(d.Defaults.Confidence.Float(), 'g', -1, 64)}
	for name, value := range u.Settings {
		name = strings.ToLower(name)
		if known["dp."+name] != nil {
			name = "dp." + name
		}
		if v := known[name]; v != nil {
			if checked, err := v.check(value, s.limits()); err == nil {
				given[name] = checked
			}
		}
	}
	s.given = given
	s.changed()
}

func (s *settings) changed() { s.fresh = false; s.epoch++ }

func (s *settings) limits() dpLimits {
	l := dpLimits{user: s.user, dateStyle: s.value("datestyle")}
	if s.dataset != nil {
		l.maxEpsilon = s.dataset.Defaults.MaxEpsilon
	}
	return l
}

// value is the value in force of a variable by lower-case name. What a transaction does not set of its own modes is as
// new transactions have it.
func (s *settings) value(name string) string {
	if v, ok := s.state.local[name]; ok {
		return v
	}
	if ofTransaction(name) {
		return s.value("default_" + name)
	}
	for _, layer := range []values{s.state.session, s.started, s.given} {
		if v, ok := layer[name]; ok {
			return v
		}
	}
	if v := known[name]; v != nil {
		return v.standard
	}
	return ""
}

// ofTransaction tells the modes of a transaction, which end with it however they are set.
func ofTransaction(name string) bool {
	return name == "transaction_isolation" || name == "transaction_read_only" || name == "transaction_deferrable"
}

// canonical finds the lower-case name of a variable that can be set, or says why it cannot be.
func canonical(name string) (string, *pgerror.Failure) {
	low := strings.ToLower(name)
	switch {
	case low == "timezone" || low == "time zone":
		return "timezone", nil
	case low == "names":
		return "client_encoding", nil
	case known[low] != nil:
		return low, nil
	case strings.HasPrefix(low, "dp."):
		return "", unknownSetting(low)
	case customName(low):
		return low, nil
	}
	return "", pgerror.New("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
}

// unknownSetting refuses a dp.* name that is no variable; readable are names that SHOW knows beside the variables.
func unknownSetting(name string, readable ...string) *pgerror.Failure {
	if laterVariables[name] {
		return pgerror.New("42704", fmt.Sprintf("parameter %q is not available yet", name))
	}
	f := pgerror.New("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
	for i := range dpVariables {
		readable = append(readable, dpVariables[i].name)
	}
	best, nearest := 4, ""
	for _, candidate := range readable {
		if d := editDistance(name, candidate); d < best {
			best, nearest = d, candidate
		}
	}
	if nearest != "" {
		return f.WithHint(fmt.Sprintf("Perhaps you meant %s.", nearest))
	}
	return f.WithHint("There are dp.epsilon, dp.max_error, dp.confidence, dp.error_columns, dp.alarms, dp.release, dp.offgrid and dp.dialect.")
}

func customName(name string) bool {
	prefix, rest, ok := strings.Cut(name, ".")
	if !ok || prefix == "" || rest == "" || len(name) > 128 {
		return false
	}
	for _, c := range name {
		if !(c == '_' || c == '.' || c == '$' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c > 127) {
			return false
		}
	}
	return true
}

// check returns a variable's canonical name and value.
func (s *settings) check(name, value string) (string, string, *pgerror.Failure) {
	name, f := canonical(name)
	if f != nil {
		return "", "", f
	}
	v := known[name]
	if v == nil {
		if len(value) > mostValueBytes || s.customs() >= mostCustom {
			return "", "", pgerror.New("53400", "too many or too long variables of the client's own")
		}
		return name, value, nil
	}
	value, f = v.check(value, s.limits())
	return name, value, f
}

func (s *settings) customs() int {
	n := 0
	for _, layer := range []values{s.started, s.state.session, s.state.local} {
		for name := range layer {
			if known[name] == nil {
				n++
			}
		}
	}
	return n
}

// start sets a variable at start-up.
func (s *settings) start(name, value string) *pgerror.Failure {
	name, value, f := s.check(name, value)
	if f == nil {
		s.started = s.started.with(name, value)
		s.changed()
	}
	return f
}

// set sets a variable for the session, or until the transaction ends.
func (s *settings) set(name, value string, local bool) *pgerror.Failure {
	name, value, f := s.check(name, value)
	if f != nil {
		return f
	}
	if local || ofTransaction(name) {
		s.state.local = s.state.local.with(name, value)
	} else {
		s.state.session = s.state.session.with(name, value)
		s.state.local = s.state.local.without(name)
	}
	s.changed()
	return nil
}

// resettable finds the lower-case name of a variable that can be reset, or says why it cannot be.
func resettable(name string) (string, *pgerror.Failure) {
	name, f := canonical(name)
	if f != nil {
		return "", f
	}
	if v := known[name]; v != nil && v.fixed {
		return "", pgerror.New("55P02", fmt.Sprintf("parameter %q cannot be changed", v.name))
	}
	return name, nil
}

// reset gives a variable the value that it had at start-up.
func (s *settings) reset(name string, local bool) *pgerror.Failure {
	name, f := resettable(name)
	if f != nil {
		return f
	}
	if local {
		restore := &settings{given: s.given, started: s.started}
		s.state.local = s.state.local.with(name, restore.value(name))
	} else {
		s.state.session = s.state.session.without(name)
		s.state.local = s.state.local.without(name)
	}
	s.changed()
	return nil
}

func (s *settings) resetAll() {
	s.state = settingsState{}
	s.changed()
}

// snapshot and restore are what transactions need.
func (s *settings) snapshot() settingsState { return s.state }

func (s *settings) restore(state settingsState) {
	s.state = state
	s.changed()
}

// endTransaction drops what was set until now.
func (s *settings) endTransaction() {
	if len(s.state.local) > 0 {
		s.state.local = nil
		s.changed()
	}
}

// show returns the name and value of a variable as SHOW writes them.
func (s *settings) show(name string) (string, string, *pgerror.Failure) {
	low, f := canonical(name)
	if f != nil {
		return "", "", f
	}
	v := known[low]
	if v == nil {
		for _, layer := range []values{s.state.local, s.state.session, s.started} {
			if value, ok := layer[low]; ok {
				return low, value, nil
			}
		}
		return "", "", pgerror.New("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
	}
	return v.name, v.shown(s.value(low)), nil
}

// all lists every variable with value and description, by name.
func (s *settings) all() [][3]string {
	out := make([][3]string, 0, len(known))
	for low, v := range known {
		out = append(out, [3]string{v.name, v.shown(s.value(low)), v.about})
	}
	sort.Slice(out, func(i, j int) bool { return strings.ToLower(out[i][0]) < strings.ToLower(out[j][0]) })
	return out
}

// current returns the settings in force, typed. It is kept until something changes.
func (s *settings) current() pipeline.Settings {
	if s.fresh {
		return s.effective
	}
	all := make(map[string]string, len(known)+8)
	for low, v := range known {
		all[low] = v.shown(s.value(low))
	}
	for _, layer := range []values{s.started, s.state.session, s.state.local} {
		for name := range layer {
			if known[name] == nil {
				all[name] = s.value(name)
			}
		}
	}
	s.effective = pipeline.Settings{Settings: s.typed(), Variables: all}
	s.fresh = true
	return s.effective
}

func (s *settings) typed() plans.Settings {
	t := plans.Settings{
		ErrorColumns: s.value("dp.error_columns") == "on",
		Release:      s.value("dp.release") == "on",
		OffGrid:      map[string]plans.OffGrid{"snap": plans.OffGridSnap, "exact": plans.OffGridExact}[s.value("dp.offgrid")],
		SearchPath:   searchPath(s.value("search_path"), s.user),
		Zone:         time.UTC,
	}
	if zone, _, ok := parseZone(s.value("timezone")); ok {
		t.Zone = zone
	}
	var highest privacy.Epsilon
	if s.dataset != nil {
		highest = s.dataset.Defaults.MaxEpsilon
		t.Epsilon, t.Confidence = s.dataset.Defaults.Epsilon, s.dataset.Defaults.Confidence
	}
	if n, err := strconv.Atoi(s.value("dp.alarms")); err == nil {
		t.Alarms = n
	}
	if e, err := parseMaxError(s.value("dp.max_error")); err == nil {
		t.MaxError = e
	}
	if e, err := privacy.ParseEpsilon(s.value("dp.epsilon")); err == nil {
		t.Epsilon = e
	}
	if t.Epsilon.Micro() > highest.Micro() {
		t.Epsilon = highest // the policy was tightened since
	}
	if c := s.value("dp.confidence"); s.dataset == nil || c != strconv.FormatFloat(s.dataset.Defaults.Confidence.Float(), 'g', -1, 64) {
		if p, err := parseConfidence(c); err == nil {
			t.Confidence = p
		}
	}
	return t
}

// dialect is the SQL that the session's SELECTs are written in.
func (s *settings) dialect() parse.Dialect {
	d, _ := parse.ParseDialect(s.value("dp.dialect"))
	return d
}

// milliseconds reads a whole variable in milliseconds.
func (s *settings) milliseconds(name string) time.Duration {
	n, err := strconv.ParseInt(s.value(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// searchPath splits a list of schema names, quoted or not.
func searchPath(text, user string) []string {
	var path []string
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

// editDistance counts the single-character changes between two names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			last, row[j] = row[j], min(row[j]+1, row[j-1]+1, last+cost)
		}
	}
	return row[len(b)]
}

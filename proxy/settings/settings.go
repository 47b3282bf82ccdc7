// Package settings holds the run-time parameters of a session: what SET, SHOW and RESET name, PostgreSQL's and the dp.*
// ones. It knows which there are (variables.go, with those that only clients mind), checks and normalises their
// values (check.go, zone.go), keeps them in layers that transactions restore (this file), and gives those that change
// answers as typed values (check.go).
//
// An example: SET LOCAL dp.epsilon = '.05' comes to Settings.Set, which finds the variable by its name (variables.go),
// holds the value against the policy's max_epsilon, and keeps "0.05" in the layer that COMMIT drops; the next statement
// is planned by what Typed gives.
package settings

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// maxCustom bounds the variables of a client's own invention (a.b) in a session.
const maxCustom = 64

// values are variables by lower-case name. They are never changed in place, so a copy of the map's header is a
// snapshot.
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

// only are those of some names.
func (v values) only(keep func(name string) bool) (kept values) {
	for name, value := range v {
		if keep(name) {
			kept = kept.with(name, value)
		}
	}
	return kept
}

// Settings are a session's variables in layers: what the policy gives, what the client asked for at start-up, what it
// SET, and what holds until the transaction ends. RESET goes back to the first two.
type Settings struct {
	user    string
	secure  bool // the server speaks TLS
	scoped  bool // SET dp.… holds until the transaction ends: settings_scope
	dataset *policy.Dataset
	given   values // by the policy
	started values // at start-up
	state   State

	typed     plans.Settings
	variables map[string]string
	fresh     bool              // typed and variables are up to date
	asked     map[string]string // values in force of variables that were asked since the last change: a statement asks the same few again and again
	epoch     uint64
}

// State is the part that transactions restore.
type State struct {
	session, local values
	epoch          uint64 // of the settings, when it was taken
}

// entryBytes is what a variable in a map takes beside its value, roughly and at most.
const entryBytes = 128

// Beside is how many bytes a State keeps that an older one does not: its maps, unless nothing was set between the two,
// and the values that differ.
func (s State) Beside(older State) int64 {
	if s.epoch == older.epoch {
		return 0
	}
	return s.session.beside(older.session) + s.local.beside(older.local)
}

func (v values) beside(older values) (bytes int64) {
	for name, value := range v {
		bytes += entryBytes
		if was, ok := older[name]; !ok || was != value {
			bytes += int64(len(name) + len(value))
		}
	}
	return bytes
}

// New are the settings of a user's session; secure says that the server speaks TLS. Adopt comes first.
func New(user string, secure bool) *Settings { return &Settings{user: user, secure: secure} }

// Adopt takes the defaults of a policy.
func (s *Settings) Adopt(d *policy.Dataset, u *policy.User) {
	s.dataset, s.scoped = d, u.Scoped
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
	s.state.session = s.lasting(s.state.session)
	s.changed()
}

// lasting are those of a session's values that the policy lets outlive a transaction. They may have been set before it
// said so.
func (s *Settings) lasting(v values) values {
	for name := range v {
		if s.Scoped(name) {
			v = v.without(name)
		}
	}
	return v
}

func (s *Settings) changed() {
	s.fresh, s.asked = false, nil
	s.epoch++
}

// Epoch changes with every change.
func (s *Settings) Epoch() uint64 { return s.epoch }

func (s *Settings) limits() dpLimits {
	l := dpLimits{user: s.user, dateStyle: s.Value("datestyle")}
	if s.dataset != nil {
		l.maxEpsilon = s.dataset.Defaults.MaxEpsilon
	}
	return l
}

// Value is the value in force of a variable by lower-case name. What a transaction does not set of its own modes is as
// new transactions have it.
func (s *Settings) Value(name string) string {
	value, ok := s.asked[name]
	if !ok {
		if value = s.find(name); known[name] != nil {
			if s.asked == nil {
				s.asked = map[string]string{}
			}
			s.asked[name] = value
		}
	}
	return value
}

func (s *Settings) find(name string) string {
	if v, ok := s.state.local[name]; ok {
		return v
	}
	if ofTransaction(name) {
		return s.Value("default_" + name)
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

// Check returns a variable's canonical name and value.
func (s *Settings) Check(name, value string) (string, string, *pgerror.Failure) {
	name, f := canonical(name)
	if f != nil {
		return "", "", f
	}
	v := known[name]
	if v == nil {
		if len(value) > maxValueBytes || s.customs(name) >= maxCustom {
			return "", "", pgerror.New("53400", "too many or too long variables of the client's own")
		}
		return name, value, nil
	}
	value, f = v.check(value, s.limits())
	return name, value, f
}

// customs counts the variables of the client's own invention, but for one that is about to be set: in however many
// layers each has a value, it is one.
func (s *Settings) customs(but string) int {
	names := map[string]bool{}
	for _, layer := range []values{s.started, s.state.session, s.state.local} {
		for name := range layer {
			if known[name] == nil && name != but {
				names[name] = true
			}
		}
	}
	return len(names)
}

// Start sets a variable at start-up.
func (s *Settings) Start(name, value string) *pgerror.Failure {
	name, value, f := s.Check(name, value)
	if f == nil {
		s.started = s.started.with(name, value)
		s.changed()
	}
	return f
}

// Set sets a variable for the session, or until the transaction ends.
func (s *Settings) Set(name, value string, local bool) *pgerror.Failure {
	name, value, f := s.Check(name, value)
	if f != nil {
		return f
	}
	if local || ofTransaction(name) || s.Scoped(name) {
		s.state.local = s.state.local.with(name, value)
	} else {
		s.state.session = s.state.session.with(name, value)
		s.state.local = s.state.local.without(name)
	}
	s.changed()
	return nil
}

// Scoped reports whether the policy lets a variable hold until the end of the transaction only: a pooler hands the
// session to the next client then, who must not pay by what this one has set.
func (s *Settings) Scoped(name string) bool {
	return s.scoped && strings.HasPrefix(strings.ToLower(name), "dp.")
}

// Reset gives a variable the value that it had at start-up.
func (s *Settings) Reset(name string, local bool) *pgerror.Failure {
	name, f := Resettable(name)
	if f != nil {
		return f
	}
	if local {
		begun := &Settings{given: s.given, started: s.started}
		s.state.local = s.state.local.with(name, begun.Value(name))
	} else {
		s.state.session = s.state.session.without(name)
		s.state.local = s.state.local.without(name)
	}
	s.changed()
	return nil
}

// ResetAll goes back to what was at start-up. The modes of a transaction that runs stay, as in PostgreSQL; so would the
// role and the session's user, which nobody can change here.
func (s *Settings) ResetAll() {
	s.state = State{local: s.state.local.only(ofTransaction)}
	s.changed()
}

// State and Restore are what transactions need.
func (s *Settings) State() State { return State{s.state.session, s.state.local, s.epoch} }

// Restore goes back to a State. It may be of a time at which another policy was in force.
func (s *Settings) Restore(state State) {
	s.state = State{session: s.lasting(state.session), local: state.local}
	s.changed()
}

// Modes are the modes of a transaction that were set in it, by name and value.
func (s *Settings) Modes() (out [][2]string) {
	for name, value := range s.state.local {
		if ofTransaction(name) {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}

// EndTransaction drops what was set until now.
func (s *Settings) EndTransaction() {
	if len(s.state.local) > 0 {
		s.state.local = nil
		s.changed()
	}
}

// Show returns the value of a variable as SHOW writes it.
func (s *Settings) Show(name string) (string, *pgerror.Failure) {
	low, f := canonical(name)
	if f != nil {
		return "", f
	}
	v := known[low]
	if v == nil {
		for _, layer := range []values{s.state.local, s.state.session, s.started} {
			if value, ok := layer[low]; ok {
				return value, nil
			}
		}
		return "", pgerror.New("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
	}
	return v.shown(s.Value(low)), nil
}

// All lists every variable with value and description, by name.
func (s *Settings) All() [][3]string {
	out := make([][3]string, 0, len(known))
	for low, v := range known {
		out = append(out, [3]string{v.name, v.shown(s.Value(low)), v.about})
	}
	sort.Slice(out, func(i, j int) bool { return strings.ToLower(out[i][0]) < strings.ToLower(out[j][0]) })
	return out
}

// kinds are what pg_settings calls the kinds of variables.
var kinds = map[variableKind]string{boolean: "bool", whole: "integer", real: "real", choice: "enum"}

// Listed are the rows of pg_settings, in whose units values are kept.
func (s *Settings) Listed() []plans.Variable {
	var out []plans.Variable
	for low, v := range known {
		row := plans.Variable{Name: v.name, Value: s.Value(low), Boot: v.standard, Reset: cmp.Or(s.started[low], s.given[low], v.standard), Unit: v.unit, Kind: cmp.Or(kinds[v.kind], "string"),
			Choices: v.choices, About: v.about, Fixed: v.fixed}
		if (v.kind == whole || v.kind == real) && !v.fixed {
			row.Low, row.High = strconv.FormatFloat(v.low, 'g', -1, 64), strconv.FormatFloat(v.high, 'g', -1, 64)
			if v.kind == whole {
				row.Low, row.High = strconv.FormatInt(int64(v.low), 10), strconv.FormatInt(int64(v.high), 10)
			}
		}
		out = append(out, row)
	}
	for name := range s.Variables() {
		if known[name] == nil {
			out = append(out, plans.Variable{Name: name, Value: s.Value(name), Reset: s.started[name], Kind: "string"})
		}
	}
	slices.SortFunc(out, func(a, b plans.Variable) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return out
}

// Reported returns the variables that clients are sent, by name and value, in a fixed order.
func (s *Settings) Reported() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, low := range reportedNames {
			if v := known[low]; !yield(v.name, v.shown(s.Value(low))) {
				return
			}
		}
	}
}

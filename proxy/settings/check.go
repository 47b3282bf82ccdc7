package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

const (
	maxValueBytes = 1024
	stateInvalid  = "22023"
)

func invalidValue(v *variable, value string) *pgerror.Failure {
	return pgerror.New(stateInvalid, fmt.Sprintf("invalid value for parameter %q: %q", v.name, value))
}

func needsBoolean(v *variable) *pgerror.Failure {
	return pgerror.New(stateInvalid, fmt.Sprintf("parameter %q requires a Boolean value", v.name))
}

// check returns the value of a variable as it is kept, or why it cannot be set so.
func (v *variable) check(value string, limits dpLimits) (string, *pgerror.Failure) {
	if v.fixed {
		return "", pgerror.New("55P02", fmt.Sprintf("parameter %q cannot be changed", v.name))
	}
	if len(value) > maxValueBytes {
		return "", pgerror.New(stateInvalid, fmt.Sprintf("value for parameter %q is too long", v.name))
	}
	switch v.kind {
	case boolean:
		on, ok := ParseBool(value)
		if !ok {
			return "", needsBoolean(v)
		}
		return onOff(on), nil
	case choice:
		return v.checkChoice(value)
	case whole:
		return v.checkWhole(value)
	case real:
		f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || math.IsNaN(f) {
			return "", invalidValue(v, value)
		}
		if f < v.low || f > v.high {
			return "", pgerror.New(stateInvalid, fmt.Sprintf("%s is outside the valid range for parameter %q", value, v.name))
		}
		return strconv.FormatFloat(f, 'g', -1, 64), nil
	case special:
		return v.checkSpecial(value, limits)
	}
	return value, nil
}

func (v *variable) checkChoice(value string) (string, *pgerror.Failure) {
	low := strings.ToLower(strings.TrimSpace(value))
	for _, c := range v.choices {
		if strings.EqualFold(c, low) {
			return c, nil
		}
	}
	on, ok := ParseBool(low)
	if !ok && len(v.choices) == 1 && v.choices[0] == "on" {
		return "", needsBoolean(v)
	}
	if ok {
		for _, c := range v.choices {
			if c == onOff(on) {
				return c, nil
			}
		}
	}
	return "", invalidValue(v, value).WithHint("Available values: " + strings.Join(v.choices, ", ") + ".")
}

// units are the suffixes of whole variables, as multiples of a variable's own unit.
var units = map[string]map[string]float64{
	"ms":  {"us": 1e-3, "ms": 1, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7},
	"s":   {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400},
	"B":   {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40},
	"kB":  {"B": 1.0 / 1024, "kB": 1, "MB": 1 << 10, "GB": 1 << 20, "TB": 1 << 30},
	"8kB": {"B": 1.0 / 8192, "kB": 1.0 / 8, "MB": 1 << 7, "GB": 1 << 17, "TB": 1 << 27},
	"MB":  {"MB": 1, "GB": 1 << 10, "TB": 1 << 20},
}

func (v *variable) checkWhole(value string) (string, *pgerror.Failure) {
	s := strings.TrimSpace(value)
	end := strings.LastIndexAny(s, "0123456789.") + 1
	number, suffix := s[:end], strings.TrimSpace(s[end:])
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return "", invalidValue(v, value)
	}
	if suffix != "" {
		factor, ok := units[v.unit][suffix]
		if !ok {
			return "", invalidValue(v, value)
		}
		f *= factor
	}
	f = math.RoundToEven(f)
	if f < v.low || f > v.high {
		unit := v.unit
		if unit != "" {
			unit = " " + unit
		}
		return "", pgerror.New(stateInvalid, fmt.Sprintf("%.0f%s is outside the valid range for parameter %q (%.0f .. %.0f)", f, unit, v.name, v.low, v.high))
	}
	return strconv.FormatInt(int64(f), 10), nil
}

// shown is how SHOW writes a kept value: whole numbers with the largest unit that divides them.
func (v *variable) shown(value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if v.kind != whole || v.unit == "" || err != nil || n <= 0 {
		return value
	}
	best, unit := 1.0, v.unit
	if v.unit == "8kB" {
		n, unit = n*8, "kB"
	}
	for suffix, factor := range units[unit] {
		if factor >= best && math.Mod(float64(n), factor) == 0 {
			best, unit = factor, suffix
		}
	}
	return strconv.FormatInt(n/int64(best), 10) + unit
}

func (v *variable) checkSpecial(value string, limits dpLimits) (string, *pgerror.Failure) {
	switch v.name {
	case "dp.epsilon":
		return limits.checkEpsilon(value)
	case "dp.confidence":
		if _, err := parseConfidence(value); err != nil {
			return "", invalidValue(v, value).WithHint("The confidence is a number above 0 and below 1, such as 0.95.")
		}
		return strings.TrimSpace(value), nil
	case "dp.max_error":
		e, err := parseMaxError(value)
		if err != nil {
			return "", invalidValue(v, value).WithHint("The value is a number above 0, such as 50, or off.")
		}
		if e == 0 {
			return "off", nil
		}
		return strconv.FormatFloat(e, 'f', -1, 64), nil
	case "dp.contribution":
		if _, ok := parseContribution(value); !ok {
			return "", invalidValue(v, value).WithHint("The value is policy, rows, ladder, or a number above 0 that a " +
				"unit's total is clamped to, such as 30000.")
		}
		return strings.ToLower(strings.TrimSpace(value)), nil
	case "dp.max_cost":
		most, bound, err := parseMaxCost(value)
		if err != nil {
			return "", invalidValue(v, value).WithHint("The value is a decimal number of at most twelve decimal places, such as 0.1, 0 for what is free alone, or off.")
		}
		if !bound {
			return "off", nil
		}
		return most.String(), nil
	case "dp.delta":
		d, err := parseDelta(value)
		if err != nil {
			return "", invalidValue(v, value).WithHint("The value is a number above 0 and below 1 of at most eighteen decimal places, such as 1e-7, or auto.")
		}
		if d.Atto() == 0 {
			return autoDelta, nil
		}
		return strings.TrimSpace(value), nil
	case "client_encoding":
		return checkEncoding(v, value)
	case "DateStyle":
		return checkDateStyle(v, value, limits.dateStyle)
	case "TimeZone":
		if _, name, ok := scalar.SessionZone(value); ok {
			return name, nil
		}
		return "", invalidValue(v, value)
	case "search_path":
		return value, nil
	case "role":
		if strings.EqualFold(value, "none") {
			return "none", nil
		}
		if value == limits.user { // as she is already
			return value, nil
		}
		return "", pgerror.New("42501", "permission denied to set role")
	case "session_authorization":
		if value == limits.user {
			return value, nil
		}
		return "", pgerror.New("42501", "permission denied to set session authorization")
	}
	return "", invalidValue(v, value)
}

// dpLimits is what a check must know besides the value.
type dpLimits struct {
	user       string
	dateStyle  string // in force
	maxEpsilon privacy.Epsilon
}

func (l dpLimits) checkEpsilon(value string) (string, *pgerror.Failure) {
	e, err := privacy.ParseEpsilon(value)
	if err != nil {
		return "", pgerror.New(stateInvalid, fmt.Sprintf("invalid value for parameter \"dp.epsilon\": %q", value)).
			WithHint("The value is a decimal number above 0, of at most six decimal places, such as 0.1.")
	}
	if e.Micro() > l.maxEpsilon.Micro() {
		return "", pgerror.New(stateInvalid, fmt.Sprintf("dp.epsilon is %s, the policy allows at most %s in one statement", e, l.maxEpsilon)).
			WithHint(fmt.Sprintf("SET dp.epsilon = %s, or ask the owner of the data for a higher max_epsilon.", l.maxEpsilon))
	}
	return e.String(), nil
}

func parseConfidence(value string) (mechanisms.Confidence, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		return mechanisms.Confidence{}, err
	}
	return mechanisms.NewConfidence(f)
}

// parseDelta reads dp.delta; 0 is auto.
func parseDelta(value string) (privacy.Delta, error) {
	value = strings.TrimSpace(value)
	if strings.EqualFold(value, autoDelta) {
		return privacy.Delta{}, nil
	}
	d, err := privacy.ParseDelta(value)
	if err == nil && d.Atto() == 0 {
		err = strconv.ErrRange
	}
	return d, err
}

// parseContribution reads dp.contribution.
func parseContribution(value string) (plans.Contribution, bool) {
	word, most, ok := policy.ReadContribution(strings.ToLower(strings.TrimSpace(value)))
	return plans.Contribution{Rows: word == "rows", Ladder: word == "ladder", Most: most}, ok
}

// parseMaxError reads dp.max_error; 0 is off.
func parseMaxError(value string) (float64, error) {
	value = strings.TrimSpace(value)
	if strings.EqualFold(value, "off") {
		return 0, nil
	}
	e, err := strconv.ParseFloat(value, 64)
	if err == nil && !(e == 0 || e >= 1e-9 && e <= 1e15) {
		err = strconv.ErrRange
	}
	return e, err
}

// parseMaxCost reads dp.max_cost, whose unit is that of whatever is charged: what is written as a decimal is kept to
// twelve places, as ρ is.
func parseMaxCost(value string) (most privacy.Rho, bound bool, err error) {
	value = strings.TrimSpace(value)
	if strings.EqualFold(value, "off") {
		return privacy.Rho{}, false, nil
	}
	if strings.Trim(value, "0") == "" && value != "" {
		return privacy.Rho{}, true, nil
	}
	most, err = privacy.ParseRho(value)
	return most, err == nil, err
}

// MaxCost is dp.max_cost, and false where a statement may cost what it costs.
func (s *Settings) MaxCost() (most privacy.Rho, bound bool) {
	most, bound, err := parseMaxCost(s.Value("dp.max_cost"))
	return most, bound && err == nil
}

// checkEncoding finds PostgreSQL's name of an encoding.
func checkEncoding(v *variable, value string) (string, *pgerror.Failure) {
	if known, ok := encoding.CharsetName(value); ok {
		return known, nil
	}
	return "", invalidValue(v, value).WithHint("UTF8 is always available.")
}

// checkDateStyle accepts what leaves the output ISO; the field order is kept.
func checkDateStyle(v *variable, value, inForce string) (string, *pgerror.Failure) {
	order := "MDY"
	if _, after, ok := strings.Cut(inForce, ", "); ok {
		order = after
	}
	for _, word := range strings.Split(value, ",") {
		switch strings.ToLower(strings.TrimSpace(word)) {
		case "iso":
		case "default":
			order = "MDY"
		case "mdy", "us", "noneuro", "noneuropean":
			order = "MDY"
		case "dmy", "euro", "european":
			order = "DMY"
		case "ymd":
			order = "YMD"
		default:
			return "", invalidValue(v, value).WithHint("Dates are written in ISO style only.")
		}
	}
	return "ISO, " + order, nil
}

// ParseBool reads a Boolean as PostgreSQL does: any unambiguous beginning of true, false, yes, no, on, off, or 1, 0.
func ParseBool(value string) (on, ok bool) {
	s := strings.ToLower(strings.TrimSpace(value))
	if s == "" || s == "o" {
		return false, false
	}
	for word, meaning := range map[string]bool{"true": true, "false": false, "yes": true, "no": false, "on": true, "off": false, "1": true, "0": false} {
		if strings.HasPrefix(word, s) {
			return meaning, true
		}
	}
	return false, false
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

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
		Significant:  s.Value("dp.digits") == "significant",
		CoversAll:    s.Value("dp.coverage") == "all",
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
	if c, ok := parseContribution(s.Value("dp.contribution")); ok {
		t.Contribution = c
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

package service

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/console"
)

// What the log warns of is kept for the console's owners: the last lines, in memory. The log holds no value and no
// statement, so neither do these.

const (
	alarmsKept = 200
	alarmBytes = 2000 // of one
)

// alarms are the last warnings and errors of a log.
type alarms struct {
	mu   sync.Mutex
	last []console.Alarm
}

// latest are those that are kept, the newest first.
func (a *alarms) latest() []console.Alarm {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := slices.Clone(a.last)
	slices.Reverse(list)
	return list
}

func (a *alarms) keep(one console.Alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last) == alarmsKept {
		a.last = slices.Delete(a.last, 0, 1)
	}
	a.last = append(a.last, one)
}

// overhears is a handler that hands records on and keeps those of warnings and errors.
type overhears struct {
	next   slog.Handler
	kept   *alarms
	before string // of With
	group  string
}

func (o *overhears) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || o.next.Enabled(ctx, level)
}

func (o *overhears) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		text := &strings.Builder{}
		text.WriteString(r.Message + o.before)
		r.Attrs(func(a slog.Attr) bool {
			fmt.Fprintf(text, " %s%s=%v", o.group, a.Key, a.Value)
			return true
		})
		o.kept.keep(console.Alarm{At: r.Time, Public: isPublic(r.Message), Level: r.Level.String(), Text: strings.ToValidUTF8(text.String()[:min(text.Len(), alarmBytes)], "")})
	}
	if !o.next.Enabled(ctx, r.Level) {
		return nil
	}
	return o.next.Handle(ctx, r)
}

// isPublic tells the lines that come of the policy and of what owners do, whatever rows there are: all that an owner
// with a budget is shown.
func isPublic(line string) bool {
	return strings.HasPrefix(line, "policy") || strings.HasPrefix(line, "console: ")
}

func (o *overhears) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *o
	with.next = o.next.WithAttrs(attrs)
	for _, a := range attrs {
		with.before += fmt.Sprintf(" %s%s=%v", o.group, a.Key, a.Value)
	}
	return &with
}

func (o *overhears) WithGroup(name string) slog.Handler {
	with := *o
	with.next = o.next.WithGroup(name)
	if name != "" {
		with.group += name + "."
	}
	return &with
}

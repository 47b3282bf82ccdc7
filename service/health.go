package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/console"
	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// How long a look at one part may take; package proxy gives all of them a second more. What is aside is not to hold up
// the rest.
const (
	neededFor = 3 * time.Second
	asideFor  = 2 * time.Second
)

// look is a question to one part.
type look struct {
	name  string
	aside bool
	ask   func(context.Context) error
}

// health asks each thing that a question needs, in parallel and each within its own time: the private database, as
// before each charge, or the snapshot in force; the ledger, whether it can be charged; the sandbox, for SELECT 1. And
// what no question waits for: the place of the next snapshot; the directory and the provider that judge log-ins;
// whether the policy and the certificate in force are those of their files.
func (s *Service) health(ctx context.Context) []proxy.Part {
	p := s.current.Load()
	looks := []look{
		{"database", false, func(ctx context.Context) error { return s.Backend.Ready(ctx) }},
		{"ledger", false, s.ledgerAnswers},
		{"sandbox", false, func(ctx context.Context) error { return s.sandboxAnswers(ctx, p) }},
		{"policy file", true, s.policyFile.failed},
	}
	if p.Server.TLS != nil {
		looks = append(looks, look{"certificate", true, s.certificate.failed})
	}
	if b, ok := s.Backend.(backend.Copies); ok {
		looks = append(looks, look{"next snapshot", true, func(context.Context) error { return b.Next() }})
	}
	if l := p.Server.LDAP; l != nil {
		looks = append(looks, look{"directory", true, func(ctx context.Context) error { return login.DirectoryAnswers(ctx, l) }})
	}
	if o := p.Server.OIDC; o != nil {
		looks = append(looks, look{"provider", true, func(ctx context.Context) error { return login.ProviderAnswers(ctx, o) }})
	}
	parts := make([]proxy.Part, len(looks))
	var all sync.WaitGroup
	for i, l := range looks {
		all.Go(func() { parts[i] = s.look(ctx, l) })
	}
	all.Wait()
	if at := s.Backend.AsOf(p); at != 0 {
		parts[0].AsOf = time.Unix(0, at)
	}
	return parts
}

// observed looks at what Prometheus is sent beside the parts: functions of the policy, the clock and the ledger, and
// the faults of rule 5.
func (s *Service) observed() proxy.Observed {
	p := s.current.Load()
	o := proxy.Observed{PaidFaults: map[string]int64{}, PolicySince: time.Unix(0, s.since.Load()), Ledger: s.Ledger.Now(), Memory: map[string]int64{"proxy": s.own.Load()}}
	for _, d := range p.Datasets {
		o.PaidFaults[d.ID] = s.Backend.Faults(d.ID)
	}
	if p.Sandbox.URL == "" {
		o.Memory["sandbox session"] = sessionAtRest + p.Server.Limits.StatementMemory
	}
	if b, ok := s.Backend.(backend.Copies); ok {
		o.Copies, o.Missed = true, b.Missed()
	}
	return o
}

var (
	errLedger      = errors.New("nothing can be charged")
	errNotReloaded = errors.New("not reloaded; an earlier one is in force, and the log says why")
)

// look asks one part. While one question to it has not returned, which a hanging directory may never do, there is no
// other.
func (s *Service) look(ctx context.Context, l look) proxy.Part {
	limit := neededFor
	if l.aside {
		limit = asideFor
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	gate, _ := s.looks.LoadOrStore(l.name, deadline.NewGate())
	_, err := deadline.Call(gate.(deadline.Gate), limit, func() (none struct{}, _ error) { return none, l.ask(within) })
	if err != nil && within.Err() != nil {
		err = deadline.ErrExceeded
	}
	return proxy.Part{Name: l.name, Err: err, Aside: l.aside || errors.Is(err, backend.ErrDrift)} // other tables are asked, here as at another proxy
}

// reloads is what has become of a file that is followed.
type reloads struct{ broken atomic.Bool }

func (r *reloads) note(err error) { r.broken.Store(err != nil) }

func (r *reloads) failed(context.Context) error {
	if r.broken.Load() {
		return errNotReloaded
	}
	return nil
}

func (s *Service) ledgerAnswers(ctx context.Context) error {
	if err := s.Ledger.Sound(ctx); err != nil {
		s.log.Debug("health: ledger", "error", err)
		return errLedger
	}
	return nil
}

var errSandbox = errors.New("the sandbox does not answer")

func (s *Service) sandboxAnswers(ctx context.Context, p *policy.Policy) error {
	one := outer.Query{SQL: "SELECT 1 AS one"}
	if _, err := s.Engine.Query(ctx, sandbox.Session{Database: p.Datasets[0].ID}, one, nil); err != nil {
		s.log.Debug("health: sandbox", "error", err)
		return errSandbox
	}
	return nil
}

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

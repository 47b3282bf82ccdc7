package policy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/dpproxy/dpproxy/internal/deadline"
)

// Change is one thing that another policy says differently, in plain words. It never holds a verifier, an address of a
// database or a credential: what changed there is named, and not shown.
type Change struct {
	Kind string // a word for what follows logs: "budgets_changed"
	What string // who or what: "alice of census: ε 1 to ε 2"
}

// restarts is the kind of changes that a running proxy does not take in.
const restarts = "restart"

// NeedsRestart tells a change that a running proxy does not take in.
func (c Change) NeedsRestart() bool { return c.Kind == restarts }

// changes gathers the differences of two policies.
type changes []Change

func (c *changes) add(kind, format string, args ...any) {
	*c = append(*c, Change{kind, fmt.Sprintf(format, args...)})
}

// differ notes a change of one value.
func differ[T comparable](c *changes, kind, what string, old, now T, shown func(T) string) {
	if old != now {
		c.add(kind, "%s: %s to %s", what, shown(old), shown(now))
	}
}

// without notes the names that are not among others.
func (c *changes) without(kind string, names, others []string) {
	for _, name := range names {
		if !slices.Contains(others, name) {
			c.add(kind, "%s", name)
		}
	}
}

// kindsInOrder is the order of changes.
var kindsInOrder = []string{"users_added", "users_removed", "users_disabled", "users_enabled", "logins_changed", "passwords_changed", "admins_changed", "settings_changed", "owners_added", "owners_removed",
	"groups_added", "groups_removed", "groups_changed", "datasets_added", "datasets_removed", "datasets_changed", "caps_changed", "budgets_added", "budgets_removed", "budgets_changed", "defaults_changed",
	"tables_added", "tables_removed", "tables_changed", "columns_added", "columns_removed", "columns_changed", "releases_added", "releases_removed", "releases_changed", "limits_changed", restarts}

// Changes says what a policy changes for whom, against an earlier one. What it compares is what the fields of a Policy
// hold; comments, and the layout of the file, are nobody's business.
func Changes(old, now *Policy) []Change {
	var c changes
	userChanges(&c, old, now)
	c.without("owners_added", now.Owners, old.Owners)
	c.without("owners_removed", old.Owners, now.Owners)
	groupChanges(&c, old, now)
	for _, d := range now.Datasets {
		if was := old.Dataset(d.ID); was != nil {
			datasetChanges(&c, was, d)
		} else {
			c.add("datasets_added", "%s", d.ID)
		}
	}
	for _, d := range old.Datasets {
		if now.Dataset(d.ID) == nil {
			c.add("datasets_removed", "%s", d.ID)
		}
	}
	serverChanges(&c, old, now)
	slices.SortStableFunc(c, func(a, b Change) int {
		order := cmp.Compare(slices.Index(kindsInOrder, a.Kind), slices.Index(kindsInOrder, b.Kind))
		return cmp.Or(order, strings.Compare(a.What, b.What))
	})
	return c
}

func userChanges(c *changes, old, now *Policy) {
	for i := range now.Users {
		u, was := &now.Users[i], old.User(now.Users[i].Name)
		if was == nil {
			c.add("users_added", "%s", u.Name)
			continue
		}
		switch {
		case !was.Disabled && u.Disabled:
			c.add("users_disabled", "%s", u.Name)
		case was.Disabled && !u.Disabled:
			c.add("users_enabled", "%s", u.Name)
		}
		if was.Login != u.Login || was.Identity != u.Identity {
			c.add("logins_changed", "%s", u.Name)
		}
		if was.Verifier != u.Verifier {
			c.add("passwords_changed", "%s", u.Name)
		}
		if was.Admin != u.Admin {
			c.add("admins_changed", "%s", u.Name)
		}
		if was.Scoped != u.Scoped || !maps.Equal(was.Settings, u.Settings) {
			c.add("settings_changed", "%s", u.Name)
		}
	}
	for _, u := range old.Users {
		if now.User(u.Name) == nil {
			c.add("users_removed", "%s", u.Name)
		}
	}
}

func groupChanges(c *changes, old, now *Policy) {
	for _, g := range now.Groups {
		was := old.Group(g.Name)
		switch {
		case was == nil:
			c.add("groups_added", "%s: %s", g.Name, strings.Join(g.Members, ", "))
		case !slices.Equal(slices.Sorted(slices.Values(was.Members)), slices.Sorted(slices.Values(g.Members))):
			c.add("groups_changed", "%s: %s to %s", g.Name, strings.Join(was.Members, ", "), strings.Join(g.Members, ", "))
		}
	}
	for _, g := range old.Groups {
		if now.Group(g.Name) == nil {
			c.add("groups_removed", "%s", g.Name)
		}
	}
}

func datasetChanges(c *changes, was, d *Dataset) {
	of := func(kind, what string, before, after any) {
		differ(c, kind, d.ID+": "+what, fmt.Sprint(before), fmt.Sprint(after), func(s string) string { return s })
	}
	of("datasets_changed", "unit", was.unitWords(), d.unitWords())
	of("datasets_changed", "neighbors", was.Neighbors, d.Neighbors)
	of("datasets_changed", "accountant", was.Accountant, d.Accountant)
	of("datasets_changed", "public number of units", was.Units, d.Units)
	of("datasets_changed", "levels", was.levelWords(), d.levelWords())
	of("datasets_changed", "buying", was.Buying, d.Buying)
	of("datasets_changed", "min_frequency", was.Frequency, d.Frequency)
	of("datasets_changed", "large_products: threshold", was.Threshold, d.Threshold)
	if was.Cap.Cost != d.Cap.Cost {
		c.add("caps_changed", "%s: %v to %v", d.ID, was.Cap.Cost, d.Cap.Cost)
	}
	for name, b := range d.Budgets {
		switch before, ok := was.Budgets[name]; {
		case !ok:
			c.add("budgets_added", "%s of %s: %v", name, d.ID, b.Cost)
		case before.Cost != b.Cost:
			c.add("budgets_changed", "%s of %s: %v to %v", name, d.ID, before.Cost, b.Cost)
		case before.words() != b.words():
			c.add("budgets_changed", "%s of %s: %s to %s", name, d.ID, before.words(), b.words())
		}
	}
	for name := range was.Budgets {
		if _, ok := d.Budgets[name]; !ok {
			c.add("budgets_removed", "%s of %s", name, d.ID)
		}
	}
	of("defaults_changed", "epsilon of a statement", was.Defaults.Epsilon, d.Defaults.Epsilon)
	of("defaults_changed", "max_epsilon", was.Defaults.MaxEpsilon, d.Defaults.MaxEpsilon)
	of("defaults_changed", "confidence", was.Defaults.Confidence.Float(), d.Defaults.Confidence.Float())
	of("defaults_changed", "freshness", was.Defaults.Freshness, d.Defaults.Freshness)
	for _, t := range d.Tables {
		if before := was.Table(t.Schema, t.Name); before != nil {
			tableChanges(c, before, t)
		} else {
			c.add("tables_added", "%s of %s", t.name(), d.ID)
		}
	}
	for _, t := range was.Tables {
		if d.Table(t.Schema, t.Name) == nil {
			c.add("tables_removed", "%s of %s", t.name(), d.ID)
		}
	}
}

func (d *Dataset) unitWords() string {
	if d.Unit.Row {
		return "row"
	}
	words := fmt.Sprintf("%s, named by %s.%s", d.Unit.Name, d.Unit.Table, d.Unit.Column)
	if d.Unit.Type != 0 {
		words += ", of type " + d.Unit.Type.Name()
	}
	return words
}

func (d *Dataset) levelWords() string {
	words := []string{}
	for _, l := range d.Levels {
		words = append(words, fmt.Sprintf("%s %s", l.Name, l.Share))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// words are a budget in plain words.
func (b Budget) words() string {
	text := b.Cost.String()
	if b.Refresh > 0 && b.Lifetime != nil {
		text += fmt.Sprintf(" anew each %s, %v for life", SpanText(b.Refresh), b.Lifetime.Cost)
	}
	if b.Level != "" {
		text += ", level " + b.Level
	}
	return text
}

// name is how analysts write a table.
func (t *Table) name() string {
	if t.Schema == "public" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

func tableChanges(c *changes, was, t *Table) {
	at := t.Dataset.ID + "." + t.name()
	for _, f := range [][3]string{
		{"source", was.sourceWords(), t.sourceWords()}, {"public", fmt.Sprint(was.Public), fmt.Sprint(t.Public)}, {"static", fmt.Sprint(was.Static), fmt.Sprint(t.Static)},
		{"extremes", fmt.Sprint(was.Extreme), fmt.Sprint(t.Extreme)},
		{"expected_rows", fmt.Sprint(was.ExpectedRows), fmt.Sprint(t.ExpectedRows)}, {"rows of one unit that count", was.boundWords(), t.boundWords()}, {"max_rows", fmt.Sprint(was.MaxRows), fmt.Sprint(t.MaxRows)},
		{"min_frequency", was.Frequency.String(), t.Frequency.String()},
		{"most that one unit adds to a count", totalWords(was.MaxTotal), totalWords(t.MaxTotal)},
		{"unit", was.pathWords(), t.pathWords()}, {"appends", was.appendWords(), t.appendWords()}, {"row_rank", was.RowRank, t.RowRank}, {"unique", fmt.Sprint(was.Unique), fmt.Sprint(t.Unique)},
	} {
		if f[1] != f[2] {
			c.add("tables_changed", "%s: %s: %s to %s", at, f[0], cmp.Or(f[1], "none"), cmp.Or(f[2], "none"))
		}
	}
	before, after := map[string]string{}, map[string]string{}
	for _, column := range slices.Concat(was.Columns, was.Keys) {
		before[column.Name] = column.words()
	}
	for _, column := range slices.Concat(t.Columns, t.Keys) {
		after[column.Name] = column.words()
	}
	namedChanges(c, "columns", at, before, after)
	before, after = map[string]string{}, map[string]string{}
	for _, r := range was.All() {
		before[r.Name] = r.words()
	}
	for _, r := range t.All() {
		after[r.Name] = r.words()
	}
	namedChanges(c, "releases", at, before, after)
}

// namedChanges notes what came, went and changed among things that have names.
func namedChanges(c *changes, kind, at string, before, after map[string]string) {
	for name, words := range after {
		switch old, ok := before[name]; {
		case !ok:
			c.add(kind+"_added", "%s.%s: %s", at, name, words)
		case old != words:
			c.add(kind+"_changed", "%s.%s: %s to %s", at, name, old, words)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			c.add(kind+"_removed", "%s.%s", at, name)
		}
	}
}

// What is compared of addresses has no name and no password in it: a proposed policy would tell by trying which they
// are.

// withoutSecrets is the place that an address names: its scheme, host and path.
func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

func serverChanges(c *changes, old, now *Policy) {
	a, b := *old, *now
	for _, p := range []*Policy{&a, &b} {
		for _, address := range []*string{&p.Backend.URL, &p.Sandbox.URL, &p.Ledger.URL} {
			*address = withoutSecrets(*address)
		}
	}
	const limits = "limits_changed"
	for _, f := range []struct {
		kind, name string
		old, now   any
	}{
		{restarts, "listen", a.Server.Listen, b.Server.Listen}, {restarts, "admin", a.Server.Admin, b.Server.Admin},
		{restarts, "console", a.Server.Console, b.Server.Console},
		{limits, "server.mcp", a.Server.MCP, b.Server.MCP},
		{restarts, "tls", a.Server.TLS, b.Server.TLS}, {restarts, "spans", a.Server.Spans, b.Server.Spans},
		{restarts, "backend", a.Backend, b.Backend},
		{restarts, "sandbox", a.Sandbox, b.Sandbox}, {restarts, "ledger", a.Ledger, b.Ledger},
		{limits, "server.limits", a.Server.Limits, b.Server.Limits},
		{limits, "server.timing", a.Server.Timing, b.Server.Timing},
		{limits, "server.sampling", a.Server.FixedWork, b.Server.FixedWork},
		{limits, "server.login.ldap", a.Server.LDAP, b.Server.LDAP},
		{limits, "server.login.oidc", a.Server.OIDC, b.Server.OIDC},
	} {
		if !reflect.DeepEqual(f.old, f.now) {
			c.add(f.kind, "%s", f.name)
		}
	}
}

const (
	settle    = 200 * time.Millisecond // how long a file must be left alone before it is read: editors write in several steps
	readAgain = 5 * time.Second        // after a read that has not returned in time: nothing may tell of the disk's return
)

// Watch follows a policy file until ctx ends. The file is read at the start (it may have changed since the caller read
// it), after each change and at each signal; a policy that passes is handed to onChange, which compares digests. A file
// that cannot be read, in time or at all, or does not pass, and an error of onChange, go to onError, and whatever was
// in force stays in force. The directory is watched rather than the file, so that a rename over it is seen, and so is a
// swapped symbolic link. Calls of onChange are made one after the other: what one waits for may end with its context,
// which is over when the file holds another policy.
func Watch(ctx context.Context, path string, signals <-chan os.Signal, onChange func(context.Context, *Policy) error, onError func(error)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return err
	}
	timer := time.NewTimer(settle)
	timer.Stop()
	defer timer.Stop()
	w := &follower{path: path, gate: deadline.NewGate(), later: timer, load: loadFollowed, onChange: onChange, onError: onError}
	defer w.end()
	w.reload(ctx, false)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-signals:
			w.reload(ctx, true)
		case <-timer.C:
			w.reload(ctx, false)
		case event, open := <-watcher.Events:
			if !open {
				return errors.New("policy: the file watcher ended")
			}
			if w.concerns(event.Name) && event.Op != fsnotify.Chmod {
				timer.Reset(settle)
			}
		case err, open := <-watcher.Errors:
			if !open {
				return errors.New("policy: the file watcher ended")
			}
			onError(err)
			timer.Reset(settle) // events may have been lost
		}
	}
}

// concerns reports whether an event in the directory may have changed the file: it is about the file itself or, where
// the file is a symbolic link, about anything, because the link may lead through a sibling that was swapped.
func (w *follower) concerns(name string) bool {
	return w.linked || filepath.Base(name) == filepath.Base(w.path)
}

// followed is what a file held when it was read, and whether its name was a symbolic link.
type followed struct {
	data   []byte
	linked bool
}

// loadFollowed reads a file as load does, where it is one: what else may have its name has no end.
func loadFollowed(path string) (of followed, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return of, err
	}
	of.linked = info.Mode()&fs.ModeSymlink != 0
	f, err := deadline.Open(path)
	if err == nil {
		of.data, err = loadFrom(f)
	}
	return of, err
}

// follower knows what was read last, good or bad, so that each state of the file is judged once.
type follower struct {
	path     string
	gate     deadline.Gate
	load     func(path string) (followed, error)
	later    *time.Timer // reads again when it fires
	linked   bool        // its name is a symbolic link
	last     [sha256.Size]byte
	judged   [sha256.Size]byte // of what onChange has, or had last
	cancel   context.CancelFunc
	ended    chan struct{} // closed when onChange returned; nil means it was never called
	onChange func(context.Context, *Policy) error
	onError  func(error)
}

// reload reads the file, and judges it again even where nothing changed if asked to.
func (w *follower) reload(ctx context.Context, again bool) {
	of, err := deadline.Call(w.gate, deadline.Files, func() (followed, error) { return w.load(w.path) })
	if errors.Is(err, deadline.ErrExceeded) {
		err = fmt.Errorf("%s: %w", w.path, err)
		w.later.Reset(readAgain)
	} else {
		w.linked = of.linked
	}
	if err != nil {
		w.last = [sha256.Size]byte{}
		w.onError(err)
		return
	}
	digest := sha256.Sum256(of.data)
	same := digest == w.last && !again || digest == w.judged && w.judging()
	if w.last = digest; same {
		return
	}
	p, err := Parse(of.data, w.path)
	if err != nil {
		w.onError(err)
		return
	}
	w.end()
	waits, cancel := context.WithCancel(ctx)
	w.judged, w.cancel, w.ended = digest, cancel, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		if err := w.onChange(waits, p); err != nil && (waits.Err() == nil || !errors.Is(err, context.Canceled)) {
			w.onError(err)
		}
	}(w.ended)
}

// judging reports whether onChange has not returned yet.
func (w *follower) judging() bool {
	select {
	case <-w.ended:
		return false
	default:
		return w.ended != nil
	}
}

// end has onChange return.
func (w *follower) end() {
	if w.ended != nil {
		w.cancel()
		<-w.ended
	}
}

package policy

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
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
		return cmp.Or(cmp.Compare(slices.Index(kindsInOrder, a.Kind), slices.Index(kindsInOrder, b.Kind)), strings.Compare(a.What, b.What))
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
		{"expected_rows", fmt.Sprint(was.ExpectedRows), fmt.Sprint(t.ExpectedRows)}, {"rows of one unit that count", was.boundWords(), t.boundWords()}, {"max_rows", fmt.Sprint(was.MaxRows), fmt.Sprint(t.MaxRows)},
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

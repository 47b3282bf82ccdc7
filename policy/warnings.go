package policy

import (
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Warnings says in plain words what the owner of a checked policy may not have meant. It depends on the policy alone.
func (p *Policy) Warnings() []string {
	var w []string
	say := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if len(p.Users) == 0 {
		say("no user is named: nobody can log in (dpproxy user add NAME)")
	}
	if p.Server.Admin != "" && !loopback(p.Server.Admin) {
		say("the admin address %s can be reached from other machines and has no password", p.Server.Admin)
	}
	if len(p.Owners) > 0 && p.Server.Console == "" {
		say("owners are named, and there is no server.console for them to look at")
	}
	if twin, err := url.Parse(p.Sandbox.URL); err == nil && strings.HasPrefix(twin.Scheme, "postgres") {
		if private, err := url.Parse(p.Backend.URL); err == nil && sameServer(twin, private) {
			say("the sandbox stands on the private database's server: object ids in its catalogs come from a counter that writes there move, and the memory of a hostile query is that server's; one of its own keeps them apart")
		}
	}
	for name := range maps.Keys(p.Backend.Files) {
		if !p.reads(name) {
			say("files: no table has %s as its source", name)
		}
	}
	slices.Sort(w)
	for _, d := range p.Datasets {
		p.datasetWarnings(d, func(format string, args ...any) { say("dataset "+d.ID+": "+format, args...) })
	}
	return w
}

func (p *Policy) reads(file string) bool {
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			if t.File != "" && t.Source.Name == file {
				return true
			}
		}
	}
	return false
}

// Notes says what the policy assumes and grants, in plain words: true of every policy of its kind, and nothing to mend.
func (p *Policy) Notes() []string {
	notes := slices.Concat(p.limitNotes(), p.timingNotes(), p.samplingNotes(), p.spansNotes(), p.snapshotNotes(), p.groupNotes(), p.ownerNotes(), p.statementNotes())
	for _, d := range p.Datasets {
		say := func(format string, args ...any) {
			notes = append(notes, "dataset "+d.ID+": "+fmt.Sprintf(format, args...))
		}
		for _, user := range slices.Sorted(maps.Keys(d.Budgets)) {
			b, window := d.Budgets[user], ""
			if b.Lifetime != nil {
				window = " in each window"
			}
			say("%s: room for %s default questions%s", budgetOf(user), defaultsIn(b.Cost, d), window)
		}
		for _, l := range d.Levels {
			say("level %s: declared releases for %s of their ε, with more noise on top; whoever first buys one at any level, the cap pays the whole", l.Name, l.Share)
		}
		if d.Neighbors == privacy.ReplaceOne {
			say("replace-one: the number of units, %d, is published", d.Units)
		}
		if d.Unit.Row {
			say("assumed: each row is about one individual, and no individual has two rows")
		} else {
			say("assumed: %s.%s names each %s, one name for one; rows where it is NULL are left out", d.Unit.Table, d.Unit.Column, d.Unit.Name)
			for _, t := range d.Tables {
				if t.NullEach {
					say("assumed: in table %s rows where %s is NULL are not left out: each is about one %s, who has no other row anywhere", t.Name, t.UnitColumn, d.Unit.Name)
				}
			}
		}
		for _, t := range d.Tables {
			tableNotes(t, say)
		}
	}
	return notes
}

func tableNotes(t *Table, say func(string, ...any)) {
	if t.Public {
		say("assumed: table %s holds nothing private; its rows are shown as they are", t.Name)
		return
	}
	if a := t.Appends; a != nil {
		say("assumed: rows are only ever added to table %s, and their %s, their %s and whether they are there never change; so nobody has UPDATE, DELETE or TRUNCATE on it, or a trigger refuses them", t.Name, a.Column.Name, unitWord(t.Dataset))
		if !a.Total {
			say("table %s has appends without rows_per_unit_total: releases over %s do not grow, and each day's new ones cost what the first did", t.Name, a.Column.Name)
		}
	}
	for _, c := range t.Columns {
		if c.Domain != nil && !c.Private && endsAtMidnight(c.Domain.Max) {
			say("column %s.%s ends at the first instant of %s: what comes later on that day is outside; below in the place of max ends it before that instant, so that no last bucket holds it alone", t.Name, c.Name, FormatValue(c.Type, c.Domain.Max)[:10])
		}
	}
}

// limitNotes says what one statement and one user may take.
func (p *Policy) limitNotes() []string {
	l := p.Server.Limits
	if l == (Limits{}) {
		return nil // a policy that was not read from a file
	}
	whole := "three quarters of what the machine or its control group has"
	if l.Memory > 0 {
		whole = SizeText(l.Memory)
	}
	return []string{fmt.Sprintf("limits: one statement has %s of processor time to be planned and post-processed, and %s of memory; of one user at most %d at a time are worked on, and her cursors, prepared statements and unread answers may keep %s; the process and its children have %s",
		l.StatementCPU, SizeText(l.StatementMemory), l.UserWorked(), SizeText(l.UserMemory), whole)}
}

// statementNotes says that texts of statements are kept.
func (p *Policy) statementNotes() []string {
	if p.Ledger.Statements == "" {
		return nil
	}
	return []string{fmt.Sprintf("statements: the text of each that is charged, with the constants in it, is kept in %s, and the owners read it: tell the analysts", p.Ledger.Statements)}
}

// HasBudget reports whether a user may buy anything.
func (p *Policy) HasBudget(user string) bool { return len(p.budgetsOf(user)) > 0 }

// budgetsOf are the datasets in which a user has a budget.
func (p *Policy) budgetsOf(user string) (list []string) {
	for _, d := range p.Datasets {
		if _, ok := d.Budget(user); ok {
			list = append(list, d.ID)
		}
	}
	return list
}

// ownerNotes says of each who sees what others ask, and has a budget, what holds for her: others' choices depend on
// their answers, so that her budget alone does not bound what she learns (privacy rule 1).
func (p *Policy) ownerNotes() (notes []string) {
	for _, u := range p.Users {
		sees := ""
		switch {
		case u.Disabled:
		case p.Owner(u.Name):
			sees = "is an owner: she sees in the console"
		case u.Admin:
			sees = "is an admin: she sees in dp.budget and dp.charges"
		}
		if sees == "" {
			continue
		}
		in := p.budgetsOf(u.Name)
		note := fmt.Sprintf("%s %s what everybody buys, and what they choose to buy may follow from what they were told", u.Name, sees)
		if len(in) > 0 {
			note += fmt.Sprintf("; with a budget in %s, what she learns there is bounded by the dataset's cap, and not by her budget", strings.Join(in, ", "))
		}
		notes = append(notes, note)
	}
	return notes
}

// timingNotes says what the grid costs and what it leaves to see.
func (p *Policy) timingNotes() []string {
	t := p.Server.Timing
	if t.Grid == 0 {
		return nil
	}
	notes := []string{fmt.Sprintf("timing: what a question brings leaves at a multiple of %s since it came: half of that later on average, and at most %.4g answers a second on a connection; the last 2ms of each wait take a processor", t.Grid, 1/t.Grid.Seconds())}
	if t.Fresh != t.Grid {
		notes = append(notes, fmt.Sprintf("timing: each query on private rows takes a multiple of %s, so that a connection has at most %.4g answers from them a second", t.Fresh, 1/t.Fresh.Seconds()))
	}
	if t.Fresh <= p.Backend.Deadline {
		return append(notes, fmt.Sprintf("timing: the number of steps of %s that a query on the private database takes is seen; none is with fresh above backend.deadline, %s", t.Fresh, p.Backend.Deadline))
	}
	return append(notes, fmt.Sprintf("timing: a query that takes longer than backend.deadline, %s, is answered by noise around zero, which shows that it did: let none come near, whoever's rows are there; each has one of the database's places for %s, so that all users together have as many answers from it in that time as it has places",
		p.Backend.Deadline, t.Fresh))
}

// snapshotNotes says when copies are made, and when they are read.
func (p *Policy) snapshotNotes() []string {
	s := p.Backend.Snapshot
	if s == nil {
		return nil
	}
	locked := "not encrypted"
	if s.Key != "" {
		locked = "encrypted"
	}
	return []string{fmt.Sprintf("snapshot: the private tables are copied to %s, %s, every %s from %s UTC on; a copy is in force %s after its time, so that answers are of rows up to %s old",
		s.Dir, locked, s.Every, time.Time{}.Add(s.At).Format("15:04"), s.Within, s.Every+s.Within)}
}

// snapshotWarnings says which releases are bought anew before there are other rows.
func (p *Policy) snapshotWarnings(d *Dataset, say func(string, ...any)) {
	s := p.Backend.Snapshot
	if s == nil {
		return
	}
	for _, t := range d.Tables {
		for _, r := range t.Releases {
			if r.Refresh > 0 && r.Refresh < s.Every {
				say("table %s: a release has refresh: %s, and backend.snapshot new rows every %s: the same rows are paid for again", t.Name, r.Refresh, s.Every)
			}
		}
	}
}

// samplingNotes says what fixed work is for, and what it leaves to see.
func (p *Policy) samplingNotes() []string {
	if !p.Server.FixedWork {
		return nil
	}
	note := "sampling: noise is drawn in fixed work, from the same distributions: a draw's time tells nothing of its size but with a probability below 2^-45, which is charged to nobody's δ, as no time is; choices, refinements, made-up rows and the number of found keys take the time that the rows make them take"
	if p.Server.Timing.Grid == 0 {
		note += "; without timing the time of the query itself is seen, too, which tells more"
	}
	return []string{note}
}

// spansNotes says who is trusted where spans are sent.
func (p *Policy) spansNotes() []string {
	if !p.Server.Spans {
		return nil
	}
	return []string{"assumed: who reads the spans that are sent to the collector may know how long queries on private rows take, which hangs on the rows (server.spans)"}
}

func (p *Policy) datasetWarnings(d *Dataset, say func(string, ...any)) {
	p.budgetWarnings(d, say)
	p.snapshotWarnings(d, say)
	if b, ok := d.Budgets["*"]; ok && b.Level == "" && len(d.Levels) > 0 {
		say("budgets: * names no level: whoever has no budget of her own has declared releases as exactly as the most trusted")
	}
	for _, t := range d.Tables {
		if !t.Public {
			tableWarnings(t, say)
		}
	}
}

func unitWord(d *Dataset) string {
	if d.Unit.Row {
		return "contents"
	}
	return d.Unit.Name
}

func endsAtMidnight(max Value) bool {
	switch at := max.(type) {
	case Timestamp:
		return int64(at)%dayMicros == 0
	case Timestamptz:
		return int64(at)%dayMicros == 0
	}
	return false
}

func budgetOf(user string) string {
	if user == "*" {
		return "budget of each other user"
	}
	return "budget of " + user
}

// budgetWarnings says where budgets, cap and settings contradict each other.
func (p *Policy) budgetWarnings(d *Dataset, say func(string, ...any)) {
	sum, open := privacy.Cost{}, false
	for _, user := range slices.Sorted(maps.Keys(d.Budgets)) {
		b := d.Budgets[user]
		holders := int64(1)
		if user == "*" {
			holders = p.others(d)
		}
		life := b.Cost
		if b.Lifetime != nil {
			life = b.Lifetime.Cost
		}
		for range holders {
			if grown, fits := plus(sum, life); fits {
				sum = grown
			} else {
				open = true
			}
		}
		if !b.Cost.Fits(d.Cap.Cost) {
			say("%s is larger than the cap: the cap ends it first", budgetOf(user))
		}
	}
	if open || !sum.Fits(d.Cap.Cost) {
		say("the cap is below the sum of the budgets: some may find the dataset's budget spent before their own")
	}
	for _, u := range p.Users {
		text, ok := u.Settings["epsilon"]
		if e, err := privacy.ParseEpsilon(text); ok && err == nil && e.Micro() > d.Defaults.MaxEpsilon.Micro() {
			say("user %s starts with epsilon %s, above max_epsilon %s: it is cut to that", u.Name, e, d.Defaults.MaxEpsilon)
		}
	}
	if d.Defaults.MaxEpsilon.Micro() > 10e6 {
		say("max_epsilon is %s: a statement at that epsilon protects next to nothing", d.Defaults.MaxEpsilon)
	}
}

// others returns the number of users and groups that "*" means.
func (p *Policy) others(d *Dataset) int64 {
	n := int64(0)
	for _, u := range p.Users {
		if _, own := d.Budgets[u.Name]; !own && d.Holder(u.Name) == u.Name {
			n++
		}
	}
	for _, g := range p.Groups {
		if _, own := d.Budgets[g.Name]; !own {
			n++
		}
	}
	return n
}

// plus adds two costs, and false where the sum has no room in the units.
func plus(a, b privacy.Cost) (privacy.Cost, bool) {
	const most = int64(1) << 61
	for _, n := range []int64{a.Epsilon.Micro(), a.Rho.Pico(), a.Delta.Atto(), b.Epsilon.Micro(), b.Rho.Pico(), b.Delta.Atto()} {
		if n > most {
			return a, false
		}
	}
	return a.Plus(b), true
}

// defaultsIn is how many statements at the default epsilon a limit holds.
func defaultsIn(limit privacy.Cost, d *Dataset) string {
	most := new(big.Int)
	e := d.Defaults.Epsilon
	for _, of := range [][2]int64{{limit.Epsilon.Micro(), e.Micro()}, {limit.Rho.Pico(), d.RhoOf(e, limit).Pico()}} {
		if have, each := of[0], of[1]; each > 0 {
			if n := new(big.Int).Quo(big.NewInt(have), big.NewInt(each)); n.Cmp(most) > 0 {
				most = n
			}
		}
	}
	if most.Sign() == 0 {
		return "no"
	}
	return most.String()
}

func tableWarnings(t *Table, say func(string, ...any)) {
	if t.Name != strings.ToLower(t.Name) {
		say("table %s: analysts must write its name in double quotes", t.Name)
	}
	if bound := "max_rows_per_unit"; t.MaxRowsPerUnit >= 1000 && !t.AnyRows {
		if t.MaxGroups > 0 {
			bound = "max_groups_per_unit times max_rows_per_group"
		}
		say("table %s: %s is %d, and noise grows with it: a count is off by thousands", t.Name, bound, t.MaxRowsPerUnit)
	}
	if t.View.Trusted {
		say("table %s is a SELECT of the owner's, sent as it is written: that each of its rows depends on one %s's rows alone, and that it fails for no rows, is hers to see to", t.Name, t.Dataset.UnitName())
	}
	var unbounded []string
	for _, c := range t.Columns {
		if c.Private && c.List != nil && t.Dataset.lists != nil {
			say("table %s: nothing is answered over %s: no row of table %s gives a key", t.Name, c.Name, c.List.Of.Name)
		} else if c.Private && c.List == nil {
			unbounded = append(unbounded, c.Name)
		}
	}
	if len(unbounded) > 0 {
		say("table %s: nothing is answered over %s, whose domain is private: dpproxy bounds --table %s finds bounds", t.Name, strings.Join(unbounded, ", "), t.Name)
	}
	for _, c := range t.Columns {
		columnWarnings(c, say)
	}
	for _, r := range t.All() {
		if r.Epsilon.Micro() > t.Dataset.Defaults.MaxEpsilon.Micro() {
			say("release %s costs more than max_epsilon %s: no session can buy it", r.Name, t.Dataset.Defaults.MaxEpsilon)
		}
	}
}

func columnWarnings(c *Column, say func(string, ...any)) {
	if c.Any {
		say("column %s.%s: any text; statements may ask what is so of it, by words of their own (LIKE, left, =), and its values are never shown", c.Table.Name, c.Name)
	} else if c.Open != nil {
		say("column %s.%s: its keys are found by who has δ in her budget, a sixteenth of it each time, or as much as dp.delta says; what its values are called must name nobody", c.Table.Name, c.Name)
	}
	if c.Name != strings.ToLower(c.Name) {
		say("table %s: analysts must write column %s in double quotes", c.Table.Name, c.Name)
	}
	if c.Domain != nil && c.Domain.Type.Textual() && c.Domain.Other >= 0 && c.Domain.Other < c.Domain.Regular {
		say("column %s.%s: values outside the domain are counted with the declared value other", c.Table.Name, c.Name)
	}
}

// fewLines is how many lines of one kind a summary has in full.
const fewLines = 3

// Summary gathers what is said of a policy by kind: of many lines that differ in its names and in numbers alone it has
// the first one, and their number. Kinds and lines keep their order.
func (p *Policy) Summary(lines []string) (list []string) {
	for _, kind := range p.byKind(lines) {
		if len(kind) > fewLines {
			kind = []string{fmt.Sprintf("%s (and %d more of this kind)", kind[0], len(kind)-1)}
		}
		list = append(list, kind...)
	}
	return list
}

func (p *Policy) byKind(lines []string) (kinds [][]string) {
	names := map[string]bool{}
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			for _, name := range []string{t.Name, t.Source.Name, t.UnitColumn} {
				names[name] = true
			}
			for _, c := range append(t.Keys[:len(t.Keys):len(t.Keys)], t.Columns...) {
				names[c.Name], names[c.Source] = true, true
			}
		}
	}
	at := map[string]int{}
	for _, line := range lines {
		kind := wordOf.ReplaceAllStringFunc(line, func(word string) string {
			if names[word] || strings.Trim(word, "0123456789") == "" {
				return "…"
			}
			return word
		})
		kind = namesOf.ReplaceAllString(kind, "…")
		i, known := at[kind]
		if !known {
			i = len(kinds)
			at[kind], kinds = i, append(kinds, nil)
		}
		kinds[i] = append(kinds[i], line)
	}
	return kinds
}

// wordOf finds what may be a name or a number, and namesOf a list of them.
var (
	wordOf  = regexp.MustCompile(`[\pL\pN_$]+`)
	namesOf = regexp.MustCompile(`…([.,; ]+…)+`)
)

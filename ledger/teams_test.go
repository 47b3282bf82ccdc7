package ledger

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// grouped is the census with groups, which have a budget of 5 each.
func grouped(groups map[string][]string) DatasetTerms {
	d := census()
	d.Cap = eps(100e6)
	for group := range groups {
		d.Budgets[GroupAccount(group)] = BudgetTerms{Limit: eps(5e6)}
	}
	d.Groups = groups
	return d
}

func wantLife(t testing.TB, f *keeper, user string, micro int64) {
	t.Helper()
	if b, err := f.Balance(ctx, user, "census"); err != nil || b.LifeSpent != eps(micro) {
		t.Fatalf("%s: %+v, %v; must have spent %d", user, b, err, micro)
	}
}

// What one member buys all of them have, from one budget; the account says who asked, and holds after a reopening and
// in a copy.
func TestGroupIsOneAccount(t *testing.T) {
	f := fresh(t, Options{}, grouped(map[string][]string{"team": {"alice", "bob"}}))
	id := buy(t, f, "alice", item(1, eps(1e6)), 7)
	joint := buy(t, f, "bob", shared(2, eps(2e6)), 8)
	for _, user := range []string{"alice", "bob"} {
		for _, it := range []Item{item(1, eps(1e6)), shared(2, eps(2e6))} {
			if out := charge(t, f, request(user, it)); out[0].Receipt != nil || !out[0].Charged.IsZero() {
				t.Fatalf("%s pays again: %+v", user, out[0])
			}
		}
		if r, err := f.Load(ctx, user, id); err != nil || r.Noisy.Value().Observations[0] != 7 {
			t.Fatalf("%s reads %+v, %v", user, r, err)
		}
		wantSpent(t, f, user, 3e6, 3e6)
	}
	_, err := f.Charge(ctx, request("bob", item(3, eps(3e6))))
	wantErr(t, err, ErrExhausted)
	for _, stranger := range []string{"carol", "team"} { // a user of the group's name is somebody else
		if _, err := f.Load(ctx, stranger, id); !errors.Is(err, ErrNotHeld) {
			t.Fatalf("%s reads the group's: %v", stranger, err)
		}
		wantLife(t, f, stranger, 0)
	}
	_, err = f.Charge(ctx, request(GroupAccount("team"), item(4, eps(1))))
	if err == nil {
		t.Fatal("an account is charged that nobody has named herself by")
	}
	check := func(f *keeper) {
		t.Helper()
		charges, err := f.Charges(ctx, "alice", "census", 10)
		if err != nil || len(charges) != 2 || charges[0].User != "bob" || charges[1].User != "alice" {
			t.Fatalf("charges %+v, %v", charges, err)
		}
		list, err := f.Balances(ctx, "census")
		if err != nil || len(list) != 1 || list[0].User != "team" || !list[0].Group || fmt.Sprint(list[0].Members) != fmt.Sprint([]Share{{"alice", eps(1e6)}, {"bob", eps(2e6)}}) {
			t.Fatalf("balances %+v, %v", list, err)
		}
		if _, err := f.Load(ctx, "bob", joint); err != nil {
			t.Fatal(err)
		}
		wantSpent(t, f, "bob", 3e6, 3e6)
		verify(t, f)
	}
	check(f)
	path := pathOf(f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, path, Options{})
	check(f)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := f.Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
}

// Who joins a group brings what she was shown, who leaves takes what the group was; a mistake that is taken back costs
// nothing; a renamed group keeps its spending; what would be above a lifetime is refused, and nothing has changed then.
func TestRule8GroupsRemember(t *testing.T) {
	team := func(members ...string) DatasetTerms { return grouped(map[string][]string{"team": members}) }
	f := fresh(t, Options{}, team("alice", "bob"))
	own := buy(t, f, "carol", item(1, eps(1e6)), 1)
	theirs := buy(t, f, "alice", item(1, eps(2e6)), 2)

	adopt(t, f, team("alice", "bob", "carol"))
	for _, user := range []string{"alice", "carol"} {
		wantLife(t, f, user, 3e6)
		for _, id := range []int64{own, theirs} {
			if _, err := f.Load(ctx, user, id); err != nil {
				t.Fatalf("%s, release %d: %v", user, id, err)
			}
		}
	}
	adopt(t, f, team("alice", "bob")) // carol leaves, and comes back, and leaves again
	wantLife(t, f, "carol", 3e6)
	if _, err := f.Load(ctx, "carol", theirs); err != nil {
		t.Fatal(err)
	}
	_, err := f.Charge(ctx, request("carol", item(2, eps(1)))) // her own budget is 3
	wantErr(t, err, ErrExhausted)
	adopt(t, f, team("alice", "bob", "carol"))
	adopt(t, f, team("alice", "bob"))
	wantLife(t, f, "carol", 3e6)
	wantLife(t, f, "alice", 3e6)

	adopt(t, f, grouped(map[string][]string{"renamed": {"alice", "bob"}}))
	wantLife(t, f, "bob", 3e6)
	if held := f.Holdings("bob", "census"); len(held) != 2 {
		t.Fatalf("after the renaming: %+v", held)
	}
	later := buy(t, f, "bob", item(3, eps(1e6)), 3)
	_, err = f.Load(ctx, "carol", later) // it was bought when she had left
	wantErr(t, err, ErrNotHeld)

	buy(t, f, "dave", item(4, eps(2e6)), 4)
	err = f.Adopt(ctx, terms(grouped(map[string][]string{"renamed": {"alice", "bob", "dave"}})))
	wantErr(t, err, ErrBound)
	wantLife(t, f, "dave", 2e6)
	wantLife(t, f, "bob", 4e6)
	if held := f.Holdings("bob", "census"); len(held) != 3 {
		t.Fatalf("after what was refused: %+v", held)
	}
	adopt(t, f, grouped(map[string][]string{"renamed": {"alice", "bob", "eve"}})) // who was shown nothing may always join
	wantLife(t, f, "eve", 4e6)
	if err := f.Adopt(ctx, terms(grouped(map[string][]string{"a": {"bob"}, "b": {"bob"}}))); err == nil {
		t.Fatal("one user in two groups")
	}
	verify(t, f)
	path := pathOf(f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, path, Options{})
	verify(t, f)
	wantLife(t, f, "carol", 3e6)
	adopt(t, f, grouped(map[string][]string{"renamed": {"bob", "eve"}}))
	wantLife(t, f, "alice", 4e6) // the chain remembers what she was in
}

// knowing is the ledger of groups as one would write it on paper: for each account the charges that its people know of,
// one by one.
type knowing struct {
	f      *keeper
	path   string
	groups map[string][]string
	cost   []int64 // of each charge
	knows  map[string]map[int]bool
	ids    map[int]int64 // the release of a charge
}

var (
	people = []string{"ann", "bob", "cid", "dan"}
	teams  = []string{"x", "y", "z"}
)

func (w *knowing) account(user string) string {
	for group, members := range w.groups {
		if slices.Contains(members, user) {
			return GroupAccount(group)
		}
	}
	return user
}

func (w *knowing) sum(set map[int]bool) (sum int64) {
	for n := range set {
		sum += w.cost[n]
	}
	return sum
}

func (w *knowing) know(account string) map[int]bool {
	if w.knows[account] == nil {
		w.knows[account] = map[int]bool{}
	}
	return w.knows[account]
}

func (w *knowing) limit(account string) int64 {
	if isGroup(account) {
		return 5e6
	}
	return 3e6
}

func (w *knowing) buy(t *rapid.T) {
	user := rapid.SampledFrom(people).Draw(t, "user")
	micro := rapid.Int64Range(1, 15e5).Draw(t, "cost")
	n, account := len(w.cost), w.account(user)
	it := item(0, eps(micro))
	it.Digest = Digest{byte(n), byte(n >> 8), 1}
	out, err := w.f.Charge(ctx, request(user, it))
	if fits := w.sum(w.know(account))+micro <= w.limit(account); fits != (err == nil) {
		t.Fatalf("%s, who has spent %d of %d, asks for %d: %v", account, w.sum(w.know(account)), w.limit(account), micro, err)
	}
	if err != nil {
		return
	}
	w.cost = append(w.cost, micro)
	w.know(account)[n] = true
	if out[0].Receipt.Spend(it.Digest) != nil {
		t.Fatal("not spent")
	}
	if w.ids[n], err = w.f.Save(ctx, out[0].Receipt, mechanisms.Drawn{Noisy: noisy(1)}); err != nil {
		t.Fatal(err)
	}
}

func (w *knowing) regroup(t *rapid.T) {
	old, groups := map[string]string{}, map[string][]string{}
	for _, user := range people {
		old[user] = w.account(user)
		if n := rapid.IntRange(0, len(teams)).Draw(t, "group of "+user); n > 0 {
			groups[teams[n-1]] = append(groups[teams[n-1]], user)
		}
	}
	before, was := map[string]map[int]bool{}, w.groups
	for account, set := range w.knows {
		before[account] = maps.Clone(set)
	}
	w.groups = groups
	for _, user := range people { // leaving: what the group knew until now
		if now := w.account(user); old[user] != now && old[user] != user {
			maps.Copy(w.know(user), before[old[user]])
		}
	}
	refused := false
	for _, user := range people {
		if now := w.account(user); old[user] != now && now != user {
			had := len(w.know(now))
			maps.Copy(w.know(now), w.know(user))
			refused = refused || len(w.know(now)) > had && w.sum(w.know(now)) > w.limit(now)
		}
	}
	all := map[string][]string{}
	maps.Copy(all, groups)
	d := grouped(all)
	for _, team := range teams { // the budgets stay, so that no limit changes
		d.Budgets[GroupAccount(team)] = BudgetTerms{Limit: eps(5e6)}
	}
	err := w.f.Adopt(ctx, terms(d))
	if refused != errors.Is(err, ErrBound) || !refused && err != nil {
		t.Fatalf("from %v to %v: %v, must be refused: %t", was, groups, err, refused)
	}
	if refused {
		w.groups, w.knows = was, before
	}
}

func (w *knowing) reopen(t *rapid.T) {
	if err := w.f.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := openAt(w.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.f = l.(*keeper)
}

func (w *knowing) check(t *rapid.T) {
	for _, user := range people {
		account := w.account(user)
		b, err := w.f.Balance(ctx, user, "census")
		if want := w.sum(w.know(account)); err != nil || b.LifeSpent != eps(want) {
			t.Fatalf("%s knows %v, which comes to %d: %+v, %v", account, w.know(account), want, b, err)
		}
		var held, want []int64
		for _, r := range w.f.Holdings(user, "census") {
			held = append(held, r.ID)
		}
		for n := range w.know(account) {
			want = append(want, w.ids[n])
		}
		slices.Sort(held)
		slices.Sort(want)
		if !slices.Equal(held, want) {
			t.Fatalf("%s holds %v, must hold %v", account, held, want)
		}
	}
}

// TestGroupsTwin: random purchases and random changes of groups; each account has spent what the union of the charges
// comes to that its people were shown, and holds exactly these releases.
func TestGroupsTwin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &knowing{path: place(t), knows: map[string]map[int]bool{}, ids: map[int]int64{}}
		blank(w.path)
		l, err := openAt(w.path, Options{})
		if err != nil {
			r.Fatal(err)
		}
		w.f = l.(*keeper)
		defer func() { w.f.Close() }()
		d := census()
		d.Cap = eps(100e6)
		if err := w.f.Adopt(ctx, terms(d)); err != nil {
			r.Fatal(err)
		}
		r.Repeat(map[string]func(*rapid.T){"buy": w.buy, "more": w.buy, "regroup": w.regroup, "reopen": w.reopen, "": w.check})
		if _, err := w.f.Verify(ctx); err != nil {
			r.Fatal(err)
		}
	})
}

// Members who ask at the same time never overspend their one budget, and of one question one of them draws.
func TestMembersAtOnce(t *testing.T) {
	members := []string{"ann", "bob", "cid", "dan"}
	f := fresh(t, Options{}, grouped(map[string][]string{"team": members}))
	var running sync.WaitGroup
	var mu sync.Mutex
	held, drawn := 0, 0
	for i, user := range members {
		running.Go(func() {
			for n := range 10 {
				out, err := f.Charge(ctx, request(user, item(byte(10*i+n), eps(3e5))))
				if err != nil && !errors.Is(err, ErrExhausted) {
					t.Error(err)
				}
				mu.Lock()
				if err == nil {
					held++
					f.Abandon(out[0].Receipt)
				}
				mu.Unlock()
			}
			out, err := f.Charge(ctx, request(user, item(99, eps(1e5))))
			if err != nil {
				t.Error(err)
				return
			}
			if out[0].Receipt != nil {
				mu.Lock()
				drawn++
				mu.Unlock()
				if err := out[0].Receipt.Spend(out[0].Receipt.digest); err != nil {
					t.Error(err)
				}
				if _, err := f.Save(ctx, out[0].Receipt, mechanisms.Drawn{Noisy: noisy(1)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if held != 16 || drawn != 1 { // 16 · 0.3 + 0.1 of 5
		t.Fatalf("%d charges held and %d drawn, must be 16 and 1", held, drawn)
	}
	wantSpent(t, f, "ann", 4.9e6, 4.9e6)
	verify(t, f)
}

// Rule 1: nothing that another group, or its changes, do shows in what a group sees.
func TestRule1GroupsLeaveNoTrace(t *testing.T) {
	view := func(others func(*keeper)) string {
		c := newClock()
		f := fresh(t, Options{Clock: c.read}, grouped(map[string][]string{"team": {"alice", "bob"}, "other": {"carol", "dave"}}))
		others(f)
		buy(t, f, "alice", item(1, eps(100)), 1)
		buy(t, f, "bob", shared(2, eps(200)), 2)
		seen := ""
		for _, user := range []string{"alice", "bob"} {
			b, err1 := f.Balance(ctx, user, "census")
			charges, err2 := f.Charges(ctx, user, "census", 100)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			for i := range charges {
				charges[i].Seq = 0
			}
			held := slices.Clone(f.Holdings(user, "census"))
			for i := range held {
				held[i].ID = 0
			}
			seen += fmt.Sprint(b, charges, held)
		}
		return seen
	}
	quiet := view(func(*keeper) {})
	busy := view(func(f *keeper) {
		buy(t, f, "carol", item(1, eps(100)), 3)
		charge(t, f, request("dave", item(7, eps(1e6))))
		buy(t, f, "erin", item(8, eps(1e6)), 4)
		adopt(t, f, grouped(map[string][]string{"team": {"alice", "bob"}, "other": {"carol", "erin"}}))
		_, err := f.Charge(ctx, request("carol", item(9, eps(1e9))))
		wantErr(t, err, ErrExhausted)
	})
	if quiet != busy {
		t.Fatalf("the group sees\n%s\nand after others were busy\n%s", quiet, busy)
	}
}

// Two proxies know of one group: what a member buys at one, another has at the other.
func TestSharedGroups(t *testing.T) {
	_, two := several(t, 2, Options{}, grouped(map[string][]string{"team": {"alice", "bob"}}))
	id := buy(t, two[0], "alice", item(1, eps(4e6)), 7)
	if out := charge(t, two[1], request("bob", item(1, eps(4e6)))); out[0].ID != id || !out[0].Charged.IsZero() {
		t.Fatalf("%+v", out)
	}
	_, err := two[1].Charge(ctx, request("bob", item(2, eps(2e6))))
	wantErr(t, err, ErrExhausted)
	follow(t, two[1])
	if r, err := two[1].Load(ctx, "bob", id); err != nil || r.Noisy.Value().Observations[0] != 7 {
		t.Fatalf("%+v, %v", r, err)
	}
	verify(t, two[1])
}

// A dataset that becomes a zCDP one prices again what accounts know of others', each charge by itself, and what is
// known twice is still counted once.
func TestRule8GroupsRepriced(t *testing.T) {
	d := grouped(map[string][]string{"team": {"alice"}})
	f := fresh(t, Options{}, d)
	buy(t, f, "alice", item(1, eps(1e6)), 1)
	buy(t, f, "bob", item(2, eps(2e6)), 2)
	d.Groups = map[string][]string{"team": {"alice", "bob"}}
	adopt(t, f, d)
	d.Accountant, d.Cap = privacy.ZCDP, rho(100e12)
	d.Budgets = map[string]BudgetTerms{"*": {Limit: rho(50e12)}}
	adopt(t, f, d)
	want := func(user string) {
		t.Helper()
		if b, err := f.Balance(ctx, user, "census"); err != nil || b.LifeSpent != rho(2.5e12) {
			t.Fatalf("%s: %+v, %v", user, b, err)
		}
	}
	want("alice")
	d.Groups = map[string][]string{"team": {"alice"}}
	adopt(t, f, d)
	want("alice")
	want("bob")
	d.Groups = map[string][]string{"team": {"alice", "bob"}}
	adopt(t, f, d)
	want("bob")
	verify(t, f)
}

// What is charged and not drawn yet when groups change is held by all whose accounts are charged for it (privacy rule
// 5): by who has asked, though she left meanwhile, and by the group that she came to.
func TestRule5GroupsChangeBeforeTheDraw(t *testing.T) {
	team := func(members ...string) DatasetTerms { return grouped(map[string][]string{"team": members}) }
	f := fresh(t, Options{}, team("alice", "bob"))
	asked := charge(t, f, request("alice", item(1, eps(1e6))))[0].Receipt
	joint := charge(t, f, request("alice", shared(2, eps(1e6))))[0].Receipt
	own := charge(t, f, request("carol", item(3, eps(1e6))))[0].Receipt
	adopt(t, f, team("bob", "carol"))
	path := pathOf(f)
	ids := []int64{keep(t, f, asked, 1), keep(t, f, joint, 2), keep(t, f, own, 3)}
	check := func() {
		t.Helper()
		wantLife(t, f, "alice", 2e6)
		wantLife(t, f, "bob", 3e6)
		for user, held := range map[string][]int64{"alice": ids[:2], "bob": ids, "carol": ids} {
			for _, id := range held {
				if _, err := f.Load(ctx, user, id); err != nil {
					t.Errorf("%s, release %d: %v", user, id, err)
				}
			}
			if got := f.Holdings(user, "census"); len(got) != len(held) {
				t.Errorf("%s holds %+v", user, got)
			}
		}
		verify(t, f)
	}
	check()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, path, Options{})
	check()
	adopt(t, f, team("bob"))
	wantLife(t, f, "carol", 3e6)
}

// A release and what refines it are one answer, also for those who were handed both, in whatever order: what is refined
// is not read beside it as if it were another (privacy rule 22). When the refinement is withdrawn the earlier level is
// read again.
func TestHandedLevelsAreOneAnswer(t *testing.T) {
	team := func(members ...string) DatasetTerms {
		return grouped(map[string][]string{"team": members, "other": {"dave"}})
	}
	f := fresh(t, Options{}, team("bob"))
	first, _ := begin(t, f, "alice")
	adopt(t, f, team("bob", "alice"))
	adopt(t, f, team("bob"))
	next := buy(t, f, "alice", rung(200_000, 300_000, first), 1, 2)
	read := func(user string) (ids []int64) {
		for _, h := range f.Holdings(user, "census") {
			if !h.Refined {
				ids = append(ids, h.ID)
			}
		}
		return ids
	}
	want := func(user string, id int64) {
		t.Helper()
		if got := read(user); len(got) != 1 || got[0] != id {
			t.Errorf("%s reads %v, must read %d alone: %+v", user, got, id, f.Holdings(user, "census"))
		}
	}
	want("alice", next)
	want("bob", first)
	adopt(t, f, team("bob", "alice"))
	want("bob", next)
	if err := f.Revoke(ctx, next); err != nil {
		t.Fatal(err)
	}
	want("bob", first)
	adopt(t, f, team("bob"))
	want("alice", first)
	verify(t, f)
}

package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// errBoundBy makes an error of privacy rule 8.
func errBoundBy(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBound, fmt.Sprintf(format, args...))
}

// budget returns the terms that bind an account, "*" standing for each one that is not named.
func (d *dataset) budget(user string) (BudgetTerms, bool) {
	if t, ok := d.terms.Budgets[user]; ok {
		return t, true
	}
	t, ok := d.terms.Budgets["*"]
	return t, ok
}

// life is the limit that the guarantee names.
func (t BudgetTerms) life() privacy.Cost {
	if t.Refresh == 0 {
		return t.Limit
	}
	return t.Lifetime
}

// limit is the granted limit of an account.
func (b *book) limit(key store.AccountKey) privacy.Cost {
	set := b.sets[key.DS]
	if key.Scope == store.ScopeCap {
		return set.terms.Cap
	}
	t, ok := set.budget(key.Holder)
	if !ok {
		return privacy.Cost{}
	}
	if key.Scope == store.ScopeLife {
		return t.life()
	}
	return t.Limit
}

// ends is when the window that holds now is over; 0 for other scopes.
func (b *book) ends(key store.AccountKey, now int64) int64 {
	if key.Scope != store.ScopeWindow {
		return 0
	}
	if t, ok := b.sets[key.DS].budget(key.Holder); ok && t.Refresh > 0 {
		return windowEnd(now, t.Refresh)
	}
	return 0
}

// opening is an account of which the chain has not heard before. What an accepted rollback has lost may have been its.
func (b *book) opening(key store.AccountKey, now int64) store.Account {
	a := store.Account{Filter: accounting.Filter{Limit: b.limit(key)}, Ends: b.ends(key, now)}
	if b.lostAll || !b.lost.IsZero() {
		a = forfeited(a, b.lost, b.lostAll, b.sets[key.DS].terms)
	}
	return a
}

// payers are the accounts that a charge moves.
func (b *book) payers(ds int64, user string, capped bool) []store.AccountKey {
	keys := make([]store.AccountKey, 0, 3)
	if t, ok := b.sets[ds].budget(user); ok && t.Refresh > 0 {
		keys = append(keys, store.AccountKey{DS: ds, Scope: store.ScopeWindow, Holder: user})
	}
	keys = append(keys, store.AccountKey{DS: ds, Scope: store.ScopeLife, Holder: user})
	if capped {
		keys = append(keys, store.AccountKey{DS: ds, Scope: store.ScopeCap, Holder: ""})
	}
	return keys
}

func (b *book) applyRename(r chain.Row) error {
	d := chain.Read(r.Body)
	id := d.Text()
	if err := d.End(); err != nil {
		return err
	}
	set := b.sets[r.DS]
	if _, used := b.ids[id]; used || set == nil {
		return ErrBound
	}
	next := *set
	next.id = id
	next.terms.ID = id
	b.sets[r.DS], b.ids[id] = &next, r.DS
	return nil
}

// applyTerms gives a dataset its terms. Spending already done is re-priced where the accountant or the neighbours
// change in the allowed direction; the other direction never gets a row.
func (b *book) applyTerms(r chain.Row) error {
	t, err := decodeTerms(r.Body)
	if err != nil {
		return err
	}
	set := b.sets[r.DS]
	if set == nil {
		if _, used := b.ids[t.ID]; used || r.DS != r.Seq {
			return ErrBound
		}
		b.ids[t.ID] = r.DS
		set = &dataset{id: t.ID, terms: t}
	}
	if set.id != t.ID {
		return chain.ErrMalformed
	}
	if err := set.change(t); err != nil {
		return err
	}
	next := *set
	next.terms, next.encoded, next.groups, next.paths = t, string(r.Body), membership(t.Groups), set.pathsUnder(t)
	b.sets[r.DS] = &next
	for key, a := range b.accounts {
		if key.DS == r.DS {
			b.regrant(key, a, set.terms, r.At)
		}
	}
	if err := b.regroup(r.DS, set.groups, next.groups, r.At); err != nil {
		return err
	}
	key := store.AccountKey{DS: r.DS, Scope: store.ScopeCap, Holder: ""}
	if _, ok := b.accounts[key]; !ok {
		b.accounts[key] = b.opening(key, r.At)
	}
	return nil
}

// regrant gives an existing account the limits and the window of new terms.
func (b *book) regrant(key store.AccountKey, a store.Account, old DatasetTerms, now int64) {
	a = a.Rolled(now, 0)
	if key.Scope == store.ScopeWindow {
		ends := b.ends(key, now)
		if ends == 0 {
			delete(b.accounts, key)
			return
		}
		a.Ends = ends
	}
	a.Spent = repriced(a.Spent, old, b.sets[key.DS].terms)
	if key.Scope == store.ScopeLife {
		b.brought[holderKey{key.DS, key.Holder}] = b.brought[holderKey{key.DS, key.Holder}].repriced(old, b.sets[key.DS].terms)
	}
	b.accounts[key] = a.Limited(b.limit(key))
}

// change reports whether privacy rule 8 lets terms follow those of d.
func (d *dataset) change(t DatasetTerms) error {
	if !d.charged {
		return nil
	}
	old := d.terms
	switch {
	case old.Unit != t.Unit:
		return errBoundBy("dataset %s protects %q; its unit cannot change to %q once budget is spent", t.ID, old.Unit, t.Unit)
	case d.changedPath(t) != "":
		relation := d.changedPath(t)
		return errBoundBy("rows of %s of dataset %s name their unit by %q; that cannot change to %q once budget is spent", relation, t.ID, d.paths[relation], t.Paths[relation])
	case t.Accountant == privacy.Pure && old.Accountant != privacy.Pure:
		return errBoundBy("dataset %s is accounted by %s; it cannot go back to %s once budget is spent", t.ID, old.Accountant, t.Accountant)
	case d.delta && t.Cap.Delta.Atto() == 0 && t.Cap.Rho.Pico() != 0: // ρ takes all of δ then, and some of it was spent
		return errBoundBy("dataset %s has spent δ to find keys, which must stay reserved for that: keep a column of keys: discover, or large_products: threshold", t.ID)
	case old.Neighbors == privacy.ReplaceOne && t.Neighbors == privacy.AddRemove:
		return errBoundBy("dataset %s has replace-one neighbors; they cannot become add-remove once budget is spent", t.ID)
	case old.Neighbors == privacy.AddRemove && t.Neighbors == privacy.ReplaceOne && d.delta:
		return errBoundBy("dataset %s has spent δ under add-remove neighbors, which has no price under replace-one", t.ID)
	}
	return nil
}

// changedPath is a relation whose rows would name their unit otherwise than they did when something was spent; empty:
// there is none. What is spent protects, of each unit, the rows that were hers then. A transfer that was its sender's,
// and is its receiver's from now on, is two people's, and what was answered bounds neither's rows with what will be
// (privacy rule 9).
func (d *dataset) changedPath(t DatasetTerms) string {
	for _, relation := range slices.Sorted(maps.Keys(t.Paths)) {
		if was, known := d.paths[relation]; known && was != t.Paths[relation] {
			return relation
		}
	}
	return ""
}

// pathsUnder are the paths that are known under new terms. Once something is spent none is forgotten, so that a
// relation that is left out of a policy does not come back with another one.
func (d *dataset) pathsUnder(t DatasetTerms) map[string]string {
	if !d.charged {
		return t.Paths
	}
	all := map[string]string{}
	maps.Copy(all, d.paths)
	maps.Copy(all, t.Paths)
	return all
}

func (b *book) applyForfeit(r chain.Row) error {
	d := chain.Read(r.Body)
	lost := d.Cost()
	all := d.Bool()
	if err := d.End(); err != nil {
		return err
	}
	if negative(lost) {
		return chain.ErrMalformed
	}
	for key, a := range b.accounts {
		a = a.Rolled(r.At, b.ends(key, r.At))
		b.accounts[key] = forfeited(a, lost, all, b.sets[key.DS].terms)
	}
	for ds, set := range b.sets {
		next := *set
		next.charged = true
		b.sets[ds] = &next
		b.totals[ds] = b.totals[ds].Plus(lost) // of each: nobody knows whose it was
	}
	b.lost, b.lostAll, b.total = b.lost.Plus(lost), b.lostAll || all, b.total.Plus(lost)
	b.endWhatGoesOn()
	return nil
}

// sound checks terms before they are written.
func (t DatasetTerms) sound() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("ledger: dataset %s: %s", t.ID, fmt.Sprintf(format, args...))
	}
	if t.ID == "" || t.Unit == "" || len(t.Relations) == 0 {
		return fail("an id, a unit and a base relation are needed")
	}
	if t.Accountant < privacy.Pure || t.Accountant > privacy.Either {
		return fail("invalid accountant")
	}
	if t.Neighbors != privacy.AddRemove && t.Neighbors != privacy.ReplaceOne {
		return fail("invalid neighbors")
	}
	if err := measures(t.Accountant, t.Cap); err != nil {
		return fail("cap: %v", err)
	}
	if err := soundGroups(t.Groups); err != nil {
		return fail("%v", err)
	}
	for user, b := range t.Budgets {
		if user == "" {
			return fail("a budget without a user")
		}
		if err := measures(t.Accountant, b.Limit); err != nil {
			return fail("budget of %s: %v", user, err)
		}
		if err := measures(t.Accountant, b.Lifetime); err != nil {
			return fail("lifetime of %s: %v", user, err)
		}
		if b.Refresh < 0 || b.Refresh > 0 && b.Refresh < time.Second {
			return fail("budget of %s: a refresh window of %s", user, b.Refresh)
		}
		if b.Refresh > 0 && b.Lifetime.IsZero() {
			return fail("budget of %s: refresh requires lifetime", user)
		}
	}
	return nil
}

// measures checks that c is not negative and in the accountant's unit.
func measures(a privacy.Accountant, c privacy.Cost) error {
	epsilon, rho := a.Takes()
	switch {
	case negative(c):
		return fmt.Errorf("a negative amount")
	case !rho && c.Rho.Pico() != 0 || !epsilon && c.Epsilon.Micro() != 0:
		return fmt.Errorf("an amount in the unit of another accountant")
	}
	return nil
}

// A Balance is shown beside an account, of which it is what may be shown: what was spent by each condition of its
// filter. What it says of a cost that nobody has paid yet is what the filter will say.

// Left is what the user may still spend: the lesser of the window's and the lifetime's rest. Under either accountant it
// names ε and ρ, of which a cost needs to fit one.
func (b Balance) Left() privacy.Cost {
	rest := b.Limit.Less(b.Spent)
	if b.LifeLimit.IsZero() {
		return rest
	}
	return rest.Least(b.LifeLimit.Less(b.LifeSpent))
}

// Holds reports whether the user could pay a charge.
func (b Balance) Holds(c accounting.Charge) bool {
	return holds(b.Limit, b.Spent, c) && (b.LifeLimit.IsZero() || holds(b.LifeLimit, b.LifeSpent, c))
}

func holds(limit, spent privacy.Cost, c accounting.Charge) bool {
	return accounting.Filter{Limit: limit.Less(spent)}.Holds(c)
}

// After is the balance after a charge.
func (b Balance) After(c accounting.Charge) Balance {
	b.Spent, b.LifeSpent = after(b.Limit, b.Spent, c), after(b.LifeLimit, b.LifeSpent, c)
	return b
}

func after(limit, spent privacy.Cost, c accounting.Charge) privacy.Cost {
	more := accounting.Filter{Limit: limit.Less(spent), Spent: c}.Shown()
	if limit.Epsilon.Micro() == 0 {
		more.Epsilon = privacy.Epsilon{}
	}
	if limit.Rho.Pico() == 0 {
		more.Rho = privacy.Rho{}
	}
	return spent.Plus(more)
}

// Share is what of the budget a charge is, by the condition of which it is the lesser part.
func (b Balance) Share(c accounting.Charge) float64 {
	share := func(cost, limit int64) float64 {
		if cost == 0 && limit == 0 {
			return 0
		}
		return float64(cost) / float64(limit)
	}
	rho := share(c.Cost.Rho.Pico()+min(c.Converted.Pico(), 1e18), b.Limit.Rho.Pico())
	switch {
	case b.Limit.Rho.Pico() == 0:
		return share(c.Cost.Epsilon.Micro(), b.Limit.Epsilon.Micro())
	case b.Limit.Epsilon.Micro() == 0 || c.Cost.Rho.Pico() != 0:
		return rho
	}
	return min(rho, share(c.Cost.Epsilon.Micro(), b.Limit.Epsilon.Micro()))
}

// More is how many further charges of one kind the balance holds, about.
func (b Balance) More(c accounting.Charge) int64 {
	left, most := b.Left(), int64(0)
	if rho := c.Concentrated().Cost.Rho.Pico(); rho > 0 {
		most = left.Rho.Pico() / rho
	}
	if c.Cost.Rho.Pico() == 0 && c.Cost.Epsilon.Micro() > 0 {
		most = max(most, left.Epsilon.Micro()/c.Cost.Epsilon.Micro())
	}
	return most
}

package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Users who are a group hold one account (docs/adr/0101): what one of them buys all of them have, and all of them pay.
// Alice and Bob of marketing ask SELECT count(*) FROM people: the group's account pays once, the second answer is the
// first one.
//
// Claim: at every moment and for every account X, all that those whose account it is have been shown until then, in all
// their accounts, is a function of what the accounts A that X knows had paid for by the moments at which X came to know
// them, and of choices made from that alone; and X's life account has spent at least the sum of these charges, each
// counted once. Neighbours: those of the dataset. Theorem: accounting.Filter's, whose sequence of releases is, for X,
// the charges it knows.
//
// Proof: every account's charges are in one order, so what X knows of A is a prefix of A's charges, and of two
// prefixes the longer contains the other: what X knows is, for each A, one amount (in each unit), and what two accounts
// know together is the larger amount of each A. The claim holds while nothing changes: X pays for what it is shown.
// When she leaves a group, her account comes to know all that the group's knows; since she came, hers has paid nothing,
// and the group's has known all of hers. When she joins one, the group's account comes to know all that hers knows. All
// leave before anybody joins, so that who leaves takes nothing of who comes at that time. What was chosen by what
// somebody saw, was chosen by members of an account from what that account knew: a prefix that X knows has come about
// by knowledge that X has too. Sums are over different accounts' charges, so nothing is counted twice, and to join and
// to leave again by a mistake costs nothing. A change after which an account would know more than its limit is refused
// (ErrBound), when it joins: so the sum is within the largest lifetime of the accounts that X's people have been in, as
// the guarantee says.
//
// Releases go the same way as what is known of them: who is charged for them holds them, if they are drawn and saved
// after the change as well. A renamed group is one that all leave and a new one that all join.
//
// Limits: windows are not carried over; the guarantee names the lifetime. That a change is refused tells whoever sees
// it of sums that only the operator sees otherwise. Of a group that nobody is in any more the account stays, for its
// name. Releases that go on (questions one by one, alarms) stay with the account that opened them, and what others were
// handed cannot be refined.

// groupMark begins the text of a group's account, so that none is a user's: no name of a policy has a control
// character.
const groupMark = "\x01"

// GroupAccount is the text of a group's account among budgets.
func GroupAccount(group string) string { return groupMark + group }

func isGroup(account string) bool { return strings.HasPrefix(account, groupMark) }

// AccountName is how an account is shown: by the name of the user or of the group.
func AccountName(account string) string { return strings.TrimPrefix(account, groupMark) }

func byName(a, b string) int {
	return cmp.Or(cmp.Compare(AccountName(a), AccountName(b)), cmp.Compare(a, b))
}

// holder is a user's account: her group's, or her own.
func (d *dataset) holder(user string) string {
	if d != nil {
		if group, ok := d.groups[user]; ok {
			return group
		}
	}
	return user
}

// heldBy is a release, and whether a user's account has paid for it.
func (b *book) heldBy(user string, id int64) (*record, bool) {
	rec := b.releases[id]
	if rec == nil {
		return nil, false
	}
	_, paid := b.paid[paidKey{id, b.sets[rec.ds].holder(user)}]
	return rec, paid
}

// membership is the account of each member.
func membership(groups map[string][]string) map[string]string {
	if len(groups) == 0 {
		return nil
	}
	of := map[string]string{}
	for group, members := range groups {
		for _, user := range members {
			of[user] = GroupAccount(group)
		}
	}
	return of
}

// soundGroups checks groups before they are written.
func soundGroups(groups map[string][]string) error {
	seen := map[string]bool{}
	for group, members := range groups {
		if group == "" || isGroup(group) || len(members) == 0 {
			return errors.New("a group needs a name and members")
		}
		for _, user := range members {
			switch {
			case user == "" || user == "*" || isGroup(user):
				return errors.New("a member needs a name")
			case seen[user]:
				return fmt.Errorf("%s is in two groups", user)
			}
			seen[user] = true
		}
	}
	return nil
}

// prefixes are what an account knows of others': how much of each it knows to have been paid.
type prefixes map[string]accounting.Charge

func (p prefixes) repriced(old, now DatasetTerms) prefixes {
	if len(p) == 0 {
		return p
	}
	out := make(prefixes, len(p))
	for account, c := range p {
		out[account] = repriced(c, old, now)
	}
	return out
}

// known is all that an account knows, its own charges among it.
func (b *book) known(of holderKey) prefixes {
	all := prefixes{}
	own := b.accounts[store.AccountKey{DS: of.ds, Scope: store.ScopeLife, Holder: of.user}].Spent
	for account, c := range b.brought[of] {
		all[account] = c
		own = own.Less(c)
	}
	if own != (accounting.Charge{}) {
		all[of.user] = own
	}
	return all
}

// learns is what an account would have to be charged for all that others know, and what it would know then of others.
func (b *book) learns(to holderKey, all prefixes) (more accounting.Charge, next prefixes) {
	next = maps.Clone(b.brought[to])
	for account, c := range all {
		had := next[account]
		longer := had.Longer(c)
		if account == to.user || longer == had {
			continue // what others know of its own charges is among them
		}
		if next == nil {
			next = prefixes{}
		}
		next[account] = longer
		more = more.Plus(longer.Less(had))
	}
	return more, next
}

// move is one account that comes to know what another one does.
type move struct{ from, to string }

// moves are who leaves and who joins when groups change, in one order.
func moves(old, now map[string]string) (leave, join []move) {
	users := slices.Sorted(maps.Keys(old))
	for _, user := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(users, maps.Keys(now))))) {
		was, is := old[user], now[user]
		if was == is {
			continue
		}
		if was != "" {
			leave = append(leave, move{was, user})
		}
		if is != "" {
			join = append(join, move{user, is})
		}
	}
	return leave, join
}

// regroup lets accounts know what their people know after a change of groups, and tells by ErrBound where one would
// know more than its limit.
func (b *book) regroup(ds int64, old, now map[string]string, at int64) error {
	leave, join := moves(old, now)
	for _, m := range leave {
		b.learn(ds, m, at)
	}
	for _, m := range join {
		key := store.AccountKey{DS: ds, Scope: store.ScopeLife, Holder: m.to}
		more := b.learn(ds, m, at)
		if a := b.accounts[key]; more != (accounting.Charge{}) && !a.Within() {
			return errBoundBy("%s cannot join group %s in dataset %s: what they have both been shown comes to %s, and the group's lifetime is %s",
				m.from, AccountName(m.to), b.sets[ds].id, b.sets[ds].shown(a.Filter), a.Limit)
		}
	}
	return nil
}

// learn charges an account for what another knows, hands it the releases, and returns the charge.
func (b *book) learn(ds int64, m move, at int64) accounting.Charge {
	to := holderKey{ds, m.to}
	more, next := b.learns(to, b.known(holderKey{ds, m.from}))
	if more != (accounting.Charge{}) {
		key := store.AccountKey{DS: ds, Scope: store.ScopeLife, Holder: m.to}
		b.accounts[key], b.brought[to] = b.account(key, at).Forfeited(more), next
		b.spend(ds, whole(more)) // a rollback that loses the change loses that
	}
	b.hand(ds, m)
	return more
}

// whole is a cost of which the charge is not more than what accounting.Price makes of it.
func whole(c accounting.Charge) privacy.Cost {
	e := c.Cost.Epsilon.Micro()
	for privacy.MicroEpsilon(e).Rho().Pico() < c.Converted.Pico() && e < 1<<60 {
		e += 1 + e/8
	}
	c.Cost.Epsilon = privacy.MicroEpsilon(e)
	return c.Cost
}

// hand gives an account the live releases that another holds, and those that are drawn and saved later on its charges
// until now.
func (b *book) hand(ds int64, m move) {
	for _, held := range b.held[holderKey{ds, m.from}] {
		b.handOne(holderKey{ds, m.to}, held)
	}
	for seq, o := range b.open {
		if o.ds == ds && o.of(m.from) && !o.of(m.to) {
			o.also = append(slices.Clip(o.also), m.to)
			b.open[seq] = o
		}
	}
}

// of reports whether an account was charged for what is being drawn.
func (o openCharge) of(account string) bool {
	return o.user == account || slices.Contains(o.also, account)
}

// handOne gives an account a release that another holds.
func (b *book) handOne(to holderKey, held Release) {
	if _, has := b.paid[paidKey{held.ID, to.user}]; has || held.Item.Spec.GoesOn() {
		return
	}
	rec := b.releases[held.ID]
	b.paid[paidKey{held.ID, to.user}] = struct{}{}
	if rec.holder != "" {
		held.Item.Ladder = Ladder{} // it is refined by whom it was drawn for
	}
	list := b.held[to]
	b.held[to] = append(list[:len(list):len(list)], held)
	b.outgrow(to, rec)
}

// handLate gives a release that was saved just now to the accounts that were charged for it meanwhile: without it who
// asked for it, and left her group before it was drawn, would not be answered (privacy rule 5).
func (b *book) handLate(o openCharge, id int64) {
	if len(o.also) == 0 {
		return
	}
	for _, held := range b.held[holderKey{o.ds, o.user}] {
		for _, account := range o.also {
			if held.ID == id {
				b.handOne(holderKey{o.ds, account}, held)
			}
		}
	}
}

// note adds a charge to what a member of a group has caused.
func (b *book) note(account holderKey, by string, c accounting.Charge) {
	if by == "" {
		return
	}
	if b.caused[account] == nil {
		b.caused[account] = map[string]accounting.Charge{}
	}
	b.caused[account][by] = b.caused[account][by].Plus(c)
}

// members are what those who are in a group have spent of its budget, and those who were.
func (b *book) members(account holderKey) (list []Share) {
	if !isGroup(account.user) {
		return nil
	}
	set := b.sets[account.ds]
	caused := b.caused[account]
	users := slices.Collect(maps.Keys(caused))
	for user, group := range set.groups {
		if group == account.user {
			users = append(users, user)
		}
	}
	slices.Sort(users)
	for _, user := range slices.Compact(users) {
		list = append(list, Share{user, set.shown(accounting.Filter{Spent: caused[user]})})
	}
	return list
}

func writeGroups(e *chain.Encoder, groups map[string][]string) {
	e.Int(int64(len(groups)))
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		e.Text(group)
		writeRelations(e, groups[group])
	}
}

func readGroups(d *chain.Decoder) map[string][]string {
	groups := map[string][]string{}
	for range d.Count() {
		group := d.Text()
		groups[group] = readRelations(d)
	}
	return groups
}

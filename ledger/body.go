package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// chargeBody is what a charge row says besides dataset and user.
type chargeBody struct {
	statement, policy Digest
	digest            Digest
	kind, name, table string
	cost              privacy.Cost
	capped            bool  // a draw follows: the cap pays too
	joins             int64 // the saved shared release that the user pays her share of; 0 means a draw follows
	ladder            Ladder
	pool              privacy.Cost // what the cap pays, if it does
	by                string       // of a group: the member who asked; empty means whose account it is
}

func (c *chargeBody) encode() []byte {
	e := chain.Body()
	e.Digest(c.statement)
	e.Digest(c.policy)
	e.Digest(c.digest)
	e.Text(c.kind)
	e.Text(c.name)
	e.Text(c.table)
	e.Cost(c.cost)
	e.Bool(c.capped)
	e.Int(c.joins)
	writeLadder(&e, c.ladder)
	e.Cost(c.pool)
	if c.by != "" { // left out else, as rows were before there were groups
		e.Text(c.by)
	}
	return e.Bytes()
}

// paid returns what the cap pays, or a user's account.
func (c *chargeBody) paid(byCap bool) privacy.Cost {
	if byCap {
		return c.pool
	}
	return c.cost
}

func decodeCharge(b []byte) (c chargeBody, err error) {
	d := chain.Read(b)
	c.statement, c.policy, c.digest = d.Digest(), d.Digest(), d.Digest()
	c.kind, c.name, c.table = d.Text(), d.Text(), d.Text()
	c.cost, c.capped, c.joins = d.Cost(), d.Bool(), d.Int()
	c.ladder, c.pool = readLadder(&d), d.Cost()
	if d.More() {
		if c.by = d.Text(); c.by == "" {
			return c, chain.ErrMalformed
		}
	}
	return c, d.End()
}

// saveBody is what a save row says: the release without its observations, of which it has the hash.
type saveBody struct {
	charge int64
	at     int64 // of the charge: no row of the private database that is younger was left out
	key    store.Key
	noisy  Digest // SHA-256 of the stored observations
	item   Item
	family Digest // of a draw for several levels: which
	of     int64  // the release on whose save this one was saved with it; 0 means its own
}

func (s *saveBody) encode() []byte {
	e := chain.Body()
	e.Int(s.charge)
	e.Int(s.at)
	e.Digest(Digest(s.key))
	e.Digest(s.noisy)
	e.Digest(s.item.Digest)
	e.Text(s.item.Kind)
	e.Text(s.item.Name)
	e.Text(s.item.Table)
	e.Bool(s.item.Shared)
	e.Cost(s.item.Cost)
	e.Spec(s.item.Spec)
	e.Blob(s.item.Described)
	e.Int(int64(s.item.Refresh))
	e.Int(s.item.AsOf)
	writeLadder(&e, s.item.Ladder)
	e.Digest(s.family)
	e.Int(s.of)
	return e.Bytes()
}

func decodeSave(b []byte) (s saveBody, err error) {
	d := chain.Read(b)
	s.charge, s.at, s.key, s.noisy = d.Int(), d.Int(), store.Key(d.Digest()), d.Digest()
	s.item = Item{Digest: d.Digest(), Kind: d.Text(), Name: d.Text(), Table: d.Text(), Shared: d.Bool(), Cost: d.Cost(), Spec: d.Spec(),
		Described: d.Blob(), Refresh: time.Duration(d.Int()), AsOf: d.Int(), Ladder: readLadder(&d)}
	s.family, s.of = d.Digest(), d.Int()
	return s, d.End()
}

// encodeTerms gives equal terms equal bytes, whatever the order of maps and lists. RenamedFrom and the policy's digest
// have rows of their own.
func encodeTerms(t DatasetTerms) []byte {
	e := chain.Body()
	e.Text(t.ID)
	e.Int(int64(t.Accountant))
	e.Int(int64(t.Neighbors))
	e.Text(t.Unit)
	writeRelations(&e, t.Relations)
	e.Cost(t.Cap)
	e.Int(int64(len(t.Budgets)))
	for _, user := range slices.Sorted(maps.Keys(t.Budgets)) {
		b := t.Budgets[user]
		e.Text(user)
		e.Cost(b.Limit)
		e.Int(int64(b.Refresh))
		e.Cost(b.Lifetime)
	}
	if len(t.Groups)+len(t.Paths) > 0 { // left out else, as rows were before there were groups
		writeGroups(&e, t.Groups)
	}
	if len(t.Paths) > 0 { // and before there were these
		writePaths(&e, t.Paths)
	}
	return e.Bytes()
}

func decodeTerms(b []byte) (t DatasetTerms, err error) {
	d := chain.Read(b)
	t.ID = d.Text()
	t.Accountant, t.Neighbors = privacy.Accountant(d.Small()), privacy.Neighbors(d.Small())
	t.Unit = d.Text()
	t.Relations = readRelations(&d)
	t.Cap = d.Cost()
	n := d.Count()
	t.Budgets = make(map[string]BudgetTerms, n)
	for range n {
		user := d.Text()
		t.Budgets[user] = BudgetTerms{Limit: d.Cost(), Refresh: time.Duration(d.Int()), Lifetime: d.Cost()}
	}
	if d.More() {
		t.Groups = readGroups(&d)
		if d.More() {
			t.Paths = readPaths(&d)
		}
		if len(t.Groups)+len(t.Paths) == 0 {
			return t, chain.ErrMalformed
		}
	}
	return t, d.End()
}

func writePaths(e *chain.Encoder, paths map[string]string) {
	e.Int(int64(len(paths)))
	for _, relation := range slices.Sorted(maps.Keys(paths)) {
		e.Text(relation)
		e.Text(paths[relation])
	}
}

func readPaths(d *chain.Decoder) map[string]string {
	paths := map[string]string{}
	for range d.Count() {
		relation := d.Text()
		paths[relation] = d.Text()
	}
	return paths
}

func encodeRelations(relations []string) []byte {
	e := chain.Body()
	writeRelations(&e, relations)
	return e.Bytes()
}

func writeRelations(e *chain.Encoder, relations []string) {
	sorted := slices.Compact(slices.Sorted(slices.Values(relations)))
	e.Int(int64(len(sorted)))
	for _, r := range sorted {
		e.Text(r)
	}
}

func readRelations(d *chain.Decoder) []string {
	out := make([]string, d.Count())
	for i := range out {
		out[i] = d.Text()
	}
	return out
}

func writeLadder(e *chain.Encoder, l Ladder) {
	e.Int(l.Finest.Micro())
	e.Int(l.Level.Micro())
	e.Int(l.From)
}

func readLadder(d *chain.Decoder) Ladder {
	return Ladder{privacy.MicroEpsilon(d.Int()), privacy.MicroEpsilon(d.Int()), d.Int()}
}

package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// chargeBody is what a charge row says besides dataset and user.
type chargeBody struct {
	statement, policy Digest
	digest            Digest
	kind, name, table string
	cost              privacy.Cost
	capped            bool  // a draw follows: the cap pays too
	joins             int64 // the saved shared release that the user pays her share of; 0: a draw follows
	ladder            Ladder
	pool              privacy.Cost // what the cap pays, if it does
}

func (c *chargeBody) encode() []byte {
	e := written()
	e.digest(c.statement)
	e.digest(c.policy)
	e.digest(c.digest)
	e.str(c.kind)
	e.str(c.name)
	e.str(c.table)
	e.cost(c.cost)
	e.boolean(c.capped)
	e.i64(c.joins)
	e.ladder(c.ladder)
	e.cost(c.pool)
	return e.b
}

func decodeCharge(b []byte) (c chargeBody, err error) {
	d := kept(b)
	c.statement, c.policy, c.digest = d.digest(), d.digest(), d.digest()
	c.kind, c.name, c.table = d.str(), d.str(), d.str()
	c.cost, c.capped, c.joins = d.cost(), d.boolean(), d.i64()
	c.ladder, c.pool = d.ladder(), d.cost()
	return c, d.end()
}

// saveBody is what a save row says: the release without its observations, of which it has the hash.
type saveBody struct {
	charge int64
	at     int64 // of the charge: no row of the private database that is younger was left out
	key    flightKey
	noisy  Digest // SHA-256 of the stored observations
	item   Item
	family Digest // of a draw for several levels: which
	of     int64  // the release on whose save this one was saved with it; 0: its own
}

func (s *saveBody) encode() []byte {
	e := written()
	e.i64(s.charge)
	e.i64(s.at)
	e.digest(Digest(s.key))
	e.digest(s.noisy)
	e.digest(s.item.Digest)
	e.str(s.item.Kind)
	e.str(s.item.Name)
	e.str(s.item.Table)
	e.boolean(s.item.Shared)
	e.cost(s.item.Cost)
	e.spec(s.item.Spec)
	e.bytes(s.item.Described)
	e.i64(int64(s.item.Refresh))
	e.ladder(s.item.Ladder)
	e.digest(s.family)
	e.i64(s.of)
	return e.b
}

func decodeSave(b []byte) (s saveBody, err error) {
	d := kept(b)
	s.charge, s.at, s.key, s.noisy = d.i64(), d.i64(), flightKey(d.digest()), d.digest()
	s.item = Item{Digest: d.digest(), Kind: d.str(), Name: d.str(), Table: d.str(), Shared: d.boolean(), Cost: d.cost(), Spec: d.spec(),
		Described: d.bytes(), Refresh: time.Duration(d.i64()), Ladder: d.ladder()}
	s.family, s.of = d.digest(), d.i64()
	return s, d.end()
}

// encodeTerms gives equal terms equal bytes, whatever the order of maps and lists. RenamedFrom and the policy's digest
// have rows of their own.
func encodeTerms(t DatasetTerms) []byte {
	e := written()
	e.str(t.ID)
	e.i64(int64(t.Accountant))
	e.i64(int64(t.Neighbors))
	e.str(t.Unit)
	e.relations(t.Relations)
	e.cost(t.Cap)
	e.i64(int64(len(t.Budgets)))
	for _, user := range slices.Sorted(maps.Keys(t.Budgets)) {
		b := t.Budgets[user]
		e.str(user)
		e.cost(b.Limit)
		e.i64(int64(b.Refresh))
		e.cost(b.Lifetime)
	}
	return e.b
}

func decodeTerms(b []byte) (t DatasetTerms, err error) {
	d := kept(b)
	t.ID = d.str()
	t.Accountant, t.Neighbors = privacy.Accountant(d.i64()), privacy.Neighbors(d.i64())
	t.Unit = d.str()
	t.Relations = d.relations()
	t.Cap = d.cost()
	n := d.count()
	t.Budgets = make(map[string]BudgetTerms, n)
	for range n {
		user := d.str()
		t.Budgets[user] = BudgetTerms{Limit: d.cost(), Refresh: time.Duration(d.i64()), Lifetime: d.cost()}
	}
	return t, d.end()
}

func encodeRelations(relations []string) []byte {
	e := written()
	e.relations(relations)
	return e.b
}

func (e *encoder) relations(relations []string) {
	sorted := slices.Compact(slices.Sorted(slices.Values(relations)))
	e.i64(int64(len(sorted)))
	for _, r := range sorted {
		e.str(r)
	}
}

func (d *decoder) relations() []string {
	out := make([]string, d.count())
	for i := range out {
		out[i] = d.str()
	}
	return out
}

func (e *encoder) ladder(l Ladder) {
	e.i64(l.Finest.Micro())
	e.i64(l.Level.Micro())
	e.i64(l.From)
}

func (d *decoder) ladder() Ladder {
	return Ladder{privacy.MicroEpsilon(d.i64()), privacy.MicroEpsilon(d.i64()), d.i64()}
}

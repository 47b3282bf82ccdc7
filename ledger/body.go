package ledger

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
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
	var e encoder
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
	e.pool(c.pool, c.cost)
	return e.b
}

func decodeCharge(b []byte) (c chargeBody, err error) {
	d := decoder{b: b}
	c.statement, c.policy, c.digest = d.digest(), d.digest(), d.digest()
	c.kind, c.name, c.table = d.str(), d.str(), d.str()
	c.cost, c.capped, c.joins = d.cost(), d.boolean(), d.i64()
	if c.ladder, c.pool = d.ladder(), c.cost; d.marked(bodyPool) {
		c.pool = d.cost()
	}
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
	var e encoder
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
	e.family(s.family, s.of)
	return e.b
}

func decodeSave(b []byte) (s saveBody, err error) {
	d := decoder{b: b}
	s.charge, s.at, s.key, s.noisy = d.i64(), d.i64(), flightKey(d.digest()), d.digest()
	s.item = Item{Digest: d.digest(), Kind: d.str(), Name: d.str(), Table: d.str(), Shared: d.boolean(), Cost: d.cost(), Spec: d.spec(),
		Described: d.bytes(), Refresh: time.Duration(d.i64()), Ladder: d.ladder()}
	if d.marked(bodyFamily) {
		s.family, s.of = d.digest(), d.i64()
	}
	return s, d.end()
}

// encodeTerms gives equal terms equal bytes, whatever the order of maps and lists. RenamedFrom and the policy's digest
// have rows of their own.
func encodeTerms(t DatasetTerms) []byte {
	var e encoder
	e.str(t.ID)
	e.i64(int64(t.Accountant))
	e.i64(int64(t.Neighbors))
	e.str(t.Unit)
	e.b = append(e.b, encodeRelations(t.Relations)...)
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
	d := decoder{b: b}
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
	sorted := slices.Compact(slices.Sorted(slices.Values(relations)))
	var e encoder
	e.i64(int64(len(sorted)))
	for _, r := range sorted {
		e.str(r)
	}
	return e.b
}

func (d *decoder) relations() []string {
	out := make([]string, d.count())
	for i := range out {
		out[i] = d.str()
	}
	return out
}

// encodeNoisy and decodeNoisy store observations as zigzag varints, and after them the keys.
func encodeNoisy(n mechanisms.Noisy) []byte {
	b := make([]byte, 0, 2*len(n.Observations)+8)
	b = binary.AppendUvarint(b, uint64(len(n.Observations)))
	for _, v := range n.Observations {
		b = binary.AppendVarint(b, v)
	}
	for _, k := range n.Keys {
		b = append(binary.AppendUvarint(b, uint64(len(k))), k...)
	}
	return b
}

func decodeNoisy(b []byte) (mechanisms.Noisy, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)-n) {
		return mechanisms.Noisy{}, errBody
	}
	b = b[n:]
	out := make([]int64, count)
	for i := range out {
		if out[i], n = binary.Varint(b); n <= 0 {
			return mechanisms.Noisy{}, errBody
		}
		b = b[n:]
	}
	if len(b) == 0 {
		return mechanisms.Noisy{Observations: out}, nil
	}
	keys := make([]string, count) // none, or one for each observation
	for i := range keys {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return mechanisms.Noisy{}, errBody
		}
		keys[i], b = string(b[n:n+int(size)]), b[n+int(size):]
	}
	if len(b) != 0 {
		return mechanisms.Noisy{}, errBody
	}
	return mechanisms.Noisy{Observations: out, Keys: keys}, nil
}

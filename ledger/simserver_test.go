package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	random "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// simServer is a database server that several proxies keep one ledger on, as far as the ledger can tell: transactions
// that wait for each other's heads, of which a lost connection or a restart leaves nothing, and commits of which nobody
// hears.
type simServer struct {
	mu    sync.Mutex // never held by anybody who waits for time
	seed  uint64
	state simState
	since []simState          // the states since the last flush, that one first: a restart leaves one of them
	lost  int                 // commits that restarts have taken back
	held  map[int64]*simStore // who has a chain's head
	queue map[int64][]simTurn // and who waits for it
	bad   float64             // the chance that a turn to the server and back fails
	epoch int                 // restarts
	cuts  int                 // commits whose answer was lost, done or not
}

// simTurn is one who waits for a head.
type simTurn struct {
	by  *simStore
	has chan struct{} // closed when it is hers
}

type simState struct {
	rows     []chain.Row
	heads    map[int64]chain.Head
	numbers  int64
	accounts map[store.AccountKey]store.Account
	releases map[int64]store.Release
	claims   map[store.Key]simClaim
	fence    int64
	requests map[Digest]bool
}

type simClaim struct {
	owner *simSite
	fence int64
}

func newSimServer(seed uint64) *simServer {
	return &simServer{seed: seed, held: map[int64]*simStore{}, queue: map[int64][]simTurn{}, state: simState{heads: map[int64]chain.Head{}, accounts: map[store.AccountKey]store.Account{},
		releases: map[int64]store.Release{}, claims: map[store.Key]simClaim{}, requests: map[Digest]bool{}}}
}

// restart loses all connections, and of what was not flushed yet what came after some commit.
func (v *simServer) restart(rng *random.Rand) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.epoch++
	if n := len(v.since); n > 0 {
		left := rng.IntN(n)
		v.state, v.lost = v.since[left], v.lost+n-1-left
	}
	v.flush()
}

// flush makes all that was committed durable. The server's mutex is held.
func (v *simServer) flush() { v.since = []simState{v.state} }

// early reports whether something is committed that is not flushed.
func (v *simServer) early() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.since) > 1
}

// durable tells something of what no restart takes back.
func (v *simServer) durable(is func(simState) bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.since) > 0 && is(v.since[0])
}

func (s simState) clone() simState {
	s.rows = s.rows[:len(s.rows):len(s.rows)]
	s.heads = maps.Clone(s.heads)
	s.accounts, s.releases, s.claims, s.requests = maps.Clone(s.accounts), maps.Clone(s.releases), maps.Clone(s.claims), maps.Clone(s.requests)
	return s
}

// simSite is the server as one process has it.
type simSite struct {
	server *simServer
	number int // among all starts
	links  int // connections for writing so far; guarded by the server's mutex, as is
	dead   bool
	mark   string
}

func (p *simSite) Shared() bool            { return true }
func (p *simSite) Locks() []string         { return nil }
func (p *simSite) Witness() string         { return p.mark }
func (p *simSite) Clock() time.Time        { return time.Now() }
func (p *simSite) Probe(int) error         { return nil }
func (p *simSite) Explain(err error) error { return err }

func (p *simSite) kill() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.dead = true
}

func (p *simSite) isDead() bool {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return p.dead
}

func (p *simSite) Open(_ context.Context, writes bool) (store.Store, error) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if p.dead {
		return nil, errLost
	}
	s := &simStore{site: p, epoch: p.server.epoch}
	if writes {
		p.links++
		s.rng = random.New(random.NewPCG(p.server.seed, uint64(p.number)<<32|uint64(p.links)))
	}
	return s, nil
}

var errLost = errors.New("the connection is lost")

// simStore is one connection.
type simStore struct {
	site   *simSite
	rng    *random.Rand // its own, since of two connections that act at one moment either may be first
	epoch  int
	lost   bool
	tx     *simState // of the transaction under way, as it sees it
	did    []func(*simState)
	saved  *simState // its savepoint
	kept   int       // what it had done by then
	name   Digest
	fence  int64
	closed bool

	presumes, refuted bool // of the batch under way

	stand     []chain.Head // where it presumes the chains to end, chain 0 first; nil means it has asked
	next, end int64        // numbers that no batch has had
	told      time.Time
}

// turn is a message to the server and back. Its time passes before the server acts; then the connection may be lost.
func (s *simStore) turn() error {
	v := s.site.server
	time.Sleep(time.Duration(1 + s.rng.Int64N(2e6)))
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.site.dead || s.epoch != v.epoch || s.rng.Float64() < v.bad {
		s.drop()
	}
	return s.alive()
}

func (s *simStore) alive() error {
	if s.lost || s.closed {
		return errLost
	}
	return nil
}

// drop loses the connection, and with it what is not committed. The server's mutex is held.
func (s *simStore) drop() {
	s.lost = true
	s.finish()
}

// finish ends the transaction under way, if there is one, and gives its heads to those who wait. The server's mutex is
// held.
func (s *simStore) finish() {
	s.tx, s.did = nil, nil
	v := s.site.server
	for _, chain := range slices.Sorted(maps.Keys(v.held)) {
		if v.held[chain] != s {
			continue
		}
		delete(v.held, chain)
		if list := v.queue[chain]; len(list) > 0 {
			v.held[chain], v.queue[chain] = list[0].by, list[1:]
			close(list[0].has)
		}
	}
}

// on does something to the state that this connection sees.
func (s *simStore) on(do func(*simState)) error {
	v := s.site.server
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.site.dead || s.epoch != v.epoch {
		s.drop()
	}
	if err := s.alive(); err != nil {
		return err
	}
	if s.tx != nil {
		s.did = append(s.did, do)
		do(s.tx)
	} else {
		do(&v.state)
	}
	return nil
}

func (s *simStore) Empty() (none bool, err error) {
	err = s.on(func(x *simState) { none = len(x.rows) == 0 })
	return none, err
}

func (s *simStore) Create(first chain.Row) error {
	return s.on(func(x *simState) {
		if len(x.rows) == 0 {
			x.rows = append(x.rows, first)
			x.heads[0] = chain.Head{Seq: first.Seq, Hash: first.Hash}
			s.site.server.flush()
		}
	})
}

func (s *simStore) Begin(known []chain.Head, want store.Wanted) (b store.Begun, err error) {
	rand.Read(s.name[:])
	s.presumes, s.refuted, s.stand = false, false, nil
	if err := s.turn(); err != nil {
		return b, err
	}
	v := s.site.server
	v.mu.Lock()
	defer v.mu.Unlock()
	lost := func() bool {
		if s.site.dead || s.epoch != v.epoch || s.closed {
			s.drop()
		}
		return s.lost
	}
	wait := func(chain int64) {
		switch {
		case lost() || v.held[chain] == s:
			return
		case v.held[chain] == nil:
			v.held[chain] = s
			return
		}
		turn := simTurn{s, make(chan struct{})}
		v.queue[chain] = append(v.queue[chain], turn)
		v.mu.Unlock()
		<-turn.has
		time.Sleep(time.Duration(1 + s.rng.Int64N(1e5))) // of two whose turn it is at one moment one goes first
		v.mu.Lock()
	}
	switch {
	case want.Chains == nil:
		wait(0)
		for _, chain := range slices.Sorted(maps.Keys(v.state.heads)) {
			wait(chain)
		}
	case want.Wait:
		wait(want.Chains[0])
	}
	some := func() {
		for _, chain := range want.Chains {
			if by := v.held[chain]; by == nil || by == s {
				v.held[chain] = s
				b.Chains = append(b.Chains, chain)
			}
		}
	}
	if some(); len(b.Chains) == 0 && want.Chains != nil {
		wait(want.Chains[0])
		some()
	}
	if lost() {
		return b, errLost
	}
	if want.Chains == nil {
		b.Chains = slices.Sorted(maps.Keys(v.state.heads))
	}
	v.state.numbers += store.Block // sequences are no part of transactions
	v.state.fence++
	s.fence = v.state.fence
	b.First, b.Numbers, b.News = v.state.numbers, store.Block, v.state.news(known)
	if b.News != nil && want.Chains != nil && !want.Look && slices.ContainsFunc(b.News.Heads, known[0].Ends) {
		partOf(b.News, want.Chains)
	}
	s.next, s.end, s.told = b.First, b.First+store.Block, time.Now()
	state := v.state.clone()
	s.tx, s.did = &state, nil
	return b, nil
}

func (s *simStore) BeginPresuming(all chain.Head, chains []chain.Head, within time.Duration) (b store.Begun, ok bool) {
	least := all.Seq
	for _, h := range chains {
		b.Chains, least = append(b.Chains, h.Chain), max(least, h.Seq)
	}
	if time.Since(s.told) > within || s.next <= least || s.alive() != nil {
		return store.Begun{}, false
	}
	rand.Read(s.name[:])
	s.presumes, s.refuted, s.stand = true, false, append([]chain.Head{all}, chains...)
	b.First, b.Numbers, s.fence = s.next, s.end-s.next, -s.next
	s.next++
	v := s.site.server
	v.mu.Lock()
	defer v.mu.Unlock()
	state := v.state.clone()
	s.tx, s.did = &state, nil
	return b, true
}

// stands reports whether the chains end where the batch has presumed, and nobody has or waits for one. The server's
// mutex is held.
func (s *simStore) stands() bool {
	v := s.site.server
	for i, h := range s.stand {
		if !h.Ends(v.state.heads[h.Chain]) || i > 0 && (v.held[h.Chain] != nil || len(v.queue[h.Chain]) > 0) {
			return false
		}
	}
	return true
}

func (x *simState) news(known []chain.Head) *store.News {
	same := len(known) == len(x.heads)
	ends := map[int64]chain.Head{}
	for _, k := range known {
		ends[k.Chain] = k
		same = same && k.Ends(x.heads[k.Chain])
	}
	if same {
		return nil
	}
	n := store.News{}
	for _, h := range x.heads {
		n.Heads = append(n.Heads, h)
	}
	for _, r := range x.rows {
		if k := ends[r.Chain]; r.Seq >= k.Seq && !k.Ends(x.heads[r.Chain]) {
			n.Rows = append(n.Rows, r)
		}
	}
	slices.SortFunc(n.Rows, func(a, b chain.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	return &n
}

// partOf leaves of news those of chain 0 and of some others.
func partOf(n *store.News, chains []int64) {
	n.Part = true
	n.Heads = slices.DeleteFunc(n.Heads, func(h chain.Head) bool { return h.Chain != 0 && !slices.Contains(chains, h.Chain) })
	n.Rows = slices.DeleteFunc(n.Rows, func(r chain.Row) bool { return r.Chain != 0 && !slices.Contains(chains, r.Chain) })
}

// asked is the answer to what a batch that presumes takes for granted.
func (s *simStore) asked(yes bool) bool {
	s.refuted = s.refuted || s.presumes && !yes
	return yes || s.presumes
}

func (s *simStore) Savepoint() error {
	s.kept = len(s.did)
	return s.on(func(x *simState) { state := x.clone(); s.saved = &state })
}

func (s *simStore) Keep() error { return s.on(func(*simState) { s.saved = nil }) }

func (s *simStore) Undo() error {
	err := s.on(func(x *simState) { *x, s.saved = *s.saved, nil })
	s.did = s.did[:min(s.kept, len(s.did))]
	return err
}

func (s *simStore) Rollback() error {
	v := s.site.server
	v.mu.Lock()
	defer v.mu.Unlock()
	stands := s.stands()
	s.finish()
	if !stands {
		return cmp.Or(s.alive(), store.ErrMoved)
	}
	if err := s.alive(); err != nil || !s.refuted {
		return err
	}
	return store.ErrPresumed
}

// commit may be lost on its way to the server, before it is durable, or its answer on the way back.
func (s *simStore) Commit(moved []chain.Head, early bool) error {
	unknown := func(err error) error {
		v := s.site.server
		v.mu.Lock()
		defer v.mu.Unlock()
		v.cuts++
		return store.UnknownCommit{Request: s.name, Cause: err}
	}
	if err := s.turn(); err != nil {
		return unknown(err)
	}
	v := s.site.server
	v.mu.Lock()
	if moves := !s.stands(); moves || s.refuted {
		v.mu.Unlock()
		err := s.Rollback()
		if moves && err == nil {
			err = store.ErrMoved
		}
		return err
	}
	for _, h := range moved {
		s.next = max(s.next, h.Seq+1)
	}
	state := v.state.clone()
	for _, do := range s.did { // beside what others have committed in the chains that it does not hold
		do(&state)
	}
	for _, h := range moved {
		state.heads[h.Chain] = h
	}
	state.requests[s.name] = true
	v.state = state
	if v.since = append(v.since, state); !early {
		v.flush()
	}
	s.finish()
	lost := s.rng.Float64() < v.bad
	if lost {
		s.lost = true
	}
	v.mu.Unlock()
	if lost {
		return unknown(errLost)
	}
	if early {
		if err := s.Settle(); err != nil {
			return unknown(err)
		}
	}
	return nil
}

// Settle takes a while, in which the server may restart; the connection may be lost before it or after.
func (s *simStore) Settle() error {
	if err := s.turn(); err != nil {
		return err
	}
	err := s.on(func(*simState) { s.site.server.flush() })
	return errors.Join(err, s.turn())
}

func (s *simStore) Presume()        { s.presumes = true }
func (s *simStore) Tidy() error     { return nil }
func (s *simStore) Finish() error   { return nil }
func (s *simStore) Snapshot() error { return nil }
func (s *simStore) Sound() error    { return nil }

func (s *simStore) Insert(r chain.Row) error {
	return s.on(func(x *simState) { x.rows = append(x.rows, r) })
}

func (s *simStore) Charge(now int64, moves []store.Move) (refused int, err error) {
	refused = -1
	err = s.on(func(x *simState) {
		for i, m := range moves {
			a, ok := x.accounts[m.Key]
			if !ok && m.Fresh != nil {
				a = *m.Fresh
			}
			if a, ok = a.Rolled(now, m.Ends).Charged(m.Charge); !ok {
				refused = i
				return
			}
			x.accounts[m.Key] = a
		}
	})
	if s.asked(refused < 0) {
		return -1, err
	}
	return refused, err
}

func (s *simStore) OpenAccount(key store.AccountKey, a store.Account) error {
	return s.on(func(x *simState) { x.accounts[key] = a })
}

func (s *simStore) ClearAccounts() error { return s.on(func(x *simState) { clear(x.accounts) }) }

func (s *simStore) KeepRelease(r store.Release) (err error) {
	fault := s.on(func(x *simState) {
		for _, old := range x.releases {
			if old.Charge == r.Charge || !old.Withdrawn && !r.Withdrawn && slices.Equal(old.Key, r.Key) {
				err = errors.New("a second release on one charge or of one key")
			}
		}
		x.releases[r.ID] = r
	})
	return errors.Join(fault, err)
}

func (s *simStore) WithdrawRelease(id int64) error {
	return s.on(func(x *simState) {
		r := x.releases[id]
		r.Withdrawn, r.Key = true, nil
		x.releases[id] = r
	})
}

func (s *simStore) Rows(_ context.Context, do func(chain.Row) error) error {
	var list []chain.Row
	err := s.on(func(x *simState) { list = slices.Clone(x.rows) })
	slices.SortFunc(list, func(a, b chain.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range list {
		if err == nil {
			err = do(r)
		}
	}
	return err
}

func (s *simStore) Accounts() (all map[store.AccountKey]store.Account, err error) {
	err = s.on(func(x *simState) { all = maps.Clone(x.accounts) })
	return all, err
}

func (s *simStore) Releases(do func(store.Release) error) error {
	var list []store.Release
	err := s.on(func(x *simState) { list = slices.Collect(maps.Values(x.releases)) })
	slices.SortFunc(list, func(a, b store.Release) int { return int(a.ID - b.ID) })
	for _, r := range list {
		if err == nil {
			err = do(r)
		}
	}
	return err
}

func (s *simStore) Body(seq int64) (p []byte, err error) {
	err = s.on(func(x *simState) {
		for _, r := range x.rows {
			if r.Seq == seq {
				p = r.Body
			}
		}
	})
	return p, err
}

func (s *simStore) Noisy(id int64) (p []byte, err error) {
	err = s.on(func(x *simState) { p = x.releases[id].Noisy })
	return p, err
}

func (s *simStore) Charges(ds int64, user string, upTo, limit int64, do func(chain.Row) error) error {
	var list []chain.Row
	err := s.on(func(x *simState) { list = slices.Clone(x.rows) })
	for _, r := range slices.Backward(list) {
		if err == nil && r.Seq <= upTo && r.Kind == chain.RowCharge && r.DS == ds && (user == "" || r.Holder == user) && limit > 0 {
			limit--
			err = do(r)
		}
	}
	return err
}

func (s *simStore) Close() error {
	v := s.site.server
	v.mu.Lock()
	defer v.mu.Unlock()
	s.drop()
	s.closed = true
	return nil
}

func (s *simStore) Ends() (list []chain.Head, err error) {
	err = s.on(func(x *simState) { list = slices.Collect(maps.Values(x.heads)) })
	return list, err
}

func (s *simStore) News(known []chain.Head) (n *store.News, err error) {
	err = s.on(func(x *simState) { n = x.news(known) })
	return n, errors.Join(err, s.Settle())
}

func (s *simStore) Wrote(request Digest) (there bool, err error) {
	err = s.on(func(x *simState) { there = x.requests[request] })
	return there, err
}

func (s *simStore) Claim(key store.Key) (fence int64, err error) {
	err = s.on(func(x *simState) {
		if c, ok := x.claims[key]; ok && c.owner != s.site && !c.owner.dead {
			return
		}
		fence = s.fence
		x.claims[key] = simClaim{s.site, fence}
	})
	if fence == 0 && err == nil && s.asked(false) {
		fence = s.fence
	}
	return fence, err
}

func (s *simStore) Holds(key store.Key, fence int64) (mine bool, err error) {
	err = s.on(func(x *simState) { mine = s.asked(x.claims[key] == simClaim{s.site, fence}) })
	return mine, err
}

func (s *simStore) Yield(key store.Key, fence int64) error {
	return s.on(func(x *simState) {
		if x.claims[key] == (simClaim{s.site, fence}) {
			delete(x.claims, key)
		}
	})
}

func (s *simStore) Others() (int, error) { return 0, s.on(func(*simState) {}) }

package whole

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
)

// stream is the chance of what begins now with a name and a measure. Sessions that one commit has answered go on at one
// moment, and either may be first: what is drawn must not depend on that, so they have no stream in common.
func stream(seed uint64, name string, digest ledger.Digest) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	h.Write(digest[:])
	return rand.New(rand.NewPCG(seed^h.Sum64(), uint64(time.Now().UnixNano())))
}

// pause lets a moment pass that nobody else shares.
func pause(rng *rand.Rand, most time.Duration) {
	time.Sleep(time.Duration(1 + rng.Int64N(int64(most))))
}

// paced is the ledger as sessions have it: what waited for one thing, or failed at one moment, tries again at moments
// of its own.
type paced struct {
	ledger.Ledger
	seed    uint64
	mu      sync.Mutex
	streams map[*ledger.Receipt]*rand.Rand
}

func newPaced(l ledger.Ledger, seed uint64) *paced {
	return &paced{Ledger: l, seed: seed, streams: map[*ledger.Receipt]*rand.Rand{}}
}

// ownTime is the context of a charge, which looks at it before it first tries and before it tries again.
type ownTime struct {
	context.Context
	rng *rand.Rand
}

func (o ownTime) Err() error {
	pause(o.rng, time.Millisecond)
	return o.Context.Err()
}

func (l *paced) Charge(ctx context.Context, r ledger.Request) ([]ledger.Outcome, error) {
	rng := stream(l.seed, r.User, r.Items[0].Digest)
	out, err := l.Ledger.Charge(ownTime{ctx, rng}, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range out {
		l.streams[o.Receipt] = rng
	}
	return out, err
}

func (l *paced) Save(ctx context.Context, r *ledger.Receipt, drawn mechanisms.Drawn) (int64, error) {
	l.mu.Lock()
	rng := l.streams[r]
	l.mu.Unlock()
	pause(rng, time.Millisecond)
	return l.Ledger.Save(ctx, r, drawn)
}

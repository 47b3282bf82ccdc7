package audits

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// The recorder is around the interfaces of a real pipeline and writes down what passes: charges, the SQL that the
// private database is sent, what is drawn and saved, and how many random bytes that took. The randomness is the same on
// all sides, so that the difference of two sides' releases is the difference of their true counts: noise cancels.

// step is one thing that a statement did.
type step struct {
	what         string      // all of it that must be the same on neighbours
	item         ledger.Item // of a release that was saved
	observations []int64
	keys         []string
}

// recorder is what one side did for the statement that it answers.
type recorder struct {
	mu    sync.Mutex
	steps []step
	items map[*ledger.Receipt]ledger.Item
	bytes int
	seed  *rand.ChaCha8
}

// begin forgets the last statement; number gives the next its randomness.
func (r *recorder) begin(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps, r.bytes, r.items = nil, 0, map[*ledger.Receipt]ledger.Item{}
	seed := [32]byte{byte(number), byte(number >> 8), byte(number >> 16), 1}
	r.seed = rand.NewChaCha8(seed)
}

func (r *recorder) add(s step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

// ordered are the steps with the queries of each charge right after it, sorted: a statement's run side by side
// (pipeline/admit.go), so that which of them begins first, and whether a release is saved before another's query
// begins, is chance. Saves have an order of their own.
func (r *recorder) ordered() (list []step) {
	rank := func(s step) int {
		switch {
		case strings.HasPrefix(s.what, "charge"):
			return 0
		case strings.HasPrefix(s.what, "run "):
			return 1
		}
		return 2
	}
	for rest := r.steps; len(rest) > 0; {
		end := 1
		for end < len(rest) && (!strings.HasPrefix(rest[end].what, "charge ") || strings.HasPrefix(rest[end-1].what, "charge ")) {
			end++
		}
		part := slices.Clone(rest[:end])
		slices.SortStableFunc(part, func(a, b step) int {
			if c := rank(a) - rank(b); c != 0 || rank(a) != 1 {
				return c
			}
			return strings.Compare(a.what, b.what)
		})
		list, rest = append(list, part...), rest[end:]
	}
	return list
}

// Read is the randomness of the pipeline.
func (r *recorder) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += len(p)
	return r.seed.Read(p)
}

var _ io.Reader = (*recorder)(nil)

// recordedBackend writes down the SQL of each measure that is run, with its arguments.
type recordedBackend struct {
	backend.Backend
	*recorder
}

func (b recordedBackend) Execute(ctx context.Context, q rewrite.Query, receipts []*ledger.Receipt, hold time.Duration) ([]privacy.Sensitive[[]privacy.Group], error) {
	b.add(step{what: fmt.Sprintf("run %s %v", q.SQL(), q.Args())})
	return b.Backend.Execute(ctx, q, receipts, hold)
}

// recordedLedger writes down what is charged for, and what is saved.
type recordedLedger struct {
	ledger.Ledger
	*recorder
}

func (l recordedLedger) Charge(ctx context.Context, request ledger.Request) ([]ledger.Outcome, error) {
	for _, it := range request.Items {
		l.add(step{what: fmt.Sprintf("charge %s: %x %s %s %s %v", it.Cost, it.Digest, it.Kind, it.Name, it.Table, it.Spec)})
	}
	outcomes, err := l.Ledger.Charge(ctx, request)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range outcomes {
		l.steps = append(l.steps, step{what: fmt.Sprintf("charged %s", o.Charged)})
		l.items[o.Receipt] = request.Items[i]
	}
	return outcomes, err
}

func (l recordedLedger) Save(ctx context.Context, r *ledger.Receipt, drawn mechanisms.Drawn) (int64, error) {
	l.save(r, drawn.Noisy)
	return l.Ledger.Save(ctx, r, drawn)
}

func (l recordedLedger) save(r *ledger.Receipt, noisy privacy.Released[mechanisms.Noisy]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, step{what: "save", item: l.items[r], observations: noisy.Value().Observations, keys: noisy.Value().Keys})
}

// claim is what a plan says of a measure.
type claim struct {
	l1, l2Squared *big.Int
	byCounter     []claim // in steps of each counter's noise; nil means not a sum of sums
}

func claimOf(spec mechanisms.Spec, c mechanisms.Contribution) claim {
	return claim{l1: big.NewInt(spec.Sensitivity(c).L1), l2Squared: spec.L2Squared(c)}
}

// inSteps is a sum of which each row adds whole steps of the noise, as many as what it adds begins.
func inSteps(spec mechanisms.Spec) mechanisms.Spec {
	own := spec.Counts()
	sum := own.Sums[0]
	if step := sum.Noise.Step; step > 1 {
		sum.Low, sum.High, sum.Noise.Step = -((step - 1 - min(sum.Low, 0)) / step), (max(sum.High, 0)+step-1)/step, 0
	}
	own.Sums, spec.Kind = []mechanisms.Sum{sum}, &own
	return spec
}

// exceeded says how two sides' releases of a measure contradict what its plan declares and what was paid; "" is sound.
// share is the part of its claim by which they differ.
func exceeded(one, other step, d claim) (why string, share float64) {
	spec, cost := one.item.Spec, one.item.Cost
	l1, l2, loss, rho := new(big.Int), new(big.Int), new(big.Rat), new(big.Rat)
	width := len(one.observations) / max(spec.Counters, 1)
	for j := range one.observations {
		move := new(big.Int).Abs(new(big.Int).Sub(big.NewInt(one.observations[j]), big.NewInt(other.observations[j])))
		squared := new(big.Int).Mul(move, move)
		l1.Add(l1, move)
		l2.Add(l2, squared)
		n := spec.Counts().Noise
		if spec.Counts().Sums != nil {
			n = spec.Counts().Sums[j/width].Noise
		}
		if n.Step > 1 { // noise in steps hides what moves by a whole number of them
			move.Add(move, big.NewInt(n.Step-1)).Div(move, big.NewInt(n.Step))
			squared = new(big.Int).Mul(move, move)
		}
		if n.Kind == mechanisms.DiscreteLaplace {
			loss.Add(loss, new(big.Rat).Mul(new(big.Rat).SetInt(move), big.NewRat(n.Den, n.Num)))
		} else {
			rho.Add(rho, new(big.Rat).Mul(new(big.Rat).SetInt(squared), new(big.Rat).Quo(big.NewRat(n.Den, n.Num), big.NewRat(2, 1))))
		}
	}
	most, mostSquared := d.l1, d.l2Squared
	share, _ = new(big.Rat).SetFrac(l1, most).Float64()
	switch {
	case l1.Cmp(most) > 0:
		return fmt.Sprintf("the counts differ by %d in L1, declared are %d", l1, most), share
	case l2.Cmp(mostSquared) > 0:
		return fmt.Sprintf("the counts differ by √%d in L2, declared are √%d", l2, mostSquared), share
	case loss.Cmp(big.NewRat(cost.Epsilon.Micro(), 1e6)) > 0:
		return fmt.Sprintf("a likelihood ratio of e^%s, paid are %s", loss.FloatString(6), cost), share
	case rho.Cmp(big.NewRat(cost.Rho.Pico(), 1e12)) > 0:
		return fmt.Sprintf("ρ is %s, paid are %s", rho.FloatString(9), cost), share
	}
	return "", share
}

// miscalibrated says how a release's noise disagrees with what was paid for it and what its plan declares; "" is sound.
// With noise of scale t a counter that moves by Δ costs Δ/t, and by Δ² in L2² Δ²/(2σ²); together they are the charge,
// of which rounding may leave at most a fiftieth unused.
func miscalibrated(it ledger.Item, d claim) string {
	costs := func(n mechanisms.Noise, s claim) *big.Rat {
		per := big.NewRat(n.Den, n.Num)
		if n.Kind == mechanisms.DiscreteLaplace {
			return per.Mul(per, new(big.Rat).SetInt(s.l1))
		}
		return per.Mul(per, new(big.Rat).SetFrac(s.l2Squared, big.NewInt(2)))
	}
	sum := new(big.Rat)
	if it.Spec.Counts().Sums == nil {
		sum = costs(it.Spec.Counts().Noise, d)
	}
	for c, s := range it.Spec.Counts().Sums {
		sum.Add(sum, costs(s.Noise, d.byCounter[c]))
	}
	paid := big.NewRat(it.Cost.Epsilon.Micro(), 1e6)
	if paid.Sign() == 0 {
		paid = big.NewRat(it.Cost.Rho.Pico(), 1e12)
	}
	least := new(big.Rat).Mul(paid, big.NewRat(49, 50))
	if sum.Cmp(paid) > 0 || sum.Cmp(least) < 0 {
		return fmt.Sprintf("the noise of what is declared costs %s, charged are %s", sum.FloatString(9), it.Cost)
	}
	return ""
}

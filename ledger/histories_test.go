package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// asked is one operation of a history: a charge of so much, or a look at the balance where that is 0.
type asked struct{ micro int64 }

// told is its outcome.
type told struct {
	refused bool
	spent   int64 // of a look
}

// budgetModel is the account of one user: what is spent, under a limit.
func budgetModel(limit int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			spent, in, out := state.(int64), input.(asked), output.(told)
			switch {
			case in.micro == 0:
				return out.spent == spent, spent
			case out.refused:
				return spent+in.micro > limit, spent
			}
			return spent+in.micro <= limit, spent + in.micro
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

// history has clients charge and look at once in a dataset, each on one of the keepers.
func history(t *testing.T, keepers []*keeper, dataset, user string, clients, operations int, most int64, seed uint64) []porcupine.Operation {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	var list []porcupine.Operation
	began := time.Now()
	for c := range clients {
		f, random := keepers[c%len(keepers)], rand.New(rand.NewPCG(seed, uint64(c)))
		all.Add(1)
		go func() {
			defer all.Done()
			for n := range operations / clients {
				op := porcupine.Operation{ClientId: c, Input: asked{}}
				if random.IntN(3) > 0 {
					op.Input = asked{1 + random.Int64N(most)}
				}
				op.Call = int64(time.Since(began))
				out, err := perform(f, dataset, user, op.Input.(asked), uint64(c)<<32|uint64(n))
				op.Return = int64(time.Since(began))
				if err != nil {
					t.Error(err)
					return
				}
				op.Output = out
				mu.Lock()
				list = append(list, op)
				mu.Unlock()
			}
		}()
	}
	all.Wait()
	return list
}

func perform(f *keeper, dataset, user string, in asked, n uint64) (told, error) {
	if in.micro == 0 {
		if err := f.Follow(ctx); err != nil {
			return told{}, err
		}
		b, err := f.Balance(ctx, user, dataset)
		return told{spent: b.LifeSpent.Epsilon.Micro()}, err
	}
	it := item(1, eps(in.micro))
	binary.BigEndian.PutUint64(it.Digest[:], n)
	out, err := f.Charge(ctx, of(dataset, request(user, it)))
	if errors.Is(err, ErrExhausted) {
		return told{refused: true}, nil
	}
	if err == nil {
		f.Abandon(out[0].Receipt)
	}
	return told{}, err
}

// TestT23Histories: charges, refusals and balances of many clients at once are those of one account, in some order that
// agrees with real time, on SQLite and on three proxies that share PostgreSQL; in two datasets at once, whose accounts
// know nothing of each other.
func TestT23Histories(t *testing.T) {
	histories, operations := threats.Length(3, 200), threats.Length(400, 2000)
	const limit = 3_000_000
	d := census()
	d.Cap, d.Budgets = eps(1e12), map[string]BudgetTerms{"*": {Limit: eps(limit)}}
	other := survey()
	other.Cap, other.Budgets = d.Cap, d.Budgets
	_, shared := several(t, 3, Options{}, d, other)
	checked := 0
	for name, keepers := range map[string][]*keeper{"sqlite": {fresh(t, Options{}, d, other)}, "postgres": shared} {
		for n := range histories {
			user := fmt.Sprint("user", n)
			var both [2][]porcupine.Operation
			var all sync.WaitGroup
			for i, dataset := range []string{"census", "survey"} {
				all.Go(func() {
					both[i] = history(t, keepers, dataset, user, 8, operations/2, 6*limit/int64(operations), uint64(2*n+i))
				})
			}
			all.Wait()
			for _, list := range both {
				if len(list) < operations/2*9/10 {
					t.Fatalf("%s, history %d: %d operations", name, n, len(list))
				}
				if !porcupine.CheckOperations(budgetModel(limit), list) {
					t.Fatalf("%s, history %d: not that of one account", name, n)
				}
				checked++
			}
		}
		verify(t, keepers[0])
	}
	threats.Reached(t, "T23", "%d histories of %d operations linearizable, half of them on 3 proxies and PostgreSQL, two datasets at once", checked, operations/2)
}

// The check finds what it is there for: a balance that lags, a charge above the limit, a refusal of what would have
// fitted.
func TestHistoriesFindFaults(t *testing.T) {
	at := func(call, end int64, in asked, out told) porcupine.Operation {
		return porcupine.Operation{ClientId: int(call), Input: in, Output: out, Call: call, Return: end}
	}
	for name, list := range map[string][]porcupine.Operation{
		"late":   {at(1, 2, asked{5}, told{}), at(3, 4, asked{}, told{spent: 0})},
		"above":  {at(1, 4, asked{6}, told{}), at(2, 5, asked{5}, told{})},
		"unfair": {at(1, 2, asked{5}, told{}), at(3, 4, asked{5}, told{refused: true})},
	} {
		if porcupine.CheckOperations(budgetModel(10), list) {
			t.Errorf("%s: not found", name)
		}
	}
}

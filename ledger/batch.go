package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// One transaction in the making, to which jobs add their rows. A job that is refused takes its own back, and the others
// of its commit go on.

// refusal is an error of one job: its rows are taken back, the others of the batch go on.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// batch is one transaction in the making.
type batch struct {
	store        store.Store
	begun        store.Begun
	presumesEnds bool         // it presumes where the chains end
	book         *book        // what it decides on
	base         *chain.Links // where the chains ended when it began
	links        *chain.Links // and where they will
	now          int64
	rows         []chain.Row

	// of a shared ledger
	presumed map[store.AccountKey]store.Account // of a batch that presumes: the accounts as its charges will leave them
	deferred []*job                             // which such a batch has left out
	wrote    bool                               // something else than rows
	claims   []claimed                          // made with it
	leases   []leased                           // begun with it
	lost     []int64                            // online releases that another process has taken over
	dropped  []claimed                          // given up with it
}

// next is the number of the next row.
func (t *batch) next() int64 {
	if t.begun.First == 0 {
		return t.links.Last + 1
	}
	return t.begun.First + int64(len(t.rows))
}

// writes reports whether nobody else writes a chain until the batch ends; who writes chain 0 holds all.
func (t *batch) writes(chain int64) bool {
	return t.begun.Chains == nil || slices.Contains(t.begun.Chains, chain)
}

// add writes the next row of a chain.
func (t *batch) add(kind chain.Kind, ds int64, holder string, body []byte) (chain.Row, error) {
	r := chain.Row{Seq: t.next(), Kind: kind, At: t.now, DS: ds, Holder: holder, Body: body}
	if t.begun.First != 0 && int64(len(t.rows)) >= t.begun.Numbers {
		return chain.Row{}, refusal{errStepwise} // there is a number for it in the next batch
	}
	if t.links.Link(&r); !t.writes(r.Chain) {
		return chain.Row{}, fmt.Errorf("a row of chain %d in a batch that does not hold it", r.Chain)
	}
	if err := t.store.Insert(r); err != nil {
		return chain.Row{}, err
	}
	t.rows = append(t.rows, r)
	return r, t.links.Move(r)
}

// attempt runs one job inside a savepoint.
func (t *batch) attempt(j *job, now int64) error {
	t.now, j.err = now, nil
	rows, claims, leases := len(t.rows), len(t.claims), len(t.leases)
	if err := t.store.Savepoint(); err != nil {
		return err
	}
	err := j.run(t)
	if err == nil {
		return t.store.Keep()
	}
	var refused refusal
	if !errors.As(err, &refused) {
		return err
	}
	if j.err = refused.error; errors.Is(err, errStepwise) || t.presumesEnds { // what was presumed refuses nobody
		t.deferred = append(t.deferred, j)
	}
	if len(t.rows) > rows {
		t.links = t.base.Clone()
		for _, r := range t.rows[:rows] {
			if err := t.links.Move(r); err != nil {
				return err
			}
		}
	}
	t.rows, t.claims, t.leases = t.rows[:rows], t.claims[:claims], t.leases[:leases]
	return t.store.Undo()
}

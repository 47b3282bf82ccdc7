package ledger

import (
	"errors"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// A batch of a shared ledger holds the heads of chains, for which other proxies wait. So it asks the server nothing in
// between: whether an account holds a cost, and whether a claim is free or still this process's, is presumed to be as
// the book says, which has these chains' last rows by then; and all of the batch's statements go out in one turn with
// its commit. The server decides all the same, by the same conditions: where one is not met the statement fails, the
// commit behind it is not carried out, and the batch is done again step by step. A job of which the book knows that the
// server will refuse it is left out beforehand and done step by step by itself, so that nobody without a budget slows
// those who have one.

// errStepwise takes a job out of a batch that presumes.
var errStepwise = errors.New("to be done step by step")

// presume begins a batch that presumes, where the store can and the jobs may.
func (t *batch) presume(jobs []*job) {
	if t.presumesEnds {
		t.presumed = map[store.AccountKey]store.Account{}
	} else if s, ok := t.store.(store.Shared); ok && len(jobs) > 0 && !jobs[0].alone && !jobs[0].stepwise {
		t.presumed = map[store.AccountKey]store.Account{}
		s.Presume()
	}
}

// foresee tells how a charge will leave the accounts; errStepwise where one of them does not hold it.
func (t *batch) foresee(b *book, moves []store.Move) error {
	if t.presumed == nil {
		return nil
	}
	for _, m := range moves {
		a, ok := t.presumed[m.Key]
		if !ok {
			a, ok = b.accounts[m.Key]
		}
		if !ok {
			a = *m.Fresh
		}
		if a, ok = a.Rolled(t.now, m.Ends).Charged(m.Charge); !ok {
			return refusal{errStepwise}
		}
		t.presumed[m.Key] = a
	}
	return nil
}

// doStepwise has jobs done step by step.
func doStepwise(jobs []*job) []*job {
	for _, j := range jobs {
		j.stepwise = true
	}
	return jobs
}

package pipeline

import (
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// execution is one statement on its way through the pipeline: who asks, and what its parts tell one another. Of
//
//	SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)
//
// the average is bought and answered first, and the statement is planned again with it: that is in prior by then, and what admission has granted
// for the average serves the count as well.
type execution struct {
	*Session
	text     string // of the statement, for the operator; empty: it is none
	prior    prior
	since    int64 // the first number of a release that it was not planned by; 0: that is not known
	token    bool  // it has had its user's token of purchases
	admitted grants
	failing  time.Time // since when the ledger does not save what was drawn; of the goroutine that draws

	mu      sync.Mutex
	charged privacy.Cost // all that it has been charged
}

// prior is what a statement has bought before it is planned to the end: keys that nobody declared, and answers of sub-queries.
type prior struct {
	cost    privacy.Cost
	answers map[string]*plans.Answer // of sub-queries, by their keys; never changed, but replaced
}

// newExecution begins to execute a statement. Whoever does ends it by admitted.done.
func newExecution(s *Session, text string) *execution {
	return &execution{Session: s, text: text, admitted: grants{holders: 1}}
}

// plannedBy notes what it is planned by.
func (x *execution) plannedBy(held []ledger.Release) {
	x.since = 1
	for _, r := range held {
		x.since = max(x.since, r.ID+1)
	}
}

// wasCharged notes what has been charged by now: whoever draws knows it first, and the client may have left meanwhile.
func (x *execution) wasCharged(all privacy.Cost) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.charged = all
}

// chargedSoFar is what it has been charged by now.
func (x *execution) chargedSoFar() privacy.Cost {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.charged
}

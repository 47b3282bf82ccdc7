package pipeline

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// remembered is what is kept of users' statements, to be found by who asks, what, and under which settings (lookup.go),
// as long as the policy and what the user holds are the very ones that it was made from. Of SELECT count(*) FROM people
// WHERE income BETWEEN 20 AND 3000 that is one template of plans for all numbers that may stand in it (ADR 86), and the
// answers for some. Each user has a share of the room, beyond which all of hers is forgotten: what another asks makes
// nothing of hers slower (privacy rule 1). What is not found is made anew, so that nothing but time depends on what is
// kept.
type remembered struct {
	room int // cells of all users

	mu sync.RWMutex
	of map[string]*share // by user
}

type share struct {
	policy *policy.Policy
	known  map[string]*ofStatement
	size   int
	met    [maxMet]atomic.Uint32
}

// ofStatement is what is kept of one text under one set of settings.
type ofStatement struct {
	held     []ledger.Release
	template *planner.Template // nil: none
	answers  map[string]Result // by its parameters, or the numbers that were lifted out of it
	size     int
}

const (
	// maxRemembered is the room, some 200 MB.
	maxRemembered = 1 << 21
	// templateCells and statementCells are what a template takes of it, and a statement beside its text.
	templateCells, statementCells = 64, 16
	// maxMet is how many questions of a user are remembered to have been asked, or so.
	maxMet = 1 << 12
)

// cellsOf is what keeping an answer takes of maxRemembered.
func cellsOf(values []byte, r Result) int {
	rows := r.Rows.Value()
	return 8 + len(values)/8 + len(rows.Data)*len(rows.Columns)
}

// repeatable reports whether an answer is worth keeping: it was free, made in Go, and does not depend on the time.
func repeatable(plan *plans.Plan, bought purchase) bool {
	if plan.Outer.Direct == nil || isOnline(plan) || len(plan.Measures) == 0 || !bought.charged.IsZero() || !plan.Timeless() {
		return false
	}
	for _, m := range plan.Measures {
		if !m.Held {
			return false
		}
	}
	return true
}

// find looks for what is kept of a statement.
func (m *remembered) find(s *Session, l *lookup) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	own := m.of[s.User]
	if own == nil || own.policy != s.Policy {
		return
	}
	if known := own.known[string(l.statement)]; known != nil && sameList(known.held, l.held) {
		l.template = known.template
		if l.valued {
			l.answer, l.answered = known.answers[string(l.values)]
		}
	}
}

// keepAnswer keeps the answer of a statement that was looked up.
func (m *remembered) keepAnswer(s *Session, l *lookup, r Result) {
	if l.valued {
		m.keep(s, l, cellsOf(l.values, r), func(known *ofStatement) { known.answers[string(l.values)] = r })
	}
}

// keepTemplate keeps how it is planned.
func (m *remembered) keepTemplate(s *Session, l *lookup, t *planner.Template) {
	m.keep(s, l, templateCells, func(known *ofStatement) { known.template = t })
}

func (m *remembered) keep(s *Session, l *lookup, size int, put func(*ofStatement)) {
	whole := size + statementCells + len(l.statement)/8
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]*share{}
	}
	own := m.of[s.User]
	if own == nil || own.policy != s.Policy || own.size+whole > m.room/max(len(s.Policy.Users), 1) {
		own = &share{policy: s.Policy, known: map[string]*ofStatement{}}
		m.of[s.User] = own
	}
	known := own.known[string(l.statement)]
	if known != nil && !sameList(known.held, l.held) {
		own.size, known = own.size-known.size, nil
	}
	if known == nil {
		known, size = &ofStatement{held: l.held, answers: map[string]Result{}}, whole
		own.known[string(l.statement)] = known
	}
	put(known)
	known.size += size
	own.size += size
}

// meets reports whether a question has been asked lately, and notes that it has. It is wrong of a few, which costs time
// alone.
func (m *remembered) meets(s *Session, l *lookup) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	own := m.of[s.User]
	if own == nil {
		return false
	}
	var h maphash.Hash
	h.SetSeed(metSeed)
	_, _ = h.Write(l.statement) // never fails
	_, _ = h.Write(l.values)    // as above
	sum := h.Sum64()
	return own.met[sum%maxMet].Swap(uint32(sum>>32)) == uint32(sum>>32)
}

var metSeed = maphash.MakeSeed()

package online

import (
	"fmt"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Memo answers a query that was asked before with the same answer, at no cost, also after the end: repeating what has
// been released is post-processing. It remembers the first Limit queries.
type Memo struct {
	lock    sync.Mutex
	to      Answerer
	limit   int
	answers map[string]privacy.Released[Answer]
}

// NewMemo puts a memory of limit queries before an answerer: it begins with the hard answers given so far.
func NewMemo(to Answerer, limit int) (*Memo, error) {
	if to == nil || limit < 1 {
		return nil, fmt.Errorf("limit is %d, must be at least 1, before an answerer that is not nil", limit)
	}
	m := &Memo{to: to, limit: limit, answers: map[string]privacy.Released[Answer]{}}
	for _, e := range to.Told() {
		if len(m.answers) < limit {
			m.answers[e.Query.Key()] = sealed.Release(Answer{Value: e.Value, Hard: true})
		}
	}
	return m, nil
}

// Answer asks only what was not asked before.
func (m *Memo) Answer(q Query) (privacy.Released[Answer], error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	key := q.Key()
	if a, known := m.answers[key]; known {
		return a, nil
	}
	a, err := m.to.Answer(q)
	if err == nil && len(m.answers) < m.limit {
		m.answers[key] = a
	}
	return a, err
}

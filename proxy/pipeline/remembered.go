package pipeline

import (
	"sync"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
)

// remembered is what is kept of users' statements, to be found by its key as long as the policy and what the user holds are the very ones
// that it was made from. Each user has a share of the room, beyond which all of hers is forgotten: what another asks makes nothing of hers slower (privacy rule 1).
// What is not found is made anew, so that nothing but time depends on what is kept.
type remembered[T any] struct {
	room int // of all users; what one takes is for keep to say

	mu sync.RWMutex
	of map[string]*share[T] // by user
}

type share[T any] struct {
	policy *policy.Policy
	known  map[string]kept[T]
	size   int
}

type kept[T any] struct {
	value T
	held  []ledger.Release
}

func (m *remembered[T]) find(s *Session, key string, held []ledger.Release) (value T, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	own := m.of[s.User]
	if own == nil || own.policy != s.Policy {
		return value, false
	}
	k, ok := own.known[key]
	if !ok || !sameList(k.held, held) {
		return value, false
	}
	return k.value, true
}

func (m *remembered[T]) keep(s *Session, key string, value T, size int, held []ledger.Release) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]*share[T]{}
	}
	own := m.of[s.User]
	if own == nil || own.policy != s.Policy || own.size+size > m.room/max(len(s.Policy.Users), 1) {
		own = &share[T]{policy: s.Policy, known: map[string]kept[T]{}}
		m.of[s.User] = own
	}
	own.known[key] = kept[T]{value, held}
	own.size += size
}

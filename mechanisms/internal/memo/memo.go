// Package memo keeps what is a function of its key alone and takes work to find, for the whole process. Keys hold
// what analysts choose, such as a cost or a confidence: beyond most of them all is forgotten at once.
package memo

import "sync"

// Map is what is remembered by key, of a size of at most Most together.
type Map[K comparable, V any] struct {
	Most int

	mu    sync.RWMutex
	known map[K]V
	size  int
}

// Small bounds what is small, each of size 1.
const Small = 1 << 12

// Load returns what is remembered of a key.
func (m *Map[K, V]) Load(key K) (V, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.known[key]
	return v, ok
}

// Store remembers what has a size.
func (m *Map[K, V]) Store(key K, size int, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size += size; m.known == nil || m.size > m.Most {
		m.known, m.size = map[K]V{}, size
	}
	m.known[key] = v
}

// Try returns what is remembered of a key, or else what is found now, and remembers that where it is no error.
func (m *Map[K, V]) Try(key K, size int, find func() (V, error)) (V, error) {
	if v, ok := m.Load(key); ok {
		return v, nil
	}
	v, err := find()
	if err == nil {
		m.Store(key, size, v)
	}
	return v, err
}

// Of is Try for what is always found.
func (m *Map[K, V]) Of(key K, size int, find func() V) V {
	v, ok := m.Load(key)
	if !ok {
		v = find()
		m.Store(key, size, v)
	}
	return v
}

package ledger

import (
	"sync"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// itemLock is held on one item from before its charge until it is saved or given up, so that nobody else in this
// process pays for it meanwhile. Its key names what is being drawn or paid: the hash of dataset, holder, measure, spec
// and epoch; of a saved release it is the unique key on disk.
type itemLock struct {
	key      store.Key
	released chan struct{} // closed when it is
}

// lockTable are the locks that are held. A request takes those of all of its items at once or none, so two requests
// never wait for each other.
type lockTable struct {
	mu     sync.Mutex
	held   map[store.Key]*itemLock
	closed bool
}

// take takes a lock that nobody holds. The table's mutex is its caller's.
func (t *lockTable) take(key store.Key) *itemLock {
	l := &itemLock{key: key, released: make(chan struct{})}
	t.held[key] = l
	return l
}

func (t *lockTable) release(l *itemLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[l.key] == l {
		delete(t.held, l.key)
		close(l.released)
	}
}

// close gives all locks back, and has nobody take another one.
func (t *lockTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for key, l := range t.held {
		delete(t.held, key)
		close(l.released)
	}
}

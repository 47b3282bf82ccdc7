package ledger

import (
	"sync"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// flight is one item under way between its charge and its save. Its key names what is being drawn or paid: the hash of dataset,
// holder, measure, spec and epoch; of a saved release it is the unique key on disk. done is closed when it has landed or was
// given up.
type flight struct {
	key  store.Key
	done chan struct{}
}

// flights are the items under way. A request takes off for all of its items at once or for none, so two requests never
// wait for each other.
type flights struct {
	mu      sync.Mutex
	running map[store.Key]*flight
	closed  bool
}

func (f *flights) land(fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[fl.key] == fl {
		delete(f.running, fl.key)
		close(fl.done)
	}
}

func (f *flights) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for key, fl := range f.running {
		delete(f.running, key)
		close(fl.done)
	}
}

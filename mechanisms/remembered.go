package mechanisms

import "sync"

// remembered keeps what is a function of its key alone and takes work to find. Keys hold what analysts choose, such as
// a cost or a confidence: beyond most of them all is forgotten at once.
type remembered[K comparable, V any] struct {
	mu    sync.RWMutex
	known map[K]V
	most  int
}

// maxOfRemembered bounds what is small.
const maxOfRemembered = 1 << 12

func (r *remembered[K, V]) load(key K) (V, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	v, ok := r.known[key]
	return v, ok
}

func (r *remembered[K, V]) store(key K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= r.most {
		r.known = map[K]V{}
	}
	r.known[key] = v
}

package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"sync"
)

// The reasons for which a wait for an answer ends.
var (
	errCanceled = errors.New("canceling statement due to user request")
	errTimeout  = errors.New("canceling statement due to statement timeout")
	errLost     = errors.New("canceling statement because its client has gone")
	errShutdown = errors.New("terminating connection due to administrator command")
)

// cancelKeys finds the session that a cancel request means. A key is random, dies with its session, and is compared in
// constant time; a request that means no session looks like one that does.
type cancelKeys struct {
	mu       sync.Mutex
	sessions map[uint32]*cancelEntry
}

type cancelEntry struct {
	key  []byte
	wait *waitPoint
	seen *peer
}

// waitPoint is where a session can be interrupted.
type waitPoint struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil: nothing runs
	number uint64                  // of what has run
	looked uint64                  // which of it goesOn saw last
}

func (w *waitPoint) set(cancel context.CancelCauseFunc) {
	w.mu.Lock()
	w.cancel = cancel
	w.number++
	w.mu.Unlock()
}

// goesOn reports whether what runs did so when it was asked last.
func (w *waitPoint) goesOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.looked
	w.looked = w.number
	return w.cancel != nil && before == w.number
}

func (w *waitPoint) interrupt(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel(cause)
	}
}

func newCancelKeys() *cancelKeys { return &cancelKeys{sessions: map[uint32]*cancelEntry{}} }

// register names a session: a process id that no other session has, and a key of that many bytes.
func (c *cancelKeys) register(wait *waitPoint, seen *peer, size int) (pid uint32, key []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key = make([]byte, size)
	if _, err := rand.Read(key); err != nil {
		return 0, nil, err
	}
	for pid == 0 || c.sessions[pid] != nil {
		var b [4]byte
		if _, err := rand.Read(b[:]); err != nil {
			return 0, nil, err
		}
		pid = binary.BigEndian.Uint32(b[:]) >> 1 // clients read it as a signed number
	}
	c.sessions[pid] = &cancelEntry{key, wait, seen}
	return pid, key, nil
}

func (c *cancelKeys) remove(pid uint32) {
	c.mu.Lock()
	delete(c.sessions, pid)
	c.mu.Unlock()
}

// cancel ends the wait of the session that pid and key name, if there is one.
func (c *cancelKeys) cancel(pid uint32, key []byte) {
	c.mu.Lock()
	entry := c.sessions[pid]
	c.mu.Unlock()
	known := 1
	if entry == nil {
		entry, known = &cancelEntry{key: make([]byte, len(key)), wait: &waitPoint{}}, 0
	}
	if subtle.ConstantTimeCompare(entry.key, key)&known == 1 {
		entry.wait.interrupt(errCanceled)
	}
}

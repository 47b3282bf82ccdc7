package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
)

var background = context.Background()

const ledgerPath = "/disk/ledger.db"

// node is a machine's place for a process; of all nodes one can have the ledger open at a time.
type node struct {
	w    *world
	id   int
	skew time.Duration // its clock; guarded by the world's mutex
	live *boot         // guarded by the world's mutex
}

// boot is one life of a process.
type boot struct {
	n *node
	m *Mount
	l ledger.Ledger
}

func (n *node) boot() *boot {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return n.live
}

func (n *node) clock() time.Time {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return time.Now().Add(n.skew)
}

func (n *node) setClock(skew time.Duration) {
	n.w.note(n.id, "clock at %v", skew)
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.skew = skew
}

// start brings a process up, if there is none. It must open the ledger unless another has it or the disk fails.
func (n *node) start() { n.boots(n.w.rng.IntN(6) == 0) }

// boots is start; frail: the process may die while it recovers.
func (n *node) boots(frail bool) {
	w := n.w
	if n.boot() != nil {
		return
	}
	w.boots++
	m := w.disk.Mount(rand.New(rand.NewPCG(w.seed, uint64(1000+w.boots))), fmt.Sprintf("simulated-%d-%d", w.seed, w.boots), w.shm)
	if frail {
		m.KillAt(1+w.rng.IntN(40), w.rng.IntN(2) == 0) // while it recovers
	}
	taken, failed := w.disk.Locked(ledgerPath+"-lock"), w.disk.Failures()
	began := time.Now()
	b := &boot{n: n, m: m}
	l, err := ledger.Open(background, "sqlite:"+ledgerPath, ledger.Options{Clock: n.clock, Disk: m})
	if err == nil {
		if err = l.Adopt(background, w.terms()); err != nil {
			_ = l.Close() // it has failed already
		}
	}
	took := time.Since(began)
	switch {
	case err == nil:
		w.note(n.id, "up after %v", took)
		if taken {
			w.broke("two processes have the ledger open")
		}
		if took > restartTime && w.disk.Failures() == failed {
			w.broke("a restart took %v", took)
		}
		b.l = l
		w.mu.Lock()
		n.live = b
		w.mu.Unlock()
		return
	case taken && errors.Is(err, ledger.ErrLocked), m.Dead(), w.disk.Failures() > failed && !untrue(err):
		w.note(n.id, "not up: %v", class(err))
	default:
		w.broke("the ledger does not open: %v", err)
	}
	m.Unmount()
}

// unread reports whether an error is that of a witness which the disk did not let be read: the ledger stays closed.
func unread(err error) bool { return errors.Is(err, ledger.ErrWitness) && errors.Is(err, syscall.EIO) }

// untrue reports whether an error says that the ledger is not what was written: of a disk that only fails, never.
func untrue(err error) bool {
	return errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrRollback) || errors.Is(err, ledger.ErrWitness) && !unread(err)
}

// class is an error without what differs from run to run.
func class(err error) error {
	for _, known := range []error{nil, ledger.ErrPolicy, ledger.ErrExhausted, ledger.ErrCap, ledger.ErrFull, ledger.ErrUnavailable, ledger.ErrLocked, ledger.ErrCorrupt, ledger.ErrRollback, ledger.ErrWitness, ledger.ErrClosed, ledger.ErrNotHeld} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errUnknown
}

var errUnknown = errors.New("another error")

// serving is the life of the process that has the ledger open, nil means none has.
func (w *world) serving() *boot {
	for _, n := range w.nodes {
		if b := n.boot(); b != nil && !b.m.Dead() {
			return b
		}
	}
	return nil
}

// kill ends a process at once; a power cut ends all.
func (n *node) kill(power bool) {
	for _, other := range n.w.nodes {
		if b := other.boot(); b != nil && (power || other == n) && !b.m.Dead() {
			n.w.note(other.id, "killed, power cut %v", power)
			b.m.Kill(power)
			power = false // the disk loses what it loses once
		}
	}
}

// killAt has a process die at an operation to come.
func (n *node) killAt(ops int, power bool) {
	if b := n.boot(); b != nil {
		n.w.note(n.id, "dies at operation %d, power cut %v", ops, power)
		b.m.KillAt(ops, power)
	}
}

func (n *node) disarm() {
	if b := n.boot(); b != nil {
		b.m.KillAt(0, false)
	}
}

// close ends a process in good order.
func (n *node) close() {
	if b := n.boot(); b != nil {
		n.w.note(n.id, "closes")
		n.forget(b)
		_ = b.l.Close() // a failing disk may say so
		b.m.Unmount()
	}
}

func (n *node) forget(b *boot) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if n.live == b {
		n.live = nil
	}
}

// bury frees what a dead process has in this one. Nothing that it still does reaches the disk or an analyst.
func (n *node) bury(b *boot) {
	n.forget(b)
	n.w.zombies.Go(func() {
		_ = b.l.Close() // it has no disk any more
		b.m.Unmount()
	})
}

package simulation

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// Disk is what all processes of one machine share.
type Disk struct {
	mu     sync.Mutex
	rng    *rand.Rand
	names  map[string]*inode // as processes see them
	stored map[string]*inode // as a power cut leaves them
	locks  map[string]*Mount
	fault  Fault
	slow   time.Duration // the longest flush
	cuts   int
	failed int // operations that a fault has made fail, or that have waited for a frozen disk

	frozen Freeze
	wakes  chan struct{} // closed when who waits for it is to look again
}

// Freeze is how a disk does not answer, until it thaws.
type Freeze int

const (
	Thawed       Freeze = iota
	FrozenWrites        // writes, flushes and new names wait, as on a suspended file system
	FrozenWhole         // reads too, as on a network disk that is away
)

// Fault is how the disk fails, until it is healed.
type Fault struct {
	Kind  FaultKind
	After int   // so many operations of its kind still work
	Once  bool  // one failure, then it is healed
	Room  int64 // DiskFull: bytes still free
}

type FaultKind int

const (
	Healthy      FaultKind = iota
	FlushFails             // EIO from a flush; each of its sectors may or may not be on the disk
	FlushUnknown           // EIO from a flush after all of it was done
	WriteFails             // EIO from a write
	ReadFails              // EIO from a read
	DiskFull               // ENOSPC once the room is used up
	FaultKinds
)

func (k FaultKind) String() string {
	return [...]string{"healthy", "flush fails", "flush fails after its work", "write fails", "read fails", "disk full"}[k]
}

func NewDisk(rng *rand.Rand) *Disk {
	return &Disk{rng: rng, names: map[string]*inode{}, stored: map[string]*inode{}, locks: map[string]*Mount{}, slow: 3 * time.Millisecond, wakes: make(chan struct{})}
}

// powerCut leaves what was flushed and, of the rest, what chance has let through: nothing, all, or some sectors.
func (d *Disk) powerCut() {
	d.cuts++
	keep := []float64{0, 0, 0.5, 0.9, 1}[d.rng.IntN(5)]
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		f := d.names[name]
		f.cut(d.rng, keep)
		if d.stored[name] != f && d.rng.Float64() < keep {
			d.stored[name] = f
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.stored)) {
		f := d.stored[name]
		if f != d.names[name] {
			if d.rng.Float64() < keep { // its removal got through
				delete(d.stored, name)
				continue
			}
			f.cut(d.rng, keep)
		}
	}
	d.names = maps.Clone(d.stored)
}

// The kinds of operations that fail apart.
type operation int

const (
	reading operation = iota
	writing
	flushing
	naming // making and removing names, flushing a directory
)

// Mount is the disk as one process has it, and the process's life: it may die at any of its operations.
type Mount struct {
	disk  *Disk
	rng   *rand.Rand
	vfs   string // its name for SQLite
	shm   string // directory of SQLite's shared index, which is memory: a process's restart begins with a new one
	dieAt int    // operations until the process dies; 0 means none is set
	power bool   // it dies of a power cut
	dead  bool
	done  [naming + 1]int64 // operations
	bytes int64             // by which files were written
}

// Done is what the process has done so far: flushes, writes, and their bytes.
func (m *Mount) Done() (flushes, writes, bytes int64) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.done[flushing], m.done[writing], m.bytes
}

// die ends the process. The disk's mutex is held.
func (m *Mount) die() {
	if m.dead {
		return
	}
	m.dead = true
	m.disk.wake()
	if m.power {
		m.disk.powerCut()
	}
	maps.DeleteFunc(m.disk.locks, func(_ string, holder *Mount) bool { return holder == m })
}

// Kill ends the process now.
func (m *Mount) Kill(power bool) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.power = power
	m.die()
}

// KillAt has the process die at an operation to come; with 0 at none.
func (m *Mount) KillAt(operations int, power bool) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.dieAt, m.power = operations, power
}

// Dead reports whether the process has died.
func (m *Mount) Dead() bool {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.dead
}

// Mount is the disk for one life of a process. The name is SQLite's for it, unique in this process; shm is a directory
// of the operating system for SQLite's shared index.
func (d *Disk) Mount(rng *rand.Rand, name, shm string) *Mount {
	m := &Mount{disk: d, rng: rng, vfs: name, shm: shm}
	vfs.Register(name, files{m})
	return m
}

// Unmount forgets the name.
func (m *Mount) Unmount() { vfs.Unregister(m.vfs) }

// Fail sets a fault, in place of an earlier one. The zero Fault heals.
func (d *Disk) Fail(x Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = x
}

// Freeze has the disk not answer, or answer again.
func (d *Disk) Freeze(f Freeze) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = f
	d.wake()
}

// wake has who waits for a frozen disk look again. The disk's mutex is held.
func (d *Disk) wake() {
	close(d.wakes)
	d.wakes = make(chan struct{})
}

// answers waits for a frozen disk, as long as its process lives. Operations of different kinds go on one after the
// other. The disk's mutex is held before and after, and not meanwhile.
func (m *Mount) answers(op operation) {
	d := m.disk
	for first := true; !m.dead && (d.frozen == FrozenWhole || d.frozen == FrozenWrites && op != reading); first = false {
		if first {
			d.failed++
		}
		wakes := d.wakes
		d.mu.Unlock()
		<-wakes
		time.Sleep(time.Duration(1 + op))
		d.mu.Lock()
	}
}

// Failures is how many operations faults have made fail so far, or have waited for a frozen disk.
func (d *Disk) Failures() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// Cuts is how many power cuts there were.
func (d *Disk) Cuts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cuts
}

// Locked reports whether a process has the lock of that name.
func (d *Disk) Locked(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.locks[name] != nil
}

// pause is how long a flush of SQLite's takes.
func (m *Mount) pause() {
	m.disk.mu.Lock()
	long := time.Duration(1 + m.rng.Int64N(int64(m.disk.slow)))
	if m.dead {
		long = 0
	}
	m.disk.mu.Unlock()
	time.Sleep(long)
}

// do runs one operation. The process may die before or after it, and it may fail. grows is how much space it takes.
func (m *Mount) do(op operation, f *inode, grows int64, work func() error) error {
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.answers(op); m.dead {
		return syscall.EIO
	}
	if m.dieAt > 0 && op != reading {
		if m.dieAt--; m.dieAt == 0 {
			if m.rng.IntN(2) == 0 {
				_ = work() // nobody lives to hear of it
			}
			m.die()
			return syscall.EIO
		}
	}
	if err := m.failing(op, f, grows, work); err != nil {
		return err
	}
	m.done[op]++
	return work()
}

// failing is the disk's fault for an operation.
func (m *Mount) failing(op operation, f *inode, grows int64, work func() error) error {
	x := &m.disk.fault
	switch {
	case x.Kind == DiskFull && op == writing && grows > 0:
		if x.Room -= grows; x.Room >= 0 {
			return nil
		}
		x.Room += grows
		m.disk.failed++
		return syscall.ENOSPC
	case x.Kind == FlushFails && op == flushing, x.Kind == FlushUnknown && op == flushing, x.Kind == WriteFails && op == writing, x.Kind == ReadFails && op == reading:
	default:
		return nil
	}
	if x.After--; x.After >= 0 {
		return nil
	}
	m.disk.failed++
	if kind := x.Kind; kind == FlushFails && f != nil {
		f.flush(m.rng, m.rng.Float64())
	} else if kind == FlushUnknown {
		_ = work() // done, and reported as failed
	}
	if x.Once {
		x.Kind = Healthy
	}
	return syscall.EIO
}

// The methods of store.Disk.

func (m *Mount) VFS() string { return m.vfs }

func (m *Mount) OpenFile(name string, flag int, _ fs.FileMode) (store.File, error) {
	f, err := m.open(name, flag&os.O_CREATE != 0)
	if err != nil {
		return nil, err
	}
	if flag&os.O_TRUNC != 0 {
		if err := m.do(writing, f, 0, func() error { f.truncate(0); return nil }); err != nil {
			return nil, err
		}
	}
	return &handle{m, f}, nil
}

func (m *Mount) open(name string, create bool) (f *inode, err error) {
	op := reading
	if create {
		op = naming
	}
	err = m.do(op, nil, 0, func() error {
		if f = m.disk.names[name]; f == nil && !create {
			return fs.ErrNotExist
		}
		if f == nil {
			f = &inode{}
			m.disk.names[name] = f
		}
		return nil
	})
	return f, err
}

func (m *Mount) ReadFile(name string) (p []byte, err error) {
	err = m.do(reading, nil, 0, func() error {
		f := m.disk.names[name]
		if f == nil {
			return fs.ErrNotExist
		}
		p = slices.Clone(f.cache)
		return nil
	})
	return p, err
}

func (m *Mount) Remove(name string) error {
	return m.do(naming, nil, 0, func() error {
		if m.disk.names[name] == nil {
			return fs.ErrNotExist
		}
		delete(m.disk.names, name)
		return nil
	})
}

func (m *Mount) Chmod(string, fs.FileMode) error { return nil }

func (m *Mount) SyncDir(string) error {
	return m.do(naming, nil, 0, func() error { m.disk.stored = maps.Clone(m.disk.names); return nil })
}

func (m *Mount) Lock(name string) (io.Closer, error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if holder := m.disk.locks[name]; holder != nil && holder != m {
		return nil, fmt.Errorf("%w: %s", store.ErrLocked, name)
	}
	m.disk.locks[name] = m
	return held{m, name}, nil
}

type held struct {
	m    *Mount
	name string
}

func (h held) Close() error {
	h.m.disk.mu.Lock()
	defer h.m.disk.mu.Unlock()
	if h.m.disk.locks[h.name] == h.m {
		delete(h.m.disk.locks, h.name)
	}
	return nil
}

// handle is an open file of a process.
type handle struct {
	m *Mount
	f *inode
}

func (h *handle) Close() error { return nil }

func (h *handle) Sync() error {
	return h.m.do(flushing, h.f, 0, func() error { h.f.flush(h.m.rng, 1); return nil })
}

func (h *handle) ReadAt(p []byte, off int64) (n int, err error) {
	err = h.m.do(reading, h.f, 0, func() error {
		if off < int64(len(h.f.cache)) {
			n = copy(p, h.f.cache[off:])
		}
		if n < len(p) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.m.disk.mu.Lock()
	grows := max(0, off+int64(len(p))-int64(len(h.f.cache)))
	h.m.disk.mu.Unlock()
	if err := h.m.do(writing, h.f, grows, func() error { h.f.write(p, off); h.m.bytes += int64(len(p)); return nil }); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (h *handle) Truncate(size int64) error {
	return h.m.do(writing, h.f, 0, func() error { h.f.truncate(size); return nil })
}

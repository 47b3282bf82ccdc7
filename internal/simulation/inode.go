package simulation

import (
	"math/rand/v2"
	"slices"
)

// inode is one file: what processes read (the kernel's cache), what a power cut leaves, and which sectors differ. A
// flush that fails forgets that they differ, as Linux does: they look written then and are not.
type inode struct {
	cache, stored []byte
	dirty         []bool // by sector
	resized       bool   // cache has another length than stored, and no flush has tried to write it
}

func (f *inode) cut(rng *rand.Rand, keep float64) {
	for s, differs := range f.dirty {
		if differs && rng.Float64() < keep {
			f.store(int64(s))
		}
	}
	if f.resized && rng.Float64() < keep {
		f.stored = resized(f.stored, int64(len(f.cache)))
	}
	f.cache, f.resized = slices.Clone(f.stored), false
	clear(f.dirty)
}

// store copies one sector from the cache to the disk.
func (f *inode) store(s int64) {
	from, to := s*sector, min((s+1)*sector, int64(len(f.cache)))
	if from >= to {
		return
	}
	if int64(len(f.stored)) < to {
		f.stored = resized(f.stored, to)
	}
	copy(f.stored[from:to], f.cache[from:to])
}

func resized(b []byte, n int64) []byte {
	if n <= int64(len(b)) {
		return b[:n]
	}
	more := int(n) - len(b)
	b = slices.Grow(b, more)[:n]
	clear(b[len(b)-more:])
	return b
}

func (f *inode) write(p []byte, off int64) {
	if end := off + int64(len(p)); end > int64(len(f.cache)) {
		f.cache, f.resized = resized(f.cache, end), true
	}
	copy(f.cache[off:], p)
	if more := (len(f.cache)+sector-1)/sector - len(f.dirty); more > 0 {
		f.dirty = append(f.dirty, make([]bool, more)...)
	}
	for s := off / sector; s*sector < off+int64(len(p)); s++ {
		f.dirty[s] = true
	}
}

func (f *inode) truncate(size int64) {
	if size != int64(len(f.cache)) {
		f.cache, f.resized = resized(f.cache, size), true
		clear(f.dirty[min((size+sector-1)/sector, int64(len(f.dirty))):])
	}
}

// flush writes all that differs. share is the part of it that gets there; a flush that fails forgets the rest.
func (f *inode) flush(rng *rand.Rand, share float64) {
	if f.resized && rng.Float64() < share {
		f.stored = resized(f.stored, int64(len(f.cache)))
	}
	for s, differs := range f.dirty {
		if differs && (share == 1 || rng.Float64() < share) {
			f.store(int64(s))
		}
	}
	f.resized = false
	clear(f.dirty)
}

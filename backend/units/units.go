// Package units numbers units that are texts while a snapshot is made.
package units

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Units that are texts get their numbers while they are read, from tables in this process's memory, one for each
// dataset. Where more units come than they have room for, the texts wait with the rows, and DuckDB numbers them
// (rewrite.Number).
//
// A table of millions is larger than a processor's own memory, so that one look is a wait of some hundred instructions.
// Many texts are looked for at a time: all of their slots are asked for before the first is compared, so that the waits
// are side by side, under a lock that readers share.
//
// Claim. Two texts have one number if and only if they are the same bytes, and the part below rewrite.UnitPlace is of
// them alone, and Number's. Proof. A number is given, under the lock that nobody shares, to a text that is then not
// there, and to no other: next only grows. A slot that has one does not change but by being moved, under that lock.
// Limits. Which other bits it has depends on the order in which rows come; they are compared for equality alone.

// Memory is what the numbers of all units may take.
const Memory = 512 << 20

// ErrMany says that there is no room for the number of another one.
var ErrMany = errors.New("units: more units than are numbered in memory")

// seed is of this process: nobody can choose texts that share a hash.
var seed = maphash.MakeSeed()

// Hash is that by which texts are looked for.
func Hash(text []byte) uint64 { return maphash.Bytes(seed, text) }

// Numbers are those of a dataset. Several may ask at a time.
type Numbers struct {
	mu     sync.RWMutex
	shards [256]unitShard // each grows by itself
	next   int64
	taken  *atomic.Int64 // of the memory, by the tables of all datasets
	most   int64
}

// unitShard is a table with open addressing.
type unitShard struct {
	slots []unitSlot // a power of two
	used  int
	texts []byte // those that a slot does not hold, each after its length
}

// unitSlot is free while number is 0. One that holds its text is one look into memory, where millions are at random.
type unitSlot struct {
	tag, number, hash uint32
	at                uint32 // in texts, of a longer text
	head              unitHead
}

// unitHead is a text's length and the text, or isLong and its beginning.
type unitHead [16]byte

const isLong = 255

func headOf(text []byte) (head unitHead) {
	if head[0] = isLong; len(text) < len(head) {
		head[0] = byte(len(text))
	}
	copy(head[1:], text)
	return head
}

const (
	firstSlots = 64
	slotSize   = 32
	maxUnits   = 1<<32 - 1
)

// New has none yet. They may take most bytes, together with all that count in taken what they take.
func New(taken *atomic.Int64, most int64) *Numbers {
	return &Numbers{taken: taken, most: most}
}

// Search is what a look for many units leaves to the next one.
type Search struct {
	hashes  []uint64
	missing []int    // of the texts
	parts   []uint32 // of their hashes (unitHash)
	touched uint32
}

// Of puts the numbers of as many texts as numbers has room for there.
func (u *Numbers) Of(text func(i int) []byte, numbers []int64, work *Search) error {
	work.hashes, work.missing, work.parts = work.hashes[:0], work.missing[:0], work.parts[:0]
	for i := range numbers {
		work.hashes = append(work.hashes, Hash(text(i)))
	}
	u.found(text, numbers, work)
	if len(work.missing) == 0 {
		return nil
	}
	for _, i := range work.missing {
		work.parts = append(work.parts, unitHash(text(i)))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for at, i := range work.missing {
		n, err := u.put(text(i), work.hashes[i], work.parts[at])
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	return nil
}

// found puts the numbers of the texts that have one there, and notes the others.
func (u *Numbers) found(text func(i int) []byte, numbers []int64, work *Search) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	for _, h := range work.hashes {
		if s := &u.shards[h>>56]; len(s.slots) > 0 {
			work.touched ^= s.slots[uint32(h>>24)&uint32(len(s.slots)-1)].tag
		}
	}
	for i, h := range work.hashes {
		s, own := &u.shards[h>>56], text(i)
		if len(s.slots) == 0 {
			work.missing = append(work.missing, i)
			continue
		}
		head := headOf(own)
		if slot := &s.slots[s.find(own, &head, uint32(h>>24))]; slot.number > 0 {
			numbers[i] = slot.whole()
		} else {
			work.missing = append(work.missing, i)
		}
	}
}

// whole is the number of the unit that the slot is of.
func (s *unitSlot) whole() int64 { return int64(s.number)*rewrite.UnitPlace + int64(s.hash) }

// put is the number of a unit, which it gets here if it has none.
func (u *Numbers) put(text []byte, h uint64, part uint32) (int64, error) {
	s, tag := &u.shards[h>>56], uint32(h>>24)
	if s.used*4 >= len(s.slots)*3 {
		if err := u.grow(s); err != nil {
			return 0, err
		}
	}
	head := headOf(text)
	slot := &s.slots[s.find(text, &head, tag)]
	if slot.number == 0 {
		from := len(s.texts)
		if head[0] == isLong {
			room := int64(cap(s.texts))
			s.texts = append(binary.AppendUvarint(s.texts, uint64(len(text))), text...)
			if grown := int64(cap(s.texts)) - room; grown > 0 && u.taken.Add(grown) > u.most || len(s.texts) > maxUnits {
				return 0, ErrMany
			}
		}
		if u.next++; u.next > maxUnits {
			return 0, ErrMany
		}
		*slot = unitSlot{tag, uint32(u.next), part, uint32(from), head}
		s.used++
	}
	return slot.whole(), nil
}

// find is the slot of a text, or the free one where it would be.
func (s *unitShard) find(text []byte, head *unitHead, tag uint32) uint32 {
	mask := uint32(len(s.slots) - 1)
	for at := tag & mask; ; at = (at + 1) & mask {
		slot := &s.slots[at]
		if slot.number == 0 {
			return at
		}
		if slot.tag != tag || slot.head != *head {
			continue
		}
		if head[0] != isLong {
			return at
		}
		length, n := binary.Uvarint(s.texts[slot.at:])
		if from := int(slot.at) + n; bytes.Equal(s.texts[from:from+int(length)], text) {
			return at
		}
	}
}

// grow doubles a shard's slots.
func (u *Numbers) grow(s *unitShard) error {
	old := s.slots
	length := max(2*len(old), firstSlots)
	if u.taken.Add(int64(length-len(old))*slotSize) > u.most {
		return ErrMany
	}
	s.slots = make([]unitSlot, length)
	mask := uint32(length - 1)
	for _, slot := range old {
		if slot.number == 0 {
			continue
		}
		at := slot.tag & mask
		for s.slots[at].number != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = slot
	}
	return nil
}

// unitHash is a text's part of the hash by which rows are ordered: of the MD5 of its first characters the first seven
// hexadecimal digits.
func unitHash(text []byte) uint32 {
	end := len(text)
	if end > policy.MaxKeyLength {
		at := 0
		for range policy.MaxKeyLength {
			if at >= len(text) {
				break
			}
			_, size := utf8.DecodeRune(text[at:])
			at += size
		}
		end = at
	}
	sum := md5.Sum(text[:end])
	return binary.BigEndian.Uint32(sum[:]) >> 4
}

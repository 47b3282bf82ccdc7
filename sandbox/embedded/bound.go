package embedded

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dataBound bounds the memory of a child by the system's own limit: DuckDB's bounds its tables and sorts, not what a string
// function builds (256 MB asked, 2.97 GB taken). RLIMIT_DATA counts what a process has mapped to write to; what it has merely
// reserved, as Go does with addresses, is not counted, so that a query can have what the policy says and no more.
type dataBound struct {
	base uint64 // what the child held before its first query; 0: the system does not tell
}

// lift takes the bound away, while the child takes in a catalog and public tables.
func (b *dataBound) lift() { setData(^uint64(0)) }

// set grants each query from now on so much beside what the child holds now.
func (b *dataBound) set(memory uint64) {
	if b.base = mapped(); b.base > 0 {
		setData(b.base + memory)
	}
}

// worn tells whether what earlier queries have left mapped keeps more than half of its memory from the next one. Neither
// Go nor DuckDB gives all of it back.
func (b *dataBound) worn(memory uint64) bool { return b.base > 0 && mapped() > b.base+memory/2 }

// setData sets the soft limit alone, which may be raised again.
func setData(bytes uint64) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_DATA, &limit) == nil {
		limit.Cur = min(bytes, limit.Max)
		_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &limit) // the address space is bounded as well
	}
}

// mapped is what RLIMIT_DATA counts: the sixth field of statm, in pages.
func mapped() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 6 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[5], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

package embedded

import (
	"bufio"
	"os"
	"strconv"
	"syscall"

	"github.com/dpproxy/dpproxy/sandbox"
)

// The child's side: it bounds itself before it reads anything, answers requests in turn, and ends with its input.

// ChildMain runs the sandbox's child and exits when this process was started as one; otherwise it returns at once. It
// must be called first in main, and in TestMain of tests that start an engine.
func ChildMain() {
	if len(os.Args) != 5 || os.Args[1] != childArgument {
		return
	}
	space, err1 := strconv.ParseUint(os.Args[2], 10, 64)
	memory, err2 := strconv.ParseUint(os.Args[3], 10, 64)
	rows, err3 := strconv.Atoi(os.Args[4])
	if err1 != nil || err2 != nil || err3 != nil {
		os.Exit(2)
	}
	limit := syscall.Rlimit{Cur: space, Max: space}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		os.Exit(2)
	}
	// No file that is opened from here on can be grown, and no core is left behind.
	none := syscall.Rlimit{}
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &none)
	_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &none)
	serve(&household{instances: map[string]*instance{}, memory: memory, maxRows: rows})
	os.Exit(0)
}

// serve answers requests in turn. The end of the input, which the parent's death brings about, ends the process even
// when a query is under way.
func serve(h *household) {
	requests := make(chan []byte)
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			body, err := readFrame(in)
			if err != nil {
				os.Exit(0)
			}
			requests <- body
		}
	}()
	out := bufio.NewWriter(os.Stdout)
	for body := range requests {
		answer := &reply{fault: sandbox.ErrBroken}
		if r, err := decodeRequest(body); err == nil {
			answer = h.answer(r)
		}
		if writeFrame(out, answer.encode()) != nil {
			return
		}
	}
}

// household is all that lives in a child: an instance for each dataset that was asked about. Requests come one at a
// time.
type household struct {
	instances map[string]*instance
	memory    uint64 // that a query may take
	maxRows   int
	bound     dataBound
}

func (h *household) answer(r *request) (out *reply) {
	defer func() {
		if recover() != nil {
			out = &reply{fault: sandbox.ErrBroken, worn: true}
		}
	}()
	if r.kind == askOpen {
		if old := h.instances[r.dataset]; old != nil {
			old.close()
			delete(h.instances, r.dataset)
		}
		if r.memory > 0 {
			h.memory = uint64(r.memory)
		}
		h.bound.lift()
		i, err := openInstance(h.memory, r.dataset, r.tables)
		if err != nil {
			return failed(err)
		}
		h.instances[r.dataset] = i
		h.bound.set(h.memory)
		return &reply{}
	}
	i := h.instances[r.dataset]
	if i == nil {
		return &reply{fault: sandbox.ErrBroken}
	}
	rows, err := i.run(r, h.maxRows, int64(h.memory/2))
	out = &reply{rows: rows}
	if err != nil {
		out = failed(err)
	}
	out.worn = h.bound.worn(h.memory) || out.fault == sandbox.ErrBroken // an engine in whom something broke may answer nobody any more
	return out
}

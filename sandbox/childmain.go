package sandbox

import (
	"bufio"
	"os"
	"strconv"
	"syscall"
)

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
	serve(&household{instances: map[string]*instance{}, memory: memory, mostRows: rows})
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
		answer := &reply{fault: errBroken}
		if r, err := decodeRequest(body); err == nil {
			answer = h.answer(r)
		}
		if writeFrame(out, answer.encode()) != nil {
			return
		}
	}
}

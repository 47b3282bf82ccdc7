package kit

import (
	"flag"
	"syscall"
	"testing"
)

// Update has the documents that hold what the program prints written anew, and golden files.
var Update = flag.Bool("update", false, "write the documents and golden files that hold what the program prints anew: the tour (README.md, docs/tour.md) and docs/mechanisms.md from a million people")

// Demo starts `dpproxy demo` on a free port.
func Demo(t *testing.T, dir, rows string) *Program {
	t.Helper()
	p := &Program{T: t}
	p.Start([]string{"demo", "--dir", dir, "--rows", rows, "--listen", "127.0.0.1:0"})
	t.Cleanup(func() { p.Stop(syscall.SIGKILL) })
	return p
}

package cluster

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/internal/daemon"
)

// attributes have the server run as its owner, end with this process and, apart, in a network without an interface.
// Its socket is a file, and found from any.
func attributes(owner *syscall.Credential, apart bool) *syscall.SysProcAttr {
	attr := daemon.Attr(owner, syscall.SIGQUIT)
	if apart && owner != nil {
		attr.Cloneflags = syscall.CLONE_NEWNET
	}
	return attr
}

// End kills a session that has not ended by itself in time. PostgreSQL then ends its other sessions too, and goes on.
func (s *Server) End(pid uint32, grace time.Duration) {
	for until := time.Now().Add(grace); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if !s.has(pid) {
			return
		}
	}
	if s.has(pid) {
		_ = syscall.Kill(int(pid), syscall.SIGKILL)
	}
}

// has reports whether a process is one of the cluster's.
func (s *Server) has(pid uint32) bool {
	fields := statOf(pid, "stat")
	for i, f := range fields { // the name before may hold blanks: the parent is behind the state behind ")"
		if strings.HasSuffix(f, ")") && i+2 < len(fields) {
			return fields[i+1] != "Z" && (fields[i+2] == strconv.FormatInt(s.pid.Load(), 10) || s.left(pid))
		}
	}
	return false
}

// left reports whether a process is of this server's earlier processes, whose first one was killed: one that computes
// does not notice, and no server starts beside it. As no other user's it is known by its user, else by its directory.
func (s *Server) left(pid uint32) bool {
	proc := fmt.Sprintf("/proc/%d", pid)
	if s.owner != nil {
		var stat syscall.Stat_t
		return syscall.Stat(proc, &stat) == nil && stat.Uid == s.owner.Uid
	}
	in, err1 := os.Stat(proc + "/cwd")
	own, err2 := os.Stat(s.data())
	return err1 == nil && err2 == nil && os.SameFile(in, own)
}

func statOf(pid uint32, file string) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

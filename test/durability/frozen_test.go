package durability

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// What is frozen has not gone: it takes connections, or opens files, and says nothing.

// relay is in front of a server and carries what is sent, unless it is frozen.
type relay struct {
	t        *testing.T
	listener net.Listener
	to       string

	mu     sync.Mutex
	thawed sync.Cond
	frozen bool
	conns  []net.Conn
}

// frozenBehind has a policy reach a server through a relay, which away freezes.
func frozenBehind(t *testing.T, server *pgtest.Server, path string) (away, back func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, listener: l, to: fmt.Sprintf("127.0.0.1:%d", server.Port)}
	r.thawed.L = &r.mu
	go r.accept()
	t.Cleanup(r.close)
	kit.Edit(t, path, r.to, l.Addr().String())
	return func() { r.freeze(true) }, func() { r.freeze(false) }
}

func (r *relay) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.to)
		if err != nil {
			r.t.Error(err)
			return
		}
		r.mu.Lock()
		r.conns = append(r.conns, from, to)
		r.mu.Unlock()
		go r.carry(from, to)
		go r.carry(to, from)
	}
}

func (r *relay) carry(from, to net.Conn) {
	defer to.Close()
	for part := make([]byte, 1<<16); ; {
		n, err := from.Read(part)
		r.mu.Lock()
		for r.frozen {
			r.thawed.Wait()
		}
		r.mu.Unlock()
		if n > 0 {
			_, _ = to.Write(part[:n]) // whoever is gone needs nothing
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) freeze(frozen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = frozen
	r.thawed.Broadcast()
}

func (r *relay) close() {
	r.freeze(false)
	r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
}

func layFrozenDatabase(t *testing.T) faulty {
	server := pgtest.Start(t)
	path, _ := kit.Postgres(t, server, plenty, 0)
	away, back := frozenBehind(t, server, path)
	return faulty{path, away, back, nil}
}

func layFrozenLedger(t *testing.T) faulty {
	path, server, _ := sharedLedger(t)
	away, back := frozenBehind(t, server, path)
	return faulty{path, away, back, nil}
}

// layFrozenDisk has the ledger on a file system of its own, which is suspended.
func layFrozenDisk(t *testing.T) faulty {
	dir := t.TempDir()
	image, disk := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	run := func(name string, args ...string) error {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return err
	}
	var err error
	for _, step := range []func() error{
		func() error { return os.Mkdir(disk, 0o700) },
		func() error { return os.WriteFile(image, make([]byte, 16<<20), 0o600) },
		func() error { return run("mkfs.ext4", "-q", image) },
		func() error { return run("mount", "-o", "loop", image, disk) },
	} {
		if err = step(); err != nil {
			t.Skipf("no file system can be mounted here: %v", err)
		}
	}
	t.Cleanup(func() { _ = run("umount", "-l", disk) })
	freeze := func(how string) func() {
		return func() {
			if err := run("fsfreeze", how, disk); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() { _ = run("fsfreeze", "-u", disk) })
	path := kit.DuckDBIn(t, t.TempDir(), plenty, 0)
	kit.Edit(t, path, "sqlite:ledger.db", "sqlite:"+filepath.Join(disk, "ledger.db"))
	return faulty{path, freeze("-f"), freeze("-u"), nil}
}

// layPipe has a pipe, which nobody writes, come into the policy file's place.
func layPipe(t *testing.T) faulty {
	path := kit.DuckDBIn(t, t.TempDir(), plenty, 0)
	put := func(from string) {
		if err := os.Rename(from, path); err != nil {
			t.Fatal(err)
		}
	}
	return faulty{path, func() {
		if err := os.Link(path, path+".kept"); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path+".pipe", 0o600); err != nil {
			t.Fatal(err)
		}
		put(path + ".pipe")
	}, func() { put(path + ".kept") }, nil}
}

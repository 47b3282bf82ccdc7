package ledger

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
	"go.uber.org/goleak"

	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
)

// faulty is a file system that can be made to fail from the n-th write or flush on, until it is made to recover.
type faulty struct {
	vfs.VFSFilename
	count atomic.Int64 // writes and flushes so far
	from  atomic.Int64 // the first that fails; 0 means none
	full  atomic.Bool  // fail with "no space", and writes only
	once  atomic.Bool  // that one only: what a kernel does that reports a lost page once
	after atomic.Bool  // fail after the work is done: an unknown outcome
}

func newFaulty(t *testing.T) (*faulty, string) {
	v := &faulty{VFSFilename: vfs.Find("").(vfs.VFSFilename)}
	name := "faulty-" + filepath.Base(t.TempDir()) + fmt.Sprint(time.Now().UnixNano())
	vfs.Register(name, v)
	t.Cleanup(func() { vfs.Unregister(name) })
	return v, name
}

// onVFS is the operating system's disk, where SQLite's own files are on a file system of a test.
type onVFS struct {
	store.OSDisk
	name string
}

func (d onVFS) VFS() string { return d.name }

// arm makes the k-th write or flush from now fail.
func (v *faulty) arm(k int64) { v.from.Store(v.count.Load() + k) }
func (v *faulty) heal()       { v.from.Store(0) }

func (v *faulty) hit(flush bool, work func() error) error {
	n, from := v.count.Add(1), v.from.Load()
	bad := from != 0 && (n == from || n > from && !v.once.Load())
	switch {
	case !bad || v.full.Load() && flush:
		return work()
	case v.full.Load():
		return sqlite3.FULL
	case v.after.Load():
		if err := work(); err != nil {
			return err
		}
	}
	if flush {
		return sqlite3.IOERR_FSYNC
	}
	return sqlite3.IOERR_WRITE
}

func (v *faulty) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, out, err := v.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, out, err
	}
	return &faultyFile{f, v}, out, nil
}

type faultyFile struct {
	vfs.File
	v *faulty
}

func (f *faultyFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *faultyFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.v.hit(false, func() error { n, err = f.File.WriteAt(p, off); return err })
	return n, err
}

func (f *faultyFile) Truncate(size int64) error {
	return f.v.hit(false, func() error { return f.File.Truncate(size) })
}

func (f *faultyFile) Sync(flags vfs.SyncFlag) error {
	return f.v.hit(true, func() error { return f.File.Sync(flags) })
}

// patiently repeats a call that fails because the ledger is not available, for a minute at most.
func patiently(t *testing.T, do func() error) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); ; {
		err := do()
		if err == nil {
			return
		}
		if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrLocked) || time.Now().After(end) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// T27, T28: the disk fails at each possible write or flush of a purchase and its save, in four ways. No receipt and no
// release come from the ledger while it fails; when the disk is back it serves again without help, and has every charge
// that it acknowledged.
func TestDiskFaults(t *testing.T) {
	for _, way := range []string{"eio", "eio once", "eio after the work", "full"} {
		t.Run(way, func(t *testing.T) {
			reached := true
			for k := int64(1); reached; k++ {
				reached = faultAt(t, way, k)
				if k > 400 {
					t.Fatal("no end of writes")
				}
			}
		})
	}
}

func faultAt(t *testing.T, way string, k int64) (reached bool) {
	v, name := newFaulty(t)
	f := open(t, place(t), Options{Disk: onVFS{name: name}, again: time.Millisecond})
	defer f.Close()
	adopt(t, f, census())
	buy(t, f, "alice", item(1, eps(100)), 1)
	acked := int64(100)
	v.once.Store(way == "eio once")
	v.after.Store(way == "eio after the work")
	v.full.Store(way == "full")
	v.arm(k)

	var r *Receipt
	out, err := f.Charge(ctx, request("alice", item(2, eps(10))))
	if err != nil {
		wantFault(t, err, way)
		v.heal()
		patiently(t, func() error {
			out, err = f.Charge(ctx, request("alice", item(2, eps(10))))
			return err
		})
	}
	r = out[0].Receipt
	acked += 10
	if err := r.Spend(r.digest); err != nil {
		t.Fatal(err)
	}
	id, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(7, 8, 9)})
	if err != nil {
		wantFault(t, err, way)
		v.heal()
		patiently(t, func() error {
			id, err = f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(7, 8, 9)})
			return err
		})
	}
	reached = v.from.Load() == 0 || v.count.Load() >= v.from.Load()
	v.heal()
	if got, err := f.Load(ctx, "alice", id); err != nil || len(got.Noisy.Value().Observations) != 3 {
		t.Fatalf("fault at %d: loaded %+v, %v", k, got, err)
	}
	if own, pool := spent(t, f, "alice"); own < acked || own != pool || own > acked+10 {
		t.Fatalf("fault at %d: acknowledged %d, the account says %d and %d", k, acked, own, pool)
	}
	patiently(t, func() error { _, err := f.Charge(ctx, request("alice", item(3, eps(1)))); return err })
	verify(t, f)
	return reached
}

func wantFault(t *testing.T, err error, way string) {
	t.Helper()
	wantErr(t, err, ErrUnavailable)
	if way == "full" {
		wantErr(t, err, ErrFull)
	}
}

// Rule 5, as far as the ledger goes: an answer that could not be saved at once is saved later, once, whatever became of
// the first try.
func TestRule5SaveIsTriedAgain(t *testing.T) {
	v, name := newFaulty(t)
	f := open(t, place(t), Options{Disk: onVFS{name: name}, again: time.Millisecond})
	adopt(t, f, census())
	r := charge(t, f, request("alice", item(1, eps(1))))[0].Receipt
	r.Spend(r.digest)
	v.after.Store(true)
	v.arm(1)
	_, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(3)})
	wantErr(t, err, ErrUnavailable)
	_, err = f.Charge(ctx, request("alice", item(2, eps(1))))
	wantErr(t, err, ErrUnavailable)
	v.heal()
	patiently(t, func() error { _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(3)}); return err })
	if held := f.Holdings("alice", "census"); len(held) != 1 {
		t.Fatalf("held %+v", held)
	}
	verify(t, f)
}

// A checkpoint that fails once is not passed over: the ledger is opened anew.
func TestCheckpointFault(t *testing.T) {
	v, name := newFaulty(t)
	f := open(t, place(t), Options{Disk: onVFS{name: name}, again: 300 * time.Millisecond})
	adopt(t, f, census())
	big := make([]int64, 1<<19)
	for i := range big {
		big[i] = int64(i) << 40
	}
	r := charge(t, f, request("alice", item(1, eps(1))))[0].Receipt
	r.Spend(r.digest)
	v.once.Store(true)
	f.store.(*sqlite.Store).Conn.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		if f.store.(*sqlite.Store).Pages = pages; pages > sqlite.CheckpointAt {
			v.arm(1)
		}
		return nil
	})
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(big...)}); err != nil {
		t.Fatal(err)
	}
	_, err := f.Charge(ctx, request("alice", item(2, eps(1))))
	wantErr(t, err, ErrUnavailable)
	patiently(t, func() error { _, err := f.Charge(ctx, request("alice", item(2, eps(1)))); return err })
	wantSpent(t, f, "alice", 2, 2)
	verify(t, f)
}

// T28 on a real file system without space: charges fail with ErrFull, nothing is lost, and it serves again once there
// is space, without any repair.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small file system: %v: %s", err, out)
	}
	defer exec.Command("umount", "-l", dir).Run()
	f := open(t, filepath.Join(dir, "test.ledger"), Options{})
	adopt(t, f, census())
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err = filler.Write(make([]byte, 4096)); err == nil; {
		_, err = filler.Write(make([]byte, 4096))
	}
	filler.Close()
	wantErr(t, err, syscall.ENOSPC)
	acked := int64(0)
	for n := byte(0); err == nil || acked == 0; n++ {
		if _, err = f.Charge(ctx, request("alice", item(n, eps(10)))); err != nil {
			break
		}
		acked += 10
	}
	wantErr(t, err, ErrFull)
	own, _ := spent(t, f, "alice")
	if own != acked {
		t.Fatalf("acknowledged %d, account %d", acked, own)
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	patiently(t, func() error { _, err := f.Charge(ctx, request("alice", item(250, eps(10)))); return err })
	if own, _ := spent(t, f, "alice"); own < acked+10 {
		t.Fatalf("acknowledged %d, account %d", acked+10, own)
	}
	verify(t, f)
	f.Close()
}

// Another program that writes into the file is noticed before anything is charged on top of it.
func TestForeignWriterIsNoticed(t *testing.T) {
	f := fresh(t, Options{}, census())
	charge(t, f, request("alice", item(1, eps(100))))
	conn, err := sqlite3.Open("file:" + pathOf(f))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec("UPDATE account SET eps = 0"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for range 2 {
		if out, err := f.Charge(ctx, request("alice", item(2, eps(1)))); err == nil {
			t.Fatalf("charged %+v", out)
		}
		time.Sleep(2 * reopenNotSoon)
	}
	_, err = f.Charge(ctx, request("alice", item(2, eps(1))))
	wantErr(t, err, ErrCorrupt)
	if _, err := f.Verify(ctx); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("verify: %v", err)
	}
}

func TestFailedOpenLeavesNothingBehind(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	v, name := newFaulty(t)
	path := place(t)
	for k := int64(1); k < 40; k++ {
		v.arm(k)
		if l, err := Open(ctx, "sqlite:"+path, Options{Disk: onVFS{name: name}}); err == nil {
			l.Close()
		}
		v.heal()
	}
	f := open(t, path, Options{})
	adopt(t, f, census())
	f.Close()
	goleak.VerifyNone(t, ignore)
	for _, url := range []string{"", "sqlite:", "postgres://x", path} {
		if _, err := Open(ctx, url, Options{}); err == nil {
			t.Errorf("opened %q", url)
		}
	}
	if _, err := Open(ctx, "sqlite:"+filepath.Join(path, "nowhere", "x"), Options{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("opened in a directory that does not exist: %v", err)
	}
}

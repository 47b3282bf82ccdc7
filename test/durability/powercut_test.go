package durability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/test/kit"
)

// asker asks one fresh question after another until it is stopped, and keeps a journal of the answers.
type asker struct {
	mu      sync.Mutex
	answers []heard
	refused int
	stop    chan struct{}
	ended   chan error
}

// heard is one answer and when its question left and it came.
type heard struct{ asked, came time.Time }

// keepAsking asks as alice until stop, beginning with one of ten thousand questions; a refusal of class DP003 is waited
// out.
func keepAsking(w *kit.Wire, first int) *asker {
	k := &asker{stop: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		for q := first; ; q++ {
			select {
			case <-k.stop:
				k.ended <- nil
				return
			default:
			}
			asked := time.Now()
			a, err := w.TryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, q%100, 1000*(q/100+1)))
			k.mu.Lock()
			switch {
			case err != nil:
				k.mu.Unlock()
				k.ended <- err
				return
			case a.Err == nil:
				k.answers = append(k.answers, heard{asked, time.Now()})
			case a.Err.Code == "DP003":
				k.refused++
				q-- // the same again
			default:
				k.mu.Unlock()
				k.ended <- a.Err
				return
			}
			k.mu.Unlock()
			if a.Err != nil {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}()
	return k
}

func (k *asker) heard() []heard {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answers[:len(k.answers):len(k.answers)]
}

// end stops the asking and returns what was heard.
func (k *asker) end(t *testing.T) []heard {
	t.Helper()
	close(k.stop)
	if err := <-k.ended; err != nil {
		t.Fatal(err)
	}
	return k.answers
}

// mounted mounts an image of a file system, or skips the test where that cannot be done.
func mounted(t *testing.T, image string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mounted")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Skipf("an image cannot be mounted here, which needs root and loop devices: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() }) // it may be unmounted already
	return dir
}

// TestT26PowerCuts: the ledger lies in an image of a disk. The image is copied while the proxy is stopped at random
// moments: what was not flushed is not in the copy, as after a power cut. In each copy the ledger opens, verifies, and
// has the charge and the release of every answer that had arrived before.
func TestT26PowerCuts(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk")
	if out, err := exec.Command("sh", "-c", "truncate -s 48M "+image+" && mkfs.ext4 -q "+image).CombinedOutput(); err != nil {
		t.Skipf("no ext4 image can be made here: %v: %s", err, out)
	}
	disk := mounted(t, image)
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10000", Cap: "10000"}, 0)
	kit.Edit(t, path, "sqlite:ledger.db", "sqlite:"+filepath.Join(disk, "ledger.db"))
	p := kit.Serve(t, path)
	k := keepAsking(p.Connect("alice", "lab"), 0)
	kit.Eventually(t, "a first answer", func() bool { return len(k.heard()) > 0 })
	random := rand.New(rand.NewPCG(26, 26))
	copies, whole, lost := threats.Length(12, 200), 0, 0
	for c := range copies {
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond)
		if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		seen := len(k.heard())
		cut := filepath.Join(t.TempDir(), "cut")
		out, err := exec.Command("cp", "--sparse=always", image, cut).CombinedOutput()
		if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		charges, saved := cutLedger(t, cut)
		if charges < seen || saved < seen {
			t.Errorf("copy %d: %d answers had arrived, it has %d charges and %d releases", c, seen, charges, saved)
			lost += seen - min(charges, saved)
		} else {
			whole++
		}
	}
	answers := k.end(t)
	threats.Reached(t, "T26", "%d of %d copies hold every answer seen before, %d answers in all, %d lost", whole, copies, len(answers), lost)
}

// cutLedger opens the ledger of a copy and counts its charges and its releases that can be read.
func cutLedger(t *testing.T, image string) (charges, saved int) {
	t.Helper()
	dir := mounted(t, image)
	ctx := context.Background()
	l, err := ledger.Open(ctx, "sqlite:"+filepath.Join(dir, "ledger.db"), ledger.Options{})
	if err != nil {
		t.Fatalf("the ledger of a copy does not open: %v", err)
	}
	if _, err := l.Verify(ctx); err != nil {
		t.Error(err)
	}
	list, err := l.Charges(ctx, "alice", "lab", 1<<20)
	if err != nil {
		t.Error(err)
	}
	for _, r := range l.Holdings("alice", "lab") {
		if _, err := l.Load(ctx, "alice", r.ID); err != nil {
			t.Error(err)
		}
		saved++
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	_ = os.Remove(image) // it is in a directory of the test
	return len(list), saved
}

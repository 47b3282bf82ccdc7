package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/ledger"
)

// TestFound runs seeds that once broke a rule.
func TestFound(t *testing.T) {
	shm := memory.Dir(t)
	for _, s := range []uint64{
		66124, // a flush failed while a ledger was made, which then kept a rollback journal: a power cut took a save back
	} {
		if out := runSeed(t, s, shm); out.Broken != "" {
			t.Errorf("seed %d: %s\n%s", s, out.Broken, out.Schedule)
		}
	}
}

// TestAlwaysAheadLog: whichever flush or write fails once while a ledger is made, the ledger that opens has a
// write-ahead log. With a rollback journal, whose removal is not flushed, a power cut takes back what was acknowledged.
func TestAlwaysAheadLog(t *testing.T) {
	shm := memory.Dir(t)
	for kind := FlushFails; kind <= WriteFails; kind++ {
		for after := range 24 {
			synctest.Test(t, func(t *testing.T) {
				d := NewDisk(rand.New(rand.NewPCG(1, 1)))
				d.Fail(Fault{Kind: kind, After: after, Once: true})
				var l ledger.Ledger
				err := error(nil)
				for try := range 3 {
					m := d.Mount(rand.New(rand.NewPCG(1, 2)), fmt.Sprintf("ahead-%d-%d-%d", kind, after, try), shm)
					defer m.Unmount()
					if l, err = ledger.Open(background, "sqlite:"+ledgerPath, ledger.Options{Disk: m}); err == nil {
						break
					}
				}
				if err != nil {
					t.Fatalf("%v after %d: %v", kind, after, err)
				}
				if d.names[ledgerPath+"-wal"] == nil || d.names[ledgerPath+"-journal"] != nil {
					t.Errorf("%v after %d: the ledger has no write-ahead log", kind, after)
				}
				if err := l.Close(); err != nil && d.Failures() == 0 {
					t.Error(err)
				}
			})
		}
	}
}

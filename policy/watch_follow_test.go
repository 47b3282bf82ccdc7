package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/internal/deadline"
)

// What a policy's file may be when it is read.
const (
	stateGood = iota
	stateOther
	stateBroken
	stateGone
	stateHanging
	states
)

// TestFollowsWhateverTheFileIs draws what becomes of a file, change after change, with a fixed seed: each state in
// which it cannot be taken in is reported, nothing depends on a read that does not return, and the file's last good
// text is in force soon after it can be read.
func TestFollowsWhateverTheFileIs(t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 5))
	for draw := range 100 {
		synctest.Test(t, func(t *testing.T) {
			var state int
			returns := make(chan struct{})
			texts := map[int]string{stateGood: withCap(t, "20"), stateOther: withCap(t, "21"), stateBroken: "users: ]"}
			reported, inForce := 0, [sha256.Size]byte{}
			timer := time.NewTimer(time.Hour)
			w := &follower{path: "policy.yaml", gate: deadline.NewGate(), later: timer, onError: func(error) { reported++ },
				onChange: func(_ context.Context, p *Policy) error { inForce = p.Digest; return nil },
				load: func(string) (of followed, err error) {
					switch state {
					case stateGone:
						return of, fs.ErrNotExist
					case stateHanging:
						<-returns
						return of, errors.New("nobody waits for it any more")
					}
					of.data = []byte(texts[state])
					return of, nil
				}}
			var seen []int
			for range 1 + rng.IntN(8) {
				if state == stateHanging {
					close(returns)
					returns = make(chan struct{})
				}
				state = rng.IntN(states)
				seen = append(seen, state)
				began, before := time.Now(), reported
				w.reload(t.Context(), rng.IntN(2) == 0)
				synctest.Wait()
				if took := time.Since(began); took > deadline.Files {
					t.Errorf("draw %d, %v: a read is waited for %v", draw, seen, took)
				}
				if bad := state >= stateBroken; bad && reported == before && (len(seen) < 2 || seen[len(seen)-2] != state) {
					t.Errorf("draw %d, %v: not told", draw, seen)
				}
			}
			if state == stateHanging {
				state = stateGood
				close(returns)
				select {
				case <-timer.C: // nothing tells of a disk's return
					w.reload(t.Context(), false)
				case <-time.After(time.Minute):
					t.Errorf("draw %d, %v: it is not read again", draw, seen)
				}
			}
			synctest.Wait()
			if want := texts[state]; state < stateBroken && inForce != sha256.Sum256([]byte(want)) {
				t.Errorf("draw %d, %v: another text is in force", draw, seen)
			}
			w.end()
		})
	}
}

// TestWatchAPipe: what is no file in the policy's place is reported, and is no reason not to read what comes after it.
func TestWatchAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	put(t, path, withCap(t, "20"))
	w := watch(t, path)
	w.wantCap(20e6)
	if err := errors.Join(syscall.Mkfifo(path+".pipe", 0o600), os.Rename(path+".pipe", path)); err != nil {
		t.Fatal(err)
	}
	if err := w.failure(); errors.Is(err, deadline.ErrExceeded) {
		t.Errorf("a pipe is waited for: %v", err)
	}
	swap(t, path, withCap(t, "21"))
	w.wantCap(21e6)
}

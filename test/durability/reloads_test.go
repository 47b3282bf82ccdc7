package durability

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/test/kit"
)

// replaceFile puts a text in the place of a file at once.
func replaceFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestT37PolicyReloads: while 32 connections ask, the policy becomes strict and lax by turns: one row a person at ε
// 0.1, or three at ε 0.2; now and then its file is broken, or half of it. Each release has the noise of the policy that
// its charge names, and nobody is without a policy, or has to ask again.
func TestT37PolicyReloads(t *testing.T) {
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "100000", Cap: "100000"}, 0)
	users := kit.NamedUsers(t, path, 16)
	strict, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lax := []byte(strings.NewReplacer("max_rows_per_unit: 1\n", "max_rows_per_unit: 3\n", "{epsilon: 0.1, max", "{epsilon: 0.2, max").Replace(string(strict)))
	scales := map[ledger.Digest]float64{sha256.Sum256(strict): 10, sha256.Sum256(lax): 15}
	p := kit.Serve(t, path)
	var wait sync.WaitGroup
	var answers atomic.Int64
	stop := make(chan struct{})
	for c := range 32 {
		w := p.Connect(users[c%len(users)], "lab")
		wait.Go(func() {
			for q := 0; ; q++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := w.TryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, 18+c+q%40, 1000*(1+q/40)))
				switch {
				case err != nil:
					t.Errorf("a connection ended: %v", err)
					return
				case a.Err == nil:
					answers.Add(1)
				default:
					t.Errorf("%v", a.Err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	reloads := threats.Length(60, 1000)
	for i := 0; i < reloads || i < 20*reloads && strings.Count(p.LogText(), "policy reloaded") < reloads/8; i++ {
		switch text := [][]byte{strict, lax}[i%2]; {
		case i%10 == 4:
			replaceFile(t, path, []byte("users: ]"))
		case i%10 == 9:
			_ = os.WriteFile(path, text[:len(text)/2], 0o600)
		default:
			replaceFile(t, path, text)
		}
		if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(10+i*7%50) * time.Millisecond)
	}
	close(stop)
	wait.Wait()
	taken := strings.Count(p.LogText(), "policy reloaded")
	p.Stop(syscall.SIGTERM)
	matched, mixed, versions := notedScales(t, path, users, scales)
	if mixed > 0 || matched == 0 || taken < reloads/8 || len(versions) != 2 {
		t.Errorf("%d releases match their policy, %d do not; %d reloads took effect, charges name %d policies", matched, mixed, taken, len(versions))
	}
	threats.Reached(t, "T37", "%d signals, %d reloads took effect under 32 connections with %d answers: %d of %d releases have the noise of the policy that their charge names",
		reloads, taken, answers.Load(), matched, matched+mixed)
}

// notedScales compares each release's noise with that of the policy under which it was charged.
func notedScales(t *testing.T, path string, users []string, scales map[ledger.Digest]float64) (matched, mixed int, versions map[ledger.Digest]int) {
	t.Helper()
	ctx := context.Background()
	l, err := ledger.Open(ctx, "sqlite:"+filepath.Join(filepath.Dir(path), "ledger.db"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	versions = map[ledger.Digest]int{}
	for _, user := range users {
		charges, err := l.Charges(ctx, user, "lab", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		noise := map[time.Time]float64{}
		for _, r := range l.Holdings(user, "lab") {
			noise[r.At.UTC()] = float64(r.Item.Spec.Counts().Noise.Num) / float64(r.Item.Spec.Counts().Noise.Den)
		}
		for _, c := range charges {
			versions[c.Policy]++
			if scale, ok := noise[c.At.UTC()]; ok && scale == scales[c.Policy] {
				matched++
			} else {
				mixed++
				t.Logf("%s at %v: cost %v, scale %v", user, c.At, c.Cost, scale)
			}
		}
	}
	return matched, mixed, versions
}

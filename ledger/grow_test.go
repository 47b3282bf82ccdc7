package ledger

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// growing is a shared release over ten cells, each observed once and in blocks of three.
func growing(n byte) Item {
	it := shared(n, eps(1e6))
	it.Kind, it.Name = "range", "people_hired"
	it.Spec = mechanisms.Spec{Counters: 1, Cells: 10, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.ContinualTree, Radices: []int{3}},
		Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 2, Den: 1}}}
	return it
}

// grow saves the next step, whose observations are the numbers from first on.
func grow(t testing.TB, f *keeper, user string, id int64, through int, first int64) {
	t.Helper()
	r, p, err := f.Grow(ctx, user, id, through)
	if err != nil || r == nil {
		t.Fatalf("receipt %v of step %v, error %v", r, p, err)
	}
	s := growing(0).Spec
	var values []int64
	for i := range s.Known(p.To) - s.Known(p.From) {
		values = append(values, first+int64(i))
	}
	keep(t, f, r, values...)
}

func loaded(t testing.TB, f *keeper, user string, id int64) []int64 {
	t.Helper()
	r, err := f.Load(ctx, user, id)
	if err != nil {
		t.Fatal(err)
	}
	return r.Noisy.Value().Observations
}

func TestGrowth(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	id := buy(t, f, "alice", growing(1))
	if got := loaded(t, f, "alice", id); len(got) != 0 {
		t.Fatalf("before any step it has %v", got)
	}
	grow(t, f, "alice", id, 2, 10)
	grow(t, f, "alice", id, 4, 20)
	want := []int64{10, 11, 20, 21, 22} // two cells; one, its block, one
	if got := loaded(t, f, "alice", id); !slices.Equal(got, want) {
		t.Fatalf("it has %v, must have %v", got, want)
	}
	if r, _, err := f.Grow(ctx, "alice", id, 4); r != nil || err != nil {
		t.Fatalf("a second receipt for the same cells: %v, %v", r, err)
	}
	if _, _, err := f.Grow(ctx, "bob", id, 5); err == nil {
		t.Fatal("bob, who has not paid, had it grow")
	}
	if out := charge(t, f, request("bob", growing(1))); out[0].Receipt != nil || out[0].ID != id || out[0].Charged != eps(1e6) {
		t.Fatalf("bob's share: %+v", out[0])
	}
	grow(t, f, "bob", id, 99, 30)
	own, pool := spent(t, f, "alice")
	if own != 1e6 || pool != 1e6 {
		t.Fatalf("alice has spent %d, the cap %d: growing must cost nothing", own, pool)
	}
	whole := loaded(t, f, "alice", id)
	verify(t, f)
	f.Close()
	f = open(t, path, Options{})
	adopt(t, f, census())
	if got := loaded(t, f, "bob", id); !slices.Equal(got, whole) || f.Grown(id) != 10 {
		t.Fatalf("after a restart it has %v of %d cells, must have %v of 10", got, f.Grown(id), whole)
	}
	if r, _, err := f.Grow(ctx, "alice", id, 10); r != nil || err != nil {
		t.Fatalf("grown again after the horizon: %v, %v", r, err)
	}
}

// TestGrowthOfOneAtATime: of many who ask for one step one draws it, and the others wait.
func TestGrowthOfOneAtATime(t *testing.T) {
	f := fresh(t, Options{}, census())
	id := buy(t, f, "alice", growing(1))
	var drawn atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			r, _, err := f.Grow(ctx, "alice", id, 2)
			if err != nil {
				t.Error(err)
			}
			if r != nil {
				drawn.Add(1)
				keep(t, f, r, 1, 2)
			}
		})
	}
	if all.Wait(); drawn.Load() != 1 {
		t.Fatalf("%d drew one step", drawn.Load())
	}
}

// TestGrowthGivenUp: what was not saved is drawn by the next; a receipt is for its own step, and is saved once.
func TestGrowthGivenUp(t *testing.T) {
	f := fresh(t, Options{}, census())
	id := buy(t, f, "alice", growing(1))
	r, p, err := f.Grow(ctx, "alice", id, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Spend(growing(1).Digest); err == nil {
		t.Fatal("a step's receipt was spent for the whole release")
	}
	if err := r.Spend(p.Digest(growing(1).Digest)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(1, 2, 3)}); err == nil {
		t.Fatal("saved with an observation too many")
	}
	f.Abandon(r)
	grow(t, f, "alice", id, 2, 40)
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(1, 2)}); err == nil {
		t.Fatal("a receipt given up was saved")
	}
	if got := loaded(t, f, "alice", id); !slices.Equal(got, []int64{40, 41}) {
		t.Fatalf("it has %v", got)
	}
	if _, _, err := f.Grow(ctx, "alice", buy(t, f, "alice", item(2, eps(1e5)), 5), 2); err == nil {
		t.Fatal("a count was grown")
	}
}

// TestGrowthEndsWithARollback: steps that an older copy of the ledger lacks were sent, and are never drawn again.
func TestGrowthEndsWithARollback(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	id := buy(t, f, "alice", growing(1))
	grow(t, f, "alice", id, 2, 10)
	old := path + ".old"
	if err := f.Backup(ctx, old); err != nil {
		t.Fatal(err)
	}
	grow(t, f, "alice", id, 3, 20)
	f = rolledBack(t, f, old)
	if _, _, err := f.Grow(ctx, "alice", id, 3); err == nil {
		t.Fatal("a step that was sent is drawn again")
	}
	if _, err := f.Load(ctx, "alice", id); err == nil {
		t.Fatal("a release of which steps are lost is still read")
	}
	verify(t, f)
	again := buy(t, f, "alice", growing(1))
	grow(t, f, "alice", again, 3, 50)
	if own, _ := spent(t, f, "alice"); own != 2e6 {
		t.Fatalf("the release bought anew has brought alice to %d", own)
	}
	verify(t, f)
}

// TestGrowthIsChecked: a row that does not follow is no row of a sound chain.
func TestGrowthIsChecked(t *testing.T) {
	f := fresh(t, Options{}, census())
	id := buy(t, f, "alice", growing(1))
	grow(t, f, "alice", id, 2, 10)
	body := func(id int64, from, to int, values ...int64) []byte {
		e := chain.Body()
		e.Int(id)
		e.Int(int64(from))
		e.Int(int64(to))
		e.Blob(chain.Release(mechanisms.Noisy{Observations: values}, nil))
		return e.Bytes()
	}
	ds := f.book.releases[id].ds
	for name, b := range map[string][]byte{
		"again": body(id, 0, 2, 1, 2), "a gap": body(id, 3, 4, 1), "backwards": body(id, 2, 1), "beyond": body(id, 2, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
		"no release": body(id+99, 0, 1, 1), "too few": body(id, 2, 3, 1), "rest": append(body(id, 2, 3, 1, 2), 0),
	} {
		if err := f.book.checkGrowth(ds, b); err == nil {
			t.Errorf("%s: taken for a step", name)
		}
	}
	if err := f.book.checkGrowth(ds, body(id, 2, 3, 1, 2)); err != nil {
		t.Error(err)
	}
}

// rolledBack puts an older copy in the ledger's place and opens it with the operator's consent.
func rolledBack(t *testing.T, f *keeper, old string) *keeper {
	t.Helper()
	path := pathOf(f)
	f.Close()
	data, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		os.Remove(path + suffix)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, "sqlite:"+path, Options{})
	wantErr(t, err, ErrRollback)
	f = open(t, path, Options{AcceptRollback: true})
	adopt(t, f, census())
	return f
}

// TestSessionsEndWithARollback: updates and positives that an older copy of the ledger does not know were used are not
// used a second time; nor is a release refined a second time towards the finest level that another refinement has
// shown.
func TestSessionsEndWithARollback(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	alarms := item(41, eps(1e5))
	alarms.Spec = mechanisms.Spec{Counters: 1, Cells: 1, Kind: &mechanisms.Alarm{Positives: 3, Contribution: privacy.Contribution{Rows: 1}, Cost: eps(1e5)}}
	session, run := buy(t, f, "alice", onlineItem()), buy(t, f, "alice", alarms)
	first, _ := begin(t, f, "alice")
	old := path + ".old"
	if err := f.Backup(ctx, old); err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{session, run} {
		if err := f.Extend(ctx, "alice", id, []byte{'h', 1}); err != nil {
			t.Fatal(err)
		}
	}
	buy(t, f, "alice", rung(200_000, 300_000, first), 1, 2)
	f = rolledBack(t, f, old)
	for range 2 {
		for name, id := range map[string]int64{"online release": session, "run of alarms": run} {
			if _, err := f.Load(ctx, "alice", id); err == nil {
				t.Errorf("an %s of which steps are lost goes on", name)
			}
			if _, err := f.Resume(ctx, "alice", id, []byte{'r'}); err == nil {
				t.Errorf("an %s of which steps are lost is restored", name)
			}
		}
		_, err := f.Charge(ctx, request("alice", rung(200_000, 300_000, first)))
		wantErr(t, err, ErrRefined)
		_, err = f.Finest(ctx, "alice", first)
		wantErr(t, err, ErrNotHeld)
		if _, err := f.Load(ctx, "alice", first); err != nil {
			t.Errorf("what was paid for is gone: %v", err)
		}
		for _, h := range f.Holdings("alice", "census") {
			if h.Item.Ladder != (Ladder{}) || h.Refined {
				t.Errorf("held is %+v", h)
			}
		}
		verify(t, f)
		f.Close()
		f = open(t, path, Options{})
		adopt(t, f, census())
	}
}

package ledger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// T30: an older copy put back is refused by name, every time, whether it is the file, or file and log.
func TestRollbackIsRefused(t *testing.T) {
	for range 20 {
		path := place(t)
		f := lived(t, path)
		old := snapshot(t, path)
		delete(old, "-witness")
		buy(t, f, "alice", item(99, eps(1)), 1)
		f.Close()
		lay(t, path, old)
		_, err := Open(ctx, "sqlite:"+path, Options{})
		wantErr(t, err, ErrRollback)
		_, err = Open(ctx, "sqlite:"+path, Options{VouchForLedger: true})
		wantErr(t, err, ErrRollback)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(path + suffix)
		}
		_, err = Open(ctx, "sqlite:"+path, Options{})
		wantErr(t, err, ErrRollback) // a ledger that is gone is the oldest copy
	}
}

// A fork: two histories from one copy. The witness has seen the other one.
func TestForkIsRefused(t *testing.T) {
	path := place(t)
	mark := filepath.Join(t.TempDir(), "witness")
	f := open(t, path, Options{Witness: mark})
	adopt(t, f, census())
	f.Close()
	copied := place(t)
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lay(t, copied, map[string][]byte{"": p})
	f = open(t, path, Options{Witness: mark})
	_, err = Open(ctx, "sqlite:"+copied, Options{Witness: mark})
	wantErr(t, err, ErrLocked) // both at once
	charge(t, f, request("alice", item(1, eps(1))))
	f.Close()
	_, err = Open(ctx, "sqlite:"+copied, Options{Witness: mark})
	wantErr(t, err, ErrRollback)
}

// An accepted rollback forfeits what the witness saw charged and the ledger does not hold, in every account: also in
// those that are opened later.
func TestAcceptedRollbackForfeits(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	charge(t, f, request("alice", item(1, eps(100))))
	old := snapshot(t, path)
	delete(old, "-witness")
	charge(t, f, request("bob", item(2, eps(30))))
	charge(t, f, request("carol", item(3, eps(7))))
	f.Close()
	lay(t, path, old)
	f = open(t, path, Options{AcceptRollback: true})
	wantSpent(t, f, "alice", 137, 137)
	wantSpent(t, f, "bob", 37, 137)
	charge(t, f, request("bob", item(2, eps(3))))
	wantSpent(t, f, "bob", 40, 140)
	verify(t, f)
	f.Close()
	f = open(t, path, Options{AcceptRollback: true}) // nothing is missing now
	wantSpent(t, f, "bob", 40, 140)
	zcdp := census()
	zcdp.ID, zcdp.Relations, zcdp.Accountant, zcdp.Neighbors = "second", []string{"public.second"}, privacy.ZCDP, privacy.ReplaceOne
	zcdp.Cap, zcdp.Budgets = rho(1e12), map[string]BudgetTerms{"*": {Limit: rho(1e12)}}
	adopt(t, f, census(), zcdp)
	pool, _, err := f.Cap(ctx, "second")
	if err != nil || pool != rho(4*(37*37+1)/2) {
		t.Fatalf("a new dataset's cap has spent %v, %v", pool, err)
	}
	verify(t, f)
}

// Without a readable witness nobody knows what is missing: refused, forfeited whole, or vouched for.
func TestLostWitness(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"missing": os.Remove,
		"empty":   func(p string) error { return os.Truncate(p, 0) },
		"garbage": func(p string) error { return os.WriteFile(p, make([]byte, 9000), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := place(t)
			f := open(t, path, Options{})
			adopt(t, f, census())
			charge(t, f, request("alice", item(1, eps(100))))
			lose := func() {
				f.Close()
				if err := spoil(path + "-witness"); err != nil {
					t.Fatal(err)
				}
			}
			lose()
			_, err := Open(ctx, "sqlite:"+path, Options{})
			wantErr(t, err, ErrWitness)
			f = open(t, path, Options{VouchForLedger: true})
			wantSpent(t, f, "alice", 100, 100)
			lose()
			f = open(t, path, Options{AcceptRollback: true})
			wantSpent(t, f, "alice", 3e6, 10e6)
			wantSpent(t, f, "bob", 3e6, 10e6)
			d := census()
			d.Cap, d.Budgets = eps(11e6), map[string]BudgetTerms{"alice": {Limit: eps(4e6)}}
			adopt(t, f, d) // the owner grants anew, in the chain's sight
			charge(t, f, request("alice", item(2, eps(1e6))))
			verify(t, f)
			f.Close()
			open(t, path, Options{})
		})
	}
}

// TestOlderCopyChargedAgain: an older copy that was put back and charged without its witness has lost all that the
// witness saw after it was made, and what was charged since does not make up for that. What was forfeited does: nothing
// is forfeited twice.
func TestOlderCopyChargedAgain(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	charge(t, f, request("ann", item(1, eps(10))))
	old := snapshot(t, path)
	charge(t, f, request("ann", item(2, eps(500))))
	f.Close()
	witness, err := os.ReadFile(path + "-witness")
	if err != nil {
		t.Fatal(err)
	}
	delete(old, "-witness")
	lay(t, path, old)
	f = open(t, path, Options{Witness: path + "-other", VouchForLedger: true})
	charge(t, f, request("ann", item(3, eps(900))))
	f.Close()
	for range 2 {
		if err := os.WriteFile(path+"-witness", witness, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Open(ctx, "sqlite:"+path, Options{})
		wantErr(t, err, ErrRollback)
		f = open(t, path, Options{AcceptRollback: true})
		wantSpent(t, f, "ann", 10+500+900, 10+500+900)
		verify(t, f)
		f.Close()
	}
}

// TestOlderCopyWhereTimeStoodStill: the ledger's own time stops while the clock is behind it, so that what an
// older copy was charged anew bears the time of what was lost. It does not make up for it either.
func TestOlderCopyWhereTimeStoodStill(t *testing.T) {
	path := place(t)
	c := newClock()
	f := open(t, path, Options{Clock: c.read})
	adopt(t, f, census())
	charge(t, f, request("ann", item(1, eps(10))))
	c.forward(time.Hour)
	charge(t, f, request("ann", item(2, eps(20))))
	old := snapshot(t, path)
	c.forward(-time.Hour)
	charge(t, f, request("ann", item(3, eps(500))))
	f.Close()
	witness, err := os.ReadFile(path + "-witness")
	if err != nil {
		t.Fatal(err)
	}
	delete(old, "-witness")
	lay(t, path, old)
	f = open(t, path, Options{Clock: c.read, Witness: path + "-other", VouchForLedger: true})
	charge(t, f, request("ann", item(4, eps(900))))
	f.Close()
	if err := os.WriteFile(path+"-witness", witness, 0o600); err != nil {
		t.Fatal(err)
	}
	f = open(t, path, Options{Clock: c.read, AcceptRollback: true})
	if own, _ := spent(t, f, "ann"); own < 10+20+500+900 {
		t.Errorf("%d spent, of %d that were charged at one time or another", own, 10+20+500+900)
	}
	verify(t, f)
}

// TestWholeChainsLackNothing: what a change of groups charged in a dataset, whose chain ends before it, is not taken
// for lost when another dataset's rows are.
func TestWholeChainsLackNothing(t *testing.T) {
	path := place(t)
	c := newClock()
	f := open(t, path, Options{Clock: c.read})
	second := census()
	second.ID, second.Relations = "second", []string{"public.second"}
	adopt(t, f, census(), second)
	c.forward(time.Second)
	charge(t, f, request("ann", item(1, eps(100))))
	charge(t, f, request("bob", item(2, eps(30))))
	c.forward(time.Second)
	team := census()
	team.Groups = map[string][]string{"team": {"ann", "bob"}}
	adopt(t, f, team, second)
	old := snapshot(t, path)
	delete(old, "-witness")
	c.forward(time.Second)
	r := request("cid", item(3, eps(7)))
	r.Dataset = "second"
	charge(t, f, r)
	f.Close()
	lay(t, path, old)
	f = open(t, path, Options{Clock: c.read, AcceptRollback: true})
	wantSpent(t, f, "cid", 7, 130+7)
	verify(t, f)
}

// A torn mark leaves the one before it.
func TestTornWitness(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	charge(t, f, request("alice", item(1, eps(100))))
	f.Close()
	whole, err := os.ReadFile(path + "-witness")
	if err != nil {
		t.Fatal(err)
	}
	for at := range []int{0, witnessPlace} {
		p := append([]byte(nil), whole...)
		p[at+40] ^= 1
		if err := os.WriteFile(path+"-witness", p, 0o600); err != nil {
			t.Fatal(err)
		}
		f := open(t, path, Options{})
		wantSpent(t, f, "alice", 100, 100)
		f.Close()
	}
}

func TestBackupAndRestore(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	id := buy(t, f, "alice", item(1, eps(100)), 4, 5)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := f.Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
	if err := f.Backup(ctx, copied); err == nil {
		t.Fatal("a backup was overwritten")
	}
	wantErr(t, Restore(ctx, copied, "sqlite:"+path, Options{}), ErrLocked)
	f.Close()
	if err := Restore(ctx, copied, "sqlite:"+path, Options{}); err != nil {
		t.Fatal(err) // nothing has happened since
	}
	f = open(t, path, Options{})
	if got, err := f.Load(ctx, "alice", id); err != nil || got.Noisy.Value().Observations[1] != 5 {
		t.Fatalf("restored %+v, %v", got, err)
	}
	charge(t, f, request("alice", item(2, eps(11))))
	f.Close()
	wantErr(t, Restore(ctx, copied, "sqlite:"+path, Options{}), ErrRollback)
	f = open(t, path, Options{}) // a refused restore has changed nothing
	wantSpent(t, f, "alice", 111, 111)
	f.Close()
	if err := Restore(ctx, copied, "sqlite:"+path, Options{AcceptRollback: true}); err != nil {
		t.Fatal(err)
	}
	_, err := Open(ctx, "sqlite:"+path, Options{})
	wantErr(t, err, ErrRollback)
	f = open(t, path, Options{AcceptRollback: true})
	wantSpent(t, f, "alice", 111, 111)
	verify(t, f)
	f.Close()
	p, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	p[bytes.LastIndex(p, []byte("public.people"))] ^= 64
	if err := os.WriteFile(copied, p, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(ctx, copied, "sqlite:"+path, Options{AcceptRollback: true}); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("restored a damaged backup: %v", err)
	}
}

// TestForfeitIsTakenForEveryLoss shows a limit of the witness (mark.missing): after two older copies, on which two
// witnesses saw different charges, what one forfeits counts for the other.
func TestForfeitIsTakenForEveryLoss(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	charge(t, f, request("ann", item(1, eps(4))))
	f.Close()
	old := snapshot(t, path)
	other, err := os.ReadFile(path + "-witness")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-other", other, 0o600); err != nil {
		t.Fatal(err)
	}
	delete(old, "-witness")
	f = open(t, path, Options{})
	charge(t, f, request("ann", item(2, eps(6))))
	f.Close()
	lay(t, path, old)
	f = open(t, path, Options{Witness: path + "-other"}) // which has not seen the six
	charge(t, f, request("ann", item(3, eps(5))))
	f.Close()
	lay(t, path, old)
	f = open(t, path, Options{AcceptRollback: true})
	wantSpent(t, f, "ann", 4+6, 4+6)
	f.Close()
	_, err = Open(ctx, "sqlite:"+path, Options{Witness: path + "-other"})
	wantErr(t, err, ErrRollback)
	f = open(t, path, Options{Witness: path + "-other", AcceptRollback: true})
	wantSpent(t, f, "ann", 4+6, 4+6) // and not 15: docs/operating.md says what to do
	verify(t, f)
	f.Close()
}

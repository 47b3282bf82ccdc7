package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Every form of a ledger that a release has written is read by all later ones, from 0.2.0 on. testdata/forms has a
// directory for each release: a ledger with its witness, a backup of it, and what is in them. What is there never
// changes; a release with another form adds its own.

var updateForms = flag.Bool("update", false, "write testdata/forms of the next release anew, which must not be out yet")

const (
	nextRelease = "0.2.0"
	written     = 25 * time.Hour // after newClock, a form's last rows
)

// contents are what a ledger says of itself.
type contents struct {
	Rows     int64
	Policy   Digest
	Balances map[string][]Balance
	Charges  map[string][]Charge
	Values   map[string]map[int64][]int64 // by account, of the releases that it holds
}

func tell(t *testing.T, f *keeper) (all contents) {
	t.Helper()
	all = contents{Balances: map[string][]Balance{}, Charges: map[string][]Charge{}, Values: map[string]map[int64][]int64{}}
	var err error
	if all.Rows, err = f.Verify(ctx); err != nil {
		t.Fatal(err)
	}
	all.Policy, _ = f.Policy()
	for _, ds := range []string{"census", "survey"} {
		if all.Balances[ds], err = f.Balances(ctx, ds); err != nil {
			t.Fatal(err)
		}
		if all.Charges[ds], err = f.Charges(ctx, "", ds, 1000); err != nil {
			t.Fatal(err)
		}
		for _, b := range all.Balances[ds] {
			user := b.User
			if b.Group {
				user = GroupAccount(user)
			}
			values := map[int64][]int64{}
			for _, r := range f.Holdings(user, ds) {
				values[r.ID] = loaded(t, f, user, r.ID)
			}
			all.Values[ds+" "+b.User] = values
		}
	}
	return all
}

func (a contents) text(t *testing.T) []byte {
	t.Helper()
	p, err := json.MarshalIndent(a, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return append(p, '\n')
}

// formTerms are terms with all that terms may have.
func formTerms() []DatasetTerms {
	one, two := census(), survey()
	one.Budgets = map[string]BudgetTerms{"*": {Limit: eps(3e6)}, "cid": {Limit: eps(1e6), Refresh: 24 * time.Hour, Lifetime: eps(2e6)}, GroupAccount("team"): {Limit: eps(2e6)}}
	one.Groups = map[string][]string{"team": {"dee", "eve"}}
	one.Paths = map[string]string{"public.people": "id"}
	two.Accountant = privacy.Either
	two.Cap, two.Budgets = eps(10e6).Plus(rho(10e9)), map[string]BudgetTerms{"*": {Limit: eps(3e6).Plus(rho(3e9))}}
	return []DatasetTerms{one, two}
}

// writeForm makes the ledger of a release: of each kind of row and measure that a small one has.
func writeForm(t *testing.T, dir string) {
	t.Helper()
	c := newClock()
	f := open(t, filepath.Join(dir, "test.ledger"), Options{Clock: c.read})
	adopt(t, f, census(), survey())
	first := buy(t, f, "ann", item(1, eps(100)), 41)
	c.forward(time.Minute)
	adopt(t, f, formTerms()...)
	buy(t, f, "cid", shared(2, eps(1e5)), -7, 0, 1<<40)
	charge(t, f, request("ann", shared(2, eps(1e5))))
	buy(t, f, "dee", item(3, eps(1e5)), 12)
	refreshed := item(4, eps(5e4))
	refreshed.Refresh, refreshed.AsOf, refreshed.Described = time.Hour, c.read().UnixNano(), []byte("described")
	buy(t, f, "cid", refreshed, 3)
	c.forward(written - time.Minute)
	buy(t, f, "cid", refreshed, 4)
	in := item(5, rho(2e6))
	in.Table = "public.answers"
	out := charge(t, f, Request{User: "bob", Dataset: "survey", Statement: Digest{8}, Items: []Item{in}, PolicyDigest: policyA})
	keep(t, f, out[0].Receipt, 9)
	if err := f.Revoke(ctx, first); err != nil {
		t.Fatal(err)
	}
	charge(t, f, request("ann", item(6, eps(10)))) // whose answer is lost
	if err := f.Backup(ctx, filepath.Join(dir, "backup")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "told.json"), tell(t, f).text(t), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"-lock", "-witness-lock", "-wal", "-shm"} {
		os.Remove(filepath.Join(dir, "test.ledger"+gone))
	}
}

// TestForms opens the ledgers and restores the backups of all releases, which say what they said, and goes on with
// them.
func TestForms(t *testing.T) {
	if *updateForms {
		dir := filepath.Join("testdata/forms", nextRelease)
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
		writeForm(t, dir)
	}
	releases, err := filepath.Glob("testdata/forms/*")
	if err != nil || len(releases) == 0 {
		t.Fatalf("%v, %v", releases, err)
	}
	for _, release := range releases {
		want, err := os.ReadFile(filepath.Join(release, "told.json"))
		if err != nil {
			t.Fatal(err)
		}
		kept, restored := place(t), filepath.Join(t.TempDir(), "restored")
		files := map[string][]byte{}
		for _, suffix := range []string{"", "-witness"} {
			if files[suffix], err = os.ReadFile(filepath.Join(release, "test.ledger") + suffix); err != nil {
				t.Fatal(err)
			}
		}
		lay(t, kept, files)
		if err := Restore(ctx, filepath.Join(release, "backup"), "sqlite:"+restored, Options{VouchForLedger: true}); err != nil {
			t.Fatalf("%s: %v", release, err)
		}
		for _, path := range []string{kept, restored} {
			c := newClock()
			c.forward(written)
			f := open(t, path, Options{Clock: c.read, VouchForLedger: path == restored})
			says := tell(t, f)
			if path == restored {
				says.Rows-- // that which vouches for it
			}
			if got := says.text(t); !bytes.Equal(got, want) {
				t.Errorf("%s, %s says\n%s\nand said\n%s", release, filepath.Base(path), got, want)
			}
			adopt(t, f, formTerms()...)
			buy(t, f, "ann", item(7, eps(10)), 1)
			verify(t, f)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOtherForms: what a ledger of another form has is named as such, and not as damage: a row whose hash follows, an
// account, a file.
func TestOtherForms(t *testing.T) {
	made := func() string {
		f := fresh(t, Options{}, census())
		buy(t, f, "ann", item(1, eps(1)), 4)
		f.Close()
		return pathOf(f)
	}
	for name, change := range map[string]string{
		"file": "PRAGMA user_version = 3", "accounts": "ALTER TABLE account RENAME COLUMN alt TO other", "older accounts": "ALTER TABLE account RENAME COLUMN eps_over TO over",
	} {
		path := made()
		execSQLite(t, path, change)
		_, err := Open(ctx, "sqlite:"+path, Options{})
		if wantErr(t, err, ErrForm); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v is no reason not to go on", name, err)
		}
	}
	for name, body := range map[string][]byte{
		"older form": {0, 1, 2}, "newer form": {2, 1, 2}, "a field less": {1, 1}, "none": {},
	} {
		path := made()
		b, err := verifyFile(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []chain.Kind{chain.RowCharge, chain.RowSave, chain.RowTerms, 99} {
			r := chain.Row{Seq: b.links.Last + 1, Kind: kind, At: b.links.Time, DS: b.links.Heads()[1].Chain, Holder: "ann", Body: body}
			if kind == chain.RowTerms {
				r.DS = 0
			}
			b.links.Clone().Link(&r)
			if err := b.clone().take(r); !errors.Is(err, ErrForm) {
				t.Errorf("%s, kind %d: %v", name, kind, err)
			}
			r.Hash[0]++
			if err := b.clone().take(r); errors.Is(err, ErrForm) || !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, kind %d, damaged: %v", name, kind, err)
			}
		}
	}
}

func execSQLite(t *testing.T, path, sql string) {
	t.Helper()
	conn, err := sqlite3.Open("file:" + path)
	if err == nil {
		err = errors.Join(conn.Exec(sql), conn.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

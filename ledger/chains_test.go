package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ncruces/go-sqlite3"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/postgres"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// another dataset beside census.
func survey() DatasetTerms {
	d := census()
	d.ID, d.Relations = "survey", []string{"public.answers"}
	return d
}

func of(dataset string, r Request) Request {
	r.Dataset = dataset
	return r
}

// TestEachChainIsWitnessed: a ledger of which one dataset's chain alone is older is whole by itself, its accounts agree
// with it, and it is refused by whoever has seen more. What was charged in the other dataset since does not make up for
// what this one has lost.
func TestEachChainIsWitnessed(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census(), survey())
	charge(t, f, request("ann", item(1, eps(10))))
	charge(t, f, of("survey", request("ann", item(1, eps(10)))))
	old := snapshot(t, path)
	charge(t, f, request("ann", item(2, eps(500)))) // which the older chain lacks
	charge(t, f, of("survey", request("ann", item(2, eps(700)))))
	seen := markOf(f.book)
	ds, _ := f.book.find("survey")
	f.Close()
	newer := path + "-newer"
	if err := os.Rename(path, newer); err != nil {
		t.Fatal(err)
	}
	witness, err := os.ReadFile(path + "-witness")
	if err != nil {
		t.Fatal(err)
	}
	delete(old, "-witness")
	lay(t, path, old)
	conn, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Exec(fmt.Sprintf(`ATTACH 'file:%s' AS n; INSERT OR IGNORE INTO chain SELECT * FROM n.chain WHERE ds = %d; INSERT OR REPLACE INTO account SELECT * FROM n.account WHERE ds = %[2]d`, newer, ds))
	if err = errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-witness", witness, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, "sqlite:"+path, Options{})
	if wantErr(t, err, ErrRollback); !strings.Contains(err.Error(), `dataset "census"`) {
		t.Errorf("does not say which dataset: %v", err)
	}
	f = open(t, path, Options{Witness: path + "-other", VouchForLedger: true}) // whoever has seen nothing cannot tell
	verify(t, f)
	charge(t, f, of("survey", request("ann", item(3, eps(900)))))
	if lost := seen.missing(f.book); lost != eps(500) { // as of a mark whose times are not known: what was charged in all is more than it saw
		t.Errorf("the witness misses %v", lost)
	}
	if lost := seen.missing(f.book); lost != eps(500) { // whose times it has not read
		t.Errorf("the witness misses %v once the other dataset was charged", lost)
	}
	f.Close()
	f = open(t, path, Options{AcceptRollback: true})
	wantSpent(t, f, "ann", 510, 510)
	verify(t, f)
}

// TestPolicyHoldsAllChains: whoever puts a policy in force waits for who writes in any dataset, and whoever writes in
// one is not kept waiting by who writes in another.
func TestPolicyHoldsAllChains(t *testing.T) {
	_, two := several(t, 2, Options{}, census(), survey())
	a, b := two[0], two[1]
	charge(t, a, request("ann", item(1, eps(1))))
	ds, _ := a.book.find("census")
	conn, err := pgx.Connect(ctx, pathOf(a))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT FROM dpproxy_ledger.heads WHERE head = $1 FOR UPDATE", ds)
	}
	if err != nil {
		t.Fatal(err)
	}
	charge(t, b, of("survey", request("ann", item(1, eps(1)))))
	other := terms(census(), survey())
	other.PolicyDigest = Digest{2}
	var adopted sync.WaitGroup
	done := make(chan struct{})
	adopted.Go(func() {
		if err := b.Adopt(ctx, other); err != nil {
			t.Error(err)
		}
		close(done)
	})
	select {
	case <-done:
		t.Fatal("a policy was put in force while somebody wrote in a dataset")
	case <-time.After(300 * time.Millisecond):
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	adopted.Wait()
	_, err = a.Charge(ctx, request("ann", item(2, eps(1))))
	wantErr(t, err, ErrPolicy)
	verify(t, a)
}

// TestBatchesKeepToTheirs: a row in a chain that the batch does not hold is no row, and a fault; one for which the
// batch has no number left is for the next batch.
func TestBatchesKeepToTheirs(t *testing.T) {
	f := fresh(t, Options{}, census(), survey())
	ds, _ := f.book.find("census")
	add := func(b store.Begun, rows int, kind chain.Kind) error {
		links := f.book.links
		t := &batch{store: keepsNothing{}, begun: b, base: links, links: links.Clone(), now: links.Time, rows: make([]chain.Row, rows)}
		_, err := t.add(kind, ds, "", nil)
		return err
	}
	if err := add(store.Begun{}, store.Block, chain.RowBind); err != nil {
		t.Errorf("in a ledger of one process: %v", err)
	}
	if err := add(store.Begun{Chains: []int64{ds}, First: store.Block, Numbers: store.Block}, store.Block-1, chain.RowBind); err != nil {
		t.Errorf("the last number: %v", err)
	}
	if err := add(store.Begun{Chains: []int64{ds}, First: store.Block, Numbers: store.Block}, store.Block, chain.RowBind); !errors.Is(err, errStepwise) {
		t.Errorf("behind the last number: %v", err)
	}
	if err := add(store.Begun{Chains: []int64{ds + 1}, First: store.Block, Numbers: 1}, 0, chain.RowBind); err == nil || errors.As(err, new(refusal)) {
		t.Errorf("in another dataset's chain: %v", err)
	}
	if err := add(store.Begun{Chains: []int64{ds}, First: store.Block, Numbers: 1}, 0, chain.RowVouch); err == nil || errors.As(err, new(refusal)) {
		t.Errorf("in chain 0: %v", err)
	}
}

// TestOneChainGoesOn: a ledger of one chain, as programs made it before, is read and verified with its witness as it
// is, goes on with a chain for each dataset from the next start on, and has forgotten nothing.
func TestOneChainGoesOn(t *testing.T) {
	for _, where := range []string{"sqlite", "postgres"} {
		t.Run(where, func(t *testing.T) {
			path, mark := place(t), filepath.Join(t.TempDir(), "witness")
			if where == "postgres" {
				s := pgServer(t)
				path = s.URLFor("postgres", s.Database(t))
			}
			f := open(t, path, Options{Witness: mark, oneChain: true})
			adopt(t, f, census(), survey())
			first := buy(t, f, "ann", item(1, eps(100)), 4)
			charge(t, f, of("survey", request("bob", item(1, eps(30)))))
			if f.book.links.Split() || len(f.book.links.Heads()) != 1 {
				t.Fatal("not one chain")
			}
			last := markOf(f.book)
			f.Close()
			if err := os.WriteFile(mark, oneChainMark(last, 9), 0o600); err != nil {
				t.Fatal(err)
			}
			if where == "postgres" {
				asBefore(t, path)
			} else if err := onFile(path, "PRAGMA user_version = 1"); err != nil {
				t.Fatal(err)
			}
			f = open(t, path, Options{Witness: mark})
			verify(t, f)
			wantSpent(t, f, "ann", 100, 100)
			rows := f.book.links.Rows
			adopt(t, f, census(), survey())
			if !f.book.links.Split() || len(f.book.links.Heads()) != 3 || f.book.links.Rows != rows+1 {
				t.Fatalf("%d chains, %d rows after %d", len(f.book.links.Heads()), f.book.links.Rows, rows)
			}
			if got := loaded(t, f, "ann", first); got[0] != 4 {
				t.Errorf("the release holds %v", got)
			}
			if out := charge(t, f, request("ann", item(1, eps(100)))); out[0].ID != first {
				t.Errorf("charged again: %+v", out)
			}
			buy(t, f, "ann", item(2, eps(7)), 5)
			charge(t, f, of("survey", request("bob", item(2, eps(3)))))
			if err := f.Revoke(ctx, first); err != nil {
				t.Fatal(err)
			}
			wantSpent(t, f, "ann", 107, 107)
			verify(t, f)
			adopt(t, f, census(), survey())
			copied := filepath.Join(t.TempDir(), "copy")
			if err := f.Backup(ctx, copied); err != nil {
				t.Fatal(err)
			}
			f.Close()
			l, err := Open(ctx, "sqlite:"+copied, Options{Witness: mark})
			if err != nil {
				t.Fatalf("the backup is not what the witness has seen: %v", err)
			}
			l.Close()
			older := markOf(f.book)
			older.ends[1].hash[0] ^= 1
			if err := os.WriteFile(mark, older.encode(99), 0o600); err != nil {
				t.Fatal(err)
			}
			url, _ := at(path, Options{})
			_, err = Open(ctx, url, Options{Witness: mark})
			wantErr(t, err, ErrRollback)
		})
	}
}

// onFile runs a statement on a file.
func onFile(path, sql string) error {
	conn, err := sqlite3.Open("file:" + path)
	if err != nil {
		return err
	}
	return errors.Join(conn.Exec(sql), conn.Close())
}

// asBefore takes the tables of a ledger of one chain to the version before.
func asBefore(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `
CREATE TABLE dpproxy_ledger.head (one boolean PRIMARY KEY CHECK (one), seq bigint NOT NULL, hash bytea NOT NULL);
INSERT INTO dpproxy_ledger.head SELECT true, seq, hash FROM dpproxy_ledger.heads;
DROP TABLE dpproxy_ledger.heads;
DROP INDEX dpproxy_ledger.links;
ALTER TABLE dpproxy_ledger.chain DROP COLUMN head;
DROP SEQUENCE dpproxy_ledger.number;
UPDATE dpproxy_ledger.version SET version = 1`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
}

// oneChainMark is the mark of a ledger of one chain as programs wrote it then.
func oneChainMark(m mark, turn int64) []byte {
	e := chain.Body()
	e.Int(turn)
	e.Digest(m.name)
	e.Int(m.ends[0].seq)
	e.Digest(m.ends[0].hash)
	e.Cost(m.ends[0].total)
	b := append([]byte(oneChainMagic), e.Bytes()...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// TestHeadsAreVerified: where the table of heads says otherwise than the rows, the next batch would go on from there.
func TestHeadsAreVerified(t *testing.T) {
	url, one := several(t, 1, Options{}, census())
	f := one[0]
	charge(t, f, request("ann", item(1, eps(10))))
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, change := range []string{"UPDATE dpproxy_ledger.heads SET hash = sha256(hash) WHERE head > 0", "UPDATE dpproxy_ledger.heads SET seq = seq - 1 WHERE head > 0", "DELETE FROM dpproxy_ledger.heads WHERE head > 0"} {
		if _, err := conn.Exec(ctx, "CREATE TABLE kept AS TABLE dpproxy_ledger.heads"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, change); err != nil {
			t.Fatal(err)
		}
		_, err := f.Verify(ctx)
		wantErr(t, err, ErrCorrupt)
		for _, back := range []string{"TRUNCATE dpproxy_ledger.heads", "INSERT INTO dpproxy_ledger.heads TABLE kept", "DROP TABLE kept"} {
			if _, err := conn.Exec(ctx, back); err != nil {
				t.Fatal(err)
			}
		}
		verify(t, f)
	}
}

// TestMarksOfAnySize: a witness of more chains than a block holds goes on in larger places, of which a torn one leaves
// the mark before it.
func TestMarksOfAnySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "witness")
	w, err := openWitness(store.OSDisk{}, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	m := mark{name: Digest{1}}
	var before mark
	for n := range int64(400) {
		m.ends = append(m.ends, end{n, n + 1, Digest{byte(n), 2}, privacy.Cost{Epsilon: privacy.MicroEpsilon(n)}, n + 3})
		if err := w.write(m); err != nil {
			t.Fatal(err)
		}
		got, turn, there, err := readWitness(store.OSDisk{}, path)
		if err != nil || !there || turn != n+1 || !bytes.Equal(got.encode(1), m.encode(1)) {
			t.Fatalf("mark of %d chains: turn %d, %v, %d ends", n+1, turn, err, len(got.ends))
		}
		if n > 0 && n%20 == 0 { // the last one torn
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			torn := bytes.Clone(whole)
			torn[placeOf(int64(len(m.encode(1))), turn)+100] ^= 1
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, turn, _, err := readWitness(store.OSDisk{}, path); err != nil || turn != n || !bytes.Equal(got.encode(1), before.encode(1)) {
				t.Fatalf("torn mark of %d chains: turn %d, %v", n+1, turn, err)
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before = mark{m.name, append([]end(nil), m.ends...)}
	}
}

// TestOneChainOfBefore: a file and its witness that a program before ADR 148 wrote (at 6e9c897e: ann has a release for
// 100, bob a charge of 30 in the other dataset).
func TestOneChainOfBefore(t *testing.T) {
	path := place(t)
	files := map[string][]byte{}
	for _, suffix := range []string{"", "-witness"} {
		p, err := os.ReadFile("testdata/one-chain.ledger" + suffix)
		if err != nil {
			t.Fatal(err)
		}
		files[suffix] = p
	}
	lay(t, path, files)
	f := open(t, path, Options{})
	verify(t, f)
	adopt(t, f, census(), survey())
	wantSpent(t, f, "ann", 100, 100)
	if b, err := f.Balance(ctx, "bob", "survey"); err != nil || b.LifeSpent != eps(30) {
		t.Errorf("bob has spent %v, %v", b.LifeSpent, err)
	}
	held := f.Holdings("ann", "census")
	if len(held) != 1 || loaded(t, f, "ann", held[0].ID)[0] != 4 {
		t.Fatalf("ann holds %+v", held)
	}
	if out := charge(t, f, request("ann", item(1, eps(100)))); out[0].Receipt != nil {
		t.Error("charged again")
	}
	buy(t, f, "ann", item(2, eps(7)), 5)
	verify(t, f)
	f.Close()
	f = open(t, path, Options{})
	wantSpent(t, f, "ann", 107, 107)
	f.Close()
	files[""] = bytes.Replace(files[""], []byte("public.answers"), []byte("public.Answers"), 1)
	lay(t, path, files)
	_, err := Open(ctx, "sqlite:"+path, Options{})
	wantErr(t, err, ErrCorrupt)
}

// TestOldProxiesAreLeftAtWork: while proxies of the version before are at work on a shared ledger its tables stay as
// they are, and a backup that is made then is one that this version can go back to.
func TestOldProxiesAreLeftAtWork(t *testing.T) {
	s := pgServer(t)
	url := s.URLFor("postgres", s.Database(t))
	f := another(t, url, Options{oneChain: true})
	adopt(t, f, census(), survey())
	buy(t, f, "ann", item(1, eps(100)), 4)
	f.Close()
	asBefore(t, url)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1, $2)", postgres.LockAlive, int32(7)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, url, Options{Witness: f.opts.Witness})
	if wantErr(t, err, ErrLocked); !strings.Contains(err.Error(), "1 of an older version") {
		t.Errorf("does not say why: %v", err)
	}
	if _, err := conn.Exec(ctx, "SELECT seq FROM dpproxy_ledger.head"); err != nil {
		t.Errorf("the tables are changed: %v", err)
	}
	l, err := Open(ctx, url, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	const copied = "copy" // where the program is, as an operator may write it
	if err := errors.Join(l.Backup(ctx, copied), l.Close()); err != nil {
		t.Fatal(err)
	}
	if p, err := os.ReadFile(copied); err != nil || binary.BigEndian.Uint32(p[60:]) != 1 { // where SQLite has PRAGMA user_version
		t.Errorf("the backup is of version %d, %v", binary.BigEndian.Uint32(p[60:]), err)
	}
	conn.Close(ctx)
	var again *keeper
	for range 100 { // the server notices by and by
		if l, err = Open(ctx, url, Options{Witness: f.opts.Witness}); err == nil {
			again = l.(*keeper)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if again == nil {
		t.Fatal(err)
	}
	defer again.Close()
	adopt(t, again, census(), survey())
	wantSpent(t, again, "ann", 100, 100)
	verify(t, again)
}

// A batch asks for the chains of all whom the last one has answered and who come again at once: with eight sessions in
// eight datasets on each of two proxies it asked for half of them, those that were there first, and the others' came
// with the next one, each time.
func TestBatchesAskForThoseWhoComeAgain(t *testing.T) {
	var sets []DatasetTerms
	for n := range 8 {
		d := killed()
		d.ID, d.Relations = fmt.Sprint("set", n), []string{fmt.Sprint("public.set", n)}
		sets = append(sets, d)
	}
	url, two := several(t, 2, Options{}, sets...)
	var all sync.WaitGroup
	for g := range uint64(16) {
		all.Go(func() {
			for n := range uint64(100) {
				if _, err := two[g%2].Charge(ctx, of(sets[g/2].ID, request("ann", numbered(g<<32|n, 1)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var size float64
	if err := conn.QueryRow(ctx, "SELECT count(*)::float8 / count(DISTINCT substring(request, 1, 16)) FROM dpproxy_ledger.chain WHERE kind = 6").Scan(&size); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f rows a batch", size)
	if size < 4.5 {
		t.Errorf("a batch of eight sessions' has %.1f rows", size)
	}
	verify(t, two[0])
}

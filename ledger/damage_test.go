package ledger

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
)

// snapshot copies the files of a ledger that is open, as a crash would leave them.
func snapshot(t testing.TB, path string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, suffix := range []string{"", "-wal", "-witness"} {
		p, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		out[suffix] = p
	}
	return out
}

func lay(t testing.TB, path string, files map[string][]byte) {
	t.Helper()
	os.Remove(path + "-shm")
	for suffix, p := range files {
		if err := os.WriteFile(path+suffix, p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// lived is a ledger with some history, part of it in the file and part in the log.
func lived(t testing.TB, path string) *keeper {
	f := open(t, path, Options{})
	adopt(t, f, census())
	for n := range byte(20) {
		buy(t, f, "alice", item(n, eps(1000)), int64(n), -5, 77)
	}
	f.Close()
	f = open(t, path, Options{})
	for n := range byte(5) {
		buy(t, f, "bob", item(n, eps(500)), 3)
	}
	return f
}

// T29: a flipped bit and a cut file are found by Open, Verify or Load, or they have changed nothing. Never does a
// ledger open that has forgotten spending.
func TestDamageIsFoundOrHarmless(t *testing.T) {
	from := lived(t, place(t))
	files := snapshot(t, pathOf(from))
	own, pool := spent(t, from, "alice")
	from.Close()
	path := place(t)
	random := rand.New(rand.NewPCG(1, 29))
	found := 0
	try := func(what string, damaged map[string][]byte) {
		lay(t, path, damaged)
		l, err := Open(ctx, "sqlite:"+path, Options{})
		if err != nil {
			found++
			return
		}
		defer l.Close()
		f := l.(*keeper)
		if gotOwn, gotPool := spent(t, f, "alice"); gotOwn != own || gotPool != pool {
			t.Fatalf("%s: opens with %d and %d spent instead of %d and %d", what, gotOwn, gotPool, own, pool)
		}
		_, err = f.Verify(ctx)
		if err != nil {
			found++
			return
		}
		for _, user := range []string{"alice", "bob"} {
			for _, held := range f.Holdings(user, "census") {
				if _, err := f.Load(ctx, user, held.ID); err != nil {
					t.Fatalf("%s: verified, but %v", what, err)
				}
			}
		}
	}
	flips := threats.Length(threats.ByNight(100, 400), 10_000)
	for range flips {
		suffix := []string{"", "-wal"}[random.IntN(2)]
		damaged := maps.Clone(files)
		p := append([]byte(nil), files[suffix]...)
		bit := random.IntN(8 * len(p))
		p[bit/8] ^= 1 << (bit % 8)
		damaged[suffix] = p
		try(fmt.Sprintf("bit %d of %q", bit, suffix), damaged)
	}
	byFlip, cuts := found, 0
	for cut := 1; cut <= 4096; cut += 1 + random.IntN(2*4096/flips+1) {
		for _, suffix := range []string{"", "-wal"} {
			damaged := maps.Clone(files)
			damaged[suffix] = files[suffix][:len(files[suffix])-cut]
			before := found
			cuts++
			try(fmt.Sprintf("%d bytes off %q", cut, suffix), damaged)
			if suffix == "-wal" && found == before {
				t.Fatalf("%d bytes off the log were not missed", cut)
			}
		}
	}
	threats.Reached(t, "T29", "of %d flipped bits %d found and the others harmless; of %d cuts %d found; 0 ledgers open that have forgotten spending", flips, byFlip, cuts, found-byFlip)
}

// A hand that knows SQL: each change of a stored row is found.
func TestTamperingIsFound(t *testing.T) {
	from := lived(t, place(t))
	from.Close()
	files := map[string][]byte{}
	for _, suffix := range []string{"", "-witness"} {
		p, err := os.ReadFile(pathOf(from) + suffix)
		if err != nil {
			t.Fatal(err)
		}
		files[suffix] = p
	}
	for _, sql := range []string{
		"UPDATE account SET eps = eps - 1 WHERE scope = 2",
		"UPDATE account SET eps_limit = eps_limit + 1",
		"DELETE FROM account WHERE scope = 3",
		"INSERT INTO account SELECT ds, 1, 'mallory', ends, eps, eps_limit, eps_over, rho, rho_limit, rho_over, delta, delta_limit, delta_over, alt FROM account LIMIT 1",
		"UPDATE chain SET at = at + 1 WHERE seq = 5",
		"UPDATE chain SET holder = 'bob' WHERE kind = 6 AND seq < 10",
		"UPDATE chain SET body = zeroblob(length(body)) WHERE kind = 6 AND seq < 10",
		"UPDATE chain SET hash = randomblob(32) WHERE seq = 7",
		"DELETE FROM chain WHERE seq = (SELECT max(seq) FROM chain)",
		"DELETE FROM chain WHERE seq = 9",
		"UPDATE chain SET seq = seq + 1000 WHERE seq = (SELECT max(seq) FROM chain)",
		"UPDATE release SET noisy = x'0102' WHERE id = (SELECT min(id) FROM release)",
		"UPDATE release SET measure = NULL WHERE id = (SELECT min(id) FROM release)",
		"DELETE FROM release WHERE id = (SELECT min(id) FROM release)",
		"PRAGMA application_id = 7", "PRAGMA user_version = 3",
	} {
		path := place(t)
		lay(t, path, files)
		conn, err := sqlite3.Open("file:" + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Exec(sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		conn.Close()
		l, err := Open(ctx, "sqlite:"+path, Options{})
		if err == nil {
			_, err = l.Verify(ctx)
			l.Close()
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrRollback) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// A release whose bytes were changed is not served, though it is first read when it is asked for.
func TestTamperedReleaseIsNotLoaded(t *testing.T) {
	f := fresh(t, Options{}, census())
	id := buy(t, f, "alice", item(1, eps(1)), 1, 2)
	f.Close()
	conn, err := sqlite3.Open("file:" + pathOf(f))
	if err == nil {
		err = conn.Exec("UPDATE release SET noisy = x'020406'")
	}
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	f = open(t, pathOf(f), Options{})
	_, err = f.Load(ctx, "alice", id)
	wantErr(t, err, ErrCorrupt)
}

// The CHECKs and STRICT columns hold without the code above them.
func TestSchemaRefusesOverspending(t *testing.T) {
	f := fresh(t, Options{}, census())
	charge(t, f, request("alice", item(1, eps(100))))
	f.Close()
	conn, err := sqlite3.Open("file:" + pathOf(f))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, sql := range []string{"UPDATE account SET eps = eps_limit + 1", "UPDATE account SET eps = -1", "UPDATE account SET rho = 1",
		"UPDATE account SET delta = 1", "UPDATE account SET eps = 0.5", "UPDATE account SET alt = -1"} {
		if err := conn.Exec(sql); err == nil {
			t.Errorf("%s: done", sql)
		}
	}
}

// powerless is a file system whose durable part is kept apart: what was flushed, as it was when it was flushed.
type powerless struct {
	vfs.VFSFilename
	mu      sync.Mutex
	durable map[string][]byte // by file name
}

func (v *powerless) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, out, err := v.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, out, err
	}
	return &powerlessFile{f, v, name.String()}, out, nil
}

// Delete is taken as durable: SQLite deletes its journal when it makes the log, and Open flushes the directory after
// that.
func (v *powerless) Delete(name string, syncDir bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.durable, filepath.Base(name))
	return v.VFSFilename.Delete(name, syncDir)
}

type powerlessFile struct {
	vfs.File
	v    *powerless
	name string
}

func (f *powerlessFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *powerlessFile) Sync(flags vfs.SyncFlag) error {
	if err := f.File.Sync(flags); err != nil {
		return err
	}
	p, err := os.ReadFile(f.name)
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	f.v.durable[filepath.Base(f.name)] = p
	return err
}

// T26: after a power cut, when everything not flushed is lost, each acknowledged charge and save is there. The witness
// may be behind; it is taken from the start of the ledger's life.
func TestPowerCut(t *testing.T) {
	v := &powerless{VFSFilename: vfs.Find("").(vfs.VFSFilename), durable: map[string][]byte{}}
	vfs.Register("powerless", v)
	defer vfs.Unregister("powerless")
	path := place(t)
	f := open(t, path, Options{Disk: onVFS{name: "powerless"}})
	adopt(t, f, census())
	first, err := os.ReadFile(path + "-witness")
	if err != nil {
		t.Fatal(err)
	}
	for n := range byte(30) {
		id := buy(t, f, "alice", item(n, eps(10)), int64(n))
		if n%10 == 9 {
			if _, _, err := f.store.(*sqlite.Store).Conn.WALCheckpoint("main", sqlite3.CHECKPOINT_RESTART); err != nil {
				t.Fatal(err)
			}
		}
		cut := place(t)
		files := map[string][]byte{"-witness": first}
		v.mu.Lock()
		for name, p := range v.durable {
			files[name[len("test.ledger"):]] = p
		}
		v.mu.Unlock()
		lay(t, cut, files)
		g := open(t, cut, Options{})
		if own, _ := spent(t, g, "alice"); own != 10*int64(n+1) {
			t.Fatalf("%d charges acknowledged, spent %d", n+1, own)
		}
		if _, err := g.Load(ctx, "alice", id); err != nil {
			t.Fatalf("acknowledged release: %v", err)
		}
		verify(t, g)
		g.Close()
	}
}

package postgres

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/policy"
)

// copyOf is the copy that waits.
func copyOf(p backend.Prepared) *snapshot.Copied { return p.(*snapshot.Prepared).Copy }

// TestSnapshotStays: what changes in the source shows with the next snapshot and not before; the one before it stays
// for whoever was admitted under it, and is gone when the last of them is.
func TestSnapshotStays(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	change := h.Source
	first := b.AsOf(nil)
	if got := backendtest.People(t, h); got != "[]: [40]" {
		t.Fatal(got)
	}
	change("DELETE FROM people WHERE person_id <= 10")
	if got := backendtest.People(t, h); got != "[]: [40]" {
		t.Errorf("a live row shows: %s", got)
	}
	_, leave, err := b.Admit(t.Context(), 0, h.Policy)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := backendtest.Renewed(t, h, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	if time.Since(begun) < 3*time.Second {
		t.Error("in force before its moment")
	}
	if got := backendtest.People(t, h); got != "[]: [30]" {
		t.Errorf("after the next snapshot: %s", got)
	}
	if b.AsOf(nil) <= first {
		t.Errorf("as of %d after %d", b.AsOf(nil), first)
	}
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h).Of(first)
	if got := backendtest.Counts(t, h, q); !slices.Equal(got, []string{"[]: [40]"}) {
		t.Errorf("who was admitted before reads %v", got)
	}
	if n := len(backendtest.FilesIn(t, b.Plan.Dir)); n != 2 {
		t.Errorf("%d files while the first is read", n)
	}
	leave(time.Time{})
	if names := backendtest.FilesIn(t, b.Plan.Dir); len(names) != 1 || !strings.HasPrefix(names[0], time.Unix(0, b.AsOf(nil)).UTC().Format(snapshot.FileTime)) {
		t.Errorf("left: %v", names)
	}
	if b.Enter(q) != nil {
		t.Error("a snapshot that is gone is read")
	}
}

// TestSnapshotsAreKept: they are made at the times of the policy, in force after what it says, of the policy that is in
// force; one that fails is reported, and the next one is made.
func TestSnapshotsAreKept(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	b.Plan.Every, b.Plan.Within = 2*time.Second, time.Second
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Keep(ctx, func() *policy.Policy { return h.Policy })
	}()
	next := func() int64 {
		was := b.AsOf(nil)
		for begun := time.Now(); b.AsOf(nil) == was; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 3*time.Minute {
				t.Fatal(h.Log)
			}
		}
		return b.AsOf(nil)
	}
	h.Source("DELETE FROM people WHERE person_id <= 10")
	next()
	next()
	if got := backendtest.People(t, h); got != "[]: [30]" {
		t.Errorf("two snapshots later: %s", got)
	}
	h.Source("ALTER TABLE people RENAME TO folk")
	for begun := time.Now(); !strings.Contains(h.Log.String(), "no new snapshot; the last one stays in force"); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal(h.Log)
		}
	}
	h.Source("ALTER TABLE folk RENAME TO people; DELETE FROM people WHERE person_id <= 20")
	next()
	next()
	if got := backendtest.People(t, h); got != "[]: [20]" {
		t.Errorf("after one that failed: %s", got)
	}
	if at := time.Unix(0, next()); at.Sub(at.Truncate(2*time.Second)) > time.Second {
		t.Errorf("as of %v, which is no time of the policy", at)
	}
	stop()
	<-ended
	if names := backendtest.FilesIn(t, b.Plan.Dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// TestSnapshotIsTakenUp: a start takes the newest whole snapshot that the same policy made, and none of another
// meaning.
func TestSnapshotIsTakenUp(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	h.Source("DELETE FROM people")
	again := func() *backendtest.House {
		p := *h.Policy
		next := backendtest.Open(t, &p)
		backendtest.Prepare(t, next)
		return next
	}
	if got := backendtest.People(t, again()); got != "[]: [40]" {
		t.Errorf("taken up: %s", got)
	}
	damaged := filepath.Join(b.Plan.Dir, snapshot.FileName(time.Now().Add(time.Second), b.Copies[0].Digest))
	if err := os.WriteFile(damaged, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := backendtest.People(t, again()); got != "[]: [40]" {
		t.Errorf("beside a damaged one: %s", got)
	}
	h.Policy.Datasets[0].Tables[0].Columns[0].Outside = policy.OutsideOther
	if got := backendtest.People(t, again()); got != "[]: [0]" && got != "" {
		t.Errorf("of another meaning: %s", got)
	}
}

// TestSnapshotsOfAPolicyThatChanges: a policy that needs other tables has its snapshot before it is in force, what was
// asked under the one before it is answered meanwhile, and going back makes none anew.
func TestSnapshotsOfAPolicyThatChanges(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	before := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h).Of(b.AsOf(nil))
	h.Source("DELETE FROM people WHERE person_id <= 10")
	old, next := h.Policy, backendtest.TestPolicy(t, h.Policy.Backend.URL)
	next.Backend.Snapshot, next.Datasets[0].Tables[0].Columns[0].Outside = old.Backend.Snapshot, policy.OutsideOther
	h.Policy = next
	backendtest.Prepare(t, h)
	after := backendtest.Render(t, backendtest.Measure(t, next, "people"), h)
	if one, other := backendtest.Counts(t, h, before), backendtest.Counts(t, h, after); !slices.Equal(one, []string{"[]: [40]"}) || !slices.Equal(other, []string{"[]: [30]"}) {
		t.Errorf("of the old policy %v, of the new one %v", one, other)
	}
	h.Policy = old
	at := b.AsOf(nil)
	backendtest.Prepare(t, h)
	if b.AsOf(nil) >= at || len(backendtest.FilesIn(t, b.Plan.Dir)) != 2 {
		t.Errorf("back again: as of %d after %d, files %v", b.AsOf(nil), at, backendtest.FilesIn(t, b.Plan.Dir))
	}
	if err := backendtest.Renewed(t, h, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if names := backendtest.FilesIn(t, b.Plan.Dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// TestSnapshotFails: what fails a snapshot leaves the last one in force, and nothing behind.
func TestSnapshotFails(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(h *backendtest.House){
		"a column is gone":          func(h *backendtest.House) { h.Source("ALTER TABLE people DROP COLUMN income") },
		"a key is unproven":         func(h *backendtest.House) { h.Source("ALTER TABLE people DROP CONSTRAINT people_pkey") },
		"the source is gone":        func(h *backendtest.House) { h.Gone() },
		"it takes too long":         func(h *backendtest.House) { h.Source("BEGIN; LOCK TABLE visits") },
		"temporary files are bound": func(h *backendtest.House) { h.Source("ALTER ROLE " + h.Role + " SET temp_file_limit = '1MB'") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := backendtest.SnapshotHouse(t)
			b := h.Backend.(*snapshot.Snapshots)
			before := backendtest.FilesIn(t, b.Plan.Dir)
			if name == "a key is unproven" {
				h.Policy.Datasets[0].Tables[1].Via = &policy.Via{Column: "person_id", Key: "person_id", Table: h.Policy.Datasets[0].Tables[0]}
			}
			if name == "it takes too long" {
				locked := h.Lock("visits")
				defer locked()
			} else {
				disturb(h)
			}
			if err := b.Renew(t.Context(), time.Now().Add(2*time.Second), func() *policy.Policy { return h.Policy }); err == nil {
				t.Error("made all the same")
			} else if strings.Contains(err.Error(), backendtest.Canary) {
				t.Errorf("it tells a value: %v", err)
			}
			if got := backendtest.People(t, h); got != "[]: [40]" {
				t.Errorf("the last snapshot answers %s", got)
			}
			if after := backendtest.FilesIn(t, b.Plan.Dir); !slices.Equal(before, after) {
				t.Errorf("left: %v, before %v", after, before)
			}
		})
	}
}

// TestSnapshotOnAFullDisk: a snapshot that its disk does not hold leaves the last one in force, and gives the disk
// back.
func TestSnapshotOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("a disk of its own cannot be mounted here: %s", out)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	h := backendtest.PostgresHouseOf(t, &policy.Snapshot{Dir: filepath.Join(disk, "snapshots"), Every: 24 * time.Hour, Within: 3 * time.Second})
	backendtest.Prepare(t, h)
	h.Source("INSERT INTO visits SELECT 1 + i % 40, md5(i::text), i % 60 FROM generate_series(1, 500000) AS s(i)")
	if err := backendtest.Renewed(t, h, 30*time.Second); !errors.Is(err, snapshot.ErrMaking) {
		t.Errorf("it ends with %v", err)
	}
	if got := backendtest.People(t, h); got != "[]: [40]" {
		t.Errorf("the last snapshot answers %s", got)
	}
	if names := backendtest.FilesIn(t, filepath.Join(disk, "snapshots")); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// TestSnapshotOfLongTexts: one row's long text fails nothing, wherever it is.
func TestSnapshotOfLongTexts(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	h.Source("ALTER TABLE visits ADD COLUMN other text; UPDATE visits SET clinic = repeat('x', 5000000), other = repeat('y', 5000000 + person_id::int) WHERE minutes = 7")
	h.Policy.Datasets[0].Tables[1].Keys = []*policy.Column{{Name: "other", Source: "other", Type: policy.Text, Typmod: -1, Table: h.Policy.Datasets[0].Tables[1]}}
	backendtest.Prepare(t, h)
	if err := backendtest.Renewed(t, h, 3*time.Second); err != nil {
		t.Error(err)
	}
}

// TestSnapshotIsItsOwners: its files can be read by their owner alone, and with a key by nobody without it.
func TestSnapshotIsItsOwners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 40)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", key} {
		h := backendtest.PostgresHouseOf(t, &policy.Snapshot{Dir: filepath.Join(dir, "of"+filepath.Base(file)), Every: 24 * time.Hour, Within: time.Hour, Key: file})
		column := h.Policy.Datasets[0].Tables[0].Column("sex")
		found := *column
		found.Domain, found.Open = nil, column
		backendtest.Prepare(t, h)
		if got := backendtest.People(t, h); got != "[]: [40]" {
			t.Fatal(got)
		}
		b := h.Backend.(*snapshot.Snapshots)
		info, err := os.Stat(b.Copies[0].Path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
		if dirInfo, err := os.Stat(b.Plan.Dir); err != nil || dirInfo.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", dirInfo, err)
		}
		data, err := os.ReadFile(b.Copies[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		if plain := bytes.Contains(data, []byte("1:age")); plain != (file == "") {
			t.Errorf("key %q: names of columns are in the file: %v", file, plain)
		}
		if file == "" {
			continue
		}
		if _, err := snapshot.OpenCopy(t.Context(), b.Copies[0].Path, strings.Repeat("l", 40)); err == nil {
			t.Error("opened with another key")
		}
		if _, err := snapshot.OpenCopy(t.Context(), b.Copies[0].Path, ""); err == nil {
			t.Error("opened without a key")
		}
	}
	for text, mode := range map[string]os.FileMode{"short": 0o600, strings.Repeat("k", 40): 0o640} {
		if err := os.WriteFile(key, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := snapshot.ReadKey(key); err == nil {
			t.Errorf("a key of %d characters, mode %o", len(text), mode)
		}
	}
}

// TestSnapshotKeys: keys that a snapshot would compare otherwise than PostgreSQL does are refused before one is made,
// and so are those of which one row could fail it.
func TestSnapshotKeys(t *testing.T) {
	t.Parallel()
	const texts, collation, types = "equal values may have different texts", "not deterministic", "give both one type"
	for name, c := range map[string]struct {
		kinds    []string // of the key in visits, and in people
		declared policy.Type
		refused  string
	}{
		"text":                    {[]string{"text"}, 0, ""},
		"char":                    {[]string{"char(8)", "text"}, 0, ""},
		"a scale":                 {[]string{"numeric(8,2)"}, 0, ""},
		"uuid":                    {[]string{"uuid"}, 0, ""},
		"whole numbers":           {[]string{"smallint", "bigint"}, policy.Int8, ""},
		"no scale":                {[]string{"numeric"}, 0, texts},
		"floating":                {[]string{"float8"}, 0, texts},
		"interval":                {[]string{"interval"}, 0, texts},
		"jsonb":                   {[]string{"jsonb"}, 0, texts},
		"array":                   {[]string{"numeric[]"}, 0, texts},
		"a domain":                {[]string{"loose"}, 0, texts},
		"a collation":             {[]string{"text COLLATE insensitive"}, 0, collation},
		"two scales":              {[]string{"numeric(8,2)", "numeric(8,4)"}, 0, types},
		"a number and a decimal":  {[]string{"bigint", "numeric(8,2)"}, 0, types},
		"date and timestamp":      {[]string{"date", "timestamp"}, 0, types},
		"with and without a zone": {[]string{"timestamp", "timestamptz"}, 0, types},
		"declared otherwise":      {[]string{"numeric(30,0)"}, policy.Int8, "PostgreSQL does not accept its queries"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := backendtest.PostgresHouseOf(t, &policy.Snapshot{Dir: t.TempDir(), Every: 24 * time.Hour, Within: 3 * time.Second})
			h.Source("CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE DOMAIN loose AS numeric")
			d := h.Policy.Datasets[0]
			for i, kind := range c.kinds {
				table := d.Tables[1-i]
				h.Source("ALTER TABLE " + table.Name + " ADD COLUMN k " + kind)
				table.UnitColumn = "k"
				table.Keys = append(table.Keys, &policy.Column{Name: "k", Source: "k", Type: c.declared, Typmod: -1, Table: table, Join: true, Unit: true})
			}
			backendtest.RefusesWith(t, h, c.refused)
		})
	}
	t.Run("of a trusted SELECT", func(t *testing.T) {
		t.Parallel()
		for collate, refused := range map[string]string{"": "", " COLLATE insensitive": collation} {
			h := backendtest.PostgresHouseOf(t, &policy.Snapshot{Dir: t.TempDir(), Every: 24 * time.Hour, Within: 3 * time.Second})
			h.Source("CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
			h.Source("ALTER TABLE visits ADD COLUMN k text" + collate)
			table := h.Policy.Datasets[0].Tables[1]
			table.UnitColumn, table.View = "k", policy.View{Text: "SELECT k, clinic, minutes FROM public.visits", Trusted: true}
			backendtest.RefusesWith(t, h, refused)
		}
	})
}

// TestSnapshotIsOfItsDatabase: a file is taken up by who reads the same database, and with a key only where it is
// encrypted.
func TestSnapshotIsOfItsDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(key string) *policy.Snapshot {
		return &policy.Snapshot{Dir: filepath.Join(dir, "snapshots"), Every: 24 * time.Hour, Within: 3 * time.Second, Key: key}
	}
	h, other := backendtest.PostgresHouseOf(t, in("")), backendtest.PostgresHouseOf(t, in(""))
	other.Source("DELETE FROM people WHERE person_id > 5")
	backendtest.Prepare(t, h)
	backendtest.Prepare(t, other)
	if got := backendtest.People(t, other); got != "[]: [5]" {
		t.Errorf("of another database: %s", got)
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := *h.Policy
	p.Backend.Snapshot = in(key)
	locked := backendtest.Open(t, &p)
	backendtest.Prepare(t, locked)
	if locked.AsOf(nil) == h.AsOf(nil) {
		t.Error("with a key, a file that is not encrypted is read")
	}
}

// TestSnapshotOfAnotherPolicyHasItsMoment: a change of the policy that needs no other tables waits for nothing, one
// that does for a public moment; who is admitted under the old policy meanwhile reads rows of the moment that she is
// given.
func TestSnapshotOfAnotherPolicyHasItsMoment(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	b.Plan.Within = 10 * time.Second
	old := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)
	h.Source("DELETE FROM people WHERE person_id <= 10")
	done := make(chan error, 1)
	go func() {
		done <- b.Renew(t.Context(), time.Now().Add(10*time.Second), func() *policy.Policy { return backendtest.TestPolicyLike(t, h) })
	}()
	time.Sleep(200 * time.Millisecond)
	if err := backendtest.Adopted(b, h.Policy); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Fatalf("a policy of the same tables waited for another's copy, which ended with %v", err)
	default:
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	was, next := b.AsOf(nil), backendtest.TestPolicyLike(t, h)
	next.Datasets[0].Tables[0].Columns[0].Outside = policy.OutsideOther
	begun := time.Now()
	if err := backendtest.Adopted(b, next); err != nil || time.Since(begun) < b.Plan.Within {
		t.Errorf("in force after %v (%v)", time.Since(begun), err)
	}
	asOf, leave, err := b.Admit(t.Context(), 0, h.Policy)
	if err != nil {
		t.Fatal(err)
	}
	defer leave(time.Time{})
	if asOf(old) != was || asOf(backendtest.Render(t, backendtest.Measure(t, next, "people"), h)) != b.AsOf(nil) || b.AsOf(nil) == was {
		t.Errorf("the old policy's rows are as of %d, must be %d; the new one's of %d", asOf(old), was, b.AsOf(nil))
	}
	if b.Enter(old.Of(b.AsOf(nil))) != nil {
		t.Error("a query reads a snapshot of another moment than it names")
	}
}

// TestSnapshotOfAPolicyThatIsRefused: until a policy is in force its copy is nobody's, and what is admitted then has
// the copy of its session's policy, whether it has queries or not (an alarm has none yet).
func TestSnapshotOfAPolicyThatIsRefused(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	b.Plan.Within = 8 * time.Second
	first := h.Policy
	was, old, next := b.AsOf(first), backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h), backendtest.TestPolicyLike(t, h)
	next.Datasets[0].Tables[0].Columns[0].Outside = policy.OutsideOther
	asks := func(of *policy.Policy, want int64) {
		t.Helper()
		asOf, leave, err := b.Admit(t.Context(), 0, of)
		if err != nil {
			t.Fatal(err)
		}
		defer leave(time.Time{})
		if asOf() != want || b.AsOf(of) != want {
			t.Errorf("admitted as of %d, told %d, want %d", asOf(), b.AsOf(of), want)
		}
		if got := backendtest.Counts(t, h, old.Of(asOf())); of == first && !slices.Equal(got, []string{"[]: [40]"}) {
			t.Errorf("a paid query reads %v", got)
		}
	}
	refused, err := b.Prepare(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	asks(h.Policy, was)
	refused.GiveUp()
	if names := backendtest.FilesIn(t, b.Plan.Dir); len(names) != 1 {
		t.Errorf("files %v after a policy that was refused", names)
	}
	taken, err := b.Prepare(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if err := backendtest.Renewed(t, h, 3*time.Second); err != nil { // of the policy before, meanwhile
		t.Fatal(err)
	}
	was = b.AsOf(h.Policy)
	taken.PutInForce()
	asks(h.Policy, was)
	asks(next, copyOf(taken).At.UnixNano())
	h.Policy = next
	again, err := b.Prepare(t.Context(), next)
	if err != nil || copyOf(again) != copyOf(taken) {
		t.Error("a copy that is in force is made again", err)
	}
	if err := backendtest.Renewed(t, h, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	newer := b.AsOf(next)
	again.PutInForce() // while it waited a newer one came into force
	asks(next, newer)
	if names := backendtest.FilesIn(t, b.Plan.Dir); newer <= copyOf(taken).At.UnixNano() || len(names) != 1 {
		t.Errorf("as of %d after %v, files %v", newer, copyOf(taken).At, names)
	}
}

// TestSnapshotsOfTwoProcesses: two that make one at a time have a file each.
func TestSnapshotsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	p := *h.Policy
	other := backendtest.Open(t, &p)
	backendtest.Prepare(t, other)
	a, b := h.Backend.(*snapshot.Snapshots), other.Backend.(*snapshot.Snapshots)
	errs := make(chan error, 2)
	for _, one := range []*snapshot.Snapshots{a, b} {
		go func() {
			errs <- backendtest.RenewedBy(t, one, 3*time.Second, func() *policy.Policy { return h.Policy })
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	if a.AsOf(nil) == b.AsOf(nil) || backendtest.People(t, h) != "[]: [40]" || backendtest.People(t, other) != "[]: [40]" {
		t.Errorf("as of %d and %d: %s and %s", a.AsOf(nil), b.AsOf(nil), backendtest.People(t, h), backendtest.People(t, other))
	}
}

// TestSnapshotsOfEveryStep: where one comes into force when the next is begun, none is left out.
func TestSnapshotsOfEveryStep(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	b.Plan.Every, b.Plan.Within = 6*time.Second, 6*time.Second
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Keep(ctx, func() *policy.Policy { return h.Policy })
	}()
	var moments []int64
	for begun := time.Now(); len(moments) < 4 && time.Since(begun) < 2*time.Minute; time.Sleep(10 * time.Millisecond) {
		if at := b.AsOf(nil); !slices.Contains(moments, at) {
			moments = append(moments, at)
		}
	}
	stop()
	<-ended
	if apart := time.Duration(moments[len(moments)-1] - moments[len(moments)-2]); len(moments) < 4 || apart > 8*time.Second {
		t.Errorf("%d snapshots, the last two %v apart", len(moments), apart)
	}
}

// TestSnapshotKeepsNoMoreDigits: digits beyond those that a snapshot holds are cut off, and move no value into another
// cell.
func TestSnapshotKeepsNoMoreDigits(t *testing.T) {
	t.Parallel()
	for _, most := range []string{"10000000000", "1000000000"} { // the first is beyond 64 bits with its digits
		var got [2]string
		for i, s := range []*policy.Snapshot{nil, {Dir: t.TempDir(), Every: 24 * time.Hour, Within: 3 * time.Second}} {
			h := backendtest.PostgresHouseOf(t, s)
			h.Source("ALTER TABLE people ALTER COLUMN income TYPE numeric; UPDATE people SET income = 999999.9999999999")
			table := h.Policy.Datasets[0].Tables[0]
			table.Columns[2] = backendtest.TestColumn(t, "income", "numeric", policy.OutsideClamp, "0", most, "1000000")
			table.Columns[2].Table = table
			if s != nil {
				backendtest.Prepare(t, h)
			}
			got[i] = strings.Join(backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "income"), h)), ",")
		}
		if got[0] != got[1] {
			t.Errorf("up to %s: live %s, of a snapshot %s", most, got[0], got[1])
		}
	}
}

// TestMemoryOfOpenSnapshots: one that is open is bounded.
func TestMemoryOfOpenSnapshots(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	limit := func(db *sql.DB) (text string) {
		if err := db.QueryRow("SELECT current_setting('memory_limit')").Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	plain, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	t.Log(limit(plain), limit(h.Backend.(*snapshot.Snapshots).Copies[0].Pool))
	of := func(text string) (gib float64) {
		if _, err := fmt.Sscanf(text, "%g GiB", &gib); err != nil {
			t.Skip(text, err)
		}
		return gib
	}
	if share := of(limit(h.Backend.(*snapshot.Snapshots).Copies[0].Pool)) / of(limit(plain)); share < 0.49 || share > 0.51 {
		t.Errorf("a share of %g of what DuckDB takes by itself", share)
	}
}

// TestSnapshotOfSeveralConnections: several connections read the parts of one table, and what they put together is of
// one moment, while rows are moved, added and taken away; rows of an inheritance child are read once; what the role may
// not open is done without.
func TestSnapshotOfSeveralConnections(t *testing.T) {
	t.Parallel()
	h := backendtest.SnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	b.Plan.Within = 2 * time.Minute // beside other work too
	source := b.Source.(*DB)
	source.readers, source.partPages = 4, 3
	d := h.Policy.Datasets[0]
	d.Tables[1].MaxRowsPerUnit = 1_000_000
	h.Source("TRUNCATE visits; INSERT INTO visits SELECT i % 40, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END, i % 60 FROM generate_series(1, 40000) AS s(i)")
	h.Source("CREATE TABLE more () INHERITS (visits); INSERT INTO more SELECT 1, 'north', 1 FROM generate_series(1, 5000)")
	h.Source("GRANT SELECT ON more TO " + h.Role)
	ctx, stop := context.WithCancel(t.Context())
	moved := make(chan int)
	go func() { // each transaction moves as many rows to the north as to the south, and a row from one end of the table to the other
		n := 0
		for ; ctx.Err() == nil; n++ {
			h.Source(fmt.Sprintf("BEGIN; UPDATE ONLY visits SET clinic = CASE clinic WHEN 'north' THEN 'south' ELSE 'north' END WHERE ctid IN (SELECT ctid FROM ONLY visits WHERE clinic = 'north' LIMIT 50) OR ctid IN (SELECT ctid FROM ONLY visits WHERE clinic = 'south' LIMIT 50); "+
				"DELETE FROM ONLY visits WHERE ctid = (SELECT min(ctid) FROM ONLY visits WHERE clinic = 'south'); INSERT INTO visits VALUES (%d, 'south', 1); COMMIT", n%40))
		}
		moved <- n
	}()
	for range 3 {
		if err := backendtest.Renewed(t, h, 5*time.Second); err != nil {
			t.Error(err, h.Log)
		}
		got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h))
		if !slices.Equal(got, []string{"[0]: [25000]", "[1]: [20000]"}) {
			t.Errorf("of no one moment: %v", got)
		}
	}
	stop()
	if n := <-moved; n < 3 {
		t.Errorf("%d transactions beside three copies", n)
	}
	if !strings.Contains(h.Log.String(), "parts=") {
		t.Error("it is read in one piece")
	}
	h.Source("ALTER ROLE " + h.Role + " CONNECTION LIMIT 3")
	if err := backendtest.Renewed(t, h, 5*time.Second); err != nil || !strings.Contains(h.Log.String(), "fewer connections") {
		t.Errorf("with few connections: %v", err)
	}
	if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic"), h)); !slices.Equal(got, []string{"[0]: [25000]", "[1]: [20000]"}) {
		t.Errorf("with few connections: %v", got)
	}
}

// TestSnapshotOfALostConnection: connections that are lost while tables are read end the copy, and the next one is
// made.
func TestSnapshotOfALostConnection(t *testing.T) {
	t.Parallel()
	for _, readers := range []int{1, 3} {
		h := backendtest.SnapshotHouse(t)
		b := h.Backend.(*snapshot.Snapshots)
		b.Source.(*DB).readers, b.Source.(*DB).partPages = readers, 1
		free := h.Lock("visits") // people is read, and visits waits
		done := make(chan error, 1)
		go func() { done <- backendtest.Renewed(t, h, 20*time.Second) }()
		waiting := "FROM pg_stat_activity WHERE usename = '" + h.Role + "' AND wait_event_type = 'Lock'"
		pgtest.Shared(t).Until(t, "SELECT EXISTS (SELECT "+waiting+")")
		h.Source("SELECT pg_terminate_backend(pid) " + waiting)
		if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d connections: %v", readers, err)
		}
		free()
		if names := backendtest.FilesIn(t, b.Plan.Dir); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		if err := backendtest.Renewed(t, h, 5*time.Second); err != nil {
			t.Errorf("the next one: %v", err)
		}
	}
}

// TestSnapshotOfATableThatIsReplaced: a table that its owner empties and fills anew, or writes anew, in one transaction
// that ends after the moment of the copy and before the table is read, has no rows in that moment any more: the copy is
// given up, and the last one stays.
func TestSnapshotOfATableThatIsReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, change string
		fails          bool
	}{
		"emptied and filled": {"", "TRUNCATE visits; INSERT INTO visits SELECT i % 40, 'north', 7 FROM generate_series(1, 80) AS s(i)", true},
		"a child":            {"CREATE TABLE more () INHERITS (visits); INSERT INTO more VALUES (1, 'north', 1); GRANT SELECT ON more TO ROLE_", "TRUNCATE more", true},
		"its rows deleted":   {"", "DELETE FROM visits", false},
		"another's index":    {"CREATE INDEX by_person ON visits (person_id)", "REINDEX INDEX by_person", false},
	} {
		for _, readers := range []int{1, 3} {
			if readers == 1 && !c.fails {
				continue
			}
			h := backendtest.SnapshotHouse(t)
			b := h.Backend.(*snapshot.Snapshots)
			b.Source.(*DB).readers, b.Source.(*DB).partPages = readers, 1
			h.Source(strings.ReplaceAll(cmp.Or(c.before, "SELECT 1"), "ROLE_", h.Role))
			free := h.Lock("people") // which is read first: the moment is chosen, and visits not yet read
			done := make(chan error, 1)
			go func() { done <- backendtest.Renewed(t, h, 8*time.Second) }()
			pgtest.Shared(t).Until(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = '"+h.Role+"' AND wait_event_type = 'Lock')")
			h.Source("BEGIN; " + c.change + "; COMMIT")
			free()
			if err := <-done; (err != nil) != c.fails || err != nil && !errors.Is(err, errReplaced) {
				t.Errorf("%s, %d connections: %v", name, readers, err)
			}
			if !c.fails {
				continue
			}
			if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits"), h)); slices.Equal(got, []string{"[]: [0]"}) {
				t.Errorf("%s: an empty table is in force: %v", name, got)
			}
		}
	}
}

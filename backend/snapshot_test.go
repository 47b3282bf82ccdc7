package backend

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

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
)

// filesIn lists what lies in a directory of snapshots.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// people counts the people of the snapshot that is in force.
func people(t *testing.T, h *house) string {
	t.Helper()
	return strings.Join(counts(t, h, render(t, measure(t, h.policy, "people"), h)), ",")
}

// renewed makes a new snapshot, in force after so long.
func renewed(t *testing.T, h *house, after time.Duration) error {
	t.Helper()
	return renewedBy(t, h.Backend.(*Snapshots), after, func() *policy.Policy { return h.policy })
}

// renewedBy gives a copy that this machine did not make in time more time, and then more: no test of what a copy says fails for that.
func renewedBy(t *testing.T, b *Snapshots, after time.Duration, current func() *policy.Policy) error {
	for ; ; after *= 3 {
		if err := b.renew(t.Context(), time.Now().Add(after), current); !errors.Is(err, context.DeadlineExceeded) || after > 3*time.Minute {
			return err
		}
	}
}

// TestSnapshotStays: what changes in the source shows with the next snapshot and not before; the one before it stays for whoever was
// admitted under it, and is gone when the last of them is.
func TestSnapshotStays(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	change := h.source
	first := b.AsOf(nil)
	if got := people(t, h); got != "[]: [40]" {
		t.Fatal(got)
	}
	change("DELETE FROM people WHERE person_id <= 10")
	if got := people(t, h); got != "[]: [40]" {
		t.Errorf("a live row shows: %s", got)
	}
	_, leave, err := b.Admit(t.Context(), 0, h.policy)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := renewed(t, h, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	if time.Since(begun) < 3*time.Second {
		t.Error("in force before its moment")
	}
	if got := people(t, h); got != "[]: [30]" {
		t.Errorf("after the next snapshot: %s", got)
	}
	if b.AsOf(nil) <= first {
		t.Errorf("as of %d after %d", b.AsOf(nil), first)
	}
	q := render(t, measure(t, h.policy, "people"), h).Of(first)
	if got := counts(t, h, q); !slices.Equal(got, []string{"[]: [40]"}) {
		t.Errorf("who was admitted before reads %v", got)
	}
	if n := len(filesIn(t, b.plan.Dir)); n != 2 {
		t.Errorf("%d files while the first is read", n)
	}
	leave(time.Time{})
	if names := filesIn(t, b.plan.Dir); len(names) != 1 || !strings.HasPrefix(names[0], time.Unix(0, b.AsOf(nil)).UTC().Format(fileTime)) {
		t.Errorf("left: %v", names)
	}
	if b.enter(q) != nil {
		t.Error("a snapshot that is gone is read")
	}
}

// TestSnapshotsAreKept: they are made at the times of the policy, in force after what it says, of the policy that is in force; one that
// fails is told of, and the next one is made.
func TestSnapshotsAreKept(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	b.plan.Every, b.plan.Within = 2*time.Second, time.Second
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Keep(ctx, func() *policy.Policy { return h.policy })
	}()
	next := func() int64 {
		was := b.AsOf(nil)
		for begun := time.Now(); b.AsOf(nil) == was; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 3*time.Minute {
				t.Fatal(h.log)
			}
		}
		return b.AsOf(nil)
	}
	h.source("DELETE FROM people WHERE person_id <= 10")
	next()
	next()
	if got := people(t, h); got != "[]: [30]" {
		t.Errorf("two snapshots later: %s", got)
	}
	h.source("ALTER TABLE people RENAME TO folk")
	for begun := time.Now(); !strings.Contains(h.log.String(), "no new snapshot; the last one stays in force"); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal(h.log)
		}
	}
	h.source("ALTER TABLE folk RENAME TO people; DELETE FROM people WHERE person_id <= 20")
	next()
	next()
	if got := people(t, h); got != "[]: [20]" {
		t.Errorf("after one that failed: %s", got)
	}
	if at := time.Unix(0, next()); at.Sub(at.Truncate(2*time.Second)) > time.Second {
		t.Errorf("as of %v, which is no time of the policy", at)
	}
	stop()
	<-ended
	if names := filesIn(t, b.plan.Dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// TestSnapshotIsTakenUp: a start takes the newest whole snapshot that the same policy made, and none of another meaning.
func TestSnapshotIsTakenUp(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	h.source("DELETE FROM people")
	again := func() *house {
		p := *h.policy
		next := open(t, &p)
		prepare(t, next)
		return next
	}
	if got := people(t, again()); got != "[]: [40]" {
		t.Errorf("taken up: %s", got)
	}
	damaged := filepath.Join(b.plan.Dir, fileName(time.Now().Add(time.Second), b.copies[0].digest))
	if err := os.WriteFile(damaged, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := people(t, again()); got != "[]: [40]" {
		t.Errorf("beside a damaged one: %s", got)
	}
	h.policy.Datasets[0].Tables[0].Columns[0].Outside = policy.OutsideOther
	if got := people(t, again()); got != "[]: [0]" && got != "" {
		t.Errorf("of another meaning: %s", got)
	}
}

// TestSnapshotsOfAPolicyThatChanges: a policy that needs other tables has its snapshot before it is in force, what was asked under the
// one before it is answered meanwhile, and going back makes none anew.
func TestSnapshotsOfAPolicyThatChanges(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	before := render(t, measure(t, h.policy, "people"), h).Of(b.AsOf(nil))
	h.source("DELETE FROM people WHERE person_id <= 10")
	old, next := h.policy, testPolicy(t, h.policy.Backend.URL)
	next.Backend.Snapshot, next.Datasets[0].Tables[0].Columns[0].Outside = old.Backend.Snapshot, policy.OutsideOther
	h.policy = next
	prepare(t, h)
	after := render(t, measure(t, next, "people"), h)
	if one, other := counts(t, h, before), counts(t, h, after); !slices.Equal(one, []string{"[]: [40]"}) || !slices.Equal(other, []string{"[]: [30]"}) {
		t.Errorf("of the old policy %v, of the new one %v", one, other)
	}
	h.policy = old
	at := b.AsOf(nil)
	prepare(t, h)
	if b.AsOf(nil) >= at || len(filesIn(t, b.plan.Dir)) != 2 {
		t.Errorf("back again: as of %d after %d, files %v", b.AsOf(nil), at, filesIn(t, b.plan.Dir))
	}
	if err := renewed(t, h, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if names := filesIn(t, b.plan.Dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// TestSnapshotFails: what fails a snapshot leaves the last one in force, and nothing behind.
func TestSnapshotFails(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(h *house){
		"a column is gone":          func(h *house) { h.source("ALTER TABLE people DROP COLUMN income") },
		"a key is unproven":         func(h *house) { h.source("ALTER TABLE people DROP CONSTRAINT people_pkey") },
		"the source is gone":        func(h *house) { h.gone() },
		"it takes too long":         func(h *house) { h.source("BEGIN; LOCK TABLE visits") },
		"temporary files are bound": func(h *house) { h.source("ALTER ROLE " + h.role + " SET temp_file_limit = '1MB'") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := snapshotHouse(t)
			b := h.Backend.(*Snapshots)
			before := filesIn(t, b.plan.Dir)
			if name == "a key is unproven" {
				h.policy.Datasets[0].Tables[1].Via = &policy.Via{Column: "person_id", Key: "person_id", Table: h.policy.Datasets[0].Tables[0]}
			}
			if name == "it takes too long" {
				locked := h.lock("visits")
				defer locked()
			} else {
				disturb(h)
			}
			if err := b.renew(t.Context(), time.Now().Add(2*time.Second), func() *policy.Policy { return h.policy }); err == nil {
				t.Error("made all the same")
			} else if strings.Contains(err.Error(), canary) {
				t.Errorf("it tells a value: %v", err)
			}
			if got := people(t, h); got != "[]: [40]" {
				t.Errorf("the last snapshot answers %s", got)
			}
			if after := filesIn(t, b.plan.Dir); !slices.Equal(before, after) {
				t.Errorf("left: %v, before %v", after, before)
			}
		})
	}
}

// TestSnapshotOnAFullDisk: a snapshot that its disk does not hold leaves the last one in force, and gives the disk back.
func TestSnapshotOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("a disk of its own cannot be mounted here: %s", out)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	h := postgresHouseOf(t, &policy.Snapshot{Dir: filepath.Join(disk, "snapshots"), Every: 24 * time.Hour, Within: 3 * time.Second})
	prepare(t, h)
	h.source("INSERT INTO visits SELECT 1 + i % 40, md5(i::text), i % 60 FROM generate_series(1, 500000) AS s(i)")
	if err := renewed(t, h, 30*time.Second); !errors.Is(err, errMaking) {
		t.Errorf("it ends with %v", err)
	}
	if got := people(t, h); got != "[]: [40]" {
		t.Errorf("the last snapshot answers %s", got)
	}
	if names := filesIn(t, filepath.Join(disk, "snapshots")); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// TestSnapshotOfLongTexts: one row's long text fails nothing, wherever it stands.
func TestSnapshotOfLongTexts(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	h.source("ALTER TABLE visits ADD COLUMN other text; UPDATE visits SET clinic = repeat('x', 5000000), other = repeat('y', 5000000 + person_id::int) WHERE minutes = 7")
	h.policy.Datasets[0].Tables[1].Keys = []*policy.Column{{Name: "other", Source: "other", Type: policy.Text, Typmod: -1, Table: h.policy.Datasets[0].Tables[1]}}
	prepare(t, h)
	if err := renewed(t, h, 3*time.Second); err != nil {
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
		h := postgresHouseOf(t, &policy.Snapshot{Dir: filepath.Join(dir, "of"+filepath.Base(file)), Every: 24 * time.Hour, Within: time.Hour, Key: file})
		column := h.policy.Datasets[0].Tables[0].Column("sex")
		found := *column
		found.Domain, found.Open = nil, column
		prepare(t, h)
		if got := people(t, h); got != "[]: [40]" {
			t.Fatal(got)
		}
		b := h.Backend.(*Snapshots)
		info, err := os.Stat(b.copies[0].path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
		if dirInfo, err := os.Stat(b.plan.Dir); err != nil || dirInfo.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", dirInfo, err)
		}
		data, err := os.ReadFile(b.copies[0].path)
		if err != nil {
			t.Fatal(err)
		}
		if plain := bytes.Contains(data, []byte("1:age")); plain != (file == "") {
			t.Errorf("key %q: names of columns are in the file: %v", file, plain)
		}
		if file == "" {
			continue
		}
		if _, err := openCopy(t.Context(), b.copies[0].path, strings.Repeat("l", 40)); err == nil {
			t.Error("opened with another key")
		}
		if _, err := openCopy(t.Context(), b.copies[0].path, ""); err == nil {
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
		if _, err := readKey(key); err == nil {
			t.Errorf("a key of %d characters, mode %o", len(text), mode)
		}
	}
}

// TestSnapshotKeys: keys that a snapshot would compare otherwise than PostgreSQL does are refused before one is made, and so are those
// of which one row could fail it.
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
			h := postgresHouseOf(t, &policy.Snapshot{Dir: t.TempDir(), Every: 24 * time.Hour, Within: 3 * time.Second})
			h.source("CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE DOMAIN loose AS numeric")
			d := h.policy.Datasets[0]
			for i, kind := range c.kinds {
				table := d.Tables[1-i]
				h.source("ALTER TABLE " + table.Name + " ADD COLUMN k " + kind)
				table.UnitColumn = "k"
				table.Keys = append(table.Keys, &policy.Column{Name: "k", Source: "k", Type: c.declared, Typmod: -1, Table: table, Join: true, Unit: true})
			}
			h.fatal(t, c.refused)
		})
	}
	t.Run("of a trusted SELECT", func(t *testing.T) {
		t.Parallel()
		for collate, refused := range map[string]string{"": "", " COLLATE insensitive": collation} {
			h := postgresHouseOf(t, &policy.Snapshot{Dir: t.TempDir(), Every: 24 * time.Hour, Within: 3 * time.Second})
			h.source("CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
			h.source("ALTER TABLE visits ADD COLUMN k text" + collate)
			table := h.policy.Datasets[0].Tables[1]
			table.UnitColumn, table.View = "k", policy.View{Text: "SELECT k, clinic, minutes FROM public.visits", Trusted: true}
			h.fatal(t, refused)
		}
	})
}

// fatal has the database inspected, which must be refused by such words; empty: not at all.
func (h *house) fatal(t *testing.T, words string) {
	t.Helper()
	findings, err := h.Inspect(context.Background(), h.policy, h.policy.Datasets[0])
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range findings {
		if f.Fatal {
			text += f.Text + "\n"
		}
	}
	if words == "" && text != "" || !strings.Contains(text, words) {
		t.Errorf("findings: %q, must say %q", text, words)
	}
}

// TestSnapshotIsOfItsDatabase: a file is taken up by who reads the same database, and with a key only where it is encrypted.
func TestSnapshotIsOfItsDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(key string) *policy.Snapshot {
		return &policy.Snapshot{Dir: filepath.Join(dir, "snapshots"), Every: 24 * time.Hour, Within: 3 * time.Second, Key: key}
	}
	h, other := postgresHouseOf(t, in("")), postgresHouseOf(t, in(""))
	other.source("DELETE FROM people WHERE person_id > 5")
	prepare(t, h)
	prepare(t, other)
	if got := people(t, other); got != "[]: [5]" {
		t.Errorf("of another database: %s", got)
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := *h.policy
	p.Backend.Snapshot = in(key)
	locked := open(t, &p)
	prepare(t, locked)
	if locked.AsOf(nil) == h.AsOf(nil) {
		t.Error("with a key, a file that is not encrypted is read")
	}
}

// TestSnapshotOfAnotherPolicyHasItsMoment: a change of the policy that needs no other tables waits for nothing, one that does for a public
// moment; who is admitted under the old policy meanwhile reads rows of the moment that she is told.
func TestSnapshotOfAnotherPolicyHasItsMoment(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	b.plan.Within = 10 * time.Second
	old := render(t, measure(t, h.policy, "people"), h)
	h.source("DELETE FROM people WHERE person_id <= 10")
	done := make(chan error, 1)
	go func() {
		done <- b.renew(t.Context(), time.Now().Add(10*time.Second), func() *policy.Policy { return testPolicyLike(t, h) })
	}()
	time.Sleep(200 * time.Millisecond)
	if err := adopted(b, h.policy); err != nil {
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
	was, next := b.AsOf(nil), testPolicyLike(t, h)
	next.Datasets[0].Tables[0].Columns[0].Outside = policy.OutsideOther
	begun := time.Now()
	if err := adopted(b, next); err != nil || time.Since(begun) < b.plan.Within {
		t.Errorf("in force after %v (%v)", time.Since(begun), err)
	}
	asOf, leave, err := b.Admit(t.Context(), 0, h.policy)
	if err != nil {
		t.Fatal(err)
	}
	defer leave(time.Time{})
	if asOf(old) != was || asOf(render(t, measure(t, next, "people"), h)) != b.AsOf(nil) || b.AsOf(nil) == was {
		t.Errorf("the old policy's rows are as of %d, must be %d; the new one's of %d", asOf(old), was, b.AsOf(nil))
	}
	if b.enter(old.Of(b.AsOf(nil))) != nil {
		t.Error("a query reads a snapshot of another moment than it names")
	}
}

// TestSnapshotOfAPolicyThatIsRefused: until a policy is in force its copy is nobody's, and what is admitted then has the copy of its
// session's policy, whether it has queries or not (an alarm has none yet).
func TestSnapshotOfAPolicyThatIsRefused(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	b.plan.Within = 8 * time.Second
	first := h.policy
	was, old, next := b.AsOf(first), render(t, measure(t, h.policy, "people"), h), testPolicyLike(t, h)
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
		if got := counts(t, h, old.Of(asOf())); of == first && !slices.Equal(got, []string{"[]: [40]"}) {
			t.Errorf("a paid query reads %v", got)
		}
	}
	refused, err := b.Prepare(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	asks(h.policy, was)
	refused.GiveUp()
	if names := filesIn(t, b.plan.Dir); len(names) != 1 {
		t.Errorf("files %v after a policy that was refused", names)
	}
	taken, err := b.Prepare(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if err := renewed(t, h, 3*time.Second); err != nil { // of the policy before, meanwhile
		t.Fatal(err)
	}
	was = b.AsOf(h.policy)
	taken.PutInForce()
	asks(h.policy, was)
	asks(next, taken.copy.at.UnixNano())
	h.policy = next
	again, err := b.Prepare(t.Context(), next)
	if err != nil || again.copy != taken.copy {
		t.Error("a copy that is in force is made again", err)
	}
	if err := renewed(t, h, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	newer := b.AsOf(next)
	again.PutInForce() // while it waited a newer one came into force
	asks(next, newer)
	if names := filesIn(t, b.plan.Dir); newer <= taken.copy.at.UnixNano() || len(names) != 1 {
		t.Errorf("as of %d after %v, files %v", newer, taken.copy.at, names)
	}
}

// testPolicyLike is a policy like a house's, of its own tables.
func testPolicyLike(t *testing.T, h *house) *policy.Policy {
	p := testPolicy(t, h.policy.Backend.URL)
	p.Backend.Snapshot = h.policy.Backend.Snapshot
	return p
}

// TestSnapshotsOfTwoProcesses: two that make one at a time have a file each.
func TestSnapshotsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	p := *h.policy
	other := open(t, &p)
	prepare(t, other)
	a, b := h.Backend.(*Snapshots), other.Backend.(*Snapshots)
	errs := make(chan error, 2)
	for _, one := range []*Snapshots{a, b} {
		go func() { errs <- renewedBy(t, one, 3*time.Second, func() *policy.Policy { return h.policy }) }()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	if a.AsOf(nil) == b.AsOf(nil) || people(t, h) != "[]: [40]" || people(t, other) != "[]: [40]" {
		t.Errorf("as of %d and %d: %s and %s", a.AsOf(nil), b.AsOf(nil), people(t, h), people(t, other))
	}
}

// TestSnapshotsOfEveryStep: where one comes into force when the next is begun, none is left out.
func TestSnapshotsOfEveryStep(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	b.plan.Every, b.plan.Within = 6*time.Second, 6*time.Second
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Keep(ctx, func() *policy.Policy { return h.policy })
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

// TestSnapshotKeepsNoMoreDigits: digits beyond those that a snapshot holds are cut off, and move no value into another cell.
func TestSnapshotKeepsNoMoreDigits(t *testing.T) {
	t.Parallel()
	for _, most := range []string{"10000000000", "1000000000"} { // the first is beyond 64 bits with its digits
		var got [2]string
		for i, s := range []*policy.Snapshot{nil, {Dir: t.TempDir(), Every: 24 * time.Hour, Within: 3 * time.Second}} {
			h := postgresHouseOf(t, s)
			h.source("ALTER TABLE people ALTER COLUMN income TYPE numeric; UPDATE people SET income = 999999.9999999999")
			table := h.policy.Datasets[0].Tables[0]
			table.Columns[2] = testColumn(t, "income", "numeric", policy.OutsideClamp, "0", most, "1000000")
			table.Columns[2].Table = table
			if s != nil {
				prepare(t, h)
			}
			got[i] = strings.Join(counts(t, h, render(t, measure(t, h.policy, "people", "income"), h)), ",")
		}
		if got[0] != got[1] {
			t.Errorf("up to %s: live %s, of a snapshot %s", most, got[0], got[1])
		}
	}
}

// TestMemoryOfOpenSnapshots: one that is open is bounded.
func TestMemoryOfOpenSnapshots(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
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
	t.Log(limit(plain), limit(h.Backend.(*Snapshots).copies[0].db))
	of := func(text string) (gib float64) {
		if _, err := fmt.Sscanf(text, "%g GiB", &gib); err != nil {
			t.Skip(text, err)
		}
		return gib
	}
	if share := of(limit(h.Backend.(*Snapshots).copies[0].db)) / of(limit(plain)); share < 0.49 || share > 0.51 {
		t.Errorf("a share of %g of what DuckDB takes by itself", share)
	}
}

// TestSnapshotOfSeveralConnections: several connections read the parts of one table, and what they put together is of one moment, while
// rows are moved, added and taken away; rows of an inheritance child are read once; what the role may not open is done without.
func TestSnapshotOfSeveralConnections(t *testing.T) {
	t.Parallel()
	h := snapshotHouse(t)
	b := h.Backend.(*Snapshots)
	source := b.source.(*Postgres)
	source.readers, source.partPages = 4, 3
	d := h.policy.Datasets[0]
	d.Tables[1].MaxRowsPerUnit = 1_000_000
	h.source("TRUNCATE visits; INSERT INTO visits SELECT i % 40, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END, i % 60 FROM generate_series(1, 40000) AS s(i)")
	h.source("CREATE TABLE more () INHERITS (visits); INSERT INTO more SELECT 1, 'north', 1 FROM generate_series(1, 5000)")
	h.source("GRANT SELECT ON more TO " + h.role)
	ctx, stop := context.WithCancel(t.Context())
	moved := make(chan int)
	go func() { // each transaction moves as many rows to the north as to the south, and a row from one end of the table to the other
		n := 0
		for ; ctx.Err() == nil; n++ {
			h.source(fmt.Sprintf("BEGIN; UPDATE ONLY visits SET clinic = CASE clinic WHEN 'north' THEN 'south' ELSE 'north' END WHERE ctid IN (SELECT ctid FROM ONLY visits WHERE clinic = 'north' LIMIT 50) OR ctid IN (SELECT ctid FROM ONLY visits WHERE clinic = 'south' LIMIT 50); "+
				"DELETE FROM ONLY visits WHERE ctid = (SELECT min(ctid) FROM ONLY visits WHERE clinic = 'south'); INSERT INTO visits VALUES (%d, 'south', 1); COMMIT", n%40))
		}
		moved <- n
	}()
	for range 3 {
		if err := renewed(t, h, 5*time.Second); err != nil {
			t.Error(err, h.log)
		}
		got := counts(t, h, render(t, measure(t, h.policy, "visits", "clinic"), h))
		if !slices.Equal(got, []string{"[0]: [25000]", "[1]: [20000]"}) {
			t.Errorf("of no one moment: %v", got)
		}
	}
	stop()
	if n := <-moved; n < 3 {
		t.Errorf("%d transactions beside three copies", n)
	}
	if !strings.Contains(h.log.String(), "parts=") {
		t.Error("it is read in one piece")
	}
	h.source("ALTER ROLE " + h.role + " CONNECTION LIMIT 3")
	if err := renewed(t, h, 5*time.Second); err != nil || !strings.Contains(h.log.String(), "fewer connections") {
		t.Errorf("with few connections: %v", err)
	}
	if got := counts(t, h, render(t, measure(t, h.policy, "visits", "clinic"), h)); !slices.Equal(got, []string{"[0]: [25000]", "[1]: [20000]"}) {
		t.Errorf("with few connections: %v", got)
	}
}

// TestSnapshotOfALostConnection: connections that are lost while tables are read end the copy, and the next one is made.
func TestSnapshotOfALostConnection(t *testing.T) {
	t.Parallel()
	for _, readers := range []int{1, 3} {
		h := snapshotHouse(t)
		b := h.Backend.(*Snapshots)
		b.source.(*Postgres).readers, b.source.(*Postgres).partPages = readers, 1
		free := h.lock("visits") // people is read, and visits waits
		done := make(chan error, 1)
		go func() { done <- renewed(t, h, 20*time.Second) }()
		waiting := "FROM pg_stat_activity WHERE usename = '" + h.role + "' AND wait_event_type = 'Lock'"
		pgtest.Shared(t).Until(t, "SELECT EXISTS (SELECT "+waiting+")")
		h.source("SELECT pg_terminate_backend(pid) " + waiting)
		if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d connections: %v", readers, err)
		}
		free()
		if names := filesIn(t, b.plan.Dir); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		if err := renewed(t, h, 5*time.Second); err != nil {
			t.Errorf("the next one: %v", err)
		}
	}
}

// TestSnapshotOfATableThatIsReplaced: a table that its owner empties and fills anew, or writes anew, in one transaction that ends after the
// moment of the copy and before the table is read, has no rows in that moment any more: the copy is given up, and the last one stays.
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
			h := snapshotHouse(t)
			b := h.Backend.(*Snapshots)
			b.source.(*Postgres).readers, b.source.(*Postgres).partPages = readers, 1
			h.source(strings.ReplaceAll(cmp.Or(c.before, "SELECT 1"), "ROLE_", h.role))
			free := h.lock("people") // which is read first: the moment is chosen, and visits not yet read
			done := make(chan error, 1)
			go func() { done <- renewed(t, h, 8*time.Second) }()
			pgtest.Shared(t).Until(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = '"+h.role+"' AND wait_event_type = 'Lock')")
			h.source("BEGIN; " + c.change + "; COMMIT")
			free()
			if err := <-done; (err != nil) != c.fails || err != nil && !errors.Is(err, errReplaced) {
				t.Errorf("%s, %d connections: %v", name, readers, err)
			}
			if !c.fails {
				continue
			}
			if got := counts(t, h, render(t, measure(t, h.policy, "visits"), h)); slices.Equal(got, []string{"[]: [0]"}) {
				t.Errorf("%s: an empty table is in force: %v", name, got)
			}
		}
	}
}

package duckdb

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/csv"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/policy"
)

// sourceHouses are snapshots of what is no server.
var sourceHouses = map[string]func(*testing.T) *backendtest.House{"DuckDB": backendtest.DuckSnapshotHouse, "files": backendtest.FilesHouse}

// TestSnapshotsOfFiles: a snapshot of a DB file, and one of Parquet and CSV files, counts what DB counts live; the
// owner can write to her file meanwhile, which the next one shows; what takes the file away leaves the last one.
func TestSnapshotsOfFiles(t *testing.T) {
	t.Parallel()
	for name, build := range sourceHouses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, h := backendtest.DuckHouse(t), build(t)
			for _, grain := range [][]string{{"people"}, {"people", "age"}, {"people", "sex", "income"}, {"visits"}, {"visits", "clinic"}, {"visits", "clinic", "minutes"}} {
				want := backendtest.Counts(t, live, backendtest.Render(t, backendtest.Measure(t, live.Policy, grain[0], grain[1:]...), live))
				if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, grain[0], grain[1:]...), h)); !slices.Equal(got, want) {
					t.Errorf("%v: %v, live %v", grain, got, want)
				}
			}
			h.Source("DELETE FROM people WHERE person_id <= 10")
			if got := backendtest.People(t, h); got != "[]: [40]" {
				t.Errorf("a live row shows: %s", got)
			}
			if err := backendtest.Renewed(t, h, 3*time.Second); err != nil {
				t.Fatal(err)
			}
			h.Gone()
			if err := backendtest.Renewed(t, h, 2*time.Second); err == nil || strings.Contains(err.Error(), backendtest.Canary) {
				t.Errorf("of nothing: %v", err)
			}
			if got := backendtest.People(t, h); got != "[]: [30]" {
				t.Errorf("the last one answers %s", got)
			}
			if left := backendtest.FilesIn(t, h.Backend.(*snapshot.Snapshots).Plan.Dir); len(left) != 1 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestSnapshotOfADuckDBFileInUse: while another process writes to the file a copy waits for its end, as long as it has
// time.
func TestSnapshotOfADuckDBFileInUse(t *testing.T) {
	t.Parallel()
	if file := os.Getenv("DPPROXY_TEST_HOLD"); file != "" { // this is the other process
		backendtest.RunDuck(t, file, "DELETE FROM people WHERE person_id <= 10")
		db, err := sql.Open("duckdb", file)
		if err == nil {
			err = db.Ping()
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		if _, err := db.Exec("DELETE FROM people WHERE person_id <= 15"); err != nil {
			t.Fatal(err)
		}
		db.Close()
		return
	}
	h := backendtest.DuckSnapshotHouse(t)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestSnapshotOfADuckDBFileInUse$")
	cmd.Env = append(os.Environ(), "DPPROXY_TEST_HOLD="+duckFile(h.Policy))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatal(line, err)
	}
	if err := h.Backend.(*snapshot.Snapshots).Renew(t.Context(), time.Now().Add(2*time.Second), func() *policy.Policy { return h.Policy }); err == nil {
		t.Error("made while another process may write")
	}
	done := make(chan error, 1)
	go func() { done <- backendtest.Renewed(t, h, 10*time.Second) }()
	time.Sleep(500 * time.Millisecond)
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after the other process: %v", err)
	}
	if got := backendtest.People(t, h); got != "[]: [25]" {
		t.Error(got)
	}
}

// TestSnapshotOfAnotherSchema: a file of another schema than was inspected, or none, is reported.
func TestSnapshotOfAnotherSchema(t *testing.T) {
	t.Parallel()
	h := backendtest.DuckSnapshotHouse(t)
	file := duckFile(h.Policy)
	moved := file + ".moved"
	if err := os.Rename(file, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := backendtest.Renewed(t, h, 2*time.Second); err == nil || !strings.Contains(err.Error(), "not a DuckDB file") {
		t.Errorf("no database: %v", err)
	}
	if err := os.Rename(moved, file); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"ALTER TABLE people DROP COLUMN income", "ALTER TABLE people ADD COLUMN income VARCHAR"} {
		h.Source(change)
		if err := backendtest.Renewed(t, h, 2*time.Second); !errors.Is(err, backend.ErrDrift) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestSnapshotOfFilesThatChange: files of which one is put in another's place while they are read are of no one moment.
func TestSnapshotOfFilesThatChange(t *testing.T) {
	t.Parallel()
	h := backendtest.FilesHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	want, err := b.ExtractionsOf(h.Policy)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(){
		"nothing":  func() {},
		"replaced": func() { h.Source("DELETE FROM visits") },
		"appended": func() {
			f, err := os.OpenFile(h.Policy.Backend.Files["visits"], os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("1,north,3\n")
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Error(err)
			}
		},
	} {
		dir := t.TempDir()
		engine, err := embedded.Start(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		m := &snapshot.Maker{Instance: engine, Log: b.Log, List: want.List, Proven: map[string]bool{}}
		if err := m.Exec(t.Context(), embedded.Attach(filepath.Join(dir, "staged"), "staged", "", false)); err != nil {
			t.Fatal(err)
		}
		err = b.Source.Consistent(t.Context(), m, func(snapshot.Reading) error { change(); return nil })
		if (err == nil) != (name == "nothing") {
			t.Errorf("%s: %v", name, err)
		}
		engine.Close()
	}
}

// TestSnapshotOfADuckDBFileThatIsCopiedOver: a DB file over which another one is copied while it is read is of no one
// moment: its lock is between DB's processes alone.
func TestSnapshotOfADuckDBFileThatIsCopiedOver(t *testing.T) {
	t.Parallel()
	h := backendtest.DuckSnapshotHouse(t)
	b := h.Backend.(*snapshot.Snapshots)
	want, err := b.ExtractionsOf(h.Policy)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(backendtest.DuckFileWith(t, "DELETE FROM visits"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	engine, err := embedded.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	m := &snapshot.Maker{Instance: engine, Log: b.Log, List: want.List, Proven: map[string]bool{}}
	if err := m.Exec(t.Context(), embedded.Attach(filepath.Join(dir, "staged"), "staged", "", false)); err != nil {
		t.Fatal(err)
	}
	if err := b.Source.Consistent(t.Context(), m, func(snapshot.Reading) error { return os.WriteFile(duckFile(h.Policy), other, 0o600) }); err == nil {
		t.Error("taken for one moment")
	}
}

// TestOneCellFailsNoSnapshotOfFiles: whatever a cell holds, a snapshot is made, and other rows are read as before.
func TestOneCellFailsNoSnapshotOfFiles(t *testing.T) {
	t.Parallel()
	for name, cells := range map[string]string{
		"long":         "1," + strings.Repeat("x", 2*csv.MaxField) + ",5,k",
		"no number":    "age,Male,no,k",
		"out of range": "99999999999999999999,Male,1e400,99999999999999999999",
		"bytes":        "\xff,\xfe\x00,\xfd,\xfc",
		"nothing":      ",,,",
		"nan":          "nan,NaN,nan,nan",
		"infinity":     "infinity,x,-infinity,infinity",
		"a short line": "1",
		"a long key":   "1,Male,2," + strings.Repeat("9", 2000),
	} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprint(name, whole), func(t *testing.T) {
				t.Parallel()
				p := filePolicy(t, "people.csv", "age,sex,income,person_id\n34,Female,1000.5,1\n"+cells+"\n35,Male,7,2\n")
				p.Backend.Snapshot, p.Backend.Files = backendtest.TestSnapshot(t), map[string]string{"people": p.Datasets[0].Tables[0].File}
				if whole {
					people := p.Datasets[0].Tables[0]
					people.Keys = append(people.Keys, &policy.Column{Name: "person_id", Source: "person_id", Type: policy.Int8, Typmod: -1, Table: people, Join: true, Unit: true})
				}
				h := backendtest.Open(t, p)
				backendtest.Prepare(t, h)
				got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h))
				if !slices.Contains(got, "[34]: [1]") || !slices.Contains(got, "[35]: [1]") || len(got) > 3 {
					t.Errorf("ages %v", got)
				}
				if told := strings.Contains(h.Log.String(), "another number of fields"); told != (name == "a short line") {
					t.Errorf("lines that are left out: told %v", told)
				}
			})
		}
	}
}

// TestSnapshotKeysOfDuckDB: which types of keys a snapshot of a DB file is refused with.
func TestSnapshotKeysOfDuckDB(t *testing.T) {
	t.Parallel()
	const texts = "equal values may have different texts"
	for name, c := range map[string]struct {
		kind     string
		declared policy.Type
		refused  string
	}{
		"text": {"VARCHAR", 0, ""}, "whole": {"UINTEGER", policy.Int8, ""}, "uuid": {"UUID", 0, ""}, "a scale": {"DECIMAL(8,2)", 0, ""}, "wide": {"HUGEINT", 0, ""},
		"wide, declared whole": {"HUGEINT", policy.Int8, "says that it is a whole number"}, "unsigned, declared whole": {"UBIGINT", policy.Int8, "says that it is a whole number"},
		"floating": {"DOUBLE", 0, texts}, "interval": {"INTERVAL", 0, texts}, "list": {"INTEGER[]", 0, texts}, "struct": {"STRUCT(a INTEGER)", 0, texts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := backendtest.TestPolicy(t, "duckdb:"+backendtest.DuckFileWith(t, "ALTER TABLE people ADD COLUMN k "+c.kind, "ALTER TABLE visits ADD COLUMN k "+c.kind))
			p.Backend.Snapshot = backendtest.TestSnapshot(t)
			for _, table := range p.Datasets[0].Tables[:2] {
				table.UnitColumn = "k"
				table.Keys = append(table.Keys, &policy.Column{Name: "k", Source: "k", Type: c.declared, Typmod: -1, Table: table, Join: true, Unit: true})
			}
			h := backendtest.Open(t, p)
			backendtest.RefusesWith(t, h, c.refused)
			if c.refused == "" {
				backendtest.Prepare(t, h)
			}
		})
	}
}

// TestSnapshotOfParquetThatIsBroken: a file that is none fails the copy and shows nothing of it.
func TestSnapshotOfParquetThatIsBroken(t *testing.T) {
	t.Parallel()
	h := backendtest.FilesHouse(t)
	path := h.Policy.Backend.Files["people"]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4; i < len(data)/2; i++ {
		data[i] ^= 0x5a
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := backendtest.Renewed(t, h, 2*time.Second); err == nil || strings.Contains(err.Error(), backendtest.Canary) {
		t.Errorf("of a damaged file: %v", err)
	}
	if got := backendtest.People(t, h); got != "[]: [40]" {
		t.Errorf("the last one answers %s", got)
	}
}

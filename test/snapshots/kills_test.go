package snapshots

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestKilledWhileItIsMade: a process that is killed at any moment of making a snapshot leaves nothing that the next
// start takes for a whole one, and what it left is gone after the next.
func TestKilledWhileItIsMade(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "1000", Cap: "1000"}, 0)
	server.Exec(t, database, "INSERT INTO people SELECT i, i % 100, 0, 'n1', 'c' || i % 4, false FROM generate_series(1001, 100000) AS s(i)")
	kit.Edit(t, path, "backend: {", "backend: {snapshot: {dir: snapshots, every: 1d}, ", "max_epsilon: 1,", "max_epsilon: 100,")
	dir := filepath.Join(filepath.Dir(path), "snapshots")
	const seed = 1807
	random := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	whole := 0
	for range kit.Length(4, 8, 60) {
		killedAfter(t, path, time.Duration(random.IntN(900))*time.Millisecond)
		for _, name := range entries(t, dir) {
			if !strings.HasPrefix(name, "making-") {
				whole++
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	kit.Serve(t, path).Stop(syscall.SIGTERM)
	kept := entries(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "making-1"), 0o700); err != nil { // as one who was killed a moment ago leaves it
		t.Fatal(err)
	}
	p := kit.Serve(t, path) // which takes up the one that is there
	if names := entries(t, dir); !slices.Equal(names, kept) {
		t.Errorf("%v, and before the restart %v", names, kept)
	}
	w := p.Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 100")
	a := w.Ask("SELECT count(*) FROM people")
	if n := kit.Count(t, a); n < 99_990 || n > 100_010 {
		t.Errorf("%d of 100,000", n)
	}
	if !strings.Contains(fmt.Sprint(a.Notes), "; as of 2") {
		t.Errorf("no notice says of which moment the rows are: %v", a.Notes)
	}
	if plan := fmt.Sprint(w.Ask("EXPLAIN SELECT count(*) FROM people WHERE age > 30").Rows); !strings.Contains(plan, "Rows: as of 2") {
		t.Errorf("EXPLAIN does not say of which moment the rows are: %s", plan)
	}
	if names := entries(t, dir); len(names) != 1 || !strings.HasSuffix(names[0], ".duckdb") {
		t.Errorf("left: %v", names)
	}
	t.Logf("%d were whole when the process was killed", whole)
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestStoppedWhileItIsMade: a process that is asked to stop while it makes a snapshot ends soon, and leaves nothing;
// the next start begins anew, for what was read is of a moment that no later transaction sees again. The same of files.
func TestStoppedWhileItIsMade(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "1000", Cap: "1000"}, 0)
	server.Exec(t, database, "INSERT INTO people SELECT i, i % 100, 0, 'n1', 'c' || i % 4, false FROM generate_series(1001, 300000) AS s(i)")
	kit.Edit(t, path, "backend: {", "backend: {snapshot: {dir: snapshots, every: 1d}, ", "max_epsilon: 1,", "max_epsilon: 100,")
	dir := filepath.Join(filepath.Dir(path), "snapshots")
	for _, after := range []time.Duration{0, 200 * time.Millisecond, 500 * time.Millisecond} {
		begun := time.Now()
		endedAfter(t, path, after, syscall.SIGTERM)
		t.Logf("ended %v after it was begun", time.Since(begun))
		for _, name := range entries(t, dir) {
			if strings.HasPrefix(name, "making-") {
				t.Errorf("left: %s", name)
			} else if err := os.Remove(filepath.Join(dir, name)); err != nil { // it was whole
				t.Fatal(err)
			}
		}
	}
	w := kit.Serve(t, path).Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 100")
	if n := kit.Count(t, w.Ask("SELECT count(*) FROM people")); n < 299_990 || n > 300_010 {
		t.Errorf("%d of 300,000", n)
	}
}

// killedAfter starts the program and kills it so long after it has begun a snapshot.
func killedAfter(t *testing.T, path string, after time.Duration) {
	t.Helper()
	endedAfter(t, path, after, syscall.SIGKILL)
}

// endedAfter starts the program and sends it a signal so long after it has begun a snapshot.
func endedAfter(t *testing.T, path string, after time.Duration, by syscall.Signal) {
	t.Helper()
	executable, err := kit.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(executable, "serve", "--policy", path)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "the private tables are copied") {
			break
		}
	}
	time.Sleep(after)
	_ = cmd.Process.Signal(by)
	for lines.Scan() {
	}
	_ = cmd.Wait()
}

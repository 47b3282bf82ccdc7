package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/internal/processor"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestBenchHeldRanges prints how many ranges a second of a held release of 4,096 cells are answered, each asked for the
// first time but for one in a few hundred, and the same few again and again, beside pgbench -S on PostgreSQL by turns:
// prepared, 8 clients.
func TestBenchHeldRanges(t *testing.T) {
	benchOnly(t)
	server, bench, dir := pgtest.Start(t), pgbenchPath(t), t.TempDir()
	direct := server.URL()
	if out, err := exec.Command(bench, "-i", "-q", "-s", "10", direct).CombinedOutput(); err != nil {
		t.Fatalf("pgbench -i: %v\n%s", err, out)
	}
	p := kit.Demo(t, dir, "100000")
	p.Stop(syscall.SIGTERM)
	kit.Edit(t, filepath.Join(dir, "policy.yaml"), "{min: 0, max: 250000, step: 1000}", "{min: 0, max: 245759, step: 60}", "{column: income, step: 10000}, ", "",
		"type: integer, domain: {min: 0, max: 245759, step: 60}", "type: integer, nulls: exclude, domain: {min: 0, max: 245759, step: 60}")
	p.Start([]string{"serve", "--policy", filepath.Join(dir, "policy.yaml")})
	w := p.Connect("analyst", "demo")
	w.Ask(`SET dp.epsilon = 0.5`)
	if a := w.Ask(`SELECT count(*) FROM people WHERE income >= 1200 AND income < 180000`); a.Err != nil {
		t.Fatal(a.Err)
	}
	script := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const asked = "SELECT count(*) FROM people WHERE income >= :a AND income < :b;\n"
	first := script("first.sql", "\\set c random(0, 4094)\n\\set a 60 * :c\n\\set b 60 * random(:c + 1, 4095)\n"+asked)
	again := script("again.sql", "\\set a 6000 * random(0, 19)\n\\set b :a + 6000 * random(1, 20)\n"+asked)
	var fresh, warm, postgres, freshWork, warmWork []float64
	const seconds = 4
	run := func(args ...string) (rate, work float64) {
		before, _ := processor.Time(p.Cmd.Process.Pid)
		rate = tps(t, bench, append([]string{"-n", "-M", "prepared", "-c", "8", "-j", "2", "-T", strconv.Itoa(seconds)}, args...)...)
		after, _ := processor.Time(p.Cmd.Process.Pid)
		return rate, (after - before).Seconds() * 1e6 / (rate * seconds)
	}
	add := func(rates, works *[]float64, args ...string) {
		rate, work := run(args...)
		*rates, *works = append(*rates, rate), append(*works, work)
	}
	for range 3 {
		add(&postgres, new([]float64), "-S", direct)
		add(&fresh, &freshWork, "-f", first, p.URL("analyst", "demo"))
		add(&warm, &warmWork, "-f", again, p.URL("analyst", "demo"))
	}
	const table = "8 clients, prepared, a held range release of 4,096 cells"
	for _, side := range []struct {
		name string
		list []float64
		aim  string
		work []float64
	}{{"each range asked for the first time", fresh, "0.6", freshWork}, {"the same few again and again", warm, "1.2", warmWork}, {"`pgbench -S` on PostgreSQL", postgres, "", nil}} {
		work := ""
		if side.work != nil {
			work = figures.Number(median(side.work)) + " µs"
		}
		figures.Row(table, side.name, "answers a second", figures.Number(median(side.list)), "× `pgbench -S`", fmt.Sprintf("%.2f", median(side.list)/median(postgres)), "aim", side.aim, "processor time of the proxy an answer", work)
	}
}

package ledger

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/figures"
)

// BenchmarkPostgresProxies has one proxy, two and four on one ledger charge in one dataset, in eight of which each is
// one proxy's, and in eight that all of them charge in; beside them pgbench's simple-update on the same server and the
// disk's own flushes. All of it goes by turns, and what is printed are medians over the rounds: of charges a second, of
// the ratio to one proxy in the same round, of the processors that proxies and server have used together, which is what
// bounds them where it comes to all there are, and of their time for a charge. Sessions are so many in all, or so many
// for each proxy, as where each has analysts of its own.
func BenchmarkPostgresProxies(b *testing.B) {
	var sets []DatasetTerms
	for n := range 8 {
		d := killed()
		d.ID, d.Relations = fmt.Sprint("set", n), []string{fmt.Sprint("public.set", n)}
		sets = append(sets, d)
	}
	proxies := map[int][]*keeper{}
	for _, n := range []int{1, 2, 4} {
		_, proxies[n] = several(b, n, Options{}, sets...)
	}
	pgbench := simpleUpdate(b)
	var n atomic.Uint64
	kinds := []struct {
		name string
		set  func(proxy, of, session int) int
	}{
		{"one dataset", func(int, int, int) int { return 0 }},
		{"8 datasets, each of one proxy", func(proxy, of, session int) int { return (session/of*of + proxy) % 8 }},
		{"8 datasets, all of each proxy", func(_, of, session int) int { return session / of % 8 }},
	}
	got := map[[2]string][]float64{}
	rows := map[string]bool{}
	note := func(row, column string, figure float64) {
		rows[row] = true
		got[[2]string{row, column}] = append(got[[2]string{row, column}], figure)
	}
	for b.Loop() {
		for range 3 {
			note("flushes of the disk", "one, a second", flushes(b, time.Second/2))
			if pgbench != nil {
				note("pgbench simple-update, 1 client", "one, a second", pgbench(1))
				note("pgbench simple-update, 16 clients", "one, a second", pgbench(16))
			}
			for _, kind := range kinds {
				for _, sessions := range []int{2, 16, 64, -16} { // less than zero: for each proxy
					row, one := fmt.Sprintf("%s, %d sessions", kind.name, sessions), 0.0
					if sessions < 0 {
						row = fmt.Sprintf("%s, %d sessions a proxy", kind.name, -sessions)
					}
					for _, of := range []int{1, 2, 4} {
						all := max(sessions, -sessions*of)
						if of > all {
							continue
						}
						rate, used := charging(b, proxies[of], all, kind.set, &n)
						if of == 1 {
							one = rate
							note(row, "one, a second", rate)
							note(row, "its processors", used)
							note(row, "its µs a charge", used/rate*1e6)
							continue
						}
						many := map[int]string{2: "two", 4: "four"}[of]
						note(row, many+", a second", rate)
						note(row, many+" by one", rate/one)
						note(row, many+": processors", used)
						note(row, many+": µs a charge", used/rate*1e6)
					}
				}
			}
		}
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		var cells []string
		for _, column := range []string{"one, a second", "two, a second", "two by one", "four, a second", "four by one", "its processors", "two: processors", "four: processors",
			"its µs a charge", "two: µs a charge", "four: µs a charge"} {
			list := got[[2]string{row, column}]
			if len(list) == 0 {
				continue
			}
			slices.Sort(list)
			form := "%.2f"
			if list[len(list)/2] >= 20 {
				form = "%.0f"
			}
			cells = append(cells, column, fmt.Sprintf(form, list[len(list)/2]))
		}
		figures.Row("proxies", row, cells...)
	}
	b.ReportMetric(0, "ns/op")
}

// charging has so many sessions, evenly on the proxies, charge for a while, each in one dataset, and tells how many
// charges a second they made, and how many processors were busy with them. A proxy takes who has written in a dataset
// for one that goes on for a while, which it waits for first.
func charging(b *testing.B, proxies []*keeper, sessions int, set func(proxy, of, session int) int, n *atomic.Uint64) (rate, used float64) {
	var all sync.WaitGroup
	var done atomic.Int64
	time.Sleep(rivalry)
	before, began := busy(b), time.Now()
	for g := range sessions {
		proxy := g % len(proxies)
		dataset := fmt.Sprint("set", set(proxy, len(proxies), g))
		all.Go(func() {
			for time.Since(began) < 3*time.Second/2 {
				benchmarkOne(b, proxies[proxy], dataset, n.Add(1))
				done.Add(1)
			}
		})
	}
	all.Wait()
	long := time.Since(began).Seconds()
	return float64(done.Load()) / long, (busy(b) - before).Seconds() / long
}

// busy is the time that processors have spent on this process and on the server's, of those that live.
func busy(b *testing.B) (sum time.Duration) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	sum = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	postmaster, err := os.ReadFile(filepath.Join(server.Dir, "data", "postmaster.pid"))
	if err != nil {
		b.Fatal(err)
	}
	parent, _, _ := strings.Cut(string(postmaster), "\n")
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 12 && f[1] == parent {
			user, _ := strconv.ParseInt(f[11], 10, 64)
			system, _ := strconv.ParseInt(f[12], 10, 64)
			sum += time.Duration(user+system) * 10 * time.Millisecond // ticks of Linux
		}
	}
	return sum
}

// flushes is how many flushes of one appended page a second the disk does.
func flushes(b *testing.B, long time.Duration) float64 {
	f, err := os.Create(filepath.Join(b.TempDir(), "flush"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page, n, began := make([]byte, 4120), 0, time.Now()
	for ; time.Since(began) < long; n++ {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// simpleUpdate prepares pgbench's simple-update and returns what runs it with so many clients; nil means there is no
// pgbench.
func simpleUpdate(b *testing.B) func(clients int) float64 {
	s := pgServer(b)
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(bins) == 0 {
		return nil
	}
	at := []string{"-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-U", "postgres", s.Database(b)}
	pgbench := func(args ...string) []byte {
		out, err := exec.Command(bins[0], append(args, at...)...).CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return out
	}
	pgbench("-i", "-q")
	return func(clients int) float64 {
		out := pgbench("-n", "-N", "-T", "2", "-M", "prepared", "-c", strconv.Itoa(clients))
		tps := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
		if tps == nil {
			b.Fatalf("%s", out)
		}
		n, _ := strconv.ParseFloat(string(tps[1]), 64)
		return n
	}
}

package ledger

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkPostgresProxies has one proxy, and two on one ledger, charge the same accounts, beside pgbench's simple-update
// on the same server and the disk's own flushes, all in one go: by turns, and the median of the rounds is reported.
func BenchmarkPostgresProxies(b *testing.B) {
	_, one := several(b, 1, Options{}, killed())
	_, two := several(b, 2, Options{}, killed())
	var n atomic.Uint64
	arms := map[string]func() float64{
		"flush": func() float64 { return flushes(b, time.Second) },
	}
	for _, sessions := range []int{2, 16, 64, 128} {
		arms[fmt.Sprint("one/", sessions)] = func() float64 { return charging(b, one, sessions, &n) }
		arms[fmt.Sprint("two/", sessions)] = func() float64 { return charging(b, two, sessions, &n) }
	}
	if run := simpleUpdate(b); run != nil {
		for _, clients := range []int{1, 16} {
			arms[fmt.Sprint("pgbench/", clients)] = func() float64 { return run(clients) }
		}
	}
	got := map[string][]float64{}
	for b.Loop() {
		for range 3 {
			for name, run := range arms {
				got[name] = append(got[name], run())
			}
		}
	}
	for name, list := range got {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name+"/s")
	}
	b.ReportMetric(0, "ns/op")
}

// charging has so many sessions, evenly on the proxies, charge for two seconds, and tells how many charges a second.
func charging(b *testing.B, proxies []*keeper, sessions int, n *atomic.Uint64) float64 {
	var all sync.WaitGroup
	var done atomic.Int64
	began := time.Now()
	for g := range sessions {
		all.Go(func() {
			for time.Since(began) < 2*time.Second {
				benchmarkOne(b, proxies[g%len(proxies)], n.Add(1))
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
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

// simpleUpdate prepares pgbench's simple-update and returns what runs it with so many clients; nil: there is no pgbench.
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

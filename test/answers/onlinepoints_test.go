package answers

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// points is a ledger that tells where its caller is: before and after what is durable.
type points struct {
	ledger.Ledger
	at func(point string)
}

func (p points) Charge(ctx context.Context, r ledger.Request) ([]ledger.Outcome, error) {
	out, err := p.Ledger.Charge(ctx, r)
	p.at("charged")
	return out, err
}

func (p points) Save(ctx context.Context, r *ledger.Receipt, drawn mechanisms.Drawn) (int64, error) {
	id, err := p.Ledger.Save(ctx, r, drawn)
	p.at("saved")
	return id, err
}

func (p points) Extend(ctx context.Context, user string, id int64, step []byte) error {
	p.at("hard")
	err := p.Ledger.Extend(ctx, user, id, step)
	p.at("extended")
	return err
}

func (p points) Resume(ctx context.Context, user string, id int64, step []byte) (*ledger.Receipt, error) {
	r, err := p.Ledger.Resume(ctx, user, id, step)
	p.at("resumed")
	return r, err
}

// diesAt returns a substitute's name: dpproxy itself, which dies as by kill -9 at the n-th time that it comes to a
// point.
func diesAt(point string, n int) string { return fmt.Sprintf("dies:%s:%d", point, n) }

// serveUntil is the program behind diesAt.
func serveUntil(ctx context.Context, name, path string, listening func(net.Addr)) error {
	part := strings.Split(name, ":")
	last, err := strconv.Atoi(part[2])
	if err != nil {
		return err
	}
	h, err := service.Open(ctx, path, ledger.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer h.Close()
	var seen atomic.Int64
	l := points{h.Ledger, func(point string) {
		if point == part[1] && seen.Add(1) == int64(last) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	answers := pipeline.NewAnswerer(h.Backend, l, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics())
	server, err := proxy.New(proxy.Config{Policy: h.Policy, Pipeline: answers, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	go func() {
		<-server.Listening()
		listening(server.Addr())
	}()
	return server.Serve(ctx)
}

// sharpRelease is the fixture with an online release that is so exact that far guesses are hard but with a chance of
// 1e-9.
func sharpRelease(t *testing.T, updates int) string {
	t.Helper()
	path := kit.DuckDBReleasing(t, 0, onlineRelease(updates, ", insist: true"))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sharp := strings.NewReplacer("max_epsilon: 1,", "max_epsilon: 100,", "{epsilon: 10,", "{epsilon: 500,", "{epsilon: 20,", "{epsilon: 900,", "city], epsilon: 1,", "city], epsilon: 100,").Replace(string(text))
	if err := os.WriteFile(path, []byte(sharp), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// farOff are questions that the first hypothesis, of equal cells, gets wrong by hundreds of the fixture's rows, each of
// which stays wrong when the others are learned.
var farOff = []string{"SELECT count(*) FROM people WHERE hiv IS NULL", "SELECT count(*) FROM people WHERE city = 'c1' AND hiv IS NOT NULL"}

// TestOnlineReleaseDiesAtEachPoint: the process dies between charge and save, between save and the first answer, with a
// hard answer that is not durable, with one that is durable and not sent, and after a restart was counted. In the next
// life what was released stays; nothing is charged again, but where nothing had been saved; and each life has taken an
// update.
func TestOnlineReleaseDiesAtEachPoint(t *testing.T) {
	kit.Beside(t)
	const updates = 6
	for _, c := range []struct {
		point string
		n     int    // which time
		spent string // at the end
		left  int    // after the second question was asked again in the next life
	}{
		{"charged", 1, "200", updates - 2},      // spent without a release: opened anew
		{"saved", 1, "100", updates - 1 - 2},    // one restart, two hard answers
		{"hard", 2, "100", updates - 1 - 2},     // the withheld answer was not counted; the restart pays for its bit
		{"extended", 2, "100", updates - 1 - 2}, // it is counted, and is sent now
		{"extended", 1, "100", updates - 1 - 2}, // the first one
		{"resumed", 1, "100", updates - 2 - 2},  // two lives ended
		{"nothing", 1, "100", updates - 0 - 2},  // no fault
	} {
		t.Run(c.point+strconv.Itoa(c.n), func(t *testing.T) {
			path := sharpRelease(t, updates)
			p := kit.Start(t, diesAt(c.point, c.n), path, path)
			alive := []string{"serve", "--policy", path}
			if c.point == "resumed" { // there must be something to restore
				p.Stop(syscall.SIGKILL)
				p.Start(alive)
				w := p.Connect("alice", "lab")
				w.Ask("SET dp.epsilon = 100")
				w.Ask(farOff[0])
				p.Stop(syscall.SIGKILL)
				p.As, p.Args = diesAt(c.point, c.n), []string{path}
				p.Restart()
			}
			told := map[string]string{}
			w := p.Connect("alice", "lab")
			if _, err := w.TryAsk("SET dp.epsilon = 100"); err != nil {
				t.Fatal(err)
			}
			for _, q := range farOff {
				a, err := w.TryAsk(q)
				if err != nil {
					break
				}
				if a.Err != nil {
					t.Fatal(a.Err)
				}
				told[q] = a.Rows[0][0]
			}
			if p.Alive() && c.point != "nothing" {
				time.Sleep(time.Second)
			}
			if c.point == "nothing" != p.Alive() {
				t.Fatalf("alive: %v", p.Alive())
			}
			if c.point != "nothing" {
				p.Start(alive)
			}
			w = p.Connect("alice", "lab")
			w.Ask("SET dp.epsilon = 100")
			for range 2 {
				for _, q := range farOff {
					a := w.Ask(q)
					if a.Err != nil {
						t.Fatal(a.Err)
					}
					if known, ok := told[q]; ok && known != a.Rows[0][0] {
						t.Errorf("%s: %s, and %s in the next life", q, known, a.Rows[0][0])
					}
					told[q] = a.Rows[0][0]
				}
			}
			left := 0
			_, rest, _ := strings.Cut(explainText(t, w, "SELECT count(*) FROM people WHERE age < 20 AND hiv"), "with ")
			fmt.Sscan(rest, &left)
			if spent := spentBy(t, w); spent != c.spent || left != c.left {
				t.Errorf("spent %s, %d updates left; want %s, %d", spent, left, c.spent, c.left)
			}
		})
	}
}

// TestOnlineReleaseIsAskedAsSoonAsItIsSaved: a statement that finds the release just saved, before the one that opened
// it goes on, asks the same instance: no restart is counted.
func TestOnlineReleaseIsAskedAsSoonAsItIsSaved(t *testing.T) {
	path := sharpRelease(t, 6)
	h, err := service.Open(t.Context(), path, ledger.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l := points{h.Ledger, func(point string) {
		if point == "saved" {
			time.Sleep(300 * time.Millisecond)
		}
	}}
	answers := pipeline.NewAnswerer(h.Backend, l, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics())
	done := make(chan error, 4)
	for i := range cap(done) {
		go func() {
			_, err := kit.Unwired(t.Context(), h, answers, "alice", farOff[i%2], 100)
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, r := range h.Ledger.Holdings("alice", "lab") {
		full, err := h.Ledger.Load(t.Context(), "alice", r.ID)
		if err != nil {
			t.Fatal(err)
		}
		left, err := full.Item.Spec.LeftAfter(full.Steps, false)
		if err != nil || left != 4 || len(full.Steps) != 2 {
			t.Errorf("%d steps, %d updates left, %v; want two hard answers and no restart", len(full.Steps), left, err)
		}
	}
}

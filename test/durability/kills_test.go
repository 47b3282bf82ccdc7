package durability

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestT23RacingClients: 16 connections ask distinct questions at 0.1 each under a budget of 10: exactly 100 answers.
func TestT23RacingClients(t *testing.T) {
	kit.Beside(t)
	for _, b := range []kit.Budgets{{User: "10", Cap: "100"}, {User: "100", Cap: "10"}} {
		p := kit.Serve(t, kit.DuckDB(t, b, 0))
		race(p, 100).None(t)
	}
}

// TestT23CatchesReadThenWrite: a pipeline that reads the balance and writes it later overspends, and is found.
func TestT23CatchesReadThenWrite(t *testing.T) {
	p := kit.InProcess(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "100"}, 0), &kit.ReadThenWrite{Left: 10_000_000}, proxy.Limits{})
	race(p, 100).Some(t, "a balance that is read first and written later")
}

// race has 16 connections ask until the budget is spent and counts the answers.
func race(p *kit.Program, want int64) (found kit.Findings) {
	const connections, each = 16, 30
	var all sync.WaitGroup
	var answers atomic.Int64
	wrong := make(chan string, connections)
	for c := range connections {
		w := p.Connect("alice", "lab")
		all.Add(1)
		go func() {
			defer all.Done()
			for q := range each {
				a, err := w.TryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, c+1, 1000*(q+1)))
				switch {
				case err != nil:
					wrong <- fmt.Sprintf("connection %d: %v", c, err)
					return
				case a.Err == nil && len(a.Rows) == 1:
					answers.Add(1)
				case a.Err == nil || a.Err.Code != "DP001":
					wrong <- fmt.Sprintf("neither an answer nor DP001: %v", a.Err)
					return
				}
			}
		}()
	}
	all.Wait()
	close(wrong)
	for text := range wrong {
		found.Add("%s", text)
	}
	if answers.Load() != want {
		found.Add("%d answers, must be exactly %d", answers.Load(), want)
	}
	return found
}

// TestT25Kills: kill -9 at random moments. At each restart: answers seen <= charges <= budget, and a question that was
// answered is free and answered alike.
func TestT25Kills(t *testing.T) {
	kit.Beside(t)
	kills := threats.Length(threats.ByNight(12, 30), 500)
	if testing.Short() {
		kills = 3
	}
	p := kit.Serve(t, kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10000", Cap: "10000"}, 0))
	found, slowest := killed(p, kills)
	found.None(t)
	if slowest > restartTime && threats.Full() {
		t.Errorf("a restart took %v", slowest)
	}
	threats.Reached(t, "T25", "%d kills: %d answers without a charge, slowest restart %s", kills, len(found), slowest.Round(10*time.Millisecond))
}

// restartTime is what a restart may take. It is asserted where nothing else runs.
const restartTime = 2 * time.Second

// TestT25CatchesAnswerBeforeCharge: a pipeline that answers first and charges afterwards is found.
func TestT25CatchesAnswerBeforeCharge(t *testing.T) {
	p := kit.Start(t, "late-charge", "", kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "1000", Cap: "1000"}, 0))
	found, _ := killed(p, 3)
	found.Some(t, "answers before their charges")
}

// killed kills a process at random moments and audits it after each restart. It returns the slowest restart too: from
// the start of the process to the port being open.
func killed(p *kit.Program, kills int) (found kit.Findings, slowest time.Duration) {
	journal := map[string]string{}
	random := rand.New(rand.NewPCG(25, 25))
	within := 50 * time.Millisecond // of a kill; twice as long, up to four seconds, after a round in which a slow machine answered nothing
	for k := range kills {
		w := p.Connect("alice", "lab")
		process, answered := p.Cmd.Process, len(journal)
		time.AfterFunc(time.Duration(random.Int64N(int64(within))), func() { _ = process.Signal(syscall.SIGKILL) })
		for q := 0; ; q++ {
			sql := fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, k%100, 100*(q%100+1)+10000*(k/100))
			a, err := w.TryAsk(sql)
			if err != nil {
				break
			}
			if a.Err == nil {
				journal[sql] = a.Rows[0][0]
			}
		}
		if len(journal) == answered {
			within = min(2*within, 4*time.Second)
		}
		p.Stop(syscall.SIGKILL)
		began := time.Now()
		p.Restart()
		slowest = max(slowest, time.Since(began))
		found = append(found, audit(p, journal, 60)...)
	}
	found = append(found, audit(p, journal, len(journal))...)
	if len(journal) == 0 {
		found.Add("no answer arrived before any kill: the test tested nothing")
	}
	p.T.Logf("%d kills, %d answers", kills, len(journal))
	return found, slowest
}

// audit is procedure P4 for one user who asks at 0.1 a question: a saved answer is free and the same, and the charges
// cover every answer that was seen. Of the saved answers it asks again so many, whichever the map gives first.
func audit(p *kit.Program, journal map[string]string, again int) (found kit.Findings) {
	w := p.Connect("alice", "lab")
	const charges = `SELECT count(*), coalesce(sum(cost), 0) FROM dp.charges`
	before := w.Ask(charges)
	if before.Err != nil {
		found.Add("%v", before.Err)
		return found
	}
	var rows int
	fmt.Sscan(before.Rows[0][0], &rows)
	if rows < len(journal) {
		found.Add("%d answers were seen, %d charges are in the ledger", len(journal), rows)
	}
	for sql, value := range journal {
		if again--; again < 0 {
			break
		}
		if a := w.Ask(sql); a.Err != nil || a.Rows[0][0] != value {
			found.Add("%s: %s before the kill, %v after it (%v)", sql, value, a.Rows, a.Err)
		}
	}
	if after := w.Ask(charges); fmt.Sprint(after.Rows) != fmt.Sprint(before.Rows) {
		found.Add("asking again was charged: %v, then %v", before.Rows, after.Rows)
	}
	return found
}

// lateCharge writes its charges a moment after the answers.
type lateCharge struct {
	kit.Undescribed
	mu      sync.Mutex
	file    *os.File
	charged map[string]bool
}

func newLateCharge(path string) (*lateCharge, error) {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l := &lateCharge{charged: map[string]bool{}}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		l.charged[line] = line != ""
	}
	delete(l.charged, "")
	l.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return l, err
}

func (l *lateCharge) Answer(_ context.Context, _ *pipeline.Session, s parse.Statement, _ []policy.Value) (pipeline.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(s.Text, "dp.charges") {
		return kit.TextResult([]string{fmt.Sprint(len(l.charged)), fmt.Sprint(len(l.charged))}), nil
	}
	if !l.charged[s.Text] {
		time.AfterFunc(15*time.Millisecond, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.charged[s.Text] = true
			fmt.Fprintln(l.file, s.Text)
			_ = l.file.Sync()
		})
	}
	h := fnv.New32()
	h.Write([]byte(s.Text))
	return kit.TextResult([]string{fmt.Sprint(h.Sum32() % 1000)}), nil // its noise is saved: that is not its fault
}

// lateCharging serves it.
func lateCharging(ctx context.Context, _, path string, listening func(net.Addr)) error {
	l, err := newLateCharge(filepath.Join(filepath.Dir(path), "charges"))
	if err != nil {
		return err
	}
	return kit.ServePipeline(ctx, path, l, proxy.Limits{}, listening)
}

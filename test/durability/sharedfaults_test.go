package durability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// journal is what a user was answered, by which statement, through whichever proxy.
type journal struct {
	name  string
	mu    sync.Mutex
	had   map[string]string      // the last answer
	pairs map[[2]string]struct{} // each of which was paid for
	next  int
}

// question is a statement of hers that is new, or was asked a moment ago, perhaps through the other proxy.
func (j *journal) question() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if rand.IntN(3) > 0 {
		j.next++
	}
	return fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, 18+j.next%60, 1000*(1+j.next/60))
}

// note keeps an answer, and reports whether another one was given to the same question before.
func (j *journal) note(question, value string) (before string, differs bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, asked := j.had[question]
	j.had[question] = value
	j.pairs[[2]string{question, value}] = struct{}{}
	return before, asked && before != value
}

// sharedFaults are what befalls proxies that share a ledger, and its server.
type sharedFaults struct {
	t       *testing.T
	house   sharedHouse
	proxies []*kit.Program
	files   []string
	text    []byte // of their policy
	edits   int
	done    map[string]int
}

// asSuperuser runs a statement on the server, if it takes connections.
func (f *sharedFaults) asSuperuser(sql string, args ...any) (list []int32) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, f.house.server.URLFor("postgres", "postgres"))
	if err != nil {
		return nil
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql, args...)
	if err == nil {
		list, _ = pgx.CollectRows(rows, pgx.RowTo[int32])
	}
	return list
}

// one lets one fault happen.
func (f *sharedFaults) one(which int) {
	p := f.proxies[rand.IntN(len(f.proxies))]
	name := "nothing"
	switch which {
	case 0:
		name = "killed"
		p.Stop(syscall.SIGKILL)
		f.restart(p)
	case 1: // longer than what it presumes holds
		name = "stopped for a while"
		_ = p.Cmd.Process.Signal(syscall.SIGSTOP)
		if rand.IntN(2) == 0 { // and others take over what it had begun
			name = "stopped for a while, its connections ended"
			f.asSuperuser("SELECT pg_terminate_backend(pid)::int FROM pg_stat_activity WHERE datname = $1", f.house.database)
		}
		time.Sleep(time.Second + time.Duration(rand.Int64N(int64(time.Duration(threats.Length(2, 12))*time.Second))))
		_ = p.Cmd.Process.Signal(syscall.SIGCONT)
	case 2:
		name = "its connections to the ledger ended"
		for range 12 {
			f.asSuperuser("SELECT pg_terminate_backend(pid)::int FROM pg_stat_activity WHERE datname = $1 AND random() < 0.7", f.house.database)
			time.Sleep(time.Duration(rand.Int64N(int64(150 * time.Millisecond))))
		}
	case 3: // which has the server end all of its processes, and read its log again
		name = "the server crashed"
		for _, pid := range f.asSuperuser("SELECT pid FROM pg_stat_activity WHERE datname = $1 LIMIT 1", f.house.database) {
			_ = syscall.Kill(int(pid), syscall.SIGKILL)
		}
	case 4: // not at once
		name = "the policy changed"
		f.edits++
		for _, path := range f.files {
			replaceFile(f.t, path, append(f.text, []byte("# "+strconv.Itoa(f.edits)+"\n")...))
			time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond))))
		}
	case 5:
		name = "a release was withdrawn"
		ran := kit.Run(f.t, "", "ledger", "releases", "--policy", f.files[0])
		var ids []string
		for line := range strings.Lines(ran.Stdout) {
			if words := strings.Fields(line); len(words) > 0 {
				if _, err := strconv.Atoi(words[0]); err == nil {
					ids = append(ids, words[0])
				}
			}
		}
		for range min(3, len(ids)) {
			kit.Run(f.t, "", "ledger", "revoke", ids[rand.IntN(len(ids))], "--policy", f.files[0])
		}
	}
	f.done[name]++
}

// restart starts a proxy again, which the server may not let in at once.
func (f *sharedFaults) restart(p *kit.Program) {
	for range 60 {
		if p.TryStart() == nil {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	f.t.Error("a proxy does not start any more")
}

// TestSharedLedgerUnderFaults: two proxies charge the same users from one ledger while one of them is killed or stops
// for longer than what it presumes holds, while their connections to the ledger are ended, its server crashes and the
// policy changes. No answer is without its charge, none is given twice with another value, no budget is passed, and the
// chains are whole; nor is any of that so while the owner withdraws releases, after which a question has another
// answer, for another charge.
func TestSharedLedgerUnderFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	for _, withdrawn := range []bool{false, true} {
		t.Run(map[bool]string{false: "kept", true: "withdrawn"}[withdrawn], func(t *testing.T) { underFaults(t, withdrawn) })
	}
}

func underFaults(t *testing.T, withdrawn bool) {
	kit.Beside(t)
	budget := threats.Length(12, 150) // at 0.1 a question
	h := sharedFixture(t, kit.Budgets{User: strconv.Itoa(budget), Cap: "100000"})
	names := append(kit.NamedUsers(t, h.policy, 3), "alice")
	f := &sharedFaults{t: t, house: h, files: []string{h.policy, h.copied(t)}, done: map[string]int{}}
	var err error
	if f.text, err = os.ReadFile(h.policy); err != nil {
		t.Fatal(err)
	}
	for _, path := range f.files {
		f.proxies = append(f.proxies, kit.Serve(t, path))
	}
	var wait sync.WaitGroup
	var answers, refused atomic.Int64
	stop := make(chan struct{})
	codes := sync.Map{}
	users := make([]*journal, len(names))
	for i, name := range names {
		users[i] = &journal{name: name, had: map[string]string{}, pairs: map[[2]string]struct{}{}}
		for _, p := range f.proxies {
			wait.Go(func() {
				var w *kit.Wire
				for {
					select {
					case <-stop:
						return
					default:
					}
					if w == nil {
						dialled, err := p.Dial(name, "lab")
						if err != nil {
							time.Sleep(50 * time.Millisecond)
							continue
						}
						w = dialled
						w.Patience = 40 * time.Second
					}
					question := users[i].question()
					a, err := w.TryAsk(question)
					switch {
					case err != nil || a.Err != nil && strings.HasPrefix(a.Err.Code, "57P"):
						w.Conn.Close()
						w = nil
					case a.Err != nil:
						codes.Store(a.Err.Code+" "+a.Err.Message, true)
						if refused.Add(1); a.Err.Code != "DP001" && a.Err.Code != "DP003" && a.Err.Code != "DP004" {
							t.Errorf("%s: %v", name, a.Err)
						}
						time.Sleep(20 * time.Millisecond)
					case len(a.Rows) == 1:
						answers.Add(1)
						if before, differs := users[i].note(question, a.Rows[0][0]); differs && !withdrawn {
							t.Errorf("%s was answered %s by %s, and then by %s", name, question, before, a.Rows[0][0])
						}
					}
					time.Sleep(time.Duration(rand.Int64N(int64(200 * time.Millisecond))))
				}
			})
		}
	}
	kinds := 5
	if withdrawn {
		kinds++
	}
	lasting := time.Duration(threats.Length(threats.ByNight(10, 20), 300)) * time.Second
	for begun, n := time.Now(), 0; time.Since(begun) < lasting; n++ {
		time.Sleep(time.Duration(rand.Int64N(int64(700 * time.Millisecond))))
		f.one((n + rand.IntN(2)) % kinds)
	}
	close(stop)
	wait.Wait()
	for _, path := range f.files {
		replaceFile(t, path, append(f.text, "# the last\n"...))
	}
	charged := 0
	for _, j := range users {
		charged += f.audit(j, float64(budget), withdrawn)
	}
	for _, p := range f.proxies {
		p.Stop(syscall.SIGTERM)
		if strings.Contains(p.LogText(), "panic") {
			t.Errorf("a panic:\n%s", p.LogText())
		}
	}
	if ran := kit.Run(t, "", "ledger", "verify", "--policy", f.files[0]); ran.Code != 0 {
		t.Errorf("verify: %d\n%s%s", ran.Code, ran.Stdout, ran.Stderr)
	}
	codes.Range(func(k, _ any) bool { t.Logf("refused: %v", k); return true })
	if answers.Load() < 50 {
		t.Errorf("%d answers: nothing was tested", answers.Load())
	}
	threats.Reached(t, "T23", "two proxies under faults %v: %d answers, %d refusals, %d charges; never an answer without its charge", f.done, answers.Load(), refused.Load(), charged)
}

// audit asks both proxies what a user has been charged, and asks all again that she was answered.
func (f *sharedFaults) audit(j *journal, budget float64, withdrawn bool) (charges int) {
	f.t.Helper()
	const charged = `SELECT count(*), coalesce(sum(cost), 0) FROM dp.charges`
	for i, p := range f.proxies {
		var w *kit.Wire
		kit.Eventually(f.t, "the proxy is back", func() bool {
			if !p.Alive() {
				f.restart(p)
			}
			if w == nil {
				w, _ = p.Dial(j.name, "lab")
			}
			if w == nil {
				return false
			}
			a, err := w.TryAsk(`SELECT count(*) FROM people WHERE age >= 18 AND income < 1000`)
			if err != nil {
				w = nil
			}
			return err == nil && (a.Err == nil || a.Err.Code == "DP001")
		})
		if w == nil {
			continue
		}
		before := w.Ask(charged)
		if before.Err != nil {
			f.t.Errorf("%s, proxy %d: %v", j.name, i, before.Err)
			continue
		}
		var spent float64
		fmt.Sscan(before.Rows[0][0], &charges)
		fmt.Sscan(before.Rows[0][1], &spent)
		if charges < len(j.pairs) || spent > budget+1e-9 {
			f.t.Errorf("%s, proxy %d: %d answers were seen, %d charges are in the ledger, %g of %g is spent", j.name, i, len(j.pairs), charges, spent, budget)
		}
		if withdrawn {
			continue
		}
		for question, value := range j.had {
			a := w.Ask(question)
			for range 200 { // its policy may be tried again in a moment
				if a.Err == nil || a.Err.Code != "DP003" {
					break
				}
				time.Sleep(100 * time.Millisecond)
				a = w.Ask(question)
			}
			if a.Err != nil || a.Rows[0][0] != value {
				f.t.Errorf("%s, proxy %d, %s: %s before, %v now (%v)", j.name, i, question, value, a.Rows, a.Err)
			}
		}
		if after := w.Ask(charged); fmt.Sprint(after.Rows) != fmt.Sprint(before.Rows) {
			f.t.Errorf("%s, proxy %d: asking again was charged: %v, then %v", j.name, i, before.Rows, after.Rows)
		}
	}
	return charges
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// waits asks so many times and returns the waits, shortest first.
func (w *wire) waits(n int) (list []time.Duration) {
	w.t.Helper()
	for range n {
		begun := time.Now()
		if a := w.ask(`SELECT count(*) FROM people`); a.err != nil {
			w.t.Fatal(a.err)
		}
		list = append(list, time.Since(begun))
	}
	slices.Sort(list)
	return list
}

// TestRetryStorm is threat T35: clients of one user ask, drop and ask again. Those beyond her limits are refused with 53300 or
// 53400 and are not charged; what is charged is what was asked; another user is served meanwhile.
func TestRetryStorm(t *testing.T) {
	path := duckFixture(t, budgets{"100000", "100000"}, 0)
	edit(t, path, `server: {listen: "127.0.0.1:0"}`, `server: {listen: "127.0.0.1:0", limits: {user_connections: 100, user_statements: 16, user_purchases: 2, purchases_per_second: 20}}`)
	p := serveProcess(t, path)
	clients, tries := threats.Length(60, 500), threats.Length(5, 20)
	bob := p.connect("bob", "lab")
	idle := bob.waits(200)
	fds := openFiles(t, p.cmd.Process.Pid)
	var wait sync.WaitGroup
	var asked, answered, refused, turned atomic.Int64
	begun := time.Now()
	for c := range clients {
		wait.Go(func() {
			for try := range tries {
				w, err := p.dial("alice", "lab")
				var e *pgconn.PgError
				if errors.As(err, &e) && e.Code == "53300" {
					refused.Add(1)
					time.Sleep(5 * time.Millisecond)
					continue
				} else if err != nil { // closed before its log-in, because too many from one address came behind it
					turned.Add(1)
					time.Sleep(20 * time.Millisecond)
					continue
				}
				asked.Add(1)
				w.Send(&pgproto3.Query{String: fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, 18+c%100, 1000*(1+c/100))})
				_ = w.Flush()
				if try%2 == 0 {
					_ = w.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
					for {
						m, err := w.Receive()
						if f, ok := m.(*pgproto3.ErrorResponse); ok && f.Code == "53400" {
							refused.Add(1)
						} else if _, ok := m.(*pgproto3.DataRow); ok {
							answered.Add(1)
						}
						if _, ok := m.(*pgproto3.ReadyForQuery); ok || err != nil {
							break
						}
					}
				}
				_ = w.conn.Close()
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		wait.Wait()
		close(ended)
	}()
	var during []time.Duration
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
			during = append(during, bob.waits(10)...)
		}
	}
	took := time.Since(begun)
	slices.Sort(during)
	alice := p.connect("alice", "lab")
	var charges int
	eventually(t, "what was bought is saved", func() bool {
		before := charges
		charges = alice.charges()
		return charges == before
	})
	left := 0
	eventually(t, "the files are closed", func() bool {
		left = openFiles(t, p.cmd.Process.Pid) - fds - 1
		return left <= 5
	})
	if charges > clients || charges == 0 || !p.alive() || refused.Load()+turned.Load() == 0 || answered.Load() == 0 {
		t.Errorf("%d charges for %d questions, %d answered, %d refused, %d turned away", charges, clients, answered.Load(), refused.Load(), turned.Load())
	}
	last := func(list []time.Duration) time.Duration { return list[len(list)*99/100] }
	threats.Reached(t, "T35", "%d clients, %d tries each, %d asked, %d refused, %d turned away before their log-in: %d charges for %d questions; another user's p99 %v idle, %v in the storm of %v; %d files left open",
		clients, tries, asked.Load(), refused.Load(), turned.Load(), charges, clients, last(idle).Round(time.Microsecond), last(during).Round(time.Microsecond), took.Round(time.Millisecond), max(left, 0))
}

// openFiles counts the open files of a process.
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	return len(list)
}

// served runs the program in this process, so that what it leaves behind can be counted.
func served(t *testing.T, path string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, address := make(chan error, 1), make(chan string, 1)
	go func() {
		ended <- serve(ctx, path, serving{}, slog.New(slog.DiscardHandler), func(a string) { address <- a })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case a := <-address:
		return &program{t: t, policy: path, address: a}
	case err := <-ended:
		ended <- err
		t.Fatal(err)
		return nil
	}
}

// soakUser asks her own questions again and again, on connections that are cut and with statements that are cancelled; each
// answer must bear her tag and be the one that she had before.
type soakUser struct {
	*program
	name   string
	had    map[int]string
	random *rand.Rand
	asked, answered, cut, cancelled,
	wrong int
}

func (u *soakUser) run(n int) {
	var w *wire
	var key *pgconn.PgConn
	for u.asked < n {
		if w == nil {
			conn, err := pgconn.Connect(context.Background(), u.url(u.name, "lab"))
			if err != nil {
				continue // cut short by the crowd
			}
			key = conn
			w = &wire{t: u.t, conn: conn.Conn(), Frontend: conn.Frontend()}
		}
		u.asked++
		question := u.random.Intn(12)
		text := fmt.Sprintf(`SELECT '%s-%d' AS tag, count(*) FROM people WHERE age >= %d`, u.name, question, 20+question)
		if question%4 == 3 {
			text = fmt.Sprintf(`SELECT '%s-%d' AS tag, sum(n) FROM (SELECT count(*) AS n FROM people WHERE age >= %d) x`, u.name, question, 20+question)
		}
		w.Send(&pgproto3.Query{String: text})
		if u.random.Intn(8) == 0 {
			w.Send(&pgproto3.Query{String: text}) // pipelined
		}
		if w.Flush() != nil {
			w = nil
			continue
		}
		switch u.random.Intn(100) {
		case 0: // the connection is cut while it is answered
			time.Sleep(time.Duration(u.random.Intn(2000)) * time.Microsecond)
			_ = w.conn.Close()
			u.cut++
			w = nil
			continue
		case 1:
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			_ = key.CancelRequest(ctx)
			cancel()
			u.cancelled++
		}
		a, err := w.hear()
		if err != nil {
			w = nil
			continue
		}
		u.check(question, a)
	}
	if w != nil {
		_ = w.conn.Close()
	}
}

// check compares what came with what she had before. The answer to a pipelined statement comes with the next one.
func (u *soakUser) check(question int, a answer) {
	for _, row := range a.rows {
		var at int
		tag, number, _ := strings.Cut(row[0], "-")
		if _, err := fmt.Sscan(number, &at); err != nil || tag != u.name {
			u.wrong++
			u.t.Errorf("%s was sent %v", u.name, row)
			continue
		}
		if u.had[at] == "" {
			u.had[at] = row[1]
		}
		if u.answered++; u.had[at] != row[1] {
			u.wrong++
			u.t.Errorf("%s had %s for question %d, and is sent %s", u.name, u.had[at], at, row[1])
		}
	}
	if a.err != nil && a.err.Code != "57014" {
		u.t.Errorf("%s: %v", u.name, a.err)
	}
}

// TestSoak is threat T63: 64 users ask 100,000 times under cuts and cancels. Nobody is sent another's answer, and when they
// are gone nothing is left: no goroutine, no file, no memory.
func TestSoak(t *testing.T) {
	const seed, users = 63, 64
	t.Logf("seed %d", seed)
	path := duckFixture(t, budgets{"100000", "100000"}, 0)
	names := namedUsers(t, path, users)
	p := served(t, path)
	p.soak(names, users*20, seed) // what is kept for ever is there after this
	runtime.GC()
	goroutines, files, before := runtime.NumGoroutine(), openFiles(t, os.Getpid()), heapInUse()
	begun := time.Now()
	all := p.soak(names, threats.Length(6400, 100_000), seed+users)
	took := time.Since(begun)
	var left, open int
	eventually(t, "goroutines and files are as many as before", func() bool {
		left, open = runtime.NumGoroutine()-goroutines, openFiles(t, os.Getpid())-files
		return left <= 5 && open <= 5
	})
	runtime.GC()
	kept := heapInUse() - before
	if kept > 64<<20 || all.wrong > 0 || all.answered < all.asked/2 {
		t.Errorf("%d of %d answered, %d wrong, %d KiB kept", all.answered, all.asked, all.wrong, kept>>10)
	}
	threats.Reached(t, "T63", "%d users, %d statements in %v, %d connections cut, %d cancels: %d answers, %d to the wrong user; afterwards %d goroutines, %d files, %d KiB more",
		users, all.asked, took.Round(time.Second), all.cut, all.cancelled, all.answered, all.wrong, left, open, kept>>10)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// soak has all users ask so many times together.
func (p *program) soak(names []string, statements int, seed int64) (all soakUser) {
	var wait sync.WaitGroup
	list := make([]*soakUser, len(names))
	for i, name := range names {
		list[i] = &soakUser{program: p, name: name, had: map[int]string{}, random: rand.New(rand.NewSource(seed + int64(i)))}
		wait.Go(func() { list[i].run(statements / len(names)) })
	}
	wait.Wait()
	for _, u := range list {
		all.asked, all.answered, all.cut, all.cancelled, all.wrong = all.asked+u.asked, all.answered+u.answered, all.cut+u.cut, all.cancelled+u.cancelled, all.wrong+u.wrong
	}
	return all
}

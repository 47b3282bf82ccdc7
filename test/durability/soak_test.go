package durability

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// soakUser asks her own questions again and again, and a new one now and then, on connections that are cut and with
// statements that are cancelled; each answer must bear her tag and be the one that she had before.
type soakUser struct {
	*kit.Program
	name   string
	had    map[int]string
	random *rand.Rand
	rest   time.Duration // on average, between bursts of asking
	soaked
}

// soaked is what a soak came to.
type soaked struct {
	asked, answered, cut, cancelled,
	unready, wrong int // unready: refused without a charge, because the database could not be reached
}

// burst is how many statements a user sends without a rest.
const burst = 20

func (u *soakUser) run(n int) {
	var w *kit.Wire
	var key *pgconn.PgConn
	for u.asked < n {
		if u.asked%burst == 0 && u.rest > 0 {
			time.Sleep(time.Duration(u.random.Int63n(int64(2 * u.rest))))
		}
		if w == nil {
			conn, err := pgconn.Connect(context.Background(), u.URL(u.name, "lab"))
			if err != nil {
				continue // cut short by the crowd
			}
			key = conn
			w = &kit.Wire{T: u.T, Conn: conn.Conn(), Frontend: conn.Frontend()}
		}
		u.asked++
		question, text := u.question()
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
			_ = w.Conn.Close()
			u.cut++
			w = nil
			continue
		case 1:
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			_ = key.CancelRequest(ctx)
			cancel()
			u.cancelled++
		}
		a, err := w.Hear()
		if err != nil {
			w = nil
			continue
		}
		u.check(question, a)
	}
	if w != nil {
		_ = w.Conn.Close()
	}
}

// question is one that she has asked before, but for one in fifty.
func (u *soakUser) question() (number int, text string) {
	number = u.random.Intn(max(len(u.had), 12))
	if u.random.Intn(50) == 0 {
		number = len(u.had)
	}
	where := fmt.Sprintf("age >= %d AND income >= %d", 20+number%50, 1000*(number/50))
	if number%4 == 3 {
		return number, fmt.Sprintf(`SELECT '%s-%d' AS tag, sum(n) FROM (SELECT count(*) AS n FROM people WHERE %s) x`, u.name, number, where)
	}
	return number, fmt.Sprintf(`SELECT '%s-%d' AS tag, count(*) FROM people WHERE %s`, u.name, number, where)
}

// check compares what came with what she had before. The answer to a pipelined statement comes with the next one.
func (u *soakUser) check(question int, a kit.Answer) {
	for _, row := range a.Rows {
		var at int
		tag, number, _ := strings.Cut(row[0], "-")
		if _, err := fmt.Sscan(number, &at); err != nil || tag != u.name {
			u.wrong++
			u.T.Errorf("%s was sent %v", u.name, row)
			continue
		}
		if u.had[at] == "" {
			u.had[at] = row[1]
		}
		if u.answered++; u.had[at] != row[1] {
			u.wrong++
			u.T.Errorf("%s had %s for question %d, and is sent %s", u.name, u.had[at], at, row[1])
		}
	}
	switch {
	case a.Err == nil || a.Err.Code == "57014":
	case a.Err.Code == "DP004":
		u.unready++
	default:
		u.T.Errorf("%s, question %d: %v", u.name, question, a.Err)
	}
}

// failing makes a private database fail until stop is closed: its sessions are ended, its table is locked beyond the
// deadline, it takes no connections. It returns how often.
func failing(t *testing.T, server *pgtest.Server, database string, stop <-chan struct{}, r *rand.Rand) (faults int) {
	ctx := context.Background()
	var on [2]*pgx.Conn
	for i, name := range []string{"postgres", database} {
		conn, err := pgx.Connect(ctx, server.URLFor("postgres", name))
		if err != nil {
			t.Error(err)
			return 0
		}
		defer conn.Close(ctx)
		on[i] = conn
	}
	do := func(conn *pgx.Conn, sql string) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Error(err)
		}
	}
	end := fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s' AND application_name = 'dpproxy'`, database)
	for {
		select {
		case <-stop:
			return faults
		case <-time.After(time.Duration(r.Int63n(int64(2 * time.Second)))):
		}
		switch faults++; r.Intn(3) {
		case 0:
			do(on[0], end)
		case 1:
			do(on[1], `BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(0.4); COMMIT`)
		case 2:
			do(on[0], `ALTER DATABASE `+database+` ALLOW_CONNECTIONS false`)
			do(on[0], end)
			time.Sleep(300 * time.Millisecond)
			do(on[0], `ALTER DATABASE `+database+` ALLOW_CONNECTIONS true`)
		}
	}
}

// TestSoak is threat T63: 64 users ask 100,000 times under cuts, cancels and a failing database, over an hour. Nobody
// is sent another's answer, and when they are gone nothing is left: no goroutine, no file, no memory.
func TestSoak(t *testing.T) {
	const seed, users = 63, 64
	t.Logf("seed %d", seed)
	server := pgtest.Start(t)
	path, database := kit.PostgresIn(t, t.TempDir(), server, kit.Budgets{User: "100000", Cap: "100000"}, 0)
	kit.Edit(t, path, "backend: {url:", "backend: {deadline: 200ms, url:")
	names := kit.NamedUsers(t, path, users)
	p := served(t, path)
	soak(p, names, users*20, seed, 0) // what is kept for ever is there after this
	runtime.GC()
	goroutines, files, before := runtime.NumGoroutine(), openFiles(t, os.Getpid()), heapInUse()
	begun, statements, over := time.Now(), threats.Length(threats.ByNight(1500, 4000), 100_000), make(chan struct{})
	faults := make(chan int)
	go func() { faults <- failing(t, server, database, over, rand.New(rand.NewSource(seed))) }()
	go func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Minute):
				t.Logf("%v: %d goroutines, %d files, %d KiB", time.Since(begun).Round(time.Second), runtime.NumGoroutine(), openFiles(t, os.Getpid()), heapInUse()>>10)
			}
		}
	}()
	lasting := time.Duration(threats.Length(0, int(time.Hour)))
	all := soak(p, names, statements, seed+users, lasting*burst*users/time.Duration(statements))
	close(over)
	failed, took := <-faults, time.Since(begun)
	var left, open int
	kit.Eventually(t, "goroutines and files are as many as before", func() bool {
		left, open = runtime.NumGoroutine()-goroutines, openFiles(t, os.Getpid())-files
		return left <= 5 && open <= 5
	})
	runtime.GC()
	kept := heapInUse() - before
	if kept > 64<<20 || all.wrong > 0 || all.answered < all.asked/2 {
		t.Errorf("%d of %d answered, %d wrong, %d KiB kept", all.answered, all.asked, all.wrong, kept>>10)
	}
	threats.Reached(t, "T63", "%d users, %d statements in %v, %d connections cut, %d cancels, %d faults of the database: %d answers, %d refused meanwhile, %d to the wrong user; afterwards %d goroutines, %d files, %d KiB more",
		users, all.asked, took.Round(time.Second), all.cut, all.cancelled, failed, all.answered, all.unready, all.wrong, left, open, kept>>10)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// soak has all users ask so many times together, with so long a rest between bursts.
func soak(p *kit.Program, names []string, statements int, seed int64, rest time.Duration) (all soaked) {
	var wait sync.WaitGroup
	list := make([]*soakUser, len(names))
	for i, name := range names {
		list[i] = &soakUser{Program: p, name: name, had: map[int]string{}, random: rand.New(rand.NewSource(seed + int64(i))), rest: rest}
		wait.Go(func() { list[i].run(statements / len(names)) })
	}
	wait.Wait()
	for _, u := range list {
		all.asked, all.answered, all.cut, all.cancelled = all.asked+u.asked, all.answered+u.answered, all.cut+u.cut, all.cancelled+u.cancelled
		all.unready, all.wrong = all.unready+u.unready, all.wrong+u.wrong
	}
	return all
}

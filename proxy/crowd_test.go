package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// TestPlainBytesBeforeTLS is threat T56: what is sent in plain behind an SSLRequest, however it is split into packets,
// is never taken for something that came through TLS.
func TestPlainBytesBeforeTLS(t *testing.T) {
	const seed = 56
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	b := start(t, func(c *Config) { c.TLS = certificate(t, false) })
	all := slices.Concat(short(codeSSL), startupPacket(3<<16, "user", "alice", "database", "census"), []byte("Q\x00\x00\x00\x0dselect 1\x00"))
	splits, clean := threats.Length(1000, 1000), 0
	for range splits {
		conn := b.dial(t)
		for rest := all; len(rest) > 0; {
			n := min(1+random.Intn(len(all)), len(rest))
			if _, err := conn.Write(rest[:n]); err != nil {
				break // closed already
			}
			rest = rest[n:]
		}
		got, err := io.ReadAll(conn)
		_ = conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) || len(got) > 0 && got[0] != 'S' || bytes.Contains(got, []byte("SCRAM")) || bytes.Contains(got, []byte("alice")) {
			t.Errorf("%q, %v", got, err)
			continue
		}
		clean++
	}
	if n := b.pipeline.answers.Load(); n != 0 || strings.Contains(b.log.String(), "session opened") {
		t.Errorf("%d statements ran, or somebody was let in", n)
	}
	threats.Reached(t, "T56", "%d of %d splits closed without a byte of them being read as a message", clean, splits)
}

// TestCancelGuesses is threat T60: guesses of a key end no wait, and every request is closed without a word.
func TestCancelGuesses(t *testing.T) {
	const seed, workers = 60, 4
	guesses := threats.Length(4000, 100_000)
	t.Logf("seed %d", seed)
	b := start(t)
	b.quiet()
	victim, mine := b.raw(t), b.rawUser(t, "grafana", "panel")
	_ = victim.conn.SetDeadline(time.Now().Add(20 * time.Minute))
	ended := make(chan string, 1)
	victim.Send(query("select slow"))
	victim.flush()
	go func() { ended <- victim.upTo("Z") }()
	b.answering()
	var wait sync.WaitGroup
	var mu sync.Mutex
	replies := map[string]int{}
	for w := range workers {
		wait.Go(func() {
			random := rand.New(rand.NewSource(seed + int64(w)))
			for i := range guesses / workers {
				pid, key := victim.key.ProcessID, make([]byte, []int{4, 4, 4, 32, 0, 256}[i%6])
				random.Read(key)
				if i%5 == 0 {
					key = mine.key.SecretKey // a good key, of another session
				}
				if i%7 == 0 {
					pid = random.Uint32()
				}
				reply := b.cancelReply(t, w, random, pid, key)
				mu.Lock()
				replies[reply]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	select {
	case end := <-ended:
		t.Fatalf("a guess ended the wait: %s", end)
	default:
	}
	if len(replies) != 1 || replies["closed"] == 0 {
		t.Errorf("replies differ: %v", replies)
	}
	b.cancelReply(t, 0, rand.New(rand.NewSource(seed)), victim.key.ProcessID, victim.key.SecretKey)
	if end := <-ended; !strings.Contains(end, "E(57014)") {
		t.Errorf("the right key: %s", end)
	}
	_ = victim.conn.Close()
	for deadline := time.Now().Add(60 * time.Second); b.keys.known(victim.key.ProcessID); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the key outlives its session")
		}
	}
	threats.Reached(t, "T60", "%d guesses, 0 cancels, %d kinds of reply", guesses, len(replies))
}

// known reports whether a session has this process id.
func (c *cancelKeys) known(pid uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[pid] != nil
}

// cancelReply sends a cancel request, from one of many addresses so that ports are enough, and says what came back.
func (b *bench) cancelReply(t *testing.T, worker int, random *rand.Rand, pid uint32, key []byte) string {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(worker+1), byte(random.Intn(200)+1))}}
	conn, err := d.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Error(err)
		return "none"
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	_, _ = conn.Write(startupPacketOf(pid, key))
	got, err := io.ReadAll(conn)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		return err.Error()
	}
	if len(got) > 0 {
		return fmt.Sprintf("%q", got)
	}
	return "closed"
}

// slowKinds are clients that never get anywhere: what each sends at first, and then byte by byte.
var slowKinds = []struct{ first, slowly []byte }{
	{nil, startupPacket(3<<16, "user", "alice", "database", "census", "application_name", strings.Repeat("x", 200))},
	{short(codeSSL), nil},
	{nil, nil},
	{startupPacket(3<<16, "user", "alice", "database", "census"), bytes.Repeat([]byte("p\x00\x00\x20\x00SCRAM"), 40)},
}

// TestSlowClients is threat T61: a crowd of slow, silent, half-open and resetting clients keeps nobody out who logs in,
// and leaves nothing behind.
func TestSlowClients(t *testing.T) {
	crowd, lasting := threats.Length(300, 2000), time.Duration(threats.Length(2, 60))*time.Second
	b := start(t, func(c *Config) { c.Limits.LoginTime = 3 * time.Second })
	b.quiet()
	b.raw(t).conn.Close()
	goroutines, before := runtime.NumGoroutine(), heap()
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for i := range crowd {
		wait.Go(func() { b.slowClient(i, stop) })
	}
	logins, again, longest := 0, 0, time.Duration(0)
	for until := time.Now().Add(lasting); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		begun := time.Now()
		for ; !b.getsThrough(t); again++ {
			if time.Since(begun) > 20*time.Second {
				t.Fatal("nobody gets in")
			}
		}
		longest = max(longest, time.Since(begun))
		logins++
	}
	grown := heap() - before
	close(stop)
	wait.Wait()
	left := 0
	for range 200 {
		if left = runtime.NumGoroutine() - goroutines; left <= 5 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if left > 5 {
		t.Errorf("%d goroutines are left", left)
	}
	if grown > 64<<20 {
		t.Errorf("%d MiB were taken", grown>>20)
	}
	threats.Reached(t, "T61", "%d slow clients for %v: %d logins meanwhile, %d of them at a second try, the longest took %v with its question; %d MiB and then %d goroutines more",
		crowd, lasting, logins, again, longest.Round(time.Millisecond), max(grown, 0)>>20, max(left, 0))
}

// getsThrough logs in and asks. A client whose connection is closed, because too many came behind it, tries again.
func (b *bench) getsThrough(t *testing.T) bool {
	conn := b.dial(t)
	defer conn.Close()
	r := &raw{t: t, conn: conn, Frontend: newFrontend(conn)}
	talk := passwords(t, "wonderland").NewConversation()
	first, err := talk.Step("")
	if err != nil {
		t.Fatal(err)
	}
	r.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "alice", "database": "census"}})
	r.Send(&pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte(first)})
	if r.Flush() != nil || r.next() == nil {
		return false
	}
	challenge, ok := r.next().(*pgproto3.AuthenticationSASLContinue)
	if !ok {
		return false
	}
	final, err := talk.Step(string(challenge.Data))
	if err != nil {
		t.Fatal(err)
	}
	r.Send(&pgproto3.SASLResponse{Data: []byte(final)})
	r.Send(query("select 1"))
	if r.Flush() != nil {
		return false
	}
	for ready := 0; ready < 2; {
		switch m := r.next(); m.(type) {
		case nil:
			return false
		case *pgproto3.ReadyForQuery:
			ready++
		}
	}
	return true
}

// slowClient comes again and again until stop, as its kind does.
func (b *bench) slowClient(i int, stop chan struct{}) {
	kind := slowKinds[i%len(slowKinds)]
	for {
		conn, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			return
		}
		_, err = conn.Write(kind.first)
		for at := 0; err == nil; at++ {
			select {
			case <-stop:
				conn.Close()
				return
			case <-time.After(time.Second):
			}
			if at < len(kind.slowly) {
				_, err = conn.Write(kind.slowly[at : at+1])
			} else if _, err = conn.Write(nil); at > 3 {
				err = io.EOF // enough of this one
			}
		}
		if tcp, ok := conn.(*net.TCPConn); ok && i%3 == 0 {
			_ = tcp.SetLinger(0) // ends by a reset
		}
		conn.Close()
		select {
		case <-stop:
			return
		default:
		}
	}
}

// TestReaderThatNeverReads: clients that take no answers are dropped, and what they asked for was answered: charges
// stay.
func TestReaderThatNeverReads(t *testing.T) {
	b := start(t)
	b.config.Limits.WriteTime = 200 * time.Millisecond
	const readers = 8
	for range readers {
		r := b.raw(t)
		for range 100 {
			r.Send(query("select n from many"))
		}
		r.flush()
	}
	for deadline := time.Now().Add(60 * time.Second); strings.Count(b.log.String(), "session closed") < readers; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a session is still there")
		}
	}
	if b.pipeline.answers.Load() < readers {
		t.Errorf("%d answers for %d readers", b.pipeline.answers.Load(), readers)
	}
	threats.Reached(t, "T61", "%d of %d clients that never read were dropped", readers, readers)
}

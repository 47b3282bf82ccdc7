package proxy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// looseFrames are messages that random sessions are made of: good ones, and ones that are out of place.
var looseFrames = []pgproto3.FrontendMessage{query("select 1"), query("begin"), query("select bad"), query("copy (select n from ten) to stdout"),
	query("declare c cursor with hold for select n from ten"), query("fetch 3 c"), parseMessage("s", "select $1::int"), bind("", "s", "1"), bind("p", ""),
	describing('S', "s"), describing('P', "p"), execute("", 0), execute("p", 1), syncs, syncs, flushed, &pgproto3.Close{ObjectType: 'S', Name: "s"},
	&pgproto3.CopyDone{}, &pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyFail{Message: "x"}, &pgproto3.FunctionCall{}, &pgproto3.Terminate{},
	&pgproto3.PasswordMessage{Password: "x"}, &pgproto3.GSSEncRequest{}, &pgproto3.StartupMessage{ProtocolVersion: 3 << 16, Parameters: map[string]string{"user": "grafana"}}}

// randomSession is a valid beginning, and then frames of which some are damaged: a byte, the length, the end.
func randomSession(t *testing.T, random *rand.Rand) (out []byte) {
	t.Helper()
	for range random.Intn(12) {
		m, err := looseFrames[random.Intn(len(looseFrames))].Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		switch random.Intn(8) {
		case 0, 1:
			m[random.Intn(len(m))] = byte(random.Intn(256))
		case 2:
			m = m[:random.Intn(len(m))]
		case 3:
			binary.BigEndian.PutUint32(m[min(1, len(m)-4):], uint32(random.Intn(64)))
		}
		out = append(out, m...)
	}
	return out
}

// TestRandomFrames is threat T53: sessions of random frames behind a good login neither hang nor panic, nor keep
// memory, nor hurt another session.
func TestRandomFrames(t *testing.T) {
	const seed, workers = 53, 4
	sessions := threats.Length(2000, 100_000)
	t.Logf("seed %d", seed)
	b := start(t)
	b.quiet()
	other := b.rawUser(t, "grafana", "panel")
	before := heap()
	longest := make([]time.Duration, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			random := rand.New(rand.NewSource(seed + int64(w)))
			for range sessions / workers {
				if took := b.oneRandomSession(t, w, random); took > longest[w] {
					longest[w] = took
				}
			}
		})
	}
	wait.Wait()
	_ = other.conn.SetDeadline(time.Now().Add(60 * time.Second))
	other.play("other", []step{one(query("select 1"), "T1 D C(SELECT 1) Z(I)")})
	panics := strings.Count(b.log.String(), "panic")
	if panics > 0 {
		t.Errorf("%d panics; the log begins %.2000s", panics, b.log.String())
	}
	grown := heap() - before
	if grown > 64<<20 {
		t.Errorf("%d MiB are kept", grown>>20)
	}
	threats.Reached(t, "T53", "%d sessions, %d panics, the longest %v, %d KiB kept", sessions, panics, slices.Max(longest).Round(time.Millisecond), grown>>10)
}

// heap is what is in use once garbage is gone.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// oneRandomSession sends a random session and waits for its end, which must come by itself. Each worker has a source
// address of its own, and its ports are many enough.
func (b *bench) oneRandomSession(t *testing.T, worker int, random *rand.Rand) time.Duration {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(worker+1), byte(random.Intn(200)+1))}}
	conn, err := d.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	r := b.rawOn(t, conn, pgproto3.ProtocolVersion30)
	out := randomSession(t, random)
	begun := time.Now()
	_ = conn.SetDeadline(begun.Add(10 * time.Second))
	_, _ = r.conn.Write(out)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("%x: %v", out, err)
	}
	return time.Since(begun)
}

// TestUnexpectedMessages is threat T54: in each phase of the login any message but the expected ones ends the
// connection, and a second start-up packet makes nobody of the user that it names.
func TestUnexpectedMessages(t *testing.T) {
	b := start(t)
	messages := [][]byte{startupPacket(3<<16, "user", "grafana", "database", "census"), short(codeSSL), short(codeGSS), short(codeCancel)}
	kinds := map[byte]bool{0: true, 1: true, 0x7f: true, 0xff: true, 'p': true}
	for kind := range byte(26) {
		kinds['A'+kind], kinds['a'+kind] = true, true
	}
	for kind := range kinds {
		if kind != 'p' {
			messages = append(messages, []byte{kind, 0, 0, 0, 4})
		}
		messages = append(messages, append([]byte{kind, 0, 0, 0, 9}, "S\x00\x00\x00\x00"...), append([]byte{kind, 0, 0, 0x7f, 0xff}, "x"...))
	}
	closed := 0
	for phase := range 2 {
		for _, m := range messages {
			if !b.endsLogin(t, phase, m) {
				t.Errorf("phase %d, message %q: not closed, or more than an error was said", phase, m)
				continue
			}
			closed++
		}
	}
	if strings.Contains(b.log.String(), "session opened") {
		t.Error("somebody was let in")
	}
	threats.Reached(t, "T54", "%d of %d messages of %d kinds closed the connection; %d logins", closed, 2*len(messages), len(kinds),
		strings.Count(b.log.String(), "session opened"))
}

// endsLogin sends a message in a phase of alice's login.
func (b *bench) endsLogin(t *testing.T, phase int, m []byte) bool {
	t.Helper()
	conn := b.dial(t)
	defer conn.Close()
	r := &raw{t: t, conn: conn, Frontend: pgproto3.NewFrontend(conn, conn)}
	r.Send(&pgproto3.StartupMessage{ProtocolVersion: 3 << 16, Parameters: map[string]string{"user": "alice", "database": "census"}})
	r.flush()
	r.next()
	if phase == 1 {
		r.Send(&pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte("n,,n=,r=abc")})
		r.flush()
		r.next()
	}
	_, _ = conn.Write(m)
	if tcp, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = tcp.CloseWrite()
	}
	for {
		msg, err := r.Receive()
		if err != nil {
			return !strings.Contains(err.Error(), "timeout")
		}
		if _, ok := msg.(*pgproto3.ErrorResponse); !ok {
			return false
		}
	}
}

// optionTexts are values of the start-up parameter options, and of others.
func optionTexts(random *rand.Rand) (list []string) {
	list = []string{"", "-c=", "-c", "--", "--=", "-c =", "-c x", "stray", "-d 5", "-c search_path=public", "-c role=dba", "-c session_authorization=grafana",
		"-c dp.epsilon=0.05", "-c dp.epsilon=1e999", "-c dp.epsilon=NaN", "-cstatement_timeout=0", `-c application_name=a\ b`, `\`, `-c a\`, "-c log_statement=all",
		"-c default_transaction_read_only=off", "-c local_preload_libraries=x", "--config-file=/etc/passwd", "-c timezone='; DROP", "-c client_encoding=EUC_TW",
		strings.Repeat("-c application_name=x ", 300), strings.Repeat(`\ `, 3000), strings.Repeat("-c ", 2000), strings.Repeat("-", 9000)}
	parts := []string{"-c", "--", "=", " ", "\\", "\t", "dp.epsilon", "search_path", "x", "0.1", "'", "\"", ";", "é", "role", "-"}
	for len(list) < 220 {
		var b strings.Builder
		for range random.Intn(14) {
			b.WriteString(parts[random.Intn(len(parts))])
		}
		list = append(list, b.String())
	}
	return list
}

// TestOptionsAtStartup is threat T55: whatever is in the start-up packet is answered at once, by a session or by
// one error.
func TestOptionsAtStartup(t *testing.T) {
	const seed = 55
	t.Logf("seed %d", seed)
	b := start(t)
	texts := optionTexts(rand.New(rand.NewSource(seed)))
	let, longest := 0, time.Duration(0)
	for i, text := range texts {
		begun := time.Now()
		conn := b.dial(t)
		r := &raw{t: t, conn: conn, Frontend: pgproto3.NewFrontend(conn, conn)}
		parameters := map[string]string{"user": "alice", "database": "census", "options": text}
		if i%4 == 1 && len(text) < 4000 {
			parameters["_pq_."+fmt.Sprint(i)] = text
		}
		r.Send(&pgproto3.StartupMessage{ProtocolVersion: 3<<16 | uint32(i%4*3333), Parameters: parameters})
		r.login("wonderland")
		switch end := r.upTo("Z"); {
		case strings.HasSuffix(end, "Z(I)"):
			let++
		case !strings.Contains(end, "E(") || !strings.HasSuffix(end, "EOF"):
			t.Errorf("%.200q: %s", text, end)
		}
		longest = max(longest, time.Since(begun))
		_ = conn.Close()
	}
	if let == 0 || let == len(texts) {
		t.Errorf("%d of %d were let in", let, len(texts))
	}
	threats.Reached(t, "T55", "%d texts, %d accepted, the others refused by one error; the longest took %v", len(texts), let, longest.Round(time.Millisecond))
}

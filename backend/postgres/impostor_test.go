package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
)

// impostor is in front of a real PostgreSQL. It passes all on, until a query reads the private table: that is answered
// by a script.
type impostor struct {
	listener net.Listener
	to       string
	script   atomic.Pointer[func(c net.Conn)]
	wait     sync.WaitGroup
}

func newImpostor(t *testing.T, to string) *impostor {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &impostor{listener: l, to: to}
	i.wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			i.wait.Go(func() { i.relay(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		i.wait.Wait()
	})
	return i
}

func (i *impostor) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", i.to)
	if err != nil {
		return
	}
	defer server.Close()
	var silent atomic.Bool
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || silent.Load() {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if script := i.script.Load(); script != nil && bytes.Contains(buffer[:n], []byte(`."people"`)) {
			silent.Store(true)
			(*script)(client)
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// frame is one message of the server.
func frame(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

func be16(n int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(n))) }
func be32(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }

// columns describes columns by the numbers of their types, as text.
func columns(oids ...int) string {
	body := be16(len(oids))
	for _, oid := range oids {
		body += "c\x00" + be32(0) + be16(0) + be32(oid) + be16(4) + be32(-1) + be16(0)
	}
	return frame('T', body)
}

func row(cells ...string) string {
	body := be16(len(cells))
	for _, c := range cells {
		body += be32(len(c)) + c
	}
	return frame('D', body)
}

const (
	int4, int8, textType = 23, 20, 25
	bound                = "1\x00\x00\x00\x042\x00\x00\x00\x04"
)

var (
	ending    = frame('C', "SELECT 1\x00") + frame('Z', "T")
	described = bound + columns(int4, int8)
)

// says is a script that sends bytes and closes; stays one that then says nothing more; floods one that repeats to the
// end.
func says(text string) func(net.Conn) { return func(c net.Conn) { _, _ = io.WriteString(c, text) } }

func stays(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

func floods(text, again string) func(net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, text)
		for many := []byte(strings.Repeat(again, 1+32<<10/len(again))); err == nil; {
			_, err = c.Write(many)
		}
	}
}

// lies are what an impostor may say in the place of cells and counts.
var lies = map[string]func(net.Conn){
	"an error without SQLSTATE": says(frame('E', "SERROR\x00Mno\x00\x00")), "an empty error": says(frame('E', "\x00") + frame('Z', "I")),
	"an error without end": says(frame('E', "SERROR\x00C")), "an error of odd SQLSTATE": says(frame('E', "SFATAL\x00C\xff\xfe\x00M"+backendtest.Canary+"\x00\x00")),
	"an error and silence": stays(frame('E', "SFATAL\x00C57P01\x00Mbye\x00\x00")), "no bytes": says(""), "silence": stays(""),
	"negative length of a row": stays(described + "D\xff\xff\xff\xf0"), "negative length of a cell": stays(described + frame('D', be16(2)+be32(-2)+be32(1)+"1")),
	"a cell beyond its row":         stays(described + frame('D', be16(2)+be32(100)+"1")),
	"more cells than columns":       stays(described + row("0", "1", "2") + ending),
	"fewer cells than columns":      stays(described + row("0") + ending),
	"a row before its description":  stays(bound + row("0", "1") + ending),
	"65,535 columns":                stays(bound + frame('T', "\xff\xff")),
	"other types":                   stays(bound + columns(textType, textType) + row("0", "1") + ending),
	"no columns":                    stays(bound + columns() + row() + ending),
	"one column":                    stays(bound + columns(int8) + row("1") + ending),
	"a message of 2 GiB":            stays(described + "D\x7f\xff\xff\xff"),
	"a message of 1 GiB":            stays(described + "D\x3f\xff\xff\xff"),
	"length 0":                      stays(described + "D\x00\x00\x00\x00"),
	"length 3":                      stays(described + "D\x00\x00\x00\x03"),
	"an unknown kind":               stays(described + frame('~', "x")),
	"NULL for cells":                stays(described + frame('D', be16(2)+be32(-1)+be32(-1)) + ending),
	"a negative count":              stays(described + row("0", "-1") + ending),
	"a count that is no number":     stays(described + row("0", backendtest.Canary) + ending),
	"a count beyond int8":           stays(described + row("0", "99999999999999999999") + ending),
	"a cell that is not in the set": stays(described + row("4", "1") + ending),
	"a negative cell":               stays(described + row("-1", "1") + ending),
	"one group twice":               stays(described + row("0", "1") + row("0", "1") + ending),
	"rows of one group, no end":     floods(described, row("0", "1")),
	"an endless row":                floods(described+"D\x00\x3f\xff\xff\x00\x02", "x"),
	"notices without end":           floods(bound, frame('N', "SNOTICE\x00C00000\x00M"+backendtest.Canary+"\x00\x00")),
	"parameters without end":        floods(bound, frame('S', "TimeZone\x00"+backendtest.Canary+"\x00")),
	"notifications without end":     floods(bound, frame('A', be32(1)+"c\x00p\x00")),
	"closed within a row":           says(described + "D\x00\x00\x00\x20\x00\x02"),
	"COPY in":                       stays(bound + frame('G', "\x00"+be16(0))), "COPY out": stays(bound + frame('H', "\x00"+be16(0)) + frame('d', backendtest.Canary)),
	"COPY both": stays(bound + frame('W', "\x00"+be16(0))), "logged in again": stays(frame('R', be32(0)) + described),
	"asked for the password": stays(frame('R', be32(3))), "ready at once": stays(frame('Z', "I")), "odd state": stays(bound + frame('Z', "X")),
	"a tag without rows": stays(bound + ending), "an empty query": stays(bound + frame('I', "") + frame('Z', "T")), "suspended": stays(described + frame('s', "")),
	"no data": stays(bound + frame('n', "") + frame('Z', "T")), "not the protocol": says("HTTP/1.1 400 Bad Request\r\n\r\n" + strings.Repeat("\x00", 100)),
}

// TestHostileDatabase is threat T62: whatever a database says after the charge, the answer is that of no groups (rule
// 5), soon after the deadline at the latest, without a panic, and the next query is served as ever.
func TestHostileDatabase(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	for _, s := range backendtest.RowsSQL {
		server.Exec(t, database, fmt.Sprintf(s, "public."))
	}
	server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	config, err := pgx.ParseConfig(server.URLFor(role, database))
	if err != nil {
		t.Fatal(err)
	}
	i := newImpostor(t, fmt.Sprintf("127.0.0.1:%d", config.Port))
	h := backendtest.Open(t, backendtest.TestPolicy(t, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&pool_max_conns=100", role, i.listener.Addr(), database)))
	backendtest.Inspect(t, h)
	const deadline = 300 * time.Millisecond
	h.SetDeadline(deadline)
	a, spec := backendtest.NewAccount(t), backendtest.NearlyExact(4)
	zeros, kept, longest, most := 0, 0, time.Duration(0), int64(0)
	for n, name := range slices.Sorted(maps.Keys(lies)) {
		script := lies[name]
		m := backendtest.Measure(t, h.Policy, "people", "sex")
		m.Digest[31] = byte(n)
		receipt := a.Pay(t, m, spec)
		i.script.Store(&script)
		stop := watchMemory(&most)
		begun := time.Now()
		truth, err := backendtest.Execute(t, h, backendtest.Render(t, m, h), receipt)
		took := time.Since(begun)
		stop()
		i.script.Store(nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := backendtest.Reveal(t, truth, spec); !slices.Equal(got, make([]int64, 4)) {
			t.Errorf("%s: got %v, want zeros", name, got)
			continue
		}
		if longest = max(longest, took); took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		zeros++
		if receipt.Spend(m.Digest) != nil {
			kept++
		}
		if err := h.Ready(context.Background()); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	h.SetDeadline(20 * time.Second)
	if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)); !slices.Equal(got, []string{"[]: [40]"}) {
		t.Errorf("afterwards %v", got)
	}
	if most > 64<<20 {
		t.Errorf("%d MiB were taken", most>>20)
	}
	if strings.Contains(h.Log.String(), "panic") || zeros < 40 || kept != len(lies) {
		t.Errorf("%d of %d answered, %d charges kept; the log: %s", zeros, len(lies), kept, h.Log)
	}
	threats.Reached(t, "T62", "%d of %d scripts answered as no groups, 0 panics, %d charges kept, the longest %v after a deadline of %v, at most %d MiB more",
		zeros, len(lies), kept, longest.Round(time.Millisecond), deadline, most>>20)
}

// watchMemory raises most to what is taken until stop is called, beyond what was taken before.
func watchMemory(most *int64) (stop func()) {
	read := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	runtime.GC()
	before, end, ended := read(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			*most = max(*most, read()-before)
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

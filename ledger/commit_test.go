package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// relay is between a keeper and its server. Armed, it cuts the next connection that sends COMMIT: before the server
// has it, as soon as the server has it, or once the server has answered.
type relay struct {
	listener net.Listener
	server   string
	mu       sync.Mutex
	way      int // 0: not armed
	cuts     int
	open     sync.WaitGroup
}

const (
	cutBefore = 1 + iota
	cutAfter
	cutAnswered
)

// commitIn is what a Bind of the statement COMMIT holds: the unnamed portal, and the name that pgx gives the statement.
var commitIn = func() []byte {
	digest := sha256.Sum256([]byte("COMMIT"))
	return append(append([]byte{0}, "stmtcache_"+hex.EncodeToString(digest[:24])...), 0)
}()

func newRelay(t *testing.T, server string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, server: server}
	r.open.Add(1)
	go func() {
		defer r.open.Done()
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			r.open.Add(1)
			go r.carry(client)
		}
	}()
	t.Cleanup(func() { l.Close(); r.open.Wait() })
	return r
}

func (r *relay) arm(way int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.way = way
}

// take tells how to cut, once.
func (r *relay) take(sent []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.way == 0 || !bytes.Contains(sent, commitIn) {
		return 0
	}
	way := r.way
	r.way, r.cuts = 0, r.cuts+1
	return way
}

func (r *relay) carry(client net.Conn) {
	defer r.open.Done()
	defer client.Close()
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	defer server.Close()
	var mute sync.Mutex // held: what the server says is not passed on
	answered := make(chan struct{}, 1)
	back := make(chan struct{})
	go func() {
		defer close(back)
		defer client.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			select {
			case answered <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
			mute.Lock()
			_, err = client.Write(buf[:n])
			mute.Unlock()
			if err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			break
		}
		way := r.take(buf[:n])
		if way != 0 {
			mute.Lock()
			select {
			case <-answered:
			default:
			}
		}
		if way != cutBefore {
			if _, err := io.Copy(server, bytes.NewReader(buf[:n])); err != nil {
				break
			}
		}
		if way == cutAnswered {
			<-answered
		}
		if way != 0 {
			client.Close()
			server.Close()
			mute.Unlock()
			break
		}
	}
	server.Close()
	<-back
}

// TestT31UnknownCommit: the connection is cut around COMMIT. A charge that is acknowledged has its row, once; one that
// is not is never answered, whether it has a row or not; and the ledger goes on by itself.
func TestT31UnknownCommit(t *testing.T) {
	s := pgServer(t)
	database := s.Database(t)
	direct, err := url.Parse(s.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, direct.Host)
	through := *direct
	through.Host = r.listener.Addr().String()
	f := open(t, through.String(), Options{Witness: filepath.Join(t.TempDir(), "witness"), again: time.Millisecond})
	d := census()
	d.Cap, d.Budgets = eps(1e12), map[string]BudgetTerms{"*": {Limit: eps(1e12)}}
	adopt(t, f, d)
	random := rand.New(rand.NewPCG(31, 31))
	acknowledged, refused, ways := map[Digest]bool{}, 0, [4]int{}
	cuts := threats.Length(30, 1000)
	for n := 0; r.cuts < cuts; n++ {
		way := 1 + random.IntN(3)
		r.arm(way)
		it := item(1, eps(1))
		binary.BigEndian.PutUint64(it.Digest[:], uint64(n))
		out, err := f.Charge(ctx, request("ann", it))
		switch {
		case err == nil && out[0].Receipt != nil:
			acknowledged[it.Digest] = true
			ways[way]++
			f.Abandon(out[0].Receipt)
		case errors.Is(err, ErrUnavailable):
			refused++
			patiently(t, func() error { return f.Follow(ctx) })
		default:
			t.Fatalf("%+v, %v", out, err)
		}
	}
	r.arm(0)
	rows := chargesOf(t, direct.String())
	for digest := range acknowledged {
		if rows[digest] != 1 {
			t.Errorf("an acknowledged charge has %d rows", rows[digest])
		}
	}
	total, twice := 0, 0
	for _, n := range rows {
		if total += n; n > 1 {
			twice++
		}
	}
	if twice > 0 || total != len(acknowledged) {
		t.Errorf("%d rows of %d acknowledged charges, %d of them twice", total, len(acknowledged), twice)
	}
	if ways[cutAnswered] == 0 || refused == 0 {
		t.Errorf("no commit was confirmed by its name, or none was found not to be: %v, %d", ways, refused)
	}
	verify(t, f)
	threats.Reached(t, "T31", "%d connections cut at COMMIT: %d charges confirmed by their name, %d found not durable and refused, 0 answers without a row, %d rows twice", r.cuts, len(acknowledged), refused, twice)
}

// chargesOf counts the charge rows of each measure, past the keeper.
func chargesOf(t *testing.T, url string) map[Digest]int {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT body FROM dpproxy_ledger.chain WHERE kind = 6")
	if err != nil {
		t.Fatal(err)
	}
	out := map[Digest]int{}
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			t.Fatal(err)
		}
		c, err := decodeCharge(body)
		if err != nil {
			t.Fatal(err)
		}
		out[c.digest]++
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return out
}

package hive

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beltran/gohive/hiveserver"
	"go.uber.org/goleak"
)

// serve answers each connection at a port of the loopback address by what does, until the test's end.
func serve(t *testing.T, does func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			does(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// TestImpostors: whatever a server says, the client fails and does not end the process, wait beyond its deadline, or
// take the memory that a server announces.
func TestImpostors(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) }) // when the servers have ended
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 1))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	reply := func(more []byte) []byte { // the head of an answer to OpenSession
		head := binary.BigEndian.AppendUint32(nil, 0x80010002)
		head = append(binary.BigEndian.AppendUint32(head, 11), "OpenSession"...)
		return append(binary.BigEndian.AppendUint32(head, 1), more...)
	}
	list := append(binary.BigEndian.AppendUint32([]byte{12, 0, 0, 12, 0, 1, 15, 0, 2, 11}, 1<<31-1), 0) // a list of 2^31 − 1 texts within a status
	answers := map[string][]byte{"nothing": nil, "HTTP": []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "an announced gigabyte": {0x40, 0, 0, 0}, "an empty answer": reply([]byte{0}), "a long list": reply(list)}
	for i := range 40 {
		answers["noise "+string(rune('a'+i))] = append(reply(nil), noise(200)...)
	}
	for name, answer := range answers {
		for _, bare := range []bool{true, false} {
			address := serve(t, func(conn net.Conn) {
				conn.SetDeadline(time.Now().Add(time.Second))
				if !bare && name != "nothing" {
					conn.Write([]byte{saslComplete, 0, 0, 0, 0})
					conn.Write(binary.BigEndian.AppendUint32(nil, uint32(len(answer))))
				}
				conn.Write(answer)
				io.Copy(io.Discard, conn)
			})
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			begun := time.Now()
			s, err := Open(ctx, Config{Address: address, User: "me", Password: "secret", Bare: bare})
			cancel()
			if err == nil {
				s.conn.Close()
				t.Errorf("%s: a session", name)
			} else if strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: the password is in %v", name, err)
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
		}
	}
}

// TestPlainLogin: what is sent for a log-in is PLAIN's, and who is not let in hears of it as 28000, without the
// server's words.
func TestPlainLogin(t *testing.T) {
	heard := make(chan string, 1)
	address := serve(t, func(conn net.Conn) {
		said := make([]byte, 5+5+5+len("\x00me\x00secret"))
		io.ReadFull(conn, said)
		heard <- string(said)
		conn.Write(append([]byte{3, 0, 0, 0, 7}, "no, me!"...))
	})
	_, err := Open(t.Context(), Config{Address: address, User: "me", Password: "secret"})
	var fault Fault
	if !errors.As(err, &fault) || fault.State != "28000" || strings.Contains(err.Error(), "me!") {
		t.Errorf("got %v", err)
	}
	if said := <-heard; said != "\x01\x00\x00\x00\x05PLAIN\x02\x00\x00\x00\x0a\x00me\x00secret" {
		t.Errorf("it said %q", said)
	}
}

// TestRows: columns become rows, and NULLs are where their bits are; what is not so is an error.
func TestRows(t *testing.T) {
	ints := func(nulls []byte, values ...int32) *hiveserver.TColumn {
		return &hiveserver.TColumn{I32Val: &hiveserver.TI32Column{Values: values, Nulls: nulls}}
	}
	texts := &hiveserver.TColumn{StringVal: &hiveserver.TStringColumn{Values: []string{"a", "", "c"}, Nulls: []byte{2}}}
	var rows []Row
	take := func(r Row) error {
		rows = append(rows, slices.Clone(r))
		return nil
	}
	n, err := eachRow(&hiveserver.TRowSet{Columns: []*hiveserver.TColumn{ints(nil, 1, 2, 3), texts}}, take)
	if n != 3 || err != nil || rows[1][1] != (Value{Kind: Text, Null: true}) || rows[2][0] != (Value{Kind: Int, Whole: 3}) || rows[2][1].Text != "c" {
		t.Errorf("%d rows, %v: %v", n, err, rows)
	}
	for name, set := range map[string]*hiveserver.TRowSet{
		"no set": nil, "rows": {Rows: []*hiveserver.TRow{{}}},
		"different lengths": {Columns: []*hiveserver.TColumn{ints(nil, 1, 2), texts}}, "a column without values": {Columns: []*hiveserver.TColumn{texts, {}}},
	} {
		if _, err := eachRow(set, take); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := safely(func() error {
		_, err := eachRow(&hiveserver.TRowSet{Columns: []*hiveserver.TColumn{nil}}, take)
		return err
	}); err != ErrProtocol {
		t.Errorf("no column: %v", err)
	}
}

// TestFaultsHaveNoText: of what a server says of an error the SQLSTATE is left.
func TestFaultsHaveNoText(t *testing.T) {
	state, text := "22018", "the value 'Zyxomma-4711' cannot be cast"
	err := statusOf(&hiveserver.TStatus{StatusCode: hiveserver.TStatusCode_ERROR_STATUS, SqlState: &state, ErrorMessage: &text, InfoMessages: []string{text}})
	if err != error(Fault{"22018"}) || strings.Contains(err.Error(), "4711") {
		t.Errorf("got %v", err)
	}
	if err := statusOf(&hiveserver.TStatus{StatusCode: hiveserver.TStatusCode_ERROR_STATUS, SqlState: &text}); err != error(Fault{}) {
		t.Errorf("a state that is none: %v", err)
	}
	if err := statusOf(nil); err != ErrProtocol {
		t.Errorf("no status: %v", err)
	}
}

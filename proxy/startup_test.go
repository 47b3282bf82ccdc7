package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/proxy/login"
)

// startupPacket writes a start-up packet of any version.
func startupPacket(code uint32, words ...string) []byte {
	body := binary.BigEndian.AppendUint32(nil, code)
	for _, w := range words {
		body = append(append(body, w...), 0)
	}
	if code>>16 <= 3 {
		body = append(body, 0)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
}

// The codes of requests that come before a start-up packet.
const (
	codeCancel = 1234<<16 | 5678
	codeSSL    = 1234<<16 | 5679
	codeGSS    = 1234<<16 | 5680
)

func short(code uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), code)
}

func certificate(t testing.TB, ed bool) *tls.Config {
	t.Helper()
	var public, private any
	if ed {
		pub, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		public, private = pub, key
	} else {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		public, private = &key.PublicKey, key
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}
}

func TestTLS(t *testing.T) {
	for _, ed := range []bool{false, true} {
		b := start(t, func(c *Config) { c.TLS = certificate(t, ed) })
		bindings := []string{"prefer", "disable"}
		if !ed {
			bindings = append(bindings, "require")
		}
		for _, binding := range bindings {
			got := b.psql(t, b.url("alice", "wonderland", "census", "sslmode=require&channel_binding="+binding), "select 1;")
			if !strings.HasPrefix(got, "?column?\n1\n") {
				t.Errorf("ed25519 %v, channel binding %s: %q", ed, binding, got)
			}
		}
		conn := b.pgxTLS(t, "sslmode=require&sslnegotiation=direct")
		if err := conn.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestDirectTLSNeedsALPN(t *testing.T) {
	b := start(t, func(c *Config) { c.TLS = certificate(t, false) })
	for _, c := range []struct {
		protocols []string
		ok        bool
	}{{[]string{login.ALPN}, true}, {nil, false}, {[]string{"http/1.1"}, false}} {
		secure := tls.Client(b.dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: c.protocols})
		_, err := secure.Write(startupPacket(3<<16, "user", "alice", "database", "census"))
		if err == nil {
			_, err = secure.Read(make([]byte, 1))
		}
		if (err == nil) != c.ok {
			t.Errorf("%v: %v", c.protocols, err)
		}
	}
}

// listened keeps what came.
type listened struct {
	net.Conn
	bytes []byte
}

func (l *listened) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.bytes = append(l.bytes, b[:n]...)
	return n, err
}

// TestTLSEnds: what comes through TLS ends through it, after a cancel request, after Terminate and after a refusal.
func TestTLSEnds(t *testing.T) {
	b := start(t, func(c *Config) { c.TLS = certificate(t, false) })
	heard := map[*tls.Conn]*listened{}
	secure := func() *tls.Conn {
		wire := &listened{Conn: b.dial(t)}
		conn := tls.Client(wire, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{login.ALPN}, MaxVersion: tls.VersionTLS12})
		heard[conn] = wire
		return conn
	}
	ends := func(what string, conn *tls.Conn) {
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
		last, rest := byte(0), heard[conn].bytes
		for len(rest) >= 5 {
			last, rest = rest[0], rest[min(len(rest), 5+int(rest[3])<<8+int(rest[4])):]
		}
		if last != 21 { // an alert, which close_notify is; Go's own client takes any end between two records
			t.Errorf("after %s: the last record is of type %d", what, last)
		}
	}
	cancel := secure()
	if _, err := cancel.Write(startupPacketOf(1, []byte{1, 2, 3, 4})); err != nil {
		t.Fatal(err)
	}
	ends("a cancel request", cancel)
	session := secure()
	r := b.rawOn(t, session, pgproto3.ProtocolVersion30)
	r.Send(&pgproto3.Terminate{})
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	ends("Terminate", session)
	refused := secure()
	if _, err := refused.Write(startupPacket(3<<16, "user", "nobody", "database", "nowhere", "client_encoding", "EBCDIC")); err != nil {
		t.Fatal(err)
	}
	_ = refused.SetReadDeadline(time.Now().Add(20 * time.Second))
	for answers := pgproto3.NewFrontend(refused, refused); ; {
		msg, err := answers.Receive()
		if _, failed := msg.(*pgproto3.ErrorResponse); failed || err != nil {
			break
		}
		if _, asked := msg.(*pgproto3.AuthenticationSASL); asked {
			_, _ = refused.Write([]byte{'p', 0, 0, 0, 5, 0}) // it may be refused already
		}
	}
	ends("a refusal", refused)
}

func TestEncryptionRequests(t *testing.T) {
	b := start(t)
	for _, order := range [][]uint32{{codeSSL, codeGSS}, {codeGSS, codeSSL}, {codeSSL}, {codeGSS}} {
		conn := b.dial(t)
		for _, code := range order {
			if _, err := conn.Write(short(code)); err != nil {
				t.Fatal(err)
			}
			var reply [1]byte
			if _, err := io.ReadFull(conn, reply[:]); err != nil || reply[0] != 'N' {
				t.Fatalf("%v: %q, %v", order, reply, err)
			}
		}
		b.rawOn(t, conn, pgproto3.ProtocolVersion30)
	}
	conn := b.dial(t) // asking twice is not part of the protocol
	_, _ = conn.Write(slices.Concat(short(codeSSL), short(codeSSL)))
	if got, _ := io.ReadAll(conn); !bytes.HasPrefix(got, []byte("NE")) || !bytes.Contains(got, []byte("0A000")) {
		t.Errorf("%q", got)
	}
}

func TestProtocol32(t *testing.T) {
	b := start(t)
	if r := b.rawOn(t, b.dial(t), pgproto3.ProtocolVersion32); len(r.key.SecretKey) != keyBytes32 {
		t.Errorf("key of %d bytes", len(r.key.SecretKey))
	}
	if r := b.raw(t); len(r.key.SecretKey) != keyBytes30 {
		t.Errorf("key of %d bytes", len(r.key.SecretKey))
	}
	conn := b.dial(t)
	if _, err := conn.Write(startupPacket(3<<16|9999, "user", "alice", "database", "census", "_pq_.test", "1")); err != nil {
		t.Fatal(err)
	}
	msg, err := pgproto3.NewFrontend(conn, conn).Receive()
	n, ok := msg.(*pgproto3.NegotiateProtocolVersion)
	if err != nil || !ok || n.NewestMinorProtocol != 3<<16|2 || !slices.Equal(n.UnrecognizedOptions, []string{"_pq_.test"}) {
		t.Errorf("%+v, %v", msg, err)
	}
}

// TestStartupThatNeverEnds: the deadline covers everything before the login.
func TestStartupThatNeverEnds(t *testing.T) {
	b := start(t, func(c *Config) { c.Limits.LoginTime = 300 * time.Millisecond })
	for name, begin := range map[string][]byte{
		"nothing": nil, "one byte": {0}, "half a packet": startupPacket(3<<16, "user", "alice")[:10],
		"no password": startupPacket(3<<16, "user", "alice", "database", "census"), "TLS": {0x16, 3, 1},
	} {
		conn := b.dial(t)
		_, _ = conn.Write(begin)
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: still open", name)
		}
	}
}

// TestLengthField is threat T52: an announced length takes no memory.
func TestLengthField(t *testing.T) {
	b := start(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	logged := b.raw(t)
	var conns []net.Conn
	for range 200 {
		conn := b.dial(t)
		_, _ = conn.Write([]byte{'Q', 0x7f, 0xff, 0xff, 0xff})
		conns = append(conns, conn)
	}
	for _, length := range [][]byte{{0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0}, {0, 0, 0, 3}, {0, 0x10, 0, 5}} {
		r := b.raw(t)
		_, _ = r.conn.Write(append([]byte{'Q'}, length...))
		if got := r.upTo("Z"); !strings.HasPrefix(got, "E(54000) EOF") && !strings.HasPrefix(got, "E(08P01) EOF") {
			t.Errorf("length %x: %s", length, got)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("%d MiB taken", grown>>20)
	}
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := conn.Write([]byte{0}); err != nil {
			continue
		}
	}
	logged.Send(&pgproto3.Query{String: "select 1"})
	if got := logged.upTo("Z"); got != "T1 D C(SELECT 1) Z(I)" {
		t.Error(got)
	}
}

// TestPlainFromElsewhere: a login from another machine's address without TLS is refused before the password exchange.
func TestPlainFromElsewhere(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own net.IP
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			own = n.IP
		}
	}
	if own == nil {
		t.Skip("this machine has a loopback address only")
	}
	b := start(t, func(c *Config) { c.Listen, c.TLS = "0.0.0.0:0", certificate(t, false) })
	conn, err := net.Dial("tcp", net.JoinHostPort(own.String(), b.port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write(startupPacket(3<<16, "user", "alice", "database", "census"))
	if got, _ := io.ReadAll(conn); len(got) == 0 || got[0] != 'E' || !bytes.Contains(got, []byte("C28000")) || bytes.Contains(got, []byte("SCRAM")) {
		t.Errorf("%q", got)
	}
	url := strings.Replace(b.url("alice", "wonderland", "census", "sslmode=require"), "127.0.0.1", own.String(), 1)
	if got := b.psql(t, url, "select 1"); !strings.HasPrefix(got, "?column?\n1\n") {
		t.Error(got)
	}
	plain, refused := 20, 0
	for range plain {
		conn, err := net.Dial("tcp", net.JoinHostPort(own.String(), b.port))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(startupPacket(3<<16, "user", "alice", "database", "census"))
		if got, _ := io.ReadAll(conn); bytes.Contains(got, []byte("C28000")) && !bytes.Contains(got, []byte("SCRAM")) {
			refused++
		}
		conn.Close()
	}
	if refused != plain {
		t.Errorf("%d of %d refused", refused, plain)
	}
	threats.Reached(t, "T57", "%d of %d plain log-ins from another address refused before the exchange", refused, plain)
}

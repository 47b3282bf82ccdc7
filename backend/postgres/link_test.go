package postgres

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/internal/threats"
)

// greeter is a server that says one thing to each client after its first packet, and keeps what clients send.
type greeter struct {
	net.Listener
	mu    sync.Mutex
	heard bytes.Buffer
}

func greet(t *testing.T, say string, then func(c net.Conn)) *greeter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &greeter{Listener: l}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
				first := make([]byte, 4096)
				n, _ := conn.Read(first)
				g.keep(first[:n])
				_, _ = io.WriteString(conn, say)
				if then != nil {
					then(conn)
					return
				}
				for {
					n, err := conn.Read(first)
					if g.keep(first[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wait.Wait()
	})
	return g
}

func (g *greeter) keep(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard.Write(b)
}

// selfSigned is a certificate that nobody has vouched for.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestLinkToAnImpostor is threat T57 on the database's side: TLS that is taken away, a certificate of nobody, a way
// over a network of which nothing is said, and log-ins weaker than SCRAM are refused, soon, and no server hears the
// password.
func TestLinkToAnImpostor(t *testing.T) {
	const secret = "hunter2secret"
	scram := frame('R', be32(10)+"SCRAM-SHA-256\x00\x00")
	wrong := tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}
	handshake := func(c net.Conn) {
		secure := tls.Server(c, &wrong)
		_ = secure.Handshake()
		_, _ = io.Copy(io.Discard, secure)
	}
	refused, all := 0, 0
	for name, c := range map[string]struct {
		say, mode string
		then      func(net.Conn)
	}{
		"no TLS where it must be":  {"N", "verify-full", nil},
		"no TLS, required":         {"N", "require", nil},
		"a certificate of nobody":  {"S", "verify-full", handshake},
		"another CA":               {"S", "verify-ca", handshake},
		"plain bytes behind S":     {"S" + frame('R', be32(0)) + frame('Z', "I"), "verify-full", nil},
		"a cleartext password":     {frame('R', be32(3)), "disable", nil},
		"2^31 iterations":          {scram, "disable", sayAfter(frame('R', be32(11)+"r=x,s=QUFBQQ==,i=2147483648"))},
		"no iterations":            {scram, "disable", sayAfter(frame('R', be32(11)+"r=x,s=QUFBQQ==,i=0"))},
		"a nonce that is not hers": {scram, "disable", sayAfter(frame('R', be32(11)+"r=other,s=QUFBQQ==,i=4096"))},
		"the end without a proof":  {scram, "disable", sayAfter(frame('R', be32(0)) + frame('Z', "I"))},
		"an unknown mechanism":     {frame('R', be32(10)+"PLAIN\x00\x00"), "disable", nil},
		"an error of nothing":      {frame('E', "\x00"), "disable", nil},
		"a message of 2 GiB":       {"R\x7f\xff\xff\xff", "disable", nil},
		"not the protocol":         {"SSH-2.0-OpenSSH\r\n", "disable", nil},
		"silence":                  {"", "disable", nil},
	} {
		all++
		g := greet(t, c.say, c.then)
		begun := time.Now()
		b, err := backendtest.Opener(context.Background(), backendtest.TestPolicy(t, "postgres://u:"+secret+"@"+g.Addr().String()+"/db?sslmode="+c.mode), backendtest.Discard())
		if err == nil {
			b.Close()
		}
		g.mu.Lock()
		heard := g.heard.String()
		g.mu.Unlock()
		if !errors.Is(err, backend.ErrUnavailable) || strings.Contains(heard, secret) || time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %v after %v; the server heard %q", name, err, time.Since(begun), heard)
			continue
		}
		refused++
	}
	for _, host := range []string{"db.example.com", "10.1.2.3"} {
		all++
		if _, err := backendtest.Opener(context.Background(), backendtest.TestPolicy(t, "postgres://u:"+secret+"@"+host+"/db"), backendtest.Discard()); !errors.Is(err, ErrLink) {
			t.Errorf("%s without sslmode: %v", host, err)
			continue
		}
		refused++
	}
	threats.Reached(t, "T57", "%d of %d impostors of the database refused, none heard the password", refused, all)
}

// sayAfter answers the client's next packet, then says no more.
func sayAfter(say string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, say)
		_, _ = io.Copy(io.Discard, c)
	}
}

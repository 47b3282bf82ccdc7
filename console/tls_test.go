package console

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// selfSigned writes a certificate for this machine and its key.
func selfSigned(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pool
}

// TestTLS: with a certificate the console speaks TLS alone, and its cookies do not leave by anything else.
func TestTLS(t *testing.T) {
	cert, key, pool := selfSigned(t)
	b := start(t, policyText(t, `, tls: {cert: "`+cert+`", key: "`+key+`"}`))
	w := b.browser()
	w.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	p := w.logIn("alice", "alice")
	if p.status != http.StatusSeeOther || w.held() == "" {
		t.Fatal(p.status, p.body)
	}
	for _, line := range p.head.Values("Set-Cookie") {
		if !strings.HasPrefix(line, "__Host-dpproxy_") || !strings.Contains(line, "; Secure") {
			t.Errorf("cookie %s", line)
		}
	}
	if p := w.get("/data/lab/tables"); p.status != http.StatusOK {
		t.Errorf("tables: %d", p.status)
	}
	plain := b.browser()
	plain.Transport = http.DefaultTransport
	b.scheme = "http"
	if p, err := plain.try("GET", "/login", nil, nil); err == nil && (p.status != http.StatusBadRequest || strings.Contains(p.body, "token")) {
		t.Errorf("without TLS: %d %s", p.status, p.body)
	}
	http.DefaultClient.CloseIdleConnections()
	b.scheme = "https"
}

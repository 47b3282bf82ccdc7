package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// writeCertificate writes a certificate that signs itself, and its key.
func writeCertificate(t *testing.T, cert, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "dpproxy " + serial.String()}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &pair.PublicKey, pair)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertificateRenewed: after SIGHUP new clients are shown the certificate that is in the files then, with the channel binding
// that belongs to it; sessions that are open go on, and a key that does not fit leaves the old one in force.
func TestCertificateRenewed(t *testing.T) {
	beside(t)
	client, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("no psql on this machine")
	}
	path := duckFixtureIn(t, t.TempDir(), budgets{"10", "10"}, 0)
	dir := filepath.Dir(path)
	cert, key, first := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "first.pem")
	writeCertificate(t, cert, key)
	edit(t, path, "server: {", "server: {tls: {cert: cert.pem, key: key.pem}, ")
	p := serveProcess(t, path)
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first, text, 0o600); err != nil {
		t.Fatal(err)
	}
	greets := func(root string) bool {
		url := strings.Replace(p.url("alice", "lab"), "sslmode=disable", "sslmode=verify-full&channel_binding=require&sslrootcert="+root, 1)
		out, err := exec.Command(client, "-X", "-At", url, "-c", "SELECT 7").CombinedOutput()
		if (err != nil) != strings.Contains(string(out), "certificate verify failed") {
			t.Errorf("psql: %v %s", err, out)
		}
		return err == nil
	}
	open := p.connect("alice", "lab")
	if !greets(cert) {
		t.Fatal("the first certificate is not shown")
	}
	again := func(what, said string) {
		t.Helper()
		before := strings.Count(p.logText(), said)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, what, func() bool { return strings.Count(p.logText(), said) > before })
	}
	writeCertificate(t, cert, key)
	again("another certificate", "another certificate")
	if !greets(cert) || greets(first) {
		t.Error("the certificate is not the one that is in the files")
	}
	writeCertificate(t, first, key) // the key of another one
	again("a key that does not fit", "certificate not reloaded; the old one stays in force")
	if !greets(cert) {
		t.Error("a key that does not fit took the certificate away")
	}
	if a := open.ask(`SELECT 7`); a.err != nil {
		t.Errorf("a session that is open: %v", a.err)
	}
}

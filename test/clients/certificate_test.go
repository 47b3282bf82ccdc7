package clients

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// relayed passes a connection on. shown is called once the server has shown its certificate, before the client hears of
// it.
func relayed(t *testing.T, address string, shown func()) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		server, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer server.Close()
		go func() { _, _ = io.Copy(server, client) }() // until one of them closes
		buffer := make([]byte, 1<<16)
		for part := 1; ; part++ { // first the consent to TLS, then the server's hello with its certificate
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			if part == 2 {
				shown()
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	return listener.Addr().String()
}

// TestCertificateRenewed: after SIGHUP new clients are shown the certificate that is in the files then, with the
// channel binding that belongs to it; sessions that are open go on, and a key that does not fit leaves the old one in
// force.
func TestCertificateRenewed(t *testing.T) {
	kit.Beside(t)
	client, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("no psql on this machine")
	}
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10", Cap: "10"}, 0)
	dir, other := filepath.Dir(path), t.TempDir()
	cert, first := writeCertificate(t, dir), filepath.Join(other, "first.pem")
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	kit.Edit(t, path, "server: {", "server: {tls: {cert: cert.pem, key: key.pem}, ")
	p := kit.Serve(t, path)
	through := func(address, root string) bool {
		url := strings.Replace(p.URL("alice", "lab"), "sslmode=disable", "sslmode=verify-ca&channel_binding=require&sslrootcert="+root, 1)
		url = strings.Replace(url, p.Address, address, 1)
		out, err := exec.Command(client, "-X", "-At", url, "-c", "SELECT 7").CombinedOutput()
		if (err != nil) != strings.Contains(string(out), "certificate verify failed") {
			t.Errorf("psql: %v %s", err, out)
		}
		return err == nil
	}
	greets := func(root string) bool { return through(p.Address, root) }
	open := p.Connect("alice", "lab")
	if !greets(cert) {
		t.Fatal("the first certificate is not shown")
	}
	again := func(what, said string) {
		t.Helper()
		before := strings.Count(p.LogText(), said)
		if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Error(err) // also called by the relay, which may not end the test
		}
		kit.Eventually(t, what, func() bool { return strings.Count(p.LogText(), said) > before })
	}
	move(cert, first)
	writeCertificate(t, dir)
	again("another certificate", "another certificate")
	if !greets(cert) || greets(first) {
		t.Error("the certificate is not the one that is in the files")
	}
	move(cert, first)
	writeCertificate(t, dir)
	relay := relayed(t, p.Address, func() { again("a certificate that comes in the middle of a login", "another certificate") })
	if !through(relay, first) {
		t.Error("a login is not bound to the certificate that its own connection was shown")
	}
	if !greets(cert) {
		t.Error("the certificate is not the one that came in the middle of a login")
	}
	writeCertificate(t, other)
	move(filepath.Join(other, "key.pem"), filepath.Join(dir, "key.pem"))
	again("a key that does not fit", "certificate not reloaded; the old one stays in force")
	if !greets(cert) {
		t.Error("a key that does not fit took the certificate away")
	}
	if a := open.Ask(`SELECT 7`); a.Err != nil {
		t.Errorf("a session that is open: %v", a.Err)
	}
}

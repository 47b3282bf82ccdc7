package login

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/login/logintest"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// house is a server that logs clients in and does nothing else.
type house struct {
	t       *testing.T
	address string
	policy  atomic.Pointer[policy.Policy]
	causes  chan error // of log-ins that nobody judged
}

func newHouse(t *testing.T, config *tls.Config, p *policy.Policy) *house {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	h := &house{t: t, address: l.Addr().String(), causes: make(chan error, 100)}
	h.policy.Store(p)
	a, brake := &Passwords{Secret: []byte("x"), Policy: h.policy.Load}, NewBrake()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go h.serve(conn, config, a, brake)
		}
	}()
	return h
}

func (h *house) serve(conn net.Conn, config *tls.Config, a *Passwords, brake *Brake) {
	defer conn.Close()
	o := &Opening{Conn: conn, Config: config}
	packet, err := o.Next()
	if err != nil || packet.Cancels() {
		return
	}
	start, err := ParseStartup(packet)
	if err != nil {
		return
	}
	back := pgproto3.NewBackend(o.Conn, o.Conn)
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Second)
	defer cancel()
	if err := a.Authenticate(ctx, back, Claimant{User: start.User, Origin: "here", Opening: o}, brake); err != nil {
		if cause := Cause(err); cause != nil {
			h.causes <- cause
		}
		if f := pgerror.Describe(err); !errors.Is(err, ErrSilent) {
			back.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: f.SQLState, Message: f.Message, Hint: f.Hint})
			_ = back.Flush() // the client sees it, or has gone
			_, _ = io.Copy(io.Discard, o.Conn)
		}
		return
	}
	back.Send(&pgproto3.AuthenticationOk{})
	back.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	back.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	_ = back.Flush() // as above
	_, _ = io.Copy(io.Discard, o.Conn)
}

// enter logs in as pgx does, and returns the SQLSTATE that the client is shown, or "let in", or "no session".
func (h *house) enter(user, password string, more func(*pgconn.Config)) string {
	h.t.Helper()
	c, err := pgconn.ParseConfig("postgres://" + h.address + "/d?sslmode=disable")
	if err != nil {
		h.t.Fatal(err)
	}
	c.User, c.Password = user, password
	if more != nil {
		more(c)
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, c)
	var told *pgconn.PgError
	switch {
	case err == nil:
		_ = conn.Close(ctx) // the server does not care
		return "let in"
	case errors.As(err, &told):
		return told.Code
	}
	return "no session"
}

// signer makes certificates.
type signer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{t: t}
	pair := s.sign("signer", func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign })
	s.cert, s.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	s.file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(s.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *signer) sign(name string, more func(*x509.Certificate)) tls.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if more != nil {
		more(c)
	}
	by, with := s.cert, s.key
	if by == nil {
		by, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		s.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestCertificates: a name that logs in by certificate is let in with a certificate of hers that the policy's signer
// made and that is valid, and with nothing else.
func TestCertificates(t *testing.T) {
	ours, others := newSigner(t), newSigner(t)
	pool, err := Certificates(ours.file)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{ours.sign("server", nil)}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}
	h := newHouse(t, config, &policy.Policy{Users: []policy.User{
		{Name: "erin", Login: policy.ByCertificate, Identity: "Erin E."},
		{Name: "gone", Login: policy.ByCertificate, Identity: "gone", Disabled: true},
		{Name: "alice", Verifier: verifier(t, "wonderland")},
	}})
	with := func(certificates ...tls.Certificate) func(*pgconn.Config) {
		return func(c *pgconn.Config) {
			c.TLSConfig = &tls.Config{InsecureSkipVerify: true, Certificates: certificates}
		}
	}
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	server := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	refused := 0
	for _, c := range []struct {
		title, user string
		more        func(*pgconn.Config)
		want        string
	}{
		{"hers", "erin", with(ours.sign("Erin E.", nil)), "let in"},
		{"none", "erin", with(), "28000"},
		{"none, without TLS", "erin", nil, "28000"},
		{"of somebody else", "erin", with(ours.sign("alice", nil)), "28000"},
		{"of a name that has hers within", "erin", with(ours.sign("Erin E., x", nil)), "28000"},
		{"hers, by another signer", "erin", with(others.sign("Erin E.", nil)), "no session"},
		{"hers, expired", "erin", with(ours.sign("Erin E.", expired)), "no session"},
		{"hers, for servers", "erin", with(ours.sign("Erin E.", server)), "no session"},
		{"of nobody", "nobody", with(ours.sign("nobody", nil)), "28"},
		{"of who is disabled", "gone", with(ours.sign("gone", nil)), "28"},
		{"of who logs in by password", "alice", with(ours.sign("alice", nil)), "28P01"},
	} {
		got := h.enter(c.user, "erin", c.more)
		if got != c.want && !(c.want == "28" && strings.HasPrefix(got, "28")) {
			t.Errorf("%s: %s, not %s", c.title, got, c.want)
		}
		if got != "let in" {
			refused++
		}
	}
	if got := h.enter("alice", "wonderland", with()); got != "let in" {
		t.Errorf("a password beside certificates: %s", got)
	}
	threats.Reached(t, "T72", "%d of 10 certificates that are not hers, not valid or of nobody refused", refused)
}

// slapd starts a directory with carol and dave in it, on this machine.
func slapd(t *testing.T) (url string) {
	t.Helper()
	program, err := exec.LookPath("slapd")
	if err != nil {
		if program = "/usr/sbin/slapd"; !exists(program) {
			t.Skip("slapd is not there")
		}
	}
	dir := t.TempDir()
	conf, data := filepath.Join(dir, "slapd.conf"), filepath.Join(dir, "data")
	text := "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\ninclude /etc/ldap/schema/inetorgperson.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n" +
		"database mdb\nmaxsize 10485760\nsuffix \"dc=example,dc=org\"\nrootdn \"cn=admin,dc=example,dc=org\"\nrootpw topsecret\ndirectory " + data + "\n"
	people := "dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n\ndn: ou=people,dc=example,dc=org\nobjectClass: organizationalUnit\nou: people\n\n"
	people += "dn: ou=machines,ou=people,dc=example,dc=org\nobjectClass: organizationalUnit\nou: machines\n\n"
	for name, password := range map[string]string{"c.jones": "looking glass", "dave": "rabbit", "mill,ou=machines": "rabbit"} {
		uid, _, _ := strings.Cut(name, ",")
		people += fmt.Sprintf("dn: uid=%s,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: %s\ncn: x\nsn: x\nuserPassword: %s\n\n", name, uid, password)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = errors.Join(l.Close(), os.Mkdir(data, 0o700), os.WriteFile(conf, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "people.ldif"), []byte(people), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	url = "ldap://" + l.Addr().String()
	if out, err := exec.Command(program, "-T", "add", "-f", conf, "-l", filepath.Join(dir, "people.ldif")).CombinedOutput(); err != nil {
		t.Fatalf("slapadd: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "-f", conf, "-h", url, "-d", "0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for wait := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", l.Addr().String()); err == nil {
			conn.Close()
			return url
		}
		if time.Now().After(wait) {
			t.Fatal("slapd does not listen")
		}
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func ldapPolicy(t *testing.T, url string) *policy.Policy {
	return &policy.Policy{Server: policy.Server{LDAP: &policy.LDAP{URL: url, Bind: "uid={user},ou=people,dc=example,dc=org"}}, Users: []policy.User{
		{Name: "carol", Login: policy.ByLDAP, Identity: "c.jones"},
		{Name: "trick", Login: policy.ByLDAP, Identity: "mill,ou=machines"},
		{Name: "alice", Verifier: verifier(t, "wonderland")},
	}}
}

// TestDirectory binds users at a real slapd.
func TestDirectory(t *testing.T) {
	h := newHouse(t, nil, ldapPolicy(t, slapd(t)))
	for _, c := range []struct{ title, user, password, want string }{
		{"right", "carol", "looking glass", "let in"},
		{"wrong", "carol", "wonderland", "28P01"},
		{"empty: an anonymous bind", "carol", "", "28P01"},
		{"an identity that would name somebody elsewhere in the directory", "trick", "rabbit", "28P01"},
		{"right in the directory, and nobody here", "dave", "rabbit", "28P01"},
		{"by a password of ours", "alice", "wonderland", "let in"},
	} {
		if got := h.enter(c.user, c.password, nil); got != c.want {
			t.Errorf("%s: %s, not %s", c.title, got, c.want)
		}
	}
	if len(h.causes) > 0 {
		t.Errorf("the directory: %v", <-h.causes)
	}
}

// TestDirectoryThatHangs: a directory that takes connections and says nothing, or is not there, lets nobody in, and
// tells the client what is wrong; it is nobody's failure, and others log in meanwhile.
func TestDirectoryThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			held <- conn // open, and never answered
		}
	}()
	h := newHouse(t, nil, ldapPolicy(t, "ldap://"+l.Addr().String()))
	done := make(chan string, 1)
	go func() { done <- h.enter("carol", "looking glass", nil) }()
	conn := <-held
	if got := h.enter("alice", "wonderland", nil); got != "let in" {
		t.Errorf("alice, while the directory hangs: %s", got)
	}
	if got := <-done; got != "57P03" {
		t.Errorf("a directory that hangs: %s", got)
	}
	conn.Close()
	l.Close()
	for range 6 { // more than the failures that are free
		if got := h.enter("carol", "looking glass", nil); got != "57P03" {
			t.Errorf("a directory that is not there: %s", got)
		}
	}
	for n := len(h.causes); n > 0; n-- {
		if cause := (<-h.causes).Error(); strings.Contains(cause, "looking") {
			t.Errorf("the cause tells of the password: %s", cause)
		}
	}
}

// TestTokens: a token of the provider's, made out to us, valid and hers lets a user in, with a key that came after the
// start too; no other token does, and a provider that is down is nobody's failure.
func TestTokens(t *testing.T) {
	provider := logintest.NewProvider(t)
	mint := provider.Roll(t, "one", true)
	p := &policy.Policy{Server: policy.Server{OIDC: &policy.OIDC{Issuer: provider.URL, Audience: "dpproxy", Claim: "sub", Scope: "openid", CA: provider.CA}}, Users: []policy.User{
		{Name: "frank", Login: policy.ByOIDC, Identity: "frank"},
		{Name: "alice", Verifier: verifier(t, "wonderland")},
	}}
	h := newHouse(t, nil, p)
	bring := func(user, token string) string {
		return h.enter(user, "", func(c *pgconn.Config) {
			c.OAuthTokenProvider = func(context.Context) (string, error) { return token, nil }
		})
	}
	check := func(title, user, token, want string) {
		t.Helper()
		// pgx gives up at the provider's address, which PostgreSQL 18 sends before the error: then there is no code.
		if got := bring(user, token); got != want && !(want == "refused" && got != "let in" && got != "57P03") {
			t.Errorf("%s: %s, not %s", title, got, want)
		}
	}
	good := mint(nil)
	check("hers", "frank", good, "let in")
	check("expired", "frank", mint(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), "refused")
	check("for another audience", "frank", mint(map[string]any{"aud": "somebody"}), "refused")
	check("of another issuer", "frank", mint(map[string]any{"iss": "https://elsewhere.example.org"}), "refused")
	h.policy.Store(func() *policy.Policy { again := *p; return &again }()) // three failures are free: a fresh policy does not clear them
	check("somebody else's", "frank", mint(map[string]any{"sub": "grace"}), "refused")
	check("forged", "frank", provider.Roll(t, "one", false)(nil), "refused")
	check("not signed", "frank", "eyJhbGciOiJub25lIn0."+strings.Split(good, ".")[1]+".", "refused")
	check("of nobody", "nobody", mint(map[string]any{"sub": "nobody"}), "refused")
	check("still hers", "frank", good, "let in")
	rolled := provider.Roll(t, "two", true)
	check("by a key that rolled", "frank", rolled(nil), "let in")
	// go-oidc hands fetched keys to who waits for them a moment before it keeps them: the old ones may verify once more.
	for end := time.Now().Add(time.Minute); bring("frank", good) == "let in" && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	check("by the key before, which the provider took back", "frank", good, "refused")
	provider.Down.Store(true)
	provider.Roll(t, "three", true)
	check("by keys that cannot be fetched", "frank", provider.Roll(t, "four", true)(nil), "57P03")
	if got := h.enter("alice", "wonderland", nil); got != "let in" {
		t.Errorf("alice, while the provider is down: %s", got)
	}
	p = &policy.Policy{Server: p.Server, Users: p.Users}
	provider.Down.Store(false)
	by := *p.Server.OIDC
	by.Claim = "email"
	h.policy.Store(&policy.Policy{Server: policy.Server{OIDC: &by}, Users: p.Users})
	check("by an address that the provider says nothing of", "frank", provider.Roll(t, "mail", true)(map[string]any{"email": "frank"}), "refused")
	check("by an address that nobody verified", "frank", provider.Roll(t, "mail2", true)(map[string]any{"email": "frank", "email_verified": false}), "refused")
	check("by her verified address", "frank", provider.Roll(t, "mail3", true)(map[string]any{"email": "frank", "email_verified": true}), "let in")
	provider.Down.Store(true)
	h.policy.Store(p) // whose provider has not been read yet
	check("by a provider that is not there", "frank", rolled(nil), "57P03")
	provider.Down.Store(false)
	for wait := time.Now().Add(time.Minute); bring("frank", provider.Roll(t, "five", true)(nil)) != "let in"; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(wait) {
			t.Fatal("the provider is back, and frank is not let in")
		}
	}
	for n := len(h.causes); n > 0; n-- {
		if cause := (<-h.causes).Error(); strings.Contains(cause, "eyJ") {
			t.Errorf("the cause has the token: %s", cause)
		}
	}
}

// TestBearerMessage reads what PostgreSQL 18's libpq sends, and refuses what is no such message.
func TestBearerMessage(t *testing.T) {
	for text, want := range map[string]string{"n,,\x01auth=Bearer abc.def\x01\x01": "abc.def", "n,,\x01auth=\x01\x01": "", "y,,\x01auth=bearer  x\x01\x01": "x", "n,,\x01host=h\x01auth=Bearer x\x01port=1\x01\x01": "x"} {
		if got, ok := bearer(text); !ok || got != want {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "n,,", "n,,\x01\x01", "n,a=root,\x01auth=Bearer x\x01\x01", "p=x,,\x01auth=Bearer x\x01\x01", "n,,\x01auth=Basic x\x01\x01",
		"n,,\x01auth=Bearer x\x01", "n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01", "n,,\x01=\x01\x01"} {
		if got, ok := bearer(text); ok {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

// TestNamesThatDoNotExist are asked by each method as often as users have it, and so do disabled names.
func TestNamesThatDoNotExist(t *testing.T) {
	p := &policy.Policy{}
	for n := range 40 {
		u := policy.User{Name: fmt.Sprint("u", n), Identity: fmt.Sprint("u", n), Login: []policy.LoginMethod{policy.ByCertificate, policy.ByLDAP, policy.ByLDAP, policy.ByPassword}[n%4]}
		if u.Login == policy.ByPassword {
			u.Verifier = verifier(t, "x")
		}
		p.Users = append(p.Users, u)
	}
	a := &Passwords{Secret: []byte("x"), Policy: func() *policy.Policy { return p }}
	counts := map[policy.LoginMethod]int{}
	for n := range 4000 {
		counts[a.mockShape(a.inForce(), fmt.Sprint("nobody", n)).method]++
	}
	for method, want := range map[policy.LoginMethod]int{policy.ByCertificate: 1000, policy.ByLDAP: 2000, policy.ByPassword: 1000} {
		if got := counts[method]; got < want-160 || got > want+160 { // five standard deviations
			t.Errorf("%v: %d of 4000 names, not about %d", method, got, want)
		}
	}
}

// TestGuessesElsewhere: of one name one guess is judged at a time, of one origin a few, and failures are slowed as
// others are.
func TestGuessesElsewhere(t *testing.T) {
	b := NewBrake()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for names, want := range map[int]int32{12: elsewherePerOrigin, 1: 1} {
		var running, most atomic.Int32
		done := make(chan struct{})
		for n := range 12 {
			go func() {
				defer func() { done <- struct{}{} }()
				_, _, err := b.GuessElsewhere(ctx, fmt.Sprint("u", n%names), "here", func(context.Context) (bool, bool) {
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(5 * time.Millisecond)
					running.Add(-1)
					return true, true
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		for range 12 {
			<-done
		}
		if most.Load() > want {
			t.Errorf("of %d names of one origin %d guesses are made at a time", names, most.Load())
		}
	}
	wrong := func(known bool) error {
		short, cancel := context.WithTimeout(ctx, 90*time.Millisecond) // shorter than the first wait
		defer cancel()
		_, _, err := b.GuessElsewhere(short, "eve", "there", func(context.Context) (bool, bool) { return false, known })
		return err
	}
	for range 10 {
		if err := wrong(false); err != nil {
			t.Fatalf("what nobody judged is held against her: %v", err)
		}
	}
	var err error
	for range nameSteps.free + 2 {
		err = wrong(true)
	}
	if !errors.Is(err, ErrBraked) {
		t.Errorf("after %d wrong ones another is made at once: %v", nameSteps.free+1, err)
	}
}

package proxy

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/xdg-go/scram"

	"github.com/dpproxy/dpproxy/internal/threats"
)

func (b *bench) pgxTLS(t testing.TB, more string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.url("alice", "wonderland", "census", more))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// attempt logs in and returns the briefs of what came, and the last error.
func (b *bench) attempt(t testing.TB, user, password, database string) (string, *pgproto3.ErrorResponse) {
	t.Helper()
	conn := b.dial(t)
	r := &raw{t: t, conn: conn, Frontend: pgproto3.NewFrontend(conn, conn)}
	r.Send(&pgproto3.StartupMessage{ProtocolVersion: 3 << 16, Parameters: map[string]string{"user": user, "database": database}})
	talk := passwords(t, password).NewConversation()
	first, _ := talk.Step("")
	r.flush()
	seen := []string{fmt.Sprintf("%T", r.next())}
	r.Send(&pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte(first)})
	r.flush()
	cont, ok := r.next().(*pgproto3.AuthenticationSASLContinue)
	if !ok {
		t.Fatal("no challenge")
	}
	seen = append(seen, fmt.Sprintf("challenge of %d bytes", len(cont.Data)), string(cont.Data)[bytes.IndexByte(cont.Data, ','):])
	final, err := talk.Step(string(cont.Data))
	if err != nil {
		t.Fatal(err)
	}
	r.Send(&pgproto3.SASLResponse{Data: []byte(final)})
	r.flush()
	for msg := r.next(); msg != nil; msg = r.next() {
		seen = append(seen, fmt.Sprintf("%T", msg))
		if e, ok := msg.(*pgproto3.ErrorResponse); ok {
			return strings.Join(seen, "\n"), e
		}
		if _, ok := msg.(*pgproto3.ReadyForQuery); ok {
			break
		}
	}
	return strings.Join(seen, "\n"), nil
}

// TestLoginRefusals: a wrong password and an unknown user look alike, and so do a closed dataset and one that is not.
func TestLoginRefusals(t *testing.T) {
	b := start(t)
	wrong, e1 := b.attempt(t, "alice", "wrong", "census")
	nobody, e2 := b.attempt(t, "nobody", "wrong", "census")
	again, _ := b.attempt(t, "nobody", "other", "census")
	if e1 == nil || e2 == nil || e1.Code != "28P01" || e1.Severity != "FATAL" ||
		strings.ReplaceAll(e1.Message, "alice", "nobody") != e2.Message || e1.Code != e2.Code || e1.Detail+e1.Hint != e2.Detail+e2.Hint {
		t.Errorf("%+v\n%+v", e1, e2)
	}
	if again != nobody {
		t.Errorf("the salt of an unknown user changed:\n%s\n%s", nobody, again)
	}
	strip := func(s string) string { // the salt itself
		lines := strings.Split(s, "\n")
		return strings.Join(append(lines[:2:2], append([]string{lines[2][strings.LastIndex(lines[2], ","):]}, lines[3:]...)...), "\n")
	}
	if strip(wrong) != strip(nobody) {
		t.Errorf("exchanges differ:\n%s\n%s", wrong, nobody)
	}
	_, closed := b.attempt(t, "alice", "wonderland", "secret")
	_, missing := b.attempt(t, "alice", "wonderland", "nowhere")
	_, stranger := b.attempt(t, "stranger", "door", "census")
	if closed == nil || missing == nil || closed.Code != "3D000" || strings.ReplaceAll(closed.Message, "secret", "nowhere") != missing.Message || closed.Hint != missing.Hint {
		t.Errorf("%+v\n%+v", closed, missing)
	}
	if closed.Hint != `This user may connect to "census".` {
		t.Errorf("the hint is %q", closed.Hint)
	}
	if stranger == nil || stranger.Code != "3D000" || stranger.Hint != "No dataset is open to this user." {
		t.Errorf("%+v", stranger)
	}
	if _, e := b.attempt(t, "alice", "wonderland", "census"); e != nil {
		t.Errorf("%+v", e)
	}
	for _, secret := range []string{"wonderland", "wrong"} {
		if strings.Contains(b.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// TestUnknownUsersLookLikeOthers is threat T59: for any name the exchange has the same frames of the same length, the same
// iterations, a salt that stays; only the salt differs, and whoever guesses is slowed alike.
func TestUnknownUsersLookLikeOthers(t *testing.T) {
	b := start(t)
	shape := func(i int, user, password string) (string, string) {
		b.Server.brake = newBrake() // the delay is tested below, by itself
		seen, e := b.attempt(t, user, password, "census")
		if e == nil {
			t.Fatalf("%s was let in", user)
		}
		lines := strings.Split(seen, "\n")
		salt, iterations, _ := strings.Cut(lines[2], ",i=")
		lines[2] = fmt.Sprintf("salt of %d bytes, i=%s", len(salt), iterations)
		return fmt.Sprintf("%s %s %s", lines, e.Code, strings.ReplaceAll(e.Message, user, "…")), salt
	}
	known, _ := shape(0, "alice", "wrong")
	names, salts := threats.Length(40, 1200), map[string]bool{}
	alike := 0
	for i := range names {
		name := fmt.Sprintf("u%04d", i)
		unknown, salt := shape(i, name, "wrong")
		_, again := shape(i, name, "other")
		if unknown != known || again != salt || salts[salt] {
			t.Errorf("%s: %s\nalice: %s\nsalts %s, then %s", name, unknown, known, salt, again)
			continue
		}
		salts[salt] = true
		alike++
	}
	brake, now := newBrake(), time.Unix(0, 0)
	for range 10_000 {
		brake.failed("alice", "10.0.0.1", now)
		brake.failed("nobody", "10.0.0.1", now)
	}
	if a, n := brake.delay("alice", "10.0.0.1", now), brake.delay("nobody", "10.0.0.1", now); a != n || a != longestDelay {
		t.Errorf("after 10,000 guesses alice waits %v, nobody %v", a, n)
	}
	threats.Reached(t, "T59", "%d of %d unknown names have alice's frames, lengths and iterations; after 10,000 guesses each waits %v", alike, names, longestDelay)
}

// TestTamperedExchange: any change of the client's last message, its nonce, its proof or its header is refused.
func TestTamperedExchange(t *testing.T) {
	const seed = 20261121
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	a := &authenticator{secret: []byte("x"), policy: start(t).policy.Load}
	const tampered = 1000
	refused := 0
	for i := range tampered + 1 {
		talk, known, err := a.conversation("alice", false, scram.ChannelBinding{})
		if err != nil || !known {
			t.Fatal(err, known)
		}
		client, _ := scram.SHA256.NewClient("", "wonderland", "")
		c := client.NewConversation()
		first, _ := c.Step("")
		challenge, err := talk.Step(first)
		if err != nil {
			t.Fatal(err)
		}
		final, err := c.Step(challenge)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 { // untouched it is good
			if _, err := talk.Step(final); err != nil || !talk.Valid() {
				t.Fatal(err)
			}
			continue
		}
		changed := []byte(final)
		at := random.Intn(len(changed) - 2) // the last digits of the proof are padding
		old := changed[at]
		for changed[at] == old {
			changed[at] = byte(33 + random.Intn(90))
		}
		if _, err := talk.Step(string(changed)); err == nil && talk.Valid() {
			t.Fatalf("accepted with byte %d changed", at)
		}
		refused++
	}
	threats.Reached(t, "T58", "%d of %d tampered messages refused", refused, tampered)
}

func TestChannelBindingFlags(t *testing.T) {
	b := start(t, func(c *Config) { c.TLS = certificate(t, false) })
	binding := channelBinding(b.tls.Load(), true)
	if !binding.IsSupported() {
		t.Fatal("no channel binding")
	}
	cases, refused := 0, 0
	for _, c := range []struct{ mechanism, first string }{
		{mechanism, "y,,n=,r=abc"},                      // she thinks that PLUS was not offered: somebody took it away
		{mechanismPlus, "n,,n=,r=abc"},                  // PLUS without a binding
		{mechanismPlus, "y,,n=,r=abc"},                  //
		{mechanism, "p=tls-server-end-point,,n=,r=abc"}, // a binding without PLUS
		{mechanismPlus, "p=tls-unique,,n=,r=abc"},       // another kind
		{mechanismPlus, "p=,,n=,r=abc"},                 //
		{mechanism, "n,a=dba,n=,r=abc"},                 // another identity
		{mechanism, "n,,m=ext,n=,r=abc"},                // an extension
		{mechanism, ""}, {mechanism, "n,,"}, {"PLAIN", "\x00alice\x00wonderland"}, {"SCRAM-SHA-1", "n,,n=,r=abc"},
	} {
		var in, out bytes.Buffer
		f := pgproto3.NewFrontend(&out, &in)
		f.Send(&pgproto3.SASLInitialResponse{AuthMechanism: c.mechanism, Data: []byte(c.first)})
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		err := b.auth.exchange(pgproto3.NewBackend(&in, &out), "alice", binding)
		if cases++; err == nil || !isFatal(err) || strings.Contains(out.String(), "r=abc") {
			t.Errorf("%s %q: %v, sent %q", c.mechanism, c.first, err, out.String())
			continue
		}
		refused++
	}
	threats.Reached(t, "T58", "%d of %d weakened exchanges refused", refused, cases)
}

func TestVerifiers(t *testing.T) {
	if _, err := credentials(verifier(t, "x", 4096)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "md5abc", "SCRAM-SHA-256$x:AAAA$AAAA:AAAA", "SCRAM-SHA-256$0:AAAA$AAAA:AAAA", "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA", "a$b$c$d"} {
		if _, err := credentials(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestBrake(t *testing.T) {
	b, now := newBrake(), time.Unix(0, 0)
	for range freeFailures {
		b.failed("alice", "10.0.0.1", now)
	}
	if d := b.delay("alice", "10.0.0.1", now); d != 0 {
		t.Errorf("%v after %d failures", d, freeFailures)
	}
	var last time.Duration
	for range 10 {
		b.failed("alice", "10.0.0.1", now)
		d := b.delay("alice", "10.0.0.1", now)
		if d < last || d == 0 || d > longestDelay {
			t.Errorf("%v after %v", d, last)
		}
		last = d
	}
	if last != longestDelay {
		t.Errorf("longest delay %v", last)
	}
	if d := b.delay("alice", "10.0.0.2", now) + b.delay("bob", "10.0.0.1", now); d != 0 {
		t.Errorf("others wait %v", d)
	}
	if d := b.delay("alice", "10.0.0.1", now.Add(forgetAfter+1)); d != 0 {
		t.Errorf("not forgotten: %v", d)
	}
	b.succeeded("alice", "10.0.0.1")
	if d := b.delay("alice", "10.0.0.1", now); d != 0 {
		t.Errorf("not forgiven: %v", d)
	}
	for i := range 2 * mostBrakeKeys {
		b.failed(fmt.Sprint(i), "10.0.0.3", now)
	}
	if n := len(b.failures); n > mostBrakeKeys+2 {
		t.Errorf("%d kept", n)
	}
}

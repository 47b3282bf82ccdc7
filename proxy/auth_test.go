package proxy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/proxy/login"
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

// TestUnknownUsersLookLikeOthers is threat T59: for any name the exchange has the same frames of the same length, the
// same iterations, a salt that stays; only the salt differs, and whoever guesses is slowed alike.
func TestUnknownUsersLookLikeOthers(t *testing.T) {
	b := start(t)
	shape := func(i int, user, password string) (string, string) {
		b.Server.brake = login.NewBrake() // the delay is tested below, by itself
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
	const longest, guesses = 4 * time.Second, 10_000
	for _, name := range []string{"alice", "nobody"} {
		synctest.Test(t, func(t *testing.T) {
			brake := login.NewBrake()
			var last time.Duration
			for range guesses {
				began := time.Now()
				if in, err := brake.Guess(t.Context(), name, "10.0.0.1", func() bool { return false }); in || err != nil {
					t.Fatal(in, err)
				}
				last = time.Since(began).Round(100 * time.Millisecond)
			}
			if last != longest {
				t.Errorf("after %d guesses %s waits %v", guesses, name, last)
			}
		})
	}
	threats.Reached(t, "T59", "%d of %d unknown names have alice's frames, lengths and iterations; after 10,000 guesses each waits %v", alike, names, longest)
}

func TestChannelBindingFlags(t *testing.T) {
	b := start(t, func(c *Config) { c.TLS = certificate(t, false) })
	binding := login.ChannelBinding(b.tls.Load(), true)
	if !binding.IsSupported() {
		t.Fatal("no channel binding")
	}
	cases, refused := 0, 0
	for _, c := range []struct{ mechanism, first string }{
		{mechanism, "y,,n=,r=abc"},                       // she thinks that PLUS was not offered: somebody took it away
		{"SCRAM-SHA-256-PLUS", "n,,n=,r=abc"},            // PLUS without a binding
		{"SCRAM-SHA-256-PLUS", "y,,n=,r=abc"},            //
		{mechanism, "p=tls-server-end-point,,n=,r=abc"},  // a binding without PLUS
		{"SCRAM-SHA-256-PLUS", "p=tls-unique,,n=,r=abc"}, // another kind
		{"SCRAM-SHA-256-PLUS", "p=,,n=,r=abc"},           //
		{mechanism, "n,a=dba,n=,r=abc"},                  // another identity
		{mechanism, "n,,m=ext,n=,r=abc"},                 // an extension
		{mechanism, ""}, {mechanism, "n,,"}, {"PLAIN", "\x00alice\x00wonderland"}, {"SCRAM-SHA-1", "n,,n=,r=abc"},
	} {
		var in, out bytes.Buffer
		f := pgproto3.NewFrontend(&out, &in)
		f.Send(&pgproto3.SASLInitialResponse{AuthMechanism: c.mechanism, Data: []byte(c.first)})
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		err := b.auth.Exchange(pgproto3.NewBackend(&in, &out), "alice", binding, func(right func() bool) (bool, error) { return right(), nil })
		if cases++; err == nil || !isFatal(err) || strings.Contains(out.String(), "r=abc") {
			t.Errorf("%s %q: %v, sent %q", c.mechanism, c.first, err, out.String())
			continue
		}
		refused++
	}
	threats.Reached(t, "T58", "%d of %d weakened exchanges refused", refused, cases)
}

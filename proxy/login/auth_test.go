package login

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand"
	"testing"

	"github.com/xdg-go/scram"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/policy"
)

func verifier(t *testing.T, password string) string {
	t.Helper()
	v, err := policy.Verifier(password, bytes.NewReader(make([]byte, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestTamperedExchange: any change of the client's last message, its nonce, its proof or its header is refused.
func TestTamperedExchange(t *testing.T) {
	const seed = 20261121
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	p := &policy.Policy{Users: []policy.User{{Name: "alice", Verifier: verifier(t, "wonderland")}}}
	a := &Passwords{Secret: []byte("x"), Policy: func() *policy.Policy { return p }}
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

func TestVerifiers(t *testing.T) {
	if _, err := credentials(verifier(t, "x")); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "md5abc", "SCRAM-SHA-256$x:AAAA$AAAA:AAAA", "SCRAM-SHA-256$0:AAAA$AAAA:AAAA", "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA", "a$b$c$d"} {
		if _, err := credentials(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

// TestMocksHaveTheUsersShapes: where users' verifiers differ in iterations and length of salt, names that do not exist
// have each shape as often as users have it, keep theirs, and where a new user changes it, change the salt with it.
func TestMocksHaveTheUsersShapes(t *testing.T) {
	shaped := func(name string, iterations, salt int) policy.User {
		encode := base64.StdEncoding.EncodeToString
		key := encode(make([]byte, sha256.Size))
		return policy.User{Name: name, Verifier: fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(make([]byte, salt)), key, key)}
	}
	p := &policy.Policy{}
	for i := range 30 {
		p.Users = append(p.Users, shaped(fmt.Sprint("a", i), 4096, 16))
	}
	for i := range 10 {
		p.Users = append(p.Users, shaped(fmt.Sprint("b", i), 600_000, 48))
	}
	a := &Passwords{Secret: []byte("x"), Policy: func() *policy.Policy { return p }}
	const names = 4000
	before, strong := map[string]scram.StoredCredentials{}, 0
	for i := range names {
		name := fmt.Sprint("nobody", i)
		c, known := a.lookup(name)
		again, _ := a.lookup(name)
		if known || c.Salt != again.Salt || c.Iters != again.Iters {
			t.Fatalf("%s: %+v, then %+v", name, c, again)
		}
		switch {
		case c.Iters == 600_000 && len(c.Salt) == 48:
			strong++
		case c.Iters != 4096 || len(c.Salt) != 16:
			t.Fatalf("%s has %d iterations and a salt of %d bytes, which no user has", name, c.Iters, len(c.Salt))
		}
		before[name] = c
	}
	if strong < names/4-120 || strong > names/4+120 { // 4 standard deviations
		t.Errorf("%d of %d names have the iterations that a fourth of the users have", strong, names)
	}
	changed := *p
	changed.Users = append([]policy.User{shaped("new", 600_000, 48)}, p.Users...)
	p = &changed
	moved := 0
	for name, was := range before {
		now, _ := a.lookup(name)
		if now.Iters != was.Iters {
			moved++
		}
		if (now.Iters == was.Iters) != (now.Salt == was.Salt) {
			t.Fatalf("%s: %+v, then %+v", name, was, now)
		}
	}
	if moved > names/20 {
		t.Errorf("one more user changed the iterations of %d of %d names", moved, names)
	}
	if c, known := a.lookup("new"); !known || c.Iters != 600_000 {
		t.Errorf("the policy in force is not read: %+v", c)
	}
}

package login

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

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

// TestBrakeKeepsShortNames: failures are kept by names that anybody may send before a password, as long as a start-up packet.
func TestBrakeKeepsShortNames(t *testing.T) {
	b := NewBrake()
	long := strings.Repeat("x", maxStartupPacket)
	for range freeFailures + 1 {
		b.Failed(long, "10.0.0.1", time.Unix(0, 0))
	}
	for key := range b.failures {
		if len(key) > 128 {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
	if b.Delay(long, "10.0.0.1", time.Unix(0, 0)) == 0 {
		t.Error("guesses at a long name are not slowed")
	}
}

func TestBrake(t *testing.T) {
	b, now := NewBrake(), time.Unix(0, 0)
	for range freeFailures {
		b.Failed("alice", "10.0.0.1", now)
	}
	if d := b.Delay("alice", "10.0.0.1", now); d != 0 {
		t.Errorf("%v after %d failures", d, freeFailures)
	}
	var last time.Duration
	for range 10 {
		b.Failed("alice", "10.0.0.1", now)
		d := b.Delay("alice", "10.0.0.1", now)
		if d < last || d == 0 || d > longestDelay {
			t.Errorf("%v after %v", d, last)
		}
		last = d
	}
	if last != longestDelay {
		t.Errorf("longest delay %v", last)
	}
	if d := b.Delay("alice", "10.0.0.2", now) + b.Delay("bob", "10.0.0.1", now); d != 0 {
		t.Errorf("others wait %v", d)
	}
	if d := b.Delay("alice", "10.0.0.1", now.Add(forgetAfter+1)); d != 0 {
		t.Errorf("not forgotten: %v", d)
	}
	b.Succeeded("alice", "10.0.0.1")
	if d := b.Delay("alice", "10.0.0.1", now); d != 0 {
		t.Errorf("not forgiven: %v", d)
	}
	for i := range 2 * mostBrakeKeys {
		b.Failed(fmt.Sprint(i), "10.0.0.3", now)
	}
	if n := len(b.failures); n > mostBrakeKeys+2 {
		t.Errorf("%d kept", n)
	}
}
